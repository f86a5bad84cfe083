//! Statements with two faults each: which of them does a server name?
//!
//! A statement is made of slots (a table, items of a selection, relations, options …), each with parts that are right and parts that
//! are wrong. Two slots of a right statement are made wrong, first each alone, then both. The fault that a server names is the
//! one whose refusal, alone, has the same code and text. So texts need not be compared between the servers, only the choice.
//!
//! A pair counts when Cassandra refuses each fault alone. Refusals that are Cassandra's own bugs (0x0000) do not count.

use super::compare::{code_of, message_of};
use super::pair::Pair;
use super::question::{Kind, Question};
use crate::Outcome;
use fastrand::Rng;
use serde_json::Value;
use std::collections::BTreeMap;

/// Statements that make the tables: one with a static column, one without, one of counters.
const TABLES: [&str; 3] = [
    "CREATE TABLE t (p1 int, p2 text, c1 int, c2 text, s int static, v int, w text, d double, l list<int>, st set<int>, \
     m map<text, int>, f frozen<list<int>>, PRIMARY KEY ((p1, p2), c1, c2))",
    "CREATE TABLE r (p1 int, p2 text, c1 int, c2 text, v int, w text, d double, l list<int>, st set<int>, m map<text, int>, \
     f frozen<list<int>>, PRIMARY KEY ((p1, p2), c1, c2))",
    "CREATE TABLE n (p1 int, p2 text, c1 int, c2 text, v counter, w counter, PRIMARY KEY ((p1, p2), c1, c2))",
];

/// Choices for one place of a statement; an empty part is left out.
struct Slot {
    right: &'static [&'static str],
    wrong: &'static [&'static str],
}

/// Slots of one clause: what stands before, between and after its parts.
struct Clause {
    begin: &'static str,
    between: &'static str,
    end: &'static str,
    /// They may stand in any order.
    is_shuffled: bool,
    slots: &'static [Slot],
}

/// One word or clause of its own.
const fn alone(slots: &'static [Slot]) -> Clause {
    Clause {
        begin: "",
        between: " ",
        end: "",
        is_shuffled: false,
        slots,
    }
}

const TABLE: &[Slot] = &[Slot {
    right: &["t", "r"],
    wrong: &["nowhere", "nokeyspace.t"],
}];

const SELECTED: &[Slot] = &[
    Slot {
        right: &["v", "c1", "p2", "w"],
        wrong: &SELECTORS,
    },
    Slot {
        right: &["p1", "v", "toJson(w)", "v + 1"],
        wrong: &SELECTORS,
    },
    Slot {
        right: &["", "", "writetime(v)", "m['a']", "CAST(v AS text)"],
        wrong: &SELECTORS,
    },
];

const SELECTORS: [&str; 19] = [
    "nocolumn",
    "nofunction(v)",
    "system.nofunction(v)",
    "nofunction(nocolumn)",
    "toJson(nocolumn)",
    "log(w)",
    "log(v, v)",
    "writetime(p1)",
    "writetime(nocolumn)",
    "ttl(c1)",
    "CAST(m AS int)",
    "CAST(nocolumn AS int)",
    "v.field",
    "v['a']",
    "m[1]",
    "token(p1)",
    "token(p1, nocolumn)",
    "v + w",
    "-w",
];

/// Relations of a SELECT.
const READ: &[Slot] = &[
    Slot {
        right: &["p1 = 1"],
        wrong: &[
            "p1 = 'x'",
            "p1 > 1",
            "p1 = nofunction()",
            "p1 CONTAINS 1",
            "nokey = 1",
            "",
        ],
    },
    Slot {
        right: &["p2 = 'a'", "p2 IN ('a', 'b')"],
        wrong: &["p2 = 1", "p2 IN ('a', 1)", "p2 = now()", "p2 < 'a'", "p2['a'] = 1", ""],
    },
    Slot {
        right: &["", "", "c1 = 1", "c1 > 1"],
        wrong: &[
            "c1 = 'x'",
            "c2 = 'a'",
            "(c1, c2) = (1)",
            "(c1, v) = (1, 2)",
            "(c2, c1) > ('a', 1)",
            "(c1, nocolumn) > (1, 2)",
            "c1 IN (1, 'x')",
            "c1 LIKE 'a'",
            "c1 != 1",
            "c1 CONTAINS 1",
            "c1 = nofunction(1)",
        ],
    },
    Slot {
        right: &[""],
        wrong: &OTHERS,
    },
    Slot {
        right: &[""],
        wrong: &OTHERS,
    },
];

