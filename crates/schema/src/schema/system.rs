//! The system keyspaces of Cassandra, built at start from `system/definitions.tsv`. The tables of `system_cosmos`,
//! which Cassandra does not have, are added by the module that computes their rows ([`add_table`]).
//!
//! ```text
//! keyspace  name  class | virtual  replication_factor | -
//! table     name  gc_grace_seconds  memtable_flush_period_in_ms  default_time_to_live  compaction strategy and options  comment
//!           kind  column  type                     (partition, clustering, descending, static, regular or dropped; in order)
//! index     name  class
//! ```
//! Tabs separate the fields; `-` means none. Values that the lines omit are Cassandra's defaults. A table's uuid is the
//! name-based uuid of its keyspace's and its own name, as in Cassandra.
//!
//! Source: `system_schema`, `system_virtual_schema` and DESCRIBE of Apache Cassandra 5.0.9.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use md5::{Digest, Md5};
use uuid::Uuid;

use super::{
    COMPACTION_PACKAGE, Column, ColumnKind, DroppedColumn, Index, Keyspace, LOCATOR_PACKAGE, Schema, StorageId, Table,
    TableOptions, typename, version,
};

const DEFINITIONS: &str = include_str!("system/definitions.tsv");

/// The keyspace of virtual tables that Cassandra does not have.
pub const COSMOS: &str = "system_cosmos";

/// The keyspace of roles.
pub const AUTH: &str = "system_auth";

/// The keyspace of tables that all nodes share.
pub const DISTRIBUTED: &str = "system_distributed";

/// The table of [`DISTRIBUTED`] whose rows are computed. The others are stored.
pub const VIEW_BUILD_STATUS: &str = "view_build_status";

/// The lowest number in the store for a user's table; lower ones belong to system tables.
pub const USER_STORAGE_ID_MIN: StorageId = 1024;

static BASE: LazyLock<Schema> = LazyLock::new(read);

/// A schema with only the system keyspaces, with Cassandra's tables.
#[must_use]
pub fn base() -> Schema {
    BASE.clone()
}

/// Whether it is a system keyspace's name.
#[must_use]
pub fn is_name(keyspace: &str) -> bool {
    BASE.keyspaces.contains_key(keyspace)
}

/// Whether no statement may change the keyspace, because it is local to each node.
#[must_use]
pub fn is_local(keyspace: &str) -> bool {
    matches!(keyspace, "system" | "system_schema") || is_virtual(keyspace)
}

/// Whether the server computes the rows of a table: all tables of the local keyspaces, and the status of views, which follows
/// from the catalog.
#[must_use]
pub fn is_computed(table: &Table) -> bool {
    is_local(&table.keyspace) || (table.keyspace == DISTRIBUTED && table.name == VIEW_BUILD_STATUS)
}

/// The table of the cluster's nodes.
const NODES: &str = "nodes";

/// Whether its rows are figures of stores and budgets, which the owner of partitions alone has. Each node knows the nodes.
#[must_use]
pub fn is_of_owner(table: &Table) -> bool {
    table.keyspace == COSMOS && table.name != NODES
}

/// Whether it is the table that lists prepared statements.
#[must_use]
pub fn is_prepared_statements(table: &Table) -> bool {
    table.keyspace == "system" && table.name == "prepared_statements"
}

/// Whether clients see it as a virtual keyspace: Cassandra's two and ours.
#[must_use]
pub fn is_virtual(keyspace: &str) -> bool {
    matches!(keyspace, "system_views" | "system_virtual_schema" | COSMOS)
}

/// Whether the keyspace is a system keyspace exactly as generated.
pub(super) fn is_base(keyspace: &Keyspace) -> bool {
    BASE.keyspaces
        .get(&keyspace.name)
        .is_some_and(|base| base.replication == keyspace.replication && base.durable_writes == keyspace.durable_writes)
}

/// The uuid that Cassandra gives a system table.
#[must_use]
pub fn table_id(keyspace: &str, table: &str) -> Uuid {
    let mut hash = Md5::new();
    hash.update(keyspace.as_bytes());
    hash.update(table.as_bytes());
    uuid::Builder::from_md5_bytes(hash.finalize().into()).into_uuid()
}

