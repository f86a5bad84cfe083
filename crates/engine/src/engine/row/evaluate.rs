//! Expressions and filters over one row.

use crate::engine::refusal::Refusal;
use std::cmp::Ordering;

use bytes::Bytes;

use crate::engine::{Error, value};
use helenus_schema::command::{Comparison, Expression, Filter, FilterTarget, Like, Part, Predicate, Value};
use helenus_schema::schema::Table;
use helenus_schema::schema::analysis::Analysis;
use helenus_types::functions::Context;
use helenus_types::token::Token;
use helenus_types::types::CqlType;
use helenus_types::types::{encode_list, encode_map, encode_tuple, list_elements, map_entries, tuple_fields};

use super::buffer::RowBuffer;
use super::layout::Shape;

/// The data that an expression can refer to.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The table.
    pub(crate) table: &'a Table,
    /// The row, or the first one of a group.
    pub(crate) row: &'a RowBuffer,
    /// Results of the aggregates; empty while rows are gathered.
    pub(crate) aggregates: &'a [Option<Bytes>],
    /// The moment against which expiry is checked.
    pub(crate) now_seconds: i64,
    /// The data of the request that functions can read.
    pub(crate) context: &'a Context,
}

fn column_type(table: &Table, place: usize) -> Result<&CqlType, Error> {
    let column = table.columns.get(place);
    column.map(|column| &column.ty).ok_or_else(|| {
        Error::Fault(format!(
            "a plan names column {place} of {}, which is not there",
            table.name
        ))
    })
}

fn unfrozen(ty: &CqlType) -> &CqlType {
    match ty {
        CqlType::Frozen(inner) => unfrozen(inner),
        _ => ty,
    }
}

/// A slice without elements is null, unless it is of a frozen collection.
fn slice_value(ty: &CqlType, is_empty: bool, encode: impl FnOnce() -> Bytes) -> Option<Bytes> {
    (!is_empty || matches!(ty, CqlType::Frozen(_))).then(encode)
}

fn damaged(error: &helenus_types::types::Invalid) -> Error {
    Refusal::Value(error.clone()).into()
}

