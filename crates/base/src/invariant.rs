//! Checked assertions: conditions whose violation would lead to a wrong answer.
//!
//! Each [`Invariant`] is checked in release builds too. A failed check returns [`Broken`], an error like any other, so
//! that no request panics. The consequence depends on the place of the check; docs/src/internals/invariants.md lists it for each,
//! with the wrong answer that it prevents and the test that trips it. `tests/house.rs` compares that list with
//! [`Invariant::ALL`].
//!
//! ```text
//! checked in                      a check that fails stops
//! a request                       the request: the client gets a server error
//! a change of the catalog         the change, before it is recorded; after that the catalog is in doubt until the store has been read
//! the committer of a store        the store: it takes no writes, /livez answers 503 and the server ends
//! ```
//! No check runs per cell. The numbers that explain a failure go to the log, never to clients.

use std::fmt;

use crate::metrics;

/// A condition that must always hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// A partition map covers the ring without gap or overlap.
    RingIsCovered,
    /// The epoch of a table's partition map rises with every change.
    EpochRises,
    /// A key that is read or staged lies in the hosted partition.
    KeyIsHosted,
    /// The parts of a page's charges add up to what the page is charged.
    ChargesAddUp,
    /// A written column is a column of its table.
    ColumnExists,
    /// The table number whose rows are to be removed belongs to no existing table.
    GarbageIsUnused,
    /// A group of commits changes each key once, in order.
    GroupIsInOrder,
    /// What a store publishes is later than what it published before.
    PublishedRises,
}

impl Invariant {
    /// All invariants.
    pub const ALL: [Self; 8] = [
        Self::RingIsCovered,
        Self::EpochRises,
        Self::KeyIsHosted,
        Self::ChargesAddUp,
        Self::ColumnExists,
        Self::GarbageIsUnused,
        Self::GroupIsInOrder,
        Self::PublishedRises,
    ];

    /// The condition, as docs/src/internals/invariants.md words it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::RingIsCovered => "a partition map covers the ring without gap or overlap",
            Self::EpochRises => "the numbers and epochs of a partition map only rise",
            Self::KeyIsHosted => "a key that is read or staged lies in the hosted partition",
            Self::ChargesAddUp => "the parts of a page's charges add up to its charge",
            Self::ColumnExists => "a written column is a column of its table",
            Self::GarbageIsUnused => "the number of rows that are to be removed belongs to no table",
            Self::GroupIsInOrder => "a group of commits changes each key once, in order",
            Self::PublishedRises => "what a store publishes is later than what it published before",
        }
    }

    /// Checks it. `found` explains a failure, for the log.
    ///
    /// # Errors
    /// [`Broken`] unless `holds`.
    #[inline]
    pub fn check<T: fmt::Display>(self, holds: bool, found: impl FnOnce() -> T) -> Result<(), Broken> {
        if holds { Ok(()) } else { Err(self.broken(&found())) }
    }

    /// The failure of a check made elsewhere. `found` explains it, for the log.
    #[cold]
    pub fn broken(self, found: &dyn fmt::Display) -> Broken {
        metrics::INVARIANTS_BROKEN.increment();
        tracing::error!(invariant = self.text(), %found, "an invariant is broken; this is a bug");
        Broken(self)
    }
}

/// An invariant does not hold: the program has a bug, and must not continue here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped before a wrong answer, by a bug in the server (see its log): it must hold that {}", .0.text())]
pub struct Broken(pub Invariant);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_fails_is_an_error_that_names_it_and_is_counted() {
        let before = metrics::INVARIANTS_BROKEN.value();
        assert_eq!(Invariant::GroupIsInOrder.check(true, || ""), Ok(()));
        let broken = Invariant::GroupIsInOrder.check(false, || "70000 bytes").unwrap_err();
        assert_eq!(broken, Broken(Invariant::GroupIsInOrder));
        let text = broken.to_string();
        assert!(
            text.contains(Invariant::GroupIsInOrder.text()) && !text.contains("70000"),
            "{text}"
        );
        assert!(metrics::INVARIANTS_BROKEN.value() > before);
    }
}
