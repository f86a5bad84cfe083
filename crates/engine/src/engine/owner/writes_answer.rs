//! The answer to a message that writes: the outcome and its charges, or why it failed.
//!
//! ```text
//! answer    version u8 · 0 · decision · timestamp · warnings · charges        version u8 · 1 · failure
//! decision  0 none · 1 applied · 2 refused: member u32 · places · rows        charges  list of (table u32 · partition u64 ·
//! list      count u32 · items        optional   0, or 1 and the value                  optional spread i64 · micros u64) · stage sums
//! ```

use bytes::{Buf, BufMut, Bytes};

use super::told::Told;
use crate::engine::Error;
use crate::engine::part::write::condition::Decision;
use crate::engine::row::carried::{put_bytes, take_bytes};
use crate::engine::write::condition::Written;
use crate::throughput::{Charges, PartitionRef, Stage};

const VERSION: u8 = 1;

/// The charges of one logical partition, or of rows of many.
type Charged = (PartitionRef, Option<i64>, u64);

/// The answer to writes that ended so.
pub(in crate::engine) fn encode(written: &Result<Written, Error>, charges: &mut Charges) -> Bytes {
    let mut out = vec![VERSION];
    match written {
        Ok(written) => {
            out.put_u8(0);
            put_written(&mut out, written);
        }
        Err(error) => {
            out.put_u8(1);
            let told = serde_json::to_vec(&Told::of(error)).unwrap_or_default();
            put_bytes(&mut out, &told);
        }
    }
    let charged: Vec<Charged> = charges
        .partitions()
        .map(|charge| (charge.partition, charge.spread, charge.micros()))
        .collect();
    put_count(&mut out, charged.len());
    for (PartitionRef { table, partition }, spread, micros) in charged {
        out.put_u32(table);
        out.put_u64(partition);
        put_optional(&mut out, spread);
        out.put_u64(micros);
    }
    for sum in charges.stage_sums() {
        out.put_u64(sum);
    }
    out.into()
}

