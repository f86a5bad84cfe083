//! The client of a bucket.
//!
//! | | limit | why |
//! |---|---|---|
//! | to connect | 1 s | a store that is not there is found at once |
//! | a request | 20 s, 3 s for small ones (`engine/slate/medium.rs`) | a table of 64 MiB takes its time |
//! | retries of the client | 1, within 5 s | SlateDB and the committer try again themselves |

use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use slatedb::object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use slatedb::object_store::azure::MicrosoftAzureBuilder;
use slatedb::object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use slatedb::object_store::path::Path;
use slatedb::object_store::prefix::PrefixStore;
use slatedb::object_store::{
    BackoffConfig, Certificate, ClientOptions, Error as StoreError, ObjectStore, RetryConfig, StaticCredentialProvider,
};

use super::counted::Counted;
use super::files::Section;
use super::found::refusal;
use super::removal::RepeatableRemoval;
use super::rules::Rules;
use super::{Encryption, Reach};
use crate::storage::address::{Address, Cloud, EMULATOR};
use crate::storage::bucket_refusal::Refusal;

const CONNECT_MAX: Duration = Duration::from_secs(1);
const REQUEST_MAX: Duration = Duration::from_secs(20);
const RETRIES_MAX: usize = 1;
const RETRYING_MAX: Duration = Duration::from_secs(5);

/// Google takes one change of an object a second (Cloud Storage, Quotas & limits); a tenth more, for two clocks.
const GOOGLE_CHANGE_INTERVAL: Duration = Duration::from_millis(1_100);
/// Shortest lease in Google: two renewals fit into it.
const GOOGLE_LEASE_MIN: Duration = Duration::from_millis(2_500);

/// A bucket with its client.
#[derive(Debug)]
pub(in crate::storage) struct Reached {
    /// The objects below the prefix.
    pub(in crate::storage) objects: Arc<dyn ObjectStore>,
    /// The objects of the prefixes above it, each with its prefix.
    pub(super) above: Vec<(Path, Arc<dyn ObjectStore>)>,
    /// The client for the bucket's rules. `None` means that the protocol does not offer them.
    pub(super) rules: Option<Rules>,
    /// Least time between two changes of one object. Zero means that the store has no limit.
    pub(super) change_interval: Duration,
}

impl Reached {
    /// Makes the client; sends no request.
    ///
    /// # Errors
    /// A setting is not valid for this cloud, or the CA file cannot be read.
    pub(in crate::storage) fn new(address: &Address, reach: &Reach) -> Result<Self, Refusal> {
        // If another provider is installed, it stays; the program installs no other.
        drop(rustls::crypto::ring::default_provider().install_default());
        check_settings(address, reach)?;
        let options = client_options(reach)?;
        let (objects, rules) = match address.cloud {
            Cloud::S3 => s3(address, reach, options)?,
            Cloud::Azure => (repeatable(azure(address, reach, options)?), None),
            Cloud::Google => (repeatable(google(address, reach, options)?), None),
        };
        let prefix = Path::from(address.prefix.as_str());
        Ok(Self {
            above: above(&objects, &prefix),
            objects: Arc::new(Counted(Arc::new(PrefixStore::new(objects, prefix)))),
            rules,
            change_interval: match address.cloud {
                Cloud::Google => GOOGLE_CHANGE_INTERVAL,
                Cloud::S3 | Cloud::Azure => Duration::ZERO,
            },
        })
    }
}

/// The prefixes above a prefix, but for the whole bucket: a database has a prefix.
fn above(objects: &Client, prefix: &Path) -> Vec<(Path, Client)> {
    let parts: Vec<_> = prefix.parts().collect();
    let shorter = (1..parts.len()).map(|length| parts.iter().take(length).cloned().collect::<Path>());
    let of = |path: Path| {
        let objects: Client = Arc::new(PrefixStore::new(Arc::clone(objects), path.clone()));
        (path, objects)
    };
    shorter.map(of).collect()
}

fn repeatable(client: Client) -> Client {
    Arc::new(RepeatableRemoval(client))
}

#[cfg(test)]
impl Reached {
    /// A bucket of a test.
    pub(in crate::storage) fn of(objects: Arc<dyn ObjectStore>) -> Self {
        Self {
            objects,
            above: Vec::new(),
            rules: None,
            change_interval: Duration::ZERO,
        }
    }

