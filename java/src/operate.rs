//! Java's arithmetic on primitives.

#![expect(
    clippy::cast_possible_truncation,
    reason = "Java's conversions cut numbers off, and Rust's `as` does so in the same way"
)]

use crate::class::Kind;
use crate::value::Prim;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Negate,
    Complement,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    Left,
    Right,
    UnsignedRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Converts a primitive to another kind (JLS §5.1.2, §5.1.3).
pub(crate) fn convert(value: Prim, to: Kind) -> Prim {
    let from_long = |value: i64| match to {
        Kind::Boolean => Prim::Boolean(value != 0),
        Kind::Byte => Prim::Byte(value as i8),
        Kind::Short => Prim::Short(value as i16),
        Kind::Char => Prim::Char(value as u16),
        Kind::Int => Prim::Int(value as i32),
        Kind::Long => Prim::Long(value),
        Kind::Float => Prim::Float(value as f32),
        Kind::Double => Prim::Double(value as f64),
    };
    let from_double = |value: f64| match to {
        Kind::Long => Prim::Long(value as i64),
        Kind::Float => Prim::Float(value as f32),
        Kind::Double => Prim::Double(value),
        // A conversion to a kind narrower than int first converts to int.
        Kind::Int | Kind::Byte | Kind::Short | Kind::Char | Kind::Boolean => from_long(i64::from(value as i32)),
    };
    match value {
        Prim::Boolean(value) if to == Kind::Boolean => Prim::Boolean(value),
        Prim::Boolean(value) => from_long(i64::from(value)),
        Prim::Byte(value) => from_long(value.into()),
        Prim::Short(value) => from_long(value.into()),
        Prim::Char(value) => from_long(value.into()),
        Prim::Int(value) => from_long(value.into()),
        Prim::Long(value) => from_long(value),
        Prim::Float(value) if to == Kind::Float => Prim::Float(value),
        Prim::Float(value) => from_double(value.into()),
        Prim::Double(value) => from_double(value),
    }
}

pub(crate) fn unary(operator: Unary, value: Prim) -> Prim {
    match (operator, value) {
        (Unary::Not, Prim::Boolean(value)) => Prim::Boolean(!value),
        (Unary::Negate, Prim::Int(value)) => Prim::Int(value.wrapping_neg()),
        (Unary::Negate, Prim::Long(value)) => Prim::Long(value.wrapping_neg()),
        (Unary::Negate, Prim::Float(value)) => Prim::Float(-value),
        (Unary::Negate, Prim::Double(value)) => Prim::Double(-value),
        (Unary::Complement, Prim::Int(value)) => Prim::Int(!value),
        (Unary::Complement, Prim::Long(value)) => Prim::Long(!value),
        (_, value) => value,
    }
}

/// The operands have one kind, except in shifts. `None` means an integer division by zero.
pub(crate) fn binary(operator: Operator, left: Prim, right: Prim) -> Option<Prim> {
    if matches!(operator, Operator::Left | Operator::Right | Operator::UnsignedRight) {
        return Some(shift(operator, left, right));
    }
    match (left, right) {
        (Prim::Int(a), Prim::Int(b)) => int(operator, a, b),
        (Prim::Long(a), Prim::Long(b)) => long(operator, a, b),
        (Prim::Double(a), Prim::Double(b)) => Some(double(operator, a, b, Prim::Double)),
        (Prim::Float(a), Prim::Float(b)) => Some(float(operator, a, b)),
        (Prim::Boolean(a), Prim::Boolean(b)) => Some(Prim::Boolean(match operator {
            Operator::And => a && b,
            Operator::Or => a || b,
            Operator::NotEqual | Operator::Xor => a != b,
            _ => a == b,
        })),
        _ => Some(left),
    }
}

fn shift(operator: Operator, left: Prim, right: Prim) -> Prim {
    let by = match right {
        Prim::Int(by) => by as u32,
        Prim::Long(by) => by as u32,
        _ => 0,
    };
    match (left, operator) {
        (Prim::Int(value), Operator::Left) => Prim::Int(value.wrapping_shl(by)),
        (Prim::Int(value), Operator::Right) => Prim::Int(value.wrapping_shr(by)),
        (Prim::Int(value), _) => Prim::Int((value as u32).wrapping_shr(by) as i32),
        (Prim::Long(value), Operator::Left) => Prim::Long(value.wrapping_shl(by)),
        (Prim::Long(value), Operator::Right) => Prim::Long(value.wrapping_shr(by)),
        (Prim::Long(value), _) => Prim::Long((value as u64).wrapping_shr(by) as i64),
        (value, _) => value,
    }
}

fn ordered<T: PartialOrd>(operator: Operator, a: T, b: T) -> bool {
    match operator {
        Operator::Equal => a == b,
        Operator::NotEqual => a != b,
        Operator::Less => a < b,
        Operator::LessOrEqual => a <= b,
        Operator::Greater => a > b,
        _ => a >= b,
    }
}

fn int(operator: Operator, a: i32, b: i32) -> Option<Prim> {
    Some(Prim::Int(match operator {
        Operator::Add => a.wrapping_add(b),
        Operator::Subtract => a.wrapping_sub(b),
        Operator::Multiply => a.wrapping_mul(b),
        Operator::Divide if b == 0 => return None,
        Operator::Divide => a.wrapping_div(b),
        Operator::Remainder if b == 0 => return None,
        Operator::Remainder => a.wrapping_rem(b),
        Operator::And => a & b,
        Operator::Or => a | b,
        Operator::Xor => a ^ b,
        _ => return Some(Prim::Boolean(ordered(operator, a, b))),
    }))
}

fn long(operator: Operator, a: i64, b: i64) -> Option<Prim> {
    Some(Prim::Long(match operator {
        Operator::Add => a.wrapping_add(b),
        Operator::Subtract => a.wrapping_sub(b),
        Operator::Multiply => a.wrapping_mul(b),
        Operator::Divide if b == 0 => return None,
        Operator::Divide => a.wrapping_div(b),
        Operator::Remainder if b == 0 => return None,
        Operator::Remainder => a.wrapping_rem(b),
        Operator::And => a & b,
        Operator::Or => a | b,
        Operator::Xor => a ^ b,
        _ => return Some(Prim::Boolean(ordered(operator, a, b))),
    }))
}

fn double(operator: Operator, a: f64, b: f64, make: impl FnOnce(f64) -> Prim) -> Prim {
    make(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Remainder => a % b,
        _ => return Prim::Boolean(ordered(operator, a, b)),
    })
}

fn float(operator: Operator, a: f32, b: f32) -> Prim {
    Prim::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Remainder => a % b,
        _ => return Prim::Boolean(ordered(operator, a, b)),
    })
}
