//! `helenus shell` on a machine without cqlsh, and what it says when it gets no answer.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::program::{helenus, output, ready, terminate};

fn serve(data: &str, file: &Path, further: &[&str]) -> Child {
    let mut command = helenus(&[
        "--data",
        data,
        "--listen",
        "127.0.0.1:0",
        "--exit-with-stdin",
        "--ready-file",
    ]);
    let mut child = command.arg(file).args(further).stdin(Stdio::piped()).spawn().unwrap();
    ready(file, &mut child);
    child
}

/// Exit code, output and errors of `helenus shell` where there is no cqlsh.
fn shell(data: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = helenus(&["shell", "--data", data]);
    let done = command.args(arguments).env("PATH", "/nowhere").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn statements_and_files_run_without_cqlsh() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let file = folder.path().join("a.cql");
    fs::write(&file, "SELECT cluster_name FROM system.local;").unwrap();
    for (profile, cluster, further) in [
        ("cassandra", "Helenus", &[][..]),
        (
            "cosmos",
            "CosmosProd",
            &["--profile", "cosmos", "--tls-listen", "127.0.0.1:0"],
        ),
    ] {
        let data = format!("{data}-{profile}");
        let mut child = serve(&data, &folder.path().join(profile), further);
        for arguments in [
            &["-e", "SELECT cluster_name FROM system.local"][..],
            &["--", "-f", file.to_str().unwrap()],
        ] {
            let (code, text, error) = shell(&data, arguments);
            assert!(
                code == Some(0) && text.contains(cluster),
                "{arguments:?}: {text} {error}"
            );
        }
        let (code, _, error) = shell(&data, &["-e", "SELECT nonsense"]);
        assert!(code == Some(2) && !error.contains("no server listens"), "{error}");
        assert!(terminate(&mut child).0);
    }
}

#[test]
fn a_login_that_no_longer_works_ends_in_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let login = ["--login", "--password-cost", "4"];
    let mut child = serve(&data, &folder.path().join("first"), &login);
    let ada = "CREATE ROLE ada WITH PASSWORD = 'x' AND LOGIN = true AND SUPERUSER = true";
    let (code, _, error) = shell(&data, &["-e", ada]);
    assert!(code == Some(0) && error.is_empty(), "{error}");
    let as_ada = |statement| shell(&data, &["-u", "ada", "-p", "x", "-e", statement]);
    let (code, _, error) = as_ada("DROP ROLE cassandra");
    assert!(code == Some(0), "{error}");
    let (code, _, error) = shell(&data, &["-e", "SELECT key FROM system.local"]);
    assert!(
        code == Some(1)
            && error.contains("refuses the login of its settings as cassandra")
            && error.contains("-u ROLE"),
        "{error}"
    );
    let (success, text) = terminate(&mut child);
    assert!(success && text.contains("cqlsh -u cassandra"), "{text}");

    let (success, text) = terminate(&mut serve(&data, &folder.path().join("later"), &login));
    assert!(
        success && text.contains("cqlsh -u ROLE") && !text.contains("-u cassandra"),
        "{text}"
    );
}

#[test]
fn data_in_use_and_a_stopped_server_end_in_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let mut child = serve(&data, &folder.path().join("ready"), &[]);
    for verb in [&["verify"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let (success, _, error) = output(&[verb, &["--data", &data]].concat());
        assert!(
            !success && error.contains("stop it, or give other data with --data"),
            "{verb:?}: {error}"
        );
    }
    assert!(terminate(&mut child).0);
    let (success, _, error) = output(&["health", "--data", "memory:", "--listen", "127.0.0.1:1"]);
    assert!(
        !success && error.contains("no server listens at 127.0.0.1:1: start it"),
        "{error}"
    );
}

#[test]
fn a_file_of_settings_pins_what_was_set_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let given = [
        "--data",
        "memory:",
        "--threads",
        "2",
        "--login=false",
        "--listen",
        "127.0.0.1:0",
    ];
    let (success, text, error) = output(&[&["settings"][..], &given].concat());
    assert!(success, "{error}");
    let table: toml::Table = text.parse().unwrap();
    let mut keys: Vec<&str> = table.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["data", "listen", "login", "threads"]);
    assert_eq!(
        (table["threads"].as_integer(), table["login"].as_bool()),
        (Some(2), Some(false))
    );

    // Each of the others is there as a comment, with a word on it.
    assert!(text.contains("# durability = \"group\"  # default"), "{text}");
    assert!(text.contains("# When a write is acknowledged"), "{text}");

    let (success, text, _) = output(&[&["settings", "--changed"][..], &given].concat());
    assert!(success);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines,
        [
            "data = \"memory:\"  # command line",
            "listen = [\"127.0.0.1:0\"]  # command line",
            "login = false  # command line",
            "threads = 2  # command line",
        ]
    );
    let file = folder.path().join("helenus.toml");
    fs::write(&file, text).unwrap();
    let (success, ..) = output(&["settings", "--config", file.to_str().unwrap()]);
    assert!(success);
}
