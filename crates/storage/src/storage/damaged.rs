//! Invalid bytes from disk: which record, and what is wrong with it. Neither names a directory or file; the reader of
//! the bytes writes those to the log.

use std::fmt;

/// A record that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{record} in the store is damaged: {what}")]
pub struct Damaged {
    /// The kind of record.
    pub record: Record,
    /// The defect.
    pub what: &'static str,
}

/// A kind of record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The key of a row, of a deletion or of an index entry.
    Key,
    /// A row, or a deletion.
    Row,
    /// A record of the catalog, by its key as [`Damaged::catalog`] prints it.
    Catalog(String),
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => out.write_str("a key"),
            Self::Row => out.write_str("a row"),
            Self::Catalog(name) => write!(out, "the record {name} of the catalog"),
        }
    }
}

impl Damaged {
    /// A key that this program does not write.
    pub const KEY: Self = Self {
        record: Record::Key,
        what: "it has not the form of one",
    };

    /// A row that is cut, out of order, or of an unknown format.
    #[must_use]
    pub const fn row(what: &'static str) -> Self {
        Self {
            record: Record::Row,
            what,
        }
    }

    /// A record of the catalog under this key: its name as text, and the rest in hexadecimal digits.
    #[must_use]
    pub fn catalog(key: &[u8], what: &'static str) -> Self {
        let is_name = |byte: &u8| byte.is_ascii_punctuation() || byte.is_ascii_lowercase();
        let name: String = key.iter().copied().take_while(is_name).map(char::from).collect();
        let mut text = name;
        let rest = key.get(text.len()..).unwrap_or_default();
        if !rest.is_empty() {
            text.push(' ');
        }
        for byte in rest {
            text.push_str(&format!("{byte:02x}"));
        }
        Self {
            record: Record::Catalog(text),
            what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_named() {
        let text = |damaged: Damaged| damaged.to_string();
        assert_eq!(
            text(Damaged::KEY),
            "a key in the store is damaged: it has not the form of one"
        );
        assert_eq!(
            text(Damaged::catalog(b"!garbage\x00\x00\x01", "it has no number")),
            "the record !garbage 000001 of the catalog in the store is damaged: it has no number"
        );
        assert!(text(Damaged::catalog(b"!host_id", "x")).starts_with("the record !host_id of"));
    }
}
