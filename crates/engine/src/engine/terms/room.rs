//! Bounds the memory of an answer while it is built.
//!
//! A connection's read begins with a free allowance, and requests more from its connection's share when it has used
//! that up. If the share has no more, the read ends with [`Error::NoRoom`]. The connection then drops the request,
//! waits, and begins it again with the memory that it was granted ([`Share::hand`]).

use crate::engine::refusal::Refusal;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::Error;
use helenus_base::budget::{Reservation, SMALL_ANSWER_BYTES, Share};

/// The memory that an answer may take.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    /// `None` means that the read belongs to no connection, and has no bound.
    share: Option<&'a Arc<Share>>,
    reservations: Vec<Reservation>,
    /// Bytes that it may use now.
    bytes: usize,
    /// The allowance of a page. A read that finds no memory waits for at least twice this.
    page_bytes: usize,
}

/// The memory that is reserved for the rows of an answer; released on drop.
#[derive(Debug, Default)]
pub struct AnswerMemory {
    /// Empty if the read belongs to no connection, or the answer is small.
    reservations: Vec<Reservation>,
}

/// An encoded answer, with the bytes that are reserved for it as long as it lives.
struct Held {
    content: Vec<u8>,
    _reservations: Vec<Reservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

impl<'a> Room<'a> {
    /// The free allowance of an answer of this connection, plus the memory that its request waited for. `page_bytes`:
    /// the allowance of a page.
    pub(crate) fn of(share: Option<&'a Arc<Share>>, page_bytes: usize) -> Self {
        let mut room = Self {
            bytes: if share.is_some() {
                SMALL_ANSWER_BYTES
            } else {
                usize::MAX
            },
            share,
            reservations: Vec::new(),
            page_bytes,
        };
        if let Some(granted) = share.and_then(|share| share.take_handed()) {
            room.bytes += granted.bytes();
            room.reservations.push(granted);
        }
        room
    }

    /// Ensures that the answer may use `capacity` bytes, of which it needs `bytes`. The rest is spare capacity of its
    /// vectors.
    ///
    /// # Errors
    /// [`Error::NoRoom`]; [`Error::Refused`] if no answer may be so large.
    pub(crate) fn need(&mut self, capacity: usize, bytes: usize) -> Result<(), Error> {
        if capacity <= self.bytes {
            Ok(())
        } else {
            self.grow(capacity, bytes)
        }
    }

    /// Checks that the client is still connected.
    ///
    /// # Errors
    /// The client has disconnected.
    pub(crate) fn check_client(&self) -> Result<(), Error> {
        match self.share {
            Some(share) if share.has_left() => Err(Refusal::ClientLeft.into()),
            _ => Ok(()),
        }
    }

    #[cold]
    fn grow(&mut self, capacity: usize, bytes: usize) -> Result<(), Error> {
        let Some(share) = self.share else { return Ok(()) };
        let bytes_max = share.answer_bytes_max();
        if bytes > bytes_max {
            return Err(Refusal::AnswerTooLarge { bytes_max }.into());
        }
        // By a quarter at least, so that an answer of many rows rarely requests more.
        let wanted = capacity.max(self.bytes + self.bytes / 4).min(bytes_max);
        if wanted <= self.bytes {
            return Ok(());
        }
        let reserved = share.try_reserve(wanted - self.bytes).ok_or_else(|| Error::NoRoom {
            bytes: (2 * wanted.max(self.page_bytes)).min(bytes_max),
        })?;
        self.reservations.push(reserved);
        self.bytes = wanted;
        Ok(())
    }

    /// The reservations, for the answer to keep until it is sent.
    pub(crate) fn keep(&mut self) -> AnswerMemory {
        AnswerMemory {
            reservations: std::mem::take(&mut self.reservations),
        }
    }
}

impl AnswerMemory {
    /// The encoded rows, which keep their reservations until they are dropped.
    #[must_use]
    pub fn hold(self, content: Vec<u8>) -> Bytes {
        let mut reservations = self.reservations;
        if reservations.is_empty() {
            return content.into();
        }
        let mut left = content.capacity();
        reservations.retain_mut(|reservation| {
            reservation.shrink_to(left);
            left -= reservation.bytes();
            reservation.bytes() > 0
        });
        Bytes::from_owner(Held {
            content,
            _reservations: reservations,
        })
    }
}
