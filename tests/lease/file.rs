//! `lease::File`: locks between processes and within one, and files that are deleted, damaged or out of reach.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::runtime;
use verger::lease::{
    Acquired, Claim, FencingToken, File, LeaseEngine, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};

use crate::shared::folder::Folder;
use crate::shared::peer::Peer;
use crate::shared::requests::{claim, compete, granted, held_by};
use crate::shared::rules;

async fn refused(directory: impl AsRef<Path>, name: &str) -> String {
    File::new(directory.as_ref()).acquire(&claim(name, "a")).await.unwrap_err().to_string()
}

#[tokio::test]
async fn it_keeps_the_rules_of_an_engine() {
    let folder = Folder::new();
    let (one, two) = (File::new(folder.path()), File::new(folder.path()));
    rules::check(&one, &two, "app").await;
    rules::check(&one, &two, "after/all of that").await;
}

#[tokio::test]
async fn two_guards_of_one_process_exclude_each_other() {
    let folder = Folder::new();
    let engine = File::new(folder.path());
    let token = granted(&engine, &claim("app", "a")).await;
    for other in [engine.clone(), File::new(folder.path())] {
        assert_eq!(other.acquire(&claim("app", "b")).await.unwrap(), held_by("a"));
    }
    // A clone is the same engine.
    let clone = engine.clone();
    assert_eq!(clone.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Extended);
    assert_eq!(clone.release(&claim("app", "a"), token).await.unwrap(), Released::Released);
    assert_eq!(granted(&File::new(folder.path()), &claim("app", "b")).await.get(), 2);
}

#[tokio::test]
async fn the_last_clone_of_an_engine_frees_what_it_holds() {
    let folder = Folder::new();
    let engine = File::new(folder.path());
    granted(&engine, &claim("app", "a")).await;
    drop(engine);
    assert_eq!(granted(&File::new(folder.path()), &claim("app", "b")).await.get(), 2);
}

#[tokio::test]
async fn a_process_excludes_another_one_until_it_is_killed() {
    let folder = Folder::new();
    let mut peer = Peer::start(folder.path());
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    assert_eq!(peer.ask("acquire app other"), "granted 2");
    let engine = File::new(folder.path());
    assert_eq!(engine.acquire(&claim("app", "a")).await.unwrap(), held_by("other"));

    // At the next request, without a wait, and with a higher token.
    peer.kill();
    assert_eq!(granted(&engine, &claim("app", "a")).await.get(), 3);
}

