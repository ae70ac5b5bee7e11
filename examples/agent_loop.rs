//! An agent's loop with real commands, and what of their output stands in the prompt.
//!
//! `cargo run --example agent_loop` runs 30 turns of commands that print far more than a context of
//! 200 KB holds: a walk through the file system, a recursive grep, a compiler with many warnings, a JSON
//! dump. Each result is decided by itself, each turn together, and results that grew old are cleared down
//! to their locator. Then everything is decided again by a second replica that knows nothing but the same
//! store, and the prompts are compared byte by byte.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::hint::RetrievalMeans;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::artifact::request::SaveRequest;
use spillbox::clock::SystemClock;
use spillbox::decision::{Content, Decider, ResultRequest, TurnContent, TurnRequest, TurnResult};
use spillbox::digest::Sha256Digest;
use spillbox::ids::{SessionId, SystemIds, Tenant};
use spillbox::limits::DEFAULT_ORPHAN_TTL;
use spillbox::policy::clear::{Clearable, DEFAULT_KEPT, clear};
use spillbox::policy::profile::{Given, Profile};
use spillbox::policy::profiles;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;
use spillbox::store::local::LocalStore;

/// Turns of the loop.
const TURNS: usize = 30;

/// What the model's context may hold of tool results.
const CONTEXT_BYTES: usize = 200_000;

type Failure = Box<dyn Error + Send + Sync>;

/// What one tool printed.
#[derive(Debug)]
struct Output {
    call_id: String,
    tool: String,
    bytes: Vec<u8>,
}

/// What stands in the prompt for a result.
#[derive(Debug, Clone)]
struct Shown {
    text: String,
    locator: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let turns = run_tools(place.path())?;
    let store_dir = place.path().join("store");
    println!("turn  results    raw bytes  context bytes  saved");
    let first = play(&replica(&store_dir).await?, &turns, true).await?;
    println!("\nthe same turns, decided by a second replica on the same store:");
    let second = play(&replica(&store_dir).await?, &turns, false).await?;
    let equal = first
        .iter()
        .zip(&second)
        .filter(|(one, two)| one == two)
        .count();
    let digest = |prompt: &String| Sha256Digest::of(prompt.as_bytes());
    println!(
        "prompts that are byte-identical: {equal} of {}",
        first.len()
    );
    if let (Some(one), Some(two)) = (first.last(), second.last()) {
        println!("last prompt, first replica   {}", digest(one));
        println!("last prompt, second replica  {}", digest(two));
    }
    if first != second {
        return Err("the replicas disagree".into());
    }
    Ok(())
}

/// Runs the commands of all turns once; what they print is the same for both replicas then.
fn run_tools(place: &Path) -> Result<Vec<Vec<Output>>, Failure> {
    let source = place.join("many_warnings.rs");
    let functions: String = (0..400)
        .map(|n| format!("fn unused_{n}() {{ let x = {n}; }}\n"))
        .collect();
    write(&source, &functions)?;
    let root = env!("CARGO_MANIFEST_DIR");
    let compile = format!(
        "rustc --crate-type lib --emit metadata -o /dev/null {}",
        source.display()
    );
    let commands = [
        (
            "find",
            "find / -xdev -maxdepth 5 2>/dev/null | head -n 40000".to_owned(),
        ),
        ("grep", format!("grep -rn 'fn ' {root}/src")),
        ("rustc", format!("{compile} 2>&1")),
        (
            "cargo",
            format!(
                "cargo metadata --offline --no-deps --format-version 1 --manifest-path {root}/Cargo.toml 2>&1"
            ),
        ),
        ("ls", format!("ls -la {root}")),
    ];
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        let mut outputs = Vec::new();
        for call in 0..3 {
            let (tool, command) = &commands[(turn + call * 2) % commands.len()];
            let printed = Command::new("sh").arg("-c").arg(command).output()?;
            outputs.push(Output {
                call_id: format!("call_{call}"),
                tool: (*tool).to_owned(),
                bytes: printed.stdout,
            });
        }
        turns.push(outputs);
    }
    Ok(turns)
}

#[expect(clippy::disallowed_methods, reason = "a scratch file of an example")]
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)
}

