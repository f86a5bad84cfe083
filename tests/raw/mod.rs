//! A client of raw bytes, and a server with canned answers, for tests of the protocol itself.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "each test takes what it needs of this, and may stop at the first surprise"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus::server::{Bound, Events, Handled, Handler, Limits, Options, Server, Session};
use helenus_base::clock::Clock;
use helenus_types::wire::Header;
use helenus_types::wire::Version;
use helenus_types::wire::frame::segment::{Form, SegmentHeader, crc32};
use helenus_types::wire::request::{Params, Query, Request, Startup};
use helenus_types::wire::response::{Body, ChangeKind, ChangeTarget, ErrorBody, Event, Response, SchemaChange};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Answers a QUERY by its text.
pub struct Canned;

impl Handler for Canned {
    async fn handle(self: Arc<Self>, session: Arc<Session>, header: Header, body: Bytes) -> Handled {
        Handled::Answer(Self::answer(&session, header, body).await)
    }
}

impl Canned {
    async fn answer(session: &Session, header: Header, body: Bytes) -> Response {
        let request = match Request::parse(&header, &body) {
            Ok(request) => request,
            Err(malformed) => return ErrorBody::protocol(malformed.to_string()).into(),
        };
        let Request::Query(query) = request else {
            return Body::Void.into();
        };
        match query.text {
            "panic" => panic!("as asked"),
            "slow" => tokio::time::sleep(Duration::from_millis(300)).await,
            "panic later" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                panic!("as asked, later")
            }
            "never" => std::future::pending().await,
            "yield" => {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            "change" => {
                let change = SchemaChange {
                    kind: ChangeKind::Created,
                    keyspace: "ks".into(),
                    target: ChangeTarget::Keyspace,
                };
                session.events().emit(Event::Schema(change.clone()));
                return Body::SchemaChange(Box::new(change)).into();
            }
            text => {
                if let Some(size) = text.strip_prefix("bytes ") {
                    return Body::AuthChallenge(vec![7; size.parse().unwrap()].into()).into();
                }
            }
        }
        Body::Void.into()
    }
}

pub async fn start(limits: Limits) -> Server {
    start_with(Options {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        limits,
        ..Options::default()
    })
    .await
}

pub async fn start_with(options: Options) -> Server {
    let bound = Bound::bind(options).await.unwrap();
    bound.serve(&Arc::new(Canned), Arc::new(Events::default()), Clock::system())
}

/// A response, decoded as far as its header.
#[derive(Debug)]
pub struct Frame {
    pub version: u8,
    pub flags: u8,
    pub stream: i16,
    pub opcode: u8,
    pub body: Vec<u8>,
}

impl Frame {
    /// The body behind the custom payload, where there is one.
    fn behind_payload(&self) -> &[u8] {
        let mut rest = &self.body[..];
        if self.flags & 4 != 0 {
            let count = u16::from_be_bytes(rest[..2].try_into().unwrap());
            rest = &rest[2..];
            for _ in 0..count {
                let name = usize::from(u16::from_be_bytes(rest[..2].try_into().unwrap()));
                rest = &rest[2 + name..];
                let value = i32::from_be_bytes(rest[..4].try_into().unwrap());
                rest = &rest[4 + usize::try_from(value).unwrap_or(0)..];
            }
        }
        rest
    }

    /// Code and message of an ERROR.
    pub fn error(&self) -> (u32, String) {
        assert_eq!(self.opcode, 0, "{self:?}");
        let body = self.behind_payload();
        let code = u32::from_be_bytes(body[..4].try_into().unwrap());
        let length = usize::from(u16::from_be_bytes(body[4..6].try_into().unwrap()));
        (code, String::from_utf8(body[6..6 + length].to_vec()).unwrap())
    }
}

pub struct Client<S = TcpStream> {
    pub socket: S,
    pub version: Version,
    pub segments: bool,
    payload: Vec<u8>,
}

const PATIENCE: Duration = Duration::from_secs(5);

