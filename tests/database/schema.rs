//! The schema room against what Apache Cassandra 5.0.9 answered: DDL, its errors, DESCRIBE, the system tables; and against itself:
//! records, versions.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which fail by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use grammar::ast::Statement;
use helenus_engine::engine::Wanted;
use helenus_engine::views::live::Live;
use helenus_engine::views::{self, Sources};
use helenus_schema::command::{ChangeKind, ChangeTarget, SchemaContext, SchemaOutcome};
use helenus_schema::planner::ddl::{self, Code, DdlError};
use helenus_schema::planner::{self, Plan};
use helenus_schema::schema::describe::{DescribeError, Description, describe};
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::{ColumnKind, Schema, record, system};
use helenus_types::types::{CqlType, Native};
use serde_json::{Value, json};
use uuid::Uuid;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn golden(name: &str) -> Vec<Value> {
    let path = root().join("compat/golden").join(name);
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).unwrap()
}

/// A server without data: a schema, a session, and answers in the shape of the golden files.
struct Session {
    schema: Schema,
    keyspace: Option<String>,
    /// Uuids of tables by name, where the recording tells them.
    ids: BTreeMap<String, Uuid>,
    node: NodeInfo,
    storage_id: u32,
    now_micros: i64,
}

impl Session {
    fn new() -> Self {
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        let mut node = NodeInfo::single(Uuid::from_u128(7), address, 19042);
        node.port = 19043;
        node.tokens = [
            -1729382256910270464,
            -2882303761517117440,
            -4035225266123964416,
            -5188146770730811392,
            -576460752303423488,
            -6341068275337658368,
            -7493989779944505344,
            -8646911284551352320,
            1729382256910270464,
            2882303761517117440,
            4035225266123964416,
            5188146770730811392,
            576460752303423488,
            6341068275337658368,
            7493989779944505344,
            8646911284551352320,
        ]
        .to_vec();
        Self {
            schema: system::base(),
            keyspace: None,
            ids: BTreeMap::new(),
            node,
            storage_id: system::USER_STORAGE_ID_MIN,
            now_micros: 1_700_000_000_000_000,
        }
    }

    fn apply(&mut self, statement: &Statement) -> Result<SchemaOutcome, DdlError> {
        self.storage_id += 1;
        self.now_micros += 1000;
        let name = match statement {
            Statement::CreateTable(create) => create.table.name.as_str(),
            Statement::CreateView(create) => create.name.name.as_str(),
            _ => "",
        };
        let context = SchemaContext {
            now_micros: self.now_micros,
            new_id: self
                .ids
                .get(name)
                .copied()
                .unwrap_or_else(|| Uuid::from_u128(self.storage_id.into())),
            storage_id: self.storage_id,
            data_centers: vec![("datacenter1".to_owned(), 1)],
            profile: helenus_schema::profile::Profile::Cassandra,
            // The other recordings are of a server that masks nothing.
            masks_columns: self
                .keyspace
                .as_deref()
                .is_some_and(|name| name.starts_with("oracle_masks") || name == "oracle_ddl_two_faults"),
        };
        let outcome = ddl::apply(statement, self.keyspace.as_deref(), &self.schema, &context)?;
        let changes = record::changes(&self.schema, &outcome.schema);
        assert_eq!(changes.is_empty(), outcome.change.is_none(), "{statement:?}");
        assert_eq!(outcome.change.is_none(), self.schema.version == outcome.schema.version);
        self.schema = outcome.schema.clone();
        Ok(outcome)
    }

    /// `None`: not a statement for this test.
    fn ask(&mut self, text: &str) -> Option<Value> {
        let statement = match grammar::parse(text) {
            Ok(statement) => statement,
            Err(error) => return Some(json!({"code": "0x2000", "message": error.to_string()})),
        };
        match &statement {
            Statement::Use(name) => {
                self.keyspace = Some(name.as_str().to_owned());
                Some(json!({"kind": "set_keyspace", "keyspace": name.as_str()}))
            }
            Statement::Describe(target) => {
                let answer = describe(target, self.keyspace.as_deref(), &self.schema, &self.node);
                Some(describe_answer(answer))
            }
            statement if self.is_ddl(statement) => {
                let answer = self.apply(statement);
                Some(ddl_answer(answer))
            }
            _ => None,
        }
    }

