//! A client of another server's admin port: as much HTTP as `helenus status` and `helenus feed` need. Blocks.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::SOCKET;
use crate::server::socket;

/// Longest time of each step.
const WITHIN: Duration = Duration::from_secs(5);

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The location of an admin port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an address.
    Address(SocketAddr),
    /// The socket in this data directory.
    Directory(PathBuf),
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(formatter, "{address}"),
            Self::Directory(directory) => write!(formatter, "{}", directory.join(SOCKET).display()),
        }
    }
}

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

impl Place {
    fn connect(&self) -> std::io::Result<Box<dyn Stream>> {
        match self {
            Self::Address(address) => {
                let socket = TcpStream::connect_timeout(address, WITHIN)?;
                socket.set_read_timeout(Some(WITHIN))?;
                socket.set_write_timeout(Some(WITHIN))?;
                Ok(Box::new(socket))
            }
            Self::Directory(directory) => {
                let (_handle, path) = socket::path(directory, SOCKET)?;
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(WITHIN))?;
                socket.set_write_timeout(Some(WITHIN))?;
                Ok(Box::new(socket))
            }
        }
    }

    /// Whether a server listens there.
    #[must_use]
    pub fn is_listened_on(&self) -> bool {
        self.connect().is_ok()
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No answer.
    #[error("no answer from the admin port {place}: {source}{}", next_step(source))]
    Io {
        /// The port.
        place: Place,
        /// The cause.
        source: std::io::Error,
    },
    /// The server has roles, and the request has no login.
    #[error(
        "the admin port {place} asks for a login: give --admin-token TEXT, or --data as to the server if that is a directory, whose record has the token"
    )]
    Login {
        /// The port.
        place: Place,
    },
    /// The server cannot answer now.
    #[error("the server at {place} cannot answer now: {what}")]
    Unavailable {
        /// The port.
        place: Place,
        /// The reason, in the server's words.
        what: String,
    },
    /// The answer is not that of an admin port, or comes from another version.
    #[error("{place} does not answer like an admin port: {what}")]
    Strange {
        /// The port.
        place: Place,
        /// What is wrong.
        what: String,
    },
}

/// What to do if nothing listens there.
fn next_step(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            "; start the server with --admin-listen ADDRESS:PORT, or give its address"
        }
        _ => "",
    }
}

/// Requests one page. Returns the status and the body.
///
/// # Errors
/// No answer, or none in HTTP.
pub fn get(place: impl Into<Place>, path: &str) -> Result<(u16, String), ClientError> {
    get_as(&place.into(), None, path)
}

/// Requests one page, with the server's token if it is known. Returns the status and the body.
///
/// # Errors
/// No answer, or none in HTTP.
pub fn get_as(place: &Place, token: Option<&str>, path: &str) -> Result<(u16, String), ClientError> {
    let io = |source| ClientError::Io {
        place: place.clone(),
        source,
    };
    let strange = |what: &str| strange(place, what);
    let socket = ask(place, token, path, Version::Http11)?;
    let mut answer = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(io)?;
    let answer = String::from_utf8(answer).map_err(|_| strange("no text"))?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| strange("no HTTP"))?;
    let status = status(head).ok_or_else(|| strange("no HTTP"))?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    if length.is_some_and(|length| length != body.len()) {
        return Err(strange("the answer was cut off"));
    }
    Ok((status, body.to_owned()))
}

/// The versions of HTTP that a request may have.
#[derive(Clone, Copy)]
enum Version {
    /// The answer to a stream's request has no chunks: it ends when the connection does.
    Http10,
    Http11,
}

/// Sends the request of a page, and returns the connection with its answer.
fn ask(place: &Place, token: Option<&str>, path: &str, version: Version) -> Result<Box<dyn Stream>, ClientError> {
    let io = |source| ClientError::Io {
        place: place.clone(),
        source,
    };
    let mut socket = place.connect().map_err(io)?;
    let host = match place {
        Place::Address(address) => address.to_string(),
        Place::Directory(_) => "localhost".to_owned(),
    };
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let authorization = authorization.unwrap_or_default();
    let version = match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    };
    let request = format!("GET {path} {version}\r\nHost: {host}\r\n{authorization}Connection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).map_err(io)?;
    Ok(socket)
}

