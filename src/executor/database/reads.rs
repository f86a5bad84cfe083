//! SELECT and DESCRIBE: from a bound statement to rows.

use std::sync::Arc;

use bytes::Bytes;
use grammar::ast;

use super::super::answer::{Answer, AnswerKind, ResultMetadata, Rows};
use super::super::error::Error;
use super::super::gates::{self, ReadPass};
use super::super::index;
use super::super::paging::{self, StatementDigest};
use super::super::plans::PlannedAt;
use super::super::read::room::Room;
use super::super::read::sink::{Limits, Page, Sink};
use super::super::read::{source, virtual_rows};
use super::super::value;
use super::Database;
use super::Request;
use crate::command::{Clustering, Partitions, Read, ResultColumn, Value};
use crate::schema::{describe, system};
use crate::throughput::Charges;
use crate::token::Token;
use crate::views::{self, live::Live};

impl Database {
    pub(super) async fn select(
        &self,
        request: &Request<'_>,
        planned: &PlannedAt,
        select: &Read,
        values: &[Value],
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        let params = request.params;
        let gates = self.gates();
        let page_bytes = params.page_size_rows.map_or(0, |_| self.page_bytes_max);
        // At first, since what was granted is taken back when the request has been polled once.
        let mut room = Room::of(request.session.share.as_ref(), page_bytes);
        let is_system = system::is_local(&select.table.keyspace);
        let digest = || statement_digest(planned, select, values);
        let mut warnings = Vec::new();
        let ReadPass { page_rows, resume } = gates::read(gates, request, select, digest, &mut warnings)?;
        let shape = planned.shape(select);
        let limits = Limits {
            rows: resume
                .as_ref()
                .map_or(select.limit_rows, |position| position.limit_rows),
            page_rows,
            page_bytes: self.page_bytes_max,
            content_bytes_ahead: planned.content_bytes_ahead(),
            tombstones: self.guardrails.tombstones,
        };
        let mut notes = Vec::new();
        gates::admit_answer(gates, request, select, limits.content_bytes_ahead, &mut room).await?;
        if is_system {
            charges.metadata();
        }
        let mut sink = Sink::new(
            select,
            shape,
            &request.context,
            request.now_seconds,
            limits,
            charges,
            room,
        );
        if is_system {
            if views::show_sizes(&select.table) {
                // Boxed, since it is rare, as below.
                Box::pin(self.count_partitions()).await;
            }
            let rows = self.view_rows(request, select);
            virtual_rows::run(select, rows, resume.as_ref(), &mut sink)?;
        } else {
            let partitions = request.snapshot.partitions(&select.table)?;
            let as_of = gates::admit_read(gates, request, select, partitions, resume.as_ref()).await?;
            let partitions = as_of.as_ref().unwrap_or(partitions);
            let indexes = &self.catalog.indexes;
            let read = index::read::run(indexes, partitions, select, resume.as_ref(), &mut sink).await;
            match read? {
                Some(used) => notes.push(format!("Scanned with index {used}")),
                None => {
                    let visited = source::run(partitions, select, resume.as_ref(), &mut sink).await?;
                    if params.trace.is_some() {
                        let all = partitions.all().len();
                        notes.push(format!("Read {visited} of {all} physical partitions"));
                    }
                }
            }
        }
        let Page {
            content,
            row_count,
            mut position,
            warnings: walked,
        } = sink.finish()?;
        charges.give_back(content.len());
        let left_before = resume.as_ref().map_or(0, |position| position.charge_left_micros);
        let left = charges.end_page(left_before, position.is_some());
        if let Some(position) = &mut position {
            position.charge_left_micros = left;
        }
        warnings.extend(walked);
        planned.note_content_bytes(content.len());
        let metadata = planned.result.clone().unwrap_or_else(|| {
            let table = &select.table;
            Arc::new(ResultMetadata::new(
                &table.keyspace,
                &table.name,
                Arc::clone(&select.selection.columns),
            ))
        });
        let mut answer = Answer::new(AnswerKind::Rows(Rows {
            metadata,
            row_count,
            content,
            paging_state: position.map(|position| self.catalog.paging_key.seal(digest(), &position)),
        }));
        answer.notes = notes;
        answer.warnings = warnings;
        Ok(answer)
    }

