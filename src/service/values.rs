//! The values that the children of one tree provide to each other, by scope, type and name.
//!
//! Knows which incarnation provides a value, which watchers an entry has, and in which scopes a child looks. Doesn't
//! know the types.
//!
//! # Invariants
//!
//! 1. A value is returned only while the incarnation that provides it is neither cancelled nor ended.
//! 2. An entry has one value. That of an incarnation which is cancelled or has ended blocks no other.
//! 3. An entry without a value and without a watcher doesn't exist.
//! 4. Every change of an entry wakes its watchers, after the change.
//! 5. No value is dropped and no watcher is woken while an entry is locked.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::watch;

use crate::child::{Context, GuardId, Incarnation, StopLevel};
use crate::handle::supervisor_of;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::runtime::SupervisorShared;

/// How many entries are looked at for a hint in a log line.
const LOOKED_AT: usize = 1024;

/// Where a value is provided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServiceKey {
    /// The supervisor whose children, and all below them, see the value.
    pub(super) scope: Path,
    pub(super) type_id: TypeId,
    pub(super) name: Option<Arc<str>>,
}

/// A value, and its number among all values of the tree.
#[derive(Clone)]
pub(super) struct ServiceValue {
    pub(super) value: Arc<dyn Any + Send + Sync>,
    pub(super) number: u64,
}

/// What is provided, for a list.
pub(super) struct Provided {
    pub(super) key: ServiceKey,
    pub(super) type_name: &'static str,
    pub(super) provider: Arc<Incarnation>,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Services {
    entries: DashMap<ServiceKey, ServiceEntry>,
    provided: AtomicU64,
    /// Changes with each value that is provided while somebody waits for any.
    any: watch::Sender<()>,
}

#[derive(Default)]
struct ServiceEntry {
    offer: Option<Offer>,
    /// Created by the first watcher.
    changed: Option<watch::Sender<()>>,
}

/// A value of an incarnation.
struct Offer {
    value: ServiceValue,
    type_name: &'static str,
    provider: Arc<Incarnation>,
    /// The guard that withdraws the value. `None` until it is held.
    guard: Option<GuardId>,
}

impl Offer {
    fn is_valid(&self) -> bool {
        self.provider.cell.level() == StopLevel::None
    }
}

impl ServiceEntry {
    fn is_unused(&self) -> bool {
        let changed = self.changed.as_ref();
        self.offer.is_none() && changed.is_none_or(|changed| changed.receiver_count() == 0)
    }
}

impl Services {
    /// Provides a value until the incarnation is cancelled or has ended. Its earlier value is replaced.
    ///
    /// # Errors
    ///
    /// Returns the incarnation that provides a value there already.
    pub(super) fn provide(
        self: &Arc<Self>,
        key: ServiceKey,
        provider: &Arc<Incarnation>,
        value: Arc<dyn Any + Send + Sync>,
        type_name: &'static str,
    ) -> Result<(), Arc<Incarnation>> {
        let number = self.provided.fetch_add(1, Ordering::Relaxed);
        let value = ServiceValue { value, number };
        let provider = Arc::clone(provider);
        let mut offer = Offer { value, type_name, provider: Arc::clone(&provider), guard: None };
        let (replaced, changed) = {
            let mut entry = self.entries.entry(key.clone()).or_default();
            if let Some(other) = entry.offer.as_ref().filter(|other| other.is_valid()) {
                if !Arc::ptr_eq(&other.provider, &provider) {
                    return Err(Arc::clone(&other.provider));
                }
                offer.guard = other.guard;
            }
            (entry.offer.replace(offer), entry.changed.clone())
        };
        let is_guarded = replaced.as_ref().is_some_and(|it| Arc::ptr_eq(&it.provider, &provider));
        drop_value(replaced);
        notify(changed);
        if self.any.receiver_count() > 0 {
            catch_panic(|| self.any.send_replace(()));
        }
        if !is_guarded {
            let guard = Withdrawal {
                services: Arc::clone(self),
                key: key.clone(),
                provider: Arc::as_ptr(&provider).addr(),
            };
            // If the incarnation is cancelled by now, the guard has been dropped, which withdraws the value.
            let Some(id) = provider.cell.hold(Box::new(guard)) else { return Ok(()) };
            if !self.guard(&key, &provider, id) {
                // The value was withdrawn in the meantime.
                drop(provider.cell.release(id));
            }
        }
        Ok(())
    }

