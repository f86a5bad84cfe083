//! The change log of a table, as its readers see it ([`helenus_storage::storage::change_log`]).
//!
//! Entries stay in the store where their change was made. Only when a physical partition leaves a store that may be
//! removed are they copied, to its home. So a reader walks the main store, the data stores and each store of the
//! partition map ([`LogStores::of`]), and an entry may be in two of them.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use super::homes::Homes;
use super::map::TablePartitions;
use super::ring::StoreId;
use super::stores::Stores;
use helenus_storage::storage::change_log::{self, Before, KEY_BYTES, Logged, LoggedChange};
use helenus_storage::storage::deletion::{self, Covered};
use helenus_storage::storage::key::{self, RowKind};
use helenus_storage::storage::{
    Batch, Damaged, Deletion, Error, KeyRange, Order, Record, Result, Row, RowView, Snapshot, Space, Store, TableId,
};
use helenus_types::token::Token;

/// The number of arcs.
pub const ARCS: u8 = change_log::ARCS;

/// Bytes of one commit of a copy.
const STEP_BYTES: usize = 256 << 10;

/// A change, with the parts of its row's key.
#[derive(Clone, Debug)]
pub struct Change {
    /// The token of its partition key.
    pub token: Token,
    /// The partition key.
    pub partition_key: Bytes,
    /// What was changed.
    pub what: What,
}

/// What a change was of.
#[derive(Clone, Debug)]
pub enum What {
    /// A row.
    Row {
        /// Its clustering key; `None` means the static row.
        clustering: Option<Bytes>,
        /// The images before and after. `None` means that they were left out.
        images: Option<Images>,
        /// The newest timestamp of what was written, in µs.
        written_micros: Option<i64>,
    },
    /// A partition, or a range of its rows, was deleted.
    Deletion {
        /// Which.
        covered: Covered,
        /// Its timestamp and time.
        deletion: Deletion,
    },
}

/// A stored row before and after a change.
#[derive(Clone, Debug)]
pub struct Images {
    /// `None` means that there was none.
    pub before: Option<Bytes>,
    /// After it.
    pub after: Bytes,
    /// Up to this timestamp partition and range deletions hide both. `None` means that there were none.
    pub hidden_up_to: Option<i64>,
}

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogEntry {
    /// Its key after the number of the log: entries of an arc sort as their changes came.
    pub place: Bytes,
    /// Its position.
    pub position: i64,
    /// The token of its change.
    pub token: i64,
    value: Bytes,
}

fn damaged(what: &'static str) -> Error {
    Error::Damaged(Damaged {
        record: Record::Key,
        what,
    })
}

impl LogEntry {
    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.place.len() + self.value.len()
    }

    /// What it says.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn change(&self) -> Result<Change> {
        let logged = Logged::decode(&self.value).ok_or_else(|| damaged("an entry of a change log cannot be read"))?;
        match logged.change {
            LoggedChange::Row { place, written, before } => {
                let row_key = key::with_table(0, &place);
                let parsed = key::parse(&row_key)?;
                let images = match before {
                    Before::LeftOut => None,
                    Before::Absent => Some(Images {
                        before: None,
                        after: written.clone(),
                        hidden_up_to: logged.covered,
                    }),
                    Before::Row(before) => {
                        let after = Row::merge(Row::decode(&before)?, Row::decode(&written)?).encode();
                        Some(Images {
                            before: Some(before),
                            after,
                            hidden_up_to: logged.covered,
                        })
                    }
                };
                let clustering = match parsed.kind {
                    RowKind::Static => None,
                    RowKind::Row => Some(Bytes::copy_from_slice(parsed.clustering)),
                };
                Ok(Change {
                    token: Token::bound(parsed.token),
                    partition_key: Bytes::copy_from_slice(&parsed.partition_key),
                    what: What::Row {
                        clustering,
                        images,
                        written_micros: change_log::written_micros(&written),
                    },
                })
            }
            LoggedChange::Deletion { place, value } => {
                let record_key = key::with_table(0, &place);
                let record = deletion::parse(&record_key, &value)?;
                Ok(Change {
                    token: Token::bound(record.token),
                    partition_key: Bytes::copy_from_slice(&record.partition_key),
                    what: What::Deletion {
                        covered: record.covered,
                        deletion: record.deletion,
                    },
                })
            }
        }
    }
}

/// The position of the last change of a stored row before another one.
#[must_use]
pub fn position_of(row: &[u8]) -> Option<i64> {
    RowView::parse(row).ok()?.position()
}

/// The arc of an entry's place.
#[must_use]
pub fn arc_of_place(place: &[u8]) -> Option<u8> {
    place.first().copied()
}

/// The stores that may have entries of a log.
#[derive(Clone, Debug)]
pub struct LogStores(Vec<Store>);

/// One of them at one moment.
#[derive(Clone, Debug)]
pub struct LogMoment {
    store: Store,
    at: Snapshot,
}

impl LogStores {
    /// Those of a table with these physical partitions.
    #[must_use]
    pub fn of(homes: &Homes, partitions: &TablePartitions) -> Self {
        let of_map = partitions.stores().filter(|(id, _)| !homes.is_kept(*id));
        Self(homes.kept().chain(of_map).map(|(_, store)| store.clone()).collect())
    }

