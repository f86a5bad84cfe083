//! The only place where an error of the database becomes an error of the protocol.

use std::net::{IpAddr, Ipv4Addr};

use helenus_base::metrics;
use helenus_cql::cql::{Error, InReplica};
use helenus_engine::engine;
use helenus_schema::planner::{self, ddl};
use helenus_types::consistency::Consistency;
use helenus_types::functions;
use helenus_types::wire::response::{ErrorBody, ErrorDetail, FailureReason};

fn count(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The one replica that failed is this server, at whatever address the client uses.
fn failed_here() -> Vec<(IpAddr, FailureReason)> {
    vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), FailureReason::Unknown)]
}

/// The protocol error of an error.
pub(super) fn refusal(error: &Error) -> ErrorBody {
    if error.is_fault() {
        metrics::SERVER_ERRORS.increment();
        tracing::error!(error = %error, "a request failed by our own fault");
    }
    if let Error::Engine(engine::Error::Storage(_)) = error {
        // Requests convert such an error before this. If one was not converted, that is a bug, and its text, which
        // names directories, is for the log only.
        return ErrorBody::new(error.code(), "a store failed; see the server's log".to_owned());
    }
    let (error, _) = error.parts();
    let text = error.to_string();
    match detail(error) {
        Some(detail) => ErrorBody::detailed(text, detail),
        None => ErrorBody::new(error.code(), text),
    }
}

/// The fields of the error in addition to code and text; their kind follows from the code.
fn detail(error: &Error) -> Option<ErrorDetail> {
    match error {
        Error::Schema(error) => match error.code() {
            ddl::Code::AlreadyExists { keyspace, table } => Some(ErrorDetail::AlreadyExists {
                keyspace: keyspace.to_owned(),
                table: table.to_owned(),
            }),
            _ => None,
        },
        Error::Plan(error) => match &**error {
            planner::Error::Function(failed) => Some(function_failure(failed)),
            _ => None,
        },
        Error::Engine(error) => of_engine(error),
        Error::InReplica(refused) => Some(in_replica(refused)),
        Error::Syntax(_) | Error::Profile(_) | Error::Role(_) | Error::Request(_) | Error::Warned(_) => None,
        Error::ForOwner => Some(ErrorDetail::Unavailable {
            consistency: Consistency::One,
            required: 1,
            alive: 0,
        }),
    }
}

fn in_replica(refused: &InReplica) -> ErrorDetail {
    let consistency = refused.consistency;
    match refused.write_kind {
        Some(write_kind) => ErrorDetail::WriteFailure {
            consistency,
            received: 0,
            block_for: 1,
            failures: failed_here(),
            write_kind,
        },
        None => ErrorDetail::ReadFailure {
            consistency,
            received: 0,
            block_for: 1,
            failures: failed_here(),
            data_present: false,
        },
    }
}

fn function_failure(failed: &functions::Failed) -> ErrorDetail {
    ErrorDetail::FunctionFailure {
        keyspace: failed.keyspace.clone(),
        function: failed.name.clone(),
        argument_types: failed.arguments.clone(),
    }
}