    /// Notes the guard of a value. Returns `false` if there is no such value.
    fn guard(&self, key: &ServiceKey, provider: &Arc<Incarnation>, id: GuardId) -> bool {
        let Some(mut entry) = self.entries.get_mut(key) else { return false };
        match &mut entry.offer {
            Some(offer) if Arc::ptr_eq(&offer.provider, provider) => {
                offer.guard = Some(id);
                true
            }
            _ => false,
        }
    }

    /// Withdraws the value of this incarnation, if it provides one there.
    pub(super) fn withdraw(&self, key: &ServiceKey, provider: &Arc<Incarnation>) {
        let guard = self.remove(key, Arc::as_ptr(provider).addr());
        if let Some(guard) = guard.and_then(|id| provider.cell.release(id)) {
            // Its drop has nothing left to withdraw.
            drop(guard);
        }
    }

    /// Removes the value of the incarnation at this address. Returns its guard.
    fn remove(&self, key: &ServiceKey, provider: usize) -> Option<GuardId> {
        let is_of = |offer: &mut Offer| Arc::as_ptr(&offer.provider).addr() == provider;
        let (removed, changed) = {
            let mut entry = self.entries.get_mut(key)?;
            (entry.offer.take_if(is_of), entry.changed.clone())
        };
        let guard = removed.as_ref().and_then(|offer| offer.guard);
        if removed.is_some() {
            drop_value(removed);
            notify(changed);
            self.forget_unused(key);
        }
        guard
    }

    /// Returns the value that is provided there.
    pub(super) fn get(&self, key: &ServiceKey) -> Option<ServiceValue> {
        let entry = self.entries.get(key)?;
        let offer = entry.offer.as_ref().filter(|offer| offer.is_valid())?;
        Some(offer.value.clone())
    }

    /// Returns a receiver of the changes from now on. Call [`forget_unused`](Self::forget_unused) when it was
    /// dropped.
    pub(super) fn subscribe(&self, key: &ServiceKey) -> watch::Receiver<()> {
        let mut entry = self.entries.entry(key.clone()).or_default();
        entry.changed.get_or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Removes an entry that has no value and no watcher.
    pub(super) fn forget_unused(&self, key: &ServiceKey) {
        let removed = self.entries.remove_if(key, |_, entry| entry.is_unused());
        drop(removed);
    }

    /// Returns everything that is provided.
    pub(super) fn provided(&self) -> Vec<Provided> {
        let entries = self.entries.iter();
        let offers = entries.filter_map(|entry| {
            let offer = entry.offer.as_ref().filter(|offer| offer.is_valid())?;
            let provider = Arc::clone(&offer.provider);
            Some(Provided { key: entry.key().clone(), type_name: offer.type_name, provider })
        });
        offers.collect()
    }

    /// Returns a scope other than these in which such a value is provided. Looks at few entries only.
    pub(super) fn scope_elsewhere(&self, keys: &[ServiceKey]) -> Option<Path> {
        let sought = keys.first()?;
        let is_such = |key: &ServiceKey| {
            (key.type_id, &key.name) == (sought.type_id, &sought.name) && !keys.contains(key)
        };
        let mut entries = self.entries.iter().take(LOOKED_AT);
        let entry = entries.find(|entry| is_such(entry.key()) && entry.offer.is_some())?;
        Some(entry.key().scope.clone())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }
}

fn notify(changed: Option<watch::Sender<()>>) {
    if let Some(changed) = changed {
        catch_panic(|| changed.send_replace(()));
    }
}

fn drop_value(offer: Option<Offer>) {
    catch_panic(|| drop(offer));
}

/// Withdraws a value when it is dropped.
struct Withdrawal {
    services: Arc<Services>,
    key: ServiceKey,
    provider: usize,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.services.remove(&self.key, self.provider);
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// Where a value of one type and name is looked up, in order. It doesn't change while the incarnation lives:
/// a scope is the path of a supervisor, and not one of its incarnations.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) supervisor: Arc<SupervisorShared>,
    keys: Arc<[ServiceKey]>,
}

impl Lookup {
    /// Returns the lookup of a child.
    pub(super) fn of_child<T: 'static>(ctx: &Context, name: Option<&str>) -> Self {
        let segment = ctx.incarnation.segment();
        Self::new::<T>(supervisor_of(ctx), Some(&segment), name)
    }

    /// Returns the lookup of code that isn't a child, for what the children of this supervisor provide.
    pub(super) fn of_supervisor<T: 'static>(
        supervisor: Arc<SupervisorShared>,
        name: Option<&str>,
    ) -> Self {
        Self::new::<T>(supervisor, None, name)
    }

