//! Operations on the bytes of any type: validate, compare, encode as a key, normalize.

use super::compound::{self, list_elements, map_entries, set_elements, tuple_fields};
use super::key::{self, EMPTY, KeyOrder, KeyReader, VALUE};
use super::{Corrupt, CqlType, Decimal, Invalid, Native};
use bytes::Bytes;
use helenus_base::utf16;
use std::cmp::Ordering;

// Marks before the fields of a tuple in a key: its end sorts before null, null before any value.
const END: u8 = 0;
const NULL: u8 = 1;
const FIELD: u8 = 2;
// Mark before each element of a collection.
const ELEMENT: u8 = 1;

impl CqlType {
    /// Checks that `bytes` are a value of this type.
    ///
    /// # Errors
    /// The fault, in Cassandra's words.
    pub fn validate(&self, bytes: &[u8]) -> Result<(), Invalid> {
        match self {
            Self::Native(native) => (native.row().validate)(bytes),
            Self::Custom(_) => Ok(()),
            Self::Frozen(inner) => inner.validate(bytes),
            Self::List(element) => compound::walk(bytes, 1, "list", |_, value| element.validate(value)),
            Self::Set(element) => compound::walk(bytes, 1, "set", |_, value| element.validate(value)),
            Self::Map(key_type, value_type) => compound::walk(bytes, 2, "map", |index, value| {
                if index.is_multiple_of(2) { key_type } else { value_type }.validate(value)
            }),
            Self::Tuple(types) => {
                let types: Vec<&Self> = types.iter().collect();
                compound::validate_tuple(bytes, &types, None)
            }
            Self::User(user) => {
                let types: Vec<&Self> = user.fields.iter().map(|(_, field_type)| field_type).collect();
                let names: Vec<&str> = user.fields.iter().map(|(name, _)| name.as_str()).collect();
                compound::validate_tuple(bytes, &types, Some(&names))
            }
            Self::Vector(element, _) => self
                .vector_elements(bytes)?
                .into_iter()
                .try_for_each(|e| element.validate(e)),
        }
    }

    /// Whether Cassandra reads a value of no bytes of this type as null where it deserialises values: in elements of a
    /// bound IN, in `to_json`. Text, ascii and blob have such a value, and other types refuse it or have fields that are null.
    #[must_use]
    pub fn reads_no_bytes_as_null(&self) -> bool {
        match self {
            Self::Native(native) => !matches!(native, Native::Text | Native::Ascii | Native::Blob),
            Self::Frozen(inner) => inner.reads_no_bytes_as_null(),
            _ => false,
        }
    }

