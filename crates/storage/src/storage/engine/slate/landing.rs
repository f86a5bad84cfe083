//! How a written group becomes durable: it is put with the log, published, and answered.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use slatedb::Db;
use slatedb::config::FlushType;

use super::committer::{Committer, answer_batches, put};
use super::flight::{Lateness, PutEvent, Written};
use super::group::{Group, Request};
use super::tuning::LOG_OBJECTS_MAX;
use crate::storage::engine::options::Durability;
use crate::storage::{CommitSeq, Error, Result};

impl Committer {
    /// Writes a group; its batches are answered once it is as durable as the settings say.
    pub(super) async fn send_off(&mut self, group: Group, batches: Vec<(Request, Option<Error>)>) {
        // Decided by its changes, not by its number: after a reopening, numbers may lie below those of lost groups.
        let has_changes = !group.folds.is_empty() || !group.own.is_empty();
        let mut written = match self.write(Arc::new(group)).await {
            Ok(written) => written,
            Err(error) => return answer_batches(batches, &Err(error)),
        };
        written.batches = batches;
        let is_awaited = self.options.durability == Durability::Group;
        let now = self.home.ticks.monotonic();
        // A group without changes waits for the groups written before it.
        if is_awaited && (has_changes || !self.flight.is_empty()) {
            if let Some(log) = self.home.log.as_ref().filter(|_| has_changes) {
                log.gather(written.batches.len());
            }
            self.flight.add(written, now);
        } else {
            self.keep_unlogged(&written);
            self.publish(vec![written]);
        }
    }

    /// Writes a group and waits until it is published.
    pub(super) async fn write_through(&mut self, group: Group) -> Result<CommitSeq> {
        let written = self.write(Arc::new(group)).await?;
        if self.options.durability == Durability::Group {
            self.flight.add(written, self.home.ticks.monotonic());
            self.land().await?;
        } else {
            self.keep_unlogged(&written);
            self.publish(vec![written]);
        }
        Ok(self.seq)
    }

    /// Begins to put the log with everything written.
    pub(super) fn begin_put(&mut self) {
        let Some(database) = self.database.clone() else { return };
        let (home, longest) = (Arc::clone(&self.home), self.home.patience().put_max);
        let task = tokio::spawn(async move {
            let flush = put(&home, &database, FlushType::Wal);
            if home.is_remote() {
                // It goes on when it is late.
                flush.await
            } else {
                home.within(longest, flush).await
            }
        });
        let began = self.home.ticks.monotonic();
        let is_awaited = self.home.is_remote() && !self.is_stalled();
        let late = is_awaited.then(|| -> Lateness { Box::pin(Arc::clone(&self.home).late(began)) });
        self.flight.begin(task, late);
    }

    /// Waits until nothing is in flight, or until the store is stalled.
    pub(super) async fn land(&mut self) -> Result<()> {
        while !self.flight.is_empty() {
            if let Some(stalled) = self.stalled() {
                return Err(stalled);
            }
            if !self.flight.is_put() {
                self.begin_put();
            }
            let result = match self.flight.put_event().await {
                PutEvent::Ended(result) => result,
                PutEvent::Late(error) => {
                    self.stall(&error);
                    return Err(error);
                }
            };
            self.end_put(result).await?;
        }
        Ok(())
    }

    /// Why nothing is written now ([`Self::stall`]). `None` means that it is.
    pub(super) fn stalled(&self) -> Option<Error> {
        self.shared.stalled.load().as_deref().cloned()
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.shared.stalled.load().is_some()
    }

    /// Answers all batches in flight as failed, and takes no others until their groups are durable: then they have an
    /// effect all the same. Meanwhile the put goes on, and reads return what was published before.
    pub(super) fn stall(&mut self, error: &Error) {
        tracing::error!(%error, location = %self.home.location, "the store takes no writes until its log can be put");
        answer_batches(self.flight.take_batches(), &Err(error.clone()));
        self.shared.stalled.store(Some(Arc::new(error.clone())));
        self.flight.note_late();
        if !self.flight.is_put() {
            self.begin_put();
        }
    }

