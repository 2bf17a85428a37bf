//! The rules of `LeaseEngine`, for two engines of one store. `testing::assert_lease_rules` checks one engine, and needs an
//! expiry.

use verger::lease::{FencingToken, LeaseEngine, LeaseRecord, Memo, MemoWrite, Released, Renewed};

use super::requests::{claim, granted, held_by};

/// Checks all rules but the expiry, with two engines of the same store.
pub(crate) async fn check(one: &impl LeaseEngine, two: &impl LeaseEngine, name: &str) {
    let (a, b) = (claim(name, "a"), claim(name, "b"));

    // Rule 1.
    let first = granted(one, &a).await;
    assert_eq!(two.acquire(&b).await.unwrap(), held_by("a"));
    assert_eq!(one.acquire(&b).await.unwrap(), held_by("a"));
    assert_eq!(one.renew(&a, first).await.unwrap(), Renewed::Extended);
    assert_eq!(two.acquire(&b).await.unwrap(), held_by("a"));

    // A different lease is independent of this one.
    let other = claim(&format!("{name}/other"), "b");
    let of_other = granted(two, &other).await;
    assert_eq!(two.release(&other, of_other).await.unwrap(), Released::Released);

    // Rule 5, and rule 4 for the older token.
    let again = granted(one, &a).await;
    assert!(again > first);
    assert_eq!(one.renew(&a, first).await.unwrap(), Renewed::Lost);
    assert_eq!(one.release(&a, first).await.unwrap(), Released::NotHeld);
    assert_eq!(one.renew(&a, again).await.unwrap(), Renewed::Extended);
    assert_eq!(two.acquire(&b).await.unwrap(), held_by("a"), "an older token has no effect");

    // Rule 4 for tokens that were never granted, and other holders.
    for token in [0, again.get() + 1, u64::MAX] {
        let token = FencingToken::new(token);
        assert_eq!(one.renew(&a, token).await.unwrap(), Renewed::Lost, "{token}");
        assert_eq!(one.release(&a, token).await.unwrap(), Released::NotHeld, "{token}");
    }
    assert_eq!(two.renew(&b, again).await.unwrap(), Renewed::Lost);
    assert_eq!(two.release(&b, again).await.unwrap(), Released::NotHeld);
    assert_eq!(two.acquire(&b).await.unwrap(), held_by("a"));

    // Rule 3, after a release.
    assert_eq!(one.release(&a, again).await.unwrap(), Released::Released);
    assert_eq!(one.release(&a, again).await.unwrap(), Released::NotHeld);
    assert_eq!(one.renew(&a, again).await.unwrap(), Renewed::Lost);
    let next = granted(two, &b).await;
    assert!(next > again);
    assert_eq!(one.acquire(&a).await.unwrap(), held_by("b"));
    assert_eq!(two.release(&b, next).await.unwrap(), Released::Released);
    let last = granted(one, &a).await;
    assert!(last > next);
    check_memo(one, two, name, last).await;
}

/// Checks the rules 6 and 7. `a` has the lease with this token, also afterwards.
async fn check_memo(
    one: &impl LeaseEngine,
    two: &impl LeaseEngine,
    name: &str,
    token: FencingToken,
) {
    let (a, b) = (claim(name, "a"), claim(name, "b"));
    let free = two.holder(&format!("{name}/never")).await.unwrap();
    assert_eq!(free, LeaseRecord::free());
    // Whoever asks.
    for engine in [one as &dyn LeaseEngine, two] {
        let record = engine.holder(name).await.unwrap();
        assert_eq!((record.holder().map(|it| &**it), record.token()), (Some("a"), Some(token)));
        assert!(record.is_held() && record.memo().is_empty(), "{record:?}");
    }

    let [first, second] = ["first", "a second memo"].map(|text| Memo::new(text).unwrap());
    let shown = async |memo| {
        assert_eq!(*one.holder(name).await.unwrap().memo(), memo);
        assert_eq!(*two.holder(name).await.unwrap().memo(), memo);
    };
    for memo in [Memo::new([0xff; 64]).unwrap(), second, first] {
        assert_eq!(one.write_memo(&a, token, &memo).await.unwrap(), MemoWrite::Stored);
        shown(memo).await;
    }
    for (claim, token) in
        [(&b, token), (&a, FencingToken::new(0)), (&a, FencingToken::new(u64::MAX))]
    {
        let written = two.write_memo(claim, token, &second).await.unwrap();
        assert_eq!(written, MemoWrite::NotHeld, "{claim:?} {token}");
    }
    shown(first).await;

    // After a release, and after the next grant.
    assert_eq!(one.release(&a, token).await.unwrap(), Released::Released);
    assert_eq!(one.write_memo(&a, token, &second).await.unwrap(), MemoWrite::NotHeld);
    assert_eq!(two.holder(name).await.unwrap(), LeaseRecord::free().with_memo(first));
    let next = granted(two, &b).await;
    assert_eq!(one.write_memo(&a, token, &second).await.unwrap(), MemoWrite::NotHeld);
    shown(first).await;
    assert_eq!(two.write_memo(&b, next, &second).await.unwrap(), MemoWrite::Stored);
    assert_eq!(two.release(&b, next).await.unwrap(), Released::Released);
    granted(one, &a).await;
    shown(second).await;
    let of_other = one.holder(&format!("{name}/other")).await.unwrap();
    assert!(of_other.memo().is_empty(), "each lease has its own memo");
}
