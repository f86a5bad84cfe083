//! The request log: the charges of users' latest statements, under the names of Cosmos's `CDBCassandraRequests`.
//!
//! ```text
//! meter ── Page::add ─→ page of a turn ── put ─→ entries and headings, one lock a turn    number rises by one for each
//! ```
//! **Bound.** As many entries as the setting says. The entries of one poll of a connection ([`helenus_base::metrics::turn`])
//! share one heading, which keeps the origins of texts of at most 2 KiB, or the beginnings of longer ones. Values are
//! not shown: a text's constants are removed when the log is read ([`Origin::without_values`]), and bound values are
//! not kept. Deliberately absent: statements on system keyspaces, which drivers send all the time, and texts that could
//! not be planned.
//!
//! Source: Azure Monitor's table reference, CDBCassandraRequests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use md5::{Digest, Md5};
use uuid::Uuid;

use super::receipt::{ChargeReceipt, Ended, Executed, Origin};
use crate::engine::shown::LoggedRequest;
use crate::engine::terms::request::Request;
use crate::throughput::RequestUnits;
use helenus_base::metrics::StatementKind;
use helenus_schema::schema::{Table, system};

/// Bytes of a text; longer ones are cut.
const TEXT_BYTES_MAX: usize = 2048;

/// The statement of an entry.
#[derive(Debug)]
enum LoggedStatement {
    Statement(Arc<Origin>),
    /// The beginning of a long text.
    Beginning(Arc<Origin>),
    /// A BATCH message: its first table and the number of its statements.
    Batch(Option<Arc<Table>>, usize),
}

/// A statement. Small, since every statement writes one and evicts another.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Hundredths of a unit; a charge that does not fit is stored in [`Rare`].
    charge: u32,
    request_bytes: u32,
    response_bytes: u32,
    /// [`NO_ERROR`] means no error.
    error_code: u16,
    /// The index of its statement in its heading.
    asked: u8,
}

/// Fields that few statements have.
#[derive(Debug)]
struct Rare {
    /// The statement's place on its page.
    place: usize,
    receipt: ChargeReceipt,
}

/// The code of a request that was dropped before its end: a server error.
const ABANDONED: u16 = 0;

/// Stands for no error: no error has this code.
const NO_ERROR: u16 = u16::MAX;

/// The fields that the statements of a poll share: they arrived together, and so began together.
#[derive(Debug, Default)]
struct Heading {
    client: Option<SocketAddr>,
    user: Option<Arc<str>>,
    /// Calendar time, µs since 1970-01-01 UTC, at which the first of them was recorded.
    at_micros: i64,
    /// By the monotonic clock.
    began: Duration,
    /// Their statement. Most turns execute a single one, which allocates no vector.
    asked: Option<LoggedStatement>,
    asked_more: Vec<LoggedStatement>,
    /// In the order of their places.
    rare: Vec<Rare>,
}

/// Most distinct statements under one heading.
const ASKED_MAX: usize = 16;

/// How many origins are cached outside the heading: a connection mostly executes few statements.
const ORIGINS_MAX: usize = 4;

/// Statements below one heading.
const ENTRIES_MAX: usize = 256;

/// The entries that a poll adds to the log.
#[derive(Debug, Default)]
pub(super) struct Page {
    heading: Heading,
    entries: Vec<Entry>,
    /// The origin numbers of the heading's first statements; 0 marks a free place.
    origins: [u64; ORIGINS_MAX],
}

#[derive(Debug)]
struct LoggedPoll {
    heading: Heading,
    ended: Duration,
    /// The numbers of its entries, including evicted ones.
    numbers: Range<u64>,
}

/// The last statements.
#[derive(Debug)]
pub(super) struct RequestLog {
    entries_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    turns: VecDeque<LoggedPoll>,
    /// The entries of the headings, in the same order.
    entries: VecDeque<Entry>,
    next: u64,
}

