//! The syntax tree of CQL: plain data. The parser makes it, `print` prints it, other modules interpret it.
//!
//! Literals stay text, since their type depends on the column that receives them. Names are folded to lower case unless
//! they were quoted. This module has no knowledge of a schema.
//!
//! The file is long because the language is large: data only, and conversions of names.

mod expression;
mod feed;

pub use expression::{ArithmeticOperator, Literal, MetadataKind, Selector, Site, Term};
pub use feed::FeedFunction;

/// A name, folded to lower case unless it was quoted. Printing quotes it where necessary.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub String);

impl Name {
    /// The folded text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// The name of a table, type, index, function or view, with or without its keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedName {
    /// `None` means the session's keyspace.
    pub keyspace: Option<Name>,
    /// The object's own name.
    pub name: Name,
}

/// A CQL type as written. Any name is accepted; `types` and `schema` decide what it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A native type or a user-defined type.
    Named(QualifiedName),
    /// `'org.apache.…'`: a marshal class by name.
    Custom(String),
    /// `list<T>`
    List(Box<Type>),
    /// `set<T>`
    Set(Box<Type>),
    /// `map<K, V>`
    Map(Box<Type>, Box<Type>),
    /// `tuple<T, …>`
    Tuple(Vec<Type>),
    /// `vector<T, n>` with `n` elements. The parser accepts any `n`, including 0 and below.
    Vector(Box<Type>, i32),
    /// `frozen<T>`
    Frozen(Box<Type>),
}

/// A selector and its alias.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectorAs {
    /// The expression.
    pub selector: Selector,
    /// `AS alias`
    pub alias: Option<Name>,
}

/// The SELECT clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selection {
    /// `*`
    All,
    /// One expression or more.
    Selectors(Vec<SelectorAs>),
}

/// The operator of a relation or a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Eq,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// `!=`
    Neq,
    /// `IN`
    In,
    /// `CONTAINS`
    Contains,
    /// `CONTAINS KEY`
    ContainsKey,
    /// `LIKE`
    Like,
    /// `IS NOT NULL`
    IsNotNull,
}

/// The left side of a relation in a WHERE clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RelationTarget {
    /// `column`
    Column(Name),
    /// `column[key]`
    Element(Name, Term),
    /// `(a, b)`
    Tuple(Vec<Name>),
    /// `token(a, b)`
    Token(Vec<Name>),
    /// `expr(index, term)`: an expression for this index; its operator is [`Operator::Eq`].
    Index(Name),
    /// `cosmos_changefeed_start_time()` and the like: how the change feed is read; its operator is [`Operator::Eq`].
    Feed(FeedFunction),
}

/// The right side of a relation or condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RelationValue {
    /// One term; for `IN ?`, the marker.
    Term(Term),
    /// `IN (a, b)`; may be empty.
    Terms(Vec<Term>),
    /// No value: `IS NOT NULL`.
    None,
}

/// One relation of a WHERE clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relation {
    /// Left side.
    pub target: RelationTarget,
    /// Operator.
    pub operator: Operator,
    /// Right side.
    pub value: RelationValue,
}

/// One expression of GROUP BY.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupBy(pub Selector);

/// Ascending or descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// `ASC`
    #[default]
    Ascending,
    /// `DESC`
    Descending,
}

/// One part of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OrderBy {
    /// `column [ASC|DESC]`
    Column(Name, Direction),
    /// `column ANN OF term [ASC|DESC]`
    Ann(Name, Term, Direction),
}

/// `SELECT`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Select {
    /// `SELECT JSON`
    pub json: bool,
    /// `SELECT DISTINCT`
    pub distinct: bool,
    /// The SELECT clause.
    pub selection: Selection,
    /// The table to read.
    pub table: QualifiedName,
    /// The relations of the WHERE clause, in order of writing.
    pub relations: Vec<Relation>,
    /// GROUP BY.
    pub group_by: Vec<GroupBy>,
    /// ORDER BY.
    pub order_by: Vec<OrderBy>,
    /// PER PARTITION LIMIT.
    pub per_partition_limit: Option<Term>,
    /// LIMIT.
    pub limit: Option<Term>,
    /// ALLOW FILTERING.
    pub allow_filtering: bool,
}

