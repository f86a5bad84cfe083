//! Regular expressions as `java.util.regex` has them: parsed, compiled to a program, matched with backtracking.
//!
//! No library serves: those without backtracking have no lookaround, back references or possessive quantifiers, and find
//! another match where alternatives overlap. Each step of a match counts as a step of the call, so that a pattern which
//! backtracks for ever is stopped.
//!
//! Left out, and refused by name: `\X`, `\N{…}`, `\G`, canonical equivalence, properties other than
//! general categories and those of ASCII.

mod bracket;
mod class;
mod compile;
mod escape;
mod parse;
mod run;

use std::sync::Arc;

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

/// What a match may take: it asks before it takes more.
pub(crate) trait Meter {
    /// Why it may take no more.
    type Stop;

    /// Takes steps.
    fn steps(&mut self, steps: usize) -> Result<(), Self::Stop>;

    /// Takes memory.
    fn bytes(&mut self, bytes: u64) -> Result<(), Self::Stop>;
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
    pub(crate) text: Arc<[u16]>,
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
    pub(crate) fn new(text: &Arc<[u16]>, flags: i32) -> Result<Self, Wrong> {
        let parsed = parse::parsed(text, flags)?;
        let compiled = compile::compiled(&parsed.node)?;
        Ok(Self {
            text: Arc::clone(text),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What matches with which text is compared with Cassandra's answers by a script of the oracle.
    #[test]
    fn no_text_makes_the_parser_panic() {
        let patterns = [
            "(?<name>a|b{2,3}?)\\k<name>[^x&&[a-z]\\d-]+(?i:Ä)\\p{Lu}",
            "\\Qa.b\\E(?x) a #c\n\\x{1F600}\\u0041\\012\\cA\\R(?=a)(?<!b)(?>c)++",
            "[]^a\\]&&[b[c]]]|(?m-s)^$\\b\\B\\A\\z\\Z.",
            "😀[😀-😂]*+{2}",
        ];
        for pattern in patterns {
            for (at, _) in pattern.char_indices() {
                for part in [pattern.get(..at), pattern.get(at..)].into_iter().flatten() {
                    let text: Arc<[u16]> = part.encode_utf16().collect();
                    for flags in [
                        0,
                        flag::COMMENTS,
                        flag::LITERAL,
                        flag::CASE_INSENSITIVE | flag::UNICODE_CASE,
                    ] {
                        drop(Pattern::new(&text, flags));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_nested_or_repeated_for_ever_is_refused() {
        let refused = |pattern: String| {
            let text: Arc<[u16]> = pattern.encode_utf16().collect();
            assert!(
                matches!(Pattern::new(&text, 0), Err(Wrong::LeftOut(_))),
                "{pattern:.20}"
            );
        };
        refused("(".repeat(500));
        refused("[".repeat(500));
        refused("a{100000}".to_owned());
        refused("((a{100}){100}){100}".to_owned());
    }
}
