//! `/metrics`: every figure that has a family.

use std::collections::BTreeSet;

use super::bucket;
use super::cosmos::{largest_partitions, partitions, tables};
use super::figure::samples;
use super::memory;
use super::server::{self, Server};
use super::statements;
use super::view::Sources;
use helenus_base::metrics;
use helenus_base::metrics::exposition::{Labels, Text};

/// Maximum rows with samples of their own, because a scraper keeps each series for days.
const ROWS_MAX: usize = 1000;

/// All figures in the text format of Prometheus.
#[must_use]
pub fn render(sources: Sources<'_>) -> String {
    let mut text = Text::new();
    let version: Labels<'_> = &[("version", env!("CARGO_PKG_VERSION"))];
    text.gauges("build_info", "The program; always 1.", [(version, 1)]);
    for counter in metrics::ALL {
        text.counter(counter.name(), counter.help(), counter.value());
    }
    samples(&mut text, server::FIGURES, &[Server::of(sources)]);
    let nodes = sources.of_services(|figures| figures.cluster());
    let count = |is_up| nodes.iter().filter(|node| node.is_up == is_up).count();
    let by_state: [(Labels<'_>, usize); 2] = [(&[("state", "down")], count(false)), (&[("state", "up")], count(true))];
    text.gauges(
        "nodes",
        "Nodes of the cluster, as the owner of the stores sees them.",
        by_state,
    );
    samples(&mut text, statements::ERRORS, &statements::errors());
    samples(&mut text, statements::KINDS, &statements::kinds(sources));
    samples(&mut text, statements::PREPARED, &[statements::prepared(sources)]);
    samples(&mut text, memory::FIGURES, &memory::holders(sources));
    let of_bucket = bucket::requests(sources);
    samples(&mut text, bucket::REQUESTS, &of_bucket);
    samples(&mut text, bucket::COSTS, bucket::costs(sources, &of_bucket).as_slice());
    // The tables with the most request units.
    let mut of_tables = tables::all(sources);
    of_tables.sort_by_key(|table| std::cmp::Reverse(table.request_units));
    of_tables.truncate(ROWS_MAX);
    samples(&mut text, tables::FIGURES, &of_tables);
    // The partitions with the lowest numbers.
    let mut of_partitions = sources.of_services(|figures| figures.partitions());
    of_partitions.sort_by_key(|partition| partition.id);
    of_partitions.truncate(ROWS_MAX);
    samples(&mut text, partitions::FIGURES, &of_partitions);
    // The largest logical partition of each table: its size, never its key.
    let mut largest = sources.of_services(|figures| figures.largest_partitions());
    let mut seen = BTreeSet::new();
    // They are sorted by size.
    largest.retain(|partition| seen.insert((partition.keyspace.clone(), partition.table.clone())));
    largest.truncate(ROWS_MAX);
    samples(&mut text, largest_partitions::FIGURES, &largest);
    text.finish()
}
