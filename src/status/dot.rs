//! A [`Status`] as a graph for Graphviz.
//!
//! # Invariants
//!
//! 1. The file depends on the tree only: the same snapshot is the same text, and a child that is added adds
//!    lines.
//! 2. Each child has one node, named by its path, and one edge from its supervisor.

use super::escape::Dot;
use super::look::{Look, Tone};
use super::words::{self, cut};
use crate::status::{Node, Status};

/// The width to which a line of a label is cut.
const LINE: usize = 40;

impl Status {
    /// Returns the snapshot as a graph in DOT, the language of Graphviz, with a final line break.
    ///
    /// Each child is a node, which is named by its path and has an edge from its supervisor. The label
    /// has the facts that the text has (see [`Status`]). The state of a child shows as a word, by shape and
    /// by colour. A dotted edge leads from a child to a sibling that it waits for.
    ///
    /// ```sh
    /// dot -Tsvg tree.dot > tree.svg
    /// ```
    ///
    /// Graphviz is slow for thousands of children. [`svg`](Self::svg) draws them without a layout.
    ///
    /// ```
    /// # use verger::{Context, Supervisor, worker};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// let dot = app.status().await?.dot();
    /// assert!(dot.contains(r#""app" -> "app/db";"#));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline]
    pub fn dot(&self) -> String {
        let mut dot = String::from(
            "digraph verger {\n\
             \x20 graph [rankdir=LR, bgcolor=transparent];\n\
             \x20 node [fontname=\"sans-serif\", fontsize=11, style=filled, fontcolor=\"#1f2328\"];\n\
             \x20 edge [color=\"#818b98\", arrowsize=0.6];\n",
        );
        for visit in self.walk() {
            node(&mut dot, visit.node, visit.depth == 0);
            if let Some(above) = &visit.above {
                let (above, path) = (Dot(&above.node.child.path), Dot(&visit.node.child.path));
                dot.push_str(&format!("  \"{above}\" -> \"{path}\";\n"));
            }
            for sibling in visit.waits_for() {
                let (path, sibling) = (Dot(&visit.node.child.path), Dot(&sibling.child.path));
                let style = "style=dotted, constraint=false";
                dot.push_str(&format!("  \"{path}\" -> \"{sibling}\" [{style}];\n"));
            }
        }
        dot + "}\n"
    }
}

#[inline]
fn node(dot: &mut String, node: &Node, is_root: bool) {
    let look = Look::of(&node.child);
    let (shape, style) = shape(look);
    let (fill, line) = colours(look.tone());
    dot.push_str(&format!("  \"{}\" [shape={shape}, style=\"{style}\"", Dot(&node.child.path)));
    dot.push_str(&format!(", fillcolor=\"{fill}\", color=\"{line}\", label=\""));
    for (index, text) in words::label(node, is_root).iter().enumerate() {
        let line_break = if index == 0 { "" } else { "\\n" };
        dot.push_str(&format!("{line_break}{}", Dot(cut(text, LINE))));
    }
    dot.push_str("\"];\n");
}

/// The shape of a node and its style.
#[inline]
fn shape(look: Look) -> (&'static str, &'static str) {
    match look {
        Look::Waiting => ("box", "filled,rounded,dotted"),
        Look::Activating => ("box", "filled,rounded,dashed"),
        Look::Active => ("box", "filled,rounded"),
        Look::Unhealthy => ("octagon", "filled,dashed"),
        Look::Errored => ("octagon", "filled,bold"),
        Look::Restarting => ("hexagon", "filled"),
        Look::Deactivating => ("box", "filled,dashed"),
        Look::Stopped => ("box", "filled"),
        Look::Held => ("folder", "filled"),
    }
}

/// The colours of the area and the line.
#[inline]
fn colours(tone: Tone) -> (&'static str, &'static str) {
    match tone {
        Tone::Good => ("#dafbe1", "#1a7f37"),
        Tone::Busy => ("#fff8c5", "#9a6700"),
        Tone::Bad => ("#ffebe9", "#cf222e"),
        Tone::Off => ("#eff2f5", "#59636e"),
    }
}

#[cfg(test)]
mod tests {
    use crate::status::samples;

