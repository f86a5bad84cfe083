//! Who may: signatures of requests by an account's key, and shared access signatures.
//!
//! Time is passed in. Signatures are compared in constant time.
//!
//! Sources: Authorize with Shared Key (Table service); Create an account SAS; Create a service SAS.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, header};
use ring::hmac;

use super::address::Parameters;
use super::edm::Ticks;
use super::entity::KeyBounds;
use super::fault::Fault;

/// How far the date of a signed request may be off, in seconds. Source: Authorize with Shared Key.
const DATE_OFF_SECONDS_MAX: i64 = 15 * 60;

/// An account and its keys.
#[derive(Clone)]
pub struct Account {
    /// The name.
    pub name: String,
    keys: Vec<hmac::Key>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the keys.
        formatter
            .debug_struct("Account")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Checks the name of an account: 3 to 24 lower-case letters and digits.
#[must_use]
pub fn is_account_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (3..=24).contains(&name.len()) && name.bytes().all(allowed)
}

impl Account {
    /// An account with one key or two, in base64; with two, either signs, so that they can be rolled. `None` means that a key is not in
    /// base64.
    #[must_use]
    pub fn new(name: String, keys: &[String]) -> Option<Self> {
        let key = |key: &String| Some(hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(key).ok()?));
        let keys = keys.iter().map(key).collect::<Option<_>>()?;
        Some(Self { name, keys })
    }

    /// Whether one of the keys made a signature of a text.
    fn has_signed(&self, text: &str, signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        // Every key is tried, so that the time tells nothing.
        let signed = self
            .keys
            .iter()
            .map(|key| hmac::verify(key, text.as_bytes(), &signature).is_ok());
        signed.fold(false, |any, one| any | one)
    }

    /// The signature of a text by the first key, as clients make it.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        let key = self.keys.first();
        key.map_or_else(String::new, |key| STANDARD.encode(hmac::sign(key, text.as_bytes())))
    }
}

/// A request, as far as its signature counts.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The method as sent.
    pub method: &'a Method,
    /// The path as sent, with the account in it where the request has it there.
    pub path: &'a str,
    /// The parameters.
    pub parameters: &'a Parameters,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The client.
    pub client: IpAddr,
    /// Whether it came by https.
    pub is_tls: bool,
    /// Now, in seconds since 1970.
    pub now_seconds: i64,
}

impl Signed<'_> {
    fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The resource of the signature: account, path, and `comp` alone of the parameters.
    fn resource(&self, account: &str) -> String {
        let comp = self.parameters.get("comp").map(|comp| format!("?comp={comp}"));
        format!("/{account}{}{}", self.path, comp.unwrap_or_default())
    }
}

/// What a request may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// All: it was signed by a key of the account.
    Owner,
    /// What a signature of the account says.
    AccountSas {
        /// `sp`
        permissions: String,
        /// `srt`
        resource_types: String,
    },
    /// What a signature of one table says.
    TableSas(TableSas),
}

/// A shared access signature of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSas {
    /// The table, in lower case.
    pub table: String,
    /// `sp`, or the policy's.
    pub permissions: String,
    /// The keys that it allows.
    pub bounds: KeyBounds,
}

/// A stored access policy, as an ACL has it. Times as texts; `None` means that it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Up to 64 characters.
    pub id: String,
    /// From when.
    pub start: Option<String>,
    /// Until when.
    pub expiry: Option<String>,
    /// Of `raud`.
    pub permission: Option<String>,
}

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// The properties or the stats of the service.
    ReadService,
    /// New properties of the service.
    WriteService,
    /// Names of tables.
    ListTables,
    /// A new table.
    CreateTable,
    /// No table.
    DeleteTable,
    /// The access policies of a table.
    Acl,
    /// Entities of this table.
    Query(&'a str),
    /// Adds an entity.
    Insert(&'a str, Keys<'a>),
    /// Adds or changes an entity.
    Upsert(&'a str, Keys<'a>),
    /// Changes an entity.
    Update(&'a str, Keys<'a>),
    /// Removes an entity.
    Delete(&'a str, Keys<'a>),
}

