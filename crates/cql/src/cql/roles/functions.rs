//! Functions and aggregates as resources of permissions.

use std::sync::Arc;

use helenus_schema::command::SchemaChange;
use helenus_schema::planner::ddl::functions;
use helenus_schema::roles::{Resource, Signature};
use helenus_schema::schema::{Schema, UserAggregate, UserFunction, typename};
use helenus_types::types::CqlType;

/// Whether there is a function or an aggregate of this signature.
pub(in crate::cql) fn has_function(schema: &Schema, signature: &Signature) -> bool {
    let keyspace = schema.keyspace(&signature.keyspace);
    keyspace.is_some_and(|keyspace| {
        functions(keyspace, &signature.name)
            .any(|function| matches!(function, Resource::Function(of) if *of == *signature))
    })
}

/// The function or aggregate that was made. `None` means that it is gone already.
pub(in crate::cql) fn changed(schema: &Schema, change: &SchemaChange) -> Option<Resource> {
    let keyspace = schema.keyspace(&change.keyspace)?;
    let is_changed = |name: &str, types: &mut dyn Iterator<Item = &CqlType>| {
        name == change.name && types.map(typename::written_name).eq(change.arguments.iter().cloned())
    };
    let scalar = |function: &&Arc<UserFunction>| is_changed(&function.name, &mut function.argument_types());
    let aggregate = |aggregate: &&Arc<UserAggregate>| is_changed(&aggregate.name, &mut aggregate.arguments.iter());
    let of = |types: Vec<&CqlType>| Resource::function(&keyspace.name, &change.name, types);
    let found = keyspace
        .functions
        .iter()
        .find(scalar)
        .map(|function| of(function.argument_types().collect()));
    found.or_else(|| {
        let found = keyspace.aggregates.iter().find(aggregate)?;
        Some(of(found.arguments.iter().collect()))
    })
}
