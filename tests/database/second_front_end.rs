//! A second front end: typed commands in, typed rows and charges out, and a schema made by an intent of its own. `tests/house.rs` sees
//! to it that nothing of the first front end is used here.
//!
//! Rows of the table `store.items` have a key of two parts, `shelf` (text) and `place` (int), and two values, `name` and `count`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_base::invariant::{Broken, Invariant};
use helenus_base::metrics::StatementKind;
use helenus_engine::engine::audit::{AuditEntry, AuditLog};
use helenus_engine::engine::{
    ClockRules, Decision, Ended, Engine, Error, Execution, NotChanged, Options, Origin, Paging, RolesInForce,
    SizeLimits, Terms, ThroughputRules, Written,
};
use helenus_engine::throughput::{Coefficients, RequestUnits};
use helenus_schema::command::{
    Batch, BatchKind, ChangeKind, ChangeTarget, Clustering, ClusteringRange, ColumnChange, Comparison, Condition,
    Filter, FilterTarget, Partitions, Position, Predicate, Read, SchemaContext, SchemaIntent, SchemaOutcome, Selection,
    Value, Write, WriteTarget, WriteVerb,
};
use helenus_schema::guardrails::Guardrails;
use helenus_schema::profile::{Account, Profile};
use helenus_schema::roles::{Denied, Need, Permission, Permissions, Resource, Roles};
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableOptions};
use helenus_storage::storage as store;
use helenus_types::functions::CallLimits;
use helenus_types::types::{CqlType, Native};

use crate::support::typed::TypedRows;

const PLACE: usize = 1;
const COUNT: usize = 2;
const NAME: usize = 3;

/// Makes the keyspace `store` and the table `items` in it, unless they are there.
struct MakeItems;

impl SchemaIntent for MakeItems {
    type Refusal = Infallible;

    fn apply(&self, schema: &Schema, context: &SchemaContext) -> Result<SchemaOutcome, Infallible> {
        if schema.table("store", "items").is_some() {
            return Ok(SchemaOutcome::unchanged(schema));
        }
        let text = CqlType::Native(Native::Text);
        let int = CqlType::Native(Native::Int);
        let columns = [
            ("shelf", text.clone(), ColumnKind::PartitionKey),
            ("place", int.clone(), ColumnKind::Clustering),
            ("count", int, ColumnKind::Regular),
            ("name", text, ColumnKind::Regular),
        ];
        let columns = (0..).zip(columns).map(|(id, (name, ty, kind))| {
            Arc::new(Column {
                id,
                name: name.to_owned(),
                ty,
                kind,
                position: 0,
                descending: false,
                by_utf16: false,
                mask: None,
            })
        });
        let table = Table {
            id: context.new_id,
            storage_id: context.storage_id,
            keyspace: "store".to_owned(),
            name: "items".to_owned(),
            columns: columns.collect(),
            partition_key_count: 1,
            clustering_count: 1,
            is_counter: false,
            is_virtual: false,
            compact_storage: false,
            options: TableOptions::default(),
            indexes: BTreeMap::new(),
            triggers: BTreeMap::new(),
            dropped: BTreeMap::new(),
            next_column_id: 4,
        };
        let replication = [
            ("class", "org.apache.cassandra.locator.SimpleStrategy"),
            ("replication_factor", "1"),
        ];
        let replication = replication.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut keyspace = Keyspace::new("store", replication.into(), true);
        keyspace.tables.insert("items".to_owned(), Arc::new(table));
        let next = schema.with_keyspace(keyspace);
        let mut outcome =
            SchemaOutcome::changed(schema, next, ChangeKind::Created, ChangeTarget::Table, "store", "items");
        outcome.storage_id_used = true;
        Ok(outcome)
    }

    fn needs(&self, _: &Schema) -> Vec<Need> {
        vec![Need::new(Permission::Create, Resource::AllKeyspaces)]
    }
}

/// The front end.
struct Items {
    engine: Engine,
    table: Arc<Table>,
    origin: Arc<Origin>,
}

type Row = (i32, Option<String>, Option<i32>);

fn text(value: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(value.as_bytes()))
}

fn int(value: i32) -> Value {
    Value::Bytes(Bytes::copy_from_slice(&value.to_be_bytes()))
}

/// A clustering key or the beginning of a range of them.
fn at(place: i32) -> Vec<u8> {
    let mut key = Vec::new();
    CqlType::Native(Native::Int).encode_key(&place.to_be_bytes(), false, &mut key);
    key
}

