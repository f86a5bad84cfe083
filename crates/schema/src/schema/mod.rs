//! The `schema` module: keyspaces, tables, types and their versions.
//!
//! A [`Schema`] is an immutable value. DDL makes the next one from the last, and every reader holds a snapshot of the
//! current one, never a lock. System keyspaces are part of it like any other; the virtual ones have no stored rows.
//!
//! ```text
//! system::base()  ──►  Schema  ──planner::ddl──►  Schema  ──►  record::changes ──► the catalog's bytes
//!      ▲                  │                                              │
//! definitions.tsv         ├─► the module `views` (system tables)         └─► record::load at the next start
//!                         └─► describe::describe (CQL that makes it again)
//! ```
//!
//! The version is a pure function of all definitions outside the generated system keyspaces: the sum of the digests of
//! all records ([`record`]). So the cost of a change depends on the change, not on the size of the schema.
//!
//! Deliberately absent: permissions, how a statement changes the schema (`planner::ddl`), where rows are stored.
//! Sources: `system_schema` of Apache Cassandra 5.0 and its DESCRIBE, byte for byte; CQL reference, Data Definition.

pub mod analysis;
pub mod cosmos;
mod create;
pub mod describe;
mod differences;
pub mod encode;
pub mod entities;
pub mod feed_range;
pub mod index;
pub mod names;
pub mod node;
pub mod record;
pub mod system;
pub mod typename;
mod version;
pub mod words;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::cosmos::{CellLevel, FullFidelity, Throughput};
pub use self::create::in_dependency_order;
pub use self::differences::{TableChange, table_changes};
pub use self::index::{Index, IndexFamily, IndexPart, IndexTarget};
use helenus_base::utf16;
use helenus_types::functions::UserScalar;
use helenus_types::types::{CqlType, KeyOrder, UserType, quoted};

/// All definitions at one version.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Changes with every change of a definition; equal definitions have equal versions.
    pub version: Uuid,
    /// Keyspaces by name, system keyspaces included.
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// The sum of the digests of all records; `version` is derived from it.
    digest: u128,
}

impl Schema {
    /// The keyspace of this (folded) name.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// The table of this name; materialized views are not included.
    #[must_use]
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.tables.get(name)
    }

    /// The table or materialized view of this name.
    #[must_use]
    pub fn table_or_view(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.table_or_view(name)
    }

    /// Tables and views with stored rows, by keyspace and name.
    pub fn stored_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let stored = self.keyspaces.values();
        let stored = stored.filter(|keyspace| !system::is_local(&keyspace.name));
        stored.flat_map(|keyspace| {
            let views = keyspace.views.values().map(|view| &view.table);
            keyspace.tables.values().chain(views)
        })
    }

    /// A copy with this keyspace, which replaces the one of the same name.
    #[must_use]
    pub fn with_keyspace(&self, keyspace: Keyspace) -> Self {
        let mut next = self.clone();
        next.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        next.versioned(self)
    }

    /// A copy without this keyspace.
    #[must_use]
    pub fn without_keyspace(&self, name: &str) -> Self {
        let mut next = self.clone();
        next.keyspaces.remove(name);
        next.versioned(self)
    }

    /// A copy in which a table or view, with its indexes, has other numbers in the store: what TRUNCATE does. The table
    /// takes the first number and its indexes the following ones; [`Table::storage_ids`] gives the count. The version
    /// stays. `None` means that there is no such table.
    #[must_use]
    pub fn with_storage_id(&self, keyspace: &str, table: &str, storage_id: StorageId) -> Option<Self> {
        let mut changed = Keyspace::clone(self.keyspaces.get(keyspace)?);
        if let Some(slot) = changed.tables.get_mut(table) {
            let table = Arc::make_mut(slot);
            table.storage_id = storage_id;
            let kept = table.indexes.values_mut().filter(|index| index.storage_id != 0);
            let mut next = storage_id + 1;
            for index in kept {
                index.storage_id = next;
                next += 1;
            }
            if table.options.feed != 0 {
                table.options.feed = next;
            }
        } else {
            let view = Arc::make_mut(changed.views.get_mut(table)?);
            Arc::make_mut(&mut view.table).storage_id = storage_id;
        }
        Some(self.with_keyspace(changed))
    }

    /// The greatest number in the store that a table, view or index has. The next new one may take any greater number
    /// that no dropped one has had.
    #[must_use]
    pub fn storage_id_max(&self) -> StorageId {
        self.keyspaces
            .values()
            .flat_map(|keyspace| keyspace.all_tables())
            .flat_map(|table| table.all_storage_ids())
            .max()
            .unwrap_or_default()
    }

    fn versioned(mut self, before: &Self) -> Self {
        self.digest = record::digest_after(before.digest, before, &self);
        self.version = version::version_of(self.digest);
        self
    }
}

