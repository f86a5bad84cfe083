//! Poison values: whatever value is accepted, in any place of a row, can be read again: alone, by a slice, in a scan, page by page, as
//! JSON, by its index, and in what the server shows of keys.
//!
//! Bytes are given as a driver gives them. For each type they are its edge cases, values that are nearly right, and noise. What a
//! statement refuses is no concern here, unless it refuses by our own fault (0x0000); what it accepts stays, so that scans meet everything
//! that came before.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use bytes::Bytes;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Answer, AnswerKind, QueryParams, Values};
use helenus_engine::engine;
use helenus_schema::command::Value;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::{Client, printed};

/// Values of each type, and after how many of them everything is read.
const VALUES: usize = 40;
const READ_ALL_EVERY: usize = 10;

/// What holds one value in the layouts below.
#[derive(Clone, Debug)]
enum Shape {
    Native(&'static str),
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Tuple(Vec<Self>),
    /// `ks.u`, of these fields.
    User(Vec<Self>),
}

const NATIVES: [&str; 19] = [
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varint",
];

fn native(name: &'static str) -> Shape {
    Shape::Native(name)
}

fn shapes() -> Vec<Shape> {
    let mut shapes: Vec<Shape> = NATIVES.into_iter().map(native).collect();
    for name in ["decimal", "varint", "text", "float", "duration"] {
        shapes.push(Shape::List(native(name).into()));
    }
    for name in ["decimal", "varint", "double", "timeuuid"] {
        shapes.push(Shape::Set(native(name).into()));
    }
    shapes.push(Shape::Map(native("decimal").into(), native("inet").into()));
    shapes.push(Shape::Map(
        native("text").into(),
        Shape::List(native("varint").into()).into(),
    ));
    shapes.push(Shape::Tuple(vec![
        native("decimal"),
        native("text"),
        native("duration"),
    ]));
    shapes.push(Shape::Tuple(vec![native("int"), Shape::Set(native("decimal").into())]));
    shapes.push(Shape::User(vec![
        native("varint"),
        Shape::Tuple(vec![native("float"), native("blob")]),
    ]));
    shapes
}

impl Shape {
    /// The type, frozen where that can be said.
    fn name(&self) -> String {
        match self {
            Self::Native(name) => (*name).to_owned(),
            Self::List(inner) => format!("frozen<list<{}>>", inner.name()),
            Self::Set(inner) => format!("frozen<set<{}>>", inner.name()),
            Self::Map(key, value) => format!("frozen<map<{}, {}>>", key.name(), value.name()),
            Self::Tuple(fields) => {
                let fields: Vec<String> = fields.iter().map(Self::name).collect();
                format!("frozen<tuple<{}>>", fields.join(", "))
            }
            Self::User(_) => "frozen<u>".to_owned(),
        }
    }

    /// Bytes that are a value, nearly one, or none.
    fn bytes(&self) -> BoxedStrategy<Vec<u8>> {
        let counted = |parts: Vec<Vec<u8>>, per: usize| {
            let count = i32::try_from(parts.len() / per).unwrap();
            let mut out = count.to_be_bytes().to_vec();
            out.extend(parts.iter().flat_map(|part| field(Some(part))));
            out
        };
        match self {
            Self::Native(name) => native_bytes(name),
            Self::List(inner) | Self::Set(inner) => proptest::collection::vec(inner.bytes(), 0..4)
                .prop_map(move |parts| counted(parts, 1))
                .boxed(),
            Self::Map(key, value) => proptest::collection::vec((key.bytes(), value.bytes()), 0..3)
                .prop_map(move |pairs| counted(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(), 2))
                .boxed(),
            Self::Tuple(fields) | Self::User(fields) => {
                let all: Vec<BoxedStrategy<Vec<u8>>> = fields
                    .iter()
                    .map(|one| {
                        proptest::option::weighted(0.8, one.bytes())
                            .prop_map(|bytes| field(bytes.as_deref()))
                            .boxed()
                    })
                    .collect();
                // Fields at the end may be missing.
                (all, 0..=fields.len())
                    .prop_map(|(all, given)| all.into_iter().take(given).flatten().collect())
                    .boxed()
            }
        }
    }
}

/// A length and bytes; `None`: null.
fn field(bytes: Option<&[u8]>) -> Vec<u8> {
    let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap());
    [&length.to_be_bytes(), bytes.unwrap_or_default()].concat()
}

