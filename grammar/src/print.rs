//! Prints every node of the tree as CQL text. Parsing the text gives the same node.
//!
//! Names are quoted only where necessary, keywords are upper case, and one blank stands where the grammar allows blanks.
//! A blank always follows `-`, since `-1` is a number and `--` a comment.
//!
//! The file is long because the language is large: one short function for each node, in the order of `ast`.

mod expression;

use std::fmt::{self, Display, Formatter, Write};

use crate::ast::*;
use crate::input::NameOf;
use crate::keyword::{is_plain, keyword_kind, quoted};
use crate::name::RESERVED_TYPE_NAMES;

/// Prints the name of a column, keyspace, table or similar object.
impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        name(f, self, NameOf::Anything)
    }
}

/// Prints a name of this kind; quotes it if the parser would not read it back as the same name.
fn name(f: &mut Formatter<'_>, name: &Name, of: NameOf) -> fmt::Result {
    let text = name.as_str();
    let reads_as_itself = is_plain(text)
        && !matches!(text, "true" | "false" | "expr")
        && keyword_kind(text.as_bytes()).is_none_or(|kind| of.allows(kind))
        && !(of == NameOf::Type && RESERVED_TYPE_NAMES.contains(&text));
    if reads_as_itself {
        f.write_str(text)
    } else {
        f.write_str(&quoted(text))
    }
}

/// A name of one kind, with its keyspace.
struct Qualified<'a>(&'a QualifiedName, NameOf);

impl Display for Qualified<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.0.keyspace {
            write!(f, "{keyspace}.")?;
        }
        name(f, &self.0.name, self.1)
    }
}

fn of_function(name: &QualifiedName) -> Qualified<'_> {
    Qualified(name, NameOf::Function)
}

fn of_type(name: &QualifiedName) -> Qualified<'_> {
    Qualified(name, NameOf::Type)
}

/// A name in a position where any keyword would be ambiguous, so every keyword is quoted.
struct Guarded<'a>(&'a QualifiedName);

impl Display for Guarded<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let part = |name: &Name| {
            if is_word(name.as_str()) {
                name.0.clone()
            } else {
                quoted(name.as_str())
            }
        };
        if let Some(keyspace) = &self.0.keyspace {
            write!(f, "{}.", part(keyspace))?;
        }
        f.write_str(&part(&self.0.name))
    }
}

/// Whether a text is a lower-case name and no keyword of any class.
fn is_word(text: &str) -> bool {
    is_plain(text) && !matches!(text, "true" | "false") && keyword_kind(text.as_bytes()).is_none()
}

impl Display for QualifiedName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Qualified(self, NameOf::Anything).fmt(f)
    }
}

/// A text in single quotes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        for (index, part) in self.0.split('\'').enumerate() {
            f.write_str(if index > 0 { "''" } else { "" })?;
            f.write_str(part)?;
        }
        f.write_char('\'')
    }
}

/// Prints elements with a separator between them.
fn join<T: Display>(f: &mut Formatter<'_>, elements: impl IntoIterator<Item = T>, between: &str) -> fmt::Result {
    for (index, element) in elements.into_iter().enumerate() {
        f.write_str(if index > 0 { between } else { "" })?;
        element.fmt(f)?;
    }
    Ok(())
}

/// Prints elements in brackets, separated by commas.
fn list<T: Display>(f: &mut Formatter<'_>, brackets: [char; 2], elements: impl IntoIterator<Item = T>) -> fmt::Result {
    let [open, close] = brackets;
    f.write_char(open)?;
    join(f, elements, ", ")?;
    f.write_char(close)
}

const ROUND: [char; 2] = ['(', ')'];
const SQUARE: [char; 2] = ['[', ']'];
const CURLY: [char; 2] = ['{', '}'];
const ANGLE: [char; 2] = ['<', '>'];

/// Two parts with a separator between them.
struct Pair<'a, A, B>(&'a A, &'static str, &'a B);

impl<A: Display, B: Display> Display for Pair<'_, A, B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.0, self.1, self.2)
    }
}

