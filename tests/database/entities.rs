//! Entities of a table service: what the store of the second front end means, beside what CQL sees of it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_engine::engine::Boundary;
use helenus_engine::partition::faults::Plan;
use helenus_tables::tables::edm::{Edm, Ticks, compare_utf16};
use helenus_tables::tables::entity::{Entity, KeyBounds};
use helenus_tables::tables::fault::Fault;
use helenus_tables::tables::filter::Filter;
use helenus_tables::tables::operation::{Asker, Match, Operation, PlanKind, Query, Refused, Verb};
use helenus_tables::tables::rate::Targets;
use helenus_tables::tables::store::{Settings, Store};

use crate::support::Client;

const ASKER: Asker<'static> = Asker {
    account: "acc",
    client: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7),
};

/// A database with an account's store over it.
struct Both {
    client: Client,
    store: Store,
}

impl Both {
    async fn open(url: &str) -> Self {
        Self::with(url, Settings::default()).await
    }

    async fn with(url: &str, settings: Settings) -> Self {
        let client = Client::open_at(url, Clock::manual(1_700_000_000_000_000)).await;
        let store = Store::new(Arc::clone(client.database.engine()), settings);
        Self { client, store }
    }

    /// With the table `people`.
    async fn people(self) -> Self {
        self.store.create_table(&ASKER, "people").await.unwrap();
        self
    }

    async fn write(&self, operations: &[Operation]) -> Result<Vec<i64>, Refused> {
        let written = self.store.write(&ASKER, "people", operations).await?;
        Ok(written.versions)
    }

    async fn one(&self, operation: Operation) -> Result<i64, Fault> {
        let written = self.write(&[operation]).await;
        written.map(|versions| versions[0]).map_err(|refused| refused.fault)
    }

    async fn get(&self, partition_key: &str, row_key: &str) -> Result<Entity, Fault> {
        let found = self.store.get(&ASKER, "people", partition_key, row_key).await;
        found.map(|found| found.entity)
    }

    async fn all(&self, filter: &str, top: u32) -> Vec<Entity> {
        self.all_of(&query(filter, top)).await
    }

    /// All pages of a query.
    async fn all_of(&self, query: &Query) -> Vec<Entity> {
        let (mut found, mut query) = (Vec::new(), query.clone());
        loop {
            let page = self.store.query(&ASKER, "people", &query).await.unwrap();
            assert!(page.entities.len() <= query.top.unwrap() as usize);
            found.extend(page.entities);
            query.from = page.next;
            if query.from.is_none() {
                return found;
            }
        }
    }
}

fn query(filter: &str, top: u32) -> Query {
    Query {
        filter: (!filter.is_empty()).then(|| Filter::parse(filter).unwrap()),
        top: Some(top),
        ..Query::default()
    }
}

fn entity(partition_key: &str, row_key: &str, properties: &[(&str, Edm)]) -> Entity {
    let mut entity = Entity::new(partition_key.to_owned(), row_key.to_owned());
    entity.properties = properties
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    entity
}

fn operation(verb: Verb, condition: Match, entity: Entity) -> Operation {
    Operation {
        verb,
        entity,
        condition,
    }
}

