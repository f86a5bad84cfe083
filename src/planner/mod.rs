//! The `planner` room.
