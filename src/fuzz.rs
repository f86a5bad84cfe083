//! Fuzz targets: functions that take any bytes and must never panic.
//!
//! Each target parses the bytes as the server would, and checks a property of valid input: printing or encoding the
//! value and parsing it again gives the same value. Two drivers run them:
//!
//! - `cargo test --lib fuzz`: some seconds each, by seeded mutation of the corpus, on stable Rust. A campaign:
//!   `HELENUS_FUZZ_SECONDS=3600 HELENUS_FUZZ_SEED=7 cargo test --release --lib fuzz`. A failing input is written to a
//!   file and named; after the fix it goes to `tests/fixtures/fuzz/<target>/`, whose files are replayed first.
//! - libFuzzer, guided by coverage, on nightly: `compat/fuzz/` (see its Cargo.toml).
//!
//! The corpus: the grammar's golden scripts, the recorded catalog and messages, frames and rows made here. Servers do not contain
//! this module: only tests and the feature `fuzz` have it.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use helenus_cql::cql::paging_state::{PagingKey, StateDigest};
use helenus_schema::command::ColumnMasks;
use helenus_schema::command::codec::{BoundWrites, ReadRequest, TableName, Tables};
use helenus_schema::schema::record::{changes, load};
use helenus_schema::schema::{Schema, Table};
use helenus_storage::storage::row::{Cell, CellState, ColumnId, Deletion, Expiry, Marker, Row, RowView, merge_encoded};
use helenus_types::types::unhex;
use helenus_types::wire::Header;
use helenus_types::wire::frame::{Decoder, Inbound};
use helenus_types::wire::request::{
    AuthResponse, Batch, BatchStatement, EventKind, Execute, Params, Prepare, Query, Register, Request, Startup,
    Subject, Values,
};
use helenus_types::wire::value::{BatchType, Consistency, Value};
use helenus_types::wire::{Compression, Version};

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name in commands and folders.
    pub name: &'static str,
    /// Panics if the bytes reveal a bug.
    pub run: fn(&[u8]),
    /// Inputs that reach deep code, as a start for mutation.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Every target.
pub const TARGETS: [Target; 6] = [
    Target {
        name: "frames",
        run: frames,
        seeds: frame_seeds,
    },
    Target {
        name: "cql",
        run: cql,
        seeds: cql_seeds,
    },
    Target {
        name: "rows",
        run: rows,
        seeds: row_seeds,
    },
    Target {
        name: "paging",
        run: paging,
        seeds: paging_seeds,
    },
    Target {
        name: "catalog",
        run: catalog,
        seeds: catalog_seeds,
    },
    Target {
        name: "messages",
        run: messages,
        seeds: message_seeds,
    },
];

/// Runs the target of that name, for an external driver.
///
/// # Panics
/// There is no such target.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("the name of a target").run)(data);
}

