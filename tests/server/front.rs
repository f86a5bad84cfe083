//! What a first user meets: texts of errors, terminals that close, servers inside `helenus run`.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::process::{Command, Stdio};

use crate::program::{helenus, output, ready, terminate, until};
use helenus::cli::record::ServerRecord;

const PROGRAM: &str = env!("CARGO_BIN_EXE_helenus");

/// Standard error of a call that must fail.
fn refused(arguments: &[&str]) -> String {
    let (success, _, error) = output(arguments);
    assert!(!success, "{arguments:?} is taken");
    error
}

#[test]
fn a_setting_that_a_server_refuses_is_refused_by_settings_with_what_was_expected() {
    let server = refused(&["serve", "--data", "memory:", "--durability", "never"]);
    for (name, value, expected) in [
        ("--durability", "never", "expected group, periodic:MILLISECONDS or os"),
        ("--data", "nonsense:", "data = \"nonsense:\" (command line): "),
        (
            "--log",
            "inof",
            "inof is no level: expected off, error, warn, info, debug or trace",
        ),
        (
            "--log",
            "a=b=c",
            "log = \"a=b=c\" (command line): expected LEVEL or TARGET=LEVEL",
        ),
        ("--listen", "9042", "expected ADDRESS:PORT with a port from 0 to 65535"),
        (
            "--listen",
            "127.0.0.1:90420",
            "expected ADDRESS:PORT with a port from 0 to 65535",
        ),
        ("--listen", "no.such.invalid:1", "cannot find the address of this name"),
        ("--threads", "many", "expected a whole number, 0 or more"),
        ("--threads", "100000", "expected at most 1024"),
        ("--create", "perhaps", "expected true or false"),
    ] {
        let given = if name == "--create" {
            format!("{name}={value}")
        } else {
            format!("{name} {value}")
        };
        let mut arguments = vec!["settings"];
        if name != "--data" {
            arguments.extend(["--data", "memory:"]);
        }
        arguments.extend(given.split(' '));
        let error = refused(&arguments);
        let setting = name.trim_start_matches('-');
        assert!(
            error.contains(&format!("{setting} = ")) && error.contains(expected),
            "{error}"
        );
    }
    assert!(server.contains("expected group"), "{server}");
    let (success, ..) = output(&["settings", "--data", "memory:", "--log", "warn,helenus=debug"]);
    assert!(success);
}

#[test]
fn an_empty_variable_is_not_set() {
    let mut command = helenus(&["settings", "--data", "memory:"]);
    let done = command
        .env("HELENUS_ADMIN_LISTEN", "")
        .env("HELENUS_LOG", "")
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && text.contains("# admin-listen is not set"),
        "{text}"
    );
}

#[test]
fn without_a_home_no_data_lands_in_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["serve", "verify"] {
        let mut command = helenus(&[verb, "--listen", "127.0.0.1:0"]);
        let command = command
            .env_remove("HOME")
            .env_remove("XDG_DATA_HOME")
            .current_dir(folder.path());
        let done = command.output().unwrap();
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && text.contains("there is no HOME"), "{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/file");
    let missing = missing.to_str().unwrap();
    let start = ["serve", "--data", "memory:", "--listen", "127.0.0.1:0"];
    for (name, value) in [("ready-json", missing), ("ready-file", missing), ("ready-fd", "999")] {
        let error = refused(&[&start[..], &[&format!("--{name}"), value]].concat());
        assert!(
            error.contains(&format!("{name}: cannot write")) && error.contains(value),
            "{error}"
        );
    }
    let certificate = folder.path().join("certificate.pem");
    fs::write(&certificate, "PEM").unwrap();
    let files = [
        "--tls-listen",
        "127.0.0.1:0",
        "--tls-certificate",
        certificate.to_str().unwrap(),
        "--tls-key",
        "k",
    ];
    let error = refused(&[&["cert", "--data", "memory:", "--out", missing][..], &files].concat());
    assert!(
        error.contains("out: cannot write") && error.contains(missing),
        "{error}"
    );
    let error = refused(&["export", "--data", "memory:", "--table", "a.b", "--to", "-"]);
    assert!(error.contains("- is not taken for standard output"), "{error}");
    let there = certificate.to_str().unwrap();
    let error = refused(&["export", "--data", "memory:", "--table", "a.b", "--to", there]);
    assert!(error.contains(there) && error.contains("name another file"), "{error}");
    let error = refused(&["lint", there, "--baseline", missing]);
    assert!(
        error.contains(missing) && error.contains("--write-baseline makes it"),
        "{error}"
    );
    for url in ["foo", "file:x", "memory:"] {
        let error = refused(&["check-bucket", url]);
        assert!(error.contains(url) && error.contains("give s3://"), "{error}");
    }
}

