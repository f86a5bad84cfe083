//! The pages of the book (`docs/src/reference`) that are generated from the program's own tables. `UPDATE_GOLDENFILES=1
//! cargo test --lib book` rewrites them. Comments that begin with `run` tell `compat/run docs` how to check a block.

use std::fmt::Write;
use std::path::Path;

use super::{features, groups, verbs};
use crate::advice;
use crate::config::{SETTINGS, Setting, variable};
use helenus_engine::views;
use helenus_schema::schema::ColumnKind;
use helenus_types::wire::response::ErrorCode;

/// Line width in characters.
const LINE_CHARACTERS_MAX: usize = 110;

/// Wraps a text into lines, each after `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() > LINE_CHARACTERS_MAX {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

fn settings() -> String {
    let mut page = "# Settings\n\nA setting is an option `--NAME` of the command line, a variable of the environment and a key of the \
                    configuration file, in this order of\nprecedence. `helenus settings` prints the values that a start with the same \
                    settings\nwould use, and where each comes from. A running server shows its own in `system_views.settings`. The program's table of settings generates this page.\n"
        .to_owned();
    let mut headings: Vec<&str> = Vec::new();
    for setting in SETTINGS {
        let heading = groups::group(setting.name);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let _ = writeln!(page, "\n## {heading}\n\n<!-- run: help of helenus serve -->");
        let of_heading = |setting: &&Setting| groups::group(setting.name) == heading;
        for setting in SETTINGS.iter().filter(of_heading) {
            let default = setting
                .default
                .map(|text| format!(", default {text}"))
                .unwrap_or_default();
            let times = if setting.repeatable {
                ", may be given several times"
            } else {
                ""
            };
            let head = format!("--{} {}", setting.name, setting.value);
            let _ = write!(page, "\n    {}\n", head.trim_end());
            page.push_str(&wrapped(
                &format!("{}{default}{times}", variable(setting.name)),
                "        ",
            ));
            page.push_str(&wrapped(setting.help, "        "));
        }
    }
    page
}

fn verbs() -> String {
    let mut page = "# Verbs\n\n`helenus VERB -h` prints the settings that a verb uses. [settings.md](settings.md) describes them. The \
                    program's table of verbs generates this\npage.\n\n<!-- run: help -->\n"
        .to_owned();
    let command = verbs::command();
    for verb in verbs::VERBS {
        let built = command.find_subcommand(verb.name).unwrap();
        let _ = write!(page, "\n    helenus {}\n", verb.name);
        page.push_str(&wrapped(verb.summary, "        "));
        if !verb.aliases.is_empty() {
            page.push_str(&wrapped(
                &format!("Older words: {}", verb.aliases.join(", ")),
                "        ",
            ));
        }
        for argument in built
            .get_arguments()
            .filter(|argument| argument.get_help_heading().is_none() && !argument.is_hide_set())
        {
            let values = argument.get_value_names().unwrap_or_default();
            let values: Vec<&str> = values.iter().map(clap::builder::Str::as_str).collect();
            let takes = argument.get_action().takes_values();
            let value = if takes { values.join(" ") } else { String::new() };
            let name = argument.get_long().map(|long| format!("--{long} ")).unwrap_or_default();
            let value = if value.is_empty() && takes {
                argument.get_id().as_str().to_uppercase()
            } else {
                value
            };
            let _ = writeln!(page, "        {}", format!("{name}{value}").trim_end());
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            page.push_str(&wrapped(&help, "            "));
        }
    }
    page
}

