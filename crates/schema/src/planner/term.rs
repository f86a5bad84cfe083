//! Typed terms: a statement's literals, markers, collections and calls, resolved against the column that receives them.
//!
//! Typing happens once, when a statement is planned ([`super::typing`]). [`TypedTerm::bind`] runs for each execution; for a
//! constant or a marker it clones a reference-counted slice.

use bytes::Bytes;
use grammar::ast::Literal;

use super::error::Error;
use super::function::refusal;
use super::key::partition_key;
use super::refusal::TermRefusal;
use super::value;
use crate::command::Value;
use crate::schema::{Column, ColumnKind};
use helenus_types::functions::Function;
use helenus_types::token::Token;
use helenus_types::types::{Assignment, CqlType};

/// The receiver of a term: its name in messages and its type.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSpec {
    /// The column's name, or Cassandra's name of another receiver.
    pub(crate) name: String,
    /// Its type.
    pub(crate) ty: CqlType,
    /// The column's position in the partition key; `None` means that the receiver is no partition key column.
    pub(crate) partition_key: Option<usize>,
    /// Whether it is a descending column.
    pub(crate) is_descending: bool,
}

impl ColumnSpec {
    /// A receiver that is no column.
    pub(crate) fn new(name: impl Into<String>, ty: CqlType) -> Self {
        Self {
            name: name.into(),
            ty,
            partition_key: None,
            is_descending: false,
        }
    }

    /// A column.
    pub(crate) fn column(column: &Column) -> Self {
        Self {
            name: column.name.clone(),
            ty: column.ty.clone(),
            partition_key: (column.kind == ColumnKind::PartitionKey).then_some(column.position),
            is_descending: column.descending,
        }
    }

    /// The same name for a part of another type.
    pub(crate) fn part(&self, prefix: &str, ty: CqlType) -> Self {
        Self::new(format!("{prefix}({})", self.name), ty)
    }
}

/// A term whose type is known.
#[derive(Clone, Debug)]
pub(crate) enum TypedTerm {
    /// A value; `None` is null.
    Constant(Option<Bytes>),
    /// A marker, and the required type of its values.
    Marker(usize, CqlType),
    /// The value that an INSERT JSON's document has for the column at this position.
    Json(usize),
    /// A call whose arguments or result are only known at execution.
    Call(Box<Call>),
    /// A collection, tuple, vector or user-defined type with a call or marker in it; maps alternate keys and values.
    Construct(CqlType, Vec<TypedTerm>),
}

/// A call whose function is resolved.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The function; `None` means `token`.
    pub(super) function: Option<Function>,
    /// Its arguments.
    pub(crate) arguments: Vec<TypedTerm>,
}

/// The context in which terms are evaluated to values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    /// The values, in order of the markers; as many as there are markers.
    pub(crate) values: &'a [Value],
    /// A value for each column of an INSERT JSON; `None` means that the statement has no document.
    pub(crate) json: Option<&'a [Value]>,
    /// Time and randomness for functions.
    pub(crate) context: &'a helenus_types::functions::Context,
}

/// A literal as a value of the receiver's type.
pub(crate) fn literal_value(literal: &Literal, receiver: &ColumnSpec) -> Result<Option<Bytes>, Error> {
    receiver.ty.literal(literal).map_err(|error| {
        TermRefusal::Literal {
            error,
            receiver: receiver.name.clone(),
        }
        .into()
    })
}

/// How well a value of one type fits another (`AbstractType.testAssignment`).
pub(crate) fn type_fit(from: &CqlType, to: &CqlType) -> Assignment {
    helenus_types::functions::fit(from, to)
}

/// A type as messages name it.
pub(crate) fn type_name(ty: &CqlType) -> String {
    ty.cql_name()
}

impl TypedTerm {
    /// Whether the term's value depends on a marker.
    pub(crate) fn has_marker(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Json(_) => false,
            Self::Marker(..) => true,
            Self::Call(call) => call.arguments.iter().any(Self::has_marker),
            Self::Construct(_, elements) => elements.iter().any(Self::has_marker),
        }
    }

    /// The values of `IN ?`; the caller checks null elements. `Err` holds null or unset.
    ///
    /// Cassandra deserialises each element, so that one of no bytes is null too where its type reads no bytes as null.
    pub(crate) fn bind_list(&self, binding: &Binding<'_>) -> Result<Result<Vec<Option<Bytes>>, Value>, Error> {
        let bytes = match self.bind_null_elements(binding)? {
            Value::Bytes(bytes) => bytes,
            other => return Ok(Err(other)),
        };
        let mut elements = value::nullable_elements(&bytes);
        if let Self::Marker(_, ty) = self
            && let CqlType::List(of) = ty.unfrozen()
            && of.reads_no_bytes_as_null()
        {
            for element in &mut elements {
                element.take_if(|bytes| bytes.is_empty());
            }
        }
        Ok(Ok(elements))
    }

    /// The value of `IN ?`, whose elements may be null.
    fn bind_null_elements(&self, binding: &Binding<'_>) -> Result<Value, Error> {
        if let Self::Marker(index, ty) = self
            && let Some(value @ Value::Bytes(bytes)) = binding.values.get(*index)
            && ty.validate(bytes) == Err(helenus_types::types::Invalid::NullElement)
        {
            return Ok(value.clone());
        }
        self.bind(binding)
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// A bound value does not fit its type, or a function fails.
    #[inline]
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Value, Error> {
        match self {
            Self::Constant(Some(bytes)) => Ok(Value::Bytes(bytes.clone())),
            Self::Constant(None) => Ok(Value::Null),
            Self::Json(column) => Ok(binding
                .json
                .and_then(|values| values.get(*column))
                .cloned()
                .unwrap_or(Value::Null)),
            Self::Marker(index, ty) => match binding.values.get(*index) {
                Some(Value::Bytes(bytes)) => value::bound(ty, bytes).map(Value::Bytes),
                Some(value) => Ok(value.clone()),
                None => Err(TermRefusal::ValueCount.into()),
            },
            Self::Call(call) => call.bind(binding).map(|bytes| bytes.map_or(Value::Null, Value::Bytes)),
            Self::Construct(ty, elements) => {
                let values = elements
                    .iter()
                    .map(|element| element.bind(binding))
                    .collect::<Result<Vec<_>, _>>()?;
                value::construct(ty, values).map(Value::Bytes)
            }
        }
    }
}

impl Call {
    /// The result. A user-defined function returns sets and maps in any order, which are stored in theirs.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        let bytes = self.result(binding)?;
        match (&self.function, &bytes) {
            (Some(function), Some(bytes)) if function.is_user_defined() => {
                value::bound(function.return_type(), bytes).map(Some)
            }
            _ => Ok(bytes),
        }
    }

    /// The result as the function returned it, which another function receives.
    fn result(&self, binding: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            if let TypedTerm::Call(call) = argument {
                arguments.push(call.result(binding)?);
                continue;
            }
            arguments.push(match argument.bind(binding)? {
                Value::Bytes(bytes) => Some(bytes),
                Value::Null => None,
                Value::Unset => {
                    let name = self.function.as_ref().map_or("token", Function::name);
                    return Err(TermRefusal::UnsetArgument(name.to_owned()).into());
                }
            });
        }
        match &self.function {
            Some(function) => function.call(&arguments, binding.context).map_err(refusal),
            None => match arguments.into_iter().collect::<Option<Vec<Bytes>>>() {
                Some(components) => {
                    let token = Token::of(&partition_key(&components)?);
                    Ok(Some(Bytes::copy_from_slice(&token.value().to_be_bytes())))
                }
                None => Ok(None),
            },
        }
    }
}
