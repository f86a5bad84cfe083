//! Tables from outside, over sockets: the requests of SDKs, signed as they sign, and every answer as they read it.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use helenus::TestServer;
use helenus_base::clock::Clock;
use helenus_tables::tables::auth::{Account, http_date};
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const ACCOUNT: &str = "devstoreaccount1";
const JSON: &str = "application/json;odata=minimalmetadata";

/// A server of tables, and a client of its account.
struct Tables {
    server: TestServer,
    address: SocketAddr,
    account: Account,
    clock: Clock,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    /// Names in lower case.
    headers: BTreeMap<String, String>,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal, which stands in the header and in the body.
    fn code(&self) -> &str {
        let code = self.header("x-ms-error-code");
        assert!(self.body.contains(code) && !code.is_empty(), "{self:?}");
        code
    }
}

impl Tables {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(settings: &[(&str, &str)]) -> Self {
        let clock = Clock::manual(1_700_000_000_000_000);
        let account = format!("{ACCOUNT}:{KEY}");
        let mut builder = TestServer::builder().clock(clock.clone());
        for (name, value) in [("tables-listen", "127.0.0.1:0"), ("tables-account", &account)]
            .into_iter()
            .chain(settings.iter().copied())
        {
            builder = builder.set(name, value);
        }
        let server = builder.start().await.unwrap();
        let address = server.tables_address().unwrap();
        Self {
            server,
            address,
            account: Account::new(ACCOUNT.to_owned(), &[KEY.to_owned()]).unwrap(),
            clock,
        }
    }

