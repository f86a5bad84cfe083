//! What has to hold after a start.

use super::acknowledged::Acknowledged;
use super::writers::INSERTS_IN_FLIGHT;
use super::{Promises, all_rows, int, row_value};
use crate::raw::{Connection, hex};
use crate::{Error, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What of the acknowledged writes must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All.
    All,
    /// What was acknowledged so long before the cut and before its client's last acknowledgement: a store whose syncs are slow holds its
    /// clients up. What is there of one client is what it wrote first.
    LongBefore { cut: Instant, slack: Duration },
    /// Nothing need be; else the same.
    Nothing,
}

impl Kept {
    /// Whether what was acknowledged at `at` must be there; `of`: all that its client was acknowledged.
    fn must_hold(self, at: Instant, of: &Acknowledged) -> bool {
        match self {
            Self::All => true,
            Self::LongBefore { cut, slack } => at + slack < of.last().map_or(cut, |last| last.min(cut)),
            Self::Nothing => false,
        }
    }
}

/// Checks everything; rows and batches only of `cycle`. What is wrong is added to `lost`.
///
/// # Errors
/// The server refuses a read.
pub(crate) fn all(
    connection: &mut Connection,
    promises: &Promises,
    cycle: i32,
    kept: Kept,
    lost: &mut Vec<String>,
) -> Outcome<()> {
    rows(connection, promises, cycle, kept, lost)?;
    batches(connection, promises, cycle, kept, lost)?;
    deletions(connection, promises, kept, lost)?;
    if kept == Kept::All {
        register(connection, promises, lost)?;
        counters(connection, promises, lost)?;
    }
    Ok(())
}

fn rows(
    connection: &mut Connection,
    promises: &Promises,
    cycle: i32,
    kept: Kept,
    lost: &mut Vec<String>,
) -> Outcome<()> {
    for rows in promises.rows.iter().filter(|rows| rows.cycle == cycle) {
        let writer = rows.writer;
        let found = found_rows(connection, cycle, writer)?;
        for (seq, at) in rows.acknowledged.iter() {
            match found.get(&seq) {
                None if kept.must_hold(at, &rows.acknowledged) => {
                    lost.push(format!("row {cycle}/{writer}/{seq} is lost"))
                }
                Some(v) if *v != hex(&row_value(cycle, writer, seq)) => {
                    lost.push(format!("row {cycle}/{writer}/{seq} has another value"));
                }
                _ => {}
            }
        }
        // A window is sent when the one before it is answered, so that an order of all commits has it behind.
        let missing = rows.acknowledged.iter().find(|(seq, _)| !found.contains_key(seq));
        let window = |seq: i32| seq / INSERTS_IN_FLIGHT;
        let last = found.last_key_value().map(|(seq, _)| *seq);
        if let (Some((missing, _)), Some(last)) = (missing, last)
            && window(missing) < window(last)
        {
            lost.push(format!("row {cycle}/{writer}/{missing} is lost, {last} is there"));
        }
    }
    Ok(())
}

/// The rows of an inserter, in hexadecimal.
///
/// # Errors
/// The server refuses the read.
pub(crate) fn found_rows(connection: &mut Connection, cycle: i32, writer: i32) -> Outcome<BTreeMap<i32, String>> {
    let text = format!("SELECT seq, v FROM crash.rows WHERE cycle = {cycle} AND writer = {writer}");
    Ok(all_rows(connection, &text)?
        .iter()
        .filter_map(|row| Some((int(row.get(0))?, row.get(1)?.as_str()?.to_owned())))
        .collect())
}

