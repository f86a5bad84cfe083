//! Lists, sets, iterators, `Arrays`, `Collections`.

use super::{Arguments, Method, collection, constructor, count, fixed, instance};
use crate::class::Class;
use crate::class::Class::{
    ArrayList, Arrays, Collection, Collections, HashSet, Iterable, Iterator as Iter, LinkedHashSet, LinkedList, List,
    TreeSet,
};
use crate::limits::VALUE_BYTES;
use crate::machine::{Machine, Run};
use crate::value::{Handle, Object, Table, Value};

pub(super) const METHODS: &[Method] = &[
    constructor(ArrayList, "", |m, _| list(m, ArrayList, Vec::new())),
    constructor(ArrayList, "int", |m, a| match a.int(0)? {
        size if size < 0 => m.throw(Class::IllegalArgument, format!("Illegal Capacity: {size}")),
        _ => list(m, ArrayList, Vec::new()),
    }),
    constructor(ArrayList, "Collection<E>", |m, a| copied(m, a, ArrayList)),
    constructor(LinkedList, "", |m, _| list(m, LinkedList, Vec::new())),
    constructor(LinkedList, "Collection<E>", |m, a| copied(m, a, LinkedList)),
    constructor(HashSet, "", |m, _| m.make(Object::Table(Table::new(HashSet)))),
    constructor(HashSet, "int", |m, a| sized(m, a, HashSet)),
    constructor(HashSet, "Collection<E>", |m, a| set_of(m, a, HashSet)),
    constructor(LinkedHashSet, "", |m, _| {
        m.make(Object::Table(Table::new(LinkedHashSet)))
    }),
    constructor(LinkedHashSet, "int", |m, a| sized(m, a, LinkedHashSet)),
    constructor(LinkedHashSet, "Collection<E>", |m, a| set_of(m, a, LinkedHashSet)),
    constructor(TreeSet, "", |m, _| m.make(Object::Table(Table::new(TreeSet)))),
    constructor(TreeSet, "Collection<E>", |m, a| set_of(m, a, TreeSet)),
    instance(Iterable, "iterator", "", "Iterator<E>", |m, a| {
        let of = a.handle(0)?;
        let (items, changes) = (m.elements(of)?, m.changes(of)?);
        m.make(Object::Iterator {
            of,
            items,
            at: 0,
            changes,
        })
    }),
    instance(Iter, "hasNext", "", "boolean", |m, a| match m.object(a.handle(0)?)? {
        Object::Iterator { of, at, .. } => Ok(Value::boolean(*at != m.size(*of)?)),
        _ => Machine::fault("an iterator was expected"),
    }),
    instance(Iter, "next", "", "E", next),
    instance(Collection, "size", "", "int", |m, a| Ok(count(m.size(a.handle(0)?)?))),
    instance(Collection, "isEmpty", "", "boolean", |m, a| {
        Ok(Value::boolean(m.size(a.handle(0)?)? == 0))
    }),
    instance(Collection, "contains", "Object", "boolean", |m, a| {
        Ok(Value::boolean(m.contains(a.handle(0)?, &a.value(1))?))
    }),
    instance(Collection, "containsAll", "Collection", "boolean", |m, a| {
        let (of, others) = (a.handle(0)?, collection(m, a, 1)?);
        for other in m.elements(others)? {
            if !m.contains(of, &other)? {
                return Ok(Value::boolean(false));
            }
        }
        Ok(Value::boolean(true))
    }),
    instance(Collection, "add", "E", "boolean", |m, a| {
        Ok(Value::boolean(add(m, a.handle(0)?, a.value(1))?))
    }),
    instance(Collection, "addAll", "Collection<E>", "boolean", |m, a| {
        let (to, from) = (a.handle(0)?, collection(m, a, 1)?);
        let mut changed = false;
        for item in m.elements(from)? {
            changed |= add(m, to, item)?;
        }
        Ok(Value::boolean(changed))
    }),
    instance(Collection, "remove", "Object", "boolean", |m, a| {
        Ok(Value::boolean(remove(m, a.handle(0)?, &a.value(1))?))
    }),
    instance(Collection, "removeAll", "Collection", "boolean", |m, a| {
        filtered(m, a, false)
    }),
    instance(Collection, "retainAll", "Collection", "boolean", |m, a| {
        filtered(m, a, true)
    }),
    instance(Collection, "clear", "", "void", |m, a| {
        let of = a.handle(0)?;
        if matches!(m.object(of)?, Object::Table(_)) {
            m.clear_table(of)?;
        } else {
            items(m, of, true)?.clear();
        }
        Ok(Value::Null)
    }),
    instance(Collection, "toArray", "", "Object[]", |m, a| {
        let items = m.elements(a.handle(0)?)?;
        m.make(Object::Array { items })
    }),
    instance(List, "get", "int", "E", |m, a| {
        let at = place(m, a, 1, 0)?;
        Ok(items_of(m, a.handle(0)?)?.get(at).cloned().unwrap_or(Value::Null))
    }),
    instance(List, "set", "int,E", "E", |m, a| {
        let at = place(m, a, 1, 0)?;
        let old = items(m, a.handle(0)?, false)?
            .get_mut(at)
            .map(|place| std::mem::replace(place, a.value(2)));
        Ok(old.unwrap_or(Value::Null))
    }),
    instance(List, "add", "int,E", "void", |m, a| {
        let of = a.handle(0)?;
        let size = m.size(of)?;
        let Some(at) = usize::try_from(a.int(1)?).ok().filter(|at| *at <= size) else {
            return m.throw(Class::IndexOutOfBounds, format!("Index: {}, Size: {size}", a.int(1)?));
        };
        m.allocate(VALUE_BYTES)?;
        m.step(size / 16)?;
        items(m, of, true)?.insert(at, a.value(2));
        Ok(Value::Null)
    }),
    instance(List, "remove", "int", "E", |m, a| {
        let at = place(m, a, 1, 0)?;
        let size = m.size(a.handle(0)?)?;
        m.step(size / 16)?;
        Ok(items(m, a.handle(0)?, true)?.remove(at))
    }),
    instance(List, "indexOf", "Object", "int", |m, a| {
        for (at, item) in m.elements(a.handle(0)?)?.iter().enumerate() {
            if m.equal(&a.value(1), item)? {
                return Ok(count(at));
            }
        }
        Ok(Value::int(-1))
    }),
    instance(List, "lastIndexOf", "Object", "int", |m, a| {
        for (at, item) in m.elements(a.handle(0)?)?.iter().enumerate().rev() {
            if m.equal(&a.value(1), item)? {
                return Ok(count(at));
            }
        }
        Ok(Value::int(-1))
    }),
    fixed(List, "of", "T...", "List<T>", |m, a| {
        let given = collection(m, a, 0)?;
        let items = m.elements(given)?;
        if items.iter().any(|item| matches!(item, Value::Null)) {
            return m.throw_with(Class::NullPointer, None);
        }
        m.make(Object::List {
            class: List,
            items,
            changes: 0,
            fixed: true,
            frozen: true,
        })
    }),
    fixed(Arrays, "asList", "T...", "List<T>", |m, a| {
        let given = collection(m, a, 0)?;
        let items = m.elements(given)?;
        m.make(Object::List {
            class: List,
            items,
            changes: 0,
            fixed: true,
            frozen: false,
        })
    }),
    instance(TreeSet, "first", "", "E", |m, a| end(m, a, true)),
    instance(TreeSet, "last", "", "E", |m, a| end(m, a, false)),
    fixed(Collections, "emptyList", "", "List", |m, _| frozen(m, Vec::new())),
    fixed(Collections, "emptySet", "", "Set", |m, _| {
        m.make(Object::Table(Table::new(LinkedHashSet)))
    }),
    fixed(Collections, "singletonList", "T", "List<T>", |m, a| {
        frozen(m, vec![a.value(0)])
    }),
    fixed(Collections, "sort", "List<T>", "void", |m, a| {
        let of = collection(m, a, 0)?;
        let sorted = m.elements(of)?;
        let sorted = m.sorted(sorted, false)?;
        *items(m, of, false)? = sorted;
        if let Object::List { changes, .. } = m.object_mut(of)? {
            *changes = changes.wrapping_add(1);
        }
        Ok(Value::Null)
    }),
    fixed(Collections, "reverse", "List", "void", |m, a| {
        let of = collection(m, a, 0)?;
        let size = m.size(of)?;
        m.step(size)?;
        items(m, of, false)?.reverse();
        Ok(Value::Null)
    }),
    fixed(Collections, "max", "Collection<T>", "T", |m, a| extreme(m, a, true)),
    fixed(Collections, "min", "Collection<T>", "T", |m, a| extreme(m, a, false)),
    fixed(Collections, "frequency", "Collection,Object", "int", |m, a| {
        let of = collection(m, a, 0)?;
        let mut found = 0;
        for item in m.elements(of)? {
            found += usize::from(m.equal(&a.value(1), &item)?);
        }
        Ok(count(found))
    }),
    fixed(Arrays, "sort", "int[]", "void", sort_array),
    fixed(Arrays, "sort", "long[]", "void", sort_array),
    fixed(Arrays, "sort", "char[]", "void", sort_array),
    fixed(Arrays, "sort", "double[]", "void", sort_array),
    fixed(Arrays, "sort", "Object[]", "void", sort_array),
    fixed(Arrays, "toString", "int[]", "String", array_text),
    fixed(Arrays, "toString", "long[]", "String", array_text),
    fixed(Arrays, "toString", "char[]", "String", array_text),
    fixed(Arrays, "toString", "double[]", "String", array_text),
    fixed(Arrays, "toString", "Object[]", "String", array_text),
];

