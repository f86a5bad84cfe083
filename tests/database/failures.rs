//! What clients see when a store fails: the level and kind of write of their request, and no directory. And while its disk is nearly full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::Client;
use helenus_base::clock::Clock;
use helenus_cql::cql;
use helenus_cql::cql::{Database, QueryParams, SessionState};
use helenus_engine::engine::{Error, FailureCause};
use helenus_storage::storage::FaultPoint;
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

#[tokio::test]
async fn a_failed_request_reports_its_own_level_and_kind() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = Client::with_keyspace(&url).await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    client.ok("CREATE TABLE c (k int PRIMARY KEY, n counter)").await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 1)").await;
    client.database.close().await.unwrap();

    let cause = FailureCause::Closed;
    let read = |consistency| cql::Error::from(Error::ReadFailure { consistency, cause });
    let write = |consistency, write_kind| {
        cql::Error::from(Error::WriteFailure {
            consistency,
            write_kind,
            cause,
        })
    };
    let insert = "INSERT INTO t (k, v) VALUES (1, 2)";
    let batch = |kind: &str| format!("BEGIN {kind} BATCH {insert} APPLY BATCH");
    let cases = [
        (
            "SELECT v FROM t WHERE k = 1".to_owned(),
            Consistency::Quorum,
            read(Consistency::Quorum),
        ),
        (
            "SELECT v FROM t".to_owned(),
            Consistency::LocalQuorum,
            read(Consistency::LocalQuorum),
        ),
        (
            insert.to_owned(),
            Consistency::Two,
            write(Consistency::Two, WriteKind::Simple),
        ),
        (batch(""), Consistency::All, write(Consistency::All, WriteKind::Batch)),
        (
            batch("UNLOGGED"),
            Consistency::Quorum,
            write(Consistency::Quorum, WriteKind::UnloggedBatch),
        ),
        // It reads before it writes: nothing was written.
        (
            format!("{insert} IF NOT EXISTS"),
            Consistency::Quorum,
            read(Consistency::Quorum),
        ),
    ];
    for (text, consistency, expected) in cases {
        let params = QueryParams {
            consistency,
            ..QueryParams::default()
        };
        let error = client.run(&text, params).await.unwrap_err();
        assert_eq!(error, expected, "{text}");
        let place = directory.path().display().to_string();
        assert!(!error.to_string().contains(&place), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_takes_what_may_free_it() {
    let directory = tempfile::tempdir().unwrap();
    for scheme in ["file", "slate+file"] {
        let clock = Clock::manual(1_700_000_000_000_000);
        let place = directory.path().join(scheme.replace('+', "-"));
        let mut options = Client::options(&format!("{scheme}:{}", place.display()), clock.clone());
        let is_full = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_full);
        options.store.disk_reserve_bytes = 1;
        options.store.faults = Some(Arc::new(move |point| {
            let fails = point == FaultPoint::FreeSpace && seen.load(Ordering::SeqCst);
            fails.then(|| std::io::Error::from(std::io::ErrorKind::StorageFull))
        }));
        let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
        let client = client.in_keyspace().await;
        for table in ["t", "u"] {
            let text = format!("CREATE TABLE {table} (k int, c int, v int, PRIMARY KEY (k, c))");
            client.ok(&text).await;
            for c in 0..4 {
                client
                    .ok(&format!("INSERT INTO {table} (k, c, v) VALUES (1, {c}, 1)"))
                    .await;
            }
        }
        client.ok("CREATE TABLE n (k int PRIMARY KEY, n counter)").await;
        let insert = "INSERT INTO t (k, c, v) VALUES (1, 9, 1)";
        let delete = "DELETE FROM t WHERE k = 1 AND c = 0";

        is_full.store(true, Ordering::SeqCst);
        client.database.engine().upkeep().check_disk();
        for (text, write_kind) in [
            (insert.to_owned(), WriteKind::Simple),
            (
                "UPDATE t SET v = null WHERE k = 1 AND c = 1".to_owned(),
                WriteKind::Simple,
            ),
            ("UPDATE n SET n = n + 1 WHERE k = 1".to_owned(), WriteKind::Counter),
            (format!("{insert} IF NOT EXISTS"), WriteKind::Cas),
            (format!("BEGIN BATCH {delete}; {insert} APPLY BATCH"), WriteKind::Batch),
        ] {
            let params = QueryParams {
                consistency: Consistency::Quorum,
                ..QueryParams::default()
            };
            let expected = cql::Error::from(Error::WriteFailure {
                consistency: Consistency::Quorum,
                write_kind,
                cause: FailureCause::DiskReserve,
            });
            assert_eq!(
                client.run(&text, params).await.unwrap_err(),
                expected,
                "{scheme}: {text}"
            );
        }
        client.ok(delete).await;
        client.ok("DELETE v FROM t WHERE k = 1 AND c = 1 IF v = 1").await;
        client
            .ok("BEGIN BATCH DELETE FROM t WHERE k = 1 AND c = 2; DELETE FROM t WHERE k = 1 AND c > 2 APPLY BATCH")
            .await;
        client.ok("TRUNCATE u").await;
        client.ok("DROP TABLE n").await;
        assert_eq!(client.rows("SELECT c, v FROM t").await, ["1 null"], "{scheme}");
        assert_eq!(client.rows("SELECT c FROM u").await, Vec::<String>::new(), "{scheme}");

        is_full.store(false, Ordering::SeqCst);
        client.database.engine().upkeep().check_disk();
        client.ok(insert).await;
        client.database.close().await.unwrap();
    }
}
