//! The compiled body, which [`crate::run`] executes: every name is resolved, every conversion is explicit.

use std::sync::Arc;

use crate::class::{Class, Kind};
use crate::machine::Body;
use crate::operate::{Operator, Unary};
use crate::value::Value;

pub(crate) type Slot = usize;

#[derive(Debug)]
pub(crate) enum Node {
    Const(Value),
    Local(Slot),
    Assign(Slot, Box<Node>),
    /// Reads the place, evaluates `with`, and writes its value. Inside `with`, [`Node::Held`] is the value read. The result
    /// is the value read if `gives_old`, otherwise the new value.
    Update {
        place: Place,
        with: Box<Node>,
        gives_old: bool,
    },
    Held,
    Unary(Unary, Box<Node>),
    Binary {
        operator: Operator,
        left: Box<Node>,
        right: Box<Node>,
    },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    /// Converts a primitive to another kind.
    Convert(Kind, Box<Node>),
    Box(Box<Node>),
    Unbox {
        of: Box<Node>,
        class: Class,
        because: Reason,
    },
    /// Throws a ClassCastException unless a reference is null or of the class.
    Cast(Class, Box<Node>),
    InstanceOf(Class, Box<Node>),
    /// `==` of references, or `!=` if `true`.
    Same(bool, Box<Node>, Box<Node>),
    Concat(Box<Node>, Box<Node>),
    Call(Box<Call>),
    NewArray {
        kind: Option<Kind>,
        sizes: Vec<Node>,
        dimensions: u32,
    },
    Elements {
        elements: Vec<Node>,
    },
    Index {
        of: Box<Node>,
        at: Box<Node>,
        because: Reason,
    },
    Store {
        of: Box<Node>,
        at: Box<Node>,
        value: Box<Node>,
        because: Reason,
    },
    Length {
        of: Box<Node>,
        because: Reason,
    },
}

#[derive(Debug)]
pub(crate) enum Place {
    Local(Slot),
    Element {
        of: Box<Node>,
        at: Box<Node>,
        because: Reason,
    },
}

/// A call of a method or constructor of the library.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) body: Body,
    /// The receiver first, if there is one.
    pub(crate) arguments: Vec<Node>,
    /// For the NullPointerException if the receiver is null: the method, e.g. `String.length()`, and the receiver's
    /// description. `None` means that there is no receiver.
    pub(crate) receiver: Option<(Arc<str>, Reason)>,
}

/// Java's description of a null value: `"<local4>" is null`. `None` means that Java gives none.
pub(crate) type Reason = Option<Arc<str>>;

#[derive(Debug)]
pub(crate) enum Statement {
    Block(Vec<Statement>),
    Evaluate(Node),
    If(Node, Box<Statement>, Option<Box<Statement>>),
    /// `number` identifies the loop in `Break` and `Continue`.
    Loop {
        number: u32,
        start: Vec<Statement>,
        condition: Option<Node>,
        step: Vec<Statement>,
        body: Box<Statement>,
        tests_first: bool,
    },
    ForEach {
        number: u32,
        slot: Slot,
        of: Node,
        because: Reason,
        convert: Option<Node>,
        body: Box<Statement>,
    },
    Switch {
        number: u32,
        on: Node,
        cases: Vec<(Option<Value>, usize)>,
        body: Vec<Statement>,
    },
    Labelled(u32, Box<Statement>),
    Break(u32),
    Continue(u32),
    Return(Option<Node>),
    Throw(Node, Reason),
    Try {
        body: Box<Statement>,
        catches: Vec<(Vec<Class>, Slot, Statement)>,
        finally: Option<Box<Statement>>,
    },
}
