//! CQL types read back from their text ([`CqlType::cql_name`]), written in the ways that only some messages need, and rewritten
//! when a user-defined type in them changes.

use std::sync::Arc;

use helenus_types::types::{CqlType, Native, UserType};

/// As [`CqlType::cql_name`], a user-defined type with its keyspace: how some messages write a type.
#[must_use]
pub fn with_keyspace(ty: &CqlType) -> String {
    match ty {
        CqlType::User(user) => format!("{}.{}", user.keyspace, user.name),
        CqlType::Frozen(inner) if matches!(**inner, CqlType::User(_)) => format!("frozen<{}>", with_keyspace(inner)),
        _ => ty.cql_name(),
    }
}

/// As [`CqlType::cql_name`], without `frozen` around it: how functions write the types of their arguments.
#[must_use]
pub fn unfrozen_name(ty: &CqlType) -> String {
    let text = ty.cql_name();
    match ty {
        CqlType::Frozen(_) | CqlType::Tuple(_) => text
            .strip_prefix("frozen<")
            .and_then(|rest| rest.strip_suffix('>'))
            .unwrap_or(&text)
            .to_owned(),
        _ => text,
    }
}

/// The name of an argument's type in `system_schema` and in events: without `frozen` around it, except for a tuple.
#[must_use]
pub fn argument_name(ty: &CqlType) -> String {
    ty.unfrozen().cql_name()
}

/// The name of an argument's type in the answer to CREATE: as it was written, a user-defined type with its keyspace.
#[must_use]
pub fn written_name(ty: &CqlType) -> String {
    let written = |ty: &CqlType| match ty {
        CqlType::Frozen(inner) if !matches!(**inner, CqlType::Tuple(_) | CqlType::Vector(..)) => {
            format!("frozen<{}>", written_name(inner))
        }
        _ => written_name(ty),
    };
    match ty.unfrozen() {
        CqlType::List(of) => format!("list<{}>", written(of)),
        CqlType::Set(of) => format!("set<{}>", written(of)),
        CqlType::Map(key, value) => format!("map<{}, {}>", written(key), written(value)),
        CqlType::Vector(of, dimension) => format!("vector<{}, {dimension}>", written(of)),
        CqlType::Tuple(of) => {
            let of: Vec<String> = of.iter().map(written).collect();
            format!("tuple<{}>", of.join(", "))
        }
        ty => with_keyspace(ty),
    }
}

/// A list, set or map, frozen or not.
#[must_use]
pub fn is_collection(ty: &CqlType) -> bool {
    matches!(ty.unfrozen(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}

/// Whether its values are counters.
#[must_use]
pub fn is_counter(ty: &CqlType) -> bool {
    *ty == CqlType::Native(Native::Counter)
}

/// The type with every user-defined type in it replaced by the type that `of` returns.
#[must_use]
pub fn with_users(ty: &CqlType, of: &dyn Fn(&UserType) -> Arc<UserType>) -> CqlType {
    replaced(ty, &|ty| match ty {
        CqlType::User(user) => Some(CqlType::User(of(user))),
        _ => None,
    })
}

/// The type with each part in it for which `of` returns a type replaced by that type.
fn replaced(ty: &CqlType, of: &dyn Fn(&CqlType) -> Option<CqlType>) -> CqlType {
    let arc = |inner: &CqlType| Arc::new(replaced(inner, of));
    if let Some(other) = of(ty) {
        return other;
    }
    match ty {
        CqlType::Native(_) | CqlType::Custom(_) | CqlType::User(_) => ty.clone(),
        CqlType::Frozen(inner) => CqlType::Frozen(arc(inner)),
        CqlType::List(inner) => CqlType::List(arc(inner)),
        CqlType::Set(inner) => CqlType::Set(arc(inner)),
        CqlType::Vector(inner, dimension) => CqlType::Vector(arc(inner), *dimension),
        CqlType::Map(key, value) => CqlType::Map(arc(key), arc(value)),
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(|element| replaced(element, of)).collect()),
    }
}

/// The text from which [`parse`] reads the type back: as [`CqlType::cql_name`], but `empty`, which may be the name of a user-defined
/// type, is written as its class.
#[must_use]
pub fn recorded_name(ty: &CqlType) -> String {
    let with_class = replaced(ty, &|ty| {
        (*ty == CqlType::Native(Native::Empty)).then(|| CqlType::Custom(ty.marshal_name().into()))
    });
    with_class.cql_name()
}

/// The type with user-defined types replaced by tuples of their fields. A dropped column is recorded with such a type,
/// because the user-defined type may be dropped later.
#[must_use]
pub fn without_users(ty: &CqlType) -> CqlType {
    let arc = |inner: &CqlType| Arc::new(without_users(inner));
    match ty {
        CqlType::Native(_) | CqlType::Custom(_) => ty.clone(),
        CqlType::Frozen(inner) => match without_users(inner) {
            tuple @ CqlType::Tuple(_) => tuple,
            other => CqlType::Frozen(Arc::new(other)),
        },
        CqlType::List(inner) => CqlType::List(arc(inner)),
        CqlType::Set(inner) => CqlType::Set(arc(inner)),
        CqlType::Vector(inner, dimension) => CqlType::Vector(arc(inner), *dimension),
        CqlType::Map(key, value) => CqlType::Map(arc(key), arc(value)),
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(without_users).collect()),
        CqlType::User(user) => CqlType::Tuple(
            user.fields
                .iter()
                .map(|(_, field)| without_users(field).freeze())
                .collect(),
        ),
    }
}

