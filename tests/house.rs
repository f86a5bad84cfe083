//! The rules of the house that the compiler does not check: which room may know which, who may know CQL's syntax tree, circles of
//! imports, subjects of files, the top level. Every `use` and every path counts (`crate::`, `super::`, `grammar::`), and a name that is
//! re-exported counts as the file's that defines it. Tests are left out.
//!
//! The lists of exceptions are debts: a number in them may only go down. Lower it in the commit that pays.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

#[path = "house/functions.rs"]
mod functions;
#[path = "house/gaps.rs"]
mod gaps;
#[path = "house/imports.rs"]
mod imports;
#[path = "house/invariants.rs"]
mod invariants;
#[path = "house/prose.rs"]
mod prose;
#[path = "house/refusals.rs"]
mod refusals;
#[path = "house/runs.rs"]
mod runs;
#[path = "house/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Imports, Target};

/// Room → the rooms whose names it may use. A room not listed may use everything but what [`NEVER`] says.
const MAY_USE: &[(&str, &[&str])] = &[
    ("token", &["utf16"]),
    ("utf16", &[]),
    ("clock", &[]),
    ("consistency", &[]),
    ("profile", &[]),
    ("memory", &[]),
    ("metrics", &[]),
    ("budget", &["metrics"]),
    ("mutant", &[]),
    ("invariant", &["metrics"]),
    ("permissions", &[]),
    ("progress", &[]),
    ("tasks", &["metrics"]),
    ("backup", &["permissions"]),
    (
        "views",
        &["schema", "types", "engine", "memory", "metrics", "throughput"],
    ),
    ("types", &["utf16"]),
    ("wire", &["types", "consistency"]),
    ("functions", &["types"]),
    ("schema", &["types", "functions", "utf16"]),
    ("roles", &["schema", "types"]),
    (
        "command",
        &[
            "types",
            "schema",
            "functions",
            "profile",
            "token",
            "consistency",
            "roles",
            "mutant",
        ],
    ),
    ("guardrails", &["command", "types", "schema"]),
    (
        "planner",
        &[
            "command",
            "guardrails",
            "types",
            "schema",
            "functions",
            "token",
            "profile",
            "roles",
        ],
    ),
    ("throughput", &["clock", "mutant", "invariant"]),
    ("fleet", &["wire", "clock", "metrics", "mutant", "tasks"]),
    (
        "storage",
        &["clock", "metrics", "mutant", "permissions", "invariant", "utf16"],
    ),
    (
        "advice",
        &[
            "planner",
            "command",
            "types",
            "schema",
            "throughput",
            "token",
            "profile",
        ],
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
            "invariant",
            "backup",
        ],
    ),
    (
        "cql",
        &[
            "command",
            "guardrails",
            "planner",
            "roles",
            "engine",
            "schema",
            "types",
            "functions",
            "partition",
            "token",
            "clock",
            "metrics",
            "throughput",
            "profile",
            "consistency",
            "budget",
        ],
    ),
    (
        "tables",
        &[
            "command",
            "roles",
            "engine",
            "schema",
            "types",
            "partition",
            "token",
            "clock",
            "metrics",
            "throughput",
            "profile",
            "consistency",
            "budget",
        ],
    ),
    (
        "engine",
        &[
            "command",
            "guardrails",
            "roles",
            "schema",
            "types",
            "functions",
            "partition",
            "token",
            "clock",
            "metrics",
            "mutant",
            "invariant",
            "throughput",
            "profile",
            "consistency",
            "budget",
            "progress",
            "tasks",
            "backup",
        ],
    ),
];

/// Room → the room that it must never name.
const NEVER: &[(&str, &str)] = &[
    ("server", "storage"),
    ("server", "config"),
    ("server", "assembly"),
    ("config", "assembly"),
];

/// Room, what of another room it may use besides, and why.
const MAY_USE_FILES: &[(&str, &[&str], &str)] = &[
    (
        "engine",
        &["storage/row", "storage/deletion", "storage/damaged"],
        "what a row holds, what is deleted and what is damaged is the engine's business; where it lies is not",
    ),
    ("cql", &["wire/response/error"], "the protocol's code of a refusal"),
];

