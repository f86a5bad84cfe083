//! Bodies in XML: properties of the service, access policies, stats and refusals.
//!
//! Only what these need is read: elements, texts, attributes that are skipped, comments, a declaration. A document type is refused, so
//! that no text expands.

use std::fmt::Write as _;

use super::auth::Policy;
use super::edm::Ticks;
use super::fault::Fault;

/// Elements in each other.
const DEPTH_MAX: usize = 16;

/// Bytes of a document that is read. The rules of CORS may have 2 KiB, five policies less.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024;

/// Rules of CORS. Source: Set Table Service Properties.
const CORS_RULES_MAX: usize = 5;

/// Bytes of all rules of CORS. Source: as above.
const CORS_BYTES_MAX: usize = 2 * 1024;

/// Days that logs and metrics are kept. Source: as above.
const RETENTION_DAYS_MAX: u32 = 365;

/// Policies of a table. Source: Set Table ACL.
const POLICIES_MAX: usize = 5;

/// Characters of a policy's id. Source: as above.
const POLICY_ID_CHARACTERS_MAX: usize = 64;

/// One element.
#[derive(Debug, PartialEq, Eq)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(Fault::InvalidXmlDocument);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Fault::InvalidXmlDocument)?;
        let mut reader = Reader {
            rest: text.trim_start_matches('\u{FEFF}'),
        };
        let root = reader.document().ok_or(Fault::InvalidXmlDocument)?;
        Ok(root)
    }

    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a child; `None` means that it is missing or empty.
    fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name)
            .map(|child| child.text.trim())
            .filter(|text| !text.is_empty())
    }

    fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.child_text(name) {
            Some("true" | "True" | "1") => Ok(true),
            Some("false" | "False" | "0") => Ok(false),
            _ => Err(Fault::InvalidXmlDocument),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Option<Element> {
        self.skip()?;
        let root = self.element(0)?;
        self.skip()?;
        self.rest.is_empty().then_some(root)
    }

    /// Skips spaces, comments and declarations.
    fn skip(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("<!--") {
                self.rest = comment.split_once("-->")?.1;
            } else if let Some(declaration) = self.rest.strip_prefix("<?") {
                self.rest = declaration.split_once("?>")?.1;
            } else {
                return Some(());
            }
        }
    }

    fn element(&mut self, depth: usize) -> Option<Element> {
        if depth > DEPTH_MAX {
            return None;
        }
        let inside = self.rest.strip_prefix('<')?;
        let (tag, rest) = inside.split_once('>')?;
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = local_name(tag.split_ascii_whitespace().next()?)?;
        self.rest = rest;
        let mut element = Element {
            name: name.to_owned(),
            text: String::new(),
            children: Vec::new(),
        };
        if is_empty {
            return Some(element);
        }
        loop {
            let (text, rest) = self.rest.split_at_checked(self.rest.find('<')?)?;
            unescape(text, &mut element.text)?;
            self.rest = rest;
            if let Some(end) = rest.strip_prefix("</") {
                let (end, rest) = end.split_once('>')?;
                self.rest = rest;
                return (local_name(end.trim())? == name).then_some(element);
            } else if let Some(comment) = rest.strip_prefix("<!--") {
                self.rest = comment.split_once("-->")?.1;
            } else if let Some(raw) = rest.strip_prefix("<![CDATA[") {
                let (raw, rest) = raw.split_once("]]>")?;
                element.text.push_str(raw);
                self.rest = rest;
            } else {
                element.children.push(self.element(depth + 1)?);
            }
        }
    }
}

/// A name without its namespace.
fn local_name(name: &str) -> Option<&str> {
    let local = name.rsplit_once(':').map_or(name, |(_, local)| local);
    let is_name = local.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && local
            .chars()
            .all(|next| next.is_alphanumeric() || matches!(next, '_' | '-' | '.'));
    is_name.then_some(local)
}

fn unescape(text: &str, into: &mut String) -> Option<()> {
    let mut parts = text.split('&');
    into.push_str(parts.next()?);
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        into.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let digits = name.strip_prefix('#')?;
                let code = match digits.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => digits.parse().ok()?,
                };
                char::from_u32(code)?
            }
        });
        into.push_str(rest);
    }
    Some(())
}