/// The keys of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// The partition key.
    pub partition_key: &'a str,
    /// The row key.
    pub row_key: &'a str,
}

impl Access {
    /// Whether it allows an operation.
    ///
    /// # Errors
    /// It does not: the type of resource, the permission or the keys.
    pub fn check(&self, need: Need<'_>) -> Result<(), Fault> {
        match self {
            Self::Owner => Ok(()),
            Self::AccountSas {
                permissions,
                resource_types,
            } => {
                let (resource_type, all, any) = match need {
                    Need::ReadService => ('s', "r", ""),
                    Need::WriteService => ('s', "w", ""),
                    Need::ListTables => ('c', "l", ""),
                    Need::CreateTable => ('c', "", "wc"),
                    Need::DeleteTable => ('c', "d", ""),
                    // Access policies need the account's key.
                    Need::Acl => return Err(Fault::AuthorizationFailure),
                    Need::Query(_) => ('o', "r", ""),
                    Need::Insert(..) => ('o', "a", ""),
                    Need::Upsert(..) => ('o', "au", ""),
                    Need::Update(..) => ('o', "u", ""),
                    Need::Delete(..) => ('o', "d", ""),
                };
                if !resource_types.contains(resource_type) {
                    return Err(Fault::AuthorizationResourceTypeMismatch);
                }
                has(permissions, all, any)
            }
            Self::TableSas(sas) => sas.check(need),
        }
    }

    /// The keys that a query may see; `None` means all.
    #[must_use]
    pub fn bounds(&self) -> Option<&KeyBounds> {
        match self {
            Self::TableSas(sas) => Some(&sas.bounds).filter(|bounds| **bounds != KeyBounds::default()),
            Self::Owner | Self::AccountSas { .. } => None,
        }
    }
}

impl TableSas {
    fn check(&self, need: Need<'_>) -> Result<(), Fault> {
        let (table, permissions, keys) = match need {
            Need::ReadService
            | Need::WriteService
            | Need::ListTables
            | Need::CreateTable
            | Need::DeleteTable
            | Need::Acl => {
                return Err(Fault::AuthorizationFailure);
            }
            Need::Query(table) => (table, "r", None),
            Need::Insert(table, keys) => (table, "a", Some(keys)),
            Need::Upsert(table, keys) => (table, "au", Some(keys)),
            Need::Update(table, keys) => (table, "u", Some(keys)),
            Need::Delete(table, keys) => (table, "d", Some(keys)),
        };
        if !table.eq_ignore_ascii_case(&self.table) {
            return Err(Fault::AuthorizationFailure);
        }
        has(&self.permissions, permissions, "")?;
        match keys {
            Some(keys) if !self.bounds.contains(keys.partition_key, keys.row_key) => Err(Fault::AuthorizationFailure),
            _ => Ok(()),
        }
    }
}

/// Whether there are all of some permissions, and one of others unless those are none.
fn has(permissions: &str, all: &str, any: &str) -> Result<(), Fault> {
    let has_all = all.chars().all(|permission| permissions.contains(permission));
    let has_any = any.is_empty() || any.chars().any(|permission| permissions.contains(permission));
    if has_all && has_any {
        Ok(())
    } else {
        Err(Fault::AuthorizationPermissionMismatch)
    }
}

/// How a request shows who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential<'a> {
    /// `SharedKey account:signature`
    SharedKey(&'a str, &'a str),
    /// `SharedKeyLite account:signature`
    SharedKeyLite(&'a str, &'a str),
    /// Parameters of the address, for the account.
    AccountSas,
    /// Parameters of the address, for a table.
    TableSas,
}

