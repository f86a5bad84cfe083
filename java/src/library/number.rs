//! Boxes of numbers, `BigInteger`, `BigDecimal`.

use num_bigint::{BigInt, Sign};
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

use super::parse::{parse, parse_double, string};
use super::{Arguments, Method, constructor, fixed, instance, ordering};
use crate::class::Class::{
    BigDecimal, BigInteger, Boolean, Byte, Double, Float, Integer, Long, Number, RoundingMode, Short,
};
use crate::class::{Class, Kind};
use crate::machine::decimal::{aligned, bound, power_of_ten};
use crate::machine::{Machine, Run};
use crate::operate;
use crate::shown::decimal_text;
use crate::value::{Decimal, Plain, Prim, Rounding, Value};

pub(super) const METHODS: &[Method] = &[
    instance(Number, "intValue", "", "int", |_, a| number(a, Kind::Int)),
    instance(Number, "longValue", "", "long", |_, a| number(a, Kind::Long)),
    instance(Number, "doubleValue", "", "double", |_, a| number(a, Kind::Double)),
    instance(Number, "floatValue", "", "float", |_, a| number(a, Kind::Float)),
    instance(Number, "shortValue", "", "short", |_, a| number(a, Kind::Short)),
    instance(Number, "byteValue", "", "byte", |_, a| number(a, Kind::Byte)),
    instance(Boolean, "booleanValue", "", "boolean", |_, a| {
        Ok(Value::boolean(a.boolean(0)?))
    }),
    fixed(Boolean, "parseBoolean", "String", "boolean", |_, a| {
        Ok(Value::boolean(is_true(a)))
    }),
    fixed(Boolean, "valueOf", "String", "Boolean", |m, a| {
        Ok(m.boxed(Prim::Boolean(is_true(a))))
    }),
    fixed(Boolean, "valueOf", "boolean", "Boolean", |m, a| {
        Ok(m.boxed(Prim::Boolean(a.boolean(0)?)))
    }),
    fixed(Boolean, "toString", "boolean", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Integer, "parseInt", "String", "int", |m, a| parse(m, a, Kind::Int, 10)),
    fixed(Integer, "parseInt", "String,int", "int", |m, a| {
        parse(m, a, Kind::Int, a.int(1)?)
    }),
    fixed(Long, "parseLong", "String", "long", |m, a| parse(m, a, Kind::Long, 10)),
    fixed(Long, "parseLong", "String,int", "long", |m, a| {
        parse(m, a, Kind::Long, a.int(1)?)
    }),
    fixed(Short, "parseShort", "String", "short", |m, a| {
        parse(m, a, Kind::Short, 10)
    }),
    fixed(Byte, "parseByte", "String", "byte", |m, a| parse(m, a, Kind::Byte, 10)),
    fixed(Double, "parseDouble", "String", "double", |m, a| {
        parse_double(m, a, Kind::Double)
    }),
    fixed(Float, "parseFloat", "String", "float", |m, a| {
        parse_double(m, a, Kind::Float)
    }),
    fixed(Integer, "valueOf", "String", "Integer", |m, a| {
        let v = parse(m, a, Kind::Int, 10)?;
        boxed(m, &v)
    }),
    fixed(Long, "valueOf", "String", "Long", |m, a| {
        let v = parse(m, a, Kind::Long, 10)?;
        boxed(m, &v)
    }),
    fixed(Double, "valueOf", "String", "Double", |m, a| {
        let v = parse_double(m, a, Kind::Double)?;
        boxed(m, &v)
    }),
    fixed(Float, "valueOf", "String", "Float", |m, a| {
        let v = parse_double(m, a, Kind::Float)?;
        boxed(m, &v)
    }),
    fixed(Integer, "valueOf", "int", "Integer", |m, a| boxed(m, &a.value(0))),
    fixed(Long, "valueOf", "long", "Long", |m, a| boxed(m, &a.value(0))),
    fixed(Short, "valueOf", "short", "Short", |m, a| boxed(m, &a.value(0))),
    fixed(Byte, "valueOf", "byte", "Byte", |m, a| boxed(m, &a.value(0))),
    fixed(Double, "valueOf", "double", "Double", |m, a| boxed(m, &a.value(0))),
    fixed(Float, "valueOf", "float", "Float", |m, a| boxed(m, &a.value(0))),
    fixed(Integer, "toString", "int", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Long, "toString", "long", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Double, "toString", "double", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Float, "toString", "float", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Integer, "toString", "int,int", "String", |m, a| {
        let t = radix_text(&BigInt::from(a.int(0)?), a.int(1)?);
        m.string(&t)
    }),
    fixed(Long, "toString", "long,int", "String", |m, a| {
        let t = radix_text(&BigInt::from(a.long(0)?), a.int(1)?);
        m.string(&t)
    }),
    fixed(Integer, "toHexString", "int", "String", |m, a| {
        let t = format!("{:x}", a.int(0)?);
        m.string(&t)
    }),
    fixed(Integer, "toBinaryString", "int", "String", |m, a| {
        let t = format!("{:b}", a.int(0)?);
        m.string(&t)
    }),
    fixed(Integer, "toOctalString", "int", "String", |m, a| {
        let t = format!("{:o}", a.int(0)?);
        m.string(&t)
    }),
    fixed(Long, "toHexString", "long", "String", |m, a| {
        let t = format!("{:x}", a.long(0)?);
        m.string(&t)
    }),
    fixed(Long, "toBinaryString", "long", "String", |m, a| {
        let t = format!("{:b}", a.long(0)?);
        m.string(&t)
    }),
    fixed(Integer, "compare", "int,int", "int", |_, a| {
        Ok(ordering(a.int(0)?.cmp(&a.int(1)?)))
    }),
    fixed(Long, "compare", "long,long", "int", |_, a| {
        Ok(ordering(a.long(0)?.cmp(&a.long(1)?)))
    }),
    fixed(Double, "compare", "double,double", "int", |m, a| {
        m.compare(&a.value(0), &a.value(1)).map(ordering)
    }),
    fixed(Float, "compare", "float,float", "int", |m, a| {
        m.compare(&a.value(0), &a.value(1)).map(ordering)
    }),
    fixed(Boolean, "compare", "boolean,boolean", "int", |m, a| {
        m.compare(&a.value(0), &a.value(1)).map(ordering)
    }),
    fixed(Integer, "bitCount", "int", "int", |_, a| {
        Ok(bits(a.int(0)?.count_ones()))
    }),
    fixed(Long, "bitCount", "long", "int", |_, a| {
        Ok(bits(a.long(0)?.count_ones()))
    }),
    fixed(Integer, "numberOfLeadingZeros", "int", "int", |_, a| {
        Ok(bits(a.int(0)?.leading_zeros()))
    }),
    fixed(Integer, "numberOfTrailingZeros", "int", "int", |_, a| {
        Ok(bits(a.int(0)?.trailing_zeros()))
    }),
    fixed(Long, "numberOfLeadingZeros", "long", "int", |_, a| {
        Ok(bits(a.long(0)?.leading_zeros()))
    }),
    fixed(Long, "numberOfTrailingZeros", "long", "int", |_, a| {
        Ok(bits(a.long(0)?.trailing_zeros()))
    }),
    fixed(Integer, "reverse", "int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.reverse_bits()))
    }),
    fixed(Long, "reverse", "long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.reverse_bits()))
    }),
    fixed(Integer, "signum", "int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.signum()))
    }),
    fixed(Long, "signum", "long", "int", |_, a| Ok(ordering(a.long(0)?.cmp(&0)))),
    fixed(Integer, "sum", "int,int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.wrapping_add(a.int(1)?)))
    }),
    fixed(Integer, "max", "int,int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.max(a.int(1)?)))
    }),
    fixed(Integer, "min", "int,int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.min(a.int(1)?)))
    }),
    fixed(Long, "sum", "long,long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.wrapping_add(a.long(1)?)))
    }),
    fixed(Long, "max", "long,long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.max(a.long(1)?)))
    }),
    fixed(Long, "min", "long,long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.min(a.long(1)?)))
    }),
    fixed(Integer, "hashCode", "int", "int", |m, a| {
        Ok(Value::int(m.hash(&a.value(0))?))
    }),
    fixed(Long, "hashCode", "long", "int", |m, a| {
        Ok(Value::int(m.hash(&a.value(0))?))
    }),
    fixed(Double, "hashCode", "double", "int", |m, a| {
        Ok(Value::int(m.hash(&a.value(0))?))
    }),
    fixed(Double, "isNaN", "double", "boolean", |_, a| {
        Ok(Value::boolean(a.double(0)?.is_nan()))
    }),
    instance(Double, "isNaN", "", "boolean", |_, a| {
        Ok(Value::boolean(a.double(0)?.is_nan()))
    }),
    fixed(Double, "isInfinite", "double", "boolean", |_, a| {
        Ok(Value::boolean(a.double(0)?.is_infinite()))
    }),
    instance(Double, "isInfinite", "", "boolean", |_, a| {
        Ok(Value::boolean(a.double(0)?.is_infinite()))
    }),
    fixed(Double, "isFinite", "double", "boolean", |_, a| {
        Ok(Value::boolean(a.double(0)?.is_finite()))
    }),
    fixed(Float, "isNaN", "float", "boolean", |_, a| {
        Ok(Value::boolean(a.float(0)?.is_nan()))
    }),
    fixed(Double, "doubleToLongBits", "double", "long", |_, a| {
        let value = a.double(0)?;
        Ok(Value::long(if value.is_nan() {
            0x7ff8_0000_0000_0000
        } else {
            value.to_bits().cast_signed()
        }))
    }),
    fixed(Double, "longBitsToDouble", "long", "double", |_, a| {
        Ok(Value::Prim(Prim::Double(f64::from_bits(a.long(0)?.cast_unsigned()))))
    }),
];

