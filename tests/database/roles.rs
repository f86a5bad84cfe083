//! What roles may do, by statements. `compat/run permissions` asks Cassandra the same of some 3,900 cases.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use helenus_cql::cql::{FirstRole, Hashing, Member, QueryParams, RoleOptions, SessionState};
use helenus_schema::command::BatchKind;

use crate::support::Client;
use helenus_schema::roles::{Cidr, CidrGroups};

/// Roles of a database, and one session for each.
struct House {
    client: Client,
}

impl House {
    /// With `boss`, a superuser, and `ann`, who may nothing.
    async fn new(url: &str) -> Self {
        let client = Client::open(url).await;
        let first = client.database.enable_roles(options("boss", "secret")).await.unwrap();
        assert_eq!(first, FirstRole::Right);
        let house = Self { client };
        for statement in [
            "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true",
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
            "CREATE TABLE ks.u (k int PRIMARY KEY, v int)",
        ] {
            house.ok("boss", statement).await;
        }
        house
    }

    async fn ask(&self, role: &str, text: &str) -> Result<helenus_cql::cql::Answer, String> {
        let (session, params) = (session(role), QueryParams::default());
        let answer = self.client.database.query(&session, text, &params).await;
        answer.map_err(|error| error.to_string())
    }

    async fn ok(&self, role: &str, text: &str) {
        self.ask(role, text)
            .await
            .unwrap_or_else(|error| panic!("{role}: {text}: {error}"));
    }

    /// The permission that a statement is refused for.
    async fn lacks(&self, role: &str, text: &str, what: &str) {
        let expected = format!("User {role} has no {what} or any of its parents");
        assert_eq!(self.ask(role, text).await.err(), Some(expected), "{text}");
    }
}

fn options(user: &str, password: &str) -> RoleOptions {
    RoleOptions {
        superuser: (user.to_owned(), password.to_owned()),
        hashing: hashing(),
        cidr_groups: None,
    }
}

fn hashing() -> Hashing {
    Hashing {
        cost: 4,
        salt: || Some([7; 16]),
        key: [1; 16],
    }
}

/// A session as a client that has logged in has it.
fn session(role: &str) -> SessionState {
    SessionState {
        user: Some(role.into()),
        client: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))),
        ..SessionState::default()
    }
}

#[tokio::test]
async fn a_revoke_holds_for_what_was_prepared_before_it() {
    let house = House::new("memory:").await;
    house.ok("boss", "GRANT SELECT ON ks.t TO ann").await;
    house.ok("boss", "GRANT MODIFY ON ks.t TO ann").await;
    let database = &house.client.database;
    let read = database.prepare(None, "SELECT * FROM ks.t WHERE k = 1").unwrap();
    let write = database
        .prepare(None, "UPDATE ks.t SET v = 1 WHERE k = 1 IF v = 2")
        .unwrap();
    let run = async |statement| {
        let done = database
            .execute(&session("ann"), statement, &QueryParams::default())
            .await;
        done.err().map(|error| error.to_string())
    };
    assert_eq!((run(&read).await, run(&write).await), (None, None));
    house.ok("boss", "REVOKE SELECT ON ks.t FROM ann").await;
    let refused = Some("User ann has no SELECT permission on <table ks.t> or any of its parents".to_owned());
    // What a condition says is read, too.
    assert_eq!((run(&read).await, run(&write).await), (refused.clone(), refused));
    house.ok("ann", "UPDATE ks.t SET v = 1 WHERE k = 1").await;
}

