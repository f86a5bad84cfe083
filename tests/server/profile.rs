//! The profile of data: recorded where it is kept, and compared by every verb that opens or asks for it.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::program::{helenus, output, ready, terminate};

/// A server on free addresses.
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

/// The files of a directory, but for the lock's, which names the last process.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.ends_with("helenus.lock") => {}
                false => drop(found.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    found
}

#[test]
fn data_of_another_profile_is_refused_by_every_verb_until_one_word_changes_it() {
    for engine in ["file", "slate+file"] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let directory = path("data");
        let data = format!("{engine}:{}", directory.display());
        let cosmos = ["--profile", "cosmos", "--tls-listen", "127.0.0.1:0"];
        assert!(terminate(&mut serve(&data, &path("first"), &cosmos)).0);

        let (before, to) = (files(&directory), path("backup"));
        let refused = |arguments: &[&str]| {
            let (success, _, error) = output(&[arguments, &["--data", &data]].concat());
            assert!(!success, "{arguments:?}");
            assert!(
                error.contains("the profile cosmos")
                    && error.contains("--profile cosmos")
                    && error.contains("--change-profile"),
                "{arguments:?}: {error}"
            );
            assert!(!error.contains("helenus.look"), "{error}");
            assert!(files(&directory) == before, "{arguments:?}: a byte was changed");
        };
        refused(&["serve", "--listen", "127.0.0.1:0"]);
        refused(&["verify"]);
        let to = to.to_str().unwrap();
        refused(&["backup", "--to", to]);
        refused(&["salvage", "--to", to]);
        assert!(!Path::new(to).exists());

        let (success, _, error) = output(&["verify", "--data", &data, "--profile", "cosmos"]);
        assert!(success, "{error}");

        // With consent it changes for good.
        assert!(terminate(&mut serve(&data, &path("changed"), &["--change-profile"])).0);
        let (success, _, error) = output(&["verify", "--data", &data, "--profile", "cosmos"]);
        assert!(!success && error.contains("the profile cassandra"), "{error}");
        assert!(terminate(&mut serve(&data, &path("later"), &[])).0);
    }
}

#[test]
fn a_verb_that_asks_for_one_profile_takes_no_server_of_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let mut child = serve(&data, &folder.path().join("ready"), &[]);
    for verb in ["shell", "status", "health", "cert"] {
        let (success, _, error) = output(&[verb, "--data", &data, "--profile", "cosmos"]);
        assert!(!success, "{verb}");
        assert!(
            error.contains("has the profile cassandra, and cosmos was asked for"),
            "{verb}: {error}"
        );
    }
    let (success, _, error) = output(&["status", "--data", &data, "--profile", "cassandra"]);
    assert!(success, "{error}");
    assert!(terminate(&mut child).0);
}

#[test]
fn each_profile_has_a_default_directory_of_its_own() {
    let of = |profile: &str| {
        let mut command = helenus(&["settings", "--profile", profile]);
        command.env("XDG_DATA_HOME", "/somewhere").env_remove("HELENUS_DATA");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(
        of("cassandra").contains("file:/somewhere/helenus\""),
        "{}",
        of("cassandra")
    );
    assert!(
        of("cosmos").contains("file:/somewhere/helenus-cosmos\""),
        "{}",
        of("cosmos")
    );
}
