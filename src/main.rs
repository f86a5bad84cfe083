//! The `helenus` program: arguments → settings → server.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};
use helenus::advice::{self, Script};
use helenus::clock::Clock;
use helenus::config::{Config, LogFormat, SETTINGS, Setting, Values, variable};
use helenus::permissions;
use helenus::server::admin::{client, print};
use helenus::server::log::HumanFields;
use helenus::server::run::{Running, THREAD_STACK_BYTES};
use tokio::signal::unix::{SignalKind, signal};

/// Values are made by one thread and freed by another, which the C library's allocator is slow at. For the program only: a test
/// that embeds the server keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code when data can no longer be read: EX_IOERR of sysexits.h. A supervisor should start the server again, once, and then look at
/// the disk.
const EXIT_LOST: u8 = 74;

/// What went wrong, for the person who started the program.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(&command().get_matches()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("helenus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn argument(setting: &Setting) -> Arg {
    let is_flag = setting.value == "BOOL";
    let mut help = format!("{} [env: {}]", setting.help, variable(setting.name));
    if let Some(default) = setting.default {
        help = format!("{help} [default: {default}]");
    }
    let argument = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.value)
        .help(help)
        .global(true);
    if is_flag {
        return argument
            .num_args(0..=1)
            .default_missing_value("true")
            .require_equals(true);
    }
    argument.action(if setting.repeatable {
        ArgAction::Append
    } else {
        ArgAction::Set
    })
}

fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .global(true)
        .help("Configuration file: TOML, one key for each setting [env: HELENUS_CONFIG]");
    Command::new("helenus")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .after_help(
            "Exit codes: 0 stopped as asked, 1 could not start or a command failed, 2 unknown argument, 74 data can no longer be read",
        )
        .arg(config)
        .args(SETTINGS.iter().map(argument))
        .subcommand(Command::new("serve").about("Serve CQL; also without a command"))
        .subcommand(check_command())
        .subcommand(
            Command::new("check-indexes")
                .about("Compare the entries of secondary indexes with their rows; no server may have the data open"),
        )
        .subcommand(
            Command::new("status")
                .about("Print what a running server says of itself; needs its admin-listen")
                .arg(
                    Arg::new("json")
                        .long("json")
                        .action(ArgAction::SetTrue)
                        .help("For programs: one JSON object"),
                ),
        )
        .subcommand(
            Command::new("shell")
                .about("Start cqlsh against the server, or print how")
                .arg(
                    Arg::new("arguments")
                        .num_args(0..)
                        .last(true)
                        .help("Passed on to cqlsh"),
                ),
        )
        .subcommand(
            Command::new("completions").about("Print completions for a shell").arg(
                Arg::new("shell")
                    .required(true)
                    .value_parser(clap::value_parser!(clap_complete::Shell)),
            ),
        )
}

