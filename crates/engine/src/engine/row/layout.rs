//! The columns of a table that a read needs, and how their cells become values.

use helenus_schema::schema::{ColumnKind, Table};
use helenus_storage::storage::ColumnId;
use helenus_types::types::CqlType;

/// How the cells of a column form one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One cell.
    Plain,
    /// Each cell is a value, in order of the paths.
    List,
    /// Each path is an element.
    Set(CqlType),
    /// Each path is a key, its cell the value.
    Map(CqlType),
    /// Each path is a field's number (i16). Holds the number of fields.
    User(usize),
}

impl Shape {
    /// The encoding of a column of this type.
    pub(crate) fn of(ty: &CqlType) -> Self {
        match ty {
            CqlType::List(_) => Self::List,
            CqlType::Set(element) => Self::Set(element.as_ref().clone()),
            CqlType::Map(key, _) => Self::Map(key.as_ref().clone()),
            CqlType::User(user) => Self::User(user.fields.len()),
            CqlType::Native(_) | CqlType::Custom(_) | CqlType::Tuple(_) | CqlType::Vector(..) | CqlType::Frozen(_) => {
                Self::Plain
            }
        }
    }
}

/// A static or regular column of the table.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its number in stored rows.
    pub(crate) id: ColumnId,
    /// Its position in `table.columns`.
    pub(crate) place: usize,
    /// `None` means that its value is not needed, only the fact that it has one, which shows that the row exists.
    pub(crate) shape: Option<Shape>,
    /// Cells dated up to this time (µs) are hidden: the column was dropped then, and added again. `None`, the usual case,
    /// hides nothing.
    pub(crate) hidden_up_to: Option<i64>,
}

/// The columns to read of each row, and how. Made once for a plan.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// How many columns the table has.
    pub(crate) columns: usize,
    /// Components of the partition key that are needed.
    pub(crate) partition_key: Vec<usize>,
    /// How many leading clustering columns must be decoded to reach all needed ones.
    pub(crate) clustering: usize,
    /// Static columns, by id.
    pub(crate) statics: Vec<Wanted>,
    /// Regular columns, by id, without dropped ones.
    pub(crate) regulars: Vec<Wanted>,
    /// Whether some static column is needed.
    pub(crate) needs_static: bool,
    /// Whether write times and expiries are kept.
    pub(crate) metadata: bool,
    /// Whether a cell that is not needed is skipped if it is older than its row's marker. Cassandra does so if some
    /// static or regular column is selected (`BTreeRow.filter`): the marker shows the row, so such a cell is not needed
    /// for that. Once the marker has expired, reads of other columns no longer find the row, which is also as in
    /// Cassandra.
    pub(crate) passes_over: bool,
}

impl Layout {
    /// The layout of a read that needs these columns (places in `table.columns`).
    pub(crate) fn new(table: &Table, needed: impl IntoIterator<Item = usize>, metadata: bool) -> Self {
        let mut is_needed = vec![false; table.columns.len()];
        for place in needed {
            if let Some(flag) = is_needed.get_mut(place) {
                *flag = true;
            }
        }
        let flags = || is_needed.iter().copied().enumerate().filter(|(_, needed)| *needed);
        let mut layout = Self {
            columns: table.columns.len(),
            partition_key: flags()
                .map(|(place, _)| place)
                .filter(|place| *place < table.partition_key_count)
                .collect(),
            clustering: flags()
                .filter_map(|(place, _)| {
                    let number = place.checked_sub(table.partition_key_count)?;
                    (number < table.clustering_count).then_some(number + 1)
                })
                .max()
                .unwrap_or(0),
            statics: Vec::new(),
            regulars: Vec::new(),
            needs_static: false,
            metadata,
            passes_over: false,
        };
        for (place, (column, needed)) in table.columns.iter().zip(&is_needed).enumerate() {
            let wanted = Wanted {
                id: ColumnId(column.id),
                place,
                shape: needed.then(|| Shape::of(&column.ty)),
                hidden_up_to: table.hidden_up_to(column),
            };
            match column.kind {
                ColumnKind::Static => {
                    layout.needs_static |= *needed;
                    layout.statics.push(wanted);
                }
                ColumnKind::Regular => layout.regulars.push(wanted),
                ColumnKind::PartitionKey | ColumnKind::Clustering => {}
            }
        }
        layout.passes_over = [&layout.statics, &layout.regulars]
            .into_iter()
            .flatten()
            .any(|wanted| wanted.shape.is_some());
        layout.statics.sort_by_key(|wanted| wanted.id);
        layout.regulars.sort_by_key(|wanted| wanted.id);
        layout
    }

    /// The layout of a read of every column.
    pub(crate) fn whole(table: &Table, metadata: bool) -> Self {
        Self::new(table, 0..table.columns.len(), metadata)
    }
}
