//! The meter: passes the charges of statements to all their consumers, which are the counters by physical partition,
//! load, hot keys and the request log.
//!
//! ```text
//! charge ── Meter::record ─→ Sheet of this thread ─── end of the poll ─→ ConsumedUnits, Load, RequestLog
//!                    │                                (one lock, few shared counters a poll)
//!                    └───→ HotKeys, of the few sampled requests
//! ```
//! Metering must cost a request next to nothing. So during one poll of a connection ([`turn`]) its charges are added to
//! a sheet of the thread. The sheet is merged into the shared counters before the answers of the poll are written: when
//! a client has an answer, its charge is counted. Outside a poll charges are merged at once. A reader of counters or of
//! the log during a poll merges its own sheet first.
//!
//! Tokens are recorded as load at the resolution that load keeps. Requests of [`Load::TOGETHER`] units together are
//! recorded at the token of the last of them, several such groups at once.
//!
//! A server may be started without metering, for comparisons: then statements have no charges, and the meter records
//! none.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::consumed::ConsumedUnits;
use super::receipt::{ChargeReceipt, Ended, Executed, next_number};
use super::request_log::{Page, RequestLog};
use crate::engine::terms::request::Request;
use crate::partition::{HotKeys, Load, PhysicalPartitionId, Placed, Placement};
use crate::throughput::{Charge, Charges, PartitionRef, RequestUnits};
use helenus_base::clock::Clock;
use helenus_base::metrics::turn::{self, KeptBack};
use helenus_types::token::Token;

/// Tokens of a partition that are recorded as load together.
const TOKENS_MAX: usize = 16;

/// Physical partitions on a sheet; the charges of further ones in one poll are merged at once.
const PLACES_MAX: usize = 64;

/// All consumers of charges.
#[derive(Debug)]
pub(super) struct Meter {
    /// Distinguishes it from other meters of the process: sheets belong to threads, which several databases may share.
    number: u64,
    is_on: bool,
    clock: Clock,
    spent: ConsumedUnits,
    hot: HotKeys,
    log: RequestLog,
}

/// The charges of a physical partition in one poll.
#[derive(Debug)]
struct Place {
    partition: PartitionRef,
    load: Option<Arc<Load>>,
    /// Whether its table is ordered by partition key. Then keys are recorded as load, as far as the load keeps keys.
    is_ordered: bool,
    /// Charged, in millionths of a unit, excluding charges that are not recorded as load yet.
    micros: u64,
    /// Tokens of statements to record as load, at most `together`, each for [`Load::TOGETHER`] or a little more; and
    /// the charges of all these statements, in millionths.
    tokens: [i64; TOKENS_MAX],
    together: usize,
    together_micros: u64,
    /// Charges of statements on keys that are in none of the above, in millionths, and the token of the last of them.
    asked: u64,
    token: i64,
    /// Charges of scans that are not recorded as load yet, in millionths.
    scanned: u64,
}

/// The charges of one poll.
#[derive(Debug, Default)]
struct Sheet {
    /// The number of the meter that gets the sheet at the end of the poll; 0 means an empty sheet.
    whose: u64,
    /// Charges without a partition, in millionths.
    metadata: u64,
    places: Vec<Place>,
    page: Page,
}

thread_local! {
    static SHEET: RefCell<Sheet> = RefCell::default();
}

