//! Turns validated restrictions and bound values into keys, key ranges and filters. Restrictions that select no keys or
//! ranges are tested on each row ([`filter`]).

mod between;
mod bounds;
mod distinct;
mod filter;
mod keys;
mod ordered;
mod tokens;
mod tuple;

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use self::between::Between;
use self::distinct::{distinct_tuples, distinct_values};
pub(crate) use self::filter::FilterPlan;
pub(crate) use self::keys::KeysPlan;
use self::tokens::{token_filter, token_range};
use self::tuple::{ShortTuple, given_fields, names, tuple_values, whole_tuple};
use super::ann;
use super::error::Error;
use super::key::{KEY_BYTES_MAX, check_keys_bytes, count_product, partition_key, total_bytes};
use super::range::{self, BoundPart};
use super::refusal::BoundRefusal;
use super::restriction::{Operand, Restriction, Restrictions, SliceBound, Test, TokenRestriction};
use super::term::{Binding, TypedTerm};
use super::value;
use crate::command::{Clustering, ClusteringRange, Partitions, Value};
use crate::schema::{Column, Table};
use helenus_types::token::Token;
use helenus_types::types::CqlType;

/// The values of one key component.
#[derive(Clone, Debug)]
pub(crate) enum KeyValues {
    /// `= v`
    One(TypedTerm),
    /// `IN (a, b)`
    AnyOf(Vec<TypedTerm>),
    /// `IN ?`
    List(TypedTerm),
}

/// The partitions to read or write, before binding.
#[derive(Clone, Debug)]
pub(crate) struct PartitionPlan {
    /// One for each component; empty means the whole ring, or a range of it.
    components: Vec<KeyValues>,
    token: Option<TokenRestriction>,
    /// A range of the keys of a table that is ordered by them: what it begins and what it ends with.
    range: Option<(Option<SliceBound>, Option<SliceBound>)>,
}

/// A restriction on clustering columns that selects keys or key ranges.
#[derive(Clone, Debug)]
enum RowPart {
    /// One column has one of these values; if `includes_equal`, also a value that compares equal to one of them.
    Values {
        column: usize,
        given: KeyValues,
        includes_equal: bool,
    },
    /// Several columns have one of these tuples of values.
    Tuples(Vec<usize>, Vec<Operand>),
    /// Several columns have one of the tuples of a list.
    TupleList(Vec<usize>, TypedTerm),
    /// The columns lie in a slice; always last.
    Slice {
        columns: Vec<usize>,
        /// How many of the leading columns bound the key range. The bounds on the other columns filter.
        range_columns: usize,
        multi: bool,
        lower: Option<SliceBound>,
        upper: Option<SliceBound>,
    },
}

/// The rows to read or write, before binding.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowsPlan {
    parts: Vec<RowPart>,
    /// Every clustering column has values.
    full: bool,
    /// Position in the table of the first clustering column without values, not even to filter with.
    named_to: usize,
    between: Option<Between>,
}

/// How a statement binds its rows.
#[derive(Clone, Copy, Debug, Default)]
struct Binds {
    /// A bound of a slice may not be null.
    refuses_null: bool,
    /// The rows are written, so that each needs all its key columns.
    writes: bool,
    /// The rows are written or deleted, so that a value that is too long for a key is refused. A read finds no such row.
    changes: bool,
}

impl Binds {
    /// Refuses a value that is too long for the key of a row that is changed.
    fn check(self, value: &Bytes) -> Result<(), Error> {
        if self.changes && value.len() > KEY_BYTES_MAX {
            return Err(BoundRefusal::KeyLength {
                bytes: value.len(),
                bytes_max: KEY_BYTES_MAX,
            }
            .into());
        }
        Ok(())
    }
}

/// The token of a key: one for all of a table that is ordered by them.
fn token_of(table: &Table, partition_key: &[u8]) -> Token {
    if table.options.is_ordered {
        return Token::OF_ORDERED;
    }
    Token::of(partition_key)
}

fn at(table: &Table, index: usize) -> &Arc<Column> {
    table.columns.get(index).expect("a place in the planned table")
}

/// A key column's value: neither null nor unset.
#[inline]
fn key_value(table: &Table, column: usize, term: &TypedTerm, binding: &Binding<'_>) -> Result<Bytes, Error> {
    whole_value(table, column, term.bind(binding)?)
}

