//! The parser's position among the tokens, and the basic steps of every production.
//!
//! A production is a nom parser: a function `fn(Input) -> Parsed<T>` of the same name. If its first token does not match,
//! it fails with `nom::Err::Error`, and another alternative may be tried. Later it fails with `nom::Err::Failure`, which is
//! final. Alternatives are chosen by lookahead, not by backtracking, so time is proportional to the length of the text.

use nom::{Err, IResult, Parser};

use crate::ast::{Name, Site};
use crate::context::Context;
use crate::error::{Cause, Failure, Limit};
use crate::keyword::{Class, Kind};
use crate::lexical::token_text;

/// A position among the tokens.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    context: &'a Context<'a>,
    position: usize,
    depth: usize,
}

/// The result of a production: the position after it and its value.
pub(crate) type Parsed<'a, T> = IResult<Input<'a>, T, Failure>;

impl<'a> Input<'a> {
    /// The first token.
    pub(crate) const fn start(context: &'a Context<'a>) -> Self {
        Self {
            context,
            position: 0,
            depth: 0,
        }
    }

    /// The token here.
    pub(crate) fn kind(self) -> Kind {
        self.ahead(0)
    }

    /// The position of this token.
    pub(crate) fn site(self) -> Site {
        Site::of_token(self.position)
    }

    /// The token `distance` after this one.
    pub(crate) fn ahead(self, distance: usize) -> Kind {
        let index = self.position + distance;
        if index > self.context.furthest.get() {
            self.context.furthest.set(index);
        }
        self.context.token(index).kind
    }

    /// Whether this token has that kind.
    pub(crate) fn is(self, kind: Kind) -> bool {
        self.kind() == kind
    }

    /// The text of this token.
    pub(crate) fn text(self) -> std::borrow::Cow<'a, str> {
        token_text(self.context.text, self.context.token(self.position))
    }

    /// The position `count` tokens later.
    pub(crate) const fn skip(self, count: usize) -> Self {
        Self {
            position: self.position + count,
            ..self
        }
    }

    /// Records that a choice read `count` tokens ahead. Cassandra makes larger choices by tables, which read one token more
    /// than necessary, and its excerpts include that token.
    pub(crate) fn decided(self, count: usize) {
        self.ahead(count);
    }

    /// The error that the token `distance` later fits no alternative.
    pub(crate) fn no_viable<T>(self, distance: usize) -> Parsed<'a, T> {
        self.ahead(distance);
        self.fail(distance, Cause::NoViableAlternative)
    }

    /// A final error about the token `distance` later: no other alternative is tried.
    pub(crate) fn fail<T>(self, distance: usize, cause: Cause) -> Parsed<'a, T> {
        Err(Err::Failure(Failure {
            decision: self.position,
            at: self.position + distance,
            cause,
        }))
    }

    /// Records an error that is not a syntax error. The statement is rejected at its end, with the first such error.
    pub(crate) fn report(self, message: impl FnOnce() -> String) {
        let mut reported = self.context.reported.borrow_mut();
        if reported.is_none() && self.context.lexical_error().is_none() {
            *reported = Some(message());
        }
    }

    /// The statement's whole text.
    pub(crate) fn whole_text(self) -> &'a str {
        self.context.text
    }

    /// Restores the reported errors to `before`, after an alternative that did not match.
    pub(crate) fn take_back(self, before: Option<String>) {
        *self.context.reported.borrow_mut() = before;
    }

    /// The errors reported so far.
    pub(crate) fn reported(self) -> Option<String> {
        self.context.reported()
    }

    /// Counts a bind marker.
    pub(crate) fn count_marker(self) -> Parsed<'a, ()> {
        let count = self.context.markers.get() + 1;
        self.context.markers.set(count);
        if count > crate::MARKERS_MAX {
            self.fail(0, Cause::Exceeded(Limit::Markers))
        } else {
            Ok((self, ()))
        }
    }

    /// Counts an operator of an expression, since each makes the tree deeper.
    pub(crate) fn count_operator(self) -> Parsed<'a, ()> {
        let count = self.context.operators.get() + 1;
        self.context.operators.set(count);
        if count > crate::OPERATORS_MAX {
            self.fail(0, Cause::Exceeded(Limit::Operators))
        } else {
            Ok((self, ()))
        }
    }

    /// Runs `inner` one level deeper; the outermost level resets the operator count.
    pub(crate) fn nested<T>(self, inner: impl FnOnce(Self) -> Parsed<'a, T>) -> Parsed<'a, T> {
        if self.depth == 0 {
            self.context.operators.set(0);
        }
        if self.depth >= crate::NESTING_LEVELS_MAX {
            return self.fail(0, Cause::Exceeded(Limit::Nesting));
        }
        let (rest, value) = inner(Self {
            depth: self.depth + 1,
            ..self
        })?;
        Ok((
            Self {
                depth: self.depth,
                ..rest
            },
            value,
        ))
    }
}

