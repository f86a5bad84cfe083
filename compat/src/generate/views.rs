//! Random materialized views over the round's table: right definitions and wrong ones, changes of the table under them.

use super::question::{Kind, Question};
use super::schema::{Column, Role, Table};
use super::state::{Effect, Round};
use super::types::Type;
use super::write;

/// Views of a table at the same time, at most.
const VIEWS_MAX: usize = 3;

/// A definition in its parts, so that one of them can be made wrong.
struct Definition {
    name: String,
    base: String,
    selected: Vec<String>,
    restrictions: Vec<String>,
    partition: Vec<Column>,
    clustering: Vec<Column>,
    /// Columns of CLUSTERING ORDER BY; none if it is left out.
    order: Vec<(String, bool)>,
    options: Vec<String>,
}

impl Definition {
    fn text(&self) -> String {
        let names = |columns: &[Column]| columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let clustering = if self.clustering.is_empty() {
            String::new()
        } else {
            format!(", {}", names(&self.clustering))
        };
        let mut options = self.options.clone();
        if !self.order.is_empty() {
            let order = self
                .order
                .iter()
                .map(|(name, descending)| format!("{name} {}", if *descending { "DESC" } else { "ASC" }))
                .collect::<Vec<_>>();
            options.insert(0, format!("CLUSTERING ORDER BY ({})", order.join(", ")));
        }
        let with = if options.is_empty() {
            String::new()
        } else {
            format!(" WITH {}", options.join(" AND "))
        };
        format!(
            "CREATE MATERIALIZED VIEW {} AS SELECT {} FROM {} WHERE {} PRIMARY KEY (({}){clustering}){with}",
            self.name,
            self.selected.join(", "),
            self.base,
            self.restrictions.join(" AND "),
            names(&self.partition),
        )
    }

    /// The view as a table to read; as [`Table::made_by`] its own statement.
    fn table(&self, base: &Table) -> Table {
        let mut columns = self.partition.clone();
        columns.extend(self.clustering.iter().cloned());
        let all = self.selected.iter().any(|name| name == "*");
        for column in &base.columns {
            let is_there = columns.iter().any(|c| c.name == column.name);
            if !is_there && (all || self.selected.contains(&column.name)) {
                columns.push(column.in_role(Role::Regular));
            }
        }
        Table {
            name: self.name.clone(),
            columns,
            counter: false,
            conditional: base.conditional,
            indexed: Vec::new(),
            made_by: vec![self.text()],
        }
    }
}

/// Whether a column can be part of a view's key.
fn can_be_key(column: &Column) -> bool {
    column.role != Role::Static && !column.is_multicell() && write::has_order(&column.ty)
}