#[tokio::test]
async fn a_look_shows_the_holder_until_its_process_is_killed() {
    let folder = Folder::new();
    let engine = File::new(folder.path());
    let look = async || engine.holder("app").await.unwrap();
    assert_eq!(look().await, LeaseRecord::free());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a look creates no file");

    let mut peer = Peer::start(folder.path());
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    assert_eq!(peer.ask("memo app other 1 half-way"), "Ok(Stored)");
    let memo = Memo::new("half-way").unwrap();
    let held = LeaseRecord::held().with_holder("other").with_token(FencingToken::new(1));
    assert_eq!(look().await, held.with_memo(memo), "a locked file doesn't expire");
    peer.kill();
    assert_eq!(look().await, LeaseRecord::free().with_memo(memo));
    assert_eq!(granted(&engine, &claim("app", "a")).await.get(), 2);
    assert_eq!(*look().await.memo(), memo);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looks_refuse_no_request() {
    let folder = Folder::new();
    let (engine, a) = (File::new(folder.path()), claim("app", "a"));
    let looking = File::new(folder.path());
    let looks = tokio::spawn(async move {
        loop {
            looking.holder("app").await.unwrap();
        }
    });
    for number in 1..=300 {
        let token = granted(&engine, &a).await;
        assert_eq!(token.get(), number);
        assert_eq!(engine.release(&a, token).await.unwrap(), Released::Released);
    }
    looks.abort();
}

#[tokio::test]
async fn a_damaged_memo_is_an_error_and_changes_no_lease() {
    let folder = Folder::new();
    let (engine, a) = (File::new(folder.path()), claim("app", "a"));
    let (path, memo) = (folder.path().join("app.memo"), Memo::new("17").unwrap());
    let token = granted(&engine, &a).await;
    engine.write_memo(&a, token, &memo).await.unwrap();
    let good = fs::read_to_string(&path).unwrap();
    assert_eq!(good, "verger memo 1 token=00000000000000000001 memo=3137\n");

    fs::write(&path, &good[..good.len() - 3]).unwrap();
    let error = engine.holder("app").await.unwrap_err().to_string();
    assert!(
        error.contains("app.memo` is damaged, or isn't the file of a memo: delete it"),
        "{error}"
    );
    assert_eq!(engine.renew(&a, token).await.unwrap(), Renewed::Extended);
    assert_eq!(engine.write_memo(&a, token, &memo).await.unwrap(), MemoWrite::Stored);
    assert_eq!(*engine.holder("app").await.unwrap().memo(), memo);

    // What a crash leaves of a memo that was being written.
    fs::write(folder.path().join("app.memo~"), "verger memo 1 tok").unwrap();
    assert_eq!(*engine.holder("app").await.unwrap().memo(), memo);
    assert_eq!(engine.write_memo(&a, token, &Memo::default()).await.unwrap(), MemoWrite::Stored);
    assert!(engine.holder("app").await.unwrap().memo().is_empty());

    // Through a link, any file could be read or written.
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    assert!(engine.holder("app").await.is_err());
    symlink("/etc/passwd", folder.path().join("app.memo~")).unwrap();
    assert!(engine.write_memo(&a, token, &memo).await.is_err());
}

#[tokio::test]
async fn a_lease_whose_file_is_deleted_stores_no_memo() {
    let folder = Folder::new();
    let (engine, a) = (File::new(folder.path()), claim("app", "a"));
    let token = granted(&engine, &a).await;
    fs::remove_file(folder.path().join("app.lease")).unwrap();
    let written = engine.write_memo(&a, token, &Memo::new("late").unwrap()).await;
    assert_eq!(written.unwrap(), MemoWrite::NotHeld);
}

#[tokio::test]
async fn a_stopped_process_keeps_its_lease() {
    let folder = Folder::new();
    let mut peer = Peer::start(folder.path());
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    peer.signal("-STOP");
    let engine = File::new(folder.path());
    // Many times longer than this.
    let claim = Claim::new("app", "a", Duration::from_millis(1));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(300) {
        assert_eq!(engine.acquire(&claim).await.unwrap(), held_by("other"));
    }
    peer.signal("-CONT");
    assert_eq!(peer.ask("renew app other 1"), "Ok(Extended)");
}

#[tokio::test]
async fn tokens_of_several_processes_grow_strictly() {
    let folder = Folder::new();
    let mut peers: Vec<_> = (0..4).map(|_| Peer::start(folder.path())).collect();
    for (number, peer) in peers.iter_mut().enumerate() {
        peer.send(&format!("rounds app peer-{number} 50"));
    }
    for peer in &mut peers {
        assert_eq!(peer.answer(), "done");
    }
    let journal = fs::read_to_string(folder.path().join("journal")).unwrap();
    let tokens: Vec<u64> = journal.lines().map(|it| it.parse().unwrap()).collect();
    assert_eq!(tokens, (1..=200).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_that_compete_one_has_the_lease() {
    let folder = Folder::new();
    compete("app", 1, || File::new(folder.path())).await;
}

#[test]
fn an_acquire_that_is_dropped_leaves_no_lock() {
    let folder = Folder::new();
    let engine = File::new(folder.path());
    // One thread that may block, and it is busy.
    let runtime = runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (finish, finished) = mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || finished.recv());
        let dropped = claim("app", "dropped");
        let mut acquire = engine.acquire(&dropped);
        let poll = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending());
        drop(acquire);
        finish.send(()).unwrap();
        busy.await.unwrap().unwrap();
        assert_eq!(
            granted(&engine, &claim("app", "next")).await.get(),
            2,
            "1 was granted and dropped"
        );
    });
}

