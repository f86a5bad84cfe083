//! Executes the two scripts without data: the resulting tables, and the queries, each with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammar::ast::{AlterTableAction, QualifiedName, Statement};
use uuid::Uuid;

use super::rules::{self, Rule};
use super::script::{Found, Script};
use super::{Finding, Input, Level, Place, TableFigures};
use helenus_schema::command::SchemaContext;
use helenus_schema::planner::ddl;
use helenus_schema::planner::{self, Plan};
use helenus_schema::profile::Rules;
use helenus_schema::schema::{Schema, Table, system};

/// The place of a definition.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) file: String,
    pub(super) place: Place,
    pub(super) width: usize,
}

impl Spot {
    pub(super) fn of(found: &Found<'_>, place: Place) -> Self {
        Self {
            file: found.file().to_owned(),
            place,
            width: found.width(place),
        }
    }

    /// A finding at this place.
    pub(super) fn finding(&self, rule: &Rule, level: Level, table: String, message: String) -> Finding {
        Finding {
            rule: rule.id,
            level,
            table,
            message,
            why: rule.why,
            instead: rule.instead,
            file: self.file.clone(),
            line: self.place.line,
            column: self.place.column,
            width: self.width,
            excerpt: String::new(),
        }
    }
}

/// A table or materialized view with the places of its columns and indexes.
#[derive(Clone, Debug)]
pub(super) struct Modelled {
    pub(super) table: Arc<Table>,
    /// A view's base table; `None` means that it is a table.
    pub(super) base: Option<Arc<Table>>,
    pub(super) spot: Spot,
    /// By column.
    columns: BTreeMap<String, Spot>,
    /// By index.
    indexes: BTreeMap<String, Spot>,
}

impl Modelled {
    /// KEYSPACE.TABLE
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.table.keyspace, self.table.name)
    }

    pub(super) fn column_spot(&self, name: &str) -> &Spot {
        self.columns.get(name).unwrap_or(&self.spot)
    }

    pub(super) fn index_spot(&self, name: &str) -> &Spot {
        self.indexes.get(name).unwrap_or(&self.spot)
    }

    /// Whether the table's options make rows expire. A view's rows expire with those of its base table.
    pub(super) fn expires(&self) -> bool {
        let table = self.base.as_ref().unwrap_or(&self.table);
        table.options.default_time_to_live > 0
    }

    /// The number of physical partitions that it starts with; `None` means one, since the statement has no option.
    pub(super) fn partitions(&self) -> Option<u64> {
        let options = &self.table.options;
        let given = options.partitions.map(u64::from);
        let provisioned = options
            .throughput
            .map(|throughput| throughput.partitions_at_first() as u64);
        given.into_iter().chain(provisioned).max()
    }
}

/// A statement that reads or writes rows.
#[derive(Clone, Debug)]
pub(super) struct ModelledStatement {
    pub(super) statement: Statement,
    pub(super) keyspace: String,
    pub(super) spot: Spot,
    /// By name as written in the statement.
    names: BTreeMap<String, Spot>,
}

impl ModelledStatement {
    /// The place of a name after WHERE, else of the statement.
    pub(super) fn spot_of(&self, name: &str) -> &Spot {
        self.names.get(name).unwrap_or(&self.spot)
    }

    /// Full name of a table it names.
    pub(super) fn full(&self, name: &QualifiedName) -> (String, String) {
        let keyspace = name
            .keyspace
            .as_ref()
            .map_or(self.keyspace.as_str(), |keyspace| keyspace.as_str());
        (keyspace.to_owned(), name.name.as_str().to_owned())
    }
}

/// The result of executing the scripts.
#[derive(Debug, Default)]
pub(super) struct Model {
    tables: BTreeMap<(String, String), Modelled>,
    pub(super) queries: Vec<ModelledStatement>,
    /// Statements that a server would reject.
    pub(super) refused: Vec<Finding>,
    /// Queries that a server would reject only because they lack ALLOW FILTERING.
    pub(super) unfiltered: Vec<Finding>,
    /// Whether there are queries, in a file of their own or in the schema.
    pub(super) has_queries: bool,
}