/// `USING TIMESTAMP t AND TTL s`
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Using {
    /// Microseconds.
    pub timestamp: Option<Term>,
    /// Seconds.
    pub ttl: Option<Term>,
    /// TTL was written before TIMESTAMP. Bind markers are numbered in order of writing, so printing keeps that order.
    pub ttl_first: bool,
}

/// The left side of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConditionTarget {
    /// `column`
    Column(Name),
    /// `column[key]`
    Element(Name, Term),
    /// `column.field`
    Field(Name, Name),
}

/// One condition after IF.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Left side.
    pub target: ConditionTarget,
    /// Operator.
    pub operator: Operator,
    /// Right side.
    pub value: RelationValue,
}

/// The IF clause of a modification.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum If {
    /// No IF.
    #[default]
    Always,
    /// `IF EXISTS`
    Exists,
    /// `IF NOT EXISTS`
    NotExists,
    /// `IF a = 1 AND b > 2`
    Conditions(Vec<Condition>),
}

/// The values of an INSERT.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InsertSource {
    /// `(a, b) VALUES (1, 2)`. The planner refuses lists of different lengths.
    Values {
        /// Columns.
        columns: Vec<Name>,
        /// Values.
        values: Vec<Term>,
    },
    /// `JSON '…'`
    Json {
        /// A string or a marker.
        document: Term,
        /// `DEFAULT UNSET`: columns that the document does not name stay unchanged. Otherwise they become null.
        default_unset: bool,
    },
}

/// `INSERT`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Insert {
    /// The table to write.
    pub table: QualifiedName,
    /// The columns and values, or the document.
    pub source: InsertSource,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// USING.
    pub using: Using,
}

/// One assignment of an UPDATE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Assignment {
    /// `c = v`
    Set(Name, Term),
    /// `c.field = v`
    Field(Name, Name, Term),
    /// `c[k] = v`
    Element(Name, Term, Term),
    /// `c = c + v` or `c += v`
    Add(Name, Term),
    /// `c = c - v` or `c -= v`
    Subtract(Name, Term),
    /// `c = v + c`: lists only
    Prepend(Name, Term),
}

/// `UPDATE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// The table to write.
    pub table: QualifiedName,
    /// USING.
    pub using: Using,
    /// SET, in order of writing.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub relations: Vec<Relation>,
    /// IF.
    pub condition: If,
}

/// A target of a DELETE. A DELETE without targets deletes whole rows, slices or partitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeleteTarget {
    /// `c`
    Column(Name),
    /// `c[k]`
    Element(Name, Term),
    /// `c.field`
    Field(Name, Name),
}

/// `DELETE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delete {
    /// The columns, or parts of them, to delete; empty means whole rows.
    pub targets: Vec<DeleteTarget>,
    /// The table to write.
    pub table: QualifiedName,
    /// USING TIMESTAMP.
    pub using: Using,
    /// WHERE.
    pub relations: Vec<Relation>,
    /// IF.
    pub condition: If,
}

/// `BEGIN … BATCH`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// Atomic: through the batch log all of it is applied in the end.
    Logged,
    /// Without the batch log.
    Unlogged,
    /// Counter updates only.
    Counter,
}

/// A statement that may stand in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Modification {
    /// INSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE.
    Delete(Delete),
}

/// `BATCH`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The kind of batch.
    pub kind: BatchKind,
    /// USING of the batch.
    pub using: Using,
    /// Members, in order.
    pub modifications: Vec<Modification>,
}

/// The value of a property after WITH.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PropertyValue {
    /// A constant, or a bare word as [`Literal::String`].
    Literal(Literal),
    /// `{'a': 'b'}`; `{}` too.
    Map(Vec<(Literal, Literal)>),
}

/// `name = value`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// The name, folded.
    pub name: Name,
    /// The value.
    pub value: PropertyValue,
}

/// `CREATE KEYSPACE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateKeyspace {
    /// Its name.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// WITH.
    pub properties: Vec<Property>,
}

