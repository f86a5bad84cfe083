//! Values in the planner: the interface to `types` for literals, bound bytes and elements of collections.

use bytes::Bytes;
use grammar::ast;

use super::error::Error;
use super::refusal::{BoundRefusal, NameRefusal, ValueRefusal};
use crate::command::Value;
use crate::schema::Schema;
use helenus_types::types::{self, CqlType, UserType};

/// Whether the type is a list, set or map.
pub(crate) fn is_collection(ty: &CqlType) -> bool {
    matches!(ty.unfrozen(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}

/// Resolves a type as written; user-defined types without a keyspace are those of `keyspace`.
pub(crate) fn resolve_type(schema: &Schema, keyspace: &str, ty: &ast::Type) -> Result<CqlType, Error> {
    if let Some(other) = foreign_keyspace(ty, keyspace) {
        return Err(NameRefusal::ForeignType {
            keyspace: keyspace.to_owned(),
            other: other.to_owned(),
        }
        .into());
    }
    CqlType::from_ast(ty, &|name: &ast::QualifiedName| {
        let keyspace = name.keyspace.as_ref().map_or(keyspace, |name| name.as_str());
        schema.keyspaces.get(keyspace)?.types.get(name.name.as_str()).cloned()
    })
    .map_err(|error| match error {
        types::TypeError::Unknown(mut name) => {
            name.keyspace.get_or_insert_with(|| ast::Name(keyspace.to_owned()));
            NameRefusal::Type(types::TypeError::Unknown(name)).into()
        }
        error => NameRefusal::Type(error).into(),
    })
}

/// The first other keyspace that a type names, if any.
pub(crate) fn foreign_keyspace<'t>(ty: &'t ast::Type, keyspace: &str) -> Option<&'t str> {
    match ty {
        ast::Type::Named(name) => name
            .keyspace
            .as_ref()
            .map(ast::Name::as_str)
            .filter(|other| *other != keyspace),
        ast::Type::Custom(_) => None,
        ast::Type::List(inner) | ast::Type::Set(inner) | ast::Type::Vector(inner, _) | ast::Type::Frozen(inner) => {
            foreign_keyspace(inner, keyspace)
        }
        ast::Type::Map(key, value) => foreign_keyspace(key, keyspace).or_else(|| foreign_keyspace(value, keyspace)),
        ast::Type::Tuple(elements) => elements.iter().find_map(|element| foreign_keyspace(element, keyspace)),
    }
}

/// Validates a bound value and returns the canonical encoding of its type: sets and maps sorted.
#[inline]
pub(crate) fn bound(ty: &CqlType, bytes: &Bytes) -> Result<Bytes, Error> {
    ty.normalize(bytes).map_err(|error| ValueRefusal::Marshal(error).into())
}

/// Reads one `[bytes]` with an i32 length; `Some(None)` means null.
fn read<'a>(input: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, rest) = input.split_first_chunk::<4>()?;
    let length = i32::from_be_bytes(*length);
    let Ok(length) = usize::try_from(length) else {
        *input = rest;
        return Some(None);
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some(Some(value))
}

/// The elements of a list or set, of valid bytes; nulls are left out.
pub(crate) fn elements(bytes: &Bytes) -> Vec<Bytes> {
    let mut rest = bytes.get(4..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some(element) = read(&mut rest) {
        found.extend(element.map(|element| bytes.slice_ref(element)));
    }
    found
}

/// The elements of a list of valid bytes, nulls included.
pub(crate) fn nullable_elements(bytes: &Bytes) -> Vec<Option<Bytes>> {
    let mut rest = bytes.get(4..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some(element) = read(&mut rest) {
        found.push(element.map(|element| bytes.slice_ref(element)));
    }
    found
}

/// The entries of a map, of valid bytes.
pub(crate) fn pairs(bytes: &Bytes) -> Vec<(Bytes, Bytes)> {
    let all = elements(bytes);
    all.chunks_exact(2)
        .filter_map(|pair| match pair {
            [key, value] => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect()
}

/// The components of a tuple or user-defined type; missing trailing ones are null.
pub(crate) fn fields(bytes: &Bytes, count: usize) -> Vec<Option<Bytes>> {
    let mut rest: &[u8] = bytes;
    (0..count)
        .map(|_| read(&mut rest).flatten().map(|field| bytes.slice_ref(field)))
        .collect()
}

/// Encodes a value from its parts; sets and maps are sorted and without duplicates.
///
/// # Errors
///
/// A part of a collection is null or unset, or a part of a tuple or a frozen user-defined type is unset.
pub(crate) fn construct(ty: &CqlType, values: Vec<Value>) -> Result<Bytes, Error> {
    match ty.unfrozen() {
        CqlType::List(_) => Ok(types::encode_list(slices(&whole(values, "collections")?))),
        CqlType::Set(of) => Ok(of.encode_set(slices(&whole(values, "collections")?).collect())),
        CqlType::Map(key, _) => {
            let parts = whole(values, "collections")?;
            let entries = parts.chunks_exact(2).filter_map(|pair| match pair {
                [key, value] => Some((&**key, &**value)),
                _ => None,
            });
            Ok(key.encode_sorted_map(entries.collect()))
        }
        CqlType::Vector(of, _) => Ok(of.encode_vector(slices(&whole(values, "vectors")?))),
        of => {
            // They are written whole, so an unset field cannot leave what is there.
            if let Some(field) = values.iter().position(|value| *value == Value::Unset) {
                match of {
                    CqlType::Tuple(_) => return Err(BoundRefusal::UnsetField(field).into()),
                    CqlType::User(user) if matches!(ty, CqlType::Frozen(_)) => {
                        return Err(unset_field(user, field).into());
                    }
                    // Differs: Cassandra writes a value without bytes to such a field of a type that is not frozen.
                    _ => {}
                }
            }
            Ok(types::encode_tuple(values.iter().map(|value| match value {
                Value::Bytes(bytes) => Some(&**bytes),
                Value::Null | Value::Unset => None,
            })))
        }
    }
}

fn unset_field(user: &UserType, field: usize) -> ValueRefusal {
    ValueRefusal::UnsetField {
        field: user.fields.get(field).map(|(name, _)| name.clone()).unwrap_or_default(),
        user: user.name.clone(),
    }
}

fn slices(values: &[Bytes]) -> impl Iterator<Item = &[u8]> {
    values.iter().map(|value| &**value)
}

/// The bytes of values; refuses null and unset ones.
fn whole(values: Vec<Value>, what: &'static str) -> Result<Vec<Bytes>, Error> {
    values
        .into_iter()
        .map(|value| match value {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Null => Err(ValueRefusal::NullInside(what).into()),
            Value::Unset => Err(ValueRefusal::UnsetInside(what).into()),
        })
        .collect()
}

/// The value of an int.
pub(crate) fn int(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_be_bytes)
}

/// The value of a bigint.
pub(crate) fn bigint(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}
