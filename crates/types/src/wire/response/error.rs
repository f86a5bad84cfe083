//! ERROR: all codes, and the layout of the body in each version (native_protocol_v5.spec §9).

use std::net::IpAddr;

use super::super::value::Consistency;
use super::super::{Version, write};
use crate::consistency::WriteKind;

/// The error codes. The only place where they are written as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum ErrorCode {
    Server = 0x0000,
    Protocol = 0x000A,
    BadCredentials = 0x0100,
    Unavailable = 0x1000,
    Overloaded = 0x1001,
    IsBootstrapping = 0x1002,
    Truncate = 0x1003,
    WriteTimeout = 0x1100,
    ReadTimeout = 0x1200,
    ReadFailure = 0x1300,
    FunctionFailure = 0x1400,
    WriteFailure = 0x1500,
    CdcWriteFailure = 0x1600,
    CasWriteUnknown = 0x1700,
    Syntax = 0x2000,
    Unauthorized = 0x2100,
    Invalid = 0x2200,
    Config = 0x2300,
    AlreadyExists = 0x2400,
    Unprepared = 0x2500,
}

impl ErrorCode {
    /// Every code, by number. [`ErrorCode::meaning`] has no wildcard, so a new code is missed there first.
    pub const ALL: [Self; 20] = [
        Self::Server,
        Self::Protocol,
        Self::BadCredentials,
        Self::Unavailable,
        Self::Overloaded,
        Self::IsBootstrapping,
        Self::Truncate,
        Self::WriteTimeout,
        Self::ReadTimeout,
        Self::ReadFailure,
        Self::FunctionFailure,
        Self::WriteFailure,
        Self::CdcWriteFailure,
        Self::CasWriteUnknown,
        Self::Syntax,
        Self::Unauthorized,
        Self::Invalid,
        Self::Config,
        Self::AlreadyExists,
        Self::Unprepared,
    ];

    /// The cause of the error, for the book.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Server => "the server failed; with the profile `cosmos` also a refused logged batch",
            Self::Protocol => "the frame or the message is not what the protocol allows",
            Self::BadCredentials => "the login is wrong",
            Self::Unavailable => "fewer replicas are up than the consistency level requires; nothing was carried out",
            Self::Overloaded => "a budget of request units or of memory is used up; the text may say when to retry",
            Self::IsBootstrapping => "never sent",
            Self::Truncate => "a TRUNCATE failed",
            Self::WriteTimeout => "too few replicas answered a write in time; it may be carried out",
            Self::ReadTimeout => "too few replicas answered a read in time",
            Self::ReadFailure => "a replica failed a read, or a guardrail ended it",
            Self::FunctionFailure => "a function failed on its arguments",
            Self::WriteFailure => "a replica failed a write, such as on a full disk",
            Self::CdcWriteFailure => "never sent",
            Self::CasWriteUnknown => "a conditional write has an unknown outcome",
            Self::Syntax => "the statement is no CQL",
            Self::Unauthorized => "the role lacks a permission",
            Self::Invalid => "the statement is CQL and cannot be carried out",
            Self::Config => "an option of a keyspace or a table is refused",
            Self::AlreadyExists => "the keyspace or the table exists",
            Self::Unprepared => "the prepared statement is not known; drivers prepare it again",
        }
    }
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The code to send in this version: an older code if the version does not have this one.
    const fn in_version(self, version: Version) -> Self {
        match (self, version) {
            (Self::ReadFailure, Version::V3) => Self::ReadTimeout,
            (Self::WriteFailure, Version::V3) => Self::WriteTimeout,
            (Self::FunctionFailure, Version::V3) => Self::Invalid,
            (Self::CasWriteUnknown, Version::V3 | Version::V4) => Self::WriteTimeout,
            _ => self,
        }
    }
}

/// Why a replica failed, with its code in version 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Cassandra's (RequestFailureReason)")]
#[repr(u16)]
pub enum FailureReason {
    Unknown = 0,
    ReadTooManyTombstones = 1,
    Timeout = 2,
    IncompatibleSchema = 3,
    ReadSize = 4,
    NodeDown = 5,
    IndexNotAvailable = 6,
    ReadTooManyIndexes = 7,
}

/// The fields of an error in addition to its message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the protocol's own, native_protocol_v5.spec §9"
)]
pub enum ErrorDetail {
    /// No fields.
    None,
    Unavailable {
        consistency: Consistency,
        required: i32,
        alive: i32,
    },
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_kind: WriteKind,
        /// Version 5, write type CAS.
        contentions: u16,
    },
    ReadTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<(IpAddr, FailureReason)>,
        data_present: bool,
    },
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<(IpAddr, FailureReason)>,
        write_kind: WriteKind,
    },
    CasWriteUnknown {
        consistency: Consistency,
        received: i32,
        block_for: i32,
    },
    FunctionFailure {
        keyspace: String,
        function: String,
        argument_types: Vec<String>,
    },
    AlreadyExists {
        keyspace: String,
        /// Empty for a keyspace.
        table: String,
    },
    Unprepared {
        id: Vec<u8>,
    },
}

