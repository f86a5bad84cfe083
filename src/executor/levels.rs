//! Consistency levels in the profile `cosmos`: what a request's level is taken for.
//!
//! ```text
//! writes           any level                        the account's: three of four replicas, whatever was asked for
//! reads            ONE, LOCAL_ONE                   one replica
//!                  others                           two replicas
//! reads, strict    TWO, THREE, QUORUM, LOCAL_QUORUM, ALL, SERIAL, LOCAL_SERIAL    two replicas of a strong account, else refused
//!                  ANY, EACH_QUORUM                 refused
//! ```
//! The strict rows are a table of one page of the documentation; other paragraphs of the same page advise the levels that it forbids, and
//! the vendor's own tool reads at LOCAL_QUORUM from any account. The words of the refusal are ours, the code is Cassandra's for a level
//! that cannot be (0x2200). System tables are read at any level.
//!
//! Source: Azure Cosmos DB's documentation, consistency mapping and consistency levels.

use super::Error;
use crate::partition::Consistency;
use crate::profile::AccountConsistency;
use crate::profile::Rules;

/// The level that a read is carried out at.
pub(super) fn read(rules: &Rules, asked: Consistency, is_system: bool) -> Result<Consistency, Error> {
    if !rules.profile.is_cosmos() || is_system {
        return Ok(asked);
    }
    let account = rules.account;
    let is_refused = match asked {
        Consistency::One | Consistency::LocalOne => return Ok(Consistency::One),
        // Not for reads in Cassandra either, which says so itself.
        Consistency::Any => return Ok(asked),
        Consistency::EachQuorum => true,
        _ => account.consistency != AccountConsistency::Strong,
    };
    if account.strict.consistency && is_refused {
        return Err(Error::Invalid(format!(
            "Consistency level {} is not allowed for reads of an account whose consistency is {}",
            asked.name(),
            account.consistency.name()
        )));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::profile::{Account, Strict};

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
