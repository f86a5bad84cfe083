//! `system_schema` and `system_virtual_schema`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cells;
use super::encode::{bigint, boolean, double, int, map, text, text_list, text_map, text_set, uuid};
use crate::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableOptions};
use crate::types::{CqlType, Native};

/// What is asked for; `None` is all.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) keyspace: Option<&'a str>,
    /// The table, where the table that is read is clustered by the name of one.
    pub(super) table: Option<&'a str>,
}

impl Asked<'_> {
    /// The keyspaces that are asked for, virtual ones or the others.
    fn keyspaces<'s>(self, schema: &'s Schema, made: bool) -> Vec<&'s Keyspace> {
        let of = |keyspace: &&'s Arc<Keyspace>| keyspace.is_virtual == made;
        match self.keyspace {
            Some(name) => schema
                .keyspace(name)
                .filter(of)
                .map(AsRef::as_ref)
                .into_iter()
                .collect(),
            None => schema.keyspaces.values().filter(of).map(AsRef::as_ref).collect(),
        }
    }

    /// The tables of a keyspace that are asked for, by name.
    fn tables(self, keyspace: &Keyspace) -> Vec<&Table> {
        match self.table {
            Some(name) => keyspace.tables.get(name).map(AsRef::as_ref).into_iter().collect(),
            None => keyspace.tables.values().map(AsRef::as_ref).collect(),
        }
    }

    /// The tables and views of a keyspace that are asked for, by name.
    fn tables_and_views(self, keyspace: &Keyspace) -> Vec<&Table> {
        if let Some(name) = self.table {
            return keyspace.table_or_view(name).map(AsRef::as_ref).into_iter().collect();
        }
        let mut all: Vec<&Table> = keyspace.all_tables().map(AsRef::as_ref).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// Rows of `system_schema`, each keyspace's in clustering order.
pub(super) fn stored(table: &str, schema: &Schema, asked: Asked<'_>) -> Vec<Cells> {
    let each = |keyspace: &Keyspace| -> Vec<Cells> {
        let tables = || asked.tables(keyspace).into_iter();
        let with_views = || asked.tables_and_views(keyspace).into_iter();
        match table {
            "keyspaces" => vec![
                Cells::new()
                    .set("keyspace_name", text(&keyspace.name))
                    .set("durable_writes", boolean(keyspace.durable_writes))
                    .set("replication", text_map(&keyspace.replication)),
            ],
            "tables" => tables().map(table_row).collect(),
            "columns" => with_views().flat_map(columns).collect(),
            "column_masks" => with_views().flat_map(masks).collect(),
            "dropped_columns" => with_views().flat_map(dropped).collect(),
            "indexes" => tables().flat_map(indexes).collect(),
            "triggers" => tables().flat_map(triggers).collect(),
            "types" => types(keyspace),
            "views" => views(keyspace),
            "functions" => functions(keyspace),
            "aggregates" => aggregates(keyspace),
            _ => Vec::new(),
        }
    };
    asked.keyspaces(schema, false).into_iter().flat_map(each).collect()
}

/// Rows of `system_virtual_schema`.
pub(super) fn made(table: &str, schema: &Schema, asked: Asked<'_>) -> Vec<Cells> {
    let each = |keyspace: &Keyspace| -> Vec<Cells> {
        let tables = || asked.tables(keyspace).into_iter();
        match table {
            "keyspaces" => vec![Cells::new().set("keyspace_name", text(&keyspace.name))],
            "tables" => tables()
                .map(|table| named(table).set("comment", text(&table.options.comment)))
                .collect(),
            "columns" => tables().flat_map(columns).collect(),
            _ => Vec::new(),
        }
    };
    asked.keyspaces(schema, true).into_iter().flat_map(each).collect()
}

fn named(table: &Table) -> Cells {
    Cells::new()
        .set("keyspace_name", text(&table.keyspace))
        .set("table_name", text(&table.name))
}

/// The options. Those that are as the node's own configuration has them are null, as in Cassandra, which keeps them so for the
/// sake of older nodes.
fn with_options(cells: Cells, o: &TableOptions) -> Cells {
    let extensions: Vec<_> = o
        .extensions
        .iter()
        .map(|(name, value)| (text(name), bytes::Bytes::copy_from_slice(value)))
        .collect();
    cells
        .set("additional_write_policy", text(&o.additional_write_policy))
        .set_if("allow_auto_snapshot", (!o.allow_auto_snapshot).then(|| boolean(false)))
        .set("bloom_filter_fp_chance", double(o.bloom_filter_fp_chance))
        .set("caching", text_map(&o.caching))
        .set("comment", text(&o.comment))
        .set("compaction", text_map(&o.compaction))
        .set("compression", text_map(&o.compression))
        .set("crc_check_chance", double(o.crc_check_chance))
        .set("dclocal_read_repair_chance", double(o.dclocal_read_repair_chance))
        .set("default_time_to_live", int(o.default_time_to_live))
        .set("extensions", map(&extensions))
        .set("gc_grace_seconds", int(o.gc_grace_seconds))
        .set_if("incremental_backups", (!o.incremental_backups).then(|| boolean(false)))
        .set("max_index_interval", int(o.max_index_interval))
        .set_if("memtable", (o.memtable != "default").then(|| text(&o.memtable)))
        .set("memtable_flush_period_in_ms", int(o.memtable_flush_period_in_ms))
        .set("min_index_interval", int(o.min_index_interval))
        .set("read_repair", text(&o.read_repair))
        .set("read_repair_chance", double(o.read_repair_chance))
        .set("speculative_retry", text(&o.speculative_retry))
}

fn table_row(table: &Table) -> Cells {
    let mut flags = Vec::new();
    if !table.compact_storage {
        flags.push("compound");
    } else if table.clustering_count > 0 {
        flags.push("dense");
    }
    if table.is_counter {
        flags.push("counter");
    }
    with_options(named(table), &table.options)
        .set("flags", text_set(flags))
        .set("id", uuid(table.id))
}

fn kind(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::PartitionKey => "partition_key",
        ColumnKind::Clustering => "clustering",
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    }
}