const OTHERS: [&str; 22] = [
    "nocolumn = 1",
    "v = 1",
    "v = 'x'",
    "v CONTAINS 1",
    "w LIKE 'a%'",
    "m = {'a': 1}",
    "m[1] = 1",
    "m['a'] = 'x'",
    "l CONTAINS 'x'",
    "st CONTAINS KEY 1",
    "f CONTAINS 1",
    "w[1] = 2",
    "v IS NOT NULL",
    "v != 1",
    "v IN (1, 2)",
    "token(p1) > 1",
    "token(p1, p2) > 'x'",
    "token(p2, p1) > 1",
    "p1 = 2",
    "w = nofunction()",
    "d = now()",
    "expr(noindex, 'x')",
];

/// Relations of UPDATE.
const KEYS: &[Slot] = &[
    Slot {
        right: &["p1 = 1"],
        wrong: &[
            "p1 = 'x'",
            "p1 > 1",
            "p1 = nofunction()",
            "p1 CONTAINS 1",
            "nokey = 1",
            "",
        ],
    },
    Slot {
        right: &["p2 = 'a'", "p2 IN ('a', 'b')"],
        wrong: &["p2 = 1", "p2 IN ('a', 1)", "p2 = now()", "p2 < 'a'", ""],
    },
    Slot {
        right: &["c1 = 1"],
        wrong: &[
            "c1 = 'x'",
            "c1 > 1",
            "(c1, v) = (1, 2)",
            "c1 LIKE 'a'",
            "c1 IN (1, 'x')",
            "",
        ],
    },
    Slot {
        right: &["c2 = 'a'"],
        wrong: &["c2 = 1", "c2 < 'a'", "c2 = nofunction()", "c2['a'] = 1", ""],
    },
    Slot {
        right: &[""],
        wrong: &OTHERS,
    },
];

const CONDITIONS: &[Slot] = &[
    Slot {
        right: &["v = 1"],
        wrong: &CONDITION,
    },
    Slot {
        right: &["", "w = 'a'"],
        wrong: &CONDITION,
    },
];

const CONDITION: [&str; 16] = [
    "nocolumn = 1",
    "v = 'x'",
    "p1 = 1",
    "c1 = 1",
    "v CONTAINS 1",
    "m[1] = 1",
    "m['a'] = 'x'",
    "v IN (1, 'x')",
    "l = {1}",
    "l['x'] = 1",
    "v['a'] = 1",
    "v.field = 1",
    "w = nofunction()",
    "w LIKE 'a%'",
    "v IS NOT NULL",
    "st CONTAINS 'x'",
];

const CHANGES: &[Slot] = &[
    Slot {
        right: &["v = 2"],
        wrong: &CHANGE,
    },
    Slot {
        right: &["w = 'a'", "m['a'] = 1", "l = l + [1]"],
        wrong: &CHANGE,
    },
    Slot {
        right: &["", "", "d = 1.5"],
        wrong: &CHANGE,
    },
];

const CHANGE: [&str; 21] = [
    "nocolumn = 1",
    "nocolumn['a'] = 1",
    "p1 = 2",
    "c1 = 3",
    "v = 'x'",
    "v = 3",
    "v = v + 1",
    "v = nofunction()",
    "w = now()",
    "l[0] = 'x'",
    "l['x'] = 1",
    "m['a'] = 'x'",
    "m[1] = 1",
    "v[0] = 1",
    "st[0] = 1",
    "st = st + [1]",
    "l = l + {1}",
    "m = m - [1]",
    "v.field = 1",
    "f[0] = 1",
    "d = 'a'",
];

const DELETED: &[Slot] = &[
    Slot {
        right: &["v"],
        wrong: &DELETION,
    },
    Slot {
        right: &["", "m['a']", "w"],
        wrong: &DELETION,
    },
];

const DELETION: [&str; 10] = [
    "nocolumn",
    "nocolumn['a']",
    "p1",
    "c1",
    "v['a']",
    "m[1]",
    "l['x']",
    "st['x']",
    "v.field",
    "f[0]",
];

