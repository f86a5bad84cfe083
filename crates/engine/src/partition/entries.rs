//! Index entries of a hosted partition, and the places of the rows that they refer to.
//!
//! A *place* is the part of a row's key, or of a logical partition's, after the table id. Index entries end with one
//! ([`helenus_storage::storage::derivation`]). A whole index lies in one store. So a walk over it passes entries of other
//! partitions and, for a while after a move, entries of rows that are in another store now. Such an [`Entry`] has no
//! place here, so no row can be read through it.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

use super::hosted::{Hosted, bounds_of};
use super::map::TablePartitions;
use super::moment::Moment;
use super::ring::StoreId;
use super::rows::{LogicalPartition, Prefix, RowKey};
use super::view::ReadView;
use helenus_storage::storage::{Damaged, Error, KeyRange, Order, Result, Space, Store, TableId, key, split_entry};
use helenus_types::token::{KeySpan, Token};

/// The place of a row or of a logical partition within its table. Places sort as the rows do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(Vec<u8>);

/// A [`Place`] that is borrowed from an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceRef<'a>(&'a [u8]);

impl<'a> PlaceRef<'a> {
    /// The place of its logical partition.
    #[must_use]
    pub fn partition(self) -> Self {
        Self(key::partition_place(self.0).unwrap_or(self.0))
    }

    /// Its length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no place is empty")]
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// An owned copy.
    #[must_use]
    pub fn to_place(self) -> Place {
        Place(self.0.to_vec())
    }
}

impl Place {
    /// A borrowed view.
    #[must_use]
    pub fn as_ref(&self) -> PlaceRef<'_> {
        PlaceRef(&self.0)
    }

    /// The token and the partition key of the logical partition that the place names, or in which it lies.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn logical(&self) -> Result<(Token, Cow<'_, [u8]>)> {
        let (token, partition_key) = key::parse_place(&self.0).ok_or(Error::Damaged(Damaged::KEY))?;
        Ok((Token::bound(token), partition_key))
    }

    /// Whether the place is a row of a logical partition, or that partition itself.
    #[must_use]
    pub fn is_in(&self, prefix: &Prefix) -> bool {
        key::place_of(prefix.as_bytes()).is_some_and(|place| self.0.starts_with(place))
    }
}

impl LogicalPartition<'_> {
    /// The key of the row at a place in it; `None` means the static row.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn row_at(&self, place: &Place) -> Result<Option<RowKey>> {
        let key = key::with_table(self.table(), &place.0);
        let prefix_len = self.prefix().as_bytes().len();
        match key::split_row(&key, prefix_len).ok_or(Error::Damaged(Damaged::KEY))? {
            (key::RowKind::Static, _) => Ok(None),
            (key::RowKind::Row, _) => Ok(Some(RowKey::of_bytes(key, prefix_len))),
        }
    }
}

/// The places that a walk has yet to visit.
#[derive(Clone, Debug)]
pub struct PlaceRange {
    next: Bound<Vec<u8>>,
    /// The first place after the range; `None` means no end.
    end: Option<Vec<u8>>,
}

impl PlaceRange {
    /// The places of a span.
    #[must_use]
    pub fn of_span(span: &KeySpan) -> Self {
        let (start, end) = bounds_of(span);
        Self {
            next: Bound::Included(start),
            end,
        }
    }

    /// The places of one logical partition.
    #[must_use]
    pub fn of_logical(prefix: &Prefix) -> Self {
        let place = key::place_of(prefix.as_bytes()).unwrap_or_default();
        Self {
            next: Bound::Included(place.to_vec()),
            end: key::successor(place),
        }
    }

    /// Moves the start after a place: after that row, or after all rows of that logical partition.
    pub fn skip_past(&mut self, place: &Place, is_partition: bool) {
        self.next = match key::successor(&place.0) {
            Some(after) if is_partition => Bound::Included(after),
            _ => Bound::Excluded(place.0.clone()),
        };
    }

    /// Moves the start after a logical partition, unless the start is already there or beyond.
    pub fn skip(&mut self, prefix: &Prefix) {
        let after = key::place_of(prefix.as_bytes()).and_then(key::successor);
        if let Some(after) = after
            && self.begins_before(&after)
        {
            self.next = Bound::Included(after);
        }
    }

    /// Sets the start right after a row.
    pub fn start_after(&mut self, row: &RowKey) {
        self.next = Bound::Excluded(key::place_of(row.as_bytes()).unwrap_or_default().to_vec());
    }

    fn begins_before(&self, place: &[u8]) -> bool {
        match &self.next {
            Bound::Included(next) | Bound::Excluded(next) => next.as_slice() < place,
            Bound::Unbounded => true,
        }
    }

    /// Whether a logical partition begins in the range.
    #[must_use]
    pub fn has_logical(&self, prefix: &Prefix) -> bool {
        let place = key::place_of(prefix.as_bytes()).unwrap_or_default();
        let is_before = match &self.next {
            Bound::Included(next) | Bound::Excluded(next) => place < next.as_slice(),
            Bound::Unbounded => false,
        };
        !is_before && self.end.as_ref().is_none_or(|end| place < end.as_slice())
    }

    /// Whether a place lies in the range.
    #[must_use]
    pub fn has(&self, place: PlaceRef<'_>) -> bool {
        let is_before = match &self.next {
            Bound::Included(next) => place.0 < next.as_slice(),
            Bound::Excluded(next) => place.0 <= next.as_slice(),
            Bound::Unbounded => false,
        };
        !is_before && self.end.as_ref().is_none_or(|end| place.0 < end.as_slice())
    }
}

/// A range of an index's entries.
#[derive(Clone, Debug)]
pub struct EntryRange(KeyRange);

