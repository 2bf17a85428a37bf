//! Which facts of a child differ.
//!
//! Values are compared as values, and made texts only if they differ.

use crate::policy::{Effective, EffectivePolicy};
use crate::status::{
    ChildInfo, ChildKind, Fact, FactChange, LastCall, LimitUse, Node, SupervisorInfo, words,
};

/// Returns the facts of a child that differ between two snapshots.
#[inline]
pub(super) fn differences(before: &Node, after: &Node) -> Vec<FactChange> {
    let mut comparison = Comparison { before, after, facts: Vec::new() };
    comparison.state();
    comparison.supervisor();
    comparison.spec();
    comparison.policy();
    comparison.compare(Fact::Configured, words::places, |it| it);
    comparison.facts
}

/// The facts of a child that differ so far.
struct Comparison<'a> {
    before: &'a Node,
    after: &'a Node,
    facts: Vec<FactChange>,
}

impl<'a> Comparison<'a> {
    /// Compares what changes while a child runs.
    #[inline]
    fn state(&mut self) {
        self.child(Fact::Lifecycle, |it| it.lifecycle, |it| Some(it.to_string()));
        // An incarnation of a child that was created again may have the same number.
        let of = |it: &'a ChildInfo| (it.incarnation, it.started_at);
        self.child(Fact::Incarnation, of, |(incarnation, _)| Some(incarnation.to_string()));
        self.child(Fact::Why, |it| it.why, |it| it.map(str::to_owned));
        self.child(Fact::Held, |it| it.held, |it| Some(yes_or_no(it)));
        let waits = |it: &[String]| (!it.is_empty()).then(|| it.join(", "));
        self.child(Fact::WaitsFor, |it| &it.waits_for[..], waits);
        let next = |(attempt, delay)| format!("attempt {attempt} after {}", words::exactly(delay));
        let of = |it: &'a ChildInfo| it.next.map(|it| (it.attempt, it.delay));
        self.child(Fact::Next, of, |it| it.map(next));
        let last = |it: &'a ChildInfo| it.last_exit.as_ref().map(ToString::to_string);
        self.child(Fact::LastExit, last, |it| it);
        let health = |(healthy, problem): (Option<bool>, Option<&str>)| {
            Some(match (healthy?, problem) {
                (true, _) => "healthy".to_owned(),
                (false, None) => "unhealthy".to_owned(),
                (false, Some(problem)) => format!("unhealthy: {problem}"),
            })
        };
        self.child(Fact::Health, |it| (it.healthy, it.problem.as_deref()), health);
        self.child(Fact::Status, |it| it.status.as_deref(), |it| it.map(str::to_owned));
        let limit = |it: LimitUse| words::window(it.restarts, it.max_restarts, it.period);
        self.child(Fact::Limit, |it| it.limit, |it| it.map(limit));
        let call = |it: &LastCall| it.with_caller(it.call);
        self.child(Fact::LastCall, |it| it.last_call.as_ref(), |it| it.map(call));
    }

    /// Compares what only a supervisor has.
    #[inline]
    fn supervisor(&mut self) {
        let limit = |it: &'a SupervisorInfo| words::intensity(it);
        self.of_supervisor(Fact::Intensity, limit, |it| it);
        self.of_supervisor(Fact::Strategy, |it| it.strategy, str::to_owned);
        self.of_supervisor(Fact::OnChildFailure, |it| it.on_child_failure, yes_or_no);
    }

    /// Compares what the spec of a child says.
    #[inline]
    fn spec(&mut self) {
        self.child(Fact::Kind, |it| it.kind, |it| Some(kind(it).to_owned()));
        self.child(Fact::Version, |it| it.version.as_deref(), |it| it.map(str::to_owned));
        self.child(Fact::Significant, |it| it.significant, |it| Some(yes_or_no(it)));
        self.child(Fact::Essential, |it| it.essential, |it| Some(yes_or_no(it)));
    }

    /// Compares the policy that applies to the child.
    #[inline]
    fn policy(&mut self) {
        self.part(Fact::Restart, |it| Some(it.restart()), |it| it.restart_type().to_string());
        self.part(Fact::Backoff, |it| Some(it.backoff()), |_| String::new());
        self.part(Fact::ChildIntensity, EffectivePolicy::intensity, |it| it.in_words());
        self.part(Fact::ConsecutiveRestarts, EffectivePolicy::consecutive_restarts, u32::to_string);
        self.part(Fact::FailingFor, EffectivePolicy::failing_for, |&it| words::exactly(it));
        self.part(Fact::OnExhausted, |it| Some(it.on_exhausted()), ToString::to_string);
        self.part(Fact::FailureLog, |it| Some(it.failure_log()), |_| String::new());
    }

    #[inline]
    fn child<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a ChildInfo) -> T,
        text: impl Fn(T) -> Option<String>,
    ) {
        self.compare(fact, |it| of(&it.child), text);
    }

    #[inline]
    fn of_supervisor<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a SupervisorInfo) -> T,
        text: impl Fn(T) -> String,
    ) {
        let of = |it: &'a Node| it.supervisor.as_deref().map(&of);
        self.compare(fact, of, |it| it.map(&text));
    }

    #[inline]
    fn part<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a EffectivePolicy) -> Option<Effective<T>>,
        text: impl Fn(&T) -> String,
    ) {
        let of = |it: &'a Node| it.child.policy.as_ref().and_then(&of);
        let with_source = |Effective { value, source }: Effective<T>| {
            format!("{} ({source})", text(&value)).trim_start().to_owned()
        };
        self.compare(fact, of, |it| it.map(with_source));
    }

    #[inline]
    fn compare<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a Node) -> T,
        text: impl Fn(T) -> Option<String>,
    ) {
        let (before, after) = (of(self.before), of(self.after));
        if before == after {
            return;
        }
        let (before, mut after) = (text(before), text(after));
        if before == after {
            // The values differ in a part that their texts don't have.
            after = after.map(|after| after + ", changed");
        }
        self.facts.push(FactChange { fact, before, after });
    }
}

#[inline]
fn yes_or_no(it: bool) -> String {
    (if it { "yes" } else { "no" }).to_owned()
}

#[inline]
fn kind(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::Worker => "worker",
        ChildKind::Supervisor => "supervisor",
    }
}