/// What stands after USING in statements that may give both.
const USING: &[Slot] = &[
    Slot {
        right: &["", "", "TTL 10"],
        wrong: &["TTL 'x'", "TTL -1", "TTL 999999999", "TTL nofunction()"],
    },
    Slot {
        right: &["", "", "TIMESTAMP 1"],
        wrong: &["TIMESTAMP 'x'", "TIMESTAMP 1.5", "TIMESTAMP nofunction()"],
    },
];

const USING_TIMESTAMP: &[Slot] = &[Slot {
    right: &["", "", "TIMESTAMP 1"],
    wrong: &["TIMESTAMP 'x'", "TIMESTAMP 1.5"],
}];

/// Columns of an INSERT with their values after `=`.
const INSERTED: &[Slot] = &[
    Slot {
        right: &["p1=1"],
        wrong: &["p1='x'", "p1=nofunction()", "nokey=1", ""],
    },
    Slot {
        right: &["p2='a'"],
        wrong: &["p2=1", "p2=now()", ""],
    },
    Slot {
        right: &["c1=1"],
        wrong: &["c1='x'", "c1=now()", ""],
    },
    Slot {
        right: &["c2='a'"],
        wrong: &["c2=1", "c2=nofunction()", ""],
    },
    Slot {
        right: &["v=1"],
        wrong: &VALUE,
    },
    Slot {
        right: &["", "w='a'", "m={'a': 1}"],
        wrong: &VALUE,
    },
];

const VALUE: [&str; 15] = [
    "nocolumn=1",
    "v='x'",
    "v=now()",
    "p1=2",
    "w=nofunction()",
    "w=1",
    "d='x'",
    "d=now()",
    "l={1: 2}",
    "l=['x']",
    "st=['a']",
    "st={'a'}",
    "m={'a': 'b'}",
    "m={1: 1}",
    "f={1}",
];

const GROUPS: &[Slot] = &[Slot {
    right: &["", "", "GROUP BY p1, p2"],
    wrong: &[
        "GROUP BY nocolumn",
        "GROUP BY v",
        "GROUP BY c1",
        "GROUP BY p2, p1",
        "GROUP BY p1, nocolumn",
    ],
}];

const ORDER: &[Slot] = &[Slot {
    right: &["", "", "ORDER BY c1 DESC"],
    wrong: &[
        "ORDER BY nocolumn",
        "ORDER BY v",
        "ORDER BY c2",
        "ORDER BY c1 ASC, c2 DESC",
        "ORDER BY p1",
        "ORDER BY c1, nocolumn",
        "ORDER BY v ANN OF [1.0]",
    ],
}];

const LIMITS: &[Slot] = &[
    Slot {
        right: &["", "", "PER PARTITION LIMIT 2"],
        wrong: &[
            "PER PARTITION LIMIT 'x'",
            "PER PARTITION LIMIT 0",
            "PER PARTITION LIMIT -1",
        ],
    },
    Slot {
        right: &["", "", "LIMIT 3"],
        wrong: &["LIMIT 'x'", "LIMIT 0", "LIMIT -1", "LIMIT 1.5"],
    },
];

const DISTINCT: &[Slot] = &[Slot {
    right: &["", "", "", "JSON"],
    wrong: &["DISTINCT", "JSON DISTINCT"],
}];

const fn listed(begin: &'static str, between: &'static str, end: &'static str, slots: &'static [Slot]) -> Clause {
    Clause {
        begin,
        between,
        end,
        is_shuffled: true,
        slots,
    }
}

const SELECT: &[Clause] = &[
    Clause {
        begin: "SELECT ",
        ..alone(DISTINCT)
    },
    listed(" ", ", ", " FROM ", SELECTED),
    alone(TABLE),
    listed(" WHERE ", " AND ", "", READ),
    Clause {
        begin: " ",
        ..alone(GROUPS)
    },
    Clause {
        begin: " ",
        ..alone(ORDER)
    },
    Clause {
        begin: " ",
        ..alone(LIMITS)
    },
];

