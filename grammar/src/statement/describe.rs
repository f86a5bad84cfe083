//! DESCRIBE, which the server answers itself.

use crate::ast::{Describe, DescribeTarget, Statement};
use crate::input::{Input, NameOf, Parsed, enter, expect, given};
use crate::keyword::Kind;
use crate::name::{described_name, function_name, keyspace_name, table_name, type_name};

/// `describe = ( "DESCRIBE" | "DESC" ) described [ "WITH" "INTERNALS" ]`
pub(super) fn describe(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("describe");
    let (input, target) = described(input.skip(1))?;
    let (input, with) = given(input, Kind::With);
    let (input, ()) = if with {
        expect(input, Kind::Internals)?
    } else {
        (input, ())
    };
    Ok((
        input,
        Statement::Describe(Describe {
            target,
            with_internals: with,
        }),
    ))
}

/// `described = "CLUSTER" | [ "FULL" ] "SCHEMA" | "KEYSPACES" | [ "ONLY" ] "KEYSPACE" [ keyspace_name ] | "TABLES" | "TABLE" table_name
/// | "INDEX" table_name | "MATERIALIZED" "VIEW" table_name | "TYPES" | "TYPE" type_name | "FUNCTIONS" | "FUNCTION" function_name
/// | "AGGREGATES" | "AGGREGATE" function_name | described_name`
fn described(input: Input<'_>) -> Parsed<'_, DescribeTarget> {
    enter("described");
    let behind = input.skip(1);
    // Words that are names too are keywords only if a name follows.
    let named = || NameOf::Anything.allows(behind.kind()) || matches!(behind.kind(), Kind::Token | Kind::QuestionMark);
    let kind = input.kind();
    if matches!(
        kind,
        Kind::Cluster | Kind::Keyspaces | Kind::Tables | Kind::Types | Kind::Functions | Kind::Aggregates
    ) {
        input.decided(2);
    }
    match kind {
        Kind::Cluster => Ok((behind, DescribeTarget::Cluster)),
        Kind::Full => {
            let (input, ()) = expect(behind, Kind::Schema)?;
            Ok((input, DescribeTarget::Schema { full: true }))
        }
        Kind::Schema => Ok((behind, DescribeTarget::Schema { full: false })),
        Kind::Keyspaces => Ok((behind, DescribeTarget::Keyspaces)),
        Kind::Tables => Ok((behind, DescribeTarget::Tables)),
        Kind::Types => Ok((behind, DescribeTarget::Types)),
        Kind::Functions => Ok((behind, DescribeTarget::Functions)),
        Kind::Aggregates => Ok((behind, DescribeTarget::Aggregates)),
        Kind::Only if behind.is(Kind::Keyspace) => described_keyspace(behind.skip(1), true),
        Kind::Keyspace => described_keyspace(behind, false),
        Kind::Columnfamily => super::map(table_name(behind), DescribeTarget::Table),
        Kind::Index => super::map(table_name(behind), DescribeTarget::Index),
        Kind::Materialized => {
            let (input, ()) = expect(behind, Kind::View)?;
            super::map(table_name(input), DescribeTarget::View)
        }
        Kind::Type if NameOf::Anything.allows(behind.kind()) => super::map(type_name(behind), DescribeTarget::Type),
        Kind::Function if named() => super::map(function_name(behind), DescribeTarget::Function),
        Kind::Aggregate if named() => super::map(function_name(behind), DescribeTarget::Aggregate),
        _ => super::map(described_name(input), DescribeTarget::Generic),
    }
}

fn described_keyspace(input: Input<'_>, only: bool) -> Parsed<'_, DescribeTarget> {
    if !NameOf::Anything.allows(input.kind()) && !input.is(Kind::QuestionMark) {
        return Ok((input, DescribeTarget::Keyspace { name: None, only }));
    }
    super::map(keyspace_name(input), |name| DescribeTarget::Keyspace {
        name: Some(name),
        only,
    })
}
