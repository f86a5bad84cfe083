//! SELECT: planned once, bound for each execution.
//!
//! Source: Cassandra's `SelectStatement`.

use std::ops::Range;
use std::sync::Arc;

use grammar::ast::{self, Direction, OrderBy, Selector, Term};

use super::ann::{self, AnnPlan};
use super::error::Error;
use super::feed::FeedPlan;
use super::index::{self, ProbePlan, needs_filtering};
use super::key::check_partition_key;
use super::rank::{Faults, Stage};
use super::refusal::SelectRefusal;
use super::restrict::{FilterPlan, KeysPlan, PartitionPlan};
use super::restriction::{Kind, Restriction, Restrictions, Test, column};
use super::selection::{self, GroupPlan, SelectionPlan};
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::TypeChecker;
use super::validate::{RestrictionValidator, filters_by_slices, filters_implicitly};
use super::value;
use crate::command::{
    Clustering, Comparison, Filter, FilterTarget, Partitions, Predicate, Read, ResultColumn, Selection, Value,
};
use crate::schema::{ColumnKind, Table};
use helenus_types::functions::{Context, Function};
use helenus_types::types::{CqlType, Native};

/// A planned SELECT.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    /// The table.
    pub table: Arc<Table>,
    selection: SelectionPlan,
    /// The selection with masks in place of the masked columns; `None` means that no masked column is selected.
    masked: Option<SelectionPlan>,
    /// Names of the columns with masks that the WHERE clause restricts, sorted.
    masked_restricted: Vec<String>,
    partitions: PartitionPlan,
    rows: KeysPlan,
    filters: Vec<FilterPlan>,
    /// Clustering restrictions that Cassandra reads an index for. They are bound as filters only for errors.
    indexed: Vec<FilterPlan>,
    probes: Vec<ProbePlan>,
    reversed: bool,
    sort: Vec<(usize, bool)>,
    ann: Option<AnnPlan>,
    group_by: Option<GroupPlan>,
    distinct: bool,
    allows_filtering: bool,
    limit: Option<TypedTerm>,
    per_partition_limit: Option<TypedTerm>,
    /// How it reads the change feed. `None` means that it reads rows.
    feed: Option<FeedPlan>,
    /// Cassandra's warning about an aggregation over many partitions; `None` means no warning.
    aggregate_warning: Option<&'static str>,
    /// Whether an index of vectors would answer one of its CONTAINS.
    contains_vector: bool,
    /// The user-defined functions that it calls, those of aggregates included.
    calls: Box<[Function]>,
}

impl SelectPlan {
    /// Whether it reads the change feed.
    #[must_use]
    pub const fn is_of_feed(&self) -> bool {
        self.feed.is_some()
    }

    /// The result columns.
    #[must_use]
    pub fn columns(&self) -> &Arc<Vec<ResultColumn>> {
        &self.selection.template.columns
    }

    /// Whether rows are aggregated or grouped, so that a page holds groups.
    #[must_use]
    pub fn is_aggregate(&self) -> bool {
        !self.selection.template.aggregates.is_empty() || self.group_by.is_some()
    }