/// Records that a production runs, so that a test can list the productions that the scripts reach.
#[cfg(test)]
pub(crate) fn enter(production: &'static str) {
    tests::ENTERED.with(|entered| entered.borrow_mut().insert(production));
}

/// Does nothing outside of tests.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn enter(_: &'static str) {}

/// A token of that kind, if it is next.
pub(crate) fn token<'a>(kind: Kind) -> impl Parser<Input<'a>, Output = (), Error = Failure> {
    move |input: Input<'a>| {
        if input.is(kind) {
            Ok((input.skip(1), ()))
        } else {
            let position = input.position;
            Err(Err::Error(Failure {
                decision: position,
                at: position,
                cause: Cause::Mismatched(kind),
            }))
        }
    }
}

/// A token of that kind, the only one possible here; otherwise a final error.
pub(crate) fn expect(input: Input<'_>, kind: Kind) -> Parsed<'_, ()> {
    nom::combinator::cut(token(kind)).parse(input)
}

/// Tokens of those kinds, the only ones possible here; otherwise a final error.
pub(crate) fn expect_all<'a>(input: Input<'a>, kinds: &[Kind]) -> Parsed<'a, ()> {
    kinds
        .iter()
        .try_fold((input, ()), |(input, ()), kind| expect(input, *kind))
}

/// Whether the next token had that kind, and the position after it.
pub(crate) fn given(input: Input<'_>, kind: Kind) -> (Input<'_>, bool) {
    if input.is(kind) {
        (input.skip(1), true)
    } else {
        (input, false)
    }
}

/// One or more elements, separated by `separator`.
pub(crate) fn separated<'a, T>(
    input: Input<'a>,
    separator: Kind,
    mut element: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> Parsed<'a, Vec<T>> {
    let (input, first) = element(input)?;
    let mut elements = vec![first];
    let (input, ()) = continued(input, separator, &mut elements, element)?;
    Ok((input, elements))
}

/// The contents of a collection literal: one or more elements separated by commas, limited only by the statement's
/// size.
pub(crate) fn collected<'a, T>(
    input: Input<'a>,
    mut elements: Vec<T>,
    mut element: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> Parsed<'a, Vec<T>> {
    let (mut input, next) = element(input)?;
    elements.push(next);
    while input.is(Kind::Comma) {
        let (rest, next) = element(input.skip(1))?;
        elements.push(next);
        input = rest;
    }
    Ok((input, elements))
}

/// More elements of a list that has begun, each after a `separator`.
pub(crate) fn continued<'a, T>(
    mut input: Input<'a>,
    separator: Kind,
    elements: &mut Vec<T>,
    mut element: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> Parsed<'a, ()> {
    while input.is(separator) {
        if elements.len() >= crate::LIST_ELEMENTS_MAX {
            return input.fail(0, Cause::Exceeded(Limit::Elements));
        }
        let (rest, next) = element(input.skip(1))?;
        elements.push(next);
        input = rest;
    }
    Ok((input, ()))
}

/// The kind of a name, which decides which keywords it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOf {
    /// A column, keyspace, table, role, …
    Anything,
    /// A user-defined type.
    Type,
    /// A function.
    Function,
}

impl NameOf {
    /// Whether a token of that kind may be such a name.
    pub(crate) fn allows(self, kind: Kind) -> bool {
        match kind {
            Kind::Ident | Kind::QuotedName => true,
            Kind::Key => self != Self::Function,
            Kind::Token => self == Self::Function,
            Kind::Count => self != Self::Type,
            _ => match kind.class() {
                Some(Class::Basic) => true,
                Some(Class::Native) => self != Self::Type,
                Some(Class::Special) => self == Self::Anything,
                _ => false,
            },
        }
    }
}

/// The name in a token: lower case, unless it was quoted.
pub(crate) fn folded(input: Input<'_>) -> Name {
    let text = input.text();
    Name(if input.is(Kind::QuotedName) {
        text.into_owned()
    } else {
        text.to_ascii_lowercase()
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        /// The productions that ran on this thread.
        pub(crate) static ENTERED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    }
}
