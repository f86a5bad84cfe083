//! Calls, casts, fields, elements, slices, write times and times to live.

use bytes::Bytes;
use grammar::ast::{self, MetadataKind, Selector, Term};

use super::{Selected, SelectorPlanner, TermPosition, term_text};
use crate::command::{Expression, Part};
use crate::planner::error::Error;
use crate::planner::function::{self, Callee, Resolved};
use crate::planner::operation;
use crate::planner::refusal::SelectionRefusal;
use crate::planner::term::ColumnSpec;
use crate::schema::ColumnKind;
use helenus_types::functions::Argument;
use helenus_types::token::Token;
use helenus_types::types::CqlType;

impl SelectorPlanner<'_, '_> {
    pub(super) fn call(&mut self, resolved: Resolved, of: Vec<&Selector>) -> Result<Selected, Error> {
        let mut arguments = Vec::with_capacity(of.len());
        let mut names = Vec::with_capacity(of.len());
        let mut has_aggregate = false;
        let called = resolved.function.as_ref().map_or("token", |function| function.name());
        let outside = std::mem::replace(&mut self.place, TermPosition::Argument(called.to_owned()));
        for (selector, ty) in of.iter().zip(&resolved.arguments) {
            let selected = self.select(selector, Some(ty))?;
            has_aggregate |= selected.has_aggregate;
            arguments.push(selected.expression);
            names.push(selected.name);
        }
        self.place = outside;
        let is_aggregate = resolved.is_aggregate();
        if is_aggregate && has_aggregate {
            return Err(SelectionRefusal::AggregateOfAggregate.into());
        }
        let name = resolved.result_name(&names);
        let expression = match resolved.function {
            // All keys of an ordered table have one token.
            None if self.table.options.is_ordered => {
                let token = Token::OF_ORDERED.value().to_be_bytes();
                Expression::Constant(Some(Bytes::copy_from_slice(&token)))
            }
            None => Expression::Token(arguments),
            Some(function) if is_aggregate => self.aggregate(Some(function), arguments),
            Some(function) => Expression::Function { function, arguments },
        };
        Ok(Selected {
            expression,
            ty: resolved.returns,
            name,
            has_aggregate: has_aggregate || is_aggregate,
        })
    }

    pub(super) fn cast(&mut self, of: &Selector, target: &ast::Type) -> Result<Selected, Error> {
        let target = function::cast_target(target);
        let outside = std::mem::replace(&mut self.place, TermPosition::Argument(format!("cast_as_{target}")));
        let inner = self.select(of, None)?;
        self.place = outside;
        let argument = Argument::typed(inner.name.clone(), inner.ty.clone());
        let Some(resolved) = function::resolve(&self.typer.scope(), Callee::Cast(&target), vec![argument], None)?
        else {
            return Ok(inner);
        };
        let name = resolved.result_name(std::slice::from_ref(&inner.name));
        let Some(function) = resolved.function else {
            return Ok(inner);
        };
        let expression = Expression::Function {
            function,
            arguments: vec![inner.expression],
        };
        Ok(Selected {
            expression,
            ty: resolved.returns,
            name,
            has_aggregate: inner.has_aggregate,
        })
    }

    /// Plans the value whose field or element is selected; a selector in parentheses is itself.
    pub(super) fn container(&mut self, of: &Selector) -> Result<Selected, Error> {
        match of {
            Selector::Tuple(inner) => match inner.as_slice() {
                [only] => {
                    let mut selected = self.container(only)?;
                    selected.name = format!("({})", selected.name);
                    Ok(selected)
                }
                _ => self.select(of, None),
            },
            _ => self.select(of, None),
        }
    }

    pub(super) fn field(&mut self, of: &Selector, field: &ast::Name) -> Result<Selected, Error> {
        let selected = self.container(of)?;
        let CqlType::User(user) = selected.ty.unfrozen() else {
            return Err(SelectionRefusal::NoFields {
                name: selected.name,
                ty: selected.ty.cql_name(),
            }
            .into());
        };
        let Some((index, ty)) = operation::field_of(user, field) else {
            return Err(SelectionRefusal::NoField {
                name: selected.name,
                user_type: user.name.clone(),
                field: field.as_str().to_owned(),
            }
            .into());
        };
        let ty = ty.clone();
        let name = format!("{}.{}", selected.name, field.as_str());
        Ok(selected.part(Part::Field(index), ty, name))
    }

