//! Shares of the fake.

use std::collections::BTreeSet;

use support::aws::Error;

use super::{Account, State, refused, tags_xml, xml};
use crate::infra::aws::call::{Call, Tags};

/// A share of subnets.
#[derive(Debug, Clone)]
pub(in crate::infra::aws) struct Share {
    account: Account,
    name: String,
    tags: Tags,
    pub(in crate::infra::aws) status: &'static str,
    /// ARNs of subnets.
    pub(in crate::infra::aws) subnets: BTreeSet<String>,
    /// Accounts.
    principals: BTreeSet<String>,
}

impl Share {
    pub(super) fn is_there(&self) -> bool {
        self.status != "DELETED"
    }

    fn has(&self, subnet: &str) -> bool {
        let end = format!(":subnet/{subnet}");
        self.is_there() && self.subnets.iter().any(|arn| arn.ends_with(&end))
    }

    fn xml(&self, arn: &str) -> String {
        let text = [
            xml("resourceShareArn", arn),
            xml("name", &self.name),
            xml("status", self.status),
            xml("tags", &tags_xml(&self.tags, "item", "key", "value")),
        ];
        xml("item", &text.concat())
    }
}

fn owned(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}

impl State {
    pub(super) fn pass_time_of_shares(&mut self) {
        for share in self.shares.values_mut() {
            if share.status == "DELETING" {
                share.status = "DELETED";
            }
        }
    }

    /// Whether a subnet is shared.
    pub(super) fn is_shared(&self, subnet: &str) -> bool {
        self.shares.values().any(|share| share.has(subnet))
    }

    /// Whether the account that calls sees a subnet of the other one.
    pub(super) fn is_shared_with_caller(&self, subnet: &str) -> bool {
        let mut shares = self.shares.iter();
        shares.any(|(arn, share)| {
            let is_known = !self.new.contains(arn);
            is_known && share.has(subnet) && share.principals.contains(self.caller.id())
        })
    }

    pub(super) fn ram(&mut self, call: &Call) -> Result<String, Error> {
        let arn = call.get("ResourceShareArn");
        let absent = || refused(call, 400, "UnknownResourceException");
        match call.action {
            "CreateResourceShare" => {
                let share = Share {
                    account: self.caller,
                    name: call.get("Name").to_owned(),
                    tags: call.tags_of("Tag"),
                    status: "ACTIVE",
                    subnets: owned(call.values("ResourceArn")).into_iter().collect(),
                    principals: owned(call.values("Principal")).into_iter().collect(),
                };
                let prefix = format!(":{}:subnet/", self.caller.id());
                if !share.subnets.iter().all(|arn| arn.contains(&prefix)) {
                    return Err(refused(call, 400, "OperationNotPermittedException"));
                }
                let arn = self.id("share");
                self.shares.insert(arn.clone(), share);
                self.new.insert(arn);
                Ok(String::new())
            }
            "AssociateResourceShare" => {
                let share = self.shares.get_mut(arn).ok_or_else(absent)?;
                share.subnets.extend(owned(call.values("ResourceArn")));
                share.principals.extend(owned(call.values("Principal")));
                Ok(String::new())
            }
            "GetResourceShareAssociations" => {
                let share = self.shares.get(arn).ok_or_else(absent)?;
                let entities = match call.get("AssociationType") {
                    "RESOURCE" => &share.subnets,
                    _ => &share.principals,
                };
                let items = entities.iter().map(|entity| {
                    let status = xml("status", "ASSOCIATED");
                    xml("item", &(xml("associatedEntity", entity) + &status))
                });
                let items = items.collect::<String>();
                Ok(xml("resourceShareAssociations", &items))
            }
            "DeleteResourceShare" => {
                let share = self.shares.get_mut(arn).ok_or_else(absent)?;
                share.status = "DELETING";
                Ok(String::new())
            }
            _ => {
                let shares = self.shares.iter();
                let own = shares.filter(|(_, share)| share.account == self.caller);
                let items = own.map(|(arn, share)| share.xml(arn));
                Ok(xml("resourceShares", &items.collect::<String>()))
            }
        }
    }
}
