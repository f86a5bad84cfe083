//! Escapes of a pattern: `\d`, `\b`, `\x41`, `\p{Lu}`, `\1`.

use super::class::{Named, Set};
use super::parse::{Assert, Case, Node, Parser, left_out};
use super::{Wrong, flag};

impl Parser<'_> {
    /// What follows a backslash, outside a class.
    pub(super) fn escape(&mut self) -> Result<Node, Wrong> {
        let Some(code) = self.codes.get(self.at).copied() else {
            return Err(self.wrong("Unexpected internal error", self.codes.len() + 1));
        };
        if let Some(set) = self.named_set(code)? {
            return Ok(Node::Set(set));
        }
        self.at += 1;
        Ok(match code {
            '1'..='9' => {
                let mut group = usize::try_from(u32::from(code) - 48).unwrap_or(0);
                while let Some(digit) = self.codes.get(self.at).and_then(|code| code.to_digit(10)) {
                    let longer = group
                        .saturating_mul(10)
                        .saturating_add(usize::try_from(digit).unwrap_or(0));
                    if longer >= self.groups {
                        break;
                    }
                    group = longer;
                    self.at += 1;
                }
                Node::Back {
                    group,
                    case: self.case(),
                }
            }
            'k' => {
                if !self.take('<') {
                    return Err(self.wrong("\\k is not followed by '<' for named capturing group", self.at + 1));
                }
                let name = self.name()?;
                let known = self
                    .names
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, number)| *number);
                let Some(group) = known else {
                    let what = format!("named capturing group <{name}> does not exist");
                    return Err(self.wrong(&what, self.at));
                };
                Node::Back {
                    group,
                    case: self.case(),
                }
            }
            'b' if self.codes.get(self.at..self.at + 3) == Some(&['{', 'g', '}']) => return Err(left_out("\\b{g}")),
            'b' => Node::Assert(Assert::Word),
            'B' => Node::Assert(Assert::NoWord),
            'A' => Node::Assert(Assert::Begin),
            'z' => Node::Assert(Assert::End),
            'Z' => Node::Assert(Assert::LastLine {
                is_unix: self.has(flag::UNIX_LINES),
            }),
            'R' => {
                let pair = [13, 10].map(|code| Node::Character {
                    code,
                    case: Case::Exact,
                });
                Node::Choice(vec![
                    Node::Sequence(pair.to_vec()),
                    Node::Set(Set::Named(Named::Vertical)),
                ])
            }
            'G' | 'X' | 'N' => return Err(left_out(&format!("\\{code}"))),
            _ => {
                let code = self.escaped(code)?;
                self.character(code)
            }
        })
    }

    /// The set of `\d`, `\p{…}` and their kin at the cursor, if it is one.
    pub(super) fn named_set(&mut self, code: char) -> Result<Option<Set>, Wrong> {
        let named = match code.to_ascii_lowercase() {
            'd' => Named::Digit,
            'w' => Named::Word,
            's' => Named::Space,
            'h' => Named::Horizontal,
            'v' => Named::Vertical,
            'p' => {
                self.at += 1;
                let set = self.property()?;
                return Ok(Some(if code == 'P' { Set::Not(Box::new(set)) } else { set }));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        let set = Set::Named(named);
        Ok(Some(if code.is_ascii_uppercase() {
            Set::Not(Box::new(set))
        } else {
            set
        }))
    }

    fn property(&mut self) -> Result<Set, Wrong> {
        let name: String = if self.take('{') {
            let rest = self.codes.get(self.at..).unwrap_or_default();
            let Some(length) = rest.iter().position(|code| *code == '}') else {
                return Err(self.wrong("Unclosed character family", self.codes.len() + 1));
            };
            self.at += length + 1;
            let name: String = rest.iter().take(length).collect();
            if name.is_empty() {
                return Err(self.wrong("Empty character family", self.at));
            }
            name
        } else {
            let one = self.codes.get(self.at).copied();
            self.at += 1;
            one.map(String::from).unwrap_or_default()
        };
        match Named::of(&name) {
            Some(named @ (Named::Lower | Named::Upper)) if self.has(flag::CASE_INSENSITIVE) => {
                Ok(Set::Any(vec![Set::Named(named), Set::Named(Named::Alpha)]))
            }
            Some(named) => Ok(Set::Named(named)),
            None => match category(&name) {
                Some(set) => Ok(set),
                None => Err(left_out(&format!("\\p{{{name}}}"))),
            },
        }
    }

    /// The character of an escape, whose letter was read.
    pub(super) fn escaped(&mut self, code: char) -> Result<u32, Wrong> {
        Ok(match code {
            't' => 9,
            'n' => 10,
            'r' => 13,
            'f' => 12,
            'a' => 7,
            'e' => 27,
            '0' => self.octal()?,
            'x' if self.take('{') => {
                let rest = self.codes.get(self.at..).unwrap_or_default();
                let digits: String = rest.iter().take_while(|code| code.is_ascii_hexdigit()).collect();
                self.at += digits.len();
                match u32::from_str_radix(&digits, 16) {
                    Ok(value) if value > 0x10_ffff => {
                        return Err(self.wrong("Hexadecimal codepoint is too big", self.at));
                    }
                    Ok(value) if self.take('}') => value,
                    _ => return Err(self.wrong("Unclosed hexadecimal escape sequence", self.at + 1)),
                }
            }
            'x' => self.hex(2, "Illegal hexadecimal escape sequence")?,
            'u' => {
                let first = self.hex(4, "Illegal Unicode escape sequence")?;
                let rest = self.codes.get(self.at..self.at + 2);
                if (0xd800..0xdc00).contains(&first) && rest == Some(&['\\', 'u']) {
                    let before = self.at;
                    self.at += 2;
                    match self.hex(4, "Illegal Unicode escape sequence")? {
                        second @ 0xdc00..0xe000 => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                        _ => {
                            self.at = before;
                            first
                        }
                    }
                } else {
                    first
                }
            }
            'c' => match self.codes.get(self.at).copied() {
                Some(code) => {
                    self.at += 1;
                    u32::from(code) ^ 64
                }
                None => return Err(self.wrong("Illegal control escape sequence", self.at)),
            },
            code if code.is_ascii_alphanumeric() => {
                return Err(self.wrong("Illegal/unsupported escape sequence", self.at));
            }
            code => code.into(),
        })
    }

    fn hex(&mut self, width: usize, what: &str) -> Result<u32, Wrong> {
        let digits: String = self.codes.iter().skip(self.at).take(width).collect();
        let is_hex = digits.len() == width && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        match u32::from_str_radix(&digits, 16) {
            Ok(value) if is_hex => {
                self.at += width;
                Ok(value)
            }
            _ => {
                let good = digits.chars().take_while(char::is_ascii_hexdigit).count();
                Err(self.wrong(what, self.at + good + 1))
            }
        }
    }

    fn octal(&mut self) -> Result<u32, Wrong> {
        let mut value = 0;
        let mut count = 0;
        while let Some(digit) = self.codes.get(self.at).and_then(|code| code.to_digit(8)) {
            if count == 3 || value * 8 + digit > 0o377 {
                break;
            }
            value = value * 8 + digit;
            count += 1;
            self.at += 1;
        }
        if count == 0 {
            return Err(self.wrong("Illegal octal escape sequence", self.at + 1));
        }
        Ok(value)
    }
}

/// The set of a general category such as `Lu`, or of one of Unicode's properties that Java knows.
fn category(name: &str) -> Option<Set> {
    const CATEGORIES: [&str; 36] = [
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Co", "Cn",
    ];
    let bare = name.strip_prefix("Is").unwrap_or(name);
    CATEGORIES
        .contains(&bare)
        .then(|| super::class::category(bare))
        .flatten()
}