impl RequestLog {
    /// A log of at most this many entries; 0 means that it records nothing.
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            entries_max,
            kept: Mutex::default(),
        }
    }

    /// Whether anything is recorded.
    pub(super) const fn is_on(&self) -> bool {
        self.entries_max > 0
    }

    /// Takes the entries of a page, which is empty afterwards.
    pub(super) fn put(&self, page: &mut Page, ended: Duration) {
        if page.entries.is_empty() {
            return;
        }
        let heading = std::mem::take(&mut page.heading);
        page.origins = [0; ORIGINS_MAX];
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let first = kept.next;
        kept.next += page.entries.len() as u64;
        let numbers = first..kept.next;
        kept.turns.push_back(LoggedPoll {
            heading,
            ended,
            numbers,
        });
        kept.entries.extend(&page.entries);
        let old = kept.forget(self.entries_max);
        drop(kept);
        page.entries.clear();
        // The old entries are freed without the lock.
        drop(old);
    }
}

impl LoggedPoll {
    /// The receipt of one of its entries.
    fn receipt(&self, number: u64, entry: &Entry) -> ChargeReceipt {
        let plain = ChargeReceipt {
            charge: RequestUnits::hundredths(entry.charge.into()),
            waited: None,
        };
        self.heading
            .rare(number - self.numbers.start)
            .map_or(plain, |rare| rare.receipt)
    }
}

impl Kept {
    /// The number of the oldest entry.
    fn first(&self) -> u64 {
        self.next - self.entries.len() as u64
    }

    /// The entries with their numbers, oldest first.
    fn numbered(&self) -> impl Iterator<Item = (&LoggedPoll, u64, &Entry)> {
        let first = self.first();
        let numbers = move |turn: &LoggedPoll| turn.numbers.start.max(first)..turn.numbers.end;
        let turns = self.turns.iter();
        let numbered = turns.flat_map(move |turn| numbers(turn).map(move |number| (turn, number)));
        numbered
            .zip(&self.entries)
            .map(|((turn, number), entry)| (turn, number, entry))
    }

    /// Drops entries beyond this number, the oldest first. Returns the headings that have none left, and of several
    /// only the last.
    fn forget(&mut self, entries_max: usize) -> Option<LoggedPoll> {
        let beyond = self.entries.len().saturating_sub(entries_max);
        self.entries.drain(..beyond);
        let first = self.first();
        let mut old = None;
        while self.turns.front().is_some_and(|turn| turn.numbers.end <= first) {
            old = self.turns.pop_front();
        }
        old
    }
}

impl Page {
    /// Reserves memory for the entries, so that no statement has to allocate.
    pub(super) fn reserve(&mut self) {
        self.entries.reserve_exact(ENTRIES_MAX);
    }

    /// Fast path: appends an entry that shares the page's start time and one of its first statements, as nearly every
    /// entry of a poll does, and has no rare field. Returns false if the entry is different. A poll has one client, so
    /// the client is the page's.
    #[inline(always)]
    pub(super) fn goes_on_with(
        &mut self,
        request: &Request<'_>,
        executed: Executed<'_>,
        receipt: ChargeReceipt,
        ended: Ended,
    ) -> bool {
        let (Executed::Statement(origin), Ended::Answered { .. }) = (executed, ended) else {
            return false;
        };
        let Ok(charge) = u32::try_from(receipt.charge.in_hundredths()) else {
            return false;
        };
        let number = origin.number();
        let Some(asked) = (0..).zip(&self.origins).find(|(_, known)| **known == number) else {
            return false;
        };
        let goes_on = self.heading.began == request.began
            && receipt.waited.is_none()
            && self.entries.len() < self.entries.capacity();
        if goes_on {
            self.entries.push(Entry {
                charge,
                request_bytes: request.terms.request_bytes,
                response_bytes: ended.row_bytes(),
                error_code: NO_ERROR,
                asked: asked.0,
            });
        }
        goes_on
    }

    /// Whether this statement must go onto another page.
    fn is_full_for(&self, request: &Request<'_>) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        if self.entries.len() >= ENTRIES_MAX
            || self.heading.asked_more.len() + 1 >= ASKED_MAX
            || self.heading.began != request.began
        {
            return true;
        }
        self.heading.client.as_ref() != request.terms.client || self.heading.user.as_ref() != request.terms.user
    }

