//! Bound commands: what is left of a statement when its names are resolved and its values are in. The executor's input.
//!
//! Keys are bytes here. A partition key is Cassandra's serialised form (one component's bytes, or `{u16 length, bytes, 0}…`). A
//! clustering key is the concatenation of its columns' order-preserving encodings (`CqlType::encode_key`), so that every
//! restriction on clustering columns is a set of half-open byte ranges, a prefix restriction included.

use std::sync::Arc;

use bytes::Bytes;

use crate::functions::Similarity;
use crate::schema::analysis::Analysis;
use crate::schema::{StorageId, Table};
use crate::types::CqlType;

/// A value that a client bound or wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// Not set: leaves a column alone.
    Unset,
    /// The value's wire bytes.
    Bytes(Bytes),
}

/// Clustering keys `start ≤ key < end`; `end` `None` is the end of the partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusteringRange {
    /// Inclusive.
    pub start: Vec<u8>,
    /// Exclusive.
    pub end: Option<Vec<u8>>,
}

/// Which partitions a read visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundPartitions {
    /// These partition keys, distinct, in order of their components' values, as Cassandra answers `IN`.
    Keys(Vec<Bytes>),
    /// All partitions with a token in `lower ..= upper` (both inclusive; `lower > upper` is empty).
    Ring {
        /// Lowest token.
        lower: i64,
        /// Highest token.
        upper: i64,
    },
}

/// Which rows of each partition a read or a deletion covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundRows {
    /// Every row; the static row counts as one where there is no other.
    All,
    /// These full clustering keys, distinct, sorted. Tables without clustering columns have one row, with an empty key.
    Keys(Vec<Vec<u8>>),
    /// These ranges, disjoint, sorted.
    Ranges(Vec<ClusteringRange>),
}

impl BoundRows {
    /// Whether no row can be among them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::All => false,
            Self::Keys(keys) => keys.is_empty(),
            Self::Ranges(ranges) => ranges.is_empty(),
        }
    }
}

/// How a filter compares a row's value with its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `!=` (conditions only)
    Neq,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// The value is one of the operands.
    In,
    /// A list, set or map holds the operand as a value.
    Contains,
    /// A map holds the operand as a key.
    ContainsKey,
    /// LIKE, with its pattern as written.
    Like,
}

impl Comparison {
    /// As CQL writes it.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Neq => "!=",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::In => "IN",
            Self::Contains => "CONTAINS",
            Self::ContainsKey => "CONTAINS KEY",
            Self::Like => "LIKE",
        }
    }
}

/// What LIKE asks: where `%` stands in its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// `abc`
    Whole,
    /// `abc%`
    Prefix,
    /// `%abc`
    Suffix,
    /// `%abc%`
    Within,
}

impl Like {
    /// The kind of a pattern and what it looks for; `None`: it looks for nothing. A `%` that is not at an end is itself.
    #[must_use]
    pub fn of(pattern: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, text) = match (pattern.strip_suffix(b"%"), pattern.strip_prefix(b"%")) {
            (Some(_), Some(rest)) => (Self::Within, rest.strip_suffix(b"%").unwrap_or_default()),
            (Some(text), None) => (Self::Prefix, text),
            (None, Some(text)) => (Self::Suffix, text),
            (None, None) => (Self::Whole, pattern),
        };
        (!text.is_empty()).then_some((kind, text))
    }

    /// As Cassandra writes it.
    pub(crate) const fn shape(self) -> &'static str {
        match self {
            Self::Whole => "<term>",
            Self::Prefix => "<term>%",
            Self::Suffix => "%<term>",
            Self::Within => "%<term>%",
        }
    }
}

/// What a filter or condition looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterTarget {
    /// A column, by its place in `table.columns`.
    Column(usize),
    /// `column[key]`: a map's value or a list's element.
    Element(usize, Value),
    /// `column.field`: the field's number.
    Field(usize, usize),
    /// A column whose texts, or those in it, are compared as an index analyses them. LIKE looks for all of its pattern's terms.
    Analysed(usize, Analysis),
    /// Several clustering columns as a tuple, compared one after the other.
    Tuple(Vec<usize>),
    /// The partition's token; operands are bigint.
    Token,
}

/// A test on one row: `target comparison operands`. Null makes it false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundFilter {
    /// What is looked at.
    pub target: FilterTarget,
    /// How.
    pub comparison: Comparison,
    /// One operand; several for `In`. A tuple's operand is an encoded tuple.
    pub operands: Vec<Value>,
    /// The type both sides have.
    pub ty: CqlType,
}

