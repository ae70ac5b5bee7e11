//! `spillbox stat`: what is known of an artifact, without its bytes.

use axum::body::to_bytes;
use serde_json::Value;

use crate::artifact::escape::escape_field;
use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::download::get;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;
use crate::ids::ArtifactRef;

/// A manifest without its chunk table, or a page of them.
const MAX_STAT_BYTES: usize = 64 << 20;

/// Prints what is known of an artifact.
#[derive(Debug, clap::Args)]
pub struct StatArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints the manifest as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The artifact cannot be read.
pub async fn run(args: &StatArgs, transport: &Transport) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let manifest = fetch(transport, &artifact).await?;
    if args.json {
        output::write_json(&manifest)?;
    } else {
        output::write_bytes(table(&manifest).as_bytes())?;
    }
    Ok(EXIT_DONE)
}

/// Asks for an artifact's manifest.
///
/// # Errors
/// The reply is no success or no JSON.
pub async fn fetch(transport: &Transport, artifact: &ArtifactRef) -> Result<Value, Failure> {
    fetch_json(transport, &ApiPath::artifact(artifact, "/stat")).await
}

/// Asks for a JSON document.
///
/// # Errors
/// The reply is no success or no JSON.
pub async fn fetch_json(transport: &Transport, path: &ApiPath) -> Result<Value, Failure> {
    let response = transport.ask(get(path)?).await?;
    let body = to_bytes(response.into_body(), MAX_STAT_BYTES)
        .await
        .map_err(|error| Failure::new(format!("the transfer stopped: {error}")))?;
    serde_json::from_slice(&body)
        .map_err(|error| Failure::new(format!("the reply is not JSON: {error}")))
}

/// One line for each fact; what the replacement says at length is left out.
fn table(manifest: &Value) -> String {
    let mut rows = Vec::new();
    flatten(manifest, "", &mut rows);
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(String, String)| format!("{name:width$}  {value}\n");
    rows.iter().map(line).collect()
}

fn flatten(value: &Value, prefix: &str, rows: &mut Vec<(String, String)>) {
    let Some(members) = value.as_object() else {
        return;
    };
    for (name, value) in members {
        let name = format!("{prefix}{}", escape_field(name));
        match value {
            Value::Null | Value::Array(_) => {}
            Value::Object(_) => flatten(value, &format!("{name}."), rows),
            Value::String(_) if name == "replacement.text" => {}
            Value::String(text) => rows.push((name, escape_field(text))),
            Value::Bool(_) | Value::Number(_) => rows.push((name, value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_facts_and_no_text_that_acts() {
        let manifest = serde_json::json!({
            "body": {"size_bytes": 7}, "tool": null, "summary": "a\u{1b}[2Jb",
            "replacement": {"text": "long", "truncated": true},
        });
        assert_eq!(
            table(&manifest),
            "body.size_bytes        7\nreplacement.truncated  true\nsummary                a␛[2Jb\n"
        );
    }
}
