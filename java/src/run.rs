//! Executes the compiled body, within limits of steps and memory.

use crate::class::{Class, Kind};
use crate::limits::VALUE_BYTES;
use crate::machine::{Machine, Run, Stop, same};
use crate::operate::{self, Operator};
use crate::tree::{Call, Node, Place, Reason, Statement};
use crate::value::{Object, Prim, Value};

/// Control flow after a statement.
enum Flow {
    Next,
    Break(u32),
    Continue(u32),
    Return(Value),
}

impl Machine<'_> {
    fn throw_null<T>(&mut self, action: &str, because: &Reason) -> Run<T> {
        let reason = because
            .as_ref()
            .map(|reason| format!(" because {reason}"))
            .unwrap_or_default();
        self.throw(Class::NullPointer, format!("{action}{reason}"))
    }

    /// Runs a whole body. `None` means that it ended without a result.
    pub(crate) fn body(&mut self, statements: &[Statement]) -> Run<Option<Value>> {
        match self.statements(statements)? {
            Flow::Return(value) => Ok(Some(value)),
            Flow::Next | Flow::Break(_) | Flow::Continue(_) => Ok(None),
        }
    }

    fn statements(&mut self, statements: &[Statement]) -> Run<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Run<Flow> {
        self.step(1)?;
        match statement {
            Statement::Block(statements) => self.statements(statements),
            Statement::Evaluate(node) => {
                self.evaluate(node)?;
                Ok(Flow::Next)
            }
            Statement::If(condition, then, otherwise) => {
                if self.test(condition)? {
                    self.statement(then)
                } else if let Some(otherwise) = otherwise {
                    self.statement(otherwise)
                } else {
                    Ok(Flow::Next)
                }
            }
            Statement::Loop {
                number,
                start,
                condition,
                step,
                body,
                tests_first,
            } => {
                self.statements(start)?;
                self.run_loop(*number, condition.as_ref(), step, body, *tests_first)
            }
            Statement::ForEach { .. } => self.for_each(statement),
            Statement::Switch {
                number,
                on,
                cases,
                body,
            } => self.switch(*number, on, cases, body),
            Statement::Labelled(number, body) => match self.statement(body)? {
                Flow::Break(target) if target == *number => Ok(Flow::Next),
                flow => Ok(flow),
            },
            Statement::Break(number) => Ok(Flow::Break(*number)),
            Statement::Continue(number) => Ok(Flow::Continue(*number)),
            Statement::Return(node) => {
                let value = node.as_ref().map_or(Ok(Value::Null), |node| self.evaluate(node))?;
                Ok(Flow::Return(value))
            }
            Statement::Throw(node, reason) => match self.evaluate(node)? {
                Value::Ref(handle) => Err(Stop::Thrown(handle)),
                _ => self.throw_null("Cannot throw exception", reason),
            },
            Statement::Try { body, catches, finally } => self.try_statement(body, catches, finally.as_deref()),
        }
    }

    fn run_loop(
        &mut self,
        number: u32,
        condition: Option<&Node>,
        step: &[Statement],
        body: &Statement,
        tests_first: bool,
    ) -> Run<Flow> {
        let mut tests = tests_first;
        loop {
            self.step(1)?;
            if tests
                && let Some(condition) = condition
                && !self.test(condition)?
            {
                return Ok(Flow::Next);
            }
            tests = true;
            match self.statement(body)? {
                Flow::Break(target) if target == number => return Ok(Flow::Next),
                Flow::Continue(target) if target == number => {}
                Flow::Next => {}
                flow => return Ok(flow),
            }
            self.statements(step)?;
        }
    }

    fn for_each(&mut self, statement: &Statement) -> Run<Flow> {
        let Statement::ForEach {
            number,
            slot,
            of,
            because,
            convert,
            body,
        } = statement
        else {
            return Ok(Flow::Next);
        };
        let Value::Ref(handle) = self.evaluate(of)? else {
            return self.throw(Class::NullPointer, because.as_deref().unwrap_or_default());
        };
        let changes = self.changes(handle)?;
        let items = self.elements(handle)?;
        let count = items.len();
        for (at, mut item) in items.into_iter().enumerate() {
            if let Some(convert) = convert {
                self.held.push(item);
                let converted = self.evaluate(convert);
                self.held.pop();
                item = converted?;
            }
            self.store(*slot, item);
            match self.statement(body)? {
                Flow::Break(target) if target == *number => return Ok(Flow::Next),
                Flow::Continue(target) if target == *number => {}
                Flow::Next => {}
                flow => return Ok(flow),
            }
            // Java's iterators check the size first: a removal before the last element goes undetected.
            let size = self.size(handle)?;
            if self.changes(handle)? != changes {
                if at + 1 == size {
                    return Ok(Flow::Next);
                }
                return self.throw_with(Class::ConcurrentModification, None);
            }
            if at + 1 == count {
                break;
            }
        }
        Ok(Flow::Next)
    }

    fn switch(&mut self, number: u32, on: &Node, cases: &[(Option<Value>, usize)], body: &[Statement]) -> Run<Flow> {
        let value = self.evaluate(on)?.prim();
        let is = |case: &Option<Value>| match (case.as_ref().and_then(Value::prim), value) {
            (Some(case), Some(value)) => case.equals(value),
            _ => false,
        };
        self.step(cases.len())?;
        let default = || cases.iter().find(|(case, _)| case.is_none());
        let Some((_, start)) = cases.iter().find(|(case, _)| is(case)).or_else(default) else {
            return Ok(Flow::Next);
        };
        match self.statements(body.get(*start..).unwrap_or_default())? {
            Flow::Break(target) if target == number => Ok(Flow::Next),
            flow => Ok(flow),
        }
    }

    fn try_statement(
        &mut self,
        body: &Statement,
        catches: &[(Vec<Class>, usize, Statement)],
        finally: Option<&Statement>,
    ) -> Run<Flow> {
        let (held, depth) = (self.held.len(), self.depth);
        let mut result = self.statement(body);
        if let Err(Stop::Thrown(handle)) = &result {
            let handle = *handle;
            self.held.truncate(held);
            self.depth = depth;
            let class = self.class_of(&Value::Ref(handle))?;
            let taken = catches
                .iter()
                .find(|(classes, ..)| classes.iter().any(|caught| class.is(*caught)));
            if let Some((_, slot, handler)) = taken {
                self.store(*slot, Value::Ref(handle));
                result = self.statement(handler);
            }
        }
        if let (Some(finally), Ok(_) | Err(Stop::Thrown(_))) = (finally, &result) {
            match self.statement(finally)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        result
    }

    fn store(&mut self, slot: usize, value: Value) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }

    fn test(&mut self, node: &Node) -> Run<bool> {
        Ok(matches!(self.evaluate(node)?, Value::Prim(Prim::Boolean(true))))
    }

    fn int(&mut self, node: &Node) -> Run<i32> {
        match self.evaluate(node)?.prim() {
            Some(Prim::Int(value)) => Ok(value),
            _ => Self::fault("an int was expected"),
        }
    }

    fn evaluate(&mut self, node: &Node) -> Run<Value> {
        self.step(1)?;
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Local(slot) => Ok(self.slots.get(*slot).cloned().unwrap_or(Value::Null)),
            Node::Assign(slot, value) => {
                let value = self.evaluate(value)?;
                self.store(*slot, value.clone());
                Ok(value)
            }
            Node::Update { place, with, gives_old } => self.update(place, with, *gives_old),
            Node::Held => Ok(self.held.last().cloned().unwrap_or(Value::Null)),
            Node::Unary(operator, of) => match self.evaluate(of)? {
                Value::Prim(value) => Ok(Value::Prim(operate::unary(*operator, value))),
                _ => Self::fault("an operand is no primitive"),
            },
            Node::Binary { operator, left, right } => self.binary(*operator, left, right),
            Node::And(left, right) => Ok(Value::boolean(self.test(left)? && self.test(right)?)),
            Node::Or(left, right) => Ok(Value::boolean(self.test(left)? || self.test(right)?)),
            Node::Conditional(condition, then, otherwise) => {
                if self.test(condition)? {
                    self.evaluate(then)
                } else {
                    self.evaluate(otherwise)
                }
            }
            Node::Convert(kind, of) => match self.evaluate(of)? {
                Value::Prim(value) => Ok(Value::Prim(operate::convert(value, *kind))),
                _ => Self::fault("an operand is no primitive"),
            },
            Node::Box(of) => match self.evaluate(of)? {
                Value::Prim(value) => Ok(self.boxed(value)),
                other => Ok(other),
            },
            Node::Unbox { of, class, because } => self.unbox(of, *class, because),
            Node::Cast(class, of) => {
                let value = self.evaluate(of)?;
                self.cast(*class, value)
            }
            Node::InstanceOf(class, of) => {
                let value = self.evaluate(of)?;
                let is = !matches!(value, Value::Null) && self.class_of(&value)?.is(*class);
                Ok(Value::boolean(is))
            }
            Node::Same(different, left, right) => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                Ok(Value::boolean(same(&left, &right) != *different))
            }
            Node::Concat(left, right) => self.concat(left, right),
            Node::Call(call) => self.call(call),
            Node::NewArray {
                kind,
                sizes,
                dimensions,
            } => self.new_array(*kind, sizes, *dimensions),
            Node::Elements { elements } => self.array_with(elements),
            Node::Index { of, at, because } => {
                let (array, at) = (self.evaluate(of)?, self.int(at)?);
                self.element(&array, at, because)
            }
            Node::Store { of, at, value, because } => {
                let (array, at, value) = (self.evaluate(of)?, self.int(at)?, self.evaluate(value)?);
                self.set_element(&array, at, value, because)
            }
            Node::Length { of, because } => self.array_length(of, because),
        }
    }

    fn binary(&mut self, operator: Operator, left: &Node, right: &Node) -> Run<Value> {
        let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
        match (left, right) {
            (Value::Prim(left), Value::Prim(right)) => match operate::binary(operator, left, right) {
                Some(value) => Ok(Value::Prim(value)),
                None => self.throw(Class::Arithmetic, "/ by zero"),
            },
            _ => Self::fault("an operand is no primitive"),
        }
    }

    fn unbox(&mut self, of: &Node, class: Class, because: &Reason) -> Run<Value> {
        match self.evaluate(of)? {
            Value::Boxed(value, _) | Value::Prim(value) => Ok(Value::Prim(value)),
            _ => {
                let kind = class.unboxed().map_or("", Kind::name);
                let invoked = format!("Cannot invoke \"{}.{kind}Value()\"", class.full_name());
                self.throw_null(&invoked, because)
            }
        }
    }

    fn concat(&mut self, left: &Node, right: &Node) -> Run<Value> {
        let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
        let mut text = Vec::new();
        self.append(&left, &mut text)?;
        self.append(&right, &mut text)?;
        self.text(&text)
    }

    fn array_with(&mut self, elements: &[Node]) -> Run<Value> {
        let items = elements
            .iter()
            .map(|element| self.evaluate(element))
            .collect::<Run<Vec<Value>>>()?;
        self.allocate(items.len() as u64 * VALUE_BYTES)?;
        self.make(Object::Array { items })
    }

    fn array_length(&mut self, of: &Node, because: &Reason) -> Run<Value> {
        match self.evaluate(of)? {
            Value::Ref(handle) => match self.object(handle)? {
                Object::Array { items, .. } => Ok(Value::int(i32::try_from(items.len()).unwrap_or(i32::MAX))),
                _ => Self::fault("an array was expected"),
            },
            _ => self.throw_null("Cannot read the array length", because),
        }
    }

    fn call(&mut self, call: &Call) -> Run<Value> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.evaluate(argument)?);
        }
        if let Some((method, because)) = &call.receiver
            && matches!(arguments.first(), Some(Value::Null))
        {
            return self.throw_null(&format!("Cannot invoke \"{method}\""), because);
        }
        (call.body)(self, &arguments)
    }

    fn update(&mut self, place: &Place, with: &Node, gives_old: bool) -> Run<Value> {
        let element = match place {
            Place::Local(_) => None,
            Place::Element { of, at, because } => Some((self.evaluate(of)?, self.int(at)?, because)),
        };
        let old = match (place, &element) {
            (Place::Local(slot), _) => self.slots.get(*slot).cloned().unwrap_or(Value::Null),
            (_, Some((array, at, because))) => self.element(array, *at, because)?,
            _ => Value::Null,
        };
        self.held.push(old.clone());
        let new = self.evaluate(with);
        self.held.pop();
        let new = new?;
        match (place, element) {
            (Place::Local(slot), _) => self.store(*slot, new.clone()),
            (_, Some((array, at, because))) => {
                self.set_element(&array, at, new.clone(), because)?;
            }
            _ => {}
        }
        Ok(if gives_old { old } else { new })
    }

    fn new_array(&mut self, kind: Option<Kind>, sizes: &[Node], dimensions: u32) -> Run<Value> {
        let mut counts = Vec::with_capacity(sizes.len());
        for size in sizes {
            counts.push(self.int(size)?);
        }
        if let Some(negative) = counts.iter().find(|count| **count < 0) {
            return self.throw(Class::NegativeSize, negative.to_string());
        }
        let counts: Vec<usize> = counts
            .into_iter()
            .map(|count| usize::try_from(count).unwrap_or(0))
            .collect();
        self.array_of(kind, &counts, dimensions)
    }

    fn array_of(&mut self, kind: Option<Kind>, counts: &[usize], dimensions: u32) -> Run<Value> {
        let Some((count, inner)) = counts.split_first() else {
            return Ok(Value::Null);
        };
        self.allocate((*count as u64).saturating_mul(VALUE_BYTES))?;
        self.step(*count)?;
        let element = if dimensions == 1 { kind } else { None };
        let items = match element {
            Some(kind) => vec![Value::Prim(Prim::zero(kind)); *count],
            None => (0..*count)
                .map(|_| self.array_of(kind, inner, dimensions - 1))
                .collect::<Run<Vec<Value>>>()?,
        };
        self.make(Object::Array { items })
    }

    fn element(&mut self, array: &Value, at: i32, because: &Reason) -> Run<Value> {
        let Value::Ref(handle) = array else {
            return self.throw_null("Cannot load from array", because);
        };
        let Object::Array { items, .. } = self.object(*handle)? else {
            return Self::fault("an array was expected");
        };
        let length = items.len();
        match usize::try_from(at).ok().and_then(|at| items.get(at)) {
            Some(value) => Ok(value.clone()),
            None => self.throw(
                Class::ArrayIndex,
                format!("Index {at} out of bounds for length {length}"),
            ),
        }
    }

    fn set_element(&mut self, array: &Value, at: i32, value: Value, because: &Reason) -> Run<Value> {
        let Value::Ref(handle) = array else {
            return self.throw_null("Cannot store to array", because);
        };
        let Object::Array { items, .. } = self.object_mut(*handle)? else {
            return Self::fault("an array was expected");
        };
        let length = items.len();
        match usize::try_from(at).ok().and_then(|at| items.get_mut(at)) {
            Some(place) => {
                *place = value.clone();
                Ok(value)
            }
            None => self.throw(
                Class::ArrayIndex,
                format!("Index {at} out of bounds for length {length}"),
            ),
        }
    }
}
