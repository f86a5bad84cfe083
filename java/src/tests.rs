//! Bodies and their results. The expected values are Cassandra 5.0.9's.

use std::sync::Arc;

use crate::{CompileError, Datum, Failure, Fields, Limits, Program, Signature, Type, Types, UserType, compile};

fn limits() -> Limits {
    Limits {
        steps_max: 1_000_000,
        bytes_max: 16 * 1024 * 1024,
        now_micros: 1_600_000_000_123_456,
        seed: 7,
        double_text: |value| format!("{value:?}"),
        float_text: |value| format!("{value:?}"),
    }
}

/// The types of the tests' keyspace.
struct Known;

fn fields(types: Vec<Type>) -> Arc<Fields> {
    let frozen = vec![false; types.len()];
    Arc::new(Fields { types, frozen })
}

fn point() -> Arc<UserType> {
    Arc::new(UserType {
        name: "ks.point".to_owned(),
        names: vec!["x".to_owned(), "Big".to_owned(), "l".to_owned(), "m".to_owned()],
        fields: fields(vec![
            Type::Int,
            Type::Text,
            Type::List(Arc::new(Type::Int)),
            Type::Map(Arc::new(Type::Text), Arc::new(Type::Int)),
        ]),
    })
}

impl Types for Known {
    fn keyspace(&self) -> &'static str {
        "ks"
    }

    fn user_type(&self, name: &str) -> Option<Arc<UserType>> {
        (name == "point").then(point)
    }

    fn parsed(&self, text: &str) -> Option<Type> {
        match text {
            "tuple<int, text>" => Some(Type::Tuple(fields(vec![Type::Int, Type::Text]))),
            "int" => Some(Type::Int),
            _ => None,
        }
    }
}

fn compiled(body: &str) -> Result<Program, CompileError> {
    let list = Type::List(Arc::new(Type::Int));
    let set = Type::Set(Arc::new(Type::Int));
    let map = Type::Map(Arc::new(Type::Text), Arc::new(Type::Int));
    let named = |name: &str, ty: Type| (name.to_owned(), ty);
    let signature = Signature {
        arguments: vec![
            named("v", Type::Int),
            named("s", Type::Text),
            named("l", list),
            named("se", set),
            named("m", map),
        ],
        returns: Type::Text,
        takes_null: true,
    };
    compile(body, signature)
}

fn run(body: &str) -> Result<Option<Datum>, Failure> {
    let program = compiled(body).unwrap_or_else(|error| panic!("{body}\n{error}"));
    let int = |value| Some(Datum::Int(value));
    let text = |value: &str| Some(Datum::Text(value.to_owned()));
    let arguments = [
        int(5),
        text("abc"),
        Some(Datum::List(vec![int(3), int(1), int(2)])),
        Some(Datum::List(vec![int(7), int(8), int(9)])),
        Some(Datum::Map(vec![(text("a"), int(1)), (text("b"), int(2))])),
    ];
    program.run(&arguments, &limits(), &Known).result
}

/// The outcome of a body: a text, `null`, `!` and the exception, or `C ` and the compile error.
fn outcome(body: &str) -> String {
    if let Err(error) = compiled(body) {
        return format!("C {error}").trim_end().to_owned();
    }
    match run(body) {
        Ok(Some(Datum::Text(text))) => text,
        Ok(Some(other)) => format!("{other:?}"),
        Ok(None) => "null".to_owned(),
        Err(failure) => format!("! {failure}"),
    }
}

