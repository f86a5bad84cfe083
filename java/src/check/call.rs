//! Resolves calls of methods and constructors of the library.

use super::expression::shown;
use super::{Checker, TypedExpr};
use crate::class::{Class, Ty};
use crate::error::Mistake;
use crate::library::{self, Method, Parameters, Signature};
use crate::syntax::{Expr, TypeText};
use crate::tree::{Call, Node};

/// Added to the cost of a conversion that boxes or unboxes: candidates without one come first (JLS §15.12.2).
const BOXING: u32 = 1_000;
/// Added to the cost of a call with a variable number of arguments.
const VARIABLE: u32 = 1_000_000;

impl Checker {
    pub(super) fn call(&mut self, line: u32, of: Option<&Expr>, name: &str, arguments: &[Expr]) -> TypedExpr {
        let Some(of) = of else {
            let arguments = self.arguments(arguments);
            let what = Mistake::Method {
                name: name.to_owned(),
                arguments: types(&arguments),
                class: "of the function".to_owned(),
            };
            return self.mistake(line, what);
        };
        if let Some(class) = self.class_named(of) {
            let arguments = self.arguments(arguments);
            return self.best_overload(line, &Ty::class(class), class, name, None, arguments);
        }
        if self.is_unknown_name(of) {
            self.arguments(arguments);
            return self.mistake(line, Mistake::Name(shown(of)));
        }
        let receiver = self.expression(of);
        let arguments = self.arguments(arguments);
        match receiver.ty.clone() {
            Ty::Unknown => TypedExpr::unknown(),
            Ty::Prim(kind) => {
                let method = format!("{name}({})", types(&arguments));
                self.mistake(
                    line,
                    Mistake::Primitive {
                        method,
                        ty: kind.name().to_owned(),
                    },
                )
            }
            ty @ Ty::Ref(class, _) => self.best_overload(line, &ty, class, name, Some(receiver), arguments),
            ty => {
                let what = Mistake::Method {
                    name: name.to_owned(),
                    arguments: types(&arguments),
                    class: ty.to_string(),
                };
                self.mistake(line, what)
            }
        }
    }

    fn arguments(&mut self, arguments: &[Expr]) -> Vec<TypedExpr> {
        arguments.iter().map(|argument| self.expression(argument)).collect()
    }

    /// A call of the best matching method of this name. `receiver` is `None` for a static call.
    fn best_overload(
        &mut self,
        line: u32,
        on: &Ty,
        class: Class,
        name: &str,
        receiver: Option<TypedExpr>,
        arguments: Vec<TypedExpr>,
    ) -> TypedExpr {
        if arguments.iter().any(|argument| argument.ty == Ty::Unknown) {
            return TypedExpr::unknown();
        }
        let candidates: Vec<(&Method, Signature)> = library::methods(class, name)
            .map(|method| (method, method.signature(on, &tys(&arguments))))
            .collect();
        let best = candidates
            .iter()
            .filter_map(|(method, signature)| Some((cost(&signature.parameters, &arguments)?, method, signature)))
            .min_by_key(|(cost, ..)| *cost);
        let Some((_, method, signature)) = best else {
            let what = if let [(_, signature), ..] = candidates.as_slice() {
                let method = format!("{name}({})", signature.parameters);
                Mistake::NotApplicable {
                    method,
                    class: on.to_string(),
                    arguments: types(&arguments),
                }
            } else if library::is_left_out(class, name) {
                Mistake::UnsupportedMethod(format!("{}.{name}", class.name()))
            } else {
                Mistake::Method {
                    name: name.to_owned(),
                    arguments: types(&arguments),
                    class: on.to_string(),
                }
            };
            return self.mistake(line, what);
        };
        let (method, signature) = (*method, signature.clone());
        if receiver.is_none() && !method.is_static {
            let method = format!("{name}({})", signature.parameters);
            return self.mistake(
                line,
                Mistake::Static {
                    method,
                    class: on.to_string(),
                },
            );
        }
        if let Some(class) = library::throws(method) {
            self.may_throw(line, class);
        }
        let mut nodes = Vec::with_capacity(arguments.len() + 1);
        let mut on_null = None;
        if let (Some(receiver), false) = (receiver, method.is_static) {
            nodes.push(receiver.node);
            on_null = Some((method.shown_of(class).into(), receiver.reason));
        }
        self.append_arguments(line, &signature.parameters, arguments, &mut nodes);
        let reason = Some(format!("the return value of \"{}\" is null", method.shown_of(class)).into());
        let call = Call {
            body: method.body,
            arguments: nodes,
            receiver: on_null,
        };
        TypedExpr {
            reason,
            ..TypedExpr::new(signature.returns, Node::Call(Box::new(call)))
        }
    }

