//! Decides whether a read uses an index, without reading any row.

use super::walk::{Probes, Walk};
use crate::engine::Error;
use crate::engine::index::Indexes;
use crate::partition::{Hosted, Moment, TablePartitions};
use helenus_schema::command::{Clustering, IndexUse, Partitions, Read, Spared};
use helenus_types::token::{KeySpan, Token};

/// The index that a read would use first. Reads no row. `wanted`: rows of a page, where that is known.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn explain(
    indexes: &Indexes,
    partitions: &TablePartitions,
    select: &Read,
    wanted: Option<usize>,
) -> Result<IndexUse, Error> {
    let probes = Probes::now(indexes, select);
    let walk = match &select.partitions {
        Partitions::Keys(keys) => match keys.first() {
            Some(partition_key) if may_seek_in_keys(select) => {
                let (token, partition) = partitions.hosted(partition_key)?;
                match of_token(partition, token) {
                    Some(inside) => {
                        let walk = probes.choose(partition, partition.now(), &inside, wanted).await?;
                        walk.and_then(|walk| {
                            if walk.seeks_rows() {
                                Ok(walk)
                            } else {
                                Err(Spared::ByKey)
                            }
                        })
                    }
                    None => Err(Spared::ByKey),
                }
            }
            _ => Err(Spared::ByKey),
        },
        Partitions::Ring(span) => {
            let first = span.as_ref().and_then(|span| {
                let first = partitions.touched_here(span).next()?;
                Some((first, first.span.and(span)?))
            });
            match first {
                Some((partition, inside)) => probes.choose(partition, partition.now(), &inside, wanted).await?,
                None => Err(Spared::NoTokens),
            }
        }
    };
    Ok(match walk {
        Ok(walk) => IndexUse::Used {
            index: walk.index().to_owned(),
            ordered: walk.is_ordered(),
        },
        Err(reason) => IndexUse::Spared(reason),
    })
}

/// A walk of an index in the physical partition of a token, over the rows of that token.
pub(crate) async fn in_token<'a>(
    probes: &Probes<'a>,
    partition: &'a Hosted,
    at: Moment,
    token: Token,
    wanted: Option<usize>,
) -> Result<Option<Walk<'a>>, Error> {
    match of_token(partition, token) {
        Some(inside) => probes.walk(partition, at, &inside, wanted).await,
        None => Ok(None),
    }
}

/// The span of a token in its physical partition.
fn of_token(partition: &Hosted, token: Token) -> Option<KeySpan> {
    KeySpan::of_tokens(token.value(), token.value()).and_then(|span| span.and(&partition.span))
}

/// Whether an index may be read within partitions.
pub(crate) fn may_seek_in_keys(select: &Read) -> bool {
    !(select.reversed || select.table.clustering_count == 0 || matches!(select.rows, Clustering::Keys(_)))
}
