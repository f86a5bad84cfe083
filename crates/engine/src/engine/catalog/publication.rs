//! The state between the commit of a change of the catalog and its publication, and the announcement after it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_schema::command::{SchemaChange, changes_between};
use helenus_schema::schema::Schema;

/// Receives the changes of the schema, in the order of their commits.
pub type SchemaListener = Box<dyn Fn(&[SchemaChange]) + Send + Sync>;

/// The listener for changes of the schema, or `None`. Called while no other change can be made.
#[derive(Default)]
pub(in crate::engine) struct Listener(OnceLock<SchemaListener>);

impl Listener {
    /// Sets the listener. Only the first call counts.
    pub(in crate::engine) fn set(&self, listener: SchemaListener) {
        // A second listener would be a second server on one database, which does not happen.
        drop(self.0.set(listener));
    }

    /// Announces a published change. A TRUNCATE keeps the schema's version, and is no change.
    pub(super) fn announce(&self, before: &Schema, after: &Schema) {
        if before.version != after.version
            && let Some(listener) = self.0.get()
        {
            listener(&changes_between(before, after));
        }
    }
}

/// A change that may be committed and is not published yet. If it is dropped before [`Publication::end`], as by an
/// error or a panic, the catalog is in doubt: before they write, requests then read from the store which catalog it
/// holds.
pub(super) struct Publication<'a>(Option<&'a AtomicBool>);

impl<'a> Publication<'a> {
    /// Begins before the commit.
    pub(super) const fn begin(is_in_doubt: &'a AtomicBool) -> Self {
        Self(Some(is_in_doubt))
    }

    /// Ends after the published catalog is that of the store.
    pub(super) fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Publication<'_> {
    fn drop(&mut self) {
        if let Some(is_in_doubt) = self.0 {
            is_in_doubt.store(true, Ordering::Release);
        }
    }
}
