//! Compiles programs with mistakes, many in one crate, because loading the library takes longer than reading one of them.
//!
//! 1. A crate with an error in one phase (expansion, names, types, borrows) doesn't reach the next phase. So the programs
//!    without a message are compiled again, without the others, until all have one or none of them gets one.
//! 2. A message belongs to the program in which it points at something, possibly from the inside of a macro.
//! 3. If a message shows that its program isn't alone, the program is compiled once more, as the whole crate.
//! 4. The messages of a program stay in the compiler's order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs};

use serde_json::Value;

/// The messages about each program, by its path from the root of the package. A program that compiles isn't in it.
pub(crate) type Messages = BTreeMap<PathBuf, Vec<String>>;

/// The file that `programs.rs` includes. Beside it, so that paths in messages don't depend on the machine.
static LIST: Mutex<&str> = Mutex::new("tests/ui/listed.rs");

pub(crate) fn compile(programs: &[PathBuf]) -> Messages {
    let mut rejected = compile_until_accepted(programs);
    for (program, messages) in &mut rejected {
        if messages.iter().any(|message| shows_others(message)) {
            *messages = compile_crate(std::slice::from_ref(program), as_crate(program))
                .remove(program)
                .unwrap_or_default();
        }
    }
    rejected
}

fn compile_until_accepted(programs: &[PathBuf]) -> Messages {
    let mut rejected = BTreeMap::new();
    let mut left = programs.to_vec();
    while !left.is_empty() {
        let messages = compile_crate(&left, as_modules(&left));
        if messages.is_empty() {
            break;
        }
        left.retain(|program| !messages.contains_key(program));
        rejected.extend(messages);
    }
    rejected
}

const MODULE: &str = "program_";

fn as_modules(programs: &[PathBuf]) -> String {
    let modules = programs.iter().enumerate().map(|(index, program)| {
        format!("#[path = {:?}]\nmod {MODULE}{index};\n", program.strip_prefix("tests/ui").unwrap())
    });
    modules.collect()
}

fn as_crate(program: &Path) -> String {
    format!("include!({:?});\n", program.strip_prefix("tests/ui").unwrap())
}

/// Another program of the same crate makes a name ambiguous, or implements a trait that is missing here.
fn shows_others(message: &str) -> bool {
    message.contains(MODULE) || message.contains("other types implement")
}

/// The messages about `programs`, which are in a crate with the items of `list`.
fn compile_crate(programs: &[PathBuf], list: String) -> Messages {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = LIST.lock().unwrap();
    fs::write(root.join(*file), list).unwrap();
    let output = Command::new(env::var_os("CARGO").unwrap())
        .current_dir(root)
        .args([
            "test",
            "--no-run",
            "--offline",
            "--test",
            "ui_programs",
            "--message-format",
            "json",
        ])
        .args(selection())
        .output()
        .unwrap();
    let mut found = Messages::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let message = &line["message"];
        if line["target"]["name"] != "ui_programs"
            || message["spans"].as_array().is_none_or(Vec::is_empty)
        {
            // Not a message, or one about the whole crate, such as the number of errors.
            continue;
        }
        let text = message["rendered"].as_str().unwrap();
        let program = programs.iter().find(|program| points_into(message, program));
        found
            .entry(program.unwrap_or_else(|| panic!("about no program: {text}")).clone())
            .or_default()
            .push(text.to_owned());
    }
    let failed_elsewhere = found.is_empty() && !output.status.success();
    assert!(
        !failed_elsewhere,
        "no program was compiled:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    found
}

/// Whether a message, or a note of it, has a span in `file`, or one in the expansion of a macro that is called there.
fn points_into(message: &Value, file: &Path) -> bool {
    fn span_is_in(span: &Value, file: &Path) -> bool {
        span["file_name"].as_str().is_some_and(|name| Path::new(name) == file)
            || span.get("expansion").is_some_and(|expansion| span_is_in(&expansion["span"], file))
    }
    let mut spans = message["spans"].as_array().into_iter().flatten();
    let mut children = message["children"].as_array().into_iter().flatten();
    spans.any(|span| span_is_in(span, file)) || children.any(|child| points_into(child, file))
}

pub(crate) fn has_every_feature() -> bool {
    features().iter().all(Option::is_some)
}

/// The selection of the command that built this test, so that nothing has to be built again.
fn selection() -> Vec<String> {
    if has_every_feature() {
        return vec!["--workspace".into(), "--all-features".into()];
    }
    let enabled: Vec<_> = features().into_iter().flatten().collect();
    vec!["--no-default-features".into(), "--features".into(), enabled.join(",")]
}

fn features() -> Vec<Option<&'static str>> {
    macro_rules! enabled {
        ($($feature:literal)*) => {
            vec![$(cfg!(feature = $feature).then_some($feature)),*]
        };
    }
    enabled!(
        "macros" "signal" "serde" "mailbox" "bus" "task" "service" "periodic" "resilience" "json" "config" "config-file"
        "health" "log-lines" "cron" "metrics" "lease" "process" "console" "systemd" "testing"
    )
}
