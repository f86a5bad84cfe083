//! `helenus passwd`: recovers access to data whose passwords are all lost.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::{Failure, seed, serving, terminal, verify};
use crate::assembly::roles;
use crate::config::Config;
use helenus_base::clock::Clock;
use helenus_base::permissions;
use helenus_schema::roles::password;

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("role")
                .value_name("ROLE")
                .required(true)
                .help("The role; it becomes a superuser that may log in, and is made where there is none"),
        )
        .after_help("The password is the first line of standard input: helenus passwd ROLE --data file:DIR < FILE")
}

/// Gives a role a new password and superuser rights. The data must not be open in a server.
///
/// # Errors
/// There is no data, a server has it open, there is no password, or the profile has no roles.
pub(super) fn run(config: &Config, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    if config.profile.is_cosmos() {
        return Err("the profile cosmos has an account instead of roles: delete cosmos/account-key in the data directory, and the next start makes another".into());
    }
    let directory = verify::directory(config)?;
    let role = matches.get_one::<String>("role").ok_or("no role")?;
    if io::stdin().is_terminal() {
        terminal::say(format_args!("New password of {role} (it is shown as you type):"));
    }
    let mut password = String::new();
    io::stdin().lock().read_line(&mut password)?;
    let password = password.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        return Err("the password, the first line of standard input, is empty".into());
    }
    let runtime = serving::runtime(config)?;
    if let Some(advice) = password::advice(password) {
        terminal::say(format_args!("{advice}"));
    }
    let set = roles::set_superuser(config, role, password.to_owned(), Clock::system(), seed()?);
    let is_new = runtime.block_on(set)?;
    let what = match is_new {
        true => format!("there was no role {role}: it is new, and a superuser with this password"),
        false => format!("{role} is a superuser with this password"),
    };
    println!("{}: {what}", directory.display());
    Ok(ExitCode::SUCCESS)
}
