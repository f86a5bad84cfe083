//! The encoding of composite values: lists, sets, maps, tuples, user-defined types and vectors.
//!
//! ```text
//! list, set   i32 count, then per element: i32 length, bytes
//! map         i32 count, then per entry: key and value, each i32 length, bytes
//! tuple, UDT  per field: i32 length (negative: null), bytes; missing fields at the end are null
//! vector      elements of fixed width one after another; others each after an unsigned vint length
//! ```

use super::{CqlType, Invalid, vint};
use bytes::Bytes;

/// Writes a length; it fits, because no value is longer than a frame, which is far below 2³¹.
fn put_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
}

fn put_value(value: &[u8], out: &mut Vec<u8>) {
    put_length(value.len(), out);
    out.extend_from_slice(value);
}

/// Encodes a list or set of these elements, in this order.
pub fn encode_list<'a>(elements: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
    let mut out = vec![0; 4];
    let mut count = 0_i32;
    for element in elements {
        put_value(element, &mut out);
        count += 1;
    }
    patch_count(out, count)
}

/// Encodes a map of these entries, in this order.
pub fn encode_map<'a>(entries: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Bytes {
    let mut out = vec![0; 4];
    let mut count = 0_i32;
    for (key, value) in entries {
        put_value(key, &mut out);
        put_value(value, &mut out);
        count += 1;
    }
    patch_count(out, count)
}

fn patch_count(mut out: Vec<u8>, count: i32) -> Bytes {
    if let Some(head) = out.first_chunk_mut::<4>() {
        *head = count.to_be_bytes();
    }
    out.into()
}

