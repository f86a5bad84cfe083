//! Secondary indexes and a WHERE: which restrictions each kind of index answers, whether the rest needs filtering, and
//! the ranges of entries to read.
//!
//! ```text
//! legacy  =  CONTAINS  CONTAINS KEY  m[k] = v                     one index answers one restriction
//! SAI     the same, and < <= > >= on types other than text        all of a table's answer together
//! SASI    =  < <= > >= on types other than text, LIKE on texts    one index answers one restriction
//! ```
//! Which restrictions an index supports is Cassandra's rule (`IndexRestrictions`, `SASIIndex.supports`, SAI's
//! `IndexTermType.supports`). Index lookups go further than Cassandra's: a range on a legacy index or an `IN` under ALLOW
//! FILTERING is looked up too, since a lookup may return more rows than match.
//!
//! Differs: the index of a whole partition key, which Cassandra does not have, answers only restrictions that name the key.

use super::error::Error;
use super::key::KEY_BYTES_MAX;
use super::range;
use super::refusal::{BoundRefusal, ValueRefusal};
use super::restriction::{Operand, Restriction, Restrictions, SliceBound, Test};
use super::term::{Binding, TypedTerm};
use crate::command::{ClusteringRange, Comparison, FilterTarget, IndexProbe, Like, Predicate, Value};
use crate::schema::analysis::{Analysis, Tokens};
use crate::schema::{Index, IndexFamily, IndexPart, IndexTarget, Table};
use helenus_types::types::{CqlType, Native};

/// The kind of lookup that a restriction needs from an index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lookup {
    Eq,
    Slice,
    Contains,
    ContainsKey,
    Entry,
    Like,
}

fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(Native::Text | Native::Ascii))
}

/// Whether SAI stores values of this type as terms rather than as ordered numbers.
fn is_literal(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => matches!(
            native,
            Native::Text | Native::Ascii | Native::Boolean | Native::Uuid | Native::Blob
        ),
        _ => true,
    }
}

fn analysis_of(index: &Index, ty: &CqlType) -> Analysis {
    if is_text(ty) {
        index.analysis()
    } else {
        Analysis::default()
    }
}

/// Whether an index supports this lookup on a column.
fn answers(index: &Index, table: &Table, place: usize, lookup: Lookup) -> bool {
    let Some(column) = table.columns.get(place) else {
        return false;
    };
    let (Some(family), Some((part, name))) = (index.family(), index.target_column()) else {
        return false;
    };
    if name != column.name || (place == 0 && table.partition_key_count == 1) {
        return false;
    }
    match (family, part, lookup) {
        (IndexFamily::Sasi, IndexPart::Value, lookup) => {
            let is_tokenized = analysis_of(index, &column.ty).tokens != Tokens::Whole;
            let contains = index.is_mode("contains");
            match lookup {
                Lookup::Eq => !is_tokenized,
                Lookup::Slice => !is_text(&column.ty) && !contains,
                Lookup::Like => is_text(&column.ty),
                _ => false,
            }
        }
        // Cassandra does not recognise a descending column as one of UUIDs.
        (IndexFamily::Sai, IndexPart::Value, Lookup::Slice) => {
            !is_literal(&column.ty) || (column.descending && column.ty == CqlType::Native(Native::Uuid))
        }
        (IndexFamily::Legacy | IndexFamily::Sai, part, lookup) => matches!(
            (part, lookup),
            (IndexPart::Value | IndexPart::Full, Lookup::Eq)
                | (IndexPart::Values, Lookup::Contains)
                | (IndexPart::Keys, Lookup::ContainsKey)
                | (IndexPart::Entries, Lookup::Entry)
        ),
        _ => false,
    }
}

/// The lookups that a restriction needs on each of its columns; none for `IN`, which no index answers.
fn lookups(restriction: &Restriction) -> Vec<Lookup> {
    match &restriction.test {
        Test::Eq(_) => vec![Lookup::Eq],
        Test::In(_) | Test::InMarker(_) => Vec::new(),
        Test::Slice { .. } => vec![Lookup::Slice],
        Test::Like(_) => vec![Lookup::Like],
        Test::Contains { values, keys, entries } => {
            let all = [
                (values.is_empty(), Lookup::Contains),
                (keys.is_empty(), Lookup::ContainsKey),
                (entries.is_empty(), Lookup::Entry),
            ];
            all.into_iter()
                .filter(|(is_empty, _)| !is_empty)
                .map(|(_, lookup)| lookup)
                .collect()
        }
    }
}

