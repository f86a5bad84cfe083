//! What commands do to tables, and so which permissions they need. The same for every front end: it follows from the command.
//!
//! ```text
//! Read       SELECT on the table, or on the base table of a view; EXECUTE of users' functions; UNMASK of masked columns
//! Write      MODIFY; SELECT too, with a condition or with views; MODIFY on the views
//! Batch      those of its writes
//! TRUNCATE   MODIFY
//! a change   what its intent says ([`SchemaIntent::needs`](helenus_schema::command::SchemaIntent::needs))
//! ```
//! A front end that prepares statements knows what a command will do before its values are there. It may ask at once
//! ([`Execution::permit`](super::Execution::permit)): then a missing permission is found before a wrong value, as in Cassandra.
//!
//! Source: Cassandra's `authorize` of each statement; `compat permissions` compares.

use std::net::IpAddr;

use helenus_schema::command::{Clustering, Expression, FilterTarget, Partitions, Read, Write};
use helenus_schema::roles::{Denied, Need, NoLogin, Permission, Resource, Roles};
use helenus_schema::schema::{Schema, Table};
use helenus_types::functions::{Function, is_mask};

/// Tables of `system` that every role may read, because drivers and tools do.
const READABLE: [&str; 5] = ["local", "peers", "peers_v2", "size_estimates", "table_estimates"];

