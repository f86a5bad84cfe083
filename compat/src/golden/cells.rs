//! Cells as readable JSON, for the few types that the schema tables have.

use crate::raw::unhex;
use serde_json::{Map, Value};

/// The cell in `hex` of this type; types that no schema table has stay hexadecimal.
pub(super) fn readable(hex: &Value, cql_type: &str) -> Value {
    let Some(bytes) = hex.as_str().and_then(unhex) else {
        return Value::Null;
    };
    decode(&bytes, cql_type).unwrap_or_else(|| hex.clone())
}

fn decode(bytes: &[u8], cql_type: &str) -> Option<Value> {
    Some(match cql_type {
        "varchar" | "ascii" => String::from_utf8(bytes.to_vec()).ok()?.into(),
        "int" => i32::from_be_bytes(bytes.try_into().ok()?).into(),
        "bigint" => i64::from_be_bytes(bytes.try_into().ok()?).into(),
        "double" => f64::from_be_bytes(bytes.try_into().ok()?).into(),
        "boolean" => (bytes.first()? != &0).into(),
        "uuid" => {
            let hex = crate::raw::hex(bytes);
            let part = |from: usize, to: usize| hex.get(from..to).map(str::to_owned);
            [part(0, 8)?, part(8, 12)?, part(12, 16)?, part(16, 20)?, part(20, 32)?]
                .join("-")
                .into()
        }
        _ => return collection(bytes, cql_type),
    })
}

fn collection(bytes: &[u8], cql_type: &str) -> Option<Value> {
    let (kind, inner) = cql_type.strip_suffix('>')?.split_once('<')?;
    let mut parts = Parts { rest: bytes };
    let count = parts.count()?;
    if kind == "map" {
        let (key, value) = inner.split_once(", ")?;
        let mut map = Map::new();
        for _ in 0..count {
            let key = decode(parts.part()?, key)?;
            map.insert(key.as_str()?.to_owned(), decode(parts.part()?, value)?);
        }
        return Some(map.into());
    }
    (0..count)
        .map(|_| decode(parts.part()?, inner))
        .collect::<Option<Vec<_>>>()
        .map(Value::from)
}

struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn count(&mut self) -> Option<usize> {
        let (head, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        usize::try_from(i32::from_be_bytes(head.try_into().ok()?)).ok()
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let len = self.count()?;
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }
}
