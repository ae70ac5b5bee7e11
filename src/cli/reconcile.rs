//! `spillbox reconcile`: finding out what became of leases whose owners did not say so, as a job straight on
//! the store.
//!
//! One line for each lease goes to standard output (with --json one object a line, the sums last), the
//! sums for people to standard error. Exit status: 0 nothing is left; 1 failure; 2 wrong usage; 3 something
//! is left: leases that no owner has decided, an alarm, or what a bound kept from being seen; 4 the store
//! was tried and refused.

use std::time::Duration;

use serde_json::json;

use crate::artifact::escape::escape_field;
use crate::cli::failure::{EXIT_DONE, EXIT_RESTRICTED, Failure, Stop};
use crate::cli::gc::PlaceArgs;
use crate::cli::job_store::JobStore;
use crate::cli::output;
use crate::cli::store::default_tenant;
use crate::ids::{SessionId, Tenant};
use crate::lease::leases::{LeaseOptions, Leases};
use crate::lease::names::OwnerName;
use crate::lease::reconcile::run::{Line, RunRequest};
use crate::lease::reconcile::summary::Summary;
use crate::lease::walk::JournalScope;
use crate::owner_client::owners;

/// Finds out what became of leases whose owners did not say so.
#[derive(Debug, clap::Args)]
pub struct ReconcileArgs {
    /// Every tenant
    #[arg(long, conflicts_with_all = ["tenant", "session"])]
    pub all: bool,
    /// One tenant [default: default]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// One session of it
    #[arg(long, value_name = "SESSION")]
    pub session: Option<SessionId>,
    /// Only leases of this owner
    #[arg(long, value_name = "OWNER")]
    pub owner: Option<OwnerName>,
    /// Asks about a prepared lease only when it has been prepared for so long, as `15m`
    #[arg(long, value_name = "TIME", value_parser = humantime_serde::re::humantime::parse_duration)]
    pub stuck_for: Option<Duration>,
    /// Leases at most [default: 10000]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Committed leases of each session whose owner is asked too [default: 20]
    #[arg(long, value_name = "N")]
    pub audits: Option<usize>,
    /// Begins no lease after so long, as `30m` [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = humantime_serde::re::humantime::parse_duration)]
    pub deadline: Option<Duration>,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl ReconcileArgs {
    fn request(&self) -> RunRequest {
        let tenant = self.tenant.clone().unwrap_or_else(default_tenant);
        let scope = match &self.session {
            _ if self.all => JournalScope::All,
            Some(session) => JournalScope::Session {
                tenant,
                session: session.clone(),
            },
            None => JournalScope::Tenant(tenant),
        };
        let defaults = RunRequest::new(scope);
        RunRequest {
            owner: self.owner.clone(),
            stuck_for: self.stuck_for,
            limit: self.limit.unwrap_or(defaults.limit),
            audits: self.audits.unwrap_or(defaults.audits),
            deadline: self.deadline.unwrap_or(defaults.deadline),
            ..defaults
        }
    }
}

/// Runs the command. `store_variable` is what SPILLBOX_STORE says.
///
/// # Errors
/// The settings, an owner or the store cannot be used, or the store cannot list its journals.
pub async fn run(args: &ReconcileArgs, store_variable: Option<&str>) -> Result<u8, Stop> {
    let JobStore {
        library,
        journals,
        settings,
        ..
    } = JobStore::open(&args.place, store_variable).await?;
    let owners = owners(&settings).map_err(|error| Failure::usage(error.to_string()))?;
    let options = LeaseOptions {
        is_read_only: false,
        owners,
    };
    let leases = Leases::new(library, journals, options);
    let is_json = args.place.json;
    // A reader that went away does not end the work: what was begun is finished, and kept in the journals.
    let mut written = Ok(());
    let request = args.request();
    let running = leases.reconcile_all(&request, |line| {
        if written.is_ok() {
            written = write_line(&line, is_json);
        }
    });
    let ended = Box::pin(running).await;
    leases.drain().await;
    let summary = ended.map_err(|error| {
        Failure::new(error.to_string()).with_hint("`spillbox doctor` says how the store answers")
    })?;
    written?;
    if is_json {
        output::write_json(&json!({"summary": summary}))?;
    }
    output::flush()?;
    output::say(&sums(&summary));
    Ok(if summary.is_clean() {
        EXIT_DONE
    } else {
        EXIT_RESTRICTED
    })
}

fn write_line(line: &Line, is_json: bool) -> Result<(), Stop> {
    if is_json {
        return output::write_json(&json!(line));
    }
    output::write_bytes(shown(line).as_bytes())
}

/// One lease on one line, for people.
fn shown(line: &Line) -> String {
    let session = line.session.as_ref().map_or_else(
        || line.session_key.clone(),
        |session| escape_field(session.as_str()),
    );
    let mut words = vec![format!("{}/{session}", line.tenant)];
    if let Some(lease) = &line.lease {
        words.push(escape_field(lease.transaction_id.as_str()));
        words.push(lease.owner.to_string());
    }
    if let Some(finding) = &line.finding {
        words.push(finding.status.to_string());
        words.push(finding.reason.to_string());
    }
    if !line.missing_referenced.is_empty() {
        let parts: Vec<_> = line.missing_referenced.iter().map(|p| p.as_str()).collect();
        words.push(format!("missing_referenced({})", parts.join(",")));
    }
    let detail = line.finding.as_ref().and_then(|f| f.detail.as_deref());
    if let Some(detail) = line.error.as_deref().or(detail) {
        words.push(format!("({})", escape_field(detail)));
    }
    words.join(" ") + "\n"
}

fn sums(summary: &Summary) -> String {
    let statuses = summary.statuses.iter();
    let statuses: Vec<_> = statuses.map(|(s, n)| format!("{n} {s}")).collect();
    let mut text = format!(
        "{} leases of {} journals: {}",
        summary.leases,
        summary.journals,
        if statuses.is_empty() {
            "nothing to do".to_owned()
        } else {
            statuses.join(", ")
        }
    );
    for (count, what) in [
        (summary.missing_referenced, "missing_referenced"),
        (summary.failed, "failed"),
        (summary.unreadable, "journals unreadable"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    if summary.is_cut {
        text.push_str("; a bound ended the run before it had seen everything");
    }
    text
}