/// Lines of `body ==> outcome`.
#[test]
fn bodies_give_what_cassandra_gives() {
    let mut wrong = Vec::new();
    for line in include_str!("tests/bodies.txt").lines().filter(|line| !line.is_empty()) {
        let (body, expected) = line.split_once(" ==> ").expect("a body and its outcome");
        let got = outcome(body).replace('\n', "\\n");
        if got != expected {
            wrong.push(format!("{body}\n  expected {expected}\n  got      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_never_ends_is_stopped() {
    for body in [
        "while (true) { }",
        "for (;;) { v++; }",
        "do { v = v; } while (true);",
        "List<Integer> x = new ArrayList<Integer>(); while (true) { for (int i : l) { x.contains(i); } }",
        "return \"\" + \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\".matches(\"(a+)+b\");",
        "return \"\" + \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\".matches(\"(a|a)*b\");",
    ] {
        let failure = run(body).expect_err(body);
        assert_eq!(failure, Failure::Steps { steps_max: 1_000_000 }, "{body}");
    }
}

#[test]
fn what_allocates_for_ever_is_stopped() {
    for body in [
        "while (true) { s = s.repeat(1000); }",
        "List<Integer> x = new ArrayList<Integer>(); while (true) { x.addAll(x); x.add(1); }",
        "int[] x = new int[2000000000]; return \"\";",
        "return s.repeat(2000000000);",
    ] {
        let failure = run(body).expect_err(body);
        assert!(matches!(failure, Failure::Bytes { .. }), "{body}: {failure}");
    }
    // Copies count as steps too, whose bound is reached first here.
    let body = "StringBuilder b = new StringBuilder(\"x\"); while (true) { b.append(b); }";
    let failure = run(body).expect_err(body);
    assert_eq!(failure, Failure::Steps { steps_max: 1_000_000 });
}

#[test]
fn what_nests_for_ever_is_refused_or_stopped() {
    for (open, close) in [("(", ")"), ("-(", ")"), ("!(", ")")] {
        let body = format!("return \"\" + {}1{};", open.repeat(10_000), close.repeat(10_000));
        let error = compiled(&body).expect_err(open).to_string();
        assert!(error.contains("deeper than 100 levels"), "{error}");
    }
    let error = compiled(&"{".repeat(10_000)).expect_err("blocks").to_string();
    assert!(error.contains("deeper than 100 levels"), "{error}");
    let chain = format!("return \"\"{};", " + 1".repeat(10_000));
    assert!(compiled(&chain).is_err());
    let inner =
        "List<Object> x = new ArrayList<Object>(); List<Object> y = new ArrayList<Object>(); x.add(y); y.add(x); ";
    let failure = run(&format!("{inner}return \"\" + x;")).expect_err("a circle");
    assert_eq!(failure.to_string(), "java.lang.StackOverflowError");
}

#[test]
fn no_text_makes_the_compiler_panic() {
    // Every prefix and every word left out, of bodies that have all kinds of statements.
    for line in include_str!("tests/bodies.txt").lines() {
        let body = line.split(" ==> ").next().unwrap_or_default();
        for (at, _) in body.char_indices() {
            let _ = compiled(&body[..at]);
            let _ = compiled(&body[at..]);
        }
    }
}

#[test]
fn arguments_of_functions_that_take_no_null_are_primitives() {
    let signature = Signature {
        arguments: vec![("a".to_owned(), Type::Int)],
        returns: Type::Int,
        takes_null: false,
    };
    let error = compile("return null;", signature.clone()).expect_err("a primitive");
    assert_eq!(
        error.to_string(),
        "Line 1: Type mismatch: cannot convert from null to int\n"
    );
    let program = compile("return a + 1;", signature).expect("it is sound");
    assert_eq!(
        program.run(&[Some(Datum::Int(i32::MAX))], &limits(), &Known).result,
        Ok(Some(Datum::Int(i32::MIN)))
    );
}

#[test]
fn ascii_results_are_of_ascii() {
    let signature = Signature {
        arguments: vec![("a".to_owned(), Type::Text)],
        returns: Type::Ascii,
        takes_null: true,
    };
    let program = compile("return a.substring(0, 2);", signature).expect("it is sound");
    let outcome = |text: &str| match program
        .run(&[Some(Datum::Text(text.to_owned()))], &limits(), &Known)
        .result
    {
        Ok(result) => format!("{result:?}"),
        Err(failure) => failure.to_string(),
    };
    assert_eq!(outcome("abc"), "Some(Text(\"ab\"))");
    let class = "org.apache.cassandra.cql3.functions.types.exceptions.InvalidTypeException";
    assert_eq!(outcome("äbc"), format!("{class}: äb is not a valid ASCII String"));
    assert_eq!(outcome("x😀y"), format!("{class}: x? is not a valid ASCII String"));
}
