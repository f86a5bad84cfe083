//! `helenus stress tables|cql`: a load of keys by pattern, and what it measured by time and by range of keys.
//!
//! ```text
//! arguments ─► Plan ─► Load: connections take operations by number ─► Tally: seconds × ranges ─► text, JSON, HTML
//! ```
//! Patterns and ranges are those of Azure's advice on partitioning: keys that only grow or shrink keep one range busy, however many
//! there are. Deliberately absent: retries. A refusal is counted, and the next operation follows.

mod arguments;
mod cql;
mod html;
mod http;
mod keys;
mod load;
mod picture;
mod report;
mod sign;
mod tables;
mod tally;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::ArgMatches;

pub(super) use arguments::arguments;

use super::terminal::Lossy;
use super::{Failure, servers};
use crate::config::{Config, Values};
use helenus_base::clock::Clock;
use load::{Load, Server};
use report::Report;

/// Time between two lines of progress, on a terminal and elsewhere.
const LINE_EVERY: Duration = Duration::from_millis(500);
const LINE_EVERY_IN_LOG: Duration = Duration::from_secs(10);

/// Length of the text where a table has no other name.
const TABLE: &str = "stress";

/// Runs the load and reports.
///
/// # Errors
/// The server cannot be reached, or an argument has no meaning. A load in which operations failed ends with exit code 1.
pub(super) fn run(values: &Values, matches: &ArgMatches, seed: u64) -> Result<ExitCode, Failure> {
    let clock = Clock::system();
    let plan = arguments::plan(matches, seed, &clock)?;
    let server = server(values, matches, &clock)?;
    let load = Load::new(plan.clone(), clock);
    drive(&load, server.as_ref(), plan.connections)?;
    let report = Report::new(&plan, &load.measured(), load.elapsed());
    if let Some(file) = matches.get_one::<String>("report") {
        std::fs::write(file, html::page(&report)).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    let text = if matches.get_flag("json") {
        format!("{}\n", report.json())
    } else {
        report.text()
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if report.total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The server that the arguments name, with its table made.
fn server(values: &Values, matches: &ArgMatches, clock: &Clock) -> Result<Box<dyn Server>, Failure> {
    let table = matches.get_one::<String>("table").cloned();
    let table = table.unwrap_or_else(|| TABLE.to_owned());
    if !table.starts_with(|c: char| c.is_ascii_alphabetic()) || !table.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(format!("the table {table:?} needs a name of letters and digits").into());
    }
    let length = usize::try_from(arguments::number(matches, "value-bytes").unwrap_or(0))?;
    let value = "x".repeat(length);
    if matches
        .get_one::<String>("service")
        .is_some_and(|service| service == "cql")
    {
        let config = Config::new(values)?;
        let record = servers::to_connect_to(values, &config, None)?;
        let is_ordered = matches.get_flag("ordered");
        let node = cql::Node {
            record,
            table,
            value,
            is_ordered,
        };
        node.make_table()?;
        return Ok(Box::new(node));
    }
    let text = |name: &str| matches.get_one::<String>(name);
    let trusted = text("ca").map(std::fs::read).transpose()?;
    let connection = text("connection").map(String::as_str).unwrap_or_default();
    let mut account = tables::Account::new(connection, trusted, clock.clone())?;
    account.table = table;
    account.value = value;
    account.make_table()?;
    Ok(Box::new(account))
}

/// Runs all connections, and shows how far they are. Enter or the end of the time ends the load.
fn drive(load: &Load, server: &dyn Server, connections: usize) -> Result<(), Failure> {
    let mut first = None;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| load.work(server).map_err(|error| error.to_string())))
            .collect();
        show(load, &|| workers.iter().all(std::thread::ScopedJoinHandle::is_finished));
        for worker in workers {
            let ended = worker
                .join()
                .unwrap_or_else(|_| Err("a connection's thread panicked".to_owned()));
            first = first.take().or(ended.err());
        }
    });
    // Some connections may have been refused while others worked.
    match first {
        Some(error) if load.done.load(Ordering::Relaxed) == 0 => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a line of progress now and then, until the load is over.
fn show(load: &Load, is_over: &dyn Fn() -> bool) {
    let is_terminal = io::stderr().is_terminal();
    let every = if is_terminal { LINE_EVERY } else { LINE_EVERY_IN_LOG };
    let (mut last, mut before) = (load.elapsed(), 0);
    while !is_over() {
        std::thread::sleep(Duration::from_millis(20));
        let now = load.elapsed();
        let since = now.saturating_sub(last);
        if since < every {
            continue;
        }
        let done = load.done.load(Ordering::Relaxed);
        let line = line(now, done, done - before, since, load.refused.load(Ordering::Relaxed));
        // The writer never fails.
        let _ = if is_terminal {
            write!(Lossy(io::stderr()), "\r{line}\x1b[K")
        } else {
            writeln!(Lossy(io::stderr()), "{line}")
        };
        (last, before) = (now, done);
    }
    if is_terminal {
        let _ = write!(Lossy(io::stderr()), "\r\x1b[K");
    }
}

fn line(at: Duration, done: u64, lately: u64, since: Duration, refused: u64) -> String {
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1);
    format!(
        "stress  {:>4} s  {} entities  {}/s  {} refused",
        at.as_secs(),
        report::grouped(done),
        report::grouped(lately.saturating_mul(1000) / millis),
        report::grouped(refused)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_time_number_rate_and_refusals() {
        assert_eq!(
            line(Duration::from_secs(12), 123_456, 5000, Duration::from_millis(500), 7),
            "stress    12 s  123,456 entities  10,000/s  7 refused"
        );
    }
}
