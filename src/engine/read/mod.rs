//! Reads: bound SELECT → rows of one page, encoded.
//!
//! [`source`] walks physical partitions (`ring`) and logical ones ([`logical`]) and gives rows to a [`sink`], which filters, groups, sorts and encodes them; [`buffer`] holds the one
//! row that is looked at; [`evaluate`] computes expressions and filters on it;
//! [`nearest`] keeps the rows nearest to a vector; [`room`] bounds what is held; [`tombstones`] counts what was walked over unseen.

pub(crate) mod buffer;
pub(crate) mod evaluate;
pub(crate) mod json;
pub(crate) mod layout;
pub(crate) mod logical;
pub(crate) mod nearest;
mod order;
mod ring;
pub(crate) mod room;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod tombstones;
pub(crate) mod virtual_rows;
