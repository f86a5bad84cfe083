//! Comparing the table with the model.

use super::load;
use super::model::{Model, Place, ROWS_PER_KEY};
use super::page::{Page, page, still};
use crate::crash::all_rows;
use crate::raw::request::{self, Params};
use crate::raw::{Connection, opcode, unhex};
use crate::{Error, Outcome};
use serde_json::Value;

/// Rows of a page where all are compared.
const PAGE_ROWS: i32 = 5_000;
/// Keys around the border whose pages are begun before a change, and the rows of such a page.
const PAGED_KEYS: usize = 60;
const PAGED_ROWS: i32 = 700;
/// Rows of the ranges concerned that are compared one by one; beyond that they are counted.
const COMPARED_ROWS_MAX: usize = 60_000;
/// Keys around the border that are compared when the rest is counted.
const COMPARED_KEYS: usize = 400;
/// Tags that are asked for after each change.
const TAGS: usize = 3;
/// Faults that are told.
const FAULTS_MAX: usize = 200;

/// A physical partition as `system_cosmos.partitions` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) id: i64,
    pub(super) lower: i64,
    pub(super) upper: i64,
    /// Number of the store that it is in; 0 is the main one.
    pub(super) store: i32,
    /// Whether that is the main store or one over which tables are spread.
    pub(super) is_home: bool,
}

/// The stores over which the server spreads tables, by the setting that it is given through the environment. They have the first numbers.
fn data_stores() -> i32 {
    let set = std::env::var("HELENUS_STORES").ok();
    let stores = set.and_then(|stores| stores.parse().ok()).unwrap_or(1);
    if stores > 1 { stores } else { 0 }
}

/// The table's physical partitions, in order.
pub(super) fn parts(connection: &mut Connection) -> Outcome<Vec<Part>> {
    let text = "SELECT id, lower, upper, store FROM system_cosmos.partitions WHERE keyspace_name = 'parts' AND table_name = 't'";
    let rows = all_rows(connection, text)?;
    let number = |row: &Value, place: usize| {
        let bytes = unhex(row.get(place)?.as_str()?)?;
        Some(i64::from_be_bytes(bytes.try_into().ok()?))
    };
    let data_stores = data_stores();
    let mut parts: Vec<Part> = rows
        .iter()
        .filter_map(|row| {
            let store = i32::from_be_bytes(unhex(row.get(3)?.as_str()?)?.try_into().ok()?);
            Some(Part {
                id: number(row, 0)?,
                lower: number(row, 1)?,
                upper: number(row, 2)?,
                store,
                is_home: store <= data_stores,
            })
        })
        .collect();
    if parts.len() != rows.len() {
        return Err(Error::failed("system_cosmos.partitions has columns of other types"));
    }
    parts.sort_unstable_by_key(|part| part.lower);
    Ok(parts)
}

/// A paged scan that was begun before a change.
#[derive(Debug)]
pub(super) struct Pages {
    range: (i64, i64),
    /// What the first page gave, of keys that nobody writes.
    rows: Vec<Place>,
    state: Option<Vec<u8>>,
}

impl Pages {
    pub(super) fn begin(connection: &mut Connection, model: &Model, border: i64) -> Outcome<Self> {
        let range = model.around(border, PAGED_KEYS);
        let first = page(connection, range, PAGED_ROWS, None)?;
        Ok(Self {
            range,
            rows: still(&first.rows),
            state: first.state,
        })
    }
}

/// What was compared, and what did not hold.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<String>,
    /// Rows compared one by one.
    pub(super) rows: u64,
    /// Rows counted by the server.
    pub(super) counted: u64,
    /// Scans of the whole table.
    pub(super) wholes: u64,
    /// Scans that outlived a change.
    pub(super) pages: u64,
    /// Answers of the index.
    pub(super) answers: u64,
}

