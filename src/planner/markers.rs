//! Bind markers: where each stands, what it is called and which type it takes.

use std::sync::Arc;

use foldhash::HashMap;
use grammar::ast::{self, Assignment, ConditionTarget, DeleteTarget, InsertSource, Modification, RelationTarget};
use grammar::ast::{RelationValue, Selection, Selector, Statement, Term};

use super::Error;
use super::bound::Value;
use super::error::invalid;
use crate::types::CqlType;

/// Most markers of one statement: the protocol counts them in 16 bits.
pub const MARKERS_MAX: usize = 65_535;

/// One bind marker as a PREPARED response describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerSpec {
    /// The keyspace of the table it is compared with.
    pub keyspace: Arc<str>,
    /// That table.
    pub table: Arc<str>,
    /// Its own name, or the column's, or what Cassandra calls it (`[limit]`, `in(c)`, `key(m)`, …).
    pub name: String,
    /// The type its values have.
    pub ty: CqlType,
}

/// The markers of one statement while it is planned.
///
/// They are numbered in order of writing, but typed in the order in which Cassandra judges a statement; so they are found by
/// the place of their node in the tree, which stands still meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    index: HashMap<*const Term, usize>,
    names: Vec<Option<String>>,
    specs: Vec<Option<MarkerSpec>>,
    /// For each marker the key column that it is the value of: its place in the partition key.
    partition_key: Vec<Option<usize>>,
}

impl Markers {
    /// Numbers the markers of a statement.
    pub(crate) fn of(statement: &Statement) -> Result<Self, Error> {
        let mut markers = Self::default();
        match statement {
            Statement::Select(select) => markers.select(select),
            Statement::Insert(insert) => markers.insert(insert),
            Statement::Update(update) => markers.update(update),
            Statement::Delete(delete) => markers.delete(delete),
            Statement::Batch(batch) => {
                markers.using(&batch.using);
                for modification in &batch.modifications {
                    match modification {
                        Modification::Insert(insert) => markers.insert(insert),
                        Modification::Update(update) => markers.update(update),
                        Modification::Delete(delete) => markers.delete(delete),
                    }
                }
            }
            _ => {}
        }
        if markers.names.len() > MARKERS_MAX {
            return invalid!(
                "Too many markers(?). {} markers exceed the allowed maximum of {MARKERS_MAX}",
                markers.names.len()
            );
        }
        markers.specs.resize_with(markers.names.len(), || None);
        markers.partition_key.resize(markers.names.len(), None);
        Ok(markers)
    }

    /// Types the marker at this node; its index.
    pub(crate) fn define(&mut self, node: &Term, mut spec: MarkerSpec, partition_key: Option<usize>) -> usize {
        let index = self.index.get(&std::ptr::from_ref(node)).copied();
        let index = index.expect("every marker of the tree was numbered");
        if let Some(Some(name)) = self.names.get(index) {
            spec.name.clone_from(name);
        }
        if let Some(slot) = self.specs.get_mut(index) {
            *slot = Some(spec);
        }
        if let Some(slot) = self.partition_key.get_mut(index) {
            *slot = partition_key;
        }
        index
    }