/// Encodes a tuple or user-defined type of these fields.
pub fn encode_tuple<'a>(fields: impl IntoIterator<Item = Option<&'a [u8]>>) -> Bytes {
    let mut out = Vec::new();
    for field in fields {
        match field {
            Some(value) => put_value(value, &mut out),
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
    out.into()
}

/// Takes an i32 from the front.
fn take_i32(input: &mut &[u8]) -> Option<i32> {
    let (head, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(i32::from_be_bytes(*head))
}

/// Takes `length` bytes from the front.
fn take<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(head)
}

/// Takes an element that must not be null.
fn element<'a>(input: &mut &'a [u8], kind: &'static str) -> Result<&'a [u8], Invalid> {
    let short = || Invalid::Short(kind.to_owned());
    let length = take_i32(input).ok_or_else(short)?;
    let length = usize::try_from(length).map_err(|_| Invalid::NullElement)?;
    take(input, length).ok_or_else(short)
}

fn elements<'a>(bytes: &'a [u8], per_entry: usize, kind: &'static str) -> Result<Vec<&'a [u8]>, Invalid> {
    let mut found = Vec::new();
    walk(bytes, per_entry, kind, |_, element| {
        found.push(element);
        Ok(())
    })?;
    Ok(found)
}

/// Reads elements one by one, counted from 0, and stops at the first that `each` rejects.
pub(super) fn walk<'a>(
    bytes: &'a [u8],
    per_entry: usize,
    kind: &'static str,
    mut each: impl FnMut(usize, &'a [u8]) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    let mut input = bytes;
    let count = take_i32(&mut input).ok_or_else(|| Invalid::Short(kind.to_owned()))?;
    // A negative count is valid and decodes as an empty collection, but such a value may not be bound.
    let count = usize::try_from(count).unwrap_or(0).saturating_mul(per_entry);
    for index in 0..count {
        each(index, element(&mut input, kind)?)?;
    }
    if input.is_empty() {
        Ok(())
    } else {
        Err(Invalid::Extra(kind))
    }
}

/// The elements of a list.
///
/// # Errors
/// When the bytes are no list; the elements themselves are not checked.
pub fn list_elements(bytes: &[u8]) -> Result<Vec<&[u8]>, Invalid> {
    elements(bytes, 1, "list")
}

/// The elements of a list that may have nulls, which only selections create; null is `None`.
///
/// # Errors
/// When the bytes are no list; the elements themselves are not checked.
pub fn nullable_list_elements(bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, Invalid> {
    match list_elements(bytes) {
        Ok(elements) => Ok(elements.into_iter().map(Some).collect()),
        Err(Invalid::NullElement) => {
            let (count, rest) = bytes.split_first_chunk::<4>().ok_or(Invalid::NullElement)?;
            let count = usize::try_from(u32::from_be_bytes(*count)).unwrap_or(usize::MAX);
            // Each element has a length of four bytes at least.
            Ok(tuple_fields(rest, count.min(rest.len() / 4)))
        }
        Err(error) => Err(error),
    }
}

/// The elements of a set.
///
/// # Errors
/// When the bytes are no set; the elements themselves are not checked.
pub fn set_elements(bytes: &[u8]) -> Result<Vec<&[u8]>, Invalid> {
    elements(bytes, 1, "set")
}

/// A key and a value of a map, as bytes.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// The entries of a map.
///
/// # Errors
/// When the bytes are no map; keys and values themselves are not checked.
pub fn map_entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, Invalid> {
    let flat = elements(bytes, 2, "map")?;
    Ok(flat
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [key, value] => Some((*key, *value)),
            _ => None,
        })
        .collect())
}

/// The fields of a tuple or user-defined type of `count` fields; missing ones are null. Never fails: fields that cannot
/// be decoded are null, and extra fields are dropped.
#[must_use]
pub fn tuple_fields(bytes: &[u8], count: usize) -> Vec<Option<&[u8]>> {
    let mut input = bytes;
    (0..count)
        .map(|_| {
            let length = take_i32(&mut input)?;
            take(&mut input, usize::try_from(length).ok()?)
        })
        .collect()
}

/// Rejects a bound collection whose count is negative; `kind` is its kind.
pub(super) fn refuse_negative(bytes: &[u8], kind: &'static str) -> Result<(), Invalid> {
    let mut input = bytes;
    match take_i32(&mut input) {
        Some(..0) => Err(Invalid::Undecodable(kind)),
        _ => Ok(()),
    }
}

/// The bytes of a user-defined type with every field that is unset as null; `None`: there is none.
pub(super) fn without_unset(bytes: &[u8]) -> Option<Bytes> {
    let mut lengths = bytes;
    let mut has_unset = false;
    while let Some(length) = take_i32(&mut lengths) {
        has_unset |= length < -1;
        take(&mut lengths, usize::try_from(length).unwrap_or(0))?;
    }
    has_unset.then(|| encode_tuple(tuple_fields(bytes, tuple_length(bytes))))
}

/// The number of fields in a tuple's bytes.
#[must_use]
pub fn tuple_length(bytes: &[u8]) -> usize {
    let mut input = bytes;
    let mut count = 0;
    while let Some(length) = take_i32(&mut input) {
        count += 1;
        if take(&mut input, usize::try_from(length).unwrap_or(0)).is_none() {
            break;
        }
    }
    count
}

/// Checks a tuple's or user-defined type's bytes; `names` are the fields' names of the latter.
pub(super) fn validate_tuple(bytes: &[u8], types: &[&CqlType], names: Option<&[&str]>) -> Result<(), Invalid> {
    let mut input = bytes;
    for (index, field_type) in types.iter().enumerate() {
        if input.is_empty() {
            return Ok(());
        }
        let name = names.and_then(|names| names.get(index));
        let place = || match name {
            Some(name) => format!("{index}th field {name}"),
            None => format!("{index}th component"),
        };
        let length = take_i32(&mut input).ok_or_else(|| Invalid::ShortSize(place()))?;
        let Ok(length) = usize::try_from(length) else {
            continue;
        };
        let field = take(&mut input, length).ok_or_else(|| Invalid::ShortField(place()))?;
        field_type.validate(field).map_err(|cause| match name {
            Some(name) => Invalid::Field {
                index,
                field: (*name).to_owned(),
                cause: Box::new(cause),
            },
            None => cause,
        })?;
    }
    if input.is_empty() {
        Ok(())
    } else {
        Err(Invalid::Remaining(if names.is_some() { "UDT" } else { "tuple" }))
    }
}

impl CqlType {
    /// The fixed width of an element in a vector; `None` means that each element has its own length.
    #[must_use]
    pub fn vector_width(&self) -> Option<usize> {
        match self {
            Self::Native(native) => native.row().vector_width,
            Self::Vector(element, count) => element.vector_width()?.checked_mul(*count as usize),
            Self::Frozen(inner) => inner.vector_width(),
            Self::Custom(_) | Self::List(_) | Self::Set(_) | Self::Map(..) | Self::Tuple(_) | Self::User(_) => None,
        }
    }

    /// Encodes a vector whose elements have this type.
    pub fn encode_vector<'a>(&self, elements: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
        let fixed = self.vector_width().is_some();
        let mut out = Vec::new();
        for element in elements {
            if !fixed {
                vint::write_unsigned(element.len() as u64, &mut out);
            }
            out.extend_from_slice(element);
        }
        out.into()
    }

    /// The elements of a vector; this is the vector's type.
    ///
    /// # Errors
    /// When the bytes do not hold exactly the type's number of elements, or this is no vector.
    pub fn vector_elements<'a>(&self, bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, Invalid> {
        let Self::Vector(element, count) = self.unfrozen() else {
            return Err(Invalid::Short(self.cql_name()));
        };
        if bytes.is_empty() {
            return Err(Invalid::VectorEmpty);
        }
        let width = element.vector_width();
        let short = || Invalid::Short(self.unfrozen().cql_name());
        let mut input = bytes;
        let mut found = Vec::with_capacity((*count as usize).min(bytes.len()));
        for _ in 0..*count {
            let length = match width {
                Some(width) => width,
                None => vint::read_unsigned(&mut input)
                    .and_then(|length| usize::try_from(length).ok())
                    .ok_or_else(short)?,
            };
            found.push(take(&mut input, length).ok_or_else(short)?);
        }
        if input.is_empty() {
            Ok(found)
        } else {
            Err(Invalid::VectorExtra {
                count: input.len(),
                vector: self.unfrozen().cql_name(),
            })
        }
    }
}
