//! Trees that a text can have, at random.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::ast::*;

/// Any name: plain, a keyword, one that must be quoted.
pub(super) fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        4 => "[a-z][a-z0-9_]{0,5}".prop_map(Name),
        1 => proptest::sample::select(&["select", "key", "ttl", "json", "distinct", "token", "count", "int", "true", "expr", "exists",
            "cast", "list", "map", "values", "writetime", "per", "as", "compact", "clustering", "default", "all", "role", "nan",
            "type", "only", "cluster", "tables"][..]).prop_map(Name::from),
        1 => "[ -~é]{1,5}".prop_map(Name),
    ]
}

fn qualified() -> impl Strategy<Value = QualifiedName> {
    (option::of(name()), name()).prop_map(|(keyspace, name)| QualifiedName { keyspace, name })
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        "[ -~é\n]{0,6}".prop_map(Literal::String),
        "-?[0-9]{1,20}".prop_map(Literal::Integer),
        "-?[0-9]{1,5}\\.[0-9]{0,5}(E-?[0-9]{1,2})?".prop_map(Literal::Float),
        proptest::sample::select(&["NaN", "Infinity", "-Infinity", "1E5"][..])
            .prop_map(|text| Literal::Float(text.to_owned())),
        any::<bool>().prop_map(Literal::Boolean),
        "[0-9a-f]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-f]{12}".prop_map(Literal::Uuid),
        proptest::sample::select(
            &[
                "1y2mo3w4d5h6m7s8ms9us10ns",
                "-1d",
                "P1Y2M3DT4H5M6S",
                "P2W",
                "-P1D",
                "PT5M",
                "P0001-02-03T04:05:06"
            ][..]
        )
        .prop_map(|text| Literal::Duration(text.to_owned())),
        "([0-9a-fA-F]{2}){0,4}".prop_map(Literal::Blob),
    ]
}

fn native() -> impl Strategy<Value = Type> {
    proptest::sample::select(&["int", "text", "timeuuid", "counter", "duration"][..]).prop_map(|text| {
        Type::Named(QualifiedName {
            keyspace: None,
            name: Name::from(text),
        })
    })
}

/// Whether a type's bare name would be taken for a native type's, which is another tree.
fn is_native_name(name: &QualifiedName) -> bool {
    name.keyspace.is_none()
        && matches!(
            name.name.as_str(),
            "int" | "text" | "timeuuid" | "counter" | "duration" | "ascii" | "date" | "time"
        )
}

fn user_type_name() -> impl Strategy<Value = QualifiedName> {
    let reserved = (
        proptest::option::of(name()),
        proptest::sample::select(vec!["enum", "macaddr", "byte"]),
    );
    let reserved = reserved.prop_map(|(keyspace, text)| QualifiedName {
        keyspace,
        name: Name(text.to_owned()),
    });
    prop_oneof![9 => qualified(), 1 => reserved]
        .prop_filter("a bare native name is a native type", |of| !is_native_name(of))
}

/// Any type; frozen is only what may be.
pub(super) fn cql_type() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![native(), user_type_name().prop_map(Type::Named)];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed().prop_map(Type::List),
            boxed().prop_map(Type::Set),
            (boxed(), boxed()).prop_map(|(key, value)| Type::Map(key, value)),
            vec(inner.clone(), 1..4).prop_map(Type::Tuple),
            (boxed(), any::<i32>()).prop_map(|(of, length)| Type::Vector(of, length)),
            boxed().prop_map(|of| Type::Frozen(Box::new(Type::List(of)))),
        ]
    })
}

fn marker() -> impl Strategy<Value = Term> {
    option::of(name()).prop_map(|name| Term::BindMarker {
        name,
        at: Site::default(),
    })
}

fn operator(multiplicative: bool) -> impl Strategy<Value = ArithmeticOperator> {
    use ArithmeticOperator::{Add, Divide, Modulo, Multiply, Subtract};
    let operators: &'static [ArithmeticOperator] = if multiplicative {
        &[Multiply, Divide, Modulo]
    } else {
        &[Add, Subtract]
    };
    proptest::sample::select(operators)
}

/// A left-leaning tree of operators: that is how a chain parses.
fn chain<T: Clone + std::fmt::Debug + 'static>(
    multiplicative: bool,
    element: impl Strategy<Value = T> + Clone + 'static,
    combine: fn(ArithmeticOperator, T, T) -> T,
) -> BoxedStrategy<T> {
    (element.clone(), vec((operator(multiplicative), element), 0..2))
        .prop_map(move |(first, rest)| {
            rest.into_iter()
                .fold(first, |left, (operator, right)| combine(operator, left, right))
        })
        .boxed()
}

