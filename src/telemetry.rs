//! Logs: events to standard error, for people on a terminal and as JSON otherwise.
//!
//! Standard output belongs to data. Queries, locators and content are never logged: our own events
//! name none, and the libraries below us are held to `info`, since their debug events print requests.

use std::io::{self, IsTerminal};

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The environment variable with the filter, as `info` or `spillbox::http=debug`.
pub const LOG_VARIABLE: &str = "SPILLBOX_LOG";

/// The environment variable with the format: `auto`, `json` or `text`.
pub const LOG_FORMAT_VARIABLE: &str = "SPILLBOX_LOG_FORMAT";

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One JSON object per line.
    Json,
    /// Lines for people.
    Text,
}

/// The logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is malformed.
    #[error("{LOG_VARIABLE}: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The format is none of the three.
    #[error("{LOG_FORMAT_VARIABLE}: `{0}` is none of auto, json, text")]
    Format(String),
    /// Something else in this process logs already.
    #[error("logs are already set up: {0}")]
    Init(#[from] TryInitError),
}

impl std::str::FromStr for LogFormat {
    type Err = TelemetryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" | "" => Ok(Self::Auto),
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            other => Err(TelemetryError::Format(other.to_owned())),
        }
    }
}

/// Sends the process's events to standard error. `filter` is the text of [`LOG_VARIABLE`]; without
/// one, events from `default_level` up are written.
///
/// # Errors
/// The filter is malformed, or the process has a subscriber already.
pub fn init(
    format: LogFormat,
    filter: Option<&str>,
    default_level: LevelFilter,
) -> Result<(), TelemetryError> {
    let is_terminal = io::stderr().is_terminal();
    let layer = events(format, filter, default_level, is_terminal, io::stderr)?;
    tracing_subscriber::registry().with(layer).try_init()?;
    Ok(())
}

/// Builds the layer; apart from [`init`], so that tests read what is written.
fn events<S, W>(
    format: LogFormat,
    filter: Option<&str>,
    default_level: LevelFilter,
    is_terminal: bool,
    writer: W,
) -> Result<Box<dyn Layer<S> + Send + Sync>, TelemetryError>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    W: for<'w> tracing_subscriber::fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let chosen = EnvFilter::builder()
        .with_default_directive(default_level.into())
        .parse(filter.unwrap_or_default())?;
    let filter = chosen.and(filter_fn(is_loggable));
    let is_text = match format {
        LogFormat::Auto => is_terminal,
        LogFormat::Json => false,
        LogFormat::Text => true,
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    Ok(if is_text {
        layer.with_ansi(is_terminal).with_filter(filter).boxed()
    } else {
        layer.json().flatten_event(true).with_filter(filter).boxed()
    })
}

/// Whether an event of this origin and level may be written at all, whatever the filter says.
fn is_loggable(metadata: &Metadata<'_>) -> bool {
    let is_ours = metadata.target().split("::").next() == Some("spillbox");
    is_ours || *metadata.level() <= Level::INFO
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat, filter: Option<&str>, is_terminal: bool) -> String {
        let sink = Written::default();
        let writer = sink.clone();
        let make = move || writer.clone();
        let layer = events(format, filter, LevelFilter::INFO, is_terminal, make).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(target: "spillbox::http", size_bytes = 7, "ours at info");
            tracing::debug!(target: "spillbox::http", "ours at debug");
            tracing::info!(target: "hyper::proto", "theirs at info");
            tracing::debug!(target: "hyper::proto", "theirs at debug");
        });
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn away_from_a_terminal_each_event_is_one_json_object() {
        let text = written(LogFormat::Auto, None, false);
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0]["message"], "ours at info");
        assert_eq!(lines[0]["size_bytes"], 7);
        let forced = written(LogFormat::Text, None, false);
        assert!(
            !forced.contains('\u{1b}') && !forced.starts_with('{'),
            "{forced}"
        );
        assert!(written(LogFormat::Json, None, true).starts_with('{'));
    }

    #[test]
    fn no_filter_makes_a_library_print_its_requests() {
        for filter in ["trace", "hyper=trace,debug"] {
            let text = written(LogFormat::Json, Some(filter), false);
            assert!(text.contains("ours at debug"), "{text}");
            assert!(!text.contains("theirs at debug"), "{text}");
        }
        assert!(!written(LogFormat::Json, Some("warn"), false).contains("info"));
    }

    #[test]
    fn a_malformed_setting_is_named() {
        let error = init(LogFormat::Auto, Some("spillbox=loud"), LevelFilter::INFO).unwrap_err();
        assert!(error.to_string().starts_with("SPILLBOX_LOG:"), "{error}");
        let error = "xml".parse::<LogFormat>().unwrap_err();
        assert!(error.to_string().contains("json"), "{error}");
    }
}
