//! `+ - * / %` between numbers, `+` between strings, `+` and `-` between a timestamp or date and a duration; unary minus.

use super::candidates::Candidates;
use super::cast::{Number, truncated};
use super::problem::{OperationFailure, Problem};
use super::{Call, Function, NameFormat, Outcome, calendar, decimal};
use crate::types::{self, CqlType, DAY_MILLIS, Decimal, Duration, Native, operator_text};
use bytes::Bytes;
use grammar::ast::ArithmeticOperator;
use num_bigint::BigInt;
use num_traits::Zero;

const NUMBERS: [Native; 9] = [
    Native::Tinyint,
    Native::Smallint,
    Native::Int,
    Native::Bigint,
    Native::Counter,
    Native::Float,
    Native::Double,
    Native::Varint,
    Native::Decimal,
];

const OPERATORS: [ArithmeticOperator; 5] = [
    ArithmeticOperator::Add,
    ArithmeticOperator::Subtract,
    ArithmeticOperator::Multiply,
    ArithmeticOperator::Divide,
    ArithmeticOperator::Modulo,
];

/// The function name of unary minus.
const NEGATE: &str = "_negate";

/// The function name of an operator; the spelling is Cassandra's.
fn function_name(operator: ArithmeticOperator) -> &'static str {
    match operator {
        ArithmeticOperator::Add => "_add",
        ArithmeticOperator::Subtract => "_substract",
        ArithmeticOperator::Multiply => "_multiply",
        ArithmeticOperator::Divide => "_divide",
        ArithmeticOperator::Modulo => "_modulo",
    }
}

/// Operators by function name.
pub(super) fn find(name: &str) -> Option<Candidates> {
    if name == NEGATE {
        return Some(Candidates::Overloads(negations()));
    }
    let operator = OPERATORS
        .into_iter()
        .find(|operator| function_name(*operator) == name)?;
    Some(Candidates::Overloads(operations(operator)))
}

/// The type of the result: the wider of the two types, with two exceptions. A float and an integer of 64 bits give a
/// double. A varint and a float or double give a decimal.
fn promoted(left: Native, right: Native) -> Native {
    let is_float = |native| matches!(native, Native::Float | Native::Double);
    let both = [left, right];
    let any = |wanted: Native| both.contains(&wanted);
    if any(Native::Decimal) || (any(Native::Varint) && both.into_iter().any(is_float)) {
        Native::Decimal
    } else if any(Native::Varint) {
        Native::Varint
    } else if any(Native::Double) || (any(Native::Float) && (any(Native::Bigint) || any(Native::Counter))) {
        Native::Double
    } else if any(Native::Float) {
        Native::Float
    } else if any(Native::Bigint) || any(Native::Counter) {
        Native::Bigint
    } else if any(Native::Int) {
        Native::Int
    } else if any(Native::Smallint) {
        Native::Smallint
    } else {
        Native::Tinyint
    }
}

/// All overloads of an operator.
pub(super) fn operations(operator: ArithmeticOperator) -> Vec<Function> {
    let make = |left: Native, right: Native, returns: Native, body: fn(&Call<'_>, ArithmeticOperator) -> Outcome| {
        let arguments = [CqlType::Native(left), CqlType::Native(right)];
        let body = move |call: &Call<'_>| body(call, operator);
        Function::scalar(function_name(operator), arguments, CqlType::Native(returns), body)
            .with_name_format(NameFormat::Infix(operator_text(operator)))
    };
    let mut functions = Vec::with_capacity(NUMBERS.len() * NUMBERS.len() + 6);
    for left in NUMBERS {
        for right in NUMBERS {
            functions.push(make(left, right, promoted(left, right), numbers));
        }
    }
    if matches!(operator, ArithmeticOperator::Add | ArithmeticOperator::Subtract) {
        functions.push(make(
            Native::Timestamp,
            Native::Duration,
            Native::Timestamp,
            add_duration,
        ));
        functions.push(make(Native::Date, Native::Duration, Native::Date, add_duration));
    }
    if operator == ArithmeticOperator::Add {
        functions.push(make(Native::Ascii, Native::Ascii, Native::Ascii, concatenation));
        for (left, right) in [
            (Native::Text, Native::Text),
            (Native::Ascii, Native::Text),
            (Native::Text, Native::Ascii),
        ] {
            functions.push(make(left, right, Native::Text, concatenation));
        }
    }
    functions
}

fn native(value_type: Option<&CqlType>) -> Native {
    match value_type {
        Some(CqlType::Native(native)) => *native,
        _ => Native::Blob,
    }
}