/// Any term.
pub(super) fn term() -> BoxedStrategy<Term> {
    let leaf = prop_oneof![
        4 => literal().prop_map(Term::Literal),
        1 => Just(Term::Literal(Literal::Null)),
        1 => marker(),
    ];
    let simple = leaf.prop_recursive(3, 12, 3, |inner| {
        let full = expression(inner.clone().boxed());
        prop_oneof![
            vec(full.clone(), 0..3).prop_map(Term::List),
            vec(full.clone(), 0..3).prop_map(Term::Set),
            vec((full.clone(), full.clone()), 1..3).prop_map(Term::Map),
            vec((name(), full.clone()), 1..3).prop_map(Term::Udt),
            vec(full.clone(), 1..3).prop_map(Term::Tuple),
            (qualified(), vec(full, 0..3)).prop_map(|(name, arguments)| Term::Function {
                name,
                arguments,
                at: Site::default()
            }),
            (cql_type(), inner.clone()).prop_map(|(target, term)| Term::TypeHint {
                target,
                term: Box::new(term)
            }),
            (inner, native()).prop_map(|(term, target)| Term::Cast {
                at: Site::default(),
                term: Box::new(term),
                target
            }),
        ]
    });
    expression(simple.boxed())
}

fn expression(simple: BoxedStrategy<Term>) -> BoxedStrategy<Term> {
    let group = prop_oneof![4 => simple.clone(), 1 => simple.prop_map(|term| Term::Negate { of: Box::new(term), at: Site::default() })];
    let combine = |operator, left, right| Term::Arithmetic {
        at: Site::default(),
        operator,
        left: Box::new(left),
        right: Box::new(right),
    };
    chain(false, chain(true, group, combine), combine)
}

fn selector() -> BoxedStrategy<Selector> {
    let leaf = prop_oneof![
        3 => name().prop_map(Selector::Column),
        1 => literal().prop_map(|literal| Selector::Term(Term::Literal(literal))),
        1 => marker().prop_map(Selector::Term),
        1 => proptest::sample::select(&["*", "1"][..]).prop_map(|text| Selector::CountRows(text.to_owned())),
    ];
    let simple = leaf.prop_recursive(3, 12, 3, |inner| {
        let full = selection(inner.clone().boxed());
        let boxed = || inner.clone().prop_map(Box::new);
        let kind =
            proptest::sample::select(&[MetadataKind::WriteTime, MetadataKind::MaxWriteTime, MetadataKind::Ttl][..]);
        prop_oneof![
            (qualified(), vec(full.clone(), 0..3)).prop_filter_map(
                "counting rows is its own node",
                |(name, arguments)| {
                    (name.name.as_str() != "count").then_some(Selector::Function {
                        name,
                        arguments,
                        at: Site::default(),
                    })
                }
            ),
            (kind, name()).prop_map(|(kind, of)| Selector::Metadata {
                kind,
                of: Box::new(Selector::Column(of))
            }),
            (full.clone(), native()).prop_map(|(selector, target)| Selector::Cast {
                selector: Box::new(selector),
                target
            }),
            (cql_type(), boxed()).prop_map(|(target, selector)| Selector::TypeHint { target, selector }),
            vec(full.clone(), 1..3).prop_filter_map("a type's name in parentheses is a hint", |elements| {
                let may_be_type =
                    |of: &Selector| matches!(of, Selector::Column(_) | Selector::Field { .. } | Selector::Term(_));
                let lone = elements.len() == 1 && elements.iter().any(may_be_type);
                (!lone).then_some(Selector::Tuple(elements))
            }),
            vec(full.clone(), 0..3).prop_map(Selector::List),
            vec(full.clone(), 0..3).prop_map(Selector::Set),
            vec((full.clone(), full), 1..3).prop_map(Selector::Map),
        ]
    });
    selection(simple.boxed())
}

fn selection(simple: BoxedStrategy<Selector>) -> BoxedStrategy<Selector> {
    let modified =
        (simple.clone(), 0..4, name(), term(), option::of(term())).prop_map(|(of, which, field, key, to)| {
            let of = Box::new(of);
            match which {
                0 => Selector::Field { of, field },
                1 => Selector::Element { of, key },
                2 => Selector::Slice {
                    of,
                    from: Some(key),
                    to,
                },
                _ => Selector::Slice {
                    of,
                    from: None,
                    to: Some(key),
                },
            }
        });
    let group = prop_oneof![4 => simple.clone(), 1 => modified, 1 => simple.prop_map(|of| Selector::Negate { of: Box::new(of), at: Site::default() })];
    let combine = |operator, left, right| Selector::Arithmetic {
        at: Site::default(),
        operator,
        left: Box::new(left),
        right: Box::new(right),
    };
    chain(false, chain(true, group, combine), combine)
}

