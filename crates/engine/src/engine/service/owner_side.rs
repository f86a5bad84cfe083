//! What other machines ask of this one, as the owner of the partitions: commands, which are admitted, executed and charged here, and the
//! catalog, which they follow.
//!
//! A follower gets all records of the catalog when it begins, and then those that have changed ([`Engine::apply`]). The number of a catalog
//! is this process's own. A change has it when it is published, so a follower that has applied the records of a number, or of one above it,
//! answers by what was acknowledged before.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use tokio::sync::watch;

use super::Engine;
use crate::engine::catalog::{CatalogRecords, followed};
use crate::engine::gates;
use crate::engine::owner::carrier::Asked;
use crate::engine::owner::question::Question;
use crate::engine::owner::read::{ChargedTo, OwnersPage};
use crate::engine::owner::rows_answer::{self, RowsAnswer};
use crate::engine::owner::tables::{OwnTables, undecodable};
use crate::engine::owner::writes_answer;
use crate::engine::part::Scratch;
use crate::engine::receipt::{Ended, Executed, Origin};
use crate::engine::snapshot::Snapshot;
use crate::engine::terms::request::{Request, Terms};
use crate::engine::write::condition::Written;
use crate::engine::{Error, levels};
use crate::throughput::{Charges, ReadSums};
use helenus_base::metrics::StatementKind;
use helenus_schema::command::codec::{BoundWrites, ReadRequest};
use helenus_schema::schema::system;
use helenus_types::consistency::{Consistency, WriteKind};

/// Commands of other machines, as the meter sees them: the machine that asked has their texts.
static ELSEWHERE: LazyLock<[Arc<Origin>; 2]> =
    LazyLock::new(|| [StatementKind::Select, StatementKind::Batch].map(Origin::unlogged));

/// What the request that a message belongs to ended with, for the meter. The code of a failure is its front end's.
const fn ended(is_answered: bool) -> Ended {
    if is_answered {
        Ended::Answered { row_bytes: 0 }
    } else {
        Ended::Failed { code: 0 }
    }
}

/// This machine as the owner of partitions that others ask.
#[derive(Clone, Copy)]
pub struct OwnerSide<'a> {
    engine: &'a Engine,
}

impl std::fmt::Debug for OwnerSide<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OwnerSide").finish_non_exhaustive()
    }
}

impl<'a> OwnerSide<'a> {
    pub(super) const fn of(engine: &'a Engine) -> Self {
        Self { engine }
    }
}