fn pairs<'a, A, B>(pairs: &'a [(A, B)], between: &'static str) -> impl Iterator<Item = Pair<'a, A, B>> {
    pairs.iter().map(move |(left, right)| Pair(left, between, right))
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(named) if named.keyspace.is_none() => {
                let text = named.name.as_str();
                let native = is_plain(text) && keyword_kind(text.as_bytes()).is_some_and(crate::term::is_native);
                if native {
                    f.write_str(text)
                } else {
                    of_type(named).fmt(f)
                }
            }
            Self::Named(named) => of_type(named).fmt(f),
            Self::Custom(class) => Quoted(class).fmt(f),
            Self::List(of) => write!(f, "list<{of}>"),
            Self::Set(of) => write!(f, "set<{of}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Tuple(of) => {
                f.write_str("tuple")?;
                list(f, ANGLE, of)
            }
            Self::Vector(of, length) => write!(f, "vector<{of}, {length}>"),
            Self::Frozen(of) => write!(f, "frozen<{of}>"),
        }
    }
}

impl Display for SelectorAs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.selector.fmt(f)?;
        self.alias.as_ref().map_or(Ok(()), |alias| write!(f, " AS {alias}"))
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_char('*'),
            // The parser would read a first column of that name as the keyword.
            Self::Selectors(selectors) => join(f, selectors, ", "),
        }
    }
}

impl Display for Operator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::Neq => "!=",
            Self::In => "IN",
            Self::Contains => "CONTAINS",
            Self::ContainsKey => "CONTAINS KEY",
            Self::Like => "LIKE",
            Self::IsNotNull => "IS NOT NULL",
        })
    }
}

impl Display for RelationTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name) => name.fmt(f),
            Self::Element(name, key) => write!(f, "{name}[{key}]"),
            Self::Tuple(names) => list(f, ROUND, names),
            Self::Token(names) => {
                f.write_str("token")?;
                list(f, ROUND, names)
            }
            Self::Index(name) => write!(f, "expr({name}"),
            Self::Feed(function) => write!(f, "{}()", function.name()),
        }
    }
}

impl Display for RelationValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term(term) => term.fmt(f),
            Self::Terms(terms) => list(f, ROUND, terms),
            Self::None => Ok(()),
        }
    }
}

impl Display for Relation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            operator,
            value,
        } = self;
        match (target, value) {
            (RelationTarget::Index(_), _) => write!(f, "{target}, {value})"),
            (_, RelationValue::None) => write!(f, "{target} {operator}"),
            _ => write!(f, "{target} {operator} {value}"),
        }
    }
}

impl Display for GroupBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        })
    }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name, direction) => write!(f, "{name} {direction}"),
            Self::Ann(name, to, direction) => write!(f, "{name} ANN OF {to} {direction}"),
        }
    }
}

/// Prints a clause and its elements; nothing if there are none.
fn clause<T: Display>(f: &mut Formatter<'_>, keyword: &str, elements: &[T], between: &str) -> fmt::Result {
    if elements.is_empty() {
        return Ok(());
    }
    write!(f, " {keyword} ")?;
    join(f, elements, between)
}

/// Prints a keyword and its value; nothing if there is no value.
fn optional<T: Display>(f: &mut Formatter<'_>, keyword: &str, value: Option<&T>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {keyword} {value}"))
}

/// Prints a word if `said`.
fn flag(f: &mut Formatter<'_>, word: &str, said: bool) -> fmt::Result {
    f.write_str(if said { word } else { "" })
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        flag(f, "JSON ", self.json)?;
        flag(f, "DISTINCT ", self.distinct)?;
        selection(f, &self.selection)?;
        write!(f, " FROM {}", self.table)?;
        clause(f, "WHERE", &self.relations, " AND ")?;
        clause(f, "GROUP BY", &self.group_by, ", ")?;
        clause(f, "ORDER BY", &self.order_by, ", ")?;
        optional(f, "PER PARTITION LIMIT", self.per_partition_limit.as_ref())?;
        optional(f, "LIMIT", self.limit.as_ref())?;
        flag(f, " ALLOW FILTERING", self.allow_filtering)
    }
}