pub(super) const BIG_METHODS: &[Method] = &[
    constructor(BigInteger, "String", |m, a| {
        let written = string(m, a, 0)?;
        match parsed_big(&written) {
            Some(value) => big(m, value),
            None if written.is_empty() => m.throw(Class::NumberFormat, "Zero length BigInteger"),
            None => m.throw(Class::NumberFormat, format!("For input string: \"{written}\"")),
        }
    }),
    fixed(BigInteger, "valueOf", "long", "BigInteger", |m, a| {
        big(m, a.long(0)?.into())
    }),
    instance(BigInteger, "add", "BigInteger", "BigInteger", |m, a| {
        let v = big_at(m, a, 0)? + big_at(m, a, 1)?;
        big(m, v)
    }),
    instance(BigInteger, "subtract", "BigInteger", "BigInteger", |m, a| {
        let v = big_at(m, a, 0)? - big_at(m, a, 1)?;
        big(m, v)
    }),
    instance(BigInteger, "multiply", "BigInteger", "BigInteger", |m, a| {
        let (x, y) = (big_at(m, a, 0)?, big_at(m, a, 1)?);
        work(m, &x, &y)?;
        big(m, x * y)
    }),
    instance(BigInteger, "divide", "BigInteger", "BigInteger", |m, a| {
        divided(m, a, "BigInteger divide by zero", |x, y| x / y)
    }),
    instance(BigInteger, "remainder", "BigInteger", "BigInteger", |m, a| {
        divided(m, a, "BigInteger divide by zero", |x, y| x % y)
    }),
    instance(BigInteger, "mod", "BigInteger", "BigInteger", |m, a| {
        let (x, y) = (big_at(m, a, 0)?, big_at(m, a, 1)?);
        if !y.is_positive() {
            return m.throw(Class::Arithmetic, "BigInteger: modulus not positive");
        }
        work(m, &x, &y)?;
        let rest = x % &y;
        big(m, if rest.is_negative() { rest + y } else { rest })
    }),
    instance(BigInteger, "pow", "int", "BigInteger", |m, a| {
        let (x, exponent) = (big_at(m, a, 0)?, a.int(1)?);
        let Ok(exponent) = u32::try_from(exponent) else {
            return m.throw(Class::Arithmetic, "Negative exponent");
        };
        bound(m, x.bits().saturating_mul(exponent.into()))?;
        m.step(usize::try_from(x.bits().saturating_mul(exponent.into()) / 8).unwrap_or(usize::MAX))?;
        big(m, x.pow(exponent))
    }),
    instance(BigInteger, "negate", "", "BigInteger", |m, a| {
        let v = -big_at(m, a, 0)?;
        big(m, v)
    }),
    instance(BigInteger, "abs", "", "BigInteger", |m, a| {
        let v = big_at(m, a, 0)?.abs();
        big(m, v)
    }),
    instance(BigInteger, "gcd", "BigInteger", "BigInteger", |m, a| {
        let (mut x, mut y) = (big_at(m, a, 0)?.abs(), big_at(m, a, 1)?.abs());
        while !y.is_zero() {
            work(m, &x, &y)?;
            (x, y) = (y.clone(), x % y);
        }
        big(m, x)
    }),
    instance(BigInteger, "max", "BigInteger", "BigInteger", |m, a| {
        Ok(a.value(usize::from(big_at(m, a, 0)? < big_at(m, a, 1)?)))
    }),
    instance(BigInteger, "min", "BigInteger", "BigInteger", |m, a| {
        Ok(a.value(usize::from(big_at(m, a, 0)? > big_at(m, a, 1)?)))
    }),
    instance(BigInteger, "signum", "", "int", |m, a| {
        Ok(ordering(big_at(m, a, 0)?.cmp(&BigInt::ZERO)))
    }),
    instance(BigInteger, "bitLength", "", "int", |m, a| {
        let x = big_at(m, a, 0)?;
        let length = if x.is_negative() {
            (-x - BigInt::one()).bits()
        } else {
            x.bits()
        };
        Ok(Value::int(i32::try_from(length).unwrap_or(i32::MAX)))
    }),
    instance(BigInteger, "shiftLeft", "int", "BigInteger", |m, a| {
        shifted(m, a, a.int(1)?)
    }),
    instance(BigInteger, "shiftRight", "int", "BigInteger", |m, a| {
        shifted(m, a, a.int(1)?.saturating_neg())
    }),
    instance(BigInteger, "toString", "int", "String", |m, a| {
        let x = big_at(m, a, 0)?;
        work(m, &x, &x)?;
        let text = radix_text(&x, a.int(1)?);
        m.string(&text)
    }),
    constructor(BigDecimal, "String", |m, a| {
        let written = string(m, a, 0)?;
        match parsed_decimal(&written) {
            Some(value) => decimal(m, value),
            None => m.throw_with(Class::NumberFormat, None),
        }
    }),
    constructor(BigDecimal, "int", |m, a| {
        decimal(
            m,
            Decimal {
                unscaled: a.int(0)?.into(),
                scale: 0,
            },
        )
    }),
    constructor(BigDecimal, "long", |m, a| {
        decimal(
            m,
            Decimal {
                unscaled: a.long(0)?.into(),
                scale: 0,
            },
        )
    }),
    constructor(BigDecimal, "BigInteger", |m, a| {
        let unscaled = big_at(m, a, 0)?;
        decimal(m, Decimal { unscaled, scale: 0 })
    }),
    constructor(BigDecimal, "BigInteger,int", |m, a| {
        let unscaled = big_at(m, a, 0)?;
        decimal(
            m,
            Decimal {
                unscaled,
                scale: a.int(1)?,
            },
        )
    }),
    fixed(BigDecimal, "valueOf", "long", "BigDecimal", |m, a| {
        decimal(
            m,
            Decimal {
                unscaled: a.long(0)?.into(),
                scale: 0,
            },
        )
    }),
    fixed(BigDecimal, "valueOf", "long,int", "BigDecimal", |m, a| {
        decimal(
            m,
            Decimal {
                unscaled: a.long(0)?.into(),
                scale: a.int(1)?,
            },
        )
    }),
    fixed(BigDecimal, "valueOf", "double", "BigDecimal", |m, a| {
        let written = (m.limits.double_text)(a.double(0)?);
        match parsed_decimal(&written) {
            Some(value) => decimal(m, value),
            None => m.throw_with(Class::NumberFormat, None),
        }
    }),
    instance(BigDecimal, "add", "BigDecimal", "BigDecimal", |m, a| {
        sum(m, a, |x, y| x + y)
    }),
    instance(BigDecimal, "subtract", "BigDecimal", "BigDecimal", |m, a| {
        sum(m, a, |x, y| x - y)
    }),
    instance(BigDecimal, "multiply", "BigDecimal", "BigDecimal", |m, a| {
        let (x, y) = (decimal_at(m, a, 0)?, decimal_at(m, a, 1)?);
        work(m, &x.unscaled, &y.unscaled)?;
        match x.scale.checked_add(y.scale) {
            Some(scale) => decimal(
                m,
                Decimal {
                    unscaled: x.unscaled * y.unscaled,
                    scale,
                },
            ),
            None => m.throw(Class::Arithmetic, "Overflow"),
        }
    }),
    instance(
        BigDecimal,
        "divide",
        "BigDecimal,int,RoundingMode",
        "BigDecimal",
        |m, a| {
            let (x, y, scale) = (decimal_at(m, a, 0)?, decimal_at(m, a, 1)?, a.int(2)?);
            let rounding = rounding_at(m, a, 3)?;
            quotient(m, &x, &y, scale, rounding)
        },
    ),
    instance(BigDecimal, "divide", "BigDecimal,RoundingMode", "BigDecimal", |m, a| {
        let (x, y) = (decimal_at(m, a, 0)?, decimal_at(m, a, 1)?);
        let scale = x.scale;
        let rounding = rounding_at(m, a, 2)?;
        quotient(m, &x, &y, scale, rounding)
    }),
    instance(BigDecimal, "negate", "", "BigDecimal", |m, a| {
        let x = decimal_at(m, a, 0)?;
        decimal(
            m,
            Decimal {
                unscaled: -x.unscaled,
                scale: x.scale,
            },
        )
    }),
    instance(BigDecimal, "abs", "", "BigDecimal", |m, a| {
        let x = decimal_at(m, a, 0)?;
        decimal(
            m,
            Decimal {
                unscaled: x.unscaled.abs(),
                scale: x.scale,
            },
        )
    }),
    instance(BigDecimal, "signum", "", "int", |m, a| {
        Ok(ordering(decimal_at(m, a, 0)?.unscaled.cmp(&BigInt::ZERO)))
    }),
    instance(BigDecimal, "scale", "", "int", |m, a| {
        Ok(Value::int(decimal_at(m, a, 0)?.scale))
    }),
    instance(BigDecimal, "precision", "", "int", |m, a| {
        let digits = decimal_at(m, a, 0)?.unscaled.abs().to_string().len();
        Ok(super::count(digits))
    }),
    instance(BigDecimal, "unscaledValue", "", "BigInteger", |m, a| {
        let x = decimal_at(m, a, 0)?;
        big(m, x.unscaled)
    }),
    instance(BigDecimal, "setScale", "int,RoundingMode", "BigDecimal", |m, a| {
        let x = decimal_at(m, a, 0)?;
        let rounding = rounding_at(m, a, 2)?;
        quotient(
            m,
            &x,
            &Decimal {
                unscaled: BigInt::one(),
                scale: 0,
            },
            a.int(1)?,
            rounding,
        )
    }),
    instance(BigDecimal, "setScale", "int", "BigDecimal", |m, a| {
        let x = decimal_at(m, a, 0)?;
        quotient(
            m,
            &x,
            &Decimal {
                unscaled: BigInt::one(),
                scale: 0,
            },
            a.int(1)?,
            Rounding::Unnecessary,
        )
    }),
    instance(BigDecimal, "max", "BigDecimal", "BigDecimal", |m, a| {
        let less = m.compare(&a.value(0), &a.value(1))?.is_lt();
        Ok(a.value(usize::from(less)))
    }),
    instance(BigDecimal, "min", "BigDecimal", "BigDecimal", |m, a| {
        let more = m.compare(&a.value(0), &a.value(1))?.is_gt();
        Ok(a.value(usize::from(more)))
    }),
    instance(BigDecimal, "stripTrailingZeros", "", "BigDecimal", |m, a| {
        let mut x = decimal_at(m, a, 0)?;
        if x.unscaled.is_zero() {
            return decimal(
                m,
                Decimal {
                    unscaled: BigInt::ZERO,
                    scale: 0,
                },
            );
        }
        let ten = BigInt::from(10);
        while (&x.unscaled % &ten).is_zero() {
            m.step(1 + usize::try_from(x.unscaled.bits() / 64).unwrap_or(usize::MAX))?;
            x.unscaled /= &ten;
            x.scale -= 1;
        }
        decimal(m, x)
    }),
    instance(BigDecimal, "toPlainString", "", "String", |m, a| {
        let x = decimal_at(m, a, 0)?;
        bound(m, u64::from(x.scale.unsigned_abs()) * 4)?;
        let text = decimal_text(&x, false);
        m.string(&text)
    }),
    instance(BigDecimal, "toBigInteger", "", "BigInteger", |m, a| {
        let x = decimal_at(m, a, 0)?;
        let whole = quotient(
            m,
            &x,
            &Decimal {
                unscaled: BigInt::one(),
                scale: 0,
            },
            0,
            Rounding::Down,
        )?;
        let whole = decimal_at(m, &[whole], 0)?;
        big(m, whole.unscaled)
    }),
    instance(RoundingMode, "name", "", "String", |m, a| m.text_of(&a.value(0))),
];

