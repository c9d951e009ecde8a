//! Instances of EC2 in the account of the hosted cluster: how they are called, and whose they are.

use std::sync::{Arc, Mutex, PoisonError};

use support::aws::{Client, Element, Error, Source, credentials};
use support::ec2::{Call, Tags, tags};

/// The name of sessions, which audit logs of AWS show.
const SESSION: &str = "karpenter-operator";
/// The most IDs of a request.
const BATCH: usize = 100;

/// An instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) id: String,
    /// Its name in the network, which its node has.
    pub(super) name: String,
    /// Whether it runs, or starts.
    pub(super) is_alive: bool,
    tags: Tags,
}

/// Asks EC2, with the credentials of the environment: those of the hosted cluster.
#[derive(Debug, Default)]
pub(super) struct Ec2 {
    client: Mutex<Option<(Source, Arc<Client>)>>,
}

// === impl Ec2 ===

impl Ec2 {
    /// The instances with these IDs, as far as there are any.
    pub(super) async fn instances(
        &self,
        region: &str,
        ids: &[String],
    ) -> Result<Vec<Instance>, Error> {
        let mut found = Vec::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let client = self.client(region)?;
        for batch in ids.chunks(BATCH) {
            // A filter, because EC2 refuses a list with an ID that it does not know.
            let call = Call::new("DescribeInstances")
                .with("Filter.1.Name", "instance-id")
                .list("Filter.1.Value", batch);
            let reservations = call.items(&client, "reservationSet").await?;
            found.extend(reservations.iter().flat_map(read));
        }
        Ok(found)
    }

    /// A client, and the same as before unless the file of credentials has changed.
    fn client(&self, region: &str) -> Result<Arc<Client>, Error> {
        let source = credentials::of_environment(&variable)?;
        let source = source.ok_or_else(|| {
            Error::Credentials(
                "set AWS_SHARED_CREDENTIALS_FILE to the file of Karpenter".to_owned(),
            )
        })?;
        let mut known = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, client)) = known.as_ref()
            && *before == source
            && client.region() == region
        {
            return Ok(Arc::clone(client));
        }
        let client = Client::new(source.clone(), None, region, SESSION, &variable);
        let client = Arc::new(client);
        *known = Some((source, Arc::clone(&client)));
        Ok(client)
    }
}

// === impl Instance ===

impl Instance {
    /// Whether it is a machine of the hosted cluster. Several clusters may be in one account.
    pub(super) fn is_of(&self, infra_id: &str) -> bool {
        let tag = format!("kubernetes.io/cluster/{infra_id}");
        self.tags.get(&tag).is_some_and(|it| it == "owned")
    }
}

/// The instances of a reservation.
fn read(reservation: &Element) -> impl Iterator<Item = Instance> {
    let instances = reservation.items("instancesSet").iter();
    instances.map(|instance| Instance {
        id: instance.text_at("instanceId").to_owned(),
        name: instance.text_at("privateDnsName").to_owned(),
        is_alive: matches!(
            instance.text_at("instanceState/name"),
            "pending" | "running"
        ),
        tags: tags(instance),
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
impl Instance {
    /// An instance that runs, with the tag of a cluster.
    pub(super) fn for_tests(id: &str, name: &str, infra_id: &str) -> Self {
        let tag = format!("kubernetes.io/cluster/{infra_id}");
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            is_alive: true,
            tags: Tags::from([(tag, "owned".to_owned())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_read_with_their_owner() {
        let document = "<item><instancesSet>\
            <item><instanceId>i-1</instanceId><privateDnsName>ip-10-0-0-1.ec2.internal</privateDnsName>\
            <instanceState><code>16</code><name>running</name></instanceState><tagSet><item>\
            <key>kubernetes.io/cluster/one-x7k2p</key><value>owned</value></item></tagSet></item>\
            <item><instanceId>i-2</instanceId><instanceState><name>terminated</name></instanceState></item>\
            </instancesSet></item>";
        let reservation = Element::parse(document).unwrap();
        let found: Vec<_> = read(&reservation).collect();
        assert_eq!(
            found[0],
            Instance::for_tests("i-1", "ip-10-0-0-1.ec2.internal", "one-x7k2p")
        );
        assert!(found[0].is_of("one-x7k2p") && !found[0].is_of("one"));
        assert!(!found[1].is_alive && !found[1].is_of("one-x7k2p"));
    }
}
