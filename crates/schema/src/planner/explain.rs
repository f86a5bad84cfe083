//! EXPLAIN: the execution of a bound command, described stage by stage. Cassandra has no such statement.
//!
//! ```text
//! statement   its effect, and on which table       index    the index that finds the rows, or why none does
//! partitions  which are visited                    filter   a test on each row, one stage for each
//! rows        which of each                        group, sort, limit, page …
//! ```
//! EXPLAIN reads and writes no rows. The engine chooses the index, since that choice needs counts.

use std::sync::Arc;

use super::ResultMetadata;
use crate::command::{
    Batch, Clustering, ColumnChange, Comparison, Condition, FeedStart, Filter, FilterTarget, IndexUse, Partitions,
    Predicate, Read, ResultColumn, Spared, Value, Write, WriteTarget, WriteVerb,
};
use crate::schema::Table;
use crate::schema::names::string_literal;
use helenus_types::token::{KeyBound, KeySpan, Token};
use helenus_types::types::{CqlType, Native, quoted, timestamp_text};

/// Maximum number of bytes of a value that are shown.
const VALUE_BYTES_MAX: usize = 200;

/// A stage's name and its description.
pub type Stage = (&'static str, String);

/// The result columns of EXPLAIN: `step` int, `stage` and `detail` text.
#[must_use]
pub fn metadata() -> ResultMetadata {
    let column = |name: &str, ty: Native| ResultColumn {
        name: name.to_owned(),
        ty: CqlType::Native(ty),
    };
    ResultMetadata {
        keyspace: "system".to_owned(),
        table: "explain".to_owned(),
        columns: Arc::new(vec![
            column("step", Native::Int),
            column("stage", Native::Text),
            column("detail", Native::Text),
        ]),
    }
}

fn name(table: &Table, place: usize) -> String {
    table
        .columns
        .get(place)
        .map_or_else(String::new, |column| quoted(&column.name))
}

fn names(table: &Table, places: &[usize]) -> String {
    let names: Vec<String> = places.iter().map(|place| name(table, *place)).collect();
    names.join(", ")
}

fn of_table(table: &Table) -> String {
    format!("{}.{}", quoted(&table.keyspace), quoted(&table.name))
}

fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {many}")
    }
}

fn value(ty: &CqlType, value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Unset => "unset".to_owned(),
        Value::Bytes(bytes) if bytes.len() > VALUE_BYTES_MAX => format!("({} bytes)", bytes.len()),
        Value::Bytes(bytes) => ty.to_literal(bytes),
    }
}

fn filter(table: &Table, filter: &Filter) -> String {
    let several = |several: &[Filter], word: &str| {
        let texts: Vec<String> = several.iter().map(|one| self::filter(table, one)).collect();
        format!("({})", texts.join(word))
    };
    match filter {
        Filter::Test(one) => test(table, one),
        Filter::All(all) => several(all, " AND "),
        Filter::Any(any) => several(any, " OR "),
        Filter::Not(one) => format!("NOT ({})", self::filter(table, one)),
    }
}

fn test(table: &Table, filter: &Predicate) -> String {
    let (target, note) = match &filter.target {
        FilterTarget::Column(place) => (name(table, *place), ""),
        FilterTarget::Analysed(place, analysis) if !analysis.is_identity() => {
            (name(table, *place), " (as its index analyses texts)")
        }
        FilterTarget::Analysed(place, _) => (name(table, *place), ""),
        FilterTarget::Element(place, key) => {
            let key_ty = match table.columns.get(*place).map(|column| column.ty.unfrozen()) {
                Some(CqlType::Map(key, _)) => CqlType::clone(key),
                _ => CqlType::Native(Native::Int),
            };
            (format!("{}[{}]", name(table, *place), value(&key_ty, key)), "")
        }
        FilterTarget::Field(place, number) => {
            let field = match table.columns.get(*place).map(|column| column.ty.unfrozen()) {
                Some(CqlType::User(user)) => user.fields.get(*number).map_or("", |(name, _)| name.as_str()),
                _ => "",
            };
            (format!("{}.{field}", name(table, *place)), "")
        }
        FilterTarget::Tuple(places) => (format!("({})", names(table, places)), ""),
        FilterTarget::Token => ("token".to_owned(), ""),
    };
    let operands: Vec<String> = filter
        .operands
        .iter()
        .map(|operand| value(&filter.ty, operand))
        .collect();
    match filter.comparison {
        Comparison::In => format!("{target} IN ({}){note}", operands.join(", ")),
        comparison => format!("{target} {} {}{note}", comparison.sign(), operands.join(", ")),
    }
}

