//! Validates and classifies the restrictions of a WHERE clause: which name partitions, which select keys or ranges of
//! rows, which only filter. Refuses the others with Cassandra's messages, in its order. Source: Cassandra's
//! `StatementRestrictions`.

use std::sync::Arc;

use grammar::ast::{Relation, RelationTarget};

use super::ann::AnnOrdering;
use super::error::Error;
use super::index;
use super::refusal::RestrictionRefusal;
use super::restriction::{Kind, Restriction, Restrictions, column_at, names};
use super::text::quoted;
use super::typing::Clause;
use super::typing::TypeChecker;
use crate::schema::Table;

/// Reads, validates and classifies the relations of a statement.
pub(crate) struct RestrictionValidator<'a, 'b> {
    /// Determines the types of terms.
    pub(crate) typer: &'a mut TypeChecker<'b>,
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The kind of statement.
    pub(crate) kind: Kind,
    /// ALLOW FILTERING.
    pub(crate) allow_filtering: bool,
    /// ORDER BY … ANN OF.
    pub(crate) ann: Option<&'a AnnOrdering>,
}

/// Whether a table is filtered without ALLOW FILTERING: virtual tables are, except those of many rows
/// (`VirtualTable.allowFilteringImplicitly`).
pub(crate) fn filters_implicitly(table: &Table) -> bool {
    table.is_virtual && !(table.keyspace == "system_views" && table.name == "system_logs")
}

impl RestrictionValidator<'_, '_> {
    /// Reads and merges all relations, then validates them.
    pub(crate) fn validate(mut self, relations: &[Relation], only_static: bool) -> Result<Restrictions, Error> {
        let is_custom = |relation: &Relation| matches!(relation.target, RelationTarget::Index(_));
        if self.kind != Kind::Select && relations.iter().any(is_custom) {
            return Err(RestrictionRefusal::CustomInWrite.into());
        }
        self.typer.calls.enter(Clause::Where);
        let mut found = Restrictions::default();
        for relation in relations {
            self.relation(relation, &mut found)?;
        }
        self.finish(found, only_static)
    }

    /// Validates restrictions built elsewhere: those on an INSERT's key columns.
    pub(crate) fn finish(&self, mut found: Restrictions, only_static: bool) -> Result<Restrictions, Error> {
        if let Some(ann) = self.ann {
            ann.refuse_restricted(&self.table, &found)?;
        }
        self.custom_expression(&found.custom)?;
        let is_supported = |restriction: &Restriction| index::is_supported(&self.table, restriction);
        let clustering_index = self.kind == Kind::Select && found.clustering.iter().any(is_supported);
        let others = found.partition.iter().chain(&found.others);
        let is_ann = self.ann.is_some_and(|ann| ann.is_supported(&self.table));
        let index = self.kind == Kind::Select && (clustering_index || is_ann || others.into_iter().any(is_supported));
        self.partition(&mut found, index)?;
        // Static columns belong to the partition, so restrictions on rows cannot apply to them.
        if only_static && !found.clustering.is_empty() {
            match self.kind {
                Kind::Update | Kind::Delete => {
                    return Err(RestrictionRefusal::StaticModified(self.kind.name()).into());
                }
                Kind::Select => {
                    return Err(RestrictionRefusal::StaticSelected.into());
                }
                Kind::Insert => {}
            }
        }
        self.clustering(&mut found, index, only_static)?;
        self.clustering_filters(&mut found, clustering_index);
        match self.ann {
            Some(ann) => ann.check(&self.table, &found)?,
            None if self.kind == Kind::Select => {
                let mut others = found.others.iter();
                if others.any(|restriction| index::is_vector(&self.table, restriction)) {
                    return Err(RestrictionRefusal::Vector.into());
                }
            }
            None => {}
        }
        if !found.others.is_empty() || self.ann.is_some() {
            if self.kind != Kind::Select {
                let columns: Vec<usize> = found
                    .others
                    .iter()
                    .flat_map(|restriction| restriction.columns.clone())
                    .collect();
                return Err(RestrictionRefusal::NotKey(names(&self.table, &columns)).into());
            }
            if index {
                found.uses_index = true;
            } else if !self.allow_filtering && !filters_implicitly(&self.table) {
                return Err(Error::NeedsFiltering);
            }
        }
        if found.uses_index && found.token.is_none() && found.partition.iter().any(Restriction::is_in) {
            return Err(RestrictionRefusal::InBesideIndex.into());
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
            let is_range = found.partition.iter().all(Restriction::is_slice) && !found.partition.is_empty();
            if self.table.options.is_ordered && is_range && found.token.is_none() && !index {
                found.is_key_range = true;
                found.ranges_over_keys = true;
                return Ok(());
            }
            let filters = !found.partition.is_empty() && (missing || !found.partition.iter().all(plain));
            if filters {
                if !self.allow_filtering && !index && !filters_implicitly(&self.table) {
                    return Err(Error::NeedsFiltering);
                }
                found.is_key_range = true;
                found.uses_index = index;
                found.partition_filters = true;
            }
            return Ok(());
        }
        if found.token.is_some() {
            return Err(RestrictionRefusal::TokenInWrite(self.kind.name()).into());
        }
        if missing {
            let restricted: Vec<usize> = found.partition.iter().map(Restriction::first).collect();
            let rest: Vec<usize> = (0..count).filter(|index| !restricted.contains(index)).collect();
            return Err(RestrictionRefusal::PartitionKeyMissing(names(&self.table, &rest)).into());
        }
        if found.partition.iter().any(Restriction::is_slice) {
            return Err(RestrictionRefusal::PartitionKeySlice(self.kind.name()).into());
        }
        Ok(())
    }

