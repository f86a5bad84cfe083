//! The files of `golden/` that are not simply statement and answer.

use super::cells::readable;
use super::{Options, Tally, connect, entries, read, text_of};
use crate::raw::{Connection, Params, answer, opcode, request, unhex};
use crate::{Error, Outcome};
use serde_json::{Map, Value, json};

/// Types of elements in DESCRIBE that belong to later issues.
const ELEMENTS_OUT: [&str; 4] = ["index", "function", "aggregate", "materialized_view"];

/// Rows as objects with readable cells.
fn rows(connection: &mut Connection, statement: &str) -> Outcome<Vec<Map<String, Value>>> {
    let told = connection.must(statement)?;
    let columns = told
        .get("columns")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let rows = told.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(rows
        .iter()
        .map(|row| {
            let cells = row.as_array().cloned().unwrap_or_default();
            columns
                .iter()
                .zip(cells)
                .map(|(c, cell)| (text_of(c, "name").to_owned(), readable(&cell, text_of(c, "type"))))
                .collect()
        })
        .collect())
}

/// Fields of a CSV line as Python's writer makes them: quotes only where needed, doubled inside.
fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut().map(|f| f.push('"')).unwrap_or_default();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().map(|f| f.push(c)).unwrap_or_default(),
        }
    }
    fields
}

fn csv(options: &Options, name: &str) -> Outcome<Vec<Vec<String>>> {
    Ok(read(&options.folder, name)?.lines().skip(1).map(csv_fields).collect())
}

fn field(row: &Map<String, Value>, name: &str) -> String {
    match row.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(b)) => if *b { "True" } else { "False" }.to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Compares lists by their first fields: what is missing, what differs, what is too much.
fn compare_lists(tally: &mut Tally<'_>, key_fields: usize, expected: &[Vec<String>], told: &[Vec<String>]) {
    let key = |row: &[String]| row.iter().take(key_fields).cloned().collect::<Vec<_>>().join(".");
    for row in expected {
        let name = key(row);
        let found = told.iter().find(|t| key(t) == name);
        tally.compare(
            &name,
            &json!({"fields": row}),
            &found.map_or(json!({"missing": true}), |t| json!({"fields": t})),
        );
    }
    for row in told {
        let name = key(row);
        if !expected.iter().any(|e| key(e) == name) {
            tally.compare(&name, &json!({}), &json!({"too much": row}));
        }
    }
}

/// Whether a keyspace is one of Cassandra's own; `system_cosmos` is ours.
fn is_cassandras(keyspace: &str) -> bool {
    keyspace.starts_with("system") && keyspace != "system_cosmos"
}

/// Every column of every system table.
pub(super) fn schema(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = Connection::open(&options.address, 4)?;
    let names = [
        "keyspace_name",
        "table_name",
        "column_name",
        "kind",
        "position",
        "clustering_order",
        "type",
    ];
    let mut told = Vec::new();
    for source in ["system_schema", "system_virtual_schema"] {
        for row in rows(&mut connection, &format!("SELECT * FROM {source}.columns"))? {
            if is_cassandras(&field(&row, "keyspace_name")) {
                told.push(names.map(|n| field(&row, n)).to_vec());
            }
        }
    }
    compare_lists(tally, 3, &csv(options, "schema.csv")?, &told);
    Ok(())
}

/// Every system keyspace.
pub(super) fn keyspaces(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = Connection::open(&options.address, 4)?;
    let mut told = Vec::new();
    for (source, virtuality) in [("system_schema", "false"), ("system_virtual_schema", "true")] {
        for row in rows(&mut connection, &format!("SELECT * FROM {source}.keyspaces"))? {
            let name = field(&row, "keyspace_name");
            if !is_cassandras(&name) {
                continue;
            }
            let replication = match row.get("replication").and_then(Value::as_object) {
                Some(map) => {
                    let mut pairs = map.iter().map(|(k, v)| format!("\"{k}\": {v}")).collect::<Vec<_>>();
                    pairs.sort();
                    format!("{{{}}}", pairs.join(", "))
                }
                None => String::new(),
            };
            told.push(vec![
                name,
                virtuality.to_owned(),
                field(&row, "durable_writes"),
                replication,
            ]);
        }
    }
    compare_lists(tally, 2, &csv(options, "keyspaces.csv")?, &told);
    Ok(())
}

