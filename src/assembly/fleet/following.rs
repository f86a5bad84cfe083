//! What an edge knows of the owner: the catalog that it has applied, the nodes, and until when it may answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use uuid::Uuid;

use super::link::Link;
use super::living;
use super::messages::{
    Agreed, Follow, Followed, Kind, KnownNode, LastKnown, Node, decode_followed, decode_response, encode_follow,
    encode_request,
};
use crate::assembly::opening::RunError;
use crate::server::{Events, Relay, RelayedRequest};
use helenus_base::clock::Clock;
use helenus_base::mutant::{self, Mutant};
use helenus_cql::cql::Database;
use helenus_engine::engine::{CatalogRecords, Unanswered, changed_records};
use helenus_fleet::fleet::PeerName;
use helenus_fleet::fleet::right::Edge;
use helenus_fleet::fleet::succession::Turn;
use helenus_schema::schema::record::Change;
use helenus_storage::storage::bucket::{HeardLease, LeasePut};
use helenus_types::consistency::Consistency;
use helenus_types::wire::response::{Body, ErrorBody, ErrorDetail, Event, Response, StatusChange, TopologyChange};

/// How long a question of a follower waits for its answer.
const ASK_WITHIN: Duration = Duration::from_millis(1500);

/// How long a request waits until this node may answer, and a relayed one for its answer.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// How long answers of the owner for the admin port may take: less than a client of the admin port waits.
const FIGURES_WITHIN: Duration = Duration::from_secs(4);

/// How long a node that starts waits for an owner.
const START_WITHIN: Duration = Duration::from_secs(60);

/// The longest wait for a later catalog.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(1);

/// How long a follower in trouble waits for an answer before it looks at the lease: longer than a question is kept.
const LOOK: Duration = Duration::from_millis(250);

/// How long a node that has followed no owner yet lets others take a lease that is over.
const STRANGER: Duration = Duration::from_secs(1);

/// How long a node that starts lets another of its name go down: a former process of its own that was killed.
const NAMESAKE_WITHIN: Duration = Duration::from_secs(4);

/// The pause after the owner did not answer.
const PAUSE: Duration = Duration::from_millis(50);

/// What was applied of whose catalog.
#[derive(Default)]
struct Applied {
    reign: u64,
    number: u64,
    roles: u64,
    records: CatalogRecords,
}

/// The list of nodes in the last answer of an owner.
#[derive(Default)]
struct Told {
    /// In order of their names.
    nodes: Vec<KnownNode>,
    /// `None` means that none has told anything.
    owner: Option<String>,
    /// When.
    at: Duration,
}

/// An edge that follows.
pub(super) struct Following {
    link: Arc<Link>,
    node: Mutex<Node>,
    /// Drawn when the node started.
    incarnation: u64,
    /// Its settings that all nodes must have.
    agreed: Agreed,
    clock: Clock,
    /// Set when the edge is open.
    database: OnceLock<Arc<Database>>,
    events: OnceLock<Arc<Events>>,
    applied: tokio::sync::Mutex<Applied>,
    /// The nodes, as the owner has told them last.
    told: Mutex<Told>,
    /// Until when it may answer, by the clock's time through sleep.
    right: Edge,
    /// Told when something was applied.
    steps: watch::Sender<u64>,
    is_ended: AtomicBool,
    /// Whether the owner has said that its lease may end.
    is_owner_in_doubt: AtomicBool,
    /// The newest put of the owner's lease that it has told of, and when it did so first, by the clock's time through sleep.
    heard: Mutex<Option<(LeasePut, Duration)>>,
}

impl Following {
    pub(super) fn new(link: Arc<Link>, node: Node, agreed: Agreed, clock: Clock, incarnation: u64) -> Self {
        Self {
            link,
            node: Mutex::new(node),
            incarnation,
            agreed,
            clock,
            database: OnceLock::new(),
            events: OnceLock::new(),
            applied: tokio::sync::Mutex::default(),
            told: Mutex::default(),
            right: Edge::default(),
            steps: watch::Sender::new(0),
            is_ended: AtomicBool::new(false),
            is_owner_in_doubt: AtomicBool::new(false),
            heard: Mutex::default(),
        }
    }