pub(super) fn list(m: &mut Machine<'_>, class: Class, items: Vec<Value>) -> Run<Value> {
    m.make(Object::List {
        class,
        items,
        changes: 0,
        fixed: false,
        frozen: false,
    })
}

fn frozen(m: &mut Machine<'_>, items: Vec<Value>) -> Run<Value> {
    m.make(Object::List {
        class: List,
        items,
        changes: 0,
        fixed: true,
        frozen: true,
    })
}

fn copied(m: &mut Machine<'_>, a: &[Value], class: Class) -> Run<Value> {
    let from = collection(m, a, 0)?;
    let items = m.elements(from)?;
    list(m, class, items)
}

fn sized(m: &mut Machine<'_>, a: &[Value], class: Class) -> Run<Value> {
    match u32::try_from(a.int(0)?) {
        Ok(size) => m.make(Object::Table(Table::sized(class, size))),
        Err(_) => m.throw(
            Class::IllegalArgument,
            format!("Illegal initial capacity: {}", a.int(0)?),
        ),
    }
}

fn set_of(m: &mut Machine<'_>, a: &[Value], class: Class) -> Run<Value> {
    let from = collection(m, a, 0)?;
    let items = m.elements(from)?;
    // Java allocates room for all of them at once, and for at least twelve.
    let room = u32::try_from(items.len()).unwrap_or(u32::MAX) / 3 * 4
        + u32::try_from(items.len() % 3 * 4 / 3).unwrap_or(0)
        + 1;
    let made = m.make(Object::Table(Table::sized(class, room.max(16))))?;
    if let Value::Ref(handle) = &made {
        for item in items {
            m.put(*handle, item, Value::Null)?;
        }
    }
    Ok(made)
}

