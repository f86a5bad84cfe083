//! Names of types: in CQL, as Cassandra's classes, and from the syntax tree.

use super::{CqlType, NATIVE_TYPES, Native, TypeError, UserType, class_parameters};
use grammar::ast::{self, Name, QualifiedName};
use std::cell::Cell;
use std::sync::Arc;

/// Package of the marshal classes.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Package of the partitioners.
const PARTITIONERS: &str = "org.apache.cassandra.dht.";

/// Classes that take parameters.
const WITH_PARAMETERS: [&str; 11] = [
    "CompositeType",
    "DynamicCompositeType",
    "FrozenType",
    "ListType",
    "MapType",
    "PartitionerDefinedOrder",
    "ReversedType",
    "SetType",
    "TupleType",
    "UserType",
    "VectorType",
];

/// Classes that CQL has no name for and that take no parameters.
const WITHOUT_NAME: [&str; 1] = ["LexicalUUIDType"];

/// Whether the class takes no parameters, so that those it has are ignored.
fn is_plain(name: &str) -> bool {
    matches!(name, "DateType" | "LegacyTimeUUIDType")
        || WITHOUT_NAME.contains(&name)
        || NATIVE_TYPES.iter().any(|row| row.class == name)
}

/// Maximum nesting of a marshal class name; deeper ones are rejected to bound the recursion.
const CLASS_DEPTH_MAX: usize = 64;

/// Quotes a name if CQL requires it.
#[must_use]
pub fn quoted(name: &str) -> String {
    grammar::quote_if_needed(name).into_owned()
}

impl Native {
    /// The type of a CQL name, `varchar` included; not of `empty`, which CQL cannot name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == "varchar" {
            return Some(Self::Text);
        }
        NATIVE_TYPES
            .iter()
            .find(|row| row.name == name && row.native != Self::Empty)
            .map(|row| row.native)
    }
}

impl CqlType {
    /// The type's name in CQL, as in `system_schema.columns.type`: `frozen<list<text>>`, `vector<float, 3>`.
    #[must_use]
    pub fn cql_name(&self) -> String {
        match self {
            Self::Native(native) => native.row().name.to_owned(),
            Self::Custom(class) => format!("'{class}'"),
            Self::List(element) => format!("list<{}>", element.cql_name()),
            Self::Set(element) => format!("set<{}>", element.cql_name()),
            Self::Map(key, value) => format!("map<{}, {}>", key.cql_name(), value.cql_name()),
            // A tuple is always single-cell, and its name always says `frozen`.
            Self::Tuple(types) => format!("frozen<tuple<{}>>", join(types, Self::cql_name)),
            Self::User(user) => quoted(&user.name),
            Self::Vector(element, count) => format!("vector<{}, {count}>", element.cql_name()),
            Self::Frozen(inner) if matches!(**inner, Self::List(_) | Self::Set(_) | Self::Map(..) | Self::User(_)) => {
                format!("frozen<{}>", inner.cql_name())
            }
            Self::Frozen(inner) => inner.cql_name(),
        }
    }

    /// The type's class as Cassandra writes it, `org.apache.cassandra.db.marshal.…`.
    #[must_use]
    pub fn marshal_name(&self) -> String {
        self.class_text(false)
    }

    /// Nothing inside a frozen type repeats `frozen`.
    fn class_text(&self, inside_frozen: bool) -> String {
        match self {
            Self::Native(native) => format!("{PACKAGE}{}", native.row().class),
            Self::Custom(class) => class.to_string(),
            Self::List(element) => format!("{PACKAGE}ListType({})", element.class_text(inside_frozen)),
            Self::Set(element) => format!("{PACKAGE}SetType({})", element.class_text(inside_frozen)),
            Self::Map(key, value) => {
                let (key, value) = (key.class_text(inside_frozen), value.class_text(inside_frozen));
                format!("{PACKAGE}MapType({key},{value})")
            }
            Self::Tuple(types) => {
                let types: Vec<String> = types.iter().map(|inner| inner.class_text(true)).collect();
                format!("{PACKAGE}TupleType({})", types.join(","))
            }
            Self::User(user) => {
                let hex = |text: &str| super::text::hex(text.as_bytes());
                let fields: String = user
                    .fields
                    .iter()
                    .map(|(name, field)| format!(",{}:{}", hex(name), field.class_text(inside_frozen)))
                    .collect();
                format!("{PACKAGE}UserType({},{}{fields})", user.keyspace, hex(&user.name))
            }
            Self::Vector(element, count) => {
                format!("{PACKAGE}VectorType({} , {count})", element.class_text(inside_frozen))
            }
            Self::Frozen(inner) if inside_frozen || matches!(**inner, Self::Tuple(_) | Self::Vector(..)) => {
                inner.class_text(inside_frozen)
            }
            Self::Frozen(inner) => format!("{PACKAGE}FrozenType({})", inner.class_text(true)),
        }
    }