    /// Each of them now.
    #[must_use]
    pub fn now(&self) -> Vec<LogMoment> {
        let now = |store: &Store| LogMoment {
            store: store.clone(),
            at: store.snapshot(),
        };
        self.0.iter().map(now).collect()
    }

    /// Removes the entries of a log up to a position.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn trim(&self, log: TableId, up_to: i64) -> Result<()> {
        for store in &self.0 {
            trim(store, log, up_to).await?;
        }
        Ok(())
    }
}

impl LogMoment {
    /// Walks the entries of an arc after one position and up to another, from one place on, until `visit` breaks.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub async fn walk(
        &self,
        log: TableId,
        (arc, after, up_to): (u8, i64, i64),
        behind: Option<&[u8]>,
        mut visit: impl FnMut(LogEntry) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let mut range = change_log::range(log, arc, after, up_to);
        if let Some(behind) = behind {
            range.start = Bound::Excluded(key::with_table(log, behind));
        }
        if range.is_empty() {
            return Ok(());
        }
        let visit = |key: &[u8], value: &[u8]| match change_log::parse_key(key).zip(key::place_of(key)) {
            Some(((position, token), place)) => visit(LogEntry {
                place: Bytes::copy_from_slice(place),
                position,
                token,
                value: Bytes::copy_from_slice(value),
            }),
            None => ControlFlow::Continue(()),
        };
        self.store
            .scan(Space::Feed, &range, Order::Forward, &self.at, visit)
            .await
    }
}

/// Removes the entries of a log up to a position from a store.
async fn trim(store: &Store, log: TableId, up_to: i64) -> Result<()> {
    let (mut batch, at) = (Batch::new(), store.snapshot());
    for arc in 0..ARCS {
        let range = change_log::range(log, arc, -1, up_to);
        let mut has_any = false;
        let visit = |_: &[u8], _: &[u8]| {
            has_any = true;
            ControlFlow::Break(())
        };
        store.scan(Space::Feed, &range, Order::Forward, &at, visit).await?;
        if has_any {
            batch.delete_range(Space::Feed, range);
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    store.commit(batch).await.map(drop)
}

/// Copies the entries after a position from a store to another; all if there is none.
///
/// # Errors
/// As [`Store::scan`] and [`Store::commit`].
pub async fn copy(source: &Store, target: &Store, log: TableId, after: Option<i64>) -> Result<()> {
    let at = source.snapshot();
    for arc in 0..ARCS {
        let mut rest = Some(change_log::range(log, arc, after.unwrap_or(-1), i64::MAX - 1));
        while let Some(left) = rest.take() {
            let (mut batch, mut last) = (Batch::new(), None);
            let visit = |key: &[u8], value: &[u8]| {
                batch.put(Space::Feed, key.to_vec(), Bytes::copy_from_slice(value));
                if batch.bytes() < STEP_BYTES {
                    return ControlFlow::Continue(());
                }
                last = Some(key.to_vec());
                ControlFlow::Break(())
            };
            source.scan(Space::Feed, &left, Order::Forward, &at, visit).await?;
            if !batch.is_empty() {
                target.commit(batch).await?;
            }
            rest = last.map(|last| KeyRange {
                start: Bound::Excluded(last),
                end: left.end,
            });
        }
    }
    Ok(())
}

impl Stores {
    /// The position up to which a log has no changes. `None` means that the log has not begun.
    ///
    /// # Errors
    /// As [`Store::get`]; [`Error::Damaged`].
    pub async fn log_floor(&self, log: TableId) -> Result<Option<i64>> {
        let main = self.main();
        let floor = main
            .get(Space::Feed, &change_log::floor_key(log), &main.snapshot())
            .await?;
        let Some(floor) = floor else { return Ok(None) };
        let floor = floor.as_ref().try_into().map(i64::from_be_bytes);
        floor
            .map(Some)
            .map_err(|_| damaged("the record of where a change log begins cannot be read"))
    }

    /// Adds to a batch of the main store that these logs have no changes up to now.
    pub fn record_log_floors<'l>(&self, batch: &mut Batch, logs: impl IntoIterator<Item = &'l TableId>) {
        for log in logs {
            let floor = Bytes::copy_from_slice(&self.position_of_now().to_be_bytes());
            batch.put(Space::Feed, change_log::floor_key(*log), floor);
        }
    }

    /// Records durably that a log has no changes up to a position.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn set_log_floor(&self, log: TableId, floor: i64) -> Result<()> {
        let mut batch = Batch::new();
        let value = Bytes::copy_from_slice(&floor.to_be_bytes());
        batch.put(Space::Feed, change_log::floor_key(log), value);
        self.main().commit(batch).await?;
        self.make_durable(self.main()).await
    }

    /// Begins a log, or begins it again. Every later change is in it; a reader that asks for earlier ones is refused.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn begin_log(&self, log: TableId) -> Result<i64> {
        for (id, store) in self.all() {
            // Every later commit of the store logs its changes. One that was closed meanwhile has none.
            match store.commit(Batch::new()).await {
                Err(Error::Closed) if id != StoreId::MAIN => {}
                committed => drop(committed?),
            }
        }
        let floor = self.position_of_now();
        self.set_log_floor(log, floor).await?;
        Ok(floor)
    }
}

const _: () = assert!(KEY_BYTES < helenus_storage::storage::KEY_BYTES_MAX);
