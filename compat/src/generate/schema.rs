//! Random tables: keys of every shape and type, static columns, counters, types of the user, indexes.

use super::types::{self, Native, Type, Val};
use fastrand::Rng;

/// Values that a column takes, so that statements meet each other's rows.
const DOMAIN: usize = 5;

/// What a column is in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Part of the partition key.
    Partition,
    /// Clustering column; descending or not.
    Clustering(bool),
    /// One value a partition.
    Static,
    /// One value a row.
    Regular,
}

/// A column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name as CQL writes it.
    pub(super) name: String,
    /// Its type.
    pub(super) ty: Type,
    /// Whether it is one cell although its type could be many.
    pub(super) frozen: bool,
    /// What it is.
    pub(super) role: Role,
    /// Values that it usually takes.
    domain: Vec<Val>,
}

impl Column {
    /// A column, with the values that it usually takes.
    pub(super) fn new(rng: &mut Rng, name: String, ty: Type, frozen: bool, role: Role) -> Self {
        let domain = (0..DOMAIN).map(|_| ty.value(rng)).collect();
        Self {
            name,
            ty,
            frozen,
            role,
            domain,
        }
    }

    /// A value for it, mostly one that it took before.
    pub(super) fn value(&self, rng: &mut Rng) -> Val {
        let fresh = match self.role {
            Role::Partition | Role::Clustering(_) => 20,
            Role::Static | Role::Regular => 4,
        };
        match rng.choice(&self.domain) {
            Some(value) if rng.u8(0..fresh) != 0 => value.clone(),
            _ => self.ty.value(rng),
        }
    }

    /// The same column in another role, as a view has it.
    pub(super) fn in_role(&self, role: Role) -> Self {
        Self { role, ..self.clone() }
    }

    /// Whether it is many cells.
    pub(super) fn is_multicell(&self) -> bool {
        !self.frozen && self.ty.can_be_multicell()
    }

    /// Whether it is part of the primary key.
    pub(super) fn is_key(&self) -> bool {
        matches!(self.role, Role::Partition | Role::Clustering(_))
    }

    /// Its type as declared.
    pub(super) fn cql(&self) -> String {
        if self.frozen {
            self.ty.cql_within()
        } else {
            self.ty.cql()
        }
    }
}

/// A table, with its rows' columns in the order of their declaration.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Its name.
    pub(super) name: String,
    /// Its columns: partition key, clustering, static, regular.
    pub(super) columns: Vec<Column>,
    /// Whether its regular and static columns are counters.
    pub(super) counter: bool,
    /// Whether conditional statements go to it. Their timestamps come from the server's clock, so no timestamp of such
    /// a table is looked at.
    pub(super) conditional: bool,
    /// Names of columns with an index.
    pub(super) indexed: Vec<String>,
    /// Statements that make its types and itself, in order.
    pub(super) made_by: Vec<String>,
}

impl Table {
    /// Whether rows expire without a word in the statement.
    pub(super) fn expires(&self) -> bool {
        self.made_by.iter().any(|text| text.contains("default_time_to_live"))
    }

    /// Columns of one role.
    pub(super) fn of(&self, wanted: fn(Role) -> bool) -> Vec<&Column> {
        self.columns.iter().filter(|c| wanted(c.role)).collect()
    }

    /// The partition key.
    pub(super) fn partition(&self) -> Vec<&Column> {
        self.of(|role| role == Role::Partition)
    }

    /// The clustering columns.
    pub(super) fn clustering(&self) -> Vec<&Column> {
        self.of(|role| matches!(role, Role::Clustering(_)))
    }

    /// The static columns.
    pub(super) fn statics(&self) -> Vec<&Column> {
        self.of(|role| role == Role::Static)
    }

    /// The regular columns.
    pub(super) fn regular(&self) -> Vec<&Column> {
        self.of(|role| role == Role::Regular)
    }
}

fn name(rng: &mut Rng, prefix: &str, i: usize) -> String {
    if rng.u8(0..25) == 0 {
        format!("\"{} {i}\"", prefix.to_uppercase())
    } else {
        format!("{prefix}{i}")
    }
}

/// Types that can be keys: no duration, and none of the types whose equal values can differ in their bytes.
fn key_type(rng: &mut Rng, udts: &[Type]) -> Type {
    loop {
        let depth = u32::from(rng.u8(0..4) == 0);
        let ty = types::random_type(rng, udts, depth, true);
        // A boolean or a NaN in a key leaves too few rows to be worth a table, now and then it is fine.
        if ty != Type::Native(Native::Boolean) || rng.u8(0..4) == 0 {
            return ty;
        }
    }
}

fn count(rng: &mut Rng, weights: &[usize]) -> usize {
    rng.choice(weights).copied().unwrap_or(1)
}

