//! DELETE.

use crate::ast::{Delete, DeleteTarget, Using};
use crate::input::{Input, Parsed, enter, expect, given, separated};
use crate::keyword::Kind;
use crate::name::{column_name, ident, is_column_name, table_name};
use crate::relation::{if_clause, where_clause};
use crate::term::{int_value, term};

/// `delete = "DELETE" [ delete_target { "," delete_target } ] "FROM" table_name [ "USING" "TIMESTAMP" int_value ] "WHERE" where_clause
/// if_clause`
pub(super) fn delete(input: Input<'_>) -> Parsed<'_, Delete> {
    enter("delete");
    let input = input.skip(1);
    let (input, targets) = if is_column_name(input.kind()) {
        separated(input, Kind::Comma, delete_target)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::From)?;
    let (input, table) = table_name(input)?;
    let (input, stamped) = given(input, Kind::Using);
    let (input, timestamp) = if stamped {
        let (input, ()) = expect(input, Kind::Timestamp)?;
        super::map(int_value(input), Some)?
    } else {
        (input, None)
    };
    let using = Using {
        timestamp,
        ..Using::default()
    };
    let (input, ()) = expect(input, Kind::Where)?;
    let (input, relations) = where_clause(input)?;
    let (input, condition) = if_clause(input)?;
    Ok((
        input,
        Delete {
            targets,
            table,
            using,
            relations,
            condition,
        },
    ))
}

/// `delete_target = column_name [ "[" term "]" | "." ident ]`
fn delete_target(input: Input<'_>) -> Parsed<'_, DeleteTarget> {
    enter("delete_target");
    if !is_column_name(input.kind()) {
        return input.no_viable(0);
    }
    if !matches!(input.ahead(1), Kind::BracketOpen | Kind::Dot | Kind::Comma | Kind::From) {
        return input.no_viable(1);
    }
    input.decided(2);
    let (input, column) = column_name(input)?;
    match input.kind() {
        Kind::BracketOpen => {
            let (input, key) = term(input.skip(1))?;
            let (input, ()) = expect(input, Kind::BracketClose)?;
            Ok((input, DeleteTarget::Element(column, key)))
        }
        Kind::Dot => super::map(ident(input.skip(1)), |field| DeleteTarget::Field(column, field)),
        _ => Ok((input, DeleteTarget::Column(column))),
    }
}
