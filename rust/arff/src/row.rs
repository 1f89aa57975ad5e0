//! Rows: dense `a, b, c` (or `a b c`) and sparse `{number value, …}`.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;

use super::column::Column;
use super::header::Attribute;
use super::text::{Cursor, Fault, Lines, is_blank, shown, without_comment};

/// Number of the first attribute in sparse rows.
///
/// Weka and MULAN count from 0, CLUS from 1, and nothing in a file says which. The first number that
/// only one of them can mean decides for the whole file: 0, or the number of attributes. Without one,
/// it is 0.
pub(super) struct SparseBase {
    attributes: usize,
    is_sparse: bool,
    found: Option<usize>,
}

impl SparseBase {
    pub(super) fn new(attributes: usize) -> Self {
        SparseBase { attributes, is_sparse: false, found: None }
    }

    /// The number; to be asked once all lines were looked at, or [`SparseBase::look`] has seen enough.
    pub(super) fn found(&self) -> usize {
        self.found.unwrap_or(0)
    }

    /// Looks at `lines`, which follow those of the call before; true if no others matter.
    pub(super) fn look(&mut self, mut lines: Lines<'_>) -> bool {
        while let Ok(Some(line)) = lines.next_full() {
            if !self.is_sparse && !is_sparse(line) {
                self.found = Some(0);
                return true;
            }
            self.is_sparse = true;
            self.found = self.decided(line);
            if self.found.is_some() {
                return true;
            }
        }
        false
    }

    fn decided(&self, line: &[u8]) -> Option<usize> {
        let mut cursor = Cursor::new(without_comment(line), 0);
        cursor.take(b'{');
        loop {
            // What is no number is the end of the row, or an error that is reported when the row is read.
            match attribute_number(&mut cursor).ok()? {
                0 => return Some(0),
                number if number == self.attributes => return Some(1),
                _ => {}
            }
            cursor.token(in_sparse).ok()?;
            cursor.separator();
        }
    }
}

fn is_sparse(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'{')
}

fn in_sparse(byte: u8) -> bool {
    byte == b',' || byte == b'}'
}

/// Returns true if a comma or a tab outside quotes parts the values of `line`.
fn has_separator(line: &[u8]) -> bool {
    let mut quote = None;
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            None if matches!(byte, b',' | b'\t') => return true,
            None if matches!(byte, b'\'' | b'"') && (at == 0 || is_blank(line[at - 1])) => quote = Some(byte),
            _ => {}
        }
        at += 1;
    }
    false
}

