//! `helenus health`: whether a server answers, for scripts and images.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};

use super::{Failure, cqlsh, servers};
use crate::config::{Config, Values};
use crate::server::admin::client::{self, Place};
use helenus_base::clock::Clock;

/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// Version 4 of the protocol, in requests and in answers (native_protocol_v4.spec, 2.1).
const VERSION: [u8; 2] = [4, 0x84];

/// Codes of messages (native_protocol_v4.spec, 2.4).
const ERROR: u8 = 0;
const STARTUP: u8 = 1;
const READY: u8 = 2;
const AUTHENTICATE: u8 = 3;
const OPTIONS: u8 = 5;
const SUPPORTED: u8 = 6;
const QUERY: u8 = 7;
const RESULT: u8 = 8;

/// The body of STARTUP: one option (4.1.1).
const STARTUP_BODY: &[u8] = b"\0\x01\0\x0bCQL_VERSION\0\x053.0.0";

/// A question of those that a driver asks when it connects. A server that does not hold the lease of its bucket refuses it.
const QUESTION: &str = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name='system'";

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u32 = 65_536;

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("TIME")
                .value_parser(duration)
                .default_value("0s")
                .help("How long to wait until the server is ready, such as 30s or 500ms"),
        )
        .after_help("Exit code 0: the server is ready. 1: it is not; standard error says why.")
}

/// A time with its unit: `30s`, `500ms`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("expected a number and ms, s or m, such as 30s, not {text:?}");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" | "" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err(wrong()),
    }
}

/// Checks until the server is ready or the time is over.
///
/// # Errors
/// The server is not ready; the error says why.
pub(super) fn run(values: &Values, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let wait = matches.get_one::<Duration>("wait").copied().unwrap_or_default();
    let clock = Clock::system();
    let deadline = clock.monotonic() + wait;
    loop {
        match look(values) {
            Ok(()) => return Ok(ExitCode::SUCCESS),
            Err(error) if clock.monotonic() >= deadline => return Err(format!("not ready: {error}").into()),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Queries the admin port if it is known: that writes and reads a record in each store. Otherwise asks as a driver does, as
/// far as that is possible without a login.
fn look(values: &Values) -> Result<(), Failure> {
    if let Some(admin) = values.admin_listen()? {
        return ask_admin(admin.into());
    }
    let config = Config::new(values)?;
    if let Some(place) = servers::admin_socket(values, &config)? {
        return ask_admin(place);
    }
    let (cql, tls) = match servers::running_or_dev(values, &config)? {
        Some(record) => match record.admin {
            Some(admin) => return ask_admin(admin.parse::<SocketAddr>()?.into()),
            None => (record.cql, record.tls),
        },
        None => {
            servers::refuse_other(values, &config)?;
            servers::addresses(&config)
        }
    };
    match (cql, tls) {
        (Some(cql), _) => ask_cql(cql.parse()?),
        (None, Some(tls)) => ask_tls(tls.parse()?),
        (None, None) => Err("no address to connect to: give --listen ADDRESS:PORT as to the server".into()),
    }
}

fn ask_admin(place: Place) -> Result<(), Failure> {
    match client::get(place.clone(), "/readyz")? {
        (200, _) => Ok(()),
        (status, body) => Err(format!("{place}/readyz answers {status}: {}", body.trim()).into()),
    }
}

fn ask_cql(address: SocketAddr) -> Result<(), Failure> {
    let mut socket = servers::connect(address)?;
    let answer = ask(&mut socket).map_err(|error| format!("no answer from {address}: {error}"))?;
    check(address, answer)
}

/// Asks over TLS, with any certificate: the questions carry no secret. A server that wants the client's certificate says so behind the
/// handshake, and that is all that it says to a client without one.
fn ask_tls(address: SocketAddr) -> Result<(), Failure> {
    let socket = servers::connect(address)?;
    let mut socket = cqlsh::with_any_certificate(socket, &address.ip().to_string())?;
    match ask(&mut socket) {
        Ok(answer) => check(address, answer),
        Err(error) if cqlsh::is_certificate_required(&error) => Ok(()),
        Err(error) => Err(format!("no answer from {address} over TLS: {error}").into()),
    }
}

/// What a server answered.
enum Answer {
    Ready,
    /// It refused, in these words.
    Refused(String),
    /// Not in the protocol.
    Strange,
}

/// Asks what a driver asks, until the server wants a login.
fn ask(socket: &mut (impl Read + Write)) -> io::Result<Answer> {
    let mut query = Vec::from(u32::try_from(QUESTION.len()).unwrap_or(0).to_be_bytes());
    query.extend_from_slice(QUESTION.as_bytes());
    // Consistency ONE, no flags.
    query.extend_from_slice(&[0, 1, 0]);
    for (code, body, expected) in [
        (OPTIONS, &[][..], SUPPORTED),
        (STARTUP, STARTUP_BODY, READY),
        (QUERY, &query, RESULT),
    ] {
        match exchange(socket, code, body)? {
            Some((found, _)) if found == expected => {}
            Some((AUTHENTICATE, _)) => break,
            // An error's code, the length of its text, its text (9).
            Some((ERROR, body)) => {
                let text = body.get(6..).unwrap_or_default();
                return Ok(Answer::Refused(String::from_utf8_lossy(text).into_owned()));
            }
            _ => return Ok(Answer::Strange),
        }
    }
    Ok(Answer::Ready)
}

/// Sends a message; the code and the body of the answer. `None` means that it is not in the protocol.
fn exchange(socket: &mut (impl Read + Write), code: u8, body: &[u8]) -> io::Result<Option<(u8, Vec<u8>)>> {
    let [request, response] = VERSION;
    let mut frame = vec![request, 0, 0, 0, code];
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(0).to_be_bytes());
    frame.extend_from_slice(body);
    socket.write_all(&frame)?;
    socket.flush()?;
    let mut head = [0; 9];
    socket.read_exact(&mut head)?;
    let [version, _, _, _, found, length @ ..] = head;
    let length = u32::from_be_bytes(length);
    if version != response || length > ANSWER_BYTES_MAX {
        return Ok(None);
    }
    let mut body = Vec::new();
    io::Read::by_ref(socket).take(length.into()).read_to_end(&mut body)?;
    Ok(Some((found, body)))
}

fn check(address: SocketAddr, answer: Answer) -> Result<(), Failure> {
    match answer {
        Answer::Ready => Ok(()),
        Answer::Refused(text) => Err(format!("{address} answers: {text}").into()),
        Answer::Strange => {
            Err(format!("{address} does not answer like a CQL server: is it the port of another program?").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("7", 7_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "3h", "-1s"] {
            assert!(duration(text).unwrap_err().contains("30s"), "{text}");
        }
    }
}
