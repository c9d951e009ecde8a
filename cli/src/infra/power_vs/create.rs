//! Creates what is missing, in an order in which an interrupted run can be continued.

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::rest::Calls;

use super::api::{Api, Workspace};
use super::executor::{Executor, id, required, text};
use super::lookup::{ACTIVE, Zone};
use super::output::Output;
use super::policies::{Credentials, Resources};
use super::regions;
use super::scope::{Reused, Scope};

/// Ports of the ingress, which the default security group of the VPC lets in.
const PORTS: [u16; 2] = [80, 443];

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct CreateRequest {
    /// Namespace of the Secrets.
    pub(crate) namespace: String,
    pub(crate) reused: Reused,
    pub(crate) gateway_location: String,
    /// Whether the gateway is global also where it need not be.
    pub(crate) global_routing: bool,
    pub(crate) keys: Keys,
}

/// What is done about API keys of an earlier run, which cannot be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Those whose Secrets are not known are an error, because a cluster may have them, unless the output says that they were
    /// lost in an interruption.
    Keep,
    /// Those whose Secrets are not known are replaced: no cluster has them.
    ReplaceUnknown,
    /// All are replaced.
    ReplaceAll,
}

/// Writes down what is known so far.
pub(crate) type Record<'a> = &'a dyn Fn(&Output) -> anyhow::Result<()>;

/// What there is before anything is created.
pub(super) struct Found {
    pub(super) account: String,
    /// Identifier of the resource group.
    pub(super) group: String,
    pub(super) zone: Zone,
    /// Resources that are reused. Those of the infrastructure are looked for again when they are created.
    pub(super) vpc: Option<Value>,
    pub(super) workspace: Option<Value>,
    pub(super) gateway: Option<Value>,
}

/// A VPC in calls.
pub(super) struct Vpc {
    pub(super) id: String,
    pub(super) crn: String,
}

// === impl CreateRequest ===

