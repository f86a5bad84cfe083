//! What a change costs in instructions: two programs under callgrind, loaded with the same operations.
//!
//! ```text
//! BASE ─ worktree ─ cargo build ─┐              ┌ fill ─ for each kind: warm up ─ few ─ many ─ few ─ many …
//!                                ├ two programs ┤
//! this checkout ─── cargo build ─┘              └ the same
//! ```
//! Callgrind counts the instructions that the server runs in user mode, so the machine's other work does not disturb the figure. Each round runs
//! few operations, then many; the difference leaves out what connecting, preparing and background work cost. The figure of a kind is the median
//! of its rounds. What the kernel does and how long memory takes is in no figure: `compat metering --against` has these.
//!
//! Both programs are built with this checkout's release profile, since a profile changes more than most commits do; `--as-shipped` builds
//! each with its own. A base's program is kept below the cache, so a second run builds only this checkout.

use crate::bench::{self, Kind, Load};
use crate::figures::median;
use crate::server::Server;
use crate::{Error, Outcome, tools};
use clap::Args;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What to compare, and how exactly.
#[derive(Debug, Args)]
pub struct Options {
    /// Commit to compare this checkout with.
    #[arg(required_unless_present = "program", conflicts_with = "program")]
    base: Option<String>,
    /// Measure this finished program in place of a build of this checkout.
    #[arg(long, requires = "against")]
    program: Option<PathBuf>,
    /// Measure that finished program in place of a build of the base.
    #[arg(long, requires = "program")]
    against: Option<PathBuf>,
    /// Build each program with the release profile of its own commit.
    #[arg(long, conflicts_with = "program")]
    as_shipped: bool,
    /// Largest ratio of instructions for an operation.
    #[arg(long, default_value_t = 1.02)]
    ratio_max: f64,
    /// Rounds of each kind of operation.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Kinds of operations to run; may be repeated. All when none is named.
    #[arg(long)]
    only: Vec<String>,
    /// Keep callgrind's files in this folder, for `callgrind_annotate`.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Operations of the two loads of a round.
#[derive(Debug, Clone, Copy)]
struct Counts {
    few: u64,
    many: u64,
}

/// As many that callgrind, some fifty times as slow as the processor, takes seconds for each.
fn counts(kind: &str) -> Counts {
    match kind {
        "slice" => Counts { few: 256, many: 2304 },
        "read" => Counts {
            few: 2560,
            many: 23_040,
        },
        _ => Counts { few: 1024, many: 9216 },
    }
}

/// The load: that of `compat bench` over fewer rows, since they are written under callgrind too.
fn load(only: &[String]) -> Load {
    Load {
        connections: 4,
        in_flight: 64,
        partitions: 10,
        only: only.to_vec(),
        ..Load::default()
    }
}

/// Runs it all and prints instructions for an operation; true unless a ratio is above the bound.
///
/// # Errors
/// When a program cannot be built, or a server does not start or refuses. [`Error::Skipped`] where there is no valgrind.
pub fn run(options: &Options) -> Outcome<bool> {
    tools::need("valgrind", "valgrind")?;
    tools::need("vgdb", "valgrind")?;
    let load = load(&options.only);
    let mut kinds: Vec<Kind> = bench::kinds().filter(|kind| load.asks_for(kind.name())).collect();
    if kinds.is_empty() {
        return Err(Error::failed("there is no such kind of operation"));
    }
    // Reads come before writes, so that both read the same rows.
    kinds.sort_by_key(|kind| !matches!(kind.name(), "read" | "slice"));
    let (this, other) = programs(options)?;
    let scratch = tempfile::tempdir()?;
    let folder = options.keep.as_deref().unwrap_or(scratch.path());
    let measure = |name: &str, program: &Path| {
        let files = folder.join(name);
        std::fs::create_dir_all(&files)?;
        measure(program, &kinds, options.rounds.max(1), &load, &files)
    };
    let theirs = measure("base", &other)?;
    let ours = measure("this", &this)?;
    println!(
        "server instructions for an operation: of the base, of this program, their ratio, least and largest of the rounds:"
    );
    let mut good = true;
    for ((kind, theirs), ours) in kinds.iter().zip(&theirs).zip(&ours) {
        let ratio = median(ours) / median(theirs);
        let is_missed = is_missed(ratio, options.ratio_max);
        good &= !is_missed;
        println!(
            "cpu: {:11} {:9.0} {:9.0}  ratio {ratio:.4}  base {}  this {}{}",
            kind.name(),
            median(theirs),
            median(ours),
            range(theirs),
            range(ours),
            if is_missed { "  FAILED" } else { "" },
        );
    }
    Ok(good)
}

/// Whether a ratio is above the bound; one that is no number is.
fn is_missed(ratio: f64, max: f64) -> bool {
    !ratio.is_finite() || ratio > max
}

/// The least and the largest of some numbers.
fn range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(0.0, f64::max);
    format!("[{least:.0}, {largest:.0}]")
}

