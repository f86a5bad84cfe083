//! The error that a client receives when its request exceeds the budget.
//!
//! Retry policies find the time to wait in the text: the public Java policy for Cosmos splits it at commas, then at
//! `=`, and reads the field `RetryAfterMs`; Go programs look for `TooManyRequests (429)` and read the second field.
//! Both fields keep the positions that they have in the captured text, which also has an opening quote after `details=`
//! and no closing one.
//!
//! Sources: the message as public samples of Azure Cosmos DB for Apache Cassandra show it; the public retry policy
//! extension for the Java driver.

use std::time::Duration;

use uuid::Uuid;

/// The charge that a refused request reports; the budget pays nothing for it.
pub const REFUSED_CHARGE: super::RequestUnits = super::RequestUnits::hundredths(38);

/// Whole milliseconds, rounded up; at least 1, at most what an `int` holds.
#[must_use]
pub fn retry_after_millis(retry_after: Duration) -> i32 {
    let millis = retry_after.as_micros().div_ceil(1000);
    i32::try_from(millis).unwrap_or(i32::MAX).max(1)
}

/// The id of a refused request, made from a random number; the client may quote it.
#[must_use]
pub fn activity_id(random: u128) -> Uuid {
    uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

/// The message of error 0x1001.
#[must_use]
pub fn refusal_text(activity: Uuid, retry_after: Duration) -> String {
    let millis = retry_after_millis(retry_after);
    format!(
        "Request rate is large: ActivityID={activity}, RetryAfterMs={millis}, Additional details='Response status code does not \
         indicate success: TooManyRequests (429); Substatus: 3200; ActivityId: {activity}; Reason: ({{\n  \"Errors\": [\n    \
         \"Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. \
         Learn more: http://aka.ms/cosmosdb-error-429\"\n  ]\n}});"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields between commas; key and value on both sides of `=`; both trimmed; the value must be a number and nothing
    /// else.
    fn as_the_java_policy(text: &str) -> Option<i32> {
        let fields = text.split(',').map(|field| field.split('=').collect::<Vec<_>>());
        let mut pairs = fields.filter(|parts| parts.len() == 2);
        let found = pairs.find(|parts| parts[0].trim() == "RetryAfterMs")?;
        found[1].trim().parse().ok()
    }

    /// The throttle's mark anywhere in the text; then the second field, after its `=`.
    fn as_the_go_programs(text: &str) -> Option<i32> {
        if !text.contains("TooManyRequests (429)") {
            return None;
        }
        text.split(',').nth(1)?.split('=').nth(1)?.trim().parse().ok()
    }

    /// Digits after `RetryAfterMs=`.
    fn as_the_migration_tool(text: &str) -> Option<i32> {
        let (_, behind) = text.split_once("RetryAfterMs=")?;
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    #[test]
    fn the_published_policies_find_the_time_to_wait() {
        for (wait, millis) in [
            (Duration::ZERO, 1),
            (Duration::from_micros(303_001), 304),
            (Duration::from_millis(500), 500),
        ] {
            let text = refusal_text(activity_id(7), wait);
            assert_eq!(as_the_java_policy(&text), Some(millis), "{text}");
            assert_eq!(as_the_go_programs(&text), Some(millis));
            assert_eq!(as_the_migration_tool(&text), Some(millis));
        }
    }

    #[test]
    fn the_text_is_the_one_that_was_captured() {
        let text = refusal_text(activity_id(u128::MAX), Duration::from_millis(304));
        let activity = "ffffffff-ffff-4fff-bfff-ffffffffffff";
        let expected = [
            "Request rate is large: ActivityID=@, RetryAfterMs=304, Additional details='Response status code does not indicate \
             success: TooManyRequests (429); Substatus: 3200; ActivityId: @; Reason: ({",
            "  \"Errors\": [",
            "    \"Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request \
             later. Learn more: http://aka.ms/cosmosdb-error-429\"",
            "  ]",
            "});",
        ];
        assert_eq!(text, expected.join("\n").replace('@', activity));
    }
}
