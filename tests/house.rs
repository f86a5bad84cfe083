//! The rules of the house that no compiler holds: which room may know which, and what the top level looks like.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room → the rooms whose names may stand behind `crate::` in it. A room not listed may use everything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("token", &[]),
    ("clock", &[]),
    ("consistency", &[]),
    ("profile", &[]),
    ("metrics", &[]),
    ("mutant", &[]),
    ("permissions", &[]),
    ("types", &[]),
    ("wire", &["types", "consistency"]),
    ("functions", &["types"]),
    ("schema", &["types", "functions"]),
    ("planner", &["types", "schema", "functions", "token", "profile"]),
    ("throughput", &["clock", "mutant"]),
    ("storage", &["clock", "metrics", "mutant", "permissions"]),
    (
        "advice",
        &["planner", "types", "schema", "throughput", "token", "profile"],
    ),
    (
        "partition",
        &[
            "token",
            "consistency",
            "storage",
            "throughput",
            "metrics",
            "clock",
            "mutant",
        ],
    ),
    (
        "executor",
        &[
            "planner",
            "schema",
            "types",
            "functions",
            "partition",
            "token",
            "clock",
            "metrics",
            "mutant",
            "throughput",
            "profile",
        ],
    ),
];

/// What `server` must never name.
const SERVER_NEVER: &[&str] = &["storage"];

const TOP_LEVEL: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "README.md",
    "compat",
    "grammar",
    "src",
    "tests",
];

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Rooms named after `crate::` in code (comments do not count).
fn rooms_named(text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        for (at, _) in code.match_indices("crate::") {
            let rest = &code[at + "crate::".len()..];
            if let Some(group) = rest.strip_prefix('{') {
                for part in group.split([',', '}']) {
                    named.insert(part.trim().split("::").next().unwrap_or_default().to_owned());
                }
            } else {
                let end = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                named.insert(rest[..end].to_owned());
            }
        }
    }
    named
}

#[test]
fn arrows_point_down_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rules: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let rooms: BTreeSet<String> = fs::read_dir(&source)
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut broken = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&source).unwrap();
        let room = inside
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_string_lossy()
            .replace(".rs", "");
        for named in rooms_named(&fs::read_to_string(&file).unwrap()) {
            if named == room || !rooms.contains(&named) {
                continue;
            }
            let allowed = match rules.get(room.as_str()) {
                Some(may) => may.contains(&named.as_str()),
                None => !(room == "server" && SERVER_NEVER.contains(&named.as_str())),
            };
            if !allowed {
                broken.push(format!("{} uses crate::{named}", inside.display()));
            }
        }
    }
    assert!(broken.is_empty(), "arrows that point up:\n{}", broken.join("\n"));
}

#[test]
fn the_readme_maps_every_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let rooms = fs::read_dir(root.join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    for room in rooms {
        let named = format!("`src/{}`", room.file_name().unwrap().to_string_lossy());
        assert!(readme.contains(&named), "{named} is not in the README's map");
    }
}

#[test]
fn top_level_is_what_it_shall_be() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<String> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && name != "target")
        .collect();
    names.sort();
    assert_eq!(names, TOP_LEVEL);
}

#[test]
fn only_the_grammar_uses_nom_and_only_compat_the_driver() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of = |folder: &str| fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
    assert!(
        !of(".")
            .lines()
            .any(|line| line.starts_with("nom ") || line.starts_with("scylla "))
    );
    assert!(!of("compat").lines().any(|line| line.starts_with("nom ")));
}
