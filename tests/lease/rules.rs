//! The rules of `LeaseEngine`, for any engine.

use verger::lease::{Claim, FencingToken, LeaseEngine, Released, Renewed};

use crate::{TTL, claim, granted, granted_in_time, held_by};

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
    assert!(granted(one, &a).await > next);
}

/// Checks rule 2, and rules 3 and 4 after an expiry.
pub(crate) async fn check_expiry(one: &impl LeaseEngine, two: &impl LeaseEngine, name: &str) {
    let (a, b) = (claim(name, "a"), claim(name, "b"));
    let began = std::time::Instant::now();
    let first = granted(one, &a).await;
    tokio::time::sleep(TTL / 2).await;
    let renewed = std::time::Instant::now();
    assert_eq!(one.renew(&a, first).await.unwrap(), Renewed::Extended);

    let second = granted_in_time(two, &b).await;
    assert!(renewed.elapsed() >= TTL, "the renewal counts: {:?}", began.elapsed());
    assert!(renewed.elapsed() < 2 * TTL, "{:?}", renewed.elapsed());
    assert!(second > first);
    assert_eq!(one.renew(&a, first).await.unwrap(), Renewed::Lost);
    assert_eq!(one.release(&a, first).await.unwrap(), Released::NotHeld);
    assert_eq!(one.acquire(&a).await.unwrap(), held_by("b"));

    // A late renewal is refused, also if no other holder has asked meanwhile.
    let short = Claim::new(format!("{name}/short"), "a", TTL / 6);
    let token = granted(one, &short).await;
    tokio::time::sleep(TTL / 3).await;
    assert_eq!(one.renew(&short, token).await.unwrap(), Renewed::Lost);
    assert_eq!(one.release(&short, token).await.unwrap(), Released::NotHeld);
    assert!(granted(one, &short).await > token);
}
