//! The rows of JSON text, one after the other, without a look at what is in them.

use std::io::Read;

use memchr::memchr2;

use super::super::chunking::sized;

/// Bytes read at a time.
const BLOCK: usize = sized(1 << 18, 32);
/// Most bytes of a row, which is held as a whole.
const LONGEST: usize = 64 << 20;
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The objects in a text: on lines of their own, or in one list.
pub(super) struct Rows<R> {
    file: R,
    buffer: Vec<u8>,
    /// Where what was not given out begins.
    at: usize,
    /// Number of the row given last, from 1.
    pub(super) number: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// Among objects, with nothing around them.
    Lines,
    /// In a list, before a first object or behind a comma.
    List,
    /// In a list, behind an object.
    Behind,
    /// Behind the list.
    End,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(file: R) -> Self {
        Rows { file, buffer: Vec::new(), at: 0, number: 0, place: Place::Start }
    }

    /// The text of the next object; none at the end. Errors do not name the file.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, String> {
        loop {
            let Some(byte) = self.peek()? else {
                return match self.place {
                    Place::List | Place::Behind => Err("the list is cut off".into()),
                    _ => Ok(None),
                };
            };
            self.place = match (byte, self.place) {
                (b'{', Place::Start | Place::Lines | Place::List) => break,
                (b'[', Place::Start) => Place::List,
                (b',', Place::Behind) => Place::List,
                (b']', Place::Behind | Place::List) => Place::End,
                _ => {
                    let found = byte.escape_ascii();
                    return Err(format!(
                        "'{found}' behind row {}; use an object on each line, or one list of objects",
                        self.number
                    ));
                }
            };
            self.at += 1;
        }
        self.number += 1;
        self.place = if self.place == Place::List { Place::Behind } else { Place::Lines };
        let length = self.length()?;
        self.at += length;
        Ok(Some(&self.buffer[self.at - length..self.at]))
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Result<Option<u8>, String> {
        if self.place == Place::Start && self.buffer.is_empty() {
            while self.buffer.len() < MARK.len() && self.more()? {}
            self.at = if self.buffer.starts_with(MARK) { MARK.len() } else { 0 };
        }
        loop {
            match self.buffer[self.at..].iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(blanks) => {
                    self.at += blanks;
                    return Ok(Some(self.buffer[self.at]));
                }
                None => {
                    self.at = self.buffer.len();
                    if !self.more()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Bytes of the object that comes next.
    fn length(&mut self) -> Result<usize, String> {
        let (mut at, mut depth, mut quoted) = (0, 0_usize, false);
        loop {
            while let Some(&byte) = self.buffer.get(self.at + at) {
                at += 1;
                if quoted {
                    match byte {
                        b'"' => quoted = false,
                        b'\\' => at += 1,
                        // Most of a long text is neither.
                        _ => {
                            let rest = &self.buffer[self.at + at..];
                            at += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                        }
                    }
                    continue;
                }
                match byte {
                    b'"' => quoted = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return Ok(at);
                        }
                    }
                    _ => {}
                }
            }
            if at > LONGEST {
                return Err(format!("row {}: is longer than {} MiB", self.number, LONGEST >> 20));
            }
            if !self.more()? {
                return Err(format!("row {}: is cut off", self.number));
            }
        }
    }

    /// Reads on; false at the end of the file.
    fn more(&mut self) -> Result<bool, String> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + BLOCK, 0);
        let read = loop {
            match self.file.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read.map_err(|e| e.to_string())?,
            }
        };
        self.buffer.truncate(held + read);
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            into[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn split(text: &[u8]) -> Result<Vec<String>, String> {
        fn all(mut rows: Rows<impl Read>) -> Result<Vec<String>, String> {
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(String::from_utf8_lossy(row).into_owned());
            }
            Ok(found)
        }
        let found = all(Rows::new(text));
        assert_eq!(all(Rows::new(Slow(text))), found);
        found
    }

    #[test]
    fn rows_are_those_of_lines_and_of_a_list() {
        let (one, other) = (r#"{"a":[{"b":1}],"c":"}\"{\\"}"#, r#"{"a":null}"#);
        let want = Ok(vec![one.to_string(), other.to_string()]);
        assert_eq!(split(format!("{one}\n{other}\n").as_bytes()), want);
        assert_eq!(split(format!("\u{feff}{one}\r\n\r\n{other}").as_bytes()), want);
        assert_eq!(split(format!(" [ {one} ,\n{other}]\n").as_bytes()), want);
        assert_eq!(split(b"[]"), Ok(vec![]));
        assert_eq!(split(b" \n"), Ok(vec![]));
    }

    #[test]
    fn what_is_no_row_is_an_error() {
        for (text, said) in [
            ("1", "'1' behind row 0"),
            ("[1]", "'1' behind row 0"),
            ("{} []", "'[' behind row 1"),
            ("[{} {}]", "'{' behind row 1"),
            ("[{}]\n{}", "'{' behind row 1"),
            ("[{},", "the list is cut off"),
            ("{\"a\": \"}", "row 1: is cut off"),
            ("\u{1}", "'\\x01' behind row 0"),
        ] {
            let error = split(text.as_bytes()).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
