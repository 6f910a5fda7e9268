//! What a study declares in nested tables, as a value that keeps the order of its keys.
//! It travels as JSON (to the plan, the record, other hosts), because workload options are texts.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Also dates and times.
    Text(String),
    Integer(i64),
    /// Finite.
    Real(f64),
    Switch(bool),
    List(Vec<Tree>),
    /// In the order of the file; each key occurs once.
    Table(Vec<(String, Tree)>),
}

impl Tree {
    /// Fails if the text is not JSON, or holds what a study cannot.
    pub fn from_text(text: &str) -> Result<Tree, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// JSON in one line.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts, finite numbers, lists and tables are JSON")
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Tree::Text(_) => "a text",
            Tree::Integer(_) => "a whole number",
            Tree::Real(_) => "a number",
            Tree::Switch(_) => "true or false",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionProblem {
    /// The keys that lead there from the workload's table; items of lists are counted from 0.
    pub path: Vec<String>,
    pub message: String,
    pub help: Option<String>,
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::Integer(number) => serializer.serialize_i64(*number),
            Tree::Real(number) => serializer.serialize_f64(*number),
            Tree::Switch(is_on) => serializer.serialize_bool(*is_on),
            Tree::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Tree::Table(entries) => {
                let mut table = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| table.serialize_entry(key, value))?;
                table.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of a study")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Tree, E> {
        Ok(Tree::Switch(is_on))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Tree, E> {
        i64::try_from(number).map(Tree::Integer).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Real(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = table.next_entry()? {
            entries.push(entry);
        }
        Ok(Tree::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_keeps_order_and_kinds() {
        let entries = [
            ("z", Tree::Integer(i64::MIN)),
            ("a", Tree::Real(1.0)),
            ("ü \"\\\n", Tree::Text("x\u{1}'".to_owned())),
            ("on", Tree::Switch(true)),
            ("list", Tree::List(vec![Tree::Table(Vec::new()), Tree::List(Vec::new())])),
        ];
        let tree = Tree::Table(entries.map(|(key, value)| (key.to_owned(), value)).into());
        assert_eq!(Tree::from_text(&tree.to_text()), Ok(tree));
        assert!(Tree::from_text("null").is_err() && Tree::from_text("{").is_err());
    }
}
