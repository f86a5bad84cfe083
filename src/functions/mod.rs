//! The `functions` room.
