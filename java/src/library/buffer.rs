//! `ByteBuffer`, and texts of bytes.

use super::{Arguments, Method, constructor, count, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{ByteBuffer, String as Text};
use crate::limits::VALUE_BYTES;
use crate::machine::buffer::{buffer, of_bytes, remaining, slice, window};
use crate::machine::{Machine, Run};
use crate::value::{Buffer, Handle, Object, Prim, Value, utf8};

pub(super) const METHODS: &[Method] = &[
    fixed(ByteBuffer, "wrap", "byte[]", "ByteBuffer", |m, a| {
        let content = super::collection(m, a, 0)?;
        let length = m.size(content)?;
        window(m, content, 0, length, length)
    }),
    fixed(ByteBuffer, "wrap", "byte[],int,int", "ByteBuffer", |m, a| {
        let content = super::collection(m, a, 0)?;
        let (from, length) = range(m, a, 1, content)?;
        let capacity = m.size(content)?;
        window(m, content, from, from + length, capacity)
    }),
    fixed(ByteBuffer, "allocate", "int", "ByteBuffer", |m, a| {
        let Ok(length) = usize::try_from(a.int(0)?) else {
            let message = format!("capacity < 0: ({} < 0)", a.int(0)?);
            return m.throw(Class::IllegalArgument, message);
        };
        m.allocate(length as u64)?;
        m.step(length / 8)?;
        of_bytes(m, vec![0; length])
    }),
    instance(ByteBuffer, "remaining", "", "int", |m, a| {
        let buffer = buffer(m, a.handle(0)?)?;
        Ok(count(buffer.limit - buffer.position))
    }),
    instance(ByteBuffer, "hasRemaining", "", "boolean", |m, a| {
        let buffer = buffer(m, a.handle(0)?)?;
        Ok(Value::boolean(buffer.position < buffer.limit))
    }),
    instance(ByteBuffer, "position", "", "int", |m, a| {
        Ok(count(buffer(m, a.handle(0)?)?.position))
    }),
    instance(ByteBuffer, "limit", "", "int", |m, a| {
        Ok(count(buffer(m, a.handle(0)?)?.limit))
    }),
    instance(ByteBuffer, "capacity", "", "int", |m, a| {
        Ok(count(buffer(m, a.handle(0)?)?.capacity))
    }),
    instance(ByteBuffer, "isReadOnly", "", "boolean", |m, a| {
        Ok(Value::boolean(buffer(m, a.handle(0)?)?.is_read_only))
    }),
    instance(ByteBuffer, "hasArray", "", "boolean", |m, a| {
        Ok(Value::boolean(!buffer(m, a.handle(0)?)?.is_read_only))
    }),
    instance(ByteBuffer, "position", "int", "ByteBuffer", |m, a| {
        let (to, limit) = (a.int(1)?, buffer(m, a.handle(0)?)?.limit);
        match usize::try_from(to) {
            Ok(position) if position <= limit => changed(m, a, |buffer| buffer.position = position),
            Ok(_) => m.throw(Class::IllegalArgument, format!("newPosition > limit: ({to} > {limit})")),
            Err(_) => m.throw(Class::IllegalArgument, format!("newPosition < 0: ({to} < 0)")),
        }
    }),
    instance(ByteBuffer, "limit", "int", "ByteBuffer", |m, a| {
        let (to, capacity) = (a.int(1)?, buffer(m, a.handle(0)?)?.capacity);
        match usize::try_from(to) {
            Ok(limit) if limit <= capacity => changed(m, a, |buffer| {
                buffer.limit = limit;
                buffer.position = buffer.position.min(limit);
            }),
            Ok(_) => m.throw(
                Class::IllegalArgument,
                format!("newLimit > capacity: ({to} > {capacity})"),
            ),
            Err(_) => m.throw(Class::IllegalArgument, format!("newLimit < 0: ({to} < 0)")),
        }
    }),
    instance(ByteBuffer, "flip", "", "ByteBuffer", |m, a| {
        changed(m, a, |buffer| {
            buffer.limit = buffer.position;
            buffer.position = 0;
        })
    }),
    instance(ByteBuffer, "rewind", "", "ByteBuffer", |m, a| {
        changed(m, a, |buffer| buffer.position = 0)
    }),
    instance(ByteBuffer, "clear", "", "ByteBuffer", |m, a| {
        changed(m, a, |buffer| {
            buffer.position = 0;
            buffer.limit = buffer.capacity;
        })
    }),
    instance(ByteBuffer, "duplicate", "", "ByteBuffer", |m, a| {
        let buffer = buffer(m, a.handle(0)?)?;
        m.make(Object::Buffer(buffer))
    }),
    instance(ByteBuffer, "asReadOnlyBuffer", "", "ByteBuffer", |m, a| {
        let buffer = buffer(m, a.handle(0)?)?;
        m.make(Object::Buffer(Buffer {
            is_read_only: true,
            ..buffer
        }))
    }),
    instance(ByteBuffer, "slice", "", "ByteBuffer", |m, a| {
        let buffer = buffer(m, a.handle(0)?)?;
        let left = buffer.limit - buffer.position;
        m.make(Object::Buffer(Buffer {
            start: buffer.start + buffer.position,
            position: 0,
            limit: left,
            capacity: left,
            ..buffer
        }))
    }),
    instance(ByteBuffer, "array", "", "byte[]", |m, a| {
        let buffer = writable(m, a)?;
        if let Object::Bytes(bytes) = m.object_mut(buffer.content)? {
            let bytes = std::mem::take(bytes);
            m.allocate(bytes.len() as u64 * VALUE_BYTES)?;
            m.step(bytes.len())?;
            let items = bytes.into_iter().map(byte_value).collect();
            *m.object_mut(buffer.content)? = Object::Array { items };
        }
        Ok(Value::Ref(buffer.content))
    }),
    instance(ByteBuffer, "arrayOffset", "", "int", |m, a| {
        Ok(count(writable(m, a)?.start))
    }),
    instance(ByteBuffer, "get", "", "byte", |m, a| {
        Ok(byte_value(one(number(m, a, None, 1)?)))
    }),
    instance(ByteBuffer, "get", "int", "byte", |m, a| {
        Ok(byte_value(one(number(m, a, Some(a.int(1)?), 1)?)))
    }),
    instance(ByteBuffer, "get", "byte[]", "ByteBuffer", |m, a| {
        let into = super::collection(m, a, 1)?;
        let length = m.size(into)?;
        get(m, a, into, 0, length)
    }),
    instance(ByteBuffer, "get", "byte[],int,int", "ByteBuffer", |m, a| {
        let into = super::collection(m, a, 1)?;
        let (from, length) = range(m, a, 2, into)?;
        get(m, a, into, from, length)
    }),
    instance(ByteBuffer, "put", "byte", "ByteBuffer", |m, a| {
        put(m, a, None, &[unsigned(a, 1)?])
    }),
    instance(ByteBuffer, "put", "int,byte", "ByteBuffer", |m, a| {
        put(m, a, Some(a.int(1)?), &[unsigned(a, 2)?])
    }),
    instance(ByteBuffer, "put", "byte[]", "ByteBuffer", |m, a| {
        let from = super::collection(m, a, 1)?;
        let bytes = array_bytes(m, from)?;
        put(m, a, None, &bytes)
    }),
    instance(ByteBuffer, "put", "byte[],int,int", "ByteBuffer", |m, a| {
        let from = super::collection(m, a, 1)?;
        let (start, length) = range(m, a, 2, from)?;
        let bytes = array_bytes(m, from)?;
        put(m, a, None, bytes.get(start..start + length).unwrap_or_default())
    }),
    instance(ByteBuffer, "put", "ByteBuffer", "ByteBuffer", |m, a| {
        let from = super::collection(m, a, 1)?;
        let bytes = remaining(m, from)?;
        let put = put(m, a, None, &bytes)?;
        read_out(m, from)?;
        Ok(put)
    }),
    instance(ByteBuffer, "getShort", "", "short", |m, a| {
        Ok(short(number(m, a, None, 2)?))
    }),
    instance(ByteBuffer, "getShort", "int", "short", |m, a| {
        Ok(short(number(m, a, Some(a.int(1)?), 2)?))
    }),
    instance(ByteBuffer, "getChar", "", "char", |m, a| {
        Ok(char_value(number(m, a, None, 2)?))
    }),
    instance(ByteBuffer, "getInt", "", "int", |m, a| {
        Ok(Value::int(int(number(m, a, None, 4)?)))
    }),
    instance(ByteBuffer, "getInt", "int", "int", |m, a| {
        Ok(Value::int(int(number(m, a, Some(a.int(1)?), 4)?)))
    }),
    instance(ByteBuffer, "getLong", "", "long", |m, a| {
        Ok(Value::long(number(m, a, None, 8)?.cast_signed()))
    }),
    instance(ByteBuffer, "getLong", "int", "long", |m, a| {
        Ok(Value::long(number(m, a, Some(a.int(1)?), 8)?.cast_signed()))
    }),
    instance(ByteBuffer, "getFloat", "", "float", |m, a| {
        let bits = int(number(m, a, None, 4)?).cast_unsigned();
        Ok(Value::Prim(Prim::Float(f32::from_bits(bits))))
    }),
    instance(ByteBuffer, "getFloat", "int", "float", |m, a| {
        let bits = int(number(m, a, Some(a.int(1)?), 4)?).cast_unsigned();
        Ok(Value::Prim(Prim::Float(f32::from_bits(bits))))
    }),
    instance(ByteBuffer, "getDouble", "", "double", |m, a| {
        Ok(Value::Prim(Prim::Double(f64::from_bits(number(m, a, None, 8)?))))
    }),
    instance(ByteBuffer, "getDouble", "int", "double", |m, a| {
        Ok(Value::Prim(Prim::Double(f64::from_bits(number(
            m,
            a,
            Some(a.int(1)?),
            8,
        )?))))
    }),
    instance(ByteBuffer, "putShort", "short", "ByteBuffer", |m, a| {
        let [.., high, low] = a.int(1)?.to_be_bytes();
        put(m, a, None, &[high, low])
    }),
    instance(ByteBuffer, "putChar", "char", "ByteBuffer", |m, a| {
        put(m, a, None, &a.char(1)?.to_be_bytes())
    }),
    instance(ByteBuffer, "putInt", "int", "ByteBuffer", |m, a| {
        put(m, a, None, &a.int(1)?.to_be_bytes())
    }),
    instance(ByteBuffer, "putInt", "int,int", "ByteBuffer", |m, a| {
        put(m, a, Some(a.int(1)?), &a.int(2)?.to_be_bytes())
    }),
    instance(ByteBuffer, "putLong", "long", "ByteBuffer", |m, a| {
        put(m, a, None, &a.long(1)?.to_be_bytes())
    }),
    instance(ByteBuffer, "putLong", "int,long", "ByteBuffer", |m, a| {
        put(m, a, Some(a.int(1)?), &a.long(2)?.to_be_bytes())
    }),
    instance(ByteBuffer, "putFloat", "float", "ByteBuffer", |m, a| {
        put(m, a, None, &a.float(1)?.to_bits().to_be_bytes())
    }),
    instance(ByteBuffer, "putDouble", "double", "ByteBuffer", |m, a| {
        put(m, a, None, &a.double(1)?.to_bits().to_be_bytes())
    }),
    instance(Text, "getBytes", "", "byte[]", |m, a| {
        let units = text(m, a, 0)?;
        m.step(units.len() / 4)?;
        byte_array(m, utf8(&units).as_bytes())
    }),
    constructor(Text, "byte[]", |m, a| {
        let from = super::collection(m, a, 0)?;
        let bytes = array_bytes(m, from)?;
        m.string(&String::from_utf8_lossy(&bytes))
    }),
    constructor(Text, "byte[],int,int", |m, a| {
        let from = super::collection(m, a, 0)?;
        let (start, length) = text_range(m, a, from)?;
        let bytes = array_bytes(m, from)?;
        m.string(&String::from_utf8_lossy(
            bytes.get(start..start + length).unwrap_or_default(),
        ))
    }),
    constructor(Text, "char[]", |m, a| {
        let from = super::collection(m, a, 0)?;
        let units = chars(m, from)?;
        m.text(&units)
    }),
    constructor(Text, "char[],int,int", |m, a| {
        let from = super::collection(m, a, 0)?;
        let (start, length) = text_range(m, a, from)?;
        let units = chars(m, from)?;
        m.text(units.get(start..start + length).unwrap_or_default())
    }),
];

pub(super) fn byte_value(byte: u8) -> Value {
    Value::Prim(Prim::Byte(byte.cast_signed()))
}

fn one(bits: u64) -> u8 {
    u8::try_from(bits & 0xff).unwrap_or(0)
}

fn short(bits: u64) -> Value {
    Value::Prim(Prim::Short(u16::try_from(bits & 0xffff).unwrap_or(0).cast_signed()))
}

fn char_value(bits: u64) -> Value {
    Value::Prim(Prim::Char(u16::try_from(bits & 0xffff).unwrap_or(0)))
}

fn int(bits: u64) -> i32 {
    u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0).cast_signed()
}

