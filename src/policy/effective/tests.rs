use super::*;
use crate::policy::{ChildLayer, ChildOptions, LogLevel, RestartType, Rules};

const SECOND: Duration = Duration::from_secs(1);

/// A policy with all values, derived from a number.
fn policy_of(by: u32) -> RestartPolicy {
    let restart = [RestartType::OnStop, RestartType::OnAbort, RestartType::OnWatchdog];
    let log = [LogLevel::Trace, LogLevel::Debug, LogLevel::Error];
    let number = by as usize % 3;
    RestartPolicy::new()
        .restart(restart[number])
        .backoff(Backoff::constant(SECOND * by))
        .own_restarts(by, SECOND)
        .consecutive_restarts(by)
        .failing_for(SECOND * by)
        .on_exhausted(OnExhausted::Exit(by as u8))
        .failure_log(FailureLog::at(log[number]))
}

fn options(policy: RestartPolicy) -> ChildOptions {
    ChildOptions {
        values: ChildLayer { policy, ..ChildLayer::default() },
        ..ChildOptions::default()
    }
}

fn effective(spec: ChildOptions, rules: Rules, own: Option<RestartPolicy>) -> EffectivePolicy {
    EffectivePolicy::new(ChildRules::of(&Arc::new(spec), &Arc::new(rules)), own.map(Arc::new))
}

/// The effective values, as a policy.
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
fn kin_76_a_later_source_takes_precedence_for_each_value() {
    let rules = || Rules { defaults: options(policy_of(1)), ..Rules::default() };
    let policy = effective(ChildOptions::default(), rules(), None);
    assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Defaults), policy_of(1)));
    let spec = || options(policy_of(2));
    let policy = effective(spec(), rules(), None);
    assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Spec), policy_of(2)));
    assert!(!policy.is_own());
    let policy = effective(spec(), rules(), Some(policy_of(3)));
    assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Child), policy_of(3)));
    assert!(policy.is_own());
    let policy = effective(spec(), rules(), Some(RestartPolicy::new()));
    assert_eq!((policy.sources(), whole(&policy)), (all(PolicySource::Spec), policy_of(2)));
    assert!(!policy.is_own(), "its policy is empty");
}

#[test]
fn a_value_that_is_not_set_is_the_default_or_that_of_the_supervisor() {
    let policy = effective(ChildOptions::default(), Rules::default(), None);
    assert_eq!(policy.sources(), all(PolicySource::Default));
    assert_eq!(
        whole(&policy),
        RestartPolicy::new()
            .restart(RestartType::Permanent)
            .backoff(Backoff::default())
            .own_restarts(12, 300 * SECOND)
            .on_exhausted(OnExhausted::Escalate)
            .failure_log(FailureLog::default()),
    );

    let park = OnExhausted::Park;
    let rules = Rules {
        on_exhausted: park,
        on_exhausted_from: PolicySource::Supervisor,
        preset: options(RestartPolicy::new().backoff(Backoff::none())).values,
        ..Rules::default()
    };
    let policy = effective(ChildOptions::default(), rules, None);
    assert_eq!(policy.on_exhausted(), Effective::new(park, PolicySource::Supervisor));
    assert_eq!(policy.backoff(), Effective::new(&Backoff::none(), PolicySource::Preset));
    assert_eq!(policy.restart().source, PolicySource::Default);
}

#[test]
fn a_written_limit_is_shown_and_the_built_in_one_is_not() {
    let spec = options(RestartPolicy::new().consecutive_restarts(20));
    let policy = effective(spec, Rules::default(), None);
    assert_eq!(policy.intensity(), None);
    let twenty = Effective::new(20, PolicySource::Spec);
    assert_eq!(policy.consecutive_restarts(), Some(twenty));

    let own = Some(RestartPolicy::new().failing_for(SECOND));
    let policy = effective(ChildOptions::default(), Rules::default(), own);
    assert_eq!(policy.intensity(), None);
    assert_eq!(policy.failing_for(), Some(Effective::new(SECOND, PolicySource::Child)));
}

#[test]
fn the_source_of_a_trigger_with_exceptions_of_the_spec_is_the_spec() {
    let rules = Rules {
        defaults: options(RestartPolicy::new().restart(RestartType::Transient)),
        ..Rules::default()
    };
    let mut child = ChildOptions::default();
    child.exceptions.on_exit(crate::exit::ExitKind::Hung, crate::policy::OnExit::Leave);
    let policy = effective(child, rules, None);
    let Effective { value, source } = policy.restart();
    assert_eq!((value.restart_type(), source), (RestartType::Transient, PolicySource::Spec));
    assert_ne!(value, RestartType::Transient.into());
}
