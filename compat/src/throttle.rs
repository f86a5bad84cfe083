//! Throughput limits under overload: what a table admits is what it was provisioned, in sum and on each physical partition; a hot key is
//! held to its partition's share while other partitions run free; an application that obeys `RetryAfterMs` gets everything done.
//!
//! **How it is counted.** The charge of each answer (`RequestCharge`, from its payload) is added to the partition of its key. A budget of R
//! units a second begins full, with one second's worth, and ends with what `system_cosmos.partition_throughput` shows, B, which is debt
//! if negative. So over W seconds, from the first request to the moment at which B was read, exactly R·W + R − B can have been admitted
//! while requests enough were offered. What was admitted may differ from it by 2 % of R·W.

mod load;

use crate::server::{self, Server};
use crate::{Error, Outcome, clock};
use clap::Args;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What to run.
#[derive(Debug, Args)]
pub struct Options {
    /// Seconds of each phase.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Request units a second of the tables.
    #[arg(long, value_delimiter = ',', default_value = "400,4000,40000")]
    pub rates: Vec<u32>,
    /// Connections.
    #[arg(long, default_value_t = 4)]
    pub connections: usize,
}

/// Keys that are used; enough that every partition has some.
const KEYS: i64 = 4096;

/// Largest difference from the budget, of the budget over the time.
const OFF_MAX: f64 = 0.02;

/// A physical partition, with keys that live in it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    id: i64,
    lower: i64,
    upper: i64,
    keys: Vec<i64>,
}

