//! BATCH.

use crate::ast::{Batch, BatchKind, Modification, Statement};
use crate::input::{Input, Parsed, enter, expect, expect_all, given};
use crate::keyword::Kind;

/// `batch = "BEGIN" [ "UNLOGGED" | "COUNTER" ] "BATCH" using { modification [ ";" ] } "APPLY" "BATCH"`
pub(super) fn batch(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("batch");
    let input = input.skip(1);
    let (input, kind) = match input.kind() {
        Kind::Unlogged => (input.skip(1), BatchKind::Unlogged),
        Kind::Counter => (input.skip(1), BatchKind::Counter),
        _ => (input, BatchKind::Logged),
    };
    let (input, ()) = expect(input, Kind::Batch)?;
    let (mut input, using) = super::insert::using(input)?;
    let mut modifications = Vec::new();
    while matches!(input.kind(), Kind::Insert | Kind::Update | Kind::Delete) {
        let (rest, member) = modification(input)?;
        modifications.push(member);
        (input, _) = given(rest, Kind::Semicolon);
    }
    let (input, ()) = expect_all(input, &[Kind::Apply, Kind::Batch])?;
    Ok((
        input,
        Statement::Batch(Batch {
            kind,
            using,
            modifications,
        }),
    ))
}

/// `modification = insert | update | delete`
fn modification(input: Input<'_>) -> Parsed<'_, Modification> {
    enter("modification");
    match input.kind() {
        Kind::Insert => super::map(super::insert::insert(input), Modification::Insert),
        Kind::Update => super::map(super::update::update(input), Modification::Update),
        _ => super::map(super::delete::delete(input), Modification::Delete),
    }
}
