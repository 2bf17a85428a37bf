//! The row of a lease, as in `src/lease/postgres/table.rs`.

/// The number of a process.
pub type Id = u8;
/// Ticks of the store's clock.
pub type Tick = u8;
/// How long a grant lasts.
pub const TTL: Tick = 3;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A write is accepted with any token.
    NoEpochCheck,
    /// A release deletes the row, so that the epochs begin again.
    EpochRestarts,
    /// A lease is granted before the last grant has expired.
    EarlyGrant,
    /// A process counts from the answer to a request, and not from before it was sent.
    CountsFromAnswer,
    /// A process that has lost the lease asks for it no more.
    GivesUp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row {
    /// Zero: there is no row.
    pub epoch: u8,
    pub holder: Id,
    pub expires: Tick,
}

impl Row {
    /// Returns the new epoch if the lease is granted.
    pub fn acquire(&mut self, holder: Id, now: Tick, mutant: Option<Mutant>) -> Option<u8> {
        let is_free = self.epoch == 0 || self.expires <= now || self.holder == holder;
        if !is_free && mutant != Some(Mutant::EarlyGrant) {
            return None;
        }
        *self = Self { epoch: self.epoch + 1, holder, expires: now + TTL };
        Some(self.epoch)
    }

    pub fn renew(&mut self, holder: Id, epoch: u8, now: Tick) -> bool {
        let is_held = self.is_held(holder, epoch, now);
        if is_held {
            self.expires = now + TTL;
        }
        is_held
    }

    pub fn release(&mut self, holder: Id, epoch: u8, now: Tick, mutant: Option<Mutant>) {
        if self.is_held(holder, epoch, now) {
            self.expires = 0;
            if mutant == Some(Mutant::EpochRestarts) {
                *self = Self::default();
            }
        }
    }

    /// Returns whether a write with this epoch is accepted.
    pub fn accepts(&self, epoch: u8, mutant: Option<Mutant>) -> bool {
        self.epoch == epoch || mutant == Some(Mutant::NoEpochCheck)
    }

    fn is_held(&self, holder: Id, epoch: u8, now: Tick) -> bool {
        self.epoch == epoch && self.holder == holder && self.expires > now
    }
}
