//! Refusals of schema changes as data: one enum for each part of DDL, a variant for each cause, with the names and
//! values of its message.
//!
//! Only `Display` makes the text, and no code parses it. Texts are Cassandra's. If the variants of an enum have several
//! codes, its `code` maps them; [`DdlError::code`](super::DdlError::code) maps the other enums.

mod alter_table;
mod code;
mod column_type;
mod compaction;
mod compression;
mod cosmos;
mod function;
mod index;
mod index_options;
mod keyspace;
mod mask;
mod name;
mod options;
mod property;
mod table;
mod user_type;
mod view;

pub use self::alter_table::AlterTableRefusal;
pub use self::code::Code;
pub use self::column_type::ColumnTypeRefusal;
pub use self::compaction::CompactionRefusal;
pub use self::compression::CompressionRefusal;
pub use self::cosmos::CosmosRefusal;
pub use self::function::FunctionRefusal;
pub use self::index::IndexRefusal;
pub use self::index_options::IndexOptionRefusal;
pub use self::keyspace::KeyspaceRefusal;
pub use self::mask::MaskRefusal;
pub use self::name::NameRefusal;
pub use self::options::OptionRefusal;
pub use self::property::PropertyRefusal;
pub use self::table::TableRefusal;
pub use self::user_type::UserTypeRefusal;
pub use self::view::ViewRefusal;