/// Tables of `system`, and columns of its other tables, that were added after Cassandra 3.11, the version that Cosmos
/// emulates. Also two tables of estimates that Cosmos does not have.
const AFTER_3_11: &[(&str, &str, &[&str])] = &[
    ("system", "available_ranges_v2", &[]),
    ("system", "paxos_repair_history", &[]),
    ("system", "peer_events_v2", &[]),
    ("system", "peers_v2", &[]),
    ("system", "repairs", &[]),
    ("system", "size_estimates", &[]),
    ("system", "sstable_activity_v2", &[]),
    ("system", "table_estimates", &[]),
    ("system", "top_partitions", &[]),
    ("system", "transferred_ranges_v2", &[]),
    ("system", "local", &["broadcast_port", "listen_port", "rpc_port"]),
    ("system_auth", "cidr_groups", &[]),
    ("system_auth", "cidr_permissions", &[]),
    ("system_auth", "identity_to_role", &[]),
    ("system_auth", "network_permissions", &[]),
    ("system_distributed", "partition_denylist", &[]),
    ("system_schema", "column_masks", &[]),
    ("system_schema", "tables", OPTIONS_AFTER_3_11),
    ("system_schema", "views", OPTIONS_AFTER_3_11),
];

const OPTIONS_AFTER_3_11: &[&str] = &[
    "additional_write_policy",
    "allow_auto_snapshot",
    "incremental_backups",
    "memtable",
    "read_repair",
];

/// Changes the system keyspaces into those of Cosmos: Cassandra 3.11's and its own.
///
/// Sources: `DESCRIBE KEYSPACES` in a published session of cqlsh with Azure Cosmos DB; the keyspaces that Microsoft's migration tool leaves
/// out; `system_schema` of Apache Cassandra 3.11.
pub fn show_as_cosmos(schema: &mut Schema) {
    schema.keyspaces.remove("system_views");
    schema.keyspaces.remove("system_virtual_schema");
    for (keyspace, table, columns) in AFTER_3_11 {
        let Some(keyspace) = schema.keyspaces.get_mut(*keyspace) else {
            continue;
        };
        let tables = &mut Arc::make_mut(keyspace).tables;
        if columns.is_empty() {
            tables.remove(*table);
        } else if let Some(table) = tables.get_mut(*table) {
            Arc::make_mut(table)
                .columns
                .retain(|column| !columns.contains(&column.name.as_str()));
        }
    }
    if let Some(own) = schema.keyspaces.get_mut(COSMOS) {
        let own = Arc::make_mut(own);
        // 3.11 has no virtual keyspaces, and clients list this one with the others.
        own.is_virtual = false;
        own.replication = BTreeMap::from([("class".to_owned(), format!("{LOCATOR_PACKAGE}LocalStrategy"))]);
    }
}

fn read() -> Schema {
    let mut schema = Schema::default();
    let mut keyspace: Option<Keyspace> = None;
    let mut storage_id = 0;
    for line in DEFINITIONS.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        if field(0) == "keyspace" {
            schema
                .keyspaces
                .extend(keyspace.take().map(|done| (done.name.clone(), Arc::new(done))));
            keyspace = Some(keyspace_of(field(1), field(2), field(3)));
            continue;
        }
        let Some(keyspace) = keyspace.as_mut() else { continue };
        if field(0) == "table" {
            storage_id += 1;
            let table = table_of(keyspace, &fields, storage_id);
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
            continue;
        }
        // The line belongs to the last table read, which has the greatest number so far.
        let last = keyspace.tables.values().find(|table| table.storage_id == storage_id);
        let name = last.map(|table| table.name.clone()).unwrap_or_default();
        let Some(table) = keyspace.tables.get_mut(&name) else {
            continue;
        };
        let table = Arc::make_mut(table);
        if field(0) == "index" {
            let options = BTreeMap::from([
                ("class_name".to_owned(), field(2).to_owned()),
                ("target".to_owned(), String::new()),
            ]);
            let index = Index {
                name: field(1).to_owned(),
                kind: "CUSTOM".to_owned(),
                options,
                storage_id: 0,
            };
            table.indexes.insert(index.name.clone(), index);
        } else {
            add_column(table, field(1), field(2), field(3));
        }
    }
    schema
        .keyspaces
        .extend(keyspace.map(|done| (done.name.clone(), Arc::new(done))));
    let own = keyspace_of(COSMOS, "virtual", "-");
    schema.keyspaces.insert(own.name.clone(), Arc::new(own));
    schema.version = version::version_of(schema.digest);
    schema
}