impl Model {
    pub(super) fn of(input: &Input<'_>) -> Self {
        let mut reader = Reader {
            model: Self::default(),
            schema: system::base(),
            keyspace: input.keyspace.to_owned(),
            assumed: BTreeMap::new(),
            created: BTreeSet::new(),
            missing: BTreeSet::new(),
            number: 0,
            rules: Rules {
                profile: input.profile,
                ..Rules::default()
            },
        };
        reader.read(input.schema);
        if let Some(queries) = input.queries {
            input.keyspace.clone_into(&mut reader.keyspace);
            reader.read(queries);
        }
        reader.report_assumed(input.figures.unwrap_or_default());
        let mut model = reader.model;
        model.has_queries = input.queries.is_some() || !model.queries.is_empty();
        // The final schema: with columns added later, without dropped tables.
        let schema = &reader.schema;
        model.tables.retain(
            |(keyspace, name), modelled| match schema.table_or_view(keyspace, name) {
                Some(table) => {
                    modelled.table = Arc::clone(table);
                    if let Some(base) = &mut modelled.base
                        && let Some(now) = schema.table(keyspace, &base.name)
                    {
                        *base = Arc::clone(now);
                    }
                    true
                }
                None => false,
            },
        );
        model
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Modelled> {
        self.tables.values()
    }

    pub(super) fn table(&self, keyspace: &str, name: &str) -> Option<&Modelled> {
        self.tables.get(&(keyspace.to_owned(), name.to_owned()))
    }

    /// Tables that any query names.
    pub(super) fn named(&self) -> BTreeSet<(String, String)> {
        let names = self.queries.iter().flat_map(|asked| {
            let tables = tables_of(&asked.statement);
            tables.into_iter().map(|name| asked.full(name)).collect::<Vec<_>>()
        });
        names.collect()
    }
}

/// The table, as it is written, that a statement without a syntax tree would create. Folded to lower case unless it is quoted.
fn created_table(text: &str) -> Option<String> {
    let mut words = text.split([' ', '\t', '\n', '\r', '(']).filter(|word| !word.is_empty());
    let is = |word: Option<&str>, wanted: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    if !is(words.next(), "create") || !is(words.next(), "table") {
        return None;
    }
    let name = words.find(|word| !["if", "not", "exists"].contains(&word.to_ascii_lowercase().as_str()))?;
    Some(match name.contains('"') {
        true => name.replace('"', ""),
        false => name.to_lowercase(),
    })
}

/// The tables that a statement reads or writes.
fn tables_of(statement: &Statement) -> Vec<&QualifiedName> {
    use grammar::ast::Modification;
    match statement {
        Statement::Select(select) => vec![&select.table],
        Statement::Insert(insert) => vec![&insert.table],
        Statement::Update(update) => vec![&update.table],
        Statement::Delete(delete) => vec![&delete.table],
        Statement::Truncate(table) => vec![table],
        Statement::Batch(batch) => batch
            .modifications
            .iter()
            .map(|modification| match modification {
                Modification::Insert(insert) => &insert.table,
                Modification::Update(update) => &update.table,
                Modification::Delete(delete) => &delete.table,
            })
            .collect(),
        _ => Vec::new(),
    }
}

struct Reader {
    model: Model,
    schema: Schema,
    /// The keyspace of unqualified names.
    keyspace: String,
    /// Keyspaces that a statement names and no earlier one created, with the first such statement.
    assumed: BTreeMap<String, Spot>,
    /// Keyspaces that the scripts create.
    created: BTreeSet<String>,
    /// Tables whose CREATE TABLE is refused: what follows from that is no finding of its own.
    missing: BTreeSet<(String, String)>,
    number: u32,
    /// The dialect of the profile.
    rules: Rules,
}

/// The finding that a statement would be refused.
fn refusal(found: &Found<'_>, place: Place, message: String) -> Finding {
    Spot::of(found, place).finding(&rules::INVALID, Level::Error, String::new(), message)
}

impl Reader {
    fn read(&mut self, script: &Script) {
        for (found, unread) in script.all_unread() {
            self.refuse(&found, found.place(), unread.to_string());
        }
        for found in script.statements() {
            let statement = match grammar::parse(found.text()) {
                Ok(statement) => statement,
                Err(error) => {
                    let place = found.inner(error.line, error.column.unwrap_or_default());
                    self.refuse(&found, place, error.message);
                    if let Some(name) = created_table(found.text()) {
                        self.missing.insert(match name.split_once('.') {
                            Some((keyspace, table)) => (keyspace.to_owned(), table.to_owned()),
                            None => (self.keyspace.clone(), name),
                        });
                    }
                    continue;
                }
            };
            self.statement(&found, statement);
        }
    }

