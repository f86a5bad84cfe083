//! The program's verbs from outside.

use std::fs;
use std::process::Stdio;

use crate::program::{helenus, output, ready, terminate};
use crate::raw::Client;
use helenus::cli::record::ServerRecord;
use helenus_base::clock::Clock;
use helenus_types::wire::Version;

const SCHEMA: &str = "-- of a test\nCREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
                      USE app;\nCREATE TABLE t (k int PRIMARY KEY, v text);\nINSERT INTO t (k, v) VALUES (1, 'a;b');\n";

#[test]
fn run_gives_a_command_a_server_with_its_schema_and_ends_as_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init");
    fs::create_dir(&init).unwrap();
    fs::write(init.join("1.cql"), SCHEMA).unwrap();
    fs::write(init.join("2.cql"), "INSERT INTO app.t (k, v) VALUES (2, 'b');").unwrap();
    fs::write(init.join("read.me"), "no CQL").unwrap();
    let script = format!(
        "echo $CASSANDRA_HOST $CASSANDRA_PORT; cat $HELENUS_READY_JSON; {} health && {} status --json; exit 7",
        env!("CARGO_BIN_EXE_helenus"),
        env!("CARGO_BIN_EXE_helenus"),
    );
    for profile in ["cassandra", "cosmos"] {
        let init = init.to_str().unwrap();
        let mut command = helenus(&["run", "--profile", profile, "--init", init, "--", "sh", "-c", &script]);
        let done = command.output().unwrap();
        let (out, error) = (
            String::from_utf8(done.stdout).unwrap(),
            String::from_utf8(done.stderr).unwrap(),
        );
        assert_eq!(done.status.code(), Some(7), "{out} {error}");
        let mut lines = out.lines();
        let address = lines.next().unwrap();
        let record: ServerRecord = serde_json::from_str(lines.next().unwrap()).unwrap();
        let own = record.cql.or(record.tls).unwrap();
        assert_eq!(address.replace(' ', ":"), own);
        let figures: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(
            figures.pointer("/tables/tables/0/table"),
            Some(&"t".into()),
            "{figures}"
        );
        assert!(std::net::TcpStream::connect(&own).is_err(), "the server is gone");
    }
}

#[test]
fn run_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.cql");
    fs::write(&bad, "\nCREATE TABLE nowhere.t (k int PRIMARY KEY);").unwrap();
    let (success, _, error) = output(&["run", "--init", bad.to_str().unwrap(), "--", "true"]);
    assert!(!success && error.contains("bad.cql:2: "), "{error}");
    let (success, _, error) = output(&["run", "--", "/no/such/program"]);
    assert!(!success && error.contains("cannot run /no/such/program"), "{error}");
    let (success, _, error) = output(&["run", "--", "sh", "-c", "kill -9 $$"]);
    assert!(!success && error.is_empty(), "{error}");
}

#[tokio::test]
async fn init_runs_on_new_data_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (init, data) = (path("init.cql"), format!("file:{}", path("data")));
    fs::write(&init, SCHEMA).unwrap();
    for round in 0..2 {
        let file = path(&format!("ready{round}"));
        let arguments = [
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
            "--init",
            &init,
            "--ready-file",
            &file,
        ];
        let mut child = helenus(&arguments).stderr(Stdio::null()).spawn().unwrap();
        let address = ready(file.as_ref(), &mut child);
        let mut client = Client::ready(address.parse().unwrap(), Version::V4).await;
        client.query(1, "SELECT v FROM app.t").await;
        let frame = client.frame().await.unwrap();
        assert!(frame.body.ends_with(b"\0\0\0\x03a;b"), "{frame:?}");
        assert!(terminate(&mut child).0);
    }
}

#[test]
fn health_waits_until_the_server_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let data = format!("file:{}", path("data"));
    let (success, _, error) = output(&["health", "--data", &data, "--listen", "127.0.0.1:1"]);
    assert!(
        !success && error.contains("not ready: no server listens at 127.0.0.1:1: start it"),
        "{error}"
    );
    // Not the address of the defaults: that of the server that has the data open.
    let mut waiting = helenus(&["health", "--wait", "60s", "--data", &data, "--listen", "127.0.0.1:1"])
        .spawn()
        .unwrap();
    let arguments = [
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
        "--ready-file",
        &path("ready"),
    ];
    let mut child = helenus(&arguments).stderr(Stdio::null()).spawn().unwrap();
    assert!(waiting.wait().unwrap().success());
    ready(path("ready").as_ref(), &mut child);
    assert!(terminate(&mut child).0);
    let (success, _, _) = output(&["health", "--data", &data, "--listen", "127.0.0.1:1"]);
    assert!(!success);
    // Another server may have the default address.
    for verb in [&["health"][..], &["shell", "-e", "SELECT key FROM system.local"]] {
        let (success, _, error) = output(&[&verb[..1], &["--data", &data], &verb[1..]].concat());
        assert!(!success && error.contains("no server has "), "{verb:?}: {error}");
    }
}