pub(super) fn constant(class: Class, name: &str) -> Option<Value> {
    let whole = match name {
        "ZERO" => Some(0),
        "ONE" => Some(1),
        "TEN" => Some(10),
        "TWO" if class == BigInteger => Some(2),
        _ => None,
    };
    match (class, whole) {
        (BigInteger, Some(value)) => Some(Value::big(value.into())),
        (BigDecimal, Some(value)) => Some(Value::plain(Plain::Decimal(Decimal {
            unscaled: value.into(),
            scale: 0,
        }))),
        (RoundingMode, _) => Some(Value::plain(Plain::Rounding(match name {
            "UP" => Rounding::Up,
            "DOWN" => Rounding::Down,
            "CEILING" => Rounding::Ceiling,
            "FLOOR" => Rounding::Floor,
            "HALF_UP" => Rounding::HalfUp,
            "HALF_DOWN" => Rounding::HalfDown,
            "HALF_EVEN" => Rounding::HalfEven,
            "UNNECESSARY" => Rounding::Unnecessary,
            _ => return None,
        }))),
        _ => None,
    }
}

fn bits(value: u32) -> Value {
    Value::int(i32::try_from(value).unwrap_or(i32::MAX))
}

fn boxed(m: &mut Machine<'_>, value: &Value) -> Run<Value> {
    match value.prim() {
        Some(value) => Ok(m.boxed(value)),
        None => Machine::fault("a primitive was expected"),
    }
}

