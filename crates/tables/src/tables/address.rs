//! Addresses of requests: percent-encoding, the account, the resource, parameters of the query.

use super::entity::{PARTITION_KEY, ROW_KEY, check_table_name};
use super::fault::Fault;

/// The resource that a path names, below the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// `/`
    Service,
    /// `/Tables`
    Tables,
    /// `/Tables('name')`
    Table(String),
    /// `/name` or `/name()`
    Entities(String),
    /// `/name(PartitionKey='p',RowKey='r')`
    Entity {
        /// The table.
        table: String,
        /// The partition key.
        partition_key: String,
        /// The row key.
        row_key: String,
    },
    /// `/$batch`
    Batch,
}

impl Resource {
    /// Reads a path as it was sent, without its account.
    ///
    /// # Errors
    /// It names nothing that the service has.
    pub fn parse(path: &str) -> Result<Self, Fault> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if !rest.is_empty() {
            let is_batch = rest.eq_ignore_ascii_case("$batch") || rest.eq_ignore_ascii_case("%24batch");
            return Err(if is_batch {
                Fault::MediaTypeNotSupported
            } else {
                Fault::KeyCountMismatch
            });
        }
        let name = percent_decoded(first).ok_or(Fault::InvalidUri)?;
        match name.as_str() {
            "" => return Ok(Self::Service),
            "$batch" => return Ok(Self::Batch),
            "$metadata" => return Err(Fault::NotImplemented),
            _ => {}
        }
        let Some((name, keys)) = name.split_once('(') else {
            return Self::collection(&name);
        };
        let keys = keys.strip_suffix(')').ok_or(Fault::InvalidUri)?.trim();
        if keys.is_empty() {
            return Self::collection(name);
        }
        if name.eq_ignore_ascii_case("tables") {
            let (table, rest) = quoted(keys).ok_or(Fault::InvalidUri)?;
            if !rest.is_empty() {
                return Err(Fault::KeyCountMismatch);
            }
            return Ok(Self::Table(table));
        }
        check_table_name(name)?;
        let (partition_key, row_key) = keys_of(keys)?;
        Ok(Self::Entity {
            table: name.to_owned(),
            partition_key,
            row_key,
        })
    }

    fn collection(name: &str) -> Result<Self, Fault> {
        if name.eq_ignore_ascii_case("tables") {
            return Ok(Self::Tables);
        }
        check_table_name(name)?;
        Ok(Self::Entities(name.to_owned()))
    }
}

/// The two keys of an entity's address, in either order.
fn keys_of(text: &str) -> Result<(String, String), Fault> {
    let (mut partition_key, mut row_key, mut rest) = (None, None, text);
    loop {
        let (name, value) = rest.split_once('=').ok_or(Fault::KeyCountMismatch)?;
        let (value, after) = quoted(value.trim_start()).ok_or(Fault::InvalidUri)?;
        let place = match name.trim() {
            PARTITION_KEY => &mut partition_key,
            ROW_KEY => &mut row_key,
            _ => return Err(Fault::InvalidUri),
        };
        if place.replace(value).is_some() {
            return Err(Fault::InvalidUri);
        }
        let after = after.trim_start();
        if after.is_empty() {
            return partition_key.zip(row_key).ok_or(Fault::KeyCountMismatch);
        }
        rest = after.strip_prefix(',').ok_or(Fault::InvalidUri)?;
    }
}

/// A text in single quotes, where two of them stand for one, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut found = String::new();
    loop {
        let (inside, after) = rest.split_once('\'')?;
        found.push_str(inside);
        match after.strip_prefix('\'') {
            Some(after) => {
                found.push('\'');
                rest = after;
            }
            None => return Some((found, after)),
        }
    }
}

