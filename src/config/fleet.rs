//! Interprets the settings of a node of a fleet.

use std::net::SocketAddr;

use super::{ConfigError, Values};
use helenus_storage::storage::Url;

/// Longest name of a node, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What a node of a fleet cannot do yet, by its setting.
const ALONE: [&str; 3] = ["tables-listen", "tables-dev", "fault-plan"];

/// How a node takes part in a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOptions {
    /// The address for other nodes.
    pub listen: SocketAddr,
    /// The name of the node. It has the same id at every start under the same name.
    pub name: String,
}

/// How this server takes part in a fleet. `None` means that it is alone.
pub(super) fn fleet(values: &Values) -> Result<Option<FleetOptions>, ConfigError> {
    let Some(listen) = values.addresses("fleet-listen")?.first().copied() else {
        return match values.text("node") {
            None => Ok(None),
            Some(_) => Err(ConfigError::Together("node needs fleet-listen".to_owned())),
        };
    };
    if listen.ip().is_unspecified() {
        let what = "expected an address by which the other nodes reach this one, not all addresses of the machine";
        return Err(values.wrong("fleet-listen", &listen.to_string(), what));
    }
    let data = values.text("data").unwrap_or_default();
    if !matches!(data.parse::<Url>(), Ok(Url::Bucket(_))) {
        return Err(ConfigError::Together(format!(
            "fleet-listen needs data in a bucket, which its nodes share: data = {data} is this server's own"
        )));
    }
    let is_given = |name: &&str| {
        values
            .text(name)
            .is_some_and(|text| !text.is_empty() && text != "false")
    };
    let other = ALONE.iter().find(|name| is_given(name)).copied();
    let other = other.or_else(|| values.text("nodes").filter(|nodes| *nodes != "1").map(|_| "nodes"));
    if let Some(other) = other {
        return Err(ConfigError::Together(format!(
            "{other} is for a server that is alone, not for a node of a fleet: leave it or fleet-listen out"
        )));
    }
    if values.text("profile") == Some("cosmos") && values.text("account-key").is_none() {
        let what = "a node of a fleet with the profile cosmos needs account-key: without it each node would draw a key of its own";
        return Err(ConfigError::Together(what.to_owned()));
    }
    let name = values.text("node").map_or_else(|| listen.to_string(), str::to_owned);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let what = "expected 1 to 255 bytes without control characters";
        return Err(values.wrong("node", &name, what));
    }
    Ok(Some(FleetOptions { listen, name }))
}

#[cfg(test)]
mod tests {
    use super::super::Values;

    fn parsed(settings: &[(&str, &str)]) -> Result<Option<super::FleetOptions>, String> {
        let settings = settings.iter().map(|(name, value)| (*name, vec![*value]));
        let settings: Vec<(&str, Vec<&str>)> = settings.collect();
        let given = settings.iter().map(|(name, values)| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            ((*name).to_owned(), values)
        });
        super::fleet(&Values::gather(None, &given.collect(), |_| None).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_node_is_named_after_its_address_or_as_it_is_told() {
        let bucket = ("data", "s3://bucket/prefix");
        let fleet = parsed(&[bucket, ("fleet-listen", "127.0.0.1:7000")]).unwrap().unwrap();
        assert_eq!(fleet.name, "127.0.0.1:7000");
        let named = [bucket, ("fleet-listen", "127.0.0.1:7000"), ("node", "a")];
        assert_eq!(parsed(&named).unwrap().unwrap().name, "a");
        assert_eq!(parsed(&[bucket]).unwrap(), None);
    }

    #[test]
    fn what_a_node_cannot_do_is_refused_by_name() {
        let (bucket, listen) = (("data", "s3://bucket/prefix"), ("fleet-listen", "127.0.0.1:7000"));
        for (settings, named) in [
            (vec![("data", "memory:"), listen], "data in a bucket"),
            (
                vec![bucket, ("fleet-listen", "0.0.0.0:7000")],
                "by which the other nodes reach",
            ),
            (vec![bucket, ("node", "a")], "node needs fleet-listen"),
            (vec![bucket, listen, ("nodes", "4")], "nodes is for"),
            (vec![bucket, listen, ("fault-plan", "faults.toml")], "fault-plan is for"),
            (vec![bucket, listen, ("profile", "cosmos")], "needs account-key"),
            (vec![bucket, listen, ("node", "a\u{7}")], "node"),
        ] {
            let refused = parsed(&settings).unwrap_err();
            assert!(refused.contains(named), "{refused}");
        }
    }
}