fn check_command() -> Command {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    Command::new("check")
        .about("Advise on a data model; without a file print the effective settings and where each comes from")
        .arg(Arg::new("schema").value_name("SCHEMA.CQL").help(
            "Statements that make the schema; with --data the data there is looked at too, while no server has it open",
        ))
        .arg(
            option("queries", "FILE")
                .requires("schema")
                .help("Statements that are asked, with ? where values are"),
        )
        .arg(
            option("format", "FORMAT")
                .requires("schema")
                .value_parser(["text", "json", "sarif"])
                .default_value("text")
                .help("For people, for programs, or SARIF 2.1.0"),
        )
        .arg(
            option("fail-on", "LEVEL")
                .requires("schema")
                .value_parser(["note", "warning", "error", "never"])
                .default_value("error")
                .help("Fail when something of this level or a higher one is found"),
        )
        .arg(
            option("keyspace", "NAME")
                .requires("schema")
                .default_value("app")
                .help("Where tables without a keyspace are, until a USE"),
        )
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, inner) = matches.subcommand().unwrap_or(("serve", matches));
    if name == "completions" {
        if let Some(shell) = inner.get_one::<clap_complete::Shell>("shell") {
            clap_complete::generate(*shell, &mut command(), "helenus", &mut std::io::stdout());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let values = gather(inner)?;
    match name {
        "check" => match inner.get_one::<String>("schema") {
            Some(schema) => advise(&values, inner, schema),
            None => check(&values),
        },
        "check-indexes" => check_indexes(&Config::new(&values)?),
        "status" => status(&values, inner.get_flag("json")),
        "shell" => shell(&values, inner.get_many::<String>("arguments").unwrap_or_default()),
        _ => serve(&Config::new(&values)?),
    }
}

fn gather(matches: &ArgMatches) -> Result<Values, Failure> {
    let mut given = BTreeMap::new();
    for setting in SETTINGS {
        if let Some(values) = matches.get_many::<String>(setting.name) {
            given.insert(setting.name.to_owned(), values.cloned().collect());
        }
    }
    let environment = |name: &str| std::env::var(name).ok();
    let file = matches
        .get_one::<String>("config")
        .cloned()
        .or_else(|| environment("HELENUS_CONFIG"));
    Ok(Values::gather(file.as_deref().map(Path::new), &given, environment)?)
}

/// Prints every setting as TOML, with its origin as a comment, and judges them.
fn check(values: &Values) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout().lock();
    for (setting, values, origin) in values.iter() {
        let quoted: Vec<String> = values
            .iter()
            .map(|value| toml::Value::from(value.as_str()).to_string())
            .collect();
        let value = match (quoted.as_slice(), setting.repeatable) {
            ([_, ..], _) if setting.name == "account-key" => {
                writeln!(out, "# {} is set  # {origin}", setting.name)?;
                continue;
            }
            ([], _) => {
                writeln!(out, "# {} is not set", setting.name)?;
                continue;
            }
            ([one], false) => one.clone(),
            (all, _) => format!("[{}]", all.join(", ")),
        };
        writeln!(out, "{} = {value}  # {origin}", setting.name)?;
    }
    let config = Config::new(values)?;
    writeln!(
        out,
        "# data in {}, served on {}",
        config.data,
        list(&config.server.listen)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Looks at a data model, and at data where some is given on the command line.
fn advise(values: &Values, matches: &ArgMatches, schema: &str) -> Result<ExitCode, Failure> {
    let read = |file: &str| match std::fs::read_to_string(file) {
        Ok(text) => Ok(Script::new(file, &text)),
        Err(error) => Err(format!("cannot read {file}: {error}")),
    };
    let option = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let schema = read(schema)?;
    let queries = option("queries").map(read).transpose()?;
    let clock = Clock::system();
    let today = clock.wall_seconds().div_euclid(86_400);
    // The setting has a default, and nobody's data shall be looked at unasked.
    let mut bytes_max = advice::LOGICAL_BYTES_MAX;
    let figures = match option("data") {
        None => None,
        Some(_) => {
            permissions::keep_new_files_private();
            let config = Config::new(values)?;
            bytes_max = config.limits.logical_partition_bytes_max.unwrap_or(bytes_max);
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            Some(runtime.block_on(helenus::server::survey::survey(&config, clock, seed()?))?)
        }
    };
    let found = advice::advise(&advice::Input {
        schema: &schema,
        queries: queries.as_ref(),
        keyspace: option("keyspace").unwrap_or("app"),
        figures: figures.as_deref(),
        logical_bytes_max: bytes_max,
        today,
    });
    let mut out = std::io::stdout().lock();
    match option("format") {
        Some("json") => writeln!(out, "{:#}", advice::json(&found, bytes_max, today))?,
        Some("sarif") => writeln!(out, "{:#}", advice::sarif(&found))?,
        _ => out.write_all(advice::text(&found, bytes_max, today).as_bytes())?,
    }
    let fails = match option("fail-on") {
        Some("never") => None,
        Some("note") => Some(advice::Level::Note),
        Some("warning") => Some(advice::Level::Warning),
        _ => Some(advice::Level::Error),
    };
    Ok(if fails.is_some_and(|least| found.worst() >= Some(least)) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Asks the admin port of a running server and prints what it says.
fn status(values: &Values, is_json: bool) -> Result<ExitCode, Failure> {
    let address = values.admin_listen()?.ok_or(
        "the server's admin port is not known: give --admin-listen ADDRESS:PORT (or HELENUS_ADMIN_LISTEN) here as to the server",
    )?;
    let everything = client::everything(address)?;
    let mut out = std::io::stdout().lock();
    if is_json {
        serde_json::to_writer(&mut out, &everything)?;
        writeln!(out)?;
    } else {
        out.write_all(print::text(&everything).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The first cqlsh on the search path.
fn find_cqlsh() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("cqlsh"))
        .find(|file| file.is_file())
}

fn shell<'a>(values: &Values, arguments: impl Iterator<Item = &'a String>) -> Result<ExitCode, Failure> {
    let config = Config::new(values)?;
    let address = config
        .server
        .listen
        .first()
        .copied()
        .ok_or("no address to connect to")?;
    let host = if address.ip().is_unspecified() {
        "127.0.0.1".to_owned()
    } else {
        address.ip().to_string()
    };
    let mut words = vec![host, address.port().to_string()];
    if let Some(credentials) = &config.server.credentials {
        words.extend(["-u".to_owned(), credentials.user.clone()]);
    }
    words.extend(arguments.cloned());
    let Some(cqlsh) = find_cqlsh() else {
        println!(
            "cqlsh is not on the search path. To use it:\n\n    pip install cqlsh\n    cqlsh {}",
            words.join(" ")
        );
        return Ok(ExitCode::FAILURE);
    };
    let status = Process::new(cqlsh).args(words).status()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

fn log(config: &Config) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log)?;
    let human = match config.log_format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    if human {
        builder.fmt_fields(HumanFields).init();
    } else {
        builder.json().init();
    }
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(%panic, %backtrace, "panic");
    }));
    Ok(())
}

