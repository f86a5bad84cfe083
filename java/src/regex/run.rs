//! Matches a text with a program, by backtracking.

use super::class::{is_letter_or_digit, is_terminator, same_but_case};
use super::compile::Op;
use super::parse::{Assert, Case};
use super::{Meter, Pattern, code_at};

/// Bytes charged for an entry of the stack.
const ENTRY_BYTES: u64 = 24;

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Where the match begins at the earliest.
    pub(crate) from: usize,
    /// Whether it begins there, and not later.
    pub(crate) is_anchored: bool,
    /// Whether it ends at the end of the text.
    pub(crate) to_end: bool,
}

/// The ends of each group.
pub(crate) type Groups = Vec<Option<usize>>;

/// The way back from a choice.
enum Back {
    Branch { place: usize, at: usize },
    Group { slot: usize, old: Option<usize> },
    Turn { number: usize, old: usize },
}

struct Matching<'a, 'm, M> {
    pattern: &'a Pattern,
    units: &'a [u16],
    to_end: bool,
    groups: Groups,
    turns: Vec<usize>,
    /// The longest that the stacks together were.
    deepest: usize,
    depth: usize,
    meter: &'m mut M,
}

/// The first match, if there is one.
pub(crate) fn search<M: Meter>(
    meter: &mut M,
    pattern: &Pattern,
    units: &[u16],
    search: Search,
) -> Result<Option<Groups>, M::Stop> {
    let last = if search.is_anchored { search.from } else { units.len() };
    for from in search.from..=last {
        let mut matching = Matching {
            pattern,
            units,
            to_end: search.to_end,
            groups: vec![None; pattern.groups * 2],
            turns: vec![usize::MAX; pattern.loops],
            deepest: 0,
            depth: 0,
            meter,
        };
        matching.meter.steps(1 + pattern.groups / 4)?;
        if let Some(end) = matching.run(0, from, None)? {
            let mut groups = matching.groups;
            for (place, at) in groups.iter_mut().zip([from, end]) {
                *place = Some(at);
            }
            return Ok(Some(groups));
        }
    }
    Ok(None)
}

impl<M: Meter> Matching<'_, '_, M> {
    /// Runs from a place of the program to `Match`, or to the `End` of a part that is run by itself, which must be
    /// `ends_at` if that is given. The position then.
    fn run(&mut self, place: usize, at: usize, ends_at: Option<usize>) -> Result<Option<usize>, M::Stop> {
        let mut stack: Vec<Back> = Vec::new();
        let (mut place, mut at) = (place, at);
        loop {
            self.meter.steps(1)?;
            let next = match self.pattern.ops.get(place) {
                Some(Op::Match) if !self.to_end || at == self.units.len() => return self.left(&stack, at),
                Some(Op::End) if ends_at.is_none_or(|end| end == at) => return self.left(&stack, at),
                Some(op) => self.op(op, place, at, &mut stack)?,
                None => None,
            };
            match next {
                Some((to, position)) => (place, at) = (to, position),
                None => match self.back(&mut stack) {
                    Some((to, position)) => (place, at) = (to, position),
                    None => return Ok(None),
                },
            }
        }
    }

    fn left(&mut self, stack: &[Back], at: usize) -> Result<Option<usize>, M::Stop> {
        self.depth = self.depth.saturating_sub(stack.len());
        Ok(Some(at))
    }

    fn push(&mut self, stack: &mut Vec<Back>, entry: Back) -> Result<(), M::Stop> {
        self.depth += 1;
        if self.depth > self.deepest {
            self.deepest = self.depth;
            self.meter.bytes(ENTRY_BYTES)?;
        }
        stack.push(entry);
        Ok(())
    }

    /// Undoes what was done since the last choice; where that goes on.
    fn back(&mut self, stack: &mut Vec<Back>) -> Option<(usize, usize)> {
        while let Some(entry) = stack.pop() {
            self.depth = self.depth.saturating_sub(1);
            match entry {
                Back::Branch { place, at } => return Some((place, at)),
                Back::Group { slot, old } => self.set_group(slot, old),
                Back::Turn { number, old } => self.set_turn(number, old),
            }
        }
        None
    }

    fn set_group(&mut self, slot: usize, to: Option<usize>) {
        if let Some(place) = self.groups.get_mut(slot) {
            *place = to;
        }
    }

    fn set_turn(&mut self, number: usize, to: usize) {
        if let Some(place) = self.turns.get_mut(number) {
            *place = to;
        }
    }

    /// Runs an instruction: where to go on; none where it fails.
    fn op(
        &mut self,
        op: &Op,
        place: usize,
        at: usize,
        stack: &mut Vec<Back>,
    ) -> Result<Option<(usize, usize)>, M::Stop> {
        let next = place + 1;
        Ok(match op {
            Op::Character { code, case } => code_at(self.units, at)
                .filter(|(other, _)| same(*code, *other, *case))
                .map(|(_, length)| (next, at + length)),
            Op::Set(set) => match (self.pattern.sets.get(*set), code_at(self.units, at)) {
                (Some(set), Some((code, length))) if set.has(code) => Some((next, at + length)),
                _ => None,
            },
            Op::Split(first, second) => {
                self.push(stack, Back::Branch { place: *second, at })?;
                Some((*first, at))
            }
            Op::Jump(to) => Some((*to, at)),
            Op::Save(slot) => {
                let old = self.groups.get(*slot).copied().flatten();
                self.push(stack, Back::Group { slot: *slot, old })?;
                self.set_group(*slot, Some(at));
                Some((next, at))
            }
            Op::Turn(number) => {
                let old = self.turns.get(*number).copied().unwrap_or(usize::MAX);
                let number = *number;
                self.push(stack, Back::Turn { number, old })?;
                self.set_turn(number, at);
                Some((next, at))
            }
            Op::Leave(number, past) => {
                let is_empty = self.turns.get(*number) == Some(&at);
                Some((if is_empty { *past } else { next }, at))
            }
            Op::Assert(assert) => self.holds(*assert, at).then_some((next, at)),
            Op::Back { group, case } => self.repeated(*group, *case, at)?.map(|end| (next, end)),
            Op::Atomic(past) => {
                let end = self.apart(next, at, None, stack)?;
                end.map(|end| (*past, end))
            }
            Op::Look {
                next: past,
                behind,
                negates,
            } => {
                let before = negates.then(|| (self.groups.clone(), self.turns.clone()));
                let is_there = self.looks(next, at, *behind, stack)?;
                if let Some((groups, turns)) = before {
                    (self.groups, self.turns) = (groups, turns);
                }
                (is_there != *negates).then_some((*past, at))
            }
            Op::Match | Op::End | Op::Fail => None,
        })
    }

