//! The `throughput` room.