impl Scope<'_> {
    /// The value of an expression; `None` is null.
    ///
    /// # Errors
    /// When a function refuses its arguments.
    pub(crate) fn evaluate(&self, expression: &Expression) -> Result<Option<Bytes>, Error> {
        match expression {
            Expression::Column(place) => Ok(self.row.get(*place).map(Bytes::copy_from_slice)),
            Expression::Constant(value) => Ok(value.clone()),
            Expression::Marker(index) => Err(Error::Fault(format!("marker {index} was not bound"))),
            Expression::WriteTime { column, max, part } => self.write_time(*column, *max, part.as_deref()),
            Expression::Ttl { column, part } => self.ttl(*column, part.as_deref()),
            Expression::Token(components) => self.token(components),
            Expression::Function { function, arguments } => {
                let arguments = self.evaluate_all(arguments)?;
                function.call(&arguments, self.context).map_err(Error::from)
            }
            Expression::Aggregate(place) => Ok(self.aggregates.get(*place).cloned().flatten()),
            Expression::Part { of, of_type, part } => match self.evaluate(of)? {
                Some(value) => self.part(of_type, &value, part),
                None => Ok(None),
            },
            Expression::Construct { ty, elements } => self.construct(ty, elements).map(Some),
        }
    }

    /// The values of several expressions.
    pub(crate) fn evaluate_all(&self, expressions: &[Expression]) -> Result<Vec<Option<Bytes>>, Error> {
        expressions.iter().map(|expression| self.evaluate(expression)).collect()
    }

    fn token(&self, components: &[Expression]) -> Result<Option<Bytes>, Error> {
        let Some(values) = self.evaluate_all(components)?.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let key = value::join_key(values.iter().map(Bytes::as_ref));
        Ok(Some(Bytes::copy_from_slice(&Token::of(&key).value().to_be_bytes())))
    }

    fn construct(&self, ty: &CqlType, elements: &[Expression]) -> Result<Bytes, Error> {
        let values = self.evaluate_all(elements)?;
        let present = || {
            let null = || Error::from(Refusal::NullElement);
            values
                .iter()
                .map(|value| value.as_deref().ok_or_else(null))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match unfrozen(ty) {
            CqlType::Set(element) => element.encode_set(present()?),
            CqlType::Map(key, _) => {
                let present = present()?;
                let (pairs, _) = present.as_chunks::<2>();
                key.encode_sorted_map(pairs.iter().map(|[key, value]| (*key, *value)).collect())
            }
            CqlType::Vector(element, _) => element.encode_vector(present()?),
            CqlType::Tuple(_) | CqlType::User(_) => encode_tuple(values.iter().map(Option::as_deref)),
            // Cassandra, too, puts nulls into a list that it constructs.
            CqlType::List(_) | CqlType::Native(_) | CqlType::Custom(_) | CqlType::Frozen(_) => {
                let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
                let elements = encode_tuple(values.iter().map(Option::as_deref));
                [&count.to_be_bytes()[..], &elements].concat().into()
            }
        })
    }

    fn part(&self, ty: &CqlType, value: &Bytes, part: &Part) -> Result<Option<Bytes>, Error> {
        let owned = |bytes: &[u8]| value.slice_ref(bytes);
        match (unfrozen(ty), part) {
            (CqlType::User(user), Part::Field(number)) => Ok(tuple_fields(value, user.fields.len())
                .get(*number)
                .copied()
                .flatten()
                .map(owned)),
            (CqlType::Tuple(types), Part::Field(number)) => Ok(tuple_fields(value, types.len())
                .get(*number)
                .copied()
                .flatten()
                .map(owned)),
            (CqlType::Map(key_type, _), Part::Element(key)) => {
                let Some(key) = self.evaluate(key)? else {
                    return Ok(None);
                };
                let entries = map_entries(value).map_err(|error| damaged(&error))?;
                let found = entries
                    .into_iter()
                    .find(|(at, _)| key_type.compare(at, &key) == Ordering::Equal);
                Ok(found.map(|(_, value)| owned(value)))
            }
            (CqlType::Set(element_type), Part::Element(key)) => {
                let Some(key) = self.evaluate(key)? else {
                    return Ok(None);
                };
                let elements = list_elements(value).map_err(|error| damaged(&error))?;
                Ok(elements
                    .into_iter()
                    .find(|at| element_type.compare(at, &key) == Ordering::Equal)
                    .map(owned))
            }
            (CqlType::Map(key_type, _), Part::Slice(from, to)) => {
                let inside = self.slice(key_type, from.as_ref(), to.as_ref())?;
                let entries = map_entries(value).map_err(|error| damaged(&error))?;
                let entries: Vec<_> = entries.into_iter().filter(|(key, _)| inside(key)).collect();
                Ok(slice_value(ty, entries.is_empty(), || encode_map(entries)))
            }
            (CqlType::Set(element_type), Part::Slice(from, to)) => {
                let inside = self.slice(element_type, from.as_ref(), to.as_ref())?;
                let elements = list_elements(value).map_err(|error| damaged(&error))?;
                let elements: Vec<_> = elements.into_iter().filter(|element| inside(element)).collect();
                Ok(slice_value(ty, elements.is_empty(), || encode_list(elements)))
            }
            _ => Ok(None),
        }
    }

    fn slice(
        &self,
        ty: &CqlType,
        from: Option<&Expression>,
        to: Option<&Expression>,
    ) -> Result<impl Fn(&[u8]) -> bool, Error> {
        let bound = |end: Option<&Expression>| end.map_or(Ok(None), |end| self.evaluate(end));
        let (from, to) = (bound(from)?, bound(to)?);
        let ty = ty.clone();
        Ok(move |element: &[u8]| {
            from.as_ref()
                .is_none_or(|from| ty.compare(element, from) != Ordering::Less)
                && to
                    .as_ref()
                    .is_none_or(|to| ty.compare(element, to) != Ordering::Greater)
        })
    }

    /// The metadata of the selected cells of a column: one entry for each element, in order. Fields of a user-defined
    /// type that have no cell count as `None`. The second value is whether a single cell was selected.
    fn figures<T: Copy>(
        &self,
        place: usize,
        part: Option<&Part>,
        figure: impl Fn(&super::buffer::CellInfo) -> Option<T>,
    ) -> Result<(Vec<Option<T>>, bool), Error> {
        let ty = column_type(self.table, place)?;
        let cells = || self.row.cells(place);
        let first = || cells().next().and_then(|(cell, _)| figure(&cell));
        Ok(match (Shape::of(ty), part) {
            // A frozen value has one cell, whatever part of it is selected.
            (Shape::Plain, None | Some(Part::Field(_) | Part::Element(_) | Part::Slice(..))) => (vec![first()], true),
            (Shape::User(_), Some(Part::Field(number))) => (
                vec![
                    cells()
                        .find(|(cell, _)| cell.field() == *number)
                        .and_then(|(cell, _)| figure(&cell)),
                ],
                true,
            ),
            (Shape::User(fields), _) => {
                let mut all = vec![None; if cells().next().is_some() { fields } else { 0 }];
                for (cell, _) in cells() {
                    if let Some(slot) = all.get_mut(cell.field()) {
                        *slot = figure(&cell);
                    }
                }
                (all, false)
            }
            (Shape::Set(key) | Shape::Map(key), Some(Part::Element(at))) => {
                let at = self.evaluate(at)?;
                let found = at.and_then(|at| cells().find(|(_, path)| key.compare(path, &at) == Ordering::Equal));
                (vec![found.and_then(|(cell, _)| figure(&cell))], true)
            }
            (Shape::Set(key) | Shape::Map(key), Some(Part::Slice(from, to))) => {
                let inside = self.slice(&key, from.as_ref(), to.as_ref())?;
                (
                    cells()
                        .filter(|(_, path)| inside(path))
                        .map(|(cell, _)| figure(&cell))
                        .collect(),
                    false,
                )
            }
            (Shape::List | Shape::Set(_) | Shape::Map(_), _) => {
                (cells().map(|(cell, _)| figure(&cell)).collect(), false)
            }
        })
    }

    fn write_time(&self, place: usize, max: bool, part: Option<&Part>) -> Result<Option<Bytes>, Error> {
        let (times, single) = self.figures(place, part, |cell| Some(cell.timestamp_micros))?;
        if max || single {
            let greatest = times.into_iter().flatten().max();
            return Ok(greatest.map(|micros| Bytes::copy_from_slice(&micros.to_be_bytes())));
        }
        Ok(number_list(times.iter().map(|time| time.map(i64::to_be_bytes))))
    }

    fn ttl(&self, place: usize, part: Option<&Part>) -> Result<Option<Bytes>, Error> {
        let now = self.now_seconds;
        let left = |cell: &super::buffer::CellInfo| {
            let expiry = cell.expiry?;
            i32::try_from(expiry.at_seconds.saturating_sub(now)).ok()
        };
        let (times, single) = self.figures(place, part, left)?;
        if single {
            let only = times.into_iter().next().flatten();
            return Ok(only.map(|seconds| Bytes::copy_from_slice(&seconds.to_be_bytes())));
        }
        Ok(number_list(times.iter().map(|time| time.map(i32::to_be_bytes))))
    }

    /// Whether the row passes a filter.
    ///
    /// # Errors
    /// When the filter names a column or part that does not exist.
    pub(crate) fn passes(&self, filter: &Filter) -> Result<bool, Error> {
        match filter {
            Filter::Test(test) => self.holds(test),
            Filter::All(all) => {
                for one in all {
                    if !self.passes(one)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Any(any) => {
                for one in any {
                    if self.passes(one)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::Not(one) => Ok(!self.passes(one)?),
        }
    }

    /// Whether a test holds. A test on null does not.
    fn holds(&self, filter: &Predicate) -> Result<bool, Error> {
        if filter.comparison == Comparison::In {
            return match self.target(filter)? {
                None => Ok(false),
                Some(value) => {
                    Ok(operands(filter).any(|operand| filter.ty.compare(&value, operand) == Ordering::Equal))
                }
            };
        }
        let (Some(value), Some(operand)) = (self.target(filter)?, operands(filter).next()) else {
            return Ok(false);
        };
        self.compare(filter, &value, operand)
    }

    /// Whether the row meets a condition of IF: `= null` and `!= null` test whether there is a value.
    ///
    /// # Errors
    /// As [`Scope::passes`].
    pub(crate) fn meets(&self, condition: &Predicate) -> Result<bool, Error> {
        let value = self.target(condition)?;
        let is_equal = |operand: &Value| match (operand, &value) {
            (Value::Bytes(operand), Some(value)) => condition.ty.compare(value, operand) == Ordering::Equal,
            (Value::Bytes(_), None) => false,
            (Value::Null | Value::Unset, value) => value.is_none(),
        };
        match (condition.comparison, condition.operands.as_slice()) {
            (Comparison::In, operands) => Ok(operands.iter().any(is_equal)),
            (Comparison::Eq, [operand, ..]) => Ok(is_equal(operand)),
            (Comparison::Neq, [operand, ..]) => Ok(!is_equal(operand)),
            (_, [Value::Bytes(operand), ..]) => match &value {
                Some(value) => self.compare(condition, value, operand),
                None => Ok(false),
            },
            (_, _) => Ok(false),
        }
    }

    fn compare(&self, filter: &Predicate, value: &Bytes, operand: &Bytes) -> Result<bool, Error> {
        if let FilterTarget::Analysed(place, analysis) = &filter.target {
            return compare_analysed(
                column_type(self.table, *place)?,
                *analysis,
                filter.comparison,
                value,
                operand,
            );
        }
        let column = match &filter.target {
            FilterTarget::Column(place) => self.table.columns.get(*place).filter(|column| column.by_utf16),
            _ => None,
        };
        let order = || match column {
            Some(column) => column.compare(value, operand),
            None => filter.ty.compare(value, operand),
        };
        Ok(match filter.comparison {
            Comparison::Eq | Comparison::In => order() == Ordering::Equal,
            Comparison::Neq => order() != Ordering::Equal,
            Comparison::Lt => order() == Ordering::Less,
            Comparison::Lte => order() != Ordering::Greater,
            Comparison::Gt => order() == Ordering::Greater,
            Comparison::Gte => order() != Ordering::Less,
            Comparison::Contains => contains(self.collection_type(filter)?, value, operand, false)?,
            Comparison::ContainsKey => contains(self.collection_type(filter)?, value, operand, true)?,
            Comparison::Like => like(value, operand),
        })
    }

    /// The type that CONTAINS searches; the filter's own type is the operand's.
    fn collection_type<'a>(&'a self, filter: &'a Predicate) -> Result<&'a CqlType, Error> {
        match &filter.target {
            FilterTarget::Column(place) => column_type(self.table, *place),
            _ => Ok(&filter.ty),
        }
    }

    fn target(&self, filter: &Predicate) -> Result<Option<Bytes>, Error> {
        let column = |place: usize| self.row.get(place).map(Bytes::copy_from_slice);
        match &filter.target {
            FilterTarget::Column(place) | FilterTarget::Analysed(place, _) => Ok(column(*place)),
            FilterTarget::Element(place, key) => {
                let ty = column_type(self.table, *place)?;
                let (Some(value), Value::Bytes(key)) = (column(*place), key) else {
                    return Ok(None);
                };
                if let CqlType::List(_) = unfrozen(ty) {
                    let at = key.first_chunk().map_or(-1, |bytes| i32::from_be_bytes(*bytes));
                    let elements = list_elements(&value).map_err(|error| damaged(&error))?;
                    let element = usize::try_from(at).ok().and_then(|at| elements.get(at).copied());
                    return Ok(element.map(|element| value.slice_ref(element)));
                }
                self.part(ty, &value, &Part::Element(Expression::Constant(Some(key.clone()))))
            }
            FilterTarget::Field(place, number) => {
                let ty = column_type(self.table, *place)?;
                column(*place).map_or(Ok(None), |value| self.part(ty, &value, &Part::Field(*number)))
            }
            FilterTarget::Tuple(places) => {
                let values: Vec<Option<&[u8]>> = places.iter().map(|place| self.row.get(*place)).collect();
                Ok(values.iter().all(Option::is_some).then(|| encode_tuple(values)))
            }
            FilterTarget::Token => {
                let components = (0..self.table.partition_key_count)
                    .map(Expression::Column)
                    .collect::<Vec<_>>();
                self.token(&components)
            }
        }
    }
}

fn operands(filter: &Predicate) -> impl Iterator<Item = &Bytes> {
    filter.operands.iter().filter_map(|operand| match operand {
        Value::Bytes(bytes) => Some(bytes),
        Value::Null | Value::Unset => None,
    })
}

/// Compares texts by the terms of an index. Texts are equal if they have the same terms. LIKE matches if each of the
/// pattern's terms matches one of them.
fn compare_analysed(
    ty: &CqlType,
    analysis: Analysis,
    comparison: Comparison,
    value: &Bytes,
    operand: &Bytes,
) -> Result<bool, Error> {
    let failed = |error: helenus_types::types::Invalid| damaged(&error);
    let same = |part: &[u8]| analysis.terms(part) == analysis.terms(operand);
    Ok(match (comparison, unfrozen(ty)) {
        (Comparison::Like, _) => {
            let Some((kind, text)) = Like::of(operand) else {
                return Ok(false);
            };
            let wanted = analysis.terms(text);
            let is_like = |term: &[u8], wanted: &[u8]| match kind {
                Like::Whole => term == wanted,
                Like::Prefix => term.starts_with(wanted),
                Like::Suffix => term.ends_with(wanted),
                Like::Within => wanted.is_empty() || term.windows(wanted.len()).any(|part| part == wanted),
            };
            let terms = analysis.terms(value);
            !wanted.is_empty()
                && wanted
                    .iter()
                    .all(|wanted| terms.iter().any(|term| is_like(term, wanted)))
        }
        (Comparison::ContainsKey, CqlType::Map(..)) => {
            let entries = map_entries(value).map_err(failed)?;
            entries.into_iter().any(|(key, _)| same(key))
        }
        (Comparison::Contains, CqlType::Map(..)) => {
            let entries = map_entries(value).map_err(failed)?;
            entries.into_iter().any(|(_, value)| same(value))
        }
        (Comparison::Contains, CqlType::List(_) | CqlType::Set(_)) => {
            list_elements(value).map_err(failed)?.into_iter().any(same)
        }
        _ => same(value),
    })
}

/// Whether a collection has the operand among its values (or keys). As in Cassandra, keys and the cells of a collection
/// that is not frozen are compared as their type does. The values of a frozen one are compared byte for byte.
fn contains(ty: &CqlType, collection: &Bytes, operand: &Bytes, among_keys: bool) -> Result<bool, Error> {
    let failed = |error: helenus_types::types::Invalid| damaged(&error);
    let is_strict = !among_keys && matches!(ty, CqlType::Frozen(_));
    let is_it = |ty: &CqlType, part: &[u8]| {
        if is_strict {
            ty.is_same(part, operand)
        } else {
            ty.compare(part, operand) == Ordering::Equal
        }
    };
    Ok(match unfrozen(ty) {
        CqlType::Map(key, value) => map_entries(collection).map_err(failed)?.into_iter().any(|entry| {
            let (ty, part) = if among_keys { (key, entry.0) } else { (value, entry.1) };
            is_it(ty, part)
        }),
        CqlType::List(element) | CqlType::Set(element) => list_elements(collection)
            .map_err(failed)?
            .into_iter()
            .any(|part| is_it(element, part)),
        CqlType::Native(_)
        | CqlType::Custom(_)
        | CqlType::Tuple(_)
        | CqlType::User(_)
        | CqlType::Vector(..)
        | CqlType::Frozen(_) => false,
    })
}

/// LIKE: `%` at either end matches any text.
fn like(value: &[u8], pattern: &[u8]) -> bool {
    let (starts_open, rest) = pattern.strip_prefix(b"%").map_or((false, pattern), |rest| (true, rest));
    let (ends_open, middle) = rest.strip_suffix(b"%").map_or((false, rest), |rest| (true, rest));
    match (starts_open, ends_open) {
        (true, true) => middle.is_empty() || value.windows(middle.len()).any(|window| window == middle),
        (true, false) => value.ends_with(middle),
        (false, true) => value.starts_with(middle),
        (false, false) => value == middle,
    }
}

/// A list of fixed-width numbers, some null; `None` when it is empty, as in Cassandra.
fn number_list<const N: usize>(numbers: impl ExactSizeIterator<Item = Option<[u8; N]>>) -> Option<Bytes> {
    let count = numbers.len();
    if count == 0 {
        return None;
    }
    let mut out = Vec::with_capacity(4 + count * (4 + N));
    out.extend_from_slice(&i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes());
    for number in numbers {
        value::put_bytes(&mut out, number.as_ref().map(<[u8; N]>::as_slice));
    }
    Some(out.into())
}

/// Whether a filter reads the rows of a partition rather than its key and static columns.
pub(crate) fn looks_at_rows(table: &Table, filter: &Predicate) -> bool {
    let of_row = |place: &usize| !super::buffer::is_of_partition(table, *place);
    match &filter.target {
        FilterTarget::Column(place)
        | FilterTarget::Analysed(place, _)
        | FilterTarget::Element(place, _)
        | FilterTarget::Field(place, _) => of_row(place),
        FilterTarget::Tuple(places) => places.iter().any(of_row),
        FilterTarget::Token => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_knows_its_ends() {
        for (pattern, matched) in [
            ("abc", true),
            ("%bc", true),
            ("ab%", true),
            ("%b%", true),
            ("%", true),
            ("b%", false),
        ] {
            assert_eq!(like(b"abc", pattern.as_bytes()), matched, "{pattern}");
        }
    }
}
