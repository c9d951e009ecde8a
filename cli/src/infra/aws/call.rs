//! Calls of AWS's services, as plans and tests see them: service, action, parameters. Nothing is sent here.

use std::ops::Deref;
use std::time::Duration;

use support::aws::{Element, Error};
use support::ec2;

pub(crate) use support::ec2::Tags;

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Ec2,
    Elb,
    ElbV2,
    Iam,
    Ram,
    Route53,
    S3,
    Sts,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) service: Service,
    /// The action and its parameters.
    form: ec2::Call,
}

/// Who answers calls: AWS, or a fake of it.
pub(crate) trait Calls {
    /// The root of the response.
    async fn call(&self, call: &Call) -> Result<Element, Error>;

    /// Waits, for what takes time in the cloud.
    async fn pause(&self, time: Duration);
}

// === impl Call ===

impl Call {
    pub(crate) fn new(service: Service, action: &'static str) -> Self {
        Self {
            service,
            form: ec2::Call::new(action),
        }
    }

    pub(crate) fn ec2(action: &'static str) -> Self {
        Self::new(Service::Ec2, action)
    }

    pub(crate) fn iam(action: &'static str) -> Self {
        Self::new(Service::Iam, action)
    }

    pub(crate) fn ram(action: &'static str) -> Self {
        Self::new(Service::Ram, action)
    }

    pub(crate) fn route53(action: &'static str) -> Self {
        Self::new(Service::Route53, action)
    }

    pub(crate) fn s3(action: &'static str) -> Self {
        Self::new(Service::S3, action)
    }

    pub(crate) fn sts(action: &'static str) -> Self {
        Self::new(Service::Sts, action)
    }

    /// With a parameter.
    pub(crate) fn with(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.map(|form| form.with(name, value))
    }

    /// With a list: `name.1`, `name.2` and so on.
    pub(crate) fn list<T: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.map(|form| form.list(name, values))
    }

    /// With a further filter.
    pub(crate) fn filter(self, name: &str, value: &str) -> Self {
        self.map(|form| form.filter(name, value))
    }

    /// With tags: `name.1.Key`, `name.1.Value` and so on.
    pub(crate) fn tags(self, name: &str, tags: &Tags) -> Self {
        self.map(|form| form.tags(name, tags))
    }

    /// With the tags of the resource that it creates.
    pub(crate) fn tagged(self, resource_type: &str, tags: &Tags) -> Self {
        self.map(|form| form.tagged(resource_type, tags))
    }

    fn map(self, change: impl FnOnce(ec2::Call) -> ec2::Call) -> Self {
        Self {
            service: self.service,
            form: change(self.form),
        }
    }

    /// The value of a parameter; empty if it is not given.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The values of a list.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let numbers = 1..=self.parameters.len();
        let values = numbers.map(|number| self.get(&format!("{name}.{number}")));
        values.take_while(|value| !value.is_empty()).collect()
    }

    /// The tags.
    pub(crate) fn tags_of(&self, name: &str) -> Tags {
        let numbers = 1..=self.parameters.len();
        let pairs = numbers.map(|number| {
            let part = |part: &str| self.get(&format!("{name}.{number}.{part}")).to_owned();
            (part("Key"), part("Value"))
        });
        pairs.take_while(|(key, _)| !key.is_empty()).collect()
    }

    /// Whether a second call after a lost response has the effect of one. Others are repeated by who looks first whether the
    /// resource exists.
    pub(crate) fn is_repeatable(&self) -> bool {
        const VERBS: [&str; 8] = [
            "Describe",
            "List",
            "Get",
            "Head",
            "Put",
            "Modify",
            "Delete",
            "Terminate",
        ];
        VERBS.iter().any(|verb| self.action.starts_with(verb))
    }
}

impl Deref for Call {
    type Target = ec2::Call;

    fn deref(&self) -> &Self::Target {
        &self.form
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_their_names() {
        let tags = Tags::from([
            ("a".to_owned(), "1".to_owned()),
            ("b".to_owned(), String::new()),
        ]);
        let call = Call::ec2("DescribeSubnets")
            .filter("tag:a", "1")
            .filter("vpc-id", "vpc-1")
            .list("SubnetId", ["subnet-1", "subnet-2"])
            .tags("Tag", &tags);
        assert_eq!(call.get("Filter.2.Value.1"), "vpc-1");
        assert_eq!(call.get("Tag.2.Key"), "b");
        assert_eq!(call.get("Tag.3.Key"), "");
        assert_eq!(call.values("SubnetId"), ["subnet-1", "subnet-2"]);
        assert_eq!(call.tags_of("Tag"), tags);
    }

    #[test]
    fn calls_that_make_something_are_not_repeated() {
        for (action, expected) in [
            ("DescribeVpcs", true),
            ("DeleteVpc", true),
            ("PutRolePolicy", true),
            ("CreateVpc", false),
            ("AllocateAddress", false),
            ("AddRoleToInstanceProfile", false),
        ] {
            assert_eq!(Call::ec2(action).is_repeatable(), expected, "{action}");
        }
    }
}
