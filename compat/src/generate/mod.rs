//! Questions nobody thought of: random but mostly valid schemas, data and statements, asked of Cassandra and of a
//! server, and the answers compared.
//!
//! Life of a round: `schema` makes a table, `round` some hundred statements about it, `pair` asks both servers in
//! a keyspace of the round's own, `compare` compares. A difference that no rule explains is made small by `shrink`,
//! printed, and written as a script of the oracle with Cassandra's answers. After a write that differs the round ends,
//! since what follows may only follow from it.
//!
//! Invariants: everything random comes from the seed and the number of the round, so that a round can be asked again;
//! nothing depends on a clock, since every write carries its timestamp and every request its `now_in_seconds`
//! (conditional writes have the server's timestamps, and those tables' timestamps are not looked at).
//!
//! A third of the rounds has materialized views over the table (`views`), and a third user functions and aggregates (`functions`); both
//! change while the round goes on (`change`). With `--dropped-columns` all rounds drop columns and add them again (`columns`). Where the servers ask for a login, a third has roles, and statements are asked as them (`roles`).
//!
//! Deliberately absent: rows that two requests race for; several nodes.

mod change;
mod clauses;
mod columns;
mod compare;
mod constants;
mod functions;
mod pair;
mod question;
mod read;
mod roles;
mod round;
mod schema;
mod second;
mod select;
mod shrink;
mod spoil;
mod state;
mod two_faults;
mod types;
mod views;
mod words;
mod write;

use crate::oracle::{replay, report, script};
use crate::{Error, Outcome, cassandra, clock};
use clap::Args;
use compare::Verdict;
use pair::Pair;
use question::{Kind, Question};
use round::Rounds;
use serde_json::Value;
use shrink::Finding;
use state::Round;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Statements that fill a table before reads begin.
const FILLING: u64 = 40;
/// How many alike differences are made small.
const ALIKE_MAX: usize = 1;
/// Differences that did not come again, among a thousand statements, at which a run still passes.
const VANISHED_PER_MILLE_MAX: u64 = 1;
/// As many pass in a run however short.
const VANISHED_MAX: u64 = 5;
/// How often a round is asked again before a difference counts.
const REPLAYS: usize = 6;
/// Rounds given up since Cassandra did not build a view, among a hundred, at which a run still passes.
const UNBUILT_PERCENT_MAX: u64 = 5;
/// How many differences a run looks for before it ends.
const DIFFERENCES_MAX: usize = 4000;

/// What to run.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Server to compare, HOST:PORT.
    #[arg(long)]
    pub target: String,
    /// Cassandra, HOST:PORT; without it one is started.
    #[arg(long)]
    pub cassandra: Option<String>,
    /// Of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Least number of statements to compare.
    #[arg(long, default_value_t = 3000)]
    pub statements: u64,
    /// Statements for each table.
    #[arg(long, default_value_t = 400)]
    pub per_table: u64,
    /// Tables at work at the same time.
    #[arg(long, default_value_t = 8)]
    pub workers: usize,
    /// The first round (table) of the seed to ask.
    #[arg(long, default_value_t = 0)]
    pub first_round: u64,
    /// Most rounds.
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Make no indexes.
    #[arg(long)]
    pub without_indexes: bool,
    /// The servers ask for a login (cassandra/cassandra): make roles too, and ask as them.
    #[arg(long = "login")]
    pub roles: bool,
    /// Drop columns of every table and add them again, with timestamps before, at and behind the writes.
    #[arg(long)]
    pub dropped_columns: bool,
    /// Folder that takes shrunken differences as scripts.
    #[arg(long)]
    pub keep: Option<PathBuf>,
    /// Longest time for making one difference small, seconds.
    #[arg(long, default_value_t = 120)]
    pub shrink_seconds: u64,
    /// Ask so many statements with two faults each instead, and compare which fault the servers name.
    #[arg(long)]
    pub two_faults: Option<u64>,
    /// Print every statement with Cassandra's answer, and what known differences look like.
    #[arg(long)]
    pub verbose: bool,
}

/// What came of it so far.
#[derive(Debug, Default)]
struct Tally {
    compared: u64,
    refused: u64,
    rows: u64,
    known: BTreeMap<usize, u64>,
    /// What the differences that a rule explains look like, and how many look so.
    looks: BTreeMap<(usize, String), u64>,
    alike: BTreeMap<String, usize>,
    different: usize,
    /// Differences that did not come again, since Cassandra answered otherwise when asked the same again.
    vanished: u64,
    rounds: u64,
    /// Rounds given up since Cassandra did not build a view in time.
    unbuilt: u64,
}

/// What the workers share.
struct Shared<'a> {
    options: &'a Options,
    cassandra: &'a str,
    next: AtomicU64,
    over: AtomicBool,
    tally: Mutex<Tally>,
}

