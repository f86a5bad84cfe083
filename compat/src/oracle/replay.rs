//! Runs a script and notes the answers.

use super::script::{How, Script, Step};
use crate::raw::connection::{Login, prepared_of};
use crate::raw::request::{self, InBatch, Params, Prepared};
use crate::raw::{Connection, answer, opcode};
use crate::{Outcome, clock, raw};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::Duration;

/// Most pages of one statement; more means that paging goes round in circles.
const PAGES_MAX: usize = 10_000;

/// How long no event must come before a step is taken to have caused no more.
const EVENTS_QUIET: Duration = Duration::from_millis(300);

/// Longest wait until an index or a view is built.
const BUILD_WAIT_MAX: Duration = Duration::from_secs(20);

/// The pause between two questions whether it is.
const BUILD_PAUSE: Duration = Duration::from_millis(20);

/// The connections of a run, one for each name and version, made when first needed.
struct Connections<'a> {
    address: &'a str,
    keyspace: String,
    open: Vec<(String, Connection)>,
    /// What was prepared, by the name it is kept under.
    kept: HashMap<String, Prepared>,
}

impl Connections<'_> {
    fn get(&mut self, name: &str, version: u8) -> Outcome<&mut Connection> {
        let known = |(known, c): &(String, Connection)| known == name && c.version() == version;
        let at = match self.open.iter().position(known) {
            Some(at) => at,
            None => {
                let mut connection = Connection::login(self.address, version, Some(&Login::superuser()))?;
                connection.must(&format!("USE {}", self.keyspace))?;
                self.open.push((name.to_owned(), connection));
                self.open.len() - 1
            }
        };
        let open = self.open.get_mut(at).map(|(_, connection)| connection);
        open.ok_or(crate::Error::Malformed("a connection that is not there"))
    }

    fn ask(&mut self, step: &Step, state: &mut Option<Vec<u8>>) -> Outcome<Value> {
        if let Some(name) = &step.kept {
            let kept = self.kept.get(name).cloned();
            let kept = kept.ok_or_else(|| crate::Error::failed(format!("nothing is kept as `{name}`")))?;
            return self.get(&step.connection, step.version)?.execute(&kept, &params(step));
        }
        let told = ask_from(self.get(&step.connection, step.version)?, step, state)?;
        if let Some(name) = &step.keep_as {
            self.kept.insert(name.clone(), prepared_of(&told));
        }
        Ok(told)
    }
}

/// A connection that has registered for schema events.
struct Listener(Connection);

impl Listener {
    fn open(address: &str) -> Outcome<Self> {
        let mut connection = Connection::login(address, 4, Some(&Login::superuser()))?;
        connection.ask(opcode::REGISTER, &request::register(&["SCHEMA_CHANGE"]))?;
        connection.stream().set_read_timeout(Some(EVENTS_QUIET))?;
        Ok(Self(connection))
    }

    /// The events of this keyspace that have come, up to the first pause.
    fn events(&mut self, keyspace: &str) -> Outcome<Vec<Value>> {
        let mut events = Vec::new();
        loop {
            let envelope = match self.0.receive() {
                Ok(envelope) => envelope,
                Err(crate::Error::Io { source, .. })
                    if matches!(source.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(events);
                }
                Err(error) => return Err(error),
            };
            let event = answer::plain(&envelope)?;
            let names = event.get("names").and_then(Value::as_array);
            if names.and_then(|names| names.first()).and_then(Value::as_str) == Some(keyspace) {
                events.push(event);
            }
        }
    }
}

