//! AWS: the network is the user's, the controllers are those of the release, and they act in roles of the user's.

use api::group::AWS_MACHINE_FINALIZER;
use api::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use k8s_openapi::api::core::v1::{PodSpec, Secret};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::aws_roles::{KEY, KMS_FIELD, NODE_MANAGEMENT, roles};
use crate::facts::{Facts, auto_node};
use crate::names;
use crate::platform::aws::identity;
use crate::platform::aws::profile::{Region, RoleArn, profile};
use crate::platform::release_image::of_release;
use crate::platform::{ClusterIs, Infrastructure, Orphans};

/// The release's name for the controllers.
const IMAGE: &str = "aws-cluster-api-controllers";
/// Their program.
const PROGRAM: &str = "/bin/cluster-api-provider-aws-controller-manager";
/// Annotation that names another image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-aws-image";
/// The field with the role of Karpenter.
const KARPENTER_FIELD: &str = "autoNode.provisionerConfig.karpenter.aws.roleARN";
/// The role in which Secrets are encrypted.
const KEY_ROLE: &str = "kms-creds";

/// Amazon Web Services.
#[derive(Debug)]
pub(crate) struct Aws;

// === impl Aws ===

impl Infrastructure for Aws {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let Some(aws) = &facts.cluster.spec.platform.aws else {
            return ClusterIs::Later;
        };
        let mut fields = json!({ "spec": {
            "region": aws.region,
            "network": network(facts, aws),
            "additionalTags": tags(facts, aws),
        }});
        if let Some(endpoint) = facts.control_plane_endpoint() {
            fields["spec"]["controlPlaneEndpoint"] = endpoint;
        }
        let name = &facts.id.name;
        let cluster = Desired::of(facts.capi.aws_cluster(), &facts.namespace, name, fields);
        ClusterIs::Desired(Box::new(cluster))
    }

    fn kinds(&self, capi: Capi) -> Option<Vec<ApiResource>> {
        Some(vec![
            capi.aws_cluster(),
            capi.aws_machine_template(),
            capi.aws_machine(),
        ])
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.aws_provider.as_ref();
        of_release(facts, IMAGE_ANNOTATION, flag, IMAGE)
    }

    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        let Some(aws) = &facts.cluster.spec.platform.aws else {
            return Some(Vec::new());
        };
        // The one list of roles gives access for writing, which facts do not.
        let mut references = aws.roles_ref.clone();
        let roles = roles(&mut references).into_iter();
        let mut problems: Vec<_> = roles
            .filter_map(|role| no_role(role.field, role.arn))
            .collect();
        problems.extend(no_region("platform.aws.region", &aws.region));
        let karpenter = auto_node::karpenter(&facts.cluster);
        problems.extend(karpenter.and_then(|it| no_role(KARPENTER_FIELD, &it.role_arn)));
        if let Some((region, arn)) = key_role(facts) {
            problems.extend(no_role(KMS_FIELD, arn));
            problems.extend(no_region("secretEncryption.kms.aws.region", region));
        }
        Some(problems)
    }

    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let Some(aws) = &facts.cluster.spec.platform.aws else {
            return Vec::new();
        };
        let secret = |name: &str, arn: RoleArn<'_>, region: Region<'_>| {
            let data = base64(&profile(arn, region));
            let fields = json!({ "type": "Opaque", "data": { KEY: data } });
            Desired::new::<Secret>(&facts.namespace, name, fields)
        };
        let mut references = aws.roles_ref.clone();
        let roles = roles(&mut references).into_iter();
        let roles =
            roles.filter_map(|role| Some((role.secret?, role.arn.as_str(), aws.region.as_str())));
        let key = key_role(facts).map(|(region, arn)| (KEY_ROLE, arn, region));
        let karpenter = auto_node::karpenter(&facts.cluster);
        let karpenter = karpenter.map(|it| {
            let (role, region) = (it.role_arn.as_str(), aws.region.as_str());
            (names::KARPENTER_CREDENTIALS, role, region)
        });
        let secrets = roles.chain(key).chain(karpenter);
        secrets
            .filter_map(|(name, arn, region)| {
                let (arn, region) = (RoleArn::parse(arn)?, Region::parse(region)?);
                Some(secret(name, arn, region))
            })
            .collect()
    }

    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let Some(container) = pod.containers.first_mut() else {
            return;
        };
        container.command = Some(vec![PROGRAM.to_owned()]);
        let mut args = vec![
            "--namespace=$(MY_NAMESPACE)".to_owned(),
            "--v=4".to_owned(),
            "--leader-elect=true".to_owned(),
            "--feature-gates=EKS=false,ROSA=false".to_owned(),
        ];
        let aws = facts.cluster.spec.platform.aws.as_ref();
        args.extend(aws.and_then(service_endpoints));
        container.args = Some(args);
        let variables = [
            ("AWS_SHARED_CREDENTIALS_FILE", "/home/.aws/credentials"),
            ("AWS_SDK_LOAD_CONFIG", "true"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ];
        let variables = variables.map(|(name, value)| json!({ "name": name, "value": value }));
        let mounts =
            json!([{ "name": "credentials", "mountPath": "/home/.aws", "readOnly": true }]);
        super::super::add(&mut container.env, json!(variables));
        super::super::add(&mut container.volume_mounts, mounts);
        let volumes =
            json!([{ "name": "credentials", "secret": { "secretName": NODE_MANAGEMENT } }]);
        super::super::add(&mut pod.volumes, volumes);
    }

    fn orphans(&self, facts: &Facts) -> Option<Orphans> {
        identity::is_invalid(&facts.cluster).then(|| Orphans {
            resource: facts.capi.aws_machine(),
            finalizer: AWS_MACHINE_FINALIZER,
            is_orphaned: |machine, _, _| machine.deletion_timestamp.is_some(),
        })
    }
}

