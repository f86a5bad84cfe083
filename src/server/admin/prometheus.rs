//! `/metrics`: every figure as a family of samples.

use std::sync::atomic::Ordering;

use super::gather::Gatherer;
use crate::metrics::exposition::{Labels, Text};
use crate::metrics::{self, Distribution, StatementKind};

/// Physical partitions with samples of their own, those of the lowest numbers: a scraper keeps each for days.
const PARTITIONS_MAX: usize = 1000;

pub(super) fn render(gatherer: &Gatherer) -> String {
    let mut text = Text::new();
    let version: Labels<'_> = &[("version", env!("CARGO_PKG_VERSION"))];
    text.gauges("build_info", "The program; always 1.", [(version, 1)]);
    text.gauge(
        "uptime_seconds",
        "Time since the server started.",
        gatherer.uptime().as_secs_f64(),
    );
    for counter in metrics::ALL {
        text.counter(counter.name(), counter.help(), counter.value());
    }
    errors(&mut text);
    statements(&mut text, gatherer);
    server(&mut text, gatherer);
    store(&mut text, gatherer);
    request_units(&mut text, gatherer);
    partitions(&mut text, gatherer);
    fullest(&mut text, gatherer);
    process(&mut text);
    text.finish()
}

fn errors(text: &mut Text) {
    let codes: Vec<(String, &str, u64)> = metrics::errors()
        .map(|(code, name, count)| (format!("0x{code:04X}"), name, count))
        .collect();
    let labels: Vec<([(&str, &str); 2], u64)> = codes
        .iter()
        .map(|(code, name, count)| ([("code", code.as_str()), ("name", *name)], *count))
        .collect();
    text.counters(
        "errors_total",
        "Answers that were errors, by the protocol's code.",
        labels.iter().map(|(labels, count)| (labels.as_slice(), *count)),
    );
}

fn statements(text: &mut Text, gatherer: &Gatherer) {
    let statements = gatherer.database().statements();
    let kinds = StatementKind::ALL.map(|kind| {
        let figures = statements.of(kind);
        let errors = figures.errors.load(Ordering::Relaxed);
        ([("kind", kind.name())], figures.latency.load(), errors)
    });
    text.times(
        "statement_seconds",
        "Time from reading a statement to writing its answer, by kind.",
        kinds.iter().map(|(labels, times, _)| (labels.as_slice(), times)),
    );
    text.counters(
        "statement_errors_total",
        "Statements that were answered with an error, by kind.",
        kinds.iter().map(|(labels, _, errors)| (labels.as_slice(), *errors)),
    );
    text.counter(
        "statements_executed_prepared_total",
        "Executions of prepared statements.",
        statements.prepared.load(Ordering::Relaxed),
    );
    let (count, bytes) = gatherer.prepared();
    text.gauge("prepared_statements", "Prepared statements that are kept.", count);
    text.gauge(
        "prepared_statements_bytes",
        "Memory of prepared statements, roughly.",
        bytes,
    );
}

fn server(text: &mut Text, gatherer: &Gatherer) {
    let load = gatherer.load();
    text.gauge("connections", "Connections open now.", load.connections);
    text.gauge(
        "requests_in_flight",
        "Requests in work that wait for something.",
        load.in_flight,
    );
    text.gauge(
        "requests_in_flight_bytes",
        "Bytes of the bodies of requests in work that wait for something.",
        load.in_flight_bytes,
    );
    text.gauge(
        "connections_memory_bytes",
        "Memory of answers, buffers and requests of all connections.",
        load.memory_bytes,
    );
    text.gauge(
        "connections_memory_bytes_max",
        "Most that answers of connections may take; see the setting connections-memory-bytes-max.",
        load.memory_bytes_max,
    );
    text.gauge(
        "connections_memory_waiting",
        "Answers that wait for memory now.",
        load.memory_waiting,
    );
}

