//! What an application does through the Rust driver: types, paging, prepared statements, batches, user types, metadata,
//! schema changes seen by another session, token awareness, conditional updates, errors.
//!
//! A line for each test and `rust: N passed, N failed` at the end, as the suites of the other languages.

mod tests;

use crate::{Error, Outcome};
use futures::future::BoxFuture;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// The keyspace of the suite.
const KEYSPACE: &str = "compat_rust";

type Test = for<'a> fn(&'a Session, &'a str) -> BoxFuture<'a, Outcome<()>>;

/// Runs the suite on the server at `address`; true when all tests passed.
///
/// # Errors
/// When no session can be made.
pub fn run(address: &str) -> Outcome<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(all(address))
}

/// A session with the server.
async fn connect(address: &str) -> Outcome<Session> {
    SessionBuilder::new().known_node(address).build().await.map_err(failed)
}

/// Any error of the driver, in its words.
fn failed(error: impl std::fmt::Display) -> Error {
    Error::Driver(error.to_string())
}

/// Holds when both are the same.
fn same<T: PartialEq + std::fmt::Debug>(got: &T, expected: &T) -> Outcome<()> {
    if got == expected {
        Ok(())
    } else {
        Err(Error::failed(format!("expected {expected:?}, got {got:?}")))
    }
}

/// Runs a statement without values, `KS.` standing for the keyspace.
async fn execute(session: &Session, text: &str) -> Outcome<()> {
    session
        .query_unpaged(text.replace("KS.", "compat_rust."), &[])
        .await
        .map(|_| ())
        .map_err(failed)
}

async fn all(address: &str) -> Outcome<bool> {
    let session = connect(address).await?;
    execute(&session, &format!("DROP KEYSPACE IF EXISTS {KEYSPACE}")).await?;
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    execute(
        &session,
        &format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"),
    )
    .await?;
    let mut bad = 0;
    for (name, test) in tests::TESTS {
        match test(&session, address).await {
            Ok(()) => println!("PASS {name}"),
            Err(error) => {
                bad += 1;
                println!("FAIL {name}: {error}");
            }
        }
    }
    execute(&session, &format!("DROP KEYSPACE {KEYSPACE}")).await?;
    println!("rust: {} passed, {bad} failed", tests::TESTS.len() - bad);
    Ok(bad == 0)
}
