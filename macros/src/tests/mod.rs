//! The expansions, as `cargo expand` shows them, and their errors.

mod book;

use proc_macro2::TokenStream;
use quote::ToTokens;

use crate::errors::Errors;
use crate::keys::{KEYS, Place, Takes};
use crate::parse::Args;
use crate::{supervisor, worker};

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("it is Rust")
}

/// The expansion, formatted.
fn pretty(expansion: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(expansion).expect("a macro writes items"))
}

fn node(args: &str, item: &str) -> String {
    pretty(supervisor::attribute(tokens(args), tokens(item)))
}

fn derived(item: &str) -> String {
    pretty(supervisor::derive(tokens(item)))
}

fn work(args: &str, item: &str) -> String {
    pretty(worker::attribute(tokens(args), tokens(item)))
}

/// Compares with the snapshot of this name, which leaves out the source of the test.
macro_rules! assert_expansion {
    ($expansion:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($expansion) })
    };
}

#[test]
fn a_supervisor() {
    assert_expansion!(node(
        r#"strategy = "rest_for_one", max_restarts = 5, period = "60s",
           backoff(exponential, min = "200ms", max = "30s")"#,
        r#"
        /// Everything.
        #[derive(Debug)]
        pub struct App {
            #[child]
            db: Db,
            #[child(requires = "db", shutdown = "20s")]
            api: Api,
            #[supervisor]
            ingest: Ingest,
            #[dynamic(max_children = 1000, shutdown = "10s")]
            conns: DynamicSupervisor,
            region: String,
        }"#,
    ));
}

#[test]
fn a_worker() {
    assert_expansion!(work(
        r#"restart = "permanent", backoff(linear, base = "2s")"#,
        "/// Fetches.\npub async fn fetcher(ctx: Context, url: Url) -> Exit { go(ctx, url).await }",
    ));
}

#[test]
fn a_derived_supervisor() {
    assert_expansion!(derived(
        r#"
        #[tree(
            name = "root",
            start = "concurrent",
            preset = Preset::otp(),
            max_restarts = self.limit,
            period = "1500ms",
            defaults(restart = "transient", backoff(none)),
            on_child_failure = Self::failed,
            child(shutdown = "infinity", significant, restart = "on_failure"),
            crate = crate::reexport::verger
        )]
        struct App<T: Clone> where T: Send {
            #[child(name = "first", requires = ["type", "last"])]
            prototype: T,
            #[tree]
            last: Last,
            #[child(backoff(exponential, factor = 3, jitter = 0.5))]
            r#type: Type,
            limit: u32,
        }"#,
    ));
}

#[test]
fn a_worker_with_several_arguments_and_none_of_them_the_context() {
    assert_expansion!(work(
        r#"name = "pump-1", shutdown = "brutal_kill", requires = ["a", "b"]"#,
        "#[doc = \"Pumps.\"] #[cfg(unix)] #[instrument]
         pub(crate) async fn pump<S: Source, const N: usize>(mut source: S, _: [u8; N]) {}",
    ));
}

#[test]
fn a_worker_with_a_mailbox() {
    assert_expansion!(work(
        r#"restart = "transient", capacity = 50,
           mailbox = |it| it.overflow(Overflow::DropOldest).max_attempts(3)"#,
        "pub async fn writer(ctx: Context, mut inbox: Inbox<Row>, db: Db) -> Exit {}",
    ));
}

#[test]
fn a_worker_with_a_mailbox_and_nothing_else() {
    assert_expansion!(work(
        "",
        "async fn log(ctx: Context, inbox: verger::mailbox::Inbox<String>) {}"
    ));
}

#[test]
fn a_generic_worker_with_a_mailbox_after_its_arguments() {
    assert_expansion!(work(
        "mailbox = patient",
        "async fn relay<M, S: Sink<M>>(mut sink: S, retries: u32, _: Inbox<M>) {}",
    ));
}

#[test]
fn a_worker_with_services() {
    assert_expansion!(work(
        "",
        "async fn api(ctx: Context, mut pool: Service<Pool>, port: u16, cache: Service<Cache<u8>>) -> Exit {}",
    ));
}

#[test]
fn a_worker_with_a_service_a_mailbox_and_an_argument_and_without_the_context() {
    assert_expansion!(work(
        "",
        "async fn writer<T>(pool: Service<T>, inbox: Inbox<Row>, table: String) -> Exit {}",
    ));
}

#[test]
fn a_worker_that_is_called_periodically() {
    assert_expansion!(work(
        r#"every = "10s", schedule = |it| it.limit_run(LIMIT).fail_after(3), restart = "transient""#,
        "async fn cleanup(run: RunContext, pool: Service<Pool>, folder: PathBuf) -> Exit {}",
    ));
}

