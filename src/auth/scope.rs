//! What a principal may do, in five words.

use std::fmt;
use std::str::FromStr;

/// One permission. The set is closed: an unknown word in a configuration is an error, never ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Store outputs.
    Save,
    /// Read, search and list them.
    Read,
    /// Claim artifacts for a memory, and give claims back.
    Lease,
    /// Collect and erase.
    Gc,
    /// What an operator does by hand against the rules of the others.
    Admin,
}

impl Scope {
    /// Every scope, in the order in which sets are written.
    pub const ALL: [Self; 5] = [Self::Save, Self::Read, Self::Lease, Self::Gc, Self::Admin];

    /// Returns the word of configurations and of `WWW-Authenticate`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Read => "read",
            Self::Lease => "lease",
            Self::Gc => "gc",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word names no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such scope; the scopes are save, read, lease, gc, admin")]
pub struct UnknownScopeError;

impl FromStr for Scope {
    type Err = UnknownScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or(UnknownScopeError)
    }
}

/// A set of scopes. None implies another: `admin` alone neither reads nor saves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns the set of all scopes.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Returns whether `scope` is in the set.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the set as one byte, a bit for each scope in the order of [`Scope::ALL`]; stable, since
    /// tokens hold it.
    pub(in crate::auth) const fn bits(self) -> u8 {
        self.0
    }

    /// Reads such a byte; `None` where it holds a bit of no scope.
    pub(in crate::auth) fn from_bits(bits: u8) -> Option<Self> {
        (bits & !Self::all().0 == 0).then_some(Self(bits))
    }

    /// Returns what is in both sets.
    pub(in crate::auth) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the members, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        let is_member = move |scope: &Scope| self.contains(*scope);
        Scope::ALL.into_iter().filter(is_member)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let with = |set: u8, scope: Scope| set | scope.bit();
        Self(scopes.into_iter().fold(0, with))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_word_is_read_as_written_and_nothing_else_is() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        for other in ["", "READ", "read ", "*", "read,save", "write"] {
            assert_eq!(other.parse::<Scope>(), Err(UnknownScopeError), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_set_holds_exactly_what_was_put_in(bits in 0_u8..32) {
            let chosen: Vec<Scope> = Scope::ALL
                .into_iter()
                .enumerate()
                .filter(|(place, _)| bits & 1 << place != 0)
                .map(|(_, scope)| scope)
                .collect();
            let set: Scopes = chosen.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), chosen.clone());
            prop_assert_eq!(set.is_empty(), chosen.is_empty());
            for scope in Scope::ALL {
                prop_assert_eq!(set.contains(scope), chosen.contains(&scope));
            }
        }
    }
}