/// `ALTER KEYSPACE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterKeyspace {
    /// Its name.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// WITH.
    pub properties: Vec<Property>,
}

/// `MASKED WITH f(a)`; `DEFAULT` is parsed as `mask_default()` with `by_default` set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    /// `MASKED WITH DEFAULT`
    pub by_default: bool,
    /// The function.
    pub function: QualifiedName,
    /// Its arguments after the column.
    pub arguments: Vec<Term>,
}

/// A column of CREATE TABLE or ALTER TABLE ADD.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub column_type: Type,
    /// STATIC.
    pub is_static: bool,
    /// `PRIMARY KEY` after the type.
    pub is_primary_key: bool,
    /// MASKED WITH.
    pub mask: Option<Mask>,
}

/// The PRIMARY KEY clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrimaryKey {
    /// Partition key columns, one or more.
    pub partition_key: Vec<Name>,
    /// Clustering columns; may be empty.
    pub clustering: Vec<Name>,
}

/// WITH of a table or view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct TableOptions {
    /// CLUSTERING ORDER BY, in order of writing.
    pub clustering_order: Vec<(Name, Direction)>,
    /// COMPACT STORAGE.
    pub compact_storage: bool,
    /// All other properties, `id` included.
    pub properties: Vec<Property>,
}

/// `CREATE TABLE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateTable {
    /// Its name.
    pub table: QualifiedName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Columns, in order of writing.
    pub columns: Vec<ColumnDefinition>,
    /// PRIMARY KEY clauses in order of writing. Valid is exactly one, or none and a column with `is_primary_key`.
    pub primary_keys: Vec<PrimaryKey>,
    /// WITH.
    pub options: TableOptions,
}

/// The action of an ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlterTableAction {
    /// ADD.
    Add {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// New columns.
        columns: Vec<ColumnDefinition>,
    },
    /// DROP.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// The columns to drop.
        columns: Vec<Name>,
        /// `USING TIMESTAMP`, µs.
        timestamp: Option<String>,
    },
    /// RENAME a TO b AND ….
    Rename {
        /// IF EXISTS.
        if_exists: bool,
        /// Pairs of the old and the new name.
        renames: Vec<(Name, Name)>,
    },
    /// ALTER c TYPE t (refused by Cassandra since 3.10, but it parses).
    AlterType {
        /// IF EXISTS.
        if_exists: bool,
        /// The column.
        column: Name,
        /// New type.
        column_type: Type,
    },
    /// ALTER c MASKED WITH f / DROP MASKED.
    AlterMask {
        /// IF EXISTS.
        if_exists: bool,
        /// The column.
        column: Name,
        /// The new mask; `None` means DROP MASKED.
        mask: Option<Mask>,
    },
    /// DROP COMPACT STORAGE.
    DropCompactStorage,
    /// WITH.
    Options(TableOptions),
}

/// `ALTER TABLE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterTable {
    /// The table to alter.
    pub table: QualifiedName,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The action.
    pub action: AlterTableAction,
}

/// `CREATE TYPE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateType {
    /// Its name.
    pub name: QualifiedName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Fields in order.
    pub fields: Vec<(Name, Type)>,
}

/// The action of an ALTER TYPE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlterTypeAction {
    /// `ADD [IF NOT EXISTS] field type`
    Add {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// New field.
        field: Name,
        /// Its type.
        field_type: Type,
    },
    /// RENAME a TO b AND ….
    Rename {
        /// IF EXISTS.
        if_exists: bool,
        /// Pairs of the old and the new name.
        renames: Vec<(Name, Name)>,
    },
    /// ALTER field TYPE t (refused by Cassandra, but it parses).
    AlterField {
        /// IF EXISTS.
        if_exists: bool,
        /// The field.
        field: Name,
        /// New type.
        field_type: Type,
    },
}

/// `ALTER TYPE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterType {
    /// The type to alter.
    pub name: QualifiedName,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The action.
    pub action: AlterTypeAction,
}

/// The part of a column that an index stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexTargetKind {
    /// `c`
    Simple,
    /// `values(c)`
    Values,
    /// `keys(c)`
    Keys,
    /// `entries(c)`
    Entries,
    /// `full(c)`
    Full,
}

