//! The schema version that clients see.

use md5::{Digest, Md5};
use uuid::Uuid;

/// A name-based uuid of the schema's digest: equal schemas have equal versions, on every node.
pub(super) fn version_of(digest: u128) -> Uuid {
    let mut hash = Md5::new();
    hash.update(digest.to_be_bytes());
    uuid::Builder::from_md5_bytes(hash.finalize().into()).into_uuid()
}