    fn looks(
        &mut self,
        place: usize,
        at: usize,
        behind: Option<(usize, usize)>,
        stack: &mut Vec<Back>,
    ) -> Result<bool, M::Stop> {
        let Some((shortest, longest)) = behind else {
            return Ok(self.apart(place, at, None, stack)?.is_some());
        };
        let Some(last) = at.checked_sub(shortest) else {
            return Ok(false);
        };
        let first = at.saturating_sub(longest);
        for from in (first..=last).rev() {
            if self.apart(place, from, Some(at), stack)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs a part by itself: once it has matched, no choice within it is made anew. What it saved is undone with the rest.
    fn apart(
        &mut self,
        place: usize,
        at: usize,
        ends_at: Option<usize>,
        stack: &mut Vec<Back>,
    ) -> Result<Option<usize>, M::Stop> {
        let (groups, turns) = (self.groups.clone(), self.turns.clone());
        self.meter.steps(groups.len() / 4)?;
        let end = self.run(place, at, ends_at)?;
        if end.is_some() {
            for (slot, old) in groups.into_iter().enumerate() {
                if self.groups.get(slot) != Some(&old) {
                    self.push(stack, Back::Group { slot, old })?;
                }
            }
            for (number, old) in turns.into_iter().enumerate() {
                if self.turns.get(number) != Some(&old) {
                    self.push(stack, Back::Turn { number, old })?;
                }
            }
        }
        Ok(end)
    }

    /// The end of a repetition of what a group matched.
    fn repeated(&mut self, group: usize, case: Case, at: usize) -> Result<Option<usize>, M::Stop> {
        let ends = (
            self.groups.get(group * 2).copied().flatten(),
            self.groups.get(group * 2 + 1).copied().flatten(),
        );
        let (Some(from), Some(to)) = ends else {
            return Ok(None);
        };
        let wanted = self.units.get(from..to).unwrap_or_default();
        self.meter.steps(wanted.len() / 4)?;
        let Some(found) = self.units.get(at..at + wanted.len()) else {
            return Ok(None);
        };
        let is_same = wanted
            .iter()
            .zip(found)
            .all(|(a, b)| same((*a).into(), (*b).into(), case));
        Ok(is_same.then_some(at + wanted.len()))
    }

    fn unit(&self, at: usize) -> u32 {
        self.units.get(at).copied().map_or(0, u32::from)
    }

    fn holds(&self, assert: Assert, at: usize) -> bool {
        let length = self.units.len();
        let terminates = |code: u32, is_unix: bool| if is_unix { code == 10 } else { is_terminator(code) };
        match assert {
            Assert::Begin => at == 0,
            Assert::End => at == length,
            Assert::BeginOfLine { is_unix } => {
                if at == length {
                    return false;
                }
                at == 0
                    || (terminates(self.unit(at - 1), is_unix)
                        && (is_unix || self.unit(at - 1) != 13 || self.unit(at) != 10))
            }
            Assert::LastLine { is_unix } => {
                if at == length {
                    return true;
                }
                let is_pair = at + 2 == length && self.unit(at) == 13 && self.unit(at + 1) == 10;
                let is_within = at > 0 && self.unit(at) == 10 && self.unit(at - 1) == 13;
                let is_last = at + 1 == length && terminates(self.unit(at), is_unix);
                (is_pair && !is_unix) || (is_last && (is_unix || !is_within))
            }
            Assert::EndOfLine { is_unix } => {
                if at == length {
                    return true;
                }
                let is_within = at > 0 && self.unit(at) == 10 && self.unit(at - 1) == 13;
                terminates(self.unit(at), is_unix) && (is_unix || !is_within)
            }
            Assert::Word | Assert::NoWord => {
                let before = at > 0 && is_word(self.before(at));
                let after = code_at(self.units, at).is_some_and(|(code, _)| is_word(code));
                (before != after) == (assert == Assert::Word)
            }
        }
    }

    /// The code point that ends at a position.
    fn before(&self, at: usize) -> u32 {
        match at.checked_sub(2).and_then(|from| code_at(self.units, from)) {
            Some((code, 2)) => code,
            _ => self.unit(at.saturating_sub(1)),
        }
    }
}

fn same(a: u32, b: u32, case: Case) -> bool {
    match case {
        Case::Exact => a == b,
        case => same_but_case(a, b, case == Case::Unicode),
    }
}

/// Whether a code point is a letter, a digit or a low line, for `\b`.
fn is_word(code: u32) -> bool {
    code == u32::from(b'_') || is_letter_or_digit(code)
}
