//! Reads by way of an index: candidates from its entries, in the order of the ring, each brought to the sink as a scan would.
//!
//! ```text
//! one value        entries lie in the order of the ring:  seek · some entries · their rows · seek · …
//! several, ranges  entries lie in the order of values:    pass over all · keep the least places · their rows · pass again · …
//! ```
//! Memory is bounded: so many places at a time, whatever the index holds, and these count for the memory of the answer. An index of regular or clustering columns leads to rows; one
//! of static columns or of the partition key leads to partitions, which are then read whole. An index that would cost more than the
//! scan that it spares, or that is not complete, is not used: the caller scans and filters, with the same answer.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use super::Indexes;
use super::choice::{may_be_in, may_seek_in_keys};
use crate::command::{IndexProbe, Partitions, Read};
use crate::executor::paging::Position;
use crate::executor::read::sink::{Sink, Step};
use crate::executor::read::source::{self, One, Visits, bring_static, covering, covers};
use crate::executor::{Error, storage_read};
use crate::partition::store::{Deletions, KeyRange, Order, RowView, Snapshot, Space, Store, key, split_entry};
use crate::partition::{PhysicalPartition, StoreId, TablePartitions};
use crate::schema::{ColumnKind, StorageId, Table};
use crate::token::Token;

/// Places that one pass over unordered entries keeps.
const PASS_PLACES: usize = 8192;

/// Bytes of places that one pass keeps.
const PASS_BYTES: usize = 4 * 1024 * 1024;

/// Places that one seek into ordered entries takes: the first, and the most.
const SEEK_PLACES_MIN: usize = 32;
const SEEK_PLACES_MAX: usize = 1024;

/// Bytes of places behind which a seek takes no more.
const SEEK_BYTES: usize = 256 * 1024;

/// Memory of a place besides its bytes.
const PLACE_BYTES: usize = 48;

/// Entries of each probe that are counted to choose among several.
const COUNTED_ENTRIES: usize = 512;

/// Entries of one partition that a seek passes before it seeks behind the partition.
const SAME_PARTITION_ENTRIES: usize = 64;

/// Bytes of a row where a store knows only bytes.
const ROW_BYTES: u64 = 100;

/// Brings the rows of a SELECT to a sink by way of one of its probes. The index used; `None`: none is of use, and nothing was brought.
///
/// # Errors
/// As [`source::run`].
pub(crate) async fn run<'a>(
    indexes: &Indexes,
    partitions: &'a TablePartitions,
    select: &'a Read,
    resume: Option<&Position>,
    sink: &mut Sink<'_>,
) -> Result<Option<&'a str>, Error> {
    if select.probes.is_empty() || sink.is_exhausted() {
        return Ok(None);
    }
    match &select.partitions {
        Partitions::Keys(keys) => run_keys(indexes, partitions, select, keys, resume, sink).await,
        Partitions::Ring { lower, upper } => {
            let from = resume.map_or(*lower, |position| Token::of(&position.partition_key).value());
            let lower = from.max(*lower);
            let mut used = None;
            for (number, partition) in partitions.overlapping(lower, *upper).iter().enumerate() {
                let inside = (lower.max(partition.lower), partition.upper.min(*upper));
                let read = IndexRead::new(indexes, partition, select, inside, sink).await?;
                if read.is_some() || number > 0 {
                    let is_first = source::is_first_visit(partition, resume);
                    sink.enter(select.table.storage_id, partition, None, is_first);
                }
                let step = match read {
                    Some(read) => {
                        used = Some(read.probe.index.as_str());
                        read.run(resume, sink).await?
                    }
                    // Nothing was brought yet: the caller may do it all.
                    None if number == 0 => return Ok(None),
                    None => source::ring(&partition.store, select, inside, resume, sink).await?,
                };
                if step == Step::Stop {
                    break;
                }
            }
            Ok(used)
        }
    }
}

