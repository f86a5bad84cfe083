//! Export and import: what is exported and imported into an empty table is equal, and each line of a file is a row or is named.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::path::Path;

use crate::support::Client;
use helenus::server::operator::copying::{CopyError, Imported, Unread, export, import};
use helenus::server::operator::records::{Endless, Lines};
use helenus::server::operator::text::Form;
use helenus_cql::cql::{AnswerKind, QueryParams, Rows};

const FORMS: [Form; 2] = [Form::Csv, Form::Json];

/// Literals of a type, an empty value among them where the type has one.
struct Kind {
    name: &'static str,
    literals: &'static [&'static str],
}

const KEY_KINDS: &[Kind] = &[
    Kind {
        name: "int",
        literals: &["0", "-1", "7", "2147483647"],
    },
    Kind {
        name: "text",
        literals: &[
            "'a'",
            "'5\" pipe'",
            "',\"'",
            "' b '",
            "'two\nlines\r\n'",
            "'\u{feff}'",
            "'0x00'",
        ],
    },
    Kind {
        name: "blob",
        literals: &["0x00", "0xff22", "0x2c"],
    },
    Kind {
        name: "decimal",
        literals: &["1.5", "1.50", "-0.001", "2E+3"],
    },
    Kind {
        name: "timestamp",
        literals: &["0", "1700000000001", "-9223372036854775807", "'2020-01-02'"],
    },
    Kind {
        name: "frozen<set<text>>",
        literals: &["{}", "{'a', 'b\"'}", "{''}"],
    },
    Kind {
        name: "inet",
        literals: &["'::1'", "'127.0.0.1'"],
    },
];

const VALUE_KINDS: &[Kind] = &[
    Kind {
        name: "int",
        literals: &["1", "null", "blob_as_int(0x)"],
    },
    Kind {
        name: "text",
        literals: &["'v'", "''", "null", "'\"'", "'[]'", "'null'", "'\\'", "'é,\n'"],
    },
    Kind {
        name: "blob",
        literals: &["0x", "0x0001", "null"],
    },
    Kind {
        name: "double",
        literals: &["NaN", "-0.0", "1e300", "0.1", "-Infinity"],
    },
    Kind {
        name: "duration",
        literals: &["1mo2d3h", "-1ns", "null"],
    },
    Kind {
        name: "list<text>",
        literals: &["['a', '', 'a']", "[]", "null", "['\"', ',']"],
    },
    Kind {
        name: "set<int>",
        literals: &["{3, 1}", "{}", "{blob_as_int(0x)}"],
    },
    Kind {
        name: "map<text, frozen<list<int>>>",
        literals: &["{'a': [1], '': []}", "{}", "null"],
    },
    Kind {
        name: "frozen<list<int>>",
        literals: &["[]", "[1, 2]", "null"],
    },
    Kind {
        name: "tuple<int, text>",
        literals: &["(1, null)", "(null, '')", "(2, 'x')", "null"],
    },
    Kind {
        name: "place",
        literals: &["{street: 's'}", "{street: '', numbers: []}", "null"],
    },
    Kind {
        name: "frozen<place>",
        literals: &["{street: null, numbers: [1]}", "{street: ''}", "null"],
    },
    Kind {
        name: "vector<float, 2>",
        literals: &["[1.5, -2]", "null"],
    },
    Kind {
        name: "timeuuid",
        literals: &["50554d6e-29bb-11e5-b345-feff819cdc9f", "null"],
    },
    Kind {
        name: "time",
        literals: &["'01:02:03.000000004'", "null"],
    },
];

/// Names that need quotes in CQL, in CSV or in JSON.
const NAMES: &[&str] = &["k", "K", "a b", "quo\"te", "com,ma", "é", "0x", "select"];

/// How a generated table stores its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    Plain,
    Counters,
    /// COMPACT STORAGE: of one value, of keys only, of counters, or without clustering columns.
    Compact,
}

struct Column {
    name: String,
    kind: &'static Kind,
}

impl Column {
    fn literal(&self, random: &mut fastrand::Rng) -> &'static str {
        random.choice(self.kind.literals).unwrap()
    }
}

/// A generated table.
struct Generated {
    storage: Storage,
    is_counter: bool,
    partition: Vec<Column>,
    clustering: Vec<Column>,
    statics: Vec<Column>,
    regular: Vec<Column>,
}

const COUNTERS: &[Kind] = &[Kind {
    name: "counter",
    literals: &["1", "-7", "1000000000000"],
}];

