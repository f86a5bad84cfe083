//! CQL text to syntax tree and back, and nothing else.
