//! CQL text to syntax tree and back, and nothing else.

pub mod ast;