impl OwnerSide<'_> {
    /// A number that rises with every change of the catalog that a follower needs. It is this process's own.
    #[must_use]
    pub fn catalog_changes(self) -> watch::Receiver<u64> {
        self.engine.catalog.published.changes.subscribe()
    }

    /// Makes followers ask again, because something beside the catalog has changed, as the roles.
    pub fn tell_followers(self) {
        self.engine.catalog.published.changes.send_modify(|number| *number += 1);
    }

    /// The records that a follower needs, and a number of the catalog that they have reached.
    ///
    /// # Errors
    /// The store fails, or its catalog is in doubt.
    pub async fn catalog_records(self) -> Result<(u64, CatalogRecords), Error> {
        self.engine.resolve_in_doubt().await;
        self.engine.catalog.refuse_in_doubt(Consistency::All)?;
        // Before the records are read: they have this change and may have later ones.
        let number = *self.engine.catalog.published.changes.borrow();
        Ok((number, followed(self.engine.catalog.main()).await?))
    }

    /// Forgets the snapshots of pages whose last part was read long ago. To be called every second or so.
    pub fn forget_old_pages(self) {
        self.engine.moments.forget_old(self.engine.clock.monotonic());
    }

    const fn tables_of(self, snapshot: &Snapshot) -> OwnTables<'_> {
        OwnTables {
            snapshot,
            mask_calls: self.engine.mask_calls,
        }
    }

    /// Executes what another machine asks, as the owner of the partitions, and answers in bytes. A failure is an answer,
    /// too.
    pub async fn answer(self, asked: Asked, question: &Bytes) -> Bytes {
        match (asked, Question::decode(question)) {
            (Asked::Rows, None) => rows_answer::failed(&unreadable()),
            (_, None) => writes_answer::encode(&Err(unreadable()), &mut self.engine.ledger.at_one_replica()),
            (Asked::Rows, Some(question)) => match self.answer_rows(&question).await {
                Ok(answer) => answer,
                Err(error) => rows_answer::failed(&self.read_failed(&question, error)),
            },
            (Asked::Writes | Asked::RepeatableWrites, Some(question)) => self.answer_writes(&question).await,
        }
    }

    fn read_failed(self, question: &Question, error: Error) -> Error {
        let level = levels::read(self.engine.rules(), question.consistency, false);
        error.at_edge(level.unwrap_or(question.consistency), WriteKind::Simple)
    }

    async fn answer_rows(self, question: &Question) -> Result<Bytes, Error> {
        self.engine.resolve_in_doubt().await;
        let request = self.engine.request(terms_of(question));
        let snapshot = Arc::clone(&request.snapshot);
        let asked = ReadRequest::decode(&question.message, &self.tables_of(&snapshot)).map_err(undecodable)?;
        if system::is_local(&asked.table.keyspace) {
            return Err(Error::Fault(
                "a message names a table that each machine has for itself".to_owned(),
            ));
        }
        let read = asked.to_read();
        let partitions = snapshot.partitions(&read.table)?;
        let kept = (question.page != 0)
            .then(|| self.engine.moments.take(question.page))
            .flatten();
        let admitted =
            gates::admit_read(self.engine.gates(), &request, &read, partitions, asked.resume.as_ref()).await?;
        let mut view = kept.unwrap_or(admitted);
        let mut sheet = self.engine.ledger.at_one_replica();
        let mut rows = RowsAnswer::new(&read, asked.rows_wanted.and_then(|rows| usize::try_from(rows).ok()));
        let (charged, answer, is_answered) = {
            let mut page = OwnersPage {
                snapshot: &snapshot,
                indexes: &self.engine.catalog.published.indexes,
                view: &mut view,
                context: request.context(),
            };
            let part = page.part(&asked, &read)?;
            let mut scratch = Scratch::new(&part.layout, read.is_grouped(), &mut sheet);
            let mut receipt = page.run(&part, &asked, &read, &mut scratch, &mut rows).await;
            receipt.ended = receipt.ended.map_err(|error| self.read_failed(question, error));
            let is_answered = receipt.ended.is_ok();
            (part.charged, rows.end(receipt), is_answered)
        };
        if question.page != 0 && !question.is_last {
            let now = self.engine.clock().monotonic();
            self.engine.moments.keep(question.page, view, now);
        }
        self.charge_rows(&request, charged, sheet.read_sums(), is_answered);
        Ok(answer)
    }

    /// Charges the budgets of this machine with what a part has cost.
    fn charge_rows(self, request: &Request<'_>, to: ChargedTo, sums: ReadSums, is_answered: bool) {
        let mut charges = self.engine.charges(request);
        charges.enter(to.partition, to.key.as_ref().map(|(spread, key)| (*spread, key)));
        charges.add_reads(sums);
        let [of_reads, _] = &*ELSEWHERE;
        let executed = Executed::Statement(of_reads);
        self.engine
            .charge(request, executed, &mut charges, ended(is_answered), &mut Vec::new());
    }

    async fn answer_writes(self, question: &Question) -> Bytes {
        self.engine.resolve_in_doubt().await;
        let mut request = self.engine.request(terms_of(question));
        let mut charges = self.engine.charges(&request);
        let written = self.write_for(question, &mut request, &mut charges).await;
        let answer = writes_answer::encode(&written, &mut charges);
        let [_, of_writes] = &*ELSEWHERE;
        let executed = Executed::Statement(of_writes);
        self.engine.charge(
            &request,
            executed,
            &mut charges,
            ended(written.is_ok()),
            &mut Vec::new(),
        );
        answer
    }

    async fn write_for(
        self,
        question: &Question,
        request: &mut Request<'_>,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        let snapshot = Arc::clone(&request.snapshot);
        let bound = BoundWrites::decode(&question.message, &self.tables_of(&snapshot)).map_err(undecodable)?;
        let level = levels::write(self.engine.rules(), question.consistency);
        let written = self.write_bound(&bound, &snapshot, request, charges).await;
        written.map_err(|error| error.at_edge(level, bound.write_kind))
    }

    async fn write_bound(
        self,
        bound: &BoundWrites,
        snapshot: &Snapshot,
        request: &Request<'_>,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        for write in &bound.writes {
            gates::refuse_system(&write.table)?;
        }
        self.engine.catalog.refuse_in_doubt(bound.consistency)?;
        let owner = self.engine.owner_of_writes(snapshot);
        let (routed, write) = owner.routed(bound)?;
        let planned_failure = gates::admit_write(self.engine.gates(), request, &routed, &write).await?;
        let written = owner.apply(bound, &routed, &write, charges).await?;
        gates::planned_failure(planned_failure)?;
        Ok(written)
    }
}

/// The terms of a request of which only a command has come.
fn terms_of<'a>(question: &Question) -> Terms<'a> {
    Terms {
        consistency: question.consistency,
        ..Terms::default()
    }
}

#[cold]
fn unreadable() -> Error {
    Error::Fault("a message of another machine cannot be read".to_owned())
}
