//! The file, or standard output, behind the audit stream.

use std::convert::Infallible;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Output;

/// Only the service's user reads who did what.
const FILE_MODE: u32 = 0o600;

const STDOUT: &str = "stdout";

/// Where the operator wants the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditTarget {
    /// Standard output, which the service uses for nothing else.
    Stdout,
    /// A file; a file named `stdout` is `./stdout`.
    File(PathBuf),
}

impl FromStr for AuditTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            STDOUT => Self::Stdout,
            path => Self::File(path.into()),
        })
    }
}

impl fmt::Display for AuditTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str(STDOUT),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Serialize for AuditTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AuditTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse() {
            Ok(target) => Ok(target),
            Err(never) => match never {},
        }
    }
}

/// An open stream.
#[derive(Debug)]
pub enum OpenedAudit {
    /// Standard output.
    Stdout(io::Stdout),
    /// A file, and its name for the next time.
    File(File, PathBuf),
}

impl AuditTarget {
    /// Opens the stream for appending; a new file has mode 0600.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(&self) -> io::Result<OpenedAudit> {
        Ok(match self {
            Self::Stdout => OpenedAudit::Stdout(io::stdout()),
            Self::File(path) => OpenedAudit::File(append_to(path)?, path.clone()),
        })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    // Pipes and terminals cannot be read back, and need not be.
    let is_special = path
        .metadata()
        .is_ok_and(|found| !found.is_file() && !found.is_dir());
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .read(!is_special)
        .mode(FILE_MODE)
        .open(path)?;
    if !is_special {
        end_torn_line(&mut file)?;
    }
    Ok(file)
}

/// A process that was killed while it wrote leaves half a line; the next one must not be glued to it.
fn end_torn_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

impl Output for OpenedAudit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file, _) => file.write(bytes),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file, _) => match file.sync_data() {
                // Pipes and terminals have no disk.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
                synced => synced,
            },
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Self::File(file, path) = self {
            *file = append_to(path)?;
        }
        Ok(())
    }
}