/// Prints the selection after SELECT. A first column `json` or `distinct` is quoted, since it would be read as a keyword.
fn selection(f: &mut Formatter<'_>, selection: &Selection) -> fmt::Result {
    let text = selection.to_string();
    for word in ["json", "distinct"] {
        if let Some(rest) = text.strip_prefix(word)
            && !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        {
            return write!(f, "\"{word}\"{rest}");
        }
    }
    f.write_str(&text)
}

impl Display for Using {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let timestamp = self.timestamp.as_ref().map(|value| format!("TIMESTAMP {value}"));
        let ttl = self.ttl.as_ref().map(|value| format!("TTL {value}"));
        let both = if self.ttl_first {
            [ttl, timestamp]
        } else {
            [timestamp, ttl]
        };
        let objectives: Vec<String> = both.into_iter().flatten().collect();
        clause(f, "USING", &objectives, " AND ")
    }
}

impl Display for ConditionTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name) => name.fmt(f),
            Self::Element(name, key) => write!(f, "{name}[{key}]"),
            Self::Field(name, field) => write!(f, "{name}.{field}"),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.target, self.operator, self.value)
    }
}

impl Display for If {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Exists => f.write_str(" IF EXISTS"),
            Self::NotExists => f.write_str(" IF NOT EXISTS"),
            Self::Conditions(conditions) => clause(f, "IF", conditions, " AND "),
        }
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "INSERT INTO {} ", self.table)?;
        match &self.source {
            InsertSource::Values { columns, values } => {
                list(f, ROUND, columns)?;
                f.write_str(" VALUES ")?;
                list(f, ROUND, values)?;
            }
            InsertSource::Json {
                document,
                default_unset,
            } => {
                write!(f, "JSON {document}")?;
                flag(f, " DEFAULT UNSET", *default_unset)?;
            }
        }
        flag(f, " IF NOT EXISTS", self.if_not_exists)?;
        self.using.fmt(f)
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(name, value) => write!(f, "{name} = {value}"),
            Self::Field(name, field, value) => write!(f, "{name}.{field} = {value}"),
            Self::Element(name, key, value) => write!(f, "{name}[{key}] = {value}"),
            Self::Add(name, value) => write!(f, "{name} += {value}"),
            Self::Subtract(name, value) => write!(f, "{name} -= {value}"),
            Self::Prepend(name, value) => write!(f, "{name} = {value} + {name}"),
        }
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "UPDATE {}{}", self.table, self.using)?;
        clause(f, "SET", &self.assignments, ", ")?;
        clause(f, "WHERE", &self.relations, " AND ")?;
        self.condition.fmt(f)
    }
}

impl Display for DeleteTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name) => name.fmt(f),
            Self::Element(name, key) => write!(f, "{name}[{key}]"),
            Self::Field(name, field) => write!(f, "{name}.{field}"),
        }
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("DELETE ")?;
        join(f, &self.targets, ", ")?;
        flag(f, " ", !self.targets.is_empty())?;
        write!(f, "FROM {}{}", self.table, self.using)?;
        clause(f, "WHERE", &self.relations, " AND ")?;
        self.condition.fmt(f)
    }
}

impl Display for Modification {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert(insert) => insert.fmt(f),
            Self::Update(update) => update.fmt(f),
            Self::Delete(delete) => delete.fmt(f),
        }
    }
}

impl Display for Batch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            BatchKind::Logged => "BEGIN BATCH",
            BatchKind::Unlogged => "BEGIN UNLOGGED BATCH",
            BatchKind::Counter => "BEGIN COUNTER BATCH",
        })?;
        self.using.fmt(f)?;
        for modification in &self.modifications {
            write!(f, " {modification};")?;
        }
        f.write_str(" APPLY BATCH")
    }
}

impl Display for PropertyValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Map(entries) => list(f, CURLY, pairs(entries, ": ")),
        }
    }
}

