//! Roles in backups: a whole backup has them, and a part has not.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::support::Client;
use helenus::server::operator::copying::import;
use helenus::server::operator::text::Form;
use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, FirstRole, Hashing, QueryParams, RoleOptions, SessionState};
use helenus_engine::engine::{RestoredRoles, What, salvage};
use helenus_schema::profile::Profile;
use helenus_storage::backup::Scope;

const fn hashing() -> Hashing {
    Hashing {
        cost: 4,
        salt: || Some([7; 16]),
        key: [1; 16],
    }
}

async fn enable(client: &Client, password: &str) -> FirstRole {
    let options = RoleOptions {
        superuser: ("boss".to_owned(), password.to_owned()),
        hashing: hashing(),
        cidr_groups: None,
    };
    client.database.enable_roles(options).await.unwrap()
}

/// As a client that has logged in.
async fn ask(database: &Database, role: &str, text: &str) -> Result<(), String> {
    let session = SessionState {
        user: Some(role.into()),
        client: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))),
        ..SessionState::default()
    };
    let answer = database.query(&session, text, &QueryParams::default()).await;
    answer.map(drop).map_err(|error| error.to_string())
}

async fn filled(url: &str) -> Client {
    let client = Client::open(url).await;
    assert_eq!(enable(&client, "first").await, FirstRole::Right);
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
        "CREATE ROLE readers",
        "GRANT SELECT ON ks.t TO readers",
        "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true",
        "GRANT readers TO ann",
        "CREATE ROLE gone",
        "DROP ROLE gone",
    ] {
        ask(&client.database, "boss", text).await.unwrap();
    }
    client
}

/// Whether a database has the roles of [`filled`], once it requires roles.
async fn has_roles(client: &Client) -> bool {
    // The superuser has the password that it had, and not the one that a new database would give it.
    if enable(client, "other").await != FirstRole::OtherPassword {
        return false;
    }
    let database = &client.database;
    ask(database, "ann", "SELECT * FROM ks.t").await.unwrap();
    assert!(ask(database, "ann", "INSERT INTO ks.t (k) VALUES (1)").await.is_err());
    let gone = ask(database, "boss", "GRANT readers TO gone").await;
    assert!(gone.unwrap_err().contains("gone doesn't exist"));
    let roles = database.roles().unwrap();
    let turn = roles.turn().await.unwrap();
    assert!(roles.is_right("ann", b"a".to_vec(), turn).await);
    true
}

async fn restored(from: &Path, what: &What) -> (Client, RestoredRoles) {
    let client = Client::open("memory:").await;
    let restored = client.database.engine().backups().restore(from, what).await.unwrap();
    assert_eq!(restored.tables, 1);
    (client, restored.roles)
}

#[tokio::test]
async fn a_whole_backup_has_the_roles_and_a_part_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let client = filled("memory:").await;
    let scope = Scope::Keyspace {
        keyspace: "ks".to_owned(),
    };
    let backups = client.database.engine().backups();
    backups.write(&path("whole"), &Scope::Whole).await.unwrap();
    backups.write(&path("part"), &scope).await.unwrap();

    let (target, roles) = restored(&path("whole"), &What::All).await;
    assert_eq!(roles, RestoredRoles::Restored);
    assert!(has_roles(&target).await);

    let keyspace = What::Keyspace {
        keyspace: "ks".to_owned(),
        to: "ks".to_owned(),
    };
    for (from, what) in [("part", &What::All), ("whole", &keyspace)] {
        let (target, roles) = restored(&path(from), what).await;
        assert_eq!(roles, RestoredRoles::None, "{from}");
        assert!(!has_roles(&target).await, "{from}");
    }
    let scope = Scope::Keyspace {
        keyspace: "system_auth".to_owned(),
    };
    let refused = backups.write(&path("none"), &scope).await.unwrap_err().to_string();
    assert!(
        refused.contains("only a backup of the whole database has the roles"),
        "{refused}"
    );
}

