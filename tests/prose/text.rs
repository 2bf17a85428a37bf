//! Prose as paragraphs of words, each word with its line. Code is left out.

/// A word in prose.
pub(crate) struct Word<'a> {
    written: &'a str,
    /// Without the signs around it.
    bare: &'a str,
    /// Whether one of these signs separates it from the next word.
    is_separated: bool,
    line: usize,
}

impl<'a> Word<'a> {
    fn new(written: &'a str, line: usize) -> Self {
        let bare = written.trim_matches(|c: char| !c.is_alphanumeric());
        let behind = written.rsplit(bare).next().unwrap_or_default();
        Self { written, bare, is_separated: bare.is_empty() || behind.contains(SEPARATORS), line }
    }
}

const SEPARATORS: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', '…'];

/// Splits Markdown into paragraphs. A heading, an item of a list and a row of a table are one each.
pub(crate) fn of_markdown(page: &str) -> Vec<Vec<Word<'_>>> {
    paragraphs(page.lines().map(Some))
}

/// Returns the comments of a source file, as paragraphs.
pub(crate) fn of_comments(source: &str) -> Vec<Vec<Word<'_>>> {
    paragraphs(source.lines().map(|line| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some(comment.trim_start_matches(['/', '!']))
    }))
}

/// Splits lines into paragraphs. `None` is a line that isn't prose, after which another text begins.
fn paragraphs<'a>(lines: impl Iterator<Item = Option<&'a str>>) -> Vec<Vec<Word<'a>>> {
    let mut paragraphs = vec![Vec::new()];
    let mut is_code = false;
    for (number, line) in (1..).zip(lines) {
        is_code &= line.is_some();
        let line = line.unwrap_or_default().trim_start();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || begins_paragraph(line) {
            paragraphs.push(Vec::new());
        }
        if !is_code && !is_fence {
            let words = line.split_whitespace().map(|word| Word::new(word, number));
            paragraphs.last_mut().expect("there is one from the beginning").extend(words);
        }
        if line.starts_with('#') {
            paragraphs.push(Vec::new());
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

fn begins_paragraph(line: &str) -> bool {
    let item = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.is_empty()
        || line.starts_with(['|', '#', '<', '>'])
        || line.starts_with("* ")
        || line.starts_with("- ")
        || (item.len() < line.len() && item.starts_with(". "))
}

/// Returns the lines on which a phrase begins. In a phrase, `*` is any word, and a full stop is any sign that separates words.
pub(crate) fn find(phrase: &str, paragraphs: &[Vec<Word<'_>>]) -> Vec<usize> {
    let (phrase, is_last) = phrase.strip_suffix('.').map_or((phrase, false), |it| (it, true));
    let phrase: Vec<_> = phrase.split(' ').collect();
    let is_wanted = |(word, wanted): (&Word<'_>, &&str)| {
        *wanted == "*" || word.bare.eq_ignore_ascii_case(wanted)
    };
    let is_found = |words: &&[Word<'_>]| {
        let (last, others) = words.split_last().expect("a phrase has a word");
        words.iter().zip(&phrase).all(is_wanted)
            && !others.iter().any(|word| word.is_separated)
            && (last.is_separated || !is_last)
    };
    let windows = paragraphs.iter().flat_map(|words| words.windows(phrase.len()));
    windows.filter(is_found).map(|words| words[0].line).collect()
}

/// Returns the sentences with more words than `most`: the line on which each begins, and their number. Tables have no sentences.
pub(crate) fn long_sentences(most: usize, paragraphs: &[Vec<Word<'_>>]) -> Vec<(usize, usize)> {
    let is_last = |word: &Word<'_>| {
        word.written.trim_end_matches(['*', '_', '"', ')', '`']).ends_with(['.', '!', '?'])
    };
    let texts = paragraphs.iter().filter(|words| !words[0].written.starts_with('|'));
    let sentences = texts.flat_map(|words| words.split_inclusive(is_last));
    let counted = sentences
        .map(|words| (words[0].line, words.iter().filter(|word| !word.bare.is_empty()).count()));
    counted.filter(|(_, words)| *words > most).collect()
}

#[test]
fn a_phrase_is_found_across_lines_and_not_across_sentences_paragraphs_or_code() {
    let page = "# At once\nAll stop **at\nonce**, not\nat. Once more, (at)\nonce.\n\n* at\n* once\n\n```text\nat once\n```\n";
    assert_eq!(find("at once", &of_markdown(page)), [1, 2]);

    let source = "/// At\n/// once.\nfn at() {} // at once\n//! ```\n//! at once\n//! ```\nlet at = 1;\n    // Of their own.\n";
    assert_eq!(find("at once", &of_comments(source)), [1]);
    assert_eq!(find("of * own", &of_comments(source)), [8]);
    let ends = of_markdown("That one, too, is too long; this too.");
    assert_eq!((find("too", &ends).len(), find("too.", &ends).len()), (3, 2));
}

#[test]
fn a_long_sentence_is_counted_from_its_first_word_to_its_full_stop() {
    let page = "One two three. Four `five`\nsix - seven (eight.)\nNine ten.\n\n| a b c d e f |\n";
    assert_eq!(long_sentences(4, &of_markdown(page)), [(1, 5)]);
    assert_eq!(long_sentences(5, &of_markdown(page)), []);
}
