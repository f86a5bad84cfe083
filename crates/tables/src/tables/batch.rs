//! `$batch`: a group transaction, or one read.

use bytes::Bytes;
use http::{HeaderMap, header};

use super::address::{Parameters, Resource, Target};
use super::call::{self, Call, Format};
use super::fault::Fault;
use super::frame::Reply;
use super::json::{Body, Level};
use super::multipart::{Answers, Batch, Part, PartAnswer};
use super::operation::{OPERATIONS_MAX, Operation, Verb};
use super::service::{BODY_BYTES_MAX, Context, Preference, Service, changed};

/// A change of a group transaction, and how its answer is written.
struct Change {
    table: String,
    operation: Operation,
    level: Level,
    preference: Preference,
}

/// The operation that fails a group transaction.
struct Failed {
    index: usize,
    fault: Fault,
    level: Level,
}

impl Service {
    pub(super) async fn batch(&self, context: &Context<'_>, body: &Bytes) -> Result<Reply, Fault> {
        if body.len() >= BODY_BYTES_MAX {
            return Err(Fault::RequestBodyTooLarge);
        }
        let content_type = context
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        match Batch::parse(content_type.unwrap_or_default(), body)? {
            Batch::Get(part) => self.batched_get(context, &part).await,
            Batch::Changes(_) if context.target.is_secondary => Err(Fault::InsufficientAccountPermissions),
            Batch::Changes(parts) => self.changes(context, &parts).await,
        }
    }

    async fn changes(&self, context: &Context<'_>, parts: &[Part<'_>]) -> Result<Reply, Fault> {
        let changes = match understood(context, parts) {
            Ok(changes) => changes,
            Err(failed) => return Ok(self.failure(context, &failed)),
        };
        let Some(table) = changes.first().map(|change| change.table.clone()) else {
            return Ok(self.replied(&[]));
        };
        let operations: Vec<Operation> = changes.iter().map(|change| change.operation.clone()).collect();
        let written = match self.store.write(&context.asker, &table, &operations).await {
            Ok(written) => written,
            // Who shall try again looks at the status of the whole.
            Err(refused) if refused.fault.status() >= 500 => return Err(refused.fault),
            Err(refused) => {
                let level = changes.get(refused.index).map_or(Level::Minimal, |change| change.level);
                let (index, fault) = (refused.index, refused.fault);
                return Ok(self.failure(context, &Failed { index, fault, level }));
            }
        };
        let answers = changes
            .into_iter()
            .zip(&written.versions)
            .map(|(change, version_micros)| {
                let is_insert = change.operation.verb == Verb::Insert;
                let reply = changed(
                    context.origin,
                    &change.table,
                    change.operation,
                    *version_micros,
                    change.preference,
                    change.level,
                );
                part_answer(reply, if is_insert { "3.0;" } else { "1.0;" })
            });
        let answers: Vec<PartAnswer> = answers.collect();
        Ok(context.explained(self.replied(&answers), None, written.charge))
    }

    /// The answer of which one operation is the reason: it alone, its index before its text.
    fn failure(&self, context: &Context<'_>, failed: &Failed) -> Reply {
        let text = format!("{}:{}", failed.index, context.frame.text(&failed.fault));
        let body = Body::fault(failed.fault.code(), &text);
        let reply = Reply::json(failed.fault.status(), failed.level, body);
        self.replied(&[part_answer(reply, "3.0;")])
    }

    fn replied(&self, answers: &[PartAnswer]) -> Reply {
        whole(Answers::of_changes(answers, self.draw(), self.draw()))
    }

    async fn batched_get(&self, context: &Context<'_>, part: &Part<'_>) -> Result<Reply, Fault> {
        let (call, parameters) = call_of(context, part)?;
        if !matches!(call, Call::Get { .. } | Call::Query { .. }) {
            return Err(Fault::InvalidInput);
        }
        if let Some(need) = call.need() {
            context.access.check(need)?;
        }
        let format = Format::of(&parameters, &part.headers)?;
        let inner = Context {
            headers: &part.headers,
            parameters: &parameters,
            level: format.level,
            ..*context
        };
        // Only these two: a batch in a batch would have no end.
        let reply = match call {
            Call::Get {
                table,
                partition_key,
                row_key,
            } => self.get(&inner, &table, &partition_key, &row_key).await,
            Call::Query {
                table,
                filter,
                top,
                from,
            } => self.query(&inner, &table, filter, top, from).await,
            _ => Err(Fault::InvalidInput),
        };
        let reply = reply.unwrap_or_else(|fault| {
            let body = Body::fault(fault.code(), &context.frame.text(&fault));
            Reply::json(fault.status(), format.level, body)
        });
        Ok(whole(Answers::of_get(&part_answer(reply, "3.0;"), self.draw())))
    }
}

