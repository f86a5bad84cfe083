use std::sync::Mutex;

use super::*;
use crate::executor::{Error, SessionState};
use crate::planner::bound::ResultColumn;
use crate::server::Events;
use crate::types::{CqlType, Native};
use crate::wire::Consistency;

/// A database with one table whose columns can be changed, and nothing in it.
struct Mock {
    version: Mutex<Uuid>,
    columns: Mutex<Vec<&'static str>>,
}

impl Mock {
    fn metadata(&self) -> Arc<ResultMetadata> {
        let column = |name: &&str| ResultColumn {
            name: (*name).to_owned(),
            ty: CqlType::Native(Native::Int),
        };
        let columns = self.columns.lock().unwrap().iter().map(column).collect();
        Arc::new(ResultMetadata::new("ks", "t", Arc::new(columns)))
    }

    fn change(&self, columns: &[&'static str]) {
        *self.columns.lock().unwrap() = columns.to_vec();
        let mut version = self.version.lock().unwrap();
        *version = Uuid::from_u128(version.as_u128() + 1);
    }
}

impl Database for Mock {
    type Statement = Arc<ResultMetadata>;

    fn schema_version(&self) -> Uuid {
        *self.version.lock().unwrap()
    }

    fn prepare(&self, _keyspace: Option<&str>, text: &str) -> Result<Planned<Self::Statement>, Error> {
        if self.columns.lock().unwrap().is_empty() {
            return Err(Error::Invalid("table t does not exist".into()));
        }
        let metadata = self.metadata();
        Ok(Planned {
            statement: Arc::new(Arc::clone(&metadata)),
            schema_version: self.schema_version(),
            markers: vec![],
            partition_key_markers: vec![],
            result: Some(metadata),
            fully_qualified: text.contains("ks.t"),
        })
    }

    async fn query(&self, _session: &SessionState, text: &str, params: QueryParams) -> Result<Answer, Error> {
        match text.split_once(' ') {
            Some(("USE", keyspace)) => Ok(Answer::new(AnswerKind::SetKeyspace(keyspace.to_owned()))),
            _ => {
                assert_eq!(params.trace.is_some(), text == "traced");
                Ok(Answer::new(AnswerKind::Void))
            }
        }
    }

    async fn execute(
        &self,
        _session: &SessionState,
        statement: &Arc<Self::Statement>,
        _params: QueryParams,
    ) -> Result<Answer, Error> {
        Ok(Answer::new(AnswerKind::Rows(AnswerRows {
            metadata: Arc::clone(statement),
            row_count: 0,
            content: Bytes::new(),
            paging_state: None,
        })))
    }

    async fn batch(
        &self,
        _session: &SessionState,
        _kind: BatchKind,
        members: Vec<(Member<Self::Statement>, Vec<Value>)>,
        _params: QueryParams,
    ) -> Result<Answer, Error> {
        assert!(
            members
                .iter()
                .all(|(member, _)| matches!(member, Member::Planned(_) | Member::Text(_)))
        );
        Ok(Answer::new(AnswerKind::Void))
    }
}

struct Bench {
    requests: Arc<Requests<Mock>>,
    session: Arc<Session>,
}

impl Bench {
    fn new() -> Self {
        let mock = Mock {
            version: Mutex::new(Uuid::nil()),
            columns: Mutex::new(vec!["a"]),
        };
        let requests = Requests::new(Arc::new(mock), &Limits::default(), Clock::manual(0), [0; 6]);
        let session = Session::new("127.0.0.1:1".parse().unwrap(), Arc::new(Events::default()));
        Self {
            requests: Arc::new(requests),
            session: Arc::new(session),
        }
    }

    async fn send(&self, version: Version, frame_flags: u8, request: Request<'_>) -> Response {
        let mut body = Vec::new();
        request.write(&mut body, version);
        let header = Header {
            version,
            flags: frame_flags,
            stream: 1,
            opcode_byte: request.opcode().byte(),
            length: body.len(),
        };
        Arc::clone(&self.requests)
            .handle(Arc::clone(&self.session), header, body.into())
            .await
    }