/// Most bytes of a body here: small, so that limits are met.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A connection: the first byte chooses what STARTUP negotiated and how the bytes are cut; the rest is what the client
/// sends. A request that is parsed, written and parsed again is the same.
fn frames(data: &[u8]) {
    let Some((settings, bytes)) = data.split_first() else {
        return;
    };
    let mut decoder = Decoder::new(BODY_BYTES_MAX);
    let compression = match settings >> 1 & 3 {
        0 => None,
        1 => Some(Compression::Snappy),
        _ => Some(Compression::Lz4),
    };
    if settings & 1 != 0 {
        let version = if settings & 8 == 0 { Version::V4 } else { Version::V5 };
        decoder.negotiated(version, compression);
    }
    let step = usize::from(settings >> 4).max(1) * 7;
    for chunk in bytes.chunks(step) {
        decoder.buffer().extend_from_slice(chunk);
        loop {
            match decoder.next_inbound() {
                Ok(Some(Inbound::Envelope(header, body))) => request(&header, &body),
                Ok(Some(Inbound::Unreadable(..) | Inbound::TooBig(_))) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// The property concerns bytes: named values with empty names are written as positional ones, which means the same.
fn request(header: &Header, body: &Bytes) {
    let Ok(request) = Request::parse(header, body) else {
        return;
    };
    let write = |request: &Request<'_>| {
        let mut bytes = Vec::new();
        request.write(&mut bytes, header.version);
        Bytes::from(bytes)
    };
    let first = write(&request);
    let header = Header {
        flags: 0,
        length: first.len(),
        ..*header
    };
    match Request::parse(&header, &first) {
        Ok(again) => assert_eq!(write(&again), first),
        Err(error) => panic!("what was written cannot be read: {error}: {first:?}"),
    }
}

/// A statement that is parsed and printed parses to the same; a term and a type as well.
fn cql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(statement) = grammar::parse(&text) {
        let printed = statement.to_string();
        assert_eq!(grammar::parse(&printed).as_ref(), Ok(&statement), "{printed}");
    }
    if let Ok(term) = grammar::parse_term(&text) {
        let printed = term.to_string();
        assert_eq!(grammar::parse_term(&printed).as_ref(), Ok(&term), "{printed}");
    }
    if let Ok(ty) = grammar::parse_type(&text) {
        let printed = ty.to_string();
        assert_eq!(grammar::parse_type(&printed).as_ref(), Ok(&ty), "{printed}");
    }
}

/// Two rows. The view in place agrees with the decoded row; encoding returns the row; merging bytes commutes and equals
/// merging rows.
fn rows(data: &[u8]) {
    let (first, rest) = data
        .split_first()
        .map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let (a, b) = rest.split_at(first.min(rest.len()));
    let decoded = [a, b].map(|bytes| {
        let row = Row::decode(bytes);
        let view = RowView::parse(bytes).and_then(|view| {
            // Every way to read it, whatever the result.
            drop((
                view.marker(),
                view.deletion(),
                view.is_live(7, None),
                view.is_live(7, Some(7)),
            ));
            view.to_row()
        });
        assert_eq!(row.is_ok(), view.is_ok(), "one way reads what the other does not");
        if let (Ok(row), Ok(view)) = (&row, view) {
            // Damaged bytes may hold cells that their own deletion shadows; encoding drops them.
            let row = row.clone().canonical();
            assert_eq!(row, view.canonical());
            assert_eq!(Row::decode(&row.encode()).ok(), Some(row));
        }
        row.ok().map(Row::canonical)
    });
    // The raw bytes must only not panic.
    drop((merge_encoded(a, b), merge_encoded(b, a)));
    if let [Some(a), Some(b)] = decoded {
        let (a_bytes, b_bytes) = (a.encode(), b.encode());
        let merged = |a: &[u8], b: &[u8]| merge_encoded(a, b).and_then(|bytes| Row::decode(&bytes)).ok();
        let (ab, ba) = (merged(&a_bytes, &b_bytes), merged(&b_bytes, &a_bytes));
        assert_eq!(ab, ba, "the order of merging matters");
        assert_eq!(ab, Some(Row::merge(a, b)), "merged bytes are not merged rows");
    }
}

const PAGING_KEY: PagingKey = PagingKey([7; 16]);

/// A paging state with a random checksum is refused; one with the right checksum is read, and sealing it again gives
/// the same position.
fn paging(data: &[u8]) {
    let table: StateDigest = data
        .get(1..)
        .and_then(|rest| rest.first_chunk().copied())
        .unwrap_or_default();
    assert!(
        PAGING_KEY.open(table, || table, &Bytes::copy_from_slice(data)).is_err(),
        "forged"
    );
    if let Ok(position) = PAGING_KEY.open(table, || table, &PAGING_KEY.with_checksum(data)) {
        let again = PAGING_KEY.seal(table, &position);
        assert_eq!(PAGING_KEY.open(table, || table, &again).ok(), Some(position));
    }
}

/// Records: `key length u8 · key · value length u16 · value`, repeated. A schema that is loaded and written loads as
/// the same.
fn catalog(data: &[u8]) {
    let mut records = Vec::new();
    let mut rest = data;
    while let Some((record, left)) = record(rest) {
        records.push(record);
        rest = left;
    }
    let (Ok(empty), Ok(schema)) = (load(Vec::<(&[u8], &[u8])>::new()), load(records)) else {
        return;
    };
    let written = |schema: &Schema| -> Vec<(Vec<u8>, Vec<u8>)> {
        let changes = changes(&empty, schema).into_iter();
        changes.filter_map(|change| Some((change.key, change.value?))).collect()
    };
    let first = written(&schema);
    match load(first.clone()) {
        Ok(again) => assert_eq!(written(&again), first),
        Err(error) => panic!("what was written cannot be read: {error}"),
    }
}

/// A message between machines. What can be decoded is encoded as the same bytes.
fn messages(data: &[u8]) {
    let message = Bytes::copy_from_slice(data);
    if let Ok(request) = ReadRequest::decode(&message, &*RECEIVER) {
        assert_eq!(request.encode().as_ref(), Ok(&message), "{request:?}");
        let read = request.to_read();
        let again = ReadRequest::of(&read, request.cut.clone(), request.now_seconds);
        assert_eq!(again.filter, request.filter, "it lends another command");
    }
    if let Ok(writes) = BoundWrites::decode(&message, &*RECEIVER) {
        assert_eq!(writes.encode().as_ref(), Ok(&message), "{writes:?}");
    }
}

/// A receiver with the tables of the recorded catalog.
struct Receiver(Schema);

static RECEIVER: LazyLock<Receiver> = LazyLock::new(|| Receiver(load(recorded_catalog()).unwrap_or_default()));

impl Tables for Receiver {
    fn table(&self, name: &TableName) -> Option<Arc<Table>> {
        self.0.table_or_view(&name.keyspace, &name.name).cloned()
    }

    fn masks(&self, _: &Arc<Table>) -> Option<Arc<ColumnMasks>> {
        Some(Arc::default())
    }
}

/// A record's key and value, then the bytes after it.
type Record<'a> = ((&'a [u8], &'a [u8]), &'a [u8]);

fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (length, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some(((key, value), rest))
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let value = |bytes: &'static [u8]| Value::Bytes(Bytes::from_static(bytes));
    let params = || Params {
        values: Values::Positional(vec![value(b"\0\0\0\x01"), Value::Null, value(b"")]),
        page_size_rows: Some(100),
        paging_state: Some(Bytes::from_static(b"state")),
        serial_consistency: Some(Consistency::LocalSerial),
        default_timestamp_micros: Some(7),
        ..Params::default()
    };
    let text = "INSERT INTO ks.t (k, v) VALUES (?, ?)";
    let requests = [
        Request::Startup(Startup {
            options: vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "lz4")],
        }),
        Request::AuthResponse(AuthResponse {
            token: Some(Bytes::from_static(b"\0user\0password")),
        }),
        Request::Options,
        Request::Query(Query { text, params: params() }),
        Request::Prepare(Prepare {
            text,
            keyspace: Some("ks"),
        }),
        Request::Execute(Execute {
            id: b"0123456789abcdef",
            result_metadata_id: Some(b"fedcba9876543210"),
            params: Params {
                values: Values::Named(vec![("k", value(b"k")), ("v", Value::Unset)]),
                ..params()
            },
        }),
        Request::Batch(Batch {
            batch_type: BatchType::Logged,
            statements: vec![
                BatchStatement {
                    subject: Subject::Text(text),
                    values: vec![value(b"k"), value(b"v")],
                },
                BatchStatement {
                    subject: Subject::Prepared(b"0123456789abcdef"),
                    values: vec![Value::Null],
                },
            ],
            consistency: Consistency::Quorum,
            serial_consistency: Some(Consistency::Serial),
            default_timestamp_micros: Some(7),
            keyspace: None,
            now_in_seconds: None,
        }),
        Request::Register(Register {
            kinds: vec![EventKind::SchemaChange, EventKind::StatusChange],
        }),
    ];
    let mut seeds = Vec::new();
    for version in Version::ALL {
        let mut together = vec![0xF0];
        for request in &requests {
            let mut alone = vec![0xF0];
            request.write_frame(&mut alone, version, 1, 0);
            together.extend_from_slice(alone.get(1..).unwrap_or_default());
            seeds.push(alone);
        }
        seeds.push(together);
    }
    seeds
}