/// What was deleted stays deleted; of all cycles.
fn deletions(connection: &mut Connection, promises: &Promises, kept: Kept, lost: &mut Vec<String>) -> Outcome<()> {
    if promises.deletions.is_empty() {
        return Ok(());
    }
    let found = all_rows(connection, "SELECT cycle, writer, n, c, b FROM crash.gone")?;
    // Of a partition: how many rows there are, and how many with a cell older than the deletion.
    let mut partitions: BTreeMap<(i32, i32, i32), (u32, u32)> = BTreeMap::new();
    for row in &found {
        let Some(key) = int(row.get(0)).zip(int(row.get(1))).zip(int(row.get(2))) else {
            return Err(Error::Malformed("a row of crash.gone"));
        };
        let counts = partitions.entry((key.0.0, key.0.1, key.1)).or_default();
        counts.0 += 1;
        counts.1 += u32::from(int(row.get(4)).is_some());
    }
    for deleted in &promises.deletions {
        let (cycle, writer) = (deleted.cycle, deleted.writer);
        let of = (cycle, writer, i32::MIN)..=(cycle, writer, i32::MAX);
        for ((_, _, n), (rows, cells)) in partitions.range(of) {
            let erased = deleted.erased.time_of(*n);
            let is_erased = erased.is_some_and(|at| kept.must_hold(at, &deleted.erased));
            let emptied = deleted.emptied.time_of(*n);
            let is_emptied = emptied.is_some_and(|at| kept.must_hold(at, &deleted.emptied));
            if is_erased {
                lost.push(format!("{rows} deleted rows of {cycle}/{writer}/{n} are back"));
            } else if is_emptied && *cells > 0 {
                lost.push(format!("{cells} deleted cells of {cycle}/{writer}/{n} are back"));
            }
        }
    }
    Ok(())
}

fn register(connection: &mut Connection, promises: &Promises, lost: &mut Vec<String>) -> Outcome<()> {
    let told = connection.must("SELECT v, mark FROM crash.register WHERE k = 0")?;
    let v = int(told.pointer("/rows/0/0")).ok_or_else(|| Error::failed("the register is lost"))?;
    let mark = told
        .pointer("/rows/0/1")
        .and_then(|c| c.as_str())
        .unwrap_or_default()
        .to_owned();
    let mut values = BTreeSet::new();
    for (value, _) in &promises.granted {
        if !values.insert(value) {
            lost.push(format!("the register granted {value} twice"));
        }
    }
    let last = promises.granted.iter().map(|(v, _)| *v).max().unwrap_or(0);
    if v < last || v > last + promises.register_doubts {
        lost.push(format!(
            "the register is {v}, {last} was the last granted, {} in doubt",
            promises.register_doubts
        ));
    }
    if let Some((_, expected)) = promises.granted.iter().find(|(value, _)| *value == v)
        && hex(expected.as_bytes()) != mark
    {
        lost.push(format!(
            "the register's {v} was granted to {expected} and bears another mark"
        ));
    }
    // Each value up to the last was granted or is one of those in doubt.
    let missing = i32::try_from(values.len()).map_or(0, |granted| last - granted);
    if missing > promises.register_doubts {
        lost.push(format!("{missing} values of the register were granted to nobody"));
    }
    Ok(())
}

fn counters(connection: &mut Connection, promises: &Promises, lost: &mut Vec<String>) -> Outcome<()> {
    for (k, (sure, doubts)) in promises.counted.iter().enumerate() {
        let told = connection.must(&format!("SELECT n FROM crash.counters WHERE k = {k}"))?;
        let n = told
            .pointer("/rows/0/0")
            .and_then(|c| c.as_str())
            .and_then(crate::raw::unhex)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, i64::from_be_bytes);
        if n < *sure || n > sure + doubts {
            lost.push(format!("counter {k} is {n}: {sure} acknowledged, {doubts} in doubt"));
        }
    }
    Ok(())
}

fn batches(
    connection: &mut Connection,
    promises: &Promises,
    cycle: i32,
    kept: Kept,
    lost: &mut Vec<String>,
) -> Outcome<()> {
    for batches in promises.batches.iter().filter(|batches| batches.cycle == cycle) {
        let writer = batches.writer;
        let mut seqs = |table: &str| -> Outcome<BTreeSet<i32>> {
            let text = format!("SELECT seq FROM crash.{table} WHERE cycle = {cycle} AND writer = {writer}");
            Ok(all_rows(connection, &text)?
                .iter()
                .filter_map(|row| int(row.get(0)))
                .collect())
        };
        let (one, two) = (seqs("one")?, seqs("two")?);
        for seq in one.symmetric_difference(&two) {
            lost.push(format!("batch {cycle}/{writer}/{seq} is half there"));
        }
        let last = one.last().copied().unwrap_or(-1);
        for (seq, at) in batches.acknowledged.iter().filter(|(seq, _)| !one.contains(seq)) {
            if kept.must_hold(at, &batches.acknowledged) || seq < last {
                lost.push(format!("batch {cycle}/{writer}/{seq} is lost"));
            }
        }
        for seq in one.iter().filter(|seq| **seq >= batches.sent) {
            lost.push(format!("batch {cycle}/{writer}/{seq} was never sent"));
        }
    }
    Ok(())
}
