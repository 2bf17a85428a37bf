//! A hand breaks one zone and repairs it, with actions drawn from the seed.
//!
//! A hand makes one call after the other, and compares each answer with what the children noted: a
//! terminated child isn't alive, and every call is answered.

mod guests;
mod mend;

use std::future::Future;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::time::timeout;
use verger::{CancellationToken, ControlError, Lifecycle, SupervisorHandle};

use crate::child::{Order, Post, Start};
use crate::layout::{Group, ROOT, Zone, pick};
use crate::tally::{Tally, count};
use crate::watch::Watch;

/// Longer than any call takes, even if all graces are used up.
const ANSWER: Duration = Duration::from_secs(120);

pub(crate) struct Hand {
    pub(crate) zone: Arc<Zone>,
    pub(crate) watch: Arc<Mutex<Watch>>,
    handle: SupervisorHandle,
    tally: Arc<Tally>,
    rng: Rng,
    /// The known children of the crowd: segment and post.
    crowd: Vec<(String, Arc<Post>)>,
    guests: Vec<(String, Arc<Post>)>,
    guest: u64,
}

impl Hand {
    pub(crate) fn new(
        zone: Arc<Zone>,
        watch: Arc<Mutex<Watch>>,
        handle: SupervisorHandle,
        tally: Arc<Tally>,
        rng: Rng,
    ) -> Self {
        let (crowd, guests) = (Vec::new(), Vec::new());
        Self { zone, watch, handle, tally, rng, crowd, guests, guest: 0 }
    }

    /// Breaks the zone until the time is over.
    pub(crate) async fn storm(&mut self, until: Instant, pace: Duration, over: &CancellationToken) {
        while Instant::now() < until && !over.is_cancelled() {
            if self.zone.plan.leaky {
                self.block().await;
            } else {
                self.act().await;
            }
            let pause = if self.zone.plan.leaky { Duration::from_secs(4) } else { pace };
            let left = until.saturating_duration_since(Instant::now());
            let pause = pause.mul_f64(self.rng.f64() * 2.0).min(left);
            let _ = timeout(pause, over.cancelled()).await;
        }
    }

    /// Does one random action.
    async fn act(&mut self) {
        self.release_one().await;
        match self.rng.u32(..1000) {
            0..390 => self.poke(),
            390..408 => self.burst(),
            408..412 => self.park_and_retry().await,
            412..480 => self.spoil_a_start(),
            480..580 => self.kill().await,
            580..640 => self.stop_one().await,
            640..690 => self.restart_one().await,
            690..740 => self.help_one().await,
            740..790 => self.host().await,
            790..985 => self.churn().await,
            985..994 => self.strike_group().await,
            994..997 => self.strike("crowd", &self.crowd_posts()).await,
            _ => self.strike_wing().await,
        }
    }

    /// Makes a call; `None` if it isn't answered in time.
    async fn call<T>(
        &self,
        what: &str,
        path: &str,
        call: impl Future<Output = Result<T, ControlError>>,
    ) -> Option<Result<T, ControlError>> {
        count(&self.tally.calls);
        let Ok(answer) = timeout(ANSWER, call).await else {
            self.tally.violation(format!("{}: {what} of {path} went unanswered", self.zone.name));
            return None;
        };
        if let Err(
            error @ (ControlError::Ended { .. }
            | ControlError::InvalidSpec(_)
            | ControlError::NotASupervisor { .. }
            | ControlError::NotAChild { .. }),
        ) = &answer
        {
            self.tally.violation(format!("{}: {what} of {path}: {error}", self.zone.name));
        }
        Some(answer)
    }

    /// Makes a call that starts a child in any state, which changes what the observer expects.
    async fn start_now<T>(
        &self,
        name: &str,
        path: &str,
        call: impl Future<Output = Result<T, ControlError>>,
    ) -> Option<Result<T, ControlError>> {
        let full = format!("{ROOT}/{}/{path}", self.zone.name);
        let parent = full.rsplit_once('/').map_or(&*full, |(parent, _)| parent);
        self.watch().begins_start(parent);
        let answer = self.call(name, path, call).await;
        self.watch().ends_start(parent);
        answer
    }