    fn is_ddl(&self, statement: &Statement) -> bool {
        let planned = planner::plan(statement, self.keyspace.as_deref(), &self.schema);
        planned.is_ok_and(|planned| matches!(planned.plan, Plan::Ddl(_)))
    }

    fn must(&mut self, text: &str) {
        if let Some(answer) = self.ask(text) {
            assert!(answer.get("code").is_none(), "{text}: {answer}");
        }
    }

    fn golden() -> Self {
        let mut session = Self::new();
        for entry in golden("describe.json") {
            if entry["statement"] == "DESC KEYSPACE golden WITH INTERNALS" {
                for row in entry["rows"].as_array().unwrap() {
                    if let Some((_, id)) = row[3].as_str().unwrap().split_once("ID = ") {
                        let name = row[2].as_str().unwrap().trim_matches('"').to_owned();
                        session.ids.insert(name, id[..36].parse().unwrap());
                    }
                }
            }
        }
        let setup: Vec<String> =
            serde_json::from_str(&std::fs::read_to_string(root().join("compat/golden/setup.json")).unwrap()).unwrap();
        for statement in setup {
            session.must(&statement);
        }
        session
    }
}

fn ddl_answer(answer: Result<SchemaOutcome, DdlError>) -> Value {
    let outcome = match answer {
        Ok(outcome) => outcome,
        Err(error) => {
            let code = match error.code() {
                Code::Syntax => "0x2000",
                Code::Unauthorized => "0x2100",
                Code::Invalid => "0x2200",
                Code::Configuration => "0x2300",
                Code::AlreadyExists { .. } => "0x2400",
            };
            let mut answer = json!({"code": code, "message": error.to_string()});
            if let DdlError::AlreadyExists { keyspace, table } = error {
                answer["already"] = json!([keyspace, table]);
            }
            return answer;
        }
    };
    let mut answer = match outcome.change {
        None => json!({"kind": "void"}),
        Some(change) => {
            let kind = match change.kind {
                ChangeKind::Created => "CREATED",
                ChangeKind::Updated => "UPDATED",
                ChangeKind::Dropped => "DROPPED",
            };
            let target = match change.target {
                ChangeTarget::Keyspace => "KEYSPACE",
                ChangeTarget::Table => "TABLE",
                ChangeTarget::Type => "TYPE",
                ChangeTarget::Function => "FUNCTION",
                ChangeTarget::Aggregate => "AGGREGATE",
            };
            let mut names = vec![json!(change.keyspace)];
            if change.target != ChangeTarget::Keyspace {
                names.push(json!(change.name));
            }
            if matches!(change.target, ChangeTarget::Function | ChangeTarget::Aggregate) {
                names.push(json!(change.arguments));
            }
            json!({"kind": "schema_change", "change": kind, "target": target, "names": names})
        }
    };
    if !outcome.warnings.is_empty() {
        answer["warnings"] = json!(outcome.warnings);
    }
    answer
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn describe_answer(answer: Result<Description, DescribeError>) -> Value {
    let description = match answer {
        Ok(description) => description,
        Err(error) => return json!({"code": "0x2200", "message": error.to_string()}),
    };
    let text = CqlType::Native(Native::Text);
    let columns: Vec<Value> = description
        .columns
        .iter()
        .map(|(name, ty)| {
            let ty = if *ty == text {
                "varchar"
            } else {
                "map<varchar, list<varchar>>"
            };
            json!({"keyspace": "system", "table": "describe", "name": name, "type": ty})
        })
        .collect();
    let rows: Vec<Value> = description
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&description.columns)
                .map(|(cell, (_, ty))| {
                    let cell = cell.as_ref().unwrap();
                    if *ty == text {
                        json!(std::str::from_utf8(cell).unwrap())
                    } else {
                        json!(hex(cell))
                    }
                })
                .collect()
        })
        .collect();
    json!({"kind": "rows", "flags": 1, "columns": columns, "rows": rows})
}

