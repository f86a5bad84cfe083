//! Where the rows of a read come from: gets and scans of stores, in the order in which the sink wants them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use crate::command::{Clustering, ClusteringRange, Partitions, Read};
use crate::executor::paging::Position;
use crate::executor::{Error, storage_read};
use crate::mutant::{self, Mutant};
use crate::partition::store::{
    Deletions, KeyRange, Order, RangeTombstone, RowView, Snapshot, Space, Store, deletion, key,
};
use crate::partition::{PhysicalPartition, PhysicalPartitionId, StoreId, TablePartitions};
use crate::schema::Table;
use crate::token::Token;

use super::sink::{Sink, Step};

/// How many partitions' deletions a full scan reads ahead.
const DELETIONS_AHEAD: usize = 256;

/// The moments at which one scan reads its stores: all parts of it in one store are read as of the same.
#[derive(Default)]
pub(crate) struct Moments(Vec<(StoreId, Snapshot)>);

impl Moments {
    /// The moment at which a partition's store is read.
    pub(crate) fn of(&mut self, partition: &PhysicalPartition) -> Snapshot {
        let found = self.0.iter().find(|(id, _)| *id == partition.store_id);
        if let Some((_, at)) = found.filter(|_| !mutant::is_on(Mutant::ScanAtManyMoments)) {
            return at.clone();
        }
        let at = partition.snapshot();
        self.0.push((partition.store_id, at.clone()));
        at
    }
}

/// The physical partitions that a SELECT may have to visit, in order of token; one that several keys lead to comes several times.
pub(crate) fn concerned<'a>(
    partitions: &'a TablePartitions,
    select: &'a Read,
) -> impl Iterator<Item = &'a PhysicalPartition> {
    let (ring, keys): (_, &[Bytes]) = match (&select.partitions, partitions.all()) {
        // Nobody needs to hash the keys where there is one place only.
        (_, [_]) => (partitions.all(), &[]),
        (Partitions::Keys(keys), _) => (Default::default(), keys),
        (Partitions::Ring { lower, upper }, _) => (partitions.overlapping(*lower, *upper), &[]),
    };
    let of_keys = keys.iter().map(|key| partitions.of(Token::of(key)).as_ref());
    ring.iter().map(AsRef::as_ref).chain(of_keys)
}

/// Those of the [`concerned`] that are not passed yet when a page begins behind `resume`.
pub(crate) fn ahead<'a>(
    partitions: &'a TablePartitions,
    select: &'a Read,
    resume: Option<&Position>,
) -> impl Iterator<Item = &'a PhysicalPartition> {
    let passed = match (&select.partitions, resume) {
        (Partitions::Ring { .. }, Some(position)) => Token::of(&position.partition_key).value(),
        _ => i64::MIN,
    };
    concerned(partitions, select).filter(move |partition| partition.upper >= passed)
}

/// Brings the rows of a SELECT to a sink, from behind `resume` where a page before has ended. How many parts of the ring in different
/// physical partitions were read.
///
/// # Errors
/// When a store fails, or the sink.
pub(crate) async fn run(
    partitions: &TablePartitions,
    select: &Read,
    resume: Option<&Position>,
    sink: &mut Sink<'_>,
) -> Result<usize, Error> {
    if sink.is_exhausted() {
        return Ok(0);
    }
    match &select.partitions {
        Partitions::Keys(keys) => run_keys(partitions, select, keys, resume, sink).await,
        Partitions::Ring { lower, upper } => {
            let from = resume.map_or(*lower, |position| Token::of(&position.partition_key).value());
            let mut moments = Moments::default();
            let mut visited = 0;
            for partition in partitions.overlapping(from.max(*lower), *upper) {
                sink.enter(
                    select.table.storage_id,
                    partition,
                    None,
                    is_first_visit(partition, resume),
                );
                let (lower, upper) = (from.max(*lower).max(partition.lower), partition.upper.min(*upper));
                let at = moments.of(partition);
                visited += 1;
                let ring = Ring::new(&partition.store, at, select, lower, upper);
                if ring.run(resume, sink).await? == Step::Stop {
                    break;
                }
            }
            Ok(visited)
        }
    }
}

