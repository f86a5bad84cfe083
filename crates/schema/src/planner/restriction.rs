//! Restrictions that the relations of a WHERE clause put on columns. Plain data.
//!
//! ```text
//! relation  c = ?              → Restriction { columns: [c], kind: Eq }
//! merged    c > ? AND c < ?    → Restriction { columns: [c], kind: Slice { lower, upper } }
//! validated Restrictions       → which name partitions, which select keys or ranges of rows, which only filter
//! ```
//! `relation.rs` reads them, `merge.rs` merges them, `validate.rs` validates and classifies them. Sources: Cassandra's
//! `SingleColumnRelation`, `MultiColumnRelation`, `TokenRelation`.

use std::sync::Arc;

use super::error::Error;
use super::term::TypedTerm;
use super::text::Joined;
use crate::command::Comparison;
use crate::schema::{Column, Table};

/// The kind of statement that a WHERE belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SELECT.
    Select,
    /// INSERT: its key columns become equalities.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl Kind {
    /// Its name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The right side of a comparison of one or several columns.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// One column's value.
    One(TypedTerm),
    /// Several columns' values, each a term.
    Each(Vec<TypedTerm>),
    /// Several columns' values as one tuple.
    Tuple(TypedTerm),
}

/// One end of a slice.
#[derive(Clone, Debug)]
pub(crate) struct SliceBound {
    /// The value.
    pub(crate) operand: Operand,
    /// `<=`, `>=`.
    pub(crate) inclusive: bool,
}

/// How columns are restricted.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// `=`
    Eq(Operand),
    /// `IN (a, b)`
    In(Vec<Operand>),
    /// `IN ?`
    InMarker(TypedTerm),
    /// `>`, `>=`, `<`, `<=`.
    Slice {
        /// `>`, `>=`
        lower: Option<SliceBound>,
        /// `<`, `<=`
        upper: Option<SliceBound>,
    },
    /// `LIKE pattern`
    Like(TypedTerm),
    /// `CONTAINS`, `CONTAINS KEY`, `m[k] = v`, any number of each.
    Contains {
        /// CONTAINS.
        values: Vec<TypedTerm>,
        /// CONTAINS KEY.
        keys: Vec<TypedTerm>,
        /// `m[k] = v`
        entries: Vec<(TypedTerm, TypedTerm)>,
    },
}

/// A restriction on one column, or on several clustering columns together.
#[derive(Clone, Debug)]
pub(crate) struct Restriction {
    /// Positions in `table.columns`, consecutive.
    pub(crate) columns: Vec<usize>,
    /// Written with a tuple on the left.
    pub(crate) multi: bool,
    /// The comparison.
    pub(crate) test: Test,
}

impl Restriction {
    pub(crate) fn is_slice(&self) -> bool {
        matches!(self.test, Test::Slice { .. })
    }

    pub(crate) fn is_contains(&self) -> bool {
        matches!(self.test, Test::Contains { .. })
    }

    pub(crate) fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_) | Test::InMarker(_))
    }

    pub(crate) fn is_like(&self) -> bool {
        matches!(self.test, Test::Like(_))
    }

    pub(crate) fn first(&self) -> usize {
        self.columns.first().copied().unwrap_or_default()
    }

    pub(crate) fn last(&self) -> usize {
        self.columns.last().copied().unwrap_or_default()
    }
}

/// Restrictions on `token(partition key)`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenRestriction {
    /// `=`
    pub(crate) eq: Option<TypedTerm>,
    /// `>`, `>=`
    pub(crate) lower: Option<(TypedTerm, bool)>,
    /// `<`, `<=`
    pub(crate) upper: Option<(TypedTerm, bool)>,
}

/// A validated and classified WHERE.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restrictions {
    /// On partition key columns, by position.
    pub(crate) partition: Vec<Restriction>,
    /// On `token(…)`.
    pub(crate) token: Option<TokenRestriction>,
    /// On clustering columns, by position.
    pub(crate) clustering: Vec<Restriction>,
    /// On other columns, by position.
    pub(crate) others: Vec<Restriction>,
    /// Indexes named by `expr(index, value)`.
    pub(crate) custom: Vec<String>,
    /// Partitions are found by a scan of a token range.
    pub(crate) is_key_range: bool,
    /// The partition key restrictions name a range of a table that is ordered by partition key.
    pub(crate) ranges_over_keys: bool,
    /// An index would be used.
    pub(crate) uses_index: bool,
    /// The partition key restrictions do not name partitions: they filter, or an index answers them.
    pub(crate) partition_filters: bool,
    /// Not all clustering restrictions select keys or ranges: some filter, or an index answers them.
    pub(crate) clustering_filters: bool,
    /// Not all clustering restrictions select keys or ranges, whether or not an index is used.
    pub(crate) clustering_skips: bool,
}

/// The column of this name, or Cassandra's error.
pub(crate) fn column<'t>(table: &'t Table, name: &str) -> Result<(usize, &'t Arc<Column>), Error> {
    table.column(name).ok_or_else(|| Error::UndefinedColumn {
        name: name.to_owned(),
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
    })
}

pub(crate) fn column_at(table: &Table, index: usize) -> &Column {
    table
        .columns
        .get(index)
        .expect("restrictions hold places of columns of their table")
}

pub(crate) fn names(table: &Table, columns: &[usize]) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|index| column_at(table, *index).name.as_str())
        .collect();
    Joined(&names, ", ").to_string()
}

/// The comparison operator of one end of a slice.
pub(crate) const fn slice_comparison(lower: bool, inclusive: bool) -> Comparison {
    match (lower, inclusive) {
        (true, true) => Comparison::Gte,
        (true, false) => Comparison::Gt,
        (false, true) => Comparison::Lte,
        (false, false) => Comparison::Lt,
    }
}
