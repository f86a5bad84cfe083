//! Checks expressions.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::operator::{is_null, least_upper};
use super::{Checker, TypedExpr};
use crate::class::{Class, Kind, Ty};
use crate::error::Mistake;
use crate::library;
use crate::syntax::{Expr, ExprKind, TypeText};
use crate::tree::{Node, Place, Reason};
use crate::value::{Plain, Prim, Value};

impl Checker {
    pub(super) fn expression(&mut self, expression: &Expr) -> TypedExpr {
        let line = expression.line;
        let constant = |ty: Ty, value: Prim| TypedExpr::new(ty, Node::Const(Value::Prim(value)));
        match &expression.kind {
            ExprKind::Null => TypedExpr {
                reason: is_null("null"),
                ..TypedExpr::new(Ty::Null, Node::Const(Value::Null))
            },
            ExprKind::Boolean(value) => constant(Ty::BOOLEAN, Prim::Boolean(*value)),
            ExprKind::Integer { digits, decimal, long } => self.integer(line, digits, *decimal, *long, false),
            ExprKind::Double(value) => constant(Ty::Prim(Kind::Double), Prim::Double(*value)),
            ExprKind::Float(value) => constant(Ty::Prim(Kind::Float), Prim::Float(*value)),
            ExprKind::Char(unit) => constant(Ty::Prim(Kind::Char), Prim::Char(*unit)),
            ExprKind::Text(units) => {
                let text = self.intern(units);
                TypedExpr::new(Ty::string(), Node::Const(text))
            }
            ExprKind::Name(name) => self.name(line, name),
            ExprKind::Field { of, name } => self.field(line, expression, of, name),
            ExprKind::Index { of, at } => self.index(line, of, at),
            ExprKind::Call { of, name, arguments } => self.call(line, of.as_deref(), name, arguments),
            ExprKind::New { ty, arguments } => self.construction(line, ty, arguments),
            ExprKind::NewArray { ty, sizes } => self.array(ty, sizes),
            ExprKind::Elements { ty: Some(ty), elements } => {
                let ty = self.ty(ty);
                self.elements(line, &ty, elements)
            }
            ExprKind::Elements { ty: None, .. } => self.mistake(line, Mistake::Syntax("{".to_owned())),
            ExprKind::Class(ty) => self.class_literal(ty),
            ExprKind::Unary { operator: "-", of } if matches!(of.kind, ExprKind::Integer { .. }) => match &of.kind {
                ExprKind::Integer { digits, decimal, long } => self.integer(line, digits, *decimal, *long, true),
                _ => TypedExpr::unknown(),
            },
            ExprKind::Unary { operator, of } => {
                let value = self.expression(of);
                self.unary(line, operator, value)
            }
            ExprKind::Binary {
                operator: "&&",
                left,
                right,
            } => self.logical(left, right, true),
            ExprKind::Binary {
                operator: "||",
                left,
                right,
            } => self.logical(left, right, false),
            ExprKind::Binary { operator, left, right } => {
                let (left, right) = (self.expression(left), self.expression(right));
                self.binary(line, operator, left, right)
            }
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => self.conditional(condition, then, otherwise, None),
            ExprKind::Cast { ty, of } => {
                let to = self.ty(ty);
                let value = self.expression(of);
                self.cast(line, value, to)
            }
            ExprKind::InstanceOf { of, ty } => self.instance_of(line, of, ty),
            ExprKind::Assign { place, value } => self.assignment(line, place, value),
            ExprKind::Compound { place, operator, value } => self.compound(line, place, operator, value),
            ExprKind::Step { place, up, prefix } => self.step(line, place, *up, *prefix),
        }
    }

    /// Checks an expression where the type `to` is required.
    pub(super) fn expected(&mut self, expression: &Expr, to: &Ty) -> Node {
        let value = match &expression.kind {
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => self.conditional(condition, then, otherwise, Some(to)),
            ExprKind::Elements { ty: None, elements } => self.elements(expression.line, to, elements),
            _ => self.expression(expression),
        };
        self.assigned_to(expression.line, value, to)
    }