#[inline]
fn whole_value(table: &Table, column: usize, value: Value) -> Result<Bytes, Error> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        Value::Null => Err(BoundRefusal::NullInCondition(at(table, column).name.clone()).into()),
        Value::Unset => Err(BoundRefusal::Unset(at(table, column).name.clone()).into()),
    }
}

impl KeyValues {
    fn of(test: &Test) -> Option<Self> {
        let one = |operand: &Operand| match operand {
            Operand::One(term) => Some(term.clone()),
            _ => None,
        };
        match test {
            Test::Eq(operand) => one(operand).map(Self::One),
            Test::In(operands) => operands.iter().map(one).collect::<Option<Vec<_>>>().map(Self::AnyOf),
            Test::InMarker(term) => Some(Self::List(term.clone())),
            Test::Slice { .. } | Test::Like(_) | Test::Contains { .. } => None,
        }
    }

    /// The values, none twice in other bytes.
    fn values(&self, table: &Table, column: usize, binding: &Binding<'_>) -> Result<Vec<Bytes>, Error> {
        let values = self.all_values(table, column, binding)?;
        Ok(distinct_values(table, column, values))
    }

    fn all_values(&self, table: &Table, column: usize, binding: &Binding<'_>) -> Result<Vec<Bytes>, Error> {
        match self {
            Self::One(term) => Ok(vec![key_value(table, column, term, binding)?]),
            Self::AnyOf(terms) => {
                // As in Cassandra, all are evaluated before one is refused.
                let values: Vec<Value> = terms.iter().map(|term| term.bind(binding)).collect::<Result<_, _>>()?;
                let values = values.into_iter();
                values.map(|value| whole_value(table, column, value)).collect()
            }
            Self::List(term) => {
                let name = || at(table, column).name.clone();
                match term.bind_list(binding)? {
                    Ok(elements) => elements
                        .into_iter()
                        .map(|element| element.ok_or_else(|| BoundRefusal::NullInCondition(name()).into()))
                        .collect(),
                    Err(Value::Unset) => Err(BoundRefusal::Unset(name()).into()),
                    Err(_) => Err(BoundRefusal::Null(name()).into()),
                }
            }
        }
    }
}

impl PartitionPlan {
    /// Plans the partitions that restrictions name: the whole ring if they only filter.
    pub(crate) fn new(table: &Table, found: &Restrictions) -> Self {
        let components = if found.partition_filters || found.partition.len() < table.partition_key_count {
            Vec::new()
        } else {
            found
                .partition
                .iter()
                .filter_map(|restriction| KeyValues::of(&restriction.test))
                .collect()
        };
        Self {
            components,
            token: found.token.clone(),
            range: found.partition.iter().find_map(|of| match &of.test {
                Test::Slice { lower, upper } if found.ranges_over_keys => Some((lower.clone(), upper.clone())),
                _ => None,
            }),
        }
    }

    /// Whether an IN names keys, so that there may be several.
    pub(crate) fn has_in(&self) -> bool {
        self.components.iter().any(|given| !matches!(given, KeyValues::One(_)))
    }

    /// Whether the restrictions name keys.
    pub(crate) fn names_keys(&self) -> bool {
        !self.components.is_empty()
    }

    /// The keys, or the token range.
    pub(crate) fn bind(&self, table: &Table, binding: &Binding<'_>) -> Result<Partitions, Error> {
        if let Some((lower, upper)) = &self.range {
            return ordered::bind(table, lower.as_ref(), upper.as_ref(), binding);
        }
        let Some(token) = &self.token else {
            if self.components.is_empty() {
                return Ok(Partitions::WHOLE_RING);
            }
            return Ok(Partitions::Keys(self.keys(table, binding)?));
        };
        if self.components.is_empty() {
            let (lower, upper) = token_range(token, binding)?;
            return Ok(Partitions::of_tokens(lower, upper));
        }
        let mut keys = self.keys(table, binding)?;
        let allows = token_filter(token, binding)?;
        keys.retain(|key| allows(token_of(table, key).value()));
        Ok(Partitions::Keys(keys))
    }