/// Decodes `%27` and its like; `None` means that the bytes are no text. A `%` without two digits stays, since old clients send it raw.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let digit = |byte: &u8| {
            char::from(*byte)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        match after {
            [high, low, after @ ..] if *first == b'%' => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high * 16 + low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Encodes for an address what may not stand in one; quotes and commas stay.
#[must_use]
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(byte.into()),
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {
                encoded.push(byte.into());
            }
            b':' | b'@' => encoded.push(byte.into()),
            _ => {
                let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase();
                encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    encoded
}

/// The address of an entity below its account: `T(PartitionKey='p',RowKey='r')`.
#[must_use]
pub fn of_entity(table: &str, partition_key: &str, row_key: &str) -> String {
    let key = |key: &str| percent_encoded(&key.replace('\'', "''"));
    format!(
        "{table}(PartitionKey='{}',RowKey='{}')",
        key(partition_key),
        key(row_key)
    )
}

/// Parameters of a query, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads what stands behind `?`.
    ///
    /// # Errors
    /// A part of it is no text.
    pub fn parse(query: &str) -> Result<Self, Fault> {
        let parts = query.split('&').filter(|part| !part.is_empty());
        let decoded = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = percent_decoded(name)?;
            // A base64 text has no spaces, but pluses that careless clients leave raw.
            let is_base64 = matches!(
                name.as_str(),
                "sig" | "NextPartitionKey" | "NextRowKey" | "NextTableName"
            );
            let value = if is_base64 {
                percent_decoded(value)
            } else {
                percent_decoded(&value.replace('+', " "))
            };
            Some((name, value?))
        });
        let decoded: Option<_> = decoded.collect();
        decoded.map(Self).ok_or(Fault::InvalidQueryParameterValue)
    }

    /// The value of a parameter, in whatever case its name was sent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, unless it is missing or empty.
    #[must_use]
    pub fn some(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// The names, as sent.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Whose tables a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The account, without `-secondary`.
    pub account: String,
    /// Whether the secondary address was used.
    pub is_secondary: bool,
    /// The path below the account, as sent.
    pub path: String,
    /// What addresses in answers begin with, below scheme and host: empty, or `/account`.
    pub prefix: String,
}

impl Target {
    /// Finds the account of a request: by the first label of the host if that is an account, else by the first segment of the path.
    ///
    /// # Errors
    /// The address names no account.
    pub fn of(host: &str, path: &str, is_account: impl Fn(&str) -> bool) -> Result<Self, Fault> {
        let label = host.split(['.', ':']).next().unwrap_or_default().to_ascii_lowercase();
        let (account, is_secondary) = without_secondary(&label);
        if is_account(account) && host.contains('.') {
            return Ok(Self {
                account: account.to_owned(),
                is_secondary,
                path: path.to_owned(),
                prefix: String::new(),
            });
        }
        let below = path.strip_prefix('/').unwrap_or(path);
        let end = below.find('/').unwrap_or(below.len());
        let (segment, rest) = below.split_at(end);
        let (account, is_secondary) = without_secondary(segment);
        if account.is_empty() {
            return Err(Fault::InvalidUri);
        }
        Ok(Self {
            account: account.to_owned(),
            is_secondary,
            path: if rest.is_empty() {
                "/".to_owned()
            } else {
                rest.to_owned()
            },
            prefix: format!("/{segment}"),
        })
    }
}

