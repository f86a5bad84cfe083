//! The planner compared with Cassandra's own responses: the golden facts, and the scripts that ran on the oracle.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use uuid::Uuid;

use super::{Error, Plan, Planned, arrange, ddl, plan};
use crate::command::Value;
use crate::schema::{Schema, system};
use helenus_types::functions::{Context, Timeuuids};
use helenus_types::types::CqlType;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lines(path: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(path).unwrap();
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).unwrap();
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A schema to which DDL statements are applied.
pub(super) struct World {
    pub(super) schema: Schema,
    keyspace: Option<String>,
    next: u32,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            schema: system::base(),
            keyspace: None,
            next: 1000,
        }
    }

    pub(super) fn golden() -> Self {
        let mut world = Self::new();
        for statement in lines(&project().join("compat/golden/setup.json")) {
            let text = statement.as_str().unwrap();
            if text.starts_with("INSERT") || text.starts_with("UPDATE") {
                continue;
            }
            world.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        world
    }

    pub(super) fn run(&mut self, text: &str) -> Result<Option<Planned>, String> {
        let statement = grammar::parse(text).map_err(|error| error.to_string())?;
        let planned = plan(&statement, self.keyspace.as_deref(), &self.schema).map_err(|error| error.to_string())?;
        match &planned.plan {
            Plan::Ddl(statement) => {
                self.next += 1;
                let context = crate::command::SchemaContext {
                    now_micros: 1,
                    new_id: Uuid::from_u128(u128::from(self.next)),
                    storage_id: self.next,
                    data_centers: vec![("datacenter1".to_owned(), 1)],
                    profile: crate::profile::Profile::Cassandra,
                    masks_columns: true,
                };
                let outcome = ddl::apply(statement, self.keyspace.as_deref(), &self.schema, &context)
                    .map_err(|error| error.to_string())?;
                self.schema = outcome.schema;
                Ok(None)
            }
            Plan::Use(keyspace) => {
                self.keyspace = Some(keyspace.clone());
                Ok(None)
            }
            _ => Ok(Some(planned)),
        }
    }
}

fn bind(planned: &Planned, values: &[Value]) -> Result<(), Error> {
    planned.check_values(values.len())?;
    let context = Context::new(1_600_000_000_000_000, Arc::new(Timeuuids::new(1)), 1);
    match &planned.plan {
        Plan::Select(select) => select.bind(values, &context, false).map(|_| ()),
        Plan::Modify(modify) => modify.bind(values, &context).map(|_| ()),
        Plan::Batch(batch) => batch.bind(values, &context).map(|_| ()),
        _ => Ok(()),
    }
}

/// A type in the golden facts' notation of the wire format.
fn wire_type(ty: &CqlType) -> String {
    match ty.unfrozen() {
        CqlType::List(of) => format!("list<{}>", wire_type(of)),
        CqlType::Set(of) => format!("set<{}>", wire_type(of)),
        CqlType::Map(key, of) => format!("map<{}, {}>", wire_type(key), wire_type(of)),
        CqlType::Tuple(of) => format!("tuple<{}>", of.iter().map(wire_type).collect::<Vec<_>>().join(", ")),
        CqlType::User(user) => {
            let fields = user
                .fields
                .iter()
                .map(|(name, ty)| format!("{name} {}", wire_type(ty)))
                .collect::<Vec<_>>();
            format!("udt {}.{}({})", user.keyspace, user.name, fields.join(", "))
        }
        ty @ (CqlType::Vector(..) | CqlType::Custom(_)) => format!("custom '{}'", ty.marshal_name()),
        ty => match ty.cql_name().as_str() {
            "text" => "varchar".to_owned(),
            "duration" => "custom 'org.apache.cassandra.db.marshal.DurationType'".to_owned(),
            name => name.to_owned(),
        },
    }
}

