//! `spillbox outline`: errors, warnings, gaps and sections of an artifact, with their lines.

use serde_json::Value;

use crate::artifact::outline::{NotedLines, Outline};
use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::stat::fetch_json;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;

/// Prints an outline.
#[derive(Debug, clap::Args)]
pub struct OutlineArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints the outline as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The artifact cannot be read.
pub async fn run(args: &OutlineArgs, transport: &Transport) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let reply = fetch_json(transport, &ApiPath::artifact(&artifact, "/outline")).await?;
    if args.json {
        output::write_json(&reply)?;
    } else {
        let text = rows(&reply)
            .map_err(|error| Failure::new(format!("the reply is no outline: {error}")))?;
        output::write_text(&text, output::Raw::No)?;
    }
    Ok(EXIT_DONE)
}

fn rows(reply: &Value) -> Result<String, serde_json::Error> {
    let outline: Outline = serde_json::from_value(reply.clone())?;
    let mut rows = format!(
        "{} lines, {} bytes\n",
        reply["line_count"], reply["size_bytes"]
    );
    add_noted(&mut rows, "errors", &outline.errors);
    add_noted(&mut rows, "warnings", &outline.warnings);
    if !outline.gaps.is_empty() {
        rows.push_str("longest gaps\n");
    }
    for gap in &outline.gaps {
        let (seconds, millis) = (gap.gap_ms / 1_000, gap.gap_ms % 1_000);
        rows.push_str(&format!(
            "  {seconds}.{millis:03} s between line {} ({}) and line {} ({})\n",
            gap.from_line, gap.from, gap.to_line, gap.to
        ));
    }
    if outline.section_count > 0 {
        rows.push_str(&format!("sections: {}\n", outline.section_count));
    }
    for section in &outline.sections {
        let (tool, text) = (&section.tool, &section.text);
        rows.push_str(&format!("  {}: [{tool}] {text}\n", section.line_number));
    }
    Ok(rows)
}

fn add_noted(rows: &mut String, name: &str, lines: &NotedLines) {
    rows.push_str(&format!("{name}: {}\n", lines.count));
    for line in lines.first.iter().chain(&lines.last) {
        rows.push_str(&format!("  {}: {}\n", line.line_number, line.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_is_printed_with_its_lines() {
        let reply = serde_json::json!({
            "locator": "x", "line_count": 9, "size_bytes": 80,
            "errors": {"count": 2, "first": {"line_number": 3, "text": "error: a"},
                       "last": {"line_number": 7, "text": "error: b"}},
            "warnings": {"count": 0},
            "gaps": [{"gap_ms": 61_005, "from_line": 4, "from": "10:00:00", "to_line": 5, "to": "10:01:01.005"}],
            "sections": [{"tool": "go", "line_number": 8, "text": "FAIL\tx"}], "section_count": 1,
        });
        assert_eq!(
            rows(&reply).unwrap(),
            "9 lines, 80 bytes\nerrors: 2\n  3: error: a\n  7: error: b\nwarnings: 0\nlongest gaps\n  \
             61.005 s between line 4 (10:00:00) and line 5 (10:01:01.005)\nsections: 1\n  8: [go] FAIL\tx\n"
        );
        assert!(rows(&serde_json::json!({})).is_err());
    }
}
