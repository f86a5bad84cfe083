//! The effect of an assignment or a deletion on its column.

use bytes::Bytes;
use grammar::ast::{Assignment, DeleteTarget, Name, Term};

use super::error::Error;
use super::refusal::OperationRefusal;
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::text::TermText;
use super::typing::TypeChecker;
use super::value;
use crate::command::{ColumnChange, Value};
use crate::schema::Column;
use helenus_types::types::{CqlType, Native, UserType};

/// A change of one column, before binding.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Sets a single-cell column.
    Set(TypedTerm),
    /// Replaces a multi-cell column.
    Replace(CollectionKind, TypedTerm),
    /// Adds elements or entries.
    Put(CollectionKind, TypedTerm),
    /// Sets one entry or field; null deletes it.
    PutOne(Key, TypedTerm),
    /// Appends to a list.
    Append(TypedTerm),
    /// Prepends to a list.
    Prepend(TypedTerm),
    /// Sets a list element by position; `None` means that it is deleted.
    SetAt(TypedTerm, Option<TypedTerm>),
    /// Removes all list elements equal to one of these.
    Discard(TypedTerm),
    /// Removes elements from a set, or keys from a map; the term is a set of them.
    Remove(TypedTerm),
    /// Removes one element or key from a set or map.
    RemoveOne(Key),
    /// Increments a counter, or decrements it if `true`.
    Increment(TypedTerm, bool),
    /// Adds to a number or a text that is no counter.
    Sum(TypedTerm),
}

/// The kind of a multi-cell column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectionKind {
    /// Elements, each under a generated cell key.
    List,
    /// Elements, which are the cell keys.
    Set,
    /// Entries by key.
    Map,
    /// Fields by number, this many.
    User(usize),
}

/// The key of one cell of a multi-cell column.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    /// A map's key.
    Term(TypedTerm),
    /// A set's element.
    Element(TypedTerm),
    /// A field's number.
    Field(usize),
}

/// A field's number as a cell's key: an i16, as Cassandra has it.
fn field_key(index: usize) -> Bytes {
    Bytes::copy_from_slice(&u16::try_from(index).unwrap_or(u16::MAX).to_be_bytes())
}

fn shape(ty: &CqlType) -> Option<CollectionKind> {
    match ty {
        CqlType::List(_) => Some(CollectionKind::List),
        CqlType::Set(_) => Some(CollectionKind::Set),
        CqlType::Map(..) => Some(CollectionKind::Map),
        CqlType::User(user) => Some(CollectionKind::User(user.fields.len())),
        _ => None,
    }
}

/// `c = v` with a typed term.
pub(crate) fn set_typed(column: &Column, term: TypedTerm) -> Operation {
    match shape(&column.ty) {
        Some(shape) => Operation::Replace(shape, term),
        None => Operation::Set(term),
    }
}

/// `c = v`
pub(crate) fn set(typer: &mut TypeChecker<'_>, column: &Column, term: &Term) -> Result<Operation, Error> {
    let typed = typer.term(term, &ColumnSpec::column(column))?;
    if is_counter(column) {
        return Err(OperationRefusal::SetOfCounter(column.name.clone()).into());
    }
    Ok(set_typed(column, typed))
}

fn is_counter(column: &Column) -> bool {
    column.ty == CqlType::Native(Native::Counter)
}

/// One assignment of an UPDATE, which is `conditional` if it has a condition. Then the row is read, and Cassandra adds to
/// numbers and texts that are no counters (`Operation.Addition.prepare`).
pub(crate) fn assign(
    typer: &mut TypeChecker<'_>,
    column: &Column,
    assignment: &Assignment,
    conditional: bool,
) -> Result<Operation, Error> {
    match assignment {
        Assignment::Set(_, term) => set(typer, column, term),
        Assignment::Element(_, key, term) => set_element(typer, column, key, term),
        Assignment::Field(_, field, term) => set_field(typer, column, field, term),
        Assignment::Add(_, term) => add(typer, column, term, conditional),
        Assignment::Subtract(_, term) => subtract(typer, column, term),
        Assignment::Prepend(_, term) => {
            // Cassandra writes a minus here.
            let text = || format!("{0} = {1} - {0}", column.name, TermText(term));
            match column.ty.unfrozen() {
                CqlType::List(_) if column.ty.is_multi_cell() => {
                    Ok(Operation::Prepend(typer.term(term, &ColumnSpec::column(column))?))
                }
                CqlType::List(_) => Err(OperationRefusal::Misfit {
                    operation: text(),
                    kind: "frozen list",
                    column: column.name.clone(),
                }
                .into()),
                _ => Err(OperationRefusal::Misfit {
                    operation: text(),
                    kind: "non list",
                    column: column.name.clone(),
                }
                .into()),
            }
        }
    }
}