impl<'a> Credential<'a> {
    /// Finds it.
    ///
    /// # Errors
    /// There is none, it is of another form, or it is a bearer's token.
    pub fn of(request: &Signed<'a>) -> Result<Self, Fault> {
        let Some(value) = request.headers.get(header::AUTHORIZATION) else {
            return if request.parameters.get("sig").is_none() {
                Err(Fault::InvalidAuthenticationInfo)
            } else if request.parameters.get("tn").is_some() {
                Ok(Self::TableSas)
            } else {
                Ok(Self::AccountSas)
            };
        };
        if request.parameters.get("sig").is_some() {
            return Err(Fault::AuthenticationFailed);
        }
        let value = value.to_str().map_err(|_| Fault::AuthenticationFailed)?;
        let (scheme, rest) = value.trim().split_once(' ').ok_or(Fault::AuthenticationFailed)?;
        if scheme.eq_ignore_ascii_case("bearer") {
            return Err(Fault::InvalidAuthenticationInfo);
        }
        let (account, signature) = rest.trim().split_once(':').ok_or(Fault::AuthenticationFailed)?;
        match scheme {
            "SharedKey" => Ok(Self::SharedKey(account, signature)),
            "SharedKeyLite" => Ok(Self::SharedKeyLite(account, signature)),
            _ => Err(Fault::AuthenticationFailed),
        }
    }
}

/// Checks a credential. The policy is the stored one that a table's signature names; `None` means that it names none.
///
/// # Errors
/// The signature, the date or the terms do not hold.
pub fn authenticate(
    account: &Account,
    credential: Credential<'_>,
    request: &Signed<'_>,
    policy: Option<&Policy>,
) -> Result<Access, Fault> {
    match credential {
        Credential::SharedKey(name, signature) => {
            let text = format!(
                "{}\n{}\n{}\n{}\n{}",
                request.method,
                request.header("content-md5"),
                request.header(header::CONTENT_TYPE),
                date(request)?,
                request.resource(&account.name)
            );
            signed_by_key(account, name, &text, signature)
        }
        Credential::SharedKeyLite(name, signature) => {
            let text = format!("{}\n{}", date(request)?, request.resource(&account.name));
            signed_by_key(account, name, &text, signature)
        }
        Credential::AccountSas => account_sas(account, request),
        Credential::TableSas => table_sas(account, request, policy),
    }
}

fn signed_by_key(account: &Account, name: &str, text: &str, signature: &str) -> Result<Access, Fault> {
    if name == account.name && account.has_signed(text, signature) {
        Ok(Access::Owner)
    } else {
        Err(Fault::AuthenticationFailed)
    }
}

/// The date of a request as it was signed, which must be about now.
fn date<'a>(request: &'a Signed<'_>) -> Result<&'a str, Fault> {
    let own = request.header("x-ms-date");
    let date = if own.is_empty() {
        request.header(header::DATE)
    } else {
        own
    };
    let seconds = http_date_seconds(date).ok_or(Fault::AuthenticationFailed)?;
    if seconds.abs_diff(request.now_seconds) > DATE_OFF_SECONDS_MAX.unsigned_abs() {
        return Err(Fault::AuthenticationFailed);
    }
    Ok(date)
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Seconds since 1970 of `Fri, 24 Jul 2020 14:34:32 GMT`; `None` means another form.
#[must_use]
pub fn http_date_seconds(text: &str) -> Option<i64> {
    let (_, date) = text.split_once(", ")?;
    let mut words = date.split_ascii_whitespace();
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    if words.next() != Some("GMT") || words.next().is_some() {
        return None;
    }
    let moment = Ticks::parse(&format!("{year:0>4}-{month:02}-{day:0>2}T{time}Z"))?;
    Some(moment.unix_micros().div_euclid(1_000_000))
}

/// `Fri, 24 Jul 2020 14:34:32 GMT`
#[must_use]
pub fn http_date(seconds: i64) -> String {
    let text = Ticks::of_unix_micros(seconds.saturating_mul(1_000_000)).to_string();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let month = part(5..7)
        .parse::<usize>()
        .ok()
        .and_then(|month| MONTHS.get(month.checked_sub(1)?));
    // 1970-01-01 was a Thursday.
    let day = usize::try_from((seconds.div_euclid(86_400) + 3).rem_euclid(7))
        .ok()
        .and_then(|day| DAYS.get(day));
    let (day, month) = (day.copied().unwrap_or_default(), month.copied().unwrap_or_default());
    format!("{day}, {} {month} {} {} GMT", part(8..10), part(0..4), part(11..19))
}

/// The moment of a signature's time; empty texts stand for none.
fn moment(text: Option<&str>) -> Result<Option<i64>, Fault> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let ticks = Ticks::parse(text).ok_or(Fault::AuthenticationFailed)?;
    Ok(Some(ticks.unix_micros()))
}

