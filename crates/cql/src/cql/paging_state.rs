//! Paging states: the encoding of a [`Position`]. It stays valid after restarts, and no client can forge it.
//!
//! ```text
//! version u8 = 2 · digest of the table [8] · flags u8 · rows left u32 · rows left in the partition u32
//! · with 08: charge left u16 · partition key length u32 · partition key · clustering key (to the checksum) · checksum [8]
//! flags: 01 limit · 02 per-partition limit · 04 inside the partition, after this clustering key (otherwise: after the partition)
//!        08 a part of a hundredth of a request unit is not charged yet · 10 the read is of one partition only
//! ```
//! Version 1, read but no longer written, has a digest of the statement's text and values instead of the table's.
//!
//! ```text
//! version u8 = 3 · digest of the table's id [8] · charge left u16 · after i64
//! · inside a sweep: until i64 · last entry passed (to the checksum)                · checksum [8]   the change feed
//! ```
//! A state of the change feed belongs to a table by its id: it ends when the table is dropped.
//!
//! A state belongs to a table, by its name and the types of its keys, and to no statement: as in Cassandra, a statement
//! with another text, columns or limits resumes at the position. It holds no snapshot: the next page sees the rows
//! stored then. The checksum is keyed with a secret of this store's catalog.

use bytes::Bytes;
use md5::{Digest, Md5};

use super::error::RequestRefusal;
use helenus_schema::command::{FeedPosition, FeedSweep, Position, Read, Value};
use helenus_schema::schema::Table;

const VERSION: u8 = 2;
const VERSION_OF_STATEMENT: u8 = 1;
const VERSION_OF_FEED: u8 = 3;
const HAS_LIMIT: u8 = 0x01;
const HAS_PARTITION_LIMIT: u8 = 0x02;
const INSIDE: u8 = 0x04;
const HAS_CHARGE: u8 = 0x08;
const OF_ONE_PARTITION: u8 = 0x10;

/// A digest of the table or statement to which a paging state belongs.
pub type StateDigest = [u8; 8];

/// The digest of a table. A table that was dropped and created again with the same name and keys has the same digest.
pub(super) fn table_digest(table: &Table) -> StateDigest {
    let keys: Vec<String> = table
        .partition_key()
        .iter()
        .chain(table.clustering())
        .map(|column| format!("{} {}", column.ty.marshal_name(), column.descending))
        .collect();
    let head = [table.keyspace.as_str(), table.name.as_str()].into_iter();
    let parts = head.chain(keys.iter().map(String::as_str));
    digest(parts.map(str::as_bytes))
}

/// The digest of a table for its change feed. A table that was dropped and created again has another one.
pub(super) fn feed_digest(read: &Read) -> StateDigest {
    let feed = if read.is_full_fidelity {
        b"full fidelity change feed".as_slice()
    } else {
        b"change feed"
    };
    digest([feed, read.table.id.as_bytes()])
}

/// The digest of a statement and its values, for paging states of version 1.
pub(super) fn statement_digest(text: &str, read: &Read, values: &[Value]) -> StateDigest {
    let bytes = values.iter().map(|value| match value {
        Value::Null => &b"\x00null"[..],
        Value::Unset => &b"\x00unset"[..],
        Value::Bytes(bytes) => bytes,
    });
    let head = [read.table.id.as_bytes().as_slice(), text.as_bytes()];
    digest(head.into_iter().chain(bytes))
}

/// The secret of the checksum.
#[derive(Clone, Copy)]
pub struct PagingKey(pub [u8; 16]);

/// The first half of an MD5 sum.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> StateDigest {
    let mut sum = Md5::new();
    for part in parts {
        sum.update((part.len() as u64).to_be_bytes());
        sum.update(part);
    }
    let sum: [u8; 16] = sum.finalize().into();
    sum.first_chunk().copied().unwrap_or_default()
}

impl PagingKey {
    // Two nested hashes, as in HMAC, prevent a client from extending a state that it received.
    fn checksum(&self, state: &[u8]) -> [u8; 8] {
        let inner = digest([self.0.as_slice(), state]);
        digest([self.0.map(|byte| byte ^ 0x5c).as_slice(), inner.as_slice()])
    }

    /// The paging state to send to the client.
    pub fn seal(&self, table: StateDigest, position: &Position) -> Bytes {
        let mut state = Vec::with_capacity(40 + position.partition_key.len());
        state.push(VERSION);
        state.extend_from_slice(&table);
        let mut flags = 0;
        flags |= if position.limit_rows.is_some() { HAS_LIMIT } else { 0 };
        flags |= if position.partition_limit_rows.is_some() {
            HAS_PARTITION_LIMIT
        } else {
            0
        };
        flags |= if position.clustering.is_some() { INSIDE } else { 0 };
        flags |= if position.charge_left_micros > 0 { HAS_CHARGE } else { 0 };
        flags |= if position.of_one_partition { OF_ONE_PARTITION } else { 0 };
        state.push(flags);
        state.extend_from_slice(&position.limit_rows.unwrap_or(0).to_be_bytes());
        state.extend_from_slice(&position.partition_limit_rows.unwrap_or(0).to_be_bytes());
        if position.charge_left_micros > 0 {
            state.extend_from_slice(&position.charge_left_micros.to_be_bytes());
        }
        let key_bytes = u32::try_from(position.partition_key.len()).unwrap_or(u32::MAX);
        state.extend_from_slice(&key_bytes.to_be_bytes());
        state.extend_from_slice(&position.partition_key);
        state.extend_from_slice(position.clustering.as_deref().unwrap_or_default());
        let checksum = self.checksum(&state);
        state.extend_from_slice(&checksum);
        state.into()
    }

