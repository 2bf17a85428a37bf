use tokio::time::{Instant, advance, timeout};

use super::*;

const TTL: Duration = Duration::from_secs(15);

fn claim(holder: &str) -> Claim {
    Claim::new("a", holder, TTL)
}

fn history(leases: &MemoryLeases) -> Vec<String> {
    leases.history("a").iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lease_expires_exactly_one_ttl_after_the_last_renewal() {
    let leases = MemoryLeases::new();
    leases.acquire(&claim("x")).await.unwrap();
    advance(Duration::from_secs(10)).await;
    leases.renew(&claim("x"), FencingToken::new(1)).await.unwrap();
    advance(TTL - Duration::from_millis(1)).await;
    assert_eq!(leases.holder("a").as_deref(), Some("x"));
    assert_eq!(leases.token("a"), Some(FencingToken::new(1)));
    advance(Duration::from_millis(1)).await;
    assert_eq!((leases.holder("a"), leases.token("a")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn each_fault_hides_the_answer_or_the_request() {
    let leases = MemoryLeases::new();
    let began = Instant::now();
    leases.set_unreachable(true);
    let error = leases.acquire(&claim("x")).await.unwrap_err();
    assert_eq!(error.to_string(), "the store is unreachable");
    leases.set_unreachable(false);

    leases.lose_answers(true);
    let error = leases.acquire(&claim("x")).await.unwrap_err();
    assert_eq!(error.to_string(), "the answer was lost");
    leases.lose_answers(false);
    assert_eq!(leases.holder("a").as_deref(), Some("x"));

    leases.hang(true);
    let x = claim("x");
    let hanging = leases.release(&x, FencingToken::new(1));
    assert!(timeout(Duration::from_secs(3_600), hanging).await.is_err());
    leases.hang(false);
    advance(Duration::from_secs(1)).await;

    leases.delay(Duration::from_secs(3));
    let acquired = leases.acquire(&claim("y")).await.unwrap();
    assert_eq!(acquired, Acquired::Granted(FencingToken::new(2)));
    assert_eq!(began.elapsed(), Duration::from_secs(3_604));

    assert_eq!(
        history(&leases),
        [
            "x: acquire -> unreachable",
            "x: acquire -> granted 1 (not answered)",
            "x: release 1 -> hangs",
            "y: acquire -> granted 2",
        ]
    );
    let sent: Vec<_> = leases.history("a").iter().map(|event| event.at - began).collect();
    assert_eq!(sent.iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 0, 0, 3_601]);
}

#[tokio::test(start_paused = true)]
async fn clones_share_the_faults_and_clients_share_the_store_only() {
    let leases = MemoryLeases::new();
    let (clone, client) = (leases.clone(), leases.client());
    leases.set_unreachable(true);
    assert!(clone.acquire(&claim("x")).await.is_err());
    assert!(client.acquire(&claim("y")).await.is_ok());
    assert_eq!(leases.holder("a").as_deref(), Some("y"));
}

#[tokio::test(start_paused = true)]
async fn an_outsider_has_a_lease_that_was_taken_away_until_it_is_expired() {
    let leases = MemoryLeases::new();
    let (x, token) = (claim("x"), FencingToken::new(1));
    leases.acquire(&x).await.unwrap();
    leases.take_away("a");
    advance(Duration::from_secs(3_600)).await;
    let held = Acquired::Held { by: Some("an outsider".into()) };
    assert_eq!(leases.acquire(&x).await.unwrap(), held);
    assert_eq!(leases.renew(&x, token).await.unwrap(), Renewed::Lost);
    assert_eq!(leases.release(&x, token).await.unwrap(), Released::NotHeld);

    leases.expire("a");
    let granted = Acquired::Granted(FencingToken::new(3));
    assert_eq!(leases.acquire(&x).await.unwrap(), granted);
    leases.expire("a");
    assert_eq!(leases.renew(&x, FencingToken::new(3)).await.unwrap(), Renewed::Lost);
    assert_eq!(
        history(&leases),
        [
            "x: acquire -> granted 1",
            "x: acquire -> held by an outsider",
            "x: renew 1 -> lost",
            "x: release 1 -> not held",
            "x: acquire -> granted 3",
            "x: renew 3 -> lost",
        ]
    );
}

#[test]
fn a_resource_accepts_no_token_below_the_highest_of_this_lease() {
    let leases = MemoryLeases::new();
    let accepts = |name, token| leases.accepts(name, FencingToken::new(token));
    assert!(accepts("a", 5) && accepts("a", 5) && !accepts("a", 4));
    assert!(accepts("b", 1), "a different lease");
    assert!(accepts("a", 6) && !accepts("a", 5));
}

#[tokio::test(start_paused = true)]
async fn a_look_shows_the_holder_and_how_long_it_has_the_lease() {
    let leases = MemoryLeases::new();
    let look = async || LeaseEngine::holder(&leases, "a").await.unwrap();
    assert_eq!(look().await, LeaseRecord::free());
    leases.acquire(&claim("x")).await.unwrap();
    advance(Duration::from_secs(10)).await;
    let held = LeaseRecord::held().with_holder("x").with_token(FencingToken::new(1));
    assert_eq!(look().await, held.with_remaining(Duration::from_secs(5)));
    advance(Duration::from_secs(5)).await;
    assert_eq!(look().await, LeaseRecord::free());

    leases.take_away("a");
    assert_eq!(look().await.remaining(), None, "an outsider has it until it is expired");
    leases.set_unreachable(true);
    assert!(LeaseEngine::holder(&leases, "a").await.is_err());
    assert_eq!(history(&leases), ["x: acquire -> granted 1"], "a look is no request");
}

#[tokio::test(start_paused = true)]
async fn a_memo_is_written_by_the_holder_and_stays() {
    let (leases, memo) = (MemoryLeases::new(), Memo::new("17").unwrap());
    let write = async |holder, token| {
        leases.write_memo(&claim(holder), FencingToken::new(token), &memo).await.unwrap()
    };
    leases.acquire(&claim("x")).await.unwrap();
    assert_eq!(write("y", 1).await, MemoWrite::NotHeld);
    assert_eq!(write("x", 2).await, MemoWrite::NotHeld);
    assert!(leases.memo("a").is_empty());
    assert_eq!(write("x", 1).await, MemoWrite::Stored);
    leases.expire("a");
    assert_eq!((leases.memo("a"), leases.holder("a")), (memo, None));
    assert_eq!(write("x", 1).await, MemoWrite::NotHeld);
    assert_eq!(
        history(&leases),
        [
            "x: acquire -> granted 1",
            "y: write memo 1 -> not held",
            "x: write memo 2 -> not held",
            "x: write memo 1 -> stored",
            "x: write memo 1 -> not held",
        ]
    );
}