fn test(place: usize, comparison: Comparison, operand: Value) -> Predicate {
    Predicate {
        target: FilterTarget::Column(place),
        comparison,
        operands: vec![operand],
        ty: CqlType::Native(if place == NAME { Native::Text } else { Native::Int }),
    }
}

fn number(cell: Option<&Bytes>) -> Option<i32> {
    Some(i32::from_be_bytes(*cell?.first_chunk()?))
}

impl Items {
    async fn open(url: &str) -> Self {
        let options = Options {
            url: url.parse().unwrap(),
            store: store::Options::default(),
            clock: Clock::manual(1_700_000_000_000_000),
            seed: 1,
            node: NodeInfo::single(uuid::Uuid::nil(), IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
            page_bytes_max: Options::PAGE_BYTES_MAX,
            guardrails: Guardrails::default(),
            prices: Coefficients::default(),
            limits: SizeLimits::default(),
            call_limits: CallLimits::default(),
            clock_rules: ClockRules::default(),
            request_log_max: 10,
            count_at_once_rows_max: Options::COUNT_AT_ONCE_ROWS_MAX,
            profile: Profile::default(),
            throughput: ThroughputRules {
                is_metered: true,
                ..ThroughputRules::default()
            },
            account: Account::default(),
            virtual_tables: std::sync::Arc::new(helenus_engine::engine::NoTables),
            mask_calls: |_, _| None,
            elsewhere: None,
        };
        let engine = Engine::open(options).await.unwrap();
        let mut execution = engine.begin(Terms::default()).await;
        execution.change_schema(MakeItems).await.unwrap();
        drop(execution);
        let table = Arc::clone(engine.schema().table("store", "items").unwrap());
        let tables = [Arc::clone(&table)];
        let origin = Origin::new(StatementKind::Select, &tables, "items".into(), str::to_owned);
        Self { engine, table, origin }
    }

    /// Begins an execution of the server itself.
    async fn begin(&self) -> Execution<'_> {
        self.begin_as(Terms::default()).await
    }

    async fn begin_as<'a>(&'a self, terms: Terms<'a>) -> Execution<'a> {
        let mut execution = self.engine.begin(terms).await;
        execution.set_origin(Arc::clone(&self.origin));
        execution
    }

    fn put(&self, shelf: &str, place: i32, name: &str, count: i32, condition: Condition) -> Write {
        Write {
            table: Arc::clone(&self.table),
            kind: WriteVerb::Insert,
            partition_keys: vec![Bytes::copy_from_slice(shelf.as_bytes())],
            target: WriteTarget::Rows(vec![at(place)]),
            operations: vec![
                (COUNT, ColumnChange::Set(int(count))),
                (NAME, ColumnChange::Set(text(name))),
            ],
            names_static: false,
            timestamp: None,
            ttl_seconds: None,
            condition,
            condition_columns: vec![COUNT],
            masks: None,
        }
    }

    async fn write(&self, write: &Write) -> Result<(Written, RequestUnits), Error> {
        let mut execution = self.begin().await;
        let written = execution.write(write).await?;
        let receipt = execution.finish(Ended::Answered { row_bytes: 0 });
        Ok((written, receipt.charge))
    }

    fn read_of(&self, shelf: &str) -> Read {
        let selection = Arc::new(Selection::of_columns(&self.table, &[PLACE, NAME, COUNT]));
        let key = Bytes::copy_from_slice(shelf.as_bytes());
        Read::new(Arc::clone(&self.table), selection, Partitions::Keys(vec![key]))
    }

    /// A page of rows, where the next begins, and the charge.
    async fn page(
        &self,
        read: &Read,
        page_rows: Option<u32>,
        resume: Option<Box<Position>>,
    ) -> (Vec<Row>, Option<Box<Position>>, RequestUnits) {
        let mut execution = self.begin().await;
        let paging = Paging {
            resume,
            ..Paging::default()
        };
        let page = execution.read_page::<TypedRows>(read, page_rows, &paging).await;
        let (page, found) = page.unwrap();
        let row_bytes = found.rows.iter().flatten().flatten().map(Bytes::len).sum::<usize>();
        assert_eq!((page.row_count as usize, page.bytes), (found.rows.len(), row_bytes));
        let charge = execution.finish(Ended::Answered { row_bytes }).charge;
        let rows = found.rows.iter().map(|row| {
            let name = row[1].as_ref().map(|name| String::from_utf8(name.to_vec()).unwrap());
            (number(row[0].as_ref()).unwrap(), name, number(row[2].as_ref()))
        });
        (rows.collect(), page.position, charge)
    }

