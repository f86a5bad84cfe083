//! What is doubtful about a fault plan, by the schema: a fault for a keyspace or table that does not exist hits nothing. It is no error,
//! because the table may be created later.

use helenus_engine::partition::faults::Fault;
use helenus_schema::schema::Schema;

/// Warnings about faults, a sentence each.
pub(crate) fn of<'a>(faults: impl Iterator<Item = &'a Fault>, schema: &Schema) -> Vec<String> {
    let mut warnings = Vec::new();
    for (place, fault) in faults.enumerate() {
        let number = place + 1;
        let missing = match (&fault.keyspace, &fault.table) {
            (Some(keyspace), _) if schema.keyspace(keyspace).is_none() => format!("keyspace {keyspace}"),
            (Some(keyspace), Some(table)) if !has(schema, keyspace, table) => format!("table {keyspace}.{table}"),
            (None, Some(table)) if !schema.keyspaces.keys().any(|keyspace| has(schema, keyspace, table)) => {
                format!("table {table}")
            }
            _ => continue,
        };
        warnings.push(format!("fault {number} hits nothing yet: {missing} does not exist"));
    }
    warnings
}

fn has(schema: &Schema, keyspace: &str, table: &str) -> bool {
    let is_view = || {
        schema
            .keyspace(keyspace)
            .is_some_and(|keyspace| keyspace.views.contains_key(table))
    };
    schema.table(keyspace, table).is_some() || is_view()
}
