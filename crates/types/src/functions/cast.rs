//! `CAST(a AS type)`: `cast_as_<type>` with an overload for each type that can be cast.

use super::candidates::Candidates;
use super::problem::Failure;
use super::{Call, Function, NameFormat, Outcome, time};
use crate::types::{self, CqlType, Decimal, Native};
use bytes::Bytes;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// Numeric types. Each can be cast to every other, but none to counter.
const NUMBERS: [Native; 9] = [
    Native::Tinyint,
    Native::Smallint,
    Native::Int,
    Native::Bigint,
    Native::Float,
    Native::Double,
    Native::Varint,
    Native::Decimal,
    Native::Counter,
];

/// Types other than numbers that can be cast to text and ascii.
const TEXTS: [Native; 7] = [
    Native::Boolean,
    Native::Uuid,
    Native::Timeuuid,
    Native::Date,
    Native::Time,
    Native::Timestamp,
    Native::Inet,
];

/// Finds `cast_as_text` and its former name `castAsText` (Cassandra 4).
pub(super) fn find(name: &str) -> Option<Candidates> {
    let legacy = |name: &str| name.strip_prefix("castAs").map(str::to_lowercase);
    let target = name
        .strip_prefix("cast_as_")
        .map(str::to_owned)
        .or_else(|| legacy(name))?;
    let casts = casts(&target);
    (!casts.is_empty()).then_some(Candidates::Overloads(casts))
}

/// Overloads of the cast to the named type; none if nothing can be cast to it.
pub(super) fn casts(target: &str) -> Vec<Function> {
    let Some(native) = Native::named(target).filter(|_| target != "varchar") else {
        return Vec::new();
    };
    let from: Vec<Native> = match native {
        Native::Counter => Vec::new(),
        number if NUMBERS.contains(&number) => NUMBERS.into_iter().filter(|from| *from != number).collect(),
        Native::Timestamp => vec![Native::Timeuuid, Native::Date],
        Native::Date => vec![Native::Timeuuid, Native::Timestamp],
        Native::Text => NUMBERS.into_iter().chain(TEXTS).chain([Native::Ascii]).collect(),
        Native::Ascii => NUMBERS.into_iter().chain(TEXTS).collect(),
        _ => Vec::new(),
    };
    let overload = |from: Native| {
        let body = move |call: &Call<'_>| cast(from, native, call.bytes(0));
        let (from, to) = (CqlType::Native(from), CqlType::Native(native));
        Function::scalar(format!("cast_as_{target}"), [from], to, body).with_name_format(NameFormat::Cast)
    };
    from.into_iter().map(overload).collect()
}

fn cast(from: Native, to: Native, bytes: &[u8]) -> Outcome {
    if bytes.is_empty() && !matches!(from, Native::Ascii) {
        return Ok(None);
    }
    match to {
        Native::Text | Native::Ascii => Ok(Some(CqlType::Native(from).to_text(bytes).into_bytes().into())),
        Native::Date => time::date(time::unix_millis(from, bytes)),
        Native::Timestamp => {
            Ok(time::unix_millis(from, bytes).map(|millis| Bytes::copy_from_slice(&millis.to_be_bytes())))
        }
        _ => match Number::decode(from, bytes) {
            Some(number) => number.encode(to).map(Some),
            None => Ok(None),
        },
    }
}

/// A value of any numeric type.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// tinyint, smallint, int, bigint, counter.
    Integer(i64),
    /// float; not stored as a double, since its shortest text differs from that of the same double.
    Float(f32),
    /// double.
    Double(f64),
    /// varint.
    Varint(BigInt),
    /// decimal.
    Decimal(Decimal),
}

impl Number {
    /// Decodes a value; `None` for an empty value.
    pub(super) fn decode(native: Native, bytes: &[u8]) -> Option<Self> {
        Some(match native {
            Native::Tinyint => Self::Integer(types::decode_i8(bytes)?.into()),
            Native::Smallint => Self::Integer(types::decode_i16(bytes)?.into()),
            Native::Int => Self::Integer(types::decode_i32(bytes)?.into()),
            Native::Bigint | Native::Counter => Self::Integer(types::decode_i64(bytes)?),
            Native::Float => Self::Float(types::decode_f32(bytes)?),
            Native::Double => Self::Double(types::decode_f64(bytes)?),
            Native::Varint => Self::Varint(types::decode_varint(bytes)?),
            Native::Decimal => Self::Decimal(Decimal::decode(bytes)?),
            _ => return None,
        })
    }

