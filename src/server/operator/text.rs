//! Values as text in CSV and JSON lines, and back, exactly.
//!
//! | | CSV | JSON lines |
//! |---|---|---|
//! | null | nothing | `null`, or no member |
//! | an empty text or value | `""` | `""` |
//! | text | as it is, in quotes where CSV needs them | a string |
//! | other native types | their text, as in cqlsh's COPY | as in `SELECT JSON` |
//! | collections, tuples, user-defined types | a CQL literal | as in `SELECT JSON` |
//! | an empty collection that is not frozen, which is null | `[]`, `{}` are read | `[]`, `{}` are read |
//! | values that none of these restores byte for byte | `0x` and its bytes | a string of `0x` and its bytes |
//!
//! A value of a user-defined type that was written before ALTER TYPE added a field is written, and read back, with null for that field.
//!
//! Every value is read back before it is written, so that the last row of the table is used only if it is needed: for
//! values of types without text, tuples shorter than their type, empty values inside collections. A decimal in JSON is
//! a string if a number would lose its scale.

use bytes::Bytes;

use helenus_types::types::{
    CqlType, Json, Native, encode_list, encode_map, encode_tuple, json_string, list_elements, map_entries,
    set_elements, tuple_fields,
};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Comma-separated values, RFC 4180, with a line of column names.
    Csv,
    /// One JSON object a line.
    Json,
}

fn is_text(ty: &CqlType) -> bool {
    matches!(ty.unfrozen(), CqlType::Native(Native::Text | Native::Ascii))
}

fn raw(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    format!("0x{}", digits.collect::<String>())
}

/// Reads what [`raw`] wrote. `None` means another format.
fn from_raw(text: &str) -> Option<Bytes> {
    let digits = text.strip_prefix("0x")?;
    if digits.len() % 2 != 0 || !digits.is_ascii() {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>().map(Bytes::from)
}

/// A value as a cell of CSV without quotes; an empty text or value gives an empty string.
fn plain(ty: &CqlType, bytes: &[u8]) -> String {
    let now = grown(ty, bytes).unwrap_or_else(|| Bytes::copy_from_slice(bytes));
    let text = match ty.unfrozen() {
        CqlType::Native(Native::Blob) | CqlType::Custom(_) => return raw(bytes),
        CqlType::Native(_) => ty.to_text(&now),
        _ => ty.to_literal(&now),
    };
    match from_plain(ty, &text) {
        Ok(Some(read)) if read == now => text,
        _ => raw(bytes),
    }
}

/// A value with nulls for the fields that were added to its user-defined types since it was written. `None` means that it is not of its
/// type, or is encoded in another way than this program encodes it.
fn grown(ty: &CqlType, bytes: &[u8]) -> Option<Bytes> {
    let all = |ty: &CqlType, elements: Vec<&[u8]>| -> Option<Vec<Bytes>> {
        elements.into_iter().map(|element| grown(ty, element)).collect()
    };
    let as_written = |encoded: &Bytes| encoded == bytes;
    match ty.unfrozen() {
        CqlType::User(user) => {
            let fields = tuple_fields(bytes, user.fields.len());
            let prefixes = (0..=fields.len()).filter_map(|count| fields.get(..count));
            let mut encoded = prefixes.map(|prefix| encode_tuple(prefix.iter().copied()));
            encoded.find(as_written)?;
            let fields = fields.into_iter().zip(&user.fields);
            let fields = fields.map(|(field, (_, ty))| match field {
                Some(field) => grown(ty, field).map(Some),
                None => Some(None),
            });
            let fields = fields.collect::<Option<Vec<Option<Bytes>>>>()?;
            Some(encode_tuple(fields.iter().map(Option::as_deref)))
        }
        CqlType::List(of) => {
            let elements = list_elements(bytes).ok()?;
            Some(encode_list(elements.iter().copied())).filter(as_written)?;
            let elements = all(of, elements)?;
            Some(encode_list(elements.iter().map(Bytes::as_ref)))
        }
        CqlType::Set(of) => {
            let elements = set_elements(bytes).ok()?;
            Some(encode_list(elements.iter().copied())).filter(as_written)?;
            let elements = all(of, elements)?;
            Some(encode_list(elements.iter().map(Bytes::as_ref)))
        }
        CqlType::Map(key, value) => {
            let entries = map_entries(bytes).ok()?;
            Some(encode_map(entries.iter().copied())).filter(as_written)?;
            let entries = entries
                .into_iter()
                .map(|(left, right)| Some((grown(key, left)?, grown(value, right)?)));
            let entries = entries.collect::<Option<Vec<_>>>()?;
            Some(encode_map(
                entries.iter().map(|(left, right)| (left.as_ref(), right.as_ref())),
            ))
        }
        _ => Some(Bytes::copy_from_slice(bytes)),
    }
}

/// The value of a cell. `None` means null: an empty collection that is not frozen.
fn from_plain(ty: &CqlType, text: &str) -> Result<Option<Bytes>, String> {
    if is_text(ty) || (text.is_empty() && matches!(ty.unfrozen(), CqlType::Native(_))) {
        let read = ty.parse_text(text);
        return match read {
            Err(_) if text.is_empty() => Ok(Some(Bytes::new())),
            read => read.map(Bytes::from).map(Some).map_err(|error| error.to_string()),
        };
    }
    if let Some(bytes) = from_raw(text) {
        ty.validate(&bytes).map_err(|error| error.to_string())?;
        return Ok(Some(bytes));
    }
    match ty.unfrozen() {
        CqlType::Native(_) | CqlType::Custom(_) => {
            let read = ty.parse_text(text).map(Bytes::from);
            read.map(Some).map_err(|error| error.to_string())
        }
        _ => match ty.parse_literal(text)? {
            None if !text.trim_start().starts_with(['[', '{']) => Err("null is written as nothing at all".to_owned()),
            read => Ok(read),
        },
    }
}

/// Appends a record of CSV.
pub(super) fn put_csv<'a>(out: &mut String, cells: impl Iterator<Item = (&'a CqlType, Option<&'a [u8]>)>) {
    for (place, (ty, bytes)) in cells.enumerate() {
        if place > 0 {
            out.push(',');
        }
        if let Some(bytes) = bytes {
            put_cell(out, &plain(ty, bytes));
        }
    }
    out.push('\n');
}

