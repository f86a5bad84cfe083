//! What a request asks for: method, resource, parameters and headers to a typed call. Pure.

use http::{HeaderMap, Method, header};

use super::address::{Parameters, Resource};
use super::auth::{Keys, Need};
use super::entity::{self, Entity};
use super::fault::Fault;
use super::filter::Filter;
use super::json::{self, Level};
use super::operation::{Match, Operation, PAGE_ENTITIES_MAX, Place, Verb};
use super::token;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Names of tables.
    ListTables {
        /// Which; `None` means all.
        filter: Option<Filter>,
        /// How many of a page; `None` means 1,000.
        top: Option<u32>,
        /// Where the page begins; `None` means at the first.
        from: Option<String>,
    },
    /// Whether a table is there.
    GetTable(String),
    /// A new table; the body names it.
    CreateTable,
    /// No table of the name.
    DeleteTable(String),
    /// A page of entities.
    Query {
        /// The table.
        table: String,
        /// Which; `None` means all.
        filter: Option<Filter>,
        /// How many of a page; `None` means 1,000.
        top: Option<u32>,
        /// Where the page begins; `None` means at the first.
        from: Option<Place>,
    },
    /// One entity.
    Get {
        /// The table.
        table: String,
        /// Its partition key.
        partition_key: String,
        /// Its row key.
        row_key: String,
    },
    /// A new entity; the body is it.
    Insert {
        /// The table.
        table: String,
    },
    /// Another change of one entity; its body has properties, unless it is removed.
    Change {
        /// The table.
        table: String,
        /// Its partition key.
        partition_key: String,
        /// Its row key.
        row_key: String,
        /// What is done.
        verb: Verb,
        /// What it must be.
        condition: Match,
    },
    /// A group transaction.
    Batch,
    /// The properties of the service.
    GetProperties,
    /// New properties of the service.
    SetProperties,
    /// The stats of the service.
    Stats,
    /// The access policies of a table.
    GetAcl(String),
    /// New access policies of a table.
    SetAcl(String),
}

/// Parameters that the service does not have.
const NOT_IMPLEMENTED: [&str; 7] = [
    "$orderby",
    "$skip",
    "$skiptoken",
    "$count",
    "$inlinecount",
    "$expand",
    "$apply",
];

/// The method of a request, which `X-HTTP-Method` of a POST may change.
///
/// # Errors
/// The header comes twice, with another method than POST, or with a word that is none.
pub fn method(method: &Method, headers: &HeaderMap) -> Result<Method, Fault> {
    let mut tunnelled = headers.get_all("x-http-method").iter();
    let Some(value) = tunnelled.next() else {
        return Ok(method.clone());
    };
    if tunnelled.next().is_some() {
        return Err(Fault::MethodIncorrectCount);
    }
    if method != Method::POST {
        return Err(Fault::MethodNotUsingPost);
    }
    match value.to_str().unwrap_or_default() {
        "MERGE" | "PATCH" => Ok(Method::PATCH),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        "GET" => Ok(Method::GET),
        _ => Err(Fault::MethodIncorrectValue),
    }
}

/// Whether a method changes the properties that are named. `MERGE` is the older name of `PATCH`.
fn is_merge(method: &Method) -> bool {
    method == Method::PATCH || method.as_str() == "MERGE"
}