#[test]
fn a_worker_with_a_cron_expression() {
    assert_expansion!(work(r#"cron = "30 4 * * *""#, "pub async fn back_up(ctx: Context) {}"));
}

#[test]
fn a_worker_that_is_an_impl_block() {
    assert_expansion!(work(
        r#"activation_timeout = "10s", on_leak = "park""#,
        "impl<T: Clone + Send + 'static> Pool<T> {
             pub fn new() -> Self { Self::default() }
             async fn activate(&mut self) -> Result<(), Refused> { self.connect().await }
             async fn run(&self, ctx: &Context) { ctx.cancelled().await }
         }",
    ));
}

#[test]
fn a_worker_that_handles_events() {
    assert_expansion!(work(
        "",
        r#"impl Indexer {
             async fn activate(&mut self) -> Exit { Ok(()) }
             async fn run(&mut self, ctx: &Context) { ctx.cancelled().await }
             #[on]
             async fn saved(&self, event: Arc<Saved>) -> Exit { Ok(()) }
             #[on(errors_fail_child, capacity = 8, channel = "orders")]
             async fn sold(&self, ctx: &Context, event: Arc<Sold>) {}
         }"#,
    ));
}

#[test]
fn a_supervisor_with_every_policy() {
    assert_expansion!(node(
        r#"preset = Preset::kubelet(), intensity = Intensity::tumbling(5, MINUTE),
           on_exhausted = OnExhausted::Pause(WAIT),
           defaults(consecutive_restarts = 3, failing_for = "10m")"#,
        r#"struct App {
            #[child(
                backoff = Backoff::geometric(SECOND, 8 * SECOND, 3).jitter(Jitter::Full),
                own_restarts(max = 3, period = "10s"), on_exhausted = "park",
                restart_if = [refused, |error: &io::Error| error.kind() == TimedOut],
                failure_log = FailureLog::at(LogLevel::Info),
                fallback = bestsellers()
            )]
            offers: ChildSpec,
            #[child(backoff(constant, delay = "1s", jitter = Jitter::Equal),
                    intensity = self.intensity)]
            stock: ChildSpec,
            #[dynamic(max_restarts = 9, period = "9s", restart = "transient",
                      child(on_exhausted = "stop_child"))]
            carts: DynamicSupervisor,
        }"#,
    ));
}

#[test]
fn a_worker_with_a_configuration() {
    assert_expansion!(work(
        r#"restart_on_change, shutdown = "5s", config = storage::Settings<u8>, start_when_configured,
           validate = check, config_section = "storage""#,
        "async fn writer(ctx: Context) {}",
    ));
}

#[test]
fn a_worker_block_with_a_configuration() {
    assert_expansion!(work(
        "config = Settings, validate = Self::check",
        "impl Writer { async fn run(&mut self) {} }",
    ));
}

#[test]
fn a_supervisor_of_children_with_configurations() {
    assert_expansion!(node(
        "",
        r#"struct App {
            #[child(config = Settings)]
            reader: Reader,
            #[child(config = Settings, config_section = self.section)]
            writer: ChildSpec,
            section: String,
        }"#,
    ));
}

/// Every path begins with the one that `crate = …` names.
#[test]
fn with_another_path_to_verger_no_item_is_taken_from_the_usual_one() {
    let path = "crate = other::path";
    let expansions = [
        node(
            path,
            "struct App { #[child(restart = \"transient\", backoff(none), config = Settings)] a: A, \
                    #[supervisor(on_exhausted = \"park\", shutdown = \"1s\")] b: B, \
                    #[dynamic(backoff(linear, base = \"1s\"), on_leak = \"park\")] c: C }",
        ),
        work(path, "async fn work(ctx: Context) {}"),
        work(path, "async fn work(mut inbox: Inbox<u8>, state: u8) {}"),
        work(path, "impl Work { async fn run(&mut self) {} }"),
    ];
    for expansion in expansions {
        assert!(expansion.contains("other::path::"), "{expansion}");
        assert!(!expansion.contains("verger"), "{expansion}");
    }
}

/// The texts of the errors in an expansion, in order.
fn errors(expansion: &TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expansion.clone()).expect("a macro writes items");
    let macros = file.items.iter().filter_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => {
            Some(item.mac.parse_body::<syn::LitStr>().expect("a text").value())
        }
        _ => None,
    });
    macros.collect()
}