/// Appends an element with a text.
fn push(xml: &mut String, name: &str, text: &str) {
    xml.push('<');
    xml.push_str(name);
    xml.push('>');
    escape(text, xml);
    xml.push_str("</");
    xml.push_str(name);
    xml.push('>');
}

fn escape(text: &str, into: &mut String) {
    for next in text.chars() {
        match next {
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            _ => into.push(next),
        }
    }
}

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// How long something is kept; `None` means for good.
type RetentionDays = Option<u32>;

/// Which requests are logged. Kept and given back; there is no log of Azure's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    version: String,
    delete: bool,
    read: bool,
    write: bool,
    retention: RetentionDays,
}

/// Which figures are kept. Kept and given back; there are no metrics tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    version: String,
    /// Whether figures of operations are among them; `None` means that no figures are kept.
    includes_apis: Option<bool>,
    retention: RetentionDays,
}

/// A rule of CORS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsRule {
    /// Origins, or `*`.
    pub origins: Vec<String>,
    /// Methods.
    pub methods: Vec<String>,
    /// Headers that a request may have; a `*` at the end stands for any rest.
    pub headers: Vec<String>,
    /// Headers of answers that scripts may see.
    pub exposed: String,
    /// How long a browser may keep the answer.
    pub max_age_seconds: u32,
}

/// The properties of the service of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    logging: Logging,
    hour: Metrics,
    minute: Metrics,
    /// The rules of CORS, of which the first that matches counts.
    pub cors: Vec<CorsRule>,
}

impl Default for Properties {
    fn default() -> Self {
        let metrics = Metrics {
            version: "1.0".to_owned(),
            includes_apis: None,
            retention: None,
        };
        Self {
            logging: Logging {
                version: "1.0".to_owned(),
                delete: false,
                read: false,
                write: false,
                retention: None,
            },
            hour: metrics.clone(),
            minute: metrics,
            cors: Vec::new(),
        }
    }
}

impl Properties {
    /// These properties, changed by a document; what it does not name stays.
    ///
    /// # Errors
    /// The document cannot be read, or breaks a limit.
    pub fn changed_by(&self, document: &[u8]) -> Result<Self, Fault> {
        let root = Element::parse(document)?;
        if root.name != "StorageServiceProperties" {
            return Err(Fault::InvalidXmlDocument);
        }
        let mut changed = self.clone();
        for part in &root.children {
            match part.name.as_str() {
                "Logging" => changed.logging = logging(part)?,
                "HourMetrics" | "Metrics" => changed.hour = metrics(part)?,
                "MinuteMetrics" => changed.minute = metrics(part)?,
                "Cors" => changed.cors = cors(part)?,
                "DefaultServiceVersion" => {}
                _ => return Err(Fault::InvalidXmlDocument),
            }
        }
        Ok(changed)
    }

    /// The document, as the service orders it.
    #[must_use]
    pub fn document(&self) -> String {
        let mut xml = format!("{DECLARATION}<StorageServiceProperties><Logging>");
        push(&mut xml, "Version", &self.logging.version);
        push_flag(&mut xml, "Delete", self.logging.delete);
        push_flag(&mut xml, "Read", self.logging.read);
        push_flag(&mut xml, "Write", self.logging.write);
        push_retention(&mut xml, self.logging.retention);
        xml.push_str("</Logging>");
        for (name, metrics) in [("HourMetrics", &self.hour), ("MinuteMetrics", &self.minute)] {
            let _ = write!(xml, "<{name}>");
            push(&mut xml, "Version", &metrics.version);
            push_flag(&mut xml, "Enabled", metrics.includes_apis.is_some());
            if let Some(includes) = metrics.includes_apis {
                push_flag(&mut xml, "IncludeAPIs", includes);
            }
            push_retention(&mut xml, metrics.retention);
            let _ = write!(xml, "</{name}>");
        }
        xml.push_str("<Cors>");
        for rule in &self.cors {
            push_rule(&mut xml, rule);
        }
        xml.push_str("</Cors></StorageServiceProperties>");
        xml
    }
}

