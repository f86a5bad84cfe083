//! Times: now and current…, uuid, conversions between timeuuid, timestamp and date, bounds of timeuuids.

use super::candidates::Candidates;
use super::{Call, Function, Outcome};
use crate::types::{self, CqlType, DAY_MILLIS, Native};
use bytes::Bytes;

const TIMEUUID: CqlType = CqlType::Native(Native::Timeuuid);
const TIMESTAMP: CqlType = CqlType::Native(Native::Timestamp);
const DATE: CqlType = CqlType::Native(Native::Date);
const BIGINT: CqlType = CqlType::Native(Native::Bigint);

/// The type of the current time.
type Now = fn(&Call<'_>) -> Outcome;

/// Names of functions without arguments, their result, their body.
const NOW: &[(&[&str], CqlType, Now)] = &[
    (&["now", "current_timeuuid", "currenttimeuuid"], TIMEUUID, now),
    (&["current_timestamp", "currenttimestamp"], TIMESTAMP, |call| {
        millis(Some(call.context.now_micros.div_euclid(1000)))
    }),
    (&["current_date", "currentdate"], DATE, |call| {
        date(Some(call.context.now_micros.div_euclid(1000)))
    }),
    (
        &["current_time", "currenttime"],
        CqlType::Native(Native::Time),
        |call| {
            let micros = call.context.now_micros.rem_euclid(DAY_MILLIS * 1000);
            millis(Some(micros * 1000))
        },
    ),
    (&["uuid"], CqlType::Native(Native::Uuid), random_uuid),
];

/// Converts milliseconds since 1970-01-01.
type OfMillis = fn(Option<i64>) -> Outcome;

/// Conversions: their names, result, body and argument types.
const CONVERSIONS: &[(&[&str], CqlType, OfMillis, &[Native])] = &[
    (
        &["todate", "to_date"],
        DATE,
        date,
        &[Native::Timeuuid, Native::Timestamp],
    ),
    (
        &["totimestamp", "to_timestamp"],
        TIMESTAMP,
        millis,
        &[Native::Timeuuid, Native::Date],
    ),
    (
        &["tounixtimestamp", "to_unix_timestamp"],
        BIGINT,
        millis,
        &[Native::Timeuuid, Native::Timestamp, Native::Date],
    ),
];

/// Conversions that Cassandra removed in 5.0. The profile cosmos calls them by these names, so no other function may
/// have them.
const DROPPED: &[(&str, &str, CqlType)] = &[
    ("dateof", "cosmos dateof", TIMESTAMP),
    ("unixtimestampof", "cosmos unixtimestampof", BIGINT),
];

/// The current name of a function that Cassandra has removed, if it still exists.
#[must_use]
pub fn dropped(name: &str) -> Option<&'static str> {
    let found = DROPPED.iter().find(|(written, ..)| *written == name);
    found.map(|(_, kept, _)| *kept)
}

pub(super) fn find(name: &str) -> Option<Candidates> {
    let one = |function| Some(Candidates::Overloads(vec![function]));
    if let Some((_, returns, body)) = NOW.iter().find(|(names, ..)| names.contains(&name)) {
        return one(Function::scalar(name, [], returns.clone(), body));
    }
    if let Some((_, returns, make, from)) = CONVERSIONS.iter().find(|(names, ..)| names.contains(&name)) {
        let overload = |native: &Native| {
            let native = *native;
            Function::scalar(
                name,
                [CqlType::Native(native)],
                returns.clone(),
                move |call: &Call<'_>| make(unix_millis(native, call.bytes(0))),
            )
        };
        return Some(Candidates::Overloads(from.iter().map(overload).collect()));
    }
    if let Some((written, _, returns)) = DROPPED.iter().find(|(_, kept, _)| *kept == name) {
        let timeuuid = [CqlType::Native(Native::Timeuuid)];
        return one(Function::scalar(*written, timeuuid, returns.clone(), |call| {
            millis(unix_millis(Native::Timeuuid, call.bytes(0)))
        }));
    }
    let bound: fn(i64) -> [u8; 16] = match name {
        "mintimeuuid" | "min_timeuuid" => types::min_timeuuid,
        "maxtimeuuid" | "max_timeuuid" => types::max_timeuuid,
        _ => return None,
    };
    one(Function::scalar(name, [TIMESTAMP], TIMEUUID, move |call| {
        Ok(types::decode_i64(call.bytes(0)).map(|millis| Bytes::copy_from_slice(&bound(millis))))
    }))
}

/// Milliseconds since 1970-01-01; `None` for an empty value.
pub(super) fn unix_millis(native: Native, bytes: &[u8]) -> Option<i64> {
    match native {
        Native::Timeuuid => types::unix_millis(bytes),
        Native::Date => types::decode_date(bytes).map(|days| days * DAY_MILLIS),
        _ => types::decode_i64(bytes),
    }
}

pub(super) fn millis(value: Option<i64>) -> Outcome {
    Ok(value.map(|value| Bytes::copy_from_slice(&value.to_be_bytes())))
}

/// The day of a time; before 1970 the day after it unless it is midnight, because Java divides towards zero. Days
/// outside the range of dates are null.
pub(super) fn date(value: Option<i64>) -> Outcome {
    Ok(value
        .and_then(|millis| types::encode_date(millis / DAY_MILLIS))
        .map(|days| Bytes::copy_from_slice(&days)))
}

fn now(call: &Call<'_>) -> Outcome {
    Ok(Some(Bytes::copy_from_slice(&call.context.timeuuid())))
}

/// A random uuid: version 4, variant 10 (RFC 4122 §4.4).
fn random_uuid(call: &Call<'_>) -> Outcome {
    let high = (call.context.random() & 0xffff_ffff_ffff_0fff) | 0x4000;
    let low = (call.context.random() & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    Ok(Some([high.to_be_bytes(), low.to_be_bytes()].concat().into()))
}
