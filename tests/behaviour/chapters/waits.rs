//! Tables of the chapters *Backoff* and *Jitter and ceilings*.

mod curves {
    use std::time::Duration;

    use verger::Backoff;
    use verger::policy::{BinarySlots, Jitter};

    /// The first eight waits, in seconds.
    fn waits(backoff: Backoff) -> Vec<f64> {
        let seconds = |wait: Duration| (wait.as_secs_f64() * 100.0).round() / 100.0;
        // The longest that can be drawn, where something is.
        backoff.delays().random(|| 0.999).map(seconds).take(8).collect()
    }

    #[test]
    fn curves_have_these_delays() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));

        let constant = Backoff::constant(second);
        assert_eq!(waits(constant), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        let linear = Backoff::linear(second, 2 * second, minute).jitter(Jitter::None);
        assert_eq!(waits(linear), [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]);
        let fibonacci = Backoff::fibonacci(second, minute).jitter(Jitter::None);
        assert_eq!(waits(fibonacci), [1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]);
        let gently = Backoff::exponential(second, minute).jitter(Jitter::None).factor(1.5);
        assert_eq!(waits(gently), [1.0, 1.5, 2.25, 3.38, 5.06, 7.59, 11.39, 17.09]);
        let exponential = Backoff::exponential(second, minute).jitter(Jitter::None);
        assert_eq!(waits(exponential), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        let geometric = Backoff::geometric(second, minute, 5).jitter(Jitter::None);
        assert_eq!(waits(geometric), [1.0, 2.27, 5.14, 11.67, 26.46, 60.0, 60.0, 60.0]);
        let slots = Backoff::binary_slots(BinarySlots::new(second));
        assert_eq!(waits(slots), [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 255.0]);
    }
}

mod bounds {
    use std::time::Duration;

    use verger::Backoff;
    use verger::policy::Jitter;

    /// Between which seconds the first and the tenth wait lie.
    fn bounds(backoff: &Backoff) -> [(f64, f64); 2] {
        [0, 9].map(|index| {
            let at = |drawn: f64| backoff.delay(index, &mut || drawn).unwrap().as_secs_f64();
            (at(0.0), (at(0.999_999) * 100.0).round() / 100.0)
        })
    }

    #[test]
    fn ceilings_and_floors_bound_the_jitter() {
        let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(10));
        let around = backoff.clone().jitter(Jitter::Symmetric(0.2));
        assert_eq!(bounds(&around), [(0.8, 1.2), (8.0, 10.0)]);
        assert_eq!(bounds(&around.clone().soft_cap()), [(0.8, 1.2), (8.0, 12.0)]);
        assert_eq!(bounds(&around.clone().hard_floor()), [(1.0, 1.2), (8.0, 10.0)]);
        assert_eq!(bounds(&around.clone().jitter_before_cap()), [(0.8, 1.2), (10.0, 10.0)]);

        let on_top = backoff.clone().jitter(Jitter::Additive(0.2));
        assert_eq!(bounds(&on_top), [(1.0, 1.2), (10.0, 10.0)]);
        assert_eq!(bounds(&on_top.clone().soft_cap()), [(1.0, 1.2), (10.0, 12.0)]);

        assert_eq!(bounds(&backoff.jitter(Jitter::Full)), [(0.0, 1.0), (0.0, 10.0)]);
    }
}

mod compounding {
    use std::time::Duration;

    use verger::Backoff;

    #[test]
    fn compounding_includes_the_jitter() {
        let backoff =
            Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)).jitter(0.5);
        let seconds = |backoff: Backoff| -> Vec<_> {
            backoff.delays().random(|| 0.5).map(|wait| wait.as_secs_f64()).take(4).collect()
        };

        assert_eq!(seconds(backoff.clone()), [1.25, 2.5, 5.0, 10.0]);
        assert_eq!(seconds(backoff.compounding()), [1.25, 3.125, 7.8125, 19.53125]);
    }
}

#[cfg(feature = "config-file")]
mod reload {
    use std::time::Duration;

    use verger::config::Config;
    use verger::policy::Jitter;
    use verger::{Backoff, Context, Exit, Supervisor, worker};

    async fn broken(_ctx: Context) -> Exit {
        Err("connection refused".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_that_was_drawn_stays() -> Result<(), Box<dyn std::error::Error>> {
        let hour = Backoff::constant(Duration::from_secs(3600)).jitter(Jitter::None);
        let app = Supervisor::builder("app").child(worker("poll", broken).backoff(hour)).build()?;
        let app = app.start().await?;
        tokio::time::sleep(Duration::from_millis(1)).await;

        let file =
            "[poll.restart]\nbackoff = { curve = \"constant\", delay = \"5s\", jitter = \"none\" }";
        app.apply(app.plan(&Config::from_toml(file, "app.toml")).await?).await?;
        let delay = async || app.which_child("poll").await.unwrap().next.unwrap().delay;
        assert_eq!(delay().await, Duration::from_secs(3600));

        app.resume("poll").await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(delay().await, Duration::from_secs(5));
        app.stop("the listing is over").await?;
        Ok(())
    }
}
