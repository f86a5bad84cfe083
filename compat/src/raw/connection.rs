//! One connection: envelopes out, envelopes in, one thread.

use super::envelope::Envelope;
use super::request::{self, Params, Prepared};
use super::{answer, opcode, put_bytes, segment};
use crate::{Error, Outcome, through};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for an answer.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest body that is read; a longer one is the server's mistake.
const BODY_BYTES_MAX: usize = 256 << 20;

/// Who logs in.
#[derive(Debug, Clone)]
pub struct Login {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
}

impl Login {
    /// The superuser that a server begins with.
    pub fn superuser() -> Self {
        Self {
            user: "cassandra".to_owned(),
            password: "cassandra".to_owned(),
        }
    }
}

/// A connection that has been started.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    version: u8,
    /// Whether segments surround envelopes by now.
    framed: bool,
    /// Bytes received.
    pending: Vec<u8>,
    /// How many of them have been taken; they go when more are received, so that taking many costs no copies.
    taken: usize,
}

impl Connection {
    /// Connects without a word said.
    ///
    /// # Errors
    /// When nobody listens at `address`.
    pub fn bare(address: &str, version: u8) -> Outcome<Self> {
        let stream = TcpStream::connect(address).map_err(Error::io(format!("connect to {address}")))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
        Ok(Self {
            stream,
            version,
            framed: false,
            pending: Vec::new(),
            taken: 0,
        })
    }

    /// Connects and says STARTUP.
    ///
    /// # Errors
    /// When nobody listens or the server refuses.
    pub fn open(address: &str, version: u8) -> Outcome<Self> {
        Self::login(address, version, None)
    }

    /// Connects, says STARTUP and who it is, if asked.
    ///
    /// # Errors
    /// When nobody listens, the server refuses, or it asks and `login` is `None`.
    pub fn login(address: &str, version: u8, login: Option<&Login>) -> Outcome<Self> {
        let mut connection = Self::bare(address, version)?;
        let started = connection.ask(opcode::STARTUP, &request::startup(&[("CQL_VERSION", "3.0.0")]))?;
        connection.framed = version >= 5 && started.opcode != opcode::ERROR;
        match (started.opcode, login) {
            (opcode::READY, _) => Ok(connection),
            (opcode::AUTHENTICATE, Some(login)) => {
                let mut body = Vec::new();
                put_bytes(&mut body, format!("\0{}\0{}", login.user, login.password).as_bytes());
                let answer = connection.ask(opcode::AUTH_RESPONSE, &body)?;
                if answer.opcode == opcode::AUTH_SUCCESS {
                    Ok(connection)
                } else {
                    Err(refused("log in", &answer))
                }
            }
            _ => Err(refused("STARTUP", &started)),
        }
    }

    /// Version it speaks.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// The socket itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Appends a request as it goes on the wire, so that several can be sent at once.
    pub fn put(&self, out: &mut Vec<u8>, stream: i16, opcode: u8, body: &[u8]) {
        let mut envelope = Vec::with_capacity(9 + body.len());
        envelope.extend_from_slice(&[self.version, 0]);
        envelope.extend_from_slice(&stream.to_be_bytes());
        envelope.push(opcode);
        put_bytes(&mut envelope, body);
        if self.framed {
            segment::put_envelope(out, &envelope);
        } else {
            out.extend_from_slice(&envelope);
        }
    }

