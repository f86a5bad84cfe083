//! Whether a read goes by an index, without reading any row.

use super::Indexes;
use super::read::IndexRead;
use crate::command::{Clustering, IndexUse, Partitions, Read};
use crate::executor::Error;
use crate::executor::read::sink::Sink;
use crate::partition::TablePartitions;
use crate::token::Token;

/// Which index [`super::read::run`] would use first, without bringing any row.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn explain(
    indexes: &Indexes,
    partitions: &TablePartitions,
    select: &Read,
    sink: &Sink<'_>,
) -> Result<IndexUse, Error> {
    let read = match &select.partitions {
        Partitions::Keys(keys) => match keys.first() {
            Some(partition_key) if may_seek_in_keys(select) => {
                let token = Token::of(partition_key);
                let inside = (token.value(), token.value());
                let read = IndexRead::new(indexes, partitions.of(token), select, inside, sink).await?;
                read.filter(|read| !read.by_partition && read.ordered.is_some())
            }
            _ => None,
        },
        Partitions::Ring { lower, upper } => match partitions.overlapping(*lower, *upper).first() {
            Some(partition) => {
                let inside = ((*lower).max(partition.lower), partition.upper.min(*upper));
                IndexRead::new(indexes, partition, select, inside, sink).await?
            }
            None => None,
        },
    };
    Ok(read.map_or(IndexUse::Spared, |read| IndexUse::Used {
        index: read.probe.index.clone(),
        ordered: read.ordered.is_some(),
    }))
}

/// Whether a SELECT asks for partitions of this token.
pub(super) fn may_be_in(select: &Read, token: Token) -> bool {
    match &select.partitions {
        Partitions::Keys(keys) => keys.iter().any(|key| Token::of(key) == token),
        Partitions::Ring { lower, upper } => (*lower..=*upper).contains(&token.value()),
    }
}

/// Whether an index may be asked within partitions.
pub(super) fn may_seek_in_keys(select: &Read) -> bool {
    !(select.reversed || select.table.clustering_count == 0 || matches!(select.rows, Clustering::Keys(_)))
}