// ── Measuring ───────────────────────────────────────────────────────────────────────────────────────────────────

/// Instructions for an operation: of each kind, of each round.
fn measure(program: &Path, kinds: &[Kind], rounds: u64, load: &Load, files: &Path) -> Outcome<Vec<Vec<f64>>> {
    let folder = tempfile::tempdir()?;
    let mut traced = Traced::start(program, folder.path(), files)?;
    bench::prepare(traced.server.address(), load)?;
    let mut measured = Vec::new();
    let mut round = 0;
    for kind in kinds {
        let Counts { few, many } = counts(kind.name());
        let mut count = |traced: &mut Traced, operations: u64, name: &str| {
            round += 1;
            traced.count(*kind, load, operations, round, name)
        };
        count(&mut traced, few, "warm-up")?;
        let mut each = Vec::new();
        for _ in 0..rounds {
            let fewer = count(&mut traced, few, "few")?;
            let more = count(&mut traced, many, "many")?;
            each.push(for_an_operation(fewer, more));
        }
        println!("{} {}: {}", program.display(), kind.name(), range(&each));
        measured.push(each);
    }
    if traced.server.panics() > 0 {
        return Err(Error::failed("a server's log tells of a panic"));
    }
    Ok(measured)
}

/// What a load did, and what it cost.
#[derive(Debug, Clone, Copy)]
struct Counted {
    operations: u64,
    instructions: u64,
}

/// Instructions for one operation, by two loads of which one does more.
fn for_an_operation(fewer: Counted, more: Counted) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let difference = |more: u64, fewer: u64| more as f64 - fewer as f64;
    difference(more.instructions, fewer.instructions) / difference(more.operations, fewer.operations)
}

/// A server under callgrind.
#[derive(Debug)]
struct Traced {
    server: Server,
    /// Takes callgrind's files.
    files: PathBuf,
    /// Files that callgrind has written.
    dumps: usize,
}

impl Traced {
    fn start(program: &Path, folder: &Path, files: &Path) -> Outcome<Self> {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--tool=callgrind"]);
        command.arg(format!("--callgrind-out-file={}", files.join("out").display()));
        command
            .arg(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(format!("file:{}", folder.join("data").display()));
        Ok(Self {
            server: Server::spawn(command, folder)?,
            files: files.to_owned(),
            dumps: 0,
        })
    }

    /// Runs so many operations, and counts the instructions of the server.
    fn count(&mut self, kind: Kind, load: &Load, operations: u64, round: u64, name: &str) -> Outcome<Counted> {
        self.dump()?;
        let operations = kind.count(self.server.address(), load, operations, round)?;
        let file = self.dump()?;
        let instructions = totals(&std::fs::read_to_string(&file).map_err(Error::io("read callgrind's file"))?)?;
        std::fs::rename(&file, self.files.join(format!("{}-{round}-{name}", kind.name())))?;
        Ok(Counted {
            operations,
            instructions,
        })
    }

    /// Has callgrind write what it has counted since it last did; the file.
    fn dump(&mut self) -> Outcome<PathBuf> {
        tools::run("vgdb", [format!("--pid={}", self.server.pid()), "dump".to_owned()])?;
        self.dumps += 1;
        Ok(self.files.join(format!("out.{}", self.dumps)))
    }
}

/// The instructions in a file of callgrind.
fn totals(text: &str) -> Outcome<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    line.and_then(|total| total.trim().parse().ok())
        .ok_or(Error::Malformed("a file of callgrind has no total"))
}

