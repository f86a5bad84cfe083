//! `helenus man` and `helenus completions`: files that packages install with the program.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

use super::{Failure, bash};

/// The argument of `helenus completions`.
#[must_use]
pub(super) fn shell_argument(command: Command) -> Command {
    command.arg(
        Arg::new("shell")
            .required(true)
            .value_name("SHELL")
            .value_parser(clap::value_parser!(Shell))
            .help("The shell"),
    )
}

/// Prints completions of a command line. `to_complete` is the one without the settings that a verb takes and does not use.
///
/// # Errors
/// Standard output is closed.
pub(super) fn completions(
    matches: &ArgMatches,
    command: Command,
    mut to_complete: Command,
) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    match matches.get_one::<Shell>("shell") {
        Some(Shell::Bash) => text = bash::script(command).into_bytes(),
        Some(shell) => clap_complete::generate(*shell, &mut to_complete, "helenus", &mut text),
        None => {}
    }
    std::io::stdout().lock().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the man page of a command line, of section 1, for `man -l` and packages.
///
/// # Errors
/// Standard output is closed.
pub(super) fn man(command: Command) -> Result<ExitCode, Failure> {
    std::io::stdout().lock().write_all(page(command).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The man page.
pub(super) fn page(mut command: Command) -> String {
    command.build();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH HELENUS 1 \"\" \"helenus {version}\"\n.SH NAME\nhelenus \\- {}\n.SH SYNOPSIS\n\\fBhelenus\\fR [VERB] [OPTIONS]\n.SH DESCRIPTION\n{}\n",
        escape("Cassandra-compatible database server"),
        escape(&about)
    );
    page.push_str(
        "Without a verb the program serves. Each option is also a variable, HELENUS_ and the name in capitals, and a key of the \
         configuration file.\n.SH VERBS\n",
    );
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        item(&mut page, &format!("\\fB{}\\fR", escape(verb.get_name())), &about);
        for argument in verb.get_arguments().filter(|argument| is_its_own(argument)) {
            page.push_str(".RS\n");
            option(&mut page, argument);
            page.push_str(".RE\n");
        }
    }
    let mut heading = None;
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let of = argument.get_help_heading().unwrap_or("Options");
        if heading != Some(of) {
            heading = Some(of);
            // Writing to a `String` cannot fail.
            let _ = writeln!(page, ".SH {}", escape(&of.to_uppercase()));
        }
        option(&mut page, argument);
    }
    page.push_str(
        ".SH EXIT STATUS\n0: stopped as asked. 1: could not start, or a verb failed. 2: unknown argument. 74: data can no longer be read.\n",
    );
    page
}

/// Whether an argument belongs to the verb and is no setting.
fn is_its_own(argument: &Arg) -> bool {
    argument.get_help_heading().is_none()
        && !argument.is_hide_set()
        && !["help", "version"].contains(&argument.get_id().as_str())
}

fn option(page: &mut String, argument: &Arg) {
    let values = argument.get_value_names().unwrap_or_default();
    let value = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let name = match argument.get_long() {
        Some(long) => format!("\\fB\\-\\-{}\\fR", escape(long)),
        None => String::new(),
    };
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    item(page, format!("{name} \\fI{}\\fR", escape(&value)).trim(), &help);
}

fn item(page: &mut String, name: &str, text: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(page, ".TP\n{name}\n{}", escape(text));
}

/// Escapes roff's requests in a text: backslashes, hyphens, and dots and quotes at the start of a line.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}"),
            false => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}
