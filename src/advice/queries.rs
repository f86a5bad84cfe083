//! Rules about queries.

use std::collections::{BTreeMap, BTreeSet};

use grammar::ast::{
    Assignment, BatchKind, ConditionTarget, If, InsertSource, Literal, Modification, Operator, Relation,
    RelationTarget, RelationValue, Select, Selection, Statement, Term,
};

use super::figures::bytes_text;
use super::model::{Model, Modelled, ModelledStatement};
use super::{Finding, Input, Level, names as words, rules};
use helenus_engine::throughput::{Charges, Coefficients};
use helenus_schema::schema::{ColumnKind, Table};
use helenus_types::types::quoted;

/// More partition keys in one query than this give a warning.
const KEYS_WARN: usize = 10;
/// More partition keys in one query than this give an error.
const KEYS_MAX: usize = 100;
/// More partitions in one batch than this give a warning.
const BATCH_PARTITIONS_MAX: usize = 10;

pub(super) fn check(model: &Model, input: &Input<'_>, found: &mut Vec<Finding>) {
    let mut used = Used::default();
    for asked in &model.queries {
        match &asked.statement {
            Statement::Select(query) => {
                let (keyspace, name) = asked.full(&query.table);
                let Some(modelled) = model.table(&keyspace, &name) else {
                    continue;
                };
                let before = found.len();
                select(modelled, asked, query, input, found);
                report_unfiltered(model, asked, found, before);
                used.select(modelled, query);
            }
            Statement::Batch(members) => {
                if members.kind != BatchKind::Counter {
                    batch(asked, &members.modifications, found);
                }
                for modification in &members.modifications {
                    changed(model, asked, modification, &mut used);
                }
            }
            Statement::Insert(insert) => changed(model, asked, &Modification::Insert(insert.clone()), &mut used),
            Statement::Update(update) => {
                let modification = Modification::Update(update.clone());
                changed(model, asked, &modification, &mut used);
                keys(model, asked, &modification, found);
            }
            Statement::Delete(delete) => {
                let modification = Modification::Delete(delete.clone());
                changed(model, asked, &modification, &mut used);
                keys(model, asked, &modification, found);
            }
            _ => {}
        }
    }
    if model.has_queries {
        unused(model, &used, found);
    }
    for modelled in model.tables() {
        used.queues(modelled, found);
        used.constants(modelled, found);
    }
}

/// Reports once that a query lacks ALLOW FILTERING: in the finding about its cost, or else as a refusal. `before`: the findings before it.
fn report_unfiltered(model: &Model, asked: &ModelledStatement, found: &mut Vec<Finding>, before: usize) {
    let place = asked.spot.place;
    let mut unfiltered = model.unfiltered.iter();
    let is_of = |finding: &&Finding| {
        finding.file == asked.spot.file && (finding.line, finding.column) == (place.line, place.column)
    };
    let Some(refusal) = unfiltered.find(is_of) else { return };
    match found.get_mut(before) {
        Some(about_cost) => {
            about_cost.level = Level::Error;
            about_cost.message.push_str("; refused without ALLOW FILTERING");
        }
        None => found.push(refusal.clone()),
    }
}

/// What the queries use of the schema.
#[derive(Default)]
struct Used {
    /// Columns that any SELECT restricts or sorts by, by table.
    asked: BTreeMap<String, BTreeSet<String>>,
    /// Columns that any UPDATE sets, with the number of statements.
    updated: BTreeMap<String, BTreeMap<String, usize>>,
    /// Tables in which a SELECT reads the start of a partition.
    fronts: BTreeSet<String>,
    /// Tables in which a DELETE removes rows by primary key.
    removed: BTreeSet<String>,
    /// The values that statements give a partition key column, by table and column: constants; `None` means a term that
    /// is no constant.
    keys: BTreeMap<(String, String), Vec<Option<String>>>,
}

