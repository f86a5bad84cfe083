//! Clustering keys that Cassandra selects where the keys of the storage cannot: after a column whose equal values differ in bytes,
//! restrictions filter.

use super::super::error::Error;
use super::super::restriction::{Restriction, Restrictions};
use super::super::term::Binding;
use super::{FilterPlan, RowsPlan};
use crate::command::{Clustering, Predicate};
use crate::schema::Table;

/// The rows that restrictions on clustering columns name, before binding.
#[derive(Clone, Debug)]
pub(crate) struct KeysPlan {
    /// The keys or ranges that are read.
    rows: RowsPlan,
    /// What Cassandra selects, if that is less than `rows`. Values are refused, and no rows detected, by this one.
    exact: Option<RowsPlan>,
    /// The restrictions that `exact` has beyond `rows`.
    filters: Vec<FilterPlan>,
    /// The partition is named, so that no index is looked up for what selects its rows.
    is_of_partition: bool,
}

impl KeysPlan {
    /// Plans the restrictions that select keys; returns the others, which filter in Cassandra too.
    /// `is_of_partition`: the partition key is named.
    pub(crate) fn new<'r>(
        table: &Table,
        found: &'r Restrictions,
        is_of_partition: bool,
    ) -> (Self, Vec<&'r Restriction>) {
        let (rows, left) = RowsPlan::new(table, found, false);
        let (exact, others) = RowsPlan::new(table, found, true);
        let is_other = |restriction: &&Restriction| others.iter().any(|other| std::ptr::eq(*other, *restriction));
        let (others, of_keys): (Vec<_>, Vec<_>) = left.into_iter().partition(is_other);
        let plan = Self {
            rows,
            exact: (!of_keys.is_empty()).then_some(exact),
            filters: of_keys
                .into_iter()
                .flat_map(|restriction| FilterPlan::of(table, restriction))
                .collect(),
            is_of_partition,
        };
        (plan, others)
    }

    /// What is read.
    pub(crate) fn rows(&self) -> &RowsPlan {
        &self.rows
    }

    /// Positions of the columns that filters test.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        self.filters.iter().flat_map(FilterPlan::columns)
    }

    /// The keys or ranges, and whether Cassandra detects that no row can match. Adds the filters.
    pub(crate) fn bind(
        &self,
        table: &Table,
        binding: &Binding<'_>,
        filters: &mut Vec<Predicate>,
    ) -> Result<(Clustering, bool), Error> {
        if let Some(exact) = &self.exact {
            let (_, is_none) = exact.bind_and_detect_empty(table, binding)?;
            if is_none {
                return Ok((Clustering::Keys(Vec::new()), true));
            }
        }
        for filter in &self.filters {
            filters.extend(filter.bind_of_keys(table, binding, !self.is_of_partition)?);
        }
        self.rows.bind_and_detect_empty(table, binding)
    }
}