impl Display for Property {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)
    }
}

fn if_not_exists(f: &mut Formatter<'_>, said: bool) -> fmt::Result {
    flag(f, "IF NOT EXISTS ", said)
}

fn if_exists(f: &mut Formatter<'_>, said: bool) -> fmt::Result {
    flag(f, "IF EXISTS ", said)
}

impl Display for CreateKeyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE KEYSPACE ")?;
        if_not_exists(f, self.if_not_exists)?;
        self.name.fmt(f)?;
        clause(f, "WITH", &self.properties, " AND ")
    }
}

impl Display for AlterKeyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ALTER KEYSPACE ")?;
        if_exists(f, self.if_exists)?;
        self.name.fmt(f)?;
        clause(f, "WITH", &self.properties, " AND ")
    }
}

impl Display for Mask {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.by_default {
            return f.write_str("MASKED WITH DEFAULT");
        }
        write!(f, "MASKED WITH {}", of_function(&self.function))?;
        list(f, ROUND, &self.arguments)
    }
}

impl Display for ColumnDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.column_type)?;
        flag(f, " STATIC", self.is_static)?;
        self.mask.as_ref().map_or(Ok(()), |mask| write!(f, " {mask}"))?;
        flag(f, " PRIMARY KEY", self.is_primary_key)
    }
}

impl Display for PrimaryKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("PRIMARY KEY (")?;
        list(f, ROUND, &self.partition_key)?;
        self.clustering.iter().try_for_each(|name| write!(f, ", {name}"))?;
        f.write_char(')')
    }
}

impl Display for TableOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        if self.compact_storage {
            all.push("COMPACT STORAGE".to_owned());
        }
        if !self.clustering_order.is_empty() {
            let orders: Vec<String> = pairs(&self.clustering_order, " ")
                .map(|pair| pair.to_string())
                .collect();
            all.push(format!("CLUSTERING ORDER BY ({})", orders.join(", ")));
        }
        all.extend(self.properties.iter().map(ToString::to_string));
        clause(f, "WITH", &all, " AND ")
    }
}

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE TABLE ")?;
        if_not_exists(f, self.if_not_exists)?;
        write!(f, "{} ", self.table)?;
        let columns = self.columns.iter().map(ToString::to_string);
        list(
            f,
            ROUND,
            columns.chain(self.primary_keys.iter().map(ToString::to_string)),
        )?;
        self.options.fmt(f)
    }
}

/// Prints `RENAME a TO b AND …`.
fn renames(f: &mut Formatter<'_>, renames: &[(Name, Name)], if_said: bool) -> fmt::Result {
    f.write_str("RENAME ")?;
    if_exists(f, if_said)?;
    join(f, pairs(renames, " TO "), " AND ")
}

/// Prints one element, or several in parentheses.
fn one_or_more<T: Display>(f: &mut Formatter<'_>, elements: &[T]) -> fmt::Result {
    match elements {
        [one] => one.fmt(f),
        many => list(f, ROUND, many),
    }
}

impl Display for AlterTableAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add {
                if_not_exists: said,
                columns,
            } => {
                f.write_str("ADD ")?;
                if_not_exists(f, *said)?;
                one_or_more(f, columns)
            }
            Self::Drop {
                if_exists: said,
                columns,
                timestamp,
            } => {
                f.write_str("DROP ")?;
                if_exists(f, *said)?;
                one_or_more(f, columns)?;
                optional(f, "USING TIMESTAMP", timestamp.as_ref())
            }
            Self::Rename {
                if_exists,
                renames: pairs,
            } => renames(f, pairs, *if_exists),
            Self::AlterType {
                if_exists: said,
                column,
                column_type,
            } => {
                f.write_str("ALTER ")?;
                if_exists(f, *said)?;
                write!(f, "{column} TYPE {column_type}")
            }
            Self::AlterMask {
                if_exists: said,
                column,
                mask,
            } => {
                f.write_str("ALTER ")?;
                if_exists(f, *said)?;
                match mask {
                    Some(mask) => write!(f, "{column} {mask}"),
                    None => write!(f, "{column} DROP MASKED"),
                }
            }
            Self::DropCompactStorage => f.write_str("DROP COMPACT STORAGE"),
            Self::Options(options) => f.write_str(options.to_string().trim_start()),
        }
    }
}

