//! Classifies failures of the medium, and passes them to the committer and readers through SlateDB, which keeps only a
//! chain of causes.
//!
//! | the system's error | meaning |
//! |---|---|
//! | EIO, EROFS, ENXIO, ENODEV, EUCLEAN, ESTALE | *lost*: data in the medium's memory may be gone. The server ends |
//! | ENOSPC, EDQUOT | *full*: it takes writes again when there is room |
//! | EINTR, EAGAIN, EBUSY, ETIMEDOUT, ENOMEM, EMFILE, ENFILE | transient: SlateDB retries, a few times |
//! | anything else | permanent: nothing is retried |

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use slatedb::object_store;
use slatedb::{CloseReason, ErrorKind};
use slatedb_common::retry::NonRetryable;

use crate::storage::Error;

/// EIO, ENXIO, ENODEV, EROFS, ESTALE, EUCLEAN, as Linux numbers them.
const LOST: [i32; 6] = [5, 6, 19, 30, 116, 117];

/// ENFILE, EMFILE.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// The class of a failure of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Lost,
    Full,
    Passing,
    Other,
}

impl Meaning {
    pub(super) fn of(error: &io::Error) -> Self {
        match (error.raw_os_error(), error.kind()) {
            (Some(code), _) if LOST.contains(&code) => Self::Lost,
            (Some(code), _) if TOO_MANY_FILES.contains(&code) => Self::Passing,
            (_, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Self::Full,
            (
                _,
                io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::ResourceBusy
                | io::ErrorKind::TimedOut
                | io::ErrorKind::OutOfMemory,
            ) => Self::Passing,
            _ => Self::Other,
        }
    }
}

/// A failure with the object that it concerns, in a chain of causes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct AtObject(Error);

/// An error of ours in the form that SlateDB passes on. With `may_pass` SlateDB retries.
pub(super) fn carried(error: Error, may_pass: bool) -> object_store::Error {
    let error = Box::new(AtObject(error));
    let source: Box<dyn StdError + Send + Sync> = if may_pass { error } else { Box::new(NonRetryable(error)) };
    object_store::Error::Generic {
        store: "directory",
        source,
    }
}

/// The system's error inside an error of an object store. It is a new error with the same number, as it cannot be
/// copied.
pub(super) fn system_error(error: &object_store::Error) -> Option<io::Error> {
    let found: &io::Error = causes(error).find_map(|cause| cause.downcast_ref())?;
    Some(match found.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(found.kind(), found.to_string()),
    })
}

/// An error and its causes, the outermost first.
fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn StdError + 'static) = *error;
        match error.downcast_ref::<io::Error>() {
            // Its own `source` skips the wrapped error.
            Some(system) => system.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

/// SlateDB's text for the first manifest or such of a database that exists already (0.18.0, `error.rs`): another writer's,
/// or its own, whose answer was lost.
const MET: &str = "(e.g. manifest) version already exists";

/// Classifies an error of SlateDB.
pub(super) fn failure(location: &str, error: &slatedb::Error) -> Error {
    if let Some(AtObject(cause)) = causes(error).find_map(|cause| cause.downcast_ref()) {
        return cause.clone();
    }
    let is_met = || error.kind() == ErrorKind::Data && with_causes(error).contains(MET);
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => Error::TakenOver {
            location: location.to_owned(),
        },
        _ if is_met() => Error::TakenOver {
            location: location.to_owned(),
        },
        ErrorKind::Data => Error::Corrupt {
            path: PathBuf::from(location),
            what: with_causes(error),
        },
        _ => Error::Engine {
            location: location.to_owned(),
            what: with_causes(error),
        },
    }
}

/// Classifies an error of an object store.
pub(super) fn failure_of_store(location: &str, error: object_store::Error) -> Error {
    failure(
        location,
        &slatedb::Error::unavailable("object store error".to_owned()).with_source(Box::new(error)),
    )
}

/// The text of an error with its causes: SlateDB's own text names no object.
fn with_causes(error: &slatedb::Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let named = cause.to_string();
        if !text.contains(&named) {
            text = format!("{text}: {named}");
        }
    }
    text
}

/// An error of the system at an object.
pub(super) fn at_object(operation: &'static str, path: PathBuf, source: io::Error) -> Error {
    Error::Io {
        operation,
        path,
        source: Arc::new(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(code: i32) -> object_store::Error {
        object_store::Error::Generic {
            store: "disk",
            source: Box::new(io::Error::from_raw_os_error(code)),
        }
    }

    #[test]
    fn an_error_names_the_object_and_what_the_system_said() {
        let source = system_error(&system(5)).unwrap();
        let error = carried(at_object("writing", "/x/wal/1.sst".into(), source), false);
        assert!(NonRetryable::find(&error).is_some());
        // The form in which a writer of many parts returns it.
        let wrapped = slatedb::Error::unavailable("io error".to_owned()).with_source(Box::new(io::Error::other(error)));
        let told = failure("slate+file:/x", &wrapped);
        assert_eq!(
            told.to_string(),
            "writing /x/wal/1.sst: Input/output error (os error 5)"
        );
    }

    #[test]
    fn an_error_of_slatedbs_own_is_told_with_its_causes() {
        let error = slatedb::Error::unavailable("wal unavailable".to_owned()).with_source(Box::new(system(24)));
        let told = failure("slate+file:/x", &error).to_string();
        assert!(
            told.contains("wal unavailable") && told.contains("os error 24"),
            "{told}"
        );
        let fenced = slatedb::Error::closed("detected newer DB client".to_owned(), CloseReason::Fenced);
        assert!(matches!(failure("x", &fenced), Error::TakenOver { .. }));
        let met = "transactional object (e.g. manifest) version already exists";
        let met = slatedb::Error::data(met.to_owned());
        assert!(matches!(failure("x", &met), Error::TakenOver { .. }));
        let damaged = slatedb::Error::data("checksum mismatch".to_owned());
        assert!(matches!(failure("x", &damaged), Error::Corrupt { .. }));
    }

    #[test]
    fn errors_of_the_system_have_a_meaning() {
        for (code, meaning) in [
            (5, Meaning::Lost),
            (30, Meaning::Lost),
            (117, Meaning::Lost),
            (28, Meaning::Full),
            (122, Meaning::Full),
            (24, Meaning::Passing),
            (4, Meaning::Passing),
            (13, Meaning::Other),
        ] {
            assert_eq!(Meaning::of(&io::Error::from_raw_os_error(code)), meaning, "{code}");
        }
    }
}
