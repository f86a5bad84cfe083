//! Settings of a node of a fleet.

use super::setting::{Setting, setting};

/// Where other nodes reach it.
pub(super) const LISTEN: Setting = setting(
    "fleet-listen",
    "ADDRESS:PORT",
    None,
    "Serve as a node of a fleet: several servers over one bucket, which find each other by it; the other nodes connect to this address \
     [default: alone]",
);

/// Its name.
pub(super) const NODE: Setting = setting(
    "node",
    "NAME",
    None,
    "The name of this node of a fleet; under the same name it is the same node for drivers [default: fleet-listen]",
);
