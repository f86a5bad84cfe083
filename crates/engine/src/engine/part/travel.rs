//! For tests: parts through bytes, as if the physical partition lived on another machine.
//!
//! The command of a part is encoded and dropped; what is decoded is executed. A test switches it on for its thread
//! ([`through_bytes`]); the variable `HELENUS_THROUGH_BYTES` switches it on for every thread of a process. Servers do not
//! contain this module.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use super::part_read::PartRead;
use super::read::{self, Cut, ReadPart};
use super::reader::Scratch;
use super::receipt::{Receipt, Walked};
use super::rows::PartSink;
use super::walk::Probes;
use crate::engine::Error;
use crate::engine::row::layout::Layout;
use helenus_schema::command::ColumnMasks;
use helenus_schema::command::codec::{self, ReadRequest, TableName, Tables};
use helenus_schema::schema::Table;

static OF_PROCESS: LazyLock<bool> = LazyLock::new(|| std::env::var_os("HELENUS_THROUGH_BYTES").is_some());

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static SENT: Cell<u64> = const { Cell::new(0) };
}

/// Sends every message of this thread through bytes from now on, or none unless the variable says so.
pub fn through_bytes(is_on: bool) {
    ON.set(is_on);
}

/// How many messages this thread has sent through bytes.
#[must_use]
pub fn messages_sent() -> u64 {
    SENT.get()
}

pub(in crate::engine) fn is_on() -> bool {
    ON.get() || *OF_PROCESS
}

pub(in crate::engine) fn count_message() {
    SENT.set(SENT.get() + 1);
}

/// The tables of a command, as if its receiver had the same.
pub(in crate::engine) struct SameTables {
    pub(in crate::engine) tables: Vec<Arc<Table>>,
    pub(in crate::engine) masks: Option<Arc<ColumnMasks>>,
}

impl Tables for SameTables {
    fn table(&self, name: &TableName) -> Option<Arc<Table>> {
        self.tables.iter().find(|table| TableName::of(table) == *name).cloned()
    }

    fn masks(&self, _: &Arc<Table>) -> Option<Arc<ColumnMasks>> {
        self.masks.clone()
    }
}

/// As [`read::run_part`], of the decoded message.
pub(crate) async fn run_part<'a>(
    bound: &PartRead<'a>,
    part: &ReadPart<'_, 'a>,
    scratch: &mut Scratch<'_>,
    rows: &mut impl PartSink,
) -> Receipt<'a> {
    if !is_on() {
        return read::run_part(bound, part, scratch, rows).await;
    }
    match sent(bound, part) {
        Ok(request) => Box::pin(run(&request, bound, part, scratch, rows)).await,
        Err(error) => Receipt {
            ended: Err(error),
            rows: 0,
            walked: Walked::default(),
            charged_micros: 0,
            index: None,
        },
    }
}

/// The part as its owner decodes it.
fn sent(bound: &PartRead<'_>, part: &ReadPart<'_, '_>) -> Result<ReadRequest, Error> {
    let cut = match part.cut {
        Cut::Key(_, key) => codec::Cut::Key(key.clone()),
        Cut::Span(span) => codec::Cut::Span(span.clone()),
    };
    let request = ReadRequest {
        probes: part.probes.map(Probes::usable).unwrap_or_default(),
        resume: part.resume.cloned(),
        is_first: part.is_first,
        rows_wanted: part.rows_wanted.and_then(|rows| u64::try_from(rows).ok()),
        tombstones_before: part.tombstones_before,
        tombstones_max: bound.tombstones_max,
        ..ReadRequest::of(bound.read, cut, bound.now_seconds)
    };
    let message = request.encode().map_err(|error| Error::Fault(error.to_string()))?;
    drop(request);
    count_message();
    let tables = SameTables {
        tables: vec![Arc::clone(&bound.read.table)],
        masks: None,
    };
    ReadRequest::decode(&message, &tables).map_err(|error| Error::Fault(error.to_string()))
}

/// Executes a message. Of the original it takes what the owner has: the host, the snapshot, the indexes and the buffers.
async fn run<'a>(
    request: &ReadRequest,
    original: &PartRead<'a>,
    of: &ReadPart<'_, 'a>,
    scratch: &mut Scratch<'_>,
    rows: &mut impl PartSink,
) -> Receipt<'a> {
    let read = request.to_read();
    let layout = Layout::new(&read.table, request.needed.iter().copied(), request.needs_metadata);
    let probes = of.probes.map(|probes| probes.of(&read));
    let bound = PartRead {
        read: &read,
        layout: &layout,
        context: original.context,
        now_seconds: request.now_seconds,
        tombstones_max: request.tombstones_max,
    };
    let part = ReadPart {
        partition: of.partition,
        cut: match &request.cut {
            codec::Cut::Key(key) => Cut::Key(of.partition.token(key), key),
            codec::Cut::Span(span) => Cut::Span(span),
        },
        resume: request.resume.as_ref(),
        is_first: request.is_first,
        at: of.at,
        probes: probes.as_ref(),
        rows_wanted: request.rows_wanted.and_then(|rows| usize::try_from(rows).ok()),
        tombstones_before: request.tombstones_before,
    };
    let receipt = read::run_part(&bound, &part, scratch, rows).await;
    let index = receipt.index.and_then(|name| {
        let mut planned = original.read.probes.iter();
        planned.find(|probe| probe.index == name)
    });
    Receipt {
        ended: receipt.ended,
        rows: receipt.rows,
        walked: receipt.walked,
        charged_micros: receipt.charged_micros,
        index: index.map(|probe| probe.index.as_str()),
    }
}
