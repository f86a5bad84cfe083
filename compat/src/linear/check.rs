//! The search for an order that explains a history.
//!
//! Depth first: of the operations that may come next (called before the earliest answer still to be explained), one whose
//! answer the present state explains is taken, until all answers are explained or nothing fits; then the last choice is
//! taken back. What is in doubt is tried after everything else, and may be left over.
//!
//! Three things keep the search short, and lose no order that explains the answers:
//! - an operation that fits and does not write is taken at once: nothing later depends on it;
//! - a configuration (which answers are explained, the state, which doubts are used) is not entered when one with the same
//!   answers and state and no other doubts than these was left in vain: whatever could follow could have followed there;
//! - values that no answer shows and no condition names are all one value, and of doubts that then ask the same, the one that
//!   was called first is used first.

use std::collections::{HashMap, HashSet};

use super::history::{Action, Answer, Operation, Pair};

/// Most configurations of one pair that are looked at: some minutes.
const CONFIGURATIONS_MAX: usize = 5_000_000;

/// Stands for all values that nobody ever saw.
const UNSEEN: i32 = i32::MIN;

/// What the search found.
#[derive(Debug)]
pub(super) enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none. The operations that could have come next where the search got furthest.
    Refused(Vec<Operation>),
    /// Too many possibilities.
    GaveUp,
}

/// The choices at one depth.
struct Level {
    /// Places of the operations that fit here and what they lead to, the next to be tried last.
    choices: Vec<(usize, Pair)>,
    /// The operation that was taken to come here.
    taken: Option<usize>,
}

/// The doubts used, a bit each.
type Used = Box<[u64]>;

struct Search {
    /// In order of their calls.
    operations: Vec<Operation>,
    /// Places of answered operations, and of those in doubt.
    answered: Vec<usize>,
    in_doubt: Vec<usize>,
    is_behind: Vec<bool>,
    /// How many of `answered` are behind without a gap.
    low: usize,
    /// A random number for each operation; the set of those answered that are behind is told by the sum of theirs.
    marks: Vec<u128>,
    mark: u128,
    used: Used,
}

/// Looks for an order of these operations, which are in order of their calls. Says how many configurations it looked at.
pub(super) fn check(operations: &[Operation]) -> (Verdict, usize) {
    let mut random = fastrand::Rng::with_seed(0);
    let (answered, in_doubt): (Vec<usize>, Vec<usize>) =
        (0..operations.len()).partition(|place| operations.get(*place).is_some_and(|o| o.answer.is_some()));
    let mut search = Search {
        operations: with_one_unseen_value(operations),
        is_behind: vec![false; operations.len()],
        low: 0,
        marks: operations.iter().map(|_| random.u128(..)).collect(),
        mark: 0,
        used: vec![0; in_doubt.len().div_ceil(64)].into(),
        answered,
        in_doubt,
    };
    search.run()
}

/// The same operations, with one value in place of all that no answer shows and no condition names.
fn with_one_unseen_value(operations: &[Operation]) -> Vec<Operation> {
    let mut seen: HashSet<i32> = HashSet::new();
    for operation in operations {
        match &operation.answer {
            Some((_, Answer::Seen(pair))) => seen.extend(pair.iter().flatten()),
            Some((_, Answer::Refused(shown))) => seen.extend(shown.iter().flatten().flatten()),
            Some((_, Answer::Applied)) | None => {}
        }
        match &operation.action {
            Action::Update { expected, .. } | Action::Delete { expected, .. } | Action::Beside { expected, .. } => {
                seen.extend(expected);
            }
            Action::Both { expected, .. } => seen.extend(expected.iter().flatten()),
            _ => {}
        }
    }
    let mut operations = operations.to_vec();
    for operation in &mut operations {
        operation.action.for_each_written(|value| {
            if !seen.contains(value) {
                *value = UNSEEN;
            }
        });
    }
    operations
}

impl Search {
    fn run(&mut self) -> (Verdict, usize) {
        // For answers explained and a state: doubts used on the ways that came here, none of which has all of another's.
        let mut entered: HashMap<(u128, Pair), Vec<Used>> = HashMap::new();
        let mut looked_at = 0;
        let mut furthest = (0, Vec::new());
        let mut levels = vec![self.level([None, None], None)];
        let mut behind = 0;
        while let Some(level) = levels.last_mut() {
            let Some((place, after)) = level.choices.pop() else {
                let taken = levels.pop().and_then(|level| level.taken);
                if let Some(place) = taken {
                    self.put(place, false);
                    behind -= usize::from(self.is_answered(place));
                }
                continue;
            };
            self.put(place, true);
            behind += usize::from(self.is_answered(place));
            if behind == self.answered.len() {
                return (Verdict::Linearizable, looked_at);
            }
            let ways = entered.entry((self.mark, after)).or_default();
            if ways.iter().any(|way| is_within(way, &self.used)) {
                self.put(place, false);
                behind -= usize::from(self.is_answered(place));
                continue;
            }
            ways.retain(|way| !is_within(&self.used, way));
            ways.push(self.used.clone());
            looked_at += 1;
            if looked_at > CONFIGURATIONS_MAX {
                return (Verdict::GaveUp, looked_at);
            }
            let level = self.level(after, Some(place));
            if level.choices.is_empty() && behind >= furthest.0 {
                furthest = (behind, self.may_come_next());
            }
            levels.push(level);
        }
        if self.answered.is_empty() {
            return (Verdict::Linearizable, looked_at);
        }
        if furthest.1.is_empty() {
            furthest.1 = self.may_come_next();
        }
        let stuck = furthest
            .1
            .iter()
            .filter_map(|place| self.operations.get(*place).cloned());
        (Verdict::Refused(stuck.collect()), looked_at)
    }

