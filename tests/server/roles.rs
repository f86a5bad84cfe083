//! Roles of the program: the first one, what is left after a kill, and a password that no one knows any more.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::security::{Program, login, wait_for};

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
async fn a_client_at_an_address_outside_of_its_roles_groups_is_refused() {
    let with_groups = |folder: &Path| {
        let mut arguments = with_login(folder);
        let groups = [
            "--cidr-groups",
            "home=127.0.0.0/8,::1/128",
            "--cidr-groups",
            "office=10.0.0.0/8",
        ];
        arguments.extend(groups.map(str::to_owned));
        arguments
    };
    let program = Program::start_in(tempfile::tempdir().unwrap(), with_groups);
    let statements = [
        "CREATE ROLE near WITH PASSWORD = 'n' AND LOGIN = true AND ACCESS FROM CIDRS {'home'}",
        "CREATE ROLE far WITH PASSWORD = 'f' AND LOGIN = true AND ACCESS FROM CIDRS {'office'}",
        "CREATE ROLE chief WITH PASSWORD = 'c' AND LOGIN = true AND SUPERUSER = true AND ACCESS FROM CIDRS {'office'}",
    ];
    let address = program.address;
    assert_eq!(ask(address, "cassandra", "cassandra", &statements).await, None);
    let read = ["SELECT key FROM system.local"];
    assert_eq!(ask(address, "near", "n", &read).await, None);
    assert_eq!(ask(address, "chief", "c", &read).await, None);
    // As in Cassandra the login is taken and every statement is refused, also on a connection from before.
    let (mut far, answer) = login(address, "far", "f").await;
    assert_eq!(answer.opcode, 0x10);
    let refused = (UNAUTHORIZED, "You do not have access from this IP 127.0.0.1".to_owned());
    far.query(1, read[0]).await;
    assert_eq!(far.frame().await.unwrap().error(), refused);
    let moved = ["ALTER ROLE far WITH ACCESS FROM CIDRS {'home', 'office'}"];
    assert_eq!(ask(address, "cassandra", "cassandra", &moved).await, None);
    far.query(1, read[0]).await;
    assert_eq!(far.frame().await.unwrap().opcode, 8);
    let away = ["ALTER ROLE far WITH ACCESS FROM CIDRS {'office'}"];
    assert_eq!(ask(address, "cassandra", "cassandra", &away).await, None);
    far.query(1, read[0]).await;
    assert_eq!(far.frame().await.unwrap().error(), refused);
    // Without the setting nothing is checked, and the log warns.
    let program = Program::start_in(program.kill(), with_login);
    assert_eq!(ask(program.address, "far", "f", &read).await, None);
    let output = program.output();
    assert!(
        output.contains("cidr-groups is not set") && output.contains("far"),
        "{output}"
    );
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
    let whole = "CREATE ROLE ann WITH PASSWORD = 'MARKER-of-a-password' AND LOGIN = true";
    for (text, is_done) in [
        (whole, true),
        ("ALTR ROLE ann WITH PASSWORD = 'MARKER'", false),
        ("ALTER ROL ann WITH PASSWORD = 'MARKER'", false),
        ("ALTER ROLE ann WITH PASSWORD = MARKER", false),
        ("CREATE ROLE bob 'MARKER'", false),
        ("SET PASSWORD FOR ann = 'MARKER'", false),
        (
            "UPDATE system_auth.role SET salted_hash = 'MARKER' WHERE role = 'ann'",
            false,
        ),
        ("SELECT key FROM system.local WHERE password = 1", false),
    ] {
        client.traced_query(1, text).await;
        assert_eq!(client.frame().await.unwrap().opcode == 8, is_done, "{text}");
    }
    for table in ["sessions", "events"] {
        client.query(1, &format!("SELECT * FROM system_traces.{table}")).await;
        let rows = client.frame().await.unwrap().body;
        let text = String::from_utf8_lossy(&rows).into_owned();
        assert!(text.contains("*******") && !text.contains("MARKER"), "{table}");
        // A column of a table may have that name.
        assert!(text.contains("WHERE password = 1"), "{table}");
    }
    program.kill();
}