pub(super) fn is_true(a: &[Value]) -> bool {
    matches!(a.first(), Some(Value::Text(text)) if String::from_utf16_lossy(text).eq_ignore_ascii_case("true"))
}

/// `intValue()` and similar methods, of boxes and of big numbers.
fn number(a: &[Value], kind: Kind) -> Run<Value> {
    if let Some(value) = a.value(0).prim() {
        return Ok(Value::Prim(operate::convert(value, kind)));
    }
    let low = |value: &BigInt| {
        let mask: BigInt = (BigInt::one() << 64) - BigInt::one();
        let low: BigInt = value & mask;
        low.to_u64().unwrap_or(0).cast_signed()
    };
    let value = match (a.plain(0)?, kind) {
        (Plain::Big(value), Kind::Double | Kind::Float) => Prim::Double(value.to_f64().unwrap_or(f64::NAN)),
        (Plain::Big(value), _) => Prim::Long(low(value)),
        (Plain::Decimal(value), Kind::Float) => Prim::Float(scientific(value).parse().unwrap_or(f32::NAN)),
        (Plain::Decimal(value), Kind::Double) => Prim::Double(scientific(value).parse().unwrap_or(f64::NAN)),
        (Plain::Decimal(value), _) => {
            let scale = value.scale.unsigned_abs();
            let whole = if value.scale > 0 {
                let digits = u64::from(scale) * 3;
                if digits > value.unscaled.bits() + 8 {
                    BigInt::ZERO
                } else {
                    &value.unscaled / BigInt::from(10).pow(scale)
                }
            } else if scale > 64 {
                // Sixty-four tens contain sixty-four twos: the low bits are zero.
                BigInt::ZERO
            } else {
                &value.unscaled * BigInt::from(10).pow(scale)
            };
            Prim::Long(low(&whole))
        }
        _ => return Machine::fault("a number was expected"),
    };
    Ok(Value::Prim(operate::convert(value, kind)))
}

