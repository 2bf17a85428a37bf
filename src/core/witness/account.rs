//! What a witness keeps, as far as it makes a difference to what it says next.
//!
//! See [`fingerprint`](super::super::fingerprint).

use std::hash::Hash;

use super::super::fingerprint::{Fingerprint, words};
use super::Witness;

impl Witness {
    /// Children that were forgotten are left out: nothing is said of them any more but that they
    /// are not there. What the machine shows is left out where it was compared.
    pub(in super::super) fn print(&self, print: &mut Fingerprint) {
        (self.aborting, self.abandoned).hash(print);
        for (key, child) in self.present() {
            (key.index(), &child.nature.name).hash(print);
            (child.live, child.cancelled, child.aborted, child.itself).hash(print);
            (child.cause, child.was_active, child.decided, child.leaked).hash(print);
            (child.told_failed, child.returns, child.replaced).hash(print);
            (child.question, child.asked_once, child.answer).hash(print);
            child.policy.as_ref().map(words).hash(print);
            (child.mail, child.put_down, child.left_alone).hash(print);
            child.condemned.is_some().hash(print);
            print.pos(child.condemned.unwrap_or(0));
            if let Some(due) = child.due {
                print.at(due);
            }
            print.until(child.held);
        }
    }
}
