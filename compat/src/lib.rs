//! Shared pieces of the compatibility runs.