    /// Whether it has a GROUP BY.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.group_by.is_some()
    }

    /// Whether it has ALLOW FILTERING.
    #[must_use]
    pub fn allows_filtering(&self) -> bool {
        self.allows_filtering
    }

    /// Whether it scans a token range instead of reading partitions by key.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        !self.partitions.names_keys()
    }

    /// Whether rows of several partitions are sorted together: such a query cannot be paged.
    #[must_use]
    pub fn sorts_partitions(&self) -> bool {
        !self.sort.is_empty()
    }

    /// Names of the columns with masks that the WHERE clause restricts, sorted.
    #[must_use]
    pub fn masked_restricted(&self) -> &[String] {
        &self.masked_restricted
    }

    /// The user-defined functions that it calls, those of aggregates included.
    #[must_use]
    pub fn calls(&self) -> &[Function] {
        &self.calls
    }

    /// Whether columns with masks are selected.
    #[must_use]
    pub const fn selects_masked(&self) -> bool {
        self.masked.is_some()
    }

    /// The warning that Cassandra sends when the statement runs.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        if self.is_aggregate() {
            self.aggregate_warning
        } else {
            None
        }
    }

    /// Binds the statement's values. `is_masked`: the client receives masks instead of the values of masked columns.
    ///
    /// # Errors
    ///
    /// Values that do not fit their types, null or unset where neither is allowed, keys too long, limits that are not
    /// positive.
    pub fn bind(&self, values: &[Value], context: &Context, is_masked: bool) -> Result<Read, Error> {
        let selection = self.masked.as_ref().filter(|_| is_masked).unwrap_or(&self.selection);
        let table = &self.table;
        let binding = &Binding {
            values,
            json: None,
            context,
        };
        let limit_rows = limit(self.limit.as_ref(), binding)?;
        let per_partition_limit_rows = limit(self.per_partition_limit.as_ref(), binding)?;
        let selection: Arc<Selection> = selection.bind(binding)?;
        let indexed = FilterPlan::bind_all(&self.indexed, table, binding)?;
        // Filters are bound first, as in Cassandra: if several values are wrong, its error wins.
        let mut filters = FilterPlan::bind_all(&self.filters, table, binding)?;
        let index_values = index::check_values(table, indexed.iter().chain(&filters));
        if self.contains_vector {
            return Err(ann::refuse_contains(limit_rows));
        }
        let mut partitions = self.partitions.bind(table, binding)?;
        let (mut rows, is_none) = if matches!(&partitions, Partitions::Keys(keys) if keys.is_empty()) {
            // As in Cassandra, values of clustering columns are not evaluated.
            (Clustering::Keys(Vec::new()), false)
        } else {
            self.rows.bind(table, binding, &mut filters)?
        };
        let mut probes = Vec::new();
        for probe in &self.probes {
            probes.extend(probe.bind(binding)?);
        }
        // If the restrictions name no row, static columns are still read, provided that they are selected or that only
        // the key is.
        // Such a static row counts as a row of a page.
        let named_to = self.rows.rows().named_to();
        let names_all = table.clustering_count > 0 && named_to == table.partition_key_count + table.clustering_count;
        let names_none = |filter: &Predicate| rejects_every_row(filter, table.partition_key_count..named_to);
        let is_none = is_none && table.clustering_count > 0 || filters.iter().any(names_none);
        let counts_static = is_none && names_all && reads_static(table, &selection, &filters);
        if counts_static {
            rows = Clustering::Keys(Vec::new());
            // An empty IN rejects every row, and would reject the static row too.
            filters.retain(|filter| !names_none(filter));
        }
        // Cassandra validates a key only when it is about to read it.
        if let Partitions::Keys(keys) = &mut partitions {
            if is_none && !counts_static {
                keys.clear();
            }
            keys.iter().try_for_each(check_partition_key)?;
        }
        if !matches!(&partitions, Partitions::Keys(keys) if keys.is_empty()) {
            index_values?;
        }
        let (feed, is_full_fidelity, partitions) = match &self.feed {
            None => (None, false, partitions),
            Some(feed) => {
                let bound = feed.bind(binding, partitions)?;
                (Some(bound.start), bound.is_full_fidelity, bound.partitions)
            }
        };
        Ok(Read {
            table: Arc::clone(table),
            selection,
            partitions,
            rows,
            counts_static,
            filter: Filter::all(filters),
            probes,
            reversed: self.reversed,
            sort: self.sort.clone(),
            nearest: self.ann.as_ref().map(|ann| ann.bind(table, binding)).transpose()?,
            group_by: self.group_by.as_ref().map(|groups| groups.bind(binding)).transpose()?,
            distinct: self.distinct,
            limit_rows,
            per_partition_limit_rows,
            feed,
            is_full_fidelity,
        })
    }
}

