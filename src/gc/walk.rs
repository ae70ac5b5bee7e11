//! Reading the two listings of a tenant side by side.

use crate::gc::collector::Collector;
use crate::gc::inventory::{Inventory, InventoryError, Pair, Side, Step};
use crate::ids::Tenant;
use crate::store::paging::{self, Pages};
use crate::store::{ListPage, ListRequest, ObjectStore, StoreError};

/// A listing could not be read to its end: nothing may be concluded from what was seen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WalkError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The pages contradict each other.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

/// Something that a listing showed.
#[derive(Debug)]
pub(in crate::gc) enum Found {
    /// An artifact.
    Pair(Pair),
    /// A key that is none of ours.
    Foreign { size_bytes: u64, key: String },
}

/// The walk.
#[derive(Debug)]
pub(in crate::gc) struct Walk<'a> {
    inventory: Inventory,
    manifests: Pages<'a, ListPage>,
    bodies: Pages<'a, ListPage>,
}

impl<'a> Walk<'a> {
    /// Walks what begins with `within` (a session, or empty) under both prefixes.
    pub(in crate::gc) fn new(
        store: &'a dyn ObjectStore,
        manifests: &str,
        bodies: &str,
        within: &str,
    ) -> Self {
        let pages = |prefix: &str| {
            let request = ListRequest {
                prefix: format!("{prefix}{within}"),
                ..ListRequest::default()
            };
            paging::list(store, request)
        };
        Self {
            inventory: Inventory::new(manifests, bodies),
            manifests: pages(manifests),
            bodies: pages(bodies),
        }
    }

    /// Returns the next name; `None` at the end of both listings.
    pub(in crate::gc) async fn next(&mut self) -> Result<Option<Found>, WalkError> {
        loop {
            match self.inventory.next_step() {
                Step::Pair(pair) => return Ok(Some(Found::Pair(pair))),
                Step::Foreign { size_bytes, key } => {
                    return Ok(Some(Found::Foreign { size_bytes, key }));
                }
                Step::End => return Ok(None),
                Step::Need(side) => {
                    let pages = match side {
                        Side::Manifests => &mut self.manifests,
                        Side::Bodies => &mut self.bodies,
                    };
                    match pages.next_page().await? {
                        Some(page) => self.inventory.push(side, page.objects)?,
                        None => self.inventory.finish(side),
                    }
                }
            }
        }
    }
}

impl Collector {
    /// Lists the tenants; what stands among them and is none is passed over.
    ///
    /// # Errors
    /// The store's.
    pub(in crate::gc) async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let (tenants, _) = self.tenants_and_others().await?;
        Ok(tenants)
    }

    /// Lists the tenants, and the sizes of what stands among them and is none.
    ///
    /// # Errors
    /// The store's.
    pub(in crate::gc) async fn tenants_and_others(
        &self,
    ) -> Result<(Vec<Tenant>, Vec<u64>), StoreError> {
        let prefix = self.keys.tenants();
        let request = ListRequest {
            prefix: prefix.clone(),
            delimiter: Some('/'),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        let (mut tenants, mut others) = (Vec::new(), Vec::new());
        while let Some(page) = pages.next_page().await? {
            others.extend(page.objects.into_iter().map(|listed| listed.size_bytes));
            for common in page.common_prefixes {
                let name = common.strip_prefix(&prefix);
                let name = name.and_then(|name| name.strip_suffix('/'));
                match name.and_then(|name| name.parse().ok()) {
                    Some(tenant) => tenants.push(tenant),
                    None => others.push(0),
                }
            }
        }
        Ok((tenants, others))
    }
}
