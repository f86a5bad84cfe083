//! Refusals as data: one enum for each part of a statement, a variant for each cause, with the names and values of its
//! message.
//!
//! Only `Display` makes the text, and no code parses it. All are invalid requests (code 0x2200). Texts are Cassandra's.
//! They are boxed inside of [`Error`](super::Error), so that a result stays small.

mod ann;
mod batch;
mod bound;
mod condition;
mod modify;
mod name;
mod operation;
mod restriction;
mod select;
mod selection;
mod term;
mod unsupported;
mod value;

pub use self::ann::AnnRefusal;
pub use self::batch::BatchRefusal;
pub use self::bound::BoundRefusal;
pub use self::condition::ConditionRefusal;
pub use self::modify::ModifyRefusal;
pub use self::name::NameRefusal;
pub use self::operation::OperationRefusal;
pub use self::restriction::RestrictionRefusal;
pub use self::select::SelectRefusal;
pub use self::selection::SelectionRefusal;
pub use self::term::{LiteralPart, TermRefusal};
pub use self::unsupported::Unsupported;
pub use self::value::ValueRefusal;
