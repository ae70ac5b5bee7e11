//! `spillbox owner check`: an owner's implementer tries an own endpoint against the contract.
//!
//! Exit status: 0 every check passed; 1 the endpoint cannot be asked at all; 2 wrong usage; 3 some checks
//! could not run (`--no-publication`), all others passed; 4 a rule is broken.

use serde_json::json;

use crate::artifact::escape::escape_field;
use crate::cli::failure::{EXIT_DONE, EXIT_FAILURE, EXIT_REFUSED, EXIT_RESTRICTED, Failure, Stop};
use crate::cli::output;
use crate::clock::{Clock, SystemClock};
use crate::ids::SystemIds;
use crate::lease::owner::OwnerReply;
use crate::owner_client::Endpoint;
use crate::owner_client::check::{Check, CheckOptions, CheckOutcome, check};

/// Rounds of every race: enough for a window of a millisecond to be met.
const ROUNDS: usize = 20;

/// Work on owners of leases.
#[derive(Debug, clap::Args)]
pub struct OwnerArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: OwnerCommand,
}

/// The commands about owners.
#[derive(Debug, clap::Subcommand)]
pub enum OwnerCommand {
    /// Try a test endpoint against the contract (docs/OWNERS.md): one line for each rule
    Check(CheckArgs),
}

/// `spillbox owner check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The base URL, as `base_url` of the settings would name it; use a test endpoint, rows stay behind
    #[arg(value_name = "URL")]
    pub url: String,
    /// The endpoint does not publish and remove by request: tries only the rules about looks and seals
    #[arg(long)]
    pub no_publication: bool,
    /// Rounds of every race
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = rounds)]
    pub rounds: usize,
    /// Prints JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

fn rounds(text: &str) -> Result<usize, String> {
    let rounds = text
        .parse()
        .ok()
        .filter(|rounds| (1..=1_000).contains(rounds));
    rounds.ok_or_else(|| "1 to 1000".to_owned())
}

/// Runs the command.
///
/// # Errors
/// The URL cannot be used, or nothing answers there.
pub async fn run(args: &OwnerArgs) -> Result<u8, Stop> {
    let OwnerCommand::Check(args) = &args.command;
    let name = "check".parse().expect("a name of lower-case letters");
    // Whoever runs it names the address: a test endpoint is on the same machine more often than not.
    let endpoint =
        Endpoint::new(&name, &args.url, true).map_err(|error| Failure::usage(error.to_string()))?;
    let probe = "spillbox-check".parse().expect("a short word");
    if let OwnerReply::Lost(why) = endpoint.observe(&probe).await {
        let failure = Failure::new(why).with_exit(EXIT_FAILURE);
        return Err(failure
            .with_hint("check that the URL is the owner's base_url")
            .into());
    }
    let options = CheckOptions {
        can_publish: !args.no_publication,
        rounds: args.rounds,
    };
    let ids = SystemIds::default();
    let mut written = Ok(());
    let tell = |done: &Check| {
        if written.is_ok() {
            written = write(done, args.json);
        }
    };
    let checks = Box::pin(check(&endpoint, options, &ids, SystemClock.now(), tell)).await;
    written?;
    Ok(exit_of(&checks))
}

fn exit_of(checks: &[Check]) -> u8 {
    let any = |is: fn(&CheckOutcome) -> bool| checks.iter().any(|check| is(&check.outcome));
    if any(|outcome| matches!(outcome, CheckOutcome::Failed(_))) {
        EXIT_REFUSED
    } else if any(|outcome| matches!(outcome, CheckOutcome::Skipped)) {
        EXIT_RESTRICTED
    } else {
        EXIT_DONE
    }
}

fn write(done: &Check, is_json: bool) -> Result<(), Stop> {
    let (word, seen) = match &done.outcome {
        CheckOutcome::Passed => ("passed", None),
        CheckOutcome::Failed(seen) => ("failed", Some(seen.as_str())),
        CheckOutcome::Skipped => ("skipped", None),
    };
    if is_json {
        let line = json!({"check": done.name, "outcome": word, "rule": done.rule, "seen": seen});
        return output::write_json(&line);
    }
    let seen = seen.map(|seen| format!(": {}", escape_field(seen)));
    let line = format!("{word:<8}{}{}\n", done.name, seen.unwrap_or_default());
    let rule = match done.outcome {
        CheckOutcome::Failed(_) => format!("        rule: {}\n", done.rule),
        CheckOutcome::Passed | CheckOutcome::Skipped => String::new(),
    };
    output::write_bytes((line + &rule).as_bytes())
}