/// Edge cases of a native type, its own width at random, and noise.
fn native_bytes(name: &str) -> BoxedStrategy<Vec<u8>> {
    let edges = edges(name);
    let width = edges.iter().map(Vec::len).max().unwrap_or(1);
    let noise = proptest::collection::vec(any::<u8>(), 0..20);
    let wide = proptest::collection::vec(any::<u8>(), width);
    prop_oneof![6 => proptest::sample::select(edges), 3 => wide, 1 => noise].boxed()
}

#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
fn edges(name: &str) -> Vec<Vec<u8>> {
    let of = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let integers = |width: usize| {
        let mut least = vec![0; width];
        least[0] = 0x80;
        let mut most = vec![0xff; width];
        most[0] = 0x7f;
        vec![vec![0; width], vec![0xff; width], least, most]
    };
    let decimal = |scale: i32, unscaled: &[u8]| [&scale.to_be_bytes(), unscaled].concat();
    let mut edges = match name {
        "ascii" => of(&["a", "\u{7f}", "\0", "a\0b"]),
        "text" => of(&["a", "é", "\0", "\u{10ffff}", "a\0\u{1}"]),
        "blob" => vec![vec![0], vec![0xff], vec![0, 1], vec![0, 0xff], vec![0xff; 300]],
        "boolean" => vec![vec![0], vec![1], vec![2], vec![0xff]],
        "int" | "date" => integers(4),
        "bigint" | "timestamp" => integers(8),
        "smallint" => integers(2),
        "tinyint" => integers(1),
        "time" => vec![
            vec![0; 8],
            86_399_999_999_999_i64.to_be_bytes().to_vec(),
            86_400_000_000_000_i64.to_be_bytes().to_vec(),
            (-1_i64).to_be_bytes().to_vec(),
        ],
        "float" => [
            f32::NAN,
            -f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            0.0,
            -0.0,
            f32::MIN_POSITIVE / 2.0,
        ]
        .iter()
        .map(|value| value.to_be_bytes().to_vec())
        .chain([0x7f80_0001_u32, 0xffc0_0001].map(|bits| bits.to_be_bytes().to_vec()))
        .collect(),
        "double" => [
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            f64::MIN_POSITIVE / 2.0,
        ]
        .iter()
        .map(|value| value.to_be_bytes().to_vec())
        .chain([0x7ff0_0000_0000_0001_u64].map(|bits| bits.to_be_bytes().to_vec()))
        .collect(),
        "inet" => vec![vec![127, 0, 0, 1], vec![0; 4], vec![0; 16], vec![0xff; 16]],
        "uuid" | "timeuuid" => {
            let version = |number: u8| {
                let mut bytes = vec![0xab; 16];
                bytes[6] = number << 4;
                bytes
            };
            vec![vec![0; 16], vec![0xff; 16], version(1), version(4), version(7)]
        }
        // One byte says as much as several of the same sign.
        "varint" => vec![
            vec![0],
            vec![0, 0],
            vec![0xff, 0xff, 0xff],
            vec![0, 1],
            vec![0x80],
            vec![0x7f; 40],
            vec![0; 300],
            vec![0xff; 200],
        ],
        "decimal" => {
            let mut edges = Vec::new();
            for scale in [
                0,
                1,
                -1,
                100,
                -100,
                i32::MAX,
                i32::MAX - 1,
                i32::MIN,
                i32::MIN + 1,
                1 << 30,
                -(1 << 30),
            ] {
                for unscaled in [&[0_u8][..], &[1], &[0xff], &[0, 0, 100], &[0x7f; 12], &[0x80; 30], &[]] {
                    edges.push(decimal(scale, unscaled));
                }
            }
            edges
        }
        "duration" => vec![
            vec![0, 0, 0],
            vec![1, 1, 1],
            vec![2, 1, 2],
            // Unsigned vints of zigzag: the least and the most of months, days and nanoseconds.
            [
                &[0xf0, 0xff, 0xff, 0xff, 0xff][..],
                &[0xf0, 0xff, 0xff, 0xff, 0xff],
                &[0xff; 9],
            ]
            .concat(),
            [
                &[0xf0, 0xff, 0xff, 0xff, 0xfe][..],
                &[0],
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
            ]
            .concat(),
            vec![0x80, 0, 0, 0],
        ],
        other => panic!("no edges of {other}"),
    };
    edges.push(Vec::new());
    edges
}

