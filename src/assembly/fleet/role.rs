//! The role of a node: it owns the stores, or follows the node that does. Both end when the lease changes hands.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::OwnerOptions;
use super::following::Following;
use super::link::{At, Link, OwnerHere};
use super::messages::Agreed;
use super::owning::{Owning, Reign};
use crate::assembly::opening::{RunError, operator_folder};
use crate::assembly::{jobs, roles};
use crate::server::{Requests, operator};
use helenus_base::tasks::Tasks;
use helenus_cql::cql::Database;
use helenus_engine::engine;
use helenus_fleet::fleet::PeerAddress;
use helenus_storage::storage as store;
use store::bucket::Holder;

/// How often an owner checks that it still has the lease, and a follower who has it after the owner could not be asked.
const CHECK: Duration = Duration::from_millis(100);

/// How long another node that opens the stores at the same time may take to get the lease.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// How long a former owner's stores may take to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// The task of a node's role.
pub(super) struct Role {
    stop: watch::Sender<bool>,
    tasks: Tasks,
    closed: oneshot::Receiver<Result<(), engine::Error>>,
}

/// Opens the stores if nobody has them. Returns the identity of the cluster, and the database if this node has opened it.
///
/// # Errors
/// The bucket cannot be used.
pub(super) async fn first_opening(owner: &OwnerOptions) -> Result<(Option<Database>, String), RunError> {
    let (url, reach) = (&owner.engine.url, &owner.engine.store.reach);
    let mut opened = None;
    if store::bucket::holder(url, reach)
        .await?
        .is_none_or(|holder| !holder.is_live)
    {
        let done = tokio::select! {
            done = Database::open(owner.engine.clone()) => done,
            // The attempt has not got the lease, so it has opened nothing.
            _ = until_other_holds(owner) => return Ok((None, cluster(owner).await?)),
        };
        match done {
            Ok(database) => opened = Some(database),
            Err(error)
                if tokio::time::timeout(TAKEN_WITHIN, until_other_holds(owner))
                    .await
                    .is_ok() =>
            {
                tracing::debug!(%error, "another node has opened the stores");
            }
            Err(source) => {
                return Err(RunError::Open {
                    url: owner.config.data.clone(),
                    source: Box::new(source.into()),
                });
            }
        }
    }
    Ok((opened, cluster(owner).await?))
}

/// The identity of the cluster.
async fn cluster(owner: &OwnerOptions) -> Result<String, RunError> {
    let cluster = store::bucket::cluster(&owner.engine.url, &owner.engine.store.reach).await?;
    Ok(cluster.unwrap_or_default())
}

/// Another node that has the lease. `None` means that none has it, or that it cannot be read: an attempt to open finds out why.
async fn other_holder(owner: &OwnerOptions) -> Option<Holder> {
    let reach = &owner.engine.store.reach;
    let found = store::bucket::holder(&owner.engine.url, reach).await;
    let found = found.unwrap_or_else(|error| {
        tracing::warn!(%error, "the lease of the bucket cannot be read");
        None
    });
    found.filter(|holder| holder.is_live && holder.address != reach.address)
}

/// Waits until another node has the lease.
async fn until_other_holds(owner: &OwnerOptions) -> Holder {
    loop {
        tokio::time::sleep(CHECK).await;
        if let Some(holder) = other_holder(owner).await {
            return holder;
        }
    }
}

impl Role {
    pub(super) fn begin(
        owner: OwnerOptions,
        first: Option<Database>,
        link: Arc<Link>,
        following: Arc<Following>,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let course = Course {
            random: fastrand::Rng::with_seed(owner.engine.seed),
            owner,
            link,
            following,
            stopped,
        };
        let (told, closed) = oneshot::channel();
        let tasks = Tasks::default();
        tasks.spawn("role in the fleet", async move {
            // Whoever ends the role may have stopped waiting.
            let _ = told.send(course.run(first).await);
        });
        Self { stop, tasks, closed }
    }

    /// Closes the stores, if they are open here.
    ///
    /// # Errors
    /// The medium fails.
    pub(super) async fn end(self, within: Duration) -> Result<(), engine::Error> {
        self.stop.send_replace(true);
        let closed = tokio::time::timeout(within + CLOSE_WITHIN, self.closed).await;
        self.tasks.join(Duration::ZERO).await;
        let in_time = closed.ok().and_then(Result::ok);
        in_time.unwrap_or_else(|| Err(engine::Error::Fault("the stores were not closed in time".to_owned())))
    }
}