fn relation_value(allow_terms: bool) -> BoxedStrategy<(Operator, RelationValue)> {
    let comparison = proptest::sample::select(
        &[
            Operator::Eq,
            Operator::Lt,
            Operator::Lte,
            Operator::Gt,
            Operator::Gte,
            Operator::Neq,
        ][..],
    );
    let compared = (comparison, term()).prop_map(|(operator, term)| (operator, RelationValue::Term(term)));
    if !allow_terms {
        return compared.boxed();
    }
    let one_of = prop_oneof![
        vec(term(), 0..3).prop_map(RelationValue::Terms),
        marker().prop_map(RelationValue::Term)
    ];
    prop_oneof![compared, one_of.prop_map(|value| (Operator::In, value))].boxed()
}

fn relation() -> impl Strategy<Value = Relation> {
    let other = proptest::sample::select(&[Operator::Contains, Operator::ContainsKey, Operator::Like][..]);
    let tuple = vec(term(), 1..3).prop_map(Term::Tuple);
    prop_oneof![
        (name(), relation_value(true)).prop_map(|(name, (operator, value))| (
            RelationTarget::Column(name),
            operator,
            value
        )),
        (name(), other, term()).prop_map(|(name, operator, term)| (
            RelationTarget::Column(name),
            operator,
            RelationValue::Term(term)
        )),
        name().prop_map(|name| (RelationTarget::Column(name), Operator::IsNotNull, RelationValue::None)),
        (name(), term(), relation_value(false)).prop_map(|(name, key, (operator, value))| (
            RelationTarget::Element(name, key),
            operator,
            value
        )),
        (vec(name(), 1..3), relation_value(false)).prop_map(|(names, (operator, value))| (
            RelationTarget::Token(names),
            operator,
            value
        )),
        (vec(name(), 1..3), tuple.clone()).prop_map(|(names, tuple)| (
            RelationTarget::Tuple(names),
            Operator::Gt,
            RelationValue::Term(tuple)
        )),
        (vec(name(), 1..3), vec(tuple, 0..3)).prop_map(|(names, tuples)| (
            RelationTarget::Tuple(names),
            Operator::In,
            RelationValue::Terms(tuples)
        )),
        (proptest::sample::select(&FeedFunction::ALL[..]), term()).prop_map(|(function, term)| (
            RelationTarget::Feed(function),
            Operator::Eq,
            RelationValue::Term(term)
        )),
        (name(), term()).prop_map(|(index, term)| (
            RelationTarget::Index(index),
            Operator::Eq,
            RelationValue::Term(term)
        )),
    ]
    .prop_map(|(target, operator, value)| Relation {
        target,
        operator,
        value,
    })
}