fn push_rule(xml: &mut String, rule: &CorsRule) {
    xml.push_str("<CorsRule>");
    push(xml, "AllowedOrigins", &rule.origins.join(","));
    push(xml, "AllowedMethods", &rule.methods.join(","));
    push(xml, "AllowedHeaders", &rule.headers.join(","));
    push(xml, "ExposedHeaders", &rule.exposed);
    push(xml, "MaxAgeInSeconds", &rule.max_age_seconds.to_string());
    xml.push_str("</CorsRule>");
}

fn push_flag(xml: &mut String, name: &str, flag: bool) {
    push(xml, name, if flag { "true" } else { "false" });
}

fn push_retention(xml: &mut String, days: RetentionDays) {
    xml.push_str("<RetentionPolicy>");
    push_flag(xml, "Enabled", days.is_some());
    if let Some(days) = days {
        push(xml, "Days", &days.to_string());
    }
    xml.push_str("</RetentionPolicy>");
}

fn retention(of: &Element) -> Result<RetentionDays, Fault> {
    let Some(policy) = of.child("RetentionPolicy") else {
        return Ok(None);
    };
    if !policy.flag("Enabled")? {
        return Ok(None);
    }
    let days = policy.child_text("Days").and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) if (1..=RETENTION_DAYS_MAX).contains(&days) => Ok(Some(days)),
        _ => Err(Fault::InvalidXmlDocument),
    }
}

fn version(of: &Element) -> String {
    of.child_text("Version").unwrap_or("1.0").to_owned()
}

fn logging(of: &Element) -> Result<Logging, Fault> {
    Ok(Logging {
        version: version(of),
        delete: of.flag("Delete")?,
        read: of.flag("Read")?,
        write: of.flag("Write")?,
        retention: retention(of)?,
    })
}

fn metrics(of: &Element) -> Result<Metrics, Fault> {
    let includes_apis = match (of.flag("Enabled")?, of.child("IncludeAPIs")) {
        (true, Some(_)) => Some(of.flag("IncludeAPIs")?),
        // Figures that are kept must say which.
        (true, None) => return Err(Fault::InvalidXmlDocument),
        (false, None) => None,
        (false, Some(_)) if !of.flag("IncludeAPIs")? => None,
        (false, Some(_)) => return Err(Fault::InvalidXmlDocument),
    };
    Ok(Metrics {
        version: version(of),
        includes_apis,
        retention: retention(of)?,
    })
}

fn cors(of: &Element) -> Result<Vec<CorsRule>, Fault> {
    let rules = of.children.iter().map(cors_rule).collect::<Result<Vec<_>, _>>()?;
    let mut xml = String::new();
    rules.iter().for_each(|rule| push_rule(&mut xml, rule));
    if rules.len() > CORS_RULES_MAX || xml.len() > CORS_BYTES_MAX {
        return Err(Fault::InvalidXmlDocument);
    }
    Ok(rules)
}

fn cors_rule(of: &Element) -> Result<CorsRule, Fault> {
    let list = |name: &str| -> Vec<String> {
        let text = of.child_text(name).unwrap_or_default();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let (origins, methods) = (list("AllowedOrigins"), list("AllowedMethods"));
    const METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];
    let are_methods = methods.iter().all(|method| METHODS.contains(&method.as_str()));
    let max_age = of
        .child_text("MaxAgeInSeconds")
        .and_then(|seconds| seconds.parse().ok());
    if of.name != "CorsRule" || origins.is_empty() || methods.is_empty() || !are_methods {
        return Err(Fault::InvalidXmlDocument);
    }
    Ok(CorsRule {
        origins,
        methods,
        headers: list("AllowedHeaders"),
        exposed: list("ExposedHeaders").join(","),
        max_age_seconds: max_age.ok_or(Fault::InvalidXmlDocument)?,
    })
}

