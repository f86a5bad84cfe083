//! The program from outside: its commands, its files, its signals.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::raw::Client;
use helenus_base::clock::Clock;
use helenus_types::wire::Version;

pub(crate) fn helenus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
    command
        .args(arguments)
        .env_remove("HELENUS_CONFIG")
        // Where no `helenus dev` of the person who runs the tests is found.
        .env("XDG_RUNTIME_DIR", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn output(arguments: &[&str]) -> (bool, String, String) {
    let output = helenus(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Waits until a condition holds; fails after a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !holds() {
        assert!(clock.monotonic() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the address in a ready file.
pub(crate) fn ready(file: &Path, child: &mut Child) -> String {
    let mut found = None;
    until("it is ready", || {
        found = std::fs::read_to_string(file).ok();
        assert!(found.is_some() || child.try_wait().unwrap().is_none(), "it ended");
        found.is_some()
    });
    found.unwrap().trim().to_owned()
}

pub(crate) fn terminate(child: &mut Child) -> (bool, String) {
    assert!(
        Command::new("kill")
            .arg(child.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    let mut status = None;
    until("it ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    (status.success(), text)
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_stop_and_keeps_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    for round in 0..2 {
        let file = folder.path().join(format!("ready{round}"));
        let arguments = [
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
            "--ready-file",
            file.to_str().unwrap(),
        ];
        let mut child = helenus(&arguments).spawn().unwrap();
        let address = ready(&file, &mut child);
        let mut client = Client::ready(address.parse().unwrap(), Version::V4).await;
        let statements: &[&str] = if round == 0 {
            &[
                "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
                "INSERT INTO ks.t (k, v) VALUES (1, 'kept')",
            ]
        } else {
            &["SELECT v FROM ks.t WHERE k = 1"]
        };
        let mut last = Vec::new();
        for statement in statements {
            client.query(1, statement).await;
            let frame = client.frame().await.unwrap();
            assert_eq!(frame.opcode, 8, "{statement}: {frame:?}");
            last = frame.body;
        }
        if round == 1 {
            assert!(last.ends_with(b"\0\0\0\x04kept"), "{last:?}");
        }
        let (success, banner) = terminate(&mut child);
        assert!(success);
        assert!(
            banner.contains(&address) && banner.contains(&data) && banner.contains("durability group"),
            "{banner}"
        );
    }
}

#[test]
fn two_servers_do_not_share_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let file = folder.path().join("ready");
    let mut first = helenus(&[
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
        "--ready-file",
        file.to_str().unwrap(),
    ])
    .spawn()
    .unwrap();
    ready(&file, &mut first);
    let (success, _, error) = output(&["--data", &data, "--listen", "127.0.0.1:0"]);
    assert!(!success && error.contains("cannot open"), "{error}");
    terminate(&mut first);
}

#[test]
fn check_tells_values_and_origins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helenus.toml");
    std::fs::write(&file, "rack = \"r9\"\n").unwrap();
    let mut command = helenus(&["check", "--config", file.to_str().unwrap(), "--data", "memory:"]);
    let output = command.env("HELENUS_DATA_CENTER", "dc9").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for line in [
        "data = \"memory:\"  # command line".to_owned(),
        "data-center = \"dc9\"  # environment HELENUS_DATA_CENTER".to_owned(),
        format!("rack = \"r9\"  # {}", file.display()),
        "# listen = [\"127.0.0.1:9042\"]  # default".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn check_advises_on_a_data_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let schema = file(
        "schema.cql",
        "CREATE TABLE events (\n  type text,\n  at timeuuid,\n  PRIMARY KEY (type, at)\n);\n",
    );
    let queries = file("queries.cql", "SELECT * FROM events WHERE type = ? AND at > ?;\n");
    let (success, text, _) = output(&["check", &schema, "--queries", &queries]);
    assert!(!success);
    assert!(text.contains(&format!("{schema}:2:3: error: app.events: ")), "{text}");
    assert!(
        text.contains("[unbounded-partition]") && text.contains("instead: "),
        "{text}"
    );
    let (success, text, _) = output(&["check", &schema, "--format", "json", "--fail-on", "never"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(success);
    assert_eq!(
        (&value["errors"], &value["findings"][0]["line"]),
        (&1.into(), &2.into())
    );
    let (success, text, _) = output(&["check", &schema, "--format", "sarif", "--fail-on", "error"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(!success);
    assert_eq!(value["runs"][0]["results"][0]["level"], "error");
    let (success, text, error) = output(&["check", folder.path().join("none.cql").to_str().unwrap()]);
    assert!(!success && text.is_empty() && error.contains("cannot read"), "{error}");
    // Data is looked at where it is named, and never made.
    let nowhere = folder.path().join("nowhere");
    let url = format!("file:{}", nowhere.display());
    let (success, _, error) = output(&["check", &schema, "--data", &url]);
    assert!(!success && error.contains("there is no data"), "{error}");
    assert!(!nowhere.exists());
}

#[tokio::test]
async fn check_looks_at_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let file = folder.path().join("ready");
    let ready_file = file.to_str().unwrap();
    let mut child = helenus(&["--data", &data, "--listen", "127.0.0.1:0", "--ready-file", ready_file])
        .spawn()
        .unwrap();
    let address = ready(&file, &mut child);
    let schema = "CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
                  CREATE TABLE app.t (k text, c int, v text, PRIMARY KEY (k, c)) WITH helenus_partitions = 4;\n\
                  CREATE TABLE app.unused (k uuid PRIMARY KEY);\n\
                  CREATE INDEX ON app.t (v);\n";
    let mut client = Client::ready(address.parse().unwrap(), Version::V4).await;
    for statement in schema.split_terminator(";\n") {
        client.query(0, statement).await;
        assert_ne!(client.frame().await.unwrap().opcode, 0, "{statement}");
    }
    for row in 0..20 {
        let key = if row < 15 { "large" } else { "small" };
        let insert = format!("INSERT INTO app.t (k, c, v) VALUES ('{key}', {row}, 'some text')");
        client.query(0, &insert).await;
        assert_ne!(client.frame().await.unwrap().opcode, 0, "{insert}");
    }
    drop(client);
    assert!(terminate(&mut child).0);
    let schema_file = folder.path().join("schema.cql");
    std::fs::write(&schema_file, schema).unwrap();
    let schema_file = schema_file.to_str().unwrap();
    let (success, text, error) = output(&["check", schema_file, "--data", &data, "--format", "json"]);
    assert!(success, "{error}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let table = &value["tables"][0];
    assert_eq!(
        (&table["table"], &table["rows"], &table["logical"]),
        (&"t".into(), &20.into(), &2.into())
    );
    let largest = &table["largest"][0];
    assert_eq!((&largest["key"], &largest["rows"]), (&"'large'".into(), &15.into()));
    assert_eq!(table["partitions"].as_array().unwrap().len(), 4);
    let rules: Vec<&str> = value["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["few-partitions", "unused-table"]);
}

#[test]
fn bad_settings_are_named() {
    for (arguments, says) in [
        (
            &["--listen", "0.0.0.0:0", "--data", "memory:"][..],
            "allow-unauthenticated-network",
        ),
        (&["--data", "nowhere:", "--listen", "127.0.0.1:0"], "nowhere"),
        (
            &[
                "--durability",
                "sometimes",
                "--data",
                "memory:",
                "--listen",
                "127.0.0.1:0",
            ],
            "sometimes",
        ),
        (&["--user", "u"], "password-file"),
        (
            &["--profile", "cosmos", "--listen", "0.0.0.0:0", "--data", "memory:"],
            "allow-plain-text-login",
        ),
    ] {
        let (success, _, error) = output(arguments);
        assert!(!success && error.contains(says), "{arguments:?}: {error}");
    }
}

/// Files and directories below one, with it, and the rights that others have there.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.mode() & 0o077 != 0 {
            found.push(format!("{} {:o}", path.display(), metadata.mode() & 0o777));
        }
        if metadata.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

#[cfg(unix)]
#[test]
fn data_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    for scheme in [
        "file",
        #[cfg(feature = "slate")]
        "slate+file",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let url = format!("{scheme}:{}", data.display());
        let certificate = data.join("cosmos/certificate.pem");
        for round in 0..2 {
            let file = folder.path().join(format!("ready{round}"));
            let arguments = ["--data", &url, "--profile", "cosmos", "--tls-listen", "127.0.0.1:0"];
            let mut child = helenus(&arguments).arg("--ready-file").arg(&file).spawn().unwrap();
            ready(&file, &mut child);
            let mode = std::fs::metadata(&certificate).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "what clients trust may be read by everybody");
            let open = open_to_others(&data);
            terminate(&mut child);
            assert_eq!(open, [format!("{} 644", certificate.display())], "{scheme} {round}");
            // As an older program has left it.
            for path in [&data, &data.join("helenus.format"), &data.join("cosmos/account-key")] {
                let mode = if path.is_dir() { 0o755 } else { 0o644 };
                std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            }
        }
    }
}

#[test]
fn the_other_commands() {
    let (success, text, _) = output(&["--version"]);
    assert!(success && text.starts_with("helenus "));
    let (success, text, _) = output(&["completions", "bash"]);
    assert!(success && text.contains("--ready-file"));
    let output = helenus(&["shell", "--listen", "127.0.0.1:9999"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && error.contains("no server listens at 127.0.0.1:9999: start it"),
        "{error}"
    );
}

/// The status line of a request to the admin port; `None`: it does not answer.
fn livez(admin: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(admin).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let request = format!("GET /livez HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    Some(String::from_utf8_lossy(&answer).lines().next()?.to_owned())
}

/// Has every read at a place of a file fail with EIO in a process that runs; `None`: the machine has no strace, or does not let it.
fn fail_reads(child: &Child) -> Option<Child> {
    let clock = Clock::system();
    let pid = child.id().to_string();
    let inject = ["-e", "trace=pread64", "-e", "inject=pread64:error=EIO"];
    let mut strace = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(inject)
        .args(["-p", &pid])
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let is_traced = |task: std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        !status.contains("TracerPid:\t0\n")
    };
    while clock.monotonic() < Duration::from_secs(10) {
        if strace.try_wait().unwrap().is_some() {
            return None;
        }
        let mut tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        if tasks.all(|task| is_traced(task.unwrap())) {
            return Some(strace);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(strace.kill());
    None
}

#[tokio::test]
async fn a_disk_that_cannot_be_read_ends_the_server_with_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let value = "some of the row".repeat(20_000);
    for round in 0..2 {
        let file = folder.path().join(format!("ready{round}"));
        // A port of its own for figures, found free.
        let admin = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        let arguments = [
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
            "--ready-file",
            file.to_str().unwrap(),
            "--admin-listen",
            &admin,
        ];
        let mut child = helenus(&arguments).spawn().unwrap();
        let address = ready(&file, &mut child);
        let mut client = Client::ready(address.parse().unwrap(), Version::V4).await;
        if round == 0 {
            let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
            client
                .query(1, &format!("CREATE KEYSPACE ks WITH replication = {replication}"))
                .await;
            assert_eq!(client.frame().await.unwrap().opcode, 8);
            client.query(1, "CREATE TABLE ks.t (k int PRIMARY KEY, v text)").await;
            assert_eq!(client.frame().await.unwrap().opcode, 8);
            // More than the log keeps in memory, so that some of it must be read from the disk.
            for k in 0..80 {
                client
                    .query(1, &format!("INSERT INTO ks.t (k, v) VALUES ({k}, '{value}')"))
                    .await;
                assert_eq!(client.frame().await.unwrap().opcode, 8);
            }
            assert!(terminate(&mut child).0);
            continue;
        }
        assert_eq!(livez(&admin).unwrap(), "HTTP/1.1 200 OK");
        let Some(mut strace) = fail_reads(&child) else {
            eprintln!("skipped: no strace that may trace");
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        };
        client
            .query(1, "SELECT k FROM ks.t WHERE v = 'nothing' ALLOW FILTERING")
            .await;
        assert_eq!(client.frame().await.unwrap().opcode, 0, "an error");
        // The connection stays open, for which the server waits a while before it ends.
        let clock = Clock::system();
        let mut answers = Vec::new();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            answers.extend(livez(&admin));
            assert!(clock.monotonic() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(status.code(), Some(74));
        assert!(answers.iter().any(|line| line.contains("503")), "{answers:?}");
        strace.wait().unwrap();
    }
}
