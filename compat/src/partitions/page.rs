//! Pages of rows, as read from the answers' bytes.

use super::model::{Model, Place};
use crate::raw::request::{self, Params};
use crate::raw::{Connection, Envelope, opcode};
use crate::{Error, Outcome};

/// A row of `SELECT k, c, v`.
pub(super) type Read = (Place, u32);

/// A page of rows, read from the answer's bytes (native_protocol_v4.spec §4.2.5.2, without column specifications).
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) rows: Vec<Read>,
    pub(super) state: Option<Vec<u8>>,
}

struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(*self.take(4)?.first_chunk()?))
    }

    /// `[bytes]`; null is none at all.
    fn bytes(&mut self) -> Option<&'b [u8]> {
        let len = self.int()?;
        usize::try_from(len).map_or(Some(&[][..]), |len| self.take(len))
    }

    /// A number of any width, as written.
    fn number(&mut self) -> Option<u32> {
        let bytes = self.bytes()?;
        let wide = bytes
            .iter()
            .try_fold(0_u64, |all, byte| Some(all.checked_mul(256)? + u64::from(*byte)))?;
        u32::try_from(wide).ok()
    }
}

impl Page {
    /// # Errors
    /// The answer is no such page, or a refusal.
    pub(super) fn read(answer: &Envelope) -> Outcome<Self> {
        if answer.opcode != opcode::RESULT {
            let value = crate::raw::answer::plain(answer)?;
            crate::raw::connection::succeeded("a page", value)?;
        }
        Self::rows(answer).ok_or(Error::Malformed("a page of rows"))
    }

    fn rows(answer: &Envelope) -> Option<Self> {
        const WARNING: u8 = 0x08;
        let mut cursor = Cursor(&answer.body);
        if answer.flags & WARNING != 0 {
            let count = u16::from_be_bytes(*cursor.take(2)?.first_chunk()?);
            for _ in 0..count {
                let len = u16::from_be_bytes(*cursor.take(2)?.first_chunk()?);
                cursor.take(len.into())?;
            }
        }
        let kind = cursor.int()?;
        let flags = cursor.int()?;
        let columns = cursor.int()?;
        if kind != 2 || flags & 4 == 0 || columns != 3 {
            return None;
        }
        let state = if flags & 2 == 0 {
            None
        } else {
            Some(cursor.bytes()?.to_vec())
        };
        let count = usize::try_from(cursor.int()?).ok()?;
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let place = Place {
                k: cursor.number()?,
                c: cursor.number()?,
            };
            rows.push((place, cursor.number()?));
        }
        Some(Self { rows, state })
    }
}

/// Asks for a page of a range of tokens.
pub(super) fn page(
    connection: &mut Connection,
    (lower, upper): (i64, i64),
    rows: i32,
    state: Option<Vec<u8>>,
) -> Outcome<Page> {
    let params = Params {
        page_size: Some(rows),
        paging_state: state,
        skip_metadata: true,
        ..Params::default()
    };
    let text = format!("SELECT k, c, v FROM parts.t WHERE token(k) >= {lower} AND token(k) <= {upper}");
    Page::read(&connection.ask(opcode::QUERY, &request::query(4, &text, &params))?)
}

/// The places of rows that nobody writes.
pub(super) fn still(rows: &[Read]) -> Vec<Place> {
    let rows = rows.iter().filter(|(place, _)| Model::is_still(place.k));
    rows.map(|(place, _)| *place).collect()
}
