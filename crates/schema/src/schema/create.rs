//! The CQL that recreates a schema object, byte for byte as Cassandra's DESCRIBE prints it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::names::{java_buffer_hash, java_hash_order, string_literal};
use super::typename::unfrozen_name;
use super::{
    Column, ColumnKind, DroppedColumn, Index, Keyspace, LOCATOR_PACKAGE, Table, UserAggregate, UserFunction, View,
};
use helenus_types::types::{CqlType, UserType, java_f64, quoted};

fn map(pairs: impl IntoIterator<Item = (String, String)>) -> String {
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(key, value)| format!("{}: {}", string_literal(&key), string_literal(&value)))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

fn map_of(pairs: &BTreeMap<String, String>) -> String {
    map(pairs.iter().map(|(key, value)| (key.clone(), value.clone())))
}

/// `CREATE KEYSPACE …`, or a comment for a virtual one.
pub(super) fn keyspace(keyspace: &Keyspace) -> String {
    let name = quoted(&keyspace.name);
    if keyspace.is_virtual {
        return format!(
            "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
        );
    }
    let class = keyspace
        .replication
        .get("class")
        .map(String::as_str)
        .unwrap_or_default();
    let class = class.strip_prefix(LOCATOR_PACKAGE).unwrap_or(class);
    let first = std::iter::once(("class".to_owned(), class.to_owned()));
    let others = keyspace.replication.iter().filter(|(key, _)| *key != "class");
    let replication = map(first.chain(others.map(|(key, value)| (key.clone(), value.clone()))));
    // Cassandra also prints two blanks here.
    format!(
        "CREATE KEYSPACE {name} WITH replication = {replication}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

/// `CREATE TYPE …`
pub(super) fn user_type(ty: &UserType) -> String {
    let fields: Vec<String> = ty
        .fields
        .iter()
        .map(|(name, ty)| format!("    {} {}", quoted(name), ty.cql_name()))
        .collect();
    format!(
        "CREATE TYPE {}.{} (\n{}\n);",
        quoted(&ty.keyspace),
        quoted(&ty.name),
        fields.join(",\n")
    )
}

/// `f(int, text)`: a function with its argument types, where several may share its name.
pub(super) fn signature<'a>(name: &str, types: impl IntoIterator<Item = &'a CqlType>) -> String {
    let types: Vec<String> = types.into_iter().map(unfrozen_name).collect();
    format!("{}({})", quoted(name), types.join(", "))
}

/// `CREATE FUNCTION …`
pub(super) fn function(keyspace: &str, function: &UserFunction) -> String {
    let arguments: Vec<String> = function
        .arguments
        .iter()
        .map(|(name, ty)| format!("{} {}", quoted(name), unfrozen_name(ty)))
        .collect();
    let on_null = if function.called_on_null_input {
        "CALLED"
    } else {
        "RETURNS NULL"
    };
    format!(
        "CREATE FUNCTION {}.{}({})\n    {on_null} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS $${}$$;",
        quoted(keyspace),
        quoted(&function.name),
        arguments.join(", "),
        unfrozen_name(&function.returns),
        function.language,
        function.body
    )
}

/// `CREATE AGGREGATE …`
pub(super) fn aggregate(keyspace: &str, aggregate: &UserAggregate) -> String {
    let mut text = format!(
        "CREATE AGGREGATE {}.{}\n    SFUNC {}\n    STYPE {}",
        quoted(keyspace),
        signature(&aggregate.name, &aggregate.arguments),
        quoted(&aggregate.state_function),
        unfrozen_name(&aggregate.state_type)
    );
    if let Some(function) = &aggregate.final_function {
        let _ = write!(text, "\n    FINALFUNC {}", quoted(function));
    }
    if let Some(condition) = &aggregate.initial_condition {
        let _ = write!(text, "\n    INITCOND {condition}");
    }
    text.push(';');
    text
}

/// `CREATE INDEX …`
pub(super) fn index(table: &Table, index: &Index) -> String {
    let target = index.options.get("target").map(String::as_str).unwrap_or_default();
    let on = format!("{}.{}", quoted(&table.keyspace), quoted(&table.name));
    let name = quoted(&index.name);
    if index.kind != "CUSTOM" {
        return format!("CREATE INDEX {name} ON {on} ({target});");
    }
    let class = index.options.get("class_name").map(String::as_str).unwrap_or_default();
    let others: BTreeMap<String, String> = index
        .options
        .iter()
        .filter(|(key, _)| *key != "class_name" && *key != "target")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let options = if others.is_empty() {
        String::new()
    } else {
        format!(" WITH OPTIONS = {}", map_of(&others))
    };
    format!(
        "CREATE CUSTOM INDEX {name} ON {on} ({target}) USING {}{options};",
        string_literal(class)
    )
}

/// Columns in DESCRIBE's order: within static and regular columns, single-cell columns first.
fn in_create_order(table: &Table) -> Vec<&Arc<Column>> {
    let mut columns: Vec<&Arc<Column>> = table.columns.iter().collect();
    let rank = |column: &Column| match column.kind {
        ColumnKind::PartitionKey => 0,
        ColumnKind::Clustering => 1,
        ColumnKind::Static => 2 + usize::from(column.ty.is_multi_cell()),
        ColumnKind::Regular => 4 + usize::from(column.ty.is_multi_cell()),
    };
    columns.sort_by_key(|column| rank(column));
    columns
}

fn in_drop_order(table: &Table) -> Vec<&DroppedColumn> {
    let mut dropped: Vec<&DroppedColumn> = table.dropped.values().collect();
    java_hash_order(&mut dropped, |dropped| java_buffer_hash(dropped.column.name.as_bytes()));
    dropped
}

fn column_text(table: &Table, column: &Column, ty: &CqlType) -> String {
    let mut text = format!("{} {}", quoted(&column.name), ty.cql_name());
    if column.kind == ColumnKind::Static && !table.compact_storage {
        text.push_str(" static");
    }
    if let Some((function, _)) = &column.mask {
        let arguments: Vec<&str> = column
            .mask_arguments()
            .into_iter()
            .map(|(_, literal)| literal)
            .collect();
        let _ = write!(text, " MASKED WITH {function}({})", arguments.join(", "));
    }
    text
}

fn primary_key(table: &Table) -> String {
    let names =
        |columns: &[Arc<Column>]| -> Vec<String> { columns.iter().map(|column| quoted(&column.name)).collect() };
    let mut partition = names(table.partition_key()).join(", ");
    if table.partition_key_count > 1 {
        partition = format!("({partition})");
    }
    let clustering = names(table.clustering());
    if clustering.is_empty() {
        partition
    } else {
        format!("{partition}, {}", clustering.join(", "))
    }
}

/// `CREATE TABLE …`, or a comment where CQL cannot create such a table.
pub(super) fn table(table: &Table, internals: bool) -> String {
    let name = format!("{}.{}", quoted(&table.keyspace), quoted(&table.name));
    let mut text = String::new();
    if table.is_virtual {
        let _ = write!(
            text,
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL TABLE "
        );
    } else if table.compact_storage {
        let _ = write!(
            text,
            "/*\nWarning: Table {name} omitted because it has constructs not compatible with CQL \
             (was created via legacy API).\nApproximate structure, for reference:\n\
             (this should not be used to reproduce this schema)\n\nCREATE TABLE "
        );
    } else {
        text.push_str("CREATE TABLE ");
    }
    let _ = writeln!(text, "{name} (");
    columns(table, internals, &mut text);
    text.push_str(") WITH ");

    let mut options = Vec::new();
    if table.compact_storage {
        options.push("COMPACT STORAGE".to_owned());
    }
    if internals {
        options.push(format!("ID = {}", table.id));
    }
    options.extend(clustering_order(table));
    options.extend(table_options(table, false));
    text.push_str(&options.join("\n    AND "));
    text.push(';');
    if internals {
        drops(table, &name, &mut text);
    }
    if table.is_virtual || table.compact_storage {
        text.push_str("\n*/");
    }
    text
}

fn columns(table: &Table, internals: bool, text: &mut String) {
    let dropped: BTreeSet<&String> = if internals {
        table.dropped.keys().collect()
    } else {
        BTreeSet::new()
    };
    let simple_key = table.partition_key_count == 1 && table.clustering_count == 0 && !table.compact_storage;
    let mut lines: Vec<String> = in_create_order(table)
        .into_iter()
        .filter(|column| !dropped.contains(&column.name))
        .map(|column| {
            let key = if simple_key && column.kind == ColumnKind::PartitionKey {
                " PRIMARY KEY"
            } else {
                ""
            };
            format!("    {}{key}", column_text(table, column, &column.ty))
        })
        .collect();
    if internals {
        // Dropped columns are created with the table and dropped after it, so that the new table records the drop too.
        lines.extend(
            in_drop_order(table)
                .into_iter()
                .map(|dropped| format!("    {}", column_text(table, &dropped.column, &dropped.column.ty))),
        );
    }
    if !simple_key {
        lines.push(format!("    PRIMARY KEY ({})", primary_key(table)));
    }
    text.push_str(&lines.join(",\n"));
    text.push('\n');
}

fn drops(table: &Table, name: &str, text: &mut String) {
    for dropped in in_drop_order(table) {
        let column = quoted(&dropped.column.name);
        let _ = write!(
            text,
            "\nALTER TABLE {name} DROP {column} USING TIMESTAMP {};",
            dropped.dropped_micros
        );
        if let Some((_, again)) = table.column(&dropped.column.name) {
            let _ = write!(
                text,
                "\nALTER TABLE {name} ADD {};",
                column_text(table, again, &again.ty)
            );
        }
    }
}

fn clustering_order(table: &Table) -> Option<String> {
    let mut columns: Vec<String> = table
        .clustering()
        .iter()
        .map(|column| {
            format!(
                "{} {}",
                quoted(&column.name),
                if column.descending { "DESC" } else { "ASC" }
            )
        })
        .collect();
    if columns.is_empty() && table.compact_storage {
        // The hidden clustering column that Cassandra adds to such a table.
        columns.push(format!("{} ASC", table.hidden_names().0));
    }
    (!columns.is_empty()).then(|| format!("CLUSTERING ORDER BY ({})", columns.join(", ")))
}

fn table_options(table: &Table, view: bool) -> Vec<String> {
    let o = &table.options;
    let text = |value: &str| string_literal(value);
    if table.is_virtual {
        return vec![format!("comment = {}", text(&o.comment))];
    }
    let mut options = vec![
        format!("additional_write_policy = {}", text(&o.additional_write_policy)),
        format!("allow_auto_snapshot = {}", o.allow_auto_snapshot),
        format!("bloom_filter_fp_chance = {}", java_f64(o.bloom_filter_fp_chance)),
        format!("caching = {}", map_of(&o.caching)),
        format!("cdc = {}", o.cdc),
        format!("comment = {}", text(&o.comment)),
        format!("compaction = {}", map_of(&o.compaction)),
        format!("compression = {}", map_of(&o.compression)),
        format!("memtable = {}", text(&o.memtable)),
        format!("crc_check_chance = {}", java_f64(o.crc_check_chance)),
    ];
    if !view {
        options.push(format!("default_time_to_live = {}", o.default_time_to_live));
    }
    options.extend([
        "extensions = {}".to_owned(),
        format!("gc_grace_seconds = {}", o.gc_grace_seconds),
        format!("incremental_backups = {}", o.incremental_backups),
        format!("max_index_interval = {}", o.max_index_interval),
        format!("memtable_flush_period_in_ms = {}", o.memtable_flush_period_in_ms),
        format!("min_index_interval = {}", o.min_index_interval),
        format!("read_repair = {}", text(&o.read_repair)),
        format!("speculative_retry = {}", text(&o.speculative_retry)),
    ]);
    // A Helenus option: written after Cassandra's options, and only where the statement set it.
    options.extend(o.partitions.map(|count| format!("helenus_partitions = {count}")));
    options.extend((o.is_ordered && !view).then(|| "placement = 'ordered'".to_owned()));
    options
}

/// `CREATE MATERIALIZED VIEW …`
pub(super) fn view(view: &View, internals: bool) -> String {
    let table = &view.table;
    let columns = if view.include_all_columns {
        "*".to_owned()
    } else {
        let names: Vec<String> = in_create_order(table)
            .iter()
            .map(|column| quoted(&column.name))
            .collect();
        names.join(", ")
    };
    let mut options = Vec::new();
    if internals {
        options.push(format!("ID = {}", table.id));
    }
    options.extend(clustering_order(table));
    options.extend(table_options(table, true));
    format!(
        "CREATE MATERIALIZED VIEW {keyspace}.{} AS\n    SELECT {columns}\n    FROM {keyspace}.{}\n    WHERE {}\n    \
         PRIMARY KEY ({})\n WITH {};",
        quoted(&table.name),
        quoted(&view.base_table),
        view.where_clause,
        primary_key(table),
        options.join("\n    AND "),
        keyspace = quoted(&table.keyspace),
    )
}

/// Sorts types so that each comes after the types it uses, otherwise by name.
#[must_use]
pub fn in_dependency_order(types: &BTreeMap<String, Arc<UserType>>) -> Vec<&Arc<UserType>> {
    fn visit<'a>(
        name: &str,
        types: &'a BTreeMap<String, Arc<UserType>>,
        seen: &mut BTreeSet<String>,
        order: &mut Vec<&'a Arc<UserType>>,
    ) {
        let Some(ty) = types.get(name).filter(|_| seen.insert(name.to_owned())) else {
            return;
        };
        let mut inside = BTreeSet::new();
        for (_, field) in &ty.fields {
            users_in(field, &mut inside);
        }
        for name in inside {
            visit(&name, types, seen, order);
        }
        order.push(ty);
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for name in types.keys() {
        visit(name, types, &mut seen, &mut order);
    }
    order
}

fn users_in(ty: &CqlType, into: &mut BTreeSet<String>) {
    match ty {
        CqlType::Native(_) | CqlType::Custom(_) => {}
        CqlType::Frozen(inner) | CqlType::List(inner) | CqlType::Set(inner) | CqlType::Vector(inner, _) => {
            users_in(inner, into);
        }
        CqlType::Map(key, value) => {
            users_in(key, into);
            users_in(value, into);
        }
        CqlType::Tuple(elements) => elements.iter().for_each(|element| users_in(element, into)),
        CqlType::User(user) => {
            into.insert(user.name.clone());
        }
    }
}
