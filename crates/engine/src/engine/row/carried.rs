//! A row as bytes: what the owner of a partition answers, and the row that the machine which asked makes of it.
//!
//! ```text
//! row     values: bytes of the arena · count u16 · (place u16 · start u32 · end u32) for each value that is not null
//!         cells: count u32 · (place u16 · path start u32 · path end u32 · timestamp i64 · expiry) ·  marker
//! bytes   length u32 · bytes           expiry, marker   0, or 1 and its fields
//! ```
//! Both machines have the same definition of the table, so places mean the same columns.

use bytes::{Buf, BufMut};

use super::buffer::{CellInfo, RowBuffer, Slot};
use helenus_storage::storage::{Expiry, Marker};

impl RowBuffer {
    /// Appends the row.
    pub(crate) fn put_to(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.bytes);
        let values = || self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_null());
        out.put_u16(u16::try_from(values().count()).unwrap_or(u16::MAX));
        for (place, slot) in values() {
            out.put_u16(u16::try_from(place).unwrap_or(u16::MAX));
            put_slot(out, *slot);
        }
        out.put_u32(u32::try_from(self.cells.len()).unwrap_or(u32::MAX));
        for cell in &self.cells {
            out.put_u16(u16::try_from(cell.place).unwrap_or(u16::MAX));
            put_slot(out, cell.path);
            out.put_i64(cell.timestamp_micros);
            put_expiry(out, cell.expiry);
        }
        match self.marker {
            None => out.put_u8(0),
            Some(marker) => {
                out.put_u8(1);
                out.put_i64(marker.timestamp);
                put_expiry(out, marker.expiry);
            }
        }
    }

    /// Takes a row from the front of these bytes. `None` means that they are no row.
    pub(crate) fn take_from(&mut self, from: &mut &[u8]) -> Option<()> {
        let bytes = take_bytes(from)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.clear_values();
        for _ in 0..from.try_get_u16().ok()? {
            let place = usize::from(from.try_get_u16().ok()?);
            let slot = take_slot(from)?;
            // Values lie in the arena.
            self.bytes.get(slot.start..slot.end)?;
            *self.slots.get_mut(place)? = slot;
        }
        for _ in 0..from.try_get_u32().ok()? {
            let place = usize::from(from.try_get_u16().ok()?);
            let path = take_slot(from)?;
            let timestamp_micros = from.try_get_i64().ok()?;
            let expiry = take_expiry(from)?;
            self.cells.push(CellInfo {
                place,
                path,
                timestamp_micros,
                expiry,
            });
        }
        self.marker = match from.try_get_u8().ok()? {
            0 => None,
            1 => Some(Marker {
                timestamp: from.try_get_i64().ok()?,
                expiry: take_expiry(from)?,
            }),
            _ => return None,
        };
        Some(())
    }
}

/// Appends bytes with their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}

/// Takes bytes with their length.
pub(crate) fn take_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(from.try_get_u32().ok()?).ok()?;
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn put_slot(out: &mut Vec<u8>, slot: Slot) {
    out.put_u32(u32::try_from(slot.start).unwrap_or(u32::MAX));
    out.put_u32(u32::try_from(slot.end).unwrap_or(u32::MAX));
}

fn take_slot(from: &mut &[u8]) -> Option<Slot> {
    Some(Slot {
        start: usize::try_from(from.try_get_u32().ok()?).ok()?,
        end: usize::try_from(from.try_get_u32().ok()?).ok()?,
    })
}

fn put_expiry(out: &mut Vec<u8>, expiry: Option<Expiry>) {
    match expiry {
        None => out.put_u8(0),
        Some(expiry) => {
            out.put_u8(1);
            out.put_i64(expiry.at_seconds);
            out.put_u32(expiry.ttl_seconds);
        }
    }
}

fn take_expiry(from: &mut &[u8]) -> Option<Option<Expiry>> {
    match from.try_get_u8().ok()? {
        0 => Some(None),
        1 => Some(Some(Expiry {
            at_seconds: from.try_get_i64().ok()?,
            ttl_seconds: from.try_get_u32().ok()?,
        })),
        _ => None,
    }
}
