//! A database of a test's own: `serve-database`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::program::{Program, command};

/// Set by `.ci/run lease`: a missing server is an error then.
const REQUIRED: &str = "VERGER_LEASE_SERVERS";

/// What is written if the package isn't installed.
const MISSING: &str = "no PostgreSQL server in";

/// It is stopped when this is dropped.
pub(crate) struct Server {
    // Before the directory with its file.
    program: Option<Program>,
    folder: TempDir,
}

impl Server {
    /// Starts a server, or returns `None` if PostgreSQL isn't installed and needn't be.
    #[expect(clippy::print_stdout, reason = "a line for `--nocapture`")]
    pub(crate) fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self { program: None, folder };
        let file = server.file();
        let mut command = command("serve-database --down 3 --url-file");
        let mut program = Program::start(command.arg(&file));
        if program.next().is_some_and(|it| it.contains("PostgreSQL is ready")) {
            server.program = Some(program);
            return Some(server);
        }
        let errors = program.end().errors;
        assert!(errors.contains(MISSING), "{errors}");
        assert!(std::env::var_os(REQUIRED).is_none(), "{errors}");
        println!("jobs-postgres: nothing was checked: {errors}");
        None
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("url")
    }

    /// Returns a command that uses this server.
    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = command(args);
        command.arg("--url-file").arg(self.file());
        command
    }

    pub(crate) fn url(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap().trim().to_owned()
    }

    /// Returns the process that serves the database.
    pub(crate) fn program(&mut self) -> &mut Program {
        self.program.as_mut().unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "ends with its test")]
        tokio::spawn(connection);
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Not killed, so that it deletes its data.
        if let Some(program) = self.program.take() {
            drop(program.stop());
        }
    }
}
