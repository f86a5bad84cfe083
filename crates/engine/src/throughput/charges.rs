//! The charges of one statement: by physical partition, logical partition and stage.
//!
//! A [`Charges`] begins empty with its [`Coefficients`], grows while the statement runs, and is charged once.
//! Everything is counted in millionths of a unit. Each amount is rounded by itself, so that sums do not depend on their
//! order or grouping. Only the total that clients see is rounded, to hundredths.
//!
//! **Pages.** A read is charged for each thing once, however it is divided into pages: for a row in the page that
//! contains it, for a visit of a physical partition in the first page that reaches it. The paging state passes the
//! fraction of a hundredth that a page leaves to the next page ([`Charges::end_page`]). So the charges of all pages add
//! up exactly to the charge of the same read in one page.
//!
//! **Cost.** Every statement pays for this bookkeeping, and a page is charged row by row. So rows of ranges are only
//! added to one number, which is added to the sums when something else is charged or read. Keys are kept only for
//! callers that need them ([`Charges::with_keys`]).

use bytes::Bytes;

use super::coefficients::{Coefficients, RowWrite};
use super::units::RequestUnits;
use helenus_base::invariant::{Broken, Invariant};

const MICROS_IN_HUNDREDTH: u64 = RequestUnits::MICROS_IN_HUNDREDTH;

/// A physical partition, by the number of its table in the store and its own among its table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionRef {
    /// The table's number in the store.
    pub table: u32,
    /// The partition's number.
    pub partition: u64,
}

/// What a charge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Rows looked up by their whole key.
    Lookup,
    /// Physical partitions visited by range reads.
    Visit,
    /// Rows scanned in ranges, returned or not.
    Scan,
    /// Rows returned.
    Return,
    /// Rows written.
    Write,
    /// Indexed columns written.
    Index,
    /// The other replicas of reads that query more than one.
    Replicas,
    /// System tables and the schema.
    Metadata,
}

impl Stage {
    /// All stages, in the order in which they are reported.
    pub const ALL: [Self; 8] = [
        Self::Lookup,
        Self::Visit,
        Self::Scan,
        Self::Return,
        Self::Write,
        Self::Index,
        Self::Replicas,
        Self::Metadata,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lookup => "key lookup",
            Self::Visit => "partitions visited",
            Self::Scan => "rows scanned",
            Self::Return => "rows returned",
            Self::Write => "rows written",
            Self::Index => "index writes",
            Self::Replicas => "replicas",
            Self::Metadata => "metadata",
        }
    }
}

/// The charge of one logical partition, or of all rows that a scan read in one physical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The physical partition.
    pub partition: PartitionRef,
    /// The number of the partition key that selects its gauge: its token where that is a hash. `None` means
    /// a scan of many keys.
    pub spread: Option<i64>,
    /// The partition key; `None` means that keys are not kept.
    pub key: Option<Bytes>,
    /// Millionths of a unit.
    micros: u64,
}

impl Charge {
    /// No charge, at no partition.
    const NONE: Self = Self {
        partition: PartitionRef { table: 0, partition: 0 },
        spread: None,
        key: None,
        micros: 0,
    };

    /// The amount rounded to hundredths.
    #[must_use]
    pub const fn units(&self) -> RequestUnits {
        RequestUnits::rounded(self.micros)
    }

    /// The exact amount, in millionths of a unit.
    #[must_use]
    pub const fn micros(&self) -> u64 {
        self.micros
    }
}

/// The charges of one statement; see the module's header.
#[derive(Clone, Debug)]
pub struct Charges {
    prices: Coefficients,
    /// Replicas that a read queries, each at the full price; 0 means that nothing is charged.
    read_factor: u32,
    /// The weight of each key in the hot-key count; 0 means that keys are not kept.
    key_weight: u64,
    /// The price of rows scanned in ranges, at one replica, that is not yet in any sum.
    scanned_micros: u64,
    /// The partition entered last, kept apart because most statements enter only one. Its charge is the growth of the
    /// sum since then; this field is updated only when it is read.
    last: Charge,
    is_entered: bool,
    /// Whether no charge came before the last partition's, and its key is not kept.
    is_plain: bool,
    /// The sum when the last partition was entered.
    entered_micros: u64,
    before: Vec<Charge>,
    stages: [u64; Stage::ALL.len()],
    /// The sum of all stages.
    sum_micros: u64,
    /// The fraction of a hundredth that the page before left, in millionths of a unit.
    carried_micros: u64,
    /// More pages follow, which are charged the remaining fraction of a hundredth.
    goes_on: bool,
}

