//! Restrictions on tokens, with bound values.

use super::super::error::Error;
use super::super::refusal::BoundRefusal;
use super::super::restriction::TokenRestriction;
use super::super::term::{Binding, TypedTerm};
use super::super::value;
use crate::command::Value;

/// The tokens that restrictions allow, both ends inclusive; −2^63 as an upper bound is the end of the ring.
pub(super) fn token_range(token: &TokenRestriction, binding: &Binding<'_>) -> Result<(i64, i64), Error> {
    if let Some(term) = &token.eq {
        // The end of the ring is its beginning, so a range from −2^63 to itself is the whole ring.
        return Ok(match token_value(term, binding)? {
            i64::MIN => (i64::MIN, i64::MAX),
            token => (token, token),
        });
    }
    const EMPTY: (i64, i64) = (i64::MAX, i64::MIN);
    // Both are read before either is judged: a null in one is refused even if the other allows nothing.
    let (lower, upper) = (token_bound(&token.lower, binding)?, token_bound(&token.upper, binding)?);
    let lower = match lower {
        None | Some((i64::MIN, _)) => i64::MIN,
        Some((token, true)) => token,
        Some((token, false)) => match token.checked_add(1) {
            Some(token) => token,
            None => return Ok(EMPTY),
        },
    };
    let upper = match upper {
        None | Some((i64::MIN, _)) => i64::MAX,
        Some((token, true)) => token,
        Some((token, false)) => token - 1,
    };
    Ok((lower, upper))
}

fn token_value(term: &TypedTerm, binding: &Binding<'_>) -> Result<i64, Error> {
    match term.bind(binding)? {
        Value::Bytes(bytes) => value::bigint(&bytes).ok_or_else(|| Error::from(BoundRefusal::NullToken)),
        Value::Null => Err(Error::from(BoundRefusal::NullToken)),
        Value::Unset => Err(BoundRefusal::UnsetToken.into()),
    }
}

fn token_bound(bound: &Option<(TypedTerm, bool)>, binding: &Binding<'_>) -> Result<Option<(i64, bool)>, Error> {
    let Some((term, inclusive)) = bound else {
        return Ok(None);
    };
    Ok(Some((token_value(term, binding)?, *inclusive)))
}

/// The tokens that restrictions allow beside named keys. A range that starts after its end wraps around the ring
/// (`TokenFilter.toRangeSet`).
pub(super) fn token_filter(token: &TokenRestriction, binding: &Binding<'_>) -> Result<impl Fn(i64) -> bool, Error> {
    let eq = match &token.eq {
        None => None,
        Some(term) => Some(token_value(term, binding)?),
    };
    let (lower, upper) = (token_bound(&token.lower, binding)?, token_bound(&token.upper, binding)?);
    Ok(move |at: i64| {
        let above = lower.is_none_or(|(value, inclusive)| at > value || (inclusive && at == value));
        let below = upper.is_none_or(|(value, inclusive)| at < value || (inclusive && at == value));
        match (eq, lower, upper) {
            (Some(value), ..) => at == value,
            (None, Some((start, _)), Some((end, _))) if start > end => above || below,
            _ => above && below,
        }
    })
}
