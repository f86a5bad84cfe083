//! Keys, ranges and positions in messages.

use super::bytes::{Decoder, Encoder};
use super::error::DecodeError;
use super::limits::{COLUMNS_MAX, KEYS_MAX};
use crate::command::{Clustering, ClusteringRange, FeedPosition, FeedSweep, Position};
use helenus_types::token::{KeyBound, KeySpan, Token};

/// Whether neighbours are in order.
fn are_ordered<T>(items: &[T], are_in_order: impl Fn(&T, &T) -> bool) -> bool {
    items
        .iter()
        .zip(items.iter().skip(1))
        .all(|(first, second)| are_in_order(first, second))
}

fn ordered<T>(items: Vec<T>, what: &'static str, are_in_order: impl Fn(&T, &T) -> bool) -> Result<Vec<T>, DecodeError> {
    if are_ordered(&items, are_in_order) {
        Ok(items)
    } else {
        Err(DecodeError::Order(what))
    }
}

impl Encoder {
    /// The position of a column in its table.
    pub(super) fn column(&mut self, place: usize) {
        self.number(place);
    }

    pub(super) fn columns(&mut self, places: &[usize]) {
        self.list(COLUMNS_MAX, places, |encoder, place| encoder.column(*place));
    }

    fn bound(&mut self, bound: &KeyBound) {
        self.i64(bound.token());
        self.bytes(bound.partition_key());
    }

    pub(super) fn span(&mut self, span: &KeySpan) {
        self.bound(span.start());
        self.option(span.end(), Self::bound);
    }

    pub(super) fn rows(&mut self, rows: &[Vec<u8>]) {
        self.list(KEYS_MAX, rows, |encoder, row| encoder.bytes(row));
    }

    pub(super) fn ranges(&mut self, ranges: &[ClusteringRange]) {
        self.list(KEYS_MAX, ranges, |encoder, range| {
            encoder.bytes(&range.start);
            encoder.option(range.end.as_deref(), Self::bytes);
        });
    }

    pub(super) fn clustering(&mut self, clustering: &Clustering) {
        match clustering {
            Clustering::All => self.u8(1),
            Clustering::Keys(keys) => {
                self.u8(2);
                self.rows(keys);
            }
            Clustering::Ranges(ranges) => {
                self.u8(3);
                self.ranges(ranges);
            }
        }
    }

    pub(super) fn position(&mut self, position: &Position) {
        let Position {
            partition_key,
            clustering,
            of_one_partition,
            limit_rows,
            partition_limit_rows,
            charge_left_micros,
            feed,
        } = position;
        self.bytes(partition_key);
        self.option(clustering.as_deref(), Self::bytes);
        self.bool(*of_one_partition);
        self.option(*limit_rows, Self::u32);
        self.option(*partition_limit_rows, Self::u32);
        self.u16(*charge_left_micros);
        self.option(feed.as_ref(), |encoder, FeedPosition { after, sweep }| {
            encoder.i64(*after);
            encoder.option(sweep.as_ref(), |encoder, FeedSweep { until, reached }| {
                encoder.i64(*until);
                encoder.bytes(reached);
            });
        });
    }
}

impl Decoder {
    pub(super) fn column(&mut self) -> Result<usize, DecodeError> {
        let (place, columns) = (self.number()?, self.columns);
        if place < columns {
            Ok(place)
        } else {
            Err(DecodeError::Column { place, columns })
        }
    }

    pub(super) fn columns(&mut self) -> Result<Vec<usize>, DecodeError> {
        self.list(COLUMNS_MAX, Self::column)
    }

    /// Columns that are sorted and distinct.
    pub(super) fn sorted_columns(&mut self) -> Result<Vec<usize>, DecodeError> {
        ordered(self.columns()?, "columns", |first, second| first < second)
    }

    fn bound(&mut self) -> Result<KeyBound, DecodeError> {
        let token = Token::bound(self.i64()?);
        Ok(KeyBound::at_key(token, &self.bytes()?))
    }

    pub(super) fn span(&mut self) -> Result<KeySpan, DecodeError> {
        let start = self.bound()?;
        let end = self.option(Self::bound)?;
        KeySpan::new(start, end).ok_or(DecodeError::Order("the bounds of a range of the ring"))
    }

    pub(super) fn rows(&mut self) -> Result<Vec<Vec<u8>>, DecodeError> {
        self.list(KEYS_MAX, Self::vec)
    }

    pub(super) fn ranges(&mut self) -> Result<Vec<ClusteringRange>, DecodeError> {
        self.list(KEYS_MAX, |decoder| {
            Ok(ClusteringRange {
                start: decoder.vec()?,
                end: decoder.option(Self::vec)?,
            })
        })
    }

    /// Ranges that are disjoint and sorted.
    pub(super) fn sorted_ranges(&mut self) -> Result<Vec<ClusteringRange>, DecodeError> {
        ordered(self.ranges()?, "ranges", |first, second| {
            first.end.as_ref().is_some_and(|end| *end <= second.start)
        })
    }

    pub(super) fn clustering(&mut self) -> Result<Clustering, DecodeError> {
        match self.u8()? {
            1 => Ok(Clustering::All),
            2 => ordered(self.rows()?, "rows", |first, second| first < second).map(Clustering::Keys),
            3 => self.sorted_ranges().map(Clustering::Ranges),
            found => Err(DecodeError::Tag {
                of: "kind of rows",
                found,
            }),
        }
    }

    pub(super) fn position(&mut self) -> Result<Position, DecodeError> {
        Ok(Position {
            partition_key: self.bytes()?,
            clustering: self.option(Self::bytes)?,
            of_one_partition: self.bool()?,
            limit_rows: self.option(Self::u32)?,
            partition_limit_rows: self.option(Self::u32)?,
            charge_left_micros: self.u16()?,
            feed: self.option(|decoder| {
                Ok(FeedPosition {
                    after: decoder.i64()?,
                    sweep: decoder.option(|decoder| {
                        Ok(FeedSweep {
                            until: decoder.i64()?,
                            reached: decoder.bytes()?,
                        })
                    })?,
                })
            })?,
        })
    }
}
