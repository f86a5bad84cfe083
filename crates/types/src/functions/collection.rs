//! map_keys, map_values and collection_count, _min, _max, _sum, _avg.

use super::aggregate::{Aggregate, State};
use super::argument::{Argument, Form};
use super::candidates::{Candidates, natural, requires};
use super::error::Error;
use super::problem::{Problem, Unfit};
use super::{Call, Function, KEYSPACE, Outcome};
use crate::types::{self, CqlType, Native};
use bytes::Bytes;
use std::sync::Arc;

pub(super) fn find(name: &str) -> Option<Candidates> {
    match name {
        "map_keys" | "map_values" => Some(Candidates::Generic(of_map)),
        "collection_count" => Some(Candidates::Generic(count)),
        "collection_min" | "collection_max" | "collection_sum" | "collection_avg" => {
            Some(Candidates::Generic(of_elements))
        }
        _ => None,
    }
}

/// The only argument and its type. A descending column is no collection, whatever its type.
fn only<'a, 'b>(
    name: &str,
    parameter: &str,
    required: &'static str,
    arguments: &'a [Argument<'b>],
) -> Result<(&'a Argument<'b>, &'a CqlType), Error> {
    let signature = format!("{KEYSPACE}.{name}({parameter})");
    let [argument] = arguments else {
        return Err(Error::GenericCount(signature));
    };
    let given = natural(argument, &signature)?;
    if argument.form == Form::Descending {
        return Err(requires(name, required, "", argument));
    }
    Ok((argument, given))
}

fn damaged(invalid: types::Invalid) -> Problem {
    Unfit::Value(invalid).into()
}

fn of_map(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let (argument, given) = only(name, "map", "a map", arguments)?;
    let CqlType::Map(key, value) = given.unfrozen() else {
        return Err(requires(name, "a map", "", argument));
    };
    let (returns, keys) = if name == "map_keys" {
        (CqlType::Set(Arc::clone(key)), true)
    } else {
        (CqlType::List(Arc::clone(value)), false)
    };
    Ok(Function::scalar(
        name,
        [given.clone()],
        returns.freeze(),
        move |call: &Call<'_>| {
            let entries = types::map_entries(call.bytes(0)).map_err(damaged)?;
            let picked = entries.into_iter().map(|(key, value)| if keys { key } else { value });
            Ok(Some(types::encode_list(picked)))
        },
    ))
}

fn count(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let (argument, given) = only(name, "collection", "a collection", arguments)?;
    if !matches!(given.unfrozen(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..)) {
        return Err(requires(name, "a collection", "", argument));
    }
    Ok(Function::scalar(
        name,
        [given.clone()],
        CqlType::Native(Native::Int),
        |call| {
            // Every collection starts with its element count.
            Ok(call
                .bytes(0)
                .first_chunk::<4>()
                .map(|count| Bytes::copy_from_slice(count)))
        },
    ))
}

fn of_elements(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let required = match name {
        "collection_min" | "collection_max" => "a set or list",
        _ => "a numeric set/list",
    };
    let (argument, given) = only(name, "numeric_set_or_list", required, arguments)?;
    let element = match given.unfrozen() {
        CqlType::List(element) | CqlType::Set(element) => Some(element.as_ref()),
        _ => None,
    };
    let kind = match name {
        "collection_min" => Aggregate::Extreme(std::cmp::Ordering::Less),
        "collection_max" => Aggregate::Extreme(std::cmp::Ordering::Greater),
        "collection_sum" => Aggregate::Sum,
        _ => Aggregate::Average,
    };
    let Some(element) = element else {
        return Err(requires(name, required, "", argument));
    };
    let numeric = matches!(element, CqlType::Native(native) if Aggregate::NUMBERS.contains(native));
    if !numeric && !matches!(kind, Aggregate::Extreme(_)) {
        return Err(requires(name, required, "", argument));
    }
    let element = element.clone();
    let returns = element.clone();
    Ok(Function::scalar(
        name,
        [given.clone()],
        returns,
        move |call: &Call<'_>| fold(kind, &element, call),
    ))
}

fn fold(kind: Aggregate, element: &CqlType, call: &Call<'_>) -> Outcome {
    let mut state = State::new(kind, element);
    // Nulls, which only a list made by a selection can hold, are skipped.
    for value in types::nullable_list_elements(call.bytes(0))
        .map_err(damaged)?
        .into_iter()
        .flatten()
    {
        state.add(element, &Bytes::copy_from_slice(value))?;
    }
    state.finish(element)
}
