//! Secondary indexes: local ones, of columns that may have one.

use super::Expect::{Error, Ok as Fine};
use super::{Row, check_in_turn};

const INDEXES: &[Row] = &[
    (
        "B secondary indexes",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (v)",
        Fine,
    ),
    (
        "B secondary indexes: used",
        "secondary-indexing.md",
        "SELECT * FROM k.t WHERE v = 'x'",
        Fine,
    ),
    (
        "B secondary indexes: default name",
        "secondary-indexing.md",
        "DROP INDEX k.t_v_idx",
        Fine,
    ),
    (
        "B secondary indexes: partition key",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (pk)",
        Fine,
    ),
    (
        "B secondary indexes: decimal",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (d)",
        Error(0x2200, "decimal"),
    ),
    (
        "B secondary indexes: varint",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (i)",
        Error(0x2200, "varint"),
    ),
    (
        "B secondary indexes: frozen",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (full(f))",
        Error(0x2200, "frozen"),
    ),
    (
        "B secondary indexes: static",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (s)",
        Error(0x2200, "static"),
    ),
    (
        "B secondary indexes: clustering",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (ck)",
        Error(0x2200, "clustering"),
    ),
    (
        "A custom index class",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c ON k.t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
        Error(
            0x2300,
            "When using custom indexes, must have a class name and set to a supported class. Supported class names are ['CosmosDefaultIndex','AzureSearchIndex','CosmosClusteringIndex'] Got 'org.apache.cassandra.index.sasi.SASIIndex'",
        ),
    ),
    (
        "A custom index: default",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c ON k.t (v) USING 'CosmosDefaultIndex'",
        Fine,
    ),
    (
        "A custom index: search",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c2 ON k.flags (v) USING 'AzureSearchIndex'",
        Fine,
    ),
    (
        "C ORDER BY without index",
        "jaeger#5185",
        "SELECT * FROM k.t WHERE pk IN (1, 2) AND ck > 1 ORDER BY ck",
        Error(
            0x2200,
            "ORDER BY requires creating a custom index: CosmosClusteringIndex. Please create a custom index and re-issue this query",
        ),
    ),
    (
        "C CosmosClusteringIndex",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c3 ON k.t (ck) USING 'CosmosClusteringIndex'",
        Fine,
    ),
    (
        "C ORDER BY of one partition",
        "jaeger#5185",
        "SELECT * FROM k.t WHERE pk = 1 AND ck > 1 ORDER BY ck DESC",
        Fine,
    ),
    (
        "B secondary indexes: several",
        "secondary-indexing.md",
        "CREATE TABLE k.two (a int PRIMARY KEY, b int, c int)",
        Fine,
    ),
    (
        "B secondary indexes: named",
        "support.md",
        "CREATE INDEX by_b ON k.two (b)",
        Fine,
    ),
    (
        "B secondary indexes: several",
        "secondary-indexing.md",
        "CREATE INDEX ON k.two (c)",
        Fine,
    ),
    (
        "B secondary indexes: several",
        "secondary-indexing.md",
        "SELECT * FROM k.two WHERE b = 1 AND c = 2 ALLOW FILTERING",
        Fine,
    ),
    (
        "B secondary indexes: partition key and column",
        "partitioning.md",
        "SELECT * FROM k.two WHERE a = 1 AND b = 1",
        Fine,
    ),
    (
        "B secondary indexes: dropped by name",
        "secondary-indexing.md",
        "DROP INDEX k.by_b",
        Fine,
    ),
    (
        "B secondary indexes: gone",
        "secondary-indexing.md",
        "SELECT * FROM k.two WHERE b = 1",
        Error(0x2200, "ALLOW FILTERING"),
    ),
];

#[tokio::test]
async fn indexes_follow_the_rules_of_cosmos() {
    check_in_turn(INDEXES).await;
}