#[tokio::test]
async fn each_member_of_a_batch_is_permitted() {
    let house = House::new("memory:").await;
    house.ok("boss", "GRANT MODIFY ON ks.t TO ann").await;
    let texts = ["INSERT INTO ks.t (k) VALUES (1)", "INSERT INTO ks.u (k) VALUES (1)"];
    let members = || texts.map(|text| (Member::Text(text.to_owned()), Vec::new())).into();
    let params = QueryParams::default();
    let run = async || {
        let session = session("ann");
        let batch = house
            .client
            .database
            .batch(&session, BatchKind::Logged, members(), &params);
        batch.await.err().map(|error| error.to_string())
    };
    let refused = "User ann has no MODIFY permission on <table ks.u> or any of its parents";
    assert_eq!(run().await.as_deref(), Some(refused));
    let text = format!("BEGIN BATCH {}; {} APPLY BATCH", texts[0], texts[1]);
    house.lacks("ann", &text, "MODIFY permission on <table ks.u>").await;
    house.ok("boss", "GRANT MODIFY ON KEYSPACE ks TO ann").await;
    assert_eq!(run().await, None);
}

#[tokio::test]
async fn what_is_dropped_takes_its_permissions_along() {
    let house = House::new("memory:").await;
    for (drop, create) in [
        ("DROP TABLE ks.t", "CREATE TABLE ks.t (k int PRIMARY KEY, v int)"),
        ("DROP ROLE ann", "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true"),
    ] {
        house.ok("boss", "GRANT SELECT ON ks.t TO ann").await;
        house.ok("ann", "SELECT * FROM ks.t").await;
        house.ok("boss", drop).await;
        // A connection of a role that is gone still reads what drivers need, as in Cassandra.
        house.ok("ann", "SELECT table_name FROM system_schema.tables").await;
        house.ok("boss", create).await;
        house
            .lacks("ann", "SELECT * FROM ks.t", "SELECT permission on <table ks.t>")
            .await;
    }
}

#[tokio::test]
async fn a_creator_may_do_everything_with_what_it_made() {
    let house = House::new("memory:").await;
    let create = "CREATE TABLE ks.mine (k int PRIMARY KEY)";
    house
        .lacks("ann", create, "CREATE permission on <all tables in ks>")
        .await;
    house.ok("boss", "GRANT CREATE ON KEYSPACE ks TO ann").await;
    for statement in [
        create,
        "INSERT INTO ks.mine (k) VALUES (1)",
        "SELECT * FROM ks.mine",
        "ALTER TABLE ks.mine ADD v int",
        "DROP TABLE ks.mine",
    ] {
        house.ok("ann", statement).await;
    }
    house
        .lacks("ann", "DROP TABLE ks.t", "DROP permission on <table ks.t>")
        .await;
}

#[tokio::test]
async fn a_permission_on_all_keyspaces_is_none_on_the_systems() {
    let house = House::new("memory:").await;
    house.ok("boss", "GRANT ALL ON ALL KEYSPACES TO ann").await;
    house.ok("ann", "SELECT * FROM ks.t").await;
    for (statement, what) in [
        (
            "SELECT salted_hash FROM system_auth.roles",
            "SELECT permission on <table system_auth.roles>",
        ),
        (
            "INSERT INTO system_auth.roles (role, is_superuser) VALUES ('ann', true)",
            "MODIFY permission on <table system_auth.roles>",
        ),
        (
            "TRUNCATE system_auth.roles",
            "MODIFY permission on <table system_auth.roles>",
        ),
    ] {
        house.lacks("ann", statement, what).await;
    }
    house.ok("ann", "SELECT * FROM system.local").await;
    // A superuser changes rows, and they hold at once.
    house
        .ok(
            "boss",
            "UPDATE system_auth.roles SET is_superuser = true WHERE role = 'ann'",
        )
        .await;
    house.ok("ann", "SELECT salted_hash FROM system_auth.roles").await;
}

#[tokio::test]
async fn a_session_of_a_role_that_is_gone_may_nothing() {
    let house = House::new("memory:").await;
    house.ok("boss", "GRANT ALL ON ALL KEYSPACES TO ann").await;
    house.ok("ann", "SELECT * FROM ks.t").await;
    house.ok("boss", "DROP ROLE ann").await;
    for statement in [
        "SELECT * FROM ks.t",
        "INSERT INTO ks.t (k) VALUES (1)",
        "LIST ROLES OF boss",
    ] {
        assert!(house.ask("ann", statement).await.is_err(), "{statement}");
    }
    let nobody = SessionState {
        user: None,
        ..session("ann")
    };
    let asked = house
        .client
        .database
        .query(&nobody, "SELECT * FROM ks.t", &QueryParams::default())
        .await;
    assert!(asked.unwrap_err().to_string().contains("not anonymous"));
}

