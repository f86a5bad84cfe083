//! `java.util.Random`, `Math.random()` and random UUIDs. Without a seed of the body's own they draw from the call's.

use super::{Arguments, Method, constructor, fixed, instance};
use crate::class::Class;
use crate::class::Class::{Math, Random as Class_, Uuid};
use crate::machine::{Machine, Run};
use crate::value::{Object, Plain, Prim, Random, Value};

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
        Ok(Value::Prim(Prim::Double(Random::unit(m.random() >> 11))))
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
