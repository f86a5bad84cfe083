//! Copies and comparisons of arrays: `java.util.Arrays`.

use super::collection::{array_text, sort_array};
use super::{Arguments, Method, collection, fixed};
use crate::class::Class;
use crate::class::Class::Arrays;
use crate::limits::VALUE_BYTES;
use crate::machine::{Machine, Run};
use crate::value::{Handle, Object, Prim, Value};

macro_rules! of_kinds {
    ($($array:literal $copied:literal $ranged:literal $filled:literal $both:literal $zero:expr,)*) => {
        pub(super) const METHODS: &[Method] = &[
            $(
                fixed(Arrays, "copyOf", $copied, $array, |m, a| {
                    let Ok(length) = usize::try_from(a.int(1)?) else {
                        return m.throw(Class::NegativeSize, a.int(1)?.to_string());
                    };
                    copied(m, a, 0, length, $zero)
                }),
                fixed(Arrays, "copyOfRange", $ranged, $array, |m, a| ranged(m, a, $zero)),
                fixed(Arrays, "fill", $filled, "void", fill),
                fixed(Arrays, "equals", $both, "boolean", equals),
                fixed(Arrays, "hashCode", $array, "int", hash),
            )*
            fixed(Arrays, "sort", "byte[]", "void", sort_array),
            fixed(Arrays, "sort", "short[]", "void", sort_array),
            fixed(Arrays, "sort", "float[]", "void", sort_array),
            fixed(Arrays, "toString", "byte[]", "String", array_text),
            fixed(Arrays, "toString", "short[]", "String", array_text),
            fixed(Arrays, "toString", "float[]", "String", array_text),
            fixed(Arrays, "toString", "boolean[]", "String", array_text),
        ];
    };
}

of_kinds! {
    "byte[]" "byte[],int" "byte[],int,int" "byte[],byte" "byte[],byte[]" Value::Prim(Prim::Byte(0)),
    "short[]" "short[],int" "short[],int,int" "short[],short" "short[],short[]" Value::Prim(Prim::Short(0)),
    "char[]" "char[],int" "char[],int,int" "char[],char" "char[],char[]" Value::Prim(Prim::Char(0)),
    "int[]" "int[],int" "int[],int,int" "int[],int" "int[],int[]" Value::int(0),
    "long[]" "long[],int" "long[],int,int" "long[],long" "long[],long[]" Value::long(0),
    "float[]" "float[],int" "float[],int,int" "float[],float" "float[],float[]" Value::Prim(Prim::Float(0.0)),
    "double[]" "double[],int" "double[],int,int" "double[],double" "double[],double[]" Value::Prim(Prim::Double(0.0)),
    "boolean[]" "boolean[],int" "boolean[],int,int" "boolean[],boolean" "boolean[],boolean[]" Value::boolean(false),
    "T[]" "T[],int" "T[],int,int" "Object[],Object" "Object[],Object[]" Value::Null,
}

fn copied(m: &mut Machine<'_>, a: &[Value], from: usize, length: usize, zero: Value) -> Run<Value> {
    let of = collection(m, a, 0)?;
    m.allocate((length as u64).saturating_mul(VALUE_BYTES))?;
    m.step(length)?;
    let mut items: Vec<Value> = match m.object(of)? {
        Object::Array { items } => items.iter().skip(from).take(length).cloned().collect(),
        _ => return Machine::fault("an array was expected"),
    };
    items.resize(length, zero);
    m.make(Object::Array { items })
}

fn ranged(m: &mut Machine<'_>, a: &[Value], zero: Value) -> Run<Value> {
    let (from, to) = (a.int(1)?, a.int(2)?);
    if from > to {
        return m.throw(Class::IllegalArgument, format!("{from} > {to}"));
    }
    let of = collection(m, a, 0)?;
    let size = m.size(of)?;
    match usize::try_from(from) {
        Ok(start) if start <= size => {
            let length = usize::try_from(i64::from(to) - i64::from(from)).unwrap_or(0);
            copied(m, a, start, length, zero)
        }
        _ => m.throw(
            Class::ArrayIndex,
            format!("arraycopy: source index {from} out of bounds for length {size}"),
        ),
    }
}

fn fill(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let of = collection(m, a, 0)?;
    let size = m.size(of)?;
    m.step(size)?;
    if let Object::Array { items } = m.object_mut(of)? {
        items.fill(a.value(1));
    }
    Ok(Value::Null)
}

fn both(a: &[Value]) -> Option<(Handle, Handle)> {
    match (a.first(), a.get(1)) {
        (Some(Value::Ref(x)), Some(Value::Ref(y))) => Some((*x, *y)),
        _ => None,
    }
}

fn equals(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let Some((x, y)) = both(a) else {
        let nulls = a.iter().filter(|value| matches!(value, Value::Null)).count();
        return Ok(Value::boolean(nulls == 2));
    };
    let (x, y) = (m.elements(x)?, m.elements(y)?);
    if x.len() != y.len() {
        return Ok(Value::boolean(false));
    }
    for (x, y) in x.iter().zip(&y) {
        if !m.equal(x, y)? {
            return Ok(Value::boolean(false));
        }
    }
    Ok(Value::boolean(true))
}

fn hash(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let Value::Ref(of) = a.value(0) else {
        return Ok(Value::int(0));
    };
    let mut hash = 1_i32;
    for item in m.elements(of)? {
        hash = hash.wrapping_mul(31).wrapping_add(m.hash(&item)?);
    }
    Ok(Value::int(hash))
}
