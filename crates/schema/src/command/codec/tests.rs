//! Messages come back as they were sent; recorded ones are read by every later program; damaged ones are refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::limits::{FILTER_LEVELS_MAX, TYPE_LEVELS_MAX};
use super::{BoundWrites, Cut, DecodeError, EncodeError, Grouping, ReadRequest, TableName, Tables};
use crate::command::{
    Clustering, ClusteringRange, ColumnChange, ColumnMasks, Comparison, Condition, Expression, FeedPosition, FeedSweep,
    Filter, FilterTarget, IndexProbe, Partitions, Position, Predicate, Read, Selection, Value, Write, WriteTarget,
    WriteVerb,
};
use crate::schema::analysis::{Analysis, LetterCase, Tokens};
use crate::schema::words::Language;
use crate::schema::{Schema, Table, record};
use helenus_types::consistency::{Consistency, WriteKind};
use helenus_types::token::{KeyBound, KeySpan, Token};
use helenus_types::types::{CqlType, NATIVE_TYPES, Native, UserType, hex, unhex};

/// A receiver that has the tables of a recorded catalog.
struct Receiver {
    schema: Schema,
    masks: Option<Arc<ColumnMasks>>,
}

impl Receiver {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/catalog-1.json");
        let text = std::fs::read_to_string(path).unwrap();
        let records: Vec<(String, String)> = serde_json::from_str(&text).unwrap();
        let masks = ColumnMasks::from([(3, Expression::Constant(None))]);
        Self {
            schema: record::load(records).unwrap(),
            masks: Some(Arc::new(masks)),
        }
    }

    fn find(&self, name: &str) -> Arc<Table> {
        Arc::clone(self.schema.table("golden", name).unwrap())
    }
}

impl Tables for Receiver {
    fn table(&self, name: &TableName) -> Option<Arc<Table>> {
        self.schema.table_or_view(&name.keyspace, &name.name).cloned()
    }

    fn masks(&self, _: &Arc<Table>) -> Option<Arc<ColumnMasks>> {
        self.masks.clone()
    }
}

/// What a message says, whichever it is.
#[derive(Clone, Debug)]
enum Message {
    Read(Box<ReadRequest>),
    Writes(BoundWrites),
}

impl Message {
    fn encode(&self) -> Result<Bytes, EncodeError> {
        match self {
            Self::Read(request) => request.encode(),
            Self::Writes(writes) => writes.encode(),
        }
    }

    fn decode(bytes: &Bytes, tables: &Receiver) -> Result<Self, DecodeError> {
        match ReadRequest::decode(bytes, tables) {
            Err(DecodeError::Tag {
                of: "kind of message here",
                ..
            }) => BoundWrites::decode(bytes, tables).map(Self::Writes),
            read => read.map(Box::new).map(Self::Read),
        }
    }

    /// Everything that it holds.
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..6).prop_map(Bytes::from)
}

fn name() -> impl Strategy<Value = String> {
    "[a-z\u{e9}]{0,4}"
}

fn native() -> impl Strategy<Value = Native> {
    (0..NATIVE_TYPES.len()).prop_map(|number| NATIVE_TYPES[number].native)
}

fn cql_type() -> impl Strategy<Value = CqlType> {
    let leaf = prop_oneof![
        native().prop_map(CqlType::Native),
        name().prop_map(|class| CqlType::Custom(class.into()))
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|ty| CqlType::List(Arc::new(ty))),
            inner.clone().prop_map(|ty| CqlType::Set(Arc::new(ty))),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| CqlType::Map(Arc::new(key), Arc::new(value))),
            vec(inner.clone(), 0..3).prop_map(|fields| CqlType::Tuple(fields.into())),
            (name(), name(), vec((name(), inner.clone()), 0..3))
                .prop_map(|(keyspace, name, fields)| { CqlType::User(Arc::new(UserType { keyspace, name, fields })) }),
            (inner.clone(), any::<u32>()).prop_map(|(ty, length)| CqlType::Vector(Arc::new(ty), length)),
            inner.prop_map(|ty| CqlType::Frozen(Arc::new(ty))),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), Just(Value::Unset), bytes().prop_map(Value::Bytes)]
}