/// A keyspace with its tables, types, views and functions. Table, view and type names are unique among themselves.
#[derive(Clone, Debug)]
pub struct Keyspace {
    /// Folded name.
    pub name: String,
    /// `durable_writes`.
    pub durable_writes: bool,
    /// `class` (full name) and its options.
    pub replication: BTreeMap<String, String>,
    /// The throughput that its tables share, if they share any.
    pub throughput: Option<Throughput>,
    /// The highest throughput that it ever had, in request units a second; 0 means that it never had any.
    pub throughput_highest: u32,
    /// Whether the keyspace is virtual: the server computes its rows and stores none.
    pub is_virtual: bool,
    /// Tables by name, virtual ones included. Shares its structure with the previous keyspace, so the cost of a change
    /// does not grow with the number of tables.
    pub tables: OrdMap<String, Arc<Table>>,
    /// User-defined types by name.
    pub types: BTreeMap<String, Arc<UserType>>,
    /// Materialized views by name.
    pub views: BTreeMap<String, Arc<View>>,
    /// Functions: those of a name are neighbours. In the order of creation since the start, before which they are sorted by name and arguments.
    pub functions: Vec<Arc<UserFunction>>,
    /// User-defined aggregates, in the same order.
    pub aggregates: Vec<Arc<UserAggregate>>,
}

impl Keyspace {
    /// An empty keyspace.
    #[must_use]
    pub fn new(name: &str, replication: BTreeMap<String, String>, durable_writes: bool) -> Self {
        Self {
            name: name.to_owned(),
            durable_writes,
            replication,
            throughput: None,
            throughput_highest: 0,
            is_virtual: false,
            tables: OrdMap::new(),
            types: BTreeMap::new(),
            views: BTreeMap::new(),
            functions: Vec::new(),
            aggregates: Vec::new(),
        }
    }

    /// The table or materialized view of this name.
    #[must_use]
    pub fn table_or_view(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables
            .get(name)
            .or_else(|| self.views.get(name).map(|view| &view.table))
    }

    /// Tables by name, then views by name.
    pub fn all_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values().chain(self.views.values().map(|view| &view.table))
    }

    /// The tables and views that are new or different since `was`. The cost depends on the changes, not on the schema's
    /// size; only views are all compared.
    pub fn tables_since<'a>(&'a self, was: &'a Self) -> impl Iterator<Item = &'a Arc<Table>> {
        let tables = table_changes(Some(was), Some(self)).filter_map(|(_, is)| is);
        let is_same = |name: &String, view: &Arc<View>| was.views.get(name).is_some_and(|old| Arc::ptr_eq(old, view));
        let views = self.views.iter().filter(move |(name, view)| !is_same(name, view));
        tables.chain(views.map(|(_, view)| &view.table))
    }

    /// The views of this base table, by name.
    pub fn views_of(&self, table: &str) -> impl Iterator<Item = &Arc<View>> {
        self.views.values().filter(move |view| view.base_table == table)
    }

    /// The table that has the index of this name.
    #[must_use]
    pub fn indexed_table(&self, index: &str) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.indexes.contains_key(index))
    }
}

/// A column's number inside its table. A DROP never frees the number, and an ADD of the same name takes it again, so DROP
/// and ADD rewrite no rows. All cells that a column ever had compete by their timestamps.
pub type ColumnId = u32;

/// The number of a table, view or index in the store. TRUNCATE and re-creation assign a new one.
pub type StorageId = u32;