    /// Cassandra's order of two values, as in clustering, `min`, `max` and relations; empty bytes come first. Invalid
    /// bytes have a consistent order too.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Native(native) => (native.row().compare)(a, b),
            Self::Custom(_) => a.cmp(b),
            Self::Frozen(inner) => inner.compare(a, b),
            Self::List(element) | Self::Set(element) => compare_whole(a, b, list_elements, |x, y| {
                compare_all(x, y, |x, y| element.compare(x, y))
            }),
            Self::Map(key_type, value_type) => compare_whole(a, b, map_entries, |x, y| {
                compare_all(x, y, |x, y| {
                    key_type.compare(x.0, y.0).then_with(|| value_type.compare(x.1, y.1))
                })
            }),
            Self::Tuple(types) => compare_fields(a, b, types.iter()),
            Self::User(user) => compare_fields(a, b, user.fields.iter().map(|(_, field_type)| field_type)),
            Self::Vector(element, _) => {
                let read = |bytes| self.vector_elements(bytes);
                compare_whole(a, b, read, |x, y| compare_all(x, y, |x, y| element.compare(x, y)))
            }
        }
    }

    /// Whether Cassandra decodes two values to equal objects, which CONTAINS on a frozen collection tests. This is
    /// stricter than [`CqlType::compare`]: decimals also differ by their scale (1.0, 1.00), and tuples and user-defined
    /// types by their bytes.
    #[must_use]
    pub fn is_same(&self, a: &[u8], b: &[u8]) -> bool {
        let all =
            |ty: &Self, x: &[&[u8]], y: &[&[u8]]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| ty.is_same(x, y));
        match self {
            Self::Native(Native::Decimal) => match (Decimal::decode(a), Decimal::decode(b)) {
                (Some(x), Some(y)) => x.scale == y.scale && x.unscaled == y.unscaled,
                _ => a == b,
            },
            Self::Native(_) => self.compare(a, b) == Ordering::Equal,
            Self::Frozen(inner) => inner.is_same(a, b),
            Self::List(element) | Self::Set(element) => match (list_elements(a), list_elements(b)) {
                (Ok(x), Ok(y)) => all(element, &x, &y),
                _ => a == b,
            },
            Self::Map(key_type, value_type) => match (map_entries(a), map_entries(b)) {
                (Ok(x), Ok(y)) => {
                    let mut pairs = x.iter().zip(&y);
                    x.len() == y.len() && pairs.all(|(x, y)| key_type.is_same(x.0, y.0) && value_type.is_same(x.1, y.1))
                }
                _ => a == b,
            },
            Self::Vector(element, _) => match (self.vector_elements(a), self.vector_elements(b)) {
                (Ok(x), Ok(y)) => all(element, &x, &y),
                _ => a == b,
            },
            Self::Custom(_) | Self::Tuple(_) | Self::User(_) => a == b,
        }
    }

    /// Whether values of different bytes may compare equal, so that keys of this type end in a trailer.
    #[must_use]
    pub fn has_equal_forms(&self) -> bool {
        match self {
            Self::Native(native) => native.row().equal_forms,
            Self::Custom(_) => false,
            Self::Tuple(_) | Self::User(_) => true,
            Self::Frozen(inner) | Self::List(inner) | Self::Set(inner) | Self::Vector(inner, _) => {
                inner.has_equal_forms()
            }
            Self::Map(key_type, value_type) => key_type.has_equal_forms() || value_type.has_equal_forms(),
        }
    }

    /// Appends the value as a part of an ordered key: byte order is [`CqlType::compare`], inverted for descending, and
    /// for texts by UTF-16 unit the order of those. The
    /// encoding is prefix-free, and [`CqlType::decode_key`] returns the same bytes.
    pub fn encode_key(&self, bytes: &[u8], order: impl Into<KeyOrder>, out: &mut Vec<u8>) {
        let start = out.len();
        self.order(bytes, out);
        if self.has_equal_forms() {
            let canonical = self.read(&mut KeyReader::new(out.get(start..).unwrap_or_default(), false));
            if canonical.is_ok_and(|canonical| canonical == bytes) {
                out.push(0);
            } else {
                out.push(1);
                key::escape(bytes, out);
            }
        }
        arrange(out, start, order.into());
    }

    /// The part of [`CqlType::encode_key`] that equal values share: the whole encoding for most types, a prefix of it
    /// for types with [`CqlType::has_equal_forms`].
    pub fn encode_key_order(&self, bytes: &[u8], order: impl Into<KeyOrder>, out: &mut Vec<u8>) {
        let start = out.len();
        self.order(bytes, out);
        arrange(out, start, order.into());
    }

    /// Decodes a value from [`CqlType::encode_key`] and advances `input` past it.
    ///
    /// # Errors
    /// When that function did not write the bytes.
    pub fn decode_key(&self, input: &mut &[u8], order: impl Into<KeyOrder>) -> Result<Bytes, Corrupt> {
        let mut bytes = Vec::new();
        self.decode_key_into(input, order, &mut bytes)?;
        Ok(bytes.into())
    }

    /// As [`CqlType::decode_key`]; appends the value to `out`. After an error some of it may be there.
    ///
    /// # Errors
    /// As [`CqlType::decode_key`].
    pub fn decode_key_into(
        &self,
        input: &mut &[u8],
        order: impl Into<KeyOrder>,
        out: &mut Vec<u8>,
    ) -> Result<(), Corrupt> {
        let order = order.into();
        let start = out.len();
        let mut reader = KeyReader::new(input, order.descending);
        self.read_order(&mut reader, out)?;
        if self.has_equal_forms() {
            match reader.byte()? {
                0 => {}
                1 => {
                    out.truncate(start);
                    reader.escaped(out)?;
                }
                _ => return Err(Corrupt("trailer")),
            }
        }
        *input = reader.rest();
        lower(out, start, order);
        Ok(())
    }

    /// Decodes a value from [`CqlType::encode_key_order`] and advances `input` past it. Of equal values it is the one
    /// that the encoding has room for.
    ///
    /// # Errors
    /// When that function did not write the bytes.
    pub fn decode_key_order(&self, input: &mut &[u8], order: impl Into<KeyOrder>) -> Result<Bytes, Corrupt> {
        let order = order.into();
        let mut reader = KeyReader::new(input, order.descending);
        let mut bytes = self.read(&mut reader)?;
        *input = reader.rest();
        lower(&mut bytes, 0, order);
        Ok(bytes.into())
    }

    fn order(&self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Native(native) => (native.row().order)(bytes, out),
            Self::Custom(_) => key::escape(bytes, out),
            Self::Frozen(inner) => inner.order(bytes, out),
            _ if bytes.is_empty() => out.push(EMPTY),
            Self::List(element) | Self::Set(element) => match list_elements(bytes) {
                // A negative count decodes as an empty collection, but would not encode to the same bytes.
                Ok(elements) if !elements.is_empty() || bytes == [0; 4] => {
                    out.push(VALUE);
                    for value in elements {
                        out.push(ELEMENT);
                        element.order(value, out);
                    }
                    out.push(END);
                }
                _ => key::order_raw(bytes, out),
            },
            Self::Map(key_type, value_type) => match map_entries(bytes) {
                Ok(entries) if !entries.is_empty() || bytes == [0; 4] => {
                    out.push(VALUE);
                    for (key, value) in entries {
                        out.push(ELEMENT);
                        key_type.order(key, out);
                        value_type.order(value, out);
                    }
                    out.push(END);
                }
                _ => key::order_raw(bytes, out),
            },
            Self::Tuple(types) => order_fields(bytes, types.iter(), out),
            Self::User(user) => order_fields(bytes, user.fields.iter().map(|(_, field_type)| field_type), out),
            Self::Vector(element, _) => match self.vector_elements(bytes) {
                Ok(elements) => {
                    out.push(VALUE);
                    for value in elements {
                        element.order(value, out);
                    }
                }
                Err(_) => key::order_raw(bytes, out),
            },
        }
    }

    /// The value of what [`CqlType::order`] wrote.
    fn read(&self, reader: &mut KeyReader<'_>) -> Result<Vec<u8>, Corrupt> {
        let mut bytes = Vec::new();
        self.read_order(reader, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`CqlType::read`]; appends the value to `out`.
    fn read_order(&self, reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
        match self {
            Self::Native(native) => return (native.row().read_order)(reader, out),
            Self::Custom(_) => return reader.escaped(out),
            Self::Frozen(inner) => return inner.read_order(reader, out),
            _ => {}
        }
        match reader.byte()? {
            EMPTY => return Ok(()),
            VALUE => {}
            key::RAW => return reader.escaped(out),
            _ => return Err(Corrupt("marker")),
        }
        out.extend_from_slice(&self.read_elements(reader)?);
        Ok(())
    }

    /// The value of several, after its marker.
    fn read_elements(&self, reader: &mut KeyReader<'_>) -> Result<Bytes, Corrupt> {
        match self {
            Self::List(element) | Self::Set(element) => {
                let mut elements = Vec::new();
                while more(reader)? {
                    elements.push(element.read(reader)?);
                }
                Ok(compound::encode_list(elements.iter().map(Vec::as_slice)))
            }
            Self::Map(key_type, value_type) => {
                let mut entries = Vec::new();
                while more(reader)? {
                    entries.push((key_type.read(reader)?, value_type.read(reader)?));
                }
                Ok(compound::encode_map(
                    entries.iter().map(|(k, v)| (k.as_slice(), v.as_slice())),
                ))
            }
            Self::Tuple(types) => read_fields(reader, types.iter()),
            Self::User(user) => read_fields(reader, user.fields.iter().map(|(_, field_type)| field_type)),
            Self::Vector(element, count) => {
                let mut elements = Vec::new();
                for _ in 0..*count {
                    elements.push(element.read(reader)?);
                }
                Ok(element.encode_vector(elements.iter().map(Vec::as_slice)))
            }
            Self::Native(_) | Self::Custom(_) | Self::Frozen(_) => Err(Corrupt("marker")),
        }
    }

    /// A bound value as Cassandra stores it. Sets and maps are sorted and without duplicates, also as elements of other
    /// collections; of equal map keys the last entry stays. Unset fields of a user-defined type become null. Everything
    /// else is unchanged, including what is inside a tuple, a field or a vector.
    ///
    /// # Errors
    /// When the bytes are no value of the type.
    pub fn normalize(&self, bytes: &Bytes) -> Result<Bytes, Invalid> {
        self.validate(bytes)?;
        self.normalize_valid(bytes)
    }

    fn normalize_valid(&self, bytes: &Bytes) -> Result<Bytes, Invalid> {
        match self.unfrozen() {
            Self::List(_) => compound::refuse_negative(bytes, "list")?,
            Self::Set(_) => compound::refuse_negative(bytes, "set")?,
            Self::Map(..) => compound::refuse_negative(bytes, "map")?,
            _ => {}
        }
        Ok(match self.unfrozen() {
            Self::List(element) if element.has_normal_form() => {
                let elements = element.normalize_all(list_elements(bytes)?)?;
                compound::encode_list(elements.iter().map(AsRef::as_ref))
            }
            Self::Set(element) if element.has_normal_form() => {
                let elements = element.normalize_all(set_elements(bytes)?)?;
                element.encode_set(elements.iter().map(AsRef::as_ref).collect())
            }
            Self::Map(key_type, value_type) if key_type.has_normal_form() || value_type.has_normal_form() => {
                let (keys, values): (Vec<&[u8]>, Vec<&[u8]>) = map_entries(bytes)?.into_iter().unzip();
                let (keys, values) = (key_type.normalize_all(keys)?, value_type.normalize_all(values)?);
                let entries = keys.iter().map(AsRef::as_ref).zip(values.iter().map(AsRef::as_ref));
                key_type.encode_sorted_map(entries.collect())
            }
            Self::Set(element) => element.encode_set(set_elements(bytes)?),
            Self::Map(key_type, _) => key_type.encode_sorted_map(map_entries(bytes)?),
            Self::User(_) => compound::without_unset(bytes).unwrap_or_else(|| bytes.clone()),
            _ => bytes.clone(),
        })
    }

    /// Whether [`CqlType::normalize`] may change a value of this type.
    fn has_normal_form(&self) -> bool {
        match self.unfrozen() {
            Self::Set(_) | Self::Map(..) | Self::User(_) => true,
            Self::List(element) => element.has_normal_form(),
            _ => false,
        }
    }

    fn normalize_all(&self, values: Vec<&[u8]>) -> Result<Vec<Bytes>, Invalid> {
        let values = values.into_iter();
        values
            .map(|value| self.normalize_valid(&Bytes::copy_from_slice(value)))
            .collect()
    }

    /// Encodes a set whose elements have this type: sorted, without duplicates.
    #[must_use]
    pub fn encode_set(&self, mut elements: Vec<&[u8]>) -> Bytes {
        elements.sort_by(|a, b| self.compare(a, b));
        elements.dedup_by(|later, earlier| self.compare(later, earlier) == Ordering::Equal);
        compound::encode_list(elements)
    }

    /// Encodes a map whose keys have this type: sorted by key; of entries with equal keys the last one stays.
    #[must_use]
    pub fn encode_sorted_map(&self, mut entries: Vec<(&[u8], &[u8])>) -> Bytes {
        // A stable sort keeps equal keys in the order in which they were given.
        entries.sort_by(|a, b| self.compare(a.0, b.0));
        entries.dedup_by(|later, earlier| {
            let same = self.compare(later.0, earlier.0) == Ordering::Equal;
            if same {
                earlier.1 = later.1;
            }
            same
        });
        compound::encode_map(entries)
    }
}

