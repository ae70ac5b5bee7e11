//! `spillbox why`: why an artifact stays or goes, with the journal entries that decide.

use std::fmt::Write as _;
use std::time::Duration;

use crate::cli::connection::artifact_of;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::gc::{Opened, PlaceArgs, failed};
use crate::cli::output;
use crate::cli::store::default_tenant;
use crate::gc::why::Why;
use crate::ids::Tenant;

/// Says why an artifact stays or goes: the verdict of a plan made now, from when on it would be another, and
/// the journal's records about it. Works straight on the store, as the collector does.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// Its tenant [default: default]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// The grace of the plan that is meant, as `36h` [default: the store's]
    #[arg(long, value_name = "TIME", value_parser = humantime_serde::re::humantime::parse_duration)]
    pub orphan_ttl: Option<Duration>,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Runs the command. `store_variable` is what SPILLBOX_STORE says.
///
/// # Errors
/// The store cannot be used, or holds nothing of that name.
pub async fn run(args: &WhyArgs, store_variable: Option<&str>) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let opened = Opened::open(&args.place, store_variable).await?;
    let tenant = args.tenant.clone().unwrap_or_else(default_tenant);
    let store_ttl = opened.collector.store_ttl();
    let orphan_ttl = args.orphan_ttl.unwrap_or(store_ttl);
    let why = opened.collector.why(&tenant, &artifact, orphan_ttl).await;
    let why = why.map_err(|error| failed(&error, error.is_refusal()))?;
    let Some(why) = why else {
        let unknown = format!("{artifact}: nothing of that name is or was here");
        let hint = "`spillbox ls` prints the locators of a session; --tenant names another tenant";
        return Err(Failure::new(unknown).with_hint(hint).into());
    };
    if args.place.json {
        let document = serde_json::to_value(&why).expect("text, numbers and lists serialise");
        output::write_json(&document)?;
    } else {
        output::write_bytes(text(&why).as_bytes())?;
    }
    Ok(EXIT_DONE)
}

fn text(why: &Why) -> String {
    let mut text = String::new();
    let mut add = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("writing to a string");
        text.push('\n');
    };
    match (why.status, why.reason) {
        (Some(status), Some(reason)) => add(format_args!("{status} {reason}")),
        _ => add(format_args!("deleted")),
    }
    add(format_args!("{}", why.meaning));
    if let Some(from) = why.eligible_from {
        add(format_args!(
            "a plan proposes it from {from} on, if nothing refers to it before"
        ));
    }
    if let Some(deletion) = &why.deletion {
        let at = deletion.deleted_at.as_deref().unwrap_or("an unknown time");
        add(format_args!("tombstone: {} at {at}", deletion.reason));
    }
    for lease in &why.leases {
        let (name, owner) = (lease.transaction_id.as_str(), lease.owner.as_str());
        let end = lease
            .retain_until
            .map_or("without end".to_owned(), |end| format!("until {end}"));
        let (state, seq) = (lease.state, lease.changed_seq);
        add(format_args!(
            "lease {} of {owner}: {state} {end}, by record {seq}",
            name.escape_debug()
        ));
    }
    for record in &why.records {
        let Some(content) = &record.content else {
            add(format_args!("record {}: unreadable", record.seq));
            continue;
        };
        let as_of = content
            .as_of
            .map_or("no time".to_owned(), |at| at.to_string());
        for entry in &content.entries {
            let entry = serde_json::to_string(entry).expect("an entry serialises");
            add(format_args!("record {} ({as_of}): {entry}", record.seq));
        }
    }
    text
}
