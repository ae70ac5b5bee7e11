//! `spillbox gc`: collecting what nothing refers to, as a job straight on the store.
//!
//! The result goes to standard output as JSON (or as a table for people), progress to standard error.
//! Exit status: 0 done, 1 failure, 2 wrong usage, 3 something is left for a later run, 4 refused by a
//! safety check.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use uuid::Uuid;

use crate::artifact::locator::LocatorBase;
use crate::cli::failure::{EXIT_DONE, EXIT_REFUSED, Failure, Stop};
use crate::cli::output;
use crate::cli::store::{default_tenant, failure_of, settings};
use crate::clock::SystemClock;
use crate::digest::Sha256Digest;
use crate::gc::collector::Collector;
use crate::gc::plan::Scope;
use crate::gc::planner::Planned;
use crate::gc::policy::{GcPolicy, PolicyError, PolicyRequest, PolicySettings, Share};
use crate::gc::report::Report;
use crate::ids::{SessionId, SystemIds, Tenant};
use crate::open_store::{Access, attest_options, attestation_target, library_over, open_store};
use crate::settings::{Flag, Settings, StoreUrl};
use crate::store::attest::{Fence, Verdict, attest_or_reuse};

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
    /// Apply the newest plan that is old enough, then make a new one: for a schedule
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
    /// Prints why everything stays or goes, and the oldest and largest candidates
    #[arg(long)]
    pub explain: bool,
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
            let planned = opened.plan(&args.policy, &policy).await?;
            if args.place.json {
                output::write_json(&show::plan_json(&planned))?;
            } else {
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
                let planned = opened.plan(&args.policy, &policy).await?;
                print_run(None, &planned, args.place.json)?;
                return Ok(exit_of_plan(&planned));
            }
            let ran = opened.collector.run(&scope(&args.policy), &policy).await;
            let ran = ran.map_err(|error| failed(&error, error.is_refusal()))?;
            print_run(ran.report.as_ref(), &ran.planned, args.place.json)?;
            let of_report = ran.report.as_ref().map_or(EXIT_DONE, exit_of_report);
            Ok(of_report.max(exit_of_plan(&ran.planned)))
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

fn failed(error: &dyn std::fmt::Display, is_refusal: bool) -> Failure {
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
        output::write_json(&show::json(report))
    } else {
        output::write_bytes(show::report(report).as_bytes())
    }
}

fn print_run(report: Option<&Report>, planned: &Planned, is_json: bool) -> Result<(), Stop> {
    if is_json {
        let document = serde_json::json!({
            "report": report.map(show::json),
            "plan": show::plan_json(planned),
        });
        return output::write_json(&document);
    }
    if let Some(report) = report {
        output::write_bytes(show::report(report).as_bytes())?;
    }
    output::write_bytes(show::plan(planned, false).as_bytes())
}

fn scope(args: &PolicyArgs) -> Scope {
    let tenant = args.tenant.clone().unwrap_or_else(default_tenant);
    match &args.session {
        _ if args.all => Scope::All,
        Some(session) => Scope::Session {
            tenant,
            session: session.clone(),
        },
        None => Scope::Tenant(tenant),
    }
}

/// A store that was tried, and its collector.
struct Opened {
    collector: Collector,
    settings: Settings,
}

impl Opened {
    async fn open(place: &PlaceArgs, store_variable: Option<&str>) -> Result<Self, Failure> {
        let flag = |name, value: &str| Flag {
            name,
            key: "store.url",
            value: value.to_owned(),
        };
        let store = place.store.as_deref().map(|value| flag("--store", value));
        let store = store.or_else(|| store_variable.map(|value| flag("SPILLBOX_STORE", value)));
        let settings = settings(place.config.as_deref(), store.as_slice())?;
        let url = &settings.store.url;
        let said = |error| failure_of(&error, url);
        let opened = open_store(&settings.store).await.map_err(said)?;
        let fence = Self::tried(&settings, &opened).await?;
        let access = Access::ReadWrite;
        let opening = library_over(opened, &settings, LocatorBase::Store, Vec::new(), access);
        let (library, journals) = opening.await.map_err(said)?;
        let collector = Collector::of(&library, journals, fence);
        Ok(Self {
            collector,
            settings,
        })
    }

    /// Attests the store, or uses what was seen not long ago: nothing is collected where two may win one
    /// key.
    async fn tried(
        settings: &Settings,
        opened: &(crate::store::SharedStore, crate::store::keys::KeySpace),
    ) -> Result<Fence, Failure> {
        let url = &settings.store.url;
        if *url == StoreUrl::Memory {
            return Ok(Fence::None);
        }
        let target = attestation_target(&settings.store, &opened.0, &opened.1).await;
        let target = target.map_err(|error| failure_of(&error, url))?;
        let (clock, ids) = (SystemClock, SystemIds::default());
        let options = attest_options(&settings.store);
        let (attestation, _) = attest_or_reuse(&target, &clock, &ids, options).await;
        match attestation.verdict {
            Verdict::Trusted | Verdict::Restricted => Ok(attestation.delete_fence),
            Verdict::Refused => {
                let refused = format!("{url}: the store does not keep what a collector relies on");
                let hint = "`spillbox doctor` says what was seen";
                Err(Failure::new(refused)
                    .with_hint(hint)
                    .with_exit(EXIT_REFUSED))
            }
            Verdict::Unreachable => Err(Failure::new(format!("{url}: the store does not answer"))
                .with_hint("`spillbox doctor` says what was seen")),
        }
    }

    fn policy(&self, args: &PolicyArgs) -> Result<GcPolicy, Failure> {
        let gc = &self.settings.gc;
        let request = PolicyRequest {
            orphan_ttl_seconds: args.orphan_ttl.map(|ttl| ttl.as_secs()),
            max_deletions: args.max_deletions,
            max_share: args.max_share,
            ..PolicyRequest::default()
        };
        let url = &self.settings.store.url;
        let of_settings = PolicySettings {
            min_plan_age: gc.min_plan_age,
            settle: gc.settle,
            allow_short_times: gc.allow_short_times,
            is_one_host: matches!(url, StoreUrl::Local { .. } | StoreUrl::Memory),
        };
        let policy = GcPolicy::new(&request, &of_settings, self.collector.store_ttl());
        policy.map_err(|error| match error {
            PolicyError::BelowStoreTtl { .. } => failed(&error, true),
            PolicyError::OutOfBounds { .. } => Failure::usage(error.to_string()),
        })
    }

    async fn plan(&self, args: &PolicyArgs, policy: &GcPolicy) -> Result<Planned, Failure> {
        let planned = self.collector.plan(&scope(args), policy).await;
        planned.map_err(|error| failed(&error, error.is_refusal()))
    }
}