/// The tables of one type.
struct Tables<'a> {
    client: &'a Client,
    number: usize,
    shape: Shape,
    /// Which are there: a type may be no key, and may have no index.
    by_key: bool,
    by_clustering: bool,
    by_index: bool,
    accepted: Vec<Vec<u8>>,
}

impl<'a> Tables<'a> {
    async fn new(client: &'a Client, number: usize, shape: Shape) -> Self {
        let name = shape.name();
        let is_made = async |text: String| client.run(&text, QueryParams::default()).await.is_ok();
        let by_key = is_made(format!("CREATE TABLE p{number} (k {name} PRIMARY KEY, v int)")).await;
        let by_clustering = is_made(format!(
            "CREATE TABLE c{number} (k int, a {name}, d {name}, v int, PRIMARY KEY (k, a, d)) WITH CLUSTERING ORDER BY (a ASC, d DESC)"
        ))
        .await;
        client
            .ok(&format!(
                "CREATE TABLE v{number} (k int, c int, v {name}, s {name} static, PRIMARY KEY (k, c))"
            ))
            .await;
        let by_index = is_made(format!("CREATE INDEX ON v{number} (v)")).await;
        Self {
            client,
            number,
            shape,
            by_key,
            by_clustering,
            by_index,
            accepted: Vec::new(),
        }
    }

    async fn run(&self, text: &str, values: &[&[u8]]) -> Result<Answer, Error> {
        let bound = values.iter().map(|value| Value::Bytes(Bytes::copy_from_slice(value)));
        let params = QueryParams {
            values: Values::Positional(bound.collect()),
            ..QueryParams::default()
        };
        let outcome = self.client.run(text, params).await;
        if let Err(
            error @ Error::Engine(
                engine::Error::Fault(_) | engine::Error::ReadFailure { .. } | engine::Error::WriteFailure { .. },
            ),
        ) = &outcome
        {
            panic!("{}: {text} with {values:02x?}: {error}", self.shape.name());
        }
        outcome
    }

    /// Runs what may be refused, and tells whether it was carried out.
    async fn is_accepted(&self, text: &str, values: &[&[u8]]) -> bool {
        self.run(text, values).await.is_ok()
    }

    /// The rows of a read that must succeed.
    async fn read(&self, text: &str, values: &[&[u8]]) -> usize {
        let answer = self.run(text, values).await.unwrap_or_else(|error| {
            panic!("{}: {text} with {values:02x?}: {error}", self.shape.name());
        });
        printed(&answer).len()
    }

    /// As [`Tables::read`], where there must be a row.
    async fn finds(&self, text: &str, values: &[&[u8]]) {
        let found = self.read(text, values).await;
        assert!(
            found > 0,
            "{}: {text} with {values:02x?} finds nothing",
            self.shape.name()
        );
    }

    /// Asks for the same value in each of its places.
    async fn put_and_read(&mut self, value: &[u8]) {
        let of = self.number;
        let mut is_in = false;
        if self.by_key
            && self
                .is_accepted(&format!("INSERT INTO p{of} (k, v) VALUES (?, 1)"), &[value])
                .await
        {
            is_in = true;
            self.finds(&format!("SELECT * FROM p{of} WHERE k = ?"), &[value]).await;
            self.finds(&format!("SELECT JSON * FROM p{of} WHERE k = ?"), &[value])
                .await;
            self.finds(&format!("SELECT token(k), k FROM p{of} WHERE k IN (?)"), &[value])
                .await;
            self.finds(&format!("SELECT k FROM p{of} WHERE token(k) >= token(?)"), &[value])
                .await;
            self.finds(&format!("EXPLAIN SELECT * FROM p{of} WHERE k = ?"), &[value])
                .await;
        }
        let insert = format!("INSERT INTO c{of} (k, a, d, v) VALUES (1, ?, ?, 1)");
        if self.by_clustering && self.is_accepted(&insert, &[value, value]).await {
            is_in = true;
            let whole = format!("FROM c{of} WHERE k = 1 AND a = ? AND d = ?");
            self.finds(&format!("SELECT * {whole}"), &[value, value]).await;
            self.finds(&format!("SELECT JSON * {whole}"), &[value, value]).await;
            self.finds(&format!("EXPLAIN SELECT * {whole}"), &[value, value]).await;
            for slice in ["a >= ?", "a <= ?", "a IN (?)"] {
                self.finds(&format!("SELECT * FROM c{of} WHERE k = 1 AND {slice}"), &[value])
                    .await;
            }
            // A row that was first written with an equal value in other bytes is not found by two columns.
            for slice in ["(a, d) >= (?, ?)", "a = ? AND d <= ?"] {
                self.read(&format!("SELECT * FROM c{of} WHERE k = 1 AND {slice}"), &[value, value])
                    .await;
            }
        }
        let insert = format!("INSERT INTO v{of} (k, c, v, s) VALUES (?, 1, ?, ?)");
        let key = i32::try_from(self.accepted.len()).unwrap().to_be_bytes();
        if self.is_accepted(&insert, &[&key, value, value]).await {
            is_in = true;
            for text in ["*", "JSON *", "DISTINCT s"] {
                self.finds(&format!("SELECT {text} FROM v{of} WHERE k = ?"), &[&key])
                    .await;
            }
            if self.by_index {
                self.finds(&format!("SELECT * FROM v{of} WHERE v = ?"), &[value]).await;
                self.finds(&format!("EXPLAIN SELECT * FROM v{of} WHERE v = ?"), &[value])
                    .await;
            }
            self.read(&format!("SELECT * FROM v{of} WHERE s = ? ALLOW FILTERING"), &[value])
                .await;
        }
        if is_in {
            self.accepted.push(value.to_vec());
        }
    }