    fn integer(&mut self, line: u32, digits: &BigUint, decimal: bool, long: bool, negative: bool) -> TypedExpr {
        let (ty, name) = if long {
            (Ty::Prim(Kind::Long), "long")
        } else {
            (Ty::INT, "int")
        };
        let value = match digits.to_u64() {
            Some(value) if decimal => {
                let value = i128::from(value);
                i64::try_from(if negative { -value } else { value }).ok()
            }
            Some(value) if long => Some(value.cast_signed()),
            // Literals of other radices give the bits.
            Some(value) => u32::try_from(value).ok().map(|bits| i64::from(bits.cast_signed())),
            None => None,
        };
        let value = value.map(|value| {
            if negative && !decimal {
                value.wrapping_neg()
            } else {
                value
            }
        });
        let prim = match value {
            Some(value) if long => Some(Prim::Long(value)),
            Some(value) => i32::try_from(value).ok().map(Prim::Int),
            None => None,
        };
        match prim {
            Some(prim) => TypedExpr::new(ty, Node::Const(Value::Prim(prim))),
            None => self.mistake(
                line,
                Mistake::OutOfRange {
                    literal: digits.to_string(),
                    ty: name,
                },
            ),
        }
    }

    fn name(&mut self, line: u32, name: &str) -> TypedExpr {
        let Some(number) = self.local(name) else {
            if name == "udfContext" {
                return TypedExpr::new(Ty::class(Class::UdfContext), Node::Const(Value::Context));
            }
            return self.mistake(line, Mistake::Variable(name.to_owned()));
        };
        if !self.assigned.has(number) {
            self.flow_mistake(line, Mistake::Uninitialized(name.to_owned()));
        }
        let Some(local) = self.locals.get(number) else {
            return TypedExpr::unknown();
        };
        let node = match &local.constant {
            Some(value) => Node::Const(value.clone()),
            None => Node::Local(local.slot),
        };
        TypedExpr {
            reason: is_null(&local.shown),
            ..TypedExpr::new(local.ty.clone(), node)
        }
    }

    /// The class that a name denotes, with or without its package; `None` means that it is no class, or a local hides it.
    pub(super) fn class_named(&self, expression: &Expr) -> Option<Class> {
        let mut names = Vec::new();
        let mut at = expression;
        loop {
            match &at.kind {
                ExprKind::Name(name) => {
                    if self.local(name).is_some() {
                        return None;
                    }
                    names.push(name.to_string());
                    break;
                }
                ExprKind::Field { of, name } => {
                    names.push(name.to_string());
                    at = of;
                }
                _ => return None,
            }
        }
        names.reverse();
        Class::named(&names.join("."))
    }

    fn field(&mut self, line: u32, whole: &Expr, of: &Expr, name: &str) -> TypedExpr {
        if let Some(class) = self.class_named(of) {
            return match library::field(class, name) {
                Some((ty, value)) => TypedExpr::new(ty, Node::Const(value)),
                None => {
                    let class = class.name().to_owned();
                    self.mistake(
                        line,
                        Mistake::Field {
                            name: name.to_owned(),
                            class,
                        },
                    )
                }
            };
        }
        if self.is_unknown_name(of) || self.class_named(whole).is_some() {
            let shown = shown(of);
            return self.mistake(line, Mistake::Name(shown));
        }
        let value = self.expression(of);
        match &value.ty {
            Ty::Array(_) if name == "length" => TypedExpr::new(
                Ty::INT,
                Node::Length {
                    of: Box::new(value.node),
                    because: value.reason,
                },
            ),
            Ty::Unknown => value,
            ty => {
                let class = ty.to_string();
                self.mistake(
                    line,
                    Mistake::Field {
                        name: name.to_owned(),
                        class,
                    },
                )
            }
        }
    }

    /// Whether the expression is an unresolvable name, possibly qualified.
    pub(super) fn is_unknown_name(&self, expression: &Expr) -> bool {
        match &expression.kind {
            ExprKind::Name(name) => self.local(name).is_none() && &**name != "udfContext",
            ExprKind::Field { of, .. } => self.class_named(of).is_none() && self.is_unknown_name(of),
            _ => false,
        }
    }

