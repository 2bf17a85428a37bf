//! Tables of the chapters *Backoff* and *Jitter and ceilings*.

mod curves {
    use std::time::Duration;

    use verger::Backoff;
    use verger::policy::{BinarySlots, Jitter};

    const WAITS: &str = include_str!("../../../book/src/waits.md");

    /// The first eight waits, in seconds.
    fn waits(backoff: Backoff) -> Vec<f64> {
        let seconds = |wait: Duration| (wait.as_secs_f64() * 100.0).round() / 100.0;
        // The longest that can be drawn, where something is.
        backoff.delays().random(|| 0.999).map(seconds).take(8).collect()
    }

    /// Each curve has a row with its delays, and a line that says what it is for.
    #[test]
    fn seed1_20_each_curve_of_the_book_has_its_delays_and_its_purpose() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        let exponential = || Backoff::exponential(second, minute);
        let fibonacci = Backoff::fibonacci(second, minute);
        let slots = Backoff::binary_slots(BinarySlots::new(second));
        let curves = [
            ("Constant", "`constant(1 s)`", Backoff::constant(second)),
            ("Linear", "`linear(1 s, 2 s, 60 s)`", Backoff::linear(second, 2 * second, minute)),
            ("Fibonacci", "`fibonacci(1 s, 60 s)`", fibonacci),
            ("factor below 2", "`exponential(1 s, 60 s).factor(1.5)`", exponential().factor(1.5)),
            ("Exponential", "`exponential(1 s, 60 s)`", exponential()),
            ("Geometric", "`geometric(1 s, 60 s, 5)`", Backoff::geometric(second, minute, 5)),
            ("Binary slots", "`binary_slots(1 s)`, at most", slots),
        ];
        let (_, section) = WAITS.split_once("\n## Curves\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let expected = curves.clone().map(|(_, name, backoff)| {
            let waits =
                waits(backoff.jitter(Jitter::None)).into_iter().map(|wait| wait.to_string());
            format!("| {name} | {} |", waits.collect::<Vec<_>>().join(" | "))
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected);

        let purposes: Vec<_> = section.split("\n* ").skip(1).collect();
        for (name, ..) in curves {
            assert!(purposes.iter().any(|purpose| purpose.contains(name)), "what is {name} for?");
        }
        assert!(purposes[0].starts_with("**Exponential** for what has to *recover*"));
        assert!(purposes[1].starts_with("**Linear** for what has to *adapt*"));
    }

    /// Why every curve that grows has a maximum.
    #[test]
    fn seed1_20_without_a_maximum_the_waits_are_as_long_as_the_book_says() {
        let claim = "Doubled from 1 s without a bound, the thirteenth\ndelay is over an hour and the \
                     twenty-third over a month.";
        assert!(WAITS.contains(claim));
        let doubled = Backoff::exponential(Duration::from_secs(1), Duration::MAX);
        let waits: Vec<_> = doubled.jitter(Jitter::None).delays().take(23).collect();
        let (hour, month) = (Duration::from_secs(3_600), Duration::from_secs(31 * 86_400));
        assert!(waits[11] < hour && waits[12] > hour, "{:?}", &waits[11..=12]);
        assert!(waits[21] < month && waits[22] > month, "{:?}", &waits[21..=22]);
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
