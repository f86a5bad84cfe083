//! The one server that owns a prefix: how it acquires the lease, renews it, and detects that it has lost it.
//!
//! - **A holder** trusts its lease until the time when it sent its newest confirmed put, plus the lease's length. That
//!   end is one number, against which each snapshot of a store is checked *after* it was taken.
//! - **Another server** takes the prefix when the lease was released, or when it has not changed since it was first seen
//!   for its whole length, plus a hundredth and 50 ms. It puts its own lease by the tag that it watched. Nodes of a fleet hear of
//!   each put from the holder, and count from then.
//! - **After a put without an answer** the lease is read. If its incarnation is the holder's own, the holder continues.
//! - **A holder that finds another server's lease** has lost the prefix for good: it reads and writes nothing any more.
//!
//! The lease's time includes the machine's sleep, where the system counts it. A write to the log that all databases share
//! is durable only if the lease is held when its answer comes. Writes to a log of SlateDB do not depend on the lease:
//! fences that are kept for ever, and its epochs, refuse those of an earlier owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slatedb::object_store::path::Path;
use slatedb::object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion,
};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use super::found::refusal;
use super::lease::{Found, Heard, LEASE, Lease, Watch};
use super::{Holder, LeasePut, Reach, Reached};
use crate::storage::bucket_refusal::Refusal;
use helenus_base::clock::Clock;

const OWNER: &str = "fleet/owner";

/// Time between checks of another server's lease.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Time between a failed renewal and the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Puts of an acquisition before it is given up.
const PUTS_MAX: u64 = 8;

/// How long one request of an acquisition may take.
const REQUEST_MAX: Duration = Duration::from_secs(3);

/// The lease that this process has. Dropping it releases the prefix; [`Owner::release`] waits for that.
#[derive(Debug)]
pub(in crate::storage) struct Owner {
    state: Arc<State>,
    /// The task that renews the lease, and what stops it.
    keeper: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    incarnation: String,
}

#[derive(Debug)]
struct State {
    objects: Arc<dyn ObjectStore>,
    clock: Clock,
    change_interval: Duration,
    /// When the lease ends, in µs of the clock's time through sleep. 0 means that it is no longer held.
    ends_micros: AtomicU64,
    /// The number of the newest put that was confirmed.
    put: AtomicU64,
}

/// The newest put of the lease.
#[derive(Debug)]
struct Held {
    lease: Lease,
    tag: UpdateVersion,
}

/// The outcome of a renewal.
enum Renewed {
    Done,
    /// The outcome is not known, or the put must be repeated: `None` means that it met an earlier one of this holder.
    Failed(Option<Refusal>),
    /// The prefix is another server's. `None` means that the lease object is missing.
    Lost(Option<Lease>),
}

impl Owner {
    /// Acquires the lease of the prefix. If another server holds it, waits until its lease is over. `lost` is called
    /// when another server has taken the lease.
    ///
    /// # Errors
    /// Another server renews its lease, or the bucket cannot be reached.
    pub(in crate::storage) async fn acquire(
        reached: &Reached,
        reach: &Reach,
        clock: Clock,
        lost: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, Refusal> {
        let state = Arc::new(State {
            objects: Arc::clone(&reached.objects),
            change_interval: reached.change_interval,
            ends_micros: AtomicU64::default(),
            put: AtomicU64::default(),
            clock,
        });
        let held = state.acquire(reach).await?;
        let incarnation = held.lease.incarnation.clone();
        let (stop, stopped) = oneshot::channel();
        let keeper = tokio::spawn(Arc::clone(&state).keep(held, stopped, lost));
        Ok(Self {
            state,
            keeper: Mutex::new(Some((stop, keeper))),
            incarnation,
        })
    }

    /// The name of this process, which no other process has had or will have.
    pub(in crate::storage) fn incarnation(&self) -> &str {
        &self.incarnation
    }

    /// Whether this process owns the prefix now. If checked after a snapshot was taken, true means that no other server
    /// had written before it.
    pub(in crate::storage) fn is_owner(&self) -> bool {
        self.state.is_owner()
    }

    /// How long the lease lasts unless it is renewed.
    pub(in crate::storage) fn lease_left(&self) -> Duration {
        let ends = self.state.ends_micros.load(Ordering::Acquire);
        Duration::from_micros(ends.saturating_sub(self.state.now_micros()))
    }

    /// The newest put of the lease that was confirmed.
    pub(in crate::storage) fn lease_put(&self) -> LeasePut {
        LeasePut {
            incarnation: self.incarnation.clone(),
            number: self.state.put.load(Ordering::Acquire),
        }
    }

    /// [`Owner::is_owner`] as a function of its own.
    pub(in crate::storage) fn asked(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let state = Arc::clone(&self.state);
        move || state.is_owner()
    }

    /// Releases the prefix, so that the next server need not wait.
    pub(in crate::storage) async fn release(&self) {
        let keeper = self.keeper.lock().await.take();
        if let Some((stop, keeper)) = keeper {
            drop(stop);
            drop(keeper.await);
        }
    }
}

fn tag_of(put: PutResult) -> UpdateVersion {
    UpdateVersion {
        e_tag: put.e_tag,
        version: put.version,
    }
}

impl State {
    fn is_owner(&self) -> bool {
        self.now_micros() < self.ends_micros.load(Ordering::Acquire)
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.clock.through_sleep().as_micros()).unwrap_or(u64::MAX)
    }

