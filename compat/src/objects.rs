//! A store of objects in this process that speaks as much of S3, or of Google's XML API, as a server of ours asks for: how long each kind of request
//! takes is given, requests are counted, and it fails as it is told to.
//!
//! ```text
//! accept ─► a thread for each connection ─► http.rs: head and body ─► the fault of the moment ─► latency ─► the objects ─► answer
//! ```
//! It knows conditional puts (`If-None-Match: *`, `If-Match`), ranges, lists, uploads in parts and removals. It checks no signature, and keeps all in memory.
//! A conditional request is judged and done under one lock.
//!
//! Google's differs (google.rs): conditions and tags are generations, the removal of what is not there is a 404, and an object is changed once a second.
//!
//! Source: Amazon S3 API reference (PutObject, GetObject, ListObjectsV2, DeleteObjects, CreateMultipartUpload).

mod google;
mod http;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::http::{Answer, Request};
use crate::{Outcome, clock};

/// The folder of the lease.
const LEASES: &str = "fleet";

/// The folders of a database, that of the log which several share, and that of the lease.
const FOLDERS: [&str; 7] = ["wal", "compacted", "manifest", "compactions", "gc", "log", LEASES];

/// Most objects and folders of a page of a list.
const LISTED_MAX: usize = 1_000;

/// The same as Google, which gives as many as S3: fewer, so that runs meet several pages.
const GOOGLE_LISTED_MAX: usize = 100;

/// Comes after every character of a path.
const LAST: char = char::MAX;

/// The bucket that is not there. All others are.
const NO_BUCKET: &str = "nosuchbucket";

/// Whose protocol the store speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// S3's.
    S3,
    /// The XML API of Google Cloud Storage.
    Google,
}

/// How long requests take.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// A put, a list and a removal.
    pub put: Duration,
    /// A get and a look at an object's head.
    pub get: Duration,
}

impl Latency {
    /// Of a store in the same region: 20 ms a put and a list, 10 ms a get.
    pub const REGION: Self = Self {
        put: Duration::from_millis(20),
        get: Duration::from_millis(10),
    };

    /// No time but the machine's.
    pub const NONE: Self = Self {
        put: Duration::ZERO,
        get: Duration::ZERO,
    };
}

/// How the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not at all.
    None,
    /// It answers 503 and does nothing.
    Unavailable,
    /// It answers 503 to puts of logs, and does the rest.
    NoLogs,
    /// It answers 503 to puts, but for the lease, and does the rest.
    OnlyTheLease,
    /// It answers nothing; what was asked is done when the fault is over.
    Hang,
    /// It does what puts ask for and closes the connection without an answer.
    Deaf,
    /// Everything takes so much longer.
    Slow(Duration),
}

impl Fault {
    /// Whether a request is answered with 503.
    fn refuses(self, request: &Request) -> bool {
        let is_put = || matches!(request.method.as_str(), "PUT" | "POST");
        let is_in = |folders: &[&str]| request.path.split('/').any(|part| folders.contains(&part));
        match self {
            Self::Unavailable => true,
            Self::NoLogs => is_put() && is_in(&["log", "wal"]),
            Self::OnlyTheLease => is_put() && !is_in(&["fleet"]),
            Self::None | Self::Hang | Self::Deaf | Self::Slow(_) => false,
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A put, or a part of an upload.
    Put,
    /// A get.
    Get,
    /// A look at a head.
    Head,
    /// A list.
    List,
    /// A removal.
    Delete,
}

/// Requests that were answered, or failed, by the folder of a database that they are about and by their kind. The lease's folder is `fleet`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(String, Kind), u64>);

impl Counts {
    fn sum(&self, counts: impl Fn(&str, Kind) -> bool) -> u64 {
        let counted = self.0.iter().filter(|((folder, kind), _)| counts(folder, *kind));
        counted.map(|(_, count)| count).sum()
    }

    /// All but those about the lease.
    pub fn all(&self) -> u64 {
        self.sum(|folder, _| folder != LEASES)
    }

    /// Those about the lease.
    pub fn leases(&self) -> u64 {
        self.sum(|folder, _| folder == LEASES)
    }

    /// Those of a kind in a folder.
    pub fn of(&self, folder: &str, kind: Kind) -> u64 {
        self.sum(|of, is| of == folder && is == kind)
    }

    /// What was added since.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let added = self.0.iter().filter_map(|(of, count)| {
            let added = count - before.0.get(of).copied().unwrap_or_default();
            (added > 0).then(|| (of.clone(), added))
        });
        Self(added.collect())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("no request");
        }
        for (place, ((folder, kind), count)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{folder} {kind:?} {count}")?;
        }
        Ok(())
    }
}

