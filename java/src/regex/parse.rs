//! Parses a pattern.

use super::class::Set;
use super::{Wrong, flag};

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Empty,
    /// A character, or one that is the same but for case.
    Character {
        code: u32,
        case: Case,
    },
    Set(Set),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    Group(usize, Box<Node>),
    Repeat {
        of: Box<Node>,
        min: u32,
        max: Option<u32>,
        kind: Kind,
    },
    Look {
        of: Box<Node>,
        is_behind: bool,
        negates: bool,
    },
    Atomic(Box<Node>),
    Back {
        group: usize,
        case: Case,
    },
    Assert(Assert),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Ascii,
    Unicode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Greedy,
    Lazy,
    Possessive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assert {
    /// The begin of the text, or with `MULTILINE` of a line.
    Begin,
    BeginOfLine {
        is_unix: bool,
    },
    /// The end of the text, or before its last line terminator.
    LastLine {
        is_unix: bool,
    },
    EndOfLine {
        is_unix: bool,
    },
    End,
    Word,
    NoWord,
}

pub(super) struct Parsed {
    pub(super) node: Node,
    pub(super) groups: usize,
    pub(super) names: Vec<(String, usize)>,
}

/// Maximum nesting of groups and classes.
const LEVELS_MAX: u32 = 100;

pub(super) struct Parser<'a> {
    pub(super) codes: &'a [char],
    pub(super) at: usize,
    flags: i32,
    pub(super) groups: usize,
    pub(super) names: Vec<(String, usize)>,
    level: u32,
}

pub(super) fn parsed(text: &[u16], flags: i32) -> Result<Parsed, Wrong> {
    // Half of a surrogate pair has no place in a pattern of this parser.
    let codes: Result<Vec<char>, _> = char::decode_utf16(text.iter().copied()).collect();
    let Ok(codes) = codes else {
        return Err(left_out("half of a surrogate pair"));
    };
    let known = flag::UNIX_LINES
        | flag::CASE_INSENSITIVE
        | flag::COMMENTS
        | flag::MULTILINE
        | flag::LITERAL
        | flag::DOTALL
        | flag::UNICODE_CASE;
    if flags & !known != 0 {
        return Err(left_out(&format!("flag {}", flags & !known)));
    }
    let codes = if flags & flag::LITERAL != 0 {
        codes
    } else {
        unquoted(&codes)
    };
    let mut parser = Parser {
        codes: &codes,
        at: 0,
        flags,
        groups: 1,
        names: Vec::new(),
        level: 0,
    };
    let node = if flags & flag::LITERAL != 0 {
        let case = parser.case();
        let character = |code: &char| Node::Character {
            code: (*code).into(),
            case,
        };
        Node::Sequence(codes.iter().map(character).collect())
    } else {
        parser.choice()?
    };
    if flags & flag::LITERAL == 0 && parser.at < parser.codes.len() {
        return Err(parser.wrong("Unmatched closing ')'", parser.at));
    }
    Ok(Parsed {
        node,
        groups: parser.groups,
        names: parser.names,
    })
}

pub(super) fn left_out(what: &str) -> Wrong {
    Wrong::LeftOut(format!("Helenus has no {what} of java.util.regex in a function's body"))
}

/// Replaces `\Q…\E` by escaped characters.
fn unquoted(codes: &[char]) -> Vec<char> {
    let mut plain = Vec::with_capacity(codes.len());
    let mut at = 0;
    let mut is_quoted = false;
    while let Some(code) = codes.get(at).copied() {
        let next = codes.get(at + 1).copied();
        at += 1;
        match (is_quoted, code, next) {
            (false, '\\', Some('Q')) => {
                is_quoted = true;
                at += 1;
            }
            (true, '\\', Some('E')) => {
                is_quoted = false;
                at += 1;
            }
            (false, '\\', Some(next)) => {
                plain.extend([code, next]);
                at += 1;
            }
            (true, code, _) if code.is_ascii() && !code.is_ascii_alphanumeric() => plain.extend(['\\', code]),
            (_, code, _) => plain.push(code),
        }
    }
    plain
}

