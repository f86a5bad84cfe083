//! An argument as overload resolution sees it: its text, how well it fits a type, and its own type.

use super::Function;
use crate::types::{Assignment, CqlType, Native};
use std::fmt;

/// An argument of a call that is being resolved.
pub struct Argument<'a> {
    /// As messages quote it.
    pub text: String,
    /// Its own type; `None` for null, markers and other terms whose type depends on the receiver.
    pub natural: Option<CqlType>,
    /// How well it fits a type.
    fits: Fits<'a>,
    /// Whether it is a marker, or contains one that decides its type.
    pub is_marker: bool,
    /// The number of elements of a list literal, which may become a vector.
    pub elements: Option<u32>,
    /// What decides how functions of users, or `token`, take it, beside its type.
    pub form: Form,
}

/// The forms of arguments that do not fit all that their types fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Any other.
    #[default]
    Other,
    /// A call of a function whose result fits no frozen type ([`super::Function::returns_unfrozen`]).
    Unfrozen,
    /// A selector with a type hint. As a collection or a user-defined type it is no argument of users' functions.
    HintedSelector,
    /// The literal of a list, a set or a user-defined type.
    Literal,
    /// A frozen collection in a descending column. Functions do not know it as a collection.
    Descending,
}

enum Fits<'a> {
    Natural,
    Anything,
    Ask(Box<dyn Fn(&CqlType) -> Assignment + 'a>),
}

impl fmt::Debug for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.text, self.natural)
    }
}

impl<'a> Argument<'a> {
    /// A column, a call, or any other term of a known type.
    #[must_use]
    pub fn typed(text: impl Into<String>, natural: CqlType) -> Self {
        Self {
            text: text.into(),
            natural: Some(natural),
            fits: Fits::Natural,
            is_marker: false,
            elements: None,
            form: Form::Other,
        }
    }

    /// A marker.
    #[must_use]
    pub fn marker(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            natural: None,
            fits: Fits::Anything,
            is_marker: true,
            elements: None,
            form: Form::Other,
        }
    }

    /// A literal or any other term whose type depends on the receiver; `natural` is its type without a receiver
    /// ([`crate::types::preferred_type`]).
    pub fn open(text: impl Into<String>, natural: Option<CqlType>, fits: impl Fn(&CqlType) -> Assignment + 'a) -> Self {
        Self {
            text: text.into(),
            natural,
            fits: Fits::Ask(Box::new(fits)),
            is_marker: false,
            elements: None,
            form: Form::Other,
        }
    }

    /// Marks it as a list literal of this many elements.
    #[must_use]
    pub fn with_elements(mut self, elements: u32) -> Self {
        self.elements = Some(elements);
        self
    }

    /// How well it fits the type `expected` of an argument of `function`.
    pub(super) fn fit_of(&self, function: &Function, expected: &CqlType) -> Assignment {
        if !function.is_user_defined() {
            return self.fit(expected);
        }
        let is_multi_cell = expected.unfrozen().is_multi_cell();
        match self.form {
            Form::HintedSelector | Form::Descending if is_multi_cell => Assignment::No,
            // Cassandra's functions of users have no frozen types.
            _ => self.fit(expected.unfrozen()),
        }
    }

    /// How well it fits a type.
    #[must_use]
    pub fn fit(&self, receiver: &CqlType) -> Assignment {
        match &self.fits {
            Fits::Anything => Assignment::Weak,
            Fits::Ask(fits) => fits(receiver),
            Fits::Natural => self
                .natural
                .as_ref()
                .map_or(Assignment::Weak, |natural| fit(natural, receiver)),
        }
    }
}

/// How well a value of type `given` fits `receiver`: exactly, by equal bytes, or not at all (Cassandra's
/// `isValueCompatibleWith`). Frozen or not makes no difference.
#[must_use]
pub fn fit(given: &CqlType, receiver: &CqlType) -> Assignment {
    let (given, receiver) = (given.unfrozen(), receiver.unfrozen());
    if given == receiver {
        return Assignment::Exact;
    }
    let both = |pairs: &[(&CqlType, &CqlType)]| {
        if pairs
            .iter()
            .all(|(given, receiver)| fit(given, receiver).is_assignable())
        {
            Assignment::Weak
        } else {
            Assignment::No
        }
    };
    match (given, receiver) {
        (_, CqlType::Native(Native::Blob)) => Assignment::Weak,
        (CqlType::Native(given), CqlType::Native(receiver)) if same_bytes(*given, *receiver) => Assignment::Weak,
        (CqlType::List(a), CqlType::List(b)) | (CqlType::Set(a), CqlType::Set(b)) => both(&[(a, b)]),
        (CqlType::Map(k, v), CqlType::Map(other_k, other_v)) => both(&[(k, other_k), (v, other_v)]),
        (CqlType::Vector(a, n), CqlType::Vector(b, m)) if n == m => both(&[(a, b)]),
        (CqlType::Tuple(a), CqlType::Tuple(b)) if a.len() <= b.len() => {
            both(&a.iter().zip(b.iter()).collect::<Vec<_>>())
        }
        (CqlType::User(a), CqlType::User(b)) if a.keyspace == b.keyspace && a.name == b.name => Assignment::Exact,
        _ => Assignment::No,
    }
}

/// Whether a value of one native type is also a value of the other, byte for byte.
fn same_bytes(given: Native, receiver: Native) -> bool {
    matches!(
        (receiver, given),
        (Native::Text, Native::Ascii)
            | (Native::Bigint, Native::Timestamp)
            | (Native::Timestamp | Native::Time, Native::Bigint)
            | (Native::Date, Native::Int)
            | (Native::Varint, Native::Int | Native::Bigint | Native::Timestamp)
            | (Native::Uuid, Native::Timeuuid)
    )
}