impl Client {
    pub async fn connect(address: SocketAddr, version: Version) -> Self {
        Self {
            socket: TcpStream::connect(address).await.unwrap(),
            version,
            segments: false,
            payload: Vec::new(),
        }
    }

    /// Connects and says STARTUP.
    pub async fn ready(address: SocketAddr, version: Version) -> Self {
        let mut client = Self::connect(address, version).await;
        client.start().await;
        client
    }
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Client<S> {
    pub fn over(socket: S, version: Version) -> Self {
        Self {
            socket,
            version,
            segments: false,
            payload: Vec::new(),
        }
    }

    pub async fn start(&mut self) {
        self.request(
            0,
            &Request::Startup(Startup {
                options: vec![("CQL_VERSION", "3.0.0")],
            }),
        )
        .await;
        assert_eq!(self.frame().await.unwrap().opcode, 2);
        self.segments = self.version == Version::V5;
    }

    pub async fn bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// Sends an envelope, in a segment if it must be.
    pub async fn envelope(&mut self, envelope: &[u8]) {
        if self.segments {
            self.bytes(&segment(envelope, true)).await;
        } else {
            self.bytes(envelope).await;
        }
    }

    pub async fn request(&mut self, stream: i16, request: &Request<'_>) {
        let mut out = Vec::new();
        request.write_frame(&mut out, self.version, stream, 0);
        self.envelope(&out).await;
    }

    pub async fn query(&mut self, stream: i16, text: &str) {
        self.query_with(stream, text, Params::default()).await;
    }

    /// A query that asks for a trace.
    pub async fn traced_query(&mut self, stream: i16, text: &str) {
        let params = Params::default();
        let mut out = Vec::new();
        Request::Query(Query { text, params }).write_frame(&mut out, self.version, stream, 2);
        self.envelope(&out).await;
    }

    pub async fn query_with(&mut self, stream: i16, text: &str, params: Params<'_>) {
        self.request(stream, &Request::Query(Query { text, params })).await;
    }

    pub async fn options(&mut self, stream: i16) {
        self.request(stream, &Request::Options).await;
    }

    async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        match timeout(PATIENCE, self.socket.read_exact(&mut bytes))
            .await
            .expect("an answer in time")
        {
            Ok(_) => Some(bytes),
            Err(_) => None,
        }
    }

    async fn envelope_bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        if !self.segments {
            return self.exactly(count).await;
        }
        while self.payload.len() < count {
            let head = self.exactly(Form::Plain.header_bytes()).await?;
            let header = SegmentHeader::read(Form::Plain, &head).unwrap().unwrap();
            let payload = self.exactly(header.length).await?;
            assert_eq!(self.exactly(4).await?, crc32(&payload).to_le_bytes());
            self.payload.extend(payload);
        }
        Some(self.payload.drain(..count).collect())
    }

    /// The next response; `None` when the server has closed.
    pub async fn frame(&mut self) -> Option<Frame> {
        let head = self.envelope_bytes(9).await?;
        let length = u32::from_be_bytes(head[5..9].try_into().unwrap()) as usize;
        let body = self.envelope_bytes(length).await?;
        Some(Frame {
            version: head[0],
            flags: head[1],
            stream: i16::from_be_bytes([head[2], head[3]]),
            opcode: head[4],
            body,
        })
    }

    pub async fn closed(&mut self) -> bool {
        self.frame().await.is_none()
    }
}

pub fn segment(payload: &[u8], self_contained: bool) -> Vec<u8> {
    let mut out = vec![0; Form::Plain.header_bytes()];
    SegmentHeader {
        length: payload.len(),
        uncompressed: None,
        self_contained,
    }
    .write(Form::Plain, &mut out);
    out.extend(payload);
    out.extend(crc32(payload).to_le_bytes());
    out
}

pub fn envelope(version: Version, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version.number(), flags];
    out.extend(stream.to_be_bytes());
    out.push(opcode);
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(body);
    out
}
