//! Reports: text for people, JSON for programs, SARIF for tools that show findings next to the code.

use serde_json::{Value, json};

use super::figures::{TableFigures, bytes_text, forecast};
use super::rules::{RULES, Rule};
use super::{Advice, Finding, Level};
use helenus_schema::profile::Profile;
use helenus_types::types::date_text;

/// How the text is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Levels and carets in colour.
    pub colour: bool,
}

impl Style {
    /// A word in the colour of its severity.
    fn of_level(self, level: Level, word: &str) -> String {
        let code = match level {
            Level::Error => "1;31",
            Level::Warning => "1;33",
            Level::Note => "1;36",
        };
        if self.colour {
            format!("\u{1b}[{code}m{word}\u{1b}[0m")
        } else {
            word.to_owned()
        }
    }
}

/// Characters of a line that a report shows with a finding.
const EXCERPT_CHARACTERS_MAX: usize = 100;

/// The line of a finding with a caret under the marked part; `None` means that it has no line. Tabs become spaces.
/// Other control characters are dropped, since they would move the caret or control the terminal.
fn excerpt(finding: &Finding, style: Style) -> Option<String> {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let line: Vec<char> = finding.excerpt.chars().map(shown).collect();
    let column = finding.column.checked_sub(1).filter(|column| *column < line.len())?;
    let skipped = (column + finding.width)
        .saturating_sub(EXCERPT_CHARACTERS_MAX)
        .min(column);
    let text: String = line.iter().skip(skipped).take(EXCERPT_CHARACTERS_MAX).collect();
    let carets = "^".repeat(finding.width.clamp(1, EXCERPT_CHARACTERS_MAX));
    let number = finding.line.to_string();
    let margin = " ".repeat(number.len());
    let before = " ".repeat(column - skipped);
    let carets = style.of_level(finding.level, &carets);
    Some(format!(
        "    {number} | {}\n    {margin} | {before}{carets}",
        text.trim_end()
    ))
}

/// What a rule checks, why that costs in each profile, and what to do instead. `None` means that there is no such rule.
#[must_use]
pub fn explained(id: &str) -> Option<String> {
    let rule = RULES.iter().find(|rule| rule.id == id)?;
    let cassandra = rule.cassandra.unwrap_or(rule.why);
    Some(format!(
        "{}\n    {}\n    on Cosmos DB: {}\n    on Cassandra: {cassandra}\n    instead: {}\n    accept a finding: -- helenus: accept {} WHY, in the line before \
         the statement\n",
        rule.id, rule.what, rule.why, rule.instead, rule.id
    ))
}