/// The status of an answer's head.
fn status(head: &str) -> Option<u16> {
    let rest = head
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| head.strip_prefix("HTTP/1.0 "))?;
    rest.get(..3)?.parse().ok()
}

fn strange(place: &Place, what: &str) -> ClientError {
    ClientError::Strange {
        place: place.clone(),
        what: what.to_owned(),
    }
}

/// The JSON of one page.
fn page(place: &Place, token: Option<&str>, path: &str) -> Result<Value, ClientError> {
    let strange = |what: String| ClientError::Strange {
        place: place.clone(),
        what,
    };
    match get_as(place, token, path)? {
        (401, _) => Err(ClientError::Login { place: place.clone() }),
        (200, body) => serde_json::from_str(&body).map_err(|error| strange(format!("{path}: {error}"))),
        (503, body) => Err(ClientError::Unavailable {
            place: place.clone(),
            what: body.trim().to_owned(),
        }),
        (status, _) => Err(strange(format!("{path}: status {status}"))),
    }
}

/// Requests all that `helenus status` prints: the answers of the routes, by their last names.
///
/// # Errors
/// No answer, or something else than an admin port.
pub fn everything(place: impl Into<Place>, token: Option<&str>) -> Result<Value, ClientError> {
    let place = place.into();
    let page = |path| page(&place, token, path);
    let (status, tables) = (page("/api/status")?, page("/api/tables")?);
    let (partitions, keys) = (page("/api/partitions")?, page("/api/keys")?);
    Ok(json!({ "status": status, "tables": tables, "partitions": partitions, "keys": keys }))
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its kind; empty for a record.
    pub kind: String,
    /// The position after it.
    pub id: String,
    /// Its data. Empty means that only the position is new.
    pub data: String,
}

/// Reads a stream of events until it ends, or until `take` wants no more. Returns the status, and the body of a refusal.
///
/// # Errors
/// No answer, or none in HTTP; the stream was cut off; `take` fails.
pub fn events<E: From<ClientError>>(
    place: &Place,
    token: Option<&str>,
    path: &str,
    mut take: impl FnMut(Event) -> Result<(), E>,
) -> Result<(u16, String), E> {
    let io = |source| ClientError::Io {
        place: place.clone(),
        source,
    };
    let mut socket = BufReader::new(ask(place, token, path, Version::Http10)?);
    let mut line = String::new();
    socket.read_line(&mut line).map_err(io)?;
    let status = status(&line).ok_or_else(|| strange(place, "no HTTP"))?;
    while !line.trim_end().is_empty() {
        line.clear();
        socket.read_line(&mut line).map_err(io)?;
    }
    if status != 200 {
        let mut body = String::new();
        socket.take(ANSWER_BYTES_MAX).read_to_string(&mut body).map_err(io)?;
        return Ok((status, body));
    }
    let mut event = Event::default();
    loop {
        line.clear();
        let bytes = (&mut socket).take(ANSWER_BYTES_MAX).read_line(&mut line).map_err(io)?;
        let is_whole = line.ends_with('\n');
        let text = line.trim_end_matches('\n');
        match text.split_once(": ") {
            _ if bytes == 0 => return Ok((status, String::new())),
            _ if !is_whole => return Err(strange(place, "the answer was cut off").into()),
            Some(("event", kind)) => kind.clone_into(&mut event.kind),
            Some(("id", id)) => id.clone_into(&mut event.id),
            Some(("data", data)) => data.clone_into(&mut event.data),
            _ if text.is_empty() => take(std::mem::take(&mut event))?,
            _ => return Err(strange(place, "no event").into()),
        }
    }
}