#[deny(clippy::wildcard_enum_match_arm)]
#[expect(clippy::too_many_lines, reason = "one arm for each error, without a wildcard")]
fn of_engine(error: &engine::Error) -> Option<ErrorDetail> {
    use engine::Error;
    Some(match error {
        Error::Refused(_)
        | Error::Denied(_)
        | Error::Partitions(_)
        | Error::TableGone
        | Error::NotModifiable { .. }
        | Error::TableNotModifiable { .. }
        | Error::PartitionFull { .. }
        | Error::Throttled { .. }
        | Error::NoRoom { .. }
        | Error::Outdated
        | Error::Opening(_)
        | Error::Storage(_)
        | Error::Damaged(_)
        | Error::Broken(_)
        | Error::Fault(_) => return None,
        Error::Unavailable(shortage) => ErrorDetail::Unavailable {
            consistency: shortage.consistency,
            required: count(shortage.required),
            alive: count(shortage.alive),
        },
        Error::WriteTimeout {
            consistency,
            received,
            required,
            write_kind,
        } => ErrorDetail::WriteTimeout {
            consistency: *consistency,
            received: count(*received),
            block_for: count(*required),
            write_kind: *write_kind,
            contentions: 0,
        },
        Error::ReadTimeout {
            consistency,
            received,
            required,
            data_present,
        } => ErrorDetail::ReadTimeout {
            consistency: *consistency,
            received: count(*received),
            block_for: count(*required),
            data_present: *data_present,
        },
        Error::WriteFailure {
            consistency,
            write_kind,
            ..
        } => ErrorDetail::WriteFailure {
            consistency: *consistency,
            received: 0,
            block_for: 1,
            failures: failed_here(),
            write_kind: *write_kind,
        },
        Error::ReadFailure { consistency, .. } => ErrorDetail::ReadFailure {
            consistency: *consistency,
            received: 0,
            block_for: 1,
            failures: failed_here(),
            data_present: false,
        },
        Error::GroupFailure { consistency, .. } => ErrorDetail::ReadFailure {
            consistency: *consistency,
            received: 0,
            block_for: 1,
            failures: failed_here(),
            data_present: false,
        },
        Error::TooManyTombstones { consistency } => ErrorDetail::ReadFailure {
            consistency: *consistency,
            received: 0,
            block_for: 1,
            failures: vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), FailureReason::ReadTooManyTombstones)],
            data_present: false,
        },
        Error::FunctionFailure(failed) => function_failure(failed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_cql::cql::RequestRefusal;
    use helenus_engine::engine::FailureCause;
    use helenus_types::consistency::{Consistency, WriteKind};
    use helenus_types::wire::response::ErrorCode;

    #[test]
    fn codes_follow_the_cause() {
        let exists = Error::from(ddl::DdlError::AlreadyExists {
            keyspace: "k".into(),
            table: "t".into(),
        });
        assert_eq!(refusal(&exists).code(), ErrorCode::AlreadyExists);
        let missing = Error::from(RequestRefusal::NoKeyspace("k".to_owned()));
        assert_eq!(refusal(&missing).code(), ErrorCode::Invalid);
        assert_eq!(refusal(&missing).message(), "Keyspace 'k' does not exist");
    }

    #[test]
    fn a_detail_is_of_the_kind_of_its_code() {
        let level = Consistency::Quorum;
        let failed = functions::Failed {
            keyspace: functions::KEYSPACE.to_owned(),
            name: "f".to_owned(),
            arguments: Vec::new(),
            why: functions::Failure::Overflow,
        };
        let errors = [
            engine::Error::WriteTimeout {
                consistency: level,
                received: 1,
                required: 3,
                write_kind: WriteKind::Simple,
            },
            engine::Error::ReadTimeout {
                consistency: level,
                received: 1,
                required: 3,
                data_present: false,
            },
            engine::Error::WriteFailure {
                consistency: level,
                write_kind: WriteKind::Simple,
                cause: FailureCause::Replica,
            },
            engine::Error::ReadFailure {
                consistency: level,
                cause: FailureCause::Replica,
            },
            engine::Error::TooManyTombstones { consistency: level },
            engine::Error::GroupFailure {
                consistency: level,
                reason: Box::new(engine::Error::FunctionFailure(Box::new(failed.clone()))),
            },
            engine::Error::FunctionFailure(Box::new(failed.clone())),
            engine::Error::Fault("no".to_owned()),
        ];
        let errors = errors.into_iter().map(Error::from);
        let of_planner = Error::from(planner::Error::Function(Box::new(failed)));
        for error in errors.chain([of_planner]) {
            assert_eq!(refusal(&error).code(), error.code(), "{error}");
        }
    }
}