fn analysis() -> impl Strategy<Value = Analysis> {
    let tokens = prop_oneof![
        Just(Tokens::Whole),
        Just(Tokens::Words),
        any::<char>().prop_map(Tokens::Delimited)
    ];
    let case = prop_oneof![Just(LetterCase::Kept), Just(LetterCase::Lower), Just(LetterCase::Upper)];
    let language = || of("[a-z]{2}".prop_map(|code| Language::of_locale(&code).unwrap()));
    (tokens, case, any::<(bool, bool)>(), language(), language()).prop_map(
        |(tokens, case, (normalize, ascii), skips, stems)| Analysis {
            tokens,
            case,
            normalize,
            ascii,
            skips,
            stems,
        },
    )
}

const COMPARISONS: [Comparison; 10] = [
    Comparison::Eq,
    Comparison::Neq,
    Comparison::Lt,
    Comparison::Lte,
    Comparison::Gt,
    Comparison::Gte,
    Comparison::In,
    Comparison::Contains,
    Comparison::ContainsKey,
    Comparison::Like,
];

fn predicate(columns: usize) -> impl Strategy<Value = Predicate> {
    let column = 0..columns;
    let target = prop_oneof![
        column.clone().prop_map(FilterTarget::Column),
        (column.clone(), value()).prop_map(|(place, key)| FilterTarget::Element(place, key)),
        (column.clone(), 0_usize..9).prop_map(|(place, field)| FilterTarget::Field(place, field)),
        (column.clone(), analysis()).prop_map(|(place, analysis)| FilterTarget::Analysed(place, analysis)),
        vec(column, 0..3).prop_map(FilterTarget::Tuple),
        Just(FilterTarget::Token),
    ];
    let comparison = (0..COMPARISONS.len()).prop_map(|number| COMPARISONS[number]);
    (target, comparison, vec(value(), 0..3), cql_type()).prop_map(|(target, comparison, operands, ty)| Predicate {
        target,
        comparison,
        operands,
        ty,
    })
}

fn filter(columns: usize) -> impl Strategy<Value = Filter> {
    let leaf = predicate(columns).prop_map(Filter::Test);
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Filter::All),
            vec(inner.clone(), 0..3).prop_map(Filter::Any),
            inner.prop_map(|one| Filter::Not(Box::new(one))),
        ]
    })
}

fn rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..4), 0..4)
}

/// Sorted and disjoint ranges; the last may have no end.
fn ranges() -> impl Strategy<Value = Vec<ClusteringRange>> {
    (rows(), any::<bool>()).prop_map(|(mut bounds, is_open)| {
        bounds.sort();
        bounds.dedup();
        let mut ranges: Vec<ClusteringRange> = bounds
            .chunks_exact(2)
            .map(|pair| ClusteringRange {
                start: pair[0].clone(),
                end: Some(pair[1].clone()),
            })
            .collect();
        if let Some(last) = ranges.last_mut().filter(|_| is_open) {
            last.end = None;
        }
        ranges
    })
}

fn clustering() -> impl Strategy<Value = Clustering> {
    let keys = rows().prop_map(|mut rows| {
        rows.sort();
        rows.dedup();
        Clustering::Keys(rows)
    });
    prop_oneof![Just(Clustering::All), keys, ranges().prop_map(Clustering::Ranges)]
}

fn cut() -> impl Strategy<Value = Cut> {
    let bound = || (any::<i64>(), bytes()).prop_map(|(token, key)| KeyBound::at_key(Token::bound(token), &key));
    let span = (bound(), of(bound())).prop_filter_map("empty", |(start, end)| KeySpan::new(start, end));
    prop_oneof![bytes().prop_map(Cut::Key), span.prop_map(Cut::Span)]
}

