//! The settings of where data is kept: in a bucket, and in the stores over which it is spread.

use super::setting::{Setting, setting};

/// The URL of the data.
pub(super) const DATA: Setting = setting(
    "data",
    "URL",
    None,
    "Where data is kept: memory:, file:DIR, slate+file:DIR, slate+memory:, and, experimental, s3://BUCKET/PREFIX, \
     az://ACCOUNT/CONTAINER/PREFIX (ACCOUNT emulator: Azurite), gs://BUCKET/PREFIX; credentials of buckets as the cloud's own tools take them [default: file: in the user's data directory]",
);

/// The address of a bucket's service.
pub(super) const ENDPOINT: Setting = setting(
    "bucket-endpoint",
    "URL",
    None,
    "Address of the bucket's service: http://HOST:PORT or https://HOST:PORT [default: the cloud's own]",
);

/// The bucket's region.
pub(super) const REGION: Setting = setting(
    "bucket-region",
    "NAME",
    None,
    "Region of an s3: bucket [default: AWS_REGION, else us-east-1]",
);

/// How requests name the bucket.
pub(super) const PATH_STYLE: Setting = setting(
    "bucket-path-style",
    "BOOL",
    Some("true"),
    "Name an s3: bucket in the path of requests; false: in the host's name",
);

/// How objects are encrypted.
pub(super) const ENCRYPTION: Setting = setting(
    "bucket-encryption",
    "HOW",
    Some("bucket"),
    "How S3 encrypts what is put: bucket (as the bucket has it), sse, kms, kms:KEY",
);

/// How long a server owns its prefix.
pub(super) const LEASE: Setting = setting(
    "bucket-lease",
    "MILLISECONDS",
    Some("2500"),
    "How long a server owns a bucket's prefix without a renewal, which it puts three times in that time; a start after a crash waits for it",
);

/// How long objects of dropped stores are kept.
pub(super) const REMOVAL_DELAY: Setting = setting(
    "bucket-removal-delay-seconds",
    "SECONDS",
    Some("600"),
    "How long a store that holds no physical partition any more is kept in the bucket before its objects are removed; a start begins that time anew",
);

/// The trusted certificates.
pub(super) const CA_FILE: Setting = setting(
    "bucket-ca-file",
    "FILE",
    None,
    "PEM file of certificates that are trusted for the bucket's service besides the system's",
);

/// What its requests cost.
pub(super) const PRICES: Setting = setting(
    "bucket-prices",
    "PUTS,GETS",
    Some("5,0.4"),
    "What a million puts and lists cost, a comma, what a million gets and heads cost: for estimates in status and metrics; the default is S3 Standard's in dollars",
);

/// Where parts of its tables are kept on local disk.
pub(super) const CACHE: Setting = setting(
    "bucket-cache",
    "DIR",
    None,
    "Folder on local disk for parts of the bucket's tables that were read, so that they are not read from the bucket again; it may be lost without harm [default: none]",
);

/// How much of them.
pub(super) const CACHE_BYTES_MAX: Setting = setting(
    "bucket-cache-bytes-max",
    "BYTES",
    Some("10737418240"),
    "Most bytes in the folder of bucket-cache",
);

/// Where operators ask the server.
pub(super) const OPERATOR_FOLDER: Setting = setting(
    "operator-folder",
    "DIR",
    None,
    "Folder for the socket at which backup, export and import ask a running server whose data is in a bucket, below a folder for each URL [default: none; a server with a data directory has the socket there]",
);

/// The stores of tables that no move has placed.
pub(super) const STORES: Setting = setting(
    "stores",
    "NUMBER",
    None,
    "Stores over which new tables are spread, by arcs of the ring, up to 255; each has a log of its own, except in a bucket that \
     was first used with several, whose stores share one; caches are divided among them. A start makes those that are missing, and none is ever removed. 1: the main store holds all rows [default: 1 in a new directory or bucket, later those that there are]",
);

/// The stores of lifted partitions.
pub(super) const STORES_MAX: Setting = setting(
    "stores-max",
    "NUMBER",
    Some("8"),
    "Stores that physical partitions may be lifted into; each may take as much memory",
);
