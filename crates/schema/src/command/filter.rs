//! Filters: tests on the values of one row, combined with AND, OR and NOT.

use super::Value;
use crate::schema::analysis::Analysis;
use helenus_types::types::CqlType;

/// How a filter compares a row's value with its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `!=` (conditions only)
    Neq,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// The value is one of the operands.
    In,
    /// A list, set or map holds the operand as a value.
    Contains,
    /// A map holds the operand as a key.
    ContainsKey,
    /// LIKE, with its pattern as written.
    Like,
}

impl Comparison {
    /// Its CQL operator.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Neq => "!=",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::In => "IN",
            Self::Contains => "CONTAINS",
            Self::ContainsKey => "CONTAINS KEY",
            Self::Like => "LIKE",
        }
    }
}

/// The kind of a LIKE pattern: the position of its `%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// `abc`
    Whole,
    /// `abc%`
    Prefix,
    /// `%abc`
    Suffix,
    /// `%abc%`
    Within,
}

impl Like {
    /// The kind of a pattern and its search text. `None` means the search text is empty. A `%` that is not at an end is
    /// a plain character.
    #[must_use]
    pub fn of(pattern: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, text) = match (pattern.strip_suffix(b"%"), pattern.strip_prefix(b"%")) {
            (Some(_), Some(rest)) => (Self::Within, rest.strip_suffix(b"%").unwrap_or_default()),
            (Some(text), None) => (Self::Prefix, text),
            (None, Some(text)) => (Self::Suffix, text),
            (None, None) => (Self::Whole, pattern),
        };
        (!text.is_empty()).then_some((kind, text))
    }

    /// The pattern's form in Cassandra's texts.
    pub const fn shape(self) -> &'static str {
        match self {
            Self::Whole => "<term>",
            Self::Prefix => "<term>%",
            Self::Suffix => "%<term>",
            Self::Within => "%<term>%",
        }
    }
}

/// The value that a filter or condition tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterTarget {
    /// A column, by its position in `table.columns`.
    Column(usize),
    /// `column[key]`: a map's value or a list's element.
    Element(usize, Value),
    /// `column.field`: the field's number.
    Field(usize, usize),
    /// A column whose texts, or elements, are compared in the form that an index analyses. LIKE matches if all terms of
    /// its pattern occur.
    Analysed(usize, Analysis),
    /// Several clustering columns as a tuple, compared in order.
    Tuple(Vec<usize>),
    /// The partition's token; operands are bigint.
    Token,
}

/// The read may have to discard rows, without ALLOW FILTERING.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute \
     this query despite the performance unpredictability, use ALLOW FILTERING"
)]
pub struct NeedsFiltering;

/// Which rows pass a read's filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// This test holds.
    Test(Predicate),
    /// All of these hold; an empty list passes every row.
    All(Vec<Filter>),
    /// One of these holds; an empty list passes no row.
    Any(Vec<Filter>),
    /// This does not hold. A test on null does not hold, so its negation does.
    Not(Box<Filter>),
}

impl Filter {
    /// Every row passes.
    pub const NONE: Self = Self::All(Vec::new());

    /// All of these tests hold.
    #[must_use]
    pub fn all(tests: Vec<Predicate>) -> Self {
        Self::All(tests.into_iter().map(Self::Test).collect())
    }

    /// Whether every row passes, whatever it holds.
    #[must_use]
    pub fn is_none(&self) -> bool {
        match self {
            Self::All(all) => all.iter().all(Self::is_none),
            Self::Test(_) | Self::Any(_) | Self::Not(_) => false,
        }
    }

    /// The tests that hold for every row that passes: those outside any OR and NOT.
    pub fn required(&self) -> impl Iterator<Item = &Predicate> {
        let all = match self {
            Self::All(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        all.iter().filter_map(|one| match one {
            Self::Test(test) => Some(test),
            Self::All(_) | Self::Any(_) | Self::Not(_) => None,
        })
    }

    /// Whether one of its tests satisfies `is_such`, at any depth.
    pub fn any_test(&self, is_such: &mut impl FnMut(&Predicate) -> bool) -> bool {
        match self {
            Self::Test(test) => is_such(test),
            Self::All(several) | Self::Any(several) => several.iter().any(|one| one.any_test(is_such)),
            Self::Not(one) => one.any_test(is_such),
        }
    }
}

/// A test on one row: `target comparison operands`. Null makes it false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The tested value.
    pub target: FilterTarget,
    /// The comparison.
    pub comparison: Comparison,
    /// One operand; several for `In`. A tuple's operand is an encoded tuple.
    pub operands: Vec<Value>,
    /// The type of both sides.
    pub ty: CqlType,
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_types::types::Native;

    fn test(place: usize) -> Predicate {
        Predicate {
            target: FilterTarget::Column(place),
            comparison: Comparison::Eq,
            operands: vec![Value::Null],
            ty: CqlType::Native(Native::Int),
        }
    }

    #[test]
    fn a_tree_tells_what_every_row_meets_and_what_it_looks_at() {
        let either = Filter::Any(vec![
            Filter::Test(test(2)),
            Filter::Not(Box::new(Filter::Test(test(3)))),
        ]);
        let tree = Filter::All(vec![Filter::Test(test(1)), either.clone()]);
        assert_eq!(tree.required().collect::<Vec<_>>(), [&test(1)]);
        assert_eq!(Filter::Test(test(4)).required().count(), 1);
        assert_eq!(either.required().count(), 0);
        let looks_at =
            |filter: &Filter, place| filter.any_test(&mut |found| found.target == FilterTarget::Column(place));
        assert!((1..4).all(|place| looks_at(&tree, place)) && !looks_at(&tree, 4));
        assert!(Filter::NONE.is_none() && Filter::all(Vec::new()).is_none());
        assert!(!tree.is_none() && !Filter::Any(Vec::new()).is_none());
    }
}
