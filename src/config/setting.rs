//! What a setting is.

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As on the command line, without its dashes, and in the file.
    pub name: &'static str,
    /// What kind of value: for help.
    pub value: &'static str,
    /// The default, as text; `None`: not set, or computed (said in `help`).
    pub default: Option<&'static str>,
    /// May be given several times.
    pub repeatable: bool,
    /// What it does.
    pub help: &'static str,
}

/// One that is given once.
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

/// One that is on or off, and off unless it is given.
pub(super) const fn switch(name: &'static str, help: &'static str) -> Setting {
    setting(name, "BOOL", Some("false"), help)
}
