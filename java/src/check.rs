//! Turns the syntax tree into the executable tree ([`crate::tree`]): resolves names, checks types, inserts conversions.
//!
//! All mistakes of a body are collected and reported together. As in Cassandra's compiler, mistakes of flow (a variable
//! without a value, unreachable code) are reported only if there are no others.

mod call;
mod convert;
mod expression;
mod flow;
mod operator;
mod statement;

use std::collections::HashMap;
use std::sync::Arc;

use crate::class::{Class, Kind, Ty};
use crate::datum::Type;
use crate::error::{CompileError, Entry, Mistake};
use crate::syntax::{Stmt, TypeText};
use crate::tree::{Node, Reason, Slot, Statement};
use crate::value::{Text, Value};
use flow::{Assigned, Target};

/// A checked expression with its type.
#[derive(Debug)]
pub(crate) struct TypedExpr {
    pub(crate) ty: Ty,
    pub(crate) node: Node,
    /// Java's description of the expression in a NullPointerException; `None` means that Java has none.
    pub(crate) reason: Reason,
}

impl TypedExpr {
    fn new(ty: Ty, node: Node) -> Self {
        Self { ty, node, reason: None }
    }

    /// The placeholder for an expression with a mistake.
    fn unknown() -> Self {
        Self::new(Ty::Unknown, Node::Const(Value::Null))
    }

    /// The value, if it is a constant.
    fn constant(&self) -> Option<&Value> {
        match &self.node {
            Node::Const(value @ (Value::Prim(_) | Value::Text(_))) => Some(value),
            _ => None,
        }
    }

    fn is_true(&self) -> bool {
        matches!(self.node, Node::Const(Value::Prim(crate::value::Prim::Boolean(true))))
    }
}

/// A local variable or parameter.
#[derive(Debug)]
struct Local {
    name: Arc<str>,
    ty: Ty,
    slot: Slot,
    is_final: bool,
    /// The constant value of a final variable; `None` means that it has none.
    constant: Option<Value>,
    /// Its name in Java's messages about null.
    shown: Arc<str>,
}

/// The result of [`check`].
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) body: Vec<Statement>,
    pub(crate) slots: usize,
    /// The slot of each parameter, and its kind if it is a primitive.
    pub(crate) parameters: Vec<(Slot, Option<Kind>)>,
}

pub(crate) struct Checker {
    locals: Vec<Local>,
    /// Numbers of the locals in scope, innermost last.
    seen: Vec<usize>,
    next_slot: Slot,
    slots_max: Slot,
    errors: Vec<Entry>,
    flow_errors: Vec<Entry>,
    assigned: Assigned,
    targets: Vec<Target>,
    next_target: u32,
    /// The method's result type.
    returns: Ty,
    /// The exception classes that the enclosing `catch` clauses handle.
    caught: Vec<Vec<Class>>,
    texts: HashMap<Vec<u16>, Text>,
}

/// The Java type of a type in a signature. `primitive`: the value is never null, so a primitive type is used if there
/// is one.
pub(crate) fn ty_of(ty: &Type, primitive: bool) -> Ty {
    let kind = match ty {
        Type::Boolean => Some(Kind::Boolean),
        Type::Byte => Some(Kind::Byte),
        Type::Short => Some(Kind::Short),
        Type::Int => Some(Kind::Int),
        Type::Long | Type::Time => Some(Kind::Long),
        Type::Float => Some(Kind::Float),
        Type::Double => Some(Kind::Double),
        _ => None,
    };
    if let Some(kind) = kind {
        return if primitive {
            Ty::Prim(kind)
        } else {
            Ty::class(kind.class())
        };
    }
    let inner = |ty: &Arc<Type>| ty_of(ty, false);
    match ty {
        Type::List(of) | Type::Vector(of, _) => Ty::Ref(Class::List, vec![inner(of)]),
        Type::Set(of) => Ty::Ref(Class::Set, vec![inner(of)]),
        Type::Map(key, value) => Ty::Ref(Class::Map, vec![inner(key), inner(value)]),
        Type::Blob => Ty::class(Class::ByteBuffer),
        Type::BigInteger => Ty::class(Class::BigInteger),
        Type::BigDecimal => Ty::class(Class::BigDecimal),
        Type::Uuid | Type::Timeuuid => Ty::class(Class::Uuid),
        Type::Date => Ty::class(Class::Date),
        Type::LocalDate => Ty::class(Class::LocalDate),
        Type::Inet => Ty::class(Class::InetAddress),
        Type::Duration => Ty::class(Class::Duration),
        Type::Tuple(_) => Ty::class(Class::TupleValue),
        Type::User(_) => Ty::class(Class::UdtValue),
        _ => Ty::string(),
    }
}

