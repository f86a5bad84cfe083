//! The values of all settings as texts, with their origins.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::num::{IntErrorKind, ParseIntError};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::{FromStr, ParseBoolError};
use std::time::Duration;

use super::{SETTINGS, Setting, memory, nearest};
use helenus_base::permissions::SecretError;
use helenus_schema::profile::Profile;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Not set.
    Default,
    /// The profile's own default.
    Profile(Profile),
    /// A part of the setting `memory`.
    Memory,
    /// A verb's own default, such as that of `helenus dev`.
    Verb(&'static str),
    /// The configuration file.
    File(PathBuf),
    /// This variable.
    Environment(String),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Profile(profile) => write!(formatter, "profile {profile}"),
            Self::Memory => formatter.write_str("memory"),
            Self::Verb(verb) => write!(formatter, "helenus {verb}"),
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::CommandLine => formatter.write_str("command line"),
        }
    }
}

/// Errors in the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The configuration file is no TOML.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<toml::de::Error>,
    },
    /// The configuration file has a key that is no setting, or a value of the wrong kind.
    #[error("{}: {key}: {what}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The defect.
        what: String,
    },
    /// A value is invalid.
    #[error("{name} = {value:?} ({origin}): {what}")]
    Value {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// Its origin.
        origin: Origin,
        /// The defect.
        what: String,
    },
    /// Other users can read the password.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Settings that contradict each other.
    #[error("{0}")]
    Together(String),
}

/// In place of the addresses of a setting: it serves on none.
const NO_ADDRESS: &str = "none";

/// The default address of the profile `cosmos`: this machine's own, with Cosmos's port.
const COSMOS_LISTEN: &str = "127.0.0.1:10350";

/// The values of all settings as texts, with their origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    values: BTreeMap<&'static str, (Vec<String>, Origin)>,
}

/// The name of a setting's environment variable.
#[must_use]
pub fn variable(name: &str) -> String {
    format!("HELENUS_{}", name.replace('-', "_").to_uppercase())
}

impl Values {
    /// Gathers the values. `given` are those of the command line, by name; `environment` reads a variable.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has a key that is no setting; the setting `memory` is no size.
    pub fn gather(
        file: Option<&Path>,
        given: &BTreeMap<String, Vec<String>>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut in_file = file.map(read_file).transpose()?.unwrap_or_default();
        let mut values = BTreeMap::new();
        for setting in SETTINGS {
            let variable = variable(setting.name);
            let from_file = in_file.remove(setting.name);
            let value = if let Some(values) = given.get(setting.name) {
                (values.clone(), Origin::CommandLine)
            } else if let Some(value) = environment(&variable) {
                let parts = if setting.repeatable {
                    value.split(',').map(|part| part.trim().to_owned()).collect()
                } else {
                    vec![value]
                };
                (parts, Origin::Environment(variable))
            } else if let (Some(values), Some(path)) = (from_file, file) {
                (values, Origin::File(path.to_owned()))
            } else {
                let default = match setting.name {
                    "data" => Some(default_data(&environment, Profile::Cassandra)),
                    _ => setting.default.map(str::to_owned),
                };
                (default.into_iter().collect(), Origin::Default)
            };
            values.insert(setting.name, value);
        }
        let mut gathered = Self { values };
        gathered.follow_profile(&environment);
        gathered.follow_memory()?;
        Ok(gathered)
    }

    /// Fills settings without a value from the profile.
    fn follow_profile(&mut self, environment: impl Fn(&str) -> Option<String>) {
        let Some(profile) = self.text("profile").and_then(|name| name.parse::<Profile>().ok()) else {
            return;
        };
        if !profile.is_cosmos() {
            return;
        }
        let region: Vec<String> = self.all("region").to_vec();
        for (name, values) in [
            ("data", vec![default_data(environment, profile)]),
            ("listen", Vec::new()),
            ("tls-listen", vec![COSMOS_LISTEN.to_owned()]),
            ("cluster-name", vec!["CosmosProd".to_owned()]),
            ("data-center", region),
        ] {
            if let Some(value) = self.values.get_mut(name)
                && value.1 == Origin::Default
            {
                *value = (values, Origin::Profile(profile));
            }
        }
    }

    /// Gives settings without a value their parts of the setting `memory`.
    fn follow_memory(&mut self) -> Result<(), ConfigError> {
        let Some(bytes) = self.memory()? else { return Ok(()) };
        for (name, bytes) in memory::parts(bytes) {
            if let Some(value) = self.values.get_mut(name)
                && value.1 == Origin::Default
            {
                *value = (vec![bytes.to_string()], Origin::Memory);
            }
        }
        Ok(())
    }