fn concatenation(call: &Call<'_>, _: ArithmeticOperator) -> Outcome {
    Ok(Some([call.bytes(0), call.bytes(1)].concat().into()))
}

fn overflow() -> Problem {
    OperationFailure::Overflow.into()
}

fn numbers(call: &Call<'_>, operator: ArithmeticOperator) -> Outcome {
    let number = |index| Number::decode(native(call.argument_type(index)), call.bytes(index));
    let (Some(left), Some(right)) = (number(0), number(1)) else {
        return Ok(None);
    };
    let returns = native(Some(&call.function.returns));
    Ok(Some(computed(&left, &right, operator, returns)?.into()))
}

/// Whether a sum with a value of this type may be assigned to its column beside a condition.
#[must_use]
pub fn is_summable(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(Native::Text | Native::Ascii))
        || matches!(ty, CqlType::Native(native) if NUMBERS.contains(native))
}

/// The sum of two numbers of a type, or one text behind another; none where it is no value of the type.
#[must_use]
pub fn sum(ty: &CqlType, left: &[u8], right: &[u8]) -> Option<Bytes> {
    let of = native(Some(ty));
    if matches!(of, Native::Text | Native::Ascii) {
        return Some([left, right].concat().into());
    }
    let (left, right) = (Number::decode(of, left)?, Number::decode(of, right)?);
    computed(&left, &right, ArithmeticOperator::Add, of)
        .ok()
        .map(Bytes::from)
}

fn computed(left: &Number, right: &Number, operator: ArithmeticOperator, returns: Native) -> Result<Vec<u8>, Problem> {
    Ok(match returns {
        // Java computes tinyint and smallint as int and truncates the result, which is the same as wrapping.
        Native::Tinyint | Native::Smallint | Native::Int | Native::Bigint => {
            truncated(integers(left.to_i64(), right.to_i64(), operator)?, returns)
        }
        Native::Float => {
            let (x, y) = (
                types::double_to_float(left.to_f64()),
                types::double_to_float(right.to_f64()),
            );
            floats(x, y, operator).to_be_bytes().to_vec()
        }
        Native::Double => floats(left.to_f64(), right.to_f64(), operator).to_be_bytes().to_vec(),
        Native::Varint => types::encode_varint(&within_bound(varints(
            &left.to_varint(),
            &right.to_varint(),
            operator,
        )?)?),
        _ => {
            let finite = |number: &Number| {
                operand(number).ok_or_else(|| {
                    let is_nan = number.to_f64().is_nan();
                    Problem::from(OperationFailure::NotFinite { is_nan })
                })
            };
            let (x, y) = (finite(left)?, finite(right)?);
            let mut result = decimals(&x, &y, operator)?;
            result.unscaled = within_bound(result.unscaled)?;
            result.encode()
        }
    })
}

/// An operand of a decimal operation. Cassandra converts types of up to 64 bits to the nearest double, so that 5 is
/// 5.0.
fn operand(number: &Number) -> Option<Decimal> {
    match number {
        Number::Integer(_) | Number::Float(_) | Number::Double(_) => Decimal::parse(&types::java_f64(number.to_f64())),
        Number::Varint(_) | Number::Decimal(_) => number.to_decimal(),
    }
}

fn integers(x: i64, y: i64, operator: ArithmeticOperator) -> Result<i64, Problem> {
    let by_zero = || OperationFailure::ByZero.into();
    Ok(match operator {
        ArithmeticOperator::Add => x.wrapping_add(y),
        ArithmeticOperator::Subtract => x.wrapping_sub(y),
        ArithmeticOperator::Multiply => x.wrapping_mul(y),
        ArithmeticOperator::Divide if y == 0 => return Err(by_zero()),
        ArithmeticOperator::Divide => x.wrapping_div(y),
        ArithmeticOperator::Modulo if y == 0 => return Err(by_zero()),
        ArithmeticOperator::Modulo => x.wrapping_rem(y),
    })
}

fn floats<T>(x: T, y: T, operator: ArithmeticOperator) -> T
where
    T: std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>
        + std::ops::Rem<Output = T>,
{
    match operator {
        ArithmeticOperator::Add => x + y,
        ArithmeticOperator::Subtract => x - y,
        ArithmeticOperator::Multiply => x * y,
        ArithmeticOperator::Divide => x / y,
        ArithmeticOperator::Modulo => x % y,
    }
}

/// Operands are bounded by the maximum length of a stored number, so a result within that limit is computed quickly.
pub(super) fn within_bound(value: BigInt) -> Result<BigInt, Problem> {
    // One bit is the sign's.
    if value.bits() < 8 * types::NUMBER_BYTES_MAX as u64 {
        return Ok(value);
    }
    Err(overflow())
}