/// Appends a cell that is not null.
pub(super) fn put_cell(out: &mut String, text: &str) {
    // A byte order mark is quoted, as a reader takes one from the beginning of a file.
    let is_bare = !text.is_empty() && !text.contains([',', '"', '\n', '\r', '\u{feff}']) && text.trim() == text;
    if is_bare {
        out.push_str(text);
    } else {
        out.push('"');
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    }
}

/// The value of a cell of CSV. `None` means null.
pub(super) fn csv_value(ty: &CqlType, cell: Option<&str>) -> Result<Option<Bytes>, String> {
    cell.map_or(Ok(None), |text| from_plain(ty, text))
}

/// A value as JSON.
fn json(ty: &CqlType, bytes: &[u8]) -> String {
    let now = grown(ty, bytes).unwrap_or_else(|| Bytes::copy_from_slice(bytes));
    let as_text = || match ty.unfrozen() {
        CqlType::Native(_) => json_string(&ty.to_text(bytes)),
        _ => json_string(&raw(bytes)),
    };
    let is_given_back = |text: &String| {
        let read = Json::parse(text).map_err(|error| error.to_string());
        let read = read.and_then(|json| json_value(ty, &json));
        matches!(read, Ok(Some(read)) if read == now)
    };
    [ty.to_json(&now), as_text()]
        .into_iter()
        .find(is_given_back)
        .unwrap_or_else(|| json_string(&raw(bytes)))
}

/// The value of a member. `None` means null.
pub(super) fn json_value(ty: &CqlType, json: &Json) -> Result<Option<Bytes>, String> {
    if let (Json::String(text), false) = (json, is_text(ty)) {
        if text.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        if let Some(bytes) = from_raw(text) {
            ty.validate(&bytes).map_err(|error| error.to_string())?;
            return Ok(Some(bytes));
        }
    }
    ty.from_json(json).map_err(|error| error.to_string())
}

