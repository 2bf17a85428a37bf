//! The expansions pass the lints that a crate may have turned on.

#![deny(
    keyword_idents,
    let_underscore,
    nonstandard_style,
    unused
)]
#![deny(
    absolute_paths_not_starting_with_crate,
    ambiguous_negative_literals,
    explicit_outlives_requirements,
    macro_use_extern_crate,
    meta_variable_misuse,
    missing_copy_implementations,
    missing_debug_implementations,
    missing_docs,
    redundant_imports,
    redundant_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unnameable_types,
    unreachable_pub,
    unsafe_code,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]

pub mod service {
    //! Public, so that everything has to be documented.

    use std::time::Duration;

    use verger::exit::Outcome;
    use verger::mailbox::{Address, Inbox, Mailbox};
    use verger::policy::{FailureLog, Intensity, Jitter, LogLevel, OnExhausted, Preset};
    use verger::spec::Component;
    use verger::{
        Backoff, Child, ChildSpec, Context, DynamicSupervisor, Exit, RestartType, Shutdown,
        Strategy, Supervisor, SupervisorBuilder, async_trait, component, mailbox_with_capacity,
        supervisor, worker, worker_with, worker_with_mailbox,
    };

    /// Uses everything that is imported, so that a path to it could be shorter.
    #[must_use]
    pub fn by_builder() -> SupervisorBuilder {
        /// Nothing.
        #[derive(Clone, Copy, Debug)]
        struct Nothing;

        #[async_trait]
        impl Child for Nothing {
            async fn run(&mut self, _: &Context) -> Exit {
                ().into_exit()
            }
        }

        fn any(value: impl Component) -> ChildSpec {
            component("any", value)
        }

        let (address, mailbox): (Address<u32>, Mailbox<u32>) = mailbox_with_capacity(5);
        let writer = worker_with_mailbox("writer", mailbox, async |_, _| {});
        drop(address);
        let wait = Backoff::constant(Duration::from_secs(1));
        let clock = worker_with("clock", 5, async |_, _| {}).restart(RestartType::Transient);
        Supervisor::builder("hand")
            .strategy(Strategy::OneForAll)
            .defaults(|child| child.backoff(wait).shutdown(Shutdown::Infinity))
            .child(clock)
            .child(writer)
            .child(any(Nothing))
            .child(DynamicSupervisor::builder("conns"))
    }

    /// Ticks.
    #[worker(
        restart = "transient",
        shutdown = "infinity",
        backoff(linear, base = "1s", jitter = Jitter::Full),
        failure_log = FailureLog::at(LogLevel::Info)
    )]
    pub async fn clock(ctx: Context, every: Duration, zone: String) -> Exit {
        drop(zone);
        let _: Option<()> = ctx.run_until_cancelled(tokio::time::sleep(every)).await;
        Ok(())
    }

    /// Writes.
    #[worker(capacity = 5, mailbox = |it| it.max_attempts(3))]
    pub async fn writer<M: Into<u64>>(mut inbox: Inbox<M>, mut sum: u64, _unit: &'static str) {
        while let Some(number) = inbox.recv().await {
            sum += number.into();
        }
        assert_eq!(sum, 5);
    }

    /// Does anything.
    #[worker]
    pub async fn any<T: Copy + Into<u64>>(value: T) {
        let value: u64 = value.into();
        assert_eq!(value, 5);
    }

    /// Keeps data.
    #[derive(Clone, Debug)]
    pub struct Db<T> {
        /// The data.
        pub data: T,
    }

    #[worker(shutdown = "brutal_kill", activation_timeout = "200ms")]
    impl<T: Clone + Send + Sync + 'static> Db<T> {
        /// Connects.
        pub async fn activate(&mut self) {}

        /// Serves.
        pub async fn run(&self, ctx: &Context) -> Exit {
            ctx.cancelled().await;
            Ok(())
        }
    }

    /// All of it.
    #[supervisor(
        strategy = "one_for_all",
        auto_shutdown = "any_significant",
        start = "concurrent",
        first_start = "fail",
        on_exhausted = OnExhausted::Pause(Duration::from_secs(15)),
        max_restarts = self.limit,
        period = "60s",
        preset = Preset::kubelet(),
        defaults(restart = "transient", on_leak = "park", failing_for = "1h"),
        backoff(exponential, jitter = 0.5),
        child(readiness = "signal")
    )]
    #[derive(Debug)]
    pub struct App<T> {
        /// A spec.
        #[child(
            significant,
            restart = "temporary",
            restart_if = |error: &std::fmt::Error| error.to_string().is_empty(),
            intensity = Intensity::tumbling(5, Duration::from_secs(60)),
            fallback = clock(Duration::from_secs(1), String::new())
        )]
        pub clock: ChildSpec,
        /// A prototype.
        #[child]
        pub db: Db<T>,
        /// A supervisor.
        #[supervisor(shutdown = "1m")]
        pub below: Below,
        /// A dynamic supervisor.
        #[dynamic(defaults(shutdown = "1s"))]
        pub conns: DynamicSupervisor,
        /// A number.
        pub limit: u32,
    }

    /// Below.
    #[derive(Clone, Copy, Debug, Supervisor)]
    #[tree(defaults(shutdown = "1s"))]
    #[non_exhaustive]
    pub struct Below {}

    impl Below {
        /// The only one.
        #[must_use]
        pub const fn new() -> Self {
            Self {}
        }
    }
}

pub(crate) fn main() {
    let app = service::App {
        clock: service::clock(std::time::Duration::from_secs(1), String::new()),
        db: service::Db { data: 5 },
        below: service::Below::new(),
        conns: verger::DynamicSupervisor,
        limit: 5,
    };
    let (writer, address) = service::writer::<u32>(0, "rows");
    assert!(address.try_send(5).is_ok());
    let app = app.builder().child(service::any(5_u32)).child(service::by_builder()).child(writer);
    assert!(app.build().is_ok());
}