    /// Appends the arguments, converted to the types of the parameters.
    fn append_arguments(
        &mut self,
        line: u32,
        parameters: &Parameters,
        arguments: Vec<TypedExpr>,
        nodes: &mut Vec<Node>,
    ) {
        let fixed = parameters.fixed.len();
        let mut variable = Vec::new();
        for (index, argument) in arguments.into_iter().enumerate() {
            match (parameters.fixed.get(index), &parameters.variable) {
                (Some(ty), _) if index < fixed => nodes.push(self.argument(line, argument, ty)),
                (_, Some(ty)) => variable.push(self.argument(line, argument, ty)),
                _ => {}
            }
        }
        if parameters.variable.is_some() {
            nodes.push(Node::Elements { elements: variable });
        }
    }

    fn argument(&mut self, line: u32, argument: TypedExpr, ty: &Ty) -> Node {
        // The overload's choice has checked references; unchecked generics are not checked again.
        if argument.ty.is_reference() && ty.is_reference() {
            return argument.node;
        }
        self.assigned_to(line, argument, ty)
    }

    pub(super) fn construction(&mut self, line: u32, written: &TypeText, arguments: &[Expr]) -> TypedExpr {
        let ty = self.ty(written);
        let arguments = self.arguments(arguments);
        let Ty::Ref(class, _) = ty else {
            return TypedExpr::unknown();
        };
        if class.is_abstract() {
            return self.mistake(line, Mistake::Abstract(ty.to_string()));
        }
        if arguments.iter().any(|argument| argument.ty == Ty::Unknown) {
            return TypedExpr::unknown();
        }
        let candidates: Vec<(&Method, Signature)> = library::constructors(class)
            .map(|method| (method, method.signature(&ty, &tys(&arguments))))
            .collect();
        let best = candidates
            .iter()
            .filter_map(|(method, signature)| Some((cost(&signature.parameters, &arguments)?, method, signature)))
            .min_by_key(|(cost, ..)| *cost);
        let Some((_, method, signature)) = best else {
            let what = Mistake::Constructor {
                name: ty.to_string(),
                arguments: types(&arguments),
            };
            return self.mistake(line, what);
        };
        let (body, parameters) = (method.body, signature.parameters.clone());
        let mut nodes = Vec::with_capacity(arguments.len());
        self.append_arguments(line, &parameters, arguments, &mut nodes);
        let call = Call {
            body,
            arguments: nodes,
            receiver: None,
        };
        TypedExpr::new(ty, Node::Call(Box::new(call)))
    }
}

fn tys(arguments: &[TypedExpr]) -> Vec<Ty> {
    arguments.iter().map(|argument| argument.ty.clone()).collect()
}

/// The types of arguments, as messages print them.
fn types(arguments: &[TypedExpr]) -> String {
    let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
    types.join(", ")
}

/// The cost of converting the arguments to the parameters; `None` means that they do not fit.
fn cost(parameters: &Parameters, arguments: &[TypedExpr]) -> Option<u32> {
    let fixed = parameters.fixed.len();
    if arguments.len() < fixed || (arguments.len() > fixed && parameters.variable.is_none()) {
        return None;
    }
    let mut total = if parameters.variable.is_some() { VARIABLE } else { 0 };
    for (index, argument) in arguments.iter().enumerate() {
        let ty = parameters.fixed.get(index).or(parameters.variable.as_ref())?;
        total += distance(&argument.ty, ty)?;
    }
    Some(total)
}

fn distance(from: &Ty, to: &Ty) -> Option<u32> {
    if from == to {
        return Some(0);
    }
    match (from, to) {
        (Ty::Void, _) => None,
        (Ty::Prim(from), Ty::Prim(to)) => from
            .widens_to(*to)
            .then(|| u32::from(*to as u8).saturating_sub(u32::from(*from as u8))),
        (Ty::Prim(kind), Ty::Ref(class, _)) => kind.class().is(*class).then(|| BOXING + depth(kind.class(), *class)),
        (Ty::Ref(class, _), Ty::Prim(to)) => {
            let kind = class.unboxed()?;
            (kind == *to || kind.widens_to(*to))
                .then(|| BOXING + u32::from(*to as u8).saturating_sub(u32::from(kind as u8)))
        }
        (Ty::Null, Ty::Ref(class, _)) => Some(if *class == Class::Object { 10 } else { 1 }),
        (Ty::Null, Ty::Array(_)) => Some(1),
        (Ty::Ref(from, given), Ty::Ref(class, wanted)) => {
            let fits = |(given, wanted): (&Ty, &Ty)| given.is_subtype(wanted);
            (from.is(*class) && given.iter().zip(wanted).all(fits)).then(|| 1 + depth(*from, *class))
        }
        (from, to) => from.is_subtype(to).then_some(20),
    }
}

/// The number of steps from a class up to its supertype `to`.
fn depth(from: Class, to: Class) -> u32 {
    if from == to {
        return 0;
    }
    if to == Class::Object {
        return 10;
    }
    from.above()
        .iter()
        .filter(|above| above.is(to))
        .map(|above| 1 + depth(*above, to))
        .min()
        .unwrap_or(9)
}