fn scientific(value: &Decimal) -> String {
    format!("{}e{}", value.unscaled, -i64::from(value.scale))
}

fn radix_text(value: &BigInt, radix: i32) -> String {
    let radix = u32::try_from(radix)
        .ok()
        .filter(|radix| (2..=36).contains(radix))
        .unwrap_or(10);
    value.to_str_radix(radix)
}

/// Charges for work on two numbers, digit by digit.
fn work(m: &mut Machine<'_>, x: &BigInt, y: &BigInt) -> Run<()> {
    bound(m, x.bits() + y.bits())?;
    m.step(usize::try_from((x.bits() / 64 + 1) * (y.bits() / 64 + 1)).unwrap_or(usize::MAX))
}

fn big(m: &mut Machine<'_>, value: BigInt) -> Run<Value> {
    bound(m, value.bits())?;
    m.allocate(value.bits() / 8 + 64)?;
    Ok(Value::big(value))
}

fn big_at(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<BigInt> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => match a.plain(at)? {
            Plain::Big(value) => {
                m.step(usize::try_from(value.bits() / 64 + 1).unwrap_or(usize::MAX))?;
                Ok(value.clone())
            }
            _ => Machine::fault("a BigInteger was expected"),
        },
    }
}

fn divided(m: &mut Machine<'_>, a: &[Value], zero: &str, divide: impl Fn(BigInt, BigInt) -> BigInt) -> Run<Value> {
    let (x, y) = (big_at(m, a, 0)?, big_at(m, a, 1)?);
    if y.is_zero() {
        return m.throw(Class::Arithmetic, zero);
    }
    work(m, &x, &y)?;
    big(m, divide(x, y))
}

