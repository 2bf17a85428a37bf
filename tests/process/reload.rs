//! Whole programs that read their configuration from a file, and again at a signal.

#![cfg(all(unix, feature = "signal", feature = "config-file"))]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde::Deserialize;
use verger::config::ChildConfig;
use verger::{Application, Context, Exit, worker};

use crate::programs::{Program, app};

/// The file, and whether it is only checked.
const FILE: &str = "VERGER_TEST_FILE";
const CHECK: &str = "VERGER_TEST_CHECK";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    batch: u32,
}

// --- The program ---------------------------------------------------------------------------------

/// A child that prints its configuration whenever it is sent.
pub(crate) async fn reloading() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter("verger::config=info")
        .with_writer(std::io::stderr)
        .without_time()
        .with_ansi(false)
        .init();
    let writer = worker("writer", async |ctx: Context| -> Exit {
        let mut config = ctx.config::<Settings>()?;
        loop {
            eprintln!("#{} batch {}", ctx.incarnation(), config.get().batch);
            tokio::select! {
                () = config.changed() => {}
                () = ctx.cancelled() => return Ok(()),
            }
        }
    });
    let config = ChildConfig::<Settings>::new().validate(async |new| -> Exit {
        if new.batch == 13 { Err("unlucky".into()) } else { Ok(()) }
    });
    let application = Application::new(app().child(writer.config(config)))
        .config_file(env::var_os(FILE).unwrap())
        .check_only(env::var_os(CHECK).is_some());
    #[cfg(feature = "systemd")]
    let application = application.systemd();
    application.run().await
}

// --- The tests -----------------------------------------------------------------------------------

/// A directory of a test, with the file in it.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let directory =
            env::temp_dir().join(format!("verger-reload-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn file(&self) -> PathBuf {
        self.0.join("app.toml")
    }

    /// Replaces the file as editors do: by one that was written beside it.
    fn write(&self, text: &str) {
        let beside = self.0.join("app.toml.new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.file()).unwrap();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(file: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(FILE, file);
    command
}

fn batch(batch: u32) -> String {
    format!("[\"app/writer\".config]\nbatch = {batch}\n")
}

#[test]
fn seed4_08_sighup_reloads_what_has_changed() {
    let files = Files::new("hup");
    files.write(&batch(1));
    let mut program = Program::start_by(command(&files.file()), "reloading", 1);
    program.wait_for(&["#1 batch 1"]);
    files.write(&batch(2));
    program.signal("HUP");
    program.wait_for(&[
        " INFO verger::config: reloading trigger=\"SIGHUP\" forced=false",
        &format!(
            " INFO verger::config: ~ app/writer  config.batch  1 → 2  live  {}:2",
            files.file().display()
        ),
        "#1 batch 2",
        " INFO verger::config: reloaded trigger=\"SIGHUP\" changes=1 unchanged=0",
    ]);
    // The file that it has is up to date.
    program.signal("HUP");
    program.wait_for(&[" INFO verger::config: reloaded trigger=\"SIGHUP\" changes=0 unchanged=1"]);
    program.signal("TERM");
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn seed4_09_sigusr2_reloads_everything() {
    let files = Files::new("usr2");
    files.write(&batch(1));
    let mut program = Program::start_by(command(&files.file()), "reloading", 2);
    program.wait_for(&["#1 batch 1"]);
    program.signal("USR2");
    program.wait_for(&["#1 batch 1"]);
    program.signal("TERM");
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn a_file_that_is_wrong_or_gone_changes_nothing() {
    let files = Files::new("wrong");
    files.write(&batch(1));
    let mut program = Program::start_by(command(&files.file()), "reloading", 1);
    program.wait_for(&["#1 batch 1"]);
    let unchanged = " WARN verger::config: configuration not changed trigger=\"SIGHUP\"";
    files.write("[writer.restart]\nwhen = \"sometimes\"\n");
    program.signal("HUP");
    let lines = program.read_until(unchanged, 1).join("\n");
    assert!(
        lines.contains("app.toml:2:8: unknown restart type `sometimes`; write `permanent`"),
        "{lines}"
    );
    assert!(lines.contains("key: writer.restart.when"), "{lines}");
    files.write(&batch(13));
    program.signal("HUP");
    let lines = program.read_until(unchanged, 1).join("\n");
    assert!(lines.contains("refused trigger=\"SIGHUP\" child=app/writer place=\""), "{lines}");
    assert!(lines.contains("app.toml:1\" problem=\"unlucky\""), "{lines}");
    fs::remove_file(files.file()).unwrap();
    program.signal("HUP");
    let lines = program.read_until(unchanged, 1).join("\n");
    assert!(lines.contains("app.toml"), "{lines}");
    fs::create_dir(files.file()).unwrap();
    program.signal("HUP");
    let lines = program.read_until(unchanged, 1).join("\n");
    assert!(lines.contains("directory"), "{lines}");
    fs::remove_dir(files.file()).unwrap();
    // An empty file is one without values.
    files.write("");
    program.signal("HUP");
    program.wait_for(&["#1 batch 0"]);
    program.signal("TERM");
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn an_invalid_file_at_the_start_ends_the_program_with_2_and_a_check_starts_nothing() {
    let files = Files::new("start");
    files.write("[writer.config]\nbatch = \"many\"\n[wirter]\n");
    for check in [false, true] {
        let mut command = command(&files.file());
        if check {
            command.env(CHECK, "1");
        }
        let (code, lines) = Program::start_by(command, "reloading", 1).end();
        let lines = lines.join("\n");
        assert_eq!(code, Some(2), "{lines}");
        assert!(lines.contains("app.toml:2:9: "), "{lines}");
        assert!(
            lines.contains(
                "app.toml:3:2: there is no `app/wirter`; the nearest paths are `app/writer`"
            ),
            "{lines}"
        );
        assert!(!lines.contains("#1"), "{lines}");
    }
    files.write(&batch(3));
    let mut command = command(&files.file());
    command.env(CHECK, "1");
    let (code, lines) = Program::start_by(command, "reloading", 1).end();
    let valid = " INFO verger::config: the tree and its configuration are valid".to_owned();
    assert_eq!((code, lines), (Some(0), vec![valid]));
}

#[cfg(all(target_os = "linux", feature = "systemd"))]
#[test]
fn systemd_learns_when_a_reload_begins_and_ends() {
    use crate::host::Systemd;

    let files = Files::new("systemd");
    files.write(&batch(1));
    let (systemd, address) = Systemd::listen("reload");
    let mut command = command(&files.file());
    command.env("NOTIFY_SOCKET", address);
    let mut program = Program::start_by(command, "reloading", 1);
    program.wait_for(&["#1 batch 1"]);
    systemd.until("READY=1");
    files.write(&batch(2));
    program.signal("HUP");
    systemd.until("RELOADING=1");
    let ready = systemd.until("READY=1");
    assert_eq!(ready.last().unwrap(), "READY=1\nSTATUS=reloaded: 1 change, 0 unchanged");
    files.write("[");
    program.signal("HUP");
    systemd.until("RELOADING=1");
    let ready = systemd.until("READY=1");
    let status = "STATUS=reload refused, configuration not changed";
    assert_eq!(ready.last().unwrap(), &format!("READY=1\n{status}"));
    program.signal("TERM");
    assert_eq!(program.end().0, Some(0), "nothing keeps the notifications from ending");
}
