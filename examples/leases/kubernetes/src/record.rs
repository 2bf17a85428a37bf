//! What an object says, and how it is changed.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use verger::lease::{Claim, FencingToken, LeaseError, Memo};

use crate::{problem, seconds};

/// Holds the token of the last grant. `leaseTransitions` alone would not do: it has 31 bits, and by its meaning it stays
/// the same when a holder is granted its own lease again.
const TOKEN: &str = "verger/fencing-token";
/// Holds the memo: two hexadecimal digits for each byte.
const MEMO: &str = "verger/memo";

/// An object, which isn't changed by others as long as it has this `resourceVersion`.
pub(crate) struct Record {
    lease: Lease,
    version: String,
    token: u64,
    memo: Memo,
}

impl Record {
    pub(crate) fn new(lease: Lease) -> Result<Self, LeaseError> {
        let version = lease.metadata.resource_version.clone().ok_or_else(problem::version)?;
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        let annotation = |key| lease.metadata.annotations.as_ref().and_then(|it| it.get(key));
        let token = match annotation(TOKEN) {
            Some(token) => token.parse().map_err(|_| problem::annotation(name, TOKEN))?,
            None => 0,
        };
        let memo = match annotation(MEMO) {
            Some(digits) => from_digits(digits).ok_or_else(|| problem::annotation(name, MEMO))?,
            None => Memo::default(),
        };
        Ok(Self { lease, version, token, memo })
    }

    /// An object that doesn't exist yet.
    pub(crate) fn empty(name: &str) -> Self {
        let mut lease = Lease::default();
        lease.metadata.name = Some(name.to_owned());
        Self { lease, version: String::new(), token: 0, memo: Memo::default() }
    }

    pub(crate) fn into_lease(self) -> Lease {
        self.lease
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the holder. `None` after a release.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.lease.spec.as_ref()?.holder_identity.as_deref().filter(|it| !it.is_empty())
    }

    /// Returns the TTL that the holder has asked for, which isn't the one of other holders.
    pub(crate) fn duration(&self) -> Duration {
        let seconds = self.lease.spec.as_ref().and_then(|it| it.lease_duration_seconds);
        Duration::from_secs(u64::try_from(seconds.unwrap_or_default()).unwrap_or_default())
    }

    /// Returns the token of the last grant.
    pub(crate) fn token(&self) -> FencingToken {
        FencingToken::new(self.token)
    }

    pub(crate) fn memo(&self) -> &Memo {
        &self.memo
    }

    pub(crate) fn set_memo(&mut self, memo: &Memo) {
        self.memo = *memo;
        let digits = memo.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let annotations = self.lease.metadata.annotations.get_or_insert_default();
        annotations.insert(MEMO.to_owned(), digits);
    }

    pub(crate) fn is_granted(&self, holder: &str, token: FencingToken) -> bool {
        self.holder() == Some(holder) && self.token == token.get()
    }

    /// Makes the holder of this claim the holder. Returns the token, which is higher than any before.
    pub(crate) fn grant(&mut self, claim: &Claim) -> Result<FencingToken, LeaseError> {
        let spec = self.lease.spec.get_or_insert_default();
        // Whichever of the two is higher, in case that a different program has reset the other.
        let transitions = spec.lease_transitions.unwrap_or_default();
        let last = self.token.max(u64::try_from(transitions).unwrap_or_default());
        let token = last.checked_add(1).ok_or_else(|| problem::exhausted(claim.name()))?;
        if spec.holder_identity.as_deref() != Some(&**claim.holder()) {
            spec.lease_transitions = Some(transitions.saturating_add(1));
        }
        let now = MicroTime(Timestamp::now());
        spec.holder_identity = Some(claim.holder().to_string());
        spec.acquire_time = Some(now);
        self.extend(claim);
        let annotations = self.lease.metadata.annotations.get_or_insert_default();
        annotations.insert(TOKEN.to_owned(), token.to_string());
        self.token = token;
        Ok(FencingToken::new(token))
    }

