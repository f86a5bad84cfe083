//! Regular expressions as `java.util.regex` has them: parsed, compiled to a program, matched with backtracking.
//!
//! No library serves: those without backtracking have no lookaround, back references or possessive quantifiers, and find
//! another match where alternatives overlap. Each step of a match counts as a step of the call, so that a pattern which
//! backtracks for ever is stopped.
//!
//! Left out, and refused by name: `\X`, `\N{…}`, `\G`, canonical equivalence, properties other than
//! general categories and those of ASCII.

mod class;
mod compile;
mod parse;
mod run;

use crate::value::Text;

pub(crate) use run::{Search, search};

/// Flags by Java's numbers.
pub(crate) mod flag {
    pub(crate) const UNIX_LINES: i32 = 1;
    pub(crate) const CASE_INSENSITIVE: i32 = 2;
    pub(crate) const COMMENTS: i32 = 4;
    pub(crate) const MULTILINE: i32 = 8;
    pub(crate) const LITERAL: i32 = 16;
    pub(crate) const DOTALL: i32 = 32;
    pub(crate) const UNICODE_CASE: i32 = 64;
}

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Java refuses it: its words, and where.
    Syntax { what: String, at: i64 },
    /// Java takes it, and this server does not.
    LeftOut(String),
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: Text,
    pub(crate) flags: i32,
    ops: Vec<compile::Op>,
    sets: Vec<class::Set>,
    /// Groups, the whole match included.
    pub(crate) groups: usize,
    pub(crate) names: Vec<(String, usize)>,
    /// Loops whose last turn may have been empty.
    loops: usize,
}

impl Pattern {
    /// Compiles a pattern.
    pub(crate) fn new(text: &Text, flags: i32) -> Result<Self, Wrong> {
        let parsed = parse::parsed(text, flags)?;
        let compiled = compile::compiled(&parsed.node)?;
        Ok(Self {
            text: text.clone(),
            flags,
            ops: compiled.ops,
            sets: compiled.sets,
            groups: parsed.groups,
            names: parsed.names,
            loops: compiled.loops,
        })
    }

    /// Its instructions.
    pub(crate) fn size(&self) -> usize {
        self.ops.len()
    }

    /// The number of the group of this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.names
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, number)| *number)
    }
}

/// The code point at a position, and its length in units.
pub(crate) fn code_at(units: &[u16], at: usize) -> Option<(u32, usize)> {
    let first = *units.get(at)?;
    match units.get(at + 1) {
        Some(second) if (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(second) => {
            let high = u32::from(first - 0xd800) << 10;
            Some((0x1_0000 + high + u32::from(second - 0xdc00), 2))
        }
        _ => Some((first.into(), 1)),
    }
}