/// A random table called `name`, its types with it.
pub(super) fn table(rng: &mut Rng, called: &str) -> Table {
    let mut made_by = Vec::new();
    let counter = rng.u8(0..10) == 0;
    let mut udts = Vec::new();
    for i in 0..count(rng, &[0, 0, 1, 2]) {
        let fields = (0..rng.usize(1..4))
            .map(|f| {
                let depth = u32::from(rng.u8(0..3) == 0);
                (format!("f{f}"), types::random_type(rng, &udts, depth, false))
            })
            .collect::<Vec<_>>();
        let declared = fields
            .iter()
            .map(|(name, ty)| format!("{name} {}", ty.cql_within()))
            .collect::<Vec<_>>();
        made_by.push(format!("CREATE TYPE u{i} ({})", declared.join(", ")));
        udts.push(Type::Udt(format!("u{i}"), fields));
    }
    let mut columns = Vec::new();
    for i in 0..count(rng, &[1, 1, 1, 1, 2, 2, 3]) {
        let ty = key_type(rng, &udts);
        let name = name(rng, "p", i);
        columns.push(Column::new(rng, name, ty, true, Role::Partition));
    }
    let clusterings = count(rng, &[0, 1, 1, 1, 2, 2, 2, 3, 3]);
    for i in 0..clusterings {
        let ty = key_type(rng, &udts);
        let (name, descending) = (name(rng, "c", i), rng.u8(0..3) == 0);
        columns.push(Column::new(rng, name, ty, true, Role::Clustering(descending)));
    }
    let statics = if clusterings > 0 {
        count(rng, &[0, 0, 0, 1, 2])
    } else {
        0
    };
    let regulars = count(rng, &[0, 1, 2, 3, 3, 4, 4, 5, 6]).max(usize::from(counter));
    for i in 0..statics + regulars {
        let (role, prefix, i) = if i < statics {
            (Role::Static, "s", i)
        } else {
            (Role::Regular, "r", i - statics)
        };
        let depth = count(rng, &[1, 1, 1, 2]);
        let ty = if counter {
            Type::Counter
        } else {
            types::random_type(rng, &udts, u32::try_from(depth).unwrap_or(1), false)
        };
        let (name, frozen) = (name(rng, prefix, i), rng.u8(0..3) == 0);
        columns.push(Column::new(rng, name, ty, frozen, role));
    }
    let mut table = Table {
        name: called.to_owned(),
        columns,
        counter,
        conditional: !counter && rng.u8(0..4) == 0,
        indexed: Vec::new(),
        made_by,
    };
    let statement = declaration(rng, &table);
    table.made_by.push(statement);
    table
}

/// A regular column that is added to a table.
pub(super) fn added(rng: &mut Rng, called: &str, counter: bool) -> Column {
    let ty = if counter {
        Type::Counter
    } else {
        types::random_type(rng, &[], 1, false)
    };
    let frozen = rng.u8(0..3) == 0;
    Column::new(rng, called.to_owned(), ty, frozen, Role::Regular)
}

fn declaration(rng: &mut Rng, table: &Table) -> String {
    let mut parts = table
        .columns
        .iter()
        .map(|c| {
            let word = if c.role == Role::Static { " static" } else { "" };
            format!("{} {}{word}", c.name, c.cql())
        })
        .collect::<Vec<_>>();
    let names = |columns: &[&Column]| columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
    let (partition, clustering) = (table.partition(), table.clustering());
    let key = match (partition.len(), clustering.is_empty()) {
        (1, true) => names(&partition),
        (1, false) => format!("{}, {}", names(&partition), names(&clustering)),
        (_, true) => format!("({})", names(&partition)),
        (_, false) => format!("({}), {}", names(&partition), names(&clustering)),
    };
    parts.push(format!("PRIMARY KEY ({key})"));
    let mut options = Vec::new();
    if clustering.iter().any(|c| c.role == Role::Clustering(true)) {
        let orders = clustering
            .iter()
            .map(|c| {
                let way = if c.role == Role::Clustering(true) {
                    "DESC"
                } else {
                    "ASC"
                };
                format!("{} {way}", c.name)
            })
            .collect::<Vec<_>>();
        options.push(format!("CLUSTERING ORDER BY ({})", orders.join(", ")));
    }
    if !table.counter && rng.u8(0..12) == 0 {
        options.push("default_time_to_live = 50000".to_owned());
    }
    let with = if options.is_empty() {
        String::new()
    } else {
        format!(" WITH {}", options.join(" AND "))
    };
    format!("CREATE TABLE {} ({}){with}", table.name, parts.join(", "))
}

/// A random index on the table, legacy or SAI: its statement, and the column it is on.
pub(super) fn index(rng: &mut Rng, table: &Table, i: usize) -> Option<(String, String)> {
    let column = rng.choice(&table.columns)?;
    let column_name = column.name.as_str();
    let target = match &column.ty {
        Type::Map(..) if !column.frozen => match rng.u8(0..3) {
            0 => format!("KEYS({column_name})"),
            1 => format!("VALUES({column_name})"),
            _ => format!("ENTRIES({column_name})"),
        },
        ty if ty.is_collection() && column.frozen => format!("FULL({column_name})"),
        _ => column_name.to_owned(),
    };
    let on = format!("{} ({target})", table.name);
    let statement = match rng.u8(0..5) {
        0 => format!("CREATE INDEX i{i} ON {on}"),
        1 => format!("CREATE INDEX i{i} ON {on} USING 'legacy_local_table'"),
        2 => format!("CREATE INDEX i{i} ON {on} USING 'sai'"),
        3 => format!("CREATE CUSTOM INDEX i{i} ON {on} USING 'StorageAttachedIndex'"),
        _ => match column.ty {
            Type::Native(Native::Text | Native::Ascii | Native::Varchar) => {
                let option = ["case_sensitive", "normalize", "ascii"];
                let option = rng.choice(&option)?;
                let value = if *option == "case_sensitive" { "false" } else { "true" };
                format!(
                    "CREATE CUSTOM INDEX i{i} ON {on} USING 'StorageAttachedIndex' WITH OPTIONS = \
                     {{'{option}': '{value}'}}"
                )
            }
            _ => format!("CREATE CUSTOM INDEX i{i} ON {on} USING 'StorageAttachedIndex'"),
        },
    };
    Some((statement, column_name.to_owned()))
}

/// Whether the index that this statement makes is Cassandra's first kind, also its default.
pub(super) fn is_of_the_first_kind(index: &str) -> bool {
    !index.contains("'sai'") && !index.contains("'StorageAttachedIndex'")
}
