//! The answer to a message that reads: rows as they come, each behind the charges up to it, and how the part ended.
//!
//! ```text
//! answer    version u8 · item* · end
//! 1 begin   left u32 + 1, 0: no limit · partition key         2 row    clustering + 1, 0: static · row (`row::carried`)
//! 3 unseen  a static row that only counts                     4 walked rows u64 · tombstones u64
//! 5 charge  lookups u64 · visits u64 · scans u64              0 end    how u8 · rows u64 · walked · index · failure
//! ```
//! An answer ends behind the row with which it has [`ANSWER_BYTES`]: the machine that asked asks again, behind that row, if
//! its statement needs more. So rows that were read ahead and not taken cost nothing: their charges stand behind the last row
//! that was taken.

use bytes::{Buf, BufMut, Bytes};

use super::told::Told;
use crate::engine::Error;
use crate::engine::part::{Ended, PartSink, Receipt, Reply, Scratch, Step, Walked};
use crate::engine::row::buffer::RowBuffer;
use crate::engine::row::carried::{put_bytes, take_bytes};
use crate::throughput::{Charges, ReadSums};
use helenus_schema::command::Read;

/// Bytes of rows after which an answer ends.
pub(in crate::engine) const ANSWER_BYTES: usize = 256 * 1024;

const VERSION: u8 = 1;

const END: u8 = 0;
const BEGIN: u8 = 1;
const ROW: u8 = 2;
const UNSEEN: u8 = 3;
const WALKED: u8 = 4;
const CHARGE: u8 = 5;

const WHOLE: u8 = 0;
const MORE: u8 = 1;
const FAILED: u8 = 2;

/// The sink of a part whose rows another machine takes.
pub(in crate::engine) struct RowsAnswer<'a> {
    out: Vec<u8>,
    read: &'a Read,
    /// Rows that PER PARTITION LIMIT still allows.
    left: Option<u32>,
    /// Rows that the page of the other machine still takes. `None` means that it is not known.
    wanted: Option<usize>,
    noted: ReadSums,
    is_full: bool,
}

impl<'a> RowsAnswer<'a> {
    pub(in crate::engine) fn new(read: &'a Read, wanted: Option<usize>) -> Self {
        Self {
            out: vec![VERSION],
            read,
            left: None,
            wanted,
            noted: ReadSums::default(),
            is_full: false,
        }
    }

    /// The answer to a part that ended so.
    pub(in crate::engine) fn end(self, receipt: Receipt<'_>) -> Bytes {
        let Self { mut out, is_full, .. } = self;
        out.put_u8(END);
        let failure = match &receipt.ended {
            Ok(Ended::Stopped) if is_full => {
                out.put_u8(MORE);
                Vec::new()
            }
            Ok(_) => {
                out.put_u8(WHOLE);
                Vec::new()
            }
            Err(error) => {
                out.put_u8(FAILED);
                told(error)
            }
        };
        out.put_u64(receipt.rows);
        put_walked(&mut out, receipt.walked);
        put_bytes(&mut out, receipt.index.unwrap_or_default().as_bytes());
        put_bytes(&mut out, &failure);
        out.into()
    }

    /// Whether the part stops here, and if not, whether the rest of the logical partition is left out: as the statement
    /// would decide (`read::sink`).
    fn after(&mut self, is_done: bool) -> Step {
        if let Some(wanted) = &mut self.wanted {
            *wanted = wanted.saturating_sub(1);
        }
        self.is_full = self.wanted == Some(0) || self.out.len() >= ANSWER_BYTES;
        match (self.is_full, is_done) {
            (true, _) => Step::Stop,
            (false, true) => Step::SkipPartition,
            (false, false) => Step::Continue,
        }
    }
}

/// The answer to a part that failed before it began.
pub(in crate::engine) fn failed(error: &Error) -> Bytes {
    let mut out = vec![VERSION, END, FAILED];
    out.put_u64(0);
    put_walked(&mut out, Walked::default());
    put_bytes(&mut out, &[]);
    put_bytes(&mut out, &told(error));
    out.into()
}

fn told(error: &Error) -> Vec<u8> {
    serde_json::to_vec(&Told::of(error)).unwrap_or_default()
}

