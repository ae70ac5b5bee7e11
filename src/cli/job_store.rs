//! The store of a job that works straight on it, tried before anything is decided on its word.

use crate::artifact::library::Library;
use crate::artifact::locator::LocatorBase;
use crate::cli::failure::{EXIT_REFUSED, Failure};
use crate::cli::gc::PlaceArgs;
use crate::cli::store::{failure_of, settings};
use crate::clock::SystemClock;
use crate::ids::SystemIds;
use crate::lease::journals::Journals;
use crate::open_store::{Access, attest_options, attestation_target, library_over, open_store};
use crate::settings::{Flag, Settings, StoreUrl};
use crate::store::SharedStore;
use crate::store::attest::{Fence, Verdict, attest_or_reuse};
use crate::store::keys::KeySpace;

/// A store that was tried, with its settings.
#[derive(Debug)]
pub struct JobStore {
    /// The artifacts.
    pub library: Library,
    /// The journals, of which this process is one more writer.
    pub journals: Journals,
    /// The strongest delete fence that the store was seen to honour.
    pub fence: Fence,
    /// What the operator has set.
    pub settings: Settings,
}

impl JobStore {
    /// Opens the store that flags, environment and settings name. `store_variable` is what SPILLBOX_STORE
    /// says.
    ///
    /// # Errors
    /// The settings or the store cannot be used; exit status 4 where the store was tried and refused.
    pub async fn open(place: &PlaceArgs, store_variable: Option<&str>) -> Result<Self, Failure> {
        let flag = |name, value: &str| Flag {
            name,
            key: "store.url",
            value: value.to_owned(),
        };
        let store = place.store.as_deref().map(|value| flag("--store", value));
        let store = store.or_else(|| store_variable.map(|value| flag("SPILLBOX_STORE", value)));
        let settings = settings(place.config.as_deref(), store.as_slice())?;
        let url = &settings.store.url;
        let said = |error| failure_of(&error, url);
        let opened = open_store(&settings.store).await.map_err(said)?;
        let fence = tried(&settings, &opened).await?;
        let access = Access::ReadWrite;
        let opening = library_over(opened, &settings, LocatorBase::Store, Vec::new(), access);
        let (library, journals) = opening.await.map_err(said)?;
        Ok(Self {
            library,
            journals,
            fence,
            settings,
        })
    }
}

/// Attests the store, or uses what was seen not long ago: nothing is decided where two may win one key.
async fn tried(settings: &Settings, opened: &(SharedStore, KeySpace)) -> Result<Fence, Failure> {
    let url = &settings.store.url;
    if *url == StoreUrl::Memory {
        return Ok(Fence::None);
    }
    let target = attestation_target(&settings.store, &opened.0, &opened.1).await;
    let target = target.map_err(|error| failure_of(&error, url))?;
    let (clock, ids) = (SystemClock, SystemIds::default());
    let options = attest_options(&settings.store);
    let (attestation, _) = attest_or_reuse(&target, &clock, &ids, options).await;
    match attestation.verdict {
        Verdict::Trusted | Verdict::Restricted => Ok(attestation.delete_fence),
        Verdict::Refused => {
            let refused = format!("{url}: the store does not keep what a job relies on");
            let hint = "`spillbox doctor` says what was seen";
            Err(Failure::new(refused)
                .with_hint(hint)
                .with_exit(EXIT_REFUSED))
        }
        Verdict::Unreachable => Err(Failure::new(format!("{url}: the store does not answer"))
            .with_hint("`spillbox doctor` says what was seen")),
    }
}
