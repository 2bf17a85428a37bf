//! Why a process can't be started, and where that can be mended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

use thiserror::Error;

/// Where a program is searched for if there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The error of a child whose process can't be started, or is of no use.
///
/// It is the error in [`ExitReason::ActivationFailed`](crate::ExitReason::ActivationFailed), so the child is started
/// again as its backoff says. `Display` names the path, and says what the operating system has answered.
///
/// ```
/// use std::process::Command;
///
/// use verger::policy::FirstStart;
/// use verger::process::CommandError;
/// use verger::{ExitReason, StartError, Supervisor, command};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tool = command("tool", || Command::new("no-such-tool"));
/// let app = Supervisor::builder("app").first_start(FirstStart::Fail).child(tool).build()?;
///
/// let error = app.start().await.unwrap_err();
/// let StartError::ChildFailed { reason: ExitReason::ActivationFailed(error), .. } = error else {
///     panic!("{error}");
/// };
/// let error = error.downcast_ref::<CommandError>();
/// assert!(matches!(error, Some(CommandError::NotInPath { program, .. }) if program == "no-such-tool"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The program is in no directory of `PATH`.
    #[error("`{program}` can't be started, because it is in none of PATH={path}: {source}")]
    NotInPath {
        /// The program, as the command names it.
        program: String,
        /// The directories in which it was searched for, joined with `:`.
        path: String,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The path of the program leads to no file.
    #[error("`{}` can't be started, because there is no such file: {source}", path.display())]
    NotFound {
        /// The path, which a working directory of the command changes if it is relative.
        path: PathBuf,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The program is a file that isn't executable, or not for this user.
    #[error(
        "`{}` can't be started, because it isn't executable (mode {mode:o}); write `chmod +x`: {source}", path.display()
    )]
    NotExecutable {
        /// The path of the file.
        path: PathBuf,
        /// Its permissions, such as `0o644`.
        mode: u32,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The file exists, but what has to run it doesn't: the program in its `#!` line, or its dynamic loader.
    #[error(
        "`{}` can't be started, because what its `#!` line names, or its dynamic loader, doesn't exist: {source}",
        path.display()
    )]
    NoInterpreter {
        /// The path of the file.
        path: PathBuf,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The working directory of the command can't be entered.
    #[error("`{program}` can't be started in the directory `{}`: {source}", directory.display())]
    BadDirectory {
        /// The program, as the command names it.
        program: String,
        /// The directory, as the command names it.
        directory: PathBuf,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The process can't be started for a different reason, such as a limit of processes or of open files.
    #[error("`{program}` can't be started: {source}")]
    Spawn {
        /// The program, as the command names it.
        program: String,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The socket for [`ReadyWhen::notify`](super::ReadyWhen::notify) can't be made.
    #[error("the socket `{}` for NOTIFY_SOCKET can't be made: {source}", path.display())]
    NotifySocket {
        /// The path of the socket.
        path: PathBuf,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The cgroup of the process can't be made or used.
    #[error("the cgroup `{}` can't be used: {source}", path.display())]
    Cgroup {
        /// The directory of the cgroup.
        path: PathBuf,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// The child waits for a line, but neither stdout nor stderr is [captured](super::Output::Capture). Such a child
    /// can never be ready, so the error is [fatal](crate::ExitError::fatal).
    #[error(
        "it waits for a line of its process, which writes none that it could read; write `Output::Capture` for stdout or \
         stderr, or a different `ready_when`"
    )]
    NothingCaptured,
    /// The process can't be waited for, so how it has ended isn't known.
    #[error(
        "the process {pid} can't be waited for, perhaps because other code of this program does: {source}"
    )]
    Wait {
        /// The number of the process.
        pid: u32,
        /// What the operating system has answered.
        source: io::Error,
    },
    /// Writing to the stdin of the process has failed.
    #[error("the stdin of the process can't be written: {source}")]
    Stdin {
        /// The error that the function has returned.
        source: io::Error,
    },
}

