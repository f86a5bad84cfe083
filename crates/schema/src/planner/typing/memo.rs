//! The calls of one statement: which were resolved, to which types, and which functions of users they call.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use grammar::ast::Site;

use crate::planner::error::Error;
use helenus_types::functions::Function;
use helenus_types::types::{Assignment, CqlType};

/// Memo of the types and fits of a statement's calls, by the token of each. Each overload of a function tests its
/// arguments again, and so do their overloads. Without this memo the cost of nested calls is exponential in their
/// depth.
#[derive(Debug, Default)]
pub(crate) struct CallMemo {
    fits: RefCell<HashMap<(u32, CqlType), Assignment>>,
    natural: RefCell<HashMap<u32, Option<CqlType>>>,
    /// The user-defined functions that are called, each with its clause.
    called: RefCell<Vec<(Clause, Function)>>,
    clause: Cell<Clause>,
}

/// A clause of a statement, in the order in which Cassandra collects the functions that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Clause {
    /// What SELECT selects.
    #[default]
    Selection,
    /// WHERE, and the key of an INSERT.
    Where,
    /// SET, VALUES, and what DELETE deletes.
    Set,
    /// IF.
    If,
}

impl CallMemo {
    /// Names the clause of the calls that follow.
    pub(crate) fn enter(&self, clause: Clause) {
        self.clause.set(clause);
    }

    /// Notes a call.
    pub(crate) fn note(&self, function: Option<&Function>) {
        if let Some(function) = function.filter(|function| function.is_user_defined()) {
            self.called.borrow_mut().push((self.clause.get(), function.clone()));
        }
    }

    /// The user-defined functions that the statement calls, in Cassandra's order, with those that its aggregates call.
    pub(crate) fn called(&self) -> Box<[Function]> {
        let mut called = self.called.take();
        called.sort_by_key(|(clause, _)| *clause);
        let mut all: Vec<Function> = Vec::new();
        for function in called.iter().flat_map(|(_, function)| function.with_parts()) {
            if !all.contains(function) {
                all.push(function.clone());
            }
        }
        all.into()
    }

    /// How well a call fits a type; computed once.
    pub(crate) fn fit(&self, at: Site, ty: &CqlType, find: impl FnOnce() -> Assignment) -> Assignment {
        let key = (at.token(), ty.clone());
        if let Some(known) = self.fits.borrow().get(&key) {
            return *known;
        }
        let found = find();
        self.fits.borrow_mut().insert(key, found);
        found
    }

    /// The type of a call without a receiver; computed once.
    ///
    /// # Errors
    /// Those of `find`, which are not kept.
    pub(crate) fn natural(
        &self,
        at: Site,
        find: impl FnOnce() -> Result<Option<CqlType>, Error>,
    ) -> Result<Option<CqlType>, Error> {
        if let Some(known) = self.natural.borrow().get(&at.token()) {
            return Ok(known.clone());
        }
        let found = find()?;
        self.natural.borrow_mut().insert(at.token(), found.clone());
        Ok(found)
    }
}