impl Generated {
    fn new(random: &mut fastrand::Rng) -> Self {
        let storage = random
            .choice([Storage::Plain, Storage::Counters, Storage::Compact])
            .unwrap();
        let mut number = 0;
        let mut column = |random: &mut fastrand::Rng, kinds: &'static [Kind]| {
            number += 1;
            let name = format!("\"{}{number}\"", random.choice(NAMES).unwrap().replace('"', "\"\""));
            Column {
                name,
                kind: random.choice(kinds).unwrap(),
            }
        };
        let mut some = |random: &mut fastrand::Rng, count: usize, kinds: &'static [Kind]| -> Vec<Column> {
            (0..count).map(|_| column(random, kinds)).collect()
        };
        let is_counter = storage == Storage::Counters || storage == Storage::Compact && random.bool();
        // A table with COMPACT STORAGE has no collections that are not frozen.
        let values = match (is_counter, storage) {
            (true, _) => COUNTERS,
            (false, Storage::Compact) => KEY_KINDS,
            (false, _) => VALUE_KINDS,
        };
        let (keys, clustering) = (random.usize(1..3), random.usize(0..3));
        let partition = some(random, keys, KEY_KINDS);
        let clustering = some(random, clustering, KEY_KINDS);
        let (statics, regular) = match (storage, clustering.is_empty()) {
            (Storage::Compact, true) => (0, random.usize(1..3)),
            (Storage::Compact, false) => (0, random.usize(usize::from(is_counter)..2)),
            (_, true) => (0, random.usize(1..4)),
            (_, false) => (random.usize(0..3), random.usize(usize::from(is_counter)..4)),
        };
        Self {
            storage,
            is_counter,
            partition,
            clustering,
            statics: some(random, statics, values),
            regular: some(random, regular, values),
        }
    }

    fn create(&self, random: &mut fastrand::Rng) -> String {
        let columns = |columns: &[Column], more: &str| -> String {
            let columns = columns.iter();
            columns
                .map(|column| format!("{} {}{more}, ", column.name, column.kind.name))
                .collect()
        };
        let names = |columns: &[Column]| -> Vec<String> { columns.iter().map(|column| column.name.clone()).collect() };
        let mut key = vec![format!("({})", names(&self.partition).join(", "))];
        key.extend(names(&self.clustering));
        let orders = self.clustering.iter();
        let orders = orders.map(|column| format!("{} {}", column.name, if random.bool() { "ASC" } else { "DESC" }));
        let mut options = Vec::new();
        if !self.clustering.is_empty() {
            options.push(format!(
                "CLUSTERING ORDER BY ({})",
                orders.collect::<Vec<_>>().join(", ")
            ));
        }
        if self.storage == Storage::Compact {
            options.push("COMPACT STORAGE".to_owned());
        }
        let with = if options.is_empty() { "" } else { " WITH " };
        format!(
            "CREATE TABLE ks.t ({}{}{}{}PRIMARY KEY ({})){with}{}",
            columns(&self.partition, ""),
            columns(&self.clustering, ""),
            columns(&self.statics, " static"),
            columns(&self.regular, ""),
            key.join(", "),
            options.join(" AND ")
        )
    }

    /// A statement that changes rows, which the table may refuse.
    fn statement(&self, random: &mut fastrand::Rng) -> String {
        let mut key: Vec<(&str, &str)> = Vec::new();
        // Few keys, so that partitions have several rows.
        for column in self.partition.iter().chain(&self.clustering) {
            let literal = random.choice(column.kind.literals.iter().take(3)).unwrap();
            key.push((&column.name, literal));
        }
        let is_of_statics = !self.statics.is_empty() && random.u8(..4) == 0;
        if is_of_statics {
            key.truncate(self.partition.len());
        } else if self.storage == Storage::Compact && self.clustering.len() > 1 && random.u8(..3) == 0 {
            key.pop();
        }
        let columns: Vec<&Column> = match is_of_statics {
            true => self.statics.iter().collect(),
            false => self.regular.iter().chain(&self.statics).collect(),
        };
        let columns: Vec<&Column> = columns.into_iter().filter(|_| random.u8(..4) > 0).collect();
        let wheres = |count: usize| -> String {
            let wheres = key
                .iter()
                .take(count)
                .map(|(name, literal)| format!("{name} = {literal}"));
            wheres.collect::<Vec<_>>().join(" AND ")
        };
        match random.u8(..8) {
            0 => return format!("DELETE FROM ks.t WHERE {}", wheres(key.len())),
            1 if !self.is_counter => {
                if let Some(column) = columns.first() {
                    return format!("DELETE {} FROM ks.t WHERE {}", column.name, wheres(key.len()));
                }
            }
            _ => {}
        }
        let set =
            |random: &mut fastrand::Rng, column: &Column| match (self.is_counter, &column.name, column.literal(random))
            {
                (true, name, literal) => format!("{name} = {name} + {literal}"),
                (false, name, literal) => format!("{name} = {literal}"),
            };
        if self.is_counter || random.bool() && !columns.is_empty() {
            let sets: Vec<String> = columns.iter().map(|column| set(random, column)).collect();
            return format!("UPDATE ks.t SET {} WHERE {}", sets.join(", "), wheres(key.len()));
        }
        let names = key.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.chain(columns.iter().map(|column| column.name.as_str())).collect();
        let literals: Vec<&str> = key.iter().map(|(_, literal)| *literal).collect();
        let values: Vec<&str> = columns.iter().map(|column| column.literal(random)).collect();
        let using = if random.u8(..4) == 0 { " USING TTL 1000000" } else { "" };
        format!(
            "INSERT INTO ks.t ({}) VALUES ({}){using}",
            names.join(", "),
            [literals, values].concat().join(", ")
        )
    }
}

