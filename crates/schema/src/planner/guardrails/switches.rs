//! Guardrails that disable a feature or restrict its values.

use grammar::ast::{
    AlterTable, AlterTableAction, AlterTypeAction, CreateTable, DropKind, Literal, Property, PropertyValue, Statement,
    Type,
};

use super::super::select::SelectPlan;
use crate::guardrails::{Guardrails, Violation, ensure, grade, guard};
use crate::schema::system;

fn text(literal: &Literal) -> &str {
    match literal {
        Literal::String(text) => text,
        _ => "",
    }
}

/// The value of a key in a property that is a map.
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
    /// Checks the clauses of a SELECT, apart from its values.
    ///
    /// # Errors
    /// ALLOW FILTERING or GROUP BY, while it is disabled.
    pub fn select_plan(&self, plan: &SelectPlan) -> Result<(), Violation> {
        let switches = &self.switches;
        ensure(
            switches.group_by || !plan.is_grouped(),
            "group_by",
            "GROUP BY functionality",
        )?;
        if switches.allow_filtering || !plan.allows_filtering() || system::is_local(&plan.table.keyspace) {
            return Ok(());
        }
        Err(Violation(
            "Guardrail allow_filtering violated: Querying with ALLOW FILTERING is not allowed. ALLOW FILTERING can potentially \
             visit all the data in the table and have unpredictable performance."
                .to_owned(),
        ))
    }

    /// Checks a schema change for disabled features, for vectors and for table properties.
    pub(super) fn switched(&self, statement: &Statement, warnings: &mut Vec<String>) -> Result<(), Violation> {
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
            Statement::CreateView(_) if !switches.materialized_views => Err(Violation(
                "Materialized views are disabled. Enable in cassandra.yaml to use. (Helenus: the setting materialized-views-enabled)"
                    .to_owned(),
            )),
            Statement::CreateFunction(_) | Statement::CreateAggregate(_) if !switches.user_defined_functions => Err(Violation(
                "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable \
                 (Helenus: the setting user-defined-functions-enabled)"
                    .to_owned(),
            )),
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

    fn keyspace(&self, properties: &[Property]) -> Result<(), Violation> {
        let is_simple = has_class(properties, "replication", "SimpleStrategy");
        ensure(
            self.switches.simple_strategy || !is_simple,
            "simplestrategy",
            "SimpleStrategy",
        )
    }

    fn create_table(&self, create: &CreateTable, warnings: &mut Vec<String>) -> Result<(), Violation> {
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
                return Err(Violation(format!(
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

    fn alter_table(&self, alter: &AlterTable, warnings: &mut Vec<String>) -> Result<(), Violation> {
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
            AlterTableAction::DropCompactStorage if !self.switches.drop_compact_storage => Err(Violation(
                "DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use. (Helenus: the setting drop-compact-storage-enabled)"
                    .to_owned(),
            )),
            AlterTableAction::Options(options) => self.properties(&options.properties, warnings),
            _ => Ok(()),
        }
    }

    fn properties(&self, properties: &[Property], warnings: &mut Vec<String>) -> Result<(), Violation> {
        let names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
        self.table_properties
            .check("table_properties", "Table Properties", &names, warnings)?;
        let is_fine = self.switches.uncompressed_tables || !is_uncompressed(properties);
        ensure(is_fine, "uncompressed_tables_enabled", "Uncompressed table")
    }

    /// Checks the vectors in a type. `what` is Column or Field.
    fn vectors(&self, what: &str, name: &str, ty: &Type, warnings: &mut Vec<String>) -> Result<(), Violation> {
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