    /// Appends an entry that may have rare fields; `asked` is the index of its statement.
    fn add(&mut self, asked: u8, receipt: ChargeReceipt, request_bytes: u32, ended: Ended) {
        let charge = u32::try_from(receipt.charge.in_hundredths());
        if receipt.waited.is_some() || charge.is_err() {
            let place = self.entries.len();
            self.heading.rare.push(Rare { place, receipt });
        }
        self.entries.push(Entry {
            charge: charge.unwrap_or(u32::MAX),
            request_bytes,
            response_bytes: ended.row_bytes(),
            error_code: match ended {
                Ended::Answered { .. } => NO_ERROR,
                Ended::Failed { code } => code,
                Ended::Abandoned => ABANDONED,
            },
            asked,
        });
    }

    /// Begins a page with this statement.
    fn begin(&mut self, request: &Request<'_>) {
        self.heading.client = request.terms.client.copied();
        self.heading.user = request.terms.user.cloned();
        self.heading.at_micros = request.at_micros;
        self.heading.began = request.began;
    }

    /// The place of the statement. `None` means that the log does not record it.
    fn asked(&mut self, executed: Executed<'_>) -> Option<u8> {
        let heading = &mut self.heading;
        if let Executed::Statement(origin) = executed {
            let is_it = |asked: &LoggedStatement| matches!(asked, LoggedStatement::Statement(known) if known.number() == origin.number());
            let mut all = heading.asked.iter().chain(&heading.asked_more);
            if let Some(place) = all.position(is_it) {
                return u8::try_from(place).ok();
            }
        }
        let asked = asked(executed)?;
        let place = heading.asked.iter().len() + heading.asked_more.len();
        if let (LoggedStatement::Statement(origin), Some(known)) = (&asked, self.origins.get_mut(place)) {
            *known = origin.number();
        }
        match &mut heading.asked {
            none @ None => *none = Some(asked),
            Some(_) => heading.asked_more.push(asked),
        }
        u8::try_from(place).ok()
    }
}

impl Heading {
    fn asked(&self, place: u8) -> Option<&LoggedStatement> {
        match place.checked_sub(1) {
            None => self.asked.as_ref(),
            Some(place) => self.asked_more.get(usize::from(place)),
        }
    }

    /// The rare fields of the entry at a place.
    fn rare(&self, place: u64) -> Option<&Rare> {
        let place = usize::try_from(place).ok()?;
        let found = self.rare.binary_search_by_key(&place, |rare| rare.place).ok()?;
        self.rare.get(found)
    }
}

/// The statement to record. `None` means that the log does not record it.
fn asked(executed: Executed<'_>) -> Option<LoggedStatement> {
    match executed {
        Executed::Statement(origin) => {
            if !origin.is_logged {
                return None;
            }
            let text = &origin.text;
            if text.len() <= TEXT_BYTES_MAX {
                return Some(LoggedStatement::Statement(Arc::clone(origin)));
            }
            // Cut here rather than when the log is shown: the log is bounded in entries, so each entry must be bounded
            // in bytes.
            let cut = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
            let beginning = text.get(..cut.unwrap_or(0)).unwrap_or_default();
            let table = origin.table.as_slice();
            Some(LoggedStatement::Beginning(Origin::new(
                origin.kind,
                table,
                beginning.into(),
                origin.without_values,
            )))
        }
        Executed::Batch(batch) => {
            let table = batch.table.clone();
            if table.as_ref().is_some_and(|table| system::is_name(&table.keyspace)) {
                return None;
            }
            Some(LoggedStatement::Batch(table, batch.statements))
        }
    }
}

impl LoggedStatement {
    fn table(&self) -> Option<&Arc<Table>> {
        match self {
            Self::Statement(origin) | Self::Beginning(origin) => origin.table.as_ref(),
            Self::Batch(table, _) => table.as_ref(),
        }
    }

    fn kind(&self) -> StatementKind {
        match self {
            Self::Statement(origin) | Self::Beginning(origin) => origin.kind,
            Self::Batch(..) => StatementKind::Batch,
        }
    }

    fn shape(&self) -> String {
        match self {
            Self::Statement(origin) => (origin.without_values)(&origin.text),
            Self::Beginning(origin) => format!("{} …", (origin.without_values)(&origin.text)),
            Self::Batch(_, count) => format!("BATCH of {count}"),
        }
    }
}

