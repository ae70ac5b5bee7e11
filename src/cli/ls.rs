//! `spillbox ls`: a session's artifacts, newest first.

use serde_json::Value;

use crate::artifact::escape::escape_field;
use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::SessionArgs;
use crate::cli::failure::{EXIT_DONE, Stop};
use crate::cli::output;
use crate::cli::stat::fetch_json;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;

/// A summary's place in the table.
const SUMMARY_CHARS: usize = 60;

/// Lists a session's artifacts, newest first.
#[derive(Debug, clap::Args)]
pub struct LsArgs {
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Which session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Artifacts at most, up to 1000 [default: 100]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Goes on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Only outputs of this tool
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only outputs stored at this instant (RFC 3339) or later
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only outputs stored before this instant (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Prints the page as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The list cannot be read.
pub async fn run(args: &LsArgs, variables: &Variables, transport: &Transport) -> Result<u8, Stop> {
    let session = args.session.session(variables)?;
    let path = ApiPath::artifacts(&session)
        .with("limit", args.limit)
        .with("cursor", args.cursor.as_ref())
        .with("tool", args.tool.as_ref())
        .with("since", args.since.as_ref())
        .with("until", args.until.as_ref());
    let page = fetch_json(transport, &path).await?;
    if args.json {
        output::write_json(&page)?;
        return Ok(EXIT_DONE);
    }
    let artifacts = page.get("artifacts").and_then(Value::as_array);
    let rows: Vec<_> = artifacts.into_iter().flatten().map(row).collect();
    output::write_bytes(table(&rows).as_bytes())?;
    output::flush()?;
    let next = page.get("next_cursor").and_then(Value::as_str);
    if let Some(cursor) = next {
        output::say(&format!(
            "note: to read on: --cursor {}",
            escape_field(cursor)
        ));
    } else if rows.is_empty() {
        output::say(&format!(
            "note: nothing in session `{}`",
            escape_field(session.as_str())
        ));
    }
    Ok(EXIT_DONE)
}

const COLUMNS: [&str; 6] = ["STORED AT", "BYTES", "LINES", "TOOL", "LOCATOR", "SUMMARY"];

fn row(artifact: &Value) -> [String; 6] {
    let text = |name: &str| match artifact.get(name) {
        Some(Value::String(text)) => escape_field(text),
        Some(Value::Number(number)) => number.to_string(),
        _ => "-".to_owned(),
    };
    let summary = text("summary").chars().take(SUMMARY_CHARS).collect();
    [
        text("captured_at"),
        text("size_bytes"),
        text("line_count"),
        text("tool"),
        text("locator"),
        summary,
    ]
}

fn table(rows: &[[String; 6]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let header = COLUMNS.map(str::to_owned);
    let all: Vec<&[String; 6]> = std::iter::once(&header).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS.len()).filter_map(width).collect();
    let mut text = String::new();
    for row in all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned_and_unknown_facts_are_dashes() {
        let rows = [row(&serde_json::json!({
            "captured_at": "2026-11-30T00:00:00Z", "size_bytes": 12, "summary": "a\nb",
            "locator": "spillbox:x.y",
        }))];
        assert_eq!(
            table(&rows),
            "STORED AT             BYTES  LINES  TOOL  LOCATOR       SUMMARY\n\
             2026-11-30T00:00:00Z  12     -      -     spillbox:x.y  a b\n"
        );
        assert_eq!(table(&[]), "");
    }
}
