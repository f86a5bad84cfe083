//! Breaks a statement a little: a word lost, doubled, moved or exchanged. What comes out is mostly refused, and by both
//! servers with the same code.

use super::question::{Question, Way};
use super::words;
use fastrand::Rng;

/// Words that are put where they do not belong.
const STRANGERS: [&str; 22] = [
    "nowhere", "1", "'x'", "null", "0x00", "1.5", "true", "(", ")", "{}", "[1]", "AND", "IN", "=", "<", "*", ",",
    "token", "LIMIT", "DISTINCT", "count(*)", "-1",
];

/// The statement, broken at one place; a BATCH message stays whole.
pub(super) fn spoil(rng: &mut Rng, question: Question) -> Question {
    if question.batch.is_some() {
        return question;
    }
    let question = match (question.way, question.inlined()) {
        (Way::Text, _) | (_, None) => question,
        (_, Some(inlined)) => inlined,
    };
    if !question.marks.is_empty() {
        return question;
    }
    let mut parts = words::split(&question.text)
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    let places = parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !words::is_blank(part))
        .map(|(at, _)| at)
        .collect::<Vec<_>>();
    let Some(at) = rng.choice(&places).copied() else {
        return question;
    };
    let other = rng.choice(&places).copied().unwrap_or(at);
    let stranger = rng.choice(STRANGERS.iter()).copied().unwrap_or("x").to_owned();
    match rng.u8(0..6) {
        0..=1 => {
            parts.remove(at);
        }
        2 => {
            let double = parts.get(at).cloned().unwrap_or_default();
            parts.insert(at, format!("{double} "));
        }
        3 => parts.swap(at, other),
        _ => {
            if let Some(part) = parts.get_mut(at) {
                *part = stranger;
            }
        }
    }
    Question {
        text: parts.concat(),
        spoiled: true,
        ..question
    }
}