/// Entries of an index that a SELECT would go by, counted up to `most` in all physical partitions that it visits.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn count(
    partitions: &TablePartitions,
    select: &Read,
    index: &str,
    most: usize,
) -> Result<usize, Error> {
    let Some(probe) = select.probes.iter().find(|probe| probe.index == index) else {
        return Ok(0);
    };
    let mut stores: Vec<(StoreId, &Store)> = Vec::new();
    for partition in source::concerned(partitions, select) {
        if stores.iter().all(|(id, _)| *id != partition.store_id) {
            stores.push((partition.store_id, &partition.store));
        }
    }
    let mut counted = 0_usize;
    for (id, store) in stores {
        let at = store.snapshot();
        for range in &probe.ranges {
            let range = entry_range(probe.storage_id, &range.start, range.end.as_deref());
            let scanned = store.scan(Space::Indexes, &range, Order::Forward, &at, |key, value| {
                let token = split_entry(key, value).and_then(|(_, place)| place.first_chunk::<8>());
                let token = token.map(|token| Token::bound((u64::from_be_bytes(*token) ^ (1 << 63)).cast_signed()));
                // What was moved may lie where it was for a while.
                let is_here = |token| partitions.of(token).store_id == id;
                counted += usize::from(token.is_some_and(|token| may_be_in(select, token) && is_here(token)));
                if counted < most {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            scanned.await.map_err(|error| storage_read(&error))?;
        }
    }
    Ok(counted)
}

/// The rows of some partitions. Where the entries of one value lie beside each other within a partition, they are sought there.
async fn run_keys<'a>(
    indexes: &Indexes,
    partitions: &'a TablePartitions,
    select: &'a Read,
    keys: &[Bytes],
    resume: Option<&Position>,
    sink: &mut Sink<'_>,
) -> Result<Option<&'a str>, Error> {
    let table = select.table.as_ref();
    if !may_seek_in_keys(select) {
        return Ok(None);
    }
    let (left, mut inside) = source::keys_left(keys, resume)?;
    let mut visits = Visits::new(partitions, keys, left, inside.is_some());
    let mut used = None;
    for (number, partition_key) in left.iter().enumerate() {
        let token = Token::of(partition_key);
        let (partition, is_first) = visits.of(token);
        let read = IndexRead::new(indexes, partition, select, (token.value(), token.value()), sink).await?;
        let read = read.filter(|read| !read.by_partition && read.ordered.is_some());
        if read.is_some() || number > 0 {
            sink.enter(table.storage_id, partition, Some((token, partition_key)), is_first);
        }
        let resume = inside.take();
        let step = match read {
            Some(mut read) => {
                used = Some(read.probe.index.as_str());
                let prefix = key::partition_prefix(table.storage_id, token.value(), partition_key);
                let place = prefix.get(4..).unwrap_or_default();
                read.next = Bound::Included(place.to_vec());
                read.end = key::successor(place);
                read.run(resume, sink).await?
            }
            None if number == 0 => return Ok(None),
            None => {
                let one = One {
                    store: &partition.store,
                    at: &partition.store.snapshot(),
                    select,
                    table,
                    token,
                    partition_key,
                };
                one.run(resume, sink).await?
            }
        };
        if step == Step::Stop {
            break;
        }
    }
    Ok(used)
}

/// A read of one index of one physical partition.
///
/// A *place* is what follows the table id in a row's key: token, partition key, kind, clustering key.
pub(super) struct IndexRead<'a> {
    store: &'a Store,
    at: Snapshot,
    select: &'a Read,
    table: &'a Table,
    pub(super) probe: &'a IndexProbe,
    /// Entries lead to partitions rather than to rows.
    pub(super) by_partition: bool,
    /// The encoded value of all entries, where they lie in the order of the ring.
    pub(super) ordered: Option<Vec<u8>>,
    /// Where the next places lie.
    next: Bound<Vec<u8>>,
    /// Behind the last place; `None`: there is no end.
    end: Option<Vec<u8>>,
    /// Places to take at once.
    places_max: usize,
    /// Entries that a pass may go over before the scan costs less.
    pass_entries_max: usize,
    /// Most bytes that the places of a pass take.
    pass_bytes: usize,
}

/// The partition being read.
struct Current {
    prefix: Vec<u8>,
    deletions: Deletions,
    /// Nothing more of it is wanted.
    is_done: bool,
}