impl CreateRequest {
    /// Whether the gateway is global.
    pub(super) fn is_global(&self, scope: &Scope) -> bool {
        let place = &scope.place;
        self.global_routing || regions::needs_global_routing(&place.region, &place.vpc_region)
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing. `output` has what is known so far also if this fails: it may have the only copy of API keys, so
    /// it is recorded before and after each of them is created.
    pub(crate) async fn create(
        &self,
        request: &CreateRequest,
        output: &mut Output,
        record: Record<'_>,
    ) -> anyhow::Result<()> {
        let found = Box::pin(self.look(request, output)).await?;
        let vpc = Box::pin(self.create_vpc(&found, output)).await?;
        Box::pin(self.create_subnet(&found, &vpc, output)).await?;
        let workspace = Box::pin(self.create_workspace(&found, output)).await?;
        Box::pin(self.create_gateway(request, &found, &vpc, &workspace, output)).await?;
        Box::pin(self.create_dhcp_server(&workspace, output)).await?;
        let resources = Resources {
            account: found.account,
            group: found.group,
            workspace: workspace.id,
            internet_services: found.zone.instance,
        };
        Box::pin(self.create_credentials(request, &resources, output, record)).await
    }

    /// Reports what exists and what would be created.
    pub(crate) async fn report(
        &self,
        request: &CreateRequest,
        output: &Output,
    ) -> anyhow::Result<()> {
        let mut output = output.clone();
        let found = Box::pin(self.look(request, &mut output)).await?;
        let line = |what: &str, exists: bool| {
            let state = if exists { "exists" } else { "would be created" };
            self.say(&format!("{what}: {state}"));
        };
        let scope = self.scope;
        let exists = found.vpc.is_some() || self.own_vpc(&found.group).await?.is_some();
        let name = request.reused.vpc.clone().unwrap_or_else(|| scope.vpc());
        line(&format!("VPC {name}"), exists);
        let exists = found.workspace.is_some() || self.own_workspace(&found.group).await?.is_some();
        let name = request.reused.workspace.clone();
        let name = name.unwrap_or_else(|| scope.workspace());
        line(&format!("workspace {name}"), exists);
        let exists = found.gateway.is_some() || self.own_gateway().await?.is_some();
        let name = request.reused.gateway.clone();
        let name = name.unwrap_or_else(|| scope.gateway());
        line(&format!("transit gateway {name}"), exists);
        for credentials in Credentials::ALL {
            let name = scope.service_id(credentials.suffix());
            let exists = self.own_service_id(&found.account, credentials).await?;
            line(&format!("service ID {name}"), exists.is_some());
        }
        Ok(())
    }

    /// Looks for everything that could prevent the creation, before anything is created.
    async fn look(&self, request: &CreateRequest, output: &mut Output) -> anyhow::Result<Found> {
        self.scope.check_zone()?;
        let account = self.account().await?;
        output.account_id.clone_from(&account);
        let group = self.group(&account).await?;
        let base = &self.scope.domain.base;
        let Some(zone) = self.find_zone().await? else {
            bail!(
                "no instance of Internet Services in the account has zone {base}: add the domain to one, and delegate it"
            );
        };
        output.cis_crn.clone_from(&zone.crn);
        output.cis_domain_id.clone_from(&zone.id);
        if !self.records(&zone).await?.is_empty() {
            bail!(
                "DNS record {} exists: a cluster uses the name. Choose another --name, or delete the record if that cluster \
                 is gone",
                self.scope.record()
            );
        }
        let reused = &request.reused;
        let vpc = if let Some(name) = &reused.vpc {
            Some(self.reused_vpc(&group, name).await?)
        } else {
            self.own_vpc(&group).await?;
            None
        };
        let workspace = if let Some(id) = &reused.workspace {
            Some(self.reused_workspace(id).await?)
        } else {
            if let Some(workspace) = self.own_workspace(&group).await? {
                self.check_zone_of(&workspace)?;
            }
            None
        };
        let gateway = match &reused.gateway {
            Some(name) => Some(self.reused_gateway(name).await?),
            None => self.own_gateway().await?,
        };
        if let Some(gateway) = &gateway
            && gateway["global"] != true
            && request.is_global(self.scope)
        {
            bail!(
                "transit gateway {} has local routing, and must have global routing to connect {} with {}: delete it, or \
                 use another one",
                text(&gateway["name"]),
                self.scope.place.region,
                self.scope.place.vpc_region
            );
        }
        self.check_keys(request, &account, output).await?;
        Ok(Found {
            account,
            group,
            zone,
            vpc,
            workspace,
            gateway: gateway.filter(|_| reused.gateway.is_some()),
        })
    }

    /// A VPC that a flag names. Its rules are those of its owner.
    async fn reused_vpc(&self, group: &str, name: &str) -> anyhow::Result<Value> {
        let what = format!("VPC {name}");
        let found = self.find_vpcs(group, name).await;
        let found = found.with_context(|| format!("failed to look for {what}"))?;
        let Some(vpc) = found.into_iter().next() else {
            bail!(
                "there is no {what} in resource group {} and region {}: check --vpc",
                self.scope.place.resource_group,
                self.scope.place.vpc_region
            );
        };
        let missing = self.missing_ports(&what, &vpc).await?;
        if !missing.is_empty() {
            let ports: Vec<_> = missing.iter().map(ToString::to_string).collect();
            bail!(
                "the default security group of {what} has no inbound rule for TCP port {}: add it",
                ports.join(" and ")
            );
        }
        Ok(vpc)
    }

    /// The ports that the default security group of a VPC does not let in.
    pub(super) async fn missing_ports(&self, what: &str, vpc: &Value) -> anyhow::Result<Vec<u16>> {
        let group = id(what, &vpc["default_security_group"])?;
        let rules = self.list(&self.api.rules(&group), "rules").await;
        let rules = rules.with_context(|| format!("failed to read the rules of {what}"))?;
        let ports = PORTS.into_iter();
        let missing = ports.filter(|port| !rules.iter().any(|rule| lets_in(rule, *port)));
        Ok(missing.collect())
    }

    /// A workspace that a flag names.
    async fn reused_workspace(&self, id: &str) -> anyhow::Result<Value> {
        let found = self.find(&self.api.instance(id)).await;
        let found = found.with_context(|| format!("failed to look for workspace {id}"))?;
        let Some(workspace) = found.filter(Api::is_workspace) else {
            bail!("there is no workspace {id}: check --cloud-instance-id");
        };
        let state = text(&workspace["state"]);
        if state != ACTIVE {
            bail!("workspace {id} cannot be used: it is in state {state}");
        }
        self.check_zone_of(&workspace)?;
        let servers = self.find_dhcp_servers(&Workspace::of(&workspace)?).await?;
        if servers.len() > 1 {
            bail!("workspace {id} has several DHCP servers: delete all but one");
        }
        Ok(workspace)
    }

    fn check_zone_of(&self, workspace: &Value) -> anyhow::Result<()> {
        let (found, zone) = (text(&workspace["region_id"]), &self.scope.place.zone);
        if found != zone {
            bail!(
                "workspace {} is in zone {found}, not in {zone}: check --zone",
                text(&workspace["name"])
            );
        }
        Ok(())
    }

    /// A transit gateway that a flag names.
    async fn reused_gateway(&self, name: &str) -> anyhow::Result<Value> {
        let gateways = self.find_gateways().await?;
        let Some(gateway) = gateways.into_iter().find(|it| it["name"] == name) else {
            bail!("there is no transit gateway {name}: check --transit-gateway");
        };
        let status = text(&gateway["status"]);
        if status != "available" {
            bail!("transit gateway {name} cannot be used: it is in state {status}");
        }
        Ok(gateway)
    }
}

// === impl Workspace ===

impl Workspace {
    /// The workspace of a response.
    pub(super) fn of(instance: &Value) -> anyhow::Result<Self> {
        Ok(Self {
            id: required("workspace", instance, "guid")?,
            crn: required("workspace", instance, "crn")?,
        })
    }
}

/// Whether a rule of a security group lets in TCP connections to a port from everywhere.
fn lets_in(rule: &Value, port: u16) -> bool {
    let is_of = |field: &str, expected: &str| rule[field] == expected;
    let port_is = |field: &str, is: &dyn Fn(u64) -> bool| rule[field].as_u64().is_none_or(is);
    let protocols = ["tcp", "all", "any", "icmp_tcp_udp"];
    let remote = &rule["remote"];
    let is_limited = ["address", "id", "crn", "name"].iter().any(|field| {
        let value = text(&remote[*field]);
        !value.is_empty() && value != "0.0.0.0"
    });
    let block = text(&remote["cidr_block"]);
    is_of("direction", "inbound")
        && protocols.contains(&text(&rule["protocol"]))
        && port_is("port_min", &|min| min <= u64::from(port))
        && port_is("port_max", &|max| max >= u64::from(port))
        && !is_limited
        && ["", "0.0.0.0/0"].contains(&block)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_let_in_connections_from_everywhere_to_their_ports() {
        let tcp = |min: u16, max: u16| json!({ "direction": "inbound", "protocol": "tcp", "port_min": min, "port_max": max });
        let with = |mut rule: Value, field: &str, value: Value| {
            rule[field] = value;
            rule
        };
        for (rule, expected) in [
            (tcp(80, 80), true),
            (tcp(1, 65535), true),
            (tcp(81, 90), false),
            (tcp(1, 79), false),
            (json!({ "direction": "inbound", "protocol": "all" }), true),
            (json!({ "direction": "inbound", "protocol": "icmp" }), false),
            (with(tcp(80, 80), "direction", json!("outbound")), false),
            (
                with(tcp(80, 80), "remote", json!({ "cidr_block": "0.0.0.0/0" })),
                true,
            ),
            (
                with(tcp(80, 80), "remote", json!({ "cidr_block": "10.0.0.0/8" })),
                false,
            ),
            (
                with(
                    tcp(80, 80),
                    "remote",
                    json!({ "id": "sg", "name": "group" }),
                ),
                false,
            ),
        ] {
            assert_eq!(lets_in(&rule, 80), expected, "{rule}");
        }
    }
}