#[test]
fn a_server_is_ready_within_fifty_milliseconds() {
    // The fastest of several: a busy machine delays some of them.
    let fastest = (0..20)
        .map(|_| {
            let clock = Clock::system();
            assert!(output(&["run", "--", "true"]).0);
            clock.monotonic()
        })
        .min()
        .unwrap();
    let limit_ms = if cfg!(debug_assertions) { 250 } else { 50 };
    assert!(fastest.as_millis() <= limit_ms, "{fastest:?}");
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    for words in [&["settings"][..], &["man"]] {
        let mut child = helenus(words).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && error.is_empty(), "{words:?} {error}");
    }
}

#[test]
fn json_logs_name_no_file_of_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let arguments = [
        "run",
        "--data",
        &data,
        "--log",
        "debug",
        "--log-format",
        "json",
        "--",
        "true",
    ];
    let (success, _, log) = output(&arguments);
    assert!(success, "{log}");
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines
            .iter()
            .any(|line| line["target"].as_str().unwrap().starts_with("fjall")),
        "{log}"
    );
    assert!(!log.contains("log.file") && !log.contains(".cargo"), "{log}");
}

#[test]
fn cert_prints_what_clients_should_trust() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("certificate.pem");
    let script = format!("{} cert --out {}", env!("CARGO_BIN_EXE_helenus"), file.display());
    let (success, _, error) = output(&["run", "--profile", "cosmos", "--", "sh", "-c", &script]);
    assert!(success, "{error}");
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    let (success, _, error) = output(&["run", "--", env!("CARGO_BIN_EXE_helenus"), "cert"]);
    assert!(!success && error.contains("this server has no TLS"), "{error}");
    let (success, _, error) = output(&["cert", "--data", "memory:"]);
    assert!(!success && error.contains("there is no certificate"), "{error}");
}

#[test]
fn verify_makes_no_data_and_reads_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let url = format!("file:{}", nowhere.display());
    for words in [&["check-indexes"][..], &["verify"], &["verify", "--indexes"]] {
        let (success, text, error) = output(&[words, &["--data", &url]].concat());
        assert!(
            !success && text.is_empty() && error.contains("there is no data"),
            "{words:?} {error}"
        );
        assert!(!nowhere.exists(), "{words:?}");
        let (success, ..) = output(&[words, &["--data", "memory:"]].concat());
        assert!(!success, "{words:?}");
    }
    let init = folder.path().join("init.cql");
    let view =
        "CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k);";
    // The last write puts the row into the view, if the build behind it has not yet done so.
    let again = "INSERT INTO t (k, v) VALUES (1, 'a;b');";
    fs::write(&init, format!("{SCHEMA}CREATE INDEX ON t (v);{view}{again}")).unwrap();
    let (success, _, error) = output(&[
        "run",
        "--data",
        &url,
        "--init",
        init.to_str().unwrap(),
        "--",
        "sleep",
        "0.3",
    ]);
    assert!(success, "{error}");
    let (success, text, error) = output(&["verify", "--data", &url]);
    assert!(success, "{error}");
    assert!(
        text.contains("1 table, 1 view, 2 rows read") && text.contains("1 index, 1 entry, 0 differences"),
        "{text}"
    );
}

#[test]
fn the_man_page_and_completions_know_every_verb() {
    let (success, page, _) = output(&["man"]);
    assert!(success && page.starts_with(".TH HELENUS 1"));
    for shell in ["bash", "zsh", "fish"] {
        let (success, text, _) = output(&["completions", shell]);
        assert!(success);
        for verb in ["run", "health", "verify", "cert", "salvage"] {
            assert!(
                text.contains(verb) && page.contains(&format!("\\fB{verb}\\fR")),
                "{shell} {verb}"
            );
        }
    }
}

#[test]
fn older_words_and_settings_before_the_verb_stay() {
    let (success, text, _) = output(&["--rack", "r7", "check", "--data", "memory:", "--nodes", "4"]);
    assert!(success && text.contains("rack = \"r7\"  # command line") && text.contains("nodes = 4  # command line"));
    let (success, again, _) = output(&["settings", "--rack", "r7", "--data", "memory:", "--nodes", "4"]);
    assert!(success && again == text);
}