    fn is_answered(&self, place: usize) -> bool {
        self.operations.get(place).is_some_and(|o| o.answer.is_some())
    }

    fn is_behind(&self, place: usize) -> bool {
        self.is_behind.get(place).copied().unwrap_or(true)
    }

    fn put(&mut self, place: usize, behind: bool) {
        if let Some(slot) = self.is_behind.get_mut(place) {
            *slot = behind;
        }
        let Ok(own) = self.answered.binary_search(&place) else {
            if let Ok(number) = self.in_doubt.binary_search(&place)
                && let Some(bits) = self.used.get_mut(number / 64)
            {
                *bits ^= 1 << (number % 64);
            }
            return;
        };
        let mark = self.marks.get(place).copied().unwrap_or_default();
        if behind {
            self.mark = self.mark.wrapping_add(mark);
            while self.answered.get(self.low).is_some_and(|place| self.is_behind(*place)) {
                self.low += 1;
            }
        } else {
            self.mark = self.mark.wrapping_sub(mark);
            // The gap may have moved back; never further than the operation's own place.
            self.low = self.low.min(own);
        }
    }

    /// Answered operations that no other unexplained one was answered before, then those in doubt.
    fn may_come_next(&self) -> Vec<usize> {
        let mut first_answer = u64::MAX;
        let mut places = Vec::new();
        for place in self.answered.iter().skip(self.low) {
            let Some(operation) = self.operations.get(*place) else {
                continue;
            };
            if operation.called > first_answer {
                break;
            }
            if let (false, Some((at, _))) = (self.is_behind(*place), &operation.answer) {
                first_answer = first_answer.min(*at);
                places.push((*at, *place));
            }
        }
        places.retain(|(_, place)| self.operations.get(*place).is_some_and(|o| o.called < first_answer));
        places.sort_unstable();
        let mut next: Vec<usize> = places.into_iter().map(|(_, place)| place).collect();
        for place in &self.in_doubt {
            let called_before = self.operations.get(*place).is_some_and(|o| o.called < first_answer);
            if !called_before {
                break;
            }
            if !self.is_behind(*place) {
                next.push(*place);
            }
        }
        next
    }

    fn level(&self, state: Pair, taken: Option<usize>) -> Level {
        let mut choices: Vec<(usize, Pair)> = Vec::new();
        let mut doubts: HashSet<&Action> = HashSet::new();
        for place in self.may_come_next() {
            let Some(operation) = self.operations.get(place) else {
                continue;
            };
            if let Some(after) = operation.explained_by(&state)
                && (operation.answer.is_some() || doubts.insert(&operation.action))
            {
                choices.push((place, after));
            }
        }
        // What does not write can come first wherever it fits: nothing later depends on it.
        if let Some(place) = choices
            .iter()
            .position(|(place, after)| *after == state && self.is_answered(*place))
        {
            choices = vec![choices.swap_remove(place)];
        }
        choices.reverse();
        Level { choices, taken }
    }
}

/// Whether all doubts of the first are among those of the second.
fn is_within(first: &Used, second: &Used) -> bool {
    first.iter().zip(second).all(|(first, second)| first & !second == 0)
}

#[cfg(test)]
mod tests {
    use super::super::falsify;
    use super::super::history::{Action, Answer};
    use super::*;

    fn operation(called: u64, answered: u64, action: Action, answer: Answer) -> Operation {
        Operation {
            pair: 0,
            called,
            answer: Some((answered, answer)),
            action,
        }
    }

    fn holds(operations: &[Operation]) -> bool {
        matches!(check(operations).0, Verdict::Linearizable)
    }

    fn insert(called: u64, answered: u64, value: i32) -> Operation {
        operation(called, answered, Action::Insert { row: 0, value }, Answer::Applied)
    }

    fn read(called: u64, answered: u64, value: Option<i32>) -> Operation {
        operation(called, answered, Action::Read, Answer::Seen([value, None]))
    }