/// Checks times, addresses and the protocol of a signature.
fn check_terms(request: &Signed<'_>, start: Option<&str>, expiry: Option<&str>) -> Result<(), Fault> {
    let now = request.now_seconds.saturating_mul(1_000_000);
    let expiry = moment(expiry)?.ok_or(Fault::AuthenticationFailed)?;
    // Seconds of now are whole: a signature that begins within this one has begun.
    let begun = moment(start)?.is_none_or(|start| start < now + 1_000_000);
    if !begun || expiry <= now {
        return Err(Fault::AuthenticationFailed);
    }
    match request.parameters.some("spr") {
        None | Some("https,http" | "http,https") => {}
        Some("https") if request.is_tls => {}
        Some("https") => return Err(Fault::AuthorizationProtocolMismatch),
        Some(_) => return Err(Fault::AuthenticationFailed),
    }
    let Some(addresses) = request.parameters.some("sip") else {
        return Ok(());
    };
    let (first, last) = addresses.split_once('-').unwrap_or((addresses, addresses));
    let parse = |address: &str| address.parse::<IpAddr>().map_err(|_| Fault::AuthenticationFailed);
    let client = request.client.to_canonical();
    let (first, last) = (parse(first)?, parse(last)?);
    let is_inside = client.is_ipv4() == first.is_ipv4() && first <= client && client <= last;
    if is_inside {
        Ok(())
    } else {
        Err(Fault::AuthorizationSourceIpMismatch { address: client })
    }
}

/// From this version on, an account's signature has a line for the encryption scope. Source: Create an account SAS.
const ENCRYPTION_SCOPE_SINCE: &str = "2020-12-06";

/// From this version on, a table's signature begins its resource with `/table`. Source: Create a service SAS.
const SERVICE_NAMED_SINCE: &str = "2015-02-21";

fn account_sas(account: &Account, request: &Signed<'_>) -> Result<Access, Fault> {
    let value = |name: &str| request.parameters.get(name).unwrap_or_default();
    let version = value("sv");
    let mut text = account.name.clone();
    text.push('\n');
    for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
        text.push_str(value(name));
        text.push('\n');
    }
    if version >= ENCRYPTION_SCOPE_SINCE {
        text.push_str(value("ses"));
        text.push('\n');
    }
    let is_whole = ["sv", "ss", "srt", "sp", "se"]
        .into_iter()
        .all(|name| !value(name).is_empty());
    if !is_whole || !account.has_signed(&text, value("sig")) {
        return Err(Fault::AuthenticationFailed);
    }
    check_terms(request, request.parameters.some("st"), request.parameters.some("se"))?;
    if !value("ss").contains('t') {
        return Err(Fault::AuthorizationServiceMismatch);
    }
    Ok(Access::AccountSas {
        permissions: value("sp").to_owned(),
        resource_types: value("srt").to_owned(),
    })
}

