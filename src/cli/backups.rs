//! `helenus backup`, `restore`, `salvage`, `export` and `import`.

use std::error::Error;
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::progress;
use super::terminal::{self, count};
use crate::assembly::offline;
use crate::assembly::run::THREAD_STACK_BYTES;
use crate::config::Config;
use crate::server::operator::text::Form;
use crate::server::operator::{self, Ask, Came};
use helenus_base::clock::Clock;
use helenus_base::permissions;
use helenus_base::progress::Progress;
use helenus_engine::engine::{RestoredRoles, What};
use helenus_storage::backup::Scope;

/// An error for the user of the command line.
type Failure = Box<dyn Error>;

/// Executes one of these commands.
///
/// # Errors
/// The reason for the failure, for people.
pub fn run(name: &str, config: &Config, seed: u64, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match name {
        "backup" => backup(config, seed, matches),
        "restore" => restore(config, seed, matches),
        "salvage" => salvage(config, matches),
        "export" => export(config, seed, matches),
        _ => import(config, seed, matches),
    }
}

/// The arguments of `helenus backup`.
#[must_use]
pub fn backup_arguments(command: Command) -> Command {
    command
        .arg(
            option("to", "DIR")
                .required(true)
                .help("Where: a directory that is new or empty; a running server writes it"),
        )
        .arg(
            option("keyspace", "NAME")
                .help("Only this keyspace")
                .conflicts_with("table"),
        )
        .arg(option("table", "KEYSPACE.TABLE").help("Only this table"))
}

/// The arguments of `helenus export`.
#[must_use]
pub fn export_arguments(command: Command) -> Command {
    command
        .arg(option("table", "KEYSPACE.TABLE").required(true).help("The table"))
        .arg(format_option())
        .arg(option("to", "FILE").required(true).help("A file that is not there yet"))
}

/// The arguments of `helenus import`.
#[must_use]
pub fn import_arguments(command: Command) -> Command {
    command
        .arg(option("table", "KEYSPACE.TABLE").required(true).help("The table"))
        .arg(format_option())
        .arg(option("from", "FILE").required(true).help("The file"))
        .arg(
            option("max-errors", "ROWS")
                .value_parser(clap::value_parser!(u64))
                .default_value("0")
                .help("Bad rows that do not end the import; each is named by its line"),
        )
}

fn format_option() -> Arg {
    option("format", "FORMAT")
        .value_parser(["csv", "json"])
        .default_value("csv")
        .help("CSV with a line of column names, or one JSON object a line")
}

/// The arguments of `helenus restore`.
#[must_use]
pub fn restore_arguments(command: Command) -> Command {
    command
        .arg(option("from", "DIR").required(true).help("The backup"))
        .arg(
            option("keyspace", "NAME")
                .help("Only this keyspace, into data that is there")
                .conflicts_with("table"),
        )
        .arg(option("table", "KEYSPACE.TABLE").help("Only this table, into a keyspace that is there"))
        .arg(option("as", "NAME").help("Under this name: a keyspace, or KEYSPACE.TABLE"))
        .arg(
            Arg::new("add")
                .long("add")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["keyspace", "table"])
                .help("All keyspaces of the backup, into data that is there and has none of them"),
        )
}

/// The arguments of `helenus salvage`.
#[must_use]
pub fn salvage_arguments(command: Command) -> Command {
    command
        .after_help(
            "Exit code 0: everything was read. 3: something is missing or may be old; standard output says what. 1: nothing was written.",
        )
        .arg(
            option("to", "DIR")
                .required(true)
                .help("Where: a directory that is new or empty, for helenus restore"),
        )
}

fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value)
}

/// A table's keyspace and name, as the schema has them.
fn table_name(text: &str) -> Result<(String, String), Failure> {
    let (keyspace, table) = text
        .split_once('.')
        .filter(|(keyspace, table)| !keyspace.is_empty() && !table.is_empty())
        .ok_or_else(|| format!("{text} names no table: write KEYSPACE.TABLE"))?;
    Ok((keyspace.to_owned(), table.to_owned()))
}