impl Meter {
    /// A meter whose log keeps `log_entries_max` statements.
    pub(super) fn new(is_on: bool, log_entries_max: usize, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            number: next_number(),
            is_on,
            clock,
            spent: ConsumedUnits::default(),
            hot: HotKeys::default(),
            log: RequestLog::new(log_entries_max),
        })
    }

    /// Whether statements are charged.
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The weight of the keys of a statement that begins now; 0 means that they are not counted.
    #[inline(always)]
    pub(super) fn key_weight(&self) -> u64 {
        self.hot.weight()
    }

    /// The units charged since the start.
    pub(super) fn spent(&self) -> &ConsumedUnits {
        self.merge_current();
        &self.spent
    }

    /// The last statements.
    pub(super) fn log(&self) -> &RequestLog {
        self.merge_current();
        &self.log
    }

    /// The hot partition keys.
    pub(super) const fn hot(&self) -> &HotKeys {
        &self.hot
    }

    /// Records a statement, its charges, its receipt and its outcome.
    pub(super) fn record(
        self: &Arc<Self>,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        receipt: ChargeReceipt,
        ended: Ended,
    ) {
        let is_recorded = SHEET.with_borrow_mut(|sheet| {
            if sheet.whose != self.number && !self.begin(sheet) {
                return false;
            }
            self.record_on(sheet, request, executed, charges, receipt, ended);
            true
        });
        if !is_recorded {
            self.record_alone(request, executed, charges, receipt, ended);
        }
    }

    /// Records a statement outside of polls.
    #[inline(never)]
    fn record_alone(
        &self,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        receipt: ChargeReceipt,
        ended: Ended,
    ) {
        let mut sheet = Sheet::default();
        self.record_on(&mut sheet, request, executed, charges, receipt, ended);
        self.merge(&mut sheet, self.clock.monotonic());
    }

    /// Takes the thread's sheet for the current poll, if there is one.
    #[inline(never)]
    fn begin(self: &Arc<Self>, sheet: &mut Sheet) -> bool {
        let is_kept = turn::keep_back(self);
        if is_kept {
            // An earlier registration was merged already: the end of a poll merges one.
            sheet.whose = self.number;
            if self.log.is_on() {
                sheet.page.reserve();
            }
        }
        is_kept
    }

    #[inline(always)]
    fn record_on(
        &self,
        sheet: &mut Sheet,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        receipt: ChargeReceipt,
        ended: Ended,
    ) {
        // Nearly every statement has one charge, in a partition that is on the sheet already.
        let place = charges.plain().and_then(|(partition, token, micros)| {
            let mut places = sheet.places.iter_mut();
            let place = places.find(|place| place.partition == partition)?;
            Some((place, token, micros))
        });
        match place {
            Some((place, token, micros)) => place.ask(token, micros),
            None => self.record_charges(sheet, request, charges),
        }
        if self.log.is_on() {
            let now = || self.clock.monotonic();
            self.log.record(&mut sheet.page, request, executed, receipt, ended, now);
        }
    }

    #[inline(never)]
    fn record_charges(&self, sheet: &mut Sheet, request: &Request<'_>, charges: &mut Charges) {
        let key_weight = charges.key_weight();
        let mut metadata = charges.micros();
        for charge in charges.partitions() {
            metadata = metadata.saturating_sub(charge.micros());
            self.record_charge(sheet, request, charge, key_weight);
        }
        sheet.metadata = sheet.metadata.saturating_add(metadata);
    }

    fn record_charge(&self, sheet: &mut Sheet, request: &Request<'_>, charge: &Charge, key_weight: u64) {
        if let (Some(spread), Some(key)) = (charge.spread, &charge.key) {
            let (table, units) = (charge.partition.table, charge.units());
            self.hot.record(table, spread, key, units, request.began, key_weight);
        }
        if let Some(place) = sheet
            .places
            .iter_mut()
            .find(|place| place.partition == charge.partition)
        {
            place.add(charge, key_weight);
            return;
        }
        if sheet.places.len() >= PLACES_MAX {
            self.merge_charges(sheet);
        }
        let mut place = Place::of(request, charge);
        place.add(charge, key_weight);
        sheet.places.push(place);
    }

    /// Merges a sheet into all consumers, and empties it.
    fn merge(&self, sheet: &mut Sheet, now: Duration) {
        self.merge_charges(sheet);
        self.log.put(&mut sheet.page, now);
    }

    fn merge_charges(&self, sheet: &mut Sheet) {
        sheet.places.iter_mut().for_each(Place::record_load);
        let places = sheet.places.iter();
        let charged = places.map(|place| (place.partition, place.micros));
        let metadata = std::mem::take(&mut sheet.metadata);
        let all = charged
            .clone()
            .fold(metadata, |sum, (_, micros)| sum.saturating_add(micros));
        if all > 0 {
            self.spent.add(all, charged);
        }
        sheet.places.clear();
    }

    /// Merges the charges of this thread's current poll into all consumers.
    fn merge_current(&self) {
        SHEET.with_borrow_mut(|sheet| {
            if sheet.whose == self.number {
                self.merge(sheet, self.clock.monotonic());
            }
        });
    }
}