    fn refuse(&mut self, found: &Found<'_>, place: Place, message: String) {
        self.model.refused.push(refusal(found, place, message));
    }

    fn statement(&mut self, found: &Found<'_>, statement: Statement) {
        let statement = match statement {
            Statement::Explain(inner) => *inner,
            other => other,
        };
        if let Statement::CreateKeyspace(create) = &statement {
            self.created.insert(create.name.as_str().to_owned());
        }
        for name in names_of(&statement) {
            if let Some(keyspace) = &name.keyspace {
                self.assume(found, keyspace.as_str());
            }
            self.need_keyspace(name);
        }
        if let Statement::Use(name) = &statement {
            self.assume(found, name.as_str());
            self.make_keyspace(name.as_str());
            name.as_str().clone_into(&mut self.keyspace);
            return;
        }
        let statement = match self.rules.translate(statement.clone(), found.text()) {
            Ok(statement) => statement,
            Err(why) => {
                // A server may still accept the statement, so report its cost too.
                self.refuse(found, found.place(), why.to_string());
                self.ask(found, statement);
                return;
            }
        };
        let planned = planner::plan(&statement, Some(&self.keyspace), &self.schema);
        if let Ok(planned) = &planned
            && let Err(why) = self.rules.check(&statement, planned)
        {
            self.refuse(found, found.place(), why.to_string());
        }
        let refused = |planned: planner::Planned| planner::refuse_views(&planned.plan, &self.schema).map(|()| planned);
        match planned.and_then(refused) {
            Ok(planned) => match planned.plan {
                Plan::Ddl(_) => self.change(found, &statement),
                Plan::Select(_) | Plan::Modify(_) | Plan::Batch(_) | Plan::Truncate(_) => self.ask(found, statement),
                Plan::Use(_) | Plan::Describe(_) | Plan::Explain(_) | Plan::Auth(_) => {}
            },
            // A server may have objects that the schema lacks, such as views. A query that needs ALLOW FILTERING is
            // still planned, to report its cost.
            Err(planner::Error::Unsupported(_)) => self.ask(found, statement),
            Err(error @ planner::Error::NeedsFiltering) => {
                let finding = refusal(found, found.place(), error.to_string());
                self.model.unfiltered.push(finding);
                self.ask(found, statement);
            }
            Err(_) if self.needs_missing(&statement) => {}
            Err(error) => {
                self.refuse(found, found.place(), error.to_string());
                if let Statement::CreateTable(create) = &statement {
                    self.missing.insert(self.key(&create.table));
                }
                self.ask(found, statement);
            }
        }
    }

