//! Materialized views: tables whose rows derive from those of another.
//!
//! **A write** to a base table with views locks its logical partition and reads the rows that it changes.
//! It then has the new versions of these rows, and so the row of each view for each of them ([`rows`]). The view's row
//! replaces the stored one as a whole. If the key in the view changes, a deletion is written under the old key. The
//! base row under its lock determines everything, and no view row is merged. Both rows go into the base's commit if
//! they are in one store. Otherwise the batch log makes them atomic and records the keys of the view's rows: a replay
//! computes those again from the base rows, whatever was written since.
//!
//! **The latch** of the base's physical partition records whether views follow (`partition::latch`). Writers
//! take the latch in any case, so tables without views cost nothing. CREATE MATERIALIZED VIEW marks the latches and
//! publishes the view. The build holds the latches once before it reads a row: after that, every writer sees the view.
//!
//! **The build** ([`builds::view`](crate::engine::builds)) visits the existing rows in the order of their keys, each under its lock, in steps with a
//! record: a kill loses at most a step.
//!
//! **Expiry.** Cells keep their timestamps and times to live. A view with a column in its key that is none of the
//! base's key has rows that live as long as that cell: the row's marker has the cell's timestamp and expiry, and no
//! other cell of it expires later. Differs: in Cassandra such a cell keeps its own `TTL()` though it is not shown.
//!
//! **Removed rows** are deletions, not absent keys, since no key is removed while its partition is copied
//! (`partition::latch`); purges drop them after the view's `gc_grace_seconds`.
//!
//! ```text
//! !view · view id u32  →  as `!index` (engine::index): how far the view is built     (Space::Catalog)
//! ```
//! The record stays as long as the view exists: versions without views refuse a catalog that has such a record.
//!
//! Sources: Cassandra 5.0.9 `db.view.ViewUpdateGenerator`, `db.view.View#matchesViewFilter`; materialized views
//! observed on a node.

pub(crate) mod follow;
mod rows;

use helenus_schema::schema::StorageId;

/// Prefix of the records of views, in the catalog space.
pub(crate) const RECORD: &[u8] = b"!view";

/// The key of a view's record.
pub(crate) fn record_key(view: StorageId) -> Vec<u8> {
    [RECORD, &view.to_be_bytes()].concat()
}
