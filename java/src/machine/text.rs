//! `toString`: the text of any value in a concatenation.

use super::buffer;
use super::{Machine, Run};
use crate::class::Class;
use crate::datum::{Datum, Type};
use crate::shown::{duration_text, inet_text, local_date_text, name_text, plain_text, time_text};
use crate::value::{Decimal, Handle, Object, Plain, Prim, Value};

impl Machine<'_> {
    /// A text as a value.
    pub(crate) fn text(&mut self, units: &[u16]) -> Run<Value> {
        self.allocate(units.len() as u64 * 2 + 16)?;
        self.step(units.len() / 4)?;
        Ok(Value::Text(units.into()))
    }

    pub(crate) fn string(&mut self, text: &str) -> Run<Value> {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.text(&units)
    }

    fn push(&mut self, text: &str, to: &mut Vec<u16>) -> Run<()> {
        self.allocate(text.len() as u64 * 2)?;
        self.step(text.len() / 4)?;
        to.extend(text.encode_utf16());
        Ok(())
    }

    /// Appends the `toString` of a value; `null` for null.
    pub(crate) fn append(&mut self, value: &Value, to: &mut Vec<u16>) -> Run<()> {
        match value {
            Value::Null => self.push("null", to),
            Value::Text(text) => {
                self.allocate(text.len() as u64 * 2)?;
                self.step(text.len() / 4)?;
                to.extend_from_slice(text);
                Ok(())
            }
            Value::Prim(Prim::Char(unit)) | Value::Boxed(Prim::Char(unit), _) => {
                to.push(*unit);
                self.allocate(2)
            }
            Value::Prim(value) | Value::Boxed(value, _) => {
                let text = self.prim_text(*value);
                self.push(&text, to)
            }
            Value::Plain(plain) => {
                let text = plain_text(plain);
                self.push(&text, to)
            }
            Value::Context => self.push("UDFContext", to),
            Value::Ref(handle) => {
                let handle = *handle;
                self.deeper(|machine| machine.append_object(handle, to))
            }
        }
    }

    pub(crate) fn prim_text(&self, value: Prim) -> String {
        match value {
            Prim::Boolean(value) => value.to_string(),
            Prim::Byte(value) => value.to_string(),
            Prim::Short(value) => value.to_string(),
            Prim::Char(unit) => String::from_utf16_lossy(&[unit]),
            Prim::Int(value) => value.to_string(),
            Prim::Long(value) => value.to_string(),
            Prim::Float(value) => (self.limits.float_text)(value),
            Prim::Double(value) => (self.limits.double_text)(value),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each object")]
    fn append_object(&mut self, handle: Handle, to: &mut Vec<u16>) -> Run<()> {
        match self.object(handle)? {
            Object::Builder(units) => {
                let units = units.clone();
                self.append(&Value::Text(units.into()), to)
            }
            Object::Entry(key, value) => {
                let (key, value) = (key.clone(), value.clone());
                self.append_entry(handle, &key, &value, to)
            }
            Object::Exception { class, message } => {
                let (class, message) = (class.full_name(), message.clone());
                self.push(class, to)?;
                match message {
                    Some(message) => {
                        self.push(": ", to)?;
                        self.append(&Value::Text(message), to)
                    }
                    None => Ok(()),
                }
            }
            Object::Table(table) if table.class.is(Class::Map) => {
                let entries = table.entries();
                self.push("{", to)?;
                for (at, (key, value)) in entries.into_iter().enumerate() {
                    if at > 0 {
                        self.push(", ", to)?;
                    }
                    self.append_entry(handle, &key, &value, to)?;
                }
                self.push("}", to)
            }
            Object::Tuple { ty, fields, .. } => {
                let text = self.literal(Some(&Datum::Tuple(fields.clone())), &ty.clone());
                self.push(&text, to)
            }
            Object::List { .. } | Object::Table(_) | Object::View { .. } => {
                self.push("[", to)?;
                for (at, element) in self.elements(handle)?.into_iter().enumerate() {
                    if at > 0 {
                        self.push(", ", to)?;
                    }
                    self.append_inner(handle, &element, "(this Collection)", to)?;
                }
                self.push("]", to)
            }
            Object::Optional(Value::Null) => self.push("Optional.empty", to),
            Object::Optional(value) => {
                let value = value.clone();
                self.push("Optional[", to)?;
                self.append(&value, to)?;
                self.push("]", to)
            }
            Object::Buffer(_) => {
                let shown = buffer::shown(self, handle)?;
                self.push(&shown, to)
            }
            Object::Pattern(pattern) => {
                let text = pattern.text.clone();
                self.append(&Value::Text(text), to)
            }
            // Java prints a random number, or the state, with these.
            Object::Bytes(_)
            | Object::Random(_)
            | Object::Tokenizer { .. }
            | Object::Calendar(_)
            | Object::DateFormat { .. }
            | Object::Matcher(_) => {
                let class = self.class_of(&Value::Ref(handle))?.full_name();
                self.push(class, to)
            }
            // Java prints a random number here.
            Object::Array { .. } => self.push("[array", to),
            Object::Iterator { .. } => self.push("java.util.Iterator", to),
            Object::Bare => self.push("java.lang.Object", to),
        }
    }

    fn append_entry(&mut self, of: Handle, key: &Value, value: &Value, to: &mut Vec<u16>) -> Run<()> {
        self.append_inner(of, key, "(this Map)", to)?;
        self.push("=", to)?;
        self.append_inner(of, value, "(this Map)", to)
    }

    fn append_inner(&mut self, of: Handle, value: &Value, itself: &str, to: &mut Vec<u16>) -> Run<()> {
        match value {
            Value::Ref(inner) if *inner == of => self.push(itself, to),
            value => self.append(value, to),
        }
    }

    /// A value as a CQL literal, as the tuples and user types of Cassandra print their fields. A null collection is an
    /// empty one.
    fn literal(&self, datum: Option<&Datum>, ty: &Type) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let all = |items: &[Option<Datum>], of: &Type| {
            let texts: Vec<String> = items.iter().map(|item| self.literal(item.as_ref(), of)).collect();
            texts.join(",")
        };
        let plain = |plain: Plain| plain_text(&plain);
        match (datum, ty) {
            (None, Type::List(_)) => "[]".to_owned(),
            (None, Type::Set(_) | Type::Map(..)) => "{}".to_owned(),
            (Some(Datum::List(items)), Type::Set(of)) => format!("{{{}}}", all(items, of)),
            (Some(Datum::List(items)), Type::List(of)) => format!("[{}]", all(items, of)),
            (Some(Datum::List(items)), Type::Vector(of, _)) => {
                let texts: Vec<String> = items.iter().map(|item| self.literal(item.as_ref(), of)).collect();
                format!("[{}]", texts.join(", "))
            }
            (Some(Datum::Map(entries)), Type::Map(key_type, value_type)) => {
                let entry = |(key, value): &(Option<Datum>, Option<Datum>)| {
                    let key = self.literal(key.as_ref(), key_type);
                    format!("{key}:{}", self.literal(value.as_ref(), value_type))
                };
                let texts: Vec<String> = entries.iter().map(entry).collect();
                format!("{{{}}}", texts.join(","))
            }
            (Some(Datum::Tuple(fields)), Type::Tuple(of)) => {
                let fields = fields.iter().zip(&of.types);
                let texts: Vec<String> = fields.map(|(field, ty)| self.literal(field.as_ref(), ty)).collect();
                format!("({})", texts.join(","))
            }
            (Some(Datum::Tuple(fields)), Type::User(user)) => {
                let fields = user.names.iter().zip(fields.iter().zip(&user.fields.types));
                let field = |(name, (field, ty)): (&String, (&Option<Datum>, &Type))| {
                    format!("{}:{}", name_text(name), self.literal(field.as_ref(), ty))
                };
                format!("{{{}}}", fields.map(field).collect::<Vec<_>>().join(","))
            }
            (Some(Datum::Text(text)), _) => quoted(text),
            (Some(Datum::Blob(bytes)), _) => bytes
                .iter()
                .fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
            (Some(Datum::Boolean(value)), _) => value.to_string(),
            (Some(Datum::Byte(value)), _) => value.to_string(),
            (Some(Datum::Short(value)), _) => value.to_string(),
            (Some(Datum::Int(value)), _) => value.to_string(),
            (Some(Datum::Long(nanos)), Type::Time) => quoted(&time_text(*nanos)),
            (Some(Datum::Long(value) | Datum::Date(value)), _) => value.to_string(),
            (Some(Datum::Float(value)), _) => (self.limits.float_text)(*value),
            (Some(Datum::Double(value)), _) => (self.limits.double_text)(*value),
            (Some(Datum::BigInteger(value)), _) => value.to_string(),
            (Some(Datum::BigDecimal { unscaled, scale }), _) => plain(Plain::Decimal(Decimal {
                unscaled: unscaled.clone(),
                scale: *scale,
            })),
            (Some(Datum::Uuid(value)), _) => plain(Plain::Uuid(*value)),
            (Some(Datum::LocalDate(days)), _) => quoted(&local_date_text(*days)),
            (Some(Datum::Inet(address)), _) => quoted(&inet_text(*address)),
            (Some(Datum::Duration { months, days, nanos }), _) => duration_text(*months, *days, *nanos),
            _ => "NULL".to_owned(),
        }
    }

    /// The `toString` of a value, as a value.
    pub(crate) fn text_of(&mut self, value: &Value) -> Run<Value> {
        if let Value::Text(_) = value {
            return Ok(value.clone());
        }
        let mut units = Vec::new();
        self.append(value, &mut units)?;
        self.text(&units)
    }
}
