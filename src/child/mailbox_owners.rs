//! The check that each mailbox of a tree belongs to one child.

use std::collections::HashMap;
use std::sync::Arc;

use super::mailbox::MailboxControl;
use super::spec::ChildSpec;
use crate::error::BuildError;
use crate::path::Path;

/// A child, as the path of its supervisor and its own name.
type Owner<'a> = (Path, &'a str);

/// Checks that no two children among these resolved specs and below share a mailbox, and, if `is_added`
/// to a running supervisor, that no mailbox belongs to a child already.
///
/// A child and its fallback may share one: they never run at the same time.
pub(crate) fn check_mailboxes(
    parent: &Path,
    specs: &[ChildSpec],
    is_added: bool,
) -> Result<(), BuildError> {
    let mut owners: HashMap<usize, Owner<'_>> = HashMap::new();
    // A list instead of recursion, as a tree can be a thousand levels deep.
    let mut open = vec![(parent.clone(), specs.iter())];
    while let Some((parent, specs)) = open.last_mut() {
        let Some(child) = specs.next() else {
            open.pop();
            continue;
        };
        if !child.lends() {
            continue;
        }
        let parent = parent.clone();
        let variants = || std::iter::successors(Some(child), |spec| spec.fallback.as_deref());
        for mailbox in variants().filter_map(|spec| spec.factory.mailbox()) {
            let taken = |owner| BuildError::MailboxTaken { path: parent.join(child.name()), owner };
            let own = (parent.clone(), child.name());
            if let Some(owner) = bound_elsewhere(mailbox, &own, is_added) {
                return Err(taken(owner));
            }
            let owner = owners.entry(Arc::as_ptr(mailbox).addr()).or_insert_with(|| own.clone());
            if *owner != own {
                return Err(taken(owner.0.join(owner.1)));
            }
        }
        let below = || parent.join(child.name());
        // The last one is visited first.
        let children = variants().map(|spec| spec.factory.children());
        let mut children: Vec<_> = children.filter(|children| !children.is_empty()).collect();
        children.reverse();
        open.extend(children.into_iter().map(|children| (below(), children.iter())));
    }
    Ok(())
}

/// Returns the path of the child that the mailbox belongs to, unless that is the same one.
fn bound_elsewhere(
    mailbox: &Arc<dyn MailboxControl>,
    (parent, name): &Owner<'_>,
    is_added: bool,
) -> Option<Path> {
    let bound = is_added.then(|| mailbox.bound_to()).flatten()?;
    // The supervisor refuses a second child of the same name for that reason.
    (bound != parent.join(name)).then_some(bound)
}