impl Call {
    /// Finds what a request asks for.
    ///
    /// # Errors
    /// The resource does not have the method, or a parameter or header is wrong.
    pub fn of(
        method: &Method,
        resource: Resource,
        parameters: &Parameters,
        headers: &HeaderMap,
    ) -> Result<Self, Fault> {
        let is_unknown = |name: &str| NOT_IMPLEMENTED.iter().any(|known| known.eq_ignore_ascii_case(name));
        if parameters.names().any(is_unknown) {
            return Err(Fault::NotImplemented);
        }
        match resource {
            Resource::Service => Self::of_service(method, parameters),
            Resource::Tables if method == Method::GET => Ok(Self::ListTables {
                filter: filter(parameters)?,
                top: top(parameters)?,
                from: parameters.some("NextTableName").map(token::text).transpose()?,
            }),
            Resource::Tables if method == Method::POST => Ok(Self::CreateTable),
            Resource::Table(name) if method == Method::GET => Ok(Self::GetTable(name)),
            Resource::Table(name) if method == Method::DELETE => Ok(Self::DeleteTable(name)),
            Resource::Entities(table) if parameters.get("comp").is_some() => Self::of_acl(method, table, parameters),
            Resource::Entities(table) if method == Method::GET => Ok(Self::Query {
                table,
                filter: filter(parameters)?,
                top: top(parameters)?,
                from: place(parameters)?,
            }),
            Resource::Entities(table) if method == Method::POST => {
                if headers.contains_key(header::IF_MATCH) || headers.contains_key(header::IF_NONE_MATCH) {
                    return Err(Fault::ConditionNotAllowed);
                }
                Ok(Self::Insert { table })
            }
            Resource::Entity {
                table,
                partition_key,
                row_key,
            } => Self::of_entity(method, table, partition_key, row_key, headers),
            Resource::Batch if method == Method::POST => Ok(Self::Batch),
            Resource::Batch => Err(Fault::UnsupportedHttpVerb),
            Resource::Tables | Resource::Table(_) | Resource::Entities(_) => Err(Fault::MethodNotAllowed),
        }
    }

    fn of_service(method: &Method, parameters: &Parameters) -> Result<Self, Fault> {
        let (restype, comp) = (parameters.get("restype"), parameters.get("comp"));
        match (restype, comp) {
            (Some("service"), Some("properties")) if method == Method::GET => Ok(Self::GetProperties),
            (Some("service"), Some("properties")) if method == Method::PUT => Ok(Self::SetProperties),
            (Some("service"), Some("stats")) if method == Method::GET => Ok(Self::Stats),
            (Some("service"), Some("properties" | "stats")) => Err(Fault::UnsupportedHttpVerb),
            (None, None) => Err(Fault::InvalidUri),
            _ => Err(Fault::InvalidQueryParameterValue),
        }
    }

    fn of_acl(method: &Method, table: String, parameters: &Parameters) -> Result<Self, Fault> {
        if parameters.get("comp") != Some("acl") {
            return Err(Fault::InvalidQueryParameterValue);
        }
        match *method {
            Method::GET => Ok(Self::GetAcl(table)),
            Method::PUT => Ok(Self::SetAcl(table)),
            _ => Err(Fault::UnsupportedHttpVerb),
        }
    }

    fn of_entity(
        method: &Method,
        table: String,
        partition_key: String,
        row_key: String,
        headers: &HeaderMap,
    ) -> Result<Self, Fault> {
        if method == Method::GET {
            return Ok(Self::Get {
                table,
                partition_key,
                row_key,
            });
        }
        let (name, update, upsert) = if method == Method::PUT {
            ("PUT", Verb::Update, Some(Verb::InsertOrReplace))
        } else if is_merge(method) {
            ("PUT", Verb::Merge, Some(Verb::InsertOrMerge))
        } else if method == Method::DELETE {
            ("DELETE", Verb::Delete, None)
        } else {
            return Err(Fault::MethodNotAllowed);
        };
        let (verb, condition) = match (condition(headers, name)?, upsert) {
            (Match::None, Some(upsert)) => (upsert, Match::None),
            (Match::None, None) => return Err(Fault::IfMatchMissing),
            (condition, _) => (update, condition),
        };
        Ok(Self::Change {
            table,
            partition_key,
            row_key,
            verb,
            condition,
        })
    }

    /// What it needs to be allowed; `None` means that its parts are judged one by one, or that the keys come with the body.
    #[must_use]
    pub fn need(&self) -> Option<Need<'_>> {
        Some(match self {
            Self::ListTables { .. } | Self::GetTable(_) => Need::ListTables,
            Self::CreateTable => Need::CreateTable,
            Self::DeleteTable(_) => Need::DeleteTable,
            Self::Query { table, .. } | Self::Get { table, .. } => Need::Query(table),
            Self::GetProperties | Self::Stats => Need::ReadService,
            Self::SetProperties => Need::WriteService,
            Self::GetAcl(_) | Self::SetAcl(_) => Need::Acl,
            Self::Insert { .. } | Self::Change { .. } | Self::Batch => return None,
        })
    }

    /// Whether it changes something, which the secondary address refuses.
    #[must_use]
    pub const fn is_write(&self) -> bool {
        match self {
            Self::CreateTable
            | Self::DeleteTable(_)
            | Self::Insert { .. }
            | Self::Change { .. }
            | Self::SetProperties
            | Self::SetAcl(_) => true,
            // A batch may be a read; its parts are judged.
            Self::Batch => false,
            Self::ListTables { .. }
            | Self::GetTable(_)
            | Self::Query { .. }
            | Self::Get { .. }
            | Self::GetProperties
            | Self::Stats
            | Self::GetAcl(_) => false,
        }
    }

    /// Whether its bodies are XML.
    #[must_use]
    pub const fn is_xml(&self) -> bool {
        matches!(
            self,
            Self::GetProperties | Self::SetProperties | Self::Stats | Self::GetAcl(_) | Self::SetAcl(_)
        )
    }
}

