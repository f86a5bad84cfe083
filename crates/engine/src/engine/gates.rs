//! Every check of a request, in the order in which requests pass them. A new check is a line in its phase. Checks made
//! before there is a command (phases 1 and 2, and those on the plan in phase 3) are in `cql::gates`.
//!
//! ```text
//! phase          decides by                      SELECT                  INSERT UPDATE DELETE BATCH     TRUNCATE            schema changes
//! 1 names        catalog, names, markers         `names`, then the planner, then `values`
//! 2 permissions  the plan, before any value      `permissions`
//! 3 bound        values, options, levels         `read_plan`, bind,      bind, [`members`],         [`truncate`]        `change`
//!                                                `sorted_whole`,         [`route`] each, [`write`]
//!                                                [`read`]
//! 4 admission    the fault plan, budgets;        [`admit_answer`],       [`admit_write`]            [`admit_truncate`]  [`admit_change`]
//!                may wait                        [`admit_read`]
//! 5 staged       sizes, once they are known      the sink: tombstones,   [`lifetime`], row size,
//!                                                memory                  [`staged`], [`commit`]
//! 6 afterwards   what was decided before,                                [`planned_failure`]
//!                although the work was done
//! ```
//! A phase never uses the results of a later one, so a request that fails early costs little. Each check is a static
//! call that decides by its arguments. Its mechanism (a threshold, a budget, a replica set) lives in its own file and
//! does not depend on the order.
//!
//! The size of a row ([`SizeLimits::check_row`]) is checked by the part that merges it. Not here: the planner refuses by names and types alone, a conditional write by the rows that it reads
//! (`write::condition`), and a store by the row that it merges into (`storage::check_row_bytes`).

mod nearest;

use std::sync::Arc;

use super::refusal::LevelRefusal;

use super::admission::{Admission, Concerned, Work};
use super::catalog::Catalog;
use super::error::Error;
use super::failure::FailureCause;
use super::fault_injection::{self, FaultInjector};
use super::levels;
use super::limits::{SizeLimits, refuse_overflow};
use super::logical::{Admitted, LogicalPartitions, Weight};
use super::part::write::size::BatchSize;
use super::targets;
use crate::engine::terms::request::Request;
use crate::engine::terms::room::Room;
use crate::engine::terms::write::{Routed, WriteRequest};
use crate::partition::{Nodes, ReadView, TablePartitions};
use helenus_schema::command::{Batch, Partitions, Position, Read, Write, WriteVerb};
use helenus_schema::guardrails::{Guardrails, Threshold};
use helenus_schema::profile::Rules;
use helenus_schema::schema::{Table, system};
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

/// The services and settings that checks consult.
#[derive(Clone, Copy)]
pub(super) struct Gates<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) limits: &'a SizeLimits,
    pub(super) guardrails: &'a Guardrails,
    pub(super) rules: &'a Rules,
    pub(super) nodes: &'a Nodes,
    pub(super) admission: &'a Admission,
    /// Whether the disk has less free space than its reserve.
    pub(super) is_disk_short: bool,
}

// 3. Bound: values and options of the request.

/// The options of a read that passed its checks.
pub(super) struct ReadPass {
    /// Rows of its page; `None` means all in one page.
    pub(super) page_rows: Option<u32>,
}

/// Checks a read for which the client requests pages of `page_rows` rows.
pub(super) fn read(
    gates: Gates<'_>,
    request: &Request<'_>,
    read: &Read,
    page_rows: Option<u32>,
    warnings: &mut Vec<String>,
) -> Result<ReadPass, Error> {
    let asked = request.consistency();
    levels::refuse_node_local(asked)?;
    let consistency = levels::read(gates.rules, asked, system::is_local(&read.table.keyspace))?;
    gates.guardrails.level(asked.name(), false, warnings)?;
    let mut page_rows = page_rows.filter(|rows| *rows > 0 && !read.is_one_group());
    if read.nearest.is_some() {
        nearest::check(read, asked, page_rows, warnings)?;
        page_rows = None;
    }
    gates.guardrails.select(read, page_rows, warnings)?;
    serial_of_one_partition(read, consistency, page_rows)?;
    Ok(ReadPass { page_rows })
}

/// Cassandra's `SelectStatement.execute` lets a pager read several partitions at SERIAL, one after the other.
fn serial_of_one_partition(select: &Read, consistency: Consistency, page_rows: Option<u32>) -> Result<(), Error> {
    let is_paged = page_rows.is_some_and(|rows| select.limit_rows.is_none_or(|limit| limit > rows));
    if let Partitions::Keys(keys) = &select.partitions
        && keys.len() > 1
        && consistency.is_serial()
        && !is_paged
        && select.selection.aggregates.is_empty()
    {
        return Err(LevelRefusal::SerialOfSeveral.into());
    }
    Ok(())
}