const GOLDEN: [&str; 6] = [
    include_str!("../grammar/golden/select"),
    include_str!("../grammar/golden/modify"),
    include_str!("../grammar/golden/create"),
    include_str!("../grammar/golden/alter"),
    include_str!("../grammar/golden/term"),
    include_str!("../grammar/golden/type"),
];

fn cql_seeds() -> Vec<Vec<u8>> {
    let lines = GOLDEN.iter().flat_map(|script| script.lines());
    let commands = lines.filter_map(|line| line.split_once("> "));
    commands.map(|(_, text)| text.as_bytes().to_vec()).collect()
}

fn row_seeds() -> Vec<Vec<u8>> {
    let expiry = Some(Expiry {
        at_seconds: 1_700_000_000,
        ttl_seconds: 60,
    });
    let deletion = |timestamp| Deletion {
        timestamp,
        at_seconds: 1_700_000_000,
    };
    let cell = |column, path: Option<&'static [u8]>, timestamp, state| Cell {
        column: ColumnId(column),
        path: path.map(Bytes::from_static),
        timestamp,
        state,
    };
    let live = |value: &'static [u8], expiry| CellState::Live {
        value: Bytes::from_static(value),
        expiry,
    };
    let plain = Row {
        marker: Some(Marker {
            timestamp: 5,
            expiry: None,
        }),
        cells: vec![
            cell(1, None, 5, live(b"value", None)),
            cell(40, None, 9, live(b"", expiry)),
        ],
        ..Row::default()
    };
    let full = Row {
        marker: Some(Marker { timestamp: 8, expiry }),
        deletion: Some(deletion(4)),
        complex: vec![(ColumnId(2), deletion(6))],
        cells: vec![
            cell(1, None, 7, CellState::Tombstone { at_seconds: 9 }),
            cell(2, Some(b"a"), 7, live(b"x", None)),
            cell(2, Some(b"b"), 9, live(b"y", expiry)),
        ],
        position: Some(12),
    };
    let encoded = [plain.encode(), full.encode(), Row::default().encode()];
    let pairs = encoded.iter().flat_map(|a| encoded.iter().map(move |b| (a, b)));
    pairs
        .map(|(a, b)| {
            let mut seed = vec![u8::try_from(a.len()).unwrap_or(u8::MAX)];
            seed.extend_from_slice(a);
            seed.extend_from_slice(b);
            seed
        })
        .collect()
}