/// The parts of a recorded answer that this test answers for.
fn expected(entry: &Value) -> Value {
    let mut expected = entry.clone();
    let object = expected.as_object_mut().unwrap();
    for other in ["statement", "error", "events", "keyspace", "more", "function"] {
        if other != "keyspace" || entry.get("kind").is_none_or(|kind| kind != "set_keyspace") {
            object.remove(other);
        }
    }
    expected
}

fn report(what: &str, differences: &[String], known: usize) {
    assert!(
        differences.len() == known,
        "{what}: {} differences, {known} known\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}

#[test]
fn describe_is_cassandras_byte_for_byte() {
    let mut session = Session::golden();
    let mut differences = Vec::new();
    for entry in golden("describe.json") {
        let statement = entry["statement"].as_str().unwrap();
        let (wanted, got) = (expected(&entry), session.ask(statement).unwrap());
        if wanted != got {
            let rows = |answer: &Value| -> Vec<Value> { answer["rows"].as_array().cloned().unwrap_or_default() };
            let first = rows(&wanted).into_iter().zip(rows(&got)).find(|(a, b)| a != b);
            let shown = match first {
                Some((a, b)) => format!("{a:#}\n≠\n{b:#}"),
                None => format!("{}\n≠\n{}", cut(&wanted), cut(&got)),
            };
            differences.push(format!("{statement}:\n{shown}"));
        }
    }
    report("DESCRIBE", &differences, 0);
}

fn cut(value: &Value) -> String {
    value.to_string().chars().take(3000).collect()
}

/// Statements whose answer is not ours to give: what a Java compiler says, and names of Java objects.
const NOT_OURS: &[&str] = &["AS 'not java'", "SELECT count(*) FROM simple WHERE v IS NOT NULL"];

/// Differs: Cassandra refuses an index on the whole partition key; here, as on Cosmos, there may be one. Such a statement is left
/// out, so that what follows it is asked of the same schema.
fn indexes_the_whole_key(recorded: &Value) -> bool {
    let message = recorded["message"].as_str().unwrap_or_default();
    message.starts_with("Cannot create secondary index on the only partition key column")
}

#[test]
fn errors_of_ddl_are_cassandras() {
    let mut session = Session::golden();
    let mut differences = Vec::new();
    let mut count = 0;
    for entry in golden("errors.json") {
        let statement = entry["statement"].as_str().unwrap();
        if entry.get("values").is_some() || NOT_OURS.iter().any(|part| statement.contains(part)) {
            continue;
        }
        session.keyspace = if entry.get("keyspace").is_some() {
            None
        } else {
            Some("golden".to_owned())
        };
        if grammar::parse(statement).is_err() || statement.starts_with("USE") {
            continue;
        }
        if indexes_the_whole_key(&entry) {
            continue;
        }
        let Some(got) = session.ask(statement) else { continue };
        count += 1;
        let wanted = expected(&entry);
        if wanted != got {
            differences.push(format!("{statement}\n  wanted {wanted}\n  got    {got}"));
        }
    }
    assert!(count > 170, "{count}");
    // CREATE KEYSPACE … replication = {}: Cassandra answers with a null pointer exception.
    report("errors", &differences, 1);
}

#[test]
fn results_of_ddl_are_cassandras() {
    let mut session = Session::golden();
    let mut differences = Vec::new();
    for entry in golden("results.json") {
        let statement = entry["statement"].as_str().unwrap();
        let Some(got) = session.ask(statement) else { continue };
        let wanted = expected(&entry);
        if wanted != got {
            differences.push(format!("{statement}\n  wanted {wanted}\n  got    {got}"));
        }
    }
    report("results", &differences, 0);
}

/// The statements of functions, or of DDL with two faults, that a script marks as answered otherwise on purpose (`@differs`), if they are of one
/// line.
fn decided(answers: &Path) -> BTreeSet<String> {
    let script = std::fs::read_to_string(answers.with_extension("cql")).unwrap_or_default();
    let is_judged = answers.file_stem().is_some_and(|stem| {
        let stem = stem.to_string_lossy();
        ["user_functions", "user_aggregates", "ddl_two_faults"]
            .iter()
            .any(|start| stem.starts_with(start))
    });
    let mut statements = BTreeSet::new();
    let mut is_decided = false;
    for line in script.lines().filter(|_| is_judged) {
        if line.starts_with('@') {
            is_decided |= line.starts_with("@differs");
        } else if std::mem::take(&mut is_decided) {
            statements.insert(line.trim_end_matches(';').to_owned());
        }
    }
    statements
}

/// Statements and answers recorded from Cassandra: those of the replay scripts, and our own about options.
#[test]
#[expect(
    clippy::too_many_lines,
    reason = "what of a recording is left out is said where it is compared"
)]
fn recorded_ddl_is_cassandras() {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["compat/oracle/scripts", "tests/fixtures/ddl"] {
        files.extend(
            std::fs::read_dir(root().join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().path()),
        );
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "answers"));
    files.sort();
    let mut differences = Vec::new();
    let mut count = 0;
    for file in files {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        let keyspace = format!("oracle_{stem}");
        let mut session = Session::new();
        session.must(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        session.keyspace = Some(keyspace);
        let decided = decided(&file);
        for line in std::fs::read_to_string(&file)
            .unwrap()
            .lines()
            .filter(|line| line.starts_with('{'))
        {
            let entry: Value = serde_json::from_str(line).unwrap();
            let Some(statement) = entry["statement"].as_str() else {
                continue;
            };
            let other = entry.get("values").is_some() || entry["kind"] == "prepared";
            if statement.starts_with("USE") {
                if entry["kind"] == "set_keyspace" {
                    session.keyspace = entry["keyspace"].as_str().map(str::to_owned);
                }
                continue;
            }
            if grammar::parse(statement).is_err() || other || indexes_the_whole_key(&entry) {
                continue;
            }
            // Cassandra refuses it and this server takes it: what follows was recorded without its effect.
            if decided.contains(statement) && entry.get("code").is_some() {
                continue;
            }
            let Some(mut got) = session.ask(statement) else {
                continue;
            };
            let mut wanted = expected(&entry);
            if let Some(rows) = got.get_mut("rows") {
                // These recordings keep text as it is on the wire; ours of DESCRIBE keep it readable.
                if !entry["readable"].as_bool().unwrap_or_default() {
                    for cell in rows
                        .as_array_mut()
                        .unwrap()
                        .iter_mut()
                        .flat_map(|row| row.as_array_mut().unwrap())
                    {
                        *cell = json!(hex(cell.as_str().unwrap().as_bytes()));
                    }
                }
            }
            wanted.as_object_mut().unwrap().remove("readable");
            without_ours(&mut got);
            count += 1;
            if entry.get("code").is_some_and(|code| code == "0x0000") && got.get("code").is_some()
                || decided.contains(statement)
            {
                continue;
            }
            // `@code`: the text is not recorded.
            if wanted.get("code").is_some() && wanted.get("message").is_none() {
                got.as_object_mut().unwrap().remove("message");
            }
            if wanted != got && without_ids(&wanted) != without_ids(&got) {
                let unhexed = |value: &Value| cut(&without_ids(value));
                differences.push(format!(
                    "{stem}: {statement}\n  wanted {}\n  got    {}",
                    unhexed(&wanted),
                    unhexed(&got)
                ));
            }
        }
    }
    assert!(count > 100, "{count}");
    // Several indexes that hinder a DROP are listed in an order of the moment.
    report("recorded", &differences, 1);
}