/// The VPC, and the subnets with public addresses: in others the provider refuses them.
fn network(facts: &Facts, aws: &AwsPlatformSpec) -> Value {
    let vpc = aws.cloud_provider_config.as_ref().map(|it| &it.vpc);
    let mut network = vpc.map_or(json!({}), |vpc| json!({ "vpc": { "id": vpc } }));
    let subnets = facts.public_subnets.iter();
    let subnets: Vec<_> = subnets
        .map(|id| json!({ "id": id, "isPublic": true }))
        .collect();
    if !subnets.is_empty() {
        network["subnets"] = json!(subnets);
    }
    network
}

/// The user's tags, and the tag that marks resources as owned by the cluster.
fn tags(facts: &Facts, aws: &AwsPlatformSpec) -> Value {
    let mut tags = json!({ owned_tag(facts.infra_id()): "owned" });
    for tag in &aws.resource_tags {
        tags[&tag.key] = json!(tag.value);
    }
    tags
}

/// The tag of a cluster's resources.
pub(crate) fn owned_tag(infra_id: &str) -> String {
    format!("kubernetes.io/cluster/{infra_id}")
}

/// Region and role of the key that Secrets are encrypted with, if AWS has it.
fn key_role(facts: &Facts) -> Option<(&str, &str)> {
    let encryption = facts.cluster.spec.secret_encryption.as_ref()?;
    let aws = encryption.kms.as_ref()?.aws.as_ref()?;
    Some((&aws.region, &aws.auth.aws_kms))
}

/// Validates a field that names a role.
fn no_role(field: &str, arn: &str) -> Option<String> {
    RoleArn::parse(arn).is_none().then(|| {
        format!(
            "spec.{field} is {arn:?}, which is not the ARN of a role \
             (for example arn:aws:iam::123456789012:role/name): set it to the role that was created for the cluster"
        )
    })
}

/// Validates a field that names a region.
fn no_region(field: &str, region: &str) -> Option<String> {
    Region::parse(region).is_none().then(|| {
        format!("spec.{field} is {region:?}, which is not a region (for example us-east-1)")
    })
}

fn service_endpoints(aws: &AwsPlatformSpec) -> Option<String> {
    let pairs: Vec<_> = aws
        .service_endpoints
        .iter()
        .map(|it| format!("{}={}", it.name, it.url))
        .collect();
    (!pairs.is_empty()).then(|| format!("--service-endpoints={}:{}", aws.region, pairs.join(",")))
}

fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn the_kms_role_profile_uses_the_region_of_the_key() {
        let mut cluster = fixture::hosted_cluster("aws");
        let kms = |role: &str| {
            json!({ "type": "kms", "kms": { "provider": "AWS", "aws": {
                "region": "eu-west-1",
                "activeKey": { "arn": "arn:aws:kms:eu-west-1:123456789012:key/a" },
                "auth": { "awsKms": role },
            } } })
        };
        let arn = "arn:aws:iam::123456789012:role/kms";
        cluster.spec.secret_encryption = serde_json::from_value(kms(arn)).unwrap();
        let facts = fixture::facts(cluster.clone(), CapiTypes::Private);
        let secrets = Aws.secrets(&facts);
        let made = secrets.iter().find(|it| it.name() == KEY_ROLE).unwrap();
        let role = RoleArn::parse(arn).unwrap();
        let expected = base64(&profile(role, Region::parse("eu-west-1").unwrap()));
        assert_eq!(made.body["data"]["credentials"], expected);
        assert_eq!(Aws.credentials(&facts), Some(Vec::new()));
        cluster.spec.secret_encryption = serde_json::from_value(kms("kms")).unwrap();
        let facts = fixture::facts(cluster, CapiTypes::Private);
        let problems = Aws.credentials(&facts).unwrap();
        assert!(problems[0].contains("awsKms is \"kms\""), "{problems:?}");
    }

    #[test]
    fn images_of_the_provider_have_an_order() {
        let release = "images.example.com/4.20.1/";
        for (annotation, flag, expected) in [
            (None, None, release),
            (None, Some("b"), "b"),
            (Some("a"), Some("b"), "a"),
        ] {
            let mut facts = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
            let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
            let given = annotation.map(|it: &str| (IMAGE_ANNOTATION.to_owned(), it.to_owned()));
            annotations.extend(given);
            facts.images.aws_provider = flag.map(str::to_owned);
            let image = Aws.provider_image(&facts).unwrap().unwrap();
            assert!(
                image.starts_with(expected),
                "{annotation:?} {flag:?}: {image}"
            );
        }
    }

    #[test]
    fn subnets_of_public_machines_are_public() {
        let mut facts = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
        let network = |facts: &Facts| match Aws.cluster(facts) {
            ClusterIs::Desired(it) => it.body["spec"]["network"].clone(),
            ClusterIs::Later | ClusterIs::Absent => Value::Null,
        };
        assert_eq!(network(&facts), json!({ "vpc": { "id": "vpc-1" } }));
        facts.public_subnets = ["subnet-2", "subnet-1"].map(str::to_owned).into();
        let subnets = json!([
            { "id": "subnet-1", "isPublic": true },
            { "id": "subnet-2", "isPublic": true },
        ]);
        assert_eq!(network(&facts)["subnets"], subnets);
    }

    #[test]
    fn karpenter_gets_the_profile_of_its_role() {
        let mut cluster = fixture::hosted_cluster("aws");
        fixture::with_auto_node(&mut cluster);
        let facts = fixture::facts(cluster.clone(), CapiTypes::Private);
        assert_eq!(Aws.credentials(&facts), Some(Vec::new()));
        let secrets = Aws.secrets(&facts);
        let name = names::KARPENTER_CREDENTIALS;
        let made = secrets.iter().find(|it| it.name() == name).unwrap();
        let role = RoleArn::parse("arn:aws:iam::123456789012:role/karpenter").unwrap();
        let expected = base64(&profile(role, Region::parse("us-east-1").unwrap()));
        assert_eq!(made.body["data"]["credentials"], expected);

        let auto_node = cluster.spec.auto_node.as_mut().unwrap();
        let karpenter = auto_node.provisioner_config.karpenter.as_mut().unwrap();
        let injected = "arn:aws:iam::123456789012:role/a\ncredential_process = sh -c id";
        karpenter.aws.as_mut().unwrap().role_arn = injected.to_owned();
        let facts = fixture::facts(cluster, CapiTypes::Private);
        let problems = Aws.credentials(&facts).unwrap();
        assert!(problems[0].starts_with("spec.autoNode."), "{problems:?}");
        assert!(Aws.secrets(&facts).iter().all(|it| it.name() != name));
    }

    /// Check T16: a value with a line break is refused with its field, and no profile is written from it.
    #[test]
    fn profiles_reject_injected_settings() {
        let injected = "arn:aws:iam::123456789012:role/a\ncredential_process = sh -c id";
        let mut cluster = fixture::hosted_cluster("aws");
        let aws = cluster.spec.platform.aws.as_mut().unwrap();
        aws.roles_ref.storage_arn = injected.to_owned();
        let facts = fixture::facts(cluster.clone(), CapiTypes::Private);
        let problems = Aws.credentials(&facts).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("spec.platform.aws.rolesRef.storageARN is "),
            "{problems:?}"
        );
        let written = Aws.secrets(&facts);
        assert!(
            written
                .iter()
                .all(|it| it.name() != "ebs-cloud-credentials")
        );
        assert_eq!(written.len(), 4);

        let aws = cluster.spec.platform.aws.as_mut().unwrap();
        aws.region = "us-east-1\ncredential_process = sh -c id".to_owned();
        let facts = fixture::facts(cluster, CapiTypes::Private);
        let problems = Aws.credentials(&facts).unwrap();
        assert!(
            problems[1].starts_with("spec.platform.aws.region is "),
            "{problems:?}"
        );
        assert!(Aws.secrets(&facts).is_empty());
    }
}
