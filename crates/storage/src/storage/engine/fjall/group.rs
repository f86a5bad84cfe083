//! The effect of a group of commits on each key. The batches' changes are sorted by key: changes of one key become
//! adjacent, and the engine inserts sorted keys faster. Changes are borrowed from the requests; merged values are
//! owned.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use super::request::Request;
use crate::storage::batch::{Change, Space, check_row_bytes, merge_values};
use crate::storage::derivation::{self, Derivations};
use crate::storage::key::TableId;
use crate::storage::purge::Effect;
use crate::storage::written::is_there;
use crate::storage::{Committed, Error, Result, Written};
use helenus_base::invariant::{Broken, Invariant};

/// Values up to this long are copied next to their keys; copying longer ones would cost more than it saves.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// A change and its position.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    /// The space and the first bytes of the key as a number, which sorts as they do and decides most comparisons.
    start: u128,
    pub(super) space: Space,
    pub(super) key: &'a [u8],
    /// Its position among the group's changes.
    order: usize,
    /// The index of its request.
    request: usize,
    /// Its position in its batch.
    number: usize,
    /// The row limit of its batch, in bytes.
    row_bytes_max: usize,
    change: &'a Change,
}

fn start_of(space: Space, key: &[u8]) -> u128 {
    let mut start = [0; 16];
    let (first, rest) = start.split_at_mut(1);
    first.copy_from_slice(&[space.byte()]);
    for (to, from) in rest.iter_mut().zip(key) {
        *to = *from;
    }
    u128::from_be_bytes(start)
}

/// The changes of requests that are not refused, by key and then in order of arrival, without deletions of ranges.
pub(super) fn placed<'a>(requests: &'a [Request], refusals: &[Option<Error>]) -> Vec<Placed<'a>> {
    let mut placed = Vec::with_capacity(requests.len());
    for (request, (of, _)) in requests
        .iter()
        .zip(refusals)
        .enumerate()
        .filter(|(_, (_, no))| no.is_none())
    {
        for (number, change) in of.changes.iter().enumerate() {
            let Some((space, key)) = change.place() else { continue };
            placed.push(Placed {
                start: start_of(space, key),
                space,
                key,
                order: placed.len(),
                request,
                number,
                row_bytes_max: of.row_bytes_max,
                change,
            });
        }
    }
    placed.sort_unstable_by(|a, b| (a.start, a.key, a.order).cmp(&(b.start, b.key, b.order)));
    placed
}

/// The changes in the order of arrival.
pub(super) fn in_order<'a>(placed: &[Placed<'a>]) -> impl Iterator<Item = &'a Change> + use<'a> {
    let mut all: Vec<(usize, &'a Change)> = placed.iter().map(|placed| (placed.order, placed.change)).collect();
    all.sort_unstable_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, change)| change)
}

/// The effect of a group on one key.
pub(super) struct Pending<'a> {
    pub(super) space: Space,
    pub(super) key: Cow<'a, [u8]>,
    /// `None` means the key is removed.
    pub(super) value: Option<Cow<'a, Bytes>>,
    /// Length of the value before the group, where values are counted.
    pub(super) before: Option<usize>,
}

impl Pending<'_> {
    /// The value, if it is copied next to its key.
    fn copied(&self) -> &[u8] {
        let value = self.value.as_deref().map_or(&[][..], Bytes::as_ref);
        if value.len() <= COPIED_BYTES_MAX { value } else { &[] }
    }

    fn full_len(&self) -> usize {
        self.key.len() + 1
    }

    /// Cuts the full key and the value out of the buffer made by [`Group::together`].
    pub(super) fn cut(&self, together: &mut Bytes) -> (Bytes, Option<Bytes>) {
        let full = together.split_to(self.full_len());
        let value = self.value.as_deref().map(|value| {
            if value.len() <= COPIED_BYTES_MAX {
                together.split_to(value.len())
            } else {
                value.clone()
            }
        });
        (full, value)
    }
}