impl Shared<'_> {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        // Counts are valid wherever a worker stopped.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares; true when nothing differs for no known reason, and hardly anything that did not come again. `None` from a machine that cannot run Cassandra passes, with a word.
///
/// # Errors
/// When a server is not there or breaks.
#[expect(
    clippy::too_many_lines,
    reason = "one run from the start of both servers to its report"
)]
pub fn run(options: &Options) -> Outcome<bool> {
    if options.roles {
        pair::with_roles();
    }
    let more: &[&str] = if options.roles { &["--auth"] } else { &[] };
    let started = match &options.cassandra {
        Some(_) => None,
        None => match cassandra::Cassandra::start_with("generate", 22042, more)? {
            Some(started) => Some(started),
            None => return Ok(true),
        },
    };
    let address = match (&options.cassandra, &started) {
        (Some(address), _) => address.clone(),
        (None, Some(started)) => started.address().to_owned(),
        (None, None) => return Ok(true),
    };
    if let Some(statements) = options.two_faults {
        let differ = two_faults::run(&address, &options.target, options.seed, statements, options.verbose)?;
        return Ok(differ == 0);
    }
    let shared = Shared {
        options,
        cassandra: &address,
        next: AtomicU64::new(options.first_round),
        over: AtomicBool::new(false),
        tally: Mutex::default(),
    };
    let start = clock::now();
    let outcomes = std::thread::scope(|scope| {
        let workers = (0..options.workers.max(1))
            .map(|_| scope.spawn(|| work(&shared)))
            .collect::<Vec<_>>();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(Error::failed("a worker panicked")))
            })
            .collect::<Outcome<Vec<()>>>()
    });
    let tally = shared.tally();
    for (rule, count) in &tally.known {
        let reason = reason_of(*rule);
        println!("known: {count:6} {reason}");
        if options.verbose {
            for ((_, look), count) in tally.looks.iter().filter(|((of, _), _)| of == rule) {
                println!("    {count:6} {look}");
            }
        }
    }
    if tally.unbuilt > 0 {
        println!(
            "known: {:6} Cassandra did not build a view in time: the round was given up",
            tally.unbuilt
        );
    }
    for (signature, count) in &tally.alike {
        println!("differs: {count:4} {signature}");
    }
    println!(
        "generate: seed {}, {} statements in {} tables compared in {} s ({} refused by both, {} rows), {} differ as \
         known, {} did not come again, {} different",
        options.seed,
        tally.compared,
        tally.rounds,
        start.elapsed().as_secs(),
        tally.refused,
        tally.rows,
        tally.known.values().sum::<u64>(),
        tally.vanished,
        tally.different
    );
    outcomes?;
    // Chance may bring a short run some of them.
    let vanished_max = (tally.compared.saturating_mul(VANISHED_PER_MILLE_MAX) / 1000).max(VANISHED_MAX);
    let unbuilt_max = (tally.rounds.saturating_mul(UNBUILT_PERCENT_MAX) / 100).max(1);
    Ok(tally.compared > 0 && tally.different == 0 && tally.vanished <= vanished_max && tally.unbuilt <= unbuilt_max)
}

