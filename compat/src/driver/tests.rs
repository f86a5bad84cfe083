//! The tests.

use super::{Test, execute, failed, same};
use crate::raw::{Connection, answer, opcode, request};
use crate::{Error, Outcome};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use scylla::client::session::Session;
use scylla::serialize::value::SerializeValue;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::CqlVarint;
use scylla::value::{Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue};
use std::net::IpAddr;

/// All tests, by name.
pub(super) const TESTS: [(&str, Test); 10] = [
    ("types", types),
    ("paging", paging),
    ("prepared statements", prepared),
    ("batches", batches),
    ("conditional updates", conditional),
    ("user types", user_types),
    ("metadata", metadata),
    ("schema events", schema_events),
    ("token awareness", tokens),
    ("errors", errors),
];

/// Writes a value of each type and reads it back.
#[expect(clippy::too_many_lines, reason = "a value of each type")]
fn types<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        let uuid = |text: &str| uuid::Uuid::parse_str(text).map_err(failed);
        let address: IpAddr = "::1".parse().map_err(failed)?;
        let all: Vec<(&str, CqlValue)> = vec![
            ("ascii", CqlValue::Ascii("abc".to_owned())),
            ("bigint", CqlValue::BigInt(i64::MIN)),
            ("blob", CqlValue::Blob(vec![0, 255])),
            ("boolean", CqlValue::Boolean(true)),
            ("date", CqlValue::Date(CqlDate((1 << 31) + 18_321))),
            (
                "decimal",
                CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_and_exponent(vec![0x96], 2)),
            ),
            ("double", CqlValue::Double(-1.5e300)),
            (
                "duration",
                CqlValue::Duration(CqlDuration {
                    months: 1,
                    days: 2,
                    nanoseconds: 3,
                }),
            ),
            ("float", CqlValue::Float(0.5)),
            ("inet", CqlValue::Inet(address)),
            ("int", CqlValue::Int(i32::MAX)),
            ("smallint", CqlValue::SmallInt(-1)),
            ("text", CqlValue::Text("é日本😀".repeat(1000))),
            ("time", CqlValue::Time(CqlTime(86_399_999_999_999))),
            ("timestamp", CqlValue::Timestamp(CqlTimestamp(-1))),
            (
                "timeuuid",
                CqlValue::Timeuuid(CqlTimeuuid::from(uuid("50554d6e-29bb-11e5-b345-feff819cdc9f")?)),
            ),
            ("tinyint", CqlValue::TinyInt(-128)),
            ("uuid", CqlValue::Uuid(uuid("123e4567-e89b-42d3-a456-426614174000")?)),
            (
                "varint",
                CqlValue::Varint(CqlVarint::from_signed_bytes_be(vec![1, 0, 0, 0, 0, 0, 0, 0, 0])),
            ),
            (
                "list<int>",
                CqlValue::List(vec![CqlValue::Int(1), CqlValue::Int(2), CqlValue::Int(1)]),
            ),
            ("set<int>", CqlValue::Set(vec![CqlValue::Int(-1), CqlValue::Int(2)])),
            (
                "map<text, int>",
                CqlValue::Map(vec![(CqlValue::Text("a".to_owned()), CqlValue::Int(1))]),
            ),
            (
                "frozen<list<int>>",
                CqlValue::List(vec![CqlValue::Int(3), CqlValue::Int(1)]),
            ),
            ("tuple<int, text>", CqlValue::Tuple(vec![Some(CqlValue::Int(1)), None])),
            (
                "vector<float, 2>",
                CqlValue::Vector(vec![CqlValue::Float(1.0), CqlValue::Float(2.5)]),
            ),
        ];
        for (i, (kind, value)) in all.iter().enumerate() {
            execute(
                session,
                &format!("CREATE TABLE KS.type_{i} (k int PRIMARY KEY, v {kind})"),
            )
            .await?;
            let insert = prepare(session, &format!("INSERT INTO KS.type_{i} (k, v) VALUES (?, ?)")).await?;
            session.execute_unpaged(&insert, (1, value)).await.map_err(failed)?;
            session
                .execute_unpaged(&insert, (2, None::<CqlValue>))
                .await
                .map_err(failed)?;
            let select = prepare(session, &format!("SELECT v FROM KS.type_{i} WHERE k = ?")).await?;
            for (k, expected) in [(1, Some(value.clone())), (2, None)] {
                let found = session.execute_unpaged(&select, (k,)).await.map_err(failed)?;
                let rows = found.into_rows_result().map_err(failed)?;
                let (got,) = rows.single_row::<(Option<CqlValue>,)>().map_err(failed)?;
                same(&got, &expected)?;
            }
        }
        Ok(())
    }
    .boxed()
}

async fn prepare(session: &Session, text: &str) -> Outcome<scylla::statement::prepared::PreparedStatement> {
    session
        .prepare(text.replace("KS.", "compat_rust."))
        .await
        .map_err(failed)
}

