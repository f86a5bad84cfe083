//! Functions that Cosmos has and Cassandra has dropped: `dateOf` and `unixTimestampOf`. The module `functions` keeps
//! them under names that no client writes; this module renames calls to those.

use grammar::ast::{
    Assignment, Insert, InsertSource, Relation, RelationValue, Select, Selection, Selector, Term, Update,
};

use crate::planner::ast::Name;
use helenus_types::functions;

fn name(called: &mut Name) {
    if let Some(kept) = functions::dropped(called.as_str()) {
        *called = Name(kept.to_owned());
    }
}

pub(super) fn select(select: &mut Select) {
    relations(&mut select.relations);
    if let Selection::Selectors(selectors) = &mut select.selection {
        selectors
            .iter_mut()
            .for_each(|selected| selector(&mut selected.selector));
    }
}

pub(super) fn insert(insert: &mut Insert) {
    if let InsertSource::Values { values, .. } = &mut insert.source {
        values.iter_mut().for_each(term);
    }
}

pub(super) fn update(update: &mut Update) {
    for assignment in &mut update.assignments {
        match assignment {
            Assignment::Set(_, value)
            | Assignment::Field(_, _, value)
            | Assignment::Element(_, _, value)
            | Assignment::Add(_, value)
            | Assignment::Subtract(_, value)
            | Assignment::Prepend(_, value) => term(value),
        }
    }
    relations(&mut update.relations);
}

pub(super) fn relations(relations: &mut [Relation]) {
    for relation in relations {
        match &mut relation.value {
            RelationValue::Term(value) => term(value),
            RelationValue::Terms(values) => values.iter_mut().for_each(term),
            RelationValue::None => {}
        }
    }
}

fn term(value: &mut Term) {
    match value {
        Term::Literal(_) | Term::BindMarker { .. } => {}
        Term::List(parts) | Term::Set(parts) | Term::Tuple(parts) => parts.iter_mut().for_each(term),
        Term::Map(pairs) => {
            for (key, value) in pairs {
                term(key);
                term(value);
            }
        }
        Term::Udt(fields) => fields.iter_mut().for_each(|(_, value)| term(value)),
        Term::Function {
            name: called,
            arguments,
            ..
        } => {
            name(&mut called.name);
            arguments.iter_mut().for_each(term);
        }
        Term::TypeHint { term: of, .. } | Term::Negate { of, .. } | Term::Cast { term: of, .. } => term(of),
        Term::Arithmetic { left, right, .. } => {
            term(left);
            term(right);
        }
    }
}

fn selector(selected: &mut Selector) {
    match selected {
        Selector::Column(_) | Selector::CountRows(_) => {}
        Selector::Term(of) => term(of),
        Selector::Function {
            name: called,
            arguments,
            ..
        } => {
            name(&mut called.name);
            arguments.iter_mut().for_each(selector);
        }
        Selector::Tuple(parts) | Selector::List(parts) | Selector::Set(parts) => {
            parts.iter_mut().for_each(selector);
        }
        Selector::Metadata { of, .. }
        | Selector::Field { of, .. }
        | Selector::Element { of, .. }
        | Selector::Slice { of, .. }
        | Selector::Cast { selector: of, .. }
        | Selector::TypeHint { selector: of, .. }
        | Selector::Negate { of, .. } => selector(of),
        Selector::Arithmetic { left, right, .. } => {
            selector(left);
            selector(right);
        }
        Selector::Map(pairs) => {
            for (key, value) in pairs {
                selector(key);
                selector(value);
            }
        }
    }
}