struct Course {
    owner: OwnerOptions,
    link: Arc<Link>,
    following: Arc<Following>,
    stopped: watch::Receiver<bool>,
    random: fastrand::Rng,
}

impl Course {
    async fn run(mut self, first: Option<Database>) -> Result<(), engine::Error> {
        let mut opened = first;
        loop {
            if let Some(database) = opened.take() {
                let closed = self.reign(Arc::new(database)).await;
                if self.is_stopped() {
                    return closed;
                }
            }
            if self.is_stopped() {
                return Ok(());
            }
            if let Some(holder) = other_holder(&self.owner).await {
                self.link.set_there(PeerAddress::from(holder.address));
                self.until_trouble().await;
                if !self.is_stopped() {
                    tokio::time::sleep(self.following.turn(Some(&holder.name))).await;
                }
            }
            if self.is_stopped() {
                return Ok(());
            }
            Arc::make_mut(&mut self.owner.engine.store.reach).heard = self.following.heard();
            // Waits for the end of the lease, or finds that its holder renews it.
            let done = tokio::select! {
                done = Database::open(self.owner.engine.clone()) => done,
                never = self.show_holder() => match never {},
                () = self.until_given_up() => return Ok(()),
            };
            match done {
                Ok(database) => opened = Some(database),
                Err(error) => {
                    tracing::debug!(%error, "the stores are another node's");
                    tokio::time::sleep(CHECK).await;
                }
            }
        }
    }

    /// Shows the link another node that takes the lease meanwhile: requests need not wait until the attempt to open has found that out.
    async fn show_holder(&self) -> Infallible {
        loop {
            let holder = until_other_holds(&self.owner).await;
            self.link.set_there(PeerAddress::from(holder.address));
        }
    }

    /// Returns when this node stops while another one has the lease: the attempt to open has opened nothing.
    async fn until_given_up(&self) {
        let mut stopped = self.stopped.clone();
        let _ = stopped.wait_for(|stopped| *stopped).await;
        until_other_holds(&self.owner).await;
    }

    fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Returns when the owner could not be asked for a while, or this node stops.
    async fn until_trouble(&mut self) {
        let link = Arc::clone(&self.link);
        let mut stopped = self.stopped.clone();
        loop {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = link.trouble.notified() => {}
            }
            if !self.following.is_answered().await {
                return;
            }
        }
    }

    /// Owns the stores until the lease is lost or this node stops, and closes them.
    async fn reign(&mut self, database: Arc<Database>) -> Result<(), engine::Error> {
        let config = Arc::clone(&self.owner.config);
        let superuser = config
            .server
            .credentials
            .clone()
            .filter(|_| !config.profile.is_cosmos());
        if let Some(superuser) = superuser
            && let Err(error) = roles::enable(&config, &database, superuser).await
        {
            tracing::error!(%error, "the roles cannot be read: this node does not own the stores");
            return database.close_within(CLOSE_WITHIN).await;
        }
        let clock = self.owner.clock.clone();
        let requests = Requests::new(Arc::clone(&database), &config.server.limits, clock.clone());
        let requests = requests.with_charge_payload(config.charge_payload);
        let reign = Reign {
            number: self.random.u64(1..),
            node: self.following.name(),
            agreed: Agreed::of(&config),
        };
        let last = self.following.last_known();
        let owning = Owning::new(Arc::clone(&database), requests, reign, clock, &last);
        let owning = Arc::new(owning);
        jobs::spawn(&config, &database, None);
        // Where this node is, for as long as it owns the stores.
        if let Ok(Some(folder)) = operator_folder(&config) {
            operator::serve(&folder, &database);
        }
        tracing::info!("this node owns the stores");
        self.link.set(Some(At::Here(Arc::clone(&owning) as _)));
        let mut stopped = self.stopped.clone();
        while owning.database().engine().upkeep().lost().is_none() {
            let stop = stopped.wait_for(|stopped| *stopped);
            if tokio::time::timeout(CHECK, stop).await.is_ok() {
                break;
            }
            owning.check_lease();
            owning.database().engine().owner_side().forget_old_pages();
        }
        owning.check_lease();
        owning.end();
        self.link.set(None);
        tracing::info!("this node does not own the stores any more");
        database.close_within(CLOSE_WITHIN).await
    }
}
