//! Reads: command → rows of one page, for a front end.
//!
//! [`source`] walks physical partitions (`ring`) and logical ones ([`logical`]) and gives rows to a [`sink`], which filters, groups and sorts them and hands them to the front end's [`row_sink`]; [`aside`] keeps those that are sorted; [`buffer`] holds the one
//! row that is looked at; [`evaluate`] computes expressions and filters on it;
//! [`nearest`] keeps the rows nearest to a vector; [`room`] bounds what is held; [`tombstones`] counts what was walked over unseen.

mod aside;
pub(crate) mod buffer;
pub(crate) mod evaluate;
pub(crate) mod json;
pub(crate) mod layout;
pub(crate) mod logical;
pub(crate) mod nearest;
mod order;
mod ring;
pub(crate) mod room;
pub(crate) mod row_sink;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod tombstones;
pub(crate) mod virtual_rows;
