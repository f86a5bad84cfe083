//! `Math`.

use super::{Arguments, Method, fixed};
use crate::class::Class;
use crate::class::Class::Math;
use crate::class::Kind;
use crate::machine::{Machine, Run};
use crate::operate::convert;
use crate::value::{Prim, Value};

fn double(value: f64) -> Run<Value> {
    Ok(Value::Prim(Prim::Double(value)))
}

fn float(value: f32) -> Run<Value> {
    Ok(Value::Prim(Prim::Float(value)))
}

fn overflow(m: &mut Machine<'_>, value: Option<Prim>, of: &str) -> Run<Value> {
    match value {
        Some(value) => Ok(Value::Prim(value)),
        None => m.throw(Class::Arithmetic, format!("{of} overflow")),
    }
}

/// Java's `max` and `min`: NaN wins, and -0.0 is less than 0.0.
fn extreme(a: f64, b: f64, max: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let a_is_less = a.total_cmp(&b).is_lt();
    if a_is_less == max { b } else { a }
}

pub(super) const METHODS: &[Method] = &[
    fixed(Math, "abs", "int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.wrapping_abs()))
    }),
    fixed(Math, "abs", "long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.wrapping_abs()))
    }),
    fixed(Math, "abs", "float", "float", |_, a| float(a.float(0)?.abs())),
    fixed(Math, "abs", "double", "double", |_, a| double(a.double(0)?.abs())),
    fixed(Math, "max", "int,int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.max(a.int(1)?)))
    }),
    fixed(Math, "max", "long,long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.max(a.long(1)?)))
    }),
    fixed(Math, "max", "float,float", "float", |_, a| {
        Ok(Value::Prim(convert(
            Prim::Double(extreme(a.float(0)?.into(), a.float(1)?.into(), true)),
            Kind::Float,
        )))
    }),
    fixed(Math, "max", "double,double", "double", |_, a| {
        double(extreme(a.double(0)?, a.double(1)?, true))
    }),
    fixed(Math, "min", "int,int", "int", |_, a| {
        Ok(Value::int(a.int(0)?.min(a.int(1)?)))
    }),
    fixed(Math, "min", "long,long", "long", |_, a| {
        Ok(Value::long(a.long(0)?.min(a.long(1)?)))
    }),
    fixed(Math, "min", "float,float", "float", |_, a| {
        Ok(Value::Prim(convert(
            Prim::Double(extreme(a.float(0)?.into(), a.float(1)?.into(), false)),
            Kind::Float,
        )))
    }),
    fixed(Math, "min", "double,double", "double", |_, a| {
        double(extreme(a.double(0)?, a.double(1)?, false))
    }),
    fixed(Math, "pow", "double,double", "double", |_, a| {
        let (x, y) = (a.double(0)?, a.double(1)?);
        // One to the power of NaN, and minus one to the power of infinity, are NaN in Java.
        if y.is_nan() || (x.abs().to_bits() == 1.0_f64.to_bits() && y.is_infinite()) {
            return double(f64::NAN);
        }
        double(x.powf(y))
    }),
    fixed(Math, "sqrt", "double", "double", |_, a| double(a.double(0)?.sqrt())),
    fixed(Math, "cbrt", "double", "double", |_, a| double(cube_root(a.double(0)?))),
    fixed(Math, "hypot", "double,double", "double", |_, a| {
        double(a.double(0)?.hypot(a.double(1)?))
    }),
    fixed(Math, "exp", "double", "double", |_, a| double(a.double(0)?.exp())),
    fixed(Math, "log", "double", "double", |_, a| double(a.double(0)?.ln())),
    fixed(Math, "log10", "double", "double", |_, a| double(a.double(0)?.log10())),
    fixed(Math, "sin", "double", "double", |_, a| double(a.double(0)?.sin())),
    fixed(Math, "cos", "double", "double", |_, a| double(a.double(0)?.cos())),
    fixed(Math, "tan", "double", "double", |_, a| double(a.double(0)?.tan())),
    fixed(Math, "asin", "double", "double", |_, a| double(a.double(0)?.asin())),
    fixed(Math, "acos", "double", "double", |_, a| double(a.double(0)?.acos())),
    fixed(Math, "atan", "double", "double", |_, a| double(a.double(0)?.atan())),
    fixed(Math, "atan2", "double,double", "double", |_, a| {
        double(a.double(0)?.atan2(a.double(1)?))
    }),
    fixed(Math, "toRadians", "double", "double", |_, a| {
        double(a.double(0)? * 0.017_453_292_519_943_295)
    }),
    fixed(Math, "toDegrees", "double", "double", |_, a| {
        double(a.double(0)? * 57.295_779_513_082_32)
    }),
    fixed(Math, "floor", "double", "double", |_, a| double(a.double(0)?.floor())),
    fixed(Math, "ceil", "double", "double", |_, a| double(a.double(0)?.ceil())),
    fixed(Math, "rint", "double", "double", |_, a| {
        double(a.double(0)?.round_ties_even())
    }),
    fixed(Math, "signum", "double", "double", |_, a| {
        let value = a.double(0)?;
        double(if value == 0.0 || value.is_nan() {
            value
        } else {
            value.signum()
        })
    }),
    fixed(Math, "round", "double", "long", |_, a| {
        let value = a.double(0)?;
        // Rounds to the nearest integer, halves up. Adding 0.5 first would round 0.49999999999999994 to 1.
        let floor = value.floor();
        let rounded = if value - floor >= 0.5 { floor + 1.0 } else { floor };
        Ok(Value::Prim(convert(Prim::Double(rounded), Kind::Long)))
    }),
    fixed(Math, "round", "float", "int", |_, a| {
        let value = f64::from(a.float(0)?);
        let floor = value.floor();
        let rounded = if value - floor >= 0.5 { floor + 1.0 } else { floor };
        Ok(Value::Prim(convert(Prim::Double(rounded), Kind::Int)))
    }),
    fixed(Math, "floorMod", "int,int", "int", |m, a| match a.int(1)? {
        0 => m.throw(Class::Arithmetic, "/ by zero"),
        by => {
            let rest = a.int(0)?.wrapping_rem(by);
            Ok(Value::int(if rest != 0 && (rest < 0) != (by < 0) {
                rest + by
            } else {
                rest
            }))
        }
    }),
    fixed(Math, "floorMod", "long,long", "long", |m, a| match a.long(1)? {
        0 => m.throw(Class::Arithmetic, "/ by zero"),
        by => {
            let rest = a.long(0)?.wrapping_rem(by);
            Ok(Value::long(if rest != 0 && (rest < 0) != (by < 0) {
                rest + by
            } else {
                rest
            }))
        }
    }),
    fixed(Math, "floorDiv", "int,int", "int", |m, a| match a.int(1)? {
        0 => m.throw(Class::Arithmetic, "/ by zero"),
        by => {
            let (x, whole) = (a.int(0)?, a.int(0)?.wrapping_div(by));
            let exact = whole.wrapping_mul(by) == x;
            Ok(Value::int(if !exact && (x < 0) != (by < 0) {
                whole - 1
            } else {
                whole
            }))
        }
    }),
    fixed(Math, "floorDiv", "long,long", "long", |m, a| match a.long(1)? {
        0 => m.throw(Class::Arithmetic, "/ by zero"),
        by => {
            let (x, whole) = (a.long(0)?, a.long(0)?.wrapping_div(by));
            let exact = whole.wrapping_mul(by) == x;
            Ok(Value::long(if !exact && (x < 0) != (by < 0) {
                whole - 1
            } else {
                whole
            }))
        }
    }),
    fixed(Math, "addExact", "int,int", "int", |m, a| {
        let value = a.int(0)?.checked_add(a.int(1)?).map(Prim::Int);
        overflow(m, value, "integer")
    }),
    fixed(Math, "addExact", "long,long", "long", |m, a| {
        let value = a.long(0)?.checked_add(a.long(1)?).map(Prim::Long);
        overflow(m, value, "long")
    }),
    fixed(Math, "subtractExact", "int,int", "int", |m, a| {
        let value = a.int(0)?.checked_sub(a.int(1)?).map(Prim::Int);
        overflow(m, value, "integer")
    }),
    fixed(Math, "subtractExact", "long,long", "long", |m, a| {
        let value = a.long(0)?.checked_sub(a.long(1)?).map(Prim::Long);
        overflow(m, value, "long")
    }),
    fixed(Math, "multiplyExact", "int,int", "int", |m, a| {
        let value = a.int(0)?.checked_mul(a.int(1)?).map(Prim::Int);
        overflow(m, value, "integer")
    }),
    fixed(Math, "multiplyExact", "long,long", "long", |m, a| {
        let value = a.long(0)?.checked_mul(a.long(1)?).map(Prim::Long);
        overflow(m, value, "long")
    }),
    fixed(Math, "toIntExact", "long", "int", |m, a| {
        let value = i32::try_from(a.long(0)?).ok().map(Prim::Int);
        overflow(m, value, "integer")
    }),
];