fn put_written(out: &mut Vec<u8>, written: &Written) {
    let Written {
        decision,
        timestamp_micros,
        warnings,
    } = written;
    match decision {
        None => out.put_u8(0),
        Some(Decision::Applied) => out.put_u8(1),
        Some(Decision::Refused { member, places, rows }) => {
            out.put_u8(2);
            put_count(out, *member);
            put_count(out, places.len());
            for place in places {
                put_count(out, *place);
            }
            put_count(out, rows.len());
            for row in rows {
                put_count(out, row.len());
                for value in row {
                    match value {
                        None => out.put_u8(0),
                        Some(bytes) => {
                            out.put_u8(1);
                            put_bytes(out, bytes);
                        }
                    }
                }
            }
        }
    }
    put_optional(out, *timestamp_micros);
    put_count(out, warnings.len());
    for warning in warnings {
        put_bytes(out, warning.as_bytes());
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
}

fn put_optional(out: &mut Vec<u8>, value: Option<i64>) {
    match value {
        None => out.put_u8(0),
        Some(value) => {
            out.put_u8(1);
            out.put_i64(value);
        }
    }
}

/// The outcome of writes by their owner's answer, whose charges are added to those of the statement.
///
/// # Errors
/// The owner has refused or failed them; [`Error::Fault`] if the bytes are no answer.
pub(in crate::engine) fn decode(answer: &Bytes, charges: &mut Charges) -> Result<Written, Error> {
    let mut from = answer.as_ref();
    let read = read(&mut from, charges);
    read.unwrap_or_else(|| Err(Error::Fault("the owner's answer cannot be read".to_owned())))
}

/// `None` means that the bytes are no answer.
fn read(from: &mut &[u8], charges: &mut Charges) -> Option<Result<Written, Error>> {
    if from.try_get_u8().ok()? != VERSION {
        return None;
    }
    let written = match from.try_get_u8().ok()? {
        0 => Ok(take_written(from)?),
        1 => Err(serde_json::from_slice::<Told>(take_bytes(from)?).ok()?.error()),
        _ => return None,
    };
    let charged = take_list(from, |from| {
        let table = from.try_get_u32().ok()?;
        let partition = from.try_get_u64().ok()?;
        let spread = take_optional(from)?;
        Some((PartitionRef { table, partition }, spread, from.try_get_u64().ok()?))
    })?;
    let mut sums = [0; Stage::ALL.len()];
    for sum in &mut sums {
        *sum = from.try_get_u64().ok()?;
    }
    if !from.is_empty() {
        return None;
    }
    charges.absorb(charged, &sums);
    Some(written)
}

fn take_written(from: &mut &[u8]) -> Option<Written> {
    let decision = match from.try_get_u8().ok()? {
        0 => None,
        1 => Some(Decision::Applied),
        2 => Some(Decision::Refused {
            member: take_number(from)?,
            places: take_list(from, take_number)?,
            rows: take_list(from, |from| {
                take_list(from, |from| match from.try_get_u8().ok()? {
                    0 => Some(None),
                    1 => Some(Some(Bytes::copy_from_slice(take_bytes(from)?))),
                    _ => None,
                })
            })?,
        }),
        _ => return None,
    };
    Some(Written {
        decision,
        timestamp_micros: take_optional(from)?,
        warnings: take_list(from, |from| String::from_utf8(take_bytes(from)?.to_vec()).ok())?,
    })
}

fn take_number(from: &mut &[u8]) -> Option<usize> {
    usize::try_from(from.try_get_u32().ok()?).ok()
}

/// Every item takes at least one byte.
fn take_list<T>(from: &mut &[u8], mut take: impl FnMut(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = take_number(from)?;
    if count > from.len() {
        return None;
    }
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(take(from)?);
    }
    Some(list)
}

fn take_optional(from: &mut &[u8]) -> Option<Option<i64>> {
    match from.try_get_u8().ok()? {
        0 => Some(None),
        1 => Some(Some(from.try_get_i64().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::{Coefficients, RowWrite};

    fn charges() -> Charges {
        Charges::new(Coefficients::default(), 1)
    }

    #[test]
    fn outcome_and_charges_come_back() {
        let decisions = [
            None,
            Some(Decision::Applied),
            Some(Decision::Refused {
                member: 3,
                places: vec![0, 2],
                rows: vec![vec![None, Some(Bytes::from_static(b"v"))], Vec::new()],
            }),
        ];
        for decision in decisions {
            let written = Written {
                decision,
                timestamp_micros: Some(5),
                warnings: vec!["careful".to_owned()],
            };
            let mut of_owner = charges();
            for partition in [1, 2] {
                of_owner.enter(PartitionRef { table: 9, partition }, Some((7, &Bytes::new())));
                of_owner.write(RowWrite::Insert, 100, false, 1);
            }
            let answer = encode(&Ok(written.clone()), &mut of_owner);
            let mut ours = charges();
            let read = decode(&answer, &mut ours).unwrap();
            assert_eq!(format!("{read:?}"), format!("{written:?}"));
            assert_eq!(ours.total(), of_owner.total());
            assert_eq!(ours.end_page(0, false), Ok(0), "the sums add up");
            assert_eq!(ours.partitions().count(), 2);
            for end in 0..answer.len() {
                assert!(decode(&answer.slice(..end), &mut charges()).is_err());
            }
        }
    }

    #[test]
    fn a_failure_comes_back_with_what_it_cost() {
        let mut of_owner = charges();
        of_owner.enter(PartitionRef { table: 9, partition: 1 }, None);
        of_owner.look_before_write(10);
        let answer = encode(&Err(Error::TableGone), &mut of_owner);
        let mut ours = charges();
        assert_eq!(decode(&answer, &mut ours).unwrap_err(), Error::TableGone);
        assert_eq!(ours.total(), of_owner.total());
    }
}
