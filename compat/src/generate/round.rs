//! One table's round: statement after statement about it, as the dice fall.

use super::question::{Kind, Question};
use super::state::{Drops, Effect, Round};
use super::{columns, functions, read, roles, schema, spoil, views, write};
use fastrand::Rng;

/// What requests take for now at the start, seconds: later than any machine's clock, so that nobody's clean-up of
/// what is expired by its own clock takes part, and early enough for TTLs within 32 bits.
const START: i32 = 2_000_000_000;

/// What rounds have if the dice want it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    /// Roles, which servers that ask for no login do not have.
    pub(super) roles: bool,
    /// Columns that are dropped and added again.
    pub(super) dropped_columns: bool,
}

impl Round {
    /// The round of this number under this seed.
    pub(super) fn new(seed: u64, number: u64, kind: Rounds) -> Self {
        // Neighbouring seeds must not give neighbouring rounds.
        let mut rng =
            Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let mut table = schema::table(&mut rng, "t");
        let has_views = rng.u8(0..3) == 0 && (views::is_possible(&table) || rng.u8(0..4) == 0);
        let has_functions = rng.u8(0..3) == 0;
        let has_roles = rng.u8(0..3) == 0 && kind.roles;
        let queued = if has_roles { roles::made_by() } else { Vec::new() };
        let mut drops = Drops::default();
        if kind.dropped_columns {
            columns::keep_all(&mut table);
            drops.has_indexes = !table.expires() && rng.bool();
        }
        Self {
            rng,
            table,
            may_expire: !drops.has_indexes,
            // Cassandra judges by the server's own clock what of a base row a view is to have.
            may_end: !has_views,
            drops,
            has_drops: kind.dropped_columns,
            views: Vec::new(),
            functions: Vec::new(),
            pending: Effect::None,
            queued: queued
                .into_iter()
                .map(|text| (Question::new(Kind::Schema, text), Effect::None))
                .collect(),
            has_views,
            has_functions,
            has_roles,
            named: 0,
            clock: 1_000,
            used: vec![1_000],
            now: START,
        }
    }

    /// A change of the schema, when the dice make one.
    fn change(&mut self, filling: bool) -> Option<Question> {
        if let Some((question, effect)) = self.queued.pop() {
            self.pending = effect;
            return Some(question);
        }
        let often = if filling { 12 } else { 25 };
        let comes_back = self.drops.comes_back && !self.drops.columns.is_empty();
        if self.has_drops && (comes_back || self.rng.u8(0..9) == 0) {
            return columns::change(self);
        }
        // Cassandra builds no view of rows with cells of a column that is away.
        let is_away = self.has_drops && !self.drops.columns.is_empty();
        if self.has_views && !is_away && self.rng.u8(0..often) == 0 {
            return if filling {
                Some(views::create(self))
            } else {
                views::change(self)
            };
        }
        if self.has_functions && self.rng.u8(0..often) == 0 {
            return functions::change(self);
        }
        if self.has_roles && self.rng.u8(0..if filling { 6 } else { 14 }) == 0 {
            return roles::change(self);
        }
        None
    }

    /// A read of the table, or of one of its views.
    fn read(&mut self) -> Option<Question> {
        let view = self.rng.choice(&self.views).cloned();
        let Some(view) = view.filter(|_| self.rng.u8(0..5) < 3) else {
            return read::any(self);
        };
        let table = std::mem::replace(&mut self.table, view);
        let question = read::any(self);
        self.table = table;
        question
    }

    /// The next statement; `filling` while the table needs rows. `None` when the dice made nothing.
    pub(super) fn next(&mut self, filling: bool) -> Option<Question> {
        if self.rng.u8(0..3) == 0 {
            self.now += self.rng.i32(0..40);
        }
        let changes = self.change(filling);
        let mut question = match self.rng.u8(0..100) {
            _ if changes.is_some() => changes?,
            _ if filling => write::insert(self)?,
            0..=41 => write::any(self)?,
            _ => self.read()?,
        };
        // A drop with another timestamp would be another drop.
        let can_spoil = !self.has_drops || question.kind != Kind::Schema;
        if !filling && self.rng.u8(0..20) == 0 && can_spoil {
            question = spoil::spoil(&mut self.rng, question);
            // What it comes to is not known any more.
            self.pending = Effect::None;
        }
        let is_first = matches!(question.text.strip_prefix("CREATE ROLE "), Some(rest) if !rest.starts_with("IF "));
        if self.has_roles && !is_first && self.queued.is_empty() {
            question.by = roles::asks(self);
        }
        question.now = Some(self.now);
        // A write whose own timestamp the dice have left out or spoiled still has one that both servers know.
        if question.kind == Kind::Write {
            question.timestamp = Some(self.clock);
        }
        Some(question)
    }
}