/// `CREATE [CUSTOM] INDEX`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateIndex {
    /// CUSTOM.
    pub custom: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The index's name; `None` means a generated one. Its keyspace is the table's.
    pub name: Option<QualifiedName>,
    /// The indexed table.
    pub table: QualifiedName,
    /// The indexed columns or parts of columns; may be empty.
    pub targets: Vec<(IndexTargetKind, Name)>,
    /// USING 'class'.
    pub using: Option<String>,
    /// WITH (OPTIONS = {…}).
    pub properties: Vec<Property>,
}

/// `CREATE MATERIALIZED VIEW`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateView {
    /// Its name.
    pub name: QualifiedName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// SELECT clause.
    pub selection: Selection,
    /// FROM.
    pub base_table: QualifiedName,
    /// WHERE.
    pub relations: Vec<Relation>,
    /// PRIMARY KEY.
    pub primary_key: PrimaryKey,
    /// WITH.
    pub options: TableOptions,
}

/// `ALTER MATERIALIZED VIEW`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterView {
    /// The view to alter.
    pub name: QualifiedName,
    /// IF EXISTS.
    pub if_exists: bool,
    /// WITH.
    pub options: TableOptions,
}

/// `CREATE FUNCTION`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateFunction {
    /// OR REPLACE.
    pub or_replace: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Its name.
    pub name: QualifiedName,
    /// Names and types of its arguments.
    pub arguments: Vec<(Name, Type)>,
    /// CALLED ON NULL INPUT; otherwise RETURNS NULL ON NULL INPUT.
    pub called_on_null_input: bool,
    /// RETURNS.
    pub returns: Type,
    /// LANGUAGE.
    pub language: Name,
    /// AS: the source text.
    pub body: String,
}

/// `CREATE AGGREGATE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateAggregate {
    /// OR REPLACE.
    pub or_replace: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Its name.
    pub name: QualifiedName,
    /// Types of its arguments.
    pub arguments: Vec<Type>,
    /// SFUNC.
    pub state_function: Name,
    /// STYPE.
    pub state_type: Type,
    /// FINALFUNC.
    pub final_function: Option<Name>,
    /// INITCOND.
    pub initial_condition: Option<Term>,
}

/// `DROP FUNCTION` and `DROP AGGREGATE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropFunction {
    /// AGGREGATE rather than FUNCTION.
    pub aggregate: bool,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Its name.
    pub name: QualifiedName,
    /// Types of the arguments; `None` means that the name alone identifies the function.
    pub arguments: Option<Vec<Type>>,
}

/// The kind of object that a DROP removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropKind {
    /// TABLE.
    Table,
    /// TYPE.
    Type,
    /// INDEX.
    Index,
    /// MATERIALIZED VIEW.
    View,
}

/// `DROP TABLE|TYPE|INDEX|MATERIALIZED VIEW`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Drop {
    /// The kind of object.
    pub kind: DropKind,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Its name.
    pub name: QualifiedName,
}

/// `DROP KEYSPACE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropKeyspace {
    /// Its name.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
}

/// `CREATE TRIGGER`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateTrigger {
    /// Its name.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The table of the trigger.
    pub table: QualifiedName,
    /// USING 'class'.
    pub class: String,
}

/// `DROP TRIGGER`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropTrigger {
    /// Its name.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The table of the trigger.
    pub table: QualifiedName,
}

/// The subject of a DESCRIBE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DescribeTarget {
    /// CLUSTER.
    Cluster,
    /// `[FULL] SCHEMA`
    Schema {
        /// FULL: includes system keyspaces.
        full: bool,
    },
    /// KEYSPACES.
    Keyspaces,
    /// TABLES or COLUMNFAMILIES.
    Tables,
    /// TYPES.
    Types,
    /// FUNCTIONS.
    Functions,
    /// AGGREGATES.
    Aggregates,
    /// `[ONLY] KEYSPACE [k]`
    Keyspace {
        /// `None` means the session's keyspace.
        name: Option<Name>,
        /// ONLY: the keyspace without its objects.
        only: bool,
    },
    /// TABLE.
    Table(QualifiedName),
    /// INDEX.
    Index(QualifiedName),
    /// MATERIALIZED VIEW.
    View(QualifiedName),
    /// TYPE.
    Type(QualifiedName),
    /// FUNCTION.
    Function(QualifiedName),
    /// AGGREGATE.
    Aggregate(QualifiedName),
    /// A bare name: a keyspace, table, index or view, looked up in that order.
    Generic(QualifiedName),
}

