//! Types, as written where a column, field, argument or cast names one.

use crate::ast::{Name, QualifiedName, Type};
use crate::input::{Input, NameOf, Parsed, enter, expect, separated};
use crate::keyword::{Class, Kind};
use crate::name::type_name;

/// `comparator_type = native_type | collection_type | tuple_type | vector_type | frozen_type | type_name | STRING`
pub(crate) fn comparator_type(input: Input<'_>) -> Parsed<'_, Type> {
    enter("comparator_type");
    let kind = input.kind();
    let native = kind.class() == Some(Class::Native);
    let generic = matches!(kind, Kind::Map | Kind::List | Kind::Tuple | Kind::Vector | Kind::Frozen);
    if !native && !generic {
        return match kind {
            Kind::Set => collection_type(input),
            Kind::String => Ok((input.skip(1), Type::Custom(input.text().into_owned()))),
            _ if NameOf::Anything.allows(kind) => named(input),
            _ => input.no_viable(0),
        };
    }
    // A type's name may also name a keyspace: `int.my_type`. Names of parameterized types may name user-defined types.
    let next = input.ahead(1);
    if !may_follow_type(next) && next != Kind::Dot && !(generic && next == Kind::Less) {
        return input.no_viable(1);
    }
    input.decided(2);
    match kind {
        _ if next == Kind::Dot => named(input),
        _ if native => native_type(input),
        _ if next != Kind::Less => named(input),
        Kind::Tuple => tuple_type(input),
        Kind::Vector => vector_type(input),
        Kind::Frozen => frozen_type(input),
        _ => collection_type(input),
    }
}

/// The tokens that can follow a type anywhere in the language.
fn may_follow_type(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Finalfunc
            | Kind::Initcond
            | Kind::Language
            | Kind::Static
            | Kind::Masked
            | Kind::Primary
            | Kind::Comma
            | Kind::Semicolon
            | Kind::Greater
            | Kind::ParenClose
            | Kind::End
    )
}

fn named(input: Input<'_>) -> Parsed<'_, Type> {
    let (input, name) = type_name(input)?;
    Ok((input, Type::Named(name)))
}

/// `native_type = "ASCII" | "BIGINT" | "BLOB" | "BOOLEAN" | "COUNTER" | "DATE" | "DECIMAL" | "DOUBLE"
/// | "DURATION" | "FLOAT" | "INET" | "INT" | "SMALLINT" | "TEXT" | "TIME" | "TIMESTAMP"
/// | "TIMEUUID" | "TINYINT" | "UUID" | "VARCHAR" | "VARINT"`
pub(crate) fn native_type(input: Input<'_>) -> Parsed<'_, Type> {
    enter("native_type");
    if input.kind().class() != Some(Class::Native) {
        return input.no_viable(0);
    }
    let name = Name(input.text().to_ascii_lowercase());
    Ok((input.skip(1), Type::Named(QualifiedName { keyspace: None, name })))
}

/// `collection_type = "MAP" "<" comparator_type "," comparator_type ">" | ( "LIST" | "SET" ) "<" comparator_type ">"`
fn collection_type(input: Input<'_>) -> Parsed<'_, Type> {
    enter("collection_type");
    let kind = input.kind();
    let (input, ()) = expect(input.skip(1), Kind::Less)?;
    let (input, first) = input.nested(comparator_type)?;
    let (input, made) = match kind {
        Kind::Map => {
            let (input, ()) = expect(input, Kind::Comma)?;
            let (input, value) = input.nested(comparator_type)?;
            (input, Type::Map(Box::new(first), Box::new(value)))
        }
        Kind::List => (input, Type::List(Box::new(first))),
        _ => (input, Type::Set(Box::new(first))),
    };
    let (input, ()) = expect(input, Kind::Greater)?;
    Ok((input, made))
}

/// `tuple_type = "TUPLE" "<" comparator_type { "," comparator_type } ">"`
fn tuple_type(input: Input<'_>) -> Parsed<'_, Type> {
    enter("tuple_type");
    let (input, ()) = expect(input.skip(1), Kind::Less)?;
    let (input, elements) = input.nested(|input| separated(input, Kind::Comma, comparator_type))?;
    let (input, ()) = expect(input, Kind::Greater)?;
    Ok((input, Type::Tuple(elements)))
}

/// `vector_type = "VECTOR" "<" comparator_type "," INTEGER ">"`
fn vector_type(input: Input<'_>) -> Parsed<'_, Type> {
    enter("vector_type");
    let (input, ()) = expect(input.skip(1), Kind::Less)?;
    let (input, element) = input.nested(comparator_type)?;
    let (input, ()) = expect(input, Kind::Comma)?;
    let (behind, ()) = expect(input, Kind::Integer)?;
    let length = input.text().parse().unwrap_or_else(|_| {
        input.report(|| {
            format!(
                "Failed parsing statement: [{}] reason: NumberFormatException For input string: \"{}\"",
                input.whole_text(),
                input.text()
            )
        });
        0
    });
    let (input, ()) = expect(behind, Kind::Greater)?;
    Ok((input, Type::Vector(Box::new(element), length)))
}

/// `frozen_type = "FROZEN" "<" comparator_type ">"`
fn frozen_type(input: Input<'_>) -> Parsed<'_, Type> {
    enter("frozen_type");
    let (input, ()) = expect(input.skip(1), Kind::Less)?;
    let (input, inner) = input.nested(comparator_type)?;
    let (input, ()) = expect(input, Kind::Greater)?;
    if !can_be_frozen(&inner) {
        input.report(|| {
            format!("frozen<> is only allowed on collections, tuples, and user-defined types (got {inner})")
        });
    }
    Ok((input, Type::Frozen(Box::new(inner))))
}

fn can_be_frozen(inner: &Type) -> bool {
    match inner {
        Type::Custom(_) => false,
        Type::Named(QualifiedName { keyspace: None, name }) => {
            crate::keyword::keyword_kind(name.as_str().as_bytes()).and_then(Kind::class) != Some(Class::Native)
        }
        _ => true,
    }
}

/// Whether a type may begin with a token of that kind.
pub(crate) fn begins_type(kind: Kind) -> bool {
    NameOf::Anything.allows(kind) || matches!(kind, Kind::Set | Kind::String)
}
