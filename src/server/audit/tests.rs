//! Tests of the records of the audit log.

use super::*;

use std::net::{Ipv4Addr, SocketAddr};

use helenus_cql::cql::{AuditedBatch, AuditedPrepare, AuditedStatement, Error};
use helenus_engine::engine;
use helenus_engine::engine::audit::Subject;
use helenus_types::wire::response::ErrorCode;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn recorded(categories: &[AuditCategory], ask: impl FnOnce(&Audit)) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let options = AuditOptions {
        file: file.clone(),
        file_bytes_max: 1 << 20,
        files_max: 2,
        categories: categories.to_vec(),
    };
    let audit = Audit::open(options, Clock::manual(0)).unwrap();
    ask(&audit);
    audit.finish();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        !text.chars().any(|character| character != '\n' && obeys(character)),
        "{text:?}"
    );
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Audit {
    fn of_ann(&self, subject: &dyn Subject, error: Option<&Error>) {
        self.record(AuditEntry {
            client: SocketAddr::new(CLIENT, 7),
            user: Some("ann"),
            subject,
            failure: error.map(|error| AuditFailure {
                is_denied: error.code() == ErrorCode::Unauthorized,
                error,
            }),
        });
    }
}

const fn statement<'a>(keyspace: Option<&'a str>, text: &'a str) -> AuditedStatement<'a> {
    AuditedStatement { text, keyspace }
}

const fn prepared<'a>(text: &'a str) -> AuditedPrepare<'a> {
    AuditedPrepare(statement(None, text))
}

fn batch(text: &str) -> AuditedBatch {
    AuditedBatch(vec![text.to_owned()])
}

#[test]
fn only_the_selected_categories_are_recorded() {
    let statements = [
        ("SELECT * FROM ks.t", "QUERY"),
        ("SELECT * FROM system.local", ""),
        ("/* c */ SELECT * FROM t", "QUERY"),
        ("INSERT INTO ks.t (k) VALUES (1)", "DML"),
        ("CREATE TABLE ks.t (k int PRIMARY KEY)", "DDL"),
        ("GRANT SELECT ON ks.t TO ann", "DCL"),
        ("USE ks", "OTHER"),
    ];
    for category in AuditCategory::ALL {
        let records = recorded(&[category], |audit| {
            for (text, _) in statements {
                audit.of_ann(&statement(None, text), None);
            }
        });
        let expected: Vec<&str> = statements
            .into_iter()
            .filter_map(|(text, of)| (of == category.name()).then_some(text))
            .collect();
        let came: Vec<&str> = records
            .iter()
            .map(|record| record["operation"].as_str().unwrap())
            .collect();
        assert_eq!(came, expected, "{category:?}");
    }
}

#[test]
fn a_record_says_who_what_when_and_whether_it_was_allowed() {
    let refusal = Error::from(engine::Error::NotModifiable {
        keyspace: "ks".to_owned(),
    });
    let records = recorded(&AuditCategory::ALL, |audit| {
        audit.of_ann(&statement(Some("ks"), "SELECT * FROM t"), None);
        audit.of_ann(&statement(Some("ks"), "SELECT * FROM t"), Some(&refusal));
        audit.of_ann(&prepared("DROP TABLE ks.t"), None);
        audit.of_ann(&batch("DELETE FROM a.t WHERE k = 1"), None);
    });
    let expected = [
        r#"{"timestamp":0,"user":"ann","source":"127.0.0.1","port":7,"type":"SELECT","category":"QUERY","allowed":true,"keyspace":"ks","scope":"t","operation":"SELECT * FROM t"}"#,
        r#"{"timestamp":0,"user":"ann","source":"127.0.0.1","port":7,"type":"UNAUTHORIZED_ATTEMPT","category":"AUTH","allowed":false,"statement":"SELECT","keyspace":"ks","scope":"t","operation":"SELECT * FROM t","error":"ks keyspace is not user-modifiable."}"#,
        r#"{"timestamp":0,"user":"ann","source":"127.0.0.1","port":7,"type":"PREPARE_STATEMENT","category":"PREPARE","allowed":true,"keyspace":"ks","scope":"t","operation":"DROP TABLE ks.t"}"#,
        r#"{"timestamp":0,"user":"ann","source":"127.0.0.1","port":7,"type":"BATCH","category":"DML","allowed":true,"operation":"BATCH of [1] statements; DELETE FROM a.t WHERE k = 1"}"#,
    ];
    let came: Vec<String> = records.iter().map(ToString::to_string).collect();
    assert_eq!(came, expected);
}