/// Appends a line of JSON; nulls are left out.
pub(super) fn put_json<'a>(out: &mut String, cells: impl Iterator<Item = (&'a str, &'a CqlType, Option<&'a [u8]>)>) {
    out.push('{');
    let mut is_first = true;
    for (name, ty, bytes) in cells {
        let Some(bytes) = bytes else { continue };
        if !is_first {
            out.push_str(", ");
        }
        is_first = false;
        out.push_str(&json_string(name));
        out.push_str(": ");
        out.push_str(&json(ty, bytes));
    }
    out.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::records::{Records, csv_cells};
    use super::*;

    fn types() -> Vec<CqlType> {
        [
            "ascii",
            "bigint",
            "blob",
            "boolean",
            "date",
            "decimal",
            "double",
            "duration",
            "float",
            "inet",
            "int",
            "smallint",
            "text",
            "time",
            "timestamp",
            "timeuuid",
            "tinyint",
            "uuid",
            "varint",
            "list<int>",
            "set<text>",
            "map<int, frozen<list<decimal>>>",
            "tuple<int, text, decimal>",
            "vector<float, 2>",
            "frozen<map<text, double>>",
        ]
        .into_iter()
        .map(of)
        .collect()
    }

    fn of(name: &str) -> CqlType {
        CqlType::from_ast(&grammar::parse_type(name).unwrap(), &|_| None).unwrap()
    }

    fn both(ty: &CqlType, bytes: &[u8]) {
        let mut line = String::new();
        put_csv(&mut line, [(ty, Some(bytes)), (ty, None)].into_iter());
        let mut records = Records::new(line.as_bytes(), Form::Csv);
        let record = records.next_record().unwrap().unwrap();
        assert_eq!(records.next_record().unwrap(), None, "{line}");
        let cells = csv_cells(&record.text.unwrap()).unwrap();
        let read: Vec<_> = cells
            .iter()
            .map(|cell| csv_value(ty, cell.as_deref()).unwrap())
            .collect();
        assert_eq!(read, [Some(Bytes::copy_from_slice(bytes)), None], "{line}");
        let mut line = String::new();
        put_json(&mut line, [("a\"", ty, Some(bytes)), ("b", ty, None)].into_iter());
        let members = Json::parse_object(line.trim_end()).unwrap();
        assert_eq!(members.len(), 1);
        assert_eq!(
            json_value(ty, &members[0].1).unwrap().unwrap().as_ref(),
            bytes,
            "{line}"
        );
    }

    #[test]
    fn a_value_from_before_its_type_grew_has_nulls_for_the_new_fields() {
        let user = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), of(ty))).collect();
            CqlType::User(std::sync::Arc::new(helenus_types::types::UserType {
                keyspace: "ks".to_owned(),
                name: "u".to_owned(),
                fields,
            }))
        };
        let ty = user(&[("a", "int"), ("b", "text"), ("c", "list<int>")]);
        let old = encode_tuple([Some(&[0, 0, 0, 1][..])]);
        let whole = encode_tuple([Some(&[0, 0, 0, 1][..]), None, None]);
        let lists = |of: &CqlType| CqlType::List(std::sync::Arc::new(of.clone()));
        let values = [
            (ty.clone(), old.clone(), whole.clone(), "{a: 1, b: null, c: null}"),
            (
                lists(&ty),
                encode_list([&old[..]]),
                encode_list([&whole[..]]),
                "[{a: 1, b: null, c: null}]",
            ),
        ];
        for (ty, written, read, literal) in values {
            assert_eq!(plain(&ty, &written), literal);
            assert_eq!(from_plain(&ty, literal).unwrap().unwrap(), read);
            let text = json(&ty, &written);
            assert!(text.contains("\"b\": null") && !text.contains("0x"), "{text}");
            assert_eq!(json_value(&ty, &Json::parse(&text).unwrap()).unwrap().unwrap(), read);
        }
        let malformed = [0, 0, 0, 9, 1];
        assert_eq!(plain(&ty, &malformed), "0x0000000901");
    }

    proptest! {
        #[test]
        fn what_is_a_value_comes_back_byte_for_byte(place in 0_usize..25, bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let ty = &types()[place];
            if ty.validate(&bytes).is_ok() {
                both(ty, &bytes);
            }
        }

        #[test]
        fn texts_come_back(text in any::<String>(), lines in "[a\",\n\r ]{0,12}") {
            for ty in types().iter().filter(|ty| matches!(ty, CqlType::Native(Native::Text))) {
                both(ty, text.as_bytes());
                both(ty, lines.as_bytes());
            }
        }
    }

    #[test]
    fn texts_are_those_that_people_write() {
        let shown = |ty: &str, bytes: &[u8]| {
            let ty = of(ty);
            (plain(&ty, bytes), json(&ty, bytes))
        };
        assert_eq!(shown("int", &[0, 0, 0, 7]), ("7".to_owned(), "7".to_owned()));
        assert_eq!(
            shown("decimal", &[0, 0, 0, 2, 0x96]),
            ("-1.06".to_owned(), "-1.06".to_owned())
        );
        // A number in JSON has no scale.
        assert_eq!(
            shown("decimal", &[0, 0, 0, 2, 0, 0x96]),
            ("1.50".to_owned(), "\"1.50\"".to_owned())
        );
        assert_eq!(shown("blob", &[0, 255]), ("0x00ff".to_owned(), "\"0x00ff\"".to_owned()));
        assert_eq!(shown("text", b""), (String::new(), "\"\"".to_owned()));
        assert_eq!(shown("int", b""), (String::new(), "\"\"".to_owned()));
        let list = [0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7];
        assert_eq!(shown("list<int>", &list), ("[7]".to_owned(), "[7]".to_owned()));
        assert!(csv_value(&of("int"), Some("x")).is_err());
    }
}
