//! The owner's side: it answers commands, carries out requests, and tells followers what has changed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;

use super::link::OwnerHere;
use super::living::{self, Nodes, Now};
use super::messages::{
    Agreed, Follow, Followed, Kind, KnownNode, LastKnown, decode_follow, decode_request, done, encode_followed,
    encode_response, not_owner,
};
use crate::server::{Events, Requests};
use helenus_base::clock::Clock;
use helenus_base::mutant::{self, Mutant};
use helenus_cql::cql::Database;
use helenus_engine::engine::{CatalogRecords, Error, changed_records};
use helenus_engine::views::{Tables, api};
use helenus_fleet::fleet::PeerName;
use helenus_fleet::fleet::right::{self, CatalogVersion, EdgeId};
use helenus_schema::schema::record::Change;
use helenus_types::wire::response::Body;

/// How long a question of a follower that knows everything is kept.
const HOLD: Duration = Duration::from_millis(150);

/// What is left of a lease that was not renewed in time: half of it. It is renewed three times in its length, or each second where a store
/// changes an object no faster.
const DOUBT: Duration = Duration::from_millis(1250);

/// States of the catalog that are kept to tell followers only what has changed.
const STATES_MAX: usize = 4;

/// The time from when a node has the stores until it has not.
pub(super) struct Reign {
    /// Drawn when it begins: it tells this reign from all others.
    pub(super) number: u64,
    /// The name of the node.
    pub(super) node: String,
    /// Its settings.
    pub(super) agreed: Agreed,
}

/// The owner's side of a node.
pub(super) struct Owning {
    database: Arc<Database>,
    requests: Requests,
    /// Nobody is subscribed: each edge tells its own clients.
    events: Arc<Events>,
    reign: Reign,
    clock: Clock,
    /// Whom it has told of which catalog.
    rights: Mutex<right::Owner>,
    followers: Mutex<Nodes>,
    /// The nodes by which levels are judged. `None` means that none were told yet.
    judged: Mutex<Option<Vec<KnownNode>>>,
    /// Told when a follower has asked.
    asked: watch::Sender<()>,
    states: tokio::sync::Mutex<VecDeque<(u64, Arc<CatalogRecords>)>>,
    is_ended: AtomicBool,
    /// Whether the stores may be another node's now.
    is_over: watch::Sender<bool>,
}

impl Owning {
    /// Begins to own, with what this node knows, as an edge, from the owner before.
    pub(super) fn new(
        database: Arc<Database>,
        requests: Requests,
        reign: Reign,
        clock: Clock,
        last: &LastKnown,
    ) -> Self {
        let owning = Self {
            // Edges that an earlier owner has answered may be there and not have asked yet.
            rights: Mutex::new(right::Owner::new(Some(clock.through_sleep()), CatalogVersion(0))),
            database,
            requests,
            events: Arc::default(),
            reign,
            clock,
            followers: Mutex::default(),
            judged: Mutex::default(),
            asked: watch::Sender::new(()),
            states: tokio::sync::Mutex::default(),
            is_ended: AtomicBool::new(false),
            is_over: watch::Sender::new(false),
        };
        let mut followers = owning.followers();
        followers.remember(last, owning.now());
        owning.judge_by(&mut followers);
        drop(followers);
        owning
    }

