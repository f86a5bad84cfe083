//! The part of the catalog that requests read, at one moment: immutable, and published whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;

use super::Error;
use super::refusal::Refusal;
use crate::engine::followed::Followed;
use crate::partition::{Owner, TablePartitions};
use helenus_schema::profile::Rules;
use helenus_schema::schema::{Schema, StorageId, Table};

/// The part of the catalog that requests read, at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The schema.
    pub schema: Arc<Schema>,
    /// Rises with every change, TRUNCATE included; a plan of another generation is planned again.
    pub generation: u64,
    /// Settings that change the meaning of statements.
    pub rules: Rules,
    /// Shares its structure with the previous snapshot, as the schema does.
    pub(super) partitions: Partitions,
    /// Base tables with views, by number.
    followed: BTreeMap<StorageId, Arc<Followed>>,
}

/// The physical partitions of each table and view. Ordered, so that a simulation drops partition maps in one order.
pub(super) type Partitions = OrdMap<StorageId, Arc<TablePartitions>>;

impl Snapshot {
    /// Registers with each base table the views that follow it. So a writer sees them at the latch, whichever partition
    /// map it uses.
    pub(super) fn new(schema: Arc<Schema>, generation: u64, rules: Rules, partitions: Partitions) -> Self {
        let followed = Followed::all(&schema);
        for base in followed.keys() {
            let maps = partitions.get(base).into_iter();
            maps.flat_map(|map| map.here())
                .for_each(|partition| partition.latch.follow());
        }
        Self {
            schema,
            generation,
            rules,
            partitions,
            followed,
        }
    }

    /// The base table of this number, if it has views.
    pub(crate) fn followed(&self, base: StorageId) -> Option<&Arc<Followed>> {
        self.followed.get(&base)
    }

    /// The base table of the view of this number.
    pub(crate) fn followed_by(&self, view: StorageId) -> Option<&Arc<Followed>> {
        self.followed.values().find(|followed| followed.has_view(view))
    }

    /// The same, as a machine sees it that serves no partition: all are at this owner.
    pub(super) fn at(&self, owner: &Owner) -> Self {
        let maps = self.partitions.iter();
        Self {
            partitions: maps.map(|(id, map)| (*id, Arc::new(map.at(owner)))).collect(),
            followed: self.followed.clone(),
            ..self.without_partition_maps()
        }
    }

    /// The same without partition maps.
    pub(super) fn without_partition_maps(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            generation: self.generation,
            rules: self.rules,
            partitions: Partitions::new(),
            followed: BTreeMap::new(),
        }
    }

    /// A table's partition map.
    ///
    /// # Errors
    /// When the table no longer exists.
    pub(crate) fn partitions(&self, table: &Table) -> Result<&Arc<TablePartitions>, Error> {
        self.partitions
            .get(&table.storage_id)
            .ok_or_else(|| no_table(&table.keyspace, &table.name))
    }

    /// The table or view of this number.
    pub(super) fn table(&self, id: StorageId) -> Option<&Arc<Table>> {
        let keyspaces = self.schema.keyspaces.values();
        let mut tables = keyspaces.flat_map(|keyspace| keyspace.all_tables());
        tables.find(|table| table.storage_id == id)
    }

    /// The partition map of the table of this number; `None` means that no such table exists.
    pub(crate) fn partitions_of(&self, table: StorageId) -> Option<&TablePartitions> {
        self.partitions.get(&table).map(Arc::as_ref)
    }
}

/// The refusal of a table that does not exist.
pub(super) fn no_table(keyspace: &str, table: &str) -> Error {
    let (keyspace, table) = (keyspace.to_owned(), table.to_owned());
    Refusal::NoTable { keyspace, table }.into()
}
