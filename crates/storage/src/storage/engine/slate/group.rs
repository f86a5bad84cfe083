//! The changes of one group of batches, key by key: folded into one, with the index entries that derive from them.

use std::collections::HashMap;

use bytes::Bytes;
use foldhash::quality::RandomState;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::merge_or_keep_damage;
use crate::storage::batch::{Change, Space, check_row_bytes, merge_values};
use crate::storage::derivation::{self, Derivations};
use crate::storage::engine::layout::full_key;
use crate::storage::purge::Effect;
use crate::storage::{CommitSeq, Error, Opening, Result};

/// A batch in the queue.
pub(super) struct Request {
    /// The opening that its conditions were checked in: in any other opening it is refused. `None` means any opening.
    pub(super) only_in: Option<Opening>,
    /// The row's length limit, checked as far as the row is known here.
    pub(super) row_bytes_max: Option<usize>,
    pub(super) changes: Vec<Change>,
    pub(super) bytes: usize,
    pub(super) answer: oneshot::Sender<Result<CommitSeq>>,
    pub(super) queue_space: OwnedSemaphorePermit,
}

/// The changes of a group to one key, folded into one.
pub(super) enum Fold {
    Put(Bytes),
    Delete,
    Merge(Bytes),
}

/// The changes of a group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) folds: HashMap<Vec<u8>, (Space, Fold), RandomState>,
    pub(super) own: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Its position in the change feed. `None` means that it changes no row of a table with one.
    pub(super) position: Option<i64>,
}

impl Group {
    /// Adds entries of change logs.
    pub(super) fn log(&mut self, entries: Vec<(Vec<u8>, Bytes)>) {
        for (key, value) in entries {
            let put = (Space::Feed, Fold::Put(value));
            self.folds.insert(full_key(Space::Feed, &key), put);
        }
    }
}

/// Stored values by full key, for the changes that depend on them.
pub(super) type Current = HashMap<Vec<u8>, Bytes, RandomState>;

/// Folds the changes of each key into one. A batch whose changes do not merge is refused alone.
pub(super) fn stage(requests: &[Request], current: &Current) -> (Group, Vec<Option<Error>>) {
    let mut refusals: Vec<Option<Error>> = vec![None; requests.len()];
    'again: loop {
        let mut group = Group::default();
        for (request, refusal) in requests.iter().zip(&mut refusals) {
            if refusal.is_none()
                && let Err(error) = stage_batch(&mut group, request, current)
            {
                *refusal = Some(error);
                continue 'again;
            }
        }
        return (group, refusals);
    }
}

fn stage_batch(group: &mut Group, request: &Request, current: &Current) -> Result<()> {
    for change in &request.changes {
        let (space, key, fold) = match change {
            Change::Put { space, key, value } => (*space, key, Fold::Put(value.clone())),
            Change::Delete { space, key } => (*space, key, Fold::Delete),
            Change::Merge { space, key, value } => (*space, key, Fold::Merge(value.clone())),
            Change::Purge { .. } | Change::Forget { .. } => {
                stage_purge(group, change, current)?;
                continue;
            }
            Change::DeleteRange { .. } | Change::Reindex { .. } => continue,
        };
        let full = full_key(space, key);
        if let (Some(bytes_max), Space::Rows, Fold::Merge(fragment)) = (request.row_bytes_max, space, &fold) {
            check_row(group.folds.get(&full), current.get(&full), fragment, bytes_max)?;
        }
        let fold = match (group.folds.get(&full), fold) {
            (Some((_, Fold::Put(old))), Fold::Merge(new)) => Fold::Put(merge_values(space, old, &new)?),
            (Some((_, Fold::Merge(old))), Fold::Merge(new)) => Fold::Merge(merge_values(space, old, &new)?),
            (Some((_, Fold::Delete)), Fold::Merge(new)) => Fold::Put(new),
            (_, fold) => fold,
        };
        group.folds.insert(full, (space, fold));
    }
    Ok(())
}

