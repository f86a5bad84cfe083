//! Values and selectors.

use std::hash::{Hash, Hasher};

use super::{Name, QualifiedName, Type};

/// A constant, as its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// `null`
    Null,
    /// `'text'` or `$$text$$`, unescaped.
    String(String),
    /// `-?[0-9]+`
    Integer(String),
    /// A number with point or exponent, or `NaN`, `Infinity`, `-Infinity` as written.
    Float(String),
    /// `true` or `false`
    Boolean(bool),
    /// 8-4-4-4-12 hexadecimal digits, as written.
    Uuid(String),
    /// `1y2mo3d`, `P1Y2M`, … as written.
    Duration(String),
    /// `0x…`: the hexadecimal digits after `0x`, as written.
    Blob(String),
}

/// An operator between two terms or selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// The position of a part of a statement: the number of a token in its text. It is unique among parts of one kind, so it
/// identifies the part.
///
/// All positions compare equal, so two statements are equal whatever their layout.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site(u32);

impl Site {
    pub(crate) fn of_token(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The number of the token, from 0.
    #[must_use]
    pub const fn token(self) -> u32 {
        self.0
    }
}

impl PartialEq for Site {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Site {}

impl Hash for Site {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A value in a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A constant.
    Literal(Literal),
    /// `?`, `:name`
    BindMarker {
        /// `None`: it is `?`.
        name: Option<Name>,
        /// Its position in the statement.
        at: Site,
    },
    /// `[a, b]`: a list or a vector.
    List(Vec<Term>),
    /// `{a, b}`; `{}` is an empty set or an empty map.
    Set(Vec<Term>),
    /// `{k: v, …}` if some key is no bare name.
    Map(Vec<(Term, Term)>),
    /// `{field: v, …}`: a user-defined type's value.
    Udt(Vec<(Name, Term)>),
    /// `(a, b)`; one element or more.
    Tuple(Vec<Term>),
    /// `f(a, b)`
    Function {
        /// The function.
        name: QualifiedName,
        /// Its arguments.
        arguments: Vec<Term>,
        /// Where its name stands.
        at: Site,
    },
    /// `(type) term`: a type hint.
    TypeHint {
        /// The type.
        target: Type,
        /// The value.
        term: Box<Term>,
    },
    /// `a + b`
    Arithmetic {
        /// The operator.
        operator: ArithmeticOperator,
        /// Left operand.
        left: Box<Term>,
        /// Right operand.
        right: Box<Term>,
        /// Where the operator stands.
        at: Site,
    },
    /// `-a`
    Negate {
        /// Its operand.
        of: Box<Term>,
        /// Where the sign stands.
        at: Site,
    },
    /// `CAST(a AS type)`
    Cast {
        /// The operand.
        term: Box<Term>,
        /// A native type.
        target: Type,
        /// Where `CAST` stands.
        at: Site,
    },
}

/// One expression of a SELECT clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// A column, or a field of a user-defined type's constructor.
    Column(Name),
    /// A literal or bind marker.
    Term(Term),
    /// `count(*)` or `count(1)`: the literal inside, `*` or a number's text.
    CountRows(String),
    /// `f(a, b)`; `writetime(c)`, `maxwritetime(c)` and `ttl(c)` are [`Selector::Metadata`].
    Function {
        /// The function.
        name: QualifiedName,
        /// Its arguments.
        arguments: Vec<Selector>,
        /// Where its name stands.
        at: Site,
    },
    /// `writetime(c)`, `maxwritetime(c)`, `ttl(c)`
    Metadata {
        /// The value to read from the cell.
        kind: MetadataKind,
        /// The column, its element, slice or field.
        of: Box<Selector>,
    },
    /// `CAST(a AS type)`
    Cast {
        /// The operand.
        selector: Box<Selector>,
        /// A native type.
        target: Type,
    },
    /// `a.field`
    Field {
        /// A value of a user-defined type.
        of: Box<Selector>,
        /// Its field.
        field: Name,
    },
    /// `a[key]`
    Element {
        /// A collection.
        of: Box<Selector>,
        /// The key or element.
        key: Term,
    },
    /// `a[from..to]`; either end may be missing.
    Slice {
        /// A set or map.
        of: Box<Selector>,
        /// First element, inclusive.
        from: Option<Term>,
        /// Last element, inclusive.
        to: Option<Term>,
    },
    /// `a + b`
    Arithmetic {
        /// The operator.
        operator: ArithmeticOperator,
        /// Left operand.
        left: Box<Selector>,
        /// Right operand.
        right: Box<Selector>,
        /// Where the operator stands.
        at: Site,
    },
    /// `-a`
    Negate {
        /// Its operand.
        of: Box<Selector>,
        /// Where the sign stands.
        at: Site,
    },
    /// `(type) a`
    TypeHint {
        /// The type.
        target: Type,
        /// The value.
        selector: Box<Selector>,
    },
    /// `(a, b)`
    Tuple(Vec<Selector>),
    /// `[a, b]`
    List(Vec<Selector>),
    /// `{a, b}`; `{}` too.
    Set(Vec<Selector>),
    /// `{a: b}`: a map, or a user-defined type's value when its keys are bare columns; only a type hint decides.
    Map(Vec<(Selector, Selector)>),
}

/// The value that `writetime`, `maxwritetime` and `ttl` read from a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetadataKind {
    /// Write timestamp, µs.
    WriteTime,
    /// The greatest write timestamp of the cells, µs.
    MaxWriteTime,
    /// Seconds left to live.
    Ttl,
}
