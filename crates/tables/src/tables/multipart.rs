//! Bodies of `$batch`: `multipart/mixed` with requests in it, and with answers.
//!
//! ```text
//! batch = one part: a changeset, or a GET alone
//! changeset = parts: requests, each with an absolute address
//! ```
//! Reading is lenient, since clients differ: bare line feeds, empty lines too many, a last line break missing, boundaries in quotes.
//! Writing is exact, since clients take answers apart by crude expressions: JavaScript's splits at `--changesetresponse_`.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use uuid::Uuid;

use super::fault::Fault;

/// A request of a batch.
#[derive(Debug)]
pub struct Part<'a> {
    /// The method.
    pub method: Method,
    /// The address, as sent.
    pub address: &'a str,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: &'a [u8],
}

/// What a batch asks for.
#[derive(Debug)]
pub enum Batch<'a> {
    /// Changes, all or none.
    Changes(Vec<Part<'a>>),
    /// One GET.
    Get(Part<'a>),
}

/// Headers of a part of a multipart body that are read.
struct Section<'a> {
    content_type: &'a str,
    content: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Reads a batch.
    ///
    /// # Errors
    /// It is no multipart body, or it has two changesets, or a read besides changes.
    pub fn parse(content_type: &'a str, body: &'a [u8]) -> Result<Self, Fault> {
        let boundary = boundary(content_type).ok_or(Fault::MediaTypeNotSupported)?;
        let mut sections = sections(body, boundary)?.into_iter();
        let Some(first) = sections.next() else {
            return Ok(Self::Changes(Vec::new()));
        };
        if sections.next().is_some() {
            return Err(Fault::InvalidInput);
        }
        let Some(inner) = self::boundary(first.content_type) else {
            let part = Part::parse(first.content)?;
            return if part.method == Method::GET {
                Ok(Self::Get(part))
            } else {
                Err(Fault::InvalidInput)
            };
        };
        let parts = self::sections(first.content, inner)?;
        let parts = parts.iter().map(|section| Part::parse(section.content));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        if parts.iter().any(|part| part.method == Method::GET) {
            return Err(Fault::InvalidInput);
        }
        Ok(Self::Changes(parts))
    }
}

impl<'a> Part<'a> {
    /// Reads a request line, headers and a body.
    fn parse(content: &'a [u8]) -> Result<Self, Fault> {
        let mut rest = without_empty_lines(content);
        let line = take_line(&mut rest).ok_or(Fault::InvalidInput)?;
        let mut words = line.split_ascii_whitespace();
        let (method, address) = (words.next(), words.next());
        let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/"));
        let (Some(method), Some(address), true) = (method, address, is_http) else {
            return Err(Fault::InvalidInput);
        };
        let mut headers = HeaderMap::new();
        while let Some(line) = take_line(&mut rest) {
            if line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(Fault::InvalidInput)?;
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| Fault::InvalidInput)?;
            let value = HeaderValue::from_str(value.trim()).map_err(|_| Fault::InvalidInput)?;
            headers.append(name, value);
        }
        Ok(Self {
            method: Method::from_bytes(method.as_bytes()).map_err(|_| Fault::InvalidInput)?,
            address,
            headers,
            body: rest.trim_ascii(),
        })
    }
}

/// The boundary of a `multipart/mixed` body; `None` means another type.
fn boundary(content_type: &str) -> Option<&str> {
    let mut parts = content_type.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let boundary = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then_some(value.trim())
    })?;
    let bare = boundary
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(boundary);
    Some(bare).filter(|boundary| !boundary.is_empty())
}

