//! `/api/feed/KEYSPACE/TABLE`: the change feed of a table as server-sent events.
//!
//! ```text
//! GET /api/feed/ks/t?from=start              start, now, a time as CQL writes it, or the position of a record
//!     &follow=false                          ends at the last change; otherwise the stream waits for more
//!     &full=true                             the full fidelity feed: every change, with the row before and after
//!
//! id: p03…                                   the position after this record
//! data: {"position":"p03…","current":{…}}    the row as SELECT JSON shows it
//!
//! id: p03…                                   without data: nothing new up to this position
//!
//! event: end                                 the last event: with follow=false, or if the server stops
//! data: {"position":"p03…"}
//!
//! event: error                               the last event: the table was dropped, the permission was revoked, …
//! data: {"error":"…"}
//! ```
//! The header `Last-Event-ID`, which browsers and libraries send when they connect again, replaces `from`.
//!
//! A record is a row of a page of [`helenus_cql::cql`], and its position is the paging state after it. So a reader may resume
//! after each record, and across restarts, splits and merges, as a reader of pages does.
//!
//! Rows are data, unlike all else on this port. So an address gives them only to a client with the server's token, or
//! to a role with SELECT on the table. Each page checks the permission again.
//!
//! **Bounds.** [`STREAMS_MAX`](super::STREAMS_MAX) streams, each with one page of at most [`PAGE_ROWS`] rows and `page-bytes-max`. A page is
//! read when the client has taken the one before. Rows may be long, and their JSON longer. So a page is read and printed apart from
//! the threads of requests.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use tokio::time::sleep;

use super::slots::Stage;
use super::streams::Place;
use super::token::{has_token, refuse, where_the_token_is};
use super::{BySocket, Extension, Shape, Shared, logins};

use helenus_cql::cql::{AnswerKind, Error, QueryParams, SessionState, apart};
use helenus_types::types::{hex, quoted, unhex};
use helenus_types::wire::response::ErrorCode;

/// Rows of a page.
const PAGE_ROWS: u32 = 100;

/// Time between two looks for new changes.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Looks without a change before the client is told the position: below half of the time after which a silent stream is
/// closed.
const SILENT_LOOKS_MAX: u32 = 8;

/// Bytes of a paging state that a client can send back within a request's head. A record with a longer one, which has a
/// longer key, has the position of a record before it.
const STATE_BYTES_MAX: usize = 4 * 1024;

/// The parameters of a request.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    from: From,
    follows: bool,
    is_full: bool,
}

/// Where a stream begins.
#[derive(Debug, PartialEq, Eq)]
enum From {
    Start,
    Now,
    /// A time as CQL writes it.
    Time(String),
    /// The paging state of a position.
    After(Bytes),
}

/// The first letter of a position, which no time begins with.
const POSITION: char = 'p';

fn position(state: &[u8]) -> String {
    format!("{POSITION}{}", hex(state))
}

impl From {
    fn parse(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix(POSITION)) {
            ("start" | "", _) => Ok(Self::Start),
            ("now", _) => Ok(Self::Now),
            (_, Some(digits)) => unhex(digits)
                .map(|state| Self::After(state.into()))
                .ok_or_else(|| format!("{text} is no position of a record")),
            (time, None) => Ok(Self::Time(time.to_owned())),
        }
    }

    /// The relation of the WHERE clause.
    fn relation(&self) -> String {
        match self {
            Self::Start | Self::After(_) => "COSMOS_CHANGEFEED_FROM_START() = true".to_owned(),
            Self::Now => "COSMOS_CHANGEFEED_FROM_START() = false".to_owned(),
            Self::Time(time) => format!("COSMOS_CHANGEFEED_START_TIME() = '{}'", time.replace('\'', "''")),
        }
    }
}

impl Asked {
    fn parse(query: &str, last_event_id: Option<&str>) -> Result<Self, String> {
        let mut asked = Self {
            from: From::Start,
            follows: true,
            is_full: false,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok_or_else(|| format!("{name} is not percent-encoded UTF-8"))?;
            match (name, value.as_str()) {
                ("from", from) => asked.from = From::parse(from)?,
                ("follow", "true") => asked.follows = true,
                ("follow", "false") => asked.follows = false,
                ("follow", _) => return Err("follow is true or false".to_owned()),
                ("full", "true" | "") => asked.is_full = true,
                ("full", "false") => asked.is_full = false,
                ("full", _) => return Err("full is true or false".to_owned()),
                _ => return Err(format!("there is no parameter {name}: there are from, follow and full")),
            }
        }
        if let Some(id) = last_event_id.filter(|id| !id.is_empty()) {
            asked.from = From::parse(id)?;
        }
        Ok(asked)
    }
}