/// The first column of all rows of a query.
async fn column<T>(session: &Session, text: &str, values: impl scylla::serialize::row::SerializeRow) -> Outcome<Vec<T>>
where
    T: for<'r> scylla::deserialize::value::DeserializeValue<'r, 'r> + Send + 'static,
{
    let found = session
        .query_unpaged(text.replace("KS.", "compat_rust."), values)
        .await
        .map_err(failed)?;
    let rows = found.into_rows_result().map_err(failed)?;
    rows.rows::<(T,)>()
        .map_err(failed)?
        .map(|row| row.map(|(v,)| v).map_err(failed))
        .collect()
}

fn paging<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        execute(session, "CREATE TABLE KS.pages (k int, c int, PRIMARY KEY (k, c))").await?;
        let insert = prepare(session, "INSERT INTO KS.pages (k, c) VALUES (1, ?)").await?;
        for c in 0..100 {
            session.execute_unpaged(&insert, (c,)).await.map_err(failed)?;
        }
        for size in [1, 7, 50, 100, 1000] {
            let mut query = Statement::new("SELECT c FROM compat_rust.pages WHERE k = 1");
            query.set_page_size(size);
            let pager = session.query_iter(query, &[]).await.map_err(failed)?;
            let rows = pager.rows_stream::<(i32,)>().map_err(failed)?;
            let seen: Vec<i32> = rows.map_ok(|(c,)| c).try_collect().await.map_err(failed)?;
            same(&seen, &(0..100).collect())?;
        }
        Ok(())
    }
    .boxed()
}

fn prepared<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        execute(
            session,
            "CREATE TABLE KS.prep (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))",
        )
        .await?;
        let insert = prepare(session, "INSERT INTO KS.prep (c, b, a, v) VALUES (?, ?, ?, ?)").await?;
        let keys = insert
            .get_variable_pk_indexes()
            .iter()
            .map(|k| (k.index, k.sequence))
            .collect::<Vec<_>>();
        same(&keys, &vec![(1, 1), (2, 0)])?;
        session.execute_unpaged(&insert, (1, "x", 2, 3)).await.map_err(failed)?;
        session
            .execute_unpaged(&insert, (1, "x", 2, scylla::value::Unset))
            .await
            .map_err(failed)?;
        let inserts = (0..500).map(|c| {
            let insert = &insert;
            async move { session.execute_unpaged(insert, (c, "many", 2, c)).await }
        });
        let done: Vec<_> = futures::stream::iter(inserts).buffer_unordered(100).collect().await;
        for result in done {
            result.map_err(failed)?;
        }
        same(
            &column::<i32>(session, "SELECT v FROM KS.prep WHERE a = 2 AND b = 'x'", ()).await?,
            &vec![3],
        )?;
        let count = column::<i64>(
            session,
            "SELECT count(*) FROM KS.prep WHERE a = ? AND b = ?",
            (2, "many"),
        )
        .await?;
        same(&count, &vec![500])
    }
    .boxed()
}

fn batches<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        execute(
            session,
            "CREATE TABLE KS.batched (k int, c int, v text, PRIMARY KEY (k, c))",
        )
        .await?;
        execute(session, "CREATE TABLE KS.counted (k int PRIMARY KEY, n counter)").await?;
        let insert = prepare(session, "INSERT INTO KS.batched (k, c, v) VALUES (?, ?, ?)").await?;
        let mut batch = Batch::new(BatchType::Logged);
        batch.append_statement(insert.clone());
        batch.append_statement(insert);
        batch.append_statement("INSERT INTO compat_rust.batched (k, c) VALUES (1, 3)");
        session
            .batch(&batch, ((1, 1, "a"), (1, 2, "b"), ()))
            .await
            .map_err(failed)?;
        same(
            &column::<i32>(session, "SELECT c FROM KS.batched", ()).await?,
            &vec![1, 2, 3],
        )?;
        let count = prepare(session, "UPDATE KS.counted SET n = n + ? WHERE k = 1").await?;
        let mut batch = Batch::new(BatchType::Counter);
        batch.append_statement(count.clone());
        batch.append_statement(count);
        session
            .batch(&batch, ((Counter(5),), (Counter(6),)))
            .await
            .map_err(failed)?;
        same(
            &column::<Counter>(session, "SELECT n FROM KS.counted", ()).await?,
            &vec![Counter(11)],
        )
    }
    .boxed()
}

fn conditional<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        execute(session, "CREATE TABLE KS.lwt (k int PRIMARY KEY, v int)").await?;
        let insert = "INSERT INTO KS.lwt (k, v) VALUES (1, 1) IF NOT EXISTS";
        same(&column_first(session, insert).await?, &true)?;
        same(&column_first(session, insert).await?, &false)?;
        let update = "UPDATE KS.lwt SET v = 2 WHERE k = 1 IF v = 1";
        same(&column_first(session, update).await?, &true)?;
        same(&column_first(session, update).await?, &false)
    }
    .boxed()
}