/// What a command does.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    /// The schema is shown: every role that has logged in may see it.
    ShowSchema,
    /// The role's own session is changed, or the request checks its permissions itself.
    OfSession,
    /// Rows are read.
    Read(ReadAction<'a>),
    /// Rows of one table are written.
    Write(WriteAction<'a>),
    /// A table is emptied.
    Truncate(&'a Table),
    /// The schema is changed.
    ChangeSchema(&'a [Need]),
}

/// A read, without its values.
#[derive(Clone, Copy, Debug)]
pub struct ReadAction<'a> {
    /// The table or view.
    pub table: &'a Table,
    /// The users' functions that it calls, those of its aggregates included.
    pub calls: &'a [Function],
    /// Names of the columns with masks by which it selects rows, sorted.
    pub masked_restricted: &'a [String],
    /// Whether it shows columns with masks as they are stored.
    pub shows_masked: bool,
}

/// A write, without its values.
#[derive(Clone, Copy, Debug)]
pub struct WriteAction<'a> {
    /// The table.
    pub table: &'a Table,
    /// Whether it has a condition.
    pub is_conditional: bool,
    /// The users' functions that its values call.
    pub calls: &'a [Function],
    /// Whether a condition that does not hold shows columns with masks as they are stored.
    pub shows_masked: bool,
}

/// The parts of a read's action that are computed from its command.
#[derive(Debug)]
pub(super) struct ReadParts {
    calls: Vec<Function>,
    masked_restricted: Vec<String>,
    shows_masked: bool,
}

impl ReadParts {
    pub(super) fn of(read: &Read) -> Self {
        let mut parts = Self {
            calls: Vec::new(),
            masked_restricted: Vec::new(),
            shows_masked: false,
        };
        let table = &read.table;
        let aggregates = &read.selection.aggregates;
        let computed = read.selection.expressions.iter();
        let computed = computed.chain(aggregates.iter().flat_map(|aggregate| &aggregate.arguments));
        for expression in computed.chain(read.group_by.iter().flatten()) {
            parts.add(table, expression);
        }
        for function in aggregates.iter().filter_map(|aggregate| aggregate.function.as_ref()) {
            parts.call(function);
        }
        if table.is_masked() {
            parts.masked_restricted = masked_restricted(read);
        }
        parts
    }

    pub(super) fn action<'a>(&'a self, read: &'a Read) -> Action<'a> {
        Action::Read(ReadAction {
            table: &read.table,
            calls: &self.calls,
            masked_restricted: &self.masked_restricted,
            shows_masked: self.shows_masked,
        })
    }

    fn call(&mut self, function: &Function) {
        let parts = function.with_parts().filter(|part| part.is_user_defined());
        self.calls.extend(parts.cloned());
    }

    fn add(&mut self, table: &Table, expression: &Expression) {
        match expression {
            Expression::Column(column) | Expression::WriteTime { column, .. } | Expression::Ttl { column, .. } => {
                let column = table.columns.get(*column);
                self.shows_masked |= column.is_some_and(|column| column.mask.is_some());
            }
            Expression::Function { function, .. } if is_mask(function) => {}
            Expression::Function { function, arguments } => {
                self.call(function);
                arguments.iter().for_each(|argument| self.add(table, argument));
            }
            Expression::Part { of, .. } => self.add(table, of),
            Expression::Token(elements) | Expression::Construct { elements, .. } => {
                elements.iter().for_each(|element| self.add(table, element));
            }
            Expression::Constant(_) | Expression::Marker(_) | Expression::Aggregate(_) => {}
        }
    }
}

/// Names of the columns with masks by which a read selects rows, sorted.
fn masked_restricted(read: &Read) -> Vec<String> {
    let table = &read.table;
    let keys = table.partition_key_count;
    let mut places: Vec<usize> = Vec::new();
    if matches!(read.partitions, Partitions::Keys(_)) {
        places.extend(0..keys);
    }
    if !matches!(read.rows, Clustering::All) {
        places.extend(keys..keys + table.clustering_count);
    }
    places.extend(read.nearest.iter().map(|nearest| nearest.column));
    read.filter.any_test(&mut |test| {
        match &test.target {
            FilterTarget::Column(place)
            | FilterTarget::Element(place, _)
            | FilterTarget::Field(place, _)
            | FilterTarget::Analysed(place, _) => places.push(*place),
            FilterTarget::Tuple(several) => places.extend(several),
            FilterTarget::Token => places.extend(0..keys),
        }
        false
    });
    let columns = places.into_iter().filter_map(|place| table.columns.get(place));
    let masked = columns.filter(|column| column.mask.is_some());
    let names: std::collections::BTreeSet<String> = masked.map(|column| column.name.clone()).collect();
    names.into_iter().collect()
}

impl<'a> WriteAction<'a> {
    /// What a write does. Its values are computed: its front end answers for the functions that they called.
    pub(super) fn of(write: &'a Write) -> Self {
        let is_masked = |place: &usize| {
            write
                .table
                .columns
                .get(*place)
                .is_some_and(|column| column.mask.is_some())
        };
        let is_conditional = write.condition != helenus_schema::command::Condition::Always;
        Self {
            table: &write.table,
            is_conditional,
            calls: &[],
            shows_masked: is_conditional && write.masks.is_none() && write.condition_columns.iter().any(is_masked),
        }
    }
}

/// A role's permissions at one time.
#[derive(Clone, Copy)]
pub(super) struct Permitted<'a> {
    pub(super) roles: &'a Roles,
    pub(super) role: &'a str,
    pub(super) schema: &'a Schema,
    /// This server's data center.
    pub(super) data_center: &'a str,
    /// The client's address. `None` means that addresses are not checked.
    pub(super) address: Option<IpAddr>,
    /// Columns with masks are masked.
    pub(super) masks_columns: bool,
}