    /// All markers, and for each partition key column the index of the marker that gives it; empty where one has none, or the
    /// markers belong to several tables.
    pub(crate) fn finish(self, partition_key_count: usize) -> (Vec<MarkerSpec>, Vec<u16>) {
        let mut by_column: Vec<Option<u16>> = vec![None; partition_key_count];
        for (index, position) in self.partition_key.iter().enumerate() {
            // The last one wins, as in `IN (?, ?)`.
            if let Some(slot) = position.and_then(|position| by_column.get_mut(position)) {
                *slot = u16::try_from(index).ok();
            }
        }
        let specs: Vec<MarkerSpec> = self.specs.into_iter().flatten().collect();
        let one_table = specs
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.keyspace == b.keyspace && a.table == b.table));
        let indexes = if one_table {
            by_column.into_iter().collect()
        } else {
            None
        };
        (specs, indexes.unwrap_or_default())
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::BindMarker(name) => {
                self.index.insert(std::ptr::from_ref(term), self.names.len());
                self.names.push(name.as_ref().map(|name| name.as_str().to_owned()));
            }
            Term::Literal(_) => {}
            Term::List(terms) | Term::Set(terms) | Term::Tuple(terms) => self.terms(terms),
            Term::Function { arguments, .. } => self.terms(arguments),
            Term::Map(entries) => {
                for (key, value) in entries {
                    self.term(key);
                    self.term(value);
                }
            }
            Term::Udt(fields) => {
                for (_, value) in fields {
                    self.term(value);
                }
            }
            Term::TypeHint { term, .. } | Term::Negate(term) | Term::Cast { term, .. } => self.term(term),
            Term::Arithmetic { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
        }
    }

    fn terms(&mut self, terms: &[Term]) {
        for term in terms {
            self.term(term);
        }
    }

    fn selector(&mut self, selector: &Selector) {
        match selector {
            Selector::Column(_) | Selector::CountRows(_) => {}
            Selector::Term(term) => self.term(term),
            Selector::Function { arguments, .. } => self.selectors(arguments),
            Selector::Metadata { of, .. } | Selector::Field { of, .. } => self.selector(of),
            Selector::Cast { selector, .. } | Selector::Negate(selector) | Selector::TypeHint { selector, .. } => {
                self.selector(selector);
            }
            Selector::Element { of, key } => {
                self.selector(of);
                self.term(key);
            }
            Selector::Slice { of, from, to } => {
                self.selector(of);
                from.iter().for_each(|term| self.term(term));
                to.iter().for_each(|term| self.term(term));
            }
            Selector::Arithmetic { left, right, .. } => {
                self.selector(left);
                self.selector(right);
            }
            Selector::Tuple(of) | Selector::List(of) | Selector::Set(of) => self.selectors(of),
            Selector::Map(entries) => {
                for (key, value) in entries {
                    self.selector(key);
                    self.selector(value);
                }
            }
        }
    }

    fn selectors(&mut self, selectors: &[Selector]) {
        for selector in selectors {
            self.selector(selector);
        }
    }

    fn value(&mut self, value: &RelationValue) {
        match value {
            RelationValue::Term(term) => self.term(term),
            RelationValue::Terms(terms) => self.terms(terms),
            RelationValue::None => {}
        }
    }

    fn relations(&mut self, relations: &[ast::Relation]) {
        for relation in relations {
            if let RelationTarget::Element(_, key) = &relation.target {
                self.term(key);
            }
            self.value(&relation.value);
        }
    }

    fn using(&mut self, using: &ast::Using) {
        let order = if using.ttl_first {
            [&using.ttl, &using.timestamp]
        } else {
            [&using.timestamp, &using.ttl]
        };
        for term in order.into_iter().flatten() {
            self.term(term);
        }
    }

    fn condition(&mut self, condition: &ast::If) {
        if let ast::If::Conditions(conditions) = condition {
            for condition in conditions {
                if let ConditionTarget::Element(_, key) = &condition.target {
                    self.term(key);
                }
                self.value(&condition.value);
            }
        }
    }

    fn select(&mut self, select: &ast::Select) {
        if let Selection::Selectors(selectors) = &select.selection {
            for selector in selectors {
                self.selector(&selector.selector);
            }
        }
        self.relations(&select.relations);
        for group in &select.group_by {
            self.selector(&group.0);
        }
        for order in &select.order_by {
            if let ast::OrderBy::Ann(_, term, _) = order {
                self.term(term);
            }
        }
        let limits = [&select.per_partition_limit, &select.limit];
        limits.into_iter().flatten().for_each(|term| self.term(term));
    }

    fn insert(&mut self, insert: &ast::Insert) {
        match &insert.source {
            InsertSource::Values { values, .. } => self.terms(values),
            InsertSource::Json { document, .. } => self.term(document),
        }
        self.using(&insert.using);
    }

    fn update(&mut self, update: &ast::Update) {
        self.using(&update.using);
        for assignment in &update.assignments {
            match assignment {
                Assignment::Set(_, term)
                | Assignment::Field(_, _, term)
                | Assignment::Add(_, term)
                | Assignment::Subtract(_, term)
                | Assignment::Prepend(_, term) => self.term(term),
                Assignment::Element(_, key, term) => {
                    self.term(key);
                    self.term(term);
                }
            }
        }
        self.relations(&update.relations);
        self.condition(&update.condition);
    }

    fn delete(&mut self, delete: &ast::Delete) {
        for target in &delete.targets {
            if let DeleteTarget::Element(_, key) = target {
                self.term(key);
            }
        }
        self.using(&delete.using);
        self.relations(&delete.relations);
        self.condition(&delete.condition);
    }
}

/// Puts values that came with names into the order of the markers; a marker without a value gets none, which binding refuses
/// by their number.
#[must_use]
pub fn arrange(markers: &[MarkerSpec], names: &[impl AsRef<str>], values: &[Value]) -> Vec<Value> {
    markers
        .iter()
        .filter_map(|marker| {
            let position = names.iter().position(|name| name.as_ref() == marker.name)?;
            values.get(position).cloned()
        })
        .collect()
}
