//! How long a server takes from its start to the first answer on an empty directory, what it holds when idle, and how long a reset
//! between two tests takes.

use crate::server::{Server, rss_kib};
use crate::{Error, Outcome, clock};
use clap::Args;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// What a run measures, and what it allows.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// How many starts.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Longest start in the median, in milliseconds.
    #[arg(long, default_value_t = 50.0)]
    pub start_millis_max: f64,
    /// Longest reset that keeps the schema of 20 tables, of 99 in a hundred, in milliseconds.
    #[arg(long, default_value_t = 5.0)]
    pub reset_millis_max: f64,
}

/// Tables that the reset empties, and how often.
const RESET_TABLES: usize = 20;
const RESETS: usize = 200;
/// The token of the admin port.
const TOKEN: &str = "startup";
/// Most memory of an idle server, in KiB.
const IDLE_KIB_MAX: u64 = 50 * 1024;

/// Measures starts and resets; true when all figures hold.
///
/// # Errors
/// When the server does not start or answer.
pub fn run(options: Options) -> Outcome<bool> {
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..options.runs.max(1) {
        let folder = tempfile::tempdir()?;
        let start = clock::now();
        let server = Server::start(&format!("file:{}", folder.path().join("data").display()), folder.path())?;
        server
            .connect()?
            .must("SELECT key FROM system.local WHERE key = 'local'")?;
        times.push(clock::millis_since(start));
        std::thread::sleep(Duration::from_secs(1));
        memory.push(rss_kib(server.pid())?);
    }
    times.sort_by(f64::total_cmp);
    memory.sort_unstable();
    let time = times.get(times.len() / 2).copied().unwrap_or(f64::MAX);
    let kib = memory.get(memory.len() / 2).copied().unwrap_or(u64::MAX);
    println!(
        "startup: {time:.1} ms to the first answer (≤ {}), {} MiB when idle (≤ {}), median of {}",
        options.start_millis_max,
        kib / 1024,
        IDLE_KIB_MAX / 1024,
        times.len()
    );
    Ok(resets(options.reset_millis_max)? && time <= options.start_millis_max && kib <= IDLE_KIB_MAX)
}

/// Measures resets that keep the schema of [`RESET_TABLES`] tables, each with a row; true when the figure holds.
fn resets(millis_max: f64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let admin = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let arguments = ["--admin-listen", &admin.to_string(), "--admin-token", TOKEN];
    let server = Server::start_with("memory:", &arguments, folder.path())?;
    let mut connection = server.connect()?;
    connection.must("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    for table in 0..RESET_TABLES {
        connection.must(&format!("CREATE TABLE ks.t{table} (k int PRIMARY KEY, v text)"))?;
    }
    let mut times = Vec::new();
    for _ in 0..RESETS {
        for table in 0..RESET_TABLES {
            connection.must(&format!("INSERT INTO ks.t{table} (k, v) VALUES (1, 'a')"))?;
        }
        let start = clock::now();
        reset(admin)?;
        times.push(clock::millis_since(start));
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(f64::MAX);
    println!(
        "startup: a reset that keeps {RESET_TABLES} tables takes {:.2} ms in the median, {:.2} ms at p99 (≤ {millis_max}), of {RESETS}",
        at(50),
        at(99)
    );
    Ok(at(99) <= millis_max)
}

/// Asks for a reset that keeps the schema.
fn reset(admin: SocketAddr) -> Outcome<()> {
    let body = r#"{"keep":"schema"}"#;
    let mut stream = TcpStream::connect(admin)?;
    let request = format!(
        "POST /api/reset HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") {
        return Ok(());
    }
    Err(Error::Failed(format!("the reset was answered by: {answer}")))
}