/// Whether a filter on these columns rejects every row (`c IN ()`).
fn rejects_every_row(filter: &Predicate, columns: Range<usize>) -> bool {
    let of_them = match &filter.target {
        FilterTarget::Column(place) => columns.contains(place),
        FilterTarget::Tuple(places) => places.iter().all(|place| columns.contains(place)),
        _ => false,
    };
    of_them && filter.comparison == Comparison::In && filter.operands.is_empty()
}

/// Whether static columns are read although no row is: if some are selected or filtered on, or if only key columns are.
fn reads_static(table: &Table, selection: &Selection, filters: &[Predicate]) -> bool {
    let filtered = filters.iter().filter_map(|filter| match &filter.target {
        FilterTarget::Column(place)
        | FilterTarget::Element(place, _)
        | FilterTarget::Field(place, _)
        | FilterTarget::Analysed(place, _) => Some(*place),
        FilterTarget::Tuple(_) | FilterTarget::Token => None,
    });
    let of = |kind| {
        let read = selection.needed.iter().copied().chain(filtered.clone());
        let columns = read.filter_map(|place| table.columns.get(place));
        columns.filter(|column| column.kind == kind).count()
    };
    table.has_static() && (of(ColumnKind::Static) > 0 || of(ColumnKind::Regular) == 0)
}

/// LIMIT and PER PARTITION LIMIT; unset means no limit.
fn limit(term: Option<&TypedTerm>, binding: &Binding<'_>) -> Result<Option<u32>, Error> {
    let Some(term) = term else { return Ok(None) };
    match term.bind(binding)? {
        Value::Unset => Ok(None),
        Value::Null => Err(SelectRefusal::NullLimit.into()),
        Value::Bytes(bytes) => match value::int(&bytes).map(u32::try_from) {
            Some(Ok(rows)) if rows > 0 => Ok(Some(rows)),
            // Cassandra treats a value of zero bytes as no limit.
            None => Ok(None),
            Some(_) => Err(SelectRefusal::LimitNotPositive.into()),
        },
    }
}

/// The warning of an aggregate that reads all partitions, or several. Cassandra ignores an IN if a token range is read and keys
/// only filter.
fn aggregate_warning(restrictions: &Restrictions, partitions: &PartitionPlan) -> Option<&'static str> {
    let has_in = |restriction: &Restriction| matches!(restriction.test, Test::In(_) | Test::InMarker(_));
    let names_keys = restrictions.token.is_none() || partitions.names_keys();
    if restrictions.partition.is_empty() && restrictions.token.is_none() {
        Some("Aggregation query used without partition key")
    } else if names_keys && restrictions.partition.iter().any(has_in) {
        Some("Aggregation query used on multiple partition keys (IN restriction)")
    } else {
        None
    }
}

/// What is tested row by row, and the indexes that find rows.
struct Tests {
    filters: Vec<FilterPlan>,
    indexed: Vec<FilterPlan>,
    probes: Vec<ProbePlan>,
}

impl Tests {
    /// `left` are the restrictions of clustering columns that select no keys.
    fn of(
        table: &Arc<Table>,
        restrictions: &Restrictions,
        partitions: &PartitionPlan,
        left: Vec<&Restriction>,
    ) -> Self {
        let filters_partitions =
            restrictions.partition_filters || restrictions.partition.len() < table.partition_key_count;
        // Cassandra uses no index for what selects keys.
        let selects_keys = |restriction: &&Restriction| {
            partitions.names_keys() && !left.iter().any(|left| std::ptr::eq(*left, *restriction))
        };
        let looked_up: Vec<&Restriction> = restrictions.clustering.iter().filter(|of| !selects_keys(of)).collect();
        let by_slices = filters_by_slices(table, restrictions);
        let is_refused = |restriction: &&Restriction| by_slices && restriction.multi && restriction.is_slice();
        let filters_of = |restriction: &Restriction| FilterPlan::of(table, restriction);
        let of_partition = restrictions.partition.iter().filter(|_| filters_partitions);
        let mut filters: Vec<FilterPlan> = of_partition.clone().flat_map(filters_of).collect();
        filters.extend((by_slices && !left.iter().any(is_refused)).then(FilterPlan::refused));
        filters.extend(left.into_iter().flat_map(|restriction| match is_refused(&restriction) {
            true => vec![FilterPlan::refused()],
            false => FilterPlan::of(table, restriction),
        }));
        filters.extend(restrictions.others.iter().flat_map(filters_of));
        let is_indexed =
            |restriction: &&Restriction| !partitions.names_keys() && index::is_supported(table, restriction);
        let indexed = restrictions.clustering.iter().filter(is_indexed).filter(|_| !by_slices);
        let all_looked_up = of_partition.chain(looked_up).chain(&restrictions.others);
        Self {
            filters,
            indexed: indexed.flat_map(filters_of).collect(),
            probes: ProbePlan::all(table, all_looked_up),
        }
    }
}

