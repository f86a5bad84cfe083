//! Server-side DESCRIBE: the rows and the errors of every form of it, byte for byte as Cassandra 5.0's.
//!
//! Deliberately absent: paging. The result is one page, whatever page size the request has.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use grammar::ast::{Describe, DescribeTarget, QualifiedName};

use super::node::NodeInfo;
use super::{Keyspace, Schema, Table, View, create, encode, system};
use helenus_types::types::{CqlType, Native, quoted};

/// The keyspace and table that the columns of a DESCRIBE are said to be of.
pub const RESULT_TABLE: (&str, &str) = ("system", "describe");

/// What a DESCRIBE may not find. All are `Invalid` in the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant says its sentence; the fields are the names in it"
)]
pub enum DescribeError {
    #[error("No keyspace specified and no current keyspace")]
    NoKeyspace,
    #[error("'{0}' not found in keyspaces")]
    Keyspace(String),
    #[error("Table '{name}' not found in keyspace '{keyspace}'")]
    Table { keyspace: String, name: String },
    #[error("Table for existing index '{name}' not found in '{keyspace}'")]
    Index { keyspace: String, name: String },
    #[error("Materialized view '{name}' not found in '{keyspace}'")]
    View { keyspace: String, name: String },
    #[error("User defined type '{name}' not found in '{keyspace}'")]
    Type { keyspace: String, name: String },
    #[error("User defined function '{name}' not found in '{keyspace}'")]
    Function { keyspace: String, name: String },
    #[error("User defined aggregate '{name}' not found in '{keyspace}'")]
    Aggregate { keyspace: String, name: String },
    #[error("'{name}' not found in keyspace '{keyspace}'")]
    Name { keyspace: String, name: String },
}

/// The answer to a DESCRIBE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Names and types of the columns, of the table [`RESULT_TABLE`].
    pub columns: Vec<(&'static str, CqlType)>,
    /// Values on the wire; rows × columns.
    pub rows: Vec<Vec<Option<Bytes>>>,
}

/// One line of a description.
struct Element {
    keyspace: String,
    kind: &'static str,
    name: String,
    create: Option<String>,
}

/// Answers a DESCRIBE.
///
/// # Errors
/// Something named does not exist, or a name has no keyspace.
pub fn describe(
    statement: &Describe,
    session_keyspace: Option<&str>,
    schema: &Schema,
    node: &NodeInfo,
) -> Result<Description, DescribeError> {
    let describer = Describer {
        schema,
        session_keyspace,
        internals: statement.with_internals,
    };
    let elements = match &statement.target {
        DescribeTarget::Cluster => return Ok(cluster(session_keyspace, schema, node)),
        DescribeTarget::Keyspaces => schema
            .keyspaces
            .values()
            .filter(|keyspace| is_listed(keyspace))
            .map(|keyspace| keyspace_element(keyspace, false))
            .collect(),
        DescribeTarget::Schema { full } => schema
            .keyspaces
            .values()
            .filter(|keyspace| (*full && is_listed(keyspace)) || !system::is_name(&keyspace.name))
            .flat_map(|keyspace| describer.whole(keyspace))
            .collect(),
        DescribeTarget::Tables => describer.listed(|keyspace| {
            let mut tables: Vec<Element> = keyspace
                .tables
                .values()
                .map(|table| table_element(table, None))
                .collect();
            sort_by_name(&mut tables);
            tables
        })?,
        DescribeTarget::Types => describer.listed(|keyspace| {
            let mut types: Vec<Element> = keyspace
                .types
                .values()
                .map(|ty| element(&keyspace.name, "type", quoted(&ty.name), None))
                .collect();
            sort_by_name(&mut types);
            types
        })?,
        DescribeTarget::Functions => describer.listed(|keyspace| functions(keyspace, false))?,
        DescribeTarget::Aggregates => describer.listed(|keyspace| aggregates(keyspace, false))?,
        DescribeTarget::Keyspace { name, only } => {
            let name = name.as_ref().map(|name| name.as_str()).or(session_keyspace);
            let keyspace = describer.keyspace(name)?;
            if *only {
                vec![keyspace_element(keyspace, true)]
            } else {
                describer.whole(keyspace)
            }
        }
        target => describer.named(target)?,
    };
    let names_only = matches!(
        statement.target,
        DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates
    );
    Ok(description(elements, !names_only))
}

