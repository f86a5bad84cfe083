//! Tuples, collections, vectors and user-defined types constructed from selectors.

use grammar::ast::Selector;

use super::{Selected, SelectorPlanner, TermPosition, cannot_infer};
use crate::command::Expression;
use crate::planner::error::Error;
use crate::planner::refusal::SelectionRefusal;
use crate::planner::text::Joined;
use helenus_types::types::CqlType;

impl SelectorPlanner<'_, '_> {
    pub(super) fn tuple(
        &mut self,
        selector: &Selector,
        of: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Selected, Error> {
        let is_tuple = expected.is_some_and(|ty| matches!(ty.unfrozen(), CqlType::Tuple(_) | CqlType::User(_)));
        if let ([only], true) = (of, expected.is_some() && !is_tuple) {
            let mut selected = self.select(only, expected)?;
            selected.name = format!("({})", selected.name);
            return Ok(selected);
        }
        let Some(ty) = self.exact(selector)?.or_else(|| expected.cloned()) else {
            return cannot_infer(&self.text(selector)?);
        };
        let types: Vec<CqlType> = match ty.unfrozen() {
            CqlType::Tuple(types) => types.to_vec(),
            CqlType::User(user) => user.fields.iter().map(|(_, ty)| ty.clone()).collect(),
            _ => {
                return Err(SelectionRefusal::NoTuple {
                    text: self.text(selector)?,
                    ty: ty.cql_name(),
                }
                .into());
            }
        };
        if of.len() > types.len() {
            return Err(SelectionRefusal::TupleLength {
                text: self.text(selector)?,
                ty: ty.cql_name(),
                expected: types.len(),
                given: of.len(),
            }
            .into());
        }
        let parts: Vec<(&Selector, &CqlType)> = of.iter().zip(&types).collect();
        self.construct(ty.clone(), &parts, |names| format!("({})", Joined(names, ", ")))
    }

    pub(super) fn collection(
        &mut self,
        selector: &Selector,
        of: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Selected, Error> {
        let Some(ty) = expected
            .cloned()
            .map_or_else(|| self.exact(selector), |ty| Ok(Some(ty)))?
        else {
            return cannot_infer(&self.text(selector)?);
        };
        let is_list = matches!(selector, Selector::List(_));
        let element = match (ty.unfrozen(), is_list) {
            (CqlType::List(element) | CqlType::Vector(element, _), true) | (CqlType::Set(element), false) => {
                (**element).clone()
            }
            (CqlType::Map(key, _), false) if of.is_empty() => (**key).clone(),
            _ => {
                let text = self.text(selector)?;
                return Err(SelectionRefusal::NoCollection {
                    text,
                    ty: ty.cql_name(),
                }
                .into());
            }
        };
        if let CqlType::Vector(_, dimension) = ty.unfrozen()
            && usize::try_from(*dimension).is_ok_and(|dimension| dimension != of.len())
        {
            return Err(SelectionRefusal::VectorLength {
                ty: ty.cql_name(),
                given: of.len(),
            }
            .into());
        }
        let parts: Vec<(&Selector, &CqlType)> = of.iter().map(|of| (of, &element)).collect();
        self.construct(ty.clone(), &parts, |names| {
            let names = Joined(names, ", ");
            if is_list {
                format!("[{names}]")
            } else {
                format!("{{{names}}}")
            }
        })
    }

    pub(super) fn map(
        &mut self,
        selector: &Selector,
        entries: &[(Selector, Selector)],
        expected: Option<&CqlType>,
    ) -> Result<Selected, Error> {
        let Some(ty) = self.exact(selector)?.or_else(|| expected.cloned()) else {
            return cannot_infer(&self.text(selector)?);
        };
        match ty.unfrozen() {
            CqlType::Map(key, value) => {
                let parts: Vec<(&Selector, &CqlType)> =
                    entries.iter().flat_map(|(k, v)| [(k, &**key), (v, &**value)]).collect();
                self.construct(ty.clone(), &parts, |names| {
                    let entries: Vec<String> = names
                        .chunks(2)
                        .map(|entry| match entry {
                            [key, value] => format!("{key}: {value}"),
                            other => other.concat(),
                        })
                        .collect();
                    format!("{{{}}}", Joined(&entries, ", "))
                })
            }
            CqlType::User(user) => {
                let mut elements = Vec::with_capacity(user.fields.len());
                let mut names = Vec::with_capacity(entries.len());
                let mut has_aggregate = false;
                for (field, ty) in &user.fields {
                    let named = |key: &Selector| matches!(key, Selector::Column(name) if name.as_str() == field);
                    match entries.iter().find(|(key, _)| named(key)) {
                        Some((_, value)) => {
                            let selected = self.select(value, Some(ty))?;
                            has_aggregate |= selected.has_aggregate;
                            elements.push(selected.expression);
                            names.push(format!("{field}: {}", selected.name));
                        }
                        None => elements.push(Expression::Constant(None)),
                    }
                }
                let name = format!("{{{}}}", Joined(&names, ", "));
                Ok(Selected {
                    expression: Expression::Construct {
                        ty: ty.clone(),
                        elements,
                    },
                    ty,
                    name,
                    has_aggregate,
                })
            }
            _ => cannot_infer(&self.text(selector)?),
        }
    }

    pub(super) fn construct(
        &mut self,
        ty: CqlType,
        parts: &[(&Selector, &CqlType)],
        name: impl FnOnce(&[String]) -> String,
    ) -> Result<Selected, Error> {
        let mut elements = Vec::with_capacity(parts.len());
        let mut names = Vec::with_capacity(parts.len());
        let mut has_aggregate = false;
        let outside = std::mem::replace(&mut self.place, TermPosition::Value);
        for (selector, ty) in parts {
            let selected = self.select(selector, Some(ty))?;
            has_aggregate |= selected.has_aggregate;
            elements.push(selected.expression);
            names.push(selected.name);
        }
        self.place = outside;
        let expression = Expression::Construct {
            ty: ty.clone(),
            elements,
        };
        Ok(Selected {
            expression,
            ty,
            name: name(&names),
            has_aggregate,
        })
    }
}
