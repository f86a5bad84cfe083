//! ADD IDENTITY and DROP IDENTITY: which role a client certificate stands for.

use crate::ast::{AddIdentity, DropIdentity, Statement};
use crate::input::{Input, Parsed, enter, expect, expect_all};
use crate::keyword::Kind;
use crate::name::identity;

/// `add_identity = "ADD" "IDENTITY" if_not_exists identity "TO" "ROLE" identity`
pub(super) fn add_identity(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("add_identity");
    let (input, ()) = expect(input.skip(1), Kind::Identity)?;
    let (input, if_not_exists) = super::if_not_exists(input)?;
    let (input, identity_text) = identity(input)?;
    let (input, ()) = expect_all(input, &[Kind::To, Kind::Role])?;
    let (input, role) = identity(input)?;
    Ok((
        input,
        Statement::AddIdentity(AddIdentity {
            identity: identity_text,
            if_not_exists,
            role,
        }),
    ))
}

/// `drop_identity = "DROP" "IDENTITY" if_exists identity`
pub(super) fn drop_identity(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_identity");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    super::map(identity(input), |identity| {
        Statement::DropIdentity(DropIdentity { identity, if_exists })
    })
}
