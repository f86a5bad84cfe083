//! The request log: what the last statements of users were charged, under the names of Cosmos's `CDBCassandraRequests`.
//!
//! ```text
//! meter ── Page::add ─→ page of a turn ── put ─→ entries and headings, one lock a turn        number rises by one for each
//! ```
//! **Bound.** As many entries as the setting says. Those of one turn of a connection ([`crate::metrics::turn`]) stand below one heading,
//! which keeps the plans of texts of at most 2 KiB, or the beginnings of longer ones.
//! Values are not shown: a text's constants are taken out when the log is read ([`super::shape`]), and bound ones are not kept.
//! Deliberately absent: statements on system keyspaces, which drivers send all the time, and texts that could not be planned.
//!
//! Source: Azure Monitor's table reference, CDBCassandraRequests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU32;
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
use super::{Answer, SessionState};
use crate::metrics::StatementKind;
use crate::schema::node::LoggedRequest;
use crate::schema::{Table, system};
use crate::throughput::RequestUnits;

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

/// A statement. Small, since every statement writes one and throws another out.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at_micros: i64,
    /// By the monotonic clock.
    began_nanos: u64,
    charge: RequestUnits,
    request_bytes: u32,
    response_bytes: u32,
    /// How long it waited in the server for its units, if it had to; of no use beyond an hour.
    delay_micros: Option<NonZeroU32>,
    /// [`NO_ERROR`]: none.
    error_code: u16,
    /// Which of its heading's.
    asked: u8,
}

/// In place of an error's code: no error has this one.
const NO_ERROR: u16 = u16::MAX;

/// What the statements of a turn have in common.
#[derive(Debug, Default)]
struct Heading {
    client: Option<SocketAddr>,
    user: Option<Arc<str>>,
    /// What they asked for; most turns ask for one thing, which takes no list.
    asked: Option<Asked>,
    asked_more: Vec<Asked>,
}

/// Different things asked for below one heading.
const ASKED_MAX: usize = 16;

/// Statements below one heading.
const ENTRIES_MAX: usize = 256;

/// What a turn adds to the log.
#[derive(Debug, Default)]
pub(super) struct Page {
    heading: Heading,
    entries: Vec<Entry>,
    /// The address of the session that asked last: a turn has one, so it is rarely compared further.
    session: usize,
    /// The address of the plan at place 0 of what was asked for; 0: there is none.
    plan: usize,
}

#[derive(Debug)]
struct Turn {
    heading: Heading,
    ended: Duration,
    /// The number of its first entry.
    first: u64,
    /// How many of its entries are left.
    entries: usize,
}

/// The last statements.
#[derive(Debug)]
pub(super) struct RequestLog {
    entries_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    turns: VecDeque<Turn>,
    /// Theirs, in the same order.
    entries: VecDeque<Entry>,
    next: u64,
}

impl RequestLog {
    /// Keeps so many; 0: none.
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            entries_max,
            kept: Mutex::default(),
        }
    }

    /// Whether anything is kept.
    pub(super) const fn is_on(&self) -> bool {
        self.entries_max > 0
    }

    /// Takes what is on a page, which is empty then.
    pub(super) fn put(&self, page: &mut Page, ended: Duration) {
        if page.entries.is_empty() {
            return;
        }
        let heading = std::mem::take(&mut page.heading);
        page.plan = 0;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let count = page.entries.len();
        let turn = Turn {
            heading,
            ended,
            first: kept.next,
            entries: count,
        };
        kept.next += count as u64;
        kept.turns.push_back(turn);
        kept.entries.extend(&page.entries);
        let old = kept.forget(self.entries_max);
        drop(kept);
        page.entries.clear();
        // Freed without the lock.
        drop(old);
    }
}

impl Kept {
    /// Forgets entries beyond this number, the oldest first; gives the headings that have none left, and of several the last alone.
    fn forget(&mut self, entries_max: usize) -> Option<Turn> {
        let mut beyond = self.entries.len().saturating_sub(entries_max);
        self.entries.drain(..beyond);
        let mut old = None;
        while beyond > 0 {
            let turn = self.turns.front_mut()?;
            if turn.entries > beyond {
                turn.entries -= beyond;
                turn.first += beyond as u64;
                break;
            }
            beyond -= turn.entries;
            old = self.turns.pop_front();
        }
        old
    }
}

impl Page {
    /// Whether this is what the first of the page asked for, by the same session, and there is room: then it stands at 0.
    #[inline]
    fn goes_on_with(&self, session: &SessionState, done: Done<'_>) -> bool {
        let Done::Statement(planned) = done else { return false };
        self.plan == Arc::as_ptr(planned).addr()
            && self.session == std::ptr::from_ref(session).addr()
            && self.entries.len() < ENTRIES_MAX
    }

    /// Whether a statement of this client must go onto another page.
    fn is_full_for(&mut self, session: &SessionState) -> bool {
        if self.entries.len() >= ENTRIES_MAX || self.heading.asked_more.len() + 1 >= ASKED_MAX {
            return true;
        }
        let address = std::ptr::from_ref(session).addr();
        let is_other = std::mem::replace(&mut self.session, address) != address;
        is_other
            && !self.entries.is_empty()
            && (self.heading.client != session.client || self.heading.user != session.user)
    }

