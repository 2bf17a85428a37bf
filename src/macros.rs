//! The macros, with their documentation, whose links need the items of this crate.

/// Makes a struct a supervisor, whose fields are its children.
///
/// The struct gets four methods, as visible as itself:
///
/// * `builder(self)` returns a [`SupervisorBuilder`](crate::SupervisorBuilder), to which more can be
///   added.
/// * `into_child(self)` returns a [`ChildSpec`](crate::ChildSpec) for another supervisor, as does
///   `From`.
/// * `application(self)` returns an [`Application`](crate::Application), which signals stop: what a `main`
///   runs.
/// * `run(self)` builds the tree and runs it until it ends by itself.
///
/// The name of each child is a constant, too: `App::DB` for a field `db`. See
/// [below](#names-of-the-children).
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Context, DynamicSupervisor, Exit, RunError, supervisor, worker};
///
/// #[derive(Clone)]
/// struct Db {
///     url: String,
/// }
///
/// #[worker(shutdown = "20s")]
/// impl Db {
///     async fn activate(&mut self) -> Exit {
///         println!("connecting to {}", self.url);
///         Ok(())
///     }
///
///     async fn run(&mut self, ctx: &Context) {
///         ctx.cancelled().await;
///     }
/// }
///
/// #[derive(Clone)]
/// struct Api;
///
/// #[worker]
/// impl Api {
///     async fn run(&mut self, ctx: &Context) {
///         ctx.cancelled().await;
///     }
/// }
///
/// #[supervisor(strategy = "rest_for_one", max_restarts = 3, period = "10s")]
/// struct Ingest {
///     #[child]
///     db: Db,
/// }
///
/// #[supervisor(backoff(exponential, min = "100ms", max = "10s"))]
/// struct App {
///     #[supervisor(restart = "transient")]
///     ingest: Ingest,
///     #[child(requires = "ingest", activation_timeout = self.patience)]
///     api: Api,
///     #[dynamic(max_children = 1000)]
///     conns: DynamicSupervisor,
///     patience: Duration,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = Db { url: "postgres://localhost".to_owned() };
/// let app = App {
///     ingest: Ingest { db },
///     api: Api,
///     conns: DynamicSupervisor,
///     patience: Duration::from_secs(10),
/// };
///
/// let handle = app.builder().build()?.start().await?; // or `app.run().await?`
/// assert_eq!(handle.child(App::INGEST).await?.path().as_str(), "app/ingest");
/// assert_eq!(handle.which_child("ingest/db").await?.path.as_str(), "app/ingest/db");
/// handle.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Fields
///
/// | attribute | type of the field |
/// | --- | --- |
/// | `#[child]` | a [`Component`](crate::spec::Component): a [`Child`](trait@crate::Child) that is `Clone` and `Sync`, cloned for each incarnation; or a [`ChildSpec`](crate::ChildSpec), such as the constructor of a [`#[worker]`](macro@worker) function returns |
/// | `#[supervisor]` | another annotated struct, or any other `Into<ChildSpec>`, such as a builder |
/// | `#[dynamic]` | [`DynamicSupervisor`](crate::DynamicSupervisor) |
/// | none | any type: data of the struct, which keys may use, as in `max_restarts = self.limit` |
///
/// Children start in the order of the fields. A field with a `cfg` is a child only where that holds.
/// A child is named after its field, and the root after the struct, in snake case. A `ChildSpec`
/// without an attribute is an error unless a key uses it as `self.field`, because it would never
/// start.
///
/// # Names of the children
///
/// The struct has a constant for each child, as visible as the struct itself. It is named after the field,
/// in upper case, and its value is the child's name, also where a key `name` sets that:
///
/// ```
/// use verger::{ChildSpec, supervisor};
///
/// #[supervisor]
/// struct Ingest {
///     #[child(name = "sensor_writer")]
///     writer: ChildSpec,
/// }
///
/// #[supervisor]
/// struct App {
///     #[supervisor]
///     ingest: Ingest,
/// }
///
/// assert_eq!((App::INGEST, Ingest::WRITER), ("ingest", "sensor_writer"));
///
/// let path = format!("{}/{}", App::INGEST, Ingest::WRITER);
/// assert_eq!(path, "ingest/sensor_writer");
/// ```
///
/// A handle takes such a name or path: `ctx.parent().child(App::INGEST)`. If the struct has type parameters,
/// the constant needs them: `App::<Db>::INGEST`.
///
/// # Type parameters
///
/// Type parameters get the bounds that the fields need. Lifetime parameters are an error, because
/// children outlive the function that starts them.
///
/// # Keys
///
/// Words and durations are written in quotes and checked at compile time. Each may be an expression
/// of the method's type instead. Expressions may use the data of the struct, which is moved out of
/// it: write `self.x.clone()` for a value that is used twice. Keys that aren't set have the builder's
/// defaults.
///
/// Keys of the struct. Each sets the option of [`SupervisorBuilder`](crate::SupervisorBuilder) with
/// the same name, unless the table names another one:
///
/// | key | value |
/// | --- | --- |
/// | `strategy` | `"one_for_one"`, `"one_for_all"`, `"rest_for_one"` |
/// | `max_restarts`, `period` | a number and a duration, both or neither: `restarts` |
/// | `intensity` | an [`Intensity`](crate::policy::Intensity): `Intensity::tumbling(5, Duration::from_secs(60))` |
/// | `unlimited_restarts` | none |
/// | `count_failed_starts` | `true` or `false` |
/// | `auto_shutdown` | `"never"`, `"any_significant"`, `"all_significant"` |
/// | `start` | `"sequential"`, `"concurrent"` |
/// | `first_start` | `"retry"`, `"fail"` |
/// | `on_exhausted` | `"escalate"`, `"park"`, `"stop_child"`, or another [`OnExhausted`](crate::policy::OnExhausted): `OnExhausted::Pause(Duration::from_secs(15))` |
/// | `on_child_failure` | a function, async or not, or a method of the struct: `Self::failed` |
/// | `leak_timeout`, `stop_deadline` | a duration |
/// | `self_check`, `busy_time` | `true` or `false` |
/// | `preset` | a [`Preset`](crate::policy::Preset): `Preset::otp()` |
/// | `defaults(…)` | options of all children that don't set them: `restart`, `shutdown`, `drain`, `backoff`, `activation_timeout`, `watchdog`, `run_time_limit`, `on_leak`, `failure_log`, `retry_after`, `policy`, and limits for each child: `own_restarts(…)`, `intensity`, `unlimited_restarts`, `consecutive_restarts`, `failing_for`, `on_exhausted` |
/// | `backoff` | short for `defaults(backoff(…))` |
/// | `child(…)` | options of this supervisor as a child: any key of a child but those about `config` |
/// | `name` | the name of the root, or of a child that is added without a field |
/// | `crate` | the path to verger, if it isn't `::verger` |
///
/// Keys of a `#[child]`, a `#[supervisor]` field and a `#[dynamic]` field, for
/// [`ChildSpec`](crate::ChildSpec). They win over what the type sets itself.
///
/// | key | value |
/// | --- | --- |
/// | `name` | the child's name, instead of the field's |
/// | `restart` | `"permanent"` (`"always"`), `"transient"` (`"on_failure"`), `"temporary"` (`"never"`, `"no"`), `"on_stop"`, `"on_success"`, `"on_abnormal"`, `"on_abort"`, `"on_watchdog"` |
/// | `shutdown` | a duration, `"brutal_kill"`, `"infinity"` |
/// | `drain` | a duration, in place of `shutdown`: [`Shutdown::Drain`](crate::Shutdown::Drain) |
/// | `backoff` | a curve in parentheses, see below, or a [`Backoff`](crate::Backoff): `Backoff::fibonacci(MIN, MAX)` |
/// | `significant` | none |
/// | `essential` | `true` or `false`: whether the tree is ready only if the child is |
/// | `stop_order` | a number from -128 to 127; lower numbers stop first |
/// | `requires` | the name of a sibling, or several: `["db", "cache"]` |
/// | `readiness` | `"on_start"`, `"signal"` |
/// | `activation_timeout`, `watchdog`, `run_time_limit` | a duration |
/// | `on_leak` | `"restart"`, `"park"` |
/// | `restart_if`, `leave_down_if` | a function of an error, or several in brackets: `[refused, \|error: &Slow\| error.often]` |
/// | `retry_after` | a function of an error that returns how long to wait, or several |
/// | `own_restarts(…)` | `max`, a number, and `period`, a duration: `own_restarts(max = 12, period = "5m")`, a limit for this child alone |
/// | `intensity` | an [`Intensity`](crate::policy::Intensity) for this child alone |
/// | `unlimited_restarts` | none; for this child alone |
/// | `consecutive_restarts` | a number |
/// | `failing_for` | a duration |
/// | `on_exhausted` | as above, for this child |
/// | `fallback` | a child spec, such as the constructor of a worker function returns: `bestsellers()` |
/// | `policy` | a [`RestartPolicy`](crate::policy::RestartPolicy), such as a field that is read from a file |
/// | `health_check` | a [`HealthCheck`](crate::HealthCheck) |
/// | `lease` | a `Lease` (feature `lease`), so that the child runs on one machine at a time |
/// | `failure_log` | a [`FailureLog`](crate::policy::FailureLog): `FailureLog::at(LogLevel::Info)` |
/// | `config` | the type of the child's own configuration, for `ChildSpec::config`: `config = Settings`. Needs the feature `config` |
/// | `validate` | with `config`: a function that checks each new value |
/// | `restart_on_change`, `start_when_configured` | with `config`: none |
/// | `config_section` | with `config`: the path of a section that several children share, below the root: `"storage"` |
///
/// A `#[dynamic]` field also has the keys of its builder: `max_children`, `min_ready`, `max_restarts` and
/// `period`, `intensity`, `unlimited_restarts`, `count_failed_starts`, `on_exhausted`, `on_child_failure`, `leak_timeout`,
/// `stop_deadline`, `preset`, `defaults(…)`. A key of both is the builder's. The limits of the
/// dynamic supervisor as a child are written in `child(…)`.
///
/// Above a `#[supervisor]` field, all keys are options of that supervisor as a child. The options of
/// its own children are written above its struct. `config` and the keys that go with it are an error there and
/// above a `#[dynamic]` field, because supervisors have no configuration of their own. A `config` above a
/// field replaces the one of the worker as a whole.
///
/// # Backoff
///
/// A backoff in parentheses begins with its curve. The table has the defaults in parentheses:
///
/// | curve | settings |
/// | --- | --- |
/// | `backoff(exponential)` | `min` (200 ms), `max` (30 s), `factor` (2), `jitter` (0.2) |
/// | `backoff(linear, base = "2s")` | `base`, which is also the step, `max` (30 s), `jitter` (0.2) |
/// | `backoff(constant, delay = "5s")` | `delay`, `jitter` |
/// | `backoff(none)` | none |
///
/// `jitter` is a number from 0 to 1, or a [`Jitter`](crate::policy::Jitter); 0 removes it. Other curves
/// and settings take an expression:
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::Jitter;
/// use verger::{Backoff, Context, worker};
///
/// const SECOND: Duration = Duration::from_secs(1);
///
/// #[worker(backoff = Backoff::fibonacci(SECOND, 13 * SECOND).jitter(Jitter::Full))]
/// async fn poll(ctx: Context) {
///     ctx.cancelled().await;
/// }
/// # drop(poll());
/// ```
#[doc(inline)]
pub use verger_macros::supervisor;

