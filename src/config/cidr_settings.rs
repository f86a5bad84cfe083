//! The setting of groups of addresses, for `ACCESS FROM CIDRS`.

use super::setting::Setting;

/// The groups.
pub(super) const GROUPS: Setting = Setting {
    name: "cidr-groups",
    value: "NAME=CIDR,…",
    default: None,
    repeatable: true,
    help: "Groups of addresses for ACCESS FROM CIDRS, and that it is checked: office=10.0.0.0/8,192.168.7.0/24; \
           they replace those of system_auth.cidr_groups; needs login [default: not checked]",
};