/// The columns of a table by name. Tables with compact storage have, as in Cassandra, columns that only this table shows.
fn columns(table: &Table) -> Vec<Cells> {
    let mut all: BTreeMap<String, Column> = table
        .columns
        .iter()
        .map(|column| (column.name.clone(), Column::clone(column)))
        .collect();
    if table.compact_storage {
        add_hidden(table, &mut all);
    }
    all.values()
        .map(|column| {
            let order = match (column.kind, column.descending) {
                (ColumnKind::Clustering, true) => "desc",
                (ColumnKind::Clustering, false) => "asc",
                _ => "none",
            };
            let position = match column.kind {
                ColumnKind::PartitionKey | ColumnKind::Clustering => i32::try_from(column.position).unwrap_or(i32::MAX),
                ColumnKind::Static | ColumnKind::Regular => -1,
            };
            named(table)
                .set("column_name", text(&column.name))
                .set("clustering_order", text(order))
                .set("column_name_bytes", text(&column.name))
                .set("kind", text(kind(column.kind)))
                .set("position", int(position))
                .set("type", text(&column.ty.cql_name()))
        })
        .collect()
}

fn add_hidden(table: &Table, all: &mut BTreeMap<String, Column>) {
    let hidden = |name: &str, ty: Native, kind: ColumnKind| Column {
        id: 0,
        name: name.to_owned(),
        ty: CqlType::Native(ty),
        kind,
        position: 0,
        descending: false,
        mask: None,
    };
    if table.clustering_count == 0 {
        for column in all.values_mut().filter(|column| column.kind == ColumnKind::Regular) {
            column.kind = ColumnKind::Static;
        }
        let value = if table.is_counter {
            Native::Counter
        } else {
            Native::Blob
        };
        all.insert(
            "column1".to_owned(),
            hidden("column1", Native::Text, ColumnKind::Clustering),
        );
        all.insert("value".to_owned(), hidden("value", value, ColumnKind::Regular));
    } else if table.others().is_empty() {
        all.insert("value".to_owned(), hidden("value", Native::Empty, ColumnKind::Regular));
    }
}

fn masks(table: &Table) -> Vec<Cells> {
    let mut masked: Vec<_> = table.columns.iter().filter(|column| column.mask.is_some()).collect();
    masked.sort_by(|a, b| a.name.cmp(&b.name));
    masked
        .into_iter()
        .filter_map(|column| {
            let (function, arguments) = column.mask.as_ref()?;
            let (keyspace, name) = function.split_once('.').unwrap_or(("system", function));
            let is_null = |argument: &&String| argument.eq_ignore_ascii_case("null");
            let nulls: Vec<_> = arguments.iter().map(|argument| boolean(is_null(&argument))).collect();
            let types: Vec<String> = (0..arguments.len())
                .map(|place| mask_argument(name, place, column))
                .collect();
            let values = arguments.iter().map(|argument| {
                if is_null(&argument) {
                    ""
                } else {
                    argument.trim_matches('\'')
                }
            });
            Some(
                named(table)
                    .set("column_name", text(&column.name))
                    .set("function_argument_nulls", super::encode::list(&nulls))
                    .set("function_argument_types", text_list(types.iter().map(String::as_str)))
                    .set("function_argument_values", text_list(values))
                    .set("function_keyspace", text(keyspace))
                    .set("function_name", text(name)),
            )
        })
        .collect()
}