fn unsigned(a: &[Value], at: usize) -> Run<u8> {
    match a.value(at).prim() {
        Some(Prim::Byte(byte)) => Ok(byte.cast_unsigned()),
        _ => Machine::fault("a byte was expected"),
    }
}

/// A new array of bytes.
pub(super) fn byte_array(m: &mut Machine<'_>, bytes: &[u8]) -> Run<Value> {
    m.allocate(bytes.len() as u64 * VALUE_BYTES)?;
    m.step(bytes.len())?;
    let items = bytes.iter().copied().map(byte_value).collect();
    m.make(Object::Array { items })
}

/// The bytes of an array.
pub(super) fn array_bytes(m: &mut Machine<'_>, of: Handle) -> Run<Vec<u8>> {
    let length = m.size(of)?;
    m.step(length)?;
    m.allocate(length as u64)?;
    match m.object(of)? {
        Object::Bytes(bytes) => Ok(bytes.clone()),
        Object::Array { items } => Ok(items
            .iter()
            .filter_map(|item| match item.prim() {
                Some(Prim::Byte(byte)) => Some(byte.cast_unsigned()),
                _ => None,
            })
            .collect()),
        _ => Machine::fault("an array of bytes was expected"),
    }
}

fn chars(m: &mut Machine<'_>, of: Handle) -> Run<Vec<u16>> {
    let items = m.elements(of)?;
    let unit = |item: &Value| match item.prim() {
        Some(Prim::Char(unit)) => Some(unit),
        _ => None,
    };
    Ok(items.iter().filter_map(unit).collect())
}

