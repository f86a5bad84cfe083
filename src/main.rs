//! The `helenus` program: arguments → settings → server.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use helenus::advice::{self, Script};
use helenus::cli::record::{ServerRecord, Written};
use helenus::cli::{self, backups, warnings};
use helenus::clock::Clock;
use helenus::config::{Config, LogFormat, Origin, SECRETS, SETTINGS, Setting, Values, variable};
use helenus::permissions;
use helenus::server::admin::client;
use helenus::server::log::HumanFields;
use helenus::server::run::{Running, THREAD_STACK_BYTES};
use helenus::views::print;
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
        // The reader of our output, such as `head`, has seen enough.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("helenus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
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
        .subcommands(backups::commands())
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
        "backup" | "restore" | "salvage" | "export" | "import" => {
            backups::run(name, &Config::new(&values)?, seed()?, inner)
        }
        "status" => status(&values, inner.get_flag("json")),
        "shell" => shell(&values, inner.get_many::<String>("arguments").unwrap_or_default()),
        _ => {
            let config = Config::new(&values)?;
            for warning in warnings::of_profile(&values, config.profile.is_cosmos()) {
                eprintln!("helenus: warning: {warning}");
            }
            serve(&config)
        }
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
    let values = Values::gather(file.as_deref().map(Path::new), &given, environment)?;
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in warnings::of_environment(names) {
        eprintln!("helenus: warning: {warning}");
    }
    Ok(values)
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
            ([_, ..], _) if SECRETS.contains(&setting.name) => {
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
    let address = match values.admin_listen()? {
        Some(address) => address,
        None => admin_of_running_server(values)?,
    };
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

/// The admin port of the server that has the data open.
fn admin_of_running_server(values: &Values) -> Result<SocketAddr, Failure> {
    let config = Config::new(values)?;
    match running_server(&config)? {
        Some(ServerRecord { admin: Some(admin), .. }) => Ok(admin.parse()?),
        Some(ServerRecord { admin: None, .. }) => {
            Err("the server's admin port is off: start it with --admin-listen ADDRESS:PORT".into())
        }
        None => Err(format!(
            "no server has {} open: give --data as to the server, or --admin-listen ADDRESS:PORT (or HELENUS_ADMIN_LISTEN)",
            config.data
        )
        .into()),
    }
}

/// Starts cqlsh against the server that has the data open, or else against the address of the settings.
fn shell<'a>(values: &Values, arguments: impl Iterator<Item = &'a String>) -> Result<ExitCode, Failure> {
    let config = Config::new(values)?;
    let is_address_given = values.iter().any(|(setting, values, origin)| {
        ["listen", "tls-listen"].contains(&setting.name) && !values.is_empty() && *origin == Origin::CommandLine
    });
    let running = if is_address_given {
        None
    } else {
        running_server(&config)?
    };
    let record = match running {
        Some(record) => record,
        None => configured_server(&config)?,
    };
    let name = format!("helenus-shell-{}", std::process::id());
    let call = cli::shell::Call::new(&record, config.profile, &std::env::temp_dir(), &name)?;
    let Some(cqlsh) = cli::shell::find_cqlsh() else {
        println!(
            "cqlsh is not on the search path. To use it:\n\n    pipx install cqlsh\n    cqlsh {}",
            call.words()
        );
        return Ok(ExitCode::FAILURE);
    };
    let status = call.run(&cqlsh, arguments)?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The record of the server that has the data open: of `ready-json`, or in the data directory.
fn running_server(config: &Config) -> Result<Option<ServerRecord>, Failure> {
    if let Some(path) = config.ready_json.as_deref().filter(|path| *path != Path::new("-")) {
        return Ok(ServerRecord::read(path)?);
    }
    match data_directory(config) {
        Some(directory) => Ok(ServerRecord::read(&ServerRecord::path(&directory))?),
        None => Ok(None),
    }
}

/// The server as the settings describe it: its data may be in memory, or on another machine.
fn configured_server(config: &Config) -> Result<ServerRecord, Failure> {
    let tls = config.server.tls.as_ref();
    let first = |addresses: &[SocketAddr]| addresses.first().map(ToString::to_string);
    let (cql, tls) = (first(&config.server.listen), tls.and_then(|tls| first(&tls.listen)));
    if cql.is_none() && tls.is_none() {
        return Err("no address to connect to: give --listen ADDRESS:PORT as to the server".into());
    }
    if config.profile.is_cosmos() && config.server.credentials.is_none() {
        return Err(format!(
            "no server has {} open, so its key is not known: give --account-key as to the server",
            config.data
        )
        .into());
    }
    let (account, key) = match &config.server.credentials {
        Some(credentials) => (Some(credentials.user.clone()), Some(credentials.password.clone())),
        None => (None, None),
    };
    Ok(ServerRecord::new(cql, tls, account, key))
}

/// The directory of the data; `None`: it is in memory.
fn data_directory(config: &Config) -> Option<PathBuf> {
    helenus::server::run::data_directory(&config.data)
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
        // Dates in the future do no harm to data that ends with the process.
        let clock = match data_directory(config) {
            Some(_) => Clock::system(),
            None => Clock::movable(),
        };
        let running = Running::start(config, clock, seed()?).await?;
        let written = announce(config, &running)?;
        let mut stdin_ends = std::pin::pin!(stdin_ends(config));
        let lost = loop {
            tokio::select! {
                () = &mut stdin_ends => break None,
                _ = terminate.recv() => break None,
                _ = interrupt.recv() => break None,
                why = running.until_lost() => break Some(why),
                _ = hang_up.recv() => running.look_at_certificate(true),
            }
        };
        tracing::info!(connections = running.server().connections(), "stopping");
        let stopped = running.stop().await;
        drop(written);
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

/// Resolves when standard input ends, if the server is to end with it.
async fn stdin_ends(config: &Config) {
    if config.exit_with_stdin {
        cli::parent::stdin_ends().await;
    } else {
        std::future::pending().await
    }
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

/// Announces that the server answers: the banner, then the files that others wait for. They are removed when what is returned is dropped.
fn announce(config: &Config, running: &Running) -> Result<Vec<Written>, Failure> {
    let server = running.server();
    let record = ServerRecord::of(config, running)?;
    let is_json_printed = config.ready_json.as_deref() == Some(Path::new("-"));
    if is_json_printed {
        // Standard output belongs to the record.
        eprint!("{}", banner(config, running));
    } else {
        print!("{}", banner(config, running));
    }
    std::io::stdout().flush()?;
    tracing::info!(
        addresses = %list(server.addresses()),
        tls_addresses = %list(server.tls_addresses()),
        data = %config.data,
        durability = %config.durability,
        "serving"
    );
    let mut written = Vec::new();
    if let Some(directory) = data_directory(config) {
        written.push(record.write(&ServerRecord::path(&directory))?);
    }
    match &config.ready_json {
        Some(_) if is_json_printed => record.print()?,
        Some(path) => written.push(record.write(path)?),
        None => {}
    }
    let Some(first) = server.addresses().first().or_else(|| server.tls_addresses().first()) else {
        return Ok(written);
    };
    if let Some(number) = config.ready_fd {
        // By its path, since taking over a number that someone else has opened is not safe code.
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(format!("/dev/fd/{number}"))?;
        writeln!(file, "{first}")?;
    }
    if let Some(path) = &config.ready_file {
        // Renamed into place, so that its reader finds the whole address. An address is no secret: everybody may read it.
        permissions::write(path, &format!("{first}\n"), permissions::PUBLIC)?;
        written.push(Written::of(path));
    }
    Ok(written)
}

/// What the server serves, where its data is, and what to type next.
fn banner(config: &Config, running: &Running) -> String {
    let server = running.server();
    let has_login = config.server.credentials.is_some() || running.identity().is_some();
    let serves = match (server.addresses(), server.tls_addresses()) {
        (plain, []) => list(plain),
        ([], tls) => format!("{} with TLS", list(tls)),
        (plain, tls) => format!("{}, with TLS on {}", list(plain), list(tls)),
    };
    let admin = running
        .admin_address()
        .map(|address| format!(", figures on http://{address}"));
    let mut lines = vec![
        format!(
            "helenus {} serves CQL on {serves}{}",
            env!("CARGO_PKG_VERSION"),
            admin.unwrap_or_default()
        ),
        format!(
            "data {}, durability {}, login {}",
            config.data,
            config.durability,
            if has_login { "required" } else { "none" }
        ),
    ];
    if let Some(identity) = running.identity() {
        lines.push(format!("profile cosmos, account {}", config.account_name));
        lines.extend(identity.account_key().map(|key| format!("account key {key}")));
        match (identity.certificate(), identity.certificate_path()) {
            (Some(_), Some(path)) => lines.push(format!("self-made certificate {}", path.display())),
            (Some(_), None) => lines.push("self-made certificate, in memory only; --ready-json has it".to_owned()),
            (None, _) => {}
        }
    }
    lines.push(next_steps(config, running));
    lines.join("\n  ") + "\n"
}

/// How to connect, and how to stop.
fn next_steps(config: &Config, running: &Running) -> String {
    let plain = running.server().addresses().first();
    let cqlsh = plain.filter(|_| config.server.credentials.is_none() && running.identity().is_none());
    let cqlsh = cqlsh.map(|address| format!("cqlsh {} {}", address.ip(), address.port()));
    let shell = data_directory(config).map(|_| format!("helenus shell --data {}", config.data));
    let ways: Vec<String> = cqlsh.into_iter().chain(shell).collect();
    match ways.as_slice() {
        [] => "stop: Ctrl-C".to_owned(),
        ways => format!("connect: {}; stop: Ctrl-C", ways.join(", or ")),
    }
}
