//! The members of a check: they are started, stopped, paused and killed, and their lines are collected.

use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::history::{History, Nanos, Run, now};
use super::member::{NUMBER, PLANT, Plant, STORE};

/// How long a check waits for anything. A busy machine may take some seconds to start a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process. It is killed when this is dropped, also if it is paused.
struct Member {
    number: u32,
    process: Child,
    /// Open until this is dropped. `Child::wait` would close it, and the process would end at once.
    _open: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
}

impl Member {
    fn start(number: u32, store: &str, plant: Option<Plant>, history: Arc<Mutex<History>>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "shared::checker::member::program", "--nocapture"]);
        command.env(STORE, store).env(NUMBER, number.to_string());
        if let Some(plant) = plant {
            command.env(PLANT, plant.name());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let open = process.stdin.take();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            // The last line of a process that was killed may be cut off.
            while lines.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
                history.lock().unwrap().add(number, line.trim_end());
                line.clear();
            }
        });
        Self { number, process, _open: open, reader: Some(reader) }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended and all of its lines are in the history.
    fn ended(&mut self) -> bool {
        let status = self.process.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        status.success()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// See the [module](self).
pub(crate) struct Crowd {
    stores: Vec<String>,
    plant: Option<Plant>,
    /// The member at each place.
    members: Vec<Member>,
    started: u32,
    history: Arc<Mutex<History>>,
}

impl Crowd {
    /// Starts a member for each of these stores, which are several ways to the same one.
    pub(crate) fn start(stores: Vec<String>, plant: Option<Plant>) -> Self {
        let history = Arc::new(Mutex::new(History::default()));
        let mut crowd = Self { stores, plant, members: Vec::new(), started: 0, history };
        for place in 0..crowd.stores.len() {
            let member = crowd.new_member(place);
            crowd.members.push(member);
        }
        crowd
    }

    fn new_member(&mut self, place: usize) -> Member {
        self.started += 1;
        let history = Arc::clone(&self.history);
        Member::start(self.started, &self.stores[place], self.plant, history)
    }

    pub(crate) fn places(&self) -> RangeInclusive<usize> {
        0..=self.members.len() - 1
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }

    /// Returns the run that goes on, and the place of its member. If there are several, the one with the highest token.
    fn running(&self) -> Option<(usize, Run)> {
        let history = self.history();
        let run = history.runs.iter().filter(|it| it.ended.is_none()).max_by_key(|it| it.token)?;
        Some((self.members.iter().position(|it| it.number == run.member)?, *run))
    }

    /// Waits until a member runs, and returns its place.
    pub(crate) async fn holder(&self) -> usize {
        self.until("no member has the lease", || Some(self.running()?.0)).await
    }

    /// Waits until a run starts that has asked after this moment, and returns when it has started.
    pub(crate) async fn next_start(&self, since: Nanos) -> Nanos {
        let next = || {
            let history = self.history();
            history.runs.iter().map(|it| it.started).filter(|it| *it > since).min()
        };
        self.until("no member has taken over", next).await
    }

    /// Waits until at most one run goes on.
    pub(crate) async fn one_left(&self) {
        self.until("two members run", || (self.runs() <= 1).then_some(())).await;
    }

    /// Waits until two runs go on at the same time.
    pub(crate) async fn two_run(&self) {
        self.until("one member runs", || (self.runs() >= 2).then_some(())).await;
    }

    fn runs(&self) -> usize {
        self.history().runs.iter().filter(|it| it.ended.is_none()).count()
    }

    async fn until<T>(&self, problem: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            if began.elapsed() > PATIENCE {
                let history = self.history();
                let last: Vec<_> = history.lines.iter().rev().take(40).collect();
                panic!("{problem}: {:?}\n{last:#?}", history.unexpected);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Stops a member in order, waits for its end, and returns when it was asked to.
    pub(crate) fn stop(&mut self, place: usize) -> Nanos {
        let member = &mut self.members[place];
        let at = self.history.lock().unwrap().note(member.number, "SIGTERM");
        member.signal("-TERM");
        if !member.ended() {
            let failed = format!("member {} has failed", member.number);
            self.history().unexpected.push(failed);
        }
        at
    }

    /// Kills a member, and returns when.
    pub(crate) fn kill(&mut self, place: usize) -> Nanos {
        let member = &mut self.members[place];
        let at = self.history.lock().unwrap().note(member.number, "SIGKILL");
        member.process.kill().unwrap();
        member.ended();
        self.history.lock().unwrap().killed(member.number, at);
        at
    }

    /// Starts a member at the place of each one that has ended.
    pub(crate) fn refill(&mut self) {
        for place in self.places() {
            if self.members[place].reader.is_none() {
                self.members[place] = self.new_member(place);
            }
        }
    }

    pub(crate) fn pause(&self, place: usize) -> Nanos {
        self.history().paused(self.members[place].number);
        self.members[place].signal("-STOP");
        now()
    }

    pub(crate) fn resume(&self, place: usize) {
        self.members[place].signal("-CONT");
        self.history().resumed(self.members[place].number);
    }

    /// Writes a line into the history.
    pub(crate) fn note(&self, what: &str) {
        self.history().note(0, what);
    }

    /// Stops all members in order, and returns what has happened.
    pub(crate) async fn end(mut self) -> History {
        let ready = |it: &Member| self.history().ready.contains(&it.number);
        self.until("a member hasn't started", || self.members.iter().all(ready).then_some(()))
            .await;
        for member in &self.members {
            member.signal("-TERM");
        }
        let failed: Vec<_> =
            self.members.iter_mut().filter_map(|it| (!it.ended()).then_some(it.number)).collect();
        let mut history = std::mem::take(&mut *self.history());
        let failed = failed.iter().map(|number| format!("member {number} has failed"));
        history.unexpected.extend(failed);
        history
    }
}