impl RequestLog {
    /// Adds a statement to a page. A full page is first put into the log.
    #[inline(always)]
    pub(super) fn record(
        &self,
        page: &mut Page,
        request: &Request<'_>,
        executed: Executed<'_>,
        receipt: ChargeReceipt,
        ended: Ended,
        now: impl FnOnce() -> Duration,
    ) {
        if !page.goes_on_with(request, executed, receipt, ended) {
            self.turn_over(page, request, executed, receipt, ended, now);
        }
    }

    /// Writes a statement that does not fit the fast path.
    #[inline(never)]
    fn turn_over(
        &self,
        page: &mut Page,
        request: &Request<'_>,
        executed: Executed<'_>,
        receipt: ChargeReceipt,
        ended: Ended,
        now: impl FnOnce() -> Duration,
    ) {
        if page.is_full_for(request) {
            self.put(page, now());
        }
        let Some(asked) = page.asked(executed) else { return };
        if page.entries.is_empty() {
            page.begin(request);
        }
        page.add(asked, receipt, request.terms.request_bytes, ended);
    }
}

impl RequestLog {
    /// The log of the node with this host id, oldest first.
    pub(super) fn shown(&self, host: Uuid) -> Vec<LoggedRequest> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = |(turn, number, entry): (&LoggedPoll, u64, &Entry)| {
            let (heading, asked) = (&turn.heading, turn.heading.asked(entry.asked)?);
            let ChargeReceipt { charge, waited } = turn.receipt(number, entry);
            Some(LoggedRequest {
                number,
                activity_id: activity_id(host, number),
                address: heading.client,
                table: asked.table().map(|table| (table.keyspace.clone(), table.name.clone())),
                operation: asked.kind().name(),
                command: asked.shape(),
                duration_ms: turn.ended.saturating_sub(heading.began).as_secs_f64() * 1000.0,
                error_code: match entry.error_code {
                    NO_ERROR => -1,
                    code => i32::from(code),
                },
                request_charge: charge.as_f64(),
                request_bytes: u64::from(entry.request_bytes),
                response_bytes: u64::from(entry.response_bytes),
                user: heading.user.as_deref().map(str::to_owned),
                at_millis: heading.at_micros.div_euclid(1000),
                delay_ms: waited.map(|waited| waited.as_secs_f64() * 1000.0),
            })
        };
        kept.numbered().filter_map(shown).collect()
    }
}

/// The uuid of an entry, the same at every read.
fn activity_id(host: Uuid, number: u64) -> Uuid {
    let mut digest = Md5::new();
    digest.update(host.as_bytes());
    digest.update(number.to_be_bytes());
    uuid::Builder::from_md5_bytes(digest.finalize().into()).into_uuid()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The charge of a statement, in hundredths: every fifth is so large that it is rare.
    fn receipt(number: u64) -> ChargeReceipt {
        let rare = u64::from(u32::MAX) + number;
        ChargeReceipt {
            charge: RequestUnits::hundredths(if number.is_multiple_of(5) { rare } else { number }),
            waited: number.is_multiple_of(7).then(|| Duration::from_millis(number)),
        }
    }

    fn page(numbers: Range<u64>) -> Page {
        let mut page = Page::default();
        for number in numbers {
            page.add(0, receipt(number), 0, Ended::Answered { row_bytes: 0 });
        }
        page
    }

    proptest! {
        #[test]
        fn the_last_entries_are_kept_with_what_is_rare(pages in prop::collection::vec(0_u64..40, 0..30), max in 1_usize..60) {
            let log = RequestLog::new(max);
            let mut next = 0;
            for count in pages {
                log.put(&mut page(next..next + count), Duration::ZERO);
                next += count;
                let kept = log.kept.lock().unwrap();
                let first = next.saturating_sub(max as u64);
                let numbers: Vec<u64> = kept.numbered().map(|(_, number, _)| number).collect();
                prop_assert_eq!(numbers, (first..next).collect::<Vec<_>>());
                for (turn, number, entry) in kept.numbered() {
                    prop_assert_eq!(turn.receipt(number, entry), receipt(number));
                }
                prop_assert!(kept.turns.len() <= max.min(kept.entries.len()));
            }
        }
    }
}
