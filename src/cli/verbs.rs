//! The table of verbs, and the command line that is built from it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::groups::{COMMON, group};
use super::{
    Failure, backups, cert, check_bucket, dev, feed, fleet_secret, health, lint, pages, passwd, running, seed, servers,
    serving, settings, shell, status, stress, terminal, verify, warnings,
};
use crate::config::{Config, SETTINGS, Setting, Values, variable};

/// A verb of the program.
pub(super) struct Verb {
    /// Its name.
    pub(super) name: &'static str,
    /// Its aliases.
    pub(super) aliases: &'static [&'static str],
    /// A one-line summary.
    pub(super) summary: &'static str,
    /// The settings that it uses. Help shows only these.
    pub(super) uses: Uses,
    /// Its own arguments.
    arguments: fn(Command) -> Command,
    /// Its function.
    run: fn(&Call<'_>) -> Result<ExitCode, Failure>,
}

/// Settings that a verb uses.
pub(super) enum Uses {
    /// All settings.
    All,
    /// Only these settings.
    Only(&'static [&'static str]),
}

impl Uses {
    fn has(&self, setting: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(&setting),
        }
    }
}

/// A call of a verb.
struct Call<'a> {
    /// The program's arguments before the verb.
    outer: &'a ArgMatches,
    /// The arguments after the verb.
    matches: &'a ArgMatches,
}

/// Settings that find a server, with its address and login.
const CLIENT: Uses = Uses::Only(&[
    "config",
    "data",
    "profile",
    "listen",
    "tls-listen",
    "tls-certificate",
    "tls-key",
    "user",
    "password-file",
    "account",
    "account-key",
    "ready-json",
]);

/// Settings that find a server's admin port.
const ADMIN: Uses = Uses::Only(&[
    "config",
    "data",
    "listen",
    "tls-listen",
    "admin-listen",
    "admin-token",
    "profile",
    "ready-json",
]);

/// Settings for checking a data model, and data if given.
const LINT: Uses = Uses::Only(&[
    "config",
    "data",
    "profile",
    "logical-partition-bytes-max",
    "scale-limits",
]);

/// Settings for opening data that no server has open.
const DATA: Uses = Uses::Only(&[
    "config",
    "data",
    "profile",
    "change-profile",
    "durability",
    "memory",
    "row-cache-bytes-max",
    "key-filter-bytes-max",
    "block-cache-bytes-max",
    "stores",
    "stores-max",
    "bucket-endpoint",
    "bucket-region",
    "bucket-path-style",
    "bucket-encryption",
    "bucket-lease",
    "bucket-removal-delay-seconds",
    "bucket-ca-file",
    "bucket-cache",
    "bucket-cache-bytes-max",
    "operator-folder",
]);

/// Settings for reaching a bucket.
const BUCKET: Uses = Uses::Only(&[
    "config",
    "bucket-endpoint",
    "bucket-region",
    "bucket-path-style",
    "bucket-encryption",
    "bucket-ca-file",
]);

/// Settings for opening data to change a role.
const PASSWD: Uses = Uses::Only(&["config", "data", "profile", "durability", "password-cost"]);

/// No settings.
const NONE: Uses = Uses::Only(&[]);