    fn element(&mut self, line: u32, of: &Expr, at: &Expr) -> Option<(Ty, Box<Node>, Box<Node>, Reason)> {
        let array = self.expression(of);
        let index = self.expression(at);
        let (Ty::Array(element), reason) = (&array.ty, array.reason) else {
            if array.ty != Ty::Unknown {
                let ty = array.ty.to_string();
                self.mistake(line, Mistake::NotArray(ty));
            }
            return None;
        };
        let element = (**element).clone();
        let index = self.assigned_to(line, index, &Ty::INT);
        Some((element, Box::new(array.node), Box::new(index), reason))
    }

    fn index(&mut self, line: u32, of: &Expr, at: &Expr) -> TypedExpr {
        match self.element(line, of, at) {
            Some((ty, of, at, because)) => TypedExpr::new(ty, Node::Index { of, at, because }),
            None => TypedExpr::unknown(),
        }
    }

    fn array(&mut self, written: &TypeText, sizes: &[Expr]) -> TypedExpr {
        let ty = self.ty(written);
        let sizes: Vec<Node> = sizes.iter().map(|size| self.expected(size, &Ty::INT)).collect();
        let mut innermost = &ty;
        while let Ty::Array(of) = innermost {
            innermost = of;
        }
        let kind = if let Ty::Prim(kind) = innermost {
            Some(*kind)
        } else {
            None
        };
        let dimensions = written.dimensions;
        TypedExpr::new(
            ty,
            Node::NewArray {
                kind,
                sizes,
                dimensions,
            },
        )
    }

    fn elements(&mut self, line: u32, ty: &Ty, elements: &[Expr]) -> TypedExpr {
        let Ty::Array(of) = ty else {
            if *ty == Ty::Unknown {
                return TypedExpr::unknown();
            }
            return self.mistake(line, Mistake::NotArray(ty.to_string()));
        };
        let elements = elements.iter().map(|element| self.expected(element, of)).collect();
        TypedExpr::new(ty.clone(), Node::Elements { elements })
    }

    fn class_literal(&mut self, written: &TypeText) -> TypedExpr {
        let ty = self.ty(written);
        match ty.boxed() {
            Ty::Ref(class, _) => {
                let value = Value::plain(Plain::Class(class));
                TypedExpr::new(Ty::Ref(Class::ClassOf, vec![ty.boxed()]), Node::Const(value))
            }
            _ => TypedExpr::unknown(),
        }
    }

    fn logical(&mut self, left: &Expr, right: &Expr, is_and: bool) -> TypedExpr {
        let (line, value) = (left.line, self.expression(left));
        let left = self.condition(line, value);
        // The right side may not run, so its assignments do not count.
        let before = self.assigned.clone();
        let value = self.expression(right);
        let right = self.condition(right.line, value);
        self.assigned = before;
        let node = match (&left.node, is_and) {
            (Node::Const(Value::Prim(Prim::Boolean(known))), _) if right.constant().is_some() => {
                let decides = *known != is_and;
                if decides { left.node } else { right.node }
            }
            (_, true) => Node::And(Box::new(left.node), Box::new(right.node)),
            (_, false) => Node::Or(Box::new(left.node), Box::new(right.node)),
        };
        TypedExpr::new(Ty::BOOLEAN, node)
    }

