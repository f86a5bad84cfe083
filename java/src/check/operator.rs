//! Checks operators: the types of their operands and results.

use std::sync::Arc;

use super::convert::converted_to;
use super::{Checker, TypedExpr};
use crate::class::{Class, Kind, Ty};
use crate::error::Mistake;
use crate::operate;
use crate::operate::{Operator, Unary};
use crate::tree::Node;
use crate::value::{Prim, Value};

pub(super) fn operator(written: &str) -> Option<Operator> {
    Some(match written {
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Remainder,
        "&" => Operator::And,
        "|" => Operator::Or,
        "^" => Operator::Xor,
        "<<" => Operator::Left,
        ">>" => Operator::Right,
        ">>>" => Operator::UnsignedRight,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return None,
    })
}

fn is_shift(operator: Operator) -> bool {
    matches!(operator, Operator::Left | Operator::Right | Operator::UnsignedRight)
}

fn is_logic(operator: Operator) -> bool {
    matches!(operator, Operator::And | Operator::Or | Operator::Xor)
}

fn is_equality(operator: Operator) -> bool {
    matches!(operator, Operator::Equal | Operator::NotEqual)
}

fn is_comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual
    )
}

impl Checker {
    pub(super) fn unary(&mut self, line: u32, written: &'static str, value: TypedExpr) -> TypedExpr {
        if value.ty == Ty::Unknown {
            return value;
        }
        let types = value.ty.to_string();
        let undefined = Mistake::Operator {
            operator: written,
            types,
        };
        let Ok((kind, node)) = self.primitive(value) else {
            return self.mistake(line, undefined);
        };
        let unary = match written {
            "!" if kind == Kind::Boolean => {
                return match node {
                    Node::Const(Value::Prim(Prim::Boolean(value))) => {
                        TypedExpr::new(Ty::BOOLEAN, Node::Const(Value::boolean(!value)))
                    }
                    node => TypedExpr::new(Ty::BOOLEAN, Node::Unary(Unary::Not, Box::new(node))),
                };
            }
            "-" | "+" if kind.is_numeric() => Unary::Negate,
            "~" if kind.is_integral() => Unary::Complement,
            _ => return self.mistake(line, undefined),
        };
        let promoted = kind.max(Kind::Int);
        let node = widened(kind, promoted, node);
        let node = match node {
            node if written == "+" => node,
            Node::Const(Value::Prim(value)) => Node::Const(Value::Prim(operate::unary(unary, value))),
            node => Node::Unary(unary, Box::new(node)),
        };
        TypedExpr::new(Ty::Prim(promoted), node)
    }

    pub(super) fn binary(&mut self, line: u32, written: &'static str, left: TypedExpr, right: TypedExpr) -> TypedExpr {
        if left.ty == Ty::Unknown || right.ty == Ty::Unknown {
            return TypedExpr::unknown();
        }
        let undefined = Mistake::Operator {
            operator: written,
            types: format!("{}, {}", left.ty, right.ty),
        };
        let Some(operator) = operator(written) else {
            return self.mistake(line, undefined);
        };
        if operator == Operator::Add && (left.ty.is_string() || right.ty.is_string()) {
            if left.ty == Ty::Void || right.ty == Ty::Void {
                return self.mistake(line, undefined);
            }
            return self.concatenated(left, right);
        }
        if is_equality(operator) && left.ty.is_reference() && right.ty.is_reference() {
            if !comparable(&left.ty, &right.ty) {
                let what = format!("{} and {}", left.ty, right.ty);
                return self.mistake(
                    line,
                    Mistake::Operator {
                        operator: written,
                        types: what,
                    },
                );
            }
            let different = operator == Operator::NotEqual;
            return TypedExpr::new(
                Ty::BOOLEAN,
                Node::Same(different, Box::new(left.node), Box::new(right.node)),
            );
        }
        let (Ok((a, left)), Ok((b, right))) = (self.primitive(left), self.primitive(right)) else {
            return self.mistake(line, undefined);
        };
        let both_boolean = a == Kind::Boolean && b == Kind::Boolean;
        let both_numeric = a.is_numeric() && b.is_numeric();
        let both_integral = a.is_integral() && b.is_integral();
        if both_boolean && (is_logic(operator) || is_equality(operator)) {
            return fold_or_apply(operator, Ty::BOOLEAN, left, right);
        }
        if is_shift(operator) && both_integral {
            let (x, y, a, b) = (a, b, a.max(Kind::Int), b.max(Kind::Int));
            return fold_or_apply(operator, Ty::Prim(a), widened(x, a, left), widened(y, b, right));
        }
        let is_taken = if is_logic(operator) {
            both_integral
        } else {
            both_numeric && !is_shift(operator)
        };
        if !is_taken {
            return self.mistake(line, undefined);
        }
        let kind = a.promoted(b);
        let gives = if is_equality(operator) || is_comparison(operator) {
            Ty::BOOLEAN
        } else {
            Ty::Prim(kind)
        };
        fold_or_apply(operator, gives, widened(a, kind, left), widened(b, kind, right))
    }