    #[test]
    fn what_overlaps_may_be_in_either_order() {
        assert!(holds(&[insert(1, 10, 5), read(2, 3, None), read(4, 5, Some(5))]));
        assert!(!holds(&[insert(1, 10, 5), read(2, 3, Some(5)), read(4, 5, None)]));
        assert!(!holds(&[insert(1, 2, 5), read(3, 4, None)]));
        assert!(!holds(&[insert(1, 2, 5), insert(3, 4, 6)]));
        let update = |expected, value| Action::Update {
            row: 0,
            expected,
            value,
        };
        assert!(holds(&[
            insert(1, 2, 5),
            operation(3, 9, update(Some(5), 6), Answer::Applied),
            operation(4, 8, update(Some(5), 7), Answer::Refused([Some(Some(6)), None])),
        ]));
        // Granted twice.
        assert!(!holds(&[
            insert(1, 2, 5),
            operation(3, 9, update(Some(5), 6), Answer::Applied),
            operation(4, 8, update(Some(5), 7), Answer::Applied),
        ]));
    }

    #[test]
    fn what_is_in_doubt_happens_late_once_or_never() {
        let doubtful = |called, value| Operation {
            pair: 0,
            called,
            answer: None,
            action: Action::Insert { row: 0, value },
        };
        assert!(holds(&[doubtful(1, 5), read(2, 3, None)]));
        assert!(holds(&[doubtful(1, 5), read(2, 3, None), read(4, 5, Some(5))]));
        assert!(!holds(&[doubtful(1, 5), read(2, 3, Some(5)), read(4, 5, None)]));
        assert!(!holds(&[read(2, 3, Some(5)), doubtful(4, 5)]));
        let delete = operation(4, 5, Action::DeleteExisting { row: 0 }, Answer::Applied);
        let read_again = read(6, 7, Some(5));
        assert!(!holds(&[doubtful(1, 5), read(2, 3, Some(5)), delete, read_again]));
    }

    #[test]
    fn batches_are_whole() {
        let both = operation(1, 2, Action::InsertBoth { values: [1, 2] }, Answer::Applied);
        let seen = |at: u64, pair| operation(at, at + 1, Action::Read, Answer::Seen(pair));
        assert!(holds(&[both.clone(), seen(3, [Some(1), Some(2)])]));
        assert!(!holds(&[both.clone(), seen(3, [Some(1), None])]));
        let beside = Action::Beside {
            row: 1,
            expected: Some(2),
            value: 9,
            other: None,
        };
        let beside = operation(5, 6, beside, Answer::Applied);
        assert!(holds(&[both, beside, seen(7, [None, Some(9)])]));
    }

    /// A history as a correct server gives it: each operation takes effect between its call and its answer, some are in doubt.
    fn simulated(random: &mut fastrand::Rng, count: usize, clients: usize) -> Vec<Operation> {
        let mut state = [None, None];
        let mut now = 0;
        let mut value = 0;
        let mut history = Vec::new();
        let mut waiting: Vec<(Operation, bool)> = Vec::new();
        while history.len() < count {
            now += 1;
            if waiting.len() < clients && random.bool() {
                value += 2;
                let row = random.usize(..2);
                let expected = if random.u8(..4) == 0 { None } else { state[row] };
                let action = match random.u8(..8) {
                    0 | 1 => Action::Read,
                    2 => Action::Insert { row, value },
                    3 => Action::Delete { row, expected },
                    4 => Action::Both {
                        expected: state,
                        values: [value, value + 1],
                    },
                    5 => Action::DeleteExisting { row },
                    _ => Action::Update { row, expected, value },
                };
                let operation = Operation {
                    pair: 0,
                    called: now,
                    answer: None,
                    action,
                };
                waiting.push((operation, false));
                continue;
            }
            if waiting.is_empty() {
                continue;
            }
            let at = random.usize(..waiting.len());
            let (operation, took_effect) = &mut waiting[at];
            if !*took_effect {
                *took_effect = true;
                let shown = operation.action.shows();
                let answer = match operation.action.applied_to(&state) {
                    _ if operation.action == Action::Read => Answer::Seen(state),
                    Some(after) => {
                        state = after;
                        Answer::Applied
                    }
                    None => Answer::Refused([0, 1].map(|row| shown[row].then_some(state[row]))),
                };
                operation.answer = Some((0, answer));
            } else {
                let (mut operation, _) = waiting.swap_remove(at);
                operation.answer = operation.answer.map(|(_, answer)| (now, answer));
                if random.u8(..50) == 0 {
                    operation.answer = None;
                }
                history.push(operation);
            }
        }
        // Those still waiting may have taken effect.
        history.extend(waiting.into_iter().map(|(operation, _)| Operation {
            answer: None,
            ..operation
        }));
        history.sort_by_key(|operation| operation.called);
        history
    }

    #[test]
    fn true_histories_are_accepted_and_falsified_ones_refused() {
        for seed in 0..30 {
            let mut random = fastrand::Rng::with_seed(seed);
            let history = simulated(&mut random, 800, 12);
            assert!(holds(&history), "seed {seed}");
            for kind in falsify::KINDS {
                if let Some(lie) = falsify::falsified(&history, kind, &mut random) {
                    assert!(!holds(&lie), "seed {seed}, {kind}");
                }
            }
        }
    }
}
