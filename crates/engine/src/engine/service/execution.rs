//! One execution: a front end begins it with who asks, runs commands in it, and ends it.
//!
//! ```text
//! begin(Terms) ─→ Execution ─ permit ─→ read · write · batch · truncate · change_schema ─→ charge ─→ audit
//!                     ↑                          │ NoRoom                               └─ drop: both, as abandoned
//!                     └──────── restart ─────────┘
//! ```
//! Invariants: no command runs without the permissions that it needs; one catalog snapshot; it is charged once, and each command
//! makes one audit entry (of a front end with texts, each execution), also when the execution is dropped half-way. An execution that found no memory for its answer is not ended but
//! begins again, and is neither charged nor recorded before.
//!
//! Deliberately absent: text. A front end with a language adds it ([`Execution::set_origin`], [`Execution::set_subject`]).

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::super::action::{Action, ReadParts, WriteAction};
use super::super::audit::{AuditEntry, AuditFailure, AuditLog, Audited, Subject};
use super::super::error::{Error, NotChanged};
use super::super::estimate::ReadEstimate;
use super::super::read::row_sink::RowSink;
use super::super::read::sink::Shape;
use super::super::receipt::{BatchOrigin, ChargeReceipt, Ended, Executed, Origin};
use super::super::write::condition::Written;
use super::{Checked, Engine, Paging, ReadPage};
use crate::engine::snapshot::Snapshot;
use crate::engine::terms::request::{Request, Terms};
use crate::throughput::Charges;
use helenus_base::metrics::StatementKind;
use helenus_schema::command::{Batch, Condition, Read, SchemaIntent, SchemaOutcome, Write, WriteVerb};
use helenus_schema::schema::{Schema, Table};
use helenus_types::functions::Context;

/// The failure of an execution that was dropped before its end.
const ABANDONED: &str = "the request was abandoned before its end; it may have been carried out";

/// The failure of an execution whose front end refused it, and did not tell why.
const FAILED: &str = "the request failed";

/// A running request of a front end.
pub struct Execution<'a> {
    engine: &'a Engine,
    request: Request<'a>,
    charges: Charges,
    /// `None` means that no command has begun: nothing is charged.
    origin: Option<AnyOrigin>,
    /// What was permitted before its command was there.
    permitted: Vec<PermittedAhead>,
    /// `None` means that no entry is made, or that it was made.
    audit: Option<Box<AuditState<'a>>>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// It runs.
    Open,
    /// It found no memory for its answer.
    Postponed,
    /// It is charged.
    Ended(Ended),
}

enum AnyOrigin {
    Given(Arc<Origin>),
    Batch(BatchOrigin),
}

/// An action on a table, by the table's id.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PermittedAhead {
    Read(Uuid),
    Write(Uuid),
    ConditionalWrite(Uuid),
}

struct AuditState<'a> {
    log: &'a dyn AuditLog,
    /// The front end's description. `None` means that the commands describe themselves.
    subject: Option<&'a dyn Subject>,
    /// The last command, which has no entry yet.
    command: Option<Audited>,
    /// The failure of the last command.
    failure: Option<Failure>,
}

struct Failure {
    is_denied: bool,
    text: String,
}

impl std::fmt::Debug for Execution<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Execution")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Begins an execution. It sees the catalog of this moment, until its end.
    pub async fn begin<'a>(&'a self, terms: Terms<'a>) -> Execution<'a> {
        self.resolve_in_doubt().await;
        let request = self.request(terms);
        let log = self.audit_log.get().filter(|_| !terms.is_recorded_elsewhere);
        let audit = log.filter(|_| terms.client.is_some()).map(|log| {
            Box::new(AuditState {
                log: log.as_ref(),
                subject: None,
                command: None,
                failure: None,
            })
        });
        Execution {
            charges: self.charges(&request),
            engine: self,
            request,
            origin: None,
            permitted: Vec::new(),
            audit,
            state: State::Open,
        }
    }
}

impl<'a> Execution<'a> {
    /// Time and randomness for its functions.
    #[must_use]
    pub const fn context(&self) -> &Context {
        self.request.context()
    }

