//! Deep trees, in a thread with 2 MB of stack, like those of tests and of tokio's workers.

use verger::{Context, Lifecycle, Supervisor, SupervisorBuilder, worker};

/// A chain of supervisors with a worker at its end.
fn chain(depth: usize) -> SupervisorBuilder {
    let leaf = worker("leaf", async |ctx: Context| ctx.cancelled().await);
    let deepest = Supervisor::builder("s").child(leaf);
    (1..depth).fold(deepest, |below, _| Supervisor::builder("s").child(below))
}

fn in_a_thread_of_2_mb(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap();
    thread.join().unwrap();
}

fn starts_and_stops(depth: usize) {
    in_a_thread_of_2_mb(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async move {
            let tree = chain(depth);
            // Builders are cloned and dropped, too.
            drop(tree.clone());
            let app = tree.build().unwrap().start().await.unwrap();
            let status = app.status().await.unwrap();
            let mut node = &status.root;
            let mut levels = 0;
            while let [below] = &node.children[..] {
                assert_eq!(below.child.lifecycle, Lifecycle::Active);
                node = below;
                levels += 1;
            }
            assert_eq!(levels, depth);
            assert_eq!(node.child.path.as_str(), "s/".repeat(depth) + "leaf");
            // In full, because the children have the name of the root.
            let leaf = "s/".repeat(depth) + "leaf";
            assert_eq!(app.which_child(&leaf).await.unwrap().lifecycle, Lifecycle::Active);
            drop(status);

            app.kill(&leaf).await.unwrap();
            app.stop("done").await.unwrap();
        });
    });
}

#[test]
fn a_hundred_nested_supervisors_start_and_stop() {
    starts_and_stops(100);
}

#[test]
fn a_thousand_nested_supervisors_start_and_stop() {
    starts_and_stops(1_000);
}

#[tokio::test(start_paused = true)]
async fn a_tree_has_at_most_1024_levels_of_supervisors() {
    let text = "a supervisor named `s` is below 1024 others; a tree has at most 1024 levels of \
                supervisors, so give some of them a common supervisor";
    for depth in [1_025, 2_000] {
        assert_eq!(chain(depth).build().unwrap_err().to_string(), text);
    }
    let app = chain(1_023).build().unwrap().start().await.unwrap();
    let deepest = app.supervisor(&["s"; 1_023].join("/")).await.unwrap();
    let error = deepest.start_child(chain(2)).await.unwrap_err();
    assert!(error.to_string().ends_with(text), "{error}");
    let lower = chain(1).into_child().named("lower");
    assert_eq!(deepest.start_child(lower).await.unwrap().path().name(), "lower");
    app.stop("done").await.unwrap();
}

const TOO_DEEP: &str = "a supervisor named `s` is below 1024 others; a tree has at most 1024 levels \
                        of supervisors, so give some of them a common supervisor";

#[test]
fn ten_thousand_nested_builders_can_be_dropped_and_are_refused() {
    in_a_thread_of_2_mb(|| {
        drop(chain(10_000));
        drop(chain(10_000).into_child());
        let tree = chain(10_000);
        let clone = tree.clone();
        drop(tree);
        assert_eq!(clone.build().unwrap_err().to_string(), TOO_DEEP);
        let bush = (0..3).fold(Supervisor::builder("s"), |bush, _| bush.child(chain(10_000)));
        drop(bush);
        // Each is the fallback of the one above.
        let leaf = worker("leaf", async |ctx: Context| ctx.cancelled().await);
        let below = |below, _| Supervisor::builder("s").child(leaf.clone().fallback(below));
        drop((0..10_000).fold(Supervisor::builder("s"), below));

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let app = chain(1).build().unwrap().start().await.unwrap();
            let error = app.start_child(chain(10_000)).await.unwrap_err();
            assert!(error.to_string().ends_with(TOO_DEEP), "{error}");
            app.stop("done").await.unwrap();
        });
    });
}

#[test]
fn trees_that_were_built_before_count_as_levels() {
    in_a_thread_of_2_mb(|| {
        let around = |tree: Supervisor| Supervisor::builder("s").child(tree).build();
        let mut tree = chain(1_000).build().unwrap();
        for _ in 1_000..1_024 {
            tree = around(tree).unwrap();
        }
        assert_eq!(around(tree.clone()).unwrap_err().to_string(), TOO_DEEP);

        let as_fallback = worker("w", async |_ctx| ()).fallback(tree.clone());
        let error = Supervisor::builder("app").child(as_fallback).build().unwrap_err();
        assert_eq!(error.to_string(), TOO_DEEP);

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
            let error = app.start_child(tree).await.unwrap_err();
            assert!(error.to_string().ends_with(TOO_DEEP), "{error}");
            app.stop("done").await.unwrap();
        });
    });
}

#[test]
fn a_thousand_nested_supervisors_are_aborted_with_their_root() {
    in_a_thread_of_2_mb(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        let app = runtime.block_on(async { chain(1_000).build().unwrap().start().await.unwrap() });
        drop(runtime);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(app.wait()).unwrap_err();
        assert_eq!(error.to_string(), "`s` was aborted");
    });
}