/// Cassandra does not say that an option is stored without effect.
fn without_ours(answer: &mut Value) {
    let Some(warnings) = answer.get_mut("warnings").and_then(Value::as_array_mut) else {
        return;
    };
    warnings.retain(|warning| !warning.as_str().unwrap().starts_with("Stored without effect: "));
    if warnings.is_empty() {
        answer.as_object_mut().unwrap().remove("warnings");
    }
}

/// Uuids of tables and times of drops differ from run to run.
fn without_ids(answer: &Value) -> Value {
    match answer {
        Value::String(text) => json!(text_without_ids(text)),
        Value::Array(values) => values.iter().map(without_ids).collect(),
        Value::Object(values) => values
            .iter()
            .map(|(key, value)| (key.clone(), without_ids(value)))
            .collect(),
        other => other.clone(),
    }
}

fn text_without_ids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let id = rest.find("ID = ").map(|at| (at + 5, 36));
        let time = rest.find("USING TIMESTAMP ").map(|at| (at + 16, 16));
        let Some((at, length)) = id.into_iter().chain(time).min() else {
            break;
        };
        out.push_str(&rest[..at]);
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out + rest
}

#[test]
fn system_tables_are_defined_as_cassandras() {
    let schema = system::base();
    let mut lines = Vec::new();
    let is_cassandras = |name: &str| name != system::COSMOS;
    for keyspace in schema
        .keyspaces
        .values()
        .filter(|keyspace| is_cassandras(&keyspace.name))
    {
        for table in keyspace.tables.values() {
            for column in &table.columns {
                let (kind, position, order) = match column.kind {
                    ColumnKind::PartitionKey => ("partition_key", column.position.to_string(), "none"),
                    ColumnKind::Clustering => (
                        "clustering",
                        column.position.to_string(),
                        if column.descending { "desc" } else { "asc" },
                    ),
                    ColumnKind::Static => ("static", "-1".to_owned(), "none"),
                    ColumnKind::Regular => ("regular", "-1".to_owned(), "none"),
                };
                let ty = column.ty.cql_name();
                let ty = if ty.contains(',') { format!("\"{ty}\"") } else { ty };
                lines.push(format!(
                    "{},{},{},{kind},{position},{order},{ty}",
                    keyspace.name, table.name, column.name
                ));
            }
        }
    }
    let wanted = std::fs::read_to_string(root().join("compat/golden/schema.csv")).unwrap();
    let wanted: Vec<&str> = wanted.lines().skip(1).collect();
    assert_eq!(lines, wanted);
}