    pub(super) fn element(&mut self, of: &Selector, key: &Term) -> Result<Selected, Error> {
        let selected = self.container(of)?;
        let (receiver, ty) = element_receiver(&selected, "Element")?;
        let typed = self.typer.term(key, &receiver)?;
        let outside = std::mem::replace(&mut self.place, TermPosition::Element(selected.name.clone()));
        let key_expression = self.deferred(typed);
        self.place = outside;
        let name = format!("{}[{}]", selected.name, term_text(key));
        Ok(selected.part(Part::Element(key_expression), ty, name))
    }

    pub(super) fn slice(&mut self, of: &Selector, from: Option<&Term>, to: Option<&Term>) -> Result<Selected, Error> {
        let selected = self.container(of)?;
        let (receiver, _) = element_receiver(&selected, "Slice")?;
        let outside = std::mem::replace(&mut self.place, TermPosition::Slice(selected.name.clone()));
        let mut end = |term: Option<&Term>| -> Result<Option<Expression>, Error> {
            let Some(term) = term else { return Ok(None) };
            let typed = self.typer.term(term, &receiver)?;
            Ok(Some(self.deferred(typed)))
        };
        let (first, last) = (end(from)?, end(to)?);
        self.place = outside;
        let text = |term: Option<&Term>| term.map(term_text).unwrap_or_default();
        let name = format!("{}[{}..{}]", selected.name, text(from), text(to));
        let ty = selected.ty.clone();
        Ok(selected.part(Part::Slice(first, last), ty, name))
    }

    pub(super) fn metadata(&mut self, kind: MetadataKind, of: &Selector) -> Result<Selected, Error> {
        let function = metadata_name(kind);
        let name = match of {
            Selector::Column(name) => name,
            Selector::Field { of, .. } | Selector::Element { of, .. } | Selector::Slice { of, .. } => match &**of {
                Selector::Column(name) => name,
                _ => {
                    return Err(SelectionRefusal::MetadataOfTerm {
                        function,
                        text: self.text(of)?,
                    }
                    .into());
                }
            },
            _ => {
                return Err(SelectionRefusal::MetadataOfTerm {
                    function,
                    text: self.text(of)?,
                }
                .into());
            }
        };
        let (index, ty) = self.column(name)?;
        let kind_of = self.table.columns.get(index).map(|column| column.kind);
        if matches!(kind_of, Some(ColumnKind::PartitionKey | ColumnKind::Clustering)) {
            return Err(SelectionRefusal::MetadataOfKey {
                function,
                column: name.as_str().to_owned(),
            }
            .into());
        }
        let result = self.metadata_type(kind, of)?;
        let selected = self.select(of, None)?;
        let text = selected.name.clone();
        // A single cell has one write time, whichever part is selected.
        let part = match selected.expression {
            Expression::Part { part, .. } if ty.is_multi_cell() => Some(part),
            _ => None,
        };
        self.needs_metadata = true;
        let expression = match kind {
            MetadataKind::Ttl => Expression::Ttl { column: index, part },
            MetadataKind::WriteTime => Expression::WriteTime {
                column: index,
                max: false,
                part,
            },
            MetadataKind::MaxWriteTime => Expression::WriteTime {
                column: index,
                max: true,
                part,
            },
        };
        Ok(Selected::new(expression, result, &format!("{function}({text})")))
    }
}

/// The receiver of an element's key or of the ends of a slice, and the type of an element.
fn element_receiver(selected: &Selected, what: &'static str) -> Result<(ColumnSpec, CqlType), Error> {
    let name = &selected.name;
    match selected.ty.unfrozen() {
        CqlType::Map(key, value) => Ok((
            ColumnSpec::new(format!("key({name})"), (**key).clone()),
            (**value).clone(),
        )),
        CqlType::Set(element) => Ok((
            ColumnSpec::new(format!("value({name})"), (**element).clone()),
            (**element).clone(),
        )),
        CqlType::List(_) => Err(SelectionRefusal::PartOfList {
            what,
            name: name.clone(),
        }
        .into()),
        _ => Err(SelectionRefusal::PartOfOther {
            what,
            name: name.clone(),
            ty: selected.ty.cql_name(),
        }
        .into()),
    }
}

pub(super) const fn metadata_name(kind: MetadataKind) -> &'static str {
    match kind {
        MetadataKind::WriteTime => "writetime",
        MetadataKind::MaxWriteTime => "maxwritetime",
        MetadataKind::Ttl => "ttl",
    }
}
