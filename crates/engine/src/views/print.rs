//! `helenus status` for people: the admin port's JSON, printed by the lists below the figures.

use std::fmt::Write;

use serde_json::Value;

use super::cosmos::{hot_keys, largest_partitions, nodes, partitions, tables};
use super::printed::{Line, Printed, Row};
use super::{server, statements};
use helenus_schema::schema::system;

/// Rows printed of each table; the JSON has all.
const ROWS_MAX: usize = 50;

/// Keys printed of each kind.
const KEYS_MAX: usize = 10;

/// Replaces a partition key that the admin port does not show.
pub const HIDDEN_KEY: &str = "(hidden: start with --admin-show-keys)";

/// All tables as text, in lines of some 110 characters at most. `everything`: the routes' responses by the last part of
/// their paths.
#[must_use]
pub fn text(everything: &Value) -> String {
    let everything = Row(everything);
    let mut out = String::new();
    for Line(name, show) in server::LINES {
        if let Some(text) = show(&Row(everything.get("status"))) {
            let _ = match *name {
                "" => writeln!(out, "{text}"),
                name => writeln!(out, "{name:<14}{text}"),
            };
        }
    }
    let rows = |path: &str| everything.get(path).as_array().map(Vec::as_slice).unwrap_or_default();
    let is_users = |row: &&Value| !system::is_name(&Row(row).text("keyspace"));
    let occurred = |row: &&Value| Row(row).count("latency.count") > 0;
    // A server that is alone is what all lines are about.
    let of_several = rows("status.nodes");
    let of_several = of_several.iter().filter(|_| of_several.len() > 1);
    table(&mut out, nodes::PRINTED, of_several);
    let kinds = rows("status.statements.kinds").iter().filter(occurred);
    table(&mut out, statements::PRINTED_KINDS, kinds);
    table(&mut out, statements::PRINTED_ERRORS, rows("status.statements.errors"));
    table(&mut out, tables::PRINTED, rows("tables.tables").iter().filter(is_users));
    table(
        &mut out,
        partitions::PRINTED,
        rows("partitions.partitions").iter().filter(is_users),
    );
    keys(&mut out, "hot keys", hot_keys::PRINTED, rows("keys.hot"));
    keys(
        &mut out,
        "keys of the largest partitions",
        largest_partitions::PRINTED,
        rows("keys.largest"),
    );
    out
}

/// A table of partition keys. Keys that the server hides are only counted.
fn keys(out: &mut String, what: &str, columns: &[Printed], rows: &[Value]) {
    let is_hidden = |row: &&Value| Row(row).text("partition_key") == HIDDEN_KEY;
    table(out, columns, rows.iter().filter(|row| !is_hidden(row)).take(KEYS_MAX));
    let hidden = rows.iter().filter(is_hidden).count();
    if hidden > 0 {
        let _ = writeln!(out, "\n{what}: {hidden} hidden; start with --admin-show-keys");
    }
}

/// A table with its headings. Empty if there are no rows.
fn table<'a>(out: &mut String, columns: &[Printed], rows: impl IntoIterator<Item = &'a Value>) {
    let cells = |row: &Value| -> Vec<String> { columns.iter().map(|column| (column.show)(&Row(row))).collect() };
    let mut rows: Vec<Vec<String>> = rows.into_iter().map(cells).collect();
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    rows.insert(0, columns.iter().map(|column| column.name.to_owned()).collect());
    let width = |place: usize| {
        let cells = rows.iter().filter_map(|row| row.get(place));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for ((column, cell), width) in columns.iter().zip(row).zip(&widths) {
            let _ = if column.is_left {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_keys_are_counted() {
        let hidden = vec![json!({"partition_key": HIDDEN_KEY, "keyspace": "ks", "table": "t"}); 12];
        let text = text(&json!({"status": {}, "keys": {"hot": hidden, "largest": []}}));
        assert!(
            text.ends_with("\nhot keys: 12 hidden; start with --admin-show-keys\n"),
            "{text}"
        );
        assert_eq!(text.matches("hidden").count(), 1, "{text}");
    }

    #[test]
    fn columns_stand_below_each_other() {
        const COLUMNS: &[Printed] = &[
            Printed::left("name", |row| row.text("name")),
            Printed::right("count", |row| row.text("count")),
        ];
        let mut out = String::new();
        let rows = [
            json!({"name": "a", "count": 1}),
            json!({"name": "longer", "count": 100_000}),
        ];
        table(&mut out, COLUMNS, &rows);
        assert_eq!(out, "\nname     count\na            1\nlonger  100000\n");
        let mut out = String::new();
        table(&mut out, COLUMNS, &vec![json!({}); 60]);
        assert!(out.ends_with("… and 10 more, which --json has\n"));
    }
}
