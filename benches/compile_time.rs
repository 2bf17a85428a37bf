//! How long a tree takes to compile, written with the macros and by builder.
//!
//! Both programs are written from one description; that they have the same children is checked, in
//! the sources and in the running trees. Time is counted twice, by the clock and as what the
//! processors worked: the second says more where other programs run as well.

#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

#[path = "measure/package.rs"]
mod package;

use std::env;
use std::fmt::Write as _;
use std::time::Duration;

use self::package::{Package, machine, processor_time, spread};

const ROUNDS: usize = 15;

/// The programs, in the order of the table.
const PROGRAMS: [&str; 3] = ["empty", "by_builder", "by_macro"];

fn main() {
    if !env::args().any(|arg| arg == "--bench") {
        println!("nothing to test; `cargo bench --bench compile_time` measures");
        return;
    }
    let tree = tree();
    let (by_builder, by_macro) = (Source::by_builder(&tree), Source::by_macro(&tree));
    let project = Project::create(["fn main() {}\n", &by_builder.text, &by_macro.text]);

    println!("{}, not incremental, {ROUNDS} rounds", machine());
    for (name, source) in [("by builder", &by_builder), ("by macro", &by_macro)] {
        println!("{name}: {} children in {} lines", source.children, source.text.lines().count());
    }
    if by_builder.children != by_macro.children {
        println!("THE TREES DIFFER in their number of children, so the times say nothing");
    }

    println!("\n{:<12} {:>16} {:>16} {:>16}   ratio", "", "empty", "by builder", "by macro");
    for command in ["check", "build"] {
        let [clock, processors] = Times::measure(&project, command);
        println!("{}", clock.row(&format!("cargo {command}")));
        if !processor_time().is_zero() {
            println!("{}", processors.row("  processors"));
        }
    }
    println!("\nSeconds and ratios (macro to builder, by round) are min–median–max.");

    let running = ["by_builder", "by_macro"].map(|program| project.children(program));
    let numbers = running.each_ref().map(|children| children.lines().count());
    assert_eq!(running[0], running[1], "THE TREES DIFFER when they run, so the times say nothing");
    assert_eq!(numbers, [by_builder.children, by_macro.children], "the sources are miscounted");
    println!("Both were run: the same {} children by name, kind and restart type.", numbers[0]);
}

// --- The tree --------------------------------------------------------------------------------

/// A supervisor, with what is below it.
struct Group {
    name: String,
    children: Vec<Child>,
}

enum Child {
    /// A worker that is an `async fn`.
    Function(String),
    /// A worker that is an `impl` block.
    Type(String),
    Dynamic(String),
    Group(Group),
}

impl Child {
    fn name(&self) -> &str {
        match self {
            Self::Function(name) | Self::Type(name) | Self::Dynamic(name) => name,
            Self::Group(group) => &group.name,
        }
    }
}

/// Three levels of supervisors, and 30 children: six of the root, four in each of three lines, and
/// four in each line's cell.
fn tree() -> Group {
    let mut children = workers("gate", 2);
    children.push(Child::Dynamic("conns".to_owned()));
    children.extend((1..=3).map(|line| {
        let cell = format!("cell_{line}");
        let cell = Group { children: workers(&cell, 4), name: cell };
        let name = format!("line_{line}");
        let mut children = workers(&name, 3);
        children.push(Child::Group(cell));
        Child::Group(Group { name, children })
    }));
    Group { name: "plant".to_owned(), children }
}

fn workers(prefix: &str, count: usize) -> Vec<Child> {
    let workers = (1..=count).map(|number| match number % 2 {
        0 => Child::Type(format!("{prefix}_type_{number}")),
        _ => Child::Function(format!("{prefix}_function_{number}")),
    });
    workers.collect()
}

// --- The sources -----------------------------------------------------------------------------

#[derive(Default)]
struct Source {
    text: String,
    /// How many children were written.
    children: usize,
}

impl Source {
    fn by_builder(tree: &Group) -> Self {
        let mut source = Self::default();
        source.push(BUILDER_HEAD);
        source.builder(tree);
        source.push(&MAIN.replace("TREE", &format!("{}()", tree.name)));
        source
    }

