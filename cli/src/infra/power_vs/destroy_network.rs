//! Destroys the record of the ingress, the transit gateway, and the VPC with its subnets and load balancers.

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::rest::Calls;

use super::create::Vpc;
use super::destroy::Left;
use super::executor::{Executor, Pace, id, text};
use super::scope::{Reused, Scope};

const CONNECTION: Pace = Pace::new(60, 10);
const GATEWAY: Pace = Pace::new(5, 5);
const LOAD_BALANCER: Pace = Pace::new(5, 10);
const SUBNET: Pace = Pace::new(5, 10);
const VPC: Pace = Pace::new(5, 10);
/// The longest name of a load balancer: longer ones are cut.
const LONGEST_NAME: usize = 63;
/// The end of host names of load balancers.
const LOAD_BALANCER_DOMAIN: &str = ".lb.appdomain.cloud";

impl<C: Calls> Executor<'_, C> {
    /// The records of the ingress, but for those of another cluster of the same name.
    pub(super) async fn delete_records(&self, left: &Left, reused: &Reused) -> anyhow::Result<()> {
        let Some(zone) = self.find_zone().await? else {
            self.say(&format!(
                "zone {}: there is none, so there is no DNS record to delete",
                self.scope.domain.base
            ));
            return Ok(());
        };
        let records = self.records(&zone).await?;
        if records.is_empty() {
            return Ok(());
        }
        let subnets = self.used_subnets(&left.group, reused).await?;
        let balancers = self.find_load_balancers().await?;
        for record in records {
            let what = format!("DNS record {}", self.scope.record());
            let content = text(&record["content"]);
            if !may_be_own(self.scope, content, &balancers, &subnets) {
                self.say(&format!(
                    "{what}: kept, because it leads to {content}, which is not of this infrastructure"
                ));
                continue;
            }
            let record = id(&what, &record)?;
            let delete = self.api.delete_record(&zone.crn, &zone.id, &record);
            self.delete(&what, &delete).await?;
        }
        Ok(())
    }

    async fn find_load_balancers(&self) -> anyhow::Result<Vec<Value>> {
        let balancers = self
            .list(&self.api.load_balancers(), "load_balancers")
            .await;
        balancers.context("failed to list load balancers")
    }

    /// The subnets on which load balancers of the cluster may be.
    async fn used_subnets(&self, group: &str, reused: &Reused) -> anyhow::Result<Vec<Value>> {
        let mut subnets = Vec::new();
        for (_, vpc) in self.used_vpcs(group, reused).await? {
            subnets.extend(self.find_subnets(&vpc.id).await?);
        }
        Ok(subnets)
    }

    /// The connections of the infrastructure, of whatever gateway, and its own gateway.
    pub(super) async fn delete_gateway(&self) -> anyhow::Result<()> {
        let names = self.scope.connections();
        for gateway in self.find_gateways().await? {
            let gateway = id("transit gateway", &gateway)?;
            for connection in self.find_connections(&gateway).await? {
                let name = text(&connection["name"]);
                if !names.iter().any(|it| it == name) {
                    continue;
                }
                let what = format!("connection {name}");
                let connection = id(&what, &connection)?;
                let delete = self.api.delete_connection(&gateway, &connection);
                let look = self.api.connection(&gateway, &connection);
                self.remove(&what, CONNECTION, &delete, &look).await?;
            }
        }
        let Some(gateway) = self.own_gateway().await? else {
            return Ok(());
        };
        let what = format!("transit gateway {}", self.scope.gateway());
        let gateway = id(&what, &gateway)?;
        let delete = self.api.delete_gateway(&gateway);
        let look = self.api.gateway(&gateway);
        self.remove(&what, GATEWAY, &delete, &look).await
    }

    /// The load balancers of the cluster, and the subnets: all of its own VPC, and the one that was created in a reused one.
    pub(super) async fn delete_subnets(&self, left: &Left, reused: &Reused) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        let subnets = self.used_subnets(&left.group, reused).await?;
        for balancer in self.find_load_balancers().await? {
            let is_own = is_load_balancer_of(&self.scope.name, text(&balancer["name"]));
            if !is_own || !is_on(&balancer, &subnets) {
                continue;
            }
            let what = format!("load balancer {}", text(&balancer["name"]));
            let removed = self
                .remove_vpc_object(&what, LOAD_BALANCER, "load_balancers", &balancer)
                .await;
            failed.extend(removed.err());
        }
        let own = self.own_vpc(&left.group).await?;
        let own = own.as_ref().map(Vpc::of).transpose()?;
        for subnet in subnets {
            let is_in_own = own
                .as_ref()
                .is_some_and(|vpc| subnet["vpc"]["id"] == vpc.id);
            if !is_in_own && subnet["name"] != self.scope.subnet() {
                continue;
            }
            let what = format!("subnet {}", text(&subnet["name"]));
            let removed = self
                .remove_vpc_object(&what, SUBNET, "subnets", &subnet)
                .await;
            failed.extend(removed.err());
        }
        let failed: Vec<_> = failed.iter().map(|error| format!("{error:#}")).collect();
        if failed.is_empty() {
            return Ok(());
        }
        bail!("{}", failed.join("; "))
    }

    pub(super) async fn delete_vpc(&self, left: &Left) -> anyhow::Result<()> {
        let Some(vpc) = self.own_vpc(&left.group).await? else {
            return Ok(());
        };
        let what = format!("VPC {}", self.scope.vpc());
        self.remove_vpc_object(&what, VPC, "vpcs", &vpc).await
    }

    async fn remove_vpc_object(
        &self,
        what: &str,
        pace: Pace,
        kind: &str,
        object: &Value,
    ) -> anyhow::Result<()> {
        let id = id(what, object)?;
        let delete = self.api.delete_vpc_object(kind, &id);
        let look = self.api.vpc_object(kind, &id);
        self.remove(what, pace, &delete, &look).await
    }
}