/// A range of the partition keys of a table that is ordered by them.
fn keys_of(table: &Table, span: &KeySpan) -> String {
    let text = |bound: &KeyBound| {
        let key = bound.partition_key();
        // A zero byte more: the bound stands behind the key.
        let (key, is_behind) = key.strip_suffix(&[0]).map_or((key, false), |key| (key, true));
        (string_literal(&String::from_utf8_lossy(key)), is_behind)
    };
    let column = name(table, 0);
    let mut bounds = Vec::new();
    if span.start().token() == Token::OF_ORDERED.value() {
        let (key, is_behind) = text(span.start());
        bounds.push(format!("{column} {} {key}", if is_behind { ">" } else { ">=" }));
    }
    if let Some(end) = span.end().filter(|end| end.token() == Token::OF_ORDERED.value()) {
        let (key, is_behind) = text(end);
        bounds.push(format!("{column} {} {key}", if is_behind { "<=" } else { "<" }));
    }
    format!("keys in order: {}", bounds.join(" and "))
}

fn partitions(select: &Read) -> String {
    match &select.partitions {
        Partitions::Keys(keys) => format!("{} by key", count(keys.len(), "partition", "partitions")),
        Partitions::Ring(None) => "none: the range of tokens is empty".to_owned(),
        Partitions::Ring(Some(span)) if *span == KeySpan::whole() => "the whole ring".to_owned(),
        Partitions::Ring(Some(span)) if select.table.options.is_ordered => keys_of(&select.table, span),
        Partitions::Ring(Some(span)) => format!("tokens from {} to {}", span.lower(), span.upper()),
    }
}

fn rows(rows: &Clustering) -> String {
    match rows {
        Clustering::All => "all of each partition".to_owned(),
        Clustering::Keys(keys) => format!("{} of each partition by key", count(keys.len(), "row", "rows")),
        Clustering::Ranges(ranges) => {
            format!(
                "{} of the clustering key in each partition",
                count(ranges.len(), "range", "ranges")
            )
        }
    }
}

/// The reason why no index is used.
fn spared(reason: Spared) -> String {
    match reason {
        Spared::Building => "still being built".to_owned(),
        Spared::Dearer { entries, rows } => format!(
            "a page would read {entries} index entries or more, the scan {}",
            count(usize::try_from(rows).unwrap_or(usize::MAX), "row", "rows")
        ),
        Spared::ByKey => "the logical partition is read by its key".to_owned(),
        Spared::NoTokens => "no token is asked for".to_owned(),
    }
}

/// Where the change feed is read, and from when on.
fn feed(start: FeedStart, is_full_fidelity: bool) -> String {
    let what = if is_full_fidelity {
        "every change"
    } else {
        "the latest version of each changed row"
    };
    let from = match start {
        FeedStart::Beginning => "from the first change on".to_owned(),
        FeedStart::Now => "from now on".to_owned(),
        FeedStart::At(micros) => format!("from {} on", timestamp_text(micros.div_euclid(1000), ' ')),
    };
    format!("the change feed: {what}, {from}")
}

