//! The macros, which are made elsewhere, and documented here, where what they write is known.

/// Makes a struct a supervisor, whose fields are its children.
///
/// The struct gets three methods, as visible as itself:
///
/// * `builder(self)`, a [`SupervisorBuilder`](crate::SupervisorBuilder), to go on by hand,
/// * `into_child(self)`, a [`ChildSpec`](crate::ChildSpec), for another supervisor; also by `From`,
/// * `run(self)`, which builds the tree and runs it until it ends.
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
/// | `#[child]` | a [`Component`](crate::Component): a [`Child`](trait@crate::Child) that is `Clone` and `Sync`, cloned for each incarnation; or a [`ChildSpec`](crate::ChildSpec), such as the constructor of a [`#[worker]`](macro@worker) function returns |
/// | `#[supervisor]` | another annotated struct, or anything else that is `Into<ChildSpec>`, such as a builder |
/// | `#[dynamic]` | [`DynamicSupervisor`](crate::DynamicSupervisor) |
/// | none | any: data of the struct, which keys may use, as in `max_restarts = self.limit` |
///
/// Children start in the order of the fields. A field that has a `cfg` is a child only where that
/// holds. A child is called like its field, the root like the struct, in snake case. Type
/// parameters may have any bounds, and get those that the fields need; there can be no lifetime
/// parameters, since children outlive whoever starts them.
///
/// # Keys
///
/// Words and durations stand in quotes and are checked when the program is compiled; instead of
/// one there may be an expression of the type that the method takes. It may use the data of the
/// struct, which is moved out of it: what is needed twice is written `self.x.clone()`. What isn't
/// set is as in the builder.
///
/// Of the struct, each as the method of [`SupervisorBuilder`](crate::SupervisorBuilder) of the same
/// name unless something else is said:
///
/// | key | |
/// | --- | --- |
/// | `strategy` | `"one_for_one"`, `"one_for_all"`, `"rest_for_one"` |
/// | `max_restarts`, `period` | a number and a duration, both or none: `restarts` |
/// | `intensity(…)` | another kind of window, see below |
/// | `unlimited_restarts` | stands alone |
/// | `auto_shutdown` | `"never"`, `"any_significant"`, `"all_significant"` |
/// | `start` | `"sequential"`, `"concurrent"` |
/// | `first_start` | `"retry"`, `"fail"` |
/// | `on_exhausted` | `"escalate"`, `"park"`, `"stop_child"`; or `on_exhausted(pause = "15s")`, `on_exhausted(exit = 3)` |
/// | `on_child_failure` | a function, also an async one or one of the struct's own: `Self::failed` |
/// | `leak_timeout`, `stop_deadline` | a duration |
/// | `preset` | one of [`Preset`](crate::Preset) by its name: `"otp"`, `"elixir"`, `"actor_ts"`, `"pekko_on_stop"`, `"pekko_on_failure"`, `"pekko_typed"`, `"xebia"`, `"signalpy"`, `"elfo"`, `"suture"`, `"oversight"`, `"systemd"`, `"kubelet"`, `"pebble"` |
/// | `defaults(…)` | what children get that don't say otherwise: `restart`, `shutdown`, `backoff`, `activation_timeout`, `on_leak`, `failure_log`, `retry_after`, `policy`, and limits of their own: `max_restarts` and `period`, `intensity(…)`, `consecutive_restarts`, `failing_for`, `on_exhausted` |
/// | `backoff(…)` | short for `defaults(backoff(…))` |
/// | `child(…)` | how it is treated by a supervisor above: any key of a child |
/// | `name` | what it is called if it is the root, or made a child by hand |
/// | `crate` | the path to verger, if it isn't `::verger` |
///
/// Of a `#[child]`, a `#[supervisor]` field and a `#[dynamic]` one, as the methods of
/// [`ChildSpec`](crate::ChildSpec). They win over what the type says itself.
///
/// | key | |
/// | --- | --- |
/// | `name` | instead of the field's |
/// | `restart` | `"permanent"` (`"always"`), `"transient"` (`"on_failure"`), `"temporary"` (`"never"`, `"no"`), `"on_stop"`, `"on_success"`, `"on_abnormal"`, `"on_abort"`, `"on_watchdog"` |
/// | `shutdown` | a duration, `"brutal_kill"`, `"infinity"` |
/// | `backoff(…)` | see below |
/// | `significant` | stands alone |
/// | `requires` | a sibling, or several: `["db", "cache"]` |
/// | `readiness` | `"on_start"`, `"signal"` |
/// | `activation_timeout` | a duration |
/// | `on_leak` | `"restart"`, `"park"` |
/// | `restart_if`, `stop_if` | a function of an error, or several in brackets: `restart_if = [refused, \|error: &Slow\| error.often]` |
/// | `retry_after` | a function of an error that says how long to wait, or several |
/// | `max_restarts`, `period` | how often this child alone may be restarted: `restarts` |
/// | `intensity(…)` | the same with another kind of window, see below |
/// | `consecutive_restarts` | a number |
/// | `failing_for` | a duration |
/// | `on_exhausted` | as above, for this child |
/// | `fallback` | a child spec, such as the constructor of a worker function returns: `fallback = bestsellers()` |
/// | `policy` | a [`RestartPolicy`](crate::RestartPolicy): an expression, such as a field that was read from a file |
/// | `health_check` | a [`HealthCheck`](crate::HealthCheck): an expression |
/// | `failure_log` | `"trace"`, `"debug"`, `"info"`, `"warn"`, `"error"`; or `failure_log(level = "info", critical = "error", after = 3)` |
///
/// A `#[dynamic]` field has those of a builder as well: `max_children`, `max_restarts` and
/// `period`, `intensity(…)`, `unlimited_restarts`, `on_exhausted`, `on_child_failure`,
/// `leak_timeout`, `stop_deadline`, `preset`, `defaults(…)`. Where a key is one of both, it is the
/// builder's; how often the dynamic supervisor itself may be restarted stands in `child(…)`. Above a
/// `#[supervisor]` field all keys are about that supervisor as a child; what concerns its own
/// children stands above its struct.
///
/// A [`Backoff`](crate::Backoff) is written as its curve and what belongs to that, or as an
/// expression: `backoff = Backoff::default()`.
///
/// | curve | |
/// | --- | --- |
/// | `backoff(exponential)` | `min` (200 ms), `max` (30 s), `factor` (2), `compounding` |
/// | `backoff(linear, base = "2s")` | `base`, `step` (the same as `base`), `max` (30 s) |
/// | `backoff(constant, delay = "5s")` | `delay` |
/// | `backoff(geometric, steps = 5)` | `min` (200 ms), `max` (30 s), `steps` |
/// | `backoff(fibonacci)` | `min` (200 ms), `max` (30 s) |
/// | `backoff(binary_slots, slot = "100ms")` | `slot`, `ceiling` (10), `stay_at_ceiling` |
/// | `backoff(none)` | |
///
/// Any of these may follow, in any order; after `none`, only the last two rows:
///
/// | setting | |
/// | --- | --- |
/// | `jitter` | a fraction, `"none"`, `"full"`, `"equal"`; or `jitter(symmetric = 0.2)`, `jitter(additive = 0.2)`, `jitter(additive_abs = "1s")` |
/// | `cap` | a duration |
/// | `jitter_before_cap`, `soft_cap`, `hard_floor`, `first_at_once`, `at_once_after_reset` | stand alone |
/// | `reset` | `"never"`, `"by_hand"`, `"on_ready"`, `"on_ack"`, or several: `["on_ready", "on_ack"]` |
/// | `reset_after`, `half_life` | a duration |
///
/// An [`Intensity`](crate::Intensity) is written as its kind and what belongs to that, or as an
/// expression:
///
/// | kind | |
/// | --- | --- |
/// | `intensity(sliding, max = 5, period = "60s")` | the same as `max_restarts` and `period` |
/// | `intensity(tumbling, max = 5, period = "60s")` | |
/// | `intensity(decaying, max = 5.0, half_life = "30s")` | `max` need not be whole |
#[doc(inline)]
pub use verger_macros::supervisor;