    /// The setting `memory`, in bytes. `None` means it is not set.
    pub(super) fn memory(&self) -> Result<Option<u64>, ConfigError> {
        let amount = |text: &str| memory::amount(text).map_err(|error| self.wrong("memory", text, error));
        self.text("memory").map(amount).transpose()
    }

    /// Whether a setting has a value.
    #[must_use]
    pub fn is_set(&self, name: &'static str) -> bool {
        !self.all(name).is_empty()
    }

    /// The origin of a setting's value. `None` means there is no such setting.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.values.get(name).map(|(_, origin)| origin)
    }

    /// Removes a setting's value.
    pub fn forget(&mut self, name: &'static str) {
        self.values.insert(name, (Vec::new(), Origin::Default));
    }

    /// Sets a setting to a verb's own default, unless it was given a value. Of `listen` and `tls-listen`, those that
    /// the profile leaves out get no default.
    pub fn suggest(&mut self, verb: &'static str, name: &'static str, value: &str) {
        if let Some((values, origin)) = self.values.get_mut(name) {
            let is_left_out = matches!(origin, Origin::Profile(_)) && values.is_empty();
            if matches!(origin, Origin::Default | Origin::Profile(_)) && !is_left_out {
                *values = vec![value.to_owned()];
                *origin = Origin::Verb(verb);
            }
        }
    }

    /// Every setting with its values and their origin, in the order of [`SETTINGS`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &[String], &Origin)> {
        SETTINGS.iter().filter_map(|setting| {
            let (values, origin) = self.values.get(setting.name)?;
            Some((setting, values.as_slice(), origin))
        })
    }

    pub(super) fn all(&self, name: &str) -> &[String] {
        self.values
            .get(name)
            .map(|(values, _)| values.as_slice())
            .unwrap_or_default()
    }

    /// The last value of a setting, as text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    pub(super) fn wrong(&self, name: &'static str, value: &str, what: impl fmt::Display) -> ConfigError {
        ConfigError::Value {
            name,
            value: value.to_owned(),
            origin: self
                .values
                .get(name)
                .map_or(Origin::Default, |(_, origin)| origin.clone()),
            what: what.to_string(),
        }
    }

    pub(super) fn parsed<T: FromStr<Err: fmt::Display + 'static>>(&self, name: &'static str) -> Result<T, ConfigError> {
        let text = self.text(name).unwrap_or_default();
        text.parse().map_err(|error| self.wrong(name, text, expected(&error)))
    }

    /// A whole number within bounds.
    pub(super) fn within<T>(&self, name: &'static str, bounds: RangeInclusive<T>) -> Result<T, ConfigError>
    where
        T: FromStr<Err: fmt::Display + 'static> + PartialOrd + fmt::Display,
    {
        let number: T = self.parsed(name)?;
        if bounds.contains(&number) {
            return Ok(number);
        }
        let expected = format!("expected a number from {} to {}", bounds.start(), bounds.end());
        Err(self.wrong(name, &number.to_string(), expected))
    }

    /// A whole number of 1 or more.
    pub(super) fn above_zero<T>(&self, name: &'static str) -> Result<T, ConfigError>
    where
        T: FromStr<Err: fmt::Display + 'static> + PartialEq + Default,
    {
        let number: T = self.parsed(name)?;
        if number == T::default() {
            return Err(self.wrong(name, "0", "expected a number of 1 or more"));
        }
        Ok(number)
    }

    /// A name, which must not be empty.
    pub(super) fn name(&self, name: &'static str) -> Result<String, ConfigError> {
        match self.text(name) {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            text => Err(self.wrong(name, text.unwrap_or_default(), "expected a name, not an empty text")),
        }
    }

    pub(super) fn optional<T: FromStr<Err: fmt::Display + 'static>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, ConfigError> {
        self.text(name).is_some().then(|| self.parsed(name)).transpose()
    }

    /// [`Values::within`] of a setting that may be missing.
    pub(super) fn optional_within<T>(
        &self,
        name: &'static str,
        bounds: RangeInclusive<T>,
    ) -> Result<Option<T>, ConfigError>
    where
        T: FromStr<Err: fmt::Display + 'static> + PartialOrd + fmt::Display,
    {
        self.text(name).is_some().then(|| self.within(name, bounds)).transpose()
    }

    pub(super) fn seconds(&self, name: &'static str) -> Result<Duration, ConfigError> {
        self.parsed(name).map(Duration::from_secs)
    }

    /// The address of the admin port. `None` means it is off.
    ///
    /// # Errors
    /// The setting is not an address.
    pub fn admin_listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        Ok(self.addresses("admin-listen")?.into_iter().next_back())
    }

    /// The addresses of a setting.
    ///
    /// # Errors
    /// A value is not an address.
    pub fn addresses(&self, name: &'static str) -> Result<Vec<SocketAddr>, ConfigError> {
        let mut addresses = Vec::new();
        let given = self.all(name);
        if given == [NO_ADDRESS] {
            return Ok(addresses);
        }
        for text in given {
            if let Some(address) = of_localhost(text) {
                addresses.push(address);
                continue;
            }
            let found = text
                .to_socket_addrs()
                .map_err(|error| self.wrong(name, text, not_an_address(text, &error)))?;
            let first = found.into_iter().next();
            addresses.push(first.ok_or_else(|| self.wrong(name, text, "no address has this name"))?);
        }
        Ok(addresses)
    }
}

