//! The side of CQL: rows of a text in a table of the keyspace `stress`.

use super::load::{Client, Kind, Operation, Server};
use super::tally::Outcome;
use crate::cli::Failure;
use crate::cli::cqlsh::{ClientError, PlainConnection};
use crate::cli::record::ServerRecord;

/// Codes of errors (native_protocol_v4.spec §9): overloaded, write and read timeout.
const OVERLOADED: i32 = 0x1001;
const WRITE_TIMEOUT: i32 = 0x1100;
const READ_TIMEOUT: i32 = 0x1200;

/// A server, and the table of the load.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) record: ServerRecord,
    pub(super) table: String,
    /// The text of each row.
    pub(super) value: String,
    /// The table is made in the order of its keys, not of their hashes.
    pub(super) is_ordered: bool,
}

impl Node {
    /// Makes the keyspace and the table, if they are not there.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) fn make_table(&self) -> Result<(), Failure> {
        let mut connection = PlainConnection::open(&self.record)?;
        let placement = if self.is_ordered {
            " WITH placement = 'ordered'"
        } else {
            ""
        };
        for statement in [
            "CREATE KEYSPACE IF NOT EXISTS stress WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
            format!(
                "CREATE TABLE IF NOT EXISTS stress.{} (pk text, ck text, v text, PRIMARY KEY (pk, ck)){placement}",
                self.table
            ),
        ] {
            connection.run(&statement)?;
        }
        Ok(())
    }

    fn statement(&self, operation: &Operation) -> String {
        let table = &self.table;
        let write = |key: &super::keys::Key| {
            let condition = if operation.kind == Kind::Insert {
                " IF NOT EXISTS"
            } else {
                ""
            };
            format!(
                "INSERT INTO stress.{table} (pk, ck, v) VALUES ('{}', '{}', '{}'){condition}",
                key.partition, key.row, self.value
            )
        };
        match (operation.kind, operation.keys.as_slice()) {
            (Kind::Read, [key, ..]) => {
                format!(
                    "SELECT * FROM stress.{table} WHERE pk = '{}' AND ck = '{}'",
                    key.partition, key.row
                )
            }
            (Kind::Query, [key, ..]) => format!("SELECT * FROM stress.{table} WHERE pk = '{}'", key.partition),
            (_, [key]) => write(key),
            (_, keys) => {
                let writes: Vec<String> = keys.iter().map(write).collect();
                format!("BEGIN UNLOGGED BATCH {}; APPLY BATCH", writes.join("; "))
            }
        }
    }
}

impl Server for Node {
    fn open(&self) -> Result<Box<dyn Client>, Failure> {
        Ok(Box::new(CqlClient {
            statements: Self {
                record: self.record.clone(),
                table: self.table.clone(),
                value: self.value.clone(),
                is_ordered: self.is_ordered,
            },
            connection: PlainConnection::open(&self.record)?,
        }))
    }
}

struct CqlClient {
    statements: Node,
    connection: PlainConnection,
}

impl Client for CqlClient {
    fn perform(&mut self, operation: &Operation) -> Result<Outcome, Failure> {
        let done = match self.connection.run(&self.statements.statement(operation)) {
            Ok(rows) if matches!(operation.kind, Kind::Query | Kind::Read) => Outcome::Done(u64::try_from(rows)?),
            Ok(_) => Outcome::Done(u64::try_from(operation.keys.len())?),
            Err(ClientError::Refused { code: OVERLOADED, .. }) => Outcome::Busy,
            Err(ClientError::Refused {
                code: WRITE_TIMEOUT | READ_TIMEOUT,
                ..
            }) => Outcome::TimedOut,
            Err(error @ ClientError::Refused { .. }) => Outcome::Failed(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Key;
    use super::*;

    #[test]
    fn statements_write_and_read_by_key() {
        let node = Node {
            record: serde_json::from_str(
                r#"{"api":1,"cql":null,"tls":null,"admin":null,"token":null,"account":null,"key":null,"certificate_pem":null,"pid":1}"#,
            )
            .unwrap(),
            table: "t".to_owned(),
            value: "x".to_owned(),
            is_ordered: false,
        };
        let statement = |kind, count: usize| {
            let key = Key {
                partition: "p".to_owned(),
                row: "r".to_owned(),
            };
            let keys = vec![key; count];
            node.statement(&Operation { kind, keys })
        };
        let insert = "INSERT INTO stress.t (pk, ck, v) VALUES ('p', 'r', 'x')";
        assert_eq!(statement(Kind::Upsert, 1), insert);
        assert_eq!(statement(Kind::Insert, 1), format!("{insert} IF NOT EXISTS"));
        assert_eq!(
            statement(Kind::Upsert, 2),
            format!("BEGIN UNLOGGED BATCH {insert}; {insert}; APPLY BATCH")
        );
        assert_eq!(
            statement(Kind::Read, 1),
            "SELECT * FROM stress.t WHERE pk = 'p' AND ck = 'r'"
        );
    }
}