/// CREATE MATERIALIZED VIEW, now and then of a wrong definition.
#[expect(clippy::too_many_lines, reason = "the clauses of one statement, in their order")]
pub(super) fn create(round: &mut Round) -> Question {
    let base = round.table.clone();
    let name = format!("v{}", round.number_of_next());
    let mut key = base.columns.iter().filter(|c| c.is_key()).cloned().collect::<Vec<_>>();
    let others = base
        .regular()
        .into_iter()
        .filter(|c| can_be_key(c))
        .cloned()
        .collect::<Vec<_>>();
    if round.rng.u8(0..5) < 3
        && let Some(other) = round.rng.choice(&others)
    {
        key.push(other.clone());
    }
    round.rng.shuffle(&mut key);
    let partition_len = if round.rng.u8(0..3) == 0 {
        round.rng.usize(1..=key.len())
    } else {
        1
    };
    let clustering = key
        .split_off(partition_len.min(key.len()))
        .into_iter()
        .map(|c| {
            let descending = round.rng.u8(0..3) == 0;
            c.in_role(Role::Clustering(descending))
        })
        .collect::<Vec<_>>();
    let partition = key.iter().map(|c| c.in_role(Role::Partition)).collect::<Vec<_>>();
    let all_keys = partition.iter().chain(&clustering).cloned().collect::<Vec<_>>();
    let selected = if base.statics().is_empty() && round.rng.bool() {
        vec!["*".to_owned()]
    } else {
        let mut names = Vec::new();
        for column in &base.columns {
            let is_key = all_keys.iter().any(|c| c.name == column.name);
            if is_key || (column.role == Role::Regular && round.rng.u8(0..3) != 0) {
                names.push(column.name.clone());
            }
        }
        names
    };
    let restrictions = all_keys
        .iter()
        .map(|column| {
            let of_base = base.columns.iter().any(|c| c.name == column.name && c.is_key());
            restriction(round, column, of_base)
        })
        .collect();
    let order = if clustering.iter().any(|c| c.role == Role::Clustering(true)) {
        let order = |c: &Column| (c.name.clone(), c.role == Role::Clustering(true));
        clustering.iter().map(order).collect()
    } else {
        Vec::new()
    };
    let mut definition = Definition {
        name,
        base: base.name.clone(),
        selected,
        restrictions,
        partition,
        clustering,
        order,
        options: Vec::new(),
    };
    if round.rng.u8(0..6) == 0 {
        definition.options.push("comment = 'a view'".to_owned());
    }
    let table = definition.table(&base);
    if round.rng.u8(0..5) == 0 {
        mislead(round, &mut definition);
    }
    let text = definition.text();
    // What is wrong but taken is never asked.
    if table.made_by.first() == Some(&text) {
        round.pending = Effect::View(table);
    }
    Question::new(Kind::Schema, text)
}

/// `IS NOT NULL`, now and then a restriction of its values.
fn restriction(round: &mut Round, column: &Column, of_base: bool) -> String {
    let name = &column.name;
    if !of_base || round.rng.u8(0..8) != 0 {
        return format!("{name} IS NOT NULL");
    }
    let value = column.value(&mut round.rng).literal;
    match round.rng.u8(0..5) {
        0 => format!("{name} = {value}"),
        1 => format!("{name} IN ({value}, {})", column.value(&mut round.rng).literal),
        2 => format!("{name} > {value}"),
        3 => format!("{name} <= {value}"),
        _ => format!("{name} IS NOT NULL AND {name} >= {value}"),
    }
}

/// Makes one part of a definition wrong.
fn mislead(round: &mut Round, definition: &mut Definition) {
    let base = round.table.clone();
    let named = |wanted: &dyn Fn(&Column) -> bool| base.columns.iter().find(|c| wanted(c)).cloned();
    match round.rng.u8(0..14) {
        0 => {
            definition.clustering.pop();
        }
        1 => {
            let other = named(&|c| c.role == Role::Static);
            definition.selected.extend(other.map(|c| c.name));
        }
        2 => definition.clustering.extend(named(&|c| c.role == Role::Static)),
        3 => definition.clustering.extend(named(&Column::is_multicell)),
        4 => definition
            .clustering
            .extend(base.regular().into_iter().take(2).cloned()),
        5 => {
            definition.restrictions.pop();
            if definition.restrictions.is_empty() {
                definition.restrictions.push("nowhere IS NOT NULL".to_owned());
            }
        }
        6 => {
            if let Some(column) = named(&|c| c.role == Role::Regular) {
                let value = column.value(&mut round.rng).literal;
                definition.restrictions.push(format!("{} = {value}", column.name));
            }
        }
        7 => definition.selected.push("nowhere".to_owned()),
        8 => definition.options.push("default_time_to_live = 10".to_owned()),
        9 => {
            definition.order.pop();
        }
        10 => definition.base = "nowhere".to_owned(),
        11 => {
            if let Some(first) = definition.selected.first_mut() {
                first.push_str(" AS x");
            }
        }
        12 => definition.selected.push("count(*)".to_owned()),
        _ => {
            if let Some(view) = round.views.first() {
                definition.name.clone_from(&view.name);
            }
        }
    }
}

