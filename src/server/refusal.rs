//! The only place where an error of the database becomes an error of the protocol.

use std::net::{IpAddr, Ipv4Addr};

use crate::engine::Error;
use crate::metrics;
use crate::wire::response::{ErrorBody, ErrorCode, ErrorDetail, FailureReason};

fn count(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The one replica that has failed: ours, whatever its address is to the client.
fn failed_here() -> Vec<(IpAddr, FailureReason)> {
    vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), FailureReason::Unknown)]
}

/// What the client is told.
#[deny(clippy::wildcard_enum_match_arm)]
pub(super) fn refusal(error: &Error) -> ErrorBody {
    let text = error.to_string();
    match error {
        Error::Syntax(_) => ErrorBody::new(ErrorCode::Syntax, text),
        Error::Invalid(_) | Error::NeedsFiltering | Error::Partitions(_) | Error::TableGone => {
            ErrorBody::new(ErrorCode::Invalid, text)
        }
        Error::Config(_) => ErrorBody::new(ErrorCode::Config, text),
        Error::Unauthorized(_) | Error::NotModifiable { .. } => ErrorBody::new(ErrorCode::Unauthorized, text),
        Error::Protocol(_) => ErrorBody::new(ErrorCode::Protocol, text),
        Error::Throttled { .. } | Error::MemoryInUse | Error::NoRoom { .. } | Error::TooSoon(_) => {
            ErrorBody::new(ErrorCode::Overloaded, text)
        }
        Error::NotOffered(_) => ErrorBody::new(ErrorCode::Server, text),
        Error::Damaged(_) | Error::Broken(_) | Error::Server(_) => {
            metrics::SERVER_ERRORS.increment();
            tracing::error!(error = %text, "a request failed by our own fault");
            ErrorBody::new(ErrorCode::Server, text)
        }
        Error::AlreadyExists { keyspace, table, .. } => ErrorBody::detailed(
            text,
            ErrorDetail::AlreadyExists {
                keyspace: keyspace.clone(),
                table: table.clone(),
            },
        ),
        Error::Unavailable(shortage) => ErrorBody::detailed(
            text,
            ErrorDetail::Unavailable {
                consistency: shortage.consistency,
                required: count(shortage.required),
                alive: count(shortage.alive),
            },
        ),
        Error::WriteTimeout {
            consistency,
            received,
            required,
            write_kind,
        } => ErrorBody::detailed(
            text,
            ErrorDetail::WriteTimeout {
                consistency: *consistency,
                received: count(*received),
                block_for: count(*required),
                write_kind: *write_kind,
                contentions: 0,
            },
        ),
        Error::ReadTimeout {
            consistency,
            received,
            required,
            data_present,
        } => ErrorBody::detailed(
            text,
            ErrorDetail::ReadTimeout {
                consistency: *consistency,
                received: count(*received),
                block_for: count(*required),
                data_present: *data_present,
            },
        ),
        // Requests convert it; one that did not is at fault itself, and its text, which names directories, is for the log.
        Error::Storage(failure) => {
            metrics::SERVER_ERRORS.increment();
            tracing::error!(error = %failure, "a request did not say how a store failed it");
            ErrorBody::new(ErrorCode::Server, "a store failed; see the server's log".to_owned())
        }
        Error::WriteFailure {
            consistency,
            write_kind,
            ..
        } => ErrorBody::detailed(
            text,
            ErrorDetail::WriteFailure {
                consistency: *consistency,
                received: 0,
                block_for: 1,
                failures: failed_here(),
                write_kind: *write_kind,
            },
        ),
        Error::ReadFailure { consistency, .. } => ErrorBody::detailed(
            text,
            ErrorDetail::ReadFailure {
                consistency: *consistency,
                received: 0,
                block_for: 1,
                failures: failed_here(),
                data_present: false,
            },
        ),
        Error::TooManyTombstones { consistency } => ErrorBody::detailed(
            text,
            ErrorDetail::ReadFailure {
                consistency: *consistency,
                received: 0,
                block_for: 1,
                failures: vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), FailureReason::ReadTooManyTombstones)],
                data_present: false,
            },
        ),
        Error::FunctionFailure {
            keyspace,
            name,
            arguments,
            ..
        } => ErrorBody::detailed(
            text,
            ErrorDetail::FunctionFailure {
                keyspace: keyspace.clone(),
                function: name.clone(),
                argument_types: arguments.clone(),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_the_cause() {
        let exists = Error::AlreadyExists {
            keyspace: "k".into(),
            table: "t".into(),
            message: "m".into(),
        };
        assert_eq!(refusal(&exists).code(), ErrorCode::AlreadyExists);
        assert_eq!(refusal(&Error::Invalid("no".into())).message(), "no");
    }
}