fn put_walked(out: &mut Vec<u8>, walked: Walked) {
    out.put_u64(walked.rows);
    out.put_u64(walked.tombstones);
}

fn take_walked(from: &mut &[u8]) -> Option<Walked> {
    Some(Walked {
        rows: from.try_get_u64().ok()?,
        tombstones: from.try_get_u64().ok()?,
    })
}

impl PartSink for RowsAnswer<'_> {
    fn begin_partition(&mut self, partition_key: &[u8], left: Option<u32>) {
        self.left = left;
        self.out.put_u8(BEGIN);
        self.out.put_u64(left.map_or(0, |left| u64::from(left) + 1));
        put_bytes(&mut self.out, partition_key);
    }

    fn row(&mut self, row: &RowBuffer, clustering: Option<&[u8]>) -> Result<Reply, Error> {
        if self.left == Some(0) && self.read.group_by.is_none() {
            return Ok(Reply::Plain(Step::SkipPartition));
        }
        self.out.put_u8(ROW);
        match clustering {
            None => self.out.put_u8(0),
            Some(key) => {
                self.out.put_u8(1);
                put_bytes(&mut self.out, key);
            }
        }
        row.put_to(&mut self.out);
        if self.read.group_by.is_some() {
            return Ok(Reply::Plain(self.after(false)));
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        let is_alone = !self.read.is_grouped() && (clustering.is_none() || self.read.table.clustering_count == 0);
        let is_done = self.read.distinct || self.left == Some(0) || is_alone;
        Ok(Reply::Plain(self.after(is_done)))
    }

    fn unseen_row(&mut self) -> Step {
        self.out.put_u8(UNSEEN);
        self.after(true)
    }

    fn walked(&mut self, walked: Walked) {
        self.out.put_u8(WALKED);
        put_walked(&mut self.out, walked);
    }

    fn charged(&mut self, charges: &mut Charges) {
        let sums = charges.read_sums();
        if sums == self.noted {
            return;
        }
        let ReadSums {
            lookup_micros,
            visit_micros,
            scan_micros,
        } = sums.since(self.noted);
        self.noted = sums;
        self.out.put_u8(CHARGE);
        self.out.put_u64(lookup_micros);
        self.out.put_u64(visit_micros);
        self.out.put_u64(scan_micros);
    }

    fn check_client(&self) -> Result<(), Error> {
        Ok(())
    }

    fn hold_places(&mut self, _bytes: usize) -> Result<(), Error> {
        Ok(())
    }
}

/// What the machine that asked has done with an answer.
pub(in crate::engine) struct Replayed {
    /// How the part ended, if no more is to be asked for.
    pub(in crate::engine) ended: Result<Ended, Error>,
    /// The row behind which to ask again. `None` means that the part has ended.
    pub(in crate::engine) goes_on: Option<Place>,
    pub(in crate::engine) rows: u64,
    pub(in crate::engine) walked: Walked,
    /// The index by which the owner found the rows. Empty means that it scanned.
    pub(in crate::engine) index: String,
}

/// A row behind which a part goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Place {
    pub(in crate::engine) partition_key: Bytes,
    /// `None` means behind the logical partition.
    pub(in crate::engine) clustering: Option<Bytes>,
    /// Rows that PER PARTITION LIMIT still allows.
    pub(in crate::engine) left: Option<u32>,
}

/// Passes the rows of an answer to the sink of a statement, with their charges.
pub(in crate::engine) fn replay(
    answer: &Bytes,
    read: &Read,
    scratch: &mut Scratch<'_>,
    sink: &mut impl PartSink,
) -> Replayed {
    let replay = Replay {
        answer,
        read,
        place: Place::default(),
        is_skipping: false,
        is_stopped: false,
    };
    replay.run(scratch, sink).unwrap_or_else(|error| Replayed {
        ended: Err(error.unwrap_or_else(|| Error::Fault("the owner's answer cannot be read".to_owned()))),
        goes_on: None,
        rows: 0,
        walked: Walked::default(),
        index: String::new(),
    })
}