impl Findings {
    pub(super) fn fault(&mut self, fault: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    /// Whether the partitions cover the ring.
    pub(super) fn ring(&mut self, parts: &[Part]) {
        let ends = parts
            .first()
            .zip(parts.last())
            .map(|(first, last)| (first.lower, last.upper));
        let meet = parts.windows(2).all(|pair| match pair {
            [a, b] => a.upper.checked_add(1) == Some(b.lower),
            _ => true,
        });
        if ends != Some((i64::MIN, i64::MAX)) || !meet {
            self.fault(format!("the partitions do not cover the ring: {parts:?}"));
        }
    }

    /// Looks up what became of writes that were never answered.
    pub(super) fn resolve(
        &mut self,
        connection: &mut Connection,
        model: &Model,
        doubts: &[load::Doubt],
    ) -> Outcome<()> {
        for doubt in doubts {
            let Place { k, c } = doubt.place;
            let params = Params {
                skip_metadata: true,
                ..Params::default()
            };
            let text = format!("SELECT k, c, v FROM parts.t WHERE k = {k} AND c = {c}");
            let found = Page::read(&connection.ask(opcode::QUERY, &request::query(4, &text, &params))?)?;
            let version = found.rows.first().map_or(0, |(_, version)| *version);
            if version != doubt.before && version != doubt.after {
                self.fault(format!(
                    "row ({k}, {c}) is {version}: it was {}, and {} in doubt",
                    doubt.before, doubt.after
                ));
            }
            model.set(doubt.place, version);
        }
        Ok(())
    }

    /// Finishes a scan that was begun before the change: rows that nobody writes, each once and in order.
    pub(super) fn pages(
        &mut self,
        connection: &mut Connection,
        model: &Model,
        pages: &mut Pages,
        what: &str,
    ) -> Outcome<()> {
        while let Some(state) = pages.state.take() {
            let next = page(connection, pages.range, PAGED_ROWS, Some(state))?;
            pages.rows.extend(still(&next.rows));
            pages.state = next.state;
        }
        let (lower, upper) = pages.range;
        let expected = model.rows_in(lower, upper).map(|(place, _)| place);
        let expected: Vec<Place> = expected.filter(|place| Model::is_still(place.k)).collect();
        if pages.rows != expected {
            self.fault(format!(
                "{what}: a scan begun before and finished after it gave {} rows that nobody writes, there are {}",
                pages.rows.len(),
                expected.len()
            ));
        }
        self.pages += 1;
        Ok(())
    }

    /// Compares the whole table.
    pub(super) fn whole(&mut self, connection: &mut Connection, model: &Model, what: &str) -> Outcome<()> {
        self.wholes += 1;
        self.compare(connection, model, (i64::MIN, i64::MAX), what)
    }

    /// Compares the ranges of a change, or counts them and compares what lies around the border.
    pub(super) fn range(
        &mut self,
        connection: &mut Connection,
        model: &Model,
        range: (i64, i64),
        border: i64,
        what: &str,
    ) -> Outcome<()> {
        if model.keys_in(range.0, range.1).len() * ROWS_PER_KEY as usize <= COMPARED_ROWS_MAX {
            return self.compare(connection, model, range, what);
        }
        self.compare(connection, model, model.around(border, COMPARED_KEYS), what)?;
        let expected = model.rows_in(range.0, range.1).count() as u64;
        let text = format!(
            "SELECT count(*) FROM parts.t WHERE token(k) >= {} AND token(k) <= {}",
            range.0, range.1
        );
        let rows = all_rows(connection, &text)?;
        let cell = rows
            .first()
            .and_then(|row| row.get(0))
            .and_then(Value::as_str)
            .and_then(unhex);
        let found = cell.and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
        if found != Some(expected) {
            self.fault(format!(
                "{what}: the ranges concerned count {found:?} rows, there are {expected}"
            ));
        }
        self.counted += expected;
        Ok(())
    }

    fn compare(&mut self, connection: &mut Connection, model: &Model, range: (i64, i64), what: &str) -> Outcome<()> {
        let mut expected = model.rows_in(range.0, range.1).peekable();
        let mut state = None;
        loop {
            let found = page(connection, range, PAGE_ROWS, state)?;
            for row in &found.rows {
                self.rows += 1;
                if expected.peek() == Some(row) {
                    expected.next();
                    continue;
                }
                let must = expected.peek().copied();
                self.fault(format!("{what}: found {row:?} where {must:?} must be"));
                // One fault is told; what follows would repeat it.
                return Ok(());
            }
            match found.state {
                Some(next) => state = Some(next),
                None => break,
            }
        }
        if let Some(missing) = expected.next() {
            let more = expected.count();
            self.fault(format!("{what}: {missing:?} is missing, and {more} rows behind it"));
        }
        Ok(())
    }

    /// Asks the index for some tags.
    pub(super) fn index(
        &mut self,
        connection: &mut Connection,
        model: &Model,
        random: &mut fastrand::Rng,
        what: &str,
    ) -> Outcome<()> {
        for _ in 0..TAGS {
            let tag = model.some_tag(random);
            let expected = model.tagged(tag);
            let params = Params {
                skip_metadata: true,
                ..Params::default()
            };
            let text = format!("SELECT k, c, v FROM parts.t WHERE tag = {tag}");
            let found = Page::read(&connection.ask(opcode::QUERY, &request::query(4, &text, &params))?)?;
            let found: Vec<Place> = found.rows.iter().map(|(place, _)| *place).collect();
            if found != expected {
                self.fault(format!(
                    "{what}: the index finds {} rows of tag {tag}, there are {}",
                    found.len(),
                    expected.len()
                ));
            }
            self.answers += 1;
        }
        Ok(())
    }
}
