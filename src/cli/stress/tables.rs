//! The side of table storage: entities of a text by the REST API, of any server that speaks it.

use std::fmt::Write as _;

use super::http::{Answer, Connection, Origin};
use super::keys::Key;
use super::load::{Client, Kind, Operation, Server};
use super::sign::Signer;
use super::tally::Outcome;
use crate::cli::Failure;
use helenus_base::clock::Clock;

/// The published account of emulators, and where they listen.
const DEVELOPMENT: &str = "AccountName=devstoreaccount1;\
     AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;\
     TableEndpoint=http://127.0.0.1:10002/devstoreaccount1";

/// Version of the protocol that requests name: that of most SDKs.
const VERSION: &str = "2019-02-02";

/// An account of table storage, and the table of the load.
#[derive(Clone)]
pub(super) struct Account {
    origin: Origin,
    /// What stands before a resource in a path: empty, or a slash and the account.
    prefix: String,
    name: String,
    signer: Signer,
    pub(super) table: String,
    /// The text of each entity.
    pub(super) value: String,
    clock: Clock,
}

impl Account {
    /// The account of a connection string.
    ///
    /// # Errors
    /// It has no account, no key, or no address that can be used.
    pub(super) fn new(connection: &str, trusted: Option<Vec<u8>>, clock: Clock) -> Result<Self, Failure> {
        let is_development = connection
            .split(';')
            .any(|part| part.trim().eq_ignore_ascii_case("UseDevelopmentStorage=true"));
        let text = if is_development { DEVELOPMENT } else { connection };
        let part = |name: &str| {
            text.split(';')
                .filter_map(|part| part.split_once('='))
                .find(|(known, _)| known.trim() == name)
                .map(|(_, value)| value.trim().to_owned())
        };
        let name = part("AccountName").ok_or("the connection string has no AccountName")?;
        let key = part("AccountKey").ok_or("the connection string has no AccountKey: a SAS cannot be used here")?;
        let endpoint = part("TableEndpoint").unwrap_or_else(|| {
            let scheme = part("DefaultEndpointsProtocol").unwrap_or_else(|| "https".to_owned());
            let suffix = part("EndpointSuffix").unwrap_or_else(|| "core.windows.net".to_owned());
            format!("{scheme}://{name}.table.{suffix}")
        });
        let (origin, prefix) = parsed(&endpoint, trusted).ok_or_else(|| format!("{endpoint} is no address"))?;
        Ok(Self {
            origin,
            prefix,
            signer: Signer::new(&key).ok_or("the account's key is no base64")?,
            name,
            table: String::new(),
            value: String::new(),
            clock,
        })
    }

    /// Makes the table, if it is not there.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) fn make_table(&self) -> Result<(), Failure> {
        let body = format!("{{\"TableName\":\"{}\"}}", self.table);
        let answer = Connection::open(&self.origin)?.ask(&self.request("POST", "/Tables", "", JSON, &body))?;
        match answer.status {
            201 | 204 | 409 => Ok(()),
            _ => Err(format!("the table cannot be made: {}", words(&answer)).into()),
        }
    }

    /// The bytes of a request. Only the path is signed, not its query.
    fn request(&self, verb: &str, resource: &str, query: &str, headers: &str, body: &str) -> Vec<u8> {
        let date = http_date(self.clock.wall_micros());
        let path = format!("{}{resource}", self.prefix);
        let signature = self.signer.sign(&format!("{date}\n/{}{path}", self.name));
        let mut request = format!(
            "{verb} {path}{query} HTTP/1.1\r\nHost: {}:{}\r\n",
            self.origin.host, self.origin.port
        );
        // Writing into a text never fails.
        let _ = write!(
            request,
            "x-ms-date: {date}\r\nx-ms-version: {VERSION}\r\nAuthorization: SharedKeyLite {}:{signature}\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            self.name,
            body.len()
        );
        request.into_bytes()
    }

    fn entity(&self, key: &Key) -> String {
        format!(
            "{{\"PartitionKey\":\"{}\",\"RowKey\":\"{}\",\"v\":\"{}\"}}",
            key.partition, key.row, self.value
        )
    }

    /// The path of an entity. Generated keys need no encoding.
    fn path(&self, key: &Key) -> String {
        format!("/{}(PartitionKey='{}',RowKey='{}')", self.table, key.partition, key.row)
    }

    fn bytes(&self, operation: &Operation) -> Vec<u8> {
        match (operation.kind, operation.keys.as_slice()) {
            (Kind::Insert, [key]) => self.request("POST", &format!("/{}", self.table), "", INSERT, &self.entity(key)),
            (Kind::Upsert, [key]) => self.request("PUT", &self.path(key), "", JSON, &self.entity(key)),
            (Kind::Read, [key, ..]) => self.request("GET", &self.path(key), "", READ, ""),
            (Kind::Query, [key, ..]) => {
                let query = format!("?$filter=PartitionKey%20eq%20'{}'", key.partition);
                self.request("GET", &format!("/{}()", self.table), &query, READ, "")
            }
            (_, keys) => self.request("POST", "/$batch", "", BATCH, &self.transaction(operation.kind, keys)),
        }
    }

    /// The body of an entity group transaction.
    fn transaction(&self, kind: Kind, keys: &[Key]) -> String {
        let scheme = if self.origin.is_tls { "https" } else { "http" };
        let base = format!("{scheme}://{}:{}{}", self.origin.host, self.origin.port, self.prefix);
        let mut body = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
        for key in keys {
            let (verb, path) = match kind {
                Kind::Insert => ("POST", format!("/{}", self.table)),
                _ => ("PUT", self.path(key)),
            };
            let entity = self.entity(key);
            // Writing into a text never fails.
            let _ = write!(
                body,
                "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 {verb} {base}{path} HTTP/1.1\r\n{INSERT}Content-Length: {}\r\n\r\n{entity}\r\n",
                entity.len()
            );
        }
        body.push_str("--changeset_1--\r\n--batch_1--\r\n");
        body
    }
}

