//! The state of a round: what the statements about a table have in common, above all the timestamps they use.
//!
//! Time stands still but for what the round moves it by, so that both servers see the same: every write says its timestamp, every
//! request its `now_in_seconds`.

use super::question::Question;
use super::schema::{Column, Table};
use super::types::Type;
use fastrand::Rng;
use std::collections::BTreeMap;

/// What comes of the last statement if it is taken.
#[derive(Debug, Clone, Default)]
pub(super) enum Effect {
    /// Nothing.
    #[default]
    None,
    /// A view.
    View(Table),
    /// A view is dropped.
    NoView(String),
    /// A column of the table.
    Column(Column),
    /// A column is dropped.
    NoColumn(String),
    /// An index that was made after writes.
    Index(Late),
    /// Such an index is dropped: its name.
    NoIndex(String),
    /// Several of these.
    Both(Vec<Self>),
    /// A column has another name.
    Renamed(String, String),
    /// A function or an aggregate; it may replace one.
    Function(Function),
    /// A function or an aggregate is dropped: its place.
    NoFunction(usize),
}

/// An index that was made after writes.
#[derive(Debug, Clone)]
pub(super) struct Late {
    /// Its name.
    pub(super) name: String,
    /// The column that it is on.
    pub(super) column: String,
}

/// What a round of this kind knows besides.
#[derive(Debug, Default)]
pub(super) struct Drops {
    /// Columns that are dropped, as they were.
    pub(super) columns: Vec<Column>,
    /// The timestamps of their last drops; those of the server's clock are the greatest.
    pub(super) last: BTreeMap<String, i64>,
    /// Indexes that were made after writes.
    pub(super) indexes: Vec<Late>,
    /// Whether such indexes are made.
    pub(super) has_indexes: bool,
    /// Whether the columns are added again at once.
    pub(super) comes_back: bool,
}

/// A function or an aggregate.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) arguments: Vec<Type>,
    pub(super) returns: Type,
    pub(super) is_aggregate: bool,
}

impl Function {
    /// Whether both have the same name and arguments, so that one replaces the other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }

    pub(super) fn signature(&self) -> String {
        let types = self.arguments.iter().map(Type::cql).collect::<Vec<_>>();
        format!("{}({})", self.name, types.join(", "))
    }
}

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
    /// Views of the table, as tables to read.
    pub(super) views: Vec<Table>,
    /// Functions and aggregates of the keyspace.
    pub(super) functions: Vec<Function>,
    /// What the last statement changes of the schema if it is taken.
    pub(super) pending: Effect,
    /// Changes of the schema that come next.
    pub(super) queued: Vec<(Question, Effect)>,
    /// Columns that are dropped, and what belongs to it.
    pub(super) drops: Drops,
    /// Whether there are views.
    pub(super) has_views: bool,
    /// Whether columns are dropped and added again.
    pub(super) has_drops: bool,
    /// Whether there are functions.
    pub(super) has_functions: bool,
    /// Whether there are roles.
    pub(super) has_roles: bool,
    /// How many names were given to views, functions and columns.
    pub(super) named: usize,
    /// The last timestamp that was the greatest.
    pub(super) clock: i64,
    /// Timestamps used so far, for ties; the last few.
    pub(super) used: Vec<i64>,
    /// Now, seconds.
    pub(super) now: i32,
}

impl Round {
    /// A number that no name has yet.
    pub(super) fn number_of_next(&mut self) -> usize {
        self.named += 1;
        self.named
    }

    /// The greatest timestamp so far.
    pub(super) fn last_timestamp(&self) -> i64 {
        self.clock
    }

    /// One of the last timestamps.
    pub(super) fn used_timestamp(&mut self) -> Option<i64> {
        self.rng.choice(&self.used).copied()
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
}
