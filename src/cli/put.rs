//! `spillbox put`: stores a file or standard input and prints what stands for it in the prompt.

use std::path::{Path, PathBuf};

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::ReaderStream;

use crate::artifact::escape::escape_field;
use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::{DescriptionArgs, SessionArgs};
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output::{self, Raw};
use crate::cli::progress::Progress;
use crate::cli::steady::steady;
use crate::cli::transport::Transport;
use crate::cli::upload::{Upload, media_type_of, media_type_of_name};
use crate::ids::SessionId;

/// What decides the media type where the name says nothing.
const SAMPLE_BYTES: usize = 8 << 10;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Stores a file or standard input, and prints the replacement.
#[derive(Debug, clap::Args)]
pub struct PutArgs {
    /// The file; `-` or nothing for standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Where to store.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Its session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// What it is.
    #[command(flatten)]
    pub description: DescriptionArgs,
    /// Prints the receipt as JSON
    #[arg(long)]
    pub json: bool,
    /// Prints control characters to a terminal as they are
    #[arg(long)]
    pub raw: bool,
}

/// Runs the command.
///
/// # Errors
/// The file cannot be read, or nothing was stored.
pub async fn run(args: &PutArgs, variables: &Variables, transport: &Transport) -> Result<u8, Stop> {
    let session = args.session.session(variables)?;
    if args.description.profile.is_some() {
        return decide(args, &session, transport).await;
    }
    let mut description = args.description.clone();
    let mut source = Source::open(args.file.as_deref()).await?;
    if description.name.is_none() {
        description.name.clone_from(&source.name);
    }
    let sample = source.sample().await?;
    let media_type = source
        .name
        .as_deref()
        .and_then(media_type_of_name)
        .unwrap_or_else(|| media_type_of(&sample, sample.len() < SAMPLE_BYTES));
    let upload = Upload {
        path: description.path(&session),
        media_type,
        size_bytes: source.size_bytes,
        body: source.into_body(sample),
    };
    let saved = upload.send(transport).await?;
    if args.json {
        output::write_json(&saved.receipt)?;
    } else {
        output::write_text(&saved.replacement, Raw::for_stdout(args.raw))?;
        if !saved.replacement.ends_with('\n') {
            output::write_bytes(b"\n")?;
        }
    }
    Ok(EXIT_DONE)
}

/// Lets the profile decide whether the output is stored at all.
async fn decide(args: &PutArgs, session: &SessionId, transport: &Transport) -> Result<u8, Stop> {
    let path = args.description.result_path(session)?;
    let mut source = Source::open(args.file.as_deref()).await?;
    let sample = source.sample().await?;
    let is_whole = sample.len() < SAMPLE_BYTES;
    let upload = Upload {
        path,
        media_type: media_type_of(&sample, is_whole),
        size_bytes: source.size_bytes,
        body: source.into_body(sample),
    };
    let decision = upload.decide(transport).await?;
    if let Some(reason) = decision.get("reason").and_then(Value::as_str) {
        output::say(&format!("warning: {}", escape_field(reason)));
    }
    if args.json {
        output::write_json(&decision)?;
        return Ok(EXIT_DONE);
    }
    let Some(text) = decision.get("text").and_then(Value::as_str) else {
        output::say("note: the output stays as it is; it is no text, or too long to be repeated");
        return Ok(EXIT_DONE);
    };
    output::write_text(text, Raw::for_stdout(args.raw))?;
    if decision.get("action").and_then(Value::as_str) == Some("spilled") && !text.ends_with('\n') {
        output::write_bytes(b"\n")?;
    }
    Ok(EXIT_DONE)
}

/// What is to be stored.
struct Source {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    /// How errors name it.
    shown: String,
    /// The file's name, as a suggestion to whoever downloads it.
    name: Option<String>,
    /// Its size, where it has one.
    size_bytes: Option<u64>,
}

impl Source {
    async fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self {
                reader: Box::new(tokio::io::stdin()),
                shown: "standard input".to_owned(),
                name: None,
                size_bytes: None,
            });
        };
        let shown = path.display().to_string();
        let failed = |error: std::io::Error| Failure::new(format!("{shown}: {error}"));
        let file = File::open(path).await.map_err(failed)?;
        let metadata = file.metadata().await.map_err(failed)?;
        if metadata.is_dir() {
            return Err(Failure::new(format!("{shown}: is a directory"))
                .with_hint("store an archive of it: tar -cf - DIR | spillbox put --name DIR.tar"));
        }
        // A pipe, a device or a file under /proc has no size that means anything.
        let size_bytes = (metadata.is_file() && metadata.len() > 0).then_some(metadata.len());
        Ok(Self {
            reader: Box::new(file),
            name: path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
            shown,
            size_bytes,
        })
    }

    /// Reads the first bytes; fewer than [`SAMPLE_BYTES`] only when there are no more.
    async fn sample(&mut self) -> Result<Vec<u8>, Failure> {
        let mut sample = Vec::new();
        let mut start = (&mut self.reader).take(SAMPLE_BYTES as u64);
        match start.read_to_end(&mut sample).await {
            Ok(_) => Ok(sample),
            Err(error) => Err(Failure::new(format!("{}: {error}", self.shown))),
        }
    }

    /// The whole body. A file that grows meanwhile is stored as long as it was; one that shrinks ends
    /// early, and the save is refused.
    fn into_body(self, sample: Vec<u8>) -> Body {
        let progress = Progress::new(self.size_bytes);
        let limit = self.size_bytes.unwrap_or(u64::MAX);
        let whole = std::io::Cursor::new(sample).chain(self.reader).take(limit);
        let pieces = ReaderStream::with_capacity(whole, READ_BYTES);
        let pieces = pieces.inspect(move |piece: &std::io::Result<Bytes>| match piece {
            Ok(bytes) => progress.add(bytes.len()),
            Err(_) => progress.finish(),
        });
        match self.size_bytes {
            Some(_) => Body::from_stream(pieces),
            // Somebody's output, which may come slowly.
            None => Body::from_stream(steady(pieces)),
        }
    }
}