impl Display for AlterTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ALTER TABLE ")?;
        if_exists(f, self.if_exists)?;
        write!(f, "{} {}", self.table, self.action)
    }
}

impl Display for CreateType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE TYPE ")?;
        if_not_exists(f, self.if_not_exists)?;
        write!(f, "{} ", of_type(&self.name))?;
        list(f, ROUND, pairs(&self.fields, " "))
    }
}

impl Display for AlterTypeAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add {
                if_not_exists: said,
                field,
                field_type,
            } => {
                f.write_str("ADD ")?;
                if_not_exists(f, *said)?;
                write!(f, "{field} {field_type}")
            }
            Self::Rename {
                if_exists,
                renames: pairs,
            } => renames(f, pairs, *if_exists),
            Self::AlterField {
                if_exists: said,
                field,
                field_type,
            } => {
                f.write_str("ALTER ")?;
                if_exists(f, *said)?;
                write!(f, "{field} TYPE {field_type}")
            }
        }
    }
}

impl Display for AlterType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ALTER TYPE ")?;
        if_exists(f, self.if_exists)?;
        write!(f, "{} {}", of_type(&self.name), self.action)
    }
}

/// The indexed part of a column.
struct IndexTarget<'a>(&'a IndexTargetKind, &'a Name);

impl Display for IndexTarget<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(kind, column) = self;
        match kind {
            IndexTargetKind::Simple => column.fmt(f),
            IndexTargetKind::Values => write!(f, "values({column})"),
            IndexTargetKind::Keys => write!(f, "keys({column})"),
            IndexTargetKind::Entries => write!(f, "entries({column})"),
            IndexTargetKind::Full => write!(f, "full({column})"),
        }
    }
}

impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE ")?;
        flag(f, "CUSTOM ", self.custom)?;
        f.write_str("INDEX ")?;
        if_not_exists(f, self.if_not_exists)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, "{name} "))?;
        write!(f, "ON {} ", self.table)?;
        list(
            f,
            ROUND,
            self.targets.iter().map(|(kind, column)| IndexTarget(kind, column)),
        )?;
        optional(f, "USING", self.using.as_deref().map(Quoted).as_ref())?;
        clause(f, "WITH", &self.properties, " AND ")
    }
}

impl Display for CreateView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE MATERIALIZED VIEW ")?;
        if_not_exists(f, self.if_not_exists)?;
        write!(f, "{} AS SELECT {} FROM {}", self.name, self.selection, self.base_table)?;
        clause(f, "WHERE", &self.relations, " AND ")?;
        write!(f, " {}{}", self.primary_key, self.options)
    }
}

impl Display for AlterView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ALTER MATERIALIZED VIEW ")?;
        if_exists(f, self.if_exists)?;
        write!(f, "{}{}", self.name, self.options)
    }
}

/// `CREATE [OR REPLACE] kind [IF NOT EXISTS] name`
fn create_function(
    f: &mut Formatter<'_>,
    or_replace: bool,
    kind: &str,
    if_said: bool,
    name: &QualifiedName,
) -> fmt::Result {
    f.write_str("CREATE ")?;
    flag(f, "OR REPLACE ", or_replace)?;
    write!(f, "{kind} ")?;
    if_not_exists(f, if_said)?;
    write!(f, "{} ", of_function(name))
}

impl Display for CreateFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        create_function(f, self.or_replace, "FUNCTION", self.if_not_exists, &self.name)?;
        list(f, ROUND, pairs(&self.arguments, " "))?;
        f.write_str(if self.called_on_null_input {
            " CALLED"
        } else {
            " RETURNS NULL"
        })?;
        write!(
            f,
            " ON NULL INPUT RETURNS {} LANGUAGE {}",
            self.returns,
            self.language.as_str()
        )?;
        write!(f, " AS {}", Quoted(&self.body))
    }
}

