//! What callers can do, as a closed list: one word for each in the audit stream, and the scope that it
//! needs. A route cannot be registered without one ([`crate::http::route`]), and a new one cannot be
//! added without deciding its scope.

use crate::auth::Scope;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $word:literal needs $scope:ident,)+) => {
        /// One thing that a caller can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation { $($(#[$doc])* $name,)+ }

        impl Operation {
            /// Every operation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns its word in the audit stream, stable for ever.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// Returns the scope without which it is refused.
            pub const fn scope(self) -> Scope {
                match self { $(Self::$name => Scope::$scope,)+ }
            }
        }
    };
}

operations! {
    /// Ends a prepared lease.
    Abort = "abort" needs Lease,
    /// Makes a URL that reads one artifact.
    Capability = "capability" needs Read,
    /// Ends `suspect`.
    ClearJournal = "clear_journal" needs Admin,
    /// Makes a lease hold.
    Commit = "commit" needs Lease,
    /// Erases an artifact.
    Erase = "erase" needs Gc,
    /// Moves a lease's end.
    Extend = "extend" needs Lease,
    /// Applies a plan.
    GcApply = "gc_apply" needs Gc,
    /// Makes a plan of what may go.
    GcPlan = "gc_plan" needs Gc,
    /// What the last application of a plan did.
    GcReport = "gc_report" needs Gc,
    /// What a plan says.
    GcShowPlan = "gc_show_plan" needs Gc,
    /// One lease.
    GetLease = "get_lease" needs Read,
    /// Searches an artifact.
    Grep = "grep" needs Read,
    /// Keeps an artifact without end.
    Hold = "hold" needs Lease,
    /// Where a journal ends.
    Journal = "journal" needs Read,
    /// Ends a hold.
    Lift = "lift" needs Lease,
    /// A page of an artifact's lines.
    Lines = "lines" needs Read,
    /// A session's artifacts.
    List = "list" needs Read,
    /// A session's leases.
    ListLeases = "list_leases" needs Read,
    /// One message of the Model Context Protocol. Its tools need the scopes of their own operations.
    Mcp = "mcp" needs Read,
    /// Makes a token for one session.
    MintToken = "mint_token" needs Read,
    /// What stands out in an artifact.
    Outline = "outline" needs Read,
    /// Claims an artifact.
    Prepare = "prepare" needs Lease,
    /// The bytes of an artifact, or their headers.
    Read = "read" needs Read,
    /// Finds out what became of a lease.
    Reconcile = "reconcile" needs Lease,
    /// What a memory may keep of an artifact.
    Reference = "reference" needs Read,
    /// Ends a committed lease.
    Release = "release" needs Lease,
    /// The text that stands in the prompt.
    Replacement = "replacement" needs Read,
    /// Makes an unknown outcome final.
    Resolve = "resolve" needs Lease,
    /// Decides one tool result, and stores it where it is too large.
    Result = "result" needs Save,
    /// Stores an output.
    Save = "save" needs Save,
    /// What is known of an artifact.
    Stat = "stat" needs Read,
    /// Decides the results of a turn together.
    Turn = "turn" needs Save,
    /// What was read back of a session.
    Usage = "usage" needs Read,
    /// Walks a whole journal.
    VerifyJournal = "verify_journal" needs Read,
}

impl Operation {
    /// Returns whether it makes a credential.
    pub(crate) const fn mints(self) -> bool {
        matches!(self, Self::Capability | Self::MintToken)
    }

    /// Returns whether all that it does is to read one artifact.
    pub const fn reads_an_artifact(self) -> bool {
        self.reads_back() || matches!(self, Self::Reference | Self::Stat)
    }

    /// Returns whether its reply is made of an artifact's content, which goes back into a prompt.
    pub(crate) const fn reads_back(self) -> bool {
        matches!(
            self,
            Self::Grep | Self::Lines | Self::Outline | Self::Read | Self::Replacement
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_alphabetical_and_unique() {
        let words: Vec<_> = Operation::ALL.iter().map(|known| known.as_str()).collect();
        let mut sorted = words.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(words, sorted);
    }
}