fn position() -> impl Strategy<Value = Position> {
    let feed = of(
        (any::<i64>(), of((any::<i64>(), bytes()))).prop_map(|(after, sweep)| FeedPosition {
            after,
            sweep: sweep.map(|(until, reached)| FeedSweep { until, reached }),
        }),
    );
    let limits = any::<(bool, Option<u32>, Option<u32>, u16)>();
    (bytes(), of(bytes()), limits, feed).prop_map(|(partition_key, clustering, limits, feed)| Position {
        partition_key,
        clustering,
        of_one_partition: limits.0,
        limit_rows: limits.1,
        partition_limit_rows: limits.2,
        charge_left_micros: limits.3,
        feed,
    })
}

fn probe() -> impl Strategy<Value = IndexProbe> {
    (name(), any::<u32>(), ranges(), any::<bool>()).prop_map(|(index, storage_id, ranges, is_equality)| IndexProbe {
        index,
        storage_id,
        ranges,
        is_equality,
    })
}

fn read_request(table: Arc<Table>) -> impl Strategy<Value = ReadRequest> {
    let columns = table.columns.len();
    let grouping = prop_oneof![Just(Grouping::None), Just(Grouping::One), Just(Grouping::ByKey)];
    let what = (cut(), clustering(), filter(columns), vec(probe(), 0..3), grouping);
    let flags = any::<[bool; 5]>();
    let numbers = any::<(Option<u32>, Option<u64>, u64, Option<u64>, i64)>();
    let needed = proptest::sample::subsequence((0..columns).collect::<Vec<_>>(), 0..=columns);
    (what, flags, numbers, needed, of(position())).prop_map(move |(what, flags, numbers, needed, resume)| ReadRequest {
        table: Arc::clone(&table),
        needed,
        needs_metadata: flags[0],
        cut: what.0,
        rows: what.1,
        counts_static: flags[1],
        filter: what.2,
        probes: what.3,
        reversed: flags[2],
        distinct: flags[3],
        grouping: what.4,
        per_partition_limit_rows: numbers.0,
        resume,
        is_first: flags[4],
        rows_wanted: numbers.1,
        tombstones_before: numbers.2,
        tombstones_max: numbers.3,
        now_seconds: numbers.4,
    })
}

fn change() -> impl Strategy<Value = ColumnChange> {
    let elements = || vec(bytes(), 0..3);
    prop_oneof![
        value().prop_map(ColumnChange::Set),
        vec((of(bytes()), bytes()), 0..3).prop_map(ColumnChange::Replace),
        vec((bytes(), of(bytes())), 0..3).prop_map(ColumnChange::Put),
        elements().prop_map(ColumnChange::Remove),
        elements().prop_map(ColumnChange::Append),
        elements().prop_map(ColumnChange::Prepend),
        (any::<i32>(), of(bytes())).prop_map(|(at, value)| ColumnChange::SetAt(at, value)),
        elements().prop_map(ColumnChange::Discard),
        any::<i64>().prop_map(ColumnChange::Increment),
        Just(ColumnChange::Version),
        of(bytes()).prop_map(ColumnChange::Sum),
    ]
}

fn bound_write(table: Arc<Table>, masks: Option<Arc<ColumnMasks>>) -> impl Strategy<Value = Write> {
    let columns = table.columns.len();
    let verb = prop_oneof![
        Just(WriteVerb::Insert),
        Just(WriteVerb::Update),
        Just(WriteVerb::Delete)
    ];
    let target = prop_oneof![
        rows().prop_map(WriteTarget::Rows),
        Just(WriteTarget::Static),
        ranges().prop_map(WriteTarget::Ranges),
        Just(WriteTarget::Partition),
    ];
    let condition = prop_oneof![
        Just(Condition::Always),
        Just(Condition::Exists),
        Just(Condition::NotExists),
        vec(predicate(columns), 0..3).prop_map(Condition::Columns),
    ];
    let keys = proptest::collection::btree_set(bytes(), 0..3);
    let changes = vec((0..columns, change()), 0..4);
    let rest = any::<(bool, Option<i64>, Option<i32>, bool)>();
    (verb, keys, target, changes, condition, vec(0..columns, 0..3), rest).prop_map(
        move |(kind, keys, target, operations, condition, condition_columns, rest)| Write {
            table: Arc::clone(&table),
            kind,
            partition_keys: keys.into_iter().collect(),
            target,
            operations,
            names_static: rest.0,
            timestamp: rest.1,
            ttl_seconds: rest.2,
            condition,
            condition_columns,
            masks: masks.clone().filter(|_| rest.3),
        },
    )
}