/// Room, the room that it uses against the rules, in how many files at most, and why still.
const AGAINST_THE_RULES: &[(&str, &str, usize, &str)] = &[
    (
        "engine",
        "storage",
        27,
        "records of the catalog, moves and their copies, index builds and sweeps use stores and batches",
    ),
    (
        "server",
        "storage",
        1,
        "the identity lies beside the data, whose address says where",
    ),
];

/// Folders and files that may know CQL's syntax tree (the crate `grammar`), and why.
const KNOWS_SYNTAX: &[(&str, &str)] = &[
    ("planner", "turns statements into plans"),
    ("fuzz.rs", "feeds any text to the grammar"),
    ("fuzz.rs", "parses and prints any text; in no server"),
    ("advice", "reads the statements of a data model"),
    ("types/error.rs", "an unknown type is refused by its name as written"),
    (
        "types/literal.rs",
        "a literal's value depends on the type that it is written for",
    ),
    ("types/name.rs", "types as CQL writes them"),
    ("types/term.rs", "constant terms, whose value depends on the type"),
    ("functions/arithmetic.rs", "overloads of the operators"),
    ("functions/resolve.rs", "overloads of a name as written"),
    ("schema/describe.rs", "what DESCRIBE asks for"),
    ("cql", "the front end: parses, plans and executes statements"),
];

/// Calls that start a task or a thread which the runner (`crates/base/src/tasks.rs`) would not join.
const STARTS: &[&str] = &[
    "tokio::spawn(",
    "tokio::task::spawn(",
    "thread::spawn(",
    "thread::Builder",
];

/// Files that start tasks or threads themselves, and who joins them.
const STARTS_TASKS: &[(&str, &str)] = &[
    ("crates/base/src/tasks.rs", "the runner"),
    (
        "src/server/inflight.rs",
        "a request: its connection polls it to its end",
    ),
    ("src/server/admin/mod.rs", "the acceptor: `Admin::stop` joins it"),
    ("src/server/audit/file.rs", "the writer: the end of the server joins it"),
    (
        "crates/storage/src/storage/engine/moments.rs",
        "the writer of moments: dropping its handle joins it",
    ),
    (
        "crates/storage/src/storage/bucket/owner.rs",
        "the keeper of the lease: closing the last store of the bucket awaits its end",
    ),
    (
        "crates/storage/src/storage/engine/slate.rs",
        "the committer: closing its store awaits its end",
    ),
    (
        "crates/storage/src/storage/engine/slate/landing.rs",
        "puts of the log and of tables: the committer awaits or aborts them before it closes the database",
    ),
    (
        "crates/storage/src/storage/engine/slate/ranges.rs",
        "a reading of keys to remove: the committer awaits or aborts it",
    ),
    (
        "crates/storage/src/storage/engine/slate/log/putting.rs",
        "a removal of objects that nothing needs: it may be cut at any time",
    ),
    (
        "crates/storage/src/storage/engine/slate/log/opening.rs",
        "the task that puts: it keeps no log alive, and ends when the last database is closed",
    ),
    (
        "crates/storage/src/storage/engine/fjall.rs",
        "the committer: closing its store awaits its end",
    ),
    (
        "crates/storage/src/storage/engine/fjall/committer/maintenance.rs",
        "a compaction: closing the store joins it; and a thread that only ends, joined at once",
    ),
    (
        "crates/storage/src/storage/engine/acknowledged.rs",
        "the writer of the mark: dropping its handle joins it",
    ),
    (
        "crates/fleet/src/fleet/serving.rs",
        "a long question: its connection polls it to its end, or aborts it",
    ),
    (
        "src/cli/parent.rs",
        "a blocking read of standard input, which nothing can end",
    ),
    (
        "crates/engine/src/engine/write/staged.rs",
        "a seeded fault, in no server: it acknowledges before it commits",
    ),
];