/// Makes a struct a supervisor, as a derive macro.
///
/// It has the keys and generates the methods and constants of [`#[supervisor]`](macro@supervisor). The attribute
/// above the struct, and above a field that is a supervisor, is named `#[tree(…)]`. The others are
/// `#[child(…)]` and `#[dynamic(…)]`.
///
/// ```
/// use verger::{ChildSpec, Context, Supervisor, worker};
///
/// #[worker]
/// async fn clock(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// #[derive(Supervisor)]
/// #[tree(strategy = "one_for_all")]
/// struct Clocks {
///     #[child]
///     left: ChildSpec,
///     #[child(restart = "transient")]
///     right: ChildSpec,
/// }
///
/// #[derive(Supervisor)]
/// struct App {
///     #[tree(shutdown = "10s")]
///     clocks: Clocks,
/// }
///
/// let app = App { clocks: Clocks { left: clock(), right: clock() } };
/// let tree = app.builder().build()?;
/// # drop(tree);
/// # Ok::<(), verger::BuildError>(())
/// ```
#[doc(inline)]
pub use verger_macros::Supervisor;

/// Makes an `async fn` a constructor of child specs, or the `impl` block of a type a
/// [`Child`](trait@crate::Child).
///
/// # On an `async fn`
///
/// The constructor has the name, the documentation and the visibility of the function, and returns a
/// [`ChildSpec`](crate::ChildSpec) of that name. A first parameter of type
/// [`Context`](crate::Context) is the context of the incarnation. The other parameters are the
/// constructor's, and are cloned for each incarnation: they have to be `Clone + Send + Sync`. The
/// function may return any [`Outcome`](crate::exit::Outcome).
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Context, Exit, Supervisor, worker};
///
/// /// Polls a page again and again.
/// #[worker(restart = "transient", backoff(linear, base = "2s"))]
/// async fn poll(ctx: Context, url: String, every: Duration) -> Exit {
///     while ctx.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
///         println!("polling {url}");
///     }
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app")
///     .child(poll("http://localhost/a".to_owned(), Duration::from_secs(1)))
///     .child(poll("http://localhost/b".to_owned(), Duration::from_secs(9)).named("poll-b"))
///     .build()?;
/// # let handle = app.start().await?;
/// # tokio::time::sleep(Duration::from_secs(20)).await;
/// # handle.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// Attributes stay with the function, except for `cfg`, `deprecated` and `must_use`, which apply to
/// the constructor. Lint levels apply to both. The function itself is renamed to `__poll`, which is
/// also the name of a span of `#[instrument]`, unless you set one; inside the function, its name
/// means the constructor. Parameters of generic types get the bounds that they need.
///
/// # On an `async fn` with a mailbox
///
/// One parameter after the context may be an `Inbox<M>` (feature `mailbox`), recognised by that name. It
/// isn't the constructor's: each incarnation borrows the inbox from the supervisor. The constructor
/// returns the spec and the `Address<M>` that sends to it, as `(ChildSpec, Address<M>)`. Messages have to
/// be `Send`. The module `mailbox` has an example.
///
/// Two more keys set the options of the mailbox. Both may use the constructor's parameters.
///
/// | key | value |
/// | --- | --- |
/// | `capacity` | a number of messages, at least 1; by default 1000 |
/// | `mailbox` | a function that takes the `Mailbox<M>` and returns it: a path or a closure |
///
/// Each call of the constructor makes a mailbox. A spec with a mailbox is for one child at a time.
///
/// # On an `async fn` with services
///
/// Any parameter may be a `Service<T>` (feature `service`), recognised by that name. It isn't the
/// constructor's: each incarnation gets the service of type `T` that other children provide, as
/// `Context::watch_service` returns it. The module `service` has an example.
///
/// # On a function that blocks, or whose future isn't `Send`
///
/// With the key `blocking`, the function isn't `async` and takes a
/// [`BlockingContext`](crate::BlockingContext): the child has a thread of its own, as by
/// [`blocking`](crate::blocking()). With the key `local`, the future of the `async fn` needs no `Send`, as by
/// [`local`](crate::local()). Neither takes an `Inbox` or a `Service`.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{BlockingContext, Exit, worker};
///
/// #[worker(blocking)]
/// fn poll(ctx: BlockingContext, device: String) -> Exit {
///     loop {
///         ctx.check()?;
///         println!("reading {device}");
///         ctx.sleep(Duration::from_secs(1));
///     }
/// }
/// # drop(poll("/dev/ttyS0".to_owned()));
/// ```
///
/// An `impl` block with the key `blocking` has a `fn run(&mut self, ctx: &BlockingContext)`, which gets a clone of the
/// value for each incarnation. Such a type is a [`Component`](crate::spec::Component), and not a
/// [`Child`](trait@crate::Child): it has no `activate` and no `deactivate`.
///
/// # On an `async fn` that is called periodically
///
/// With one of these keys, the function is called again and again, as by `every` (feature `periodic`) or `cron`. Its first
/// parameter may be a `RunContext` or a [`Context`](crate::Context), and there is no inbox. The module `periodic` has an
/// example.
///
/// | key | value |
/// | --- | --- |
/// | `every` | the period: a duration |
/// | `cron` | a cron expression: `"30 4 * * *"`. Needs the feature `cron` |
/// | `schedule` | a function that takes the `Every` or `Cron` and returns it, for all other options: a path or a closure |
///
/// # On an `impl` block
///
/// `run`, and `activate` and `deactivate` if they exist, become the methods of the trait. They may
/// leave out the context and the result, and may take `&self`. Other methods stay as they are. A
/// type that reads messages keeps its inbox in a field: make such a child with
/// `child_with_mailbox`.
///
/// ```
/// use verger::{Context, Exit, component, worker};
///
/// #[derive(Clone)]
/// struct Pool {
///     connections: Vec<u32>,
/// }
///
/// #[worker(activation_timeout = "10s", requires = "dns")]
/// impl Pool {
///     fn new() -> Self {
///         Self { connections: Vec::new() }
///     }
///
///     async fn activate(&mut self) -> Exit {
///         self.connections.push(1);
///         Ok(())
///     }
///
///     async fn run(&self, ctx: &Context) {
///         ctx.cancelled().await;
///     }
/// }
///
/// let spec = component("pool", Pool::new());
/// # drop(spec);
/// ```
///
/// # Keys
///
/// The keys of a `#[child]`, and `crate`: see [`#[supervisor]`](macro@supervisor). An `impl` block
/// has no `name`, because a value is named where it becomes a child. Options that are set where the
/// child is added, on the spec or above a field, win. A sibling that a worker `requires` is checked
/// when the tree is built.
///
/// # On a method of that block: handlers of events
///
/// A method with `#[on]` handles events of the type of its parameter, which is an `Arc` (feature `bus`). The handler is
/// registered when the component has been activated, and ends with the incarnation. The module `bus` has an example.
///
/// A handler runs beside `run`, on a clone of the component, so it takes `&self`, and may take `&Context` before
/// the event. It returns what `run` may return. The keys are options of `Bus`:
///
/// | key | value |
/// | --- | --- |
/// | `capacity` | how many events may wait for the handler; by default 64 |
/// | `channel` | the name of a channel: `"orders"` |
/// | `errors_fail_child` | none |
#[doc(inline)]
pub use verger_macros::worker;