fn writable(m: &mut Machine<'_>, a: &[Value]) -> Run<Buffer> {
    match buffer(m, a.handle(0)?)? {
        Buffer { is_read_only: true, .. } => m.throw_with(Class::ReadOnlyBuffer, None),
        buffer => Ok(buffer),
    }
}

fn changed(m: &mut Machine<'_>, a: &[Value], change: impl FnOnce(&mut Buffer)) -> Run<Value> {
    match m.object_mut(a.handle(0)?)? {
        Object::Buffer(buffer) => change(buffer),
        _ => return Machine::fault("a ByteBuffer was expected"),
    }
    Ok(a.value(0))
}

/// A range of an array: its start, and its length, which the two arguments from `at` on give.
fn range(m: &mut Machine<'_>, a: &[Value], at: usize, of: Handle) -> Run<(usize, usize)> {
    let (from, length, size) = (a.int(at)?, a.int(at + 1)?, m.size(of)?);
    match (usize::try_from(from), usize::try_from(length)) {
        (Ok(start), Ok(count)) if start.saturating_add(count) <= size => Ok((start, count)),
        _ => m.throw(
            Class::IndexOutOfBounds,
            format!("Range [{from}, {from} + {length}) out of bounds for length {size}"),
        ),
    }
}

fn text_range(m: &mut Machine<'_>, a: &[Value], of: Handle) -> Run<(usize, usize)> {
    let (from, length, size) = (a.int(1)?, a.int(2)?, m.size(of)?);
    match (usize::try_from(from), usize::try_from(length)) {
        (Ok(start), Ok(count)) if start.saturating_add(count) <= size => Ok((start, count)),
        _ => m.throw(
            Class::StringIndex,
            format!("offset {from}, count {length}, length {size}"),
        ),
    }
}

