//! Many clients work on a few registers by conditional statements while the server is killed and started again; then a
//! checker looks for an order of all operations, one after the other, that explains every answer.
//!
//! A register is a row, a pair of registers a partition: `(k, 0)` and `(k, 1)`. Clients insert IF NOT EXISTS, update and
//! delete IF the value is what they last saw, change both rows in one conditional batch, and read at SERIAL. Each value
//! is written at most once, so that what an answer shows tells which write it saw.
//!
//! ```text
//! clients ─→ history: when each operation was called, when and how it was answered ─→ check, pair by pair ─→ verdict
//!                                                        └─ falsified ─→ check, which has to refuse each ─┘
//! ```
//! Invariants: times are numbers of one counter, taken before sending and after receiving, so that an operation answered
//! before another was sent has the lower ones. An operation without an answer may have happened at any time after it was
//! sent, also after later restarts, or never. A run whose falsified histories are not all refused has failed: its checker
//! proves nothing.
//!
//! Deliberately absent: clocks of the machine, more than one node. Sources: Wing and Gong, "Testing and Verifying
//! Concurrent Objects" (1993); Lowe, "Testing for Linearizability" (2017).

mod check;
mod clients;
mod falsify;
mod history;

use crate::launch;
use crate::server::Server;
use crate::{Error, Outcome, clock};
use check::Verdict;
use clap::Args;
use clients::Shared;
use history::Operation;
use std::sync::Arc;

/// What a run does.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Operations to be answered.
    #[arg(long, default_value_t = 100_000)]
    pub operations: u64,
    /// Clients at once.
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Partitions of two registers.
    #[arg(long, default_value_t = 16)]
    pub pairs: i32,
    /// How often the server is killed.
    #[arg(long, default_value_t = 40)]
    pub kills: u64,
    /// Of operations and moments.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Falsified histories of each kind that the checker must refuse.
const FALSIFIED: usize = 20;
/// Operations of a falsified history: to refuse one, every order of all that came before the lie has to be tried.
const FALSIFIED_LENGTHS: std::ops::Range<usize> = 50..300;

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE linear WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE linear.registers (k int, c int, v int, PRIMARY KEY (k, c))",
];

/// Runs; true when the history is linearizable and falsified ones are not.
///
/// # Errors
/// When the server does not start again, or refuses what it has to accept.
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let data = launch::data(folder.path());
    let mut random = fastrand::Rng::with_seed(options.seed);
    let shared = Arc::new(Shared::default());
    let mut history: Vec<Operation> = Vec::new();
    let start = clock::now();
    for cycle in 0..=options.kills {
        let server = Server::start(&data, folder.path())?;
        if cycle == 0 {
            let mut connection = server.connect()?;
            for statement in SCHEMA {
                connection.must(statement)?;
            }
        }
        let left = options.operations.saturating_sub(shared.answered());
        let until = if cycle == options.kills {
            options.operations
        } else {
            // On average the same share for each cycle, but no cycle like another.
            let share = left / (options.kills - cycle + 1);
            shared.answered() + random.u64(share / 2..=share + share / 2)
        };
        let threads = clients::start(server.address(), options, cycle, until, &shared)?;
        if cycle < options.kills {
            shared.wait_for(until, &threads);
            server.kill()?;
            history.extend(clients::join(threads)?);
        } else {
            history.extend(clients::join(threads)?);
            server.kill()?;
        }
    }
    let answered = history.iter().filter(|operation| operation.answer.is_some()).count();
    let applied = history.iter().filter(|operation| operation.was_applied()).count();
    println!(
        "linear: {answered} operations of {} clients answered ({applied} of them wrote), {} in doubt, {} kills, {:.0} s, seed {}",
        options.clients,
        history.len() - answered,
        options.kills,
        clock::millis_since(start) / 1000.0,
        options.seed,
    );
    let checking = clock::now();
    let by_pair = history::by_pair(&history, options.pairs);
    let Checked { held, configurations } = check_pairs(&by_pair)?;
    println!(
        "linear: {} registers in {} pairs {}; {configurations} configurations looked at in {:.1} s",
        options.pairs * 2,
        options.pairs,
        if held { "linearizable" } else { "NOT linearizable" },
        clock::millis_since(checking) / 1000.0,
    );
    Ok(held && falsified_are_refused(&by_pair, &mut random))
}

/// What the check of all pairs found.
struct Checked {
    /// Whether each pair is linearizable.
    held: bool,
    configurations: usize,
}

/// Checks each pair of registers, and prints what nothing explains.
fn check_pairs(by_pair: &[Vec<Operation>]) -> Outcome<Checked> {
    let mut checked = Checked {
        held: true,
        configurations: 0,
    };
    for (pair, operations) in by_pair.iter().enumerate() {
        let (verdict, looked_at) = check::check(operations);
        checked.configurations += looked_at;
        match verdict {
            Verdict::Linearizable => {}
            Verdict::Refused(stuck) => {
                checked.held = false;
                println!("linear: pair {pair} is not linearizable; nothing explains one of:");
                for operation in stuck.iter().take(20) {
                    println!("  {operation:?}");
                }
            }
            Verdict::GaveUp => return Err(Error::failed(format!("pair {pair}: too many orders to look at"))),
        }
    }
    Ok(checked)
}

/// Changes the history in ways that no correct server could have answered, and wants each refused.
fn falsified_are_refused(by_pair: &[Vec<Operation>], random: &mut fastrand::Rng) -> bool {
    let mut held = true;
    for kind in falsify::KINDS {
        let (mut made, mut refused) = (0, 0);
        for _ in 0..FALSIFIED * 4 {
            let Some(operations) = random.choice(by_pair) else {
                break;
            };
            let operations = falsify::beginning(operations, random.usize(FALSIFIED_LENGTHS));
            let Some(false_history) = falsify::falsified(&operations, kind, random) else {
                continue;
            };
            made += 1;
            let (verdict, _) = check::check(&false_history);
            refused += usize::from(matches!(verdict, Verdict::Refused(_)));
            if made == FALSIFIED {
                break;
            }
        }
        println!("linear: falsified by {kind}: {refused} of {made} refused");
        held &= refused == made && made > 0;
    }
    held
}