/// The parts between lines of a boundary.
fn sections<'a>(body: &'a [u8], boundary: &str) -> Result<Vec<Section<'a>>, Fault> {
    let mut sections = Vec::new();
    let (mut rest, mut begun) = (body, None::<&[u8]>);
    loop {
        let before = rest;
        let Some(line) = take_raw_line(&mut rest) else { break };
        let line = line.trim_ascii_end();
        let Some(after) = line
            .strip_prefix(b"--")
            .and_then(|line| line.strip_prefix(boundary.as_bytes()))
        else {
            continue;
        };
        if !after.is_empty() && after != b"--" {
            continue;
        }
        if let Some(begun) = begun {
            let length = begun.len() - before.len();
            sections.push(section(begun.get(..length).unwrap_or_default())?);
        }
        begun = if after.is_empty() { Some(rest) } else { None };
        if begun.is_none() {
            return Ok(sections);
        }
    }
    // Without its last line a body was cut.
    Err(Fault::InvalidInput)
}

fn section(bytes: &[u8]) -> Result<Section<'_>, Fault> {
    let mut rest = without_empty_lines(bytes);
    let mut content_type = "";
    while let Some(line) = take_line(&mut rest) {
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or(Fault::InvalidInput)?;
        if name.trim().eq_ignore_ascii_case("content-type") {
            content_type = value.trim();
        }
    }
    Ok(Section {
        content_type,
        content: rest,
    })
}

fn without_empty_lines(mut bytes: &[u8]) -> &[u8] {
    while let [b'\r' | b'\n', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// The next line with its end; `None` means that there is no more.
fn take_raw_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(rest.len(), |end| end + 1);
    let (line, after) = rest.split_at_checked(end)?;
    *rest = after;
    Some(line)
}

/// The next line as a text without its end; `None` means that there is no more, or no text.
fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let line = take_raw_line(rest)?;
    std::str::from_utf8(line)
        .ok()
        .map(|line| line.trim_end_matches(['\r', '\n']))
}

/// The answer to a request of a batch.
#[derive(Debug)]
pub struct PartAnswer {
    /// The status.
    pub status: u16,
    /// Headers in their order.
    pub headers: Vec<(&'static str, String)>,
    /// The body, in one line.
    pub body: Vec<u8>,
}

impl PartAnswer {
    fn write(&self, into: &mut Vec<u8>) {
        let status = http::StatusCode::from_u16(self.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        let reason = status.canonical_reason().unwrap_or_default();
        let mut text = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n".to_owned();
        text.push_str(&format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()));
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        into.extend_from_slice(text.as_bytes());
        into.extend_from_slice(&self.body);
        into.extend_from_slice(b"\r\n");
    }
}

/// A body of answers, and its type.
#[derive(Debug)]
pub struct Answers {
    /// The `Content-Type`.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Answers {
    /// Answers to changes. The ids must be new.
    #[must_use]
    pub fn of_changes(parts: &[PartAnswer], batch: Uuid, changeset: Uuid) -> Self {
        let mut inner =
            format!("Content-Type: multipart/mixed; boundary=changesetresponse_{changeset}\r\n\r\n").into_bytes();
        for part in parts {
            inner.extend_from_slice(format!("--changesetresponse_{changeset}\r\n").as_bytes());
            part.write(&mut inner);
        }
        inner.extend_from_slice(format!("--changesetresponse_{changeset}--\r\n").as_bytes());
        Self::around(&inner, batch)
    }

    /// The answer to a GET alone.
    #[must_use]
    pub fn of_get(part: &PartAnswer, batch: Uuid) -> Self {
        let mut inner = Vec::new();
        part.write(&mut inner);
        Self::around(&inner, batch)
    }

