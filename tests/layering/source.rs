//! Just enough of Rust's lexis to find the paths that a file names.

/// A file as words and signs, with comments, literals and test items blanked out.
pub(crate) struct Source {
    tokens: Vec<(usize, String)>,
}

impl Source {
    /// Reads a file.
    pub(crate) fn parse(text: &str) -> Self {
        let mut source = Self {
            tokens: tokenize(&blank_literals(text)),
        };
        source.drop_test_items();
        source
    }

    /// Returns every path of two or more parts and every `use`, with its line; grouped imports are
    /// spread out.
    pub(crate) fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let is_use = self.word(at) == "use";
            // Whole paths are read at once, so a name after `::` begins one, as in `::axum::x`.
            let start = match is_use {
                true if self.word(at + 1) == "::" => at + 2,
                true => at + 1,
                false => at,
            };
            let is_member = at > 0 && self.word(at - 1) == ".";
            if is_member || !is_name(self.word(start)) {
                at += 1;
                continue;
            }
            let mut read = Vec::new();
            at = self.read_tree(start, &mut Vec::new(), &mut read);
            found.extend(
                read.into_iter()
                    .filter(|(_, path)| is_use || path.len() > 1),
            );
        }
        found
    }

    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.1)
    }

    /// Reads `a::b::{c, d::e}` from `at`; returns the place after it.
    fn read_tree(
        &self,
        mut at: usize,
        prefix: &mut Vec<String>,
        found: &mut Vec<(usize, Vec<String>)>,
    ) -> usize {
        let depth = prefix.len();
        let line = self.tokens.get(at).map_or(0, |token| token.0);
        while is_name(self.word(at)) {
            prefix.push(self.word(at).to_owned());
            at += 1;
            if self.word(at) != "::" {
                break;
            }
            at += 1;
        }
        if self.word(at) == "{" && at > 0 && self.word(at - 1) == "::" {
            at += 1;
            while !matches!(self.word(at), "}" | "") {
                at = self.read_tree(at, prefix, found);
                while !matches!(self.word(at), "," | "}" | "") {
                    at += 1; // `as other`, `*`
                }
                at += usize::from(self.word(at) == ",");
            }
            at += 1;
        } else if prefix.len() > depth {
            found.push((line, prefix.clone()));
        }
        prefix.truncate(depth);
        at
    }

    /// Removes each item behind `#[cfg(test)]`, up to its `;` or its closing brace.
    fn drop_test_items(&mut self) {
        const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
        let mut at = 0;
        while at < self.tokens.len() {
            let is_cfg_test = (0..7).all(|i| self.word(at + i) == CFG_TEST[i]);
            if is_cfg_test {
                let end = self.end_of_item(at + 7);
                self.tokens.drain(at..end);
            } else {
                at += 1;
            }
        }
    }

    fn end_of_item(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        while at < self.tokens.len() {
            match self.word(at) {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && self.word(at) == "}" && self.word(at + 1) != ";" {
                        return at + 1;
                    }
                }
                ";" if depth == 0 => return at + 1,
                _ => {}
            }
            at += 1;
        }
        at
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !matches!(word, "as" | "use")
}

fn tokenize(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut tokens, mut line, mut at) = (Vec::new(), 1, 0);
    while at < chars.len() {
        let start = at;
        let c = chars[at];
        at += 1;
        if c.is_alphanumeric() || c == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
        } else if c == ':' && chars.get(at) == Some(&':') {
            at += 1;
        } else if c == '\n' {
            line += 1;
            continue;
        } else if c.is_whitespace() {
            continue;
        }
        tokens.push((line, chars[start..at].iter().collect()));
    }
    tokens
}

/// Replaces comments, strings and character literals by blanks, keeping the lines.
fn blank_literals(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = end_of_literal(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// Returns the end of the comment or literal that begins at `at`, or `at` where none does.
fn end_of_literal(chars: &[char], at: usize) -> usize {
    let char_at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word_before = at > 0 && (char_at(at - 1).is_alphanumeric() || char_at(at - 1) == '_');
    match (char_at(at), char_at(at + 1)) {
        ('/', '/') => (at..chars.len())
            .find(|i| chars[*i] == '\n')
            .unwrap_or(chars.len()),
        ('/', '*') => end_of_block_comment(chars, at),
        ('"', _) => end_of_quoted(chars, at, '"'),
        ('r', '"' | '#') if !is_word_before => end_of_raw_string(chars, at),
        // A lifetime has no closing quote right after its first character.
        ('\'', '\\') => end_of_quoted(chars, at, '\''),
        ('\'', _) if char_at(at + 2) == '\'' => at + 3,
        _ => at,
    }
}

fn end_of_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(chars.len())
}

fn end_of_quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn end_of_raw_string(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let closes = |i: &usize| {
        chars[*i] == '"' && chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes
    };
    let close = (at + 2 + hashes..chars.len()).find(closes);
    close.map_or(chars.len(), |close| close + 1 + hashes)
}