/// The fault of a selection that comes before those of the restrictions.
///
/// Cassandra validates restrictions before the selection. A table with static columns is the exception: there it first tests whether only
/// those are selected, and prepares selectors for that test. Later it takes each selector through both stages before the next one, since
/// the list of selectors is lazy.
fn fault_before_restrictions(table: &Table, select: &ast::Select, faults: &Faults) -> Option<Error> {
    if !table.has_static() {
        return None;
    }
    faults.first_of(Stage::Prepare, prepared_first(table, select)).cloned()
}

/// A row of a change feed as JSON has the system columns too.
fn show_system_columns(selection: &mut SelectionPlan) {
    let template = Arc::make_mut(&mut selection.template);
    template.has_system_columns = true;
    template.needs_metadata = true;
}

/// Plans a SELECT.
#[expect(
    clippy::too_many_lines,
    reason = "the clauses of a statement, in the order of the faults of Cassandra"
)]
pub(crate) fn select(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    select: &ast::Select,
) -> Result<SelectPlan, Error> {
    let of_feed = FeedPlan::of(typer, table, select)?;
    let (feed, select) = match &of_feed {
        Some((feed, rest)) => (Some(feed), rest),
        None => (None, select),
    };
    let int = |name: &str| ColumnSpec::new(name, CqlType::Native(Native::Int));
    let mut limit_term =
        |term: &Option<Term>, name: &str| term.as_ref().map(|term| typer.term(term, &int(name))).transpose();
    let limit = limit_term(&select.limit, "[limit]")?;
    let per_partition_limit = limit_term(&select.per_partition_limit, "[per_partition_limit]")?;
    let selection = selection::plan(typer, table, select);
    if let Err(faults) = &selection
        && let Some(error) = fault_before_restrictions(table, select, faults)
    {
        return Err(error);
    }
    let ordering = ann::ann_orderings(typer, table, &select.order_by)?;
    let only_static = selects_only_static(table, &select.selection);
    let ordering = ann::single(ordering, select.order_by.len())?;
    let validator = RestrictionValidator {
        typer,
        table: Arc::clone(table),
        kind: Kind::Select,
        allow_filtering: select.allow_filtering,
        ann: ordering.as_ref(),
    };
    let restrictions = validator.validate(&select.relations, only_static)?;
    let mut selection = selection.map_err(|faults| faults.first())?;
    let partitions = PartitionPlan::new(table, &restrictions);
    if select.distinct {
        let sorts = partitions.has_in();
        distinct(table, select, &selection, &restrictions, sorts, ordering.as_ref())?;
    }
    let group_by = group_by(typer, table, select, &restrictions)?;
    if select.per_partition_limit.is_some() && !selection.template.aggregates.is_empty() && group_by.is_none() {
        return Err(SelectRefusal::PartitionLimitOfAggregate.into());
    }
    let (reversed, sort) = match ordering {
        Some(_) => (false, Vec::new()),
        None => order_by(table, select, &restrictions, &partitions)?,
    };
    let is_filtered = select.allow_filtering || filters_implicitly(table);
    if !is_filtered && needs_filtering(table, &restrictions, ordering.is_some()) {
        return Err(Error::NeedsFiltering);
    }
    if ordering.is_some() {
        ann::refuse_legacy(table, &restrictions)?;
    }
    if let Some(feed) = feed {
        feed.check(table, &restrictions, !selection.template.aggregates.is_empty())?;
        if select.json && matches!(select.selection, ast::Selection::All) {
            show_system_columns(&mut selection);
        }
    }
    let ann = ordering.map(|ordering| ordering.plan(table)).transpose()?;
    let aggregate_warning = aggregate_warning(&restrictions, &partitions);
    let (rows, left) = KeysPlan::new(table, &restrictions, partitions.names_keys());
    let Tests {
        filters,
        indexed,
        probes,
    } = Tests::of(table, &restrictions, &partitions, left);
    selection.need(filters.iter().flat_map(FilterPlan::columns).chain(rows.columns()));
    selection.need(sort.iter().map(|(column, _)| *column));
    selection.need(ann.iter().map(|ann| ann.column));
    if let Some(groups) = &group_by {
        selection.need(groups.columns().into_iter());
    }
    let masked = selection::masked(typer.schema, table, &selection)?;
    Ok(SelectPlan {
        table: Arc::clone(table),
        masked,
        masked_restricted: masked_restricted(table, &restrictions, ann.as_ref()),
        selection,
        partitions,
        rows,
        filters,
        indexed,
        probes,
        reversed,
        sort,
        ann,
        group_by,
        distinct: select.distinct,
        allows_filtering: select.allow_filtering,
        limit,
        per_partition_limit,
        feed: feed.cloned(),
        aggregate_warning,
        contains_vector: ann::contains_vector(table, &restrictions),
        calls: typer.calls.called(),
    })
}