fn columns(of: &Json) -> Vec<String> {
    of.as_array()
        .unwrap()
        .iter()
        .map(|column| {
            format!(
                "{}: {}",
                column["name"].as_str().unwrap(),
                column["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn result_columns(planned: &Planned) -> Vec<String> {
    let result = planned.result.as_ref();
    let columns = result.map(|result| result.columns.as_ref().clone()).unwrap_or_default();
    columns
        .iter()
        .map(|column| format!("{}: {}", column.name, wire_type(&column.ty)))
        .collect()
}

/// Known differences from Cassandra: parts of a statement's text.
///
/// - `LegacyTimeUUIDType` is Cassandra's name of timeuuid in a few of its own functions; drivers call it custom.
const DIFFERENT: &[&str] = &["FROM timeuuid_v", "timeuuidAsBlob(tu)"];

/// Statements of features that this module does not have; their errors are checked elsewhere.
fn out_of_scope(text: &str) -> bool {
    let upper = text.to_uppercase();
    let first = upper.split_whitespace().next().unwrap_or_default().to_owned();
    !matches!(
        first.as_str(),
        "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "BEGIN" | "TRUNCATE" | "USE"
    ) || ["plus(", "total(", "fails(", "ANN OF", "by_v"]
        .iter()
        .chain(DIFFERENT)
        .any(|part| text.contains(part))
}

fn normal(text: &str) -> String {
    // Signatures are in the order of a hash map.
    let Some((head, tail)) = text.split_once("signatures") else {
        return text.to_owned();
    };
    let mut parts: Vec<&str> = tail.split([',', '(', ')', ':']).map(str::trim).collect();
    parts.sort_unstable();
    format!("{head}{parts:?}")
}

#[test]
fn golden_prepared() {
    let mut world = World::golden();
    let mut wrong = Vec::new();
    for fact in lines(&project().join("compat/golden/prepared.json")) {
        let text = fact["statement"].as_str().unwrap();
        if out_of_scope(text) || fact["code"] == "0x2000" {
            continue;
        }
        match world.run(text) {
            Ok(Some(planned)) => {
                let markers: Vec<String> = planned
                    .markers
                    .iter()
                    .map(|marker| {
                        format!(
                            "{}.{} {}: {}",
                            marker.keyspace,
                            marker.table,
                            marker.name,
                            wire_type(&marker.ty)
                        )
                    })
                    .collect();
                let expected: Vec<String> = fact["markers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|marker| {
                        let part = |name: &str| marker[name].as_str().unwrap().to_owned();
                        format!(
                            "{}.{} {}: {}",
                            part("keyspace"),
                            part("table"),
                            part("name"),
                            part("type")
                        )
                    })
                    .collect();
                let indexes: Vec<u64> = fact["partition_key"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|index| index.as_u64().unwrap())
                    .collect();
                let found: Vec<u64> = planned
                    .partition_key_markers
                    .iter()
                    .map(|index| u64::from(*index))
                    .collect();
                if fact["kind"] != "prepared"
                    || markers != expected
                    || found != indexes
                    || result_columns(&planned) != columns(&fact["result"]["columns"])
                {
                    wrong.push(format!(
                        "{text}\n  {markers:?} {found:?} {:?}\n  {fact}",
                        result_columns(&planned)
                    ));
                }
            }
            Ok(None) => {}
            Err(error) if fact["message"].as_str().map(normal) == Some(normal(&error)) => {}
            Err(error) => wrong.push(format!("{text}\n  {error}\n  {}", fact["message"])),
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn golden_errors() {
    let mut world = World::golden();
    let mut wrong = Vec::new();
    let mut later = Vec::new();
    for fact in lines(&project().join("compat/golden/errors.json")) {
        let text = fact["statement"].as_str().unwrap();
        let message = fact["message"].as_str();
        if out_of_scope(text) || fact["code"] == "0x2000" || fact["code"] == "0x0000" {
            continue;
        }
        world.keyspace = Some("golden".to_owned());
        if message.is_some_and(|message| message.starts_with("No keyspace")) {
            world.keyspace = None;
        }
        let values: Vec<Value> = fact["values"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|value| match value.as_str() {
                None => Value::Null,
                Some("unset") => Value::Unset,
                Some(hex) => Value::Bytes(helenus_types::types::unhex(hex).unwrap().into()),
            })
            .collect();
        let outcome = match world.run(text) {
            Ok(Some(planned)) => {
                let names: Option<Vec<&str>> = fact["names"]
                    .as_array()
                    .map(|names| names.iter().map(|name| name.as_str().unwrap()).collect());
                let values = names.map_or_else(|| values.clone(), |names| arrange(&planned.markers, &names, &values));
                bind(&planned, &values).map_err(|error| error.to_string())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match (outcome, message) {
            (Ok(()), None) => {}
            (Err(found), Some(expected)) if normal(&found) == normal(expected) => {}
            (Ok(()), Some(expected)) => later.push(format!("{text}\n  {expected}")),
            (Err(found), expected) => wrong.push(format!(
                "{text} {}\n  {found}\n  {}",
                fact["values"],
                expected.unwrap_or("succeeds")
            )),
        }
    }
    println!("left to the engine or missing, {}:\n{}", later.len(), later.join("\n"));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn golden_results() {
    let mut world = World::golden();
    let mut wrong = Vec::new();
    for fact in lines(&project().join("compat/golden/results.json")) {
        let text = fact["statement"].as_str().unwrap();
        if text.contains("golden2")
            || text.contains("by_v")
            || text.contains("plus(")
            || text.contains("total(")
            || text.contains("ANN OF")
        {
            continue;
        }
        match world.run(text) {
            Ok(Some(planned)) if fact["kind"] == "rows" || fact["kind"] == "void" => {
                if let Plan::Select(_) = planned.plan {
                    let found = result_columns(&planned);
                    if fact["kind"] != "rows" || found != columns(&fact["columns"]) {
                        wrong.push(format!("{text}\n  {found:?}\n  {}", fact["columns"]));
                    }
                }
                if let Err(error) = bind(&planned, &[]) {
                    wrong.push(format!("{text}\n  {error}"));
                }
            }
            Ok(_) => {}
            Err(error) => {
                if fact["message"].as_str().map(normal) != Some(normal(&error)) {
                    wrong.push(format!("{text}\n  {error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Statements of a script after `@differs`.
fn marked_as_different(script: &Path) -> HashSet<String> {
    let mut marked = HashSet::new();
    let (mut is_marked, mut text) = (false, String::new());
    for line in std::fs::read_to_string(script).unwrap().lines() {
        if text.is_empty() && (line.starts_with('@') || line.starts_with("--") || line.trim().is_empty()) {
            is_marked |= line.starts_with("@differs");
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line.trim_end());
        if text.ends_with(';') {
            let statement = std::mem::take(&mut text);
            if std::mem::take(&mut is_marked) {
                marked.insert(statement.trim_end_matches(';').to_owned());
            }
        }
    }
    marked
}

/// Every statement that ran on the oracle. If Cassandra refuses it, the planner refuses it with the same message, or the
/// engine does later. If Cassandra answers it, the plan has the same columns.
#[test]
#[expect(clippy::too_many_lines, reason = "one arm for each line of a recording")]
fn oracle_scripts() {
    let mut wrong = Vec::new();
    let mut later = 0;
    let mut total = 0;
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(project().join("compat/oracle/scripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "answers"))
        .collect();
    scripts.sort();
    for script in scripts {
        let name = script.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut world = World::new();
        let keyspace = format!("oracle_{name}");
        world
            .run(&format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ))
            .unwrap();
        world.keyspace = Some(keyspace);
        let marked = marked_as_different(&script.with_extension("cql"));
        for fact in lines(&script) {
            let Some(text) = fact["statement"].as_str() else {
                continue;
            };
            if marked.contains(text) {
                let _ = world.run(text);
                continue;
            }
            // Some have a keyspace of their own. Of others only the code is recorded, and not when they are refused.
            let is_of_code = fact["error"].is_string() && fact["message"].is_null();
            if is_of_code
                || fact["code"] == "0x2000"
                || fact["code"] == "0x0000"
                || text.contains("FROM keyspaces")
                || DIFFERENT.iter().any(|part| text.contains(part))
            {
                continue;
            }
            total += 1;
            let message = fact["message"].as_str();
            match world.run(text) {
                Ok(Some(planned)) => {
                    if planned.markers.is_empty()
                        && fact["kind"] != "prepared"
                        && let Err(error) = bind(&planned, &[])
                    {
                        let error = error.to_string();
                        if message.map(normal) != Some(normal(&error)) {
                            wrong.push(format!(
                                "{name}: {text}\n  {error}\n  {}",
                                message.unwrap_or("succeeds")
                            ));
                        }
                        continue;
                    }
                    if message.is_some() {
                        later += 1;
                        continue;
                    }
                    if let (Plan::Select(_), "rows") = (&planned.plan, fact["kind"].as_str().unwrap_or_default())
                        && result_columns(&planned) != columns(&fact["columns"])
                    {
                        wrong.push(format!(
                            "{name}: {text}\n  {:?}\n  {:?}",
                            result_columns(&planned),
                            columns(&fact["columns"])
                        ));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    if message.map(normal) != Some(normal(&error)) && !out_of_scope(text) {
                        wrong.push(format!(
                            "{name}: {text}\n  {error}\n  {}",
                            message.unwrap_or("succeeds")
                        ));
                    }
                }
            }
        }
    }
    println!("{total} statements, {later} errors left to the engine or to values");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A name that is longer than a message can carry. Cassandra accepts it and truncates it in messages.
#[test]
fn names_that_no_message_can_carry_are_refused() {
    let mut world = World::new();
    world
        .run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .unwrap();
    world.run("CREATE TABLE ks.t (k int PRIMARY KEY, v int)").unwrap();
    world.run("CREATE TYPE ks.ty (a int)").unwrap();
    let long = "a".repeat(65_536);
    for text in [
        format!("CREATE TYPE ks.{long} (a int)"),
        format!("CREATE TYPE ks.u ({long} int)"),
        format!("ALTER TYPE ks.ty ADD {long} int"),
        format!("ALTER TYPE ks.ty RENAME a TO {long}"),
        format!("CREATE TABLE ks.u (k int PRIMARY KEY, {long} int)"),
        format!("ALTER TABLE ks.t ADD {long} int"),
        format!("ALTER TABLE ks.t RENAME k TO {long}"),
        format!("CREATE INDEX {long} ON ks.t (v)"),
    ] {
        let message = world.run(&text).unwrap_err().to_string();
        assert!(message.contains(" name must not be more than "), "{message}");
    }
}

/// Sorting the columns again for each new column takes half a minute in a debug build; sorting them once, a fraction of
/// a second.
#[test]
fn a_table_of_30_000_columns_is_made_at_once() {
    let columns: String = (0..30_000).map(|column| format!(", c{column} int")).collect();
    let clock = helenus_base::clock::Clock::system();
    let began = clock.monotonic();
    let mut world = World::new();
    world
        .run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .unwrap();
    world
        .run(&format!("CREATE TABLE ks.t (k int PRIMARY KEY{columns})"))
        .unwrap();
    let table = world.schema.keyspaces["ks"].table_or_view("t").unwrap();
    let names: Vec<&str> = table
        .columns
        .iter()
        .take(4)
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!((table.columns.len(), names), (30_001, vec!["k", "c0", "c1", "c10"]));
    let took = clock.monotonic().saturating_sub(began);
    assert!(took.as_secs() < 10, "{took:?}");
}