    /// Reads all that there is, and what the server shows of it.
    async fn read_all(&self) {
        let of = self.number;
        let mut tables = vec![format!("v{of}")];
        tables.extend(self.by_key.then(|| format!("p{of}")));
        tables.extend(self.by_clustering.then(|| format!("c{of}")));
        for table in tables {
            for text in ["SELECT *", "SELECT JSON *", "SELECT count(*)"] {
                self.read(&format!("{text} FROM {table}"), &[]).await;
            }
            self.read_pages(&format!("SELECT * FROM {table}")).await;
        }
        if self.by_clustering {
            self.read_pages(&format!("SELECT * FROM c{of} WHERE k = 1 ORDER BY a DESC, d ASC"))
                .await;
        }
        for view in ["hot_keys", "largest_partitions", "partitions", "tables", "request_log"] {
            self.read(&format!("SELECT * FROM system_cosmos.{view}"), &[]).await;
        }
    }

    /// Reads a row a page: each paging state has a key in it.
    async fn read_pages(&self, text: &str) {
        let rows = self.read(text, &[]).await;
        let (mut state, mut read) = (None, 0);
        loop {
            let params = QueryParams {
                page_size_rows: Some(1),
                paging_state: state,
                ..QueryParams::default()
            };
            let answer = self.client.run(text, params).await;
            let answer = answer.unwrap_or_else(|error| panic!("{}: {text}: {error}", self.shape.name()));
            read += printed(&answer).len();
            let AnswerKind::Rows(rows) = answer.kind else {
                unreachable!("a SELECT answers with rows")
            };
            state = rows.paging_state;
            if state.is_none() {
                break;
            }
        }
        assert_eq!(read, rows, "{}: {text}", self.shape.name());
    }
}

async fn whatever_is_accepted_can_be_read(url: &str, values: usize) {
    let client = Client::with_keyspace(url).await;
    client
        .ok("CREATE TYPE u (a varint, b frozen<tuple<float, blob>>)")
        .await;
    // The same values in every run.
    let mut runner = TestRunner::deterministic();
    for (number, shape) in shapes().into_iter().enumerate() {
        let strategy = shape.bytes();
        let mut tables = Tables::new(&client, number, shape).await;
        for done in 1..=values {
            let value = strategy.new_tree(&mut runner).unwrap().current();
            tables.put_and_read(&value).await;
            if done % READ_ALL_EVERY == 0 {
                tables.read_all().await;
            }
        }
        assert!(
            !tables.accepted.is_empty(),
            "{}: nothing was accepted",
            tables.shape.name()
        );
    }
}

#[tokio::test]
async fn whatever_is_accepted_in_memory_can_be_read() {
    whatever_is_accepted_can_be_read("memory:", VALUES).await;
}

#[tokio::test]
async fn whatever_is_accepted_in_files_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    whatever_is_accepted_can_be_read(&format!("file:{}", directory.path().display()), READ_ALL_EVERY).await;
}