impl Permitted<'_> {
    /// Checks that the role may do this.
    pub(super) fn check(self, action: Action<'_>) -> Result<(), Denied> {
        if matches!(action, Action::ShowSchema) {
            // Cassandra's `DescribeStatement` asks nothing of a role.
            return Ok(());
        }
        self.access()?;
        match action {
            Action::ShowSchema | Action::OfSession => Ok(()),
            Action::Read(read) => {
                self.select(read.table)?;
                self.calls(read.calls)?;
                self.restricts_masked(read.table, read.masked_restricted)?;
                self.shows_masked(read.table, read.shows_masked)
            }
            Action::Write(write) => self.write(write),
            Action::Truncate(table) => self.on_table(Permission::Modify, table),
            Action::ChangeSchema(needs) => {
                let mut needs = needs.iter();
                needs.try_for_each(|need| self.roles.check(self.role, need.permission, need.resource.clone()))
            }
        }
    }

    /// Whether the role receives masks instead of the values of masked columns. UNMASK on a view is checked on the view
    /// itself, while SELECT is checked on its base table.
    pub(super) fn masks(self, table: &Table) -> bool {
        self.masks_columns && !self.has(Permission::Unmask, table)
    }

    /// Checks that the role may use this data center from the client's address.
    fn access(self) -> Result<(), Denied> {
        if !self.roles.allows_data_center(self.role, self.data_center) {
            return Err(Denied::NoAccess(NoLogin::DataCenter(self.data_center.to_owned())));
        }
        match self.address {
            Some(address) if !self.roles.allows_address(self.role, address) => {
                Err(Denied::NoAccess(NoLogin::Address(address)))
            }
            _ => Ok(()),
        }
    }

    fn select(self, table: &Table) -> Result<(), Denied> {
        let is_readable = match table.keyspace.as_str() {
            "system" => READABLE.contains(&table.name.as_str()),
            "system_schema" | "system_virtual_schema" | "system_traces" => true,
            _ => false,
        };
        if is_readable {
            return Ok(());
        }
        let base = self.schema.keyspace(&table.keyspace).and_then(|keyspace| {
            let view = keyspace.views.get(&table.name)?;
            keyspace.tables.get(&view.base_table)
        });
        self.on_table(Permission::Select, base.map_or(table, |base| base))
    }

    /// Checks that a table may be written and that the functions may be called; a write with a condition also needs to
    /// read.
    fn write(self, write: WriteAction<'_>) -> Result<(), Denied> {
        let table = write.table;
        self.on_table(Permission::Modify, table)?;
        if write.is_conditional {
            self.on_table(Permission::Select, table)?;
        }
        // The rows of views derive from those of the base, which are read first.
        let keyspace = self.schema.keyspace(&table.keyspace);
        let mut views = keyspace
            .into_iter()
            .flat_map(|keyspace| keyspace.views_of(&table.name))
            .peekable();
        if views.peek().is_some() {
            self.on_table(Permission::Select, table)?;
        }
        views.try_for_each(|view| self.on_table(Permission::Modify, &view.table))?;
        self.calls(write.calls)?;
        self.shows_masked(table, write.shows_masked)
    }

    /// Checks that users' functions may be called. An aggregate needs the permission on its state function and its final
    /// function as well.
    fn calls(self, functions: &[Function]) -> Result<(), Denied> {
        functions.iter().try_for_each(|function| {
            let resource = Resource::function(function.keyspace(), function.name(), function.argument_types());
            self.roles.check(self.role, Permission::Execute, resource)
        })
    }

    /// Checks that the role may restrict masked columns. Otherwise a client could guess their values.
    fn restricts_masked(self, table: &Table, columns: &[String]) -> Result<(), Denied> {
        let may = || self.has(Permission::Unmask, table) || self.has(Permission::SelectMasked, table);
        if !self.masks_columns || columns.is_empty() || may() {
            return Ok(());
        }
        Err(Denied::RestrictsMasked {
            role: self.role.to_owned(),
            table: format!("{}.{}", table.keyspace, table.name),
            columns: columns.to_vec(),
        })
    }

    fn shows_masked(self, table: &Table, shows: bool) -> Result<(), Denied> {
        match shows && self.masks_columns {
            true => self.on_table(Permission::Unmask, table),
            false => Ok(()),
        }
    }

    fn has(self, permission: Permission, table: &Table) -> bool {
        let resource = Resource::table(&table.keyspace, &table.name);
        self.roles.is_superuser(self.role) || self.roles.allows(self.role, permission, &resource)
    }

    fn on_table(self, permission: Permission, table: &Table) -> Result<(), Denied> {
        if self.roles.is_superuser(self.role) {
            return Ok(());
        }
        let resource = Resource::table(&table.keyspace, &table.name);
        self.roles.check(self.role, permission, resource)
    }
}
