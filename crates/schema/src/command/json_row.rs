//! A row as one JSON text, as SELECT JSON and records of the change feed have it.

use bytes::Bytes;

use super::ResultColumn;
use helenus_types::types::json_string;

/// A row as Cassandra prints it: names in the order of the cells, in double quotes of their own where they are not in
/// lower case.
pub fn json_row<'a>(cells: impl IntoIterator<Item = (&'a ResultColumn, &'a Option<Bytes>)>) -> String {
    let mut text = String::from("{");
    for (number, (column, value)) in cells.into_iter().enumerate() {
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
