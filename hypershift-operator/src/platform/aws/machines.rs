//! Machines on AWS.

use std::collections::BTreeMap;

use api::annotations::cluster::AWS_MACHINE_PUBLIC_IPS;
use api::annotations::node_pool::{EC2_METADATA_TOKENS, ENABLE_SPOT};
use api::conditions::PoolCondition;
use api::hypershift::v1beta1::node_pool::{
    AwsCapacityReservation, AwsMarketType, AwsNodePoolPlatform, AwsPlacement,
    AwsReservationPreference, AwsReservedMarketType, AwsResourceReference, AwsTenancy, AwsVolume,
    ImageType, NodePool,
};
use api::hypershift::v1beta1::platform::aws::{AwsPlatformSpec, AwsTagOverridePolicy};
use payload::capabilities::Capability;
use serde_json::{Value, json};

use crate::platform::machines::{Inputs, Machine, Note, Refused};

/// Default size of the disk in GiB.
const ROOT_VOLUME: i64 = 16;
/// The default type of a disk.
const VOLUME_TYPE: &str = "gp3";
/// Pods that are not in the host network are one hop further from the metadata service.
const METADATA_HOPS: u8 = 2;
/// The provider has the singular.
const CAPACITY_BLOCK: &str = "CapacityBlock";
/// The tag of instances that the termination handler watches.
const TERMINATION_HANDLER: &str = "aws-node-termination-handler/managed";

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let pool = of_pool(inputs.pool)?;
    let cluster = of_cluster(inputs)?;
    let (tags, refused_tags) = tags(inputs, pool, cluster);
    let mut spec = json!({
        "additionalSecurityGroups": security_groups(inputs, pool)?,
        "additionalTags": tags,
        "ami": { "id": image(inputs, pool, cluster)? },
        // The user data is a stub that names where the rest is: it needs no store of secrets, and no compression.
        "cloudInit": { "insecureSkipSecretsManager": true, "secureSecretsBackend": "secrets-manager" },
        "iamInstanceProfile": profile(inputs, pool),
        "instanceMetadataOptions": metadata_options(inputs.pool),
        "instanceType": pool.instance_type,
        "rootVolume": root_volume(pool.root_volume.as_ref()),
        // Not even the default key of the provider: SSH keys come with the user data.
        "sshKeyName": "",
        "subnet": reference(&pool.subnet),
        "uncompressedUserData": true,
    });
    place(&mut spec, pool.placement.as_ref(), is_spot(inputs.pool));
    let annotations = inputs.cluster.metadata.annotations.as_ref();
    if annotations.is_some_and(|it| AWS_MACHINE_PUBLIC_IPS.is_true(it)) {
        spec["publicIP"] = json!(true);
    }
    Ok(Machine {
        template: inputs.capi.aws_machine_template(),
        made: inputs.capi.aws_machine(),
        spec,
        live: &["additionalTags"],
        notes: vec![note(&refused_tags)],
    })
}

/// Whether the pool's instances may be taken back at any time.
pub(crate) fn is_spot(pool: &NodePool) -> bool {
    let annotations = pool.metadata.annotations.clone().unwrap_or_default();
    let placement = pool
        .spec
        .platform
        .aws
        .as_ref()
        .and_then(|it| it.placement.as_ref());
    ENABLE_SPOT.is_set(&annotations)
        || placement.is_some_and(|it| it.market_type == Some(AwsMarketType::Spot))
}

fn of_pool(pool: &NodePool) -> Result<&AwsNodePoolPlatform, Refused> {
    let aws = pool.spec.platform.aws.as_ref();
    aws.ok_or_else(|| Refused::invalid("spec.platform.aws is required: set it"))
}

fn of_cluster<'a>(inputs: &Inputs<'a>) -> Result<&'a AwsPlatformSpec, Refused> {
    let aws = inputs.cluster.spec.platform.aws.as_ref();
    aws.ok_or_else(|| Refused::elsewhere("AWS"))
}

fn image<'a>(
    inputs: &Inputs<'a>,
    pool: &'a AwsNodePoolPlatform,
    cluster: &AwsPlatformSpec,
) -> Result<&'a str, Refused> {
    if let Some(ami) = &pool.ami {
        return Ok(ami);
    }
    let (arch, region) = (inputs.pool.spec.arch, cluster.region.as_str());
    let stream = inputs.release.boot_images.as_ref();
    let found = match pool.image_type.unwrap_or(ImageType::Linux) {
        ImageType::Linux => stream.and_then(|it| it.ami(arch, region)),
        ImageType::Windows => stream.and_then(|it| it.windows_ami(arch, region)),
    };
    found.ok_or_else(|| {
        let version = &inputs.release.version;
        Refused::no_image(format!(
            "release {version} has no image for {arch:?} in region {region}: set spec.platform.aws.ami"
        ))
    })
}

