//! `spillbox gc`: collecting what nothing refers to, as a job straight on the store.
//!
//! The result goes to standard output as JSON (or as a table for people), progress to standard error.
//! Exit status: 0 done, 1 failure, 2 wrong usage, 3 something is left for a later run, 4 refused by a
//! safety check.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use uuid::Uuid;

use crate::cli::failure::{EXIT_DONE, EXIT_REFUSED, Failure, Stop};
use crate::cli::job_store::JobStore;
use crate::cli::output;
use crate::cli::store::{default_tenant, failure_of};
use crate::digest::Sha256Digest;
use crate::gc::collector::Collector;
use crate::gc::document;
use crate::gc::expiry::Expired;
use crate::gc::plan::Scope;
use crate::gc::planner::Planned;
use crate::gc::policy::{GcPolicy, PolicyError, PolicyRequest, Share};
use crate::gc::report::Report;
use crate::gc::run::Ran;
use crate::gc::shard::Shard;
use crate::gc::stock::Stock;
use crate::ids::{SessionId, Tenant};
use crate::open_store::{collector_over, open_collector_store};
use crate::settings::Settings;

mod show;

/// Something is left for a later run.
pub const EXIT_PENDING: u8 = 3;

/// Collects what nothing refers to.
#[derive(Debug, clap::Args)]
pub struct GcArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: GcCommand,
}

/// The jobs.
#[derive(Debug, Subcommand)]
pub enum GcCommand {
    /// Look what may go, and write it down; deletes nothing
    Plan(PlanArgs),
    /// Delete what a plan proposes and nothing has referred to since
    Apply(ApplyArgs),
    /// Finish what is left, apply the newest plan that is old enough, then make a new one: for a schedule
    Run(RunArgs),
    /// Print what the last application of a plan did
    Report(ReportArgs),
}

/// Where the store is.
#[derive(Debug, Clone, clap::Args)]
pub struct PlaceArgs {
    /// The store: local:DIR or s3://bucket/prefix
    /// [env: SPILLBOX_STORE] [default: local:$XDG_DATA_HOME/spillbox]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// A TOML file with settings; deploy/config.example.toml explains them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// What to look at.
#[derive(Debug, Clone, clap::Args)]
pub struct ScopeArgs {
    /// Every tenant
    #[arg(long, conflicts_with_all = ["tenant", "session"])]
    pub all_tenants: bool,
    /// One tenant [default: default]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// One session of it
    #[arg(long, value_name = "SESSION")]
    pub session: Option<SessionId>,
}

impl ScopeArgs {
    /// Returns what is meant.
    pub fn scope(&self) -> Scope {
        let tenant = self.tenant.clone().unwrap_or_else(default_tenant);
        match &self.session {
            _ if self.all_tenants => Scope::All,
            Some(session) => Scope::Session {
                tenant,
                session: session.clone(),
            },
            None => Scope::Tenant(tenant),
        }
    }
}

/// What to look at, and how much may go.
#[derive(Debug, Clone, clap::Args)]
pub struct PolicyArgs {
    /// Every tenant
    #[arg(long, conflicts_with_all = ["tenant", "session"])]
    pub all: bool,
    /// One tenant [default: default]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// One session of it
    #[arg(long, value_name = "SESSION")]
    pub session: Option<SessionId>,
    /// Grace of what nothing refers to, as `36h`; never below the store's
    #[arg(long, value_name = "TIME", value_parser = humantime_serde::re::humantime::parse_duration)]
    pub orphan_ttl: Option<Duration>,
    /// At most so many artifacts go; 0 deletes nothing
    #[arg(long, value_name = "N")]
    pub max_deletions: Option<u64>,
    /// At most this share of the live artifacts goes, from 100 of them on, as `0.25` [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    pub max_share: Option<Share>,
}

/// `gc plan`
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// What to look at.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Only this part of the sessions, as `3/8`: several hosts share the work. N is 2, 4, 8, … 256
    #[arg(long, value_name = "K/N", conflicts_with = "session")]
    pub shard: Option<Shard>,
    /// Prints why everything stays or goes, with examples, and the oldest and largest candidates
    #[arg(long)]
    pub explain: bool,
    /// Counts everything in the store by what it is for, and removes old plans, reports and probes
    #[arg(long)]
    pub inventory: bool,
}