/// Parses the text that [`recorded_name`] writes. `user` resolves the user-defined types of the keyspace. `None`
/// means that the text is no type.
pub fn parse(text: &str, user: &mut dyn FnMut(&str) -> Option<Arc<UserType>>) -> Option<CqlType> {
    let mut parser = Parser { rest: text, user };
    let ty = parser.ty()?;
    parser.rest.trim().is_empty().then_some(ty)
}

struct Parser<'a, 'u> {
    rest: &'a str,
    user: &'u mut dyn FnMut(&str) -> Option<Arc<UserType>>,
}

impl<'a> Parser<'a, '_> {
    fn eat(&mut self, token: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: char) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// Text up to the closing quote; a doubled quote stands for one.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            if c != quote {
                text.push(c);
            } else if characters.next_if(|&(_, next)| next == quote).is_some() {
                text.push(quote);
            } else {
                self.rest = self.rest.get(at + c.len_utf8()..)?;
                return Some(text);
            }
        }
        None
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        word
    }

    fn ty(&mut self) -> Option<CqlType> {
        if self.eat('\'') {
            let class = self.quoted('\'')?;
            let empty = CqlType::Native(Native::Empty);
            let is_empty = class == empty.marshal_name();
            return Some(if is_empty { empty } else { CqlType::Custom(class.into()) });
        }
        if self.eat('"') {
            let name = self.quoted('"')?;
            return (self.user)(&name).map(CqlType::User);
        }
        let word = self.word();
        if !self.eat('<') {
            let named = Native::named(word).map(CqlType::Native);
            // Versions before wrote `empty` so.
            let empty = (word == "empty").then_some(CqlType::Native(Native::Empty));
            return named.or_else(|| (self.user)(word).map(CqlType::User)).or(empty);
        }
        let ty = match word {
            // Each nesting level has its own `frozen`.
            "frozen" => match self.ty()? {
                one_cell @ (CqlType::Tuple(_) | CqlType::Vector(..)) => one_cell,
                inner => CqlType::Frozen(Arc::new(inner)),
            },
            "list" => CqlType::List(Arc::new(self.ty()?)),
            "set" => CqlType::Set(Arc::new(self.ty()?)),
            "map" => {
                let key = self.ty()?;
                self.expect(',')?;
                CqlType::Map(Arc::new(key), Arc::new(self.ty()?))
            }
            "tuple" => {
                let mut elements = vec![self.ty()?];
                while self.eat(',') {
                    elements.push(self.ty()?);
                }
                CqlType::Tuple(elements.into())
            }
            "vector" => {
                let element = self.ty()?;
                self.expect(',')?;
                CqlType::Vector(Arc::new(element), self.word().parse().ok()?)
            }
            _ => return None,
        };
        self.expect('>')?;
        Some(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CqlType {
        let user = Arc::new(UserType {
            keyspace: "k".to_owned(),
            name: "A b".to_owned(),
            fields: Vec::new(),
        });
        parse(text, &mut |name| (name == "A b").then(|| Arc::clone(&user))).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn texts_are_read_back() {
        for text in [
            "int",
            "list<int>",
            "frozen<list<frozen<list<int>>>>",
            "map<text, frozen<map<text, text>>>",
            "frozen<tuple<blob, timeuuid>>",
            "vector<float, 3>",
            "frozen<tuple<vector<list<int>, 2>, int>>",
            "frozen<\"A b\">",
            "\"A b\"",
            "list<frozen<tuple<frozen<\"A b\">, vector<int, 2>>>>",
            "'org.apache.cassandra.db.marshal.CompositeType(org.apache.cassandra.db.marshal.Int32Type)'",
        ] {
            assert_eq!(recorded_name(&read(text)), text);
        }
    }

    #[test]
    fn the_type_of_no_value_is_read_back_whatever_types_are_named() {
        let class = "'org.apache.cassandra.db.marshal.EmptyType'";
        let texts = [
            class.to_owned(),
            format!("frozen<map<{class}, frozen<tuple<{class}, int>>>>"),
        ];
        for text in texts {
            let ty = read(&text);
            assert_eq!(ty.cql_name(), text.replace(class, "empty"));
            assert_eq!(recorded_name(&ty), text);
        }
        assert_eq!(
            read("list<empty>"),
            CqlType::List(Arc::new(CqlType::Native(Native::Empty)))
        );
        let user = Arc::new(UserType {
            keyspace: "k".to_owned(),
            name: "empty".to_owned(),
            fields: Vec::new(),
        });
        let named = parse("frozen<empty>", &mut |_| Some(Arc::clone(&user)));
        assert_eq!(named, Some(CqlType::Frozen(Arc::new(CqlType::User(user)))));
    }
}