/// Checks the number of members of a bound batch.
pub(super) fn members(gates: Gates<'_>, batch: &Batch) -> Result<(), Error> {
    gates.limits.check_operations(batch.modifications.len())
}

/// Checks the keys of a bound modification and finds the partition of its rows.
pub(super) fn route<'a>(
    gates: Gates<'_>,
    request: &'a Request<'_>,
    modification: &'a Write,
) -> Result<Routed<'a>, Error> {
    gates.limits.check_partition_keys(&modification.partition_keys)?;
    gates.catalog.refuse_in_doubt(request.consistency())?;
    let partitions = request.snapshot.partitions(&modification.table);
    Ok(Routed {
        modification,
        partitions: partitions.map_err(|missing| refuse_system(&modification.table).err().unwrap_or(missing))?,
    })
}

/// Checks the level of a counter that is written alone. Not of batches: Cassandra writes counters in a batch at ANY and SERIAL.
pub(super) fn counter(gates: Gates<'_>, request: &Request<'_>, table: &Table) -> Result<(), Error> {
    if !table.is_counter {
        return Ok(());
    }
    levels::refuse_node_local(request.consistency())?;
    levels::counter(levels::write(gates.rules, request.consistency()), table)
}

/// Checks all modifications of a request together; `table` is one of their tables, a counter table if there is one.
pub(super) fn write(
    gates: Gates<'_>,
    request: &Request<'_>,
    routed: &[Routed<'_>],
    write_kind: WriteKind,
    table: &Table,
    warnings: &mut Vec<String>,
) -> Result<WriteRequest, Error> {
    levels::refuse_node_local(request.consistency())?;
    let consistency = levels::write(gates.rules, request.consistency());
    if write_kind == WriteKind::Cas {
        levels::conditional(request, consistency, table)?;
    }
    if write_kind == WriteKind::Simple {
        // Not batches: Cassandra writes a batch without conditions at SERIAL.
        levels::unconditional(consistency)?;
    }
    for one in routed {
        gates
            .guardrails
            .modification(one.modification, request.at_micros, warnings)?;
    }
    gates.guardrails.level(request.consistency().name(), true, warnings)?;
    Ok(WriteRequest {
        timestamp_micros: request.terms.timestamp_micros,
        now_seconds: request.now_seconds,
        consistency,
        serial_consistency: request.terms.serial_consistency.unwrap_or(Consistency::Serial),
        write_kind,
    })
}

/// Refuses writes to tables that the server itself fills; they have no partitions.
///
/// # Errors
/// [`Error::NotModifiable`], [`Error::TableNotModifiable`].
pub fn refuse_system(table: &Table) -> Result<(), Error> {
    if system::is_local(&table.keyspace) {
        return Err(Error::NotModifiable {
            keyspace: table.keyspace.clone(),
        });
    }
    if system::is_computed(table) {
        return Err(Error::TableNotModifiable {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
        });
    }
    Ok(())
}

/// Checks a TRUNCATE.
pub(super) fn truncate(gates: Gates<'_>, table: &Table) -> Result<(), Error> {
    refuse_system(table)?;
    Ok(gates.guardrails.truncate()?)
}

// 4. Admission: may wait.

/// Admits the answer of a SELECT: the budget of reads of the schema, and memory where the answer is known to be large.
pub(super) async fn admit_answer(
    gates: Gates<'_>,
    request: &Request<'_>,
    select: &Read,
    content_bytes_ahead: usize,
    room: &mut Room<'_>,
) -> Result<(), Error> {
    if select.table.keyspace == "system_schema" {
        gates.admission.admit_metadata(request, Work::Read).await?;
    }
    room.need(content_bytes_ahead, 0)
}

/// Admits a SELECT: the fault plan and its replicas, then request units. Returns the moments at which it reads its
/// stores.
pub(super) async fn admit_read(
    gates: Gates<'_>,
    request: &Request<'_>,
    select: &Read,
    partitions: &TablePartitions,
    resume: Option<&Position>,
) -> Result<ReadView, Error> {
    let view = if gates.nodes.is_quiet_at(request.consistency()) {
        ReadView::default()
    } else {
        // Boxed, since it is rare and would make every request's future larger.
        Box::pin(disturbance(gates).inject_read_fault(request, select, partitions)).await?
    };
    let mut concerned = Concerned::default();
    concerned.add(&select.table, partitions, || {
        targets::ahead(partitions, select, resume).map(|partition| partition.id.0)
    });
    gates.admission.admit(request, concerned, Work::Read).await?;
    Ok(view)
}

/// Admits a write: the disk's reserve, the fault plan and replicas, then request units of all physical partitions that
/// it writes. Returns the fault plan's answer for after the write ([`planned_failure`]).
pub(super) async fn admit_write(
    gates: Gates<'_>,
    request: &Request<'_>,
    routed: &[Routed<'_>],
    write: &WriteRequest,
) -> Result<Option<Error>, Error> {
    if gates.is_disk_short {
        keep_reserve(routed, write)?;
    }
    let planned_failure = if gates.nodes.is_quiet_at(write.consistency) {
        None
    } else {
        Box::pin(disturbance(gates).inject_write_fault(request, routed, write)).await?
    };
    let mut concerned = Concerned::default();
    for one in routed {
        concerned.add(&one.modification.table, one.partitions, || {
            let keys = one.modification.partition_keys.iter();
            keys.map(|key| one.partitions.place(key).1.id.0)
        });
    }
    let work = Work::Write(write.write_kind);
    gates.admission.admit(request, concerned, work).await?;
    Ok(planned_failure)
}

/// Refuses all but deletions on a disk with less free space than its reserve.
#[cold]
fn keep_reserve(routed: &[Routed<'_>], write: &WriteRequest) -> Result<(), Error> {
    if routed.iter().all(|one| one.modification.kind == WriteVerb::Delete) {
        return Ok(());
    }
    Err(Error::WriteFailure {
        consistency: write.consistency,
        write_kind: write.write_kind,
        cause: FailureCause::DiskReserve,
    })
}

/// Admits a TRUNCATE: the budget of changes, then every replica, as in Cassandra.
pub(super) async fn admit_truncate(gates: Gates<'_>, request: &Request<'_>, table: &Table) -> Result<(), Error> {
    admit_change(gates, request).await?;
    // The server's own tables have no partitions; the truncation itself refuses them.
    match request.snapshot.partitions(table) {
        Ok(partitions) => disturbance(gates).admit_truncate(table, partitions),
        Err(_) => Ok(()),
    }
}

/// Admits a change of the schema: its budget.
pub(super) async fn admit_change(gates: Gates<'_>, request: &Request<'_>) -> Result<(), Error> {
    let work = Work::Write(WriteKind::Simple);
    gates.admission.admit_metadata(request, work).await
}

const fn disturbance(gates: Gates<'_>) -> FaultInjector<'_> {
    FaultInjector {
        nodes: gates.nodes,
        catalog: gates.catalog,
        rules: gates.rules,
    }
}

// 5. Staged: sizes are known. The write holds its locks, if it needs any, and the latches of its physical partitions.

/// Checks that enough replicas are alive, before the reads of a condition and again before the commit.
pub(super) fn replicas(nodes: &Nodes, modifications: &[Routed<'_>], request: &WriteRequest) -> Result<(), Error> {
    fault_injection::admit_writes(nodes, modifications, request)
}

/// Checks the lifetime of written cells.
pub(super) fn lifetime(limits: &SizeLimits, table: &Table, ttl_seconds: u32, now_seconds: i64) -> Result<(), Error> {
    limits.check_ttl(ttl_seconds)?;
    refuse_overflow(table, ttl_seconds, now_seconds)
}

/// Checks all modifications of a request without conditions. Returns a warning about a large batch. `size` is the
/// measured batch.
pub(super) fn staged(
    nodes: &Nodes,
    modifications: &[Routed<'_>],
    request: &WriteRequest,
    size: Option<(&Threshold, BatchSize)>,
) -> Result<Option<String>, Error> {
    let warning = match size {
        Some((threshold, size)) => {
            let modifications: Vec<_> = modifications.iter().map(|routed| routed.modification).collect();
            size.check(threshold, &modifications)?
        }
        None => None,
    };
    replicas(nodes, modifications, request)?;
    Ok(warning)
}

/// Checks the bytes of a request about to be committed, then those of each logical partition. The result lives until
/// the commit.
pub(super) async fn commit(
    limits: &SizeLimits,
    logical: &Arc<LogicalPartitions>,
    weights: &[Weight],
    request: &WriteRequest,
) -> Result<Admitted, Error> {
    let bytes = weights.iter().map(|weight| weight.row_bytes).sum();
    limits.check_request(bytes, request.consistency, request.write_kind)?;
    logical.admit(weights, request.now_seconds).await
}

// 6. Afterwards.

/// The error that the fault plan returns for a write although it was executed.
pub(super) fn planned_failure(planned: Option<Error>) -> Result<(), Error> {
    planned.map_or(Ok(()), Err)
}
