//! The full fidelity feed of the same table, read by `helenus feed --full` after each kill, from the position before it on.
//!
//! - The row before each change is the row after the change before it: so none is missing between them.
//! - The last one leaves what the table holds. Records are taken in their order, whatever their timestamps: those of a batch that is
//!   written again after a kill change nothing.
//! - Each value whose writer was told that it is there has a record, and no record has a value that nobody wrote.
//!
//! Negative control: a reader that ignores one record of a row that has a later one must differ.

use super::{History, Key};
use crate::launch::Launch;
use crate::{Error, Outcome, server, through};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A reader over all cycles.
#[derive(Debug, Default)]
pub(super) struct Log {
    position: Option<String>,
    /// What the records leave of each row.
    rows: BTreeMap<Key, i64>,
    /// Every value that a record has.
    values: BTreeSet<(Key, i64)>,
    pub(super) records: u64,
    pub(super) deletions: u64,
    differences: Vec<String>,
    /// What the same records leave for a reader that ignores one of them.
    control: BTreeMap<Key, i64>,
    has_ignored: bool,
    control_differs: bool,
}

impl Log {
    /// Reads to the end, and compares with the rows and with what the writers were told. Not of a fleet, which refuses it.
    pub(super) fn follow(
        &mut self,
        launch: &Launch,
        stored: &BTreeMap<Key, i64>,
        histories: &[History],
        differences: &mut Vec<String>,
    ) -> Outcome<()> {
        if through::is_fleet() {
            return Ok(());
        }
        let from = self.position.clone().unwrap_or_else(|| "start".to_owned());
        let mut command = Command::new(server::program()?);
        command.args(["feed", "feed.t", "--full", "--data", &launch.data, "--from", &from]);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(Error::failed(format!(
                "helenus feed --full ended with {}: {error}",
                output.status
            )));
        }
        for line in text.lines() {
            let record: Value =
                serde_json::from_str(line).map_err(|_| Error::Malformed("a record of the full feed"))?;
            self.take(&record)
                .ok_or(Error::Malformed("a record of the full feed"))?;
        }
        let mut keys = self.rows.keys().chain(stored.keys());
        if let Some(key) = keys.find(|key| self.rows.get(key) != stored.get(key)) {
            self.differences.push(format!(
                "the records of the full feed leave {} rows, the table has {}; row {key:?} is {:?} there, {:?} here",
                self.rows.len(),
                stored.len(),
                self.rows.get(key),
                stored.get(key)
            ));
        }
        self.control_differs |= self.control != *stored;
        for history in histories {
            let missing = history.acknowledged.iter().find(|value| !self.values.contains(value));
            if let Some((key, value)) = missing {
                self.differences.push(format!(
                    "the full feed lacks value {value} of row {key:?}, which was acknowledged"
                ));
            }
        }
        let highest = histories.iter().map(|history| history.next).max().unwrap_or_default();
        if let Some((key, value)) = self.values.iter().find(|(_, value)| *value > highest) {
            self.differences.push(format!(
                "the full feed has value {value} of row {key:?}, which nobody wrote"
            ));
        }
        differences.append(&mut self.differences);
        Ok(())
    }

    /// Whether the control was caught.
    pub(super) fn has_proof(&self) -> bool {
        through::is_fleet() || self.control_differs && self.deletions > 0
    }

    fn take(&mut self, record: &Value) -> Option<()> {
        let metadata = record.get("metadata")?;
        let key = metadata.get("key")?;
        let int = |name: &str| i32::try_from(key.get(name)?.as_i64()?).ok();
        let k = int("k")?;
        self.position = Some(record.get("position")?.as_str()?.to_owned());
        self.records += 1;
        if metadata.get("of")?.as_str()? == "partition" {
            self.deletions += 1;
            self.rows.retain(|(of, _), _| *of != k);
            self.control.retain(|(of, _), _| *of != k);
            return Some(());
        }
        let row: Key = (k, int("c")?);
        let image = |name: &str| -> Option<Option<i64>> {
            match record.get(name) {
                None => Some(None),
                Some(image) => {
                    let (v, w) = (image.get("v")?.as_i64()?, image.get("w")?.as_i64()?);
                    (v == w).then_some(Some(v))
                }
            }
        };
        let (previous, current) = (image("previous")?, image("current")?);
        if previous != self.rows.get(&row).copied() {
            self.differences.push(format!(
                "record {} of the full feed has {previous:?} before it in row {row:?}, the record before left {:?}",
                self.records,
                self.rows.get(&row)
            ));
        }
        let put = |rows: &mut BTreeMap<Key, i64>| match current {
            Some(value) => drop(rows.insert(row, value)),
            None => drop(rows.remove(&row)),
        };
        put(&mut self.rows);
        // The control ignores the first replacement.
        if !self.has_ignored && previous.is_some() && current.is_some() && previous != current {
            self.has_ignored = true;
            self.control_differs |= self.control.get(&row).copied() != current;
        } else {
            put(&mut self.control);
        }
        if let Some(value) = current {
            self.values.insert((row, value));
        } else {
            self.deletions += 1;
        }
        Some(())
    }
}
