//! Describing a stored body: the manifest as a function of the request, the scan and the body's
//! stored identity.

use crate::artifact::hint::HintTarget;
use crate::artifact::library::{Library, LibraryOptions};
use crate::artifact::manifest::{
    BodyIdentity, MANIFEST_VERSION, Manifest, ManifestHead, Provenance, Replacement, source_id,
};
use crate::artifact::replacement::{PreviewBudgetTooSmallError, Rendered, ReplacementInput};
use crate::artifact::request::SaveRequest;
use crate::artifact::save::Job;
use crate::artifact::scan::BodyFacts;
use crate::artifact::summary::{SummaryFacts, summarise};
use crate::ids::{ArtifactId, ArtifactRef, DecisionId, SessionKey};
use crate::limits::CHUNK_BYTES;
use crate::store::register::Stored;

impl Job<'_> {
    /// Returns what record and manifest say of the stored body.
    pub(in crate::artifact) fn body_identity(&self, stored: &Stored) -> BodyIdentity {
        BodyIdentity {
            size_bytes: self.intake.facts.size_bytes,
            sha256: self.intake.facts.sha256,
            etag: stored.etag.0.clone(),
            version_id: stored.version_id.as_ref().map(|version| version.0.clone()),
            store_checksum: stored.checksum.clone(),
        }
    }

    /// Builds the manifest of `artifact`, whose body is stored as `stored`.
    pub(in crate::artifact) fn describe(
        &self,
        artifact: ArtifactRef,
        decision_id: Option<DecisionId>,
        stored: &Stored,
    ) -> Result<Manifest, PreviewBudgetTooSmallError> {
        let (facts, request) = (&self.intake.facts, self.request);
        let summary = summary_of(request, facts);
        let replacement = self.render(&artifact, &summary)?;
        let head = ManifestHead {
            v: MANIFEST_VERSION,
            artifact_id: artifact.artifact_id,
            tenant: request.tenant.clone(),
            session: request.session.clone(),
            session_key: artifact.session_key,
            parent_session: self.session.parent.clone(),
            decision_id,
            body: self.body_identity(stored),
            media_type: request.media_type.clone(),
            binary: facts.is_binary(),
            first_invalid_utf8: facts.first_invalid_utf8,
            line_count: facts.line_count,
            provenance: Provenance {
                tool: request.tool.clone(),
                call_id: request.call_id.clone(),
                label: request.label.clone(),
                name: request.name.clone(),
                title: request.title.clone(),
                // A store that sends no date leaves this host's clock as the only witness.
                captured_at: stored.date.unwrap_or_else(|| self.library.clock.now()),
            },
            completeness: request.completeness,
            upstream_loss: request.upstream_loss.clone(),
            redaction: "none".to_owned(),
            summary,
            replacement,
            outline: facts.outline.clone(),
            chunk_bytes: CHUNK_BYTES as u64,
        };
        Ok(Manifest {
            head,
            chunks: facts.chunks.clone(),
        })
    }

    fn render(
        &self,
        artifact: &ArtifactRef,
        summary: &str,
    ) -> Result<Replacement, PreviewBudgetTooSmallError> {
        let (facts, request, options) = (&self.intake.facts, self.request, &self.library.options);
        let rendered = render_as(options, request, facts, artifact, summary)?;
        Ok(Replacement {
            template_version: request.render.template_version(),
            profile: request.render.profile().to_owned(),
            retrieval_hint: rendered.hint,
            text: rendered.text,
            truncated: rendered.truncated,
            preview_bytes: rendered.preview_bytes,
            omitted_bytes: rendered.omitted_bytes,
            head_end: rendered.head_end,
            tail_start: rendered.tail_start,
            locator: options.locator_base.planned(artifact),
        })
    }
}

fn summary_of(request: &SaveRequest, facts: &BodyFacts) -> String {
    summarise(
        request.summary.as_deref(),
        &SummaryFacts {
            tool: request.tool.as_deref(),
            line_count: facts.line_count,
            size_bytes: facts.size_bytes,
            first_line: &facts.first_line,
        },
    )
}

fn render_as(
    options: &LibraryOptions,
    request: &SaveRequest,
    facts: &BodyFacts,
    artifact: &ArtifactRef,
    summary: &str,
) -> Result<Rendered, PreviewBudgetTooSmallError> {
    let locator = options.locator_base.planned(artifact);
    let source = source_id(&request.session, &artifact.artifact_id, &facts.sha256);
    let input = ReplacementInput {
        tool: request.tool.as_deref(),
        summary,
        completeness: request.completeness,
        known_lost: request.upstream_loss.as_deref(),
        media_type: Some(&request.media_type),
        source_id: &source,
        means: &request.means,
        target: HintTarget {
            locator: &locator,
            token_variable: options.token_variable,
            cli_args: &options.cli_args,
        },
    };
    request.render.render(&input, facts)
}

impl Library {
    /// Renders what would stand for a body, under an artifact id that is none: every id has the same
    /// length, so this is what the text will cost.
    ///
    /// # Errors
    /// The notice does not fit its cap.
    pub fn price(
        &self,
        request: &SaveRequest,
        facts: &BodyFacts,
    ) -> Result<Rendered, PreviewBudgetTooSmallError> {
        let artifact = ArtifactRef {
            session_key: SessionKey::derive(&request.tenant, &request.session),
            artifact_id: ArtifactId::new(0, [0; 10]),
        };
        let summary = summary_of(request, facts);
        render_as(self.options(), request, facts, &artifact, &summary)
    }
}
