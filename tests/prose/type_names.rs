//! A type that is visible outside of its file has a name that no other such type of the library has.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{assert_none, files, read};

/// The names that several visible types have, sorted, each with their number and the reason.
const SHARED: &[(&str, usize, &str)] = &[
    ("CallError", 2, "public in `bus` and in `resilience`, where users name them with the module"),
    ("Effect", 2, "public in `config`; in `core`, beside `MachineEvent`, and never seen by users"),
    ("Handlers", 2, "of signals, one for each platform"),
    ("Sealed", 3, "the usual name of a trait that keeps another one to this crate"),
];

/// Returns the name of the visible type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(restricted) => restricted.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.strip_prefix(' ')?.split(' ').skip_while(|word| *word == "unsafe");
    if !["struct", "enum", "trait", "union", "type"].contains(&words.next()?) {
        return None;
    }
    words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// A source file without its test modules: the lines, and the modules in other files that are compiled for tests only.
fn without_tests(source: &str) -> (Vec<(usize, &str)>, Vec<&str>) {
    let (mut lines, mut modules) = (Vec::new(), Vec::new());
    let mut numbered = (1..).zip(source.lines()).peekable();
    while let Some((number, line)) = numbered.next() {
        let attribute = line.trim_start();
        if !attribute.starts_with("#[cfg(test)]") && !attribute.starts_with("#[cfg(all(test,") {
            lines.push((number, line));
            continue;
        }
        // The item that it is about, behind further attributes.
        let Some((_, item)) =
            numbered.by_ref().find(|(_, it)| !it.trim_start().starts_with(['#', '/']))
        else {
            break;
        };
        let module = item.split_once("mod ").and_then(|(_, it)| it.strip_suffix(';'));
        modules.extend(module);
        if item.ends_with('{') {
            let end = &line[..line.len() - attribute.len()];
            let is_end = |line: &str| line.strip_prefix(end).is_some_and(|it| it.starts_with('}'));
            numbered.by_ref().find(|(_, line)| is_end(line));
        }
    }
    (lines, modules)
}

/// Returns the places where each visible type is defined, by its name.
fn definitions(sources: &[(String, String)]) -> BTreeMap<&str, Vec<String>> {
    let mut tests = BTreeSet::new();
    let mut found: Vec<(&str, &str, usize)> = Vec::new();
    for (path, source) in sources {
        let (lines, modules) = without_tests(source);
        let (folder, name) = path.rsplit_once('/').expect("the folder of the sources");
        let folder = match name.trim_end_matches(".rs") {
            "mod" | "lib" => folder.to_owned(),
            name => format!("{folder}/{name}"),
        };
        tests.extend(modules.iter().map(|module| format!("{folder}/{module}")));
        let names = lines.iter().filter_map(|(line, text)| Some((*line, defined(text)?)));
        found.extend(names.map(|(line, name)| (&path[..], name, line)));
    }
    let is_test = |path: &str| {
        path.contains("/tests/")
            || tests.iter().any(|module| {
                path.strip_prefix(module.as_str()).is_some_and(|it| it.starts_with(['.', '/']))
            })
    };
    let mut by_name = BTreeMap::<_, Vec<_>>::new();
    for (path, name, line) in found.into_iter().filter(|(path, ..)| !is_test(path)) {
        by_name.entry(name).or_default().push(format!("{path}:{line}"));
    }
    by_name
}

/// Returns the names that are defined more than once, unless an exception allows for just as many, and the exceptions that are none.
fn problems(sources: &[(String, String)], shared: &[(&str, usize, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let definitions = definitions(sources);
    for (name, places) in definitions.iter().filter(|(_, places)| places.len() > 1) {
        let allowed = shared.iter().find(|(shared, ..)| shared == name).map_or(1, |it| it.1);
        let (last, others) = places.split_last().expect("more than one");
        if places.len() > allowed {
            problems.push(format!(
                "{last}: `{name}` is also a type at {}; give one of them a name that says which \
                 it is, or say why not in `SHARED` of tests/prose/type_names.rs",
                others.join(", "),
            ));
        }
    }
    for (name, allowed, _) in shared {
        let count = definitions.get(name).map_or(0, Vec::len);
        if count < *allowed {
            let remedy = if count < 2 { "remove it from" } else { "lower its number in" };
            problems.push(format!(
                "tests/prose/type_names.rs: types called `{name}`: {count}, not {allowed}; {remedy} `SHARED`"
            ));
        }
    }
    problems
}

#[test]
fn each_visible_type_has_a_name_that_no_other_has() {
    let sources: Vec<_> =
        files("src", &["rs"]).into_iter().map(|path| (path.clone(), read(&path))).collect();
    assert_none(&problems(&sources, SHARED));
    assert!(SHARED.is_sorted(), "sort `SHARED`");
    let unreasoned = SHARED.iter().find(|(.., reason)| reason.is_empty());
    assert_eq!(unreasoned, None);
}

#[test]
fn a_second_type_of_a_name_is_found_unless_it_is_private_or_for_tests() {
    let source = |path: &str, text: &str| (format!("src/{path}"), text.to_owned());
    let sources = [
        source("a.rs", "pub(crate) struct Twice<'a> {}\nstruct Private;\n    pub enum Once {}\n"),
        source(
            "b/mod.rs",
            "pub(in crate::b) trait Twice {}\nstruct Private;\n#[cfg(test)]\n#[path = \"x\"]\nmod fakes;\n\
             #[cfg(test)]\nmod tests {\n    mod inner {\n    }\n    pub struct Once;\n}\npub fn once() {}\n",
        ),
        source("b/fakes.rs", "pub struct Once;\n"),
        source("b/tests/mod.rs", "pub struct Once;\n"),
    ];
    let found = problems(&sources, &[("Once", 2, "it was")]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("src/b/mod.rs:1: `Twice` is also a type at src/a.rs:1; "),
        "{}",
        found[0]
    );
    assert!(found[1].ends_with("called `Once`: 1, not 2; remove it from `SHARED`"), "{}", found[1]);
    assert_eq!(problems(&sources, &[("Twice", 2, "two parts of one thing")]), [""; 0]);
    let found = problems(&sources, &[("Twice", 3, "three parts")]);
    assert!(
        found[0].ends_with("called `Twice`: 2, not 3; lower its number in `SHARED`"),
        "{}",
        found[0]
    );
}