/// Differs: objects that Cassandra has no tables for are described by name, but left out of full listings, so that
/// listings equal Cassandra's.
fn is_listed(keyspace: &Keyspace) -> bool {
    keyspace.name != system::COSMOS
}

fn description(elements: Vec<Element>, with_statements: bool) -> Description {
    let text = || CqlType::Native(Native::Text);
    let mut columns = vec![("keyspace_name", text()), ("type", text()), ("name", text())];
    if with_statements {
        columns.push(("create_statement", text()));
    }
    let rows = elements
        .into_iter()
        .map(|element| {
            let mut row = vec![
                Some(encode::text(&element.keyspace)),
                Some(encode::text(element.kind)),
                Some(encode::text(&element.name)),
            ];
            row.extend(element.create.map(|create| Some(encode::text(&create))));
            row
        })
        .collect();
    Description { columns, rows }
}

fn element(keyspace: &str, kind: &'static str, name: String, create: Option<String>) -> Element {
    Element {
        keyspace: quoted(keyspace),
        kind,
        name,
        create,
    }
}

fn keyspace_element(keyspace: &Keyspace, with_statement: bool) -> Element {
    let create = with_statement.then(|| create::keyspace(keyspace));
    element(&keyspace.name, "keyspace", quoted(&keyspace.name), create)
}

fn table_element(table: &Table, create: Option<String>) -> Element {
    element(&table.keyspace, "table", quoted(&table.name), create)
}

/// Cassandra sorts names case-insensitively, without their quotes. A function's name ends with the types of its arguments.
fn sort_by_name(elements: &mut [Element]) {
    elements.sort_by_cached_key(|element| element.name.replace('"', "").to_lowercase());
}

fn functions(keyspace: &Keyspace, with_statements: bool) -> Vec<Element> {
    let mut elements: Vec<Element> = keyspace
        .functions
        .iter()
        .map(|function| {
            let name = create::signature(&function.name, function.arguments.iter().map(|(_, ty)| ty));
            let create = with_statements.then(|| create::function(&keyspace.name, function));
            element(&keyspace.name, "function", name, create)
        })
        .collect();
    sort_by_name(&mut elements);
    elements
}

fn aggregates(keyspace: &Keyspace, with_statements: bool) -> Vec<Element> {
    let mut elements: Vec<Element> = keyspace
        .aggregates
        .iter()
        .map(|aggregate| {
            let name = create::signature(&aggregate.name, &aggregate.arguments);
            let create = with_statements.then(|| create::aggregate(&keyspace.name, aggregate));
            element(&keyspace.name, "aggregate", name, create)
        })
        .collect();
    sort_by_name(&mut elements);
    elements
}

struct Describer<'a> {
    schema: &'a Schema,
    session_keyspace: Option<&'a str>,
    internals: bool,
}