/// The part of the row that a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnKind {
    /// Part of the partition key.
    PartitionKey,
    /// A clustering column.
    Clustering,
    /// One value for the whole partition: a static column.
    Static,
    /// One value for each row: a regular column.
    Regular,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its number in stored rows.
    pub id: ColumnId,
    /// Folded name.
    pub name: String,
    /// Its type.
    pub ty: CqlType,
    /// The part of the row that it belongs to.
    pub kind: ColumnKind,
    /// Position among the columns of its kind for key columns; 0 for others.
    pub position: usize,
    /// Clustering columns: sorted in descending order. Partition key columns of a view: the base table sorts them so, and
    /// IN lists of them have that order.
    pub descending: bool,
    /// A key column of text of a table that is ordered by partition key: it is sorted by its UTF-16 units.
    pub by_utf16: bool,
    /// The dynamic data mask: the function's qualified name, and its arguments after the column as CQL literals, each
    /// after its type in parentheses if the function is a user's. `None` means that values are shown.
    pub mask: Option<(String, Vec<String>)>,
}

/// The qualified name of a masking function, in the form of [`Column::mask`].
#[must_use]
pub fn mask_of(keyspace: &str, function: &str) -> String {
    format!("{}.{}", quoted(keyspace), quoted(function))
}

impl Column {
    /// Compares two of its values, as keys are ordered; whether it is descending does not matter.
    #[must_use]
    pub fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        if self.by_utf16 {
            return utf16::compare(one, other);
        }
        self.ty.compare(one, other)
    }

    /// The order of its values in a clustering key.
    #[must_use]
    pub const fn key_order(&self) -> KeyOrder {
        KeyOrder {
            descending: self.descending,
            by_utf16: self.by_utf16,
        }
    }

    /// Whether functions take it for no collection: Cassandra gives descending columns a type of another class.
    #[must_use]
    pub fn is_descending_collection(&self) -> bool {
        self.descending && self.ty.unfrozen().is_collection()
    }

    /// A value as CQL, for texts that show values to any role: keys in figures, warnings and the log. `****` if the column has a mask.
    #[must_use]
    pub fn shown(&self, value: &[u8]) -> String {
        match self.mask {
            Some(_) => "****".to_owned(),
            None => self.ty.to_literal(value),
        }
    }

    /// The keyspace and the name of the function that masks it.
    #[must_use]
    pub fn mask_function(&self) -> Option<(String, String)> {
        let (keyspace, name) = self.mask.as_ref()?.0.split_once('.')?;
        Some((unquoted(keyspace), unquoted(name)))
    }

    /// The arguments of its mask after the column, as CQL literals, each with its type if the function is a user's.
    #[must_use]
    pub fn mask_arguments(&self) -> Vec<(Option<&str>, &str)> {
        let Some((function, arguments)) = &self.mask else {
            return Vec::new();
        };
        let is_built_in = function.starts_with("system.");
        let arguments = arguments.iter().map(|argument| {
            let after = argument.strip_prefix('(').filter(|_| !is_built_in);
            let typed = after.and_then(|after| after.split_once(") "));
            typed.map_or((None, argument.as_str()), |(ty, literal)| (Some(ty), literal))
        });
        arguments.collect()
    }
}

/// A name without the quotes that it may have.
fn unquoted(name: &str) -> String {
    let inside = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    inside.map_or_else(|| name.to_owned(), |inside| inside.replace("\"\"", "\""))
}

