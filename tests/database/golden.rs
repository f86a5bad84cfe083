//! Scripts of CQL and their answers, in `golden/`: the database in one process, without a socket. Each starts in an empty
//! keyspace `ks`.
//!
//! ```text
//! > CQL …                 runs a statement; values print as JSON
//! page 2 "CQL …"          all pages of a query, two rows each
//! advance 10              moves the clock by seconds
//! ```
//! `UPDATE_GOLDENFILES=1` writes the answers anew.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use crate::support::{Client, printed};
use goldenscript::{Argument, Command, Context};
use helenus_cql::cql::{Answer, AnswerKind, QueryParams};
use helenus_schema::command::{ChangeKind, ChangeTarget};
use test_each_file::test_each_path;

test_each_path! { in "tests/golden" as scripts => script }

fn script(path: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let client = runtime.block_on(Client::with_keyspace("memory:"));
    goldenscript::run(&mut Runner { runtime, client }, path).expect("the answers are the script's");
}

struct Runner {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let argument = |place: usize| match command.args.get(place) {
            Some(Argument::Positional(value)) => value.as_str(),
            _ => "",
        };
        match command.name.as_str() {
            "page" => {
                let pages = self
                    .runtime
                    .block_on(self.client.pages(argument(1), argument(0).parse()?));
                Ok(pages
                    .iter()
                    .map(|page| page.join("\n"))
                    .collect::<Vec<_>>()
                    .join("\n--\n"))
            }
            "advance" => {
                self.client.clock.advance(Duration::from_secs(argument(0).parse()?));
                Ok(String::new())
            }
            text => Ok(
                match self.runtime.block_on(self.client.run(text, QueryParams::default())) {
                    Ok(answer) => self.told(&answer),
                    Err(error) => format!("Error: {error}"),
                },
            ),
        }
    }
}

impl Runner {
    fn told(&mut self, answer: &Answer) -> String {
        let mut lines: Vec<String> = answer
            .warnings
            .iter()
            .map(|warning| format!("Warning: {warning}"))
            .collect();
        match &answer.kind {
            AnswerKind::Void => {}
            AnswerKind::Rows(rows) => {
                let columns = rows.metadata.columns.iter();
                let columns: Vec<String> = columns
                    .map(|column| format!("{} {}", column.name, column.ty.cql_name()))
                    .collect();
                lines.push(format!("[{}]", columns.join(", ")));
                lines.extend(printed(answer));
            }
            AnswerKind::SetKeyspace(keyspace) => {
                self.client.session.keyspace = Some(keyspace.as_str().into());
            }
            AnswerKind::SchemaChange(change) => {
                let kind = match change.kind {
                    ChangeKind::Created => "created",
                    ChangeKind::Updated => "updated",
                    ChangeKind::Dropped => "dropped",
                };
                let target = match change.target {
                    ChangeTarget::Keyspace => "keyspace",
                    ChangeTarget::Table => "table",
                    ChangeTarget::Type => "type",
                    ChangeTarget::Function => "function",
                    ChangeTarget::Aggregate => "aggregate",
                };
                lines.push(format!("{kind} {target} {}.{}", change.keyspace, change.name));
            }
        }
        lines.join("\n")
    }
}
