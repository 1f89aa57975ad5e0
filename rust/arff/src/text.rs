//! Lines, values and quotes: the lexical level of ARFF.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Longest line that is read, in bytes. Keeps string offsets within 32 bits.
pub(super) const LONGEST_LINE: usize = 1 << 30;

/// What is wrong, and where in the line.
#[derive(Debug)]
pub(super) struct Fault {
    /// Byte position in the line.
    pub(super) at: usize,
    /// What was found and what would do.
    pub(super) what: String,
}

impl Fault {
    pub(super) fn new(at: usize, what: impl Into<String>) -> Self {
        Fault { at, what: what.into() }
    }
}

/// The lines of a text, without their ends.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    end_of_line: u8,
    /// The line given last.
    pub(super) line: &'a [u8],
    /// Its number, from 1.
    pub(super) number: u64,
}

impl<'a> Lines<'a> {
    /// The lines of `text`. They end in `\n` or `\r\n`; in `\r` where the text holds no `\n`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let end_of_line = if memchr(b'\n', text).is_none() { b'\r' } else { b'\n' };
        Lines { text, at: 0, end_of_line, line: &[], number: 0 }
    }

    /// The lines of `text` after byte `at`, which follow line `number` and end in `end_of_line`.
    pub(super) fn within(text: &'a [u8], at: usize, number: u64, end_of_line: u8) -> Self {
        Lines { text, at, end_of_line, line: &[], number }
    }

    /// True if no line is left.
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Bytes given so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Number, from 1, of the character at byte `at` of the line given last.
    pub(super) fn column(&self, at: usize) -> usize {
        decode(&self.line[..at.min(self.line.len())]).chars().count() + 1
    }

    /// The next line that holds more than blanks and comments, from its first byte to its last that is
    /// not blank.
    pub(super) fn next_full(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let length = memchr(self.end_of_line, rest).unwrap_or(rest.len());
            self.at += (length + 1).min(rest.len());
            self.number += 1;
            let line = rest[..length].trim_ascii_end();
            self.line = line;
            match line.iter().find(|b| !is_blank(**b)) {
                None | Some(b'%') => {}
                Some(_) if line.len() > LONGEST_LINE => {
                    return Err(Fault::new(0, format!("the line is {} bytes long; is this an ARFF file?", line.len())));
                }
                Some(_) => return Ok(Some(line)),
            }
        }
        Ok(None)
    }
}

pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn is_quote(byte: u8) -> bool {
    byte == b'\'' || byte == b'"'
}

/// `line` up to a `%` that follows a blank outside quotes.
pub(super) fn without_comment(line: &[u8]) -> &[u8] {
    if memchr(b'%', line).is_none() {
        return line;
    }
    let mut quote = None;
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        let first = at == 0 || is_blank(line[at - 1]) || matches!(line[at - 1], b',' | b'{');
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            None if first && is_quote(byte) => quote = Some(byte),
            None if byte == b'%' && at > 0 && is_blank(line[at - 1]) => return line[..at].trim_ascii_end(),
            _ => {}
        }
        at += 1;
    }
    line
}

/// Bytes as text: UTF-8, or else Latin-1, name by name and value by value.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&byte| byte as char).collect()),
    }
}

/// `bytes` for a message: decoded, and cut where long.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = decode(&bytes[..bytes.len().min(240)]);
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// A name or value.
#[derive(Debug)]
pub(super) struct Token<'a> {
    /// Its bytes, unescaped where it was quoted.
    pub(super) bytes: Cow<'a, [u8]>,
    /// True if it stood in quotes.
    pub(super) quoted: bool,
    /// Where it begins in the line.
    pub(super) at: usize,
}

impl Token<'_> {
    /// A question mark without quotes.
    pub(super) fn is_missing(&self) -> bool {
        !self.quoted && *self.bytes == *b"?"
    }
}

