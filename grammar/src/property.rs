//! WITH: the properties of keyspaces, tables, views and indexes.

use std::collections::HashSet;

use crate::ast::{Literal, Name, Property, PropertyValue, Term};
use crate::input::{Input, NameOf, Parsed, enter, expect, separated};
use crate::keyword::Kind;
use crate::name::ident;
use crate::term::{constant, is_constant, map_literal};

/// `properties = property { "AND" property }`
pub(crate) fn properties(input: Input<'_>) -> Parsed<'_, Vec<Property>> {
    enter("properties");
    let mut seen = HashSet::new();
    separated(input, Kind::And, |input| {
        let (rest, property) = property(input)?;
        refuse_twice(rest, &mut seen, &property.name);
        Ok((rest, property))
    })
}

/// Reports a repeated property.
pub(crate) fn refuse_twice(input: Input<'_>, seen: &mut HashSet<Name>, name: &Name) {
    if !seen.insert(name.clone()) {
        input.report(|| format!("Multiple definitions for property '{}'", name.as_str()));
    }
}

/// `property = ident "=" ( property_value | map_literal )`
pub(crate) fn property(input: Input<'_>) -> Parsed<'_, Property> {
    enter("property");
    if !NameOf::Anything.allows(input.kind()) {
        return input.no_viable(0);
    }
    if input.ahead(1) != Kind::Equals {
        return input.no_viable(1);
    }
    let value = input.ahead(2);
    if value != Kind::BraceOpen && !is_constant(value) && !NameOf::Anything.allows(value)
        || matches!(value, Kind::Ident | Kind::QuotedName)
    {
        return input.no_viable(2);
    }
    input.decided(3);
    let (input, name) = ident(input)?;
    let (input, ()) = expect(input, Kind::Equals)?;
    if input.is(Kind::BraceOpen) {
        let (input, entries) = map_literal(input)?;
        let entries = property_map(input, entries);
        return Ok((
            input,
            Property {
                name,
                value: PropertyValue::Map(entries),
            },
        ));
    }
    let (input, value) = property_value(input)?;
    Ok((
        input,
        Property {
            name,
            value: PropertyValue::Literal(value),
        },
    ))
}

/// `property_value = constant | UNRESERVED_KEYWORD`
fn property_value(input: Input<'_>) -> Parsed<'_, Literal> {
    enter("property_value");
    if is_constant(input.kind()) {
        return constant(input);
    }
    let word = input.text();
    let native = crate::term::is_native(input.kind());
    let word = if native {
        word.to_ascii_lowercase()
    } else {
        word.into_owned()
    };
    Ok((input.skip(1), Literal::String(word)))
}

/// A map of constants; other terms in it are reported.
pub(crate) fn property_map(input: Input<'_>, entries: Vec<(Term, Term)>) -> Vec<(Literal, Literal)> {
    let mut made = Vec::with_capacity(entries.len());
    let mut seen = HashSet::new();
    let hint = |term: &Term| match term {
        Term::BindMarker { .. } => " (bind variables are not supported in DDL queries)",
        _ => "",
    };
    for (key, value) in entries {
        let key = match key {
            Term::Literal(literal) if literal != Literal::Null => literal,
            other => {
                input.report(|| format!("Invalid property name: {other}{}", hint(&other)));
                break;
            }
        };
        let value = match value {
            Term::Literal(literal) if literal != Literal::Null => literal,
            other => {
                input.report(|| format!("Invalid property value: {other} for property: {key}{}", hint(&other)));
                break;
            }
        };
        if !seen.insert(raw(&key)) {
            input.report(|| format!("Multiple definition for property {}", raw(&key)));
        }
        made.push((key, value));
    }
    made
}

/// A constant's text without quotes. Cassandra compares keys by this text.
fn raw(literal: &Literal) -> String {
    match literal {
        Literal::String(text) => text.clone(),
        other => other.to_string(),
    }
}