#[tokio::test]
async fn dev_serves_plain_and_tls_on_one_port_and_says_how_to_connect() {
    use std::io::{BufRead, BufReader, Read};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let folder = tempfile::tempdir().unwrap();
    for profile in ["cassandra", "cosmos"] {
        let file = folder.path().join(format!("{profile}.json"));
        let address = if profile == "cosmos" {
            "--tls-listen"
        } else {
            "--listen"
        };
        let arguments = ["dev", "--profile", profile, address, "127.0.0.1:0"];
        let mut child = helenus(&arguments)
            .args(["--ready-json".as_ref(), file.as_os_str(), "--exit-with-stdin".as_ref()])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        crate::program::until("it is ready", || file.exists());
        let record = ServerRecord::read(&file).unwrap().unwrap();
        assert_eq!(record.cql, record.tls);
        assert!(record.admin.is_some());
        let address = record.cql.clone().unwrap();
        // OPTIONS and the beginning of SUPPORTED.
        let (options, supported) = ([4, 0, 0, 0, 5, 0, 0, 0, 0], [0x84, 0, 0, 0, 6]);
        let mut head = [0; 5];
        let mut plain = tokio::net::TcpStream::connect(&address).await.unwrap();
        plain.write_all(&options).await.unwrap();
        plain.read_exact(&mut head).await.unwrap();
        assert_eq!(head, supported, "{profile}, plain");
        let mut roots = rustls::RootCertStore::empty();
        let pem = record.certificate_pem.unwrap();
        let certificate = <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(
            pem.as_bytes(),
        );
        roots.add(certificate.unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = tokio::net::TcpStream::connect(&address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let mut tls = connector
            .connect("localhost".try_into().unwrap(), socket)
            .await
            .unwrap();
        tls.write_all(&options).await.unwrap();
        tls.read_exact(&mut head).await.unwrap();
        assert_eq!(head, supported, "{profile}, TLS");
        drop(child.stdin.take());
        let mut banner = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_to_string(&mut banner)
            .unwrap();
        assert!(child.wait().unwrap().success());
        for driver in ["python", "java", "go", "node", "rust"] {
            let line = banner
                .as_bytes()
                .lines()
                .find(|line| line.as_ref().unwrap().trim().starts_with(driver));
            let line = line.unwrap_or_else(|| panic!("{driver} is not in {banner}")).unwrap();
            let key = record.key.as_deref().unwrap_or_default();
            assert!(
                line.contains(address.rsplit_once(':').unwrap().1) && line.contains(key),
                "{line}"
            );
        }
    }
}

#[test]
fn dev_is_found_without_arguments_by_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let with_home = |arguments: &[&str]| {
        let mut command = helenus(arguments);
        command.env("HOME", home).env("XDG_RUNTIME_DIR", home.join("run"));
        command.env_remove("XDG_DATA_HOME").env_remove("HELENUS_READY_JSON");
        command
    };
    let told = |arguments: &[&str]| {
        let done = with_home(arguments).output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8(text).unwrap())
    };
    let (success, text) = told(&["status"]);
    assert!(!success && text.contains("no helenus dev of this user runs"), "{text}");
    let record = home.join("run/helenus/dev.server");
    let start = || {
        let mut command = with_home(&["dev", "--listen", "127.0.0.1:0", "--exit-with-stdin"]);
        let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let is_of_child = || {
            let read = ServerRecord::read(&record).ok().flatten();
            read.is_some_and(|record| record.pid == child.id())
        };
        crate::program::until("it is ready", is_of_child);
        child
    };
    let (mut first, mut second) = (start(), start());
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&record).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let address = ServerRecord::read(&record).unwrap().unwrap().cql.unwrap();
    let end = |child: &mut std::process::Child| {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    };
    // The last one is found, also after the one before has ended.
    end(&mut first);
    let (success, text) = told(&["status"]);
    assert!(success && text.contains(&address), "{text}");
    assert!(told(&["health"]).0);
    // By its address, too; no other has it.
    assert!(told(&["status", "--listen", &address]).0);
    let (success, text) = told(&["status", "--listen", "127.0.0.1:1"]);
    assert!(
        !success && text.contains("no helenus dev of this user listens at the given address"),
        "{text}"
    );
    let (success, text) = told(&["cert"]);
    assert!(success && text.contains("BEGIN CERTIFICATE"), "{text}");
    // Where a setting names a server, that one is meant.
    let elsewhere = format!("file:{}", home.join("data").display());
    let (success, text) = told(&["status", "--data", &elsewhere]);
    assert!(
        !success && text.contains("no server has ") && !text.contains("helenus dev"),
        "{text}"
    );
    end(&mut second);
    assert!(!record.exists());
    assert!(!told(&["status"]).0);
}