/// Whether an index answers a restriction at all, by one of the lookups of one of its columns.
fn supports(index: &Index, table: &Table, restriction: &Restriction) -> bool {
    let mut columns = restriction.columns.iter();
    columns.any(|place| {
        lookups(restriction)
            .into_iter()
            .any(|lookup| answers(index, table, *place, lookup))
    })
}

/// Whether some index answers a restriction.
pub(crate) fn is_supported(table: &Table, restriction: &Restriction) -> bool {
    table.indexes.values().any(|index| supports(index, table, restriction))
}

/// Whether an indexed vector column is restricted.
pub(crate) fn is_vector(table: &Table, restriction: &Restriction) -> bool {
    restriction.columns.iter().any(|place| {
        let column = table.columns.get(*place);
        column.is_some_and(|column| {
            matches!(column.ty, CqlType::Vector(..))
                && table
                    .indexes
                    .values()
                    .any(|index| index.target_column().is_some_and(|(_, name)| name == column.name))
        })
    })
}

/// Whether the statement as a whole needs ALLOW FILTERING: rows are found by a range of keys or by an index, and some
/// restriction remains to filter. Single restrictions are checked elsewhere.
///
/// `is_ann`: the statement is an ANN search, so a storage-attached index orders the rows.
pub(crate) fn needs_filtering(table: &Table, found: &Restrictions, is_ann: bool) -> bool {
    if !(found.is_key_range || found.uses_index) {
        return false;
    }
    let mut filters: Vec<&Restriction> = Vec::new();
    if found.partition_filters {
        filters.extend(&found.partition);
    }
    if found.clustering_filters {
        filters.extend(&found.clustering);
    }
    filters.extend(&found.others);
    if filters.is_empty() {
        // Clustering restrictions that select keys or ranges need it too: they apply to every partition of the token range.
        return !found.clustering.is_empty() && !is_ann;
    }
    // All storage-attached indexes of a table answer together; any other index answers alone.
    let (attached, alone): (Vec<&Index>, Vec<&Index>) = table
        .indexes
        .values()
        .partition(|index| index.family() == Some(IndexFamily::Sai));
    let mut groups = vec![attached];
    if !is_ann {
        groups.extend(alone.into_iter().map(|index| vec![index]));
    }
    !groups
        .iter()
        .any(|group| filters.iter().all(|restriction| covers(group, table, restriction)))
}

/// Whether a group of indexes answers a restriction completely, so that it need not filter.
fn covers(group: &[&Index], table: &Table, restriction: &Restriction) -> bool {
    if restriction.multi {
        let mut columns = restriction.columns.iter();
        return columns.all(|place| {
            group.iter().any(|index| {
                lookups(restriction)
                    .into_iter()
                    .any(|lookup| answers(index, table, *place, lookup))
            })
        });
    }
    let several = match &restriction.test {
        Test::Contains { values, keys, entries } => values.len() + keys.len() + entries.len() > 1,
        _ => false,
    };
    group.iter().any(|index| {
        // An index other than SAI answers one of several CONTAINS; the others filter.
        let filters = several && index.family() != Some(IndexFamily::Sai);
        !filters && supports(index, table, restriction)
    })
}

/// The analysis that an equality, CONTAINS or CONTAINS KEY on a column is compared with, if an index of the column
/// analyses or compares bytes. `None` means that values are compared as their type does.
pub(crate) fn analysis(table: &Table, place: usize, comparison: Comparison) -> Option<Analysis> {
    let lookup = match comparison {
        Comparison::Eq => Lookup::Eq,
        Comparison::Contains => Lookup::Contains,
        Comparison::ContainsKey => Lookup::ContainsKey,
        _ => return None,
    };
    let answering: Vec<(&Index, &CqlType)> = table
        .indexes
        .values()
        .filter(|index| answers(index, table, place, lookup))
        .filter_map(|index| Some((index, part_type(table, place, index.target_column()?.0)?)))
        .collect();
    let analyses = answering.iter().map(|(index, ty)| analysis_of(index, ty));
    if let Some(found) = analyses.into_iter().find(|analysis| !analysis.is_identity()) {
        return Some(found);
    }
    // A legacy index matches bytes exactly: decimal 1.5, not 1.50.
    let by_bytes = answering
        .iter()
        .all(|(index, ty)| index.family() == Some(IndexFamily::Legacy) && ty.has_equal_forms());
    (by_bytes && !answering.is_empty()).then(Analysis::default)
}

