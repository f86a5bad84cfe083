//! Compares the two answers to a statement. What is known to differ is in one table, each entry with its reason, and is
//! counted; nothing is passed over in silence.

mod rules;

pub(super) use self::rules::RULES;
use super::question::{Kind, Question};
use serde_json::Value;

/// How Cassandra names the type of what functions make of a timeuuid.
const LEGACY_TIMEUUID: &str = "custom 'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'";

/// A difference that is known, and why.
pub(super) struct Rule {
    /// Why it is one.
    pub(super) reason: &'static str,
    /// Whether this is a case of it.
    holds: fn(&Case<'_>) -> bool,
}

/// What rules want to know of a table.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// It has a descending clustering column.
    pub(super) descending: bool,
    /// It has clustering columns.
    pub(super) clustered: bool,
    /// It has an index of any kind.
    pub(super) indexed: bool,
    /// It has a storage-attached index.
    pub(super) attached_index: bool,
    /// Rows have been deleted in ranges, or may have been.
    pub(super) deleted_ranges: bool,
    /// A column has been dropped.
    pub(super) dropped: bool,
    /// Names of its columns that are not of its key.
    pub(super) columns: Vec<String>,
    /// Names of its static columns.
    pub(super) statics: Vec<String>,
    /// Names of its columns of addresses.
    pub(super) inets: Vec<String>,
    /// Names of its columns of vectors.
    pub(super) vectors: Vec<String>,
    /// Names of its columns that are frozen collections.
    pub(super) frozen_collections: Vec<String>,
}

impl Facts {
    /// What the statements so far tell of the table, or the view, that `next` asks.
    pub(super) fn of<'a>(asked: impl Iterator<Item = &'a Question> + Clone, next: &Question) -> Self {
        let mut facts = Self::of_table(asked.clone());
        let asks =
            |name: &str| next.text.contains(&format!(" FROM {name} ")) || next.text.ends_with(&format!(" FROM {name}"));
        for question in asked {
            let definition = question.text.strip_prefix("CREATE MATERIALIZED VIEW ");
            if let Some((name, definition)) = definition.and_then(|text| text.split_once(" AS SELECT "))
                && asks(name)
            {
                facts.narrow(definition);
            }
        }
        facts
    }

    /// Leaves what a view of this definition has of the table.
    fn narrow(&mut self, definition: &str) {
        let (selected, rest) = definition.split_once(" FROM ").unwrap_or_default();
        let (_, key) = rest.split_once(" PRIMARY KEY ").unwrap_or_default();
        let (key, _) = key.split_once(" WITH ").unwrap_or((key, ""));
        let names = |text: &str, name: &str| text.split(['(', ')', ',']).any(|part| part.trim() == name);
        self.columns
            .retain(|name| (selected == "*" || names(selected, name)) && !names(key, name));
        self.clustered = key.contains("), ");
        self.statics.clear();
        self.indexed = false;
        self.attached_index = false;
    }

    fn of_table<'a>(asked: impl Iterator<Item = &'a Question>) -> Self {
        let mut facts = Self {
            descending: false,
            clustered: false,
            indexed: false,
            attached_index: false,
            deleted_ranges: false,
            dropped: false,
            columns: Vec::new(),
            statics: Vec::new(),
            inets: Vec::new(),
            vectors: Vec::new(),
            frozen_collections: Vec::new(),
        };
        for question in asked {
            let text = &question.text;
            if question.kind != Kind::Schema {
                facts.deleted_ranges |= question.kind == Kind::Write && question.script().contains("DELETE FROM ");
                continue;
            }
            if let Some((_, added)) = text.split_once(" ADD ").filter(|_| text.starts_with("ALTER TABLE")) {
                facts.columns.extend(not_of_key(added).map(str::to_owned));
            }
            facts.dropped |= text.starts_with("ALTER TABLE") && text.contains(" DROP ");
            facts.descending |= text.contains(" DESC");
            facts.indexed |= text.contains(" INDEX ");
            facts.attached_index |= text.contains(" INDEX ") && !super::schema::is_of_the_first_kind(text);
            if let Some((_, columns)) = text.split_once('(').filter(|_| text.starts_with("CREATE TABLE")) {
                facts.clustered = text.contains(" c0 ") || text.contains("\"C 0\" ");
                // Commas within a type only make parts that begin with no column's name.
                let frozen = columns.split(", ").filter_map(|column| {
                    let (name, ty) = column.split_once(" frozen<")?;
                    ["list<", "set<", "map<"]
                        .iter()
                        .any(|of| ty.starts_with(of))
                        .then(|| name.to_owned())
                });
                facts.frozen_collections.extend(frozen);
                let names = columns.split(", ").filter_map(not_of_key);
                facts.columns.extend(names.map(str::to_owned));
                let statics = outside_of_types(columns).filter_map(|column| column.strip_suffix(" static"));
                let name = |column: &str| match column.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                    Some((quoted, _)) => format!("\"{quoted}\""),
                    None => column.split(' ').next().unwrap_or_default().to_owned(),
                };
                facts.statics.extend(statics.map(name));
                let inets = columns.split(", ").filter_map(|column| column.split_once(" inet"));
                facts.inets.extend(inets.map(|(name, _)| name.to_owned()));
                let vectors = columns.split(", ").filter_map(|column| column.split_once(" vector<"));
                facts.vectors.extend(vectors.map(|(name, _)| name.to_owned()));
            }
        }
        facts
    }
}

