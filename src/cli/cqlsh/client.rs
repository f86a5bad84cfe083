//! A blocking connection of native protocol version 4 (native_protocol_v4.spec): as much of a driver as a shell needs.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use helenus_types::types::{CqlType, NATIVE_TYPES, UserType};

/// Version 4, from a client and from a server.
const REQUEST: u8 = 0x04;
const RESPONSE: u8 = 0x84;

/// Opcodes (§2.4).
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const AUTHENTICATE: u8 = 0x03;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const AUTH_RESPONSE: u8 = 0x0F;
const AUTH_SUCCESS: u8 = 0x10;

/// The flag of a header by which a trace is asked for and told (§2.2).
const TRACED: u8 = 0x02;

/// Most bytes of a response: a server's default is 16 MiB for requests, and pages are smaller.
const BODY_BYTES_MAX: u32 = 256 << 20;

/// Which certificates a connection trusts.
#[derive(Debug)]
pub(super) enum Trust {
    /// No TLS.
    Plain,
    /// TLS with one of these certificates, as PEM.
    Certificates(Vec<u8>),
    /// TLS with any certificate: it stops eavesdroppers, not impostors.
    Any,
}

/// The address and credentials of a server.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    /// User and password; `None`: no login.
    pub(super) login: Option<(String, String)>,
    pub(super) trust: Trust,
    pub(super) connect_within: Duration,
    pub(super) answer_within: Duration,
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ClientError {
    /// The server rejects the statement.
    #[error("{message}")]
    Refused {
        /// The protocol's code.
        code: i32,
        /// The server's text.
        message: String,
        /// For code 0x2400: the keyspace and the existing table, which may be empty.
        exists: (String, String),
    },
    /// The connection.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// No first response. A TLS server answers a plain client with an alert that is shorter than a frame's header.
    #[error("the server closed the connection; its port may want TLS: give --ssl")]
    Closed,
    /// TLS.
    #[error("TLS: {0}")]
    Tls(String),
}

/// A column of a result.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) ty: CqlType,
}

/// The result of a statement.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Empty if the statement returns no rows.
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Option<Vec<u8>>>>,
    /// The paging state; `None` means that this is the last page.
    pub(super) next: Option<Vec<u8>>,
    pub(super) warnings: Vec<String>,
    /// The keyspace to use from now on; `None` means that it is unchanged.
    pub(super) keyspace: Option<String>,
    /// The id of its trace; `None` means that it was not traced.
    pub(super) trace: Option<[u8; 16]>,
}