// ── Building ────────────────────────────────────────────────────────────────────────────────────────────────────

/// This checkout's program and the base's.
fn programs(options: &Options) -> Outcome<(PathBuf, PathBuf)> {
    if let (Some(this), Some(other)) = (&options.program, &options.against) {
        return Ok((this.clone(), other.clone()));
    }
    let base = options.base.as_deref().unwrap_or("HEAD");
    let root = crate::here("..");
    let cache = cache()?.join("cpu");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"));
    let manifest = manifest.map_err(Error::io(
        "read Cargo.toml of the checkout that this program was built from",
    ))?;
    let profile = profile(&manifest)?;
    let other = build_base(
        &root,
        base,
        if options.as_shipped { None } else { Some(&profile) },
        &cache,
    )?;
    let this = build(&root, &cache.join("this"), &[])?;
    Ok((this, other))
}

/// Where downloads and builds of these runs are kept.
fn cache() -> Outcome<PathBuf> {
    if let Some(named) = std::env::var_os("HELENUS_COMPAT_CACHE") {
        return Ok(named.into());
    }
    let home = std::env::var_os("HOME").ok_or_else(|| Error::failed("set HOME or HELENUS_COMPAT_CACHE"))?;
    Ok(PathBuf::from(home).join(".cache/helenus-compat"))
}

/// The program of a commit: built in a worktree that is removed afterwards, and kept.
fn build_base(root: &Path, base: &str, profile: Option<&[Setting]>, cache: &Path) -> Outcome<PathBuf> {
    let git = |arguments: &[&str]| tools::run("git", [&["-C", &root.to_string_lossy()], arguments].concat());
    let commit = git(&["rev-parse", "--verify", &format!("{base}^{{commit}}")])?;
    let commit = commit.trim();
    let kept = cache
        .join("programs")
        .join(key(commit, profile, &tools::run("rustc", ["-vV"])?));
    if kept.exists() {
        return Ok(kept);
    }
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("tree");
    git(&["worktree", "add", "--detach", &tree.to_string_lossy(), commit])?;
    let built = (|| {
        let arguments = match profile {
            None => Vec::new(),
            Some(profile) => arguments(
                profile,
                &self::profile(&std::fs::read_to_string(tree.join("Cargo.toml"))?)?,
            )?,
        };
        build(&tree, &cache.join("base"), &arguments)
    })();
    git(&["worktree", "remove", "--force", &tree.to_string_lossy()])?;
    std::fs::create_dir_all(cache.join("programs"))?;
    // A copy that was cut short is no program: it gets its name when it is whole.
    let copying = kept.with_extension("copying");
    std::fs::copy(built?, &copying)?;
    std::fs::rename(&copying, &kept)?;
    Ok(kept)
}

/// What a base's program is kept under: the same commit, profile and compiler make the same program.
fn key(commit: &str, profile: Option<&[Setting]>, compiler: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (profile, compiler).hash(&mut hasher);
    format!("{commit}-{:016x}", hasher.finish())
}

/// Builds the server of a checkout.
fn build(root: &Path, target: &Path, arguments: &[String]) -> Outcome<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "helenus",
        "--bin",
        "helenus",
    ]);
    cargo.args(arguments).env("CARGO_TARGET_DIR", target);
    cargo.current_dir(root).stdin(Stdio::null());
    let status = cargo.status().map_err(Error::io("run cargo"))?;
    if !status.success() {
        return Err(Error::failed(format!(
            "cargo build in {} failed ({status})",
            root.display()
        )));
    }
    Ok(target.join("release/helenus"))
}

/// A setting of the release profile: its path, as `package.helenus.codegen-units`, and its value as TOML has it.
type Setting = (String, String);