fn whole(answers: Answers) -> Reply {
    Reply {
        status: 202,
        content_type: Some(answers.content_type),
        headers: Vec::new(),
        body: answers.body,
    }
}

/// The changes that the parts ask for, each checked by itself and against the ones before.
fn understood(context: &Context<'_>, parts: &[Part<'_>]) -> Result<Vec<Change>, Failed> {
    if parts.len() > OPERATIONS_MAX {
        return Err(Failed {
            index: OPERATIONS_MAX - 1,
            fault: Fault::TooManyOperations,
            level: Level::Minimal,
        });
    }
    let mut changes: Vec<Change> = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let level = level_of(&part.headers);
        let failed = |fault| Failed { index, fault, level };
        let change = change_of(context, part).map_err(failed)?;
        if let Some(first) = changes.first() {
            let is_other_partition = first.operation.entity.partition_key != change.operation.entity.partition_key;
            if is_other_partition || !first.table.eq_ignore_ascii_case(&change.table) {
                return Err(failed(Fault::CommandsInBatchActOnDifferentPartitions));
            }
        }
        let mut rows = changes.iter().map(|change| &change.operation.entity.row_key);
        if rows.any(|row_key| *row_key == change.operation.entity.row_key) {
            return Err(failed(Fault::InvalidDuplicateRow));
        }
        changes.push(change);
    }
    Ok(changes)
}

/// The level of refusals to a part.
fn level_of(headers: &HeaderMap) -> Level {
    Format::of(&Parameters::default(), headers).map_or(Level::Minimal, |format| format.level)
}

fn change_of(context: &Context<'_>, part: &Part<'_>) -> Result<Change, Fault> {
    let (call, parameters) = call_of(context, part)?;
    let format = Format::of(&parameters, &part.headers)?;
    let (table, operation) = call::operation(call, &part.headers, part.body)?;
    context.access.check(call::need(&table, &operation))?;
    Ok(Change {
        table,
        operation,
        level: format.level,
        preference: Preference::of(&part.headers),
    })
}

/// What a part asks for. Its address must be one of the same account.
fn call_of(context: &Context<'_>, part: &Part<'_>) -> Result<(Call, Parameters), Fault> {
    let below = part.address.split_once("://").map(|(_, rest)| rest);
    let (host, address) = match below {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => (context.host, part.address),
    };
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let parameters = Parameters::parse(query)?;
    let target = Target::of(host, path, |name| name == context.target.account)?;
    if target.account != context.target.account {
        return Err(Fault::InvalidInput);
    }
    let method = call::method(&part.method, &part.headers)?;
    let call = Call::of(&method, Resource::parse(&target.path)?, &parameters, &part.headers)?;
    Ok((call, parameters))
}

/// An answer as a part: with the headers that parts have, in the order of the service.
fn part_answer(reply: Reply, data_service_version: &str) -> PartAnswer {
    let mut headers = vec![
        ("X-Content-Type-Options", "nosniff".to_owned()),
        ("Cache-Control", "no-cache".to_owned()),
    ];
    let mut others = reply.headers.into_iter().peekable();
    headers.extend(others.next_if(|(name, _)| *name == "Preference-Applied"));
    headers.push(("DataServiceVersion", data_service_version.to_owned()));
    headers.extend(reply.content_type.map(|content_type| ("Content-Type", content_type)));
    headers.extend(others);
    PartAnswer {
        status: reply.status,
        headers,
        body: reply.body,
    }
}
