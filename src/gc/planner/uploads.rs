//! Multipart uploads that nobody will finish.

use crate::gc::classify::LISTED_TIME_MARGIN;
use crate::gc::plan::{Scope, StaleUpload};
use crate::gc::planner::{PlanError, Planning};
use crate::gc::status::{Reason, Status};
use crate::ids::SessionKey;
use crate::limits::{GC_ABANDONED_UPLOAD, GC_PLAN_UPLOADS};
use crate::store::{StoreErrorKind, paging};

impl Planning<'_> {
    /// Finds multipart uploads that nobody will finish: listed for the whole bucket and filtered here,
    /// since several servers filter wrongly.
    pub(super) async fn uploads(&mut self, scope: &Scope) -> Result<(), PlanError> {
        let mut pages = paging::list_uploads(&*self.collector.store);
        loop {
            let page = match pages.next_page().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                Err(error) if error.is(StoreErrorKind::NotImplemented) => return Ok(()),
                Err(error) if error.is(StoreErrorKind::Denied) => {
                    self.counts.add(Status::Denied, Reason::StaleUpload, 0);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            for upload in page.uploads {
                let Some((tenant, artifact)) = self.collector.keys.artifact_of_body(&upload.key)
                else {
                    continue;
                };
                let is_in_scope = match scope {
                    Scope::All => true,
                    Scope::Tenant(only) => tenant == *only,
                    Scope::Session {
                        tenant: only,
                        session,
                    } => {
                        tenant == *only && artifact.session_key == SessionKey::derive(only, session)
                    }
                };
                let is_in_shard = self
                    .shard
                    .is_none_or(|shard| shard.contains(&artifact.session_key));
                let is_stale = upload.initiated.filter(|initiated| {
                    self.cutoff
                        .is_older(*initiated, LISTED_TIME_MARGIN, GC_ABANDONED_UPLOAD)
                });
                match is_stale {
                    Some(initiated) if is_in_scope && is_in_shard => {
                        if self.uploads.len() == GC_PLAN_UPLOADS {
                            self.is_partial = true;
                            return Ok(());
                        }
                        self.counts
                            .add(Status::PlannedDelete, Reason::StaleUpload, 0);
                        self.uploads.push(StaleUpload {
                            key: upload.key,
                            upload_id: upload.upload_id,
                            initiated,
                        });
                    }
                    Some(_) | None => {}
                }
            }
        }
    }
}
