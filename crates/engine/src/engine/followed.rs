//! Maps a base table's columns to the columns of its views. Made once for each schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use helenus_schema::command::{Comparison, FilterTarget, Predicate, Value};
use helenus_schema::schema::{Schema, StorageId, Table, View, ViewTest, system};
use helenus_storage::storage::ColumnId;
use helenus_types::functions::{Context, Timeuuids};
use helenus_types::types::CqlType;

/// A base table and its views.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The base table.
    pub(crate) base: Arc<Table>,
    pub(super) views: Vec<Following>,
    /// The context in which tests are evaluated: they have no functions any more.
    pub(super) context: Context,
}

/// A materialized view, by the columns that it takes from its base table.
#[derive(Debug)]
pub(crate) struct Following {
    pub(super) view: Arc<Table>,
    /// The sources of the values of the view's key, partition key first.
    pub(super) key: Vec<Source>,
    /// The column of the view's key that is not part of the base's key.
    pub(super) key_cell: Option<Taken>,
    /// The columns that are not part of the view's key.
    pub(super) cells: Vec<Taken>,
    /// Whether the view has all columns of the base table.
    pub(super) has_all: bool,
    pub(super) tests: Vec<Predicate>,
}

/// The source of a value of a view's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A component of the base's key, partition key first.
    Key(usize),
    /// The cell of [`Following::key_cell`].
    Cell,
}

/// A column whose cells a view takes.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// Its number in the base table.
    pub(super) base: ColumnId,
    /// Its number in the view.
    pub(super) view: ColumnId,
}

impl Followed {
    /// The base tables of a schema that have views, by number.
    pub(crate) fn all(schema: &Schema) -> BTreeMap<StorageId, Arc<Self>> {
        let mut all = BTreeMap::new();
        let keyspaces = schema.keyspaces.values();
        for keyspace in keyspaces.filter(|keyspace| !keyspace.views.is_empty() && !system::is_local(&keyspace.name)) {
            for view in keyspace.views.values() {
                let Some(base) = keyspace.tables.get(&view.base_table) else {
                    continue;
                };
                let followed = all.entry(base.storage_id).or_insert_with(|| Self {
                    base: Arc::clone(base),
                    views: Vec::new(),
                    context: Context::new(0, Arc::new(Timeuuids::new(0)), 0),
                });
                followed.views.extend(Following::new(base, view));
            }
        }
        all.into_iter().map(|(id, followed)| (id, Arc::new(followed))).collect()
    }

    /// Whether it is the base table of the view of this number.
    pub(crate) fn has_view(&self, view: StorageId) -> bool {
        self.views.iter().any(|following| following.view.storage_id == view)
    }
}

impl Following {
    /// `None` means that the view has a column that the base table does not have.
    fn new(base: &Table, view: &View) -> Option<Self> {
        let keys = base.partition_key_count + base.clustering_count;
        let table = &view.table;
        let view_keys = table.partition_key_count + table.clustering_count;
        let mut following = Self {
            view: Arc::clone(table),
            key: Vec::with_capacity(view_keys),
            key_cell: None,
            cells: Vec::new(),
            has_all: base.columns.iter().all(|column| table.column(&column.name).is_some()),
            tests: view.tests.iter().filter_map(|test| predicate(base, test)).collect(),
        };
        for (place, column) in table.columns.iter().enumerate() {
            let (base_place, of_base) = base.column(&column.name)?;
            let taken = || Taken {
                base: ColumnId(of_base.id),
                view: ColumnId(column.id),
            };
            if place >= view_keys {
                following.cells.push(taken());
            } else if base_place < keys {
                following.key.push(Source::Key(base_place));
            } else {
                following.key.push(Source::Cell);
                following.key_cell = Some(taken());
            }
        }
        Some(following)
    }

    /// The index in the view's key of a component of the base's key.
    pub(super) fn place_of(&self, component: usize) -> Option<usize> {
        self.key.iter().position(|source| *source == Source::Key(component))
    }
}

/// A stored test as a predicate on the base table. `None` means that a column is missing, which no ALTER permits.
fn predicate(base: &Table, test: &ViewTest) -> Option<Predicate> {
    let places = test
        .columns
        .iter()
        .map(|name| base.column(name).map(|(place, _)| place));
    let places: Vec<usize> = places.collect::<Option<_>>()?;
    let all = [
        Comparison::Eq,
        Comparison::Lt,
        Comparison::Lte,
        Comparison::Gt,
        Comparison::Gte,
        Comparison::In,
        Comparison::Contains,
        Comparison::ContainsKey,
        Comparison::Like,
    ];
    let comparison = all.into_iter().find(|comparison| comparison.sign() == test.sign)?;
    let types = places
        .iter()
        .map(|place| base.columns.get(*place).map(|column| &column.ty));
    let types: Vec<&CqlType> = types.collect::<Option<_>>()?;
    let ty = match (test.is_tuple, types.first()?.unfrozen(), comparison) {
        (true, _, _) => CqlType::Tuple(types.into_iter().cloned().collect()),
        (false, CqlType::Map(key, _), Comparison::ContainsKey) => key.as_ref().clone(),
        (false, CqlType::Map(_, of) | CqlType::List(of) | CqlType::Set(of), Comparison::Contains) => {
            of.as_ref().clone()
        }
        _ => types.first().map(|ty| CqlType::clone(ty))?,
    };
    Some(Predicate {
        target: if test.is_tuple {
            FilterTarget::Tuple(places)
        } else {
            FilterTarget::Column(*places.first()?)
        },
        comparison,
        operands: test
            .operands
            .iter()
            .map(|operand| Value::Bytes(Bytes::copy_from_slice(operand)))
            .collect(),
        ty,
    })
}