/// What stands between commas, those within types aside.
fn outside_of_types(columns: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = columns.split(move |c: char| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim)
}

/// The name of a column that is declared here, if it is a static or regular one: such names begin with s and r.
fn not_of_key(declared: &str) -> Option<&str> {
    let end = if declared.starts_with('"') {
        declared.get(1..)?.find('"')? + 2
    } else {
        declared.find(' ')?
    };
    let name = declared.get(..end)?;
    let number = name
        .trim_matches('"')
        .strip_prefix(['s', 'r', 'S', 'R'])?
        .trim_start_matches(' ');
    (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(name)
}

/// Two answers to one statement.
pub(super) struct Case<'a> {
    /// The statement.
    pub(super) question: &'a Question,
    /// What is known of its table.
    pub(super) facts: &'a Facts,
    /// Cassandra's answer.
    pub(super) theirs: &'a Value,
    /// Ours.
    pub(super) ours: &'a Value,
}

impl Case<'_> {
    fn is_refused_alike(&self) -> bool {
        code_of(self.theirs).is_some() && code_of(self.theirs) == code_of(self.ours)
    }

    /// Whether Cassandra lets one of these exceptions out.
    fn their_bug(&self, exceptions: &[&str]) -> bool {
        code_of(self.theirs) == Some("0x0000")
            && exceptions.iter().any(|name| message_of(self.theirs).starts_with(name))
    }
}