fn rows(session: &Session, keyspace: &str, table: &str, key: Option<&[Bytes]>) -> Vec<BTreeMap<String, Option<Bytes>>> {
    let live = Live::default();
    let token = |bytes: &[u8]| helenus_types::token::Token::of(bytes).value();
    let sources = Sources::of_schema(&session.schema, &session.node, &live, token);
    let definition = session.schema.table(keyspace, table).unwrap();
    let rows = views::rows(
        definition,
        sources,
        Wanted {
            partition_key: key,
            first_clustering: None,
        },
    )
    .unwrap();
    rows.into_iter()
        .map(|row| {
            assert_eq!(row.len(), definition.columns.len());
            definition
                .columns
                .iter()
                .map(|column| column.name.clone())
                .zip(row)
                .collect()
        })
        .collect()
}

/// A value of `system_schema.tables` as the golden file has it.
fn shown(ty: &CqlType, bytes: &Bytes) -> Value {
    match ty.unfrozen() {
        CqlType::Native(Native::Double) => json!(f64::from_be_bytes(bytes[..].try_into().unwrap())),
        CqlType::Native(Native::Int) => json!(i32::from_be_bytes(bytes[..].try_into().unwrap())),
        CqlType::Native(Native::Uuid) => json!(Uuid::from_slice(bytes).unwrap().to_string()),
        CqlType::Native(Native::Boolean) => json!(bytes[0] == 1),
        CqlType::Native(_) => json!(std::str::from_utf8(bytes).unwrap()),
        other => serde_json::from_str(&other.to_json(bytes)).unwrap(),
    }
}