/// Whether no page before has come to a physical partition. Where the ring is read in its order, one has come to that of its last row.
pub(crate) fn is_first_visit(partition: &PhysicalPartition, resume: Option<&Position>) -> bool {
    resume.is_none_or(|position| {
        let token = Token::of(&position.partition_key).value();
        !(partition.lower..=partition.upper).contains(&token)
    })
}

/// The physical partitions that reads of several keys come to.
pub(crate) struct Visits<'a> {
    partitions: &'a TablePartitions,
    seen: BTreeSet<PhysicalPartitionId>,
}

impl<'a> Visits<'a> {
    /// Before the first of the keys that are `left` of all; the pages before have come to where the others lie. `inside`: one has ended
    /// inside the first.
    pub(crate) fn new(partitions: &'a TablePartitions, keys: &[Bytes], left: &[Bytes], inside: bool) -> Self {
        let passed = keys.len() - left.len() + usize::from(inside);
        let passed = keys.iter().take(passed);
        Self {
            partitions,
            seen: passed.map(|key| partitions.of(Token::of(key)).id).collect(),
        }
    }

    /// The physical partition of a key, and whether the read comes to it for the first time.
    pub(crate) fn of(&mut self, token: Token) -> (&'a PhysicalPartition, bool) {
        let partition = self.partitions.of(token);
        (partition, self.seen.insert(partition.id))
    }
}

/// Brings the rows of part of the ring (both tokens inclusive) that lie in one store.
///
/// # Errors
/// As [`run`].
pub(crate) async fn ring(
    store: &Store,
    select: &Read,
    (lower, upper): (i64, i64),
    resume: Option<&Position>,
    sink: &mut Sink<'_>,
) -> Result<Step, Error> {
    Ring::new(store, store.snapshot(), select, lower, upper)
        .run(resume, sink)
        .await
}

/// The partition keys that are left after the pages before, and the place inside the first of them, if it is begun.
///
/// # Errors
/// [`Error::Protocol`] when the place is in none of them.
pub(crate) fn keys_left<'k, 'p>(
    keys: &'k [Bytes],
    resume: Option<&'p Position>,
) -> Result<(&'k [Bytes], Option<&'p Position>), Error> {
    let Some(position) = resume else {
        return Ok((keys, None));
    };
    let Some(place) = keys.iter().position(|key| *key == position.partition_key) else {
        return Err(Error::Protocol("Invalid value for the paging state".to_owned()));
    };
    let first = place + usize::from(position.clustering.is_none());
    Ok((
        keys.get(first..).unwrap_or_default(),
        resume.filter(|position| position.clustering.is_some()),
    ))
}

async fn run_keys(
    partitions: &TablePartitions,
    select: &Read,
    keys: &[Bytes],
    resume: Option<&Position>,
    sink: &mut Sink<'_>,
) -> Result<usize, Error> {
    let (left, resume) = keys_left(keys, resume)?;
    let mut visits = Visits::new(partitions, keys, left, resume.is_some());
    let mut visited = 0;
    for (number, partition_key) in left.iter().enumerate() {
        let token = Token::of(partition_key);
        let (partition, is_first) = visits.of(token);
        visited += usize::from(is_first || number == 0);
        sink.enter(
            select.table.storage_id,
            partition,
            Some((token, partition_key)),
            is_first,
        );
        let inside = if number == 0 { resume } else { None };
        let step = One {
            store: &partition.store,
            at: &partition.snapshot(),
            select,
            table: &select.table,
            token,
            partition_key,
        }
        .run(inside, sink)
        .await?;
        if step == Step::Stop {
            break;
        }
    }
    Ok(visited)
}

