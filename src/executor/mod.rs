//! The `executor` room.