/// The parameters of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) consistency: u16,
    pub(super) serial_consistency: u16,
    /// The page size; `None` means all rows at once.
    pub(super) page_rows: Option<i32>,
    pub(super) from: Option<&'a [u8]>,
    pub(super) is_traced: bool,
}

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A connection that is ready for statements.
pub(super) struct Connection(Box<dyn Stream>);

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the login.
    pub(super) fn open(target: &Target) -> Result<Self, ClientError> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        let mut found = None;
        for address in (target.host.as_str(), target.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, target.connect_within) {
                Ok(socket) => {
                    found = Some(socket);
                    break;
                }
                Err(error) => last = error,
            }
        }
        let socket = found.ok_or(last)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(target.answer_within))?;
        socket.set_write_timeout(Some(target.answer_within))?;
        let mut connection = match &target.trust {
            Trust::Plain => Self(Box::new(socket)),
            Trust::Certificates(pem) => Self(Box::new(with_tls(socket, &target.host, Some(pem))?)),
            Trust::Any => Self(Box::new(with_tls(socket, &target.host, None)?)),
        };
        match (connection.start(target.login.as_ref()), &target.trust) {
            (Err(ClientError::Io(error)), Trust::Plain) if is_closed(&error) => Err(ClientError::Closed),
            (started, _) => started.map(|()| connection),
        }
    }

    fn start(&mut self, login: Option<&(String, String)>) -> Result<(), ClientError> {
        let mut body = Vec::new();
        put_short(&mut body, 1);
        put_string(&mut body, "CQL_VERSION");
        put_string(&mut body, "3.0.0");
        let (opcode, _) = self.ask(STARTUP, 0, &body)?;
        if opcode == READY {
            return Ok(());
        }
        let Some((user, password)) = login.filter(|_| opcode == AUTHENTICATE) else {
            return Err(io::Error::other("Remote end requires authentication").into());
        };
        let token = [&[0], user.as_bytes(), &[0], password.as_bytes()].concat();
        let mut body = Vec::new();
        put_bytes(&mut body, &token);
        match self.ask(AUTH_RESPONSE, 0, &body)? {
            (AUTH_SUCCESS, _) => Ok(()),
            (opcode, _) => Err(strange(opcode)),
        }
    }

    /// Requests one page.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub(super) fn query(&mut self, statement: &str, asked: Asked<'_>) -> Result<Page, ClientError> {
        let mut body = Vec::new();
        put_bytes(&mut body, statement.as_bytes());
        put_short(&mut body, asked.consistency);
        // §4.1.4: 0x04 page size, 0x08 paging state, 0x10 serial consistency.
        let flags = u8::from(asked.page_rows.is_some()) << 2 | u8::from(asked.from.is_some()) << 3 | 0x10;
        body.push(flags);
        if let Some(rows) = asked.page_rows {
            body.extend(rows.to_be_bytes());
        }
        if let Some(from) = asked.from {
            put_bytes(&mut body, from);
        }
        put_short(&mut body, asked.serial_consistency);
        match self.ask(QUERY, u8::from(asked.is_traced) * TRACED, &body)? {
            (RESULT, answer) => Ok(answer.page().ok_or_else(cut_off)?),
            (opcode, _) => Err(strange(opcode)),
        }
    }

    /// Sends one request and reads its response. An ERROR response becomes an `Err`.
    fn ask(&mut self, opcode: u8, flags: u8, body: &[u8]) -> Result<(u8, Answer), ClientError> {
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let mut frame = vec![REQUEST, flags, 0, 0, opcode];
        frame.extend(length.to_be_bytes());
        frame.extend(body);
        self.0.write_all(&frame)?;
        self.0.flush()?;
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let [version, flags, _, _, opcode, length @ ..] = head;
        let length = u32::from_be_bytes(length);
        if version != RESPONSE || length > BODY_BYTES_MAX {
            return Err(io::Error::other("this is no server of the native protocol, version 4").into());
        }
        let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.0.read_exact(&mut body)?;
        let mut answer = Answer {
            body,
            at: 0,
            warnings: Vec::new(),
            trace: None,
        };
        answer.prefix(flags).ok_or_else(cut_off)?;
        if opcode != ERROR {
            return Ok((opcode, answer));
        }
        let code = answer.int().ok_or_else(cut_off)?;
        let message = answer.string().ok_or_else(cut_off)?;
        let exists = match code {
            super::errors::ALREADY_EXISTS => (answer.string().unwrap_or_default(), answer.string().unwrap_or_default()),
            _ => Default::default(),
        };
        Err(ClientError::Refused { code, message, exists })
    }
}

/// A stream over TLS to a server of any certificate.
///
/// # Errors
/// The host is neither a name nor an address.
pub(in crate::cli) fn with_any_certificate(
    socket: TcpStream,
    host: &str,
) -> Result<impl Read + Write + use<>, ClientError> {
    with_tls(socket, host, None)
}

/// A stream over TLS to a server with one of these certificates, as PEM.
///
/// # Errors
/// The host is neither a name nor an address, or the text has no certificates.
pub(in crate::cli) fn with_certificates(
    socket: TcpStream,
    host: &str,
    pem: &[u8],
) -> Result<impl Read + Write + use<>, ClientError> {
    with_tls(socket, host, Some(pem))
}

/// Whether a TLS server refuses a client because it shows no certificate.
pub(in crate::cli) fn is_certificate_required(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(
        error,
        Some(rustls::Error::AlertReceived(
            rustls::AlertDescription::CertificateRequired
        ))
    )
}

fn strange(opcode: u8) -> ClientError {
    io::Error::other(format!("the server answers with the opcode {opcode}")).into()
}

/// Whether the other side ended the connection.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe
    )
}

fn cut_off() -> io::Error {
    io::Error::other("a response of the server is cut off")
}

/// `pem`: the certificates to trust; `None`: any.
fn with_tls(socket: TcpStream, host: &str, pem: Option<&[u8]>) -> Result<impl Stream + use<>, ClientError> {
    let tls = |error: &dyn std::fmt::Display| ClientError::Tls(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(&error))?;
    let config = match pem {
        Some(pem) => {
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| tls(&error))?;
                roots.add(certificate).map_err(|error| tls(&error))?;
            }
            config.with_root_certificates(roots)
        }
        None => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
    };
    let config = config.with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| tls(&error))?;
    let session = rustls::ClientConnection::new(Arc::new(config), name).map_err(|error| tls(&error))?;
    Ok(rustls::StreamOwned::new(session, socket))
}

