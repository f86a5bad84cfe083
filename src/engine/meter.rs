//! The meter: what statements were charged, told to everybody who counts it: counters by physical partition, heat, hot keys and the
//! request log.
//!
//! ```text
//! settle ── Meter::note ─→ Sheet of this thread ─── the turn settles ─→ ConsumedUnits, Heat, RequestLog     one lock, few shared counters a turn
//!                    └───→ HotKeys, of the few requests that are counted there
//! ```
//! A request is to cost next to nothing for being metered. So while a connection's turn goes on ([`turn`]) what is charged stands on a
//! sheet of the thread's own, and goes where all threads look before the turn's answers are written: who has an answer finds it
//! counted. Outside a turn it goes there at once. Who reads counters or the log in the middle of a turn settles its own sheet first.
//!
//! Heat is told of the tokens that were asked for as finely as it keeps them: requests of [`Heat::TOGETHER`] units are noted at the
//! token of the last of them, several such at once.
//!
//! A server may be started without metering, to compare: then statements gather no charges, and nothing comes here.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::consumed::ConsumedUnits;
use super::receipt::{ChargeReceipt, Ended, Executed, next_number};
use super::request::Request;
use super::request_log::{Page, RequestLog};
use crate::clock::Clock;
use crate::metrics::turn::{self, KeptBack};
use crate::partition::{Heat, Hosted, HotKeys, PhysicalPartitionId, Placement};
use crate::throughput::{Charge, Charges, PartitionRef, RequestUnits};
use crate::token::Token;

/// Tokens of a place that the heat is told of together.
const TOKENS_MAX: usize = 16;

/// Physical partitions on a sheet; what goes to more of them in one turn is told on its way.
const PLACES_MAX: usize = 64;

/// Everybody who counts charges.
#[derive(Debug)]
pub(super) struct Meter {
    /// Distinguishes it from other meters of the process: sheets are of threads, which several databases may share.
    number: u64,
    is_on: bool,
    clock: Clock,
    spent: ConsumedUnits,
    hot: HotKeys,
    log: RequestLog,
}

/// What was charged to a physical partition in a turn.
#[derive(Debug)]
struct Place {
    partition: PartitionRef,
    heat: Option<Arc<Heat>>,
    /// Whether its table is ordered by partition key: then the heat is told of keys, as far as they are kept.
    is_ordered: bool,
    /// Millionths of a unit, but those that the heat has not been told of.
    micros: u64,
    /// Tokens of statements that the heat is to be told of, as many as `together`, each for [`Heat::TOGETHER`] or a little more; and the
    /// millionths of all these statements.
    tokens: [i64; TOKENS_MAX],
    together: usize,
    together_micros: u64,
    /// Millionths of statements that asked for keys and are in none of the above, and the token of the last of them.
    asked: u64,
    token: i64,
    /// Millionths of scans, not yet told to the heat.
    scanned: u64,
}

/// What was charged in a turn.
#[derive(Debug, Default)]
struct Sheet {
    /// The number of the meter that is told when the turn settles; 0: nothing stands here.
    whose: u64,
    /// Charges that belong to no partition, millionths.
    metadata: u64,
    places: Vec<Place>,
    page: Page,
}

thread_local! {
    static SHEET: RefCell<Sheet> = RefCell::default();
}

impl Meter {
    /// A meter; `log_entries_max` statements are kept in its log.
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

    /// How often the keys of a statement that begins now count; 0: not at all.
    #[inline(always)]
    pub(super) fn key_weight(&self) -> u64 {
        self.hot.weight()
    }

    /// What was charged since the start.
    pub(super) fn spent(&self) -> &ConsumedUnits {
        self.settle_here();
        &self.spent
    }

    /// The last statements.
    pub(super) fn log(&self) -> &RequestLog {
        self.settle_here();
        &self.log
    }

    /// Which partition keys are asked most.
    pub(super) const fn hot(&self) -> &HotKeys {
        &self.hot
    }

    /// Notes a statement, its charges, what is told of them, and what came of it.
    pub(super) fn note(
        self: &Arc<Self>,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        receipt: ChargeReceipt,
        ended: Ended,
    ) {
        let noted = SHEET.with_borrow_mut(|sheet| {
            if sheet.whose != self.number && !self.begin(sheet) {
                return false;
            }
            self.note_on(sheet, request, executed, charges, receipt, ended);
            true
        });
        if !noted {
            self.note_alone(request, executed, charges, receipt, ended);
        }
    }

    /// Notes a statement outside of turns.
    #[inline(never)]
    fn note_alone(
        &self,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        receipt: ChargeReceipt,
        ended: Ended,
    ) {
        let mut sheet = Sheet::default();
        self.note_on(&mut sheet, request, executed, charges, receipt, ended);
        self.tell(&mut sheet, self.clock.monotonic());
    }

    /// Takes the thread's sheet for the turn that goes on, if one does.
    #[inline(never)]
    fn begin(self: &Arc<Self>, sheet: &mut Sheet) -> bool {
        let is_kept = turn::keep_back(self);
        if is_kept {
            // An earlier registration has been settled, since one turn settles one.
            sheet.whose = self.number;
            if self.log.is_on() {
                sheet.page.reserve();
            }
        }
        is_kept
    }

