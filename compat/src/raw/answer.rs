//! Answers as plain data: JSON in the shape of `golden/*.json`, cells in hexadecimal.

use super::{Envelope, hex, opcode};
use crate::{Error, Outcome};
use serde_json::{Map, Value, json};

/// Name of an error code, as `golden/errors.json` has it.
pub fn error_name(code: i32) -> &'static str {
    match code {
        0x0000 => "ServerError",
        0x000A => "ProtocolError",
        0x0100 => "BadCredentials",
        0x1000 => "Unavailable",
        0x1001 => "Overloaded",
        0x1002 => "IsBootstrapping",
        0x1003 => "TruncateError",
        0x1100 => "WriteTimeout",
        0x1200 => "ReadTimeout",
        0x1300 => "ReadFailure",
        0x1400 => "FunctionFailure",
        0x1500 => "WriteFailure",
        0x1600 => "CDCWriteFailure",
        0x1700 => "CASWriteUnknown",
        0x2000 => "SyntaxError",
        0x2100 => "Unauthorized",
        0x2200 => "Invalid",
        0x2300 => "ConfigError",
        0x2400 => "AlreadyExists",
        0x2500 => "Unprepared",
        _ => "?",
    }
}

fn type_name(id: u16) -> Option<&'static str> {
    Some(match id {
        1 => "ascii",
        2 => "bigint",
        3 => "blob",
        4 => "boolean",
        5 => "counter",
        6 => "decimal",
        7 => "double",
        8 => "float",
        9 => "int",
        0xB => "timestamp",
        0xC => "uuid",
        0xD => "varchar",
        0xE => "varint",
        0xF => "timeuuid",
        0x10 => "inet",
        0x11 => "date",
        0x12 => "time",
        0x13 => "smallint",
        0x14 => "tinyint",
        0x15 => "duration",
        _ => return None,
    })
}

/// Takes a body apart.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Outcome<&'a [u8]> {
        let (head, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(Error::Malformed("a body that ends early"))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        self.take(N)?
            .try_into()
            .map_err(|_| Error::Malformed("a body that ends early"))
    }

    fn short(&mut self) -> Outcome<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn int(&mut self) -> Outcome<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn string(&mut self) -> Outcome<String> {
        let len = self.short()?;
        let bytes = self.take(len.into())?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Error::Malformed("a text that is not UTF-8"))
    }

    fn strings(&mut self) -> Outcome<Vec<String>> {
        (0..self.short()?).map(|_| self.string()).collect()
    }

    fn short_bytes(&mut self) -> Outcome<&'a [u8]> {
        let len = self.short()?;
        self.take(len.into())
    }

    fn bytes(&mut self) -> Outcome<Option<&'a [u8]>> {
        match usize::try_from(self.int()?) {
            Ok(len) => self.take(len).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn cql_type(&mut self) -> Outcome<String> {
        let id = self.short()?;
        Ok(match id {
            0 => format!("custom '{}'", self.string()?),
            0x20 => format!("list<{}>", self.cql_type()?),
            0x21 => format!("map<{}, {}>", self.cql_type()?, self.cql_type()?),
            0x22 => format!("set<{}>", self.cql_type()?),
            0x30 => {
                let (keyspace, name) = (self.string()?, self.string()?);
                let fields = (0..self.short()?)
                    .map(|_| Ok(format!("{} {}", self.string()?, self.cql_type()?)))
                    .collect::<Outcome<Vec<_>>>()?;
                format!("udt {keyspace}.{name}({})", fields.join(", "))
            }
            0x31 => {
                let types = (0..self.short()?)
                    .map(|_| self.cql_type())
                    .collect::<Outcome<Vec<_>>>()?;
                format!("tuple<{}>", types.join(", "))
            }
            id => type_name(id).ok_or(Error::Malformed("an unknown type id"))?.to_owned(),
        })
    }

    fn columns(&mut self, flags: i32, count: i32) -> Outcome<Vec<Value>> {
        let shared = if flags & 1 != 0 {
            Some((self.string()?, self.string()?))
        } else {
            None
        };
        (0..count)
            .map(|_| {
                let (keyspace, table) = match &shared {
                    Some(shared) => shared.clone(),
                    None => (self.string()?, self.string()?),
                };
                Ok(json!({"keyspace": keyspace, "table": table, "name": self.string()?, "type": self.cql_type()?}))
            })
            .collect()
    }

    fn metadata(&mut self) -> Outcome<Map<String, Value>> {
        let (flags, count) = (self.int()?, self.int()?);
        let mut told = Map::new();
        told.insert("flags".to_owned(), flags.into());
        told.insert("count".to_owned(), count.into());
        if flags & 2 != 0 {
            let state = self.bytes()?.map(hex);
            told.insert("paging".to_owned(), state.into());
        }
        if flags & 8 != 0 {
            told.insert("new_metadata_id".to_owned(), hex(self.short_bytes()?).into());
        }
        // Without markers, servers differ on whether the names that flag 1 promises follow.
        let none = flags & 4 != 0 || (count == 0 && self.rest.is_empty());
        told.insert(
            "columns".to_owned(),
            if none { Vec::new() } else { self.columns(flags, count)? }.into(),
        );
        Ok(told)
    }
}

