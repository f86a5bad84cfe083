//! The removal of an object that is not there, which succeeds in S3, and which Google and Azure refuse.
//!
//! The answer to a removal may be lost, and then it is asked for again. So it has to succeed everywhere.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};

/// A bucket in which the removal of a missing object succeeds.
#[derive(Debug)]
pub(super) struct RepeatableRemoval(pub(super) Arc<dyn ObjectStore>);

impl fmt::Display for RepeatableRemoval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[async_trait::async_trait]
impl ObjectStore for RepeatableRemoval {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        let removed = self.0.delete_stream(locations);
        removed
            .map(|removed| match removed {
                Err(StoreError::NotFound { path, .. }) => Ok(Path::from(path)),
                removed => removed,
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use futures::{TryStreamExt, stream};
    use slatedb::object_store::ObjectStoreExt;
    use slatedb::object_store::local::LocalFileSystem;

    use super::*;

    /// As Google's, a directory refuses to remove what is missing.
    #[tokio::test]
    async fn a_removal_may_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
        let there = Path::from("stores/1/a.sst");
        assert!(matches!(
            directory.delete(&there).await,
            Err(StoreError::NotFound { .. })
        ));
        let bucket = RepeatableRemoval(directory);
        bucket.put(&there, PutPayload::from_static(b"1")).await.unwrap();
        bucket.delete(&there).await.unwrap();
        bucket.delete(&there).await.unwrap();
        let twice = stream::iter([Ok(there.clone()), Ok(there)]).boxed();
        let removed: Vec<Path> = bucket.delete_stream(twice).try_collect().await.unwrap();
        assert_eq!(removed.len(), 2);
    }
}
