//! Replays the facts of `golden/` on a server: what Cassandra answered to each statement of `golden/statements.py`.
//!
//! The order is that of `golden/dump.py`, since later statements see what earlier ones left. What an issue has not
//! asked for yet, and what is known to differ, stands with its reason in `golden/scope.toml`.
//!
//! Deliberately absent: `describe-cqlsh.json`, which the cqlsh run compares.

mod cells;
mod facts;

use crate::oracle::report::difference;
use crate::raw::{Bound, Connection, Params, unhex};
use crate::{Error, Outcome};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What to replay.
#[derive(Debug, Args)]
pub struct Options {
    /// Server to ask, HOST:PORT.
    #[arg(long = "target")]
    pub address: String,
    /// Least share of equal answers in scope, in percent.
    #[arg(long, default_value_t = 98.0)]
    pub threshold: f64,
    /// Names of files without extension; all when none is given.
    pub only: Vec<String>,
    /// The folder `golden`.
    #[arg(long, default_value_os_t = crate::here("golden"))]
    pub folder: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
struct Scope {
    #[serde(default)]
    out: Vec<Out>,
    #[serde(default)]
    differs: Vec<Differs>,
}

/// A feature that no issue so far has asked for.
#[derive(Debug, Deserialize)]
struct Out {
    words: Vec<String>,
    reason: String,
    /// Files it holds for; all when empty.
    #[serde(default)]
    files: Vec<String>,
}

/// An answer that differs, judged.
#[derive(Debug, Deserialize)]
struct Differs {
    file: String,
    statement: String,
    reason: String,
    /// Not even asked: its effect would be another, and later statements would see it.
    #[serde(default)]
    skip: bool,
}

/// Counts of one file and what to say of it.
#[derive(Debug)]
struct Tally<'a> {
    file: &'static str,
    scope: &'a Scope,
    same: usize,
    known: usize,
    out: usize,
    different: usize,
    details: Vec<String>,
}

impl<'a> Tally<'a> {
    fn new(file: &'static str, scope: &'a Scope) -> Self {
        Self {
            file,
            scope,
            same: 0,
            known: 0,
            out: 0,
            different: 0,
            details: Vec::new(),
        }
    }

    /// Why a statement is out of scope, if it is.
    fn out_of_scope(&self, statement: &str) -> Option<&'a str> {
        if !STATEMENTS.contains(&self.file) {
            return None;
        }
        let upper = statement.to_uppercase();
        self.scope
            .out
            .iter()
            .find(|out| {
                (out.files.is_empty() || out.files.iter().any(|f| f == self.file))
                    && out.words.iter().any(|w| upper.contains(&w.to_uppercase()))
            })
            .map(|out| out.reason.as_str())
    }

    /// Counts a statement that is not to be asked; false when it is.
    fn skips(&mut self, statement: &str) -> bool {
        let found = self
            .scope
            .differs
            .iter()
            .find(|d| d.skip && d.file == self.file && d.statement == statement);
        if let Some(d) = found {
            self.known += 1;
            self.details
                .push(format!("{}: not asked: {statement}: {}", self.file, d.reason));
        }
        found.is_some()
    }

    fn compare(&mut self, statement: &str, expected: &Value, told: &Value) {
        if self.out_of_scope(statement).is_some() {
            self.out += 1;
        } else if expected == told || (text_of(expected, "error") == "ServerError" && told.get("code").is_some()) {
            // A server error is a bug inside Cassandra: a refusal of any kind says the same.
            self.same += 1;
        } else if let Some(d) = self
            .scope
            .differs
            .iter()
            .find(|d| d.file == self.file && d.statement == statement)
        {
            self.known += 1;
            self.details
                .push(format!("{}: known: {statement}: {}", self.file, d.reason));
        } else {
            self.different += 1;
            self.details.push(format!("{}: {statement}", self.file));
            self.details
                .extend(difference(expected, told).into_iter().map(|line| format!("    {line}")));
        }
    }

    /// As [`Tally::compare`]; what broke instead of an answer is a difference too.
    fn compare_outcome(&mut self, statement: &str, expected: &Value, told: Outcome<Value>) {
        let told = told.unwrap_or_else(|error| json!({"broken": error.to_string()}));
        self.compare(statement, expected, &told);
    }
}

