//! `spillbox get`: an artifact into a file that is either whole and right, or not there.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;

use crate::artifact::file_name::encode_file_name;
use crate::cli::cat;
use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::download::Download;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::stat;
use crate::cli::transport::Transport;
use crate::ids::{ArtifactRef, SharedIds};

/// Stores an artifact's bytes in a file.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// The file, a directory that gets a file of the artifact's own name, or `-`
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Replaces an existing file
    #[arg(long)]
    pub force: bool,
    /// Prints path, size and digest as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. `unique` makes the temporary file's name.
///
/// # Errors
/// The artifact cannot be read, the file cannot be written, or it is there already.
pub async fn run(args: &GetArgs, transport: &Transport, unique: &SharedIds) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    if args.output == Path::new("-") {
        let mut download = Download::open(transport, &artifact).await?;
        cat::print(&mut download).await?;
        return Ok(EXIT_DONE);
    }
    let target = target(&args.output, transport, &artifact).await?;
    refuse_special(&target)?;
    if !args.force && target.symlink_metadata().is_ok() {
        return Err(is_there(&target).into());
    }
    let mut download = Download::open(transport, &artifact).await?;
    let unique = unique.uuid(crate::clock::SystemClock::shared().now());
    let temporary = Temporary::beside(&target, &unique.to_string());
    write(&mut download, &temporary.path)
        .await
        .map_err(|error| error.named(&temporary.path))?;
    publish(&temporary.path, &target, args.force)?;
    drop(temporary);
    let path = target.display().to_string();
    if args.json {
        output::write_json(&json!({
            "path": path,
            "size_bytes": download.size_bytes,
            "digest": download.digest.to_string(),
        }))?;
    } else {
        output::say(&format!(
            "{path}: {} bytes, {}",
            download.size_bytes, download.digest
        ));
    }
    Ok(EXIT_DONE)
}

/// Returns the file to write; in a directory, one of the artifact's suggested name.
async fn target(
    path: &Path,
    transport: &Transport,
    artifact: &ArtifactRef,
) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let manifest = stat::fetch(transport, artifact).await?;
    let name = manifest
        .pointer("/provenance/name")
        .or_else(|| manifest.get("name"))
        .and_then(Value::as_str);
    let name = match name {
        Some(name) => encode_file_name(name),
        None => format!("{}.out", artifact.artifact_id),
    };
    Ok(path.join(name))
}

/// Devices, pipes and links are not files to replace: renaming over `/dev/null` would take it from everybody.
fn refuse_special(target: &Path) -> Result<(), Failure> {
    match target.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() => {
            let message = format!("{} is no regular file", target.display());
            Err(Failure::new(message).with_hint("name a file, or use `-o -` for standard output"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn is_there(target: &Path) -> Failure {
    Failure::new(format!("{} is there already", target.display()))
        .with_hint("choose another name, or replace it with --force")
}

/// A file on its way to its name. It is removed with this value, also when the command is interrupted.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn beside(target: &Path, unique: &str) -> Self {
        let directory = target.parent().unwrap_or(Path::new(""));
        Self {
            path: directory.join(format!(".spillbox-{unique}.part")),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Published, it has two names, or this one is gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Why a file could not be filled.
enum WriteError {
    Transfer(Failure),
    File(io::Error),
}

impl WriteError {
    fn named(self, path: &Path) -> Failure {
        match self {
            Self::Transfer(failure) => failure,
            Self::File(error) => Failure::new(format!("{}: {error}", path.display())),
        }
    }
}

async fn write(download: &mut Download, path: &Path) -> Result<(), WriteError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).await.map_err(WriteError::File)?;
    while let Some(piece) = download.next().await.map_err(WriteError::Transfer)? {
        file.write_all(&piece).await.map_err(WriteError::File)?;
    }
    file.flush().await.map_err(WriteError::File)?;
    file.sync_all().await.map_err(WriteError::File)
}

/// Gives the finished file its name; without `force` never over another file.
fn publish(temporary: &Path, target: &Path, force: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("{}: {error}", target.display()));
    if force {
        return std::fs::rename(temporary, target).map_err(failed);
    }
    match std::fs::hard_link(temporary, target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(is_there(target)),
        // File systems without hard links: checked a moment before.
        Err(_) if target.symlink_metadata().is_err() => {
            std::fs::rename(temporary, target).map_err(failed)
        }
        Err(_) => Err(is_there(target)),
    }
}
