//! Checks statements, and the control flow between them.

use std::sync::Arc;

use super::flow::{Assigned, Target};
use super::{Checker, TypedExpr};
use crate::class::{Class, Kind, Ty};
use crate::error::Mistake;
use crate::syntax::{Catch, Declared, Expr, Group, Stmt, StmtKind, TypeText, Word};
use crate::tree::{Node, Reason, Statement};
use crate::value::Value;

impl Checker {
    /// Checks a list of statements in the current scope.
    pub(super) fn statements(&mut self, statements: &[Stmt]) -> Vec<Statement> {
        let mut checked = Vec::with_capacity(statements.len());
        for statement in statements {
            if !self.assigned.is_reachable() {
                self.flow_mistake(statement.line, Mistake::Unreachable);
                self.assigned.assume_all_assigned(self.locals.len());
            }
            checked.extend(self.statement(statement, None));
        }
        checked
    }

    fn block(&mut self, statements: &[Stmt]) -> Statement {
        Statement::Block(self.scoped(|checker| checker.statements(statements)))
    }

    /// Checks a single statement in a scope of its own.
    fn single(&mut self, statement: &Stmt) -> Statement {
        self.scoped(|checker| Statement::Block(checker.statements(std::slice::from_ref(statement))))
    }

    fn statement(&mut self, statement: &Stmt, label: Option<&Word>) -> Vec<Statement> {
        let line = statement.line;
        let one = match &statement.kind {
            StmtKind::Empty => return Vec::new(),
            StmtKind::Block(inner) => self.block(inner),
            StmtKind::Local { is_final, ty, declared } => return self.local_variables(*is_final, ty, declared),
            StmtKind::Expr(expression) => Statement::Evaluate(self.expression(expression).node),
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => self.if_statement(condition, then, otherwise.as_deref()),
            StmtKind::While { condition, body } => self.while_loop(label, &[], Some(condition), &[], body),
            StmtKind::For {
                start,
                condition,
                step,
                body,
            } => self.scoped(|checker| checker.while_loop(label, start, condition.as_ref(), step, body)),
            StmtKind::Do { body, condition } => self.do_loop(label, body, condition),
            StmtKind::ForEach {
                is_final,
                ty,
                name,
                of,
                body,
            } => self.scoped(|checker| checker.for_each(label, *is_final, ty, name, of, body)),
            StmtKind::Switch { on, groups } => self.scoped(|checker| checker.switch(label, on, groups)),
            StmtKind::Labelled { label, body } => return self.labelled(label, body),
            StmtKind::Break(label) => self.leave(line, label.as_ref(), true),
            StmtKind::Continue(label) => self.leave(line, label.as_ref(), false),
            StmtKind::Return(value) => self.return_statement(line, value.as_ref()),
            StmtKind::Throw(value) => self.throw(line, value),
            StmtKind::Try { body, catches, finally } => self.try_statement(body, catches, finally.as_deref()),
        };
        vec![one]
    }

    fn local_variables(&mut self, is_final: bool, written: &TypeText, declared: &[Declared]) -> Vec<Statement> {
        let is_var = written.name == "var" && written.arguments.is_empty() && written.dimensions == 0;
        let base = if is_var { None } else { Some(self.ty(written)) };
        let mut checked = Vec::new();
        for declared in declared {
            let line = declared.line;
            let (ty, node) = match (&base, &declared.value) {
                (Some(base), value) => {
                    let ty = (0..declared.dimensions).fold(base.clone(), |of, _| Ty::Array(Box::new(of)));
                    // The name is in scope inside its own initializer, where it has no value yet.
                    let number = self.declare_new(line, &declared.name, ty.clone(), is_final);
                    let node = value.as_ref().map(|value| self.expected(value, &ty));
                    if let Some(node) = node {
                        self.initialize(number, is_final, node, &mut checked);
                    }
                    continue;
                }
                (None, Some(value)) => {
                    let TypedExpr { ty, node, .. } = self.expression(value);
                    if ty == Ty::Null {
                        self.mistake(line, Mistake::VarNull(declared.name.to_string()));
                    }
                    (ty, node)
                }
                (None, None) => {
                    self.mistake(line, Mistake::VarWithoutValue(declared.name.to_string()));
                    (Ty::Unknown, Node::Const(Value::Null))
                }
            };
            let number = self.declare_new(line, &declared.name, ty, is_final);
            self.initialize(number, is_final, node, &mut checked);
        }
        checked
    }