    /// A prefix of a bucket of a test.
    pub(super) fn below(bucket: &Client, prefix: &str) -> Self {
        let prefix = Path::from(prefix);
        Self {
            above: above(bucket, &prefix),
            ..Self::of(Arc::new(PrefixStore::new(Arc::clone(bucket), prefix)))
        }
    }
}

fn setting(what: &str) -> Refusal {
    Refusal::Setting { what: what.to_owned() }
}

/// Whether the host of a URL is an IP address.
fn is_of_ip_address(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
    let host = host.split('/').next().unwrap_or_default();
    let without_port = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host.starts_with('[') || without_port.parse::<std::net::IpAddr>().is_ok()
}

fn check_settings(address: &Address, reach: &Reach) -> Result<(), Refusal> {
    if let Some(endpoint) = &reach.endpoint {
        let host = endpoint
            .strip_prefix("http://")
            .or_else(|| endpoint.strip_prefix("https://"));
        let is_host = |host: &str| !host.is_empty() && !host.contains(['@', '?', '#']);
        if !host.is_some_and(is_host) {
            return Err(setting(
                "bucket-endpoint is written http://HOST:PORT or https://HOST:PORT; credentials do not belong into it",
            ));
        }
        if address.account == EMULATOR {
            return Err(setting(
                "the address of Azure's emulator is taken from AZURITE_BLOB_STORAGE_URL, not from bucket-endpoint",
            ));
        }
    }
    if reach.is_virtual_hosted && reach.endpoint.as_deref().is_some_and(is_of_ip_address) {
        return Err(setting(
            "bucket-path-style=false names the bucket in the host, which needs a host name in bucket-endpoint, not an IP address",
        ));
    }
    if address.cloud != Cloud::S3 {
        if reach.encryption != Encryption::Bucket {
            return Err(setting(
                "bucket-encryption is S3's; in Azure and Google the container or bucket itself has a key",
            ));
        }
        if reach.is_virtual_hosted || reach.region.is_some() {
            return Err(setting("bucket-region and bucket-path-style are S3's"));
        }
        if address.cloud == Cloud::Google && reach.lease.is_some_and(|lease| lease < GOOGLE_LEASE_MIN) {
            return Err(setting(
                "bucket-lease is at least 2500 in gs:, since Google takes one change of an object a second",
            ));
        }
    }
    Ok(())
}

fn client_options(reach: &Reach) -> Result<ClientOptions, Refusal> {
    let is_plain = reach
        .endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    let mut options = ClientOptions::new()
        .with_connect_timeout(CONNECT_MAX)
        .with_timeout(REQUEST_MAX)
        .with_allow_http(is_plain);
    if let Some(path) = &reach.ca_file {
        for certificate in certificates(path)? {
            options = options.with_root_certificate(certificate);
        }
    }
    Ok(options)
}

fn certificates(path: &FilePath) -> Result<Vec<Certificate>, Refusal> {
    let failed = |what: &str| Refusal::Setting {
        what: format!("bucket-ca-file {}: {what}", path.display()),
    };
    let pem = fs::read(path).map_err(|error| failed(&error.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(failed("holds no certificates in PEM")),
    }
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_millis(500),
            base: 2.0,
        },
        max_retries: RETRIES_MAX,
        retry_timeout: RETRYING_MAX,
    }
}

/// Classifies an error of a builder: its text is of settings and files, never of keys.
fn of_builder(error: &StoreError) -> Refusal {
    let text = error.to_string();
    match refusal(error) {
        found @ Refusal::NoCredentials => found,
        _ if ["Missing", "missing", "not found"]
            .iter()
            .any(|word| text.contains(word)) =>
        {
            Refusal::NoCredentials
        }
        _ => setting(
            "the credentials or addresses in the environment cannot be used; try them with the cloud's own tools",
        ),
    }
}

type Client = Arc<dyn ObjectStore>;