fn level() -> impl Strategy<Value = Consistency> {
    let levels = Consistency::ALL.into_iter().chain([Consistency::NodeLocal]);
    proptest::sample::select(levels.collect::<Vec<_>>())
}

fn bound_writes(receiver: &Receiver) -> impl Strategy<Value = BoundWrites> + use<> {
    let of_table = |name| bound_write(receiver.find(name), receiver.masks.clone());
    let write = prop_oneof![of_table("wide"), of_table("collections"), of_table("counters")];
    let levels = (level(), level(), proptest::sample::select(WriteKind::ALL.to_vec()));
    let times = any::<(bool, Option<i64>, i64, i64)>();
    (vec(write, 0..4), times, levels).prop_map(|(writes, times, levels)| BoundWrites {
        writes,
        is_batch: times.0,
        timestamp_micros: times.1,
        now_seconds: times.2,
        now_micros: times.3,
        consistency: levels.0,
        serial_consistency: levels.1,
        write_kind: levels.2,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let receiver = Receiver::new();
    prop_oneof![
        read_request(receiver.find("collections")).prop_map(|read| Message::Read(Box::new(read))),
        bound_writes(&receiver).prop_map(Message::Writes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_message_comes_back_as_it_was_sent(message in message()) {
        let receiver = Receiver::new();
        let bytes = message.encode().unwrap();
        let again = Message::decode(&bytes, &receiver).unwrap();
        prop_assert_eq!(again.shown(), message.shown());
        prop_assert_eq!(again.encode().unwrap(), bytes);
    }

    #[test]
    fn a_message_is_refused_when_it_is_cut_or_followed(message in message(), at in any::<prop::sample::Index>()) {
        let receiver = Receiver::new();
        let bytes = message.encode().unwrap();
        prop_assert!(Message::decode(&bytes.slice(..at.index(bytes.len())), &receiver).is_err());
        let longer: Bytes = [bytes.as_ref(), b"\0"].concat().into();
        prop_assert_eq!(Message::decode(&longer, &receiver).unwrap_err(), DecodeError::Trailing { bytes: 1 });
    }

    /// What can be read at all has one form only.
    #[test]
    fn a_message_with_a_changed_byte_is_another_message_or_none(
        message in message(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let receiver = Receiver::new();
        let mut bytes = message.encode().unwrap().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let bytes = Bytes::from(bytes);
        if let Ok(other) = Message::decode(&bytes, &receiver) {
            prop_assert_eq!(other.encode().unwrap(), bytes);
        }
    }
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn int(number: i32) -> Value {
    Value::Bytes(number.to_be_bytes().to_vec().into())
}

fn test(target: FilterTarget, comparison: Comparison, operands: Vec<Value>, ty: CqlType) -> Predicate {
    Predicate {
        target,
        comparison,
        operands,
        ty,
    }
}

const INT: CqlType = CqlType::Native(Native::Int);

/// A read whose every field differs from its default.
#[expect(clippy::too_many_lines, reason = "a value with every field set")]
fn full_read(receiver: &Receiver) -> ReadRequest {
    let range = |start: &str, end: Option<&str>| ClusteringRange {
        start: start.into(),
        end: end.map(Into::into),
    };
    let pair = UserType {
        keyspace: "golden".to_owned(),
        name: "pair".to_owned(),
        fields: vec![("a".to_owned(), INT), ("b".to_owned(), CqlType::Native(Native::Text))],
    };
    let pair = CqlType::User(Arc::new(pair));
    let analysis = Analysis {
        tokens: Tokens::Delimited(','),
        case: LetterCase::Lower,
        normalize: true,
        ascii: true,
        skips: Language::of_locale("en"),
        stems: Language::of_locale("de"),
    };
    let words = CqlType::Map(Arc::new(CqlType::Native(Native::Text)), Arc::new(INT));
    let tuple = CqlType::Tuple([INT, CqlType::Vector(Arc::new(INT), 3)].into());
    let filter = Filter::All(vec![
        Filter::Test(test(FilterTarget::Column(4), Comparison::Gte, vec![int(1)], INT)),
        Filter::Any(vec![
            Filter::Not(Box::new(Filter::Test(test(
                FilterTarget::Element(3, Value::Bytes(text("k"))),
                Comparison::In,
                vec![Value::Null, Value::Unset, int(2)],
                CqlType::Frozen(Arc::new(words)),
            )))),
            Filter::Test(test(FilterTarget::Field(2, 1), Comparison::Eq, vec![int(3)], pair)),
        ]),
        Filter::Test(test(
            FilterTarget::Analysed(1, analysis),
            Comparison::Like,
            vec![Value::Bytes(text("%a%"))],
            CqlType::List(Arc::new(CqlType::Custom("org.example.Type".into()))),
        )),
        Filter::Test(test(
            FilterTarget::Tuple(vec![1, 2]),
            Comparison::Lt,
            vec![int(4)],
            tuple,
        )),
        Filter::Test(test(
            FilterTarget::Token,
            Comparison::Neq,
            vec![],
            CqlType::Set(Arc::new(CqlType::Native(Native::Bigint))),
        )),
    ]);
    let one = KeyBound::at_key(Token::bound(0), b"a");
    let other = KeyBound::at_key(Token::bound(0), b"m");
    ReadRequest {
        table: receiver.find("indexed"),
        needed: vec![0, 3, 4],
        needs_metadata: true,
        cut: Cut::Span(KeySpan::new(one, Some(other)).unwrap()),
        rows: Clustering::Ranges(vec![range("a", Some("b")), range("b", None)]),
        counts_static: true,
        filter,
        probes: vec![IndexProbe {
            index: "indexed_v".to_owned(),
            storage_id: 1035,
            ranges: vec![range("c", Some("d"))],
            is_equality: true,
        }],
        reversed: true,
        distinct: true,
        grouping: Grouping::ByKey,
        per_partition_limit_rows: Some(5),
        resume: Some(Position {
            partition_key: text("b"),
            clustering: Some(text("c")),
            of_one_partition: true,
            limit_rows: Some(6),
            partition_limit_rows: Some(7),
            charge_left_micros: 8,
            feed: Some(FeedPosition {
                after: 9,
                sweep: Some(FeedSweep {
                    until: 10,
                    reached: text("d"),
                }),
            }),
        }),
        is_first: false,
        rows_wanted: Some(11),
        tombstones_before: 12,
        tombstones_max: Some(13),
        now_seconds: 1_700_000_000,
    }
}

/// An insert of one row.
fn insert(table: Arc<Table>, operations: Vec<(usize, ColumnChange)>) -> Write {
    Write {
        table,
        kind: WriteVerb::Insert,
        partition_keys: vec![text("k")],
        target: WriteTarget::Rows(vec![b"c".to_vec()]),
        operations,
        names_static: false,
        timestamp: None,
        ttl_seconds: None,
        condition: Condition::Always,
        condition_columns: Vec::new(),
        masks: None,
    }
}

fn alone(write: Write, write_kind: WriteKind) -> BoundWrites {
    BoundWrites {
        writes: vec![write],
        is_batch: false,
        timestamp_micros: None,
        now_seconds: 1_700_000_000,
        now_micros: 1_700_000_000_000_000,
        consistency: Consistency::Quorum,
        serial_consistency: Consistency::Serial,
        write_kind,
    }
}

/// A batch with every change of a column, on several tables.
fn batch(receiver: &Receiver) -> BoundWrites {
    let changes = [
        ColumnChange::Set(Value::Unset),
        ColumnChange::Replace(vec![(None, text("a")), (Some(text("b")), text("c"))]),
        ColumnChange::Put(vec![(text("d"), None), (text("e"), Some(text("f")))]),
        ColumnChange::Remove(vec![text("g")]),
        ColumnChange::Append(vec![text("h")]),
        ColumnChange::Prepend(vec![text("i"), text("j")]),
        ColumnChange::SetAt(-1, Some(text("k"))),
        ColumnChange::Discard(vec![text("l")]),
        ColumnChange::Version,
        ColumnChange::Sum(Some(text("m"))),
    ];
    let (collections, wide) = (receiver.find("collections"), receiver.find("wide"));
    let erased = |target| Write {
        kind: WriteVerb::Delete,
        target,
        timestamp: Some(15),
        ..insert(Arc::clone(&wide), Vec::new())
    };
    let range = ClusteringRange {
        start: b"a".to_vec(),
        end: None,
    };
    BoundWrites {
        writes: vec![
            insert(collections, changes.into_iter().enumerate().collect()),
            erased(WriteTarget::Ranges(vec![range])),
            erased(WriteTarget::Partition),
            Write {
                kind: WriteVerb::Update,
                target: WriteTarget::Static,
                names_static: true,
                ttl_seconds: Some(60),
                ..insert(Arc::clone(&wide), vec![(3, ColumnChange::Set(Value::Null))])
            },
        ],
        is_batch: true,
        timestamp_micros: Some(14),
        ..alone(insert(Arc::clone(&wide), Vec::new()), WriteKind::Batch)
    }
}

/// The recorded messages: their names and what they say.
fn samples(receiver: &Receiver) -> Vec<(&'static str, Message)> {
    let read = |request| Message::Read(Box::new(request));
    let wide = receiver.find("wide");
    let selection = Arc::new(Selection::of_columns(&wide, &[4, 0]));
    let plain = Read::new(Arc::clone(&wide), selection, Partitions::WHOLE_RING);
    let looked_up = ReadRequest {
        rows: Clustering::Keys(vec![b"a".to_vec(), b"b".to_vec()]),
        grouping: Grouping::One,
        ..ReadRequest::of(&plain, Cut::Key(text("k")), 1)
    };
    let tests = vec![test(FilterTarget::Column(4), Comparison::Neq, vec![Value::Null], INT)];
    let conditional = |condition| {
        let write = Write {
            condition,
            condition_columns: vec![4],
            masks: receiver.masks.clone(),
            ..insert(Arc::clone(&wide), vec![(4, ColumnChange::Set(int(1)))])
        };
        Message::Writes(alone(write, WriteKind::Cas))
    };
    let counter = insert(receiver.find("counters"), vec![(1, ColumnChange::Increment(-2))]);
    vec![
        (
            "read-ring",
            read(ReadRequest::of(&plain, Cut::Span(KeySpan::whole()), 1)),
        ),
        ("read-keys", read(looked_up)),
        ("read-full", read(full_read(receiver))),
        ("write-counter", Message::Writes(alone(counter, WriteKind::Counter))),
        ("write-batch", Message::Writes(batch(receiver))),
        ("write-if-values", conditional(Condition::Columns(tests))),
        ("write-if-exists", conditional(Condition::Exists)),
        ("write-if-not-exists", conditional(Condition::NotExists)),
    ]
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command/codec/golden/messages")
}

/// `UPDATE_GOLDENFILES=1` records the messages anew: only with another version of the format.
#[test]
fn recorded_messages_are_read() {
    let receiver = Receiver::new();
    let samples = samples(&receiver);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some_and(|value| value == "1") {
        let mut lines = String::new();
        for (name, message) in &samples {
            writeln!(lines, "{name} {}", hex(&message.encode().unwrap())).unwrap();
        }
        std::fs::write(recorded(), lines).unwrap();
    }
    let lines = std::fs::read_to_string(recorded()).unwrap();
    let lines: BTreeMap<&str, &str> = lines.lines().filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(lines.len(), samples.len());
    for (name, message) in &samples {
        let bytes = Bytes::from(unhex(lines[name]).unwrap());
        let decoded = Message::decode(&bytes, &receiver).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded.shown(), message.shown(), "{name}");
        assert_eq!(message.encode().unwrap(), bytes, "{name}");
    }
}

#[test]
fn message_is_refused_when_the_receivers_table_differs() {
    let mut receiver = Receiver::new();
    let message = alone(
        Write {
            masks: receiver.masks.clone(),
            ..insert(receiver.find("wide"), Vec::new())
        },
        WriteKind::Simple,
    );
    let bytes = message.encode().unwrap();
    let name = TableName::of(&receiver.find("wide"));
    let refusal = |receiver: &Receiver| BoundWrites::decode(&bytes, receiver).unwrap_err();

    receiver.masks = None;
    assert_eq!(refusal(&receiver), DecodeError::NoMasks(name.clone()));

    let mut keyspace = receiver.schema.keyspaces.get("golden").unwrap().as_ref().clone();
    let mut table = receiver.find("wide").as_ref().clone();
    Arc::make_mut(&mut table.columns[4]).ty = CqlType::Native(Native::Text);
    keyspace.tables.insert(table.name.clone(), Arc::new(table));
    receiver.schema = receiver.schema.with_keyspace(keyspace);
    assert_eq!(refusal(&receiver), DecodeError::OtherDefinition(name.clone()));

    receiver.schema = receiver.schema.without_keyspace("golden");
    assert_eq!(refusal(&receiver), DecodeError::NoTable(name));
}

#[test]
fn message_is_refused_when_its_version_or_kind_is_another() {
    let receiver = Receiver::new();
    let bytes = full_read(&receiver).encode().unwrap();
    assert!(matches!(
        BoundWrites::decode(&bytes, &receiver),
        Err(DecodeError::Tag { found: 1, .. })
    ));
    let mut newer = bytes.to_vec();
    newer[0] = 2;
    let refused = ReadRequest::decode(&newer.into(), &receiver).unwrap_err();
    assert_eq!(refused, DecodeError::Version { found: 2, known: 1 });
}

#[test]
fn command_is_refused_when_a_filter_or_type_is_too_deep() {
    let receiver = Receiver::new();
    let mut request = full_read(&receiver);
    let nested = |levels| (1..levels).fold(Filter::NONE, |inner, _| Filter::Not(Box::new(inner)));
    request.filter = nested(FILTER_LEVELS_MAX.most);
    let bytes = request.encode().unwrap();
    assert_eq!(ReadRequest::decode(&bytes, &receiver).unwrap(), request);
    request.filter = nested(FILTER_LEVELS_MAX.most + 1);
    assert_eq!(request.encode().unwrap_err().items, FILTER_LEVELS_MAX.items);

    let nested = |levels| (1..levels).fold(INT, |inner, _| CqlType::Frozen(Arc::new(inner)));
    let on = |ty| Filter::Test(test(FilterTarget::Token, Comparison::Eq, Vec::new(), ty));
    request.filter = on(nested(TYPE_LEVELS_MAX.most));
    let bytes = request.encode().unwrap();
    assert_eq!(ReadRequest::decode(&bytes, &receiver).unwrap(), request);
    request.filter = on(nested(TYPE_LEVELS_MAX.most + 1));
    assert_eq!(request.encode().unwrap_err().items, TYPE_LEVELS_MAX.items);
}

/// A part reads the same, whether it borrows the statement's command or the one that travelled.
#[test]
fn decoded_request_lends_the_command_that_it_was_made_of() {
    let receiver = Receiver::new();
    let request = full_read(&receiver);
    let read = request.to_read();
    let again = ReadRequest {
        resume: request.resume.clone(),
        is_first: request.is_first,
        rows_wanted: request.rows_wanted,
        tombstones_before: request.tombstones_before,
        tombstones_max: request.tombstones_max,
        ..ReadRequest::of(&read, request.cut.clone(), request.now_seconds)
    };
    assert_eq!(again, request);
    for grouping in [Grouping::None, Grouping::One] {
        let request = ReadRequest {
            grouping,
            ..request.clone()
        };
        let read = request.to_read();
        assert_eq!(ReadRequest::of(&read, request.cut.clone(), 0).grouping, grouping);
    }
}