    async fn query(&self, text: &str) -> Response {
        self.send(
            Version::V4,
            0,
            Request::Query(Query {
                text,
                params: Params::default(),
            }),
        )
        .await
    }

    async fn prepare(&self, text: &str) -> (Prepared, Vec<String>) {
        let response = self
            .send(Version::V5, 0, Request::Prepare(Prepare { text, keyspace: None }))
            .await;
        let Body::Prepared(prepared) = response.body else {
            panic!("{response:?}")
        };
        (
            *prepared,
            response.extras.map(|extras| extras.warnings).unwrap_or_default(),
        )
    }

    async fn execute(&self, version: Version, id: &[u8], metadata_id: &[u8]) -> Response {
        let params = Params {
            skip_metadata: true,
            consistency: Consistency::One,
            ..Params::default()
        };
        self.send(
            version,
            0,
            Request::Execute(Execute {
                id,
                result_metadata_id: Some(metadata_id),
                params,
            }),
        )
        .await
    }
}

fn mode(response: &Response) -> MetadataMode {
    match &response.body {
        Body::Rows(rows) => rows.mode,
        other => panic!("{other:?}"),
    }
}

fn code(response: &Response) -> u16 {
    match &response.body {
        Body::Error(error) => error.code().number(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn preparing_after_use_warns_once_and_ids_follow_keyspace_and_text() {
    let bench = Bench::new();
    bench.query("USE golden").await;
    let (prepared, warnings) = bench.prepare("SELECT * FROM simple").await;
    assert!(warnings[0].ends_with(
        "Keyspace used: golden, statement keyspace: golden, statement id: 83607d8941ccc2315ce19efdb722e3fc"
    ));
    assert_eq!(prepared.id, prepared::id(Some("golden"), "SELECT * FROM simple"));
    let (again, warnings) = bench.prepare("SELECT * FROM simple").await;
    assert_eq!((again.id, warnings.len()), (prepared.id, 0));
    let (qualified, _) = bench.prepare("SELECT * FROM ks.t").await;
    assert_eq!(qualified.id, prepared::id(None, "SELECT * FROM ks.t"));
}

#[tokio::test]
async fn metadata_is_skipped_only_where_the_client_has_it() {
    let bench = Bench::new();
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    let known = prepared.result_metadata_id();
    assert_eq!(
        mode(&bench.execute(Version::V4, &prepared.id, &[]).await),
        MetadataMode::Skipped
    );
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &known).await),
        MetadataMode::Skipped
    );
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &[0; 16]).await),
        MetadataMode::Changed
    );
    bench.requests.database.change(&["a", "b"]);
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &known).await),
        MetadataMode::Changed
    );
    assert_eq!(
        mode(&bench.execute(Version::V4, &prepared.id, &[]).await),
        MetadataMode::Full
    );
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    let new = prepared.result_metadata_id();
    assert_ne!(known, new);
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &new).await),
        MetadataMode::Skipped
    );
}

#[tokio::test]
async fn what_is_not_known_must_be_prepared() {
    let bench = Bench::new();
    assert_eq!(code(&bench.execute(Version::V4, &[1; 16], &[]).await), 0x2500);
    assert_eq!(code(&bench.execute(Version::V4, &[], &[]).await), 0x2500);
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    bench.requests.database.change(&[]);
    assert_eq!(code(&bench.execute(Version::V4, &prepared.id, &[]).await), 0x2500);
}

#[tokio::test]
async fn traced_requests_have_an_id() {
    let bench = Bench::new();
    let query = |text| {
        Request::Query(Query {
            text,
            params: Params::default(),
        })
    };
    let traced = bench.send(Version::V4, flags::TRACING, query("traced")).await;
    let id = Uuid::from_bytes(traced.tracing_id.unwrap());
    assert_eq!(id.get_version_num(), 1);
    assert!(bench.send(Version::V4, 0, query("plain")).await.tracing_id.is_none());
}
