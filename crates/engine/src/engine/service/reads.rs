//! Reads: checks, admission, and the rows of a page from partitions or virtual tables.

use bytes::Bytes;

use super::super::edge::storage_read;
use super::super::error::Error;
use super::super::estimate::{Estimator, ReadEstimate};
use super::super::feed::{LogSweep, Sweep};
use super::super::gates::{self, ReadPass};
use super::super::levels;
use super::super::part::{PartRead, Scratch};
use super::super::read::row_sink::RowSink;
use super::super::read::sink::{Limits, Page, Shape, Sink};
use super::super::read::spread::Spread;
use super::super::read::virtual_rows;
use super::super::refusal::Refusal;
use super::super::value;
use super::Engine;
use super::Request;
use crate::engine::terms::room::{AnswerMemory, Room};
use crate::engine::virtual_tables::{Seen, Wanted};
use crate::partition::ReadView;
use crate::throughput::Charges;
use helenus_schema::command::{Clustering, FeedPage, FeedPosition, FeedStart, Partitions, Position, Read, Write};
use helenus_schema::schema::{StorageId, system};
use helenus_types::consistency::WriteKind;

/// Rows of a page of the change feed for a client that names no page size.
const FEED_PAGE_ROWS: u32 = 5000;

/// The start of a page.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// The end of the previous page; `None` means that this is the first.
    pub resume: Option<Box<Position>>,
    /// Bytes of rows to reserve at once, by the size of earlier pages.
    pub content_bytes_ahead: usize,
    /// Whether a page of the change feed gives the position after each row.
    pub wants_feed_positions: bool,
}

/// A read that has passed its checks (`Engine::check_read`).
#[derive(Debug)]
pub struct Checked<'r> {
    read: &'r Read,
    /// Whether the client requests pages.
    is_paged: bool,
    /// Rows of its page; `None` means all in one page.
    page_rows: Option<u32>,
}

/// The result of a read, apart from its rows.
#[derive(Debug)]
pub struct ReadPage {
    /// How many rows the sink received.
    pub row_count: u32,
    /// Bytes that it took for them.
    pub bytes: usize,
    /// The memory reserved for the rows, for as long as they are kept.
    pub memory: AnswerMemory,
    /// The start of the next page; `None` means that this is the last.
    pub position: Option<Box<Position>>,
    /// What a page of the change feed says besides. `None` means another read.
    pub feed: Option<FeedPage>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Trace entries about the chosen access path.
    pub notes: Vec<String>,
}