    fn node(&self) -> Node {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The name of this node.
    pub(super) fn name(&self) -> String {
        self.node().name
    }

    /// Sets its id, as clients see it.
    pub(super) fn set_host_id(&self, id: Uuid) {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).host_id = id;
    }

    /// Ends the following.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
    }

    /// Asks the owner for the secret of paging states, which all nodes share.
    pub(super) async fn first_contact(&self) -> Result<[u8; 16], RunError> {
        let follow = Follow {
            name: self.name(),
            node: None,
            incarnation: self.incarnation,
            reign: 0,
            number: 0,
            last: LastKnown::default(),
        };
        let begun = self.clock.monotonic();
        let is_late = |within| self.clock.monotonic().saturating_sub(begun) >= within;
        loop {
            let answer = self.link.ask(Kind::Follow, encode_follow(&follow), ASK_WITHIN).await;
            let answer = match (answer, self.link.refusal()) {
                (Ok(answer), _) => answer,
                (Err(_), Some(refusal)) => return Err(RunError::NotJoined(refusal)),
                (Err(error), None) if is_late(START_WITHIN) => return Err(RunError::NoOwner(error.to_string())),
                (Err(_), None) => continue,
            };
            let unreadable = || RunError::NoOwner("its answer cannot be read".to_owned());
            let (followed, _) = decode_followed(answer).ok_or_else(unreadable)?;
            if let Some(difference) = self.agreed.difference(&followed.owner, &followed.agreed) {
                return Err(RunError::NotJoined(difference));
            }
            // At this node's own address it is a former process of this node: that one is gone, or the address would not be free.
            let own = self.node().fleet_address;
            let Some(address) = followed.namesake.filter(|address| *address != own) else {
                return key_of(&followed.paging_key).ok_or_else(unreadable);
            };
            if is_late(NAMESAKE_WITHIN) {
                let name = self.name();
                return Err(RunError::NotJoined(format!(
                    "node {name} runs at {address}: give this one another name with node, or stop that one"
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Follows with this database. Returns when the catalog was applied once.
    pub(super) async fn begin(
        self: &Arc<Self>,
        database: &Arc<Database>,
        events: &Arc<Events>,
    ) -> Result<(), RunError> {
        drop(self.database.set(Arc::clone(database)));
        drop(self.events.set(Arc::clone(events)));
        let mut steps = self.steps.subscribe();
        let following = Arc::clone(self);
        let tasks = database.engine().tasks();
        tasks.until_stop("following of the catalog", async move { following.run().await });
        let first = tokio::time::timeout(START_WITHIN, steps.wait_for(|steps| *steps > 0)).await;
        match first {
            Ok(Ok(_)) => Ok(()),
            _ => Err(RunError::NoOwner("its catalog did not come".to_owned())),
        }
    }

    async fn run(&self) {
        while !self.is_ended.load(Ordering::Acquire) {
            if let Err(error) = self.step().await {
                tracing::debug!(error, "the owner's catalog could not be followed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Asks for what has changed, and applies it.
    async fn step(&self) -> Result<(), String> {
        let mut applied = self.applied.lock().await;
        let node = self.node();
        let follow = Follow {
            name: node.name.clone(),
            node: Some(node),
            incarnation: self.incarnation,
            reign: applied.reign,
            number: applied.number,
            last: self.last_known(),
        };
        let sent = self.clock.through_sleep();
        let answer = self.link.ask(Kind::Follow, encode_follow(&follow), ASK_WITHIN).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let unreadable = || "the owner's answer cannot be read".to_owned();
        let (followed, changes) = decode_followed(answer).ok_or_else(unreadable)?;
        if let Some(difference) = self.agreed.difference(&followed.owner, &followed.agreed) {
            tracing::error!(
                difference,
                "this node does not follow the owner of the stores, and answers nothing"
            );
            return Err(difference);
        }
        self.apply(&mut applied, &followed, changes).await?;
        self.show(followed.nodes, followed.owner);
        applied.reign = followed.reign;
        applied.number = followed.number;
        drop(applied);
        self.right.applied(sent);
        self.hear(followed.lease_put);
        self.is_owner_in_doubt.store(followed.is_in_doubt, Ordering::Release);
        if followed.is_in_doubt {
            self.link.trouble.notify_one();
        }
        self.steps.send_modify(|steps| *steps += 1);
        Ok(())
    }

    async fn apply(&self, applied: &mut Applied, followed: &Followed, changes: Vec<Change>) -> Result<(), String> {
        let Some(database) = self.database.get() else {
            return Ok(());
        };
        let changed = if followed.is_whole {
            let value = |change: Change| Some((change.key, change.value?.into()));
            changed_records(&applied.records, &changes.into_iter().filter_map(value).collect())
        } else {
            changes
        };
        if !changed.is_empty() {
            let done = database.engine().apply(changed.clone()).await;
            done.map_err(|error| error.to_string())?;
        }
        for change in changed {
            match change.value {
                Some(value) => applied.records.insert(change.key, value.into()),
                None => applied.records.remove(&change.key),
            };
        }
        let is_other = applied.reign != followed.reign || applied.roles != followed.roles;
        if is_other {
            database.reload_roles().await.map_err(|error| error.to_string())?;
        }
        applied.roles = followed.roles;
        Ok(())
    }

    /// Shows clients the nodes, and tells them what has changed.
    fn show(&self, mut nodes: Vec<KnownNode>, owner: String) {
        nodes.sort_by(|a, b| a.node.name.cmp(&b.node.name));
        let own = self.name();
        if !nodes.iter().any(|known| known.node.name == own) {
            return;
        }
        let told = Told {
            nodes: nodes.clone(),
            owner: Some(owner),
            at: self.clock.through_sleep(),
        };
        let owner = told.owner.clone();
        let before = std::mem::replace(&mut *self.told(), told);
        if nodes == before.nodes && owner == before.owner {
            return;
        }
        let Some(database) = self.database.get() else { return };
        let engine = database.engine();
        engine.set_fleet(living::shown(&nodes, owner.as_deref()));
        engine.set_ring(living::ring(engine.node(), &nodes, &own));
        if owner != before.owner {
            tracing::info!(owner, "a node owns the stores");
        }
        for event in events_between(&before.nodes, &nodes, &own) {
            tracing::info!("{}", line(&event));
            if let Some(events) = self.events.get() {
                events.emit(event);
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it knows of the nodes from the owner that has answered last.
    pub(super) fn last_known(&self) -> LastKnown {
        let told = self.told();
        let silent = self.clock.through_sleep().saturating_sub(told.at);
        LastKnown {
            nodes: told.nodes.clone(),
            owner: told.owner.clone(),
            silent_millis: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Notes what the owner says of its lease.
    fn hear(&self, put: Option<(String, u64)>) {
        let Some((incarnation, number)) = put else { return };
        let put = LeasePut { incarnation, number };
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.as_ref().is_none_or(|(known, _)| *known != put) {
            *heard = Some((put, self.clock.through_sleep()));
        }
    }

    /// What the owner has said of its lease last.
    pub(super) fn heard(&self) -> Option<HeardLease> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = self.clock.through_sleep();
        heard.map(|(put, at)| HeardLease {
            put,
            age: now.saturating_sub(at),
        })
    }

    /// How long this node lets others try first to take a lease that is over. `holder` had it.
    pub(super) fn turn(&self, holder: Option<&str>) -> Duration {
        let told = self.told();
        // Nodes that know each other go first: this one may have other settings, which only an owner can tell it.
        let behind = if told.owner.is_none() { STRANGER } else { Duration::ZERO };
        let up = told.nodes.iter().filter(|known| known.is_up);
        let up: Vec<PeerName> = up.map(|known| PeerName::from(known.node.name.clone())).collect();
        drop(told);
        let turn = Turn::of(
            &PeerName::from(self.name()),
            &up,
            holder.map(PeerName::from).as_ref(),
            None,
        );
        turn.first(behind)
    }

    /// Whether the owner answers within a short time, and has no doubt about its lease.
    pub(super) async fn is_answered(&self) -> bool {
        if self.is_owner_in_doubt.load(Ordering::Acquire) {
            return false;
        }
        let mut steps = self.steps.subscribe();
        steps.borrow_and_update();
        let next = tokio::time::timeout(LOOK, steps.changed());
        next.await.is_ok()
    }

    fn may_answer(&self) -> bool {
        self.right.may_answer(self.clock.through_sleep()) || mutant::is_on(Mutant::StaleEdge)
    }
}

/// 16 bytes of hexadecimal digits.
fn key_of(text: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| number.to_be_bytes())
}

/// An event, for the log.
fn line(event: &Event) -> String {
    match event {
        Event::Topology(TopologyChange::NewNode, address) => format!("there is a node at {address}"),
        Event::Topology(TopologyChange::RemovedNode, address) => format!("the node at {address} is forgotten"),
        Event::Status(StatusChange::Up, address) => format!("the node at {address} is up"),
        Event::Status(StatusChange::Down, address) => format!("the node at {address} is down"),
        other => format!("{other:?}"),
    }
}

/// What clients are told when the nodes change.
fn events_between(before: &[KnownNode], after: &[KnownNode], own: &str) -> Vec<Event> {
    let find = |nodes: &[KnownNode], name: &str| nodes.iter().find(|known| known.node.name == name).cloned();
    let mut events = Vec::new();
    for known in after.iter().filter(|known| known.node.name != own) {
        let address = known.node.address;
        let status = |is_up| if is_up { StatusChange::Up } else { StatusChange::Down };
        match find(before, &known.node.name) {
            None => {
                events.push(Event::Topology(TopologyChange::NewNode, address));
                events.push(Event::Status(status(known.is_up), address));
            }
            Some(was) if was.is_up != known.is_up => events.push(Event::Status(status(known.is_up), address)),
            Some(_) => {}
        }
    }
    for known in before.iter().filter(|known| find(after, &known.node.name).is_none()) {
        events.push(Event::Topology(TopologyChange::RemovedNode, known.node.address));
    }
    events
}

/// The answer where no owner could be asked, or did not answer.
fn unanswered(error: &Unanswered) -> Response {
    let text = format!("the owner of the partitions has not answered: {error}");
    let consistency = Consistency::One;
    let detail = match error {
        Unanswered::NotSent(_) => ErrorDetail::Unavailable {
            consistency,
            required: 1,
            alive: 0,
        },
        Unanswered::Sent(_) => ErrorDetail::WriteTimeout {
            consistency,
            received: 0,
            block_for: 1,
            write_kind: helenus_types::consistency::WriteKind::Simple,
            contentions: 0,
        },
    };
    ErrorBody::detailed(text, detail).into()
}

impl Relay for Following {
    fn relay(&self, request: RelayedRequest) -> BoxFuture<'_, Response> {
        async move {
            let answer = self
                .link
                .ask(Kind::Request, encode_request(&request), REQUEST_WITHIN)
                .await;
            match answer {
                Err(error) => unanswered(&error),
                Ok(answer) => match decode_response(answer) {
                    Some(relayed) => Body::Relayed(relayed).into(),
                    None => ErrorBody::server("the owner's answer cannot be read".to_owned()).into(),
                },
            }
        }
        .boxed()
    }

    fn may_answer(&self) -> bool {
        Self::may_answer(self)
    }

    fn until_may_answer(&self) -> BoxFuture<'_, bool> {
        async move {
            let mut steps = self.steps.subscribe();
            let may = steps.wait_for(|_| Self::may_answer(self));
            tokio::time::timeout(REQUEST_WITHIN, may).await.is_ok()
        }
        .boxed()
    }

    fn figures(&self, path: &'static str) -> BoxFuture<'_, Option<serde_json::Value>> {
        async move {
            let path = Bytes::from_static(path.as_bytes());
            let answer = self.link.ask(Kind::Figures, path, FIGURES_WITHIN).await.ok()?;
            serde_json::from_slice(&answer).ok()
        }
        .boxed()
    }

    fn owned(&self) -> Option<Arc<Database>> {
        self.link.here().map(|owning| Arc::clone(owning.database()))
    }

    fn forget(&self, name: String) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let answer = self.link.ask(Kind::Forget, name.into(), FIGURES_WITHIN).await;
            let why = answer.map_err(|error| format!("the owner of the stores has not answered: {error}"))?;
            if why.is_empty() {
                return Ok(());
            }
            Err(String::from_utf8_lossy(&why).into_owned())
        }
        .boxed()
    }

    fn catch_up(&self) -> BoxFuture<'_, ()> {
        async move {
            let mut steps = self.steps.subscribe();
            drop(tokio::time::timeout(CATCH_UP_WITHIN, steps.changed()).await);
        }
        .boxed()
    }
}
