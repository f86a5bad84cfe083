//! Turns a parsed pattern into a program.

use super::Wrong;
use super::class::Set;
use super::parse::{Assert, Case, Kind, Node};

/// An instruction. Numbers are places in the program.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Character {
        code: u32,
        case: Case,
    },
    Set(usize),
    /// Goes on at the first place; at the second one where that fails.
    Split(usize, usize),
    Jump(usize),
    /// Notes the position as an end of a group.
    Save(usize),
    /// Notes where a turn of a loop begins.
    Turn(usize),
    /// Leaves the loop for a place if its turn was empty.
    Leave(usize, usize),
    Assert(Assert),
    Back {
        group: usize,
        case: Case,
    },
    /// Runs what follows, up to an `End`, by itself; goes on behind it.
    Atomic(usize),
    /// The same for a look, which moves nothing: `behind` is the shortest and the longest text that it looks back at.
    Look {
        next: usize,
        behind: Option<(usize, usize)>,
        negates: bool,
    },
    /// The end of an `Atomic` or a `Look`.
    End,
    Match,
    Fail,
}

pub(super) struct Compiled {
    pub(super) ops: Vec<Op>,
    pub(super) sets: Vec<Set>,
    pub(super) loops: usize,
}

/// Maximum instructions of a pattern.
const OPS_MAX: usize = 20_000;

pub(super) fn compiled(node: &Node) -> Result<Compiled, Wrong> {
    let mut compiled = Compiled {
        ops: Vec::new(),
        sets: Vec::new(),
        loops: 0,
    };
    compiled.node(node)?;
    compiled.op(Op::Match)?;
    Ok(compiled)
}

impl Compiled {
    fn op(&mut self, op: Op) -> Result<usize, Wrong> {
        if self.ops.len() >= OPS_MAX {
            let what = format!("Helenus takes patterns of at most {OPS_MAX} instructions in a function's body");
            return Err(Wrong::LeftOut(what));
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    fn set_op(&mut self, at: usize, op: Op) {
        if let Some(place) = self.ops.get_mut(at) {
            *place = op;
        }
    }

    fn node(&mut self, node: &Node) -> Result<(), Wrong> {
        match node {
            Node::Empty => {}
            Node::Character { code, case } => {
                self.op(Op::Character {
                    code: *code,
                    case: *case,
                })?;
            }
            Node::Set(set) => {
                self.sets.push(set.clone());
                self.op(Op::Set(self.sets.len() - 1))?;
            }
            Node::Sequence(all) => {
                for node in all {
                    self.node(node)?;
                }
            }
            Node::Choice(all) => self.choice(all)?,
            Node::Group(number, of) => {
                self.op(Op::Save(number * 2))?;
                self.node(of)?;
                self.op(Op::Save(number * 2 + 1))?;
            }
            Node::Repeat { of, min, max, kind } => {
                if *kind == Kind::Possessive {
                    let at = self.op(Op::Fail)?;
                    self.repeat(of, *min, *max, true)?;
                    self.op(Op::End)?;
                    self.set_op(at, Op::Atomic(self.ops.len()));
                } else {
                    self.repeat(of, *min, *max, *kind == Kind::Greedy)?;
                }
            }
            Node::Atomic(of) => {
                let at = self.op(Op::Fail)?;
                self.node(of)?;
                self.op(Op::End)?;
                self.set_op(at, Op::Atomic(self.ops.len()));
            }
            Node::Look { of, is_behind, negates } => {
                let at = self.op(Op::Fail)?;
                self.node(of)?;
                self.op(Op::End)?;
                let next = self.ops.len();
                let behind = is_behind.then(|| (length_min(of), length_max(of).unwrap_or(usize::MAX)));
                let negates = *negates;
                self.set_op(at, Op::Look { next, behind, negates });
            }
            Node::Back { group, case } => {
                self.op(Op::Back {
                    group: *group,
                    case: *case,
                })?;
            }
            Node::Assert(assert) => {
                self.op(Op::Assert(*assert))?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, all: &[Node]) -> Result<(), Wrong> {
        let mut jumps = Vec::with_capacity(all.len());
        for (number, node) in all.iter().enumerate() {
            if number + 1 == all.len() {
                self.node(node)?;
                break;
            }
            let split = self.op(Op::Fail)?;
            self.node(node)?;
            jumps.push(self.op(Op::Fail)?);
            self.set_op(split, Op::Split(split + 1, self.ops.len()));
        }
        let end = self.ops.len();
        for jump in jumps {
            self.set_op(jump, Op::Jump(end));
        }
        Ok(())
    }

    fn repeat(&mut self, of: &Node, min: u32, max: Option<u32>, is_greedy: bool) -> Result<(), Wrong> {
        let split = |into: usize, past: usize| {
            if is_greedy {
                Op::Split(into, past)
            } else {
                Op::Split(past, into)
            }
        };
        for _ in 0..min {
            self.node(of)?;
        }
        let Some(max) = max else {
            let at = self.op(Op::Fail)?;
            let may_be_empty = length_min(of) == 0;
            let number = self.loops;
            let turn = if may_be_empty {
                self.loops += 1;
                self.op(Op::Turn(number))?;
                true
            } else {
                false
            };
            self.node(of)?;
            let leave = if turn { Some(self.op(Op::Fail)?) } else { None };
            self.op(Op::Jump(at))?;
            let past = self.ops.len();
            if let Some(leave) = leave {
                self.set_op(leave, Op::Leave(number, past));
            }
            self.set_op(at, split(at + 1, past));
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.op(Op::Fail)?);
            self.node(of)?;
        }
        let past = self.ops.len();
        for at in splits {
            self.set_op(at, split(at + 1, past));
        }
        Ok(())
    }
}

/// The fewest units that a part matches.
pub(super) fn length_min(node: &Node) -> usize {
    match node {
        Node::Empty | Node::Look { .. } | Node::Assert(_) | Node::Back { .. } => 0,
        Node::Character { .. } | Node::Set(_) => 1,
        Node::Sequence(all) => all.iter().map(length_min).fold(0, usize::saturating_add),
        Node::Choice(all) => all.iter().map(length_min).min().unwrap_or(0),
        Node::Group(_, of) | Node::Atomic(of) => length_min(of),
        Node::Repeat { of, min, .. } => length_min(of).saturating_mul(usize::try_from(*min).unwrap_or(usize::MAX)),
    }
}

/// The most units that a part matches; none where there is no bound.
pub(super) fn length_max(node: &Node) -> Option<usize> {
    match node {
        Node::Empty | Node::Look { .. } | Node::Assert(_) => Some(0),
        Node::Back { .. } => None,
        Node::Character { code, .. } => Some(if *code > 0xffff { 2 } else { 1 }),
        Node::Set(_) => Some(2),
        Node::Sequence(all) => all
            .iter()
            .try_fold(0_usize, |sum, node| sum.checked_add(length_max(node)?)),
        Node::Choice(all) => all
            .iter()
            .try_fold(0_usize, |most, node| Some(most.max(length_max(node)?))),
        Node::Group(_, of) | Node::Atomic(of) => length_max(of),
        Node::Repeat { of, max, .. } => {
            let max = usize::try_from((*max)?).ok()?;
            length_max(of)?.checked_mul(max)
        }
    }
}
