//! Counts the requests to a bucket, by the kind of object.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};

use helenus_base::metrics::{BucketCause as Cause, BucketRequest as Request, count_bucket_request};

/// A bucket below our prefix whose requests are counted.
#[derive(Debug)]
pub(super) struct Counted(pub(super) Arc<dyn ObjectStore>);

/// The store of an object or folder, and the purpose of the request.
fn about(location: &Path) -> (u32, Cause) {
    let mut parts = location.as_ref().split('/');
    let store = match parts.next() {
        Some("engine") => 0,
        Some("stores") => parts.next().and_then(|number| number.parse().ok()).unwrap_or(0),
        Some("fleet") => return (0, Cause::Lease),
        // Of all databases.
        Some("log") => return (0, Cause::Log),
        _ => return (0, Cause::Other),
    };
    let cause = match parts.next() {
        Some("wal") => Cause::Log,
        Some("compacted") => Cause::Tables,
        Some("manifest") => Cause::Manifests,
        Some("compactions") => Cause::Compactions,
        Some("gc") => Cause::CleanUp,
        _ => Cause::Other,
    };
    (store, cause)
}

fn count(location: &Path, request: Request) {
    let (store, cause) = about(location);
    count_bucket_request(store, cause, request);
}

impl fmt::Display for Counted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        count(location, Request::Put);
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        count(location, Request::Put);
        let upload = self.0.put_multipart_opts(location, options).await?;
        Ok(Box::new(Upload {
            upload,
            location: location.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        count(location, if options.head { Request::Head } else { Request::Get });
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        let counted = locations.inspect(|location| {
            if let Ok(location) = location {
                count(location, Request::Delete);
            }
        });
        self.0.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        count(prefix.unwrap_or(&Path::default()), Request::List);
        self.0.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        count(prefix.unwrap_or(&Path::default()), Request::List);
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        count(prefix.unwrap_or(&Path::default()), Request::List);
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        count(to, Request::Put);
        self.0.copy_opts(from, to, options).await
    }
}

/// An object that is put in parts, each of them a request.
#[derive(Debug)]
struct Upload {
    upload: Box<dyn MultipartUpload>,
    location: Path,
}

#[async_trait::async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        count(&self.location, Request::Put);
        self.upload.put_part(part).boxed()
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        count(&self.location, Request::Put);
        self.upload.complete().await
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.upload.abort().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objects_name_says_what_it_is_for() {
        for (name, expected) in [
            ("engine/wal/00000000000000000017.sst", (0, Cause::Log)),
            ("engine/wal", (0, Cause::Log)),
            ("log/00000000000000000017.log", (0, Cause::Log)),
            (
                "stores/12/compacted/01J79C21YKR31J2BS1EFXJZ7MR.sst",
                (12, Cause::Tables),
            ),
            (
                "stores/12/manifest/00000000000000000001.manifest",
                (12, Cause::Manifests),
            ),
            ("engine/compactions", (0, Cause::Compactions)),
            ("engine/gc/manifest.boundary", (0, Cause::CleanUp)),
            ("fleet/owner", (0, Cause::Lease)),
            ("", (0, Cause::Other)),
        ] {
            assert_eq!(about(&Path::from(name)), expected, "{name}");
        }
    }
}