/// Whether columns differ in their names alone, but for [`LEGACY_TIMEUUID`], and those that differ do as `fits` says of theirs and
/// ours.
fn names_differ_only(case: &Case<'_>, fits: impl Fn(&str, &str) -> bool) -> bool {
    let columns = |answer: &Value| {
        answer
            .get("columns")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (theirs, ours) = (columns(case.theirs), columns(case.ours));
    let name = |column: &Value| {
        column
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    theirs.len() == ours.len()
        && theirs.iter().zip(&ours).all(|(a, b)| {
            let without = |column: &Value| {
                let mut column = column.clone();
                if let Some(column) = column.as_object_mut() {
                    column.remove("name");
                }
                column.to_string().replace(LEGACY_TIMEUUID, "timeuuid")
            };
            without(a) == without(b) && (name(a) == name(b) || fits(&name(a), &name(b)))
        })
}

fn rows_text(answer: &Value) -> String {
    answer.get("rows").map(ToString::to_string).unwrap_or_default()
}

/// Rows of JSON with the casts of a statement named after their columns.
fn casts_by_column(text: &str, rows: String) -> String {
    let casts = text.split("CAST(").skip(1).filter_map(|rest| {
        let (inner, _) = rest.split_once(')')?;
        inner.split_once(" AS ")
    });
    casts.fold(rows, |rows, (column, ty)| {
        rows.replace(
            &hex(&format!("\"cast({column} as {ty})\"")),
            &hex(&format!("\"{column}\"")),
        )
    })
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<String> {
    let digits = text.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<_>>>()?).ok()
}

/// A row of JSON without the values of its columns `ttl(…)`; `None` where it has no such column. Nothing else of the text is changed.
fn without_ttl(row: &str) -> Option<String> {
    // A quote within a text has a backslash before it.
    let starts = ["{\"ttl(", ", \"ttl("];
    let (mut out, mut rest) = (String::new(), row);
    while let Some(start) = starts.iter().filter_map(|start| rest.find(start)).min() {
        let named = start + rest.get(start..)?.find(")\": ")? + 4;
        out.push_str(rest.get(..named)?);
        rest = rest.get(named..)?;
        // A column of several cells has a list.
        let end = if rest.starts_with('[') {
            rest.find(']')? + 1
        } else {
            rest.find([',', '}'])?
        };
        rest = rest.get(end..)?;
    }
    (!out.is_empty()).then_some(out + rest)
}

/// The rows, each as text, sorted.
pub(super) fn sorted_rows(answer: &Value) -> Vec<String> {
    let rows = answer.get("rows").and_then(Value::as_array);
    let mut rows = rows.map_or_else(Vec::new, |rows| {
        rows.iter().map(ToString::to_string).collect::<Vec<_>>()
    });
    rows.sort_unstable();
    rows
}

/// The columns, those of a timeuuid by its right name.
fn columns_of(answer: &Value) -> Option<String> {
    let columns = answer.get("columns")?.to_string();
    Some(columns.replace(LEGACY_TIMEUUID, "timeuuid"))
}

/// The rows of an answer, of all its pages.
pub(super) fn rows_of(answer: &Value) -> &[Value] {
    answer.get("rows").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// How many they are.
pub(super) fn row_count(answer: &Value) -> usize {
    answer.get("rows").and_then(Value::as_array).map_or(0, Vec::len)
}

/// What a refusal says.
pub(super) fn message_of(answer: &Value) -> &str {
    answer.get("message").and_then(Value::as_str).unwrap_or_default()
}

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The answers are the same.
    Same,
    /// They differ, and this entry of [`RULES`] says why.
    Known(usize),
    /// They differ.
    Different,
}

/// The error code of an answer, if it is a refusal.
pub(super) fn code_of(answer: &Value) -> Option<&str> {
    answer.get("code").and_then(Value::as_str)
}

/// Compares.
pub(super) fn compare(case: &Case<'_>) -> Verdict {
    if case.theirs == case.ours {
        return Verdict::Same;
    }
    RULES
        .iter()
        .position(|rule| (rule.holds)(case))
        .map_or(Verdict::Different, Verdict::Known)
}

/// Whether the servers' tables may differ from here on: one of them took a write that the other refused, or Cassandra's failed while
/// it was carried out.
pub(super) fn parts_ways(question: &Question, theirs: &Value, ours: &Value) -> bool {
    question.kind != Kind::Read
        && (code_of(theirs).is_none() != code_of(ours).is_none()
            || code_of(theirs) == Some("0x1500")
            || theirs.get("broken").is_some())
}

/// What kind of difference it is: shrinking must not turn one into another.
pub(super) fn class(theirs: &Value, ours: &Value) -> String {
    let of = |answer: &Value| match (code_of(answer), answer.get("kind").and_then(Value::as_str)) {
        (Some(code), _) => code.to_owned(),
        (None, Some(kind)) => kind.to_owned(),
        (None, None) => "broken".to_owned(),
    };
    let keys = match (theirs.as_object(), ours.as_object()) {
        (Some(a), Some(b)) if of(theirs) == of(ours) => a
            .keys()
            .chain(b.keys().filter(|k| !a.contains_key(*k)))
            .filter(|k| a.get(*k) != b.get(*k))
            // Flags of the metadata follow from what else differs.
            .filter(|k| *k != "pages" && *k != "flags" && *k != "paging")
            .cloned()
            .collect::<Vec<_>>()
            .join(","),
        _ => String::new(),
    };
    format!("{} {} {keys}", of(theirs), of(ours))
}

/// A rough name of a difference, by which those that are alike are recognised without shrinking each.
pub(super) fn signature(question: &Question, theirs: &Value, ours: &Value) -> String {
    let shape = |answer: &Value| {
        let message = message_of(answer);
        // Names and numbers do not matter.
        message
            .split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| word.len() > 3)
            .take(8)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let verb = question.text.split_whitespace().next().unwrap_or("BATCH");
    let mut form = String::new();
    for word in [
        " IF ",
        " GROUP BY ",
        " DISTINCT ",
        " JSON ",
        " ORDER BY ",
        " PER ",
        " IN ",
        "token(",
        "count(",
        "min(",
        "max(",
    ] {
        if question.text.contains(word) {
            form.push(' ');
            form.push_str(word.trim());
        }
    }
    if question.page.is_some() {
        form.push_str(" page");
    }
    format!(
        "{verb}{form}: {}: {} | {}",
        class(theirs, ours),
        shape(theirs),
        shape(ours)
    )
}

#[cfg(test)]
mod tests {
    use super::{Case, Facts, RULES, Verdict, compare};
    use crate::generate::question::{Kind, Question};
    use serde_json::{Value, json};

    /// The reason of the rule that explains two answers, if one does.
    fn reason(kind: Kind, text: &str, before: &[Question], theirs: &Value, ours: &Value) -> Option<&'static str> {
        let question = Question::new(kind, text.to_owned());
        let facts = Facts::of(before.iter(), &question);
        let case = Case {
            question: &question,
            facts: &facts,
            theirs,
            ours,
        };
        match compare(&case) {
            Verdict::Known(rule) => RULES.get(rule).map(|rule| rule.reason),
            Verdict::Same | Verdict::Different => None,
        }
    }

    #[test]
    fn a_drop_without_arguments_may_name_another_overload() {
        let lacks = |what: &str| json!({"code": "0x2100", "message": format!("User r has no DROP permission on <function k.{what}> or any of its parents")});
        let of = |text: &str, theirs: &str, ours: &str| {
            reason(Kind::Schema, text, &[], &lacks(theirs), &lacks(ours)).is_some()
        };
        assert!(of("DROP FUNCTION f1", "f1()", "f1(int)"));
        assert!(of("DROP AGGREGATE IF EXISTS f1", "f1(tuple<int, text>)", "f1(int)"));
        assert!(!of("DROP FUNCTION f1", "f1()", "f2()"));
        assert!(!of("DROP FUNCTION f1(int)", "f1()", "f1(int)"));
        assert!(!of("DROP TABLE f1", "f1()", "f1(int)"));
    }

    #[test]
    fn statics_are_told_whatever_their_types() {
        let table = "CREATE TABLE t (p int, s0 text static, s1 map<ascii, frozen<map<int, int>>> static, \"S 2\" set<int> static, r int, PRIMARY KEY (p))";
        let table = Question::new(Kind::Schema, table.to_owned());
        let asks = Question::new(Kind::Read, "SELECT * FROM t".to_owned());
        assert_eq!(Facts::of([table].iter(), &asks).statics, ["s0", "s1", "\"S 2\""]);
    }

    #[test]
    fn a_failed_replica_may_not_say_why_its_index_refuses_a_vector() {
        let failed = |why: &str| json!({"code": "0x1500", "message": format!("Operation failed - received 0 responses and 1 failures: {why}")});
        let unknown = failed("UNKNOWN from /127.0.0.1:22043");
        let bounds = failed("Out-of-bounds value at vector[2]=1.0E30");
        let index = "CREATE CUSTOM INDEX i ON t (r) USING 'StorageAttachedIndex'".to_owned();
        let index = [Question::new(Kind::Schema, index)];
        let insert = "INSERT INTO t (p, r) VALUES (0, [1e30])";
        let of = |before: &[Question], theirs, ours| reason(Kind::Write, insert, before, theirs, ours);
        assert!(of(&index, &unknown, &bounds).is_some_and(|reason| reason.contains("UNKNOWN")));
        assert_eq!(of(&[], &unknown, &bounds), None);
        assert_eq!(of(&index, &bounds, &unknown), None);
        assert_eq!(of(&index, &unknown, &failed("TIMEOUT")), None);
    }

    #[test]
    fn only_the_ttl_of_a_views_json_may_differ() {
        let rows = |texts: &[&str]| {
            let cells = texts.iter().map(|text| [super::hex(text)]).collect::<Vec<_>>();
            json!({"kind": "rows", "rows": cells})
        };
        let of = |text: &str, theirs: &[&str], ours: &[&str]| reason(Kind::Read, text, &[], &rows(theirs), &rows(ours));
        let asked = "SELECT JSON ttl(r0), r5, ttl(r1) FROM v9";
        let (theirs, ours) = (
            r#"{"ttl(r0)": null, "r5": "{\"ttl(x)\": 1}", "ttl(r1)": [1, null]}"#,
            r#"{"ttl(r0)": 99246, "r5": "{\"ttl(x)\": 1}", "ttl(r1)": [1, 99246]}"#,
        );
        assert!(of(asked, &[theirs], &[ours]).is_some_and(|reason| reason.contains("in rows of JSON")));
        assert_eq!(of("SELECT JSON ttl(r0), r5, ttl(r1) FROM t", &[theirs], &[ours]), None);
        assert_eq!(of(asked, &[theirs], &[&ours.replace("(x)", "(y)")]), None);
        assert_eq!(of(asked, &[theirs], &[&ours.replace(": 1}", ": 2}")]), None);
        assert_eq!(of(asked, &[theirs], &[ours, ours]), None);
        assert_eq!(of("SELECT JSON r5 FROM v9", &[r#"{"r5": 1}"#], &[r#"{"r5": 2}"#]), None);
    }

    #[test]
    fn what_cassandra_takes_may_lack_a_permission() {
        let theirs = json!({"code": "0x2100", "message": "User r1 has no SELECT permission on <table ks.t> or any of its parents"});
        let ours =
            json!({"code": "0x2200", "message": "Invalid call to function avg, none of its type signatures match"});
        let spoiled = |text: &str| Question {
            spoiled: true,
            ..Question::new(Kind::Read, text.to_owned())
        };
        let of = |question: &Question| {
            let facts = Facts::of([].iter(), question);
            let (theirs, ours) = (&theirs, &ours);
            compare(&Case {
                question,
                facts: &facts,
                theirs,
                ours,
            })
        };
        assert!(matches!(of(&spoiled("SELECT avg(0x00) FROM v1")), Verdict::Known(_)));
        assert_eq!(of(&spoiled("SELECT avg(r0) FROM v1")), Verdict::Different);
        let right = Question::new(Kind::Read, "SELECT avg(0x00) FROM v1".to_owned());
        assert_eq!(of(&right), Verdict::Different);
    }

    #[test]
    fn no_list_is_found_behind_a_condition_on_static_columns_alone() {
        let theirs = json!({"code": "0x2200", "message": "Attempted to delete an element from a list which is null"});
        let ours = json!({"code": "0x2200", "message": "List index 2 out of bound, list has size 2"});
        let table = "CREATE TABLE t (p int, c int, s0 int static, r list<int>, PRIMARY KEY (p, c))".to_owned();
        let table = [Question::new(Kind::Schema, table)];
        let of = |condition: &str| {
            let text = format!("DELETE r[2] FROM t WHERE p = 1 AND c = 1 IF {condition}");
            reason(Kind::Write, &text, &table, &theirs, &ours)
        };
        assert!(of("s0 >= 1").is_some());
        assert_eq!(of("s0 >= 1 AND r != null"), None);
        assert_eq!(of("EXISTS"), None);
    }

    #[test]
    fn nulls_have_no_rule_any_more() {
        let rows = json!({"kind": "rows", "rows": []});
        for message in [
            "Unsupported null value for column c",
            "Invalid null value in condition for column c",
        ] {
            let ours = json!({"code": "0x2200", "message": message});
            let text = "SELECT * FROM t WHERE p IN () AND c = f()";
            assert_eq!(reason(Kind::Read, text, &[], &rows, &ours), None);
        }
    }
}