/// `gc apply`
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// The plan, as `gc plan` named it
    #[arg(value_name = "PLAN")]
    pub plan: Uuid,
    /// The SHA-256 of the plan, as `gc plan` printed it
    #[arg(long, value_name = "HEX", value_parser = parse_digest)]
    pub sha256: Sha256Digest,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `gc run`
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// What to look at.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Makes a plan and applies none
    #[arg(long)]
    pub dry_run: bool,
}

/// `gc report`
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: Uuid,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Takes a digest with or without `sha256:`.
fn parse_digest(text: &str) -> Result<Sha256Digest, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    Sha256Digest::from_hex(hex).map_err(|error| error.to_string())
}

/// Runs the command. `store_variable` is what SPILLBOX_STORE says.
///
/// # Errors
/// The settings or the store cannot be used, a safety check refuses, or the job fails.
pub async fn run(args: &GcArgs, store_variable: Option<&str>) -> Result<u8, Stop> {
    match &args.command {
        GcCommand::Plan(args) => {
            let opened = Opened::open(&args.place, store_variable).await?;
            let policy = opened.policy(&args.policy)?;
            let kept = opened.inventory(args.inventory).await?;
            let planned = opened.plan(&args.policy, args.shard, &policy).await?;
            if args.place.json {
                let mut document = show::plan_json(&planned, args.explain);
                if let Some((expired, stock)) = &kept {
                    document["expired"] = json!(expired);
                    document["inventory"] = json!(stock);
                }
                output::write_json(&document)?;
            } else {
                let kept = kept.as_ref();
                let kept = kept.map(|(expired, stock)| show::inventory(expired, stock));
                output::write_bytes(kept.unwrap_or_default().as_bytes())?;
                output::write_bytes(show::plan(&planned, args.explain).as_bytes())?;
            }
            Ok(exit_of_plan(&planned))
        }
        GcCommand::Apply(args) => {
            let opened = Opened::open(&args.place, store_variable).await?;
            let applied = opened.collector.apply(args.plan, &args.sha256).await;
            let report = applied.map_err(|error| failed(&error, error.is_refusal()))?;
            print_report(&report, args.place.json)?;
            Ok(exit_of_report(&report))
        }
        GcCommand::Run(args) => {
            let opened = Opened::open(&args.place, store_variable).await?;
            let policy = opened.policy(&args.policy)?;
            if args.dry_run {
                let planned = opened.plan(&args.policy, None, &policy).await?;
                print_run(None, &planned, args.place.json)?;
                return Ok(exit_of_plan(&planned));
            }
            let ran = Box::pin(opened.collector.run(&scope(&args.policy), &policy)).await;
            let ran = ran.map_err(|error| failed(&error, error.is_refusal()))?;
            print_run(Some(&ran), &ran.planned, args.place.json)?;
            let of_report = ran.report.as_ref().map_or(EXIT_DONE, exit_of_report);
            let of_finished = if ran.finished.is_complete {
                EXIT_DONE
            } else {
                EXIT_PENDING
            };
            let left = of_report.max(of_finished);
            Ok(left.max(exit_of_plan(&ran.planned)))
        }
        GcCommand::Report(args) => {
            let opened = Opened::open(&args.place, store_variable).await?;
            let report = opened.collector.newest_report(args.plan).await;
            let report = report.map_err(|error| failed(&error, false))?;
            let Some(report) = report else {
                return Err(Failure::new(format!("plan {} was not applied", args.plan)).into());
            };
            print_report(&report, args.place.json)?;
            Ok(exit_of_report(&report))
        }
    }
}

/// Returns the failure of a job; what a safety check refuses has a status of its own.
pub(in crate::cli) fn failed(error: &dyn std::fmt::Display, is_refusal: bool) -> Failure {
    let failure = Failure::new(error.to_string());
    if is_refusal {
        failure.with_exit(EXIT_REFUSED)
    } else {
        failure
    }
}