fn paging_seeds() -> Vec<Vec<u8>> {
    use helenus_schema::command::Position;
    let with = |clustering: Option<&'static [u8]>, limit_rows, charge_left_micros| Position {
        partition_key: Bytes::from_static(b"partition"),
        clustering: clustering.map(Bytes::from_static),
        of_one_partition: charge_left_micros == 3,
        limit_rows,
        partition_limit_rows: limit_rows,
        charge_left_micros,
        feed: None,
    };
    [
        with(None, None, 0),
        with(Some(b"row"), Some(7), 3),
        with(Some(b""), None, 9),
    ]
    .iter()
    .map(|position| {
        let state = PAGING_KEY.seal([1; 8], position);
        state.get(..state.len() - 8).unwrap_or_default().to_vec()
    })
    .collect()
}

fn recorded_catalog() -> Vec<(String, String)> {
    let text = include_str!("../tests/fixtures/catalog-1.json");
    serde_json::from_str(text).unwrap_or_default()
}

fn message_seeds() -> Vec<Vec<u8>> {
    let lines = include_str!("../crates/schema/src/command/codec/golden/messages").lines();
    let messages = lines.filter_map(|line| unhex(line.split_once(' ')?.1));
    messages.collect()
}

fn catalog_seeds() -> Vec<Vec<u8>> {
    let encoded: Vec<(bool, Vec<u8>)> = recorded_catalog()
        .iter()
        .filter_map(|(key, value)| {
            let mut bytes = vec![u8::try_from(key.len()).ok()?];
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(&u16::try_from(value.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(value.as_bytes());
            Some((matches!(key.as_bytes().first(), Some(b'k' | b'y')), bytes))
        })
        .collect();
    // Each table with the keyspace and the types that it needs, and all together.
    let base: Vec<u8> = encoded
        .iter()
        .filter(|(is_base, _)| *is_base)
        .flat_map(|(_, bytes)| bytes.clone())
        .collect();
    let alone = encoded.iter().map(|(_, bytes)| [base.as_slice(), bytes].concat());
    let all: Vec<u8> = encoded.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    alone.chain([all]).collect()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::assembly::run::THREAD_STACK_BYTES;
    use helenus_base::clock::Clock;

    /// Most bytes of an input.
    const INPUT_BYTES_MAX: usize = 64 * 1024;

    /// Values at boundaries of lengths and counts.
    const EDGES: [u8; 8] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF, 0x20, 0x27];

    /// Changes some bytes of an input, or inserts some of another.
    fn mutate(random: &mut fastrand::Rng, input: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..=random.usize(0..4) {
            let at = random.usize(0..=input.len());
            let span = |random: &mut fastrand::Rng, of: usize| {
                let from = random.usize(0..=of);
                from..of.min(from + random.usize(0..=32))
            };
            match random.u8(0..8) {
                0 | 1 if at < input.len() => input[at] ^= 1 << random.u8(0..8),
                2 if at < input.len() => input[at] = EDGES[random.usize(0..EDGES.len())],
                3 if at + 4 <= input.len() => {
                    let number = random.choice([0, 1, -1, i32::MAX, i32::MIN, 0xFFFF]).unwrap_or(0);
                    input[at..at + 4].copy_from_slice(&number.to_be_bytes());
                }
                4 => drop(input.drain(span(random, input.len()))),
                5 => {
                    let copied = input[span(random, input.len())].to_vec();
                    input.splice(at..at, copied);
                }
                6 => {
                    let taken = other[span(random, other.len())].to_vec();
                    input.splice(at..at, taken);
                }
                _ => input.insert(at, random.u8(..)),
            }
        }
        input.truncate(INPUT_BYTES_MAX);
    }

    fn keep(target: Target, input: &[u8], seed: u64) -> ! {
        let path = std::env::temp_dir().join(format!("helenus-fuzz-{}-{seed}", target.name));
        std::fs::write(&path, input).unwrap();
        panic!(
            "{}: an input of {} bytes fails: {}",
            target.name,
            input.len(),
            path.display()
        );
    }

    /// Runs a target over its corpus and this many mutated inputs; with HELENUS_FUZZ_SECONDS for that time instead.
    fn campaign(name: &str, inputs: u64) {
        let target = *TARGETS.iter().find(|target| target.name == name).unwrap();
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seconds = number("HELENUS_FUZZ_SECONDS").map(Duration::from_secs);
        let seed = number("HELENUS_FUZZ_SEED").unwrap_or(1);
        let work = move || {
            let mut corpus = (target.seeds)();
            let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/fixtures/fuzz")
                .join(target.name);
            for entry in std::fs::read_dir(kept).into_iter().flatten() {
                corpus.push(std::fs::read(entry.unwrap().path()).unwrap());
            }
            let fails = |input: &[u8]| catch_unwind(|| (target.run)(input)).is_err();
            for input in &corpus {
                if fails(input) {
                    keep(target, input, seed);
                }
            }
            let mut random = fastrand::Rng::with_seed(seed);
            let clock = Clock::system();
            let mut done = 0;
            while seconds.map_or(done < inputs, |seconds| clock.monotonic() < seconds) {
                let mut input = corpus[random.usize(0..corpus.len())].clone();
                let other = &corpus[random.usize(0..corpus.len())];
                mutate(&mut random, &mut input, other);
                if fails(&input) {
                    keep(target, &input, seed);
                }
                done += 1;
            }
            done
        };
        let thread = std::thread::Builder::new()
            .stack_size(THREAD_STACK_BYTES)
            .spawn(work)
            .unwrap();
        let done = thread.join().unwrap();
        println!("{name}: {done} inputs, seed {seed}");
        assert!(done > 0);
    }

    #[test]
    fn frames_hold() {
        campaign("frames", 40_000);
    }

    #[test]
    fn cql_holds() {
        campaign("cql", 6_000);
    }

    #[test]
    fn rows_hold() {
        campaign("rows", 40_000);
    }

    #[test]
    fn paging_states_hold() {
        campaign("paging", 20_000);
    }

    #[test]
    fn catalog_records_hold() {
        campaign("catalog", 400);
    }

    #[test]
    fn messages_hold() {
        assert_eq!(message_seeds().len(), 8);
        for seed in message_seeds() {
            let seed = Bytes::from(seed);
            let is_read = ReadRequest::decode(&seed, &*RECEIVER).is_ok();
            assert!(is_read || BoundWrites::decode(&seed, &*RECEIVER).is_ok());
        }
        campaign("messages", 40_000);
    }

    /// Writes the seeds as files to the directory in HELENUS_FUZZ_CORPUS, for libFuzzer; otherwise only counts them.
    #[test]
    fn the_corpus_is_whole() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(
                seeds.len() > 2 && seeds.iter().all(|seed| !seed.is_empty()),
                "{}",
                target.name
            );
            let Some(folder) = std::env::var_os("HELENUS_FUZZ_CORPUS") else {
                continue;
            };
            let folder = Path::new(&folder).join(target.name);
            std::fs::create_dir_all(&folder).unwrap();
            for (number, seed) in seeds.iter().enumerate() {
                std::fs::write(folder.join(number.to_string()), seed).unwrap();
            }
        }
    }

    #[test]
    fn a_fault_would_be_found() {
        let target = Target {
            name: "seeded",
            run: |data| assert!(!data.windows(2).any(|pair| pair == [0xFF, 0xFF]), "found"),
            seeds: || vec![vec![0; 16]],
        };
        let mut random = fastrand::Rng::with_seed(1);
        let found = (0..2_000).any(|_| {
            let mut input = vec![0; 16];
            mutate(&mut random, &mut input, &[1; 16]);
            catch_unwind(|| (target.run)(&input)).is_err()
        });
        assert!(found);
    }
}
