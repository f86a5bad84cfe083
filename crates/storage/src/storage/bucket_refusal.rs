//! Why a bucket cannot be used: one sentence each. No text of a store is repeated, since it may hold parts of the
//! request.

use crate::storage::identity::{OTHER_NUMBER, OtherProfile};

/// Why a bucket cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The URL has not its cloud's form.
    #[error("write {form}, each part of letters, digits, '.', '_' and '-'; credentials do not belong into it")]
    Form {
        /// The form of the cloud's URLs.
        form: &'static str,
    },
    /// There is no such bucket.
    #[error("there is no such bucket or container; create it, or correct its name in the URL")]
    NoBucket,
    /// The credentials are valid, but do not allow the access.
    #[error(
        "the credentials do not allow access to it; let them read, write, list and delete objects below the prefix"
    )]
    NoPermission,
    /// The credentials are unknown to the store, or their signature is wrong.
    #[error("the store does not know the credentials, or the secret is not theirs")]
    WrongCredentials,
    /// The credentials have expired.
    #[error("the credentials have expired; renew them")]
    Expired,
    /// No credentials were found.
    #[error("found no usable credentials; set them in the environment or in the files that the cloud's own tools read")]
    NoCredentials,
    /// The bucket is in another region.
    #[error(
        "the bucket is not in the region that was asked{}; set bucket-region",
        region.as_ref().map(|region| format!(" but in {region}")).unwrap_or_default()
    )]
    WrongRegion {
        /// Its region, if the store reports it.
        region: Option<String>,
    },
    /// The machine's clock and the store's differ too much.
    #[error("the store refuses this machine's time; set the clock")]
    WrongTime,
    /// The store does not answer at all, or not now.
    #[error("the store cannot be reached: {what}")]
    Unreachable {
        /// The reason, in a few words.
        what: String,
    },
    /// Another answer of the store.
    #[error("the store answered {answer}")]
    Answered {
        /// HTTP status and error code.
        answer: String,
    },
    /// A setting is not valid here.
    #[error("{what}")]
    Setting {
        /// The setting, and its valid values.
        what: String,
    },
    /// The bucket does not guarantee what the engine relies on.
    #[error("the bucket cannot keep a database: {}; try another store, or `helenus check-bucket` after a change", failed.join("; "))]
    Unfit {
        /// The failed trials.
        failed: Vec<String>,
    },
    /// There are objects below the prefix that are not ours.
    #[error("there are objects below the prefix and no fleet/id of Helenus; choose a prefix that is new")]
    NotOurs,
    /// The prefix lies within that of another database.
    #[error("it lies within the prefix {prefix}, where another database is; choose a prefix that is not below it")]
    Within {
        /// The other database's prefix.
        prefix: String,
    },
    /// Another server owns the prefix.
    #[error(
        "{name} serves this prefix at {address}; stop that server first, or choose another prefix; started with operator-folder, it makes backups and exports itself, asked by --operator-folder DIR on its own machine; a node of its fleet needs fleet-listen"
    )]
    InUse {
        /// The other server.
        name: String,
        /// The address at which it serves.
        address: String,
    },
    /// The prefix belongs to another version.
    #[error("{object} says \"{found}\"; this version reads \"{known}\"{OTHER_NUMBER}")]
    OtherFormat {
        /// The object below the prefix.
        object: &'static str,
        /// The content of the object.
        found: String,
        /// The content that this version reads.
        known: &'static str,
    },
    /// The claim of the prefix is damaged.
    #[error("{object} is damaged: it does not name the database; put it back as it was")]
    DamagedClaim {
        /// The object below the prefix.
        object: &'static str,
    },
    /// The secret of the fleet is damaged.
    #[error("{object} is damaged; stop all servers of the prefix and remove it, and the next start makes a new one")]
    DamagedSecret {
        /// The object below the prefix.
        object: &'static str,
    },
    /// The fleet has no secret yet.
    #[error("there is no {object}; a server with fleet-listen makes it when it starts")]
    NoSecret {
        /// The object below the prefix.
        object: &'static str,
    },
    /// The database was written with another profile.
    #[error(transparent)]
    OtherProfile(#[from] OtherProfile),
    /// The database below the prefix is a part of a backup.
    #[error(
        "a backup is being restored into this prefix, or its restore was interrupted: then remove the objects below it, or choose a prefix that is new, and restore again"
    )]
    BeingRestored,
    /// There was a database below the prefix, and its data is gone.
    #[error(
        "fleet/id says that there was a database, and its manifests are gone; restore them, or choose a prefix that is new"
    )]
    Gone,
}

impl Refusal {
    /// Whether the condition may end without a change by the operator.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            // Transient: credentials are renewed, and clocks are set, while the server runs.
            Self::Unreachable { .. } | Self::Expired | Self::WrongCredentials | Self::NoCredentials | Self::WrongTime
        )
    }
}
