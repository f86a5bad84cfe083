//! Which store a file belongs to, and the format of all of them.
//!
//! ```text
//! DIR/helenus.format     helenus store 5, fjall 3 ⏎ identity 0123456789abcdef/0 ⏎ profile cosmos ⏎
//! PREFIX/fleet/id        helenus store 5, slatedb 0.18 ⏎ identity 0123456789abcdef/0 ⏎ log shared ⏎ profile cosmos ⏎
//! in records             database u64 · store u32                                        big-endian
//! ```
//! A database draws its number once, when its first file is written. Its stores are numbered and no number is used
//! twice. Each file that a start takes for a part of the store names both, or has a checksum that depends on them. So a
//! file of another store, or of another database, is refused by name.
//!
//! **The format number** is one for all engines. A program reads its own number only: data of another number is refused
//! before anything is written. It is raised with each change of what lies in files, and no reader of an older one is kept
//! before version 0.1.0.
//!
//! **The profile** is recorded in the main store only: its rules decide who may log in and how times to live are stored.
//! A start with another profile is refused, unless it is allowed to change the record ([`AskedProfile`]).

use std::fmt;
use std::str::FromStr;

/// The first line of a format file, for an engine. The number in it is the format number.
macro_rules! format_line {
    ($engine:literal) => {
        concat!("helenus store 5, ", $engine)
    };
}

/// The first words of every version's format.
pub(super) const FORMAT_BEGINS: &str = "helenus store ";
/// The format of a directory of the `file:` engine.
pub(super) const FJALL: &str = format_line!("fjall 3");
/// The format of a directory or bucket of SlateDB.
pub(super) const SLATE: &str = format_line!("slatedb 0.18");

/// Advice for data of another format number.
pub(super) const OTHER_NUMBER: &str = "; nothing was changed: start the program that wrote it, or export its tables with that program and import them \
     with this one";

/// Bytes of an identity in a record.
pub(super) const IDENTITY_BYTES: usize = 12;

/// The number of the main store.
pub(super) const MAIN: u32 = 0;

const LINE: &str = "identity ";
const PROFILE_LINE: &str = "profile ";

/// The profile with which a database is opened. Only its name has a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedProfile {
    /// Its name.
    pub name: &'static str,
    /// Whether it replaces another recorded one.
    pub is_change_allowed: bool,
}

impl AskedProfile {
    /// Whether the profile has to be recorded; the recorded one is refused if it is another.
    pub(super) fn is_to_record(self, recorded: Option<&str>) -> Result<bool, OtherProfile> {
        match recorded {
            Some(recorded) if recorded == self.name => Ok(false),
            Some(recorded) if !self.is_change_allowed => Err(OtherProfile {
                recorded: recorded.to_owned(),
                asked: self.name,
            }),
            Some(_) | None => Ok(true),
        }
    }

    /// The line that names it in a format file.
    pub(super) fn line(self) -> String {
        format!("{PROFILE_LINE}{}", self.name)
    }
}

/// The profile that such a line names. `None` means that it is none.
pub(super) fn profile_of_line(line: &str) -> Option<&str> {
    let name = line.strip_prefix(PROFILE_LINE)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    is_name.then_some(name)
}

/// The data was written with another profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the data was written with the profile {recorded}, and this is the profile {asked}: give --profile {recorded}, or other data; \
     --profile {asked} --change-profile opens it by the rules of {asked} from now on"
)]
pub struct OtherProfile {
    /// The profile that is recorded.
    recorded: String,
    /// The profile that was asked for.
    asked: &'static str,
}

/// Names a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// The database's number, drawn when it was made.
    pub(super) database: u64,
    /// The store's number in it; 0 is the main one.
    pub(super) store: u32,
}

impl Identity {
    /// Another store of the same database.
    pub(super) const fn beside(self, store: u32) -> Self {
        Self { store, ..self }
    }

    pub(super) fn to_bytes(self) -> [u8; IDENTITY_BYTES] {
        let mut bytes = [0; IDENTITY_BYTES];
        let (database, store) = bytes.split_at_mut(8);
        database.copy_from_slice(&self.database.to_be_bytes());
        store.copy_from_slice(&self.store.to_be_bytes());
        bytes
    }

    /// Takes an identity from the front of a record.
    pub(super) fn take(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (database, rest) = bytes.split_first_chunk::<8>()?;
        let (store, rest) = rest.split_first_chunk::<4>()?;
        let identity = Self {
            database: u64::from_be_bytes(*database),
            store: u32::from_be_bytes(*store),
        };
        Some((identity, rest))
    }

    /// The line that names it in a format file.
    pub(super) fn line(self) -> String {
        let Self { database, store } = self;
        format!("{LINE}{database:016x}/{store}")
    }

    /// Reads such a line. `None` means that it is none.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let (database, store) = line.strip_prefix(LINE)?.split_once('/')?;
        let is_number = database.len() == 16;
        Some(Self {
            database: is_number.then(|| u64::from_str_radix(database, 16).ok())??,
            store: u32::from_str(store).ok()?,
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.store {
            MAIN => write!(out, "the main store of database {:016x}", self.database),
            number => write!(out, "store {number} of database {:016x}", self.database),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written() {
        let identity = Identity {
            database: 0x0123_4567_89ab_cdef,
            store: 7,
        };
        assert_eq!(identity.line(), "identity 0123456789abcdef/7");
        assert_eq!(Identity::of_line(&identity.line()), Some(identity));
        let bytes = [&identity.to_bytes()[..], b"rest"].concat();
        assert_eq!(Identity::take(&bytes), Some((identity, &b"rest"[..])));
        assert_eq!(
            identity.beside(MAIN).to_string(),
            "the main store of database 0123456789abcdef"
        );
        for line in [
            "",
            "identity ",
            "identity 1/2",
            "identity 0123456789abcdef",
            "0123456789abcdef/7",
        ] {
            assert_eq!(Identity::of_line(line), None, "{line}");
        }
        for line in ["profile ", "profile Cosmos", "cosmos"] {
            assert_eq!(profile_of_line(line), None, "{line}");
        }
        assert!(FJALL.starts_with(FORMAT_BEGINS) && SLATE.starts_with(FORMAT_BEGINS));
    }
}
