//! The program called as `cqlsh`: scripts, not a prompt. It is for images and machines without Python, where test harnesses run
//! `cqlsh -e` and `cqlsh -f` inside the container.
//!
//! ```text
//! arguments ─► Target ─► Connection (protocol v4, blocking) ─► Session: a script's pieces one by one ─► tables, errors, exit code
//! ```
//! Output is that of cqlsh 6.2 without a terminal; `compat/cqlsh/run` compares it with cqlsh's output on Cassandra.
//! Exit codes are cqlsh's without a terminal: 0, 1 without a connection, 2 if a statement failed or the last one is
//! unterminated. Deliberately absent: a prompt, COPY, the texts of HELP; each is refused with a message that names the
//! real cqlsh.

mod client;
mod commands;
mod errors;
mod plain;
mod print;
mod session;
mod split;
mod trace;
mod value;

use std::ffi::OsStr;
use std::io::{BufWriter, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};

pub(super) use self::client::{ClientError, is_certificate_required, with_any_certificate, with_certificates};
use self::client::{Connection, Target, Trust};
pub(super) use self::plain::PlainConnection;
use self::session::Session;
use super::record::ServerRecord;
use super::{Failure, terminal};

/// The name under which the program acts as cqlsh.
pub(super) const NAME: &str = "cqlsh";

/// Timeout of a connection that only shows why another one failed.
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// Exit code after a failed statement.
const STATEMENT_FAILED: u8 = 2;

/// Whether the program was called as `cqlsh`, by the first of its arguments.
pub(super) fn is_called_by(argument: Option<&OsStr>) -> bool {
    argument
        .and_then(|path| Path::new(path).file_stem())
        .is_some_and(|stem| stem == NAME)
}

fn command() -> Command {
    let value = |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help);
    let ignored = |name: &'static str| Arg::new(name).long(name).hide(true);
    Command::new(NAME)
        .about("Runs CQL. Without -e and -f, statements come from standard input")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .arg(
            Arg::new("version")
                .short('v')
                .long("version")
                .action(ArgAction::Version)
                .help("Print the version"),
        )
        .arg(Arg::new("host").env("CQLSH_HOST").default_value("127.0.0.1"))
        .arg(
            Arg::new("port")
                .env("CQLSH_PORT")
                .default_value("9042")
                .value_parser(clap::value_parser!(u16)),
        )
        .arg(value("execute", "Statements to run").short('e'))
        .arg(
            value("file", "File of statements to run")
                .short('f')
                .conflicts_with("execute"),
        )
        .arg(value("username", "User").short('u'))
        .arg(
            value("password", "Password; other users of the machine can see it")
                .short('p')
                .requires("username"),
        )
        .arg(value(
            "credentials",
            "File with `username` and `password` under [plain_text_auth]",
        ))
        .arg(value("keyspace", "Keyspace to use").short('k'))
        .arg(
            Arg::new("ssl")
                .long("ssl")
                .action(ArgAction::SetTrue)
                .help("Connect with TLS. SSL_CERTFILE names the certificates to trust; SSL_VALIDATE=false trusts any"),
        )
        .arg(
            value("connect-timeout", "Seconds to wait for a connection")
                .default_value("5")
                .value_parser(clap::value_parser!(u64)),
        )
        .arg(
            value("request-timeout", "Seconds to wait for an answer")
                .default_value("10")
                .value_parser(clap::value_parser!(u64)),
        )
        .arg(
            Arg::new("quiet")
                .long("insecure-password-without-warning")
                .action(ArgAction::SetTrue)
                .hide(true),
        )
        .arg(ignored("no-color").action(ArgAction::SetTrue))
        .arg(ignored("color").short('C').action(ArgAction::SetTrue))
        .arg(ignored("protocol-version"))
        .arg(ignored("cqlversion"))
        .arg(ignored("encoding"))
}

