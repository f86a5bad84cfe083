//! What a secondary index keeps: of which column, which part of its values, in which bytes.
//!
//! ```text
//! cell's value ─ part (value, keys, values, entries, full) ─ analysis ─ encode_key ─► the encoded values of its entries
//! ```
//! The storage side derives entries with [`IndexTarget::encode_value`] and [`IndexTarget::encode_entry`]. The planner
//! makes ranges of the same bytes ([`IndexTarget::encode_probe`]). An entry means that a row may be there, never that
//! it is there: the filters of the SELECT check every row that an index finds. So an entry may cover more rows than
//! match, never fewer.
//!
//! Deliberately absent: which restrictions an index serves (the planner), where entries lie (storage).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::analysis::{Analysis, LetterCase, Tokens};
use super::words::Language;
use super::{StorageId, Table};
use helenus_types::types::{Corrupt, CqlType, Native};

/// The class of SASI's indexes.
pub const SASI_CLASS: &str = "org.apache.cassandra.index.sasi.SASIIndex";

/// The class of storage-attached indexes (SAI).
const SAI_CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";

/// Short names of that class, case-insensitive.
const SAI_NAMES: [&str; 2] = ["sai", "StorageAttachedIndex"];

/// Maximum bytes of a term in entries of an index with mode CONTAINS, which stores an entry for each suffix of the
/// term.
const SUFFIX_BYTES_MAX: usize = 64;

/// The custom index classes of Cosmos; Helenus treats each as an equality index.
pub const COSMOS_CLASSES: [&str; 3] = ["CosmosDefaultIndex", "AzureSearchIndex", "CosmosClusteringIndex"];

/// Whether a class is one of Cosmos's.
#[must_use]
pub fn is_cosmos_class(class: &str) -> bool {
    COSMOS_CLASSES.contains(&class)
}

/// Whether a class is that of storage-attached indexes.
#[must_use]
pub fn is_sai_class(class: &str) -> bool {
    class == SAI_CLASS || SAI_NAMES.iter().any(|name| class.eq_ignore_ascii_case(name))
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Its name, unique in the keyspace.
    pub name: String,
    /// `CUSTOM`, `COMPOSITES` or `KEYS`.
    pub kind: String,
    /// `target`, `class_name` and the options given.
    pub options: BTreeMap<String, String>,
    /// Its number in the store, of the same kind as a table's; 0 means that nothing is stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub storage_id: StorageId,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(id: &StorageId) -> bool {
    *id == 0
}

/// The index families of CQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexFamily {
    /// The default without a class: equality.
    Legacy,
    /// Storage-attached: equality and ranges.
    Sai,
    /// SASI: equality, ranges, LIKE.
    Sasi,
}

/// Which part of a column's value an index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// A value that is no collection.
    Value,
    /// A map's keys.
    Keys,
    /// The elements of a list or set, the values of a map.
    Values,
    /// A map's keys with their values.
    Entries,
    /// A frozen collection as a whole.
    Full,
}

impl IndexPart {
    /// The type that the index stores for a column of this type, and the type of map values for `Entries`. `None` means
    /// that the column has no such part.
    #[must_use]
    pub fn kept(self, column: &CqlType) -> Option<(&CqlType, Option<&CqlType>)> {
        Some(match (self, column.unfrozen()) {
            (Self::Value | Self::Full, _) => (column, None),
            (Self::Keys, CqlType::Map(key, _)) => (key, None),
            (Self::Values, CqlType::Map(_, of) | CqlType::List(of) | CqlType::Set(of)) => (of, None),
            (Self::Entries, CqlType::Map(key, value)) => (key, Some(value)),
            _ => return None,
        })
    }
}

/// Which column an index covers, and what it stores of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    /// The column's position in `table.columns`.
    pub column: usize,
    /// Which part of its value.
    pub part: IndexPart,
    /// Which kind of index.
    pub family: IndexFamily,
    /// How texts are analysed.
    pub analysis: Analysis,
    /// SASI's mode CONTAINS: LIKE also finds text inside a value.
    pub contains: bool,
    /// The index's number in the store.
    pub storage_id: StorageId,
    /// The indexed type; the keys' type for `Entries`.
    ty: CqlType,
    /// The values' type for `Entries`.
    entry_ty: Option<CqlType>,
}