/// One replica of the service's core, with caches of its own.
async fn replica(dir: &Path) -> Result<Decider, Failure> {
    let store = LocalStore::open(dir, SystemClock::shared(), SystemIds::shared())?;
    let store: SharedStore = Arc::new(store);
    let keys = KeySpace::new("")?;
    let format = StoreFormat::open(&*store, &keys, DEFAULT_ORPHAN_TTL).await?;
    let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
    let options = LibraryOptions::default();
    Ok(Decider::new(Library::new(
        store, keys, format, clock, ids, options,
    )))
}

/// Decides all turns, and returns the prompt after each.
async fn play(
    decider: &Decider,
    turns: &[Vec<Output>],
    is_told: bool,
) -> Result<Vec<String>, Failure> {
    let session: SessionId = "agent-loop".parse()?;
    let profile = Arc::new(profiles::default());
    let mut history: Vec<Shown> = Vec::new();
    let (mut prompts, mut raw_total) = (Vec::new(), 0);
    for (number, outputs) in turns.iter().enumerate() {
        let raw: usize = outputs.iter().map(|output| output.bytes.len()).sum();
        raw_total += raw;
        history.extend(decide(decider, &session, &profile, number, outputs).await?);
        let prompt = prompt(&history);
        if is_told {
            let saved = 100.0 * (1.0 - prompt.len() as f64 / raw_total.max(1) as f64);
            let results = outputs.len();
            println!(
                "{number:4}  {results:7}  {raw:11}  {:13}  {saved:4.1} %",
                prompt.len()
            );
        }
        prompts.push(prompt);
    }
    Ok(prompts)
}

/// Decides one turn: each result as it comes, then all together.
async fn decide(
    decider: &Decider,
    session: &SessionId,
    profile: &Arc<Profile>,
    number: usize,
    outputs: &[Output],
) -> Result<Vec<Shown>, Failure> {
    let mut results = Vec::new();
    for output in outputs {
        let call_id = format!("{number}/{}", output.call_id);
        let mut save = SaveRequest::new(Tenant::default(), session.clone());
        save.call_id = Some(call_id.parse()?);
        save.tool = Some(output.tool.clone());
        save.means = vec![RetrievalMeans::Cli];
        save.render = profile.clone();
        let request = ResultRequest {
            save,
            profile: Arc::clone(profile),
            given: Given::default(),
        };
        let bytes = Bytes::copy_from_slice(&output.bytes);
        let body = stream::once(async move { Ok(bytes) }).boxed();
        let answer = decider.decide_result(request, body).await?;
        let content = match (&answer.artifact, answer.content) {
            (Some(artifact), _) => TurnContent::Artifact(artifact.head.artifact_id),
            (None, Content::Text(text)) => TurnContent::Text(text),
            (None, _) => TurnContent::Text(String::from_utf8_lossy(&output.bytes).into_owned()),
        };
        results.push(TurnResult {
            call_id: call_id.parse()?,
            tool: Some(output.tool.clone()),
            server_max: None,
            content,
        });
    }
    let turn = decider
        .decide_turn(TurnRequest {
            tenant: Tenant::default(),
            session: session.clone(),
            turn: format!("turn-{number}").parse()?,
            parent: None,
            profile: Arc::clone(profile),
            means: vec![RetrievalMeans::Cli],
            context_tokens: None,
            results,
        })
        .await?;
    let shown = turn.answers.into_iter().map(|answer| Shown {
        locator: answer
            .artifact
            .map(|found| found.head.replacement.locator.clone()),
        text: match answer.content {
            Content::Text(text) => text,
            Content::Parts(_) | Content::AsSent => String::new(),
        },
    });
    Ok(shown.collect())
}

/// The tool results of the prompt: whole while they fit, the older stored ones cleared once they do not.
fn prompt(history: &[Shown]) -> String {
    let whole: usize = history.iter().map(|shown| shown.text.len()).sum();
    let clearable: Vec<_> = history
        .iter()
        .map(|shown| Clearable {
            locator: shown.locator.as_deref(),
            size_bytes: shown.text.len() as u64,
        })
        .collect();
    let kept = if whole > CONTEXT_BYTES {
        DEFAULT_KEPT
    } else {
        history.len()
    };
    let cleared = clear(&clearable, kept);
    let texts = history.iter().zip(cleared);
    texts
        .map(|(shown, cleared)| cleared.unwrap_or_else(|| shown.text.clone()) + "\n")
        .collect()
}