    pub(super) fn to_f64(&self) -> f64 {
        match self {
            Self::Integer(value) => *value as f64,
            Self::Float(value) => (*value).into(),
            Self::Double(value) => *value,
            Self::Varint(value) => value.to_f64().unwrap_or(f64::NAN),
            Self::Decimal(value) => value.to_f64(),
        }
    }

    fn to_f32(&self) -> f32 {
        match self {
            Self::Integer(value) => *value as f32,
            Self::Float(value) => *value,
            Self::Double(value) => types::double_to_float(*value),
            Self::Varint(value) => value.to_f32().unwrap_or(f32::NAN),
            Self::Decimal(value) => types::double_to_float(value.to_f64()),
        }
    }

    /// The low 64 bits of the integer part; doubles saturate, as in Java.
    pub(super) fn to_i64(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            Self::Float(_) | Self::Double(_) => saturated(self.to_f64()),
            Self::Varint(value) => low_bits(value),
            // With more zeros the low 64 bits are zeros.
            Self::Decimal(value) => value.to_integer(ADDED_ZEROS_MAX).map_or(0, |whole| low_bits(&whole)),
        }
    }

    /// The integer part. As in Cassandra, floats and doubles saturate at 64 bits, and decimals give only their low 64 bits.
    pub(super) fn to_varint(&self) -> BigInt {
        match self {
            Self::Integer(value) => BigInt::from(*value),
            Self::Float(_) | Self::Double(_) => BigInt::from(saturated(self.to_f64())),
            Self::Varint(value) => value.clone(),
            Self::Decimal(_) => BigInt::from(self.to_i64()),
        }
    }

    /// The value as a decimal; `None` for NaN and infinities.
    pub(super) fn to_decimal(&self) -> Option<Decimal> {
        match self {
            Self::Integer(value) => Some(whole(BigInt::from(*value))),
            Self::Float(value) => Decimal::parse(&types::java_f32(*value)),
            Self::Double(value) => Decimal::parse(&types::java_f64(*value)),
            Self::Varint(value) => Some(whole(value.clone())),
            Self::Decimal(value) => Some(value.clone()),
        }
    }

    /// The value as another numeric type, truncated as in Java.
    pub(super) fn encode(&self, to: Native) -> Result<Bytes, super::problem::Problem> {
        let bytes = match to {
            Native::Tinyint | Native::Smallint | Native::Int => {
                // Java narrows doubles to int first.
                let value = match self {
                    Self::Float(_) | Self::Double(_) => self.to_i64().clamp(i32::MIN.into(), i32::MAX.into()),
                    _ => self.to_i64(),
                };
                truncated(value, to)
            }
            Native::Bigint | Native::Counter => self.to_i64().to_be_bytes().to_vec(),
            Native::Float => self.to_f32().to_be_bytes().to_vec(),
            Native::Double => self.to_f64().to_be_bytes().to_vec(),
            Native::Varint => types::encode_varint(&self.to_varint()),
            _ => match self.to_decimal() {
                Some(decimal) => decimal.encode(),
                None => {
                    return Err(Failure::NoDecimal(types::java_f64(self.to_f64())).into());
                }
            },
        };
        Ok(bytes.into())
    }
}

/// Maximum zeros that a negative scale adds to a decimal's integer part, if the part is computed. A number that ends in 64
/// decimal zeros is a multiple of 2⁶⁴, so with more zeros the low 64 bits are known to be zeros.
const ADDED_ZEROS_MAX: u32 = 100_000;

pub(super) fn whole(unscaled: BigInt) -> Decimal {
    Decimal { unscaled, scale: 0 }
}

/// Java's `(long) double`: towards zero, saturating, NaN is 0.
#[expect(clippy::cast_possible_truncation, reason = "saturation is intended")]
pub(super) fn saturated(value: f64) -> i64 {
    value as i64
}

/// Java's `BigInteger.longValue`.
fn low_bits(value: &BigInt) -> i64 {
    let mask = BigInt::from(u64::MAX);
    // Two's complement, so that negative numbers keep their low bits.
    (value & mask).to_u64().unwrap_or(0).cast_signed()
}

/// The low bytes of an integer, as many as the type is wide.
pub(super) fn truncated(value: i64, to: Native) -> Vec<u8> {
    let width = match to {
        Native::Tinyint => 1,
        Native::Smallint => 2,
        Native::Int => 4,
        _ => 8,
    };
    value.to_be_bytes().into_iter().skip(8 - width).collect()
}
