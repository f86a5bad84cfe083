//! Messages between machines: what one machine asks of the owner of a physical partition, as bytes.
//!
//! ```text
//! message   version u8 · kind u8 · body          nothing follows the body
//! kind 1    [`ReadRequest`]: a read restricted to one physical partition
//! kind 2    [`BoundWrites`]: a write, or the members of a batch of one owner, not dated yet
//!
//! number    u8, u16, u32, u64, i32, i64 big-endian     yes or no   u8 0 or 1        absent or there   u8 0, or 1 and the value
//! bytes     length u32 · bytes                         list        count u32 · items
//! variant   tag u8 · its fields                        table       keyspace · name · id · definition u64 ([`TableName`])
//! ```
//! Life of a message: the sender encodes a command ([`ReadRequest::encode`], [`BoundWrites::encode`]). The owner looks
//! up the tables that it names ([`Tables`]), decodes it, and lends the result to the parts that it executes.
//!
//! What travels, and what does not:
//! - Selections, groups, aggregates, orders, LIMIT and pages stay with the statement: the owner sends rows of the needed
//!   columns. A read request says only whether rows are grouped, since that changes what a part charges and passes on.
//! - A filter travels whole. It has values and no expressions: the planner has evaluated every function in it, a user's
//!   too. So no call, no body of a function and no random number travels with a read.
//! - Masks of columns are expressions, and may call a user's function. They belong to the table: a write says whether its
//!   refusal is masked, and the owner makes the calls from its own schema. A message that it cannot mask is refused.
//! - A write has the timestamp and the time to live that the client gave, or none. The owner dates it, so a stamp, a
//!   logical partition and a lock never travel. Nor do keys of list elements: the owner makes them.
//! - The schema version, the term of the owner, the epoch of the partition, the deadline and the number of a snapshot
//!   belong to the envelope, which comes with the connection.
//! - Reads of the change feed are no parts, and do not travel yet. A position in a feed is encoded, as it is in paging states.
//!
//! Invariants: no bytes cause a panic, and lengths are compared with the bytes that are left before memory is taken.
//! One message has one form: bytes that can be decoded are the encoding of their result. Every list has a bound
//! ([`limits`]), and a command beyond one is refused when it is encoded. Columns are positions in a table, so a message
//! carries a digest of the definition that they refer to, and is refused where the definition differs.
//!
//! Deliberately absent: serde, compression, several versions at once. A version number is raised with every change of the format.

mod bytes;
mod definition;
mod error;
mod filter;
mod key;
pub mod limits;
mod name;
mod read;
mod table;
mod types;
mod write;

#[cfg(test)]
mod tests;

pub use error::{DecodeError, EncodeError};
pub use name::TableName;
pub use read::{Cut, Grouping, ReadRequest};
pub use table::Tables;
pub use write::BoundWrites;