#[test]
fn no_password_and_no_control_character_is_written() {
    let syntax = Error::from(grammar::parse("CREATE ROLE 'MARKER' 'MARKER'").unwrap_err());
    let texts = [
        "CREATE ROLE a WITH PASSWORD = 'MARKER' AND LOGIN = true",
        "ALTER USER a WITH HASHED PassWord 'MARKER'",
        "CREATE ROLE a WITH PASSWORD = 'MARKER",
        "UPDATE system_auth.roles SET salted_hash = 'MARKER' WHERE role = 'a'",
        "INSERT INTO app.users (name, password) VALUES ('a', 'MARKER')",
        r#"INSERT INTO system_auth.roles JSON '{"role": "a", "salted\u005fhash": "MARKER"}'"#,
        "ALTER ROLE a WITH PASS WORD = 'MARKER'",
    ];
    for error in [None, Some(&syntax)] {
        let records = recorded(&AuditCategory::ALL, |audit| {
            for text in texts {
                audit.of_ann(&statement(None, text), error);
                audit.of_ann(&prepared(text), error);
                audit.of_ann(&batch(text), error);
            }
        });
        assert_eq!(records.len(), 3 * texts.len());
        for record in records {
            assert!(!record.to_string().contains("MARKER"), "{record}");
        }
    }
    let records = recorded(&AuditCategory::ALL, |audit| {
        let text = "SELECT * FROM t WHERE k = 'a\n\u{1b}[2J\u{7f}\u{85}\u{2028}\u{202e}'";
        audit.of_ann(&statement(None, text), None);
        audit.login(CLIENT, "x\n{\"user\":\"forged\"}", Some(&syntax));
        let long = format!("SELECT '{}' FROM t", "ü".repeat(100_000));
        audit.of_ann(&statement(None, &long), Some(&syntax));
    });
    assert_eq!(records.len(), 3);
    assert_eq!(records[1]["user"], "x\n{\"user\":\"forged\"}");
    assert!(records[2]["operation"].as_str().unwrap().ends_with("… cut"));
}

/// The word of a secret or a long comment does not hide which role was changed and how.
#[test]
fn changes_of_roles_are_recorded_whole() {
    let long = "x".repeat(5000);
    let texts = [
        (
            "GRANT /* password */ ALL ON ALL KEYSPACES TO bob".to_owned(),
            "GRANT  ALL ON ALL KEYSPACES TO bob",
        ),
        (
            format!("GRANT /*{long}*/ MODIFY ON ks.t TO bob"),
            "GRANT  MODIFY ON ks.t TO bob",
        ),
        (
            "ALTER ROLE bob /* password */ WITH SUPERUSER = true".to_owned(),
            "ALTER ROLE bob  WITH SUPERUSER = true",
        ),
        (
            format!("ALTER ROLE /*{long}*/ bob WITH SUPERUSER = true"),
            "ALTER ROLE  bob WITH SUPERUSER = true",
        ),
        ("DROP ROLE /* password */ bob".to_owned(), "DROP ROLE  bob"),
        (
            "CREATE ROLE bob WITH PASSWORD = 'x' AND SUPERUSER = true".to_owned(),
            "CREATE ROLE bob WITH PASSWORD = '*******' AND SUPERUSER = true",
        ),
    ];
    let records = recorded(&AuditCategory::ALL, |audit| {
        for (text, _) in &texts {
            audit.of_ann(&statement(None, text), None);
        }
    });
    let came: Vec<&str> = records
        .iter()
        .map(|record| record["operation"].as_str().unwrap())
        .collect();
    assert_eq!(came, texts.each_ref().map(|(_, shown)| *shown));
}
