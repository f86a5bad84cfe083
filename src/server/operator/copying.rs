//! Tables as text files: export and import, row by row, through the same statements that a client would send.
//!
//! An export contains what a client sees of a row: values, no timestamps and no times to live. A row with only static
//! columns has no clustering columns. An import writes the values in the file and leaves a column unchanged for which
//! the file has none; a counter is increased, a static one once a partition. Each line becomes part of a row, or is named.
//!
//! Memory: an export holds a page of rows, an import ROWS_AT_ONCE rows or BYTES_AT_ONCE bytes of them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::counted::CountedPartitions;
use super::inserts::{Bound, Inserts};
use super::records::{Endless, Lines, Record, RecordError, Records, csv_cells};
use super::text::{Form, csv_value, json_value, put_cell, put_csv, put_json};
use helenus_base::permissions;
use helenus_base::progress;
use helenus_cql::cql::Error;
use helenus_cql::cql::{AnswerKind, Database, QueryParams, ResultMetadata, Rows, SessionState, Statement, Values};
use helenus_engine::engine;
use helenus_schema::schema::{ColumnKind, Table, system};
use helenus_types::types::{CqlType, Json, folded_json_name, quoted};

/// Rows per page of an export.
const PAGE_ROWS: u32 = 500;

/// Most rows imported at once.
const ROWS_AT_ONCE: usize = 64;

/// Bytes of text after which the rows read so far are imported.
const BYTES_AT_ONCE: usize = 4 << 20;

/// Most bad rows that are reported with their reasons; of all others the lines are.
const NAMED_MAX: usize = 100;