/// Every verb, in the order of help.
pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "serve",
        aliases: &[],
        summary: "Serve CQL; also without a verb",
        uses: Uses::All,
        arguments: |command| command,
        run: |call| {
            let values = call.to_serve()?;
            servers::refuse_homeless(&values)?;
            let config = Config::new(&values)?;
            for warning in warnings::of_profile(&values, config.profile.is_cosmos()) {
                terminal::say(format_args!("helenus: warning: {warning}"));
            }
            serving::serve(&config, |_, _| String::new(), |_| None)
        },
    },
    Verb {
        name: "dev",
        aliases: &[],
        summary: "Serve for an afternoon: in memory, with TLS on the same port, and print how to connect",
        uses: Uses::All,
        arguments: |command| command,
        run: |call| {
            let mut values = call.to_serve()?;
            dev::suggest(&mut values);
            serving::serve(&dev::config(&values)?, dev::connections, dev::note)
        },
    },
    Verb {
        name: "run",
        aliases: &[],
        summary: "Run a command with a server of its own, in memory and on free ports",
        uses: Uses::All,
        arguments: running::arguments,
        run: |call| {
            let mut values = call.to_serve()?;
            running::suggest(&mut values);
            running::run(&Config::new(&values)?, call.matches)
        },
    },
    Verb {
        name: "shell",
        aliases: &[],
        summary: "Start cqlsh against a server, with its login and certificate",
        uses: CLIENT,
        arguments: |command| {
            // The first argument that is no setting begins those of cqlsh, with or without `--` before it.
            let arguments = Arg::new("arguments")
                .value_name("ARGUMENTS")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true);
            command.arg(
                arguments
                    .help("Passed on to cqlsh, such as -e STATEMENTS, -f FILE or -k KEYSPACE; settings come first"),
            )
        },
        run: |call| {
            let mut values = call.values()?;
            let tls = servers::given_tls(&mut values)?;
            let config = Config::new(&values)?;
            let record = servers::to_connect_to(&values, &config, tls)?;
            let arguments = call.matches.get_many::<String>("arguments").unwrap_or_default();
            let profile = record.profile.as_deref().and_then(|name| name.parse().ok());
            shell::start(&record, profile.unwrap_or(config.profile), arguments)
        },
    },
    Verb {
        name: "status",
        aliases: &[],
        summary: "Print the figures of a running server, by the socket in its data directory or its admin port",
        uses: ADMIN,
        arguments: status::arguments,
        run: |call| status::run(&call.values()?, call.matches),
    },
    Verb {
        name: "health",
        aliases: &[],
        summary: "Tell whether a server is ready, and wait until it is",
        uses: ADMIN,
        arguments: health::arguments,
        run: |call| health::run(&call.values()?, call.matches),
    },
    Verb {
        name: "feed",
        aliases: &[],
        summary: "Print the change feed of a table of a running server: a line of JSON for each changed row",
        uses: ADMIN,
        arguments: feed::arguments,
        run: |call| feed::run(&call.values()?, call.matches),
    },
    Verb {
        name: "stress",
        aliases: &[],
        summary: "Load a server of table storage or CQL with keys of a pattern, and report by time and range of keys",
        uses: CLIENT,
        arguments: stress::arguments,
        run: |call| stress::run(&call.values()?, call.matches, seed()?),
    },
    Verb {
        name: "settings",
        aliases: &[],
        summary: "Print every setting, its value and where it comes from, as a configuration file",
        uses: Uses::All,
        arguments: settings::arguments,
        run: |call| settings::run(&call.values()?, call.matches),
    },
    Verb {
        name: "lint",
        aliases: &[],
        summary: "Advise on a data model, and on the data of a directory",
        uses: LINT,
        arguments: |command| {
            lint::arguments(command).mut_arg("schema", |schema| schema.required_unless_present("explain"))
        },
        run: |call| {
            let text = |name| call.matches.get_one::<String>(name);
            match (text("explain"), text("schema")) {
                (Some(rule), _) => lint::explain(rule),
                (None, Some(schema)) => lint::run(&call.values()?, call.matches, schema),
                (None, None) => Err("no file with a schema".into()),
            }
        },
    },
    Verb {
        name: "check",
        aliases: &[],
        summary: "Older word for lint with a file, and for settings without one",
        uses: LINT,
        arguments: |command| lint::arguments(command).hide(true),
        run: |call| match call.matches.get_one::<String>("schema") {
            Some(schema) => lint::run(&call.values()?, call.matches, schema),
            None => settings::print(&call.values()?, false),
        },
    },
    Verb {
        name: "verify",
        aliases: &[],
        summary: "Read all rows and index entries of data that no server has open",
        uses: DATA,
        arguments: verify::arguments,
        run: |call| verify::run(&call.config()?, call.matches),
    },
    Verb {
        name: "check-bucket",
        aliases: &[],
        summary: "Check whether a bucket keeps what a database relies on (experimental)",
        uses: BUCKET,
        arguments: check_bucket::arguments,
        run: |call| check_bucket::run(&call.config()?, seed()?, call.matches),
    },
    Verb {
        name: "fleet-secret",
        aliases: &[],
        summary: "Change the secret by which the nodes of a fleet know each other, while they run (experimental)",
        uses: BUCKET,
        // Not in the short list, which has to fit a screen: few need it, and its page names it.
        arguments: |command| fleet_secret::arguments(command).hide(true),
        run: |call| fleet_secret::run(&call.config()?, call.matches),
    },
    Verb {
        name: "check-indexes",
        aliases: &[],
        summary: "Older word for verify --indexes",
        uses: DATA,
        arguments: |command| command.hide(true),
        run: |call| verify::indexes(&call.config()?),
    },
    Verb {
        name: "backup",
        aliases: &[],
        summary: "Make a backup of one moment, of a running server or of data that no server has open",
        uses: DATA,
        arguments: backups::backup_arguments,
        run: |call| backups::run("backup", &call.config()?, seed()?, call.matches),
    },
    Verb {
        name: "restore",
        aliases: &[],
        summary: "Restore a backup into a new data directory, or a part of it beside what is there",
        uses: DATA,
        arguments: backups::restore_arguments,
        run: |call| backups::run("restore", &call.config()?, seed()?, call.matches),
    },
    Verb {
        name: "salvage",
        aliases: &[],
        summary: "Write a backup of what can be read of a damaged data directory, and name the rest",
        uses: DATA,
        arguments: backups::salvage_arguments,
        run: |call| backups::run("salvage", &call.config()?, seed()?, call.matches),
    },
    Verb {
        name: "export",
        aliases: &[],
        summary: "Write the rows of a table to a file, of a running server or of data that no server has open",
        uses: DATA,
        arguments: backups::export_arguments,
        run: |call| backups::run("export", &call.config()?, seed()?, call.matches),
    },
    Verb {
        name: "import",
        aliases: &[],
        summary: "Write the rows of a file to a table, as INSERT does",
        uses: DATA,
        arguments: backups::import_arguments,
        run: |call| backups::run("import", &call.config()?, seed()?, call.matches),
    },
    Verb {
        name: "passwd",
        aliases: &[],
        summary: "Give a role a new password and all rights, in data that no server has open",
        uses: PASSWD,
        arguments: passwd::arguments,
        run: |call| passwd::run(&call.config()?, call.matches),
    },
    Verb {
        name: "cert",
        aliases: &[],
        summary: "Print the certificate that clients of a server should trust, as PEM or as a trust store for Java",
        uses: CLIENT,
        arguments: cert::arguments,
        run: |call| cert::run(&call.values()?, call.matches),
    },
    Verb {
        name: "completions",
        aliases: &[],
        summary: "Print completions for a shell",
        uses: NONE,
        arguments: pages::shell_argument,
        run: |call| pages::completions(call.matches, command(), to_complete()),
    },
    Verb {
        name: "man",
        aliases: &[],
        summary: "Print the man page",
        uses: NONE,
        // For packages: the list of verbs has to fit a screen.
        arguments: |command| command.hide(true),
        run: |_| pages::man(command()),
    },
];

