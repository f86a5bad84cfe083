//! The syntax tree of a body: plain data, each part with its line.

use std::sync::Arc;

use num_bigint::BigUint;

pub(crate) type Word = Arc<str>;

/// A type as written: `java.util.List<Integer>[]`.
#[derive(Clone, Debug)]
pub(crate) struct TypeText {
    pub(crate) line: u32,
    /// With its package, if written so.
    pub(crate) name: String,
    pub(crate) arguments: Vec<TypeText>,
    /// `<>`
    pub(crate) is_diamond: bool,
    pub(crate) dimensions: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind,
}

#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) line: u32,
    pub(crate) name: Word,
    /// `[]` after the name.
    pub(crate) dimensions: u32,
    pub(crate) value: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Catch {
    pub(crate) types: Vec<TypeText>,
    pub(crate) name: Word,
    pub(crate) body: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// `None` is `default`.
    pub(crate) labels: Vec<Option<Expr>>,
    pub(crate) body: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    Empty,
    Block(Vec<Stmt>),
    Local {
        is_final: bool,
        ty: TypeText,
        declared: Vec<Declared>,
    },
    Expr(Expr),
    If {
        condition: Expr,
        then: Box<Stmt>,
        otherwise: Option<Box<Stmt>>,
    },
    While {
        condition: Expr,
        body: Box<Stmt>,
    },
    Do {
        body: Box<Stmt>,
        condition: Expr,
    },
    For {
        start: Vec<Stmt>,
        condition: Option<Expr>,
        step: Vec<Stmt>,
        body: Box<Stmt>,
    },
    ForEach {
        is_final: bool,
        ty: TypeText,
        name: Word,
        of: Expr,
        body: Box<Stmt>,
    },
    Switch {
        on: Expr,
        groups: Vec<Group>,
    },
    Labelled {
        label: Word,
        body: Box<Stmt>,
    },
    Break(Option<Word>),
    Continue(Option<Word>),
    Return(Option<Expr>),
    Throw(Expr),
    Try {
        body: Vec<Stmt>,
        catches: Vec<Catch>,
        finally: Option<Vec<Stmt>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    pub(crate) kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Null,
    Boolean(bool),
    Integer {
        digits: BigUint,
        decimal: bool,
        long: bool,
    },
    Double(f64),
    Float(f32),
    Char(u16),
    Text(Arc<[u16]>),
    /// A name: a local, a class, or a part of a qualified name.
    Name(Word),
    Field {
        of: Box<Expr>,
        name: Word,
    },
    Index {
        of: Box<Expr>,
        at: Box<Expr>,
    },
    Call {
        of: Option<Box<Expr>>,
        name: Word,
        arguments: Vec<Expr>,
    },
    New {
        ty: TypeText,
        arguments: Vec<Expr>,
    },
    /// `new T[a][b][]`: the sizes that are given; `ty` has all dimensions.
    NewArray {
        ty: TypeText,
        sizes: Vec<Expr>,
    },
    /// `new T[] {…}`, or `{…}` where the type is known from a declaration.
    Elements {
        ty: Option<TypeText>,
        elements: Vec<Expr>,
    },
    /// `Integer.class`
    Class(TypeText),
    /// `-`, `+`, `!`, `~`
    Unary {
        operator: &'static str,
        of: Box<Expr>,
    },
    Binary {
        operator: &'static str,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Conditional {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Cast {
        ty: TypeText,
        of: Box<Expr>,
    },
    InstanceOf {
        of: Box<Expr>,
        ty: TypeText,
    },
    Assign {
        place: Box<Expr>,
        value: Box<Expr>,
    },
    /// `+=` and similar: the operator without `=`.
    Compound {
        place: Box<Expr>,
        operator: &'static str,
        value: Box<Expr>,
    },
    Step {
        place: Box<Expr>,
        up: bool,
        prefix: bool,
    },
}