#[tokio::test]
async fn roles_that_are_there_stay() {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let client = filled("memory:").await;
    client
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    let target = Client::open("memory:").await;
    enable(&target, "own").await;
    let restored = target
        .database
        .engine()
        .backups()
        .restore(&backup, &What::All)
        .await
        .unwrap();
    assert_eq!(restored.roles, RestoredRoles::LeftOut);
    let roles = target.database.roles().unwrap();
    let turn = roles.turn().await.unwrap();
    assert!(roles.is_right("boss", b"own".to_vec(), turn).await);
    let ann = ask(&target.database, "boss", "GRANT ann TO boss").await;
    assert!(ann.unwrap_err().contains("ann doesn't exist"));
}

/// A restore that was killed left grants and no roles. A start, or `helenus passwd`, makes the first superuser, and a role
/// of the old name has no rights.
#[tokio::test]
async fn a_new_role_has_nothing_of_one_that_a_restore_left() {
    for is_by_passwd in [false, true] {
        nothing_is_left(is_by_passwd).await;
    }
}

async fn nothing_is_left(is_by_passwd: bool) {
    let client = Client::open("memory:").await;
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY)",
        "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ('bob', 'data/ks/t', {'SELECT'})",
        "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES ('data/ks/t', 'bob')",
        "INSERT INTO system_auth.identity_to_role (identity, role) VALUES ('of bob', 'bob')",
    ] {
        client.ok(text).await;
    }
    if is_by_passwd {
        let made = client
            .database
            .set_superuser("boss", "first".to_owned(), hashing())
            .await;
        assert!(made.unwrap());
    }
    assert_eq!(enable(&client, "first").await, FirstRole::Right);
    let database = &client.database;
    ask(database, "boss", "CREATE ROLE bob WITH LOGIN = true")
        .await
        .unwrap();
    assert!(ask(database, "bob", "SELECT * FROM ks.t").await.is_err());
    for table in ["role_permissions", "resource_role_permissons_index"] {
        let rows = client.rows(&format!("SELECT role FROM system_auth.{table}")).await;
        assert!(
            !rows.iter().any(|row| row.contains("bob") && !row.contains("boss")),
            "{table}: {rows:?}"
        );
    }
    assert!(
        client
            .rows("SELECT * FROM system_auth.identity_to_role")
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn imported_roles_hold_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roles.csv");
    let client = filled("memory:").await;
    std::fs::write(&file, "role,can_login,is_superuser\nimp,true,false\n").unwrap();
    let table = ("system_auth", "roles");
    let imported = import(&client.database, table, Form::Csv, &file, 0).await.unwrap();
    assert_eq!((imported.rows, imported.bad), (1, 0));
    ask(&client.database, "boss", "GRANT readers TO imp").await.unwrap();
    ask(&client.database, "imp", "SELECT * FROM ks.t").await.unwrap();

    std::fs::write(&file, "").unwrap();
    let refused = import(&client.database, table, Form::Csv, &file, 0).await.unwrap_err();
    assert!(refused.to_string().contains("the file is empty"), "{refused}");
}

#[tokio::test]
async fn a_salvage_has_the_roles() {
    let folder = tempfile::tempdir().unwrap();
    let (url, saved) = (
        format!("file:{}", folder.path().join("data").display()),
        folder.path().join("saved"),
    );
    let client = filled(&url).await;
    let clock: Clock = client.clock.clone();
    client.database.close().await.unwrap();
    drop(client);
    let salvaged = salvage(&url, &clock, Profile::default(), &saved).await.unwrap();
    assert!(salvaged.manifest.lost.is_empty(), "{:?}", salvaged.manifest.lost);
    let (target, roles) = restored(&saved, &What::All).await;
    assert_eq!(roles, RestoredRoles::Restored);
    assert!(has_roles(&target).await);
}
