//! One generated statement: its text, the values of its markers, and how it is sent. It is written in the form of the
//! oracle's scripts and read back from it, so that what is kept is exactly what was asked.

use super::types::Val;
use crate::Outcome;
use crate::oracle::script::{self, Step};
use std::borrow::Cow;
use std::fmt::Write as _;

/// What a statement does; a shrinking run drops reads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Creates, alters, drops or truncates.
    Schema,
    /// Writes.
    Write,
    /// Reads.
    Read,
}

/// How a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Way {
    /// QUERY without markers.
    #[default]
    Text,
    /// QUERY with values.
    Values,
    /// PREPARE and EXECUTE.
    Prepared,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// What it does.
    pub(super) kind: Kind,
    /// Its text; a `?` for each of `marks`.
    pub(super) text: String,
    /// Values of its markers.
    pub(super) marks: Vec<Val>,
    /// How it is sent.
    pub(super) way: Way,
    /// Rows per page.
    pub(super) page: Option<i32>,
    /// Default timestamp of the request.
    pub(super) timestamp: Option<i64>,
    /// What the servers take for now, seconds; with it the request speaks version 5.
    pub(super) now: Option<i32>,
    /// A BATCH message: its kind and statements.
    pub(super) batch: Option<(&'static str, Vec<Self>)>,
    /// The role that asks; `None`: the superuser.
    pub(super) by: Option<usize>,
    /// Whether it has been broken on purpose.
    pub(super) spoiled: bool,
}

impl Question {
    /// A statement without values.
    pub(super) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            marks: Vec::new(),
            way: Way::Text,
            page: None,
            timestamp: None,
            now: None,
            batch: None,
            by: None,
            spoiled: false,
        }
    }

    /// The same where `{ks}` is the keyspace's name.
    pub(super) fn in_keyspace(&self, keyspace: &str) -> Cow<'_, Self> {
        if !self.text.contains("{ks}") {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            text: self.text.replace("{ks}", keyspace),
            ..self.clone()
        })
    }

    /// In the form of a script.
    pub(super) fn script(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        if let Some(by) = self.by {
            let _infallible = writeln!(out, "@on r{by}");
        }
        if let Some(now) = self.now {
            let _infallible = writeln!(out, "@now {now}");
        }
        if let Some(timestamp) = self.timestamp {
            let _infallible = writeln!(out, "@timestamp {timestamp}");
        }
        if let Some(page) = self.page {
            let _infallible = writeln!(out, "@page {page}");
        }
        if let Some((kind, statements)) = &self.batch {
            let _infallible = writeln!(out, "@batch {kind}");
            for statement in statements {
                statement.put_marks(&mut out);
                let _infallible = writeln!(out, "{};", statement.text);
            }
            out.push_str("@end\n");
            return out;
        }
        self.put_marks(&mut out);
        let plain = self.text.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
            && !self.text.ends_with(|c: char| c == ';' || c.is_whitespace())
            && !self.text.contains('\n');
        if plain {
            let _infallible = writeln!(out, "{};", self.text);
        } else {
            let _infallible = writeln!(out, "@raw {}", serde_json::Value::from(self.text.as_str()));
        }
        out
    }

    fn put_marks(&self, out: &mut String) {
        let bounds = self
            .marks
            .iter()
            .map(|v| v.bound.as_deref().unwrap_or("null"))
            .collect::<Vec<_>>();
        let _infallible = match (self.way, bounds.is_empty()) {
            (Way::Prepared, true) => writeln!(out, "@execute"),
            (Way::Prepared, false) => writeln!(out, "@bind {}", bounds.join(" ")),
            (Way::Values, false) => writeln!(out, "@values {}", bounds.join(" ")),
            (Way::Values, true) | (Way::Text, _) => Ok(()),
        };
    }

    /// As a step that can be asked.
    ///
    /// # Errors
    /// When the script that it writes cannot be read, a mistake of this module.
    pub(super) fn step(&self) -> Outcome<Step> {
        let text = self.script();
        let mut script = script::parse("generated", &text)?;
        match (script.steps.pop(), script.steps.is_empty()) {
            (Some(step), true) => Ok(step),
            _ => Err(crate::Error::failed(format!("not one statement: {text}"))),
        }
    }

    /// The same with its values as literals in its text; `None` when there are none, or one cannot be (unset).
    pub(super) fn inlined(&self) -> Option<Self> {
        if self.marks.is_empty() || self.marks.iter().any(|v| v.literal.is_empty()) {
            return None;
        }
        let mut text = String::new();
        let mut marks = self.marks.iter();
        for part in super::words::split(&self.text) {
            match part {
                "?" => text.push_str(&marks.next()?.literal),
                part => text.push_str(part),
            }
        }
        Some(Self {
            text,
            marks: Vec::new(),
            way: Way::Text,
            ..self.clone()
        })
    }
}

/// Puts a statement together, values as literals or as markers.
#[derive(Debug)]
pub(super) struct Terms {
    /// How it will be sent.
    pub(super) way: Way,
    /// Values of the markers so far; they have to be added in the order of the text.
    pub(super) marks: Vec<Val>,
}

impl Terms {
    /// Nothing so far.
    pub(super) fn new(rng: &mut fastrand::Rng) -> Self {
        let way = match rng.u8(0..10) {
            0..=3 => Way::Prepared,
            4 => Way::Values,
            _ => Way::Text,
        };
        Self { way, marks: Vec::new() }
    }

    /// The value, as a marker now and then when markers are sent.
    pub(super) fn put(&mut self, rng: &mut fastrand::Rng, value: &Val) -> String {
        if self.way == Way::Text || value.bound.is_none() || rng.u8(0..4) == 0 {
            return value.literal.clone();
        }
        self.marks.push(value.clone());
        "?".to_owned()
    }

    /// The statement.
    pub(super) fn finish(self, kind: Kind, text: String) -> Question {
        Question {
            marks: self.marks,
            way: self.way,
            ..Question::new(kind, text)
        }
    }
}
