//! A machine without partitions beside the owner of all, in one process: statements go to it, and it asks the owner.
//!
//! The variable `HELENUS_THROUGH_EDGE` puts one before each database of the tests. So they show that a statement has the same answer on
//! both.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use helenus_cql::cql::{Answer, Database, Error, QueryParams, SessionState};
use helenus_engine::engine::{self, Asked, Carrier, CatalogRecords, Elsewhere, Options, Unanswered, changed_records};
use helenus_storage::storage::Url;
use tokio::sync::Mutex;

/// A machine without partitions.
pub(crate) struct Edge {
    database: Database,
    /// The records of the catalog that it has applied.
    followed: Mutex<CatalogRecords>,
}

/// Asks an owner in the same process.
struct Direct(Arc<Database>);

impl Carrier for Direct {
    fn carry(&self, asked: Asked, message: Bytes, _: Duration) -> BoxFuture<'_, Result<Bytes, Unanswered>> {
        async move { Ok(self.0.engine().owner_side().answer(asked, &message).await) }.boxed()
    }
}

impl Edge {
    /// One beside an owner. `None` unless the variable asks for it.
    pub(crate) async fn beside(owner: &Arc<Database>, options: Options) -> Option<Self> {
        std::env::var_os("HELENUS_THROUGH_EDGE")?;
        Some(Self::of(owner, options).await)
    }

    /// One beside an owner.
    pub(crate) async fn of(owner: &Arc<Database>, options: Options) -> Self {
        let database = Database::open(Options {
            url: Url::Memory,
            elsewhere: Some(Elsewhere {
                carrier: Arc::new(Direct(Arc::clone(owner))),
                host_id: owner.engine().node().host_id,
                paging_key: owner.engine().paging_key(),
            }),
            ..options
        });
        Self {
            database: database.await.unwrap(),
            followed: Mutex::default(),
        }
    }

    /// Applies what has changed in the owner's catalog.
    pub(crate) async fn follow(&self, owner: &Database) {
        let mut followed = self.followed.lock().await;
        let (_, records) = owner.engine().owner_side().catalog_records().await.unwrap();
        let changed = changed_records(&followed, &records);
        if !changed.is_empty() {
            self.database.engine().apply(changed).await.unwrap();
            *followed = records;
        }
    }

    /// Runs a statement here, or at the owner if that is to execute it.
    pub(crate) async fn query(
        &self,
        owner: &Database,
        session: &SessionState,
        text: &str,
        params: &QueryParams,
    ) -> Result<Answer, Error> {
        self.follow(owner).await;
        match self.database.query(session, text, params).await {
            Err(Error::ForOwner) => owner.query(session, text, params).await,
            Err(Error::Engine(engine::Error::Outdated)) => {
                self.follow(owner).await;
                self.database.query(session, text, params).await
            }
            answered => answered,
        }
    }
}