fn int_value() -> impl Strategy<Value = Term> {
    prop_oneof![
        "-?[0-9]{1,10}".prop_map(|text| Term::Literal(Literal::Integer(text))),
        marker()
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    any::<bool>().prop_map(|up| {
        if up {
            Direction::Ascending
        } else {
            Direction::Descending
        }
    })
}

fn select() -> impl Strategy<Value = Statement> {
    let aliased = (selector(), option::of(name())).prop_map(|(selector, alias)| SelectorAs { selector, alias });
    let selection = prop_oneof![Just(Selection::All), vec(aliased, 1..4).prop_map(Selection::Selectors)];
    let ordering = prop_oneof![
        (name(), direction()).prop_map(|(name, direction)| OrderBy::Column(name, direction)),
        (name(), term(), direction()).prop_map(|(name, term, direction)| OrderBy::Ann(name, term, direction)),
    ];
    let limits = (option::of(int_value()), option::of(int_value()), any::<bool>());
    let clauses = (
        vec(relation(), 0..3),
        vec(selector().prop_map(GroupBy), 0..2),
        vec(ordering, 0..2),
        limits,
    );
    (any::<(bool, bool)>(), selection, qualified(), clauses).prop_map(
        |((json, distinct), selection, table, (relations, group_by, order_by, limits))| {
            let (per_partition_limit, limit, allow_filtering) = limits;
            Statement::Select(Select {
                json,
                distinct,
                selection,
                table,
                relations,
                group_by,
                order_by,
                per_partition_limit,
                limit,
                allow_filtering,
            })
        },
    )
}

fn using() -> impl Strategy<Value = Using> {
    (option::of(int_value()), option::of(int_value()), any::<bool>()).prop_map(|(timestamp, ttl, first)| {
        let ttl_first = ttl.is_some() && (timestamp.is_none() || first);
        Using {
            timestamp,
            ttl,
            ttl_first,
        }
    })
}

fn insert() -> impl Strategy<Value = Insert> {
    let document = prop_oneof![
        "[ -~]{0,9}".prop_map(|text| Term::Literal(Literal::String(text))),
        marker()
    ];
    let source = prop_oneof![
        (vec(name(), 1..4), vec(term(), 1..4)).prop_map(|(columns, values)| InsertSource::Values { columns, values }),
        (document, any::<bool>()).prop_map(|(document, default_unset)| InsertSource::Json {
            document,
            default_unset
        }),
    ];
    (qualified(), source, any::<bool>(), using()).prop_map(|(table, source, if_not_exists, using)| Insert {
        table,
        source,
        if_not_exists,
        using,
    })
}

fn condition() -> impl Strategy<Value = If> {
    let target = prop_oneof![
        name().prop_map(ConditionTarget::Column),
        (name(), term()).prop_map(|(name, key)| ConditionTarget::Element(name, key)),
        (name(), name()).prop_map(|(name, field)| ConditionTarget::Field(name, field)),
    ];
    let one = (target, relation_value(true)).prop_map(|(target, (operator, value))| Condition {
        target,
        operator,
        value,
    });
    prop_oneof![
        Just(If::Always),
        Just(If::Exists),
        vec(one, 1..3).prop_map(If::Conditions)
    ]
}

fn update() -> impl Strategy<Value = Update> {
    let assignment = prop_oneof![
        term().prop_map(|value| Assignment::Set(Name::from("a"), value)),
        (name(), term()).prop_map(|(field, value)| Assignment::Field(Name::from("b"), field, value)),
        (term(), term()).prop_map(|(key, value)| Assignment::Element(Name::from("c"), key, value)),
        term().prop_map(|value| Assignment::Add(Name::from("d"), value)),
        term().prop_map(|value| Assignment::Subtract(Name::from("e"), value)),
        term().prop_map(|value| Assignment::Prepend(Name::from("f"), value)),
    ];
    // One assignment a statement is enough here: which ones go together is not a question of printing.
    (
        qualified(),
        using(),
        vec(assignment, 1..2),
        vec(relation(), 1..3),
        condition(),
    )
        .prop_map(|(table, using, assignments, relations, condition)| Update {
            table,
            using,
            assignments,
            relations,
            condition,
        })
}

fn delete() -> impl Strategy<Value = Delete> {
    let target = prop_oneof![
        name().prop_map(DeleteTarget::Column),
        (name(), term()).prop_map(|(name, key)| DeleteTarget::Element(name, key)),
        (name(), name()).prop_map(|(name, field)| DeleteTarget::Field(name, field)),
    ];
    (
        vec(target, 0..3),
        qualified(),
        option::of(int_value()),
        vec(relation(), 1..3),
        condition(),
    )
        .prop_map(|(targets, table, timestamp, relations, condition)| {
            let using = Using {
                timestamp,
                ..Using::default()
            };
            Delete {
                targets,
                table,
                using,
                relations,
                condition,
            }
        })
}

fn batch() -> impl Strategy<Value = Statement> {
    let modification = prop_oneof![
        insert().prop_map(Modification::Insert),
        update().prop_map(Modification::Update),
        delete().prop_map(Modification::Delete),
    ];
    let kind = proptest::sample::select(&[BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter][..]);
    (kind, using(), vec(modification, 0..3)).prop_map(|(kind, using, modifications)| {
        Statement::Batch(Batch {
            kind,
            using,
            modifications,
        })
    })
}

fn mask() -> impl Strategy<Value = Mask> {
    prop_oneof![
        Just(Mask {
            by_default: true,
            function: QualifiedName {
                keyspace: None,
                name: Name::from("mask_default")
            },
            arguments: Vec::new()
        }),
        (qualified(), vec(term(), 0..3)).prop_map(|(function, arguments)| Mask {
            by_default: false,
            function,
            arguments
        }),
    ]
}

fn create_table() -> impl Strategy<Value = Statement> {
    let column = (name(), cql_type(), any::<(bool, bool)>(), option::of(mask())).prop_map(
        |(name, column_type, (is_static, is_primary_key), mask)| ColumnDefinition {
            name,
            column_type,
            is_static,
            is_primary_key,
            mask,
        },
    );
    let key = (vec(name(), 1..3), vec(name(), 0..3)).prop_map(|(partition_key, clustering)| PrimaryKey {
        partition_key,
        clustering,
    });
    let value = prop_oneof![
        literal().prop_map(PropertyValue::Literal),
        literal().prop_map(|literal| PropertyValue::Map(vec![(Literal::String("class".into()), literal)])),
        Just(PropertyValue::Map(Vec::new())),
    ];
    let property = (name(), value).prop_map(|(name, value)| Property { name, value });
    let options = (vec((name(), direction()), 0..3), any::<bool>(), vec(property, 0..2)).prop_map(
        |(clustering_order, compact_storage, properties)| TableOptions {
            clustering_order,
            compact_storage,
            properties,
        },
    );
    (qualified(), any::<bool>(), vec(column, 1..4), vec(key, 0..2), options).prop_map(
        |(table, if_not_exists, columns, primary_keys, options)| {
            Statement::CreateTable(CreateTable {
                table,
                if_not_exists,
                columns,
                primary_keys,
                options,
            })
        },
    )
}

fn create_type() -> impl Strategy<Value = Statement> {
    (user_type_name(), any::<bool>(), vec((name(), cql_type()), 1..4)).prop_map(|(name, if_not_exists, fields)| {
        Statement::CreateType(CreateType {
            name,
            if_not_exists,
            fields,
        })
    })
}

fn functions() -> impl Strategy<Value = Statement> {
    let create = (
        any::<(bool, bool, bool)>(),
        qualified(),
        vec((name(), cql_type()), 0..3),
        cql_type(),
        "[ -~]{0,9}",
    )
        .prop_map(
            |((or_replace, if_not_exists, called_on_null_input), name, arguments, returns, body)| {
                Statement::CreateFunction(CreateFunction {
                    or_replace,
                    if_not_exists,
                    name,
                    arguments,
                    called_on_null_input,
                    returns,
                    language: Name::from("java"),
                    body,
                })
            },
        );
    let drop = (any::<(bool, bool)>(), qualified(), option::of(vec(cql_type(), 0..3))).prop_map(
        |((aggregate, if_exists), name, arguments)| {
            Statement::DropFunction(DropFunction {
                aggregate,
                if_exists,
                name,
                arguments,
            })
        },
    );
    prop_oneof![create, drop]
}

fn describe() -> impl Strategy<Value = Statement> {
    let target = prop_oneof![
        qualified().prop_map(DescribeTarget::Generic),
        qualified().prop_map(DescribeTarget::Table),
        user_type_name().prop_map(DescribeTarget::Type),
        qualified().prop_map(DescribeTarget::Function),
        (option::of(name()), any::<bool>()).prop_map(|(name, only)| DescribeTarget::Keyspace { name, only }),
    ];
    (target, any::<bool>())
        .prop_map(|(target, with_internals)| Statement::Describe(Describe { target, with_internals }))
}

fn roles() -> impl Strategy<Value = Statement> {
    let resource = prop_oneof![
        name().prop_map(Resource::Keyspace),
        qualified().prop_map(Resource::Table),
        Just(Resource::AllKeyspaces),
        name().prop_map(Resource::AllTables),
    ];
    let grant = (any::<(bool, bool)>(), resource, name()).prop_map(|((revoke, all), resource, role)| {
        let permissions = (!all).then(|| vec![Permission::Select, Permission::Unmask]);
        Statement::Grant(Grant {
            revoke,
            permissions,
            resource,
            role,
        })
    });
    let user = (
        "[ -~]{0,9}",
        any::<bool>(),
        option::of("[ -~]{0,9}"),
        option::of(any::<bool>()),
    )
        .prop_map(|(name, if_not_exists, password, superuser)| {
            let password = password.map(UserPassword::Plain);
            Statement::CreateUser(CreateUser {
                name: Name(name),
                if_not_exists,
                password,
                superuser,
            })
        });
    let give = (any::<bool>(), name(), name())
        .prop_map(|(revoke, role, grantee)| Statement::GrantRole(GrantRole { revoke, role, grantee }));
    prop_oneof![grant, give, user]
}

/// Any statement.
pub(super) fn statement() -> impl Strategy<Value = Statement> {
    prop_oneof![
        4 => select(),
        2 => insert().prop_map(Statement::Insert),
        2 => update().prop_map(Statement::Update),
        2 => delete().prop_map(Statement::Delete),
        1 => batch(),
        2 => create_table(),
        1 => create_type(),
        1 => functions(),
        1 => describe(),
        1 => prop_oneof![select(), batch()].prop_map(|statement| Statement::Explain(Box::new(statement))),
        1 => roles(),
        1 => name().prop_map(Statement::Use),
        1 => qualified().prop_map(Statement::Truncate),
    ]
}
