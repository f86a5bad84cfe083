//! Collections, tuples and values of user-defined types in terms.

use grammar::ast::{Name, Term};

use super::TypeChecker;
use crate::command::Value;
use crate::planner::error::Error;
use crate::planner::refusal::{LiteralPart, TermRefusal};
use crate::planner::term::{ColumnSpec, TypedTerm, type_name};
use crate::planner::text::TermText;
use crate::planner::value;
use helenus_types::types::{Assignment, CqlType};

impl TypeChecker<'_> {
    pub(super) fn list(&mut self, term: &Term, elements: &[Term], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
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

    pub(super) fn set(&mut self, term: &Term, elements: &[Term], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
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

    pub(super) fn map(
        &mut self,
        _: &Term,
        entries: &[(Term, Term)],
        receiver: &ColumnSpec,
    ) -> Result<TypedTerm, Error> {
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

    pub(super) fn tuple(&mut self, elements: &[Term], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
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

    pub(super) fn udt(&mut self, fields: &[(Name, Term)], receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
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
