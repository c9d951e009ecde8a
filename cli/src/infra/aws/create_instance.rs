//! Creates instances of commands, and waits for them: a bastion, a proxy.

use std::time::Duration;

use anyhow::{Context as _, bail};
use support::aws::{Element, Error};

use super::bastion::lets_in;
use super::call::{Call, Calls};
use super::executor::{Executor, is_worth_it};
use super::instance::{self, Instance, Launch};
use super::kind::Kind;

/// Attempts at the creation of the instance.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);
/// Between two looks at a new instance.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a new instance may take.
const LIMIT: Duration = Duration::from_mins(5);
/// What is new is not known everywhere at once. The last one says that an instance has the token, and is not listed yet.
const NEW: [&str; 4] = [
    "InvalidGroup.NotFound",
    "InvalidKeyPair.NotFound",
    "InvalidSubnetID.NotFound",
    "IdempotentParameterMismatch",
];
/// An instance with the same token existed, and is terminated.
const TERMINATED: &str = "IdempotentInstanceTerminated";

impl<C: Calls> Executor<'_, C> {
    /// Has a security group let in connections to a port from an address range.
    pub(super) async fn let_in(
        &self,
        group: &Element,
        name: &str,
        [port, cidr]: [&str; 2],
    ) -> anyhow::Result<()> {
        if lets_in(group, port, cidr) {
            return Ok(());
        }
        let call = Call::ec2("AuthorizeSecurityGroupIngress")
            .with("GroupId", Kind::SecurityGroup.id(group))
            .with("IpPermissions.1.IpProtocol", "tcp")
            .with("IpPermissions.1.FromPort", port)
            .with("IpPermissions.1.ToPort", port)
            .with("IpPermissions.1.IpRanges.1.CidrIp", cidr);
        let done = ["InvalidPermission.Duplicate"];
        let added = self.settle(&call, &done, &["InvalidGroup.NotFound"]).await;
        added.with_context(|| format!("failed to let in port {port} from {cidr}"))?;
        self.say(&format!(
            "security group {name}: lets in port {port} from {cidr}"
        ));
        Ok(())
    }

    /// Finds an instance or creates it.
    pub(super) async fn ensure_instance(&self, launch: &Launch<'_>) -> anyhow::Result<Instance> {
        let name = launch.name;
        let what = || format!("failed to create instance {name}");
        let mut generation = 0;
        let mut attempt = 1;
        loop {
            if let Some(found) = self.find_instance(name).await.with_context(what)? {
                self.say(&format!("instance {name}: exists ({})", found.id));
                return Ok(found);
            }
            let images = self.call(&instance::images()).await.with_context(what)?;
            let image = instance::newest(&images);
            let run = instance::run(self.scope, launch, &image, generation);
            let error = match self.calls.call(&run).await {
                Ok(response) => {
                    let id = response.text_at("instancesSet/item/instanceId");
                    if id.is_empty() {
                        bail!("{}: the response has no identifier", what());
                    }
                    self.say(&format!("instance {name}: created ({id})"));
                    return Ok(Instance::new(id));
                }
                Err(error) => error,
            };
            let is_terminated = error.code() == TERMINATED;
            if attempt == ATTEMPTS || !is_terminated && !is_worth_it(&error, &NEW) {
                return Err(error).with_context(what);
            }
            attempt += 1;
            if is_terminated {
                generation += 1;
                continue;
            }
            self.calls.pause(INTERVAL).await;
        }
    }

    /// All instances with a name that are not terminated.
    pub(super) async fn instances(&self, name: &str) -> Result<Vec<Instance>, Error> {
        let call = instance::describe(self.scope, name);
        let response = self.calls.call(&call).await?;
        Ok(instance::instances(self.scope, name, &response))
    }

    /// The instance with a name, if there is one. Of several, always the same one.
    pub(super) async fn find_instance(&self, name: &str) -> Result<Option<Instance>, Error> {
        let mut found = self.instances(name).await?.into_iter();
        Ok(found.find(Instance::is_alive))
    }

    /// Waits until an instance runs and has what is needed of it.
    pub(super) async fn until_instance(
        &self,
        id: &str,
        is_ready: fn(&Instance) -> bool,
    ) -> anyhow::Result<Instance> {
        let absent = ["InvalidInstanceID.NotFound"];
        let mut passed = Duration::ZERO;
        let mut step = self.display.step(&format!("waiting for instance {id}"));
        loop {
            let response = self.find_call(&instance::one(id), &absent).await?;
            let found = response.as_ref().and_then(instance::instance);
            // A new one is not known everywhere at once.
            let found = found.unwrap_or_else(|| Instance::new(id));
            if is_ready(&found) {
                step.done("running");
                return Ok(found);
            }
            if !found.is_alive() {
                bail!(
                    "instance {id} is {}: run the command again to create another one",
                    found.state
                );
            }
            self.start(&found).await?;
            if passed >= LIMIT {
                bail!(
                    "instance {id} does not run with an address after {} s (it is {}): run the command again to continue",
                    passed.as_secs(),
                    found.state
                );
            }
            step.update(&found.state);
            self.calls.pause(PAUSE).await;
            passed += PAUSE;
        }
    }

    /// Starts an instance that a user has stopped.
    pub(super) async fn start(&self, instance: &Instance) -> anyhow::Result<()> {
        if instance.state != "stopped" {
            return Ok(());
        }
        let call = Call::ec2("StartInstances").list("InstanceId", [&instance.id]);
        let started = self.settle(&call, &[], &["IncorrectInstanceState"]).await;
        started.with_context(|| format!("failed to start instance {}", instance.id))
    }
}
