//! The header: names and types of the attributes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field};

use super::text::{Cursor, Fault, Lines, Token, decode, is_blank, shown, without_comment};

/// Field metadata key whose value is the domain of a CLUS `hierarchical` attribute, as written.
pub const HIERARCHY: &str = "ferrank:hierarchy";

/// What an attribute's values are.
#[derive(Debug)]
pub(super) enum Kind {
    /// `numeric`, `real`, `integer`.
    Numeric,
    /// `{a, b, c}`.
    Nominal(Domain),
    /// `string`, `date`, and CLUS's `key`.
    Text,
    /// CLUS's `hierarchical`, with its domain as written.
    Hierarchical(String),
}

/// The declared values of a nominal attribute.
#[derive(Debug)]
pub(super) struct Domain {
    /// Each declared value once, in order.
    pub(super) values: ArrayRef,
    position: HashMap<Box<[u8]>, i32>,
}

impl Domain {
    fn new(declared: Vec<Token<'_>>) -> Self {
        let mut position = HashMap::with_capacity(declared.len());
        let mut values = Vec::with_capacity(declared.len());
        for token in declared {
            let next = position.len() as i32;
            if let Entry::Vacant(slot) = position.entry(Box::<[u8]>::from(token.bytes)) {
                values.push(decode(slot.key()).into_owned());
                slot.insert(next);
            }
        }
        Domain { values: Arc::new(StringArray::from(values)), position }
    }

    /// Position of the value written as `bytes`.
    pub(super) fn code(&self, bytes: &[u8]) -> Option<i32> {
        self.position.get(bytes).copied()
    }
}

/// One column.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Attribute {
    /// The Arrow field: numbers are Float64, nominal values a dictionary of the declared ones.
    pub(super) fn field(&self) -> Field {
        let data_type = match self.kind {
            Kind::Numeric => DataType::Float64,
            Kind::Nominal(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::Text | Kind::Hierarchical(_) => DataType::Utf8,
        };
        let field = Field::new(&self.name, data_type, true);
        match &self.kind {
            Kind::Hierarchical(domain) => field.with_metadata(HashMap::from([(HIERARCHY.to_string(), domain.clone())])),
            _ => field,
        }
    }
}

/// Reads `lines` up to and including `@data`.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<Vec<Attribute>, Fault> {
    let mut attributes = Vec::new();
    while let Some(line) = lines.next_full()? {
        let mut cursor = Cursor::new(line, 0);
        let start = cursor.at();
        let keyword = cursor.token(is_blank)?;
        cursor.skip_blanks();
        match decode(&keyword.bytes).to_ascii_lowercase().as_str() {
            "@relation" => {}
            "@attribute" => attributes.push(attribute(line, cursor)?),
            "@data" if attributes.is_empty() => return Err(Fault::new(start, "@data comes before any @attribute")),
            "@data" => return Ok(attributes),
            _ => {
                return Err(Fault::new(
                    start,
                    format!(
                        "the header has '{}'; a line of it begins with @relation, @attribute or @data",
                        shown(&keyword.bytes)
                    ),
                ));
            }
        }
    }
    Err(Fault::new(0, "the file ends without @data; is it cut off?"))
}

fn attribute<'a>(line: &'a [u8], mut cursor: Cursor<'a>) -> Result<Attribute, Fault> {
    let named_at = cursor.at();
    let mut name = cursor.token(is_blank)?;
    cursor.skip_blanks();
    // `class{a,b}`: with nothing behind, what looks like a name is a name and its list.
    if cursor.peek().is_none() && !name.quoted {
        cursor = Cursor::new(line, named_at);
        name = cursor.token(|byte| byte == b'{')?;
    }
    let name = decode(&name.bytes).into_owned();
    let line = &line[..cursor.at() + without_comment(cursor.rest()).len()];
    let kind = kind(&name, Cursor::new(line, cursor.at()))?;
    Ok(Attribute { name, kind })
}

fn kind(name: &str, mut cursor: Cursor<'_>) -> Result<Kind, Fault> {
    const KNOWN: &str = "use numeric, real, integer, string, date, hierarchical or a list {a, b, c}";
    let at = cursor.at();
    if cursor.take(b'{') {
        return Ok(Kind::Nominal(domain(name, cursor)?));
    }
    let word = cursor.token(|byte| is_blank(byte) || byte == b'[' || byte == b'{')?;
    cursor.skip_blanks();
    match decode(&word.bytes).to_ascii_lowercase().as_str() {
        "numeric" | "real" | "integer" => match cursor.peek() {
            None => Ok(Kind::Numeric),
            Some(b'[') if cursor.rest().ends_with(b"]") => Ok(Kind::Numeric),
            Some(_) => {
                let what = format!("attribute '{name}': '{}' follows its type; remove it", shown(cursor.rest()));
                Err(Fault::new(cursor.at(), what))
            }
        },
        "string" | "key" | "date" => Ok(Kind::Text),
        "hierarchical" => Ok(Kind::Hierarchical(decode(cursor.rest()).into_owned())),
        "relational" => Err(Fault::new(at, format!("attribute '{name}' is relational, which is not read; {KNOWN}"))),
        "" => Err(Fault::new(at, format!("attribute '{name}' has no type; {KNOWN}"))),
        _ => {
            Err(Fault::new(at, format!("attribute '{name}' is of the unknown type '{}'; {KNOWN}", shown(&word.bytes))))
        }
    }
}

