//! The `partition` room.
