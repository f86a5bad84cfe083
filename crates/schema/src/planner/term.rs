//! Typed terms: a statement's literals, markers, collections and calls, resolved against the column that receives them.
//!
//! Typing happens once, when a statement is planned. [`TypedTerm::bind`] runs for each execution; for a constant or a
//! marker it clones a reference-counted slice.

use bytes::Bytes;
use grammar::ast::{Literal, Name, Site, Term};

use super::error::Error;
use super::function::{self, Call};
use super::markers::{MarkerSpec, Markers};
use super::refusal::{LiteralPart, TermRefusal};
use super::text::{TermText, type_text_full};
use super::value;
use crate::command::Value;
use crate::schema::{Column, ColumnKind, Schema, Table};
use helenus_types::types::{Assignment, CqlType, Native};

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

/// Determines the types of terms.
pub(crate) struct TypeChecker<'a> {
    /// The schema, for user-defined types and functions.
    pub(crate) schema: &'a Schema,
    /// The table's keyspace, or `[batch]`.
    pub(crate) keyspace: std::sync::Arc<str>,
    /// The table, or `[batch]`.
    pub(crate) table_name: std::sync::Arc<str>,
    /// The table; `None` means that the terms belong to a batch as a whole.
    pub(crate) table: Option<std::sync::Arc<Table>>,
    /// The statement's markers.
    pub(crate) markers: &'a mut Markers,
    /// Types and fits of the statement's calls, resolved so far.
    pub(crate) calls: super::function::CallMemo,
}

