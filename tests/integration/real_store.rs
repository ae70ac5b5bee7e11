//! Every suite over a real endpoint, named by the environment; without one they say so and return.
//!
//! `scripts/stores.sh` starts servers and prints these settings, `scripts/attest-my-bucket.sh` makes
//! them for any bucket:
//!
//! | Variable | Meaning |
//! |---|---|
//! | `SPILLBOX_TEST_STORE` | a name for the reports |
//! | `SPILLBOX_TEST_ENDPOINT` | its URL; absent: nothing runs |
//! | `SPILLBOX_TEST_BUCKET` | a bucket |
//! | `SPILLBOX_TEST_VERSIONED_BUCKET` | one whose versioning is enabled; optional |
//! | `SPILLBOX_TEST_PREFIX` | where in both the suites work; optional |
//! | `SPILLBOX_TEST_CONTENDERS` | writers of one key in every suite, savers included; 32 |
//! | `SPILLBOX_TEST_LACKS`, `SPILLBOX_TEST_VERSIONED_LACKS` | capabilities that the server does not have in such a bucket, by the names of `store::testing::Capabilities`; `unknown`: attestation finds it out |
//! | `SPILLBOX_TEST_EXPECT` | `refused:CODE,…`: attestation must refuse the store with a finding of such a code, and no other suite runs |
//! | `SPILLBOX_TEST_ONLY` | part of a name: only these cases of the conformance suite |
//! | `SPILLBOX_TEST_SWITCHES` | set: the suites may make buckets of their own and switch their versioning |
//! | `SPILLBOX_TEST_ATTESTATIONS` | a directory: attestations are kept there as JSON, with `SPILLBOX_TEST_STORE_VERSION` |
//!
//! Credentials and region come from the usual `AWS_…` variables. Each suite works below a prefix of
//! its own and removes what it made. A suite that passed prints `real store NAME: N cases passed`.

mod attestation;
mod collections;
mod conformance;
mod endpoint;
mod journal_race;
mod saves;
mod suite;