/// The text report: a paragraph for each finding, then figures, then a count.
#[must_use]
pub fn text(advice: &Advice, logical_bytes_max: u64, today: i64, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| {
        out.push_str(&text.to_string());
        out.push('\n');
    };
    let mut said = Vec::new();
    for finding in &advice.findings {
        let of = if finding.table.is_empty() {
            String::new()
        } else {
            format!("{}: ", finding.table)
        };
        line(format_args!(
            "{}:{}:{}: {}: {of}{} [{}]",
            finding.file,
            finding.line,
            finding.column,
            style.of_level(finding.level, finding.level.name()),
            finding.message,
            finding.rule
        ));
        if let Some(excerpt) = excerpt(finding, style) {
            line(format_args!("{excerpt}"));
        }
        // The reason and the remedy are the same for all findings of a rule.
        if !said.contains(&finding.rule) && finding.rule != super::rules::INVALID.id {
            said.push(finding.rule);
            line(format_args!("    why: {}", finding.why));
            line(format_args!("    instead: {}", finding.instead));
        }
    }
    for figures in &advice.tables {
        line(format_args!(""));
        table(figures, logical_bytes_max, today, &mut line);
    }
    if !advice.findings.is_empty() || !advice.tables.is_empty() {
        line(format_args!(""));
    }
    let accepted = match advice.accepted {
        0 => String::new(),
        accepted => format!(", {accepted} accepted"),
    };
    line(format_args!(
        "{}, {}, {}{accepted}",
        count(advice.count(Level::Error), "error"),
        count(advice.count(Level::Warning), "warning"),
        count(advice.count(Level::Note), "note")
    ));
    out
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn table(figures: &TableFigures, logical_bytes_max: u64, today: i64, line: &mut impl FnMut(std::fmt::Arguments<'_>)) {
    line(format_args!(
        "{}.{}: {} rows, {} in {} logical and {} physical partitions",
        figures.keyspace,
        figures.table,
        figures.rows,
        bytes_text(figures.bytes),
        figures.logical,
        figures.partitions.len()
    ));
    for partition in figures.largest.iter().take(5) {
        let grows = forecast(partition, logical_bytes_max, today).map_or_else(String::new, |forecast| {
            format!(
                ", {} a day, full on {}",
                bytes_text(forecast.bytes_per_day),
                date_text(forecast.full_on)
            )
        });
        line(format_args!(
            "    {}: {} rows, {}{grows}",
            partition.key,
            partition.rows,
            bytes_text(partition.bytes)
        ));
    }
}

/// The JSON report: one object. Its members are stable; new ones may be added.
#[must_use]
pub fn json(advice: &Advice, logical_bytes_max: u64, today: i64) -> Value {
    let tables: Vec<Value> = advice
        .tables
        .iter()
        .map(|figures| {
            let mut value = json!(figures);
            let forecasts: Vec<Value> = figures
                .largest
                .iter()
                .map(|partition| match forecast(partition, logical_bytes_max, today) {
                    Some(forecast) => json!({
                        "bytes_per_day": forecast.bytes_per_day,
                        "full_on": date_text(forecast.full_on),
                    }),
                    None => Value::Null,
                })
                .collect();
            if let Some(largest) = value.get_mut("largest").and_then(Value::as_array_mut) {
                for (partition, forecast) in largest.iter_mut().zip(forecasts) {
                    if let Some(partition) = partition.as_object_mut() {
                        partition.insert("forecast".to_owned(), forecast);
                    }
                }
            }
            value
        })
        .collect();
    json!({
        "version": 1,
        "errors": advice.count(Level::Error),
        "warnings": advice.count(Level::Warning),
        "notes": advice.count(Level::Note),
        "accepted": advice.accepted,
        "findings": advice.findings,
        "tables": tables,
    })
}

/// Where the repository describes a rule: a page that `cli::book` generates, and the rule's section on it.
pub(super) fn section(rule: &Rule) -> String {
    format!("docs/src/reference/lint.md#{}", rule.id)
}

/// The `helpUri` of a rule: its section in a published repository. `None` means that none is published: the address must be absolute
/// (§3.49.12), and GitHub refuses a whole report for one that is not. Gap: tool-15.
pub(super) fn help_uri(repository: &str, rule: &Rule) -> Option<String> {
    (!repository.is_empty()).then(|| format!("{repository}/blob/HEAD/{}", section(rule)))
}

/// The Static Analysis Results Interchange Format, version 2.1.0, with the reasons of a profile.
#[must_use]
pub fn sarif(advice: &Advice, profile: Profile) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            let more = format!("More: helenus lint --explain {}, or {}", rule.id, section(rule));
            let mut value = json!({
                "id": rule.id,
                "shortDescription": { "text": rule.what },
                "fullDescription": { "text": rule.why_in(profile) },
                "help": { "text": format!("{}\n\n{more}", rule.instead) },
            });
            // `repository` of Cargo.toml; empty while nothing is published.
            if let (Some(uri), Some(value)) = (help_uri(env!("CARGO_PKG_REPOSITORY"), rule), value.as_object_mut()) {
                value.insert("helpUri".to_owned(), json!(uri));
            }
            value
        })
        .collect();
    let results: Vec<Value> = advice.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "helenus",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let of = if finding.table.is_empty() {
        String::new()
    } else {
        format!("{}: ", finding.table)
    };
    json!({
        "ruleId": finding.rule,
        "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule),
        "level": finding.level.name(),
        "message": { "text": format!("{of}{}. {}", finding.message, finding.instead) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&finding.file) },
                "region": {
                    "startLine": finding.line,
                    "startColumn": finding.column,
                    "endColumn": finding.column + finding.width,
                },
            },
        }],
    })
}

/// A path as a URI: other characters are percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    if path.starts_with('/') {
        out.insert_str(0, "file://");
    }
    out
}
