//! Reads one index in one physical partition: takes candidates from its entries, in the order of the ring, and reads
//! each row as a scan would.
//!
//! ```text
//! one value        entries lie in the order of the ring:  seek · some entries · their rows · seek · …
//! several, ranges  entries lie in the order of values:  pass over all · keep the least places · their rows · again · …
//! ```
//! Memory is bounded: a limited number of places is kept at a time, whatever the index holds, and their bytes count as
//! memory of the answer. An index of regular or clustering columns leads to rows; one of static columns or of the
//! partition key leads to partitions, which are then read whole. An index that would cost more than the scan that it
//! replaces, or that is not complete, is not used: the caller scans and filters, with the same answer.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::engine::index::Indexes;
use crate::engine::part::{Logical, PartSink, Reader, Step, bring_static, covering};
use crate::engine::{Error, storage_read};
use crate::partition::entries::{Entry, EntryRange, Place, PlaceRange, PlaceRef};
use crate::partition::{Hosted, LogicalPartition, Moment};
use helenus_base::invariant::Broken;
use helenus_schema::command::{IndexProbe, Position, Read, Spared};
use helenus_schema::schema::{ColumnKind, Table};
use helenus_storage::storage::{Deletions, RowView};
use helenus_types::token::{KeySpan, Token};

/// Places that one pass over unordered entries keeps.
const PASS_PLACES: usize = 8192;

/// Bytes of places that one pass keeps.
const PASS_BYTES: usize = 4 * 1024 * 1024;

/// Places that one seek into ordered entries takes: the first, and the most.
const SEEK_PLACES_MIN: usize = 32;
const SEEK_PLACES_MAX: usize = 1024;

/// Entries of one partition that a walk skips singly before it seeks past the partition.
const SAME_PARTITION_ENTRIES: usize = 64;

/// Bytes of places after which a seek takes no more.
const SEEK_BYTES: usize = 256 * 1024;

/// Memory of a place, excluding its bytes.
const PLACE_BYTES: usize = 48;

/// Entries of each probe that are counted to choose among several.
const COUNTED_ENTRIES: usize = 512;

/// Assumed bytes of a row, where a store has only the bytes of a table and not its number of rows.
const ROW_BYTES: u64 = 100;

/// A read of one index of one physical partition.
pub(crate) struct Walk<'a> {
    partition: &'a Hosted,
    at: Moment,
    select: &'a Read,
    table: &'a Table,
    probe: &'a IndexProbe,
    /// Whether entries lead to partitions rather than to rows.
    by_partition: bool,
    /// The encoded value of all entries, where they lie in the order of the ring.
    ordered: Option<Vec<u8>>,
    /// The places yet to visit.
    places: PlaceRange,
    /// Places to take at once.
    places_max: usize,
    /// Entries that a pass may visit before the scan costs less.
    pass_entries_max: usize,
    /// Most bytes that the places of a pass take.
    pass_bytes: usize,
}

/// The partition being read.
struct Current<'a> {
    partition: LogicalPartition<'a>,
    deletions: Deletions,
    /// No more of it is needed.
    is_done: bool,
}

/// The usable probes of a SELECT, under every snapshot that is taken from now on.
pub(crate) struct Probes<'a> {
    indexes: &'a Indexes,
    select: &'a Read,
    complete: Vec<&'a IndexProbe>,
}

impl<'a> Probes<'a> {
    /// Probes for one request. Made before a snapshot is taken: if the index is complete by then, the snapshot has all
    /// its entries.
    pub(crate) fn now(indexes: &'a Indexes, select: &'a Read) -> Self {
        let complete = select
            .probes
            .iter()
            .filter(|probe| indexes.is_complete(probe.storage_id));
        Self {
            indexes,
            select,
            complete: complete.collect(),
        }
    }

    /// The usable probes, for a message.
    pub(crate) fn usable(&self) -> Vec<IndexProbe> {
        self.complete.iter().copied().cloned().collect()
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.complete.is_empty()
    }