    fn conditional(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr, to: Option<&Ty>) -> TypedExpr {
        let (line, value) = (condition.line, self.expression(condition));
        let condition = Box::new(self.condition(line, value).node);
        let before = self.assigned.clone();
        let (lines, mut errors) = ((then.line, otherwise.line), self.errors.len());
        let a = self.expression(then);
        let after_then = std::mem::replace(&mut self.assigned, before);
        let b = self.expression(otherwise);
        let after_else = std::mem::replace(&mut self.assigned, after_then);
        self.assigned = std::mem::replace(&mut self.assigned, super::Assigned::unreached()).merged(&after_else);
        errors = self.errors.len() - errors;
        let (ty, a, b) = match (a.ty.primitive(), b.ty.primitive()) {
            _ if errors > 0 || a.ty == Ty::Unknown || b.ty == Ty::Unknown => return TypedExpr::unknown(),
            (Some(x), Some(y)) if a.ty == b.ty || (x == y && (x == Kind::Boolean || x.is_numeric())) => {
                let ty = if a.ty == b.ty { a.ty.clone() } else { Ty::Prim(x) };
                (
                    ty.clone(),
                    self.assigned_to(lines.0, a, &ty),
                    self.assigned_to(lines.1, b, &ty),
                )
            }
            (Some(x), Some(y)) if x.is_numeric() && y.is_numeric() => {
                let ty = Ty::Prim(self.conditional_kind((&a, x), (&b, y)));
                (
                    ty.clone(),
                    self.assigned_to(lines.0, a, &ty),
                    self.assigned_to(lines.1, b, &ty),
                )
            }
            (None, None) if a.ty == Ty::Null && b.ty == Ty::Null => (Ty::Null, a.node, b.node),
            // A number or boolean beside null is boxed, whatever type is required.
            (Some(_), None) | (None, Some(_)) if a.ty == Ty::Null || b.ty == Ty::Null => {
                let ty = if a.ty == Ty::Null { b.ty.boxed() } else { a.ty.boxed() };
                (
                    ty.clone(),
                    self.assigned_to(lines.0, a, &ty),
                    self.assigned_to(lines.1, b, &ty),
                )
            }
            _ => {
                // Each side is converted to the required type; if there is none, to their least upper bound.
                let ty = to.map_or_else(|| least_upper(&a.ty.boxed(), &b.ty.boxed()), Clone::clone);
                (
                    ty.clone(),
                    self.assigned_to(lines.0, a, &ty),
                    self.assigned_to(lines.1, b, &ty),
                )
            }
        };
        TypedExpr::new(ty, Node::Conditional(condition, Box::new(a), Box::new(b)))
    }

    /// The kind of a conditional expression of two numbers (JLS §15.25.2).
    fn conditional_kind(&self, (a, x): (&TypedExpr, Kind), (b, y): (&TypedExpr, Kind)) -> Kind {
        let fits = |value: &TypedExpr, kind: Kind| match value.constant() {
            Some(Value::Prim(Prim::Int(value))) => match kind {
                Kind::Byte => i8::try_from(*value).is_ok(),
                Kind::Short => i16::try_from(*value).is_ok(),
                Kind::Char => u16::try_from(*value).is_ok(),
                _ => false,
            },
            _ => false,
        };
        match (x, y) {
            (Kind::Byte, Kind::Short) | (Kind::Short, Kind::Byte) => Kind::Short,
            (kind, Kind::Int) if fits(b, kind) => kind,
            (Kind::Int, kind) if fits(a, kind) => kind,
            _ => x.promoted(y),
        }
    }

    fn instance_of(&mut self, line: u32, of: &Expr, written: &TypeText) -> TypedExpr {
        let value = self.expression(of);
        let ty = self.ty(written);
        match (&value.ty, &ty) {
            (Ty::Unknown, _) | (_, Ty::Unknown) => TypedExpr::unknown(),
            (from, Ty::Ref(class, _)) if from.is_reference() => {
                let may_be = match from {
                    Ty::Ref(from, _) => {
                        class.is(*from) || from.is(*class) || super::convert::may_be_both(*from, *class)
                    }
                    _ => *from == Ty::Null || *class == Class::Object,
                };
                if may_be {
                    return TypedExpr::new(Ty::BOOLEAN, Node::InstanceOf(*class, Box::new(value.node)));
                }
                let what = Mistake::Cast {
                    from: from.to_string(),
                    to: ty.to_string(),
                };
                self.mistake(line, what)
            }
            (from, to) => {
                let what = Mistake::Cast {
                    from: from.to_string(),
                    to: to.to_string(),
                };
                self.mistake(line, what)
            }
        }
    }

