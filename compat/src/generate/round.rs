//! One table's round: what the statements about it have in common, above all the timestamps they use. Time stands
//! still but for what the round moves it by, so that both servers see the same: every write says its timestamp, every
//! request its `now_in_seconds`.

use super::question::Question;
use super::schema::Table;
use super::{read, schema, spoil, write};
use fastrand::Rng;

/// What requests take for now at the start, seconds: later than any machine's clock, so that nobody's clean-up of
/// what is expired by its own clock takes part, and early enough for TTLs within 32 bits.
const START: i32 = 2_000_000_000;

/// The state of a round.
#[derive(Debug)]
pub(super) struct Round {
    /// Where everything random comes from.
    pub(super) rng: Rng,
    /// The table.
    pub(super) table: Table,
    /// Whether writes have a TTL. Not beside an index of Cassandra's first kind: it gives its entries the end that the
    /// server's own clock tells, not the request's, so that rows are lost to it long before they expire.
    pub(super) may_expire: bool,
    /// Whether what has a TTL ends within the round. Not beside a storage-attached index: Cassandra's counts what is expired by the
    /// request's clock, and live by the server's own, for the rows of a page, which ends short and is taken for the last.
    pub(super) may_end: bool,
    /// The last timestamp that was the greatest.
    clock: i64,
    /// Timestamps used so far, for ties; the last few.
    used: Vec<i64>,
    /// Now, seconds.
    now: i32,
}

impl Round {
    /// The round of this number under this seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        // Neighbouring seeds must not give neighbouring rounds.
        let mut rng =
            Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let table = schema::table(&mut rng, "t");
        Self {
            rng,
            table,
            may_expire: true,
            may_end: true,
            clock: 1_000,
            used: vec![1_000],
            now: START,
        }
    }

    /// A timestamp for a write: mostly a new one, often an old one, now and then one that is taken.
    pub(super) fn timestamp(&mut self) -> i64 {
        let stamp = match self.rng.u8(0..20) {
            0..=12 => {
                self.clock += 10;
                self.clock
            }
            13..=17 => self.rng.i64(1..=self.clock),
            _ => self.rng.choice(&self.used).copied().unwrap_or(self.clock),
        };
        if self.used.len() >= 16 {
            self.used.remove(0);
        }
        self.used.push(stamp);
        stamp
    }

    /// A time to live, seconds; some end within the round.
    pub(super) fn ttl(&mut self) -> i64 {
        match self.rng.u8(0..4) {
            _ if !self.may_end => 100_000 + self.rng.i64(0..10),
            0 => self.rng.i64(1..200),
            1 => self.rng.i64(200..4000),
            _ => 100_000 + self.rng.i64(0..10),
        }
    }

    /// The next statement; `filling` while the table needs rows. `None` when the dice made nothing.
    pub(super) fn next(&mut self, filling: bool) -> Option<Question> {
        if self.rng.u8(0..3) == 0 {
            self.now += self.rng.i32(0..40);
        }
        let mut question = match self.rng.u8(0..100) {
            _ if filling => write::insert(self)?,
            0..=41 => write::any(self)?,
            _ => read::any(self)?,
        };
        if !filling && self.rng.u8(0..20) == 0 {
            question = spoil::spoil(&mut self.rng, question);
        }
        question.now = Some(self.now);
        // A write whose own timestamp the dice have left out or spoiled still has one that both servers know.
        if question.kind == super::question::Kind::Write {
            question.timestamp = Some(self.clock);
        }
        Some(question)
    }
}
