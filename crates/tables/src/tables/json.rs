//! Bodies in JSON: entities and names of tables in; entities, lists, names and refusals out, at three levels of metadata.

use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::address::of_entity;
use super::edm::{Edm, EdmType, double_text};
use super::entity::{Entity, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use super::fault::Fault;

/// How much an answer says about types and addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// `odata=nometadata`: nothing.
    None,
    /// `odata=minimalmetadata`: ETags, and types that the value does not show.
    #[default]
    Minimal,
    /// `odata=fullmetadata`: addresses and names of types too.
    Full,
}

impl Level {
    /// The level of a media type in `Accept`, `Content-Type` or `$format`; `None` means that it is not JSON.
    #[must_use]
    pub fn of_media_type(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next()?;
        if !media.eq_ignore_ascii_case("application/json") && !media.eq_ignore_ascii_case("json") {
            return None;
        }
        let odata = parts
            .find_map(|part| part.strip_prefix("odata="))
            .unwrap_or("minimalmetadata");
        Some(match odata {
            "nometadata" => Self::None,
            "fullmetadata" => Self::Full,
            _ => Self::Minimal,
        })
    }

    /// The type of an answer at this level.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// The fields of an object in their order, each with its text; no name twice.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

struct FieldsVisitor;

impl<'a> Visitor<'a> for FieldsVisitor {
    type Value = Fields<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Text(name), value)) = map.next_entry::<Text<'a>, &'a RawValue>()? {
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }
}

/// A text, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads an object.
fn fields(body: &[u8]) -> Result<Fields<'_>, Fault> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let fields = reader.deserialize_map(FieldsVisitor).map_err(|_| Fault::InvalidInput)?;
    reader.end().map_err(|_| Fault::InvalidInput)?;
    Ok(fields)
}

/// The name of the table in the body of a request that makes one.
///
/// # Errors
/// The body has none.
pub fn table_name(body: &[u8]) -> Result<String, Fault> {
    let fields = fields(body)?;
    let mut found = fields.0.iter().filter(|(name, _)| name == "TableName");
    let (_, value) = found.next().ok_or(Fault::PropertiesNeedValue)?;
    serde_json::from_str(value.get()).map_err(|_| Fault::InvalidInput)
}

/// An entity of a body: the keys where it has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The partition key; `None` means that the body has none.
    pub partition_key: Option<String>,
    /// The row key; `None` means that the body has none.
    pub row_key: Option<String>,
    /// By name. Properties that are null are left out.
    pub properties: Vec<(String, Edm)>,
}

const TYPE_ANNOTATION: &str = "@odata.type";

/// Reads an entity. What a client may send and the service decides is left out: the Timestamp, `odata.*`, annotations of annotations.
///
/// # Errors
/// It is no object of plain values, a value is none of its type, or a name comes twice.
pub fn entity(body: &[u8]) -> Result<Sent, Fault> {
    let fields = fields(body)?;
    let mut sent = Sent {
        partition_key: None,
        row_key: None,
        properties: Vec::with_capacity(fields.0.len()),
    };
    // An annotation may come before its value or after it.
    let types: Vec<(&str, &RawValue)> = fields
        .0
        .iter()
        .filter_map(|(name, value)| Some((name.strip_suffix(TYPE_ANNOTATION)?, *value)))
        .collect();
    for (name, value) in &fields.0 {
        let is_annotation = name.contains('@') || name.starts_with("odata.");
        if is_annotation || name == TIMESTAMP {
            continue;
        }
        let annotation = annotated(&types, name)?;
        let value = property(value.get(), annotation)?;
        let key = match name.as_ref() {
            PARTITION_KEY => &mut sent.partition_key,
            ROW_KEY => &mut sent.row_key,
            _ => {
                sent.properties
                    .extend(value.map(|value| (name.as_ref().to_owned(), value)));
                continue;
            }
        };
        match value {
            Some(Edm::String(text)) if key.is_none() => *key = Some(text),
            Some(Edm::String(_)) => return Err(Fault::DuplicatePropertiesSpecified),
            // A key that is null has no value.
            None => {}
            Some(_) => return Err(Fault::InvalidInput),
        }
    }
    sent.properties.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut pairs = sent.properties.iter().zip(sent.properties.iter().skip(1));
    if pairs.any(|((left, _), (right, _))| left == right) {
        return Err(Fault::DuplicatePropertiesSpecified);
    }
    Ok(sent)
}

