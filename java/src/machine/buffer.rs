//! Buffers of bytes in the heap.

use super::{Machine, Run};
use crate::value::{Buffer, Handle, Object, Prim, Value};

/// A new buffer over these bytes.
pub(crate) fn of_bytes(m: &mut Machine<'_>, bytes: Vec<u8>) -> Run<Value> {
    let length = bytes.len();
    match m.make(Object::Bytes(bytes))? {
        Value::Ref(content) => window(m, content, 0, length, length),
        _ => Machine::fault("an object was expected"),
    }
}

pub(crate) fn window(
    m: &mut Machine<'_>,
    content: Handle,
    position: usize,
    limit: usize,
    capacity: usize,
) -> Run<Value> {
    m.make(Object::Buffer(Buffer {
        content,
        start: 0,
        position,
        limit,
        capacity,
        is_read_only: false,
    }))
}

pub(crate) fn buffer(m: &Machine<'_>, handle: Handle) -> Run<Buffer> {
    match m.object(handle)? {
        Object::Buffer(buffer) => Ok(*buffer),
        _ => Machine::fault("a ByteBuffer was expected"),
    }
}

/// The bytes from the position to the limit, which the position stays before.
pub(crate) fn remaining(m: &mut Machine<'_>, handle: Handle) -> Run<Vec<u8>> {
    let of = buffer(m, handle)?;
    slice(m, &of, of.position, of.limit - of.position)
}

pub(crate) fn slice(m: &mut Machine<'_>, of: &Buffer, from: usize, length: usize) -> Run<Vec<u8>> {
    m.step(1 + length / 8)?;
    m.allocate(length as u64)?;
    let range = of.start + from..of.start + from + length;
    let found = match m.object(of.content)? {
        Object::Bytes(bytes) => bytes.get(range).map(<[u8]>::to_vec),
        Object::Array { items } => items.get(range).map(|items| {
            let byte = |item: &Value| match item.prim() {
                Some(Prim::Byte(byte)) => byte.cast_unsigned(),
                _ => 0,
            };
            items.iter().map(byte).collect()
        }),
        _ => None,
    };
    found.map_or_else(|| Machine::fault("a buffer without its bytes"), Ok)
}

/// `…[pos=0 lim=3 cap=3]`
pub(crate) fn shown(m: &Machine<'_>, handle: Handle) -> Run<String> {
    let of = buffer(m, handle)?;
    let class = if of.is_read_only {
        "HeapByteBufferR"
    } else {
        "HeapByteBuffer"
    };
    let (position, limit, capacity) = (of.position, of.limit, of.capacity);
    Ok(format!("java.nio.{class}[pos={position} lim={limit} cap={capacity}]"))
}