impl Used {
    fn select(&mut self, modelled: &Modelled, query: &Select) {
        let columns = self.asked.entry(modelled.name()).or_default();
        for relation in &query.relations {
            columns.extend(columns_of(&relation.target));
        }
        for order in &query.order_by {
            let (grammar::ast::OrderBy::Column(name, _) | grammar::ast::OrderBy::Ann(name, ..)) = order;
            columns.insert(name.as_str().to_owned());
        }
        let table = &modelled.table;
        let is_front = query.limit.is_some()
            && matches!(reach(table, &query.relations), Reach::Keys(_))
            && !restricts_clustering(table, &query.relations);
        if is_front {
            self.fronts.insert(modelled.name());
        }
        self.relations(modelled, &query.relations);
    }

    /// Records the values that a WHERE compares partition key columns with.
    fn relations(&mut self, modelled: &Modelled, relations: &[Relation]) {
        for column in modelled.table.partition_key() {
            for relation in relations {
                let named = matches!(&relation.target, RelationTarget::Column(name) if name.as_str() == column.name);
                if named {
                    let value = match (relation.operator, &relation.value) {
                        (Operator::Eq, RelationValue::Term(term)) => constant(term),
                        _ => None,
                    };
                    self.key(modelled, &column.name, value);
                }
            }
        }
    }

    fn key(&mut self, modelled: &Modelled, column: &str, value: Option<String>) {
        let key = (modelled.name(), column.to_owned());
        self.keys.entry(key).or_default().push(value);
    }

    /// The queue pattern: rows are read from the start of a partition in order of time, and deleted.
    fn queues(&self, modelled: &Modelled, found: &mut Vec<Finding>) {
        let name = modelled.name();
        let in_order = modelled.table.clustering().first();
        let in_order = in_order.filter(|column| words::is_time(column) || words::is_sequence(column));
        if let Some(column) = in_order.filter(|_| self.fronts.contains(&name) && self.removed.contains(&name)) {
            let message = format!(
                "rows are read from the front of a partition, by {}, and deleted",
                quoted(&column.name)
            );
            found.push(modelled.spot.finding(&rules::QUEUE, Level::Warning, name, message));
        }
    }

    /// Every statement has the same constant for a partition key column.
    fn constants(&self, modelled: &Modelled, found: &mut Vec<Finding>) {
        let name = modelled.name();
        for column in modelled.table.partition_key() {
            let Some([first, rest @ ..]) = self.keys.get(&(name.clone(), column.name.clone())).map(Vec::as_slice)
            else {
                continue;
            };
            if let Some(value) = first
                .as_ref()
                .filter(|_| !rest.is_empty() && rest.iter().all(|value| value == first))
            {
                let message = format!(
                    "{} is {value} in all {} statements",
                    quoted(&column.name),
                    rest.len() + 1
                );
                let spot = modelled.column_spot(&column.name);
                found.push(spot.finding(&rules::CONSTANT_BUCKET, Level::Warning, name.clone(), message));
            }
        }
    }
}

/// A constant as written; `None` means that the term is no constant.
fn constant(term: &Term) -> Option<String> {
    matches!(term, Term::Literal(_)).then(|| term.to_string())
}

/// Whether a WHERE restricts a clustering column.
fn restricts_clustering(table: &Table, relations: &[Relation]) -> bool {
    let mut columns = relations.iter().flat_map(|relation| columns_of(&relation.target));
    columns.any(|name| table.clustering().iter().any(|column| column.name == name))
}