    async fn rows(&self, read: &Read) -> Vec<Row> {
        self.page(read, None, None).await.0
    }

    /// Shelf `a` with six items, and one on shelf `b`.
    async fn filled() -> Self {
        let items = Self::open("memory:").await;
        for place in 0..6 {
            let name = if place % 2 == 0 { "even" } else { "odd" };
            let put = items.put("a", place, name, 10 * place, Condition::Always);
            items.write(&put).await.unwrap();
        }
        items
            .write(&items.put("b", 9, "else", 0, Condition::Always))
            .await
            .unwrap();
        items
    }
}

fn places(rows: &[Row]) -> Vec<i32> {
    rows.iter().map(|row| row.0).collect()
}

#[tokio::test]
async fn rows_come_as_values() {
    let items = Items::filled().await;
    let mut read = items.read_of("a");
    read.rows = Clustering::Keys(vec![at(3)]);
    assert_eq!(items.rows(&read).await, [(3, Some("odd".to_owned()), Some(30))]);
    read.rows = Clustering::Ranges(vec![ClusteringRange {
        start: at(2),
        end: Some(at(5)),
    }]);
    assert_eq!(places(&items.rows(&read).await), [2, 3, 4]);
    read.reversed = true;
    read.limit_rows = Some(2);
    assert_eq!(places(&items.rows(&read).await), [4, 3]);
    let delete = Write {
        kind: WriteVerb::Delete,
        operations: vec![(NAME, ColumnChange::Set(Value::Null))],
        ..items.put("a", 3, "", 0, Condition::Always)
    };
    items.write(&delete).await.unwrap();
    read.rows = Clustering::Keys(vec![at(3)]);
    assert_eq!(items.rows(&read).await, [(3, None, Some(30))]);
}

#[tokio::test]
async fn a_column_that_is_not_there_is_not_written() {
    let items = Items::filled().await;
    let mut write = items.put("a", 3, "x", 1, Condition::Always);
    write.operations.push((99, ColumnChange::Set(int(1))));
    let refused = items.write(&write).await.unwrap_err();
    assert_eq!(refused, Error::Broken(Broken(Invariant::ColumnExists)));
    let mut read = items.read_of("a");
    read.rows = Clustering::Keys(vec![at(3)]);
    assert_ne!(items.rows(&read).await, [(3, Some("x".to_owned()), Some(1))]);
}

#[tokio::test]
async fn a_filter_is_a_tree() {
    let items = Items::filled().await;
    let found = async |filter: Filter| {
        let mut read = items.read_of("a");
        read.filter = filter;
        places(&items.rows(&read).await)
    };
    let even = || Filter::Test(test(NAME, Comparison::Eq, text("even")));
    let above = |count| Filter::Test(test(COUNT, Comparison::Gt, int(count)));
    assert_eq!(found(Filter::NONE).await, [0, 1, 2, 3, 4, 5]);
    assert_eq!(found(Filter::All(vec![even(), above(10)])).await, [2, 4]);
    assert_eq!(found(Filter::Any(vec![even(), above(40)])).await, [0, 2, 4, 5]);
    assert_eq!(found(Filter::Not(Box::new(even()))).await, [1, 3, 5]);
    let neither = Filter::Not(Box::new(Filter::Any(vec![even(), above(20)])));
    assert_eq!(found(Filter::All(vec![neither, above(0)])).await, [1]);
    assert!(found(Filter::Any(Vec::new())).await.is_empty());
}

#[tokio::test]
async fn conditions_answer_with_the_row() {
    let items = Items::filled().await;
    let make = items.put("a", 1, "new", 1, Condition::NotExists);
    let (written, _) = items.write(&make).await.unwrap();
    let now = Some(Bytes::copy_from_slice(&10_i32.to_be_bytes()));
    let Some(Decision::Refused { places, rows, .. }) = written.decision else {
        panic!("a row was made twice")
    };
    assert!(places.contains(&COUNT));
    let shown = places.iter().position(|place| *place == COUNT).unwrap();
    assert_eq!(rows[0][shown], now);
    let if_count = |count| Condition::Columns(vec![test(COUNT, Comparison::Eq, int(count))]);
    let change = |count| {
        let mut write = items.put("a", 1, "changed", 11, if_count(count));
        write.kind = WriteVerb::Update;
        write
    };
    let (written, _) = items.write(&change(10)).await.unwrap();
    assert_eq!(written.decision, Some(Decision::Applied));
    let (written, _) = items.write(&change(10)).await.unwrap();
    assert!(matches!(written.decision, Some(Decision::Refused { .. })));
}

