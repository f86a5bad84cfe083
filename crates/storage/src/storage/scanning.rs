//! How a scan goes: its order, and when other tasks have their turn.

/// The order of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the least key to the greatest.
    #[default]
    Forward,
    /// From the greatest key to the least.
    Reverse,
}

/// Entries that a scan visits before it yields to other tasks.
pub(super) const SCAN_STRIDE_ENTRIES: usize = 4096;
