//! The estimated charge and access path of a command, without executing it.
//!
//! **Sources of the estimate.** The store's counts of a table's rows and their average size; and the contents of the
//! named partitions and the entries of an index, walked up to [`COUNTED_MAX`]. Writes count as writes of new rows
//! (updates as changes). A limit counts as reached by the first rows scanned. The estimate does not affect the charge
//! of the request itself, which is exact.
//! charged exactly, whatever the estimate was.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::edge::storage_read;
use super::error::Error;
use super::index::Indexes;
use super::ledger::Ledger;
use super::part::choice;
use super::part::write::prices;
use super::read::count;
use super::read::sink::Limits;
use super::targets;
use crate::engine::terms::request::Request;
use crate::partition::{ReadView, TablePartitions};
use crate::throughput::{Charges, PartitionRef};
use helenus_schema::command::{Clustering, Condition, FeedStart, IndexUse, Partitions, Read, Write};
use helenus_schema::schema::{Table, system};

/// Rows or entries that are walked to count them.
const COUNTED_MAX: usize = 1000;

/// The access path of a read, and its price.
#[derive(Clone, Debug)]
pub struct ReadEstimate {
    /// The index that finds its rows.
    pub index: IndexUse,
    /// Its estimated charge.
    pub charges: Charges,
    /// Whether the charge may be higher, because the walk ended at its limit.
    pub at_least: bool,
    /// Whether rows are read by their whole keys, so that no cheaper path exists.
    pub looks_up: bool,
    /// Physical partitions that it would visit.
    pub visited: usize,
    /// Physical partitions of its table; 0 means that the server itself makes the rows.
    pub partitions: usize,
}

/// A count, exact or a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    number: u64,
    /// Whether the walk ended at its limit.
    at_least: bool,
}

/// Estimates commands.
#[derive(Clone, Copy)]
pub(super) struct Estimator<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) indexes: &'a Indexes,
}

impl Estimator<'_> {
    /// The access path and the price of a read; `limits` are those of its page.
    pub(super) async fn read(self, request: &Request<'_>, read: &Read, limits: &Limits) -> Result<ReadEstimate, Error> {
        if system::is_computed(&read.table) {
            let mut charges = self.ledger.estimated(request.consistency());
            charges.metadata();
            return Ok(ReadEstimate {
                index: IndexUse::None,
                charges,
                at_least: false,
                looks_up: read.looks_up(),
                visited: 0,
                partitions: 0,
            });
        }
        let partitions = request.served().partitions(&read.table)?;
        let index = if read.probes.is_empty() {
            IndexUse::None
        } else {
            choice::explain(self.indexes, partitions, read, limits.rows_wanted(read)).await?
        };
        let (charges, at_least) = self.charges(request, partitions, read, &index).await?;
        Ok(ReadEstimate {
            index,
            charges,
            at_least,
            looks_up: read.looks_up(),
            visited: targets::concerned(partitions, read).count(),
            partitions: partitions.all().len(),
        })
    }

    /// The charge of a read, and whether it may be higher because the walk ended at its limit.
    async fn charges(
        self,
        request: &Request<'_>,
        partitions: &TablePartitions,
        read: &Read,
        used: &IndexUse,
    ) -> Result<(Charges, bool), Error> {
        let table = read.table.as_ref();
        let mut charges = self.ledger.estimated(request.consistency());
        let visited: BTreeSet<u64> = targets::concerned(partitions, read)
            .map(|partition| partition.id.0)
            .collect();
        let size = partitions.bytes(table.storage_id);
        let row_bytes = size.bytes.checked_div(size.rows).unwrap_or(0);
        let row_bytes = usize::try_from(row_bytes).unwrap_or(usize::MAX);
        if read.looks_up() {
            let first = visited.first().copied();
            charges.enter(place(table, first.unwrap_or(0)), None);
            for _ in 0..rows_looked_up(read) {
                charges.lookup(row_bytes);
            }
            return Ok((charges, false));
        }
        for partition in &visited {
            charges.enter(place(table, *partition), None);
            charges.visit();
        }
        if read.is_full_fidelity || !matches!(read.feed, None | Some(FeedStart::Beginning)) {
            // How many changes there are is not known.
            return Ok((charges, true));
        }
        let count = match (used, &read.partitions) {
            (IndexUse::Used { index, .. }, _) => {
                let number = count::count(partitions, read, index, COUNTED_MAX).await?;
                Count {
                    number: number as u64,
                    at_least: number >= COUNTED_MAX,
                }
            }
            (_, Partitions::Keys(keys)) => count_rows(table, partitions, keys).await?,
            (_, Partitions::Ring(span)) => Count {
                number: span
                    .as_ref()
                    .map_or(0, |span| partitions.bytes_in(table.storage_id, span).rows),
                at_least: false,
            },
        };
        // With LIMIT a read may end early; with filters or groups its end is not known.
        let ends_early = read.filter.is_none() && read.group_by.is_none() && read.selection.aggregates.is_empty();
        let limit = read
            .limit_rows
            .filter(|_| ends_early && read.sort.is_empty() && read.nearest.is_none())
            .map(u64::from);
        let number = limit.map_or(count.number, |limit| limit.min(count.number));
        let scanned = number.saturating_mul(row_bytes as u64);
        charges.scan(usize::try_from(scanned).unwrap_or(usize::MAX));
        Ok((
            charges,
            count.at_least && limit.is_none_or(|limit| limit > count.number),
        ))
    }

    /// The charge of writes.
    pub(super) fn writes(self, request: &Request<'_>, writes: &[Write]) -> Result<Charges, Error> {
        let mut charges = self.ledger.estimated(request.consistency());
        for write in writes {
            estimate_write(request, write, &mut charges)?;
        }
        Ok(charges)
    }
}

/// Rows in logical partitions, static ones included.
async fn count_rows(table: &Table, partitions: &TablePartitions, keys: &[bytes::Bytes]) -> Result<Count, Error> {
    let (mut number, mut view) = (0, ReadView::default());
    for partition_key in keys {
        let (token, partition) = partitions.hosted(partition_key)?;
        let logical = partition.logical(table.storage_id, token, partition_key)?;
        let at = view.at(partition);
        let walked = logical.scan_all(&at, |_| {
            number += 1;
            if number < COUNTED_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        walked.await.map_err(|error| storage_read(&error))?;
        if number >= COUNTED_MAX {
            break;
        }
    }
    Ok(Count {
        number: number as u64,
        at_least: number >= COUNTED_MAX,
    })
}

const fn place(table: &Table, partition: u64) -> PartitionRef {
    PartitionRef {
        table: table.storage_id,
        partition,
    }
}

fn rows_looked_up(read: &Read) -> usize {
    let keys = match &read.partitions {
        Partitions::Keys(keys) => keys.len(),
        Partitions::Ring(_) => 0,
    };
    let rows = match &read.rows {
        Clustering::Keys(rows) => rows.len(),
        Clustering::All | Clustering::Ranges(_) => 1,
    };
    keys.saturating_mul(rows)
}

/// Adds the charge of one write.
fn estimate_write(request: &Request<'_>, write: &Write, charges: &mut Charges) -> Result<(), Error> {
    let partitions = request.served().partitions(&write.table)?;
    for partition_key in &write.partition_keys {
        let (token, partition) = partitions.place(partition_key);
        let key = (token.value(), partition_key);
        charges.enter(place(&write.table, partition.id.0), Some(key));
        if write.condition != Condition::Always {
            charges.look_before_write(0);
        }
        prices::estimate(write, partition_key, charges);
    }
    Ok(())
}