/// An answer as JSON: `code`, `error`, `message` and what goes with them, or `kind` and what goes with that.
///
/// # Errors
/// When the body cannot be read.
pub fn plain(envelope: &Envelope) -> Outcome<Value> {
    let mut reader = Reader { rest: &envelope.body };
    let mut told = Map::new();
    if envelope.flags & 2 != 0 {
        told.insert("tracing".to_owned(), hex(reader.take(16)?).into());
    }
    if envelope.flags & 8 != 0 {
        told.insert("warnings".to_owned(), reader.strings()?.into());
    }
    if envelope.flags & 4 != 0 {
        for _ in 0..reader.short()? {
            reader.string()?;
            reader.bytes()?;
        }
    }
    match envelope.opcode {
        opcode::ERROR => error(&mut reader, &mut told)?,
        opcode::RESULT => result(&mut reader, &mut told, envelope.version)?,
        opcode::SUPPORTED => {
            let mut options = Map::new();
            for _ in 0..reader.short()? {
                let name = reader.string()?;
                options.insert(name, reader.strings()?.into());
            }
            told.insert("opcode".to_owned(), envelope.opcode.into());
            told.insert("options".to_owned(), options.into());
        }
        opcode::EVENT => {
            let kind = reader.string()?;
            told.insert("event".to_owned(), kind.clone().into());
            if kind == "SCHEMA_CHANGE" {
                schema_change(&mut reader, &mut told)?;
            } else {
                told.insert("change".to_owned(), reader.string()?.into());
            }
        }
        other => {
            told.insert("opcode".to_owned(), other.into());
            told.insert("body".to_owned(), hex(reader.rest).into());
        }
    }
    Ok(told.into())
}

fn error(reader: &mut Reader<'_>, told: &mut Map<String, Value>) -> Outcome<()> {
    let code = reader.int()?;
    told.insert("code".to_owned(), format!("0x{code:04X}").into());
    told.insert("error".to_owned(), error_name(code).into());
    told.insert("message".to_owned(), reader.string()?.into());
    match code {
        0x2400 => {
            told.insert("already".to_owned(), json!([reader.string()?, reader.string()?]));
        }
        0x1400 => {
            told.insert(
                "function".to_owned(),
                json!([reader.string()?, reader.string()?, reader.strings()?]),
            );
        }
        _ if !reader.rest.is_empty() => {
            told.insert("more".to_owned(), hex(reader.rest).into());
        }
        _ => {}
    }
    Ok(())
}

fn schema_change(reader: &mut Reader<'_>, told: &mut Map<String, Value>) -> Outcome<()> {
    let (change, target) = (reader.string()?, reader.string()?);
    let mut names = vec![Value::from(reader.string()?)];
    if target != "KEYSPACE" {
        names.push(reader.string()?.into());
    }
    if target == "FUNCTION" || target == "AGGREGATE" {
        names.push(reader.strings()?.into());
    }
    told.insert("change".to_owned(), change.into());
    told.insert("target".to_owned(), target.into());
    told.insert("names".to_owned(), names.into());
    Ok(())
}

fn result(reader: &mut Reader<'_>, told: &mut Map<String, Value>, version: u8) -> Outcome<()> {
    let kind = match reader.int()? {
        1 => "void",
        2 => "rows",
        3 => "set_keyspace",
        4 => "prepared",
        5 => "schema_change",
        _ => return Err(Error::Malformed("an unknown kind of result")),
    };
    told.insert("kind".to_owned(), kind.into());
    match kind {
        "rows" => {
            let mut metadata = reader.metadata()?;
            let count = metadata.remove("count").and_then(|n| n.as_i64()).unwrap_or(0);
            told.append(&mut metadata);
            let rows = (0..reader.int()?)
                .map(|_| {
                    (0..count)
                        .map(|_| Ok(reader.bytes()?.map(hex).into()))
                        .collect::<Outcome<Vec<Value>>>()
                })
                .collect::<Outcome<Vec<_>>>()?;
            told.insert("rows".to_owned(), rows.into());
        }
        "set_keyspace" => {
            told.insert("keyspace".to_owned(), reader.string()?.into());
        }
        "prepared" => {
            told.insert("id".to_owned(), hex(reader.short_bytes()?).into());
            if version >= 5 {
                told.insert("metadata_id".to_owned(), hex(reader.short_bytes()?).into());
            }
            let (flags, count) = (reader.int()?, reader.int()?);
            let keys = if version >= 4 {
                (0..reader.int()?)
                    .map(|_| reader.short())
                    .collect::<Outcome<Vec<_>>>()?
            } else {
                Vec::new()
            };
            told.insert("flags".to_owned(), flags.into());
            told.insert("partition_key".to_owned(), keys.into());
            told.insert("markers".to_owned(), reader.columns(flags, count)?.into());
            told.insert("result".to_owned(), reader.metadata()?.into());
        }
        "schema_change" => schema_change(reader, told)?,
        _ => {}
    }
    Ok(())
}