/// The writes of a group.
#[derive(Default)]
pub(super) struct Group<'a> {
    /// The new value of each key, sorted by full key, each once; see [`Group::finish`].
    pub(super) pending: Vec<Pending<'a>>,
    /// Index entries derived from rows in `pending`, and entries of change logs.
    derived: Vec<Pending<'a>>,
    /// Records of the store's own: value, or `None` to remove.
    pub(super) own: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The answer to each request about its rows, by index.
    pub(super) committed: Vec<Committed>,
}

impl<'a> Group<'a> {
    /// Adds the changes of one key, `run`; `old` is the stored value. On failure returns the index of the request whose
    /// change cannot be made, and the error.
    #[expect(
        clippy::too_many_lines,
        reason = "a row with its index entries and its feed is one change, made in one pass"
    )]
    pub(super) fn add(
        &mut self,
        run: &[Placed<'a>],
        old: Option<Bytes>,
        derivations: &Derivations,
    ) -> Result<(), (usize, Error)> {
        let Some(Placed { space, key, .. }) = run.first().copied() else {
            return Ok(());
        };
        // `None` while nothing has changed.
        let mut new: Option<Option<Cow<'a, Bytes>>> = None;
        let mut reindexed: Vec<TableId> = Vec::new();
        for placed in run {
            // Later changes of the key see the earlier ones of the group, as if each had been committed alone.
            let current = match &new {
                Some(value) => value.as_deref(),
                None => old.as_ref(),
            };
            let next = match placed.change {
                Change::Put { value, .. } => Some(Cow::Borrowed(value)),
                Change::Delete { .. } => None,
                Change::Merge { value, .. } => Some(match current {
                    Some(current) => {
                        Cow::Owned(placed.merged(current, value).map_err(|error| (placed.request, error))?)
                    }
                    None => {
                        placed
                            .check_row_bytes(None, value, value)
                            .map_err(|error| (placed.request, error))?;
                        Cow::Borrowed(value)
                    }
                }),
                Change::Purge { .. } | Change::Forget { .. } => {
                    match placed
                        .change
                        .effect_on(current)
                        .map_err(|error| (placed.request, error))?
                    {
                        Effect::Unchanged => continue,
                        Effect::Removed => None,
                        Effect::Shrunk(value) => Some(Cow::Owned(value)),
                    }
                }
                Change::Reindex { index, .. } => {
                    reindexed.push(*index);
                    continue;
                }
                Change::DeleteRange { .. } => continue,
            };
            if space == Space::Rows
                && let Some(committed) = self.committed.get_mut(placed.request)
            {
                let there = current.filter(|row| is_there(row));
                committed.add(Written {
                    change: placed.number,
                    before_bytes: there.map(|row| key.len() + row.len()),
                    after_bytes: next.as_deref().map(|row| key.len() + row.len()),
                });
            }
            new = Some(next);
        }
        if space == Space::Rows
            && let Some(derivation) = derivation::of_row(derivations, key)
        {
            let before = old.as_deref();
            let after = match &new {
                Some(value) => value.as_deref().map(Bytes::as_ref),
                None => before,
            };
            for (entry, value) in derivation::changes(derivation.as_ref(), key, before, after) {
                self.derive(entry, value);
            }
            for index in reindexed {
                for (entry, value) in derivation::entries_in(derivation.as_ref(), index, key, after) {
                    self.derive(entry, Some(value));
                }
            }
        }
        if let Some(value) = new {
            self.pending.push(Pending {
                space,
                key: Cow::Borrowed(key),
                value,
                before: old.map(|old| old.len()),
            });
        }
        Ok(())
    }

    /// Adds the removal of a key that has this value. Keys come in order.
    pub(super) fn remove(&mut self, space: Space, key: &[u8], value: &[u8], derivations: &Derivations) {
        if space == Space::Rows
            && let Some(derivation) = derivation::of_row(derivations, key)
        {
            for (entry, value) in derivation::changes(derivation.as_ref(), key, Some(value), None) {
                self.derive(entry, value);
            }
        }
        self.pending.push(Pending {
            space,
            key: Cow::Owned(key.to_vec()),
            value: None,
            before: Some(value.len()),
        });
    }

    fn derive(&mut self, entry: Vec<u8>, value: Option<Bytes>) {
        self.derived.push(Pending {
            space: Space::Indexes,
            key: Cow::Owned(entry),
            value: value.map(Cow::Owned),
            before: None,
        });
    }

    /// Adds entries of change logs.
    pub(super) fn log(&mut self, entries: Vec<(Vec<u8>, Bytes)>) {
        self.derived.extend(entries.into_iter().map(|(key, value)| Pending {
            space: Space::Feed,
            key: Cow::Owned(key),
            value: Some(Cow::Owned(value)),
            before: None,
        }));
    }

    /// Adds the index entries. Afterwards each key occurs once in the group. Derived entries win over explicit changes
    /// of the same key.
    pub(super) fn finish(&mut self) {
        if self.derived.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.derived);
        all.reverse();
        all.append(&mut self.pending);
        // The sort is stable: of equal keys the entry derived last comes first, and explicit changes come after it.
        all.sort_by(|a, b| (a.space, &a.key).cmp(&(b.space, &b.key)));
        all.dedup_by(|next, kept| (next.space, &next.key) == (kept.space, &kept.key));
        self.pending = all;
    }

    /// Checks that the keys are in order and that each occurs once. With a duplicate key one change would be lost, and
    /// sizes would be wrong.
    pub(super) fn check(&self) -> Result<(), Broken> {
        let neighbours = self.pending.iter().zip(self.pending.iter().skip(1));
        let mut neighbours = neighbours.map(|(one, next)| ((one.space, &one.key), (next.space, &next.key)));
        let is_in_order = neighbours.all(|(one, next)| one < next);
        Invariant::GroupIsInOrder.check(is_in_order, || format!("{} keys", self.pending.len()))
    }

    /// Whether it changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.own.is_empty()
    }

    /// All full keys and values in one buffer. A scan then reads neighbours from adjacent memory, and no key needs its
    /// own allocation or reference count. The memtable that holds the buffer releases all its keys at once.
    pub(super) fn together(&self) -> Bytes {
        let bytes = self
            .pending
            .iter()
            .map(|pending| pending.full_len() + pending.copied().len());
        let mut together = BytesMut::with_capacity(bytes.sum());
        for pending in &self.pending {
            together.put_u8(pending.space.byte());
            together.extend_from_slice(&pending.key);
            together.extend_from_slice(pending.copied());
        }
        together.freeze()
    }

    /// A checksum of the group's keys and values; `together` as made by [`Group::together`].
    pub(super) fn digest(&self, together: &[u8]) -> u32 {
        let mut digest = crc32fast::Hasher::new();
        digest.update(together);
        for pending in &self.pending {
            if let Some(value) = &pending.value
                && value.len() > COPIED_BYTES_MAX
            {
                digest.update(value);
            }
        }
        digest.finalize()
    }
}

/// The runs of changes of one key.
pub(super) fn runs<'p, 'a>(placed: &'p [Placed<'a>]) -> impl Iterator<Item = &'p [Placed<'a>]> {
    placed.chunk_by(|a, b| a.start == b.start && a.key == b.key)
}

impl Placed<'_> {
    /// Merges a value with the stored one. Refuses it if the row would become too long.
    fn merged(&self, current: &Bytes, value: &Bytes) -> Result<Bytes> {
        let merged = merge_values(self.space, current, value)?;
        self.check_row_bytes(Some(current.len()), value, &merged)?;
        Ok(merged)
    }

    fn check_row_bytes(&self, before: Option<usize>, fragment: &[u8], after: &[u8]) -> Result<()> {
        if after.len() <= self.row_bytes_max || self.space != Space::Rows {
            return Ok(());
        }
        check_row_bytes(before, fragment, after.len(), self.row_bytes_max)
    }

    /// The index of its request.
    pub(super) const fn request(&self) -> usize {
        self.request
    }
}