fn number(value: i32) -> [(&'static str, Edm); 1] {
    [("n", Edm::Int32(value))]
}

#[tokio::test]
async fn each_operation_does_what_its_name_says() {
    let both = Both::open("memory:").await.people().await;
    let bad = |version| Match::Tag(version - 1);
    let of = |verb, condition, properties: &[(&str, Edm)]| operation(verb, condition, entity("p", "r", properties));
    let (insert, update, merge) = (Verb::Insert, Verb::Update, Verb::Merge);
    assert_eq!(both.get("p", "r").await, Err(Fault::ResourceNotFound));
    for verb in [update, merge, Verb::Delete] {
        assert_eq!(both.one(of(verb, Match::Any, &[])).await, Err(Fault::ResourceNotFound));
        assert_eq!(
            both.one(of(verb, Match::Tag(5), &[])).await,
            Err(Fault::ResourceNotFound)
        );
    }
    let many = [("a", Edm::String("é".to_owned())), ("n", Edm::Int32(1))];
    let first = both.one(of(insert, Match::None, &many)).await.unwrap();
    assert_eq!(
        both.one(of(insert, Match::None, &many)).await,
        Err(Fault::EntityAlreadyExists)
    );
    let found = both.get("p", "r").await.unwrap();
    assert_eq!((found.version_micros, found.properties.len()), (first, 2));
    for verb in [update, merge, Verb::Delete] {
        let refused = both.one(of(verb, bad(first), &number(9))).await;
        assert_eq!(refused, Err(Fault::UpdateConditionNotSatisfied), "{verb:?}");
    }
    let second = both
        .one(of(merge, Match::Tag(first), &[("b", Edm::Boolean(true))]))
        .await
        .unwrap();
    let found = both.get("p", "r").await.unwrap();
    assert!(second > first && found.version_micros == second);
    let names: Vec<&str> = found.properties.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "n"]);
    let third = both.one(of(update, Match::Any, &number(3))).await.unwrap();
    assert_eq!(
        both.get("p", "r").await.unwrap().properties,
        entity("", "", &number(3)).properties
    );
    let fourth = both
        .one(of(Verb::InsertOrMerge, Match::None, &[("c", Edm::Int64(4))]))
        .await
        .unwrap();
    assert_eq!(both.get("p", "r").await.unwrap().properties.len(), 2);
    let fifth = both.one(of(Verb::InsertOrReplace, Match::None, &[])).await.unwrap();
    assert!(third < fourth && fourth < fifth);
    assert!(both.get("p", "r").await.unwrap().properties.is_empty());
    both.one(of(Verb::Delete, Match::Tag(fifth), &[])).await.unwrap();
    assert_eq!(both.get("p", "r").await, Err(Fault::ResourceNotFound));
    for verb in [Verb::InsertOrMerge, Verb::InsertOrReplace] {
        let again = both.one(of(verb, Match::None, &number(5))).await.unwrap();
        assert!(again > fifth);
        assert_eq!(both.get("p", "r").await.unwrap().property("n"), Some(&Edm::Int32(5)));
        both.one(of(Verb::Delete, Match::Any, &[])).await.unwrap();
    }
}

#[tokio::test]
async fn values_of_all_types_and_empty_keys_come_back() {
    let both = Both::open("memory:").await.people().await;
    let values = [
        ("a", Edm::String(String::new())),
        ("b", Edm::String("x".repeat(32 * 1024))),
        ("c", Edm::Int32(i32::MIN)),
        ("d", Edm::Int64(i64::MAX)),
        ("e", Edm::Double(f64::INFINITY)),
        ("f", Edm::Boolean(false)),
        ("g", Edm::DateTime(Ticks::parse("1601-01-01T00:00:00Z").unwrap())),
        ("h", Edm::Guid(uuid::Uuid::from_u128(7))),
        ("i", Edm::Binary(Bytes::from(vec![0xFF; 64 * 1024]))),
    ];
    for (partition, row) in [("", ""), ("", "r"), ("p", ""), ("p'\u{1F600}", "r r")] {
        let written = entity(partition, row, &values);
        let version = both
            .one(operation(Verb::Insert, Match::None, written.clone()))
            .await
            .unwrap();
        let found = both.get(partition, row).await.unwrap();
        assert_eq!(
            found,
            Entity {
                version_micros: version,
                ..written
            }
        );
    }
    assert_eq!(both.all("PartitionKey eq ''", 1).await.len(), 2);
    assert_eq!(both.all("", 1).await.len(), 4);
}

#[tokio::test]
async fn a_group_is_all_or_nothing_and_names_the_first_that_fails() {
    let both = Both::open("memory:").await.people().await;
    let of = |verb, condition, row: &str, value| operation(verb, condition, entity("p", row, &number(value)));
    let inserts: Vec<Operation> = (0..50)
        .map(|n| of(Verb::Insert, Match::None, &format!("{n:02}"), n))
        .collect();
    let versions = both.write(&inserts).await.unwrap();
    assert_eq!(versions.len(), 50);
    let tag = Match::Tag(versions[0]);
    let group = |last| {
        vec![
            of(Verb::InsertOrReplace, Match::None, "new", 1),
            of(Verb::Update, tag, "01", 100),
            of(Verb::Delete, Match::Any, "02", 0),
            of(Verb::Merge, tag, "03", 100),
            last,
        ]
    };
    for (last, fault) in [
        (of(Verb::Insert, Match::None, "04", 1), Fault::EntityAlreadyExists),
        (of(Verb::Update, Match::Any, "gone", 1), Fault::ResourceNotFound),
        (of(Verb::Merge, Match::Tag(1), "gone", 1), Fault::ResourceNotFound),
        (
            of(Verb::Merge, Match::Tag(1), "05", 1),
            Fault::UpdateConditionNotSatisfied,
        ),
    ] {
        let refused = both.write(&group(last)).await.unwrap_err();
        assert_eq!(refused, Refused { index: 4, fault });
        let rows = both.all("", 1000).await;
        assert_eq!(rows.len(), 50);
        assert!(rows.iter().all(|row| row.version_micros == versions[0]));
    }
    let done = both
        .write(&group(of(Verb::Insert, Match::None, "last", 1)))
        .await
        .unwrap();
    let rows = both.all("", 1000).await;
    assert_eq!(rows.len(), 51);
    let changed = rows.iter().filter(|row| row.version_micros == done[0]).count();
    assert_eq!((changed, done.len()), (4, 5));
}