    /// The serialised keys, distinct, in order of their components' values. Values behind an empty IN are not evaluated.
    pub(crate) fn keys(&self, table: &Table, binding: &Binding<'_>) -> Result<Vec<Bytes>, Error> {
        if let [KeyValues::One(term)] = self.components.as_slice() {
            let key = key_value(table, 0, term, binding)?;
            return Ok(vec![key]);
        }
        let mut keys: Vec<Vec<Bytes>> = vec![Vec::with_capacity(self.components.len())];
        for (column, given) in self.components.iter().enumerate() {
            if keys.is_empty() {
                break;
            }
            let values = given.values(table, column, binding)?;
            if let [value] = values.as_slice() {
                for key in &mut keys {
                    key.push(value.clone());
                }
                continue;
            }
            let mut longer = Vec::with_capacity(count_product(keys.len(), values.len())?);
            for key in &keys {
                for value in &values {
                    let mut key = key.clone();
                    key.push(value.clone());
                    longer.push(key);
                }
            }
            keys = longer;
        }
        if keys.len() > 1 {
            let compare = |a: &Vec<Bytes>, b: &Vec<Bytes>| {
                let mut order = Ordering::Equal;
                for ((a, b), column) in a.iter().zip(b).zip(table.partition_key()) {
                    order = order.then_with(|| {
                        let order = column.compare(a, b);
                        if column.descending { order.reverse() } else { order }
                    });
                }
                order
            };
            keys.sort_by(compare);
            keys.dedup();
        }
        let bytes = keys.iter().map(|components| total_bytes(components)).sum();
        check_keys_bytes(keys.len(), bytes)?;
        keys.iter().map(|components| partition_key(components)).collect()
    }
}

/// The position of the first clustering column without values; those before it have some, if only to filter with.
fn first_without_values(table: &Table, found: &Restrictions) -> usize {
    let names = |column: usize| {
        found.clustering.iter().any(|restriction| {
            restriction.columns.contains(&column)
                && matches!(restriction.test, Test::Eq(_) | Test::In(_) | Test::InMarker(_))
        })
    };
    let mut clustering = table.partition_key_count..table.partition_key_count + table.clustering_count;
    let end = clustering.end;
    clustering.find(|column| !names(*column)).unwrap_or(end)
}

/// The slice that begins at this column, if it has both bounds.
fn between(found: &Restrictions, column: usize) -> Option<Between> {
    found.clustering.iter().find_map(|restriction| {
        let columns = &restriction.columns;
        match &restriction.test {
            Test::Slice {
                lower: Some(lower),
                upper: Some(upper),
            } if columns.first() == Some(&column) => Some(Between {
                columns: columns.clone(),
                lower: lower.clone(),
                upper: upper.clone(),
            }),
            _ => None,
        }
    })
}