    /// Whether bytes have arrived that were not received yet. Does not wait.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn has_received(&self) -> Outcome<bool> {
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        Ok(matches!(peeked, Ok(1..)))
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the server has gone.
    pub fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        through::sends()?;
        self.stream.write_all(bytes).map_err(Error::io("send"))
    }

    /// Takes a whole envelope out of what has been received already.
    ///
    /// # Errors
    /// When its length cannot be.
    pub fn take(&mut self) -> Outcome<Option<Envelope>> {
        let pending = self.pending.get(self.taken..).unwrap_or_default();
        let Some((head, rest)) = pending.split_at_checked(9) else {
            return Ok(None);
        };
        let &[version, flags, s1, s2, opcode, l1, l2, l3, l4] = head else {
            return Ok(None);
        };
        let len = usize::try_from(i32::from_be_bytes([l1, l2, l3, l4]))
            .ok()
            .filter(|len| *len <= BODY_BYTES_MAX)
            .ok_or(Error::Malformed("length of a body"))?;
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let envelope = Envelope {
            version: version & 0x7F,
            flags,
            stream: i16::from_be_bytes([s1, s2]),
            opcode,
            body: body.to_vec(),
        };
        self.taken += 9 + len;
        Ok(Some(envelope))
    }

    /// Waits for more bytes.
    ///
    /// # Errors
    /// When the server has gone, is silent too long, or a checksum is wrong.
    pub fn fill(&mut self) -> Outcome<()> {
        self.pending.drain(..self.taken);
        self.taken = 0;
        if self.framed {
            return segment::read(&mut self.stream, &mut self.pending);
        }
        let mut chunk = [0u8; 65536];
        let got = self.stream.read(&mut chunk).map_err(Error::io("receive"))?;
        if got == 0 {
            return Err(Error::Io {
                context: "receive".to_owned(),
                source: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the server closed the connection"),
            });
        }
        self.pending.extend(chunk.iter().take(got));
        Ok(())
    }

    /// The next envelope.
    ///
    /// # Errors
    /// As [`Connection::fill`].
    pub fn receive(&mut self) -> Outcome<Envelope> {
        loop {
            if let Some(envelope) = self.take()? {
                return Ok(envelope);
            }
            self.fill()?;
        }
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn ask(&mut self, opcode: u8, body: &[u8]) -> Outcome<Envelope> {
        let mut bytes = Vec::new();
        self.put(&mut bytes, 1, opcode, body);
        self.send(&bytes)?;
        loop {
            let answer = self.receive()?;
            if answer.stream >= 0 {
                return Ok(answer);
            }
        }
    }

    /// Runs a statement; the answer as plain data.
    ///
    /// # Errors
    /// When the connection breaks; a refusal is an answer.
    pub fn query(&mut self, text: &str, params: &Params) -> Outcome<Value> {
        let body = request::query(self.version, text, params);
        answer::plain(&self.ask(opcode::QUERY, &body)?)
    }

    /// Runs a statement that has to succeed.
    ///
    /// # Errors
    /// When the connection breaks or the server refuses.
    pub fn must(&mut self, text: &str) -> Outcome<Value> {
        let value = self.query(text, &Params::default())?;
        succeeded(text, value)
    }

    /// Prepares a statement; its name and the whole answer.
    ///
    /// # Errors
    /// When the connection breaks or the server refuses.
    pub fn prepare(&mut self, text: &str) -> Outcome<(Prepared, Value)> {
        let body = request::prepare(self.version, text, None);
        let value = succeeded(text, answer::plain(&self.ask(opcode::PREPARE, &body)?)?)?;
        Ok((prepared_of(&value), value))
    }

    /// Executes what was prepared; the answer as plain data.
    ///
    /// # Errors
    /// When the connection breaks; a refusal is an answer.
    pub fn execute(&mut self, prepared: &Prepared, params: &Params) -> Outcome<Value> {
        let body = request::execute(self.version, prepared, params);
        answer::plain(&self.ask(opcode::EXECUTE, &body)?)
    }
}

/// The ids in the answer to a PREPARE.
pub fn prepared_of(value: &Value) -> Prepared {
    let bytes = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .and_then(super::unhex)
            .unwrap_or_default()
    };
    Prepared {
        id: bytes("id"),
        metadata_id: bytes("metadata_id"),
    }
}

/// The answer, unless it is a refusal.
///
/// # Errors
/// [`Error::Refused`] with the server's words.
pub fn succeeded(doing: &str, value: Value) -> Outcome<Value> {
    let Some(code) = value.get("code").and_then(Value::as_str) else {
        return Ok(value);
    };
    let message = value
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    Err(Error::Refused {
        doing: doing.to_owned(),
        code: code.to_owned(),
        message,
    })
}

fn refused(doing: &str, answer: &Envelope) -> Error {
    match answer::plain(answer).map(|value| succeeded(doing, value)) {
        Ok(Err(error)) | Err(error) => error,
        Ok(Ok(value)) => Error::failed(format!("{doing}: {value}")),
    }
}
