//! What metering costs: two servers of the same program, one with `metering = false`, loaded in turn with the same operations. Or what a
//! change costs: this program against another one, both with metering.
//!
//! ```text
//! start:  off ─ on ─ on ─ off   off ─ on ─ on ─ off   …      one kind of operation, one ratio for each four rounds
//! start:  on ─ off ─ off ─ on   …                            servers anew, since where memory lies makes a difference too
//! ```
//! Both begin with a copy of the same files, since how a store's rows lie in them makes more of a difference than metering; reads come
//! before writes, for the same reason. A round is short, so that what else the machine does meets both alike, and four in this order cancel what drifts. Counted is the
//! processor time of the server, user and system, for an operation. What is told is the median of the ratios and an interval in which
//! the true one lies with 95 % (order statistics, whatever the distribution): a bound is missed only when all of it lies above.

use crate::bench::{self, Kind};
use crate::server::{self, CpuTimes, Server};
use crate::{Error, Outcome};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to run.
#[derive(Debug, Args)]
pub struct Options {
    /// Compare servers of this program with those of another one instead, both with metering.
    #[arg(long)]
    pub against: Option<PathBuf>,
    /// How often servers are started.
    #[arg(long, default_value_t = 5)]
    pub starts: usize,
    /// Groups of four rounds for each kind of operation and start.
    #[arg(long, default_value_t = 5)]
    pub fours: usize,
    /// Length of a round, milliseconds.
    #[arg(long, default_value_t = 500)]
    pub round_millis: u64,
    /// Fail when the ratio of processor time with metering to that without is surely above.
    #[arg(long)]
    pub ratio_max: Option<f64>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment would be the help of the whole run")]
    pub load: bench::Load,
}

/// Between two looks at whether a server rests.
const REST_LOOK: Duration = Duration::from_millis(250);

/// Looks before it is measured as it is.
const REST_LOOKS_MAX: usize = 80;

/// What has been measured of one kind of operation.
#[derive(Debug, Default)]
struct Measured {
    ratios: Vec<f64>,
    /// Processor time for an operation, µs.
    on: Vec<f64>,
    off: Vec<f64>,
}

/// Runs it all and prints ratios; true unless one is surely above the bound.
///
/// # Errors
/// When a server does not start or refuses.
pub fn run(options: &Options) -> Outcome<bool> {
    let mut kinds: Vec<Kind> = bench::kinds()
        .filter(|kind| options.load.asks_for(kind.name()))
        .collect();
    if kinds.is_empty() {
        return Err(Error::failed("there is no such kind of operation"));
    }
    kinds.sort_by_key(|kind| !matches!(kind.name(), "read" | "slice"));
    let mut measured: Vec<Measured> = kinds.iter().map(|_| Measured::default()).collect();
    let mut round = 0;
    for start in 0..options.starts.max(1) {
        let folder = tempfile::tempdir()?;
        let mut pair = Pair::start(folder.path(), start % 2 == 1, options)?;
        come_to_rest(&pair.first)?;
        come_to_rest(&pair.second)?;
        for (kind, measured) in kinds.iter().zip(&mut measured) {
            pair.warm_up(*kind, options, &mut round)?;
            for _ in 0..options.fours.max(1) {
                let (on, off) = pair.four(*kind, options, &mut round)?;
                measured.ratios.push(on / off);
                measured.on.push(on);
                measured.off.push(off);
            }
        }
        if pair.first.panics() + pair.second.panics() > 0 {
            return Err(Error::failed("a server's log tells of a panic"));
        }
    }
    let mut good = true;
    let compared = options
        .against
        .as_ref()
        .map_or("with metering and without", |_| "of this program and of the other");
    println!("server CPU µs for an operation, {compared}; their ratio, the interval of its median, its quartiles:");
    for (kind, measured) in kinds.iter().zip(&mut measured) {
        let ratio = Spread::of(&mut measured.ratios);
        let is_missed = options.ratio_max.is_some_and(|max| ratio.low > max);
        good &= !is_missed;
        println!(
            "metering: {:11} {:7.3} {:7.3}  ratio {:.4} [{:.4}, {:.4}]  quartiles {:.4} {:.4}  of {}{}",
            kind.name(),
            Spread::of(&mut measured.on).median,
            Spread::of(&mut measured.off).median,
            ratio.median,
            ratio.low,
            ratio.high,
            ratio.quartiles.0,
            ratio.quartiles.1,
            measured.ratios.len(),
            if is_missed { "  FAILED" } else { "" },
        );
    }
    Ok(good)
}