    /// The paging state of a page of the change feed.
    pub(crate) fn seal_feed(&self, table: StateDigest, charge_left_micros: u16, feed: &FeedPosition) -> Bytes {
        let mut state = Vec::with_capacity(64);
        state.push(VERSION_OF_FEED);
        state.extend_from_slice(&table);
        state.extend_from_slice(&charge_left_micros.to_be_bytes());
        state.extend_from_slice(&feed.after.to_be_bytes());
        if let Some(sweep) = &feed.sweep {
            state.extend_from_slice(&sweep.until.to_be_bytes());
            state.extend_from_slice(&sweep.reached);
        }
        let checksum = self.checksum(&state);
        state.extend_from_slice(&checksum);
        state.into()
    }

    /// Reads what [`PagingKey::seal_feed`] wrote for the same table.
    ///
    /// # Errors
    /// [`RequestRefusal::PagingState`] if the checksum is wrong, or it is no state of a change feed;
    /// [`RequestRefusal::FeedOfOtherTable`].
    pub(crate) fn open_feed(&self, table: StateDigest, state: &Bytes) -> Result<Position, RequestRefusal> {
        let (digest, position) = self.read_feed(state).ok_or(RequestRefusal::PagingState)?;
        if digest == table {
            Ok(position)
        } else {
            Err(RequestRefusal::FeedOfOtherTable)
        }
    }

    fn read_feed(&self, state: &Bytes) -> Option<(StateDigest, Position)> {
        let (sealed, checksum) = state.split_last_chunk::<8>()?;
        if self.checksum(sealed) != *checksum {
            return None;
        }
        let (version, rest) = sealed.split_first()?;
        let (digest, rest) = rest.split_first_chunk::<8>()?;
        let (charge_left, rest) = rest.split_first_chunk::<2>()?;
        let (after, rest) = rest.split_first_chunk::<8>()?;
        let sweep = match rest {
            [] => None,
            rest => {
                let (until, reached) = rest.split_first_chunk::<8>()?;
                Some(FeedSweep {
                    until: i64::from_be_bytes(*until),
                    reached: state.slice_ref(reached),
                })
            }
        };
        let feed = FeedPosition {
            after: i64::from_be_bytes(*after),
            sweep,
        };
        let mut position = Position::of_feed(feed);
        position.charge_left_micros = u16::from_be_bytes(*charge_left);
        (*version == VERSION_OF_FEED).then_some((*digest, position))
    }

    /// Adds a valid checksum to any bytes: fuzzing needs it to pass the check.
    #[must_use]
    pub fn with_checksum(&self, state: &[u8]) -> Bytes {
        [state, &self.checksum(state)].concat().into()
    }

    /// Reads what [`PagingKey::seal`] wrote for the same table, or what an earlier program wrote for the same statement
    /// and values.
    ///
    /// # Errors
    /// [`RequestRefusal::PagingState`] with Cassandra's text if the checksum is wrong, or the state was issued for
    /// another table.
    pub fn open(
        &self,
        table: StateDigest,
        statement: impl FnOnce() -> StateDigest,
        state: &Bytes,
    ) -> Result<Position, RequestRefusal> {
        self.read(table, statement, state).ok_or(RequestRefusal::PagingState)
    }