/// The command line.
#[must_use]
pub(super) fn command() -> Command {
    build(true)
}

/// The command line without the settings that a verb takes and does not use: completions offer hidden arguments, too.
#[must_use]
pub(super) fn to_complete() -> Command {
    build(false)
}

/// `takes_all`: each verb takes all settings, and hides those that it does not use.
fn build(takes_all: bool) -> Command {
    let command = Command::new("helenus")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .after_help("More: helenus --help, helenus VERB -h, helenus settings")
        .after_long_help(
            "Exit codes: 0 stopped as asked, 1 could not start or a verb failed, 2 unknown argument, 74 data can no longer be read",
        )
        .subcommand_value_name("VERB")
        .subcommand_help_heading("Verbs");
    let command = with_settings(command, &Uses::All, takes_all);
    command.subcommands(VERBS.iter().map(|verb| {
        let command = Command::new(verb.name).about(verb.summary).aliases(verb.aliases);
        with_settings((verb.arguments)(command), &verb.uses, takes_all)
    }))
}

/// Adds settings. Unused ones are accepted but hidden, so that a script can give every verb the same settings; without `takes_all`
/// they are left out.
fn with_settings(command: Command, uses: &Uses, takes_all: bool) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .help("Configuration file: TOML, one key for each setting [env: HELENUS_CONFIG]");
    let arguments = std::iter::once(config).chain(SETTINGS.iter().map(argument));
    let arguments = arguments.filter(|argument| takes_all || uses.has(argument.get_id().as_str()));
    command.args(arguments.map(|argument| {
        let name = argument.get_id().to_string();
        let is_common = COMMON.iter().any(|(common, _)| *common == name);
        argument
            .hide(!uses.has(&name))
            .hide_short_help(!is_common)
            .help_heading(if is_common { "Common settings" } else { group(&name) })
    }))
}