    /// Answers nothing that is asked from now on. What was asked before is finished.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
    }

    /// Gives up what is being answered while the lease is over. Called from time to time.
    pub(super) fn check_lease(&self) {
        let is_over = !self.database.engine().upkeep().owns_data();
        self.is_over
            .send_if_modified(|was_over| std::mem::replace(was_over, is_over) != is_over);
    }

    async fn answer(&self, kind: Kind, body: Bytes) -> Bytes {
        // A node that has lost the lease finds out within a tenth of a second. What it is asked until then the next owner answers.
        if self.is_ended.load(Ordering::Acquire) || !self.database.engine().upkeep().owns_data() {
            return not_owner();
        }
        match kind {
            Kind::Command(asked) => done(&self.database.engine().owner_side().answer(asked, &body).await),
            Kind::Request => self.carry_out(body).await,
            Kind::Figures => self.figures(&body).await,
            Kind::Forget => self.forget(&body),
            Kind::Follow => match self.follow(body).await {
                // Judged after the catalog was read: without the lease another node may have changed it.
                Ok(_) if !self.database.engine().upkeep().owns_data() => not_owner(),
                Ok(answer) => done(&answer),
                Err(error) => {
                    tracing::warn!(%error, "a follower could not be told of the catalog");
                    not_owner()
                }
            },
        }
    }

    /// The figures of the admin port at a path. Empty means that there is no such path.
    async fn figures(&self, path: &Bytes) -> Bytes {
        let engine = self.database.engine();
        let Some(route) = api::ROUTES.into_iter().find(|route| route.path.as_bytes() == path) else {
            return done(&[]);
        };
        if route.shows_sizes {
            engine.upkeep().count_partitions().await;
        }
        let figures = Tables::default().show(engine, route.answer);
        done(&serde_json::to_vec(&figures).unwrap_or_default())
    }

    /// Forgets a node that is down. The answer is why it does not, or empty.
    fn forget(&self, name: &Bytes) -> Bytes {
        let mut followers = self.followers();
        let forgotten = followers.forget(&String::from_utf8_lossy(name));
        self.judge_by(&mut followers);
        drop(followers);
        done(forgotten.err().unwrap_or_default().as_bytes())
    }

    async fn carry_out(&self, body: Bytes) -> Bytes {
        let Some(request) = decode_request(body) else {
            return not_owner();
        };
        let before = self.roles();
        let response = self.requests.answer_relayed(&request, &self.events).await;
        let are_changed = self.roles() != before;
        let owner_side = self.database.engine().owner_side();
        if are_changed {
            owner_side.tell_followers();
        }
        // Rows of a statement that changes no role are those of a read.
        let is_change = are_changed || !matches!(response.body, Body::Rows(_));
        if is_change && !mutant::is_on(Mutant::AnswerBeforeApplied) {
            let number = *owner_side.catalog_changes().borrow();
            self.until_applied(number).await;
        }
        done(&encode_response(&response, request.header.version))
    }

    /// A number that rises when the roles change.
    fn roles(&self) -> u64 {
        self.database.roles().map_or(0, |roles| roles.version())
    }

    fn followers(&self) -> MutexGuard<'_, Nodes> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every edge has applied this catalog, or may not answer any more.
    async fn until_applied(&self, number: u64) {
        let mut asked = self.asked.subscribe();
        loop {
            asked.borrow_and_update();
            let Some(wait) = self.unapplied(number) else { return };
            drop(tokio::time::timeout(wait, asked.changed()).await);
        }
    }

    /// How long to wait at most for an edge that has not applied this catalog. `None` means that none is left.
    fn unapplied(&self, number: u64) -> Option<Duration> {
        let now = self.clock.through_sleep();
        let mut rights = self.rights();
        rights.committed(CatalogVersion(number));
        let awaited = rights.awaited(CatalogVersion(number), now)?;
        Some(awaited.until.saturating_sub(now))
    }

    fn rights(&self) -> MutexGuard<'_, right::Owner> {
        self.rights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(&self, body: Bytes) -> Result<Vec<u8>, Error> {
        let unreadable = || Error::Fault("the question of a follower cannot be read".to_owned());
        let follow = decode_follow(body).ok_or_else(unreadable)?;
        let applied = if follow.reign == self.reign.number {
            follow.number
        } else {
            0
        };
        let edge = follow.node.as_ref().map(|node| EdgeId {
            name: PeerName::from(node.name.clone()),
            incarnation: follow.incarnation,
        });
        if let Some(edge) = &edge {
            self.rights().applied(edge, CatalogVersion(applied));
        }
        let namesake = self.note(&follow);
        let mut changes = self.database.engine().owner_side().catalog_changes();
        let is_new = |number: &u64| *number > applied;
        drop(tokio::time::timeout(self.hold(), changes.wait_for(is_new)).await);
        let (number, is_whole, records) = self.changes_since(applied).await?;
        if let Some(edge) = &edge {
            let mut rights = self.rights();
            rights.committed(CatalogVersion(number));
            rights.asked(edge, CatalogVersion(applied), self.clock.through_sleep());
        }
        let key = self.database.engine().paging_key();
        let followed = Followed {
            reign: self.reign.number,
            number,
            // After the catalog: its number rises after the roles have changed.
            roles: self.roles(),
            is_whole,
            paging_key: key.iter().map(|byte| format!("{byte:02x}")).collect(),
            nodes: self.followers().list(),
            owner: self.reign.node.clone(),
            agreed: self.reign.agreed.clone(),
            is_in_doubt: self.is_in_doubt(),
            namesake,
            lease_put: self
                .database
                .engine()
                .upkeep()
                .lease_put()
                .map(|put| (put.incarnation, put.number)),
        };
        Ok(encode_followed(&followed, &records))
    }

    fn now(&self) -> Now {
        Now {
            through_sleep: self.clock.through_sleep(),
            wall_millis: self.clock.wall_micros().div_euclid(1000),
        }
    }

    /// How long a question is kept: no longer than until the lease is in doubt, which others are to know at once.
    fn hold(&self) -> Duration {
        let left = self.database.engine().upkeep().lease_left();
        let until_doubt = left.and_then(|left| left.checked_sub(DOUBT));
        until_doubt.map_or(HOLD, |until| HOLD.min(until + Duration::from_millis(1)))
    }

    /// Whether the lease may end, since it was not renewed in time.
    fn is_in_doubt(&self) -> bool {
        let left = self.database.engine().upkeep().lease_left();
        left.is_some_and(|left| left < DOUBT)
    }

    /// Notes that a follower has asked. Returns where another one of its name is up.
    fn note(&self, follow: &Follow) -> Option<String> {
        let now = self.now();
        let mut followers = self.followers();
        // What it knows from this owner is no news, and may be what was forgotten meanwhile.
        if follow.reign != self.reign.number {
            followers.remember(&follow.last, now);
        }
        let namesake = followers.namesake(&follow.name, follow.incarnation);
        if let Some(node) = &follow.node {
            followers.asked(node, follow.incarnation, now);
        }
        self.judge_by(&mut followers);
        drop(followers);
        self.asked.send_replace(());
        namesake
    }

    /// Follows the time, and judges levels by the nodes of now.
    fn judge_by(&self, followers: &mut Nodes) {
        followers.pass(self.now());
        let (engine, nodes) = (self.database.engine(), followers.list());
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        if judged.as_ref() == Some(&nodes) {
            return;
        }
        engine.nodes().set_seats(living::seats(&nodes, &self.reign.node));
        engine.set_fleet(living::shown(&nodes, Some(&self.reign.node)));
        engine.set_ring(living::ring(engine.node(), &nodes, &self.reign.node));
        *judged = Some(nodes);
    }

    /// The number of the catalog, and what has changed since an earlier one, or all records.
    async fn changes_since(&self, applied: u64) -> Result<(u64, bool, Vec<Change>), Error> {
        let mut states = self.states.lock().await;
        let current = *self.database.engine().owner_side().catalog_changes().borrow();
        if states.back().is_none_or(|(number, _)| *number < current) {
            let (number, records) = self.database.engine().owner_side().catalog_records().await?;
            states.push_back((number, Arc::new(records)));
            if states.len() > STATES_MAX {
                states.pop_front();
            }
        }
        let latest = states.back().cloned();
        let earlier = states.iter().find(|(number, _)| *number == applied).cloned();
        drop(states);
        let Some((number, records)) = latest else {
            return Err(Error::Fault("there is no catalog".to_owned()));
        };
        let nothing = CatalogRecords::new();
        Ok(match earlier {
            Some((_, earlier)) => (number, false, changed_records(&earlier, &records)),
            None => (number, true, changed_records(&nothing, &records)),
        })
    }
}

impl OwnerHere for Owning {
    fn answer(&self, kind: Kind, body: Bytes) -> BoxFuture<'_, Option<Bytes>> {
        async move {
            let mut is_over = self.is_over.subscribe();
            tokio::select! {
                biased;
                answer = Self::answer(self, kind, body) => Some(answer),
                // Another node may have taken over: whether it finds this done is not known, and nobody need wait for it.
                _ = is_over.wait_for(|is_over| *is_over) => None,
            }
        }
        .boxed()
    }

    fn database(&self) -> &Arc<Database> {
        &self.database
    }
}
