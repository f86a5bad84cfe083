//! Guardrails that are switches and lists: what may not be done at all, and which values may not be given.
//!
//! Names, texts and what each looks at are Cassandra's answers to a user who is no superuser, asked of one whose switches were off
//! (`db.guardrails.EnableFlag`, `Values`). Here they hold for everybody.

use std::str::FromStr;

use grammar::ast::{
    AlterTable, AlterTableAction, AlterTypeAction, CreateTable, DropKind, Literal, Property, PropertyValue, Statement,
    Type,
};

use super::super::error::Error;
use super::super::select::SelectPlan;
use super::{Guardrails, grade, guard};
use crate::command::{ColumnChange, Write};
use crate::schema::system;

/// Said where ALLOW FILTERING would be needed and may not be used.
const FILTERING_IS_OFF: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. Executing this query despite the performance unpredictability with ALLOW FILTERING has been disabled by the allow_filtering_enabled property in cassandra.yaml";

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own, in Cassandra too"
)]
pub struct Switches {
    /// SELECT with ALLOW FILTERING.
    pub allow_filtering: bool,
    /// SELECT with GROUP BY.
    pub group_by: bool,
    /// USING TIMESTAMP.
    pub user_timestamps: bool,
    /// DROP TABLE and TRUNCATE.
    pub drop_truncate_table: bool,
    /// DROP KEYSPACE.
    pub drop_keyspace: bool,
    /// ALTER TABLE that adds, drops or renames columns.
    pub alter_table: bool,
    /// CREATE INDEX.
    pub secondary_indexes: bool,
    /// Keyspaces with SimpleStrategy.
    pub simple_strategy: bool,
    /// Tables whose compression is off.
    pub uncompressed_tables: bool,
    /// COMPACT STORAGE.
    pub compact_tables: bool,
    /// Columns of vectors.
    pub vector_type: bool,
    /// Writes to lists that have to read them.
    pub read_before_write_list_operations: bool,
    /// TimeWindowCompactionStrategy without a default time to live.
    pub zero_ttl_on_twcs: bool,
    /// The same is warned of. On in Cassandra, where superusers and whoever need not log in are not told; so off here.
    pub zero_ttl_on_twcs_warned: bool,
}

impl Default for Switches {
    /// Everything may be done.
    fn default() -> Self {
        Self {
            allow_filtering: true,
            group_by: true,
            user_timestamps: true,
            drop_truncate_table: true,
            drop_keyspace: true,
            alter_table: true,
            secondary_indexes: true,
            simple_strategy: true,
            uncompressed_tables: true,
            compact_tables: true,
            vector_type: true,
            read_before_write_list_operations: true,
            zero_ttl_on_twcs: true,
            zero_ttl_on_twcs_warned: false,
        }
    }
}

/// Names with commas between, in lower or upper case as they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }
}

/// Values that are warned of, and such as are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Warned of.
    pub warned: Names,
    /// Refused.
    pub disallowed: Names,
}

impl Listed {
    /// Looks at the values that a statement gives.
    fn judge(&self, guardrail: &str, of: &str, given: &[&str], warnings: &mut Vec<String>) -> Result<(), Error> {
        let among = |listed: &Names| {
            let found = given.iter().filter(|name| {
                let mut names = listed.0.iter();
                names.any(|listed| listed.eq_ignore_ascii_case(name))
            });
            found.copied().collect::<Vec<_>>().join(", ")
        };
        let said = |values: &str, verdict: &str, kind: &str, listed: &Names| {
            format!(
                "Guardrail {guardrail} violated: Provided values [{values}] are not {verdict} for {of} ({kind} values are: [{}])",
                listed.0.join(", ")
            )
        };
        let refused = among(&self.disallowed);
        if !refused.is_empty() {
            let text = said(&refused, "allowed", "disallowed", &self.disallowed);
            return Err(Error::invalid(text));
        }
        let warned = among(&self.warned);
        if !warned.is_empty() {
            warnings.push(said(&warned, "recommended", "warned", &self.warned));
        }
        Ok(())
    }
}

/// Refuses what is switched off.
fn ensure(is_on: bool, guardrail: &str, what: &str) -> Result<(), Error> {
    if is_on {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Guardrail {guardrail} violated: {what} is not allowed"
    )))
}

fn text(literal: &Literal) -> &str {
    match literal {
        Literal::String(text) => text,
        _ => "",
    }
}

/// The value of a key of a property that is a map.
fn entry<'p>(properties: &'p [Property], property: &str, key: &str) -> Option<&'p Literal> {
    let found = properties.iter().find(|found| found.name.as_str() == property)?;
    let PropertyValue::Map(entries) = &found.value else {
        return None;
    };
    entries
        .iter()
        .find(|(name, _)| text(name) == key)
        .map(|(_, value)| value)
}

fn has_class(properties: &[Property], property: &str, class: &str) -> bool {
    entry(properties, property, "class").is_some_and(|value| text(value).rsplit('.').next() == Some(class))
}