    fn assignment(&mut self, line: u32, place: &Expr, value: &Expr) -> TypedExpr {
        match &place.kind {
            ExprKind::Name(name) => {
                let Some(number) = self.local(name) else {
                    self.expression(value);
                    return self.mistake(line, Mistake::Variable(name.to_string()));
                };
                let Some((ty, slot)) = self.locals.get(number).map(|local| (local.ty.clone(), local.slot)) else {
                    return TypedExpr::unknown();
                };
                self.refuse_final(line, number);
                let node = self.expected(value, &ty);
                self.assigned.assign(number);
                TypedExpr::new(ty, Node::Assign(slot, Box::new(node)))
            }
            ExprKind::Index { of, at } => {
                let Some((ty, of, at, because)) = self.element(line, of, at) else {
                    self.expression(value);
                    return TypedExpr::unknown();
                };
                let value = Box::new(self.expected(value, &ty));
                TypedExpr::new(ty, Node::Store { of, at, value, because })
            }
            _ => self.mistake(line, Mistake::NotAPlace),
        }
    }

    fn refuse_final(&mut self, line: u32, number: usize) {
        let blank = !self.assigned.has(number);
        if let Some(local) = self.locals.get(number)
            && local.is_final
            && !blank
        {
            let name = local.name.to_string();
            self.mistake(line, Mistake::Final(name));
        }
    }

    /// A variable that is read and written: its type, its location, and its description if it is null.
    fn place(&mut self, line: u32, place: &Expr) -> Option<(Ty, Place, Reason)> {
        match &place.kind {
            ExprKind::Name(name) => {
                let value = self.name(line, name);
                let number = self.local(name)?;
                self.refuse_final(line, number);
                let slot = self.locals.get(number)?.slot;
                Some((value.ty, Place::Local(slot), value.reason))
            }
            ExprKind::Index { of, at } => {
                let (ty, of, at, because) = self.element(line, of, at)?;
                Some((ty, Place::Element { of, at, because }, None))
            }
            _ => {
                self.mistake(line, Mistake::NotAPlace);
                None
            }
        }
    }

    fn compound(&mut self, line: u32, place: &Expr, operator: &'static str, value: &Expr) -> TypedExpr {
        let Some((ty, place, reason)) = self.place(line, place) else {
            self.expression(value);
            return TypedExpr::unknown();
        };
        let held = TypedExpr {
            reason,
            ..TypedExpr::new(ty.clone(), Node::Held)
        };
        let value = self.expression(value);
        let result = self.binary(line, operator, held, value);
        self.update(line, place, ty, result, false)
    }

    fn step(&mut self, line: u32, place: &Expr, up: bool, prefix: bool) -> TypedExpr {
        let Some((ty, place, reason)) = self.place(line, place) else {
            return TypedExpr::unknown();
        };
        let held = TypedExpr {
            reason,
            ..TypedExpr::new(ty.clone(), Node::Held)
        };
        let one = TypedExpr::new(Ty::INT, Node::Const(Value::int(1)));
        if ty.is_string() {
            return self.mistake(
                line,
                Mistake::Operator {
                    operator: if up { "++" } else { "--" },
                    types: ty.to_string(),
                },
            );
        }
        let result = self.binary(line, if up { "+" } else { "-" }, held, one);
        self.update(line, place, ty, result, !prefix)
    }

    /// Writes a result back, cast to the variable's type, as compound assignments do.
    fn update(&mut self, line: u32, place: Place, ty: Ty, result: TypedExpr, gives_old: bool) -> TypedExpr {
        if result.ty == Ty::Unknown {
            return result;
        }
        let with = match (&ty, ty.primitive()) {
            (Ty::Ref(..), Some(kind)) => {
                let value = self.cast(line, result, Ty::Prim(kind));
                self.cast(line, value, ty.clone())
            }
            _ => self.cast(line, result, ty.clone()),
        };
        let with = Box::new(with.node);
        TypedExpr::new(ty, Node::Update { place, with, gives_old })
    }
}

/// A qualified name as written.
pub(super) fn shown(expression: &Expr) -> String {
    match &expression.kind {
        ExprKind::Name(name) => name.to_string(),
        ExprKind::Field { of, name } => format!("{}.{name}", shown(of)),
        _ => "expression".to_owned(),
    }
}
