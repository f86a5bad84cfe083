//! Terms and relations, formatted as in Cassandra's messages and in the names of its result columns.
//!
//! The format differs from the CQL that `grammar` prints: quotes inside strings are not doubled, functions are named in
//! full, and operators always have spaces.

use std::fmt::{self, Display, Formatter};

use grammar::ast::{
    ArithmeticOperator, Literal, Name, Operator, QualifiedName, Relation, RelationTarget, RelationValue, Term,
};

/// A term in Cassandra's format.
pub(crate) struct TermText<'a>(pub(crate) &'a Term);

/// A literal in Cassandra's format.
pub(crate) struct LiteralText<'a>(pub(crate) &'a Literal);

/// Items with a separator between them.
pub(crate) struct Joined<'a, T>(pub(crate) &'a [T], pub(crate) &'static str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(self.1)?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// Terms, separated by commas.
struct Terms<'a>(&'a [Term]);

impl Display for Terms<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, term) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            TermText(term).fmt(f)?;
        }
        Ok(())
    }
}

impl Display for LiteralText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Literal::Null => f.write_str("NULL"),
            Literal::String(text) => write!(f, "'{text}'"),
            Literal::Integer(text) | Literal::Float(text) | Literal::Uuid(text) | Literal::Duration(text) => {
                f.write_str(text)
            }
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Blob(digits) => write!(f, "0x{digits}"),
        }
    }
}

/// The operator's symbol.
pub(crate) const fn operator_sign(operator: ArithmeticOperator) -> &'static str {
    match operator {
        ArithmeticOperator::Add => "+",
        ArithmeticOperator::Subtract => "-",
        ArithmeticOperator::Multiply => "*",
        ArithmeticOperator::Divide => "/",
        ArithmeticOperator::Modulo => "%",
    }
}

/// `name`, or `keyspace.name`.
pub(crate) fn qualified(name: &QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
        None => name.name.as_str().to_owned(),
    }
}

/// Owned names for the data of a refusal.
pub(crate) fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// A column's name in CQL, quoted if it needs quotes.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

impl Display for TermText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Term::Literal(literal) => LiteralText(literal).fmt(f),
            // Cassandra does not print the names of markers.
            Term::BindMarker { .. } => f.write_str("?"),
            Term::List(elements) => write!(f, "[{}]", Terms(elements)),
            Term::Set(elements) => write!(f, "{{{}}}", Terms(elements)),
            Term::Map(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {}", TermText(key), TermText(value))?;
                }
                f.write_str("}")
            }
            Term::Udt(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in in_hash_order(fields).into_iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {}", name.as_str(), TermText(value))?;
                }
                f.write_str("}")
            }
            Term::Tuple(elements) => write!(f, "({})", Terms(elements)),
            Term::Function { name, arguments, .. } => write!(f, "{}({})", qualified(name), Terms(arguments)),
            Term::TypeHint { target, term } => write!(f, "({}){}", type_text(target), TermText(term)),
            Term::Arithmetic {
                operator, left, right, ..
            } => {
                write!(f, "{} {} {}", TermText(left), operator_sign(*operator), TermText(right))
            }
            Term::Negate { of: term, .. } => write!(f, "-{}", TermText(term)),
            Term::Cast { term, target, .. } => write!(f, "cast({} as {})", TermText(term), type_text(target)),
        }
    }
}

/// Puts the fields of the user-typed literals in a term into the order of [`in_hash_order`].
pub(crate) fn order_fields(term: &mut Term) {
    match term {
        Term::Literal(_) | Term::BindMarker { .. } => {}
        Term::List(terms) | Term::Set(terms) | Term::Tuple(terms) => terms.iter_mut().for_each(order_fields),
        Term::Function { arguments, .. } => arguments.iter_mut().for_each(order_fields),
        Term::Map(entries) => entries.iter_mut().for_each(|(key, value)| {
            order_fields(key);
            order_fields(value);
        }),
        Term::Udt(fields) => {
            fields.iter_mut().for_each(|(_, value)| order_fields(value));
            *fields = in_hash_order(fields).into_iter().cloned().collect();
        }
        Term::TypeHint { term: of, .. } | Term::Cast { term: of, .. } | Term::Negate { of, .. } => order_fields(of),
        Term::Arithmetic { left, right, .. } => {
            order_fields(left);
            order_fields(right);
        }
    }
}

