//! Exceptions.

use super::{Arguments, Method, constructor, instance, text};
use crate::class::Class;
use crate::class::Class::Throwable;
use crate::machine::{Machine, Run};
use crate::value::{Object, Value};

pub(super) const METHODS: &[Method] = &[
    // Placeholders for the constructors of all exceptions; `constructor_of` substitutes the class.
    constructor(Throwable, "", |_, _| Machine::fault("an exception without a class")),
    constructor(Throwable, "String", |_, _| {
        Machine::fault("an exception without a class")
    }),
    instance(Throwable, "getMessage", "", "String", |m, a| {
        match m.object(a.handle(0)?)? {
            Object::Exception {
                message: Some(message), ..
            } => Ok(Value::Text(message.clone())),
            _ => Ok(Value::Null),
        }
    }),
];

/// Whether an exception class has the constructor of a placeholder row. Those of Cassandra's driver take a message.
pub(super) fn has(class: Class, parameters: &str) -> bool {
    // Those whose constructors take something else are made by methods only.
    let is_made_by_methods = class == Class::DriverFailure
        || class == Class::Parse
        || class == Class::PatternSyntax
        || class == Class::DateTimeParse
        || class.is(Class::IllegalFormat);
    let takes_message = class.is(Class::DriverFailure) || class == Class::DateTime;
    let takes_none = matches!(
        class,
        Class::BufferOverflow | Class::BufferUnderflow | Class::ReadOnlyBuffer
    );
    match parameters {
        _ if is_made_by_methods => false,
        "" => !takes_message,
        "String" => !takes_none,
        _ => true,
    }
}

fn made(m: &mut Machine<'_>, class: Class, a: &[Value]) -> Run<Value> {
    let message = match a.first() {
        Some(Value::Text(_)) => Some(text(m, a, 0)?),
        _ => None,
    };
    m.make(Object::Exception { class, message })
}

macro_rules! constructors {
    ($($class:ident)*) => {
        /// The constructors of one class of exception each: without a message, and with one.
        const ALL: &[(Class, [Method; 2])] = &[$((Class::$class, [
            constructor(Class::$class, "", |m, a| made(m, Class::$class, a)),
            constructor(Class::$class, "String", |m, a| made(m, Class::$class, a)),
        ])),*];
    };
}

constructors! {
    Throwable Exception Error RuntimeException IllegalArgument NumberFormat IllegalState Arithmetic NullPointer ClassCast
    IndexOutOfBounds StringIndex ArrayIndex NegativeSize Unsupported NoSuchElement ConcurrentModification StackOverflow
    CodecNotFound InvalidType ArrayStore DateTime BufferOverflow BufferUnderflow ReadOnlyBuffer
}

/// The constructor itself; for an exception, that of its class.
pub(super) fn constructor_of(class: Class, method: &'static Method) -> &'static Method {
    if method.class != Throwable {
        return method;
    }
    let own = ALL
        .iter()
        .find(|(own, _)| *own == class)
        .map(|(_, constructors)| constructors);
    own.and_then(|own| own.iter().find(|own| own.parameters == method.parameters))
        .unwrap_or(method)
}
