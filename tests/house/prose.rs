//! Limits on what people read: the README, the changes and the pages in `docs/`. The ledger has its own in `gaps.rs`.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of the README, with those that are not shown.
const README_LINES_MAX: usize = 150;

/// Words of a sentence.
const SENTENCE_WORDS_MAX: usize = 30;

/// Characters of a table's cell.
const CELL_CHARACTERS_MAX: usize = 120;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
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

/// The sentences of a page. Comments and code are no prose. A block ends at an empty line, a heading or a list's item; a sentence within
/// it at `.`, `?` or `!`, also before closing brackets and quotes. Colons and semicolons end none.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let (mut in_comment, mut in_program) = (false, false);
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        let is_code = in_program || is_fence || line.starts_with("    ");
        let is_comment = in_comment || (!is_code && line.starts_with("<!--"));
        in_program ^= is_fence;
        in_comment = is_comment && !line.trim_end().ends_with("-->");
        let is_prose = !is_code && !is_comment && !line.starts_with('|');
        if !is_prose || line.trim().is_empty() || line.starts_with('#') || begins_item(line) {
            sentences.push(String::new());
        }
        for word in line.split_whitespace().filter(|_| is_prose) {
            let sentence = sentences.last_mut().unwrap();
            sentence.push_str(word);
            sentence.push(' ');
            let bare = word.trim_end_matches([')', ']', '*', '`', '"']);
            if bare.ends_with(['.', '?', '!']) {
                sentences.push(String::new());
            }
        }
    }
    sentences
}

/// Whether a line begins the item of a list.
fn begins_item(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || line.starts_with("* ") || (rest.len() < line.len() && rest.starts_with(". "))
}

#[test]
fn the_readme_is_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lines = fs::read_to_string(root.join("README.md")).unwrap().lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}

#[test]
fn sentences_and_cells_are_short() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
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
    let words_max = |text: &str| {
        let sentences = sentences(text).into_iter();
        sentences
            .map(|sentence| sentence.split_whitespace().count())
            .max()
            .unwrap()
    };
    let twenty = |word: &str| format!("{word} ").repeat(20).trim_end().to_owned();
    assert_eq!(
        words_max(&format!("{}: {}; {}.\n", twenty("a"), twenty("b"), twenty("c"))),
        60
    );
    assert_eq!(words_max(&format!("({}.)\n{}.\n", twenty("a"), twenty("b"))), 20);
    assert_eq!(words_max(&format!("1. {}\n2. {}\n", twenty("a"), twenty("b"))), 20);
    let code = format!(
        "<!-- {} -->\n```\n{}\n```\n    {}\nA word.\n",
        twenty("a"),
        twenty("b"),
        twenty("c")
    );
    assert_eq!(words_max(&code), 2);
}