/// Files of statements, to which the words in `scope.toml` apply; the others are facts, all of them in scope.
const STATEMENTS: [&str; 5] = ["setup", "literals", "results", "prepared", "errors"];

type Section = fn(&Options, &mut Tally<'_>) -> Outcome<()>;

const SECTIONS: [(&str, Section); 11] = [
    ("schema", facts::schema),
    ("keyspaces", facts::keyspaces),
    ("tables", facts::tables),
    ("local", facts::local),
    ("supported", facts::supported),
    ("describe", facts::describe),
    ("tokens", facts::tokens),
    ("literals", facts::literals),
    ("results", results),
    ("prepared", prepared),
    ("errors", errors),
];

/// Replays all, prints counts for each file and every difference; true when enough is the same.
///
/// # Errors
/// When a file cannot be read or the server is not there.
pub fn run(options: &Options) -> Outcome<bool> {
    let text = read(&options.folder, "scope.toml")?;
    let scope: Scope = toml::from_str(&text).map_err(|e| Error::Script {
        file: "scope.toml".to_owned(),
        line: 0,
        problem: e.to_string(),
    })?;
    let mut tallies = vec![set_up(options, &scope)?];
    for (file, section) in SECTIONS {
        if !options.only.is_empty() && !options.only.iter().any(|f| f == file) {
            continue;
        }
        if file == "errors" {
            // They were asked of a keyspace just made; what earlier files left would be in the way.
            set_up(options, &scope)?;
        }
        let mut tally = Tally::new(file, &scope);
        if let Err(error) = section(options, &mut tally) {
            tally.different += 1;
            tally.details.push(format!("{file}: broken off: {error}"));
        }
        tallies.push(tally);
    }
    let mut setup = Connection::open(&options.address, 4)?;
    setup.query("DROP KEYSPACE golden", &Params::default())?;
    Ok(print(&tallies, options.threshold))
}

/// Makes the keyspace `golden`; a statement that fails is a difference like any other.
fn set_up<'a>(options: &Options, scope: &'a Scope) -> Outcome<Tally<'a>> {
    let mut connection = Connection::open(&options.address, 4)?;
    connection.must("DROP KEYSPACE IF EXISTS golden")?;
    connection.must("DROP KEYSPACE IF EXISTS golden2")?;
    let mut tally = Tally::new("setup", scope);
    for statement in entries(&options.folder, "setup.json")? {
        let statement = statement.as_str().unwrap_or_default();
        let told = connection.query(statement, &Params::default())?;
        let told = told.get("code").map_or(json!({}), |_| told.clone());
        tally.compare(statement, &json!({}), &told);
    }
    Ok(tally)
}