/// Files that hash a partition key themselves, and why; every other one asks the table's placement (`TablePartitions::place`), since
/// keys of an ordered table have no hash for a token.
const HASHES_KEYS: &[(&str, &str)] = &[
    ("crates/engine/src/partition/ring.rs", "the placement of hashed tables"),
    ("crates/schema/src/planner/term.rs", "CQL's token() of constants"),
    (
        "crates/schema/src/planner/restrict.rs",
        "CQL's token() compared with a key's, in tables of CQL",
    ),
    (
        "crates/engine/src/engine/row/evaluate.rs",
        "CQL's token() of a row's columns",
    ),
    (
        "crates/engine/src/engine/read/tombstones.rs",
        "the token in the text of Cassandra's warning",
    ),
    (
        "crates/engine/src/engine/read/virtual_rows.rs",
        "rows that the server makes, which lie in no physical partition",
    ),
    (
        "src/server/operator/counted.rs",
        "the order of an export, which tables of CQL alone have",
    ),
];

const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "NOTICE",
    "README.md",
    "SECURITY.md",
    "compat",
    "crates",
    "dist",
    "docs",
    "grammar",
    "java",
    "kits",
    "src",
    "tests",
];

/// Files of the engine that a part may use: it knows nothing of pages, groups, sessions, commits or the catalog.
const PART_KNOWS: &[&str] = &[
    "engine/part",
    "engine/error",
    "engine/failure",
    "engine/refusal",
    "engine/edge",
    "engine/index/mod",
    "engine/row",
];

/// What a part of a write may use besides: the terms of the request, sizes that are watched, the check of a row's length.
const WRITE_PART_KNOWS: &[&str] = &[
    "engine/index/overlong",
    "engine/limits",
    "engine/logical",
    "engine/terms/clock",
    "engine/terms/write",
    "engine/value",
];

/// Files that spread a command over parts and gather what these give.
const STATEMENT_LEVEL: &[&str] = &[
    "engine/read/source",
    "engine/read/sink",
    "engine/service/reads",
    "engine/service/writes",
    "engine/write/apply",
    "engine/write/condition",
    "engine/terms/write",
    "engine/write/services",
];