struct Replay<'a> {
    answer: &'a Bytes,
    read: &'a Read,
    place: Place,
    /// The statement needs no more of the logical partition.
    is_skipping: bool,
    /// The statement needs no more.
    is_stopped: bool,
}

impl Replay<'_> {
    /// # Errors
    /// The statement fails; `None` means that the bytes are no answer.
    fn run(mut self, scratch: &mut Scratch<'_>, sink: &mut impl PartSink) -> Result<Replayed, Option<Error>> {
        let from = &mut self.answer.as_ref();
        let whole = self.answer.len();
        if from.try_get_u8().ok() != Some(VERSION) {
            return Err(None);
        }
        loop {
            match from.try_get_u8().map_err(|_| None)? {
                END => return self.end(from).ok_or(None),
                BEGIN => {
                    let left = from.try_get_u64().map_err(|_| None)?;
                    let key = take_bytes(from).ok_or(None)?;
                    if self.is_stopped {
                        continue;
                    }
                    let left = left.checked_sub(1).and_then(|left| u32::try_from(left).ok());
                    let begin = whole - from.len() - key.len();
                    self.place = Place {
                        partition_key: self.answer.slice(begin..begin + key.len()),
                        clustering: None,
                        left,
                    };
                    self.is_skipping = false;
                    sink.begin_partition(key, left);
                }
                ROW => {
                    let clustering = match from.try_get_u8().map_err(|_| None)? {
                        0 => None,
                        _ => Some(take_bytes(from).ok_or(None)?),
                    };
                    scratch.buffer_mut().take_from(from).ok_or(None)?;
                    if !self.is_skipping && !self.is_stopped {
                        self.row(clustering, scratch, sink)?;
                    }
                }
                UNSEEN => {
                    if !self.is_skipping && !self.is_stopped {
                        let step = sink.unseen_row();
                        self.place.clustering = None;
                        self.stepped(step);
                    }
                }
                WALKED => {
                    let walked = take_walked(from).ok_or(None)?;
                    if !self.is_stopped {
                        sink.walked(walked);
                    }
                }
                CHARGE => {
                    let mut next = || from.try_get_u64().map_err(|_| None);
                    let sums = ReadSums {
                        lookup_micros: next()?,
                        visit_micros: next()?,
                        scan_micros: next()?,
                    };
                    if !self.is_skipping && !self.is_stopped {
                        scratch.charges_mut().add_reads(sums);
                    }
                }
                _ => return Err(None),
            }
        }
    }

    fn row(
        &mut self,
        clustering: Option<&[u8]>,
        scratch: &mut Scratch<'_>,
        sink: &mut impl PartSink,
    ) -> Result<(), Option<Error>> {
        sink.check_client().map_err(Some)?;
        let step = scratch.pass(sink, clustering).map_err(Some)?;
        if self.read.group_by.is_none() {
            self.place.left = self.place.left.map(|left| left.saturating_sub(1));
        }
        let rest = clustering.filter(|_| step != Step::SkipPartition);
        self.place.clustering = rest.map(Bytes::copy_from_slice);
        self.stepped(step);
        Ok(())
    }

    const fn stepped(&mut self, step: Step) {
        match step {
            Step::Continue => {}
            Step::SkipPartition => self.is_skipping = true,
            Step::Stop => self.is_stopped = true,
        }
    }

    /// `None` means that the bytes are no answer.
    fn end(self, from: &mut &[u8]) -> Option<Replayed> {
        let how = from.try_get_u8().ok()?;
        let rows = from.try_get_u64().ok()?;
        let walked = take_walked(from)?;
        let index = String::from_utf8(take_bytes(from)?.to_vec()).ok()?;
        let failure = take_bytes(from)?;
        let goes_on = (how == MORE && !self.is_stopped).then_some(self.place);
        let ended = match how {
            _ if self.is_stopped => Ok(Ended::Stopped),
            WHOLE | MORE => Ok(Ended::Whole),
            FAILED => Err(serde_json::from_slice::<Told>(failure).ok()?.error()),
            _ => return None,
        };
        Some(Replayed {
            ended,
            goes_on,
            rows,
            walked,
            index,
        })
    }
}