/// Waits until a server has done what it does behind the requests, such as putting what it has recovered in order; not for ever.
fn come_to_rest(server: &Server) -> Outcome<()> {
    for _ in 0..REST_LOOKS_MAX {
        let before = CpuTimes::read(server.pid())?;
        std::thread::sleep(REST_LOOK);
        if CpuTimes::read(server.pid())?.since(&before) < REST_LOOK / 50 {
            break;
        }
    }
    Ok(())
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else if entry.file_type()?.is_file() {
            // A killed server leaves its socket.
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Two servers, in the order in which they were started.
#[derive(Debug)]
struct Pair {
    first: Server,
    second: Server,
    /// The first is the one with metering.
    first_is_on: bool,
}

impl Pair {
    fn start(folder: &Path, first_is_on: bool, options: &Options) -> Outcome<Self> {
        let filled = folder.join("data");
        let other = options.against.clone().map_or_else(server::program, Ok)?;
        let server = Server::start_program(&other, &format!("file:{}", filled.display()), &[], folder)?;
        bench::prepare(server.address(), &options.load)?;
        server.kill()?;
        let server = |name: &str, is_on: bool| {
            let folder = folder.join(name);
            copy(&filled, &folder.join("data"))?;
            let data = format!("file:{}", folder.join("data").display());
            match &options.against {
                None => Server::start_with(&data, &[&format!("--metering={is_on}")], &folder),
                Some(_) if is_on => Server::start(&data, &folder),
                Some(other) => Server::start_program(other, &data, &[], &folder),
            }
        };
        Ok(Self {
            first: server("first", first_is_on)?,
            second: server("second", !first_is_on)?,
            first_is_on,
        })
    }

    fn warm_up(&mut self, kind: Kind, options: &Options, round: &mut u64) -> Outcome<()> {
        one(&self.first, kind, options, round)?;
        one(&self.second, kind, options, round)?;
        Ok(())
    }

    /// Four rounds; processor time for an operation with metering, and without.
    fn four(&mut self, kind: Kind, options: &Options, round: &mut u64) -> Outcome<(f64, f64)> {
        let mut sums = (0.0, 0.0);
        for is_first in [true, false, false, true] {
            let (server, sum) = if is_first {
                (&self.first, &mut sums.0)
            } else {
                (&self.second, &mut sums.1)
            };
            *sum += one(server, kind, options, round)? / 2.0;
        }
        Ok(if self.first_is_on { sums } else { (sums.1, sums.0) })
    }
}

/// One round on one server: microseconds of its processor time for an operation.
fn one(server: &Server, kind: Kind, options: &Options, round: &mut u64) -> Outcome<f64> {
    *round += 1;
    let before = CpuTimes::read(server.pid())?;
    let operations = kind.load(
        server.address(),
        &options.load,
        Duration::from_millis(options.round_millis),
        *round,
    )?;
    let spent = CpuTimes::read(server.pid())?.since(&before);
    #[expect(clippy::cast_precision_loss, reason = "counts of a short round")]
    let operations = operations.max(1) as f64;
    Ok(spent.as_secs_f64() * 1e6 / operations)
}

/// The middle of some numbers, and how far they lie from it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    /// Between these lies the true median, with 95 %.
    low: f64,
    high: f64,
    quartiles: (f64, f64),
}

impl Spread {
    fn of(values: &mut [f64]) -> Self {
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let at = |place: usize| {
            values
                .get(place.min(count.saturating_sub(1)))
                .copied()
                .unwrap_or(f64::NAN)
        };
        // Of so many values a binomial number lies below the median: its mean less 1.96 times its deviation.
        #[expect(clippy::cast_precision_loss, reason = "few values")]
        let reach = (count as f64).sqrt() * 0.98;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place among few values"
        )]
        let below = (count as f64 / 2.0 - reach).floor().max(0.0) as usize;
        Self {
            median: f64::midpoint(at(count.saturating_sub(1) / 2), at(count / 2)),
            low: at(below),
            high: at(count.saturating_sub(1).saturating_sub(below)),
            quartiles: (at(count / 4), at(count.saturating_sub(1).saturating_sub(count / 4))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_holds_it() {
        let mut values: Vec<f64> = (0..101).rev().map(f64::from).collect();
        let spread = Spread::of(&mut values);
        assert_eq!((spread.median, spread.low, spread.high), (50.0, 40.0, 60.0));
        assert_eq!(spread.quartiles, (25.0, 75.0));
        let few = Spread::of(&mut [2.0, 1.0]);
        assert_eq!((few.median, few.low, few.high), (1.5, 1.0, 2.0));
    }
}