/// One logical partition being read.
pub(crate) struct One<'a> {
    /// Where it lies.
    pub(crate) store: &'a Store,
    /// As of when.
    pub(crate) at: &'a Snapshot,
    /// What is asked.
    pub(crate) select: &'a Read,
    /// Of which table.
    pub(crate) table: &'a Table,
    /// The token of its key.
    pub(crate) token: Token,
    /// Its key.
    pub(crate) partition_key: &'a [u8],
}

impl One<'_> {
    /// Brings its rows to a sink, from behind `resume` if a page before has ended inside.
    ///
    /// # Errors
    /// As [`run`].
    pub(crate) async fn run(&self, resume: Option<&Position>, sink: &mut Sink<'_>) -> Result<Step, Error> {
        let table = self.table.storage_id;
        let prefix = key::partition_prefix(table, self.token.value(), self.partition_key);
        let deletions = self
            .store
            .deletions(table, self.token.value(), self.partition_key, self.at);
        let deletions = deletions.await.map_err(|error| storage_read(&error))?;
        sink.begin_partition(self.partition_key, resume.map(|position| position.partition_limit_rows));
        if sink.wants_static() {
            bring_static(self.store, self.at, &prefix, &deletions, sink).await?;
        }
        match &self.select.rows {
            Clustering::All => sink.note_ranges(deletions.ranges.len()),
            Clustering::Ranges(ranges) => {
                let meets = |deleted: &&RangeTombstone| ranges.iter().any(|range| overlaps(range, deleted));
                sink.note_ranges(deletions.ranges.iter().filter(meets).count());
            }
            // Of a single row only its own cells count.
            Clustering::Keys(_) => {}
        }
        let after = resume.and_then(|position| position.clustering.as_deref());
        let step = match &self.select.rows {
            Clustering::All if self.table.clustering_count == 0 => {
                self.get(&prefix, &[], after, &deletions, sink).await?
            }
            Clustering::All => {
                let whole = ClusteringRange {
                    start: Vec::new(),
                    end: None,
                };
                self.scan(&prefix, std::slice::from_ref(&whole), after, &deletions, sink)
                    .await?
            }
            Clustering::Ranges(ranges) => self.scan(&prefix, ranges, after, &deletions, sink).await?,
            Clustering::Keys(keys) => self.get_all(&prefix, keys, after, &deletions, sink).await?,
        };
        if step == Step::Stop {
            Ok(step)
        } else {
            sink.end_partition()
        }
    }

    async fn get_all(
        &self,
        prefix: &[u8],
        keys: &[Vec<u8>],
        after: Option<&[u8]>,
        deletions: &Deletions,
        sink: &mut Sink<'_>,
    ) -> Result<Step, Error> {
        let count = keys.len();
        for number in 0..count {
            let place = if self.select.reversed {
                count - 1 - number
            } else {
                number
            };
            let Some(clustering) = keys.get(place) else { break };
            let step = self.get(prefix, clustering, after, deletions, sink).await?;
            if step != Step::Continue {
                return Ok(step);
            }
        }
        Ok(Step::Continue)
    }

    async fn get(
        &self,
        prefix: &[u8],
        clustering: &[u8],
        after: Option<&[u8]>,
        deletions: &Deletions,
        sink: &mut Sink<'_>,
    ) -> Result<Step, Error> {
        let is_before = after.is_some_and(|after| {
            if self.select.reversed {
                clustering >= after
            } else {
                clustering <= after
            }
        });
        if is_before {
            return Ok(Step::Continue);
        }
        let key = key::row_key(prefix, clustering);
        let found = self
            .store
            .get(Space::Rows, &key, self.at)
            .await
            .map_err(|error| storage_read(&error))?;
        let Some(found) = found else {
            sink.no_row();
            return Ok(Step::Continue);
        };
        let view = RowView::parse(&found).map_err(|error| storage_read(&error))?;
        let row_bytes = key.len() + found.len();
        sink.row(clustering, row_bytes, &view, deletions.timestamp_covering(clustering))
    }

    async fn scan(
        &self,
        prefix: &[u8],
        ranges: &[ClusteringRange],
        after: Option<&[u8]>,
        deletions: &Deletions,
        sink: &mut Sink<'_>,
    ) -> Result<Step, Error> {
        let count = ranges.len();
        for number in 0..count {
            let place = if self.select.reversed {
                count - 1 - number
            } else {
                number
            };
            let Some(range) = ranges.get(place) else { break };
            let range = self.key_range(prefix, range, after);
            if range.is_empty() {
                continue;
            }
            let order = if self.select.reversed {
                Order::Reverse
            } else {
                Order::Forward
            };
            let mut outcome = Ok(Step::Continue);
            let scanned = self
                .store
                .scan(Space::Rows, &range, order, self.at, |key, value| {
                    let clustering = key.get(prefix.len() + 1..).unwrap_or_default();
                    outcome = RowView::parse(value)
                        .map_err(|error| storage_read(&error))
                        .and_then(|view| {
                            let row_bytes = key.len() + value.len();
                            sink.row(clustering, row_bytes, &view, covering(deletions, clustering))
                        });
                    if matches!(outcome, Ok(Step::Continue)) {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })
                .await;
            scanned.map_err(|error| storage_read(&error))?;
            let step = outcome?;
            if step != Step::Continue {
                return Ok(step);
            }
        }
        Ok(Step::Continue)
    }

    fn key_range(&self, prefix: &[u8], range: &ClusteringRange, after: Option<&[u8]>) -> KeyRange {
        let mut start = Bound::Included(range.start.as_slice());
        let mut end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if let Some(after) = after {
            if self.select.reversed {
                if range.end.as_deref().is_none_or(|end| after < end) {
                    end = Bound::Excluded(after);
                }
            } else if after >= range.start.as_slice() {
                start = behind(after);
            }
        }
        key::clustering_range(prefix, start, end)
    }
}