fn work(shared: &Shared<'_>) -> Outcome<()> {
    let options = shared.options;
    let mut pair = Pair::new(shared.cassandra, &options.target);
    while !shared.over.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if options
            .rounds
            .is_some_and(|rounds| number >= options.first_round + rounds)
        {
            break;
        }
        match ask_round(shared, &mut pair, number) {
            Ok(()) => {}
            Err(Error::Unbuilt(built)) => {
                println!("given up: round {number}: Cassandra did not build a view in time: {built}");
                shared.tally().unbuilt += 1;
            }
            Err(error) => {
                shared.over.store(true, Ordering::Relaxed);
                return Err(Error::failed(format!("round {number}: {error}")));
            }
        }
        pair.leave();
        let mut tally = shared.tally();
        tally.rounds += 1;
        if tally.rounds.is_multiple_of(25) {
            println!(
                "… {} statements, {} tables, {} different",
                tally.compared, tally.rounds, tally.different
            );
        }
        if tally.compared >= options.statements || tally.different >= DIFFERENCES_MAX {
            shared.over.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// The statements of a round that make its schema, then those about its table.
fn ask_round(shared: &Shared<'_>, pair: &mut Pair, number: u64) -> Outcome<()> {
    let options = shared.options;
    let kind = Rounds {
        roles: options.roles,
        dropped_columns: options.dropped_columns,
    };
    let mut round = Round::new(options.seed, number, kind);
    let keyspace = format!("gen_{}_{number}", options.seed);
    pair.enter(&keyspace)?;
    let mut asked = Vec::new();
    for text in round.table.made_by.clone() {
        if ask(shared, pair, &mut asked, Question::new(Kind::Schema, text), number)?.is_none() {
            return Ok(());
        }
    }
    if !options.without_indexes && round.rng.u8(0..3) == 0 {
        for i in 0..round.rng.usize(1..4) {
            let Some((text, column)) = schema::index(&mut round.rng, &round.table, i) else {
                continue;
            };
            if schema::is_of_the_first_kind(&text) {
                if round.table.expires() {
                    continue;
                }
                round.may_expire = false;
            } else {
                round.may_end = false;
            }
            if ask(shared, pair, &mut asked, Question::new(Kind::Schema, text), number)?.is_none() {
                return Ok(());
            }
            round.table.indexed.push(column);
        }
    }
    let mut at = 0;
    while at < options.per_table {
        at += 1;
        let Some(question) = round.next(at <= FILLING) else {
            continue;
        };
        let Some(is_taken) = ask(shared, pair, &mut asked, question, number)? else {
            return Ok(());
        };
        change::apply(&mut round, is_taken);
    }
    Ok(())
}

/// Asks both and compares: whether the statement was taken, `None` when the round is over.
#[expect(
    clippy::too_many_lines,
    reason = "each way in which two answers can be told apart or excused, in turn"
)]
fn ask(
    shared: &Shared<'_>,
    pair: &mut Pair,
    asked: &mut Vec<Question>,
    question: Question,
    number: u64,
) -> Outcome<Option<bool>> {
    let (theirs, ours) = pair.ask(&question)?;
    let facts = compare::Facts::of(asked.iter(), &question);
    let is_taken = compare::code_of(&theirs).is_none();
    let case = compare::Case {
        question: &question,
        facts: &facts,
        theirs: &theirs,
        ours: &ours,
    };
    let mut verdict = compare::compare(&case);
    if verdict == Verdict::Different
        && let Some(rule) = known_by_second_question(shared, pair, asked, &case, number)?
    {
        verdict = Verdict::Known(compare::RULES.len() + rule);
    }
    let parts_ways = compare::parts_ways(&question, &theirs, &ours);
    if shared.options.verbose {
        let shown = theirs.to_string().chars().take(300).collect::<String>();
        println!("{number}: {}\n    {verdict:?} {shown}", question.script().trim_end());
    }
    let goes_on = question.kind == Kind::Read;
    asked.push(question);
    {
        let mut tally = shared.tally();
        tally.compared += 1;
        tally.refused += u64::from(compare::code_of(&theirs).is_some() && compare::code_of(&ours).is_some());
        let rows = theirs.get("rows").and_then(Value::as_array).map_or(0, Vec::len);
        tally.rows += u64::try_from(rows).unwrap_or(0);
        match verdict {
            Verdict::Same => return Ok(Some(is_taken)),
            Verdict::Known(rule) => {
                *tally.known.entry(rule).or_default() += 1;
                let look = asked
                    .last()
                    .map(|question| compare::signature(question, &theirs, &ours));
                *tally.looks.entry((rule, look.unwrap_or_default())).or_default() += 1;
                return Ok((!parts_ways).then_some(is_taken));
            }
            Verdict::Different => {}
        }
    }
    let again = again(shared, asked, number, (&theirs, &ours))?;
    let signature = {
        let mut tally = shared.tally();
        let Some(question) = asked.last() else {
            return Ok(None);
        };
        if again == Again::Vanished {
            tally.vanished += 1;
            let at = asked.len();
            println!(
                "did not come again: round {number}, statement {at}: {}",
                question.script()
            );
            for line in report::difference(&theirs, &ours) {
                println!("    {line}");
            }
            // What follows may only follow from it.
            return Ok(None);
        }
        let signature = compare::signature(question, &theirs, &ours);
        tally.different += 1;
        let count = tally.alike.entry(signature.clone()).or_default();
        *count += 1;
        if *count > ALIKE_MAX {
            return Ok(goes_on.then_some(is_taken));
        }
        signature
    };
    let keyspace = format!("gen_{}_{number}_s", shared.options.seed);
    let mut lab = Pair::new(shared.cassandra, &shared.options.target);
    let budget = Duration::from_secs(shared.options.shrink_seconds);
    let found = shrink::shrink(&mut lab, &keyspace, asked, (theirs, ours), budget)?;
    let name = format!("found_{}_{number}_{}", shared.options.seed, asked.len());
    show(&name, &signature, &found);
    if let Some(folder) = &shared.options.keep
        && found.again
        && found
            .questions
            .iter()
            .all(|question| question.by.is_none() && !question.text.contains("{ks}"))
    {
        keep(folder, &name, &found, shared.cassandra)?;
    }
    Ok(goes_on.then_some(is_taken))
}