/// A place in a line.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a [u8], at: usize) -> Self {
        let mut cursor = Cursor { line, at };
        cursor.skip_blanks();
        cursor
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the blanks after it, if it comes next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
            self.skip_blanks();
        }
        found
    }

    /// A quoted text, or the bytes up to one that `ends` an unquoted one.
    pub(super) fn token(&mut self, ends: impl Fn(u8) -> bool) -> Result<Token<'a>, Fault> {
        let at = self.at;
        let token = match self.peek().filter(|byte| is_quote(*byte)) {
            Some(quote) => {
                let bytes = self.quoted(quote)?;
                if self.peek().is_some_and(|byte| !is_blank(byte) && !ends(byte)) {
                    let after = shown(self.rest());
                    return Err(Fault::new(
                        self.at,
                        format!(
                            "'{after}' follows a closing quote; write \\{0} for a quote inside quotes",
                            quote as char
                        ),
                    ));
                }
                Token { bytes, quoted: true, at }
            }
            None => {
                let rest = self.rest();
                let length = rest.iter().position(|&byte| ends(byte)).unwrap_or(rest.len());
                self.at += length;
                Token { bytes: Cow::Borrowed(rest[..length].trim_ascii_end()), quoted: false, at }
            }
        };
        Ok(token)
    }

    /// Steps over what parts two values: a comma or a tab, and blanks around it.
    pub(super) fn separator(&mut self) -> bool {
        let start = self.at;
        self.skip_blanks();
        let tab = self.line[start..self.at].contains(&b'\t');
        self.take(b',') || tab
    }

    fn quoted(&mut self, quote: u8) -> Result<Cow<'a, [u8]>, Fault> {
        let start = self.at + 1;
        let mut at = start;
        let mut unescaped: Option<Vec<u8>> = None;
        while let Some(found) = memchr2(quote, b'\\', &self.line[at..]) {
            let stop = at + found;
            if self.line[stop] == quote {
                self.at = stop + 1;
                return Ok(match unescaped {
                    None => Cow::Borrowed(&self.line[start..stop]),
                    Some(mut text) => {
                        text.extend_from_slice(&self.line[at..stop]);
                        Cow::Owned(text)
                    }
                });
            }
            let Some(&escaped) = self.line.get(stop + 1) else { break };
            let text = unescaped.get_or_insert_default();
            text.extend_from_slice(&self.line[at..stop]);
            text.push(match escaped {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                other => other,
            });
            at = stop + 2;
        }
        let what = format!("a quote is opened here and not closed; end the text with {}", quote as char);
        Err(Fault::new(self.at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(line: &str) -> Result<(String, bool), Fault> {
        let mut cursor = Cursor::new(line.as_bytes(), 0);
        let token = cursor.token(|byte| byte == b',')?;
        Ok((decode(&token.bytes).into_owned(), token.quoted))
    }

    #[test]
    fn quotes_escape_and_bare_text_does_not() {
        assert_eq!(token(r"'Swainson\'s Thrush', 1").unwrap(), ("Swainson's Thrush".into(), true));
        assert_eq!(token(r#""'dtd'l1""#).unwrap(), ("'dtd'l1".into(), true));
        assert_eq!(token(r"'a\\b\tc'").unwrap(), ("a\\b\tc".into(), true));
        assert_eq!(token(r"a\'b  ,c").unwrap(), (r"a\'b".into(), false));
    }

    #[test]
    fn an_open_quote_is_reported_where_it_opens() {
        assert_eq!(token("  'a, b").unwrap_err().at, 2);
        assert_eq!(token(r"'a\").unwrap_err().at, 0);
        assert_eq!(token("'a'b").unwrap_err().at, 3);
    }

    #[test]
    fn comments_begin_after_a_blank_outside_quotes() {
        for (line, left) in [
            ("1,2 % a, b", "1,2"),
            ("'5 % fat',10%", "'5 % fat',10%"),
            ("a\\'b % c", "a\\'b"),
            ("'it\\'s %' %", "'it\\'s %'"),
            ("o'neill % x", "o'neill"),
            ("{'5 % fat','10 % fat'} % x", "{'5 % fat','10 % fat'}"),
        ] {
            assert_eq!(decode(without_comment(line.as_bytes())), left);
        }
    }

    #[test]
    fn lines_end_as_their_system_ends_them() {
        for text in ["a\n\n% c\n  % d\nb", "a\r\n\r\n% c\r\n  % d\r\nb\r\n", "a\r\r% c\r  % d\rb\r"] {
            let mut lines = Lines::new(text.as_bytes());
            assert_eq!((lines.next_full().unwrap().unwrap(), lines.number), (&b"a"[..], 1));
            assert_eq!((lines.next_full().unwrap().unwrap(), lines.number), (&b"b"[..], 5));
            assert!(lines.next_full().unwrap().is_none());
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_latin1() {
        assert_eq!(decode("Žaba".as_bytes()), "Žaba");
        assert_eq!(decode(b"caf\xe9"), "café");
    }
}