impl EntryRange {
    /// All entries of an index.
    #[must_use]
    pub fn all(index: TableId) -> Self {
        Self(key::table_range(index))
    }

    /// The entries between two encoded values; an `end` of `None` means the end of the index.
    #[must_use]
    pub fn of_values(index: TableId, start: &[u8], end: Option<&[u8]>) -> Self {
        Self(KeyRange {
            start: Bound::Included(key::with_table(index, start)),
            end: end.map_or(key::table_range(index).end, |end| {
                Bound::Excluded(key::with_table(index, end))
            }),
        })
    }

    /// The entries of an index from `start` up to and without `end`, both without the number of the index.
    #[must_use]
    pub fn between(index: TableId, start: Bound<&[u8]>, end: &[u8]) -> Self {
        Self(KeyRange {
            start: match start {
                Bound::Unbounded => key::table_range(index).start,
                bound => bound.map(|start| key::with_table(index, start)),
            },
            end: Bound::Excluded(key::with_table(index, end)),
        })
    }

    /// The entries of one encoded value whose rows lie at these places; `None` means that the range is empty.
    #[must_use]
    pub fn of_value(index: TableId, value: &[u8], places: &PlaceRange) -> Option<Self> {
        let prefix = key::with_table(index, value);
        let with_prefix = |place: &Vec<u8>| [prefix.as_slice(), place].concat();
        let range = KeyRange {
            start: places.next.as_ref().map(with_prefix),
            end: match &places.end {
                Some(end) => Bound::Excluded(with_prefix(end)),
                None => key::successor(&prefix).map_or(Bound::Unbounded, Bound::Excluded),
            },
        };
        (!range.is_empty()).then_some(Self(range))
    }
}

/// An index entry on a walk.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The encoded value.
    pub value: &'a [u8],
    /// The place of its row; `None` means that the row is not in the partition that is read.
    pub place: Option<PlaceRef<'a>>,
}

/// An index entry on a walk over one store.
#[derive(Clone, Debug)]
pub struct Located<'a> {
    /// The encoded value.
    pub value: &'a [u8],
    /// The place of its row.
    pub place: PlaceRef<'a>,
    /// The token of the row.
    pub token: Token,
    /// The partition key of the row.
    pub partition_key: Cow<'a, [u8]>,
    /// The physical partition of the row; `None` means that it is in another store.
    pub partition: Option<&'a Arc<Hosted>>,
}

impl Located<'_> {
    /// The key of the entry after the number of the index.
    #[must_use]
    pub fn suffix(&self) -> Vec<u8> {
        [self.value, self.place.0].concat()
    }
}

async fn walk(
    store: &Store,
    range: &EntryRange,
    at: &Moment,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
) -> Result<()> {
    let mut is_malformed = false;
    let visit = |key: &[u8], value: &[u8]| match split_entry(key, value) {
        Some((encoded, place)) => visit(encoded, place),
        None => {
            is_malformed = true;
            ControlFlow::Break(())
        }
    };
    store
        .scan(Space::Indexes, &range.0, Order::Forward, &at.0, visit)
        .await?;
    if is_malformed {
        return Err(Error::Damaged(Damaged::KEY));
    }
    Ok(())
}

impl Hosted {
    /// The value stored under the key of an index entry.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub async fn entry(&self, key: &[u8], at: &Moment) -> Result<Option<Bytes>> {
        self.store().get(Space::Indexes, key, &at.0).await
    }

    /// Walks index entries in order until `visit` breaks. Only entries of rows in this partition have a place.
    ///
    /// # Errors
    /// As [`Store::scan`]; [`Error::Damaged`].
    pub async fn entries(
        &self,
        range: &EntryRange,
        at: &Moment,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        walk(self.store(), range, at, |value, place| {
            let place = self.has_place(place).then_some(PlaceRef(place));
            visit(Entry { value, place })
        })
        .await
    }
}

impl TablePartitions {
    /// Walks the index entries in one store until `visit` breaks, and skips those whose rows lie in another store by
    /// this map. `visit` gets the token of each row.
    ///
    /// # Errors
    /// As [`Store::scan`]; [`Error::Damaged`].
    pub async fn entries_in(
        &self,
        store: StoreId,
        range: &EntryRange,
        view: &mut ReadView,
        mut visit: impl FnMut(Token) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        self.located_in(store, range, view, |entry| match entry.partition {
            Some(_) => visit(entry.token),
            None => ControlFlow::Continue(()),
        })
        .await
    }

    /// Walks the index entries in one store until `visit` breaks, with the physical partition of each row by this map.
    ///
    /// # Errors
    /// As [`Store::scan`]; [`Error::Damaged`].
    pub async fn located_in(
        &self,
        store: StoreId,
        range: &EntryRange,
        view: &mut ReadView,
        mut visit: impl FnMut(Located<'_>) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let Some(any) = self.here().find(|partition| partition.store_id == store) else {
            return Ok(());
        };
        let mut is_malformed = false;
        walk(
            any.store(),
            range,
            &view.at(any),
            |value, place| match key::parse_place(place) {
                Some((token, partition_key)) => {
                    let token = Token::bound(token);
                    let partition = self.of_token(token, &partition_key).here();
                    visit(Located {
                        value,
                        place: PlaceRef(place),
                        token,
                        partition_key,
                        partition: partition.filter(|partition| partition.store_id == store),
                    })
                }
                None => {
                    is_malformed = true;
                    ControlFlow::Break(())
                }
            },
        )
        .await?;
        if is_malformed {
            return Err(Error::Damaged(Damaged::KEY));
        }
        Ok(())
    }
}
