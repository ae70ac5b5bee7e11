//! The walk: artifacts and journals of a tenant side by side, session by session.

use super::body::Read;
use super::sample::Sample;
use super::session::{Session, Shown, Word};
use super::{Chosen, Damage, Depth, Pace, ScrubError, ScrubFinding, ScrubReport, ScrubRequest};
use crate::gc::classify::ManifestState;
use crate::gc::collector::Collector;
use crate::gc::plan::Scope;
use crate::gc::session_keys::SessionKeys;
use crate::gc::status::Tally;
use crate::gc::walk::{Found, Walk};
use crate::ids::{ArtifactId, ArtifactRef, SessionKey, Tenant};

impl Collector {
    /// Reads bodies back and looks for what is missing. It changes nothing.
    ///
    /// # Errors
    /// See [`ScrubError`]; what is wrong with single artifacts stands in the report.
    pub async fn scrub(&self, request: &ScrubRequest) -> Result<ScrubReport, ScrubError> {
        let now = self.store_date().await?;
        let most = match request.depth {
            Depth::All => 0,
            Depth::Sample(most) => most,
        };
        let mut scrubbing = Scrubbing {
            collector: self,
            depth: request.depth,
            sample: Sample::new(most),
            pace: Pace::starting(request.bytes_per_second),
            report: ScrubReport::new(now, request.scope.clone()),
        };
        match &request.scope {
            Scope::All => {
                for tenant in self.tenants().await? {
                    scrubbing.tenant(&tenant, None).await?;
                }
            }
            Scope::Tenant(tenant) => scrubbing.tenant(tenant, None).await?,
            Scope::Session { tenant, session } => {
                let session_key = SessionKey::derive(tenant, session);
                scrubbing.tenant(tenant, Some(session_key)).await?;
            }
        }
        scrubbing.read_sample().await?;
        Ok(scrubbing.report)
    }
}

struct Scrubbing<'a> {
    collector: &'a Collector,
    depth: Depth,
    sample: Sample<Chosen>,
    pace: Pace,
    report: ScrubReport,
}

/// The sessions of a tenant that have a journal, seen from one in the middle of the walk.
struct JournalsAhead<'a> {
    all: Option<SessionKeys<'a>>,
    next: Option<SessionKey>,
}

impl JournalsAhead<'_> {
    async fn step(&mut self) -> Result<(), ScrubError> {
        self.next = match &mut self.all {
            Some(all) => all.next().await?,
            None => None,
        };
        Ok(())
    }
}