fn exit_of_plan(planned: &Planned) -> u8 {
    let plan = &planned.plan;
    if plan.is_partial || !plan.parts.is_empty() || !plan.uploads.is_empty() {
        EXIT_PENDING
    } else {
        EXIT_DONE
    }
}

fn exit_of_report(report: &Report) -> u8 {
    if report.is_complete {
        EXIT_DONE
    } else {
        EXIT_PENDING
    }
}

fn print_report(report: &Report, is_json: bool) -> Result<(), Stop> {
    if is_json {
        output::write_json(&document::of_report(report))
    } else {
        output::write_bytes(show::report(report).as_bytes())
    }
}

fn print_run(ran: Option<&Ran>, planned: &Planned, is_json: bool) -> Result<(), Stop> {
    let report = ran.and_then(|ran| ran.report.as_ref());
    if is_json {
        let document = json!({
            "finished": ran.map(|ran| show::finished_json(&ran.finished)),
            "report": report.map(document::of_report),
            "expired": ran.map(|ran| &ran.expired),
            "plan": show::plan_json(planned, false),
        });
        return output::write_json(&document);
    }
    if let Some(ran) = ran {
        output::write_bytes(show::finished(&ran.finished).as_bytes())?;
    }
    if let Some(report) = report {
        output::write_bytes(show::report(report).as_bytes())?;
    }
    output::write_bytes(show::plan(planned, false).as_bytes())
}

fn scope(args: &PolicyArgs) -> Scope {
    let args = ScopeArgs {
        all_tenants: args.all,
        tenant: args.tenant.clone(),
        session: args.session.clone(),
    };
    args.scope()
}

/// A store that was tried, and its collector.
pub(in crate::cli) struct Opened {
    pub(in crate::cli) collector: Collector,
    settings: Settings,
}

impl Opened {
    /// Opens the store that is named.
    ///
    /// # Errors
    /// A setting is refused, or the store cannot be used or is refused.
    pub(in crate::cli) async fn open(
        place: &PlaceArgs,
        store_variable: Option<&str>,
    ) -> Result<Self, Failure> {
        let JobStore {
            library,
            journals,
            fence,
            settings,
        } = JobStore::open(place, store_variable).await?;
        let own = open_collector_store(&settings.store).await;
        let own = own.map_err(|error| failure_of(&error, &settings.store.url))?;
        let collector = collector_over(&library, journals, fence, own);
        Ok(Self {
            collector,
            settings,
        })
    }

    fn policy(&self, args: &PolicyArgs) -> Result<GcPolicy, Failure> {
        let request = PolicyRequest {
            orphan_ttl_seconds: args.orphan_ttl.map(|ttl| ttl.as_secs()),
            max_deletions: args.max_deletions,
            max_share: args.max_share,
            ..PolicyRequest::default()
        };
        let of_settings = self.settings.collections();
        let policy = GcPolicy::new(&request, &of_settings, self.collector.store_ttl());
        policy.map_err(|error| match error {
            PolicyError::BelowStoreTtl { .. } => failed(&error, true),
            PolicyError::OutOfBounds { .. } => Failure::usage(error.to_string()),
        })
    }

    async fn inventory(&self, is_asked_for: bool) -> Result<Option<(Expired, Stock)>, Failure> {
        if !is_asked_for {
            return Ok(None);
        }
        let expired = self.collector.expire().await;
        let expired = expired.map_err(|error| failed(&error, error.is_refusal()))?;
        let stock = self.collector.stock().await;
        let stock = stock.map_err(|error| failed(&error, false))?;
        Ok(Some((expired, stock)))
    }

    async fn plan(
        &self,
        args: &PolicyArgs,
        shard: Option<Shard>,
        policy: &GcPolicy,
    ) -> Result<Planned, Failure> {
        let planned = self.collector.plan_shard(&scope(args), shard, policy).await;
        planned.map_err(|error| failed(&error, error.is_refusal()))
    }
}