/// Whether a conditional statement was applied: its first column.
async fn column_first(session: &Session, text: &str) -> Outcome<bool> {
    let found = session
        .query_unpaged(text.replace("KS.", "compat_rust."), &[])
        .await
        .map_err(failed)?;
    let rows = found.into_rows_result().map_err(failed)?;
    let row = rows.single_row::<scylla::value::Row>().map_err(failed)?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(applied))) => Ok(*applied),
        other => Err(Error::failed(format!("[applied] is {other:?}"))),
    }
}

#[derive(Debug, Clone, PartialEq, scylla::SerializeValue, scylla::DeserializeValue)]
struct Address {
    street: Option<String>,
    number: Option<i32>,
}

fn user_types<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        execute(session, "CREATE TYPE KS.address (street text, number int)").await?;
        execute(
            session,
            "CREATE TABLE KS.people (k int PRIMARY KEY, a address, l list<frozen<address>>)",
        )
        .await?;
        let insert = prepare(session, "INSERT INTO KS.people (k, a, l) VALUES (?, ?, ?)").await?;
        let address = Address {
            street: Some("s".to_owned()),
            number: None,
        };
        session
            .execute_unpaged(&insert, (1, &address, vec![&address]))
            .await
            .map_err(failed)?;
        same(
            &column::<Address>(session, "SELECT a FROM KS.people", ()).await?,
            &vec![address.clone()],
        )?;
        same(
            &column::<Vec<Address>>(session, "SELECT l FROM KS.people", ()).await?,
            &vec![vec![address]],
        )
    }
    .boxed()
}

fn metadata<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        let columns = "a int, b text, c timeuuid, d int, s int static, v list<int>";
        execute(
            session,
            &format!("CREATE TABLE KS.meta ({columns}, PRIMARY KEY ((a, b), c, d))"),
        )
        .await?;
        session.refresh_metadata().await.map_err(failed)?;
        let state = session.get_cluster_state();
        let keyspace = state
            .get_keyspace("compat_rust")
            .ok_or_else(|| Error::failed("no keyspace"))?;
        let table = keyspace.tables.get("meta").ok_or_else(|| Error::failed("no table"))?;
        same(&table.partition_key, &vec!["a".to_owned(), "b".to_owned()])?;
        same(&table.clustering_key, &vec!["c".to_owned(), "d".to_owned()])?;
        same(&table.columns.len(), &6)?;
        same(&state.get_nodes_info().len(), &1)?;
        let node = state.get_nodes_info().first().ok_or_else(|| Error::failed("no node"))?;
        same(&node.datacenter.as_deref(), &Some("datacenter1"))
    }
    .boxed()
}

/// The driver keeps its events to itself, so a raw connection listens while the driver changes the schema.
fn schema_events<'a>(session: &'a Session, address: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        let mut listener = Connection::open(address, 4)?;
        listener.ask(opcode::REGISTER, &request::register(&["SCHEMA_CHANGE"]))?;
        execute(session, "CREATE TABLE KS.event (k int PRIMARY KEY)").await?;
        let told = answer::plain(&tokio::task::block_in_place(|| listener.receive())?)?;
        let expected = serde_json::json!({
            "event": "SCHEMA_CHANGE", "change": "CREATED", "target": "TABLE", "names": ["compat_rust", "event"]
        });
        same(&told, &expected)
    }
    .boxed()
}

fn tokens<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        execute(session, "CREATE TABLE KS.tok (a int, b text, PRIMARY KEY ((a, b)))").await?;
        let insert = prepare(session, "INSERT INTO KS.tok (a, b) VALUES (?, ?)").await?;
        for a in 0..50i32 {
            let b = "é".repeat(usize::try_from(a).unwrap_or(0));
            session.execute_unpaged(&insert, (a, &b)).await.map_err(failed)?;
            let computed = insert.calculate_token(&(a, &b)).map_err(failed)?.map(|t| t.value());
            let text = "SELECT token(a, b) FROM KS.tok WHERE a = ? AND b = ?";
            let told = column::<i64>(session, text, (a, &b)).await?;
            same(&told.first().copied(), &computed)?;
        }
        let state = session.get_cluster_state();
        let key: (&dyn SerializeValue, &dyn SerializeValue) = (&1i32, &"x");
        let replicas = state.get_endpoints("compat_rust", "tok", &key).map_err(failed)?;
        same(&replicas.len(), &1)
    }
    .boxed()
}

fn errors<'a>(session: &'a Session, _: &'a str) -> BoxFuture<'a, Outcome<()>> {
    async move {
        for (text, words) in [
            ("SELEC * FROM t", "syntax"),
            ("SELECT * FROM KS.nothing", "nothing"),
            ("CREATE TABLE KS.prep (k int PRIMARY KEY)", "already existing"),
        ] {
            let Err(error) = execute(session, text).await else {
                return Err(Error::failed(format!("{text} succeeded")));
            };
            if !error.to_string().to_lowercase().contains(words) {
                return Err(Error::failed(format!("{text}: {error}")));
            }
        }
        Ok(())
    }
    .boxed()
}
