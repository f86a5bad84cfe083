//! Statements, a file per verb.
//!
//! The first token or two decide which statement it is; after that a failure is final.

mod alter;
mod batch;
mod create;
mod delete;
mod describe;
mod drop;
mod explain;
mod grant;
mod identity;
mod insert;
mod mbean;
mod role;
mod select;
mod table;
mod truncate;
mod update;
mod r#use;

use crate::ast::Statement;
use crate::input::{Input, Parsed, enter, expect_all, given};
use crate::keyword::Kind;

/// `query = statement { ";" } END`
pub(crate) fn query(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("query");
    let (mut input, statement) = statement(input)?;
    while input.is(Kind::Semicolon) {
        input = input.skip(1);
    }
    let (input, ()) = crate::input::expect(input, Kind::End)?;
    Ok((input, statement))
}

/// A string and nothing else.
fn string(input: Input<'_>) -> Parsed<'_, String> {
    let (rest, ()) = crate::input::expect(input, Kind::String)?;
    Ok((rest, input.text().into_owned()))
}

/// `statement = select | insert | update | delete | batch | use | truncate | create | alter | drop | grant | revoke | list | describe
/// | add_identity | explain`
fn statement(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("statement");
    match input.kind() {
        Kind::Select => select::select(input),
        Kind::Insert => map(insert::insert(input), Statement::Insert),
        Kind::Update => map(update::update(input), Statement::Update),
        Kind::Delete => map(delete::delete(input), Statement::Delete),
        Kind::Begin => batch::batch(input),
        Kind::Use => r#use::r#use(input),
        Kind::Truncate => truncate::truncate(input),
        Kind::Create => create::create(input),
        Kind::Alter => alter::alter(input),
        Kind::Drop => drop::drop(input),
        Kind::Grant => grant::grant(input),
        Kind::Revoke => grant::revoke(input),
        Kind::List => grant::list(input),
        Kind::Describe | Kind::Desc => describe::describe(input),
        Kind::Add => identity::add_identity(input),
        _ if explain::stands_at(input) => explain::explain(input),
        _ => input.no_viable(0),
    }
}

/// Wraps the result of a production in a larger node.
fn map<T, U>(parsed: Parsed<'_, T>, into: impl FnOnce(T) -> U) -> Parsed<'_, U> {
    parsed.map(|(input, value)| (input, into(value)))
}

/// `if_not_exists = [ "IF" "NOT" "EXISTS" ]`
fn if_not_exists(input: Input<'_>) -> Parsed<'_, bool> {
    enter("if_not_exists");
    let (input, conditional) = given(input, Kind::If);
    if conditional {
        map(expect_all(input, &[Kind::Not, Kind::Exists]), |()| true)
    } else {
        Ok((input, false))
    }
}

/// `if_exists = [ "IF" "EXISTS" ]`
fn if_exists(input: Input<'_>) -> Parsed<'_, bool> {
    enter("if_exists");
    let (input, conditional) = given(input, Kind::If);
    if conditional {
        map(expect_all(input, &[Kind::Exists]), |()| true)
    } else {
        Ok((input, false))
    }
}