/// Charges of reads by stage at one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSums {
    /// Rows looked up by their whole key, in millionths of a unit.
    pub lookup_micros: u64,
    /// Physical partitions visited, in millionths of a unit.
    pub visit_micros: u64,
    /// Rows scanned, in millionths of a unit.
    pub scan_micros: u64,
}

impl ReadSums {
    /// What was added since an earlier moment.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            lookup_micros: self.lookup_micros.saturating_sub(earlier.lookup_micros),
            visit_micros: self.visit_micros.saturating_sub(earlier.visit_micros),
            scan_micros: self.scan_micros.saturating_sub(earlier.scan_micros),
        }
    }
}

/// A state of [`Charges`] to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    entries: usize,
    last_micros: u64,
    stages: [u64; Stage::ALL.len()],
}

impl Charges {
    /// No charges yet. `read_factor` is how many replicas a read queries, each at the full price; 0 means that nothing
    /// is ever charged.
    #[must_use]
    pub const fn new(prices: Coefficients, read_factor: u32) -> Self {
        Self::with_keys(prices, read_factor, 0)
    }

    /// No charges yet. Partition keys are kept with their charges, each counted as `key_weight`; 0 means that no key is
    /// kept.
    #[must_use]
    pub const fn with_keys(prices: Coefficients, read_factor: u32, key_weight: u64) -> Self {
        Self {
            prices,
            read_factor,
            key_weight,
            scanned_micros: 0,
            last: Charge::NONE,
            is_entered: false,
            is_plain: key_weight == 0,
            entered_micros: 0,
            before: Vec::new(),
            stages: [0; Stage::ALL.len()],
            sum_micros: 0,
            carried_micros: 0,
            goes_on: false,
        }
    }

    /// The weight of each key; 0 means that none was kept.
    #[must_use]
    pub const fn key_weight(&self) -> u64 {
        self.key_weight
    }

