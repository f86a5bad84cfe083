//! Requests of an operator to a running server on the same machine, over a socket in the data directory.
//!
//! ```text
//! DIR/helenus.operator    a Unix socket, mode 0600, in a directory of mode 0700: the data's, or one for the URL of a
//!                         bucket in `operator-folder`
//! operator ─► one line of JSON: a request            server ─► one line of JSON: the result
//! ```
//! Backups and exports write files to a path that the operator gives, and an import reads one. Only the owner of the
//! data and root may request that, and the file system checks it. The admin port may be reached over the network, so it
//! does not offer this. If an operator disconnects, the operation ends; an incomplete backup is not valid.
//!
//! If no server runs, the same is done on its directory ([`assembly::offline`](crate::assembly::offline)).

pub mod client;
pub mod copying;
mod counted;
mod inserts;
pub mod records;
pub mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use self::copying::Imported;
use self::text::Form;
use super::socket::OwnSocket;
use helenus_base::permissions;
use helenus_base::progress::{Done, Progress, watch};
use helenus_cql::cql::Database;
use helenus_engine::engine::{BackedUp, has_roles, is_of_roles};
use helenus_storage::backup::{Manifest, Scope};

/// The socket's name.
const SOCKET: &str = "helenus.operator";

/// Operators served at once; others wait.
const OPERATORS_MAX: usize = 4;

/// Bytes of a request.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Time limit from connecting to the whole request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// Time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Time between attempts to make the socket.
const LISTEN_INTERVAL: Duration = Duration::from_secs(5);

/// Pause after an error of accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A request of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// A backup.
    Backup {
        /// The directory, absolute.
        to: PathBuf,
        /// The scope.
        scope: Scope,
    },
    /// Export of a table to a text file.
    Export {
        /// Its keyspace and name.
        table: (String, String),
        /// The format of the file.
        form: Form,
        /// The file, absolute.
        to: PathBuf,
    },
    /// Import of rows from a text file into a table.
    Import {
        /// Its keyspace and name.
        table: (String, String),
        /// The format of the file.
        form: Form,
        /// The file, absolute.
        from: PathBuf,
        /// Most bad rows before the import ends.
        bad_max: u64,
    },
}

impl std::fmt::Display for Ask {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Backup { to, scope } => {
                let of = match scope {
                    Scope::Whole => "the whole database".to_owned(),
                    Scope::Keyspace { keyspace } => format!("keyspace {keyspace}"),
                    Scope::Table { keyspace, table } => format!("table {keyspace}.{table}"),
                };
                write!(out, "backup of {of} to {}", to.display())
            }
            Self::Export { table, to, .. } => write!(out, "export of {}.{} to {}", table.0, table.1, to.display()),
            Self::Import { table, from, .. } => {
                write!(out, "import of {} into {}.{}", from.display(), table.0, table.1)
            }
        }
    }
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// A backup was made.
    Backup(BackupFigures),
    /// The number of exported rows.
    Exported(u64),
    /// Rows were imported.
    Imported(Imported),
    /// Nothing was done; the reason.
    Refused(String),
    /// The operation goes on; a further line follows.
    Progress(Done),
}

/// Figures of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFigures {
    /// Tables and materialized views of users.
    pub tables: usize,
    /// Their rows, including static ones.
    pub rows: u64,
    /// Bytes of data files.
    pub bytes: u64,
    /// The time that it shows, µs since 1970-01-01 UTC.
    pub moment_micros: i64,
    /// How long writes waited, µs.
    pub held_micros: u64,
    /// Losses, by salvage only.
    pub lost: usize,
    /// Whether it has roles. A server of an older version says nothing, and leaves them out.
    #[serde(default)]
    pub has_roles: bool,
}

impl BackupFigures {
    pub(super) fn of(manifest: &Manifest, held: Duration) -> Self {
        let of_users = manifest.tables.iter().filter(|table| !is_of_roles(table));
        let files = manifest.tables.iter().flat_map(|table| &table.files);
        Self {
            tables: of_users.clone().count(),
            rows: of_users.map(|table| table.rows).sum(),
            bytes: files.map(|file| file.bytes).sum(),
            moment_micros: manifest.moment_micros,
            held_micros: u64::try_from(held.as_micros()).unwrap_or(u64::MAX),
            lost: manifest.lost.len(),
            has_roles: has_roles(manifest),
        }
    }
}