impl TypeChecker<'_> {
    /// Types the term for its receiver.
    pub(crate) fn term(&mut self, term: &Term, receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        match term {
            Term::BindMarker { at, .. } => Ok(self.marker(*at, receiver)),
            Term::Literal(Literal::Null) if receiver.ty == CqlType::Native(Native::Counter) => {
                Err(TermRefusal::NullCounter.into())
            }
            Term::Literal(literal) => Ok(TypedTerm::Constant(literal_value(literal, receiver)?)),
            Term::List(elements) => self.list(term, elements, receiver),
            Term::Set(elements) => self.set(term, elements, receiver),
            Term::Map(entries) => self.map(term, entries, receiver),
            Term::Tuple(elements) => match in_parentheses(elements, &receiver.ty) {
                Some(only) => self.term(only, receiver),
                None => self.tuple(elements, receiver),
            },
            Term::Udt(fields) => self.udt(fields, receiver),
            Term::TypeHint { target, term: inner } => {
                let ty = self.resolve_type(target)?;
                if self.fit(inner, &ty)? == Assignment::No {
                    return Err(TermRefusal::Hint {
                        value: TermText(inner).to_string(),
                        ty: type_name(&ty),
                    }
                    .into());
                }
                let is_loose = receiver.is_descending && matches!(receiver.ty.unfrozen(), CqlType::User(_));
                let fit = match is_loose {
                    true => type_fit(&ty, &receiver.ty),
                    false => self.fit(term, &receiver.ty)?,
                };
                if fit == Assignment::No {
                    return Err(TermRefusal::Hinted {
                        value: self.text(term),
                        receiver: receiver.name.clone(),
                        ty: type_name(&receiver.ty),
                    }
                    .into());
                }
                self.term(inner, receiver)
            }
            Term::Function { .. } | Term::Arithmetic { .. } | Term::Negate { .. } | Term::Cast { .. } => {
                function::call(self, term, receiver)
            }
        }
    }

    /// Types the marker at this site.
    pub(crate) fn marker(&mut self, at: Site, receiver: &ColumnSpec) -> TypedTerm {
        let spec = MarkerSpec {
            keyspace: self.keyspace.clone(),
            table: self.table_name.clone(),
            name: receiver.name.clone(),
            ty: receiver.ty.clone(),
        };
        TypedTerm::Marker(
            self.markers.define(at, spec, receiver.partition_key),
            receiver.ty.clone(),
        )
    }

    /// A term in Cassandra's format.
    pub(crate) fn text(&self, term: &Term) -> String {
        match term {
            Term::TypeHint { target, term } => {
                format!("({}){}", type_text_full(target, &self.keyspace), self.text(term))
            }
            term => TermText(term).to_string(),
        }
    }

    /// Resolves a type as written; its user-defined types are those of the table's keyspace.
    pub(crate) fn resolve_type(&self, ty: &grammar::ast::Type) -> Result<CqlType, Error> {
        value::resolve_type(self.schema, &self.keyspace, ty)
    }

    /// How well a term fits a type (Cassandra's `testAssignment`).
    pub(crate) fn fit(&self, term: &Term, ty: &CqlType) -> Result<Assignment, Error> {
        let bare = ty.unfrozen();
        Ok(match term {
            Term::BindMarker { .. } => Assignment::Weak,
            Term::Literal(literal) => ty.assignable(literal),
            Term::List(elements) => match bare {
                CqlType::List(of) => self.fit_all(elements, of)?,
                CqlType::Vector(of, dimension) => {
                    if usize::try_from(*dimension).is_ok_and(|dimension| dimension == elements.len()) {
                        self.fit_all(elements, of)?
                    } else {
                        Assignment::No
                    }
                }
                _ => Assignment::No,
            },
            Term::Set(elements) => match bare {
                CqlType::Set(of) => self.fit_all(elements, of)?,
                CqlType::Map(..) if elements.is_empty() => Assignment::Weak,
                _ => Assignment::No,
            },
            Term::Map(entries) => match bare {
                CqlType::Map(key, of) => {
                    let mut worst = Assignment::of_elements(entries.len());
                    for (k, v) in entries {
                        worst = worst.min(self.fit(k, key)?).min(self.fit(v, of)?);
                    }
                    worst
                }
                _ => Assignment::No,
            },
            Term::Tuple(elements) => {
                if let Some(only) = in_parentheses(elements, ty) {
                    return self.fit(only, ty);
                }
                let types: Vec<&CqlType> = match bare {
                    CqlType::Tuple(of) => of.iter().collect(),
                    CqlType::User(user) => user.fields.iter().map(|(_, ty)| ty).collect(),
                    _ => return Ok(Assignment::No),
                };
                if elements.len() > types.len() {
                    return Ok(Assignment::No);
                }
                let mut worst = Assignment::Weak;
                for (element, ty) in elements.iter().zip(types) {
                    worst = worst.min(self.fit(element, ty)?);
                }
                worst
            }
            Term::Udt(fields) => match bare {
                CqlType::User(user) => {
                    let mut worst = Assignment::Weak;
                    for (name, term) in fields {
                        match user.fields.iter().find(|(field, _)| field == name.as_str()) {
                            Some((_, ty)) => worst = worst.min(self.fit(term, ty)?),
                            None => worst = Assignment::No,
                        }
                    }
                    worst
                }
                _ => Assignment::No,
            },
            Term::TypeHint { target, .. } => {
                let hint = self.resolve_type(target)?;
                // Of collections and user-defined types both are frozen, or neither.
                match hint.unfrozen().is_multi_cell() && hint.is_multi_cell() != ty.is_multi_cell() {
                    true => Assignment::No,
                    false => type_fit(&hint, ty),
                }
            }
            Term::Function { at, .. }
            | Term::Arithmetic { at, .. }
            | Term::Negate { at, .. }
            | Term::Cast { at, .. } => function::fit(self, term, *at, ty),
        })
    }

    fn fit_all(&self, terms: &[Term], ty: &CqlType) -> Result<Assignment, Error> {
        let mut worst = Assignment::of_elements(terms.len());
        for term in terms {
            worst = worst.min(self.fit(term, ty)?);
        }
        Ok(worst)
    }

    fn list(&mut self, term: &Term, elements: &[Term], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        let bare = receiver.ty.unfrozen().clone();
        let (of, what) = match &bare {
            CqlType::List(of) => (of.clone(), "list"),
            CqlType::Vector(of, dimension) => {
                if usize::try_from(*dimension).is_ok_and(|dimension| dimension != elements.len()) {
                    return Err(TermRefusal::VectorLength {
                        receiver: receiver.name.clone(),
                        ty: type_name(&receiver.ty),
                        dimension: *dimension,
                        given: elements.len(),
                    }
                    .into());
                }
                (of.clone(), "vector")
            }
            _ => {
                let name = type_name(&receiver.ty);
                return Err(TermRefusal::NoList(name).into());
            }
        };
        for element in elements {
            if self.fit(element, &of)? == Assignment::No {
                return Err(TermRefusal::Part {
                    kind: what,
                    receiver: receiver.name.clone(),
                    part: LiteralPart::Value(TermText(element).to_string()),
                    ty: type_name(&of),
                }
                .into());
            }
        }
        if elements.is_empty() && receiver.ty == bare && what == "list" {
            return self.empty_collection(term, receiver);
        }
        let part = receiver.part("value", (*of).clone());
        let typed = self.elements(elements, &part, what, receiver)?;
        construct(bare, typed)
    }

    fn set(&mut self, term: &Term, elements: &[Term], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        let bare = receiver.ty.unfrozen().clone();
        let of = match &bare {
            CqlType::Map(..) if elements.is_empty() => return self.empty_collection(term, receiver),
            CqlType::Set(of) => of.clone(),
            _ => {
                return Err(TermRefusal::LiteralKind {
                    kind: "set",
                    receiver: receiver.name.clone(),
                    ty: type_name(&receiver.ty),
                }
                .into());
            }
        };
        for element in elements {
            if self.fit(element, &of)? == Assignment::No {
                return Err(TermRefusal::Part {
                    kind: "set",
                    receiver: receiver.name.clone(),
                    part: LiteralPart::Value(TermText(element).to_string()),
                    ty: type_name(&of),
                }
                .into());
            }
        }
        let part = receiver.part("value", (*of).clone());
        let typed = self.elements(elements, &part, "set", receiver)?;
        construct(bare, typed)
    }

    /// An empty collection; for a multi-cell column it equals null.
    fn empty_collection(&mut self, _: &Term, receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        construct(receiver.ty.unfrozen().clone(), Vec::new())
    }

    fn elements(
        &mut self,
        elements: &[Term],
        part: &ColumnSpec,
        what: &'static str,
        receiver: &ColumnSpec,
    ) -> Result<Vec<TypedTerm>, Error> {
        elements
            .iter()
            .map(|element| {
                let typed = self.term(element, part)?;
                no_marker(&typed, what, receiver)?;
                Ok(typed)
            })
            .collect()
    }

    fn map(&mut self, _: &Term, entries: &[(Term, Term)], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        let bare = receiver.ty.unfrozen().clone();
        let CqlType::Map(key, of) = &bare else {
            return Err(TermRefusal::LiteralKind {
                kind: "map",
                receiver: receiver.name.clone(),
                ty: type_name(&receiver.ty),
            }
            .into());
        };
        for (k, v) in entries {
            for (part, term, ty) in [
                (LiteralPart::Key as fn(String) -> LiteralPart, k, key),
                (LiteralPart::Value, v, of),
            ] {
                if self.fit(term, ty)? == Assignment::No {
                    return Err(TermRefusal::Part {
                        kind: "map",
                        receiver: receiver.name.clone(),
                        part: part(TermText(term).to_string()),
                        ty: type_name(ty),
                    }
                    .into());
                }
            }
        }
        let (key, of) = (
            receiver.part("key", (**key).clone()),
            receiver.part("value", (**of).clone()),
        );
        let mut typed = Vec::with_capacity(entries.len() * 2);
        for (k, v) in entries {
            for (term, part) in [(k, &key), (v, &of)] {
                let element = self.term(term, part)?;
                no_marker(&element, "map", receiver)?;
                typed.push(element);
            }
        }
        construct(bare, typed)
    }

    fn tuple(&mut self, elements: &[Term], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        let bare = receiver.ty.unfrozen().clone();
        let types: Vec<CqlType> = match &bare {
            CqlType::Tuple(of) => of.to_vec(),
            CqlType::User(user) => user.fields.iter().map(|(_, ty)| ty.clone()).collect(),
            _ => {
                return Err(TermRefusal::LiteralKind {
                    kind: "tuple type",
                    receiver: receiver.name.clone(),
                    ty: type_name(&receiver.ty),
                }
                .into());
            }
        };
        if elements.len() > types.len() {
            return Err(TermRefusal::TupleLength {
                receiver: receiver.name.clone(),
                ty: type_name(&receiver.ty),
                expected: types.len(),
                given: elements.len(),
            }
            .into());
        }
        for (index, (element, ty)) in elements.iter().zip(&types).enumerate() {
            if self.fit(element, ty)? == Assignment::No {
                return Err(TermRefusal::Part {
                    kind: "tuple",
                    receiver: receiver.name.clone(),
                    part: LiteralPart::Component(index),
                    ty: type_name(ty),
                }
                .into());
            }
        }
        if receiver.ty.is_multi_cell() {
            // Differs: Cassandra reaches this point, and fails with a ClassCastException.
            return Err(TermRefusal::LiteralKind {
                kind: "tuple",
                receiver: receiver.name.clone(),
                ty: type_name(&receiver.ty),
            }
            .into());
        }
        let mut typed = Vec::with_capacity(types.len());
        for (index, (element, ty)) in elements.iter().zip(types).enumerate() {
            let part = ColumnSpec::new(format!("{}[{index}]", receiver.name), ty);
            typed.push(self.term(element, &part)?);
        }
        construct(bare, typed)
    }

    fn udt(&mut self, fields: &[(Name, Term)], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        let bare = receiver.ty.unfrozen().clone();
        let CqlType::User(user) = &bare else {
            return Err(TermRefusal::LiteralKind {
                kind: "user type",
                receiver: receiver.name.clone(),
                ty: type_name(&receiver.ty),
            }
            .into());
        };
        for (name, term) in fields {
            let Some((_, ty)) = user.fields.iter().find(|(field, _)| field == name.as_str()) else {
                return Err(TermRefusal::UnknownField {
                    field: name.as_str().to_owned(),
                    user_type: user.name.clone(),
                }
                .into());
            };
            if self.fit(term, ty)? == Assignment::No {
                return Err(TermRefusal::Part {
                    kind: "user type",
                    receiver: receiver.name.clone(),
                    part: LiteralPart::Field(name.as_str().to_owned()),
                    ty: type_name(ty),
                }
                .into());
            }
        }
        let mut typed = Vec::with_capacity(user.fields.len());
        for (field, ty) in &user.fields {
            // The last duplicate wins: Cassandra keeps fields in a map.
            let given = fields.iter().rev().find(|(name, _)| name.as_str() == field);
            typed.push(match given {
                Some((_, term)) => {
                    self.term(term, &ColumnSpec::new(format!("{}.{field}", receiver.name), ty.clone()))?
                }
                None => TypedTerm::Constant(None),
            });
        }
        // Whether it is frozen decides what becomes of unset fields.
        construct(receiver.ty.clone(), typed)
    }
}

