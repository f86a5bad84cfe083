//! `--init`: CQL that runs before a server answers, as in container images of databases.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Failure;
use crate::advice::Script;
use helenus_cql::cql::{AnswerKind, Database, QueryParams, SessionState};
use helenus_schema::schema::system;
use helenus_types::types::quoted;

/// Runs a file of statements, or the `.cql` files of a directory in the order of their names. Data with a user's
/// keyspace stays unchanged, so a server that restarts on the same data runs nothing.
///
/// # Errors
/// A file cannot be read, or a statement is rejected. Then the new keyspaces are dropped again, so that the next start
/// runs all.
pub(super) async fn apply(database: &Database, path: &Path) -> Result<(), Failure> {
    if !keyspaces(database).is_empty() {
        tracing::warn!(path = %path.display(), "init is not run: the data has keyspaces already");
        return Ok(());
    }
    let outcome = run(database, path).await;
    if outcome.is_err() {
        for name in keyspaces(database) {
            let drop = format!("DROP KEYSPACE {}", quoted(&name));
            let dropped = database
                .query(&SessionState::default(), &drop, &QueryParams::default())
                .await;
            if let Err(error) = dropped {
                tracing::error!(keyspace = name, %error, "what init made of a keyspace cannot be dropped again");
            }
        }
    }
    outcome
}

/// The keyspaces of users.
fn keyspaces(database: &Database) -> Vec<String> {
    let schema = database.engine().schema();
    let names = schema.keyspaces.keys().filter(|name| !system::is_name(name));
    names.cloned().collect()
}

async fn run(database: &Database, path: &Path) -> Result<(), Failure> {
    let mut session = SessionState::default();
    for script in scripts(path)? {
        let name = &script.name;
        for (line, statement) in script.texts() {
            let done = database.query(&session, statement, &QueryParams::default()).await;
            let answer = done.map_err(|error| format!("init: {name}:{line}: {error}"))?;
            if let AnswerKind::SetKeyspace(keyspace) = answer.kind {
                session.keyspace = Some(Arc::from(keyspace.as_ref()));
            }
        }
    }
    Ok(())
}

/// The files as scripts, in the order of their names. A command that only cqlsh can execute is rejected before anything
/// runs.
fn scripts(path: &Path) -> Result<Vec<Script>, Failure> {
    let mut scripts = Vec::new();
    for file in files(path)? {
        let name = file.display().to_string();
        let text = fs::read_to_string(&file).map_err(|error| format!("init: cannot read {name}: {error}"))?;
        let script = Script::new(&name, &text);
        if let Some((line, command)) = script.unread() {
            return Err(format!("init: {name}:{line}: {command}").into());
        }
        scripts.push(script);
    }
    Ok(scripts)
}

/// The files, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| format!("init: cannot read {}: {error}", path.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "cql") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(format!("init: {} has no .cql file", path.display()).into());
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_cqlsh_could_carry_out_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let told = |text: &str| {
            fs::write(folder.path().join("a.cql"), text).unwrap();
            scripts(folder.path())
                .map(|scripts| scripts.len())
                .map_err(|error| error.to_string())
        };
        assert_eq!(told("TRACING ON\nCONSISTENCY ONE;\nUSE k;"), Ok(1));
        for (text, line, word) in [
            ("USE k;\nSOURCE 'x.cql'\n", "a.cql:2: SOURCE", "name that file itself"),
            ("COPY t FROM 'x.csv';", "a.cql:1: COPY", "helenus import"),
        ] {
            let error = told(text).unwrap_err();
            assert!(error.contains(line) && error.contains(word), "{error}");
        }
    }
}
