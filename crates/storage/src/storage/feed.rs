//! Positions in the change feed, and the horizon up to which a reader may trust what it sees.
//!
//! Every row of a table with a feed keeps the position of its last change ([`super::Row::position`]), and an index of
//! the table has an entry `position → row` ([`super::derivation`]). Each engine's committer draws one position for a
//! group of commits and adds it to the partial rows of the group before they are merged. So the old entry of a row is
//! found from its stored value, and replaced in the same commit.
//!
//! **Positions** are microseconds since 1970 UTC, issued as the timestamps of writes are: strictly rising in the
//! process, whatever the wall clock does, and above the time marks of all stores at the next start. All stores of a
//! server share them, so a row that moves to another store keeps its position.
//!
//! **The horizon** is a position such that every later change will get a greater one, and every smaller one is visible.
//! A position is in flight from its draw until its group is published. A group that failed may still take effect when
//! its store is opened again, so its position stays in flight until then, or until a later group is published. The
//! horizon is the lesser of the last published position and the one before the first in flight. It is never above the
//! time mark of a published group, so the positions of the next start are above it.
//!
//! A copy of a row ([`super::Batch::put`]) and a purge keep its position: they change nothing that a reader sees.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::batch::{Change, Space};
use super::derivation::{self, Derivations};
use super::row::with_position;
#[cfg(feature = "simulation")]
use helenus_base::clock::TimeMark;
use helenus_base::clock::Timestamps;

/// The positions of the stores of one server. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Positions(Arc<Mutex<Issued>>);

#[derive(Debug, Default)]
struct Issued {
    in_flight: BTreeSet<i64>,
    /// The greatest that was ever drawn or found.
    last: i64,
    /// The greatest that was published.
    published: i64,
}

impl Issued {
    fn next(&mut self, timestamps: Option<&Timestamps>) -> i64 {
        let next = self.last.saturating_add(1);
        self.last = timestamps.map_or(next, |timestamps| timestamps.next_micros().max(next));
        self.last
    }
}

impl Positions {
    fn issued(&self) -> MutexGuard<'_, Issued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the last timestamp that a store recorded: no row of it has a greater position.
    pub(super) fn found(&self, micros: i64) {
        let mut issued = self.issued();
        issued.last = issued.last.max(micros);
        issued.published = issued.published.max(micros);
    }

    fn draw(&self, timestamps: Option<&Timestamps>) -> i64 {
        // Drawn under the lock, so that the order of draws is that of positions.
        let mut issued = self.issued();
        let position = issued.next(timestamps);
        issued.in_flight.insert(position);
        position
    }

    fn publish(&self, position: i64) {
        let mut issued = self.issued();
        issued.in_flight.remove(&position);
        issued.published = issued.published.max(position);
    }

    /// A position of now, which no change has: every earlier one has a smaller one, and every later one gets a greater
    /// one.
    pub fn pass(&self, timestamps: Option<&Timestamps>) -> i64 {
        self.issued().next(timestamps)
    }

    /// The horizon: each change with a position up to it is in every snapshot that is taken from now on, and each other
    /// change has, or will get, a greater position.
    #[must_use]
    pub fn horizon(&self) -> i64 {
        let issued = self.issued();
        let before = issued.in_flight.first().map(|first| first.saturating_sub(1));
        before.map_or(issued.published, |before| before.min(issued.published))
    }
}

/// What the stamping of a group found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamped {
    /// The position that was drawn. `None` means that no table with a feed is changed.
    pub(super) position: Option<i64>,
    /// Whether a table with a change log is changed.
    pub(super) is_logged: bool,
}

/// The positions that one store draws; belongs to its committer.
#[derive(Debug)]
pub(super) struct Drawn {
    positions: Positions,
    timestamps: Option<Timestamps>,
    /// Drawn and not published yet, the oldest first.
    open: Vec<i64>,
}

impl Drawn {
    pub(super) const fn new(positions: Positions, timestamps: Option<Timestamps>) -> Self {
        Self {
            positions,
            timestamps,
            open: Vec::new(),
        }
    }

    /// Adds a position to the partial rows of tables with a feed: the same one for all changes of a group. Deletions of
    /// tables with a change log need one too.
    pub(super) fn stamp<'c>(
        &mut self,
        changes: impl IntoIterator<Item = &'c mut Change>,
        derivations: &Derivations,
    ) -> Stamped {
        let mut stamped = Stamped::default();
        if derivations.is_empty() {
            return stamped;
        }
        for change in changes {
            let Change::Merge { space, key, value } = change else {
                continue;
            };
            let derivation = match space {
                Space::Rows | Space::Deletions => derivation::of_row(derivations, key),
                Space::Indexes | Space::Feed | Space::Catalog => None,
            };
            let Some(derivation) = derivation else { continue };
            let is_logged = derivation.log().is_some();
            stamped.is_logged |= is_logged;
            let is_row = *space == Space::Rows && derivation.has_feed();
            if !is_row && !is_logged {
                continue;
            }
            let position = *stamped.position.get_or_insert_with(|| self.draw());
            // A damaged row is refused by the merge.
            if is_row && let Some(with_it) = with_position(value, Some(position)) {
                *value = with_it;
            }
        }
        stamped
    }

    /// A time mark that is not below any position drawn. `None` means that the store records none.
    #[cfg(feature = "simulation")]
    pub(super) fn time_mark(&self) -> Option<TimeMark> {
        self.timestamps.as_ref().map(Timestamps::mark)
    }

    fn draw(&mut self) -> i64 {
        let position = self.positions.draw(self.timestamps.as_ref());
        self.open.push(position);
        position
    }

    /// A group with this position is published, and so is every earlier one of the store, or it never will be.
    pub(super) fn published(&mut self, up_to: i64) {
        let positions = &self.positions;
        self.open.retain(|position| {
            let is_later = *position > up_to;
            if !is_later {
                positions.publish(*position);
            }
            is_later
        });
    }

    /// Everything that the store has written is published, or never will be.
    pub(super) fn all_published(&mut self) {
        self.published(i64::MAX);
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.all_published();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(positions: &Positions) -> Drawn {
        Drawn::new(positions.clone(), None)
    }

    #[test]
    fn the_horizon_stays_below_what_is_in_flight_in_any_store() {
        let positions = Positions::default();
        let (mut one, mut other) = (drawn(&positions), drawn(&positions));
        positions.found(100);
        assert_eq!(positions.horizon(), 100);
        let first = one.draw();
        let second = other.draw();
        assert!(100 < first && first < second);
        other.published(second);
        assert_eq!(positions.horizon(), first - 1, "the first is still in flight");
        let third = one.draw();
        one.published(first);
        assert_eq!(positions.horizon(), second, "the third is in flight");
        one.published(third);
        assert_eq!(positions.horizon(), third);
    }

    #[test]
    fn a_failed_group_holds_the_horizon_until_its_store_is_opened_or_closed() {
        let positions = Positions::default();
        let mut store = drawn(&positions);
        let failed = store.draw();
        let later = store.draw();
        assert_eq!(positions.horizon(), 0);
        store.all_published();
        assert_eq!(positions.horizon(), later);
        let open = store.draw();
        assert!(failed < open);
        assert_eq!(positions.horizon(), later);
        drop(store);
        assert_eq!(positions.horizon(), open);
    }

    #[test]
    fn positions_are_above_the_marks_of_stores_though_the_clock_went_back() {
        let positions = Positions::default();
        positions.found(1 << 60);
        assert!(drawn(&positions).draw() > 1 << 60);
    }
}
