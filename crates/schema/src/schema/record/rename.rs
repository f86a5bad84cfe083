//! Rewrites the records of one keyspace or table under another name.

use serde_json::Value;

use super::{FORMAT, FORMAT_WITH_LOG, RecordError, readable};

/// The kind of a record, its keyspace, and its object's name (empty for a keyspace's own record). `None` means that the
/// key is not a record's.
#[must_use]
pub fn place(key: &[u8]) -> Option<(u8, &str, &str)> {
    let (kind, rest) = key.split_first().filter(|(kind, _)| b"kytvfa".contains(kind))?;
    let mut parts = rest.split(|byte| *byte == 0);
    let keyspace = std::str::from_utf8(parts.next()?).ok()?;
    let name = std::str::from_utf8(parts.next().unwrap_or_default()).ok()?;
    Some((*kind, keyspace, name))
}

/// Rewrites a record for another keyspace and, for a table, another name. Numbers and ids stay the same.
///
/// # Errors
/// The record has an unknown format or is damaged.
pub fn renamed(
    key: &[u8],
    value: &[u8],
    keyspace: &str,
    table: Option<&str>,
) -> Result<(Vec<u8>, Vec<u8>), RecordError> {
    let damaged = |reason: &str| RecordError::Damaged {
        key: readable(key),
        reason: reason.to_owned(),
    };
    let (&format, body) = value.split_first().ok_or_else(|| damaged("it is empty"))?;
    if !(FORMAT..=FORMAT_WITH_LOG).contains(&format) {
        let key = readable(key);
        return Err(RecordError::Format { key, format });
    }
    let mut record: Value = serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
    let (kind, _, old) = place(key).ok_or_else(|| damaged("nothing has such a key"))?;
    let mut set = |pointer: &str, text: &str| {
        if let Some(field) = record.pointer_mut(pointer) {
            *field = Value::from(text);
        }
    };
    match kind {
        b'k' => set("/name", keyspace),
        b'v' => set("/table/keyspace", keyspace),
        _ => set("/keyspace", keyspace),
    }
    let name = table.filter(|_| kind == b't').unwrap_or(old);
    if kind == b't' {
        set("/name", name);
    }
    let rest = key.splitn(3, |byte| *byte == 0).nth(2);
    let mut renamed = [&[kind], keyspace.as_bytes(), &[0], name.as_bytes()].concat();
    if let Some(arguments) = rest {
        renamed.push(0);
        renamed.extend_from_slice(arguments);
    }
    let mut value = vec![format];
    serde_json::to_writer(&mut value, &record).map_err(|error| damaged(&error.to_string()))?;
    Ok((renamed, value))
}
