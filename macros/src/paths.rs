//! The items of verger that an expansion names, each with its path below the crate root.
//!
//! An item that moves into a module is changed here and nowhere else.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::{Path, parse_quote};

/// The path of a public item below the crate root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item(&'static str);

pub(crate) const ADDRESS: Item = Item("mailbox::Address");
pub(crate) const ASYNC_TRAIT: Item = Item("async_trait");
pub(crate) const AUTO_SHUTDOWN: Item = Item("policy::AutoShutdown");
pub(crate) const BACKOFF: Item = Item("Backoff");
pub(crate) const CHILD: Item = Item("Child");
pub(crate) const CHILD_SPEC: Item = Item("ChildSpec");
pub(crate) const COMPONENT_TRAIT: Item = Item("Component");
pub(crate) const COMPONENT_FN: Item = Item("component");
pub(crate) const CONTEXT: Item = Item("Context");
pub(crate) const DYNAMIC_SUPERVISOR: Item = Item("DynamicSupervisor");
pub(crate) const EXIT: Item = Item("Exit");
pub(crate) const FIRST_START: Item = Item("policy::FirstStart");
pub(crate) const MAILBOX_TYPE: Item = Item("mailbox::Mailbox");
pub(crate) const MAILBOX_FN: Item = Item("mailbox");
pub(crate) const ON_EXHAUSTED: Item = Item("policy::OnExhausted");
pub(crate) const ON_LEAK: Item = Item("policy::OnLeak");
pub(crate) const OUTCOME: Item = Item("Outcome");
pub(crate) const READINESS: Item = Item("Readiness");
pub(crate) const RESTART_TYPE: Item = Item("RestartType");
pub(crate) const RUN_ERROR: Item = Item("RunError");
pub(crate) const SHUTDOWN: Item = Item("Shutdown");
pub(crate) const START: Item = Item("policy::Start");
pub(crate) const STRATEGY: Item = Item("Strategy");
pub(crate) const SUPERVISOR: Item = Item("Supervisor");
pub(crate) const SUPERVISOR_BUILDER: Item = Item("SupervisorBuilder");
pub(crate) const WORKER: Item = Item("worker");
pub(crate) const WORKER_WITH: Item = Item("worker_with");
pub(crate) const WORKER_WITH_MAILBOX: Item = Item("worker_with_mailbox");

/// The path to verger: `::verger`, or the one that the key `crate` names.
pub(crate) struct Krate(Path);

impl Krate {
    pub(crate) fn new(path: Option<&Path>) -> Self {
        Self(path.cloned().unwrap_or_else(|| parse_quote!(::verger)))
    }

    /// Returns the full path of an item.
    pub(crate) fn item(&self, item: Item) -> TokenStream {
        self.item_at(item, Span::call_site())
    }

    /// Returns the full path of an item, reported at `span` if it is wrong.
    pub(crate) fn item_at(&self, Item(path): Item, span: Span) -> TokenStream {
        let Self(krate) = self;
        let segments = path.split("::").map(|segment| Ident::new(segment, span));
        quote_spanned!(span=> #krate #(::#segments)*)
    }

    /// Returns the full paths of several items.
    pub(crate) fn items<const N: usize>(&self, items: [Item; N]) -> [TokenStream; N] {
        items.map(|item| self.item(item))
    }
}
