//! count, min, max, sum and avg: their state during a scan.
//!
//! Sums of integers wrap in their own width; averages of integers are the exact sum divided and truncated towards zero.
//! Each value moves the average of decimals, so it depends on their order. Sums of floating point numbers are
//! compensated (Kahan). Without any values sum and avg are 0, min and max null.

use super::Context;
use super::argument::Argument;
use super::candidates::{Candidates, natural};
use super::cast::{Number, truncated, whole};
use super::error::Error;
use super::problem::{Failure, Problem};
use super::user::Folded;
use super::{Body, Function, KEYSPACE, Outcome, decimal};
use crate::types::{self, CqlType, Decimal, Native};
use bytes::Bytes;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::cmp::Ordering;

/// The computation of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Count,
    /// `Less` keeps the minimum, `Greater` the maximum.
    Extreme(Ordering),
    Sum,
    Average,
}

impl Aggregate {
    /// Types that can be summed.
    pub(super) const NUMBERS: [Native; 9] = [
        Native::Tinyint,
        Native::Bigint,
        Native::Decimal,
        Native::Counter,
        Native::Double,
        Native::Int,
        Native::Varint,
        Native::Float,
        Native::Smallint,
    ];
}

pub(super) fn find(name: &str) -> Option<Candidates> {
    let numeric = |kind| {
        let overload = |native: Native| {
            let value_type = CqlType::Native(native);
            Function::aggregate(name, [value_type.clone()], value_type, kind)
        };
        Some(Candidates::Overloads(
            Aggregate::NUMBERS.into_iter().map(overload).collect(),
        ))
    };
    match name {
        // Its argument is declared a blob, which any term fits except a literal number or string.
        "count" => {
            let (blob, bigint) = (CqlType::Native(Native::Blob), CqlType::Native(Native::Bigint));
            Some(Candidates::Overloads(vec![Function::aggregate(
                name,
                [blob],
                bigint,
                Aggregate::Count,
            )]))
        }
        // The planner counts rows itself for this call; the entry only declares that it takes no argument.
        "count_rows" | "countRows" => Some(Candidates::Overloads(vec![Function::aggregate(
            "count_rows",
            [],
            CqlType::Native(Native::Bigint),
            Aggregate::Count,
        )])),
        "min" | "max" => Some(Candidates::Generic(extreme)),
        "sum" => numeric(Aggregate::Sum),
        "avg" => numeric(Aggregate::Average),
        _ => None,
    }
}

fn extreme(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let signature = format!("{KEYSPACE}.{name}(any)");
    let [argument] = arguments else {
        return Err(Error::GenericCount(signature));
    };
    let value_type = natural(argument, &signature)?.freeze();
    let keep = if name == "min" {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    Ok(Function::aggregate(
        name,
        [value_type.clone()],
        value_type,
        Aggregate::Extreme(keep),
    ))
}

/// A compensated sum (Kahan): the sum, the rounding error of the last addition, and the number of values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floats {
    sum: f64,
    compensation: f64,
    /// The sum without compensation, since compensation turns infinity into NaN.
    simple: f64,
    /// The sum of all values divided by 2⁶⁴, which does not overflow when the sum does.
    small: f64,
    count: i64,
}

const SMALL: f64 = 18_446_744_073_709_551_616.0;

impl Floats {
    fn add(&mut self, value: f64) {
        let corrected = value - self.compensation;
        let sum = self.sum + corrected;
        self.compensation = (sum - self.sum) - corrected;
        self.sum = sum;
        self.simple += value;
        self.small += value / SMALL;
        self.count += 1;
    }

    fn sum(&self) -> f64 {
        // Kahan's formula subtracts the compensation here; Cassandra's `AggregateFcts` adds it.
        let sum = self.sum + self.compensation;
        if sum.is_nan() && self.simple.is_infinite() {
            self.simple
        } else {
            sum
        }
    }

    fn average(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let average = self.sum() / self.count as f64;
        if average.is_finite() {
            return average;
        }
        // The sum overflowed although its values are finite.
        self.small / self.count as f64 * SMALL
    }
}

/// The state of an aggregate.
#[derive(Clone, Debug)]
pub(super) enum State {
    Count(i64),
    Extreme(Ordering, Option<Bytes>),
    /// Sum or average of integers up to 64 bits.
    Integers {
        average: bool,
        sum: i128,
        count: i64,
    },
    Floats {
        average: bool,
        floats: Floats,
    },
    Varints {
        average: bool,
        sum: BigInt,
        count: i64,
    },
    /// Sum of decimals, or their running average: as in Cassandra each value moves it, by a step rounded to the greater
    /// scale.
    Decimals {
        average: bool,
        result: Decimal,
        count: i64,
    },
}

