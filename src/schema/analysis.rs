//! What an index does to a text before it keeps it, and to what is looked for before it is compared.
//!
//! Differs: Lucene's standard tokenizer and ascii folding are Unicode's word boundaries and compatibility decompositions here; the
//! few letters that do not decompose (ß, ø, đ …) have a table. Stems and words that are skipped: see `words`.
//! Sources: Cassandra 5.0's CREATE INDEX options, asked of one; UAX #15, UAX #29.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::words::Language;

/// What becomes of the case of letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LetterCase {
    /// Kept.
    #[default]
    Kept,
    /// Lower.
    Lower,
    /// Upper.
    Upper,
}

/// How a text becomes terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// The whole text is one.
    #[default]
    Whole,
    /// Its words are.
    Words,
    /// What stands between these characters is.
    Delimited(char),
}

/// An index's analysis; the default changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Analysis {
    /// How a text becomes terms.
    pub tokens: Tokens,
    /// What becomes of letters.
    pub case: LetterCase,
    /// To Unicode's normal form C.
    pub normalize: bool,
    /// To ASCII, where a character has a counterpart there.
    pub ascii: bool,
    /// Words that say too little in this language are no terms.
    pub skips: Option<Language>,
    /// Words become their stems in this language.
    pub stems: Option<Language>,
}

impl Analysis {
    /// Whether every text is its own and only term.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        *self == Self::default()
    }

    /// The terms of a text, in order; bytes that are no UTF-8 are one term as they are.
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

/// Characters without their marks, and those that have none by their table.
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