    fn clustering(&self, found: &mut Restrictions, index: bool, only_static: bool) -> Result<(), Error> {
        let start = self.table.partition_key_count;
        let slices = matches!(self.kind, Kind::Select | Kind::Delete);
        if !slices {
            if found.clustering.iter().any(Restriction::is_slice) {
                return Err(RestrictionRefusal::ClusteringSlice(self.kind.name()).into());
            }
            let restricted: Vec<usize> = found
                .clustering
                .iter()
                .flat_map(|restriction| restriction.columns.clone())
                .collect();
            if !only_static && self.table.is_static_compact() {
                // The missing column is the clustering column that such a table hides. Tables of older versions have
                // none.
                if self.table.has_static() || self.table.others().is_empty() {
                    return Err(RestrictionRefusal::ClusteringMissing(self.table.hidden_names().0).into());
                }
                return Ok(());
            }
            if self.table.compact_storage && !restricted.is_empty() {
                // Trailing clustering columns may be left out; they are null then.
                return self.in_order(found);
            }
            if !only_static && restricted.len() < self.table.clustering_count {
                let rest: Vec<usize> = (start..start + self.table.clustering_count)
                    .filter(|index| !restricted.contains(index))
                    .collect();
                return Err(RestrictionRefusal::ClusteringMissing(names(&self.table, &rest)).into());
            }
            return Ok(());
        }
        if found.clustering.iter().any(Restriction::is_contains) && !index && !self.allow_filtering {
            return Err(RestrictionRefusal::ClusteringContains.into());
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
                self.in_order(found)?;
            }
        }
        Ok(())
    }

    /// Refuses restrictions on clustering columns that skip a preceding one.
    fn in_order(&self, found: &Restrictions) -> Result<(), Error> {
        let restricted = found
            .clustering
            .iter()
            .flat_map(|restriction| restriction.columns.clone());
        for (expected, restricted) in (self.table.partition_key_count..).zip(restricted) {
            if expected != restricted {
                return Err(RestrictionRefusal::PrecedingOpen {
                    column: column_at(&self.table, restricted).name.clone(),
                    preceding: column_at(&self.table, expected).name.clone(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Marks clustering restrictions as filters if a SELECT uses an index.
    fn clustering_filters(&self, found: &mut Restrictions, clustering_index: bool) {
        if found.is_key_range && clustering_index {
            found.uses_index = true;
        }
        found.clustering_filters |= self.kind == Kind::Select && found.uses_index;
    }

    /// Refuses `expr(index, value)`: no index accepts one, neither here nor in Cassandra.
    fn custom_expression(&self, names: &[String]) -> Result<(), Error> {
        let name = match names {
            [] => return Ok(()),
            [name] => name,
            _ => {
                return Err(RestrictionRefusal::CustomTwice.into());
            }
        };
        match self.table.indexes.get(name) {
            None => Err(RestrictionRefusal::CustomUnknown {
                index: quoted(name),
                keyspace: self.table.keyspace.clone(),
                table: self.table.name.clone(),
            }
            .into()),
            Some(index) if index.kind != "CUSTOM" => Err(RestrictionRefusal::CustomKind(quoted(name)).into()),
            Some(_) => Err(RestrictionRefusal::CustomNotTaken(name.clone()).into()),
        }
    }
}

/// Whether a slice of several columns would have to be tested row by row, which is refused when the statement is executed.
pub(crate) fn filters_by_slices(table: &Table, found: &Restrictions) -> bool {
    if !found.clustering_filters {
        return false;
    }
    let mut position = table.partition_key_count;
    for restriction in &found.clustering {
        let filters = restriction.is_contains()
            || restriction.is_like()
            || position != restriction.first()
            || index::is_supported(table, restriction);
        if filters && restriction.multi && restriction.is_slice() {
            return true;
        }
        if !filters && !restriction.is_slice() {
            position = restriction.last() + 1;
        }
    }
    false
}