    /// Takes writes again, once everything that was written is durable and published. Begins another opening: a request
    /// may have read the state before, and would not meet the effects of batches that were answered as failed.
    fn end_stall(&mut self) {
        self.shared.stalled.store(None);
        self.drawn.all_published();
        self.shared.openings.fetch_add(1, Ordering::AcqRel);
        tracing::info!(location = %self.home.location, "the store takes writes again");
    }

    /// Puts the log before more is written. If a bucket does not take it, the store is stalled.
    pub(super) async fn put_first(&mut self) -> Result<()> {
        let result = self.put(FlushType::Wal).await;
        let is_open = |database: &Db| database.subscribe().borrow().close_reason.is_none();
        if let Err(error) = &result
            && self.home.is_remote()
            && self.home.medium.lost().is_none()
            && self.database.as_ref().is_some_and(is_open)
        {
            self.stall(error);
        }
        result
    }

    /// Puts the log before the database is closed. A put that is late gets its time once more if acknowledged groups
    /// wait for it.
    pub(super) async fn put_last(&mut self) -> Result<()> {
        if self.failed || self.home.medium.lost().is_some() {
            self.report_unlogged();
            return Ok(());
        }
        let Some(stalled) = self.stalled() else {
            let put = self.put(FlushType::Wal).await;
            if put.is_err() {
                self.report_unlogged();
            }
            return put;
        };
        if !self.has_unlogged() {
            return Ok(());
        }
        let longest = self.home.patience().put_max;
        match tokio::time::timeout(longest, self.flight.put_event()).await {
            Ok(PutEvent::Ended(Ok(()))) => Ok(()),
            _ => {
                self.report_unlogged();
                Err(stalled)
            }
        }
    }

    /// Ends a put: publishes and answers its groups, or answers all groups in flight as failed.
    pub(super) async fn end_put(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = result {
            let lost = self.flight.lose();
            self.fail(&error).await;
            for written in lost {
                answer_batches(written.batches, &Err(error.clone()));
            }
            return Err(error);
        }
        let landed = self.flight.landed(self.home.ticks.monotonic());
        self.publish(landed);
        self.bound_log();
        if self.is_stalled() && self.flight.is_empty() {
            self.end_stall();
        }
        Ok(())
    }

    /// Publishes groups, the oldest first, and answers their batches.
    fn publish(&mut self, groups: Vec<Written>) {
        for written in &groups {
            written.apply_to(&self.shared.cache);
        }
        if let Some(newest) = groups.last() {
            self.shared.published.store(Some(Arc::clone(&newest.view)));
        }
        if let Some(position) = groups.iter().filter_map(|written| written.group.position).max() {
            self.drawn.published(position);
        }
        for written in groups {
            let seq = written.view.seq;
            answer_batches(written.batches, &Ok(seq));
        }
    }

    /// Writes tables before a bucket's database is closed: an opening reads the log object by object. Without them it only
    /// takes longer.
    pub(super) async fn empty_log(&mut self) {
        if !self.home.is_remote() || self.home.medium.lost().is_some() {
            return;
        }
        if let Err(error) = self.put(FlushType::MemTable).await {
            tracing::warn!(%error, location = %self.home.location, "tables were not written; the next opening reads the log");
        }
    }

    /// Starts to write tables when the log of a bucket has become long: an opening reads it object by object. A log that
    /// all databases share asks for it itself.
    fn bound_log(&mut self) {
        self.log_objects += 1;
        if self.log_objects >= LOG_OBJECTS_MAX && self.home.is_remote() && self.home.log.is_none() {
            self.begin_tables();
        }
    }

    /// Starts to write tables, if that is not under way. Commits continue meanwhile.
    pub(super) fn begin_tables(&mut self) {
        let is_busy = self.tables.as_ref().is_some_and(|tables| !tables.is_finished());
        let Some(database) = self.database.clone().filter(|_| !is_busy) else {
            return;
        };
        self.log_objects = 0;
        let home = Arc::clone(&self.home);
        let logged = home.logged();
        self.tables = Some(tokio::spawn(async move {
            match put(&home, &database, FlushType::MemTable).await {
                Ok(()) => home.tables_have(logged),
                Err(error) => {
                    tracing::debug!(%error, location = %home.location, "tables were not written; a later attempt writes them");
                }
            }
        }));
    }
}
