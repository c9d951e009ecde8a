//! Calls of EC2 and of other services that take forms: parameters in lists, tags, and responses in pages.

mod refused;

use std::collections::BTreeMap;

use crate::aws::{Client, EC2, Element, Error, Service};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// The longest response, in pages: a service that repeats itself does not hold a caller for ever.
const PAGES: usize = 1000;

/// A call: an action and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What is requested.
    pub action: &'static str,
    /// The parameters, in the order in which they are sent.
    pub parameters: Vec<(String, String)>,
}

// === impl Call ===

impl Call {
    /// A call without parameters.
    pub fn new(action: &'static str) -> Self {
        Self {
            action,
            parameters: Vec::new(),
        }
    }

    /// With a parameter.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// With a list: `name.1`, `name.2` and so on.
    pub fn list<T: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter().enumerate();
        values.fold(self, |call, (at, value)| {
            call.with(format!("{name}.{}", at + 1), value.as_ref())
        })
    }

    /// With a further filter.
    pub fn filter(self, name: &str, value: &str) -> Self {
        let filters = self
            .parameters
            .iter()
            .filter(|(key, _)| key.starts_with("Filter.") && key.ends_with(".Name"));
        let number = filters.count() + 1;
        self.with(format!("Filter.{number}.Name"), name)
            .with(format!("Filter.{number}.Value.1"), value)
    }

    /// With tags: `name.1.Key`, `name.1.Value` and so on.
    pub fn tags(self, name: &str, tags: &Tags) -> Self {
        let tags = tags.iter().enumerate();
        tags.fold(self, |call, (at, (key, value))| {
            call.with(format!("{name}.{}.Key", at + 1), key)
                .with(format!("{name}.{}.Value", at + 1), value)
        })
    }

    /// With the tags of the resource that it creates.
    pub fn tagged(self, resource_type: &str, tags: &Tags) -> Self {
        self.with("TagSpecification.1.ResourceType", resource_type)
            .tags("TagSpecification.1.Tag", tags)
    }

    /// Sends a call that may be repeated, and returns the root of the response.
    pub async fn read(&self, client: &Client, service: &Service) -> Result<Element, Error> {
        self.send(client, service, true).await
    }

    /// Sends a call that is repeated only if it certainly had no effect, and returns the root of the response.
    pub async fn write(&self, client: &Client, service: &Service) -> Result<Element, Error> {
        self.send(client, service, false).await
    }

    /// The items of a set in all pages of a response of EC2.
    pub async fn items(self, client: &Client, set: &str) -> Result<Vec<Element>, Error> {
        let mut items = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES {
            let mut call = self.clone();
            if !token.is_empty() {
                call = call.with("NextToken", token.as_str());
            }
            let page = call.read(client, &EC2).await?;
            items.extend_from_slice(page.items(set));
            page.text_at("nextToken").clone_into(&mut token);
            if token.is_empty() {
                return Ok(items);
            }
        }
        Err(self.unexpected("it does not end"))
    }

    /// The error of a response that has no use.
    pub fn unexpected(&self, problem: impl Into<String>) -> Error {
        Error::Response {
            what: self.action.to_owned(),
            problem: problem.into(),
        }
    }

    async fn send(
        &self,
        client: &Client,
        service: &Service,
        repeatable: bool,
    ) -> Result<Element, Error> {
        let sent = client.query(service, self.action, &self.parameters, repeatable);
        Element::parse(&sent.await?).ok_or_else(|| self.unexpected("it is no document"))
    }
}

/// The tags of an item of EC2.
pub fn tags(item: &Element) -> Tags {
    let tags = item.items("tagSet").iter();
    tags.map(|it| (it.text_at("key").to_owned(), it.text_at("value").to_owned()))
        .collect()
}

/// The texts in a set of EC2: of its items, or of a field of each.
pub fn texts(item: &Element, set: &str, field: &str) -> Vec<String> {
    let items = item.items(set).iter();
    items
        .map(|it| match field {
            "" => it.text.clone(),
            field => it.text_at(field).to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_filters_and_tags_are_numbered() {
        let tags = Tags::from([
            ("a".to_owned(), "1".to_owned()),
            ("b".to_owned(), "2".to_owned()),
        ]);
        let call = Call::new("CreateVpcEndpoint")
            .list("SubnetId", ["s1", "s2"])
            .filter("vpc-id", "v")
            .filter("tag:a", "1")
            .tagged("vpc-endpoint", &tags);
        let names: Vec<_> = call
            .parameters
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "SubnetId.1",
                "SubnetId.2",
                "Filter.1.Name",
                "Filter.1.Value.1",
                "Filter.2.Name",
                "Filter.2.Value.1",
                "TagSpecification.1.ResourceType",
                "TagSpecification.1.Tag.1.Key",
                "TagSpecification.1.Tag.1.Value",
                "TagSpecification.1.Tag.2.Key",
                "TagSpecification.1.Tag.2.Value",
            ]
        );
    }

    #[test]
    fn sets_are_read() {
        let item = "<item><tagSet><item><key>a</key><value>1</value></item></tagSet><groupSet><item>\
                    <groupId>g</groupId></item></groupSet><subnetIdSet><item>s</item></subnetIdSet></item>";
        let item = Element::parse(item).unwrap();
        assert_eq!(
            super::tags(&item),
            Tags::from([("a".to_owned(), "1".to_owned())])
        );
        assert_eq!(texts(&item, "groupSet", "groupId"), ["g"]);
        assert_eq!(texts(&item, "subnetIdSet", ""), ["s"]);
        assert_eq!(texts(&item, "absent", ""), Vec::<String>::new());
    }
}
