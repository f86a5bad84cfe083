//! Names of MBeans, which GRANT … ON MBEAN checks as it parses: `domain:key=value,key=value`.
//!
//! Source: javax.management.ObjectName.

use std::collections::HashSet;

use crate::input::{Input, Parsed};

/// A string that must be an MBean's name; in the plural, a pattern. Errors in it are reported.
pub(super) fn mbean(input: Input<'_>, plural: bool) -> Parsed<'_, String> {
    let (rest, name) = super::string(input)?;
    match name.as_str() {
        "" => rest.report(|| "Empty JMX object name supplied".to_owned()),
        "*:*" => rest.report(|| "Please use ALL MBEANS instead of wildcard pattern".to_owned()),
        _ => match is_pattern(&name) {
            None => rest.report(|| format!("{name} is not a valid JMX object name")),
            Some(false) if plural => {
                rest.report(|| format!("Plural form used, but non-pattern JMX object name specified ({name})"));
            }
            Some(_) => {}
        },
    }
    Ok((rest, name))
}

/// Whether a name is a pattern; `None` if it is no name.
fn is_pattern(name: &str) -> Option<bool> {
    let (domain, properties) = name.split_once(':')?;
    if name.contains('\n') || properties.is_empty() {
        return None;
    }
    let mut pattern = has_wildcard(domain);
    let mut keys = HashSet::new();
    let mut any_property = false;
    let mut rest = Some(properties);
    while let Some(list) = rest {
        if list == "*" || list.starts_with("*,") {
            // At most once, at any position.
            if any_property {
                return None;
            }
            any_property = true;
            rest = list.strip_prefix("*,");
            continue;
        }
        let (key, list) = list.split_once('=')?;
        if key.is_empty() || key.contains([',', ':', '*', '?']) || !keys.insert(key) {
            return None;
        }
        let length = value_length(list)?;
        let (value, behind) = list.split_at_checked(length)?;
        pattern |= has_wildcard(value);
        rest = if behind.is_empty() {
            None
        } else {
            Some(behind.strip_prefix(',')?)
        };
    }
    Some(pattern || any_property)
}

/// The length of the first value in a list of properties.
fn value_length(list: &str) -> Option<usize> {
    if !list.starts_with('"') {
        let length = list.find(',').unwrap_or(list.len());
        return list
            .get(..length)
            .filter(|value| !value.contains(['=', ':', '"']))
            .map(str::len);
    }
    let mut escaped = false;
    for (index, character) in list.char_indices().skip(1) {
        match character {
            _ if escaped && !matches!(character, '\\' | '"' | '*' | '?' | 'n') => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}