impl Engine {
    /// Checks a read by its level, its limits and its options. `page_rows` is the page size; `None` means all rows at
    /// once. `warnings` receives warnings for the client, also when the read is refused.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn check_read<'r>(
        &self,
        request: &Request<'_>,
        read: &'r Read,
        page_rows: Option<u32>,
        warnings: &mut Vec<String>,
    ) -> Result<Checked<'r>, Error> {
        match gates::read(self.gates(), request, read, page_rows, warnings) {
            Ok(ReadPass { page_rows: of_page }) => Ok(Checked {
                read,
                is_paged: page_rows.is_some(),
                page_rows: of_page,
            }),
            Err(error) => Err(self.read_edge(request, read, error)),
        }
    }

    /// Reads a page of rows into a sink. `shape` is the read's, made once for all reads of its kind.
    ///
    /// # Errors
    /// Replicas are missing, request units are spent, or a store fails. The sink may have received rows before.
    pub(super) async fn read(
        &self,
        request: &Request<'_>,
        shape: &Shape,
        checked: Checked<'_>,
        paging: &Paging,
        rows: &mut impl RowSink,
        charges: &mut Charges,
    ) -> Result<ReadPage, Error> {
        let read = checked.read;
        let outcome = self.read_within(request, shape, checked, paging, rows, charges).await;
        outcome.map_err(|error| self.read_edge(request, read, error))
    }

    /// The error of a read as its client sees it.
    #[cold]
    fn read_edge(&self, request: &Request<'_>, read: &Read, error: Error) -> Error {
        let asked = request.consistency();
        let level = levels::read(&self.rules, asked, system::is_local(&read.table.keyspace));
        error.at_edge(level.unwrap_or(asked), WriteKind::Simple)
    }

    /// The position of the last change that a read of a change feed returns now. While it is the same, a feed that was
    /// read to its end has nothing new.
    #[must_use]
    pub fn feed_horizon(&self) -> i64 {
        self.catalog.stores().positions().horizon()
    }

    /// The charge and the access path that a read would have. Reads no row for an answer.
    ///
    /// # Errors
    /// The table no longer exists, or a store fails.
    pub(super) async fn estimate_read(
        &self,
        request: &Request<'_>,
        read: &Read,
        page_rows: Option<u32>,
    ) -> Result<ReadEstimate, Error> {
        let limits = self.limits(read.limit_rows, page_rows.filter(|rows| *rows > 0), 0);
        self.estimator().read(request, read, &limits).await
    }

    /// The charge that writes would have, without their conditions.
    ///
    /// # Errors
    /// A table no longer exists.
    pub(super) fn estimate_writes(&self, request: &Request<'_>, writes: &[Write]) -> Result<Charges, Error> {
        self.estimator().writes(request, writes)
    }

    fn estimator(&self) -> Estimator<'_> {
        Estimator {
            ledger: &self.ledger,
            indexes: &self.catalog.published.indexes,
        }
    }

    const fn limits(&self, rows: Option<u32>, page_rows: Option<u32>, content_bytes_ahead: usize) -> Limits {
        Limits {
            rows,
            page_rows,
            page_bytes: self.page_bytes_max,
            content_bytes_ahead,
            tombstones: self.guardrails.tombstones,
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "the ways of a read, computed or stored, share its limits and its page"
    )]
    async fn read_within(
        &self,
        request: &Request<'_>,
        shape: &Shape,
        checked: Checked<'_>,
        paging: &Paging,
        rows: &mut impl RowSink,
        charges: &mut Charges,
    ) -> Result<ReadPage, Error> {
        let Checked {
            read,
            is_paged,
            page_rows,
        } = checked;
        let gates = self.gates();
        let page_bytes = if is_paged { self.page_bytes_max } else { 0 };
        // Must be before the first await: the connection withdraws a grant that the first poll has not taken.
        let mut room = Room::of(request.terms.share, page_bytes);
        let is_computed = system::is_computed(&read.table);
        let resume = paging.resume.as_deref();
        let limit = resume.map_or(read.limit_rows, |position| position.limit_rows);
        let page_rows = match read.feed {
            Some(_) => page_rows.or(Some(FEED_PAGE_ROWS)),
            None => page_rows,
        };
        let limits = self.limits(limit, page_rows, paging.content_bytes_ahead);
        let mut feed_end = None;
        let mut note = None;
        gates::admit_answer(gates, request, read, limits.content_bytes_ahead, &mut room).await?;
        if is_computed {
            charges.metadata();
        }
        let mut scratch = Scratch::new(&shape.layout, read.is_grouped(), charges);
        let Page {
            row_count,
            bytes,
            memory,
            mut position,
            warnings,
            leaves_rest,
        } = {
            // Consumed in place, since it is large and its borrows are needed again.
            let mut sink = Sink::new(read, shape, request, limits, room, rows);
            if self.rules.profile.is_cosmos() && !paging.wants_feed_positions {
                sink.show_system_columns();
            }
            if is_computed {
                // Boxed, since it is rare and would make every read's future larger.
                Box::pin(self.bring_virtual(request, shape, read, resume, &mut scratch, &mut sink)).await?;
            } else if let Some(start) = read.feed {
                // Boxed, since it is rare and would make every read's future larger.
                let brought = self.bring_feed(request, shape, read, (start, paging), &mut scratch, &mut sink);
                feed_end = Some(Box::pin(brought).await?);
            } else {
                let partitions = request.snapshot.partitions(&read.table)?;
                let mut view = gates::admit_read(gates, request, read, partitions, resume).await?;
                let spread = Spread {
                    request,
                    partitions,
                    read,
                    shape,
                    indexes: &self.catalog.published.indexes,
                    resume,
                    tombstones_max: limits.tombstones.fail,
                    carrier: self.carrier(),
                    page: self.page_number(),
                };
                let way = spread.run(&mut view, &mut scratch, &mut sink).await?;
                note = way.note(partitions.all().len(), request.terms.is_traced);
            }
            sink.finish()?
        };
        let feed = feed_end.map(|(end, page)| {
            // Always there, since more changes may come.
            position = Some(Box::new(Position::of_feed(end)));
            page
        });
        if leaves_rest {
            scratch.take_back();
        }
        charges.give_back(bytes);
        let left_before = resume.map_or(0, |position| position.charge_left_micros);
        let left = charges.end_page(left_before, position.is_some())?;
        if let Some(position) = &mut position {
            position.charge_left_micros = left;
        }
        Ok(ReadPage {
            row_count,
            bytes,
            memory,
            position,
            feed,
            warnings,
            notes: note.into_iter().collect(),
        })
    }

    /// Reads a page of the change feed. As in Cosmos, a page is empty if the request units are spent.
    async fn bring_feed(
        &self,
        request: &Request<'_>,
        shape: &Shape,
        read: &Read,
        (start, paging): (FeedStart, &Paging),
        scratch: &mut Scratch<'_>,
        sink: &mut Sink<'_, impl RowSink>,
    ) -> Result<(FeedPosition, FeedPage), Error> {
        let indexes = &self.catalog.published.indexes;
        let of_table = || {
            let (keyspace, table) = (read.table.keyspace.clone(), read.table.name.clone());
            Refusal::FeedInBuild { keyspace, table }
        };
        let complete = |feed: &StorageId| indexes.is_complete(*feed);
        // A change log is complete from its beginning.
        let feed = read.table.feed().filter(|feed| read.is_full_fidelity || complete(feed));
        let feed = feed.ok_or_else(of_table)?;
        let log = match (read.is_full_fidelity, paging.wants_feed_positions) {
            (false, _) => None,
            (true, false) => return Err(Refusal::FullFidelity.into()),
            (true, true) => Some(self.log_of(read).await?),
        };
        let partitions = request.served().partitions(&read.table)?;
        let resume = paging.resume.as_ref().and_then(|position| position.feed.as_ref());
        // Before any snapshot is taken.
        let horizon = self.catalog.stores().positions().horizon();
        match gates::admit_read(self.gates(), request, read, partitions, None).await {
            Ok(_) => {}
            Err(Error::Throttled { .. }) => {
                let end = resume.cloned().unwrap_or_else(|| FeedPosition {
                    after: start.after(horizon),
                    sweep: None,
                });
                return Ok((end, FeedPage::default()));
            }
            Err(error) => return Err(error),
        }
        // No lagging replica's moments: they may lack changes below the horizon.
        let mut view = ReadView::default();
        let bound = PartRead {
            read,
            layout: &shape.layout,
            context: &request.context,
            now_seconds: request.now_seconds,
            tombstones_max: None,
        };
        if let Some((log, floor)) = log {
            let of = (partitions.as_ref(), self.catalog.stores_with_log(partitions).now());
            let sweep = LogSweep::new(of, read, log, start, resume, (floor, horizon));
            let sweep = sweep.ok_or_else(|| Self::trimmed(read, floor))?;
            let end = sweep.run(&bound, scratch, sink).await?;
            // Entries that the walk did not meet may have been trimmed meanwhile.
            return match self.log_of(read).await? {
                (now, same) if now == log && same == floor => Ok(end),
                (_, floor) => {
                    let from = resume.map_or_else(|| start.after(horizon), |position| position.after);
                    let is_kept = from >= floor || resume.is_none() && start == FeedStart::Beginning;
                    is_kept.then_some(end).ok_or_else(|| Self::trimmed(read, floor))
                }
            };
        }
        let mut sweep = Sweep::new(partitions, read, feed, start, resume, horizon);
        if paging.wants_feed_positions {
            sweep = sweep.with_positions();
        }
        let end = sweep.run(&bound, &mut view, scratch, sink).await?;
        // A sweep that has nothing to pass reads no store, which would refuse.
        self.refuse_taken_over(request.consistency())?;
        // Commits no longer maintain a feed that was switched off meanwhile.
        if indexes.is_complete(feed) {
            Ok(end)
        } else {
            Err(of_table().into())
        }
    }

    /// The change log of a table and its floor.
    async fn log_of(&self, read: &Read) -> Result<(StorageId, i64), Error> {
        let of_table = || (read.table.keyspace.clone(), read.table.name.clone());
        let Some(log) = read.table.log() else {
            let (keyspace, table) = of_table();
            return Err(Refusal::NoLog { keyspace, table }.into());
        };
        let floor = self.catalog.stores().log_floor(log).await;
        match floor.map_err(|error| storage_read(&error))? {
            Some(floor) => Ok((log, floor)),
            None => {
                let (keyspace, table) = of_table();
                Err(Refusal::FeedInBuild { keyspace, table }.into())
            }
        }
    }

    fn trimmed(read: &Read, floor: i64) -> Error {
        let millis = floor.div_euclid(1000).saturating_add(1);
        let refusal = Refusal::FeedTrimmed {
            keyspace: read.table.keyspace.clone(),
            table: read.table.name.clone(),
            begins: helenus_types::types::timestamp_text(millis, ' '),
        };
        refusal.into()
    }

    /// Reads the rows of a table that the server fills itself.
    async fn bring_virtual(
        &self,
        request: &Request<'_>,
        shape: &Shape,
        read: &Read,
        resume: Option<&Position>,
        scratch: &mut Scratch<'_>,
        sink: &mut Sink<'_, impl RowSink>,
    ) -> Result<(), Error> {
        if self.virtual_tables.show_sizes(&read.table) {
            self.upkeep().count_partitions().await;
        }
        let shown = self.view_rows(request, read);
        virtual_rows::run(request, shape, read, shown, resume, scratch, sink)
    }

    fn view_rows(&self, request: &Request<'_>, select: &Read) -> Vec<Vec<Option<Bytes>>> {
        let node = self.seen_now(request.node());
        let seen = Seen {
            schema: &request.snapshot.schema,
            node: &node,
            token: virtual_rows::token,
            figures: self.figures(),
        };
        let one_key: Option<Vec<Bytes>> = match &select.partitions {
            Partitions::Keys(keys) => match keys.as_slice() {
                [key] => {
                    let components = value::key_components(key, select.table.partition_key_count);
                    Some(components.map(Bytes::copy_from_slice).collect())
                }
                _ => None,
            },
            Partitions::Ring(_) => None,
        };
        let first_clustering = first_clustering(select);
        let wanted = Wanted {
            partition_key: one_key.as_deref(),
            first_clustering: first_clustering.as_deref(),
        };
        self.virtual_tables.rows(&select.table, seen, wanted)
    }
}

/// The value of the first clustering column, if the read wants only its rows: drivers query one table of a keyspace at
/// a time.
fn first_clustering(select: &Read) -> Option<Bytes> {
    let first = select.table.clustering().first()?;
    let (start, end) = match &select.rows {
        Clustering::All => return None,
        Clustering::Keys(keys) => (keys.first()?, keys.last()?),
        Clustering::Ranges(ranges) => (&ranges.first()?.start, ranges.last()?.end.as_ref()?),
    };
    let value = first.ty.decode_key(&mut start.as_slice(), first.key_order()).ok()?;
    let mut prefix = Vec::new();
    first.ty.encode_key(&value, first.key_order(), &mut prefix);
    // The lowest key above all keys with this prefix.
    let mut behind = prefix.clone();
    while behind.last() == Some(&u8::MAX) {
        behind.pop();
    }
    *behind.last_mut()? += 1;
    (start.starts_with(&prefix) && *end <= behind).then_some(value)
}