    /// Whether each element is a cell of its own.
    #[must_use]
    pub fn is_multi_cell(&self) -> bool {
        matches!(self, Self::List(_) | Self::Set(_) | Self::Map(..) | Self::User(_))
    }

    /// Whether it is a list, set or map, not in `frozen<…>`.
    #[must_use]
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::List(_) | Self::Set(_) | Self::Map(..))
    }

    /// The type without `frozen<…>` around it.
    #[must_use]
    pub fn unfrozen(&self) -> &Self {
        match self {
            Self::Frozen(inner) => inner.unfrozen(),
            other => other,
        }
    }

    /// `frozen<…>` of the type and of all types inside it; types that cannot be frozen stay unchanged.
    #[must_use]
    pub fn freeze(&self) -> Self {
        let inner = match self {
            Self::List(element) => Self::List(Arc::new(element.freeze())),
            Self::Set(element) => Self::Set(Arc::new(element.freeze())),
            Self::Map(key, value) => Self::Map(Arc::new(key.freeze()), Arc::new(value.freeze())),
            Self::User(_) => self.clone(),
            Self::Tuple(types) => return Self::Tuple(types.iter().map(Self::freeze).collect()),
            Self::Vector(element, count) => return Self::Vector(Arc::new(element.freeze()), *count),
            Self::Frozen(inner) => return inner.freeze(),
            Self::Native(_) | Self::Custom(_) => return self.clone(),
        };
        Self::Frozen(Arc::new(inner))
    }

    /// Whether it is or contains a duration, so that it has no order.
    #[must_use]
    pub fn contains_duration(&self) -> bool {
        self.contains(&|inner| matches!(inner, Self::Native(Native::Duration)))
    }

    /// Whether it is or contains the user-defined type of that name.
    #[must_use]
    pub fn references_user_type(&self, keyspace: &str, name: &str) -> bool {
        self.contains(&|inner| matches!(inner, Self::User(user) if user.keyspace == keyspace && user.name == name))
    }

    /// The number of types in it, with fields and elements expanded. Counting stops at `most` plus one.
    #[must_use]
    pub fn parts(&self, most: usize) -> usize {
        let counted = Cell::new(0);
        self.contains(&|_| {
            counted.set(counted.get() + 1);
            counted.get() > most
        });
        counted.get()
    }

    /// Whether `wanted` holds for it or any type inside it.
    pub fn contains(&self, wanted: &dyn Fn(&Self) -> bool) -> bool {
        wanted(self)
            || match self {
                Self::Native(_) | Self::Custom(_) => false,
                Self::List(inner) | Self::Set(inner) | Self::Vector(inner, _) | Self::Frozen(inner) => {
                    inner.contains(wanted)
                }
                Self::Map(key, value) => key.contains(wanted) || value.contains(wanted),
                Self::Tuple(types) => types.iter().any(|inner| inner.contains(wanted)),
                Self::User(user) => user.fields.iter().any(|(_, field)| field.contains(wanted)),
            }
    }

    /// Resolves a type of the syntax tree; `resolve` finds user-defined types.
    ///
    /// # Errors
    /// In Cassandra's words: unknown names, multi-cell types inside collections, misplaced counters and durations.
    pub fn from_ast(
        written: &ast::Type,
        resolve: &dyn Fn(&QualifiedName) -> Option<Arc<UserType>>,
    ) -> Result<Self, TypeError> {
        from_ast(written, resolve, false)
    }

    /// The type of a CQL text; `resolve` finds user-defined types by name. `None` means that the text is no type.
    #[must_use]
    pub fn parsed(text: &str, resolve: &dyn Fn(&str) -> Option<Arc<UserType>>) -> Option<Self> {
        let written = grammar::parse_type(text).ok()?;
        Self::from_ast(&written, &|name| resolve(name.name.as_str())).ok()
    }

    /// The type of a class name, with or without its package; `ReversedType(T)` is T. A class that we have no name for
    /// becomes [`CqlType::Custom`].
    ///
    /// # Errors
    /// When Cassandra has no such class either, or its parameters are wrong.
    pub fn parse_marshal(class: &str) -> Result<Self, TypeError> {
        let fail = || {
            let head = class.split('(').next().unwrap_or_default().trim();
            let full = if head.contains('.') {
                head.to_owned()
            } else {
                format!("{PACKAGE}{head}")
            };
            TypeError::Class(class.to_owned(), full)
        };
        let mut parser = ClassParser { rest: class, depth: 0 };
        let found = parser.class().ok_or_else(fail)?;
        if parser.rest.trim().is_empty() {
            Ok(found)
        } else {
            Err(fail())
        }
    }

    /// The type of a class named by a string in a statement. As in Cassandra's `TypeParser`, what follows the class is not looked at, and
    /// a string that begins with no name is blob.
    fn parse_class(written: &str) -> Result<Self, TypeError> {
        let text = written.trim_start();
        let (head, rest) = text.split_at(text.find(|c| !class_parameters::is_of_name(c)).unwrap_or(text.len()));
        if head.is_empty() {
            return Ok(Self::Native(Native::Blob));
        }
        let name = head.strip_prefix(PACKAGE).unwrap_or(head);
        if is_plain(name)
            && let Err(fault) = class_parameters::skip(rest)
        {
            let before = written.get(..written.len() - fault.rest.len()).unwrap_or(written);
            return Err(TypeError::ClassSyntax {
                written: written.to_owned(),
                at: before.encode_utf16().count(),
                what: fault.what,
            });
        }
        let mut parser = ClassParser { rest: text, depth: 0 };
        parser.class().ok_or_else(|| {
            let package = if head.contains('.') { "" } else { PACKAGE };
            let full = format!("{package}{head}");
            if WITH_PARAMETERS.contains(&name) {
                TypeError::Definition(written.to_owned(), full)
            } else {
                TypeError::Class(written.to_owned(), full)
            }
        })
    }
}

