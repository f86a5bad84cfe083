//! A blocking connection of HTTP/1.1: a request, its whole answer, the next request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::cli::Failure;
use crate::cli::cqlsh;

/// Longest line of a header, and longest body of an answer.
const LINE_BYTES_MAX: u64 = 65_536;
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Most headers of an answer.
const HEADERS_MAX: usize = 200;

/// Longest wait for a connection, and for an answer.
const WITHIN: Duration = Duration::from_secs(60);

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// Over TLS.
    pub(super) is_tls: bool,
    /// The certificates to trust, as PEM.
    pub(super) trusted: Option<Vec<u8>>,
    pub(super) host: String,
    pub(super) port: u16,
}

/// An answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Names in lower case, and values.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    #[must_use]
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An open connection.
pub(super) struct Connection(BufReader<Box<dyn Stream>>);

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) fn open(origin: &Origin) -> Result<Self, Failure> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in (origin.host.as_str(), origin.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, WITHIN) {
                Ok(socket) => return Self::over(socket, origin),
                Err(error) => last = error,
            }
        }
        Err(format!("cannot connect to {}:{}: {last}", origin.host, origin.port).into())
    }

    fn over(socket: TcpStream, origin: &Origin) -> Result<Self, Failure> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(WITHIN))?;
        socket.set_write_timeout(Some(WITHIN))?;
        let stream: Box<dyn Stream> = match (origin.is_tls, &origin.trusted) {
            (false, _) => Box::new(socket),
            (true, Some(pem)) => Box::new(cqlsh::with_certificates(socket, &origin.host, pem)?),
            (true, None) => Box::new(cqlsh::with_any_certificate(socket, &origin.host)?),
        };
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends the bytes of a request, and reads the answer.
    ///
    /// # Errors
    /// The connection broke, or what came is no HTTP.
    pub(super) fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        let stream = self.0.get_mut();
        stream.write_all(request)?;
        stream.flush()?;
        let mut answer = Answer {
            status: self.status()?,
            ..Answer::default()
        };
        while let Some((name, value)) = self.line()?.split_once(':') {
            if answer.headers.len() >= HEADERS_MAX {
                return Err(strange("too many headers"));
            }
            answer
                .headers
                .push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if answer.status == 204 {
            return Ok(answer);
        }
        answer.body = if answer
            .header("transfer-encoding")
            .is_some_and(|coding| coding.contains("chunked"))
        {
            self.chunks()?
        } else {
            let length = answer.header("content-length").and_then(|length| length.parse().ok());
            self.body(length.unwrap_or(0))?
        };
        Ok(answer)
    }

    fn status(&mut self) -> io::Result<u16> {
        let line = self.line()?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut words = line.split(' ');
        match (words.next(), words.next().and_then(|status| status.parse().ok())) {
            (Some(version), Some(status)) if version.starts_with("HTTP/1.") => Ok(status),
            _ => Err(strange("no line with a status")),
        }
    }

    /// A line without its end; empty at the end of the headers.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        io::Read::by_ref(&mut self.0)
            .take(LINE_BYTES_MAX)
            .read_line(&mut line)?;
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    fn body(&mut self, length: u64) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(strange("a body that is too long"));
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
        self.0.read_exact(&mut body)?;
        Ok(body)
    }

    /// A body in chunks (RFC 9112 §7.1).
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let length = line.split(';').next().unwrap_or_default();
            let length = u64::from_str_radix(length.trim(), 16).map_err(|_| strange("a chunk without its length"))?;
            if length.saturating_add(body.len().try_into().unwrap_or(u64::MAX)) > BODY_BYTES_MAX {
                return Err(strange("a body that is too long"));
            }
            body.append(&mut self.body(length)?);
            // Behind a chunk stands the end of its line; behind the last one there may be trailers.
            while !self.line()?.is_empty() {}
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

fn strange(what: &str) -> io::Error {
    io::Error::other(format!("the server sends {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> io::Result<Vec<Answer>> {
        struct Played(&'static [u8]);
        impl Read for Played {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                self.0.read(bytes)
            }
        }
        impl Write for Played {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut connection = Connection(BufReader::new(Box::new(Played(text.as_bytes()))));
        let first = connection.ask(b"")?;
        Ok(vec![first, connection.ask(b"")?])
    }

    #[test]
    fn answers_follow_each_other_with_lengths_and_in_chunks() {
        let answers = read(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n\
             HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno",
        )
        .unwrap();
        assert_eq!((answers[0].status, answers[0].body.as_slice()), (200, &b"abcde"[..]));
        assert_eq!((answers[1].status, answers[1].body.as_slice()), (503, &b"no"[..]));
        assert_eq!(answers[1].header("retry-after"), Some("1"));
        let answers = read("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").unwrap();
        assert_eq!((answers[0].status, answers[1].status), (204, 200));
    }

    #[test]
    fn what_is_no_http_is_an_error() {
        for text in [
            "",
            "hello\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
