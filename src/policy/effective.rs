//! The policy that a child is under, part by part, and who said so.
//!
//! A [`EffectivePolicy`] is what there is to look at, shared and not copied: each part is looked up
//! when somebody wants to know it. What decides is asked of [`Rules`], here as in the machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::duration::Human;
use super::word::words;
use super::{
    Backoff, ChildOptions, FailureLog, Intensity, OnExhausted, RestartPolicy, Rules, Trigger,
};

/// Who said a part of the policy that a child is under. Those that come later win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PolicySource {
    /// Nobody: it is what there is by default.
    Default,
    /// The [preset](crate::SupervisorBuilder::preset) of its supervisor.
    Preset,
    /// Its supervisor, as what it does itself:
    /// [`SupervisorBuilder::on_exhausted`](crate::SupervisorBuilder::on_exhausted).
    Supervisor,
    /// The [defaults](crate::SupervisorBuilder::defaults) that its supervisor has for children.
    Defaults,
    /// Its [spec](crate::ChildSpec), or its type in [`Child::child_spec`](crate::Child::child_spec).
    Spec,
    /// The child itself, for this incarnation: see
    /// [`Context::set_restart_policy`](crate::Context::set_restart_policy).
    Child,
}

words!(
    PolicySource, "source":
    Default = "default",
    Preset = "preset",
    Supervisor = "supervisor",
    Defaults = "defaults",
    Spec = "spec",
    Child = "child",
);

/// A part of a policy, and who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Effective<T> {
    /// What was said.
    pub value: T,
    /// Who said it.
    pub source: PolicySource,
}

impl<T> Effective<T> {
    fn new(value: T, source: PolicySource) -> Self {
        Self { value, source }
    }
}

/// Who said which part of a policy. Of a limit that there isn't, [`PolicySource::Default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicySources {
    /// See [`EffectivePolicy::restart`].
    pub restart: PolicySource,
    /// See [`EffectivePolicy::backoff`].
    pub backoff: PolicySource,
    /// See [`EffectivePolicy::intensity`].
    pub intensity: PolicySource,
    /// See [`EffectivePolicy::consecutive_restarts`].
    pub consecutive_restarts: PolicySource,
    /// See [`EffectivePolicy::failing_for`].
    pub failing_for: PolicySource,
    /// See [`EffectivePolicy::on_exhausted`].
    pub on_exhausted: PolicySource,
    /// See [`EffectivePolicy::failure_log`].
    pub failure_log: PolicySource,
}

/// The policy that a child is under: what its end is answered with if it comes now.
///
/// While it waits for a restart, it is the one that its last end was answered with. Cheap to clone,
/// and to have: each part is looked up when it is asked for.
///
/// Serialised, each part is its value, as it is written in a file, and its source. A limit that
/// there isn't is left out.
///
/// ```json
/// {
///   "restart": { "value": "transient", "source": "spec" },
///   "backoff": { "value": { "curve": "constant", "delay": "5s" }, "source": "defaults" },
///   "intensity": { "value": { "max": 3, "period": "1m" }, "source": "child" },
///   "on_exhausted": { "value": "escalate", "source": "default" },
///   "failure_log": { "value": { "level": "warn" }, "source": "default" }
/// }
/// ```
#[derive(Clone)]
pub struct EffectivePolicy {
    options: Arc<ChildOptions>,
    rules: Arc<Rules>,
    own: Option<Arc<RestartPolicy>>,
}

impl EffectivePolicy {
    pub(crate) fn new(
        options: Arc<ChildOptions>,
        rules: Arc<Rules>,
        own: Option<Arc<RestartPolicy>>,
    ) -> Self {
        Self { options, rules, own }
    }

