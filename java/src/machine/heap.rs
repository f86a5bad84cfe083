//! Objects: their classes, elements, equality, hashes and order; tables.

use std::cmp::Ordering;
use std::collections::HashMap;

use num_bigint::{BigInt, Sign};

use super::argument::value_of;
use super::decimal::compare_decimals;
use super::{Machine, Run, buffer};
use crate::class::Class;
use crate::datum::Type;
use crate::days::civil;
use crate::limits::VALUE_BYTES;
use crate::value::{Decimal, Handle, Object, Order, Plain, Prim, Shown, Table, Value};

/// Buckets of a new `java.util.HashMap`.
const BUCKETS: u32 = 16;
/// Maximum initial buckets of a table.
const BUCKETS_MAX: u32 = 1 << 30;

impl Table {
    pub(crate) fn new(class: Class) -> Self {
        Self::sized(class, BUCKETS)
    }

    /// With initial room for that many entries, as in constructors with a capacity.
    pub(crate) fn sized(class: Class, buckets: u32) -> Self {
        let order = match class {
            Class::TreeMap | Class::TreeSet => Order::Sorted,
            Class::LinkedHashMap | Class::LinkedHashSet => Order::Linked,
            _ => Order::Hash {
                buckets: buckets.clamp(1, BUCKETS_MAX).next_power_of_two(),
            },
        };
        Self {
            class,
            order,
            slots: Vec::new(),
            index: HashMap::new(),
            live: 0,
            changes: 0,
        }
    }

    /// The entries in iteration order.
    pub(crate) fn entries(&self) -> Vec<(Value, Value)> {
        let live = self.slots.iter().flatten();
        match self.order {
            Order::Hash { buckets } => {
                let mut entries: Vec<&(i32, Value, Value)> = live.collect();
                let bucket =
                    |hash: i32| (hash ^ (hash.cast_unsigned() >> 16).cast_signed()).cast_unsigned() & (buckets - 1);
                entries.sort_by_key(|(hash, ..)| bucket(*hash));
                entries
                    .into_iter()
                    .map(|(_, key, value)| (key.clone(), value.clone()))
                    .collect()
            }
            Order::Linked | Order::Sorted => live.map(|(_, key, value)| (key.clone(), value.clone())).collect(),
        }
    }

    fn grow(&mut self) {
        if let Order::Hash { buckets } = &mut self.order
            && self.live > (*buckets as usize) * 3 / 4
            && *buckets < BUCKETS_MAX
        {
            *buckets *= 2;
        }
    }
}