#[tokio::test]
async fn roles_are_there_after_a_reopening_and_the_first_one_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("data").display());
    let house = House::new(&url).await;
    house.ok("boss", "GRANT MODIFY ON ks.t TO ann").await;
    house.ok("boss", "CREATE ROLE chief WITH SUPERUSER = true").await;
    house.ok("chief", "DROP ROLE boss").await;
    house.client.database.close().await.unwrap();
    let client = Client::open(&url).await;
    // The name and the password of the settings let nobody in that was sent away.
    let first = client.database.enable_roles(options("boss", "secret")).await.unwrap();
    assert_eq!(first, FirstRole::Missing);
    let house = House { client };
    house.ok("ann", "INSERT INTO ks.t (k) VALUES (1)").await;
    house
        .lacks("ann", "SELECT * FROM ks.t", "SELECT permission on <table ks.t>")
        .await;
    assert!(house.ask("boss", "SELECT * FROM ks.t").await.is_err());
    house.client.database.close().await.unwrap();
    // A way back in.
    let client = Client::open(&url).await;
    let set = client.database.set_superuser("boss", "new".to_owned(), hashing());
    set.await.unwrap();
    let first = client.database.enable_roles(options("boss", "new")).await.unwrap();
    assert_eq!(first, FirstRole::Right);
    House { client }.ok("boss", "SELECT * FROM ks.t").await;
}

/// Asks as a role at an address; gives the error.
async fn ask_from(client: &Client, role: &str, address: &str, text: &str) -> Option<String> {
    let session = SessionState {
        client: Some(SocketAddr::new(address.parse().unwrap(), 1)),
        ..session(role)
    };
    let params = QueryParams::default();
    let answer = client.database.query(&session, text, &params).await;
    answer.err().map(|error| error.to_string())
}