/// Why an export or import failed or stopped.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is no such table.
    #[error("table {keyspace}.{table} does not exist")]
    NoTable {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// The rows of a view follow from those of its base table.
    #[error("{keyspace}.{view} is a materialized view, whose rows follow from its base table: name {keyspace}.{base}")]
    View {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        view: String,
        /// The name of its base table.
        base: String,
    },
    /// The server computes the rows.
    #[error("{keyspace}.{table} is a virtual table, whose rows the server computes: SELECT reads it")]
    Virtual {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// The first line of CSV names an unknown column.
    #[error("the first line of the file names {name}, which is no column of the table")]
    NoColumn {
        /// The name.
        name: String,
    },
    /// A row needs its key.
    #[error("the first line of the file does not name the column {name}, which is part of the primary key")]
    NoKey {
        /// The missing key column.
        name: String,
    },
    /// The first line of CSV is no header.
    #[error("the first line of the file: {0}")]
    Header(String),
    /// The file has no line.
    #[error("the first line of the file: the file is empty; it must begin with the names of the columns")]
    NoLine,
    /// The first line is no text.
    #[error("the first line of the file: it is not UTF-8")]
    NotUtf8,
    /// The first line has no end.
    #[error("the first line of the file: {0}")]
    Endless(#[from] Endless),
    /// The database.
    #[error(transparent)]
    Database(#[from] Error),
    /// The file.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A row that could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRow {
    /// Its lines.
    pub lines: Lines,
    /// The defect.
    pub reason: String,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Rows that were written.
    pub rows: u64,
    /// Bad rows.
    pub bad: u64,
    /// The first bad rows.
    pub named: Vec<BadRow>,
    /// The lines of the others, adjacent ones together.
    pub others: Vec<Lines>,
    /// Why the rest of the file was not read. `None` means that all was read.
    pub unread: Option<Unread>,
}

/// Why the rest of a file was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unread {
    /// There were more bad rows than the limit.
    #[error("there are more bad rows than --max-errors: the file was not read behind line {line}")]
    BadRows {
        /// The last line that was read.
        line: u64,
    },
    /// It has a record without an end.
    #[error(transparent)]
    Endless(#[from] Endless),
}

impl Imported {
    fn add_bad(&mut self, bad: BadRow) {
        self.bad += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(bad);
            return;
        }
        match self.others.last_mut() {
            Some(last) if last.last + 1 == bad.lines.first => last.last = bad.lines.last,
            _ => self.others.push(bad.lines),
        }
    }
}

/// The members of a line. `INSERT JSON` answers with Cassandra's text, which names Java classes; a file has a line and
/// a column.
fn object(record: &str) -> Result<Vec<(String, Json)>, String> {
    match Json::parse_first(record) {
        Ok((Json::Object(members), rest)) if rest.trim().is_empty() => Ok(members),
        Ok((Json::Object(_), rest)) => Err(format!(
            "there is text behind the object, from column {} on: an object is a line",
            record.chars().count() - rest.trim_start().chars().count() + 1
        )),
        Ok(_) => Err("expected a JSON object, such as {\"k\": 1}".to_owned()),
        Err(error) => {
            // Up to the first colon: the rest describes the parser's options.
            let what = error.what.split(": ").next().unwrap_or_default();
            let column = error.column.map(|column| format!(" in column {column}"));
            Err(format!("this is no JSON{}: {what}", column.unwrap_or_default()))
        }
    }
}

fn find(database: &Database, keyspace: &str, table: &str) -> Result<Arc<Table>, CopyError> {
    let schema = database.engine().schema();
    let (keyspace_name, name) = (keyspace.to_owned(), table.to_owned());
    match schema.table(keyspace, table) {
        Some(found) if found.is_virtual => Err(CopyError::Virtual {
            keyspace: keyspace_name,
            table: name,
        }),
        Some(found) => Ok(Arc::clone(found)),
        None => Err(
            match schema.keyspace(keyspace).and_then(|keyspace| keyspace.views.get(table)) {
                Some(view) => CopyError::View {
                    keyspace: keyspace_name,
                    view: name,
                    base: view.base_table.clone(),
                },
                None => CopyError::NoTable {
                    keyspace: keyspace_name,
                    table: name,
                },
            },
        ),
    }
}

/// Executes a statement; repeats it if the budget of request units is spent.
async fn execute(database: &Database, statement: &Statement, params: &QueryParams) -> Result<Option<Rows>, Error> {
    let session = SessionState::default();
    loop {
        match database.execute(&session, statement, params).await {
            Ok(answer) => {
                return Ok(match answer.kind {
                    AnswerKind::Rows(rows) => Some(rows),
                    _ => None,
                });
            }
            Err(Error::Engine(engine::Error::Throttled { retry_after, .. })) => tokio::time::sleep(retry_after).await,
            Err(error) => return Err(error),
        }
    }
}

/// Writes a table to a new file, page by page, each page as the table is then, and masked columns with their values. Returns
/// the number of rows.
///
/// # Errors
/// [`CopyError`]; then the file does not exist.
pub async fn export(
    database: &Database,
    (keyspace, table): (&str, &str),
    form: Form,
    to: &Path,
) -> Result<u64, CopyError> {
    let found = find(database, keyspace, table)?;
    let io = |source| CopyError::Io {
        path: to.to_owned(),
        source,
    };
    if to.exists() {
        return Err(io(io::ErrorKind::AlreadyExists.into()));
    }
    let part = permissions::part_of(to);
    let file = File::create(&part).and_then(|file| {
        permissions::set_mode(&part, permissions::PRIVATE)?;
        Ok(file)
    });
    let mut file = BufWriter::new(file.map_err(io)?);
    let written = write_pages(database, &found, form, &mut file, &io).await;
    let written = written.and_then(|rows| {
        let file = file.into_inner().map_err(|error| io(error.into_error()))?;
        file.sync_all().and_then(|()| std::fs::rename(&part, to)).map_err(io)?;
        Ok(rows)
    });
    if written.is_err() {
        drop(std::fs::remove_file(&part));
    }
    written
}

async fn write_pages(
    database: &Database,
    table: &Table,
    form: Form,
    file: &mut (impl Write + Send),
    io: &(impl Fn(io::Error) -> CopyError + Sync),
) -> Result<u64, CopyError> {
    let text = format!("SELECT * FROM {}.{}", quoted(&table.keyspace), quoted(&table.name));
    let statement = database.prepare(None, &text)?;
    let mut params = QueryParams {
        page_size_rows: Some(PAGE_ROWS),
        ..QueryParams::default()
    };
    let (mut count, mut is_first) = (0, true);
    loop {
        let rows = execute(database, &statement, &params).await?;
        let Some(rows) = rows else { return Ok(count) };
        let mut out = String::new();
        if is_first && form == Form::Csv {
            for (place, column) in rows.metadata.columns.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                put_cell(&mut out, &column.name);
            }
            out.push('\n');
        }
        is_first = false;
        put_rows(&mut out, &rows, form);
        file.write_all(out.as_bytes()).map_err(io)?;
        count += u64::from(rows.row_count);
        progress::pass(rows.row_count.into(), 0);
        params.paging_state = rows.paging_state;
        if params.paging_state.is_none() {
            return Ok(count);
        }
    }
}

fn put_rows(out: &mut String, rows: &Rows, form: Form) {
    let ResultMetadata { columns, .. } = rows.metadata.as_ref();
    let mut content = rows.content.as_ref();
    for _ in 0..rows.row_count {
        let mut cells = Vec::with_capacity(columns.len());
        for _ in 0..columns.len() {
            let Some((length, rest)) = content.split_first_chunk::<4>() else {
                return;
            };
            let cell = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (cell, rest) = match cell.and_then(|length| rest.split_at_checked(length)) {
                Some((cell, rest)) => (Some(cell), rest),
                None => (None, rest),
            };
            cells.push(cell);
            content = rest;
        }
        let cells = columns.iter().zip(cells);
        match form {
            Form::Csv => put_csv(out, cells.map(|(column, cell)| (&column.ty, cell))),
            Form::Json => put_json(
                out,
                cells.map(|(column, cell)| (column.name.as_str(), &column.ty, cell)),
            ),
        }
    }
}

/// The columns of a file.
struct Columns {
    table: Arc<Table>,
    /// The column's position, for each cell of CSV.
    places: Vec<usize>,
}

impl Columns {
    fn of_header(table: Arc<Table>, header: &str) -> Result<Self, CopyError> {
        let mut places = Vec::new();
        for name in csv_cells(header).map_err(CopyError::Header)? {
            let name = name.unwrap_or_default();
            let place = table.columns.iter().position(|column| column.name == name);
            let place = place.ok_or_else(|| CopyError::NoColumn { name: name.clone() })?;
            if places.contains(&place) {
                return Err(CopyError::Header(format!("column {name} is named twice")));
            }
            places.push(place);
        }
        let keys = table.columns.iter().enumerate();
        let mut keys = keys.filter(|(_, column)| column.kind == ColumnKind::PartitionKey);
        if let Some((_, column)) = keys.find(|(place, _)| !places.contains(place)) {
            return Err(CopyError::NoKey {
                name: column.name.clone(),
            });
        }
        Ok(Self { table, places })
    }

    /// The values of a record, by column position.
    fn values(&self, record: &str, form: Form) -> Result<Vec<Option<Bytes>>, String> {
        let mut values = vec![None; self.table.columns.len()];
        let mut set = |place: usize, read: &dyn Fn(&CqlType) -> Result<Option<Bytes>, String>| {
            let (Some(column), Some(value)) = (self.table.columns.get(place), values.get_mut(place)) else {
                return Ok(());
            };
            *value = read(&column.ty).map_err(|why| format!("column {}: {why}", column.name))?;
            Ok::<(), String>(())
        };
        match form {
            Form::Csv => {
                let cells = csv_cells(record)?;
                if cells.len() != self.places.len() {
                    return Err(format!(
                        "cells: {}, where the first line names {}",
                        cells.len(),
                        self.places.len()
                    ));
                }
                for (place, cell) in self.places.iter().zip(&cells) {
                    set(*place, &|ty| csv_value(ty, cell.as_deref()))?;
                }
            }
            Form::Json => {
                for (name, json) in object(record)? {
                    let place = self.place(&name).ok_or_else(|| format!("there is no column {name}"))?;
                    set(place, &|ty| json_value(ty, &json))?;
                }
            }
        }
        Ok(values)
    }

    /// The column of a member: by its plain name, or as `SELECT JSON` writes it.
    fn place(&self, name: &str) -> Option<usize> {
        let of = |name: &str| self.table.columns.iter().position(|column| column.name == name);
        of(name).or_else(|| of(&folded_json_name(name)))
    }
}

/// Writes the rows of a file to a table. Ends when more than `bad_max` rows are bad.
///
/// # Errors
/// [`CopyError`]; rows imported before stay.
pub async fn import(
    database: &Database,
    (keyspace, table): (&str, &str),
    form: Form,
    from: &Path,
    bad_max: u64,
) -> Result<Imported, CopyError> {
    let table = find(database, keyspace, table)?;
    let imported = import_rows(database, Arc::clone(&table), form, from, bad_max).await;
    if table.keyspace == system::AUTH {
        // Rows of roles hold at once, as after an INSERT. Rows imported before an error stay.
        database.reload_roles().await?;
    }
    imported
}

async fn import_rows(
    database: &Database,
    table: Arc<Table>,
    form: Form,
    from: &Path,
    bad_max: u64,
) -> Result<Imported, CopyError> {
    let io = |source| CopyError::Io {
        path: from.to_owned(),
        source,
    };
    let inserts = Inserts::new(database, Arc::clone(&table))?;
    let file = File::open(from).map_err(io)?;
    progress::expect(file.metadata().map_err(io)?.len());
    let mut records = Records::new(BufReader::new(file), form);
    let columns = match form {
        Form::Csv => Columns::of_header(table, &header(&mut records, &io)?)?,
        Form::Json => Columns {
            table,
            places: Vec::new(),
        },
    };
    let mut imported = Imported::default();
    let mut counted = CountedPartitions::new();
    loop {
        let (some, error) = next_records(&mut records);
        let last = some.last().map(|record| record.lines.last);
        let lines = some.iter().filter_map(|record| record.text.as_ref());
        // With the line's end.
        let bytes: u64 = lines.map(|text| text.len() as u64 + 1).sum();
        let rows_before = imported.rows;
        let rows = some.into_iter().map(|record| {
            let bound = bind(&inserts, &columns, &record, form, &mut counted);
            (record.lines, bound)
        });
        let written = rows.collect::<Vec<_>>().into_iter().map(|(lines, bound)| async move {
            let written = match bound {
                Ok(bound) => write(database, bound).await,
                Err(reason) => Err(reason),
            };
            written.map_err(|reason| BadRow { lines, reason })
        });
        for written in join_all(written).await {
            match written {
                Ok(()) => imported.rows += 1,
                Err(bad) => imported.add_bad(bad),
            }
        }
        progress::pass(imported.rows - rows_before, bytes);
        match (error, last) {
            (Some(RecordError::Io(error)), _) => return Err(io(error)),
            (Some(RecordError::Endless(error)), _) => {
                imported.unread = Some(error.into());
                return Ok(imported);
            }
            (None, None) => return Ok(imported),
            (None, Some(line)) if imported.bad > bad_max => {
                imported.unread = Some(Unread::BadRows { line });
                return Ok(imported);
            }
            (None, Some(_)) => {}
        }
    }
}

/// The first line of a file of CSV.
fn header(records: &mut Records<impl BufRead>, io: &impl Fn(io::Error) -> CopyError) -> Result<String, CopyError> {
    match records.next_record() {
        Ok(Some(Record { text, .. })) => text.ok_or(CopyError::NotUtf8),
        Ok(None) => Err(CopyError::NoLine),
        Err(RecordError::Io(error)) => Err(io(error)),
        Err(RecordError::Endless(error)) => Err(error.into()),
    }
}

/// The next records that are imported at once: none at the end of the file. An error comes with the records before it.
fn next_records(records: &mut Records<impl BufRead>) -> (Vec<Record>, Option<RecordError>) {
    let (mut some, mut bytes): (Vec<Record>, usize) = (Vec::new(), 0);
    while some.len() < ROWS_AT_ONCE && bytes < BYTES_AT_ONCE {
        match records.next_record() {
            Ok(Some(record)) => {
                bytes += record.text.as_ref().map_or(0, String::len);
                some.push(record);
            }
            Ok(None) => break,
            Err(error) => return (some, Some(error)),
        }
    }
    (some, None)
}

/// The statements that write a record.
fn bind<'i>(
    inserts: &'i Inserts,
    columns: &Columns,
    record: &Record,
    form: Form,
    counted: &mut CountedPartitions,
) -> Result<Vec<Bound<'i>>, String> {
    let text = record.text.as_ref().ok_or("this is not UTF-8")?;
    inserts.of(&columns.values(text, form)?, counted)
}

async fn write(database: &Database, statements: Vec<Bound<'_>>) -> Result<(), String> {
    for (statement, values) in statements {
        let params = QueryParams {
            values: Values::Positional(values),
            ..QueryParams::default()
        };
        let written = execute(database, statement, &params).await;
        written.map_err(|error| error.to_string())?;
    }
    Ok(())
}