const JSON: &str =
    "Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\nDataServiceVersion: 3.0\r\n";
const INSERT: &str = "Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\nDataServiceVersion: 3.0\r\n\
                      Prefer: return-no-content\r\n";
const READ: &str = "Accept: application/json;odata=nometadata\r\nDataServiceVersion: 3.0\r\n";
const BATCH: &str = "Content-Type: multipart/mixed; boundary=batch_1\r\nAccept: application/json;odata=nometadata\r\nDataServiceVersion: 3.0\r\n";

/// Origin and prefix of an address.
fn parsed(endpoint: &str, trusted: Option<Vec<u8>>) -> Option<(Origin, String)> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let is_tls = match scheme {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, if is_tls { 443 } else { 80 }),
    };
    let path = path.trim_end_matches('/');
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("/{path}")
    };
    let origin = Origin {
        is_tls,
        trusted,
        host: host.to_owned(),
        port,
    };
    (!host.is_empty()).then_some((origin, prefix))
}

/// A time as headers have it (RFC 9110 §5.6.7).
fn http_date(micros: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = micros.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The civil date of a day (Howard Hinnant, "chrono-compatible low-level date algorithms"), from March on.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let named = |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at).copied());
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        named(&DAYS, days.rem_euclid(7)).unwrap_or_default(),
        named(&MONTHS, month - 1).unwrap_or_default(),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// What a server says: its status, and the code of its error.
fn words(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let code = answer.header("x-ms-error-code").map(str::to_owned).or_else(|| {
        let (_, behind) = text.split_once("\"code\":\"")?;
        behind.split_once('"').map(|(code, _)| code.to_owned())
    });
    format!(
        "{} {}",
        answer.status,
        code.unwrap_or_else(|| text.chars().take(200).collect())
    )
}

impl Server for Account {
    fn open(&self) -> Result<Box<dyn Client>, Failure> {
        let connection = Connection::open(&self.origin)?;
        Ok(Box::new(TablesClient {
            account: self.clone(),
            connection,
        }))
    }
}

struct TablesClient {
    account: Account,
    connection: Connection,
}

impl Client for TablesClient {
    fn perform(&mut self, operation: &Operation) -> Result<Outcome, Failure> {
        let answer = self.connection.ask(&self.account.bytes(operation))?;
        Ok(outcome(operation, &answer))
    }
}

/// How an operation ended.
fn outcome(operation: &Operation, answer: &Answer) -> Outcome {
    let written = u64::try_from(operation.keys.len()).unwrap_or(u64::MAX);
    match (answer.status, operation.kind) {
        // A transaction that fails has one part, and its status is there.
        (202, _) => match part_status(&answer.body) {
            Some(200..=299) | None => Outcome::Done(written),
            Some(503) => Outcome::Busy,
            Some(500 | 504) => Outcome::TimedOut,
            Some(status) => Outcome::Failed(format!("a transaction: {status} {}", words(answer))),
        },
        (200, Kind::Query) => Outcome::Done(count(&answer.body, b"\"RowKey\"")),
        (200..=299, _) => Outcome::Done(written),
        // An entity that is still being written, or never was.
        (404, Kind::Read) if words(answer) == "404 ResourceNotFound" => Outcome::Done(0),
        (503 | 429, _) => Outcome::Busy,
        (500 | 504, _) => Outcome::TimedOut,
        _ => Outcome::Failed(words(answer)),
    }
}

