//! The program called as `cqlsh`, against what cqlsh printed on Cassandra (`compat/cqlsh/transcripts`).
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::program::{helenus, terminate, until};
use helenus::cli::record::ServerRecord;

/// Transcripts without commands that this cqlsh refuses, and without CAPTURE OFF, which here ends the capture.
const TRANSCRIPTS: &[&str] = &["banner", "describe", "paging", "seed_tables", "tracing", "types"];

/// A server and a cqlsh that is a link to the program.
struct Place {
    folder: tempfile::TempDir,
    server: Child,
    record: ServerRecord,
}

impl Place {
    fn new(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_helenus"), folder.path().join("cqlsh")).unwrap();
        let json = folder.path().join("ready.json");
        let mut server = helenus(&["serve", "--data", "memory:"]);
        let server = server.args(settings).arg("--ready-json").arg(&json).spawn().unwrap();
        let mut text = None;
        until("it is ready", || {
            text = std::fs::read_to_string(&json).ok();
            text.is_some()
        });
        let record = serde_json::from_str(&text.unwrap()).unwrap();
        Self { folder, server, record }
    }

    /// Runs cqlsh with words in place of HOST and PORT, and with standard input.
    fn cqlsh(&self, arguments: &[&str], environment: &[(&str, &Path)], input: &str) -> Output {
        let address = self.record.cql.as_ref().or(self.record.tls.as_ref()).unwrap();
        let (host, port) = address.rsplit_once(':').unwrap();
        let mut child = Command::new(self.folder.path().join("cqlsh"))
            .args([host, port])
            .args(arguments)
            .env_remove("SSL_VALIDATE")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// A line with the names that transcripts have for the address and the cluster.
    fn without_address(&self, line: String) -> String {
        let address = self.record.cql.as_ref().or(self.record.tls.as_ref()).unwrap();
        let line = line.replace(address, "<address>");
        match line
            .strip_prefix("Connected to ")
            .and_then(|line| line.split_once(" at "))
        {
            Some((_, address)) => format!("Connected to <cluster> at {address}"),
            None => line,
        }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Blank lines and spaces at the end are not recorded.
fn lines(text: &str, before: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(|line| format!("{before}{line}")).collect()
}

#[test]
fn transcripts_are_those_of_cqlsh() {
    let mut place = Place::new(&["--listen", "127.0.0.1:0"]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/cqlsh/transcripts");
    for name in TRANSCRIPTS {
        let read = |extension: &str| std::fs::read_to_string(folder.join(format!("{name}.{extension}"))).unwrap();
        let done = place.cqlsh(&["--no-color"], &[], &read("cql"));
        let told = [lines(&text(&done.stdout), ""), lines(&text(&done.stderr), "! ")].concat();
        let told = told.into_iter().map(|line| without_id(place.without_address(line)));
        let told = without_trace(told.collect());
        let wanted: Vec<String> = read("txt").lines().map(str::to_owned).collect();
        assert_eq!(told, wanted, "{name}");
        let wanted = if done.stderr.is_empty() { 0 } else { 2 };
        assert_eq!(done.status.code(), Some(wanted), "{name}: as cqlsh without a terminal");
    }
    terminate(&mut place.server);
}

#[test]
fn a_capture_holds_what_statements_answer() {
    let mut place = Place::new(&["--listen", "127.0.0.1:0"]);
    let file = place.folder.path().join("it's out.txt");
    let script = format!(
        "CAPTURE\nCAPTURE '{0}'\nCAPTURE\nCAPTURE 'other'\nSELECT key FROM system.local;\nCONSISTENCY\nCAPTURE OFF\n\
         SELECT key FROM system.local;\nCAPTURE OFF\n",
        file.display().to_string().replace('\'', "''")
    );
    let done = place.cqlsh(&[], &[], &script);
    let table = "\n key\n-------\n local\n\n(1 rows)\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), table);
    let name = file.display().to_string().replace('\'', "\\'");
    assert_eq!(
        text(&done.stdout),
        format!(
            "Currently not capturing query output.\nNow capturing query output to '{name}'.\n\
             Currently capturing query output to '{name}'.\nCurrent consistency level is ONE.\n{table}"
        )
    );
    let errors = text(&done.stderr);
    assert!(
        errors.contains(":5:Already capturing output to ") && errors.contains(":10:Not currently capturing output."),
        "{errors}"
    );
    terminate(&mut place.server);
}

#[test]
fn login_takes_another_role_as_in_the_transcript() {
    let mut place = Place::new(&["--listen", "127.0.0.1:0", "--login"]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/cqlsh/transcripts");
    let read = |extension: &str| std::fs::read_to_string(folder.join(format!("login.{extension}"))).unwrap();
    let done = place.cqlsh(&["-u", "cassandra", "-p", "cassandra"], &[], &read("cql"));
    let told = [lines(&text(&done.stdout), ""), lines(&text(&done.stderr), "! ")].concat();
    let told: Vec<String> = told.into_iter().map(|line| place.without_address(line)).collect();
    let wanted: Vec<String> = read("txt").lines().map(str::to_owned).collect();
    assert_eq!(told, wanted);

    // The keyspace stays, and the role is the other one.
    let script = "CREATE ROLE ada WITH LOGIN = true AND PASSWORD = 'x';\n\
                  CREATE KEYSPACE \"K\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
                  CREATE TABLE \"K\".t (k int PRIMARY KEY);\nGRANT SELECT ON KEYSPACE \"K\" TO ada;\nUSE \"K\";\n\
                  LOGIN ada 'x'\nSELECT * FROM t;\nINSERT INTO t (k) VALUES (1);\n";
    let done = place.cqlsh(&["-u", "cassandra", "-p", "cassandra"], &[], script);
    assert!(text(&done.stdout).contains("(0 rows)"), "{done:?}");
    let errors = text(&done.stderr);
    assert!(
        errors.contains("<stdin>:9:Unauthorized") && errors.contains("User ada has no MODIFY permission"),
        "{errors}"
    );
    terminate(&mut place.server);
}

/// Of a trace only what does not depend on how a server works, as `compat/cqlsh/transcripts.py` has it.
fn without_trace(lines: Vec<String>) -> Vec<String> {
    let (mut kept, mut inside) = (Vec::new(), false);
    for line in lines {
        let first = line.split('|').next().unwrap_or_default().trim();
        if line.starts_with("Tracing session:") {
            inside = true;
            kept.push("Tracing session: <session>".to_owned());
        } else if inside && first == "activity" {
            kept.push("activity | timestamp | source | source_elapsed | client".to_owned());
        } else if inside && ["Execute CQL3 query", "Request complete"].contains(&first) {
            inside = first != "Request complete";
            kept.push(first.to_owned());
        } else if !inside {
            kept.push(line);
        }
    }
    kept
}

/// The id of a table, which the transcripts name `<id>`.
fn without_id(line: String) -> String {
    match line.split_once("ID = ") {
        Some((before, id)) => format!("{before}ID = <id>{}", id.get(36..).unwrap_or_default()),
        None => line,
    }
}

#[test]
fn statements_and_files_run_and_fail_as_in_cqlsh() {
    let mut place = Place::new(&["--listen", "127.0.0.1:0"]);
    let create = "CREATE KEYSPACE \"K\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; \
                  CREATE TABLE \"K\".t (k int PRIMARY KEY)";
    let done = place.cqlsh(&["-e", create], &[], "");
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(0), String::new()));
    let done = place.cqlsh(&["--keyspace", "K", "-e", "SELECT * FROM t"], &[], "");
    assert_eq!(text(&done.stdout), "\n k\n---\n\n\n(0 rows)\n");
    let done = place.cqlsh(
        &["-e", &format!("{create}; SELEC; SELECT key FROM system.local")],
        &[],
        "",
    );
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(
        text(&done.stdout),
        "\n key\n-------\n local\n\n(1 rows)\n",
        "what follows an error runs"
    );
    assert_eq!(
        text(&done.stderr),
        "<stdin>:1:AlreadyExists: Keyspace 'K' already exists\n<stdin>:1:AlreadyExists: Table 'K.t' already exists\n\
         <stdin>:1:SyntaxException: line 1:0 no viable alternative at input 'SELEC' ([SELEC]...)\n"
    );
    let file = place.file("a.cql", "-- a file\nSELECT k FROM nowhere.t;\nDEBUG\nSELECT 1");
    let file = file.to_str().unwrap();
    let done = place.cqlsh(&["-f", file], &[], "");
    assert_eq!(done.status.code(), Some(2));
    let told = text(&done.stderr);
    let wanted = [
        format!("{file}:3:InvalidRequest: Error from server: code=2200 [Invalid query]"),
        format!("{file}:4:DEBUG is not known to this cqlsh"),
        format!("{file}:5:Incomplete statement at end of file"),
    ];
    assert_eq!(told.lines().count(), wanted.len(), "{told}");
    for (line, wanted) in told.lines().zip(wanted) {
        assert!(line.starts_with(&wanted), "{told}");
    }
    let done = place.cqlsh(&[], &[], "INSERT INTO \"K\".t (k) VALUES (1)");
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert_eq!(text(&done.stderr), "<stdin>:2:Incomplete statement at end of file\n");
    let done = place.cqlsh(&["--keyspace", "nowhere", "-e", "SELECT 1"], &[], "");
    assert!(
        done.status.code() == Some(1) && text(&done.stderr).contains("'nowhere' does not exist"),
        "{done:?}"
    );
    terminate(&mut place.server);
}

#[test]
fn logins_go_by_arguments_and_files_over_tls() {
    let mut place = Place::new(&["--profile", "cosmos", "--tls-listen", "127.0.0.1:0"]);
    let key = place.record.key.clone().unwrap();
    let trusted = place.file("trusted.pem", &place.record.certificate_pem.clone().unwrap());
    let trusted = [("SSL_CERTFILE", trusted.as_path())];
    let asks = ["--ssl", "-e", "SELECT key FROM system.local"];
    let by_arguments = [&asks[..], &["-u", "helenus", "-p", &key]].concat();
    let done = place.cqlsh(&by_arguments, &trusted, "");
    assert!(
        done.status.success() && text(&done.stdout).contains(" local\n"),
        "{done:?}"
    );
    assert!(text(&done.stderr).contains("password on the command line"), "{done:?}");

    let file = place.file(
        "login",
        &format!("[plain_text_auth]\nusername = helenus\npassword = {key}\n"),
    );
    let credentials = format!("--credentials={}", file.display());
    let by_file = [&asks[..], &[&credentials]].concat();
    let done = place.cqlsh(&by_file, &trusted, "");
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");

    let done = place.cqlsh(&by_file[1..], &[], "");
    assert!(
        done.status.code() == Some(1) && text(&done.stderr).contains("may want TLS: give --ssl"),
        "{done:?}"
    );

    let wrong = [&asks[..], &["-u", "helenus", "-p", "wrong"]].concat();
    let done = place.cqlsh(&wrong, &trusted, "");
    let told = text(&done.stderr);
    assert!(
        done.status.code() == Some(1) && told.contains("code=0100 [Bad credentials]"),
        "{told}"
    );
    // Without the certificate: refused, unless any is trusted.
    let done = place.cqlsh(&by_file, &[], "");
    assert!(
        done.status.code() == Some(1) && text(&done.stderr).contains("SSL_CERTFILE"),
        "{done:?}"
    );
    let done = place.cqlsh(&by_file, &[("SSL_VALIDATE", Path::new("false"))], "");
    assert!(
        done.status.success() && text(&done.stdout).contains(" local\n"),
        "{done:?}"
    );
    let done = place.cqlsh(&by_file, &[("SSL_CERTFILE", &file)], "");
    assert!(
        done.status.code() == Some(1) && text(&done.stderr).contains("invalid peer certificate"),
        "{done:?}"
    );
    terminate(&mut place.server);
}