/// A verifier for SSL_VALIDATE=false. It still checks signatures, so that the server holds the key of the certificate
/// it shows.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn put_short(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_be_bytes());
}

/// A short `[string]` written by this client.
fn put_string(out: &mut Vec<u8>, text: &str) {
    put_short(out, u16::try_from(text.len()).unwrap_or(u16::MAX));
    out.extend(text.as_bytes());
}

/// A `[bytes]` or a `[long string]`, which have the same encoding. Values over 2 GiB cannot be encoded; the server
/// rejects the length.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
    out.extend(bytes);
}

/// A response's body, read from the front. `None` always means that the body is truncated.
struct Answer {
    body: Vec<u8>,
    at: usize,
    warnings: Vec<String>,
    trace: Option<[u8; 16]>,
}

impl Answer {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let from = self.at;
        self.at = from.checked_add(count)?;
        self.body.get(from..self.at)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<String> {
        let length = self.short()?;
        Some(String::from_utf8_lossy(self.take(length.into())?).into_owned())
    }

    /// `Some(None)`: null.
    fn bytes(&mut self) -> Option<Option<Vec<u8>>> {
        match usize::try_from(self.int()?) {
            Ok(length) => Some(Some(self.take(length)?.to_vec())),
            Err(_) => Some(None),
        }
    }

    /// The parts before the body proper (§2.2): 0x02 a trace's id, 0x08 warnings, 0x04 a custom payload.
    fn prefix(&mut self, flags: u8) -> Option<()> {
        if flags & TRACED != 0 {
            self.trace = Some(self.take(16)?.try_into().ok()?);
        }
        if flags & 0x08 != 0 {
            for _ in 0..self.short()? {
                let warning = self.string()?;
                self.warnings.push(warning);
            }
        }
        if flags & 0x04 != 0 {
            for _ in 0..self.short()? {
                self.string()?;
                self.bytes()?;
            }
        }
        Some(())
    }

    /// A RESULT (§4.2.5).
    fn page(mut self) -> Option<Page> {
        let mut page = Page::default();
        match self.int()? {
            2 => self.rows(&mut page)?,
            3 => page.keyspace = Some(self.string()?),
            _ => {}
        }
        page.warnings = self.warnings;
        page.trace = self.trace;
        Some(page)
    }

    fn rows(&mut self, page: &mut Page) -> Option<()> {
        let flags = self.int()?;
        let columns = self.int()?;
        // 0x02: there are more pages. 0x01: one keyspace and table for all columns. 0x04: no columns.
        if flags & 0x02 != 0 {
            page.next = self.bytes()?;
        }
        let is_global = flags & 0x01 != 0;
        if is_global {
            self.string()?;
            self.string()?;
        }
        if flags & 0x04 == 0 {
            for _ in 0..columns {
                if !is_global {
                    self.string()?;
                    self.string()?;
                }
                let name = self.string()?;
                let ty = self.option()?;
                page.columns.push(Column { name, ty });
            }
        }
        for _ in 0..self.int()? {
            let mut row = Vec::new();
            for _ in 0..columns {
                row.push(self.bytes()?);
            }
            page.rows.push(row);
        }
        Some(())
    }

    /// A type (§4.2.5.2).
    fn option(&mut self) -> Option<CqlType> {
        let id = self.short()?;
        Some(match id {
            0 => {
                let class = self.string()?;
                CqlType::parse_marshal(&class).unwrap_or_else(|_| CqlType::Custom(class.into()))
            }
            0x20 => CqlType::List(Arc::new(self.option()?)),
            0x21 => CqlType::Map(Arc::new(self.option()?), Arc::new(self.option()?)),
            0x22 => CqlType::Set(Arc::new(self.option()?)),
            0x30 => {
                let (keyspace, name) = (self.string()?, self.string()?);
                let mut fields = Vec::new();
                for _ in 0..self.short()? {
                    fields.push((self.string()?, self.option()?));
                }
                CqlType::User(Arc::new(UserType { keyspace, name, fields }))
            }
            0x31 => {
                let mut types = Vec::new();
                for _ in 0..self.short()? {
                    types.push(self.option()?);
                }
                CqlType::Tuple(types.into())
            }
            id => CqlType::Native(NATIVE_TYPES.iter().find(|row| row.option_id == id)?.native),
        })
    }
}