#[tokio::test]
async fn tables_are_listed_and_named_in_any_case() {
    let both = Both::open("memory:").await;
    let store = &both.store;
    assert_eq!(store.tables(&ASKER, None, 10).await.unwrap(), (Vec::new(), None));
    for name in ["Zoo", "apple", "Mid"] {
        store.create_table(&ASKER, name).await.unwrap();
    }
    assert_eq!(store.create_table(&ASKER, "ZOO").await, Err(Fault::TableAlreadyExists));
    assert_eq!(
        store.tables(&ASKER, None, 2).await.unwrap(),
        (vec!["apple".into(), "Mid".into()], Some("Zoo".into()))
    );
    assert_eq!(
        store.tables(&ASKER, Some("Zoo"), 2).await.unwrap(),
        (vec!["Zoo".into()], None)
    );
    assert_eq!(store.table(&ASKER, "zoo").await.unwrap(), Some("Zoo".to_owned()));
    let insert = operation(Verb::Insert, Match::None, entity("p", "r", &[]));
    assert!(store.write(&ASKER, "zOO", std::slice::from_ref(&insert)).await.is_ok());
    let refused = store
        .write(&ASKER, "other", std::slice::from_ref(&insert))
        .await
        .unwrap_err();
    assert_eq!(
        refused,
        Refused {
            index: 0,
            fault: Fault::TableNotFound
        }
    );
    store.delete_table(&ASKER, "zoo").await.unwrap();
    assert_eq!(store.delete_table(&ASKER, "zoo").await, Err(Fault::ResourceNotFound));
    // Made again at once, it is empty.
    store.create_table(&ASKER, "Zoo").await.unwrap();
    let page = store.query(&ASKER, "Zoo", &query("", 10)).await.unwrap();
    assert!(page.entities.is_empty() && page.next.is_none());
    let other = Asker {
        account: "other",
        ..ASKER
    };
    assert_eq!(store.tables(&other, None, 10).await.unwrap(), (Vec::new(), None));
    assert_eq!(store.setting(&ASKER, "cors").await, Ok(None));
    for value in [Some(Bytes::from_static(b"x")), Some(Bytes::from_static(b"y")), None] {
        store.set_setting(&ASKER, "cors", value.clone()).await.unwrap();
        assert_eq!(store.setting(&ASKER, "cors").await, Ok(value));
    }
    assert_eq!(store.tables(&ASKER, None, 10).await.unwrap().0.len(), 3);
}

#[tokio::test]
async fn a_partition_above_its_target_is_busy_until_time_has_passed() {
    let settings = Settings {
        targets: Some(Targets::OF_2011),
        ..Settings::default()
    };
    let both = Both::with("memory:", settings).await.people().await;
    let row = |n: i32| {
        operation(
            Verb::InsertOrReplace,
            Match::None,
            entity("p", &n.to_string(), &number(n)),
        )
    };
    let mut written = 0;
    let busy = loop {
        match both.write(&(0..100).map(row).collect::<Vec<_>>()).await {
            Ok(versions) => written += versions.len(),
            Err(refused) => break refused,
        }
    };
    assert_eq!(
        busy,
        Refused {
            index: 0,
            fault: Fault::ServerBusy
        }
    );
    // A burst of two seconds.
    assert_eq!(written, 1100);
    assert_eq!(both.get("p", "1").await, Err(Fault::ServerBusy));
    assert_eq!(both.get("q", "1").await, Err(Fault::ResourceNotFound));
    let of_partition = query("PartitionKey eq 'p'", 1000);
    let refused = both.store.query(&ASKER, "people", &of_partition).await;
    assert_eq!(refused.unwrap_err(), Fault::ServerBusy);
    both.client.clock.advance(std::time::Duration::from_secs(1));
    let page = both.store.query(&ASKER, "people", &of_partition).await.unwrap();
    assert_eq!(page.entities.len(), 100);
}