impl Scrubbing<'_> {
    async fn tenant(
        &mut self,
        tenant: &Tenant,
        only: Option<SessionKey>,
    ) -> Result<(), ScrubError> {
        let (store, keys) = (&*self.collector.store, &self.collector.keys);
        let within = only.map(|session_key| format!("{session_key}/"));
        let mut artifacts = Walk::new(
            store,
            &keys.all_manifests(tenant),
            &keys.all_bodies(tenant),
            within.as_deref().unwrap_or_default(),
        );
        let mut journals = match only {
            Some(session_key) => JournalsAhead {
                all: None,
                next: Some(session_key),
            },
            None => JournalsAhead {
                all: Some(SessionKeys::below(store, keys.all_journals(tenant))),
                next: None,
            },
        };
        if only.is_none() {
            journals.step().await?;
        }
        let mut current: Option<Session> = None;
        while let Some(found) = artifacts.next().await? {
            // What is none of ours is a plan's to count.
            let Found::Pair(pair) = found else { continue };
            let session_key = pair.artifact.session_key;
            if current
                .as_ref()
                .is_some_and(|session| session.session_key != session_key)
                && let Some(ended) = current.take()
            {
                self.end(ended, &mut journals).await?;
            }
            let session = current.get_or_insert_with(|| Session {
                tenant: tenant.clone(),
                session_key,
                shown: std::collections::BTreeMap::new(),
            });
            let shown = Shown {
                has_manifest: pair.manifest.is_some(),
                has_body: pair.body.is_some(),
            };
            session.shown.insert(pair.artifact.artifact_id, shown);
        }
        if let Some(ended) = current {
            self.end(ended, &mut journals).await?;
        }
        while let Some(session_key) = journals.next {
            self.session(&nothing_shown(tenant, session_key), true)
                .await?;
            journals.step().await?;
        }
        Ok(())
    }

    /// Looks at a session that was walked to its end, and first at those before it of which only the
    /// journal is left.
    async fn end(
        &mut self,
        session: Session,
        journals: &mut JournalsAhead<'_>,
    ) -> Result<(), ScrubError> {
        while let Some(session_key) = journals.next.filter(|next| *next < session.session_key) {
            self.session(&nothing_shown(&session.tenant, session_key), true)
                .await?;
            journals.step().await?;
        }
        let has_journal = journals.next == Some(session.session_key);
        if has_journal {
            journals.step().await?;
        }
        self.session(&session, has_journal).await
    }

    async fn session(&mut self, session: &Session, has_journal: bool) -> Result<(), ScrubError> {
        let (tenant, session_key) = (&session.tenant, &session.session_key);
        let word = if has_journal {
            self.report.journals += 1;
            self.collector.word(tenant, session_key).await?
        } else {
            Word::Nothing
        };
        if let Word::Unreadable(detail) = &word {
            self.report.find(ScrubFinding {
                tenant: tenant.clone(),
                artifact: session_key.to_string(),
                damage: Damage::Unreadable,
                is_referenced: None,
                detail: format!("the journal: {detail}"),
            });
        }
        for artifact_id in word.protected() {
            let shown = session.shown.get(&artifact_id).copied().unwrap_or_default();
            if !(shown.has_manifest && shown.has_body) {
                self.protected(session, artifact_id).await?;
            }
        }
        for (artifact_id, shown) in &session.shown {
            let artifact = ArtifactRef {
                session_key: *session_key,
                artifact_id: *artifact_id,
            };
            let chosen = Chosen {
                tenant: tenant.clone(),
                artifact,
            };
            match (shown.has_manifest, shown.has_body) {
                (true, true) => {
                    self.report.artifacts += 1;
                    self.choose(chosen, &word).await;
                }
                (true, false) => self.without_body(&chosen, &word).await?,
                // An upload that may still be finished, or one for the collector.
                (false, _) => {}
            }
        }
        Ok(())
    }

    /// A lease protects what the listing did not show: it is looked for once more.
    async fn protected(
        &mut self,
        session: &Session,
        artifact_id: ArtifactId,
    ) -> Result<(), ScrubError> {
        let artifact = ArtifactRef {
            session_key: session.session_key,
            artifact_id,
        };
        let (manifest, has_body) = self.collector.shown_now(&session.tenant, &artifact).await?;
        let detail = match (manifest, has_body) {
            (ManifestState::Live | ManifestState::Unreadable, true) => return Ok(()),
            (ManifestState::Live | ManifestState::Unreadable, false) => "its body is not there",
            (ManifestState::Absent, true) => "its manifest is not there",
            (ManifestState::Absent, false) => "nothing of it is there",
            (ManifestState::Tombstone, _) => "it is deleted",
        };
        self.report.find(ScrubFinding {
            tenant: session.tenant.clone(),
            artifact: artifact.to_string(),
            damage: Damage::MissingReferenced,
            is_referenced: Some(true),
            detail: detail.to_owned(),
        });
        Ok(())
    }

    /// A manifest's key without a body: a tombstone, most likely. Where the journal does not say so, the
    /// key is read.
    async fn without_body(&mut self, chosen: &Chosen, word: &Word) -> Result<(), ScrubError> {
        let artifact_id = chosen.artifact.artifact_id;
        // A protected one was reported.
        if word.is_ended(artifact_id) || word.protects(artifact_id) == Some(true) {
            return Ok(());
        }
        let shown = self.collector.shown_now(&chosen.tenant, &chosen.artifact);
        if let (ManifestState::Live, false) = shown.await? {
            let detail = "its body is not there".to_owned();
            self.find(chosen, Damage::Missing, word, detail);
        }
        Ok(())
    }

    async fn choose(&mut self, chosen: Chosen, word: &Word) {
        match self.depth {
            Depth::All => self.read(&chosen, word).await,
            Depth::Sample(_) => {
                let chance = self.collector.fresh_id();
                self.sample.offer(chosen, chance);
            }
        }
    }

    async fn read_sample(&mut self) -> Result<(), ScrubError> {
        let mut chosen = std::mem::take(&mut self.sample.kept);
        chosen.sort_by_key(|chosen| {
            let ArtifactRef {
                session_key,
                artifact_id,
            } = chosen.artifact;
            (chosen.tenant.clone(), session_key, artifact_id)
        });
        for chosen in chosen {
            match self.collector.read_back(&chosen, &mut self.pace).await {
                Read::Damaged(damage, detail) => {
                    let session_key = &chosen.artifact.session_key;
                    let word = self.collector.word(&chosen.tenant, session_key).await?;
                    self.find(&chosen, damage, &word, detail);
                }
                Read::Sound(bytes) => self.sound(bytes),
                Read::Gone => {}
            }
        }
        Ok(())
    }

    async fn read(&mut self, chosen: &Chosen, word: &Word) {
        match self.collector.read_back(chosen, &mut self.pace).await {
            Read::Damaged(damage, detail) => self.find(chosen, damage, word, detail),
            Read::Sound(bytes) => self.sound(bytes),
            Read::Gone => {}
        }
    }

    fn sound(&mut self, bytes: u64) {
        self.report.sound.add(Tally { count: 1, bytes });
    }

    fn find(&mut self, chosen: &Chosen, damage: Damage, word: &Word, detail: String) {
        self.report.find(ScrubFinding {
            tenant: chosen.tenant.clone(),
            artifact: chosen.artifact.to_string(),
            damage,
            is_referenced: word.protects(chosen.artifact.artifact_id),
            detail,
        });
    }
}

fn nothing_shown(tenant: &Tenant, session_key: SessionKey) -> Session {
    Session {
        tenant: tenant.clone(),
        session_key,
        shown: std::collections::BTreeMap::new(),
    }
}