/// The type that an annotation gives a property; `None` means that there is no annotation.
fn annotated(types: &[(&str, &RawValue)], name: &str) -> Result<Option<EdmType>, Fault> {
    let Some((_, value)) = types.iter().find(|(own, _)| *own == name) else {
        return Ok(None);
    };
    let Text(annotation) = serde_json::from_str(value.get()).map_err(|_| Fault::InvalidInput)?;
    EdmType::of_name(&annotation).map(Some).ok_or(Fault::InvalidInput)
}

/// A value by its text in JSON and its annotation; `None` means null.
fn property(text: &str, annotation: Option<EdmType>) -> Result<Option<Edm>, Fault> {
    let invalid = || Fault::InvalidInput;
    let value = match text.as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b't' | b'f') => match annotation {
            None | Some(EdmType::Boolean) => Edm::Boolean(text == "true"),
            Some(_) => return Err(invalid()),
        },
        Some(b'"') => {
            let text = serde_json::from_str::<Text<'_>>(text).map_err(|_| invalid())?;
            match annotation {
                None | Some(EdmType::String) => Edm::String(text.0.into_owned()),
                Some(ty) => ty.parse(&text.0).ok_or_else(invalid)?,
            }
        }
        Some(b'-' | b'0'..=b'9') => {
            let is_whole = !text.contains(['.', 'e', 'E']);
            let ty = annotation.unwrap_or(if is_whole { EdmType::Int32 } else { EdmType::Double });
            match ty {
                EdmType::Int32 | EdmType::Int64 | EdmType::Double => ty.parse(text).ok_or_else(invalid)?,
                _ => return Err(invalid()),
            }
        }
        // Objects and arrays.
        _ => return Err(invalid()),
    };
    Ok(Some(value))
}

/// What answers say about where things are.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Scheme, host, and the account where the address has it: `http://127.0.0.1:10002/account`.
    pub base: &'a str,
    /// The account.
    pub account: &'a str,
}

/// Names of `$select`, trimmed; all properties without them.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// The text of the request.
    pub text: &'a str,
}

impl<'a> Selected<'a> {
    fn names(self) -> impl Iterator<Item = &'a str> {
        self.text.split(',').map(str::trim).filter(|name| !name.is_empty())
    }

    /// Whether it selects all.
    fn is_all(self) -> bool {
        self.names().next().is_none() || self.names().any(|name| name == "*")
    }
}

/// Writes one JSON body.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
}

impl Body {
    /// An entity alone.
    #[must_use]
    pub fn entity(
        origin: Origin<'_>,
        table: &str,
        entity: &Entity,
        select: Option<Selected<'_>>,
        level: Level,
    ) -> Vec<u8> {
        let mut body = Self::default();
        let metadata = format!("{}/$metadata#{table}/@Element{}", origin.base, selected_text(select));
        body.one(origin, table, entity, select, level, Some(&metadata));
        body.bytes
    }

    /// A list of entities.
    #[must_use]
    pub fn entities(
        origin: Origin<'_>,
        table: &str,
        entities: &[Entity],
        select: Option<Selected<'_>>,
        level: Level,
    ) -> Vec<u8> {
        let mut body = Self::default();
        let metadata = format!("{}/$metadata#{table}{}", origin.base, selected_text(select));
        body.list(level, &metadata, entities, |body, entity| {
            body.one(origin, table, entity, select, level, None)
        });
        body.bytes
    }

    /// A table alone.
    #[must_use]
    pub fn table(origin: Origin<'_>, name: &str, level: Level) -> Vec<u8> {
        let mut body = Self::default();
        let metadata = format!("{}/$metadata#Tables/@Element", origin.base);
        body.one_table(origin, name, level, Some(&metadata));
        body.bytes
    }

    /// A list of tables.
    #[must_use]
    pub fn tables(origin: Origin<'_>, names: &[String], level: Level) -> Vec<u8> {
        let mut body = Self::default();
        let metadata = format!("{}/$metadata#Tables", origin.base);
        body.list(level, &metadata, names, |body, name| {
            body.one_table(origin, name, level, None)
        });
        body.bytes
    }

    /// A refusal. The text ends with the request's id and the time.
    #[must_use]
    pub fn fault(code: &str, text: &str) -> Vec<u8> {
        let mut body = Self::default();
        body.raw("{\"odata.error\":{\"code\":");
        body.text(code);
        body.raw(",\"message\":{\"lang\":\"en-US\",\"value\":");
        body.text(text);
        body.raw("}}}");
        body.bytes
    }