/// Adds to a list or set; returns whether it changed.
pub(super) fn add(m: &mut Machine<'_>, to: Handle, item: Value) -> Run<bool> {
    if matches!(m.object(to)?, Object::Table(_)) {
        return Ok(m.put(to, item, Value::Null)?.is_none());
    }
    m.allocate(VALUE_BYTES)?;
    items(m, to, true)?.push(item);
    Ok(true)
}

fn remove(m: &mut Machine<'_>, from: Handle, item: &Value) -> Run<bool> {
    if matches!(m.object(from)?, Object::Table(_)) {
        return Ok(m.take(from, item)?.is_some());
    }
    for (at, other) in m.elements(from)?.iter().enumerate() {
        if m.equal(item, other)? {
            items(m, from, true)?.remove(at);
            return Ok(true);
        }
    }
    Ok(false)
}

fn filtered(m: &mut Machine<'_>, a: &[Value], keeps: bool) -> Run<Value> {
    let (of, others) = (a.handle(0)?, collection(m, a, 1)?);
    let mut kept = Vec::new();
    let mut gone = Vec::new();
    for item in m.elements(of)? {
        if m.contains(others, &item)? == keeps {
            kept.push(item)
        } else {
            gone.push(item)
        }
    }
    let changed = !gone.is_empty();
    if matches!(m.object(of)?, Object::Table(_)) {
        for item in gone {
            m.take(of, &item)?;
        }
    } else if changed {
        *items(m, of, true)? = kept;
    }
    Ok(Value::boolean(changed))
}