const UPDATE: &[Clause] = &[
    Clause {
        begin: "UPDATE ",
        ..alone(TABLE)
    },
    listed(" USING ", " AND ", "", USING),
    listed(" SET ", ", ", "", CHANGES),
    listed(" WHERE ", " AND ", "", KEYS),
];

const UPDATE_IF: &[Clause] = &[
    Clause {
        begin: "UPDATE ",
        ..alone(TABLE)
    },
    listed(" SET ", ", ", "", CHANGES),
    listed(" WHERE ", " AND ", "", KEYS),
    listed(" IF ", " AND ", "", CONDITIONS),
];

const COUNT: &[Clause] = &[
    Clause {
        begin: "UPDATE n",
        ..listed(" USING ", " AND ", "", USING)
    },
    listed(
        " SET ",
        ", ",
        "",
        &[
            Slot {
                right: &["v = v + 1"],
                wrong: &[
                    "v = 1",
                    "v = v + 'x'",
                    "v = w + 1",
                    "nocolumn = nocolumn + 1",
                    "p1 = p1 + 1",
                    "v += 'x'",
                ],
            },
            Slot {
                right: &["", "w += 2"],
                wrong: &["w = 2", "v = v + 2", "w[0] = 1", "w = w + now()"],
            },
        ],
    ),
    listed(" WHERE ", " AND ", "", KEYS),
];

const DELETE: &[Clause] = &[
    listed("DELETE ", ", ", " FROM ", DELETED),
    alone(TABLE),
    listed(" USING ", " AND ", "", USING_TIMESTAMP),
    listed(" WHERE ", " AND ", "", KEYS),
];

const DELETE_IF: &[Clause] = &[
    listed("DELETE ", ", ", " FROM ", DELETED),
    alone(TABLE),
    listed(" WHERE ", " AND ", "", KEYS),
    listed(" IF ", " AND ", "", CONDITIONS),
];

/// The clause of columns is written as two lists.
const INSERT: &[Clause] = &[
    Clause {
        begin: "INSERT INTO ",
        ..alone(TABLE)
    },
    listed(" (", ", ", ")", INSERTED),
    Clause {
        begin: " ",
        ..alone(&[Slot {
            right: &["", "", "", "IF NOT EXISTS"],
            wrong: &[],
        }])
    },
    listed(" USING ", " AND ", "", USING),
];

const STATEMENTS: [&[Clause]; 9] = [
    SELECT, SELECT, SELECT, INSERT, UPDATE, UPDATE_IF, COUNT, DELETE, DELETE_IF,
];

/// A statement with a part chosen for each slot, in the order in which they are written.
#[derive(Clone)]
struct Chosen {
    clauses: &'static [Clause],
    /// By clause: slots in order, each with its right and its wrong part.
    parts: Vec<Vec<(&'static str, &'static str)>>,
}

impl Chosen {
    fn new(rng: &mut Rng, clauses: &'static [Clause]) -> Self {
        let parts = clauses.iter().map(|clause| {
            let mut slots: Vec<_> = clause.slots.iter().collect();
            if clause.is_shuffled && rng.bool() {
                rng.shuffle(&mut slots);
            }
            let part = |rng: &mut Rng, parts: &[&'static str]| rng.choice(parts.iter()).copied().unwrap_or("");
            slots
                .into_iter()
                .map(|slot| {
                    let right = part(rng, slot.right);
                    let wrong = if slot.wrong.is_empty() {
                        right
                    } else {
                        part(rng, slot.wrong)
                    };
                    (right, wrong)
                })
                .collect()
        });
        let parts = parts.collect();
        Self { clauses, parts }
    }

    /// Places whose wrong part is another than the right one.
    fn places(&self) -> Vec<(usize, usize)> {
        let clauses = self.parts.iter().enumerate();
        let all = clauses
            .flat_map(|(clause, slots)| slots.iter().enumerate().map(move |(slot, parts)| (clause, slot, parts)));
        all.filter(|(_, _, (right, wrong))| right != wrong)
            .map(|(clause, slot, _)| (clause, slot))
            .collect()
    }

    /// The statement with these places made wrong.
    fn text(&self, wrong: &[(usize, usize)]) -> String {
        let mut text = String::new();
        let mut values = Vec::new();
        for (at, (clause, slots)) in self.clauses.iter().zip(&self.parts).enumerate() {
            let chosen = slots.iter().enumerate().map(
                |(slot, (right, bad))| {
                    if wrong.contains(&(at, slot)) { *bad } else { *right }
                },
            );
            let chosen: Vec<&str> = chosen.filter(|part| !part.is_empty()).collect();
            if chosen.is_empty() && clause.is_shuffled && !clause.begin.starts_with("DELETE") {
                continue;
            }
            text.push_str(clause.begin);
            if clause.begin == " (" {
                let pairs = chosen.iter().filter_map(|part| part.split_once('='));
                let (names, given): (Vec<&str>, Vec<&str>) = pairs.unzip();
                text.push_str(&names.join(clause.between));
                values = given;
            } else {
                text.push_str(&chosen.join(clause.between));
            }
            text.push_str(clause.end);
            if clause.begin == " (" {
                text.push_str(" VALUES (");
                text.push_str(&values.join(", "));
                text.push(')');
            }
        }
        text
    }
}

/// Which fault a server names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    First,
    Second,
    /// Its words do not tell the two apart.
    Either,
    /// Something else, or the statement is carried out.
    Other,
}