fn set_element(typer: &mut TypeChecker<'_>, column: &Column, key: &Term, term: &Term) -> Result<Operation, Error> {
    let name = &column.name;
    let text = || format!("{name}[{}] = {}", TermText(key), TermText(term));
    if !value::is_collection(&column.ty) {
        return Err(OperationRefusal::Misfit {
            operation: text(),
            kind: "non collection",
            column: name.clone(),
        }
        .into());
    }
    let receiver = ColumnSpec::column(column);
    match &column.ty {
        CqlType::List(of) => {
            let index = typer.term(key, &receiver.part("idx", CqlType::Native(Native::Int)))?;
            let term = typer.term(term, &receiver.part("value", (**of).clone()))?;
            Ok(Operation::SetAt(index, Some(term)))
        }
        CqlType::Map(of_key, of) => {
            let key = typer.term(key, &receiver.part("key", (**of_key).clone()))?;
            let term = typer.term(term, &receiver.part("value", (**of).clone()))?;
            Ok(Operation::PutOne(Key::Term(key), term))
        }
        CqlType::Set(_) => Err(OperationRefusal::Misfit {
            operation: text(),
            kind: "set",
            column: name.clone(),
        }
        .into()),
        _ => Err(OperationRefusal::Misfit {
            operation: text(),
            kind: "frozen collection",
            column: name.clone(),
        }
        .into()),
    }
}

/// The number and type of a field.
pub(crate) fn field_of<'u>(user: &'u UserType, field: &Name) -> Option<(usize, &'u CqlType)> {
    let index = user.fields.iter().position(|(name, _)| name == field.as_str())?;
    user.fields.get(index).map(|(_, ty)| (index, ty))
}

fn set_field(typer: &mut TypeChecker<'_>, column: &Column, field: &Name, term: &Term) -> Result<Operation, Error> {
    let name = &column.name;
    let text = || format!("{name}.{} = {}", field.as_str(), TermText(term));
    let CqlType::User(user) = column.ty.unfrozen() else {
        return Err(OperationRefusal::Misfit {
            operation: text(),
            kind: "non-UDT",
            column: name.clone(),
        }
        .into());
    };
    if !column.ty.is_multi_cell() {
        return Err(OperationRefusal::Misfit {
            operation: text(),
            kind: "frozen UDT",
            column: name.clone(),
        }
        .into());
    }
    let Some((index, ty)) = field_of(user, field) else {
        return Err(OperationRefusal::NoField {
            column: name.clone(),
            field: field.as_str().to_owned(),
        }
        .into());
    };
    let receiver = ColumnSpec::new(format!("{name}.{}", field.as_str()), ty.clone());
    Ok(Operation::PutOne(Key::Field(index), typer.term(term, &receiver)?))
}

fn add(typer: &mut TypeChecker<'_>, column: &Column, term: &Term, conditional: bool) -> Result<Operation, Error> {
    let name = &column.name;
    let text = || format!("{name} = {name} + {}", TermText(term));
    let receiver = ColumnSpec::column(column);
    match &column.ty {
        CqlType::Native(Native::Counter) => counter(typer, term, &receiver, false),
        CqlType::List(_) => Ok(Operation::Append(typer.term(term, &receiver)?)),
        CqlType::Set(_) => Ok(Operation::Put(CollectionKind::Set, typer.term(term, &receiver)?)),
        CqlType::Map(..) => match typer.term(term, &receiver) {
            Ok(typed) => Ok(Operation::Put(CollectionKind::Map, typed)),
            Err(error) if error.is_invalid() => Err(OperationRefusal::MapPlus(TermText(term).to_string()).into()),
            Err(error) => Err(error),
        },
        ty => match ty.unfrozen() {
            CqlType::Tuple(_) | CqlType::User(_) => Err(OperationRefusal::Misfit {
                operation: text(),
                kind: "tuple",
                column: name.clone(),
            }
            .into()),
            CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => Err(OperationRefusal::Misfit {
                operation: text(),
                kind: "frozen collection",
                column: name.clone(),
            }
            .into()),
            ty if conditional && helenus_types::functions::is_summable(ty) => {
                Ok(Operation::Sum(typer.term(term, &receiver)?))
            }
            _ if conditional => Err(OperationRefusal::NotSummable {
                operation: text(),
                column: name.clone(),
            }
            .into()),
            _ => Err(non_counter(column, text())),
        },
    }
}

/// The error for a sum or a difference assigned to its own column, which is no counter.
fn non_counter(column: &Column, operation: String) -> Error {
    Error::NonCounter {
        column: column.name.clone(),
        operation,
    }
}

