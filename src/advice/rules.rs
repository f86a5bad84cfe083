//! The rules: their ids, which are stable, why each is one, and what to do instead.

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable, for programs and for those who want to leave one out.
    pub id: &'static str,
    /// What it looks for.
    pub what: &'static str,
    /// Why that costs.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $what:literal $why:literal $instead:literal)*) => {
        $(pub(super) const $name: Rule = Rule { id: $id, what: $what, why: $why, instead: $instead };)*
        /// All rules, by id.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    APPEND_HOT_RANGE "append-hot-range"
        "The partition key is a piece of time, so that all of the present is one partition."
        "All writes of now go to one logical partition, which one physical partition serves: at most 10,000 RU/s however much the table was given, while the others are idle. When the bucket is over it is never written again."
        "Put what the rows belong to (a device, a user) before the bucket in the partition key, or a shard number from 0 to n − 1, chosen by a hash or at random; read the n shards side by side."
    FAN_OUT_FILTERING "fan-out-filtering"
        "ALLOW FILTERING without the partition key."
        "Every physical partition is visited and every row read and paid for, returned or not. Time and charge grow with the table, not with the answer."
        "Keep a table whose partition key is what is asked for; or, where the answer is small and asked for rarely, an index."
    FAN_OUT_INDEX "fan-out-index"
        "A query by an index without the partition key."
        "Indexes are local to each physical partition, so that every one of them is asked, also those without an answer: the charge begins at 2.3 RU for each, and the slowest one is the latency."
        "Give the partition key too where it is known. For a query that is asked often, keep a table with that column as its partition key."
    FEW_PARTITIONS "few-partitions"
        "There are fewer partition keys than it takes to use the physical partitions."
        "A logical partition is never divided: physical partitions beyond the number of partition keys stay empty, and their share of the throughput is lost."
        "Add a column with many values to the partition key, or a shard number."
    FILTER_IN_PARTITION "filter-in-partition"
        "ALLOW FILTERING inside of a partition."
        "All rows of the partition are read and paid for, the few that fit are returned. It is as cheap as the partition is small."
        "Make the column a clustering column before the others, or keep partitions small."
    FULL_SCAN "full-scan"
        "A query that reads the whole table."
        "Every physical partition is visited and every row is paid for; pages keep it alive, not cheap."
        "Name the partition key. Reports are better read by ranges of token(…), side by side and slowly, or from the change feed."
    HOT_RANGE "hot-range"
        "A few partitions take most of the writes."
        "Throughput is divided evenly among the physical partitions: what one of them cannot take is refused while the others have units left."
        "Divide the busy keys by a bucket or shard in the partition key."
    INDEX_CHANGING "index-on-changing-column"
        "An index on a column that changes often."
        "Each change takes the old entry away and puts a new one: a second write, charged as one. Queries by it compete with the changes."
        "Keep what changes out of indexes: a table for each state, rows moved between them, or a query by partition key."
    INDEX_FEW_VALUES "index-on-few-values"
        "An index on a column with few values."
        "A value that a large part of the rows has is found faster by reading the rows: each entry costs a read of its row."
        "Leave the index out; put the column behind the partition key as the first clustering column."
    INDEX_TOO_MANY "too-many-indexes"
        "A table with many indexes."
        "Each write keeps the entries of every index it touches, and each is charged."
        "Keep the indexes that queries use; a second table by another key is often cheaper than the third index."
    INDEX_UNUSED "unused-index"
        "An index that no query uses."
        "Its entries are stored, counted to the logical partition's size, and paid for with every write."
        "Drop it, or add the query that needs it to the queries."
    INVALID "invalid-statement"
        "A statement that would be refused."
        "The server answers it with an error."
        "Correct it."
    LARGE_COLLECTION "large-collection"
        "A collection that probably grows with use."
        "A collection is read as a whole with its row, and a row may have 2 MB at most."
        "Make its elements rows of a table of their own, clustered by what orders them."
    LOW_CARDINALITY "low-cardinality-key"
        "The partition key has few values."
        "Each value is one logical partition: all its rows in one place, at most 20 GB and 10,000 RU/s, and no more physical partitions can work than there are values."
        "Put a column with many values (an id) into the partition key; make this one a clustering column, or a part of a longer key."
    MISSING_KEY_INDEX "missing-partition-key-index"
        "The partition key with another column, and the partition key is not indexed."
        "Azure Cosmos DB for Apache Cassandra asks all physical partitions when a query restricts the partition key together with a column outside of the primary key, unless the partition key column is indexed itself. Helenus goes to the one partition either way."
        "CREATE INDEX on the partition key column, one for each column of a composite key."
    MONOTONIC "monotonic-key"
        "The partition key goes on with time."
        "Keys are spread by their hash, so writes are even; but neighbours in time are far apart: the latest rows and ranges of time can only be found by reading everything. Equal times fall into one partition."
        "Make it a clustering column behind what the rows belong to and a bucket of time."
    NEAR_CAP "partition-near-cap"
        "A logical partition is near its largest size."
        "Writes that would make a logical partition larger than 20 GB, entries of its indexes counted, are refused; splitting physical partitions does not help, since a logical one is never divided."
        "Delete or expire old rows now; divide the key by a bucket before it is full."
    CAP_FORECAST "partition-cap-forecast"
        "At the pace of the last days a logical partition will reach its largest size."
        "Writes beyond 20 GB are refused, and moving to another partition key takes a new table and a copy."
        "Add a bucket to the partition key, or a time to live, while the partition is small."
    UNBOUNDED "unbounded-partition"
        "Rows are added to a partition for as long as the table lives."
        "A logical partition takes 20 GB at most, then writes to it are refused. Long before that, reads of it become slow and dear, and it makes one physical partition hot."
        "Add a bucket of time (a day, a month) to the partition key so that a partition ends, or let rows expire by default_time_to_live."
    UNUSED_TABLE "unused-table"
        "A table that nothing uses."
        "It may have throughput of its own, which is paid for whether used or not."
        "Drop it, or add the queries that use it."
    WIDE_BATCH "wide-batch"
        "A batch over several partitions."
        "Each partition is written by itself; the batch is as slow as the slowest, and one coordinator holds all of it."
        "Send the statements by themselves, side by side. Batch what belongs to one partition."
    WIDE_IN "wide-in"
        "IN with many partition keys."
        "Each key is a read of its own, perhaps on another physical partition; the query is as slow as the slowest, and a page of it begins them all."
        "Ask for each key by itself, side by side, from the client; drivers send each to its replica."
}
