//! Two servers and one bucket: the owner is killed, or stopped and resumed, and another server takes over.
//!
//! Each round adds to a register at the owner, then ends the owner or stops it, in turn, starts another server and adds there. An owner that was
//! stopped has a read waiting when it is resumed, and is asked more until it ends. Any answer of it with an older number is stale, unless it had
//! arrived before the server was resumed: then a thread of it had not stopped yet when it was asked.
//! Each round tries, too, to start a server beside the one that lives: it has to be refused by name.
//!
//! Runs under `compat/bucket/with`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crash::int;
use crate::raw::{Connection, Params, connection, opcode, request};
use crate::server::{Server, Starting};
use crate::{Error, Outcome, clock, launch, tools};

/// How long a resumed server may take to end: it waits ten seconds for its clients.
const ENDING_MAX: Duration = Duration::from_secs(20);

/// QUORUM, native_protocol_v4.spec §3.
const QUORUM: u16 = 0x0004;

const READ: &str = "SELECT v FROM owners.register WHERE k = 0";

#[derive(Debug, Default)]
struct Totals {
    takeovers: usize,
    /// From the end of the owner to the next acknowledged write, ms.
    slowest_millis: f64,
    /// Reads that a resumed server answered, refused.
    answered: usize,
    refused: usize,
    /// Reads answered before the server was resumed.
    early: usize,
    wrong: Vec<String>,
}

/// An owner that is stopped, and was asked.
struct Stopped {
    server: Server,
    connection: Connection,
    /// When.
    asked: Instant,
}

/// Runs `rounds` rounds; true when nothing was lost or stale.
///
/// # Errors
/// There is no bucket, or a server does not start.
pub fn run(rounds: i32) -> Outcome<bool> {
    if std::env::var_os("HELENUS_COMPAT_BUCKET").is_none() {
        return Err(Error::failed("run it by compat/bucket/with STORE"));
    }
    let folder = tempfile::tempdir()?;
    let data = launch::data(folder.path());
    let place = |round: i32| -> Outcome<_> {
        let place = folder.path().join(format!("server-{round}"));
        std::fs::create_dir_all(&place)?;
        Ok(place)
    };
    let mut owner = Server::start(&data, &place(-1)?)?;
    let mut connection = owner.connect()?;
    for statement in [
        "CREATE KEYSPACE owners WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE owners.register (k int PRIMARY KEY, v int)",
        "INSERT INTO owners.register (k, v) VALUES (0, 0)",
    ] {
        connection.must(statement)?;
    }
    let mut totals = Totals::default();
    let mut number = 0;
    for round in 0..rounds {
        number = add(&mut connection, number, &mut totals)?;
        refused_beside(&data, &place(round)?, &mut totals)?;
        let is_stopped = round % 2 == 1;
        let began = clock::now();
        let mut stopped = None;
        if is_stopped {
            owner.freeze()?;
            until_frozen(owner.pid())?;
            connection.send(&read(&connection))?;
            stopped = Some(Stopped {
                server: owner,
                connection,
                asked: clock::now(),
            });
        } else {
            owner.kill()?;
        }
        owner = Server::start(&data, &place(round)?)?;
        connection = owner.connect()?;
        number = add(&mut connection, number, &mut totals)?;
        totals.takeovers += 1;
        totals.slowest_millis = totals.slowest_millis.max(clock::millis_since(began));
        if let Some(stopped) = stopped {
            resume(stopped, number, &mut totals)?;
        }
    }
    println!(
        "{} takeovers, the slowest {:.0} ms to the next acknowledged write; resumed servers: {} reads refused, {} answered, {} \
         before they were resumed; {} wrong",
        totals.takeovers,
        totals.slowest_millis,
        totals.refused,
        totals.answered,
        totals.early,
        totals.wrong.len()
    );
    for wrong in totals.wrong.iter().take(10) {
        println!("  {wrong}");
    }
    Ok(totals.wrong.is_empty() && totals.takeovers > 0)
}

fn params() -> Params {
    Params {
        consistency: Some(QUORUM),
        ..Params::default()
    }
}

/// Waits until every thread of a process has stopped: a signal that was sent may not have reached all of them.
fn until_frozen(pid: u32) -> Outcome<()> {
    loop {
        let mut runs = false;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let status = std::fs::read_to_string(task?.path().join("status"))?;
            runs |= !status.lines().any(|line| line.starts_with("State:\tT"));
        }
        if !runs {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The bytes of a read.
fn read(connection: &Connection) -> Vec<u8> {
    let body = request::query(connection.version(), READ, &params());
    let mut bytes = Vec::new();
    connection.put(&mut bytes, 1, opcode::QUERY, &body);
    bytes
}

/// The register's number in an answer; `None`: it is no row.
fn number_of(answer: &Value) -> Option<i32> {
    int(answer.get("rows")?.as_array()?.first()?.as_array()?.first())
}

/// Reads the register, which has to hold this number, and adds one.
fn add(connection: &mut Connection, number: i32, totals: &mut Totals) -> Outcome<i32> {
    let found = number_of(&connection::succeeded(READ, connection.query(READ, &params())?)?);
    if found != Some(number) {
        totals
            .wrong
            .push(format!("the owner read {found:?} after {number} was acknowledged"));
    }
    let next = number + 1;
    let text = format!("UPDATE owners.register SET v = {next} WHERE k = 0 IF v = {number}");
    connection.must(&text)?;
    Ok(next)
}

/// Starts a server beside the owner: it has to be refused by the owner's name.
fn refused_beside(data: &str, folder: &Path, totals: &mut Totals) -> Outcome<()> {
    let mut command = Command::new(crate::server::program()?);
    command.args(["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    let told = match Starting::launch(command, folder)?.ready() {
        Ok(second) => {
            second.kill()?;
            "it was served".to_owned()
        }
        Err(error) => error.to_string(),
    };
    if !told.contains("serves this prefix at") {
        totals.wrong.push(format!("a second server: {told}"));
    }
    Ok(())
}

/// Resumes a server that was stopped, and asks it until it ends.
fn resume(stopped: Stopped, number: i32, totals: &mut Totals) -> Outcome<()> {
    let Stopped {
        mut server,
        mut connection,
        mut asked,
    } = stopped;
    let is_early = connection.has_received()?;
    tools::run("kill", ["-CONT".to_owned(), server.pid().to_string()])?;
    let resumed = clock::now();
    let mut check = |answer: Outcome<Value>, asked: Instant| match answer.ok().as_ref().map(number_of) {
        Some(Some(found)) if found < number => totals.wrong.push(format!(
            "a resumed server, asked {:.1} ms before now and resumed {:.1} ms before, read {found} after {number} was \
             acknowledged by another",
            clock::millis_since(asked),
            clock::millis_since(resumed)
        )),
        Some(Some(_)) => totals.answered += 1,
        _ => totals.refused += 1,
    };
    let first = connection
        .receive()
        .and_then(|envelope| crate::raw::answer::plain(&envelope));
    if is_early {
        totals.early += 1;
    } else {
        check(first, asked);
    }
    let began = clock::now();
    while server.ended()?.is_none() {
        asked = clock::now();
        check(connection.query(READ, &params()), asked);
        if began.elapsed() > ENDING_MAX {
            totals
                .wrong
                .push("a resumed server that has lost its bucket does not end".to_owned());
            return server.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