    pub(crate) fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Picks a child: its path below the zone, its post, and whether it may end normally.
    fn any_child(&mut self) -> Option<(String, Arc<Post>, bool)> {
        if self.rng.u8(..4) == 0 {
            let crowd = (!self.crowd.is_empty()).then(|| pick(&mut self.rng, &self.crowd));
            return crowd.map(|(path, post)| (path.clone(), Arc::clone(post), true));
        }
        let (zone, rng) = (Arc::clone(&self.zone), &mut self.rng);
        let group = group(&zone, rng);
        let post = Arc::clone(pick(rng, &group.posts));
        Some((format!("{}/{}", group.path, post.name), post, !group.rules.at_once))
    }

    fn poke(&mut self) {
        let Some((_, post, may_end_well)) = self.any_child() else { return };
        let order = match self.rng.u8(..20) {
            0..7 => Order::Error,
            7..13 => Order::Panic,
            13..15 if may_end_well => Order::Normal,
            15 if may_end_well => Order::StopSelf,
            16 => Order::Hang,
            17 => Order::Healthy,
            _ => Order::Slow,
        };
        post.order(order);
    }

    /// Makes more children of a group fail than its limit allows.
    fn burst(&mut self) {
        let zone = Arc::clone(&self.zone);
        let group = group(&zone, &mut self.rng);
        self.spend(group);
    }

    fn spend(&mut self, group: &Group) {
        for _ in 0..group.rules.max.unwrap_or_default() + 2 {
            pick(&mut self.rng, &group.posts).order(Order::Error);
        }
    }