/// The fields of a user-typed literal in the order of Cassandra's messages: that of a Java `HashMap` by the hash of the
/// name's bytes. Fields in the same bucket stay in order of insertion; a duplicate field has its last value.
fn in_hash_order(fields: &[(Name, Term)]) -> Vec<&(Name, Term)> {
    // As java.util.HashMap: 16 buckets, doubled whenever three quarters of them are exceeded.
    let mut kept: Vec<&(Name, Term)> = Vec::with_capacity(fields.len());
    for field in fields {
        match kept.iter_mut().find(|known| known.0 == field.0) {
            Some(known) => *known = field,
            None => kept.push(field),
        }
    }
    let mut buckets: u32 = 16;
    while usize::try_from(buckets / 4 * 3).is_ok_and(|most| kept.len() > most) {
        buckets *= 2;
    }
    let bucket = |name: &Name| {
        // As java.nio.ByteBuffer.hashCode, from the last byte to the first.
        let bytes = name.as_str().bytes().rev();
        let hash = bytes.fold(1_u32, |hash, byte| {
            let signed = i32::from(byte.cast_signed()).cast_unsigned();
            hash.wrapping_mul(31).wrapping_add(signed)
        });
        (hash ^ (hash >> 16)) & (buckets - 1)
    };
    kept.sort_by_key(|(name, _)| bucket(name));
    kept
}

/// A type as it was written.
pub(crate) fn type_text(ty: &grammar::ast::Type) -> String {
    type_text_in(ty, None)
}

/// A type as a type hint in a SELECT clause prints it: user-defined types with their keyspace.
pub(crate) fn type_text_full(ty: &grammar::ast::Type, keyspace: &str) -> String {
    use grammar::ast::Type;
    match ty {
        Type::Frozen(of) if matches!(**of, Type::Tuple(_)) => type_text_in(of, Some(keyspace)),
        ty => type_text_in(ty, Some(keyspace)),
    }
}

/// A type's text; user-defined types without a keyspace get this one.
fn type_text_in(ty: &grammar::ast::Type, keyspace: Option<&str>) -> String {
    use grammar::ast::Type;
    let text = |ty: &Type| type_text_in(ty, keyspace);
    match ty {
        Type::Named(name) => match keyspace {
            Some(keyspace)
                if name.keyspace.is_none() && helenus_types::types::Native::named(name.name.as_str()).is_none() =>
            {
                format!("{keyspace}.{}", name.name.as_str())
            }
            _ => qualified(name),
        },
        Type::Custom(class) => format!("'{class}'"),
        Type::List(of) => format!("list<{}>", text(of)),
        Type::Set(of) => format!("set<{}>", text(of)),
        Type::Map(key, value) => format!("map<{}, {}>", text(key), text(value)),
        Type::Tuple(of) => {
            let texts: Vec<String> = of.iter().map(text).collect();
            format!("tuple<{}>", Joined(&texts, ", "))
        }
        Type::Vector(of, dimension) => format!("vector<{}, {dimension}>", text(of)),
        Type::Frozen(of) => format!("frozen<{}>", text(of)),
    }
}

/// The symbol of the operator of a relation or condition.
pub(crate) const fn relation_sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Eq => "=",
        Operator::Lt => "<",
        Operator::Lte => "<=",
        Operator::Gt => ">",
        Operator::Gte => ">=",
        Operator::Neq => "!=",
        Operator::In => "IN",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
        Operator::Like => "LIKE",
        Operator::IsNotNull => "IS NOT",
    }
}

/// A relation in Cassandra's format.
pub(crate) struct RelationText<'a>(pub(crate) &'a Relation);

impl Display for RelationText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = |names: &[grammar::ast::Name]| {
            let texts: Vec<&str> = names.iter().map(grammar::ast::Name::as_str).collect();
            format!("({})", Joined(&texts, ", "))
        };
        match &self.0.target {
            RelationTarget::Column(name) => f.write_str(&quoted(name.as_str()))?,
            RelationTarget::Element(name, key) => write!(f, "{}[{}]", quoted(name.as_str()), TermText(key))?,
            RelationTarget::Tuple(columns) => f.write_str(&names(columns))?,
            RelationTarget::Index(name) => write!(f, "expr({})", quoted(name.as_str()))?,
            RelationTarget::Token(columns) => write!(f, "token{}", names(columns))?,
            RelationTarget::Feed(function) => write!(f, "{}()", function.name())?,
        }
        write!(f, " {} ", relation_sign(self.0.operator))?;
        match &self.0.value {
            RelationValue::Term(term) => TermText(term).fmt(f),
            RelationValue::Terms(terms) => write!(f, "({})", Terms(terms)),
            RelationValue::None => f.write_str("NULL"),
        }
    }
}
