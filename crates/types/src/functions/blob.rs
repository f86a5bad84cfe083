//! `intAsBlob`, `blobAsInt` and the like: convert a value to its bytes, and bytes to a value.

use super::candidates::Candidates;
use super::problem::Unfit;
use super::{Call, Function};
use crate::types::{CqlType, NATIVE_TYPES, Native, hex};

const BLOB: CqlType = CqlType::Native(Native::Blob);

/// The type of a name in `…AsBlob`: all native types but blob itself, `varchar` and `empty` included.
fn named(name: &str) -> Option<CqlType> {
    let native = match name {
        "varchar" => Native::Text,
        _ => NATIVE_TYPES.iter().find(|row| row.name == name)?.native,
    };
    (native != Native::Blob).then_some(CqlType::Native(native))
}

pub(super) fn find(name: &str) -> Option<Candidates> {
    let to = name
        .strip_suffix("_as_blob")
        .or_else(|| name.strip_suffix("asblob"))
        .and_then(named);
    let from = name
        .strip_prefix("blob_as_")
        .or_else(|| name.strip_prefix("blobas"))
        .and_then(named);
    let function = match (to, from) {
        (Some(source), _) => Function::scalar(name, [source], BLOB, |call| {
            Ok(call.arguments.first().cloned().flatten())
        }),
        (None, Some(target)) => Function::scalar(name, [BLOB], target, from_blob),
        (None, None) => return None,
    };
    Some(Candidates::Overloads(vec![function]))
}

fn from_blob(call: &Call<'_>) -> super::Outcome {
    let target = &call.function.returns;
    let bytes = call.bytes(0);
    if target.validate(bytes).is_err() {
        let unfit = Unfit::Blob {
            function: call.function.name.clone(),
            hex: hex(bytes),
            ty: target.cql_name(),
        };
        return Err(unfit.into());
    }
    Ok(call.arguments.first().cloned().flatten())
}