    /// Sends bytes, and reads the one answer to them.
    async fn raw(&self, request: &[u8]) -> Answer {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request).await.unwrap();
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Answer {
            status,
            headers: headers.collect(),
            body: body.to_owned(),
        }
    }

    /// A request of the account, signed. The path is below the account.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_to("", method, path, headers, body).await
    }

    async fn send_to(&self, suffix: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let date = http_date(self.clock.wall_seconds());
        let address = format!("/{ACCOUNT}{suffix}{path}");
        let (bare, query) = address.split_once('?').unwrap_or((&address, ""));
        let comp = query.split('&').find(|part| part.starts_with("comp="));
        let comp = comp.map_or_else(String::new, |comp| format!("?{comp}"));
        let signature = self.account.sign(&format!("{date}\n/{ACCOUNT}{bare}{comp}"));
        let authorization = format!("SharedKeyLite {ACCOUNT}:{signature}");
        let mut all = vec![("x-ms-date", date.as_str()), ("authorization", &authorization)];
        all.extend(headers);
        self.plain(method, &address, &all, body).await
    }

    /// A request as it is given.
    async fn plain(&self, method: &str, address: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!(
            "{method} {address} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.address
        );
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in [("accept", JSON), ("x-ms-version", "2019-02-02")] {
            if !headers.iter().any(|(own, _)| *own == name) {
                request.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        self.raw(format!("{request}\r\n{body}").as_bytes()).await
    }

    async fn make(&self, table: &str) {
        let answer = self
            .send(
                "POST",
                "/Tables",
                &[("content-type", "application/json")],
                &format!("{{\"TableName\":\"{table}\"}}"),
            )
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    async fn insert(&self, table: &str, body: &str) -> Answer {
        let answer = self
            .send(
                "POST",
                &format!("/{table}"),
                &[("content-type", "application/json")],
                body,
            )
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer
    }

    async fn batch(&self, parts: &[(&str, String, &str, &str)]) -> Answer {
        let mut body = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n".to_owned();
        for (method, path, headers, content) in parts {
            body.push_str(
                "--changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
            );
            body.push_str(&format!(
                "{method} http://{}/{ACCOUNT}{path} HTTP/1.1\r\nAccept: {JSON}\r\n{headers}\r\n{content}\r\n",
                self.address
            ));
        }
        body.push_str("--changeset_2--\r\n--batch_1--\r\n");
        self.send(
            "POST",
            "/$batch",
            &[("content-type", "multipart/mixed; boundary=batch_1")],
            &body,
        )
        .await
    }
}

fn row(table: &str, row_key: &str) -> String {
    format!("/{table}(PartitionKey='p',RowKey='{row_key}')")
}

#[tokio::test]
async fn entity_lives_through_all_operations() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    let made = tables
        .insert(
            "smoke",
            r#"{"PartitionKey":"p","RowKey":"r'1","big@odata.type":"Edm.Int64","big":"5","n":1}"#,
        )
        .await;
    let etag = made.header("etag").to_owned();
    assert!(etag.starts_with("W/\"datetime'2023-11-14T"), "{etag}");
    let location = format!(
        "http://{}/{ACCOUNT}/smoke(PartitionKey='p',RowKey='r''1')",
        tables.address
    );
    assert_eq!(made.header("location"), location);
    let again = tables
        .send("POST", "/smoke", &[], r#"{"PartitionKey":"p","RowKey":"r'1"}"#)
        .await;
    assert_eq!((again.status, again.code()), (409, "EntityAlreadyExists"));
    let address = row("smoke", "r%27%271");
    let got = tables.send("GET", &address, &[], "").await;
    assert_eq!((got.status, got.header("etag")), (200, etag.as_str()));
    assert_eq!(got.json()["big@odata.type"], "Edm.Int64");
    let merged = tables
        .send("PATCH", &address, &[("if-match", &etag)], r#"{"m":2}"#)
        .await;
    assert_eq!(merged.status, 204, "{merged:?}");
    let newer = merged.header("etag").to_owned();
    assert_ne!(newer, etag);
    let stale = tables.send("PUT", &address, &[("if-match", &etag)], r#"{"m":3}"#).await;
    assert_eq!((stale.status, stale.code()), (412, "UpdateConditionNotSatisfied"));
    let got = tables
        .send("GET", &address, &[("accept", "application/json;odata=nometadata")], "")
        .await
        .json();
    assert_eq!((&got["n"], &got["m"], &got["big"]), (&1.into(), &2.into(), &"5".into()));
    let replaced = tables
        .send("PUT", &address, &[("if-match", &newer)], r#"{"x":true}"#)
        .await;
    assert_eq!(replaced.status, 204);
    let got = tables
        .send("GET", &format!("{address}?$select=x,zz"), &[], "")
        .await
        .json();
    assert_eq!(
        (&got["x"], &got["zz"], got.get("PartitionKey")),
        (&true.into(), &serde_json::Value::Null, None)
    );
    let missing = tables
        .send("DELETE", &row("smoke", "none"), &[("if-match", "*")], "")
        .await;
    assert_eq!((missing.status, missing.code()), (404, "ResourceNotFound"));
    let removed = tables.send("DELETE", &address, &[("if-match", "*")], "").await;
    assert_eq!((removed.status, removed.body.as_str()), (204, ""));
    let upserted = tables
        .send("POST", &address, &[("x-http-method", "MERGE")], r#"{"y":1}"#)
        .await;
    assert_eq!(upserted.status, 204, "{upserted:?}");
    let gone = tables.send("GET", "/other(PartitionKey='p',RowKey='r')", &[], "").await;
    assert_eq!((gone.status, gone.code()), (404, "TableNotFound"));
}

#[tokio::test]
async fn tables_are_made_listed_and_removed() {
    let tables = Tables::start().await;
    let prefer = [("prefer", "return-no-content"), ("content-type", "application/json")];
    let made = tables.send("POST", "/Tables", &prefer, r#"{"TableName":"Aaa"}"#).await;
    assert_eq!(
        (made.status, made.header("preference-applied")),
        (204, "return-no-content")
    );
    assert_eq!(made.header("dataserviceid"), made.header("location"));
    for name in ["bbb", "ccc"] {
        tables.make(name).await;
    }
    let again = tables.send("POST", "/Tables", &[], r#"{"TableName":"aAA"}"#).await;
    assert_eq!((again.status, again.code()), (409, "TableAlreadyExists"));
    let page = tables.send("GET", "/Tables?$top=2", &[], "").await;
    assert_eq!(
        page.json()["value"],
        serde_json::json!([{"TableName": "Aaa"}, {"TableName": "bbb"}])
    );
    let next = page.header("x-ms-continuation-nexttablename");
    let rest = tables
        .send("GET", &format!("/Tables?$top=2&NextTableName={next}"), &[], "")
        .await;
    assert_eq!(rest.json()["value"], serde_json::json!([{"TableName": "ccc"}]));
    assert_eq!(rest.header("x-ms-continuation-nexttablename"), "");
    let found = tables
        .send(
            "GET",
            "/Tables()?$filter=TableName%20gt%20'b'%20and%20TableName%20lt%20'c'",
            &[],
            "",
        )
        .await;
    assert_eq!(found.json()["value"], serde_json::json!([{"TableName": "bbb"}]));
    let one = tables.send("GET", "/Tables('AAA')", &[], "").await;
    assert_eq!(one.json()["TableName"], "Aaa");
    assert_eq!(tables.send("DELETE", "/Tables('aaa')", &[], "").await.status, 204);
    let none = tables.send("DELETE", "/Tables('aaa')", &[], "").await;
    assert_eq!((none.status, none.code()), (404, "ResourceNotFound"));
    let none = tables.send("GET", "/Tables('aaa')", &[], "").await;
    assert_eq!((none.status, none.code()), (404, "ResourceNotFound"));
    for (name, code) in [
        ("a-b", "InvalidResourceName"),
        ("ab", "OutOfRangeInput"),
        ("tables", "InvalidResourceName"),
    ] {
        let refused = tables
            .send("POST", "/Tables", &[], &format!("{{\"TableName\":\"{name}\"}}"))
            .await;
        assert_eq!((refused.status, refused.code()), (400, code), "{name}");
    }
}

#[tokio::test]
async fn queries_come_in_pages_in_the_order_of_keys() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    for (index, row_key) in ["b", "a", "\u{E000}", "\u{1F600}", "B"].iter().enumerate() {
        tables
            .insert(
                "smoke",
                &format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}","n":{index}}}"#),
            )
            .await;
    }
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = tables.send("GET", &format!("/smoke()?$top=2{token}"), &[], "").await;
        let value = page.json()["value"].as_array().unwrap().clone();
        found.extend(value.iter().map(|entity| entity["RowKey"].as_str().unwrap().to_owned()));
        let (partition, row) = (
            page.header("x-ms-continuation-nextpartitionkey"),
            page.header("x-ms-continuation-nextrowkey"),
        );
        if partition.is_empty() {
            break;
        }
        token = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
    assert_eq!(found, ["B", "a", "b", "\u{1F600}", "\u{E000}"]);
    let explain = [("x-helenus-explain", "true")];
    for (filter, rows, plan) in [
        ("PartitionKey%20eq%20'p'%20and%20RowKey%20eq%20'a'", 1, "point"),
        ("PartitionKey%20eq%20'p'%20and%20RowKey%20gt%20'a'", 3, "row-range"),
        (
            "PartitionKey%20gt%20'a'%20and%20PartitionKey%20lt%20'z'",
            5,
            "partition-range",
        ),
        ("n%20ge%202", 3, "table-scan"),
        ("not%20(n%20ge%202)", 2, "table-scan"),
    ] {
        let answer = tables
            .send("GET", &format!("/smoke()?$filter={filter}"), &explain, "")
            .await;
        let count = answer.json()["value"].as_array().unwrap().len();
        assert_eq!(
            (count, answer.header("x-helenus-plan")),
            (rows, plan),
            "{filter}: {answer:?}"
        );
        assert!(
            answer.header("x-ms-request-charge").parse::<f64>().is_ok(),
            "{answer:?}"
        );
    }
    let wrong = tables.send("GET", "/smoke()?$filter=aaa%20bbb%20ccc", &[], "").await;
    assert_eq!((wrong.status, wrong.code()), (400, "InvalidInput"));
    assert!(
        wrong.body.contains("Syntax error at position 7 in 'aaa bbb ccc'."),
        "{wrong:?}"
    );
    assert_eq!(
        tables.send("GET", "/smoke()?$top=0", &[], "").await.json()["value"],
        serde_json::json!([])
    );
    let none = tables.send("GET", "/other()?$top=0", &[], "").await;
    assert_eq!((none.status, none.code()), (404, "TableNotFound"));
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn group_transaction_is_done_whole_or_not_at_all() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    tables
        .insert("smoke", r#"{"PartitionKey":"p","RowKey":"old","n":1}"#)
        .await;
    let entity = |row_key: &str| format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}"}}"#);
    let no_content = "Prefer: return-no-content\r\n";
    let done = tables
        .batch(&[
            ("POST", "/smoke".to_owned(), no_content, &entity("a")),
            ("POST", "/smoke".to_owned(), "", &entity("b")),
            ("PATCH", row("smoke", "c"), "", r#"{"n":1}"#),
            ("DELETE", row("smoke", "old"), "If-Match: *\r\n", ""),
        ])
        .await;
    assert_eq!(done.status, 202, "{done:?}");
    let statuses: Vec<&str> = done.body.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    assert_eq!(
        statuses,
        [
            "HTTP/1.1 204 No Content",
            "HTTP/1.1 201 Created",
            "HTTP/1.1 204 No Content",
            "HTTP/1.1 204 No Content"
        ]
    );
    assert!(
        done.header("content-type")
            .starts_with("multipart/mixed; boundary=batchresponse_")
    );
    for (parts, index, code) in [
        (
            vec![
                ("POST", "/smoke".to_owned(), "", entity("d")),
                ("POST", "/smoke".to_owned(), "", entity("a")),
            ],
            1,
            "EntityAlreadyExists",
        ),
        (
            vec![
                ("POST", "/smoke".to_owned(), "", entity("d")),
                ("POST", "/smoke".to_owned(), "", entity("d")),
            ],
            1,
            "InvalidDuplicateRow",
        ),
        (
            vec![
                ("POST", "/smoke".to_owned(), "", entity("d")),
                ("POST", "/smoke".to_owned(), "", entity("e").replace("\"p\"", "\"q\"")),
            ],
            1,
            "CommandsInBatchActOnDifferentPartitions",
        ),
        (
            vec![
                ("POST", "/smoke".to_owned(), "", entity("d")),
                ("DELETE", row("smoke", "x"), "If-Match: *\r\n", String::new()),
            ],
            1,
            "ResourceNotFound",
        ),
        (vec![("POST", "/other".to_owned(), "", entity("d"))], 0, "TableNotFound"),
        (
            (0..101)
                .map(|row| ("POST", "/smoke".to_owned(), "", entity(&row.to_string())))
                .collect(),
            99,
            "InvalidInput",
        ),
    ] {
        let parts: Vec<_> = parts
            .iter()
            .map(|(method, path, headers, body)| (*method, path.clone(), *headers, body.as_str()))
            .collect();
        let failed = tables.batch(&parts).await;
        assert_eq!(failed.status, 202, "{failed:?}");
        assert_eq!(failed.body.matches("HTTP/1.1 ").count(), 1, "{failed:?}");
        assert!(
            failed.body.contains(&format!("\"code\":\"{code}\""))
                && failed.body.contains(&format!("\"value\":\"{index}:")),
            "{code}: {failed:?}"
        );
    }
    let all = tables.send("GET", "/smoke()", &[], "").await.json();
    let rows: Vec<&str> = all["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entity| entity["RowKey"].as_str().unwrap())
        .collect();
    assert_eq!(rows, ["a", "b", "c"]);
    let empty = tables.batch(&[]).await;
    assert_eq!(empty.status, 202, "{empty:?}");
    let get = format!(
        "--batch_1\r\nContent-Type: application/http\r\n\r\nGET http://{}/{ACCOUNT}{} HTTP/1.1\r\nAccept: {JSON}\r\n\r\n\r\n--batch_1--\r\n",
        tables.address,
        row("smoke", "a")
    );
    let got = tables
        .send(
            "POST",
            "/$batch",
            &[("content-type", "multipart/mixed; boundary=batch_1")],
            &get,
        )
        .await;
    assert!(
        got.status == 202 && got.body.contains("HTTP/1.1 200 OK") && !got.body.contains("changesetresponse"),
        "{got:?}"
    );
    let large = "x".repeat(4 * 1024 * 1024 + 1);
    let refused = tables
        .send(
            "POST",
            "/$batch",
            &[("content-type", "multipart/mixed; boundary=batch_1")],
            &large,
        )
        .await;
    assert_eq!((refused.status, refused.code()), (413, "RequestBodyTooLarge"));
    let under_table = tables.send("POST", "/smoke/$batch", &[], "").await;
    assert_eq!((under_table.status, under_table.code()), (415, "MediaTypeNotSupported"));
    let wrong_verb = tables.send("PUT", "/$batch", &[], "").await;
    assert_eq!((wrong_verb.status, wrong_verb.code()), (405, "UnsupportedHttpVerb"));
}

#[tokio::test]
async fn answers_have_the_headers_of_the_service() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    let answer = tables
        .send(
            "GET",
            "/smoke()",
            &[("x-ms-client-request-id", "mine"), ("x-ms-version", "2026-06-06")],
            "",
        )
        .await;
    let names = answer.headers.keys().map(String::as_str);
    let names: Vec<&str> = names.filter(|name| *name != "connection").collect();
    assert_eq!(
        names,
        [
            "cache-control",
            "content-length",
            "content-type",
            "date",
            "server",
            "x-content-type-options",
            "x-ms-client-request-id",
            "x-ms-request-id",
            "x-ms-version",
        ]
    );
    assert_eq!(
        (answer.header("x-ms-client-request-id"), answer.header("x-ms-version")),
        ("mine", "2026-06-06")
    );
    assert_eq!(
        answer.header("content-type"),
        "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    );
    let refused = tables
        .send(
            "GET",
            "/other()",
            &[("x-ms-client-request-id", "mine"), ("accept", "*/*")],
            "",
        )
        .await;
    assert_eq!(
        (refused.status, refused.header("x-ms-client-request-id")),
        (404, "mine")
    );
    assert!(refused.body.contains("<code>TableNotFound</code>"), "{refused:?}");
    for (headers, status, code) in [
        (vec![("x-ms-version", "2012-01-01")], 400, "InvalidHeaderValue"),
        (vec![("dataserviceversion", "4.0")], 400, "InvalidHeaderValue"),
        (vec![("accept", "application/atom+xml")], 415, "AtomFormatNotSupported"),
    ] {
        let refused = tables.send("GET", "/smoke()", &headers, "").await;
        assert_eq!((refused.status, refused.code()), (status, code), "{headers:?}");
    }
    for (path, status, code) in [
        ("/smoke()?timeout=0", 400, "InvalidQueryParameterValue"),
        ("/smoke()?$orderby=x", 501, "NotImplemented"),
        ("/$metadata", 501, "NotImplemented"),
        ("/smoke/Tables('y')", 400, "InvalidUri"),
        ("/smoke('y')", 400, "InvalidUri"),
    ] {
        let refused = tables.send("GET", path, &[], "").await;
        assert_eq!((refused.status, refused.code()), (status, code), "{path}");
    }
    assert_eq!(tables.send("GET", "/smoke()?timeout=99", &[], "").await.status, 200);
}

#[tokio::test]
async fn signatures_and_their_keys_are_kept() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    for (partition_key, row_key) in [("a", "1"), ("b", "1"), ("b", "2"), ("c", "1")] {
        tables
            .insert(
                "smoke",
                &format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}"}}"#),
            )
            .await;
    }
    let bare = tables.plain("GET", &format!("/{ACCOUNT}/smoke()"), &[], "").await;
    assert_eq!((bare.status, bare.code()), (401, "InvalidAuthenticationInfo"));
    assert!(bare.header("www-authenticate").starts_with("Bearer "));
    let date = http_date(tables.clock.wall_seconds());
    let forged = [
        ("x-ms-date", date.as_str()),
        ("authorization", "SharedKeyLite devstoreaccount1:bm9uZQ=="),
    ];
    let forged = tables.plain("GET", &format!("/{ACCOUNT}/smoke()"), &forged, "").await;
    assert_eq!((forged.status, forged.code()), (403, "AuthenticationFailed"));
    let other = tables
        .plain(
            "GET",
            "/other/smoke()",
            &[("authorization", "SharedKeyLite other:bm9uZQ==")],
            "",
        )
        .await;
    assert_eq!((other.status, other.code()), (403, "AuthenticationFailed"));
    // A table's signature: reads see its keys, writes outside of them are refused.
    let text = format!("ra\n\n2030-01-01T00:00:00Z\n/table/{ACCOUNT}/smoke\n\n\n\n2019-02-02\nb\n\nb\n1");
    let signature = tables.account.sign(&text).replace('+', "%2B");
    let query = format!("sv=2019-02-02&tn=smoke&sp=ra&se=2030-01-01T00:00:00Z&spk=b&epk=b&erk=1&sig={signature}");
    let seen = tables
        .plain("GET", &format!("/{ACCOUNT}/smoke()?{query}"), &[], "")
        .await;
    assert_eq!(seen.json()["value"].as_array().unwrap().len(), 1, "{seen:?}");
    let hidden = format!("/{ACCOUNT}/smoke(PartitionKey='b',RowKey='2')?{query}");
    assert_eq!(tables.plain("GET", &hidden, &[], "").await.status, 404);
    let insert = async |row_key: &str| {
        let body = format!(r#"{{"PartitionKey":"b","RowKey":"{row_key}"}}"#);
        tables
            .plain("POST", &format!("/{ACCOUNT}/smoke?{query}"), &[], &body)
            .await
    };
    assert_eq!(insert("0").await.status, 201);
    let outside = insert("3").await;
    assert_eq!((outside.status, outside.code()), (403, "AuthorizationFailure"));
    let delete = format!("/{ACCOUNT}/smoke(PartitionKey='b',RowKey='1')?{query}");
    let lacking = tables.plain("DELETE", &delete, &[("if-match", "*")], "").await;
    assert_eq!(
        (lacking.status, lacking.code()),
        (403, "AuthorizationPermissionMismatch")
    );
}

#[tokio::test]
async fn stored_policies_allow_and_revoke() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    let acl = "<SignedIdentifiers><SignedIdentifier><Id>read</Id><AccessPolicy><Expiry>2030-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let xml = [("accept", "application/xml"), ("content-type", "application/xml")];
    assert_eq!(tables.send("PUT", "/smoke?comp=acl", &xml, acl).await.status, 204);
    let kept = tables.send("GET", "/smoke?comp=acl", &xml, "").await;
    assert!(
        kept.body.starts_with('\u{FEFF}') && kept.body.contains("<Expiry>2030-01-01T00:00:00.0000000Z</Expiry>"),
        "{kept:?}"
    );
    let signature = tables
        .account
        .sign(&format!("\n\n\n/table/{ACCOUNT}/smoke\nread\n\n\n2019-02-02\n\n\n\n"))
        .replace('+', "%2B");
    let address = format!("/{ACCOUNT}/smoke()?sv=2019-02-02&tn=smoke&si=read&sig={signature}");
    assert_eq!(tables.plain("GET", &address, &[], "").await.status, 200);
    assert_eq!(tables.send("PUT", "/smoke?comp=acl", &xml, "").await.status, 204);
    let revoked = tables.plain("GET", &address, &[], "").await;
    assert_eq!((revoked.status, revoked.code()), (403, "AuthenticationFailed"));
    let none = tables.send("GET", "/other?comp=acl", &xml, "").await;
    assert_eq!((none.status, none.code()), (404, "TableNotFound"));
    assert!(none.body.contains("<m:code>"), "{none:?}");
    let wrong = tables.send("PUT", "/smoke?comp=acl", &xml, "<x>").await;
    assert_eq!((wrong.status, wrong.code()), (400, "InvalidXmlDocument"));
    // A table of the same name begins without policies.
    assert_eq!(tables.send("PUT", "/smoke?comp=acl", &xml, acl).await.status, 204);
    assert_eq!(tables.send("DELETE", "/Tables('smoke')", &[], "").await.status, 204);
    tables.make("smoke").await;
    assert!(
        tables
            .send("GET", "/smoke?comp=acl", &xml, "")
            .await
            .body
            .contains("<SignedIdentifiers />")
    );
}

#[tokio::test]
async fn properties_rule_cross_origin_requests() {
    let tables = Tables::start().await;
    let xml = [("accept", "application/xml")];
    let first = tables.send("GET", "/?restype=service&comp=properties", &xml, "").await;
    assert!(
        first.body.contains("<Logging><Version>1.0</Version>") && first.body.contains("<Cors></Cors>"),
        "{first:?}"
    );
    let asked = [("origin", "http://a.com"), ("access-control-request-method", "GET")];
    let refused = tables.plain("OPTIONS", &format!("/{ACCOUNT}/smoke"), &asked, "").await;
    assert_eq!((refused.status, refused.code()), (403, "CorsPreflightFailure"));
    let rules = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    assert_eq!(
        tables
            .send("PUT", "/?restype=service&comp=properties", &xml, rules)
            .await
            .status,
        202
    );
    let allowed = tables.plain("OPTIONS", &format!("/{ACCOUNT}/smoke"), &asked, "").await;
    assert_eq!(
        (allowed.status, allowed.header("access-control-allow-origin")),
        (200, "http://a.com")
    );
    let answer = tables.send("GET", "/Tables", &[("origin", "http://a.com")], "").await;
    assert_eq!(
        (answer.header("access-control-expose-headers"), answer.header("vary")),
        ("x-ms-*", "Origin")
    );
    let missing = tables.plain("OPTIONS", &format!("/{ACCOUNT}/smoke"), &[], "").await;
    assert_eq!((missing.status, missing.code()), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn secondary_reads_and_tells_its_state() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    tables.insert("smoke", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let stats = "/?restype=service&comp=stats";
    let xml = [("accept", "application/xml")];
    let told = tables.send_to("-secondary", "GET", stats, &xml, "").await;
    assert!(
        told.status == 200 && told.body.contains("<Status>live</Status>"),
        "{told:?}"
    );
    let refused = tables.send("GET", stats, &xml, "").await;
    assert_eq!((refused.status, refused.code()), (400, "InvalidQueryParameterValue"));
    let read = tables.send_to("-secondary", "GET", "/smoke()", &[], "").await;
    assert_eq!(read.json()["value"].as_array().unwrap().len(), 1);
    let written = tables
        .send_to(
            "-secondary",
            "POST",
            "/smoke",
            &[],
            r#"{"PartitionKey":"p","RowKey":"s"}"#,
        )
        .await;
    assert_eq!(
        (written.status, written.code()),
        (403, "InsufficientAccountPermissions")
    );
}

#[tokio::test]
async fn connection_serves_many_requests_and_continues_bodies() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    let date = http_date(tables.clock.wall_seconds());
    let signature = tables.account.sign(&format!("{date}\n/{ACCOUNT}/{ACCOUNT}/smoke"));
    let mut socket = TcpStream::connect(tables.address).await.unwrap();
    for row_key in ["1", "2"] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}"}}"#);
        let head = format!(
            "POST /{ACCOUNT}/smoke HTTP/1.1\r\nHost: {}\r\nx-ms-date: {date}\r\nAuthorization: SharedKeyLite {ACCOUNT}:{signature}\r\nPrefer: return-no-content\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
            tables.address
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = [0; 25];
        socket.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"HTTP/1.1 100 Continue\r\n\r\n");
        socket
            .write_all(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes())
            .await
            .unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(socket.read_u8().await.unwrap());
        }
        assert!(
            answer.starts_with(b"HTTP/1.1 204 "),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
}

/// More than the memory for bodies would hold, if they took any.
#[tokio::test]
async fn bodies_without_a_signature_keep_nobody_waiting() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    let mut sockets = Vec::new();
    for _ in 0..100 {
        let mut socket = TcpStream::connect(tables.address).await.unwrap();
        let head = format!("PUT /{ACCOUNT}/smoke HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\nbegun");
        socket.write_all(head.as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    let answer = tables.send("PUT", &row("smoke", "1"), &[], r#"{"a":1}"#).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    // They still send: nothing was given up to make room.
    for socket in &sockets {
        let read = socket.try_read(&mut [0]);
        assert!(read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    }
}

#[tokio::test]
async fn host_names_the_account_where_it_is_known() {
    let tables = Tables::start().await;
    tables.make("smoke").await;
    let date = http_date(tables.clock.wall_seconds());
    let signature = tables.account.sign(&format!("{date}\n/{ACCOUNT}/Tables"));
    let request = format!(
        "GET /Tables HTTP/1.1\r\nHost: {ACCOUNT}.table.local:{}\r\nConnection: close\r\nAccept: {JSON}\r\nx-ms-date: {date}\r\nAuthorization: SharedKeyLite {ACCOUNT}:{signature}\r\n\r\n",
        tables.address.port()
    );
    let answer = tables.raw(request.as_bytes()).await;
    let metadata = format!(
        "http://{ACCOUNT}.table.local:{}/$metadata#Tables",
        tables.address.port()
    );
    assert_eq!(
        (answer.status, answer.json()["odata.metadata"].as_str()),
        (200, Some(metadata.as_str()))
    );
}

#[tokio::test]
async fn port_takes_tls_and_plain_text() {
    let tables = Tables::start_with(&[("profile", "cosmos"), ("tls-listen", "127.0.0.1:0")]).await;
    let mut trusted = rustls::RootCertStore::empty();
    let certificate = tables.server.certificate().unwrap();
    let certificate = rustls::pki_types::CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    trusted.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(trusted).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let socket = TcpStream::connect(tables.address).await.unwrap();
    let mut socket = connector
        .connect("localhost".try_into().unwrap(), socket)
        .await
        .unwrap();
    let date = http_date(tables.clock.wall_seconds());
    let signature = tables.account.sign(&format!("{date}\n/{ACCOUNT}/{ACCOUNT}/Tables"));
    let request = format!(
        "GET /{ACCOUNT}/Tables HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: {JSON}\r\nx-ms-date: {date}\r\nAuthorization: SharedKeyLite {ACCOUNT}:{signature}\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    let answer = String::from_utf8(bytes).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ")
            && answer.contains("\"https://localhost/devstoreaccount1/$metadata#Tables\""),
        "{answer}"
    );
    tables.make("smoke").await;
}