/// The stages of a SELECT.
#[must_use]
#[expect(
    clippy::too_many_lines,
    reason = "the stages of a read, in the order in which they are printed"
)]
pub fn select(select: &Read, index: &IndexUse) -> Vec<Stage> {
    let table = select.table.as_ref();
    let mut stages = vec![("statement", format!("SELECT from {}", of_table(table)))];
    if table.is_virtual {
        stages.push(("source", "rows made by the server".to_owned()));
    }
    stages.extend(
        select
            .feed
            .map(|start| ("source", feed(start, select.is_full_fidelity))),
    );
    stages.push(("partitions", partitions(select)));
    match index {
        IndexUse::None => {}
        IndexUse::Spared(reason) => {
            let names: Vec<&str> = select.probes.iter().map(|probe| probe.index.as_str()).collect();
            stages.push(("index", format!("{} not used: {}", names.join(", "), spared(*reason))));
        }
        IndexUse::Used { index, ordered } => {
            let ranges = select
                .probes
                .iter()
                .find(|probe| probe.index == *index)
                .map_or(0, |probe| probe.ranges.len());
            let what = if *ordered {
                "one value, entries in the order of the ring".to_owned()
            } else {
                format!(
                    "{}, entries put in the order of the ring",
                    count(ranges, "range", "ranges")
                )
            };
            stages.push(("index", format!("{index}: {what}")));
        }
    }
    let found = matches!(index, IndexUse::Used { .. });
    stages.push((
        "rows",
        match (found, &select.rows) {
            _ if select.feed.is_some() => "those that the feed names, in the order of their last changes".to_owned(),
            (true, Clustering::All) => "those that the index names".to_owned(),
            (true, within) => format!("those that the index names, within {}", rows(within)),
            (false, all) => rows(all),
        },
    ));
    let filters = match &select.filter {
        Filter::All(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    stages.extend(filters.iter().map(|one| ("filter", filter(table, one))));
    if select.reversed {
        stages.push(("order", "each partition from its last row to its first".to_owned()));
    }
    if select.distinct {
        stages.push(("distinct", "one row for each partition".to_owned()));
    }
    if let Some(groups) = &select.group_by {
        stages.push(("group", count(groups.len(), "expression", "expressions")));
    }
    let aggregates = select.selection.aggregates.len();
    if aggregates > 0 {
        stages.push(("aggregate", count(aggregates, "aggregate", "aggregates")));
    }
    if !select.sort.is_empty() {
        let columns: Vec<String> = select
            .sort
            .iter()
            .map(|(place, descending)| format!("{} {}", name(table, *place), if *descending { "DESC" } else { "ASC" }))
            .collect();
        stages.push(("sort", format!("the whole result by {}", columns.join(", "))));
    }
    if let Some(nearest) = &select.nearest {
        let of = name(table, nearest.column);
        stages.push((
            "nearest",
            format!(
                "each row's {of} is compared ({}), the nearest are kept; index {} holds no graph",
                nearest.similarity.name(),
                nearest.index
            ),
        ));
    }
    if let Some(limit) = select.per_partition_limit_rows {
        stages.push((
            "limit",
            format!("{} of each partition", count(limit as usize, "row", "rows")),
        ));
    }
    if let Some(limit) = select.limit_rows {
        stages.push(("limit", count(limit as usize, "row", "rows")));
    }
    stages
}

/// The stages of an INSERT, UPDATE or DELETE.
#[must_use]
pub fn modification(modification: &Write) -> Vec<Stage> {
    let table = modification.table.as_ref();
    let verb = match modification.kind {
        WriteVerb::Insert => "INSERT into",
        WriteVerb::Update => "UPDATE of",
        WriteVerb::Delete => "DELETE from",
    };
    let mut stages = vec![
        ("statement", format!("{verb} {}", of_table(table))),
        (
            "partitions",
            format!(
                "{} by key",
                count(modification.partition_keys.len(), "partition", "partitions")
            ),
        ),
    ];
    stages.push((
        "rows",
        match &modification.target {
            WriteTarget::Rows(keys) => format!("{} of each partition by key", count(keys.len(), "row", "rows")),
            WriteTarget::Static => "the static row of each partition".to_owned(),
            WriteTarget::Ranges(ranges) => rows(&Clustering::Ranges(ranges.clone())),
            WriteTarget::Partition => "the whole of each partition".to_owned(),
        },
    ));
    match &modification.condition {
        Condition::Always => {}
        Condition::Exists => stages.push(("condition", "the row is read first and must exist".to_owned())),
        Condition::NotExists => stages.push(("condition", "the row is read first and must not exist".to_owned())),
        Condition::Columns(conditions) => stages.extend(conditions.iter().map(|test| {
            (
                "condition",
                format!("the row is read first: {}", self::test(table, test)),
            )
        })),
    }
    let reads: Vec<usize> = modification
        .operations
        .iter()
        .filter(|(_, operation)| matches!(operation, ColumnChange::SetAt(..) | ColumnChange::Discard(_)))
        .map(|(place, _)| *place)
        .collect();
    if !reads.is_empty() {
        stages.push(("read", format!("lists are read first: {}", names(table, &reads))));
    }
    if !modification.operations.is_empty() {
        let places: Vec<usize> = modification.operations.iter().map(|(place, _)| *place).collect();
        stages.push(("write", names(table, &places)));
    }
    let indexes: Vec<&str> = table.indexes.keys().map(String::as_str).collect();
    if !indexes.is_empty() {
        stages.push((
            "index",
            format!("{}: entries kept by the same commit", indexes.join(", ")),
        ));
    }
    stages
}

/// The stages of a BATCH: those of its members, one after the other.
#[must_use]
pub fn batch(batch: &Batch) -> Vec<Stage> {
    let conditional = if batch.conditional { ", all or none" } else { "" };
    let mut stages = vec![(
        "statement",
        format!(
            "BATCH of {}{conditional}",
            count(batch.modifications.len(), "statement", "statements")
        ),
    )];
    for member in &batch.modifications {
        stages.extend(modification(member));
    }
    stages
}
