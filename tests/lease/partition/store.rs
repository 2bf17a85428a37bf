//! A store with one lease on a simulated host, and the engine that asks it over simulated TCP.
//!
//! A request is a line, and so is its answer. A request that is dropped closes its connection, but may still arrive.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use turmoil::net::{TcpListener, TcpStream};
use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Released, Renewed,
};

use super::record::{Record, nanos, now};
use crate::shared::checker::history::Nanos;

pub(crate) const STORE: &str = "store";
const PORT: u16 = 5432;

/// How long an engine of [`Plant::TakesSilenceForYes`] waits for an answer.
const SILENCE: Duration = Duration::from_millis(500);

/// The row of the lease. It outlives a crash of its host.
#[derive(Debug, Default)]
struct Row {
    epoch: u64,
    holder: String,
    expires: Nanos,
}

/// Answers requests, by the clock of the simulation: that of a host begins again after a crash.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    row: Arc<Mutex<Row>>,
    record: Record,
}

impl Store {
    pub(crate) fn new(record: Record) -> Self {
        Self { row: Arc::default(), record }
    }

    pub(crate) async fn serve(self) -> turmoil::Result {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(self.clone().answer_all(stream));
        }
    }

    async fn answer_all(self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 {
            let answer = self.answer(line.trim_end());
            stream.get_mut().write_all(format!("{answer}\n").as_bytes()).await?;
            line.clear();
        }
        Ok(())
    }

    fn answer(&self, request: &str) -> String {
        let (at, mut row) = (now(), self.row.lock().unwrap());
        let words: Vec<_> = request.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let is_held = row.expires > at;
        if words == ["show"] {
            return if is_held { format!("held {}", row.holder) } else { "free".to_owned() };
        }
        let (what, holder) = (words[0], words[1]);
        if what == "acquire" && is_held && row.holder != holder {
            return format!("held {}", row.holder);
        }
        let is_current = what == "acquire" || (is_held && row.epoch == number(2));
        if !is_current || (is_held && row.holder != holder) {
            return "no".to_owned();
        }
        if what == "acquire" {
            *row = Row { epoch: row.epoch + 1, holder: holder.to_owned(), expires: 0 };
        }
        row.expires = match what {
            "release" => at,
            _ => at + number(words.len() - 1),
        };
        self.record.valid(row.epoch, row.expires);
        self.record.note(at, 0, format!("the store answers with yes to {request}"));
        row.epoch.to_string()
    }
}

/// What is wrong in an engine on purpose. Its member ignores the renew deadline then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// It says that the lease is renewed, and hasn't asked.
    RenewsUnasked,
    /// It says that the lease is renewed if it has no answer.
    TakesSilenceForYes,
}

/// The engine of a member.
#[derive(Debug)]
pub(crate) struct Remote {
    member: u32,
    record: Record,
    plant: Option<Plant>,
    connection: tokio::sync::Mutex<Option<BufReader<TcpStream>>>,
}

impl Remote {
    pub(crate) fn new(member: u32, record: Record, plant: Option<Plant>) -> Self {
        Self { member, record, plant, connection: tokio::sync::Mutex::default() }
    }

    async fn ask(&self, request: String) -> Result<String, LeaseError> {
        let failed = |error| LeaseError::new("the store doesn't answer").with_source(error);
        let mut free = self.connection.lock().await;
        // Taken, so that the answer to a request that is dropped isn't read as the answer to the next one.
        let mut connection = match free.take() {
            Some(connection) => connection,
            None => BufReader::new(TcpStream::connect((STORE, PORT)).await.map_err(failed)?),
        };
        let mut answer = String::new();
        connection.get_mut().write_all(format!("{request}\n").as_bytes()).await.map_err(failed)?;
        connection.read_line(&mut answer).await.map_err(failed)?;
        if !answer.ends_with('\n') {
            return Err(LeaseError::new("the store has closed the connection"));
        }
        *free = Some(connection);
        Ok(answer.trim_end().to_owned())
    }

    async fn ask_to_renew(
        &self,
        claim: &Claim,
        token: FencingToken,
    ) -> Result<Renewed, LeaseError> {
        let (holder, ttl) = (claim.holder(), nanos(claim.ttl()));
        Ok(match &*self.ask(format!("renew {holder} {token} {ttl}")).await? {
            "no" => Renewed::Lost,
            _ => Renewed::Extended,
        })
    }
}

#[async_trait]
impl LeaseEngine for Remote {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        let sent = now();
        let (holder, ttl) = (claim.holder(), nanos(claim.ttl()));
        let answer = self.ask(format!("acquire {holder} {ttl}")).await?;
        Ok(match answer.strip_prefix("held ") {
            Some(by) => Acquired::Held { by: Some(by.into()) },
            None => {
                let token = answer.parse().unwrap();
                self.record.granted(self.member, sent, token);
                Acquired::Granted(FencingToken::new(token))
            }
        })
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        match self.plant {
            None => self.ask_to_renew(claim, token).await,
            Some(Plant::RenewsUnasked) => Ok(Renewed::Extended),
            Some(Plant::TakesSilenceForYes) => {
                let asked = timeout(SILENCE, self.ask_to_renew(claim, token)).await;
                Ok(asked.ok().and_then(Result::ok).unwrap_or(Renewed::Extended))
            }
        }
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        let answer = self.ask(format!("release {} {token}", claim.holder())).await?;
        Ok(if answer == "no" { Released::NotHeld } else { Released::Released })
    }

    async fn holder(&self, _: &str) -> Result<LeaseRecord, LeaseError> {
        let answer = self.ask("show".to_owned()).await?;
        Ok(match answer.strip_prefix("held ") {
            Some(by) => LeaseRecord::held().with_holder(by),
            None => LeaseRecord::free(),
        })
    }
}