/// Where a token begins among places.
fn token_place(token: i64) -> Vec<u8> {
    (token.cast_unsigned() ^ (1 << 63)).to_be_bytes().to_vec()
}

/// The range of entries between two encoded values of one index.
fn entry_range(index: StorageId, start: &[u8], end: Option<&[u8]>) -> KeyRange {
    let id = index.to_be_bytes();
    KeyRange {
        start: Bound::Included([&id, start].concat()),
        end: match end {
            Some(end) => Bound::Excluded([&id, end].concat()),
            None => key::successor(&id).map_or(Bound::Unbounded, Bound::Excluded),
        },
    }
}

impl<'a> IndexRead<'a> {
    /// Chooses among the probes; `None` when none is of use.
    pub(super) async fn new(
        indexes: &Indexes,
        partition: &'a PhysicalPartition,
        select: &'a Read,
        (lower, upper): (i64, i64),
        sink: &Sink<'_>,
    ) -> Result<Option<Self>, Error> {
        let table = select.table.as_ref();
        let store = &partition.store;
        // Asked before and after: complete before, so the snapshot has what its build put last; complete after, so that it was
        // still kept up when the snapshot was taken.
        let is_complete = |probe: &&IndexProbe| indexes.is_complete(probe.storage_id);
        let mut usable: Vec<&IndexProbe> = select.probes.iter().filter(is_complete).collect();
        let at = store.snapshot();
        usable.retain(is_complete);
        let Some(probe) = best(store, &at, &usable).await? else {
            return Ok(None);
        };
        let column = table
            .indexes
            .get(&probe.index)
            .and_then(|index| index.target(table))
            .and_then(|target| table.columns.get(target.column));
        let Some(column) = column else { return Ok(None) };
        let wanted = sink.rows_wanted();
        let mut read = Self {
            store,
            at,
            select,
            table,
            probe,
            by_partition: matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static),
            ordered: None,
            next: Bound::Included(token_place(lower)),
            end: upper.checked_add(1).map(token_place),
            places_max: wanted
                .map_or(SEEK_PLACES_MIN, |rows| rows.saturating_add(1))
                .clamp(SEEK_PLACES_MIN, SEEK_PLACES_MAX),
            pass_entries_max: usize::MAX,
            pass_bytes: 0,
        };
        if let [range] = probe.ranges.as_slice()
            && probe.is_equality
        {
            // Values that are equal in other bytes lie beside each other, each in an order of its own.
            match read.first_value(&range.start, range.end.as_deref()).await? {
                Some(value) if value == range.start => read.ordered = Some(value),
                Some(_) => {}
                None => read.ordered = Some(range.start.clone()),
            }
        }
        if read.ordered.is_none() {
            let size = store.bytes_in(&key::token_range(table.storage_id, lower, upper));
            let rows = if size.is_exact {
                size.rows
            } else {
                size.rows.max(size.bytes / ROW_BYTES)
            };
            let at_once = wanted.unwrap_or(PASS_PLACES).min(PASS_PLACES);
            // A scan looks at rows·wanted/found rows, passes look at as many entries as are found, each time.
            let even = rows.saturating_mul(u64::try_from(at_once).unwrap_or(1)).isqrt();
            read.pass_entries_max = usize::try_from(even).unwrap_or(usize::MAX).max(PASS_PLACES);
            if read.is_too_much().await? {
                return Ok(None);
            }
        }
        Ok(Some(read))
    }

    /// The encoded value of the first entry of a range.
    async fn first_value(&self, start: &[u8], end: Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let range = entry_range(self.probe.storage_id, start, end);
        let mut first = None;
        self.entries(&range, |value, _| {
            first = Some(value.to_vec());
            ControlFlow::Break(())
        })
        .await?;
        Ok(first)
    }

    /// Whether passes go over more entries than they are worth. Adds up what the places of a pass will take.
    async fn is_too_much(&mut self) -> Result<bool, Error> {
        let (mut passed, mut bytes) = (0_usize, 0_usize);
        for range in &self.probe.ranges {
            let range = entry_range(self.probe.storage_id, &range.start, range.end.as_deref());
            self.entries(&range, |_, place| {
                passed += 1;
                bytes += place.len() + PLACE_BYTES;
                if passed > self.pass_entries_max {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .await?;
        }
        self.pass_bytes = bytes.min(PASS_BYTES + PASS_PLACES * PLACE_BYTES);
        Ok(passed > self.pass_entries_max)
    }

    /// Walks entries: the encoded value and the place of each.
    async fn entries(
        &self,
        range: &KeyRange,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let mut is_damaged = false;
        let visit = |key: &[u8], value: &[u8]| match split_entry(key, value) {
            Some((encoded, place)) => visit(encoded, place),
            None => {
                is_damaged = true;
                ControlFlow::Break(())
            }
        };
        let scanned = self
            .store
            .scan(Space::Indexes, range, Order::Forward, &self.at, visit)
            .await;
        scanned.map_err(|error| storage_read(&error))?;
        if is_damaged {
            return Err(Error::Server("a stored index entry cannot be read".to_owned()));
        }
        Ok(())
    }

    /// The next places, in order, each once. Whether there may be more behind them.
    async fn places(&mut self, sink: &mut Sink<'_>) -> Result<(Vec<Vec<u8>>, bool), Error> {
        let Some(value) = self.ordered.clone() else {
            sink.hold_places(self.pass_bytes)?;
            return self.pass().await;
        };
        let (places, rest) = self.seek(&value).await?;
        sink.hold_places(places.iter().map(|place| place.len() + PLACE_BYTES).sum())?;
        Ok((places, rest))
    }

    /// What of a place is looked for: the row's, or its partition's.
    fn target<'b>(&self, place: &'b [u8]) -> &'b [u8] {
        if self.by_partition {
            key::partition_place(place).unwrap_or(place)
        } else {
            place
        }
    }

    async fn seek(&mut self, value: &[u8]) -> Result<(Vec<Vec<u8>>, bool), Error> {
        let mut places: Vec<Vec<u8>> = Vec::new();
        let (mut rest, mut bytes) = (true, 0_usize);
        while rest && places.len() < self.places_max && bytes < SEEK_BYTES {
            let prefix = [&self.probe.storage_id.to_be_bytes(), value].concat();
            let with_prefix = |place: &Vec<u8>| [prefix.as_slice(), place].concat();
            let range = KeyRange {
                start: self.next.as_ref().map(with_prefix),
                end: match &self.end {
                    Some(end) => Bound::Excluded(with_prefix(end)),
                    None => key::successor(&prefix).map_or(Bound::Unbounded, Bound::Excluded),
                },
            };
            if range.is_empty() {
                return Ok((places, false));
            }
            rest = false;
            let (places_max, mut same) = (self.places_max, 0_usize);
            self.entries(&range, |_, place| {
                let target = self.target(place);
                if places.last().is_some_and(|last| last == target) {
                    same += 1;
                    if same < SAME_PARTITION_ENTRIES {
                        return ControlFlow::Continue(());
                    }
                    rest = true;
                    return ControlFlow::Break(());
                }
                if places.len() == places_max || bytes >= SEEK_BYTES {
                    rest = true;
                    return ControlFlow::Break(());
                }
                same = 0;
                bytes += target.len();
                places.push(target.to_vec());
                ControlFlow::Continue(())
            })
            .await?;
            self.go_behind(places.last());
        }
        self.places_max = (self.places_max * 2).min(SEEK_PLACES_MAX);
        Ok((places, rest))
    }

    /// The next places lie behind this one.
    fn go_behind(&mut self, place: Option<&Vec<u8>>) {
        if let Some(place) = place {
            self.next = if self.by_partition {
                key::successor(place).map_or_else(|| Bound::Excluded(place.clone()), Bound::Included)
            } else {
                Bound::Excluded(place.clone())
            };
        }
    }

    async fn pass(&mut self) -> Result<(Vec<Vec<u8>>, bool), Error> {
        let mut least = BTreeSet::<Vec<u8>>::new();
        let (mut bytes, mut rest) = (0_usize, false);
        for range in &self.probe.ranges {
            let range = entry_range(self.probe.storage_id, &range.start, range.end.as_deref());
            self.entries(&range, |_, place| {
                let target = self.target(place);
                let is_before = match &self.next {
                    Bound::Included(next) => target < next.as_slice(),
                    Bound::Excluded(next) => target <= next.as_slice(),
                    Bound::Unbounded => false,
                };
                let is_behind = self.end.as_ref().is_some_and(|end| target >= end.as_slice());
                let is_full = least.len() >= PASS_PLACES || bytes >= PASS_BYTES;
                if is_before || is_behind {
                    return ControlFlow::Continue(());
                }
                if is_full && least.last().is_some_and(|last| target > last.as_slice()) {
                    rest = true;
                    return ControlFlow::Continue(());
                }
                if least.insert(target.to_vec()) {
                    bytes += target.len();
                    while least.len() > PASS_PLACES || (bytes > PASS_BYTES && least.len() > 1) {
                        if let Some(last) = least.pop_last() {
                            bytes -= last.len();
                            rest = true;
                        }
                    }
                }
                ControlFlow::Continue(())
            })
            .await?;
        }
        self.go_behind(least.last());
        Ok((least.into_iter().collect(), rest))
    }

    async fn run(mut self, resume: Option<&Position>, sink: &mut Sink<'_>) -> Result<Step, Error> {
        let mut current = None;
        if let Some(position) = resume {
            match self.resume(position, sink).await? {
                Resumed::Inside(partition) => current = partition,
                Resumed::Stopped => return Ok(Step::Stop),
            }
        }
        let mut rest = true;
        while rest {
            let (places, more) = self.places(sink).await?;
            rest = more;
            for place in places {
                let step = if self.by_partition {
                    self.bring_partition(&place, None, sink).await?
                } else {
                    self.bring_row(&place, &mut current, sink).await?
                };
                if step == Step::Stop {
                    return Ok(step);
                }
            }
            // What is wanted no more of a partition need not be sought either.
            if let Some(Current {
                prefix, is_done: true, ..
            }) = &current
                && rest
            {
                let place = prefix.get(4..).unwrap_or_default();
                if let Some(behind) = key::successor(place)
                    && self.is_before(&behind)
                {
                    self.next = Bound::Included(behind);
                }
            }
        }
        sink.hold_places(0)?;
        if current.is_some_and(|current| !current.is_done) {
            return sink.end_partition();
        }
        Ok(Step::Continue)
    }

    /// Whether the next places begin before this one.
    fn is_before(&self, place: &[u8]) -> bool {
        match &self.next {
            Bound::Included(next) | Bound::Excluded(next) => next.as_slice() < place,
            Bound::Unbounded => true,
        }
    }

    async fn resume(&mut self, position: &Position, sink: &mut Sink<'_>) -> Result<Resumed, Error> {
        let token = Token::of(&position.partition_key).value();
        let prefix = key::partition_prefix(self.table.storage_id, token, &position.partition_key);
        let place = prefix.get(4..).unwrap_or_default();
        let is_inside = !self.is_before_start(place) && self.end.as_ref().is_none_or(|end| place < end.as_slice());
        if !is_inside {
            return Ok(Resumed::Inside(None));
        }
        let behind = key::successor(place).map_or(Bound::Unbounded, Bound::Included);
        let Some(clustering) = &position.clustering else {
            self.next = behind;
            return Ok(Resumed::Inside(None));
        };
        if self.by_partition {
            self.next = behind;
            let place = place.to_vec();
            let step = self.bring_partition(&place, Some(position), sink).await?;
            return Ok(if step == Step::Stop {
                Resumed::Stopped
            } else {
                Resumed::Inside(None)
            });
        }
        let row = key::row_key(&prefix, clustering);
        self.next = Bound::Excluded(row.get(4..).unwrap_or_default().to_vec());
        let left = Some(position.partition_limit_rows);
        let current = self.enter(prefix, &position.partition_key, token, left, sink).await?;
        Ok(Resumed::Inside(Some(current)))
    }

    fn is_before_start(&self, place: &[u8]) -> bool {
        match &self.next {
            Bound::Included(next) | Bound::Excluded(next) => place < next.as_slice(),
            Bound::Unbounded => false,
        }
    }

    /// Begins a partition of which rows are brought.
    async fn enter(
        &self,
        prefix: Vec<u8>,
        partition_key: &[u8],
        token: i64,
        left: Option<Option<u32>>,
        sink: &mut Sink<'_>,
    ) -> Result<Current, Error> {
        let deletions = self
            .store
            .deletions(self.table.storage_id, token, partition_key, &self.at)
            .await
            .map_err(|error| storage_read(&error))?;
        sink.begin_partition(partition_key, left);
        if sink.wants_static() {
            bring_static(self.store, &self.at, &prefix, &deletions, sink).await?;
        }
        Ok(Current {
            prefix,
            deletions,
            is_done: false,
        })
    }

    async fn bring_row(&self, place: &[u8], current: &mut Option<Current>, sink: &mut Sink<'_>) -> Result<Step, Error> {
        let key = [&self.table.storage_id.to_be_bytes(), place].concat();
        if !current.as_ref().is_some_and(|current| key.starts_with(&current.prefix)) {
            if current.take().is_some_and(|current| !current.is_done) && sink.end_partition()? == Step::Stop {
                return Ok(Step::Stop);
            }
            let parsed = key::parse(&key).map_err(|error| storage_read(&error))?;
            let prefix = key.get(..parsed.prefix_len).unwrap_or_default().to_vec();
            let entered = self.enter(prefix, &parsed.partition_key, parsed.token, None, sink);
            *current = Some(entered.await?);
        }
        let Some(current) = current.as_mut().filter(|current| !current.is_done) else {
            return Ok(Step::Continue);
        };
        let malformed = || Error::Server("a stored key cannot be read".to_owned());
        let (kind, clustering) = key::split_row(&key, current.prefix.len()).ok_or_else(malformed)?;
        if kind == key::RowKind::Static || !covers(&self.select.rows, clustering) {
            return Ok(Step::Continue);
        }
        let found = self.store.get(Space::Rows, &key, &self.at).await;
        let Some(found) = found.map_err(|error| storage_read(&error))? else {
            return Ok(Step::Continue);
        };
        let view = RowView::parse(&found).map_err(|error| storage_read(&error))?;
        let row_bytes = key.len() + found.len();
        let step = sink.row(clustering, row_bytes, &view, covering(&current.deletions, clustering))?;
        current.is_done = step == Step::SkipPartition;
        Ok(step)
    }

    async fn bring_partition(
        &self,
        place: &[u8],
        resume: Option<&Position>,
        sink: &mut Sink<'_>,
    ) -> Result<Step, Error> {
        let prefix = [&self.table.storage_id.to_be_bytes(), place].concat();
        let key = key::static_row_key(&prefix);
        let parsed = key::parse(&key).map_err(|error| storage_read(&error))?;
        let one = One {
            store: self.store,
            at: &self.at,
            select: self.select,
            table: self.table,
            token: Token::bound(parsed.token),
            partition_key: &parsed.partition_key,
        };
        one.run(resume, sink).await
    }
}

/// Where a page before has ended.
enum Resumed {
    /// Inside this partition, or between two.
    Inside(Option<Current>),
    /// The page is full already.
    Stopped,
}

/// The probe with the fewest entries, as far as counting goes; of those with many the first that asks for one value.
async fn best<'a>(store: &Store, at: &Snapshot, usable: &[&'a IndexProbe]) -> Result<Option<&'a IndexProbe>, Error> {
    if let [] | [_] = usable {
        return Ok(usable.first().copied());
    }
    let mut counted = Vec::with_capacity(usable.len());
    for probe in usable {
        let mut count = 0_usize;
        for range in &probe.ranges {
            let range = entry_range(probe.storage_id, &range.start, range.end.as_deref());
            let scanned = store.scan(Space::Indexes, &range, Order::Forward, at, |_, _| {
                count += 1;
                if count < COUNTED_ENTRIES {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            scanned.await.map_err(|error| storage_read(&error))?;
        }
        counted.push((count.min(COUNTED_ENTRIES), !probe.is_equality, *probe));
    }
    let least = counted
        .into_iter()
        .min_by_key(|(count, unordered, _)| (*count, *unordered));
    Ok(least.map(|(_, _, probe)| probe))
}