/// Makes a struct a supervisor, like [`#[supervisor]`](macro@supervisor), and leaves the struct as
/// it is.
///
/// The keys and the methods are the same. The attributes are called `#[tree(…)]` above the struct
/// and above a field that is a supervisor, `#[child(…)]` and `#[dynamic(…)]`.
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
/// What is left has the function's name, its documentation and its visibility, and returns a
/// [`ChildSpec`](crate::ChildSpec) of that name. Its first parameter, if it is a
/// [`Context`](crate::Context), is what each incarnation gets from its supervisor. The others are
/// the constructor's, and are cloned for each incarnation: they have to be `Clone + Send + Sync`.
/// The function may return what any worker may: see [`Outcome`](crate::Outcome).
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
/// Attributes of the function stay with it, except for `cfg`, `deprecated` and `must_use`, which
/// concern the constructor; levels of lints concern both. Within the function, its name means the
/// constructor, as elsewhere, and the function itself is called `__poll`, which is what a span of
/// `#[instrument]` is called unless it is given a name. Parameters whose types depend on type
/// parameters get the bounds that they need.
///
/// # On an `async fn` with a mailbox
///
/// One of the parameters may be an [`Inbox<M>`](crate::Inbox), at any place but before the context;
/// it is recognised by that name, also as `verger::Inbox<M>`. It is not the constructor's: each
/// incarnation is lent it. The constructor returns the spec and the [`Address<M>`](crate::Address)
/// that sends to it, `(ChildSpec, Address<M>)`. Messages have to be `Send`.
///
/// ```
/// use verger::{Exit, Inbox, Overflow, Supervisor, worker};
///
/// #[worker(capacity = 50, mailbox = |it| it.overflow(Overflow::DropOldest).max_attempts(3))]
/// async fn greeter(mut inbox: Inbox<String>, greeting: &'static str) -> Exit {
///     while let Some(name) = inbox.recv().await {
///         println!("{greeting}, {name}");
///     }
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (greeter, address) = greeter("hello");
/// let app = Supervisor::builder("app").child(greeter).build()?.start().await?;
/// address.send("world".to_owned()).await?;
/// # assert_eq!(address.capacity(), 50);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// Two more keys say what its mailbox is like. Both may use the constructor's parameters.
///
/// | key | |
/// | --- | --- |
/// | `capacity` | a number of messages, at least 1; without it, 1000 |
/// | `mailbox` | a function of the [`Mailbox<M>`](crate::Mailbox) that returns it: a path to one, or a closure, as above |
///
/// There is one mailbox for each call of the constructor, and a spec with a mailbox is for one
/// child at a time.
///
/// # On an `impl` block
///
/// `run`, and `activate` and `deactivate` if they are there, become those of the trait. They may
/// leave out the context and the result, and may take `&self`. Other methods stay what they are.
/// They get no inbox: such a value has it in a field, and becomes a child by
/// [`child_with_mailbox`](crate::child_with_mailbox).
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
/// Those of a `#[child]` and `crate`: see [`#[supervisor]`](macro@supervisor). Above an `impl`
/// block there is no `name`, because a value is named where it becomes a child. What is set where
/// the child is added, on the spec or above a field, wins. Whether there is a sibling that a worker
/// `requires` is checked above a field by the macro; here it is when the tree is built.
#[doc(inline)]
pub use verger_macros::worker;
