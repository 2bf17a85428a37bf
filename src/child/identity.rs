//! What all incarnations of a child have in common.

use std::sync::Arc;

use super::config_spec::ConfigSpec;
use super::mailbox::MailboxControl;

/// The name of a child, its mailbox and its configuration.
#[derive(Clone)]
pub(crate) struct ChildIdentity {
    pub(crate) name: Arc<str>,
    pub(crate) mailbox: Option<Arc<dyn MailboxControl>>,
    pub(crate) config: Option<Arc<ConfigSpec>>,
}
