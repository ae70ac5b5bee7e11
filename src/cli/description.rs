//! What a caller says about an output that is saved.

use std::str::FromStr;

use crate::artifact::completeness::parse_with_loss;
use crate::artifact::hint::parse_means;
use crate::cli::connection::Variables;
use crate::cli::failure::Failure;
use crate::http::api_path::ApiPath;
use crate::ids::{CallId, SessionId};
use crate::policy::profiles::built_in;

/// The option that names a session.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SessionArgs {
    /// The session [env: SPILLBOX_SESSION] [default: default]
    #[arg(long, value_name = "ID", value_parser = SessionId::from_str)]
    pub session: Option<SessionId>,
}

impl SessionArgs {
    /// Returns the session that the command is about.
    ///
    /// # Errors
    /// The environment names one that cannot be.
    pub fn session(&self, variables: &Variables) -> Result<SessionId, Failure> {
        if let Some(session) = &self.session {
            return Ok(session.clone());
        }
        let Some(text) = &variables.session else {
            return Ok(SessionId::default());
        };
        text.parse()
            .map_err(|error| Failure::usage(format!("SPILLBOX_SESSION: {error}")))
    }
}

/// Options that describe an output.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DescriptionArgs {
    /// The tool that printed it
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// The tool call; the same bytes under the same id are stored once
    #[arg(long, value_name = "ID", value_parser = call_id)]
    pub call_id: Option<String>,
    /// A label
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// A file name to suggest to whoever downloads it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// A title
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// One line that says what it is
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    /// complete, upstream_truncated, capped or unknown; what is known lost after a colon
    #[arg(long, value_name = "STATE", value_parser = completeness)]
    pub completeness: Option<String>,
    /// The session that this one forks from
    #[arg(long, value_name = "ID", value_parser = SessionId::from_str)]
    pub parent: Option<SessionId>,
    /// How the reader can read on: a comma list of cli, http, file, mcp:TOOL; empty for none
    /// [default: the profile's, else cli]
    #[arg(long, value_name = "LIST", value_parser = means)]
    pub means: Option<String>,
    /// Whose limits and message form hold; `spillbox profiles` lists them
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

fn call_id(text: &str) -> Result<String, crate::ids::InvalidIdError> {
    CallId::from_str(text).map(|_| text.to_owned())
}

fn completeness(
    text: &str,
) -> Result<String, crate::artifact::completeness::InvalidCompletenessError> {
    parse_with_loss(text).map(|_| text.to_owned())
}

fn means(text: &str) -> Result<String, crate::artifact::hint::InvalidMeansError> {
    parse_means(text).map(|_| text.to_owned())
}

impl DescriptionArgs {
    /// Returns the path that stores an output under this description.
    pub fn path(&self, session: &SessionId) -> ApiPath {
        ApiPath::artifacts(session)
            .with("tool", self.tool.as_ref())
            .with("call_id", self.call_id.as_ref())
            .with("label", self.label.as_ref())
            .with("name", self.name.as_ref())
            .with("title", self.title.as_ref())
            .with("summary", self.summary.as_ref())
            .with("completeness", self.completeness.as_ref())
            .with("parent", self.parent.as_ref())
            .with("profile", self.profile.as_ref())
            .with("means", self.means().as_ref())
    }

    /// Returns the path that decides an output under this description.
    ///
    /// # Errors
    /// Something is described that a result does not have.
    pub fn result_path(&self, session: &SessionId) -> Result<ApiPath, Failure> {
        let surplus = [
            ("--label", self.label.is_some()),
            ("--name", self.name.is_some()),
            ("--title", self.title.is_some()),
            ("--summary", self.summary.is_some()),
            ("--completeness", self.completeness.is_some()),
        ];
        if let Some((option, _)) = surplus.iter().find(|(_, is_given)| *is_given) {
            let rule =
                format!("{option} describes an artifact, but with --profile a result is decided");
            return Err(Failure::usage(rule));
        }
        Ok(ApiPath::results(session)
            .with("tool", self.tool.as_ref())
            .with("call_id", self.call_id.as_ref())
            .with("parent", self.parent.as_ref())
            .with("profile", self.profile.as_ref())
            .with("means", self.means().as_ref()))
    }

    /// A built-in profile names no means, and a command's caller has the command. What another profile
    /// names is only known where it was made.
    fn means(&self) -> Option<String> {
        let is_own = |name: &String| built_in().iter().all(|known| known.name != *name);
        match (&self.means, &self.profile) {
            (Some(means), _) => Some(means.clone()),
            (None, Some(profile)) if is_own(profile) => None,
            (None, _) => Some("cli".to_owned()),
        }
    }
}
