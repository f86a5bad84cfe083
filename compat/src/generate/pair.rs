//! The two servers, asked one after the other in a keyspace of the same name.

use super::question::Question;
use super::roles;
use crate::oracle::replay;
use crate::oracle::script::Step;
use crate::raw::Connection;
use crate::raw::connection::Login;
use crate::{Error, Outcome};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

/// Protocol version: the one that carries `now_in_seconds`.
const VERSION: u8 = 5;

/// How often a keyspace of Cassandra's is made before the run fails: on a busy machine it may not answer in time.
const MAKES_MAX: usize = 4;

/// Held by who drops a keyspace: Cassandra then writes what it has in memory to disk, of every table, and its answers may depend
/// on that. Held alone by who wants to see what it answers without.
static DROPS: RwLock<()> = RwLock::new(());

/// Whether the servers ask for a login; their keyspaces may then have left roles from another run.
static ROLES: AtomicBool = AtomicBool::new(false);

/// Says that the servers ask for a login.
pub(super) fn with_roles() {
    ROLES.store(true, Ordering::Relaxed);
}

/// One server.
#[derive(Debug)]
struct Side {
    address: String,
    /// By the name of the role that has logged in; none: the superuser.
    connections: HashMap<String, Connection>,
    /// Whether the keyspace has had roles.
    has_roles: bool,
}

impl Side {
    fn get(&mut self, keyspace: &str, by: Option<usize>) -> Outcome<&mut Connection> {
        let login = match by {
            None => Login::superuser(),
            Some(number) => Login {
                user: roles::name(number).replace("{ks}", keyspace),
                password: roles::PASSWORD.to_owned(),
            },
        };
        match self.connections.entry(login.user.clone()) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => {
                let mut connection = Connection::login(&self.address, VERSION, Some(&login))?;
                if !keyspace.is_empty() {
                    connection.must(&format!("USE {keyspace}"))?;
                }
                Ok(place.insert(connection))
            }
        }
    }

    /// Drops the keyspace and its roles.
    fn drop(&mut self, keyspace: &str) -> Outcome<()> {
        let superuser = Login::superuser().user;
        self.connections.retain(|user, _| *user == superuser);
        let has_roles = std::mem::take(&mut self.has_roles);
        let connection = self.get("", None)?;
        connection.must(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
        for number in (0..roles::ROLES).filter(|_| has_roles) {
            let role = roles::name(number).replace("{ks}", keyspace);
            connection.must(&format!("DROP ROLE IF EXISTS {role}"))?;
        }
        Ok(())
    }

    fn make(&mut self, keyspace: &str, roles: bool) -> Outcome<()> {
        self.has_roles |= roles;
        self.drop(keyspace)?;
        let connection = self.get("", None)?;
        connection.must(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ))?;
        connection.must(&format!("USE {keyspace}"))?;
        Ok(())
    }

    /// The same; once more where there is no answer in time, or another refusal.
    fn make_patiently(&mut self, keyspace: &str, roles: bool) -> Outcome<()> {
        for _ in 1..MAKES_MAX {
            if self.make(keyspace, roles).is_ok() {
                return Ok(());
            }
            // An answer may come yet, which would be taken for that of the next request.
            self.connections.clear();
        }
        self.make(keyspace, roles)
    }

    fn ask(&mut self, keyspace: &str, step: &Step, by: Option<usize>) -> Value {
        let version = match self.get(keyspace, by) {
            Ok(connection) => Ok(connection),
            // A login that is refused is an answer.
            Err(error) if by.is_some() => return json!({"code": "0x0100", "message": error.to_string()}),
            Err(error) => Err(error),
        };
        let asked = version.and_then(|connection| replay::ask(connection, step));
        let mut told = asked.unwrap_or_else(|error| {
            self.connections.clear();
            json!({"broken": error.to_string()})
        });
        replay::normalise(&mut told, step);
        if step.text.starts_with("LIST ") {
            keep_roles_of(&mut told, keyspace);
        }
        told
    }

    /// Waits until this read has a row: an index or a view is built. False if it has none in time.
    fn is_built(&mut self, keyspace: &str, text: &str) -> Outcome<bool> {
        replay::is_built(self.get(keyspace, None)?, text)
    }
}

/// Leaves out what a LIST statement tells of the roles of other rounds, which come and go meanwhile.
fn keep_roles_of(told: &mut Value, keyspace: &str) {
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (any, own) = (hex("gen_"), hex(&format!("{keyspace}_r")));
    let rows = told.get_mut("rows").and_then(Value::as_array_mut);
    rows.into_iter().for_each(|rows| {
        rows.retain(|row| {
            let role = row.get(0).and_then(Value::as_str).unwrap_or_default();
            !role.starts_with(&any) || role.starts_with(&own)
        });
    });
}