fn domain(name: &str, mut cursor: Cursor<'_>) -> Result<Domain, Fault> {
    let mut declared = Vec::new();
    while !cursor.take(b'}') {
        if cursor.peek().is_none() {
            let what = format!("the values of attribute '{name}' do not end; close the list with }}");
            return Err(Fault::new(cursor.at(), what));
        }
        declared.push(cursor.token(|byte| byte == b',' || byte == b'}')?);
        cursor.skip_blanks();
        if !cursor.take(b',') && cursor.peek().is_some_and(|byte| byte != b'}') {
            let what = format!("attribute '{name}': '{}' follows a value; put a comma between", shown(cursor.rest()));
            return Err(Fault::new(cursor.at(), what));
        }
    }
    if cursor.peek().is_some() {
        let what = format!("attribute '{name}': '{}' follows its values; remove it", shown(cursor.rest()));
        return Err(Fault::new(cursor.at(), what));
    }
    Ok(Domain::new(declared))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    fn one(line: &str) -> Result<Attribute, Fault> {
        read(&mut Lines::new(format!("@RELATION r\n{line}\n@Data\n").as_bytes())).map(|mut all| all.remove(0))
    }

    fn values(line: &str) -> Vec<String> {
        match one(line).unwrap().kind {
            Kind::Nominal(domain) => domain.values.as_string::<i32>().iter().flatten().map(String::from).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_have_many_names() {
        for line in [
            "@attribute a numeric",
            "@ATTRIBUTE a\tREAL",
            "  @Attribute 'a' Integer [1,10]",
            "@attribute \"a\" INTEGER[0,9] % years",
        ] {
            let read = one(line).unwrap();
            assert!(matches!(read.kind, Kind::Numeric) && read.name == "a", "{line}");
        }
    }

    #[test]
    fn odd_names_are_kept() {
        for (line, name) in [
            ("@attribute %fat numeric", "%fat"),
            ("@attribute - {0,1}", "-"),
            ("@attribute class{0,1}", "class"),
            (r"@attribute 'Hammond\'s % Flycatcher' real", "Hammond's % Flycatcher"),
            (r#"@attribute "'ALLminpA'l1" NUMERIC"#, "'ALLminpA'l1"),
        ] {
            assert_eq!(one(line).unwrap().name, name);
        }
    }

    #[test]
    fn lists_hold_quoted_and_bare_values() {
        assert_eq!(values("@attribute a { '<0', 'no checking', >=200}"), ["<0", "no checking", ">=200"]);
        assert_eq!(values("@attribute a {'?',\"b c\",d,}"), ["?", "b c", "d"]);
        assert_eq!(values("@attribute a {x,y,x} % twice"), ["x", "y"]);
        assert_eq!(values("@attribute a {}"), [""; 0]);
    }

    #[test]
    fn a_hierarchy_keeps_its_text() {
        let read = one("@attribute class hierarchical rec/sport/swim,rec/auto").unwrap();
        assert_eq!(read.field().metadata()[HIERARCHY], "rec/sport/swim,rec/auto");
    }

    #[test]
    fn what_is_wrong_is_said_and_where() {
        for (line, at, words) in [
            ("@attribute a relational", 13, "relational"),
            ("@attribute a", 12, "no type"),
            ("@attribute a nominal", 13, "unknown type 'nominal'"),
            ("@attribute a {x, y", 18, "close the list"),
            ("@attribute a {x} y", 17, "follows its values"),
            ("@attribute a numeric {2}", 21, "'{2}' follows its type"),
            ("@attribute 'a numeric", 11, "not closed"),
            ("@attribut a numeric", 0, "'@attribut'"),
            ("1,2,3", 0, "'1,2,3'"),
            ("@data", 0, "before any @attribute"),
        ] {
            let fault = one(line).unwrap_err();
            assert!(fault.what.contains(words), "{line}: {}", fault.what);
            assert_eq!(fault.at, at, "{line}");
        }
        assert!(read(&mut Lines::new(b"@relation x\n")).unwrap_err().what.contains("without @data"));
    }
}