fn join(types: &[CqlType], name: fn(&CqlType) -> String) -> String {
    types.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A type as written, for messages.
pub(super) fn written_name(written: &ast::Type) -> String {
    as_meant(written, false)
}

/// A type as written, with `frozen<…>` where an enclosing type freezes it.
fn as_meant(written: &ast::Type, frozen: bool) -> String {
    let wrap = |name: String| if frozen { format!("frozen<{name}>") } else { name };
    match written {
        ast::Type::Named(name) => match &name.keyspace {
            Some(Name(keyspace)) => wrap(format!("{keyspace}.{}", name.name.0)),
            None if Native::named(name.name.as_str()).is_some() => name.name.0.clone(),
            None => wrap(name.name.0.clone()),
        },
        ast::Type::Custom(class) => {
            let known = CqlType::parse_class(class);
            known.map_or_else(|_| format!("'{class}'"), |known| format!("'{}'", known.marshal_name()))
        }
        ast::Type::List(element) => wrap(format!("list<{}>", as_meant(element, frozen))),
        ast::Type::Set(element) => wrap(format!("set<{}>", as_meant(element, frozen))),
        ast::Type::Map(key, value) => wrap(format!("map<{}, {}>", as_meant(key, frozen), as_meant(value, frozen))),
        ast::Type::Tuple(types) => {
            let types: Vec<String> = types
                .iter()
                .map(|inner| as_meant(inner, frozen || !matches!(inner, ast::Type::Vector(..))))
                .collect();
            format!("tuple<{}>", types.join(", "))
        }
        ast::Type::Vector(element, count) => format!("vector<{}, {count}>", as_meant(element, frozen)),
        ast::Type::Frozen(inner) => match &**inner {
            ast::Type::Tuple(_) | ast::Type::Vector(..) => format!("frozen<{}>", as_meant(inner, true)),
            _ => as_meant(inner, true),
        },
    }
}

type Resolve<'r> = &'r dyn Fn(&QualifiedName) -> Option<Arc<UserType>>;

/// `frozen`: whether an enclosing type freezes it, so that types inside need no `frozen`.
fn from_ast(written: &ast::Type, resolve: Resolve<'_>, frozen: bool) -> Result<CqlType, TypeError> {
    let wrap = |inner: CqlType| {
        if frozen {
            CqlType::Frozen(Arc::new(inner))
        } else {
            inner
        }
    };
    Ok(match written {
        ast::Type::Named(name) => match Native::named(name.name.as_str()).filter(|_| name.keyspace.is_none()) {
            Some(native) => CqlType::Native(native),
            None => wrap(CqlType::User(
                resolve(name).ok_or_else(|| TypeError::Unknown(name.clone()))?,
            )),
        },
        ast::Type::Custom(class) => CqlType::parse_class(class)?,
        ast::Type::List(element) => {
            check_value(written, element, frozen)?;
            wrap(CqlType::List(Arc::new(from_ast(element, resolve, frozen)?)))
        }
        ast::Type::Set(element) => {
            check_value(written, element, frozen)?;
            wrap(CqlType::Set(Arc::new(from_ast(element, resolve, frozen)?)))
        }
        ast::Type::Map(key, value) => {
            check_value(written, value, frozen)?;
            check_key(written, key, frozen)?;
            let value = from_ast(value, resolve, frozen)?;
            wrap(CqlType::Map(Arc::new(from_ast(key, resolve, frozen)?), Arc::new(value)))
        }
        ast::Type::Tuple(types) => {
            // A tuple freezes its fields, but not the elements of a vector in it.
            let fields: Vec<CqlType> = types
                .iter()
                .map(|inner| from_ast(inner, resolve, frozen || !matches!(inner, ast::Type::Vector(..))))
                .collect::<Result<_, _>>()?;
            // As in Cassandra, the class of counters is taken here.
            if types.iter().any(|inner| is_native(inner, Native::Counter)) {
                return Err(TypeError::CounterInTuple);
            }
            CqlType::Tuple(fields.into())
        }
        ast::Type::Vector(element, count) => {
            let element = from_ast(element, resolve, frozen)?;
            match u32::try_from(*count) {
                Ok(dimension @ 1..) => CqlType::Vector(Arc::new(element), dimension),
                _ => return Err(TypeError::Dimension(*count)),
            }
        }
        ast::Type::Frozen(inner) => match &**inner {
            ast::Type::Named(name) if name.keyspace.is_none() && Native::named(name.name.as_str()).is_some() => {
                return Err(TypeError::Freeze(written_name(inner)));
            }
            ast::Type::Custom(_) => return Err(TypeError::Freeze(written_name(inner))),
            _ => from_ast(inner, resolve, true)?,
        },
    })
}

fn is_native(written: &ast::Type, native: Native) -> bool {
    matches!(written, ast::Type::Named(name) if name.keyspace.is_none() && Native::named(name.name.as_str()) == Some(native))
}

/// Validates a list's or set's element or a map's value before any type inside it, as Cassandra does.
fn check_value(collection: &ast::Type, value: &ast::Type, frozen: bool) -> Result<(), TypeError> {
    check_frozen(collection, value, frozen)?;
    if is_native(value, Native::Counter) {
        return Err(TypeError::CounterInCollection(as_meant(collection, frozen)));
    }
    if matches!(collection, ast::Type::Set(_)) && is_native(value, Native::Duration) {
        return Err(TypeError::DurationInSet(as_meant(collection, frozen)));
    }
    Ok(())
}

fn check_key(collection: &ast::Type, key: &ast::Type, frozen: bool) -> Result<(), TypeError> {
    if is_native(key, Native::Counter) {
        return Err(TypeError::CounterInCollection(as_meant(collection, frozen)));
    }
    if is_native(key, Native::Duration) {
        return Err(TypeError::DurationAsKey(as_meant(collection, frozen)));
    }
    check_frozen(collection, key, frozen)
}

/// Types inside a collection must be single-cell.
fn check_frozen(collection: &ast::Type, inner: &ast::Type, frozen: bool) -> Result<(), TypeError> {
    let kind = match inner {
        _ if frozen => return Ok(()),
        ast::Type::List(_) | ast::Type::Set(_) | ast::Type::Map(..) => "collections",
        ast::Type::Named(name) if name.keyspace.is_some() || Native::named(name.name.as_str()).is_none() => "UDTs",
        _ => return Ok(()),
    };
    Err(TypeError::NotFrozen(kind, written_name(collection)))
}

/// Reads `ListType(Int32Type)` and the like.
struct ClassParser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> ClassParser<'a> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn accept(&mut self, wanted: char) -> Option<()> {
        self.blanks();
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn word(&mut self) -> &'a str {
        self.blanks();
        let end = self
            .rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-' | '+')))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn class(&mut self) -> Option<CqlType> {
        self.depth += 1;
        if self.depth > CLASS_DEPTH_MAX {
            return None;
        }
        let written = self.word();
        let name = written.strip_prefix(PACKAGE).unwrap_or(written);
        if is_plain(name) {
            self.rest = class_parameters::skip(self.rest).ok()?;
        }
        if let Some(row) = NATIVE_TYPES.iter().find(|row| row.class == name) {
            self.depth -= 1;
            return Some(CqlType::Native(row.native));
        }
        let found = match name {
            "DateType" => CqlType::Native(Native::Timestamp),
            // Cassandra calls it timeuuid in its schema, and orders it so.
            "LegacyTimeUUIDType" => CqlType::Native(Native::Timeuuid),
            "ListType" => CqlType::List(Arc::new(self.only()?)),
            "SetType" => CqlType::Set(Arc::new(self.only()?)),
            "FrozenType" => self.only()?.freeze(),
            "ReversedType" => {
                self.accept('(')?;
                let reversed = self.class()?;
                self.accept(')')?;
                reversed
            }
            "MapType" => match <[CqlType; 2]>::try_from(self.parameters()?).ok()? {
                [key, value] => CqlType::Map(Arc::new(key), Arc::new(value)),
            },
            "TupleType" => CqlType::Tuple(self.parameters()?.iter().map(CqlType::freeze).collect()),
            "VectorType" => {
                self.accept('(')?;
                let element = self.part()?;
                self.accept(',')?;
                let count = self.word().parse().ok().filter(|count| *count > 0)?;
                self.accept(')')?;
                CqlType::Vector(Arc::new(element), count)
            }
            "UserType" => self.user_type()?,
            "CompositeType" | "DynamicCompositeType" => self.custom(name)?,
            "PartitionerDefinedOrder" => self.order_of_partitioner()?,
            name if WITHOUT_NAME.contains(&name) => CqlType::Custom(format!("{PACKAGE}{name}").into()),
            _ => return None,
        };
        self.depth -= 1;
        Some(found)
    }

    fn only(&mut self) -> Option<CqlType> {
        match <[CqlType; 1]>::try_from(self.parameters()?).ok()? {
            [only] => Some(only),
        }
    }

    fn parameters(&mut self) -> Option<Vec<CqlType>> {
        self.accept('(')?;
        let mut types = vec![self.part()?];
        while self.accept(',').is_some() {
            types.push(self.part()?);
        }
        self.accept(')')?;
        Some(types)
    }

    /// A class inside another one, where the order of a partitioner cannot be.
    fn part(&mut self) -> Option<CqlType> {
        let of_partitioner = |class: &str| {
            class
                .strip_prefix(PACKAGE)
                .is_some_and(|name| name.starts_with("PartitionerDefinedOrder"))
        };
        self.class()
            .filter(|part| !matches!(part, CqlType::Custom(class) if of_partitioner(class)))
    }

    /// `(partitioner)` or `(partitioner:class)`; without either it is the partitioner of the cluster. Two of them order keys by their bytes.
    fn order_of_partitioner(&mut self) -> Option<CqlType> {
        let mut partitioner = "Murmur3Partitioner";
        if self.accept('(').is_some() {
            let written = self.word();
            partitioner = written.strip_prefix(PARTITIONERS).unwrap_or(written);
            if self.accept(':').is_some() {
                self.class()?;
            }
            self.accept(')')?;
        }
        match partitioner {
            "ByteOrderedPartitioner" => Some(CqlType::Native(Native::Blob)),
            "OrderPreservingPartitioner" => Some(CqlType::Native(Native::Text)),
            "Murmur3Partitioner" | "RandomPartitioner" => Some(CqlType::Custom(
                format!("{PACKAGE}PartitionerDefinedOrder({PARTITIONERS}{partitioner})").into(),
            )),
            _ => None,
        }
    }

    /// `(keyspace,hexname,hexfield:Type,…)`
    fn user_type(&mut self) -> Option<CqlType> {
        let unhex = |word: &str| String::from_utf8(super::text::unhex(word)?).ok();
        self.accept('(')?;
        let keyspace = self.word().to_owned();
        self.accept(',')?;
        let name = unhex(self.word())?;
        let mut fields = Vec::new();
        while self.accept(',').is_some() {
            let field = unhex(self.word())?;
            self.accept(':')?;
            fields.push((field, self.class()?));
        }
        self.accept(')')?;
        Some(CqlType::User(Arc::new(UserType { keyspace, name, fields })))
    }

    /// A class without a name in CQL, its parameters in full names and without blanks.
    fn custom(&mut self, name: &str) -> Option<CqlType> {
        let parameters = super::composite::Parameters::read(self.parameter_text()?, name)?;
        Some(CqlType::Custom(format!("{PACKAGE}{name}{parameters}").into()))
    }

    /// The text between the parentheses; empty if there are none.
    fn parameter_text(&mut self) -> Option<&'a str> {
        self.blanks();
        let Some(inner) = self.rest.strip_prefix('(') else {
            return Some("");
        };
        let mut depth = 1_usize;
        for (at, c) in inner.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = inner.get(at + 1..)?;
                return inner.get(..at);
            }
        }
        None
    }
}