fn varints(x: &BigInt, y: &BigInt, operator: ArithmeticOperator) -> Result<BigInt, Problem> {
    let by_zero = || OperationFailure::BigByZero.into();
    Ok(match operator {
        ArithmeticOperator::Add => x + y,
        ArithmeticOperator::Subtract => x - y,
        ArithmeticOperator::Multiply => x * y,
        ArithmeticOperator::Divide if y.is_zero() => return Err(by_zero()),
        ArithmeticOperator::Divide => x / y,
        ArithmeticOperator::Modulo if y.is_zero() => return Err(by_zero()),
        ArithmeticOperator::Modulo => x % y,
    })
}

fn decimals(x: &Decimal, y: &Decimal, operator: ArithmeticOperator) -> Result<Decimal, Problem> {
    match operator {
        ArithmeticOperator::Add => decimal::rounded_sum(x, y),
        ArithmeticOperator::Subtract => decimal::rounded_difference(x, y),
        ArithmeticOperator::Multiply => decimal::rounded_product(x, y),
        ArithmeticOperator::Divide if y.unscaled.is_zero() => {
            return Err(OperationFailure::BigByZero.into());
        }
        ArithmeticOperator::Divide => decimal::divide(x, y),
        ArithmeticOperator::Modulo if y.unscaled.is_zero() => {
            let what = if x.unscaled.is_zero() {
                OperationFailure::Undefined
            } else {
                OperationFailure::RemainderByZero
            };
            return Err(what.into());
        }
        ArithmeticOperator::Modulo => decimal::remainder(x, y),
    }
    .ok_or_else(overflow)
}

/// Adds a duration to a timestamp or date, or subtracts it: first months by the calendar, then days, then nanoseconds.
fn add_duration(call: &Call<'_>, operator: ArithmeticOperator) -> Outcome {
    let is_date = native(call.argument_type(0)) == Native::Date;
    let millis = if is_date {
        types::decode_date(call.bytes(0)).map(|days| days * DAY_MILLIS)
    } else {
        types::decode_i64(call.bytes(0))
    };
    let (Some(millis), Ok(duration)) = (millis, Duration::decode(call.bytes(1))) else {
        return Ok(None);
    };
    let (nanos, unit) = if is_date {
        (types::DAY_NANOS, "day")
    } else {
        (1_000_000, "millisecond")
    };
    if duration.nanoseconds % nanos != 0 {
        return Err(OperationFailure::Precision { unit, duration }.into());
    }
    let duration = if operator == ArithmeticOperator::Subtract {
        duration.negated()
    } else {
        duration
    };
    let day = calendar::plus_months(millis.div_euclid(DAY_MILLIS), duration.months.into());
    let moved = (day + i64::from(duration.days))
        .checked_mul(DAY_MILLIS)
        .and_then(|day| day.checked_add(millis.rem_euclid(DAY_MILLIS)))
        .and_then(|moved| moved.checked_add(duration.nanoseconds / 1_000_000))
        .ok_or_else(overflow)?;
    if !is_date {
        return Ok(Some(Bytes::copy_from_slice(&moved.to_be_bytes())));
    }
    // As in Java, a day outside the range of dates wraps around.
    let days = (moved.div_euclid(DAY_MILLIS) + (1 << 31)).rem_euclid(1 << 32);
    let days = u32::try_from(days).map_err(|_| overflow())?;
    Ok(Some(Bytes::copy_from_slice(&days.to_be_bytes())))
}

/// Overloads of unary minus.
pub(super) fn negations() -> Vec<Function> {
    let overload = |native: Native| {
        let value_type = CqlType::Native(native);
        let body =
            move |call: &Call<'_>| Ok(Number::decode(native, call.bytes(0)).map(|number| negated(number, native)));
        Function::scalar(NEGATE, [value_type.clone()], value_type, body).with_name_format(NameFormat::Prefix)
    };
    NUMBERS.into_iter().map(overload).collect()
}

fn negated(number: Number, native: Native) -> Bytes {
    match number {
        Number::Integer(value) => truncated(value.wrapping_neg(), native),
        Number::Float(value) => (-value).to_be_bytes().to_vec(),
        Number::Double(value) => (-value).to_be_bytes().to_vec(),
        Number::Varint(value) => types::encode_varint(&-value),
        Number::Decimal(value) => Decimal {
            unscaled: -value.unscaled,
            scale: value.scale,
        }
        .encode(),
    }
    .into()
}
