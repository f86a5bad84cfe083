//! The machine on which a body runs: its heap, its slots, and what it may take.
//!
//! The interpreter ([`crate::run`]) and the methods of Java's classes ([`crate::library`]) work on it, and it knows neither.

mod argument;
pub(crate) mod buffer;
pub(crate) mod decimal;
mod heap;
mod text;

use std::sync::Arc;

pub(crate) use self::argument::value_of;
use crate::class::Class;
use crate::datum::{Type, Types};
use crate::limits::{Failure, Limits};
use crate::value::{Handle, Object, Plain, Prim, Table, Text, Value, utf8};

/// The reason why a run stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An exception, which `catch` may handle.
    Thrown(Handle),
    /// A limit or a fault, which no `catch` handles.
    Failed(Failure),
}

pub(crate) type Run<T> = Result<T, Stop>;

/// The body of a method: from its receiver and arguments to its result.
pub(crate) type Body = fn(&mut Machine<'_>, &[Value]) -> Run<Value>;

/// The state of one run of a function.
pub(crate) struct Machine<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) types: &'a dyn Types,
    pub(crate) slots: Vec<Value>,
    pub(crate) held: Vec<Value>,
    heap: Vec<Object>,
    pub(crate) steps: u64,
    bytes: u64,
    boxes: u32,
    pub(crate) depth: u32,
    /// State of the generator of random numbers.
    random: u64,
    /// The types that `udfContext` can create.
    pub(crate) returns: &'a Type,
    pub(crate) parameters: &'a [(String, Type)],
}

/// Bytes charged for an object, besides its contents.
const OBJECT_BYTES: u64 = 64;
/// Maximum nesting of values that are compared, printed or returned, in levels.
const VALUE_LEVELS_MAX: u32 = 64;

impl<'a> Machine<'a> {
    pub(crate) fn new(
        limits: &'a Limits,
        types: &'a dyn Types,
        slots: usize,
        returns: &'a Type,
        parameters: &'a [(String, Type)],
    ) -> Self {
        Self {
            limits,
            types,
            slots: vec![Value::Null; slots],
            held: Vec::new(),
            heap: Vec::new(),
            steps: 0,
            bytes: 0,
            boxes: 0,
            depth: 0,
            random: limits.seed,
            returns,
            parameters,
        }
    }

    /// Counts steps: one for each node of the tree, and for each eight bytes or one element that a method reads.
    pub(crate) fn step(&mut self, steps: usize) -> Run<()> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.limits.steps_max {
            return Err(Stop::Failed(Failure::Steps {
                steps_max: self.limits.steps_max,
            }));
        }
        Ok(())
    }

    /// Counts allocated bytes; memory is freed only at the end of the run.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Run<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes_max {
            return Err(Stop::Failed(Failure::Bytes {
                bytes_max: self.limits.bytes_max,
            }));
        }
        Ok(())
    }

    pub(crate) fn fault<T>(what: &'static str) -> Run<T> {
        Err(Stop::Failed(Failure::Fault(what)))
    }

    pub(crate) fn make(&mut self, object: Object) -> Run<Value> {
        self.allocate(OBJECT_BYTES)?;
        let handle = Handle::try_from(self.heap.len()).unwrap_or(Handle::MAX);
        self.heap.push(object);
        Ok(Value::Ref(handle))
    }

    pub(crate) fn object(&self, handle: Handle) -> Run<&Object> {
        self.heap
            .get(handle as usize)
            .map_or_else(|| Self::fault("a reference without an object"), Ok)
    }

    pub(crate) fn object_mut(&mut self, handle: Handle) -> Run<&mut Object> {
        self.heap
            .get_mut(handle as usize)
            .map_or_else(|| Self::fault("a reference without an object"), Ok)
    }

    pub(crate) fn table(&self, handle: Handle) -> Run<&Table> {
        match self.object(handle)? {
            Object::Table(table) => Ok(table),
            _ => Self::fault("a table was expected"),
        }
    }

    /// Throws a new exception.
    pub(crate) fn throw<T>(&mut self, class: Class, message: impl AsRef<str>) -> Run<T> {
        let message: Text = message.as_ref().encode_utf16().collect();
        self.throw_with(class, Some(message))
    }

    pub(crate) fn throw_with<T>(&mut self, class: Class, message: Option<Text>) -> Run<T> {
        match self.make(Object::Exception { class, message })? {
            Value::Ref(handle) => Err(Stop::Thrown(handle)),
            _ => Self::fault("an exception was expected"),
        }
    }

    /// Boxes a primitive: a new box, unless Java caches this value.
    pub(crate) fn boxed(&mut self, value: Prim) -> Value {
        if value.is_cached() {
            return Value::Boxed(value, 0);
        }
        self.boxed_anew(value)
    }

    /// A box of its own.
    pub(crate) fn boxed_anew(&mut self, value: Prim) -> Value {
        self.boxes = self.boxes.wrapping_add(1).max(1);
        Value::Boxed(value, self.boxes)
    }

    /// 64 random bits (SplitMix64).
    pub(crate) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Runs `inner` one level deeper in a value.
    pub(crate) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        if self.depth >= VALUE_LEVELS_MAX {
            return self.throw_with(Class::StackOverflow, None);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn cast(&mut self, class: Class, value: Value) -> Run<Value> {
        if matches!(value, Value::Null) {
            return Ok(value);
        }
        let is = self.class_of(&value)?;
        if is.is(class) {
            return Ok(value);
        }
        let (is, class) = (is.full_name(), class.full_name());
        let both = "are in module java.base of loader 'bootstrap'";
        self.throw(
            Class::ClassCast,
            format!("class {is} cannot be cast to class {class} ({is} and {class} {both})"),
        )
    }

    /// The class and the message of an exception.
    pub(crate) fn exception(&self, handle: Handle) -> Run<(Class, Option<String>)> {
        match self.object(handle)? {
            Object::Exception { class, message } => Ok((*class, message.as_ref().map(|message| utf8(message)))),
            _ => Self::fault("an exception was expected"),
        }
    }
}

/// Whether two references are the same object.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) | (Value::Context, Value::Context) => true,
        (Value::Boxed(a, x), Value::Boxed(b, y)) => x == y && a.equals(*b),
        (Value::Text(a), Value::Text(b)) => Arc::ptr_eq(a, b),
        (Value::Plain(a), Value::Plain(b)) => match (&**a, &**b) {
            // Each constant of an enum is one object.
            (Plain::Constant(..), Plain::Constant(..)) => a == b,
            _ => Arc::ptr_eq(a, b),
        },
        (Value::Ref(a), Value::Ref(b)) => a == b,
        _ => false,
    }
}
