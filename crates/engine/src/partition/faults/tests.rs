//! Tests of fault plans.

use super::*;

const PLACES: [Place<'static>; 2] = [
    Place {
        keyspace: "ks",
        table: "t",
        partition: 0,
    },
    Place {
        keyspace: "ks",
        table: "u",
        partition: 3,
    },
];

fn read() -> Subject<'static> {
    Subject {
        places: &PLACES[..1],
        statement: StatementKind::Read,
        consistency: Consistency::Quorum,
        node: 1,
    }
}

fn course(text: &str) -> Course {
    Course::new(Plan::from_toml(text).unwrap())
}

/// The decisions about this many equal requests.
fn run(course: &mut Course, subject: &Subject<'_>, requests: u64) -> Vec<Decision> {
    (1..=requests)
        .map(|requests| {
            course.decide(
                subject,
                Moment {
                    passed_ms: requests * 10,
                    requests,
                },
            )
        })
        .collect()
}

#[test]
fn the_same_plan_and_requests_decide_the_same() {
    let text = "seed = 42\n[[fault]]\naction = \"timeout\"\nprobability = 0.3\n[[fault]]\naction = \"delay\"\nms = 5\njitter-ms = 20\n\
                probability = 0.5";
    let (first, second) = (
        run(&mut course(text), &read(), 500),
        run(&mut course(text), &read(), 500),
    );
    assert_eq!(first, second);
    let hit = first.iter().filter(|decision| decision.outcome.is_some()).count();
    assert!((100..200).contains(&hit), "{hit} of 500 at 0.3");
    assert!(first.iter().all(|decision| decision.delay_ms < 25));
    let other = run(&mut course(&text.replace("42", "43")), &read(), 500);
    assert_ne!(first, other);
    // Requests that do not match change nothing.
    let text = format!("{text}\ntable = \"t\"").replacen("probability = 0.3", "probability = 0.3\ntable = \"t\"", 1);
    let mut mixed = course(&text);
    let elsewhere = Subject {
        places: &PLACES[1..],
        ..read()
    };
    let mut decided = Vec::new();
    for number in 0..500 {
        let now = Moment {
            passed_ms: 0,
            requests: number,
        };
        assert_eq!(mixed.decide(&elsewhere, now), Decision::default());
        decided.push(mixed.decide(&read(), now));
    }
    assert_eq!(first, decided);
}

#[test]
fn requests_are_chosen() {
    let hits = |keys: &str| {
        let mut course = course(&format!("[[fault]]\naction = \"unavailable\"\n{keys}"));
        let decisions = run(&mut course, &read(), 10);
        decisions
            .iter()
            .filter(|decision| decision.outcome == Some(Outcome::Unavailable))
            .count()
    };
    for (keys, expected) in [
        ("", 10),
        ("keyspace = \"ks\"", 10),
        ("keyspace = \"other\"", 0),
        ("table = \"t\"\npartition = 0", 10),
        ("table = \"t\"\npartition = 1", 0),
        ("table = \"u\"", 0),
        ("statement = \"read\"", 10),
        ("statement = \"conditional\"", 0),
        ("consistency = \"QUORUM\"", 10),
        ("consistency = \"ONE\"", 0),
        ("node = 2", 10),
        ("node = 1", 0),
        ("skip = 3", 7),
        ("count = 4", 4),
        ("skip = 8\ncount = 4", 2),
        ("probability = 0.0", 0),
        ("probability = 1.0", 10),
        ("from-request = 4\nuntil-request = 6", 2),
        ("from-ms = 95", 1),
        ("until-ms = 20", 1),
    ] {
        assert_eq!(hits(keys), expected, "{keys}");
    }
    let mut both = course("[[fault]]\naction = \"timeout\"\ntable = \"u\"\npartition = 3");
    let batch = Subject {
        places: &PLACES,
        statement: StatementKind::Batch,
        ..read()
    };
    assert!(both.decide(&batch, Moment::default()).outcome.is_some());
}

#[test]
fn delays_add_up_and_the_first_refusal_counts() {
    let mut course = course(
        "[[fault]]\naction = \"delay\"\nms = 40000\n[[fault]]\naction = \"throttle\"\nms = 7\n[[fault]]\naction = \"drop\"\n\
         [[fault]]\naction = \"delay\"\nms = 40000\n[[fault]]\naction = \"split\"",
    );
    let decision = course.decide(&read(), Moment::default());
    let throttled = Outcome::Throttle { retry_after_ms: 7 };
    assert_eq!((decision.delay_ms, decision.splits), (HELD_MS_MAX, true));
    assert_eq!(decision.outcome, Some(throttled));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (text, what) in [
        ("[[fault]]\naction = \"explode\"", "unknown variant"),
        ("[[fault]]\naction = \"delay\"\nms = 1\nmood = 2", "unknown field"),
        ("[[fault]]\naction = \"down\"", "fault 1: which node?"),
        ("[[fault]]\naction = \"down\"\nnode = 7", "one of 1 to 6"),
        (
            "[[fault]]\naction = \"down\"\nnode = 1\ntable = \"t\"",
            "replica-down is for some",
        ),
        (
            "[[fault]]\naction = \"down\"\nnode = 1\ncount = 2",
            "faults of requests",
        ),
        ("[[fault]]\naction = \"lag\"\nnode = 1", "how far behind?"),
        ("[[fault]]\naction = \"delay\"", "how long?"),
        ("[[fault]]\naction = \"delay\"\nms = 60001", "more than 60,000"),
        ("[[fault]]\naction = \"timeout\"\nprobability = 1.5", "between 0 and 1"),
        (
            "[[fault]]\naction = \"timeout\"\nconsistency = \"MOST\"",
            "no consistency level",
        ),
        ("[[fault]]\naction = \"timeout\"\nreceived = 5", "no more than four"),
        (
            "[[fault]]\naction = \"timeout\"\nwrite-type = \"ODD\"",
            "unknown variant `ODD`",
        ),
        (
            "[[fault]]\naction = \"timeout\"\nwrite-type = \"VIEW\"",
            "no write of this server",
        ),
        ("[[fault]]\naction = \"split\"\nms = 3", "ms is for"),
        ("[[fault]]\naction = \"split\"\npartition = 3", "one of a table"),
    ] {
        let error = Plan::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
    let many = "[[fault]]\naction = \"split\"\n".repeat(FAULTS_MAX + 1);
    assert_eq!(Plan::from_toml(&many), Err(PlanError::TooMany));
    let json = r#"{"seed": 1, "fault": [{"action": "replica-down", "node": 3}]}"#;
    let toml = "seed = 1\n[[fault]]\naction = \"replica-down\"\nnode = 3";
    assert_eq!(Plan::from_json(json), Plan::from_toml(toml));
}