/// Groups of addresses, as the settings give them.
fn groups(ranges: &[(&str, &str)]) -> CidrGroups {
    let mut of_name: BTreeMap<String, BTreeSet<Cidr>> = BTreeMap::new();
    for (name, range) in ranges {
        let of_name = of_name.entry((*name).to_owned()).or_default();
        of_name.insert(range.parse().unwrap());
    }
    CidrGroups::new(of_name)
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn a_role_may_be_used_from_its_groups_of_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("data").display());
    let client = Client::open(&url).await;
    let given = [
        ("office", "10.0.0.0/8"),
        ("branch", "10.1.0.0/16"),
        ("six", "2001:db8::/32"),
    ];
    let with_groups = RoleOptions {
        cidr_groups: Some(groups(&given)),
        ..options("boss", "secret")
    };
    client.database.enable_roles(with_groups).await.unwrap();
    let ask = async |role: &str, address: &str, text: &str| ask_from(&client, role, address, text).await;
    for statement in [
        "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true AND ACCESS FROM CIDRS {'office', 'six'}",
        "CREATE ROLE bob WITH PASSWORD = 'b' AND LOGIN = true",
        "CREATE ROLE chief WITH SUPERUSER = true AND LOGIN = true AND ACCESS FROM CIDRS {'six'}",
        "CREATE ROLE cid WITH PASSWORD = 'c' AND LOGIN = true AND ACCESS FROM CIDRS {'six'}",
        "GRANT chief TO cid",
    ] {
        assert_eq!(ask("boss", "127.0.0.1", statement).await, None, "{statement}");
    }
    let read = "SELECT key FROM system.local";
    // Role, address, and whether it is inside.
    for (role, address, is_inside) in [
        ("ann", "10.2.3.4", true),
        ("ann", "::ffff:10.2.3.4", true),
        ("ann", "2001:db8::1", true),
        ("ann", "127.0.0.1", false),
        ("ann", "2001:db9::1", false),
        // Its narrowest range is of the branch only.
        ("ann", "10.1.3.4", false),
        ("bob", "127.0.0.1", true),
        ("chief", "127.0.0.1", true),
        ("cid", "127.0.0.1", true),
    ] {
        let refused = ask(role, address, read).await;
        assert_eq!(refused.is_none(), is_inside, "{role} {address}: {refused:?}");
    }
    let from = |address: &str| Some(format!("You do not have access from this IP {address}"));
    assert_eq!(ask("ann", "127.0.0.1", read).await, from("127.0.0.1"));
    assert_eq!(ask("ann", "::ffff:127.0.0.1", read).await, from("127.0.0.1"));
    assert_eq!(ask("ann", "::1", read).await, from("0:0:0:0:0:0:0:1"));
    for statement in [
        "LIST ROLES",
        "USE system",
        "CREATE ROLE x",
        "TRUNCATE system_auth.roles",
    ] {
        assert_eq!(
            ask("ann", "127.0.0.1", statement).await,
            from("127.0.0.1"),
            "{statement}"
        );
    }
    // As in Cassandra.
    assert_eq!(ask("ann", "127.0.0.1", "DESCRIBE KEYSPACES").await, None);

    let unknown = "Invalid CIDR group(s): [home, six]. Available CIDR Groups are: [branch, office, six]";
    for statement in [
        "ALTER ROLE ann WITH ACCESS FROM CIDRS {'six', 'home'}",
        "CREATE ROLE dan WITH ACCESS FROM CIDRS {'six', 'home'}",
    ] {
        assert_eq!(ask("boss", "127.0.0.1", statement).await.as_deref(), Some(unknown));
    }
    let own = "ALTER ROLE ann WITH ACCESS FROM ALL CIDRS";
    let refused = ask("ann", "10.2.3.4", own).await;
    assert_eq!(
        refused.as_deref(),
        Some("Only superusers are allowed to alter access from CIDR groups.")
    );

    // A change holds for the next request, and so does a change of the groups' rows.
    assert_eq!(ask("boss", "127.0.0.1", own).await, None);
    assert_eq!(ask("ann", "127.0.0.1", read).await, None);
    let branch = "ALTER ROLE bob WITH ACCESS FROM CIDRS {'branch'}";
    assert_eq!(ask("boss", "127.0.0.1", branch).await, None);
    assert_eq!(ask("bob", "127.0.0.1", read).await, from("127.0.0.1"));
    let widen = "UPDATE system_auth.cidr_groups SET cidrs = {('127.0.0.0', 8)} WHERE cidr_group = 'branch'";
    assert_eq!(ask("boss", "127.0.0.1", widen).await, None);
    assert_eq!(ask("bob", "127.0.0.1", read).await, None);

    let mut rows = client
        .rows("SELECT role, cidr_groups FROM system_auth.cidr_permissions")
        .await;
    rows.sort();
    let expected = [
        r#""ann" []"#,
        r#""bob" ["branch"]"#,
        r#""chief" ["six"]"#,
        r#""cid" ["six"]"#,
    ];
    assert_eq!(rows, expected);
    assert_eq!(ask("boss", "127.0.0.1", "DROP ROLE cid").await, None);
    let of_cid = "SELECT role FROM system_auth.cidr_permissions WHERE role = 'cid'";
    assert_eq!(client.rows(of_cid).await, Vec::<String>::new());
    client.database.close().await.unwrap();

    // The next start has other groups.
    let client = Client::open(&url).await;
    let with_groups = RoleOptions {
        cidr_groups: Some(groups(&[("office", "192.168.0.0/16"), ("office", "127.0.0.0/8")])),
        ..options("boss", "secret")
    };
    client.database.enable_roles(with_groups).await.unwrap();
    assert_eq!(ask_from(&client, "bob", "10.1.0.1", read).await, from("10.1.0.1"));
    let office = "ALTER ROLE bob WITH ACCESS FROM CIDRS {'office'}";
    assert_eq!(ask_from(&client, "boss", "127.0.0.1", office).await, None);
    assert_eq!(ask_from(&client, "bob", "127.0.0.1", read).await, None);
    assert_eq!(ask_from(&client, "bob", "10.1.0.1", read).await, from("10.1.0.1"));
    let rows = client
        .rows("SELECT cidr_group, cidrs FROM system_auth.cidr_groups")
        .await;
    assert_eq!(rows, [r#""office" [["127.0.0.0", 8], ["192.168.0.0", 16]]"#]);
    client.database.close().await.unwrap();

    // Without the setting they are not checked.
    let client = Client::open(&url).await;
    client.database.enable_roles(options("boss", "secret")).await.unwrap();
    assert_eq!(ask_from(&client, "bob", "10.1.0.1", read).await, None);
    let restricted = client.database.roles().unwrap().restricted_to_addresses();
    assert_eq!(restricted, ["bob".into(), "chief".into()]);
}

#[tokio::test]
async fn a_password_is_right_until_it_changes() {
    let house = House::new("memory:").await;
    let roles = house.client.database.roles().unwrap();
    let right = async |password: &str| {
        let turn = roles.turn().await.unwrap();
        roles.is_right("ann", password.into(), turn).await
    };
    assert!(!roles.is_known("ann", b"a"));
    assert!(!right("b").await && !roles.is_known("ann", b"b"));
    assert!(right("a").await && roles.is_known("ann", b"a"));
    house.client.clock.advance(Duration::from_millis(5001));
    house.ok("ann", "ALTER ROLE ann WITH PASSWORD = 'b'").await;
    assert!(!roles.is_known("ann", b"a") && !right("a").await && right("b").await);
    assert!(roles.admit("ann").is_ok());
    house.ok("boss", "ALTER ROLE ann WITH LOGIN = false").await;
    assert_eq!(
        roles.admit("ann").unwrap_err().to_string(),
        "ann is not permitted to log in"
    );
    house.ok("boss", "DROP ROLE ann").await;
    assert!(!roles.is_known("ann", b"b") && !right("b").await);
}

/// Cassandra 5.0.9 was asked the same, in the same order.
#[tokio::test]
async fn a_password_is_not_changed_twice_in_five_seconds() {
    let house = House::new("memory:").await;
    let later = || house.client.clock.advance(Duration::from_millis(5001));
    let too_soon = async |statement: &str, role: &str| {
        let error = house.ask("boss", statement).await.unwrap_err();
        assert_eq!(
            error,
            format!("Password for role {role} can only be changed every 5000ms.")
        );
    };
    house
        .ok("boss", "CREATE ROLE pw WITH PASSWORD = 'a' AND LOGIN = true")
        .await;
    too_soon("ALTER ROLE pw WITH PASSWORD = 'b'", "pw").await;
    too_soon("ALTER ROLE pw WITH PASSWORD = 'b' AND LOGIN = false", "pw").await;
    too_soon("ALTER USER pw WITH PASSWORD 'c'", "pw").await;
    house.ok("boss", "ALTER ROLE pw WITH LOGIN = true").await;
    house.client.clock.advance(Duration::from_millis(5000));
    too_soon("ALTER ROLE pw WITH PASSWORD = 'b'", "pw").await;
    later();
    house.ok("boss", "ALTER ROLE pw WITH PASSWORD = 'b'").await;
    too_soon("ALTER ROLE pw WITH PASSWORD = 'c'", "pw").await;
    // A hash is taken at once, and counts as a change.
    let hash = "$2a$04$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG";
    later();
    house
        .ok("boss", &format!("ALTER ROLE pw WITH HASHED PASSWORD = '{hash}'"))
        .await;
    too_soon("ALTER ROLE pw WITH PASSWORD = 'd'", "pw").await;
    house
        .ok("boss", &format!("ALTER ROLE pw WITH HASHED PASSWORD = '{hash}'"))
        .await;
    // A role without a password gets its first one at once, and no second one, even when it was dropped meanwhile.
    house.ok("boss", "CREATE ROLE none WITH LOGIN = true").await;
    house.ok("boss", "ALTER ROLE none WITH PASSWORD = 'b'").await;
    too_soon("ALTER ROLE none WITH PASSWORD = 'c'", "none").await;
    house.ok("boss", "DROP ROLE none").await;
    house.ok("boss", "CREATE ROLE none WITH LOGIN = true").await;
    too_soon("ALTER ROLE none WITH PASSWORD = 'c'", "none").await;
    // The superuser of the first start changes its password at once.
    house.ok("boss", "ALTER ROLE boss WITH PASSWORD = 'other'").await;
}

/// A house with functions: `f`, `g`, and an aggregate of both.
async fn with_functions() -> House {
    let house = House::new("memory:").await;
    for statement in [
        "CREATE FUNCTION ks.f(a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
        "CREATE FUNCTION ks.g(a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return b;'",
        "CREATE AGGREGATE ks.ag(int) SFUNC g STYPE int FINALFUNC f INITCOND 0",
        "GRANT SELECT ON ks.t TO ann",
        "GRANT MODIFY ON ks.t TO ann",
    ] {
        house.ok("boss", statement).await;
    }
    house
}

const F: &str = "EXECUTE permission on <function ks.f(int)>";
const G: &str = "EXECUTE permission on <function ks.g(int, int)>";
const AG: &str = "EXECUTE permission on <function ks.ag(int)>";

#[tokio::test]
async fn each_function_that_a_statement_calls_is_permitted() {
    let house = with_functions().await;
    // The first that Cassandra names: a selector before its arguments, a term after them; WHERE before SET, SET before IF.
    for (text, lacks) in [
        ("SELECT ks.g(v, ks.f(v)) FROM ks.t", G),
        ("SELECT ks.f(ks.g(v, v)) FROM ks.t", F),
        ("SELECT ks.ag(ks.f(v)) FROM ks.t", AG),
        ("SELECT [ks.f(v)], v FROM ks.t WHERE k = ks.g(1, 1)", F),
        ("SELECT v FROM ks.t WHERE k IN (1, ks.f(1))", F),
        ("SELECT v FROM ks.t WHERE token(k) > token(ks.f(1))", F),
        ("INSERT INTO ks.t (k, v) VALUES (1, ks.g(1, ks.f(1)))", F),
        ("INSERT INTO ks.t (v, k) VALUES (ks.g(1, 2), ks.f(1))", F),
        ("UPDATE ks.t SET v = ks.g(1, 2) WHERE k = ks.f(1)", F),
        ("UPDATE ks.t SET v = ks.f(1) WHERE k = 1 IF v = ks.g(1, 1)", F),
        ("UPDATE ks.t SET v = 1 WHERE k = 1 IF v = ks.g(1, 1)", G),
        ("DELETE FROM ks.t WHERE k = ks.f(1)", F),
        (
            "BEGIN BATCH DELETE FROM ks.t WHERE k = 1; DELETE FROM ks.t WHERE k = ks.f(1); APPLY BATCH",
            F,
        ),
        ("EXPLAIN SELECT ks.f(v) FROM ks.t", F),
    ] {
        house.lacks("ann", text, lacks).await;
        house.ok("boss", text).await;
    }
    house.ok("boss", "REVOKE SELECT ON ks.t FROM ann").await;
    house
        .lacks("ann", "SELECT ks.f(v) FROM ks.t", "SELECT permission on <table ks.t>")
        .await;
}

#[tokio::test]
async fn an_aggregate_needs_its_functions_at_each_execution() {
    let house = with_functions().await;
    let database = &house.client.database;
    let text = "SELECT ks.ag(v) FROM ks.t";
    let prepared = database.prepare(None, text).unwrap();
    for (function, lacks) in [("ag(int)", AG), ("g(int, int)", G), ("f(int)", F)] {
        house.lacks("ann", text, lacks).await;
        let grant = format!("GRANT EXECUTE ON FUNCTION ks.{function} TO ann");
        house.ok("boss", &grant).await;
    }
    let run = async || {
        let done = database
            .execute(&session("ann"), &prepared, &QueryParams::default())
            .await;
        done.err().map(|error| error.to_string())
    };
    assert_eq!(run().await, None);
    house
        .ok("boss", "REVOKE EXECUTE ON FUNCTION ks.g(int, int) FROM ann")
        .await;
    assert!(run().await.is_some_and(|error| error.contains(G)));
    house
        .ok("boss", "GRANT EXECUTE ON ALL FUNCTIONS IN KEYSPACE ks TO ann")
        .await;
    assert_eq!(run().await, None);
}

#[tokio::test]
async fn functions_are_made_replaced_and_dropped_by_permission() {
    let house = with_functions().await;
    let create = |how: &str, name: &str| {
        format!("CREATE {how} FUNCTION ks.{name}(a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'")
    };
    let aggregate = "CREATE AGGREGATE ks.mine(int) SFUNC g STYPE int FINALFUNC f INITCOND 0";
    let may_create = "CREATE permission on <all functions in ks>";
    house.lacks("ann", &create("", "h"), may_create).await;
    house.lacks("ann", &create("OR REPLACE", "h"), may_create).await;
    house
        .lacks(
            "ann",
            &create("OR REPLACE", "f"),
            "ALTER permission on <function ks.f(int)>",
        )
        .await;
    house
        .ok("boss", "GRANT CREATE ON ALL FUNCTIONS IN KEYSPACE ks TO ann")
        .await;
    house.lacks("ann", aggregate, G).await;
    house
        .ok("boss", "GRANT EXECUTE ON FUNCTION ks.g(int, int) TO ann")
        .await;
    house.lacks("ann", aggregate, F).await;
    house.ok("boss", "GRANT EXECUTE ON FUNCTION ks.f(int) TO ann").await;
    // What a role made is its own, until it is dropped.
    for (create, drop, replace) in [
        (create("", "h"), "DROP FUNCTION ks.h", create("OR REPLACE", "h")),
        (
            aggregate.to_owned(),
            "DROP AGGREGATE ks.mine(int)",
            aggregate.replace("CREATE", "CREATE OR REPLACE"),
        ),
    ] {
        house.ok("ann", &create).await;
        house.ok("ann", &replace).await;
        house.ok("ann", drop).await;
        house.ok("boss", &create).await;
        let name = if drop.contains("mine") { "mine" } else { "h" };
        let lacks = format!("DROP permission on <function ks.{name}(int)>");
        house.lacks("ann", drop, &lacks).await;
    }
    let refused = house.ask("ann", "DROP FUNCTION ks.missing").await.unwrap_err();
    assert_eq!(refused, "Function 'ks.missing' doesn't exist");
    let refused = house
        .ask("boss", "GRANT EXECUTE ON FUNCTION ks.missing(int) TO ann")
        .await
        .unwrap_err();
    assert_eq!(refused, "Resource <function ks.missing(int)> doesn't exist");
}

#[tokio::test]
async fn permissions_on_functions_outlive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().join("data").display());
    let house = House::new(&url).await;
    for statement in [
        "CREATE TYPE ks.u (a int)",
        "CREATE FUNCTION ks.l(a list<int>, b u) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
        "GRANT EXECUTE ON FUNCTION ks.l(list<int>, u) TO ann",
        "GRANT SELECT ON ks.t TO ann",
    ] {
        house.ok("boss", statement).await;
    }
    house.client.database.close().await.unwrap();
    let client = Client::open(&url).await;
    client.database.enable_roles(options("boss", "secret")).await.unwrap();
    let house = House { client };
    house.ok("ann", "SELECT ks.l([1], null) FROM ks.t").await;
}

