//! Maps.

use super::{Arguments, Method, collection, constructor, count, instance};
use crate::class::Class;
use crate::class::Class::{Entry, HashMap, LinkedHashMap, Map, TreeMap};
use crate::machine::{Machine, Run};
use crate::value::{Object, Shown, Table, Value};

pub(super) const METHODS: &[Method] = &[
    constructor(HashMap, "", |m, _| m.make(Object::Table(Table::new(HashMap)))),
    constructor(HashMap, "int", |m, a| sized(m, a, HashMap)),
    constructor(HashMap, "Map<K,V>", |m, a| copied(m, a, HashMap)),
    constructor(LinkedHashMap, "", |m, _| {
        m.make(Object::Table(Table::new(LinkedHashMap)))
    }),
    constructor(LinkedHashMap, "int", |m, a| sized(m, a, LinkedHashMap)),
    constructor(LinkedHashMap, "Map<K,V>", |m, a| copied(m, a, LinkedHashMap)),
    constructor(TreeMap, "", |m, _| m.make(Object::Table(Table::new(TreeMap)))),
    constructor(TreeMap, "Map<K,V>", |m, a| copied(m, a, TreeMap)),
    instance(Map, "get", "Object", "V", |m, a| {
        Ok(m.get(a.handle(0)?, &a.value(1))?.unwrap_or(Value::Null))
    }),
    instance(Map, "getOrDefault", "Object,V", "V", |m, a| {
        Ok(m.get(a.handle(0)?, &a.value(1))?.unwrap_or_else(|| a.value(2)))
    }),
    instance(Map, "put", "K,V", "V", |m, a| {
        Ok(m.put(a.handle(0)?, a.value(1), a.value(2))?.unwrap_or(Value::Null))
    }),
    instance(Map, "putIfAbsent", "K,V", "V", |m, a| {
        match m.get(a.handle(0)?, &a.value(1))? {
            None | Some(Value::Null) => {
                m.put(a.handle(0)?, a.value(1), a.value(2))?;
                Ok(Value::Null)
            }
            Some(there) => Ok(there),
        }
    }),
    instance(Map, "putAll", "Map<K,V>", "void", |m, a| {
        let (to, from) = (a.handle(0)?, collection(m, a, 1)?);
        let entries = m.table(from)?.entries();
        for (key, value) in entries {
            m.put(to, key, value)?;
        }
        Ok(Value::Null)
    }),
    instance(Map, "remove", "Object", "V", |m, a| {
        Ok(m.take(a.handle(0)?, &a.value(1))?.unwrap_or(Value::Null))
    }),
    instance(Map, "containsKey", "Object", "boolean", |m, a| {
        Ok(Value::boolean(m.get(a.handle(0)?, &a.value(1))?.is_some()))
    }),
    instance(Map, "containsValue", "Object", "boolean", |m, a| {
        for (_, value) in m.table(a.handle(0)?)?.entries() {
            if m.equal(&a.value(1), &value)? {
                return Ok(Value::boolean(true));
            }
        }
        Ok(Value::boolean(false))
    }),
    instance(Map, "size", "", "int", |m, a| Ok(count(m.size(a.handle(0)?)?))),
    instance(Map, "isEmpty", "", "boolean", |m, a| {
        Ok(Value::boolean(m.size(a.handle(0)?)? == 0))
    }),
    instance(Map, "clear", "", "void", |m, a| {
        m.clear_table(a.handle(0)?)?;
        Ok(Value::Null)
    }),
    instance(Map, "keySet", "", "Set<K>", |m, a| {
        m.make(Object::View {
            of: a.handle(0)?,
            shown: Shown::Keys,
        })
    }),
    instance(Map, "values", "", "Collection<V>", |m, a| {
        m.make(Object::View {
            of: a.handle(0)?,
            shown: Shown::Values,
        })
    }),
    instance(Map, "entrySet", "", "Set<Map.Entry<K,V>>", |m, a| {
        m.make(Object::View {
            of: a.handle(0)?,
            shown: Shown::Entries,
        })
    }),
    instance(Entry, "getKey", "", "K", |m, a| match m.object(a.handle(0)?)? {
        Object::Entry(key, _) => Ok(key.clone()),
        _ => Machine::fault("an entry was expected"),
    }),
    instance(Entry, "getValue", "", "V", |m, a| match m.object(a.handle(0)?)? {
        Object::Entry(_, value) => Ok(value.clone()),
        _ => Machine::fault("an entry was expected"),
    }),
    instance(TreeMap, "firstKey", "", "K", |m, a| end(m, a, true)),
    instance(TreeMap, "lastKey", "", "K", |m, a| end(m, a, false)),
];

fn sized(m: &mut Machine<'_>, a: &[Value], class: Class) -> Run<Value> {
    match u32::try_from(a.int(0)?) {
        Ok(size) => m.make(Object::Table(Table::sized(class, size))),
        Err(_) => m.throw(
            Class::IllegalArgument,
            format!("Illegal initial capacity: {}", a.int(0)?),
        ),
    }
}

fn copied(m: &mut Machine<'_>, a: &[Value], class: Class) -> Run<Value> {
    let from = collection(m, a, 0)?;
    let size = m.size(from)?;
    let entries = m.table(from)?.entries();
    // Java allocates room for all of them at once.
    let room = u32::try_from(size * 4 / 3 + 1).unwrap_or(u32::MAX);
    let made = m.make(Object::Table(Table::sized(class, room)))?;
    if let Value::Ref(handle) = &made {
        for (key, value) in entries {
            m.put(*handle, key, value)?;
        }
    }
    Ok(made)
}

fn end(m: &mut Machine<'_>, a: &[Value], first: bool) -> Run<Value> {
    let keys = m.elements(a.handle(0)?)?;
    let end = if first { keys.first() } else { keys.last() };
    match end {
        Some(key) => Ok(key.clone()),
        None => m.throw_with(Class::NoSuchElement, None),
    }
}