    /// Whether the child has said a part of it itself, for this incarnation.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.as_deref().is_some_and(|own| *own != RestartPolicy::new())
    }

    /// Which of its ends lead to what. If the spec makes exceptions to what somebody else said, it
    /// is the spec's.
    #[must_use]
    pub fn restart(&self) -> Effective<Trigger> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.restart.clone()) {
            return Effective::new(own, PolicySource::Child);
        }
        let excepted = self.options.exceptions != super::Exceptions::default();
        let source = if excepted {
            PolicySource::Spec
        } else {
            self.source(|it| it.restart.is_some()).unwrap_or(PolicySource::Default)
        };
        Effective::new(self.rules.trigger(&self.options), source)
    }

    /// How long it waits before each restart.
    #[must_use]
    pub fn backoff(&self) -> Effective<&Backoff> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.backoff.as_ref()) {
            return Effective::new(own, PolicySource::Child);
        }
        let source = self.source(|it| it.backoff.is_some()).unwrap_or(PolicySource::Default);
        Effective::new(self.rules.backoff(&self.options), source)
    }

    /// How many restarts it may have within what, if that is limited.
    #[must_use]
    pub fn intensity(&self) -> Option<Effective<Intensity>> {
        self.limit(|limits| limits.intensity)
    }

    /// How many restarts it may have in a row, if that is limited.
    #[must_use]
    pub fn consecutive_restarts(&self) -> Option<Effective<u32>> {
        self.limit(|limits| limits.consecutive)
    }

    /// For how long it may fail, if that is limited.
    #[must_use]
    pub fn failing_for(&self) -> Option<Effective<Duration>> {
        self.limit(|limits| limits.failing_for)
    }

    /// What follows when it has failed too often.
    #[must_use]
    pub fn on_exhausted(&self) -> Effective<OnExhausted> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.on_exhausted) {
            return Effective::new(own, PolicySource::Child);
        }
        let source = self.source(|it| it.on_exhausted.is_some());
        let source = source.unwrap_or(self.rules.on_exhausted_from);
        Effective::new(self.rules.on_exhausted(&self.options), source)
    }

    /// How loudly its failures are logged.
    #[must_use]
    pub fn failure_log(&self) -> Effective<FailureLog> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.failure_log) {
            return Effective::new(own, PolicySource::Child);
        }
        let source = self.source(|it| it.failure_log.is_some()).unwrap_or(PolicySource::Default);
        Effective::new(self.rules.failure_log(&self.options), source)
    }

    /// Who said which part.
    #[must_use]
    pub fn sources(&self) -> PolicySources {
        fn of<T>(limit: Option<Effective<T>>) -> PolicySource {
            limit.map_or(PolicySource::Default, |limit| limit.source)
        }

        PolicySources {
            restart: self.restart().source,
            backoff: self.backoff().source,
            intensity: of(self.intensity()),
            consecutive_restarts: of(self.consecutive_restarts()),
            failing_for: of(self.failing_for()),
            on_exhausted: self.on_exhausted().source,
            failure_log: self.failure_log().source,
        }
    }

    /// Who says something of those that the child doesn't say itself.
    fn source(&self, says: impl Fn(&ChildOptions) -> bool) -> Option<PolicySource> {
        let layers = [
            (&*self.options, PolicySource::Spec),
            (&self.rules.defaults, PolicySource::Defaults),
            (&self.rules.preset, PolicySource::Preset),
        ];
        layers.into_iter().find_map(|(options, source)| says(options).then_some(source))
    }

    fn limit<T>(&self, of: impl Fn(&super::Limits) -> Option<T>) -> Option<Effective<T>> {
        if let Some(own) = self.own.as_ref().and_then(|own| of(&own.limits.get())) {
            return Some(Effective::new(own, PolicySource::Child));
        }
        let value = of(&self.rules.limits(&self.options)?)?;
        let source = self.source(|it| of(&it.limits.get()).is_some());
        Some(Effective::new(value, source.unwrap_or(PolicySource::Default)))
    }
}

impl Serialize for EffectivePolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (intensity, consecutive) = (self.intensity(), self.consecutive_restarts());
        let failing_for = self.failing_for();
        let limits = usize::from(intensity.is_some())
            + usize::from(consecutive.is_some())
            + usize::from(failing_for.is_some());
        let mut parts = serializer.serialize_struct("EffectivePolicy", 4 + limits)?;
        parts.serialize_field("restart", &self.restart())?;
        parts.serialize_field("backoff", &self.backoff())?;
        match &intensity {
            Some(limit) => parts.serialize_field("intensity", limit)?,
            None => parts.skip_field("intensity")?,
        }
        match &consecutive {
            Some(limit) => parts.serialize_field("consecutive_restarts", limit)?,
            None => parts.skip_field("consecutive_restarts")?,
        }
        match failing_for.map(|it| Effective::new(Human(it.value), it.source)) {
            Some(limit) => parts.serialize_field("failing_for", &limit)?,
            None => parts.skip_field("failing_for")?,
        }
        parts.serialize_field("on_exhausted", &self.on_exhausted())?;
        parts.serialize_field("failure_log", &self.failure_log())?;
        parts.end()
    }
}

