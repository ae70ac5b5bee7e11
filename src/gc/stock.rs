//! What a store holds: objects and bytes of every class, and how long each class stays.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gc::collector::Collector;
use crate::gc::status::Tally;
use crate::store::keys::{KeyClass, Retention};
use crate::store::{ListRequest, StoreError, StoreErrorKind, paging};

/// Objects and bytes of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StockRow {
    /// The class's word, as in metrics.
    pub class: &'static str,
    /// Objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they stay.
    pub retention: String,
}

/// What a store holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stock {
    /// One row per class, those without objects too.
    pub classes: Vec<StockRow>,
    /// Multipart uploads that nobody finished; none where the store cannot tell.
    pub uploads: Option<u64>,
}

/// Returns a rule in words.
fn in_words(retention: Retention) -> String {
    match retention {
        Retention::Store => "with the store".to_owned(),
        Retention::Collected => "collected".to_owned(),
        Retention::Session => "with the session".to_owned(),
        Retention::Age(age) => format!("{} d", age.as_secs() / 86_400),
        Retention::NotOurs => "never touched".to_owned(),
    }
}

impl Collector {
    /// Lists everything below the store's prefix and counts it by class. Older versions are not counted.
    ///
    /// # Errors
    /// The store's.
    pub async fn stock(&self) -> Result<Stock, StoreError> {
        let mut tallies: BTreeMap<KeyClass, Tally> = BTreeMap::new();
        let request = ListRequest {
            prefix: self.keys.root(),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        while let Some(page) = pages.next_page().await? {
            for listed in page.objects {
                let class = self.keys.class_of(&listed.key);
                tallies.entry(class).or_default().add(Tally {
                    count: 1,
                    bytes: listed.size_bytes,
                });
            }
        }
        let row = |class: KeyClass| {
            let tally = tallies.get(&class).copied().unwrap_or_default();
            StockRow {
                class: class.as_str(),
                count: tally.count,
                bytes: tally.bytes,
                retention: in_words(class.retention()),
            }
        };
        Ok(Stock {
            classes: KeyClass::ALL.map(row).to_vec(),
            uploads: self.count_uploads().await?,
        })
    }

    async fn count_uploads(&self) -> Result<Option<u64>, StoreError> {
        let mut pages = paging::list_uploads(&*self.store);
        let mut count = 0;
        loop {
            match pages.next_page().await {
                Ok(Some(page)) => {
                    let keys = page.uploads.iter().map(|upload| &upload.key);
                    let ours = keys.filter(|key| self.keys.artifact_of_body(key).is_some());
                    count += ours.count() as u64;
                }
                Ok(None) => return Ok(Some(count)),
                Err(error)
                    if error.is(StoreErrorKind::NotImplemented)
                        || error.is(StoreErrorKind::Denied) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