/// Refuses values that are too long for the legacy index that would look them up, as Cassandra's `CassandraIndex.validate` does.
///
/// Differs: if indexes answer several filters, Cassandra looks at the values of the one that it estimates to find the fewest rows. Here
/// all of them must be too long.
///
/// # Errors
///
/// Every filter that an index answers has such a value.
pub(crate) fn check_values<'p>(table: &Table, filters: impl IntoIterator<Item = &'p Predicate>) -> Result<(), Error> {
    if table.indexes.is_empty() {
        return Ok(());
    }
    let mut answered = filters
        .into_iter()
        .filter_map(|filter| is_too_long(table, filter))
        .peekable();
    if answered.peek().is_some() && answered.all(|is_too_long| is_too_long) {
        return Err(BoundRefusal::IndexValue.into());
    }
    Ok(())
}

/// Whether the value of a filter is too long for the index that answers it. `None` means that none does.
fn is_too_long(table: &Table, filter: &Predicate) -> Option<bool> {
    let length = |value: &Value| match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Null | Value::Unset => 0,
    };
    let bytes: usize = filter.operands.iter().map(length).sum();
    let (place, bytes) = match &filter.target {
        FilterTarget::Column(place) | FilterTarget::Analysed(place, _) => (*place, bytes),
        // A composite: each part has two bytes for its length before it, and one after it.
        FilterTarget::Element(place, key) => (*place, length(key) + bytes + 6),
        FilterTarget::Field(..) | FilterTarget::Tuple(_) | FilterTarget::Token => return None,
    };
    let lookup = match (filter.comparison, &filter.target) {
        (Comparison::Eq, FilterTarget::Element(..)) => Lookup::Entry,
        (Comparison::Eq, _) => Lookup::Eq,
        (Comparison::Contains, _) => Lookup::Contains,
        (Comparison::ContainsKey, _) => Lookup::ContainsKey,
        (Comparison::Like, _) => Lookup::Like,
        (Comparison::Gt | Comparison::Gte | Comparison::Lt | Comparison::Lte, _) => Lookup::Slice,
        _ => return None,
    };
    let mut families = table
        .indexes
        .values()
        .filter(|index| answers(index, table, place, lookup))
        .map(Index::family)
        .peekable();
    families.peek()?;
    Some(bytes > KEY_BYTES_MAX && families.all(|family| family == Some(IndexFamily::Legacy)))
}

fn part_type(table: &Table, place: usize, part: IndexPart) -> Option<&CqlType> {
    let ty = &table.columns.get(place)?.ty;
    Some(match (part, ty.unfrozen()) {
        (IndexPart::Keys, CqlType::Map(key, _)) => key,
        (IndexPart::Values, CqlType::Map(_, of) | CqlType::List(of) | CqlType::Set(of)) => of,
        _ => ty,
    })
}

/// Whether an equality with an empty value finds nothing: SASI does not index empty texts.
pub(crate) fn skips_empty_texts(table: &Table, place: usize) -> bool {
    let is_text = table.columns.get(place).is_some_and(|column| is_text(&column.ty));
    let mut indexes = table.indexes.values();
    is_text
        && indexes.any(|index| index.family() == Some(IndexFamily::Sasi) && answers(index, table, place, Lookup::Eq))
}

/// The analysis of the index that answers this kind of LIKE.
pub(crate) fn like(table: &Table, place: usize, kind: Like, text: &[u8]) -> Result<Analysis, Error> {
    let column = table.columns.get(place).expect("a place in the planned table");
    let mut indexes = table.indexes.values();
    let found = indexes.find(|index| answers(index, table, place, Lookup::Like) && has_like(index, &column.ty, kind));
    match found {
        Some(index) => Ok(analysis_of(index, &column.ty)),
        None => Err(ValueRefusal::Like {
            column: column.name.clone(),
            shape: kind.shape(),
            text: String::from_utf8_lossy(text).into_owned(),
        }
        .into()),
    }
}

fn has_like(index: &Index, ty: &CqlType, kind: Like) -> bool {
    let contains = index.is_mode("contains");
    match kind {
        Like::Whole => true,
        Like::Prefix => !contains || analysis_of(index, ty).tokens == Tokens::Whole,
        Like::Suffix | Like::Within => contains,
    }
}