    fn by_macro(tree: &Group) -> Self {
        let mut source = Self::default();
        source.push(MACRO_HEAD);
        source.nodes(tree);
        let tree = format!("{}.builder()", value(tree));
        source.push(&MAIN.replace("TREE", &tree));
        source
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// A function that builds the group, and what it needs.
    fn builder(&mut self, group: &Group) {
        let mut body = format!("{BUILDER}(\"{}\"){BUILDER_OPTIONS}", group.name);
        let mut before = None;
        for child in &group.children {
            let name = child.name();
            let requires =
                before.map_or(String::new(), |before| format!(".requires(\"{before}\")"));
            let spec = match child {
                Child::Function(_) => {
                    self.push(&BUILDER_FUNCTION.replace("NAME", name));
                    format!("{name}_spec(Duration::from_secs(1)){SPEC_OPTIONS}{requires}")
                }
                Child::Type(_) => {
                    let ty = camel(name);
                    self.push(&BUILDER_TYPE.replace("NAME", &ty));
                    format!("component(\"{name}\", {}){SPEC_OPTIONS}{requires}", prototype(name))
                }
                Child::Dynamic(_) => format!("{DYNAMIC}(\"{name}\").max_children(1000)"),
                Child::Group(group) => {
                    self.builder(group);
                    format!("{name}().into_child(){requires}")
                }
            };
            let _ = write!(body, "\n        .child({spec})");
            self.children += 1;
            before = Some(name);
        }
        let _ =
            write!(self.text, "\nfn {}() -> SupervisorBuilder {{\n    {body}\n}}\n", group.name);
    }

    /// A struct that is the group, and what it needs.
    fn nodes(&mut self, group: &Group) {
        let mut fields = String::new();
        let mut before = None;
        for child in &group.children {
            let name = child.name();
            let requires = before.map(|before| format!("requires = \"{before}\""));
            let options = |own: &str| {
                let own = Some(own.to_owned()).filter(|own| !own.is_empty());
                let options: Vec<_> = own.into_iter().chain(requires.clone()).collect();
                if options.is_empty() { String::new() } else { format!("({})", options.join(", ")) }
            };
            let (attribute, ty) = match child {
                Child::Function(_) => {
                    self.push(&MACRO_FUNCTION.replace("NAME", name));
                    (format!("child{}", options(FIELD_OPTIONS)), "ChildSpec".to_owned())
                }
                Child::Type(_) => {
                    let ty = camel(name);
                    self.push(&MACRO_TYPE.replace("NAME", &ty));
                    (format!("child{}", options(FIELD_OPTIONS)), ty)
                }
                Child::Dynamic(_) => {
                    ("dynamic(max_children = 1000)".to_owned(), "DynamicSupervisor".to_owned())
                }
                Child::Group(group) => {
                    self.nodes(group);
                    (format!("supervisor{}", options("")), camel(name))
                }
            };
            let _ = write!(fields, "    #[{attribute}]\n    {name}: {ty},\n");
            self.children += 1;
            before = Some(name);
        }
        let name = camel(&group.name);
        let _ = write!(self.text, "\n{MACRO_OPTIONS}\nstruct {name} {{\n{fields}}}\n");
    }
}

/// The value of a group's struct.
fn value(group: &Group) -> String {
    let fields = group.children.iter().map(|child| {
        let name = child.name();
        match child {
            Child::Function(_) => format!("{name}: {name}(Duration::from_secs(1))"),
            Child::Type(_) => format!("{name}: {}", prototype(name)),
            Child::Dynamic(_) => format!("{name}: DynamicSupervisor"),
            Child::Group(group) => format!("{name}: {}", value(group)),
        }
    });
    let fields: Vec<_> = fields.collect();
    format!("{} {{ {} }}", camel(&group.name), fields.join(", "))
}

fn prototype(name: &str) -> String {
    format!("{} {{ url: \"db:5432\".to_owned() }}", camel(name))
}

/// `cell_1` is `Cell1`.
fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    words.collect()
}

