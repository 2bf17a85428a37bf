//! What all incarnations of a child have in common.

use std::sync::Arc;

use crate::mailbox::MailboxControl;

/// The name and the mailbox of a child.
pub(crate) struct ChildIdentity {
    pub(crate) name: Arc<str>,
    pub(crate) mailbox: Option<Arc<dyn MailboxControl>>,
}
