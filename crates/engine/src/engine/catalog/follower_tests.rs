//! A follower makes of changed records alone the snapshot that the writer published.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::snapshot::Snapshot;
use crate::engine::{
    CatalogRecords, ClockRules, Engine, NoTables, Options, SizeLimits, ThroughputRules, changed_records,
};
use crate::throughput::Coefficients;
use helenus_base::clock::Clock;
use helenus_schema::command::PartitionChange;
use helenus_schema::guardrails::Guardrails;
use helenus_schema::planner::ddl::DdlIntent;
use helenus_schema::profile::{Account, Profile};
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::record::{self, Change};
use helenus_storage::storage::{self as store, Url};
use helenus_types::functions::CallLimits;

/// Changes of a run; most are made.
const CHANGES: usize = 250;

async fn engine(seed: u64) -> Engine {
    let options = Options {
        url: Url::Memory,
        store: store::Options {
            data_stores: Some(3),
            ..store::Options::default()
        },
        clock: Clock::manual(1_700_000_000_000_000),
        seed,
        node: NodeInfo::single(uuid::Uuid::nil(), IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
        page_bytes_max: Options::PAGE_BYTES_MAX,
        guardrails: Guardrails::default(),
        prices: Coefficients::default(),
        limits: SizeLimits::default(),
        call_limits: CallLimits::default(),
        clock_rules: ClockRules::default(),
        count_at_once_rows_max: Options::COUNT_AT_ONCE_ROWS_MAX,
        request_log_max: 0,
        profile: Profile::default(),
        throughput: ThroughputRules::default(),
        account: Account::default(),
        virtual_tables: Arc::new(NoTables),
        mask_calls: helenus_schema::planner::mask_calls,
        elsewhere: None,
    };
    Engine::open(options).await.unwrap()
}

/// All records of a catalog that a follower needs.
async fn records(engine: &Engine) -> CatalogRecords {
    engine.owner_side().catalog_records().await.unwrap().1
}

fn statement(random: &mut fastrand::Rng) -> String {
    let keyspace = ["a", "b"][random.usize(..2)];
    let table = ["t", "u", "v"][random.usize(..3)];
    let of = format!("{keyspace}.{table}");
    let column = random.u8(..4);
    match random.usize(..21) {
        0 | 1 => format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {column}}}"
        ),
        2 => format!("ALTER KEYSPACE {keyspace} WITH durable_writes = {}", random.bool()),
        3 => format!(
            "ALTER KEYSPACE system_auth WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {column}}}"
        ),
        4 if random.u8(..4) == 0 => format!("DROP KEYSPACE {keyspace}"),
        4..=7 => format!("CREATE TABLE {of} (p int, c int, v text, w int, PRIMARY KEY (p, c))"),
        8 => format!("DROP TABLE {of}"),
        9 => format!("ALTER TABLE {of} ADD x{column} int"),
        10 => format!("ALTER TABLE {of} DROP x{column}"),
        11 => format!("ALTER TABLE {of} WITH comment = '{column}' AND cdc = {}", random.bool()),
        12 => format!("CREATE INDEX i_{table} ON {of} (v)"),
        13 => format!("DROP INDEX {keyspace}.i_{table}"),
        14 | 15 => format!(
            "CREATE MATERIALIZED VIEW {keyspace}.m_{table} AS SELECT * FROM {of} WHERE p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, p)"
        ),
        16 => format!("DROP MATERIALIZED VIEW {keyspace}.m_{table}"),
        17 => format!("CREATE TYPE {keyspace}.y (a int)"),
        18 => format!("ALTER TYPE {keyspace}.y ADD b{column} int"),
        19 => format!("ALTER TABLE {of} ADD y{column} frozen<y>"),
        _ => format!("DROP TYPE {keyspace}.y"),
    }
}

/// Makes a change, unless it is refused.
async fn change(engine: &Engine, random: &mut fastrand::Rng) -> bool {
    let catalog = &engine.catalog;
    let current = catalog.load_full();
    let user_tables: Vec<_> = ["a", "b"]
        .iter()
        .filter_map(|name| current.schema.keyspace(name))
        .flat_map(|keyspace| keyspace.tables.values().cloned())
        .collect();
    let table = (!user_tables.is_empty()).then(|| Arc::clone(&user_tables[random.usize(..user_tables.len())]));
    match (random.usize(..10), table) {
        (0, Some(table)) => catalog.truncate(&table.keyspace, &table.name).await.is_ok(),
        (1 | 2, Some(table)) => {
            let split = PartitionChange::Split {
                at: random.i64(..),
                partition_key: Bytes::new(),
            };
            catalog.repartition(table.storage_id, split).await.is_ok()
        }
        (3, Some(table)) => {
            let map = &current.partitions[&table.storage_id];
            let ids: Vec<u64> = map.all().iter().map(|partition| partition.id.0).collect();
            let place = random.usize(..ids.len());
            let Some(right) = ids.get(place + 1) else { return false };
            let merge = PartitionChange::Merge {
                left: ids[place],
                right: *right,
            };
            catalog.repartition(table.storage_id, merge).await.is_ok()
        }
        _ => {
            let statement = grammar::parse(&statement(random)).unwrap();
            let intent = DdlIntent {
                statement: Arc::new(statement),
                session_keyspace: None,
                masks_columns: false,
            };
            catalog.change(intent).await.is_ok()
        }
    }
}

fn assert_same(written: &Snapshot, followed: &Snapshot, seed: u64) {
    assert_eq!(written.schema.version, followed.schema.version, "seed {seed}");
    assert_eq!(record::changes(&written.schema, &followed.schema), [], "seed {seed}");
    assert_eq!(written.generation, followed.generation, "seed {seed}");
    let maps = |of: &Snapshot| -> Vec<_> { of.partitions.iter().map(|(id, map)| (*id, map.encode())).collect() };
    assert_eq!(maps(written), maps(followed), "seed {seed}");
    for table in written.partitions.keys() {
        let views = |of: &Snapshot| of.followed(*table).map(|followed| format!("{followed:?}").len());
        assert_eq!(views(written).is_some(), views(followed).is_some(), "seed {seed}");
    }
}

#[tokio::test]
async fn follower_publishes_the_writers_snapshot_when_it_has_the_changed_records() {
    for seed in 0..8 {
        let (writer, follower) = (engine(seed).await, engine(1000 + seed).await);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut before = records(&writer).await;
        let mut made = 0;
        for _ in 0..CHANGES {
            made += usize::from(change(&writer, &mut random).await);
            let after = records(&writer).await;
            follower.catalog.apply(changed_records(&before, &after)).await.unwrap();
            assert_same(&writer.catalog.load_full(), &follower.catalog.load_full(), seed);
            before = after;
        }
        assert!(made > CHANGES / 4, "seed {seed}: {made} changes were made");
        writer.close().await.unwrap();
        follower.close().await.unwrap();
    }
}

#[tokio::test]
async fn follower_stays_as_it_was_when_a_record_is_damaged() {
    let follower = engine(1).await;
    let before = follower.catalog.load_full();
    for (key, value) in [
        (&b"!partitions\0"[..], &b""[..]),
        (b"tks\0t", b"\x01{"),
        (b"!next_storage_id", b""),
    ] {
        let damaged = Change {
            key: key.to_vec(),
            value: Some(value.to_vec()),
        };
        assert!(follower.catalog.apply(vec![damaged]).await.is_err());
        assert!(Arc::ptr_eq(&before, &follower.catalog.load_full()));
    }
}
