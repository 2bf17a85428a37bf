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
            let leaf = "s/".repeat(depth - 1) + "leaf";
            assert_eq!(app.which_child(&leaf).await.unwrap().lifecycle, Lifecycle::Active);
            drop(status);

            app.kill_child(&leaf).await.unwrap();
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
    let deepest = app.supervisor(&["s"; 1_022].join("/")).await.unwrap();
    let error = deepest.start_child(chain(2)).await.unwrap_err();
    assert!(error.to_string().ends_with(text), "{error}");
    let lower = chain(1).into_child().named("lower");
    assert_eq!(deepest.start_child(lower).await.unwrap().path().name(), "lower");
    app.stop("done").await.unwrap();
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