    /// Whether anything is charged.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.read_factor > 0
    }

    /// Begins the charges of this physical partition, and of the logical one with this spread and key if it is known.
    #[inline]
    pub fn enter(&mut self, partition: PartitionRef, key: Option<(i64, &Bytes)>) {
        if !self.is_on() {
            return;
        }
        let spread = key.map(|(spread, _)| spread);
        if self.is_entered && !self.leave(partition, spread) {
            return;
        }
        debug_assert!(
            !self.is_plain || self.sum_micros == 0,
            "what came before belongs to another statement"
        );
        self.is_entered = true;
        self.entered_micros = self.sum_micros;
        self.last.partition = partition;
        self.last.spread = spread;
        if self.key_weight > 0 {
            self.last.key = key.map(|(_, key)| key.clone());
        }
    }

    /// Moves the last charge to the others, unless it is of this partition. Returns whether it did.
    #[inline(never)]
    fn leave(&mut self, partition: PartitionRef, spread: Option<i64>) -> bool {
        self.fold();
        if self.last.partition == partition && self.last.spread == spread {
            return false;
        }
        self.is_plain = false;
        let last = self.take_last();
        self.before.extend(last);
        true
    }

    const fn last_micros(&self) -> u64 {
        self.sum_micros.saturating_sub(self.entered_micros)
    }

    fn take_last(&mut self) -> Option<Charge> {
        let micros = self.last_micros();
        let last = std::mem::replace(&mut self.last, Charge::NONE);
        std::mem::take(&mut self.is_entered).then_some(Charge { micros, ..last })
    }

    fn last(&self) -> Option<&Charge> {
        self.is_entered.then_some(&self.last)
    }

    /// Adds the price of the rows scanned to the sums.
    fn fold(&mut self) {
        if self.scanned_micros > 0 {
            let micros = std::mem::take(&mut self.scanned_micros);
            self.add_read(Stage::Scan, micros);
        }
    }

    #[inline]
    fn add(&mut self, stage: Stage, micros: u64) {
        if !self.is_on() {
            return;
        }
        self.sum_micros = self.sum_micros.saturating_add(micros);
        if let Some(sum) = self.stages.get_mut(stage as usize) {
            *sum = sum.saturating_add(micros);
        }
    }

    #[inline]
    fn add_read(&mut self, stage: Stage, micros: u64) {
        self.add(stage, micros);
        if self.read_factor > 1 {
            let others = micros.saturating_mul(u64::from(self.read_factor) - 1);
            self.add(Stage::Replicas, others);
        }
    }

    /// Charges a row read by its whole key; 0 bytes if there is none.
    #[inline]
    pub fn lookup(&mut self, row_bytes: usize) {
        self.add_read(Stage::Lookup, self.prices.lookup_micros(row_bytes));
    }

    /// Charges a range read for its visit of a physical partition.
    pub fn visit(&mut self) {
        self.add_read(Stage::Visit, self.prices.visit_micros());
    }

    /// Charges a row scanned in a range.
    #[inline]
    pub fn scan(&mut self, row_bytes: usize) {
        self.scanned_micros = self.scanned_micros.saturating_add(self.prices.scan_micros(row_bytes));
    }

    /// Charges a row returned.
    #[inline]
    pub fn give_back(&mut self, result_bytes: usize) {
        let micros = self.prices.return_micros(result_bytes);
        if micros > 0 {
            self.add(Stage::Return, micros);
        }
    }

    /// Charges the row that a condition, or an operation on a list, reads before the write. The replica that writes
    /// reads it, so the price is the same at every level.
    pub fn look_before_write(&mut self, row_bytes: usize) {
        self.add(Stage::Lookup, self.prices.lookup_micros(row_bytes));
    }

    /// Charges a row written. `row_bytes` is the size of the row after the write or, if it is deleted, before;
    /// `existed` whether there was one before; `indexed` how many indexed columns the write touches.
    pub fn write(&mut self, how: RowWrite, row_bytes: usize, existed: bool, indexed: usize) {
        self.add(Stage::Write, self.prices.write_micros(how, row_bytes, existed));
        if indexed > 0 {
            self.add(Stage::Index, self.prices.index_micros(indexed));
        }
    }

    /// Charges a statement on system tables or on the schema: one price for all.
    pub fn metadata(&mut self) {
        self.is_plain = false;
        self.add(Stage::Metadata, self.prices.metadata_micros());
    }

    /// The current state, for [`Charges::restore`].
    #[must_use]
    pub fn mark(&mut self) -> Mark {
        self.fold();
        Mark {
            entries: self.before.len() + usize::from(self.is_entered),
            last_micros: self.last_micros(),
            stages: self.stages,
        }
    }

    /// Takes back everything charged since a mark: the page that will contain the row is charged for it. Later charges
    /// still go to the partition entered last.
    pub fn restore(&mut self, mark: Mark) {
        self.scanned_micros = 0;
        // Partitions entered since the mark are removed. The last one at the mark is last again, with its charge at the
        // mark.
        self.is_plain = false;
        let current = self.take_last();
        self.before.extend(current.clone());
        self.before.truncate(mark.entries);
        self.stages = mark.stages;
        self.sum_micros = self.stages.iter().fold(0, |sum, stage| sum.saturating_add(*stage));
        if let Some(last) = self.before.pop() {
            self.is_entered = true;
            self.last = last;
            self.entered_micros = self.sum_micros.saturating_sub(mark.last_micros);
        }
        let is_last = |current: &Charge| {
            // The read is still in the partition entered last. If that is not the mark's partition, it is entered again
            // without a charge.
            self.last()
                .is_some_and(|last| last.partition == current.partition && last.spread == current.spread)
        };
        if let Some(current) = current.filter(|current| !is_last(current)) {
            let last = self.take_last();
            self.before.extend(last);
            self.is_entered = true;
            self.last = current;
            self.entered_micros = self.sum_micros;
        }
    }

    /// Ends a page. `carried_micros` is the fraction that the page before left. Returns the fraction that this page
    /// leaves to the next; 0 if there is none.
    ///
    /// # Errors
    /// [`Broken`] unless the parts of the page's charges add up: otherwise a client would pay twice or not at all.
    pub fn end_page(&mut self, carried_micros: u16, goes_on: bool) -> Result<u16, Broken> {
        self.check(u64::from(carried_micros))?;
        self.carried_micros = u64::from(carried_micros);
        self.goes_on = goes_on;
        if !goes_on {
            return Ok(0);
        }
        let left = self.micros().saturating_add(self.carried_micros) % MICROS_IN_HUNDREDTH;
        // Less than a hundredth of a unit, which is ten thousand millionths, so it fits.
        Ok(u16::try_from(left).unwrap_or(u16::MAX))
    }

    /// Checks that stages and partitions both add up to the page's charge. Metadata may be charged to no partition.
    fn check(&mut self, carried_micros: u64) -> Result<(), Broken> {
        self.fold();
        let sum = self.sum_micros;
        let stages = self.stages.iter().fold(0_u64, |sum, stage| sum.saturating_add(*stage));
        let metadata = self.stages.get(Stage::Metadata as usize).copied().unwrap_or(0);
        let last = self.is_entered.then(|| self.last_micros());
        let places = self.before.iter().map(Charge::micros).chain(last);
        let places = places.fold(0, u64::saturating_add);
        let is_placed = !self.is_entered || places == sum || places.saturating_add(metadata) == sum;
        let adds_up = stages == sum && is_placed && carried_micros < MICROS_IN_HUNDREDTH;
        Invariant::ChargesAddUp.check(adds_up, || {
            format!(
                "a sum of {sum}, of stages {stages}, of partitions {places}; {carried_micros} left by the page before"
            )
        })
    }

    /// The exact total, in millionths of a unit, without the fraction that the page before left.
    #[must_use]
    #[inline]
    pub fn micros(&self) -> u64 {
        let scanned = self.scanned_micros.saturating_mul(u64::from(self.read_factor));
        self.sum_micros.saturating_add(scanned)
    }

    /// The total that clients see: rounded down to hundredths if more pages follow, to the nearest on the last page.
    #[must_use]
    #[inline]
    pub fn total(&self) -> RequestUnits {
        let micros = self.micros().saturating_add(self.carried_micros);
        if self.goes_on {
            RequestUnits::hundredths(micros / MICROS_IN_HUNDREDTH)
        } else {
            RequestUnits::rounded(micros)
        }
    }

    /// The rounded charge of one stage.
    #[must_use]
    pub fn of(&self, stage: Stage) -> RequestUnits {
        let scanned = match stage {
            Stage::Scan => self.scanned_micros,
            Stage::Replicas => self
                .scanned_micros
                .saturating_mul(u64::from(self.read_factor).saturating_sub(1)),
            _ => 0,
        };
        RequestUnits::rounded(
            self.stages
                .get(stage as usize)
                .map_or(0, |sum| sum.saturating_add(scanned)),
        )
    }

    /// The charges of partitions, in the order in which the statement entered them. A physical partition may occur
    /// several times, with different keys or with the same key again. Charges for metadata belong to no partition.
    pub fn partitions(&mut self) -> impl Iterator<Item = &Charge> {
        self.fold();
        self.last.micros = self.last_micros();
        let all = self.before.iter().chain(self.last());
        all.filter(|charge| charge.micros > 0)
    }

    /// The physical partition, the spread and the charge in millionths of a statement that entered one logical
    /// partition, once, and whose key is not kept. This fast path covers nearly all statements. `None` means that the
    /// caller needs [`Charges::partitions`].
    #[inline(always)]
    pub fn plain(&self) -> Option<(PartitionRef, i64, u64)> {
        let spread = self.last.spread.filter(|_| self.is_plain)?;
        Some((self.last.partition, spread, self.micros()))
    }

    /// The sums of reads by stage at one replica, in millionths of a unit: what the owner of a partition tells the machine
    /// that asked. They grow while the statement runs.
    pub fn read_sums(&mut self) -> ReadSums {
        self.fold();
        let of = |stage: Stage| self.stages.get(stage as usize).copied().unwrap_or(0);
        ReadSums {
            lookup_micros: of(Stage::Lookup),
            visit_micros: of(Stage::Visit),
            scan_micros: of(Stage::Scan),
        }
    }

    /// Adds reads that the owner of a partition has charged at one replica.
    pub fn add_reads(&mut self, sums: ReadSums) {
        let ReadSums {
            lookup_micros,
            visit_micros,
            scan_micros,
        } = sums;
        for (stage, micros) in [
            (Stage::Lookup, lookup_micros),
            (Stage::Visit, visit_micros),
            (Stage::Scan, scan_micros),
        ] {
            if micros > 0 {
                self.add_read(stage, micros);
            }
        }
    }

    /// The sums of all stages, in millionths of a unit.
    pub fn stage_sums(&mut self) -> [u64; Stage::ALL.len()] {
        self.fold();
        self.stages
    }

    /// Adds the charges that the owner of partitions has recorded: those of logical partitions, and the sums of all
    /// stages. Without effect where nothing is charged.
    pub fn absorb(&mut self, charges: impl IntoIterator<Item = (PartitionRef, Option<i64>, u64)>, sums: &[u64]) {
        if !self.is_on() {
            return;
        }
        self.fold();
        self.is_plain = false;
        let last = self.take_last();
        self.before.extend(last);
        for (partition, spread, micros) in charges {
            self.before.push(Charge {
                partition,
                spread,
                key: None,
                micros,
            });
        }
        for (stage, sum) in self.stages.iter_mut().zip(sums) {
            *stage = stage.saturating_add(*sum);
            self.sum_micros = self.sum_micros.saturating_add(*sum);
        }
        // The last one is entered, so that a check of the sums covers the places.
        if let Some(last) = self.before.pop() {
            self.entered_micros = self.sum_micros.saturating_sub(last.micros);
            self.last = last;
            self.is_entered = true;
        }
    }

    /// The price of a read of a row of up to 1 KiB by its whole key.
    #[must_use]
    pub fn price_of_lookup(&self) -> RequestUnits {
        RequestUnits::rounded(
            self.prices
                .lookup_micros(0)
                .saturating_mul(u64::from(self.read_factor.max(1))),
        )
    }

    /// The price of one indexed column written.
    #[must_use]
    pub fn price_of_index(&self) -> RequestUnits {
        RequestUnits::rounded(self.prices.index_micros(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HERE: PartitionRef = PartitionRef { table: 1, partition: 0 };
    const KIB: usize = 1024;

    fn charges() -> Charges {
        let mut charges = Charges::new(Coefficients::default(), 1);
        charges.enter(HERE, None);
        charges
    }

    fn hundredths(charge: impl FnOnce(&mut Charges)) -> u64 {
        let mut charges = charges();
        charge(&mut charges);
        charges.total().in_hundredths()
    }

    #[test]
    fn charges_meet_the_published_points() {
        for (charged, expected) in [
            (hundredths(|c| c.lookup(0)), 100),
            (hundredths(|c| c.lookup(KIB)), 100),
            (hundredths(|c| c.lookup(100 * KIB)), 1000),
            (hundredths(|c| c.write(RowWrite::Insert, 10, false, 0)), 500),
            (hundredths(|c| c.write(RowWrite::Insert, KIB, false, 0)), 500),
            (hundredths(|c| c.write(RowWrite::Insert, 100 * KIB, false, 0)), 5000),
            (hundredths(|c| c.write(RowWrite::Insert, KIB, true, 0)), 1000),
            (hundredths(|c| c.write(RowWrite::Update, KIB, false, 0)), 1000),
            (hundredths(|c| c.write(RowWrite::Delete, 0, false, 0)), 500),
            (hundredths(|c| c.write(RowWrite::Delete, 100 * KIB, true, 0)), 5000),
            (hundredths(|c| c.write(RowWrite::Insert, KIB, false, 6)), 800),
            (hundredths(Charges::visit), 230),
            (
                hundredths(|c| {
                    c.visit();
                    c.scan(KIB);
                }),
                319,
            ),
            (hundredths(|c| (0..1000).for_each(|_| c.scan(KIB))), 89_000),
            (hundredths(Charges::metadata), 100),
        ] {
            assert_eq!(charged, expected);
        }
    }

    #[test]
    fn a_second_replica_doubles_reads_and_nothing_else() {
        let mut charges = Charges::new(Coefficients::default(), 2);
        charges.enter(HERE, None);
        charges.lookup(KIB);
        charges.write(RowWrite::Insert, KIB, false, 0);
        assert_eq!(charges.total(), RequestUnits::whole(7));
        assert_eq!(charges.of(Stage::Replicas), RequestUnits::whole(1));
    }

    #[test]
    fn partitions_add_up_to_the_whole() {
        let mut charges = charges();
        let there = PartitionRef { table: 1, partition: 7 };
        let key = Bytes::from_static(b"k");
        charges.visit();
        charges.enter(there, Some((5, &key)));
        charges.scan(KIB);
        charges.enter(there, Some((5, &key)));
        charges.scan(KIB);
        let of: Vec<(u64, u64)> = charges
            .partitions()
            .map(|charge| (charge.partition.partition, charge.micros()))
            .collect();
        assert_eq!(of, [(0, 2_300_000), (7, 1_780_000)]);
        assert_eq!(charges.micros(), 4_080_000);
    }

    #[test]
    fn what_is_taken_back_is_gone() {
        let mut charges = charges();
        charges.scan(KIB);
        let mark = charges.mark();
        charges.scan(KIB);
        charges.enter(PartitionRef { table: 1, partition: 1 }, None);
        charges.visit();
        charges.restore(mark);
        assert_eq!(charges.micros(), 890_000);
        assert_eq!(charges.partitions().count(), 1);
        let mark = Charges::new(Coefficients::default(), 1).mark();
        charges.restore(mark);
        assert!(charges.micros() == 0 && charges.partitions().next().is_none());
    }

    #[test]
    fn a_page_whose_charges_do_not_add_up_is_not_ended() {
        let broken = Err(Broken(Invariant::ChargesAddUp));
        let with = |breaks: fn(&mut Charges)| {
            let mut charges = charges();
            charges.lookup(KIB);
            charges.enter(PartitionRef { table: 1, partition: 7 }, None);
            charges.scan(KIB);
            let mark = charges.mark();
            charges.visit();
            charges.restore(mark);
            breaks(&mut charges);
            charges
        };
        assert!(with(|_| ()).end_page(9_999, true).is_ok());
        assert_eq!(with(|_| ()).end_page(10_000, true), broken);
        for breaks in [
            // A row in the sum but in no stage, a partition that is missing, a partition that is charged twice.
            (|charges| charges.sum_micros += 1) as fn(&mut Charges),
            |charges| charges.before.clear(),
            |charges| charges.before.extend(charges.before.clone()),
        ] {
            assert_eq!(with(breaks).end_page(0, false), broken);
        }
    }

    #[test]
    fn keys_are_kept_for_those_who_count_them() {
        let key = Bytes::from_static(b"k");
        for (weight, kept) in [(0, None), (16, Some(key.clone()))] {
            let mut charges = Charges::with_keys(Coefficients::default(), 1, weight);
            charges.enter(HERE, Some((5, &key)));
            charges.lookup(KIB);
            let charge = charges.partitions().next().unwrap();
            assert_eq!((charge.spread, charge.key.clone()), (Some(5), kept));
        }
    }

    #[test]
    fn where_nothing_is_charged_nothing_is() {
        let mut charges = Charges::new(Coefficients::default(), 0);
        charges.enter(HERE, None);
        charges.lookup(KIB);
        charges.visit();
        charges.give_back(KIB);
        charges.write(RowWrite::Insert, KIB, false, 2);
        charges.metadata();
        assert!(!charges.is_on() && charges.micros() == 0 && charges.partitions().next().is_none());
    }

    #[test]
    fn charges_never_overflow() {
        let mut charges = charges();
        for _ in 0..3 {
            charges.lookup(usize::MAX);
            charges.scan(usize::MAX);
            charges.write(RowWrite::Update, usize::MAX, true, usize::MAX);
        }
        assert!(charges.total() > RequestUnits::whole(1));
    }

    proptest! {
        #[test]
        fn pages_add_up_to_the_whole(rows in prop::collection::vec(0_usize..5000, 0..60), page in 1_usize..10) {
            let mut whole = charges();
            whole.visit();
            rows.iter().for_each(|bytes| whole.scan(*bytes));
            let mut sum = RequestUnits::ZERO;
            let mut left = 0;
            let pages: Vec<&[usize]> = if rows.is_empty() { vec![&[]] } else { rows.chunks(page).collect() };
            for (number, rows) in pages.iter().enumerate() {
                let mut charges = charges();
                if number == 0 {
                    charges.visit();
                }
                rows.iter().for_each(|bytes| charges.scan(*bytes));
                left = charges.end_page(left, number + 1 < pages.len()).unwrap();
                sum += charges.total();
            }
            prop_assert_eq!(sum, whole.total());
        }
    }
}
