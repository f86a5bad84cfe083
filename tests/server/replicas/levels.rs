//! Every level of consistency with every number of replicas down.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Conditional,
    Counter,
    Batch,
}

const KINDS: [Kind; 5] = [Kind::Read, Kind::Write, Kind::Conditional, Kind::Counter, Kind::Batch];

/// A cell of the table of docs/src/testing/faults.md: what becomes of a statement with 0 to 4 replicas down.
#[derive(Debug)]
struct Promised {
    /// `None`: the level makes no sense there.
    required: Option<i32>,
    /// By the number of replicas down.
    carried_out: Vec<bool>,
}

/// The table of docs/src/testing/faults.md, which is what is promised.
fn promised(kind: Kind, level: Consistency) -> Promised {
    let head = format!("| `{}` |", level.name());
    let line = include_str!("../../../docs/src/testing/faults.md")
        .lines()
        .find(|line| line.starts_with(&head))
        .unwrap();
    let column = match kind {
        Kind::Read => 2,
        Kind::Write | Kind::Batch => 3,
        Kind::Conditional => 4,
        Kind::Counter => 5,
    };
    let cell = line.split('|').nth(column).unwrap().trim();
    if cell == "–" {
        return Promised {
            required: None,
            carried_out: Vec::new(),
        };
    }
    let (marks, required) = cell.split_once(' ').unwrap();
    let promised = Promised {
        required: Some(required.parse().unwrap()),
        carried_out: marks.chars().map(|mark| mark == '●').collect(),
    };
    assert_eq!(promised.carried_out.len(), 5, "{line}");
    promised
}

#[tokio::test]
async fn every_level_with_every_number_of_replicas_down() {
    for version in [Version::V4, Version::V5] {
        let server = start(&[]).await;
        let mut client = ready(&server, version).await;
        for down in 0..=4_usize {
            let faults = (1..=down).map(|node| format!("[[fault]]\naction = \"replica-down\"\nnode = {node}\n"));
            plan(&server, &faults.collect::<String>());
            let alive = 4 - i32::try_from(down).unwrap();
            for level in Consistency::ALL {
                for kind in KINDS {
                    let text = match kind {
                        Kind::Read => "SELECT v FROM ks.t WHERE k = 1",
                        Kind::Write => "INSERT INTO ks.t (k, v) VALUES (1, 1)",
                        Kind::Conditional => "UPDATE ks.t SET v = 1 WHERE k = 1 IF EXISTS",
                        Kind::Counter => "UPDATE ks.c SET n = n + 1 WHERE k = 1",
                        Kind::Batch => "BEGIN BATCH INSERT INTO ks.t (k, v) VALUES (1, 1) APPLY BATCH",
                    };
                    let found = ask(&mut client, text, level).await;
                    let place = format!("{version:?} {kind:?} {} with {down} down: {found:?}", level.name());
                    let code = level.code();
                    let promised = promised(kind, level);
                    let is_promised = promised.carried_out.get(down).is_some_and(|yes| *yes);
                    match promised.required {
                        // Cassandra lets a batch be written at SERIAL; it is the write that makes no sense alone.
                        None if kind == Kind::Batch => {}
                        None => assert!(matches!(found, Said::Error(0x2200, _)), "{place}"),
                        Some(_) if is_promised => {
                            assert!(matches!(found, Said::Done | Said::Rows(_)), "{place}");
                        }
                        // The decision comes first.
                        Some(_) if kind == Kind::Conditional && alive < 3 => {
                            assert_eq!(
                                found,
                                Said::Unavailable(Consistency::Serial.code(), 3, alive),
                                "{place}"
                            );
                        }
                        Some(required) => assert_eq!(found, Said::Unavailable(code, required, alive), "{place}"),
                    }
                }
            }
            let params = Params {
                serial_consistency: Some(Consistency::LocalSerial),
                ..Params::default()
            };
            let found = ask_with(&mut client, "DELETE FROM ks.t WHERE k = 9 IF EXISTS", params).await;
            if alive < 3 {
                assert_eq!(found, Said::Unavailable(Consistency::LocalSerial.code(), 3, alive));
            } else {
                assert!(matches!(found, Said::Rows(_)));
            }
            let truncated = ask(&mut client, "TRUNCATE ks.c", Consistency::One).await;
            if down == 0 {
                assert_eq!(truncated, Said::Done);
            } else {
                assert_eq!(truncated, Said::Unavailable(Consistency::All.code(), 4, alive));
            }
        }
        // Nothing of what was refused was done, and all that was acknowledged is there.
        server.database().engine().nodes().clear();
        assert_eq!(
            number(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::All).await,
            1
        );
    }
}