/// Where a number of so many bytes is: at an index, or at the position, which moves behind it.
fn place(m: &mut Machine<'_>, handle: Handle, at: Option<i32>, size: usize, fails: Class) -> Run<usize> {
    let of = buffer(m, handle)?;
    let Some(at) = at else {
        if of.limit - of.position < size {
            return m.throw_with(fails, None);
        }
        if let Object::Buffer(buffer) = m.object_mut(handle)? {
            buffer.position += size;
        }
        return Ok(of.position);
    };
    match usize::try_from(at) {
        Ok(start) if start.saturating_add(size) <= of.limit => Ok(start),
        _ => m.throw_with(Class::IndexOutOfBounds, None),
    }
}

fn number(m: &mut Machine<'_>, a: &[Value], at: Option<i32>, size: usize) -> Run<u64> {
    let handle = a.handle(0)?;
    let from = place(m, handle, at, size, Class::BufferUnderflow)?;
    let of = buffer(m, handle)?;
    let bytes = slice(m, &of, from, size)?;
    Ok(bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

fn get(m: &mut Machine<'_>, a: &[Value], into: Handle, from: usize, length: usize) -> Run<Value> {
    let handle = a.handle(0)?;
    let at = place(m, handle, None, length, Class::BufferUnderflow)?;
    let of = buffer(m, handle)?;
    let bytes = slice(m, &of, at, length)?;
    m.step(length)?;
    if let Object::Array { items } = m.object_mut(into)?
        && let Some(places) = items.get_mut(from..from + length)
    {
        for (place, byte) in places.iter_mut().zip(bytes) {
            *place = byte_value(byte);
        }
    }
    Ok(a.value(0))
}

fn put(m: &mut Machine<'_>, a: &[Value], at: Option<i32>, bytes: &[u8]) -> Run<Value> {
    let handle = a.handle(0)?;
    writable(m, a)?;
    let from = place(m, handle, at, bytes.len(), Class::BufferOverflow)?;
    let of = buffer(m, handle)?;
    m.step(bytes.len() / 8)?;
    let range = of.start + from..of.start + from + bytes.len();
    match m.object_mut(of.content)? {
        Object::Bytes(all) => {
            if let Some(places) = all.get_mut(range) {
                places.copy_from_slice(bytes);
            }
        }
        Object::Array { items } => {
            for (place, byte) in items.get_mut(range).unwrap_or_default().iter_mut().zip(bytes) {
                *place = byte_value(*byte);
            }
        }
        _ => return Machine::fault("a buffer without its bytes"),
    }
    Ok(a.value(0))
}

/// Moves the position behind the last byte.
pub(super) fn read_out(m: &mut Machine<'_>, handle: Handle) -> Run<()> {
    if let Object::Buffer(buffer) = m.object_mut(handle)? {
        buffer.position = buffer.limit;
    }
    Ok(())
}
