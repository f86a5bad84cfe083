//! Tracing: the steps of a request, for `system_traces`.
//!
//! A traced request collects its events. When it is done, session and events are written as ordinary rows, before the
//! answer is sent, so that a client that queries at once finds them. They live for a day, as in Cassandra.
//!
//! Differs: the events are those of the coordinator's steps; events of replicas, memtables and caches are absent.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;
use uuid::timestamp::context::ContextV1;

use super::secrets;
use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, QueryParams, SessionState, Values};
use helenus_schema::command::Value;
use helenus_types::wire::Consistency;
use helenus_types::wire::request::Params;
use helenus_types::wire::write;

const INSERT_SESSION: &str = "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, \
    coordinator_port, duration, parameters, request, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL 86400";

const INSERT_EVENT: &str = "INSERT INTO system_traces.events (session_id, event_id, activity, source, source_port, \
    source_elapsed, thread) VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL 86400";

/// Begins and stores traces.
pub(super) struct Tracer {
    database: Arc<Database>,
    clock: Clock,
    context: ContextV1,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tracer").finish_non_exhaustive()
    }
}

/// One request's trace.
pub(super) struct Trace {
    id: Uuid,
    request: &'static str,
    parameters: Vec<(Cow<'static, str>, String)>,
    events: Vec<(Duration, String)>,
    started_micros: i64,
    started: Duration,
    clock: Clock,
    /// Whether a statement of it has a secret.
    has_secret: bool,
}

impl Trace {
    /// The id by which the client queries it.
    pub(super) const fn id(&self) -> Uuid {
        self.id
    }

    /// Records the step that has been reached.
    pub(super) fn event(&mut self, activity: &str) {
        self.events
            .push((self.clock.monotonic().saturating_sub(self.started), activity.to_owned()));
    }

    /// Records the statement, without its password.
    pub(super) fn statement(&mut self, text: &str) {
        let shown = self.without_secrets(text).into_owned();
        self.parameters.push((Cow::Borrowed("query"), shown));
    }

    /// Records that a statement was parsed, without its password.
    pub(super) fn parsing(&mut self, text: &str) {
        let shown = self.without_secrets(text);
        self.event(&format!("Parsing {shown}"));
    }

    /// Records why the request failed. An error may quote the statement: if that has a secret, only the error's kind is
    /// shown.
    pub(super) fn failed(&mut self, message: &str, kind: &str) {
        if self.has_secret {
            self.event(&format!("Request failed: {kind}"));
        } else {
            self.event(&format!("Request failed: {message}"));
        }
    }

    /// Whether a statement of it has a secret.
    pub(super) const fn has_secret(&self) -> bool {
        self.has_secret
    }

    fn without_secrets<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        match secrets::in_trace(text) {
            Some(shown) => {
                self.has_secret = true;
                Cow::Owned(shown)
            }
            None => Cow::Borrowed(text),
        }
    }

    /// Records a parameter of the request.
    pub(super) fn parameter(&mut self, name: impl Into<Cow<'static, str>>, value: &str) {
        self.parameters.push((name.into(), value.to_owned()));
    }

    /// Records a request's consistency levels. `None` as serial one means SERIAL.
    pub(super) fn levels(&mut self, level: Consistency, serial: Option<Consistency>) {
        self.parameter("consistency_level", level.name());
        let serial = serial.unwrap_or(Consistency::Serial);
        self.parameter("serial_consistency_level", serial.name());
    }

    /// Records a request's parameters, under Cassandra's names.
    pub(super) fn params(&mut self, params: &Params<'_>) {
        self.levels(params.consistency, params.serial_consistency);
        if let Some(rows) = params.page_size_rows {
            self.parameter("page_size", &rows.to_string());
        }
    }
}

impl Tracer {
    pub(super) const fn new(database: Arc<Database>, clock: Clock) -> Self {
        Self {
            database,
            clock,
            context: ContextV1::new(0),
        }
    }

    /// Begins the trace of a request.
    pub(super) fn begin(&self, request: &'static str) -> Trace {
        Trace {
            id: self.time_uuid(self.clock.wall_micros()),
            request,
            parameters: Vec::new(),
            events: Vec::new(),
            started_micros: self.clock.wall_micros(),
            has_secret: false,
            started: self.clock.monotonic(),
            clock: self.clock.clone(),
        }
    }

    /// A version 1 uuid of the present time, different on each call.
    fn time_uuid(&self, micros: i64) -> Uuid {
        let seconds = u64::try_from(micros.div_euclid(1_000_000)).unwrap_or(0);
        let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0);
        let [.., a, b, c, d, e, f] = self.database.engine().node().host_id.into_bytes();
        Uuid::new_v1(
            uuid::Timestamp::from_unix(&self.context, seconds, nanos),
            &[a, b, c, d, e, f],
        )
    }

    /// Writes the trace. A failure loses only the trace, so it is logged and nothing else.
    pub(super) async fn store(&self, trace: Trace, client: SocketAddr) {
        let node = self.database.engine().node();
        let (address, port) = (node.native_address, i32::from(node.native_port));
        let duration = int_micros(trace.clock.monotonic().saturating_sub(trace.started));
        let session = vec![
            uuid(trace.id),
            inet(client.ip()),
            text("QUERY"),
            inet(address),
            int(port),
            duration,
            parameters(&trace.parameters),
            text(trace.request),
            long(trace.started_micros.div_euclid(1000)),
        ];
        for (elapsed, activity) in &trace.events {
            let elapsed_micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
            let event = vec![
                uuid(trace.id),
                uuid(self.time_uuid(trace.started_micros.saturating_add(elapsed_micros))),
                text(activity),
                inet(address),
                int(port),
                int_micros(*elapsed),
                text("native-transport"),
            ];
            self.insert(INSERT_EVENT, event).await;
        }
        // Last, because a client takes a session with a duration for complete.
        self.insert(INSERT_SESSION, session).await;
    }

    async fn insert(&self, statement: &str, values: Vec<Value>) {
        let params = QueryParams {
            values: Values::Positional(values),
            ..QueryParams::default()
        };
        if let Err(error) = self.database.query(&SessionState::default(), statement, &params).await {
            tracing::warn!(%error, "a trace cannot be stored");
        }
    }
}

fn bytes(bytes: impl Into<Vec<u8>>) -> Value {
    Value::Bytes(Bytes::from(bytes.into()))
}

fn uuid(uuid: Uuid) -> Value {
    bytes(*uuid.as_bytes())
}

fn inet(address: IpAddr) -> Value {
    match address {
        IpAddr::V4(address) => bytes(address.octets()),
        IpAddr::V6(address) => bytes(address.octets()),
    }
}

fn text(text: &str) -> Value {
    bytes(text)
}

fn int(number: i32) -> Value {
    bytes(number.to_be_bytes())
}

fn int_micros(duration: Duration) -> Value {
    int(i32::try_from(duration.as_micros()).unwrap_or(i32::MAX))
}

fn long(number: i64) -> Value {
    bytes(number.to_be_bytes())
}

/// A `map<text, text>`.
fn parameters(parameters: &[(Cow<'static, str>, String)]) -> Value {
    let mut sorted: Vec<_> = parameters.iter().collect();
    sorted.sort();
    let mut out = Vec::new();
    write::count(&mut out, sorted.len());
    for (name, value) in sorted {
        write::bytes(&mut out, Some(name.as_bytes()));
        write::bytes(&mut out, Some(value.as_bytes()));
    }
    bytes(out)
}