#[test]
fn run_tells_cqlsh_and_test_kits_and_keeps_its_record_from_servers_inside() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let ready = ready.display();
    // A server inside starts and stops, with data of its own; the record of the outer one stays as it was.
    let script = format!(
        "echo $CQLSH_HOST:$CQLSH_PORT $HELENUS_BIN; cat $HELENUS_READY_JSON
         {PROGRAM} serve --data memory: --listen 127.0.0.1:0 --ready-file {ready} --exit-with-stdin < /dev/null > /dev/null 2>&1
         {PROGRAM} run -- sh -c 'cat $HELENUS_READY_JSON'
         cat $HELENUS_READY_JSON"
    );
    let mut command = helenus(&["run", "--", "sh", "-c", &script]);
    let done = command.env_remove("HELENUS_BIN").output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    let records: Vec<ServerRecord> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 3, "{text} {error}");
    let (outer, inner, again) = (&records[0], &records[1], &records[2]);
    assert_eq!(outer, again, "the inner server has overwritten the record");
    assert_ne!(outer.cql, inner.cql);
    assert_eq!(first, format!("{} {PROGRAM}", outer.cql.as_deref().unwrap()));
}

#[test]
fn run_takes_its_files_along_when_the_terminal_goes() {
    let temporary = tempfile::tempdir().unwrap();
    let started = temporary.path().join("started");
    let script = format!("touch {}; exec sleep 60", started.display());
    let mut command = helenus(&["run", "--", "sh", "-c", &script]);
    let mut child = command.env("TMPDIR", temporary.path()).spawn().unwrap();
    until("the command runs", || started.exists());
    let hang_up = Command::new("kill")
        .args(["-HUP", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(hang_up.success());
    until("it ends", || child.try_wait().unwrap().is_some());
    let left: Vec<_> = fs::read_dir(temporary.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["started"]);
}

/// A server on a terminal of its own, which script(1) makes, and the process of script.
#[cfg(target_os = "linux")]
fn on_a_terminal(before: &str, ready_file: &str) -> (std::process::Child, String) {
    let call = format!("exec {before} {PROGRAM} serve --data memory: --listen 127.0.0.1:0 --ready-json {ready_file}");
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--command", &call, "/dev/null"])
        .env_remove("HELENUS_CONFIG");
    // nohup writes its file there.
    command.current_dir(std::path::Path::new(ready_file).parent().unwrap());
    let mut script = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let line = ready(ready_file.as_ref(), &mut script);
    let record: ServerRecord = serde_json::from_str(&line).unwrap();
    (script, format!("/proc/{}", record.pid))
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_ends_with_its_terminal_unless_it_was_told_to_stay() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (mut script, process) = on_a_terminal("", &file("plain"));
    script.kill().unwrap();
    script.wait().unwrap();
    until("the server ends with its terminal", || !fs::exists(&process).unwrap());

    let (mut script, process) = on_a_terminal("nohup", &file("nohup"));
    script.kill().unwrap();
    script.wait().unwrap();
    // Once it has handled the signal it would have ended within this time, as the one above did.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(fs::exists(&process).unwrap(), "nohup was not obeyed");
    let pid = process.trim_start_matches("/proc/");
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn the_shell_goes_to_the_address_with_tls_that_it_is_given() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let error = refused(&["shell", "--data", "memory:", "--tls-listen", "127.0.0.1:7"]);
    assert!(error.contains("give --tls-certificate FILE"), "{error}");
    fs::write(file("trusted.pem"), "PEM OF THE SERVER").unwrap();
    fs::write(file("cqlsh"), "#!/bin/sh\necho \"$@\"\ncat \"$SSL_CERTFILE\"\n").unwrap();
    fs::set_permissions(file("cqlsh"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let trusted = file("trusted.pem");
    let mut command = helenus(&[
        "shell",
        "--data",
        "memory:",
        "--tls-listen",
        "127.0.0.1:7",
        "--tls-certificate",
        &trusted,
    ]);
    let done = command.env("PATH", path).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(text, "127.0.0.1 7 --ssl\nPEM OF THE SERVER");
}

#[test]
fn texts_of_imports_and_exports_are_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let data = format!("file:{}", file("data"));
    let schema = "CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
                  CREATE TABLE app.t (k int PRIMARY KEY); INSERT INTO app.t (k) VALUES (1);";
    fs::write(file("init.cql"), schema).unwrap();
    let start = [
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
        "--init",
        &file("init.cql"),
        "--ready-file",
        &file("ready"),
    ];
    let mut child = helenus(&start).stderr(Stdio::null()).spawn().unwrap();
    ready(file("ready").as_ref(), &mut child);
    let table = ["--data", &data, "--table", "app.t", "--format", "json"];
    let (_, exported, error) = output(&[&["export", "--to", &file("rows.json")][..], &table].concat());
    assert!(exported.starts_with("1 row in "), "{exported} {error}");
    fs::write(file("bad.json"), "{\"k\": 2}\n{\"k\": x}\n[1]\n").unwrap();
    let import = ["import", "--from", &file("bad.json"), "--max-errors", "9"];
    let (_, imported, named) = output(&[&import[..], &table].concat());
    assert_eq!(imported, "1 row imported, 2 bad\n", "{named}");
    assert!(!named.contains("fasterxml") && !named.contains("REDACTED"), "{named}");
    assert!(
        named.contains("line 2: this is no JSON in column ") && named.contains("line 3: expected a JSON object"),
        "{named}"
    );
    terminate(&mut child);
}
