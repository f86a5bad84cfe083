//! The `functions` room: built-in scalars and aggregates.

/// A built-in function, resolved for its argument types.
#[derive(Clone, Debug)]
pub struct Function;
