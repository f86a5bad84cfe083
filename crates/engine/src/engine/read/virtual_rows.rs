//! Reads of tables whose rows the server computes: the same processing of rows from another source.

use bytes::Bytes;

use crate::engine::part::{PartRead, PartSink, Reader, Scratch, Step};
use crate::engine::terms::request::Request;
use crate::engine::{Error, value};
use helenus_schema::command::{Partitions, Position, Read};
use helenus_schema::schema::Table;
use helenus_types::token::Token;

use super::row_sink::RowSink;
use super::sink::{Shape, Sink};

/// A row of a view: values by position in `table.columns`.
pub(crate) type ViewRow = Vec<Option<Bytes>>;

struct Made {
    partition_key: Vec<u8>,
    clustering: Vec<u8>,
    values: ViewRow,
}

/// The token of a row's partition key. Virtual rows lie in no physical partition: CQL's hash orders them.
pub(crate) fn token(partition_key: &[u8]) -> i64 {
    Token::of(partition_key).value()
}

/// The serialised partition key of a row.
fn partition_key(table: &Table, row: &ViewRow) -> Vec<u8> {
    let components = row
        .iter()
        .take(table.partition_key_count)
        .map(|value| value.as_deref().unwrap_or_default());
    value::join_key(components)
}

fn clustering_key(table: &Table, row: &ViewRow) -> Vec<u8> {
    let mut key = Vec::new();
    for (column, value) in table
        .clustering()
        .iter()
        .zip(row.iter().skip(table.partition_key_count))
    {
        column
            .ty
            .encode_key(value.as_deref().unwrap_or_default(), column.key_order(), &mut key);
    }
    key
}

/// Passes rows that a view made, in token order, to a sink, as one part that lies in no physical partition.
///
/// # Errors
/// As the sink.
#[expect(
    clippy::too_many_lines,
    reason = "what a part does with stored rows, in the same order, for rows that were made"
)]
pub(crate) fn run(
    request: &Request<'_>,
    shape: &Shape,
    select: &Read,
    rows: Vec<ViewRow>,
    resume: Option<&Position>,
    scratch: &mut Scratch<'_>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<(), Error> {
    if sink.is_exhausted() {
        return Ok(());
    }
    let bound = PartRead {
        read: select,
        layout: &shape.layout,
        context: &request.context,
        now_seconds: request.now_seconds,
        tombstones_max: None,
    };
    let mut reader = Reader::new(&bound, 0, scratch, sink);
    let reader = &mut reader;
    let table = select.table.as_ref();
    let made: Vec<Made> = rows
        .into_iter()
        .map(|values| Made {
            partition_key: partition_key(table, &values),
            clustering: clustering_key(table, &values),
            values,
        })
        .collect();
    let partitions: Vec<&[Made]> = made.chunk_by(|a, b| a.partition_key == b.partition_key).collect();
    let key_of = |partition: &[Made]| {
        partition
            .first()
            .map(|row| row.partition_key.clone())
            .unwrap_or_default()
    };
    let wanted: Vec<&[Made]> = match &select.partitions {
        Partitions::Keys(keys) => {
            let of_key = |key: &Bytes| partitions.iter().copied().find(|partition| key_of(partition) == *key);
            keys.iter().filter_map(of_key).collect()
        }
        Partitions::Ring(span) => {
            let inside = |partition: &&[Made]| {
                let key = key_of(partition);
                span.as_ref().is_some_and(|span| span.contains(token(&key), &key))
            };
            partitions.into_iter().filter(inside).collect()
        }
    };
    let mut wanted = wanted.as_slice();
    let mut after: Option<&[u8]> = None;
    if let Some(position) = resume {
        // If the partition has been removed since, the scan continues after its position.
        let place = wanted.iter().position(|partition| match &select.partitions {
            Partitions::Keys(_) => key_of(partition) == position.partition_key,
            Partitions::Ring(_) => {
                let (key, last) = (key_of(partition), &position.partition_key);
                (token(&key), key.as_slice()) >= (token(last), last.as_ref())
            }
        });
        wanted = place.and_then(|place| wanted.get(place..)).unwrap_or_default();
        if wanted
            .first()
            .is_some_and(|partition| key_of(partition) == position.partition_key)
        {
            match &position.clustering {
                Some(clustering) => after = Some(clustering),
                None => wanted = wanted.get(1..).unwrap_or_default(),
            }
        }
    }
    for partition in wanted {
        let left = resume
            .filter(|_| after.is_some())
            .map(|position| position.partition_limit_rows);
        reader.begin_partition(&key_of(partition), left)?;
        let step = one(select, partition, after.take(), reader)?;
        if step == Step::Stop || reader.end_partition()? == Step::Stop {
            break;
        }
    }
    Ok(())
}

fn one(
    select: &Read,
    partition: &[Made],
    after: Option<&[u8]>,
    reader: &mut Reader<'_, impl PartSink>,
) -> Result<Step, Error> {
    let mut order: Vec<&Made> = partition.iter().collect();
    order.sort_by(|a, b| a.clustering.cmp(&b.clustering));
    if select.reversed {
        order.reverse();
    }
    for row in order {
        let is_before = after.is_some_and(|after| {
            if select.reversed {
                row.clustering.as_slice() >= after
            } else {
                row.clustering.as_slice() <= after
            }
        });
        if is_before || !select.rows.covers(&row.clustering) {
            continue;
        }
        let step = reader.virtual_row(&row.clustering, &row.values)?;
        if step != Step::Continue {
            return Ok(step);
        }
    }
    Ok(Step::Continue)
}
