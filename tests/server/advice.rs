//! Errors and warnings of the program that say what to do.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::backup::Server;
use crate::program::{helenus, output};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// The standard error of a call that must fail.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let (success, out, error) = output(arguments);
    assert!(!success, "{out} {error}");
    error
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_missing_record_is_refused_and_no_other_server_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let server = Server::start(&data, folder.path()).await;
    let address = fs::read_to_string(folder.path().join("ready")).unwrap();
    let listen = address.trim();
    let missing = folder.path().join("missing").display().to_string();
    for verb in ["health", "status", "shell", "cert"] {
        let error = refused(&[verb, "--data", &data, "--ready-json", &missing]);
        assert!(
            error.contains(&format!("there is no file {missing}")),
            "{verb}: {error}"
        );
    }
    let done = helenus(&["health", "--data", &data])
        .env("HELENUS_READY_JSON", &missing)
        .output()
        .unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && error.contains(&missing), "{error}");

    // The file of a server that runs is taken, and one that appears later is waited for.
    let record = folder.path().join("data/helenus.server");
    let waiting = helenus(&["health", "--wait", "60s", "--listen", listen, "--ready-json", &missing])
        .spawn()
        .unwrap();
    fs::copy(&record, &missing).unwrap();
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success(), "{}", String::from_utf8_lossy(&waited.stderr));
    let (success, _, error) = output(&["status", "--data", &data, "--ready-json", &missing]);
    assert!(success, "{error}");

    // Killed, the server leaves its record, which counts as none.
    server.kill();
    assert!(record.exists());
    let error = refused(&["status", "--data", &data]);
    assert!(error.contains(&format!("no server has {data} open")), "{error}");
    let error = refused(&["status", "--data", &data, "--ready-json", &missing]);
    assert!(error.contains("does not answer: start it again"), "{error}");
    let error = refused(&["cert", "--data", &data]);
    assert!(error.contains("there is no certificate"), "{error}");
}

#[test]
fn an_address_of_data_that_is_wrong_is_corrected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data").display().to_string();
    let error = refused(&["--data", &path, "--listen", "127.0.0.1:0"]);
    assert!(
        error.contains(&format!("write file:{path} for this directory")),
        "{error}"
    );
    let schema = file(folder.path(), "init.cql", KEYSPACE);
    for (made, other) in [("file", "slate+file"), ("slate+file", "file")] {
        let path = folder.path().join(made).display().to_string();
        let (made, other) = (format!("{made}:{path}"), format!("{other}:{path}"));
        let serve = [
            "--data",
            &made,
            "--listen",
            "127.0.0.1:0",
            "--init",
            &schema,
            "--exit-with-stdin",
        ];
        let (success, _, error) = output(&serve);
        assert!(success, "{error}");
        for arguments in [
            &["--data", &other, "--listen", "127.0.0.1:0"][..],
            &["verify", "--data", &other],
        ] {
            let error = refused(arguments);
            assert!(error.contains(&format!("write --data {made}\n")), "{error}");
        }
    }
}

#[test]
fn a_busy_address_names_its_setting() {
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = busy.local_addr().unwrap().to_string();
    for setting in ["listen", "admin-listen", "tls-listen"] {
        let option = format!("--{setting}");
        let mut arguments = vec!["run", "--profile", "cosmos", "--listen", "127.0.0.1:0", &option, &busy];
        arguments.extend(["--", "true"]);
        if setting == "listen" {
            arguments.drain(3..5);
        }
        let error = refused(&arguments);
        assert!(
            error.contains(&format!("with --{setting} ADDRESS:PORT")),
            "{setting}: {error}"
        );
    }
}

#[tokio::test]
async fn roles_views_and_open_directories_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let data = format!("file:{}", path("data"));
    let mut server = Server::start(&data, folder.path()).await;
    for statement in [
        KEYSPACE,
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
        "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
    ] {
        server.ask(statement).await;
    }
    for (table, expected) in [
        ("ks.by_v", "ks.by_v is a materialized view"),
        ("ks.by_v", "name ks.t"),
        ("ks.none", "table ks.none does not exist\n"),
        ("system_views.clients", "is a virtual table"),
    ] {
        let error = refused(&["export", "--data", &data, "--table", table, "--to", &path("out")]);
        assert!(error.contains(expected), "{error}");
    }
    let (success, _, error) = output(&["backup", "--data", &data, "--to", &path("backup")]);
    assert!(success, "{error}");
    let error = refused(&["restore", "--data", &data, "--from", &path("backup")]);
    assert!(error.contains("is not empty, and a server has it open"), "{error}");
    server.stop();
    let error = refused(&["restore", "--data", &data, "--from", &path("backup")]);
    assert!(error.contains("is not empty: name a directory"), "{error}");

    // A mistyped name makes a role, and the output says so.
    let password = file(folder.path(), "password", "secret password\n");
    for (is_new, expected) in [
        (true, "there was no role ada: it is new"),
        (false, "data: ada is a superuser"),
    ] {
        let mut passwd = helenus(&["passwd", "ada", "--data", &data, "--password-cost", "4"]);
        let done = passwd.stdin(fs::File::open(&password).unwrap()).output().unwrap();
        let out = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert!(out.contains(expected), "{is_new}: {out}");
    }

    // Without the engine's files nothing is read.
    fs::remove_dir_all(folder.path().join("data/engine")).unwrap();
    let done = helenus(&["salvage", "--data", &data, "--to", &path("salvaged")])
        .output()
        .unwrap();
    let (out, error) = (
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    );
    assert_eq!(done.status.code(), Some(1), "{out} {error}");
    assert!(
        error.contains("nothing can be salvaged") && error.contains("lost: "),
        "{error}"
    );
    assert!(out.is_empty() && !folder.path().join("salvaged").exists(), "{out}");
}

#[test]
fn a_failed_init_says_only_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let text = format!(
        "{KEYSPACE};\nCREATE TABLE ks.t (k int PRIMARY KEY);\nINSERT INTO ks.t (k) VALUES (1);\nSELECT nothing FROM ks.t;"
    );
    let schema = file(folder.path(), "init.cql", &text);
    for _ in 0..5 {
        let error = refused(&["--data", &data, "--listen", "127.0.0.1:0", "--init", &schema]);
        assert!(error.contains("init.cql:4: ") && !error.contains("WARN"), "{error}");
    }
}

#[test]
fn settings_as_printed_give_no_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let (_, settings, _) = output(&["settings"]);
    let settings = file(folder.path(), "a.toml", &settings);
    let serve = [
        "--config",
        &settings,
        "--data",
        "memory:",
        "--listen",
        "127.0.0.1:0",
        "--exit-with-stdin",
    ];
    let (success, _, error) = output(&serve);
    assert!(success && !error.contains("has no effect"), "{error}");
    let (success, _, error) = output(&[&serve[..], &["--region", "Mars"]].concat());
    assert!(
        success && error.contains("region (command line) has no effect"),
        "{error}"
    );
}

#[test]
fn shell_passes_the_options_of_cqlsh_on() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_helenus"), folder.path().join("cqlsh")).unwrap();
    for separator in [&["--"][..], &[]] {
        let words = [&["run", "--", env!("CARGO_BIN_EXE_helenus"), "shell"], separator].concat();
        let words = [&words[..], &["-e", "SELECT key FROM system.local"]].concat();
        let done = helenus(&words)
            .env("PATH", folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let out = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert!(done.status.success() && out.contains("local"), "{out}");
    }
}