impl KeptBack for Meter {
    fn flush(&self, now: Duration) {
        SHEET.with_borrow_mut(|sheet| {
            sheet.whose = 0;
            self.merge(sheet, now);
        });
    }
}

impl Place {
    /// The physical partition of a charge, as the request found it.
    fn of(request: &Request<'_>, charge: &Charge) -> Self {
        let PartitionRef { table, partition } = charge.partition;
        let map = request.partition_map(table);
        let served = map.and_then(|map| {
            // Its index is found by the token without a search, unless the keys of one token are divided.
            let of_hash = charge.spread.filter(|_| map.placement() == Placement::Hash);
            let of_token = of_hash.map(|spread| map.of_token(Token::bound(spread), &[]));
            let is_it = |found: &&Placed| found.id.0 == partition;
            of_token
                .filter(is_it)
                .or_else(|| map.find(PhysicalPartitionId(partition)))
        });
        Self {
            partition: charge.partition,
            load: served.and_then(Placed::here).map(|here| Arc::clone(&here.load)),
            is_ordered: map.is_some_and(|map| map.placement() == Placement::Key),
            micros: 0,
            tokens: [0; TOKENS_MAX],
            together: 0,
            together_micros: 0,
            asked: 0,
            token: 0,
            scanned: 0,
        }
    }

    fn add(&mut self, charge: &Charge, key_weight: u64) {
        if let (true, Some(key), Some(load)) = (self.is_ordered, &charge.key, &self.load) {
            load.record_key(key, charge.units() * key_weight);
        }
        match charge.spread {
            Some(spread) => self.ask(spread, charge.micros()),
            // A scan has no token of its own: it adds to the load, but not to the samples.
            None => self.scanned = self.scanned.saturating_add(charge.micros()),
        }
    }

    #[inline(always)]
    fn ask(&mut self, token: i64, micros: u64) {
        self.asked = self.asked.saturating_add(micros);
        self.token = token;
        if self.asked >= Load::TOGETHER.in_micros() {
            self.put_together();
        }
    }

    /// Adds a charge to those that are recorded as load together.
    #[inline]
    fn put_together(&mut self) {
        match self.tokens.get_mut(self.together) {
            Some(token) if self.asked < Load::TOGETHER.in_micros() * 2 => {
                *token = self.token;
                self.together += 1;
                self.together_micros += std::mem::take(&mut self.asked);
            }
            _ => self.record_load(),
        }
    }

    #[inline(never)]
    fn record_load(&mut self) {
        let (asked, scanned) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.scanned));
        let (together, together_micros) = (
            std::mem::take(&mut self.together),
            std::mem::take(&mut self.together_micros),
        );
        let told = together_micros.saturating_add(asked).saturating_add(scanned);
        self.micros = self.micros.saturating_add(told);
        let Some(load) = &self.load else { return };
        if let Some(tokens) = self.tokens.get(..together).filter(|tokens| !tokens.is_empty()) {
            load.record_all(tokens, RequestUnits::rounded(together_micros));
        }
        if asked > 0 {
            load.record(self.token, RequestUnits::rounded(asked));
        }
        if scanned > 0 {
            load.record_scan(RequestUnits::rounded(scanned));
        }
    }
}