fn table_sas(account: &Account, request: &Signed<'_>, policy: Option<&Policy>) -> Result<Access, Fault> {
    let parameters = request.parameters;
    let value = |name: &str| parameters.get(name).unwrap_or_default();
    let table = value("tn").to_ascii_lowercase();
    let service = if value("sv") >= SERVICE_NAMED_SINCE {
        "/table"
    } else {
        ""
    };
    let text = [
        value("sp"),
        value("st"),
        value("se"),
        &format!("{service}/{}/{table}", account.name),
        value("si"),
        value("sip"),
        value("spr"),
        value("sv"),
        value("spk"),
        value("srk"),
        value("epk"),
        value("erk"),
    ];
    if value("sv").is_empty() || !account.has_signed(&text.join("\n"), value("sig")) {
        return Err(Fault::AuthenticationFailed);
    }
    // A policy that is named must be there: taking it away revokes the signature.
    if parameters.some("si").is_some() && policy.is_none() {
        return Err(Fault::AuthenticationFailed);
    }
    let of_policy = |text: fn(&Policy) -> &Option<String>| policy.and_then(|policy| text(policy).as_deref());
    let either = |name: &str, stored: Option<&'_ str>| match (parameters.some(name).map(str::to_owned), stored) {
        (Some(_), Some(_)) => Err(Fault::AuthenticationFailed),
        (own, stored) => Ok(own.or_else(|| stored.map(str::to_owned))),
    };
    let start = either("st", of_policy(|policy| &policy.start))?;
    let expiry = either("se", of_policy(|policy| &policy.expiry))?;
    let permissions = either("sp", of_policy(|policy| &policy.permission))?;
    check_terms(request, start.as_deref(), expiry.as_deref())?;
    let part = |name: &str| parameters.get(name).map(str::to_owned);
    let bounds = KeyBounds {
        partition_from: part("spk"),
        row_from: part("srk"),
        partition_to: part("epk"),
        row_to: part("erk"),
    };
    let has_rows_alone = bounds.row_from.is_some() && bounds.partition_from.is_none()
        || bounds.row_to.is_some() && bounds.partition_to.is_none();
    if has_rows_alone {
        return Err(Fault::AuthenticationFailed);
    }
    Ok(Access::TableSas(TableSas {
        table,
        permissions: permissions.ok_or(Fault::AuthenticationFailed)?,
        bounds,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    /// The published key of the development account.
    const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// Fri, 24 Jul 2020 14:34:32 GMT.
    const NOW: i64 = 1_595_601_272;

    const DATE: &str = "Fri, 24 Jul 2020 14:34:32 GMT";

    fn account() -> Account {
        Account::new("devstoreaccount1".to_owned(), &[KEY.to_owned()]).unwrap()
    }

    /// A request that is checked: changed by a test, checked by the whole of the module.
    struct Case {
        method: Method,
        address: String,
        headers: Vec<(&'static str, String)>,
        client: IpAddr,
        is_tls: bool,
        now_seconds: i64,
        policy: Option<Policy>,
        account: Account,
    }

    impl Case {
        fn new(address: &str) -> Self {
            Self {
                method: Method::GET,
                address: address.to_owned(),
                headers: Vec::new(),
                client: [127, 0, 0, 1].into(),
                is_tls: false,
                now_seconds: NOW,
                policy: None,
                account: account(),
            }
        }

        fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
            self.headers.push((name, value.into()));
            self
        }

        fn check(&self) -> Result<Access, Fault> {
            let (path, query) = self.address.split_once('?').unwrap_or((&self.address, ""));
            let parameters = Parameters::parse(query).unwrap();
            let headers = self.headers.iter().map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_str(value).unwrap())
            });
            let headers: HeaderMap = headers.collect();
            let request = Signed {
                method: &self.method,
                path,
                parameters: &parameters,
                headers: &headers,
                client: self.client,
                is_tls: self.is_tls,
                now_seconds: self.now_seconds,
            };
            let credential = Credential::of(&request)?;
            authenticate(&self.account, credential, &request, self.policy.as_ref())
        }
    }

    #[test]
    fn signatures_by_key_are_those_of_the_reference() {
        let tables = || {
            let mut case = Case::new("/devstoreaccount1/Tables").with("x-ms-date", DATE);
            case.method = Method::POST;
            let signature = "SharedKey devstoreaccount1:l0A1ySysJD1Pfbkfi3Fl+8JdHozvF4DPK3PuIIusx8Q=";
            case.with("content-type", "application/json")
                .with("authorization", signature)
        };
        assert_eq!(tables().check(), Ok(Access::Owner));
        let entity = "/devstoreaccount1/smoke(PartitionKey='p',RowKey='r%27%271')";
        let lite = Case::new(entity).with("date", DATE);
        let lite = lite.with(
            "authorization",
            "SharedKeyLite devstoreaccount1:sIlAOnJV/OP6GeHyjw3hjOf2UTh5GKdZPmg+Xd7aZs8=",
        );
        assert_eq!(lite.check(), Ok(Access::Owner));
        // Host style: the account is not in the path.
        let of_host = Case::new("/?restype=service&comp=properties").with("x-ms-date", DATE);
        let of_host = of_host.with(
            "authorization",
            "SharedKeyLite devstoreaccount1:zz78wWVXRRGb4jqJQ0TSQqYyYZJ5RK8LQAwMmRWrBMQ=",
        );
        assert_eq!(of_host.check(), Ok(Access::Owner));
        let failed = Err(Fault::AuthenticationFailed);
        let mut other = tables();
        other.method = Method::PUT;
        assert_eq!(other.check(), failed);
        assert_eq!(
            Case {
                address: "/devstoreaccount1/Tables()".to_owned(),
                ..tables()
            }
            .check(),
            failed
        );
        for (now_seconds, expected) in [
            (NOW + 899, Ok(Access::Owner)),
            (NOW - 899, Ok(Access::Owner)),
            (NOW + 901, failed.clone()),
            (NOW - 901, failed.clone()),
        ] {
            assert_eq!(
                Case {
                    now_seconds,
                    ..tables()
                }
                .check(),
                expected
            );
        }
        for (header, expected) in [
            (
                "SharedKey other:l0A1ySysJD1Pfbkfi3Fl+8JdHozvF4DPK3PuIIusx8Q=",
                Fault::AuthenticationFailed,
            ),
            ("SharedKey devstoreaccount1:bm9uZQ==", Fault::AuthenticationFailed),
            ("SharedKey devstoreaccount1", Fault::AuthenticationFailed),
            ("Basic x:y", Fault::AuthenticationFailed),
            ("x", Fault::AuthenticationFailed),
            ("Bearer token", Fault::InvalidAuthenticationInfo),
        ] {
            let case = Case::new("/devstoreaccount1/Tables")
                .with("x-ms-date", DATE)
                .with("authorization", header);
            assert_eq!(case.check(), Err(expected), "{header}");
        }
        assert_eq!(Case::new("/a/b").check(), Err(Fault::InvalidAuthenticationInfo));
        let dateless = Case::new("/a/b").with("authorization", "SharedKeyLite devstoreaccount1:bm9uZQ==");
        assert_eq!(dateless.check(), failed);
    }

    #[test]
    fn either_of_two_keys_signs() {
        let second = Account::new("devstoreaccount1".to_owned(), &["YQ==".to_owned(), KEY.to_owned()]).unwrap();
        let case = Case::new("/?restype=service&comp=properties").with("x-ms-date", DATE);
        let case = case.with(
            "authorization",
            "SharedKeyLite devstoreaccount1:zz78wWVXRRGb4jqJQ0TSQqYyYZJ5RK8LQAwMmRWrBMQ=",
        );
        assert_eq!(
            Case {
                account: second,
                ..case
            }
            .check(),
            Ok(Access::Owner)
        );
        assert!(Account::new("a".to_owned(), &["?".to_owned()]).is_none());
    }

    /// An address with a signature of its parameters, made here.
    fn account_sas(changes: &[(&str, &str)]) -> Case {
        let mut values = vec![
            ("sv", "2019-02-02"),
            ("ss", "t"),
            ("srt", "sco"),
            ("sp", "rl"),
            ("se", "2020-07-25T00:00:00Z"),
        ];
        for (name, value) in changes {
            values.retain(|(own, _)| own != name);
            values.push((name, value));
        }
        let value = |name: &str| {
            values
                .iter()
                .find(|(own, _)| *own == name)
                .map_or("", |(_, value)| value)
        };
        let mut text = "devstoreaccount1\n".to_owned();
        for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
            text = format!("{text}{}\n", value(name));
        }
        let signature = account().sign(&text).replace('+', "%2B");
        let query: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Case::new(&format!(
            "/devstoreaccount1/smoke()?{}&sig={signature}",
            query.join("&")
        ))
    }

    #[test]
    fn account_signatures_are_those_of_the_reference() {
        let fixed = "sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2020-07-25T00:00:00Z&spr=https,http&sig=TKryNRfU3B8GfPRQXwbbKvr7wi5OZDRHGunMHaY5Ilk%3D";
        let access = Case::new(&format!("/devstoreaccount1/smoke()?{fixed}"))
            .check()
            .unwrap();
        let sas = Access::AccountSas {
            permissions: "rl".to_owned(),
            resource_types: "sco".to_owned(),
        };
        assert_eq!(access, sas);
        let scoped = "sv=2020-12-06&ss=t&srt=sco&sp=rl&se=2020-07-25T00:00:00Z&spr=https,http&sig=haUdz/nOjV/3XRYG9D3gWO57ALw71LhlP25rBEJXxRE=";
        assert_eq!(
            Case::new(&format!("/devstoreaccount1/smoke()?{scoped}")).check(),
            Ok(sas)
        );
        let address = [127, 0, 0, 1].into();
        for (changes, expected) in [
            (vec![], None),
            (vec![("st", "2020-07-24T14:34:32Z")], None),
            (vec![("st", "2020-07-24T14:34:33Z")], Some(Fault::AuthenticationFailed)),
            (vec![("se", "2020-07-24T14:34:32Z")], Some(Fault::AuthenticationFailed)),
            (vec![("se", "2020-07-24T14:34Z")], Some(Fault::AuthenticationFailed)),
            (vec![("se", "tomorrow")], Some(Fault::AuthenticationFailed)),
            (vec![("se", "")], Some(Fault::AuthenticationFailed)),
            (vec![("ss", "bq")], Some(Fault::AuthorizationServiceMismatch)),
            (vec![("spr", "https")], Some(Fault::AuthorizationProtocolMismatch)),
            (vec![("spr", "ftp")], Some(Fault::AuthenticationFailed)),
            (vec![("sip", "127.0.0.1")], None),
            (vec![("sip", "127.0.0.0-127.0.0.9")], None),
            (
                vec![("sip", "10.0.0.1")],
                Some(Fault::AuthorizationSourceIpMismatch { address }),
            ),
            (vec![("sip", "x")], Some(Fault::AuthenticationFailed)),
        ] {
            assert_eq!(account_sas(&changes).check().err(), expected, "{changes:?}");
        }
        let mut tls = account_sas(&[("spr", "https")]);
        tls.is_tls = true;
        assert!(tls.check().is_ok());
        let mut forged = account_sas(&[]);
        forged.address = forged.address.replace("sp=rl", "sp=rwl");
        assert_eq!(forged.check(), Err(Fault::AuthenticationFailed));
        let both = account_sas(&[]).with("authorization", "SharedKeyLite devstoreaccount1:x");
        assert_eq!(both.check(), Err(Fault::AuthenticationFailed));
    }

    #[test]
    fn table_signatures_are_those_of_the_reference() {
        let of = |query: &str| Case::new(&format!("/devstoreaccount1/smoke()?{query}"));
        let fixed = "sv=2019-02-02&tn=Smoke&sp=raud&st=2020-07-24T00:00Z&se=2020-07-25T00:00:00Z&spk=a&epk=c&erk=x&sig=MxCOQFIpofS%2BYRG5LXgz%2BzqH9q/tuMLpQz/QYmtff9M=";
        let Ok(Access::TableSas(sas)) = of(fixed).check() else {
            panic!()
        };
        assert_eq!((sas.table.as_str(), sas.permissions.as_str()), ("smoke", "raud"));
        for (partition_key, row_key, is_inside) in [
            ("a", "", true),
            ("Z", "z", false),
            ("b", "zzz", true),
            ("c", "x", true),
            ("c", "y", false),
            ("d", "", false),
        ] {
            assert_eq!(
                sas.bounds.contains(partition_key, row_key),
                is_inside,
                "{partition_key} {row_key}"
            );
        }
        let old =
            "sv=2013-08-15&tn=smoke&sp=r&se=2020-07-25T00:00:00Z&sig=WN59mnBiZzPT9QhRt/sf1uxuOx9zWyAOMoybOBKemqA=";
        assert!(of(old).check().is_ok());
    }

    #[test]
    fn stored_policy_completes_a_signature_and_revokes_it() {
        let query = "sv=2019-02-02&tn=smoke&si=policy&sig=8lOTYwYJ8AqgGvWAdmxt8X08417upRHS2WoB5lk7wQU=";
        let checked = |policy: Option<Policy>| {
            let case = Case::new(&format!("/devstoreaccount1/smoke()?{query}"));
            Case { policy, ..case }.check()
        };
        let policy = |expiry: Option<&str>, permission: Option<&str>| {
            Some(Policy {
                id: "policy".to_owned(),
                start: None,
                expiry: expiry.map(str::to_owned),
                permission: permission.map(str::to_owned),
            })
        };
        let Ok(Access::TableSas(sas)) = checked(policy(Some("2020-07-25"), Some("rd"))) else {
            panic!()
        };
        assert_eq!(sas.permissions, "rd");
        let failed = Err(Fault::AuthenticationFailed);
        assert_eq!(checked(None), failed);
        assert_eq!(checked(policy(None, Some("r"))), failed);
        assert_eq!(checked(policy(Some("2020-07-25"), None)), failed);
        assert_eq!(checked(policy(Some("2020-07-24"), Some("r"))), failed);
    }

    #[test]
    fn access_is_checked_by_operation() {
        let keys = Keys {
            partition_key: "b",
            row_key: "r",
        };
        let outside = Keys {
            partition_key: "z",
            row_key: "r",
        };
        let sas = |permissions: &str, resource_types: &str| Access::AccountSas {
            permissions: permissions.to_owned(),
            resource_types: resource_types.to_owned(),
        };
        let of_table = |permissions: &str| {
            Access::TableSas(TableSas {
                table: "abc".to_owned(),
                permissions: permissions.to_owned(),
                bounds: KeyBounds {
                    partition_from: Some("a".to_owned()),
                    partition_to: Some("c".to_owned()),
                    ..KeyBounds::default()
                },
            })
        };
        let (permission, resource) = (
            Fault::AuthorizationPermissionMismatch,
            Fault::AuthorizationResourceTypeMismatch,
        );
        for (access, need, refusal) in [
            (Access::Owner, Need::Acl, None),
            (sas("r", "s"), Need::ReadService, None),
            (sas("r", "s"), Need::WriteService, Some(permission.clone())),
            (sas("l", "c"), Need::ListTables, None),
            (sas("l", "so"), Need::ListTables, Some(resource.clone())),
            (sas("c", "c"), Need::CreateTable, None),
            (sas("w", "c"), Need::CreateTable, None),
            (sas("d", "c"), Need::CreateTable, Some(permission.clone())),
            (sas("d", "c"), Need::DeleteTable, None),
            (sas("rwdlacup", "sco"), Need::Acl, Some(Fault::AuthorizationFailure)),
            (sas("r", "o"), Need::Query("abc"), None),
            (sas("a", "o"), Need::Insert("abc", keys), None),
            (sas("a", "o"), Need::Upsert("abc", keys), Some(permission.clone())),
            (sas("au", "o"), Need::Upsert("abc", keys), None),
            (sas("u", "o"), Need::Update("abc", keys), None),
            (sas("u", "o"), Need::Delete("abc", keys), Some(permission.clone())),
            (of_table("r"), Need::Query("ABC"), None),
            (of_table("r"), Need::Query("other"), Some(Fault::AuthorizationFailure)),
            (of_table("raud"), Need::ListTables, Some(Fault::AuthorizationFailure)),
            (of_table("raud"), Need::Acl, Some(Fault::AuthorizationFailure)),
            (of_table("a"), Need::Insert("abc", keys), None),
            (
                of_table("a"),
                Need::Insert("abc", outside),
                Some(Fault::AuthorizationFailure),
            ),
            (of_table("a"), Need::Delete("abc", keys), Some(permission)),
        ] {
            assert_eq!(access.check(need).err(), refusal, "{access:?} {need:?}");
        }
        assert!(of_table("r").bounds().is_some() && Access::Owner.bounds().is_none());
    }

    #[test]
    fn dates_of_http_are_read_and_written() {
        assert_eq!(http_date_seconds(DATE), Some(NOW));
        assert_eq!(http_date(NOW), DATE);
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        for text in [
            "",
            "2020-07-24",
            "Fri, 24 Jul 2020 14:34:32",
            "Fri, 24 Foo 2020 14:34:32 GMT",
        ] {
            assert_eq!(http_date_seconds(text), None, "{text}");
        }
    }
}
