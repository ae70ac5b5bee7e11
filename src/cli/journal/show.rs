//! `spillbox journal show`: the records as a table that a person can read.

use std::collections::HashMap;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::artifact::escape::escape_field;
use crate::cli::failure::{EXIT_DONE, Stop};
use crate::cli::journal::ShowArgs;
use crate::cli::output;
use crate::cli::stat::fetch_json;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;
use crate::ids::SessionId;
use crate::limits::MAX_SHOWN_RECORDS;

pub(super) async fn run(
    args: &ShowArgs,
    session: &SessionId,
    transport: &Transport,
) -> Result<u8, Stop> {
    let mut records: Vec<Value> = Vec::new();
    let mut next = Some(args.from);
    let mut journal = json!({});
    while let Some(first) = next {
        let left = args
            .limit
            .map_or(MAX_SHOWN_RECORDS, |limit| limit - records.len());
        if left == 0 {
            break;
        }
        let path = ApiPath::journal(session, "")
            .with("from_seq", Some(first))
            .with("limit", Some(left.min(MAX_SHOWN_RECORDS)));
        journal = fetch_json(transport, &path).await?;
        if let Some(Value::Array(page)) = journal.get_mut("records").map(Value::take) {
            records.extend(page);
        }
        next = journal["next_seq"].as_u64();
    }
    if args.place.json {
        let mut document = json!({
            "session": session,
            "status": journal["status"],
            "head": journal["head"],
            "records": records,
        });
        if let Some(next) = next {
            document["next_seq"] = json!(next);
        }
        output::write_json(&document)?;
    } else {
        output::write_bytes(table(&records).as_bytes())?;
        output::flush()?;
        let status = escape_field(journal["status"].as_str().unwrap_or("?"));
        output::say(&format!("note: the journal is {status}"));
    }
    Ok(EXIT_DONE)
}

/// One row for each entry.
fn table(records: &[Value]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["SEQ", "WHEN", "WHAT", "WHO", "ARTIFACT", "DETAIL"]);
    let mut leases = Leases::default();
    for record in records {
        let seq = record["seq"].to_string();
        let when = text(&record["as_of"]);
        if let Some(why) = record["unreadable"].as_str() {
            let row = [
                seq,
                when,
                "unreadable".to_owned(),
                dash(),
                dash(),
                escape_field(why),
            ];
            table.add_row(row);
            continue;
        }
        for entry in record["entries"].as_array().into_iter().flatten() {
            let [what, who, artifact, detail] = leases.row(entry);
            table.add_row([seq.clone(), when.clone(), what, who, artifact, detail]);
        }
    }
    // The style pads the first column too.
    let plain = |line: String| format!("{}\n", line.trim_end().trim_start_matches(' '));
    table.lines().map(plain).collect()
}

/// Who prepared what: later entries name the transaction alone.
#[derive(Default)]
struct Leases(HashMap<String, (String, String)>);

impl Leases {
    fn row(&mut self, entry: &Value) -> [String; 4] {
        let op = entry["op"].as_str().unwrap_or("?");
        let transaction = entry["transaction_id"].as_str();
        if let (Some(name), "prepared") = (transaction, op) {
            let facts = (text(&entry["owner"]), text(&entry["artifact_id"]));
            self.0.insert(name.to_owned(), facts);
        }
        let known = transaction.and_then(|name| self.0.get(name)).cloned();
        let (who, artifact) = known.unwrap_or_else(|| {
            let who = match op {
                "condemned" | "deleted" => "collector",
                "cleared" => "operator",
                "touched" => "reader",
                _ => "-",
            };
            (who.to_owned(), text(&entry["artifact_id"]))
        });
        let mut details = Vec::new();
        for name in [
            "transaction_id",
            "reference_count",
            "retain_until",
            "owner_generation",
            "reason",
            "seq",
            "outcome",
            "features",
        ] {
            match &entry[name] {
                Value::Null => {}
                Value::Array(items) if items.is_empty() => {}
                Value::String(value) => details.push(format!("{name}={}", escape_field(value))),
                other
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    details.push(format!("{name}={}", escape_field(&other.to_string())));
                }
            }
        }
        let what = match &entry["why"] {
            Value::Null => op.to_owned(),
            Value::String(why) => format!("{op} ({why})"),
            // `expired` carries the date at which that was seen.
            Value::Object(why) => {
                let names: Vec<_> = why.keys().map(String::as_str).collect();
                format!("{op} ({})", names.join(", "))
            }
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                format!("{op} ({other})")
            }
        };
        [escape_field(&what), who, artifact, details.join(" ")]
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(dash, escape_field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_who_which_and_when() {
        let records = [
            json!({"seq": 0, "as_of": "2026-11-30T12:00:00Z", "entries": [
                {"op": "genesis", "features": []},
                {"op": "prepared", "transaction_id": "tx\u{1b}", "owner": "memory", "artifact_id": "AID",
                 "reference_count": 2, "retain_until": null, "reason": null},
            ]}),
            json!({"seq": 1, "as_of": null, "entries": [
                {"op": "committed", "transaction_id": "tx\u{1b}", "owner_generation": "17"},
                {"op": "released", "transaction_id": "tx\u{1b}", "why": {"expired": {"server_date": "d"}}},
            ]}),
            json!({"seq": 2, "unreadable": "not JSON"}),
        ];
        let table = table(&records);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(
            rows[0],
            ["SEQ", "WHEN", "WHAT", "WHO", "ARTIFACT", "DETAIL"]
        );
        assert_eq!(
            rows[2][..5],
            ["0", "2026-11-30T12:00:00Z", "prepared", "memory", "AID"]
        );
        assert_eq!(rows[2][5..], ["transaction_id=tx␛", "reference_count=2"]);
        assert_eq!(rows[3][..5], ["1", "-", "committed", "memory", "AID"]);
        assert_eq!(rows[4][2..5], ["released", "(expired)", "memory"]);
        assert_eq!(rows[5][..3], ["2", "-", "unreadable"]);
    }
}
