//! Times of writing and of living, and conditions: what needs a table whose cells have their own.

use super::Expect::{Error, Ok as Fine};
use super::{Row, check_in_turn, ok, with_tables};
use crate::support::printed;

const CELLS: &[Row] = &[
    (
        "B USING TIMESTAMP",
        "JanusGraph#2499",
        "INSERT INTO k.t (pk, ck) VALUES (1, 1) USING TIMESTAMP 1",
        Error(
            0x2200,
            "User specified timestamp not supported for this table. Please re-create the table with cosmosdb_cell_level_timestamp=true AND cosmosdb_cell_level_timestamp_tombstones=true AND cosmosdb_cell_level_timetolive=true.",
        ),
    ),
    (
        "B USING TIMESTAMP: batch",
        "JanusGraph#2499",
        "BEGIN UNLOGGED BATCH USING TIMESTAMP 1 INSERT INTO k.t (pk, ck) VALUES (1, 1); APPLY BATCH",
        Error(0x2200, "User specified timestamp not supported"),
    ),
    (
        "B USING TIMESTAMP: flags",
        "JanusGraph#2499",
        "INSERT INTO k.flags (pk, v) VALUES (1, 'x') USING TIMESTAMP 1 AND TTL 100",
        Fine,
    ),
    (
        "B flags: at CREATE only",
        "lightweight-transactions.md",
        "ALTER TABLE k.t WITH cosmosdb_cell_level_timestamp = true",
        Error(0x2200, "can only be set when a table is created"),
    ),
    (
        "B LWT",
        "lightweight-transactions.md",
        "INSERT INTO k.t (pk, ck) VALUES (9, 9) IF NOT EXISTS",
        Fine,
    ),
    (
        "B LWT: update",
        "lightweight-transactions.md",
        "UPDATE k.t SET v = 'x' WHERE pk = 9 AND ck = 9 IF EXISTS",
        Fine,
    ),
    (
        "B LWT: delete of a row",
        "lightweight-transactions.md",
        "DELETE FROM k.t WHERE pk = 9 AND ck = 9 IF EXISTS",
        Error(0x2200, "Conditional delete of an entire row is not supported."),
    ),
    (
        "B LWT: delete of a row, flags",
        "lightweight-transactions.md",
        "DELETE FROM k.flags WHERE pk = 9 IF EXISTS",
        Fine,
    ),
    (
        "B LWT: static and regular",
        "lightweight-transactions.md",
        "UPDATE k.t SET v = 'x' WHERE pk = 9 AND ck = 9 IF s = 'y'",
        Error(
            0x2200,
            "Conditions and assignments containing combination of Static and Regular columns are not supported.",
        ),
    ),
];

#[tokio::test]
async fn flags_of_cells_allow_what_they_do_in_cosmos() {
    check_in_turn(CELLS).await;
}

/// What is there of the row 1 after so many seconds, and what time it has left.
async fn left(flag: bool, writes: &[&str], after_seconds: u64) -> Vec<String> {
    let (server, _client) = with_tables(&[]).await;
    let flags = if flag {
        " WITH cosmosdb_cell_level_timetolive = true"
    } else {
        ""
    };
    ok(
        &server,
        &format!("CREATE TABLE k.lives (pk int PRIMARY KEY, a text, b text, c list<int>){flags}"),
    )
    .await;
    for write in writes {
        ok(&server, write).await;
    }
    // Each statement has let a minute pass.
    server.advance(std::time::Duration::from_secs(after_seconds));
    printed(&ok(&server, "SELECT a, b, c, ttl(a), ttl(b) FROM k.lives WHERE pk = 1").await)
}

#[tokio::test]
async fn a_time_to_live_is_the_rows() {
    // Source: support.md: times to live by USING are of rows, of cells only with the table's flag.
    let insert = "INSERT INTO k.lives (pk, a, b, c) VALUES (1, 'a', 'b', [1, 2])";
    let update = "UPDATE k.lives USING TTL 1000 SET a = 'x' WHERE pk = 1";
    assert_eq!(left(false, &[insert, update], 40).await, [r#""x" "b" [1, 2] 900 900"#]);
    assert_eq!(left(true, &[insert, update], 40).await, [r#""x" "b" [1, 2] 900 null"#]);
    // The whole row goes.
    assert!(left(false, &[insert, update], 1_000).await.is_empty());
    assert_eq!(
        left(true, &[insert, update], 1_000).await,
        [r#"null "b" [1, 2] null null"#]
    );
    // A part of the row by INSERT, an element of a list, a condition: the same.
    for write in [
        "INSERT INTO k.lives (pk, a) VALUES (1, 'x') USING TTL 1000",
        "UPDATE k.lives USING TTL 1000 SET c = c + [3] WHERE pk = 1",
        "UPDATE k.lives USING TTL 1000 SET a = 'x' WHERE pk = 1 IF b = 'b'",
    ] {
        assert!(left(false, &[insert, write], 1_000).await.is_empty(), "{write}");
    }
    // And so it lives on when it is given longer.
    let longer = "UPDATE k.lives USING TTL 5000 SET b = 'y' WHERE pk = 1";
    assert_eq!(
        left(false, &[insert, update, longer], 1_000).await,
        [r#""x" "y" [1, 2] 3940 3940"#]
    );
    let forever = "UPDATE k.lives USING TTL 0 SET b = 'y' WHERE pk = 1";
    assert_eq!(
        left(false, &[insert, update, forever], 10_000).await,
        [r#""x" "y" [1, 2] null null"#]
    );
}
