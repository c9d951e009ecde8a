//! The DNS records of a private link, in the private zone of the cluster.

use super::cloud::{Action, Cloud, Record};
use super::plan::{self, Cluster, Link, Problem};

/// How long resolvers keep a record, in seconds.
const TTL: u32 = 300;

/// Leads the names to the endpoint, and returns the zone.
pub(super) async fn publish(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
    host: &str,
) -> Result<String, Problem> {
    let Some(zone) = zone(cloud, cluster, link).await? else {
        return Err(Problem::Input(format!(
            "Route 53 has no private zone {} of VPC {}: create it",
            cluster.zone(),
            cluster.vpc
        )));
    };
    for name in link.records(cluster) {
        let live = cloud.record(&zone, &name).await?;
        if live
            .as_ref()
            .is_some_and(|it| is_same(&it.value, host) && it.ttl == TTL)
        {
            continue;
        }
        if let Some(live) = live {
            ask(cloud, cluster, link, &live, &zone).await?;
        }
        let record = Record {
            name,
            value: host.to_owned(),
            ttl: TTL,
        };
        cloud.change(&zone, Action::Upsert, &record).await?;
    }
    Ok(zone)
}

/// Deletes the records that lead to one of the hosts. A zone that does not exist has none.
pub(super) async fn withdraw(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
    hosts: &[String],
) -> Result<(), Problem> {
    let Some(zone) = zone(cloud, cluster, link).await? else {
        return Ok(());
    };
    for name in link.all_records(cluster) {
        let live = match cloud.record(&zone, &name).await {
            Err(error) if error.code() == "NoSuchHostedZone" => return Ok(()),
            live => live?,
        };
        let own = live.filter(|it| hosts.iter().any(|host| is_same(&it.value, host)));
        if let Some(record) = own {
            cloud.change(&zone, Action::Delete, &record).await?;
        }
    }
    Ok(())
}

/// Asks whose a record is before it is replaced: another cluster of this name may have the zone.
async fn ask(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
    live: &Record,
    zone: &str,
) -> Result<(), Problem> {
    let mut former = link.status.dns_names.iter();
    if former.any(|it| is_same(it, &live.value)) {
        return Ok(());
    }
    let is_own = match plan::endpoint_of(&live.value) {
        None => false,
        // One that does not exist any more has no owner.
        Some(id) => match cloud.endpoint(&id).await? {
            None => true,
            Some(found) if plan::is_gone(&found) => true,
            Some(found) => found.vpc == cluster.vpc && cluster.owns(&found.tags),
        },
    };
    if is_own {
        return Ok(());
    }
    Err(Problem::Input(format!(
        "record {} of zone {zone} leads to {}, which is not an endpoint of this cluster: delete the record, or give the \
         cluster a zone of its own",
        live.name, live.value
    )))
}

async fn zone(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
) -> Result<Option<String>, Problem> {
    if let Some(zone) = &cluster.local_zone {
        return Ok(Some(zone.clone()));
    }
    let name = cluster.zone();
    match cloud.zones_of(&cluster.vpc).await {
        // Roles of earlier versions may only list all.
        Err(error) if error.is_denied() => {
            let before = link.status.dns_zone_id.as_deref();
            plan::zone(&cloud.zones().await?, &name, before)
        }
        found => {
            let mut found = found?.into_iter();
            Ok(found.find(|it| it.name == name).map(|it| it.id))
        }
    }
}

/// Names may end with a dot, and their case does not matter.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    bare(one) == bare(other)
}
