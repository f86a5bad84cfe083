//! Requests to the admin port: HTTP/1.1 by hand, a connection each.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long a request may take.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Sends a request and reads its answer.
///
/// # Errors
/// The port does not answer, or it refuses: the text has the status and the reason.
pub(crate) fn ask(address: &str, token: &str, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
    let (status, text) =
        exchange(address, token, method, path, body).map_err(|error| format!("{method} {path}: {error}"))?;
    if !status.starts_with('2') {
        return Err(format!("{method} {path}: {status} {}", text.trim()));
    }
    serde_json::from_str(&text).map_err(|error| format!("{method} {path}: the answer is no JSON: {error}"))
}

fn exchange(
    address: &str,
    token: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    // HTTP/1.0: the answer is never in chunks, and ends with the connection.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, text) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).ok_or(io::ErrorKind::InvalidData)?;
    Ok((status.to_owned(), text.to_owned()))
}
