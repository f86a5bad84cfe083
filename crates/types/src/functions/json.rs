//! toJson and fromJson.

use super::argument::Argument;
use super::candidates::{Candidates, natural, requires};
use super::error::Error;
use super::problem::{Failure, Problem};
use super::{Call, Function, KEYSPACE};
use crate::types::{CqlType, Json, Native};
use bytes::Bytes;

const TEXT: CqlType = CqlType::Native(Native::Text);

pub(super) fn find(name: &str) -> Option<Candidates> {
    match name {
        "tojson" | "to_json" => Some(Candidates::Generic(to_json)),
        "fromjson" | "from_json" => Some(Candidates::Generic(from_json)),
        _ => None,
    }
}

fn to_json(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let signature = format!("{KEYSPACE}.{name}(any)");
    let [argument] = arguments else {
        return Err(Error::GenericCount(signature));
    };
    let given = natural(argument, &signature)?.clone();
    let function = Function::scalar(name, [given.clone()], TEXT, move |call: &Call<'_>| {
        // Cassandra deserialises the value, unlike the values of SELECT JSON.
        let is_null = call.is_null(0) || call.bytes(0).is_empty() && given.reads_no_bytes_as_null();
        let json = if is_null {
            "null".to_owned()
        } else {
            given.to_json(call.bytes(0))
        };
        Ok(Some(json.into_bytes().into()))
    });
    Ok(function.taking_null())
}

fn from_json(name: &str, arguments: &[Argument<'_>], receiver: Option<&CqlType>) -> Result<Function, Error> {
    let [argument] = arguments else {
        return Err(Error::GenericCount(format!("{KEYSPACE}.{name}(text)")));
    };
    let Some(receiver) = receiver.cloned() else {
        return Err(Error::NoReceiver(name.to_owned()));
    };
    if !argument.fit(&TEXT).is_assignable() {
        return Err(requires(name, "an", "text", argument));
    }
    let target = receiver.clone();
    Ok(Function::scalar(name, [TEXT], receiver, move |call: &Call<'_>| {
        parse(name_of(call), &target, call)
    }))
}

fn name_of<'a>(call: &Call<'a>) -> &'a str {
    &call.function.name
}

fn parse(name: &str, target: &CqlType, call: &Call<'_>) -> Result<Option<Bytes>, Problem> {
    let text = String::from_utf8_lossy(call.bytes(0));
    let json = Json::parse(&text).map_err(|error| {
        Problem::from(Failure::Json {
            function: name.to_owned(),
            text: text.clone().into_owned(),
            class: error.class,
            what: error.to_string(),
        })
    })?;
    target
        .from_json(&json)
        .map_err(|invalid| Failure::JsonValue(invalid).into())
}