fn same(one: &Value, other: &Value) -> bool {
    code_of(one) == code_of(other) && message_of(one) == message_of(other)
}

fn named(both: &Value, first: &Value, second: &Value) -> Named {
    match (same(both, first), same(both, second)) {
        (true, true) => Named::Either,
        (true, false) => Named::First,
        (false, true) => Named::Second,
        (false, false) => Named::Other,
    }
}

/// Asks so many statements with two faults; the number of those in which the servers name different faults.
///
/// # Errors
/// When a server is not there or breaks.
pub(super) fn run(cassandra: &str, target: &str, seed: u64, statements: u64, is_verbose: bool) -> Outcome<u64> {
    let mut rng = Rng::with_seed(seed);
    let mut pair = Pair::new(cassandra, target);
    pair.enter(&format!("two_faults_{seed}"))?;
    for table in TABLES {
        pair.ask(&Question::new(Kind::Schema, table))?;
    }
    let (mut asked, mut compared, mut differ) = (0_u64, 0_u64, 0_u64);
    let mut looks: BTreeMap<String, u64> = BTreeMap::new();
    // A statement whose faults are none together with its other parts does not count.
    while compared < statements && asked < 10 * statements {
        asked += 1;
        let clauses = rng.choice(STATEMENTS.iter()).copied().unwrap_or(SELECT);
        let chosen = Chosen::new(&mut rng, clauses);
        let mut places = chosen.places();
        rng.shuffle(&mut places);
        let [first, second, ..] = places.as_slice() else {
            continue;
        };
        let texts = [&[*first][..], &[*second], &[*first, *second]].map(|wrong| chosen.text(wrong));
        let mut answers = Vec::with_capacity(texts.len());
        for text in &texts {
            answers.push(pair.ask(&Question::new(Kind::Read, text.clone()))?);
        }
        let [one, other, both] = answers.as_slice() else {
            continue;
        };
        let counts = |answer: &Value| code_of(answer).is_some_and(|code| code != "0x0000");
        // What is refused in the same words alone says nothing.
        if ![&one.0, &other.0, &both.0].into_iter().all(counts) || same(&one.0, &other.0) {
            continue;
        }
        compared += 1;
        let theirs = named(&both.0, &one.0, &other.0);
        let ours = named(&both.1, &one.1, &other.1);
        let agree = theirs == ours && theirs != Named::Other || theirs == Named::Either && counts(&both.1);
        if agree || same(&both.0, &both.1) {
            continue;
        }
        differ += 1;
        *looks
            .entry(format!("{} | {}", message_of(&both.0), message_of(&both.1)))
            .or_default() += 1;
        if is_verbose {
            println!(
                "{}\n    Cassandra: {theirs:?}: {}\n    here: {ours:?}: {}",
                texts[2],
                message_of(&both.0),
                message_of(&both.1)
            );
        }
    }
    pair.leave();
    for (look, count) in &looks {
        println!("differs: {count:4} {look}");
    }
    println!(
        "two faults: seed {seed}, {compared} statements of {asked} compared, {differ} differ in which fault is named"
    );
    Ok(differ)
}
