//! The types that a dropped column may have when it is added again: those as which its old values can be read.
//!
//! Measured on Cassandra 5.0.9, every type against every other, which follows
//! `db.marshal.AbstractType#isSerializationCompatibleWith`. A dropped column is recorded with tuples in place of
//! user-defined types, and is never added again with such a type, except within elements of a set and keys of a map.

use crate::schema::typename;
use helenus_types::types::{CqlType, Native};

/// Whether cells of a dropped column of this recorded type can be read as cells of the other.
pub(super) fn reads_as(old: &CqlType, new: &CqlType) -> bool {
    if old.is_multi_cell() != new.is_multi_cell() {
        return false;
    }
    if is_same(old, new) {
        return true;
    }
    match (old.unfrozen(), new.unfrozen()) {
        (CqlType::List(old), CqlType::List(new)) => reads_as(old, new),
        (CqlType::Set(old), CqlType::Set(new)) => sorts_as(old, new),
        (CqlType::Map(old_key, old), CqlType::Map(new_key, new)) => sorts_as(old_key, new_key) && reads_as(old, new),
        (CqlType::Tuple(_), CqlType::Tuple(_)) => reads_within(old, new),
        (old, CqlType::Native(Native::Blob)) => !is_collection(old) && old.vector_width().is_none(),
        (CqlType::Native(_), CqlType::Native(_)) => old.vector_width() == new.vector_width() && reads_within(old, new),
        _ => false,
    }
}

/// The same for values within tuples, each of which has its length.
fn reads_within(old: &CqlType, new: &CqlType) -> bool {
    if is_same(old, new) {
        return true;
    }
    match (old.unfrozen(), new.unfrozen()) {
        (_, CqlType::Native(Native::Blob)) => true,
        (CqlType::Native(old), CqlType::Native(new)) => matches!(
            (old, new),
            (Native::Ascii, Native::Text)
                | (Native::Bigint, Native::Time | Native::Timestamp | Native::Varint)
                | (Native::Int, Native::Date | Native::Varint)
                | (Native::Timestamp, Native::Bigint | Native::Varint)
                | (Native::Timeuuid, Native::Uuid)
        ),
        (CqlType::List(old), CqlType::List(new)) => reads_within(old, new),
        (CqlType::Set(old), CqlType::Set(new)) => sorts_as(old, new),
        (CqlType::Map(old_key, old), CqlType::Map(new_key, new)) => {
            sorts_as(old_key, new_key) && reads_within(old, new)
        }
        (CqlType::Tuple(old), CqlType::Tuple(new)) => {
            old.len() <= new.len() && old.iter().zip(new.iter()).all(|(old, new)| reads_within(old, new))
        }
        _ => false,
    }
}

/// Whether elements of sets and keys of maps also keep their order.
fn sorts_as(old: &CqlType, new: &CqlType) -> bool {
    if is_same(old, new) {
        return true;
    }
    match (old.unfrozen(), new.unfrozen()) {
        (CqlType::Native(old), CqlType::Native(new)) => matches!(
            (old, new),
            (Native::Ascii, Native::Text | Native::Blob) | (Native::Text, Native::Blob)
        ),
        (CqlType::List(old), CqlType::List(new)) | (CqlType::Set(old), CqlType::Set(new)) => sorts_as(old, new),
        (CqlType::Map(old_key, old), CqlType::Map(new_key, new)) => sorts_as(old_key, new_key) && sorts_as(old, new),
        (CqlType::Tuple(old), CqlType::Tuple(new)) => {
            old.len() <= new.len() && old.iter().zip(new.iter()).all(|(old, new)| sorts_as(old, new))
        }
        (CqlType::Tuple(old), CqlType::User(new)) => {
            let fields = new.fields.iter().map(|(_, field)| field);
            old.len() <= new.fields.len() && old.iter().zip(fields).all(|(old, new)| sorts_as(old, new))
        }
        _ => false,
    }
}

fn is_collection(ty: &CqlType) -> bool {
    ty.unfrozen().is_collection()
}

/// Whether the types are the same. Some tuples are told as frozen, although all of them are.
fn is_same(old: &CqlType, new: &CqlType) -> bool {
    *old == typename::without_users(new) && !new.contains(&|inner| matches!(inner, CqlType::User(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_as_cassandra_lets_them() {
        let ty = |text: &str| typename::parse(text, &mut |_| None).unwrap();
        let allowed = [
            "int -> int",
            "ascii -> text",
            "ascii -> blob",
            "date -> blob",
            "duration -> blob",
            "bigint -> timestamp",
            "timestamp -> bigint",
            "timeuuid -> uuid",
            "set<ascii> -> set<text>",
            "set<text> -> set<blob>",
            "frozen<set<ascii>> -> frozen<set<text>>",
            "map<ascii, int> -> map<blob, int>",
            "map<int, bigint> -> map<int, timestamp>",
            "list<duration> -> list<blob>",
            "list<frozen<set<ascii>>> -> list<frozen<set<text>>>",
            "tuple<int> -> tuple<int, text>",
            "tuple<int> -> tuple<varint>",
            "tuple<bigint> -> tuple<time>",
            "tuple<frozen<list<int>>> -> tuple<frozen<list<blob>>>",
            "tuple<frozen<list<ascii>>> -> tuple<blob>",
            "tuple<int, text> -> blob",
            "vector<text, 2> -> blob",
            "set<frozen<tuple<int>>> -> set<frozen<tuple<int, text>>>",
            "list<vector<text, 2>> -> list<blob>",
        ];
        let refused = [
            "int -> text",
            "int -> blob",
            "int -> varint",
            "int -> date",
            "bigint -> time",
            "boolean -> blob",
            "text -> ascii",
            "set<int> -> frozen<set<int>>",
            "set<timeuuid> -> set<uuid>",
            "frozen<list<ascii>> -> blob",
            "frozen<list<int>> -> frozen<list<blob>>",
            "list<frozen<set<ascii>>> -> list<blob>",
            "tuple<int, text> -> tuple<int>",
            "vector<float, 2> -> blob",
            "vector<ascii, 2> -> vector<text, 2>",
            "set<smallint> -> set<blob>",
        ];
        for (cases, expected) in [(&allowed[..], true), (&refused[..], false)] {
            for case in cases {
                let (old, new) = case.split_once(" -> ").unwrap();
                let recorded = typename::without_users(&ty(old));
                assert_eq!(reads_as(&recorded, &ty(new)), expected, "{case}");
            }
        }
    }
}
