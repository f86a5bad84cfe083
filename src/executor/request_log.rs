//! The request log: what the last statements of users were charged, under the names of Cosmos's `CDBCassandraRequests`.
//!
//! ```text
//! settle ── add ─→ slots[number mod max]      each slot has a lock of its own, which nobody holds for long
//!                  number rises by one for each
//! ```
//! **Bound.** As many entries as the setting says; an entry keeps the plan of a text of at most 2 KiB, or the beginning of a longer one.
//! Values are not shown: a text's constants are taken out when the log is read ([`super::shape`]), and bound ones are not kept.
//! Deliberately absent: statements on system keyspaces, which drivers send all the time, and texts that could not be planned.
//!
//! Source: Azure Monitor's table reference, CDBCassandraRequests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use md5::{Digest, Md5};
use uuid::Uuid;

use super::answer::AnswerKind;
use super::database::{Database, Request};
use super::error::Error;
use super::figures::kind_of;
use super::plans::PlannedAt;
use super::settle::Done;
use super::shape::shape;
use super::throughput::Asked as Waited;
use super::{Answer, answer::QueryParams};
use crate::metrics::StatementKind;
use crate::schema::node::LoggedRequest;
use crate::schema::{Table, system};
use crate::throughput::{Charges, RequestUnits};

/// Longer texts are cut.
const TEXT_BYTES_MAX: usize = 2048;

/// What was asked for.
#[derive(Debug)]
enum Asked {
    Plan(Arc<PlannedAt>),
    /// The beginning of a long text.
    Text(Option<Arc<Table>>, StatementKind, String),
    /// Statements in a batch that came as a message.
    Batch(Option<Arc<Table>>, usize),
}

#[derive(Debug)]
struct Entry {
    number: u64,
    asked: Asked,
    at_micros: i64,
    duration: Duration,
    error_code: i32,
    charge: RequestUnits,
    client: Option<SocketAddr>,
    user: Option<Arc<str>>,
    request_bytes: usize,
    response_bytes: usize,
    /// How long it waited in the server for its units, if it had to.
    delay: Option<Duration>,
}

/// The last statements.
#[derive(Debug)]
pub(super) struct RequestLog {
    slots: Vec<Mutex<Option<Entry>>>,
    next: AtomicU64,
}

impl RequestLog {
    /// Keeps so many; 0: none.
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            slots: (0..entries_max).map(|_| Mutex::new(None)).collect(),
            next: AtomicU64::new(0),
        }
    }

    fn put(&self, entry: impl FnOnce(u64) -> Entry) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = number % self.slots.len().max(1) as u64;
        let slot = usize::try_from(place).ok().and_then(|place| self.slots.get(place));
        if let Some(slot) = slot {
            let before = slot
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .replace(entry(number));
            // Freed without the lock.
            drop(before);
        }
    }
}

/// What was asked for; `None`: nothing that the log is for.
fn asked(done: Done<'_>) -> Option<Asked> {
    let is_users = |table: &Arc<Table>| !system::is_name(&table.keyspace);
    match done {
        Done::Statement(planned) => {
            let tables = &planned.planned.tables;
            if !tables.is_empty() && !tables.iter().any(is_users) {
                return None;
            }
            if planned.text.len() <= TEXT_BYTES_MAX {
                return Some(Asked::Plan(Arc::clone(planned)));
            }
            let cut = (0..=TEXT_BYTES_MAX).rev().find(|at| planned.text.is_char_boundary(*at));
            let text = planned.text.get(..cut.unwrap_or(0)).unwrap_or_default().to_owned();
            Some(Asked::Text(
                tables.first().cloned(),
                kind_of(&planned.planned.plan),
                text,
            ))
        }
        Done::Batch(batch) => {
            let table = batch.modifications.first().map(|first| Arc::clone(&first.table));
            if table.as_ref().is_some_and(|table| !is_users(table)) {
                return None;
            }
            Some(Asked::Batch(table, batch.modifications.len()))
        }
    }
}

impl Asked {
    fn table(&self) -> Option<&Arc<Table>> {
        match self {
            Self::Plan(planned) => planned.planned.tables.first(),
            Self::Text(table, ..) | Self::Batch(table, _) => table.as_ref(),
        }
    }

    fn kind(&self) -> StatementKind {
        match self {
            Self::Plan(planned) => kind_of(&planned.planned.plan),
            Self::Text(_, kind, _) => *kind,
            Self::Batch(..) => StatementKind::Batch,
        }
    }

    fn shape(&self) -> String {
        match self {
            Self::Plan(planned) => shape(&planned.text),
            Self::Text(_, _, text) => format!("{} …", shape(text)),
            Self::Batch(_, count) => format!("BATCH of {count}"),
        }
    }
}

impl Database {
    /// Puts a statement into the log.
    pub(super) fn log_request(
        &self,
        request: &Request<'_>,
        done: Done<'_>,
        charges: &Charges,
        outcome: &Result<Answer, Error>,
    ) {
        let log = self.request_log();
        if log.slots.is_empty() {
            return;
        }
        let Some(asked) = asked(done) else { return };
        let (error_code, response_bytes) = match outcome {
            Ok(answer) => match &answer.kind {
                AnswerKind::Rows(rows) => (-1, rows.content.len()),
                _ => (-1, 0),
            },
            Err(error) => (i32::from(error.code()), 0),
        };
        let (session, began) = (request.session(), request.began());
        let QueryParams { request_bytes, .. } = request.params();
        log.put(|number| Entry {
            number,
            asked,
            at_micros: request.at_micros(),
            duration: self.watch().clock().monotonic().saturating_sub(began),
            error_code,
            charge: charges.total(),
            client: session.client,
            user: session.user.clone(),
            request_bytes: *request_bytes,
            response_bytes,
            delay: request.asked.get().and_then(Waited::delay),
        });
    }

    /// The log, oldest first.
    pub(super) fn logged_requests(&self) -> Vec<LoggedRequest> {
        let host = self.node().host_id;
        let shown = |entry: &Entry| LoggedRequest {
            number: entry.number,
            activity_id: activity_id(host, entry.number),
            address: entry.client,
            table: entry
                .asked
                .table()
                .map(|table| (table.keyspace.clone(), table.name.clone())),
            operation: entry.asked.kind().name(),
            command: entry.asked.shape(),
            duration_ms: entry.duration.as_secs_f64() * 1000.0,
            error_code: entry.error_code,
            request_charge: entry.charge.as_f64(),
            request_bytes: entry.request_bytes as u64,
            response_bytes: entry.response_bytes as u64,
            user: entry.user.as_deref().map(str::to_owned),
            at_millis: entry.at_micros.div_euclid(1000),
            delay_ms: entry.delay.map(|delay| delay.as_secs_f64() * 1000.0),
        };
        let slots = self.request_log().slots.iter();
        let mut logged: Vec<LoggedRequest> = slots
            .filter_map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(shown))
            .collect();
        logged.sort_by_key(|entry| entry.number);
        logged
    }
}

/// A uuid of an entry, the same whenever it is asked for.
fn activity_id(host: Uuid, number: u64) -> Uuid {
    let mut digest = Md5::new();
    digest.update(host.as_bytes());
    digest.update(number.to_be_bytes());
    uuid::Builder::from_md5_bytes(digest.finalize().into()).into_uuid()
}
