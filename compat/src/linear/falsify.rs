//! Histories that no correct server could have given: what the checker is checked by.

use super::history::{Action, Answer, Operation, Pair};

/// The ways to falsify.
pub(super) const KINDS: [&str; 3] = [
    "a value nobody wrote",
    "a read of the past",
    "a write that was seen but refused",
];

/// A value that no client writes.
const NEVER_WRITTEN: i32 = -1;

/// The first operations of a history, as if nothing had been heard after the last of them was called: what was answered later is in
/// doubt. Linearizable where the whole is.
pub(super) fn beginning(operations: &[Operation], count: usize) -> Vec<Operation> {
    let mut first: Vec<Operation> = operations.iter().take(count).cloned().collect();
    let end = first.last().map_or(0, |operation| operation.called);
    for operation in &mut first {
        operation.answer = operation.answer.take().filter(|(at, _)| *at <= end);
    }
    first
}

/// The history with one answer changed so that it cannot be; `None` when this one has no place for it.
pub(super) fn falsified(operations: &[Operation], kind: &str, random: &mut fastrand::Rng) -> Option<Vec<Operation>> {
    let mut changed = operations.to_vec();
    let (place, answer) = match kind {
        "a value nobody wrote" => {
            let place = any(operations, random, |operation| seen(operation).is_some())?;
            (place, Answer::Seen([Some(NEVER_WRITTEN), None]))
        }
        "a read of the past" => past_read(operations, random)?,
        _ => {
            let place = any(operations, random, |operation| {
                let written = operation.action.written();
                operation.was_applied() && written.iter().any(|value| is_seen(operations, *value))
            })?;
            (place, Answer::Refused([None, None]))
        }
    };
    let slot = changed.get_mut(place)?;
    slot.answer = slot.answer.as_ref().map(|(at, _)| (*at, answer));
    Some(changed)
}

fn any(operations: &[Operation], random: &mut fastrand::Rng, fits: impl Fn(&Operation) -> bool) -> Option<usize> {
    let fitting = operations.iter().enumerate().filter(|(_, operation)| fits(operation));
    let places: Vec<usize> = fitting.map(|(place, _)| place).collect();
    random.choice(places)
}

/// What a read was answered, and when.
fn seen(operation: &Operation) -> Option<(u64, Pair)> {
    match (&operation.action, &operation.answer) {
        (Action::Read, Some((at, Answer::Seen(pair)))) => Some((*at, *pair)),
        _ => None,
    }
}

fn is_seen(operations: &[Operation], value: i32) -> bool {
    operations
        .iter()
        .filter_map(seen)
        .any(|(_, pair)| pair.contains(&Some(value)))
}

/// A read, and what an earlier one saw that a third between them saw replaced: values are written once, so that it cannot be back.
fn past_read(operations: &[Operation], random: &mut fastrand::Rng) -> Option<(usize, Answer)> {
    let reads: Vec<(usize, &Operation, u64, Pair)> = operations
        .iter()
        .enumerate()
        .filter_map(|(place, operation)| seen(operation).map(|(at, pair)| (place, operation, at, pair)))
        .collect();
    for _ in 0..100 {
        let (_, _, first_at, old) = random.choice(&reads)?;
        let later = |from: u64| reads.iter().filter(move |(_, operation, ..)| operation.called > from);
        let Some(row) = [0, 1]
            .into_iter()
            .find(|row| old.get(*row).is_some_and(Option::is_some))
        else {
            continue;
        };
        let Some((_, _, second_at, _)) = later(*first_at).find(|(.., pair)| pair.get(row) != old.get(row)) else {
            continue;
        };
        let thirds: Vec<usize> = later(*second_at).map(|(place, ..)| *place).collect();
        if let Some(place) = random.choice(thirds) {
            return Some((place, Answer::Seen(*old)));
        }
    }
    None
}