/// One column of a result: its place in metadata and how it is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Name as the client sees it.
    pub name: String,
    /// Type.
    pub ty: CqlType,
}

/// What is computed for each row, or for each group.
#[derive(Clone, Debug)]
pub enum Expression {
    /// The column at this place in `table.columns`.
    Column(usize),
    /// A value.
    Constant(Option<Bytes>),
    /// A bind marker's value, by its index; gone after binding.
    Marker(usize),
    /// Write time (µs) of a column's cell, of one element (`key`), or of the cells of a multi-cell column as a list.
    WriteTime {
        /// Place in `table.columns`.
        column: usize,
        /// The greatest of all cells.
        max: bool,
        /// Element, slice or field of a multi-cell column.
        part: Option<Box<Part>>,
    },
    /// Seconds left to live, like `WriteTime`.
    Ttl {
        /// Place in `table.columns`.
        column: usize,
        /// Element, slice or field of a multi-cell column.
        part: Option<Box<Part>>,
    },
    /// Cassandra's `token(…)`; arguments are the partition key's components.
    Token(Vec<Expression>),
    /// A scalar function.
    Function {
        /// Which, already resolved.
        function: crate::functions::Function,
        /// Its arguments.
        arguments: Vec<Expression>,
    },
    /// The result of the aggregate at this place in `BoundSelect::aggregates`.
    Aggregate(usize),
    /// A part of a value.
    Part {
        /// The value.
        of: Box<Expression>,
        /// The value's type.
        of_type: CqlType,
        /// Which part.
        part: Box<Part>,
    },
    /// A tuple, list, set, map, vector or user-defined type put together; maps alternate keys and values.
    Construct {
        /// Of which type.
        ty: CqlType,
        /// Of what.
        elements: Vec<Expression>,
    },
}

/// A part of a collection or user-defined type.
#[derive(Clone, Debug)]
pub enum Part {
    /// The field's number.
    Field(usize),
    /// `[key]`
    Element(Expression),
    /// `[from..to]`, both inclusive.
    Slice(Option<Expression>, Option<Expression>),
}

/// An aggregate over the rows of a group.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Which, already resolved; `None` counts rows.
    pub function: Option<crate::functions::Function>,
    /// Its arguments, computed for each row.
    pub arguments: Vec<Expression>,
}

/// What a SELECT gives back, shared by all its executions.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Metadata.
    pub columns: Arc<Vec<ResultColumn>>,
    /// One for each column. Plain columns are `Expression::Column`, so that the executor can copy cells straight to the frame.
    pub expressions: Vec<Expression>,
    /// Aggregates that `expressions` refer to; empty without.
    pub aggregates: Vec<Aggregate>,
    /// Places in `table.columns` that must be read at all: for expressions, filters, grouping and sorting. Sorted.
    pub needed: Vec<usize>,
    /// Whether write times or expiries are needed.
    pub needs_metadata: bool,
    /// SELECT JSON: these columns, as they would be without JSON, become one text, which is the only one in `columns`.
    pub json_columns: Option<Arc<Vec<ResultColumn>>>,
}

/// What an index is asked: its entries in these ranges stand for at least the rows that the SELECT's filters let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexProbe {
    /// The index's name.
    pub index: String,
    /// Its number in the store.
    pub storage_id: StorageId,
    /// Ranges of encoded values (`schema::IndexTarget`), disjoint, sorted.
    pub ranges: Vec<ClusteringRange>,
    /// One value is looked for, so that entries come in the order of tokens. Two entries may still stand for one row.
    pub is_equality: bool,
}

/// ORDER BY … ANN OF a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundNearest {
    /// The place of the column of vectors in `table.columns`.
    pub column: usize,
    /// The name of its index, which says by what vectors are alike.
    pub index: String,
    /// By what vectors are alike.
    pub similarity: Similarity,
    /// The vector that others are compared with.
    pub vector: Vec<f32>,
}

