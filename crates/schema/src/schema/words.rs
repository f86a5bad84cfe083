//! SASI's StandardAnalyzer for words of a language: stemming and stop words.
//!
//! The first two letters of a locale select the language, as in Cassandra: `en`, `en_US` and `english` are one. Without
//! a locale, or with an unknown language, words are kept unchanged.
//!
//! Differs: stems are those of today's Snowball, Cassandra's those of 2014 (a few words of some languages differ). Stop
//! words are NLTK's; Cassandra's are Jacques Savoy's, which has more words and four more languages (Bulgarian, Czech,
//! Hindi, Polish).
//! Sources: Cassandra 5.0's `StemmerFactory`, `StopWordFactory`, and its answers.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// A language, by the two letters of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Language([u8; 2]);

/// The languages that have a list of stop words.
const SKIPPING: [&str; 12] = ["ar", "de", "en", "es", "fi", "fr", "hu", "it", "pt", "ro", "ru", "sv"];

impl Language {
    /// The language of a locale.
    #[must_use]
    pub fn of_locale(locale: &str) -> Option<Self> {
        let code: [u8; 2] = locale.as_bytes().first_chunk().copied()?;
        Some(Self(code.map(|letter| letter.to_ascii_lowercase())))
    }

    /// The two letters of its code.
    #[must_use]
    pub const fn letters(self) -> [u8; 2] {
        self.0
    }

    /// The language of these two letters.
    #[must_use]
    pub const fn of_letters(letters: [u8; 2]) -> Self {
        Self(letters)
    }

    fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The stem of a word; the word itself in languages without a stemmer in Cassandra. Words must be in lower case.
    #[must_use]
    pub fn stem<'w>(self, word: Cow<'w, str>) -> Cow<'w, str> {
        let algorithm = match self.code() {
            "da" => Algorithm::Danish,
            "de" => Algorithm::German,
            "en" => Algorithm::English,
            "es" => Algorithm::Spanish,
            "fi" => Algorithm::Finnish,
            "fr" => Algorithm::French,
            "hu" => Algorithm::Hungarian,
            "it" => Algorithm::Italian,
            "nl" => Algorithm::Dutch,
            "no" => Algorithm::Norwegian,
            "pt" => Algorithm::Portuguese,
            "ro" => Algorithm::Romanian,
            "ru" => Algorithm::Russian,
            "sv" => Algorithm::Swedish,
            "tr" => Algorithm::Turkish,
            _ => return word,
        };
        let stem = Stemmer::create(algorithm).stem(&word);
        if stem.as_ref() == word.as_ref() {
            return word;
        }
        Cow::Owned(stem.into_owned())
    }

    /// Whether this is a stop word. The lists are in lower case, so `word` must be too.
    #[must_use]
    pub fn skips(self, word: &str) -> bool {
        let code = self.code();
        SKIPPING.contains(&code) && stop_words::lookup(code).is_some_and(|words| words.contains(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_stems() {
        let english = Language::of_locale("en_US").unwrap();
        assert_eq!(english.stem("connections".into()), "connect");
        assert_eq!(english.stem("runs".into()), "run");
        assert_eq!(Language::of_locale("xx").unwrap().stem("words".into()), "words");
        assert_eq!(Language::of_locale("DE").unwrap().stem("katzen".into()), "katz");
        assert_eq!(Language::of_locale("e"), None);
    }

    #[test]
    fn some_words_are_skipped() {
        for code in SKIPPING {
            assert!(stop_words::lookup(code).is_some_and(|words| words.len() > 50), "{code}");
        }
        let english = Language::of_locale("en").unwrap();
        assert!(english.skips("the") && !english.skips("The") && !english.skips("house"));
        assert!(!Language::of_locale("nl").unwrap().skips("de"));
    }
}
