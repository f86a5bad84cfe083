//! Figures as text, in the format that Prometheus scrapes (text format 0.0.4).
//!
//! ```text
//! # HELP helenus_requests_total Requests answered, whatever the answer.
//! # TYPE helenus_requests_total counter
//! helenus_requests_total 17
//! helenus_statement_seconds_bucket{kind="select",le="0.000016"} 3
//! ```
//! A family is written whole, once; [`Text`] ensures that by taking all its samples together.
//! Source: the "Exposition formats" page of Prometheus's documentation.

use std::fmt::{Display, Write};

use super::histogram::Distribution;

/// Prefix of every name.
const PREFIX: &str = "helenus_";

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Names and values of one sample's labels.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// A text under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The finished text.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let help = help.trim().replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {PREFIX}{name} {help}"));
        self.line(format_args!("# TYPE {PREFIX}{name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        if labels.is_empty() {
            return self.line(format_args!("{PREFIX}{name} {value}"));
        }
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        self.line(format_args!("{PREFIX}{name}{{{}}} {value}", labels.join(",")));
    }

    /// A number that only rises; its name must end with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.counters(name, help, [(&[] as Labels<'_>, value)]);
    }

    /// One for each set of labels.
    pub fn counters<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.head(name, help, "counter");
        for (labels, value) in samples {
            self.sample(name, labels, value);
        }
    }

    /// A number that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "gauge");
        self.sample(name, &[], value);
    }

    /// One for each set of labels.
    pub fn gauges<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.head(name, help, "gauge");
        for (labels, value) in samples {
            self.sample(name, labels, value);
        }
    }

    /// Lengths of time in microseconds, shown in seconds; the name must end with `_seconds`.
    pub fn times<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, &'a Distribution)>,
    ) {
        self.head(name, help, "histogram");
        for (labels, times) in samples {
            let bucket = format!("{name}_bucket");
            for (power, below) in times.below_powers() {
                let le = seconds(power);
                self.sample(&bucket, &[labels, &[("le", le.as_str())]].concat(), below);
            }
            let count = times.count();
            self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), count);
            self.sample(&format!("{name}_sum"), labels, seconds(times.sum()));
            self.sample(&format!("{name}_count"), labels, count);
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Microseconds as seconds, exactly.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::super::histogram::Histogram;
    use super::*;

    #[test]
    fn families_are_written_as_the_format_says() {
        let mut text = Text::new();
        text.counter("a_total", " Things\nthat \\ happened.", 3);
        text.gauges("b", "Now.", [(&[("of", "x\"\\\ny")] as Labels<'_>, 1.5)]);
        let histogram = Histogram::new();
        histogram.add(17, 2);
        histogram.add(70_000_000, 1);
        text.times(
            "c_seconds",
            "Time.",
            [(&[("kind", "k")] as Labels<'_>, &histogram.load())],
        );
        let text = text.finish();
        assert!(text.starts_with(
            "# HELP helenus_a_total Things\\nthat \\\\ happened.\n# TYPE helenus_a_total counter\nhelenus_a_total 3\n\
             # HELP helenus_b Now.\n# TYPE helenus_b gauge\nhelenus_b{of=\"x\\\"\\\\\\ny\"} 1.5\n"
        ));
        for line in [
            "helenus_c_seconds_bucket{kind=\"k\",le=\"0.000016\"} 0",
            "helenus_c_seconds_bucket{kind=\"k\",le=\"0.000032\"} 2",
            "helenus_c_seconds_bucket{kind=\"k\",le=\"67.108864\"} 2",
            "helenus_c_seconds_bucket{kind=\"k\",le=\"+Inf\"} 3",
            "helenus_c_seconds_sum{kind=\"k\"} 70.000034",
            "helenus_c_seconds_count{kind=\"k\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
