//! What has to hold after a start.

use super::{Promises, all_rows, int, row_value};
use crate::raw::{Connection, hex};
use crate::{Error, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Checks everything; rows and batches only of `cycle`. What is wrong is added to `lost`.
pub(super) fn all(connection: &mut Connection, promises: &Promises, cycle: i32, lost: &mut Vec<String>) -> Outcome<()> {
    rows(connection, promises, cycle, lost)?;
    register(connection, promises, lost)?;
    counters(connection, promises, lost)?;
    batches(connection, promises, cycle, lost)
}

fn rows(connection: &mut Connection, promises: &Promises, cycle: i32, lost: &mut Vec<String>) -> Outcome<()> {
    for (_, writer, acknowledged) in promises.rows.iter().filter(|(c, _, _)| *c == cycle) {
        let text = format!("SELECT seq, v FROM crash.rows WHERE cycle = {cycle} AND writer = {writer}");
        let found = all_rows(connection, &text)?
            .iter()
            .filter_map(|row| Some((int(row.get(0))?, row.get(1)?.as_str()?.to_owned())))
            .collect::<BTreeMap<_, _>>();
        for seq in 0..*acknowledged {
            match found.get(&seq) {
                None => lost.push(format!("row {cycle}/{writer}/{seq} is lost")),
                Some(v) if *v != hex(&row_value(cycle, *writer, seq)) => {
                    lost.push(format!("row {cycle}/{writer}/{seq} has another value"));
                }
                Some(_) => {}
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

fn batches(connection: &mut Connection, promises: &Promises, cycle: i32, lost: &mut Vec<String>) -> Outcome<()> {
    for (_, writer, acknowledged, sent) in promises.batches.iter().filter(|(c, _, _, _)| *c == cycle) {
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
        for seq in (0..*acknowledged).filter(|seq| !one.contains(seq)) {
            lost.push(format!("batch {cycle}/{writer}/{seq} is lost"));
        }
        for seq in one.iter().filter(|seq| **seq >= *sent) {
            lost.push(format!("batch {cycle}/{writer}/{seq} was never sent"));
        }
    }
    Ok(())
}
