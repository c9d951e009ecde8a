//! Roles that are named by a Secret: clusters that were made long ago have them so.

use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::aws::AwsRolesReference;

use crate::facts::Facts;

/// Prefix of such a value, before the name of the Secret.
const FROM_SECRET: &str = "arn-from-secret::";
/// The key of the Secret.
pub(crate) const KEY: &str = "credentials";
/// The key of the role ARN in the profile of the Secret.
const ROLE: &str = "role_arn";

/// Each field that may name a role, with its value.
fn fields(cluster: &mut HostedCluster) -> Vec<(&'static str, &mut String)> {
    let mut fields = Vec::new();
    if let Some(aws) = &mut cluster.spec.platform.aws {
        let AwsRolesReference {
            ingress_arn,
            image_registry_arn,
            storage_arn,
            network_arn,
            kube_cloud_controller_arn,
            node_pool_management_arn,
            control_plane_operator_arn,
        } = &mut aws.roles_ref;
        fields.extend([
            ("platform.aws.rolesRef.ingressARN", ingress_arn),
            ("platform.aws.rolesRef.imageRegistryARN", image_registry_arn),
            ("platform.aws.rolesRef.storageARN", storage_arn),
            ("platform.aws.rolesRef.networkARN", network_arn),
            (
                "platform.aws.rolesRef.kubeCloudControllerARN",
                kube_cloud_controller_arn,
            ),
            (
                "platform.aws.rolesRef.nodePoolManagementARN",
                node_pool_management_arn,
            ),
            (
                "platform.aws.rolesRef.controlPlaneOperatorARN",
                control_plane_operator_arn,
            ),
        ]);
    }
    let encryption = cluster.spec.secret_encryption.as_mut();
    let kms = encryption.and_then(|it| it.kms.as_mut()?.aws.as_mut());
    fields.extend(kms.map(|it| ("secretEncryption.kms.aws.auth.awsKms", &mut it.auth.aws_kms)));
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