/// Puts what was written from `start` on into this order.
fn arrange(out: &mut [u8], start: usize, order: KeyOrder) {
    for byte in out.iter_mut().skip(start).filter(|_| order != KeyOrder::default()) {
        let arranged = if order.by_utf16 { utf16::raised(*byte) } else { *byte };
        *byte = if order.descending { !arranged } else { arranged };
    }
}

/// Makes the bytes from `start` on, which lay in this order, those of the text; the direction is undone already.
fn lower(bytes: &mut [u8], start: usize, order: KeyOrder) {
    if order.by_utf16 {
        for byte in bytes.iter_mut().skip(start) {
            *byte = utf16::lowered(*byte);
        }
    }
}

/// Whether another element follows in a key.
fn more(reader: &mut KeyReader<'_>) -> Result<bool, Corrupt> {
    match reader.byte()? {
        END => Ok(false),
        ELEMENT => Ok(true),
        _ => Err(Corrupt("collection")),
    }
}

/// Empty bytes sort first, then valid values, then invalid bytes.
fn compare_whole<'a, T>(
    a: &'a [u8],
    b: &'a [u8],
    read: impl Fn(&'a [u8]) -> Result<T, Invalid>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    match (read(a), read(b)) {
        (Ok(x), Ok(y)) => order(&x, &y),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

fn compare_all<T>(a: &[T], b: &[T], order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(x, y)| order(x, y))
        .find(|found| *found != Ordering::Equal)
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Field by field, null first; missing fields are null.
fn compare_fields<'t>(a: &[u8], b: &[u8], types: impl ExactSizeIterator<Item = &'t CqlType>) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    let count = types.len();
    let (x, y) = (tuple_fields(a, count), tuple_fields(b, count));
    types
        .zip(x.into_iter().zip(y))
        .map(|(field_type, (x, y))| match (x, y) {
            (Some(x), Some(y)) => field_type.compare(x, y),
            (x, y) => x.is_some().cmp(&y.is_some()),
        })
        .find(|found| *found != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// The fields up to the last that is not null.
fn order_fields<'t>(bytes: &[u8], types: impl ExactSizeIterator<Item = &'t CqlType>, out: &mut Vec<u8>) {
    if bytes.is_empty() {
        out.push(EMPTY);
        return;
    }
    out.push(VALUE);
    let mut fields = tuple_fields(bytes, types.len());
    while matches!(fields.last(), Some(None)) {
        fields.pop();
    }
    for (field_type, field) in types.zip(fields) {
        match field {
            None => out.push(NULL),
            Some(value) => {
                out.push(FIELD);
                field_type.order(value, out);
            }
        }
    }
    out.push(END);
}

/// All fields, those that the key left out as nulls.
fn read_fields<'t>(
    reader: &mut KeyReader<'_>,
    types: impl ExactSizeIterator<Item = &'t CqlType>,
) -> Result<Bytes, Corrupt> {
    let mut fields: Vec<Option<Vec<u8>>> = Vec::with_capacity(types.len());
    let mut ended = false;
    for field_type in types {
        let mark = if ended { END } else { reader.byte()? };
        fields.push(match mark {
            END => {
                ended = true;
                None
            }
            NULL => None,
            FIELD => Some(field_type.read(reader)?),
            _ => return Err(Corrupt("tuple")),
        });
    }
    if !ended && reader.byte()? != END {
        return Err(Corrupt("tuple"));
    }
    Ok(compound::encode_tuple(fields.iter().map(Option::as_deref)))
}
