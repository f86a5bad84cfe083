//! INSERT … JSON: converts a document to a value for each column.

use grammar::ast::Term;

use super::error::Error;
use super::refusal::ValueRefusal;
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::TypeChecker;
use crate::command::{Value, WriteVerb};
use crate::schema::Table;
use helenus_types::types::{CqlType, Json, Native, folded_json_name as folded};

/// The document of an INSERT JSON, before binding.
#[derive(Clone, Debug)]
pub(crate) struct JsonPlan {
    document: TypedTerm,
    /// Columns that the document does not name stay unchanged; if false, they become null.
    default_unset: bool,
}

impl JsonPlan {
    /// What an INSERT of the document does to a row of a table with COMPACT STORAGE that has only key columns. Cassandra reads the value
    /// column that it hides from the document too. The row exists by that value, and the document has none, or null.
    pub(crate) const fn verb_of_hidden_value(&self) -> WriteVerb {
        match self.default_unset {
            true => WriteVerb::Update,
            false => WriteVerb::Delete,
        }
    }

    /// Types the document.
    pub(crate) fn new(typer: &mut TypeChecker<'_>, document: &Term, default_unset: bool) -> Result<Self, Error> {
        let receiver = ColumnSpec::new("[json]", CqlType::Native(Native::Text));
        Ok(Self {
            document: typer.term(document, &receiver)?,
            default_unset,
        })
    }

    /// A value for each column of the table.
    ///
    /// # Errors
    ///
    /// The document is no object, a value does not fit its column's type, or a name is no column's.
    pub(crate) fn bind(&self, table: &Table, binding: &Binding<'_>) -> Result<Vec<Value>, Error> {
        let text = match self.document.bind(binding)? {
            Value::Bytes(bytes) => String::from_utf8(bytes.into()).unwrap_or_default(),
            // Cassandra treats unset as an empty value.
            Value::Unset => String::new(),
            Value::Null => return Err(ValueRefusal::NullJson.into()),
        };
        let members = Json::parse_object(&text).map_err(ValueRefusal::Marshal)?;
        let mut members: Vec<(String, Json)> = members
            .into_iter()
            .map(|(name, value)| (folded(&name), value))
            .collect();
        let missing = if self.default_unset { Value::Unset } else { Value::Null };
        let mut values = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            // If several members have the same folded name, the last one counts.
            let found = members.iter().rposition(|(name, _)| *name == column.name);
            let Some(found) = found else {
                values.push(missing.clone());
                continue;
            };
            let (_, json) = members.swap_remove(found);
            members.retain(|(name, _)| *name != column.name);
            match column.ty.from_json(&json) {
                Ok(Some(bytes)) => values.push(Value::Bytes(bytes)),
                Ok(None) => values.push(Value::Null),
                // Cassandra does not wrap this error.
                Err(error) if column.ty == CqlType::Native(Native::Duration) && matches!(json, Json::String(_)) => {
                    return Err(ValueRefusal::Marshal(error).into());
                }
                Err(error) => {
                    return Err(ValueRefusal::JsonMember {
                        column: column.name.clone(),
                        error,
                    }
                    .into());
                }
            }
        }
        if table.is_compact_of_keys() {
            let (_, hidden) = table.hidden_names();
            members.retain(|(name, value)| *name != hidden || *value != Json::Null);
        }
        match members.first() {
            Some((name, _)) => Err(ValueRefusal::JsonUnknown(name.clone()).into()),
            None => Ok(values),
        }
    }
}