impl Asked {
    /// The statement that reads a page.
    fn text(&self, keyspace: &str, table: &str) -> String {
        let (what, of_full) = if self.is_full {
            ("*", " AND COSMOS_FULLFIDELITY_CHANGEFEED() = true")
        } else {
            ("JSON *", "")
        };
        format!(
            "SELECT {what} FROM {}.{} WHERE {}{of_full}",
            quoted(keyspace),
            quoted(table),
            self.from.relation()
        )
    }
}

/// A percent-encoded text (RFC 3986 §2.1), with `+` for a space as HTML forms write it. `None` means it is none.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                rest = behind;
                bytes.extend(unhex(std::str::from_utf8(digits).ok()?)?);
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A stream between two pages.
struct Feed {
    shared: Arc<Shared>,
    stage: Arc<Stage>,
    session: SessionState,
    text: String,
    follows: bool,
    is_full: bool,
    /// The paging state after the last row that was sent.
    state: Option<Bytes>,
    /// The last position that a client can send back.
    position: String,
    /// A page that was read and not sent yet.
    page: Option<Page>,
    /// Looks since something was sent.
    silent_looks: u32,
    /// The horizon before the last page, if that ended at the last change.
    read_to: Option<i64>,
    is_over: bool,
    _place: Place,
}

/// A page of the feed.
#[derive(Default)]
struct Page {
    /// Its events.
    events: String,
    is_at_end: bool,
}

