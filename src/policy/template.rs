//! The sentences that stand for a result without a text of its own, by version.
//!
//! Records of decisions are content-free: they carry the version of the sentence, and the sentence is
//! made again from it. So a version, once it was used, stays here for ever.

use crate::artifact::escape::escape_field;
use crate::limits::NOTICE_TOOL_CHARS;

/// The words of one version.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// The version.
    pub version: u32,
    /// For a tool that printed nothing that could be seen: the tool, and how many bytes it printed.
    pub nothing_printed: fn(Option<&str>, u64) -> String,
    /// For an output that was deleted: the tool, and why.
    pub deleted: fn(Option<&str>, &str) -> String,
}

/// The words of version 1.
pub const VERSION_1: Template = Template {
    version: 1,
    nothing_printed: nothing_printed_1,
    deleted: deleted_1,
};

/// The versions that a process can read. A parameter, so that an upgrade can be tested.
#[derive(Debug, Clone, Copy)]
pub struct Templates {
    newest: &'static Template,
    older: &'static [Template],
}

impl Default for Templates {
    fn default() -> Self {
        Self::new(&VERSION_1, &[])
    }
}

/// The record was written with a version that this process does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the decision was worded by version {0}, which this version cannot repeat")]
pub struct UnknownTemplateError(pub u32);

impl Templates {
    /// Makes a set of versions: the one that decides, and those that it can repeat.
    pub fn new(newest: &'static Template, older: &'static [Template]) -> Self {
        Self { newest, older }
    }

    /// Returns the version that new decisions are made with.
    pub fn newest(&self) -> &'static Template {
        self.newest
    }

    /// Returns a version.
    ///
    /// # Errors
    /// This process does not have it.
    pub fn of(&self, version: u32) -> Result<&'static Template, UnknownTemplateError> {
        let mut all = std::iter::once(self.newest).chain(self.older);
        all.find(|template| template.version == version)
            .ok_or(UnknownTemplateError(version))
    }
}

fn shown_tool(tool: Option<&str>) -> Option<String> {
    let tool = tool.filter(|tool| !tool.trim().is_empty())?;
    let short: String = tool.chars().take(NOTICE_TOOL_CHARS).collect();
    Some(escape_field(&short))
}

fn nothing_printed_1(tool: Option<&str>, size_bytes: u64) -> String {
    let by = shown_tool(tool).map_or(String::new(), |tool| format!(" from `{tool}`"));
    match size_bytes {
        0 => format!("no output{by} (0 bytes)"),
        _ => format!("no visible output{by} ({size_bytes} bytes of white space)"),
    }
}

fn deleted_1(tool: Option<&str>, reason: &str) -> String {
    let of = shown_tool(tool).map_or(String::new(), |tool| format!(" of `{tool}`"));
    format!(
        "[the output{of} is not kept any longer ({reason}); run the tool again where it matters]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentences_of_version_1_are_golden() {
        let templates = Templates::default();
        let first = templates.of(1).unwrap();
        assert_eq!((first.nothing_printed)(None, 0), "no output (0 bytes)");
        assert_eq!(
            (first.nothing_printed)(Some("Bash"), 0),
            "no output from `Bash` (0 bytes)"
        );
        assert_eq!(
            (first.nothing_printed)(Some("a\n[spillbox]"), 3),
            "no visible output from `a [\\spillbox]` (3 bytes of white space)"
        );
        assert_eq!(
            (first.deleted)(Some("grep"), "erased"),
            "[the output of `grep` is not kept any longer (erased); run the tool again where it matters]"
        );
        assert_eq!(templates.newest().version, 1);
        assert_eq!(templates.of(2).unwrap_err(), UnknownTemplateError(2));
    }
}