    #[test]
    #[rustfmt::skip]
    fn each_child_is_a_node_with_an_edge_from_its_supervisor() {
        let dot = samples::service().dot();

        assert_eq!(
            dot.lines().collect::<Vec<_>>(),
            [
                r##"digraph verger {"##,
                r##"  graph [rankdir=LR, bgcolor=transparent];"##,
                r##"  node [fontname="sans-serif", fontsize=11, style=filled, fontcolor="#1f2328"];"##,
                r##"  edge [color="#818b98", arrowsize=0.6];"##,
                r##"  "app" [shape=box, style="filled,rounded", fillcolor="#dafbe1", color="#1a7f37", label="app\none_for_one 0/5 in 7m\nactive, up 2h15m"];"##,
                r##"  "app/db" [shape=box, style="filled,rounded", fillcolor="#dafbe1", color="#1a7f37", label="db\npermanent\nactive, up 2h15m\n\"pool 8/10\""];"##,
                r##"  "app" -> "app/db";"##,
                r##"  "app/ingest" [shape=box, style="filled,rounded", fillcolor="#dafbe1", color="#1a7f37", label="ingest\nrest_for_one 5/5 in 7m AT LIMIT\nactive, up 2h15m"];"##,
                r##"  "app" -> "app/ingest";"##,
                r##"  "app/ingest/writer" [shape=box, style="filled,rounded", fillcolor="#dafbe1", color="#1a7f37", label="writer\npermanent\nactive, up 38s\nrestarts=2\n12/64 messages\nlast: panicked: index out of bounds"];"##,
                r##"  "app/ingest" -> "app/ingest/writer";"##,
                r##"  "app/ingest/mqtt" [shape=hexagon, style="filled", fillcolor="#fff8c5", color="#9a6700", label="mqtt\npermanent\nRESTARTING, retry in 4.2s (attempt 4)\nrestarts=3\nlast: activation failed: no route to ho…"];"##,
                r##"  "app/ingest" -> "app/ingest/mqtt";"##,
                r##"  "app/cache" [shape=octagon, style="filled,dashed", fillcolor="#ffebe9", color="#cf222e", label="cache\npermanent\nactive, up 1m\nUNHEALTHY"];"##,
                r##"  "app" -> "app/cache";"##,
                r##"  "app/feed" [shape=octagon, style="filled,bold", fillcolor="#ffebe9", color="#cf222e", label="feed\npermanent\nERRORED, for 0s\nparked\nlast: failed: no such table"];"##,
                r##"  "app" -> "app/feed";"##,
                r##"  "app/migrate" [shape=box, style="filled", fillcolor="#eff2f5", color="#59636e", label="migrate\npermanent\nstopped, for 2h15m\nlast: ended normally"];"##,
                r##"  "app" -> "app/migrate";"##,
                r##"  "app/http" [shape=box, style="filled,rounded,dashed", fillcolor="#fff8c5", color="#9a6700", label="http\npermanent\nactivating, for 0s"];"##,
                r##"  "app" -> "app/http";"##,
                r##"  "app/search" [shape=box, style="filled,rounded,dotted", fillcolor="#eff2f5", color="#59636e", label="search\npermanent\ndiscovered, for 0s\nfor feed, http"];"##,
                r##"  "app" -> "app/search";"##,
                r##"  "app/search" -> "app/feed" [style=dotted, constraint=false];"##,
                r##"  "app/search" -> "app/http" [style=dotted, constraint=false];"##,
                r##"  "app/old" [shape=box, style="filled,dashed", fillcolor="#fff8c5", color="#9a6700", label="old\npermanent\ndeactivating, for 0s"];"##,
                r##"  "app" -> "app/old";"##,
                r##"  "app/report" [shape=folder, style="filled", fillcolor="#eff2f5", color="#59636e", label="report\npermanent\nstopped, for 0s\n2/5 in 1m\nheld by operator: disk swap"];"##,
                r##"  "app" -> "app/report";"##,
                r##"}"##,
            ]
        );
        assert!(dot.ends_with("}\n"));
    }

    #[test]
    #[rustfmt::skip]
    fn a_hostile_text_stays_in_its_label() {
        let dot = samples::hostile().dot();
        let lines: Vec<_> = dot.lines().collect();

        assert_eq!(
            lines[lines.len() - 3..],
            [
                r##"  "app/\"<b>&amp;\\" [shape=box, style="filled,rounded", fillcolor="#dafbe1", color="#1a7f37", label="\"<b>&amp;\\\npermanent\nactive, up 0s\n\"\"<script>alert('&amp;')</script>\\ [31m %%{…\nlast: panicked: \"<script>alert('&amp;')</sc…"];"##,
                r##"  "app" -> "app/\"<b>&amp;\\";"##,
                r##"}"##,
            ]
        );
    }

    #[test]
    fn a_deep_or_wide_tree_is_a_graph_too() {
        samples::in_a_small_stack(|| {
            let dot = samples::deep(1_000).dot();
            assert_eq!(dot.lines().count(), 5 + 1_001 + 1_000);
            let dot = samples::wide(10_000).dot();
            assert_eq!(dot.matches("\"app\" -> \"app/conn#").count(), 10_000);
        });
    }
}
