//! Similarity of two float vectors: the CQL functions, and the order of vector indexes. A greater score means more similar
//! vectors.

use super::argument::Argument;
use super::candidates::{Candidates, requires};
use super::error::Error;
use super::problem::{Problem, Unfit};
use super::{Call, Function, KEYSPACE, Outcome};
use crate::types::{self, CqlType, Native};
use bytes::Bytes;
use std::sync::Arc;

const NAMES: [&str; 3] = ["similarity_cosine", "similarity_euclidean", "similarity_dot_product"];

/// The similarity function of a vector index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Similarity {
    /// `(1 + cos(x, y)) / 2`, from 0 to 1; undefined for a zero vector. Cassandra's default.
    #[default]
    Cosine,
    /// `(1 + x · y) / 2`.
    DotProduct,
    /// `1 / (1 + d²)` with the Euclidean distance d; from 0 to 1.
    Euclidean,
}

impl Similarity {
    /// The function with this name in an index's option `similarity_function`, in any case; `None` if there is none.
    #[must_use]
    pub fn of_option(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "COSINE" => Some(Self::Cosine),
            "DOT_PRODUCT" => Some(Self::DotProduct),
            "EUCLIDEAN" => Some(Self::Euclidean),
            _ => None,
        }
    }

    /// Its name in the option, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::DotProduct => "dot_product",
            Self::Euclidean => "euclidean",
        }
    }

    /// The similarity of two vectors of the same dimension; `None` if it is undefined or NaN.
    #[must_use]
    pub fn score(self, x: &[f32], y: &[f32]) -> Option<f32> {
        let score = match self {
            Self::Cosine => cosine(x, y),
            Self::DotProduct => dot_product(x, y),
            Self::Euclidean => euclidean(x, y),
        };
        score.ok().filter(|score| !score.is_nan())
    }
}

/// Decodes the wire bytes of a `vector<float, n>`; incomplete trailing bytes are ignored.
#[must_use]
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).filter_map(types::decode_f32).collect()
}

pub(super) fn find(name: &str) -> Option<Candidates> {
    NAMES.contains(&name).then_some(Candidates::Generic(make))
}

/// The number of floats in an argument; `None` if it is not known.
fn dimension(name: &str, argument: &Argument<'_>) -> Result<Option<u32>, Error> {
    if argument.elements.is_some() {
        return Ok(argument.elements);
    }
    match argument.natural.as_ref().map(CqlType::unfrozen) {
        None => Ok(None),
        Some(CqlType::Vector(element, count)) if **element == CqlType::Native(Native::Float) => Ok(Some(*count)),
        Some(_) => Err(requires(name, "a float vector", "", argument)),
    }
}

fn make(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let signature = || format!("{KEYSPACE}.{name}(vector<float, n>, vector<float, n>)");
    let [left, right] = arguments else {
        return Err(Error::GenericCount(signature()));
    };
    let count = match (dimension(name, left)?, dimension(name, right)?) {
        (Some(a), Some(b)) if a != b => return Err(Error::Dimensions),
        (Some(count), _) | (None, Some(count)) => count,
        (None, None) => return Err(Error::Inference(left.text.clone(), signature())),
    };
    let vector = CqlType::Vector(Arc::new(CqlType::Native(Native::Float)), count);
    let similarity: fn(&[f32], &[f32]) -> Result<f32, Problem> = match name {
        "similarity_cosine" => cosine,
        "similarity_euclidean" => euclidean,
        _ => dot_product,
    };
    let body = move |call: &Call<'_>| -> Outcome {
        let (x, y) = (floats(call.bytes(0)), floats(call.bytes(1)));
        let value = similarity(&x, &y)?;
        Ok(Some(Bytes::copy_from_slice(&value.to_be_bytes())))
    };
    Ok(Function::scalar(
        name,
        [vector.clone(), vector],
        CqlType::Native(Native::Float),
        body,
    ))
}

fn dot(x: &[f32], y: &[f32]) -> f32 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

fn cosine(x: &[f32], y: &[f32]) -> Result<f32, Problem> {
    let (xx, yy) = (dot(x, x), dot(y, y));
    if xx == 0.0 || yy == 0.0 {
        return Err(Unfit::ZeroVector.into());
    }
    let cosine = types::double_to_float(f64::from(dot(x, y)) / (f64::from(xx) * f64::from(yy)).sqrt());
    Ok((1.0 + cosine) / 2.0)
}

#[expect(clippy::unnecessary_wraps, reason = "all similarities have one shape")]
fn euclidean(x: &[f32], y: &[f32]) -> Result<f32, Problem> {
    let distance: f32 = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum();
    Ok(1.0 / (1.0 + distance))
}

#[expect(clippy::unnecessary_wraps, reason = "all similarities have one shape")]
fn dot_product(x: &[f32], y: &[f32]) -> Result<f32, Problem> {
    Ok((1.0 + dot(x, y)) / 2.0)
}
