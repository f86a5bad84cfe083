//! Where tables of an account are: a keyspace for each account, which CQL sees too.
//!
//! ```text
//! tables_ACCOUNT            keyspace
//!   edm                     type of values                       (helenus_schema::schema::entities draws both)
//!   "TABLE"                 entities, in the order of their keys; named as it was created
//!   "_service"              properties of the service and access policies of tables, by a key; no table can be named so
//! ```
//! All of it is made by intents, when the first table of an account is made. Tables that CQL makes in such a keyspace, with the layout of
//! entities, are served too.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_schema::command::{ChangeKind, ChangeTarget, SchemaChange, SchemaContext, SchemaIntent, SchemaOutcome};
use helenus_schema::roles::{Need, Permission, Resource};
use helenus_schema::schema::entities::{
    KEYSPACE_PREFIX, PARTITION_KEY, PROPERTIES, ROW_KEY, VALUE_FIELDS, VALUE_TYPE, VERSION,
};
use helenus_schema::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableOptions};
use helenus_types::types::{CqlType, Native, UserType};

use super::entity::check_table_name;
use super::fault::Fault;

/// The table of an account's settings.
pub const SETTINGS_TABLE: &str = "_service";

/// The name of an account's keyspace.
#[must_use]
pub fn keyspace_of(account: &str) -> String {
    format!("{KEYSPACE_PREFIX}{account}")
}

/// The table of entities with a name in any case; `None` means that there is none.
#[must_use]
pub fn find<'s>(schema: &'s Schema, account: &str, name: &str) -> Option<&'s Arc<Table>> {
    let keyspace = schema.keyspaces.get(&keyspace_of(account))?;
    let is_served = |table: &&Arc<Table>| table.entity_layout().is_some();
    let exact = keyspace.tables.get(name).filter(is_served);
    exact.or_else(|| {
        let mut others = keyspace.tables.values().filter(is_served);
        others.find(|table| table.name.eq_ignore_ascii_case(name))
    })
}

/// The names of an account's tables, as they were created, in the order of their names in lower case.
#[must_use]
pub fn names(schema: &Schema, account: &str) -> Vec<String> {
    let Some(keyspace) = schema.keyspaces.get(&keyspace_of(account)) else {
        return Vec::new();
    };
    let served = keyspace
        .tables
        .values()
        .filter(|table| table.entity_layout().is_some() && check_table_name(&table.name).is_ok());
    let mut names: Vec<String> = served.map(|table| table.name.clone()).collect();
    names.sort_by_key(|name| name.to_ascii_lowercase());
    names
}

/// The table of an account's settings; `None` means that there is none yet.
#[must_use]
pub fn settings<'s>(schema: &'s Schema, account: &str) -> Option<&'s Arc<Table>> {
    schema.table(&keyspace_of(account), SETTINGS_TABLE)
}

/// A change of an account's tables. Each makes the keyspace if there is none.
#[derive(Clone, Debug)]
pub struct TableIntent {
    /// The account.
    pub account: String,
    /// What is changed.
    pub change: TableChange,
}

/// What [`TableIntent`] changes.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// Makes the table of settings, if there is none.
    Settings,
    /// Makes a table of entities.
    Create(String),
    /// Removes a table of entities, whose name is in any case.
    Delete(String),
}

impl SchemaIntent for TableIntent {
    type Refusal = Fault;

    fn apply(&self, schema: &Schema, context: &SchemaContext) -> Result<SchemaOutcome, Fault> {
        let name = keyspace_of(&self.account);
        let mut keyspace = match schema.keyspaces.get(&name) {
            Some(keyspace) => Keyspace::clone(keyspace),
            None => new_keyspace(&name),
        };
        let mut outcome = SchemaOutcome::unchanged(schema);
        let (kind, table) = match &self.change {
            TableChange::Settings if keyspace.tables.contains_key(SETTINGS_TABLE) => return Ok(outcome),
            TableChange::Settings => {
                let table = settings_table(&name, context);
                keyspace.tables.insert(SETTINGS_TABLE.to_owned(), Arc::new(table));
                (ChangeKind::Created, SETTINGS_TABLE)
            }
            TableChange::Create(table) => {
                let is_same = |other: &Arc<Table>| other.name.eq_ignore_ascii_case(table);
                if keyspace.all_tables().any(is_same) {
                    return Err(Fault::TableAlreadyExists);
                }
                let value = value_type(&mut keyspace).ok_or(Fault::InternalError)?;
                let made = entity_table(&name, table, value, context);
                keyspace.tables.insert(table.clone(), Arc::new(made));
                (ChangeKind::Created, table.as_str())
            }
            TableChange::Delete(table) => {
                let found = find(schema, &self.account, table).ok_or(Fault::ResourceNotFound)?;
                keyspace.tables.remove(&found.name);
                outcome.dropped_storage = found.all_storage_ids().collect();
                (ChangeKind::Dropped, found.name.as_str())
            }
        };
        outcome.storage_id_used = kind == ChangeKind::Created;
        outcome.change = Some(SchemaChange {
            kind,
            target: ChangeTarget::Table,
            keyspace: name,
            name: table.to_owned(),
            arguments: Vec::new(),
        });
        outcome.schema = schema.with_keyspace(keyspace);
        Ok(outcome)
    }