#[test]
fn health_speaks_the_protocol_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready");
    let mut command = helenus(&[
        "--data",
        "memory:",
        "--profile",
        "cosmos",
        "--tls-listen",
        "127.0.0.1:0",
    ]);
    command
        .args(["--ready-file".as_ref(), file.as_os_str()])
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let address = ready(&file, &mut child);
    let health = |address: &str| {
        let arguments = [
            "health",
            "--data",
            "memory:",
            "--profile",
            "cosmos",
            "--tls-listen",
            address,
        ];
        output(&arguments)
    };
    let (success, _, error) = health(&address);
    assert!(success, "{error}");
    assert!(terminate(&mut child).0);
    // A port that only takes connections is no server.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = mute.local_addr().unwrap().to_string();
    let closing = std::thread::spawn(move || drop(mute.accept().unwrap()));
    let (success, _, error) = health(&address);
    assert!(!success && error.contains("over TLS"), "{error}");
    closing.join().unwrap();
}

#[test]
fn what_is_mistyped_is_answered_by_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let done = helenus(&["--login", "false"]).output().unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    assert!(
        done.status.code() == Some(2) && error.contains("type --login=false"),
        "{error}"
    );
    let (success, text, _) = output(&["settings", "--data", "memory:", "--login=false"]);
    assert!(success && text.contains("login = false  # command line"), "{text}");

    fs::write(path("file"), "").unwrap();
    for scheme in ["file", "slate+file"] {
        let (success, _, error) = output(&[
            "--data",
            &format!("{scheme}:{}", path("file")),
            "--listen",
            "127.0.0.1:0",
        ]);
        assert!(!success && error.contains("it is a file, not a directory"), "{error}");
    }

    for fault in ["delay = 5", "millis = 5", "ms = \"5ms\"", "retry_after_ms = 5", ""] {
        fs::write(path("faults.toml"), format!("[[fault]]\naction = \"delay\"\n{fault}\n")).unwrap();
        let (success, _, error) = output(&["settings", "--fault-plan", &path("faults.toml")]);
        assert!(!success && error.contains("such as ms = 200"), "{fault}: {error}");
    }

    fs::write(path("rows"), "\n {\"k\": 1}\n").unwrap();
    let data = format!("file:{}", path("data"));
    let import = ["import", "--data", &data, "--table", "a.b", "--from", &path("rows")];
    let (success, _, error) = output(&import);
    assert!(
        !success && error.contains("looks like JSON: give --format json"),
        "{error}"
    );
    let (_, _, error) = output(&[&import[..], &["--format", "csv"]].concat());
    assert!(!error.contains("looks like JSON"), "{error}");
}

#[test]
fn a_log_that_cannot_be_written_keeps_no_server_from_serving() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready");
    let path = file.to_str().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = helenus(&[
        "--data",
        "memory:",
        "--listen",
        "127.0.0.1:0",
        "--ready-file",
        path,
        "--log",
        "debug",
    ]);
    let mut child = command.stderr(full).spawn().unwrap();
    let address = ready(&file, &mut child);
    assert!(std::net::TcpStream::connect(&address).is_ok());
    let (stopped, _) = terminate(&mut child);
    assert!(stopped);
}

#[test]
fn an_init_that_fails_leaves_nothing_so_that_the_next_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init.cql");
    let (data, path) = (
        format!("file:{}", folder.path().join("data").display()),
        init.to_str().unwrap(),
    );
    let serve = ["--data", &data, "--listen", "127.0.0.1:0", "--init", path];
    fs::write(&init, format!("{SCHEMA}INSERT INTO nowhere (k) VALUES (1);")).unwrap();
    let (success, _, error) = output(&serve);
    assert!(!success && error.contains("init.cql:6: "), "{error}");
    fs::write(&init, SCHEMA).unwrap();
    let file = folder.path().join("ready");
    let mut command = helenus(&serve);
    let mut child = command.args(["--ready-file", file.to_str().unwrap()]).spawn().unwrap();
    ready(&file, &mut child);
    let (out, form) = (
        folder.path().join("rows.csv"),
        ["export", "--data", &data, "--table", "app.t"],
    );
    let (success, _, error) = output(&[&form[..], &["--to", out.to_str().unwrap()]].concat());
    assert!(success, "{error}");
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 2);
    terminate(&mut child);
}

#[test]
fn lint_needs_a_schema_and_import_a_file() {
    let done = helenus(&["lint"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let import = ["import", "--data", "memory:", "--table", "a.b", "--from", "/dev/stdin"];
    let (success, _, error) = output(&import);
    assert!(!success && error.contains("/dev/stdin is no regular file"), "{error}");
}

#[test]
fn help_of_help_is_the_help() {
    for arguments in [&["help"][..], &["help", "-h"], &["help", "--help"]] {
        let (success, text, error) = output(arguments);
        assert!(success && text.contains("Usage: helenus"), "{arguments:?}: {error}");
    }
    let (success, _, error) = output(&["--threads", "-1"]);
    assert!(
        !success && error.contains("expected a whole number, 0 or more"),
        "{error}"
    );
}
