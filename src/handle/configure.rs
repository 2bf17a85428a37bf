//! What the configuration of a tree asks of its supervisors.
//!
//! Each request takes a supervisor's loop well under a millisecond, however many children it has. A
//! supervisor that doesn't run looks its values up when it starts, so nothing is asked of it.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::route::SupervisorHandle;
use crate::core::ChildRequest;
use crate::error::ControlError;
use crate::path::Path;
use crate::runtime::request::{ChildFacts, HandleRequest, Recode, Segment, WhichChildren};
use crate::runtime::settings::Settings;
use crate::runtime::{Blueprint, CHILDREN_PER_REQUEST, SupervisorShared};

impl SupervisorHandle {
    /// Returns the values of the tree.
    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.supervisor.tree.settings
    }

    /// Returns the runtime of the tree.
    pub(crate) fn runtime(&self) -> Handle {
        self.supervisor.tree.runtime()
    }

    /// Returns the supervisor that runs at `path`.
    pub(crate) fn running_at(&self, path: &Path) -> Option<Arc<SupervisorShared>> {
        self.supervisor.tree.supervisor(path)
    }

    /// Returns the supervisors that run at a path without serial numbers. There can be several below a dynamic
    /// one.
    pub(crate) fn all_at(&self, path: &Path) -> Vec<Arc<SupervisorShared>> {
        match self.running_at(path) {
            Some(supervisor) => vec![supervisor],
            None => {
                let mut all = self.all_running();
                all.retain(|it| it.path().without_serials() == *path);
                all
            }
        }
    }

    /// Returns all supervisors of the tree that run.
    pub(crate) fn all_running(&self) -> Vec<Arc<SupervisorShared>> {
        self.supervisor.tree.supervisors()
    }

    /// Returns what a plan has to know of these children. Those that don't exist are left out.
    pub(crate) async fn facts_of(
        &self,
        supervisor: &Arc<SupervisorShared>,
        names: &[Segment],
    ) -> Result<Vec<ChildFacts>, ControlError> {
        let mut children = Vec::with_capacity(names.len());
        for names in names.chunks(CHILDREN_PER_REQUEST) {
            let which = WhichChildren::Named(names.to_vec());
            let page =
                self.call(supervisor, |answer| HandleRequest::Facts { which, answer }).await?;
            children.extend(page.children);
        }
        Ok(children)
    }

    /// Returns what a plan has to know of the first children of a supervisor, at most about this many.
    pub(crate) async fn all_facts(
        &self,
        supervisor: &Arc<SupervisorShared>,
        most: usize,
    ) -> Result<Vec<ChildFacts>, ControlError> {
        let (mut children, mut next) = (Vec::new(), Some(0));
        while let Some(place) = next.filter(|_| children.len() < most) {
            let which = WhichChildren::From(place);
            let page =
                self.call(supervisor, |answer| HandleRequest::Facts { which, answer }).await?;
            next = page.next;
            children.extend(page.children);
        }
        Ok(children)
    }

    /// Makes these children look up their values again.
    pub(crate) async fn refresh_named(
        &self,
        supervisor: &Arc<SupervisorShared>,
        names: &[Segment],
    ) -> Result<(), ControlError> {
        if supervisor.blueprint().is_dynamic() {
            return self.refresh_all(supervisor).await;
        }
        for names in names.chunks(CHILDREN_PER_REQUEST) {
            let which = WhichChildren::Named(names.to_vec());
            self.call(supervisor, |answer| HandleRequest::Refresh { which, answer }).await?;
        }
        Ok(())
    }

    /// Makes all children of a supervisor look up their values again.
    pub(crate) async fn refresh_all(
        &self,
        supervisor: &Arc<SupervisorShared>,
    ) -> Result<(), ControlError> {
        let mut next = Some(0);
        while let Some(place) = next {
            let which = WhichChildren::From(place);
            next = self.call(supervisor, |answer| HandleRequest::Refresh { which, answer }).await?;
        }
        Ok(())
    }

    /// Makes a supervisor look up its own values again, and the values of its children if they have changed.
    pub(crate) async fn refresh_rules(
        &self,
        supervisor: &Arc<SupervisorShared>,
    ) -> Result<(), ControlError> {
        if self.call(supervisor, |answer| HandleRequest::RefreshRules { answer }).await? {
            self.refresh_all(supervisor).await?;
        }
        Ok(())
    }

    /// Replaces the code of a supervisor and of its children, once no operation on several of them runs. Children
    /// that are new aren't started. Without a blueprint, it only waits.
    pub(crate) async fn recode(
        &self,
        supervisor: &Arc<SupervisorShared>,
        blueprint: Option<Arc<Blueprint>>,
        added: Vec<Segment>,
    ) -> Result<(), ControlError> {
        let is_new = blueprint.is_some();
        let recode = |answer| HandleRequest::Recode(Recode { blueprint, added, answer });
        self.call(supervisor, recode).await?;
        if is_new {
            // Children that the code doesn't have are kept, with the rules of the new code.
            self.refresh_all(supervisor).await?;
        }
        Ok(())
    }

    /// Starts a child that new code has added. It is removed if that fails.
    pub(crate) async fn start_added(
        &self,
        supervisor: &Arc<SupervisorShared>,
        segment: Segment,
    ) -> Result<(), ControlError> {
        let (call, request) = ("start_child", ChildRequest::StartNew { keep: false });
        let act = |answer| HandleRequest::Act { segment, call, note: None, request, answer };
        self.call(supervisor, act).await.map(drop)
    }

    /// Stops a child and removes it, if it exists.
    pub(crate) async fn remove_child(&self, supervisor: &Arc<SupervisorShared>, segment: &str) {
        let _ = Self::new(Arc::clone(supervisor)).remove(segment).await;
    }

    /// Makes one child look up its values again, and waits until it is down or up, if they stop or start it.
    ///
    /// `trial`: if the start fails, the child is held back until the next call. Otherwise its policy decides.
    pub(crate) async fn configure_child(
        &self,
        supervisor: &Arc<SupervisorShared>,
        segment: Segment,
        trial: bool,
    ) -> Result<(), ControlError> {
        self.call(supervisor, |answer| HandleRequest::Configure { segment, trial, answer })
            .await
            .map(drop)
    }
}