#[tokio::test]
async fn a_lease_whose_file_is_deleted_or_replaced_is_lost() {
    let folder = Folder::new();
    let (engine, other) = (File::new(folder.path()), File::new(folder.path()));
    let (a, b) = (claim("app", "a"), claim("app", "b"));
    let path = folder.path().join("app.lease");

    let token = granted(&engine, &a).await;
    fs::remove_file(&path).unwrap();
    assert_eq!(engine.renew(&a, token).await.unwrap(), Renewed::Lost);
    assert_eq!(engine.release(&a, token).await.unwrap(), Released::NotHeld);

    let token = granted(&engine, &a).await;
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    let theirs = granted(&other, &b).await;
    assert_eq!(engine.release(&a, token).await.unwrap(), Released::NotHeld);
    assert_eq!(other.renew(&b, theirs).await.unwrap(), Renewed::Extended);

    // The holder itself asks again: not with the lock of a deleted file.
    fs::remove_file(&path).unwrap();
    granted(&other, &b).await;
    assert_eq!(engine.acquire(&a).await.unwrap(), held_by("b"));
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_never_a_lower_token() {
    let folder = Folder::new();
    let (engine, a) = (File::new(folder.path()), claim("app", "a"));
    let path = folder.path().join("app.lease");
    for _ in 0..7 {
        let token = granted(&engine, &a).await;
        engine.release(&a, token).await.unwrap();
    }
    let good = fs::read(&path).unwrap();
    assert!(String::from_utf8_lossy(&good).contains("token=00000000000000000007"));

    for bad in [&b"7\n"[..], &good[..512], &[0; 1024], &[b'x'; 5000]] {
        fs::write(&path, bad).unwrap();
        let error = refused(folder.path(), "app").await;
        let begin =
            format!("`{}` is damaged, or isn't the file of a lease: stop all", path.display());
        assert!(error.starts_with(&begin), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bad, "it is left as it is");
    }

    // One half of it is enough.
    let mut torn = good;
    torn[512..].fill(b'x');
    fs::write(&path, torn).unwrap();
    assert_eq!(granted(&engine, &a).await, FencingToken::new(9));
}

#[tokio::test]
async fn names_never_leave_the_directory() {
    let folder = Folder::new();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let engine = File::new(&inner);
    let names = ["../app", "../../app", "/app", "a/b", "", ".", "..", "a\0b", "A", "a", "%61", "ä"];
    for name in names {
        assert_eq!(granted(&engine, &claim(name, "a")).await, FencingToken::new(1), "{name:?}");
    }
    assert_eq!(fs::read_dir(&inner).unwrap().count(), names.len(), "each has a file of its own");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let error = refused(&inner, &"a".repeat(250)).await;
    assert!(
        error.ends_with("needs a file name of 256 bytes: choose a name for which 255 are enough")
    );
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let folder = Folder::new();
    let missing = folder.path().join("missing");
    assert_eq!(
        refused(&missing, "app").await,
        format!(
            "the directory `{}` of the leases doesn't exist: create it before the program starts",
            missing.display()
        )
    );

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refused(&file, "app").await;
    assert!(error.ends_with("isn't a directory: give `lease::File` the directory of the files"));

    symlink("/etc/passwd", folder.path().join("link.lease")).unwrap();
    let error = refused(folder.path(), "link").await;
    assert!(error.contains("link.lease` is a symbolic link: delete it"), "{error}");

    let look = async |directory: &Path, name| {
        File::new(directory).holder(name).await.unwrap_err().to_string()
    };
    assert!(look(&missing, "app").await.contains("of the leases doesn't exist: create it"));
    assert!(look(&file, "app").await.contains("isn't a directory"));
    assert!(look(folder.path(), "link").await.contains("link.lease` is a symbolic link"));

    // Permissions don't bind root, except where the kernel itself refuses.
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let read_only = if is_root { Path::new("/sys/kernel") } else { folder.path() };
    if !is_root {
        fs::set_permissions(read_only, Permissions::from_mode(0o555)).unwrap();
    }
    let error = refused(read_only, "app").await;
    assert!(error.contains("app.lease` can't be opened ("), "{error}");
    assert!(
        error.contains(": let the user of this process read and write")
            || error.contains("can be written")
    );
    if !is_root {
        fs::set_permissions(read_only, Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn an_answer_says_nothing_about_a_holder_that_is_unreadable() {
    let folder = Folder::new();
    let engine = File::new(folder.path());
    granted(&engine, &claim("app", "a")).await;
    fs::write(folder.path().join("app.lease"), "").unwrap();
    let other = File::new(folder.path());
    assert_eq!(other.acquire(&claim("app", "b")).await.unwrap(), Acquired::Held { by: None });
}
