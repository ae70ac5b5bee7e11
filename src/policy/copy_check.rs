//! Whether a copy of an output that somebody else wrote (a file in a sandbox, by a command on standard
//! input) is the whole output, told by a probe of its size.

/// What to do with the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyVerdict {
    /// It is as long as it should be.
    Whole,
    /// The probe said nothing that can be read; the copy is used, and the artifact stays the truth.
    Unchecked,
    /// It is cut or grown: it is to be removed, and not to be named to anybody.
    Partial,
}

impl CopyVerdict {
    /// Judges a copy of `size_bytes` by what the probe printed.
    pub fn of(size_bytes: u64, probe: &str) -> Self {
        match probe.trim().parse::<u64>() {
            Ok(found) if found == size_bytes => Self::Whole,
            Ok(_) => Self::Partial,
            Err(_) => Self::Unchecked,
        }
    }

    /// Returns whether the copy may be named to an agent.
    pub fn is_accepted(self) -> bool {
        self != Self::Partial
    }
}
