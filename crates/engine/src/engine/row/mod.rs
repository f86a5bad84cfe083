//! One row, as a command sees it: [`layout`] selects the columns that are read of it, [`buffer`] holds its current values, [`evaluate`]
//! computes expressions and filters on them, [`dropped`] removes what no reader sees, [`carried`] makes bytes of a row. Deliberately absent: where rows come from, and where their values go.

pub(crate) mod buffer;
pub(crate) mod carried;
pub(crate) mod dropped;
pub(crate) mod evaluate;
pub(crate) mod layout;
