//! A report as one page of HTML, which needs nothing else.

use std::fmt::Write as _;

use super::picture::{self, Line};
use super::report::{Report, grouped, time};
use super::tally::Cell;

const STYLE: &str = "body{font:15px/1.4 system-ui,sans-serif;max-width:960px;margin:2em auto;color:#222}\
    h2{font-size:1.05em;margin:1.6em 0 .4em}svg{width:100%;height:auto}svg text{font-size:11px;fill:#555}.grid{stroke:#ddd}\
    table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #eee}.advice{background:#f4f4f0;padding:.6em 1em}";

/// The page.
#[must_use]
pub(super) fn page(report: &Report) -> String {
    let total = &report.total;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>helenus stress</title><style>{STYLE}</style>\n\
         <h1>helenus stress</h1>\n<p>{} entities in {:.1} s: {} a second, by {} operations over {} connections. \
         Refused: {} busy, {} timed out. Failed: {}.</p>\n<p class=\"advice\">{}</p>\n",
        grouped(total.entities),
        report.elapsed.as_secs_f64(),
        grouped(report.per_second(total.entities)),
        grouped(total.operations),
        report.connections,
        grouped(total.busy),
        grouped(total.timed_out),
        grouped(total.failed),
        escaped(&report.advice())
    );
    over_time(&mut page, report);
    by_range(&mut page, report);
    table(&mut page, report);
    page.push_str("</html>\n");
    page
}

fn over_time(page: &mut String, report: &Report) {
    let line = |name, color, value: &dyn Fn(&Cell) -> Option<f64>| Line {
        name,
        color,
        values: report.sums.iter().map(value).collect(),
    };
    let throughput = [
        line("entities", "#2a6f97", &|cell| Some(number(cell.entities))),
        line("refused", "#c1121f", &|cell| Some(number(cell.refused()))),
    ];
    let latency = [
        line("p50", "#52796f", &|cell| millis(cell, 500)),
        line("p99", "#bc6c25", &|cell| millis(cell, 990)),
    ];
    // Writing into a text never fails.
    let _ = write!(
        page,
        "<h2>Entities and refusals a second</h2>\n{}<h2>Latency</h2>\n{}",
        picture::lines(&throughput, ""),
        picture::lines(&latency, " ms")
    );
}

fn by_range(page: &mut String, report: &Report) {
    let names: Vec<String> = (1..=report.ranges.len())
        .map(|number| format!("range {number}"))
        .collect();
    let rows = |value: &dyn Fn(&Cell) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
        let row = |range: usize| {
            report
                .seconds
                .iter()
                .map(|second| second.get(range).and_then(value))
                .collect()
        };
        (0..report.ranges.len()).map(row).collect()
    };
    let _ = write!(
        page,
        "<h2>Entities a second, by range of keys</h2>\n{}<h2>Refusals a second, by range of keys</h2>\n{}\
         <h2>Latency (p99), by range of keys</h2>\n{}",
        picture::map(
            &rows(&|cell| Some(number(cell.entities))),
            &names,
            "#2a6f97",
            " a second"
        ),
        picture::map(
            &rows(&|cell| Some(number(cell.refused()))),
            &names,
            "#c1121f",
            " a second"
        ),
        picture::map(&rows(&|cell| millis(cell, 990)), &names, "#bc6c25", " ms")
    );
}

fn table(page: &mut String, report: &Report) {
    page.push_str("<h2>Ranges</h2>\n<table><tr><th>range<th>from key<th>entities<th>part<th>busy<th>timed out<th>failed<th>p50<th>p99</tr>\n");
    for (number, range) in report.ranges.iter().enumerate() {
        let total = &range.total;
        let latency = |thousandths| total.latencies.at(thousandths).map(time).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{} %<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            number + 1,
            escaped(&range.begin),
            grouped(total.entities),
            (total.entities * 100).checked_div(report.total.entities).unwrap_or(0),
            grouped(total.busy),
            grouped(total.timed_out),
            grouped(total.failed),
            latency(500),
            latency(990)
        );
    }
    page.push_str("</table>\n");
}

fn millis(cell: &Cell, thousandths: u64) -> Option<f64> {
    cell.latencies
        .at(thousandths)
        .map(|latency| latency.as_secs_f64() * 1e3)
}

/// A count as a coordinate.
fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::example;
    use super::*;

    #[test]
    fn a_page_has_five_pictures_and_needs_nothing_else() {
        let page = page(&example());
        assert_eq!(page.matches("<svg").count(), 5);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(page.contains("range 4 of 4 took 100 %"));
        for outside in ["<script", "<link", "src=", "href="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
