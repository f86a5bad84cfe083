//! User-defined functions and aggregates: a body in Java, interpreted within limits.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use java::{CompileError, Datum, Failure as Fault, Limits, Program, Signature};

use super::problem::Failure;
use super::{Body, Call, Context, Definition, Error, Function, NameFormat, datum};
use crate::types::{self, CqlType, Native, UserType};

/// The definition from CREATE FUNCTION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserScalar {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name, folded.
    pub name: String,
    /// Names and types of its arguments.
    pub arguments: Vec<(String, CqlType)>,
    /// The type of its result.
    pub returns: CqlType,
    /// `CALLED ON NULL INPUT`
    pub takes_null: bool,
    /// The Java body.
    pub body: String,
    /// The user types of its keyspace, by name, of which the body may make values.
    pub types: BTreeMap<String, Arc<UserType>>,
}

impl java::Types for UserScalar {
    fn keyspace(&self) -> &str {
        &self.keyspace
    }

    fn user_type(&self, name: &str) -> Option<Arc<java::UserType>> {
        self.types.get(name).and_then(|user| datum::user_type(user))
    }

    fn parsed(&self, text: &str) -> Option<java::Type> {
        let ty = CqlType::parsed(text, &|name| self.types.get(name).cloned())?;
        datum::java_type(&ty)
    }
}

impl UserScalar {
    /// Compiles the body.
    ///
    /// # Errors
    /// All mistakes in the body.
    pub fn compile(&self) -> Result<Program, CompileError> {
        let java = |ty: &CqlType| match ty {
            // As in Cassandra, where only elements and fields of this type are UUIDs.
            CqlType::Native(Native::Timeuuid) => java::Type::Blob,
            ty => datum::java_type(ty).unwrap_or(java::Type::Blob),
        };
        let arguments = self
            .arguments
            .iter()
            .map(|(name, ty)| (name.clone(), java(ty)))
            .collect();
        let (returns, takes_null) = (java(&self.returns), self.takes_null);
        java::compile(
            &self.body,
            Signature {
                arguments,
                returns,
                takes_null,
            },
        )
    }
}

/// The parts of a user-defined aggregate.
#[derive(Clone, Debug)]
pub struct UserFold {
    /// SFUNC.
    pub state: Function,
    /// FINALFUNC.
    pub last: Option<Function>,
    /// INITCOND; `None` is null.
    pub initial: Option<Bytes>,
}

/// The state of a user-defined aggregate during a scan.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    fold: Arc<UserFold>,
    value: Option<Bytes>,
}

impl Folded {
    pub(super) fn new(fold: &Arc<UserFold>) -> Self {
        Self {
            fold: Arc::clone(fold),
            value: fold.initial.clone(),
        }
    }

    pub(super) fn add(&mut self, arguments: &[Option<Bytes>], context: &Context) -> Result<(), Error> {
        let state = &self.fold.state;
        if !state.0.takes_null && arguments.iter().any(Option::is_none) {
            return Ok(());
        }
        let taken: Vec<Option<Bytes>> = std::iter::once(self.value.take())
            .chain(arguments.iter().cloned())
            .collect();
        self.value = state.call(&taken, context)?;
        Ok(())
    }

    pub(super) fn finish(self, context: &Context) -> Result<Option<Bytes>, Error> {
        match &self.fold.last {
            Some(last) => last.call(&[self.value], context),
            None => Ok(self.value),
        }
    }
}

/// The type whose bytes an argument or result has in a body.
fn bytes_of(ty: &CqlType) -> &CqlType {
    match ty {
        CqlType::Native(Native::Timeuuid) => &CqlType::Native(Native::Blob),
        ty => ty,
    }
}

/// Runs a body within the limits of a call and of its request.
fn run(
    program: &Program,
    arguments: &[Option<Datum>],
    context: &Context,
    of: &UserScalar,
) -> Result<Option<Datum>, Failure> {
    let (limits, left) = (context.limits(), context.steps_left());
    let ran = program.run(
        arguments,
        &Limits {
            steps_max: limits.steps_max.min(left),
            bytes_max: limits.bytes_max,
            now_micros: context.now_micros,
            seed: context.random(),
            double_text: types::java_f64,
            float_text: types::java_f32,
        },
        of,
    );
    context.take_steps(ran.steps);
    ran.result.map_err(|fault| match fault {
        Fault::Steps { .. } if left < limits.steps_max => Failure::RequestSteps(limits.request_steps_max),
        fault => Failure::User(fault),
    })
}

impl Function {
    /// A user-defined function. Its body is compiled at the first call.
    #[must_use]
    pub fn user_scalar(of: UserScalar) -> Self {
        let (keyspace, name) = (of.keyspace.clone(), of.name.clone());
        let (returns, takes_null) = (of.returns.clone(), of.takes_null);
        let arguments: Vec<CqlType> = of.arguments.iter().map(|(_, ty)| ty.clone()).collect();
        let compiled: OnceLock<Result<Program, CompileError>> = OnceLock::new();
        let body = move |call: &Call<'_>| {
            let program = match compiled.get_or_init(|| of.compile()) {
                Ok(program) => program,
                Err(error) => return Err(Failure::Uncompiled(error.clone()).into()),
            };
            let typed = of.arguments.iter().zip(call.arguments);
            let arguments: Vec<Option<Datum>> = typed
                .map(|((_, ty), value)| datum::datum(bytes_of(ty), value.as_deref()))
                .collect();
            if !of.takes_null && arguments.iter().any(Option::is_none) {
                return Ok(None);
            }
            let result = run(program, &arguments, call.context, &of)?;
            let encoded = result
                .map(|result| datum::encoded(bytes_of(&of.returns), &result))
                .transpose();
            encoded.map_err(|what| Failure::User(Fault::Fault(what)).into())
        };
        Self(Arc::new(Definition {
            keyspace,
            name,
            arguments,
            returns,
            body: Body::Scalar(Arc::new(body)),
            name_format: NameFormat::Call,
            takes_null,
        }))
    }

    /// A user-defined aggregate.
    #[must_use]
    pub fn user_aggregate(
        keyspace: &str,
        name: &str,
        arguments: Vec<CqlType>,
        returns: CqlType,
        fold: UserFold,
    ) -> Self {
        Self(Arc::new(Definition {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            arguments,
            returns,
            body: Body::User(Arc::new(fold)),
            name_format: NameFormat::Call,
            takes_null: true,
        }))
    }
}
