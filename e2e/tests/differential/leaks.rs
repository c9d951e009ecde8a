//! The leak check: no response that came through the proxy names a private group.

use api::group::{CapiTypes, GroupTable};

use crate::differential::compare::clipped;
use crate::differential::script::Step;
use crate::differential::side::Received;

/// How much of the surroundings a report shows.
const AROUND: usize = 60;

/// Differences with which a response does name a private group.
const SHOW_PRIVATE: [&str; 2] = ["private-names", "quota-fields"];

/// Finds private names in any of their spellings.
#[derive(Debug)]
pub(crate) struct LeakCheck {
    spellings: Vec<String>,
}

// === impl LeakCheck ===

impl LeakCheck {
    pub(crate) fn new() -> Self {
        let table = GroupTable::default();
        let private = || {
            table
                .pairs()
                .iter()
                .map(|pair| pair.name(CapiTypes::Private))
        };
        let plain = private().map(str::to_owned);
        let reversed = private().map(|name| joined(name.rsplit('.').map(str::to_owned), "."));
        let camel = private().map(|name| joined(name.split('.').map(capital), ""));
        // What begins with a small letter has lost its first one to this.
        let camel = camel.map(|name| name[1..].to_owned());
        Self {
            spellings: plain.chain(reversed).chain(camel).collect(),
        }
    }

    /// The private names in a response to a step that allows none.
    pub(crate) fn of(&self, step: &Step, response: &Received) -> Vec<String> {
        if step
            .allowed
            .iter()
            .any(|difference| SHOW_PRIVATE.contains(&difference.as_str()))
        {
            return Vec::new();
        }
        let headers = response.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (format!("header {name}"), value)
        });
        let body = std::iter::once(("body".to_owned(), response.text().into_owned()));
        headers
            .chain(body)
            .filter_map(|(place, text)| Some(format!("leak in the {place}: {}", self.find(&text)?)))
            .collect()
    }

    /// The first private name in a text, with what is around it.
    pub(crate) fn find(&self, text: &str) -> Option<String> {
        let at = self
            .spellings
            .iter()
            .filter_map(|spelling| text.find(spelling))
            .min()?;
        let start = text.floor_char_boundary(at.saturating_sub(AROUND));
        let end = text.ceil_char_boundary((at + AROUND).min(text.len()));
        Some(clipped(&text[start..end]))
    }
}

fn joined(parts: impl Iterator<Item = String>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}

fn capital(part: &str) -> String {
    let (first, rest) = part.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_private_names_however_they_are_spelled() {
        let check = LeakCheck::new();
        for text in [
            r#"{"apiVersion":"ipam.cluster.hypershift.openshift.io/v1beta2"}"#,
            "#/components/schemas/io.openshift.hypershift.cluster.v1beta2.Machine",
            "listClusterHypershiftOpenshiftIoV1beta2Machine",
            "infrastructureClusterHypershiftOpenshiftIo_v1beta2",
        ] {
            assert!(check.find(text).is_some(), "{text}");
        }
        assert_eq!(
            check.find("cluster.x-k8s.io hypershift.openshift.io/scope"),
            None
        );
    }
}
