//! The bounds of deleted ranges in the full fidelity change feed: a reader that deletes the rows between them has the rows that are here.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::cql::{AnswerKind, QueryParams};
use helenus_types::types::{CqlType, Json, UserType};
use serde_json::{Value, json};

use crate::support::Client;

/// Types of clustering columns and some of their values, the ends of the type and equal values of other bytes with them.
const POOL: [(&str, &[&str]); 27] = [
    ("int", &["-2147483648", "-1", "0", "5", "6", "2147483647"]),
    ("tinyint", &["-128", "-1", "0", "127"]),
    ("smallint", &["-32768", "255", "256", "32767"]),
    ("bigint", &["-9223372036854775808", "255", "9223372036854775807"]),
    ("boolean", &["true", "false"]),
    ("text", &["''", "'a'", "'a\u{0}'", "'b'", "'\u{ff}'"]),
    ("ascii", &["''", "'a'", "'z'"]),
    ("blob", &["0x", "0x00", "0x00ff", "0xff", "0xffff"]),
    ("float", &["1.5", "-0.0", "0.0", "3.4028235E38"]),
    ("double", &["1.0", "1.5", "-1.5", "0.1", "1.0E300"]),
    ("decimal", &["1.5", "1.50", "0", "0.00", "-1.5", "99", "100", "1.55"]),
    (
        "varint",
        &["0", "-1", "255", "256", "-256", "65535", "-65536", "16777215"],
    ),
    (
        "uuid",
        &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ],
    ),
    (
        "timeuuid",
        &[
            "50554d6e-29bb-11e5-b345-feff819cdc9f",
            "50554d6f-29bb-11e5-b345-feff819cdc9f",
            "00000000-0000-1000-8080-808080808080",
            "ffffffff-ffff-1fff-7f7f-7f7f7f7f7f7f",
        ],
    ),
    ("inet", &["'255.255.255.255'", "'0.0.0.0'", "'::1'"]),
    ("date", &["'2020-01-01'", "'2020-01-02'", "'1969-12-31'"]),
    ("timestamp", &["'2020-01-01'", "'1969-12-31'"]),
    ("time", &["'23:59:59.999999999'", "'00:00:00'"]),
    ("frozen<list<int>>", &["[]", "[1]", "[1, 2]", "[2]"]),
    ("frozen<list<double>>", &["[]", "[1.5]", "[1.5, 2.5]"]),
    ("frozen<set<text>>", &["{'a'}", "{'a', 'b'}", "{}"]),
    ("frozen<map<int, boolean>>", &["{1: true}", "{1: false, 2: true}", "{}"]),
    (
        "frozen<tuple<int, text>>",
        &["(1, 'a')", "(1, null)", "(2, '')", "(-1, 'z')"],
    ),
    ("frozen<tuple<double>>", &["(1.5)", "(2.0)"]),
    ("frozen<u>", &["{a: 1, b: 'x'}", "{a: 1}", "{a: 2, b: 'x'}"]),
    ("vector<float, 2>", &["[1, 2]", "[1, 3]", "[-1, 2]"]),
    ("vector<int, 2>", &["[1, 2]", "[1, 2147483647]"]),
];

const FEED: &str =
    "SELECT * FROM t WHERE COSMOS_FULLFIDELITY_CHANGEFEED() = true AND COSMOS_CHANGEFEED_FROM_START() = true AND k = ";
const NAMES: [&str; 3] = ["c", "d", "e"];
const COMPARED: [&str; 5] = ["=", ">", ">=", "<", "<="];

struct Column {
    name: &'static str,
    ty: CqlType,
    is_descending: bool,
    pool: &'static [&'static str],
}

impl Column {
    fn any(random: &mut fastrand::Rng, place: usize) -> Self {
        let (name, pool) = POOL[place];
        let user = UserType {
            keyspace: "ks".to_owned(),
            name: "u".to_owned(),
            fields: vec![
                ("a".to_owned(), CqlType::parsed("int", &|_| None).unwrap()),
                ("b".to_owned(), CqlType::parsed("text", &|_| None).unwrap()),
            ],
        };
        let user = Arc::new(user);
        Self {
            name,
            ty: CqlType::parsed(name, &|_| Some(Arc::clone(&user))).unwrap(),
            is_descending: random.bool(),
            pool,
        }
    }
}