fn columns_of(target: &RelationTarget) -> Vec<String> {
    let names = match target {
        RelationTarget::Column(name) | RelationTarget::Element(name, _) | RelationTarget::Index(name) => {
            std::slice::from_ref(name)
        }
        RelationTarget::Tuple(names) | RelationTarget::Token(names) => names.as_slice(),
        RelationTarget::Feed(_) => &[],
    };
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

/// How a WHERE selects partitions.
#[derive(Debug, PartialEq, Eq)]
enum Reach {
    /// The number of partition keys; `None` means as many as a bind marker has.
    Keys(Option<usize>),
    /// A token range.
    Tokens,
    /// Any partition.
    All,
}

fn count(relation: &Relation) -> Option<Option<usize>> {
    match (relation.operator, &relation.value) {
        (Operator::Eq, _) => Some(Some(1)),
        (Operator::In, RelationValue::Terms(terms)) => Some(Some(terms.len())),
        (Operator::In, RelationValue::Term(Term::Tuple(terms))) => Some(Some(terms.len())),
        (Operator::In, _) => Some(None),
        _ => None,
    }
}

fn reach(table: &Table, relations: &[Relation]) -> Reach {
    if relations
        .iter()
        .any(|relation| matches!(relation.target, RelationTarget::Token(_)))
    {
        return Reach::Tokens;
    }
    let mut keys = Some(1_usize);
    for column in table.partition_key() {
        let found = relations.iter().find_map(|relation| match &relation.target {
            RelationTarget::Column(name) if name.as_str() == column.name => count(relation),
            _ => None,
        });
        match found {
            Some(more) => keys = keys.zip(more).map(|(keys, more)| keys.saturating_mul(more)),
            None => return Reach::All,
        }
    }
    Reach::Keys(keys)
}

/// The restrictions on other than the leading key columns: regular columns, loose clustering columns, indexed columns.
struct Others<'r> {
    /// Columns outside the primary key, in the order of the statement.
    regular: Vec<&'r str>,
    /// Clustering columns that do not restrict the slice, because one before them is unrestricted.
    loose: Vec<&'r str>,
    /// The restricted columns that have an index.
    indexed: Vec<&'r str>,
}

fn others<'r>(table: &Table, relations: &'r [Relation]) -> Others<'r> {
    let mut others = Others {
        regular: Vec::new(),
        loose: Vec::new(),
        indexed: Vec::new(),
    };
    let mut restricted: Vec<&str> = Vec::new();
    for relation in relations {
        let names = match &relation.target {
            RelationTarget::Column(name) | RelationTarget::Element(name, _) => std::slice::from_ref(name),
            RelationTarget::Tuple(names) => names.as_slice(),
            RelationTarget::Token(_) | RelationTarget::Index(_) | RelationTarget::Feed(_) => continue,
        };
        restricted.extend(names.iter().map(|name| name.as_str()));
    }
    let missing = table
        .clustering()
        .iter()
        .position(|column| !restricted.contains(&column.name.as_str()));
    for name in restricted {
        let Some((_, column)) = table.column(name) else {
            continue;
        };
        match column.kind {
            ColumnKind::Regular | ColumnKind::Static => others.regular.push(name),
            ColumnKind::Clustering if missing.is_some_and(|missing| column.position > missing) => {
                others.loose.push(name);
            }
            ColumnKind::Clustering | ColumnKind::PartitionKey => {}
        }
        let is_key = table.partition_key_count == 1 && column.kind == ColumnKind::PartitionKey;
        if !is_key && is_indexed(table, name) {
            others.indexed.push(name);
        }
    }
    others.regular.dedup();
    others.loose.dedup();
    others.indexed.dedup();
    others
}

fn is_indexed(table: &Table, column: &str) -> bool {
    let mut targets = table.indexes.values().filter_map(|index| index.target_column());
    targets.any(|(_, name)| name == column)
}

fn names(columns: &[&str]) -> String {
    let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    names.join(", ")
}