    fn raw(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A text in quotes.
    fn text(&mut self, text: &str) {
        serde_json::to_writer(&mut self.bytes, text).expect("a vector takes every byte");
    }

    /// A field, and the comma before it unless it is the first.
    fn field(&mut self, name: &str) {
        if !matches!(self.bytes.last(), None | Some(b'{')) {
            self.raw(",");
        }
        self.text(name);
        self.raw(":");
    }

    fn text_field(&mut self, name: &str, value: &str) {
        self.field(name);
        self.text(value);
    }

    fn list<T>(&mut self, level: Level, metadata: &str, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.raw("{");
        if level != Level::None {
            self.text_field("odata.metadata", metadata);
        }
        self.field("value");
        self.raw("[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            write(self, item);
        }
        self.raw("]}");
    }

    fn one_table(&mut self, origin: Origin<'_>, name: &str, level: Level, metadata: Option<&str>) {
        self.raw("{");
        if let Some(metadata) = metadata.filter(|_| level != Level::None) {
            self.text_field("odata.metadata", metadata);
        }
        if level == Level::Full {
            let address = format!("Tables('{name}')");
            self.text_field("odata.type", &format!("{}.Tables", origin.account));
            self.text_field("odata.id", &format!("{}/{address}", origin.base));
            self.text_field("odata.editLink", &address);
        }
        self.text_field("TableName", name);
        self.raw("}");
    }

    fn one(
        &mut self,
        origin: Origin<'_>,
        table: &str,
        entity: &Entity,
        select: Option<Selected<'_>>,
        level: Level,
        metadata: Option<&str>,
    ) {
        self.raw("{");
        if let Some(metadata) = metadata.filter(|_| level != Level::None) {
            self.text_field("odata.metadata", metadata);
        }
        if level == Level::Full {
            let address = of_entity(table, &entity.partition_key, &entity.row_key);
            self.text_field("odata.type", &format!("{}.{table}", origin.account));
            self.text_field("odata.id", &format!("{}/{address}", origin.base));
            self.text_field("odata.etag", &entity.etag());
            self.text_field("odata.editLink", &address);
        } else if level == Level::Minimal {
            self.text_field("odata.etag", &entity.etag());
        }
        match select.filter(|select| !select.is_all()) {
            None => {
                self.text_field(PARTITION_KEY, &entity.partition_key);
                self.text_field(ROW_KEY, &entity.row_key);
                self.property(TIMESTAMP, &Edm::DateTime(entity.timestamp()), level);
                for (name, value) in &entity.properties {
                    self.property(name, value, level);
                }
            }
            Some(select) => self.selected(entity, select, level),
        }
        self.raw("}");
    }

    /// The properties that are named: in their order, each once, null where the entity lacks it.
    fn selected(&mut self, entity: &Entity, select: Selected<'_>, level: Level) {
        for (index, name) in select.names().enumerate() {
            if select.names().take(index).any(|before| before == name) {
                continue;
            }
            match name {
                PARTITION_KEY => self.text_field(name, &entity.partition_key),
                ROW_KEY => self.text_field(name, &entity.row_key),
                TIMESTAMP => self.property(name, &Edm::DateTime(entity.timestamp()), level),
                _ => match entity.property(name) {
                    Some(value) => self.property(name, value, level),
                    None => {
                        self.field(name);
                        self.raw("null");
                    }
                },
            }
        }
    }

    /// A property, with its annotation before it where the value does not show the type.
    fn property(&mut self, name: &str, value: &Edm, level: Level) {
        let needs_type = match value {
            Edm::String(_) | Edm::Boolean(_) | Edm::Int32(_) => false,
            Edm::Double(value) => !value.is_finite(),
            // Everyone knows the type of the Timestamp: only full metadata says it.
            Edm::DateTime(_) => name != TIMESTAMP || level == Level::Full,
            Edm::Int64(_) | Edm::Guid(_) | Edm::Binary(_) => true,
        };
        if needs_type && level != Level::None {
            self.text_field(&format!("{name}{TYPE_ANNOTATION}"), value.ty().name());
        }
        self.field(name);
        match value {
            Edm::String(text) => self.text(text),
            Edm::Boolean(value) => self.raw(if *value { "true" } else { "false" }),
            Edm::Int32(value) => write!(self.bytes, "{value}").expect("a vector takes every byte"),
            Edm::Double(value) if value.is_finite() => self.raw(&double_text(*value)),
            other => self.text(&other.text()),
        }
    }
}

/// What the address of the metadata says of `$select`: spaces encoded.
fn selected_text(select: Option<Selected<'_>>) -> String {
    select.map_or_else(String::new, |select| {
        format!("&$select={}", select.text.replace(' ', "%20"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORIGIN: Origin<'static> = Origin {
        base: "http://127.0.0.1:10002/acc",
        account: "acc",
    };

    fn sample() -> Entity {
        let mut entity = Entity::new("p".to_owned(), "r'1".to_owned());
        entity.version_micros = 1_595_601_272_250_646;
        let mut add =
            |name: &str, ty: EdmType, text: &str| entity.properties.push((name.to_owned(), ty.parse(text).unwrap()));
        add("age", EdmType::Int64, "39");
        add("b", EdmType::Binary, "YmluYXJ5");
        add("even", EdmType::Double, "3");
        add("nan", EdmType::Double, "NaN");
        add("s", EdmType::String, "a\"b\n");
        entity
    }

    #[test]
    fn entity_has_the_forms_of_the_service() {
        let body = |select: Option<&'static str>, level| {
            let select = select.map(|text| Selected { text });
            String::from_utf8(Body::entity(ORIGIN, "T", &sample(), select, level)).unwrap()
        };
        let etag = r#""odata.etag":"W/\"datetime'2020-07-24T14%3A34%3A32.250646Z'\"""#;
        let plain = r#""PartitionKey":"p","RowKey":"r'1","Timestamp":"2020-07-24T14:34:32.250646Z","#;
        assert_eq!(
            body(None, Level::Minimal),
            format!(
                r#"{{"odata.metadata":"http://127.0.0.1:10002/acc/$metadata#T/@Element",{etag},{plain}"age@odata.type":"Edm.Int64","age":"39","b@odata.type":"Edm.Binary","b":"YmluYXJ5","even":3.0,"nan@odata.type":"Edm.Double","nan":"NaN","s":"a\"b\n"}}"#
            )
        );
        assert_eq!(
            body(None, Level::None),
            format!(r#"{{{plain}"age":"39","b":"YmluYXJ5","even":3.0,"nan":"NaN","s":"a\"b\n"}}"#)
        );
        let full = body(None, Level::Full);
        let begins = format!(
            r#"{{"odata.metadata":"http://127.0.0.1:10002/acc/$metadata#T/@Element","odata.type":"acc.T","odata.id":"http://127.0.0.1:10002/acc/T(PartitionKey='p',RowKey='r''1')",{etag},"odata.editLink":"T(PartitionKey='p',RowKey='r''1')","PartitionKey":"p","RowKey":"r'1","Timestamp@odata.type":"Edm.DateTime","Timestamp":"#
        );
        assert!(full.starts_with(&begins), "{full}");
        assert_eq!(
            body(Some("even, zz,even"), Level::Minimal),
            format!(
                r#"{{"odata.metadata":"http://127.0.0.1:10002/acc/$metadata#T/@Element&$select=even,%20zz,even",{etag},"even":3.0,"zz":null}}"#
            )
        );
        let list = String::from_utf8(Body::entities(
            ORIGIN,
            "T",
            &[],
            Some(Selected { text: "" }),
            Level::Minimal,
        ))
        .unwrap();
        assert_eq!(
            list,
            r#"{"odata.metadata":"http://127.0.0.1:10002/acc/$metadata#T&$select=","value":[]}"#
        );
    }

    #[test]
    fn tables_have_the_forms_of_the_service() {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert_eq!(
            text(Body::table(ORIGIN, "x", Level::Minimal)),
            r#"{"odata.metadata":"http://127.0.0.1:10002/acc/$metadata#Tables/@Element","TableName":"x"}"#
        );
        assert_eq!(
            text(Body::tables(ORIGIN, &["x".to_owned(), "y".to_owned()], Level::None)),
            r#"{"value":[{"TableName":"x"},{"TableName":"y"}]}"#
        );
        assert_eq!(
            text(Body::tables(ORIGIN, &["x".to_owned()], Level::Full)),
            r#"{"odata.metadata":"http://127.0.0.1:10002/acc/$metadata#Tables","value":[{"odata.type":"acc.Tables","odata.id":"http://127.0.0.1:10002/acc/Tables('x')","odata.editLink":"Tables('x')","TableName":"x"}]}"#
        );
    }

    #[test]
    fn values_are_read_by_annotation_or_form() {
        for (text, ty, value) in [
            ("5", None, Ok(Edm::Int32(5))),
            ("3.0", None, Ok(Edm::Double(3.0))),
            ("1e2", None, Ok(Edm::Double(100.0))),
            ("2147483648", None, Err(Fault::InvalidInput)),
            ("99999999999999999999999", None, Err(Fault::InvalidInput)),
            ("true", None, Ok(Edm::Boolean(true))),
            ("\"x\\u0041\"", None, Ok(Edm::String("xA".to_owned()))),
            ("\"123\"", Some("Edm.Int32"), Ok(Edm::Int32(123))),
            ("\"123\"", Some("Edm.Int64"), Ok(Edm::Int64(123))),
            ("123", Some("Edm.Int64"), Ok(Edm::Int64(123))),
            ("\"2.5\"", Some("Edm.Double"), Ok(Edm::Double(2.5))),
            ("3", Some("Edm.Double"), Ok(Edm::Double(3.0))),
            ("\"-Infinity\"", Some("Edm.Double"), Ok(Edm::Double(f64::NEG_INFINITY))),
            ("\"False\"", Some("Edm.Boolean"), Ok(Edm::Boolean(false))),
            ("\"YQ==\"", Some("Edm.Binary"), Ok(Edm::Binary("a".into()))),
            ("\"?\"", Some("Edm.Binary"), Err(Fault::InvalidInput)),
            ("\"x\"", Some("Edm.Guid"), Err(Fault::InvalidInput)),
            (
                "\"1600-01-01T00:00:00Z\"",
                Some("Edm.DateTime"),
                Err(Fault::InvalidInput),
            ),
            ("5", Some("Edm.String"), Err(Fault::InvalidInput)),
            ("5", Some("Edm.Decimal"), Err(Fault::InvalidInput)),
            ("[1]", None, Err(Fault::InvalidInput)),
            ("{}", None, Err(Fault::InvalidInput)),
        ] {
            let annotation = ty.map_or_else(String::new, |ty| format!(r#","a@odata.type":"{ty}""#));
            let body = format!(r#"{{"PartitionKey":"p","a":{text}{annotation}}}"#);
            let read = entity(body.as_bytes()).map(|sent| sent.properties[0].1.clone());
            assert_eq!(read, value, "{body}");
        }
    }

    #[test]
    fn bodies_are_read_as_clients_send_them() {
        let body = br#"{"odata.etag":"x","PartitionKey@odata.type":"Edm.String","PartitionKey":"p","RowKey":"","Timestamp":"y","n":null,"a@odata.type":"Edm.String","a@odata.type@odata.type":"Edm.String","a":"1"}"#;
        let sent = entity(body).unwrap();
        assert_eq!(
            (sent.partition_key.as_deref(), sent.row_key.as_deref()),
            (Some("p"), Some(""))
        );
        assert_eq!(sent.properties, [("a".to_owned(), Edm::String("1".to_owned()))]);
        assert_eq!(entity(br#"{"a":1,"a":2}"#), Err(Fault::DuplicatePropertiesSpecified));
        assert_eq!(
            entity(br#"{"RowKey":"1","RowKey":"2"}"#),
            Err(Fault::DuplicatePropertiesSpecified)
        );
        for body in ["", "[]", "{", "{} x", "{\"a\":}", "\u{0}"] {
            assert_eq!(entity(body.as_bytes()), Err(Fault::InvalidInput), "{body}");
        }
        assert_eq!(table_name(br#"{"TableName":"x"}"#), Ok("x".to_owned()));
        assert_eq!(table_name(b"{}"), Err(Fault::PropertiesNeedValue));
    }

    fn value() -> impl Strategy<Value = Edm> {
        prop_oneof![
            "\\PC{0,10}".prop_map(Edm::String),
            any::<i32>().prop_map(Edm::Int32),
            any::<i64>().prop_map(Edm::Int64),
            any::<f64>()
                .prop_filter("NaN equals nothing", |value| !value.is_nan())
                .prop_map(Edm::Double),
            any::<bool>().prop_map(Edm::Boolean),
            any::<u128>().prop_map(|bits| Edm::Guid(uuid::Uuid::from_u128(bits))),
            prop::collection::vec(any::<u8>(), 0..10).prop_map(|bytes| Edm::Binary(bytes.into())),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn entity_is_read_as_it_was_written(properties in prop::collection::btree_map("[a-z_]{1,5}", value(), 0..6), partition_key in "\\PC{0,5}") {
            let mut written = Entity::new(partition_key, "r".to_owned());
            written.properties = properties.into_iter().collect();
            for level in [Level::Minimal, Level::Full] {
                let sent = entity(&Body::entity(ORIGIN, "T", &written, None, level)).unwrap();
                prop_assert_eq!(sent.partition_key.as_ref(), Some(&written.partition_key));
                prop_assert_eq!(&sent.properties, &written.properties);
            }
        }

        #[test]
        fn any_body_is_checked(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = entity(&body);
        }
    }
}