/// An object.
#[derive(Debug, Clone)]
struct Object {
    body: Arc<[u8]>,
    /// Higher than those of objects that were put before.
    generation: u64,
    tag: String,
    /// When it was put, seconds since 1970.
    put_seconds: i64,
    /// The same, by the clock that never goes back.
    put_at: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// By `/bucket/key`.
    objects: BTreeMap<String, Object>,
    /// Parts of uploads, by the upload's id.
    uploads: BTreeMap<String, BTreeMap<u32, Arc<[u8]>>>,
    counts: Counts,
}

#[derive(Debug)]
struct Shared {
    protocol: Protocol,
    latency: Latency,
    state: Mutex<State>,
    fault: Mutex<Fault>,
    /// Tells tags and uploads apart.
    drawn: AtomicU64,
}

/// The store. It ends with the process.
#[derive(Debug)]
pub struct Objects {
    shared: Arc<Shared>,
    address: String,
}

impl Objects {
    /// Listens on a free port of 127.0.0.1. Any bucket is there, and empty.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(protocol: Protocol, latency: Latency) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let shared = Arc::new(Shared::new(protocol, latency));
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || serving.accept(&listener));
        Ok(Self { shared, address })
    }

    /// Listens on this address until the process is killed.
    ///
    /// # Errors
    /// When it cannot.
    pub fn serve(protocol: Protocol, address: &str) -> Outcome<bool> {
        Arc::new(Shared::new(protocol, Latency::NONE)).accept(&TcpListener::bind(address)?);
        Ok(true)
    }

    /// The URL of data in a bucket, and what a server needs in its environment to reach it.
    pub fn reach(&self, prefix: &str) -> (String, Vec<(&'static str, String)>) {
        let endpoint = format!("http://{}", self.address);
        match self.shared.protocol {
            Protocol::S3 => (
                format!("s3://helenus/{prefix}"),
                vec![
                    ("HELENUS_BUCKET_ENDPOINT", endpoint),
                    ("AWS_ACCESS_KEY_ID", "key".to_owned()),
                    ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
                    ("AWS_REGION", "us-east-1".to_owned()),
                ],
            ),
            Protocol::Google => (
                format!("gs://helenus/{prefix}"),
                vec![("STORAGE_EMULATOR_HOST", endpoint)],
            ),
        }
    }

    /// What was asked so far.
    pub fn counts(&self) -> Counts {
        self.shared.state().counts.clone()
    }

    /// From now on it fails so.
    pub fn set(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }
}

