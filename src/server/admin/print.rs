//! `helenus status` for people.

use std::fmt::Write;

use super::report::{Everything, Keys, Kind, Latency, Partition, Status, Table};

/// Rows of each table that are printed; the JSON has all.
const ROWS_MAX: usize = 50;

/// Keys that are printed of each kind.
const KEYS_MAX: usize = 10;

/// Everything as text, lines of at most some 110 characters.
#[must_use]
pub fn text(everything: &Everything) -> String {
    let mut out = String::new();
    head(&mut out, &everything.status);
    statements(&mut out, &everything.status.statements.kinds);
    errors(&mut out, &everything.status);
    tables(&mut out, &everything.tables.tables);
    partitions(&mut out, &everything.partitions.partitions);
    keys(&mut out, &everything.keys);
    out
}

fn head(out: &mut String, status: &Status) {
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    let mut addresses = status.addresses.join(", ");
    if !status.tls_addresses.is_empty() {
        let _ = write!(addresses, ", with TLS {}", status.tls_addresses.join(", "));
    }
    line(format!(
        "helenus {} on {addresses}, up {}",
        status.version,
        duration(status.uptime_seconds)
    ));
    line(format!(
        "cluster       {}, {}, {}, host id {}",
        status.cluster_name, status.data_center, status.rack, status.host_id
    ));
    line(format!(
        "data          {}, durability {}, login {}",
        status.data,
        status.durability,
        if status.login_required { "required" } else { "none" }
    ));
    line(format!(
        "holds         {} in {}, {}: {}, {}",
        counted(status.tables as u64, "table"),
        counted(status.keyspaces as u64, "keyspace"),
        counted(status.partitions as u64, "physical partition"),
        counted(status.rows, "row"),
        size(status.bytes)
    ));
    let connections = &status.connections;
    line(format!(
        "connections   {} open, {} accepted, {} refused; {} in work; received {}, sent {}",
        connections.open,
        connections.opened,
        connections.refused,
        counted(connections.in_flight as u64, "request"),
        size(connections.received_bytes),
        size(connections.sent_bytes)
    ));
    line(format!("charged       {:.2} request units", status.request_units));
    let prepared = &status.statements.prepared;
    line(format!(
        "prepared      {} kept ({}), executed {} times, {} forgotten",
        counted(prepared.count as u64, "statement"),
        size(prepared.bytes as u64),
        prepared.executed,
        prepared.evicted
    ));
    if status.throttled > 0 {
        line(format!(
            "throttled     {} had to wait for request units",
            counted(status.throttled, "statement")
        ));
    }
    let cache = &status.row_cache;
    line(format!(
        "row cache     {} of {}, {} hits, {} misses",
        size(cache.bytes),
        size(cache.bytes_max),
        cache.hits,
        cache.misses
    ));
    let groups = &status.commits.groups;
    if groups.count > 0 {
        line(format!(
            "commits       {} in {}; a group took {} (p50), {} (p99), {} at most",
            status.commits.batches,
            counted(groups.count, "group"),
            time(groups.p50_micros),
            time(groups.p99_micros),
            time(groups.max_micros)
        ));
    }
}

fn statements(out: &mut String, kinds: &[Kind]) {
    let rows = kinds.iter().filter(|kind| kind.latency.count > 0).map(|kind| {
        let latency = &kind.latency;
        vec![
            kind.kind.clone(),
            latency.count.to_string(),
            kind.errors.to_string(),
            time(latency.p50_micros),
            time(latency.p99_micros),
            time(latency.p999_micros),
            time(latency.max_micros),
        ]
    });
    table(
        out,
        &["statement", "count", "errors", "p50", "p99", "p99.9", "max"],
        1,
        rows.collect(),
    );
}

fn errors(out: &mut String, status: &Status) {
    let rows = status.statements.errors.iter();
    let rows = rows.map(|error| vec![format!("{} {}", error.code, error.name), error.count.to_string()]);
    table(out, &["error", "count"], 1, rows.collect());
}

fn tables(out: &mut String, tables: &[Table]) {
    let latency = |latency: &Latency| {
        if latency.count == 0 {
            return ["0".to_owned(), "-".to_owned()];
        }
        [latency.count.to_string(), time(latency.p99_micros)]
    };
    let rows = tables.iter().filter(|table| !table.is_system).map(|table| {
        let mut row = vec![
            format!("{}.{}", table.keyspace, table.table),
            table.partitions.to_string(),
            table.rows.to_string(),
            size(table.bytes),
        ];
        row.extend(
            [&table.reads, &table.scans, &table.writes]
                .into_iter()
                .flat_map(latency),
        );
        row.push(format!("{:.2}", table.request_units));
        row
    });
    let names = [
        "table", "parts", "rows", "size", "reads", "p99", "scans", "p99", "writes", "p99", "RU",
    ];
    table(out, &names, 1, rows.collect());
}