/// Reads the access policies of a table; an empty document has none.
///
/// # Errors
/// It cannot be read, or breaks a limit.
pub fn policies(document: &[u8]) -> Result<Vec<Policy>, Fault> {
    if document.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let root = Element::parse(document)?;
    if root.name != "SignedIdentifiers" {
        return Err(Fault::InvalidXmlDocument);
    }
    let policies = root.children.iter().map(policy).collect::<Result<Vec<_>, _>>()?;
    let has_twins = policies.iter().enumerate().any(|(index, policy)| {
        let before = policies.iter().take(index);
        before.into_iter().any(|other| other.id == policy.id)
    });
    if policies.len() > POLICIES_MAX || has_twins {
        return Err(Fault::InvalidXmlDocument);
    }
    Ok(policies)
}

fn policy(of: &Element) -> Result<Policy, Fault> {
    let id = of.child_text("Id").ok_or(Fault::InvalidXmlDocument)?;
    if of.name != "SignedIdentifier" || id.chars().count() > POLICY_ID_CHARACTERS_MAX {
        return Err(Fault::InvalidXmlDocument);
    }
    let text = |name: &str| {
        of.child("AccessPolicy")
            .and_then(|policy| policy.child_text(name))
            .map(str::to_owned)
    };
    let (start, expiry, permission) = (text("Start"), text("Expiry"), text("Permission"));
    let are_times = [&start, &expiry]
        .into_iter()
        .flatten()
        .all(|time| Ticks::parse(time).is_some());
    let are_permissions = permission
        .iter()
        .all(|permission| permission.chars().all(|one| "raud".contains(one)));
    if !are_times || !are_permissions {
        return Err(Fault::InvalidXmlDocument);
    }
    Ok(Policy {
        id: id.to_owned(),
        start,
        expiry,
        permission,
    })
}

/// The document of access policies. It begins with a byte order mark, as the service's does; times have seven digits.
#[must_use]
pub fn policies_document(policies: &[Policy]) -> String {
    let mut xml = format!("\u{FEFF}{DECLARATION}");
    if policies.is_empty() {
        xml.push_str("<SignedIdentifiers />");
        return xml;
    }
    xml.push_str("<SignedIdentifiers>");
    for policy in policies {
        xml.push_str("<SignedIdentifier>");
        push(&mut xml, "Id", &policy.id);
        if policy.start.is_some() || policy.expiry.is_some() || policy.permission.is_some() {
            xml.push_str("<AccessPolicy>");
            for (name, time) in [("Start", &policy.start), ("Expiry", &policy.expiry)] {
                if let Some(ticks) = time.as_deref().and_then(Ticks::parse) {
                    push(&mut xml, name, &with_seven_digits(ticks));
                }
            }
            if let Some(permission) = &policy.permission {
                push(&mut xml, "Permission", permission);
            }
            xml.push_str("</AccessPolicy>");
        } else {
            xml.push_str("<AccessPolicy />");
        }
        xml.push_str("</SignedIdentifier>");
    }
    xml.push_str("</SignedIdentifiers>");
    xml
}

/// `2020-11-07T01:23:12.2500000Z`
#[must_use]
pub fn with_seven_digits(ticks: Ticks) -> String {
    let text = ticks.to_string();
    let (whole, fraction) = text
        .trim_end_matches('Z')
        .split_once('.')
        .unwrap_or((text.trim_end_matches('Z'), ""));
    format!("{whole}.{fraction:0<7}Z")
}

/// The stats of an account: its secondary is the same server.
#[must_use]
pub fn stats_document(last_sync: &str) -> String {
    format!(
        "{DECLARATION}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{last_sync}</LastSyncTime></GeoReplication></StorageServiceStats>"
    )
}