/// Names of the columns with masks that are restricted, sorted. An ANN ordering restricts its column.
fn masked_restricted(table: &Table, restrictions: &Restrictions, ann: Option<&AnnPlan>) -> Vec<String> {
    if !table.is_masked() {
        return Vec::new();
    }
    let of = |list: &[Restriction]| -> Vec<usize> {
        let places = list.iter().flat_map(|restriction| restriction.columns.iter().copied());
        places.collect()
    };
    let mut places = of(&restrictions.partition);
    places.extend(of(&restrictions.clustering));
    places.extend(of(&restrictions.others));
    places.extend(ann.map(|ann| ann.column));
    if restrictions.token.is_some() {
        places.extend(0..table.partition_key_count);
    }
    let columns = places.into_iter().filter_map(|place| table.columns.get(place));
    let masked = columns.filter(|column| column.mask.is_some());
    let names: std::collections::BTreeSet<String> = masked.map(|column| column.name.clone()).collect();
    names.into_iter().collect()
}

/// How many selectors Cassandra prepares to learn whether only static columns are selected. It searches for a static
/// column first, then for a clustering or regular one, and stops there (`SelectStatement.selectOnlyStaticColumns`).
fn prepared_first(table: &Table, select: &ast::Select) -> usize {
    let ast::Selection::Selectors(selectors) = &select.selection else {
        return 0;
    };
    let place_of = |wanted: &dyn Fn(ColumnKind) -> bool| {
        selectors.iter().position(|selector| {
            let mut kinds = Vec::new();
            kinds_named(table, &selector.selector, &mut kinds);
            kinds.into_iter().any(wanted)
        })
    };
    let first_static = place_of(&|kind| kind == ColumnKind::Static);
    let first_of_rows = place_of(&|kind| matches!(kind, ColumnKind::Clustering | ColumnKind::Regular));
    match (first_static, first_of_rows) {
        (Some(first_static), Some(first_of_rows)) => first_static.max(first_of_rows) + 1,
        _ => selectors.len(),
    }
}

/// Whether some static column is selected, and no clustering or regular one
/// (`SelectStatement.selectOnlyStaticColumns`).
fn selects_only_static(table: &Table, selection: &ast::Selection) -> bool {
    let ast::Selection::Selectors(selectors) = selection else {
        return false;
    };
    let mut kinds = Vec::new();
    for selector in selectors {
        kinds_named(table, &selector.selector, &mut kinds);
    }
    kinds.contains(&ColumnKind::Static)
        && kinds
            .iter()
            .all(|kind| matches!(kind, ColumnKind::Static | ColumnKind::PartitionKey))
}