/// Returns why a command could not be started.
///
/// The operating system answers with a number, which is the same for a program, an interpreter and a directory that
/// doesn't exist. So this looks for each of them.
pub(super) fn diagnose(command: &Command, source: io::Error) -> CommandError {
    let program = command.get_program();
    let name = program.to_string_lossy().into_owned();
    let directory = command.get_current_dir();
    let blames_path =
        matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
            || source.kind() == io::ErrorKind::NotADirectory;
    if !blames_path {
        return CommandError::Spawn { program: name, source };
    }
    if let Some(directory) = directory
        && fs::read_dir(directory).is_err_and(|error| error.kind() == source.kind())
    {
        return CommandError::BadDirectory { program: name, directory: directory.into(), source };
    }
    if program.as_bytes().contains(&b'/') {
        let path = directory.map_or_else(|| program.into(), |it| it.join(program));
        return of_file(name, path, source);
    }
    let path = path_of(command);
    let found = env::split_paths(&path).map(|it| it.join(program)).find(|it| it.is_file());
    match found {
        Some(found) => of_file(name, found, source),
        None => {
            CommandError::NotInPath { program: name, path: path.to_string_lossy().into(), source }
        }
    }
}

fn of_file(program: String, path: PathBuf, source: io::Error) -> CommandError {
    let mode = fs::metadata(&path).map(|it| it.permissions().mode() & 0o7777);
    match (source.kind(), mode) {
        (io::ErrorKind::NotFound, Err(_)) => CommandError::NotFound { path, source },
        (io::ErrorKind::NotFound, Ok(_)) => CommandError::NoInterpreter { path, source },
        // A directory is refused with the same number.
        (io::ErrorKind::PermissionDenied, Ok(mode)) if path.is_file() => {
            CommandError::NotExecutable { path, mode, source }
        }
        _ => CommandError::Spawn { program, source },
    }
}

/// Returns the directories in which the program is searched for.
fn path_of(command: &Command) -> std::ffi::OsString {
    let own = command.get_envs().find(|(name, _)| *name == OsStr::new("PATH"));
    match own {
        Some((_, Some(path))) => path.to_owned(),
        Some((_, None)) => DEFAULT_PATH.into(),
        None => env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn_error(command: &mut Command) -> String {
        let source = command.spawn().unwrap_err();
        diagnose(command, source).to_string()
    }

    #[test]
    fn each_reason_names_its_path_and_the_answer_of_the_system() {
        let folder = env::temp_dir().join(format!("verger-command-error-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let script = |name: &str, text: &str, mode| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let plain = script("plain", "#!/bin/sh\n", 0o644);
        let stray = script("stray", "#!/no/such/shell\n", 0o755);
        let shown = folder.display();

        let missing = "No such file or directory (os error 2)";
        assert_eq!(
            spawn_error(Command::new("no-such-program").env("PATH", "/a:/b")),
            format!(
                "`no-such-program` can't be started, because it is in none of PATH=/a:/b: {missing}"
            )
        );
        assert_eq!(
            spawn_error(&mut Command::new(folder.join("absent"))),
            format!("`{shown}/absent` can't be started, because there is no such file: {missing}")
        );
        assert_eq!(
            spawn_error(&mut Command::new(&plain)),
            format!(
                "`{shown}/plain` can't be started, because it isn't executable (mode 644); write `chmod +x`: \
                 Permission denied (os error 13)"
            )
        );
        assert_eq!(
            spawn_error(Command::new("plain").env("PATH", &folder)),
            spawn_error(&mut Command::new(&plain)),
        );
        assert_eq!(
            spawn_error(&mut Command::new(&stray)),
            format!(
                "`{shown}/stray` can't be started, because what its `#!` line names, or its dynamic loader, doesn't \
                 exist: {missing}"
            )
        );
        assert_eq!(
            spawn_error(Command::new("true").current_dir(folder.join("absent"))),
            format!("`true` can't be started in the directory `{shown}/absent`: {missing}")
        );
        assert_eq!(
            spawn_error(Command::new("true").arg("x".repeat(1 << 20))),
            "`true` can't be started: Argument list too long (os error 7)"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