/// Serves operators until the server stops. If the directory cannot hold a socket, that is logged and tried again: a server
/// whose place this one has taken may have it for a while.
pub(crate) fn serve(directory: &Path, database: &Arc<Database>) {
    let listened = listen(directory);
    if let Err(error) = &listened {
        tracing::warn!(
            directory = %directory.display(), %error,
            "no socket for operators: backups need a stopped server until there is one"
        );
    }
    let directory = directory.to_owned();
    // Weak, because the database joins this task.
    let of_task = Arc::downgrade(database);
    database.engine().tasks().until_stop("socket of operators", async move {
        let mut listened = listened;
        let socket = loop {
            match listened {
                Ok(socket) => break socket,
                Err(_) => tokio::time::sleep(LISTEN_INTERVAL).await,
            }
            listened = listen(&directory);
            if listened.is_ok() {
                tracing::info!(directory = %directory.display(), "there is a socket for operators now");
            }
        };
        accept(socket, of_task).await;
    });
}

fn listen(directory: &Path) -> io::Result<OwnSocket> {
    permissions::create_directory(directory)?;
    OwnSocket::listen(directory, SOCKET)
}

async fn accept(listener: OwnSocket, database: Weak<Database>) {
    let mut operators = JoinSet::new();
    loop {
        while operators.len() >= OPERATORS_MAX {
            operators.join_next().await;
        }
        match listener.accept().await {
            Ok(socket) => {
                let Some(database) = database.upgrade() else { return };
                operators.spawn(answer(socket, database));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an operator's connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(socket: UnixStream, database: Arc<Database>) {
    let (read, mut write) = socket.into_split();
    let mut read = BufReader::new(read);
    let came = tokio::select! {
        came = read_request(&mut read) => came,
        () = tokio::time::sleep(REQUEST_WITHIN) => return,
    };
    let came = match came {
        Err(refused) => refused,
        Ok(ask) => {
            let progress = Arc::new(Progress::default());
            let mut work = std::pin::pin!(watch(Arc::clone(&progress), carry_out(ask, &database)));
            loop {
                tokio::select! {
                    came = &mut work => break came,
                    // Clients send nothing after the request: a read that returns means the operator disconnected.
                    _ = read.read_u8() => {
                        tracing::info!("an operator disconnected, so the operation was cancelled");
                        return;
                    }
                    () = tokio::time::sleep(PROGRESS_INTERVAL) => send(&mut write, &Came::Progress(progress.done())).await,
                }
            }
        }
    };
    send(&mut write, &came).await;
}

/// Sends a line to an operator. One who has disconnected is noticed by the next read.
async fn send(write: &mut (impl tokio::io::AsyncWrite + Unpin), came: &Came) {
    let Ok(mut line) = serde_json::to_vec(came) else {
        return;
    };
    line.push(b'\n');
    if let Err(error) = write.write_all(&line).await {
        tracing::debug!(%error, "an operator disconnected before the answer");
    }
}

async fn read_request(read: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Result<Ask, Came> {
    let mut line = String::new();
    let refused = |why: String| Came::Refused(format!("the request cannot be read: {why}"));
    let read = read.take(REQUEST_BYTES_MAX).read_line(&mut line).await;
    read.map_err(|error| refused(error.to_string()))?;
    serde_json::from_str(&line).map_err(|error| refused(error.to_string()))
}

/// Executes a request.
pub(crate) async fn carry_out(ask: Ask, database: &Database) -> Came {
    tracing::info!(operation = %ask, "an operator requested an operation");
    let came = match ask {
        Ask::Backup { to, scope } => database
            .engine()
            .backups()
            .write(&to, &scope)
            .await
            .map(|BackedUp { manifest, held }| Came::Backup(BackupFigures::of(&manifest, held)))
            .map_err(|error| error.to_string()),
        Ask::Export { table, form, to } => copying::export(database, (&table.0, &table.1), form, &to)
            .await
            .map(Came::Exported)
            .map_err(|error| error.to_string()),
        Ask::Import {
            table,
            form,
            from,
            bad_max,
        } => copying::import(database, (&table.0, &table.1), form, &from, bad_max)
            .await
            .map(Came::Imported)
            .map_err(|error| error.to_string()),
    };
    match came {
        Ok(came) => {
            tracing::info!("the operator's request succeeded");
            came
        }
        Err(why) => {
            tracing::warn!(why, "the operator's request failed");
            Came::Refused(why)
        }
    }
}