/// Runs a script on the server at `address`; an answer for each step that is compared.
///
/// # Errors
/// When the server is not there, or the script's keyspace cannot be made. A connection that breaks within a step is
/// that step's answer, `{"broken": …}`.
pub fn run(address: &str, script: &Script) -> Outcome<Vec<Value>> {
    let keyspace = format!("oracle_{}", script.name);
    let mut first = Connection::login(address, 4, Some(&Login::superuser()))?;
    first.must(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
    first.must(&format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ))?;
    let mut connections = Connections {
        address,
        keyspace: keyspace.clone(),
        open: Vec::new(),
        kept: HashMap::new(),
    };
    let mut listener = match script.steps.iter().any(|step| step.events) {
        true => Some(Listener::open(address)?),
        false => None,
    };
    let mut answers = Vec::new();
    let mut state = None;
    for step in &script.steps {
        let asked = connections.ask(step, &mut state);
        let mut told = asked.unwrap_or_else(|error| {
            connections.open.clear();
            json!({"broken": error.to_string()})
        });
        // Rows that were there before are in a view once it is built. Cassandra forgets one now and then: then its answers tell.
        if let Some(view) = view_name(&step.text).filter(|view| is_plain(view))
            && told.get("kind").and_then(Value::as_str) == Some("schema_change")
        {
            is_built(&mut first, &built_view(&keyspace, view))?;
        }
        if let Some(listener) = &mut listener {
            let events = listener.events(&keyspace)?;
            if let Some(map) = told.as_object_mut().filter(|_| step.events) {
                map.insert("events".to_owned(), events.into());
            }
        }
        if step.setup {
            continue;
        }
        normalise(&mut told, step);
        let mut line = Map::new();
        line.insert("statement".to_owned(), label(step).into());
        if let Value::Object(mut told) = told {
            line.append(&mut told);
        }
        answers.push(line.into());
    }
    first.must(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
    Ok(answers)
}

/// The name of the view that a statement makes.
pub(crate) fn view_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("CREATE MATERIALIZED VIEW ")?;
    rest.split_whitespace().next()
}