/// Where a page goes on when the one before ended with this row.
fn behind<K>(last: K) -> Bound<K> {
    if mutant::is_on(Mutant::PageRepeatsRow) {
        Bound::Included(last)
    } else {
        Bound::Excluded(last)
    }
}

/// The timestamp up to which deletions from outside hide a row.
pub(crate) fn covering(deletions: &Deletions, clustering: &[u8]) -> Option<i64> {
    if deletions.is_empty() {
        None
    } else {
        deletions.timestamp_covering(clustering)
    }
}

/// Brings a partition's static row to a sink.
pub(crate) async fn bring_static(
    store: &Store,
    at: &Snapshot,
    prefix: &[u8],
    deletions: &Deletions,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let key = key::static_row_key(prefix);
    let found = store
        .get(Space::Rows, &key, at)
        .await
        .map_err(|error| storage_read(&error))?;
    if let Some(found) = found {
        let view = RowView::parse(&found).map_err(|error| storage_read(&error))?;
        let row_bytes = key.len() + found.len();
        sink.set_static(row_bytes, &view, deletions.timestamp_covering_static())?;
    }
    Ok(())
}

/// A scan over part of the ring, in order of token.
struct Ring<'a> {
    store: &'a Store,
    at: Snapshot,
    select: &'a Read,
    table: &'a Table,
    range: KeyRange,
    has_deletions: bool,
    ahead: Ahead,
}

/// The deletions of the next partitions of a scan.
#[derive(Default)]
struct Ahead {
    by_prefix: BTreeMap<Vec<u8>, Deletions>,
    /// Partitions before this prefix are known; `None`: all are.
    until: Option<Vec<u8>>,
    loaded: bool,
}

impl Ahead {
    fn knows(&self, prefix: &[u8]) -> bool {
        self.loaded && self.until.as_ref().is_none_or(|until| prefix < until.as_slice())
    }
}

/// Why a scan paused.
enum Pause {
    End,
    Stop,
    /// Go on behind the partition of this prefix.
    NextPartition(Vec<u8>),
    /// Read deletions from this prefix on, then go on at this key.
    NeedDeletions {
        prefix: Vec<u8>,
        key: Vec<u8>,
    },
    Failed(Error),
}

