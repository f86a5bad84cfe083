//! The nodes of a simulated fleet, the medium that they share, and what befalls them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use helenus_base::clock::Clock;
use helenus_cql::cql::Database;
use helenus_engine::engine::{ClockRules, Elsewhere, Options, SizeLimits, ThroughputRules};
use helenus_engine::throughput::Coefficients;
use helenus_engine::views::Tables;
use helenus_fleet::fleet::{Network, PeerAddress, PeerName, Wire};
use helenus_schema::guardrails::Guardrails;
use helenus_schema::profile::{Account, Profile};
use helenus_schema::schema::node::NodeInfo;
use helenus_storage::storage::{self as store, Medium, Url};
use helenus_types::functions::CallLimits;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::super::following::Following;
use super::super::link::{At, Link, OwnerHere};
use super::super::messages::{Agreed, Node};
use super::super::owning::{Owning, Reign};
use super::model::Mark;
use crate::server::{Events, Limits, Requests};

const NOW_MICROS: i64 = 1_700_000_000_000_000;

/// The time between two moves of the clocks.
const TICK: Duration = Duration::from_millis(2);

/// The most by which a node's wall clock is off, µs.
const OFF_MAX_MICROS: i64 = 3_600_000_000;

/// The medium goes on by one step in so many ticks, on average.
const MEDIUM_TICKS: u64 = 2;

/// Pages that others read in parts are forgotten as in a server.
const HOUSEKEEPING_TICKS: u64 = 50;

/// A node's process.
pub(super) struct Process {
    pub(super) requests: Arc<Requests>,
    database: Arc<Database>,
    following: Arc<Following>,
    /// Becomes true when it is killed.
    pub(super) killed: watch::Sender<bool>,
    pub(super) at_work: Cell<u32>,
}

/// A node, whether its process runs or not.
struct Place {
    name: String,
    address: PeerAddress,
    clock: Clock,
    /// How far its clock moves in a tick.
    rate: Duration,
    link: RefCell<Arc<Link>>,
    process: RefCell<Option<Rc<Process>>>,
}

/// The owner's side of a node.
struct Owner {
    place: usize,
    owning: Arc<Owning>,
}

/// What befalls a fleet.
pub(super) enum Fault {
    /// Nothing passes from one node to another, or between them.
    Cut(usize, usize, bool),
    /// All wires are slow and lossy.
    Slow,
    /// A node that is not the owner is killed.
    KillEdge(usize),
    /// The owner is killed.
    KillOwner,
    /// The owner's lease is lost, and it does not know yet.
    LoseLease,
}

impl Fault {
    pub(super) fn drawn(world: &World) -> Self {
        let nodes = world.nodes.borrow().len() as u64;
        let from = world.below(nodes);
        let to = (from + 1 + world.below(nodes - 1)) % nodes;
        let place = |number: u64| usize::try_from(number).unwrap();
        match world.below(10) {
            0..4 => Self::Cut(place(from), place(to), world.below(2) == 0),
            4..6 => Self::Slow,
            6 | 7 => Self::KillEdge(place(from)),
            8 => Self::KillOwner,
            _ => Self::LoseLease,
        }
    }
}

/// The state that all tasks of a seed share.
pub(super) struct World {
    random: RefCell<fastrand::Rng>,
    pub(super) medium: Medium,
    network: Network,
    nodes: RefCell<Vec<Rc<Place>>>,
    owner: RefCell<Option<Owner>>,
    is_over: Cell<bool>,
    is_loud: bool,
    failure: RefCell<Option<String>>,
    marks: RefCell<BTreeSet<Mark>>,
    numbers: Cell<i64>,
    ticks: Cell<u64>,
}

