//! Conversions: by assignment, by cast, to a primitive, to a text.

use super::{Checker, TypedExpr};
use crate::class::{Class, Kind, Ty};
use crate::error::Mistake;
use crate::operate::convert;
use crate::tree::Node;
use crate::value::{Prim, Value};

impl Checker {
    /// Converts a value to the type `to`, as in an assignment; reports a mistake if that is impossible.
    pub(super) fn assigned_to(&mut self, line: u32, value: TypedExpr, to: &Ty) -> Node {
        let from = value.ty.clone();
        match self.converted(value, to) {
            Ok(node) => node,
            Err(_) if from == Ty::Void => {
                self.mistake(
                    line,
                    Mistake::Mismatch {
                        from: "void".to_owned(),
                        to: to.to_string(),
                    },
                )
                .node
            }
            Err(node) => {
                self.mistake(
                    line,
                    Mistake::Mismatch {
                        from: from.to_string(),
                        to: to.to_string(),
                    },
                );
                node
            }
        }
    }

    /// Converts a value to the type `to`; `Err` holds the unchanged node if that is impossible.
    fn converted(&self, value: TypedExpr, to: &Ty) -> Result<Node, Node> {
        let TypedExpr { ty: from, node, reason } = value;
        if from == Ty::Unknown || *to == Ty::Unknown {
            return Ok(node);
        }
        match (&from, to) {
            (Ty::Prim(from), Ty::Prim(to)) => {
                if from == to {
                    return Ok(node);
                }
                if from.widens_to(*to) || narrows(&node, *to) {
                    return Ok(converted_to(*to, node));
                }
                Err(node)
            }
            (Ty::Prim(kind), Ty::Ref(class, _)) => {
                if kind.class().is(*class) {
                    return Ok(Node::Box(Box::new(node)));
                }
                match class.unboxed() {
                    Some(inner) if narrows(&node, inner) => Ok(Node::Box(Box::new(converted_to(inner, node)))),
                    _ => Err(node),
                }
            }
            (Ty::Ref(class, _), Ty::Prim(to)) => match class.unboxed() {
                Some(kind) if kind == *to => Ok(Node::Unbox {
                    of: Box::new(node),
                    class: *class,
                    because: reason,
                }),
                Some(kind) if kind.widens_to(*to) => {
                    let unboxed = Node::Unbox {
                        of: Box::new(node),
                        class: *class,
                        because: reason,
                    };
                    Ok(converted_to(*to, unboxed))
                }
                _ => Err(node),
            },
            (from, to) if from.is_subtype(to) => Ok(node),
            _ => Err(node),
        }
    }

    /// The value as a primitive; `Err` holds the value if it neither is nor boxes one.
    pub(super) fn primitive(&mut self, value: TypedExpr) -> Result<(Kind, Node), TypedExpr> {
        match value.ty.primitive() {
            Some(kind) => {
                let to = Ty::Prim(kind);
                match self.converted(value, &to) {
                    Ok(node) | Err(node) => Ok((kind, node)),
                }
            }
            None => Err(value),
        }
    }

    /// Converts a value to boolean, as a condition.
    pub(super) fn condition(&mut self, line: u32, value: TypedExpr) -> TypedExpr {
        let node = self.assigned_to(line, value, &Ty::BOOLEAN);
        TypedExpr::new(Ty::BOOLEAN, node)
    }

    pub(super) fn cast(&mut self, line: u32, value: TypedExpr, to: Ty) -> TypedExpr {
        let reason = value.reason.clone();
        let from = value.ty.clone();
        if from == Ty::Unknown || to == Ty::Unknown {
            return TypedExpr {
                ty: to,
                ..TypedExpr::unknown()
            };
        }
        let node = match (&from, &to) {
            (Ty::Prim(from), Ty::Prim(kind)) if from == kind => Some(value.node),
            (Ty::Prim(Kind::Boolean), Ty::Prim(_)) | (Ty::Prim(_), Ty::Prim(Kind::Boolean)) => None,
            (Ty::Prim(_), Ty::Prim(kind)) => Some(converted_to(*kind, value.node)),
            (Ty::Prim(kind), Ty::Ref(class, _)) if kind.class().is(*class) => Some(Node::Box(Box::new(value.node))),
            (Ty::Ref(class, _), Ty::Prim(kind)) => match class.unboxed() {
                Some(inner) if inner == *kind || inner.widens_to(*kind) => self.converted(value, &to).ok(),
                None if kind.class().is(*class) => {
                    let of = Box::new(Node::Cast(kind.class(), Box::new(value.node)));
                    Some(Node::Unbox {
                        of,
                        class: kind.class(),
                        because: reason.clone(),
                    })
                }
                _ => None,
            },
            (from, to) if from.is_subtype(to) => Some(value.node),
            (Ty::Ref(from, _), Ty::Ref(class, _)) if class.is(*from) || may_be_both(*from, *class) => {
                Some(Node::Cast(*class, Box::new(value.node)))
            }
            (Ty::Ref(Class::Object, _), Ty::Array(_)) => Some(value.node),
            _ => None,
        };
        match node {
            Some(node) => TypedExpr { ty: to, node, reason },
            None => self.mistake(
                line,
                Mistake::Cast {
                    from: from.to_string(),
                    to: to.to_string(),
                },
            ),
        }
    }
}

/// Whether a value may have both types although neither is a supertype of the other: one is an interface, and the other
/// is not final.
pub(super) fn may_be_both(from: Class, to: Class) -> bool {
    let is_final = |class: Class| !class.is_interface() && class.is(Class::Comparable);
    (from.is_interface() && !is_final(to)) || (to.is_interface() && !is_final(from))
}

/// Whether the node is a constant of int or a narrower kind that fits `to` (JLS §5.2).
fn narrows(node: &Node, to: Kind) -> bool {
    let Node::Const(Value::Prim(value)) = node else {
        return false;
    };
    let value = match value {
        Prim::Byte(value) => i32::from(*value),
        Prim::Short(value) => i32::from(*value),
        Prim::Char(value) => i32::from(*value),
        Prim::Int(value) => *value,
        _ => return false,
    };
    match to {
        Kind::Byte => i8::try_from(value).is_ok(),
        Kind::Short => i16::try_from(value).is_ok(),
        Kind::Char => u16::try_from(value).is_ok(),
        _ => false,
    }
}

/// Converts a primitive to another kind; a constant is converted at compile time.
pub(super) fn converted_to(to: Kind, node: Node) -> Node {
    match node {
        Node::Const(Value::Prim(value)) => Node::Const(Value::Prim(convert(value, to))),
        node => Node::Convert(to, Box::new(node)),
    }
}