fn store(text: &mut Text, gatherer: &Gatherer) {
    let store = gatherer.database().store_figures();
    text.counter(
        "row_cache_hits_total",
        "Point reads that the row cache answered.",
        store.row_cache_hits,
    );
    text.counter(
        "row_cache_misses_total",
        "Point reads that went to the engine.",
        store.row_cache_misses,
    );
    text.gauge("row_cache_bytes", "Bytes in the row cache now.", store.row_cache_bytes);
    text.gauge(
        "row_cache_bytes_max",
        "Bytes that the row cache may take.",
        store.row_cache_bytes_max,
    );
    let groups: Distribution = metrics::COMMIT_GROUPS.load();
    text.times(
        "commit_group_seconds",
        "Time to write a group of commits and make it durable.",
        [(&[] as Labels<'_>, &groups)],
    );
}

/// Tables with samples of their own, those of the most units.
const TABLES_MAX: usize = 1000;

fn request_units(text: &mut Text, gatherer: &Gatherer) {
    text.counter(
        "request_units_total",
        "Request units charged, those of system tables and the schema included.",
        gatherer.database().request_units(),
    );
    let mut tables = gatherer.database().table_request_units();
    tables.sort_by_key(|(.., units)| std::cmp::Reverse(*units));
    tables.truncate(TABLES_MAX);
    let labels: Vec<[(&str, &str); 2]> = tables
        .iter()
        .map(|(keyspace, table, _)| [("keyspace", keyspace.as_str()), ("table", table.as_str())])
        .collect();
    text.counters(
        "table_request_units_total",
        "Request units charged to a table; the 1000 tables with the most.",
        labels
            .iter()
            .map(<[_; 2]>::as_slice)
            .zip(tables.iter().map(|(.., units)| *units)),
    );
}

fn partitions(text: &mut Text, gatherer: &Gatherer) {
    let mut partitions = gatherer.database().partitions();
    text.gauge("partitions", "Physical partitions.", partitions.len());
    let sum = |of: fn(&crate::executor::PartitionFigures) -> u64| partitions.iter().map(of).sum::<u64>();
    text.gauge(
        "data_bytes",
        "Bytes of keys and values, before compression.",
        sum(|partition| partition.bytes),
    );
    text.gauge(
        "data_rows",
        "Rows, those not yet cleaned up included.",
        sum(|partition| partition.rows),
    );
    partitions.sort_by_key(|partition| partition.id);
    partitions.truncate(PARTITIONS_MAX);
    let ids: Vec<String> = partitions.iter().map(|partition| partition.id.to_string()).collect();
    // Numbers are a table's own.
    let of_table = partitions.iter().zip(&ids).map(|(partition, id)| {
        let (keyspace, table) = (partition.keyspace.as_str(), partition.table.as_str());
        [("keyspace", keyspace), ("table", table), ("partition", id.as_str())]
    });
    let labels: Vec<[(&str, &str); 3]> = of_table.collect();
    let all = || labels.iter().map(<[_; 3]>::as_slice).zip(&partitions);
    text.gauges(
        "partition_bytes",
        "Bytes of keys and values in a physical partition; those of the 1000 lowest numbers.",
        all().map(|(labels, partition)| (labels, partition.bytes)),
    );
    text.counters(
        "partition_request_units_total",
        "Request units charged to a physical partition.",
        all().map(|(labels, partition)| (labels, partition.request_units)),
    );
    text.gauges(
        "partition_replicas_alive",
        "Replicas of a physical partition that are alive.",
        all().map(|(labels, partition)| (labels, partition.replicas_alive)),
    );
    text.gauges(
        "partition_request_units_used_per_second",
        "Request units a second that a physical partition was asked for, as of the last look at its heat.",
        all().map(|(labels, partition)| (labels, partition.per_second.as_f64())),
    );
    let budgets = || all().filter_map(|(labels, partition)| Some((labels, partition.budget?)));
    if budgets().next().is_none() {
        return;
    }
    text.gauges(
        "partition_request_units_per_second",
        "Request units that a physical partition with throughput may spend in a second.",
        budgets().map(|(labels, budget)| (labels, budget.per_second_hundredths / 100)),
    );
    text.gauges(
        "partition_normalized_ru_percent",
        "Highest use of a physical partition's request units in a second of the last minute.",
        budgets().map(|(labels, budget)| (labels, budget.normalized_percent)),
    );
}

/// The largest logical partition of each table that has one worth knowing: its size, never its key.
fn fullest(text: &mut Text, gatherer: &Gatherer) {
    let mut largest = gatherer.database().largest_partitions();
    let mut seen = std::collections::BTreeSet::new();
    // They come by size.
    largest.retain(|partition| seen.insert((partition.keyspace.clone(), partition.table.clone())));
    largest.truncate(PARTITIONS_MAX);
    // A family without samples says nothing, and readers of the format may refuse it.
    if largest.is_empty() {
        return;
    }
    let labels: Vec<[(&str, &str); 2]> = largest
        .iter()
        .map(|partition| {
            [
                ("keyspace", partition.keyspace.as_str()),
                ("table", partition.table.as_str()),
            ]
        })
        .collect();
    let all = || labels.iter().map(<[_; 2]>::as_slice).zip(&largest);
    text.gauges(
        "largest_logical_partition_bytes",
        "Bytes of the largest logical partition of a table that is known, index entries included.",
        all().map(|(labels, partition)| (labels, partition.bytes)),
    );
    let shares = || all().filter_map(|(labels, partition)| Some((labels, partition.share()?)));
    if shares().next().is_none() {
        return;
    }
    text.gauges(
        "largest_logical_partition_ratio",
        "Its part of what a logical partition may hold; 1 is full.",
        shares(),
    );
}

/// What the system says of the process; left out where it does not.
fn process(text: &mut Text) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    if let Some(kibibytes) = kibibytes {
        text.gauge("resident_bytes", "Memory of the process.", kibibytes * 1024);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        text.gauge("open_files", "Open files of the process.", files.count());
    }
}
