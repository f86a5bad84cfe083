//! Guardrails that are off by default: texts of Cassandra 5.0's `db.guardrails.Guardrails`, with `Guardrail#decorateMessage`'s
//! beginning. Those that are on by default are recorded from Cassandra (`compat/oracle/scripts/guardrails_*.cql`).

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use std::sync::{Arc, Mutex};

use crate::support::Client;
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Database, QueryParams, SessionState};
use helenus_engine::engine::{self, Options};
use helenus_schema::guardrails::{Guardrails, Threshold};
use helenus_schema::guardrails::{Listed, Names, Switches};
use helenus_types::consistency::Consistency;
use helenus_types::wire::response::ErrorCode;
use serde_json::Value;

const ON: Threshold = Threshold::new(2, 3);

async fn client(change: impl FnOnce(&mut Guardrails)) -> Client {
    let mut guardrails = Guardrails::default();
    change(&mut guardrails);
    let clock = Clock::manual(1_700_000_000_000_000);
    let options = Options {
        guardrails,
        ..Client::options("memory:", clock.clone())
    };
    let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
    client.in_keyspace().await
}

impl Client {
    async fn warned(&self, text: &str, warning: &str) {
        assert_eq!(self.ok(text).await.warnings, [warning], "{text}");
    }

    async fn refused_because(&self, text: &str, why: &str) {
        let error = self.run(text, QueryParams::default()).await.unwrap_err();
        assert_eq!(
            (error.code(), error.to_string()),
            (ErrorCode::Invalid, why.to_owned()),
            "{text}"
        );
    }
}