/// Adds a virtual table to a system keyspace: `columns` are (kind, name, type as CQL writes it), key columns first.
/// Does nothing if the keyspace does not exist.
pub fn add_table(schema: &mut Schema, keyspace: &str, name: &str, comment: &str, columns: &[(&str, &str, &str)]) {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    let ids = tables.map(|table| table.storage_id);
    let storage_id = ids.filter(|id| *id < USER_STORAGE_ID_MIN).max().unwrap_or_default() + 1;
    let Some(keyspace) = schema.keyspaces.get_mut(keyspace) else {
        return;
    };
    let keyspace = Arc::make_mut(keyspace);
    let mut table = table_of(keyspace, &["table", name, "0", "0", "0", "-", comment], storage_id);
    for (kind, name, ty) in columns {
        add_column(&mut table, kind, name, ty);
    }
    keyspace.tables.insert(table.name.clone(), Arc::new(table));
}

fn keyspace_of(name: &str, class: &str, factor: &str) -> Keyspace {
    let mut keyspace = Keyspace::new(name, BTreeMap::new(), true);
    if class == "virtual" {
        keyspace.is_virtual = true;
        return keyspace;
    }
    keyspace
        .replication
        .insert("class".to_owned(), format!("{LOCATOR_PACKAGE}{class}"));
    if factor != "-" {
        keyspace
            .replication
            .insert("replication_factor".to_owned(), factor.to_owned());
    }
    keyspace
}

fn table_of(keyspace: &Keyspace, fields: &[&str], storage_id: StorageId) -> Table {
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let mut options = TableOptions {
        comment: field(6).to_owned(),
        gc_grace_seconds: field(2).parse().unwrap_or_default(),
        memtable_flush_period_in_ms: field(3).parse().unwrap_or_default(),
        default_time_to_live: field(4).parse().unwrap_or_default(),
        ..TableOptions::default()
    };
    let mut words = field(5).split(' ');
    if let Some(class) = words.next().filter(|class| *class != "-") {
        options
            .compaction
            .insert("class".to_owned(), format!("{COMPACTION_PACKAGE}{class}"));
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            options.compaction.insert(name.to_owned(), value.to_owned());
        }
    }
    Table {
        id: table_id(&keyspace.name, field(1)),
        storage_id,
        keyspace: keyspace.name.clone(),
        name: field(1).to_owned(),
        columns: Vec::new(),
        partition_key_count: 0,
        clustering_count: 0,
        is_counter: false,
        is_virtual: keyspace.is_virtual,
        compact_storage: false,
        options,
        indexes: BTreeMap::new(),
        triggers: BTreeMap::new(),
        dropped: BTreeMap::new(),
        next_column_id: 0,
    }
}

fn add_column(table: &mut Table, kind: &str, name: &str, ty: &str) {
    let (column_kind, position) = match kind {
        "partition" => (ColumnKind::PartitionKey, table.partition_key_count),
        "clustering" | "descending" => (ColumnKind::Clustering, table.clustering_count),
        "static" => (ColumnKind::Static, 0),
        _ => (ColumnKind::Regular, 0),
    };
    let column = Column {
        id: table.next_column_id,
        name: name.to_owned(),
        ty: typename::parse(ty, &mut |_| None).expect("the definitions name only known types, which a test holds"),
        kind: column_kind,
        position,
        descending: kind == "descending",
        by_utf16: false,
        mask: None,
    };
    table.next_column_id += 1;
    if kind == "dropped" {
        let dropped = DroppedColumn {
            column,
            dropped_micros: i64::MAX,
        };
        table.dropped.insert(name.to_owned(), dropped);
        return;
    }
    table.partition_key_count += usize::from(column_kind == ColumnKind::PartitionKey);
    table.clustering_count += usize::from(column_kind == ColumnKind::Clustering);
    table.columns.push(Arc::new(column));
}