fn subtract(typer: &mut TypeChecker<'_>, column: &Column, term: &Term) -> Result<Operation, Error> {
    let name = &column.name;
    let text = || format!("{name} = {name} - {}", TermText(term));
    let receiver = ColumnSpec::column(column);
    match &column.ty {
        CqlType::Native(Native::Counter) => counter(typer, term, &receiver, true),
        CqlType::List(_) => Ok(Operation::Discard(typer.term(term, &receiver)?)),
        CqlType::Set(_) => Ok(Operation::Remove(typer.term(term, &receiver)?)),
        CqlType::Map(key, _) => {
            // The operand of a subtraction from a map is a set of its keys.
            let receiver = ColumnSpec::new(name.clone(), CqlType::Set(key.clone()));
            match typer.term(term, &receiver) {
                Ok(typed) => Ok(Operation::Remove(typed)),
                Err(error) if error.is_invalid() => Err(OperationRefusal::MapMinus(TermText(term).to_string()).into()),
                Err(error) => Err(error),
            }
        }
        ty if value::is_collection(ty) => Err(OperationRefusal::Misfit {
            operation: text(),
            kind: "frozen collection",
            column: name.clone(),
        }
        .into()),
        _ => Err(non_counter(column, text())),
    }
}

fn counter(
    typer: &mut TypeChecker<'_>,
    term: &Term,
    receiver: &ColumnSpec,
    negative: bool,
) -> Result<Operation, Error> {
    let typed = typer.term(term, receiver)?;
    Ok(Operation::Increment(typed, negative))
}

/// One target of a DELETE.
pub(crate) fn delete(typer: &mut TypeChecker<'_>, column: &Column, target: &DeleteTarget) -> Result<Operation, Error> {
    let name = &column.name;
    match target {
        DeleteTarget::Column(_) => Ok(set_typed(column, TypedTerm::Constant(None))),
        DeleteTarget::Element(_, key) => {
            if !value::is_collection(&column.ty) {
                return Err(OperationRefusal::DeleteOfNoElement(name.clone()).into());
            }
            let receiver = ColumnSpec::column(column);
            match &column.ty {
                CqlType::List(_) => {
                    let index = typer.term(key, &receiver.part("idx", CqlType::Native(Native::Int)))?;
                    Ok(Operation::SetAt(index, None))
                }
                CqlType::Set(of) => {
                    let key = typer.term(key, &receiver.part("value", (**of).clone()))?;
                    Ok(Operation::RemoveOne(Key::Element(key)))
                }
                CqlType::Map(of, _) => {
                    let key = typer.term(key, &receiver.part("key", (**of).clone()))?;
                    Ok(Operation::RemoveOne(Key::Term(key)))
                }
                _ => Err(OperationRefusal::DeleteOfFrozenElement(name.clone()).into()),
            }
        }
        DeleteTarget::Field(_, field) => {
            let CqlType::User(user) = column.ty.unfrozen() else {
                return Err(OperationRefusal::DeleteOfNoField(name.clone()).into());
            };
            if !column.ty.is_multi_cell() {
                return Err(OperationRefusal::DeleteOfFrozenField(name.clone()).into());
            }
            match field_of(user, field) {
                Some((index, _)) => Ok(Operation::RemoveOne(Key::Field(index))),
                None => Err(OperationRefusal::NoField {
                    column: name.clone(),
                    field: field.as_str().to_owned(),
                }
                .into()),
            }
        }
    }
}

impl Key {
    /// `None` means an unset element.
    fn bind(&self, binding: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Field(index) => Ok(Some(field_key(*index))),
            Self::Term(term) => match term.bind(binding)? {
                Value::Bytes(bytes) => Ok(Some(bytes)),
                Value::Null => Err(OperationRefusal::NullKey.into()),
                Value::Unset => Err(OperationRefusal::UnsetKey.into()),
            },
            Self::Element(term) => match term.bind(binding)? {
                Value::Bytes(bytes) => Ok(Some(bytes)),
                Value::Null => Err(OperationRefusal::NullElement.into()),
                Value::Unset => Ok(None),
            },
        }
    }
}