    async fn acquire(&self, reach: &Reach) -> Result<Held, Refusal> {
        let mut lease = Lease {
            // Drawn at random by the program; a test may pass the same number twice.
            incarnation: format!("{:016x}-{:x}-{:x}", reach.draw, std::process::id(), self.now_micros()),
            put: 0,
            is_live: true,
            length: reach.lease.unwrap_or(LEASE),
            name: reach.name.clone(),
            address: reach.address.clone(),
        };
        let mut watch = Watch::default();
        let begun = self.clock.through_sleep();
        let heard = reach.heard.as_ref().map(|heard| Heard::of(heard, begun));
        let mut is_told = false;
        loop {
            let mode = match within(REQUEST_MAX, self.read()).await? {
                None => PutMode::Create,
                // The answer to a put was lost.
                Some((found, tag)) if found.incarnation == lease.incarnation => PutMode::Update(tag),
                Some((found, tag)) => match watch.check(&found, &tag, heard.as_ref(), self.clock.through_sleep()) {
                    Found::Alive => {
                        return Err(Refusal::InUse {
                            name: found.name,
                            address: found.address,
                        });
                    }
                    Found::Unknown => {
                        if !is_told {
                            tracing::info!(
                                name = found.name,
                                address = found.address,
                                "waiting until the lease of the server that had the bucket is over, or until it renews it"
                            );
                            is_told = true;
                        }
                        tokio::time::sleep(CHECK_INTERVAL).await;
                        continue;
                    }
                    Found::Over => {
                        if found.is_live {
                            tracing::warn!(
                                name = found.name,
                                address = found.address,
                                "took over from a server that stopped without a release"
                            );
                        }
                        PutMode::Update(tag)
                    }
                },
            };
            if lease.put == PUTS_MAX {
                return Err(Refusal::Unreachable {
                    what: "its lease can be read and not be put".to_owned(),
                });
            }
            lease.put += 1;
            let sent = self.now_micros();
            match within(REQUEST_MAX, self.put(&lease, mode)).await {
                Ok(Some(tag)) => {
                    self.trust(sent, &lease);
                    return Ok(Held { lease, tag });
                }
                Ok(None) => {}
                Err(error) if error.may_pass() => {
                    tracing::debug!(%error, "the lease could not be acquired; trying again");
                    // Google refuses a change within a second after the last one, such as the release before a restart.
                    tokio::time::sleep(CHECK_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn trust(&self, sent_micros: u64, lease: &Lease) {
        let length = u64::try_from(lease.length.as_micros()).unwrap_or(u64::MAX);
        self.ends_micros
            .store(sent_micros.saturating_add(length), Ordering::Release);
        self.put.store(lease.put, Ordering::Release);
    }

    async fn read(&self) -> Result<Option<(Lease, UpdateVersion)>, Refusal> {
        read(&self.objects).await
    }

    /// `None` means that the lease is not the one that the mode requires.
    async fn put(&self, lease: &Lease, mode: PutMode) -> Result<Option<UpdateVersion>, Refusal> {
        let options = PutOptions::from(mode);
        let body = PutPayload::from(lease.encode());
        match self.objects.put_opts(&Path::from(OWNER), body, options).await {
            Ok(put) => Ok(Some(tag_of(put))),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } | StoreError::NotFound { .. }) => {
                Ok(None)
            }
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Renews the lease until it is stopped, then releases it.
    async fn keep(self: Arc<Self>, mut held: Held, mut stopped: oneshot::Receiver<()>, lost: impl Fn()) {
        let interval = renewal_interval(held.lease.length).max(self.change_interval);
        let mut wait = interval;
        let mut is_over = false;
        loop {
            match tokio::time::timeout(wait, &mut stopped).await {
                Ok(_) => break,
                Err(_) => wait = interval,
            }
            match self.renew(&mut held).await {
                Renewed::Done if is_over => {
                    is_over = false;
                    tracing::info!("the lease of the bucket is renewed; requests are answered again");
                }
                Renewed::Done => {}
                Renewed::Failed(why) => {
                    wait = wait.min(RETRY_INTERVAL);
                    if !is_over && !self.is_owner() {
                        is_over = true;
                        let why = why.map_or_else(
                            || "the answer to an earlier put was lost".to_owned(),
                            |why| why.to_string(),
                        );
                        tracing::error!(
                            why,
                            "the lease of the bucket is over and was not renewed; no request is answered until it is"
                        );
                    }
                }
                Renewed::Lost(holder) => {
                    self.ends_micros.store(0, Ordering::Release);
                    match holder {
                        Some(Lease { name, address, .. }) => {
                            tracing::error!(name, address, "another server has taken the bucket over");
                        }
                        None => tracing::error!(
                            "the lease is gone from the bucket: its objects were removed, or another server has put one of another version"
                        ),
                    }
                    return lost();
                }
            }
        }
        self.ends_micros.store(0, Ordering::Release);
        held.lease.put += 1;
        held.lease.is_live = false;
        if let Err(error) = within(REQUEST_MAX, self.release(&held)).await {
            tracing::warn!(%error, "the bucket was not released; the next start waits until the lease is over");
        }
    }

    /// Puts the end of the lease, again while the store does not take it.
    async fn release(&self, held: &Held) -> Result<Option<UpdateVersion>, Refusal> {
        loop {
            match self.put(&held.lease, PutMode::Update(held.tag.clone())).await {
                Err(error) if error.may_pass() => tokio::time::sleep(RETRY_INTERVAL).await,
                answered => return answered,
            }
        }
    }

    async fn renew(&self, held: &mut Held) -> Renewed {
        held.lease.put += 1;
        let request_max = held.lease.length * 2 / 5;
        let sent = self.now_micros();
        let put = self.put(&held.lease, PutMode::Update(held.tag.clone()));
        match within(request_max, put).await {
            Ok(Some(tag)) => {
                held.tag = tag;
                self.trust(sent, &held.lease);
                return Renewed::Done;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "the lease could not be renewed");
                return Renewed::Failed(Some(error));
            }
        }
        match within(request_max, self.read()).await {
            Ok(Some((found, tag))) if found.incarnation == held.lease.incarnation => {
                held.tag = tag;
                Renewed::Failed(None)
            }
            Ok(found) => Renewed::Lost(found.map(|(found, _)| found)),
            Err(Refusal::OtherFormat { .. }) => Renewed::Lost(None),
            Err(error) => Renewed::Failed(Some(error)),
        }
    }
}

/// Who has, or had last, the lease of a prefix. `None` means that nobody had it.
///
/// # Errors
/// The bucket cannot be reached, or the lease has another version's format.
pub(super) async fn holder(reached: &Reached) -> Result<Option<Holder>, Refusal> {
    let found = within(REQUEST_MAX, read(&reached.objects)).await?;
    Ok(found.map(|(lease, _)| Holder {
        name: lease.name,
        address: lease.address,
        is_live: lease.is_live,
    }))
}

/// The lease of a prefix. `None` means that there is none.
async fn read(objects: &Arc<dyn ObjectStore>) -> Result<Option<(Lease, UpdateVersion)>, Refusal> {
    let got = match objects.get(&Path::from(OWNER)).await {
        Err(error @ StoreError::NotFound { .. }) => {
            return match refusal(&error) {
                // Some stores answer 404 to these, too.
                wrong @ (Refusal::NoBucket | Refusal::WrongCredentials | Refusal::Expired) => Err(wrong),
                _ => Ok(None),
            };
        }
        got => got.map_err(|error| refusal(&error))?,
    };
    let tag = UpdateVersion {
        e_tag: got.meta.e_tag.clone(),
        version: got.meta.version.clone(),
    };
    let body = got.bytes().await.map_err(|error| refusal(&error))?;
    Ok(Some((Lease::decode(&body)?, tag)))
}

/// Three renewals fit into a lease.
fn renewal_interval(length: Duration) -> Duration {
    length * 7 / 25
}

async fn within<T>(longest: Duration, request: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    tokio::time::timeout(longest, request).await.unwrap_or_else(|_| {
        Err(Refusal::Unreachable {
            what: format!("no answer in {} ms", longest.as_millis()),
        })
    })
}
