//! The `types` room.