/// The options of every system table.
pub(super) fn tables(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = Connection::open(&options.address, 4)?;
    let mut told = Vec::new();
    for source in ["system_schema", "system_virtual_schema"] {
        told.extend(rows(&mut connection, &format!("SELECT * FROM {source}.tables"))?);
    }
    for entry in entries(&options.folder, "tables.json")? {
        let (keyspace, table) = (text_of(&entry, "keyspace_name"), text_of(&entry, "table_name"));
        let found = told.iter().find(|t| {
            t.get("keyspace_name").and_then(Value::as_str) == Some(keyspace)
                && t.get("table_name").and_then(Value::as_str) == Some(table)
        });
        // The driver gives empty collections back for null ones, and sorts sets.
        let plain = |v: &Value| {
            let mut v = v.clone();
            for cell in v.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if cell.as_object().is_some_and(Map::is_empty) || cell.as_array().is_some_and(Vec::is_empty) {
                    *cell = Value::Null;
                }
            }
            sorted_keys(&v)
        };
        let found = found.map_or(json!({"missing": true}), |t| plain(&t.clone().into()));
        tally.compare(&format!("{keyspace}.{table}"), &plain(&entry), &found);
    }
    Ok(())
}

/// The same value with the keys of objects in order.
fn sorted_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs = map.iter().map(|(k, v)| (k.clone(), sorted_keys(v))).collect::<Vec<_>>();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            pairs.into_iter().collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// What clients ask for when they connect. Columns always agree; values where they say the same on every machine.
pub(super) fn local(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let stable = [
        "key",
        "bootstrapped",
        "cql_version",
        "data_center",
        "native_protocol_version",
        "partitioner",
        "rack",
        "release_version",
        "keyspace_name",
        "durable_writes",
        "replication",
    ];
    let mut connection = Connection::open(&options.address, 4)?;
    for entry in entries(&options.folder, "local.json")? {
        let statement = text_of(&entry, "statement");
        let shown = |value: &Value| {
            let columns = value
                .get("columns")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let rows = value.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
            let cells = rows.iter().map(|row| {
                let cells = row.as_array().cloned().unwrap_or_default();
                columns
                    .iter()
                    .zip(cells)
                    .map(|(c, cell)| {
                        let name = text_of(c, "name");
                        let told = if stable.contains(&name) {
                            readable(&cell, text_of(c, "type"))
                        } else {
                            json!(if cell.is_null() { "null" } else { "some value" })
                        };
                        (name.to_owned(), told)
                    })
                    .collect::<Map<_, _>>()
            });
            json!({"kind": value.get("kind"), "columns": columns, "rows": cells.collect::<Vec<_>>()})
        };
        tally.compare(
            statement,
            &shown(&entry),
            &shown(&connection.query(statement, &Params::default())?),
        );
    }
    Ok(())
}

/// OPTIONS in each version, and variants of STARTUP.
pub(super) fn supported(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    for entry in entries(&options.folder, "supported.json")? {
        let version = entry
            .get("version")
            .and_then(Value::as_u64)
            .and_then(|v| u8::try_from(v).ok())
            .unwrap_or(4);
        let (name, told) = if let Some(startup) = entry.get("startup").and_then(Value::as_object) {
            let pairs = startup
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str().unwrap_or_default()))
                .collect::<Vec<_>>();
            let mut connection = Connection::bare(&options.address, version)?;
            let told = connection
                .ask(opcode::STARTUP, &request::startup(&pairs))
                .and_then(|e| answer::plain(&e));
            let mut told = told?;
            if let Some(map) = told.as_object_mut() {
                map.remove("body");
            }
            (
                format!("STARTUP {}", entry.get("startup").unwrap_or(&Value::Null)),
                told,
            )
        } else if let Some(query) = entry.get("query before startup").and_then(Value::as_str) {
            let mut connection = Connection::bare(&options.address, version)?;
            (
                format!("before STARTUP: {query}"),
                connection.query(query, &Params::default())?,
            )
        } else {
            (
                format!("OPTIONS in version {version}"),
                probe(&options.address, version)?,
            )
        };
        let mut expected = entry.clone();
        if let Some(map) = expected.as_object_mut() {
            for key in [
                "version",
                "startup",
                "query before startup",
                "answered",
                "flags",
                "closed",
            ] {
                map.remove(key);
            }
            if map.get("code").is_some() {
                map.remove("opcode");
            }
        }
        tally.compare(&name, &expected, &told);
    }
    Ok(())
}

/// OPTIONS with any version byte; what comes back, in whatever shape of header, or `{}` when the server just closes.
fn probe(address: &str, version: u8) -> Outcome<Value> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
    // The header of version 3 for all, as `dump.py` sends it: versions 1 and 2 had a shorter one, and nobody speaks them.
    stream.write_all(&[version, 0, 0, 1, opcode::OPTIONS, 0, 0, 0, 0])?;
    let mut got = Vec::new();
    let mut chunk = [0u8; 4096];
    // A refusal is followed by a close; an answer is whole when its length has come.
    while let Ok(n @ 1..) = stream.read(&mut chunk) {
        got.extend(chunk.iter().take(n));
        if got.len() >= 9 && body_of(&got, version).is_some() {
            break;
        }
    }
    let Some((opcode, body)) = body_of(&got, version) else {
        return Ok(json!({}));
    };
    answer::plain(&crate::raw::Envelope {
        version: 4,
        flags: 0,
        stream: 1,
        opcode,
        body,
    })
}

