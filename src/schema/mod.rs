//! The `schema` room.
