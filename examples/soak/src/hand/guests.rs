//! Children that are added and removed: guests of a group, and the crowd of a dynamic supervisor.

use std::sync::Arc;

use verger::{ControlError, RestartType};

use super::{Hand, group};
use crate::child::{Make, Post};
use crate::layout::{GUEST, pick, treated};

/// The most guests of a zone at one time.
const GUESTS: usize = 16;

impl Hand {
    /// Adds a child to a group, or removes one.
    pub(super) async fn host(&mut self) {
        let zone = Arc::clone(&self.zone);
        if self.guests.len() >= GUESTS || (self.rng.bool() && !self.guests.is_empty()) {
            let index = self.rng.usize(..self.guests.len());
            let (path, post) = self.guests.swap_remove(index);
            self.terminate(&path, &post).await;
            let gone =
                self.call("delete_child", &path, self.handle.otp().delete_child(&path)).await;
            // Its group may have started to restart it in between.
            if !matches!(gone, Some(Ok(()) | Err(ControlError::NotFound { .. }))) {
                self.guests.push((path, post));
            }
            return;
        }
        let path = &group(&zone, &mut self.rng).path;
        self.guest += 1;
        let post = self.newcomer(format!("{GUEST}{}", self.guest));
        let spec = treated(post.spec(), post.make, &mut self.rng).restart(self.restart_type());
        let Ok(group) = self.handle.supervisor(path).await else { return };
        // Also after a failed start, because the group may have kept the child.
        let _ = self.call("start_child", path, group.start_child(spec)).await;
        self.guests.push((format!("{path}/{}", post.name), post));
    }

    fn newcomer(&mut self, name: String) -> Arc<Post> {
        let make = *pick(&mut self.rng, &[Make::Function, Make::Signal, Make::Object]);
        Post::new(name, make, &self.zone.notebook, &self.tally)
    }

    fn restart_type(&mut self) -> RestartType {
        let types = [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];
        *pick(&mut self.rng, &types)
    }

    /// Adds some children to the crowd, or removes some.
    pub(super) async fn churn(&mut self) {
        let some = self.rng.usize(1..12);
        if self.crowd.len() < self.zone.crowd {
            self.join(some).await;
        } else {
            self.leave(some).await;
        }
    }

    pub(super) async fn join(&mut self, some: usize) {
        let Ok(crowd) = self.handle.supervisor("crowd").await else { return };
        for _ in 0..some {
            let post = self.newcomer("c".to_owned());
            let spec = treated(post.spec(), post.make, &mut self.rng);
            let spec = spec.restart(self.restart_type());
            match self.call("start_child", "crowd", crowd.start_child(spec)).await {
                Some(Ok(child)) => {
                    let path = format!("crowd/{}", child.name());
                    // A restarted crowd numbers its children from the beginning again.
                    self.crowd.retain(|(old, _)| *old != path);
                    self.crowd.push((path, post));
                }
                _ => return,
            }
        }
    }

    pub(super) async fn leave(&mut self, some: usize) {
        for _ in 0..some.min(self.crowd.len()) {
            let index = self.rng.usize(..self.crowd.len());
            let (path, post) = self.crowd.swap_remove(index);
            self.terminate(&path, &post).await;
        }
    }
}
