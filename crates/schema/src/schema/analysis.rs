//! Text analysis: what an index does to a text before it stores it, and to a search term before it compares it.
//!
//! Differs: Lucene's standard tokenizer and ASCII folding are Unicode word boundaries and compatibility decompositions
//! here. The few letters that do not decompose (ß, ø, đ …) have a table. Stems and stop words: see `words`.
//! Sources: the options of CREATE INDEX as measured on Cassandra 5.0; UAX #15, UAX #29.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::words::Language;

/// Case folding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LetterCase {
    /// Case is kept.
    #[default]
    Kept,
    /// To lower case.
    Lower,
    /// To upper case.
    Upper,
}

/// How a text is split into terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// The whole text is one term.
    #[default]
    Whole,
    /// Each word is a term.
    Words,
    /// Splits at these characters.
    Delimited(char),
}

/// An index's text analysis; the default changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Analysis {
    /// How a text is split into terms.
    pub tokens: Tokens,
    /// Case folding.
    pub case: LetterCase,
    /// Normalizes to Unicode form C.
    pub normalize: bool,
    /// Folds to ASCII, where a character has an ASCII counterpart.
    pub ascii: bool,
    /// Drops the stop words of this language.
    pub skips: Option<Language>,
    /// Reduces words to their stems in this language.
    pub stems: Option<Language>,
}

impl Analysis {
    /// Whether analysis leaves every text as its only term.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        *self == Self::default()
    }

    /// The terms of a text, in order. Bytes that are not UTF-8 are one unchanged term.
    #[must_use]
    pub fn terms<'b>(&self, bytes: &'b [u8]) -> Vec<Cow<'b, [u8]>> {
        if self.is_identity() {
            return vec![Cow::Borrowed(bytes)];
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return vec![Cow::Borrowed(bytes)];
        };
        let owned = |term: Cow<'b, str>| match term {
            Cow::Borrowed(term) => Cow::Borrowed(term.as_bytes()),
            Cow::Owned(term) => Cow::Owned(term.into_bytes()),
        };
        match self.tokens {
            Tokens::Whole => vec![owned(self.fold(text))],
            Tokens::Words => {
                let words = text.unicode_words().map(|word| self.fold(word));
                let kept = words.filter(|word| !self.skips.is_some_and(|language| language.skips(word)));
                kept.map(|word| match self.stems {
                    Some(language) => owned(language.stem(word)),
                    None => owned(word),
                })
                .collect()
            }
            Tokens::Delimited(delimiter) => text
                .split(delimiter)
                .filter(|term| !term.is_empty())
                .map(|term| owned(self.fold(term)))
                .collect(),
        }
    }

    fn fold<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut folded = match self.case {
            LetterCase::Kept => Cow::Borrowed(text),
            LetterCase::Lower => Cow::Owned(text.to_lowercase()),
            LetterCase::Upper => Cow::Owned(text.to_uppercase()),
        };
        if folded.is_ascii() {
            return folded;
        }
        if self.normalize {
            folded = Cow::Owned(folded.nfc().collect());
        }
        if self.ascii {
            folded = Cow::Owned(to_ascii(&folded));
        }
        folded
    }
}

/// Strips diacritics; letters that do not decompose go through the table.
fn to_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        if let Ok(found) = LETTERS.binary_search_by_key(&c, |(letter, _)| *letter) {
            out.push_str(LETTERS.get(found).map_or("", |(_, ascii)| ascii));
            continue;
        }
        let mut plain = String::new();
        plain.extend(std::iter::once(c).nfkd().filter(|part| !is_combining_mark(*part)));
        if !plain.is_empty() && plain.is_ascii() {
            out.push_str(&plain);
        } else {
            out.push(c);
        }
    }
    out
}

/// Letters and signs of Latin scripts that do not decompose, by code point.
const LETTERS: &[(char, &str)] = &[
    ('«', "\""),
    ('»', "\""),
    ('Æ', "AE"),
    ('Ð', "D"),
    ('Ø', "O"),
    ('Þ', "TH"),
    ('ß', "ss"),
    ('æ', "ae"),
    ('ð', "d"),
    ('ø', "o"),
    ('þ', "th"),
    ('Đ', "D"),
    ('đ', "d"),
    ('Ħ', "H"),
    ('ħ', "h"),
    ('ı', "i"),
    ('ĸ', "q"),
    ('Ł', "L"),
    ('ł', "l"),
    ('Ŋ', "N"),
    ('ŋ', "n"),
    ('Œ', "OE"),
    ('œ', "oe"),
    ('Ŧ', "T"),
    ('ŧ', "t"),
    ('ƀ', "b"),
    ('ƒ', "f"),
    ('ẞ', "SS"),
    ('‐', "-"),
    ('‑', "-"),
    ('‒', "-"),
    ('–', "-"),
    ('—', "-"),
    ('‘', "'"),
    ('’', "'"),
    ('‚', "'"),
    ('‛', "'"),
    ('“', "\""),
    ('”', "\""),
    ('„', "\""),
    ('‹', "'"),
    ('›', "'"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(analysis: Analysis, text: &str) -> Vec<String> {
        analysis
            .terms(text.as_bytes())
            .iter()
            .map(|term| String::from_utf8(term.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn texts_fold() {
        assert!(LETTERS.is_sorted_by_key(|(letter, _)| *letter));
        let folding = Analysis {
            case: LetterCase::Lower,
            normalize: true,
            ascii: true,
            ..Analysis::default()
        };
        assert_eq!(terms(folding, "Straße Ångström Ｅ"), ["strasse angstrom e"]);
        let normal = Analysis {
            normalize: true,
            ..Analysis::default()
        };
        assert_eq!(terms(normal, "e\u{301}"), ["é"]);
        assert_eq!(terms(Analysis::default(), "É"), ["É"]);
    }

    #[test]
    fn texts_fall_into_terms() {
        let words = Analysis {
            tokens: Tokens::Words,
            case: LetterCase::Lower,
            ..Analysis::default()
        };
        assert_eq!(terms(words, "The quick, brown fox!"), ["the", "quick", "brown", "fox"]);
        let delimited = Analysis {
            tokens: Tokens::Delimited(','),
            ..Analysis::default()
        };
        assert_eq!(terms(delimited, "a,B,,c"), ["a", "B", "c"]);
    }
}
