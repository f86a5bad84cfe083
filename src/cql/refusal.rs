//! What the planner refuses, as the errors that clients are told.

use crate::engine::Error;

impl From<crate::planner::Error> for Error {
    fn from(error: crate::planner::Error) -> Self {
        use crate::planner::Error as Planner;
        match error {
            Planner::Incompatible(_) => Self::Syntax(error.to_string()),
            Planner::Function {
                keyspace,
                name,
                arguments,
                message,
            } => Self::FunctionFailure {
                keyspace,
                name,
                arguments,
                message,
            },
            Planner::NeedsFiltering => Self::NeedsFiltering,
            Planner::UndefinedColumn { .. }
            | Planner::UnknownFunction(_)
            | Planner::Call(_)
            | Planner::Result { .. }
            | Planner::NonCounter { .. }
            | Planner::Restriction(_)
            | Planner::Bound(_)
            | Planner::Nearest(_)
            | Planner::Condition(_)
            | Planner::Batch(_)
            | Planner::Modify(_)
            | Planner::Operation(_)
            | Planner::Select(_)
            | Planner::Selection(_)
            | Planner::Term(_)
            | Planner::Value(_)
            | Planner::Name(_)
            | Planner::Unsupported(_) => Self::Invalid(error.to_string()),
        }
    }
}

impl From<crate::planner::rules::Refusal> for Error {
    fn from(refusal: crate::planner::rules::Refusal) -> Self {
        use crate::planner::rules::Code;
        let message = refusal.to_string();
        match refusal.code() {
            Code::Syntax => Self::Syntax(message),
            Code::Server => Self::NotOffered(message),
            Code::Invalid => Self::Invalid(message),
            Code::Configuration => Self::Config(message),
        }
    }
}

impl From<crate::planner::ddl::DdlError> for Error {
    fn from(error: crate::planner::ddl::DdlError) -> Self {
        use crate::planner::ddl::Code;
        let message = error.to_string();
        match error.code() {
            Code::Syntax => Self::Syntax(message),
            Code::Unauthorized => Self::Unauthorized(message),
            Code::Invalid => Self::Invalid(message),
            Code::Configuration => Self::Config(message),
            Code::AlreadyExists { keyspace, table } => Self::AlreadyExists {
                keyspace: keyspace.to_owned(),
                table: table.to_owned(),
                message,
            },
        }
    }
}