/// Whether a word is a name of the script's own keyspace, as it stands in the schema.
fn is_plain(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The statement that has a row once a view is built.
pub(crate) fn built_view(keyspace: &str, view: &str) -> String {
    format!("SELECT view_name FROM system.built_views WHERE keyspace_name = '{keyspace}' AND view_name = '{view}'")
}

/// Waits until this read has a row: an index or a view is built. False if it has none in time.
///
/// # Errors
/// When the connection breaks.
pub(crate) fn is_built(connection: &mut Connection, text: &str) -> Outcome<bool> {
    let start = clock::now();
    while start.elapsed() < BUILD_WAIT_MAX {
        let told = connection.query(text, &Params::default())?;
        if told
            .get("rows")
            .and_then(Value::as_array)
            .is_some_and(|rows| !rows.is_empty())
        {
            return Ok(true);
        }
        std::thread::sleep(BUILD_PAUSE);
    }
    Ok(false)
}

/// What names a step in the answers and in `known.toml`.
pub fn label(step: &Step) -> String {
    match &step.batch {
        Some((kind, statements)) => {
            let texts = statements.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>();
            format!("BATCH {kind}: {}", texts.join("; "))
        }
        None => step.text.clone(),
    }
}

fn params(step: &Step) -> Params {
    Params {
        consistency: step.consistency,
        values: step.values.clone(),
        names: step.names.clone(),
        page_size: step.page,
        skip_metadata: step.skip_metadata,
        serial: step.serial,
        timestamp: step.timestamp,
        keyspace: step.keyspace.clone(),
        now: step.now,
        ..Params::default()
    }
}

/// Asks one step and reads all its pages.
///
/// # Errors
/// When the connection breaks; a refusal is an answer.
pub(crate) fn ask(connection: &mut Connection, step: &Step) -> Outcome<Value> {
    ask_from(connection, step, &mut None)
}

/// As [`ask`], with the paging state that a step has kept.
fn ask_from(connection: &mut Connection, step: &Step, kept: &mut Option<Vec<u8>>) -> Outcome<Value> {
    let version = connection.version();
    let mut params = params(step);
    if step.resumes {
        params.paging_state.clone_from(kept);
    }
    if let Some((kind, statements)) = &step.batch {
        let mut told = Vec::with_capacity(statements.len());
        for (text, values) in statements {
            told.push(match values {
                None => InBatch::Text(text.clone(), Vec::new()),
                Some(values) => InBatch::Prepared(connection.prepare(text)?.0, values.clone()),
            });
        }
        let body = request::batch(version, *kind, &told, &params);
        return answer::plain(&connection.ask(opcode::BATCH, &body)?);
    }
    let prepared = match step.how {
        How::Query => None,
        How::Prepare | How::Execute => {
            let body = request::prepare(version, &step.text, step.keyspace.as_deref());
            let told = answer::plain(&connection.ask(opcode::PREPARE, &body)?)?;
            if step.how == How::Prepare || told.get("code").is_some() {
                return Ok(told);
            }
            // An EXECUTE names no keyspace: the PREPARE has.
            params.keyspace = None;
            Some(prepared_of(&told))
        }
    };
    let mut told = once(connection, step, prepared.as_ref(), &params)?;
    if step.keeps_state {
        *kept = state_of(&told);
    } else if step.page.is_some() && told.get("rows").is_some() {
        read_pages(connection, step, prepared.as_ref(), params, &mut told)?;
    }
    Ok(told)
}

fn once(connection: &mut Connection, step: &Step, prepared: Option<&Prepared>, params: &Params) -> Outcome<Value> {
    match prepared {
        None => connection.query(&step.text, params),
        Some(prepared) => connection.execute(prepared, params),
    }
}

fn state_of(told: &Value) -> Option<Vec<u8>> {
    told.get("paging").and_then(Value::as_str).and_then(raw::unhex)
}

/// Reads the other pages; `rows` becomes all rows and `pages` tells how many came in each.
fn read_pages(
    connection: &mut Connection,
    step: &Step,
    prepared: Option<&Prepared>,
    mut params: Params,
    told: &mut Value,
) -> Outcome<()> {
    let rows_of = |value: &Value| value.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut rows = rows_of(told);
    let mut pages = vec![rows.len()];
    let mut state = state_of(told);
    while let Some(next) = state {
        if pages.len() > PAGES_MAX {
            return Err(crate::Error::Malformed("paging that does not end"));
        }
        params.paging_state = Some(next);
        let page = once(connection, step, prepared, &params)?;
        if page.get("code").is_some() {
            *told = page;
            return Ok(());
        }
        let more = rows_of(&page);
        pages.push(more.len());
        rows.extend(more);
        state = state_of(&page);
    }
    if let Some(map) = told.as_object_mut() {
        map.insert("rows".to_owned(), rows.into());
        map.insert("pages".to_owned(), pages.into());
    }
    Ok(())
}

/// Whether a warning is left out on both sides: Cassandra's of USE comes once a while and holds the id; that of options without effect is
/// ours alone.
pub(crate) fn is_known(warning: &Value) -> bool {
    let text = warning.as_str().unwrap_or_default();
    text.starts_with("`USE <keyspace>` with prepared statements") || text.starts_with("Stored without effect: ")
}

/// Leaves out what changes from run to run.
pub(crate) fn normalise(told: &mut Value, step: &Step) {
    let Some(map) = told.as_object_mut() else { return };
    for key in ["id", "metadata_id", "new_metadata_id", "tracing"] {
        map.remove(key);
    }
    if map.contains_key("paging") {
        map.insert("paging".to_owned(), true.into());
    }
    if let Some(warnings) = map.get_mut("warnings").and_then(Value::as_array_mut) {
        warnings.retain(|warning| !is_known(warning));
        if warnings.is_empty() {
            map.remove("warnings");
        }
    }
    // `broken`: a statement of a batch could not be prepared.
    for told in ["message", "broken"] {
        if let Some(Value::String(message)) = map.get_mut(told) {
            *message = super::signatures::sorted(message);
        }
    }
    if step.code_only {
        map.remove("message");
    }
    let masked: Vec<usize> = map
        .get("columns")
        .and_then(Value::as_array)
        .map(|columns| {
            let is_masked = |c: &Value| {
                c.get("name")
                    .and_then(Value::as_str)
                    .is_some_and(|n| step.mask.iter().any(|m| m == n))
            };
            columns
                .iter()
                .enumerate()
                .filter(|(_, c)| is_masked(c))
                .map(|(i, _)| i)
                .collect()
        })
        .unwrap_or_default();
    for row in map.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for at in &masked {
            if let Some(cell) = row.get_mut(*at).filter(|cell| !cell.is_null()) {
                *cell = "*".into();
            }
        }
    }
}
