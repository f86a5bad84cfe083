//! Between the commit of a change of the catalog and its publication.

use std::sync::atomic::{AtomicBool, Ordering};

/// A change that may be committed and is not published yet. Dropping it before [`Publication::end`], as an error or a panic does,
/// leaves the catalog unsure: requests then ask the store which catalog it holds before they write.
pub(super) struct Publication<'a>(Option<&'a AtomicBool>);

impl<'a> Publication<'a> {
    /// Before the commit.
    pub(super) const fn begin(is_unsure: &'a AtomicBool) -> Self {
        Self(Some(is_unsure))
    }

    /// What the store holds is published.
    pub(super) fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Publication<'_> {
    fn drop(&mut self) {
        if let Some(is_unsure) = self.0 {
            is_unsure.store(true, Ordering::Release);
        }
    }
}