impl<'a> Ring<'a> {
    fn new(store: &'a Store, at: Snapshot, select: &'a Read, lower: i64, upper: i64) -> Self {
        let table = select.table.as_ref();
        Self {
            store,
            select,
            table,
            range: key::token_range(table.storage_id, lower, upper),
            has_deletions: at.has_deletions(table.storage_id),
            ahead: Ahead::default(),
            at,
        }
    }

    async fn run(mut self, resume: Option<&Position>, sink: &mut Sink<'_>) -> Result<Step, Error> {
        // The prefix of the partition being read, and its deletions.
        let mut current: Option<(Vec<u8>, Deletions)> = None;
        if let Some(position) = resume {
            current = self.resume(position, sink).await?;
        }
        loop {
            match self.stride(&mut current, sink).await? {
                Pause::End => {
                    return if current.is_some() {
                        sink.end_partition()
                    } else {
                        Ok(Step::Continue)
                    };
                }
                Pause::Stop => return Ok(Step::Stop),
                Pause::NextPartition(prefix) => {
                    current = None;
                    let Some(next) = key::successor(&prefix) else {
                        return Ok(Step::Continue);
                    };
                    self.range.start = Bound::Included(next);
                }
                Pause::NeedDeletions { prefix, key } => {
                    self.load_deletions(prefix).await?;
                    self.range.start = Bound::Included(key);
                }
                Pause::Failed(error) => return Err(error),
            }
            if self.range.is_empty() {
                return Ok(Step::Continue);
            }
        }
    }

    async fn resume(
        &mut self,
        position: &Position,
        sink: &mut Sink<'_>,
    ) -> Result<Option<(Vec<u8>, Deletions)>, Error> {
        let token = Token::of(&position.partition_key).value();
        let prefix = key::partition_prefix(self.table.storage_id, token, &position.partition_key);
        if !self.range.contains(&prefix) {
            return Ok(None);
        }
        let Some(clustering) = &position.clustering else {
            self.range.start = key::successor(&prefix).map_or(Bound::Unbounded, Bound::Included);
            return Ok(None);
        };
        let deletions = self
            .store
            .deletions(self.table.storage_id, token, &position.partition_key, &self.at);
        let deletions = deletions.await.map_err(|error| storage_read(&error))?;
        sink.begin_partition(&position.partition_key, Some(position.partition_limit_rows));
        if sink.wants_static() {
            bring_static(self.store, &self.at, &prefix, &deletions, sink).await?;
        }
        self.range.start = behind(key::row_key(&prefix, clustering));
        Ok(Some((prefix, deletions)))
    }

    async fn stride(&self, current: &mut Option<(Vec<u8>, Deletions)>, sink: &mut Sink<'_>) -> Result<Pause, Error> {
        let mut pause = Pause::End;
        let scanned = self
            .store
            .scan(
                Space::Rows,
                &self.range,
                Order::Forward,
                &self.at,
                |key, value| match self.visit(key, value, current, sink) {
                    Ok(None) => ControlFlow::Continue(()),
                    Ok(Some(why)) => {
                        pause = why;
                        ControlFlow::Break(())
                    }
                    Err(error) => {
                        pause = Pause::Failed(error);
                        ControlFlow::Break(())
                    }
                },
            )
            .await;
        scanned.map_err(|error| storage_read(&error))?;
        Ok(pause)
    }

