//! What clients see when a store fails: the level and kind of write of their request, and no directory.

use crate::support::Client;
use helenus::consistency::WriteKind;
use helenus::cql::QueryParams;
use helenus::engine::{Error, FailureCause};
use helenus::partition::Consistency;

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
    let read = |consistency| Error::ReadFailure { consistency, cause };
    let write = |consistency, write_kind| Error::WriteFailure {
        consistency,
        write_kind,
        cause,
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
