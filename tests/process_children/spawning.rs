//! Processes that can't be started.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use verger::process::CommandError;

use crate::{failure, once, spawn};

async fn refused(factory: impl Fn() -> Command + Send + Sync + 'static) -> String {
    let tree = spawn(once(verger::command("it", factory)));
    let reason = failure(&tree).await;
    let verger::ExitReason::ActivationFailed(error) = &reason else { panic!("{reason:?}") };
    assert!(error.downcast_ref::<CommandError>().is_some());
    tree.stop().await;
    reason.to_string()
}

#[tokio::test]
async fn a_program_that_can_not_be_found_is_named_with_its_path() {
    let absent = refused(|| {
        let mut command = Command::new("no-such-program");
        command.env("PATH", "/nowhere:/bin");
        command
    });
    assert_eq!(
        absent.await,
        "activation failed: `no-such-program` can't be started, because it is in none of PATH=/nowhere:/bin: No such \
         file or directory (os error 2)"
    );
    let absent = refused(|| Command::new("/no/such/program")).await;
    assert_eq!(
        absent,
        "activation failed: `/no/such/program` can't be started, because there is no such file: No such file or \
         directory (os error 2)"
    );
}

#[tokio::test]
async fn a_file_that_is_not_executable_is_named_with_its_mode() {
    let path = env::temp_dir().join(format!("verger-plain-{}", std::process::id()));
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let program = path.clone();
    let text = refused(move || Command::new(&program)).await;
    fs::remove_file(&path).unwrap();
    assert_eq!(
        text,
        format!(
            "activation failed: `{}` can't be started, because it isn't executable (mode 640); write `chmod +x`: \
             Permission denied (os error 13)",
            path.display()
        )
    );
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_is_named() {
    let text = refused(|| {
        let mut command = Command::new("/bin/sh");
        command.current_dir("/no/such/directory");
        command
    });
    assert_eq!(
        text.await,
        "activation failed: `/bin/sh` can't be started in the directory `/no/such/directory`: No such file or \
         directory (os error 2)"
    );
}