/// Sends the request to the running server of the data directory; without a running server, works on the directory
/// itself.
fn carry_out(config: &Config, seed: u64, ask: Ask) -> Result<Came, Failure> {
    permissions::keep_new_files_private();
    let folder = offline::operator_folder(config)?;
    let counted = Arc::new(Progress::default());
    let verb = match &ask {
        Ask::Backup { .. } => "backup",
        Ask::Export { .. } => "export",
        Ask::Import { .. } => "import",
    };
    let work = async {
        let asked = match folder {
            Some(folder) => {
                let (ask, counted) = (ask.clone(), Arc::clone(&counted));
                tokio::task::spawn_blocking(move || operator::client::ask(&folder, &ask, &counted)).await??
            }
            None => None,
        };
        match asked {
            Some(came) => Ok::<_, Failure>(came),
            None => Ok(offline::carry_out(config, Clock::system(), seed, ask).await?),
        }
    };
    let runtime = runtime()?;
    let came = runtime.block_on(progress::shown(verb, Arc::clone(&counted), work));
    // After Ctrl-C a thread may still wait for the server.
    runtime.shutdown_background();
    match came? {
        Came::Refused(why) => Err(why.into()),
        came => Ok(came),
    }
}

/// The runtime of work on data that no server has open.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(THREAD_STACK_BYTES)
        .build()
}

fn form(matches: &ArgMatches) -> Form {
    match matches.get_one::<String>("format").map(String::as_str) {
        Some("json") => Form::Json,
        _ => Form::Csv,
    }
}

/// The absolute path that `to` names.
fn folder_or_file(to: &str) -> Result<PathBuf, Failure> {
    if to.contains("://") {
        return Err(
            format!("to: {to} is a URL; backups and exports are written to a folder or file of this machine").into(),
        );
    }
    Ok(std::path::absolute(to)?)
}

fn export(config: &Config, seed: u64, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    // A running server writes the file itself, and has another standard output.
    if given("to") == "-" {
        return Err(
            "to: export writes a file only, and - is not taken for standard output; ./- is a file of that name".into(),
        );
    }
    let to = folder_or_file(&given("to"))?;
    if to.symlink_metadata().is_ok() {
        return Err(format!(
            "to: {} exists already, and export overwrites nothing: name another file, or remove this one",
            to.display()
        )
        .into());
    }
    let ask = Ask::Export {
        table: table_name(&given("table"))?,
        form: form(matches),
        to: to.clone(),
    };
    if let Came::Exported(rows) = carry_out(config, seed, ask)? {
        println!("{} in {}", count(rows, "row"), to.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Bytes of a file that show whether it is JSON.
const HEAD_BYTES: u64 = 1024;

/// Whether a file begins as JSON does. No line of column names begins so.
fn looks_like_json(file: &str) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    read.is_ok() && matches!(first, Some(b'{' | b'['))
}

fn import(config: &Config, seed: u64, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    // A running server reads the file itself, and has another standard input.
    if std::fs::metadata(given("from")).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{} is no regular file: import reads files only", given("from")).into());
    }
    let is_form_given = matches.value_source("format") == Some(ValueSource::CommandLine);
    if !is_form_given && looks_like_json(&given("from")) {
        return Err(format!(
            "{} looks like JSON: give --format json, and one JSON object a line",
            given("from")
        )
        .into());
    }
    let ask = Ask::Import {
        table: table_name(&given("table"))?,
        form: form(matches),
        from: std::path::absolute(given("from"))?,
        bad_max: matches.get_one::<u64>("max-errors").copied().unwrap_or(0),
    };
    let Came::Imported(imported) = carry_out(config, seed, ask)? else {
        return Err("another answer came than that of an import".into());
    };
    for bad in &imported.named {
        terminal::say(format_args!("{}: {}", bad.lines, bad.reason));
    }
    for lines in &imported.others {
        terminal::say(format_args!("{lines}: bad too"));
    }
    println!("{} imported, {} bad", count(imported.rows, "row"), imported.bad);
    if let Some(unread) = imported.unread {
        return Err(unread.into());
    }
    Ok(ExitCode::SUCCESS)
}

fn backup(config: &Config, seed: u64, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    let given = |name: &str| matches.get_one::<String>(name).cloned();
    let scope = match (given("keyspace"), given("table")) {
        (Some(keyspace), _) => Scope::Keyspace { keyspace },
        (None, Some(name)) => {
            let (keyspace, table) = table_name(&name)?;
            Scope::Table { keyspace, table }
        }
        (None, None) => Scope::Whole,
    };
    let to = folder_or_file(&given("to").unwrap_or_default())?;
    let ask = Ask::Backup { to: to.clone(), scope };
    let Came::Backup(figures) = carry_out(config, seed, ask)? else {
        return Err("another answer came than that of a backup".into());
    };
    println!(
        "{}, {}, {} in {}; writes waited {:.1} ms",
        count(figures.tables, "table"),
        count(figures.rows, "stored row"),
        count(figures.bytes, "byte"),
        to.display(),
        figures.held_micros as f64 / 1000.0
    );
    if figures.has_roles {
        println!("the backup has the roles and the hashes of their passwords");
    }
    Ok(ExitCode::SUCCESS)
}

/// Exit code of a salvage with unreadable data.
const INCOMPLETE: u8 = 3;

/// Runs what reads damaged files: engines panic on some damage, which is caught and reported as a line. Only a panic that
/// ends the work is printed.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let last = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&last);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let worked = std::panic::catch_unwind(AssertUnwindSafe(work));
    std::panic::set_hook(hook);
    worked.unwrap_or_else(|panic| {
        eprintln!("{}", last.lock().unwrap_or_else(PoisonError::into_inner));
        std::panic::resume_unwind(panic)
    })
}

