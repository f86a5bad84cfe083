//! Replaces the engine of `slate+file:` and `slate+memory:` in a build without the feature `slate`. Opening such a
//! store is refused, so no value of these types exists.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{DeletionTables, Order};
use crate::storage::bucket::LeasePut;
use crate::storage::cache::RowCache;
use crate::storage::purge::Sweeps;
use crate::storage::{Batch, CommitSeq, Derivations, Error, Estimate, KeyRange, Opening, Options, Result, Space, Url};
use helenus_base::clock::Clock;

/// The content of such a store's format file.
pub(super) const FORMAT: &str = crate::storage::identity::SLATE;

#[derive(Clone, Debug)]
enum Never {}

/// No store: there is no value of this type.
#[derive(Clone, Debug)]
pub struct Store(Never);

/// No snapshot: there is no value of this type.
#[derive(Debug)]
pub(in crate::storage) struct Published {
    pub(in crate::storage) seq: CommitSeq,
    pub(in crate::storage) deletion_tables: DeletionTables,
    never: Never,
}

impl Store {
    pub(in crate::storage) fn moment(&self) -> Option<super::moments::Moment> {
        match self.0 {}
    }

    pub(in crate::storage) async fn open(url: &Url, _: &Options, _: Clock) -> Result<Self> {
        Err(Error::WithoutFeature {
            url: url.to_string(),
            feature: "slate",
        })
    }

    pub(in crate::storage) async fn open_side(&self, _: String, _: &Options) -> Result<Self> {
        match self.0 {}
    }

    pub(in crate::storage) async fn has_database(&self, _: &str) -> Result<bool> {
        match self.0 {}
    }

    pub(in crate::storage) async fn forget_database(&self, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) async fn remove_database(&self, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) async fn clone_side(&self, _: String, _: &KeyRange) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) fn snapshot(&self) -> Option<Arc<Published>> {
        match self.0 {}
    }

    pub(in crate::storage) fn lease_left(&self) -> Option<Duration> {
        match self.0 {}
    }

    pub(in crate::storage) fn lease_put(&self) -> Option<LeasePut> {
        match self.0 {}
    }

    pub(in crate::storage) fn why_unavailable(&self) -> Error {
        match self.0 {}
    }

    pub(in crate::storage) fn opening(&self) -> Opening {
        match self.0 {}
    }

    pub(in crate::storage) fn cache(&self) -> &RowCache {
        match self.0 {}
    }

    pub(in crate::storage) fn set_derivations(&self, _: Derivations) {
        match self.0 {}
    }

    pub(in crate::storage) fn check_batch(&self, _: &Batch) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) async fn commit(&self, _: Batch) -> Result<CommitSeq> {
        match self.0 {}
    }

    pub(in crate::storage) async fn flush(&self) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) async fn sync(&self) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) async fn close(&self) -> Result<()> {
        match self.0 {}
    }

    pub(in crate::storage) fn lost(&self) -> Option<Arc<Error>> {
        match self.0 {}
    }

    pub(in crate::storage) fn sweeps(&self) -> &Arc<Sweeps> {
        match self.0 {}
    }

    pub(in crate::storage) fn read_ahead(&self, _: impl FnOnce() -> KeyRange) {
        match self.0 {}
    }

    pub(in crate::storage) fn estimate(&self, _: &KeyRange) -> Estimate {
        match self.0 {}
    }
}

impl Published {
    pub(in crate::storage) async fn get(&self, _: Space, _: &[u8]) -> Result<Option<Bytes>> {
        match self.never {}
    }

    pub(in crate::storage) async fn get_row(&self, _: &[u8], _: &RowCache) -> Result<Option<Bytes>> {
        match self.never {}
    }

    pub(in crate::storage) async fn scan_rows(
        &self,
        _: &KeyRange,
        _: Order,
        _: &RowCache,
        _: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        match self.never {}
    }

    pub(in crate::storage) async fn scan(
        &self,
        _: Space,
        _: &KeyRange,
        _: Order,
        _: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        match self.never {}
    }
}
