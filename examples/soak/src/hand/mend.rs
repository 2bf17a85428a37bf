//! Fills a zone, restores it after a storm, and checks it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use verger::Lifecycle;
use verger::status::{ChildKind, Node};

use super::Hand;
use crate::layout::{GUEST, ROOT, crowd};
use crate::tally::count;

/// How long a zone may take to be restored.
const MENDED: Duration = Duration::from_secs(90);
/// How long events and notes may take to arrive.
const HEARD: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(20);

impl Hand {
    /// Starts all children of the zone.
    pub(crate) async fn fill(&mut self) {
        if self.zone.plan.leaky {
            return;
        }
        let zone = Arc::clone(&self.zone);
        let wings = zone.wings.iter().map(|wing| (&*wing.name, wing.spec.clone()));
        for (name, spec) in wings.chain([("crowd", crowd())]) {
            let started = self.call("start_child", name, self.handle.start_child(spec)).await;
            if let Some(Err(error)) = started {
                self.tally.violation(format!("{}: {error}", zone.name));
            }
        }
        self.join(zone.crowd).await;
    }

    /// Restores all children, and then compares status, events and notes.
    pub(crate) async fn settle(&mut self) {
        for post in self.posts() {
            post.calm();
        }
        let begun = Instant::now();
        while let Some(ill) = self.mend().await {
            if begun.elapsed() > MENDED {
                let zone = &self.zone.name;
                return self.tally.violation(format!("{zone}: not well after {MENDED:?}: {ill}"));
            }
            tokio::time::sleep(AGAIN).await;
        }
        self.audit().await;
    }

    fn posts(&self) -> Vec<Arc<crate::child::Post>> {
        let groups = self.zone.wings.iter().flat_map(|wing| &wing.groups);
        let members = groups.flat_map(|group| &group.posts);
        let others = self.crowd.iter().chain(&self.guests).map(|(_, post)| post);
        members.chain(others).map(Arc::clone).collect()
    }

    /// Repairs the children that aren't active, and returns their paths.
    async fn mend(&mut self) -> Option<String> {
        let hanging = self.posts().into_iter().find(|post| post.hangs.load(SeqCst));
        if hanging.is_some() {
            self.release_one().await;
        }
        let Ok(status) = self.handle.status().await else {
            return Some("it can't be looked at".to_owned());
        };
        let mut ill = hanging.map(|post| format!("{} hangs", post.name));
        let mut open = vec![&status.root];
        let mut crowd = None;
        let mut guests = HashSet::new();
        let mut workers = 0;
        while let Some(node) = open.pop() {
            if node.child.path.name() == "crowd" {
                crowd = node.supervisor.is_some().then_some(node);
            }
            for child in &node.children {
                workers += usize::from(child.child.kind == ChildKind::Worker);
                open.push(child);
                if child.child.path.name().starts_with(GUEST) {
                    guests.insert(child.child.path.name());
                }
                ill = self.mend_child(child).await.or(ill);
            }
        }
        let members = self.zone.wings.iter().flat_map(|wing| &wing.groups);
        let members = members.map(|group| group.posts.len()).sum::<usize>();
        let all = members + self.zone.crowd;
        if ill.is_none() && workers != all {
            ill = Some(format!("{workers} of {all} are there"));
        }
        if self.zone.plan.leaky {
            return ill;
        }
        self.guests.retain(|(_, post)| guests.contains(&*post.name));
        let Some(crowd) = crowd else { return Some("the crowd is not there".to_owned()) };
        let there: HashSet<_> = crowd.children.iter().map(|it| it.child.path.name()).collect();
        self.crowd
            .retain(|(path, _)| path.strip_prefix("crowd/").is_some_and(|it| there.contains(it)));
        let (are, should) = (self.crowd.len(), self.zone.crowd);
        if are < should {
            self.join(should - are).await;
        } else {
            self.leave(are - should).await;
        }
        if are != should {
            ill = Some(format!("the crowd has {are}"));
        }
        ill
    }

    /// Checks the child itself, without its own children.
    async fn mend_child(&self, node: &Node) -> Option<String> {
        let child = &node.child;
        let path = child.path.as_str().strip_prefix(ROOT)?.split('/').skip(2);
        let path = path.collect::<Vec<_>>().join("/");
        if child.path.name().starts_with(GUEST) {
            if let Some((_, post)) = self.guests.iter().find(|(guest, _)| *guest == path) {
                self.terminate(&path, post).await;
            }
            let _ = self.call("delete_child", &path, self.handle.otp().delete_child(&path)).await;
            return Some(format!("{path} is a guest"));
        }
        if child.lifecycle != Lifecycle::Active {
            self.help(&path, child.lifecycle).await;
            return Some(format!("{path} is {}: {:?}", child.lifecycle, child.why));
        }
        let gone = child.kind == ChildKind::Supervisor && node.supervisor.is_none();
        gone.then(|| format!("{path} could not be looked at"))
    }

    /// Compares status, events and notes until they agree, or a time is over.
    async fn audit(&mut self) {
        let end = Instant::now() + HEARD;
        let mut differences = vec![format!("{}: its events don't arrive", self.zone.name)];
        while Instant::now() < end {
            tokio::time::sleep(AGAIN).await;
            let before = Instant::now();
            let Ok(status) = self.handle.status().await else { continue };
            if !self.processed_until(Instant::now(), end).await {
                break;
            }
            let mut watch = self.watch();
            // Under the lock, so that the observer can't process later events first.
            watch.notes(self.zone.notebook.take());
            differences = watch.compare(&status.root, before);
            if differences.is_empty() {
                watch.adopt(&status.root);
                return count(&self.tally.audits);
            }
        }
        self.watch().give_up_on(&differences);
    }

    /// Waits until the observer has processed all events before this instant.
    async fn processed_until(&self, then: Instant, end: Instant) -> bool {
        while Instant::now() < end {
            if self.watch().processed_until >= Some(then) {
                return true;
            }
            tokio::time::sleep(AGAIN / 4).await;
        }
        false
    }
}
