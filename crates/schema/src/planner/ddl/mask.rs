//! MASKED WITH: the function that masks a column, and its arguments.
//!
//! Source: Cassandra's `ColumnMask.Raw`.

use grammar::ast::{self, Term};

use super::error::DdlError;
use super::refusal::MaskRefusal;
use crate::planner::function;
use crate::planner::markers::Markers;
use crate::planner::term::{ColumnSpec, TypedTerm};
use crate::planner::text::{Joined, TermText, qualified};
use crate::planner::typing::{CallMemo, TypeChecker, argument};
use crate::schema::{Schema, mask_of};
use helenus_types::functions;
use helenus_types::types::CqlType;

/// A mask as stored in the schema, in the form of [`crate::schema::Column::mask`].
pub(super) type Kept = (String, Vec<String>);

/// Resolves the mask of a column of this keyspace, table, name and type.
pub(super) fn resolve(
    schema: &Schema,
    keyspace: &str,
    table: &str,
    column: &str,
    ty: &CqlType,
    mask: &ast::Mask,
) -> Result<Kept, DdlError> {
    let mut markers = Markers::default();
    let mut typer = TypeChecker {
        schema,
        keyspace: keyspace.into(),
        table_name: keyspace.into(),
        table: None,
        markers: &mut markers,
        calls: CallMemo::default(),
    };
    if mask.arguments.iter().any(|term| !is_constant(term)) {
        return Err(MaskRefusal::NotConstant(column.to_owned()).into());
    }
    let texts: Vec<String> = mask.arguments.iter().map(|term| TermText(term).to_string()).collect();
    let written = format!("{}({})", qualified(&mask.function), Joined(&texts, ", "));
    let own = functions::Argument::typed(ty.marshal_name(), ty.clone());
    let others = mask.arguments.iter().map(|term| argument(&typer, term));
    let arguments: Vec<functions::Argument<'_>> = std::iter::once(own).chain(others).collect();
    let found = match function::named(&typer.scope(), &mask.function, &arguments, None) {
        Ok(found) => found,
        Err(functions::Error::Unknown(_)) => {
            return Err(MaskRefusal::Unknown {
                column: column.to_owned(),
                signature: written,
            }
            .into());
        }
        Err(error) => return Err(MaskRefusal::Call(error).into()),
    };
    drop(arguments);
    if found.is_aggregate() {
        return Err(MaskRefusal::Aggregate(written).into());
    }
    if !found.is_user_defined() && !functions::is_mask(&found) {
        return Err(MaskRefusal::NotMasking(written).into());
    }
    if found.is_user_defined() && found.keyspace() != keyspace {
        return Err(MaskRefusal::OtherKeyspace {
            function: written,
            table: format!("{keyspace}.{table}"),
        }
        .into());
    }
    if found.return_type().unfrozen() != ty.unfrozen() {
        return Err(MaskRefusal::Returns {
            function: written,
            returns: found.return_type().clone(),
            column: column.to_owned(),
            ty: ty.clone(),
        }
        .into());
    }
    let mut literals = Vec::with_capacity(mask.arguments.len());
    for (term, ty) in mask.arguments.iter().zip(found.argument_types().iter().skip(1)) {
        match typer.term(term, &ColumnSpec::new("mask", ty.clone())) {
            Ok(TypedTerm::Constant(value)) => {
                let literal = value.map_or_else(|| "null".to_owned(), |value| ty.to_literal(&value));
                // An overload that is made later must not make the call ambiguous.
                literals.push(if found.is_user_defined() {
                    format!("({}) {literal}", ty.unfrozen().cql_name())
                } else {
                    literal
                });
            }
            Ok(_) => return Err(MaskRefusal::NotConstant(column.to_owned()).into()),
            Err(error) => return Err(MaskRefusal::Term(Box::new(error)).into()),
        }
    }
    Ok((mask_of(found.keyspace(), found.name()), literals))
}

/// Whether a term contains neither marker nor call.
///
/// Differs: Cassandra evaluates calls, and responds to a marker with a server error.
fn is_constant(term: &Term) -> bool {
    let all = |terms: &[Term]| terms.iter().all(is_constant);
    match term {
        Term::Literal(_) => true,
        Term::List(of) | Term::Set(of) | Term::Tuple(of) => all(of),
        Term::Map(entries) => entries
            .iter()
            .all(|(key, value)| is_constant(key) && is_constant(value)),
        Term::Udt(fields) => fields.iter().all(|(_, value)| is_constant(value)),
        Term::TypeHint { term, .. } => is_constant(term),
        _ => false,
    }
}