/// A SELECT ready to run.
#[derive(Clone, Debug)]
pub struct BoundSelect {
    /// The table, as planned.
    pub table: Arc<Table>,
    /// What is given back; its markers are bound.
    pub selection: Arc<Selection>,
    /// Which partitions.
    pub partitions: BoundPartitions,
    /// Which rows of each.
    pub rows: BoundRows,
    /// No row is named (`c IN ()`), and the static row of each partition is read all the same and takes a row's place in pages.
    pub counts_static: bool,
    /// Tests on each row, all of which must hold.
    pub filters: Vec<BoundFilter>,
    /// Each alone finds all rows that `filters` let through, and others; empty: no index helps. An index whose build is not complete
    /// must not be asked.
    pub probes: Vec<IndexProbe>,
    /// From the last row of each partition to the first.
    pub reversed: bool,
    /// ORDER BY over several partitions (`IN`): sort the rows of the result by these columns of the table, each with `true`
    /// for descending. Empty: as they come.
    pub sort: Vec<(usize, bool)>,
    /// ORDER BY … ANN OF: the rows nearest to a vector, as many as LIMIT says, the nearest first.
    pub nearest: Option<BoundNearest>,
    /// GROUP BY these leading key columns (how many of the primary key), `None` without. Aggregates without GROUP BY make one
    /// group of everything.
    pub group_by: Option<Vec<Expression>>,
    /// DISTINCT: one row for each partition, from its key and static columns.
    pub distinct: bool,
    /// LIMIT, in rows of the result.
    pub limit_rows: Option<u32>,
    /// PER PARTITION LIMIT, in rows.
    pub per_partition_limit_rows: Option<u32>,
}

/// What happens to one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundOperation {
    /// One cell gets a value (frozen or native column).
    Set(Value),
    /// A multi-cell column is emptied and gets these elements (keys, values). A list's keys are made by the executor.
    Replace(Vec<(Option<Bytes>, Bytes)>),
    /// Elements are put into a set (value empty), a map, or (fields by i16 number) a user-defined type; `None` deletes one.
    Put(Vec<(Bytes, Option<Bytes>)>),
    /// Elements (a set's), keys (a map's) are taken out.
    Remove(Vec<Bytes>),
    /// Values are appended to a list.
    Append(Vec<Bytes>),
    /// Values are put before a list, in this order.
    Prepend(Vec<Bytes>),
    /// A list's element at a position gets a value, or goes (`None`). Needs a read.
    SetAt(i32, Option<Bytes>),
    /// All elements of a list equal to one of these go. Needs a read.
    Discard(Vec<Bytes>),
    /// A counter changes by this much.
    Increment(i64),
}

/// What a modification is aimed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundTarget {
    /// These rows, by full clustering key.
    Rows(Vec<Vec<u8>>),
    /// The static row alone.
    Static,
    /// DELETE of ranges of rows.
    Ranges(Vec<ClusteringRange>),
    /// DELETE of the whole partition.
    Partition,
}

/// What must hold for a conditional modification to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundCondition {
    /// Not conditional.
    Always,
    /// IF EXISTS.
    Exists,
    /// IF NOT EXISTS.
    NotExists,
    /// All of these. Unlike in a filter, `= null` and `!= null` compare with absence.
    Columns(Vec<BoundFilter>),
}

/// An INSERT, UPDATE or DELETE ready to run.
#[derive(Clone, Debug)]
pub struct BoundModification {
    /// The table, as planned.
    pub table: Arc<Table>,
    /// Which statement it was: INSERT sets row markers, DELETE without operations deletes rows.
    pub kind: ModificationKind,
    /// Serialised partition keys, distinct.
    pub partition_keys: Vec<Bytes>,
    /// Which rows.
    pub target: BoundTarget,
    /// Operations on columns, by place in `table.columns`; those on static columns go to the static row.
    pub operations: Vec<(usize, BoundOperation)>,
    /// Whether it has operations on static columns, counting those whose values are not set.
    pub names_static: bool,
    /// `USING TIMESTAMP`, µs. `None`: the request's, or the node's.
    pub timestamp: Option<i64>,
    /// `USING TTL`, seconds; 0 is none. `None`: the table's default.
    pub ttl_seconds: Option<u32>,
    /// IF.
    pub condition: BoundCondition,
    /// The columns a refused conditional answers with besides `[applied]`: places in `table.columns`.
    pub condition_columns: Vec<usize>,
}

/// Which statement a modification was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModificationKind {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

/// A BATCH ready to run: of a statement, or of a BATCH message.
#[derive(Clone, Debug)]
pub struct BoundBatch {
    /// Which kind.
    pub kind: grammar::ast::BatchKind,
    /// Members, in order. Where some have conditions, all are on one partition of one table, and all or none are applied.
    pub modifications: Vec<BoundModification>,
    /// `USING TIMESTAMP` of the whole, µs.
    pub timestamp: Option<i64>,
    /// Whether some member has a condition.
    pub conditional: bool,
}
