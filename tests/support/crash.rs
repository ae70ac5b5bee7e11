//! Clients that die half-way: nothing that they send afterwards arrives.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use spillbox::store::keys::KeySpace;
use spillbox::store::metered::StoreOperation;
use spillbox::store::{SharedStore, StoreError, StoreErrorKind};

use super::hooked::{Ask, Hook, hooked};

/// Refuses to put keys that contain a text.
#[derive(Debug)]
struct Refusing(&'static str);

/// A store through which a save dies before it puts a key of this class.
pub(crate) fn refusing(store: &SharedStore, class: &'static str) -> SharedStore {
    hooked(store, &Arc::new(Refusing(class)))
}

#[async_trait]
impl Hook for Refusing {
    async fn before(&self, _: &SharedStore, ask: &Ask<'_>) -> Result<usize, StoreError> {
        if ask.operation == StoreOperation::Put && ask.key.contains(self.0) {
            return ask.fail(StoreErrorKind::Denied, "the client died here");
        }
        Ok(0)
    }
}

/// When a client dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// The request never arrives.
    Before,
    /// It takes effect; its answer comes to nobody.
    After,
}

/// A client that dies at one of its requests, or at none, and what it asked until then.
#[derive(Debug)]
pub(crate) struct Mortal {
    keys: KeySpace,
    dies: Option<(usize, Moment)>,
    life: Mutex<Life>,
}

#[derive(Debug, Default)]
struct Life {
    asked: Vec<String>,
    died_at: Option<String>,
}

impl Mortal {
    pub(crate) fn over(
        store: &SharedStore,
        keys: &KeySpace,
        dies: Option<(usize, Moment)>,
    ) -> (SharedStore, Arc<Self>) {
        let mortal = Arc::new(Self {
            keys: keys.clone(),
            dies,
            life: Mutex::default(),
        });
        (hooked(store, &mortal), mortal)
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap()
    }

    /// Every request, `operation:class`, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.life().asked.clone()
    }

    /// The kinds of requests.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        self.life().asked.iter().cloned().collect()
    }

    /// The request that was the last one.
    pub(crate) fn died_at(&self) -> Option<String> {
        self.life().died_at.clone()
    }

    fn label(&self, ask: &Ask<'_>) -> String {
        let operation = ask.operation.as_str();
        if ask.key.is_empty() {
            return operation.to_owned();
        }
        format!("{operation}:{}", self.keys.class_of(ask.key).as_str())
    }
}

const DEAD: &str = "the client is dead";

#[async_trait]
impl Hook for Mortal {
    async fn before(&self, _: &SharedStore, ask: &Ask<'_>) -> Result<usize, StoreError> {
        let mut life = self.life();
        if life.died_at.is_some() {
            return ask.fail(StoreErrorKind::Denied, DEAD);
        }
        let (number, label) = (life.asked.len(), self.label(ask));
        life.asked.push(label.clone());
        if self.dies == Some((number, Moment::Before)) {
            life.died_at = Some(label);
            return ask.fail(StoreErrorKind::Denied, DEAD);
        }
        Ok(number)
    }

    async fn after(&self, ask: &Ask<'_>, number: usize) -> Result<(), StoreError> {
        let mut life = self.life();
        if self.dies == Some((number, Moment::After)) {
            life.died_at = Some(self.label(ask));
        }
        if life.died_at.is_some() {
            return ask.fail(StoreErrorKind::Denied, DEAD);
        }
        Ok(())
    }
}
