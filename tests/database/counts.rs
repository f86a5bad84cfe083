//! Rows of physical partitions as the server shows them: exact for small tables, the last count for large ones.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::time::Duration;

use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, SessionState};
use helenus_engine::engine::{Options, PartitionLimits, PartitionSizes};

use crate::support::{Client, NOW_MICROS};

const LIMITS: PartitionLimits = PartitionLimits {
    bytes_max: u64::MAX,
    merges: false,
};

/// Longest age of a large table's count if the table was written to since.
const AGAIN: Duration = Duration::from_secs(600);

/// A table of four physical partitions.
struct Shown(Client);

impl Shown {
    async fn new(at_once_rows_max: u64) -> Self {
        let clock = Clock::manual(NOW_MICROS);
        let options = Options {
            count_at_once_rows_max: at_once_rows_max,
            ..Client::options("memory:", clock.clone())
        };
        let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
        let shown = Self(client.in_keyspace().await);
        shown
            .run("CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) WITH helenus_partitions = 4")
            .await;
        shown
    }

    async fn run(&self, statement: &str) {
        self.0.ok(statement).await;
    }

    /// Writes rows of one partition key.
    async fn write(&self, key: i32, rows: i32) {
        for row in 0..rows {
            self.run(&format!("INSERT INTO t (a, b) VALUES ({key}, {row})")).await;
        }
    }

    /// Rows of each partition, and whether they are exact, as a reader is shown them now.
    async fn rows(&self) -> (Vec<u64>, bool) {
        self.0.database.engine().upkeep().count_partitions().await;
        let all = self.0.database.engine().figures().partitions().into_iter();
        let of_table: Vec<_> = all.filter(|partition| partition.table == "t").collect();
        let rows = of_table.iter().map(|partition| partition.rows).collect();
        (rows, of_table.iter().all(|partition| partition.is_exact))
    }

    async fn check(&self) {
        self.0
            .database
            .engine()
            .upkeep()
            .repartition(LIMITS, &mut PartitionSizes::default())
            .await
            .unwrap();
    }
}

/// Tokens of int 1: −4069959284402364209, of 2: −3248873570005575792, of 3: 9010454139840013625.
#[tokio::test]
async fn small_tables_are_counted_when_they_are_shown() {
    let shown = Shown::new(Options::COUNT_AT_ONCE_ROWS_MAX).await;
    assert_eq!(shown.rows().await, (vec![0, 0, 0, 0], true));
    shown.write(1, 40).await;
    shown.write(3, 2).await;
    assert_eq!(shown.rows().await, (vec![0, 40, 0, 2], true));
    shown
        .run("ALTER TABLE t WITH helenus_split_at = -4000000000000000000")
        .await;
    shown.write(2, 3).await;
    assert_eq!(shown.rows().await, (vec![0, 40, 3, 0, 2], true));
    shown.run("TRUNCATE t").await;
    assert_eq!(shown.rows().await, (vec![0, 0, 0, 0, 0], true));
}

#[tokio::test]
async fn large_tables_are_counted_by_the_next_check() {
    let shown = Shown::new(20).await;
    shown.write(1, 40).await;
    assert_eq!(shown.rows().await, (vec![10, 10, 10, 10], false));
    shown.check().await;
    assert_eq!(shown.rows().await, (vec![0, 40, 0, 0], true));
    // Grown by a quarter: as it was counted, and in all as many as there are.
    shown.write(3, 10).await;
    shown.check().await;
    assert_eq!(shown.rows().await, (vec![0, 50, 0, 0], false));
    // By half and more.
    shown.write(2, 20).await;
    assert_eq!(shown.rows().await, (vec![0, 70, 0, 0], false));
    shown.check().await;
    assert_eq!(shown.rows().await, (vec![0, 60, 0, 10], true));
    // A little, some time ago.
    shown.write(3, 11).await;
    shown.rows().await;
    shown.check().await;
    assert!(!shown.rows().await.1);
    shown.0.clock.advance(AGAIN);
    shown.rows().await;
    shown.check().await;
    assert_eq!(shown.rows().await, (vec![0, 60, 0, 11], true));
}

#[tokio::test]
async fn other_partitions_show_their_part_of_what_was_counted() {
    let shown = Shown::new(0).await;
    shown.write(1, 64).await;
    shown.rows().await;
    shown.check().await;
    // The upper half of the second quarter of the ring.
    shown
        .run("ALTER TABLE t WITH helenus_split_at = -2305843009213693952")
        .await;
    let (rows, is_exact) = shown.rows().await;
    assert_eq!((rows, is_exact), (vec![0, 32, 32, 0, 0], false));
}