#[tokio::test]
async fn a_range_that_is_loaded_elsewhere_is_busy() {
    let both = Both::open("memory:").await.people().await;
    split(&both, "m").await;
    let of = |partition| operation(Verb::InsertOrReplace, Match::None, entity(partition, "r", &number(1)));
    for partition in ["a", "z"] {
        both.one(of(partition)).await.unwrap();
    }
    let upper = both.client.database.engine().figures().partitions();
    let upper = upper
        .iter()
        .find(|part| part.table == "people" && part.upper_key.is_none())
        .unwrap()
        .id;
    let plan = format!(
        "[[fault]]\naction = 'offload'\nkeyspace = 'tables_acc'\ntable = 'people'\npartition = {upper}\nuntil-ms = 5000"
    );
    let nodes = both.client.database.engine().nodes();
    nodes.set_plan(Plan::from_toml(&plan).unwrap()).unwrap();
    assert_eq!(both.get("z", "r").await, Err(Fault::OperationTimedOut));
    assert_eq!(both.get("z", "r").await, Err(Fault::ServerBusy));
    assert_eq!(both.one(of("z")).await, Err(Fault::ServerBusy));
    assert!(both.get("a", "r").await.is_ok() && both.one(of("a")).await.is_ok());
    both.client.clock.advance(std::time::Duration::from_secs(6));
    assert!(both.get("z", "r").await.is_ok());
}

#[tokio::test]
async fn a_range_that_was_split_is_offline_for_some_seconds() {
    let settings = Settings {
        reload: Some(std::time::Duration::from_secs(5)),
        ..Settings::default()
    };
    let both = Both::with("memory:", settings).await.people().await;
    let of = |partition| operation(Verb::InsertOrReplace, Match::None, entity(partition, "r", &number(1)));
    for partition in ["a", "z"] {
        both.one(of(partition)).await.unwrap();
    }
    split(&both, "m").await;
    for partition in ["a", "z"] {
        assert_eq!(both.get(partition, "r").await, Err(Fault::OperationTimedOut));
        assert_eq!(both.one(of(partition)).await, Err(Fault::ServerBusy));
    }
    both.client.clock.advance(std::time::Duration::from_secs(6));
    for partition in ["a", "z"] {
        both.one(of(partition)).await.unwrap();
    }
}

/// Keys on both sides of the surrogates.
fn key(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 9] = ["0", "A", "a", "z", "é", "\u{D7FF}", "\u{E000}", "\u{FFFD}", "\u{1F600}"];
    (0..random.usize(0..4))
        .map(|_| PIECES[random.usize(..PIECES.len())])
        .collect()
}

type Keys = (String, String);

fn ordered(one: &Keys, other: &Keys) -> std::cmp::Ordering {
    compare_utf16(&one.0, &other.0).then_with(|| compare_utf16(&one.1, &other.1))
}

fn keys_of(entities: &[Entity]) -> Vec<Keys> {
    let keys = entities
        .iter()
        .map(|entity| (entity.partition_key.clone(), entity.row_key.clone()));
    keys.collect()
}

async fn split(both: &Both, at: &str) {
    let split = format!("ALTER TABLE tables_acc.people WITH helenus_split_at = '{at}'");
    // A partition may begin there.
    drop(both.client.run(&split, Default::default()).await);
}

/// 10,000 random keys come in the order of UTF-16, and a query goes on from every key.
async fn order_and_continuation(url: &str, entities: usize) {
    let settings = Settings {
        page_boundary: Some(Boundary::Range),
        ..Settings::default()
    };
    let both = Both::with(url, settings).await.people().await;
    let mut random = fastrand::Rng::with_seed(7);
    let mut by_partition: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..entities {
        let place = (key(&mut random), format!("{}{}", key(&mut random), random.u8(..)));
        if keys.insert(place.clone()) {
            by_partition.entry(place.0).or_default().push(place.1);
        }
    }
    for (partition, rows) in &by_partition {
        for group in rows.chunks(100) {
            let insert = |row: &String| operation(Verb::Insert, Match::None, entity(partition, row, &number(1)));
            let group: Vec<Operation> = group.iter().map(insert).collect();
            both.write(&group).await.unwrap();
        }
    }
    let mut keys: Vec<Keys> = keys.into_iter().collect();
    keys.sort_by(ordered);
    for _ in 0..6 {
        assert!(
            keys_of(&both.all("", 1000).await) == keys,
            "{entities} keys out of order"
        );
        split(&both, &keys[random.usize(..keys.len())].0).await;
    }
    for at in (0..keys.len()).step_by(if entities > 1000 { 101 } else { 1 }) {
        let mut from = query("", 1000);
        let (partition_key, row_key) = keys[at].clone();
        from.from = Some(helenus_tables::tables::operation::Place {
            partition_key,
            row_key: Some(row_key),
        });
        assert!(keys_of(&both.all_of(&from).await) == keys[at..], "from key {at}");
    }
    for _ in 0..60 {
        let (one, other) = (key(&mut random), key(&mut random));
        let top = random.u32(1..1001);
        let filter = format!("PartitionKey ge '{one}' and PartitionKey lt '{other}' and n eq 1");
        let parsed = Filter::parse(&filter).unwrap();
        let of = |keys: &&Keys| parsed.matches(&entity(&keys.0, &keys.1, &number(1)));
        let expected: Vec<Keys> = keys.iter().filter(of).cloned().collect();
        assert!(keys_of(&both.all(&filter, top).await) == expected, "{filter}");
        let bounds = KeyBounds {
            partition_from: Some(one.clone()),
            row_from: Some(other.clone()),
            ..KeyBounds::default()
        };
        let inside = keys.iter().filter(|(partition, row)| bounds.contains(partition, row));
        let inside: Vec<Keys> = inside.cloned().collect();
        let mut narrowed = query("", top.max(100));
        narrowed.bounds = Some(bounds.clone());
        assert!(keys_of(&both.all_of(&narrowed).await) == inside, "{bounds:?}");
    }
}

