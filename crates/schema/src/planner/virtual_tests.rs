//! Statements on virtual tables. Source of the answers: `compat/oracle/scripts/virtual_tables.cql`.

use super::Plan;
use super::tests::World;

const FILTERING: &str = "Cannot execute this query as it might involve data filtering";

#[test]
fn virtual_tables_are_filtered_without_allow_filtering() {
    let mut world = World::golden();
    for taken in [
        "SELECT address FROM system_views.clients WHERE username = 'zz'",
        "SELECT address FROM system_views.clients WHERE port = 1",
        "SELECT name FROM system_views.settings WHERE name = 'cluster_name' AND value = 'zz'",
        "SELECT * FROM system_views.disk_usage WHERE keyspace_name = 'zz'",
        "SELECT keyspace_name FROM system_virtual_schema.tables WHERE table_name = 'tables'",
        "SELECT keyspace_name FROM system_virtual_schema.columns WHERE keyspace_name > 'zz'",
    ] {
        world.run(taken).unwrap_or_else(|error| panic!("{taken}: {error}"));
    }
    let behind =
        "PRIMARY KEY column \"column_name\" cannot be restricted as preceding column \"table_name\" is not restricted";
    for (refused, why) in [
        (
            "SELECT keyspace_name FROM system_virtual_schema.columns WHERE column_name = 'zz'",
            behind,
        ),
        (
            "SELECT timestamp FROM system_views.system_logs WHERE level = 'zz'",
            FILTERING,
        ),
        ("SELECT key FROM system.local WHERE cluster_name = 'zz'", FILTERING),
        (
            "SELECT keyspace_name FROM system_schema.tables WHERE table_name = 'zz'",
            FILTERING,
        ),
    ] {
        let error = world.run(refused).map(drop).unwrap_err();
        assert!(error.starts_with(why), "{refused}: {error}");
    }
}

#[test]
fn writes_of_virtual_tables_are_refused_in_cassandras_words() {
    let mut world = World::golden();
    let insert = "INSERT INTO system_views.settings (name, value) VALUES ('a', 'b')";
    let other = "INSERT INTO simple (k) VALUES (1)";
    // It is refused when it is bound.
    let planned = world.run(insert).unwrap().unwrap();
    assert!(matches!(planned.plan, Plan::Modify(_)));
    for (refused, why) in [
        (
            format!("{insert} IF NOT EXISTS"),
            "Conditional updates are not supported by virtual tables",
        ),
        (
            format!("{insert} USING TTL 5"),
            "Expiring columns are not supported by virtual tables",
        ),
        (
            format!("{insert} USING TIMESTAMP 5"),
            "Custom timestamp is not supported by virtual tables",
        ),
        (
            format!("BEGIN BATCH {other}; {insert}; APPLY BATCH"),
            "Cannot include a virtual table statement in a logged batch",
        ),
        (
            format!("BEGIN UNLOGGED BATCH {insert}; {other}; APPLY BATCH"),
            "Mutations for virtual and regular tables cannot exist in the same batch",
        ),
        (
            format!("BEGIN UNLOGGED BATCH {insert} IF NOT EXISTS; APPLY BATCH"),
            "Conditional BATCH statements cannot include mutations for virtual tables",
        ),
    ] {
        let error = world.run(&refused).map(drop).unwrap_err();
        assert_eq!(error, why, "{refused}");
    }
}
