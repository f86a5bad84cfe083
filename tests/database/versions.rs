//! Versions of rows (`ColumnChange::Version`), as a table service makes ETags of them: they only grow, and conditions compare them. No
//! CQL but for the table.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;

use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_engine::engine::{Decision, Engine, Paging, Terms};
use helenus_schema::command::{
    ColumnChange, Comparison, Condition, FilterTarget, Partitions, Predicate, Read, Selection, Value, Write,
    WriteTarget, WriteVerb,
};
use helenus_schema::schema::Table;
use helenus_types::types::{CqlType, Native};

use crate::support::Client;
use crate::support::typed::TypedRows;

const KEY: &[u8] = b"row";
const DATA: usize = 1;
const VERSION: usize = 2;

/// A front end that knows rows by a key, and a version of each.
struct Rows<'a> {
    engine: &'a Engine,
    table: Arc<Table>,
}

impl<'a> Rows<'a> {
    fn of(client: &'a Client) -> Self {
        let engine = client.database.engine();
        let table = Arc::clone(engine.schema().table("ks", "t").unwrap());
        Self { engine, table }
    }

    fn change(&self, kind: WriteVerb, data: &str, condition: Condition, timestamp: Option<i64>) -> Write {
        let data = Value::Bytes(Bytes::copy_from_slice(data.as_bytes()));
        let operations = vec![(DATA, ColumnChange::Set(data)), (VERSION, ColumnChange::Version)];
        Write {
            table: Arc::clone(&self.table),
            kind,
            partition_keys: vec![Bytes::from_static(KEY)],
            target: WriteTarget::Rows(vec![Vec::new()]),
            operations: if kind == WriteVerb::Delete {
                Vec::new()
            } else {
                operations
            },
            names_static: false,
            timestamp,
            ttl_seconds: None,
            condition,
            condition_columns: vec![VERSION],
            masks: None,
        }
    }

    /// What became of the conditions of a write; `None`: it had none.
    async fn write(&self, write: &Write) -> Option<Decision> {
        let mut execution = self.engine.begin(Terms::default()).await;
        execution.write(write).await.unwrap().decision
    }

    /// The version of the row; `None`: it is not there.
    async fn version(&self) -> Option<i64> {
        let key = Partitions::Keys(vec![Bytes::from_static(KEY)]);
        let selection = Arc::new(Selection::of_columns(&self.table, &[VERSION]));
        let read = Read::new(Arc::clone(&self.table), selection, key);
        let mut execution = self.engine.begin(Terms::default()).await;
        let page = execution.read_page::<TypedRows>(&read, None, &Paging::default()).await;
        let (_, found) = page.unwrap();
        let cell = found.rows.first()?.first()?.as_ref()?;
        cell.first_chunk().map(|bytes| i64::from_be_bytes(*bytes))
    }
}

/// The version is still this one.
fn is(version: i64) -> Condition {
    Condition::Columns(vec![Predicate {
        target: FilterTarget::Column(VERSION),
        comparison: Comparison::Eq,
        operands: vec![Value::Bytes(Bytes::copy_from_slice(&version.to_be_bytes()))],
        ty: CqlType::Native(Native::Bigint),
    }])
}

async fn open(url: &str) -> Client {
    // A clock that stands still: that versions grow is not its doing.
    let client = Client::open_at(url, Clock::manual(1_700_000_000_000_000)).await;
    client.in_keyspace().await
}

#[tokio::test]
async fn a_version_changes_with_each_write_and_the_old_one_is_refused() {
    let client = open("memory:").await;
    client
        .ok("CREATE TABLE t (k text PRIMARY KEY, data text, version bigint)")
        .await;
    let rows = Rows::of(&client);
    rows.write(&rows.change(WriteVerb::Insert, "a", Condition::Always, None))
        .await;
    let first = rows.version().await.unwrap();
    let update = |version| rows.change(WriteVerb::Update, "b", is(version), None);
    assert_eq!(rows.write(&update(first)).await, Some(Decision::Applied));
    let second = rows.version().await.unwrap();
    assert!(second > first);
    let Some(Decision::Refused {
        places, rows: found, ..
    }) = rows.write(&update(first)).await
    else {
        panic!("the old version was taken")
    };
    assert_eq!(places, [VERSION]);
    assert_eq!(found, [[Some(Bytes::copy_from_slice(&second.to_be_bytes()))]]);
    assert_eq!(rows.version().await, Some(second));
}

#[tokio::test]
async fn versions_grow_above_timestamps_of_the_future() {
    let client = open("memory:").await;
    client
        .ok("CREATE TABLE t (k text PRIMARY KEY, data text, version bigint)")
        .await;
    let rows = Rows::of(&client);
    let far = 7_258_118_400_000_000;
    rows.write(&rows.change(WriteVerb::Insert, "a", Condition::Always, Some(far)))
        .await;
    assert_eq!(rows.version().await, Some(far));
    let update = rows.change(WriteVerb::Update, "b", is(far), None);
    assert_eq!(rows.write(&update).await, Some(Decision::Applied));
    let next = rows.version().await.unwrap();
    assert!(next > far);
    // A write that comes late changes neither the row nor its version.
    rows.write(&rows.change(WriteVerb::Update, "late", Condition::Always, Some(far - 1)))
        .await;
    assert_eq!(rows.version().await, Some(next));
}

#[tokio::test]
async fn a_row_made_again_has_a_greater_version_after_a_sweep_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().display());
    let mut before = 0;
    for round in 0..3 {
        let client = open(&url).await;
        client
            .ok("CREATE TABLE IF NOT EXISTS t (k text PRIMARY KEY, data text, version bigint) WITH gc_grace_seconds = 0")
            .await;
        let rows = Rows::of(&client);
        let insert = rows.change(WriteVerb::Insert, "a", Condition::NotExists, None);
        assert_eq!(rows.write(&insert).await, Some(Decision::Applied), "round {round}");
        let version = rows.version().await.unwrap();
        assert!(version > before, "round {round}: {version} after {before}");
        client.database.engine().upkeep().sweep().await.unwrap();
        assert_eq!(rows.version().await, Some(version), "a sweep changed it");
        let delete = rows.change(WriteVerb::Delete, "", is(version), None);
        assert_eq!(rows.write(&delete).await, Some(Decision::Applied));
        assert_eq!(rows.version().await, None);
        client.clock.advance(std::time::Duration::from_secs(2));
        client.database.engine().upkeep().sweep().await.unwrap();
        let reinsert = rows.change(WriteVerb::Insert, "b", Condition::NotExists, None);
        assert_eq!(rows.write(&reinsert).await, Some(Decision::Applied));
        before = rows.version().await.unwrap();
        assert!(before > version);
        let delete = rows.change(WriteVerb::Delete, "", is(before), None);
        assert_eq!(rows.write(&delete).await, Some(Decision::Applied));
        client.clock.advance(std::time::Duration::from_secs(2));
        client.database.engine().upkeep().sweep().await.unwrap();
    }
}
