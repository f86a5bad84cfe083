//! Tips for arguments that other programs take: what this program calls them.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::switches;
use super::verbs::VERBS;

/// Options of other programs, and what to type here.
struct Tip {
    options: &'static [&'static str],
    /// The verbs that it applies to; empty means all.
    verbs: &'static [&'static str],
    meant: &'static str,
}

const TIPS: &[Tip] = &[
    Tip {
        options: &["--out", "--output", "--dest", "--destination"],
        verbs: &["backup", "export", "salvage"],
        meant: "--to",
    },
    Tip {
        options: &["--in", "--input", "--file", "--source"],
        verbs: &["restore", "import"],
        meant: "--from",
    },
    Tip {
        options: &["--port", "--host", "--address", "--bind"],
        verbs: &[],
        meant: "--listen ADDRESS:PORT, such as --listen 127.0.0.1:9043",
    },
    Tip {
        options: &["--dir", "--directory", "--data-dir", "--datadir"],
        verbs: &[],
        meant: "--data file:DIR",
    },
    Tip {
        options: &["--username"],
        verbs: &[],
        meant: "--user NAME, with --password-file FILE",
    },
    Tip {
        options: &["--password"],
        verbs: &[],
        meant: "--password-file FILE",
    },
    Tip {
        options: &["--verbose", "--debug"],
        verbs: &[],
        meant: "--log debug",
    },
];

/// What to print in place of clap's error. `None` means that its own text is right.
pub(super) fn of(error: &clap::Error, arguments: &[String]) -> Option<String> {
    if !error.use_stderr() {
        return None;
    }
    if let Some(hint) = switches::separated(arguments.iter().cloned()) {
        return Some(hint);
    }
    let is_verb = |argument: &&String| VERBS.iter().any(|verb| verb.name == argument.as_str());
    let verb = arguments.iter().skip(1).find(is_verb).map_or("", String::as_str);
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) if unknown.starts_with("--") => {
            let meant = meant(verb, unknown)?;
            Some(format!("there is no {unknown}: give {meant}"))
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) if verb == "lint" => Some(format!(
            "lint reads one file with a schema, and {unknown} is a second one: helenus lint SCHEMA.CQL --queries QUERIES.CQL"
        )),
        (ErrorKind::MissingRequiredArgument, _) if verb == "lint" => Some(
            "lint needs a file with a schema: helenus lint SCHEMA.CQL, with --queries QUERIES.CQL for its queries"
                .to_owned(),
        ),
        _ => None,
    }
}

/// What an option of other programs is called here.
fn meant(verb: &str, unknown: &str) -> Option<&'static str> {
    let option = unknown.split('=').next().unwrap_or(unknown);
    let fits = |tip: &&Tip| tip.options.contains(&option) && (tip.verbs.is_empty() || tip.verbs.contains(&verb));
    TIPS.iter().find(fits).map(|tip| tip.meant)
}

#[cfg(test)]
mod tests {
    use crate::cli::verbs;

    #[test]
    fn an_option_of_another_program_is_answered_with_ours() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = verbs::command().try_get_matches_from(&words).unwrap_err();
            super::of(&error, &words)
        };
        for (line, tip) in [
            ("helenus --port 9043", "give --listen ADDRESS:PORT"),
            ("helenus dev --port=9043", "give --listen ADDRESS:PORT"),
            ("helenus backup --out x", "there is no --out: give --to"),
            ("helenus import --table a.b --file x", "give --from"),
            ("helenus --data-dir x", "give --data file:DIR"),
            ("helenus lint", "helenus lint SCHEMA.CQL"),
            ("helenus lint a.cql b.cql", "b.cql is a second one"),
            ("helenus --login false", "--login=false"),
        ] {
            let found = of(line).unwrap_or_default();
            assert!(found.contains(tip), "{line}: {found}");
        }
        for line in ["helenus --zzz", "helenus status --out x", "helenus backup"] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
