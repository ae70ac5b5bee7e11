//! The cases that are not run here, each with its reason.

/// Where a case is run, or why it never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// In `tests/integration/read_cases.rs`, over the service and its store.
    ReadCases,
    /// In `tests/integration/http_journal.rs`, over the service and a directory.
    JournalCases,
    /// In this step of the plan.
    Step(u8),
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
/// line), S13-R03 (past the end is stated). Their handlers say so.
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
        reason: "no profile reproduces this system: thresholds and previews by lines are not offered",
        ids: &["OC-P01", "OC-P02", "DA-P01", "OC-T01", "DA-T01", "GO-T01"],
    },
    Listed {
        run_in: Where::Differently,
        reason: "client library only: the service reads its stored decision",
        ids: &["CC-Z02"],
    },
    Listed {
        run_in: Where::Differently,
        reason: "only the threshold predicate holds: a replacement larger than its body is never made",
        ids: &["HER-T03"],
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
        run_in: Where::Differently,
        reason: "the bounds hold, not the exact lengths: the sentences are ours",
        ids: &["DSH-T06"],
    },
    Listed {
        run_in: Where::ReadCases,
        reason: "needs a stored artifact: source ids, sessions and their parents, changed bodies, paths, exclusive creation",
        ids: &[
            "S13-N06", "S13-R06", "S13-R07", "DSH-N13", "DSH-S01", "DSH-S02", "HER-F06",
        ],
    },
    Listed {
        run_in: Where::Step(4),
        reason: "message forms and units of the named profiles",
        ids: &[
            "S13-P01", "S13-P03", "S13-P04", "HER-P03", "HER-P07", "HER-P08", "CC-P01", "CC-P03",
            "CC-P04",
        ],
    },
    Listed {
        run_in: Where::Step(4),
        reason: "thresholds of the named profiles",
        ids: &[
            "S13-T01", "S13-T02", "S13-T03", "S13-T05", "S13-T06", "S13-T07", "S13-T08", "DSH-T02",
            "DSH-T05", "DSH-T07", "DSH-T08", "DSH-T09", "HER-T01", "HER-T02", "HER-T05", "HER-T07",
            "HER-T08", "HER-T14", "HER-T15", "HER-T16", "CC-T03", "CC-T04", "CC-T05", "TC-T01",
            "TC-T02",
        ],
    },
    Listed {
        run_in: Where::Step(4),
        reason: "turn budgets",
        ids: &[
            "HER-B01", "HER-B02", "HER-B03", "HER-B04", "HER-B05", "HER-B07", "CC-B01", "CC-B02",
            "CC-B04", "CC-B05",
        ],
    },
    Listed {
        run_in: Where::Step(4),
        reason: "frozen decisions",
        ids: &["CC-Z03", "CC-Z04", "CC-Z07"],
    },
    Listed {
        run_in: Where::Step(4),
        reason: "what stands in the prompt when a save fails",
        ids: &[
            "S13-R08", "DSH-F01", "DSH-F02", "CC-F01", "HER-F01", "HER-F02", "HER-F03", "HER-S02",
            "GO-F01",
        ],
    },
    Listed {
        run_in: Where::Step(6),
        reason: "reconciliation with owners",
        ids: &["S13-J21", "S13-J23", "S13-J24", "S13-J25"],
    },
    Listed {
        run_in: Where::JournalCases,
        reason: "needs a directory with a link in it",
        ids: &["S13-J28"],
    },
    Listed {
        run_in: Where::Step(7),
        reason: "garbage collection",
        ids: &[
            "S13-G01", "S13-G12", "S13-G13", "HER-G01", "HER-G02", "OC-G02", "S13-G11",
        ],
    },
];