impl Display for CreateAggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        create_function(f, self.or_replace, "AGGREGATE", self.if_not_exists, &self.name)?;
        list(f, ROUND, &self.arguments)?;
        f.write_str(" SFUNC ")?;
        name(f, &self.state_function, NameOf::Function)?;
        write!(f, " STYPE {}", self.state_type)?;
        if let Some(function) = &self.final_function {
            f.write_str(" FINALFUNC ")?;
            name(f, function, NameOf::Function)?;
        }
        optional(f, "INITCOND", self.initial_condition.as_ref())
    }
}

impl Display for DropFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.aggregate {
            "DROP AGGREGATE "
        } else {
            "DROP FUNCTION "
        })?;
        if_exists(f, self.if_exists)?;
        of_function(&self.name).fmt(f)?;
        self.arguments
            .as_ref()
            .map_or(Ok(()), |arguments| list(f, ROUND, arguments))
    }
}

impl Display for Drop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DropKind::Table => "DROP TABLE ",
            DropKind::Type => "DROP TYPE ",
            DropKind::Index => "DROP INDEX ",
            DropKind::View => "DROP MATERIALIZED VIEW ",
        })?;
        if_exists(f, self.if_exists)?;
        Qualified(
            &self.name,
            if self.kind == DropKind::Type {
                NameOf::Type
            } else {
                NameOf::Anything
            },
        )
        .fmt(f)
    }
}

impl Display for DropKeyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("DROP KEYSPACE ")?;
        if_exists(f, self.if_exists)?;
        self.name.fmt(f)
    }
}

impl Display for CreateTrigger {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE TRIGGER ")?;
        if_not_exists(f, self.if_not_exists)?;
        write!(f, "{} ON {} USING {}", self.name, self.table, Quoted(&self.class))
    }
}

impl Display for DropTrigger {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("DROP TRIGGER ")?;
        if_exists(f, self.if_exists)?;
        write!(f, "{} ON {}", self.name, self.table)
    }
}

impl Display for DescribeTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("CLUSTER"),
            Self::Schema { full } => f.write_str(if *full { "FULL SCHEMA" } else { "SCHEMA" }),
            Self::Keyspaces => f.write_str("KEYSPACES"),
            Self::Tables => f.write_str("TABLES"),
            Self::Types => f.write_str("TYPES"),
            Self::Functions => f.write_str("FUNCTIONS"),
            Self::Aggregates => f.write_str("AGGREGATES"),
            Self::Keyspace { name, only } => {
                flag(f, "ONLY ", *only)?;
                f.write_str("KEYSPACE")?;
                name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
            }
            Self::Table(name) => write!(f, "TABLE {name}"),
            Self::Index(name) => write!(f, "INDEX {name}"),
            Self::View(name) => write!(f, "MATERIALIZED VIEW {name}"),
            Self::Type(name) => write!(f, "TYPE {}", of_type(name)),
            Self::Function(name) => write!(f, "FUNCTION {}", of_function(name)),
            Self::Aggregate(name) => write!(f, "AGGREGATE {}", of_function(name)),
            Self::Generic(name) => Guarded(name).fmt(f),
        }
    }
}

impl Display for Describe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "DESCRIBE {}", self.target)?;
        flag(f, " WITH INTERNALS", self.with_internals)
    }
}

impl Display for Permission {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Drop => "DROP",
            Self::Select => "SELECT",
            Self::Modify => "MODIFY",
            Self::Authorize => "AUTHORIZE",
            Self::Describe => "DESCRIBE",
            Self::Execute => "EXECUTE",
            Self::Unmask => "UNMASK",
            Self::SelectMasked => "SELECT_MASKED",
        })
    }
}

/// A role's name: printed as a string unless it is a plain word, since a name may be empty.
struct RoleName<'a>(&'a Name);

