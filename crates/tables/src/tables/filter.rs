//! `$filter`: from text to a tree, and whether an entity matches it.
//!
//! ```text
//! any        := all { "or" all }
//! all        := unary { "and" unary }
//! unary      := "not" unary | "(" any ")" | comparison | name
//! comparison := name op literal | literal op name        op := "eq" | "ne" | "gt" | "ge" | "lt" | "le"
//! ```
//! Words are case-sensitive. Source: Querying tables and entities.

use std::cmp::Ordering;

use bytes::Bytes;

use super::edm::{Edm, Ticks, compare_utf16, parse_guid, utf16_units};
use super::entity::{Entity, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use super::fault::Fault;

/// Parentheses and `not` in each other. It bounds the stack that a request may use.
const DEPTH_MAX: usize = 100;

/// What an entity must be to be found.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them.
    All(Vec<Filter>),
    /// One of them at least.
    Any(Vec<Filter>),
    /// Not that.
    Not(Box<Filter>),
    /// A property compared with a constant. A text `5 lt n` is kept as `n gt 5`.
    Test {
        /// The property's name; the keys and the Timestamp are properties here.
        name: String,
        /// How it compares with the constant.
        comparison: Comparison,
        /// The constant.
        literal: Edm,
    },
    /// A property that is true.
    IsTrue(String),
}

/// An operator between a property and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `eq`
    Eq,
    /// `ne`
    Ne,
    /// `gt`
    Gt,
    /// `ge`
    Ge,
    /// `lt`
    Lt,
    /// `le`
    Le,
}

impl Comparison {
    /// All of them, with their words.
    pub const ALL: [(&'static str, Self); 6] = [
        ("eq", Self::Eq),
        ("ne", Self::Ne),
        ("gt", Self::Gt),
        ("ge", Self::Ge),
        ("lt", Self::Lt),
        ("le", Self::Le),
    ];

    /// The operator with its sides exchanged.
    const fn mirrored(self) -> Self {
        match self {
            Self::Eq | Self::Ne => self,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
        }
    }

    /// Whether it holds where the left side is so to the right one; `None` means that neither is more than the other (NaN).
    const fn holds(self, ordering: Option<Ordering>) -> bool {
        let Some(ordering) = ordering else {
            return matches!(self, Self::Ne);
        };
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
        }
    }

    /// Whether it holds between values of types that do not compare. Observed on the service: `ne`, `lt` and `le` do.
    const fn holds_for_other_type(self) -> bool {
        matches!(self, Self::Ne | Self::Lt | Self::Le)
    }
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// The first word that is wrong, or a call of a function, which the service has none of.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let filter = parser.any()?;
        match parser.next()? {
            None => Ok(filter),
            Some(_) => Err(parser.wrong()),
        }
    }

    /// Whether an entity matches it. A property that is missing, or of a type that does not compare, refuses nothing: each comparison
    /// answers for itself.
    #[must_use]
    pub fn matches(&self, entity: &Entity) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.matches(entity)),
            Self::Any(filters) => filters.iter().any(|filter| filter.matches(entity)),
            Self::Not(filter) => !filter.matches(entity),
            Self::IsTrue(name) => entity.property(name) == Some(&Edm::Boolean(true)),
            Self::Test {
                name,
                comparison,
                literal,
            } => test(entity, name, *comparison, literal),
        }
    }
}

fn test(entity: &Entity, name: &str, comparison: Comparison, literal: &Edm) -> bool {
    let of_text = |text: &str| match literal {
        Edm::String(literal) => comparison.holds(Some(compare_utf16(text, literal))),
        _ => comparison.holds_for_other_type(),
    };
    match name {
        PARTITION_KEY => of_text(&entity.partition_key),
        ROW_KEY => of_text(&entity.row_key),
        TIMESTAMP => compare(&Edm::DateTime(entity.timestamp()), comparison, literal),
        _ => entity
            .property(name)
            .is_some_and(|value| compare(value, comparison, literal)),
    }
}