    pub(crate) fn renew(&mut self, claim: &Claim) {
        self.extend(claim);
    }

    pub(crate) fn release(&mut self) {
        let spec = self.lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        // As client-go releases a lease, so that its electors don't wait either.
        spec.lease_duration_seconds = Some(1);
    }

    fn extend(&mut self, claim: &Claim) {
        let LeaseSpec { lease_duration_seconds, renew_time, .. } =
            self.lease.spec.get_or_insert_default();
        *lease_duration_seconds = Some(seconds(claim.ttl()));
        // For people who read it. It also makes each renewal a change: the server ignores a write that changes nothing.
        *renew_time = Some(MicroTime(Timestamp::now()));
    }
}

fn from_digits(digits: &str) -> Option<Memo> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    if rest.is_empty() { Memo::new(bytes?).ok() } else { None }
}

/// Checks whether an object can have this name.
pub(crate) fn check_name(name: &str) -> Result<(), LeaseError> {
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let parts = || name.split('.').map(str::as_bytes);
    let is_part = |it: &[u8]| {
        it.first().copied().is_some_and(is_plain)
            && it.last().copied().is_some_and(is_plain)
            && it.iter().all(|it| is_plain(*it) || *it == b'-')
    };
    let is_name = name.len() <= 253 && parts().all(is_part);
    if is_name { Ok(()) } else { Err(problem::name(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(transitions: i32, annotation: Option<&str>) -> Result<Record, LeaseError> {
        let mut lease = Record::empty("app").into_lease();
        lease.metadata.resource_version = Some("1".to_owned());
        lease.spec = Some(LeaseSpec { lease_transitions: Some(transitions), ..Default::default() });
        lease.metadata.annotations =
            annotation.map(|it| [(TOKEN.to_owned(), it.to_owned())].into());
        Record::new(lease)
    }

    #[test]
    fn a_token_is_higher_than_both_numbers() {
        let claim = Claim::new("app", "a", Duration::from_millis(1500));
        let next = |transitions, annotation| {
            let mut record = record(transitions, annotation).unwrap();
            record.grant(&claim).unwrap().get()
        };
        assert_eq!(next(0, None), 1);
        assert_eq!(next(7, None), 8);
        assert_eq!(next(7, Some("9")), 10);
        assert_eq!(next(9, Some("7")), 10);
        assert_eq!(next(i32::MAX, None), 1 << 31);
        let mut record = record(0, Some("18446744073709551615")).unwrap();
        assert!(record.grant(&claim).is_err());
        assert!(self::record(0, Some("x")).is_err());
    }

    #[test]
    fn a_memo_is_an_annotation_that_a_release_keeps() {
        let memo = Memo::new([0, b'a', 0xff]).unwrap();
        let mut record = record(7, Some("9")).unwrap();
        record.set_memo(&memo);
        record.release();
        let lease = record.into_lease();
        assert_eq!(lease.metadata.annotations.as_ref().unwrap()[MEMO], "0061ff");
        assert_eq!(*Record::new(lease).unwrap().memo(), memo);
        for bad in ["0", "0g", &"00".repeat(65)] {
            assert_eq!(from_digits(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_ttl_is_rounded_up() {
        let mut record = Record::empty("app");
        record.grant(&Claim::new("app", "a", Duration::from_millis(1500))).unwrap();
        assert_eq!(record.duration(), Duration::from_secs(2));
        record.renew(&Claim::new("app", "a", Duration::MAX));
        assert_eq!(record.lease.spec.unwrap().lease_duration_seconds, Some(i32::MAX));
    }

    #[test]
    fn a_name_is_one_of_an_object() {
        for name in ["app", "a", "7", "app.billing-2", &"a".repeat(253)] {
            check_name(name).unwrap();
        }
        for name in ["", ".", "a.", "A", "a b", "a/b", "-a", "a-", "a.-b", "ä", &"a".repeat(254)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