impl World {
    pub(super) fn new(seed: u64, is_loud: bool) -> Rc<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        Rc::new(Self {
            medium: Medium::new(random.u64(..)),
            network: Network::new(random.fork()),
            random: RefCell::new(random),
            nodes: RefCell::default(),
            owner: RefCell::default(),
            is_over: Cell::new(false),
            is_loud,
            failure: RefCell::default(),
            marks: RefCell::default(),
            numbers: Cell::new(0),
            ticks: Cell::new(0),
        })
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().u64(..end)
    }

    /// A number that was not used before.
    pub(super) fn number(&self) -> i64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        if self.is_loud {
            println!("{:6} ms {}", u128::from(self.ticks.get()) * TICK.as_millis(), line());
        }
    }

    pub(super) fn mark(&self, mark: Mark) {
        self.marks.borrow_mut().insert(mark);
    }

    pub(super) fn marks(&self) -> BTreeSet<Mark> {
        self.marks.borrow().clone()
    }

    /// Records a failure and ends the seed; only the first one counts.
    pub(super) fn fail(&self, what: String) {
        self.note(|| format!("WRONG {what}"));
        self.failure.borrow_mut().get_or_insert(what);
        self.stop();
    }

    pub(super) fn judge(&self, outcome: Result<(), String>) {
        if let Err(what) = outcome {
            self.fail(what);
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Clients and faults end.
    pub(super) fn stop(&self) {
        self.is_over.set(true);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    pub(super) async fn sleep_up_to(&self, millis: u64) {
        tokio::time::sleep(Duration::from_micros(self.below(millis * 1000))).await;
    }

    /// Moves the clocks and the medium.
    pub(super) fn spawn_ticks(self: &Rc<Self>) -> JoinHandle<()> {
        let world = Rc::clone(self);
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(TICK).await;
                world.tick();
            }
        })
    }

    fn tick(&self) {
        let ticks = self.ticks.get() + 1;
        self.ticks.set(ticks);
        for node in &*self.nodes.borrow() {
            node.clock.advance(node.rate);
        }
        if self.medium.has_work() && self.below(MEDIUM_TICKS) == 0 {
            self.medium.work();
        }
        self.medium.end_pauses();
        if ticks.is_multiple_of(HOUSEKEEPING_TICKS)
            && let Some(owner) = &*self.owner.borrow()
        {
            owner.owning.database().engine().owner_side().forget_old_pages();
        }
    }

    /// Adds a node that does not run yet.
    pub(super) fn add_node(&self, number: usize) {
        let off = i64::try_from(self.below(u64::try_from(2 * OFF_MAX_MICROS).unwrap())).unwrap() - OFF_MAX_MICROS;
        self.nodes.borrow_mut().push(Rc::new(Place {
            name: format!("n{number}"),
            address: PeerAddress::from(format!("n{number}")),
            clock: Clock::manual(NOW_MICROS + off),
            rate: TICK.mul_f64(0.99 + 0.001 * f64::from(u32::try_from(self.below(21)).unwrap())),
            link: RefCell::new(Arc::new(Link::new())),
            process: RefCell::default(),
        }));
    }

    fn node(&self, place: usize) -> Rc<Place> {
        Rc::clone(&self.nodes.borrow()[place])
    }

    /// The processes that run.
    pub(super) fn processes(&self) -> Vec<(usize, Rc<Process>)> {
        let nodes = self.nodes.borrow();
        let processes = nodes.iter().enumerate();
        let running = processes.filter_map(|(place, node)| Some((place, Rc::clone(node.process.borrow().as_ref()?))));
        running.collect()
    }

    fn options(&self, node: &Place, url: Url) -> Options {
        Options {
            url,
            store: store::Options {
                medium: Some(self.medium.clone()),
                ..store::Options::default()
            },
            clock: node.clock.clone(),
            seed: self.below(u64::MAX),
            node: NodeInfo::single(Uuid::nil(), IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
            page_bytes_max: Options::PAGE_BYTES_MAX,
            guardrails: Guardrails::default(),
            prices: Coefficients::default(),
            limits: SizeLimits::default(),
            call_limits: CallLimits::default(),
            clock_rules: ClockRules::default(),
            request_log_max: 0,
            count_at_once_rows_max: Options::COUNT_AT_ONCE_ROWS_MAX,
            profile: Profile::default(),
            throughput: ThroughputRules::default(),
            account: Account::default(),
            virtual_tables: Arc::new(Tables::default()),
            mask_calls: helenus_schema::planner::mask_calls,
            elsewhere: None,
        }
    }

    /// Starts the process of a node; waits until it follows an owner.
    pub(super) async fn start(self: &Rc<Self>, place: usize) {
        let node = self.node(place);
        let link = self.connect(place);
        let as_node = Node {
            name: node.name.clone(),
            host_id: Uuid::from_u128(place as u128 + 1),
            address: SocketAddr::from((Ipv4Addr::from(0x7f00_0001 + u32::try_from(place).unwrap()), 9042)),
            fleet_address: node.address.as_str().to_owned(),
            data_center: "d".to_owned(),
            rack: "r".to_owned(),
        };
        let clock = node.clock.clone();
        let following = Arc::new(Following::new(
            Arc::clone(&link),
            as_node,
            Agreed::default(),
            clock,
            self.below(u64::MAX),
        ));
        let Ok(paging_key) = following.first_contact().await else {
            return self.fail(format!("{} has found no owner", node.name));
        };
        let elsewhere = Elsewhere {
            carrier: Arc::clone(&link) as _,
            host_id: Uuid::from_u128(place as u128 + 1),
            paging_key,
        };
        let mut options = self.options(&node, Url::Memory);
        options.store.medium = None;
        options.elsewhere = Some(elsewhere);
        let database = Arc::new(Database::open(options).await.unwrap());
        if following.begin(&database, &Arc::new(Events::default())).await.is_err() {
            return self.fail(format!("{} has got no catalog", node.name));
        }
        let requests = Requests::new(Arc::clone(&database), &Limits::default(), node.clock.clone());
        let requests = Arc::new(requests.relayed_by(Some(Arc::clone(&following) as _)));
        self.note(|| format!("{} runs", node.name));
        *node.process.borrow_mut() = Some(Rc::new(Process {
            requests,
            database,
            following,
            killed: watch::Sender::new(false),
            at_work: Cell::new(0),
        }));
    }

    /// A link of a node to the owner that there is.
    fn connect(&self, place: usize) -> Arc<Link> {
        let node = self.node(place);
        let mine = self
            .owner
            .borrow()
            .as_ref()
            .filter(|owner| owner.place == place)
            .map(|owner| Arc::clone(&owner.owning));
        if mine.is_some() {
            // The owner's process: opened with its owner's side.
            return Arc::clone(&node.link.borrow());
        }
        let link = Arc::new(Link::new());
        *node.link.borrow_mut() = Arc::clone(&link);
        self.join(&node, &link);
        link.set(self.owner_address());
        link
    }

    fn join(&self, node: &Place, link: &Arc<Link>) {
        let name = PeerName::from(node.name.clone());
        let endpoint = self.network.join(name, node.address.clone(), Arc::clone(link) as _);
        link.set_transport(Arc::new(endpoint));
    }

    fn owner_address(&self) -> Option<At> {
        let owner = self.owner.borrow();
        owner
            .as_ref()
            .map(|owner| At::There(self.node(owner.place).address.clone()))
    }

    /// A node opens the stores and owns them. Others hear of it later.
    pub(super) async fn own(self: &Rc<Self>, place: usize) {
        let node = self.node(place);
        let Ok(database) = Database::open(self.options(&node, Url::Memory)).await else {
            return self.fail("the stores cannot be opened".to_owned());
        };
        let database = Arc::new(database);
        let requests = Requests::new(Arc::clone(&database), &Limits::default(), node.clock.clone());
        let reign = Reign {
            number: 1 + self.below(u64::MAX - 1),
            node: node.name.clone(),
            agreed: Agreed::default(),
        };
        let last = node
            .process
            .borrow()
            .as_ref()
            .map(|process| process.following.last_known());
        let last = last.unwrap_or_default();
        let owning = Arc::new(Owning::new(database, requests, reign, node.clock.clone(), &last));
        if node.process.borrow().is_none() {
            let link = Arc::new(Link::new());
            *node.link.borrow_mut() = Arc::clone(&link);
            self.join(&node, &link);
        }
        node.link.borrow().set(Some(At::Here(Arc::clone(&owning) as _)));
        self.note(|| format!("{} owns the stores", node.name));
        *self.owner.borrow_mut() = Some(Owner { place, owning });
        for other in 0..self.nodes.borrow().len() {
            if other != place {
                tokio::task::spawn_local(Rc::clone(self).tell(other, place));
            }
        }
    }

    /// Tells a node of an owner, unless there is another one by then.
    async fn tell(self: Rc<Self>, other: usize, owner: usize) {
        self.sleep_up_to(300).await;
        let is_owner = self.owner.borrow().as_ref().is_some_and(|found| found.place == owner);
        if is_owner {
            let address = self.node(owner).address.clone();
            self.node(other).link.borrow().set(Some(At::There(address)));
        }
    }

    fn owner_place(&self) -> Option<usize> {
        self.owner.borrow().as_ref().map(|owner| owner.place)
    }

    /// Kills the process of a node.
    fn kill(&self, place: usize) {
        let node = self.node(place);
        let Some(process) = node.process.borrow_mut().take() else {
            return;
        };
        self.note(|| format!("{} is killed", node.name));
        if process.at_work.get() > 0 {
            self.mark(Mark::KilledAtWork);
        }
        process.killed.send_replace(true);
        process.following.end();
        self.network.leave(&node.address);
        node.link.borrow().set(None);
        tokio::task::spawn_local(async move {
            // The process is killed, so an error of its store in memory means nothing.
            let _ = process.database.close_within(Duration::ZERO).await;
        });
    }

    /// The owner has the stores no more. Returns where it was.
    fn depose(&self) -> Option<usize> {
        let owner = self.owner.borrow_mut().take()?;
        self.medium.crash();
        let owning = owner.owning;
        tokio::task::spawn_local(async move {
            // As a server finds out: within a tenth of a second.
            tokio::time::sleep(Duration::from_millis(100)).await;
            owning.end();
            let _ = owning.database().close_within(Duration::ZERO).await;
        });
        Some(owner.place)
    }

    /// Another node takes the stores over, as soon as one runs.
    async fn take_over(self: &Rc<Self>, but: Option<usize>) {
        let running = self.processes();
        let others: Vec<usize> = running
            .iter()
            .map(|(place, _)| *place)
            .filter(|place| Some(*place) != but)
            .collect();
        let Some(count) = std::num::NonZeroUsize::new(others.len()) else {
            return;
        };
        let place = others[usize::try_from(self.below(count.get() as u64)).unwrap()];
        self.own(place).await;
        self.mark(Mark::TakenOver);
    }

    pub(super) async fn begin(self: &Rc<Self>, fault: &Fault) {
        match fault {
            Fault::Cut(from, to, is_both) => {
                let (from, to) = (self.node(*from), self.node(*to));
                self.note(|| format!("cut {} → {}, both: {is_both}", from.name, to.name));
                self.network.cut(&from.address, &to.address);
                if *is_both {
                    self.network.cut(&to.address, &from.address);
                }
            }
            Fault::Slow => {
                self.note(|| "slow".to_owned());
                self.network.set_all(Wire {
                    delay_min: Duration::from_millis(1),
                    delay_max: Duration::from_millis(1 + self.below(60)),
                    loss: 0.05,
                    is_cut: false,
                });
            }
            Fault::KillEdge(place) if self.owner_place() != Some(*place) => self.kill(*place),
            Fault::KillEdge(_) => {}
            Fault::KillOwner => {
                if let Some(place) = self.depose() {
                    self.kill(place);
                }
            }
            Fault::LoseLease => {
                if let Some(place) = self.depose() {
                    self.mark(Mark::LeaseLost);
                    self.note(|| format!("n{place} has lost the lease"));
                    self.take_over(Some(place)).await;
                    if self.owner_place().is_some() {
                        Rc::clone(self).tell(place, self.owner_place().unwrap_or(place)).await;
                    }
                }
            }
        }
    }

    pub(super) async fn end(self: &Rc<Self>, fault: Fault) {
        match fault {
            Fault::Cut(from, to, _) => {
                let (from, to) = (self.node(from), self.node(to));
                self.network.mend(&from.address, &to.address);
                self.network.mend(&to.address, &from.address);
            }
            Fault::Slow => self.network.set_all(Wire::default()),
            Fault::KillEdge(_) | Fault::KillOwner | Fault::LoseLease => {
                if self.owner_place().is_none() {
                    self.take_over(None).await;
                }
                self.revive().await;
            }
        }
    }

    /// Starts the nodes that do not run.
    async fn revive(self: &Rc<Self>) {
        let count = self.nodes.borrow().len();
        for place in 0..count {
            if self.node(place).process.borrow().is_none() && self.owner_place().is_some() {
                self.start(place).await;
            }
        }
    }

    /// All nodes run, all wires are good.
    pub(super) async fn heal(self: &Rc<Self>) {
        self.medium.set_faults(store::MediumFaults::default());
        self.network.set_all(Wire::default());
        if self.owner_place().is_none() {
            self.take_over(None).await;
        }
        self.revive().await;
    }
}
