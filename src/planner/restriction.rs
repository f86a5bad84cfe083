//! WHERE: relations become restrictions on columns, merged as Cassandra merges them, refused in its words.
//!
//! ```text
//! relation  c = ?              → Restriction { columns: [c], kind: Eq }
//! merged    c > ? AND c < ?    → Restriction { columns: [c], kind: Slice { lower, upper } }
//! judged    Restrictions       → which narrow partitions, which narrow rows, which only filter
//! ```
//! Sources: Cassandra's `StatementRestrictions`, `SingleColumnRelation`, `MultiColumnRelation`, `TokenRelation`.

use std::sync::Arc;

use grammar::ast::Relation;

use super::bound::Comparison;
use super::error::{Error, invalid};
use super::index;
use super::nearest::Asked;
use super::term::{Typed, Typer};
use super::text::{Joined, quoted};
use crate::schema::{Column, Table};

/// Said whenever a SELECT would have to look at rows that it does not return.
pub(crate) const FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING";

/// What kind of statement a WHERE belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SELECT.
    Select,
    /// INSERT: its key columns are equalities.
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

/// What one or several columns are compared with.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// One column's value.
    One(Typed),
    /// Several columns' values, each a term.
    Each(Vec<Typed>),
    /// Several columns' values as one tuple.
    Tuple(Typed),
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
    InMarker(Typed),
    /// `>`, `<` and their kin.
    Slice {
        /// `>`, `>=`
        lower: Option<SliceBound>,
        /// `<`, `<=`
        upper: Option<SliceBound>,
    },
    /// `LIKE pattern`
    Like(Typed),
    /// `CONTAINS`, `CONTAINS KEY`, `m[k] = v`, any number of each.
    Contains {
        /// CONTAINS.
        values: Vec<Typed>,
        /// CONTAINS KEY.
        keys: Vec<Typed>,
        /// `m[k] = v`
        entries: Vec<(Typed, Typed)>,
    },
}

/// A restriction on one column, or on several clustering columns together.
#[derive(Clone, Debug)]
pub(crate) struct Restriction {
    /// Places in `table.columns`, one after the other.
    pub(crate) columns: Vec<usize>,
    /// Written with a tuple on the left.
    pub(crate) multi: bool,
    /// How.
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

    fn is_like(&self) -> bool {
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
    pub(crate) eq: Option<Typed>,
    /// `>`, `>=`
    pub(crate) lower: Option<(Typed, bool)>,
    /// `<`, `<=`
    pub(crate) upper: Option<(Typed, bool)>,
}

/// A WHERE after judgement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restrictions {
    /// On partition key columns, by place.
    pub(crate) partition: Vec<Restriction>,
    /// On `token(…)`.
    pub(crate) token: Option<TokenRestriction>,
    /// On clustering columns, by place.
    pub(crate) clustering: Vec<Restriction>,
    /// On other columns, by place.
    pub(crate) others: Vec<Restriction>,
    /// Indexes named by `expr(index, value)`.
    pub(crate) custom: Vec<String>,
    /// Partitions are looked for over a range of tokens.
    pub(crate) is_key_range: bool,
    /// An index would be used.
    pub(crate) uses_index: bool,
    /// The partition key restrictions do not name partitions, and filter or are looked up instead.
    pub(crate) partition_filters: bool,
    /// The clustering restrictions do not all narrow, and some filter or are looked up instead.
    pub(crate) clustering_filters: bool,
    /// The clustering restrictions do not all narrow, whether or not an index is used.
    pub(crate) clustering_skips: bool,
}

/// Reads relations.
pub(crate) struct Judge<'a, 'b> {
    /// Gives terms their types.
    pub(crate) typer: &'a mut Typer<'b>,
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The statement's kind.
    pub(crate) kind: Kind,
    /// ALLOW FILTERING.
    pub(crate) allow_filtering: bool,
    /// ORDER BY … ANN OF.
    pub(crate) nearest: Option<&'a Asked>,
}