#[test]
fn system_tables_have_cassandras_options() {
    let session = Session::new();
    let mut differences = Vec::new();
    let mut count = 0;
    for entry in golden("tables.json") {
        let (keyspace, table) = (
            entry["keyspace_name"].as_str().unwrap(),
            entry["table_name"].as_str().unwrap(),
        );
        let source = if session.schema.keyspace(keyspace).unwrap().is_virtual {
            "system_virtual_schema"
        } else {
            "system_schema"
        };
        let definition = session.schema.table(source, "tables").unwrap();
        let key = [Bytes::copy_from_slice(keyspace.as_bytes())];
        let row = rows(&session, source, "tables", Some(&key))
            .into_iter()
            .find(|row| row["table_name"].as_deref() == Some(table.as_bytes()))
            .unwrap_or_else(|| panic!("{keyspace}.{table}"));
        for (name, wanted) in entry.as_object().unwrap() {
            let Some((_, column)) = definition.column(name) else {
                continue;
            };
            count += 1;
            let got = row[name].as_ref().map_or(Value::Null, |bytes| shown(&column.ty, bytes));
            if got != *wanted {
                differences.push(format!("{keyspace}.{table} {name}: {wanted} ≠ {got}"));
            }
        }
    }
    assert!(count > 1000, "{count}");
    report("tables.json", &differences, 0);
}

