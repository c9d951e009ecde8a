//! The policy in the hosted cluster by which only this program writes the settings of EC2NodeClasses: what a class of this
//! project does not have, such as another instance profile or other user data, is not open to users. Pure.

use serde_json::{Value, json};

use super::kinds;

/// The policy, and what makes it count.
const POLICY: &str = "karpenter.ec2nodeclass.hypershift.io";
const BINDING: &str = "karpenter-binding.ec2nodeclass.hypershift.io";
/// As whom this program acts in the hosted cluster: the kubeconfig is that of another operator.
const AUTHOR: &str = "system:hosted-cluster-config";

/// Who may write: this program may do everything, others may change what is not in the settings.
fn expression() -> String {
    format!(
        "request.userInfo.username == '{AUTHOR}' || (oldObject != null && object.spec == oldObject.spec)"
    )
}

/// The policy.
pub(super) fn policy() -> Value {
    let ec2 = kinds::ec2_node_class();
    json!({
        "metadata": { "name": POLICY },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [ec2.group],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [ec2.plural],
            }] },
            "validations": [{
                "expression": expression(),
                "message": "An EC2NodeClass is made from the OpenshiftEC2NodeClass of its name: create or change that one.",
            }],
        },
    })
}

/// What makes it count.
pub(super) fn binding() -> Value {
    json!({
        "metadata": { "name": BINDING },
        "spec": { "policyName": POLICY, "validationActions": ["Deny"] },
    })
}

#[cfg(test)]
mod tests {
    use cel::parser::Parser;

    use super::*;

    #[test]
    fn the_policy_is_an_expression_about_every_write_of_settings() {
        let expression = expression();
        assert!(Parser::new().parse(&expression).is_ok(), "{expression}");
        let policy = policy();
        let rule = &policy["spec"]["matchConstraints"]["resourceRules"][0];
        assert_eq!(rule["apiGroups"], json!(["karpenter.k8s.aws"]));
        assert_eq!(rule["resources"], json!(["ec2nodeclasses"]));
        assert_eq!(rule["operations"], json!(["CREATE", "UPDATE"]));
        // A policy that cannot be evaluated lets nothing through.
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        assert_eq!(binding()["spec"]["policyName"], policy["metadata"]["name"]);
    }
}