/// Starts the tree, writes down what is in it, and stops it.
const MAIN: &str = r#"
fn print(node: &verger::Node) {
    for child in &node.children {
        println!("{} {:?} {:?}", child.child.path, child.child.kind, child.child.restart);
        print(child);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let handle = TREE.build()?.start().await?;
    print(&handle.status().await?.root);
    handle.stop("all children are counted").await?;
    Ok(())
}
"#;

const BUILDER_HEAD: &str = "use std::time::Duration;

use verger::{
    Backoff, Child, ChildSpec, Context, DynamicSupervisor, Exit, RestartType, Strategy, Supervisor,
    SupervisorBuilder, async_trait, component, worker_with,
};
";

const BUILDER: &str = "Supervisor::builder";

const DYNAMIC: &str = "DynamicSupervisor::builder";

const BUILDER_OPTIONS: &str = "
        .strategy(Strategy::RestForOne)
        .restarts(3, Duration::from_secs(10))
        .defaults(|child| {
            let (min, max) = (Duration::from_millis(100), Duration::from_secs(5));
            child.backoff(Backoff::exponential(min, max))
        })";

const SPEC_OPTIONS: &str =
    ".shutdown(Duration::from_secs(2)).activation_timeout(Duration::from_secs(10))";

const BUILDER_FUNCTION: &str = "
async fn NAME(ctx: Context, every: Duration) -> Exit {
    while ctx.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {}
    Ok(())
}

fn NAME_spec(every: Duration) -> ChildSpec {
    let base = Duration::from_secs(1);
    let backoff = Backoff::linear(base, base, Duration::from_secs(30));
    worker_with(\"NAME\", every, NAME).restart(RestartType::Transient).backoff(backoff)
}
";

const BUILDER_TYPE: &str = "
#[derive(Clone)]
struct NAME {
    url: String,
}

#[async_trait]
impl Child for NAME {
    fn child_spec(spec: ChildSpec) -> ChildSpec {
        spec.restart(RestartType::Permanent)
    }

    async fn activate(&mut self, ctx: &Context) -> Exit {
        ctx.set_status(self.url.as_str());
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}
";

const MACRO_HEAD: &str = "use std::time::Duration;

use verger::{ChildSpec, Context, DynamicSupervisor, Exit, supervisor, worker};
";

const MACRO_OPTIONS: &str = r#"#[supervisor(
    strategy = "rest_for_one",
    max_restarts = 3,
    period = "10s",
    backoff(exponential, min = "100ms", max = "5s")
)]"#;

const FIELD_OPTIONS: &str = r#"shutdown = "2s", activation_timeout = "10s""#;

const MACRO_FUNCTION: &str = r#"
#[worker(restart = "transient", backoff(linear, base = "1s"))]
async fn NAME(ctx: Context, every: Duration) -> Exit {
    while ctx.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {}
    Ok(())
}
"#;

const MACRO_TYPE: &str = r#"
#[derive(Clone)]
struct NAME {
    url: String,
}

#[worker(restart = "permanent")]
impl NAME {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        ctx.set_status(self.url.as_str());
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}
"#;

// --- Measuring -------------------------------------------------------------------------------

/// A package with a binary for each program.
struct Project {
    package: Package,
    sources: [String; 3],
}

impl Project {
    fn create(sources: [&str; 3]) -> Self {
        let manifest = format!(
            "[dependencies]\nverger = {{ path = {:?} }}\n\
             tokio = {{ version = \"1\", features = [\"macros\", \"rt\", \"time\"] }}\n",
            env!("CARGO_MANIFEST_DIR"),
        );
        let package = Package::create("compile-time", &manifest);
        let project = Self { package, sources: sources.map(str::to_owned) };
        for program in 0..PROGRAMS.len() {
            project.touch(program);
        }
        project
    }

    fn touch(&self, program: usize) {
        let file = format!("src/bin/{}.rs", PROGRAMS[program]);
        self.package.write(&file, &self.sources[program]);
    }

    /// How long it takes to compile a program whose source was touched, by the clock and in
    /// processor time.
    fn time(&self, command: &str, program: usize) -> [Duration; 2] {
        self.touch(program);
        let (output, took) = self.package.time(&[command, "--bin", PROGRAMS[program]]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let units = told.lines().filter(|line| line.contains("ing ") && line.contains(" v"));
        let units: Vec<_> = units.collect();
        let only = units.len() == 1 && units[0].contains("compile-time v0.0.0");
        assert!(only && !told.contains("warning"), "cargo had something else to do:\n{told}");
        took
    }

    /// The children of a tree that runs, as the program tells them.
    fn children(&self, program: &str) -> String {
        let output = self.package.cargo(&["run", "--bin", program]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// In seconds, a list for each program.
#[derive(Default)]
struct Times([Vec<f64>; 3]);

impl Times {
    /// By the clock, and of the processors.
    fn measure(project: &Project, command: &str) -> [Self; 2] {
        // The dependencies, and whatever else only the first time costs.
        for program in PROGRAMS {
            project.package.cargo(&[command, "--bin", program]);
        }
        let mut times = [Self::default(), Self::default()];
        for round in 0..ROUNDS {
            // There and back, so that none is always the first.
            let mut order = [0, 1, 2];
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                for (times, took) in times.iter_mut().zip(project.time(command, program)) {
                    times.0[program].push(took.as_secs_f64());
                }
            }
        }
        times
    }

    fn row(&self, what: &str) -> String {
        let [empty, by_builder, by_macro] = &self.0;
        let ratios =
            by_macro.iter().zip(by_builder).map(|(by_macro, by_builder)| by_macro / by_builder);
        format!(
            "{:<12} {:>16} {:>16} {:>16}   {}",
            what,
            spread(empty.iter().copied()),
            spread(by_builder.iter().copied()),
            spread(by_macro.iter().copied()),
            spread(ratios),
        )
    }
}
