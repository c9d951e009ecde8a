//! The roles of a cluster on AWS: which field names each, and the Secrets that name roles in place of fields, as clusters
//! have that were made long ago.

use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::aws::AwsRolesReference;

use crate::facts::Facts;

/// Prefix of such a value, before the name of the Secret.
const FROM_SECRET: &str = "arn-from-secret::";
/// The key of the Secret.
pub(crate) const KEY: &str = "credentials";
/// The key of the role ARN in the profile of the Secret.
const ROLE: &str = "role_arn";
/// The Secret of the role that manages machines.
pub(crate) const NODE_MANAGEMENT: &str = "node-management-creds";
/// The field of the role in which Secrets are encrypted.
pub(crate) const KMS_FIELD: &str = "secretEncryption.kms.aws.auth.awsKms";

/// A role that a component of the cluster assumes.
pub(crate) struct Role<'a> {
    /// The field that names it, below `spec`.
    pub(crate) field: &'static str,
    /// The Secret with its profile in the control plane namespace, if a component on the management cluster assumes it.
    pub(crate) secret: Option<&'static str>,
    pub(crate) arn: &'a mut String,
}

/// All roles of the components.
pub(crate) fn roles(roles: &mut AwsRolesReference) -> [Role<'_>; 7] {
    let AwsRolesReference {
        ingress_arn,
        image_registry_arn,
        storage_arn,
        network_arn,
        kube_cloud_controller_arn,
        node_pool_management_arn,
        control_plane_operator_arn,
    } = roles;
    [
        Role {
            field: "platform.aws.rolesRef.ingressARN",
            secret: None,
            arn: ingress_arn,
        },
        Role {
            field: "platform.aws.rolesRef.imageRegistryARN",
            secret: None,
            arn: image_registry_arn,
        },
        Role {
            field: "platform.aws.rolesRef.storageARN",
            secret: Some("ebs-cloud-credentials"),
            arn: storage_arn,
        },
        Role {
            field: "platform.aws.rolesRef.networkARN",
            secret: Some("cloud-network-config-controller-creds"),
            arn: network_arn,
        },
        Role {
            field: "platform.aws.rolesRef.kubeCloudControllerARN",
            secret: Some("cloud-controller-creds"),
            arn: kube_cloud_controller_arn,
        },
        Role {
            field: "platform.aws.rolesRef.nodePoolManagementARN",
            secret: Some(NODE_MANAGEMENT),
            arn: node_pool_management_arn,
        },
        Role {
            field: "platform.aws.rolesRef.controlPlaneOperatorARN",
            secret: Some("control-plane-operator-creds"),
            arn: control_plane_operator_arn,
        },
    ]
}

/// Each field that may name a role, with its value.
fn fields(cluster: &mut HostedCluster) -> Vec<(&'static str, &mut String)> {
    let mut fields = Vec::new();
    if let Some(aws) = &mut cluster.spec.platform.aws {
        let roles = roles(&mut aws.roles_ref).into_iter();
        fields.extend(roles.map(|role| (role.field, role.arn)));
    }
    let encryption = cluster.spec.secret_encryption.as_mut();
    let kms = encryption.and_then(|it| it.kms.as_mut()?.aws.as_mut());
    fields.extend(kms.map(|it| (KMS_FIELD, &mut it.auth.aws_kms)));
    fields
}

/// The fields that name a Secret in place of a role, and the Secret.
pub(crate) fn secrets(cluster: &HostedCluster) -> Vec<(&'static str, String)> {
    let mut cluster = cluster.clone();
    let named = fields(&mut cluster).into_iter();
    named
        .filter_map(|(field, value)| Some((field, value.strip_prefix(FROM_SECRET)?.to_owned())))
        .collect()
}

/// Replaces references to Secrets by the roles in them. Only the facts change, not the HostedCluster.
pub(crate) fn resolve(facts: &mut Facts) {
    let found: Vec<_> = secrets(&facts.cluster)
        .into_iter()
        .filter_map(|(field, secret)| {
            let data = facts.secret(&secret)?.data.as_ref()?;
            Some((field, role(&data.get(KEY)?.0)?))
        })
        .collect();
    for (field, value) in fields(&mut facts.cluster) {
        if let Some((_, role)) = found.iter().find(|(named, _)| *named == field) {
            value.clone_from(role);
        }
    }
}

/// The role of a profile.
fn role(profile: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(profile).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == ROLE).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use k8s_openapi::ByteString;

    use super::*;
    use crate::facts::Found;
    use crate::facts::fixture;

    fn facts(profile: &str) -> Facts {
        let mut cluster = fixture::hosted_cluster("aws");
        let aws = cluster.spec.platform.aws.as_mut().unwrap();
        aws.roles_ref.storage_arn = "arn-from-secret::disks".to_owned();
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
        for (reference, found) in &mut facts.referenced {
            if let (Found::Secret(secret), "disks") = (found, reference.name.as_str()) {
                let data = secret.data.get_or_insert_default();
                data.insert(KEY.to_owned(), ByteString(profile.as_bytes().to_vec()));
            }
        }
        facts
    }

    fn storage(facts: &Facts) -> &str {
        let aws = facts.cluster.spec.platform.aws.as_ref();
        &aws.unwrap().roles_ref.storage_arn
    }

    #[test]
    fn roles_are_resolved_from_secrets() {
        let arn = "arn:aws:iam::123456789012:role/disks";
        let mut facts = facts(&format!(
            "[default]\nrole_arn = {arn}\nregion = us-east-1\n"
        ));
        resolve(&mut facts);
        assert_eq!(storage(&facts), arn);
        assert_eq!(secrets(&facts.cluster), []);
    }

    #[test]
    fn a_secret_without_a_role_leaves_the_field_unchanged() {
        let mut facts = facts("[default]\naws_access_key_id = x\n");
        resolve(&mut facts);
        assert_eq!(storage(&facts), "arn-from-secret::disks");
        let field = "platform.aws.rolesRef.storageARN";
        assert_eq!(secrets(&facts.cluster), [(field, "disks".to_owned())]);
    }
}
