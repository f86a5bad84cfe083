//! The second front end of the simulation: typed commands to the engine, without text. A client chooses the front end
//! of each request at random, so that both meet every fault in every seed.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use helenus_base::metrics::StatementKind;
use helenus_engine::engine::{Decision, Ended, Engine, Error, Origin, Paging, Terms, Written};
use helenus_schema::command::{
    Batch, BatchKind, Clustering, ClusteringRange, ColumnChange, Comparison, Condition, FilterTarget, Partitions,
    Predicate, Read, Selection, Value, Write, WriteTarget, WriteVerb,
};
use helenus_schema::schema::Table;
use helenus_types::types::{CqlType, Native};

use super::support::typed::TypedRows;
use super::world::{Line, World};

/// A request as a typed command.
#[expect(clippy::large_enum_variant, reason = "a history has few of them")]
pub(crate) enum Command {
    Read(Read),
    Write(Write),
    /// Writes that are atomic.
    Batch(Vec<Write>),
    Truncate(Arc<Table>),
}

/// The error code of a charged failure: the simulation reads no figure of it.
const FAILED: u16 = 0;

/// Share of requests that go to the engine as commands, in thousandths.
pub(crate) const COMMANDS_PER_MILLE: u64 = 500;

/// A table of the keyspace `ks`, from which commands are made.
pub(crate) struct Maker(Arc<Table>);

impl Maker {
    pub(crate) fn of(engine: &Engine, table: &str) -> Self {
        Self(Arc::clone(engine.schema().table("ks", table).unwrap()))
    }

    fn place(&self, column: &str) -> usize {
        self.0.columns.iter().position(|of| of.name == column).unwrap()
    }

    /// A value of a column, as bytes.
    fn value(&self, place: usize, number: i64) -> Bytes {
        match self.0.columns[place].ty {
            CqlType::Native(Native::Int) => Bytes::copy_from_slice(&i32::try_from(number).unwrap().to_be_bytes()),
            _ => Bytes::copy_from_slice(&number.to_be_bytes()),
        }
    }

    fn change(&self, column: &str, number: i64) -> (usize, ColumnChange) {
        let place = self.place(column);
        (place, ColumnChange::Set(Value::Bytes(self.value(place, number))))
    }

    fn write(&self, kind: WriteVerb, key: i64, target: WriteTarget, operations: Vec<(usize, ColumnChange)>) -> Write {
        Write {
            table: Arc::clone(&self.0),
            kind,
            partition_keys: vec![self.value(0, key)],
            target,
            operations,
            names_static: false,
            timestamp: None,
            ttl_seconds: None,
            condition: Condition::Always,
            condition_columns: Vec::new(),
            masks: None,
        }
    }

    /// The row of a clustering key. `None` means the table has no clustering columns.
    fn row(clustering: Option<i32>) -> WriteTarget {
        WriteTarget::Rows(vec![clustering.map(at).unwrap_or_default()])
    }

    /// INSERT of one column, or of none.
    pub(crate) fn insert(&self, key: i64, clustering: Option<i32>, set: &[(&str, i64)]) -> Write {
        let changes = set.iter().map(|(column, number)| self.change(column, *number));
        self.write(WriteVerb::Insert, key, Self::row(clustering), changes.collect())
    }

    /// UPDATE of columns.
    pub(crate) fn update(&self, key: i64, clustering: Option<i32>, set: &[(&str, i64)]) -> Write {
        Write {
            kind: WriteVerb::Update,
            ..self.insert(key, clustering, set)
        }
    }

    /// DELETE of a row.
    pub(crate) fn delete_row(&self, key: i64, clustering: Option<i32>) -> Write {
        self.write(WriteVerb::Delete, key, Self::row(clustering), Vec::new())
    }

    /// DELETE of a partition.
    pub(crate) fn delete_partition(&self, key: i64) -> Write {
        self.write(WriteVerb::Delete, key, WriteTarget::Partition, Vec::new())
    }

    /// DELETE of the rows from a clustering key on.
    pub(crate) fn delete_from(&self, key: i64, clustering: i32) -> Write {
        let range = ClusteringRange {
            start: at(clustering),
            end: None,
        };
        self.write(WriteVerb::Delete, key, WriteTarget::Ranges(vec![range]), Vec::new())
    }

    /// `write` where no row is.
    pub(crate) fn if_not_exists(&self, write: Write) -> Write {
        Write {
            condition: Condition::NotExists,
            condition_columns: (0..self.0.columns.len()).collect(),
            masks: None,
            ..write
        }
    }