impl Parser<'_> {
    /// An error of Java's, whose cursor stands at a position.
    pub(super) fn wrong(&self, what: &str, cursor: usize) -> Wrong {
        // Java counts units.
        let before = self.codes.get(..cursor.min(self.codes.len())).unwrap_or_default();
        let units: usize = before.iter().map(|code| code.len_utf16()).sum();
        let at = i64::try_from(units).unwrap_or(0) - 1 + i64::from(cursor > self.codes.len());
        let what = what.to_owned();
        Wrong::Syntax { what, at }
    }

    pub(super) fn has(&self, flag: i32) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn case(&self) -> Case {
        match (self.has(flag::CASE_INSENSITIVE), self.has(flag::UNICODE_CASE)) {
            (true, true) => Case::Unicode,
            (true, false) => Case::Ascii,
            _ => Case::Exact,
        }
    }

    /// The next character, behind comments where they are allowed.
    pub(super) fn peek(&mut self) -> Option<char> {
        if self.has(flag::COMMENTS) {
            loop {
                match self.codes.get(self.at) {
                    Some(' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r') => self.at += 1,
                    Some('#') => {
                        while self
                            .codes
                            .get(self.at)
                            .is_some_and(|code| !matches!(code, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'))
                        {
                            self.at += 1;
                        }
                    }
                    _ => break,
                }
            }
        }
        self.codes.get(self.at).copied()
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        let is = self.codes.get(self.at) == Some(&wanted);
        self.at += usize::from(is);
        is
    }

    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        if self.level >= LEVELS_MAX {
            return Err(left_out(&format!("pattern of more than {LEVELS_MAX} levels")));
        }
        self.level += 1;
        let result = inner(self);
        self.level -= 1;
        result
    }

    fn choice(&mut self) -> Result<Node, Wrong> {
        let mut all = vec![self.sequence()?];
        while self.peek() == Some('|') {
            self.at += 1;
            all.push(self.sequence()?);
        }
        Ok(match all.pop() {
            Some(only) if all.is_empty() => only,
            last => {
                all.extend(last);
                Node::Choice(all)
            }
        })
    }

    fn sequence(&mut self) -> Result<Node, Wrong> {
        let mut all = Vec::new();
        while let Some(code) = self.peek() {
            if matches!(code, '|' | ')') {
                break;
            }
            let node = self.atom(code)?;
            let Some(node) = node else { continue };
            let node = self.repeated(node)?;
            all.push(node);
        }
        Ok(Node::Sequence(all))
    }

    /// An atom; none for flags.
    fn atom(&mut self, code: char) -> Result<Option<Node>, Wrong> {
        let is_unix = self.has(flag::UNIX_LINES);
        self.at += 1;
        Ok(Some(match code {
            '(' => return self.deeper(Self::group),
            '[' => Node::Set(self.deeper(Self::class)?),
            '.' if self.has(flag::DOTALL) => Node::Set(Set::All),
            '.' => Node::Set(Set::NoTerminator { is_unix }),
            '^' if self.has(flag::MULTILINE) => Node::Assert(Assert::BeginOfLine { is_unix }),
            '^' => Node::Assert(Assert::Begin),
            '$' if self.has(flag::MULTILINE) => Node::Assert(Assert::EndOfLine { is_unix }),
            '$' => Node::Assert(Assert::LastLine { is_unix }),
            '*' | '+' | '?' => return Err(self.wrong(&format!("Dangling meta character '{code}'"), self.at)),
            '{' => {
                self.at -= 1;
                if self.codes.get(self.at + 1).is_some_and(char::is_ascii_digit) {
                    Node::Empty
                } else {
                    return Err(self.wrong("Illegal repetition", self.at + 2));
                }
            }
            '\\' => self.escape()?,
            code => self.character(code.into()),
        }))
    }

    pub(super) fn character(&self, code: u32) -> Node {
        Node::Character {
            code,
            case: self.case(),
        }
    }

    /// An atom with what repeats it, of which Java takes one.
    fn repeated(&mut self, node: Node) -> Result<Node, Wrong> {
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let (min, max) = self.counts()?;
                return Ok(self.repeat(node, min, max));
            }
            _ => return Ok(node),
        };
        self.at += 1;
        Ok(self.repeat(node, min, max))
    }

    fn repeat(&mut self, of: Node, min: u32, max: Option<u32>) -> Node {
        let kind = match self.peek() {
            Some('?') => Kind::Lazy,
            Some('+') => Kind::Possessive,
            _ => Kind::Greedy,
        };
        self.at += usize::from(kind != Kind::Greedy);
        Node::Repeat {
            of: Box::new(of),
            min,
            max,
            kind,
        }
    }

    /// `{2}`, `{2,}`, `{2,3}`
    fn counts(&mut self) -> Result<(u32, Option<u32>), Wrong> {
        if !self.codes.get(self.at + 1).is_some_and(char::is_ascii_digit) {
            return Err(self.wrong("Illegal repetition", self.at + 2));
        }
        self.at += 1;
        let min = self.count()?;
        let max = if self.take(',') {
            if self.codes.get(self.at) == Some(&'}') {
                None
            } else {
                Some(self.count()?)
            }
        } else {
            Some(min)
        };
        if !self.take('}') {
            return Err(self.wrong("Unclosed counted closure", self.at + 1));
        }
        if max.is_some_and(|max| max < min) {
            return Err(self.wrong("Illegal repetition range", self.at));
        }
        Ok((min, max))
    }

    fn count(&mut self) -> Result<u32, Wrong> {
        let mut value = 0_u32;
        while let Some(digit) = self.codes.get(self.at).and_then(|code| code.to_digit(10)) {
            let next = value.checked_mul(10).and_then(|value| value.checked_add(digit));
            match next.filter(|value| i32::try_from(*value).is_ok()) {
                Some(next) => value = next,
                None => return Err(self.wrong("Illegal repetition range", self.at + 1)),
            }
            self.at += 1;
        }
        Ok(value)
    }

    /// What follows an open parenthesis.
    fn group(&mut self) -> Result<Option<Node>, Wrong> {
        let saved = self.flags;
        let mut is_flags = false;
        let wrap: Box<dyn FnOnce(Node) -> Node> = if self.take('?') {
            let code = self.codes.get(self.at).copied();
            self.at += 1;
            match code {
                Some(':') => Box::new(|node| node),
                Some('=' | '!') => look(false, code == Some('!')),
                Some('>') => Box::new(|node| Node::Atomic(Box::new(node))),
                Some('<') => {
                    let code = self.codes.get(self.at).copied();
                    match code {
                        Some('=' | '!') => {
                            self.at += 1;
                            look(true, code == Some('!'))
                        }
                        Some(code) if code.is_ascii_alphabetic() => {
                            let name = self.name()?;
                            if self.names.iter().any(|(known, _)| *known == name) {
                                let what = format!("Named capturing group <{name}> is already defined");
                                return Err(self.wrong(&what, self.at));
                            }
                            let number = self.next_group();
                            self.names.push((name, number));
                            Box::new(move |node| Node::Group(number, Box::new(node)))
                        }
                        _ => {
                            return Err(
                                self.wrong("capturing group name does not start with a Latin letter", self.at + 1)
                            );
                        }
                    }
                }
                _ => {
                    self.at -= 1;
                    self.set_flags()?;
                    if self.take(')') {
                        is_flags = true;
                    } else if !self.take(':') {
                        return Err(self.wrong("Unknown inline modifier", self.at + 1));
                    }
                    Box::new(|node| node)
                }
            }
        } else {
            let number = self.next_group();
            Box::new(move |node| Node::Group(number, Box::new(node)))
        };
        if is_flags {
            return Ok(None);
        }
        let inner = self.choice()?;
        if !self.take(')') {
            return Err(self.wrong("Unclosed group", self.codes.len() + 1));
        }
        self.flags = saved;
        let node = wrap(inner);
        if let Node::Look {
            of, is_behind: true, ..
        } = &node
            && !is_bounded(of)
        {
            return Err(self.wrong("Look-behind group does not have an obvious maximum length", self.at));
        }
        Ok(Some(node))
    }

    fn next_group(&mut self) -> usize {
        let number = self.groups;
        self.groups += 1;
        number
    }

    /// A name and its closing bracket.
    pub(super) fn name(&mut self) -> Result<String, Wrong> {
        let mut name = String::new();
        while let Some(code) = self.codes.get(self.at).copied().filter(char::is_ascii_alphanumeric) {
            name.push(code);
            self.at += 1;
        }
        if !self.take('>') {
            return Err(self.wrong("named capturing group is missing trailing '>'", self.at + 1));
        }
        Ok(name)
    }

    fn set_flags(&mut self) -> Result<(), Wrong> {
        let mut is_on = true;
        while let Some(code) = self.codes.get(self.at).copied() {
            let bit = match code {
                'i' => flag::CASE_INSENSITIVE,
                'm' => flag::MULTILINE,
                's' => flag::DOTALL,
                'd' => flag::UNIX_LINES,
                'u' => flag::UNICODE_CASE,
                'x' => flag::COMMENTS,
                'c' | 'U' => return Err(left_out(&format!("flag {code}"))),
                '-' if is_on => {
                    is_on = false;
                    self.at += 1;
                    continue;
                }
                _ => return Ok(()),
            };
            if is_on {
                self.flags |= bit;
            } else {
                self.flags &= !bit;
            }
            self.at += 1;
        }
        Ok(())
    }
}

fn look(is_behind: bool, negates: bool) -> Box<dyn FnOnce(Node) -> Node> {
    Box::new(move |of| Node::Look {
        of: Box::new(of),
        is_behind,
        negates,
    })
}

/// Whether Java finds a bound of the text that a part matches, for a look behind. It takes the greatest number for that of
/// a repeated character.
fn is_bounded(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Look { .. } | Node::Assert(_) | Node::Character { .. } | Node::Set(_) => true,
        Node::Back { .. } => false,
        Node::Sequence(all) | Node::Choice(all) => all.iter().all(is_bounded),
        Node::Group(_, of) | Node::Atomic(of) => is_bounded(of),
        Node::Repeat { of, max, .. } => {
            let is_character = matches!(**of, Node::Character { .. } | Node::Set(_));
            is_character || (max.is_some() && is_bounded(of))
        }
    }
}
