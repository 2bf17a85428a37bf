//! The layout of the tree: drawn from the seed, as specs and as plans for the observers.
//!
//! ```text
//! soak
//! ├─ z0                 a zone never ends, so that one subscription has all its events
//! │  ├─ w0              a wing gives up if its groups give up too often
//! │  │  ├─ g0           a group: any strategy, limit and backoff
//! │  │  │  ├─ c0 …      children of all kinds, some with requirements
//! │  │  │  └─ guest-1   children that are added and removed
//! │  │  └─ g1 …
//! │  ├─ w1
//! │  └─ crowd           a dynamic supervisor
//! ├─ z1 …
//! └─ leaky              a few children that deliberately block their thread
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use verger::policy::{OnExhausted, Preset, Start};
use verger::{
    Backoff, ChildSpec, DynamicSupervisor, RestartType, Shutdown, Strategy, Supervisor,
    SupervisorBuilder,
};

use crate::child::{Make, Post};
use crate::notes::Notebook;
use crate::tally::Tally;

pub(crate) const ROOT: &str = "soak";
/// The beginning of a guest's name.
pub(crate) const GUEST: &str = "guest-";

/// The approximate number of children in a zone.
const ZONE: usize = 1250;
const WINGS: usize = 2;
/// Long enough that only a blocked thread leaks, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// The settings of one supervisor that an observer checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) max: Option<u32>,
    pub(crate) period: Duration,
    /// Whether its strategy restarts more than one child.
    pub(crate) grouped: bool,
    /// Whether an ordered start waits for all earlier children, while no later one is active.
    pub(crate) sequential: bool,
    pub(crate) dynamic: bool,
    /// Whether the supervisor keeps running without a child that failed too often.
    pub(crate) parks: bool,
    /// Whether a failed first start ends the supervisor.
    pub(crate) fails_first: bool,
    /// Whether every failure counts, also before a child is active.
    pub(crate) charges_all: bool,
    /// Whether its children restart without a backoff.
    pub(crate) at_once: bool,
}

/// What an observer knows of a zone in advance.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) supervisors: HashMap<String, Rules>,
    /// The requirements of each child. Required children are permanent.
    pub(crate) requires: HashMap<String, String>,
    /// Whether its children deliberately leak.
    pub(crate) leaky: bool,
}

/// A part of the tree with its own observer and its own hand.
#[derive(Debug)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) notebook: Arc<Notebook>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) wings: Vec<Wing>,
    /// The size of the crowd when the zone is restored.
    pub(crate) crowd: usize,
}

#[derive(Debug)]
pub(crate) struct Wing {
    pub(crate) name: String,
    pub(crate) spec: ChildSpec,
    pub(crate) groups: Vec<Group>,
}

#[derive(Debug)]
pub(crate) struct Group {
    /// The path below the zone.
    pub(crate) path: String,
    pub(crate) rules: Rules,
    pub(crate) posts: Vec<Arc<Post>>,
}

/// Draws all zones, with this many children in total.
pub(crate) fn draw(children: usize, rng: &mut Rng, tally: &Arc<Tally>) -> Vec<Zone> {
    let count = (children / ZONE).clamp(2, 256);
    let share = |index: usize| children / count + usize::from(index < children % count);
    (0..count).map(|index| zone(format!("z{index}"), share(index), rng, tally)).collect()
}

/// Returns the zone of the children that block their thread.
pub(crate) fn leaky(tally: &Arc<Tally>) -> Zone {
    let notebook = Arc::new(Notebook::default());
    let make = |index| Post::new(format!("c{index}"), Make::Function, &notebook, tally);
    let posts: Vec<_> = (0..4).map(make).collect();
    let mut builder =
        Supervisor::builder("leaky").unlimited_restarts().leak_timeout(Duration::from_millis(200));
    for post in &posts {
        let backoff = Backoff::constant(Duration::from_millis(50));
        builder = builder.child(post.spec().backoff(backoff));
    }
    let mut plan = Plan { leaky: true, ..Plan::default() };
    plan.supervisors.insert(format!("{ROOT}/leaky"), UNLIMITED);
    let group = Group { path: String::new(), rules: UNLIMITED, posts };
    let wing = Wing { name: String::new(), spec: builder.into_child(), groups: vec![group] };
    let (name, plan) = ("leaky".to_owned(), Arc::new(plan));
    Zone { name, notebook, plan, wings: vec![wing], crowd: 0 }
}

