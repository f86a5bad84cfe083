//! The same while partitions are split, merged, lifted and lowered, with faults and kills at any moment: what each register holds is judged as before, and no
//! answer and no line of the server's log may tell of damage.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{CLIENTS, SCHEMA, Shared, lock};
use crate::bucket_speed::{end, start};
use crate::layout_mover::{self, DAMAGE, Moved};
use crate::objects::{Fault, Latency, Objects, Protocol};
use crate::server::Server;
use crate::{Error, Outcome, clock};

/// Faults of one life of a server.
const FAULTS_MAX: u32 = 4;

/// Longest fault, and time before and after it.
const FAULT_MILLIS_MAX: u64 = 6_000;
const QUIET_MILLIS_MAX: u64 = 5_000;

/// Runs so many lives of a server, most of which `kill -9` ends; true when nothing was lost, doubled or damaged.
///
/// # Errors
/// When the server does not start or end.
pub fn run(lives: u32, seed: u64) -> Outcome<bool> {
    let store = Objects::start(Protocol::S3, Latency::REGION)?;
    let folder = tempfile::tempdir()?;
    let mut random = fastrand::Rng::with_seed(seed);
    let server = start(&store, folder.path())?;
    let mut connection = server.connect()?;
    for statement in SCHEMA {
        connection.must(statement)?;
    }
    for k in 0..CLIENTS {
        connection.must(&format!("INSERT INTO faults.register (k, v) VALUES ({k}, 0)"))?;
    }
    let shared = Shared::new(server.address());
    let began = clock::now();
    let (server, mut moved) = std::thread::scope(|scope| {
        shared.start_clients(scope);
        let lived = live(&store, folder.path(), &shared, server, lives, &mut random);
        store.set(Fault::None);
        shared.is_given_up.store(lived.is_err(), Ordering::SeqCst);
        shared.is_over.store(true, Ordering::SeqCst);
        lived
    })?;
    let mut seen = shared
        .seen
        .into_inner()
        .map_err(|_| Error::failed("a client panicked"))?;
    let mut damage = std::mem::take(&mut moved.damage);
    damage.extend(damage_in(&server.logged()));
    println!(
        "{} kills, {moved}; {} acknowledged, {} failed, of which {} had been done; {} wrong, {} tell of damage; seed {seed}, {:.0} s",
        lives.saturating_sub(1),
        seen.acknowledged,
        seen.failed,
        seen.done_though_failed,
        seen.wrong.len(),
        damage.len(),
        began.elapsed().as_secs_f64()
    );
    seen.wrong.append(&mut damage);
    for wrong in seen.wrong.iter().take(20) {
        println!("  {wrong}");
    }
    end(server)?;
    Ok(seen.wrong.is_empty() && moved.all() > 0 && seen.acknowledged > 0)
}

/// The lives of a server: faults and changes of partitions in each, and a kill after all but the last.
fn live(
    store: &Objects,
    folder: &Path,
    shared: &Shared,
    mut server: Server,
    lives: u32,
    random: &mut fastrand::Rng,
) -> Outcome<(Server, Moved)> {
    let mut moved = Moved::default();
    for life in 0..lives {
        let stop = Arc::new(AtomicBool::new(false));
        let mover = layout_mover::start(server.address(), "faults.register", random.u64(..), &stop);
        for _ in 0..random.u32(1..=FAULTS_MAX) {
            std::thread::sleep(Duration::from_millis(random.u64(..QUIET_MILLIS_MAX)));
            store.set(match random.u8(..4) {
                0 => Fault::Unavailable,
                1 => Fault::Hang,
                2 => Fault::Deaf,
                _ => Fault::Slow(Duration::from_millis(random.u64(..2_000))),
            });
            std::thread::sleep(Duration::from_millis(random.u64(..FAULT_MILLIS_MAX)));
            // A kill may come within the fault.
            if random.u8(..4) > 0 {
                store.set(Fault::None);
            }
        }
        stop.store(true, Ordering::Relaxed);
        if life + 1 < lives {
            server.kill()?;
            store.set(Fault::None);
            server = start(store, folder)?;
            server.address().clone_into(&mut *lock(&shared.address));
        }
        moved.add(mover.join().map_err(|_| Error::failed("the mover panicked"))??);
    }
    Ok((server, moved))
}

fn damage_in(log: &str) -> Vec<String> {
    log.lines()
        .filter(|line| line.contains(DAMAGE))
        .map(str::to_owned)
        .collect()
}
