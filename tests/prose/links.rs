//! A link to a heading of the book or the README names a heading that is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{assert_none, files, read};

/// Returns the lines of a page outside of its code blocks, with their numbers.
fn lines(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(page.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the ids of a page's headings, which mdBook writes as follows: the text in lower case, with `-` for spaces, and of other
/// signs only `-` and `_`. An id that is taken gets `-1`, `-2`, and so on. `{#id}` replaces the text.
fn ids(page: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for (_, line) in lines(page) {
        let text = line.trim_start_matches('#');
        if text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let explicit = text.trim_end().strip_suffix('}').and_then(|text| text.split_once("{#"));
        let id = match explicit {
            Some((_, id)) => id.to_owned(),
            None => id_of(&without_targets(text)),
        };
        let numbered = (1..).map(|number| format!("{id}-{number}"));
        let free = [id.clone()].into_iter().chain(numbered).find(|it| !ids.contains(it));
        ids.extend(free);
    }
    ids
}

fn id_of(text: &str) -> String {
    let known = |c: char| match c {
        _ if c.is_whitespace() => Some('-'),
        _ => (c.is_alphanumeric() || c == '-' || c == '_').then_some(c),
    };
    text.trim().to_lowercase().chars().filter_map(known).collect()
}

/// Returns a heading with only the texts of its links.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once(')')).map(|(_, rest)| rest).collect::<String>()
}

/// Returns the targets of all links of a page, with their lines.
fn targets(page: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in lines(page) {
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        targets.extend(inline.map(|target| (number, target)));
        // `[name]: target`
        let defined = line.split_once("]: ").filter(|_| line.starts_with('['));
        targets.extend(defined.map(|(_, target)| (number, target)));
    }
    targets
}

/// Returns the path that a link in `page` leads to.
fn resolve(page: &str, link: &str) -> String {
    if link.is_empty() {
        return page.to_owned();
    }
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns what is wrong with the links to headings, in pages by their paths.
fn dead_links(pages: &BTreeMap<String, String>) -> Vec<String> {
    let ids: BTreeMap<_, _> = pages.iter().map(|(path, text)| (path, ids(text))).collect();
    let mut dead = Vec::new();
    for (page, text) in pages {
        for (line, target) in targets(text) {
            let Some((link, id)) = target.split_once('#').filter(|_| !target.contains("://"))
            else {
                continue;
            };
            let to = resolve(page, link);
            if !to.ends_with(".md") {
                continue;
            }
            match ids.get(&to) {
                Some(ids) if ids.contains(id) => {}
                Some(ids) => {
                    let ids = ids.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                    dead.push(format!(
                        "{page}:{line}: `{target}`: no such heading; write one of {ids}"
                    ));
                }
                None => dead.push(format!("{page}:{line}: `{target}`: there is no page {to}")),
            }
        }
    }
    dead
}

#[test]
fn each_link_to_a_heading_leads_to_one() {
    let pages = files("book/src", &["md"]).into_iter().chain(["README.md".to_owned()]);
    assert_none(&dead_links(&pages.map(|path| (path.clone(), read(&path))).collect()));
}

#[test]
fn the_id_of_a_heading_is_that_of_mdbook() {
    let page = "# A child's `on_exit`, *late*\n## [What](a.md#b) happens?\n## Same\n### same\n## Set {#own-id}\n#no\n```sh\n# code\n```\n";
    let expected = ["a-childs-on_exit-late", "own-id", "same", "same-1", "what-happens"];
    assert_eq!(ids(page).into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_dead_link_is_found_in_its_own_page_and_in_another_folder() {
    let page =
        "# Top\n[a](#top) [b](#bottom)\n[c](sub/other.md#there) and [d](sub/other.md#gone)\n";
    let other = "# There\n[e](../page.md#top), [f](../none.md#x), [g](https://it.example/page.md#h)\n[h]: ../page.md#gone\n";
    let pages = [("book/page.md", page), ("book/sub/other.md", other)];
    let dead = dead_links(&pages.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    assert_eq!(
        dead,
        [
            "book/page.md:2: `#bottom`: no such heading; write one of top",
            "book/page.md:3: `sub/other.md#gone`: no such heading; write one of there",
            "book/sub/other.md:2: `../none.md#x`: there is no page book/none.md",
            "book/sub/other.md:3: `../page.md#gone`: no such heading; write one of top",
        ]
    );
}