impl RowsPlan {
    /// Plans the restrictions that select keys or key ranges; returns the others, which can only filter.
    ///
    /// Types like decimal have equal values of different bytes (1.5 and 1.50), and their keys differ in a trailer.
    /// Unless `exact`, such a column is restricted by the bytes that equal values share. Restrictions on later columns
    /// then filter, and so do restrictions of several columns with it, because keys with different trailers are not
    /// adjacent.
    #[expect(
        clippy::too_many_lines,
        reason = "one pass over the clustering columns decides which of them bound the range and which filter"
    )]
    pub(crate) fn new<'r>(table: &Table, found: &'r Restrictions, exact: bool) -> (Self, Vec<&'r Restriction>) {
        let mut parts = Vec::new();
        let mut left = Vec::new();
        let mut next = table.partition_key_count;
        let mut open = true;
        let has_equal_encodings = |column: usize| !exact && at(table, column).ty.has_equal_forms();
        for restriction in &found.clustering {
            // After a gap or a slice, restricted columns no longer form a key prefix, so later restrictions filter.
            if !open || restriction.columns.first() != Some(&next) {
                left.push(restriction);
                open = false;
                continue;
            }
            let columns = restriction.columns.clone();
            let part = match &restriction.test {
                Test::Slice { lower, upper } => {
                    open = false;
                    let (all_but_last, _) = columns.split_at(columns.len().saturating_sub(1));
                    // Only the last column of the key range may have equal encodings: the encoding of the next column
                    // follows a trailer that may differ.
                    let includes_equal = all_but_last.iter().position(|column| has_equal_encodings(*column));
                    if includes_equal.is_some() {
                        left.push(restriction);
                    }
                    RowPart::Slice {
                        range_columns: includes_equal.map_or(columns.len(), |place| place + 1),
                        columns,
                        multi: restriction.multi,
                        lower: lower.clone(),
                        upper: upper.clone(),
                    }
                }
                Test::Contains { .. } | Test::Like(_) => {
                    open = false;
                    left.push(restriction);
                    continue;
                }
                Test::Eq(_) | Test::In(_) | Test::InMarker(_)
                    if restriction.multi && columns.iter().any(|column| has_equal_encodings(*column)) =>
                {
                    open = false;
                    left.push(restriction);
                    continue;
                }
                Test::Eq(operand) if restriction.multi => RowPart::Tuples(columns, vec![operand.clone()]),
                Test::In(operands) if restriction.multi => RowPart::Tuples(columns, operands.clone()),
                Test::InMarker(term) if restriction.multi => RowPart::TupleList(columns, term.clone()),
                test => match KeyValues::of(test) {
                    Some(given) => {
                        let includes_equal = has_equal_encodings(next);
                        open = !includes_equal;
                        RowPart::Values {
                            column: next,
                            given,
                            includes_equal,
                        }
                    }
                    None => {
                        open = false;
                        left.push(restriction);
                        continue;
                    }
                },
            };
            parts.push(part);
            if open {
                next = restriction.last() + 1;
            }
        }
        let named_to = first_without_values(table, found);
        let plan = Self {
            parts,
            full: open && next == table.partition_key_count + table.clustering_count,
            named_to,
            between: between(found, named_to),
        };
        (plan, left)
    }

    /// Whether every clustering column has values.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// The position of the first clustering column without values; those before it have some, if only to filter with.
    /// One past the last column if all have values.
    pub(crate) fn named_to(&self) -> usize {
        self.named_to
    }

    /// Whether no restriction selects keys or ranges.
    pub(crate) fn is_all(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether some column may have several values.
    pub(crate) fn has_in(&self) -> bool {
        self.parts.iter().any(|part| match part {
            RowPart::Values { given, .. } => !matches!(given, KeyValues::One(_)),
            RowPart::Tuples(_, tuples) => tuples.len() != 1,
            RowPart::TupleList(..) => true,
            RowPart::Slice { .. } => false,
        })
    }

    /// The keys or ranges that a DELETE names. In a SELECT null sorts before every value; with `refuses_null` a bound that is null
    /// is refused, as it would delete all rows on one side of it. `None` means that Cassandra detects that no row can match.
    pub(crate) fn bind_to_delete(
        &self,
        table: &Table,
        binding: &Binding<'_>,
        refuses_null: bool,
    ) -> Result<Option<Clustering>, Error> {
        let binds = Binds {
            refuses_null,
            writes: false,
            changes: true,
        };
        let (rows, is_none) = self.bind_with(table, binding, binds)?;
        Ok((!is_none).then_some(rows))
    }

    /// The keys or ranges, and whether Cassandra detects that no row can match. It does if nothing is named, or if a
    /// lower bound is not below the upper one. It does not if no value can satisfy a single bound (`c < ''`) or two
    /// (`c > 1 AND c < 2`).
    pub(crate) fn bind_and_detect_empty(
        &self,
        table: &Table,
        binding: &Binding<'_>,
    ) -> Result<(Clustering, bool), Error> {
        self.bind_with(table, binding, Binds::default())
    }

    fn bind_with(&self, table: &Table, binding: &Binding<'_>, binds: Binds) -> Result<(Clustering, bool), Error> {
        // A table that hides its clustering column stores each partition as a static row.
        if self.parts.is_empty() && (!self.full || table.is_static_compact()) {
            return Ok((Clustering::All, false));
        }
        let Prefixes {
            all: mut prefixes,
            ranges: slice,
            ..
        } = self.prefixes(table, binding, binds)?;
        if let Some(RowPart::Tuples(..) | RowPart::TupleList(..)) = self.parts.last() {
            // A tuple that is short has a prefix of the others' keys.
            prefixes.dedup_by(|longer, prefix| longer.starts_with(prefix));
        }
        let names_none = prefixes.is_empty();
        if self.full && !binds.changes {
            // No row has a longer key.
            prefixes.retain(|key| key.len() <= KEY_BYTES_MAX);
        }
        let rows = match slice {
            Some(ranges) => Clustering::Ranges(ranges),
            None if self.full => Clustering::Keys(prefixes),
            None => Clustering::Ranges(prefixes.into_iter().map(range::with_prefix).collect()),
        };
        let is_none = match &self.between {
            Some(between) => names_none || between.is_none(table, binding),
            None => names_none,
        };
        Ok((rows, is_none))
    }

    /// Refuses vectors among the clustering values of written rows that an index of their column cannot store.
    pub(crate) fn refuse_vectors(&self, table: &Table, binding: &Binding<'_>) -> Result<(), Error> {
        for part in &self.parts {
            if let RowPart::Values { column, given, .. } = part
                && matches!(at(table, *column).ty, CqlType::Vector(..))
            {
                let values = given.values(table, *column, binding)?;
                values
                    .iter()
                    .try_for_each(|value| ann::refuse_value(table, at(table, *column), value))?;
            }
        }
        Ok(())
    }

    /// The full keys of a modification's rows; `writes` unless they are deleted.
    pub(crate) fn keys(&self, table: &Table, binding: &Binding<'_>, writes: bool) -> Result<Vec<Vec<u8>>, Error> {
        let binds = Binds {
            refuses_null: false,
            writes,
            changes: true,
        };
        Ok(self.prefixes(table, binding, binds)?.all)
    }

    /// What a tuple of fewer values than columns names as the part in this place.
    fn short_tuple(&self, place: usize, writes: bool) -> ShortTuple {
        let is_last = place + 1 == self.parts.len();
        match (self.full, is_last) {
            (true, _) if !writes => ShortTuple::Nothing,
            (false, true) => ShortTuple::Prefix,
            _ => ShortTuple::Refused,
        }
    }

    /// The prefixes, distinct and sorted, and the ranges under them if the last part is a slice. Values behind an empty IN are not evaluated.
    fn prefixes<'a>(&self, table: &'a Table, binding: &Binding<'_>, binds: Binds) -> Result<Prefixes<'a>, Error> {
        let mut prefixes = Prefixes {
            table,
            binds,
            all: vec![Vec::new()],
            many: false,
            is_unset: false,
            ranges: None,
        };
        for (place, part) in self.parts.iter().enumerate() {
            if prefixes.all.is_empty() {
                break;
            }
            let short = self.short_tuple(place, binds.writes);
            match part {
                RowPart::Values {
                    column,
                    given,
                    includes_equal,
                } => prefixes.add_values(*column, given, *includes_equal, binding)?,
                RowPart::Tuples(columns, tuples) => {
                    let several = tuples.len() != 1;
                    let values = tuples.iter().map(|tuple| {
                        let values = tuple_values(table, columns, tuple, binding)?;
                        whole_tuple(table, columns, values, several, short)
                    });
                    let values = values.filter_map(Result::transpose).collect::<Result<_, _>>()?;
                    prefixes.add_tuples(columns, values, several)?;
                }
                RowPart::TupleList(columns, term) => {
                    let list = match term.bind(binding)? {
                        Value::Bytes(list) => value::nullable_elements(&list),
                        Value::Null => return Err(BoundRefusal::NullTuples.into()),
                        Value::Unset => return Err(BoundRefusal::UnsetTuples(names(table, columns, ",")).into()),
                    };
                    let values = list.into_iter().map(|tuple| {
                        let fields = tuple.map_or_else(Vec::new, |tuple| given_fields(&tuple, columns.len()));
                        whole_tuple(table, columns, fields, true, short)
                    });
                    let values = values.filter_map(Result::transpose).collect::<Result<_, _>>()?;
                    prefixes.add_tuples(columns, values, true)?;
                }
                RowPart::Slice {
                    columns,
                    range_columns,
                    multi,
                    lower,
                    upper,
                } => {
                    let bound_parts = |bound: &SliceBound| {
                        let refuses_null = binds.refuses_null || *multi && !matches!(bound.operand, Operand::One(_));
                        let (mut parts, inclusive) = bounds::bound_parts(table, columns, refuses_null, bound, binding)?;
                        // A cut bound is wider than the written one, so it is inclusive; the rest of the slice filters.
                        let is_cut = parts.len() > *range_columns;
                        parts.truncate(*range_columns);
                        Ok::<_, Error>((parts, inclusive || is_cut))
                    };
                    let lower = lower.as_ref().map(bound_parts).transpose()?;
                    let upper = upper.as_ref().map(bound_parts).transpose()?;
                    return Ok(prefixes.between(lower, upper));
                }
            }
        }
        Ok(prefixes.sorted())
    }
}