/// The partitions that a query visits: on Cosmos the number of physical partitions, and the cost of visiting all before
/// any row is read.
fn visits(modelled: &Modelled, input: &Input<'_>) -> String {
    let stored = input.figures.and_then(|figures| {
        let name = modelled.name();
        let figures = figures
            .iter()
            .find(|figures| format!("{}.{}", figures.keyspace, figures.table) == name)?;
        Some((figures.partitions.len() as u64, figures.bytes))
    });
    if !input.profile.is_cosmos() {
        return match stored {
            Some((_, bytes)) => format!("goes to all nodes, which store {}", bytes_text(bytes)),
            None => "goes to all nodes".to_owned(),
        };
    }
    let units = |partitions: u64, bytes: u64| {
        let mut charges = Charges::new(Coefficients::default(), 1);
        (0..partitions).for_each(|_| charges.visit());
        charges.scan(usize::try_from(bytes).unwrap_or(usize::MAX));
        let hundredths = charges.total().in_hundredths();
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    };
    match (stored, modelled.partitions()) {
        (Some((partitions, bytes)), _) if partitions > 0 => format!(
            "visits all {partitions} physical partitions: {} RU before any row, {} RU to read all that is stored",
            units(partitions, 0),
            units(partitions, bytes)
        ),
        (_, Some(partitions)) => format!(
            "visits all {partitions} physical partitions: {} RU before any row",
            units(partitions, 0)
        ),
        _ => format!(
            "visits all physical partitions: 1 now, one more for each 30 GB or 10,000 RU/s; {} RU for each before any row",
            units(1, 0)
        ),
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "one rule after another, in the order of the report"
)]
fn select(modelled: &Modelled, asked: &ModelledStatement, query: &Select, input: &Input<'_>, found: &mut Vec<Finding>) {
    let table = &modelled.table;
    let mut tell = |column: Option<&str>, rule: &rules::Rule, level: Level, message: String| {
        let spot = column.map_or(&asked.spot, |column| asked.spot_of(column));
        found.push(spot.finding(rule, level, modelled.name(), message));
    };
    let others = others(table, &query.relations);
    match reach(table, &query.relations) {
        Reach::All => {
            let all = visits(modelled, input);
            if let Some(first) = others.indexed.first() {
                let message = format!("the query by the index on {} {all}", names(&others.indexed));
                tell(Some(first), &rules::FAN_OUT_INDEX, Level::Warning, message);
            } else if query.relations.is_empty() {
                let level = if one_row(query) { Level::Note } else { Level::Warning };
                let what = if counts(query) {
                    "counting every row"
                } else {
                    "the query without WHERE"
                };
                let what = if query.distinct {
                    "finding every partition key"
                } else {
                    what
                };
                tell(None, &rules::FULL_SCAN, level, format!("{what} {all}"));
            } else {
                let missing: Vec<&str> = table
                    .partition_key()
                    .iter()
                    .map(|column| column.name.as_str())
                    .filter(|name| {
                        !query
                            .relations
                            .iter()
                            .any(|relation| columns_of(&relation.target).iter().any(|c| c == name))
                    })
                    .collect();
                let lacks = if missing.is_empty() {
                    "with a range on the partition key".to_owned()
                } else {
                    format!("without {} of the partition key", names(&missing))
                };
                tell(
                    None,
                    &rules::FAN_OUT_FILTERING,
                    Level::Error,
                    format!("the query {lacks} {all}"),
                );
            }
        }
        Reach::Keys(keys) => {
            wide(&mut tell, table, keys);
            let takes_all =
                query.limit.is_none() && query.per_partition_limit.is_none() && !counts(query) && !query.distinct;
            if let Some(first) = table.clustering().first()
                && takes_all
                && !restricts_clustering(table, &query.relations)
                && super::tables::grows_for_ever(modelled).is_some()
            {
                let message = format!(
                    "all rows of a partition that grows for ever: no range of {}, no LIMIT",
                    quoted(&first.name)
                );
                tell(None, &rules::UNBOUNDED_READ, Level::Warning, message);
            }
            let outside = others.regular.first();
            let key_indexed = table
                .partition_key()
                .iter()
                .all(|column| is_indexed(table, &column.name));
            if let (Some(first), false) = (outside, key_indexed) {
                let all = visits(modelled, input);
                let message = format!(
                    "the partition key together with {}: on Cosmos it {all}, since the partition key has no index",
                    names(&others.regular)
                );
                tell(Some(first), &rules::MISSING_KEY_INDEX, Level::Warning, message);
            }
            let filtered: Vec<&str> = others.regular.iter().chain(&others.loose).copied().collect();
            let is_key = |name: &str| table.partition_key().iter().any(|column| column.name == name);
            if let Some(first) = filtered.first()
                && others.indexed.iter().all(|name| is_key(name))
            {
                let message = format!("all rows of the partition are read to test {}", names(&filtered));
                tell(Some(first), &rules::FILTER_IN_PARTITION, Level::Note, message);
            }
        }
        Reach::Tokens => {}
    }
}