const TYPE: &str = "CREATE TYPE ks.place (street text, numbers frozen<list<int>>)";

async fn all(client: &Client) -> Rows {
    let answer = client.run("SELECT * FROM ks.t", QueryParams::default()).await.unwrap();
    match answer.kind {
        AnswerKind::Rows(rows) => rows,
        _ => panic!("a SELECT answers with rows"),
    }
}

async fn import_ok(client: &Client, form: Form, file: &Path) -> Imported {
    import(&client.database, ("ks", "t"), form, file, 1000).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_is_equal_after_import_into_an_empty_table() {
    let seed = std::env::var("HELENUS_COPIES_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = seed.map_or(0..100_u64, |seed| seed..seed + 1);
    let folder = tempfile::tempdir().unwrap();
    let source = Client::with_keyspace("memory:").await;
    let target = Client::with_keyspace("memory:").await;
    for client in [&source, &target] {
        client.ok(TYPE).await;
    }
    let (mut tables, mut rows_of_all) = (0, 0);
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let table = Generated::new(&mut random);
        let create = table.create(&mut random);
        // Some generated tables are refused, as they have no columns for their kind.
        if source.run(&create, QueryParams::default()).await.is_err() {
            continue;
        }
        tables += 1;
        let mut done = Vec::new();
        for _ in 0..random.usize(1..60) {
            let text = table.statement(&mut random);
            if source.run(&text, QueryParams::default()).await.is_ok() {
                done.push(text);
            }
            source.clock.advance(std::time::Duration::from_millis(1));
        }
        let before = all(&source).await;
        rows_of_all += before.row_count;
        for form in FORMS {
            target.ok(&create).await;
            let file = folder.path().join(format!("{seed}.{form:?}"));
            let exported = export(&source.database, ("ks", "t"), form, &file).await.unwrap();
            let imported = import_ok(&target, form, &file).await;
            let after = all(&target).await;
            let case = || {
                let text = std::fs::read_to_string(&file).unwrap();
                format!(
                    "seed {seed}\n{create}\n{}\n{form:?}:\n{text}{imported:?}",
                    done.join("\n")
                )
            };
            assert_eq!((imported.rows, imported.bad), (exported, 0), "{}", case());
            assert_eq!(after.row_count, before.row_count, "{}", case());
            assert!(after.content == before.content, "{}", case());
            target.ok("DROP TABLE ks.t").await;
        }
        source.ok("DROP TABLE ks.t").await;
    }
    assert!(
        seed.is_some() || tables > 60 && rows_of_all > 500,
        "{tables} tables, {rows_of_all} rows"
    );
}

#[tokio::test]
async fn static_counters_are_counted_once_a_partition_in_any_order_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE ks.t (k int, c int, s counter static, n counter, PRIMARY KEY (k, c))")
        .await;
    let file = folder.path().join("f");
    std::fs::write(
        &file,
        "k,c,s,n\n1,1,10,1\n2,1,5,1\n1,2,10,1\n3,,7,\n1,3,10,\n2,2,,1\n4,1,,\n",
    )
    .unwrap();
    let imported = import_ok(&client, Form::Csv, &file).await;
    assert_eq!((imported.rows, imported.bad), (6, 1), "{:?}", imported.named);
    assert_eq!(imported.named[0].lines, Lines { first: 8, last: 8 });
    let mut rows = client.rows("SELECT k, c, s, n FROM ks.t").await;
    rows.sort();
    assert_eq!(rows, ["1 1 10 1", "1 2 10 1", "2 1 5 1", "2 2 5 1", "3 null 7 null"]);

    std::fs::write(&file, "k,c,s,n\n5,1,10,1\n5,2,11,1\n").unwrap();
    let imported = import_ok(&client, Form::Csv, &file).await;
    assert_eq!(
        (imported.rows, imported.bad),
        (1, 1),
        "another value of a counter that was counted"
    );
    assert_eq!(imported.named[0].lines, Lines { first: 3, last: 3 });
}