impl Index {
    /// The index family; `None` for a class that Cassandra does not have.
    #[must_use]
    pub fn family(&self) -> Option<IndexFamily> {
        match self.options.get("class_name") {
            None => Some(IndexFamily::Legacy),
            Some(class) if is_sai_class(class) => Some(IndexFamily::Sai),
            Some(class) if class == SASI_CLASS => Some(IndexFamily::Sasi),
            Some(class) if is_cosmos_class(class) => Some(IndexFamily::Legacy),
            Some(_) => None,
        }
    }

    /// The text analysis that its options select, for a text column.
    #[must_use]
    pub fn analysis(&self) -> Analysis {
        self.family()
            .map_or_else(Analysis::default, |family| analysis(family, &self.options))
    }

    /// Whether its option `mode` equals this value.
    #[must_use]
    pub fn is_mode(&self, mode: &str) -> bool {
        self.options
            .get("mode")
            .is_some_and(|given| given.eq_ignore_ascii_case(mode))
    }

    /// The name of its column and the indexed part, from its `target`: `c`, `values(c)`, `"C"`.
    #[must_use]
    pub fn target_column(&self) -> Option<(IndexPart, String)> {
        let target = self.options.get("target")?;
        let (part, inside) = match target.split_once('(') {
            Some((kind, rest)) if !target.starts_with('"') => {
                let part = match kind {
                    "keys" => IndexPart::Keys,
                    "values" => IndexPart::Values,
                    "entries" => IndexPart::Entries,
                    "full" => IndexPart::Full,
                    _ => return None,
                };
                (part, rest.strip_suffix(')')?)
            }
            _ => (IndexPart::Value, target.as_str()),
        };
        let name = match inside.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(name) => name.replace("\"\"", "\""),
            None => inside.to_owned(),
        };
        Some((part, name))
    }

    /// Whether this is a storage-attached index of vectors: of a vector column, or of a collection of vectors.
    #[must_use]
    pub fn is_of_vectors(&self, table: &Table) -> bool {
        let is_vectors = |(part, name): (IndexPart, String)| {
            let (_, column) = table.column(&name)?;
            let (ty, entries) = part.kept(&column.ty)?;
            Some(matches!(ty, CqlType::Vector(..)) && entries.is_none())
        };
        self.family() == Some(IndexFamily::Sai) && self.target_column().and_then(is_vectors) == Some(true)
    }

    /// What the index stores for a table's rows. `None` means nothing (the index of a vector, of a whole partition key,
    /// of a system table), so it is never used.
    #[must_use]
    pub fn target(&self, table: &Table) -> Option<IndexTarget> {
        if self.storage_id == 0 || table.is_virtual {
            return None;
        }
        let family = self.family()?;
        let (part, name) = self.target_column()?;
        let (column, found) = table.column(&name)?;
        // A lookup by the whole partition key needs no index.
        if column == 0 && table.partition_key_count == 1 {
            return None;
        }
        if family == IndexFamily::Sai && matches!(found.ty.unfrozen(), CqlType::Vector(..)) {
            return None;
        }
        let (ty, entry_ty) = part.kept(&found.ty)?;
        let (ty, entry_ty) = (ty.clone(), entry_ty.cloned());
        let is_text = |ty: &CqlType| matches!(ty, CqlType::Native(Native::Text | Native::Ascii));
        let analysis = if is_text(&ty) {
            analysis(family, &self.options)
        } else {
            Analysis::default()
        };
        let contains = family == IndexFamily::Sasi && is_text(&ty) && self.is_mode("contains");
        Some(IndexTarget {
            column,
            part,
            family,
            analysis,
            contains,
            storage_id: self.storage_id,
            ty,
            entry_ty,
        })
    }
}

