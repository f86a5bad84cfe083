//! Merges restrictions on the same columns into one, as Cassandra does.

use super::error::Error;
use super::index::is_supported;
use super::refusal::RestrictionRefusal;
use super::restriction::{Restriction, Restrictions, Test, column_at, names};
use super::validate::RestrictionValidator;
use crate::schema::{ColumnKind, Table};

impl RestrictionValidator<'_, '_> {
    /// Adds a restriction to those found so far.
    pub(crate) fn add(&self, new: Restriction, found: &mut Restrictions) -> Result<(), Error> {
        let kind = column_at(&self.table, new.first()).kind;
        match kind {
            ColumnKind::PartitionKey => merge_into(&self.table, &mut found.partition, new).map(|_| ()),
            ColumnKind::Static | ColumnKind::Regular => merge_into(&self.table, &mut found.others, new).map(|_| ()),
            ColumnKind::Clustering => self.add_clustering(new, found),
        }
    }

    fn add_clustering(&self, new: Restriction, found: &mut Restrictions) -> Result<(), Error> {
        let (first, is_slice) = (new.first(), new.is_slice());
        // As in Cassandra: the order is checked against the restrictions before the merge, and not if an index answers
        // the new one.
        let checks_order = !self.allow_filtering && !is_supported(&self.table, &new);
        let last = found.clustering.last();
        let last = last.map(|last| (last.first(), last.is_slice()));
        let next = found.clustering.iter().find(|restriction| restriction.first() > first);
        let next = next.map_or(first, Restriction::first);
        merge_into(&self.table, &mut found.clustering, new)?;
        let Some((last, last_is_slice)) = last.filter(|_| checks_order) else {
            return Ok(());
        };
        if last_is_slice && first > last {
            return Err(RestrictionRefusal::BehindSlice {
                column: column_at(&self.table, first).name.clone(),
                preceding: column_at(&self.table, last).name.clone(),
            }
            .into());
        }
        if first < last && is_slice {
            return Err(RestrictionRefusal::SliceBefore {
                column: column_at(&self.table, next).name.clone(),
                preceding: column_at(&self.table, first).name.clone(),
            }
            .into());
        }
        Ok(())
    }
}

/// Adds a restriction, merging it with one on the same columns; keeps the order of columns.
fn merge_into(table: &Table, all: &mut Vec<Restriction>, new: Restriction) -> Result<(), Error> {
    let common = |old: &Restriction| -> Vec<usize> {
        old.columns
            .iter()
            .copied()
            .filter(|column| new.columns.contains(column))
            .collect()
    };
    let Some(place) = all.iter().position(|old| !common(old).is_empty()) else {
        let at = all.partition_point(|old| old.first() < new.first());
        all.insert(at, new);
        return Ok(());
    };
    let old = all.get_mut(place).expect("the place of an element");
    let shared = names(table, &common(old));
    match (&mut old.test, new.test) {
        (Test::Eq(_), _) => Err(RestrictionRefusal::BesideEqual(shared).into()),
        (Test::In(_) | Test::InMarker(_), _) => Err(RestrictionRefusal::BesideIn(shared).into()),
        (Test::Like(_), _) => Err(RestrictionRefusal::BesideLike(shared).into()),
        (
            Test::Slice { lower, upper },
            Test::Slice {
                lower: new_lower,
                upper: new_upper,
            },
        ) => {
            if old.columns.first() != new.columns.first() {
                let later = old
                    .columns
                    .first()
                    .max(new.columns.first())
                    .copied()
                    .unwrap_or_default();
                return Err(RestrictionRefusal::SliceStarts(column_at(table, later).name.clone()).into());
            }
            if lower.is_some() && new_lower.is_some() {
                return Err(RestrictionRefusal::TwoStarts(shared).into());
            }
            if upper.is_some() && new_upper.is_some() {
                return Err(RestrictionRefusal::TwoEnds(shared).into());
            }
            *lower = lower.take().or(new_lower);
            *upper = upper.take().or(new_upper);
            old.multi |= new.multi;
            if new.columns.len() > old.columns.len() {
                old.columns = new.columns;
            }
            Ok(())
        }
        (Test::Slice { .. }, _) => Err(RestrictionRefusal::EqualBesideSlice(shared).into()),
        (
            Test::Contains { values, keys, entries },
            Test::Contains {
                values: new_values,
                keys: new_keys,
                entries: new_entries,
            },
        ) => {
            values.extend(new_values);
            keys.extend(new_keys);
            entries.extend(new_entries);
            Ok(())
        }
        (Test::Contains { .. }, _) => Err(RestrictionRefusal::BesideContains(shared).into()),
    }
}