/// The rows of one chunk.
pub(super) struct Rows<'a> {
    columns: Vec<Column<'a>>,
    rows: usize,
    base: usize,
    // Sparse rows touch only the columns they name; the others catch up when they are next needed.
    behind: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn new(attributes: &'a [Attribute], base: usize) -> Self {
        Rows { columns: attributes.iter().map(Column::new).collect(), rows: 0, base, behind: false }
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Appends the row in `line`.
    pub(super) fn read(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = without_comment(line);
        if is_sparse(line) {
            self.sparse(line)?;
            self.behind = true;
        } else {
            self.catch_up();
            self.dense(line)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn catch_up(&mut self) {
        if std::mem::take(&mut self.behind) {
            self.columns.iter_mut().for_each(|column| column.fill(self.rows));
        }
    }

    fn dense(&mut self, line: &[u8]) -> Result<(), Fault> {
        let total = self.columns.len();
        let mut cursor = Cursor::new(line, 0);
        let mut more = true;
        // Blanks part values as well, as in Weka; in rows with commas they are part of the values.
        let by_blanks = total > 1 && !has_separator(line);
        for (number, column) in self.columns.iter_mut().enumerate() {
            if !more || cursor.peek().is_none() {
                return Err(wrong_count(&cursor, number, total));
            }
            if by_blanks {
                column.read(&mut cursor, is_blank)?;
                cursor.skip_blanks();
            } else {
                column.read(&mut cursor, |byte| byte == b',' || byte == b'\t')?;
                more = cursor.separator();
            }
        }
        match cursor.peek() {
            None => Ok(()),
            Some(b'{') => Err(weighted(&cursor)),
            Some(_) => {
                let ends = |byte: &u8| if by_blanks { is_blank(*byte) } else { *byte == b',' };
                let more = cursor.rest().split(ends).filter(|value| !by_blanks || !value.is_empty()).count();
                Err(wrong_count(&cursor, total + more, total))
            }
        }
    }

    fn sparse(&mut self, line: &[u8]) -> Result<(), Fault> {
        let total = self.columns.len();
        let mut cursor = Cursor::new(line, 0);
        cursor.take(b'{');
        while !cursor.take(b'}') {
            let at = cursor.at();
            let number = attribute_number(&mut cursor)?;
            let column = number.checked_sub(self.base).and_then(|n| self.columns.get_mut(n)).ok_or_else(|| {
                let (first, last) = (self.base, self.base + total - 1);
                Fault::new(
                    at,
                    format!("no attribute has number {number}; this file counts them from {first} to {last}"),
                )
            })?;
            if column.len() > self.rows {
                return Err(Fault::new(at, format!("attribute number {number} has two values in this row")));
            }
            column.fill(self.rows);
            column.read(&mut cursor, in_sparse)?;
            cursor.skip_blanks();
            if !cursor.take(b',') && cursor.peek() != Some(b'}') {
                return Err(Fault::new(cursor.at(), "the sparse row does not end; close it with }"));
            }
        }
        cursor.separator();
        match cursor.peek() {
            None => Ok(()),
            Some(b'{') => Err(weighted(&cursor)),
            Some(_) => Err(Fault::new(cursor.at(), format!("'{}' follows the row; remove it", shown(cursor.rest())))),
        }
    }

    /// The rows as arrays, none of them left behind.
    pub(super) fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.catch_up();
        self.rows = 0;
        self.columns.iter_mut().map(Column::finish).collect()
    }
}

fn attribute_number(cursor: &mut Cursor<'_>) -> Result<usize, Fault> {
    let rest = cursor.rest();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
    match number.filter(|_| rest.get(digits).is_some_and(|byte| is_blank(*byte))) {
        Some(number) => {
            cursor.advance(digits);
            cursor.skip_blanks();
            Ok(number)
        }
        None => {
            let what = format!("'{}' where a sparse row has: number, blank, value", shown(rest));
            Err(Fault::new(cursor.at(), what))
        }
    }
}

fn wrong_count(cursor: &Cursor<'_>, found: usize, declared: usize) -> Fault {
    Fault::new(cursor.at(), format!("the row has {found} values, the header declares {declared} attributes"))
}

fn weighted(cursor: &Cursor<'_>) -> Fault {
    let what = format!("'{}' weighs the row, which is not read; make the weights an attribute", shown(cursor.rest()));
    Fault::new(cursor.at(), what)
}

#[cfg(test)]
mod tests {
    use crate::Header;

    /// The first batch of a file of a number, a nominal value and a text, as text; or the error.
    fn read(rows: &str) -> String {
        let file =
            format!("@relation r\n@attribute x real\n@attribute c {{a,'b b'}}\n@attribute t string\n@data\n{rows}");
        let header = Header::read(file.as_bytes()).unwrap();
        match header.batches(file.as_bytes(), 100).next() {
            Some(Ok(batch)) => format!("{:?}", batch.columns()),
            Some(Err(error)) => error.to_string(),
            None => "no rows".into(),
        }
    }

    #[test]
    fn the_first_number_that_only_one_way_of_counting_has_decides() {
        let batch = |rows: &str| {
            let file =
                format!("@relation r\n@attribute a string\n@attribute b string\n@attribute c string\n@data\n{rows}");
            let header = Header::read(file.as_bytes()).unwrap();
            header.batches(file.as_bytes(), 100).next().unwrap().map_err(|error| error.to_string())
        };
        // Quoted values, and blanks before a comma, hide no number that follows.
        let (from_0, from_1) = (batch("{1 'x, y' , 2 z}\n{0 w}\n"), batch("{2 'x, y' , 3 z}\n{1 w}\n"));
        assert_eq!(from_0, from_1);
        assert!(from_0.is_ok());
        // 1 and 2 are numbers in both; a number in a value or behind the row decides nothing.
        assert_eq!(batch("{1 '3 x', 2 z}\n"), batch("{1 '3 x', 2 z}\n{0 w}\n").map(|batch| batch.slice(0, 1)));
        // A row that is damaged decides nothing either, and is reported.
        assert!(batch("{1 'x', 2 'y\n{3 z}\n").unwrap_err().contains("line 6"));
    }

    #[test]
    fn blanks_part_values_where_no_comma_does() {
        let by_commas = read("1.5,a,'x, y'\n?,'b b',z\n");
        assert_eq!(read("1.5 a 'x, y'\n?  'b b'   z  \n"), by_commas);
        assert_eq!(read("1.5 a 'x, y' % w\n?,'b b',z\n"), by_commas);
        assert_ne!(read("1,a,x y\n"), read("1,a,x\n"), "in rows with commas blanks belong to values");
        assert!(read("1 a\n").ends_with("the row has 2 values, the header declares 3 attributes"));
        assert!(read("1 a x  y\n").ends_with("the row has 4 values, the header declares 3 attributes"));
    }
}