/// Opcode and body of a whole answer, its header as short as the version has it or as long as in later ones.
fn body_of(got: &[u8], version: u8) -> Option<(u8, Vec<u8>)> {
    let answered = got.first()? & 0x7F;
    let head = if version < 3 && answered < 3 { 8 } else { 9 };
    let len = got.get(head - 4..head)?.try_into().ok().map(u32::from_be_bytes)?;
    let body = got.get(head..head + usize::try_from(len).ok()?)?;
    Some((*got.get(head - 5)?, body.to_vec()))
}

/// The server's own DESCRIBE, without elements of later issues.
pub(super) fn describe(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = connect(options)?;
    for entry in entries(&options.folder, "describe.json")? {
        let statement = text_of(&entry, "statement");
        let mut expected = entry.clone();
        let rows_before = rows_in(&expected);
        in_scope_rows(&mut expected);
        if rows_before > 0 && rows_in(&expected) == 0 {
            tally.out += 1;
            continue;
        }
        let told = connection.query(statement, &Params::default()).map(|mut told| {
            texts(&mut told);
            in_scope_rows(&mut told);
            super::answer_only(&told)
        });
        tally.compare_outcome(statement, &super::answer_only(&expected), told);
    }
    Ok(())
}

fn rows_in(value: &Value) -> usize {
    value.get("rows").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Columns of text made readable, as in `describe.json`.
fn texts(told: &mut Value) {
    let types = told
        .get("columns")
        .and_then(Value::as_array)
        .map(|c| c.iter().map(|c| text_of(c, "type").to_owned()).collect::<Vec<_>>())
        .unwrap_or_default();
    for row in told.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for (cell, cql_type) in row.as_array_mut().into_iter().flatten().zip(&types) {
            if cql_type == "varchar" {
                *cell = readable(cell, cql_type);
            }
        }
    }
}

/// Leaves out rows of later issues, table ids, and which tokens a node owns.
fn in_scope_rows(value: &mut Value) {
    if let Some(rows) = value.get_mut("rows").and_then(Value::as_array_mut) {
        let cell = |row: &Value, at: usize| row.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        rows.retain(|row| !ELEMENTS_OUT.contains(&cell(row, 1).as_str()));
        // Other keyspaces of this server are no fact of Cassandra's.
        rows.retain(|row| {
            cell(row, 0) == "golden" || cell(row, 0).starts_with("system") || cell(row, 1) == "Murmur3Partitioner"
        });
        for cell in rows.iter_mut().filter_map(Value::as_array_mut).flatten() {
            if let Some(text) = cell.as_str().filter(|t| t.contains("ID = ")) {
                *cell = without_ids(text).into();
            }
        }
        for row in rows.iter_mut().filter_map(Value::as_array_mut) {
            // DESCRIBE CLUSTER: the fourth cell is a map of tokens, the first the cluster's name.
            if row.get(1).and_then(Value::as_str) == Some("Murmur3Partitioner") {
                row.truncate(3);
            }
        }
    }
}

fn without_ids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("ID = ") {
        let (head, tail) = rest.split_at(at + 5);
        out.push_str(head);
        out.push('*');
        rest = tail.get(36..).unwrap_or_default();
    }
    out + rest
}

/// Table ids in answers of `system_schema.tables` and `.views`.
pub(super) fn mask_ids(answer: &mut Map<String, Value>) {
    let ids = answer
        .get("columns")
        .and_then(Value::as_array)
        .map(|columns| {
            let is_id = |c: &Value| {
                text_of(c, "keyspace") == "system_schema" && matches!(text_of(c, "name"), "id" | "base_table_id")
            };
            columns
                .iter()
                .enumerate()
                .filter(|(_, c)| is_id(c))
                .map(|(i, _)| i)
                .collect::<Vec<_>>()
        })
        .unwrap_or_default();
    for row in answer
        .get_mut("rows")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        for at in &ids {
            if let Some(cell) = row.get_mut(*at) {
                *cell = "*".into();
            }
        }
    }
}

/// Parts of a list separated by blanks, outside quotes and brackets.
fn split_outside(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut depth) = (false, 0i32);
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            '<' | '(' | '[' | '{' if !quoted => depth += 1,
            '>' | ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        if c == ' ' && !quoted && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// Partition keys and their places on the ring.