fn partitions(out: &mut String, partitions: &[Partition]) {
    let is_users = |partition: &&Partition| !crate::schema::system::is_name(&partition.keyspace);
    let rows = partitions.iter().filter(is_users).map(|partition| {
        vec![
            partition.id.to_string(),
            format!("{}.{}", partition.keyspace, partition.table),
            partition.lower.clone(),
            partition.upper.clone(),
            partition.epoch.to_string(),
            partition.store.to_string(),
            format!("{} of 4", partition.replicas_alive),
            partition.rows.to_string(),
            size(partition.bytes),
            format!("{:.0}", partition.request_units_per_second),
            budget(partition),
            format!("{:.2}", partition.request_units),
        ]
    });
    let names = [
        "partition",
        "table",
        "from token",
        "to token",
        "epoch",
        "store",
        "replicas",
        "rows",
        "size",
        "RU/s",
        "RU/s used",
        "RU",
    ];
    table(out, &names, 2, rows.collect());
}

/// Partition keys that stand out.
fn keys(out: &mut String, keys: &Keys) {
    let hot = keys.hot.iter().map(|key| {
        vec![
            short(&key.partition_key),
            format!("{}.{}", key.keyspace, key.table),
            key.requests.to_string(),
            key.requests_error.to_string(),
            format!("{:.0}", key.request_units),
        ]
    });
    let names = ["hot key", "table", "requests", "at most too many", "request units"];
    table(out, &names, 2, hot.take(KEYS_MAX).collect());
    let largest = keys.largest.iter().map(|partition| {
        let share = partition.share.map(|share| format!("{:.1} %", share * 100.0));
        vec![
            short(&partition.partition_key),
            format!("{}.{}", partition.keyspace, partition.table),
            size(partition.bytes),
            share.unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let names = ["large key", "table", "size", "of its limit"];
    table(out, &names, 2, largest.take(KEYS_MAX).collect());
}

/// A key, cut where it is long.
fn short(key: &str) -> String {
    match key.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", key.get(..end).unwrap_or_default()),
        None => key.to_owned(),
    }
}

/// How much of its request units a partition has used in a second at most.
fn budget(partition: &Partition) -> String {
    match (
        partition.normalized_consumption_percent,
        partition.provisioned_units_per_second,
    ) {
        (Some(percent), Some(units)) => format!("{percent} % of {units}"),
        _ => "-".to_owned(),
    }
}

/// A table with its names above; the first `left` columns stand left, numbers right. Nothing if there are no rows.
fn table(out: &mut String, names: &[&str], left: usize, mut rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    rows.insert(0, names.iter().map(|name| (*name).to_owned()).collect());
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column < left {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if more > 0 {
        let _ = writeln!(out, "… and {more} more, which --json has");
    }
}

fn counted(count: u64, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// Microseconds, in the unit that suits.
fn time(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..1_000_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Bytes, in the unit that suits.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let Some(unit) = (bytes.checked_ilog2().unwrap_or(0) / 10).checked_sub(1) else {
        return format!("{bytes} B");
    };
    let unit = unit.min(3);
    let tenths = (bytes >> (10 * unit)) * 10 / 1024;
    let name = units.get(unit as usize).copied().unwrap_or_default();
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Seconds, as days, hours, minutes.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit() {
        let sizes = [0, 1023, 1024, 1536, 5 << 20, (1 << 30) - 1, 3 << 40, u64::MAX].map(size);
        assert_eq!(
            sizes,
            [
                "0 B",
                "1023 B",
                "1.0 KiB",
                "1.5 KiB",
                "5.0 MiB",
                "1023.9 MiB",
                "3.0 TiB",
                "16777215.9 TiB"
            ]
        );
        let times = [0, 999, 1000, 12_345, 2_500_000].map(time);
        assert_eq!(times, ["0 µs", "999 µs", "1.0 ms", "12.3 ms", "2.5 s"]);
        let durations = [5, 65, 3_700, 90_000].map(duration);
        assert_eq!(durations, ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut out = String::new();
        let row = |name: &str, count: &str| vec![name.to_owned(), count.to_owned()];
        table(
            &mut out,
            &["name", "count"],
            1,
            vec![row("a", "1"), row("longer", "100000")],
        );
        assert_eq!(out, "\nname     count\na            1\nlonger  100000\n");
        let mut out = String::new();
        table(&mut out, &["name"], 1, vec![vec!["x".to_owned()]; 60]);
        assert!(out.ends_with("… and 10 more, which --json has\n"));
    }
}
