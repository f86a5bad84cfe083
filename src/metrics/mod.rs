//! The `metrics` room.