/// The kinds of the columns that a selector names.
fn kinds_named(table: &Table, selector: &Selector, kinds: &mut Vec<ColumnKind>) {
    match selector {
        Selector::Column(name) => {
            if let Ok((_, column)) = column(table, name.as_str()) {
                kinds.push(column.kind);
            }
        }
        Selector::Term(_) | Selector::CountRows(_) => {}
        Selector::Function { arguments: parts, .. }
        | Selector::Tuple(parts)
        | Selector::List(parts)
        | Selector::Set(parts) => parts.iter().for_each(|part| kinds_named(table, part, kinds)),
        Selector::Metadata { of, .. }
        | Selector::Field { of, .. }
        | Selector::Element { of, .. }
        | Selector::Slice { of, .. }
        | Selector::Cast { selector: of, .. }
        | Selector::TypeHint { selector: of, .. }
        | Selector::Negate { of, .. } => kinds_named(table, of, kinds),
        Selector::Arithmetic { left, right, .. } => {
            kinds_named(table, left, kinds);
            kinds_named(table, right, kinds);
        }
        // Cassandra treats a map as a selector of any column.
        Selector::Map(_) => kinds.push(ColumnKind::Regular),
    }
}

/// SELECT DISTINCT: validates its columns and restrictions (`SelectStatement.validateDistinctSelection`).
fn distinct(
    table: &Table,
    select: &ast::Select,
    selection: &SelectionPlan,
    restrictions: &Restrictions,
    sorts: bool,
    ann: Option<&ann::AnnOrdering>,
) -> Result<(), Error> {
    if select.per_partition_limit.is_some() {
        return Err(SelectRefusal::PartitionLimitOfDistinct.into());
    }
    let regular = restrictions.others.iter().flat_map(|restriction| &restriction.columns);
    let regular = regular
        .chain(ann.map(|ann| &ann.column))
        .filter_map(|index| table.columns.get(*index))
        .any(|column| column.kind == ColumnKind::Regular);
    if !restrictions.clustering.is_empty() || regular {
        return Err(SelectRefusal::DistinctRestricted.into());
    }
    // Columns that sort rows of several partitions are selected along with them.
    let sorted_by = select
        .order_by
        .iter()
        .filter(|_| sorts)
        .filter_map(|order| match order {
            OrderBy::Column(name, _) => column(table, name.as_str()).ok().map(|(index, _)| index),
            OrderBy::Ann(..) => None,
        });
    for index in selection.selected.iter().copied().chain(sorted_by) {
        if let Some(column) = table.columns.get(index)
            && matches!(column.kind, ColumnKind::Clustering | ColumnKind::Regular)
        {
            return Err(SelectRefusal::DistinctColumn(column.name.clone()).into());
        }
    }
    // The column that sorts several partitions is selected too, so it must be allowed.
    if restrictions
        .partition
        .iter()
        .any(|restriction| matches!(restriction.test, Test::In(_) | Test::InMarker(_)))
    {
        let sorted = select.order_by.iter().find_map(|order| match order {
            OrderBy::Column(name, _) => column(table, name.as_str()).ok(),
            OrderBy::Ann(..) => None,
        });
        if let Some((_, column)) = sorted
            && column.kind == ColumnKind::Clustering
        {
            return Err(SelectRefusal::DistinctColumn(column.name.clone()).into());
        }
    }
    // A read of one partition need not select its key.
    let one = restrictions.partition.len() == table.partition_key_count && !restrictions.partition_filters;
    if !one {
        for (index, column) in table.partition_key().iter().enumerate() {
            if !selection.selected.contains(&index) {
                return Err(SelectRefusal::DistinctMissing(column.name.clone()).into());
            }
        }
    }
    Ok(())
}

