//! Requests to a bucket and their cost: `/api/status`, families of Prometheus, and a line of `helenus status`.

use super::figure::{Figure, Value};
use super::printed::Row;
use super::view::Sources;
use helenus_base::metrics::{self, BucketCause, BucketRequest, CachedParts};

/// Average hours of a month.
const MONTH_HOURS: f64 = 730.0;

/// Requests of one kind, for one cause, to one store.
pub(super) struct RequestRow {
    store: u32,
    cause: BucketCause,
    request: BucketRequest,
    count: u64,
    an_hour: f64,
}

pub(super) static REQUESTS: &[Figure<RequestRow>] = &[
    Figure::new("The store, 0 is the main one.", |of: &RequestRow| {
        Value::Count(of.store.into())
    })
    .json("store")
    .label("store"),
    Figure::new("What they are for.", |of: &RequestRow| Value::text(of.cause.name()))
        .json("cause")
        .label("cause"),
    Figure::new("put, get, head, list, delete.", |of: &RequestRow| {
        Value::text(of.request.name())
    })
    .json("kind")
    .label("kind"),
    Figure::new(
        "Requests to the bucket, by store, cause and kind.",
        |of: &RequestRow| Value::Count(of.count),
    )
    .json("count")
    .counter("bucket_requests_total"),
    Figure::new("The same, an hour since the start.", |of: &RequestRow| {
        Value::Float(of.an_hour)
    })
    .json("an_hour"),
];

/// The totals of all requests.
pub(super) struct Costs {
    puts: u64,
    gets: u64,
    deletes: u64,
    cost: f64,
    cost_of_a_month: f64,
    cached: CachedParts,
}

pub(super) static COSTS: &[Figure<Costs>] = &[
    Figure::new("Puts and lists.", |of: &Costs| Value::Count(of.puts)).json("puts"),
    Figure::new("Gets and heads.", |of: &Costs| Value::Count(of.gets)).json("gets"),
    Figure::new("Removals.", |of: &Costs| Value::Count(of.deletes)).json("deletes"),
    Figure::new(
        "What the requests since the start cost, by the setting bucket-prices.",
        |of: &Costs| Value::Float(of.cost),
    )
    .json("cost")
    .counter("bucket_cost_total"),
    Figure::new(
        "What a month of requests costs if it is as the time since the start.",
        |of: &Costs| Value::Float(of.cost_of_a_month),
    )
    .json("cost_of_a_month"),
    Figure::new(
        "Parts of tables that were read in the folder of bucket-cache.",
        |of: &Costs| Value::Count(of.cached.found),
    )
    .json("parts_cached")
    .counter("bucket_parts_cached_total"),
    Figure::new("Parts of tables that were not there.", |of: &Costs| {
        Value::Count(of.cached.missing)
    })
    .json("parts_missing")
    .counter("bucket_parts_missing_total"),
    Figure::new(
        "Parts of tables that were damaged there, and read from the bucket again.",
        |of: &Costs| Value::Count(of.cached.damaged),
    )
    .json("parts_damaged")
    .counter("bucket_parts_damaged_total"),
];

fn hours(sources: Sources<'_>) -> f64 {
    // At least a minute: a rate over less would overstate the first requests.
    (sources.live.uptime.as_secs_f64() / 3600.0).max(1.0 / 60.0)
}

/// All counted requests; none without a bucket.
pub(super) fn requests(sources: Sources<'_>) -> Vec<RequestRow> {
    let hours = hours(sources);
    let all = metrics::bucket_requests().into_iter();
    #[expect(clippy::cast_precision_loss, reason = "counts of requests")]
    all.map(|(store, cause, request, count)| RequestRow {
        store,
        cause,
        request,
        count,
        an_hour: count as f64 / hours,
    })
    .collect()
}

/// Their cost; `None` means that there is no bucket.
pub(super) fn costs(sources: Sources<'_>, requests: &[RequestRow]) -> Option<Costs> {
    if requests.is_empty() {
        return None;
    }
    let of = |kinds: &[BucketRequest]| {
        let rows = requests.iter().filter(|row| kinds.contains(&row.request));
        rows.map(|row| row.count).sum()
    };
    let puts = of(&[BucketRequest::Put, BucketRequest::List]);
    let gets = of(&[BucketRequest::Get, BucketRequest::Head]);
    let cost = sources.live.facts.bucket_prices.cost(puts, gets);
    Some(Costs {
        puts,
        gets,
        deletes: of(&[BucketRequest::Delete]),
        cost,
        cost_of_a_month: cost / hours(sources) * MONTH_HOURS,
        cached: metrics::cached_parts(),
    })
}

/// The line of `helenus status`.
pub(super) fn line(row: &Row<'_>) -> Option<String> {
    let of = |name: &str| row.text(&format!("bucket.{name}"));
    row.some("bucket.puts")?;
    // A start makes many requests, so a rate over a few minutes says nothing about a month.
    let month = match row.count("uptime_seconds") {
        ..3600 => "a month's cost after the first hour".to_owned(),
        _ => format!("{:.2} a month at this rate", row.float("bucket.cost_of_a_month")),
    };
    Some(format!(
        "{} puts and lists, {} gets and heads, {} removals; requests for {:.2} so far, {month}",
        of("puts"),
        of("gets"),
        of("deletes"),
        row.float("bucket.cost"),
    ))
}