/// The change of an entity that a call and its body ask for, and its table. Limits are checked.
///
/// # Errors
/// The body is no entity, or breaks a limit. The call changes no entity: [`Fault::InvalidInput`].
pub fn operation(call: Call, headers: &HeaderMap, body: &[u8]) -> Result<(String, Operation), Fault> {
    match call {
        Call::Insert { table } => {
            check_content_type(headers)?;
            let sent = json::entity(body)?;
            let (Some(partition_key), Some(row_key)) = (sent.partition_key, sent.row_key) else {
                return Err(Fault::PropertiesNeedValue);
            };
            let mut entity = Entity::new(partition_key, row_key);
            entity.properties = sent.properties;
            entity.check()?;
            Ok((
                table,
                Operation {
                    verb: Verb::Insert,
                    entity,
                    condition: Match::None,
                },
            ))
        }
        Call::Change {
            table,
            partition_key,
            row_key,
            verb,
            condition,
        } => {
            let mut entity = Entity::new(partition_key, row_key);
            if verb == Verb::Delete {
                entity::check_key(&entity.partition_key)?;
                entity::check_key(&entity.row_key)?;
            } else {
                check_content_type(headers)?;
                entity.properties = json::entity(body)?.properties;
                entity.check()?;
            }
            Ok((
                table,
                Operation {
                    verb,
                    entity,
                    condition,
                },
            ))
        }
        _ => Err(Fault::InvalidInput),
    }
}

/// What an operation needs to be allowed.
#[must_use]
pub fn need<'a>(table: &'a str, operation: &'a Operation) -> Need<'a> {
    let keys = Keys {
        partition_key: &operation.entity.partition_key,
        row_key: &operation.entity.row_key,
    };
    match operation.verb {
        Verb::Insert => Need::Insert(table, keys),
        Verb::Update | Verb::Merge => Need::Update(table, keys),
        Verb::InsertOrReplace | Verb::InsertOrMerge => Need::Upsert(table, keys),
        Verb::Delete => Need::Delete(table, keys),
    }
}

/// Checks the type of a body that must be JSON. Without a type it is taken for that.
///
/// # Errors
/// It is of another type.
pub fn check_content_type(headers: &HeaderMap) -> Result<(), Fault> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let media = value.to_str().unwrap_or_default();
    if Level::of_media_type(media).is_some() {
        return Ok(());
    }
    Err(if is_atom(media) {
        Fault::AtomFormatNotSupported
    } else {
        Fault::MediaTypeNotSupported
    })
}

fn is_atom(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/atom+xml") || media.eq_ignore_ascii_case("atom")
}

/// How answers are written: as JSON of a level where the client takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The level.
    pub level: Level,
    /// Whether the client names JSON in what it accepts. Otherwise refusals are XML.
    pub is_json_asked: bool,
}

impl Format {
    /// Reads `$format`, else `Accept`.
    ///
    /// # Errors
    /// Atom alone is taken, or another format is asked for.
    pub fn of(parameters: &Parameters, headers: &HeaderMap) -> Result<Self, Fault> {
        if let Some(format) = parameters.some("$format") {
            return match Level::of_media_type(format) {
                Some(level) => Ok(Self {
                    level,
                    is_json_asked: true,
                }),
                None if is_atom(format) => Err(Fault::AtomFormatNotSupported),
                None => Err(Fault::MediaTypeNotSupported),
            };
        }
        let values = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let medias: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        let unasked = Self {
            level: Level::default(),
            is_json_asked: false,
        };
        if let Some(level) = medias.iter().find_map(|media| Level::of_media_type(media)) {
            return Ok(Self {
                level,
                is_json_asked: true,
            });
        }
        let is_any = medias.is_empty()
            || medias
                .iter()
                .any(|media| media.starts_with("*/*") || media.starts_with("application/*"));
        if !is_any && medias.iter().any(|media| is_atom(media)) {
            return Err(Fault::AtomFormatNotSupported);
        }
        Ok(unasked)
    }
}

