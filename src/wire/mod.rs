//! The `wire` room.
