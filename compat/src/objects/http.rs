//! HTTP/1.1 as far as a client of a store of objects speaks it: bodies with a length, connections that stay.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::net::TcpStream;

use crate::{Error, Outcome};

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// Decoded: `/bucket/key`.
    pub(super) path: String,
    /// Decoded.
    pub(super) query: BTreeMap<String, String>,
    /// By names in small letters.
    headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// The next request of a connection; `None`: it was closed.
    pub(super) fn read(from: &mut impl BufRead) -> Outcome<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().ok_or(Error::Malformed("request line"))?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method,
            path: decode(path),
            query: query
                .split('&')
                .filter(|part| !part.is_empty())
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
            ..Self::default()
        };
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(Error::Malformed("header"))?;
            request.headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        let length = request
            .header("content-length")
            .map_or(Ok(0), str::parse)
            .ok()
            .filter(|length| *length <= BODY_BYTES_MAX)
            .ok_or(Error::Malformed("content-length"))?;
        request.body.resize(length, 0);
        from.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// A part of the query; empty where it is not there.
    pub(super) fn of_query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    pub(super) fn is_list(&self) -> bool {
        self.method == "GET" && self.query.contains_key("list-type")
    }
}

/// Decodes `%20` and the like.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after
            .first_chunk::<2>()
            .filter(|_| first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = match code {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The part of an object that a `Range` names, its end excluded.
pub(super) fn range(text: &str, size: usize) -> Option<(usize, usize)> {
    let (start, end) = text.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        return Some((size.saturating_sub(end.parse().ok()?), size));
    }
    let end = if end.is_empty() {
        size
    } else {
        end.parse::<usize>().ok()?.saturating_add(1)
    };
    Some((start.parse().ok()?, end.min(size)))
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: String::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn xml(text: &str) -> Self {
        Self {
            body: format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{text}").into_bytes(),
            ..Self::empty(200)
        }
    }

    pub(super) fn failed(status: u16, code: &str) -> Self {
        Self {
            status,
            ..Self::xml(&format!("<Error><Code>{code}</Code></Error>"))
        }
    }

    pub(super) fn header(&mut self, name: &str, value: &str) {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
    }

    /// Sends it; of the answer to a HEAD no body.
    pub(super) fn write(&self, mut to: &TcpStream, is_head: bool) -> Outcome<()> {
        let length = self.body.len();
        let head = format!(
            "HTTP/1.1 {} \r\n{}Content-Length: {length}\r\n\r\n",
            self.status, self.headers
        );
        let mut bytes = head.into_bytes();
        if !is_head {
            bytes.extend_from_slice(&self.body);
        }
        to.write_all(&bytes)?;
        Ok(())
    }
}

/// Year, month and day of a day since 1970-01-01. Source: the proleptic Gregorian calendar, years counted from March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// As headers have it.
pub(super) fn date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let name = |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at).copied());
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        name(&DAYS, days.rem_euclid(7)).unwrap_or_default(),
        name(&MONTHS, month - 1).unwrap_or_default(),
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// As XML has it.
pub(super) fn iso_date(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!(
        "{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}.000Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_headers_and_xml_have_them() {
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(iso_date(951_827_696), "2000-02-29T12:34:56.000Z");
        assert_eq!(iso_date(0), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn ranges_are_of_the_object() {
        assert_eq!(range("bytes=2-4", 10), Some((2, 5)));
        assert_eq!(range("bytes=2-", 10), Some((2, 10)));
        assert_eq!(range("bytes=-3", 10), Some((7, 10)));
        assert_eq!(range("bytes=0-99", 10), Some((0, 10)));
        assert_eq!(range("lines=1-2", 10), None);
    }

    #[test]
    fn a_request_is_read_with_its_body_and_decoded() {
        let text =
            b"PUT /b/a%20b?list-type=2&prefix=x%2Fy HTTP/1.1\r\nContent-Length: 3\r\nIf-Match: \"1\"\r\n\r\nabcGET";
        let mut from = text.as_slice();
        let request = Request::read(&mut from).unwrap().unwrap();
        assert_eq!((request.path.as_str(), request.of_query("prefix")), ("/b/a b", "x/y"));
        assert_eq!(
            (request.header("if-match"), request.body.as_slice()),
            (Some("\"1\""), b"abc".as_slice())
        );
    }
}