/// The value of JSON as the server reads it.
fn bytes(ty: &CqlType, value: &Value) -> Bytes {
    ty.from_json(&Json::parse(&value.to_string()).unwrap())
        .unwrap()
        .unwrap()
}

/// Where a row is relative to the leading columns of a bound.
fn against(row: &Value, bound: &Value, columns: &[Column]) -> Ordering {
    for (name, column) in NAMES.iter().zip(columns) {
        let Some(value) = bound.get(name) else { break };
        let order = column
            .ty
            .compare(&bytes(&column.ty, &row[name]), &bytes(&column.ty, value));
        let order = if column.is_descending { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Whether a record of a deleted range says that the row is in it.
fn holds(metadata: &Value, row: &Value, columns: &[Column]) -> bool {
    let is_within = |name: &str, outside: Ordering| {
        metadata
            .get(name)
            .is_none_or(|bound| match against(row, &bound["key"], columns) {
                Ordering::Equal => bound["inclusive"] == json!(true),
                order => order != outside,
            })
    };
    is_within("from", Ordering::Less) && is_within("to", Ordering::Greater)
}

async fn rows(client: &Client, k: usize) -> Vec<Value> {
    let rows = client.rows(&format!("SELECT JSON * FROM t WHERE k = {k}")).await;
    let row = |row: &String| {
        let text: String = serde_json::from_str(row).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    rows.iter().map(row).collect()
}

/// The records of one partition key.
async fn records(client: &Client, k: usize) -> Vec<Value> {
    let params = QueryParams {
        wants_feed_positions: true,
        ..QueryParams::default()
    };
    let answer = client
        .database
        .query(&client.session, &format!("{FEED}{k}"), &params)
        .await
        .unwrap();
    let (end, AnswerKind::Rows(_)) = (answer.feed.unwrap(), answer.kind) else {
        panic!("no rows")
    };
    assert!(end.is_at_end);
    let parse = |record: &String| serde_json::from_str::<Value>(&format!("{{{record}}}")).unwrap();
    end.records.iter().map(parse).collect()
}

/// Deletes a random range of some rows, and compares what its records say with what it deleted.
async fn delete_one(client: &Client, random: &mut fastrand::Rng, columns: &[Column], k: usize) {
    let names = &NAMES[..columns.len()];
    let mut inserts = String::new();
    for _ in 0..12 {
        let values: Vec<&str> = columns
            .iter()
            .map(|column| column.pool[random.usize(..column.pool.len())])
            .collect();
        inserts.push_str(&format!(
            "INSERT INTO t (k, {}) VALUES ({k}, {}); ",
            names.join(", "),
            values.join(", ")
        ));
    }
    client.ok(&format!("BEGIN UNLOGGED BATCH {inserts} APPLY BATCH")).await;
    let before = rows(client, k).await;
    let restricted = random.usize(1..=columns.len());
    let mut relations = Vec::new();
    for (place, column) in columns.iter().enumerate().take(restricted) {
        let mut relation = |operator: &str| {
            let value = column.pool[random.usize(..column.pool.len())];
            relations.push(format!("{} {operator} {value}", NAMES[place]));
        };
        if place + 1 < restricted {
            relation("=");
            continue;
        }
        relation(COMPARED[(k + place) % COMPARED.len()]);
        if k.is_multiple_of(3) && COMPARED[(k + place) % COMPARED.len()].starts_with('>') {
            relation("<=");
        }
    }
    let delete = format!("DELETE FROM t WHERE k = {k} AND {}", relations.join(" AND "));
    client.ok(&delete).await;
    let after = rows(client, k).await;
    let records = records(client, k).await;
    let told: Vec<&Value> = records
        .iter()
        .map(|record| &record["metadata"])
        .filter(|of| of["of"] == "range")
        .collect();
    let order: Vec<_> = columns
        .iter()
        .map(|column| (column.name, column.is_descending))
        .collect();
    for row in &before {
        let is_row = records.iter().any(|record| {
            let metadata = &record["metadata"];
            let is_deletion = metadata["operationType"] == "delete" && metadata["of"] == "row";
            is_deletion && against(row, &metadata["key"], columns).is_eq()
        });
        let is_told = is_row || told.iter().any(|metadata| holds(metadata, row, columns));
        // By their text: 0.0 and -0.0 are two rows.
        let told_row = row.to_string();
        let is_left = after.iter().any(|left| format!("{left}") == told_row);
        assert_eq!(is_told, !is_left, "{order:?}: {delete}: {row} and {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_hold_the_rows_that_were_deleted() {
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TYPE u (a int, b text)").await;
    let mut random = fastrand::Rng::with_seed(5);
    for case in 0..POOL.len() * 4 {
        let mut columns = vec![Column::any(&mut random, case / 4)];
        columns[0].is_descending = case % 2 == 1;
        if case % 4 > 1 {
            for _ in 0..random.usize(1..3) {
                let place = random.usize(..POOL.len());
                columns.insert(random.usize(..=columns.len()), Column::any(&mut random, place));
            }
        }
        let declared = NAMES
            .iter()
            .zip(&columns)
            .map(|(name, column)| format!("{name} {}", column.name));
        let order = NAMES
            .iter()
            .zip(&columns)
            .map(|(name, column)| format!("{name} {}", if column.is_descending { "DESC" } else { "ASC" }));
        let create = format!(
            "CREATE TABLE t (k int, {}, PRIMARY KEY (k, {})) WITH CLUSTERING ORDER BY ({}) AND cosmosdb_full_fidelity_retention_seconds = 3600",
            declared.collect::<Vec<_>>().join(", "),
            NAMES[..columns.len()].join(", "),
            order.collect::<Vec<_>>().join(", ")
        );
        client.ok(&create).await;
        for k in 0..25 {
            delete_one(&client, &mut random, &columns, k).await;
        }
        client.ok("DROP TABLE t").await;
    }
}

/// What the statement says is told, where the range does not have two names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_are_told_as_they_were_written() {
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TYPE u (a int, b text)").await;
    let cases = [
        ("double", "ASC", "c > 1.5", "(1.5", ""),
        ("double", "DESC", "c > 1.5", "", "1.5)"),
        ("double", "DESC", "c <= 1.5", "[1.5", ""),
        ("float", "ASC", "c >= 1.5", "[1.5", ""),
        ("decimal", "ASC", "c > 1.5", "(1.5", ""),
        ("decimal", "DESC", "c > 1.5", "", "1.5)"),
        ("decimal", "DESC", "c <= 1.5", "[1.5", ""),
        ("varint", "DESC", "c > 255", "", "255)"),
        ("boolean", "ASC", "c <= true", "", "true]"),
        ("boolean", "DESC", "c > true", "", "true)"),
        (
            "uuid",
            "ASC",
            "c = ffffffff-ffff-ffff-ffff-ffffffffffff",
            "[\"ffffffff-ffff-ffff-ffff-ffffffffffff\"",
            "\"ffffffff-ffff-ffff-ffff-ffffffffffff\"]",
        ),
        ("int", "DESC", "c = -2147483648", "[-2147483648", "-2147483648]"),
        ("int", "ASC", "c = 5", "[5", "5]"),
        ("frozen<tuple<int, text>>", "ASC", "c >= (1, 'a')", "[[1,\"a\"]", ""),
        ("frozen<tuple<int, text>>", "DESC", "c >= (1, 'a')", "", "[1,\"a\"]]"),
        ("frozen<u>", "ASC", "c < {a: 1, b: 'x'}", "", "{\"a\":1,\"b\":\"x\"})"),
        ("vector<float, 2>", "ASC", "c > [1, 2]", "([1.0,2.0]", ""),
        ("frozen<list<double>>", "DESC", "c >= [1.5]", "", "[1.5]]"),
    ];
    for (k, (ty, order, relation, from, to)) in cases.into_iter().enumerate() {
        client
            .ok(&format!(
                "CREATE TABLE t (k int, c {ty}, d int, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c {order}, d ASC) \
                 AND cosmosdb_full_fidelity_retention_seconds = 3600"
            ))
            .await;
        client.ok(&format!("DELETE FROM t WHERE k = {k} AND {relation}")).await;
        let records = records(&client, k).await;
        let metadata = &records[0]["metadata"];
        let told = |name: &str| {
            let bound = metadata.get(name)?;
            Some((bound["key"]["c"].to_string(), bound["inclusive"] == json!(true)))
        };
        let start = told("from").map_or(String::new(), |(c, holds)| {
            format!("{}{c}", if holds { '[' } else { '(' })
        });
        let end = told("to").map_or(String::new(), |(c, holds)| {
            format!("{c}{}", if holds { ']' } else { ')' })
        });
        assert_eq!((start.as_str(), end.as_str()), (from, to), "{ty} {order} {relation}");
        client.ok("DROP TABLE t").await;
    }
}