impl Display for RoleName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0.as_str();
        if is_word(text) {
            f.write_str(text)
        } else {
            Quoted(text).fmt(f)
        }
    }
}

impl Display for Resource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllKeyspaces => f.write_str("ALL KEYSPACES"),
            Self::Keyspace(name) => write!(f, "KEYSPACE {name}"),
            Self::Table(name) => write!(f, "TABLE {name}"),
            Self::AllTables(keyspace) => write!(f, "ALL TABLES IN KEYSPACE {keyspace}"),
            Self::AllRoles => f.write_str("ALL ROLES"),
            Self::Role(name) => write!(f, "ROLE {}", RoleName(name)),
            Self::AllFunctions => f.write_str("ALL FUNCTIONS"),
            Self::AllFunctionsIn(keyspace) => write!(f, "ALL FUNCTIONS IN KEYSPACE {keyspace}"),
            Self::Function { name, arguments, .. } => {
                write!(f, "FUNCTION {}", of_function(name))?;
                list(f, ROUND, arguments)
            }
            Self::AllMbeans => f.write_str("ALL MBEANS"),
            Self::Mbean(name) => write!(f, "MBEAN {}", Quoted(name)),
            Self::Mbeans(pattern) => write!(f, "MBEANS {}", Quoted(pattern)),
        }
    }
}

fn permissions(f: &mut Formatter<'_>, permissions: Option<&[Permission]>) -> fmt::Result {
    match permissions {
        None => f.write_str("ALL PERMISSIONS"),
        Some(some) => join(f, some, ", "),
    }
}

impl Display for Grant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (verb, link) = if self.revoke {
            ("REVOKE", "FROM")
        } else {
            ("GRANT", "TO")
        };
        write!(f, "{verb} ")?;
        permissions(f, self.permissions.as_deref())?;
        write!(f, " ON {} {link} {}", self.resource, RoleName(&self.role))
    }
}

impl Display for GrantRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (verb, link) = if self.revoke {
            ("REVOKE", "FROM")
        } else {
            ("GRANT", "TO")
        };
        write!(f, "{verb} {} {link} {}", RoleName(&self.role), RoleName(&self.grantee))
    }
}

impl Display for ListPermissions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("LIST ")?;
        permissions(f, self.permissions.as_deref())?;
        optional(f, "ON", self.resource.as_ref())?;
        optional(f, "OF", self.of.as_ref().map(RoleName).as_ref())?;
        flag(f, " NORECURSIVE", self.no_recursive)
    }
}

impl Display for ListRoles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("LIST ROLES")?;
        optional(f, "OF", self.of.as_ref().map(RoleName).as_ref())?;
        flag(f, " NORECURSIVE", self.no_recursive)
    }
}

impl Display for RoleOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password(text) => write!(f, "PASSWORD = {}", Quoted(text)),
            Self::HashedPassword(text) => write!(f, "HASHED PASSWORD = {}", Quoted(text)),
            Self::Options(entries) => {
                f.write_str("OPTIONS = ")?;
                list(f, CURLY, pairs(entries, ": "))
            }
            Self::Superuser(value) => write!(f, "SUPERUSER = {value}"),
            Self::Login(value) => write!(f, "LOGIN = {value}"),
            Self::AllDatacenters => f.write_str("ACCESS TO ALL DATACENTERS"),
            Self::Datacenters(names) => {
                f.write_str("ACCESS TO DATACENTERS ")?;
                list(f, CURLY, names.iter().map(|name| Quoted(name)))
            }
            Self::AllCidrs => f.write_str("ACCESS FROM ALL CIDRS"),
            Self::Cidrs(groups) => {
                f.write_str("ACCESS FROM CIDRS ")?;
                list(f, CURLY, groups.iter().map(|group| Quoted(group)))
            }
        }
    }
}

impl Display for CreateRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE ROLE ")?;
        if_not_exists(f, self.if_not_exists)?;
        RoleName(&self.name).fmt(f)?;
        clause(f, "WITH", &self.options, " AND ")
    }
}