/// The texts are Cassandra 5.0.9's.
#[tokio::test]
async fn grants_and_revokes_of_nothing_new_are_warned_of() {
    let house = House::new("memory:").await;
    for (text, warning) in [
        (
            "REVOKE SELECT ON ks.t FROM ann",
            "Role 'ann' was not granted SELECT on <table ks.t>",
        ),
        ("GRANT SELECT ON ks.t TO ann", ""),
        (
            "GRANT MODIFY, SELECT ON ks.t TO ann",
            "Role 'ann' was already granted SELECT on <table ks.t>",
        ),
        (
            "GRANT ALL ON ks.t TO ann",
            "Role 'ann' was already granted SELECT, MODIFY on <table ks.t>",
        ),
        ("REVOKE SELECT, DESCRIBE ON ks.t FROM ann", ""),
        (
            "REVOKE ALTER, SELECT ON ks.t FROM ann",
            "Role 'ann' was not granted SELECT on <table ks.t>",
        ),
        (
            "REVOKE ALTER ON ROLE ann FROM ann",
            "Role 'ann' was not granted ALTER on <role ann>",
        ),
    ] {
        let answer = house.ask("boss", text).await.unwrap();
        assert_eq!(answer.warnings.join("; "), warning, "{text}");
    }
    // A role is one of those that it is a member of.
    house.ok("boss", "REVOKE ann FROM ann").await;
}