/// Stages a change of a purge, whose value is known ([`super::committer::Committer`] reads it for such changes).
fn stage_purge(group: &mut Group, change: &Change, current: &Current) -> Result<()> {
    let Some((space, key)) = change.place() else {
        return Ok(());
    };
    let full = full_key(space, key);
    let value = match group.folds.get(&full) {
        None => current.get(&full).cloned(),
        Some((_, Fold::Put(value))) => Some(value.clone()),
        Some((_, Fold::Delete)) => None,
        Some((_, Fold::Merge(fragment))) => Some(match current.get(&full) {
            Some(before) => merge_values(space, before, fragment)?,
            None => fragment.clone(),
        }),
    };
    let fold = match change.effect_on(value.as_ref())? {
        Effect::Unchanged => return Ok(()),
        Effect::Removed => Fold::Delete,
        Effect::Shrunk(value) => Fold::Put(value),
    };
    group.folds.insert(full, (space, fold));
    Ok(())
}

/// Refuses a partial row that makes its row longer than the limit. Only the known part of the row counts: the part that
/// was read, and the changes of the group.
fn check_row(folded: Option<&(Space, Fold)>, read: Option<&Bytes>, fragment: &Bytes, bytes_max: usize) -> Result<()> {
    let folded = folded.map(|(_, fold)| fold);
    let in_group = match folded {
        Some(Fold::Put(value) | Fold::Merge(value)) => value.len(),
        Some(Fold::Delete) | None => 0,
    };
    if fragment.len() + in_group + read.map_or(0, Bytes::len) <= bytes_max {
        return Ok(());
    }
    let before = match folded {
        Some(fold) => after_fold(read, fold),
        None => read.cloned(),
    };
    let after = match &before {
        Some(before) => merge_values(Space::Rows, before, fragment)?.len(),
        None => fragment.len(),
    };
    check_row_bytes(before.as_ref().map(Bytes::len), fragment, after, bytes_max)
}

/// Whether index entries or view rows derive from the value at this key.
pub(super) fn is_derived(space: Space, key: &[u8], derivations: &Derivations) -> bool {
    space == Space::Rows && derivation::of_row(derivations, key).is_some()
}

/// Adds the changes of index entries that derive from those of rows.
pub(super) fn derive(
    group: &mut Group,
    requests: &[Request],
    refusals: &[Option<Error>],
    current: &Current,
    derivations: &Derivations,
) {
    if derivations.is_empty() {
        return;
    }
    let mut entries = Vec::new();
    for (full, (space, fold)) in &group.folds {
        let key = full.get(1..).unwrap_or_default();
        let Some(derivation) = derivation::of_row(derivations, key).filter(|_| *space == Space::Rows) else {
            continue;
        };
        let before = current.get(full);
        let after = after_fold(before, fold);
        entries.extend(derivation::changes(
            derivation.as_ref(),
            key,
            before.map(Bytes::as_ref),
            after.as_deref(),
        ));
    }
    for (request, _) in requests.iter().zip(refusals).filter(|(_, refusal)| refusal.is_none()) {
        for change in &request.changes {
            if let Change::Reindex { key, index } = change
                && let Some(derivation) = derivation::of_row(derivations, key)
            {
                let full = full_key(Space::Rows, key);
                let before = current.get(&full);
                let row = match group.folds.get(&full) {
                    Some((_, fold)) => after_fold(before, fold),
                    None => before.cloned(),
                };
                let of_index = derivation::entries_in(derivation.as_ref(), *index, key, row.as_deref());
                entries.extend(of_index.map(|(entry, value)| (entry, Some(value))));
            }
        }
    }
    for (entry, value) in entries {
        let fold = value.map_or(Fold::Delete, Fold::Put);
        group
            .folds
            .insert(full_key(Space::Indexes, &entry), (Space::Indexes, fold));
    }
}

/// The row after a fold, as the merge operator will compute it.
fn after_fold(before: Option<&Bytes>, fold: &Fold) -> Option<Bytes> {
    match (fold, before) {
        (Fold::Put(value), _) | (Fold::Merge(value), None) => Some(value.clone()),
        (Fold::Merge(value), Some(before)) => Some(merge_or_keep_damage(Space::Rows, before.clone(), value.clone())),
        (Fold::Delete, _) => None,
    }
}
