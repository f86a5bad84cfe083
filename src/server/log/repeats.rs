//! Bounds the warnings and errors of one place in the program: a store that fails refuses thousands of requests a second, and each
//! of these would be a line.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use helenus_base::clock::Clock;
use helenus_base::metrics;

/// Most lines of a place in each [`WINDOW`]. One more says that others are left out.
const LINES_MAX: u32 = 10;

/// How long a place's lines are counted together.
const WINDOW: Duration = Duration::from_secs(1);

/// The lines of one place.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// When the first of them came.
    since: Duration,
    lines: u32,
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Printed,
    /// The first of a window that is left out.
    FirstLeftOut,
    LeftOut,
}

impl Place {
    fn turn(&mut self, now: Duration) -> Turn {
        if self.lines == 0 || now.saturating_sub(self.since) >= WINDOW {
            *self = Self { since: now, lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        match self.lines.cmp(&(LINES_MAX + 1)) {
            std::cmp::Ordering::Less => Turn::Printed,
            std::cmp::Ordering::Equal => Turn::FirstLeftOut,
            std::cmp::Ordering::Greater => Turn::LeftOut,
        }
    }
}

/// Leaves out warnings and errors of a place in the program that has printed ten of them within a second. They are counted by
/// [`metrics::LOG_LINES_LEFT_OUT`].
#[derive(Debug)]
pub struct Repeats {
    clock: Clock,
    places: Mutex<HashMap<Identifier, Place>>,
}

impl Repeats {
    /// Bounds lines by this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            places: Mutex::default(),
        }
    }

    fn turn(&self, place: Identifier) -> Turn {
        let now = self.clock.monotonic();
        let places = self.places.lock();
        let mut places = places.unwrap_or_else(std::sync::PoisonError::into_inner);
        places.entry(place).or_default().turn(now)
    }
}

impl<S: Subscriber> Layer<S> for Repeats {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return true;
        }
        let turn = self.turn(metadata.callsite());
        if turn == Turn::Printed {
            return true;
        }
        metrics::LOG_LINES_LEFT_OUT.increment();
        if turn == Turn::FirstLeftOut {
            // An event of its own place, which this layer sees too.
            tracing::warn!(
                of = metadata.target(),
                "more lines like the one before are left out until a second has passed"
            );
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::super::tests::Sink;
    use super::*;

    #[test]
    fn a_place_prints_ten_lines_a_second_and_says_that_more_are_left_out() {
        let sink = Sink::default();
        let its_sink = sink.clone();
        let clock = Clock::manual(1);
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || its_sink.clone())
            .finish()
            .with(Repeats::new(clock.clone()));
        let before = metrics::LOG_LINES_LEFT_OUT.value();
        tracing::subscriber::with_default(subscriber, || {
            for second in 0..3 {
                for number in 0..25 {
                    tracing::warn!(second, number, "refused");
                    tracing::info!(second, number, "told");
                }
                tracing::error!("another place");
                clock.advance(WINDOW);
            }
        });
        let text = sink.text();
        let lines = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!(lines("refused"), 3 * 10, "{text}");
        assert_eq!(lines("told"), 3 * 25, "{text}");
        assert_eq!(lines("another place"), 3, "{text}");
        assert!(metrics::LOG_LINES_LEFT_OUT.value() - before >= 3 * 15);
    }

    #[test]
    fn the_first_line_that_is_left_out_is_told() {
        let mut place = Place::default();
        let turns: Vec<Turn> = (0..12).map(|_| place.turn(Duration::ZERO)).collect();
        assert_eq!(turns[..10], [Turn::Printed; 10]);
        assert_eq!(turns[10..], [Turn::FirstLeftOut, Turn::LeftOut]);
        assert_eq!(place.turn(WINDOW), Turn::Printed);
    }
}