fn is_uncompressed(properties: &[Property]) -> bool {
    let says_false = |value: &Literal| match value {
        Literal::Boolean(value) => !value,
        value => text(value).eq_ignore_ascii_case("false"),
    };
    entry(properties, "compression", "enabled").is_some_and(says_false)
}

impl Guardrails {
    /// Looks at what a SELECT is, apart from its values.
    ///
    /// # Errors
    /// ALLOW FILTERING or GROUP BY where they are switched off.
    pub fn select_plan(&self, plan: &SelectPlan) -> Result<(), Error> {
        let switches = &self.switches;
        ensure(
            switches.group_by || !plan.is_grouped(),
            "group_by",
            "GROUP BY functionality",
        )?;
        if switches.allow_filtering || !plan.allows_filtering() || system::is_local(&plan.table.keyspace) {
            return Ok(());
        }
        Err(Error::invalid(
            "Guardrail allow_filtering violated: Querying with ALLOW FILTERING is not allowed. ALLOW FILTERING can potentially \
             visit all the data in the table and have unpredictable performance.",
        ))
    }

    /// The text that replaces [`Error::NeedsFiltering`], which advises ALLOW FILTERING; `None`: ALLOW FILTERING is permitted.
    #[must_use]
    pub fn filtering_is_off(&self) -> Option<&'static str> {
        (!self.switches.allow_filtering).then_some(FILTERING_IS_OFF)
    }

    /// Looks at a consistency level, by its name.
    ///
    /// # Errors
    /// When it may not be asked for.
    pub fn level(&self, name: &str, is_write: bool, warnings: &mut Vec<String>) -> Result<(), Error> {
        let (listed, guardrail, of) = if is_write {
            (
                &self.write_levels,
                "write_consistency_levels",
                "write consistency levels",
            )
        } else {
            (&self.read_levels, "read_consistency_levels", "read consistency levels")
        };
        listed.judge(guardrail, of, &[name], warnings)
    }

    /// Looks at what a modification does, apart from its values: its timestamp, and lists that it has to read.
    pub(super) fn ways(&self, modification: &Write, now_micros: i64, warnings: &mut Vec<String>) -> Result<(), Error> {
        if let Some(timestamp) = modification.timestamp {
            ensure(
                self.switches.user_timestamps,
                "user_timestamps",
                "User provided timestamps (USING TIMESTAMP)",
            )?;
            self.timestamp(&modification.table.name, timestamp, now_micros, warnings)?;
        }
        if self.switches.read_before_write_list_operations {
            return Ok(());
        }
        for (_, operation) in &modification.operations {
            let what = match operation {
                ColumnChange::SetAt(_, Some(_)) => "Setting of list items by index",
                ColumnChange::SetAt(_, None) => "Removal of list items by index",
                ColumnChange::Discard(_) => "Removal of list items",
                _ => continue,
            };
            let what = format!("{what} requiring read before write");
            ensure(false, "read_before_write_list_operations", &what)?;
        }
        Ok(())
    }

    /// Timestamps are judged by how far they are from now, as Cassandra does to the millisecond.
    fn timestamp(&self, table: &str, timestamp: i64, now_micros: i64, warnings: &mut Vec<String>) -> Result<(), Error> {
        let now = now_micros - now_micros.rem_euclid(1000);
        let micros =
            |seconds: u64| i64::try_from(seconds).map_or(i64::MAX, |seconds| seconds.saturating_mul(1_000_000));
        let future = (
            "maximum_timestamp",
            &self.maximum_timestamp_seconds,
            1,
            "after the maximum",
            "future can lead to data that can't be easily overwritten",
        );
        let past = (
            "minimum_timestamp",
            &self.minimum_timestamp_seconds,
            -1,
            "before the minimum",
            "past can cause writes can be unexpectedly lost",
        );
        for (name, threshold, sign, where_it_is, danger) in [future, past] {
            // Whole seconds that it is off by, rounded up, so that an amount above a threshold is above it here.
            let off = timestamp.saturating_sub(now).saturating_mul(sign);
            let off = u64::try_from(off).unwrap_or(0).div_ceil(1_000_000);
            guard(name, threshold, off, warnings, |is_warning, threshold| {
                let bound = now.saturating_add(micros(threshold).saturating_mul(sign));
                format!(
                    "The modification to table {table} has a timestamp {timestamp} {where_it_is} allowable {} threshold {bound}. \
                     Timestamps too far in the {danger}",
                    grade(is_warning),
                )
            })?;
        }
        Ok(())
    }

    /// Looks at a TRUNCATE.
    ///
    /// # Errors
    /// When it is switched off.
    pub fn truncate(&self) -> Result<(), Error> {
        let is_on = self.switches.drop_truncate_table;
        ensure(
            is_on,
            "drop_truncate_table_enabled",
            "DROP and TRUNCATE TABLE functionality",
        )
    }

    /// Looks at a change of the schema for what is switched off, for vectors and for table properties.
    pub(super) fn switched(&self, statement: &Statement, warnings: &mut Vec<String>) -> Result<(), Error> {
        let switches = &self.switches;
        match statement {
            Statement::CreateKeyspace(create) => self.keyspace(&create.properties),
            Statement::AlterKeyspace(alter) => self.keyspace(&alter.properties),
            Statement::DropKeyspace(_) => ensure(
                switches.drop_keyspace,
                "drop_keyspace_enabled",
                "DROP KEYSPACE functionality",
            ),
            Statement::Drop(drop) if drop.kind == DropKind::Table => self.truncate(),
            Statement::CreateIndex(_) => ensure(
                switches.secondary_indexes,
                "secondary_indexes",
                "Creating secondary indexes",
            ),
            Statement::CreateTable(create) => self.create_table(create, warnings),
            Statement::AlterTable(alter) => self.alter_table(alter, warnings),
            Statement::CreateType(create) => {
                let mut fields = create.fields.iter();
                fields.try_for_each(|(name, ty)| self.vectors("Field", name.as_str(), ty, warnings))
            }
            Statement::AlterType(alter) => match &alter.action {
                AlterTypeAction::Add { field, field_type, .. } => {
                    self.vectors("Field", field.as_str(), field_type, warnings)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn keyspace(&self, properties: &[Property]) -> Result<(), Error> {
        let is_simple = has_class(properties, "replication", "SimpleStrategy");
        ensure(
            self.switches.simple_strategy || !is_simple,
            "simplestrategy",
            "SimpleStrategy",
        )
    }

    fn create_table(&self, create: &CreateTable, warnings: &mut Vec<String>) -> Result<(), Error> {
        let switches = &self.switches;
        let properties = create.options.properties.as_slice();
        self.properties(properties, warnings)?;
        ensure(
            switches.compact_tables || !create.options.compact_storage,
            "compact_tables",
            "Creation of new COMPACT STORAGE tables",
        )?;
        for column in &create.columns {
            self.vectors("Column", column.name.as_str(), &column.column_type, warnings)?;
        }
        let ttl = properties
            .iter()
            .find(|property| property.name.as_str() == "default_time_to_live");
        let has_ttl = ttl.is_some_and(
            |ttl| !matches!(&ttl.value, PropertyValue::Literal(Literal::Integer(value) | Literal::String(value)) if value == "0"),
        );
        if has_class(properties, "compaction", "TimeWindowCompactionStrategy") && !has_ttl {
            let what = "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy";
            let why = "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in mind \
                       that data will not start to automatically expire after they are older than a respective compaction window \
                       unit of a certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to be expired \
                       as table settings will not do it. ";
            if !switches.zero_ttl_on_twcs {
                return Err(Error::invalid(format!(
                    "Guardrail zero_ttl_on_twcs violated: {what} is not allowed. {why}"
                )));
            }
            if switches.zero_ttl_on_twcs_warned {
                warnings.push(format!(
                    "Guardrail zero_ttl_on_twcs violated: {what} is not recommended. {why}"
                ));
            }
        }
        Ok(())
    }

    fn alter_table(&self, alter: &AlterTable, warnings: &mut Vec<String>) -> Result<(), Error> {
        let is_on = self.switches.alter_table;
        let changes_columns = || ensure(is_on, "alter_table", "ALTER TABLE changing columns");
        match &alter.action {
            AlterTableAction::Add { columns, .. } => {
                for column in columns {
                    self.vectors("Column", column.name.as_str(), &column.column_type, warnings)?;
                }
                changes_columns()
            }
            AlterTableAction::Drop { .. } | AlterTableAction::Rename { .. } => changes_columns(),
            AlterTableAction::Options(options) => self.properties(&options.properties, warnings),
            _ => Ok(()),
        }
    }

    fn properties(&self, properties: &[Property], warnings: &mut Vec<String>) -> Result<(), Error> {
        let names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
        self.table_properties
            .judge("table_properties", "Table Properties", &names, warnings)?;
        let is_fine = self.switches.uncompressed_tables || !is_uncompressed(properties);
        ensure(is_fine, "uncompressed_tables_enabled", "Uncompressed table")
    }

    /// Looks at the vectors in a type. `what` is Column or Field.
    fn vectors(&self, what: &str, name: &str, ty: &Type, warnings: &mut Vec<String>) -> Result<(), Error> {
        match ty {
            Type::Named(_) | Type::Custom(_) => Ok(()),
            Type::List(of) | Type::Set(of) | Type::Frozen(of) => self.vectors(what, name, of, warnings),
            Type::Map(key, of) => {
                self.vectors(what, name, key, warnings)?;
                self.vectors(what, name, of, warnings)
            }
            Type::Tuple(all) => all.iter().try_for_each(|of| self.vectors(what, name, of, warnings)),
            Type::Vector(of, dimensions) => {
                ensure(
                    self.switches.vector_type,
                    "vector_type_enabled",
                    "usage of the vector type",
                )?;
                guard(
                    "vector_dimensions",
                    &self.vector_dimensions,
                    u64::try_from(*dimensions).unwrap_or(0),
                    warnings,
                    |is_warning, threshold| {
                        format!(
                            "{what} {name} has a vector of {dimensions} dimensions, this exceeds the {} threshold of {threshold}.",
                            grade(is_warning)
                        )
                    },
                )?;
                self.vectors(what, name, of, warnings)
            }
        }
    }
}
