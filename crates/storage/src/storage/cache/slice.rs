//! A scan inside one logical partition, by way of the cache: the rows of runs are visited at once, what lies between them is read by
//! the engine and left as runs.

use std::ops::ControlFlow;

use super::RowCache;
use super::runs::{Begin, Interval, ReadRows, TableToken};
use crate::storage::CommitSeq;
use crate::storage::key::KeyRange;
use crate::storage::scanning::{Order, SCAN_STRIDE_ENTRIES};

/// A scan in progress.
pub(in crate::storage) struct Slice<'c> {
    cache: &'c RowCache,
    token: TableToken,
    /// The keys that are left.
    keys: Interval,
    order: Order,
    at: CommitSeq,
    /// Rows visited since the last turn.
    visited: usize,
}

/// What comes next.
pub(in crate::storage) enum Next {
    /// The range is finished, or the visitor stopped.
    Done,
    /// Other tasks have their turn.
    Yield,
    /// The engine reads these keys, then [`Slice::has_read`].
    Read(Hole),
}

/// Keys of which no run is in memory, and their rows as the engine reads them.
pub(in crate::storage) struct Hole {
    keys: Interval,
    /// `None` means that they are not kept.
    read: Option<ReadRows>,
    rows: usize,
    is_stopped: bool,
}

impl<'c> Slice<'c> {
    /// A scan of a range at a snapshot. `None` means that the range is not of one logical partition: the cache has nothing for it.
    pub(in crate::storage) fn of(range: &KeyRange, order: Order, cache: &'c RowCache, at: CommitSeq) -> Option<Self> {
        let (token, keys) = Interval::of(range)?;
        Some(Self {
            cache,
            token,
            keys,
            order,
            at,
            visited: 0,
        })
    }

    /// Visits rows as far as they are in memory.
    pub(in crate::storage) fn next(&mut self, visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Next {
        while !self.keys.is_empty() {
            if self.visited >= SCAN_STRIDE_ENTRIES {
                self.visited = 0;
                return Next::Yield;
            }
            match self.cache.runs.begin(self.token, &self.keys, self.order, self.at) {
                Begin::Run(run) => {
                    let (rows, flow) = run.visit(&self.keys, self.order, &mut *visit);
                    if flow.is_break() {
                        return Next::Done;
                    }
                    self.visited += rows;
                    self.keys.go_on(self.order, run.until(self.order).to_vec());
                }
                Begin::Hole { until, is_kept } => {
                    return Next::Read(Hole {
                        keys: self.keys.part(self.order, &until),
                        read: is_kept.then(ReadRows::default),
                        rows: 0,
                        is_stopped: false,
                    });
                }
            }
        }
        Next::Done
    }

    /// Keeps what the engine has read. `is_whole` tells whether it read to the end, unless the visitor stopped it. Returns whether the
    /// scan goes on behind it.
    pub(in crate::storage) fn has_read(&mut self, hole: Hole, is_whole: bool) -> bool {
        let is_whole = is_whole && !hole.is_stopped;
        let until = match self.order {
            Order::Forward => hole.keys.to.clone(),
            Order::Reverse => hole.keys.from.clone(),
        };
        if let Some(run) = hole.read.and_then(|read| read.run(hole.keys, self.order, is_whole)) {
            self.cache.add_run(self.token, run, self.at);
        }
        self.visited += hole.rows;
        self.keys.go_on(self.order, until);
        is_whole
    }

    /// The keys that are left.
    pub(in crate::storage) fn rest(&self) -> KeyRange {
        self.keys.range()
    }
}

impl Hole {
    /// Its keys.
    pub(in crate::storage) fn range(&self) -> KeyRange {
        self.keys.range()
    }

    /// Passes a row that the engine has read on to the scan's visitor.
    pub(in crate::storage) fn row(
        &mut self,
        key: &[u8],
        value: &[u8],
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.rows += 1;
        if let Some(read) = &mut self.read {
            read.push(key, value);
        }
        let flow = visit(key, value);
        self.is_stopped = flow.is_break();
        flow
    }
}
