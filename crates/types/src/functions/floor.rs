//! `floor(time, duration[, start])`: the last multiple of a duration, counted from a start, that is not after a time.
//!
//! The rules are Cassandra's. Without a start, counting begins in 1970, and earlier times are rejected. With a duration of
//! months only, the result may be after the argument, since only the month numbers are compared.

use super::calendar::{millis_plus_months, months_between};
use super::candidates::Candidates;
use super::problem::Unfit;
use super::time::{date, millis, unix_millis};
use super::{Call, Function, Outcome};
use crate::types::{self, CqlType, DAY_MILLIS, DAY_NANOS, Duration, Native};
use bytes::Bytes;

const MILLI_NANOS: i64 = 1_000_000;

pub(super) fn find(name: &str) -> Option<Candidates> {
    if name != "floor" {
        return None;
    }
    let native = |native| CqlType::Native(native);
    let mut functions = Vec::new();
    // The type of the first argument, and the type of the start and the result.
    for (of, as_) in [
        (Native::Timestamp, Native::Timestamp),
        (Native::Timeuuid, Native::Timestamp),
        (Native::Date, Native::Date),
    ] {
        let body = move |call: &Call<'_>| floor_value(of, as_, call);
        functions.push(Function::scalar(
            name,
            [native(of), native(Native::Duration)],
            native(as_),
            body,
        ));
        functions.push(Function::scalar(
            name,
            [native(of), native(Native::Duration), native(as_)],
            native(as_),
            body,
        ));
    }
    functions.push(Function::scalar(
        name,
        [native(Native::Time), native(Native::Duration)],
        native(Native::Time),
        time,
    ));
    Some(Candidates::Overloads(functions))
}

fn is_negative(duration: &Duration) -> bool {
    duration.months < 0 || duration.days < 0 || duration.nanoseconds < 0
}

fn floor_value(of: Native, as_: Native, call: &Call<'_>) -> Outcome {
    let Some(at) = unix_millis(of, call.bytes(0)) else {
        return Ok(None);
    };
    let start = match call.arguments.get(2) {
        Some(_) => unix_millis(as_, call.bytes(2)),
        None => Some(0),
    };
    let (Some(start), Ok(duration)) = (start, Duration::decode(call.bytes(1))) else {
        return Ok(None);
    };
    if as_ == Native::Date && duration.nanoseconds != 0 {
        return Err(Unfit::BelowDay(duration).into());
    }
    if duration.nanoseconds % MILLI_NANOS != 0 {
        return Err(Unfit::BelowMillisecond(duration).into());
    }
    if start > at {
        return Err(Unfit::LateStart.into());
    }
    if is_negative(&duration) {
        return Err(Unfit::NegativeDuration.into());
    }
    let floor = floor_millis(at, &duration, start);
    if as_ == Native::Date {
        date(Some(floor))
    } else {
        millis(Some(floor))
    }
}

/// The floor of `at`. Times are in milliseconds since 1970-01-01. `start` is not after `at`, and no part of the duration is
/// negative.
fn floor_millis(at: i64, duration: &Duration, start: i64) -> i64 {
    let below_months = i64::from(duration.days) * DAY_MILLIS + duration.nanoseconds / MILLI_NANOS;
    if duration.months == 0 {
        return match at.wrapping_sub(start).checked_rem(below_months) {
            Some(past) => at.wrapping_sub(past),
            None => at,
        };
    }
    let months = i64::from(duration.months);
    let times = months_between(start, at) / months;
    if below_months == 0 {
        return millis_plus_months(start, times * months);
    }
    // With the parts below months the result may be after `at`, so step back. Each step is at least a month.
    let mut moved = millis_plus_months(start, times * months);
    let mut times = times;
    loop {
        let floor = moved.saturating_add(below_months.saturating_mul(times));
        if floor <= at || times <= 0 {
            return floor.max(start);
        }
        // Takes many steps at once over a long distance, so that the number of iterations stays small.
        let behind = floor.saturating_sub(at) / (below_months.saturating_add(months * 31 * DAY_MILLIS)).max(1);
        let steps = behind.max(1).min(times);
        times -= steps;
        moved = millis_plus_months(moved, -months * steps);
    }
}

fn time(call: &Call<'_>) -> Outcome {
    let (Some(at), Ok(duration)) = (types::decode_i64(call.bytes(0)), Duration::decode(call.bytes(1))) else {
        return Ok(None);
    };
    if is_negative(&duration) {
        return Err(Unfit::NegativeDuration.into());
    }
    if duration.months != 0 || duration.days != 0 || duration.nanoseconds > DAY_NANOS {
        return Err(Unfit::AboveDay.into());
    }
    let floor = at - at.checked_rem(duration.nanoseconds).unwrap_or(0);
    Ok(Some(Bytes::copy_from_slice(&floor.to_be_bytes())))
}
