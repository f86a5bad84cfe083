//! The rules: their stable ids, their reasons, and what to do instead.

use helenus_schema::profile::Profile;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable id, for programs and for `accept` comments.
    pub id: &'static str,
    /// What it checks.
    pub what: &'static str,
    /// Why that costs on Azure Cosmos DB and in Helenus's profile of it.
    pub why: &'static str,
    /// Why that costs on Cassandra, if the reason differs; `None` means the same reason.
    pub cassandra: Option<&'static str>,
    /// What to do instead.
    pub instead: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $what:literal $why:literal $instead:literal $(/ $cassandra:literal)?)*) => {
        $(pub(super) const $name: Rule = Rule {
            id: $id,
            what: $what,
            why: $why,
            cassandra: rules!(@cassandra $($cassandra)?),
            instead: $instead,
        };)*
        /// All rules.
        pub const RULES: &[Rule] = &[$($name),*];
    };
    (@cassandra) => { None };
    (@cassandra $cassandra:literal) => { Some($cassandra) };
}

impl Rule {
    /// Why that costs in this profile.
    #[must_use]
    pub fn why_in(&self, profile: Profile) -> &'static str {
        self.cassandra.filter(|_| !profile.is_cosmos()).unwrap_or(self.why)
    }
}

rules! {
    ACCEPTS_NOTHING "accepts-nothing"
        "A comment to the linter that accepts nothing."
        "It has no effect: a rule or a word in it is misspelt, it stands at another statement, or what it accepted is gone."
        "Correct it, or take it away. It stands in the line before its statement: -- helenus: accept RULE WHY"
    APPEND_HOT_RANGE "append-hot-range"
        "The partition key is a piece of time, so that all of the present is one partition."
        "All writes of now go to one logical partition, which one physical partition serves. That is at most 10,000 RU/s however much the table was given, while the others are idle. When the bucket is over it is never written again."
        "Put what the rows belong to (a device, a user) before the bucket in the partition key. Or put a shard number from 0 to n − 1 there, chosen by a hash or at random; read the n shards side by side."
        / "All writes of now go to one partition, so to its replicas alone, while the other nodes are idle. Partitions beyond 100 MB are slow to read, repair and compact."
    FAN_OUT_FILTERING "fan-out-filtering"
        "ALLOW FILTERING without the partition key."
        "Every physical partition is visited and every row read and paid for, returned or not. Time and charge grow with the table, not with the answer."
        "Keep a table whose partition key is what is asked for; or, where the answer is small and asked for rarely, an index."
        / "Every node reads every row that it has, returned or not. Time grows with the table, not with the answer, until the query times out."
    FAN_OUT_INDEX "fan-out-index"
        "A query by an index without the partition key."
        "Indexes are local to each physical partition, so that every one of them is asked, also those without an answer. The charge begins at 2.3 RU for each, and the slowest one is the latency."
        "Give the partition key too where it is known. For a query that is asked often, keep a table with that column as its partition key."
        / "Indexes are local to each node, so that ranges of the ring are asked one after the other until the page is full. Latency grows with the number of nodes."
    FEW_PARTITIONS "few-partitions"
        "There are fewer partition keys than it takes to use the physical partitions."
        "A logical partition is never divided: physical partitions beyond the number of partition keys stay empty, and their share of the throughput is lost."
        "Add a column with many values to the partition key, or a shard number."
        / "A partition lies on its replicas alone: nodes beyond the number of partition keys hold nothing and do nothing."
    FILTER_IN_PARTITION "filter-in-partition"
        "ALLOW FILTERING inside of a partition."
        "All rows of the partition are read and paid for, the few that fit are returned. It is as cheap as the partition is small."
        "Make the column a clustering column before the others, or keep partitions small."
        / "All rows of the partition are read, the few that fit are returned. It is as cheap as the partition is small."
    CONSTANT_BUCKET "constant-bucket"
        "A part of the partition key is the same constant in every statement."
        "It divides nothing: all rows have the same value there, so a partition is as large as without it."
        "Take a value that spreads the rows (a bucket of time, a shard number from a hash), or leave the column out of the key."
    QUEUE "queue"
        "Rows are taken from the front of a partition and deleted there."
        "Deleted rows stay as tombstones until they are swept. Each read of the front walks over all of them and pays for that, and one partition takes all writes."
        "Read on from the last row that was seen (a range of the clustering key), end partitions by a bucket of time, or use a queue."
        / "Deleted rows stay as tombstones for gc_grace_seconds: each read of the front walks over all of them, warns at 1,000 and fails at 100,000."
    UNBOUNDED_READ "unbounded-read"
        "A query for all rows of a partition that grows for as long as the table lives."
        "The answer, its time and its charge grow with the partition, up to 20 GB."
        "Ask for a range of the clustering key, or give a LIMIT."
        / "The answer and its time grow with the partition, as do the tombstones that it walks over."
    FULL_SCAN "full-scan"
        "A query that reads the whole table."
        "Every physical partition is visited and every row is paid for; pages keep it alive, not cheap. The change feed gives changed rows without it."
        "Name the partition key. Reports are better read by ranges of token(…), side by side and slowly."
        / "Every node reads every row; pages keep it alive, not cheap."
    HOT_RANGE "hot-range"
        "A few partitions take most of the writes."
        "Throughput is divided evenly among the physical partitions: what one of them cannot take is refused while the others have units left."
        "Divide the busy keys by a bucket or shard in the partition key."
        / "A partition is written by its replicas alone: what these cannot take is late or refused while other nodes are idle."
    INDEX_CHANGING "index-on-changing-column"
        "An index on a column that changes often."
        "Each change takes the old entry away and puts a new one: a second write, charged as one. Queries by it compete with the changes."
        "Keep what changes out of indexes: a table for each state, rows moved between them, or a query by partition key."
        / "Each change leaves a tombstone in the index and writes an entry: queries by it walk over the tombstones."
    INDEX_FEW_VALUES "index-on-few-values"
        "An index on a column with few values."
        "A value that a large part of the rows has is found faster by reading the rows: each entry costs a read of its row."
        "Leave the index out; put the column behind the partition key as the first clustering column."
    INDEX_TOO_MANY "too-many-indexes"
        "A table with many indexes."
        "Each write keeps the entries of every index it touches, and each is charged."
        "Keep the indexes that queries use; a second table by another key is often cheaper than the third index."
        / "Each write keeps the entries of every index it touches, and compaction and repair go over all of them."
    INDEX_UNUSED "unused-index"
        "An index that no query uses."
        "Its entries are stored, counted to the logical partition's size, and paid for with every write."
        "Drop it, or add the query that needs it to the queries."
        / "Its entries are stored, compacted, and written with every write."
    INVALID "invalid-statement"
        "A statement that would be refused."
        "The server answers it with an error."
        "Correct it."
    LARGE_COLLECTION "large-collection"
        "A collection that probably grows with use."
        "A collection is read as a whole with its row, and a row may have 2 MB at most."
        "Make its elements rows of a table of their own, clustered by what orders them."
        / "A collection is read as a whole with its row, each overwrite of it leaves a tombstone, and beyond some hundred elements reads of it are slow."
    LOW_CARDINALITY "low-cardinality-key"
        "The partition key has few values."
        "Each value is one logical partition: all its rows in one place, at most 20 GB and 10,000 RU/s. No more physical partitions can work than there are values."
        "Put a column with many values (an id) into the partition key; make this one a clustering column, or a part of a longer key."
        / "Each value is one partition: all its rows on the same replicas. Partitions beyond 100 MB are slow to read, repair and compact, and no more nodes can work than there are values."
    MISSING_KEY_INDEX "missing-partition-key-index"
        "The partition key with another column, and the partition key is not indexed."
        "Azure Cosmos DB for Apache Cassandra asks all physical partitions when a query restricts the partition key together with a column outside of the primary key. It does not where the partition key column is indexed itself. Helenus goes to the one partition either way."
        "CREATE INDEX on the partition key column, one for each column of a composite key."
    MONOTONIC "monotonic-key"
        "The partition key goes on with time."
        "Keys are spread by their hash, so writes are even. But neighbours in time are far apart: the latest rows and ranges of time can only be found by reading everything. Equal times fall into one partition."
        "Make it a clustering column behind what the rows belong to and a bucket of time."
    NEAR_CAP "partition-near-cap"
        "A logical partition is near its largest size."
        "Writes that would make a logical partition larger than 20 GB, entries of its indexes counted, are refused. Splitting physical partitions does not help, since a logical one is never divided."
        "Delete or expire old rows now; divide the key by a bucket before it is full."
        / "Cassandra takes more, but long before that the partition is slow to read, repair and compact: beyond 100 MB it warns."
    CAP_FORECAST "partition-cap-forecast"
        "At the pace of the last days a logical partition will reach its largest size."
        "Writes beyond 20 GB are refused, and moving to another partition key takes a new table and a copy."
        "Add a bucket to the partition key, or a time to live, while the partition is small."
        / "Cassandra takes more, but long before that the partition is slow to read, repair and compact. Moving to another partition key takes a new table and a copy."
    UNBOUNDED "unbounded-partition"
        "Rows are added to a partition for as long as the table lives."
        "A logical partition takes 20 GB at most, then writes to it are refused. Long before that, reads of it become slow and dear, and it makes one physical partition hot."
        "Add a bucket of time (a day, a month) to the partition key so that a partition ends, or let rows expire by default_time_to_live."
        / "Partitions beyond 100 MB are slow to read, repair and compact, and make the nodes of their replicas hot. A read over many rows that were deleted ends at 100,000 tombstones."
    UNUSED_TABLE "unused-table"
        "A table that nothing uses."
        "It may have throughput of its own, which is paid for whether used or not."
        "Drop it, or add the queries that use it."
        / "It takes memory on every node, as every table does, and is backed up and repaired with the others."
    VIEW_UNUSED "unused-view"
        "A materialized view that no query reads."
        "Its rows are stored a second time, and each write to its table reads the old row and writes the view too."
        "Drop it, or add the query that needs it to the queries."
    WIDE_BATCH "wide-batch"
        "A batch over several partitions."
        "Each partition is written by itself; the batch is as slow as the slowest, and one coordinator holds all of it."
        "Send the statements by themselves, side by side. Batch what belongs to one partition."
    WIDE_IN "wide-in"
        "IN with many partition keys."
        "Each key is a read of its own, perhaps on another physical partition. The query is as slow as the slowest, and a page of it begins them all."
        "Ask for each key by itself, side by side, from the client; drivers send each to its replica."
        / "Each key is a read of its own, perhaps on other nodes; one coordinator holds all of them, and the query is as slow as the slowest."
}