/// Whether a load balancer is on one of the subnets.
fn is_on(balancer: &Value, subnets: &[Value]) -> bool {
    let on = balancer["subnets"].as_array().into_iter().flatten();
    let mut on = on.map(|it| &it["id"]);
    on.any(|id| id.is_string() && subnets.iter().any(|subnet| subnet["id"] == *id))
}

/// Whether the name of a load balancer is one that the cloud controller manager of a cluster makes: of the cluster's name and
/// the UID of the Service. Names of other clusters may begin with the same letters.
fn is_load_balancer_of(cluster: &str, name: &str) -> bool {
    let prefix = format!("kube-{cluster}-");
    if prefix.len() >= LONGEST_NAME {
        return prefix.get(..LONGEST_NAME) == Some(name);
    }
    let uid = name.strip_prefix(&prefix);
    uid.is_some_and(|uid| !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a record with this content may be the one of this infrastructure: it does not lead to a load balancer of another
/// region, or on another subnet. That of the cluster may be gone already.
fn may_be_own(scope: &Scope, content: &str, balancers: &[Value], subnets: &[Value]) -> bool {
    let is_it = |it: &&Value| text(&it["hostname"]).eq_ignore_ascii_case(content);
    if let Some(balancer) = balancers.iter().find(is_it) {
        return is_on(balancer, subnets);
    }
    match content.strip_suffix(LOAD_BALANCER_DOMAIN) {
        Some(host) => host.ends_with(&format!("-{}", scope.place.vpc_region)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::scope::tests::scope;
    use super::*;

    #[test]
    fn load_balancers_are_recognized_by_their_names() {
        let uid = "0123456789abcdef0123456789abcdef";
        let long = "x".repeat(60);
        for (cluster, name, expected) in [
            ("a", format!("kube-a-{uid}"), true),
            ("a", format!("kube-a-b-{uid}"), false),
            ("a-b", format!("kube-a-b-{uid}"), true),
            ("a", format!("kube-ab-{uid}"), false),
            ("a", "kube-a-".to_owned(), false),
            ("a", format!("my-kube-a-{uid}"), false),
            (&long, format!("kube-{}", &long[..58]), true),
            (&long, "kube-x".to_owned(), false),
        ] {
            let found = is_load_balancer_of(cluster, &name);
            assert_eq!(found, expected, "{cluster} {name}");
        }
    }

    #[test]
    fn records_of_another_cluster_of_the_same_name_are_kept() {
        let scope = scope("a-x1", "a");
        let balancer =
            |host: &str, subnet: &str| json!({ "hostname": host, "subnets": [{ "id": subnet }] });
        let balancers = [
            balancer("1-us-south.lb.appdomain.cloud", "own"),
            balancer("2-us-south.lb.appdomain.cloud", "other"),
        ];
        let subnets = [json!({ "id": "own" })];
        for (content, expected) in [
            ("1-us-south.lb.appdomain.cloud", true),
            ("2-us-south.lb.appdomain.cloud", false),
            ("3-us-south.lb.appdomain.cloud", true),
            ("3-eu-de.lb.appdomain.cloud", false),
            ("192.0.2.1", true),
        ] {
            let found = may_be_own(&scope, content, &balancers, &subnets);
            assert_eq!(found, expected, "{content}");
        }
    }
}