    fn visit(
        &self,
        key: &[u8],
        value: &[u8],
        current: &mut Option<(Vec<u8>, Deletions)>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Pause>, Error> {
        if !current.as_ref().is_some_and(|(prefix, _)| key.starts_with(prefix)) {
            if current.take().is_some() && sink.end_partition()? == Step::Stop {
                return Ok(Some(Pause::Stop));
            }
            let parsed = key::parse(key).map_err(|error| storage_read(&error))?;
            let prefix = key.get(..parsed.prefix_len).unwrap_or_default().to_vec();
            if self.has_deletions && !self.ahead.knows(&prefix) {
                let key = key.to_vec();
                return Ok(Some(Pause::NeedDeletions { prefix, key }));
            }
            let deletions = self.ahead.by_prefix.get(&prefix).cloned().unwrap_or_default();
            sink.begin_partition(&parsed.partition_key, None);
            *current = Some((prefix, deletions));
        }
        let Some((prefix, deletions)) = current else {
            return Ok(None);
        };
        let view = RowView::parse(value).map_err(|error| storage_read(&error))?;
        let malformed = || Error::Server("a stored key cannot be read".to_owned());
        let (kind, clustering) = key::split_row(key, prefix.len()).ok_or_else(malformed)?;
        if kind == key::RowKind::Static {
            if sink.wants_static() {
                sink.set_static(key.len() + value.len(), &view, deletions.timestamp_covering_static())?;
            }
            return Ok(None);
        }
        if !covers(&self.select.rows, clustering) {
            return Ok(None);
        }
        let row_bytes = key.len() + value.len();
        Ok(
            match sink.row(clustering, row_bytes, &view, covering(deletions, clustering))? {
                Step::Continue => None,
                Step::SkipPartition => Some(Pause::NextPartition(prefix.clone())),
                Step::Stop => Some(Pause::Stop),
            },
        )
    }

    async fn load_deletions(&mut self, from: Vec<u8>) -> Result<(), Error> {
        let mut ahead = Ahead {
            loaded: true,
            ..Ahead::default()
        };
        let range = KeyRange {
            start: Bound::Included(from),
            end: self.range.end.clone(),
        };
        let mut outcome = Ok(());
        let scanned = self
            .store
            .scan(
                Space::Deletions,
                &range,
                Order::Forward,
                &self.at,
                |key, value| match deletion::parse(key, value) {
                    Ok(record) => {
                        let prefix = key.get(..record.prefix_len).unwrap_or_default();
                        if !ahead.by_prefix.contains_key(prefix) && ahead.by_prefix.len() == DELETIONS_AHEAD {
                            ahead.until = Some(prefix.to_vec());
                            return ControlFlow::Break(());
                        }
                        let deletions = ahead.by_prefix.entry(prefix.to_vec()).or_default();
                        match record.covered {
                            deletion::Covered::Partition => deletions.partition = Some(record.deletion),
                            deletion::Covered::Range { start, end } => deletions.ranges.push(RangeTombstone {
                                start,
                                end,
                                deletion: record.deletion,
                            }),
                        }
                        ControlFlow::Continue(())
                    }
                    Err(error) => {
                        outcome = Err(storage_read(&error));
                        ControlFlow::Break(())
                    }
                },
            )
            .await;
        scanned.map_err(|error| storage_read(&error))?;
        self.ahead = ahead;
        outcome
    }
}

/// Whether a deleted range reaches into this one.
fn overlaps(range: &ClusteringRange, deleted: &RangeTombstone) -> bool {
    let begins_before_end = match (&deleted.start, range.end.as_deref()) {
        (Bound::Included(start) | Bound::Excluded(start), Some(end)) => start.as_slice() < end,
        _ => true,
    };
    let ends_behind_start = match &deleted.end {
        Bound::Included(end) => range.start <= *end,
        Bound::Excluded(end) => range.start < *end,
        Bound::Unbounded => true,
    };
    begins_before_end && ends_behind_start
}

/// Whether a statement's rows include this clustering key.
pub(crate) fn covers(rows: &Clustering, clustering: &[u8]) -> bool {
    match rows {
        Clustering::All => true,
        Clustering::Keys(keys) => keys.binary_search_by(|key| key.as_slice().cmp(clustering)).is_ok(),
        Clustering::Ranges(ranges) => {
            let after = ranges.partition_point(|range| range.start.as_slice() <= clustering);
            after
                .checked_sub(1)
                .and_then(|place| ranges.get(place))
                .is_some_and(|range| range.end.as_deref().is_none_or(|end| clustering < end))
        }
    }
}