    /// Chooses among the probes for part of a physical partition. `None` means that none is worth using.
    pub(crate) async fn walk(
        &self,
        partition: &'a Hosted,
        at: Moment,
        inside: &KeySpan,
        wanted: Option<usize>,
    ) -> Result<Option<Walk<'a>>, Error> {
        Ok(self.choose(partition, at, inside, wanted).await?.ok())
    }

    /// As [`Probes::walk`], with the reason if no index is used.
    pub(super) async fn choose(
        &self,
        partition: &'a Hosted,
        at: Moment,
        inside: &KeySpan,
        wanted: Option<usize>,
    ) -> Result<Result<Walk<'a>, Spared>, Error> {
        let (select, table) = (self.select, self.select.table.as_ref());
        // The index must still be complete, so that commits maintained it when the snapshot was taken.
        let mut usable = self.complete.clone();
        usable.retain(|probe| self.indexes.is_complete(probe.storage_id));
        let Some(probe) = best(partition, &at, &usable).await? else {
            return Ok(Err(Spared::Building));
        };
        let column = table
            .indexes
            .get(&probe.index)
            .and_then(|index| index.target(table))
            .and_then(|target| table.columns.get(target.column));
        let Some(column) = column else {
            return Ok(Err(Spared::Building));
        };
        let mut walk = Walk {
            partition,
            at,
            select,
            table,
            probe,
            by_partition: matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static),
            ordered: None,
            places: PlaceRange::of_span(inside),
            places_max: wanted
                .map_or(SEEK_PLACES_MIN, |rows| rows.saturating_add(1))
                .clamp(SEEK_PLACES_MIN, SEEK_PLACES_MAX),
            pass_entries_max: usize::MAX,
            pass_bytes: 0,
        };
        if let [range] = probe.ranges.as_slice()
            && probe.is_equality
        {
            // Equal values may have several encodings. Their entries are adjacent, but each encoding has an order of
            // its own.
            match walk.first_value(&range.start, range.end.as_deref()).await? {
                Some(value) if value == range.start => walk.ordered = Some(value),
                Some(_) => {}
                None => walk.ordered = Some(range.start.clone()),
            }
        }
        if walk.ordered.is_none() {
            let size = partition.bytes_in(table.storage_id, inside);
            let rows = if size.is_exact {
                size.rows
            } else {
                size.rows.max(size.bytes / ROW_BYTES)
            };
            let at_once = wanted.unwrap_or(PASS_PLACES).min(PASS_PLACES);
            // A scan reads rows·wanted/found rows; passes read as many entries as are found, each time.
            let even = rows.saturating_mul(u64::try_from(at_once).unwrap_or(1)).isqrt();
            walk.pass_entries_max = usize::try_from(even).unwrap_or(usize::MAX).max(PASS_PLACES);
            if walk.is_too_much().await? {
                let entries = walk.pass_entries_max.saturating_add(1);
                return Ok(Err(Spared::Dearer { entries, rows }));
            }
        }
        Ok(Ok(walk))
    }
}

impl<'a> Walk<'a> {
    /// The same walk over other places.
    pub(crate) fn over(self, places: PlaceRange) -> Self {
        Self { places, ..self }
    }

