//! The form of scripts. A statement ends where a line ends with `;`. Lines that start with `--` outside a statement are
//! comments; lines that start with `@` are directives, which hold for the next statement only.

use super::values;
use crate::raw::Bound;
use crate::{Error, Outcome};

/// How a statement reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum How {
    /// QUERY, with values when there are some.
    #[default]
    Query,
    /// PREPARE, the answer to which is compared.
    Prepare,
    /// PREPARE, then EXECUTE, the answer to which is compared.
    Execute,
}

/// A statement of a BATCH message, with the values that it is executed with once prepared.
pub type InBatch = (String, Option<Vec<Bound>>);

/// One question.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Line of its first word, from 1.
    pub line: usize,
    /// Its text, without the `;` at its end.
    pub text: String,
    /// How it is asked.
    pub how: How,
    /// Values of its markers.
    pub values: Vec<Bound>,
    /// Their names, or none.
    pub names: Vec<String>,
    /// Rows per page; all pages are read.
    pub page: Option<i32>,
    /// Only the first page is read; its paging state is kept for the steps with `resumes`.
    pub keeps_state: bool,
    /// Its first page is asked for with the paging state kept last.
    pub resumes: bool,
    /// Keyspace of the request.
    pub keyspace: Option<String>,
    /// Protocol version, 4 unless said.
    pub version: u8,
    /// Consistency level.
    pub consistency: Option<u16>,
    /// Serial consistency level.
    pub serial: Option<u16>,
    /// Default timestamp.
    pub timestamp: Option<i64>,
    /// What the server takes for now, seconds.
    pub now: Option<i32>,
    /// Why our answer differs from Cassandra's.
    pub differs: Option<String>,
    /// Columns whose values change from run to run.
    pub mask: Vec<String>,
    /// Run, but not compared.
    pub setup: bool,
    /// Only code and kind are compared: Cassandra's text is of its inner works.
    pub code_only: bool,
    /// A BATCH message of these: kind and statements with their values.
    pub batch: Option<(u8, Vec<InBatch>)>,
    /// The schema events that it causes are part of its answer.
    pub events: bool,
    /// The connection that asks, by name; the one without a name unless said.
    pub connection: String,
    /// The name under which a PREPARE's ids are kept.
    pub keep_as: Option<String>,
    /// EXECUTE with the ids kept under this name, without a PREPARE.
    pub kept: Option<String>,
    /// Rows are asked for without column specifications.
    pub skip_metadata: bool,
}

/// A script with its name.
#[derive(Debug, Clone)]
pub struct Script {
    /// File name without extension.
    pub name: String,
    /// What it asks, in order.
    pub steps: Vec<Step>,
}

/// Reads a script.
///
/// # Errors
/// [`Error::Script`] with the line that cannot be read.
pub fn parse(name: &str, text: &str) -> Outcome<Script> {
    let mut steps = Vec::new();
    let mut step = fresh();
    let mut text_so_far = String::new();
    let mut line_number = 0;
    for line in text.lines() {
        line_number += 1;
        let wrong = |problem: String| Error::Script {
            file: format!("{name}.cql"),
            line: line_number,
            problem,
        };
        if text_so_far.is_empty() {
            if line.trim().is_empty() || line.starts_with("--") {
                continue;
            }
            if let Some(rest) = line.strip_prefix('@') {
                let (word, argument) = rest.split_once(' ').unwrap_or((rest, ""));
                if directive(&mut step, word, argument.trim()).map_err(wrong)? {
                    step.line = line_number;
                    steps.push(std::mem::replace(&mut step, fresh()));
                }
                continue;
            }
            step.line = line_number;
        } else {
            text_so_far.push('\n');
        }
        text_so_far.push_str(line.trim_end());
        if let Some(statement) = text_so_far.strip_suffix(';') {
            let statement = statement.to_owned();
            text_so_far.clear();
            if let Some((_, statements)) = step.batch.as_mut() {
                let values = if step.values.is_empty() && step.how == How::Query {
                    None
                } else {
                    Some(std::mem::take(&mut step.values))
                };
                step.how = How::Query;
                statements.push((statement, values));
            } else {
                step.text = statement;
                steps.push(std::mem::replace(&mut step, fresh()));
            }
        }
    }
    if text_so_far.is_empty() {
        Ok(Script {
            name: name.to_owned(),
            steps,
        })
    } else {
        Err(Error::Script {
            file: format!("{name}.cql"),
            line: line_number,
            problem: "no `;` at the end".to_owned(),
        })
    }
}

fn fresh() -> Step {
    Step {
        version: 4,
        ..Step::default()
    }
}

/// Applies a directive; true when it completes a step by itself.
fn directive(step: &mut Step, word: &str, argument: &str) -> Result<bool, String> {
    fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("not a number here: `{text}`"))
    }
    match word {
        "bind" => {
            step.how = How::Execute;
            step.values = values::parse(argument)?;
        }
        "values" => step.values = values::parse(argument)?,
        "names" => step.names = argument.split_whitespace().map(str::to_owned).collect(),
        "prepare" => step.how = How::Prepare,
        "execute" => step.how = How::Execute,
        "page" => step.page = Some(number(argument)?),
        "keep" => {
            step.page = Some(number(argument)?);
            step.keeps_state = true;
        }
        "resume" => step.resumes = true,
        "keyspace" => step.keyspace = Some(argument.to_owned()),
        "version" => step.version = number(argument)?,
        "consistency" => step.consistency = Some(number(argument)?),
        "serial" => step.serial = Some(number(argument)?),
        "timestamp" => step.timestamp = Some(number(argument)?),
        "now" => {
            step.now = Some(number(argument)?);
            step.version = 5;
        }
        "differs" => step.differs = Some(argument.to_owned()),
        "mask" => step.mask = argument.split_whitespace().map(str::to_owned).collect(),
        "setup" => step.setup = true,
        "events" => step.events = true,
        "on" => step.connection = argument.to_owned(),
        "as" => step.keep_as = Some(argument.to_owned()),
        "skip" => step.skip_metadata = true,
        "again" => {
            step.text = format!("EXECUTE {argument}");
            step.kept = Some(argument.to_owned());
            return Ok(true);
        }
        "code" => step.code_only = true,
        "raw" => {
            step.text = serde_json::from_str(argument).map_err(|e| e.to_string())?;
            return Ok(true);
        }
        "batch" => {
            let kind = match argument {
                "logged" => 0,
                "unlogged" => 1,
                "counter" => 2,
                other => number(other)?,
            };
            step.batch = Some((kind, Vec::new()));
        }
        "end" => return Ok(true),
        _ => return Err(format!("no directive `@{word}`")),
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_statements_directives_and_batches() {
        let text = "-- a comment\nSELECT 1;\n\n@page 2\n@bind int(1)\nSELECT *\n FROM t;\n@batch logged\nINSERT a;\n\
                    @bind int(1)\nINSERT b;\n@end\n@raw \"\"\n";
        let script = parse("x", text).unwrap();
        assert_eq!(script.steps.len(), 4);
        assert_eq!(script.steps[1].text, "SELECT *\n FROM t");
        assert_eq!((script.steps[1].page, script.steps[1].line), (Some(2), 6));
        let (kind, statements) = script.steps[2].batch.clone().unwrap();
        assert_eq!(kind, 0);
        assert_eq!(statements[0], ("INSERT a".to_owned(), None));
        assert_eq!(statements[1].1.as_ref().unwrap().len(), 1);
    }
}
