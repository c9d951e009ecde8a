//! Documents of AWS's services as trees of elements. Attributes are ignored. Pure.

use std::fmt;

use crate::xml::{escaped, unescaped};

/// An element of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its text, without the texts of its children.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Element>,
}

// === impl Element ===

impl Element {
    /// An element with a text.
    pub fn leaf(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            children: Vec::new(),
        }
    }

    /// An element with others in it.
    pub fn around(name: &str, children: Vec<Self>) -> Self {
        Self {
            name: name.to_owned(),
            text: String::new(),
            children,
        }
    }

    /// The root of a document. `None` if this is no document: an element is not closed, or closed twice.
    pub fn parse(document: &str) -> Option<Self> {
        let mut open = vec![Self::default()];
        for piece in document.split('<').skip(1) {
            let (tag, text) = piece.split_once('>')?;
            if tag.starts_with(['?', '!']) {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                let closed = open.pop().filter(|it| it.name == name.trim())?;
                open.last_mut()?.children.push(closed);
                continue;
            }
            let is_empty = tag.ends_with('/');
            let name = tag.trim_end_matches('/').split_whitespace().next()?;
            let element = Self {
                name: name.to_owned(),
                text: unescaped(if is_empty { "" } else { text.trim() }),
                children: Vec::new(),
            };
            if is_empty {
                open.last_mut()?.children.push(element);
            } else {
                open.push(element);
            }
        }
        let document = open.pop().filter(|_| open.is_empty())?;
        document.children.into_iter().next()
    }

    /// The first element at a path below this one: names joined by slashes.
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |element, name| {
            element.children.iter().find(|child| child.name == name)
        })
    }

    /// The text of the first element at a path; empty if there is none.
    pub fn text_at(&self, path: &str) -> &str {
        self.at(path).map_or("", |element| element.text.as_str())
    }

    /// The elements in the element at a path; none if there is no such element.
    pub fn items(&self, path: &str) -> &[Self] {
        self.at(path).map_or(&[], |element| &element.children)
    }

    /// The children of a name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

impl fmt::Display for Element {
    /// As it is sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>{}", self.name, escaped(&self.text))?;
        for child in &self.children {
            write!(f, "{child}")?;
        }
        write!(f, "</{}>", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_trees_and_texts_again() {
        let document = "<?xml version=\"1.0\"?>\n<a xmlns=\"urn:x\">\n <set><item><id>1</id></item><item>\
                        <id>x &amp; y</id></item></set><empty/> <b></b></a>\n";
        let root = Element::parse(document).unwrap();
        assert_eq!(root.name, "a");
        assert_eq!(root.text_at("set/item/id"), "1");
        let ids: Vec<_> = root
            .items("set")
            .iter()
            .map(|it| it.text_at("id"))
            .collect();
        assert_eq!(ids, ["1", "x & y"]);
        assert_eq!(root.at("set/other"), None);
        assert_eq!(root.items("empty"), []);
        assert_eq!(root.named("b").count(), 1);
        let set = root.at("set").unwrap().to_string();
        let expected = "<set><item><id>1</id></item><item><id>x &amp; y</id></item></set>";
        assert_eq!(set, expected);
        assert_eq!(Element::parse(&set).as_ref(), root.at("set"));
        for damaged in ["", "text", "<a", "<a>1", "</a>", "<a></b>", "<a></a></a>"] {
            assert_eq!(Element::parse(damaged), None, "{damaged}");
        }
    }
}