/// A change of a view, or of the table under it.
#[expect(clippy::too_many_lines, reason = "one arm for each change")]
pub(super) fn change(round: &mut Round) -> Option<Question> {
    let view = round.rng.choice(&round.views).map(|view| view.name.clone());
    let table = round.table.name.clone();
    let text = match (round.rng.u8(0..14), view) {
        (0..=2, _) | (_, None) if round.views.len() < VIEWS_MAX => return Some(create(round)),
        (3, Some(view)) => {
            round.pending = Effect::NoView(view.clone());
            format!("DROP MATERIALIZED VIEW {view}")
        }
        (4, Some(view)) => {
            let options = [
                "comment = 'changed'",
                "gc_grace_seconds = 0",
                "default_time_to_live = 10",
                "caching = {'keys': 'NONE', 'rows_per_partition': '1'}",
                "nowhere = 1",
            ];
            format!("ALTER MATERIALIZED VIEW {view} WITH {}", round.rng.choice(&options)?)
        }
        (5, _) => {
            let number = round.number_of_next();
            let column = super::schema::added(&mut round.rng, &format!("r{}", 20 + number), round.table.counter);
            let text = format!("ALTER TABLE {table} ADD {} {}", column.name, column.cql());
            round.pending = Effect::Column(column);
            text
        }
        (6, _) => {
            let column = round.rng.choice(&round.table.columns)?.name.clone();
            round.pending = Effect::NoColumn(column.clone());
            format!("ALTER TABLE {table} DROP {column}")
        }
        (7, _) => {
            let column = round.rng.choice(&round.table.columns)?.name.clone();
            let to = format!("k{}", round.number_of_next());
            round.pending = Effect::Renamed(column.clone(), to.clone());
            format!("ALTER TABLE {table} RENAME {column} TO {to}")
        }
        (8, Some(_)) => format!("DROP TABLE {table}"),
        (9, _) => format!("TRUNCATE {table}"),
        (10, Some(view)) => {
            let wrong = [
                format!("TRUNCATE {view}"),
                format!("DROP TABLE {view}"),
                format!("ALTER TABLE {view} ADD x int"),
                format!("CREATE INDEX ON {view} (r0)"),
                format!("INSERT INTO {view} JSON '{{}}'"),
                format!("CREATE MATERIALIZED VIEW w AS SELECT * FROM {view} WHERE p0 IS NOT NULL PRIMARY KEY (p0)"),
                format!("DROP MATERIALIZED VIEW {table}"),
                "DROP MATERIALIZED VIEW nowhere".to_owned(),
                "DROP MATERIALIZED VIEW IF EXISTS nowhere".to_owned(),
                format!("ALTER MATERIALIZED VIEW {table} WITH comment = ''"),
                format!("ALTER TABLE {table} WITH gc_grace_seconds = 0"),
            ];
            round.rng.choice(&wrong)?.clone()
        }
        (11, Some(view)) => {
            let of_view = round.views.iter().find(|v| v.name == view)?;
            let column = of_view.columns.first()?;
            let value = column.value(&mut round.rng).literal;
            let name = &column.name;
            let wrong = [
                format!("INSERT INTO {view} ({name}) VALUES ({value})"),
                format!("UPDATE {view} SET r0 = null WHERE {name} = {value}"),
                format!("DELETE FROM {view} WHERE {name} = {value}"),
            ];
            round.rng.choice(&wrong)?.clone()
        }
        (12, _) => {
            "SELECT view_name, base_table_name, include_all_columns, where_clause, comment FROM system_schema.views \
                    WHERE keyspace_name = '{ks}'"
                .to_owned()
        }
        _ => "SELECT table_name, column_name, kind, position, clustering_order, type FROM system_schema.columns \
              WHERE keyspace_name = '{ks}'"
            .to_owned(),
    };
    Some(Question::new(Kind::Schema, text))
}

/// Whether a view of the table can be thought of.
pub(super) fn is_possible(table: &Table) -> bool {
    !table.columns.iter().any(|c| c.ty == Type::Counter)
}
