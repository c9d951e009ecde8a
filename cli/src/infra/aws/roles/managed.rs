//! Policies that AWS manages for Red Hat OpenShift Service on AWS (ROSA), in place of those of each role. Pure.

use serde_json::{Value, json};

use super::{CLOUD_CONTROLLER, INGRESS, KARPENTER, Role};
use crate::infra::aws::scope::Scope;

/// Tags that these policies require of what they are for.
pub(crate) const TAGS: [(&str, &str); 2] =
    [("red-hat-managed", "true"), ("red-hat-clustertype", "rosa")];
/// The end of the name of the role of workers, which a policy requires.
const WORKER_ROLE: &str = "worker-ROSA-Worker-Role";
const WORKER_POLICY: &str = "ROSAWorkerInstancePolicy";

/// The policy of a role, by the end of the role's name. `None` if there is no managed one.
fn policy(role: &Role) -> Option<&'static str> {
    Some(match role.name {
        "openshift-ingress" => "ROSAIngressOperatorPolicy",
        "openshift-image-registry" => "ROSAImageRegistryOperatorPolicy",
        "aws-ebs-csi-driver-controller" => "ROSAAmazonEBSCSIDriverOperatorPolicy",
        "cloud-controller" => "ROSAKubeControllerPolicy",
        "node-pool" => "ROSANodePoolManagementPolicy",
        "control-plane-operator" => "ROSAControlPlaneOperatorPolicy",
        "cloud-network-config-controller" => "ROSACloudNetworkConfigOperatorPolicy",
        "kms-provider" => "ROSAKMSProviderPolicy",
        _ => return None,
    })
}

fn arn(scope: &Scope, policy: &str) -> String {
    let partition = scope.partition();
    format!("arn:{partition}:iam::aws:policy/service-role/{policy}")
}

/// The ARN of the policy of a role; `None` for Karpenter, which has none.
pub(super) fn arn_for(scope: &Scope, role: &Role) -> Option<String> {
    if role.name == KARPENTER {
        return None;
    }
    policy(role).map(|policy| arn(scope, policy))
}

/// The name of the role of workers, and the ARN of its policy.
pub(crate) fn worker(scope: &Scope) -> (String, String) {
    (scope.named(WORKER_ROLE), arn(scope, WORKER_POLICY))
}

/// What a role needs beside its managed policy: that of the ingress is limited to domains of the service.
pub(super) fn more(role: &Role, base_domain: &str, zones: &Value) -> Option<Value> {
    match role.name {
        INGRESS => Some(json!({
            "Effect": "Allow",
            "Action": ["route53:ChangeResourceRecordSets"],
            "Resource": zones,
            "Condition": { "ForAllValues:StringLike": {
                "route53:ChangeResourceRecordSetsNormalizedRecordNames": [format!("*.{base_domain}")],
            } },
        })),
        CLOUD_CONTROLLER => Some(json!({
            "Effect": "Allow",
            "Action": ["elasticloadbalancing:SetSecurityGroups"],
            "Resource": "*",
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROLES;
    use super::*;
    use crate::infra::aws::call::Tags;

    #[test]
    fn every_role_but_that_of_karpenter_has_a_managed_policy() {
        let scope = Scope::new("a-x1", "a", "us-gov-west-1", Tags::new()).unwrap();
        let arns = ROLES.map(|role| (role.name, arn_for(&scope, &role)));
        for (name, arn) in &arns {
            assert_eq!(arn.is_none(), *name == KARPENTER, "{name}");
        }
        let prefix = "arn:aws-us-gov:iam::aws:policy/service-role/ROSA";
        let mut there: Vec<_> = arns.iter().filter_map(|(_, arn)| arn.clone()).collect();
        assert!(there.iter().all(|arn| arn.starts_with(prefix)));
        there.sort();
        there.dedup();
        assert_eq!(there.len(), ROLES.len() - 1);
        assert_eq!(worker(&scope).0, "a-x1-worker-ROSA-Worker-Role");
    }

    #[test]
    fn records_of_the_base_domain_may_be_changed() {
        let more = |name: &str| {
            let role = *ROLES.iter().find(|role| role.name == name).unwrap();
            more(&role, "example.com", &json!(["arn:zone"]))
        };
        let ingress = more(INGRESS).unwrap();
        assert_eq!(ingress["Resource"], json!(["arn:zone"]));
        let condition = &ingress["Condition"]["ForAllValues:StringLike"];
        let names = &condition["route53:ChangeResourceRecordSetsNormalizedRecordNames"];
        assert_eq!(*names, json!(["*.example.com"]));
        assert!(more(CLOUD_CONTROLLER).is_some());
        assert_eq!(more("node-pool"), None);
    }
}