/// The values or range that a lookup searches for, before binding.
#[derive(Clone, Debug)]
enum ProbeTarget {
    AnyOf(Vec<TypedTerm>),
    List(TypedTerm),
    Slice(Option<Bound>, Option<Bound>),
    Entry(TypedTerm, TypedTerm),
    Like(TypedTerm),
}

type Bound = (TypedTerm, bool);

/// An index lookup, before binding.
#[derive(Clone, Debug)]
pub(crate) struct ProbePlan {
    index: String,
    target: IndexTarget,
    wanted: ProbeTarget,
}

/// The bytes of a term with bound values; `None` if it is null or not set.
fn bytes_of(term: &TypedTerm, binding: &Binding<'_>) -> Result<Option<bytes::Bytes>, Error> {
    Ok(match term.bind(binding)? {
        Value::Bytes(bytes) => Some(bytes),
        Value::Null | Value::Unset => None,
    })
}

impl ProbePlan {
    /// The index lookups that restrictions allow.
    pub(crate) fn all<'r>(table: &Table, restrictions: impl IntoIterator<Item = &'r Restriction>) -> Vec<Self> {
        if table.indexes.is_empty() {
            return Vec::new();
        }
        let targets: Vec<(&Index, IndexTarget)> = table
            .indexes
            .values()
            .filter_map(|index| Some((index, index.target(table)?)))
            .collect();
        let mut plans = Vec::new();
        for restriction in restrictions {
            for (index, target) in &targets {
                let Some(at) = restriction.columns.iter().position(|place| *place == target.column) else {
                    continue;
                };
                plans.extend(probe_targets(restriction, at, target).into_iter().map(|wanted| Self {
                    index: index.name.clone(),
                    target: target.clone(),
                    wanted,
                }));
            }
        }
        plans
    }

    /// The lookup with bound values; `None` means that this lookup cannot be used.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Option<IndexProbe>, Error> {
        let target = &self.target;
        let mut is_equality = !target.ty().has_equal_forms();
        let bytes = |term: &TypedTerm| bytes_of(term, binding);
        let mut ranges = Vec::new();
        match &self.wanted {
            ProbeTarget::AnyOf(terms) => {
                for term in terms {
                    // Null equals no value.
                    if let Some(value) = bytes(term)? {
                        let Some(range) = self.equal(&value) else {
                            return Ok(None);
                        };
                        ranges.push(range);
                    }
                }
            }
            ProbeTarget::List(term) => {
                let Ok(elements) = term.bind_list(binding)? else {
                    return Ok(None);
                };
                for value in elements.into_iter().flatten() {
                    let Some(range) = self.equal(&value) else {
                        return Ok(None);
                    };
                    ranges.push(range);
                }
            }
            ProbeTarget::Slice(lower, upper) => {
                is_equality = false;
                let Some(range) = self.slice(lower.as_ref(), upper.as_ref(), binding)? else {
                    return Ok(None);
                };
                ranges.push(range);
            }
            ProbeTarget::Entry(key, value) => {
                let (Some(key), Some(value)) = (bytes(key)?, bytes(value)?) else {
                    return Ok(None);
                };
                is_equality &= !target.entry_ty().is_some_and(CqlType::has_equal_forms);
                let Some(probe) = target.encode_entry_probe(&key, Some(&value)) else {
                    return Ok(None);
                };
                ranges.push(range::with_prefix(probe));
            }
            ProbeTarget::Like(term) => {
                let Some(pattern) = bytes(term)? else { return Ok(None) };
                let Some((kind, text)) = Like::of(&pattern) else {
                    return Ok(None);
                };
                // Only an index of mode `contains` stores the suffixes that a match inside a text needs.
                if matches!(kind, Like::Suffix | Like::Within) && !target.contains {
                    return Ok(None);
                }
                let is_open = matches!(kind, Like::Prefix | Like::Within);
                is_equality &= !is_open;
                ranges.extend(self.matching(text, is_open));
            }
        }
        is_equality &= ranges.len() == 1;
        Ok(Some(IndexProbe {
            index: self.index.clone(),
            storage_id: target.storage_id,
            ranges: range::sort_and_merge(ranges),
            is_equality,
        }))
    }

    /// The entries between two bounds; `None` means that no value lies there.
    fn slice(
        &self,
        lower: Option<&Bound>,
        upper: Option<&Bound>,
        binding: &Binding<'_>,
    ) -> Result<Option<ClusteringRange>, Error> {
        let mut range = ClusteringRange {
            start: Vec::new(),
            end: None,
        };
        if let Some((term, inclusive)) = lower {
            let Some(value) = bytes_of(term, binding)? else {
                return Ok(None);
            };
            let probe = self.target.encode_probe(&value);
            range.start = if *inclusive {
                probe
            } else {
                match range::successor(&probe) {
                    Some(after) => after,
                    None => return Ok(None),
                }
            };
        }
        if let Some((term, inclusive)) = upper {
            let Some(value) = bytes_of(term, binding)? else {
                return Ok(None);
            };
            let probe = self.target.encode_probe(&value);
            range.end = if *inclusive {
                range::successor(&probe)
            } else {
                Some(probe)
            };
        }
        Ok(Some(range))
    }

    /// The entries of a text, or of what begins with it. A matching row has all of its terms, so any one leads to it; `None` means that
    /// it has no term, and so there is no such row.
    fn matching(&self, text: &[u8], is_open: bool) -> Option<ClusteringRange> {
        let terms = self.target.analysis.terms(text);
        let term = terms.first()?;
        Some(range::with_prefix(if is_open {
            self.target.encode_prefix(term)
        } else {
            self.target.encode_probe(term)
        }))
    }

    /// The entries of a value; `None` means that the index has no entry for it.
    fn equal(&self, value: &[u8]) -> Option<ClusteringRange> {
        if self.target.contains && value.is_empty() {
            return None;
        }
        let terms = self.target.analysis.terms(value);
        // Any one of several terms suffices: equal rows have all of them.
        let term = terms.first()?;
        Some(range::with_prefix(self.target.encode_probe(term)))
    }
}