/// What only a part sees: stored rows, deletions, index entries, and the scans over them.
const PART_ALONE_KNOWS: &[&str] = &[
    "engine/part/logical",
    "engine/part/ring",
    "engine/part/write/rows",
    "partition/rows",
    "partition/entries",
    "storage",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of Rust below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The room of a module: its first segment; `None` for `lib.rs`.
fn room(module: &[String]) -> Option<&str> {
    module.first().map(String::as_str)
}

/// Whether a file lies in a folder, or is the file that is named.
fn lies_in(file: &str, place: &str) -> bool {
    file.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
}

/// Whether a room may use another.
fn may_use(room: &str, other: &str) -> bool {
    match MAY_USE.iter().find(|(own, _)| *own == room) {
        Some((_, may)) => may.contains(&other),
        None => !NEVER.contains(&(room, other)),
    }
}

#[test]
fn arrows_point_down_only() {
    let imports = Imports::of_rooms(root());
    let mut broken: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for file in imports.files() {
        let Some(own) = room(&file.module) else { continue };
        for target in imports.targets(file) {
            let Target::File(module) = target else { continue };
            let Some(other) = room(&module).filter(|other| *other != own && !may_use(own, other)) else {
                continue;
            };
            let name = imports.name(&module);
            let mut besides = MAY_USE_FILES.iter().filter(|(room, ..)| *room == own);
            if besides.any(|(_, places, _)| places.iter().any(|place| lies_in(name, place))) {
                continue;
            }
            let line = format!("{} uses {}", file.name, imports.name(&module));
            broken
                .entry((own.to_owned(), other.to_owned()))
                .or_default()
                .insert(line);
        }
    }
    for (own, other, files_max, _) in AGAINST_THE_RULES {
        let lines = broken.get(&((*own).to_owned(), (*other).to_owned()));
        let files: BTreeSet<_> = lines
            .into_iter()
            .flatten()
            .filter_map(|line| line.split(' ').next())
            .collect();
        if files.len() <= *files_max {
            broken.remove(&((*own).to_owned(), (*other).to_owned()));
        }
    }
    let lines: Vec<String> = broken.into_values().flatten().collect();
    assert!(lines.is_empty(), "arrows that point up:\n{}", lines.join("\n"));
}

#[test]
fn circles_have_two_files_at_most() {
    let imports = Imports::of_rooms(root());
    let knots: Vec<BTreeSet<String>> = imports.knots().into_iter().filter(|knot| knot.len() > 2).collect();
    assert!(knots.is_empty(), "files that import each other in circles: {knots:#?}");
}

#[test]
fn parts_of_a_folder_do_not_import_each_other_in_circles() {
    let mut circles = Vec::new();
    let mut sources = vec![("", Imports::of_rooms(root()))];
    sources.extend(["grammar/src", "java/src", "compat/src"].map(|folder| (folder, Imports::of(root(), folder))));
    for (folder, imports) in sources {
        circles.extend(imports.circles().into_iter().map(|circle| {
            let name = format!("{folder}/{}", circle.folder);
            (name.trim_matches('/').to_owned(), circle)
        }));
    }
    let lines: Vec<String> = circles
        .iter()
        .map(|(folder, circle)| format!("{folder}: {:?}\n  {}", circle.parts, circle.arrows.join("\n  ")))
        .collect();
    assert!(
        lines.is_empty(),
        "parts that import each other in circles:\n{}",
        lines.join("\n")
    );
}

/// A file has one subject, however long it is, and says it first.
#[test]
fn a_file_says_its_subject_in_its_first_sentence() {
    let mut silent = Vec::new();
    for folder in ["src", "crates", "grammar/src", "java/src", "compat/src"] {
        for path in rust_files(&root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            if !text.starts_with("//! ") {
                silent.push(path);
            }
        }
    }
    assert!(
        silent.is_empty(),
        "begin these with `//!` and their subject: {silent:?}"
    );
}

#[test]
fn few_know_the_syntax_tree() {
    let imports = Imports::of_rooms(root());
    let knows = |target: &Target| matches!(target, Target::Crate(path) if path[0] == "grammar");
    let files = imports.files().filter(|file| imports.names(file).iter().any(knows));
    let files: Vec<&str> = files.map(|file| file.name.as_str()).collect();
    let unknown = files
        .iter()
        .filter(|file| !KNOWS_SYNTAX.iter().any(|(place, _)| lies_in(file, place)));
    let unknown: Vec<_> = unknown.collect();
    assert!(
        unknown.is_empty(),
        "these know the syntax tree, and must not: {unknown:?}"
    );
    let gone = KNOWS_SYNTAX
        .iter()
        .filter(|(place, _)| !files.iter().any(|file| lies_in(file, place)));
    let gone: Vec<_> = gone.collect();
    assert!(
        gone.is_empty(),
        "these know it no more; take them off the list: {gone:?}"
    );
}

#[test]
fn the_second_front_end_is_free_of_the_first() {
    for file in [
        "tests/database/second_front_end.rs",
        "tests/simulation/commands.rs",
        "tests/support/typed.rs",
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let code: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let code = code.join("\n");
        for room in ["grammar", "cql", "planner", "wire", "server", "support::Client"] {
            assert!(!code.contains(room), "{file} names `{room}`");
        }
    }
}

#[test]
fn the_runner_owns_every_task() {
    let mut starts = BTreeSet::new();
    for file in Imports::of_rooms(root()).files() {
        let text = fs::read_to_string(root().join(&file.path)).unwrap();
        // Inline tests stand at the end of a file; a test module in a file of its own is only declared.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        if code
            .lines()
            .filter(is_code)
            .any(|line| STARTS.iter().any(|start| line.contains(start)))
        {
            starts.insert(file.path.clone());
        }
    }
    let known: BTreeSet<String> = STARTS_TASKS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let bare: Vec<_> = starts.difference(&known).collect();
    assert!(
        bare.is_empty(),
        "spawn these through `Tasks`, so that they are named and joined: {bare:?}"
    );
    let gone: Vec<_> = known.difference(&starts).collect();
    assert!(
        gone.is_empty(),
        "these start nothing any more; take them off the list: {gone:?}"
    );
}

#[test]
fn only_the_placement_gives_a_token() {
    let mut hashing = BTreeSet::new();
    for file in Imports::of_rooms(root()).files() {
        let text = fs::read_to_string(root().join(&file.path)).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let mut lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        if lines.any(|line| line.contains("Token::of(") || line.contains("map(Token::of)")) {
            hashing.insert(file.path.clone());
        }
    }
    let known: BTreeSet<String> = HASHES_KEYS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(hashing, known, "ask the placement of the table, or say here why not");
}

#[test]
fn the_engine_is_a_facade_over_services() {
    let mut files = Vec::new();
    for file in Imports::of_rooms(root()).files() {
        let text = fs::read_to_string(root().join(&file.path)).unwrap();
        // The storage engines bear the same name.
        if lies_in(&file.name, "engine") && text.lines().any(|line| line == "impl Engine {") {
            files.push(file.name.clone());
        }
    }
    let most = [
        "engine/service.rs",
        "engine/service/authority.rs",
        "engine/service/execution.rs",
        "engine/service/reads.rs",
        "engine/service/writes.rs",
    ];
    assert_eq!(files, most, "give what is new a service of its own, as `Upkeep` is");
}

#[test]
fn a_part_sees_only_itself() {
    let imports = Imports::of_rooms(root());
    let (mut broken, mut parts, mut statement) = (Vec::new(), 0, 0);
    for file in imports.files() {
        let is_part = lies_in(&file.name, "engine/part");
        let is_statement = STATEMENT_LEVEL.iter().any(|place| lies_in(&file.name, place));
        parts += usize::from(is_part);
        statement += usize::from(is_statement);
        for target in imports.targets(file) {
            let Target::File(module) = target else { continue };
            let name = imports.name(&module);
            let is_write = lies_in(&file.name, "engine/part/write");
            let besides = WRITE_PART_KNOWS.iter().filter(|_| is_write);
            let is_known = PART_KNOWS.iter().chain(besides).any(|place| lies_in(name, place));
            let breaks_part = is_part && room(&module) == Some("engine") && !is_known;
            let breaks_statement = is_statement && PART_ALONE_KNOWS.iter().any(|place| lies_in(name, place));
            if breaks_part || breaks_statement {
                broken.push(format!("{} uses {name}", file.name));
            }
        }
    }
    assert!(
        parts > 0 && statement > 1,
        "the files of parts and of the statement level are found"
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_figure_is_named_in_one_file() {
    let golden = fs::read_to_string(root().join("crates/engine/src/views/golden/figures.txt")).unwrap();
    let texts: Vec<(String, String)> = Imports::of_rooms(root())
        .files()
        .map(|file| (file.name.clone(), fs::read_to_string(root().join(&file.path)).unwrap()))
        .collect();
    let mut families = 0;
    for line in golden.lines().filter(|line| line.contains(" | ")) {
        let family = line.split(" | ").nth(2).unwrap();
        let Some((kind, name)) = family.split_once(' ') else {
            continue;
        };
        if kind == "label" || name.contains(' ') || line.ends_with("meaning") {
            continue;
        }
        families += 1;
        let definition = format!(".{kind}(\"{name}\")");
        let files = texts.iter().filter(|(_, text)| text.contains(&definition));
        let files: Vec<&String> = files.map(|(file, _)| file).collect();
        assert_eq!(files.len(), 1, "{definition} stands in {files:?}");
    }
    assert!(families > 30, "{families}");
}

/// Files that re-export names of another crate of ours, and why.
const REEXPORTS: &[(&str, &str)] = &[(
    "src/lib.rs",
    "`helenus` alone promises an interface, and `TestServer` names these",
)];

#[test]
fn crates_do_not_reexport_each_other() {
    let mut found = BTreeSet::new();
    for file in Imports::of_rooms(root()).files() {
        let is_ours = |import: &&source::Import| import.is_public && import.path[0].starts_with("helenus_");
        if file.imports.iter().any(|import| is_ours(&import)) {
            found.insert(file.path.clone());
        }
    }
    let known: BTreeSet<String> = REEXPORTS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known);
}

/// What another crate could use: printed, so that a change of it is seen (`cargo test --test house public -- --nocapture`).
#[test]
fn public_items_of_each_crate_are_counted() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in Imports::of_rooms(root()).files() {
        let (name, _) = file.path.split_once("/src/").unwrap_or(("helenus", ""));
        let text = fs::read_to_string(root().join(&file.path)).unwrap();
        let public = text.lines().filter(|line| line.trim_start().starts_with("pub "));
        *counts.entry(name.to_owned()).or_default() += public.count();
    }
    println!("public items, fields among them: {counts:#?}");
    assert!(counts.len() > 5, "{counts:?}");
}

/// A crate of these files, each its module's path and its text.
fn crate_of(files: &[(&str, &str)]) -> Imports {
    let parsed = files.iter().map(|(path, text)| {
        let module = path
            .split("::")
            .filter(|segment| !segment.is_empty())
            .map(str::to_owned);
        source::parse(text, format!("{}.rs", path.replace("::", "/")), module.collect())
    });
    Imports::from_files(parsed.collect())
}

#[test]
fn circles_are_seen_through_reexports_and_inline_paths() {
    let imports = crate_of(&[
        ("", "pub mod room;"),
        ("room", "mod a; mod b; mod c; pub(crate) use a::{One, Two as Second};"),
        ("room::a", "use super::b::B; pub struct One; pub struct Two;"),
        (
            "room::b",
            "pub struct B; fn f() { super::c::f(\"super::a\") } // super::a::One",
        ),
        (
            "room::c",
            "use crate::room::Second; pub fn f(_: &str) {} #[cfg(test)] mod tests { use super::super::d; }",
        ),
    ]);
    let circle = ["room/a.rs", "room/b.rs", "room/c.rs"].map(str::to_owned);
    assert_eq!(imports.knots(), [BTreeSet::from(circle)]);
}

#[test]
fn what_only_a_test_imports_does_not_count() {
    let imports = crate_of(&[
        ("", "pub mod a; pub mod b;"),
        ("a", "#[cfg(test)] use crate::b::B; pub struct A;"),
        (
            "b",
            "use crate::a::A; pub struct B; #[cfg(test)] mod tests { use grammar::ast; }",
        ),
    ]);
    assert_eq!(imports.knots(), Vec::<BTreeSet<String>>::new());
    let of_b = imports.names(imports.files().find(|file| file.name == "b.rs").unwrap());
    assert_eq!(of_b, BTreeSet::from([Target::File(vec!["a".to_owned()])]));
}

#[test]
fn a_crate_is_seen_through_a_reexport() {
    let imports = crate_of(&[
        ("", "pub mod a; pub mod b;"),
        ("a", "pub use grammar::ast::Term;"),
        ("b", "fn f(_: crate::a::Term) {}"),
    ]);
    let term = ["grammar", "ast", "Term"].map(str::to_owned).to_vec();
    let of_b = imports.names(imports.files().find(|file| file.name == "b.rs").unwrap());
    assert!(of_b.contains(&Target::Crate(term)), "{of_b:?}");
}

#[test]
fn contributing_maps_every_crate_and_every_room_of_the_program() {
    let map = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    for folder in ["src", "crates"] {
        let inside = fs::read_dir(root().join(folder)).unwrap();
        for room in inside.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let named = format!("`{folder}/{}`", room.file_name().unwrap().to_string_lossy());
            assert!(map.contains(&named), "{named} is not in the map of CONTRIBUTING.md");
        }
    }
}

#[test]
fn log_lines_for_people_have_no_debug_forms() {
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let macros = ["tracing::info!(", "tracing::warn!(", "tracing::error!("];
            let events = macros.iter().flat_map(|name| program.split(name).skip(1));
            for event in events {
                let event = event.split(");").next().unwrap();
                let fields = event.split('"').next().unwrap();
                let is_debug = fields.split([',', ' ', '(']).any(|word| word.starts_with('?'));
                assert!(
                    !is_debug,
                    "{}: a field with `?` prints Rust's form: {fields}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn what_the_kits_builds_leave_is_not_for_the_repository() {
    let ignored = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".gitignore")).unwrap();
    for line in [
        "/kits/java/target",
        "/kits/node/node_modules",
        "/kits/python/*/build",
        "/kits/rust/target",
        "*.egg-info",
        "__pycache__",
    ] {
        assert!(
            ignored.lines().any(|known| known == line),
            "{line} is not in .gitignore"
        );
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