/// ORDER BY: whether rows are read in reverse, and the columns that sort rows of several partitions.
fn order_by(
    table: &Table,
    select: &ast::Select,
    restrictions: &Restrictions,
    partitions: &PartitionPlan,
) -> Result<(bool, Vec<(usize, bool)>), Error> {
    if select.order_by.is_empty() {
        return Ok((false, Vec::new()));
    }
    // If a column is named twice, its last direction counts, at its first position.
    let mut orderings: Vec<(usize, bool)> = Vec::new();
    let mut unknown = None;
    for order in &select.order_by {
        let OrderBy::Column(name, direction) = order else {
            continue;
        };
        match column(table, name.as_str()) {
            Ok((index, _)) => {
                let descending = *direction == Direction::Descending;
                match orderings.iter_mut().find(|(earlier, _)| *earlier == index) {
                    Some(earlier) => earlier.1 = descending,
                    None => orderings.push((index, descending)),
                }
            }
            Err(error) => unknown = unknown.or(Some(error)),
        }
    }
    if let Some(error) = unknown {
        return Err(error);
    }
    if restrictions.uses_index {
        return Err(SelectRefusal::OrderOfIndex.into());
    }
    if restrictions.is_key_range {
        return Err(SelectRefusal::OrderOfRange.into());
    }
    let mut expected = table.partition_key_count;
    let mut reversed: Option<bool> = None;
    for (index, descending) in &orderings {
        let column = table.columns.get(*index).expect("a place in the table");
        if column.kind != ColumnKind::Clustering {
            return Err(SelectRefusal::OrderColumn(column.name.clone()).into());
        }
        while *index != expected {
            // A preceding column may be left out if it is restricted to one value.
            let fixed = restrictions
                .clustering
                .iter()
                .any(|restriction| restriction.columns.contains(&expected) && matches!(restriction.test, Test::Eq(_)));
            if !fixed || expected > *index {
                return Err(SelectRefusal::OrderOfOrder.into());
            }
            expected += 1;
        }
        expected += 1;
        let backwards = *descending != column.descending;
        if reversed.is_some_and(|reversed| reversed != backwards) {
            return Err(SelectRefusal::OrderDirections.into());
        }
        reversed = Some(backwards);
    }
    let sort = if partitions.has_in() && !select.distinct {
        orderings
    } else {
        Vec::new()
    };
    Ok((reversed.unwrap_or(false), sort))
}

/// GROUP BY: leading columns of the primary key; a function may wrap the last.
fn group_by(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    select: &ast::Select,
    restrictions: &Restrictions,
) -> Result<Option<GroupPlan>, Error> {
    if select.group_by.is_empty() {
        return Ok(None);
    }
    let key_count = table.partition_key_count + table.clustering_count;
    let mut plan = GroupPlan::default();
    let mut has_function = false;
    let mut next = 0;
    for group in &select.group_by {
        let index = match &group.0 {
            Selector::Column(name) => {
                let (index, column) = column(table, name.as_str())?;
                if index >= key_count {
                    return Err(SelectRefusal::GroupColumn(column.name.clone()).into());
                }
                if has_function {
                    return Err(SelectRefusal::GroupAfterFunction.into());
                }
                plan.push_column(index);
                index
            }
            selector => {
                has_function = true;
                selection::group_function(typer, table, selector, &mut plan)?
            }
        };
        while next < index {
            let all = restrictions.partition.iter().chain(&restrictions.clustering);
            let fixed = all
                .filter(|restriction| matches!(restriction.test, Test::Eq(_)))
                .any(|restriction| restriction.columns.contains(&next));
            if !fixed {
                return Err(SelectRefusal::GroupOrder.into());
            }
            next += 1;
        }
        if index < next {
            return Err(SelectRefusal::GroupOrder.into());
        }
        next = index + 1;
    }
    if next < table.partition_key_count {
        return Err(SelectRefusal::GroupOfPartialKey.into());
    }
    let clustering = plan
        .columns()
        .into_iter()
        .any(|index| index >= table.partition_key_count);
    if select.distinct && clustering {
        return Err(SelectRefusal::GroupOfDistinct.into());
    }
    Ok(Some(plan))
}
