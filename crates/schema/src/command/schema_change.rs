//! Schema changes: intents, and their outcomes.
//!
//! ```text
//! front end ─ SchemaIntent ─→ catalog: takes the change lock, then apply(current schema, SchemaContext) ─→ SchemaOutcome
//! ```
//! A front end never computes the next schema itself: another change may come between its read of the schema and its
//! own change. It passes an intent ("create table X if it does not exist"). The catalog applies the intent while it
//! makes no other change.

use bytes::Bytes;
use uuid::Uuid;

use crate::profile::Profile;
use crate::roles::Need;
use crate::schema::{Schema, StorageId};

/// A requested schema change. CQL's statements are intents (`planner::ddl`); another front end makes its own.
pub trait SchemaIntent: Send + Sync + 'static {
    /// The type of its refusals.
    type Refusal: Send + 'static;

    /// Computes the next schema from the current one. Pure: time, uuids and numbers come with the context.
    ///
    /// # Errors
    /// The schema does not permit the change; nothing has changed.
    fn apply(&self, schema: &Schema, context: &SchemaContext) -> Result<SchemaOutcome, Self::Refusal>;

    /// The permissions that the change needs, in the order in which they are checked. `schema` is the one that the request sees.
    fn needs(&self, schema: &Schema) -> Vec<Need>;
}

/// External inputs of a change.
#[derive(Clone, Debug)]
pub struct SchemaContext {
    /// µs since 1970-01-01 UTC; recorded as the time at which columns are dropped.
    pub now_micros: i64,
    /// The uuid of a new table or view, a version 1 one.
    pub new_id: Uuid,
    /// The number in the store of a new table or view; never used before.
    pub storage_id: StorageId,
    /// Data centres and how many nodes each has.
    pub data_centers: Vec<(String, usize)>,
    /// The compatibility profile.
    pub profile: Profile,
    /// Columns may be given masks.
    pub masks_columns: bool,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// CREATED
    Created,
    /// UPDATED
    Updated,
    /// DROPPED
    Dropped,
}

/// The kind of object that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table or materialized view.
    Table,
    /// A user-defined type.
    Type,
    /// A function.
    Function,
    /// An aggregate.
    Aggregate,
}

/// A schema change, as reported to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The kind of object.
    pub target: ChangeTarget,
    /// Its keyspace, or the keyspace itself.
    pub keyspace: String,
    /// Its name; empty for a keyspace.
    pub name: String,
    /// The CQL types of a function's or aggregate's arguments.
    pub arguments: Vec<String>,
}

/// The outcome of a schema change.
#[derive(Clone, Debug)]
pub struct SchemaOutcome {
    /// The next schema; the same as before if `change` is `None`.
    pub schema: Schema,
    /// `None` means nothing has changed.
    pub change: Option<SchemaChange>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Tables whose rows must be removed once the next schema is published.
    pub dropped_storage: Vec<StorageId>,
    /// Whether the context's `storage_id` is in use now.
    pub storage_id_used: bool,
    /// A change of a table's physical partitions; the schema then stays the same.
    pub partition_change: Option<PartitionChangeOf>,
}

impl SchemaOutcome {
    /// Nothing has changed.
    #[must_use]
    pub fn unchanged(schema: &Schema) -> Self {
        Self {
            schema: schema.clone(),
            change: None,
            warnings: Vec::new(),
            dropped_storage: Vec::new(),
            storage_id_used: false,
            partition_change: None,
        }
    }

    /// The next schema; no change is reported if it is the same.
    #[must_use]
    pub fn changed(
        before: &Schema,
        schema: Schema,
        kind: ChangeKind,
        target: ChangeTarget,
        keyspace: &str,
        name: &str,
    ) -> Self {
        let change = (schema.version != before.version).then(|| SchemaChange {
            kind,
            target,
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            arguments: Vec::new(),
        });
        Self {
            change,
            ..Self::unchanged(&schema)
        }
    }

    /// With these warnings in place of its own.
    #[must_use]
    pub fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// A change of physical partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionChange {
    /// The partition that contains this position is split there; the position belongs to the right one.
    Split {
        /// The token.
        at: i64,
        /// The first partition key of that token in the right one; empty means the whole token.
        partition_key: Bytes,
    },
    /// Two neighbours in one store are merged into one.
    Merge {
        /// The id of the one with the lower tokens.
        left: u64,
        /// The id of the other.
        right: u64,
    },
    /// One partition moves to a store of its own.
    Lift {
        /// Its id.
        id: u64,
    },
    /// One partition moves back to the store where it would lie if it had never been moved.
    Lower {
        /// Its id.
        id: u64,
    },
}

/// A change, and the table whose partitions it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionChangeOf {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The change.
    pub change: PartitionChange,
}