#[test]
fn rows_of_system_schema_are_cassandras() {
    let path = root().join("tests/fixtures/ddl/system_schema.json");
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut session = Session::new();
    for statement in recorded["statements"].as_array().unwrap() {
        session.must(statement.as_str().unwrap());
    }
    let keyspace = session.keyspace.clone().unwrap();
    let key = [Bytes::copy_from_slice(keyspace.as_bytes())];
    let mut differences = Vec::new();
    for (table, wanted) in recorded["tables"].as_object().unwrap() {
        let names: Vec<&str> = wanted["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        let got = rows(&session, "system_schema", table, Some(&key));
        let wanted = wanted["rows"].as_array().unwrap();
        if got.len() != wanted.len() {
            differences.push(format!("{table}: {} rows, not {}", got.len(), wanted.len()));
        }
        for (got, wanted) in got.iter().zip(wanted) {
            for (name, wanted) in names.iter().zip(wanted.as_array().unwrap()) {
                let got = json!(got[*name].as_ref().map(|bytes| hex(bytes)));
                // Uuids are of that run.
                if got != *wanted && !matches!(*name, "id" | "base_table_id") {
                    differences.push(format!("{table}.{name}: {wanted} ≠ {got}"));
                }
            }
        }
    }
    let odd = session.schema.table(&keyspace, "odd").unwrap();
    let order: Vec<&str> = odd.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(json!(order), recorded["select_order"]);
    report("system_schema", &differences, 0);
}

#[test]
fn local_has_cassandras_columns() {
    let session = Session::new();
    for entry in golden("local.json") {
        let statement = entry["statement"].as_str().unwrap();
        let table = if statement.contains("system.peers_v2") {
            "peers_v2"
        } else if statement.contains("system.peers") {
            "peers"
        } else if statement.contains("* FROM system.local") {
            "local"
        } else {
            continue;
        };
        let definition = session.schema.table("system", table).unwrap();
        let wanted: Vec<&str> = entry["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        let names: Vec<&str> = definition.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, wanted);
        if table == "local" {
            let row = rows(&session, "system", "local", None).remove(0);
            let recorded = entry["rows"][0].as_array().unwrap();
            // What belongs to that one run, and what we say of ourselves.
            let own = [
                "gossip_generation",
                "host_id",
                "release_version",
                "schema_version",
                "truncated_at",
            ];
            for (name, wanted) in names.iter().zip(recorded).filter(|(name, _)| !own.contains(name)) {
                assert_eq!(json!(row[*name].as_ref().map(|bytes| hex(bytes))), *wanted, "{name}");
            }
        }
    }
}

#[test]
fn a_schema_survives_its_records() {
    let session = Session::golden();
    let base = system::base();
    let records: Vec<(Vec<u8>, Vec<u8>)> = record::changes(&base, &session.schema)
        .into_iter()
        .map(|change| (change.key, change.value.unwrap()))
        .collect();
    let loaded = record::load(records.clone()).unwrap();
    assert_eq!(loaded.version, session.schema.version);
    assert!(record::changes(&session.schema, &loaded).is_empty());
    for text in ["DESCRIBE FULL SCHEMA", "DESCRIBE KEYSPACE golden WITH INTERNALS"] {
        let Statement::Describe(statement) = grammar::parse(text).unwrap() else {
            panic!()
        };
        assert_eq!(
            describe(&statement, Some("golden"), &loaded, &session.node),
            describe(&statement, Some("golden"), &session.schema, &session.node)
        );
    }
    let mut damaged = records.clone();
    damaged[0].1[0] = 9;
    assert!(matches!(
        record::load(damaged),
        Err(record::RecordError::Format { format: 9, .. })
    ));
    let mut damaged = records;
    let end = damaged[0].1.len() / 2;
    damaged[0].1.truncate(end);
    assert!(matches!(
        record::load(damaged),
        Err(record::RecordError::Damaged { .. })
    ));
}

#[test]
fn records_of_the_first_format_are_read() {
    let path = root().join("tests/fixtures/catalog-1.json");
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        let records: Vec<(String, String)> = record::changes(&system::base(), &Session::golden().schema)
            .into_iter()
            .map(|change| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                (text(&change.key), text(&change.value.unwrap()))
            })
            .collect();
        std::fs::write(&path, serde_json::to_string_pretty(&records).unwrap() + "\n").unwrap();
    }
    let records: Vec<(String, String)> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let loaded = record::load(records).unwrap();
    assert_eq!(loaded.version, Session::golden().schema.version);
}

#[test]
fn versions_are_a_function_of_what_is_defined() {
    let mut one = Session::new();
    let mut two = Session::new();
    for session in [&mut one, &mut two] {
        session.ids.insert("t".to_owned(), Uuid::from_u128(1));
        session.ids.insert("u".to_owned(), Uuid::from_u128(2));
        session.must("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    }
    let start = one.schema.version;
    assert_ne!(start, system::base().version);
    one.must("CREATE TABLE k.t (a int PRIMARY KEY)");
    one.must("CREATE TABLE k.u (a int PRIMARY KEY)");
    two.must("CREATE TABLE k.u (a int PRIMARY KEY)");
    two.must("CREATE TABLE k.t (a int PRIMARY KEY)");
    assert_eq!(one.schema.version, two.schema.version);
    let moved = one.schema.with_storage_id("k", "t", 4000).unwrap();
    assert_eq!(moved.version, one.schema.version);
    assert_eq!(record::changes(&one.schema, &moved).len(), 1);
    one.must("DROP TABLE k.t");
    one.must("DROP TABLE k.u");
    assert_eq!(one.schema.version, start);
}

#[test]
fn two_thousand_tables_do_not_slow_down() {
    let mut session = Session::new();
    session.must("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.keyspace = Some("k".to_owned());
    for number in 0..2000 {
        session.must(&format!(
            "CREATE TABLE t{number} (a int PRIMARY KEY, b text, c list<int>)"
        ));
    }
    assert_eq!(session.schema.keyspace("k").unwrap().tables.len(), 2000);
}