/// The expected form of a value, if the parser's message does not name it.
fn expected(error: &(impl fmt::Display + 'static)) -> String {
    let error_of: &dyn std::any::Any = error;
    match error_of.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "the number is too large".to_owned(),
        Some(_) => "expected a whole number, 0 or more".to_owned(),
        None if error_of.is::<ParseBoolError>() => "expected true or false".to_owned(),
        None => error.to_string(),
    }
}

/// The address of `localhost:PORT`: always 127.0.0.1 (RFC 6761 §6.3), without the system's resolver. A statically
/// linked program cannot resolve it in an image without /etc/hosts.
fn of_localhost(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let is_localhost = host.eq_ignore_ascii_case("localhost");
    is_localhost.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Why a text is not an address to listen on, and what one looks like.
fn not_an_address(text: &str, error: &std::io::Error) -> String {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => format!("cannot find the address of this name: {error}"),
        Some(Err(_)) | None => {
            "expected ADDRESS:PORT with a port from 0 to 65535, such as 127.0.0.1:9042 or [::1]:9042".to_owned()
        }
    }
}

fn read_file(path: &Path) -> Result<BTreeMap<String, Vec<String>>, ConfigError> {
    let text = read(path)?;
    let table: toml::Table = text.parse().map_err(|source| ConfigError::Toml {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let mut values = BTreeMap::new();
    for (key, value) in table {
        let wrong = |what: &str| ConfigError::Key {
            path: path.to_owned(),
            key: key.clone(),
            what: what.to_owned(),
        };
        let name = key.replace('_', "-");
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .ok_or_else(|| wrong(&unknown(&name)))?;
        let scalar = |value: toml::Value| match value {
            toml::Value::String(text) => Ok(text),
            toml::Value::Integer(number) => Ok(number.to_string()),
            toml::Value::Float(number) => Ok(number.to_string()),
            toml::Value::Boolean(yes) => Ok(yes.to_string()),
            _ => Err(wrong("the value must be a text, a number or a boolean")),
        };
        let list = match value {
            toml::Value::Array(list) if setting.repeatable => list.into_iter().map(scalar).collect::<Result<_, _>>()?,
            toml::Value::Array(_) => return Err(wrong("there can be only one value")),
            value => vec![scalar(value)?],
        };
        values.insert(name, list);
    }
    Ok(values)
}

/// What to say of a name that is no setting.
fn unknown(name: &str) -> String {
    match nearest(name, SETTINGS.iter().map(|setting| setting.name)) {
        Some(meant) => format!("there is no such setting; did you mean {meant}?"),
        None => "there is no such setting; `helenus settings` lists all settings".to_owned(),
    }
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

/// `file:` in the user's data directory, according to the XDG base directories; in the working directory if there is no
/// home. Each profile has its own.
fn default_data(environment: impl Fn(&str) -> Option<String>, profile: Profile) -> String {
    let absolute = |name| environment(name).filter(|path| Path::new(path).is_absolute());
    let home = absolute("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| absolute("HOME").map(|home| Path::new(&home).join(".local/share")));
    let directory = home.unwrap_or_default().join(match profile {
        Profile::Cassandra => "helenus",
        Profile::Cosmos => "helenus-cosmos",
    });
    format!("file:{}", directory.display())
}