#[tokio::test]
async fn a_function_is_looked_for_before_its_permissions() {
    let house = House::new("memory:").await;
    let refused = async |text| house.ask("boss", text).await.err().unwrap_or_default();
    assert_eq!(
        refused("GRANT CREATE ON FUNCTION f (int) TO ann").await,
        "In this context function name must be explictly qualified by a keyspace"
    );
    assert_eq!(
        refused("GRANT CREATE ON FUNCTION ks.f (nowhere) TO ann").await,
        "Unknown type ks.nowhere"
    );
}

#[tokio::test]
async fn a_write_to_a_view_is_refused_for_want_of_a_permission_first() {
    let house = House::new("memory:").await;
    let view =
        "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)";
    house.lacks("ann", view, "ALTER permission on <table ks.t>").await;
    house.ok("boss", "GRANT ALTER ON ks.t TO ann").await;
    house.ok("ann", view).await;
    house.ok("boss", "REVOKE ALTER ON ks.t FROM ann").await;
    let permissions = house.ask("boss", "LIST ALL PERMISSIONS ON ks.w NORECURSIVE").await;
    assert!(matches!(permissions.unwrap().kind, helenus_cql::cql::AnswerKind::Void));
    let write = "DELETE FROM ks.w WHERE v = 1 AND k = 1";
    house.lacks("ann", write, "MODIFY permission on <table ks.w>").await;
    let refused = "Cannot directly modify a materialized view";
    assert_eq!(house.ask("boss", write).await.err().as_deref(), Some(refused));
    let prepared = house.client.database.prepare(None, write);
    assert_eq!(prepared.err().map(|error| error.to_string()).as_deref(), Some(refused));
    assert_eq!(
        house.ask("boss", "DELETE FROM ks.w WHERE k = 1").await.err().as_deref(),
        Some("Some partition key parts are missing: v")
    );
}

#[tokio::test]
async fn a_password_longer_than_bcrypt_reads_is_warned_of() {
    let house = House::new("memory:").await;
    let warnings = async |text: String| house.ask("boss", &text).await.unwrap().warnings;
    let long = "b".repeat(73);
    let create = warnings(format!("CREATE ROLE bob WITH PASSWORD = '{long}' AND LOGIN = true")).await;
    assert_eq!(create.len(), 1, "{create:?}");
    assert!(!create.concat().contains(&long), "a warning shows no password");
    let short = "b".repeat(72);
    let alter = warnings(format!("CREATE ROLE eve WITH PASSWORD = '{short}' AND LOGIN = true")).await;
    assert_eq!(alter, [] as [&str; 0]);
}
