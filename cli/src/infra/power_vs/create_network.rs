//! Creates the VPC and its subnet.

use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::rest::{Calls, Error};

use super::create::{Found, Vpc};
use super::executor::{Executor, Goal, Made, Pace, id, required, text};
use super::output::{Output, Stat};

/// Attempts to attach tags: what is new is not known everywhere at once.
const TAG_ATTEMPTS: u32 = 3;
/// VPCs and subnets that can be used.
const AVAILABLE: Goal = Goal {
    field: "status",
    ready: "available",
    failed: &["failed", "deleting"],
    pace: Pace::new(5, 5),
};

impl<C: Calls> Executor<'_, C> {
    /// The VPC, with the rules that the ingress needs.
    pub(super) async fn create_vpc(
        &self,
        found: &Found,
        output: &mut Output,
    ) -> anyhow::Result<Vpc> {
        if let Some(vpc) = &found.vpc {
            text(&vpc["name"]).clone_into(&mut output.vpc_name);
            output.stats.vpc = Stat::of(&vpc["status"]);
            return Vpc::of(vpc);
        }
        let name = self.scope.vpc();
        let what = format!("VPC {name}");
        let begin = Instant::now();
        let find = async || self.own_vpc(&found.group).await;
        let create = self.api.create_vpc(&found.group, &name);
        let made = self.ensure(&what, find, &create).await?;
        let look = self.api.vpc_object("vpcs", &id(&what, &made.value)?);
        let value = self.until_ready(&what, &AVAILABLE, &look).await?;
        output.vpc_name.clone_from(&name);
        output.stats.vpc = Stat::of(&value["status"]).since(begin, &made);
        let vpc = Vpc::of(&value)?;
        self.tag(&what, &name, &vpc.crn).await?;
        let security_group = id(&what, &value["default_security_group"])?;
        for port in self.missing_ports(&what, &value).await? {
            let find = async || {
                let missing = self.missing_ports(&what, &value).await?;
                anyhow::Ok((!missing.contains(&port)).then_some(Value::Null))
            };
            let create = self.api.create_rule(&security_group, port);
            let rule = format!("rule for TCP port {port} of {what}");
            self.ensure(&rule, find, &create).await?;
        }
        Ok(vpc)
    }

    /// A subnet of the VPC: one that is there, or a new one.
    pub(super) async fn create_subnet(
        &self,
        found: &Found,
        vpc: &Vpc,
        output: &mut Output,
    ) -> anyhow::Result<()> {
        let begin = Instant::now();
        let made = match self.find_subnet(&vpc.id).await? {
            Some(value) => Made {
                value,
                is_new: false,
            },
            None => self.new_subnet(found, vpc).await?,
        };
        let what = format!("subnet {}", text(&made.value["name"]));
        let look = self.api.vpc_object("subnets", &id(&what, &made.value)?);
        let subnet = self.until_ready(&what, &AVAILABLE, &look).await?;
        text(&subnet["name"]).clone_into(&mut output.vpc_subnet_name);
        output.stats.vpc_subnet = Stat::of(&subnet["status"]).since(begin, &made);
        Ok(())
    }

    /// The subnets of a VPC.
    pub(super) async fn find_subnets(&self, vpc: &str) -> anyhow::Result<Vec<Value>> {
        let subnets = self.list(&self.api.subnets(vpc), "subnets").await;
        let mut subnets =
            subnets.with_context(|| format!("failed to list the subnets of VPC {vpc}"))?;
        // Services may ignore filters that they do not know.
        subnets.retain(|it| it["vpc"]["id"] == vpc);
        Ok(subnets)
    }

    /// Of several subnets, that of the infrastructure, or always the same other one.
    async fn find_subnet(&self, vpc: &str) -> anyhow::Result<Option<Value>> {
        let subnets = self.find_subnets(vpc).await?.into_iter();
        let usable = subnets.filter(|it| !AVAILABLE.failed.contains(&text(&it["status"])));
        let own = self.scope.subnet();
        Ok(usable.min_by_key(|it| {
            let name = text(&it["name"]).to_owned();
            (name != own, name)
        }))
    }

    /// Not every zone has room: the first one that accepts it has the subnet.
    async fn new_subnet(&self, found: &Found, vpc: &Vpc) -> anyhow::Result<Made> {
        let name = self.scope.subnet();
        let what = format!("subnet {name}");
        let call = self.api.address_prefixes(&vpc.id);
        let prefixes = self.list(&call, "address_prefixes").await;
        let mut prefixes = prefixes
            .with_context(|| format!("failed to list the address prefixes of VPC {}", vpc.id))?;
        prefixes.sort_by_key(|it| text(&it["zone"]["name"]).to_owned());
        let mut problems = Vec::new();
        for prefix in &prefixes {
            let zone = text(&prefix["zone"]["name"]);
            let find = async || self.find_subnet(&vpc.id).await;
            let create = self.api.create_subnet(&found.group, &vpc.id, &name, prefix);
            match self.ensure(&what, find, &create).await {
                Ok(made) => return Ok(made),
                Err(error) => {
                    let cause = error.downcast_ref::<Error>();
                    // Without a response, the zone may have room.
                    if cause.is_none_or(|it| it.is_denied() || it.is_uncertain()) {
                        return Err(error);
                    }
                    problems.push(format!("{zone}: {error:#}"));
                }
            }
        }
        if problems.is_empty() {
            bail!("VPC {} has no address prefix for {what}: add one", vpc.id);
        }
        bail!("no zone has room for {what}: {}", problems.join("; "))
    }

    /// Attaches the tags of a resource. If that fails, its name still says whose it is.
    pub(super) async fn tag(&self, what: &str, name: &str, crn: &str) -> anyhow::Result<()> {
        if self.is_tagged(what, crn).await? {
            return Ok(());
        }
        let tags = [self.scope.cluster_tag(), format!("Name:{name}")];
        let call = self.api.attach_tags(crn, &tags);
        let mut problem = String::new();
        for attempt in 0..TAG_ATTEMPTS {
            if attempt > 0 {
                self.calls.pause(AVAILABLE.pace.interval).await;
            }
            match self.send(&call).await {
                Ok(response) if response["results"][0]["is_error"] != true => return Ok(()),
                Ok(response) => {
                    text(&response["results"][0]["message"]).clone_into(&mut problem);
                }
                Err(error) if error.is_denied() => {
                    problem = error.to_string();
                    break;
                }
                Err(error) => problem = error.to_string(),
            }
        }
        self.say(&format!(
            "{what}: tags could not be attached ({problem}); attach {} yourself",
            tags[0]
        ));
        Ok(())
    }
}

// === impl Vpc ===

impl Vpc {
    /// The VPC of a response.
    pub(super) fn of(value: &Value) -> anyhow::Result<Self> {
        Ok(Self {
            id: required("VPC", value, "id")?,
            crn: required("VPC", value, "crn")?,
        })
    }
}
