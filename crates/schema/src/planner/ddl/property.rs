//! `name = value AND …` after WITH.

use std::collections::BTreeMap;

use grammar::ast::{Literal, Property, PropertyValue};

use super::refusal::PropertyRefusal;

/// The properties of a statement, each named once, all of known names.
pub(super) struct Properties<'a>(BTreeMap<&'a str, &'a PropertyValue>);

/// The text of a constant in a property; `None` means null.
fn literal_text(literal: &Literal) -> Option<String> {
    Some(match literal {
        Literal::Null => return None,
        Literal::String(text)
        | Literal::Integer(text)
        | Literal::Float(text)
        | Literal::Uuid(text)
        | Literal::Duration(text) => text.clone(),
        Literal::Boolean(value) => value.to_string(),
        Literal::Blob(digits) => format!("0x{digits}"),
    })
}

impl<'a> Properties<'a> {
    /// Runs the checks of Cassandra's parser: no duplicate property, no null in a map.
    pub(super) fn new(properties: &'a [Property]) -> Result<Self, PropertyRefusal> {
        let mut known = BTreeMap::new();
        for property in properties {
            let name = property.name.as_str();
            if known.insert(name, &property.value).is_some() {
                return Err(PropertyRefusal::Duplicate(name.to_owned()));
            }
            if let PropertyValue::Map(entries) = &property.value {
                for (key, value) in entries {
                    let key = literal_text(key).unwrap_or_default();
                    if literal_text(value).is_none() {
                        return Err(PropertyRefusal::Null(key));
                    }
                }
            }
        }
        Ok(Self(known))
    }

    /// Refuses names that are not among these.
    pub(super) fn only(&self, names: &[&str]) -> Result<(), PropertyRefusal> {
        match self.0.keys().find(|name| !names.contains(name)) {
            Some(name) => Err(PropertyRefusal::Unknown((*name).to_owned())),
            None => Ok(()),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A constant's text.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, PropertyRefusal> {
        match self.0.get(name) {
            None => Ok(None),
            Some(PropertyValue::Literal(literal)) => Ok(literal_text(literal)),
            Some(_) => Err(PropertyRefusal::NotText(name.to_owned())),
        }
    }

    /// A map's entries; a later key wins.
    pub(super) fn map(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, PropertyRefusal> {
        match self.0.get(name) {
            None => Ok(None),
            Some(PropertyValue::Map(entries)) => Ok(Some(
                entries
                    .iter()
                    .filter_map(|(key, value)| Some((literal_text(key)?, literal_text(value)?)))
                    .collect(),
            )),
            Some(_) => Err(PropertyRefusal::NotMap(name.to_owned())),
        }
    }

    /// A map's entries in the order of writing; empty where there is no map.
    pub(super) fn entries(&self, name: &str) -> Vec<(String, String)> {
        match self.0.get(name) {
            Some(PropertyValue::Map(entries)) => entries
                .iter()
                .filter_map(|(key, value)| Some((literal_text(key)?, literal_text(value)?)))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, PropertyRefusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.to_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(Some(true)),
            "0" | "false" | "no" => Ok(Some(false)),
            _ => Err(PropertyRefusal::Boolean {
                text,
                option: name.to_owned(),
            }),
        }
    }

    pub(super) fn int(&self, name: &str) -> Result<Option<i32>, PropertyRefusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(PropertyRefusal::Integer {
                text,
                option: name.to_owned(),
            }),
        }
    }

    pub(super) fn double(&self, name: &str) -> Result<Option<f64>, PropertyRefusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.trim().parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(PropertyRefusal::Double {
                text,
                option: name.to_owned(),
            }),
        }
    }
}