fn shifted(m: &mut Machine<'_>, a: &[Value], by: i32) -> Run<Value> {
    let x = big_at(m, a, 0)?;
    if by >= 0 {
        bound(m, x.bits().saturating_add(u64::from(by.unsigned_abs())))?;
        return big(m, x << by.unsigned_abs());
    }
    big(m, x >> by.unsigned_abs())
}

fn parsed_big(text: &str) -> Option<BigInt> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: BigInt = digits.parse().ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

fn parsed_decimal(text: &str) -> Option<Decimal> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unscaled = parsed_big(&format!("{whole}{fraction}"))?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(Decimal { unscaled, scale })
}

fn decimal(m: &mut Machine<'_>, value: Decimal) -> Run<Value> {
    bound(m, value.unscaled.bits())?;
    m.allocate(value.unscaled.bits() / 8 + 64)?;
    Ok(Value::plain(Plain::Decimal(value)))
}

fn decimal_at(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Decimal> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => match a.plain(at)? {
            Plain::Decimal(value) => {
                m.step(usize::try_from(value.unscaled.bits() / 64 + 1).unwrap_or(usize::MAX))?;
                Ok(value.clone())
            }
            _ => Machine::fault("a BigDecimal was expected"),
        },
    }
}

fn rounding_at(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Rounding> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => match a.plain(at)? {
            Plain::Rounding(rounding) => Ok(*rounding),
            _ => Machine::fault("a RoundingMode was expected"),
        },
    }
}