/// A bound of a slice: its parts, and whether it is inclusive.
type Bound = (Vec<BoundPart>, bool);

/// Prefixes of clustering keys, as the parts of a restriction make them longer.
struct Prefixes<'a> {
    table: &'a Table,
    binds: Binds,
    all: Vec<Vec<u8>>,
    /// Whether a part has several values.
    many: bool,
    /// Cassandra treats an empty value in one of several tuples as unset, and reports it at the next column.
    is_unset: bool,
    /// The ranges under the prefixes, if the last part is a slice.
    ranges: Option<Vec<ClusteringRange>>,
}

impl Prefixes<'_> {
    fn add_values(
        &mut self,
        column: usize,
        given: &KeyValues,
        includes_equal: bool,
        binding: &Binding<'_>,
    ) -> Result<(), Error> {
        let (table, binds) = (self.table, self.binds);
        if let KeyValues::One(term) = given {
            let value = key_value(table, column, term, binding)?;
            binds.check(&value)?;
            let column = at(table, column);
            refuse_unset(self.is_unset, column)?;
            let longer = self.all.len().saturating_mul(value.len());
            check_keys_bytes(self.all.len(), total_bytes(&self.all) + longer)?;
            for prefix in &mut self.all {
                encode(column, &value, includes_equal, prefix);
            }
            return Ok(());
        }
        let values = given.values(table, column, binding)?;
        let column = at(table, column);
        refuse_unset(self.is_unset, column)?;
        self.all = product(&self.all, &values, |value, prefix| {
            binds.check(value)?;
            encode(column, value, includes_equal, prefix);
            Ok(())
        })?;
        self.many = true;
        Ok(())
    }

    fn add_tuples(&mut self, columns: &[usize], values: Vec<Vec<Bytes>>, several: bool) -> Result<(), Error> {
        let (table, binds) = (self.table, self.binds);
        self.is_unset |= several && has_empty(&values);
        let values = distinct_tuples(table, columns, values);
        self.all = product(&self.all, &values, |values, prefix| {
            values.iter().try_for_each(|value| binds.check(value))?;
            encode_tuple(table, columns, values, prefix);
            Ok(())
        })?;
        self.many |= several;
        Ok(())
    }

    /// With the ranges between two bounds. As in Cassandra, a tuple without fields bounds nothing.
    fn between(self, lower: Option<Bound>, upper: Option<Bound>) -> Self {
        let mut sorted = self.sorted();
        let bounds = |(parts, _): &Bound| !parts.is_empty();
        let lower = lower.filter(bounds);
        let mut upper = upper.filter(bounds);
        if let (Some((lower, _)), Some((upper, _))) = (&lower, &mut upper) {
            range::share_encodings(lower, upper);
        }
        let ranges = sorted.all.iter();
        let ranges = ranges.flat_map(|prefix| range::between(prefix, lower.as_ref(), upper.as_ref()));
        sorted.ranges = Some(ranges.collect());
        sorted
    }

    fn sorted(mut self) -> Self {
        if self.many {
            self.all.sort_unstable();
            self.all.dedup();
        }
        self
    }
}

