//! Dynamic data masking: mask_null, mask_default, mask_replace, mask_inner, mask_outer, mask_hash.

use super::argument::Argument;
use super::candidates::{Candidates, natural, requires};
use super::error::Error;
use super::problem::Unfit;
use super::{Call, Function, KEYSPACE, Outcome};
use crate::types::{self, CqlType, Native, encode_list, encode_tuple};
use bytes::Bytes;
use md2::Md2;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

pub(super) fn find(name: &str) -> Option<Candidates> {
    Some(Candidates::Generic(match name {
        "mask_null" | "mask_default" => whole,
        "mask_replace" => replace,
        "mask_inner" | "mask_outer" => partial,
        "mask_hash" => hash,
        _ => return None,
    }))
}

/// Whether a function is one of the built-in masking functions. Users' functions may have their names.
#[must_use]
pub fn is_mask(function: &Function) -> bool {
    function.keyspace() == KEYSPACE && find(function.name()).is_some()
}

fn signature(name: &str, parameters: &str) -> String {
    format!("{KEYSPACE}.{name}({parameters})")
}

fn whole(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let signature = signature(name, "any");
    let [argument] = arguments else {
        return Err(Error::GenericCount(signature));
    };
    let given = natural(argument, &signature)?.clone();
    let masked = if name == "mask_null" {
        None
    } else {
        Some(Bytes::from(masked_value(&given)))
    };
    let function = Function::scalar(name, [given.clone()], given, move |_: &Call<'_>| Ok(masked.clone()));
    Ok(function.taking_null())
}

/// The default replacement of any value of the type.
fn masked_value(value_type: &CqlType) -> Vec<u8> {
    let fields = |types: &mut dyn Iterator<Item = &CqlType>| {
        let values: Vec<Vec<u8>> = types.map(masked_value).collect();
        encode_tuple(values.iter().map(|value| Some(value.as_slice()))).to_vec()
    };
    match value_type {
        CqlType::Frozen(inner) => masked_value(inner),
        CqlType::Custom(_) => Vec::new(),
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => encode_list([]).to_vec(),
        CqlType::Tuple(types) => fields(&mut types.iter()),
        CqlType::User(user) => fields(&mut user.fields.iter().map(|(_, field)| field)),
        CqlType::Vector(element, count) => {
            let value = masked_value(element);
            element.encode_vector((0..*count).map(|_| value.as_slice())).to_vec()
        }
        CqlType::Native(native) => match native {
            Native::Ascii | Native::Text => b"****".to_vec(),
            Native::Blob | Native::Empty => Vec::new(),
            Native::Boolean | Native::Tinyint | Native::Varint => vec![0],
            Native::Smallint => vec![0; 2],
            Native::Int | Native::Float | Native::Inet => vec![0; 4],
            Native::Date => types::DATE_EPOCH.to_be_bytes().to_vec(),
            Native::Decimal => vec![0; 5],
            Native::Duration => vec![0; 3],
            Native::Bigint | Native::Counter | Native::Double | Native::Time | Native::Timestamp => vec![0; 8],
            Native::Timeuuid => types::min_timeuuid(0).to_vec(),
            Native::Uuid => vec![0; 16],
        },
    }
}

fn replace(name: &str, arguments: &[Argument<'_>], receiver: Option<&CqlType>) -> Result<Function, Error> {
    let signature = signature(name, "any, any");
    let [value, _] = arguments else {
        return Err(Error::GenericCount(signature));
    };
    let given = match (&value.natural, receiver) {
        (None, Some(receiver)) => receiver.clone(),
        _ => natural(value, &signature)?.clone(),
    };
    let function = Function::scalar(name, [given.clone(), given.clone()], given, |call| {
        Ok(call.arguments.get(1).cloned().flatten())
    });
    Ok(function.taking_null())
}

/// Checks that an argument fits the type `native`.
fn require(name: &str, argument: &Argument<'_>, native: Native) -> Result<CqlType, Error> {
    let required = CqlType::Native(native);
    let exact = match &argument.natural {
        Some(given) => super::fit(given, &required).is_assignable(),
        None => argument.fit(&required).is_assignable(),
    };
    if exact {
        Ok(required)
    } else {
        Err(requires(name, "an", &required.cql_name(), argument))
    }
}

fn partial(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let signature = signature(name, "[text|varchar|ascii], int, int, [text]");
    let (value, bounds, padding) = match arguments {
        [value, begin, end] => (value, [begin, end], None),
        [value, begin, end, padding] => (value, [begin, end], Some(padding)),
        _ => return Err(Error::GenericCount(signature)),
    };
    let text = CqlType::Native(Native::Text);
    let given = value.natural.clone().unwrap_or(text);
    if !matches!(given, CqlType::Native(Native::Text | Native::Ascii)) {
        return Err(requires(name, "an", "[text|varchar|ascii]", value));
    }
    let mut types = vec![given.clone()];
    for bound in bounds {
        types.push(require(name, bound, Native::Int)?);
    }
    if let Some(padding) = padding {
        types.push(require(name, padding, Native::Text)?);
    }
    let inner = name == "mask_inner";
    let ascii = given == CqlType::Native(Native::Ascii);
    Ok(Function::scalar(name, types, given, move |call: &Call<'_>| mask_part(call, inner, ascii)).taking_null())
}

/// Masks a text except for its ends (`inner`), or only its ends. Counts UTF-16 code units, as Cassandra's runtime does: a
/// character outside the basic plane counts as two. Half of a split character becomes a question mark.
fn mask_part(call: &Call<'_>, inner: bool, ascii: bool) -> Outcome {
    if call.is_null(0) {
        return Ok(None);
    }
    let padding = String::from_utf8_lossy(call.bytes(3));
    let mut units = padding.encode_utf16();
    let padding = match (call.is_null(3), units.next(), units.next()) {
        (true, ..) => u16::from(b'*'),
        (false, Some(only), None) => only,
        _ => {
            let unfit = Unfit::Padding {
                function: call.function.name.clone(),
                characters: padding.encode_utf16().count(),
                padding: padding.into_owned(),
            };
            return Err(unfit.into());
        }
    };
    // A null or negative length of an end is 0.
    let end = |index| usize::try_from(types::decode_i32(call.bytes(index)).unwrap_or(0)).unwrap_or(0);
    let text = String::from_utf8_lossy(call.bytes(0));
    let (begin, last) = (end(1), text.encode_utf16().count().saturating_sub(end(2)));
    let masked = text.encode_utf16().enumerate().map(|(index, unit)| {
        let inside = index >= begin && index < last;
        if inside == inner { padding } else { unit }
    });
    let masked: String = char::decode_utf16(masked)
        .map(|c| c.ok().filter(|c| !ascii || c.is_ascii()).unwrap_or('?'))
        .collect();
    Ok(Some(masked.into_bytes().into()))
}

fn hash(name: &str, arguments: &[Argument<'_>], _: Option<&CqlType>) -> Result<Function, Error> {
    let signature = signature(name, "any, [text]");
    let (value, algorithm) = match arguments {
        [value] => (value, None),
        [value, algorithm] => (value, Some(algorithm)),
        _ => return Err(Error::GenericCount(signature)),
    };
    let mut types = vec![natural(value, &signature)?.clone()];
    if let Some(algorithm) = algorithm {
        types.push(require(name, algorithm, Native::Text)?);
    }
    Ok(Function::scalar(name, types, CqlType::Native(Native::Blob), digest).taking_null())
}

/// Hashes a value with a digest of Cassandra's runtime. The digest is given by its name (Java Security Standard Algorithm
/// Names) or by its object identifier, with or without `OID.`.
fn digest(call: &Call<'_>) -> Outcome {
    if call.is_null(0) {
        return Ok(None);
    }
    let value = call.bytes(0);
    let written = if call.is_null(1) {
        "SHA-256".into()
    } else {
        String::from_utf8_lossy(call.bytes(1))
    };
    let name = written.to_uppercase();
    let name = name.strip_prefix("OID.").unwrap_or(&name);
    let name = match name.strip_prefix("2.16.840.1.101.3.4.2.") {
        None => name,
        Some("1") => "SHA-256",
        Some("2") => "SHA-384",
        Some("3") => "SHA-512",
        Some("4") => "SHA-224",
        Some("5") => "SHA-512/224",
        Some("6") => "SHA-512/256",
        Some("7") => "SHA3-224",
        Some("8") => "SHA3-256",
        Some("9") => "SHA3-384",
        Some("10") => "SHA3-512",
        Some(_) => "",
    };
    let digest = match name {
        "MD2" => Md2::digest(value).to_vec(),
        "MD5" => Md5::digest(value).to_vec(),
        "SHA" | "SHA-1" | "SHA1" | "1.3.14.3.2.26" => Sha1::digest(value).to_vec(),
        "SHA-224" | "SHA224" => Sha224::digest(value).to_vec(),
        "SHA-256" | "SHA256" => Sha256::digest(value).to_vec(),
        "SHA-384" | "SHA384" => Sha384::digest(value).to_vec(),
        "SHA-512" | "SHA512" => Sha512::digest(value).to_vec(),
        "SHA-512/224" | "SHA512/224" => Sha512_224::digest(value).to_vec(),
        "SHA-512/256" | "SHA512/256" => Sha512_256::digest(value).to_vec(),
        "SHA3-224" => Sha3_224::digest(value).to_vec(),
        "SHA3-256" => Sha3_256::digest(value).to_vec(),
        "SHA3-384" => Sha3_384::digest(value).to_vec(),
        "SHA3-512" => Sha3_512::digest(value).to_vec(),
        _ => return Err(Unfit::Hash(written.to_string()).into()),
    };
    Ok(Some(digest.into()))
}
