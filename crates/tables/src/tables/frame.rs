//! What every answer has: ids, times, versions, and the form of refusals.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use uuid::Uuid;

use super::auth::http_date;
use super::edm::Ticks;
use super::fault::Fault;
use super::json::{Body, Level};
use super::xml::{self, with_seven_digits};

/// Bytes of a client's own id of a request that are sent back. Source: REST reference, `x-ms-client-request-id`.
const CLIENT_ID_BYTES_MAX: usize = 1024;

/// The oldest version that is served, and what a request without one asks for.
pub const VERSION_MIN: &str = "2013-08-15";

/// How long a client shall wait after [`Fault::ServerBusy`].
const RETRY_AFTER_SECONDS: u32 = 1;

/// How refusals are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultForm {
    /// JSON, at the level that the client asks for.
    Json(Level),
    /// XML, for entities and tables.
    Xml,
    /// XML with a prefix, for properties, stats, access policies, and before the request is understood.
    PrefixedXml,
}

/// An answer, without what every answer has.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The type of the body; `None` means that there is no body.
    pub content_type: Option<String>,
    /// Other headers, in their order.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// An answer without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self {
            status,
            content_type: None,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// An answer in JSON.
    #[must_use]
    pub fn json(status: u16, level: Level, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: Some(level.content_type().to_owned()),
            headers: Vec::new(),
            body,
        }
    }

    /// An answer in XML.
    #[must_use]
    pub fn xml(status: u16, document: String) -> Self {
        Self {
            status,
            content_type: Some("application/xml;charset=utf-8".to_owned()),
            headers: Vec::new(),
            body: document.into_bytes(),
        }
    }

    /// With another header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What is known of a request before it is understood.
#[derive(Debug)]
pub struct Frame {
    /// The id of the request.
    pub id: Uuid,
    /// When it came, µs since 1970.
    pub now_micros: i64,
    /// The version that is sent back.
    pub version: String,
    /// How a refusal is written.
    pub form: FaultForm,
    client_id: Option<HeaderValue>,
}

impl Frame {
    /// The frame of a request.
    #[must_use]
    pub fn new(id: Uuid, now_micros: i64, headers: &HeaderMap) -> Self {
        let client_id = headers.get("x-ms-client-request-id");
        let is_visible = |value: &&HeaderValue| {
            value.len() <= CLIENT_ID_BYTES_MAX && value.as_bytes().iter().all(|byte| matches!(byte, 0x20..=0x7E))
        };
        Self {
            id,
            now_micros,
            version: VERSION_MIN.to_owned(),
            form: FaultForm::PrefixedXml,
            client_id: client_id.filter(is_visible).cloned(),
        }
    }

    /// Takes the version that a request asks for: a date, not before [`VERSION_MIN`].
    ///
    /// # Errors
    /// It is no date, or an older one.
    pub fn set_version(&mut self, version: Option<&str>) -> Result<(), Fault> {
        let Some(version) = version else { return Ok(()) };
        if version.len() != 10 || Ticks::parse(version).is_none() || version < VERSION_MIN {
            return Err(Fault::InvalidHeaderValue);
        }
        version.clone_into(&mut self.version);
        Ok(())
    }

    /// The text of a refusal: with the request's id and the time, as the service has it.
    #[must_use]
    pub fn text(&self, fault: &Fault) -> String {
        let time = with_seven_digits(Ticks::of_unix_micros(self.now_micros));
        format!("{fault}\nRequestId:{}\nTime:{time}", self.id)
    }

    /// The answer that refuses the request.
    #[must_use]
    pub fn refusal(&self, fault: &Fault) -> Reply {
        let text = self.text(fault);
        let reply = match self.form {
            FaultForm::Json(level) => Reply::json(fault.status(), level, Body::fault(fault.code(), &text)),
            FaultForm::Xml => Reply::xml(fault.status(), xml::fault(fault.code(), &text, false)),
            FaultForm::PrefixedXml => Reply::xml(fault.status(), xml::fault(fault.code(), &text, true)),
        };
        let reply = reply.with("x-ms-error-code", fault.code());
        match fault {
            Fault::ServerBusy | Fault::AccountBusy => reply
                .with("Retry-After", RETRY_AFTER_SECONDS.to_string())
                .with("x-ms-retry-after-ms", (1_000 * RETRY_AFTER_SECONDS).to_string()),
            Fault::InvalidAuthenticationInfo => reply.with(
                "WWW-Authenticate",
                "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com",
            ),
            _ => reply,
        }
    }