fn salvage(config: &Config, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    let to = matches.get_one::<String>("to").cloned().unwrap_or_default();
    let to = std::path::absolute(to)?;
    let runtime = runtime()?;
    let work = offline::salvage(config, Clock::system(), &to);
    let salvaged = quietly(|| runtime.block_on(progress::shown("salvage", Arc::default(), work)))?;
    let manifest = &salvaged.manifest;
    for table in &manifest.tables {
        let name = format!("{}.{}", table.keyspace, table.table);
        let state = match salvaged.incomplete.contains(&name) {
            true => "INCOMPLETE",
            false => "complete",
        };
        println!(
            "{name}: {}, {}; {state}",
            count(table.rows, "row"),
            count(table.deletions + table.late, "deletion")
        );
    }
    for lost in &manifest.lost {
        println!("lost: {}: {}", lost.place, lost.what);
    }
    println!("helenus restore --from {} restores what was read", to.display());
    if manifest.lost.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "Something is missing. Where changes are missing, rows may be older than they were, and deleted rows may be back."
    );
    Ok(ExitCode::from(INCOMPLETE))
}

fn restore(config: &Config, seed: u64, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    let given = |name: &str| matches.get_one::<String>(name).cloned();
    let what = match (given("keyspace"), given("table")) {
        (Some(keyspace), _) => What::Keyspace {
            to: given("as").unwrap_or_else(|| keyspace.clone()),
            keyspace,
        },
        (None, Some(table)) => What::Table {
            from: table_name(&table)?,
            to: table_name(&given("as").unwrap_or(table))?,
        },
        (None, None) if given("as").is_some() => return Err("--as needs --keyspace or --table".into()),
        (None, None) => What::All,
    };
    let from = PathBuf::from(given("from").unwrap_or_default());
    let clock = Clock::system();
    let is_anew = what == What::All && !matches.get_flag("add");
    let work = async {
        match is_anew {
            true => offline::restore_anew(config, clock, seed, &from).await,
            false => offline::restore_beside(config, clock, seed, &from, &what).await,
        }
    };
    let restored = runtime()?.block_on(progress::shown("restore", Arc::default(), work))?;
    println!(
        "{}, {} in {}",
        count(restored.tables, "table"),
        count(restored.rows, "stored row"),
        config.data
    );
    match restored.roles {
        RestoredRoles::None => {}
        RestoredRoles::Restored => println!("the roles, their passwords and permissions are restored"),
        RestoredRoles::LeftOut => println!("the roles of the backup are left out, because the database has roles"),
    }
    if restored.lost > 0 {
        println!(
            "the backup is of a salvage: {} things are missing, which its manifest.json names under \"lost\"",
            restored.lost
        );
    }
    Ok(ExitCode::SUCCESS)
}