/// A refusal, with a prefix of its names where the service has one.
#[must_use]
pub fn fault(code: &str, text: &str, has_prefix: bool) -> String {
    let (prefix, namespace) = if has_prefix { ("m:", "xmlns:m") } else { ("", "xmlns") };
    let mut message = String::new();
    escape(text, &mut message);
    format!(
        "{DECLARATION}<{prefix}error {namespace}=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><{prefix}code>{code}</{prefix}code><{prefix}message xml:lang=\"en-US\">{message}</{prefix}message></{prefix}error>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn properties_change_in_the_parts_that_are_named() {
        let first = Properties::default();
        let logging = b"<?xml version='1.0'?><StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging></StorageServiceProperties>";
        let second = first.changed_by(logging).unwrap();
        assert_eq!(second.logging.retention, Some(5));
        assert_eq!(
            (second.logging.read, second.logging.write, second.logging.delete),
            (true, false, true)
        );
        let cors = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.com, http://b.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-*</AllowedHeaders><ExposedHeaders/><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
        let third = second.changed_by(cors).unwrap();
        assert_eq!((&third.logging, third.cors.len()), (&second.logging, 1));
        assert_eq!(third.cors[0].origins, ["http://a.com", "http://b.com"]);
        assert_eq!(
            Properties::default().changed_by(third.document().as_bytes()),
            Ok(third.clone())
        );
        let none = third
            .changed_by(b"<StorageServiceProperties><Cors/></StorageServiceProperties>")
            .unwrap();
        assert!(none.cors.is_empty());
    }

    #[test]
    fn properties_that_break_a_limit_are_refused() {
        let metrics = |inside: &str| format!("<HourMetrics><Version>1.0</Version>{inside}</HourMetrics>");
        let rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule>";
        let off = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
        let days = |days: &str| {
            format!(
                "<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>"
            )
        };
        for (inside, is_taken) in [
            (metrics(&format!("<Enabled>false</Enabled>{off}")), true),
            (
                metrics(&format!("<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>{off}")),
                true,
            ),
            (metrics(&format!("<Enabled>true</Enabled>{off}")), false),
            (
                metrics(&format!("<Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs>{off}")),
                false,
            ),
            (metrics(&days("365")), true),
            (metrics(&days("366")), false),
            (metrics(&days("0")), false),
            (metrics(""), false),
            (format!("<Cors>{}</Cors>", rule.repeat(5)), true),
            (format!("<Cors>{}</Cors>", rule.repeat(6)), false),
            (format!("<Cors>{}</Cors>", rule.replace("GET", "FETCH")), false),
            (format!("<Cors>{}</Cors>", rule.replace('*', &"a".repeat(2_048))), false),
            ("<Other/>".to_owned(), false),
            ("<Cors>".to_owned(), false),
        ] {
            let document = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
            let changed = Properties::default().changed_by(document.as_bytes());
            assert_eq!(changed.is_ok(), is_taken, "{document}");
        }
    }

    #[test]
    fn policies_are_read_and_written() {
        let document = b"\xEF\xBB\xBF<SignedIdentifiers><SignedIdentifier><Id>a&amp;b</Id><AccessPolicy><Start>2021-01-01T00:00:00Z</Start><Expiry>2021-02-01</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id><AccessPolicy /></SignedIdentifier></SignedIdentifiers>";
        let read = policies(document).unwrap();
        assert_eq!(
            (read[0].id.as_str(), read[0].permission.as_deref()),
            ("a&b", Some("raud"))
        );
        let written = policies_document(&read);
        assert!(written.starts_with('\u{FEFF}') && written.contains("<Start>2021-01-01T00:00:00.0000000Z</Start>"));
        assert_eq!(policies(written.as_bytes()).unwrap()[1], read[1]);
        for (document, is_taken) in [
            ("", true),
            ("<SignedIdentifiers />", true),
            (
                "<SignedIdentifiers><SignedIdentifier><Id>x</Id></SignedIdentifier></SignedIdentifiers>",
                true,
            ),
            ("<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>", false),
            ("<SignedIdentifiers", false),
            ("<!DOCTYPE x><SignedIdentifiers />", false),
            ("<a/>", false),
        ] {
            assert_eq!(policies(document.as_bytes()).is_ok(), is_taken, "{document}");
        }
        let six: String = (0..6)
            .map(|id| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>"))
            .collect();
        assert!(policies(format!("<SignedIdentifiers>{six}</SignedIdentifiers>").as_bytes()).is_err());
        let long = "x".repeat(65);
        let long =
            format!("<SignedIdentifiers><SignedIdentifier><Id>{long}</Id></SignedIdentifier></SignedIdentifiers>");
        assert!(policies(long.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_document_is_checked(document in "\\PC{0,60}|[<>/a& ;!-]{0,60}") {
            let _ = policies(document.as_bytes());
            let _ = Properties::default().changed_by(document.as_bytes());
        }
    }
}