#[tokio::test]
async fn each_line_becomes_a_row_or_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v text)").await;
    let file = folder.path().join("f");
    let line = |k: u32| format!("{k},line {k}\n");
    let lines = |from: u32, to: u32| (from..=to).map(line).collect::<String>();

    let text = format!("k,v\n1,a\n2,5\" pipe\n{}", lines(3, 1001));
    std::fs::write(&file, text).unwrap();
    let imported = import_ok(&client, Form::Csv, &file).await;
    assert_eq!((imported.rows, imported.bad, imported.unread), (1001, 0, None));
    assert_eq!(client.rows("SELECT v FROM ks.t WHERE k = 2").await, ["\"5\\\" pipe\""]);

    client.ok("TRUNCATE ks.t").await;
    let text = format!("k,v\n{}2,\"5 pipe\n{}", lines(100, 199), lines(200, 1000));
    std::fs::write(&file, text).unwrap();
    let imported = import_ok(&client, Form::Csv, &file).await;
    assert_eq!((imported.rows, imported.bad), (100, 0), "the rows before the quote");
    let lines_left = Lines { first: 102, last: 903 };
    let unread = Unread::Endless(Endless::Quote {
        line: 102,
        column: 3,
        lines: lines_left,
    });
    assert_eq!(imported.unread, Some(unread));

    let bad: String = (0..150).map(|k| format!("x{k},1\n")).collect();
    std::fs::write(&file, format!("\u{feff}k,v\n{bad}\n1,\"a\nb\" c\n2,x\n")).unwrap();
    let imported = import_ok(&client, Form::Csv, &file).await;
    assert_eq!((imported.rows, imported.bad, imported.named.len()), (1, 151, 100));
    let others = [Lines { first: 102, last: 151 }, Lines { first: 153, last: 154 }];
    assert_eq!(imported.others, others);

    std::fs::write(&file, "{\"k\": 1} {\"k\": 2}\n{\"k\": 3} \n{\"k\": 4}, \n").unwrap();
    let imported = import_ok(&client, Form::Json, &file).await;
    assert_eq!((imported.rows, imported.bad), (1, 2), "text behind an object");

    std::fs::write(&file, b"k,v\n1,a\n2,\xff\n3,c\n").unwrap();
    let imported = import_ok(&client, Form::Csv, &file).await;
    assert_eq!((imported.rows, imported.bad), (2, 1));
    assert_eq!(imported.named[0].lines, Lines { first: 3, last: 3 });
}

#[tokio::test]
async fn cells_of_empty_collections_and_a_byte_order_mark_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE ks.t (k int PRIMARY KEY, l list<int>, s set<int>, m map<int, int>, fl frozen<list<int>>, fs frozen<set<int>>, fm frozen<map<int, int>>)")
        .await;
    let file = folder.path().join("f");
    for (form, text) in [
        (Form::Csv, "\u{feff}k,l,s,m,fl,fs,fm\n1,[],{},{},[],{},{}\n"),
        (
            Form::Json,
            "\u{feff}{\"k\": 1, \"l\": [], \"s\": [], \"m\": {}, \"fl\": [], \"fs\": [], \"fm\": {}}\n",
        ),
    ] {
        client.ok("TRUNCATE ks.t").await;
        std::fs::write(&file, text).unwrap();
        let imported = import_ok(&client, form, &file).await;
        assert_eq!((imported.rows, imported.bad), (1, 0), "{:?}", imported.named);
        assert_eq!(
            client.rows("SELECT l, s, m, fl, fs, fm FROM ks.t").await,
            ["null null null [] [] {}"]
        );
    }
}

#[tokio::test]
async fn a_file_without_a_header_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v text)").await;
    let file = folder.path().join("f");
    for (bytes, is_expected) in [
        (
            &b""[..],
            (|error| matches!(error, CopyError::NoLine)) as fn(&CopyError) -> bool,
        ),
        (b"k,\xff\n", |error| matches!(error, CopyError::NotUtf8)),
        (b"k,\"v\n1,2\n", |error| {
            matches!(error, CopyError::Endless(Endless::Quote { .. }))
        }),
        (b"k,\"v\" x\n1,2\n", |error| matches!(error, CopyError::Header(_))),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let error = import(&client.database, ("ks", "t"), Form::Csv, &file, 9)
            .await
            .unwrap_err();
        assert!(is_expected(&error), "{error}");
    }
}
