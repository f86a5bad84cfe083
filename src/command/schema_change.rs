//! Changes of the schema: intents, and what they come to.
//!
//! ```text
//! front end ─ SchemaIntent ─→ catalog: takes the change lock, then apply(schema of that moment, SchemaContext) ─→ SchemaOutcome
//! ```
//! A front end never computes the next schema itself: between its look at the schema and the change another one may come first. It
//! hands over an intent ("create table X unless it is there"), which the catalog applies while no other change is made.

use bytes::Bytes;
use uuid::Uuid;

use crate::profile::Profile;
use crate::schema::{Schema, StorageId};

/// A change of the schema that is asked for. CQL's statements are intents (`planner::ddl`); another front end makes its own.
pub trait SchemaIntent: Send + Sync + 'static {
    /// Why it is refused.
    type Refusal: Send + 'static;

    /// The next schema, from the one of this moment. Pure: time, uuids and numbers come with the context.
    ///
    /// # Errors
    /// The schema does not permit the change; nothing has changed.
    fn apply(&self, schema: &Schema, context: &SchemaContext) -> Result<SchemaOutcome, Self::Refusal>;

    /// Whether a table that it makes lies in the order of its partition keys, instead of by their hash. CQL's tables never do.
    fn orders_by_key(&self) -> bool {
        false
    }
}

/// What comes from outside.
#[derive(Clone, Debug)]
pub struct SchemaContext {
    /// µs since 1970-01-01 UTC; when dropped columns are said to have been dropped.
    pub now_micros: i64,
    /// The uuid of a new table or view, a version 1 one.
    pub new_id: Uuid,
    /// The number in the store of a new table or view; one that no table has ever had.
    pub storage_id: StorageId,
    /// Data centres and how many nodes each has.
    pub data_centers: Vec<(String, usize)>,
    /// The compatibility profile.
    pub profile: Profile,
    /// Columns may be given masks.
    pub masks_columns: bool,
}

/// How something has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// CREATED
    Created,
    /// UPDATED
    Updated,
    /// DROPPED
    Dropped,
}

/// What kind of thing has changed.
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

/// A change of the schema, as it is reported to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// How.
    pub kind: ChangeKind,
    /// What.
    pub target: ChangeTarget,
    /// Its keyspace, or the keyspace itself.
    pub keyspace: String,
    /// Its name; empty for a keyspace.
    pub name: String,
    /// The CQL types of a function's or aggregate's arguments.
    pub arguments: Vec<String>,
}

/// What a change of the schema comes to.
#[derive(Clone, Debug)]
pub struct SchemaOutcome {
    /// The next schema; the same as before if `change` is `None`.
    pub schema: Schema,
    /// `None`: nothing has changed.
    pub change: Option<SchemaChange>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Tables whose rows are to be wiped once the next schema is in force.
    pub dropped_storage: Vec<StorageId>,
    /// `storage_id` of the context is in use now.
    pub storage_id_used: bool,
    /// A change of a table's physical partitions; the schema stays the same then.
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

    pub(crate) fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// What is to become of some physical partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionChange {
    /// The one of this place becomes two, the right one beginning with it.
    Split {
        /// The token.
        at: i64,
        /// The first partition key of that token on the right; empty: all of the token is.
        partition_key: Bytes,
    },
    /// Two neighbours become one.
    Merge {
        /// The id of the one with the lower tokens.
        left: u64,
        /// The id of the other.
        right: u64,
    },
    /// One goes into a new store of its own.
    Lift {
        /// Its id.
        id: u64,
    },
    /// One goes back into the main store.
    Lower {
        /// Its id.
        id: u64,
    },
}

/// A change and the table that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionChangeOf {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// What is to change.
    pub change: PartitionChange,
}