impl Operation {
    /// The operation with bound values; `None` means that an unset value leaves the column unchanged.
    #[inline]
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Option<ColumnChange>, Error> {
        Ok(Some(match self {
            Self::Set(term) => match term.bind(binding)? {
                Value::Unset => return Ok(None),
                value => ColumnChange::Set(value),
            },
            Self::Replace(shape, term) => match term.bind(binding)? {
                Value::Unset => return Ok(None),
                Value::Null => ColumnChange::Replace(Vec::new()),
                Value::Bytes(bytes) => ColumnChange::Replace(replacement(*shape, &bytes)),
            },
            Self::Put(shape, term) => match term.bind(binding)? {
                Value::Unset | Value::Null => return Ok(None),
                Value::Bytes(bytes) => ColumnChange::Put(
                    replacement(*shape, &bytes)
                        .into_iter()
                        .filter_map(|(key, value)| Some((key?, Some(value))))
                        .collect(),
                ),
            },
            Self::PutOne(key, term) => {
                let Some(key) = key.bind(binding)? else { return Ok(None) };
                match term.bind(binding)? {
                    Value::Unset => return Ok(None),
                    Value::Null => ColumnChange::Put(vec![(key, None)]),
                    Value::Bytes(bytes) => ColumnChange::Put(vec![(key, Some(bytes))]),
                }
            }
            Self::Append(term) => match term.bind(binding)? {
                Value::Unset | Value::Null => return Ok(None),
                Value::Bytes(bytes) => ColumnChange::Append(value::elements(&bytes)),
            },
            Self::Prepend(term) => match term.bind(binding)? {
                Value::Unset | Value::Null => return Ok(None),
                Value::Bytes(bytes) => ColumnChange::Prepend(value::elements(&bytes)),
            },
            Self::SetAt(index, term) => {
                let index = match index.bind(binding)? {
                    Value::Bytes(bytes) => value::int(&bytes),
                    Value::Null => None,
                    // A DELETE without operations would delete the row.
                    Value::Unset if term.is_none() => return Ok(Some(ColumnChange::Discard(Vec::new()))),
                    Value::Unset => return Err(OperationRefusal::UnsetIndex.into()),
                };
                let index = index.ok_or(OperationRefusal::NullIndex)?;
                let value = match term.as_ref().map(|term| term.bind(binding)).transpose()? {
                    None | Some(Value::Null) => None,
                    Some(Value::Bytes(bytes)) => Some(bytes),
                    Some(Value::Unset) => return Ok(None),
                };
                ColumnChange::SetAt(index, value)
            }
            Self::Discard(term) => match term.bind(binding)? {
                Value::Unset | Value::Null => return Ok(None),
                Value::Bytes(bytes) => ColumnChange::Discard(value::elements(&bytes)),
            },
            Self::Remove(term) => match term.bind(binding)? {
                Value::Unset | Value::Null => return Ok(None),
                Value::Bytes(bytes) => ColumnChange::Remove(value::elements(&bytes)),
            },
            Self::RemoveOne(key) => match key {
                Key::Field(index) => ColumnChange::Put(vec![(field_key(*index), None)]),
                // An unset element removes none. Without an operation the DELETE would be one of the row.
                Key::Term(_) | Key::Element(_) => ColumnChange::Remove(key.bind(binding)?.into_iter().collect()),
            },
            Self::Increment(term, negative) => return increment(term, *negative, binding),
            Self::Sum(term) => match term.bind(binding)? {
                Value::Unset => return Ok(None),
                Value::Null => ColumnChange::Sum(None),
                Value::Bytes(bytes) => ColumnChange::Sum(Some(bytes)),
            },
        }))
    }
}

fn increment(term: &TypedTerm, negative: bool, binding: &Binding<'_>) -> Result<Option<ColumnChange>, Error> {
    let what = if negative { "decrement" } else { "increment" };
    let by = match term.bind(binding)? {
        Value::Unset => return Ok(None),
        Value::Null => return Err(OperationRefusal::NullStep(what).into()),
        Value::Bytes(bytes) => match value::bigint(&bytes) {
            Some(by) => by,
            None => return Err(OperationRefusal::NullStep(what).into()),
        },
    };
    if !negative {
        return Ok(Some(ColumnChange::Increment(by)));
    }
    match by.checked_neg() {
        Some(by) => Ok(Some(ColumnChange::Increment(by))),
        None => Err(OperationRefusal::NegationOverflow(by).into()),
    }
}

/// The cells of a whole collection or user-defined type: keys and values. A list's keys are generated at write time.
fn replacement(shape: CollectionKind, bytes: &Bytes) -> Vec<(Option<Bytes>, Bytes)> {
    match shape {
        CollectionKind::List => value::elements(bytes)
            .into_iter()
            .map(|element| (None, element))
            .collect(),
        CollectionKind::Set => value::elements(bytes)
            .into_iter()
            .map(|element| (Some(element), Bytes::new()))
            .collect(),
        CollectionKind::Map => value::pairs(bytes)
            .into_iter()
            .map(|(key, value)| (Some(key), value))
            .collect(),
        CollectionKind::User(count) => value::fields(bytes, count)
            .into_iter()
            .enumerate()
            .filter_map(|(index, field)| Some((Some(field_key(index)), field?)))
            .collect(),
    }
}
