//! The description of a setting.

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name on the command line, without dashes, and in the file.
    pub name: &'static str,
    /// The kind of value, for the help.
    pub value: &'static str,
    /// The default, as text. `None` means not set, or computed (see `help`).
    pub default: Option<&'static str>,
    /// May be given several times.
    pub repeatable: bool,
    /// Its effect, for the help.
    pub help: &'static str,
}

/// A setting that is given once.
pub(super) const fn setting(
    name: &'static str,
    value: &'static str,
    default: Option<&'static str>,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        value,
        default,
        repeatable: false,
        help,
    }
}

/// A switch, off unless it is given.
pub(super) const fn switch(name: &'static str, help: &'static str) -> Setting {
    setting(name, "BOOL", Some("false"), help)
}
