//! The cases that are not run here, each with its reason.

/// Where a case is run, or why it never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// In `tests/integration/read_cases.rs`, over the service and its store.
    ReadCases,
    /// In `tests/integration/http_journal.rs`, over the service and a directory.
    JournalCases,
    /// Nowhere: decided differently.
    Differently,
}

/// Cases with one reason.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) run_in: Where,
    pub(super) reason: &'static str,
    pub(super) ids: &'static [&'static str],
}

/// Finds the entry of a case.
pub(super) fn find(id: &str) -> Option<&'static Listed> {
    LISTED.iter().find(|entry| entry.ids.contains(&id))
}

/// Cases that are decided differently but still run, in our form: S13-P02 and S13-P06 (hazards, hold
/// inverted), S13-P05 (sizes are bytes), S13-P09 (a long summary is clipped), S13-R02 (`a\n` has one
/// line), S13-R03 (past the end is stated), HER-T03 (the predicate only: no replacement is larger than its
/// body), HER-B04, CC-T05 and HER-F01 (hazards, hold inverted). Their handlers say so.
pub(super) const LISTED: &[Listed] = &[
    Listed {
        run_in: Where::Differently,
        reason: "no caller text stands in a key: ids are random, nothing is numbered, and the encoder serves file names of downloads only",
        ids: &[
            "S13-N02", "DSH-N11", "HER-N01", "HER-N03", "HER-N07", "HER-N09", "TC-N01",
        ],
    },
    Listed {
        run_in: Where::Differently,
        reason: "state is kept out of band; nothing is ever read off a replacement's text",
        ids: &["HER-N11"],
    },
    Listed {
        run_in: Where::Differently,
        reason: "the body stays raw: the digest is of the bytes that the tool printed",
        ids: &["HER-P12", "HER-P13"],
    },
    Listed {
        run_in: Where::Differently,
        reason: "client library only: the service reads its stored decision",
        ids: &["CC-Z02"],
    },
    Listed {
        run_in: Where::Differently,
        reason: "the claim's digest is compared with the manifest; a changed body is found by reads and by scrub",
        ids: &["S13-J27"],
    },
    Listed {
        run_in: Where::Differently,
        reason: "the pure function takes any value from 0 on, the configuration has floors; grace runs from the last reference and an expired lease ends 15 minutes late",
        ids: &["S13-G03", "S13-G04", "S13-G09", "S13-G14"],
    },
    Listed {
        run_in: Where::ReadCases,
        reason: "needs a stored artifact: source ids, sessions and their parents, changed bodies, paths, exclusive creation",
        ids: &[
            "S13-N06", "S13-R06", "S13-R07", "DSH-N13", "DSH-S01", "DSH-S02", "HER-F06",
        ],
    },
    Listed {
        run_in: Where::JournalCases,
        reason: "needs a directory with a link in it",
        ids: &["S13-J28"],
    },
];
