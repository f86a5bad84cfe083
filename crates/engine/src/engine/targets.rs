//! What a read has to visit: the physical partitions that it concerns, and what is left of it behind the page before.

use bytes::Bytes;

use crate::partition::{PhysicalPartition, Placed, TablePartitions};
use helenus_schema::command::{Partitions, Position, Read};
use helenus_types::token::{KeyBound, KeySpan};

/// The physical partitions that a SELECT may have to visit, in order of token. One that holds several of the keys is
/// repeated.
pub(crate) fn concerned<'a>(
    partitions: &'a TablePartitions,
    select: &'a Read,
) -> impl Iterator<Item = &'a PhysicalPartition> {
    let (ring, keys): (_, &[Bytes]) = match (&select.partitions, partitions.all()) {
        // With a single physical partition no key needs to be hashed.
        (_, [_]) => (partitions.all(), &[]),
        (Partitions::Keys(keys), _) => (Default::default(), keys),
        (Partitions::Ring(span), _) => match span {
            Some(span) => (partitions.touched(span), &[]),
            None => (Default::default(), &[]),
        },
    };
    let of_keys = keys.iter().map(|key| partitions.place(key).1.descriptor());
    ring.iter().map(Placed::descriptor).chain(of_keys)
}

/// The partitions of [`concerned`] that remain for a page that begins after `resume`.
pub(crate) fn ahead<'a>(
    partitions: &'a TablePartitions,
    select: &'a Read,
    resume: Option<&Position>,
) -> impl Iterator<Item = &'a PhysicalPartition> {
    let passed = match (&select.partitions, resume) {
        (Partitions::Ring(_), Some(position)) => Some((partitions.token(&position.partition_key), position)),
        _ => None,
    };
    concerned(partitions, select).filter(move |partition| {
        passed.is_none_or(|(token, position)| partition.span.ends_after(token.value(), &position.partition_key))
    })
}

/// The rest of a span of the ring for a page that begins after `resume`. `None` means that nothing remains.
pub(crate) fn span_left(
    partitions: &TablePartitions,
    span: Option<&KeySpan>,
    resume: Option<&Position>,
) -> Option<KeySpan> {
    let span = span?;
    let Some(position) = resume else {
        return Some(span.clone());
    };
    let from = KeyBound::at_key(partitions.token(&position.partition_key), &position.partition_key);
    KeySpan::new(from.max(span.start().clone()), span.end().cloned())
}

/// The partition keys that are left after the pages before, and the place inside the first of them, if it is begun. A
/// place in none of them, as a page of another read leaves it, leaves nothing.
pub(crate) fn keys_left<'k, 'p>(
    keys: &'k [Bytes],
    resume: Option<&'p Position>,
) -> (&'k [Bytes], Option<&'p Position>) {
    let Some(position) = resume else {
        return (keys, None);
    };
    let Some(place) = keys.iter().position(|key| *key == position.partition_key) else {
        return (&[], None);
    };
    let first = place + usize::from(position.clustering.is_none());
    (
        keys.get(first..).unwrap_or_default(),
        resume.filter(|position| position.clustering.is_some()),
    )
}