/// Runs the scripts that the arguments name.
pub(super) fn run() -> ExitCode {
    match start(&command().get_matches()) {
        Ok(code) => code,
        Err(error) if super::is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn start(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = |name: &str| matches.get_one::<String>(name);
    let (script, name) = match (given("execute"), given("file")) {
        // The last piece may lack its semicolon: nothing follows it.
        (Some(statements), _) => (format!("{statements};"), "<stdin>".to_owned()),
        (None, Some(file)) => match std::fs::read_to_string(file) {
            Ok(script) => (script, file.clone()),
            Err(error) => return Err(format!("Can't open '{file}': {error}").into()),
        },
        (None, None) if std::io::stdin().is_terminal() => {
            return Err("cqlsh: there is no prompt in the cqlsh that comes with helenus: give -e STATEMENTS, -f FILE or statements on \
                        standard input, or `pipx install cqlsh`"
                .into());
        }
        (None, None) => {
            let mut script = String::new();
            std::io::stdin().lock().read_to_string(&mut script)?;
            (script, "<stdin>".to_owned())
        }
    };
    let target = target(matches)?;
    if given("password").is_some() && !matches.get_flag("quiet") {
        terminal::say(format_args!(
            "\nWarning: Using a password on the command line interface can be insecure.\n\
             Recommendation: use the credentials file to securely provide the password.\n"
        ));
    }
    let unreached = |target: &Target, error| format!("Connection error: {}", unreachable(target, &error));
    let connection = Connection::open(&target).map_err(|error| unreached(&target, error))?;
    let mut session = Session::new(
        connection,
        target,
        BufWriter::new(std::io::stdout().lock()),
        given("execute").is_some(),
    );
    if let Some(keyspace) = given("keyspace") {
        let used = session.use_keyspace(keyspace);
        used.map_err(|error| unreached(&session.target, error))?;
    }
    session.script(&script, &name, 0)?;
    // Also for standard input: here it is never a terminal, and cqlsh's `batch_mode` is that.
    Ok(match session.has_failed {
        true => ExitCode::from(STATEMENT_FAILED),
        false => ExitCode::SUCCESS,
    })
}

/// Why the login of a server's record does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreached {
    /// Nothing listens at its address.
    Stopped,
    /// The server refuses the user or the password.
    WrongLogin,
}

/// Connects and logs in as a record says. `None` means that this works, or fails for another reason.
pub(super) fn why_unreached(record: &ServerRecord) -> Option<Unreached> {
    let target = Target::of(record, PROBE_WITHIN)?;
    match Connection::open(&target) {
        Err(ClientError::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Some(Unreached::Stopped)
        }
        Err(ClientError::Refused { code: 0x0100, .. }) => Some(Unreached::WrongLogin),
        _ => None,
    }
}

/// In the Python driver's words.
fn unreachable(target: &Target, error: &ClientError) -> String {
    let address = format!("{}:{}", target.host, target.port);
    let text = match error {
        ClientError::Refused {
            code: 0x0100, message, ..
        } => format!(
            "AuthenticationFailed('Failed to authenticate to {address}: Error from server: code=0100 [Bad credentials] message=\"{message}\"')"
        ),
        other => other.to_string(),
    };
    format!("('Unable to connect to any servers', {{'{address}': {text}}})")
}

fn target(matches: &ArgMatches) -> Result<Target, Failure> {
    let given = |name: &str| matches.get_one::<String>(name).cloned();
    let seconds = |name: &str| Duration::from_secs(matches.get_one::<u64>(name).copied().unwrap_or(1).max(1));
    let login = match (given("username"), given("password"), given("credentials")) {
        (Some(user), Some(password), _) => Some((user, password)),
        (user, _, Some(file)) => Some(credentials(&file, user)?),
        (Some(_), None, None) => {
            return Err("cqlsh: -u needs -p PASSWORD or --credentials FILE, since there is no prompt".into());
        }
        (None, ..) => None,
    };
    let trust = match matches.get_flag("ssl") {
        false => Trust::Plain,
        true if std::env::var("SSL_VALIDATE")
            .is_ok_and(|text| ["false", "0"].contains(&text.to_lowercase().as_str())) =>
        {
            Trust::Any
        }
        true => {
            let file = std::env::var("SSL_CERTFILE").map_err(|_| {
                "cqlsh: --ssl needs SSL_CERTFILE, a file of certificates to trust (`helenus cert --out FILE`), or SSL_VALIDATE=false"
            })?;
            let pem =
                std::fs::read(&file).map_err(|error| format!("cqlsh: cannot read SSL_CERTFILE={file}: {error}"))?;
            Trust::Certificates(pem)
        }
    };
    Ok(Target {
        host: given("host").unwrap_or_default(),
        port: matches.get_one("port").copied().unwrap_or(9042),
        login,
        trust,
        connect_within: seconds("connect-timeout"),
        answer_within: seconds("request-timeout"),
    })
}

/// User and password of a credentials file. `user` wins over the file's.
fn credentials(file: &str, user: Option<String>) -> Result<(String, String), Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cqlsh: cannot read {file}: {error}"))?;
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(['=', ':'])?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    // A percent sign begins a reference in such a file, and two are one.
    let user = user.or_else(|| value("username").map(|user| user.replace("%%", "%")));
    match (user, value("password")) {
        (Some(user), Some(password)) => Ok((user, password)),
        _ => Err(format!("cqlsh: {file} has no username and password under [plain_text_auth]").into()),
    }
}
