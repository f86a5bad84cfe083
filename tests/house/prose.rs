//! Limits on what people read: the README and the pages in `docs/`.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of the README that a reader sees.
const README_LINES_MAX: usize = 150;

/// Words of a sentence.
const SENTENCE_WORDS_MAX: usize = 30;

/// Characters of a table's cell.
const CELL_CHARACTERS_MAX: usize = 120;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// A page without its comments, which `compat/run docs` reads and the reader does not see, and without the programs between fences.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    let (mut in_comment, mut in_program, mut after_comment) = (false, false, false);
    for line in text.lines() {
        if line.starts_with("<!--") || in_comment {
            in_comment = !line.ends_with("-->");
            after_comment = true;
            continue;
        }
        let is_gap = std::mem::take(&mut after_comment) && line.is_empty();
        let is_fence = line.starts_with("```");
        if is_fence {
            in_program = !in_program;
        }
        if is_gap {
            continue;
        }
        // What is between fences is code, as what is indented.
        let indent = if in_program || is_fence { "    " } else { "" };
        shown.push_str(indent);
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// The sentences of a page: a block ends at an empty line, a list's item or a heading; a sentence within it at a mark.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for line in text.lines() {
        let is_code = line.starts_with("    ");
        let is_block = line.trim().is_empty() || is_code || line.starts_with(['|', '#', '-']);
        if is_block {
            sentences.push(String::new());
        }
        if is_code || line.starts_with('|') {
            continue;
        }
        for word in line.split_whitespace() {
            let sentence = sentences.last_mut().unwrap();
            sentence.push_str(word);
            sentence.push(' ');
            if word.ends_with(['.', ':', ';', '?', '!']) {
                sentences.push(String::new());
            }
        }
    }
    sentences
}

#[test]
fn the_readme_is_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lines = visible(&fs::read_to_string(root.join("README.md")).unwrap())
        .lines()
        .count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}

#[test]
fn sentences_and_cells_are_short() {
    for page in pages() {
        let text = visible(&fs::read_to_string(&page).unwrap());
        for sentence in sentences(&text) {
            let words = sentence.split_whitespace().count();
            assert!(
                words <= SENTENCE_WORDS_MAX,
                "{}: {words} words: {sentence}",
                page.display()
            );
        }
        for cell in text
            .lines()
            .filter(|line| line.starts_with('|'))
            .flat_map(|line| line.split('|'))
        {
            let characters = cell.trim().chars().count();
            assert!(
                characters <= CELL_CHARACTERS_MAX,
                "{}: {characters} characters: {cell}",
                page.display()
            );
        }
    }
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file = page.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(file.exists(), "{}: {target} is not there", page.display());
        }
    }
}

#[test]
fn long_sentences_are_seen() {
    let long = format!("{}.\n", "word ".repeat(31).trim());
    assert!(
        sentences(&long)
            .iter()
            .any(|sentence| sentence.split_whitespace().count() > SENTENCE_WORDS_MAX)
    );
    let broken = format!("{}.\n{}.\n", "a ".repeat(20).trim(), "b ".repeat(20).trim());
    assert!(
        sentences(&broken)
            .iter()
            .all(|sentence| sentence.split_whitespace().count() <= SENTENCE_WORDS_MAX)
    );
}