/// The type of an argument of a masking function behind the column.
fn mask_argument(function: &str, place: usize, column: &Column) -> String {
    match (function, place) {
        ("mask_inner" | "mask_outer", 0 | 1) => "int".to_owned(),
        ("mask_replace", _) => column.ty.cql_name(),
        _ => "text".to_owned(),
    }
}

fn dropped(table: &Table) -> Vec<Cells> {
    table
        .dropped
        .values()
        .map(|dropped| {
            named(table)
                .set("column_name", text(&dropped.column.name))
                .set("dropped_time", bigint(dropped.dropped_micros.div_euclid(1000)))
                .set("kind", text(kind(dropped.column.kind)))
                .set("type", text(&dropped.column.ty.cql_name()))
        })
        .collect()
}

fn indexes(table: &Table) -> Vec<Cells> {
    table
        .indexes
        .values()
        .map(|index| {
            named(table)
                .set("index_name", text(&index.name))
                .set("kind", text(&index.kind))
                .set("options", text_map(&index.options))
        })
        .collect()
}

fn triggers(table: &Table) -> Vec<Cells> {
    table
        .triggers
        .iter()
        .map(|(name, class)| {
            let options = BTreeMap::from([("class".to_owned(), class.clone())]);
            named(table)
                .set("trigger_name", text(name))
                .set("options", text_map(&options))
        })
        .collect()
}

fn types(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .types
        .values()
        .map(|ty| {
            let types: Vec<String> = ty.fields.iter().map(|(_, field)| field.cql_name()).collect();
            Cells::new()
                .set("keyspace_name", text(&ty.keyspace))
                .set("type_name", text(&ty.name))
                .set(
                    "field_names",
                    text_list(ty.fields.iter().map(|(name, _)| name.as_str())),
                )
                .set("field_types", text_list(types.iter().map(String::as_str)))
        })
        .collect()
}

fn views(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .views
        .values()
        .map(|view| {
            let cells = Cells::new()
                .set("keyspace_name", text(&view.table.keyspace))
                .set("view_name", text(&view.table.name))
                .set("base_table_id", uuid(view.base_id))
                .set("base_table_name", text(&view.base_table))
                .set("id", uuid(view.table.id))
                .set("include_all_columns", boolean(view.include_all_columns))
                .set("where_clause", text(&view.where_clause));
            with_options(cells, &view.table.options)
        })
        .collect()
}

fn functions(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .functions
        .iter()
        .map(|function| {
            let types: Vec<String> = function.arguments.iter().map(|(_, ty)| argument(ty)).collect();
            Cells::new()
                .set("keyspace_name", text(&keyspace.name))
                .set("function_name", text(&function.name))
                .set("argument_types", text_list(types.iter().map(String::as_str)))
                .set(
                    "argument_names",
                    text_list(function.arguments.iter().map(|(name, _)| name.as_str())),
                )
                .set("body", text(&function.body))
                .set("called_on_null_input", boolean(function.called_on_null_input))
                .set("language", text(&function.language))
                .set("return_type", text(&argument(&function.returns)))
        })
        .collect()
}

/// Types of arguments are written without `frozen`, though values are of one cell.
fn argument(ty: &CqlType) -> String {
    crate::schema::typename::unfrozen_name(ty)
}

fn aggregates(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .aggregates
        .iter()
        .map(|aggregate| {
            let types: Vec<String> = aggregate.arguments.iter().map(argument).collect();
            Cells::new()
                .set("keyspace_name", text(&keyspace.name))
                .set("aggregate_name", text(&aggregate.name))
                .set("argument_types", text_list(types.iter().map(String::as_str)))
                .set_if("final_func", aggregate.final_function.as_deref().map(text))
                .set_if("initcond", aggregate.initial_condition.as_deref().map(text))
                .set("return_type", text(&argument(&aggregate.returns)))
                .set("state_func", text(&aggregate.state_function))
                .set("state_type", text(&argument(&aggregate.state_type)))
        })
        .collect()
}