    /// Whether a statement needs a table whose CREATE TABLE was refused.
    fn needs_missing(&self, statement: &Statement) -> bool {
        let keys = names_of(statement).into_iter().map(|name| self.key(name));
        let mut missing = keys.filter(|(keyspace, table)| self.schema.table_or_view(keyspace, table).is_none());
        !matches!(statement, Statement::CreateTable(_)) && missing.any(|key| self.missing.contains(&key))
    }

    /// Notes a keyspace that does not exist so far.
    fn assume(&mut self, found: &Found<'_>, keyspace: &str) {
        if self.schema.keyspace(keyspace).is_none() {
            self.assumed
                .entry(keyspace.to_owned())
                .or_insert_with(|| Spot::of(found, found.place()));
        }
    }

    /// Reports keyspaces that neither the scripts nor the data have. A file that creates no keyspace is probably run
    /// after one that does, so this is only a note there.
    fn report_assumed(&mut self, figures: &[TableFigures]) {
        let level = match self.created.is_empty() {
            true => Level::Note,
            false => Level::Warning,
        };
        for (name, spot) in std::mem::take(&mut self.assumed) {
            if self.created.contains(&name) || figures.iter().any(|table| table.keyspace == name) {
                continue;
            }
            let name = helenus_types::types::quoted(&name);
            let message = format!(
                "no statement here creates the keyspace {name}: a server that does not have it refuses this statement; add CREATE KEYSPACE \
                 {name}, or correct the name"
            );
            let finding = spot.finding(&rules::INVALID, level, String::new(), message);
            self.model.refused.push(finding);
        }
    }

    /// Keyspaces are often created outside the schema file.
    fn need_keyspace(&mut self, name: &QualifiedName) {
        let keyspace = name
            .keyspace
            .as_ref()
            .map_or(self.keyspace.as_str(), |keyspace| keyspace.as_str());
        let keyspace = keyspace.to_owned();
        self.make_keyspace(&keyspace);
    }

    fn make_keyspace(&mut self, name: &str) {
        if self.schema.keyspace(name).is_some() {
            return;
        }
        let text = format!(
            "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            helenus_types::types::quoted(name)
        );
        if let Ok(statement) = grammar::parse(&text) {
            // An invalid name is rejected with the statement that needs it.
            drop(self.apply(&statement));
        }
    }