#[tokio::test]
async fn the_audit_log_says_who_did_what_and_whether_they_were_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let program = Program::start_in(tempfile::tempdir().unwrap(), |folder| {
        let mut arguments = with_login(folder);
        arguments.extend(["--audit-log".to_owned(), file.display().to_string()]);
        arguments
    });
    let address = program.address;
    assert_eq!(refused(address, "cassandra", "MARKER").await, Some(INCORRECT));
    let statements = [
        "CREATE ROLE ann WITH PASSWORD = 'MARKER' AND LOGIN = true",
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY)",
        "INSERT INTO ks.t (k) VALUES (1)",
        "SELECT * FROM ks.t",
    ];
    assert_eq!(ask(address, "cassandra", "cassandra", &statements).await, None);
    let denied = ["SELECT * FROM ks.t"];
    assert_eq!(ask(address, "ann", "MARKER", &denied).await, Some(UNAUTHORIZED));
    // The end of the program writes what is queued.
    program.stop();
    let written = std::fs::read_to_string(&file).unwrap();
    let came: Vec<_> = written
        .lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            assert_eq!(text("source"), "127.0.0.1");
            assert!(record["timestamp"].as_i64().unwrap() > 1_600_000_000_000);
            (text("user"), text("type"), record["allowed"].as_bool().unwrap())
        })
        .collect();
    let expected = [
        ("cassandra", "LOGIN_ERROR", false),
        ("cassandra", "LOGIN_SUCCESS", true),
        ("cassandra", "CREATE_ROLE", true),
        ("cassandra", "CREATE_KEYSPACE", true),
        ("cassandra", "CREATE_TABLE", true),
        ("ann", "LOGIN_SUCCESS", true),
        ("ann", "UNAUTHORIZED_ATTEMPT", false),
    ];
    assert_eq!(
        came,
        expected.map(|(user, kind, allowed)| (user.to_owned(), kind.to_owned(), allowed))
    );
    assert!(!written.contains("MARKER"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    }
}

/// Asks the admin port; gives the status and the body.
fn admin(address: &str, method: &str, path: &str, authorization: Option<&str>) -> (u16, String) {
    let mut socket = TcpStream::connect(address).unwrap();
    let authorization = authorization.map_or_else(String::new, |value| format!("Authorization: {value}\r\n"));
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Length: 0\r\n\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn the_admin_port_asks_for_roles() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let program = Program::start_in(tempfile::tempdir().unwrap(), |folder| {
        let mut arguments = with_login(folder);
        arguments.extend(["--admin-listen", "127.0.0.1:0", "--audit-log"].map(str::to_owned));
        arguments.push(file.display().to_string());
        arguments
    });
    let record = program.record();
    let (address, token) = (record.admin.unwrap(), format!("Bearer {}", record.token.unwrap()));
    let statements = [
        "CREATE ROLE reader WITH PASSWORD = 'r' AND LOGIN = true",
        "GRANT SELECT ON ALL KEYSPACES TO reader",
        "CREATE ROLE some WITH PASSWORD = 's' AND LOGIN = true",
        "GRANT SELECT ON KEYSPACE system_auth TO some",
        "CREATE ROLE idle WITH PASSWORD = 'i'",
        "GRANT SELECT ON ALL KEYSPACES TO idle",
    ];
    assert_eq!(ask(program.address, "cassandra", "cassandra", &statements).await, None);
    // cassandra:cassandra, cassandra:guess, reader:r, some:s, idle:i, nobody:n
    let basic = |text: &str| Some(format!("Basic {text}"));
    let askers = [
        ("no login", None, 401, 401),
        ("the token", Some(token), 200, 200),
        ("a superuser", basic("Y2Fzc2FuZHJhOmNhc3NhbmRyYQ=="), 200, 200),
        ("its wrong password", basic("Y2Fzc2FuZHJhOmd1ZXNz"), 401, 401),
        ("a reader", basic("cmVhZGVyOnI="), 200, 403),
        ("a reader of some", basic("c29tZTpz"), 403, 403),
        ("a role without LOGIN", basic("aWRsZTpp"), 401, 401),
        ("no role", basic("bm9ib2R5Om4="), 401, 401),
        ("another token", Some("Bearer guess".to_owned()), 401, 401),
    ];
    for (name, authorization, read, change) in &askers {
        let authorization = authorization.as_deref();
        for path in ["/", "/metrics", "/api/tables", "/api/faults"] {
            let (status, body) = admin(&address, "GET", path, authorization);
            assert_eq!(status, *read, "{name}: {path}: {body}");
        }
        let (status, body) = admin(&address, "DELETE", "/api/faults", authorization);
        assert_eq!(status, *change, "{name}: {body}");
        for path in ["/livez", "/readyz"] {
            assert_eq!(admin(&address, "GET", path, authorization).0, 200, "{name}: {path}");
        }
    }
    // A REVOKE holds for the next request.
    let revoke = ["REVOKE SELECT ON ALL KEYSPACES FROM reader"];
    assert_eq!(ask(program.address, "cassandra", "cassandra", &revoke).await, None);
    assert_eq!(admin(&address, "GET", "/metrics", Some("Basic cmVhZGVyOnI=")).0, 403);
    // Guesses are bounded as at the native port.
    let guesses: Vec<_> = (0..40)
        .map(|_| {
            let address = address.clone();
            std::thread::spawn(move || admin(&address, "GET", "/metrics", Some("Basic Y2Fzc2FuZHJhOmd1ZXNz")).0)
        })
        .collect();
    // They leave connections for probes: those beyond a number are answered at once, the others after a while.
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        guesses.iter().any(|guess| !guess.is_finished()),
        "all guesses are answered"
    );
    assert_eq!(admin(&address, "GET", "/livez", None).0, 200);
    let answers: Vec<u16> = guesses.into_iter().filter_map(|guess| guess.join().ok()).collect();
    assert!(
        answers.iter().all(|status| [401, 429].contains(status)) && answers.contains(&429),
        "{answers:?}"
    );
    program.stop();
    let written = std::fs::read_to_string(&file).unwrap();
    let changes = |user: &str, allowed: bool| {
        let is_one = |line: &&str| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record["operation"] == "DELETE /api/faults" && record["user"] == user && record["allowed"] == allowed
        };
        written.lines().filter(is_one).count()
    };
    assert_eq!((changes("cassandra", true), changes("(token)", true)), (1, 1));
    assert_eq!(
        (
            changes("reader", false),
            changes("some", false),
            changes("anonymous", false)
        ),
        (1, 1, 5)
    );
}