#[tokio::test]
async fn amounts_of_the_schema() {
    let client = client(|guardrails| {
        guardrails.keyspaces = ON;
        guardrails.tables = ON;
        guardrails.columns_per_table = ON;
        guardrails.fields_per_udt = ON;
        guardrails.secondary_indexes_per_table = Threshold::new(0, 1);
    })
    .await;
    let keyspace = |name| {
        format!("CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    };
    assert!(client.ok(&keyspace("two")).await.warnings.is_empty());
    let said = "Guardrail keyspaces violated: Creating keyspace three, current number of keyspaces 3 exceeds warning threshold of 2.";
    client.warned(&keyspace("three"), said).await;
    let said =
        "Guardrail keyspaces violated: Cannot have more than 3 keyspaces, aborting the creation of keyspace four";
    client.refused_because(&keyspace("four"), said).await;

    assert!(
        client
            .ok("CREATE TABLE a (k int PRIMARY KEY, v int)")
            .await
            .warnings
            .is_empty()
    );
    let said =
        "Guardrail columns_per_table violated: The table b has 3 columns, this exceeds the warning threshold of 2.";
    client
        .warned("CREATE TABLE b (k int PRIMARY KEY, v int, w int)", said)
        .await;
    let said =
        "Guardrail columns_per_table violated: Tables cannot have more than 3 columns, but 4 provided for table c";
    client
        .refused_because("CREATE TABLE c (k int PRIMARY KEY, v int, w int, x int)", said)
        .await;
    client
        .refused_because("ALTER TABLE b ADD x int", &said.replace("table c", "table b"))
        .await;
    let said =
        "Guardrail tables violated: Creating table c, current number of tables 3 exceeds warning threshold of 2.";
    client.warned("CREATE TABLE c (k int PRIMARY KEY)", said).await;
    let said = "Guardrail tables violated: Cannot have more than 3 tables, aborting the creation of table d";
    client.refused_because("CREATE TABLE d (k int PRIMARY KEY)", said).await;

    let said =
        "Guardrail fields_per_udt violated: The user type u has 3 columns, this exceeds the warning threshold of 2.";
    client.warned("CREATE TYPE u (a int, b int, c int)", said).await;
    let said = "Guardrail fields_per_udt violated: User types cannot have more than 3 columns, but 4 provided for user type u.";
    client.refused_because("ALTER TYPE u ADD d int", said).await;

    let said = "Guardrail secondary_indexes_per_table violated: Creating secondary index v_index on table a, current number of \
                indexes 1 exceeds warning threshold of 0.";
    client.warned("CREATE INDEX v_index ON a (v)", said).await;
    let said = "Guardrail secondary_indexes_per_table violated: Tables cannot have more than 1 secondary indexes, aborting the \
                creation of secondary index on table a";
    client.refused_because("CREATE INDEX ON a (v)", said).await;
}

#[tokio::test]
async fn amounts_of_a_read() {
    let client = client(|guardrails| {
        guardrails.partition_keys_in_select = ON;
        guardrails.in_select_cartesian_product = ON;
        guardrails.page_size = ON;
    })
    .await;
    client.ok("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))").await;
    let said = "Guardrail partition_keys_in_select violated: Query with partition keys in IN clause on table t, with number of \
                partition keys 3 exceeds warning threshold of 2.";
    client.warned("SELECT * FROM t WHERE k IN (1, 2, 3)", said).await;
    let said = "Guardrail partition_keys_in_select violated: Aborting query with partition keys in IN clause on table t, number of \
                partition keys 4 exceeds fail threshold of 3.";
    client
        .refused_because("SELECT * FROM t WHERE k IN (1, 2, 3, 4)", said)
        .await;
    let said = "Guardrail in_select_cartesian_product violated: The cartesian product of the IN restrictions on clustering key \
                produces 3 values, this exceeds warning threshold of 2.";
    client
        .warned("SELECT * FROM t WHERE k = 1 AND c IN (1, 2, 3)", said)
        .await;
    let said = "Guardrail in_select_cartesian_product violated: Aborting query because the cartesian product of the IN restrictions \
                on clustering key produces 4 values, this exceeds fail threshold of 3.";
    client
        .refused_because("SELECT * FROM t WHERE k = 1 AND c IN (1, 2, 3, 4)", said)
        .await;
    let paged = |rows| QueryParams {
        page_size_rows: Some(rows),
        ..QueryParams::default()
    };
    let answer = client.run("SELECT * FROM t", paged(3)).await.unwrap();
    let said = "Guardrail page_size violated: Query for table t with page size 3 exceeds warning threshold of 2.";
    assert_eq!(answer.warnings, [said]);
    let error = client.run("SELECT * FROM t", paged(4)).await.unwrap_err();
    let said = "Guardrail page_size violated: Aborting query for table t, page size 4 exceeds fail threshold of 3.";
    assert_eq!((error.code(), error.to_string()), (ErrorCode::Invalid, said.to_owned()));
}

#[tokio::test]
async fn amounts_of_a_write() {
    let client = client(|guardrails| {
        guardrails.items_per_collection = ON;
        guardrails.collection_bytes = Threshold::new(100, 1000);
        guardrails.column_value_bytes = Threshold::new(20, 30);
    })
    .await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v text, l list<int>, s set<text>, f frozen<list<int>>)")
        .await;
    let said = "Guardrail items_per_collection violated: Detected collection f with 3 items, this exceeds the warning threshold of 2.";
    let value = "Guardrail column_value_size violated: Value of column 'f' has size 28, this exceeds the warning threshold of 20.";
    assert_eq!(
        client.ok("INSERT INTO t (k, f) VALUES (1, [1, 2, 3])").await.warnings,
        [value, said]
    );
    let said = "Guardrail items_per_collection violated: Detected collection l with 4 items, this exceeds the failure threshold of 3.";
    client
        .refused_because("UPDATE t SET l = l + [1, 2, 3, 4] WHERE k = 1", said)
        .await;
    let said = "Guardrail collection_size violated: Detected collection s of size 119, this exceeds the warning threshold of 100.";
    let text = format!("UPDATE t SET s = {{'{}'}} WHERE k = 1", "x".repeat(99));
    client.warned(&text, said).await;
    let said = "Guardrail column_value_size violated: Value of column 'v' has size 21, this exceeds the warning threshold of 20.";
    client
        .warned(&format!("INSERT INTO t (k, v) VALUES (1, '{}')", "x".repeat(21)), said)
        .await;
    let said = "Guardrail column_value_size violated: Value of column 'v' has size 31, this exceeds the failure threshold of 30.";
    client
        .refused_because(
            &format!("UPDATE t SET v = '{}' WHERE k = 1 IF EXISTS", "x".repeat(31)),
            said,
        )
        .await;
}

/// Cassandra's ReadFailure READ_TOO_MANY_TOMBSTONES (`TombstoneOverwhelmingException`).
#[tokio::test]
async fn too_many_tombstones() {
    let client = client(|guardrails| guardrails.tombstones = ON).await;
    client.ok("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))").await;
    client.ok("DELETE FROM t WHERE k = 1 AND c IN (1, 2, 3)").await;
    let warnings = client.ok("SELECT * FROM t WHERE k = 1").await.warnings;
    let said = "Read 0 live rows and 3 tombstone cells for query SELECT * FROM ks.t WHERE k = 1 ALLOW FILTERING; token \
                -4069959284402364209 (see tombstone_warn_threshold)";
    assert_eq!(warnings, [said]);
    client.ok("DELETE FROM t WHERE k = 1 AND c = 4").await;
    let error = client.run("SELECT * FROM t WHERE k = 1", QueryParams::default()).await;
    assert!(
        matches!(error, Err(Error::Engine(engine::Error::TooManyTombstones { .. }))),
        "{error:?}"
    );
}

/// What Cassandra 5.0.9 answered to a user who is no superuser, with all of this switched off. Where it names its `cassandra.yaml`, the
/// name of our setting follows.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "each switch, and what it refuses")]
async fn what_is_switched_off() {
    let client = client(|guardrails| {
        guardrails.switches = Switches {
            simple_strategy: true,
            zero_ttl_on_twcs_warned: true,
            allow_filtering: false,
            group_by: false,
            user_timestamps: false,
            drop_truncate_table: false,
            drop_keyspace: false,
            alter_table: false,
            secondary_indexes: false,
            materialized_views: false,
            uncompressed_tables: false,
            compact_tables: false,
            drop_compact_storage: false,
            data_masking: false,
            user_defined_functions: false,
            vector_type: true,
            read_before_write_list_operations: false,
            zero_ttl_on_twcs: true,
        };
    })
    .await;
    client
        .ok("CREATE TABLE t (k int, c int, v int, l list<int>, PRIMARY KEY (k, c))")
        .await;
    let filtering = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. \
                     Executing this query despite the performance unpredictability with ALLOW FILTERING has been disabled by the \
                     allow_filtering_enabled property in cassandra.yaml (Helenus: the setting allow-filtering-enabled)";
    client.refused_because("SELECT * FROM t WHERE v = 1", filtering).await;
    client
        .ok("SELECT * FROM system.local WHERE cluster_name = 'a' ALLOW FILTERING")
        .await;
    let timestamps = "user_timestamps violated: User provided timestamps (USING TIMESTAMP) is not allowed";
    let lists = |what: &str| {
        format!("read_before_write_list_operations violated: {what} requiring read before write is not allowed")
    };
    let columns = "alter_table violated: ALTER TABLE changing columns is not allowed";
    let dropping = "drop_truncate_table_enabled violated: DROP and TRUNCATE TABLE functionality is not allowed";
    let uncompressed = "uncompressed_tables_enabled violated: Uncompressed table is not allowed";
    let refused: Vec<(&str, String)> = vec![
        (
            "SELECT * FROM t WHERE k = 1 ALLOW FILTERING",
            "allow_filtering violated: Querying with ALLOW FILTERING is not allowed. ALLOW FILTERING can potentially visit all the \
             data in the table and have unpredictable performance."
                .to_owned(),
        ),
        (
            "SELECT k, count(*) FROM t GROUP BY k",
            "group_by violated: GROUP BY functionality is not allowed".to_owned(),
        ),
        ("INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP 1", timestamps.to_owned()),
        (
            "BEGIN BATCH INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP 1 APPLY BATCH",
            timestamps.to_owned(),
        ),
        (
            "UPDATE t SET l[0] = 1 WHERE k = 1 AND c = 1",
            lists("Setting of list items by index"),
        ),
        (
            "UPDATE t SET l = l - [1] WHERE k = 1 AND c = 1",
            lists("Removal of list items"),
        ),
        (
            "DELETE l[0] FROM t WHERE k = 1 AND c = 1",
            lists("Removal of list items by index"),
        ),
        ("ALTER TABLE t ADD x int", columns.to_owned()),
        ("ALTER TABLE t DROP v", columns.to_owned()),
        ("ALTER TABLE t RENAME c TO d", columns.to_owned()),
        (
            "CREATE INDEX ON t (v)",
            "secondary_indexes violated: Creating secondary indexes is not allowed".to_owned(),
        ),
        ("TRUNCATE t", dropping.to_owned()),
        ("DROP TABLE IF EXISTS nope", dropping.to_owned()),
        (
            "DROP KEYSPACE ks",
            "drop_keyspace_enabled violated: DROP KEYSPACE functionality is not allowed".to_owned(),
        ),
        (
            "CREATE TABLE u (k int PRIMARY KEY) WITH compression = {'enabled': false}",
            uncompressed.to_owned(),
        ),
        (
            "CREATE TABLE u (k int PRIMARY KEY, v int) WITH COMPACT STORAGE",
            "compact_tables violated: Creation of new COMPACT STORAGE tables is not allowed".to_owned(),
        ),
    ];
    for (text, why) in refused {
        client.refused_because(text, &format!("Guardrail {why}")).await;
    }
    for (text, why) in [
        (
            "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
            "Materialized views are disabled. Enable in cassandra.yaml to use. (Helenus: the setting materialized-views-enabled)",
        ),
        (
            "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
            "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable \
             (Helenus: the setting user-defined-functions-enabled)",
        ),
        (
            "ALTER TABLE t DROP COMPACT STORAGE",
            "DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use. (Helenus: the setting drop-compact-storage-enabled)",
        ),
    ] {
        client.refused_because(text, why).await;
    }
    client
        .ok("BEGIN BATCH USING TIMESTAMP 1 INSERT INTO t (k, c) VALUES (1, 1) APPLY BATCH")
        .await;
    client.ok("UPDATE t SET l = l + [1] WHERE k = 1 AND c = 1").await;
    let windows = "CREATE TABLE w (k int PRIMARY KEY) WITH compaction = {'class': 'TimeWindowCompactionStrategy'}";
    let warnings = client.ok(windows).await.warnings;
    let guardrail = "Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table";
    assert!(
        warnings.len() == 2 && warnings.iter().any(|warning| warning.starts_with(guardrail)),
        "{warnings:?}"
    );
    let expiring = windows.replace(" w ", " x ") + " AND default_time_to_live = 60";
    assert_eq!(
        client.ok(&expiring).await.warnings,
        ["Stored without effect: compaction"]
    );
}

/// What Cassandra has a use for and this server only shows is said, where it differs from what the table had.
#[tokio::test]
async fn options_without_effect_are_named() {
    let client = Client::with_keyspace("memory:").await;
    for (text, said) in [
        (
            "CREATE TABLE a (k int PRIMARY KEY) WITH comment = 'x' AND default_time_to_live = 9 AND gc_grace_seconds = 9",
            "",
        ),
        (
            "CREATE TABLE b (k int PRIMARY KEY) WITH cdc = false AND compression = {'class': 'LZ4Compressor'}",
            "",
        ),
        (
            "CREATE TABLE c (k int PRIMARY KEY) WITH speculative_retry = '5ms' AND cdc = true",
            "speculative_retry",
        ),
        (
            "CREATE TABLE d (k int PRIMARY KEY) WITH compaction = {'class': 'LeveledCompactionStrategy'}",
            "compaction",
        ),
        (
            "CREATE TABLE e (k int PRIMARY KEY) WITH bloom_filter_fp_chance = 0.1 AND compaction = {'class': 'LeveledCompactionStrategy'}",
            "bloom_filter_fp_chance, compaction",
        ),
        (
            "ALTER TABLE a WITH caching = {'keys': 'NONE'} AND comment = 'y'",
            "caching",
        ),
        ("ALTER TABLE a WITH caching = {'keys': 'NONE'}", ""),
        ("ALTER TABLE a ADD v int", ""),
    ] {
        let said = (!said.is_empty()).then(|| format!("Stored without effect: {said}"));
        assert_eq!(
            client.ok(text).await.warnings,
            said.into_iter().collect::<Vec<_>>(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn amounts_of_vectors_and_of_time() {
    let client = client(|guardrails| {
        guardrails.vector_dimensions = Threshold::new(2, 4);
        guardrails.maximum_timestamp_seconds = Threshold::new(3600, 86_400);
        guardrails.minimum_timestamp_seconds = Threshold::new(3600, 86_400);
    })
    .await;
    let said = |of: &str, level: &str, count: u32, threshold: u32| {
        format!(
            "Guardrail vector_dimensions violated: {of} has a vector of {count} dimensions, this exceeds the {level} threshold of \
             {threshold}."
        )
    };
    client
        .warned(
            "CREATE TABLE t (k int PRIMARY KEY, v vector<float, 3>)",
            &said("Column v", "warning", 3, 2),
        )
        .await;
    client
        .refused_because(
            "CREATE TABLE u (k int PRIMARY KEY, v list<frozen<vector<float, 5>>>)",
            &said("Column v", "failure", 5, 4),
        )
        .await;
    client
        .warned("CREATE TYPE ty (a vector<float, 3>)", &said("Field a", "warning", 3, 2))
        .await;
    client
        .refused_because(
            "ALTER TYPE ty ADD b vector<float, 5>",
            &said("Field b", "failure", 5, 4),
        )
        .await;
    client
        .refused_because(
            "ALTER TABLE t ADD w vector<float, 5>",
            &said("Column w", "failure", 5, 4),
        )
        .await;

    let now = 1_700_000_000_000_000;
    let write = |at: i64| format!("INSERT INTO t (k) VALUES (1) USING TIMESTAMP {at}");
    let hour = 3_600_000_000;
    assert!(client.ok(&write(now - hour / 2)).await.warnings.is_empty());
    let at = now + 2 * hour;
    let said = format!(
        "Guardrail maximum_timestamp violated: The modification to table t has a timestamp {at} after the maximum allowable \
         warning threshold {}. Timestamps too far in the future can lead to data that can't be easily overwritten",
        now + hour
    );
    client.warned(&write(at), &said).await;
    let said = format!(
        "Guardrail minimum_timestamp violated: The modification to table t has a timestamp 1 before the minimum allowable failure \
         threshold {}. Timestamps too far in the past can cause writes can be unexpectedly lost",
        now - 24 * hour
    );
    client.refused_because(&write(1), &said).await;
}

#[tokio::test]
async fn levels_and_properties_on_lists() {
    let names = |text: &str| text.parse::<Names>().unwrap();
    let client = client(|guardrails| {
        let levels = Listed {
            warned: names("ALL"),
            disallowed: names("TWO"),
        };
        guardrails.read_levels = levels.clone();
        guardrails.write_levels = levels;
        guardrails.table_properties = Listed {
            warned: names("comment"),
            disallowed: names("bloom_filter_fp_chance, id"),
        };
    })
    .await;
    let said = "Guardrail table_properties violated: Provided values [comment] are not recommended for Table Properties (warned \
                values are: [comment])";
    client
        .warned("CREATE TABLE t (k int PRIMARY KEY) WITH comment = 'a'", said)
        .await;
    let said = "Guardrail table_properties violated: Provided values [bloom_filter_fp_chance] are not allowed for Table Properties \
                (disallowed values are: [bloom_filter_fp_chance, id])";
    client
        .refused_because("ALTER TABLE t WITH bloom_filter_fp_chance = 0.1", said)
        .await;
    for (text, of) in [
        ("SELECT * FROM t WHERE k = 1", "read"),
        ("INSERT INTO t (k) VALUES (1)", "write"),
        ("BEGIN BATCH INSERT INTO t (k) VALUES (1) APPLY BATCH", "write"),
    ] {
        let at = |consistency| QueryParams {
            consistency,
            ..QueryParams::default()
        };
        let warnings = client.run(text, at(Consistency::All)).await.unwrap().warnings;
        let said = format!(
            "Guardrail {of}_consistency_levels violated: Provided values [ALL] are not recommended for {of} consistency levels \
             (warned values are: [ALL])"
        );
        assert_eq!(warnings, [said], "{text}");
        let error = client.run(text, at(Consistency::Two)).await.unwrap_err();
        let said = format!(
            "Guardrail {of}_consistency_levels violated: Provided values [TWO] are not allowed for {of} consistency levels \
             (disallowed values are: [TWO])"
        );
        assert_eq!((error.code(), error.to_string()), (ErrorCode::Invalid, said), "{text}");
    }
}

/// What is logged on the thread of a test, a JSON object a line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Takes what is logged until the guard is dropped.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    /// What a guardrail said since this was asked last: level, partition, amount and threshold.
    fn said(&self, guardrail: &str) -> Vec<(String, String, u64, u64)> {
        let lines = std::mem::take(&mut *self.0.lock().unwrap());
        let lines = String::from_utf8(lines).unwrap();
        let mut said = Vec::new();
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let fields = &line["fields"];
            if fields["guardrail"] == guardrail {
                said.push((
                    line["level"].as_str().unwrap().to_owned(),
                    fields["partition"].as_str().unwrap().to_owned(),
                    fields["amount"].as_u64().unwrap(),
                    fields["threshold"].as_u64().unwrap(),
                ));
            }
        }
        said
    }
}

/// Writes to the partitions 1 and 2 of `ks.t`, to the first alone until the guardrail has warned and then failed; only the log says so.
async fn is_logged(guardrail: &str, client: &Client, write: impl Fn(i32, i32) -> String, thresholds: [u64; 2]) {
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let (log, _guard) = Log::begin();
    for c in 0..4 {
        assert!(client.ok(&write(2, c)).await.warnings.is_empty());
    }
    assert_eq!(log.said(guardrail), []);
    let mut levels = Vec::new();
    for c in 0..200 {
        assert!(client.ok(&write(1, c)).await.warnings.is_empty());
        for (level, partition, amount, threshold) in log.said(guardrail) {
            assert_eq!(partition, "ks.t:1");
            let [warn, fail] = thresholds;
            let expected = if amount > fail { ("ERROR", fail) } else { ("WARN", warn) };
            assert_eq!((level.as_str(), threshold), expected, "{amount}");
            assert!(amount > warn && amount < 2 * fail, "{amount}");
            levels.push(level);
        }
        if levels.last().is_some_and(|level| level == "ERROR") {
            assert_eq!(levels[0], "WARN");
            return;
        }
    }
    panic!("{guardrail}: {levels:?}");
}

#[tokio::test]
async fn the_size_of_a_stored_partition_is_logged() {
    let client = client(|guardrails| guardrails.partition_bytes = Threshold::new(4_000, 8_000)).await;
    let value = "v".repeat(200);
    let insert = |k, c| format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, '{value}')");
    is_logged("partition_size", &client, insert, [4_000, 8_000]).await;
}

#[tokio::test]
async fn the_tombstones_of_a_stored_partition_are_logged() {
    let client = client(|guardrails| guardrails.partition_tombstones = Threshold::new(20, 40)).await;
    // A deleted cell, a deleted row, a deleted range: one, one, and one at each end.
    let delete = |k, c| match c % 3 {
        0 => format!("DELETE v FROM t WHERE k = {k} AND c = {c}"),
        1 => format!("DELETE FROM t WHERE k = {k} AND c = {c}"),
        _ => format!("DELETE FROM t WHERE k = {k} AND c > {c}000 AND c < {c}999"),
    };
    is_logged("partition_tombstones", &client, delete, [20, 40]).await;
}