impl State {
    pub(super) fn new(kind: Aggregate, value_type: &CqlType) -> Self {
        let average = kind == Aggregate::Average;
        match kind {
            Aggregate::Count => Self::Count(0),
            Aggregate::Extreme(keep) => Self::Extreme(keep, None),
            Aggregate::Sum | Aggregate::Average => match value_type {
                CqlType::Native(Native::Float | Native::Double) => Self::Floats {
                    average,
                    floats: Floats::default(),
                },
                CqlType::Native(Native::Varint) => Self::Varints {
                    average,
                    sum: BigInt::ZERO,
                    count: 0,
                },
                CqlType::Native(Native::Decimal) => Self::Decimals {
                    average,
                    result: whole(BigInt::ZERO),
                    count: 0,
                },
                _ => Self::Integers {
                    average,
                    sum: 0,
                    count: 0,
                },
            },
        }
    }

    /// Adds a value other than null.
    pub(super) fn add(&mut self, value_type: &CqlType, value: &Bytes) -> Result<(), Problem> {
        let number = || match value_type {
            CqlType::Native(native) => Number::decode(*native, value),
            _ => None,
        };
        match self {
            Self::Count(count) => *count += 1,
            Self::Extreme(keep, kept) => {
                let better = kept
                    .as_ref()
                    .is_none_or(|kept| value_type.compare(value, kept) == *keep);
                if better {
                    *kept = Some(value.clone());
                }
            }
            Self::Integers { sum, count, .. } => {
                if let Some(number) = number() {
                    *sum = sum.wrapping_add(number.to_i64().into());
                    *count += 1;
                }
            }
            Self::Floats { floats, .. } => {
                if let Some(number) = number() {
                    floats.add(number.to_f64());
                }
            }
            Self::Varints { sum, count, .. } => {
                if let Some(Number::Varint(value)) = number() {
                    *sum += value;
                    *count += 1;
                }
            }
            Self::Decimals { average, result, count } => {
                if let Some(Number::Decimal(value)) = number() {
                    *count += 1;
                    let moved = if *average {
                        decimal::subtract(&value, result)
                            .and_then(|distance| decimal::add(result, &decimal::divide_half_even(&distance, *count)))
                    } else {
                        decimal::add(result, &value)
                    };
                    *result = moved.ok_or(Failure::Overflow)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, value_type: &CqlType) -> Outcome {
        let native = match value_type {
            CqlType::Native(native) => *native,
            _ => Native::Blob,
        };
        let bytes = match self {
            Self::Count(count) => count.to_be_bytes().to_vec(),
            Self::Extreme(_, kept) => return Ok(kept),
            Self::Integers { average, sum, count } => {
                let value = if average {
                    sum.checked_div(count.into()).unwrap_or(0)
                } else {
                    sum
                };
                // The low 64 bits; the type takes its own width of them.
                let low = (value & i128::from(u64::MAX)).to_u64().unwrap_or(0).cast_signed();
                truncated(low, native)
            }
            Self::Floats { average, floats } => {
                let value = if average { floats.average() } else { floats.sum() };
                if native == Native::Float {
                    types::encode_f32(types::double_to_float(value)).to_vec()
                } else {
                    types::encode_f64(value).to_vec()
                }
            }
            Self::Varints { average, sum, count } => {
                let value = if average && count > 0 { sum / count } else { sum };
                types::encode_varint(&value)
            }
            Self::Decimals { result, .. } => result.encode(),
        };
        Ok(Some(bytes.into()))
    }
}

/// An aggregate during a scan.
#[derive(Clone, Debug)]
pub struct Accumulator {
    function: Function,
    state: State,
    /// The state of a user-defined aggregate; replaces `state`.
    folded: Option<Folded>,
}

impl Accumulator {
    /// The state before the first row. For a scalar it would count rows; the planner never does that.
    #[must_use]
    pub fn new(function: &Function) -> Self {
        let kind = match &function.0.body {
            Body::Aggregate(kind) => *kind,
            Body::Scalar(_) | Body::User(_) => Aggregate::Count,
        };
        let folded = match &function.0.body {
            Body::User(fold) => Some(Folded::new(fold)),
            Body::Scalar(_) | Body::Aggregate(_) => None,
        };
        let blob = CqlType::Native(Native::Blob);
        let value_type = function.argument_types().first().unwrap_or(&blob);
        Self {
            function: function.clone(),
            state: State::new(kind, value_type),
            folded,
        }
    }

    /// Adds a row's arguments. Null is skipped, except by user functions called on null input.
    ///
    /// # Errors
    /// When a sum of decimals becomes too long, or a user function fails.
    pub fn add(&mut self, arguments: &[Option<Bytes>], context: &Context) -> Result<(), Error> {
        if let Some(folded) = &mut self.folded {
            return folded.add(arguments, context);
        }
        let (Some(Some(value)), Some(value_type)) = (arguments.first(), self.function.0.arguments.first()) else {
            return Ok(());
        };
        self.state
            .add(value_type, value)
            .map_err(|problem| problem.of(&self.function))
    }

    /// The result; `None` is null.
    ///
    /// # Errors
    /// When a user function fails.
    pub fn finish(self, context: &Context) -> Result<Option<Bytes>, Error> {
        if let Some(folded) = self.folded {
            return folded.finish(context);
        }
        let value_type = self.function.return_type().clone();
        self.state
            .finish(&value_type)
            .map_err(|problem| problem.of(&self.function))
    }
}