const UNLIMITED: Rules = Rules {
    max: None,
    period: Duration::from_secs(60),
    grouped: false,
    sequential: true,
    dynamic: false,
    parks: false,
    fails_first: false,
    charges_all: false,
    at_once: false,
};

/// Returns a zone without children, which are added once its observer has subscribed.
pub(crate) fn empty(zone: &Zone) -> SupervisorBuilder {
    let backoff = Backoff::constant(Duration::from_millis(50));
    Supervisor::builder(&*zone.name)
        .unlimited_restarts()
        .leak_timeout(PATIENCE)
        .defaults(|child| child.backoff(backoff))
}

/// Returns the crowd of a zone.
pub(crate) fn crowd() -> ChildSpec {
    let backoff = Backoff::exponential(Duration::from_millis(20), Duration::from_millis(500));
    let builder = DynamicSupervisor::builder("crowd")
        .restarts(CROWD.max.unwrap_or_default(), CROWD.period)
        .leak_timeout(PATIENCE)
        .defaults(|child| child.backoff(backoff.jitter(0.2)).shutdown(GRACE));
    builder.into_child()
}

const GRACE: Duration = Duration::from_millis(500);
const CROWD: Rules = Rules {
    max: Some(40),
    period: Duration::from_secs(2),
    sequential: false,
    dynamic: true,
    ..UNLIMITED
};

fn zone(name: String, children: usize, rng: &mut Rng, tally: &Arc<Tally>) -> Zone {
    let notebook = Arc::new(Notebook::default());
    let mut plan = Plan::default();
    let path = format!("{ROOT}/{name}");
    plan.supervisors.insert(format!("{path}/crowd"), CROWD);
    let crowd = children / 3;
    let mut left = children - crowd;
    let mut groups: [Vec<(Group, SupervisorBuilder)>; WINGS] = Default::default();
    for index in 0.. {
        let size = rng.usize(4..=88).min(left);
        if size == 0 {
            break;
        }
        left -= size;
        let (wing, number) = (index % WINGS, index / WINGS);
        let place = format!("w{wing}/g{number}");
        let mut drawing = Drawing { rng, tally, notebook: &notebook, plan: &mut plan };
        groups[wing].push(drawing.group(&path, place, size));
    }
    let wings = groups.into_iter().enumerate();
    let wings = wings.map(|(index, groups)| {
        let rules = Rules { max: Some(6), period: Duration::from_secs(2), ..UNLIMITED };
        plan.supervisors.insert(format!("{path}/w{index}"), rules);
        let backoff = Backoff::exponential(Duration::from_millis(30), Duration::from_millis(300));
        let mut builder = Supervisor::builder(format!("w{index}"))
            .restarts(6, rules.period)
            .leak_timeout(PATIENCE)
            .defaults(|child| child.backoff(backoff));
        let mut made = Vec::new();
        for (group, child) in groups {
            builder = builder.child(child);
            made.push(group);
        }
        Wing { name: format!("w{index}"), spec: builder.into_child(), groups: made }
    });
    let wings = wings.collect();
    plan.supervisors.insert(path, UNLIMITED);
    Zone { name, notebook, plan: Arc::new(plan), wings, crowd }
}

/// The settings that are drawn for a group.
struct Drawing<'a> {
    rng: &'a mut Rng,
    tally: &'a Arc<Tally>,
    notebook: &'a Arc<Notebook>,
    plan: &'a mut Plan,
}

