//! What a sink holds, and the memory that it asks for it.

use super::Sink;
use crate::engine::Error;

impl Sink<'_> {
    /// Asks for what is held now.
    pub(super) fn need_room(&mut self) -> Result<(), Error> {
        let aside = self.aside_bytes;
        let held = self.out.capacity() + aside + self.places_bytes;
        self.room.need(held, self.out.len() + aside)
    }

    /// Notes what the source holds of places to visit.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn hold_places(&mut self, bytes: usize) -> Result<(), Error> {
        self.places_bytes = bytes;
        self.need_room()
    }
}