fn has_empty(tuples: &[Vec<Bytes>]) -> bool {
    tuples.iter().flatten().any(Bytes::is_empty)
}

fn refuse_unset(is_unset: bool, column: &Column) -> Result<(), Error> {
    if is_unset {
        return Err(BoundRefusal::Unset(column.name.clone()).into());
    }
    Ok(())
}

/// Appends each value to each prefix.
fn product<T>(
    prefixes: &[Vec<u8>],
    values: &[T],
    append: impl Fn(&T, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<Vec<Vec<u8>>, Error> {
    let keys = count_product(prefixes.len(), values.len())?;
    let mut longer = Vec::with_capacity(keys);
    let mut bytes = 0;
    for prefix in prefixes {
        for value in values {
            let mut key = prefix.clone();
            append(value, &mut key)?;
            bytes += key.len();
            check_keys_bytes(keys, bytes)?;
            longer.push(key);
        }
    }
    Ok(longer)
}

fn encode(column: &Column, value: &[u8], includes_equal: bool, prefix: &mut Vec<u8>) {
    if includes_equal {
        column.ty.encode_key_order(value, column.key_order(), prefix);
    } else {
        column.ty.encode_key(value, column.key_order(), prefix);
    }
}

fn encode_tuple(table: &Table, columns: &[usize], values: &[Bytes], prefix: &mut Vec<u8>) {
    for (column, value) in columns.iter().zip(values) {
        let column = at(table, *column);
        column.ty.encode_key(value, column.key_order(), prefix);
    }
}