    fn apply(&mut self, statement: &Statement) -> Result<(), String> {
        self.number += 1;
        let context = SchemaContext {
            now_micros: 0,
            new_id: Uuid::from_u128(u128::from(self.number)),
            storage_id: 1_000 + self.number * 64,
            data_centers: vec![("datacenter1".to_owned(), 1)],
            profile: self.rules.profile,
            masks_columns: true,
        };
        let outcome =
            ddl::apply(statement, Some(&self.keyspace), &self.schema, &context).map_err(|error| error.to_string())?;
        self.schema = outcome.schema;
        Ok(())
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each statement that changes the schema"
    )]
    fn change(&mut self, found: &Found<'_>, statement: &Statement) {
        // The keyspace was added implicitly, by an earlier statement that used it.
        if let Statement::CreateKeyspace(create) = statement
            && self
                .schema
                .keyspace(create.name.as_str())
                .is_some_and(|keyspace| keyspace.tables.is_empty())
        {
            self.schema = self.schema.without_keyspace(create.name.as_str());
        }
        if let Err(error) = self.apply(statement) {
            if let Statement::CreateTable(create) = statement {
                self.missing.insert(self.key(&create.table));
            }
            if !self.needs_missing(statement) {
                self.refuse(found, found.place(), error);
            }
            return;
        }
        match statement {
            Statement::CreateTable(create) => {
                let key = self.key(&create.table);
                let Some(table) = self.schema.table(&key.0, &key.1) else {
                    return;
                };
                let name = create.table.name.as_str();
                let modelled = Modelled {
                    table: Arc::clone(table),
                    base: None,
                    spot: Spot::of(found, found.name_after("table", name)),
                    columns: create
                        .columns
                        .iter()
                        .map(|column| column.name.as_str())
                        .map(|column| (column.to_owned(), Spot::of(found, found.name_after(name, column))))
                        .collect(),
                    indexes: BTreeMap::new(),
                };
                self.model.tables.entry(key).or_insert(modelled);
            }
            Statement::CreateView(create) => {
                let key = self.key(&create.name);
                let base = self.key(&create.base_table);
                let (Some(table), Some(base)) = (
                    self.schema.table_or_view(&key.0, &key.1),
                    self.schema.table(&base.0, &base.1),
                ) else {
                    return;
                };
                let columns = table.columns.iter().map(|column| {
                    let spot = Spot::of(found, found.name_after("primary", &column.name));
                    (column.name.clone(), spot)
                });
                let modelled = Modelled {
                    table: Arc::clone(table),
                    base: Some(Arc::clone(base)),
                    spot: Spot::of(found, found.name_after("view", create.name.name.as_str())),
                    columns: columns.collect(),
                    indexes: BTreeMap::new(),
                };
                self.model.tables.entry(key).or_insert(modelled);
            }
            Statement::AlterTable(alter) => {
                let key = self.key(&alter.table);
                let (AlterTableAction::Add { columns, .. }, Some(modelled)) =
                    (&alter.action, self.model.tables.get_mut(&key))
                else {
                    return;
                };
                for column in columns {
                    let name = column.name.as_str();
                    let spot = Spot::of(found, found.name_after("add", name));
                    modelled.columns.insert(name.to_owned(), spot);
                }
            }
            Statement::CreateIndex(create) => {
                let key = self.key(&create.table);
                let (Some(table), Some(modelled)) =
                    (self.schema.table(&key.0, &key.1), self.model.tables.get_mut(&key))
                else {
                    return;
                };
                for name in table.indexes.keys() {
                    if !modelled.table.indexes.contains_key(name) {
                        let column = create.targets.first().map_or("index", |(_, column)| column.as_str());
                        let spot = Spot::of(found, found.name_after("on", column));
                        modelled.indexes.insert(name.clone(), spot);
                    }
                }
                modelled.table = Arc::clone(table);
            }
            _ => {}
        }
    }

    fn key(&self, name: &QualifiedName) -> (String, String) {
        let keyspace = name
            .keyspace
            .as_ref()
            .map_or(self.keyspace.as_str(), |keyspace| keyspace.as_str());
        (keyspace.to_owned(), name.name.as_str().to_owned())
    }

    fn ask(&mut self, found: &Found<'_>, statement: Statement) {
        if tables_of(&statement).is_empty() {
            return;
        }
        let mut names = BTreeMap::new();
        for table in tables_of(&statement) {
            let (keyspace, name) = self.key(table);
            let Some(table) = self.schema.table_or_view(&keyspace, &name) else {
                continue;
            };
            for column in &table.columns {
                let place = found.name_after("where", &column.name);
                if place != found.place() {
                    names.insert(column.name.clone(), Spot::of(found, place));
                }
            }
        }
        self.model.queries.push(ModelledStatement {
            statement,
            keyspace: self.keyspace.clone(),
            spot: Spot::of(found, found.place()),
            names,
        });
    }
}

/// What a statement names in some keyspace.
fn names_of(statement: &Statement) -> Vec<&QualifiedName> {
    match statement {
        Statement::CreateTable(create) => vec![&create.table],
        Statement::AlterTable(alter) => vec![&alter.table],
        Statement::CreateType(create) => vec![&create.name],
        Statement::AlterType(alter) => vec![&alter.name],
        Statement::CreateIndex(create) => vec![&create.table],
        Statement::CreateView(create) => vec![&create.name, &create.base_table],
        Statement::CreateFunction(create) => vec![&create.name],
        Statement::CreateAggregate(create) => vec![&create.name],
        Statement::Drop(drop) => vec![&drop.name],
        other => tables_of(other),
    }
}
