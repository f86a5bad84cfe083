//! The parameters of a request besides its statement, and its answer. Plain data; no frames.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use md5::{Digest, Md5};
use uuid::Uuid;

use helenus_base::budget::Share;
use helenus_engine::throughput::RequestUnits;
use helenus_schema::command::{ResultColumn, SchemaChange, Value};
use helenus_types::consistency::Consistency;

/// The state of a connection between its requests.
#[derive(Clone, Debug, Default)]
pub struct SessionState {
    /// The keyspace of unqualified names: the last USE. `None` means there was none.
    pub keyspace: Option<Arc<str>>,
    /// The user who logged in. `None` means no login is required.
    pub user: Option<Arc<str>>,
    /// The client's address; for traces.
    pub client: Option<SocketAddr>,
    /// Whether its requests are recorded in the audit log by the client's own port.
    pub is_recorded_elsewhere: bool,
    /// The virtual node that the client is connected to, from 0.
    pub node: usize,
    /// The connection's share of the memory of all connections. `None` means its answers are not bounded.
    pub share: Option<Arc<Share>>,
}

/// The values of a statement's markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// In the order of the markers.
    Positional(Vec<Value>),
    /// By name.
    Named(Vec<(String, Value)>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Positional(Vec::new())
    }
}

/// The parameters of a QUERY, EXECUTE or BATCH.
#[derive(Clone, Debug, Default)]
pub struct QueryParams {
    /// The consistency level.
    pub consistency: Consistency,
    /// `Serial` or `LocalSerial` for the decision of conditional statements. `None` means `Serial`.
    pub serial_consistency: Option<Consistency>,
    /// The values of the markers; a batch's members have their own.
    pub values: Values,
    /// Rows in a page. `None` means not paged.
    pub page_size_rows: Option<u32>,
    /// Where the page before ended. Untrusted input.
    pub paging_state: Option<Bytes>,
    /// The timestamp of writes that name none, µs since 1970-01-01 UTC. `None` means the node's.
    pub timestamp_micros: Option<i64>,
    /// The keyspace of unqualified names. `None` means the session's.
    pub keyspace: Option<Arc<str>>,
    /// The time at which expiry is evaluated, seconds since 1970-01-01 UTC. `None` means now.
    pub now_seconds: Option<i32>,
    /// The id under which the request is traced in `system_traces`. `None` means not traced.
    pub trace: Option<Uuid>,
    /// The custom payload: names and values, for clients that support them. Null values are empty.
    pub payload: Vec<(String, Bytes)>,
    /// Bytes of the request's body, for logs; 0 means not known.
    pub request_bytes: u32,
    /// Whether a page of the change feed gives the position after each row ([`FeedEnd`]).
    pub wants_feed_positions: bool,
}

impl QueryParams {
    /// A value of the custom payload.
    #[must_use]
    pub fn payload_value(&self, name: &str) -> Option<&Bytes> {
        self.payload
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

/// Names and types of the columns of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultMetadata {
    /// Keyspace of the table, the same for all columns.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The columns, in order.
    pub columns: Arc<Vec<ResultColumn>>,
    /// The protocol's result metadata id (version 5): the same for the same columns.
    pub id: [u8; 16],
}

impl ResultMetadata {
    /// Metadata of these columns, with their id.
    #[must_use]
    pub fn new(keyspace: &str, table: &str, columns: Arc<Vec<ResultColumn>>) -> Self {
        let mut digest = Md5::new();
        for column in columns.iter() {
            for part in [keyspace, table, &column.name, &format!("{:?}", column.ty)] {
                digest.update(part.as_bytes());
                digest.update([0]);
            }
        }
        Self {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            columns,
            id: digest.finalize().into(),
        }
    }
}

/// The answer to a statement.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer itself.
    pub kind: AnswerKind,
    /// Warnings for the client, in order.
    pub warnings: Vec<String>,
    /// Notes for a trace.
    pub notes: Vec<String>,
    /// The charge of the statement.
    pub charge: RequestUnits,
    /// What a page of the change feed says besides. `None` means another statement, or that it is not wanted.
    pub feed: Option<FeedEnd>,
}

/// What a page of the change feed says besides its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedEnd {
    /// The paging state after each row, or after each record of the full fidelity feed.
    pub states: Vec<Bytes>,
    /// The members of each record of the full fidelity feed, as JSON without braces; empty for the other one, whose
    /// records are the rows.
    pub records: Vec<String>,
    /// Whether the page ends at the last change. `false` also where request units are spent.
    pub is_at_end: bool,
}

impl Answer {
    /// An answer without warnings.
    #[must_use]
    pub const fn new(kind: AnswerKind) -> Self {
        Self {
            kind,
            warnings: Vec::new(),
            notes: Vec::new(),
            charge: RequestUnits::ZERO,
            feed: None,
        }
    }

    /// Bytes of its rows; 0 if it has none.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        match &self.kind {
            AnswerKind::Rows(rows) => rows.content.len(),
            _ => 0,
        }
    }
}

/// The kinds of answer: the protocol's kinds of RESULT except `Prepared`.
#[derive(Clone, Debug)]
pub enum AnswerKind {
    /// No content.
    Void,
    /// Rows.
    Rows(Rows),
    /// The connection's keyspace is now this one.
    SetKeyspace(String),
    /// The schema has changed.
    SchemaChange(SchemaChange),
}

/// Rows as encoded in a frame.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Columns.
    pub metadata: Arc<ResultMetadata>,
    /// How many rows `content` holds.
    pub row_count: u32,
    /// All cells, row by row, each as `[bytes]`: length i32 (−1 is null), then the value.
    pub content: Bytes,
    /// Where the next page starts. `None` means there is none.
    pub paging_state: Option<Bytes>,
}

impl Rows {
    /// The cells of each row.
    #[must_use]
    pub fn cells(&self) -> Vec<Vec<Option<Bytes>>> {
        let mut rest = self.content.clone();
        let columns = self.metadata.columns.len();
        let mut cell = || {
            let length = rest.split_to(rest.len().min(4));
            let length = <[u8; 4]>::try_from(length.as_ref()).map_or(-1, i32::from_be_bytes);
            let length = usize::try_from(length).ok()?;
            Some(rest.split_to(rest.len().min(length)))
        };
        (0..self.row_count)
            .map(|_| (0..columns).map(|_| cell()).collect())
            .collect()
    }
}