fn sum(m: &mut Machine<'_>, a: &[Value], add: impl Fn(BigInt, BigInt) -> BigInt) -> Run<Value> {
    let (x, y) = (decimal_at(m, a, 0)?, decimal_at(m, a, 1)?);
    let (x, y, scale) = aligned(m, &x, &y)?;
    decimal(
        m,
        Decimal {
            unscaled: add(x, y),
            scale,
        },
    )
}

/// `x / y` with that many digits after the decimal point.
fn quotient(m: &mut Machine<'_>, x: &Decimal, y: &Decimal, scale: i32, rounding: Rounding) -> Run<Value> {
    if y.unscaled.is_zero() {
        let what = if x.unscaled.is_zero() {
            "Division undefined"
        } else {
            "Division by zero"
        };
        return m.throw(Class::Arithmetic, what);
    }
    let shift = i64::from(scale) + i64::from(y.scale) - i64::from(x.scale);
    let factor = power_of_ten(m, shift.unsigned_abs())?;
    let (above, below) = if shift >= 0 {
        (&x.unscaled * factor, y.unscaled.clone())
    } else {
        (x.unscaled.clone(), &y.unscaled * factor)
    };
    work(m, &above, &below)?;
    let (whole, rest) = (&above / &below, &above % &below);
    if rest.is_zero() {
        return decimal(m, Decimal { unscaled: whole, scale });
    }
    let is_negative = (above.sign() == Sign::Minus) != (below.sign() == Sign::Minus);
    let half = (rest.abs() * 2_u32).cmp(&below.abs());
    let is_odd = (&whole % 2_u32) != BigInt::ZERO;
    let away = match rounding {
        Rounding::Up => true,
        Rounding::Down => false,
        Rounding::Ceiling => !is_negative,
        Rounding::Floor => is_negative,
        Rounding::HalfUp => half.is_ge(),
        Rounding::HalfDown => half.is_gt(),
        Rounding::HalfEven => half.is_gt() || (half.is_eq() && is_odd),
        Rounding::Unnecessary => return m.throw(Class::Arithmetic, "Rounding necessary"),
    };
    let step = if is_negative { -BigInt::one() } else { BigInt::one() };
    decimal(
        m,
        Decimal {
            unscaled: if away { whole + step } else { whole },
            scale,
        },
    )
}