/// The lookup targets of a restriction in an index of its column at `at`.
fn probe_targets(restriction: &Restriction, at: usize, target: &IndexTarget) -> Vec<ProbeTarget> {
    let one = |operand: &Operand| match operand {
        Operand::One(term) => Some(term.clone()),
        Operand::Each(terms) => terms.get(at).cloned(),
        Operand::Tuple(_) => None,
    };
    let whole = matches!(target.part, IndexPart::Value | IndexPart::Full);
    match &restriction.test {
        Test::Eq(operand) if whole => one(operand)
            .map(|term| ProbeTarget::AnyOf(vec![term]))
            .into_iter()
            .collect(),
        Test::In(operands) if whole => {
            let terms = operands.iter().map(one).collect::<Option<Vec<_>>>();
            terms.map(ProbeTarget::AnyOf).into_iter().collect()
        }
        Test::InMarker(term) if whole && !restriction.multi => vec![ProbeTarget::List(term.clone())],
        // Analysed texts and suffixes are not in the order of values.
        Test::Slice { lower, upper }
            if whole && !restriction.multi && target.analysis.is_identity() && !target.contains =>
        {
            let bound = |bound: &Option<SliceBound>| {
                let bound = bound.as_ref()?;
                Some((one(&bound.operand)?, bound.inclusive))
            };
            vec![ProbeTarget::Slice(bound(lower), bound(upper))]
        }
        Test::Like(term) if whole => vec![ProbeTarget::Like(term.clone())],
        Test::Contains { values, keys, entries } => match target.part {
            IndexPart::Values => values
                .iter()
                .map(|term| ProbeTarget::AnyOf(vec![term.clone()]))
                .collect(),
            IndexPart::Keys => keys
                .iter()
                .chain(entries.iter().map(|(key, _)| key))
                .map(|term| ProbeTarget::AnyOf(vec![term.clone()]))
                .collect(),
            IndexPart::Entries => entries
                .iter()
                .map(|(key, value)| ProbeTarget::Entry(key.clone(), value.clone()))
                .collect(),
            IndexPart::Value | IndexPart::Full => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_kinds() {
        assert_eq!(Like::of(b"abc"), Some((Like::Whole, &b"abc"[..])));
        assert_eq!(Like::of(b"b%%"), Some((Like::Prefix, &b"b%"[..])));
        assert_eq!(Like::of(b"%c"), Some((Like::Suffix, &b"c"[..])));
        assert_eq!(Like::of(b"%b%d%"), Some((Like::Within, &b"b%d"[..])));
        for empty in [&b""[..], b"%", b"%%"] {
            assert_eq!(Like::of(empty), None);
        }
    }
}