    fn around(inner: &[u8], batch: Uuid) -> Self {
        let boundary = format!("batchresponse_{batch}");
        let mut body = format!("--{boundary}\r\n").into_bytes();
        body.extend_from_slice(inner);
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Self {
            content_type: format!("multipart/mixed; boundary={boundary}"),
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPE: &str = "multipart/mixed; boundary=batch_1";

    fn changes(body: &str) -> Vec<(Method, String, String)> {
        match Batch::parse(TYPE, body.as_bytes()) {
            Ok(Batch::Changes(parts)) => parts
                .iter()
                .map(|part| {
                    let body = String::from_utf8(part.body.to_vec()).unwrap();
                    (part.method.clone(), part.address.to_owned(), body)
                })
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn batches_are_read_as_python_and_javascript_send_them() {
        let python = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n--changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\nPOST http://h/a/t HTTP/1.1\r\nAccept: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}\r\n--changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nDELETE http://h/a/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n\r\n--changeset_2--\r\n\r\n--batch_1--\r\n";
        let read = changes(python);
        assert_eq!(
            read[0],
            (Method::POST, "http://h/a/t".to_owned(), "{\"a\":1}".to_owned())
        );
        assert_eq!((&read[1].0, read[1].2.as_str()), (&Method::DELETE, ""));
        let javascript = "--batch_1\r\ncontent-type: multipart/mixed; boundary=\"changeset_2\"\r\n\r\n\r\n--changeset_2\r\ncontent-type: application/http\r\ncontent-transfer-encoding: binary\r\n\r\nPATCH http://h/a/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\naccept: application/json\r\n\r\n\r\n{\"b\":2}\r\n--changeset_2--\r\n--batch_1--";
        assert_eq!(changes(javascript)[0].2, "{\"b\":2}");
        assert_eq!(changes(&python.replace("\r\n", "\n")).len(), 2);
        assert!(
            changes("--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--batch_1--\r\n")
                .is_empty()
        );
        assert!(changes("--batch_1--\r\n").is_empty());
    }

    #[test]
    fn other_batches_are_refused() {
        let get =
            "Content-Type: application/http\r\n\r\nGET http://h/a/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n";
        let alone = format!("--batch_1\r\n{get}\r\n--batch_1--\r\n");
        assert!(matches!(Batch::parse(TYPE, alone.as_bytes()), Ok(Batch::Get(_))));
        let among = format!(
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n{get}\r\n--c--\r\n--batch_1--\r\n"
        );
        let two = format!("--batch_1\r\n{get}\r\n--batch_1\r\n{get}\r\n--batch_1--\r\n");
        for body in [
            among.as_str(),
            two.as_str(),
            "",
            "--batch_1\r\n",
            "--batch_1\r\nx\r\n--batch_1--\r\n",
        ] {
            assert!(
                matches!(Batch::parse(TYPE, body.as_bytes()), Err(Fault::InvalidInput)),
                "{body}"
            );
        }
        assert!(matches!(
            Batch::parse("application/json", b""),
            Err(Fault::MediaTypeNotSupported)
        ));
        assert!(matches!(
            Batch::parse("multipart/mixed", b""),
            Err(Fault::MediaTypeNotSupported)
        ));
    }

    #[test]
    fn answers_are_exact() {
        let id = Uuid::nil();
        let parts = [
            PartAnswer {
                status: 204,
                headers: vec![("DataServiceVersion", "1.0;".to_owned()), ("ETag", "x".to_owned())],
                body: Vec::new(),
            },
            PartAnswer {
                status: 201,
                headers: vec![("ETag", "y".to_owned())],
                body: b"{}".to_vec(),
            },
        ];
        let answers = Answers::of_changes(&parts, id, id);
        let part = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        let expected = format!(
            "--batchresponse_{id}\r\nContent-Type: multipart/mixed; boundary=changesetresponse_{id}\r\n\r\n--changesetresponse_{id}\r\n{part}HTTP/1.1 204 No Content\r\nDataServiceVersion: 1.0;\r\nETag: x\r\n\r\n\r\n--changesetresponse_{id}\r\n{part}HTTP/1.1 201 Created\r\nETag: y\r\n\r\n{{}}\r\n--changesetresponse_{id}--\r\n--batchresponse_{id}--\r\n"
        );
        assert_eq!(String::from_utf8(answers.body).unwrap(), expected);
        assert_eq!(
            answers.content_type,
            format!("multipart/mixed; boundary=batchresponse_{id}")
        );
    }

    proptest! {
        #[test]
        fn any_batch_is_checked(body in "\\PC{0,60}|[a-zHTP/1.:\r\n_-]{0,80}") {
            let _ = Batch::parse("multipart/mixed; boundary=a", body.as_bytes());
        }
    }
}