impl Drawing<'_> {
    fn group(&mut self, zone: &str, path: String, size: usize) -> (Group, SupervisorBuilder) {
        let rng = &mut *self.rng;
        let strategies = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];
        let strategy = strategies[rng.usize(..3)];
        let start = if rng.u8(..4) == 0 { Start::Concurrent } else { Start::Sequential };
        let parks = rng.u8(..5) == 0;
        let elixir = rng.u8(..16) == 0;
        let max = *pick(rng, &[0, 1, 2, 3, 5, 5, 8, 8, 13]);
        let period = *pick(rng, &[300, 1000, 2000, 5000]);
        let wait = rng.u8(..5);
        let rules = Rules {
            max: Some(if elixir { 3 } else { max }),
            period: Duration::from_millis(if elixir { 5000 } else { period }),
            grouped: strategy != Strategy::OneForOne,
            sequential: start == Start::Sequential && !parks,
            dynamic: false,
            parks,
            fails_first: elixir,
            charges_all: elixir,
            at_once: elixir || wait == 0,
        };
        let name = path.rsplit_once('/').map_or(&*path, |(_, name)| name).to_owned();
        let mut builder = Supervisor::builder(name).strategy(strategy).start(start);
        builder = builder.leak_timeout(PATIENCE);
        if parks {
            builder = builder.on_exhausted(OnExhausted::Park);
        }
        builder = if elixir {
            builder.preset(Preset::elixir())
        } else {
            let backoff = backoff(wait);
            builder.restarts(max, rules.period).defaults(|child| child.backoff(backoff))
        };
        let full = format!("{zone}/{path}");
        let mut posts = Vec::new();
        let mut permanent: Vec<String> = Vec::new();
        for index in 0..size {
            let (post, mut spec) = self.member(index);
            let restart =
                if self.rng.u8(..5) == 0 { RestartType::Transient } else { RestartType::Permanent };
            if !permanent.is_empty() && self.rng.u8(..8) == 0 {
                let required = pick(self.rng, &permanent).clone();
                spec = spec.requires(&*required);
                self.plan.requires.insert(format!("{full}/{}", post.name), required);
            }
            if restart == RestartType::Permanent {
                permanent.push(post.name.clone());
            }
            builder = builder.child(spec.restart(restart));
            posts.push(post);
        }
        self.plan.supervisors.insert(full, rules);
        (Group { path, rules, posts }, builder)
    }

    fn member(&mut self, index: usize) -> (Arc<Post>, ChildSpec) {
        let make = *pick(self.rng, &[Make::Function, Make::Signal, Make::Object]);
        let post = Post::new(format!("c{index}"), make, self.notebook, self.tally);
        (Arc::clone(&post), treated(post.spec(), make, self.rng))
    }
}

/// Sets the grace and the activation timeout of a spec.
pub(crate) fn treated(spec: ChildSpec, make: Make, rng: &mut Rng) -> ChildSpec {
    let shutdown = match rng.u8(..10) {
        0 => Shutdown::BrutalKill,
        1 => Shutdown::Timeout(Duration::from_millis(50)),
        _ => Shutdown::Timeout(GRACE),
    };
    let spec = spec.shutdown(shutdown);
    match make {
        Make::Function => spec,
        Make::Signal | Make::Object => spec.activation_timeout(Duration::from_millis(300)),
    }
}

fn backoff(kind: u8) -> Backoff {
    let millis = Duration::from_millis;
    match kind {
        0 => Backoff::none(),
        1 => Backoff::constant(millis(30)),
        2 => Backoff::linear(millis(10), millis(40), millis(250)),
        _ => Backoff::exponential(millis(20), millis(400)).jitter(0.2),
    }
}

pub(crate) fn pick<'a, T>(rng: &mut Rng, among: &'a [T]) -> &'a T {
    &among[rng.usize(..among.len())]
}