/// The column of this name, or Cassandra's refusal.
pub(crate) fn column<'t>(table: &'t Table, name: &str) -> Result<(usize, &'t Arc<Column>), Error> {
    table.column(name).ok_or_else(|| {
        Error::invalid(format!(
            "Undefined column name {} in table {}.{}",
            quoted(name),
            table.keyspace,
            table.name
        ))
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

impl Judge<'_, '_> {
    /// Reads and merges all relations, then judges them.
    pub(crate) fn judge(mut self, relations: &[Relation], only_static: bool) -> Result<Restrictions, Error> {
        let mut found = Restrictions::default();
        for relation in relations {
            self.relation(relation, &mut found)?;
        }
        self.finish(found, only_static)
    }

    /// Judges restrictions that were made elsewhere: an INSERT's key columns.
    pub(crate) fn finish(&self, mut found: Restrictions, only_static: bool) -> Result<Restrictions, Error> {
        if let Some(nearest) = self.nearest {
            nearest.refuse_restricted(&self.table, &found)?;
        }
        self.custom_expression(&found.custom)?;
        let is_supported = |restriction: &Restriction| index::is_supported(&self.table, restriction);
        let clustering_index = self.kind == Kind::Select && found.clustering.iter().any(is_supported);
        let others = found.partition.iter().chain(&found.others);
        let finds_nearest = self.nearest.is_some_and(|nearest| nearest.is_supported(&self.table));
        let index =
            self.kind == Kind::Select && (clustering_index || finds_nearest || others.into_iter().any(is_supported));
        self.partition(&mut found, index)?;
        if only_static && !found.clustering.is_empty() {
            match self.kind {
                Kind::Update | Kind::Delete => {
                    return invalid!(
                        "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
                        self.kind.name()
                    );
                }
                Kind::Select => {
                    return Err(Error::invalid(
                        "Cannot restrict clustering columns when selecting only static columns",
                    ));
                }
                Kind::Insert => {}
            }
        }
        self.clustering(&mut found, index, only_static)?;
        self.clustering_filters(&mut found, clustering_index);
        match self.nearest {
            Some(nearest) => nearest.judge(&self.table, &found)?,
            None if self.kind == Kind::Select => {
                let mut others = found.others.iter();
                if others.any(|restriction| index::is_vector(&self.table, restriction)) {
                    return Err(Error::invalid("Vector indexes only support ANN queries"));
                }
            }
            None => {}
        }
        if !found.others.is_empty() || self.nearest.is_some() {
            if self.kind != Kind::Select {
                let columns: Vec<usize> = found
                    .others
                    .iter()
                    .flat_map(|restriction| restriction.columns.clone())
                    .collect();
                return invalid!(
                    "Non PRIMARY KEY columns found in where clause: {} ",
                    names(&self.table, &columns)
                );
            }
            if index {
                found.uses_index = true;
            } else if !self.allow_filtering {
                return Err(Error::invalid(FILTERING));
            }
        }
        if found.uses_index && found.token.is_none() && found.partition.iter().any(Restriction::is_in) {
            return Err(Error::invalid(
                "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
            ));
        }
        Ok(found)
    }

    fn partition(&self, found: &mut Restrictions, index: bool) -> Result<(), Error> {
        let count = self.table.partition_key_count;
        let missing = found.partition.len() < count;
        if self.kind == Kind::Select {
            if found.token.is_some() || found.partition.is_empty() {
                found.is_key_range = found.partition.len() < count;
                found.uses_index = index && found.partition.is_empty() && found.token.is_none();
            }
            let plain = |restriction: &Restriction| !restriction.is_slice() && !restriction.is_contains();
            let filters = !found.partition.is_empty() && (missing || !found.partition.iter().all(plain));
            if filters {
                if !self.allow_filtering && !index {
                    return Err(Error::invalid(FILTERING));
                }
                found.is_key_range = true;
                found.uses_index = index;
                found.partition_filters = true;
            }
            return Ok(());
        }
        if found.token.is_some() {
            return invalid!(
                "The token function cannot be used in WHERE clauses for {} statements",
                self.kind.name()
            );
        }
        if missing {
            let restricted: Vec<usize> = found.partition.iter().map(Restriction::first).collect();
            let rest: Vec<usize> = (0..count).filter(|index| !restricted.contains(index)).collect();
            return invalid!("Some partition key parts are missing: {}", names(&self.table, &rest));
        }
        if found.partition.iter().any(Restriction::is_slice) {
            return invalid!(
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {} statements",
                self.kind.name()
            );
        }
        Ok(())
    }

    fn clustering(&self, found: &mut Restrictions, index: bool, only_static: bool) -> Result<(), Error> {
        let start = self.table.partition_key_count;
        let slices = matches!(self.kind, Kind::Select | Kind::Delete);
        if !slices {
            if found.clustering.iter().any(Restriction::is_slice) {
                return invalid!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    self.kind.name()
                );
            }
            let restricted: Vec<usize> = found
                .clustering
                .iter()
                .flat_map(|restriction| restriction.columns.clone())
                .collect();
            if !only_static && restricted.len() < self.table.clustering_count {
                let rest: Vec<usize> = (start..start + self.table.clustering_count)
                    .filter(|index| !restricted.contains(index))
                    .collect();
                return invalid!("Some clustering keys are missing: {}", names(&self.table, &rest));
            }
            return Ok(());
        }
        if found.clustering.iter().any(Restriction::is_contains) && !index && !self.allow_filtering {
            return Err(Error::invalid(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering",
            ));
        }
        let mut position = start;
        let mut filters = false;
        for restriction in &found.clustering {
            if restriction.is_contains() || restriction.is_like() || position != restriction.first() {
                filters = true;
                break;
            }
            if !restriction.is_slice() {
                position = restriction.last() + 1;
            }
        }
        found.clustering_filters = filters;
        found.clustering_skips = filters;
        if filters {
            if index {
                found.uses_index = true;
            } else if !self.allow_filtering || self.kind != Kind::Select {
                let restricted = found
                    .clustering
                    .iter()
                    .flat_map(|restriction| restriction.columns.clone());
                for (expected, restricted) in (start..).zip(restricted) {
                    if expected != restricted {
                        return invalid!(
                            "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                            column_at(&self.table, restricted).name,
                            column_at(&self.table, expected).name
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether clustering restrictions are looked at row by row, beyond what was judged of their order.
    fn clustering_filters(&self, found: &mut Restrictions, clustering_index: bool) {
        if found.is_key_range && clustering_index {
            found.uses_index = true;
        }
        found.clustering_filters |= self.kind == Kind::Select && found.uses_index;
    }
}

/// Refuses what cannot be looked at row by row: slices of several columns.
pub(crate) fn check_filters(table: &Table, found: &Restrictions) -> Result<(), Error> {
    if !found.clustering_filters {
        return Ok(());
    }
    let mut position = table.partition_key_count;
    for restriction in &found.clustering {
        let filters = restriction.is_contains()
            || restriction.is_like()
            || position != restriction.first()
            || index::is_supported(table, restriction);
        if filters && restriction.multi && restriction.is_slice() {
            return Err(Error::invalid(
                "Multi-column slice restrictions cannot be used for filtering.",
            ));
        }
        if !filters && !restriction.is_slice() {
            position = restriction.last() + 1;
        }
    }
    Ok(())
}

/// The comparison of one end of a slice.
pub(crate) const fn slice_comparison(lower: bool, inclusive: bool) -> Comparison {
    match (lower, inclusive) {
        (true, true) => Comparison::Gte,
        (true, false) => Comparison::Gt,
        (false, true) => Comparison::Lte,
        (false, false) => Comparison::Lt,
    }
}