/// Whether the query returns at most one row.
fn one_row(query: &Select) -> bool {
    matches!(&query.limit, Some(Term::Literal(Literal::Integer(rows))) if rows == "1")
}

fn counts(query: &Select) -> bool {
    match &query.selection {
        Selection::All => false,
        Selection::Selectors(selectors) => {
            let mut selectors = selectors.iter();
            selectors.any(|selector| matches!(selector.selector, grammar::ast::Selector::CountRows(_)))
        }
    }
}

fn wide(tell: &mut impl FnMut(Option<&str>, &rules::Rule, Level, String), table: &Table, keys: Option<usize>) {
    let first = table.partition_key().first().map(|column| column.name.as_str());
    match keys {
        Some(keys) if keys > KEYS_MAX => {
            let message = format!("{keys} partition keys in one statement");
            tell(first, &rules::WIDE_IN, Level::Error, message);
        }
        Some(keys) if keys > KEYS_WARN => {
            let message = format!("{keys} partition keys in one statement");
            tell(first, &rules::WIDE_IN, Level::Warning, message);
        }
        Some(_) => {}
        None => {
            let message = "`IN ?` reads every key of the bound list: send one query for each key instead".to_owned();
            tell(first, &rules::WIDE_IN, Level::Note, message);
        }
    }
}

/// UPDATE and DELETE of many partitions.
fn keys(model: &Model, asked: &ModelledStatement, modification: &Modification, found: &mut Vec<Finding>) {
    let (table, relations) = match modification {
        Modification::Insert(_) => return,
        Modification::Update(update) => (&update.table, &update.relations),
        Modification::Delete(delete) => (&delete.table, &delete.relations),
    };
    let (keyspace, name) = asked.full(table);
    let Some(modelled) = model.table(&keyspace, &name) else {
        return;
    };
    let mut tell = |column: Option<&str>, rule: &rules::Rule, level: Level, message: String| {
        let spot = column.map_or(&asked.spot, |column| asked.spot_of(column));
        found.push(spot.finding(rule, level, modelled.name(), message));
    };
    if let Reach::Keys(keys) = reach(&modelled.table, relations) {
        wide(&mut tell, &modelled.table, keys);
    }
}

