//! Bodies and their results.