fn print(tallies: &[Tally<'_>], threshold: f64) -> bool {
    for line in tallies.iter().flat_map(|t| &t.details) {
        println!("{line}");
    }
    let (mut same, mut asked) = (0, 0);
    for tally in tallies {
        println!(
            "{:10} {:5} same {:4} differ as known {:4} different {:4} out of scope",
            tally.file, tally.same, tally.known, tally.different, tally.out
        );
        if tally.file != "setup" {
            same += tally.same;
            asked += tally.same + tally.known + tally.different;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of statements are small")]
    let share = if asked == 0 {
        0.0
    } else {
        same as f64 * 100.0 / asked as f64
    };
    println!("golden: {asked} in scope, {same} same ({share:.2} %)");
    share >= threshold
}

fn read(folder: &Path, name: &str) -> Outcome<String> {
    std::fs::read_to_string(folder.join(name)).map_err(Error::io(format!("golden/{name}")))
}

/// Entries of a JSON file.
fn entries(folder: &Path, name: &str) -> Outcome<Vec<Value>> {
    Ok(serde_json::from_str(&read(folder, name)?)?)
}

/// A connection that uses the keyspace `golden`.
fn connect(options: &Options) -> Outcome<Connection> {
    let mut connection = Connection::open(&options.address, 4)?;
    connection.must("USE golden")?;
    Ok(connection)
}

fn text_of<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An entry without its question, and either side without what changes from run to run.
fn answer_only(entry: &Value) -> Value {
    let mut answer = entry.clone();
    if let Some(map) = answer.as_object_mut() {
        for key in ["statement", "values", "names_of_values", "id"] {
            map.remove(key);
        }
        if let Some(warnings) = map.get_mut("warnings").and_then(Value::as_array_mut) {
            warnings.retain(|warning| !crate::oracle::replay::is_known(warning));
            if warnings.is_empty() {
                map.remove("warnings");
            }
        }
        facts::mask_ids(map);
        if let Some(Value::String(message)) = map.get_mut("message") {
            *message = crate::oracle::signatures::sorted(message);
        }
    }
    answer
}

fn results(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = connect(options)?;
    for entry in entries(&options.folder, "results.json")? {
        let statement = text_of(&entry, "statement");
        let told = connection.query(statement, &Params::default());
        if told.is_err() {
            connection = connect(options)?;
        }
        tally.compare_outcome(statement, &answer_only(&entry), told.map(|t| answer_only(&t)));
    }
    Ok(())
}

fn prepared(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = connect(options)?;
    for entry in entries(&options.folder, "prepared.json")? {
        let statement = text_of(&entry, "statement");
        let body = crate::raw::request::prepare(4, statement, None);
        let told = connection
            .ask(crate::raw::opcode::PREPARE, &body)
            .and_then(|envelope| crate::raw::answer::plain(&envelope));
        if told.is_err() {
            connection = connect(options)?;
        }
        tally.compare_outcome(statement, &answer_only(&entry), told.map(|t| answer_only(&t)));
    }
    Ok(())
}

fn errors(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = connect(options)?;
    let mut bare = Connection::open(&options.address, 4)?;
    let mut codes = 0;
    for entry in entries(&options.folder, "errors.json")? {
        let statement = text_of(&entry, "statement");
        if tally.skips(statement) {
            continue;
        }
        let mut params = Params::default();
        let given = entry.get("values").and_then(Value::as_array);
        for value in given.into_iter().flatten() {
            params.values.push(match value.as_str() {
                None => Bound::Null,
                Some("unset") => Bound::Unset,
                Some(text) => Bound::Bytes(unhex(text).ok_or(Error::Malformed("hexadecimal in errors.json"))?),
            });
        }
        let mut expected = entry.clone();
        let map = expected
            .as_object_mut()
            .ok_or(Error::Malformed("an entry of errors.json"))?;
        map.remove("values");
        map.remove("keyspace");
        if given.is_some() {
            // Before the answer's own `names` (of a schema change) there is no way to confuse them: these fail.
            let names = map.remove("names");
            let names = names.as_ref().and_then(Value::as_array).into_iter().flatten();
            params.names = names.filter_map(|n| n.as_str().map(str::to_owned)).collect();
        }
        let on_bare = entry.get("keyspace").is_some_and(Value::is_null);
        let told = if on_bare {
            bare.query(statement, &params)
        } else {
            connection.query(statement, &params)
        };
        if told.is_err() {
            connection = connect(options)?;
            bare = Connection::open(&options.address, 4)?;
        }
        let expected = answer_only(&expected);
        let told = told.map(|t| answer_only(&t));
        if expected.get("code").is_some() && tally.out_of_scope(statement).is_none() {
            codes += usize::from(told.as_ref().is_ok_and(|t| t.get("code") == expected.get("code")));
        }
        tally.compare_outcome(statement, &expected, told);
    }
    tally
        .details
        .push(format!("errors: {codes} in scope with the same code"));
    Ok(())
}