#[tokio::test]
async fn pages_join_to_the_whole_and_their_charges_to_its_charge() {
    let items = Items::filled().await;
    let read = items.read_of("a");
    let (whole, position, charge) = items.page(&read, None, None).await;
    assert!(position.is_none() && charge > RequestUnits::ZERO);
    let (mut joined, mut resume, mut pages, mut sum) = (Vec::new(), None, 0, 0);
    loop {
        let (rows, position, charge) = items.page(&read, Some(4), resume).await;
        joined.extend(rows);
        pages += 1;
        sum += charge.in_hundredths();
        resume = position;
        if resume.is_none() {
            break;
        }
    }
    assert_eq!((joined, pages), (whole, 2));
    assert!(
        sum.abs_diff(charge.in_hundredths()) <= 1,
        "{sum} for pages, {charge} for all"
    );
}

#[tokio::test]
async fn a_batch_changes_two_shelves_and_is_charged_for_both() {
    let items = Items::filled().await;
    let one = items.put("a", 7, "in a batch", 1, Condition::Always);
    let (_, of_one) = items.write(&one).await.unwrap();
    let batch = Batch {
        kind: BatchKind::Logged,
        modifications: vec![one, items.put("b", 7, "in a batch", 1, Condition::Always)],
        timestamp: None,
        conditional: false,
    };
    let mut execution = items.engine.begin(Terms::default()).await;
    execution.batch(&batch).await.unwrap();
    let charge = execution.finish(Ended::Answered { row_bytes: 0 }).charge;
    assert!(charge > of_one);
    assert_eq!(places(&items.rows(&items.read_of("b")).await), [7, 9]);
}

#[tokio::test]
async fn an_estimate_says_the_way_and_the_price() {
    let items = Items::filled().await;
    let mut read = items.read_of("a");
    read.rows = Clustering::Keys(vec![at(1)]);
    let estimate = items.begin().await.estimate_read(&read, None).await.unwrap();
    let (_, _, charge) = items.page(&read, None, None).await;
    assert!(estimate.looks_up && !estimate.at_least);
    assert_eq!((estimate.visited, estimate.partitions), (1, 1));
    assert_eq!(estimate.charges.total(), charge);
}

#[tokio::test]
async fn system_tables_are_never_written() {
    let items = Items::open("memory:").await;
    let local = Arc::clone(items.engine.schema().table("system", "local").unwrap());
    let mut write = items.put("a", 1, "x", 1, Condition::Always);
    write.table = Arc::clone(&local);
    let refused = items.write(&write).await.unwrap_err();
    let keyspace = "system".to_owned();
    assert_eq!(refused, Error::NotModifiable { keyspace });
    let truncated = items.begin().await.truncate(&local).await;
    assert!(matches!(truncated, Err(Error::NotModifiable { .. })));
}

/// A client of the front end.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7);

/// Entries as lines.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl AuditLog for Lines {
    fn record(&self, entry: AuditEntry<'_>) {
        let audited = entry.subject.describe().unwrap();
        let scope = audited.scope.as_deref().unwrap_or("-");
        let outcome = match entry.failure {
            None => "done".to_owned(),
            Some(failure) if failure.is_denied => format!("denied: {}", failure.error),
            Some(failure) => format!("failed: {}", failure.error),
        };
        let line = format!("{} {} {scope} {outcome}", entry.user.unwrap_or("-"), audited.kind);
        self.0.lock().unwrap().push(line);
    }
}

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// `ann` may read the items, and `bob` may write them too.
fn roles() -> Roles {
    let items = Resource::table("store", "items");
    let roles = Roles::default().with("ann", |role| role.can_login = true);
    let roles = roles.with("bob", |role| role.can_login = true);
    let roles = roles.granted("ann", &items, Permissions::of(&[Permission::Select]));
    roles.granted(
        "bob",
        &items,
        Permissions::of(&[Permission::Select, Permission::Modify]),
    )
}

