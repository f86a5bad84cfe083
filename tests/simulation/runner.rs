//! One thread, one random generator: it chooses the next task, so that a seed determines the order of events.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use helenus_storage::storage::Medium;

/// Idle polls after which no more events are expected: tasks of the database itself have then run.
const IDLE_TURNS: u32 = 64;

/// The events, as lines and as one hash.
pub(crate) struct Log {
    hash: u64,
    lines: Vec<String>,
    /// Prints every line as it is added.
    pub(crate) is_loud: bool,
}

impl Log {
    pub(crate) fn new(is_loud: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: Vec::new(),
            is_loud,
        }
    }

    pub(crate) fn note(&mut self, line: String) {
        for byte in line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if self.is_loud {
            println!("{:5} {line}", self.lines.len());
        }
        self.lines.push(line);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines that explain a failure: those that name it, and the last ones.
    pub(crate) fn trace(&self, about: &str, last: usize) -> Vec<String> {
        let begins = self.lines.len().saturating_sub(last);
        let numbered = self.lines.iter().enumerate();
        let kept = numbered.filter(|(place, line)| *place >= begins || (!about.is_empty() && line.contains(about)));
        kept.map(|(place, line)| format!("{place:6} {line}")).collect()
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    name: String,
    future: Pin<Box<dyn Future<Output = ()>>>,
    flag: Arc<Flag>,
}

/// The outcome of one step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Something proceeded.
    Worked,
    /// Nothing can proceed by itself.
    Idle,
}

/// The tasks of one run of the database, and its medium.
pub(crate) struct Runner {
    tasks: Vec<Task>,
    medium: Medium,
    random: fastrand::Rng,
    log: Rc<RefCell<Log>>,
}

impl Runner {
    pub(crate) fn new(medium: Medium, seed: u64, log: Rc<RefCell<Log>>) -> Self {
        Self {
            tasks: Vec::new(),
            medium,
            random: fastrand::Rng::with_seed(seed),
            log,
        }
    }

    pub(crate) fn spawn(&mut self, name: String, future: impl Future<Output = ()> + 'static) {
        self.tasks.push(Task {
            name,
            future: Box::pin(future),
            flag: Arc::new(Flag(AtomicBool::new(true))),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Drops a task where it is, as a closing connection drops its request. Returns its name.
    pub(crate) fn cancel_one(&mut self) -> Option<String> {
        if self.tasks.is_empty() {
            return None;
        }
        let place = self.random.usize(..self.tasks.len());
        Some(self.tasks.swap_remove(place).name)
    }

    /// One step of a task, or of the medium, chosen at random.
    pub(crate) async fn turn(&mut self) -> Turn {
        for _ in 0..IDLE_TURNS {
            let ready: Vec<usize> = (0..self.tasks.len())
                .filter(|place| self.tasks[*place].flag.0.load(Ordering::Relaxed))
                .collect();
            let has_work = self.medium.has_work();
            let choices = ready.len() + usize::from(has_work);
            if choices > 0 {
                let drawn = self.random.usize(..choices);
                match ready.get(drawn) {
                    Some(place) => self.poll(*place),
                    None => {
                        let done = self.medium.work();
                        self.log.borrow_mut().note(format!("medium {done}"));
                    }
                }
                tokio::task::yield_now().await;
                return Turn::Worked;
            }
            // Tasks that the database itself spawned.
            tokio::task::yield_now().await;
        }
        Turn::Idle
    }

    fn poll(&mut self, place: usize) {
        let task = &mut self.tasks[place];
        task.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.flag));
        self.log.borrow_mut().note(format!("go {}", task.name));
        if let Poll::Ready(()) = task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            drop(self.tasks.swap_remove(place));
        }
    }
}

/// Yields to other tasks once.
pub(crate) async fn pass() {
    let mut is_woken = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_woken, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
