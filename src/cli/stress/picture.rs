//! Pictures of a report as SVG: lines over time, and a map of ranges over time.

use std::fmt::Write as _;

/// Size of a picture, and what its axes take.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 10.0;

/// Height of a row of a map.
const ROW: f64 = 22.0;

/// Most columns of a map, and points of a line: what is longer is put together.
const COLUMNS_MAX: usize = 300;

/// A line of a picture.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) color: &'static str,
    /// A value for each second; `None`: nothing was measured.
    pub(super) values: Vec<Option<f64>>,
}

/// Lines over time.
#[must_use]
pub(super) fn lines(lines: &[Line], unit: &str) -> String {
    let seconds = lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
    let most = lines
        .iter()
        .flat_map(|line| &line.values)
        .flatten()
        .fold(0.0, |most: f64, value| most.max(*value));
    let most = round_up(most);
    let mut svg = opened(HEIGHT);
    for part in [0.0, 0.5, 1.0] {
        let y = TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - part);
        // Writing into a text never fails.
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}{unit}</text>",
            LEFT - 6.0,
            y + 4.0,
            short(most * part)
        );
    }
    for (number, line) in lines.iter().enumerate() {
        let _ = write!(
            svg,
            "<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" d=\"{}\"/>",
            line.color,
            path(&together(&line.values), most)
        );
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\" style=\"fill:{}\">{}</text>",
            LEFT + 10.0 + 130.0 * small(number),
            TOP + 10.0,
            line.color,
            line.color,
            line.name
        );
    }
    svg.push_str(&times(seconds, HEIGHT));
    svg.push_str("</svg>\n");
    svg
}

fn path(values: &[Option<f64>], most: f64) -> String {
    let step = (WIDTH - LEFT) / small(values.len()).max(1.0);
    let (mut text, mut is_open) = (String::new(), false);
    for (number, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_open = false;
            continue;
        };
        let x = LEFT + step * (small(number) + 0.5);
        let y = TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / most);
        let _ = write!(text, "{}{x:.1} {y:.1}", if is_open { 'L' } else { 'M' });
        is_open = true;
    }
    text
}

/// A map: a row for each range, from the first on top, a column for each second. The darker, the more.
#[must_use]
pub(super) fn map(rows: &[Vec<Option<f64>>], names: &[String], color: &str, unit: &str) -> String {
    let seconds = rows.first().map_or(0, Vec::len);
    let most = rows
        .iter()
        .flatten()
        .flatten()
        .fold(0.0, |most: f64, value| most.max(*value));
    let height = TOP + ROW * small(rows.len()) + BOTTOM;
    let mut svg = opened(height);
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + ROW * small(number);
        let name = names.get(number).map(String::as_str).unwrap_or_default();
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            y + ROW / 2.0 + 4.0
        );
        let values = together(row);
        let step = (WIDTH - LEFT) / small(values.len()).max(1.0);
        for (column, value) in values.iter().enumerate() {
            let part = value.unwrap_or(0.0) / if most > 0.0 { most } else { 1.0 };
            let _ = write!(
                svg,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{color}\" fill-opacity=\"{part:.2}\">\
                 <title>{name}: {}{unit}</title></rect>",
                LEFT + step * small(column),
                step + 0.3,
                ROW - 2.0,
                short(value.unwrap_or(0.0))
            );
        }
    }
    svg.push_str(&times(seconds, height));
    svg.push_str("</svg>\n");
    svg
}

fn opened(height: f64) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">")
}

/// The axis of time: begin, middle and end, in seconds.
fn times(seconds: usize, height: f64) -> String {
    let at = |part: f64, anchor: &str| {
        format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{:.0} s</text>",
            LEFT + (WIDTH - LEFT) * part,
            height - 6.0,
            small(seconds) * part
        )
    };
    [at(0.0, "start"), at(0.5, "middle"), at(1.0, "end")].concat()
}

/// Means of neighbours where there are more values than columns.
fn together(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let width = values.len().div_ceil(COLUMNS_MAX).max(1);
    let mean = |chunk: &[Option<f64>]| {
        let known: Vec<f64> = chunk.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / small(known.len()))
    };
    values.chunks(width).map(mean).collect()
}

/// A count as a coordinate.
fn small(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The next of 1, 2, 5, 10, 20 …
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let found = [1.0, 2.0, 5.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= value);
    found.unwrap_or(10.0 * power)
}

/// A number in few letters.
fn short(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{:.1} M", value / 1e6),
        _ if value >= 1e4 => format!("{:.0} k", value / 1e3),
        _ if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(
            [0.0, 0.3, 1.0, 1.1, 42.0, 9000.0].map(round_up),
            [1.0, 0.5, 1.0, 2.0, 50.0, 10_000.0]
        );
        assert_eq!(
            [0.0, 0.25, 12.4, 20_000.0, 2.5e6].map(short),
            ["0", "0.25", "12", "20 k", "2.5 M"]
        );
    }

    #[test]
    fn long_loads_are_put_together() {
        let values: Vec<Option<f64>> = (0..3600).map(|second| (second % 2 == 0).then_some(4.0)).collect();
        let values = together(&values);
        assert_eq!(values.len(), 300);
        assert!(values.iter().all(|value| *value == Some(4.0)));
    }

    #[test]
    fn a_line_is_interrupted_where_nothing_was_measured() {
        let path = path(&[Some(1.0), Some(2.0), None, Some(1.0)], 2.0);
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1));
    }
}