/// Compares a property with a constant, which is widened to the property's type: an `Edm.Int32` to the two larger numbers, an
/// `Edm.Int64` to a double.
fn compare(value: &Edm, comparison: Comparison, literal: &Edm) -> bool {
    let ordering = match (value, literal) {
        (Edm::String(value), Edm::String(literal)) => Some(compare_utf16(value, literal)),
        (Edm::Int32(value), Edm::Int32(literal)) => Some(value.cmp(literal)),
        (Edm::Int64(value), Edm::Int64(literal)) => Some(value.cmp(literal)),
        (Edm::Int64(value), Edm::Int32(literal)) => Some(value.cmp(&i64::from(*literal))),
        (Edm::Double(value), Edm::Double(literal)) => value.partial_cmp(literal),
        (Edm::Double(value), Edm::Int32(literal)) => value.partial_cmp(&f64::from(*literal)),
        (Edm::Double(value), Edm::Int64(literal)) => value.partial_cmp(&widened(*literal)),
        (Edm::Boolean(value), Edm::Boolean(literal)) => Some(value.cmp(literal)),
        (Edm::DateTime(value), Edm::DateTime(literal)) => Some(value.cmp(literal)),
        (Edm::Guid(value), Edm::Guid(literal)) => Some(value.cmp(literal)),
        (Edm::Binary(value), Edm::Binary(literal)) => Some(value.cmp(literal)),
        _ => return comparison.holds_for_other_type(),
    };
    comparison.holds(ordering)
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is what widening means")]
const fn widened(value: i64) -> f64 {
    value as f64
}

/// A word of a filter.
#[derive(Debug, PartialEq)]
enum Word<'a> {
    Open,
    Close,
    /// `and`, `or`, `not`, an operator, or the name of a property.
    Name(&'a str),
    Literal(Edm),
}

struct Parser<'a> {
    text: &'a str,
    /// Behind the last word, in bytes.
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// The refusal of the word that was read last.
    fn wrong(&self) -> Fault {
        Fault::Syntax {
            position: utf16_units(self.text.get(..self.at).unwrap_or_default()),
            filter: self.text.to_owned(),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn any(&mut self) -> Result<Filter, Fault> {
        self.joined("or", Self::all, Filter::Any)
    }

    fn all(&mut self) -> Result<Filter, Fault> {
        self.joined("and", Self::unary, Filter::All)
    }

    /// One part, or several with a word between them.
    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Filter, Fault>,
        join: fn(Vec<Filter>) -> Filter,
    ) -> Result<Filter, Fault> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.takes(&Word::Name(word))? {
            parts.push(part(self)?);
        }
        Ok(if parts.len() > 1 { join(parts) } else { parts.remove(0) })
    }

    fn unary(&mut self) -> Result<Filter, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong());
        }
        let filter = match self.next()? {
            Some(Word::Open) => {
                let inside = self.any()?;
                match self.next()? {
                    Some(Word::Close) => inside,
                    _ => return Err(self.wrong()),
                }
            }
            Some(Word::Name("not")) => Filter::Not(Box::new(self.unary()?)),
            Some(Word::Name(name)) if !is_reserved(name) => self.after_name(name)?,
            Some(Word::Literal(literal)) => {
                let comparison = self.comparison()?;
                match self.next()? {
                    Some(Word::Name(name)) if !is_reserved(name) => Filter::Test {
                        name: name.to_owned(),
                        comparison: comparison.mirrored(),
                        literal,
                    },
                    _ => return Err(self.wrong()),
                }
            }
            _ => return Err(self.wrong()),
        };
        self.depth -= 1;
        Ok(filter)
    }

    /// What a property's name begins: a comparison, or a test for true.
    fn after_name(&mut self, name: &str) -> Result<Filter, Fault> {
        let name = name.to_owned();
        let before = self.at;
        match self.next()? {
            // `startswith(Name, 'a')`: the service has no functions.
            Some(Word::Open) => Err(Fault::NotImplemented),
            Some(Word::Name(word)) if operator(word).is_some() => {
                self.at = before;
                let comparison = self.comparison()?;
                match self.next()? {
                    Some(Word::Literal(literal)) => Ok(Filter::Test {
                        name,
                        comparison,
                        literal,
                    }),
                    _ => Err(self.wrong()),
                }
            }
            None | Some(Word::Close | Word::Name("and" | "or")) => {
                self.at = before;
                Ok(Filter::IsTrue(name))
            }
            Some(_) => Err(self.wrong()),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, Fault> {
        match self.next()? {
            Some(Word::Name(word)) => operator(word).ok_or_else(|| self.wrong()),
            _ => Err(self.wrong()),
        }
    }

    /// Takes a word if it comes next.
    fn takes(&mut self, word: &Word<'_>) -> Result<bool, Fault> {
        let before = self.at;
        if self.next()?.as_ref() == Some(word) {
            return Ok(true);
        }
        self.at = before;
        Ok(false)
    }

    /// The next word; `None` means the end.
    fn next(&mut self) -> Result<Option<Word<'a>>, Fault> {
        let rest = self.rest();
        let text = rest.trim_start();
        self.at += rest.len() - text.len();
        let Some(first) = text.chars().next() else {
            return Ok(None);
        };
        match first {
            '(' | ')' => {
                self.at += 1;
                Ok(Some(if first == '(' { Word::Open } else { Word::Close }))
            }
            '\'' => Ok(Some(Word::Literal(Edm::String(self.quoted()?)))),
            '-' | '.' | '0'..='9' => self.number().map(Some),
            _ if first == '_' || first.is_alphabetic() => self.named(text).map(Some),
            _ => {
                self.at += first.len_utf8();
                Err(self.wrong())
            }
        }
    }

    /// A text in quotes, where two of them stand for one.
    fn quoted(&mut self) -> Result<String, Fault> {
        let mut found = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(end) = rest.find('\'') else {
                self.at = self.text.len();
                return Err(self.wrong());
            };
            found.push_str(rest.get(..end).unwrap_or_default());
            self.at += end + 1;
            if !self.rest().starts_with('\'') {
                return Ok(found);
            }
            found.push('\'');
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Word<'a>, Fault> {
        let rest = self.rest();
        let mut end = 0;
        let mut before = 'e';
        for next in rest.chars() {
            let is_sign = matches!(next, '-' | '+') && matches!(before, 'e' | 'E');
            if !(next.is_ascii_alphanumeric() || next == '.' || is_sign) {
                break;
            }
            end += 1;
            before = next;
        }
        let text = rest.get(..end).unwrap_or_default();
        self.at += end;
        if text == "-INF" {
            return Ok(Word::Literal(Edm::Double(f64::NEG_INFINITY)));
        }
        self.number_of(text).map(Word::Literal).ok_or_else(|| self.wrong())
    }

    fn number_of(&self, text: &str) -> Option<Edm> {
        if let Some(digits) = text.strip_suffix(['L', 'l']) {
            return Some(Edm::Int64(digits.parse().ok()?));
        }
        if let Ok(value) = text.parse::<i64>() {
            return Some(i32::try_from(value).map_or(Edm::Int64(value), Edm::Int32));
        }
        let digits = text.strip_suffix(['d', 'D', 'f', 'F', 'm', 'M']).unwrap_or(text);
        let is_number = digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
        Some(Edm::Double(digits.parse().ok().filter(|_| is_number)?))
    }

    /// A name, a word, or a constant that begins with letters.
    fn named(&mut self, text: &'a str) -> Result<Word<'a>, Fault> {
        let goes_on = |next: char| {
            next == '_' || next.is_alphanumeric() || matches!(next, '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}')
        };
        let end = text.find(|next: char| !goes_on(next)).unwrap_or(text.len());
        let name = text.get(..end).unwrap_or_default();
        self.at += end;
        let constant = match name {
            "true" => Edm::Boolean(true),
            "false" => Edm::Boolean(false),
            "INF" => Edm::Double(f64::INFINITY),
            "NaN" => Edm::Double(f64::NAN),
            "datetime" | "guid" | "X" | "binary" if self.rest().starts_with('\'') => {
                let inside = self.quoted()?;
                let value = match name {
                    "datetime" => Ticks::parse(&inside).map(Edm::DateTime),
                    "guid" => parse_guid(&inside).map(Edm::Guid),
                    _ => hexadecimal(&inside).map(Edm::Binary),
                };
                value.ok_or_else(|| self.wrong())?
            }
            _ => return Ok(Word::Name(name)),
        };
        Ok(Word::Literal(constant))
    }
}

fn operator(word: &str) -> Option<Comparison> {
    let found = Comparison::ALL.into_iter().find(|(own, _)| *own == word);
    found.map(|(_, comparison)| comparison)
}

/// Whether a word cannot be a property's name where an operand is expected.
fn is_reserved(word: &str) -> bool {
    matches!(word, "and" | "or") || operator(word).is_some()
}

fn hexadecimal(text: &str) -> Option<Bytes> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn entity() -> Entity {
        let text = |text: &str| Edm::String(text.to_owned());
        let mut entity = Entity::new("p".to_owned(), "r".to_owned());
        entity.version_micros = 1_600_000_000_000_000;
        entity.properties = vec![
            ("b".to_owned(), Edm::Boolean(true)),
            ("bin".to_owned(), Edm::Binary(Bytes::from_static(&[1, 0xff]))),
            ("d".to_owned(), Edm::Double(5.0)),
            ("g".to_owned(), EdmGuid("a455c695-df98-5678-aaaa-81d3367e5a34")),
            ("i".to_owned(), Edm::Int32(5)),
            ("l".to_owned(), Edm::Int64(12)),
            ("s".to_owned(), text("it's")),
            (
                "t".to_owned(),
                Edm::DateTime(Ticks::parse("2008-07-10T00:00:00Z").unwrap()),
            ),
        ];
        entity
    }

    #[expect(non_snake_case, reason = "stands where a variant would")]
    fn EdmGuid(text: &str) -> Edm {
        Edm::Guid(text.parse().unwrap())
    }

    #[test]
    fn filters_match_as_on_the_service() {
        let entity = entity();
        for (filter, matches) in [
            ("PartitionKey eq 'p' and RowKey eq 'r'", true),
            ("'p' eq PartitionKey", true),
            ("i lt 6", true),
            ("6 lt i", false),
            ("5 le i", true),
            ("s eq 'it''s'", true),
            ("i eq 5", true),
            ("i eq 5L", false),
            ("i ne 5L", true),
            ("i lt 3L", true),
            ("i ge 3.0", false),
            ("l eq 12", true),
            ("l eq 12L", true),
            ("l eq 12.0", false),
            ("d eq 5", true),
            ("d eq 5L", true),
            ("d eq 5.0", true),
            ("d eq 5e0", true),
            ("d lt 1e3", true),
            ("b", true),
            ("not b", false),
            ("i", false),
            ("b eq true", true),
            ("b gt false", true),
            ("t eq datetime'2008-07-10T00:00:00Z'", true),
            ("t lt datetime'2008-07-10T00:00:00.0000001Z'", true),
            ("g eq guid'A455C695-df98-5678-aaaa-81d3367e5a34'", true),
            ("bin eq X'01ff'", true),
            ("bin eq binary'01FF'", true),
            ("bin gt X'01'", true),
            ("zz eq ''", false),
            ("zz ne ''", false),
            ("not (zz ne '')", true),
            ("s eq 5", false),
            ("s le 5", true),
            ("Timestamp ge datetime'2020-01-01T00:00:00Z'", true),
            ("Timestamp eq datetime'2020-09-13T12:26:40Z'", true),
            ("i eq 1 and i eq 2 or i eq 5", true),
            ("i eq 5 or i eq 1 and i eq 2", true),
            ("(i eq 5 or i eq 1) and i eq 2", false),
            ("(i eq 5)and(b)", true),
            ("not i eq 5 or b", true),
            ("not (not (b))", true),
            ("  i   eq   5  ", true),
        ] {
            assert_eq!(
                Filter::parse(filter).map(|filter| filter.matches(&entity)),
                Ok(matches),
                "{filter}"
            );
        }
    }

    #[test]
    fn wrong_words_are_told_by_their_end() {
        let at = |position: usize, filter: &str| {
            Err(Fault::Syntax {
                position,
                filter: filter.to_owned(),
            })
        };
        for (filter, position) in [
            ("aaa bbb ccc", 7),
            ("i eq", 4),
            ("i eq 'a", 7),
            ("i EQ 5", 4),
            ("i eq 5 and", 10),
            ("(i eq 5", 7),
            ("i eq 5)", 7),
            ("i eq i", 6),
            ("5 eq 5", 6),
            ("and", 3),
            ("i eq 5x", 7),
            ("i eq datetime'x'", 16),
            ("i ! 5", 3),
            ("", 0),
        ] {
            assert_eq!(Filter::parse(filter), at(position, filter), "{filter}");
        }
        assert_eq!(Filter::parse("startswith(s,'a')"), Err(Fault::NotImplemented));
        let deep = "(".repeat(100_000);
        assert!(Filter::parse(&deep).is_err());
        let deep = "not ".repeat(100_000);
        assert!(Filter::parse(&deep).is_err());
    }

    fn value() -> impl Strategy<Value = Edm> {
        prop_oneof![
            "[ab\u{1F600}\u{E000}']{0,2}".prop_map(Edm::String),
            (-2..3_i32).prop_map(Edm::Int32),
            (-2..3_i64).prop_map(Edm::Int64),
            (-2..3_i32).prop_map(|value| Edm::Double(f64::from(value) / 2.0)),
            any::<bool>().prop_map(Edm::Boolean),
            (0..3_i64).prop_map(|ticks| Edm::DateTime(Ticks::new(ticks).unwrap())),
            (0..3_u128).prop_map(|bits| Edm::Guid(uuid::Uuid::from_u128(bits))),
            prop::collection::vec(0..2_u8, 0..3).prop_map(|bytes| Edm::Binary(bytes.into())),
        ]
    }

    fn name() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["PartitionKey", "RowKey", "a", "b", "c"]).prop_map(str::to_owned)
    }

    fn tree() -> impl Strategy<Value = Filter> {
        let leaf = prop_oneof![
            4 => (name(), prop::sample::select(Comparison::ALL.to_vec()), value())
                .prop_map(|(name, (_, comparison), literal)| Filter::Test { name, comparison, literal }),
            1 => name().prop_map(Filter::IsTrue),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::All),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::Any),
                inner.prop_map(|inner| Filter::Not(Box::new(inner))),
            ]
        })
    }

    fn literal_text(value: &Edm) -> String {
        match value {
            Edm::String(text) => format!("'{}'", text.replace('\'', "''")),
            Edm::Int64(value) => format!("{value}L"),
            Edm::DateTime(ticks) => format!("datetime'{ticks}'"),
            Edm::Guid(value) => format!("guid'{value}'"),
            Edm::Binary(bytes) => format!(
                "X'{}'",
                bytes.iter().fold(String::new(), |mut text, byte| {
                    write!(text, "{byte:02x}").unwrap();
                    text
                })
            ),
            other => other.text(),
        }
    }

    fn text_of(filter: &Filter) -> String {
        let joined = |filters: &[Filter], word: &str| {
            let parts: Vec<String> = filters.iter().map(|filter| format!("({})", text_of(filter))).collect();
            parts.join(word)
        };
        match filter {
            Filter::All(filters) => joined(filters, " and "),
            Filter::Any(filters) => joined(filters, " or "),
            Filter::Not(inner) => format!("not ({})", text_of(inner)),
            Filter::IsTrue(name) => name.clone(),
            Filter::Test {
                name,
                comparison,
                literal,
            } => {
                let (word, _) = Comparison::ALL.into_iter().find(|(_, own)| own == comparison).unwrap();
                format!("{name} {word} {}", literal_text(literal))
            }
        }
    }

    /// The evaluator once more, by ranks of numbers: what the table of TABLES says, with no code of the first.
    fn naive(filter: &Filter, entity: &Entity) -> bool {
        match filter {
            Filter::All(filters) => filters.iter().fold(true, |all, filter| all & naive(filter, entity)),
            Filter::Any(filters) => filters.iter().fold(false, |any, filter| any | naive(filter, entity)),
            Filter::Not(inner) => !naive(inner, entity),
            Filter::IsTrue(name) => entity.properties.contains(&(name.clone(), Edm::Boolean(true))),
            Filter::Test {
                name,
                comparison,
                literal,
            } => {
                let value = match name.as_str() {
                    "PartitionKey" => Some(Edm::String(entity.partition_key.clone())),
                    "RowKey" => Some(Edm::String(entity.row_key.clone())),
                    _ => entity
                        .properties
                        .iter()
                        .find(|(own, _)| own == name)
                        .map(|(_, value)| value.clone()),
                };
                let Some(value) = value else { return false };
                let widens = match (&value, literal) {
                    (Edm::Int64(_), Edm::Int32(_)) | (Edm::Double(_), Edm::Int32(_) | Edm::Int64(_)) => true,
                    _ => value.ty() == literal.ty(),
                };
                let units = |value: &Edm| -> Vec<f64> {
                    match value {
                        Edm::String(text) => text.encode_utf16().map(f64::from).collect(),
                        Edm::Binary(bytes) => bytes.iter().map(|byte| f64::from(*byte)).collect(),
                        Edm::Guid(value) => value.as_bytes().iter().map(|byte| f64::from(*byte)).collect(),
                        Edm::Boolean(value) => vec![f64::from(u8::from(*value))],
                        Edm::DateTime(ticks) => vec![ticks.get() as f64],
                        Edm::Int32(value) => vec![f64::from(*value)],
                        Edm::Int64(value) => vec![*value as f64],
                        Edm::Double(value) => vec![*value],
                    }
                };
                let (left, right) = (units(&value), units(literal));
                let (less, same) = (left < right, left == right);
                match comparison {
                    Comparison::Eq => widens && same,
                    Comparison::Ne => !widens || !same,
                    Comparison::Gt => widens && !less && !same,
                    Comparison::Ge => widens && !less,
                    Comparison::Lt => !widens || less,
                    Comparison::Le => !widens || less || same,
                }
            }
        }
    }

    fn entities() -> impl Strategy<Value = Entity> {
        let properties = prop::collection::btree_map("[abc]", value(), 0..4);
        ("[ab\u{1F600}\u{E000}]{0,2}", "[ab']{0,2}", properties).prop_map(|(partition_key, row_key, properties)| {
            Entity {
                properties: properties.into_iter().collect(),
                ..Entity::new(partition_key, row_key)
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn filter_is_read_back_and_checked_as_naively(filter in tree(), entity in entities()) {
            let text = text_of(&filter);
            let read = Filter::parse(&text);
            prop_assert_eq!(read.as_ref(), Ok(&filter), "{}", text);
            prop_assert_eq!(filter.matches(&entity), naive(&filter, &entity), "{}", text);
        }

        #[test]
        fn any_text_is_checked_as_a_filter(text in "\\PC{0,40}|[a-z0-9 ()'.-]{0,40}") {
            let _ = Filter::parse(&text);
        }
    }
}
