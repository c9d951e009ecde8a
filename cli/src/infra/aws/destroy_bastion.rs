//! Destroys a bastion: the instance first, because the rest is in use as long as it exists.

use std::time::Duration;

use support::aws::{Element, Error};

use super::bastion;
use super::call::{Call, Calls};
use super::destroy_network::Pass;
use super::executor::Executor;
use super::kind::Kind;
use super::scope::tags;

/// How long instances may take to terminate.
const LIMIT: Duration = Duration::from_mins(10);

impl<C: Calls> Executor<'_, C> {
    /// Repeats passes until nothing is left.
    pub(crate) async fn destroy_bastion(&self) -> anyhow::Result<()> {
        let what = format!("bastion of {}", self.scope.infra_id);
        self.until_empty(&what, Some(LIMIT), async || self.bastion_pass().await)
            .await
    }

    /// Reports what would be destroyed, and destroys nothing.
    pub(crate) async fn report_bastion_destruction(&self) -> anyhow::Result<()> {
        for instance in self.instances(&bastion::name(self.scope)).await? {
            self.say(&format!("instance {}: would be terminated", instance.id));
        }
        for (kind, name) in self.bastion_parts() {
            for item in self.named(kind, &name).await? {
                let (noun, id) = (kind.noun(), kind.id(&item));
                self.say(&format!("{noun} {id}: would be deleted"));
            }
        }
        Ok(())
    }

    async fn bastion_pass(&self) -> Pass {
        let mut pass = Pass::default();
        let instances = self.instances(&bastion::name(self.scope)).await;
        let instances = pass.listed("instances", instances).into_iter();
        let ids: Vec<_> = instances.map(|it| it.id).collect();
        if !ids.is_empty() {
            let call = Call::ec2("TerminateInstances").list("InstanceId", &ids);
            let terminated = self.calls.call(&call).await;
            pass.check("instances", terminated.map(drop));
            pass.note(format!("instances {}: terminating", ids.join(", ")));
        }
        // They use the rest, also if they could not be listed.
        if !pass.left.is_empty() {
            return pass;
        }
        for (kind, name) in self.bastion_parts() {
            let found = self.named(kind, &name).await;
            for item in pass.listed(kind.noun(), found) {
                self.delete(kind, kind.id(&item), &mut pass).await;
            }
        }
        pass
    }

    /// What there is beside the instance.
    fn bastion_parts(&self) -> [(Kind, String); 2] {
        [
            (Kind::SecurityGroup, bastion::group(self.scope)),
            (Kind::KeyPair, bastion::name(self.scope)),
        ]
    }

    /// The resources of the infrastructure with a name.
    async fn named(&self, kind: Kind, name: &str) -> Result<Vec<Element>, Error> {
        let mut found = self.owned(kind).await?;
        found.retain(|item| {
            let tags = tags(item.items("tagSet"));
            tags.get("Name").is_some_and(|it| it == name)
        });
        Ok(found)
    }
}