    /// The place of what was asked for; `None`: nothing that the log is for.
    fn asked(&mut self, done: Done<'_>) -> Option<u8> {
        let heading = &mut self.heading;
        if let Done::Statement(planned) = done {
            let is_it = |asked: &Asked| matches!(asked, Asked::Plan(plan) if Arc::ptr_eq(plan, planned));
            let mut all = heading.asked.iter().chain(&heading.asked_more);
            if let Some(place) = all.position(is_it) {
                return u8::try_from(place).ok();
            }
        }
        let asked = asked(done)?;
        if heading.asked.is_none() {
            if let Asked::Plan(plan) = &asked {
                self.plan = Arc::as_ptr(plan).addr();
            }
            heading.asked = Some(asked);
            return Some(0);
        }
        heading.asked_more.push(asked);
        u8::try_from(heading.asked_more.len()).ok()
    }
}

impl Heading {
    fn asked(&self, place: u8) -> Option<&Asked> {
        match place.checked_sub(1) {
            None => self.asked.as_ref(),
            Some(place) => self.asked_more.get(usize::from(place)),
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

impl RequestLog {
    /// Writes a statement onto a page, which goes into the log before if it is full.
    #[inline]
    pub(super) fn note(
        &self,
        page: &mut Page,
        request: &Request<'_>,
        done: Done<'_>,
        charge: RequestUnits,
        outcome: &Result<Answer, Error>,
        ended: impl FnOnce() -> Duration,
    ) {
        let mut asked = 0;
        // Nearly every statement of a turn asks for what the one before has asked for.
        if !page.goes_on_with(request.session(), done) {
            let Some(place) = self.turn_over(page, request.session(), done, ended) else {
                return;
            };
            asked = place;
        }
        let (error_code, response_bytes) = match outcome {
            Ok(answer) => match &answer.kind {
                AnswerKind::Rows(rows) => (NO_ERROR, rows.content.len()),
                _ => (NO_ERROR, 0),
            },
            Err(error) => (error.code(), 0),
        };
        page.entries.push(Entry {
            at_micros: request.at_micros(),
            began_nanos: nanos(request.began()),
            charge,
            request_bytes: u32::try_from(request.params().request_bytes).unwrap_or(u32::MAX),
            response_bytes: u32::try_from(response_bytes).unwrap_or(u32::MAX),
            delay_micros: request.asked.get().and_then(Waited::delay).map(rounded_up),
            error_code,
            asked,
        });
    }

    /// Makes a page ready for a statement unlike the one before; gives the place of what it asks for, if the log is for it.
    #[inline(never)]
    fn turn_over(
        &self,
        page: &mut Page,
        session: &SessionState,
        done: Done<'_>,
        ended: impl FnOnce() -> Duration,
    ) -> Option<u8> {
        if page.is_full_for(session) {
            self.put(page, ended());
        }
        let place = page.asked(done)?;
        if page.entries.is_empty() {
            page.heading.client = session.client;
            page.heading.user.clone_from(&session.user);
        }
        Some(place)
    }
}

impl Database {
    /// The log, oldest first.
    pub(super) fn logged_requests(&self) -> Vec<LoggedRequest> {
        let host = self.node().host_id;
        let kept = self.meter().log().kept.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = kept.turns.iter();
        let numbered = turns.flat_map(|turn| (turn.first..).take(turn.entries).map(move |number| (turn, number)));
        let shown = |((turn, number), entry): ((&Turn, u64), &Entry)| {
            let (heading, asked) = (&turn.heading, turn.heading.asked(entry.asked)?);
            Some(LoggedRequest {
                number,
                activity_id: activity_id(host, number),
                address: heading.client,
                table: asked.table().map(|table| (table.keyspace.clone(), table.name.clone())),
                operation: asked.kind().name(),
                command: asked.shape(),
                duration_ms: turn
                    .ended
                    .saturating_sub(Duration::from_nanos(entry.began_nanos))
                    .as_secs_f64()
                    * 1000.0,
                error_code: match entry.error_code {
                    NO_ERROR => -1,
                    code => i32::from(code),
                },
                request_charge: entry.charge.as_f64(),
                request_bytes: u64::from(entry.request_bytes),
                response_bytes: u64::from(entry.response_bytes),
                user: heading.user.as_deref().map(str::to_owned),
                at_millis: entry.at_micros.div_euclid(1000),
                delay_ms: entry.delay_micros.map(|micros| f64::from(micros.get()) / 1000.0),
            })
        };
        numbered.zip(&kept.entries).filter_map(shown).collect()
    }
}

/// Time since the clock's beginning; comes round after 584 years.
fn nanos(time: Duration) -> u64 {
    let seconds = time.as_secs().wrapping_mul(1_000_000_000);
    seconds.wrapping_add(u64::from(time.subsec_nanos()))
}

/// In microseconds, at least one.
fn rounded_up(delay: Duration) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(delay.as_micros()).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN)
}

/// A uuid of an entry, the same whenever it is asked for.
fn activity_id(host: Uuid, number: u64) -> Uuid {
    let mut digest = Md5::new();
    digest.update(host.as_bytes());
    digest.update(number.to_be_bytes());
    uuid::Builder::from_md5_bytes(digest.finalize().into()).into_uuid()
}
