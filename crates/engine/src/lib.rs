//! Commands to rows: the engine with its catalog, physical partitions on replica sets, what operations cost, and the tables that
//! the server computes. It knows no text of CQL and no socket.

pub mod engine;
pub mod partition;
pub mod throughput;
pub mod views;
