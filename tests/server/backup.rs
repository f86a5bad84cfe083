//! The program's backup and restore: beside a running server, on its directory, and ended at any moment.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::{helenus, until};
use crate::raw::Client;
use helenus_types::wire::Version;

/// Rows of a kilobyte: enough that a backup and a restore take a while.
const BATCHES: i32 = 150;
const BATCH_ROWS: i32 = 40;

/// What a command printed: on success and on failure.
fn output(arguments: &[&str]) -> Result<String, String> {
    let output = helenus(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr)),
    }
}

pub(crate) struct Server {
    child: Child,
    client: Client,
}

impl Server {
    pub(crate) async fn start(data: &str, folder: &Path) -> Self {
        let file = folder.join("ready");
        drop(std::fs::remove_file(&file));
        let path = file.to_str().unwrap();
        let child = helenus(&["--data", data, "--listen", "127.0.0.1:0", "--ready-file", path]);
        let mut child = { child }.stderr(Stdio::null()).spawn().unwrap();
        until("the server is ready", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            file.exists()
        });
        let address = std::fs::read_to_string(&file).unwrap();
        let client = Client::ready(address.trim().parse().unwrap(), Version::V4).await;
        Self { child, client }
    }

    pub(crate) async fn ask(&mut self, text: &str) -> Vec<u8> {
        self.client.query(1, text).await;
        let frame = self.client.frame().await.unwrap();
        assert_eq!(frame.opcode, 8, "{text}: {frame:?}");
        frame.body.to_vec()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn stop(mut self) {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(killed.success());
        assert!(self.child.wait().unwrap().success());
    }
}

fn is_backup(directory: &Path) -> bool {
    directory.join("manifest.json").exists()
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn a_running_server_is_backed_up_and_restored_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    let (data, other) = (
        format!("file:{}", text("data")),
        format!("slate+file:{}", text("other")),
    );
    let mut server = Server::start(&data, folder.path()).await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH helenus_partitions = 3",
        "ALTER TABLE ks.t WITH helenus_lift = 1",
    ] {
        server.ask(statement).await;
    }
    for batch in 0..BATCHES {
        let rows = (0..BATCH_ROWS).map(|row| {
            let k = batch * BATCH_ROWS + row;
            format!("INSERT INTO ks.t (k, v) VALUES ({k}, '{}');", "x".repeat(1000))
        });
        let rows: String = rows.collect();
        server.ask(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH")).await;
    }
    let socket = path("data").join("helenus.operator");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);

    // Beside the server, which goes on.
    let made = output(&["backup", "--data", &data, "--to", &text("b")]).unwrap();
    assert!(made.starts_with("1 table, 6000 stored rows, "), "{made}");
    let refused = output(&["backup", "--data", &data, "--to", &text("b")]).unwrap_err();
    assert!(refused.contains("is not empty"), "{refused}");
    let refused = output(&["backup", "--data", &data, "--to", &text("c"), "--table", "ks.none"]).unwrap_err();
    assert!(
        refused.contains("there is no table ks.none in the database"),
        "{refused}"
    );
    let refused = output(&["restore", "--data", &data, "--from", &text("b"), "--add"]).unwrap_err();
    assert!(refused.contains("in use"), "{refused}");
    let before = server.ask("SELECT count(*) FROM ks.t").await;

    // What is refused leaves nothing.
    let refused = output(&["restore", "--data", &other, "--from", &text("b"), "--profile", "cosmos"]).unwrap_err();
    assert!(refused.contains("start with --profile cassandra"), "{refused}");
    assert!(!path("other").exists());

    // A kill of the restore, then the whole.
    let mut restore = helenus(&["restore", "--data", &other, "--from", &text("b")])
        .spawn()
        .unwrap();
    let mark = path("other").join("helenus.restoring");
    until("the restore begins", || mark.exists());
    restore.kill().unwrap();
    restore.wait().unwrap();
    for command in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["restore", "--from", &text("b")],
    ] {
        let refused = output(&[command, &["--data", &other]].concat()).unwrap_err();
        assert!(refused.contains("a backup is being restored into"), "{refused}");
    }
    // There may be no store yet.
    let refused = output(&["check-indexes", "--data", &other]).unwrap_err();
    assert!(refused.contains(&text("other")), "{refused}");
    std::fs::remove_dir_all(path("other")).unwrap();
    let restored = output(&["restore", "--data", &other, "--from", &text("b")]).unwrap();
    assert!(restored.starts_with("1 table, 6000 stored rows"), "{restored}");
    let mut copy = Server::start(&other, &path("b")).await;
    assert_eq!(copy.ask("SELECT count(*) FROM ks.t").await, before);
    copy.stop();

    // A kill of the server during a backup: it is one, or it is none.
    let to = text("cut");
    let mut backup = helenus(&["backup", "--data", &data, "--to", &to]).spawn().unwrap();
    until("the backup begins", || path("cut").join("table-1-1.rows").exists());
    server.kill();
    let is_made = backup.wait().unwrap().success();
    assert!(!is_made || is_backup(&path("cut")));
    if !is_backup(&path("cut")) {
        let refused = output(&["restore", "--data", &other, "--from", &to, "--add"]).unwrap_err();
        assert!(refused.contains("is no backup"), "{refused}");
    }

    // Of a directory that no server has open, which the killed one has left with its socket; then beside what is there.
    let made = output(&["backup", "--data", &data, "--to", &text("d"), "--table", "ks.t"]).unwrap();
    assert!(made.starts_with("1 table, 6000 stored rows, "), "{made}");
    output(&[
        "restore",
        "--data",
        &data,
        "--from",
        &text("d"),
        "--table",
        "ks.t",
        "--as",
        "ks.u",
    ])
    .unwrap();
    output(&[
        "restore",
        "--data",
        &data,
        "--from",
        &text("b"),
        "--keyspace",
        "ks",
        "--as",
        "ks2",
    ])
    .unwrap();
    let mut server = Server::start(&data, folder.path()).await;
    for table in ["ks.t", "ks.u", "ks2.t"] {
        let counted = server.ask(&format!("SELECT count(*) FROM {table}")).await;
        assert!(counted.ends_with(&6000_i64.to_be_bytes()), "{table}");
    }
    server.stop();
    assert!(!socket.exists());
    let left: Vec<PathBuf> = [path("c")].into_iter().filter(|path| path.exists()).collect();
    assert!(left.is_empty(), "{left:?}");
}
