//! Resolves the types in a keyspace's statements, with the rules on the keyspace of user-defined types.

use std::sync::Arc;

use grammar::ast::{Name, QualifiedName, Type};

use super::refusal::ColumnTypeRefusal;
use crate::schema::Keyspace;
use helenus_types::types::{CqlType, Native, TypeError, UserType};

/// Maximum number of bytes of the name of a column, field or type: the length of a protocol `[string]`, less the
/// keyspace's name and the marks beside it in a record's key.
const NAME_BYTES_MAX: usize = 65_000;

/// Resolves a type; its user-defined types are those of the keyspace.
pub(super) fn resolve(written: &Type, keyspace: &Keyspace) -> Result<CqlType, ColumnTypeRefusal> {
    foreign(written, keyspace)?;
    let user = |name: &QualifiedName| -> Option<Arc<UserType>> { keyspace.types.get(name.name.as_str()).cloned() };
    let named = |error| match error {
        TypeError::Unknown(mut name) => {
            name.keyspace.get_or_insert_with(|| Name(keyspace.name.clone()));
            TypeError::Unknown(name)
        }
        error => error,
    };
    CqlType::from_ast(written, &user).map_err(|error| ColumnTypeRefusal::Type(named(error)))
}

/// Runs the checks of Cassandra's parser, before any other check: refuses `frozen<int>` and classes that do not exist.
pub(super) fn check_syntax(written: &Type) -> Result<(), ColumnTypeRefusal> {
    let inside: Vec<&Type> = match written {
        Type::Named(_) | Type::Custom(_) => Vec::new(),
        Type::List(inner) | Type::Set(inner) | Type::Vector(inner, _) | Type::Frozen(inner) => vec![inner],
        Type::Map(key, value) => vec![key, value],
        Type::Tuple(elements) => elements.iter().collect(),
    };
    inside.into_iter().try_for_each(check_syntax)?;
    if !matches!(written, Type::Frozen(_) | Type::Custom(_)) {
        return Ok(());
    }
    let any = |name: &QualifiedName| {
        Some(Arc::new(UserType {
            keyspace: String::new(),
            name: name.name.as_str().to_owned(),
            fields: Vec::new(),
        }))
    };
    match CqlType::from_ast(written, &any) {
        Err(error) if error.is_syntax() => Err(ColumnTypeRefusal::Type(error)),
        _ => Ok(()),
    }
}

/// Like [`resolve`], but frozen: the types of a function's arguments and result.
pub(super) fn resolve_frozen(written: &Type, keyspace: &Keyspace) -> Result<CqlType, ColumnTypeRefusal> {
    // Only the type itself is frozen implicitly, and no type in it.
    resolve(written, keyspace)?;
    let frozen = match written {
        Type::List(_) | Type::Set(_) | Type::Map(..) => Type::Frozen(Box::new(written.clone())),
        Type::Named(_) if is_user(written) => Type::Frozen(Box::new(written.clone())),
        _ => written.clone(),
    };
    resolve(&frozen, keyspace)
}

/// Refuses user-defined types of other keyspaces.
fn foreign(written: &Type, keyspace: &Keyspace) -> Result<(), ColumnTypeRefusal> {
    match crate::planner::value::foreign_keyspace(written, &keyspace.name) {
        Some(other) => Err(ColumnTypeRefusal::Foreign {
            keyspace: keyspace.name.clone(),
            other: other.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Whether the type is written as the class of a descending order: `'ReversedType(Int32Type)'`. A clustering column is
/// then descending even with CLUSTERING ORDER BY … ASC; for other columns it has no effect.
pub(super) fn is_reversed(written: &Type) -> bool {
    let Type::Custom(class) = written else { return false };
    let class = class.trim_start();
    let name = class.strip_prefix("org.apache.cassandra.db.marshal.").unwrap_or(class);
    let rest = name.strip_prefix("ReversedType");
    rest.is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// Whether the type is written as a counter.
pub(super) fn is_counter(written: &Type) -> bool {
    matches!(written, Type::Named(name) if name.keyspace.is_none() && name.name.as_str() == "counter")
}

/// Whether the type is written as a user-defined type, not frozen.
pub(super) fn is_user(written: &Type) -> bool {
    matches!(written, Type::Named(name) if name.keyspace.is_some() || Native::named(name.name.as_str()).is_none())
}

/// Refuses a non-frozen user-defined type that contains a multi-cell type.
pub(super) fn check_nested(ty: &CqlType) -> Result<(), ColumnTypeRefusal> {
    match ty {
        CqlType::User(user) if user.fields.iter().any(|(_, field)| field.is_multi_cell()) => {
            Err(ColumnTypeRefusal::Nested)
        }
        _ => Ok(()),
    }
}

/// Refuses a name of a column, field or type that no message can carry.
///
/// Differs: Cassandra accepts it, and sends it cut to its length modulo 65536.
pub(super) fn check_length(what: &'static str, name: &str) -> Result<(), ColumnTypeRefusal> {
    if name.len() > NAME_BYTES_MAX {
        return Err(ColumnTypeRefusal::NameLength {
            what,
            bytes: name.len(),
            bytes_max: NAME_BYTES_MAX,
        });
    }
    Ok(())
}
