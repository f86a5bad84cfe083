//! `java.util.Random`, `Math.random()` and random UUIDs. Without a seed of the body's own they draw from the call's.

use super::{Arguments, Method, constructor, fixed, instance};
use crate::class::Class;
use crate::class::Class::{Math, Random as Class_, Uuid};
use crate::run::{Machine, Run};
use crate::value::{Object, Plain, Prim, Value};

const MASK: u64 = (1 << 48) - 1;
const MULTIPLIER: u64 = 0x5_deec_e66d;
/// 2⁻⁵³
const UNIT: f64 = 1.110_223_024_625_156_5e-16;

/// The linear congruential generator that Java's documentation prescribes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    state: u64,
    /// The second one of a pair of normally distributed numbers.
    gaussian: Option<f64>,
}

impl Random {
    fn seeded(seed: i64) -> Self {
        Self {
            state: (seed.cast_unsigned() ^ MULTIPLIER) & MASK,
            gaussian: None,
        }
    }

    fn next(&mut self, bits: u32) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(0xb) & MASK;
        u32::try_from(self.state >> (48 - bits)).unwrap_or(0).cast_signed()
    }

    fn int(&mut self) -> i32 {
        self.next(32)
    }

    fn below(&mut self, bound: i32) -> i32 {
        if bound & bound.wrapping_sub(1) == 0 {
            let scaled = i64::from(bound).wrapping_mul(i64::from(self.next(31))) >> 31;
            return i32::try_from(scaled).unwrap_or(0);
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            // An overflow marks the last, incomplete run of remainders.
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
        }
    }

    fn between(&mut self, origin: i32, bound: i32) -> i32 {
        let mut drawn = self.int();
        let width = bound.wrapping_sub(origin);
        let last = width.wrapping_sub(1);
        if width & last == 0 {
            return (drawn & last).wrapping_add(origin);
        }
        if width > 0 {
            loop {
                let half = (drawn.cast_unsigned() >> 1).cast_signed();
                let rest = half % width;
                if half.wrapping_add(last).wrapping_sub(rest) >= 0 {
                    return rest.wrapping_add(origin);
                }
                drawn = self.int();
            }
        }
        while drawn < origin || drawn >= bound {
            drawn = self.int();
        }
        drawn
    }

    fn long(&mut self) -> i64 {
        let (high, low) = (self.next(32), self.next(32));
        (i64::from(high) << 32).wrapping_add(i64::from(low))
    }

    fn long_between(&mut self, origin: i64, bound: i64) -> i64 {
        let mut drawn = self.long();
        let width = bound.wrapping_sub(origin);
        let last = width.wrapping_sub(1);
        if width & last == 0 {
            return (drawn & last).wrapping_add(origin);
        }
        if width > 0 {
            loop {
                let half = (drawn.cast_unsigned() >> 1).cast_signed();
                let rest = half % width;
                if half.wrapping_add(last).wrapping_sub(rest) >= 0 {
                    return rest.wrapping_add(origin);
                }
                drawn = self.long();
            }
        }
        while drawn < origin || drawn >= bound {
            drawn = self.long();
        }
        drawn
    }

    fn double(&mut self) -> f64 {
        let bits = (i64::from(self.next(26)) << 27) + i64::from(self.next(27));
        unit(bits.cast_unsigned())
    }

    fn float(&mut self) -> f32 {
        fraction(self.next(24))
    }

    fn normal(&mut self) -> f64 {
        if let Some(kept) = self.gaussian.take() {
            return kept;
        }
        loop {
            let (x, y) = (2.0 * self.double() - 1.0, 2.0 * self.double() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * super::math::strict_log(square) / square).sqrt();
                self.gaussian = Some(y * factor);
                return x * factor;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
fn fraction(bits: i32) -> f32 {
    bits as f32 / 16_777_216.0
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn unit(bits: u64) -> f64 {
    bits as f64 * UNIT
}

pub(super) const METHODS: &[Method] = &[
    constructor(Class_, "", |m, _| {
        let seed = m.random().cast_signed();
        m.make(Object::Random(Random::seeded(seed)))
    }),
    constructor(Class_, "long", |m, a| {
        m.make(Object::Random(Random::seeded(a.long(0)?)))
    }),
    instance(Class_, "setSeed", "long", "void", |m, a| {
        *of(m, a)? = Random::seeded(a.long(1)?);
        Ok(Value::Null)
    }),
    instance(Class_, "nextInt", "", "int", |m, a| Ok(Value::int(of(m, a)?.int()))),
    instance(Class_, "nextInt", "int", "int", |m, a| match a.int(1)? {
        bound if bound > 0 => Ok(Value::int(of(m, a)?.below(bound))),
        _ => m.throw(Class::IllegalArgument, "bound must be positive"),
    }),
    instance(Class_, "nextInt", "int,int", "int", |m, a| {
        match (a.int(1)?, a.int(2)?) {
            (origin, bound) if origin < bound => Ok(Value::int(of(m, a)?.between(origin, bound))),
            _ => m.throw(Class::IllegalArgument, "bound must be greater than origin"),
        }
    }),
    instance(Class_, "nextLong", "", "long", |m, a| Ok(Value::long(of(m, a)?.long()))),
    instance(Class_, "nextLong", "long", "long", |m, a| match a.long(1)? {
        bound if bound > 0 => Ok(Value::long(of(m, a)?.long_between(0, bound))),
        _ => m.throw(Class::IllegalArgument, "bound must be positive"),
    }),
    instance(Class_, "nextLong", "long,long", "long", |m, a| {
        match (a.long(1)?, a.long(2)?) {
            (origin, bound) if origin < bound => Ok(Value::long(of(m, a)?.long_between(origin, bound))),
            _ => m.throw(Class::IllegalArgument, "bound must be greater than origin"),
        }
    }),
    instance(Class_, "nextDouble", "", "double", |m, a| {
        Ok(Value::Prim(Prim::Double(of(m, a)?.double())))
    }),
    instance(Class_, "nextFloat", "", "float", |m, a| {
        Ok(Value::Prim(Prim::Float(of(m, a)?.float())))
    }),
    instance(Class_, "nextBoolean", "", "boolean", |m, a| {
        Ok(Value::boolean(of(m, a)?.next(1) != 0))
    }),
    instance(Class_, "nextGaussian", "", "double", |m, a| {
        Ok(Value::Prim(Prim::Double(of(m, a)?.normal())))
    }),
    instance(Class_, "nextBytes", "byte[]", "void", |m, a| {
        let array = super::collection(m, a, 1)?;
        let length = m.size(array)?;
        m.step(length)?;
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            bytes.extend_from_slice(&of(m, a)?.int().to_le_bytes());
        }
        if let Object::Array { items } = m.object_mut(array)? {
            for (place, byte) in items.iter_mut().zip(bytes) {
                *place = super::buffer::byte_value(byte);
            }
        }
        Ok(Value::Null)
    }),
    fixed(Math, "random", "", "double", |m, _| {
        Ok(Value::Prim(Prim::Double(unit(m.random() >> 11))))
    }),
    fixed(Uuid, "randomUUID", "", "UUID", |m, _| {
        m.allocate(64)?;
        let bits = u128::from(m.random()) << 64 | u128::from(m.random());
        Ok(Value::plain(Plain::Uuid(versioned(bits, 4))))
    }),
];

/// The bits of a UUID of a version.
pub(super) fn versioned(bits: u128, version: u128) -> u128 {
    let rest = bits & !(0xf << 76) & !(0b11 << 62);
    rest | version << 76 | 0b10 << 62
}

fn of<'m>(m: &'m mut Machine<'_>, a: &[Value]) -> Run<&'m mut Random> {
    m.step(1)?;
    match m.object_mut(a.handle(0)?)? {
        Object::Random(random) => Ok(random),
        _ => Machine::fault("a Random was expected"),
    }
}
