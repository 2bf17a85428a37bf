//! Several keepers of one lease, whose ways to the store fail at random.

use super::*;

/// When a holder was running: from its grant until its grace was over.
#[derive(Debug)]
struct Running {
    from: Instant,
    until: Instant,
}

/// Keeps one lease again and again, and ends it in order now and then.
async fn hold(lease: Lease, holder: Arc<str>, seed: u64, running: Arc<Mutex<Vec<Running>>>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let grace = lease.times.grace();
    loop {
        let (end, ended) = oneshot::channel();
        let granted = Mutex::new(None);
        let report = |change| match change {
            LeaseChange::Granted(_) => *granted.lock() = Some(Instant::now()),
            // The child may run until its grace is over.
            LeaseChange::Lost(_) => {
                let from = granted.lock().take().unwrap();
                running.lock().push(Running { from, until: Instant::now() + grace });
            }
            LeaseChange::Standby { .. } => {}
        };
        let mut end = Some(end);
        let mut kept =
            std::pin::pin!(keep(lease.clone(), child(), Arc::clone(&holder), ended, report));
        let stops = sleep(Duration::from_secs(random.u64(1..120)));
        let is_over = tokio::select! {
            () = &mut kept => true,
            () = stops => false,
        };
        if is_over {
            // The child ends at the last moment, and then the lease is requested again.
            sleep(grace).await;
            continue;
        }
        // The child has ended, and the lease is released after that.
        if let Some(from) = granted.lock().take() {
            running.lock().push(Running { from, until: Instant::now() });
        }
        let how = if random.bool() { LeaseEnd::Release } else { LeaseEnd::Abandon };
        let _ = end.take().map(|end| end.send(how));
        kept.await;
    }
}

/// Breaks and heals the way to the store.
async fn disturb(client: MemoryLeases, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        client.set_unreachable(random.u8(..5) == 0);
        client.lose_answers(random.u8(..5) == 0);
        client.hang(random.u8(..5) == 0);
        client.delay(millis(random.u64(0..4_000)) * u32::from(random.bool()));
        sleep(millis(random.u64(1..20_000))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_two_holders_run_at_once_whatever_happens_to_their_requests() {
    let mut total = 0;
    for seed in 0..10 {
        let (leases, running) = (MemoryLeases::new(), Arc::new(Mutex::new(Vec::new())));
        let mut tasks = tokio::task::JoinSet::new();
        for holder in 0..3_u64 {
            let (client, seed) = (leases.client(), seed * 10 + holder);
            let lease = Lease::new("a", client.clone());
            let holder = holder.to_string().into();
            tasks.spawn(hold(lease, holder, seed, Arc::clone(&running)));
            tasks.spawn(disturb(client, seed));
        }
        sleep(secs(900)).await;
        tasks.shutdown().await;

        let mut running = std::mem::take(&mut *running.lock());
        running.sort_by_key(|running| running.from);
        for pair in running.windows(2) {
            assert!(pair[0].until <= pair[1].from, "seed {seed}: {pair:?}");
        }
        total += running.len();
        let granted = leases.history("a").into_iter().filter_map(|event| match event.effect {
            crate::testing::LeaseEffect::Granted(token) => Some(token),
            _ => None,
        });
        assert!(granted.collect::<Vec<_>>().is_sorted_by(|a, b| a < b), "tokens grow");
    }
    assert!(total > 60, "only {total} times was the lease held");
}