#[tokio::test]
async fn results_come_in_the_order_of_utf16_and_go_on_from_every_key() {
    order_and_continuation("memory:", 10_000).await;
}

#[tokio::test]
async fn results_come_in_order_from_files_too() {
    let folder = tempfile::tempdir().unwrap();
    order_and_continuation(&format!("file:{}", folder.path().display()), 700).await;
}

/// The store finds what a test of every entity finds.
#[tokio::test]
async fn filters_find_what_a_test_of_every_entity_finds() {
    let both = Both::open("memory:").await.people().await;
    let mut random = fastrand::Rng::with_seed(11);
    let mut entities = Vec::new();
    for number in 0..400 {
        let value = [
            Edm::Int32(number % 7),
            Edm::Int64(i64::from(number % 5)),
            Edm::Double(f64::from(number % 3)),
            Edm::String((number % 4).to_string()),
        ];
        let values = [
            ("n", value[random.usize(..4)].clone()),
            ("b", Edm::Boolean(random.bool())),
        ];
        let values = &values[..random.usize(..3)];
        let written = entity(&format!("p{}", number % 8), &format!("r{number:03}"), values);
        both.one(operation(Verb::Insert, Match::None, written.clone()))
            .await
            .unwrap();
        entities.push(written);
    }
    entities.sort_by(|one, other| (&one.partition_key, &one.row_key).cmp(&(&other.partition_key, &other.row_key)));
    let literals = ["'p3'", "'r100'", "3", "3L", "2.0", "true", "'2'"];
    for case in 0..400 {
        let mut test = || {
            let name = ["PartitionKey", "RowKey", "n", "b", "missing"][random.usize(..5)];
            let sign = ["eq", "ne", "gt", "ge", "lt", "le"][random.usize(..6)];
            let test = format!("{name} {sign} {}", literals[random.usize(..literals.len())]);
            if random.u8(..5) == 0 {
                format!("not ({test})")
            } else {
                test
            }
        };
        let (one, two, three) = (test(), test(), test());
        let sign = |random: &mut fastrand::Rng| if random.bool() { "and" } else { "or" };
        let (first, second) = (sign(&mut random), sign(&mut random));
        let filter = format!("{one} {first} ({two} {second} {three})");
        let parsed = Filter::parse(&filter).unwrap();
        let expected: Vec<&Entity> = entities.iter().filter(|entity| parsed.matches(entity)).collect();
        let top = [20, 150, 1000][case % 3];
        let found = both.all(&filter, top).await;
        let keys =
            |entities: Vec<&Entity>| -> Vec<String> { entities.iter().map(|entity| entity.row_key.clone()).collect() };
        assert_eq!(keys(found.iter().collect()), keys(expected), "{filter}");
        if case == 200 {
            both.client
                .ok("CREATE INDEX by_property ON tables_acc.people (ENTRIES(properties))")
                .await;
            both.client.built().await;
        }
    }
}

