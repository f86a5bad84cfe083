//! The failure of a command, as its owner tells it to the machine that asked.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::refusal::Refusal;
use crate::engine::{Error, FailureCause};
use crate::partition::Shortage;
use helenus_types::consistency::{Consistency, WriteKind};

/// A failure without the types of this program: its kind, its fields, its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// The definition of a table is not the one that the message names. The command is to be planned again.
    OtherDefinition,
    Refused(String),
    TableGone,
    PartitionFull {
        bytes_max: u64,
    },
    Unavailable {
        level: String,
        required: u32,
        alive: u32,
    },
    WriteTimeout {
        level: String,
        received: u32,
        required: u32,
        kind: String,
    },
    ReadTimeout {
        level: String,
        received: u32,
        required: u32,
        data_present: bool,
    },
    WriteFailure {
        level: String,
        kind: String,
        cause: u8,
    },
    ReadFailure {
        level: String,
        cause: u8,
    },
    TooManyTombstones {
        level: String,
    },
    Throttled {
        activity: u128,
        retry_after_micros: u64,
    },
    Fault(String),
}

/// Causes by their number in an answer. Their order is part of the format.
const CAUSES: [FailureCause; 14] = [
    FailureCause::Engine,
    FailureCause::Replica,
    FailureCause::Conflict,
    FailureCause::RequestTooLarge,
    FailureCause::Scaling,
    FailureCause::CatalogInDoubt,
    FailureCause::DiskFull,
    FailureCause::DiskReserve,
    FailureCause::WritesRefused,
    FailureCause::Reopening,
    FailureCause::LeaseOver,
    FailureCause::Bucket,
    FailureCause::Closed,
    FailureCause::Damaged,
];

fn number(cause: FailureCause) -> u8 {
    let place = CAUSES.iter().position(|known| *known == cause);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default()
}

fn cause(number: u8) -> FailureCause {
    let known = CAUSES.get(usize::from(number)).copied();
    known.unwrap_or(FailureCause::Engine)
}

fn level(name: &str) -> Consistency {
    let found = Consistency::ALL.into_iter().find(|level| level.name() == name);
    found.unwrap_or_default()
}

fn kind(name: &str) -> WriteKind {
    let found = WriteKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.unwrap_or(WriteKind::Simple)
}

impl Told {
    /// What the owner tells of a failure.
    pub(super) fn of(error: &Error) -> Self {
        let named = |level: &Consistency| level.name().to_owned();
        match error {
            Error::TableGone => Self::TableGone,
            Error::PartitionFull { bytes_max } => Self::PartitionFull { bytes_max: *bytes_max },
            Error::Unavailable(Shortage {
                consistency,
                required,
                alive,
            }) => Self::Unavailable {
                level: named(consistency),
                required: *required,
                alive: *alive,
            },
            Error::WriteTimeout {
                consistency,
                received,
                required,
                write_kind,
            } => Self::WriteTimeout {
                level: named(consistency),
                received: *received,
                required: *required,
                kind: write_kind.name().to_owned(),
            },
            Error::ReadTimeout {
                consistency,
                received,
                required,
                data_present,
            } => Self::ReadTimeout {
                level: named(consistency),
                received: *received,
                required: *required,
                data_present: *data_present,
            },
            Error::WriteFailure {
                consistency,
                write_kind,
                cause,
            } => Self::WriteFailure {
                level: named(consistency),
                kind: write_kind.name().to_owned(),
                cause: number(*cause),
            },
            Error::ReadFailure { consistency, cause } => Self::ReadFailure {
                level: named(consistency),
                cause: number(*cause),
            },
            Error::TooManyTombstones { consistency } => Self::TooManyTombstones {
                level: named(consistency),
            },
            Error::Throttled { activity, retry_after } => Self::Throttled {
                activity: activity.as_u128(),
                retry_after_micros: u64::try_from(retry_after.as_micros()).unwrap_or(u64::MAX),
            },
            Error::Refused(_)
            | Error::Denied(_)
            | Error::Partitions(_)
            | Error::NotModifiable { .. }
            | Error::TableNotModifiable { .. }
            | Error::FunctionFailure(_)
            | Error::GroupFailure { .. } => Self::Refused(error.to_string()),
            Error::NoRoom { .. }
            | Error::Opening(_)
            | Error::Storage(_)
            | Error::Damaged(_)
            | Error::Broken(_)
            | Error::Fault(_) => Self::Fault(error.to_string()),
            Error::Outdated => Self::OtherDefinition,
        }
    }

    /// The failure as this machine reports it.
    pub(super) fn error(self) -> Error {
        match self {
            Self::OtherDefinition => Error::Outdated,
            Self::Refused(text) => Refusal::Told(text).into(),
            Self::TableGone => Error::TableGone,
            Self::PartitionFull { bytes_max } => Error::PartitionFull { bytes_max },
            Self::Unavailable {
                level: name,
                required,
                alive,
            } => Error::Unavailable(Shortage {
                consistency: level(&name),
                required,
                alive,
            }),
            Self::WriteTimeout {
                level: name,
                received,
                required,
                kind: write_kind,
            } => Error::WriteTimeout {
                consistency: level(&name),
                received,
                required,
                write_kind: kind(&write_kind),
            },
            Self::ReadTimeout {
                level: name,
                received,
                required,
                data_present,
            } => Error::ReadTimeout {
                consistency: level(&name),
                received,
                required,
                data_present,
            },
            Self::WriteFailure {
                level: name,
                kind: write_kind,
                cause: number,
            } => Error::WriteFailure {
                consistency: level(&name),
                write_kind: kind(&write_kind),
                cause: cause(number),
            },
            Self::ReadFailure {
                level: name,
                cause: number,
            } => Error::ReadFailure {
                consistency: level(&name),
                cause: cause(number),
            },
            Self::TooManyTombstones { level: name } => Error::TooManyTombstones {
                consistency: level(&name),
            },
            Self::Throttled {
                activity,
                retry_after_micros,
            } => Error::Throttled {
                activity: uuid::Uuid::from_u128(activity),
                retry_after: Duration::from_micros(retry_after_micros),
            },
            Self::Fault(text) => Error::Fault(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_with_fields_come_back_as_they_were() {
        let consistency = Consistency::LocalQuorum;
        let write_kind = WriteKind::Counter;
        let errors = [
            Error::TableGone,
            Error::Outdated,
            Error::PartitionFull { bytes_max: 7 },
            Error::Unavailable(Shortage {
                consistency,
                required: 3,
                alive: 2,
            }),
            Error::WriteTimeout {
                consistency,
                received: 1,
                required: 2,
                write_kind,
            },
            Error::ReadTimeout {
                consistency,
                received: 1,
                required: 2,
                data_present: true,
            },
            Error::TooManyTombstones { consistency },
            Error::Throttled {
                activity: uuid::Uuid::from_u128(5),
                retry_after: Duration::from_millis(13),
            },
            Error::Fault("why".to_owned()),
        ];
        let causes = CAUSES.into_iter().flat_map(|cause| {
            let write = Error::WriteFailure {
                consistency,
                write_kind,
                cause,
            };
            [write, Error::ReadFailure { consistency, cause }]
        });
        for error in errors.into_iter().chain(causes) {
            let text = serde_json::to_string(&Told::of(&error)).unwrap();
            let told: Told = serde_json::from_str(&text).unwrap();
            assert_eq!(told.error(), error, "{text}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_words() {
        let refusal = Error::from(Refusal::NullElement);
        let told = Told::of(&refusal).error();
        assert!(matches!(told, Error::Refused(_)));
        assert_eq!(told.to_string(), refusal.to_string());
    }
}