impl<'a> Describer<'a> {
    fn keyspace(&self, name: Option<&str>) -> Result<&'a Arc<Keyspace>, DescribeError> {
        let name = name.ok_or(DescribeError::NoKeyspace)?;
        self.schema
            .keyspace(name)
            .ok_or_else(|| DescribeError::Keyspace(name.to_owned()))
    }

    fn keyspace_of(&self, name: &'a QualifiedName) -> Result<&'a Arc<Keyspace>, DescribeError> {
        self.keyspace(
            name.keyspace
                .as_ref()
                .map(|keyspace| keyspace.as_str())
                .or(self.session_keyspace),
        )
    }

    /// The objects of the session's keyspace, or of all keyspaces.
    fn listed(&self, of: impl Fn(&Keyspace) -> Vec<Element>) -> Result<Vec<Element>, DescribeError> {
        match self.session_keyspace {
            Some(name) => Ok(of(self.keyspace(Some(name))?)),
            None => Ok(self
                .schema
                .keyspaces
                .values()
                .filter(|keyspace| is_listed(keyspace))
                .flat_map(|keyspace| of(keyspace))
                .collect()),
        }
    }

    /// A keyspace with all its objects: types in order of dependency, functions, aggregates, then each table with its
    /// indexes and views.
    fn whole(&self, keyspace: &Keyspace) -> Vec<Element> {
        let mut elements = vec![keyspace_element(keyspace, true)];
        elements.extend(
            create::in_dependency_order(&keyspace.types)
                .into_iter()
                .map(|ty| element(&keyspace.name, "type", quoted(&ty.name), Some(create::user_type(ty)))),
        );
        elements.extend(functions(keyspace, true));
        elements.extend(aggregates(keyspace, true));
        let mut tables: Vec<&Arc<Table>> = keyspace.tables.values().collect();
        tables.sort_by_cached_key(|table| table.name.to_lowercase());
        for table in tables {
            elements.extend(self.table_and_all(keyspace, table));
        }
        elements
    }

    /// A table, then its indexes, then its views.
    fn table_and_all(&self, keyspace: &Keyspace, table: &Table) -> Vec<Element> {
        let mut elements = vec![table_element(table, Some(create::table(table, self.internals)))];
        let mut indexes: Vec<Element> = table
            .indexes
            .values()
            .map(|index| {
                element(
                    &table.keyspace,
                    "index",
                    quoted(&index.name),
                    Some(create::index(table, index)),
                )
            })
            .collect();
        sort_by_name(&mut indexes);
        elements.extend(indexes);
        let mut views: Vec<Element> = keyspace
            .views_of(&table.name)
            .map(|view| self.view_element(view))
            .collect();
        sort_by_name(&mut views);
        elements.extend(views);
        elements
    }

    fn view_element(&self, view: &View) -> Element {
        let table = &view.table;
        let create = create::view(view, self.internals);
        element(&table.keyspace, "materialized_view", quoted(&table.name), Some(create))
    }

    fn index(keyspace: &Keyspace, name: &str) -> Option<Element> {
        let table = keyspace.indexed_table(name)?;
        let index = table.indexes.get(name)?;
        Some(element(
            &table.keyspace,
            "index",
            quoted(name),
            Some(create::index(table, index)),
        ))
    }

    fn named(&self, target: &'a DescribeTarget) -> Result<Vec<Element>, DescribeError> {
        match target {
            DescribeTarget::Table(name) => {
                let keyspace = self.keyspace_of(name)?;
                let table = keyspace.tables.get(name.name.as_str());
                table
                    .map(|table| self.table_and_all(keyspace, table))
                    .ok_or_else(|| missing(keyspace, name, |keyspace, name| DescribeError::Table { keyspace, name }))
            }
            DescribeTarget::Index(name) => {
                let keyspace = self.keyspace_of(name)?;
                Self::index(keyspace, name.name.as_str())
                    .map(|element| vec![element])
                    .ok_or_else(|| missing(keyspace, name, |keyspace, name| DescribeError::Index { keyspace, name }))
            }
            DescribeTarget::View(name) => {
                let keyspace = self.keyspace_of(name)?;
                let view = keyspace.views.get(name.name.as_str());
                view.map(|view| vec![self.view_element(view)])
                    .ok_or_else(|| missing(keyspace, name, |keyspace, name| DescribeError::View { keyspace, name }))
            }
            DescribeTarget::Type(name) => {
                let keyspace = self.keyspace_of(name)?;
                let ty = keyspace.types.get(name.name.as_str());
                ty.map(|ty| {
                    vec![element(
                        &keyspace.name,
                        "type",
                        quoted(&ty.name),
                        Some(create::user_type(ty)),
                    )]
                })
                .ok_or_else(|| missing(keyspace, name, |keyspace, name| DescribeError::Type { keyspace, name }))
            }
            DescribeTarget::Function(name) => {
                let keyspace = self.keyspace_of(name)?;
                let found = self.overloads(functions(keyspace, true), name);
                found.ok_or_else(|| {
                    missing(keyspace, name, |keyspace, name| DescribeError::Function {
                        keyspace,
                        name,
                    })
                })
            }
            DescribeTarget::Aggregate(name) => {
                let keyspace = self.keyspace_of(name)?;
                let found = self.overloads(aggregates(keyspace, true), name);
                found.ok_or_else(|| {
                    missing(keyspace, name, |keyspace, name| DescribeError::Aggregate {
                        keyspace,
                        name,
                    })
                })
            }
            DescribeTarget::Generic(name) => self.generic(name),
            DescribeTarget::Cluster
            | DescribeTarget::Schema { .. }
            | DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates
            | DescribeTarget::Keyspace { .. } => Ok(Vec::new()),
        }
    }

    /// All functions or aggregates of a name, with any arguments.
    fn overloads(&self, all: Vec<Element>, name: &QualifiedName) -> Option<Vec<Element>> {
        let prefix = format!("{}(", quoted(name.name.as_str()));
        let found: Vec<Element> = all
            .into_iter()
            .filter(|element| element.name.starts_with(&prefix))
            .collect();
        (!found.is_empty()).then_some(found)
    }

    /// An unqualified name may be a keyspace; any name may be a table, an index or a view, in that order.
    fn generic(&self, name: &'a QualifiedName) -> Result<Vec<Element>, DescribeError> {
        let own = name.name.as_str();
        if name.keyspace.is_none() {
            if let Some(keyspace) = self.schema.keyspace(own) {
                return Ok(self.whole(keyspace));
            }
            if self.session_keyspace.is_none() {
                return Err(DescribeError::Keyspace(own.to_owned()));
            }
        }
        let keyspace = self.keyspace_of(name)?;
        if let Some(table) = keyspace.tables.get(own) {
            return Ok(self.table_and_all(keyspace, table));
        }
        if let Some(index) = Self::index(keyspace, own) {
            return Ok(vec![index]);
        }
        keyspace
            .views
            .get(own)
            .map(|view| vec![self.view_element(view)])
            .ok_or_else(|| missing(keyspace, name, |keyspace, name| DescribeError::Name { keyspace, name }))
    }
}

