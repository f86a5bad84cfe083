//! SELECT JSON: a row as one text.

use bytes::Bytes;

use crate::command::ResultColumn;
use crate::types::json_string;

/// A row as Cassandra prints it: names in order of selection, in double quotes of their own where they are not in lower
/// case.
pub(crate) fn row(columns: &[ResultColumn], values: &[Option<Bytes>]) -> String {
    let mut text = String::from("{");
    for (number, (column, value)) in columns.iter().zip(values).enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        if column.name == column.name.to_lowercase() {
            text.push_str(&json_string(&column.name));
        } else {
            text.push_str(&json_string(&format!("\"{}\"", column.name)));
        }
        text.push_str(": ");
        match value {
            None => text.push_str("null"),
            Some(value) => text.push_str(&column.ty.to_json(value)),
        }
    }
    text.push('}');
    text
}