    fn read(&self, table: StateDigest, statement: impl FnOnce() -> StateDigest, state: &Bytes) -> Option<Position> {
        let (sealed, checksum) = state.split_last_chunk::<8>()?;
        // Nothing in the state is used before this check, since the client sent it.
        if self.checksum(sealed) != *checksum {
            return None;
        }
        let (version, rest) = sealed.split_first()?;
        let (digest, rest) = rest.split_first_chunk::<8>()?;
        let belongs = match *version {
            VERSION => *digest == table,
            VERSION_OF_STATEMENT => *digest == statement(),
            _ => false,
        };
        if !belongs {
            return None;
        }
        let (flags, rest) = rest.split_first()?;
        let (limit, rest) = rest.split_first_chunk::<4>()?;
        let (partition_limit, rest) = rest.split_first_chunk::<4>()?;
        let (charge_left, rest) = if flags & HAS_CHARGE == 0 {
            (0, rest)
        } else {
            let (left, rest) = rest.split_first_chunk::<2>()?;
            (u16::from_be_bytes(*left), rest)
        };
        let (key_bytes, rest) = rest.split_first_chunk::<4>()?;
        let key_bytes = usize::try_from(u32::from_be_bytes(*key_bytes)).ok()?;
        let (partition_key, clustering) = rest.split_at_checked(key_bytes)?;
        Some(Position {
            partition_key: state.slice_ref(partition_key),
            clustering: (flags & INSIDE != 0).then(|| state.slice_ref(clustering)),
            of_one_partition: flags & OF_ONE_PARTITION != 0,
            limit_rows: (flags & HAS_LIMIT != 0).then(|| u32::from_be_bytes(*limit)),
            partition_limit_rows: (flags & HAS_PARTITION_LIMIT != 0).then(|| u32::from_be_bytes(*partition_limit)),
            charge_left_micros: charge_left,
            feed: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position() -> impl Strategy<Value = Position> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
        (
            bytes(),
            prop::option::of(bytes()),
            any::<Option<u32>>(),
            any::<Option<u32>>(),
            any::<u16>(),
            any::<bool>(),
        )
            .prop_map(
                |(
                    partition_key,
                    clustering,
                    limit_rows,
                    partition_limit_rows,
                    charge_left_micros,
                    of_one_partition,
                )| Position {
                    partition_key,
                    clustering,
                    of_one_partition,
                    limit_rows,
                    partition_limit_rows,
                    charge_left_micros,
                    feed: None,
                },
            )
    }

    proptest! {
        #[test]
        fn opening_gives_back_what_was_sealed(position in position(), key: [u8; 16], table: [u8; 8]) {
            let state = PagingKey(key).seal(table, &position);
            prop_assert_eq!(PagingKey(key).open(table, || table, &state).unwrap(), position);
        }

        #[test]
        fn a_changed_state_is_refused(position in position(), at: prop::sample::Index, bit in 0_u8..8) {
            let key = PagingKey([7; 16]);
            let mut state = key.seal([1; 8], &position).to_vec();
            let at = at.index(state.len());
            state[at] ^= 1 << bit;
            prop_assert!(key.open([1; 8], || [1; 8], &state.into()).is_err());
        }

        #[test]
        fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(PagingKey([7; 16]).open([1; 8], || [1; 8], &bytes.into()).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_state_of_the_feed_gives_back_what_was_sealed(
            after: i64,
            sweep in prop::option::of((any::<i64>(), prop::collection::vec(any::<u8>(), 0..40))),
            charge_left_micros: u16,
            key: [u8; 16],
        ) {
            let sweep = sweep.map(|(until, reached)| FeedSweep { until, reached: reached.into() });
            let feed = FeedPosition { after, sweep };
            let key = PagingKey(key);
            let state = key.seal_feed([1; 8], charge_left_micros, &feed);
            let opened = key.open_feed([1; 8], &state).unwrap();
            prop_assert_eq!(opened.feed, Some(feed));
            prop_assert_eq!(opened.charge_left_micros, charge_left_micros);
            prop_assert_eq!(key.open_feed([2; 8], &state), Err(RequestRefusal::FeedOfOtherTable));
            prop_assert!(key.open([1; 8], || [1; 8], &state).is_err(), "not of a read of rows");
        }

        #[test]
        fn a_state_of_rows_is_none_of_the_feed(position in position()) {
            let key = PagingKey([7; 16]);
            let state = key.seal([1; 8], &position);
            prop_assert_eq!(key.open_feed([1; 8], &state), Err(RequestRefusal::PagingState));
        }
    }

    #[test]
    fn another_tables_state_is_refused() {
        let key = PagingKey([7; 16]);
        let position = Position {
            partition_key: Bytes::from_static(b"k"),
            clustering: None,
            of_one_partition: false,
            limit_rows: None,
            partition_limit_rows: None,
            charge_left_micros: 0,
            feed: None,
        };
        let state = key.seal([1; 8], &position);
        assert!(key.open([2; 8], || [1; 8], &state).is_err());
        assert!(PagingKey([8; 16]).open([1; 8], || [1; 8], &state).is_err());
    }

    #[test]
    fn a_state_of_version_1_belongs_to_its_statement() {
        let key = PagingKey([7; 16]);
        let position = Position {
            partition_key: Bytes::from_static(b"k"),
            clustering: Some(Bytes::from_static(b"c")),
            of_one_partition: false,
            limit_rows: None,
            partition_limit_rows: None,
            charge_left_micros: 0,
            feed: None,
        };
        let mut sealed = key.seal([1; 8], &position).to_vec();
        sealed.truncate(sealed.len() - 8);
        sealed[0] = VERSION_OF_STATEMENT;
        let state = key.with_checksum(&sealed);
        assert_eq!(key.open([2; 8], || [1; 8], &state).unwrap(), position);
        assert!(key.open([1; 8], || [2; 8], &state).is_err());
    }
}
