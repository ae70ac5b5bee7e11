//! How much a session and a tenant may have stored. Pure: what is used is a parameter.
//!
//! Both quotas are soft: nothing counts all replicas at once, so they can be overshot
//! (`docs/OPERATIONS.md`), and nothing is ever evicted to make room.

use std::fmt;

/// The quotas in force; `None` is any amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Bytes of one session.
    pub session_bytes: Option<u64>,
    /// Bytes of one tenant.
    pub tenant_bytes: Option<u64>,
}

/// What is known to be stored already, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// By the session.
    pub session_bytes: u64,
    /// By the tenant.
    pub tenant_bytes: u64,
}

/// Whose quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaScope {
    /// The session's.
    Session,
    /// The tenant's.
    Tenant,
}

impl QuotaScope {
    /// Returns the setting that the quota comes from.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Session => "limits.session_bytes",
            Self::Tenant => "limits.tenant_bytes",
        }
    }
}

impl fmt::Display for QuotaScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Tenant => "tenant",
        })
    }
}

/// A body does not fit into a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {scope} has stored {used_bytes} of the {limit_bytes} bytes that it may ({}), and this needs {more_bytes}",
    scope.setting()
)]
pub struct QuotaExceededError {
    /// Whose quota.
    pub scope: QuotaScope,
    /// What is used of it.
    pub used_bytes: u64,
    /// The quota.
    pub limit_bytes: u64,
    /// What was to be added.
    pub more_bytes: u64,
}

impl Quotas {
    /// Returns whether there is no quota at all.
    pub fn are_unlimited(&self) -> bool {
        self.session_bytes.is_none() && self.tenant_bytes.is_none()
    }

    /// Decides whether `more_bytes` may be stored on top of `used`; the session's quota speaks first.
    ///
    /// # Errors
    /// A quota would be passed.
    pub fn check(&self, used: Used, more_bytes: u64) -> Result<(), QuotaExceededError> {
        let of = |scope, limit: Option<u64>, used_bytes: u64| match limit {
            Some(limit_bytes) if used_bytes.saturating_add(more_bytes) > limit_bytes => {
                Err(QuotaExceededError {
                    scope,
                    used_bytes,
                    limit_bytes,
                    more_bytes,
                })
            }
            Some(_) | None => Ok(()),
        };
        of(QuotaScope::Session, self.session_bytes, used.session_bytes)?;
        of(QuotaScope::Tenant, self.tenant_bytes, used.tenant_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(None, None, u64::MAX, u64::MAX, u64::MAX, None)]
    #[case::fits_exactly(Some(10), None, 7, 0, 3, None)]
    #[case::one_too_many(Some(10), None, 7, 0, 4, Some(QuotaScope::Session))]
    #[case::of_the_tenant(Some(10), Some(10), 0, 10, 1, Some(QuotaScope::Tenant))]
    #[case::the_session_first(Some(1), Some(1), 1, 1, 1, Some(QuotaScope::Session))]
    #[case::nothing_more_always_fits(Some(10), Some(10), 10, 10, 0, None)]
    #[case::sums_do_not_wrap(Some(10), None, u64::MAX, 0, 1, Some(QuotaScope::Session))]
    fn a_quota_is_reached_at_its_last_byte(
        #[case] session_bytes: Option<u64>,
        #[case] tenant_bytes: Option<u64>,
        #[case] used_session: u64,
        #[case] used_tenant: u64,
        #[case] more: u64,
        #[case] refused: Option<QuotaScope>,
    ) {
        let quotas = Quotas {
            session_bytes,
            tenant_bytes,
        };
        let used = Used {
            session_bytes: used_session,
            tenant_bytes: used_tenant,
        };
        let scope = quotas.check(used, more).err().map(|error| error.scope);
        assert_eq!(scope, refused);
    }

    #[test]
    fn the_refusal_names_the_setting() {
        let quotas = Quotas {
            session_bytes: Some(10),
            tenant_bytes: None,
        };
        let text = quotas.check(Used::default(), 11).unwrap_err().to_string();
        assert!(text.contains("limits.session_bytes") && text.contains("0 of the 10 bytes"));
    }

    proptest! {
        #[test]
        fn what_is_accepted_fits(limit: u64, used: u64, more: u64) {
            let quotas = Quotas { session_bytes: Some(limit), tenant_bytes: None };
            let used_both = Used { session_bytes: used, tenant_bytes: used };
            let fits = u128::from(used) + u128::from(more) <= u128::from(limit);
            prop_assert_eq!(quotas.check(used_both, more).is_ok(), fits);
        }
    }
}
