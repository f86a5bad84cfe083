//! Bind markers in the order of the text. Cassandra numbers them in this order.

use crate::ast::{
    Assignment, Condition, ConditionTarget, Delete, DeleteTarget, If, Insert, InsertSource, Modification, Name,
    OrderBy, Relation, RelationTarget, RelationValue, Select, Selection, Selector, Site, Statement, Term, Update,
    Using,
};

/// A bind marker of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Marker<'a> {
    /// Its position in the text.
    pub at: Site,
    /// The name of `:name`; `None` for `?`.
    pub name: Option<&'a Name>,
}

/// The bind markers of a statement, in order of appearance. A marker's index in this list is its index in the protocol:
/// - SELECT: selectors, WHERE, GROUP BY, ORDER BY, PER PARTITION LIMIT, LIMIT;
/// - INSERT: values, USING;
/// - UPDATE: USING, assignments (an element's key before its value), WHERE, IF;
/// - DELETE: targets, USING, WHERE, IF;
/// - BATCH: USING, then each statement;
/// - USING: timestamp, TTL, unless `ttl_first`;
/// - a relation or condition: the element's key, then the value.
///
/// In statements that change a schema, it finds the markers that Cassandra's parser accepts there.
#[must_use]
pub fn markers(statement: &Statement) -> Vec<Marker<'_>> {
    let mut found = Found(Vec::new());
    match statement {
        Statement::Explain(explained) => return markers(explained),
        Statement::Select(select) => found.select(select),
        Statement::Insert(insert) => found.insert(insert),
        Statement::Update(update) => found.update(update),
        Statement::Delete(delete) => found.delete(delete),
        Statement::Batch(batch) => {
            found.using(&batch.using);
            for modification in &batch.modifications {
                match modification {
                    Modification::Insert(insert) => found.insert(insert),
                    Modification::Update(update) => found.update(update),
                    Modification::Delete(delete) => found.delete(delete),
                }
            }
        }
        Statement::CreateView(view) => {
            found.selection(&view.selection);
            found.relations(&view.relations);
        }
        Statement::CreateAggregate(aggregate) => found.terms(&aggregate.initial_condition),
        Statement::CreateTable(table) => {
            for column in &table.columns {
                column.mask.iter().for_each(|mask| found.terms(&mask.arguments));
            }
        }
        _ => {}
    }
    found.0
}

struct Found<'a>(Vec<Marker<'a>>);

impl<'a> Found<'a> {
    fn select(&mut self, select: &'a Select) {
        self.selection(&select.selection);
        self.relations(&select.relations);
        select.group_by.iter().for_each(|group| self.selector(&group.0));
        for ordering in &select.order_by {
            if let OrderBy::Ann(_, term, _) = ordering {
                self.term(term);
            }
        }
        self.terms(&select.per_partition_limit);
        self.terms(&select.limit);
    }

    fn insert(&mut self, insert: &'a Insert) {
        match &insert.source {
            InsertSource::Values { values, .. } => self.terms(values),
            InsertSource::Json { document, .. } => self.term(document),
        }
        self.using(&insert.using);
    }

    fn update(&mut self, update: &'a Update) {
        self.using(&update.using);
        for assignment in &update.assignments {
            match assignment {
                Assignment::Element(_, key, value) => {
                    self.term(key);
                    self.term(value);
                }
                Assignment::Set(_, value)
                | Assignment::Field(_, _, value)
                | Assignment::Add(_, value)
                | Assignment::Subtract(_, value)
                | Assignment::Prepend(_, value) => self.term(value),
            }
        }
        self.relations(&update.relations);
        self.condition(&update.condition);
    }

    fn delete(&mut self, delete: &'a Delete) {
        for target in &delete.targets {
            if let DeleteTarget::Element(_, key) = target {
                self.term(key);
            }
        }
        self.using(&delete.using);
        self.relations(&delete.relations);
        self.condition(&delete.condition);
    }

    fn using(&mut self, using: &'a Using) {
        let (first, second) = if using.ttl_first {
            (&using.ttl, &using.timestamp)
        } else {
            (&using.timestamp, &using.ttl)
        };
        self.terms(first);
        self.terms(second);
    }

    fn relations(&mut self, relations: &'a [Relation]) {
        for relation in relations {
            if let RelationTarget::Element(_, key) = &relation.target {
                self.term(key);
            }
            self.value(&relation.value);
        }
    }

    fn condition(&mut self, condition: &'a If) {
        let If::Conditions(conditions) = condition else { return };
        for Condition { target, value, .. } in conditions {
            if let ConditionTarget::Element(_, key) = target {
                self.term(key);
            }
            self.value(value);
        }
    }

    fn value(&mut self, value: &'a RelationValue) {
        match value {
            RelationValue::Term(term) => self.term(term),
            RelationValue::Terms(terms) => self.terms(terms),
            RelationValue::None => {}
        }
    }

    fn selection(&mut self, selection: &'a Selection) {
        if let Selection::Selectors(selectors) = selection {
            selectors.iter().for_each(|aliased| self.selector(&aliased.selector));
        }
    }

    fn selector(&mut self, selector: &'a Selector) {
        match selector {
            Selector::Column(_) | Selector::CountRows(_) => {}
            Selector::Term(term) => self.term(term),
            Selector::Function { arguments, .. } => arguments.iter().for_each(|argument| self.selector(argument)),
            Selector::Metadata { of, .. } | Selector::Field { of, .. } => self.selector(of),
            Selector::Cast { selector, .. } | Selector::TypeHint { selector, .. } => self.selector(selector),
            Selector::Negate { of: selector, .. } => self.selector(selector),
            Selector::Element { of, key } => {
                self.selector(of);
                self.term(key);
            }
            Selector::Slice { of, from, to } => {
                self.selector(of);
                self.terms(from);
                self.terms(to);
            }
            Selector::Arithmetic { left, right, .. } => {
                self.selector(left);
                self.selector(right);
            }
            Selector::Tuple(elements) | Selector::List(elements) | Selector::Set(elements) => {
                elements.iter().for_each(|element| self.selector(element));
            }
            Selector::Map(entries) => {
                for (key, value) in entries {
                    self.selector(key);
                    self.selector(value);
                }
            }
        }
    }

    fn terms(&mut self, terms: impl IntoIterator<Item = &'a Term>) {
        terms.into_iter().for_each(|term| self.term(term));
    }

    fn term(&mut self, term: &'a Term) {
        match term {
            Term::Literal(_) => {}
            Term::BindMarker { name, at } => self.0.push(Marker {
                at: *at,
                name: name.as_ref(),
            }),
            Term::List(terms) | Term::Set(terms) | Term::Tuple(terms) => self.terms(terms),
            Term::Function { arguments, .. } => self.terms(arguments),
            Term::Map(entries) => {
                for (key, value) in entries {
                    self.term(key);
                    self.term(value);
                }
            }
            Term::Udt(fields) => self.terms(fields.iter().map(|(_, value)| value)),
            Term::TypeHint { term, .. } | Term::Negate { of: term, .. } | Term::Cast { term, .. } => self.term(term),
            Term::Arithmetic { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
        }
    }
}