    /// `write` where a column has a value.
    pub(crate) fn if_is(&self, write: Write, column: &str, number: i64) -> Write {
        let place = self.place(column);
        let test = Predicate {
            target: FilterTarget::Column(place),
            comparison: Comparison::Eq,
            operands: vec![Value::Bytes(self.value(place, number))],
            ty: self.0.columns[place].ty.clone(),
        };
        Write {
            condition: Condition::Columns(vec![test]),
            condition_columns: vec![place],
            masks: None,
            ..write
        }
    }

    fn read(&self, columns: &[&str], partitions: Partitions, rows: Clustering) -> Read {
        let places: Vec<usize> = columns.iter().map(|column| self.place(column)).collect();
        let selection = Arc::new(Selection::of_columns(&self.0, &places));
        Read {
            rows,
            ..Read::new(Arc::clone(&self.0), selection, partitions)
        }
    }

    /// The rows of a partition.
    pub(crate) fn read_key(&self, columns: &[&str], key: i64, rows: Clustering) -> Read {
        self.read(columns, Partitions::Keys(vec![self.value(0, key)]), rows)
    }

    /// All rows.
    pub(crate) fn read_all(&self, columns: &[&str]) -> Read {
        self.read(columns, Partitions::WHOLE_RING, Clustering::All)
    }

    pub(crate) fn truncate(&self) -> Command {
        Command::Truncate(Arc::clone(&self.0))
    }
}

/// A clustering key of one int.
pub(crate) fn at(clustering: i32) -> Vec<u8> {
    let mut key = Vec::new();
    CqlType::Native(Native::Int).encode_key(&clustering.to_be_bytes(), false, &mut key);
    key
}

/// Clustering keys up to one, that one included.
pub(crate) fn up_to(clustering: i32) -> Clustering {
    Clustering::Ranges(vec![ClusteringRange {
        start: Vec::new(),
        end: Some(at(clustering + 1)),
    }])
}

fn number(cell: Option<&Bytes>) -> Option<i64> {
    let cell = cell?;
    match cell.len() {
        4 => Some(i32::from_be_bytes(cell.as_ref().try_into().unwrap()).into()),
        _ => Some(i64::from_be_bytes(cell.as_ref().try_into().unwrap())),
    }
}

/// The outcome of a condition as a line: whether it was applied, then the values found.
fn decided(written: &Written) -> Vec<Line> {
    match &written.decision {
        None => Vec::new(),
        Some(Decision::Applied) => vec![vec![Some(1)]],
        Some(Decision::Refused { rows, .. }) => {
            let found = rows.first().into_iter().flatten();
            let values = found.map(|cell| number(cell.as_ref()));
            vec![[Some(0)].into_iter().chain(values).collect()]
        }
    }
}

/// Executes a command and charges it.
pub(crate) async fn run(engine: &Engine, command: &Command, terms: Terms<'_>) -> Result<Vec<Line>, Error> {
    let mut execution = engine.begin(terms).await;
    let table = match command {
        Command::Read(read) => Some(&read.table),
        Command::Write(write) => Some(&write.table),
        Command::Batch(writes) => writes.first().map(|write| &write.table),
        Command::Truncate(table) => Some(table),
    };
    let tables: Vec<_> = table.into_iter().map(Arc::clone).collect();
    execution.set_origin(Origin::without_text(StatementKind::Select, &tables));
    let outcome = match command {
        Command::Read(read) => {
            let page = execution.read_page::<TypedRows>(read, None, &Paging::default()).await;
            let line = |row: &Vec<Option<Bytes>>| row.iter().map(|cell| number(cell.as_ref())).collect();
            page.map(|(_, found)| found.rows.iter().map(line).collect())
        }
        Command::Write(write) => {
            let written = execution.write(write).await;
            written.map(|written| decided(&written))
        }
        Command::Batch(writes) => {
            let batch = Batch {
                kind: BatchKind::Logged,
                modifications: writes.clone(),
                timestamp: None,
                conditional: false,
            };
            let written = execution.batch(&batch).await;
            written.map(|_| Vec::new())
        }
        Command::Truncate(table) => execution.truncate(table).await.map(|()| Vec::new()),
    };
    let ended = match &outcome {
        Ok(lines) => Ended::Answered { row_bytes: lines.len() },
        Err(_) => Ended::Failed { code: FAILED },
    };
    execution.finish(ended);
    outcome
}

/// Whether a request goes to the engine as a command.
pub(crate) fn is_drawn(world: &Rc<World>) -> bool {
    world.chance(COMMANDS_PER_MILLE)
}
