//! Why a WHERE clause is refused, whatever its values are.

use grammar::ast::Operator;
use thiserror::Error;

use crate::planner::text::relation_sign;

/// A relation that is invalid, or that conflicts with others of its clause.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RestrictionRefusal {
    /// CONTAINS in an UPDATE or DELETE.
    #[error("Cannot use {statement} with {}", relation_sign(*.operator))]
    ContainsInWrite {
        /// The statement's verb.
        statement: &'static str,
        /// CONTAINS or CONTAINS KEY.
        operator: Operator,
    },
    /// An unsupported kind of relation: as written.
    #[error("Unsupported restriction: {0}")]
    Form(String),
    /// An operator that the restricted column does not support.
    #[error("Unsupported \"{}\" relation: {relation}", relation_sign(*.operator))]
    Operator {
        /// The operator.
        operator: Operator,
        /// The relation as written.
        relation: String,
    },
    /// `<` and the like of durations: `duration columns`, `tuples containing durations`.
    #[error("Slice restrictions are not supported on {0}")]
    DurationSlice(&'static str),
    /// `c[…]` of this column, which is no map.
    #[error("Column {0} cannot be used as a map")]
    NotMap(String),
    /// LIKE without an index for it: the relation as written.
    #[error("LIKE restriction is only supported on properly indexed columns. {0} is not valid.")]
    LikeWithoutIndex(String),
    /// CONTAINS KEY on this column.
    #[error("Cannot use CONTAINS KEY on non-map column {0}")]
    ContainsKeyOutsideMap(String),
    /// CONTAINS on this column.
    #[error("Cannot use CONTAINS on non-collection column {0}")]
    ContainsOutsideCollection(String),
    /// An element of this list.
    #[error("Indexes on list entries ({0}[index] = value) are not currently supported.")]
    ListEntry(String),
    /// An entry of this frozen map.
    #[error("Map-entry equality predicates on frozen map column {0} are not supported")]
    FrozenMapEntry(String),
    /// An entry of a map and no `=`.
    #[error("Only EQ relations are supported on map entries")]
    MapEntryOperator,
    /// A user-defined type of many cells.
    #[error("Non-frozen UDT column '{column}' ({ty}) cannot be restricted by any relation")]
    MultiCellUdt {
        /// The column.
        column: String,
        /// Its type.
        ty: String,
    },
    /// A collection of many cells, compared as a whole.
    #[error("Collection column '{column}' ({ty}) cannot be restricted by a '{}' relation", relation_sign(*.operator))]
    MultiCellCollection {
        /// The column.
        column: String,
        /// Its type.
        ty: String,
        /// The operator.
        operator: Operator,
    },
    /// `(a, b) = …` of this column, which is no clustering column.
    #[error("Multi-column relations can only be applied to clustering columns but was applied to: {0}")]
    NotClustering(String),
    /// A column twice in one relation.
    #[error("Column \"{column}\" appeared twice in a relation: {relation}")]
    TwiceInRelation {
        /// The column.
        column: String,
        /// The relation as written.
        relation: String,
    },
    /// Clustering columns in another order: the relation as written.
    #[error("Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {0}")]
    ClusteringOrder(String),
    /// A tuple of another size than its columns.
    #[error("Expected {expected} elements in value tuple, but got {found}: {tuple}")]
    TupleSize {
        /// The number of columns.
        expected: usize,
        /// The number of elements.
        found: usize,
        /// The text as written.
        tuple: String,
    },
    /// `token(…) IN …`
    #[error("IN cannot be used with the token function")]
    TokenIn,
    /// A token of a part of the partition key.
    #[error("The token() function must be applied to all partition key components or none of them")]
    TokenIncomplete,
    /// A token of more than the partition key.
    #[error("The token() function must contains only partition key components")]
    TokenOfOthers,
    /// A column twice in a token.
    #[error("The token() function contains duplicate partition key components")]
    TokenTwice,
    /// A token in another order than the partition key: that order.
    #[error("The token function arguments must be in the partition key order: {0}")]
    TokenOrder(String),
    /// A second relation beside `=`: the columns.
    #[error("{0} cannot be restricted by more than one relation if it includes an Equal")]
    BesideEqual(String),
    /// A second relation beside IN: the columns.
    #[error("{0} cannot be restricted by more than one relation if it includes a IN")]
    BesideIn(String),
    /// A second relation beside LIKE: the columns.
    #[error("{0} cannot be restricted by more than one relation if it includes a LIKE")]
    BesideLike(String),
    /// `=` beside a slice: the columns.
    #[error("Column \"{0}\" cannot be restricted by both an equality and an inequality relation")]
    EqualBesideSlice(String),
    /// `=` beside a slice of tokens: the columns.
    #[error("Columns \"{0}\" cannot be restricted by both an equality and an inequality relation")]
    TokenEqualBesideSlice(String),
    /// Two lower bounds: the columns.
    #[error("More than one restriction was found for the start bound on {0}")]
    TwoStarts(String),
    /// Two upper bounds: the columns.
    #[error("More than one restriction was found for the end bound on {0}")]
    TwoEnds(String),
    /// Two slices that do not start with the same column: the later one.
    #[error("Column \"{0}\" cannot be restricted by two inequalities not starting with the same column")]
    SliceStarts(String),
    /// Another relation beside CONTAINS: the columns.
    #[error("Collection column {0} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality")]
    BesideContains(String),
    /// A restriction on a clustering column after a slice.
    #[error(
        "Clustering column \"{column}\" cannot be restricted (preceding column \"{preceding}\" is restricted by a non-EQ relation)"
    )]
    BehindSlice {
        /// The column.
        column: String,
        /// The column of the slice.
        preceding: String,
    },
    /// A slice before a restricted clustering column.
    #[error(
        "PRIMARY KEY column \"{column}\" cannot be restricted (preceding column \"{preceding}\" is restricted by a non-EQ relation)"
    )]
    SliceBefore {
        /// The column.
        column: String,
        /// The column of the slice.
        preceding: String,
    },
    /// A restriction of a clustering column whose predecessor has none.
    #[error(
        "PRIMARY KEY column \"{column}\" cannot be restricted as preceding column \"{preceding}\" is not restricted"
    )]
    PrecedingOpen {
        /// The column.
        column: String,
        /// The one without restriction.
        preceding: String,
    },
    /// `expr(…)` in a modification.
    #[error("Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements")]
    CustomInWrite,
    /// `expr(…)` twice.
    #[error("Multiple custom index expressions in a single query are not supported")]
    CustomTwice,
    /// `expr(…)` of an index that does not exist.
    #[error("Invalid index expression, index {index} not found for {keyspace}.{table}")]
    CustomUnknown {
        /// The index, quoted where CQL needs it.
        index: String,
        /// The table's keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// `expr(…)` of an index of another kind, quoted where CQL needs it.
    #[error("Only CUSTOM indexes may be used in custom index expressions, {0} is not valid")]
    CustomKind(String),
    /// `expr(…)` of an index that does not support it.
    #[error("Index {0} does not support custom expressions")]
    CustomNotTaken(String),
    /// Clustering columns restricted where a modification changes only static columns: its verb.
    #[error("Invalid restrictions on clustering columns since the {0} statement modifies only static columns")]
    StaticModified(&'static str),
    /// Clustering columns restricted where only static ones are selected.
    #[error("Cannot restrict clustering columns when selecting only static columns")]
    StaticSelected,
    /// A restriction of a vector column other than ANN.
    #[error("Vector indexes only support ANN queries")]
    Vector,
    /// These columns in the WHERE clause of a modification.
    #[error("Non PRIMARY KEY columns found in where clause: {0} ")]
    NotKey(String),
    /// IN on the partition key beside an index.
    #[error("Select on indexed columns and with IN clause for the PRIMARY KEY are not supported")]
    InBesideIndex,
    /// A token in a modification: its verb.
    #[error("The token function cannot be used in WHERE clauses for {0} statements")]
    TokenInWrite(&'static str),
    /// A modification without these columns of the partition key.
    #[error("Some partition key parts are missing: {0}")]
    PartitionKeyMissing(String),
    /// A slice of partition keys in a modification: its verb.
    #[error(
        "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {0} statements"
    )]
    PartitionKeySlice(&'static str),
    /// A slice of clustering columns in a modification: its verb.
    #[error("Slice restrictions are not supported on the clustering columns in {0} statements")]
    ClusteringSlice(&'static str),
    /// A modification without these clustering columns.
    #[error("Some clustering keys are missing: {0}")]
    ClusteringMissing(String),
    /// CONTAINS on a clustering column without index or ALLOW FILTERING.
    #[error("Clustering columns can only be restricted with CONTAINS with a secondary index or filtering")]
    ClusteringContains,
    /// A slice of several columns that would have to be tested row by row.
    #[error("Multi-column slice restrictions cannot be used for filtering.")]
    MultiColumnFilter,
}