    fn new<T: 'static>(
        supervisor: Arc<SupervisorShared>,
        child: Option<&str>,
        name: Option<&str>,
    ) -> Self {
        let (type_id, name) = (TypeId::of::<T>(), name.map(Arc::<str>::from));
        let key = |scope| ServiceKey { scope, type_id, name: name.clone() };
        let mut keys = Vec::new();
        let mut child = child;
        for level in supervisor.upward() {
            keys.push(key(level.path().clone()));
            let required = child.map(|child| level.required_by(child)).unwrap_or_default();
            keys.extend(required.iter().map(|sibling| key(level.path().join(sibling))));
            child = Some(level.path().name());
        }
        Self { supervisor, keys: keys.into() }
    }

    pub(super) fn keys(&self) -> &[ServiceKey] {
        &self.keys
    }

    /// Resolves to a scope outside of the lookup in which such a value is provided.
    pub(super) async fn until_elsewhere(&self) -> Path {
        let services = &self.supervisor.tree.service.values;
        let mut any = services.any.subscribe();
        loop {
            if let Some(scope) = services.scope_elsewhere(&self.keys) {
                return scope;
            }
            // The sender belongs to the tree.
            let _ = any.changed().await;
        }
    }

    /// Returns the value in the nearest scope that has one.
    pub(super) fn find(&self) -> Option<ServiceValue> {
        let services = &self.supervisor.tree.service.values;
        self.keys.iter().find_map(|key| services.get(key))
    }
}

/// Returns the scope in which a child provides its values.
pub(super) fn own_scope(ctx: &Context) -> Path {
    ctx.incarnation.parent.path().clone()
}

/// Returns a clone of the value, made outside of every lock.
pub(super) fn cloned<T: Clone + 'static>(value: &ServiceValue) -> T {
    value.value.downcast_ref::<T>().expect("the type is part of the key").clone()
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;
    use crate::child::orphan::incarnation;

    fn key(scope: &str) -> ServiceKey {
        ServiceKey { scope: Path::root(scope), type_id: TypeId::of::<u32>(), name: None }
    }

    fn value(services: &Services, key: &ServiceKey) -> Option<u32> {
        services.get(key)?.value.downcast_ref().copied()
    }

    fn provide(services: &Arc<Services>, of: &Arc<Incarnation>, value: u32) -> bool {
        services.provide(key("app"), of, Arc::new(value), "u32").is_ok()
    }

    #[test]
    fn a_value_is_withdrawn_when_its_incarnation_is_cancelled() {
        let (services, first) = (Arc::new(Services::default()), incarnation(1));
        assert!(provide(&services, &first, 1));
        assert!(provide(&services, &first, 2), "it replaces its own");
        assert_eq!(value(&services, &key("app")), Some(2));

        first.cell.raise(StopLevel::Cancel);
        assert_eq!((value(&services, &key("app")), services.len()), (None, 0));
        assert!(provide(&services, &first, 3), "it is ignored");
        assert_eq!((value(&services, &key("app")), services.len()), (None, 0));
        assert_eq!(Arc::strong_count(&first), 1);
    }

    #[test]
    fn otp_103_a_taken_name_is_refused_with_its_owner_and_the_table_does_not_grow() {
        let services = Arc::new(Services::default());
        let (first, second) = (incarnation(1), incarnation(2));
        assert!(provide(&services, &first, 1));
        for _ in 0..100 {
            let refused = services.provide(key("app"), &second, Arc::new(2_u32), "u32");
            assert!(Arc::ptr_eq(&refused.unwrap_err(), &first));
        }
        assert_eq!((value(&services, &key("app")), services.len()), (Some(1), 1));
    }

    #[test]
    fn an_entry_is_gone_with_its_last_value_and_its_last_watcher() {
        let (services, first) = (Arc::new(Services::default()), incarnation(1));
        let watcher = services.subscribe(&key("app"));
        assert!(provide(&services, &first, 1));
        assert!(watcher.has_changed().unwrap());
        services.withdraw(&key("app"), &first);
        assert_eq!(services.len(), 1, "it is watched");
        drop(watcher);
        services.forget_unused(&key("app"));
        assert_eq!(services.len(), 0);
        // The guard was released, so that a child may provide and withdraw for ever.
        assert!(first.cell.release(0).is_none());
    }
}