fn argument(setting: &Setting) -> Arg {
    let mut help = format!("{} [env: {}]", setting.help, variable(setting.name));
    if let Some(default) = setting.default {
        help = format!("{help} [default: {default}]");
    }
    let short = COMMON.iter().find(|(name, _)| *name == setting.name);
    let argument = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.value)
        // A negative number is refused as the value that it is.
        .allow_negative_numbers(true);
    let argument = match short {
        Some((_, short)) => argument.help(*short).long_help(help),
        None => argument.help(help),
    };
    if setting.value == "BOOL" {
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

/// Executes the verb that the arguments select.
///
/// # Errors
/// An error for the user of the command line.
pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, inner) = matches.subcommand().unwrap_or(("serve", matches));
    let verb = VERBS.iter().find(|verb| verb.name == name).ok_or("no such verb")?;
    (verb.run)(&Call {
        outer: matches,
        matches: inner,
    })
}

impl Call<'_> {
    fn values(&self) -> Result<Values, Failure> {
        gather(self.outer, self.matches, false)
    }

    /// The values for a server.
    fn to_serve(&self) -> Result<Values, Failure> {
        gather(self.outer, self.matches, true)
    }

    fn config(&self) -> Result<Config, Failure> {
        let values = self.values()?;
        servers::refuse_homeless(&values)?;
        Ok(Config::new(&values)?)
    }
}

/// The settings' values; arguments after the verb win over those before it.
fn gather(outer: &ArgMatches, inner: &ArgMatches, serves: bool) -> Result<Values, Failure> {
    let mut given = BTreeMap::new();
    for setting in SETTINGS {
        for matches in [outer, inner] {
            if let Some(values) = matches.get_many::<String>(setting.name) {
                given.insert(setting.name.to_owned(), values.cloned().collect());
            }
        }
    }
    // An empty variable counts as unset, as in shells and containers.
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let config = |matches: &ArgMatches| matches.get_one::<String>("config").cloned();
    let file = config(inner)
        .or_else(|| config(outer))
        .or_else(|| environment("HELENUS_CONFIG"));
    let mut values = Values::gather(file.as_deref().map(Path::new), &given, environment)?;
    running::forget_outer_record(&mut values, serves, environment);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in warnings::of_environment(names) {
        terminal::say(format_args!("helenus: warning: {warning}"));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a screen.
    const SCREEN_LINES: usize = 41;

    #[test]
    fn short_help_fits_a_screen_on_every_verb_and_shows_only_what_the_verb_uses() {
        let mut command = command();
        command.build();
        let all = command.render_help().to_string();
        assert!(all.lines().count() <= SCREEN_LINES, "{all}");
        for verb in VERBS {
            let inner = command.find_subcommand_mut(verb.name).unwrap();
            let short = inner.render_help().to_string();
            assert!(short.lines().count() <= SCREEN_LINES, "{}:\n{short}", verb.name);
            let long = inner.render_long_help().to_string();
            for setting in SETTINGS {
                let is_shown =
                    long.contains(&format!("--{} ", setting.name)) || long.contains(&format!("--{}[", setting.name));
                assert_eq!(is_shown, verb.uses.has(setting.name), "{} {}", verb.name, setting.name);
            }
        }
        command.debug_assert();
    }

    #[test]
    fn words_are_unique_and_uses_are_settings() {
        let mut words: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        words.extend(VERBS.iter().flat_map(|verb| verb.aliases));
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        for verb in VERBS {
            if let Uses::Only(names) = &verb.uses {
                for name in *names {
                    let is_known = *name == "config" || SETTINGS.iter().any(|setting| setting.name == *name);
                    assert!(is_known, "{}: {name}", verb.name);
                }
            }
        }
    }

    #[test]
    fn the_man_page_has_every_verb_and_no_stray_request() {
        let page = pages::page(command());
        for verb in VERBS {
            let name = format!(".TP\n\\fB{}\\fR\n", pages::escape(verb.name));
            assert!(page.contains(&name), "{} is missing", verb.name);
        }
        for line in page.lines().filter(|line| line.starts_with('.')) {
            let request = line.split(' ').next().unwrap_or_default();
            assert!([".TH", ".SH", ".TP", ".RS", ".RE"].contains(&request), "{line}");
        }
    }
}
