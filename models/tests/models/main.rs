//! Every scenario holds, and every rule is missed.
//!
//! `SPILLBOX_MODEL_SCENARIOS=all`, or names with commas between them, chooses the scenarios; without
//! it the small ones run. `--nocapture` prints both tables.

mod document;
mod rules;
mod scenarios;
