//! A running server, and what starts it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{admin, program};

/// The version of the server's record that this crate reads.
pub const API: u64 = 1;

/// Lines of the server's log that are kept.
const LOG_LINES_MAX: usize = 50;

/// Settings of a server: by default a plain Cassandra.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Start {
    program: Option<PathBuf>,
    arguments: Vec<String>,
}

impl Start {
    /// Runs this program; by default [`program::find`] looks for one.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Serves as Azure Cosmos DB for Apache Cassandra does, with TLS and an account.
    #[must_use]
    pub fn cosmos(self) -> Self {
        self.set("profile", "cosmos").set("tls-listen", "127.0.0.1:0")
    }

    /// Makes virtual nodes.
    #[must_use]
    pub fn nodes(self, count: u16) -> Self {
        self.set("nodes", &count.to_string())
    }

    /// Passes a setting on: `set("scale-limits", "1/1000")`.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.arguments.push(format!("--{name}={value}"));
        self
    }

    /// Starts a server on free ports and waits until it answers.
    ///
    /// # Errors
    /// There is no program, or it does not start: the text has its last log lines.
    pub fn start(&self) -> Result<Server, String> {
        let program = program::find(self.program.as_deref())?;
        let mut child = Command::new(&program)
            .args(["serve", "--data", "memory:", "--ready-json", "-", "--exit-with-stdin"])
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", program.display()))?;
        let log = Log::default();
        let reader = child.stderr.take().map(|stderr| {
            let log = log.clone();
            thread::spawn(move || {
                BufReader::new(stderr)
                    .lines()
                    .map_while(Result::ok)
                    .for_each(|line| log.push(line))
            })
        });
        let mut line = String::new();
        let stdout = child.stdout.take();
        let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let mut server = Server {
            child,
            reader,
            log,
            record: Value::Null,
        };
        if !matches!(read, Some(Ok(1..))) {
            server.end();
            return Err(format!("the server does not start:\n{}", server.log()));
        }
        server.record =
            serde_json::from_str(&line).map_err(|error| format!("the server's record {line:?}: {error}"))?;
        match server.record["api"].as_u64() {
            Some(API) => Ok(server),
            _ => Err(format!(
                "the server's record has version {}; this crate reads {API}",
                server.record["api"]
            )),
        }
    }
}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    reader: Option<JoinHandle<()>>,
    log: Log,
    record: Value,
}

impl Server {
    /// HOST:PORT of CQL without TLS.
    #[must_use]
    pub fn address(&self) -> &str {
        self.text("cql").unwrap_or_default()
    }

    /// HOST:PORT of CQL with TLS; `None`: the server has none.
    #[must_use]
    pub fn tls_address(&self) -> Option<&str> {
        self.text("tls")
    }

    /// The account and its key; `None`: clients need no login.
    #[must_use]
    pub fn account(&self) -> Option<(&str, &str)> {
        self.text("account").zip(self.text("key"))
    }

    /// The certificate of TLS as PEM; `None`: the server has none.
    #[must_use]
    pub fn certificate_pem(&self) -> Option<&str> {
        self.text("certificate_pem")
    }

    /// The server's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The last lines of the server's log.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Moves the clock ahead. Returns when everything that became due is done.
    pub fn advance(&self, by: Duration) {
        self.ask("POST", "/api/clock", Some(&json!({ "advance_ms": by.as_millis() })));
    }

    /// Empties the server, tables too.
    pub fn reset(&self) {
        self.ask("POST", "/api/reset", Some(&json!({})));
    }

    /// Empties the server's tables. Prepared statements stay valid.
    pub fn reset_keeping_schema(&self) {
        self.ask("POST", "/api/reset", Some(&json!({ "keep": "schema" })));
    }

    /// Replaces the fault plan by a JSON list: `json!([{ "action": "throttle", "count": 1 }])`. An empty list ends all faults.
    pub fn faults(&self, faults: Value) {
        if faults.as_array().is_some_and(Vec::is_empty) {
            self.ask("DELETE", "/api/faults", None);
        } else {
            self.ask("POST", "/api/faults", Some(&json!({ "seed": 1, "fault": faults })));
        }
    }

    /// The fault plan in force: `["fault"]` lists its faults, each with its keys, `holds`, `matched` and `hit`.
    #[must_use]
    pub fn fault_plan(&self) -> Value {
        self.ask("GET", "/api/faults", None)
    }

    /// How many statements were refused for want of request units.
    #[must_use]
    pub fn throttles(&self) -> u64 {
        self.ask("GET", "/api/status", None)["throttled"]
            .as_u64()
            .unwrap_or_default()
    }

    /// The request units that the tables of a keyspace were charged. Panics for a keyspace without tables: its charge would be 0 for
    /// ever.
    #[must_use]
    #[track_caller]
    pub fn charge(&self, keyspace: &str) -> f64 {
        let answer = self.ask("GET", "/api/tables", None);
        let tables: Vec<&Value> = answer["tables"].as_array().into_iter().flatten().collect();
        let own = tables.iter().filter(|table| table["keyspace"] == keyspace);
        let charges: Vec<f64> = own.filter_map(|table| table["request_units"].as_f64()).collect();
        assert!(
            !charges.is_empty(),
            "there is no table in a keyspace {keyspace}, so nothing is charged to it; the tables are: {}",
            known(&tables)
        );
        charges.iter().sum()
    }

    /// Panics when no statement was refused for want of request units.
    #[track_caller]
    pub fn assert_throttled(&self) {
        assert!(self.throttles() > 0, "the server throttled no statement");
    }

    /// Panics when the tables of a keyspace were charged more request units than this.
    #[track_caller]
    pub fn assert_charge_max(&self, keyspace: &str, max: f64) {
        let charge = self.charge(keyspace);
        assert!(
            charge <= max,
            "the charge is {charge:.2} request units, more than {max:.2}"
        );
    }

    /// Sends a request to the admin port.
    ///
    /// # Errors
    /// The server refuses: the text has the status and the reason.
    pub fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let (address, token) = (
            self.text("admin").unwrap_or_default(),
            self.text("token").unwrap_or_default(),
        );
        admin::ask(address, token, method, path, body)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.try_ask(method, path, body)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.record[name].as_str().filter(|text| !text.is_empty())
    }

    fn end(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last lines that the server wrote.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LOG_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The names of tables.
fn known(tables: &[&Value]) -> String {
    let text = |table: &Value, name: &str| table[name].as_str().unwrap_or_default().to_owned();
    let names = tables.iter().map(|table| format!("{}.{}", text(table, "keyspace"), text(table, "table")));
    names.collect::<Vec<_>>().join(", ")
}