/// `DESCRIBE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Describe {
    /// The subject.
    pub target: DescribeTarget,
    /// WITH INTERNALS.
    pub with_internals: bool,
}

/// A permission that a role can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    /// CREATE.
    Create,
    /// ALTER.
    Alter,
    /// DROP.
    Drop,
    /// SELECT.
    Select,
    /// MODIFY: INSERT, UPDATE, DELETE, TRUNCATE.
    Modify,
    /// AUTHORIZE: GRANT and REVOKE.
    Authorize,
    /// DESCRIBE.
    Describe,
    /// EXECUTE: functions and MBeans.
    Execute,
    /// UNMASK: read the values of masked columns.
    Unmask,
    /// SELECT_MASKED: restrict masked columns in a WHERE clause.
    SelectMasked,
}

/// The resource of a permission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// ALL KEYSPACES.
    AllKeyspaces,
    /// KEYSPACE k.
    Keyspace(Name),
    /// `[TABLE] t`
    Table(QualifiedName),
    /// ALL TABLES IN KEYSPACE k.
    AllTables(Name),
    /// ALL ROLES.
    AllRoles,
    /// ROLE r.
    Role(Name),
    /// ALL FUNCTIONS.
    AllFunctions,
    /// ALL FUNCTIONS IN KEYSPACE k.
    AllFunctionsIn(Name),
    /// FUNCTION f(types).
    Function {
        /// Its name.
        name: QualifiedName,
        /// Types of its arguments.
        arguments: Vec<Type>,
    },
    /// ALL MBEANS.
    AllMbeans,
    /// MBEAN 'name'.
    Mbean(String),
    /// MBEANS 'pattern'.
    Mbeans(String),
}

/// `GRANT permissions ON resource TO role` and `REVOKE … FROM role`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// REVOKE rather than GRANT.
    pub revoke: bool,
    /// The permissions; `None` means `ALL [PERMISSIONS]`.
    pub permissions: Option<Vec<Permission>>,
    /// The resource.
    pub resource: Resource,
    /// The role that receives or loses the permissions.
    pub role: Name,
}

/// `GRANT role TO grantee` and `REVOKE role FROM grantee`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantRole {
    /// REVOKE rather than GRANT.
    pub revoke: bool,
    /// The role that is granted or revoked.
    pub role: Name,
    /// The role that receives or loses it.
    pub grantee: Name,
}

/// `LIST permissions`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListPermissions {
    /// The permissions to list; `None` means `ALL [PERMISSIONS]`.
    pub permissions: Option<Vec<Permission>>,
    /// ON; `None` means all resources.
    pub resource: Option<Resource>,
    /// OF; `None` means all roles.
    pub of: Option<Name>,
    /// NORECURSIVE: without inherited permissions.
    pub no_recursive: bool,
}

/// `LIST ROLES`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListRoles {
    /// OF; `None` means all roles.
    pub of: Option<Name>,
    /// NORECURSIVE: without inherited roles.
    pub no_recursive: bool,
}

/// An option of CREATE ROLE or ALTER ROLE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RoleOption {
    /// PASSWORD = '…'
    Password(String),
    /// HASHED PASSWORD = '…'
    HashedPassword(String),
    /// OPTIONS = {…}
    Options(Vec<(Literal, Literal)>),
    /// SUPERUSER = true
    Superuser(bool),
    /// LOGIN = true
    Login(bool),
    /// ACCESS TO ALL DATACENTERS
    AllDatacenters,
    /// ACCESS TO DATACENTERS {…}
    Datacenters(Vec<String>),
    /// ACCESS FROM ALL CIDRS
    AllCidrs,
    /// ACCESS FROM CIDRS {…}
    Cidrs(Vec<String>),
}