impl Display for AlterRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ALTER ROLE ")?;
        if_exists(f, self.if_exists)?;
        RoleName(&self.name).fmt(f)?;
        clause(f, "WITH", &self.options, " AND ")
    }
}

fn user_options(f: &mut Formatter<'_>, password: Option<&UserPassword>, superuser: Option<bool>) -> fmt::Result {
    match password {
        None => {}
        Some(UserPassword::Plain(text)) => write!(f, " WITH PASSWORD {}", Quoted(text))?,
        Some(UserPassword::Hashed(text)) => write!(f, " WITH HASHED PASSWORD {}", Quoted(text))?,
    }
    flag(f, " SUPERUSER", superuser == Some(true))?;
    flag(f, " NOSUPERUSER", superuser == Some(false))
}

impl Display for CreateUser {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE USER ")?;
        if_not_exists(f, self.if_not_exists)?;
        Quoted(self.name.as_str()).fmt(f)?;
        user_options(f, self.password.as_ref(), self.superuser)
    }
}

impl Display for AlterUser {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ALTER USER ")?;
        if_exists(f, self.if_exists)?;
        Quoted(self.name.as_str()).fmt(f)?;
        user_options(f, self.password.as_ref(), self.superuser)
    }
}

impl Display for DropRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.user { "DROP USER " } else { "DROP ROLE " })?;
        if_exists(f, self.if_exists)?;
        if self.user {
            Quoted(self.name.as_str()).fmt(f)
        } else {
            RoleName(&self.name).fmt(f)
        }
    }
}

impl Display for AddIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ADD IDENTITY ")?;
        if_not_exists(f, self.if_not_exists)?;
        write!(f, "{} TO ROLE {}", Quoted(&self.identity), Quoted(&self.role))
    }
}

impl Display for DropIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("DROP IDENTITY ")?;
        if_exists(f, self.if_exists)?;
        Quoted(&self.identity).fmt(f)
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Select(node) => node.fmt(f),
            Self::Insert(node) => node.fmt(f),
            Self::Update(node) => node.fmt(f),
            Self::Delete(node) => node.fmt(f),
            Self::Batch(node) => node.fmt(f),
            Self::Truncate(table) => write!(f, "TRUNCATE TABLE {table}"),
            Self::Use(keyspace) => write!(f, "USE {keyspace}"),
            Self::CreateKeyspace(node) => node.fmt(f),
            Self::AlterKeyspace(node) => node.fmt(f),
            Self::DropKeyspace(node) => node.fmt(f),
            Self::CreateTable(node) => node.fmt(f),
            Self::AlterTable(node) => node.fmt(f),
            Self::CreateType(node) => node.fmt(f),
            Self::AlterType(node) => node.fmt(f),
            Self::CreateIndex(node) => node.fmt(f),
            Self::CreateView(node) => node.fmt(f),
            Self::AlterView(node) => node.fmt(f),
            Self::CreateFunction(node) => node.fmt(f),
            Self::CreateAggregate(node) => node.fmt(f),
            Self::DropFunction(node) => node.fmt(f),
            Self::Drop(node) => node.fmt(f),
            Self::CreateTrigger(node) => node.fmt(f),
            Self::DropTrigger(node) => node.fmt(f),
            Self::Describe(node) => node.fmt(f),
            Self::Explain(statement) => write!(f, "EXPLAIN {statement}"),
            Self::Grant(node) => node.fmt(f),
            Self::GrantRole(node) => node.fmt(f),
            Self::ListPermissions(node) => node.fmt(f),
            Self::ListRoles(node) => node.fmt(f),
            Self::ListUsers => f.write_str("LIST USERS"),
            Self::CreateRole(node) => node.fmt(f),
            Self::AlterRole(node) => node.fmt(f),
            Self::CreateUser(node) => node.fmt(f),
            Self::AlterUser(node) => node.fmt(f),
            Self::DropRole(node) => node.fmt(f),
            Self::AddIdentity(node) => node.fmt(f),
            Self::DropIdentity(node) => node.fmt(f),
        }
    }
}