fn lint() -> String {
    let mut page = "# Advice on a data model\n\n\
                    <!-- before: echo \"CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
                    CREATE TABLE shop.jobs (id uuid PRIMARY KEY, name text);\n\
                    CREATE TABLE shop.events (day date, at timeuuid, PRIMARY KEY (day, at));\" >schema.cql\n\
                    echo \"SELECT * FROM shop.jobs WHERE id = ?;\" >queries.cql -->\n\
                    <!-- run -->\n\n    \
                    helenus lint schema.cql --queries queries.cql --profile cosmos\n    helenus lint --explain unbounded-partition\n\n\
                    The schema and the queries are files of CQL; `?` stands where values are. `--profile` chooses whose reasons are told. `--data` looks at\n\
                    stored rows too, while no server has them open. `--format sarif` is for programs that show findings beside code. The exit code is 1 if\n\
                    something of the level of `--fail-on` is found.\n\n\
                    Accept a finding by a comment in the line before the statement, or by a file:\n\n\
                    <!-- run: file queries.cql -->\n\n    -- helenus: accept full-scan counted once a night\n    \
                    SELECT count(*) FROM shop.jobs;\n\n\
                    <!-- before: helenus lint schema.cql --queries queries.cql | grep ', 1 accepted$' -->\n\
                    <!-- run -->\n\n    \
                    helenus lint schema.cql --baseline lint.json --write-baseline    # accepts what is there now\n    \
                    helenus lint schema.cql --baseline lint.json                     # tells what is new\n\n\
                    A comment that accepts nothing is a finding itself (`accepts-nothing`). Commands of cqlsh in a file are skipped, save SOURCE and COPY:\n\
                    these make tables and rows, and are told as errors.\n\n\
                    In a repository: `.pre-commit-hooks.yaml` has a hook for pre-commit, and `dist/action/action.yml` an action for GitHub (never run). Both\n\
                    need the program installed; it is not published. The program's table of rules generates this page.\n"
        .to_owned();
    for rule in advice::RULES {
        let _ = write!(page, "\n## {}\n\n{}\n\n", rule.id, rule.what);
        match rule.cassandra {
            Some(cassandra) => {
                page.push_str(&wrapped(&format!("- On Cosmos DB: {}", rule.why), ""));
                page.push_str(&wrapped(&format!("- On Cassandra: {cassandra}"), ""));
            }
            None => page.push_str(&wrapped(&format!("- Why: {}", rule.why), "")),
        }
        page.push_str(&wrapped(&format!("- Instead: {}", rule.instead), ""));
    }
    page
}

/// Tables that Cassandra does not have, with their columns, and the names of those that it has.
fn virtual_tables() -> String {
    let mut schema = helenus_schema::schema::system::base();
    views::define(&mut schema);
    let mut page = "# Virtual tables\n\nThese tables show the server's own figures. The program's views generate this page. Reads of them are not \
                    charged to a budget.\n\nDESCRIBE KEYSPACES lists Cassandra's keyspaces and yours. `system_cosmos` is Helenus's own and is \
                    not among them. These show it:\n\n<!-- before: helenus --data memory: >log 2>&1 & helenus health --wait 30s -->\n\n```sql\n\
                    DESCRIBE KEYSPACE system_cosmos;\nDESCRIBE TABLE system_cosmos.tables;\n\
                    SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_cosmos';\n```\n"
        .to_owned();
    for (name, keyspace) in &schema.keyspaces {
        let shown: Vec<_> = keyspace.tables.values().filter(|table| views::is_view(table)).collect();
        if shown.is_empty() {
            continue;
        }
        let _ = writeln!(page, "\n## {name}");
        if !shown.iter().any(|table| views::is_own(table)) {
            page.push_str("\nThe columns are Cassandra's.\n\n");
            for table in shown {
                let _ = writeln!(page, "- `{}`", table.name);
            }
            continue;
        }
        for table in shown {
            let _ = write!(page, "\n### {}\n\n", table.name);
            page.push_str(&wrapped(&format!("{}.", table.options.comment), ""));
            page.push_str("\n| column | type | key | meaning |\n|---|---|---|---|\n");
            for column in &table.columns {
                let key = match column.kind {
                    ColumnKind::PartitionKey => "partition",
                    ColumnKind::Clustering => "clustering",
                    ColumnKind::Static => "static",
                    ColumnKind::Regular => "",
                };
                let meaning = views::meaning(table, &column.name).unwrap_or_default();
                let _ = writeln!(
                    page,
                    "| `{}` | `{}` | {key} | {meaning} |",
                    column.name,
                    column.ty.cql_name()
                );
            }
        }
    }
    page
}

/// Every error code, and when a client receives it.
fn errors() -> String {
    let mut page =
        "# Error codes\n\nThe codes are the native protocol's. The program's table of codes generates this page.\n\n\
                    | code | name | when |\n|---|---|---|\n"
            .to_owned();
    for code in ErrorCode::ALL {
        let _ = writeln!(page, "| `0x{:04X}` | {code:?} | {} |", code.number(), code.meaning());
    }
    page.push_str(
        "\nVersion 3 of the protocol has no ReadFailure, WriteFailure and FunctionFailure: the server sends ReadTimeout, WriteTimeout and \
         Invalid.\nVersions 3 and 4 have no CasWriteUnknown: the server sends WriteTimeout.\n",
    );
    page
}

#[tokio::test]
async fn pages_of_the_book_are_those_of_the_tables() {
    for (name, page) in [
        ("settings.md", settings()),
        ("verbs.md", verbs()),
        ("lint.md", lint()),
        ("virtual-tables.md", virtual_tables()),
        ("errors.md", errors()),
        ("features.md", features::page().await),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs/src/reference")
            .join(name);
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == page,
            "docs/src/reference/{name} is not what the program says: UPDATE_GOLDENFILES=1 cargo test --lib book"
        );
    }
}