/// The cube root to the last bit of Java's, which is that of fdlibm (`java.lang.FdLibm.Cbrt`): an estimate from the exponent, a rational
/// correction to 23 bits, and one step of Newton's method on its first 20 bits.
fn cube_root(x: f64) -> f64 {
    /// Exponents' offsets of the estimate, in the high word of a double; the second one for subnormal numbers times 2⁵⁴.
    const OFFSETS: [u64; 2] = [715_094_163, 696_219_795];
    const TWO_54: f64 = 18_014_398_509_481_984.0;
    if x == 0.0 || !x.is_finite() {
        return x + x;
    }
    let with_high = |number: f64, high: u64| f64::from_bits(high << 32 | (number.to_bits() & 0xffff_ffff));
    let high = |number: f64| number.to_bits() >> 32;
    let size = x.abs();
    let mut root = if size.is_normal() {
        with_high(0.0, high(size) / 3 + OFFSETS[0])
    } else {
        with_high(size * TWO_54, high(size * TWO_54) / 3 + OFFSETS[1])
    };
    let error = root * root / size;
    let sum = 19.0 / 35.0 + error * root;
    root *= 5.0 / 14.0 + (45.0 / 28.0) / (sum + 99.0 / 70.0 + (-864.0 / 1225.0) / sum);
    root = with_high(0.0, high(root) + 1);
    let quotient = size / (root * root);
    let step = (quotient - root) / (root + root + quotient);
    (root + root * step).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    /// Bits of numbers and of what `Math.cbrt` of OpenJDK 17 makes of them.
    #[test]
    fn cube_roots_are_javas_to_the_last_bit() {
        for (number, root) in [
            (0x4000000000000000, 0x3ff428a2f98d728b),
            (0x4008000000000000, 0x3ff7137449123ef6),
            (0x4024000000000000, 0x40013c484138704f),
            (0x3fb999999999999a, 0x3fddb4c7760bcff3),
            (0xc016000000000000, 0xbffc3e27449db536),
            (0x000012688b70e62b, 0x2a7a9d1b0b5d7427),
            (0x0000000000000001, 0x2990000000000000),
            (0x7e37e43c8800759c, 0x54b249ad2594c37d),
            (0xbb0359bf2d35cb58, 0xbe4b0f6a571b677d),
            (0x16981a439ca01ce0, 0x32271bdc239a1010),
            (0x7d28d914f1e9dbca, 0x54575839a99cd5af),
            (0x763af69bd3890947, 0x5207fd375451ea97),
        ] {
            assert_eq!(cube_root(f64::from_bits(number)).to_bits(), root, "{number:x}");
        }
        assert!(cube_root(f64::NAN).is_nan());
        assert_eq!(cube_root(-0.0).to_bits(), (-0.0_f64).to_bits());
    }
}