    /// The schema when it began.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        self.request.schema()
    }

    /// The catalog when it began.
    #[must_use]
    pub const fn snapshot(&self) -> &Arc<Snapshot> {
        &self.request.snapshot
    }

    /// When it began, by the monotonic clock.
    #[must_use]
    pub const fn began(&self) -> Duration {
        self.request.began
    }

    /// Its origin, for logs and charges: made once for a statement and shared by its executions. From now on the execution is charged
    /// at its end, whether or not a command runs.
    pub fn set_origin(&mut self, origin: Arc<Origin>) {
        self.origin = Some(AnyOrigin::Given(origin));
    }

    /// Its description in the audit log, instead of the commands' own.
    pub fn set_subject(&mut self, subject: &'a dyn Subject) {
        if let Some(audit) = &mut self.audit {
            audit.subject = Some(subject);
        }
    }

    /// Whether the audit log may get an entry of it.
    #[must_use]
    pub const fn is_audited(&self) -> bool {
        self.audit.is_some()
    }

    // Permissions.

    /// Whether a role executes it: roles are required, and it is not the server's own.
    #[must_use]
    pub fn is_of_role(&self) -> bool {
        self.request.terms.user.is_some() && self.engine.authority.roles().is_some()
    }

    /// Checks that its role may do this. A command that does what was permitted before is not checked again: so an action names all
    /// that its command will do.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub fn permit(&mut self, action: Action<'_>) -> Result<(), Error> {
        let permitted = self.engine.check_permission(&self.request, action);
        self.noted(permitted.map_err(Error::from))?;
        if self.is_of_role()
            && let Some(ahead) = PermittedAhead::of(action)
            && !self.permitted.contains(&ahead)
        {
            self.permitted.push(ahead);
        }
        Ok(())
    }

    /// Whether its role receives masks instead of the values of masked columns of a table. Its front end then masks what a command
    /// shows.
    #[must_use]
    pub fn masks(&self, table: &Table) -> bool {
        table.is_masked() && self.engine.masks(&self.request, table)
    }

    fn permit_read(&mut self, read: &Read) -> Result<(), Error> {
        if self.engine.authority.roles().is_none() || self.permitted.contains(&PermittedAhead::Read(read.table.id)) {
            return Ok(());
        }
        let parts = ReadParts::of(read);
        self.permit(parts.action(read))
    }

    fn permit_write(&mut self, write: &Write) -> Result<(), Error> {
        let id = write.table.id;
        let is_conditional = write.condition != Condition::Always;
        let is_permitted = self.permitted.contains(&PermittedAhead::ConditionalWrite(id))
            || !is_conditional && self.permitted.contains(&PermittedAhead::Write(id));
        if self.engine.authority.roles().is_none() || is_permitted {
            return Ok(());
        }
        self.permit(Action::Write(WriteAction::of(write)))
    }

    // Commands.

    /// Checks a read: its permissions, its level, its limits and its options. `page_rows` is the page size; `None` means all rows at
    /// once. `warnings` receives warnings for the client, also when the read is refused.
    ///
    /// # Errors
    /// It is refused.
    pub fn check_read<'r>(
        &mut self,
        read: &'r Read,
        page_rows: Option<u32>,
        warnings: &mut Vec<String>,
    ) -> Result<Checked<'r>, Error> {
        self.describe(|| Audited::of_read(&read.table));
        self.begin_command(StatementKind::Select, Some(&read.table));
        self.permit_read(read)?;
        let checked = self.engine.check_read(&self.request, read, page_rows, warnings);
        self.noted(checked)
    }

    /// Reads a page of rows into a sink. `shape` is the read's, made once for all reads of its kind.
    ///
    /// # Errors
    /// Replicas are missing, request units are spent, or a store fails. The sink may have received rows before. [`Error::NoRoom`]: the
    /// execution is to [`Execution::restart`], or to be dropped; it is not charged.
    pub async fn read(
        &mut self,
        shape: &Shape,
        checked: Checked<'_>,
        paging: &Paging,
        rows: &mut impl RowSink,
    ) -> Result<ReadPage, Error> {
        let (engine, charges) = (self.engine, &mut self.charges);
        let page = engine.read(&self.request, shape, checked, paging, rows, charges).await;
        if let Err(Error::NoRoom { .. }) = page {
            self.state = State::Postponed;
            return page;
        }
        self.noted(page)
    }

    /// Checks a read and reads a page of its rows. Begins again as often as there is no memory for the answer.
    ///
    /// # Errors
    /// As [`Execution::check_read`] and [`Execution::read`]. [`Error::NoRoom`]: there was no memory in time.
    pub async fn read_page<S: RowSink + Default>(
        &mut self,
        read: &Read,
        page_rows: Option<u32>,
        paging: &Paging,
    ) -> Result<(ReadPage, S), Error> {
        let shape = Shape::of(read);
        loop {
            let needed = {
                let (mut rows, mut warnings) = (S::default(), Vec::new());
                let checked = self.check_read(read, page_rows, &mut warnings)?;
                match self.read(&shape, checked, paging, &mut rows).await {
                    Err(Error::NoRoom { bytes }) => bytes,
                    Err(error) => return Err(error),
                    Ok(mut page) => {
                        warnings.append(&mut page.warnings);
                        page.warnings = warnings;
                        return Ok((page, rows));
                    }
                }
            };
            self.restart(needed).await?;
        }
    }

    /// Begins again after [`Error::NoRoom`], once there are `bytes` for the answer. It sees the catalog of then.
    ///
    /// # Errors
    /// [`Error::NoRoom`]: there was no memory in time.
    pub async fn restart(&mut self, bytes: usize) -> Result<(), Error> {
        // Whoever waits for memory must hold nothing that others wait for.
        self.request.drop_partition_map();
        if let Some(share) = self.request.terms.share {
            let granted = share.reserve(bytes).await;
            let granted = granted.map_err(|_| Error::NoRoom { bytes })?;
            self.engine.resolve_in_doubt().await;
            share.hand(granted);
        }
        self.request = self.engine.request(self.request.terms);
        self.charges = self.engine.charges(&self.request);
        self.state = State::Open;
        Ok(())
    }

    /// The charge and the access path that a read would have. Reads no row for an answer.
    ///
    /// # Errors
    /// It is not permitted, the table no longer exists, or a store fails.
    pub async fn estimate_read(&mut self, read: &Read, page_rows: Option<u32>) -> Result<ReadEstimate, Error> {
        self.permit_read(read)?;
        let estimated = self.engine.estimate_read(&self.request, read, page_rows).await;
        self.noted(estimated)
    }

    /// The charge that writes would have, without their conditions.
    ///
    /// # Errors
    /// One is not permitted, or its table no longer exists.
    pub fn estimate_writes(&mut self, writes: &[Write]) -> Result<Charges, Error> {
        writes.iter().try_for_each(|write| self.permit_write(write))?;
        let estimated = self.engine.estimate_writes(&self.request, writes);
        self.noted(estimated)
    }

    /// Executes a write.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails.
    pub async fn write(&mut self, write: &Write) -> Result<Written, Error> {
        self.describe(|| Audited::of_write(write.kind, &write.table));
        self.begin_command(kind_of(write), Some(&write.table));
        self.permit_write(write)?;
        let written = self.engine.write(&self.request, write, &mut self.charges).await;
        self.noted(written)
    }

    /// Executes a batch of writes.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails. None of it was applied then, unless the error says that
    /// it may have been.
    pub async fn batch(&mut self, batch: &Batch) -> Result<Written, Error> {
        self.describe(Audited::of_batch);
        if self.origin.is_none() {
            self.origin = Some(AnyOrigin::Batch(BatchOrigin::of(batch)));
        }
        let mut writes = batch.modifications.iter();
        writes.try_for_each(|write| self.permit_write(write))?;
        let written = self.engine.batch(&self.request, batch, &mut self.charges).await;
        self.noted(written)
    }

    /// Empties a table.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails.
    pub async fn truncate(&mut self, table: &Table) -> Result<(), Error> {
        self.describe(|| Audited::of_truncate(table));
        self.begin_command(StatementKind::Truncate, None);
        self.permit(Action::Truncate(table))?;
        let truncated = self.engine.truncate(&self.request, table, &mut self.charges).await;
        self.noted(truncated)
    }

    /// Changes the schema by an intent.
    ///
    /// # Errors
    /// The intent is refused, or a store fails; nothing has changed then.
    pub async fn change_schema<I: SchemaIntent>(&mut self, intent: I) -> Result<SchemaOutcome, NotChanged<I::Refusal>> {
        self.describe(|| Audited::of_change(None));
        self.begin_command(StatementKind::Ddl, None);
        if self.is_of_role() {
            let needs = intent.needs(self.request.schema());
            self.permit(Action::ChangeSchema(&needs))?;
        }
        let (engine, charges) = (self.engine, &mut self.charges);
        match engine.change_schema(&mut self.request, intent, charges).await {
            Ok(outcome) => {
                if let Some(audit) = &mut self.audit {
                    audit.command = Some(Audited::of_change(outcome.change.as_ref()));
                }
                Ok(outcome)
            }
            Err(NotChanged::Failed(error)) => Err(NotChanged::Failed(self.failed(error))),
            Err(refused @ NotChanged::Refused(_)) => {
                if let Some(audit) = &mut self.audit {
                    audit.failure = Some(Failure {
                        is_denied: false,
                        text: "the schema does not permit the change".to_owned(),
                    });
                }
                Err(refused)
            }
        }
    }

    /// Charges a request that is answered by the catalog in memory.
    pub fn charge_metadata(&mut self) {
        self.charges.metadata();
    }

    // The end.

    /// Ends the work: charges it and records that, whether it succeeded or failed. `notes` gets the trace of the charges, if the
    /// request is traced. Only the first call counts.
    pub fn charge(&mut self, ended: Ended, notes: &mut Vec<String>) -> ChargeReceipt {
        if !matches!(self.state, State::Open) {
            return ChargeReceipt::NONE;
        }
        self.state = State::Ended(ended);
        let executed = match &self.origin {
            Some(AnyOrigin::Given(origin)) => Executed::Statement(origin),
            Some(AnyOrigin::Batch(batch)) => Executed::Batch(batch),
            None => return ChargeReceipt::NONE,
        };
        let charges = &mut self.charges;
        self.engine.charge(&self.request, executed, charges, ended, notes)
    }

    /// Ends the execution: charges it, and makes the audit entry of its last command.
    pub fn finish(mut self, ended: Ended) -> ChargeReceipt {
        self.charge(ended, &mut Vec::new())
    }

    /// Makes its audit entry, with the failure as the front end tells it. Only the first call counts.
    pub fn audit(&mut self, failure: Option<AuditFailure<'_>>) {
        if !matches!(self.state, State::Postponed)
            && let Some(audit) = self.audit.take()
        {
            self.record(&audit, failure);
        }
    }

    fn record(&self, audit: &AuditState<'_>, failure: Option<AuditFailure<'_>>) {
        let command = audit.command.as_ref().map(|command| command as &dyn Subject);
        let Some((subject, client)) = audit.subject.or(command).zip(self.request.terms.client) else {
            return;
        };
        audit.log.record(AuditEntry {
            client: *client,
            user: self.request.terms.user.map(AsRef::as_ref),
            subject,
            failure,
        });
    }

    /// The origin of a command whose front end has given none.
    fn begin_command(&mut self, kind: StatementKind, table: Option<&Arc<Table>>) {
        if self.origin.is_none() {
            let table = table.map_or(&[][..], std::slice::from_ref);
            self.set_origin(Origin::without_text(kind, table));
        }
    }

    /// A command begins: the one before, if any, gets its entry.
    fn describe(&mut self, command: impl FnOnce() -> Audited) {
        let Some(mut audit) = self.audit.take_if(|audit| audit.subject.is_none()) else {
            return;
        };
        if audit.command.is_some() && !matches!(self.state, State::Postponed) {
            self.record(&audit, audit.failure.as_ref().map(Failure::shown));
        }
        audit.command = Some(command());
        audit.failure = None;
        self.audit = Some(audit);
    }

    /// An outcome, whose failure the audit log tells.
    fn noted<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        outcome.map_err(|error| self.failed(error))
    }

    #[cold]
    fn failed(&mut self, error: Error) -> Error {
        if let Some(audit) = &mut self.audit {
            audit.failure = Some(Failure {
                is_denied: matches!(error, Error::Denied(_)),
                text: error.to_string(),
            });
        }
        error
    }

    /// Makes the audit entry by the outcome of the last command.
    #[cold]
    fn audit_command(&mut self, ended: Ended) {
        let Some(audit) = self.audit.take() else { return };
        let instead = match ended {
            Ended::Answered { .. } => None,
            Ended::Failed { .. } => Some(FAILED),
            Ended::Abandoned => Some(ABANDONED),
        };
        let instead = instead.as_ref().map(|error| AuditFailure {
            is_denied: false,
            error,
        });
        self.record(&audit, audit.failure.as_ref().map(Failure::shown).or(instead));
    }
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        let ended = match self.state {
            State::Postponed => return,
            State::Ended(ended) => ended,
            State::Open => {
                self.charge(Ended::Abandoned, &mut Vec::new());
                Ended::Abandoned
            }
        };
        if self.audit.is_some() {
            self.audit_command(ended);
        }
    }
}

impl Failure {
    fn shown(&self) -> AuditFailure<'_> {
        AuditFailure {
            is_denied: self.is_denied,
            error: &self.text,
        }
    }
}

impl PermittedAhead {
    fn of(action: Action<'_>) -> Option<Self> {
        match action {
            Action::Read(read) => Some(Self::Read(read.table.id)),
            Action::Write(write) if write.is_conditional => Some(Self::ConditionalWrite(write.table.id)),
            Action::Write(write) => Some(Self::Write(write.table.id)),
            Action::ShowSchema | Action::OfSession | Action::Truncate(_) | Action::ChangeSchema(_) => None,
        }
    }
}

fn kind_of(write: &Write) -> StatementKind {
    match write.kind {
        _ if write.condition != Condition::Always => StatementKind::Conditional,
        WriteVerb::Insert => StatementKind::Insert,
        WriteVerb::Update => StatementKind::Update,
        WriteVerb::Delete => StatementKind::Delete,
    }
}