/// The items of a list, for a change; `resizes` counts as a change that iterators detect.
fn items<'m>(m: &'m mut Machine<'_>, of: Handle, resizes: bool) -> Run<&'m mut Vec<Value>> {
    let may = matches!(m.object(of)?, Object::List { fixed, frozen, .. } if !(*frozen || resizes && *fixed));
    if !may {
        return m.throw_with(Class::Unsupported, None);
    }
    match m.object_mut(of)? {
        Object::List { items, changes, .. } => {
            if resizes {
                *changes = changes.wrapping_add(1);
            }
            Ok(items)
        }
        _ => Machine::fault("a list was expected"),
    }
}

fn items_of<'m>(m: &'m Machine<'_>, of: Handle) -> Run<&'m Vec<Value>> {
    match m.object(of)? {
        Object::List { items, .. } => Ok(items),
        _ => Machine::fault("a list was expected"),
    }
}

/// A position in a list, which must exist.
fn place(m: &mut Machine<'_>, a: &[Value], at: usize, list: usize) -> Run<usize> {
    let (size, wanted) = (m.size(a.handle(list)?)?, a.int(at)?);
    let is_linked = matches!(m.object(a.handle(list)?)?, Object::List { class: LinkedList, .. });
    let is_array = matches!(m.object(a.handle(list)?)?, Object::List { class: List, .. });
    match usize::try_from(wanted).ok().filter(|at| *at < size) {
        Some(place) => Ok(place),
        None if is_linked => m.throw(Class::IndexOutOfBounds, format!("Index: {wanted}, Size: {size}")),
        None if is_array => m.throw(
            Class::ArrayIndex,
            format!("Index {wanted} out of bounds for length {size}"),
        ),
        None => m.throw(
            Class::IndexOutOfBounds,
            format!("Index {wanted} out of bounds for length {size}"),
        ),
    }
}

fn next(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let handle = a.handle(0)?;
    let Object::Iterator { of, items, at, changes } = m.object(handle)? else {
        return Machine::fault("an iterator was expected");
    };
    let (item, was, of) = (items.get(*at).cloned(), *changes, *of);
    if m.changes(of)? != was {
        return m.throw_with(Class::ConcurrentModification, None);
    }
    let Some(item) = item else {
        return m.throw_with(Class::NoSuchElement, None);
    };
    if let Object::Iterator { at, .. } = m.object_mut(handle)? {
        *at += 1;
    }
    Ok(item)
}

fn end(m: &mut Machine<'_>, a: &[Value], first: bool) -> Run<Value> {
    let items = m.elements(a.handle(0)?)?;
    let end = if first { items.first() } else { items.last() };
    match end {
        Some(item) => Ok(item.clone()),
        None => m.throw_with(Class::NoSuchElement, None),
    }
}

fn extreme(m: &mut Machine<'_>, a: &[Value], max: bool) -> Run<Value> {
    let of = collection(m, a, 0)?;
    let mut items = m.elements(of)?.into_iter();
    let Some(mut best) = items.next() else {
        return m.throw_with(Class::NoSuchElement, None);
    };
    for item in items {
        let order = m.compare(&item, &best)?;
        if if max { order.is_gt() } else { order.is_lt() } {
            best = item;
        }
    }
    Ok(best)
}

pub(super) fn sort_array(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let of = collection(m, a, 0)?;
    let sorted = m.elements(of)?;
    let sorted = m.sorted(sorted, false)?;
    if let Object::Array { items, .. } = m.object_mut(of)? {
        *items = sorted;
    }
    Ok(Value::Null)
}

pub(super) fn array_text(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    if matches!(a.value(0), Value::Null) {
        return m.string("null");
    }
    let mut units: Vec<u16> = "[".encode_utf16().collect();
    for (at, item) in m.elements(a.handle(0)?)?.iter().enumerate() {
        if at > 0 {
            units.extend(", ".encode_utf16());
        }
        m.append(item, &mut units)?;
    }
    units.extend("]".encode_utf16());
    m.text(&units)
}
