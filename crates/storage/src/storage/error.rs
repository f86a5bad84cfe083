//! Errors of a store.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::{Cloud, SCHEMES};
use super::bucket_refusal::Refusal;
use super::damaged::Damaged;
use super::identity::{OTHER_NUMBER, OtherProfile};
use helenus_base::invariant::Broken;

/// Advice for a path that was written without a scheme.
fn as_directory(text: &str) -> String {
    match text.contains(':') || text.is_empty() {
        true => String::new(),
        false => format!("write file:{text} for this directory; or "),
    }
}

/// Advice for a store that this program does not open: the scheme of the other engine, or the other program.
fn other_engine(found: &str, known: &str, directory: &Path) -> String {
    let is_of = |format: &str, engine: &str| format.split([' ', ',']).any(|word| word == engine);
    let scheme = if is_of(found, "slatedb") && is_of(known, "fjall") {
        "slate+file"
    } else if is_of(found, "fjall") && is_of(known, "slatedb") {
        "file"
    } else {
        return OTHER_NUMBER.to_owned();
    };
    format!(": write --data {scheme}:{}", directory.display())
}

/// Errors of a store. Cheap to clone: one cause may answer a whole group of commits.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The URL's scheme is unknown.
    #[error("cannot keep data at \"{url}\": {}write one of {}", as_directory(url), SCHEMES)]
    UnknownScheme {
        /// As it was written.
        url: String,
    },
    /// A bucket cannot be used.
    #[error("{url}: {refusal}")]
    Bucket {
        /// Its URL.
        url: String,
        /// The reason.
        refusal: Refusal,
    },
    /// The URL names no bucket.
    #[error("{url} names no bucket: give {}, {} or {}", Cloud::S3.form(), Cloud::Azure.form(), Cloud::Google.form())]
    NoBucket {
        /// As it was written.
        url: String,
    },
    /// An operation on files was requested for a bucket.
    #[error("{url}: this works on data in a directory, not in a bucket, where another server may have it open")]
    InBucket {
        /// Where the data is.
        url: String,
    },
    /// The URL is valid, but this build has no engine for it.
    #[error(
        "cannot open {url}: this build has no engine for it; build with the feature \"{feature}\", which is on by default"
    )]
    WithoutFeature {
        /// Where the store would be.
        url: String,
        /// The feature of this package that has the engine.
        feature: &'static str,
    },
    /// The URL needs a directory.
    #[error("\"{url}\" names no directory; write file:DIR or slate+file:DIR")]
    NoDirectory {
        /// As it was written.
        url: String,
    },
    /// The URL takes nothing after the colon.
    #[error("\"{url}\": this scheme takes no path")]
    NoPath {
        /// As it was written.
        url: String,
    },
    /// The durability setting is unknown.
    #[error("invalid durability \"{text}\": expected group, periodic:MILLISECONDS or os")]
    UnknownDurability {
        /// As it was written.
        text: String,
    },
    /// Another process, or another store of this one, holds the directory.
    #[error("the store in {} is in use by another process{}: stop it, or give other data with --data", directory.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked {
        /// The store's directory.
        directory: PathBuf,
        /// The holder's process id, if it wrote one.
        holder: Option<u32>,
    },
    /// Another process holds the folder of the bucket's local cache.
    #[error("the folder {} of bucket-cache is in use by another process{}: give each server a folder of its own", folder.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    CacheLocked {
        /// The folder.
        folder: PathBuf,
        /// The holder's process id, if it wrote one.
        holder: Option<u32>,
    },
    /// The directory has files, but none marks it as a store.
    #[error("{} is not empty and holds no store", directory.display())]
    NotAStore {
        /// The directory.
        directory: PathBuf,
    },
    /// A backup is restored into a new or empty directory only.
    #[error("{} is not empty, and a server has it open: name another directory, or stop that server and restore into its data by --add, --keyspace or --table", directory.display())]
    NotEmptyAndOpen {
        /// The directory.
        directory: PathBuf,
    },
    /// A backup is restored into a new or empty directory only.
    #[error("{} is not empty: name a directory that is new or empty, or restore into its data by --add, --keyspace or --table", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory holds a part of a backup.
    #[error(
        "a backup is being restored into {}, or its restore was interrupted: then remove the directory and restore again",
        directory.display()
    )]
    BeingRestored {
        /// The directory.
        directory: PathBuf,
    },
    /// The store was written by a version, or an engine, that this version does not read.
    #[error("the store in {} has the format \"{found}\"; this version reads \"{known}\"{}", directory.display(), other_engine(found, known, directory))]
    UnknownFormat {
        /// The store's directory.
        directory: PathBuf,
        /// The store's own format.
        found: String,
        /// The format that this version reads.
        known: &'static str,
    },
    /// The data was written with another profile.
    #[error("{place}: {other}")]
    OtherProfile {
        /// The store's directory, or the URL of its bucket.
        place: String,
        /// The two profiles.
        other: OtherProfile,
    },
    /// A file is of another store.
    #[error(
        "{} is of {found}, and this is {expected}; put this store's own file back",
        path.display()
    )]
    OtherStore {
        /// The file.
        path: PathBuf,
        /// The store that the file names.
        found: String,
        /// The store that it was found in.
        expected: String,
    },
    /// A file of the store is damaged.
    #[error("{} is damaged: {what}", path.display())]
    Corrupt {
        /// The file, or the directory where the engine cannot say which file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// The store was used, and a file is missing without which it cannot be checked.
    #[error(
        "the store in {} was used and {what}; put it back from a backup, or start once with --create, which {creates}",
        directory.display()
    )]
    Gone {
        /// The store's directory.
        directory: PathBuf,
        /// The missing file.
        what: &'static str,
        /// The effect of `--create`.
        creates: &'static str,
    },
    /// The stores of one server are copies from different times.
    #[error(
        "the store in {} is of an earlier moment than the one in {}: it ends with group {ends}, and group {noted} was durable when the other \
         was last written; put both in place from one copy, or start once with --create, which takes them as they are",
        directory.display(), later.display()
    )]
    EarlierMoment {
        /// The directory of the store from the earlier time.
        directory: PathBuf,
        /// The last group in it.
        ends: u64,
        /// The directory of the store that recorded a later group of it.
        later: PathBuf,
        /// The group that it recorded.
        noted: u64,
    },
    /// A store is of a copy of the database that was written by itself.
    #[error(
        "the store in {} is of another copy than the one in {}: group {noted}, which was durable when the other was last written, is not in it; \
         put both in place from one copy, or start once with --create, which takes them as they are",
        directory.display(), later.display()
    )]
    OtherCopy {
        /// The directory of the store.
        directory: PathBuf,
        /// The directory of the store that recorded the group.
        later: PathBuf,
        /// The group that it recorded.
        noted: u64,
    },
    /// A store has groups from after the last clean close of all stores.
    #[error(
        "the store in {} goes on to group {ends}, and when the stores were closed it ended with group {noted}, as the one in {} recorded: one of them \
         is of another copy; put both in place from one copy, or start once with --create, which takes them as they are",
        directory.display(), later.display()
    )]
    FollowsClose {
        /// The directory of the store.
        directory: PathBuf,
        /// The last group in it.
        ends: u64,
        /// The directory of the store that recorded the close.
        later: PathBuf,
        /// The group that it recorded.
        noted: u64,
    },
    /// There is no store to inspect.
    #[error("there is no store in {}", directory.display())]
    NoStore {
        /// The directory.
        directory: PathBuf,
    },
    /// Commits that were acknowledged are not in the store.
    #[error("the store in {} has lost acknowledged writes: {what}", directory.display())]
    LostWrites {
        /// The store's directory.
        directory: PathBuf,
        /// The lost groups.
        what: String,
    },
    /// The medium is full; writes succeed again when there is space.
    #[error("the disk of {} is full", directory.display())]
    DiskFull {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The medium failed on an earlier write; nothing more is written until the server starts again.
    #[error("the store in {} takes no writes since {cause}; check the disk and start again", directory.display())]
    WritesRefused {
        /// The store's directory.
        directory: PathBuf,
        /// The first failure.
        cause: Arc<Error>,
    },
    /// The medium failed.
    #[error("{operation} {}: {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// The engine failed with an error of its own.
    #[error("the engine of {location} failed: {what}")]
    Engine {
        /// The store.
        location: String,
        /// The engine's message.
        what: String,
    },
    /// Another writer has opened the store; this one no longer writes.
    #[error("another writer has taken over the store at {location}")]
    TakenOver {
        /// The store.
        location: String,
    },
    /// A put to the bucket was refused because its object exists, although no other writer can have put it: the put was
    /// tried again after its answer was lost.
    #[error("a put to {location} was tried again, since its answer was lost, and met its own object")]
    MetItself {
        /// The store.
        location: String,
    },
    /// The lease of the bucket is over, and not renewed yet: another server may have taken over.
    #[error("the lease of {location} is over and not renewed; another server may have taken over")]
    LeaseOver {
        /// The store.
        location: String,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
    /// The store is being reopened after a failure.
    #[error("the store is being opened again after a failure")]
    Reopening,
    /// The store was reopened after a failure since the batch's opening ([`super::Batch::only_in`]); it did not take
    /// effect.
    #[error("the store was opened again after a failure, and may hold what was not seen before")]
    OpenedAgain,
    /// The store is open and not accepted yet ([`super::Store::accept`]); the batch did not take effect.
    #[error("the store in {} is being opened and takes no writes yet", directory.display())]
    NotAccepted {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The batch is larger than the setting allows; it did not take effect.
    #[error("a batch of {bytes} bytes is over the limit of {bytes_max}")]
    BatchTooLarge {
        /// The batch's bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A key is longer than the engines accept; the batch did not take effect.
    #[error("a key of {bytes} bytes is over the limit of {bytes_max}")]
    KeyTooLarge {
        /// The key's bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A row would be larger than the batch allows ([`super::Batch::limit_rows`]); the batch did not take effect.
    #[error("a row of {bytes} bytes is over the limit of {bytes_max}")]
    RowTooLarge {
        /// The bytes of the row as it would be stored.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// An invariant of the store does not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A snapshot of one store was passed to another.
    #[error("the snapshot is another store's")]
    ForeignSnapshot,
    /// Bytes in the store are not a valid record.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

impl Error {
    /// Whether the cause is a full medium, so that the write may succeed later.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::DiskFull { .. } => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }
}

/// A result of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;