    /// Makes a group give up on a child, retries the child, and makes the group fail again. The
    /// earlier restarts must not count then.
    async fn park_and_retry(&mut self) {
        let zone = Arc::clone(&self.zone);
        let groups = zone.wings.iter().flat_map(|wing| &wing.groups);
        let parking: Vec<_> = groups.filter(|group| group.rules.parks).collect();
        if parking.is_empty() {
            return;
        }
        let group = *pick(&mut self.rng, &parking);
        self.spend(group);
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let Ok(handle) = self.handle.supervisor(&group.path).await else { return };
            let children = self.call("which_children", &group.path, handle.children()).await;
            let Some(Ok(children)) = children else { return };
            let parked = children.iter().find(|child| child.why == Some("given up"));
            if let Some(child) = parked {
                self.help(&format!("{}/{}", group.path, child.path.name()), child.lifecycle).await;
                return self.spend(group);
            }
        }
    }

    fn spoil_a_start(&mut self) {
        let Some((_, post, _)) = self.any_child() else { return };
        let starts = [Start::Slow, Start::Error, Start::Panic, Start::Hang, Start::Decline];
        post.start(*pick(&mut self.rng, &starts));
        post.order(Order::Error);
    }

    async fn kill(&mut self) {
        if let Some((path, _, _)) = self.any_child() {
            self.abort(&path).await;
        }
    }

    async fn abort(&self, path: &str) {
        if let Some(Ok(_)) = self.call("kill", path, self.handle.kill(path)).await {
            count(&self.tally.aborts);
        }
    }

    async fn stop_one(&mut self) {
        let Some((path, post, _)) = self.any_child() else { return };
        self.terminate(&path, &post).await;
        if self.rng.bool() {
            let _ = self.call("restart_child", &path, self.handle.otp().restart_child(&path)).await;
        }
    }

    async fn terminate(&self, path: &str, post: &Post) {
        let begun = post.begun.load(SeqCst);
        post.alone.store(true, SeqCst);
        let answer = self.call("stop_child", path, self.handle.stop_child(path)).await;
        if matches!(answer, Some(Ok(()))) && post.lives() && post.begun.load(SeqCst) == begun {
            let zone = &self.zone.name;
            self.tally.violation(format!("{zone}: {path} was terminated, and lives"));
        }
        post.alone.store(false, SeqCst);
    }

    async fn restart_one(&mut self) {
        let Some((path, post, _)) = self.any_child() else { return };
        post.alone.store(true, SeqCst);
        let _ = self.start_now("restart", &path, self.handle.restart(&path)).await;
        post.alone.store(false, SeqCst);
    }

    /// Repairs one child of a group that is down or waiting, preferably one that was given up on.
    async fn help_one(&mut self) {
        let zone = Arc::clone(&self.zone);
        let path = &group(&zone, &mut self.rng).path;
        let Ok(group) = self.handle.supervisor(path).await else { return };
        let Some(Ok(children)) = self.call("which_children", path, group.children()).await else {
            return;
        };
        let given_up = children.iter().find(|child| child.lifecycle == Lifecycle::Errored);
        let mut others = children
            .iter()
            .filter(|child| !matches!(child.lifecycle, Lifecycle::Active | Lifecycle::Activating));
        if let Some(child) = given_up.or_else(|| others.next()) {
            let path = format!("{path}/{}", child.path.name());
            self.help(&path, child.lifecycle).await;
        }
    }

    /// Makes the call that may bring back a child in this state.
    async fn help(&self, path: &str, state: Lifecycle) {
        match state {
            Lifecycle::Stopped => {
                let _ =
                    self.call("restart_child", path, self.handle.otp().restart_child(path)).await;
            }
            Lifecycle::Restarting | Lifecycle::Errored => {
                let _ = self.start_now("resume", path, self.handle.resume(path)).await;
            }
            _ => {}
        }
    }

    async fn strike_group(&mut self) {
        let zone = Arc::clone(&self.zone);
        let group = group(&zone, &mut self.rng);
        self.strike(&group.path, &group.posts).await;
    }

    async fn strike_wing(&mut self) {
        let zone = Arc::clone(&self.zone);
        let wing = pick(&mut self.rng, &zone.wings);
        let posts: Vec<_> = wing.groups.iter().flat_map(|it| &it.posts).map(Arc::clone).collect();
        self.strike(&wing.name, &posts).await;
    }

    fn crowd_posts(&self) -> Vec<Arc<Post>> {
        self.crowd.iter().map(|(_, post)| Arc::clone(post)).collect()
    }

    /// Stops, kills or restarts a supervisor with all below it.
    async fn strike(&mut self, path: &str, posts: &[Arc<Post>]) {
        let begun: Vec<_> = posts.iter().map(|post| post.begun.load(SeqCst)).collect();
        let ended = match self.rng.u8(..4) {
            0 => {
                let Ok(supervisor) = self.handle.supervisor(path).await else { return };
                count(&self.tally.calls);
                timeout(ANSWER, supervisor.stop("struck")).await.is_ok()
            }
            1 => {
                let call = self.handle.stop_child(path);
                let ended = self.call("stop_child", path, call).await;
                matches!(ended, Some(Ok(())))
            }
            2 => {
                let _ = self.start_now("restart", path, self.handle.restart(path)).await;
                false
            }
            _ => {
                self.abort(path).await;
                false
            }
        };
        let same =
            |(post, begun): (&Arc<Post>, u64)| post.lives() && post.begun.load(SeqCst) == begun;
        let left = posts.iter().zip(begun).filter(|&(post, begun)| same((post, begun))).count();
        if ended && left > 0 {
            let zone = &self.zone.name;
            self.tally.violation(format!("{zone}: {path} was stopped, and {left} below it live"));
        }
        let state = self.handle.which_child(path).await.map(|child| child.lifecycle);
        if state.is_ok_and(|state| state == Lifecycle::Stopped) {
            let _ = self.call("restart_child", path, self.handle.otp().restart_child(path)).await;
        }
    }

    /// Kills or terminates a child that hangs.
    async fn release_one(&mut self) {
        let zone = Arc::clone(&self.zone);
        let groups = zone.wings.iter().flat_map(|wing| &wing.groups);
        let members = groups.flat_map(|group| {
            let path = |post: &Post| format!("{}/{}", group.path, post.name);
            group.posts.iter().filter(|post| post.hangs.load(SeqCst)).map(move |it| (path(it), it))
        });
        let crowd = self.crowd.iter().chain(&self.guests);
        let crowd = crowd.filter(|(_, post)| post.hangs.load(SeqCst));
        let crowd = crowd.map(|(path, post)| (path.clone(), post));
        let Some((path, post)) = members.chain(crowd).next() else { return };
        let post = Arc::clone(post);
        match self.rng.u8(..3) {
            0 => self.abort(&path).await,
            1 => self.terminate(&path, &post).await,
            _ => drop(self.start_now("restart", &path, self.handle.restart(&path)).await),
        }
    }

    /// Makes a child block its thread, and aborts it, so that it leaks.
    async fn block(&mut self) {
        let zone = Arc::clone(&self.zone);
        let post = pick(&mut self.rng, &zone.wings[0].groups[0].posts);
        post.order(Order::Block);
        for _ in 0..200 {
            if post.blocks.load(SeqCst) {
                return self.abort(&post.name).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn group<'a>(zone: &'a Zone, rng: &mut Rng) -> &'a Group {
    let wing = pick(rng, &zone.wings);
    pick(rng, &wing.groups)
}
