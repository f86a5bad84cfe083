//! Compares answers with those of Cassandra, counts, and says what is known.

use super::script::{self, Script};
use super::{replay, script::Step};
use crate::{Error, Outcome};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How to compare.
#[derive(Debug, Args)]
pub struct Options {
    /// Server to ask, HOST:PORT.
    #[arg(long = "target")]
    pub address: String,
    /// Write the answers down (the target should be Cassandra).
    #[arg(long)]
    pub record: bool,
    /// Pass with this share of equal answers (percent) in spite of unknown differences.
    #[arg(long)]
    pub threshold: Option<f64>,
    /// Folder of the scripts.
    #[arg(long = "scripts", default_value_os_t = crate::here("oracle/scripts"))]
    pub folder: PathBuf,
    /// Names of scripts; all when none is given.
    pub only: Vec<String>,
}

/// A difference that has been judged.
#[derive(Debug, Deserialize)]
struct Known {
    script: String,
    statement: String,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
struct KnownFile {
    #[serde(default)]
    known: Vec<Known>,
}

/// What came of a run.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    same: usize,
    marked: usize,
    known: usize,
    different: usize,
}

/// Runs scripts and prints, for each, what came of it; true when nothing unknown differs.
///
/// # Errors
/// When a script or its answers cannot be read, or the server is not there.
pub fn run(options: &Options) -> Outcome<bool> {
    let known = read_known(&options.folder)?;
    let mut total = Count::default();
    let mut details = String::new();
    for path in scripts(&options.folder)? {
        let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        if !options.only.is_empty() && !options.only.contains(&name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(Error::io(path.display().to_string()))?;
        let script = script::parse(&name, &text)?;
        let told = match replay::run(&options.address, &script) {
            Ok(told) => told,
            Err(error) if options.record => return Err(error),
            Err(error) => {
                let steps = script.steps.iter().filter(|s| !s.setup).count();
                println!("{name:24} {steps:5} different: {error}");
                total.different += steps;
                continue;
            }
        };
        let answers = path.with_extension("answers");
        if options.record {
            let lines = told.iter().fold(String::new(), |mut out, line| {
                let _infallible = writeln!(out, "{line}");
                out
            });
            std::fs::write(&answers, lines).map_err(Error::io(answers.display().to_string()))?;
            println!("{name:24} {:5} recorded", told.len());
            continue;
        }
        let count = compare(&script, &told, &answers, &known, &mut details)?;
        println!(
            "{name:24} {:5} same {:5} differ as marked {:5} differ as known {:5} different",
            count.same, count.marked, count.known, count.different
        );
        total.same += count.same;
        total.marked += count.marked;
        total.known += count.known;
        total.different += count.different;
    }
    if options.record {
        return Ok(true);
    }
    print!("{details}");
    let asked = total.same + total.marked + total.known + total.different;
    #[expect(clippy::cast_precision_loss, reason = "counts of statements are small")]
    let share = if asked == 0 {
        0.0
    } else {
        total.same as f64 * 100.0 / asked as f64
    };
    println!(
        "oracle: {asked} statements, {} same ({share:.2} %), {} differ as marked, {} differ as known, {} different",
        total.same, total.marked, total.known, total.different
    );
    Ok(asked > 0 && (total.different == 0 || options.threshold.is_some_and(|least| share >= least)))
}

fn scripts(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = std::fs::read_dir(folder)
        .map_err(Error::io(folder.display().to_string()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cql"))
        .collect::<Vec<_>>();
    found.sort();
    Ok(found)
}

fn read_known(folder: &Path) -> Outcome<Vec<Known>> {
    let path = folder.parent().unwrap_or(folder).join("known.toml");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).map_err(Error::io(path.display().to_string()))?;
    let read: KnownFile = toml::from_str(&text).map_err(|e| Error::Script {
        file: path.display().to_string(),
        line: 0,
        problem: e.to_string(),
    })?;
    Ok(read.known)
}

fn compare(script: &Script, told: &[Value], answers: &Path, known: &[Known], details: &mut String) -> Outcome<Count> {
    let text = std::fs::read_to_string(answers).map_err(Error::io(answers.display().to_string()))?;
    let expected = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Value>, _>>()?;
    let steps = script.steps.iter().filter(|s| !s.setup).collect::<Vec<_>>();
    if expected.len() != steps.len() {
        let problem = format!(
            "{} answers for {} statements: record again",
            expected.len(),
            steps.len()
        );
        return Err(Error::Script {
            file: answers.display().to_string(),
            line: 0,
            problem,
        });
    }
    let mut count = Count::default();
    for (i, (step, (expected, told))) in steps.iter().zip(expected.iter().zip(told)).enumerate() {
        if expected.get("statement") != told.get("statement") {
            let problem = "the statement has changed: record again".to_owned();
            return Err(Error::Script {
                file: answers.display().to_string(),
                line: i + 1,
                problem,
            });
        }
        // A server error is a bug inside Cassandra: a refusal of any kind says the same.
        let own_bug = expected.get("code").and_then(Value::as_str) == Some("0x0000");
        if expected == told || (own_bug && told.get("code").is_some()) {
            count.same += 1;
            if step.differs.is_some() {
                let _infallible = writeln!(
                    details,
                    "{}:{}: marked as different, and is not",
                    script.name, step.line
                );
            }
        } else if step.differs.is_some() {
            count.marked += 1;
        } else if let Some(found) = known
            .iter()
            .find(|k| k.script == script.name && k.statement == replay::label(step))
        {
            count.known += 1;
            let _infallible = writeln!(details, "{}:{}: known: {}", script.name, step.line, found.reason);
        } else {
            count.different += 1;
            tell(details, &script.name, step, expected, told);
        }
    }
    Ok(count)
}

fn tell(details: &mut String, name: &str, step: &Step, expected: &Value, told: &Value) {
    let _infallible = writeln!(details, "{name}:{}: {}", step.line, replay::label(step));
    for line in difference(expected, told) {
        let _infallible = writeln!(details, "    {line}");
    }
}

/// The keys in which two answers differ, a line each.
pub fn difference(expected: &Value, told: &Value) -> Vec<String> {
    let none = serde_json::Map::new();
    let (expected, told) = (expected.as_object().unwrap_or(&none), told.as_object().unwrap_or(&none));
    let mut lines = Vec::new();
    let keys = expected
        .keys()
        .chain(told.keys().filter(|k| !expected.contains_key(*k)));
    for key in keys {
        let (a, b) = (expected.get(key), told.get(key));
        if a != b {
            let show = |v: Option<&Value>| v.map_or("-".to_owned(), |v| v.to_string().chars().take(600).collect());
            let rows = |v: Option<&Value>| v.and_then(Value::as_array).filter(|_| key == "rows").cloned();
            if let (Some(a), Some(b)) = (rows(a), rows(b)) {
                // The first that differ say most.
                let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
                let rest = |rows: &[Value]| show(Some(&rows.iter().skip(same).cloned().collect()));
                lines.push(format!(
                    "rows: expected {}, got {}, the first {same} alike; expected {} got {}",
                    a.len(),
                    b.len(),
                    rest(&a),
                    rest(&b)
                ));
                continue;
            }
            lines.push(format!("{key}: expected {} got {}", show(a), show(b)));
        }
    }
    lines
}