#[expect(
    clippy::too_many_lines,
    reason = "one story: a table for each list of types, and its rows"
)]
pub(super) fn tokens(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = connect(options)?;
    let mut last = String::new();
    let mut number = 0;
    for row in csv(options, "tokens.csv")? {
        let [types, literals, key, token] = row.as_slice() else {
            return Err(Error::Malformed("tokens.csv"));
        };
        let all_types = split_outside(types);
        let names = (0..all_types.len())
            .map(|i| format!("k{i}"))
            .collect::<Vec<_>>()
            .join(", ");
        if *types != last {
            number += 1;
            last.clone_from(types);
            let columns = all_types
                .iter()
                .enumerate()
                .map(|(i, t)| format!("k{i} {t}, "))
                .collect::<String>();
            connection.must(&format!(
                "CREATE TABLE tokens_{number} ({columns}PRIMARY KEY (({names})))"
            ))?;
        }
        let values = if all_types.len() == 1 {
            vec![literals.clone()]
        } else {
            split_outside(literals)
        };
        let inserted = format!("INSERT INTO tokens_{number} ({names}) VALUES ({})", values.join(", "));
        let filter = values
            .iter()
            .enumerate()
            .map(|(i, v)| format!("k{i} = {v}"))
            .collect::<Vec<_>>()
            .join(" AND ");
        let told = connection
            .must(&inserted)
            .and_then(|_| {
                connection.must(&format!(
                    "SELECT token({names}), {names} FROM tokens_{number} WHERE {filter}"
                ))
            })
            .map(|told| {
                let cells = told
                    .pointer("/rows/0")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                let cells = cells
                    .iter()
                    .map(|c| c.as_str().and_then(unhex).unwrap_or_default())
                    .collect::<Vec<_>>();
                let token = cells
                    .first()
                    .and_then(|b| b.as_slice().try_into().ok())
                    .map_or(0, i64::from_be_bytes);
                let parts = cells.get(1..).unwrap_or_default();
                let mut whole = Vec::new();
                match parts {
                    [one] => whole.extend_from_slice(one),
                    many => {
                        for part in many {
                            crate::raw::put_short_bytes(&mut whole, part);
                            whole.push(0);
                        }
                    }
                }
                json!({"key": crate::raw::hex(&whole), "token": token.to_string()})
            });
        tally.compare_outcome(
            &format!("{types}: {literals}"),
            &json!({"key": key, "token": token}),
            told,
        );
    }
    drop_tables(&mut connection, "tokens", number)
}

/// Literals of each type, and what they become on the wire.
pub(super) fn literals(options: &Options, tally: &mut Tally<'_>) -> Outcome<()> {
    let mut connection = connect(options)?;
    let mut last = String::new();
    let mut number = -1;
    let mut made = Ok(json!({}));
    for entry in entries(&options.folder, "literals.json")? {
        let (cql_type, literal) = (text_of(&entry, "type"), text_of(&entry, "literal"));
        if cql_type != last {
            number += 1;
            cql_type.clone_into(&mut last);
            made = connection.must(&format!(
                "CREATE TABLE literal_{number} (k int PRIMARY KEY, v {cql_type})"
            ));
        }
        let mut expected = entry.clone();
        if let Some(map) = expected.as_object_mut() {
            for key in ["type", "literal", "json"] {
                map.remove(key);
            }
            if map.contains_key("wire") {
                // Where SELECT JSON failed, its error stands in its place.
                map.retain(|key, _| key == "wire" || key == "bytes");
            }
        }
        let told = match &made {
            Err(error) => json!({"no table": error.to_string()}),
            Ok(_) => literal_told(&mut connection, number, cql_type, literal)?,
        };
        tally.compare(&format!("{cql_type}: {literal}"), &expected, &told);
    }
    drop_tables(&mut connection, "literal", number)
}

/// Later files list what the keyspace holds.
fn drop_tables(connection: &mut Connection, name: &str, last: i32) -> Outcome<()> {
    for number in 0..=last {
        connection.must(&format!("DROP TABLE IF EXISTS {name}_{number}"))?;
    }
    Ok(())
}

fn literal_told(connection: &mut Connection, number: i32, cql_type: &str, literal: &str) -> Outcome<Value> {
    connection.must(&format!("TRUNCATE literal_{number}"))?;
    let statement = if cql_type == "counter" {
        format!("UPDATE literal_{number} SET v = v + {literal} WHERE k = 0")
    } else {
        format!("INSERT INTO literal_{number} (k, v) VALUES (0, {literal})")
    };
    let done = connection.query(&statement, &Params::default())?;
    if done.get("code").is_some() {
        return Ok(done);
    }
    let told = connection.must(&format!("SELECT v FROM literal_{number}"))?;
    Ok(json!({"wire": told.pointer("/columns/0/type"), "bytes": told.pointer("/rows/0/0")}))
}
