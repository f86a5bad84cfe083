//! Completions for bash. Verbs share most options, so the script keeps the settings once; a script that has them for each verb is ten
//! times as long.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::config::SETTINGS;

/// Kinds of values that name a file or a directory.
const PATHS: [&str; 3] = ["FILE", "DIR", "SCHEMA.CQL"];

/// The script for a command line.
pub(super) fn script(mut command: Command) -> String {
    command.build();
    let names = |verb: &Command| -> Vec<String> {
        let shown = verb.get_arguments().filter(|argument| !argument.is_hide_set());
        shown
            .filter_map(|argument| argument.get_long())
            .map(|long| format!("--{long}"))
            .collect()
    };
    let all = names(&command);
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs: Vec<&str> = shown.map(Command::get_name).collect();
    let mut script = format!(
        "_helenus() {{\n    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} verb= words= i\n    COMPREPLY=()\n    \
         local verbs='{}'\n    local settings='{}'\n    \
         for ((i = 1; i < COMP_CWORD; i++)); do\n        \
         [[ \" $verbs \" == *\" ${{COMP_WORDS[i]}} \"* ]] && {{ verb=${{COMP_WORDS[i]}}; break; }}\n    done\n    case $before in\n",
        verbs.join(" "),
        all.join(" ")
    );
    for (answer, options) in values(&command) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(script, "    {}) {answer} return ;;", options.join(" | "));
    }
    script.push_str("    esac\n    case $verb in\n    '') words=\"$verbs $settings\" ;;\n");
    for verb in command.get_subcommands() {
        let own = names(verb);
        let is_whole = SETTINGS.len() < own.len();
        let own: Vec<String> = own
            .into_iter()
            .filter(|name| !is_whole || !all.contains(name))
            .collect();
        let settings = if is_whole { " $settings" } else { "" };
        let values = positional(verb);
        let _ = writeln!(
            script,
            "    {}) words=\"{}{values}{settings}\" ;;",
            verb.get_name(),
            own.join(" ")
        );
    }
    script.push_str(
        "    esac\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\ncomplete -F _helenus -o bashdefault -o default helenus\n",
    );
    script
}

/// How the values of options are completed: the command of the script → the options.
fn values(command: &Command) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let of_verbs = command.get_subcommands().flat_map(Command::get_arguments);
    for argument in command.get_arguments().chain(of_verbs) {
        let takes_value = argument.get_action().takes_values() && !argument.is_require_equals_set();
        let Some(long) = argument.get_long().filter(|_| takes_value) else {
            continue;
        };
        let options = found.entry(answer(argument)).or_default();
        let option = format!("--{long}");
        if !options.contains(&option) {
            options.push(option);
        }
    }
    found
}

/// The command that completes an option's value; empty for a value that only its user knows.
fn answer(argument: &Arg) -> String {
    let possible = possible(argument);
    let kind = argument.get_value_names().and_then(|names| names.first());
    match kind.map(|kind| kind.as_str()) {
        _ if !possible.is_empty() => format!("mapfile -t COMPREPLY < <(compgen -W '{possible}' -- \"$word\");"),
        Some("PROFILE") => "mapfile -t COMPREPLY < <(compgen -W 'cassandra cosmos' -- \"$word\");".to_owned(),
        Some(kind) if PATHS.contains(&kind) => "mapfile -t COMPREPLY < <(compgen -f -- \"$word\");".to_owned(),
        _ => String::new(),
    }
}

fn possible(argument: &Arg) -> String {
    let values = argument.get_possible_values();
    values
        .iter()
        .map(|value| value.get_name())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The words that a verb's own argument may be.
fn positional(verb: &Command) -> String {
    let words = verb.get_positionals().map(possible).filter(|words| !words.is_empty());
    words.map(|words| format!(" {words}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::verbs;

    /// Most bytes of the script.
    const BYTES_MAX: usize = 60_000;

    #[test]
    fn the_script_is_small_and_has_every_setting_and_verb() {
        let script = script(verbs::command());
        assert!(script.len() <= BYTES_MAX, "{} bytes", script.len());
        for setting in SETTINGS {
            let name = format!("--{}", setting.name);
            assert!(script.contains(&name), "{name}");
        }
        for verb in verbs::VERBS {
            assert!(script.contains(&format!("    {}) words=", verb.name)), "{}", verb.name);
        }
    }
}
