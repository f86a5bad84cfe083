//! A client that splits, merges, lifts and lowers physical partitions of a table while others use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::crash::all_rows;
use crate::crash::writers::gone;
use crate::raw::{Connection, unhex};
use crate::{Error, Outcome};

/// Longest pause between two changes, in milliseconds.
const PAUSE_MILLIS_MAX: u64 = 30;

/// Physical partitions, fewest and most.
const PARTITIONS_MIN: usize = 3;
const PARTITIONS_MAX: usize = 12;

/// Damage in an answer or in the server's log.
pub(crate) const DAMAGE: &str = "damaged";

/// What was done with partitions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moved {
    pub(crate) splits: u32,
    pub(crate) merges: u32,
    pub(crate) lifts: u32,
    pub(crate) lowers: u32,
    pub(crate) cut: u32,
    pub(crate) refused: u32,
    /// Refusals that tell of damage.
    pub(crate) damage: Vec<String>,
}

impl Moved {
    /// Changes that were made.
    pub(crate) fn all(&self) -> u32 {
        self.splits + self.merges + self.lifts + self.lowers
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.splits += other.splits;
        self.merges += other.merges;
        self.lifts += other.lifts;
        self.lowers += other.lowers;
        self.cut += other.cut;
        self.refused += other.refused;
        self.damage.extend(other.damage);
    }
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} splits, {} merges, {} lifts and {} lowers done, {} cut, {} refused",
            self.splits, self.merges, self.lifts, self.lowers, self.cut, self.refused
        )
    }
}

/// Starts it for a table, KEYSPACE.TABLE, until it is stopped or the server is gone.
pub(crate) fn start(address: &str, table: &str, seed: u64, stop: &Arc<AtomicBool>) -> JoinHandle<Outcome<Moved>> {
    let (address, table, stop) = (address.to_owned(), table.to_owned(), Arc::clone(stop));
    std::thread::spawn(move || {
        let mut moved = Moved::default();
        match work(&address, &table, seed, &stop, &mut moved) {
            Err(error) if !gone(&error) => Err(error),
            Ok(()) | Err(_) => Ok(moved),
        }
    })
}

fn work(address: &str, table: &str, seed: u64, stop: &AtomicBool, moved: &mut Moved) -> Outcome<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut connection = Connection::open(address, 4)?;
    let (keyspace, name) = table.split_once('.').unwrap_or(("", table));
    let listed = format!(
        "SELECT id, store FROM system_cosmos.partitions WHERE keyspace_name = '{keyspace}' AND table_name = '{name}'"
    );
    while !stop.load(Ordering::Relaxed) {
        let rows = match all_rows(&mut connection, &listed) {
            Err(Error::Refused { .. }) => {
                moved.refused += 1;
                std::thread::sleep(Duration::from_millis(PAUSE_MILLIS_MAX));
                continue;
            }
            rows => rows?,
        };
        let cell = |row: &Value, place: usize| unhex(row.get(place)?.as_str()?);
        let id = |row: &Value| {
            cell(row, 0)
                .and_then(|bytes| bytes.try_into().ok())
                .map(i64::from_be_bytes)
        };
        let place = random.usize(..rows.len().max(1));
        let row = rows.get(place);
        let left = place.checked_sub(1).and_then(|left| rows.get(left)).and_then(id);
        let id = row.and_then(id).ok_or(Error::Malformed("an id of a partition"))?;
        let (property, count) = match (random.u8(..8), left) {
            (0, _) if rows.len() < PARTITIONS_MAX => {
                (format!("helenus_split_at = {}", random.i64(..)), &mut moved.splits)
            }
            (1 | 2, Some(left)) if rows.len() > PARTITIONS_MIN => (
                format!("helenus_merge = {{'left': {left}, 'right': {id}}}"),
                &mut moved.merges,
            ),
            (3..6, _) => (format!("helenus_lift = {id}"), &mut moved.lifts),
            _ => (format!("helenus_lower = {id}"), &mut moved.lowers),
        };
        match connection.must(&format!("ALTER TABLE {table} WITH {property}")) {
            Ok(_) => *count += 1,
            // Not every two partitions can be merged, one that is at home is not lowered, and stores are few.
            Err(Error::Refused { message, .. }) => {
                moved.refused += 1;
                if message.contains(DAMAGE) {
                    moved.damage.push(format!("{property}: {message}"));
                }
            }
            Err(error) => {
                moved.cut += 1;
                return Err(error);
            }
        }
        std::thread::sleep(Duration::from_millis(random.u64(..PAUSE_MILLIS_MAX)));
    }
    Ok(())
}