/// The condition of a change: none without `If-Match`.
fn condition(headers: &HeaderMap, method: &'static str) -> Result<Match, Fault> {
    let has_none_match = headers.contains_key(header::IF_NONE_MATCH);
    let mut values = headers
        .get_all(header::IF_MATCH)
        .iter()
        .map(|value| value.to_str().unwrap_or_default());
    let Some(first) = values.next() else {
        return if has_none_match {
            Err(Fault::NoneMatchNotAllowed { method })
        } else {
            Ok(Match::None)
        };
    };
    if has_none_match {
        return Err(Fault::BothConditions);
    }
    if let Some(second) = values.next() {
        return Err(Fault::EtagInvalid {
            etag: format!("{first},{second}"),
        });
    }
    if first.trim() == "*" {
        return Ok(Match::Any);
    }
    // A tag of another server is a version that no entity has.
    Ok(Match::Tag(entity::parse_etag(first)?.unwrap_or(i64::MIN)))
}

fn filter(parameters: &Parameters) -> Result<Option<Filter>, Fault> {
    let text = parameters.get("$filter").filter(|text| !text.trim().is_empty());
    text.map(Filter::parse).transpose()
}

fn top(parameters: &Parameters) -> Result<Option<u32>, Fault> {
    let Some(text) = parameters.some("$top") else {
        return Ok(None);
    };
    match text.trim().parse::<u32>() {
        Ok(top) if top <= PAGE_ENTITIES_MAX => Ok(Some(top)),
        _ => Err(Fault::InputNotValid),
    }
}

