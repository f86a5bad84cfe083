//! Reads: checked, admitted, and brought from partitions or views to a page of rows.

use bytes::Bytes;

use super::super::error::Error;
use super::super::gates::{self, ReadPass};
use super::super::index;
use super::super::levels;
use super::super::read::room::Room;
use super::super::read::sink::{Limits, Page, Shape, Sink};
use super::super::read::{source, virtual_rows};
use super::super::value;
use super::Engine;
use super::Request;
use crate::command::{Clustering, Partitions, Position, Read};
use crate::consistency::WriteKind;
use crate::schema::system;
use crate::throughput::Charges;
use crate::views::{self, live::Live};

/// How a read is cut into pages.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// Rows of a page; `None`: all rows come at once.
    pub page_rows: Option<u32>,
    /// Where the page before ended; `None`: this is the first.
    pub resume: Option<Position>,
    /// Bytes of rows to make room for at once, as earlier pages had.
    pub content_bytes_ahead: usize,
}

/// What a read gives.
#[derive(Debug)]
pub struct ReadPage {
    /// How many rows.
    pub row_count: u32,
    /// All cells, row by row, each as `[bytes]`: length i32 (−1 is null), then the value.
    pub content: Bytes,
    /// Where the next page starts; `None`: there is none.
    pub position: Option<Position>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// What a trace tells of the way that was taken.
    pub notes: Vec<String>,
}

impl Engine {
    /// Reads a page of rows. `shape` is the read's, made once for all reads of its kind.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails.
    pub async fn read(
        &self,
        request: &Request<'_>,
        shape: &Shape,
        read: &Read,
        paging: &Paging,
        charges: &mut Charges,
    ) -> Result<ReadPage, Error> {
        let outcome = self.read_within(request, shape, read, paging, charges).await;
        outcome.map_err(|error| self.read_edge(request, read, error))
    }

    /// The error of a read as its client sees it.
    #[cold]
    fn read_edge(&self, request: &Request<'_>, read: &Read, error: Error) -> Error {
        let asked = request.consistency();
        let level = levels::read(&self.rules, asked, system::is_local(&read.table.keyspace));
        error.at_edge(level.unwrap_or(asked), WriteKind::Simple)
    }

    async fn read_within(
        &self,
        request: &Request<'_>,
        shape: &Shape,
        read: &Read,
        paging: &Paging,
        charges: &mut Charges,
    ) -> Result<ReadPage, Error> {
        let gates = self.gates();
        let page_bytes = paging.page_rows.map_or(0, |_| self.page_bytes_max);
        // At first, since what was granted is taken back when the request has been polled once.
        let mut room = Room::of(request.terms.share, page_bytes);
        let is_system = system::is_local(&read.table.keyspace);
        let mut warnings = Vec::new();
        let ReadPass { page_rows } = gates::read(gates, request, read, paging.page_rows, &mut warnings)?;
        let resume = paging.resume.as_ref();
        let limits = Limits {
            rows: resume.map_or(read.limit_rows, |position| position.limit_rows),
            page_rows,
            page_bytes: self.page_bytes_max,
            content_bytes_ahead: paging.content_bytes_ahead,
            tombstones: self.guardrails.tombstones,
        };
        let mut notes = Vec::new();
        gates::admit_answer(gates, request, read, limits.content_bytes_ahead, &mut room).await?;
        if is_system {
            charges.metadata();
        }
        let mut sink = Sink::new(
            read,
            shape,
            &request.context,
            request.now_seconds,
            limits,
            charges,
            room,
        );
        if is_system {
            if views::show_sizes(&read.table) {
                // Boxed, since it is rare, as below.
                Box::pin(self.count_partitions()).await;
            }
            let rows = self.view_rows(request, read);
            virtual_rows::run(read, rows, resume, &mut sink)?;
        } else {
            let partitions = request.snapshot.partitions(&read.table)?;
            let mut view = gates::admit_read(gates, request, read, partitions, resume).await?;
            let indexes = &self.catalog.indexes;
            let by_index = index::read::run(indexes, partitions, read, &mut view, resume, &mut sink).await;
            match by_index? {
                Some(used) => notes.push(format!("Scanned with index {used}")),
                None => {
                    let visited = source::run(partitions, read, &mut view, resume, &mut sink).await?;
                    if request.terms.is_traced {
                        let all = partitions.all().len();
                        notes.push(format!("Read {visited} of {all} physical partitions"));
                    }
                }
            }
        }
        let Page {
            content,
            row_count,
            mut position,
            warnings: walked,
        } = sink.finish()?;
        charges.give_back(content.len());
        let left_before = resume.map_or(0, |position| position.charge_left_micros);
        let left = charges.end_page(left_before, position.is_some());
        if let Some(position) = &mut position {
            position.charge_left_micros = left;
        }
        warnings.extend(walked);
        Ok(ReadPage {
            row_count,
            content,
            position,
            warnings,
            notes,
        })
    }

    fn view_rows(&self, request: &Request<'_>, select: &Read) -> Vec<Vec<Option<Bytes>>> {
        // Drivers read the other keyspaces, which show nothing of the server, much more often.
        let shows_server = matches!(select.table.keyspace.as_str(), "system_views" | system::COSMOS);
        let live = if shows_server {
            self.ask_server()
        } else {
            Live::default()
        };
        let sources = views::Sources {
            schema: &request.snapshot.schema,
            node: self.seen_by(request.node()),
            live: &live,
            token: virtual_rows::token,
            figures: Some(self.figures()),
        };
        let one_key: Option<Vec<Bytes>> = match &select.partitions {
            Partitions::Keys(keys) => match keys.as_slice() {
                [key] => {
                    let components = value::key_components(key, select.table.partition_key_count);
                    Some(components.map(Bytes::copy_from_slice).collect())
                }
                _ => None,
            },
            Partitions::Ring { .. } => None,
        };
        let first_clustering = first_clustering(select);
        let wanted = views::Wanted {
            partition_key: one_key.as_deref(),
            first_clustering: first_clustering.as_deref(),
        };
        views::rows(&select.table, sources, wanted).unwrap_or_default()
    }
}

/// The value of the first clustering column if the read wants rows of one only: drivers ask for one table of a keyspace at a time.
fn first_clustering(select: &Read) -> Option<Bytes> {
    let first = select.table.clustering().first()?;
    let (start, end) = match &select.rows {
        Clustering::All => return None,
        Clustering::Keys(keys) => (keys.first()?, keys.last()?),
        Clustering::Ranges(ranges) => (&ranges.first()?.start, ranges.last()?.end.as_ref()?),
    };
    let value = first.ty.decode_key(&mut start.as_slice(), first.descending).ok()?;
    let mut prefix = Vec::new();
    first.ty.encode_key(&value, first.descending, &mut prefix);
    // The least key behind all that begin with the prefix.
    let mut behind = prefix.clone();
    while behind.last() == Some(&u8::MAX) {
        behind.pop();
    }
    *behind.last_mut()? += 1;
    (start.starts_with(&prefix) && *end <= behind).then_some(value)
}
