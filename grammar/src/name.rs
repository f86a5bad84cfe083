//! Names: of columns, tables, types, functions, indexes, roles.

use crate::ast::{Name, QualifiedName};
use crate::input::{Input, NameOf, Parsed, enter, expect, folded};
use crate::keyword::Kind;

/// `ident = IDENT | QUOTED_NAME | UNRESERVED_KEYWORD`
pub(crate) fn ident(input: Input<'_>) -> Parsed<'_, Name> {
    enter("ident");
    if NameOf::Anything.allows(input.kind()) {
        Ok((input.skip(1), folded(input)))
    } else {
        input.no_viable(0)
    }
}

/// `column_name = '""' | ident`: old tables may have a column with an empty name.
pub(crate) fn column_name(input: Input<'_>) -> Parsed<'_, Name> {
    enter("column_name");
    if input.is(Kind::EmptyQuotedName) {
        Ok((input.skip(1), Name(String::new())))
    } else {
        ident(input)
    }
}

/// Whether a column's name begins here.
pub(crate) fn is_column_name(kind: Kind) -> bool {
    kind == Kind::EmptyQuotedName || NameOf::Anything.allows(kind)
}

/// A name where the grammar also allows a bind marker; a marker is reported as an error.
fn name_or_marker<'a>(input: Input<'a>, of: &'static str) -> Parsed<'a, Name> {
    if input.is(Kind::QuestionMark) {
        input.report(|| format!("Bind variables cannot be used for {of} names"));
        return Ok((input.skip(1), Name(String::new())));
    }
    ident(input)
}

/// `keyspace_name = ident`
pub(crate) fn keyspace_name(input: Input<'_>) -> Parsed<'_, Name> {
    enter("keyspace_name");
    name_or_marker(input, "keyspace")
}

/// `[ keyspace_name "." ] name`. The second token decides, so it must be one that can follow such a name anywhere in
/// the language.
fn qualified<'a>(input: Input<'a>, of: &'static str, follows: fn(Kind) -> bool) -> Parsed<'a, QualifiedName> {
    let first = input.kind();
    if !NameOf::Anything.allows(first) && first != Kind::QuestionMark {
        return input.no_viable(0);
    }
    let second = input.ahead(1);
    if second == Kind::Dot {
        input.decided(2);
        let (input, keyspace) = keyspace_name(input)?;
        let (input, name) = name_or_marker(input.skip(1), of)?;
        return Ok((
            input,
            QualifiedName {
                keyspace: Some(keyspace),
                name,
            },
        ));
    }
    if !follows(second) {
        return input.no_viable(1);
    }
    input.decided(2);
    let (input, name) = name_or_marker(input, of)?;
    Ok((input, QualifiedName { keyspace: None, name }))
}

/// `table_name = [ keyspace_name "." ] ident`
pub(crate) fn table_name(input: Input<'_>) -> Parsed<'_, QualifiedName> {
    enter("table_name");
    qualified(input, "table", |kind| {
        matches!(
            kind,
            Kind::Add
                | Kind::Allow
                | Kind::Alter
                | Kind::As
                | Kind::Drop
                | Kind::From
                | Kind::Group
                | Kind::Json
                | Kind::Limit
                | Kind::Norecursive
                | Kind::Of
                | Kind::Order
                | Kind::Per
                | Kind::Primary
                | Kind::Rename
                | Kind::Set
                | Kind::To
                | Kind::Using
                | Kind::Where
                | Kind::With
                | Kind::ParenOpen
                | Kind::Semicolon
                | Kind::End
        )
    })
}

/// `qualified_index_name = [ keyspace_name "." ] ident`
pub(crate) fn qualified_index_name(input: Input<'_>) -> Parsed<'_, QualifiedName> {
    enter("qualified_index_name");
    qualified(input, "index", |kind| matches!(kind, Kind::Semicolon | Kind::End))
}

/// `index_name = ident`
pub(crate) fn index_name(input: Input<'_>) -> Parsed<'_, Name> {
    enter("index_name");
    name_or_marker(input, "index")
}

/// `described_name = [ ident "." ] ident`
pub(crate) fn described_name(input: Input<'_>) -> Parsed<'_, QualifiedName> {
    enter("described_name");
    if !NameOf::Anything.allows(input.kind()) {
        return input.no_viable(0);
    }
    match input.ahead(1) {
        Kind::Dot => {
            let (input, keyspace) = ident(input)?;
            let (input, name) = ident(input.skip(1))?;
            Ok((
                input,
                QualifiedName {
                    keyspace: Some(keyspace),
                    name,
                },
            ))
        }
        Kind::Semicolon | Kind::End | Kind::With => {
            let (input, name) = ident(input)?;
            Ok((input, QualifiedName { keyspace: None, name }))
        }
        _ => input.no_viable(1),
    }
}

/// `role_name = ident | STRING`
pub(crate) fn role_name(input: Input<'_>) -> Parsed<'_, Name> {
    enter("role_name");
    if input.is(Kind::String) {
        return Ok((input.skip(1), Name(input.text().into_owned())));
    }
    name_or_marker(input, "role")
}

/// `user_name = IDENT | STRING`: its case is kept.
pub(crate) fn user_name(input: Input<'_>) -> Parsed<'_, Name> {
    enter("user_name");
    let complaint = "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE";
    let (input, name) = unquoted_text(input, complaint)?;
    Ok((input, Name(name)))
}

/// `identity = IDENT | STRING`: its case is kept.
pub(crate) fn identity(input: Input<'_>) -> Parsed<'_, String> {
    enter("identity");
    unquoted_text(input, "Quoted strings are are not supported for identity")
}

fn unquoted_text<'a>(input: Input<'a>, complaint: &'static str) -> Parsed<'a, String> {
    match input.kind() {
        Kind::Ident | Kind::String => {}
        Kind::QuotedName => input.report(|| complaint.to_owned()),
        _ => return input.no_viable(0),
    }
    Ok((input.skip(1), input.text().into_owned()))
}

/// `type_name = [ ident "." ] type_ident`
pub(crate) fn type_name(input: Input<'_>) -> Parsed<'_, QualifiedName> {
    enter("type_name");
    let kind = input.kind();
    let qualified = NameOf::Anything.allows(kind) && input.ahead(1) == Kind::Dot;
    if !qualified && !NameOf::Type.allows(kind) {
        // The keyword may name a keyspace but no type, so a point must follow.
        return match NameOf::Anything.allows(kind) {
            true => expect(input.skip(1), Kind::Dot).and_then(|(input, ())| input.no_viable(0)),
            false => input.no_viable(0),
        };
    }
    let (input, keyspace) = if qualified {
        let (input, keyspace) = ident(input)?;
        (input.skip(1), Some(keyspace))
    } else {
        (input, None)
    };
    let (input, name) = type_ident(input)?;
    Ok((input, QualifiedName { keyspace, name }))
}

/// Names that Cassandra reserves for future types. It compares the text as written, so a quoted or capitalized name is allowed.
pub(crate) const RESERVED_TYPE_NAMES: [&str; 7] =
    ["byte", "complex", "enum", "date", "interval", "macaddr", "bitstring"];

/// `type_ident = IDENT | QUOTED_NAME | BASIC_KEYWORD | "KEY"`
fn type_ident(input: Input<'_>) -> Parsed<'_, Name> {
    enter("type_ident");
    if !NameOf::Type.allows(input.kind()) {
        return input.no_viable(0);
    }
    let text = input.text();
    if input.is(Kind::Ident) && RESERVED_TYPE_NAMES.contains(&text.as_ref()) {
        input.report(|| format!("Invalid (reserved) user type name {text}"));
    }
    Ok((input.skip(1), folded(input)))
}

/// `function_name = [ keyspace_name "." ] function_ident`
pub(crate) fn function_name(input: Input<'_>) -> Parsed<'_, QualifiedName> {
    enter("function_name");
    let kind = input.kind();
    let (of_keyspace, of_function) = (NameOf::Anything.allows(kind), NameOf::Function.allows(kind));
    if !of_keyspace && !of_function && kind != Kind::QuestionMark {
        return input.no_viable(0);
    }
    if !of_function {
        // It can only be the keyspace's name.
        let (input, keyspace) = keyspace_name(input)?;
        let (input, ()) = expect(input, Kind::Dot)?;
        let (input, name) = function_ident(input)?;
        return Ok((
            input,
            QualifiedName {
                keyspace: Some(keyspace),
                name,
            },
        ));
    }
    match input.ahead(1) {
        Kind::Dot if of_keyspace => {
            input.decided(2);
            let (input, keyspace) = keyspace_name(input)?;
            let (input, name) = function_ident(input.skip(1))?;
            Ok((
                input,
                QualifiedName {
                    keyspace: Some(keyspace),
                    name,
                },
            ))
        }
        Kind::ParenOpen | Kind::With | Kind::Semicolon | Kind::End => {
            input.decided(2);
            let (input, name) = function_ident(input)?;
            Ok((input, QualifiedName { keyspace: None, name }))
        }
        _ => input.no_viable(1),
    }
}

/// `function_ident = IDENT | QUOTED_NAME | FUNCTION_KEYWORD | "TOKEN" | "COUNT"`
pub(crate) fn function_ident(input: Input<'_>) -> Parsed<'_, Name> {
    enter("function_ident");
    if NameOf::Function.allows(input.kind()) {
        Ok((input.skip(1), folded(input)))
    } else {
        input.no_viable(0)
    }
}