impl Machine<'_> {
    /// The class of a value other than null.
    pub(crate) fn class_of(&self, value: &Value) -> Run<Class> {
        Ok(match value {
            Value::Null => Class::Object,
            Value::Prim(value) | Value::Boxed(value, _) => value.kind().class(),
            Value::Text(_) => Class::String,
            Value::Context => Class::UdfContext,
            Value::Plain(plain) => match **plain {
                Plain::Uuid(_) => Class::Uuid,
                Plain::Date(_) => Class::Date,
                Plain::LocalDate(_) => Class::LocalDate,
                Plain::Inet(_) => Class::InetAddress,
                Plain::Duration { .. } => Class::Duration,
                Plain::Day(_) => Class::Day,
                Plain::Instant { .. } => Class::Instant,
                Plain::Constant(class, _) => class,
                Plain::Zone(_) => Class::TimeZone,
                Plain::Coder(coder) if coder.decodes => Class::Decoder,
                Plain::Coder(_) => Class::Encoder,
                Plain::Big(_) => Class::BigInteger,
                Plain::Decimal(_) => Class::BigDecimal,
                Plain::Rounding(_) => Class::RoundingMode,
                Plain::Class(_) => Class::ClassOf,
            },
            Value::Ref(handle) => match self.object(*handle)? {
                Object::List { class, .. } | Object::Exception { class, .. } => *class,
                Object::Table(table) => table.class,
                Object::View {
                    shown: Shown::Values, ..
                } => Class::Collection,
                Object::View { .. } => Class::Set,
                Object::Entry(..) => Class::Entry,
                Object::Builder(_) => Class::StringBuilder,
                Object::Iterator { .. } => Class::Iterator,
                Object::Tuple { ty: Type::User(_), .. } => Class::UdtValue,
                Object::Tuple { .. } => Class::TupleValue,
                Object::Buffer(_) => Class::ByteBuffer,
                Object::Random(_) => Class::Random,
                Object::Optional(_) => Class::Optional,
                Object::Tokenizer { .. } => Class::StringTokenizer,
                Object::Calendar(_) => Class::GregorianCalendar,
                Object::DateFormat { .. } => Class::SimpleDateFormat,
                Object::Pattern(_) => Class::Pattern,
                Object::Matcher(_) => Class::Matcher,
                Object::Array { .. } | Object::Bytes(_) | Object::Bare => Class::Object,
            },
        })
    }

    /// How many elements a collection, map or array has.
    pub(crate) fn size(&self, handle: Handle) -> Run<usize> {
        match self.object(handle)? {
            Object::List { items, .. } | Object::Array { items, .. } => Ok(items.len()),
            Object::Table(table) => Ok(table.live),
            Object::Bytes(bytes) => Ok(bytes.len()),
            Object::View { of, .. } => self.size(*of),
            _ => Self::fault("a collection was expected"),
        }
    }

    /// Counts a change that iterators must detect.
    pub(crate) fn changes(&self, handle: Handle) -> Run<u32> {
        match self.object(handle)? {
            Object::List { changes, .. } => Ok(*changes),
            Object::Table(table) => Ok(table.changes),
            Object::View { of, .. } => self.changes(*of),
            _ => Ok(0),
        }
    }

    /// The elements of a collection or array, in its order.
    pub(crate) fn elements(&mut self, handle: Handle) -> Run<Vec<Value>> {
        let size = self.size(handle)?;
        self.step(size)?;
        self.allocate(size as u64 * VALUE_BYTES)?;
        match self.object(handle)? {
            Object::List { items, .. } | Object::Array { items, .. } => Ok(items.clone()),
            Object::Table(table) => Ok(table.entries().into_iter().map(|(key, _)| key).collect()),
            Object::View { of, shown } => {
                let (of, shown) = (*of, *shown);
                let entries = self.table(of)?.entries();
                match shown {
                    Shown::Keys => Ok(entries.into_iter().map(|(key, _)| key).collect()),
                    Shown::Values => Ok(entries.into_iter().map(|(_, value)| value).collect()),
                    Shown::Entries => {
                        let make = |(key, value)| self.make(Object::Entry(key, value));
                        entries.into_iter().map(make).collect()
                    }
                }
            }
            _ => Self::fault("a collection was expected"),
        }
    }

    /// `a.equals(b)`, of which both may be null.
    pub(crate) fn equal(&mut self, a: &Value, b: &Value) -> Run<bool> {
        self.step(1)?;
        match (a, b) {
            (Value::Boxed(a, _) | Value::Prim(a), Value::Boxed(b, _) | Value::Prim(b)) => Ok(a.equals(*b)),
            (Value::Text(a), Value::Text(b)) => {
                self.step(a.len().min(b.len()) / 4)?;
                Ok(a == b)
            }
            (Value::Plain(a), Value::Plain(b)) => Ok(a == b),
            (Value::Ref(a), Value::Ref(b)) if a == b => Ok(true),
            (Value::Ref(x), Value::Ref(y)) => {
                let (x, y) = (*x, *y);
                self.deeper(|machine| machine.equal_objects(x, y))
            }
            (a, b) => Ok(super::same(a, b)),
        }
    }

    fn equal_objects(&mut self, x: Handle, y: Handle) -> Run<bool> {
        let (a, b) = (self.class_of(&Value::Ref(x))?, self.class_of(&Value::Ref(y))?);
        let both = |class: Class| a.is(class) && b.is(class);
        if both(Class::Map) {
            if self.size(x)? != self.size(y)? {
                return Ok(false);
            }
            for (key, value) in self.table(x)?.entries() {
                match self.get(y, &key)? {
                    Some(other) if self.equal(&value, &other)? => {}
                    _ => return Ok(false),
                }
            }
            return Ok(true);
        }
        if both(Class::Set) {
            if self.size(x)? != self.size(y)? {
                return Ok(false);
            }
            for element in self.elements(x)? {
                if !self.contains(y, &element)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if both(Class::List) {
            let (x, y) = (self.elements(x)?, self.elements(y)?);
            return self.equal_all(&x, &y);
        }
        if let (Object::Optional(v), Object::Optional(w)) = (self.object(x)?, self.object(y)?) {
            let (v, w) = (v.clone(), w.clone());
            return self.equal(&v, &w);
        }
        if self.are_buffers(x, y)? {
            return Ok(buffer::remaining(self, x)? == buffer::remaining(self, y)?);
        }
        if let (Object::Entry(k, v), Object::Entry(l, w)) = (self.object(x)?, self.object(y)?) {
            let (left, right) = ([k.clone(), v.clone()], [l.clone(), w.clone()]);
            return self.equal_all(&left, &right);
        }
        if let (
            Object::Tuple {
                ty,
                fields,
                is_argument,
            },
            Object::Tuple {
                ty: theirs,
                fields: others,
                is_argument: is_theirs,
            },
        ) = (self.object(x)?, self.object(y)?)
        {
            let (count, same) = (
                fields.len(),
                ty == theirs && is_argument == is_theirs && fields == others,
            );
            self.step(count)?;
            return Ok(same);
        }
        Ok(false)
    }

    fn equal_all(&mut self, x: &[Value], y: &[Value]) -> Run<bool> {
        if x.len() != y.len() {
            return Ok(false);
        }
        for (a, b) in x.iter().zip(y) {
            if !self.equal(a, b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `hashCode()`; of null 0.
    pub(crate) fn hash(&mut self, value: &Value) -> Run<i32> {
        self.step(1)?;
        Ok(match value {
            Value::Null | Value::Context => 0,
            Value::Prim(value) | Value::Boxed(value, _) => prim_hash(*value),
            Value::Text(text) => {
                self.step(text.len() / 4)?;
                text.iter()
                    .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)))
            }
            Value::Plain(plain) => plain_hash(plain),
            Value::Ref(handle) => {
                let handle = *handle;
                return self.deeper(|machine| machine.object_hash(handle));
            }
        })
    }

    fn object_hash(&mut self, handle: Handle) -> Run<i32> {
        let class = self.class_of(&Value::Ref(handle))?;
        if class.is(Class::Map) {
            let mut sum = 0_i32;
            for (key, value) in self.table(handle)?.entries() {
                sum = sum.wrapping_add(self.hash(&key)? ^ self.hash(&value)?);
            }
            return Ok(sum);
        }
        if class.is(Class::Set) || class.is(Class::List) {
            let is_list = class.is(Class::List);
            let mut hash = i32::from(is_list);
            for element in self.elements(handle)? {
                let factor = if is_list { 31 } else { 1 };
                hash = hash.wrapping_mul(factor).wrapping_add(self.hash(&element)?);
            }
            return Ok(hash);
        }
        if let Object::Entry(key, value) = self.object(handle)? {
            let (key, value) = (key.clone(), value.clone());
            return Ok(self.hash(&key)? ^ self.hash(&value)?);
        }
        if let Object::Tuple { ty, fields, .. } = self.object(handle)? {
            let types = match ty {
                Type::Tuple(of) => of.types.clone(),
                Type::User(user) => user.fields.types.clone(),
                _ => Vec::new(),
            };
            let mut hash = 0_i32;
            for (field, ty) in fields.clone().iter().zip(&types) {
                let value = value_of(self, field.as_ref(), ty)?;
                hash = hash.wrapping_mul(31).wrapping_add(self.hash(&value)?);
            }
            return Ok(hash);
        }
        if let Object::Optional(value) = self.object(handle)? {
            let value = value.clone();
            return self.hash(&value);
        }
        if let Object::Buffer(_) = self.object(handle)? {
            let bytes = buffer::remaining(self, handle)?;
            let next = |hash: i32, byte: &u8| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()));
            return Ok(bytes.iter().rev().fold(1_i32, next));
        }
        // Java's hash is random; this one is the same in every run.
        Ok(handle.cast_signed())
    }

    /// `a.compareTo(b)` of comparable values.
    pub(crate) fn compare(&mut self, a: &Value, b: &Value) -> Run<Ordering> {
        self.step(1)?;
        Ok(match (a, b) {
            (Value::Null, _) | (_, Value::Null) => return self.throw_with(Class::NullPointer, None),
            (Value::Boxed(a, _) | Value::Prim(a), Value::Boxed(b, _) | Value::Prim(b)) if a.kind() == b.kind() => {
                prim_order(*a, *b)
            }
            (Value::Text(a), Value::Text(b)) => {
                self.step(a.len().min(b.len()) / 4)?;
                a.cmp(b)
            }
            (Value::Plain(x), Value::Plain(y)) => match (&**x, &**y) {
                (Plain::Big(a), Plain::Big(b)) => a.cmp(b),
                (Plain::Decimal(a), Plain::Decimal(b)) => compare_decimals(self, a, b)?,
                (Plain::Date(a), Plain::Date(b)) => a.cmp(b),
                (Plain::Uuid(a), Plain::Uuid(b)) => uuid_order(*a, *b),
                (Plain::Day(a), Plain::Day(b)) => a.cmp(b),
                (Plain::Instant { .. }, Plain::Instant { .. }) => instant_order(x, y),
                (Plain::Constant(_, a), Plain::Constant(_, b)) => a.cmp(b),
                _ => {
                    return {
                        let (is, wanted) = (self.class_of(b)?, self.class_of(a)?);
                        self.no_order(is, wanted)
                    };
                }
            },
            (Value::Ref(x), Value::Ref(y)) if self.are_buffers(*x, *y)? => {
                let signed = |bytes: Vec<u8>| bytes.into_iter().map(u8::cast_signed).collect::<Vec<i8>>();
                let (x, y) = (buffer::remaining(self, *x)?, buffer::remaining(self, *y)?);
                signed(x).cmp(&signed(y))
            }
            (a, b) => {
                let (a, b) = (self.class_of(a)?, self.class_of(b)?);
                return if a.is(Class::Comparable) {
                    self.no_order(b, a)
                } else {
                    self.no_order(a, Class::Comparable)
                };
            }
        })
    }

    fn are_buffers(&self, x: Handle, y: Handle) -> Run<bool> {
        Ok(matches!(
            (self.object(x)?, self.object(y)?),
            (Object::Buffer(_), Object::Buffer(_))
        ))
    }

    fn no_order<T>(&mut self, is: Class, wanted: Class) -> Run<T> {
        let (is, wanted) = (is.full_name(), wanted.full_name());
        let both = "are in module java.base of loader 'bootstrap'";
        let message = format!("class {is} cannot be cast to class {wanted} ({is} and {wanted} {both})");
        self.throw(Class::ClassCast, message)
    }

    /// Sorts by natural order, stably.
    pub(crate) fn sorted(&mut self, mut items: Vec<Value>, descending: bool) -> Run<Vec<Value>> {
        let mut failed = None;
        items.sort_by(|a, b| match self.compare(a, b) {
            Ok(order) if descending => order.reverse(),
            Ok(order) => order,
            Err(stop) => {
                failed.get_or_insert(stop);
                Ordering::Equal
            }
        });
        match failed {
            Some(stop) => Err(stop),
            None => Ok(items),
        }
    }

    /// The key's position in a table's slots; `Err`: its insertion position in a sorted table.
    fn find(&mut self, handle: Handle, hash: i32, key: &Value) -> Run<Result<usize, usize>> {
        if self.table(handle)?.order == Order::Sorted {
            let (mut low, mut high) = (0, self.table(handle)?.slots.len());
            if low == high {
                // The first key is compared with itself, so that one without an order is rejected.
                self.compare(key, key)?;
            }
            while low < high {
                let middle = low.midpoint(high);
                let Some(Some((_, other, _))) = self.table(handle)?.slots.get(middle).cloned() else {
                    return Self::fault("a sorted table has a gap");
                };
                match self.compare(key, &other)? {
                    Ordering::Equal => return Ok(Ok(middle)),
                    Ordering::Less => high = middle,
                    Ordering::Greater => low = middle + 1,
                }
            }
            return Ok(Err(low));
        }
        let places = self.table(handle)?.index.get(&hash).cloned().unwrap_or_default();
        for place in places {
            let place = place as usize;
            if let Some(Some((_, other, _))) = self.table(handle)?.slots.get(place).cloned()
                && self.equal(key, &other)?
            {
                return Ok(Ok(place));
            }
        }
        Ok(Err(self.table(handle)?.slots.len()))
    }

    fn table_hash(&mut self, handle: Handle, key: &Value) -> Run<i32> {
        if self.table(handle)?.order == Order::Sorted {
            Ok(0)
        } else {
            self.hash(key)
        }
    }

    fn table_mut(&mut self, handle: Handle) -> Run<&mut Table> {
        match self.object_mut(handle)? {
            Object::Table(table) => Ok(table),
            _ => Self::fault("a table was expected"),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&mut self, handle: Handle, key: &Value) -> Run<Option<Value>> {
        let hash = self.table_hash(handle, key)?;
        let found = self.find(handle, hash, key)?;
        let slots = &self.table(handle)?.slots;
        Ok(found
            .ok()
            .and_then(|at| slots.get(at)?.as_ref().map(|(_, _, value)| value.clone())))
    }

    /// Puts a value under a key; returns the previous one.
    pub(crate) fn put(&mut self, handle: Handle, key: Value, value: Value) -> Run<Option<Value>> {
        let hash = self.table_hash(handle, &key)?;
        let found = self.find(handle, hash, &key)?;
        if found.is_err() {
            self.allocate(3 * VALUE_BYTES)?;
        }
        let table = self.table_mut(handle)?;
        match found {
            Ok(at) => match table.slots.get_mut(at) {
                Some(Some((_, _, old))) => Ok(Some(std::mem::replace(old, value))),
                _ => Self::fault("a table lost an entry"),
            },
            Err(at) => {
                let moved = table.slots.len() - at.min(table.slots.len());
                table.slots.insert(at.min(table.slots.len()), Some((hash, key, value)));
                if table.order != Order::Sorted {
                    table
                        .index
                        .entry(hash)
                        .or_default()
                        .push(u32::try_from(at).unwrap_or(u32::MAX));
                }
                table.live += 1;
                table.changes = table.changes.wrapping_add(1);
                table.grow();
                self.step(moved / 8)?;
                Ok(None)
            }
        }
    }

    /// Removes a key; returns its value.
    pub(crate) fn take(&mut self, handle: Handle, key: &Value) -> Run<Option<Value>> {
        let hash = self.table_hash(handle, key)?;
        let Ok(at) = self.find(handle, hash, key)? else {
            return Ok(None);
        };
        let table = self.table_mut(handle)?;
        table.live -= 1;
        table.changes = table.changes.wrapping_add(1);
        if table.order == Order::Sorted {
            let moved = table.slots.len() - at;
            let gone = table.slots.remove(at);
            self.step(moved / 8)?;
            return Ok(gone.map(|(_, _, value)| value));
        }
        if let Some(places) = table.index.get_mut(&hash) {
            places.retain(|place| *place as usize != at);
        }
        let gone = table.slots.get_mut(at).and_then(Option::take);
        // Many gaps are compacted, so that a table which is filled and emptied does not grow.
        if table.slots.len() > 32 && table.slots.len() > 2 * table.live {
            let slots = std::mem::take(&mut table.slots);
            table.index.clear();
            for (place, slot) in slots.into_iter().flatten().enumerate() {
                table
                    .index
                    .entry(slot.0)
                    .or_default()
                    .push(u32::try_from(place).unwrap_or(u32::MAX));
                table.slots.push(Some(slot));
            }
        }
        Ok(gone.map(|(_, _, value)| value))
    }

    pub(crate) fn clear_table(&mut self, handle: Handle) -> Run<()> {
        let table = self.table_mut(handle)?;
        table.slots.clear();
        table.index.clear();
        table.live = 0;
        table.changes = table.changes.wrapping_add(1);
        Ok(())
    }

    /// Whether a collection contains an element.
    pub(crate) fn contains(&mut self, handle: Handle, element: &Value) -> Run<bool> {
        match self.object(handle)? {
            Object::Table(_) => Ok(self.get(handle, element)?.is_some()),
            Object::View { of, shown: Shown::Keys } => {
                let of = *of;
                Ok(self.get(of, element)?.is_some())
            }
            _ => {
                for other in self.elements(handle)? {
                    if self.equal(element, &other)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

fn fold(value: i64) -> i32 {
    let (high, low) = (value.cast_unsigned() >> 32, value.cast_unsigned() & u64::from(u32::MAX));
    u32::try_from(high ^ low).unwrap_or(0).cast_signed()
}

fn prim_hash(value: Prim) -> i32 {
    match value {
        Prim::Boolean(value) => {
            if value {
                1231
            } else {
                1237
            }
        }
        Prim::Byte(value) => value.into(),
        Prim::Short(value) => value.into(),
        Prim::Char(value) => value.into(),
        Prim::Int(value) => value,
        Prim::Long(value) => fold(value),
        Prim::Float(value) if value.is_nan() => 0x7fc0_0000,
        Prim::Float(value) => value.to_bits().cast_signed(),
        Prim::Double(value) if value.is_nan() => fold(0x7ff8_0000_0000_0000),
        Prim::Double(value) => fold(value.to_bits().cast_signed()),
    }
}

fn prim_order(a: Prim, b: Prim) -> Ordering {
    // Java's order of floating point numbers: -0.0 before 0.0, NaN last.
    let doubles = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a, b) => a.cmp(&b),
    };
    match (a, b) {
        (Prim::Boolean(a), Prim::Boolean(b)) => a.cmp(&b),
        (Prim::Byte(a), Prim::Byte(b)) => a.cmp(&b),
        (Prim::Short(a), Prim::Short(b)) => a.cmp(&b),
        (Prim::Char(a), Prim::Char(b)) => a.cmp(&b),
        (Prim::Int(a), Prim::Int(b)) => a.cmp(&b),
        (Prim::Long(a), Prim::Long(b)) => a.cmp(&b),
        (Prim::Float(a), Prim::Float(b)) => doubles(a.into(), b.into()),
        (Prim::Double(a), Prim::Double(b)) => doubles(a, b),
        _ => Ordering::Equal,
    }
}

fn instant_order(x: &Plain, y: &Plain) -> Ordering {
    let parts = |of: &Plain| match of {
        Plain::Instant { seconds, nanos } => (*seconds, *nanos),
        _ => (0, 0),
    };
    parts(x).cmp(&parts(y))
}

/// Java compares the halves of a UUID as signed numbers.
fn uuid_order(a: u128, b: u128) -> Ordering {
    let halves = |value: u128| {
        let half = |value: u128| u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0).cast_signed();
        (half(value >> 64), half(value))
    };
    halves(a).cmp(&halves(b))
}

fn plain_hash(plain: &Plain) -> i32 {
    match plain {
        Plain::Uuid(value) => {
            let halves = (value >> 64) ^ (value & u128::from(u64::MAX));
            fold(u64::try_from(halves & u128::from(u64::MAX)).unwrap_or(0).cast_signed())
        }
        Plain::Date(millis) => fold(*millis),
        Plain::LocalDate(days) => *days,
        Plain::Big(value) => big_hash(value),
        Plain::Decimal(value) => decimal_hash(value),
        Plain::Day(days) => day_hash(*days),
        Plain::Instant { seconds, nanos } => fold(*seconds).wrapping_add((*nanos).cast_signed().wrapping_mul(51)),
        // Java's hash of these is random, or no text shows it.
        Plain::Inet(_)
        | Plain::Duration { .. }
        | Plain::Rounding(_)
        | Plain::Class(_)
        | Plain::Constant(..)
        | Plain::Zone(_)
        | Plain::Coder(_) => 0,
    }
}

pub(crate) fn big_hash(value: &BigInt) -> i32 {
    let (sign, digits) = value.to_u32_digits();
    let hash = digits.iter().rev().fold(0_i32, |hash, digit| {
        hash.wrapping_mul(31).wrapping_add(digit.cast_signed())
    });
    if sign == Sign::Minus { hash.wrapping_neg() } else { hash }
}

fn decimal_hash(value: &Decimal) -> i32 {
    let hash = match i64::try_from(&value.unscaled) {
        Ok(small) if small != i64::MIN => {
            let magnitude = small.unsigned_abs();
            let low = u32::try_from(magnitude & u64::from(u32::MAX)).unwrap_or(0);
            let high = u32::try_from(magnitude >> 32).unwrap_or(0);
            let hash = high.wrapping_mul(31).wrapping_add(low).cast_signed();
            if small < 0 { hash.wrapping_neg() } else { hash }
        }
        _ => big_hash(&value.unscaled),
    };
    hash.wrapping_mul(31).wrapping_add(value.scale)
}

fn day_hash(days: i64) -> i32 {
    let (year, month, day) = civil(days);
    let hash = (year & !0x7ff) ^ ((year << 11) + (month << 6) + day);
    let low = u32::try_from(hash & i64::from(u32::MAX)).unwrap_or(0);
    low.cast_signed()
}