fn profile(inputs: &Inputs<'_>, pool: &AwsNodePoolPlatform) -> String {
    let own = pool.instance_profile.clone();
    own.unwrap_or_else(|| format!("{}-worker-profile", inputs.infra_id))
}

/// The pool's groups, and the one that every machine of the cluster has.
fn security_groups(inputs: &Inputs<'_>, pool: &AwsNodePoolPlatform) -> Result<Vec<Value>, Refused> {
    let mut groups: Vec<_> = pool.security_groups.iter().map(reference).collect();
    let status = inputs.cluster.status.as_ref();
    let aws = status.and_then(|it| it.platform.as_ref()?.aws.as_ref());
    match aws.and_then(|it| it.default_worker_security_group_id.as_ref()) {
        Some(id) => groups.push(json!({ "id": id })),
        None if inputs.capabilities.has(Capability::CreatesAwsSecurityGroup)
            && !has_nodes(inputs) =>
        {
            return Err(Refused {
                condition: PoolCondition::AwsSecurityGroupAvailable,
                reason: "DefaultWorkerSecurityGroupNotReady",
                message: "Waiting for the default security group of the workers: see condition AWSDefaultSecurityGroupCreated of the HostedCluster"
                    .to_owned(),
            });
        }
        None => {}
    }
    Ok(groups)
}

/// Whether a release was rolled out to nodes: clusters that had nodes before there was such a group have none.
fn has_nodes(inputs: &Inputs<'_>) -> bool {
    let status = inputs.cluster.status.as_ref();
    let version = status.and_then(|it| it.version.as_ref());
    let mut history = version.iter().flat_map(|it| &it.history);
    history.any(|it| it.state == "Completed")
}

/// All tags, and the keys of pool tags that the cluster overrides.
fn tags(
    inputs: &Inputs<'_>,
    pool: &AwsNodePoolPlatform,
    cluster: &AwsPlatformSpec,
) -> (BTreeMap<String, String>, Vec<String>) {
    let mut refused = Vec::new();
    let mut tags: BTreeMap<_, _> = BTreeMap::new();
    tags.insert(
        format!("kubernetes.io/cluster/{}", inputs.infra_id),
        "owned".to_owned(),
    );
    if is_spot(inputs.pool) {
        tags.insert(TERMINATION_HANDLER.to_owned(), String::new());
    }
    let of_cluster = cluster.resource_tags.iter();
    tags.extend(of_cluster.map(|tag| (tag.key.clone(), tag.value.clone())));
    for tag in &pool.resource_tags {
        let mut of_cluster = cluster.resource_tags.iter();
        let other = of_cluster.find(|other| other.key == tag.key);
        let free = other.is_none_or(|other| {
            other.value == tag.value || other.override_policy == Some(AwsTagOverridePolicy::Allow)
        });
        if free {
            tags.insert(tag.key.clone(), tag.value.clone());
        } else {
            refused.push(tag.key.clone());
        }
    }
    (tags, refused)
}

fn note(refused: &[String]) -> Note {
    let message = if refused.is_empty() {
        "the tags of the NodePool and of the HostedCluster do not conflict".to_owned()
    } else {
        format!(
            "the HostedCluster has another value for tag {}, which takes precedence: remove the tag from the NodePool, or set its overridePolicy to Allow in the HostedCluster",
            refused.join(", ")
        )
    };
    Note {
        condition: PoolCondition::AwsResourceTagConflict,
        is_so: !refused.is_empty(),
        reason: if refused.is_empty() {
            "AsExpected"
        } else {
            "TagConflict"
        },
        message,
    }
}

fn reference(reference: &AwsResourceReference) -> Value {
    let AwsResourceReference { id, filters } = reference;
    match id {
        Some(id) => json!({ "id": id }),
        None => json!({ "filters": filters }),
    }
}

fn root_volume(volume: Option<&AwsVolume>) -> Value {
    let Some(volume) = volume else {
        return json!({ "size": ROOT_VOLUME });
    };
    let AwsVolume {
        size,
        type_,
        iops,
        encrypted,
        encryption_key,
    } = volume;
    let type_ = Some(type_.as_str()).filter(|it| !it.is_empty());
    let mut root = json!({ "size": size, "type": type_.unwrap_or(VOLUME_TYPE) });
    let optional = [
        ("iops", iops.map(|it| json!(it))),
        ("encrypted", encrypted.map(|it| json!(it))),
        ("encryptionKey", encryption_key.as_ref().map(|it| json!(it))),
    ];
    set(&mut root, optional);
    root
}

fn metadata_options(pool: &NodePool) -> Value {
    let annotations = pool.metadata.annotations.clone().unwrap_or_default();
    let required =
        matches!(EC2_METADATA_TOKENS.get(&annotations), Ok(Some(it)) if it == "required");
    json!({
        "httpEndpoint": "enabled",
        "httpPutResponseHopLimit": METADATA_HOPS,
        "httpTokens": if required { "required" } else { "optional" },
        "instanceMetadataTags": "disabled",
    })
}

