//! Tables that lie in the order of their partition keys, by commands alone, without CQL. They are divided between any two keys,
//! all of which have one token.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::support::Client;
use crate::support::typed::TypedRows;
use helenus_base::clock::Clock;
use helenus_base::metrics::StatementKind;
use helenus_engine::engine::{
    Decision, Ended, Engine, Error, NotChanged, Options, Origin, Paging, PartitionLimits, PartitionSizes, SizeLimits,
    Terms, messages_sent, salvage, through_bytes,
};
use helenus_engine::partition::{LoadLimits, Placement};
use helenus_engine::throughput::RequestUnits;
use helenus_schema::command::{
    ChangeKind, ChangeTarget, ColumnChange, Condition, PartitionChange, PartitionChangeOf, Partitions, Position, Read,
    SchemaChange, SchemaContext, SchemaIntent, SchemaOutcome, Selection, Value, Write, WriteTarget, WriteVerb,
};
use helenus_schema::profile::Profile;
use helenus_schema::roles::Need;
use helenus_schema::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableOptions};
use helenus_types::token::{KeyBound, KeySpan};
use helenus_types::types::{CqlType, Native};

/// A change of the schema, as a front end of another language would make it.
struct Change {
    of: Of,
}

enum Of {
    Keyspace,
    Table(&'static str),
    Drop(&'static str),
    Partitions(&'static str, PartitionChange),
}

fn column(id: u32, name: &str, native: Native, kind: ColumnKind) -> Arc<Column> {
    Arc::new(Column {
        id,
        name: name.to_owned(),
        ty: CqlType::Native(native),
        kind,
        position: 0,
        descending: false,
        by_utf16: false,
        mask: None,
    })
}

fn table(name: &str, context: &SchemaContext) -> Table {
    Table {
        id: context.new_id,
        storage_id: context.storage_id,
        keyspace: "ks".to_owned(),
        name: name.to_owned(),
        columns: vec![
            column(0, "k", Native::Text, ColumnKind::PartitionKey),
            column(1, "c", Native::Int, ColumnKind::Clustering),
            column(2, "v", Native::Text, ColumnKind::Regular),
        ],
        partition_key_count: 1,
        clustering_count: 1,
        is_counter: false,
        is_virtual: false,
        compact_storage: false,
        options: TableOptions {
            gc_grace_seconds: 0,
            is_ordered: true,
            ..TableOptions::default()
        },
        indexes: BTreeMap::new(),
        triggers: BTreeMap::new(),
        dropped: BTreeMap::new(),
        next_column_id: 3,
    }
}

impl SchemaIntent for Change {
    type Refusal = Infallible;

    fn apply(&self, schema: &Schema, context: &SchemaContext) -> Result<SchemaOutcome, Infallible> {
        let mut outcome = SchemaOutcome {
            schema: schema.clone(),
            change: None,
            warnings: Vec::new(),
            dropped_storage: Vec::new(),
            storage_id_used: false,
            partition_change: None,
        };
        let changed = |kind, target, name: &str| {
            Some(SchemaChange {
                kind,
                target,
                keyspace: "ks".to_owned(),
                name: name.to_owned(),
                arguments: Vec::new(),
            })
        };
        match &self.of {
            Of::Keyspace => {
                outcome.schema = schema.with_keyspace(Keyspace::new("ks", BTreeMap::new(), true));
                outcome.change = changed(ChangeKind::Created, ChangeTarget::Keyspace, "");
            }
            Of::Table(name) => {
                let mut keyspace = Keyspace::clone(schema.keyspace("ks").unwrap());
                keyspace
                    .tables
                    .insert((*name).to_owned(), Arc::new(table(name, context)));
                outcome.schema = schema.with_keyspace(keyspace);
                outcome.storage_id_used = true;
                outcome.change = changed(ChangeKind::Created, ChangeTarget::Table, name);
            }
            Of::Drop(name) => {
                let mut keyspace = Keyspace::clone(schema.keyspace("ks").unwrap());
                let gone = keyspace.tables.remove(*name).unwrap();
                outcome.schema = schema.with_keyspace(keyspace);
                outcome.dropped_storage = vec![gone.storage_id];
                outcome.change = changed(ChangeKind::Dropped, ChangeTarget::Table, name);
            }
            Of::Partitions(name, change) => {
                outcome.partition_change = Some(PartitionChangeOf {
                    keyspace: "ks".to_owned(),
                    table: (*name).to_owned(),
                    change: change.clone(),
                });
            }
        }
        Ok(outcome)
    }

    fn needs(&self, _: &Schema) -> Vec<Need> {
        Vec::new()
    }
}

type Row = (String, i32, String);

/// A front end that has no language.
struct Front {
    engine: Engine,
    clock: Clock,
    origin: Arc<Origin>,
}

impl Front {
    async fn open(url: &str) -> Self {
        Self::open_with(url, SizeLimits::default()).await
    }

    async fn open_with(url: &str, limits: SizeLimits) -> Self {
        let clock = Clock::manual(1_700_000_000_000_000);
        let options = Options {
            limits,
            ..Client::options(url, clock.clone())
        };
        Self {
            engine: Engine::open(options).await.unwrap(),
            clock,
            origin: Origin::new(StatementKind::Batch, &[], "".into(), str::to_owned),
        }
    }

    /// With the ordered table `t`.
    async fn new(url: &str) -> Self {
        Self::open(url).await.with_table().await
    }

    async fn with_table(self) -> Self {
        self.change(Of::Keyspace).await.unwrap();
        self.change(Of::Table("t")).await.unwrap();
        self
    }

    async fn change(&self, of: Of) -> Result<(), Error> {
        let mut execution = self.engine.begin(Terms::default()).await;
        let change = Change { of };
        match execution.change_schema(change).await {
            Ok(_) => Ok(()),
            Err(NotChanged::Failed(error)) => Err(error),
            Err(NotChanged::Refused(never)) => match never {},
        }
    }

    async fn split(&self, key: &str) -> Result<(), Error> {
        let change = PartitionChange::Split {
            at: 0,
            partition_key: Bytes::copy_from_slice(key.as_bytes()),
        };
        self.change(Of::Partitions("t", change)).await
    }

    async fn ok(&self, change: PartitionChange) {
        self.change(Of::Partitions("t", change)).await.unwrap();
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(self.engine.schema().table("ks", "t").unwrap())
    }

    /// A write of one row; `None` deletes it.
    fn row(&self, key: &str, c: i32, value: Option<&str>) -> Write {
        let table = self.table();
        let mut clustering = Vec::new();
        table.columns[1].ty.encode_key(&c.to_be_bytes(), false, &mut clustering);
        let set = |value: &str| {
            (
                2,
                ColumnChange::Set(Value::Bytes(Bytes::copy_from_slice(value.as_bytes()))),
            )
        };
        Write {
            kind: if value.is_some() {
                WriteVerb::Insert
            } else {
                WriteVerb::Delete
            },
            partition_keys: vec![Bytes::copy_from_slice(key.as_bytes())],
            target: WriteTarget::Rows(vec![clustering]),
            operations: value.map(set).into_iter().collect(),
            names_static: false,
            timestamp: None,
            ttl_seconds: None,
            condition: Condition::Always,
            condition_columns: Vec::new(),
            masks: None,
            table,
        }
    }

    async fn write(&self, write: &Write) -> Result<bool, Error> {
        let mut execution = self.engine.begin(Terms::default()).await;
        execution.set_origin(Arc::clone(&self.origin));
        let written = execution.write(write).await;
        let ended = match &written {
            Ok(_) => Ended::Answered { row_bytes: 0 },
            Err(_) => Ended::Failed { code: 1 },
        };
        execution.finish(ended);
        written.map(|written| !matches!(written.decision, Some(Decision::Refused { .. })))
    }

    async fn put(&self, key: &str, c: i32, value: &str) {
        self.write(&self.row(key, c, Some(value))).await.unwrap();
    }

    async fn page(
        &self,
        partitions: Partitions,
        page_rows: Option<u32>,
        resume: Option<Box<Position>>,
    ) -> (Vec<Row>, Option<Box<Position>>) {
        let table = self.table();
        let selection = Arc::new(Selection::of_columns(&table, &[0, 1, 2]));
        let read = Read::new(table, selection, partitions);
        let mut execution = self.engine.begin(Terms::default()).await;
        execution.set_origin(Arc::clone(&self.origin));
        let paging = Paging {
            resume,
            ..Paging::default()
        };
        let page = execution.read_page::<TypedRows>(&read, page_rows, &paging).await;
        let (page, found) = page.unwrap();
        execution.finish(Ended::Answered { row_bytes: 0 });
        let text = |cell: &Option<Bytes>| String::from_utf8(cell.as_ref().unwrap().to_vec()).unwrap();
        let int = |cell: &Option<Bytes>| i32::from_be_bytes(cell.as_deref().unwrap().try_into().unwrap());
        let rows = found
            .rows
            .iter()
            .map(|row| (text(&row[0]), int(&row[1]), text(&row[2])));
        let rows = rows.collect();
        (rows, page.position)
    }

    /// All rows, in pages of so many.
    async fn scan_by(&self, page_rows: u32) -> Vec<Row> {
        self.scan_of(&WHOLE, page_rows).await
    }

    /// The rows of some partitions, in pages of so many.
    async fn scan_of(&self, partitions: &Partitions, page_rows: u32) -> Vec<Row> {
        let (mut rows, mut resume) = (Vec::new(), None);
        loop {
            let (page, next) = self.page(partitions.clone(), Some(page_rows), resume).await;
            assert!(page.len() <= page_rows as usize);
            rows.extend(page);
            resume = next;
            if resume.is_none() {
                return rows;
            }
        }
    }

    async fn scan(&self) -> Vec<Row> {
        self.page(WHOLE, None, None).await.0
    }

    async fn of_key(&self, key: &str) -> Vec<Row> {
        let keys = vec![Bytes::copy_from_slice(key.as_bytes())];
        self.page(Partitions::Keys(keys), None, None).await.0
    }

    /// Number, first key, end key and store of each physical partition of the table.
    fn parts(&self) -> Vec<(u64, String, Option<String>, u32)> {
        let of_table = self
            .engine
            .figures()
            .partitions()
            .into_iter()
            .filter(|part| part.table == "t");
        let text = |key: Vec<u8>| String::from_utf8(key).unwrap();
        of_table
            .map(|part| (part.id, text(part.lower_key), part.upper_key.map(text), part.store))
            .collect()
    }

    async fn repartition(&self, bytes_max: u64) -> u64 {
        let limits = PartitionLimits {
            bytes_max,
            merges: false,
        };
        let done = self
            .engine
            .upkeep()
            .repartition(limits, &mut PartitionSizes::default())
            .await;
        done.unwrap().splits
    }
}

const WHOLE: Partitions = Partitions::WHOLE_RING;

/// The keys from one up to and without another.
fn keys_between(from: &str, to: &str) -> Partitions {
    let bound = |key: &str| KeyBound::at_key(Placement::Key.token(key.as_bytes()), key.as_bytes());
    Partitions::Ring(KeySpan::new(bound(from), Some(bound(to))))
}

/// Writes rows to keys that do not come in their order, and gives them in it.
async fn filled(front: &Front) -> Vec<Row> {
    let mut rows = Vec::new();
    for number in [7, 3, 9, 1, 5, 8, 2, 6, 4, 0] {
        for c in 0..3 {
            let row = (format!("key{number}"), c, format!("v{number}{c}"));
            front.put(&row.0, row.1, &row.2).await;
            rows.push(row);
        }
    }
    rows.sort();
    rows
}

async fn is_whole(front: &Front, rows: &[Row]) {
    assert_eq!(front.scan().await, rows);
    for page_rows in [1, 2, 4, 7] {
        assert_eq!(front.scan_by(page_rows).await, rows, "by {page_rows}");
    }
    for row in rows {
        assert!(front.of_key(&row.0).await.contains(row), "{row:?}");
    }
    for (from, to) in [
        ("", "key1"),
        ("key2", "key5"),
        ("key4", "key4y"),
        ("key45", "z"),
        ("key3", "key3"),
    ] {
        let partitions = keys_between(from, to);
        let inside = rows.iter().filter(|row| (from..to).contains(&row.0.as_str()));
        let inside: Vec<Row> = inside.cloned().collect();
        // As from another machine, too.
        for is_sent in [false, true] {
            through_bytes(is_sent);
            let sent = messages_sent();
            for page_rows in [1, 4, 50] {
                assert_eq!(front.scan_of(&partitions, page_rows).await, inside, "{from} to {to}");
            }
            through_bytes(false);
            assert_eq!(messages_sent() > sent, is_sent && from < to);
        }
    }
}

/// Splits, merges, moves, pages and restarts leave the rows what they are, in the order of their keys.
async fn lives(url: &str) {
    let front = Front::new(url).await;
    let rows = filled(&front).await;
    assert_eq!(front.parts(), [(0, String::new(), None, 0)]);
    is_whole(&front, &rows).await;

    front.split("key4").await.unwrap();
    front.split("key7").await.unwrap();
    let owned = |key: &str| key.to_owned();
    assert_eq!(
        front.parts(),
        [
            (1, String::new(), Some(owned("key4")), 0),
            (3, owned("key4"), Some(owned("key7")), 0),
            (4, owned("key7"), None, 0)
        ]
    );
    assert!(front.split("key4").await.is_err(), "a partition begins there");
    is_whole(&front, &rows).await;

    // A page goes on behind its last row, whatever became of the partitions meanwhile.
    let (first, position) = front.page(WHOLE, Some(13), None).await;
    front.ok(PartitionChange::Merge { left: 1, right: 3 }).await;
    front.split("key4x").await.unwrap();
    let (second, end) = front.page(WHOLE, None, position).await;
    assert_eq!([first, second].concat(), rows);
    assert_eq!(end, None);

    // One of the parts moves to a store of its own, is written to there, and comes back.
    let id = front.parts()[1].0;
    front.ok(PartitionChange::Lift { id }).await;
    assert_eq!(front.parts().iter().map(|part| part.3).collect::<Vec<_>>(), [0, 1, 0]);
    is_whole(&front, &rows).await;
    front.put("key4y", 0, "new").await;
    front.write(&front.row("key5", 1, None)).await.unwrap();
    let mut rows = rows;
    rows.push((owned("key4y"), 0, owned("new")));
    rows.retain(|row| (row.0.as_str(), row.1) != ("key5", 1));
    rows.sort();
    is_whole(&front, &rows).await;
    front.clock.advance(Duration::from_secs(10));
    let swept = front.engine.upkeep().sweep().await.unwrap();
    assert_eq!(swept.rows_removed, 1);
    is_whole(&front, &rows).await;

    if url.contains(':') && !url.starts_with("memory") {
        let parts = front.parts();
        front.engine.close().await.unwrap();
        drop(front);
        let front = Front::open(url).await;
        assert_eq!(front.parts(), parts);
        is_whole(&front, &rows).await;
        front.ok(PartitionChange::Lower { id }).await;
        is_whole(&front, &rows).await;
        front.put("key4z", 0, "after").await;
        assert_eq!(front.of_key("key4z").await.len(), 1);
        front.engine.close().await.unwrap();
        return;
    }
    front.ok(PartitionChange::Lower { id }).await;
    is_whole(&front, &rows).await;
}

#[tokio::test]
async fn an_ordered_table_in_memory_lives() {
    lives("memory:").await;
}

#[tokio::test]
async fn an_ordered_table_in_files_lives() {
    let directory = tempfile::tempdir().unwrap();
    lives(&format!("file:{}", directory.path().display())).await;
}

#[cfg(feature = "slate")]
#[tokio::test]
async fn an_ordered_table_in_slatedb_lives() {
    let directory = tempfile::tempdir().unwrap();
    lives(&format!("slate+file:{}", directory.path().display())).await;
}

#[tokio::test]
async fn truncating_keeps_the_order_and_dropping_forgets_it() {
    let front = Front::new("memory:").await;
    filled(&front).await;
    front.split("key4").await.unwrap();
    let mut execution = front.engine.begin(Terms::default()).await;
    execution.truncate(&front.table()).await.unwrap();
    drop(execution);
    assert!(front.scan().await.is_empty());
    let rows = filled(&front).await;
    assert_eq!(front.parts().len(), 2);
    is_whole(&front, &rows).await;
    front.change(Of::Drop("t")).await.unwrap();
    front.change(Of::Table("t")).await.unwrap();
    assert_eq!(front.parts().len(), 1);
    assert!(front.scan().await.is_empty());
}

#[tokio::test]
async fn a_condition_on_one_key_is_decided_beside_another_of_its_token() {
    let front = Front::new("memory:").await;
    front.split("b").await.unwrap();
    for key in ["a", "b", "a", "b"] {
        let write = Write {
            condition: Condition::NotExists,
            ..front.row(key, 1, Some("x"))
        };
        let was_there = !front.of_key(key).await.is_empty();
        assert_eq!(front.write(&write).await.unwrap(), !was_there, "{key}");
    }
    assert_eq!(front.scan().await.len(), 2);
}

/// One look divides what is too large between keys, so that each part fits.
#[tokio::test]
async fn an_ordered_table_is_split_by_size_between_keys() {
    let front = Front::new("memory:").await;
    let text = "x".repeat(1000);
    for number in 0..200 {
        front.put(&format!("{number:03}"), 0, &text).await;
    }
    assert!(front.repartition(50_000).await >= 4);
    let parts = front.parts();
    for (_, start, end, _) in &parts {
        let inside = |key: &str| key >= start.as_str() && end.as_deref().is_none_or(|end| key < end);
        let keys = (0..200).filter(|number| inside(&format!("{number:03}"))).count();
        assert!((1..=48).contains(&keys), "{keys} keys from {start} to {end:?}");
    }
    assert_eq!(front.repartition(50_000).await, 0);
    assert_eq!(front.scan().await.len(), 200);
}

/// The load is halved at a key, since all have one token.
#[tokio::test]
async fn an_ordered_table_is_split_by_heat_between_keys() {
    const LIMITS: LoadLimits = LoadLimits {
        units_per_second_max: RequestUnits::whole(100),
        hot_percent: 80,
        checks: 3,
    };
    let front = Front::new("memory:").await;
    let mut splits = 0;
    for _ in 0..8 {
        for number in 0..100 {
            front.put(&format!("{number:02}"), 0, "x").await;
        }
        front.clock.advance(Duration::from_secs(1));
        splits += front.engine.upkeep().split_by_load(&LIMITS).await.unwrap().splits;
    }
    assert!(splits > 0);
    let parts = front.parts();
    let first_end = parts[0].2.clone().unwrap();
    assert!(("10".."90").contains(&first_end.as_str()), "{parts:?}");
    assert_eq!(front.scan().await.len(), 100);
}

/// Every key has its own counter, and its own size.
#[tokio::test]
async fn keys_of_one_token_are_counted_apart() {
    const CAP: u64 = 2 << 20;
    let limits = SizeLimits {
        logical_partition_bytes_max: Some(CAP),
        ..SizeLimits::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let front = Front::open_with(&url, limits).await.with_table().await;
    for _ in 0..3 {
        front.put("often", 0, "x").await;
    }
    front.put("once", 0, "x").await;
    let text = "x".repeat(100_000);
    let fill = async |front: &Front, key: &str| {
        let mut written = 0;
        for c in 0..100 {
            match front.write(&front.row(key, c, Some(&text))).await {
                Ok(_) => written += 1,
                Err(error) => {
                    assert!(error.to_string().contains("maximum size"), "{error}");
                    break;
                }
            }
        }
        written
    };
    // Each may have the whole limit for itself: 2 MiB are twenty such rows.
    let (one, other) = (fill(&front, "full").await, fill(&front, "other").await);
    assert!(
        (18..=21).contains(&one) && (18..=21).contains(&other),
        "{one} and {other}"
    );
    let sizes = |front: &Front| -> BTreeMap<String, u64> {
        let largest = front.engine.figures().largest_partitions().into_iter();
        largest
            .filter(|of| of.is_watched)
            .map(|of| (of.key, of.bytes))
            .collect()
    };
    let known = sizes(&front);
    assert_eq!(known.keys().collect::<Vec<_>>(), ["'full'", "'other'"]);
    assert!(
        known.values().all(|bytes| (CAP * 9 / 10..=CAP).contains(bytes)),
        "{known:?}"
    );
    let hot = front.engine.figures().hot_keys();
    let of = |key: &str| {
        hot.iter()
            .find(|hot| hot.key == key)
            .map(|hot| (hot.token, hot.requests))
    };
    assert_eq!(of("'often'"), Some((0, 3)));
    assert_eq!(of("'once'"), Some((0, 1)));
    front.engine.close().await.unwrap();
    drop(front);
    // The next start knows both from their records.
    let front = Front::open_with(&url, limits).await;
    assert_eq!(sizes(&front).keys().collect::<Vec<_>>(), ["'full'", "'other'"]);
    assert_eq!(fill(&front, "third").await, one);
}

#[tokio::test]
async fn salvage_names_an_ordered_table_and_leaves_its_rows_out() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("data").display());
    let front = Front::new(&url).await;
    front.put("a", 1, "one").await;
    front.split("m").await.unwrap();
    front.put("z", 2, "two").await;
    front.engine.close().await.unwrap();
    drop(front);
    let to = folder.path().join("salvaged");
    let clock = Clock::manual(1_700_000_000_000_000);
    let salvaged = salvage(&url, &clock, Profile::default(), &to).await.unwrap();
    assert_eq!(salvaged.incomplete.iter().collect::<Vec<_>>(), ["ks.t"]);
    let lost = salvaged.manifest.lost.iter().find(|loss| loss.place == "ks.t").unwrap();
    assert!(lost.what.contains("ordered by partition key"), "{}", lost.what);
    assert_eq!(salvaged.manifest.tables[0].rows, 0);
    // The directory is only read.
    let front = Front::open(&url).await;
    assert_eq!(front.scan().await.len(), 2);
}
