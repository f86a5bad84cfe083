//! The record of a running server, and the verbs that read it.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::program::{helenus, output, terminate, until};
use crate::raw::Client;
use helenus::cli::record::ServerRecord;
use helenus_types::wire::Version;

fn record(path: &Path, child: &mut Child) -> ServerRecord {
    let mut found = None;
    until("there is no record", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        found = ServerRecord::read(path).unwrap();
        found.is_some()
    });
    found.unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn the_record_names_every_address_and_goes_with_the_server() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let url = format!("file:{}", data.display());
    let json = folder.path().join("ready.json");
    let ready = folder.path().join("ready");
    let arguments = [
        "--data",
        &url,
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let mut command = helenus(&arguments);
    command.arg("--ready-json").arg(&json).arg("--ready-file").arg(&ready);
    let mut child = command.spawn().unwrap();
    let found = record(&json, &mut child);
    assert_eq!((found.api, found.pid), (1, child.id()));
    assert_eq!(
        (&found.tls, &found.account, &found.key, &found.certificate_pem),
        (&None, &None, &None, &None)
    );
    let mode = std::fs::metadata(&json).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(record(&data.join("helenus.server"), &mut child), found);
    Client::ready(found.cql.clone().unwrap().parse().unwrap(), Version::V4).await;
    until("there is no ready file", || ready.exists());

    // `status` finds the admin port in the data directory.
    let output = helenus(&["status", "--data", &url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("file:"), "{text}");

    assert!(terminate(&mut child).0);
    assert!(!json.exists() && !ready.exists() && !data.join("helenus.server").exists());
    let output = helenus(&["status", "--data", &url]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("no server has"), "{text}");
}

#[test]
fn the_record_is_printed_alone_and_the_server_ends_with_its_standard_input() {
    let arguments = [
        "--data",
        "memory:",
        "--profile",
        "cosmos",
        "--tls-listen",
        "127.0.0.1:0",
    ];
    let mut command = helenus(&arguments);
    command
        .args(["--ready-json", "-", "--exit-with-stdin"])
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let found: ServerRecord = serde_json::from_str(&line).unwrap();
    assert!(found.cql.is_none() && found.tls.is_some(), "{found:?}");
    assert_eq!(found.account.as_deref(), Some("helenus"));
    assert!(found.key.is_some() && found.certificate_pem.unwrap().starts_with("-----BEGIN CERTIFICATE"));
    assert!(child.try_wait().unwrap().is_none());

    drop(child.stdin.take());
    until("it does not end", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());
    line.clear();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "", "the record is all that standard output gets");
}

#[cfg(unix)]
#[test]
fn the_shell_logs_in_to_the_server_that_has_the_data_open() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("data").display());
    let json = folder.path().join("ready.json");
    let mut command = helenus(&["--data", &url, "--profile", "cosmos", "--tls-listen", "127.0.0.1:0"]);
    let mut child = command.arg("--ready-json").arg(&json).spawn().unwrap();
    let found = record(&json, &mut child);

    // In place of cqlsh: prints what it is called with.
    let cqlsh = folder.path().join("cqlsh");
    let script = "#!/bin/sh\necho \"$@\"\ncat \"${3#--credentials=}\" \"$SSL_CERTFILE\"\nexit 3\n";
    std::fs::write(&cqlsh, script).unwrap();
    std::fs::set_permissions(&cqlsh, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let mut command = helenus(&["shell", "--data", &url, "--profile", "cosmos", "--", "-e", "x"]);
    let output = command.env("PATH", path).output().unwrap();
    terminate(&mut child);
    let text = String::from_utf8(output.stdout).unwrap();
    let (host, port) = found.tls.as_deref().unwrap().split_once(':').unwrap();
    assert!(text.starts_with(&format!("{host} {port} --credentials=")), "{text}");
    assert!(text.contains("--ssl --protocol-version=4 -e x"), "{text}");
    assert!(text.contains(&format!("password = {}\n", found.key.unwrap())), "{text}");
    assert!(text.ends_with(&found.certificate_pem.unwrap()), "{text}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn settings_without_effect_are_warned_of() {
    let mut command = helenus(&["--data", "file:/proc/none", "--region", "here"]);
    let output = command.env("HELENUS_LISTN", "127.0.0.1:1").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    for warning in [
        "HELENUS_LISTN is no setting and is ignored; did you mean HELENUS_LISTEN?",
        "region (command line) has no effect without --profile cosmos",
    ] {
        assert!(text.contains(warning), "{text}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = helenus(&["check", "--data", "memory:"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}

#[test]
fn a_taken_address_comes_with_a_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = helenus(&["--data", "memory:", "--listen", &address]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("another server is there: take another address with --listen"),
        "{text}"
    );
}

/// Java trusts the server with the store, and other tools read it. Without either tool on the machine its bytes are not judged.
#[test]
fn the_certificate_is_a_trust_store_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, store) = (path("ready.json"), path("trust.p12"));
    let mut command = helenus(&[
        "--data",
        "memory:",
        "--profile",
        "cosmos",
        "--tls-listen",
        "127.0.0.1:0",
    ]);
    let mut child = command.args(["--ready-json", &json]).spawn().unwrap();
    record(json.as_ref(), &mut child);
    let words = [
        "--format",
        "pkcs12",
        "--store-password",
        "secret",
        "--out",
        &store,
        "--ready-json",
        &json,
    ];
    let (success, _, error) = output(&[&["cert", "--data", "memory:"][..], &words].concat());
    assert!(success, "{error}");
    terminate(&mut child);
    let asked: [(&str, &[&str], &str); 2] = [
        (
            "openssl",
            &["pkcs12", "-in", &store, "-passin", "pass:secret", "-nokeys"],
            "BEGIN CERTIFICATE",
        ),
        (
            "keytool",
            &["-list", "-keystore", &store, "-storepass", "secret"],
            "helenus, ",
        ),
    ];
    for (program, arguments, wanted) in asked {
        let Ok(done) = std::process::Command::new(program).args(arguments).output() else {
            eprintln!("skipped: {program} is not on this machine");
            continue;
        };
        let told = format!(
            "{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        assert!(done.status.success() && told.contains(wanted), "{program}: {told}");
        if program == "keytool" {
            assert!(told.contains("trustedCertEntry"), "{told}");
        }
        // The MAC belongs to the password.
        let wrong = arguments.iter().map(|word| word.replace("secret", "another"));
        assert!(
            !std::process::Command::new(program)
                .args(wrong)
                .output()
                .unwrap()
                .status
                .success(),
            "{program}"
        );
    }
}