fn s3(address: &Address, reach: &Reach, options: ClientOptions) -> Result<(Client, Option<Rules>), Refusal> {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut builder = AmazonS3Builder::from_env().with_retry(retries());
    let endpoint = reach.endpoint.clone();
    let endpoint = endpoint
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    // A custom endpoint with `http:` opts in to plain HTTP.
    let is_plain = endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    let options = options.with_allow_http(is_plain);
    let region = reach.region.clone();
    let region = region
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Region))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::DefaultRegion))
        .unwrap_or_else(|| "us-east-1".to_owned());
    let bucket = &address.bucket;
    let host = match &endpoint {
        Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
        None => format!("https://s3.{region}.amazonaws.com"),
    };
    let at_bucket = match host.split_once("://").filter(|_| reach.is_virtual_hosted) {
        Some((scheme, host)) => format!("{scheme}://{bucket}.{host}"),
        None => format!("{host}/{bucket}"),
    };
    builder = builder
        .with_bucket_name(bucket)
        .with_region(&region)
        .with_client_options(options.clone())
        .with_virtual_hosted_style_request(reach.is_virtual_hosted)
        .with_endpoint(if reach.is_virtual_hosted {
            at_bucket.clone()
        } else {
            host.clone()
        });
    if endpoint.is_some() {
        builder = builder.with_config(
            AmazonS3ConfigKey::S3Endpoint,
            if reach.is_virtual_hosted { &at_bucket } else { &host },
        );
    }
    builder = encrypted(builder, &reach.encryption);
    let is_given = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ]
    .iter()
    .any(|name| environment(name).is_some());
    if !is_given && let Some(section) = Section::find(environment) {
        builder = builder.with_credentials(Arc::new(section));
    }
    let client = builder.build().map_err(|error| of_builder(&error))?;
    let rules = Rules::new(
        at_bucket,
        region,
        &address.prefix,
        Arc::clone(client.credentials()),
        &options,
    );
    Ok((Arc::new(client), Some(rules.map_err(|error| of_builder(&error))?)))
}

fn encrypted(builder: AmazonS3Builder, encryption: &Encryption) -> AmazonS3Builder {
    let kind = match encryption {
        Encryption::Bucket => return builder,
        Encryption::Kms(Some(key)) => return builder.with_sse_kms_encryption(key),
        Encryption::Kms(None) => "aws:kms",
        Encryption::Sse => "AES256",
    };
    // The type of this key is not public, its name is.
    match "aws_server_side_encryption".parse() {
        Ok(key) => builder.with_config(key, kind),
        Err(_) => builder,
    }
}

fn azure(address: &Address, reach: &Reach, options: ClientOptions) -> Result<Client, Refusal> {
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_retry(retries())
        .with_container_name(&address.bucket);
    if address.account == EMULATOR {
        // The emulator's keys are published; those of the environment belong to an account.
        builder = MicrosoftAzureBuilder::new()
            .with_retry(retries())
            .with_container_name(&address.bucket)
            .with_use_emulator(true)
            .with_client_options(options.with_allow_http(true));
    } else {
        builder = builder.with_account(&address.account).with_client_options(options);
        if let Some(endpoint) = &reach.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
    }
    let client = builder.build().map_err(|error| of_builder(&error))?;
    Ok(Arc::new(client))
}

fn google(address: &Address, reach: &Reach, options: ClientOptions) -> Result<Client, Refusal> {
    let emulator = std::env::var("STORAGE_EMULATOR_HOST").ok();
    let emulator = emulator.filter(|host| !host.is_empty() && reach.endpoint.is_none());
    let mut builder = GoogleCloudStorageBuilder::from_env();
    if let Some(host) = emulator {
        // As in Google's own clients: with or without a scheme, and without credentials.
        let url = if host.contains("://") {
            host
        } else {
            format!("http://{host}")
        };
        let no_credentials = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        builder = GoogleCloudStorageBuilder::new()
            .with_base_url(url.trim_end_matches('/'))
            .with_credentials(Arc::new(no_credentials))
            .with_client_options(options.with_allow_http(true));
    } else {
        builder = builder.with_client_options(options);
        if let Some(endpoint) = &reach.endpoint {
            builder = builder.with_base_url(endpoint);
        }
    }
    let builder = builder.with_retry(retries()).with_bucket_name(&address.bucket);
    let client = builder.build().map_err(|error| of_builder(&error))?;
    Ok(Arc::new(client))
}
