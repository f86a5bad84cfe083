//! Consistency levels in the profile `cosmos`: how a request's level is interpreted.
//!
//! ```text
//! writes           any level                        the account's: three of four replicas, whatever was requested
//! reads            ONE, LOCAL_ONE                   one replica
//!                  others                           two replicas
//! reads, strict    TWO, THREE, QUORUM,              two replicas of a strong account, else refused
//!                  LOCAL_QUORUM, ALL,
//!                  SERIAL, LOCAL_SERIAL
//!                  ANY, EACH_QUORUM                 refused
//! ```
//! The strict rows are a table of one page of the documentation. Other paragraphs of the same page advise the levels
//! that this table forbids, and the vendor's own tool reads at LOCAL_QUORUM from any account. The words of the refusal
//! are ours; the code is Cassandra's for an invalid level (0x2200). System tables are read at any level.
//!
//! Source: Azure Cosmos DB's documentation, consistency mapping and consistency levels.

use super::Error;
use super::refusal::LevelRefusal;
use crate::engine::terms::request::Request;
use helenus_schema::profile::AccountConsistency;
use helenus_schema::profile::Rules;
use helenus_schema::schema::Table;
use helenus_types::consistency::Consistency;

/// The level that a read is carried out at.
pub(super) fn read(rules: &Rules, asked: Consistency, is_system: bool) -> Result<Consistency, Error> {
    if !rules.profile.is_cosmos() || is_system {
        return Ok(asked);
    }
    let account = rules.account;
    let is_refused = match asked {
        Consistency::One | Consistency::LocalOne => return Ok(Consistency::One),
        // ANY is no level of reads: Cassandra's own check refuses it.
        Consistency::Any => return Ok(asked),
        Consistency::EachQuorum => true,
        _ => account.consistency != AccountConsistency::Strong,
    };
    if account.strict.consistency && is_refused {
        let account = account.consistency;
        return Err(LevelRefusal::Account { asked, account }.into());
    }
    Ok(Consistency::Two)
}

/// The level that a write is carried out at.
pub(super) fn write(rules: &Rules, asked: Consistency) -> Consistency {
    if rules.profile.is_cosmos() {
        Consistency::Quorum
    } else {
        asked
    }
}

/// The level at which an ANN search runs if another one was requested.
pub(super) const fn of_nearest(asked: Consistency) -> Option<Consistency> {
    match asked {
        Consistency::One | Consistency::LocalOne => None,
        Consistency::LocalQuorum => Some(Consistency::LocalOne),
        _ => Some(Consistency::One),
    }
}

/// The levels of a conditional write: `consistency` is that of its commit.
pub(super) fn conditional(request: &Request<'_>, consistency: Consistency, table: &Table) -> Result<(), Error> {
    let serial = request.terms.serial_consistency;
    if serial.is_some_and(|serial| !serial.is_serial()) {
        return Err(LevelRefusal::Serial.into());
    }
    if consistency.is_serial() {
        return Err(LevelRefusal::Commit(consistency).into());
    }
    if consistency == Consistency::EachQuorum {
        let keyspace = request.snapshot.schema.keyspaces.get(&table.keyspace);
        let strategy = keyspace.and_then(|keyspace| keyspace.replication.get("class"));
        if let Some(strategy) = strategy.filter(|class| !class.ends_with(".NetworkTopologyStrategy")) {
            return Err(LevelRefusal::EachQuorum(strategy.clone()).into());
        }
    }
    Ok(())
}

/// The level of a write to a counter table.
pub(super) fn counter(consistency: Consistency, table: &Table) -> Result<(), Error> {
    if consistency == Consistency::Any {
        return Err(LevelRefusal::AnyForCounter(table.name.clone()).into());
    }
    if consistency.is_serial() {
        return Err(LevelRefusal::SerialForCounter.into());
    }
    Ok(())
}

/// Refuses the level that only Cassandra's own tools use, in Cassandra's words.
pub(super) fn refuse_node_local(asked: Consistency) -> Result<(), Error> {
    if asked == Consistency::NodeLocal {
        return Err(LevelRefusal::NodeLocal.into());
    }
    Ok(())
}

/// The level of a single write without a condition.
pub(super) fn unconditional(consistency: Consistency) -> Result<(), Error> {
    if consistency.is_serial() {
        return Err(LevelRefusal::SerialWrite.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_schema::profile::Profile;
    use helenus_schema::profile::{Account, Strict};

    fn rules(consistency: AccountConsistency, strict: bool) -> Rules {
        let strict = Strict {
            consistency: strict,
            ..Strict::default()
        };
        Rules {
            profile: Profile::Cosmos,
            account: Account { consistency, strict },
        }
    }

    #[test]
    fn levels_are_those_of_the_page() {
        let refused = |rules: &Rules| -> Vec<Consistency> {
            let all = Consistency::ALL.into_iter();
            all.filter(|level| read(rules, *level, false).is_err()).collect()
        };
        for account in AccountConsistency::ALL {
            assert_eq!(refused(&rules(account, false)), []);
            let strict = rules(account, true);
            let expected = if account == AccountConsistency::Strong { 1 } else { 8 };
            assert_eq!(refused(&strict).len(), expected, "{account:?}");
            assert_eq!(read(&strict, Consistency::LocalOne, false), Ok(Consistency::One));
            assert_eq!(read(&strict, Consistency::Quorum, true), Ok(Consistency::Quorum));
            assert_eq!(write(&strict, Consistency::All), Consistency::Quorum);
        }
        let lenient = rules(AccountConsistency::Session, false);
        assert_eq!(read(&lenient, Consistency::LocalQuorum, false), Ok(Consistency::Two));
        let cassandra = Rules::default();
        for level in Consistency::ALL {
            assert_eq!(
                (read(&cassandra, level, false), write(&cassandra, level)),
                (Ok(level), level)
            );
        }
    }
}