impl fmt::Debug for EffectivePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectivePolicy")
            .field("restart", &self.restart())
            .field("backoff", &self.backoff())
            .field("intensity", &self.intensity())
            .field("consecutive_restarts", &self.consecutive_restarts())
            .field("failing_for", &self.failing_for())
            .field("on_exhausted", &self.on_exhausted())
            .field("failure_log", &self.failure_log())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::counting::{Counting, Parts};
    use super::*;
    use crate::policy::{LogLevel, RestartType};

    const SECOND: Duration = Duration::from_secs(1);

    /// All that can be said, by somebody who is known by a number.
    fn said(by: u32) -> RestartPolicy {
        let restart = [RestartType::OnStop, RestartType::OnAbort, RestartType::OnWatchdog];
        let log = [LogLevel::Trace, LogLevel::Debug, LogLevel::Error];
        let number = by as usize % 3;
        RestartPolicy::new()
            .restart(restart[number])
            .backoff(Backoff::constant(SECOND * by))
            .restarts(by, SECOND)
            .consecutive_restarts(by)
            .failing_for(SECOND * by)
            .on_exhausted(OnExhausted::Exit(by as u8))
            .failure_log(FailureLog::at(log[number]))
    }

    fn options(policy: RestartPolicy) -> ChildOptions {
        let mut options = ChildOptions::default();
        options.adopt(policy);
        options
    }

    /// What is in force, as a policy.
    fn whole(policy: &EffectivePolicy) -> RestartPolicy {
        let mut whole = RestartPolicy::new()
            .restart(policy.restart().value)
            .backoff(policy.backoff().value.clone())
            .on_exhausted(policy.on_exhausted().value)
            .failure_log(policy.failure_log().value);
        policy.intensity().into_iter().for_each(|it| whole.limits.intensity(it.value));
        policy.consecutive_restarts().into_iter().for_each(|it| whole.limits.consecutive(it.value));
        policy.failing_for().into_iter().for_each(|it| whole.limits.failing_for(it.value));
        whole
    }

    fn all(source: PolicySource) -> PolicySources {
        PolicySources {
            restart: source,
            backoff: source,
            intensity: source,
            consecutive_restarts: source,
            failing_for: source,
            on_exhausted: source,
            failure_log: source,
        }
    }

    #[test]
    fn kin_76_who_comes_later_wins_in_each_part() {
        let rules = Rules { defaults: options(said(1)), ..Rules::default() };
        let mut policy = EffectivePolicy::new(Arc::default(), Arc::new(rules), None);
        assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Defaults), said(1)));
        policy.options = Arc::new(options(said(2)));
        assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Spec), said(2)));
        assert!(!policy.is_own());
        policy.own = Some(Arc::new(said(3)));
        assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Child), said(3)));
        assert!(policy.is_own());
        policy.own = Some(Arc::default());
        assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Spec), said(2)));
        assert!(!policy.is_own(), "it has said nothing");
    }

    #[test]
    fn what_nobody_says_is_the_default_or_that_of_the_supervisor() {
        let policy = EffectivePolicy::new(Arc::default(), Arc::default(), None);
        assert_eq!(policy.sources(), all(PolicySource::Default));
        assert_eq!(
            whole(&policy),
            RestartPolicy::new()
                .restart(RestartType::Permanent)
                .backoff(Backoff::default())
                .on_exhausted(OnExhausted::Escalate)
                .failure_log(FailureLog::default()),
        );

        let park = OnExhausted::Park;
        let rules = Rules {
            on_exhausted: park,
            on_exhausted_from: PolicySource::Supervisor,
            preset: ChildOptions { backoff: Some(Backoff::none()), ..ChildOptions::default() },
            ..Rules::default()
        };
        let policy = EffectivePolicy::new(Arc::default(), Arc::new(rules), None);
        assert_eq!(policy.on_exhausted(), Effective::new(park, PolicySource::Supervisor));
        assert_eq!(policy.backoff(), Effective::new(&Backoff::none(), PolicySource::Preset));
        assert_eq!(policy.restart().source, PolicySource::Default);
    }

    #[test]
    fn as_many_parts_are_written_as_were_announced() {
        let all = said(1);
        let limits = [
            RestartPolicy::new(),
            RestartPolicy::new().restarts(1, SECOND),
            RestartPolicy::new().consecutive_restarts(1),
            RestartPolicy::new().failing_for(SECOND),
            RestartPolicy::new().restarts(1, SECOND).consecutive_restarts(1),
            RestartPolicy::new().restarts(1, SECOND).failing_for(SECOND),
            RestartPolicy::new().consecutive_restarts(1).failing_for(SECOND),
            all,
        ];
        let parts = limits.map(|said| {
            let policy = EffectivePolicy::new(Arc::new(options(said)), Arc::default(), None);
            let Parts { announced, written } = policy.serialize(Counting).unwrap();
            assert_eq!(announced, written);
            written
        });
        assert_eq!(parts, [4, 5, 5, 5, 6, 6, 6, 7]);
    }

    #[test]
    fn a_trigger_with_exceptions_of_the_spec_is_the_specs() {
        let rules = Rules {
            defaults: options(RestartPolicy::new().restart(RestartType::Transient)),
            ..Rules::default()
        };
        let mut child = ChildOptions::default();
        child.exceptions.on_exit(crate::exit::ExitKind::Hung, crate::policy::OnExit::Leave);
        let policy = EffectivePolicy::new(Arc::new(child), Arc::new(rules), None);
        let Effective { value, source } = policy.restart();
        assert_eq!((value.restart_type(), source), (RestartType::Transient, PolicySource::Spec));
        assert_ne!(value, RestartType::Transient.into());
    }
}