/// A dropped column, which may have been added again since: cells dated at or before `dropped_micros` are hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedColumn {
    /// The column as it was.
    pub column: Column,
    /// The time of the drop, in µs since 1970-01-01 UTC.
    pub dropped_micros: i64,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The table's uuid as clients see it.
    pub id: Uuid,
    /// Its number in the store.
    pub storage_id: StorageId,
    /// Its keyspace.
    pub keyspace: String,
    /// Folded name.
    pub name: String,
    /// All columns in the order of `SELECT *`: partition key, clustering, static by name, regular by name.
    pub columns: Vec<Arc<Column>>,
    /// The number of partition key columns: the first ones of `columns`.
    pub partition_key_count: usize,
    /// The number of clustering columns, which follow them in `columns`.
    pub clustering_count: usize,
    /// Whether its regular columns are counters.
    pub is_counter: bool,
    /// Whether the table is virtual: the server computes its rows.
    pub is_virtual: bool,
    /// Whether it was created WITH COMPACT STORAGE. Without clustering columns its columns are static; in tables of
    /// older programs they are regular.
    pub compact_storage: bool,
    /// The options of WITH.
    pub options: TableOptions,
    /// Secondary indexes by name.
    pub indexes: BTreeMap<String, Index>,
    /// Triggers: name and class.
    pub triggers: BTreeMap<String, String>,
    /// Columns that were dropped, by name; those that were added again too.
    pub dropped: BTreeMap<String, DroppedColumn>,
    /// The number the next new column gets.
    pub next_column_id: ColumnId,
}

impl Table {
    /// The partition key's columns, in order.
    #[must_use]
    pub fn partition_key(&self) -> &[Arc<Column>] {
        self.columns.get(..self.partition_key_count).unwrap_or_default()
    }

    /// The clustering columns, in order.
    #[must_use]
    pub fn clustering(&self) -> &[Arc<Column>] {
        self.columns
            .get(self.partition_key_count..self.partition_key_count + self.clustering_count)
            .unwrap_or_default()
    }

    /// Static columns, then regular ones, each by name.
    #[must_use]
    pub fn others(&self) -> &[Arc<Column>] {
        self.columns
            .get(self.partition_key_count + self.clustering_count..)
            .unwrap_or_default()
    }

    /// The column of this (folded) name and its position in `columns`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<(usize, &Arc<Column>)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name == name)
    }

    /// Its number in the store, then the numbers of its indexes, sorted by index name, then that of its change feed.
    pub fn storage_ids(&self) -> impl Iterator<Item = StorageId> {
        let indexes = self.indexes.values().map(|index| index.storage_id);
        let derived = indexes.chain(self.feed());
        std::iter::once(self.storage_id).chain(derived.filter(|id| *id != 0))
    }

    /// As [`Table::storage_ids`], with the number of its change log, which TRUNCATE keeps.
    pub fn all_storage_ids(&self) -> impl Iterator<Item = StorageId> {
        self.storage_ids().chain(self.log())
    }

    /// The number of its change log in the store. `None` means that it has none.
    #[must_use]
    pub fn log(&self) -> Option<StorageId> {
        let log = self.options.full_fidelity?.log;
        (log != 0).then_some(log)
    }

    /// The number of its change feed in the store. `None` means that it has none.
    #[must_use]
    pub fn feed(&self) -> Option<StorageId> {
        (self.options.feed != 0).then_some(self.options.feed)
    }

    /// Whether any column has a mask.
    #[must_use]
    pub fn is_masked(&self) -> bool {
        self.columns.iter().any(|column| column.mask.is_some())
    }

    /// Whether it has COMPACT STORAGE and no clustering columns. Cassandra stores the columns of such a table as static
    /// ones, and hides a clustering column and a value column.
    #[must_use]
    pub const fn is_static_compact(&self) -> bool {
        self.compact_storage && self.clustering_count == 0
    }

    /// Whether each of its partitions has one row at most, with an empty clustering key, also after DROP COMPACT STORAGE.
    #[must_use]
    pub const fn has_one_row_per_partition(&self) -> bool {
        self.clustering_count == 0 && !self.compact_storage
    }

    /// The value column of a table with COMPACT STORAGE and clustering columns. `None` means another kind of table, or
    /// one that has only key columns.
    #[must_use]
    pub fn compact_value(&self) -> Option<&Arc<Column>> {
        if !self.compact_storage || self.clustering_count == 0 {
            return None;
        }
        self.others().first()
    }

    /// Whether it has COMPACT STORAGE and only key columns, of which some are clustering columns.
    #[must_use]
    pub fn is_compact_of_keys(&self) -> bool {
        self.compact_storage && self.clustering_count > 0 && self.others().is_empty()
    }

    /// Up to this timestamp (µs) the cells of a column are hidden: the time of its last drop. `None` means that it was
    /// never dropped.
    #[must_use]
    pub fn hidden_up_to(&self, column: &Column) -> Option<i64> {
        let dropped = self.dropped.get(&column.name)?;
        (dropped.column.id == column.id).then_some(dropped.dropped_micros)
    }

    /// Whether an INSERT writes a row marker, which makes a row without values exist. Rows of tables with COMPACT
    /// STORAGE exist by their values, if the table has value columns.
    #[must_use]
    pub fn has_markers(&self) -> bool {
        !self.is_counter && (!self.compact_storage || self.others().is_empty())
    }

    /// The clustering column and the value column that Cassandra hides in a table with COMPACT STORAGE and no
    /// clustering columns, under names that no other column has.
    #[must_use]
    pub fn hidden_names(&self) -> (String, String) {
        let is_free = |name: &String| self.column(name).is_none();
        let numbered = |stem: &'static str, first: usize| (first..).map(move |number| format!("{stem}{number}"));
        let clustering = numbered("column", 1).find(is_free).unwrap_or_default();
        let mut values = std::iter::once("value".to_owned()).chain(numbered("value", 1));
        (clustering, values.find(is_free).unwrap_or_default())
    }

    /// Whether prepared statements must be prepared again when this table becomes `after`
    /// (`TableMetadata.changeAffectsPreparedStatements`). A changed comment, for example, invalidates none.
    #[must_use]
    pub fn affects_statements(&self, after: &Self) -> bool {
        let index =
            |(was, is): (&Index, &Index)| was.name == is.name && was.kind == is.kind && was.options == is.options;
        let same_indexes =
            self.indexes.len() == after.indexes.len() && self.indexes.values().zip(after.indexes.values()).all(index);
        let compared = |table: &Self| {
            let options = &table.options;
            (options.default_time_to_live, options.cdc, options.gc_grace_seconds == 0)
        };
        // A column that was dropped and added again is the same, but its older cells are hidden.
        let same_columns = self.columns == after.columns && self.dropped == after.dropped;
        self.id != after.id || !same_columns || !same_indexes || compared(self) != compared(after)
    }

    /// Whether any column is static.
    #[must_use]
    pub fn has_static(&self) -> bool {
        self.others()
            .first()
            .is_some_and(|column| column.kind == ColumnKind::Static)
    }
}