/// The status of the first part of an answer to a transaction.
fn part_status(body: &[u8]) -> Option<u16> {
    const LINE: &[u8] = b"HTTP/1.1 ";
    let at = body.windows(LINE.len()).position(|window| window == LINE)?;
    let status = body.get(at + LINE.len()..at + LINE.len() + 3)?;
    std::str::from_utf8(status).ok()?.parse().ok()
}

fn count(body: &[u8], what: &[u8]) -> u64 {
    let found = body.windows(what.len()).filter(|window| *window == what).count();
    u64::try_from(found).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(connection: &str) -> Account {
        let mut account = Account::new(connection, None, Clock::manual(1_606_000_000_000_000)).unwrap();
        account.table = "t".to_owned();
        account.value = "x".to_owned();
        account
    }

    fn keys(count: u64) -> Vec<Key> {
        let row = |number: u64| Key {
            partition: "p".to_owned(),
            row: number.to_string(),
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn connection_strings_name_account_key_and_address() {
        let development = account("UseDevelopmentStorage=true");
        assert_eq!(
            (development.origin.port, development.prefix.as_str()),
            (10002, "/devstoreaccount1")
        );
        let cloud = account("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aw==;EndpointSuffix=example.org");
        assert_eq!(
            (cloud.origin.host.as_str(), cloud.origin.port),
            ("a.table.example.org", 443)
        );
        assert!(cloud.origin.is_tls && cloud.prefix.is_empty());
        for wrong in [
            "",
            "AccountName=a",
            "AccountName=a;AccountKey=aw==;TableEndpoint=ftp://x",
        ] {
            assert!(Account::new(wrong, None, Clock::manual(0)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates_are_those_of_http() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_582_934_400, "Sat, 29 Feb 2020 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds * 1_000_000), text);
        }
    }

    #[test]
    fn one_entity_is_put_and_several_are_a_transaction() {
        let account = account("UseDevelopmentStorage=true");
        let text = |kind, count| {
            let keys = keys(count);
            String::from_utf8(account.bytes(&Operation { kind, keys })).unwrap()
        };
        let put = text(Kind::Upsert, 1);
        assert!(put.starts_with("PUT /devstoreaccount1/t(PartitionKey='p',RowKey='0') HTTP/1.1\r\n"));
        assert!(put.contains("x-ms-date: Sat, 21 Nov 2020 23:06:40 GMT\r\n"), "{put}");
        assert!(put.ends_with("{\"PartitionKey\":\"p\",\"RowKey\":\"0\",\"v\":\"x\"}"));
        let batch = text(Kind::Insert, 2);
        assert!(batch.starts_with("POST /devstoreaccount1/$batch HTTP/1.1\r\n"));
        assert_eq!(
            batch
                .matches("POST http://127.0.0.1:10002/devstoreaccount1/t HTTP/1.1")
                .count(),
            2
        );
    }

    #[test]
    fn outcomes_follow_the_status_of_the_answer_or_of_its_part() {
        let ended = |kind, status, body: &str| {
            let answer = Answer {
                status,
                headers: Vec::new(),
                body: body.as_bytes().to_vec(),
            };
            outcome(&Operation { kind, keys: keys(3) }, &answer)
        };
        assert_eq!(ended(Kind::Upsert, 204, ""), Outcome::Done(3));
        assert_eq!(
            ended(Kind::Query, 200, "{\"RowKey\":1}{\"RowKey\":2}"),
            Outcome::Done(2)
        );
        assert_eq!(ended(Kind::Upsert, 503, ""), Outcome::Busy);
        assert_eq!(ended(Kind::Upsert, 202, "x HTTP/1.1 204 No Content"), Outcome::Done(3));
        assert_eq!(ended(Kind::Upsert, 202, "x HTTP/1.1 503 Busy"), Outcome::Busy);
        let missing = |code: &str| format!("{{\"odata.error\":{{\"code\":\"{code}\"}}}}");
        assert_eq!(ended(Kind::Read, 404, &missing("ResourceNotFound")), Outcome::Done(0));
        assert_eq!(
            ended(Kind::Read, 404, &missing("TableNotFound")),
            Outcome::Failed("404 TableNotFound".to_owned())
        );
    }
}