/// Asks by the admin socket of a data directory; gives the status and the body.
fn by_socket(data: &Path, method: &str, path: &str, header: &str) -> (u16, String) {
    let mut socket = UnixStream::connect(data.join("helenus.admin")).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: any.name\r\n{header}Content-Length: 0\r\n\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn who_may_read_the_data_directory_asks_without_address_login_or_token() {
    use std::os::unix::fs::PermissionsExt;
    let program = Program::start_in(tempfile::tempdir().unwrap(), with_login);
    let data = program.path("data");
    let mode = std::fs::metadata(data.join("helenus.admin"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for path in ["/", "/livez", "/readyz", "/metrics", "/api/status", "/api/faults"] {
        let (status, body) = by_socket(&data, "GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
    }
    assert_eq!(by_socket(&data, "DELETE", "/api/faults", "").0, 200);
    // A page of a browser reaches no socket; what says that it is one is refused all the same.
    assert_eq!(
        by_socket(&data, "DELETE", "/api/faults", "Origin: http://localhost\r\n").0,
        403
    );
    let run = |verb: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_helenus"));
        command.arg(verb).arg("--data").arg(format!("file:{}", data.display()));
        let output = command
            .env_remove("HELENUS_CONFIG")
            .env_remove("HELENUS_ADMIN_LISTEN")
            .output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (done, text) = run("status");
    assert!(done && text.contains("cluster       Helenus"), "{text}");
    assert!(run("health").0);
    program.signal("-TERM");
    wait_for("its socket goes", || {
        (!data.join("helenus.admin").exists()).then_some(())
    });
    assert!(!run("health").0 && !run("status").0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_of_other_data_centers_reads_no_figures() {
    let at = |center: &'static str| {
        move |folder: &Path| {
            let mut arguments = with_login(folder);
            arguments.extend(["--admin-listen", "127.0.0.1:0", "--data-center", center].map(str::to_owned));
            arguments
        }
    };
    let program = Program::start_in(tempfile::tempdir().unwrap(), at("here"));
    let statements = [
        "CREATE ROLE reader WITH PASSWORD = 'r' AND LOGIN = true AND ACCESS TO DATACENTERS {'here'}",
        "GRANT SELECT ON ALL KEYSPACES TO reader",
        "ALTER ROLE cassandra WITH ACCESS TO DATACENTERS {'here'}",
    ];
    assert_eq!(ask(program.address, "cassandra", "cassandra", &statements).await, None);
    // reader:r, cassandra:cassandra
    let (reader, superuser) = ("Basic cmVhZGVyOnI=", "Basic Y2Fzc2FuZHJhOmNhc3NhbmRyYQ==");
    let figures = |program: &Program, role| {
        let address = program.record().admin.unwrap();
        ["/metrics", "/api/tables"].map(|path| admin(&address, "GET", path, Some(role)).0)
    };
    assert_eq!(figures(&program, reader), [200, 200]);
    let program = Program::start_in(program.kill(), at("there"));
    assert_eq!(figures(&program, reader), [403, 403]);
    assert_eq!(figures(&program, superuser), [200, 200]);
    program.kill();
}