/// The text analysis that an index's options select.
fn analysis(family: IndexFamily, options: &BTreeMap<String, String>) -> Analysis {
    let is = |option: &str, default: bool| {
        options
            .get(option)
            .map_or(default, |value| value.eq_ignore_ascii_case("true"))
    };
    match family {
        IndexFamily::Legacy => Analysis::default(),
        IndexFamily::Sai => Analysis {
            tokens: Tokens::Whole,
            case: if is("case_sensitive", true) {
                LetterCase::Kept
            } else {
                LetterCase::Lower
            },
            normalize: is("normalize", false),
            ascii: is("ascii", false),
            ..Analysis::default()
        },
        IndexFamily::Sasi => {
            let case = |lower: bool, upper: bool| match (lower, upper) {
                (_, true) => LetterCase::Upper,
                (true, false) => LetterCase::Lower,
                (false, false) => LetterCase::Kept,
            };
            let class = options.get("analyzer_class").map(String::as_str).unwrap_or_default();
            match class.rsplit('.').next().unwrap_or_default() {
                "StandardAnalyzer" => {
                    // Without a locale there is no stemming and no stop words.
                    let language = options
                        .get("tokenization_locale")
                        .and_then(|locale| Language::of_locale(locale));
                    Analysis {
                        tokens: Tokens::Words,
                        case: case(
                            is("tokenization_normalize_lowercase", false),
                            is("tokenization_normalize_uppercase", false),
                        ),
                        skips: language.filter(|_| is("tokenization_skip_stop_words", false)),
                        stems: language.filter(|_| is("tokenization_enable_stemming", false)),
                        ..Analysis::default()
                    }
                }
                "DelimiterAnalyzer" => Analysis {
                    tokens: Tokens::Delimited(
                        options
                            .get("delimiter")
                            .and_then(|text| text.chars().next())
                            .unwrap_or(','),
                    ),
                    ..Analysis::default()
                },
                "NonTokenizingAnalyzer" => Analysis {
                    case: case(
                        is("normalize_lowercase", false) || !is("case_sensitive", true),
                        is("normalize_uppercase", false),
                    ),
                    ..Analysis::default()
                },
                _ => Analysis::default(),
            }
        }
    }
}

impl IndexTarget {
    /// The indexed type; the keys' type for `Entries`.
    #[must_use]
    pub fn ty(&self) -> &CqlType {
        &self.ty
    }

    /// The values' type for `Entries`.
    #[must_use]
    pub fn entry_ty(&self) -> Option<&CqlType> {
        self.entry_ty.as_ref()
    }

    /// Passes `entry` the encoded value of each index entry for one value (`Value`, `Keys`, `Values`, `Full`), given as
    /// its wire bytes. Usually that is one entry. A text with several terms or suffixes gives several, a text without
    /// terms none. The same value may come twice.
    pub fn encode_value(&self, value: &[u8], entry: &mut dyn FnMut(Vec<u8>)) {
        for term in self.analysis.terms(value) {
            if self.contains {
                let text = String::from_utf8_lossy(&term);
                for (start, _) in text.char_indices() {
                    let suffix = text.as_bytes().get(start..).unwrap_or_default();
                    entry(self.encode(suffix.get(..SUFFIX_BYTES_MAX).unwrap_or(suffix)));
                }
            } else {
                entry(self.encode(&term));
            }
        }
    }

    /// The encoded value of a map entry (`Entries`), from the wire bytes of its key and value; `None` for other parts.
    #[must_use]
    pub fn encode_entry(&self, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let entry_ty = self.entry_ty.as_ref()?;
        let mut out = self.encode(&self.analysed(key));
        entry_ty.encode_key(value, false, &mut out);
        Some(out)
    }

    /// The common prefix of all encoded values that equal this one, including equal values of other bytes (decimal 1.5
    /// and 1.50). Other values may start with it too. For a tokenizing index the value is one of its terms.
    #[must_use]
    pub fn encode_probe(&self, value: &[u8]) -> Vec<u8> {
        let kept = if self.contains {
            value.get(..SUFFIX_BYTES_MAX).unwrap_or(value)
        } else {
            value
        };
        let mut out = Vec::with_capacity(kept.len() + 4);
        self.ty.encode_key_order(kept, false, &mut out);
        out
    }