/// Checks a body with these parameters and this result type. `end_line` is the line where the body ends.
pub(crate) fn check(
    statements: &[Stmt],
    parameters: &[(String, Ty)],
    returns: Ty,
    end_line: u32,
) -> Result<Checked, CompileError> {
    let mut checker = Checker {
        locals: Vec::new(),
        seen: Vec::new(),
        next_slot: 1,
        slots_max: 1,
        errors: Vec::new(),
        flow_errors: Vec::new(),
        assigned: Assigned::start(),
        targets: Vec::new(),
        next_target: 0,
        returns,
        caught: Vec::new(),
        texts: HashMap::new(),
    };
    let mut slots = Vec::with_capacity(parameters.len());
    for (number, (name, ty)) in parameters.iter().enumerate() {
        let local = checker.declare(name.as_str().into(), ty.clone(), false);
        checker.assigned.assign(local);
        if let Some(local) = checker.locals.get_mut(local) {
            local.shown = format!("<parameter{}>", number + 1).into();
            let kind = if let Ty::Prim(kind) = ty { Some(*kind) } else { None };
            slots.push((local.slot, kind));
        }
    }
    let body = checker.statements(statements);
    if checker.assigned.is_reachable() {
        let returns = checker.returns.boxed().to_string();
        checker.flow_mistake(end_line, Mistake::MissingReturn(returns));
    }
    let mut errors = if checker.errors.is_empty() {
        checker.flow_errors
    } else {
        checker.errors
    };
    if errors.is_empty() {
        return Ok(Checked {
            body,
            slots: checker.slots_max,
            parameters: slots,
        });
    }
    errors.sort_by_key(|entry| entry.line);
    errors.truncate(CompileError::ENTRIES_MAX);
    Err(CompileError { entries: errors })
}

impl Checker {
    fn mistake(&mut self, line: u32, what: Mistake) -> TypedExpr {
        self.errors.push(Entry { line, what });
        TypedExpr::unknown()
    }

    fn flow_mistake(&mut self, line: u32, what: Mistake) {
        self.flow_errors.push(Entry { line, what });
    }

    /// Declares a local; returns its number.
    fn declare(&mut self, name: Arc<str>, ty: Ty, is_final: bool) -> usize {
        let slot = self.next_slot;
        self.next_slot += ty.slots();
        self.slots_max = self.slots_max.max(self.next_slot);
        let number = self.locals.len();
        let shown = format!("<local{slot}>").into();
        self.locals.push(Local {
            name,
            ty,
            slot,
            is_final,
            constant: None,
            shown,
        });
        self.seen.push(number);
        self.assigned.declare(number);
        number
    }

    /// Like [`Checker::declare`], but reports a name that is in use.
    fn declare_new(&mut self, line: u32, name: &Arc<str>, ty: Ty, is_final: bool) -> usize {
        if self.local(name).is_some() {
            self.mistake(line, Mistake::Duplicate(name.to_string()));
        }
        self.declare(Arc::clone(name), ty, is_final)
    }

    /// The number of the local of this name.
    fn local(&self, name: &str) -> Option<usize> {
        let is = |number: &&usize| self.locals.get(**number).is_some_and(|local| *local.name == *name);
        self.seen.iter().rev().find(is).copied()
    }

    /// Runs `check` in a scope of its own.
    fn scoped<T>(&mut self, check: impl FnOnce(&mut Self) -> T) -> T {
        let (seen, slot) = (self.seen.len(), self.next_slot);
        let result = check(self);
        self.seen.truncate(seen);
        self.next_slot = slot;
        result
    }

    /// One shared text for all literals of the same characters, as in Java.
    fn intern(&mut self, units: &[u16]) -> Value {
        if let Some(text) = self.texts.get(units) {
            return Value::Text(Arc::clone(text));
        }
        let text: Text = units.into();
        self.texts.insert(units.to_vec(), Arc::clone(&text));
        Value::Text(text)
    }

    /// Resolves a type as written.
    fn ty(&mut self, written: &TypeText) -> Ty {
        let line = written.line;
        let primitive = Kind::ALL.into_iter().find(|kind| kind.name() == written.name);
        let element = if let Some(kind) = primitive {
            Ty::Prim(kind)
        } else {
            let Some(class) = Class::named(&written.name) else {
                return self.mistake(line, Mistake::Type(written.name.clone())).ty;
            };
            if written.is_diamond {
                return self.mistake(line, Mistake::Diamond).ty;
            }
            let arguments: Vec<Ty> = written.arguments.iter().map(|argument| self.ty(argument)).collect();
            if let Some(Ty::Prim(kind)) = arguments.iter().find(|argument| matches!(argument, Ty::Prim(_))) {
                return self
                    .mistake(line, Mistake::PrimitiveArgument(kind.name().to_owned()))
                    .ty;
            }
            if !arguments.is_empty() && arguments.len() != class.parameters() && class != Class::Comparable {
                let (class, taken) = (class.name().to_owned(), class.parameters());
                return self.mistake(line, Mistake::Arguments { class, taken }).ty;
            }
            Ty::Ref(class, arguments)
        };
        (0..written.dimensions).fold(element, |of, _| Ty::Array(Box::new(of)))
    }
}