    fn initialize(&mut self, number: usize, is_final: bool, node: Node, checked: &mut Vec<Statement>) {
        self.assigned.assign(number);
        let Some(local) = self.locals.get_mut(number) else {
            return;
        };
        let is_plain = matches!(local.ty, Ty::Prim(_)) || local.ty.is_string();
        if let Node::Const(value @ (Value::Prim(_) | Value::Text(_))) = &node
            && is_final
            && is_plain
        {
            local.constant = Some(value.clone());
        }
        checked.push(Statement::Evaluate(Node::Assign(local.slot, Box::new(node))));
    }

    fn if_statement(&mut self, condition: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Statement {
        let value = self.expression(condition);
        let condition = self.condition(condition.line, value).node;
        let before = self.assigned.clone();
        let then = Box::new(self.single(then));
        let after_then = std::mem::replace(&mut self.assigned, before);
        let otherwise = otherwise.map(|otherwise| Box::new(self.single(otherwise)));
        let after_else = std::mem::replace(&mut self.assigned, Assigned::unreached());
        self.assigned = after_then.merged(&after_else);
        Statement::If(condition, then, otherwise)
    }

    fn open(&mut self, label: Option<&Word>, is_loop: bool, is_breakable: bool) -> u32 {
        let number = self.next_target;
        self.next_target += 1;
        self.targets.push(Target {
            number,
            label: label.map(Arc::clone),
            is_loop,
            is_breakable,
            breaks: Assigned::unreached(),
            continues: Assigned::unreached(),
        });
        number
    }

    /// Closes the innermost target; returns the states at its breaks and at its continues.
    fn close(&mut self) -> (Assigned, Assigned) {
        match self.targets.pop() {
            Some(target) => (target.breaks, target.continues),
            None => (Assigned::unreached(), Assigned::unreached()),
        }
    }

    fn while_loop(
        &mut self,
        label: Option<&Word>,
        start: &[Stmt],
        condition: Option<&Expr>,
        step: &[Stmt],
        body: &Stmt,
    ) -> Statement {
        let start = self.statements(start);
        let condition = condition.map(|condition| {
            let value = self.expression(condition);
            self.condition(condition.line, value)
        });
        let is_endless = condition.as_ref().is_none_or(TypedExpr::is_true);
        let after = if is_endless {
            Assigned::unreached()
        } else {
            self.assigned.clone()
        };
        let number = self.open(label, true, true);
        let body = Box::new(self.single(body));
        let (breaks, continues) = self.close();
        let end = std::mem::replace(&mut self.assigned, Assigned::unreached()).merged(&continues);
        let step = if end.is_reachable() {
            self.assigned = end;
            self.statements(step)
        } else {
            Vec::new()
        };
        self.assigned = after.merged(&breaks);
        let condition = condition.map(|condition| condition.node);
        Statement::Loop {
            number,
            start,
            condition,
            step,
            body,
            tests_first: true,
        }
    }

    fn do_loop(&mut self, label: Option<&Word>, body: &Stmt, condition: &Expr) -> Statement {
        let number = self.open(label, true, true);
        let body = Box::new(self.single(body));
        let (breaks, continues) = self.close();
        self.assigned = std::mem::replace(&mut self.assigned, Assigned::unreached()).merged(&continues);
        let value = self.expression(condition);
        let condition = self.condition(condition.line, value);
        if condition.is_true() {
            self.assigned = Assigned::unreached();
        }
        self.assigned = std::mem::replace(&mut self.assigned, Assigned::unreached()).merged(&breaks);
        let condition = Some(condition.node);
        Statement::Loop {
            number,
            start: Vec::new(),
            condition,
            step: Vec::new(),
            body,
            tests_first: false,
        }
    }

    fn for_each(
        &mut self,
        label: Option<&Word>,
        is_final: bool,
        written: &TypeText,
        name: &Word,
        of: &Expr,
        body: &Stmt,
    ) -> Statement {
        let line = of.line;
        let value = self.expression(of);
        let (element, because): (Ty, Reason) = match &value.ty {
            Ty::Array(element) => {
                let because = value
                    .reason
                    .map(|reason| format!("Cannot read the array length because {reason}").into());
                ((**element).clone(), because)
            }
            Ty::Ref(class, arguments) if class.is(Class::Iterable) => {
                let reason = value
                    .reason
                    .map(|reason| format!(" because {reason}"))
                    .unwrap_or_default();
                let because = format!("Cannot invoke \"{}.iterator()\"{reason}", class.full_name());
                (
                    arguments.first().cloned().unwrap_or_else(Ty::object),
                    Some(because.into()),
                )
            }
            Ty::Unknown => (Ty::Unknown, None),
            _ => {
                self.mistake(line, Mistake::NotIterable);
                (Ty::Unknown, None)
            }
        };
        let is_var = written.name == "var" && written.arguments.is_empty() && written.dimensions == 0;
        let ty = if is_var { element.clone() } else { self.ty(written) };
        // An iterator takes one slot; an array, its length and its position take three.
        self.next_slot += if matches!(value.ty, Ty::Array(_)) { 3 } else { 1 };
        let held = TypedExpr::new(element, Node::Held);
        let convert = self.assigned_to(line, held, &ty);
        let convert = if matches!(convert, Node::Held) {
            None
        } else {
            Some(convert)
        };
        let before = self.assigned.clone();
        let local = self.declare_new(written.line, name, ty, is_final);
        self.assigned.assign(local);
        let slot = self.locals.get(local).map_or(0, |local| local.slot);
        let number = self.open(label, true, true);
        let body = Box::new(self.single(body));
        let (breaks, _) = self.close();
        self.assigned = before.merged(&breaks);
        Statement::ForEach {
            number,
            slot,
            of: value.node,
            because,
            convert,
            body,
        }
    }

    fn switch(&mut self, label: Option<&Word>, on: &Expr, groups: &[Group]) -> Statement {
        let line = on.line;
        let value = self.expression(on);
        let ty = value.ty.clone();
        let kind = value
            .ty
            .primitive()
            .filter(|kind| kind.is_integral() && *kind != Kind::Long);
        let value_is_unfit = kind.is_none();
        let (on, kind) = match kind {
            Some(kind) => (self.assigned_to(line, value, &Ty::Prim(kind)), kind),
            None => {
                if ty != Ty::Unknown {
                    // Cassandra's compiler refuses texts here, although its message says otherwise.
                    self.mistake(line, Mistake::Switch(ty.to_string()));
                }
                (value.node, Kind::Int)
            }
        };
        let number = self.open(label, false, true);
        let before = std::mem::replace(&mut self.assigned, Assigned::unreached());
        let (mut cases, mut body, mut has_default) = (Vec::new(), Vec::new(), false);
        for group in groups {
            for label in &group.labels {
                match label {
                    // The switch's value was refused, so its labels are not checked.
                    Some(_) if value_is_unfit => {}
                    Some(label) => {
                        let value = self.expression(label);
                        let is_known = value.ty == Ty::Unknown || ty == Ty::Unknown;
                        let node = self.assigned_to(label.line, value, &Ty::Prim(kind));
                        match node {
                            Node::Const(value @ Value::Prim(_)) => {
                                if cases.iter().any(|(other, _)| same_case(other, &value)) {
                                    self.mistake(label.line, Mistake::CaseDuplicate);
                                }
                                cases.push((Some(value), body.len()));
                            }
                            _ if is_known => {}
                            _ => {
                                self.mistake(label.line, Mistake::CaseNotConstant);
                            }
                        }
                    }
                    None if has_default => {
                        self.mistake(line, Mistake::DefaultDuplicate);
                    }
                    None => {
                        has_default = true;
                        cases.push((None, body.len()));
                    }
                }
            }
            self.assigned = std::mem::replace(&mut self.assigned, Assigned::unreached()).merged(&before);
            body.extend(self.statements(&group.body));
        }
        let (breaks, _) = self.close();
        let mut after = std::mem::replace(&mut self.assigned, Assigned::unreached()).merged(&breaks);
        if !has_default || groups.is_empty() {
            after = after.merged(&before);
        }
        self.assigned = after;
        Statement::Switch {
            number,
            on,
            cases,
            body,
        }
    }

    fn labelled(&mut self, label: &Word, body: &Stmt) -> Vec<Statement> {
        if matches!(
            body.kind,
            StmtKind::While { .. } | StmtKind::Do { .. } | StmtKind::For { .. } | StmtKind::ForEach { .. }
        ) {
            return self.statement(body, Some(label));
        }
        let number = self.open(Some(label), false, false);
        let body = Box::new(self.single(body));
        let (breaks, _) = self.close();
        self.assigned = std::mem::replace(&mut self.assigned, Assigned::unreached()).merged(&breaks);
        vec![Statement::Labelled(number, body)]
    }

    fn leave(&mut self, line: u32, label: Option<&Word>, is_break: bool) -> Statement {
        let known = self.assigned.clone();
        let is_meant = |target: &&mut Target| match label {
            Some(label) => target.label.as_ref() == Some(label),
            None if is_break => target.is_breakable,
            None => target.is_loop,
        };
        let Some(target) = self
            .targets
            .iter_mut()
            .rev()
            .find(is_meant)
            .filter(|target| is_break || target.is_loop)
        else {
            let what = match label {
                Some(label) => Mistake::Label(label.to_string()),
                None if is_break => Mistake::BreakOutside,
                None => Mistake::ContinueOutside,
            };
            self.mistake(line, what);
            return Statement::Block(Vec::new());
        };
        let at = if is_break {
            &mut target.breaks
        } else {
            &mut target.continues
        };
        *at = std::mem::replace(at, Assigned::unreached()).merged(&known);
        let number = target.number;
        self.assigned = Assigned::unreached();
        if is_break {
            Statement::Break(number)
        } else {
            Statement::Continue(number)
        }
    }

    fn return_statement(&mut self, line: u32, value: Option<&Expr>) -> Statement {
        let returns = self.returns.clone();
        let node = match value {
            Some(value) => Some(self.expected(value, &returns)),
            None => {
                self.mistake(line, Mistake::ReturnMissing(returns.boxed().to_string()));
                None
            }
        };
        self.assigned = Assigned::unreached();
        Statement::Return(node)
    }

    /// Reports a checked exception that nothing around it catches.
    pub(super) fn may_throw(&mut self, line: u32, class: Class) {
        let is_caught = self.caught.iter().flatten().any(|caught| class.is(*caught));
        if class.is_checked() && !is_caught {
            self.mistake(line, Mistake::Unhandled(class.name().to_owned()));
        }
    }

    fn throw(&mut self, line: u32, value: &Expr) -> Statement {
        let value = self.expression(value);
        self.assigned = Assigned::unreached();
        match &value.ty {
            Ty::Unknown | Ty::Null => {}
            Ty::Ref(class, _) if class.is(Class::Throwable) => {
                self.may_throw(line, *class);
            }
            ty => {
                let ty = ty.to_string();
                self.mistake(line, Mistake::NotThrowable(ty));
            }
        }
        Statement::Throw(value.node, value.reason)
    }

    fn try_statement(&mut self, body: &[Stmt], catches: &[Catch], finally: Option<&[Stmt]>) -> Statement {
        let mut taken: Vec<Vec<Class>> = Vec::with_capacity(catches.len());
        for catch in catches {
            let mut classes = Vec::new();
            for written in &catch.types {
                match self.ty(written) {
                    Ty::Ref(class, _) if class.is(Class::Throwable) => {
                        if taken.iter().flatten().any(|before| class.is(*before)) {
                            self.mistake(written.line, Mistake::UncaughtType(class.name().to_owned()));
                        }
                        classes.push(class);
                    }
                    Ty::Unknown => {}
                    ty => {
                        self.mistake(written.line, Mistake::NotThrowable(ty.to_string()));
                    }
                }
            }
            taken.push(classes);
        }
        let before = self.assigned.clone();
        self.caught.push(taken.iter().flatten().copied().collect());
        let body = Box::new(self.block(body));
        self.caught.pop();
        let mut after = std::mem::replace(&mut self.assigned, before.clone());
        let mut checked = Vec::with_capacity(catches.len());
        for (catch, classes) in catches.iter().zip(taken) {
            self.assigned = before.clone();
            let handler = self.scoped(|checker| {
                let class = match classes.as_slice() {
                    [only] => *only,
                    _ => Class::Exception,
                };
                let line = catch.types.first().map_or(0, |written| written.line);
                let local = checker.declare_new(line, &catch.name, Ty::class(class), false);
                checker.assigned.assign(local);
                let slot = checker.locals.get(local).map_or(0, |local| local.slot);
                (slot, checker.block(&catch.body))
            });
            after = after.merged(&self.assigned);
            checked.push((classes, handler.0, handler.1));
        }
        let finally = finally.map(|finally| {
            self.assigned = before;
            let block = self.block(finally);
            after = std::mem::replace(&mut after, Assigned::unreached()).and_then(&self.assigned);
            Box::new(block)
        });
        self.assigned = after;
        Statement::Try {
            body,
            catches: checked,
            finally,
        }
    }
}

fn same_case(a: &Option<Value>, b: &Value) -> bool {
    match (a.as_ref().and_then(Value::prim), b.prim()) {
        (Some(a), Some(b)) => a.equals(b),
        _ => false,
    }
}