fn changed(model: &Model, asked: &ModelledStatement, modification: &Modification, used: &mut Used) {
    let (table, columns, condition) = match modification {
        Modification::Insert(insert) => (&insert.table, Vec::new(), None),
        Modification::Update(update) => {
            let columns = update.assignments.iter().map(|assignment| match assignment {
                Assignment::Set(name, _)
                | Assignment::Field(name, ..)
                | Assignment::Element(name, ..)
                | Assignment::Add(name, _)
                | Assignment::Subtract(name, _)
                | Assignment::Prepend(name, _) => name.as_str(),
            });
            (&update.table, columns.collect(), Some(&update.condition))
        }
        Modification::Delete(delete) => (&delete.table, Vec::new(), Some(&delete.condition)),
    };
    let (keyspace, name) = asked.full(table);
    let Some(modelled) = model.table(&keyspace, &name) else {
        return;
    };
    match modification {
        Modification::Insert(insert) => {
            if let InsertSource::Values { columns, values } = &insert.source {
                for column in modelled.table.partition_key() {
                    let place = columns.iter().position(|name| name.as_str() == column.name);
                    if let Some(value) = place.and_then(|place| values.get(place)) {
                        used.key(modelled, &column.name, constant(value));
                    }
                }
            }
        }
        Modification::Update(update) => used.relations(modelled, &update.relations),
        Modification::Delete(delete) => {
            used.relations(modelled, &delete.relations);
            if restricts_clustering(&modelled.table, &delete.relations) {
                used.removed.insert(modelled.name());
            }
        }
    }
    let counts = used.updated.entry(modelled.name()).or_default();
    for column in columns {
        *counts.entry(column.to_owned()).or_default() += 1;
    }
    if let Some(If::Conditions(conditions)) = condition {
        let asked = used.asked.entry(modelled.name()).or_default();
        asked.extend(conditions.iter().map(|condition| match &condition.target {
            ConditionTarget::Column(name) | ConditionTarget::Element(name, _) | ConditionTarget::Field(name, _) => {
                name.as_str().to_owned()
            }
        }));
    }
}

/// The partition that a modification writes, as far as its constants show: partitions whose texts differ count as two.
fn partition_text(modification: &Modification) -> String {
    match modification {
        Modification::Insert(insert) => match &insert.source {
            InsertSource::Values { columns, values } => {
                format!("{:?} {:?}", insert.table, columns.first().zip(values.first()))
            }
            InsertSource::Json { document, .. } => format!("{:?} {document:?}", insert.table),
        },
        Modification::Update(update) => format!("{:?} {:?}", update.table, update.relations.first()),
        Modification::Delete(delete) => format!("{:?} {:?}", delete.table, delete.relations.first()),
    }
}

fn batch(asked: &ModelledStatement, modifications: &[Modification], found: &mut Vec<Finding>) {
    let partitions: BTreeSet<String> = modifications.iter().map(partition_text).collect();
    if partitions.len() > BATCH_PARTITIONS_MAX {
        let message = format!("a batch over up to {} partitions", partitions.len());
        found.push(
            asked
                .spot
                .finding(&rules::WIDE_BATCH, Level::Warning, String::new(), message),
        );
    }
}

fn unused(model: &Model, used: &Used, found: &mut Vec<Finding>) {
    let named = model.named();
    let none = BTreeSet::new();
    for modelled in model.tables() {
        let table = &modelled.table;
        let name = modelled.name();
        if !named.contains(&(table.keyspace.clone(), table.name.clone())) {
            let message = "no query names it".to_owned();
            let (rule, level) = match modelled.base {
                Some(_) => (&rules::VIEW_UNUSED, Level::Warning),
                None => (&rules::UNUSED_TABLE, Level::Note),
            };
            found.push(modelled.spot.finding(rule, level, name, message));
            continue;
        }
        let asked = used.asked.get(&name).unwrap_or(&none);
        for (index, definition) in &table.indexes {
            let Some((_, column)) = definition.target_column() else {
                continue;
            };
            let spot = modelled.index_spot(index);
            if !asked.contains(&column) && !asked.contains(index) {
                let message = format!("no query restricts {}, which index {index} is on", quoted(&column));
                found.push(spot.finding(&rules::INDEX_UNUSED, Level::Warning, name.clone(), message));
            }
            let times = used.updated.get(&name).and_then(|columns| columns.get(&column));
            if let Some(times) = times {
                let statements = if *times == 1 {
                    "statement sets"
                } else {
                    "statements set"
                };
                let message = format!("{times} {statements} {}, which index {index} is on", quoted(&column));
                found.push(spot.finding(&rules::INDEX_CHANGING, Level::Warning, name.clone(), message));
            }
        }
    }
}