    #[inline(always)]
    fn note_on(
        &self,
        sheet: &mut Sheet,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        receipt: ChargeReceipt,
        ended: Ended,
    ) {
        // Nearly every statement has one charge, at a place where one before it had its own.
        let place = charges.plain().and_then(|(partition, token, micros)| {
            let mut places = sheet.places.iter_mut();
            let place = places.find(|place| place.partition == partition)?;
            Some((place, token, micros))
        });
        match place {
            Some((place, token, micros)) => place.ask(token, micros),
            None => self.note_charges(sheet, request, charges),
        }
        if self.log.is_on() {
            let now = || self.clock.monotonic();
            self.log.note(&mut sheet.page, request, executed, receipt, ended, now);
        }
    }

    #[inline(never)]
    fn note_charges(&self, sheet: &mut Sheet, request: &Request<'_>, charges: &mut Charges) {
        let key_weight = charges.key_weight();
        let mut metadata = charges.micros();
        for charge in charges.partitions() {
            metadata = metadata.saturating_sub(charge.micros());
            self.note_charge(sheet, request, charge, key_weight);
        }
        sheet.metadata = sheet.metadata.saturating_add(metadata);
    }

    fn note_charge(&self, sheet: &mut Sheet, request: &Request<'_>, charge: &Charge, key_weight: u64) {
        if let (Some(spread), Some(key)) = (charge.spread, &charge.key) {
            let (table, units) = (charge.partition.table, charge.units());
            self.hot.note(table, spread, key, units, request.began, key_weight);
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
            self.tell_charges(sheet);
        }
        let mut place = Place::of(request, charge);
        place.add(charge, key_weight);
        sheet.places.push(place);
    }

    /// Tells everybody what stands on a sheet, which is empty then.
    fn tell(&self, sheet: &mut Sheet, now: Duration) {
        self.tell_charges(sheet);
        self.log.put(&mut sheet.page, now);
    }

    fn tell_charges(&self, sheet: &mut Sheet) {
        sheet.places.iter_mut().for_each(Place::tell_heat);
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

    /// Tells everybody what this thread has charged so far in its turn.
    fn settle_here(&self) {
        SHEET.with_borrow_mut(|sheet| {
            if sheet.whose == self.number {
                self.tell(sheet, self.clock.monotonic());
            }
        });
    }
}

impl KeptBack for Meter {
    fn settle(&self, now: Duration) {
        SHEET.with_borrow_mut(|sheet| {
            sheet.whose = 0;
            self.tell(sheet, now);
        });
    }
}

impl Place {
    /// The physical partition of a charge, as the request found it.
    fn of(request: &Request<'_>, charge: &Charge) -> Self {
        let PartitionRef { table, partition } = charge.partition;
        let list = request.partition_map(table);
        let served = list.and_then(|list| {
            // Found by the token without a search, but where keys of one token are divided.
            let of_hash = charge.spread.filter(|_| list.placement() == Placement::Hash);
            let of_token = of_hash.map(|spread| list.at(Token::bound(spread), &[]));
            let is_it = |found: &&Arc<Hosted>| found.id.0 == partition;
            of_token
                .filter(is_it)
                .or_else(|| list.find(PhysicalPartitionId(partition)))
        });
        Self {
            partition: charge.partition,
            heat: served.map(|served| Arc::clone(&served.heat)),
            is_ordered: list.is_some_and(|list| list.placement() == Placement::Key),
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
        if let (true, Some(key), Some(heat)) = (self.is_ordered, &charge.key, &self.heat) {
            heat.note_key(key, charge.units() * key_weight);
        }
        match charge.spread {
            Some(spread) => self.ask(spread, charge.micros()),
            // A scan has no token of its own; it adds to what is asked and says nothing of where.
            None => self.scanned = self.scanned.saturating_add(charge.micros()),
        }
    }

    #[inline(always)]
    fn ask(&mut self, token: i64, micros: u64) {
        self.asked = self.asked.saturating_add(micros);
        self.token = token;
        if self.asked >= Heat::TOGETHER.in_micros() {
            self.put_together();
        }
    }

    /// Puts what was asked to what the heat is to be told together.
    #[inline]
    fn put_together(&mut self) {
        match self.tokens.get_mut(self.together) {
            Some(token) if self.asked < Heat::TOGETHER.in_micros() * 2 => {
                *token = self.token;
                self.together += 1;
                self.together_micros += std::mem::take(&mut self.asked);
            }
            _ => self.tell_heat(),
        }
    }

    #[inline(never)]
    fn tell_heat(&mut self) {
        let (asked, scanned) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.scanned));
        let (together, together_micros) = (
            std::mem::take(&mut self.together),
            std::mem::take(&mut self.together_micros),
        );
        let told = together_micros.saturating_add(asked).saturating_add(scanned);
        self.micros = self.micros.saturating_add(told);
        let Some(heat) = &self.heat else { return };
        if let Some(tokens) = self.tokens.get(..together).filter(|tokens| !tokens.is_empty()) {
            heat.note_all(tokens, RequestUnits::rounded(together_micros));
        }
        if asked > 0 {
            heat.note(self.token, RequestUnits::rounded(asked));
        }
        if scanned > 0 {
            heat.note_scan(RequestUnits::rounded(scanned));
        }
    }
}