/// Placement and tenancy.
fn place(spec: &mut Value, placement: Option<&AwsPlacement>, spot: bool) {
    let AwsPlacement {
        tenancy,
        market_type,
        spot: terms,
        capacity_reservation,
    } = placement.cloned().unwrap_or_default();
    let reservation = capacity_reservation.unwrap_or_default();
    let AwsCapacityReservation {
        id,
        market_type: reserved,
        preference,
    } = reservation;
    let price = terms.and_then(|it| it.max_price);
    // What a reservation without a kind is. Dedicated hosts are in none of that kind.
    let block = (id.is_some() && tenancy != Some(AwsTenancy::Host)).then_some(CAPACITY_BLOCK);
    let market = market_type
        .and_then(market)
        .or(reserved.map(reserved_market))
        .or(block);
    let market = if spot { Some("Spot") } else { market };
    let optional = [
        ("tenancy", tenancy.map(|it| json!(tenancy_name(it)))),
        ("marketType", market.map(|it| json!(it))),
        (
            "spotMarketOptions",
            spot.then(|| price.map_or(json!({}), |it| json!({ "maxPrice": it }))),
        ),
        ("capacityReservationId", id.map(|it| json!(it))),
        (
            "capacityReservationPreference",
            preference.and_then(preference_name).map(|it| json!(it)),
        ),
    ];
    set(spec, optional);
}

fn tenancy_name(tenancy: AwsTenancy) -> &'static str {
    match tenancy {
        AwsTenancy::Default => "default",
        AwsTenancy::Dedicated => "dedicated",
        AwsTenancy::Host => "host",
    }
}

fn market(market: AwsMarketType) -> Option<&'static str> {
    match market {
        AwsMarketType::Unset => None,
        AwsMarketType::OnDemand => Some("OnDemand"),
        AwsMarketType::Spot => Some("Spot"),
        AwsMarketType::CapacityBlocks => Some(CAPACITY_BLOCK),
    }
}

fn reserved_market(market: AwsReservedMarketType) -> &'static str {
    match market {
        AwsReservedMarketType::OnDemand => "OnDemand",
        AwsReservedMarketType::CapacityBlocks => CAPACITY_BLOCK,
    }
}

fn preference_name(preference: AwsReservationPreference) -> Option<&'static str> {
    match preference {
        AwsReservationPreference::Unset => None,
        AwsReservationPreference::None => Some("None"),
        AwsReservationPreference::CapacityReservationsOnly => Some("CapacityReservationsOnly"),
        AwsReservationPreference::Open => Some("Open"),
    }
}

fn set<const N: usize>(object: &mut Value, fields: [(&str, Option<Value>); N]) {
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_without_a_kind_are_capacity_blocks() {
        let reserved = |more: &Value| {
            let mut reservation = json!({ "id": "cr-0123456789abcdef0" });
            for (key, value) in more.as_object().into_iter().flatten() {
                reservation[key] = value.clone();
            }
            reservation
        };
        let id = || reserved(&json!({}));
        for (placement, is_spot, expected) in [
            (json!({}), false, None),
            (
                json!({ "capacityReservation": id() }),
                false,
                Some("CapacityBlock"),
            ),
            (
                json!({ "capacityReservation": id(), "marketType": "" }),
                false,
                Some("CapacityBlock"),
            ),
            (
                json!({ "capacityReservation": id(), "tenancy": "dedicated" }),
                false,
                Some("CapacityBlock"),
            ),
            (
                json!({ "capacityReservation": reserved(&json!({ "preference": "CapacityReservationsOnly" })) }),
                false,
                Some("CapacityBlock"),
            ),
            (
                json!({ "capacityReservation": id(), "tenancy": "host" }),
                false,
                None,
            ),
            (
                json!({ "capacityReservation": { "preference": "Open" } }),
                false,
                None,
            ),
            (
                json!({ "capacityReservation": id(), "marketType": "OnDemand" }),
                false,
                Some("OnDemand"),
            ),
            (
                json!({ "capacityReservation": reserved(&json!({ "marketType": "OnDemand" })) }),
                false,
                Some("OnDemand"),
            ),
            (
                json!({ "capacityReservation": reserved(&json!({ "marketType": "OnDemand" })), "marketType": "CapacityBlocks" }),
                false,
                Some("CapacityBlock"),
            ),
            (
                json!({ "capacityReservation": reserved(&json!({ "marketType": "CapacityBlocks" })), "tenancy": "host" }),
                false,
                Some("CapacityBlock"),
            ),
            (json!({ "capacityReservation": id() }), true, Some("Spot")),
        ] {
            let read: AwsPlacement = serde_json::from_value(placement.clone()).unwrap();
            let mut spec = json!({});
            place(&mut spec, Some(&read), is_spot);
            assert_eq!(spec["marketType"].as_str(), expected, "{placement}");
            let id = read.capacity_reservation.and_then(|it| it.id);
            assert_eq!(spec["capacityReservationId"].as_str(), id.as_deref());
        }
    }
}
