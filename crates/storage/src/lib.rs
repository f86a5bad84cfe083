//! Rows and cells as bytes, the engines that keep them, and the files of a backup. It knows keys, cells and commits, and nothing
//! of tables, types or CQL.

pub mod backup;
pub mod storage;
