//! `system_cosmos.feedranges`: the parts of the ring by which several readers share the change feed of a table.

use std::collections::{BTreeMap, BTreeSet};

use super::super::figure::{self, Figure, Kind, Value};
use super::super::view::{Own, Rows, Sources, View};
use super::common::COSMOS;
use helenus_schema::schema::feed_range::FeedRange;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "feedranges",
    own: Some(Own {
        comment: "feed ranges of tables with a change feed: one for each physical partition",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, ranges(sources))),
};

/// A feed range of a table.
struct RangeOf {
    keyspace: String,
    table: String,
    range: String,
}

static FIGURES: &[Figure<RangeOf>] = &[
    Figure::new("The table's keyspace.", |of: &RangeOf| Value::text(&of.keyspace)).keyed(
        Kind::Partition,
        "keyspace_name",
        "text",
    ),
    Figure::new("The table.", |of: &RangeOf| Value::text(&of.table)).keyed(Kind::Clustering, "table_name", "text"),
    Figure::new(
        "The value for `COSMOS_FEEDRANGE()`: JSON with the lowest token and the one after the highest.",
        |of: &RangeOf| Value::text(&of.range),
    )
    .keyed(Kind::Clustering, "range", "text"),
];

fn ranges(sources: Sources<'_>) -> Vec<RangeOf> {
    let mut starts = BTreeMap::<(String, String), BTreeSet<i64>>::new();
    for partition in sources.of_services(|figures| figures.partitions()) {
        let keyspace = sources.schema.keyspaces.get(&partition.keyspace);
        let table = keyspace.and_then(|keyspace| keyspace.tables.get(&partition.table));
        if table.is_none_or(|table| table.feed().is_none()) {
            continue;
        }
        let starts = starts.entry((partition.keyspace, partition.table)).or_default();
        // A feed range consists of whole tokens, so a bound inside a token divides no range.
        if partition.lower_key.is_empty() {
            starts.insert(partition.lower);
        }
    }
    let mut ranges = Vec::new();
    for ((keyspace, table), starts) in starts {
        let ends = starts
            .iter()
            .skip(1)
            .map(|next| next.saturating_sub(1))
            .chain([i64::MAX]);
        let mut texts: Vec<String> = starts
            .iter()
            .enumerate()
            .zip(ends)
            .map(|((number, lower), upper)| {
                let lower = if number == 0 { i64::MIN } else { *lower };
                FeedRange { lower, upper }.to_string()
            })
            .collect();
        texts.sort_unstable();
        ranges.extend(texts.into_iter().map(|range| RangeOf {
            keyspace: keyspace.clone(),
            table: table.clone(),
            range,
        }));
    }
    ranges
}