    /// The index's name.
    pub(crate) fn index(&self) -> &'a str {
        &self.probe.index
    }

    /// Whether the entries lie in the order of the ring.
    pub(crate) const fn is_ordered(&self) -> bool {
        self.ordered.is_some()
    }

    /// Whether entries lead to rows and lie in the order of the ring, so that they can be sought within a logical
    /// partition.
    pub(crate) fn seeks_rows(&self) -> bool {
        !self.by_partition && self.is_ordered()
    }

    /// The encoded value of the first entry of a range.
    async fn first_value(&self, start: &[u8], end: Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let range = EntryRange::of_values(self.probe.storage_id, start, end);
        let mut first = None;
        self.entries(&range, |entry| {
            first = Some(entry.value.to_vec());
            ControlFlow::Break(())
        })
        .await?;
        Ok(first)
    }

    /// Whether passes visit more entries than a scan would cost, entries of other partitions included. Sums up the
    /// bytes that the places of a pass will take.
    async fn is_too_much(&mut self) -> Result<bool, Error> {
        let (mut passed, mut bytes) = (0_usize, 0_usize);
        for range in &self.probe.ranges {
            let range = EntryRange::of_values(self.probe.storage_id, &range.start, range.end.as_deref());
            self.entries(&range, |entry| {
                passed += 1;
                bytes += entry.place.map_or(0, |place| place.len() + PLACE_BYTES);
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

    async fn entries(
        &self,
        range: &EntryRange,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let walked = self.partition.entries(range, &self.at, visit).await;
        walked.map_err(|error| storage_read(&error))
    }

    /// Takes the next places, in order, each once. Returns whether there may be more after them.
    async fn places(&mut self, reader: &mut Reader<'_, impl PartSink>) -> Result<(Vec<Place>, bool), Error> {
        let Some(value) = self.ordered.clone() else {
            reader.hold_places(self.pass_bytes)?;
            return self.pass().await;
        };
        let (places, rest) = self.seek(&value).await?;
        reader.hold_places(places.iter().map(|place| place.as_ref().len() + PLACE_BYTES).sum())?;
        Ok((places, rest))
    }

    /// The part of a place that is read: its row, or its partition.
    fn target<'b>(&self, place: PlaceRef<'b>) -> PlaceRef<'b> {
        if self.by_partition { place.partition() } else { place }
    }

    async fn seek(&mut self, value: &[u8]) -> Result<(Vec<Place>, bool), Error> {
        let mut places: Vec<Place> = Vec::new();
        let (mut rest, mut bytes) = (true, 0_usize);
        while rest && places.len() < self.places_max && bytes < SEEK_BYTES {
            let Some(range) = EntryRange::of_value(self.probe.storage_id, value, &self.places) else {
                return Ok((places, false));
            };
            rest = false;
            let (places_max, mut same) = (self.places_max, 0_usize);
            self.entries(&range, |entry| {
                let Some(place) = entry.place else {
                    return ControlFlow::Continue(());
                };
                let target = self.target(place);
                if places.last().is_some_and(|last| last.as_ref() == target) {
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
                places.push(target.to_place());
                ControlFlow::Continue(())
            })
            .await?;
            self.skip_past(places.last());
        }
        self.places_max = (self.places_max * 2).min(SEEK_PLACES_MAX);
        Ok((places, rest))
    }

    /// Makes the next places begin after this one.
    fn skip_past(&mut self, place: Option<&Place>) {
        if let Some(place) = place {
            self.places.skip_past(place, self.by_partition);
        }
    }

    async fn pass(&mut self) -> Result<(Vec<Place>, bool), Error> {
        let mut least = BTreeSet::<Place>::new();
        let (mut bytes, mut rest) = (0_usize, false);
        for range in &self.probe.ranges {
            let range = EntryRange::of_values(self.probe.storage_id, &range.start, range.end.as_deref());
            self.entries(&range, |entry| {
                let target = entry.place.map(|place| self.target(place));
                let Some(target) = target.filter(|target| self.places.has(*target)) else {
                    return ControlFlow::Continue(());
                };
                let is_full = least.len() >= PASS_PLACES || bytes >= PASS_BYTES;
                if is_full && least.last().is_some_and(|last| target > last.as_ref()) {
                    rest = true;
                    return ControlFlow::Continue(());
                }
                if least.insert(target.to_place()) {
                    bytes += target.len();
                    while least.len() > PASS_PLACES || (bytes > PASS_BYTES && least.len() > 1) {
                        if let Some(last) = least.pop_last() {
                            bytes -= last.as_ref().len();
                            rest = true;
                        }
                    }
                }
                ControlFlow::Continue(())
            })
            .await?;
        }
        self.skip_past(least.last());
        Ok((least.into_iter().collect(), rest))
    }

    pub(crate) async fn run(
        mut self,
        resume: Option<&Position>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let mut current = None;
        if let Some(position) = resume {
            match self.resume(position, reader).await? {
                Resumed::Inside(partition) => current = partition,
                Resumed::Stopped => return Ok(Step::Stop),
            }
        }
        let mut rest = true;
        while rest {
            let (places, more) = self.places(reader).await?;
            rest = more;
            for place in places {
                let step = if self.by_partition {
                    self.bring_partition(&place, None, reader).await?
                } else {
                    self.bring_row(&place, &mut current, reader).await?
                };
                if step == Step::Stop {
                    return Ok(step);
                }
            }
            // If no more rows of a logical partition are wanted, do not seek the rest.
            if let Some(current) = current.as_ref().filter(|current| rest && current.is_done) {
                self.places.skip(current.partition.prefix());
            }
        }
        reader.hold_places(0)?;
        if current.is_some_and(|current| !current.is_done) {
            return reader.end_partition();
        }
        Ok(Step::Continue)
    }

    async fn resume<'p>(
        &mut self,
        position: &'p Position,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Resumed<'a>, Error> {
        let token = self.partition.token(&position.partition_key);
        if !self.partition.span.contains(token.value(), &position.partition_key) {
            return Ok(Resumed::Inside(None));
        }
        let partition = self.logical(token, &position.partition_key)?;
        if !self.places.has_logical(partition.prefix()) {
            return Ok(Resumed::Inside(None));
        }
        let Some(clustering) = &position.clustering else {
            self.places.skip(partition.prefix());
            return Ok(Resumed::Inside(None));
        };
        if self.by_partition {
            self.places.skip(partition.prefix());
            let step = self
                .bring_logical(partition, &position.partition_key, Some(position), reader)
                .await?;
            return Ok(if step == Step::Stop {
                Resumed::Stopped
            } else {
                Resumed::Inside(None)
            });
        }
        self.places.start_after(&partition.prefix().row(clustering));
        let left = Some(position.partition_limit_rows);
        let current = self.enter(partition, &position.partition_key, left, reader).await?;
        Ok(Resumed::Inside(Some(current)))
    }

    fn logical(&self, token: Token, partition_key: &[u8]) -> Result<LogicalPartition<'a>, Broken> {
        self.partition.logical(self.table.storage_id, token, partition_key)
    }

    /// Begins a partition of which rows are read.
    async fn enter(
        &self,
        partition: LogicalPartition<'a>,
        partition_key: &[u8],
        left: Option<Option<u32>>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Current<'a>, Error> {
        let deletions = partition.deletions(&self.at).await;
        let deletions = deletions.map_err(|error| storage_read(&error))?;
        reader.begin_partition(partition_key, left)?;
        if reader.wants_static() {
            bring_static(&partition, &self.at, &deletions, reader).await?;
        }
        Ok(Current {
            partition,
            deletions,
            is_done: false,
        })
    }

    async fn bring_row(
        &self,
        place: &Place,
        current: &mut Option<Current<'a>>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let is_of = |current: &Current<'_>| place.is_in(current.partition.prefix());
        if !current.as_ref().is_some_and(is_of) {
            if current.take().is_some_and(|current| !current.is_done) && reader.end_partition()? == Step::Stop {
                return Ok(Step::Stop);
            }
            let (token, partition_key) = place.logical().map_err(|error| storage_read(&error))?;
            let entered = self.enter(self.logical(token, &partition_key)?, &partition_key, None, reader);
            *current = Some(entered.await?);
        }
        let Some(current) = current.as_mut().filter(|current| !current.is_done) else {
            return Ok(Step::Continue);
        };
        let key = current.partition.row_at(place).map_err(|error| storage_read(&error))?;
        let Some(key) = key.filter(|key| self.select.rows.covers(key.clustering())) else {
            return Ok(Step::Continue);
        };
        let found = current.partition.get(&key, &self.at).await;
        let Some(found) = found.map_err(|error| storage_read(&error))? else {
            return Ok(Step::Continue);
        };
        let view = RowView::parse(&found.value).map_err(|error| storage_read(&error))?;
        let clustering = key.clustering();
        let step = reader.row(clustering, found.bytes, &view, covering(&current.deletions, clustering))?;
        current.is_done = step == Step::SkipPartition;
        Ok(step)
    }

    async fn bring_partition(
        &self,
        place: &Place,
        resume: Option<&Position>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let (token, partition_key) = place.logical().map_err(|error| storage_read(&error))?;
        self.bring_logical(self.logical(token, &partition_key)?, &partition_key, resume, reader)
            .await
    }

    async fn bring_logical(
        &self,
        partition: LogicalPartition<'_>,
        partition_key: &[u8],
        resume: Option<&Position>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let logical = Logical {
            partition,
            at: &self.at,
            select: self.select,
            table: self.table,
            partition_key,
        };
        logical.run(resume, reader).await
    }
}

/// Where the previous page ended.
enum Resumed<'a> {
    /// Inside this partition, or between two.
    Inside(Option<Current<'a>>),
    /// The page is full already.
    Stopped,
}

/// The probe with the fewest entries, as far as they are counted; among those with many, the first for a single value.
async fn best<'a>(partition: &Hosted, at: &Moment, usable: &[&'a IndexProbe]) -> Result<Option<&'a IndexProbe>, Error> {
    if let [] | [_] = usable {
        return Ok(usable.first().copied());
    }
    let mut counted = Vec::with_capacity(usable.len());
    for probe in usable {
        let mut count = 0_usize;
        for range in &probe.ranges {
            let range = EntryRange::of_values(probe.storage_id, &range.start, range.end.as_deref());
            // Includes entries of other partitions: the walk visits them as well.
            let scanned = partition.entries(&range, at, |_| {
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