/// Cassandra and Helenus, each with a connection of its own.
#[derive(Debug)]
pub(super) struct Pair {
    theirs: Side,
    ours: Side,
    keyspace: String,
    /// Whether a keyspace may have left roles from another run.
    roles: bool,
}

impl Pair {
    /// Not yet connected.
    pub(super) fn new(cassandra: &str, target: &str) -> Self {
        let side = |address: &str| Side {
            address: address.to_owned(),
            connections: HashMap::new(),
            has_roles: false,
        };
        Self {
            theirs: side(cassandra),
            ours: side(target),
            keyspace: String::new(),
            roles: ROLES.load(Ordering::Relaxed),
        }
    }

    /// Makes an empty keyspace of this name on both and goes there.
    ///
    /// # Errors
    /// When a server is not there or refuses.
    pub(super) fn enter(&mut self, keyspace: &str) -> Outcome<()> {
        let _held = DROPS.read().unwrap_or_else(PoisonError::into_inner);
        self.make(keyspace)
    }

    /// The same, and as long as what is given back is kept no keyspace is dropped by this program.
    ///
    /// # Errors
    /// As [`Pair::enter`].
    pub(super) fn enter_quietly(&mut self, keyspace: &str) -> Outcome<RwLockWriteGuard<'static, ()>> {
        let held = DROPS.write().unwrap_or_else(PoisonError::into_inner);
        self.make(keyspace)?;
        Ok(held)
    }

    fn make(&mut self, keyspace: &str) -> Outcome<()> {
        keyspace.clone_into(&mut self.keyspace);
        let Self {
            theirs, ours, roles, ..
        } = self;
        let roles = *roles;
        let (a, b) = std::thread::scope(|scope| {
            let other = scope.spawn(|| ours.make(keyspace, roles));
            let a = theirs.make_patiently(keyspace, roles);
            (a, other.join().unwrap_or_else(|_| Err(Error::failed("a thread ended"))))
        });
        a.and(b)
    }

    /// Drops the keyspace on both; what goes wrong is of no interest any more.
    pub(super) fn leave(&mut self) {
        let _held = DROPS.read().unwrap_or_else(PoisonError::into_inner);
        for side in [&mut self.theirs, &mut self.ours] {
            if side.drop(&self.keyspace).is_err() {
                side.connections.clear();
            }
        }
    }

    /// Asks both; Cassandra's answer first. An index that both have made is waited for.
    ///
    /// # Errors
    /// When the statement cannot be written as a script, or an index or view is never built: [`Error::Unbuilt`] for a view of which
    /// only Cassandra's is not.
    pub(super) fn ask(&mut self, question: &Question) -> Outcome<(Value, Value)> {
        let step = question.in_keyspace(&self.keyspace).step()?;
        let has_roles = question.text.starts_with("CREATE ROLE ");
        for side in [&mut self.theirs, &mut self.ours] {
            side.has_roles |= has_roles;
        }
        let theirs = self.theirs.ask(&self.keyspace, &step, question.by);
        let ours = self.ours.ask(&self.keyspace, &step, question.by);
        let built = index_name(&question.text).map(|index| {
            format!(
                "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{}' AND index_name = '{index}'",
                self.keyspace
            )
        });
        let view = replay::view_name(&question.text);
        let built = built.or_else(|| Some(replay::built_view(&self.keyspace, view?)));
        if let Some(built) = built {
            let is_made = |answer: &Value| answer.get("kind").and_then(Value::as_str) == Some("schema_change");
            // Ours first, so that it is a failure whatever Cassandra does.
            if is_made(&ours) && !self.ours.is_built(&self.keyspace, &built)? {
                return Err(Error::failed(format!("{}: not built: {built}", self.ours.address)));
            }
            if is_made(&theirs) && !self.theirs.is_built(&self.keyspace, &built)? {
                return Err(unbuilt_by_cassandra(view, &built));
            }
        }
        Ok((theirs, ours))
    }
}

/// What a round fails with if Cassandra alone has not built what a statement makes. It forgets a view now and then, but no index.
fn unbuilt_by_cassandra(view: Option<&str>, built: &str) -> Error {
    match view {
        Some(_) => Error::Unbuilt(built.to_owned()),
        None => Error::failed(format!("Cassandra: not built: {built}")),
    }
}

/// The name of the index that a statement makes.
fn index_name(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("CREATE INDEX ")
        .or_else(|| text.strip_prefix("CREATE CUSTOM INDEX "))?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::unbuilt_by_cassandra;
    use crate::Error;

    #[test]
    fn an_index_that_cassandra_did_not_build_is_a_failure() {
        assert!(matches!(unbuilt_by_cassandra(Some("v"), "SELECT"), Error::Unbuilt(_)));
        assert!(matches!(unbuilt_by_cassandra(None, "SELECT"), Error::Failed(_)));
    }
}