    fn needs(&self, schema: &Schema) -> Vec<Need> {
        let name = keyspace_of(&self.account);
        match &self.change {
            TableChange::Delete(table) => vec![Need::new(Permission::Drop, Resource::table(&name, table))],
            _ if schema.keyspaces.contains_key(&name) => {
                vec![Need::new(Permission::Create, Resource::Keyspace(name.as_str().into()))]
            }
            _ => vec![Need::new(Permission::Create, Resource::AllKeyspaces)],
        }
    }
}

fn new_keyspace(name: &str) -> Keyspace {
    let replication = [
        ("class", "org.apache.cassandra.locator.SimpleStrategy"),
        ("replication_factor", "1"),
    ];
    let replication = replication.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Keyspace::new(name, replication.into(), true)
}

/// The type of values, made if there is none; `None` means that CQL made another of its name.
fn value_type(keyspace: &mut Keyspace) -> Option<Arc<UserType>> {
    let fields = VALUE_FIELDS.map(|(name, native)| (name.to_owned(), CqlType::Native(native)));
    let wanted = UserType {
        keyspace: keyspace.name.clone(),
        name: VALUE_TYPE.to_owned(),
        fields: fields.into(),
    };
    let found = keyspace.types.entry(VALUE_TYPE.to_owned());
    let found = found.or_insert_with(|| Arc::new(wanted.clone()));
    (found.fields == wanted.fields).then(|| Arc::clone(found))
}

fn column(id: u32, (name, ty): (&str, CqlType), kind: ColumnKind) -> Arc<Column> {
    Arc::new(Column {
        id,
        name: name.to_owned(),
        ty,
        kind,
        position: 0,
        descending: false,
        by_utf16: false,
        mask: None,
    })
}

fn table(keyspace: &str, name: &str, columns: Vec<Arc<Column>>, context: &SchemaContext) -> Table {
    let clustering = columns.iter().filter(|column| column.kind == ColumnKind::Clustering);
    Table {
        id: context.new_id,
        storage_id: context.storage_id,
        keyspace: keyspace.to_owned(),
        name: name.to_owned(),
        partition_key_count: 1,
        clustering_count: clustering.count(),
        is_counter: false,
        is_virtual: false,
        compact_storage: false,
        options: TableOptions::default(),
        indexes: BTreeMap::new(),
        triggers: BTreeMap::new(),
        dropped: BTreeMap::new(),
        next_column_id: u32::try_from(columns.len()).unwrap_or(u32::MAX),
        columns,
    }
}

fn entity_table(keyspace: &str, name: &str, value: Arc<UserType>, context: &SchemaContext) -> Table {
    let text = || CqlType::Native(Native::Text);
    let value = CqlType::Frozen(Arc::new(CqlType::User(value)));
    let properties = CqlType::Map(Arc::new(text()), Arc::new(value));
    let key = |id, name, kind| {
        let mut key = column(id, (name, text()), kind);
        Arc::make_mut(&mut key).by_utf16 = true;
        key
    };
    let columns = vec![
        key(0, PARTITION_KEY, ColumnKind::PartitionKey),
        key(1, ROW_KEY, ColumnKind::Clustering),
        column(2, (PROPERTIES, properties), ColumnKind::Regular),
        column(3, (VERSION, CqlType::Native(Native::Bigint)), ColumnKind::Regular),
    ];
    let mut made = table(keyspace, name, columns, context);
    made.options.is_ordered = true;
    made
}

fn settings_table(keyspace: &str, context: &SchemaContext) -> Table {
    let columns = vec![
        column(0, ("key", CqlType::Native(Native::Text)), ColumnKind::PartitionKey),
        column(1, ("value", CqlType::Native(Native::Blob)), ColumnKind::Regular),
    ];
    table(keyspace, SETTINGS_TABLE, columns, context)
}
