//! A read restricted to one physical partition, and its execution.

use bytes::Bytes;

use super::choice::in_token;
use super::logical::Logical;
use super::part_read::PartRead;
use super::reader::{Reader, Scratch};
use super::receipt::Receipt;
use super::ring::Ring;
use super::rows::{PartSink, Step};
use super::walk::{Probes, Walk};
use crate::engine::Error;
use crate::partition::entries::PlaceRange;
use crate::partition::{Hosted, Moment};
use helenus_schema::command::Position;
use helenus_types::token::{KeySpan, Token};

/// The section of its physical partition that a part reads.
#[derive(Clone, Copy)]
pub(crate) enum Cut<'a> {
    /// One logical partition.
    Key(Token, &'a Bytes),
    /// A span of the ring.
    Span(&'a KeySpan),
}

/// A read restricted to one physical partition.
pub(crate) struct ReadPart<'p, 'a> {
    /// The physical partition.
    pub(crate) partition: &'a Hosted,
    /// The section to read.
    pub(crate) cut: Cut<'p>,
    /// The end of the previous page, if it ended inside this part or an earlier one.
    pub(crate) resume: Option<&'p Position>,
    /// No page of the read has visited the physical partition yet.
    pub(crate) is_first: bool,
    /// The snapshot of the store that it reads: the request's, the same for all parts in one store.
    pub(crate) at: &'p Moment,
    /// The indexes that were complete before that snapshot. `None` means that it scans.
    pub(crate) probes: Option<&'p Probes<'a>>,
    /// Rows that the page may still take. `None` means no limit, or that it is not known, as with groups.
    pub(crate) rows_wanted: Option<usize>,
    /// Tombstones that earlier parts have walked over, where they count together.
    pub(crate) tombstones_before: u64,
}

/// Executes a part of a read, and passes its rows to a sink.
pub(crate) async fn run_part<'a>(
    bound: &PartRead<'a>,
    part: &ReadPart<'_, 'a>,
    scratch: &mut Scratch<'_>,
    rows: &mut impl PartSink,
) -> Receipt<'a> {
    let mut reader = Reader::new(bound, part.tombstones_before, scratch, rows);
    let mut index = None;
    let ended = match (&part.cut, part.probes) {
        // Inlined: a function's future would have to be filled and taken apart for every read.
        (Cut::Key(token, key), None) => match whole_key(bound, part, (*token, key), &mut reader) {
            Ok(logical) => logical.run(part.resume, &mut reader).await,
            Err(error) => Err(error),
        },
        // Boxed: most reads visit one logical partition without an index, and every read's future would be as large.
        (Cut::Key(token, key), Some(probes)) => {
            Box::pin(key_by_index(
                bound,
                part,
                probes,
                (*token, key),
                &mut reader,
                &mut index,
            ))
            .await
        }
        (Cut::Span(span), _) => Box::pin(span_of(bound, part, span, &mut reader, &mut index)).await,
    };
    reader.receipt(ended, index)
}

async fn span_of<'a>(
    bound: &PartRead<'a>,
    part: &ReadPart<'_, 'a>,
    span: &KeySpan,
    reader: &mut Reader<'_, impl PartSink>,
    index: &mut Option<&'a str>,
) -> Result<Step, Error> {
    let inside = part
        .probes
        .and_then(|probes| Some((probes, part.partition.span.and(span)?)));
    let walk = match inside {
        Some((probes, inside)) => {
            probes
                .walk(part.partition, part.at.clone(), &inside, part.rows_wanted)
                .await?
        }
        None => None,
    };
    reader.enter(part.partition, None, part.is_first);
    if let Some(walk) = walk {
        *index = Some(walk.index());
        return walk.run(part.resume, reader).await;
    }
    match Ring::new(part.partition, part.at.clone(), bound.read, span) {
        Some(ring) => ring.run(part.resume, reader).await,
        None => Ok(Step::Continue),
    }
}

/// Reads one logical partition by an index. If the entries of one value are adjacent within the partition, the walk
/// seeks them there.
async fn key_by_index<'a>(
    bound: &PartRead<'a>,
    part: &ReadPart<'_, 'a>,
    probes: &Probes<'a>,
    (token, partition_key): (Token, &Bytes),
    reader: &mut Reader<'_, impl PartSink>,
    index: &mut Option<&'a str>,
) -> Result<Step, Error> {
    let walk = in_token(probes, part.partition, part.at.clone(), token, part.rows_wanted);
    let Some(walk) = walk.await?.filter(Walk::seeks_rows) else {
        let logical = whole_key(bound, part, (token, partition_key), reader)?;
        return logical.run(part.resume, reader).await;
    };
    let spread = part.partition.spread(token, partition_key);
    reader.enter(part.partition, Some((spread, partition_key)), part.is_first);
    let table = bound.read.table.as_ref();
    let logical = part.partition.logical(table.storage_id, token, partition_key)?;
    *index = Some(walk.index());
    let places = PlaceRange::of_logical(logical.prefix());
    walk.over(places).run(part.resume, reader).await
}

/// Enters one logical partition, which is read by the keys and ranges of the command.
fn whole_key<'p>(
    bound: &PartRead<'p>,
    part: &ReadPart<'p, 'p>,
    (token, partition_key): (Token, &'p Bytes),
    reader: &mut Reader<'_, impl PartSink>,
) -> Result<Logical<'p>, Error> {
    let spread = part.partition.spread(token, partition_key);
    reader.enter(part.partition, Some((spread, partition_key)), part.is_first);
    let table = bound.read.table.as_ref();
    Ok(Logical {
        at: part.at,
        select: bound.read,
        table,
        partition: part.partition.logical(table.storage_id, token, partition_key)?,
        partition_key,
    })
}