/// The options of a table or view, with Cassandra's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names and meanings are those of system_schema.tables")]
pub struct TableOptions {
    pub additional_write_policy: String,
    pub allow_auto_snapshot: bool,
    pub bloom_filter_fp_chance: f64,
    pub caching: BTreeMap<String, String>,
    pub cdc: bool,
    pub comment: String,
    pub compaction: BTreeMap<String, String>,
    pub compression: BTreeMap<String, String>,
    pub crc_check_chance: f64,
    pub dclocal_read_repair_chance: f64,
    pub default_time_to_live: i32,
    pub extensions: BTreeMap<String, Vec<u8>>,
    pub gc_grace_seconds: i32,
    pub incremental_backups: bool,
    pub max_index_interval: i32,
    pub memtable: String,
    pub memtable_flush_period_in_ms: i32,
    pub min_index_interval: i32,
    pub read_repair: String,
    pub read_repair_chance: f64,
    pub speculative_retry: String,
    /// `helenus_partitions`: the number of physical partitions that it starts with. DESCRIBE shows it if the statement
    /// set it; no system table does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u16>,
    /// `placement = 'ordered'`: the table lies in the order of its partition key, not of its hash. Fixed when the table is made. DESCRIBE
    /// shows it; no system table does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ordered: bool,
    /// `cosmosdb_provisioned_throughput` or `cosmosdb_autoscale_max_throughput`. Shown nowhere, as in Cosmos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// The highest throughput that it ever had, in request units a second; 0 means that it never had any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throughput_highest: u32,
    /// `cosmosdb_cell_level_…`. Shown nowhere.
    #[serde(default, skip_serializing_if = "CellLevel::is_none")]
    pub cell_level: CellLevel,
    /// The number of the change feed in the store, as of an index; 0 means that the table has none. Shown nowhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub feed: StorageId,
    /// `cosmosdb_full_fidelity_…`. `None` means that the table has no change log. Shown nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_fidelity: Option<FullFidelity>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The package of compaction strategies.
pub const COMPACTION_PACKAGE: &str = "org.apache.cassandra.db.compaction.";
/// The package of compressors.
pub const COMPRESSION_PACKAGE: &str = "org.apache.cassandra.io.compress.";
/// The package of replication strategies.
pub const LOCATOR_PACKAGE: &str = "org.apache.cassandra.locator.";

impl Default for TableOptions {
    fn default() -> Self {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        Self {
            additional_write_policy: "99p".to_owned(),
            allow_auto_snapshot: true,
            bloom_filter_fp_chance: 0.01,
            caching: map(&[("keys", "ALL"), ("rows_per_partition", "NONE")]),
            cdc: false,
            comment: String::new(),
            compaction: map(&[
                (
                    "class",
                    "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy",
                ),
                ("max_threshold", "32"),
                ("min_threshold", "4"),
            ]),
            compression: map(&[
                ("chunk_length_in_kb", "16"),
                ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
            ]),
            crc_check_chance: 1.0,
            dclocal_read_repair_chance: 0.0,
            default_time_to_live: 0,
            extensions: BTreeMap::new(),
            gc_grace_seconds: 864_000,
            incremental_backups: true,
            max_index_interval: 2048,
            memtable: "default".to_owned(),
            memtable_flush_period_in_ms: 0,
            min_index_interval: 128,
            read_repair: "BLOCKING".to_owned(),
            read_repair_chance: 0.0,
            speculative_retry: "99p".to_owned(),
            partitions: None,
            is_ordered: false,
            throughput: None,
            throughput_highest: 0,
            cell_level: CellLevel::default(),
            feed: 0,
            full_fidelity: None,
        }
    }
}

/// A materialized view: a table whose rows are derived from a base table.
#[derive(Clone, Debug)]
pub struct View {
    /// The view as a table.
    pub table: Arc<Table>,
    /// The base table's name.
    pub base_table: String,
    /// The base table's uuid.
    pub base_id: Uuid,
    /// Whether the view selects all columns: `SELECT *`.
    pub include_all_columns: bool,
    /// WHERE, as CQL text.
    pub where_clause: String,
    /// The restrictions of WHERE other than IS NOT NULL, all on primary key columns of the base table.
    pub tests: Vec<ViewTest>,
}

/// A restriction of a materialized view's WHERE on key columns of the base table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewTest {
    /// The columns, by name; several mean a tuple.
    pub columns: Vec<String>,
    /// Whether they are compared as a tuple.
    pub is_tuple: bool,
    /// The operator as CQL writes it.
    pub sign: String,
    /// The operands as wire bytes.
    pub operands: Vec<Vec<u8>>,
}

/// A user-defined function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names and meanings are those of system_schema.functions")]
pub struct UserFunction {
    pub name: String,
    pub arguments: Vec<(String, CqlType)>,
    pub called_on_null_input: bool,
    pub returns: CqlType,
    pub language: String,
    pub body: String,
}

impl UserFunction {
    /// The types of its arguments.
    pub fn argument_types(&self) -> impl Iterator<Item = &CqlType> {
        self.arguments.iter().map(|(_, ty)| ty)
    }

    /// What runs it.
    #[must_use]
    pub fn definition(&self, keyspace: &Keyspace) -> UserScalar {
        UserScalar {
            keyspace: keyspace.name.clone(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
            returns: self.returns.clone(),
            takes_null: self.called_on_null_input,
            body: self.body.clone(),
            types: keyspace.types.clone(),
        }
    }
}

/// A user-defined aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names and meanings are those of system_schema.aggregates"
)]
pub struct UserAggregate {
    pub name: String,
    pub arguments: Vec<CqlType>,
    pub state_function: String,
    pub state_type: CqlType,
    pub final_function: Option<String>,
    pub initial_condition: Option<String>,
    pub returns: CqlType,
}