/// Runs all phases and prints figures; true when all that was checked held.
///
/// # Errors
/// When the server does not start or refuses what is no overload.
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&format!("file:{}", folder.path().join("data").display()), folder.path())?;
    let mut connection = server.connect()?;
    connection
        .must("CREATE KEYSPACE throttle WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    connection.must("CREATE TABLE throttle.keys (k bigint PRIMARY KEY)")?;
    for k in 0..KEYS {
        connection.must(&format!("INSERT INTO throttle.keys (k) VALUES ({k})"))?;
    }
    let mut good = true;
    for rate in &options.rates {
        good &= overload(&server, *rate, options)?;
    }
    let widest = options.rates.iter().copied().max().unwrap_or(400);
    good &= hot_key(&server, widest, options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    good &= runtime.block_on(application(server.address()))?;
    if server.panics() > 0 {
        println!("throttle: the server's log tells of a panic");
        good = false;
    }
    Ok(good)
}

/// Makes a table of this throughput, and finds out where keys live in it.
fn table(server: &Server, name: &str, rate: u32) -> Outcome<Vec<Place>> {
    let mut connection = server.connect()?;
    connection.must(&format!(
        "CREATE TABLE throttle.{name} (k bigint PRIMARY KEY, v int) WITH cosmosdb_provisioned_throughput = {rate}"
    ))?;
    let mut places: Vec<Place> = bigints(&connection.must(&format!(
        "SELECT id, lower, upper FROM system_cosmos.partitions WHERE keyspace_name = 'throttle' AND table_name = '{name}'"
    ))?)?
    .into_iter()
    .filter_map(|row| match row.as_slice() {
        &[id, lower, upper] => Some(Place {
            id,
            lower,
            upper,
            keys: Vec::new(),
        }),
        _ => None,
    })
    .collect();
    for row in bigints(&connection.must("SELECT k, token(k) FROM throttle.keys")?)? {
        let &[key, token] = row.as_slice() else { continue };
        let place = places
            .iter_mut()
            .find(|place| (place.lower..=place.upper).contains(&token));
        if let Some(place) = place {
            place.keys.push(key);
        }
    }
    if places.iter().any(|place| place.keys.is_empty()) {
        return Err(Error::failed("a physical partition without a key"));
    }
    Ok(places)
}

/// Rows of columns of eight bytes.
fn bigints(answer: &Value) -> Outcome<Vec<Vec<i64>>> {
    let rows = answer.get("rows").and_then(Value::as_array);
    let cell = |cell: &Value| {
        let bytes = crate::raw::unhex(cell.as_str()?)?;
        Some(i64::from_be_bytes(bytes.try_into().ok()?))
    };
    let row = |row: &Value| row.as_array()?.iter().map(cell).collect::<Option<Vec<i64>>>();
    let rows = rows.and_then(|rows| rows.iter().map(row).collect::<Option<Vec<_>>>());
    rows.ok_or(Error::Malformed("rows of numbers"))
}

/// What is in the budgets of a table's partitions: id, units.
fn balances(server: &Server, table: &str) -> Outcome<Vec<(i64, f64)>> {
    let text = format!(
        "SELECT id, balance FROM system_cosmos.partition_throughput WHERE keyspace_name = 'throttle' AND table_name = '{table}'"
    );
    let rows = bigints(&server.connect()?.must(&text)?)?;
    let row = |row: Vec<i64>| match row.as_slice() {
        &[id, balance] => Some((id, f64::from_bits(balance.cast_unsigned()))),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

/// Offers more than there is to every partition.
fn overload(server: &Server, rate: u32, options: &Options) -> Outcome<bool> {
    let name = format!("t{rate}");
    let places = table(server, &name, rate)?;
    #[expect(clippy::cast_precision_loss, reason = "a table has few partitions")]
    let share = f64::from(rate) / places.len() as f64;
    let offered = share * 1.6 / load::UNITS_OF_ONE;
    let cpu = server::cpu_micros(server.pid())?;
    let start = clock::now();
    let offers = vec![offered; places.len()];
    let done = load::run(server.address(), &name, &places, &offers, options)?;
    let left = balances(server, &name)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = server::cpu_micros(server.pid())?.saturating_sub(cpu);
    let (mut good, mut sum, mut due_sum) = (true, 0.0, 0.0);
    for (place, done) in places.iter().zip(&done) {
        let balance = left
            .iter()
            .find(|(id, _)| *id == place.id)
            .map_or(0.0, |(_, balance)| *balance);
        let due = share * seconds + share - balance;
        let off = (done.units - due) / (share * seconds);
        println!(
            "throttle: {rate} RU/s, partition {}: admitted {:.2} of {due:.2} RU ({:+.2} %), balance {balance:.2}, {} refused",
            place.id,
            done.units,
            off * 100.0,
            done.refused,
        );
        if off.abs() > OFF_MAX || done.refused == 0 {
            good = false;
        }
        sum += done.units;
        due_sum += due;
    }
    let off = (sum - due_sum) / (f64::from(rate) * seconds);
    good &= off.abs() <= OFF_MAX;
    println!(
        "throttle: {rate} RU/s over {seconds:.1} s in {} partitions: admitted {sum:.2} of {due_sum:.2} RU ({:+.2} %), server CPU {} ms: {}",
        places.len(),
        off * 100.0,
        cpu / 1000,
        verdict(good),
    );
    Ok(good)
}

const fn verdict(good: bool) -> &'static str {
    if good { "within 2 %" } else { "FAILED" }
}

/// Offers one key three times what its partition has, and the others half of what they have.
fn hot_key(server: &Server, rate: u32, options: &Options) -> Outcome<bool> {
    let mut places = table(server, "hot", rate)?;
    if places.len() < 2 {
        println!("throttle: one partition only, no hot key to tell from others");
        return Ok(true);
    }
    #[expect(clippy::cast_precision_loss, reason = "a table has few partitions")]
    let share = f64::from(rate) / places.len() as f64;
    if let Some(hot) = places.first_mut() {
        hot.keys.truncate(1);
    }
    let one = share / load::UNITS_OF_ONE;
    let offers: Vec<f64> = (0..places.len())
        .map(|place| if place == 0 { 3.0 * one } else { 0.5 * one })
        .collect();
    let start = clock::now();
    let done = load::run(server.address(), "hot", &places, &offers, options)?;
    let left = balances(server, "hot")?;
    let seconds = start.elapsed().as_secs_f64();
    let mut good = true;
    for ((number, place), done) in places.iter().enumerate().zip(&done) {
        let balance = left
            .iter()
            .find(|(id, _)| *id == place.id)
            .map_or(0.0, |(_, balance)| *balance);
        if number == 0 {
            let due = share * seconds + share - balance;
            let off = (done.units - due) / (share * seconds);
            good &= off.abs() <= OFF_MAX && done.refused > 0;
            println!(
                "throttle: hot key in partition {}: admitted {:.2} of {due:.2} RU ({:+.2} %), {} refused",
                place.id,
                done.units,
                off * 100.0,
                done.refused
            );
        } else {
            good &= done.refused == 0;
            println!(
                "throttle: beside it, partition {}: admitted {:.2} RU, {} refused",
                place.id, done.units, done.refused
            );
        }
    }
    println!(
        "throttle: a hot key beside {} partitions: {}",
        places.len() - 1,
        verdict(good)
    );
    Ok(good)
}

/// Inserts of an application that come all at once, on a table of 400 RU/s.
const APPLICATION_INSERTS: i32 = 200;

/// Many inserts at once: without retries some are refused; with a policy that waits as told all are done.
async fn application(address: &str) -> Outcome<bool> {
    let failed = |error: &dyn std::fmt::Display| Error::Driver(error.to_string());
    let session = SessionBuilder::new()
        .known_node(address)
        .build()
        .await
        .map_err(|error| failed(&error))?;
    let session = Arc::new(session);
    let mut good = true;
    for (name, obeys) in [("once", false), ("patient", true)] {
        let create = format!(
            "CREATE TABLE throttle.{name} (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400"
        );
        session
            .query_unpaged(create, &[])
            .await
            .map_err(|error| failed(&error))?;
        let insert = format!("INSERT INTO throttle.{name} (k, v) VALUES (?, ?)");
        let insert = session.prepare(insert).await.map_err(|error| failed(&error))?;
        let start = clock::now();
        let tasks = (0..APPLICATION_INSERTS).map(|k| {
            let (session, insert) = (Arc::clone(&session), insert.clone());
            tokio::spawn(async move { patiently(&session, &insert, k, obeys).await })
        });
        let mut retries = 0;
        let mut refused = 0;
        for task in tasks.collect::<Vec<_>>() {
            match task.await.map_err(|error| failed(&error))? {
                Ok(count) => retries += count,
                Err(_) => refused += 1,
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "throttle: an application's {APPLICATION_INSERTS} inserts at once on 400 RU/s, {}: {} done, {refused} refused, \
             {retries} retries, {seconds:.1} s",
            if obeys { "waiting as told" } else { "without retries" },
            APPLICATION_INSERTS - refused,
        );
        good &= if obeys {
            refused == 0 && retries > 0
        } else {
            refused > 0
        };
    }
    Ok(good)
}

/// Inserts; as often as it is told to wait, if it obeys. How often it was.
async fn patiently(
    session: &Session,
    insert: &scylla::statement::prepared::PreparedStatement,
    k: i32,
    obeys: bool,
) -> Result<u32, String> {
    let mut retries = 0;
    loop {
        match session.execute_unpaged(insert, (k, "some text")).await {
            Ok(_) => return Ok(retries),
            Err(error) => {
                let text = error.to_string();
                match retry_after(&text).filter(|_| obeys) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(text),
                }
                retries += 1;
            }
        }
    }
}

/// The time to wait that a refusal tells, as the public policies find it: in the second field between commas, behind its `=`.
pub(crate) fn retry_after(text: &str) -> Option<Duration> {
    if !text.contains("TooManyRequests (429)") {
        return None;
    }
    // A driver may have put words of its own before it.
    let message = text.get(text.find("Request rate is large")?..)?;
    let (_, field) = message.split(',').nth(1)?.split_once('=')?;
    Some(Duration::from_millis(field.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_is_found() {
        let text =
            "Request rate is large: ActivityID=1-2, RetryAfterMs=304, Additional details='… TooManyRequests (429); …";
        assert_eq!(retry_after(text), Some(Duration::from_millis(304)));
        assert_eq!(retry_after("a, b=3"), None);
    }
}
