//! Classes of characters in brackets: `[a-z&&[^x]]`.

use super::Wrong;
use super::class::Set;
use super::parse::{Case, Parser};

impl Parser<'_> {
    /// What follows an open bracket.
    pub(super) fn class(&mut self) -> Result<Set, Wrong> {
        let negates = self.take('^');
        let mut sets: Vec<Set> = Vec::new();
        let mut left: Option<Set> = None;
        let mut is_first = true;
        loop {
            let Some(code) = self.peek() else {
                return Err(self.wrong("Unclosed character class", self.codes.len()));
            };
            match code {
                ']' if !is_first => {
                    self.at += 1;
                    break;
                }
                '[' => {
                    self.at += 1;
                    sets.push(self.deeper(Self::class)?);
                }
                '&' if self.codes.get(self.at + 1) == Some(&'&') => {
                    while self.take('&') {}
                    // Nothing before it, or nothing behind it, is not intersected.
                    if !sets.is_empty() {
                        let own = Set::Any(std::mem::take(&mut sets));
                        left = Some(match left.take() {
                            Some(left) => both(left, own),
                            None => own,
                        });
                    }
                }
                _ => sets.push(self.member()?),
            }
            is_first = false;
        }
        let own = Set::Any(sets);
        let set = match left {
            Some(left) if own == Set::Any(Vec::new()) => left,
            Some(left) => both(left, own),
            None => own,
        };
        Ok(if negates { Set::Not(Box::new(set)) } else { set })
    }

    /// A character, a range or a named set in a class.
    fn member(&mut self) -> Result<Set, Wrong> {
        let from = match self.class_character()? {
            Ok(code) => code,
            Err(set) => return Ok(set),
        };
        let next = self.codes.get(self.at + 1).copied();
        if self.codes.get(self.at) != Some(&'-') || matches!(next, Some(']' | '[')) {
            return Ok(self.range(from, from));
        }
        if next.is_none() {
            return Err(self.wrong("Illegal character range", self.codes.len() + 1));
        }
        self.at += 1;
        match self.class_character()? {
            Ok(to) if to >= from => Ok(self.range(from, to)),
            _ => Err(self.wrong("Illegal character range", self.at)),
        }
    }

    fn class_character(&mut self) -> Result<Result<u32, Set>, Wrong> {
        let Some(code) = self.peek() else {
            return Err(self.wrong("Unclosed character class", self.codes.len()));
        };
        self.at += 1;
        if code != '\\' {
            return Ok(Ok(code.into()));
        }
        let Some(code) = self.codes.get(self.at).copied() else {
            return Err(self.wrong("Unexpected internal error", self.codes.len() + 1));
        };
        if let Some(set) = self.named_set(code)? {
            return Ok(Err(set));
        }
        self.at += 1;
        Ok(Ok(self.escaped(code)?))
    }

    fn range(&self, from: u32, to: u32) -> Set {
        match self.case() {
            Case::Exact => Set::Range(from, to),
            case => Set::Folded {
                from,
                to,
                is_unicode: case == Case::Unicode,
            },
        }
    }
}

fn both(a: Set, b: Set) -> Set {
    Set::Both(Box::new(a), Box::new(b))
}
