//! Roles of the program: the first one, what is left after a kill, and a password that no one knows any more.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::security::{Program, login};

const INCORRECT: u32 = 0x0100;
const UNAUTHORIZED: u32 = 0x2100;

fn with_login(_: &Path) -> Vec<String> {
    ["--listen", "127.0.0.1:0", "--login", "--password-cost", "4"]
        .map(str::to_owned)
        .into()
}

/// The code of the error of a login; `None`: it is let in.
async fn refused(address: SocketAddr, role: &str, password: &str) -> Option<u32> {
    let (_, answer) = login(address, role, password).await;
    (answer.opcode == 0).then(|| answer.error().0)
}

/// Asks as a role; gives the code of the error.
async fn ask(address: SocketAddr, role: &str, password: &str, statements: &[&str]) -> Option<u32> {
    let (mut client, answer) = login(address, role, password).await;
    assert_eq!(answer.opcode, 0x10, "{role}");
    for statement in statements {
        client.query(1, statement).await;
        let answer = client.frame().await.unwrap();
        if answer.opcode == 0 {
            return Some(answer.error().0);
        }
    }
    None
}

#[tokio::test]
async fn what_was_granted_is_there_after_a_kill() {
    let program = Program::start_in(tempfile::tempdir().unwrap(), with_login);
    let address = program.address;
    assert_eq!(refused(address, "cassandra", "guess").await, Some(INCORRECT));
    let statements = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY)",
        "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true",
        "CREATE ROLE idle WITH PASSWORD = 'i'",
        "GRANT SELECT ON ks.t TO ann",
        "CREATE ROLE chief WITH PASSWORD = 'c' AND LOGIN = true AND SUPERUSER = true",
    ];
    assert_eq!(ask(address, "cassandra", "cassandra", &statements).await, None);
    assert_eq!(ask(address, "chief", "c", &["DROP ROLE cassandra"]).await, None);
    let program = Program::start_in(program.kill(), with_login);
    let address = program.address;
    assert_eq!(ask(address, "ann", "a", &["SELECT * FROM ks.t"]).await, None);
    let insert = ["INSERT INTO ks.t (k) VALUES (1)"];
    assert_eq!(ask(address, "ann", "a", &insert).await, Some(UNAUTHORIZED));
    assert_eq!(refused(address, "idle", "i").await, Some(INCORRECT));
    // The first role is made once only.
    assert_eq!(refused(address, "cassandra", "cassandra").await, Some(INCORRECT));
    program.kill();
}

#[tokio::test]
async fn passwd_lets_a_role_in_whose_password_is_lost() {
    let program = Program::start_in(tempfile::tempdir().unwrap(), with_login);
    let statements = [
        "ALTER ROLE cassandra WITH PASSWORD = 'forgotten'",
        "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true",
    ];
    assert_eq!(ask(program.address, "cassandra", "cassandra", &statements).await, None);
    let folder = program.kill();
    let data = format!("file:{}", folder.path().join("data").display());
    for (password, is_taken) in [("\n", false), ("found\n", true)] {
        let mut passwd = Command::new(env!("CARGO_BIN_EXE_helenus"))
            .args(["passwd", "cassandra", "--password-cost", "4", "--data", &data])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        passwd.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        assert_eq!(passwd.wait().unwrap().success(), is_taken);
    }
    let program = Program::start_in(folder, with_login);
    assert_eq!(
        refused(program.address, "cassandra", "forgotten").await,
        Some(INCORRECT)
    );
    let list = ["LIST ROLES", "SELECT * FROM system_auth.roles"];
    assert_eq!(ask(program.address, "cassandra", "found", &list).await, None);
    assert_eq!(ask(program.address, "ann", "a", &list[..1]).await, None);
    program.kill();
}

#[tokio::test]
async fn a_trace_does_not_tell_a_password() {
    let program = Program::start_in(tempfile::tempdir().unwrap(), with_login);
    let (mut client, _) = login(program.address, "cassandra", "cassandra").await;
    client.query(1, "SELECT * FROM system.local").await;
    client.frame().await.unwrap();
    client
        .traced_query(
            1,
            "CREATE ROLE ann WITH PASSWORD = 'MARKER-of-a-password' AND LOGIN = true",
        )
        .await;
    assert_eq!(client.frame().await.unwrap().opcode, 8);
    for table in ["sessions", "events"] {
        client.query(1, &format!("SELECT * FROM system_traces.{table}")).await;
        let rows = client.frame().await.unwrap().body;
        let text = String::from_utf8_lossy(&rows).into_owned();
        assert!(text.contains("*******") && !text.contains("MARKER"), "{table}");
    }
    program.kill();
}
