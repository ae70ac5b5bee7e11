//! The server: which tools there are, and which function answers each.

use std::sync::Arc;

use rmcp::handler::server::tool::schema_for_type;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ids::SessionId;
use crate::mcp::answer::Refused;
use crate::mcp::arguments::{
    GrepArguments, ListArguments, LocatorArguments, ReadArguments, SaveArguments,
};
use crate::mcp::ask::Ask;
use crate::mcp::{reading, saving};

const INSTRUCTIONS: &str = "Large tool outputs are kept whole; what stands in the prompt is an excerpt with a \
    locator. artifact_outline tells what stands out, artifact_grep finds lines, artifact_read shows pages. \
    Every reply has a bound and says how to go on.";

/// The tools over something that answers requests.
#[derive(Debug, Clone)]
pub struct ArtifactTools {
    ask: Arc<dyn Ask>,
    session: SessionId,
}

impl ArtifactTools {
    /// Creates the tools; `session` is where they list and store unless a call says otherwise.
    pub fn new(ask: Arc<dyn Ask>, session: SessionId) -> Self {
        Self { ask, session }
    }

    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Option<Result<CallToolResult, Refused>> {
        let ask = &*self.ask;
        Some(match name {
            "artifact_read" => match parsed::<ReadArguments>(arguments) {
                Ok(wanted) => reading::read(ask, &wanted).await,
                Err(refused) => Err(refused),
            },
            "artifact_grep" => match parsed::<GrepArguments>(arguments) {
                Ok(wanted) => reading::grep(ask, &wanted).await,
                Err(refused) => Err(refused),
            },
            "artifact_stat" => match parsed::<LocatorArguments>(arguments) {
                Ok(wanted) => reading::stat(ask, &wanted).await,
                Err(refused) => Err(refused),
            },
            "artifact_outline" => match parsed::<LocatorArguments>(arguments) {
                Ok(wanted) => reading::outline(ask, &wanted).await,
                Err(refused) => Err(refused),
            },
            "artifact_list" => match parsed::<ListArguments>(arguments) {
                Ok(wanted) => reading::list(ask, &self.session, &wanted).await,
                Err(refused) => Err(refused),
            },
            "artifact_save" => match parsed::<SaveArguments>(arguments) {
                Ok(wanted) => saving::save(ask, &self.session, wanted).await,
                Err(refused) => Err(refused),
            },
            _ => return None,
        })
    }
}

fn parsed<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Refused::arguments(error.to_string(), "the tool's schema names its arguments")
    })
}

/// Returns every tool, in the order in which an agent would use them.
pub fn tools() -> Vec<Tool> {
    let reader = |name: &'static str, title: &str, told: &'static str, schema| {
        let hints = ToolAnnotations::with_title(title)
            .read_only(true)
            .open_world(false);
        Tool::new(name, told, schema).with_annotations(hints)
    };
    let saver = ToolAnnotations::with_title("Store a text")
        .read_only(false)
        .destructive(false)
        .idempotent(false)
        .open_world(false);
    vec![
        reader(
            "artifact_outline",
            "What stands out in a stored output",
            "Counts the error- and warning-like lines of a stored output, with the line numbers of the first and \
             last, its sections, and the largest gaps between its timestamps. Ask this first.",
            schema_for_type::<LocatorArguments>(),
        ),
        reader(
            "artifact_grep",
            "Search a stored output",
            "Prints the lines of a stored output that match, each behind its line number, counted from 1.",
            schema_for_type::<GrepArguments>(),
        ),
        reader(
            "artifact_read",
            "Read a stored output",
            "Prints a page of a stored output: from a line on, its last lines, or from a byte on.",
            schema_for_type::<ReadArguments>(),
        ),
        reader(
            "artifact_stat",
            "What is known of a stored output",
            "Prints what is known of a stored output without its content: size, lines, digest, tool, when.",
            schema_for_type::<LocatorArguments>(),
        ),
        reader(
            "artifact_list",
            "List stored outputs",
            "Lists a session's stored outputs, the newest first, with their locators.",
            schema_for_type::<ListArguments>(),
        ),
        Tool::new(
            "artifact_save",
            "Stores a text byte for byte, and returns its locator and, where it is long, a preview.",
            schema_for_type::<SaveArguments>(),
        )
        .with_annotations(saver),
    ]
}

impl ServerHandler for ArtifactTools {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("spillbox", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        match self.call(&request.name, arguments).await {
            Some(Ok(result)) => Ok(result.into()),
            Some(Err(Refused(result))) => Ok((*result).into()),
            None => Err(ErrorData::invalid_params("there is no such tool", None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_schema_that_refuses_what_it_does_not_know() {
        for tool in tools() {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(
                tool.input_schema["additionalProperties"], false,
                "{}",
                tool.name
            );
            assert!(tool.name.starts_with("artifact_"));
        }
    }
}
