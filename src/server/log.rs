//! Log lines for people: one event is one line, whatever clients send.
//!
//! Every field and every message passes [`HumanFields`], so that no call site can omit the escaping. Control characters
//! are escaped as in Rust (`\n`, `\u{1b}`): a client with the name `x⏎2026-01-01 INFO login accepted` cannot forge a
//! line, and no terminal executes an escape sequence. Long fields are cut. The JSON format needs neither: it escapes,
//! and programs read it. [`JsonEvents`] leaves out what names the machine that built the program.

mod repeats;

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

pub use self::repeats::Repeats;

/// Most characters of a field that are printed; then «… cut». Longer than any text of ours, short enough for a terminal.
const FIELD_CHARACTERS_MAX: usize = 4096;

/// The same for a backtrace, a field that only the server writes: [`BACKTRACE`].
const BACKTRACE_CHARACTERS_MAX: usize = 64 * 1024;

/// The field of a backtrace. It keeps its lines, indented, so that none looks like an event.
const BACKTRACE: &str = "backtrace";

/// Prints the fields of events and spans: the message, then `name=value`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HumanFields;

impl<'writer> FormatFields<'writer> for HumanFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = Line {
            writer,
            is_first: true,
            result: Ok(()),
        };
        fields.record(&mut line);
        line.result
    }
}

/// Prints events as JSON, without the fields that events of the crate `log` carry for a formatter (`log.file` and
/// others): the file is a path of the machine that built the program, the rest repeats the target.
#[derive(Clone, Debug)]
pub struct JsonEvents(pub Format<Json>);

/// A line of the JSON format.
#[derive(Serialize, Deserialize)]
struct JsonLine {
    timestamp: String,
    level: String,
    fields: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl<S, N> FormatEvent<S, N> for JsonEvents
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
    Format<Json>: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if event.fields().all(|field| !is_of_log(field.name())) {
            return self.0.format_event(context, writer, event);
        }
        let mut text = String::new();
        self.0.format_event(context, Writer::new(&mut text), event)?;
        let mut line: JsonLine = serde_json::from_str(&text).map_err(|_| fmt::Error)?;
        line.fields.retain(|name, _| !is_of_log(name));
        let text = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{text}")
    }
}

/// Whether a field is one that events of the crate `log` carry for a formatter.
fn is_of_log(field: &str) -> bool {
    field.starts_with("log.")
}

struct Line<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn print(&mut self, field: &Field, value: fmt::Arguments<'_>) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        let is_backtrace = field.name() == BACKTRACE;
        if field.name() != "message" {
            match self.writer.has_ansi_escapes() {
                true => write!(self.writer, "\u{1b}[3m{}\u{1b}[0m\u{1b}[2m=\u{1b}[0m", field.name())?,
                false => write!(self.writer, "{}=", field.name())?,
            }
        }
        let mut escaped = Escaped {
            out: &mut self.writer,
            left: if is_backtrace {
                BACKTRACE_CHARACTERS_MAX
            } else {
                FIELD_CHARACTERS_MAX
            },
            is_cut: false,
            keeps_lines: is_backtrace,
        };
        escaped.write_fmt(value)?;
        if escaped.is_cut {
            self.writer.write_str("… cut")?;
        }
        Ok(())
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.result.is_ok() && !is_of_log(field.name()) {
            self.result = self.print(field, format_args!("{value:?}"));
        }
    }
}

/// Escapes control characters, and stops at a length.
struct Escaped<'a, W> {
    out: &'a mut W,
    left: usize,
    is_cut: bool,
    keeps_lines: bool,
}

impl<W: Write> Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let Some(left) = self.left.checked_sub(1) else {
                self.is_cut = true;
                return Ok(());
            };
            self.left = left;
            if character == '\n' && self.keeps_lines {
                self.out.write_str("\n    ")?;
            } else if obeys(character) {
                write!(self.out, "{}", character.escape_default())?;
            } else {
                self.out.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// Whether a terminal or an editor interprets this character instead of showing it: control characters, line
/// separators, and those that change the direction of text.
pub(super) fn obeys(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}')
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    pub(super) struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Sink {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(events: impl FnOnce()) -> String {
        let sink = Sink::default();
        let its_sink = sink.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(HumanFields)
            .with_ansi(false)
            .with_writer(move || its_sink.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, events);
        sink.text()
    }

    #[test]
    fn json_names_no_file_of_the_build() {
        let sink = Sink::default();
        let its_sink = sink.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .map_event_format(JsonEvents)
            .with_writer(move || its_sink.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(log.file = "/build/db.rs", log.line = 3, "of a library");
            tracing::info!(rows = 3, "ours");
        });
        let text = sink.text();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let fields: Vec<&Value> = lines.iter().map(|line| &line["fields"]).collect();
        assert_eq!(
            fields,
            [
                &serde_json::json!({"message": "of a library"}),
                &serde_json::json!({"message": "ours", "rows": 3})
            ]
        );
        assert!(
            lines
                .iter()
                .all(|line| line["target"] == lines[0]["target"] && line["level"] == "INFO"),
            "{text}"
        );
    }

    /// Every control character, those that change the text's direction, and a forged log line.
    fn hostile() -> String {
        let all = (0..0x20).chain(0x7F..0xA0).chain(0x2028..0x202F).chain(0x2066..0x206A);
        let mut text: String = all.filter_map(char::from_u32).collect();
        text.push_str("x\n2026-01-01T00:00:00Z  INFO helenus: login accepted user=admin\r\n");
        text
    }

    #[test]
    fn no_field_makes_a_line_or_moves_a_terminal() {
        let hostile = hostile();
        let error = io::Error::other(hostile.clone());
        let text = logged(|| {
            let span = tracing::info_span!("span", name = %hostile, second = tracing::field::Empty);
            span.record("second", hostile.as_str());
            let _inside = span.enter();
            tracing::info!(display = %hostile, debug = ?hostile, text = hostile.as_str(), "message {hostile}");
            tracing::info!(error = &error as &dyn std::error::Error, "{}", hostile);
            tracing::info!("{hostile}");
        });
        let obeyed: Vec<char> = text.chars().filter(|c| obeys(*c) && *c != '\n').collect();
        assert!(obeyed.is_empty(), "{obeyed:?}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.lines()
                .all(|line| !line.starts_with("2026-01-01T00:00:00Z  INFO helenus: login"))
        );
        assert!(text.contains(r"x\n2026-01-01T"), "{text}");
    }

    #[test]
    fn what_is_ordinary_is_printed_as_it_is() {
        let text =
            logged(|| tracing::info!(rows = 3, name = "ä", path = %"/a b", backtrace = %"one\ntwo", "a “message”"));
        assert!(
            text.ends_with("a “message” rows=3 name=\"ä\" path=/a b backtrace=one\n    two\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = "€".repeat(60_000);
        let text = logged(|| tracing::info!(long = %long, "short"));
        assert!(text.ends_with("€… cut\n"));
        assert_eq!(text.matches('€').count(), FIELD_CHARACTERS_MAX);
    }
}
