//! The signatures in an error text, in order.

/// The text with its list of signatures in order: Cassandra takes them from a hash map.
pub fn sorted(message: &str) -> String {
    for start in ["(known type signatures: ", "(can be matched by following signatures: "] {
        let Some((head, rest)) = message.split_once(start) else {
            continue;
        };
        // Signatures hold brackets in pairs, so the list ends at the first that closes without one.
        let Some(end) = closing(rest) else { continue };
        let (list, tail) = rest.split_at(end);
        // `system.` or the keyspace of users' functions.
        let keyspace = list.split_inclusive('.').next().unwrap_or_default();
        let between = format!(", {keyspace}");
        let mut signatures = list
            .split(&between)
            .map(|s| s.trim_start_matches(keyspace))
            .collect::<Vec<_>>();
        signatures.sort_unstable();
        return format!("{head}{start}{keyspace}{}{tail}", signatures.join(&between));
    }
    message.to_owned()
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth < 0).then_some(at)
    })
}