/// Answers with a stream, or with a refusal if its first page fails.
pub(super) async fn stream(
    State(shared): Shape,
    Path((keyspace, table)): Path<(String, String)>,
    Extension(stage): Extension<Arc<Stage>>,
    request: Request,
) -> Response {
    let session = match session(&shared, &request) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    let last = request.headers().get("last-event-id").map(HeaderValue::to_str);
    let asked = match last.transpose() {
        Ok(last) => Asked::parse(request.uri().query().unwrap_or_default(), last),
        Err(_) => Err("Last-Event-ID is no text".to_owned()),
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
    };
    let place = match shared.streams.open(session.user.as_deref()) {
        Ok(place) => place,
        Err(why) => return refuse(StatusCode::SERVICE_UNAVAILABLE, &why),
    };
    let mut feed = Feed {
        text: asked.text(&keyspace, &table),
        state: match asked.from {
            From::After(state) => Some(state),
            From::Start | From::Now | From::Time(_) => None,
        },
        position: String::new(),
        shared,
        stage,
        session,
        follows: asked.follows,
        is_full: asked.is_full,
        page: None,
        silent_looks: 0,
        read_to: None,
        is_over: false,
        _place: place,
    };
    if let Some(state) = &feed.state {
        feed.position = position(state);
    }
    match apart(feed.read()).await {
        Ok(page) => feed.page = Some(page),
        Err(error) if error.is_of_trimmed_feed() => return refuse(StatusCode::GONE, &error.to_string()),
        Err(error) => return refuse(status(error.code()), &error.to_string()),
    }
    feed.stage.streams();
    let events = futures::stream::unfold(feed, async |mut feed| {
        let events = feed.next().await?;
        feed.stage.streams();
        Some((Ok::<_, Infallible>(events), feed))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The session of a client that may read rows: a role's, or the server's own for a client with the token or the socket.
fn session(shared: &Shared, request: &Request) -> Result<SessionState, Box<Response>> {
    let extensions = request.extensions();
    if let (Some(role), Some(from)) = (extensions.get::<logins::Role>(), extensions.get::<logins::From>()) {
        return Ok(SessionState {
            user: Some(role.0.as_str().into()),
            client: Some(SocketAddr::new(from.0, 0)),
            // The admin port records its requests.
            is_recorded_elsewhere: true,
            ..SessionState::default()
        });
    }
    if extensions.get::<BySocket>().is_some() || has_token(shared, request) {
        return Ok(SessionState::default());
    }
    let why = format!(
        "Rows need the header `Authorization: Bearer TOKEN`; {}",
        where_the_token_is(shared)
    );
    Err(Box::new(refuse(StatusCode::UNAUTHORIZED, &why)))
}

const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Unauthorized => StatusCode::FORBIDDEN,
        // Protocol: a paging state that is none.
        ErrorCode::Syntax | ErrorCode::Invalid | ErrorCode::Protocol => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl Feed {
    /// The next events. `None` means that the last ones were sent.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        loop {
            let page = match self.page.take() {
                Some(page) => page,
                // Spares the table's request units. The look that tells the position checks table and permission again.
                None if self.has_nothing_new() && self.silent_looks < SILENT_LOOKS_MAX => Page::default(),
                None => match apart(self.read()).await {
                    Ok(page) => page,
                    Err(error) => return Some(self.last("error", &serde_json::json!({"error": error.to_string()}))),
                },
            };
            let is_over = page.is_at_end && !self.follows || self.shared.stopping.load(Ordering::Relaxed);
            if is_over {
                let end = self.last("end", &serde_json::json!({"position": self.position}));
                return Some([page.events.as_bytes(), &end].concat().into());
            }
            if !page.events.is_empty() {
                self.silent_looks = 0;
                return Some(page.events.into());
            }
            self.silent_looks += 1;
            if self.silent_looks > SILENT_LOOKS_MAX {
                self.silent_looks = 0;
                return Some(format!("id: {}\n\n", self.position).into());
            }
            // Also where the page ended early: request units are spent, or most of the entries were of other keys.
            sleep(LOOK_INTERVAL).await;
        }
    }

    fn last(&mut self, event: &str, data: &serde_json::Value) -> Bytes {
        self.is_over = true;
        format!("event: {event}\nid: {}\ndata: {data}\n\n", self.position).into()
    }

    fn has_nothing_new(&self) -> bool {
        self.read_to
            .is_some_and(|read_to| self.shared.source.database.engine().feed_horizon() == read_to)
    }

    /// Reads the next page.
    async fn read(&mut self) -> Result<Page, Error> {
        let horizon = self.shared.source.database.engine().feed_horizon();
        let params = QueryParams {
            page_size_rows: Some(PAGE_ROWS),
            paging_state: self.state.clone(),
            wants_feed_positions: true,
            ..QueryParams::default()
        };
        let answer = self
            .shared
            .source
            .database
            .query(&self.session, &self.text, &params)
            .await?;
        let mut events = String::new();
        let (end, AnswerKind::Rows(rows)) = (answer.feed, answer.kind) else {
            unreachable!("a SELECT gives rows");
        };
        let end = end.expect("a read of the feed says where it ends");
        self.read_to = end.is_at_end.then_some(horizon);
        let records = if self.is_full {
            end.records
        } else {
            let current = |cells: Vec<Option<Bytes>>| {
                let row = cells.into_iter().next().flatten().unwrap_or_default();
                format!("\"current\":{}", String::from_utf8_lossy(&row))
            };
            rows.cells().into_iter().map(current).collect()
        };
        for (record, state) in records.into_iter().zip(&end.states) {
            self.reach(state);
            // Writing to a String cannot fail. JSON has no line end outside its strings, where it is escaped.
            let _ = write!(
                events,
                "id: {0}\ndata: {{\"position\":\"{0}\",{record}}}\n\n",
                self.position
            );
        }
        if let Some(state) = rows.paging_state {
            self.reach(&state);
            self.state = Some(state);
        }
        Ok(Page {
            events,
            is_at_end: end.is_at_end,
        })
    }

    /// Takes a paging state as the position, unless it is too long to be sent back.
    fn reach(&mut self, state: &Bytes) {
        if state.len() <= STATE_BYTES_MAX {
            self.position = position(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_where_its_stream_begins() {
        let asked = |query: &str, last: Option<&str>| Asked::parse(query, last);
        let from = |from: From| {
            Ok(Asked {
                from,
                follows: true,
                is_full: false,
            })
        };
        assert_eq!(asked("", None), from(From::Start));
        assert_eq!(asked("from=now", None), from(From::Now));
        let time = From::Time("2024-05-01 10:00:00+0000".to_owned());
        assert_eq!(asked("from=2024-05-01+10:00:00%2B0000", None), from(time));
        let after = || From::After(Bytes::from_static(&[3, 255]));
        assert_eq!(asked("from=p03ff", None), from(after()));
        assert_eq!(asked("from=start", Some("p03ff")), from(after()));
        assert!(!asked("follow=false", None).unwrap().follows);
        assert!(asked("full=true", None).unwrap().is_full && asked("full", None).unwrap().is_full);
        for wrong in [
            "from=p0",
            "from=px1",
            "follow=",
            "follow=no",
            "full=no",
            "form=now",
            "from=%2",
            "from=%ff",
        ] {
            assert!(asked(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_cannot_end_its_literal() {
        let from = From::parse("x' OR '").unwrap();
        assert_eq!(from.relation(), "COSMOS_CHANGEFEED_START_TIME() = 'x'' OR '''");
    }
}