    /// The whole answer.
    #[must_use]
    pub fn response(&self, reply: Reply) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(reply.body));
        *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let mut add = |name: HeaderName, value: &str| {
            // A text that no header can carry is left out: it comes from a key that an address cannot name either.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.append(name, value);
            }
        };
        if let Some(content_type) = &reply.content_type {
            add(header::CONTENT_TYPE, content_type);
        }
        add(header::DATE, &http_date(self.now_micros.div_euclid(1_000_000)));
        add(header::SERVER, concat!("Helenus-Table/", env!("CARGO_PKG_VERSION")));
        add(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        add(HeaderName::from_static("x-ms-request-id"), &self.id.to_string());
        add(HeaderName::from_static("x-ms-version"), &self.version);
        for (name, value) in &reply.headers {
            if let Ok(name) = HeaderName::try_from(*name) {
                add(name, value);
            }
        }
        if let Some(client_id) = &self.client_id {
            headers.insert("x-ms-client-request-id", client_id.clone());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame::new(Uuid::nil(), 1_595_601_271_046_364, &HeaderMap::new())
    }

    #[test]
    fn refusal_has_the_form_that_the_client_takes() {
        let text = "The specified entity already exists.\nRequestId:00000000-0000-0000-0000-000000000000\nTime:2020-07-24T14:34:31.0463640Z";
        let namespace = "=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">";
        let declaration = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        for (form, body, media) in [
            (
                FaultForm::Json(Level::Minimal),
                format!(
                    r#"{{"odata.error":{{"code":"EntityAlreadyExists","message":{{"lang":"en-US","value":"{}"}}}}}}"#,
                    text.replace('\n', "\\n")
                ),
                Level::Minimal.content_type(),
            ),
            (
                FaultForm::Xml,
                format!(
                    "{declaration}<error xmlns{namespace}<code>EntityAlreadyExists</code><message xml:lang=\"en-US\">{text}</message></error>"
                ),
                "application/xml;charset=utf-8",
            ),
            (
                FaultForm::PrefixedXml,
                format!(
                    "{declaration}<m:error xmlns:m{namespace}<m:code>EntityAlreadyExists</m:code><m:message xml:lang=\"en-US\">{text}</m:message></m:error>"
                ),
                "application/xml;charset=utf-8",
            ),
        ] {
            let frame = Frame { form, ..frame() };
            let response = frame.response(frame.refusal(&Fault::EntityAlreadyExists));
            assert_eq!(response.status(), 409);
            assert_eq!(response.body(), body.as_bytes());
            assert_eq!(response.headers()["content-type"], media);
            assert_eq!(response.headers()["x-ms-error-code"], "EntityAlreadyExists");
            assert_eq!(response.headers()["date"], "Fri, 24 Jul 2020 14:34:31 GMT");
        }
        let busy = frame().refusal(&Fault::ServerBusy);
        assert!(busy.headers.contains(&("Retry-After", "1".to_owned())));
    }

    #[test]
    fn versions_are_taken_if_they_are_dates() {
        for (version, is_taken) in [
            ("2013-08-15", true),
            ("2019-02-02", true),
            ("2026-06-06", true),
            ("2031-12-31", true),
            ("2012-02-12", false),
            ("2019-02-30", false),
            ("2019-2-2", false),
            ("latest", false),
        ] {
            let mut frame = frame();
            assert_eq!(frame.set_version(Some(version)).is_ok(), is_taken, "{version}");
            assert_eq!(frame.version, if is_taken { version } else { VERSION_MIN });
        }
    }
}