fn without_secondary(name: &str) -> (&str, bool) {
    match name.strip_suffix("-secondary") {
        Some(name) => (name, true),
        None => (name, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> Result<Resource, Fault> {
        Ok(Resource::Entity {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
        })
    }

    #[test]
    fn paths_name_resources() {
        let named = |name: &str| name.to_owned();
        for (path, resource) in [
            ("/", Ok(Resource::Service)),
            ("/Tables", Ok(Resource::Tables)),
            ("/Tables()", Ok(Resource::Tables)),
            ("/Tables%28%29", Ok(Resource::Tables)),
            ("/Tables('abc')", Ok(Resource::Table(named("abc")))),
            ("/Tables(%27abc%27)", Ok(Resource::Table(named("abc")))),
            ("/abc", Ok(Resource::Entities(named("abc")))),
            ("/abc()", Ok(Resource::Entities(named("abc")))),
            ("/abc(PartitionKey='p',RowKey='r%27%271')", entity("abc", "p", "r'1")),
            ("/abc(RowKey='r',PartitionKey='')", entity("abc", "", "r")),
            (
                "/abc(PartitionKey='a+b%20c',RowKey=',RowKey=')",
                entity("abc", "a+b c", ",RowKey="),
            ),
            (
                "/abc%28PartitionKey%3D%27p%27%2CRowKey%3D%27r%27%29",
                entity("abc", "p", "r"),
            ),
            ("/$batch", Ok(Resource::Batch)),
            ("/%24batch", Ok(Resource::Batch)),
            ("/abc/$batch", Err(Fault::MediaTypeNotSupported)),
            ("/$metadata", Err(Fault::NotImplemented)),
            ("/abc/Tables('x')", Err(Fault::KeyCountMismatch)),
            ("/abc('x')", Err(Fault::KeyCountMismatch)),
            ("/abc(PartitionKey='p')", Err(Fault::KeyCountMismatch)),
            ("/abc(PartitionKey='p',RowKey='r'", Err(Fault::InvalidUri)),
            ("/abc(PartitionKey='p',RowKey='r'1')", Err(Fault::InvalidUri)),
            ("/a-b", Err(Fault::InvalidResourceName)),
            ("/ab", Err(Fault::NameLengthOutOfRange)),
        ] {
            assert_eq!(Resource::parse(path), resource, "{path}");
        }
    }

    #[test]
    fn account_is_found_in_host_or_path() {
        let target = |host: &str, path: &str| {
            let target = Target::of(host, path, |name| name == "acc").unwrap();
            (target.account, target.is_secondary, target.path, target.prefix)
        };
        let of = |account: &str, secondary, path: &str, prefix: &str| {
            (account.to_owned(), secondary, path.to_owned(), prefix.to_owned())
        };
        assert_eq!(
            target("acc.table.core.windows.net", "/Tables"),
            of("acc", false, "/Tables", "")
        );
        assert_eq!(target("acc-secondary.table.local:10002", "/"), of("acc", true, "/", ""));
        assert_eq!(
            target("127.0.0.1:10002", "/acc/Tables"),
            of("acc", false, "/Tables", "/acc")
        );
        assert_eq!(
            target("localhost:10002", "/acc-secondary"),
            of("acc", true, "/", "/acc-secondary")
        );
        assert_eq!(target("acc:10002", "/other/x"), of("other", false, "/x", "/other"));
        assert_eq!(Target::of("127.0.0.1", "/", |_| false), Err(Fault::InvalidUri));
    }

    #[test]
    fn parameters_are_decoded() {
        let parameters = Parameters::parse("$filter=a%20eq+'b%2Bc'&$top=&sig=a+b%2B=&%24select=x").unwrap();
        assert_eq!(parameters.get("$filter"), Some("a eq 'b+c'"));
        assert_eq!((parameters.get("$top"), parameters.some("$top")), (Some(""), None));
        assert_eq!(parameters.get("sig"), Some("a+b+="));
        assert_eq!(parameters.get("$SELECT"), Some("x"));
        assert!(Parameters::parse("a=%ff").is_err());
        assert_eq!(Parameters::parse("a=100%").unwrap().get("a"), Some("100%"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn address_of_an_entity_is_read_back(partition_key in "\\PC{0,8}|['%/ ]{0,4}", row_key in "\\PC{0,8}") {
            let path = format!("/{}", of_entity("abc", &partition_key, &row_key));
            prop_assert!(path.is_ascii());
            prop_assert_eq!(Resource::parse(&path), entity("abc", &partition_key, &row_key));
        }

        #[test]
        fn any_path_is_checked(path in "\\PC{0,40}|[a-z(),='%/]{0,40}") {
            let _ = Resource::parse(&path);
            let _ = Parameters::parse(&path);
        }
    }
}
