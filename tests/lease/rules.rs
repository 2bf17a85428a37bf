//! The rules of `LeaseEngine`, for two engines of one store. `testing::assert_lease_rules` checks one engine, and needs an
//! expiry.

use verger::lease::{FencingToken, LeaseEngine, Released, Renewed};

use crate::{claim, granted, held_by};

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