fn terms<'a>(user: Option<&'a Arc<str>>) -> Terms<'a> {
    Terms {
        client: Some(&CLIENT),
        user,
        ..Terms::default()
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn command_is_refused_and_recorded_when_its_role_lacks_the_permission() {
    let items = Items::filled().await;
    let (log, current) = (Arc::new(Lines::default()), Arc::new(ArcSwap::from_pointee(roles())));
    items.engine.set_audit_log(Arc::clone(&log) as Arc<dyn AuditLog>);
    items.engine.require_roles(RolesInForce {
        current: Arc::clone(&current),
        checks_addresses: false,
    });
    let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
    let read = items.read_of("a");
    let plain = items.put("a", 1, "new", 1, Condition::Always);
    let conditional = items.put("a", 8, "new", 1, Condition::NotExists);
    let lacks = |role: &str, permission| {
        let resource = Resource::table("store", "items");
        Error::from(Denied::Lacks {
            role: role.to_owned(),
            need: Need::new(permission, resource),
        })
    };
    let mut execution = items.begin_as(terms(Some(&ann))).await;
    assert!(
        execution
            .read_page::<TypedRows>(&read, None, &Paging::default())
            .await
            .is_ok()
    );
    execution.finish(Ended::Answered { row_bytes: 0 });
    for write in [&plain, &conditional] {
        let mut execution = items.begin_as(terms(Some(&ann))).await;
        let refused = execution.write(write).await.unwrap_err();
        assert_eq!(refused, lacks("ann", Permission::Modify));
        execution.finish(Ended::Failed { code: 403 });
    }
    let mut execution = items.begin_as(terms(Some(&ann))).await;
    assert_eq!(
        execution.truncate(&items.table).await.unwrap_err(),
        lacks("ann", Permission::Modify)
    );
    drop(execution);
    let mut execution = items.begin_as(terms(Some(&bob))).await;
    assert!(execution.write(&conditional).await.is_ok());
    let changed = execution.change_schema(MakeItems).await.unwrap_err();
    let needs = Need::new(Permission::Create, Resource::AllKeyspaces);
    let role = "bob".to_owned();
    assert_eq!(changed, NotChanged::Failed(Denied::Lacks { role, need: needs }.into()));
    drop(execution);
    // A permission holds from the next command on.
    let select = Permissions::of(&[Permission::Select]);
    current.store(Arc::new(roles().revoked(
        "bob",
        &Resource::table("store", "items"),
        select,
    )));
    let mut execution = items.begin_as(terms(Some(&bob))).await;
    assert!(execution.write(&plain).await.is_ok());
    assert_eq!(
        execution.write(&conditional).await.unwrap_err(),
        lacks("bob", Permission::Select)
    );
    drop(execution);
    let mut execution = items.begin_as(terms(None)).await;
    assert_eq!(execution.write(&plain).await.unwrap_err(), Denied::Anonymous.into());
    drop(execution);
    let of_items = "permission on <table store.items> or any of its parents";
    assert_eq!(
        log.take(),
        [
            "ann SELECT items done".to_owned(),
            format!("ann UPDATE items denied: User ann has no MODIFY {of_items}"),
            format!("ann UPDATE items denied: User ann has no MODIFY {of_items}"),
            format!("ann TRUNCATE items denied: User ann has no MODIFY {of_items}"),
            "bob UPDATE items done".to_owned(),
            "bob REQUEST - denied: User bob has no CREATE permission on <all keyspaces> or any of its parents"
                .to_owned(),
            "bob UPDATE items done".to_owned(),
            format!("bob UPDATE items denied: User bob has no SELECT {of_items}"),
            "- UPDATE items denied: You have to be logged in and not anonymous to perform this request".to_owned(),
        ]
    );
}

#[tokio::test]
async fn an_execution_is_charged_when_dropped_half_way() {
    let items = Items::filled().await;
    let log = Arc::new(Lines::default());
    items.engine.set_audit_log(Arc::clone(&log) as Arc<dyn AuditLog>);
    let logged = || items.engine.figures().requests();
    let before = logged().len();
    let read = items.read_of("a");
    let (_, _, charge) = items.page(&read, None, None).await;
    let write = items.put("a", 1, "new", 1, Condition::Always);
    let mut execution = items.begin_as(terms(None)).await;
    execution
        .read_page::<TypedRows>(&read, None, &Paging::default())
        .await
        .unwrap();
    {
        let mut writing = std::pin::pin!(execution.write(&write));
        drop(futures::poll!(writing.as_mut()));
    }
    drop(execution);
    let requests = logged();
    assert_eq!(requests.len(), before + 2);
    let last = requests.last().unwrap();
    assert!(last.request_charge >= charge.as_f64(), "{last:?}");
    assert_eq!(last.error_code, 0);
    let lines = log.take();
    assert_eq!(
        lines,
        [
            "- SELECT items done",
            "- UPDATE items failed: the request was abandoned before its end; it may have been carried out"
        ]
    );
}

// Versions of rows: `versions.rs`, by the same sink. A table in the order of its partition keys, split between keys of one token, belongs
// here too.
