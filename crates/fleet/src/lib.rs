//! How the nodes of a cluster talk, and when one of them may answer. It knows nothing of rows, schemas or stores.

pub mod fleet;