/// The release profile of a manifest, sorted by path.
fn profile(manifest: &str) -> Outcome<Vec<Setting>> {
    let manifest: toml::Table = manifest
        .parse()
        .map_err(|error| Error::failed(format!("Cargo.toml: {error}")))?;
    let release = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    let mut settings = Vec::new();
    if let Some(release) = release {
        flatten(release, "", &mut settings);
    }
    settings.sort();
    Ok(settings)
}

fn flatten(value: &toml::Value, path: &str, settings: &mut Vec<Setting>) {
    let toml::Value::Table(table) = value else {
        settings.push((path.to_owned(), value.to_string()));
        return;
    };
    for (name, value) in table {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        flatten(value, &path, settings);
    }
}

/// Cargo's arguments that give a checkout with the profile `own` the profile `wanted`.
///
/// # Errors
/// When `own` has a setting that `wanted` lacks: an argument cannot take a setting back.
fn arguments(wanted: &[Setting], own: &[Setting]) -> Outcome<Vec<String>> {
    for (path, _) in own {
        if !wanted.iter().any(|(wanted, _)| wanted == path) {
            return Err(Error::failed(format!(
                "the base sets profile.release.{path}, which this checkout does not: set it here, or compare with --as-shipped"
            )));
        }
    }
    let argument = |(path, value): &Setting| ["--config".to_owned(), format!("profile.release.{path}={value}")];
    Ok(wanted.iter().flat_map(argument).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"a\"\n[profile.dev]\ndebug = 1\n[profile.release]\ndebug = \"line-tables-only\"\n\
        [profile.release.package.helenus]\ncodegen-units = 1\n";

    #[test]
    fn a_profile_becomes_arguments_of_cargo() {
        let wanted = profile(MANIFEST).unwrap();
        let own = profile("[profile.release]\ndebug = true").unwrap();
        assert_eq!(
            arguments(&wanted, &own).unwrap(),
            [
                "--config",
                "profile.release.debug=\"line-tables-only\"",
                "--config",
                "profile.release.package.helenus.codegen-units=1"
            ]
        );
        assert!(profile("[package]\nname = \"a\"").unwrap().is_empty());
    }

    #[test]
    fn a_setting_that_only_the_base_has_is_refused_by_name() {
        let own = profile("[profile.release]\nlto = \"thin\"").unwrap();
        let error = arguments(&profile(MANIFEST).unwrap(), &own).unwrap_err();
        assert!(error.to_string().contains("profile.release.lto"), "{error}");
    }

    #[test]
    fn a_program_is_kept_by_commit_profile_and_compiler() {
        let profile = profile(MANIFEST).unwrap();
        let kept = key("c0ffee", Some(&profile), "rustc 1");
        assert_eq!(kept, key("c0ffee", Some(&profile), "rustc 1"));
        assert!(kept.starts_with("c0ffee-"));
        for other in [
            key("decaf", Some(&profile), "rustc 1"),
            key("c0ffee", None, "rustc 1"),
            key("c0ffee", Some(&profile), "rustc 2"),
        ] {
            assert_ne!(kept, other);
        }
    }

    #[test]
    fn what_both_loads_cost_alike_is_in_no_figure() {
        let few = Counted {
            operations: 100,
            instructions: 5_000 + 100 * 70,
        };
        let many = Counted {
            operations: 900,
            instructions: 5_000 + 900 * 70,
        };
        assert_eq!(for_an_operation(few, many), 70.0);
    }

    #[test]
    fn the_total_is_read_from_the_end_of_a_file() {
        assert_eq!(
            totals("version: 1\nfn=(1) totals\n1 2\n\ntotals: 1234567\n").unwrap(),
            1_234_567
        );
        assert!(totals("version: 1\n").is_err());
    }

    #[test]
    fn a_ratio_is_missed_above_the_bound_and_when_it_is_no_number() {
        assert!(!is_missed(1.02, 1.02));
        assert!(is_missed(1.0201, 1.02));
        assert!(is_missed(median(&[]) / 1.0, 1.02));
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