    fn view_rows(&self, request: &Request<'_>, select: &Read) -> Vec<Vec<Option<Bytes>>> {
        // Drivers read the other keyspaces, which show nothing of the server, much more often.
        let shows_server = matches!(select.table.keyspace.as_str(), "system_views" | system::COSMOS);
        let live = if shows_server {
            self.ask_server()
        } else {
            Live::default()
        };
        let sources = views::Sources {
            schema: &request.snapshot.schema,
            node: self.seen_by(request.session.node),
            live: &live,
            token: |key| Token::of(key).value(),
            figures: Some(self.figures()),
        };
        let one_key: Option<Vec<Bytes>> = match &select.partitions {
            Partitions::Keys(keys) => match keys.as_slice() {
                [key] => {
                    let components = value::key_components(key, select.table.partition_key_count);
                    Some(components.map(Bytes::copy_from_slice).collect())
                }
                _ => None,
            },
            Partitions::Ring { .. } => None,
        };
        let first_clustering = first_clustering(select);
        let wanted = views::Wanted {
            partition_key: one_key.as_deref(),
            first_clustering: first_clustering.as_deref(),
        };
        views::rows(&select.table, sources, wanted).unwrap_or_default()
    }

    pub(super) fn describe(&self, request: &Request<'_>, statement: &ast::Describe) -> Result<Answer, Error> {
        let keyspace = request.keyspace.as_deref();
        let description = describe::describe(
            statement,
            keyspace,
            &request.snapshot.schema,
            self.seen_by(request.session.node),
        )
        .map_err(|error| Error::Invalid(error.to_string()))?;
        let columns = description.columns.into_iter().map(|(name, ty)| ResultColumn {
            name: name.to_owned(),
            ty,
        });
        let (keyspace, table) = describe::RESULT_TABLE;
        let mut content = Vec::new();
        for cell in description.rows.iter().flatten() {
            value::put_bytes(&mut content, cell.as_deref());
        }
        Ok(Answer::new(AnswerKind::Rows(Rows {
            metadata: Arc::new(ResultMetadata::new(keyspace, table, Arc::new(columns.collect()))),
            row_count: u32::try_from(description.rows.len()).unwrap_or(u32::MAX),
            content: content.into(),
            paging_state: None,
        })))
    }
}

/// The value of the first clustering column if the read wants rows of one only: drivers ask for one table of a keyspace at a time.
fn first_clustering(select: &Read) -> Option<Bytes> {
    let first = select.table.clustering().first()?;
    let (start, end) = match &select.rows {
        Clustering::All => return None,
        Clustering::Keys(keys) => (keys.first()?, keys.last()?),
        Clustering::Ranges(ranges) => (&ranges.first()?.start, ranges.last()?.end.as_ref()?),
    };
    let value = first.ty.decode_key(&mut start.as_slice(), first.descending).ok()?;
    let mut prefix = Vec::new();
    first.ty.encode_key(&value, first.descending, &mut prefix);
    // The least key behind all that begin with the prefix.
    let mut behind = prefix.clone();
    while behind.last() == Some(&u8::MAX) {
        behind.pop();
    }
    *behind.last_mut()? += 1;
    (start.starts_with(&prefix) && *end <= behind).then_some(value)
}

fn statement_digest(planned: &PlannedAt, select: &Read, values: &[Value]) -> StatementDigest {
    let bytes = values.iter().map(|value| match value {
        Value::Null => &b"\x00null"[..],
        Value::Unset => &b"\x00unset"[..],
        Value::Bytes(bytes) => bytes,
    });
    let head = [select.table.id.as_bytes().as_slice(), planned.origin.text.as_bytes()];
    paging::digest(head.into_iter().chain(bytes))
}