impl Shared {
    fn new(protocol: Protocol, latency: Latency) -> Self {
        Self {
            protocol,
            latency,
            state: Mutex::default(),
            fault: Mutex::new(Fault::None),
            drawn: AtomicU64::new(1),
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(self);
            // A client that goes away ends its thread.
            std::thread::spawn(move || shared.serve(&stream).ok());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }

    fn serve(&self, stream: &TcpStream) -> Outcome<()> {
        stream.set_nodelay(true)?;
        let mut from = std::io::BufReader::new(stream);
        while let Some(request) = Request::read(&mut from)? {
            self.count(&request);
            let fault = self.fault();
            if fault.refuses(&request) {
                Answer::failed(503, "ServiceUnavailable").write(stream, false)?;
                continue;
            }
            if let Fault::Slow(more) = fault {
                std::thread::sleep(more);
            }
            while self.fault() == Fault::Hang {
                std::thread::sleep(Duration::from_millis(10));
            }
            let reads = matches!(request.method.as_str(), "GET" | "HEAD");
            std::thread::sleep(if reads && !request.is_list() {
                self.latency.get
            } else {
                self.latency.put
            });
            let answer = self.answer(&request);
            if fault == Fault::Deaf && !reads {
                return Ok(());
            }
            answer.write(stream, request.method == "HEAD")?;
        }
        Ok(())
    }

    fn count(&self, request: &Request) {
        let kind = match request.method.as_str() {
            "GET" if request.is_list() => Kind::List,
            "GET" => Kind::Get,
            "HEAD" => Kind::Head,
            "DELETE" => Kind::Delete,
            "POST" if request.query.contains_key("delete") => Kind::Delete,
            _ => Kind::Put,
        };
        // A list names its folder in the query, a removal of many objects in its body.
        let body = if kind == Kind::Delete {
            request.body.as_slice()
        } else {
            &[]
        };
        let about = [
            &request.path,
            request.of_query("prefix"),
            &String::from_utf8_lossy(body),
        ]
        .join("/");
        let folder = about
            .split(['/', '<', '>'])
            .find_map(|part| FOLDERS.iter().find(|folder| *folder == &part));
        let folder = folder.map_or_else(|| "other".to_owned(), |folder| (*folder).to_owned());
        *self.state().counts.0.entry((folder, kind)).or_default() += 1;
    }

    fn answer(&self, request: &Request) -> Answer {
        let has = |name: &str| request.query.contains_key(name);
        if request.path.split('/').nth(1) == Some(NO_BUCKET) {
            return Answer::failed(404, "NoSuchBucket");
        }
        match request.method.as_str() {
            "GET" if has("lifecycle") => Answer::failed(404, "NoSuchLifecycleConfiguration"),
            "GET" if has("object-lock") => Answer::failed(404, "ObjectLockConfigurationNotFoundError"),
            "GET" if request.is_list() => self.list(request),
            "GET" | "HEAD" => self.get(request),
            "PUT" if has("uploadId") => self.put_part(request),
            "PUT" => self.put(request),
            "POST" if has("delete") => self.delete_named(request),
            "POST" if has("uploads") => self.begin_upload(request),
            "POST" if has("uploadId") => self.complete_upload(request),
            "DELETE" if has("uploadId") => {
                self.state().uploads.remove(request.of_query("uploadId"));
                Answer::empty(204)
            }
            "DELETE" => self.delete(request),
            _ => Answer::failed(400, "InvalidRequest"),
        }
    }

    fn get(&self, request: &Request) -> Answer {
        let Some(object) = self.state().objects.get(&request.path).cloned() else {
            return Answer::failed(404, "NoSuchKey");
        };
        let mut answer = Answer::empty(200);
        self.name(&mut answer, &object);
        answer.header("Last-Modified", &http::date(object.put_seconds));
        let size = object.body.len();
        let Some((start, end)) = request.header("range").and_then(|range| http::range(range, size)) else {
            answer.body = object.body.to_vec();
            return answer;
        };
        let Some(part) = object.body.get(start..end).filter(|part| !part.is_empty()) else {
            return Answer::failed(416, "InvalidRange");
        };
        answer.status = 206;
        answer.header(
            "Content-Range",
            &format!("bytes {start}-{}/{size}", end.saturating_sub(1)),
        );
        answer.body = part.to_vec();
        answer
    }

    fn object(&self, body: Arc<[u8]>) -> Object {
        let generation = self.draw();
        Object {
            body,
            generation,
            tag: format!("\"{generation:032x}\""),
            put_seconds: clock::unix_micros() / 1_000_000,
            put_at: clock::now(),
        }
    }

    /// Says which object it is.
    fn name(&self, answer: &mut Answer, object: &Object) {
        answer.header("ETag", &object.tag);
        if self.protocol == Protocol::Google {
            google::name(answer, object);
        }
    }

    /// Puts an object if the request's condition holds.
    fn put_if(&self, request: &Request, object: Object) -> Answer {
        let mut state = self.state();
        let there = state.objects.get(&request.path);
        if self.protocol == Protocol::Google
            && let Some(refused) = google::refused(request, there)
        {
            return refused;
        }
        match (request.header("if-none-match"), request.header("if-match"), there) {
            (Some("*"), _, Some(_)) => return Answer::failed(412, "PreconditionFailed"),
            (_, Some(tag), Some(there)) if there.tag != tag => return Answer::failed(412, "PreconditionFailed"),
            (_, Some(_), None) => return Answer::failed(404, "NoSuchKey"),
            _ => {}
        }
        let mut answer = Answer::empty(200);
        self.name(&mut answer, &object);
        state.objects.insert(request.path.clone(), object);
        answer
    }

    fn put(&self, request: &Request) -> Answer {
        self.put_if(request, self.object(request.body.as_slice().into()))
    }

    fn delete(&self, request: &Request) -> Answer {
        let mut state = self.state();
        if self.protocol == Protocol::Google
            && let Some(refused) = google::not_removed(state.objects.get(&request.path))
        {
            return refused;
        }
        state.objects.remove(&request.path);
        Answer::empty(204)
    }

    fn list(&self, request: &Request) -> Answer {
        let bucket = format!("{}/", request.path.trim_end_matches('/'));
        let prefix = format!("{bucket}{}", request.of_query("prefix"));
        let delimiter = request.of_query("delimiter");
        // A page goes on behind the last path of the one before.
        let after = match request.of_query("continuation-token") {
            "" => format!("{bucket}{}", request.of_query("start-after")),
            token => token.to_owned(),
        };
        let (mut contents, mut folders) = (String::new(), std::collections::BTreeSet::new());
        let listed_max = match self.protocol {
            Protocol::S3 => LISTED_MAX,
            Protocol::Google => GOOGLE_LISTED_MAX,
        };
        let (mut listed, mut last, mut next) = (0, String::new(), None);
        for (path, object) in &self.state().objects {
            let Some(rest) = path.strip_prefix(&prefix).filter(|_| *path > after) else {
                continue;
            };
            if *path <= last {
                // In a folder that is listed.
                continue;
            }
            if listed == listed_max {
                next = Some(last);
                break;
            }
            listed += 1;
            if !delimiter.is_empty()
                && let Some((folder, _)) = rest.split_once(delimiter)
            {
                last = format!("{prefix}{folder}{delimiter}{LAST}");
                folders.insert(format!("{}{folder}{delimiter}", request.of_query("prefix")));
                continue;
            }
            last.clone_from(path);
            contents.push_str(&format!(
                "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                path.strip_prefix(&bucket).unwrap_or_default(),
                http::iso_date(object.put_seconds),
                object.tag.replace('"', "&quot;"),
                object.body.len()
            ));
        }
        let folders: String = folders
            .iter()
            .map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"))
            .collect();
        let token = next.as_ref().map_or_else(String::new, |next| {
            format!("<NextContinuationToken>{next}</NextContinuationToken>")
        });
        Answer::xml(&format!(
            "<ListBucketResult><IsTruncated>{}</IsTruncated>{token}{contents}{folders}</ListBucketResult>",
            next.is_some()
        ))
    }

    fn delete_named(&self, request: &Request) -> Answer {
        let text = String::from_utf8_lossy(&request.body);
        let bucket = request.path.trim_end_matches('/');
        let mut gone = String::new();
        let mut state = self.state();
        for key in text
            .split("<Key>")
            .skip(1)
            .filter_map(|part| part.split("</Key>").next())
        {
            state.objects.remove(&format!("{bucket}/{key}"));
            gone.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
        }
        Answer::xml(&format!("<DeleteResult>{gone}</DeleteResult>"))
    }

    fn begin_upload(&self, request: &Request) -> Answer {
        let id = format!("upload-{}", self.draw());
        self.state().uploads.insert(id.clone(), BTreeMap::new());
        let key = &request.path;
        Answer::xml(&format!(
            "<InitiateMultipartUploadResult><Key>{key}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        ))
    }

    fn put_part(&self, request: &Request) -> Answer {
        let number = request.of_query("partNumber").parse().unwrap_or(0);
        let mut state = self.state();
        let Some(parts) = state.uploads.get_mut(request.of_query("uploadId")) else {
            return Answer::failed(404, "NoSuchUpload");
        };
        parts.insert(number, request.body.as_slice().into());
        let mut answer = Answer::empty(200);
        answer.header("ETag", &format!("\"part-{number}\""));
        answer
    }

    fn complete_upload(&self, request: &Request) -> Answer {
        let Some(parts) = self.state().uploads.remove(request.of_query("uploadId")) else {
            return Answer::failed(404, "NoSuchUpload");
        };
        let body: Vec<u8> = parts.values().flat_map(|part| part.iter().copied()).collect();
        let object = self.object(body.into());
        let tag = object.tag.replace('"', "&quot;");
        let mut put = self.put_if(request, object);
        if put.status == 200 {
            let text = format!("<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>");
            put.body = Answer::xml(&text).body;
        }
        put
    }
}