fn place(parameters: &Parameters) -> Result<Option<Place>, Fault> {
    let row_key = parameters.some("NextRowKey").map(token::text).transpose()?;
    match parameters.some("NextPartitionKey").map(token::text).transpose()? {
        Some(partition_key) => Ok(Some(Place { partition_key, row_key })),
        None if row_key.is_some() => Err(Fault::InvalidInput),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn call(verb: &str, path: &str, pairs: &[(&'static str, &'static str)]) -> Result<Call, Fault> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let headers = headers(pairs);
        let method = method(&verb.parse().unwrap(), &headers)?;
        Call::of(&method, Resource::parse(path)?, &Parameters::parse(query)?, &headers)
    }

    fn change(verb: Verb, condition: Match) -> Result<Call, Fault> {
        Ok(Call::Change {
            table: "abc".to_owned(),
            partition_key: "p".to_owned(),
            row_key: "r".to_owned(),
            verb,
            condition,
        })
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn methods_and_conditions_choose_the_change() {
        const PATH: &str = "/abc(PartitionKey='p',RowKey='r')";
        let tag = ("if-match", "W/\"datetime'2020-07-24T14%3A34%3A48.4767Z'\"");
        let version = Match::Tag(1_595_601_288_476_700);
        for (method, pairs, expected) in [
            ("PUT", vec![], change(Verb::InsertOrReplace, Match::None)),
            ("PATCH", vec![], change(Verb::InsertOrMerge, Match::None)),
            ("MERGE", vec![], change(Verb::InsertOrMerge, Match::None)),
            ("PUT", vec![("if-match", "*")], change(Verb::Update, Match::Any)),
            ("MERGE", vec![tag], change(Verb::Merge, version)),
            (
                "PUT",
                vec![("if-match", "W/\"datetime'2020-07-24T14:34:48.4767Z'\"")],
                change(Verb::Update, version),
            ),
            (
                "PUT",
                vec![("if-match", "\"other\"")],
                change(Verb::Update, Match::Tag(i64::MIN)),
            ),
            ("DELETE", vec![tag], change(Verb::Delete, version)),
            ("DELETE", vec![], Err(Fault::IfMatchMissing)),
            (
                "POST",
                vec![("x-http-method", "MERGE")],
                change(Verb::InsertOrMerge, Match::None),
            ),
            (
                "POST",
                vec![("x-http-method", "PUT"), ("if-match", "*")],
                change(Verb::Update, Match::Any),
            ),
            ("POST", vec![], Err(Fault::MethodNotAllowed)),
            ("PUT", vec![("x-http-method", "MERGE")], Err(Fault::MethodNotUsingPost)),
            (
                "POST",
                vec![("x-http-method", "MOVE")],
                Err(Fault::MethodIncorrectValue),
            ),
            (
                "POST",
                vec![("x-http-method", "PUT"), ("x-http-method", "PUT")],
                Err(Fault::MethodIncorrectCount),
            ),
            (
                "PUT",
                vec![("if-none-match", "*")],
                Err(Fault::NoneMatchNotAllowed { method: "PUT" }),
            ),
            (
                "DELETE",
                vec![("if-none-match", "*")],
                Err(Fault::NoneMatchNotAllowed { method: "DELETE" }),
            ),
            (
                "PUT",
                vec![("if-none-match", "*"), ("if-match", "*")],
                Err(Fault::BothConditions),
            ),
            (
                "PUT",
                vec![("if-match", "x")],
                Err(Fault::EtagInvalid { etag: "x".to_owned() }),
            ),
            (
                "PUT",
                vec![("if-match", "\"a\", \"b\"")],
                Err(Fault::EtagInvalid {
                    etag: "\"a\", \"b\"".to_owned(),
                }),
            ),
        ] {
            assert_eq!(call(method, PATH, &pairs), expected, "{method} {pairs:?}");
        }
    }

    #[test]
    fn resources_have_their_methods() {
        let table = || "abc".to_owned();
        let query = |top, from| {
            Ok(Call::Query {
                table: table(),
                filter: None,
                top,
                from,
            })
        };
        let place = Place {
            partition_key: "pk801016e8".to_owned(),
            row_key: None,
        };
        for (method, path, expected) in [
            ("POST", "/Tables", Ok(Call::CreateTable)),
            ("GET", "/Tables('abc')", Ok(Call::GetTable(table()))),
            ("DELETE", "/Tables('abc')", Ok(Call::DeleteTable(table()))),
            ("PUT", "/Tables('abc')", Err(Fault::MethodNotAllowed)),
            ("DELETE", "/Tables", Err(Fault::MethodNotAllowed)),
            ("GET", "/abc()?$top=5&$filter=", query(Some(5), None)),
            (
                "GET",
                "/abc?NextPartitionKey=1!16!cGs4MDEwMTZlOA--",
                query(None, Some(place)),
            ),
            ("GET", "/abc?NextPartitionKey=x", Err(Fault::InvalidInput)),
            ("GET", "/abc?NextRowKey=1!16!cGs4MDEwMTZlOA--", Err(Fault::InvalidInput)),
            ("GET", "/abc?$top=1001", Err(Fault::InputNotValid)),
            ("GET", "/abc?$top=-1", Err(Fault::InputNotValid)),
            ("GET", "/abc?$orderby=a", Err(Fault::NotImplemented)),
            ("GET", "/abc?$skip=1", Err(Fault::NotImplemented)),
            ("POST", "/abc", Ok(Call::Insert { table: table() })),
            ("PUT", "/abc", Err(Fault::MethodNotAllowed)),
            ("GET", "/abc?comp=acl", Ok(Call::GetAcl(table()))),
            ("PUT", "/abc?comp=acl", Ok(Call::SetAcl(table()))),
            ("GET", "/abc?comp=other", Err(Fault::InvalidQueryParameterValue)),
            ("POST", "/$batch", Ok(Call::Batch)),
            ("GET", "/$batch", Err(Fault::UnsupportedHttpVerb)),
            ("GET", "/?restype=service&comp=properties", Ok(Call::GetProperties)),
            ("PUT", "/?restype=service&comp=properties", Ok(Call::SetProperties)),
            ("GET", "/?restype=service&comp=stats", Ok(Call::Stats)),
            ("PUT", "/?restype=service&comp=stats", Err(Fault::UnsupportedHttpVerb)),
            ("GET", "/?comp=list", Err(Fault::InvalidQueryParameterValue)),
            ("GET", "/", Err(Fault::InvalidUri)),
        ] {
            assert_eq!(call(method, path, &[]), expected, "{method} {path}");
        }
        assert_eq!(
            call("POST", "/abc", &[("if-match", "*")]),
            Err(Fault::ConditionNotAllowed)
        );
    }

    #[test]
    fn formats_are_chosen() {
        let format = |query: &str, accept: &'static str| {
            let headers = if accept.is_empty() {
                HeaderMap::new()
            } else {
                headers(&[("accept", accept)])
            };
            Format::of(&Parameters::parse(query).unwrap(), &headers).map(|format| (format.level, format.is_json_asked))
        };
        for (query, accept, expected) in [
            ("", "application/json", Ok((Level::Minimal, true))),
            ("", "application/json;odata=nometadata", Ok((Level::None, true))),
            ("", "application/json; odata=fullmetadata", Ok((Level::Full, true))),
            (
                "",
                "application/atom+xml, application/json;odata=nometadata",
                Ok((Level::None, true)),
            ),
            ("", "*/*", Ok((Level::Minimal, false))),
            ("", "", Ok((Level::Minimal, false))),
            ("", "application/xml", Ok((Level::Minimal, false))),
            ("", "application/atom+xml", Err(Fault::AtomFormatNotSupported)),
            (
                "$format=application/json;odata=fullmetadata",
                "application/json;odata=nometadata",
                Ok((Level::Full, true)),
            ),
            ("$format=atom", "", Err(Fault::AtomFormatNotSupported)),
            ("$format=csv", "", Err(Fault::MediaTypeNotSupported)),
        ] {
            assert_eq!(format(query, accept), expected, "{query} {accept}");
        }
    }

    #[test]
    fn operations_are_read_with_their_limits() {
        let insert = |body: &str, pairs: &[(&'static str, &'static str)]| {
            operation(
                Call::Insert {
                    table: "abc".to_owned(),
                },
                &headers(pairs),
                body.as_bytes(),
            )
        };
        let (table, made) = insert(r#"{"PartitionKey":"p","RowKey":"r","a":1}"#, &[]).unwrap();
        assert_eq!((table.as_str(), made.entity.properties.len()), ("abc", 1));
        let faulty = |body: &str| insert(body, &[]).unwrap_err();
        assert_eq!(faulty(r#"{"PartitionKey":"p"}"#), Fault::PropertiesNeedValue);
        assert_eq!(
            faulty(r#"{"PartitionKey":"p","RowKey":null}"#),
            Fault::PropertiesNeedValue
        );
        assert_eq!(faulty(r#"{"PartitionKey":"p","RowKey":"a/b"}"#), Fault::OutOfRangeInput);
        assert_eq!(
            faulty(r#"{"PartitionKey":"p","RowKey":"r","a-b":1}"#),
            Fault::PropertyNameInvalid
        );
        let keys = r#"{"PartitionKey":"p","RowKey":"r""#;
        let long = "x".repeat(1_025);
        assert_eq!(
            faulty(&format!(r#"{{"PartitionKey":"{long}","RowKey":"r"}}"#)),
            Fault::KeyValueTooLarge
        );
        assert_eq!(
            faulty(&format!(r#"{keys},"{}":1}}"#, "x".repeat(256))),
            Fault::PropertyNameTooLong
        );
        assert_eq!(
            faulty(&format!(r#"{keys},"x":"{}"}}"#, "x".repeat(32_769))),
            Fault::PropertyValueTooLarge
        );
        let many: String = (0..253).map(|index| format!(r#","p{index}":1"#)).collect();
        assert_eq!(faulty(&format!("{keys}{many}}}")), Fault::TooManyProperties);
        let most: String = (0..252).map(|index| format!(r#","p{index}":1"#)).collect();
        assert!(insert(&format!("{keys}{most}}}"), &[]).is_ok());
        let large: String = (0..17)
            .map(|index| format!(r#","p{index}":"{}""#, "x".repeat(32_768)))
            .collect();
        assert_eq!(faulty(&format!("{keys}{large}}}")), Fault::EntityTooLarge);
        let typed = |media| {
            let pairs = [("content-type", media)];
            insert("{}", &pairs).unwrap_err()
        };
        assert_eq!(typed("application/atom+xml"), Fault::AtomFormatNotSupported);
        assert_eq!(typed("text/plain"), Fault::MediaTypeNotSupported);
        assert_eq!(
            typed("application/json;odata=nometadata; charset=utf-8"),
            Fault::PropertiesNeedValue
        );
    }
}