/// `CREATE ROLE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateRole {
    /// Its name.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// WITH.
    pub options: Vec<RoleOption>,
}

/// `ALTER ROLE`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterRole {
    /// Its name.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// WITH.
    pub options: Vec<RoleOption>,
}

/// WITH PASSWORD of CREATE USER and ALTER USER.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UserPassword {
    /// PASSWORD '…'
    Plain(String),
    /// HASHED PASSWORD '…'
    Hashed(String),
}

/// `CREATE USER`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateUser {
    /// Its name, with its case kept.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// WITH PASSWORD.
    pub password: Option<UserPassword>,
    /// SUPERUSER or NOSUPERUSER; `None` means neither.
    pub superuser: Option<bool>,
}

/// `ALTER USER`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterUser {
    /// Its name, with its case kept.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// WITH PASSWORD.
    pub password: Option<UserPassword>,
    /// SUPERUSER or NOSUPERUSER; `None` means neither.
    pub superuser: Option<bool>,
}

/// `DROP ROLE` and `DROP USER`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropRole {
    /// USER rather than ROLE.
    pub user: bool,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Its name.
    pub name: Name,
}

/// `ADD IDENTITY`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddIdentity {
    /// The identity in a client certificate.
    pub identity: String,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The role that the identity may log in as.
    pub role: String,
}

/// `DROP IDENTITY`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropIdentity {
    /// The identity in a client certificate.
    pub identity: String,
    /// IF EXISTS.
    pub if_exists: bool,
}

/// A whole statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// SELECT.
    Select(Select),
    /// INSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE.
    Delete(Delete),
    /// BATCH.
    Batch(Batch),
    /// TRUNCATE.
    Truncate(QualifiedName),
    /// USE.
    Use(Name),
    /// CREATE KEYSPACE.
    CreateKeyspace(CreateKeyspace),
    /// ALTER KEYSPACE.
    AlterKeyspace(AlterKeyspace),
    /// DROP KEYSPACE.
    DropKeyspace(DropKeyspace),
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// ALTER TABLE.
    AlterTable(AlterTable),
    /// CREATE TYPE.
    CreateType(CreateType),
    /// ALTER TYPE.
    AlterType(AlterType),
    /// CREATE INDEX.
    CreateIndex(CreateIndex),
    /// CREATE MATERIALIZED VIEW.
    CreateView(CreateView),
    /// ALTER MATERIALIZED VIEW.
    AlterView(AlterView),
    /// CREATE FUNCTION.
    CreateFunction(CreateFunction),
    /// CREATE AGGREGATE.
    CreateAggregate(CreateAggregate),
    /// DROP FUNCTION, DROP AGGREGATE.
    DropFunction(DropFunction),
    /// DROP TABLE, TYPE, INDEX, MATERIALIZED VIEW.
    Drop(Drop),
    /// CREATE TRIGGER.
    CreateTrigger(CreateTrigger),
    /// DROP TRIGGER.
    DropTrigger(DropTrigger),
    /// DESCRIBE.
    Describe(Describe),
    /// EXPLAIN of a SELECT, a modification or a BATCH. `Differs:` Cassandra has no such statement.
    Explain(Box<Statement>),
    /// GRANT and REVOKE of permissions.
    Grant(Grant),
    /// GRANT and REVOKE of a role.
    GrantRole(GrantRole),
    /// LIST PERMISSIONS.
    ListPermissions(ListPermissions),
    /// LIST ROLES.
    ListRoles(ListRoles),
    /// LIST USERS.
    ListUsers,
    /// CREATE ROLE.
    CreateRole(CreateRole),
    /// ALTER ROLE.
    AlterRole(AlterRole),
    /// CREATE USER.
    CreateUser(CreateUser),
    /// ALTER USER.
    AlterUser(AlterUser),
    /// DROP ROLE, DROP USER.
    DropRole(DropRole),
    /// ADD IDENTITY.
    AddIdentity(AddIdentity),
    /// DROP IDENTITY.
    DropIdentity(DropIdentity),
}