/// The rule of [`second::RULES`] that a further question shows to explain the difference.
fn known_by_second_question(
    shared: &Shared<'_>,
    pair: &mut Pair,
    asked: &[Question],
    case: &compare::Case<'_>,
    number: u64,
) -> Outcome<Option<usize>> {
    let mut elsewhere = Pair::new(shared.cassandra, &shared.options.target);
    let mut room = second::Room {
        pair,
        elsewhere: &mut elsewhere,
        keyspace: &format!("gen_{}_{number}_w", shared.options.seed),
        before: asked,
    };
    Ok(unless_unbuilt(second::explaining(&mut room, case))?.flatten())
}

/// `None` where Cassandra did not build a view. A difference that is asked again must not be lost to that.
fn unless_unbuilt<T>(outcome: Outcome<T>) -> Outcome<Option<T>> {
    match outcome {
        Err(Error::Unbuilt(_)) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The reason of a rule: [`compare::RULES`] first, then [`second::RULES`].
fn reason_of(rule: usize) -> &'static str {
    let second = || {
        second::RULES
            .get(rule.checked_sub(compare::RULES.len())?)
            .map(|rule| rule.reason)
    };
    let first = compare::RULES.get(rule).map(|rule| rule.reason);
    first.or_else(second).unwrap_or("?")
}

/// What comes of asking a round again from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The difference is there again, or it is we who answer otherwise.
    Came,
    /// Cassandra's answer has changed to the one that we gave both times.
    Vanished,
}

/// Asks the round again up to the statement whose answers differ, in a keyspace of its own, a few times,
/// while this program drops nothing. Cassandra's answers depend now and then on what else it does, above all on whether memtables have
/// been written to disk: where it once gives the answer that
/// we gave each time, it has given two to the same statements.
fn again(shared: &Shared<'_>, asked: &[Question], number: u64, first: (&Value, &Value)) -> Outcome<Again> {
    let keyspace = format!("gen_{}_{number}", shared.options.seed);
    let other = format!("{keyspace}_r");
    let mut pair = Pair::new(shared.cassandra, &shared.options.target);
    let mut outcome = Again::Came;
    for _ in 0..REPLAYS {
        let quiet = pair.enter_quietly(&other)?;
        let mut last = None;
        for question in asked {
            last = unless_unbuilt(pair.ask(question))?;
            if last.is_none() {
                break;
            }
        }
        drop(quiet);
        let Some((theirs, ours)) = last else { break };
        // Columns tell their keyspace.
        let plain = |answer: &Value| answer.to_string().replace(&other, &keyspace);
        if plain(&ours) != plain(first.1) {
            break;
        }
        if theirs == ours {
            outcome = Again::Vanished;
            break;
        }
    }
    pair.leave();
    Ok(outcome)
}

fn text_of(found: &Finding) -> String {
    found.questions.iter().fold(String::new(), |mut out, question| {
        out.push_str(&question.script());
        out
    })
}

fn show(name: &str, signature: &str, found: &Finding) {
    let mut out = format!("=== {name}: {signature}\n");
    if found.again {
        out.push_str(&text_of(found));
    } else {
        let last = found.questions.last().map(Question::script).unwrap_or_default();
        let _infallible = writeln!(
            out,
            "did not come again; after {} statements:\n{last}",
            found.questions.len() - 1
        );
    }
    for line in report::difference(&found.theirs, &found.ours) {
        let _infallible = writeln!(out, "    {line}");
    }
    println!("{out}");
}

/// Writes a script and Cassandra's answers to it.
fn keep(folder: &Path, name: &str, found: &Finding, cassandra: &str) -> Outcome<()> {
    std::fs::create_dir_all(folder)?;
    let text = text_of(found);
    let script = script::parse(name, &text)?;
    let answers = replay::run(cassandra, &script)?;
    let lines = answers.iter().fold(String::new(), |mut out, line| {
        let _infallible = writeln!(out, "{line}");
        out
    });
    std::fs::write(folder.join(format!("{name}.cql")), text)?;
    std::fs::write(folder.join(format!("{name}.answers")), lines)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::unless_unbuilt;
    use crate::Error;

    #[test]
    fn only_a_view_that_cassandra_did_not_build_is_passed_over() {
        assert_eq!(unless_unbuilt(Ok(1)).ok(), Some(Some(1)));
        assert_eq!(
            unless_unbuilt::<u8>(Err(Error::Unbuilt(String::new()))).ok(),
            Some(None)
        );
        assert!(unless_unbuilt::<u8>(Err(Error::failed("127.0.0.1:1: not built"))).is_err());
    }
}
