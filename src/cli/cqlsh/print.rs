//! Results as cqlsh prints them (`print_formatted_result` of cqlsh 6.2, where the output is no terminal).

use std::io::{self, Write};

use super::client::{Column, Page};
use super::value::{print, width};

/// Width in columns of a line of names (`cmd.Cmd.columnize`).
pub(super) const LINE_COLUMNS: usize = 80;

/// The cells of a page as texts.
pub(super) fn cells(page: &Page) -> Vec<Vec<String>> {
    let row = |row: &Vec<Option<Vec<u8>>>| -> Vec<String> {
        let cells = page.columns.iter().zip(row);
        cells
            .map(|(column, cell)| print(&column.ty, cell.as_deref(), false))
            .collect()
    };
    page.rows.iter().map(row).collect()
}

/// Prints one page as a table. Column widths are those of this page.
///
/// # Errors
/// Output cannot be written.
pub(super) fn table(out: &mut impl Write, page: &Page, with_header: bool) -> io::Result<()> {
    let rows = cells(page);
    let wide = |(place, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(place));
        cells
            .map(|cell| width(cell))
            .chain([width(&column.name)])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = page.columns.iter().enumerate().map(wide).collect();
    let pad = |text: &str, wide: usize| " ".repeat(wide.saturating_sub(width(text)));
    if with_header || rows.is_empty() {
        let names = page.columns.iter().zip(&widths);
        let names: Vec<String> = names
            .map(|(column, wide)| format!("{}{}", column.name, pad(&column.name, *wide)))
            .collect();
        let rules: Vec<String> = widths.iter().map(|wide| "-".repeat(*wide)).collect();
        writeln!(out, " {}", names.join(" | ").trim_end())?;
        writeln!(out, "-{}-", rules.join("-+-"))?;
    }
    if rows.is_empty() {
        return writeln!(out);
    }
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, wide)| format!("{}{cell}", pad(cell, *wide)))
            .collect();
        writeln!(out, " {}", cells.join(" | "))?;
    }
    Ok(())
}

/// Prints one page with a line for each cell. `before`: rows of the pages before it.
///
/// # Errors
/// Output cannot be written.
pub(super) fn expanded(out: &mut impl Write, page: &Page, before: usize) -> io::Result<()> {
    let rows = cells(page);
    let names = page.columns.iter().map(|column| width(&column.name)).max().unwrap_or(0);
    let values = rows.iter().flatten().map(|cell| width(cell)).max().unwrap_or(0);
    for (number, row) in rows.iter().enumerate() {
        writeln!(out, "@ Row {}", before + number + 1)?;
        writeln!(out, "-{}-+-{}-", "-".repeat(names), "-".repeat(values))?;
        for (column, cell) in page.columns.iter().zip(row) {
            let pad = " ".repeat(names.saturating_sub(width(&column.name)));
            writeln!(out, " {}{pad} | {cell}", column.name)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Prints names in as few lines as so many columns allow, downwards.
///
/// # Errors
/// Output cannot be written.
pub(super) fn names(out: &mut impl Write, names: &[String], columns_max: usize) -> io::Result<()> {
    let last = names.len();
    let shapes = (1..=last).map(|lines| {
        let widths = names
            .chunks(lines)
            .map(|column| column.iter().map(|name| width(name)).max().unwrap_or(0));
        (lines, widths.collect::<Vec<usize>>())
    });
    let fits = |(lines, widths): &(usize, Vec<usize>)| {
        *lines == last || widths.iter().sum::<usize>() + 2 * (widths.len() - 1) <= columns_max
    };
    let Some((lines, widths)) = shapes.into_iter().find(fits) else {
        return writeln!(out, "<empty>");
    };
    for line in 0..lines {
        let cells = names.iter().skip(line).step_by(lines).zip(&widths);
        let cells: Vec<String> = cells
            .map(|(name, wide)| format!("{name}{}", " ".repeat(wide.saturating_sub(width(name)))))
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
