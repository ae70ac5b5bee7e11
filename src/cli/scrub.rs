//! `spillbox scrub`: reads bodies back against their manifests, and looks for leases whose artifact is gone.
//!
//! Exit status: 0 sound, 3 something is damaged that nothing refers to, 5 something is damaged or missing that a
//! lease protects, or may; 1, 2 and 4 as everywhere.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::cli::failure::{EXIT_DONE, EXIT_RESTRICTED, Failure, Stop};
use crate::cli::gc::{Opened, PlaceArgs, ScopeArgs, failed};
use crate::cli::output;
use crate::gc::scrub::{Depth, ScrubError, ScrubReport, ScrubRequest};
use crate::gc::store_clock::ClockError;
use crate::limits::{SCRUB_BYTES_PER_SECOND, SCRUB_SAMPLE};

/// Something that a lease protects is damaged or missing, or may be.
pub const EXIT_ALARM: u8 = 5;

/// Reads bodies back and compares them with what was saved. Deletes and changes nothing. That manifests and
/// bodies are there is looked at for all of them, and for every lease.
#[derive(Debug, clap::Args)]
pub struct ScrubArgs {
    /// Where to look.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Reads so many bodies, chosen at random [default: 1000]
    #[arg(long, value_name = "N", conflicts_with = "all_bodies")]
    pub sample: Option<usize>,
    /// Reads every body
    #[arg(long = "all")]
    pub all_bodies: bool,
    /// Reads at most so many bytes per second [default: 33554432]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub bytes_per_second: Option<u64>,
    /// Writes the numbers as metrics into a file, for a textfile collector
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Runs the command. `store_variable` is what SPILLBOX_STORE says.
///
/// # Errors
/// The store cannot be used or listed, or its clock is not believed.
pub async fn run(args: &ScrubArgs, store_variable: Option<&str>) -> Result<u8, Stop> {
    let opened = Opened::open(&args.place, store_variable).await?;
    let depth = if args.all_bodies {
        Depth::All
    } else {
        Depth::Sample(args.sample.unwrap_or(SCRUB_SAMPLE))
    };
    let request = ScrubRequest {
        scope: args.scope.scope(),
        depth,
        bytes_per_second: args.bytes_per_second.unwrap_or(SCRUB_BYTES_PER_SECOND),
    };
    let scrubbed = Box::pin(opened.collector.scrub(&request)).await;
    let report = scrubbed.map_err(|error| {
        let is_refusal = matches!(error, ScrubError::Clock(ClockError::Differs { .. }));
        failed(&error, is_refusal)
    })?;
    if let Some(file) = &args.metrics {
        publish(file, &metrics(&report))
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    }
    if args.place.json {
        let document = serde_json::to_value(&report).expect("text, numbers and lists serialise");
        output::write_json(&document)?;
    } else {
        output::write_bytes(text(&report).as_bytes())?;
    }
    Ok(exit_of(&report))
}

const fn exit_of(report: &ScrubReport) -> u8 {
    if report.alarms > 0 {
        EXIT_ALARM
    } else if report.damaged > 0 {
        EXIT_RESTRICTED
    } else {
        EXIT_DONE
    }
}

fn text(report: &ScrubReport) -> String {
    let mut text = String::new();
    let mut add = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("writing to a string");
        text.push('\n');
    };
    for finding in &report.findings {
        let referenced = match finding.is_referenced {
            Some(true) => "referenced",
            Some(false) => "unreferenced",
            None => "perhaps referenced",
        };
        add(format_args!(
            "{} {referenced} {} {}: {}",
            finding.damage.as_str(),
            finding.tenant,
            finding.artifact,
            crate::artifact::escape::escape_field(&finding.detail)
        ));
    }
    add(format_args!(
        "{} artifacts and {} journals looked at, {} bodies ({} bytes) read and sound, {} damaged, {} alarms",
        report.artifacts,
        report.journals,
        report.sound.count,
        report.sound.bytes,
        report.damaged,
        report.alarms
    ));
    text
}

fn metrics(report: &ScrubReport) -> String {
    let mut text = String::from(
        "# HELP spillbox_scrub_damaged Artifacts that the last scrub found damaged, by damage\n\
         # TYPE spillbox_scrub_damaged gauge\n",
    );
    for (damage, count) in &report.counts {
        writeln!(
            text,
            "spillbox_scrub_damaged{{damage=\"{damage}\"}} {count}"
        )
        .expect("writing to a string");
    }
    let at = report.server_date.as_second();
    for (name, help, value) in [
        (
            "alarms",
            "Damaged or missing artifacts that a lease protects, or may",
            report.alarms,
        ),
        (
            "artifacts",
            "Artifacts that the last scrub looked at",
            report.artifacts,
        ),
        (
            "read_bytes",
            "Bytes that the last scrub read and found sound",
            report.sound.bytes,
        ),
        (
            "began_timestamp_seconds",
            "When the last scrub began, since 1970",
            u64::try_from(at).unwrap_or(0),
        ),
    ] {
        writeln!(
            text,
            "# HELP spillbox_scrub_{name} {help}\n# TYPE spillbox_scrub_{name} gauge\nspillbox_scrub_{name} {value}"
        )
        .expect("writing to a string");
    }
    text
}

/// Puts the file there whole: a collector must never read half of it.
fn publish(file: &Path, text: &str) -> std::io::Result<()> {
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let mut written = std::fs::File::create(&partial)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    std::fs::rename(&partial, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gc::plan::Scope;
    use crate::gc::status::Tally;

    fn report(damaged: u64, alarms: u64) -> ScrubReport {
        ScrubReport {
            server_date: "2026-12-01T00:00:00Z".parse().unwrap(),
            scope: Scope::All,
            artifacts: 3,
            sound: Tally {
                count: 2,
                bytes: 20,
            },
            journals: 1,
            damaged,
            alarms,
            counts: [("corrupt", damaged)].into(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn the_exit_status_tells_damage_from_alarm() {
        assert_eq!(exit_of(&report(0, 0)), EXIT_DONE);
        assert_eq!(exit_of(&report(1, 0)), EXIT_RESTRICTED);
        assert_eq!(exit_of(&report(1, 1)), EXIT_ALARM);
    }

    #[test]
    fn metrics_are_in_prometheus_form() {
        let text = metrics(&report(1, 1));
        assert!(
            text.contains("spillbox_scrub_damaged{damage=\"corrupt\"} 1\n"),
            "{text}"
        );
        assert!(text.contains("\nspillbox_scrub_alarms 1\n"), "{text}");
        assert!(
            text.contains("spillbox_scrub_began_timestamp_seconds 1796083200\n"),
            "{text}"
        );
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        assert!(samples.count() >= 5);
    }
}