/// An error as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorBody {
    code: ErrorCode,
    message: String,
    detail: ErrorDetail,
}

impl ErrorBody {
    /// An error whose code has no fields in addition to the message.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: ErrorDetail::None,
        }
    }

    /// An error whose code follows from its fields.
    #[must_use]
    pub fn detailed(message: impl Into<String>, detail: ErrorDetail) -> Self {
        let code = match &detail {
            ErrorDetail::None => ErrorCode::Server,
            ErrorDetail::Unavailable { .. } => ErrorCode::Unavailable,
            ErrorDetail::WriteTimeout { .. } => ErrorCode::WriteTimeout,
            ErrorDetail::ReadTimeout { .. } => ErrorCode::ReadTimeout,
            ErrorDetail::ReadFailure { .. } => ErrorCode::ReadFailure,
            ErrorDetail::WriteFailure { .. } => ErrorCode::WriteFailure,
            ErrorDetail::CasWriteUnknown { .. } => ErrorCode::CasWriteUnknown,
            ErrorDetail::FunctionFailure { .. } => ErrorCode::FunctionFailure,
            ErrorDetail::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            ErrorDetail::Unprepared { .. } => ErrorCode::Unprepared,
        };
        Self {
            code,
            message: message.into(),
            detail,
        }
    }

    /// 000A.
    #[must_use]
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Protocol, message)
    }

    /// 2200.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    /// 0000.
    #[must_use]
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Server, message)
    }

    /// 1001.
    #[must_use]
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Overloaded, message)
    }

    /// 2500, with Cassandra's text.
    #[must_use]
    pub fn unprepared(id: &[u8]) -> Self {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::detailed(
            format!(
                "Prepared query with ID {hex} not found (either the query was not prepared on this host (maybe the host has \
                 been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)"
            ),
            ErrorDetail::Unprepared { id: id.to_vec() },
        )
    }

    /// The error's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The error's message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Writes the body of an ERROR.
    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        write::int(out, self.code.in_version(version).number().into());
        write::string(out, &self.message);
        self.write_detail(out, version);
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each error, as the protocol lists them"
    )]
    fn write_detail(&self, out: &mut Vec<u8>, version: Version) {
        let counts = |out: &mut Vec<u8>, consistency: Consistency, received: i32, block_for: i32| {
            write::short(out, consistency.code());
            write::int(out, received);
            write::int(out, block_for);
        };
        match &self.detail {
            ErrorDetail::None => {}
            ErrorDetail::Unavailable {
                consistency,
                required,
                alive,
            } => counts(out, *consistency, *required, *alive),
            ErrorDetail::WriteTimeout {
                consistency,
                received,
                block_for,
                write_kind,
                contentions,
            } => {
                counts(out, *consistency, *received, *block_for);
                write::string(out, write_kind.name());
                if version >= Version::V5 && *write_kind == WriteKind::Cas {
                    write::short(out, *contentions);
                }
            }
            ErrorDetail::ReadTimeout {
                consistency,
                received,
                block_for,
                data_present,
            } => {
                counts(out, *consistency, *received, *block_for);
                out.push((*data_present).into());
            }
            ErrorDetail::ReadFailure {
                consistency,
                received,
                block_for,
                failures,
                data_present,
            } => {
                counts(out, *consistency, *received, *block_for);
                write_failures(out, version, failures);
                out.push((*data_present).into());
            }
            ErrorDetail::WriteFailure {
                consistency,
                received,
                block_for,
                failures,
                write_kind,
            } => {
                counts(out, *consistency, *received, *block_for);
                write_failures(out, version, failures);
                write::string(out, write_kind.name());
            }
            ErrorDetail::CasWriteUnknown {
                consistency,
                received,
                block_for,
            } => {
                counts(out, *consistency, *received, *block_for);
                if version < Version::V5 {
                    write::string(out, WriteKind::Cas.name());
                }
            }
            ErrorDetail::FunctionFailure {
                keyspace,
                function,
                argument_types,
            } => {
                if version >= Version::V4 {
                    write::string(out, keyspace);
                    write::string(out, function);
                    write::string_list(out, argument_types);
                }
            }
            ErrorDetail::AlreadyExists { keyspace, table } => {
                write::string(out, keyspace);
                write::string(out, table);
            }
            ErrorDetail::Unprepared { id } => write::short_bytes(out, id),
        }
    }
}

/// A number in version 4, a map by address in version 5; nothing in version 3 if the error is a timeout.
fn write_failures(out: &mut Vec<u8>, version: Version, failures: &[(IpAddr, FailureReason)]) {
    match version {
        Version::V3 => {}
        Version::V4 => write::count(out, failures.len()),
        Version::V5 => {
            write::count(out, failures.len());
            for (address, reason) in failures {
                write::inetaddr(out, *address);
                write::short(out, *reason as u16);
            }
        }
    }
}