#[test]
fn seed3_13_an_unknown_strategy_or_backoff_is_refused_where_it_is_declared() {
    let item = tokens("struct App {}");
    let strategy = supervisor::attribute(tokens(r#"strategy = "one_for_al""#), item.clone());
    assert_eq!(errors(&strategy), ["unknown strategy `one_for_al`; did you mean `one_for_all`?"]);

    let backoff = supervisor::attribute(tokens("backoff(linar)"), item.clone());
    assert_eq!(errors(&backoff), ["unknown backoff curve `linar`; did you mean `linear`?"]);

    let backoff = supervisor::attribute(tokens("backoff(fibonaci)"), item);
    assert_eq!(
        errors(&backoff),
        [
            "unknown backoff curve `fibonaci`; write `exponential`, `linear`, `constant` or `none`, or an \
          expression like `backoff = Backoff::fibonacci(min, max).reset_after(age)`"
        ],
    );
}

#[test]
fn a_drain_is_a_shutdown_and_excludes_another_one() {
    let spec = work(r#"drain = "10s""#, "async fn tunnel(ctx: Context) {}");
    let drain = ".shutdown(::verger::Shutdown::Drain(::core::time::Duration::from_secs(10)))";
    assert!(spec.replace(char::is_whitespace, "").contains(drain), "{spec}");

    let both = tokens(r#"struct App { #[child(drain = "10s", shutdown = "5s")] tunnel: Tunnel }"#);
    let both = supervisor::attribute(tokens(""), both);
    assert_eq!(errors(&both), ["`drain` sets the same as `shutdown`; remove one of the two"]);
}

#[test]
fn several_mistakes_are_reported_at_once_and_the_struct_keeps_its_methods() {
    let expansion = supervisor::attribute(
        tokens(r#"strategi = "one_for_all", strategy = "x", period = 5"#),
        tokens("struct App { #[child(restart)] db: Db }"),
    );
    assert_eq!(errors(&expansion).len(), 4);
    let methods = pretty(expansion);
    for method in
        ["fn builder(self)", "fn into_child(self)", "fn application(self)", "async fn run(self)"]
    {
        assert!(methods.contains(method), "{methods}");
    }
}

#[test]
fn every_key_is_documented() {
    for key in KEYS {
        assert_documented(DOCS, key.name, &format!("`{}(…)`", key.name));
    }
    // A key of both builders of supervisors is documented for both.
    let (ordered, dynamic) =
        DOCS.split_once("field also has the keys of its builder").expect("both are there");
    let dynamic =
        dynamic.split_once("Above a `#[supervisor]` field").expect("the end of the list").0;
    for (place, docs) in [(Place::Supervisor, ordered), (Place::Dynamic, dynamic)] {
        for key in place.keys().filter(|key| !key.is_of_child()) {
            assert_documented(docs, key.name, &format!("`{}(…)`", key.name));
        }
    }
}

#[test]
fn the_example_of_every_key_is_accepted_where_it_can_be_written() {
    for key in KEYS {
        for place in key.places {
            let mut errors = Errors::default();
            Args::parse(*place, tokens(key.example), &mut errors);
            let errors = errors.to_token_stream().to_string();
            assert_eq!(errors, "", "`{}` of {place:?}", key.example);
        }
    }
}

#[test]
fn every_option_of_a_file_is_a_key() {
    const OPTIONS: &str = include_str!("../../../src/policy/option_table.rs");
    let key = |line: &'static str| line.trim().strip_prefix("key: \"")?.strip_suffix("\",");
    let options: Vec<_> = OPTIONS.lines().filter_map(key).collect();
    assert!(options.contains(&"strategy"), "{options:?}");
    // A child that isn't enabled isn't written in the code at all.
    for option in options.into_iter().filter(|option| *option != "enabled") {
        let is_key = KEYS.iter().any(|key| key.name == option);
        assert!(is_key, "`{option}` is missing in `KEYS` of `macros/src/keys.rs`");
    }
}

#[test]
fn a_duration_is_zero_in_an_attribute_where_it_is_in_a_file() {
    const KEYS_OF_FILES: &str = include_str!("../../../book/src/config-keys.md");
    let rows = KEYS_OF_FILES.lines().filter_map(|line| {
        let mut cells = line.split(" | ");
        let name = cells.next()?.strip_prefix("| `")?.strip_suffix('`')?;
        Some((name, cells.nth(1)?.starts_with("a duration above zero")))
    });
    let mut compared = Vec::new();
    for (name, is_above_zero) in rows {
        for key in KEYS.iter().filter(|key| key.name == name && name != "period") {
            if let Takes::Duration { zero } = key.takes {
                assert_eq!(zero, !is_above_zero, "`{name}` in `macros/src/keys.rs` and in a file");
                compared.push(name);
            }
        }
    }
    let expected = [
        "leak_timeout",
        "stop_deadline",
        "activation_timeout",
        "watchdog",
        "run_time_limit",
        "failing_for",
    ];
    assert!(expected.iter().all(|name| compared.contains(name)), "{compared:?}");
}

#[test]
fn every_word_is_documented() {
    for words in KEYS.iter().filter_map(|key| key.takes.words()) {
        for word in words.words {
            assert_documented(DOCS, word, &format!("`\"{word}\"`"));
        }
    }
}

#[test]
fn every_curve_and_setting_of_a_backoff_is_documented() {
    for curve in crate::keys::CURVES {
        assert_documented(DOCS, curve.name, &format!("`backoff({}", curve.name));
        for setting in Place::Backoff(curve).keys() {
            assert_documented(DOCS, setting.name, "");
        }
    }
}

/// The reference of the attributes.
const DOCS: &str = include_str!("../../../src/macros.rs");

/// Asserts that the reference, or a part of it, mentions a name in backticks, or in another spelling.
fn assert_documented(docs: &str, name: &str, otherwise: &str) {
    let is_documented = docs.contains(&format!("`{name}`"));
    let is_documented = is_documented || !otherwise.is_empty() && docs.contains(otherwise);
    assert!(is_documented, "`{name}` is missing in `src/macros.rs`, in the table of its attribute");
}