    /// The common prefix of the encoded values of all texts that start with `prefix`.
    #[must_use]
    pub fn encode_prefix(&self, prefix: &[u8]) -> Vec<u8> {
        let mut out = self.encode_probe(prefix);
        // An encoded text ends with two zero bytes; a prefix must not match them.
        out.truncate(out.len().saturating_sub(2));
        out
    }

    /// Like [`Self::encode_probe`] for a map entry, with its value; `None` for other parts.
    #[must_use]
    pub fn encode_entry_probe(&self, key: &[u8], value: Option<&[u8]>) -> Option<Vec<u8>> {
        let entry_ty = self.entry_ty.as_ref()?;
        let key = self.analysed(key);
        // A key with several encodings only allows a range over the key; the filter checks the value.
        let Some(value) = value.filter(|_| !self.ty.has_equal_forms()) else {
            let mut out = Vec::with_capacity(key.len() + 4);
            self.ty.encode_key_order(&key, false, &mut out);
            return Some(out);
        };
        let mut out = self.encode(&key);
        entry_ty.encode_key_order(value, false, &mut out);
        Some(out)
    }

    /// Advances `input` past the encoded value that it starts with.
    ///
    /// # Errors
    /// When it does not start with an encoded value.
    pub fn skip(&self, input: &mut &[u8]) -> Result<(), Corrupt> {
        self.ty.decode_key(input, false)?;
        if let Some(entry_ty) = &self.entry_ty {
            entry_ty.decode_key(input, false)?;
        }
        Ok(())
    }

    fn encode(&self, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(value.len() + 4);
        self.ty.encode_key(value, false, &mut out);
        out
    }

    fn analysed<'b>(&self, value: &'b [u8]) -> Cow<'b, [u8]> {
        self.analysis
            .terms(value)
            .into_iter()
            .next()
            .unwrap_or(Cow::Borrowed(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::system;

    fn index(table: &mut Table, target: &str, options: &[(&str, &str)]) -> IndexTarget {
        let mut all: BTreeMap<String, String> = options
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        all.insert("target".to_owned(), target.to_owned());
        let index = Index {
            name: "i".to_owned(),
            kind: "COMPOSITES".to_owned(),
            options: all,
            storage_id: 2000,
        };
        index.target(table).unwrap()
    }

    fn encoded(target: &IndexTarget, value: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        target.encode_value(value, &mut |entry| all.push(entry));
        all
    }

    #[test]
    fn probes_are_prefixes_of_entries() {
        let mut table = Table::clone(system::base().table("system_schema", "tables").unwrap());
        let whole = index(&mut table, "comment", &[]);
        assert_eq!(whole.part, IndexPart::Value);
        assert!(encoded(&whole, b"abc")[0].starts_with(&whole.encode_probe(b"abc")));
        assert!(encoded(&whole, b"abc")[0].starts_with(&whole.encode_prefix(b"ab")));
        let entries = index(&mut table, "entries(caching)", &[]);
        let entry = entries.encode_entry(b"k", b"v").unwrap();
        assert!(entry.starts_with(&entries.encode_entry_probe(b"k", Some(b"v")).unwrap()));
        assert!(entry.starts_with(&entries.encode_entry_probe(b"k", None).unwrap()));
        let mut rest = entry.as_slice();
        entries.skip(&mut rest).unwrap();
        assert!(rest.is_empty());
        assert_eq!(index(&mut table, "keys(caching)", &[]).part, IndexPart::Keys);
        let sasi = index(
            &mut table,
            "comment",
            &[("class_name", SASI_CLASS), ("mode", "CONTAINS")],
        );
        assert_eq!(encoded(&sasi, "añb".as_bytes()).len(), 3);
        assert!(encoded(&sasi, b"abc")[1].starts_with(&sasi.encode_prefix(b"b")));
    }
}
