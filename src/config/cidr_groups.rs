//! Reads the setting of groups of addresses.

use std::collections::{BTreeMap, BTreeSet};

use super::cidr_settings::GROUPS;
use super::{ConfigError, Values};
use crate::server::Options;
use helenus_schema::roles::{Cidr, CidrGroups};

/// Most ranges of addresses; a start stores all of them in one batch of rows.
const CIDRS_MAX: usize = 10_000;

/// The groups. `None` means addresses are not checked.
pub(super) fn cidr_groups(values: &Values, server: &Options) -> Result<Option<CidrGroups>, ConfigError> {
    let name = GROUPS.name;
    let parts = || {
        values
            .all(name)
            .iter()
            .flat_map(|value| value.split(','))
            .map(str::trim)
    };
    let Some(first) = parts().next() else {
        return Ok(None);
    };
    if server.credentials.is_none() || server.profile.is_cosmos() {
        return Err(ConfigError::Together(
            "cidr-groups needs the roles of login or user".into(),
        ));
    }
    if parts().count() > CIDRS_MAX {
        return Err(values.wrong(name, first, format!("more than {CIDRS_MAX} ranges of addresses")));
    }
    let mut groups: BTreeMap<String, BTreeSet<Cidr>> = BTreeMap::new();
    let mut group = "";
    for part in parts() {
        let range = match part.split_once('=') {
            Some((name, range)) => {
                group = name.trim();
                range.trim()
            }
            None => part,
        };
        if group.is_empty() {
            let what = "expected NAME=CIDR, such as office=10.0.0.0/8";
            return Err(values.wrong(name, part, what));
        }
        let range = range.parse().map_err(|error| values.wrong(name, part, error))?;
        groups.entry(group.to_owned()).or_default().insert(range);
    }
    Ok(Some(CidrGroups::new(groups)))
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn groups(given: &[&str], login: bool) -> Result<Option<CidrGroups>, String> {
        let given = given.iter().map(|value| (*value).to_owned()).collect();
        let given = [
            (GROUPS.name.to_owned(), given),
            ("login".to_owned(), vec![login.to_string()]),
        ];
        let values = Values::gather(None, &given.into_iter().collect(), |_| None).unwrap();
        let config = Config::new(&values).map_err(|error| error.to_string());
        config.map(|config| config.cidr_groups)
    }

    #[test]
    fn a_group_may_be_given_in_one_value_or_in_several() {
        let one = groups(&["office=10.0.0.0/8, 192.168.7.9/24,home=::1/128"], true);
        let several = groups(&["home=::1/128", "office=192.168.7.0/24", "office=10.0.0.0/8"], true);
        let found = one.clone().unwrap().unwrap();
        let names: Vec<_> = found
            .ranges()
            .iter()
            .map(|(name, of)| (name.as_str(), of.len()))
            .collect();
        assert_eq!(names, [("home", 1), ("office", 2)]);
        assert_eq!(one, several);
        assert_eq!(groups(&[], true), Ok(None));
    }

    #[test]
    fn what_names_no_group_or_no_range_is_refused() {
        for (given, expected) in [
            ("10.0.0.0/8", "expected NAME=CIDR"),
            ("=10.0.0.0/8", "expected NAME=CIDR"),
            ("office=", "is not a valid CIDR String"),
            ("office=10.0.0.0/8,", "is not a valid CIDR String"),
            ("office=10.0.0.0", "10.0.0.0 is not a valid CIDR String"),
            ("office=10.0.0.0/33", "10.0.0.0/33 is not a valid CIDR String"),
        ] {
            let text = groups(&[given], true).unwrap_err();
            assert!(text.contains(expected), "{given}: {text}");
        }
        let text = groups(&["office=10.0.0.0/8"], false).unwrap_err();
        assert!(text.contains("needs the roles of login"), "{text}");
    }
}