/// A format that wants to know in advance how many parts a structure has, as binary ones do.
#[cfg(test)]
mod counting {
    use serde::de::value::Error;
    use serde::ser::{Impossible, SerializeStruct};
    use serde::{Serialize, Serializer};

    /// Takes a structure, and looks at none of its values.
    pub(super) struct Counting;

    #[derive(Default)]
    pub(super) struct Parts {
        pub(super) announced: usize,
        pub(super) written: usize,
    }

    impl SerializeStruct for Parts {
        type Ok = Self;
        type Error = Error;

        fn serialize_field<T: Serialize + ?Sized>(
            &mut self,
            _: &'static str,
            _: &T,
        ) -> Result<(), Error> {
            self.written += 1;
            Ok(())
        }

        fn end(self) -> Result<Self, Error> {
            Ok(self)
        }
    }

    macro_rules! refuse {
        ($($method:ident($($of:ty),*) -> $result:ty;)*) => {$(
            fn $method(self, $(_: $of),*) -> Result<$result, Error> {
                unreachable!("not a structure")
            }
        )*};
    }

    impl Serializer for Counting {
        type Ok = Parts;
        type Error = Error;
        type SerializeSeq = Impossible<Parts, Error>;
        type SerializeTuple = Impossible<Parts, Error>;
        type SerializeTupleStruct = Impossible<Parts, Error>;
        type SerializeTupleVariant = Impossible<Parts, Error>;
        type SerializeMap = Impossible<Parts, Error>;
        type SerializeStruct = Parts;
        type SerializeStructVariant = Impossible<Parts, Error>;

        fn serialize_struct(self, _: &'static str, announced: usize) -> Result<Parts, Error> {
            Ok(Parts { announced, written: 0 })
        }

        refuse! {
            serialize_bool(bool) -> Parts;
            serialize_i8(i8) -> Parts;
            serialize_i16(i16) -> Parts;
            serialize_i32(i32) -> Parts;
            serialize_i64(i64) -> Parts;
            serialize_u8(u8) -> Parts;
            serialize_u16(u16) -> Parts;
            serialize_u32(u32) -> Parts;
            serialize_u64(u64) -> Parts;
            serialize_f32(f32) -> Parts;
            serialize_f64(f64) -> Parts;
            serialize_char(char) -> Parts;
            serialize_str(&str) -> Parts;
            serialize_bytes(&[u8]) -> Parts;
            serialize_none() -> Parts;
            serialize_unit() -> Parts;
            serialize_unit_struct(&'static str) -> Parts;
            serialize_unit_variant(&'static str, u32, &'static str) -> Parts;
            serialize_seq(Option<usize>) -> Self::SerializeSeq;
            serialize_tuple(usize) -> Self::SerializeTuple;
            serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
            serialize_map(Option<usize>) -> Self::SerializeMap;
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
        }

        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Parts, Error> {
            unreachable!("not a structure")
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: &T,
        ) -> Result<Parts, Error> {
            unreachable!("not a structure")
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Parts, Error> {
            unreachable!("not a structure")
        }
    }
}