fn missing(
    keyspace: &Keyspace,
    name: &QualifiedName,
    error: impl Fn(String, String) -> DescribeError,
) -> DescribeError {
    error(keyspace.name.clone(), name.name.as_str().to_owned())
}

/// DESCRIBE CLUSTER; within a keyspace of the users with the owners of the ring's ranges, by the token at which each ends.
fn cluster(session_keyspace: Option<&str>, schema: &Schema, node: &NodeInfo) -> Description {
    let short = |class: &str| class.rsplit('.').next().unwrap_or(class).to_owned();
    let text = || CqlType::Native(Native::Text);
    let mut columns = vec![("cluster", text()), ("partitioner", text()), ("snitch", text())];
    let mut row = vec![
        Some(encode::text(&node.cluster_name)),
        Some(encode::text(&short(&node.partitioner))),
        Some(encode::text(&short(&node.snitch))),
    ];
    let keyspace = session_keyspace
        .filter(|name| !system::is_name(name))
        .and_then(|name| schema.keyspace(name));
    if let Some(keyspace) = keyspace {
        let list = CqlType::List(Arc::new(text()));
        columns.push(("range_ownership", CqlType::Map(Arc::new(text()), Arc::new(list))));
        row.push(Some(ownership(keyspace, node)));
    }
    Description {
        columns,
        rows: vec![row],
    }
}

/// `map<text, list<text>>`: the token at which a range ends → the addresses of its replicas, the owner first.
fn ownership(keyspace: &Keyspace, node: &NodeInfo) -> Bytes {
    let shown = |address: IpAddr, port: u16| format!("/{}", SocketAddr::new(address, port));
    let mut ring: BTreeMap<i64, (String, &str)> = BTreeMap::new();
    for token in &node.tokens {
        ring.insert(*token, (shown(node.address, node.port), &node.data_center));
    }
    for peer in &node.peers {
        for token in &peer.tokens {
            ring.insert(*token, (shown(peer.address, peer.port), &peer.data_center));
        }
    }
    let factor = |name: &str| {
        keyspace
            .replication
            .get(name)
            .and_then(|factor| factor.parse::<usize>().ok())
    };
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    for token in ring.keys() {
        let mut replicas: Vec<String> = Vec::new();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (address, data_center) in ring.range(token..).chain(ring.range(..token)).map(|(_, owner)| owner) {
            let wanted = factor("replication_factor")
                .or_else(|| factor(data_center))
                .unwrap_or_default();
            // A simple replication factor counts all nodes; a data centre's factor counts its own nodes.
            let key = if keyspace.replication.contains_key("replication_factor") {
                ""
            } else {
                data_center
            };
            let count = counts.entry(key).or_default();
            if *count < wanted && !replicas.contains(address) {
                *count += 1;
                replicas.push(address.clone());
            }
        }
        entries.push((token.to_string(), replicas));
    }
    entries.sort();
    let pairs: Vec<(Bytes, Bytes)> = entries
        .iter()
        .map(|(token, replicas)| {
            let replicas: Vec<Bytes> = replicas.iter().map(|replica| encode::text(replica)).collect();
            (encode::text(token), encode::list(&replicas))
        })
        .collect();
    encode::map(&pairs)
}