#[tokio::test]
async fn a_page_ends_where_it_must() {
    let settings = Settings {
        page_boundary: Some(Boundary::Range),
        ..Settings::default()
    };
    let both = Both::with("memory:", settings).await.people().await;
    for partition in ["a", "b", "c"] {
        let insert = |n: i32| {
            operation(
                Verb::Insert,
                Match::None,
                entity(partition, &format!("{n:04}"), &number(n)),
            )
        };
        let rows: Vec<Operation> = (0..100).map(insert).collect();
        both.write(&rows).await.unwrap();
    }
    let page = |filter: &'static str, top| {
        let store = &both.store;
        async move { store.query(&ASKER, "people", &query(filter, top)).await.unwrap() }
    };
    let whole = page("", 300).await;
    assert_eq!(
        (whole.entities.len(), &whole.next, whole.plan),
        (300, &None, PlanKind::TableScan)
    );
    let cut = page("", 299).await;
    assert_eq!(cut.next.unwrap().row_key.as_deref(), Some("0099"));
    split(&both, "b").await;
    let first = page("", 1000).await;
    let next = first.next.unwrap();
    assert_eq!(
        (first.entities.len(), next.partition_key.as_str(), next.row_key),
        (100, "b", None)
    );
    // Nothing in the first range matches: the page is empty, and goes on.
    let empty = page("n eq 5 and PartitionKey ne 'a'", 1000).await;
    assert_eq!(empty.entities.len(), 0);
    assert_eq!(both.all("n eq 5 and PartitionKey ne 'a'", 1000).await.len(), 2);
    assert_eq!(page("PartitionKey eq 'b'", 1000).await.plan, PlanKind::RowRange);
    let large = Edm::Binary(Bytes::from(vec![1; 60_000]));
    let values: Vec<(String, Edm)> = (0..15).map(|n| (format!("x{n}"), large.clone())).collect();
    for row in 0..6 {
        let mut entity = entity("z", &row.to_string(), &[]);
        entity.properties = values.clone();
        both.one(operation(Verb::Insert, Match::None, entity)).await.unwrap();
    }
    let page = page("PartitionKey eq 'z'", 1000).await;
    assert!((4..6).contains(&page.entities.len()) && page.next.is_some());
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn cql_sees_entities_and_its_writes_renew_their_versions() {
    let both = Both::open("memory:").await.people().await;
    let values = [("age", Edm::Int32(39)), ("name", Edm::String("Ann".to_owned()))];
    let first = both
        .one(operation(Verb::Insert, Match::None, entity("p", "r", &values)))
        .await
        .unwrap();
    let client = &both.client;
    let seen = client
        .rows(r#"SELECT properties['age'].i, version FROM tables_acc.people WHERE "PartitionKey" = 'p'"#)
        .await;
    assert_eq!(seen, [format!("39 {first}")]);
    let described = client.rows("DESCRIBE TABLE tables_acc.people").await.concat();
    assert!(described.contains("placement = 'ordered'"), "{described}");
    let mut last = first;
    for write in [
        r#"UPDATE tables_acc.people SET properties['age'] = {i: 40} WHERE "PartitionKey" = 'p' AND "RowKey" = 'r'"#,
        r#"UPDATE tables_acc.people SET properties = properties - {'name'} WHERE "PartitionKey" = 'p' AND "RowKey" = 'r' IF EXISTS"#,
        r#"DELETE properties['age'] FROM tables_acc.people WHERE "PartitionKey" = 'p' AND "RowKey" = 'r' IF EXISTS"#,
        r#"INSERT INTO tables_acc.people ("PartitionKey", "RowKey", properties) VALUES ('p', 'r', {'n': {l: 5}})"#,
        r#"INSERT INTO tables_acc.people JSON '{"\"PartitionKey\"": "p", "\"RowKey\"": "r", "properties": {"n": {"i": 5}}}'"#,
        r#"BEGIN BATCH UPDATE tables_acc.people SET properties['x'] = {b: true} WHERE "PartitionKey" = 'p' AND "RowKey" = 'r'; APPLY BATCH"#,
    ] {
        client.ok(write).await;
        let now = both.get("p", "r").await.unwrap();
        assert!(now.version_micros > last, "{write}");
        let stale = operation(Verb::Merge, Match::Tag(last), entity("p", "r", &[]));
        assert_eq!(
            both.one(stale).await,
            Err(Fault::UpdateConditionNotSatisfied),
            "{write}"
        );
        last = now.version_micros;
    }
    let now = both.get("p", "r").await.unwrap();
    assert_eq!(
        now.properties,
        entity("", "", &[("n", Edm::Int32(5)), ("x", Edm::Boolean(true))]).properties
    );
    // A client's clock that is behind does not keep the version where it was.
    let late = helenus_cql::cql::QueryParams {
        timestamp_micros: Some(5),
        ..Default::default()
    };
    let write =
        r#"UPDATE tables_acc.people SET properties['n'] = {i: 6} WHERE "PartitionKey" = 'p' AND "RowKey" = 'r'"#;
    client.run(write, late).await.unwrap();
    let changed = both.get("p", "r").await.unwrap();
    assert!(changed.version_micros > last && changed.property("n") == Some(&Edm::Int32(6)));
    let row = r#"WHERE "PartitionKey" = 'p' AND "RowKey" = 'r'"#;
    for (write, refusal) in [
        (
            format!("UPDATE tables_acc.people USING TIMESTAMP 5 SET properties['n'] = {{i: 6}} {row}"),
            "USING TIMESTAMP",
        ),
        (
            format!("UPDATE tables_acc.people USING TTL 5 SET properties['n'] = {{i: 6}} {row}"),
            "USING TTL",
        ),
        (
            format!("UPDATE tables_acc.people SET version = 5 {row}"),
            "cannot be set",
        ),
        (
            format!("DELETE properties['n'] FROM tables_acc.people {row}"),
            "needs IF",
        ),
        (format!("DELETE version FROM tables_acc.people {row}"), "cannot be set"),
        (
            format!("DELETE version FROM tables_acc.people {row} IF EXISTS"),
            "cannot be set",
        ),
    ] {
        let text = client.refused(&write).await;
        assert!(text.contains(refusal), "{write}: {text}");
    }
    client.ok(&format!("DELETE FROM tables_acc.people {row}")).await;
    assert_eq!(both.get("p", "r").await, Err(Fault::ResourceNotFound));
    for n in 0..3 {
        both.one(operation(Verb::Insert, Match::None, entity("p", &n.to_string(), &[])))
            .await
            .unwrap();
    }
    client
        .ok(r#"DELETE FROM tables_acc.people WHERE "PartitionKey" = 'p' AND "RowKey" > '0'"#)
        .await;
    assert_eq!(both.all("", 10).await.len(), 1);
    client
        .ok(r#"DELETE FROM tables_acc.people WHERE "PartitionKey" IN ('p', 'q')"#)
        .await;
    assert!(both.all("", 10).await.is_empty());
}

#[tokio::test]
async fn a_table_that_cql_makes_is_served() {
    let both = Both::open("memory:").await.people().await;
    let client = &both.client;
    let layout = r#"("PartitionKey" text, "RowKey" text, properties map<text, frozen<edm>>, version bigint, note text,
        PRIMARY KEY ("PartitionKey", "RowKey"))"#;
    client.ok("USE tables_acc").await;
    client
        .ok(&format!(
            "CREATE TABLE tables_acc.\"Made\" {layout} WITH placement = 'ordered'"
        ))
        .await;
    client.ok(&format!("CREATE TABLE tables_acc.\"Hashed\" {layout}")).await;
    let (names, _) = both.store.tables(&ASKER, None, 10).await.unwrap();
    assert_eq!(names, ["Made", "people"]);
    let insert = operation(Verb::Insert, Match::None, entity("p", "r", &number(1)));
    both.store.write(&ASKER, "made", &[insert]).await.unwrap();
    assert_eq!(
        client
            .rows(r#"SELECT note, properties['n'].i FROM tables_acc."Made""#)
            .await,
        ["null 1"]
    );
}

#[tokio::test]
async fn no_change_of_the_schema_takes_a_table_from_its_service() {
    let both = Both::open("memory:").await.people().await;
    let insert = operation(Verb::Insert, Match::None, entity("p", "r", &number(1)));
    both.one(insert).await.unwrap();
    let client = &both.client;
    for (change, refusal) in [
        ("ALTER TYPE tables_acc.edm ADD z int", "stays as it is"),
        ("ALTER TYPE tables_acc.edm RENAME i TO j", "stays as it is"),
        ("ALTER TABLE tables_acc.people DROP properties", "holds entities"),
        ("ALTER TABLE tables_acc.people DROP version", "holds entities"),
        (
            r#"ALTER TABLE tables_acc.people RENAME "RowKey" TO rk"#,
            "holds entities",
        ),
        (
            "ALTER TABLE tables_acc.people WITH default_time_to_live = 1",
            "holds entities",
        ),
    ] {
        let text = client.refused(change).await;
        assert!(text.contains(refusal), "{change}: {text}");
    }
    client.ok("ALTER TABLE tables_acc.people ADD note text").await;
    client.ok("ALTER TABLE tables_acc.people WITH comment = 'x'").await;
    assert_eq!(both.get("p", "r").await.unwrap().property("n"), Some(&Edm::Int32(1)));
}

#[tokio::test]
async fn what_no_property_can_be_called_is_left_out() {
    let both = Both::open("memory:").await.people().await;
    both.client
        .ok(r#"INSERT INTO tables_acc.people ("PartitionKey", "RowKey", properties)
            VALUES ('p', 'r', {'PartitionKey': {s: 'q'}, 'Timestamp': {i: 1}, 'a-b': {i: 2}, '': {i: 3}, 'ok': {i: 4}})"#)
        .await;
    let found = both.get("p", "r").await.unwrap();
    assert_eq!(found.properties, entity("", "", &[("ok", Edm::Int32(4))]).properties);
}

/// Writers of groups, of single entities and of CQL, while the table is split, moved and merged: nothing is half, no version falls.
async fn groups_under_writers(url: &str) {
    const ROWS: usize = 10;
    let both = Arc::new(Both::open(url).await.people().await);
    let mut writers = Vec::new();
    for writer in 0..6 {
        let both = Arc::clone(&both);
        writers.push(tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(writer);
            let mut done = 0;
            for round in 0..60 {
                let partition = ["k", "m", "q"][random.usize(..3)];
                let value = i32::try_from(writer).unwrap() * 1000 + round;
                let row = |n: usize| entity(partition, &format!("{n}"), &number(value));
                let group: Vec<Operation> = (0..ROWS)
                    .map(|n| operation(Verb::InsertOrReplace, Match::None, row(n)))
                    .collect();
                let mut failing = group.clone();
                failing.push(operation(Verb::Update, Match::Any, entity(partition, "never", &[])));
                assert_eq!(both.write(&failing).await.unwrap_err().index, ROWS);
                both.write(&group).await.unwrap();
                done += 1;
                tokio::task::yield_now().await;
            }
            done
        }));
    }
    let watcher = {
        let both = Arc::clone(&both);
        tokio::spawn(async move {
            let mut versions: BTreeMap<Keys, i64> = BTreeMap::new();
            for _ in 0..150 {
                for partition in ["k", "m", "q"] {
                    let filter = format!("PartitionKey eq '{partition}'");
                    let rows = both.all(&filter, 1000).await;
                    assert!(rows.is_empty() || rows.len() == ROWS, "{} rows", rows.len());
                    for row in &rows {
                        assert_eq!(row.properties, rows[0].properties, "half a group");
                        let place = (row.partition_key.clone(), row.row_key.clone());
                        let before = versions.insert(place, row.version_micros).unwrap_or_default();
                        assert!(row.version_micros >= before, "a version fell");
                    }
                }
                tokio::task::yield_now().await;
            }
        })
    };
    for at in ["l", "n", "r", "k", "q"] {
        split(&both, at).await;
        tokio::task::yield_now().await;
    }
    for table in both.client.database.engine().figures().partitions() {
        if table.table == "people" {
            both.client
                .ok(&format!(
                    "ALTER TABLE tables_acc.people WITH helenus_lift = {}",
                    table.id
                ))
                .await;
        }
    }
    for writer in writers {
        assert_eq!(writer.await.unwrap(), 60);
    }
    watcher.await.unwrap();
    assert_eq!(both.all("", 1000).await.len(), 3 * ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn groups_are_whole_under_writers_and_splits() {
    groups_under_writers("memory:").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn groups_are_whole_under_writers_splits_and_moves_in_files() {
    let folder = tempfile::tempdir().unwrap();
    groups_under_writers(&format!("file:{}", folder.path().display())).await;
}

/// Of writers that read, add one and write with the tag that they read, none loses an addition.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tags_lose_no_update() {
    let both = Arc::new(Both::open("memory:").await.people().await);
    both.one(operation(Verb::Insert, Match::None, entity("p", "r", &number(0))))
        .await
        .unwrap();
    let add = |both: Arc<Both>, by_cql: bool| async move {
        for _ in 0..50 {
            loop {
                let now = both.get("p", "r").await.unwrap();
                let Some(Edm::Int32(value)) = now.property("n").cloned() else {
                    panic!("{now:?}")
                };
                let next = entity("p", "r", &number(value + 1));
                let verb = if by_cql { Verb::Merge } else { Verb::Update };
                match both.one(operation(verb, Match::Tag(now.version_micros), next)).await {
                    Ok(_) => break,
                    Err(Fault::UpdateConditionNotSatisfied) => {}
                    Err(fault) => panic!("{fault}"),
                }
            }
        }
    };
    let writers: Vec<_> = (0..4)
        .map(|n| tokio::spawn(add(Arc::clone(&both), n % 2 == 0)))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(both.get("p", "r").await.unwrap().property("n"), Some(&Edm::Int32(200)));
}