/// `(a)` is `a` unless the receiver is a tuple.
fn in_parentheses<'t>(elements: &'t [Term], ty: &CqlType) -> Option<&'t Term> {
    match elements {
        [only] if !matches!(ty.unfrozen(), CqlType::Tuple(_) | CqlType::User(_)) => Some(only),
        _ => None,
    }
}

/// Refuses markers inside collection literals, at any depth, as Cassandra does.
fn no_marker(element: &TypedTerm, what: &'static str, receiver: &ColumnSpec) -> Result<(), Error> {
    if element.has_marker() && what != "vector" {
        return Err(TermRefusal::Marker {
            kind: what,
            receiver: receiver.name.clone(),
        }
        .into());
    }
    Ok(())
}

/// A collection, tuple or the like; evaluated at once if all its elements are constants.
fn construct(ty: CqlType, elements: Vec<TypedTerm>) -> Result<TypedTerm, Error> {
    let constants: Option<Vec<Value>> = elements
        .iter()
        .map(|element| match element {
            TypedTerm::Constant(Some(bytes)) => Some(Value::Bytes(bytes.clone())),
            TypedTerm::Constant(None) => Some(Value::Null),
            _ => None,
        })
        .collect();
    match constants {
        Some(values) => Ok(TypedTerm::Constant(Some(value::construct(&ty, values)?))),
        None => Ok(TypedTerm::Construct(ty, elements)),
    }
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