    fn concatenated(&mut self, left: TypedExpr, right: TypedExpr) -> TypedExpr {
        if let (Some(a), Some(b)) = (
            left.constant().and_then(constant_text),
            right.constant().and_then(constant_text),
        ) {
            let text = self.intern(&[a, b].concat());
            return TypedExpr::new(Ty::string(), Node::Const(text));
        }
        TypedExpr::new(Ty::string(), Node::Concat(Box::new(left.node), Box::new(right.node)))
    }
}

/// The text of a constant. `None` for a floating point number: the host provides its text when the function runs.
fn constant_text(value: &Value) -> Option<Vec<u16>> {
    let plain = |text: String| Some(text.encode_utf16().collect());
    match value {
        Value::Text(text) => Some(text.to_vec()),
        Value::Prim(Prim::Boolean(value)) => plain(value.to_string()),
        Value::Prim(Prim::Byte(value)) => plain(value.to_string()),
        Value::Prim(Prim::Short(value)) => plain(value.to_string()),
        Value::Prim(Prim::Char(unit)) => Some(vec![*unit]),
        Value::Prim(Prim::Int(value)) => plain(value.to_string()),
        Value::Prim(Prim::Long(value)) => plain(value.to_string()),
        _ => None,
    }
}

fn widened(from: Kind, to: Kind, node: Node) -> Node {
    if from == to { node } else { converted_to(to, node) }
}

fn fold_or_apply(operator: Operator, ty: Ty, left: Node, right: Node) -> TypedExpr {
    if let (Node::Const(Value::Prim(a)), Node::Const(Value::Prim(b))) = (&left, &right)
        && let Some(value) = operate::binary(operator, *a, *b)
    {
        return TypedExpr::new(ty, Node::Const(Value::Prim(value)));
    }
    let (left, right) = (Box::new(left), Box::new(right));
    TypedExpr::new(ty, Node::Binary { operator, left, right })
}

/// Whether `==` may compare two references of these types.
fn comparable(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Ref(x, _), Ty::Ref(y, _)) => x.is(*y) || y.is(*x) || super::convert::may_be_both(*x, *y),
        _ => a.is_subtype(b) || b.is_subtype(a),
    }
}

/// The least upper bound of two types (JLS §15.25), without the rules for type variables.
pub(super) fn least_upper(a: &Ty, b: &Ty) -> Ty {
    if *a == Ty::Null || a.is_subtype(b) {
        return b.boxed();
    }
    if *b == Ty::Null || b.is_subtype(a) {
        return a.boxed();
    }
    if let (Ty::Ref(x, _), Ty::Ref(y, _)) = (a.boxed(), b.boxed()) {
        let shared = |above: Class| x.is(above) && y.is(above);
        for class in [
            Class::Number,
            Class::List,
            Class::Set,
            Class::Map,
            Class::Collection,
            Class::RuntimeException,
            Class::Exception,
        ] {
            if shared(class) {
                return Ty::class(class);
            }
        }
        if shared(Class::Comparable) {
            return Ty::class(Class::Comparable);
        }
    }
    Ty::object()
}

/// Java's message that this variable or field is null.
pub(super) fn is_null(what: &str) -> Option<Arc<str>> {
    Some(format!("\"{what}\" is null").into())
}