fn serve(config: &Config) -> Result<ExitCode, Failure> {
    log(config)?;
    permissions::keep_new_files_private();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.threads > 0 {
        builder.worker_threads(config.threads);
    }
    let runtime = builder.enable_all().thread_stack_size(THREAD_STACK_BYTES).build()?;
    runtime.block_on(async {
        // Registered before anything is opened, so that a signal at any moment closes what is open.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let running = Running::start(config, Clock::system(), seed()?).await?;
        announce(config, &running)?;
        let lost = loop {
            tokio::select! {
                _ = terminate.recv() => break None,
                _ = interrupt.recv() => break None,
                why = running.until_lost() => break Some(why),
                _ = hang_up.recv() => running.look_at_certificate(true),
            }
        };
        tracing::info!(connections = running.server().connections(), "stopping");
        let stopped = running.stop().await;
        if let Some(why) = lost {
            tracing::error!(
                why,
                code = EXIT_LOST,
                "data can no longer be read; look at the disk and start again"
            );
            return Ok(ExitCode::from(EXIT_LOST));
        }
        stopped?;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    })
}

/// Opens the data, compares, prints what it found. Fails when something differs.
fn check_indexes(config: &Config) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let found = runtime.block_on(helenus::server::run::check_indexes(config, Clock::system(), seed()?))?;
    for difference in &found.told {
        println!("{difference}");
    }
    println!(
        "{} indexes, {} entries, {} differences; {} indexes are being built",
        found.indexes, found.entries, found.differences, found.building
    );
    Ok(if found.differences == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The one draw from the system's randomness.
fn seed() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Says that the server answers: the banner, then those who wait for it.
fn announce(config: &Config, running: &Running) -> Result<(), Failure> {
    let server = running.server();
    let login = if config.server.credentials.is_some() || running.identity().is_some() {
        "required"
    } else {
        "none"
    };
    println!(
        "helenus {} serves CQL on {}{}\n  data {}, durability {}, login {login}",
        env!("CARGO_PKG_VERSION"),
        match (server.addresses(), server.tls_addresses()) {
            (plain, []) => list(plain),
            ([], tls) => format!("{} with TLS", list(tls)),
            (plain, tls) => format!("{}, with TLS on {}", list(plain), list(tls)),
        },
        running
            .admin_address()
            .map(|address| format!(", figures on http://{address}"))
            .unwrap_or_default(),
        config.data,
        config.durability,
    );
    if let Some(identity) = running.identity() {
        println!("  profile cosmos, account {}", config.account_name);
        if let Some(key) = identity.account_key() {
            println!("  account key {key}");
        }
        match (identity.certificate(), identity.certificate_path()) {
            (Some(_), Some(path)) => println!("  self-made certificate {}", path.display()),
            (Some(_), None) => println!("  self-made certificate, in memory only"),
            (None, _) => {}
        }
    }
    std::io::stdout().flush()?;
    tracing::info!(
        addresses = %list(server.addresses()),
        tls_addresses = %list(server.tls_addresses()),
        data = %config.data,
        durability = %config.durability,
        "serving"
    );
    let Some(first) = server.addresses().first().or_else(|| server.tls_addresses().first()) else {
        return Ok(());
    };
    if let Some(number) = config.ready_fd {
        // By its path, since taking over a number that someone else has opened is not safe code.
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(format!("/dev/fd/{number}"))?;
        writeln!(file, "{first}")?;
    }
    if let Some(path) = &config.ready_file {
        // Renamed into place, so that whoever waits for the file finds the whole address in it.
        // Anybody may read it: an address is no secret.
        permissions::write(path, &format!("{first}\n"), permissions::PUBLIC)?;
    }
    Ok(())
}
