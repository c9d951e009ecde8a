//! Which roles a cluster has and with which policies: one for each component or one for all, with policies of their own or
//! managed ones. Pure.

use serde_json::{Value, json};

use super::{
    CONTROL_PLANE, INGRESS, KARPENTER, On, ROLES, Resources, Role, SHARED, managed, trust,
};
use crate::Usage;
use crate::infra::aws::scope::Scope;

/// The most characters, without spaces, of all policies that are written into one role.
const LARGEST: usize = 10_240;

/// What roles are like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Whether all components have one role.
    pub(crate) shared: bool,
    /// The base domain of the cluster, if roles have the managed policies of ROSA.
    pub(crate) managed: Option<String>,
}

/// A role that is created.
#[derive(Debug, Clone)]
pub(crate) struct RolePlan {
    pub(crate) name: String,
    pub(crate) trust: Value,
    /// ARNs of policies that are attached.
    pub(crate) attached: Vec<String>,
    /// Policies of its own: names and documents.
    pub(crate) inline: Vec<(String, Value)>,
    /// The components that act as it.
    pub(crate) serves: Vec<Role>,
}

// === impl RolePlan ===

impl RolePlan {
    /// Whether it is that of the component with this end of a name.
    fn is_of(&self, name: &str) -> bool {
        self.serves.iter().any(|role| role.name == name)
    }

    /// Whether the ingress operator acts as it.
    pub(crate) fn is_of_ingress(&self) -> bool {
        self.is_of(INGRESS)
    }

    /// Whether the operator of control planes acts as it.
    pub(crate) fn is_of_control_plane(&self) -> bool {
        self.is_of(CONTROL_PLANE)
    }
}

/// The roles of the components, in the order of their creation. `provider` is the ARN of the identity provider of the issuer.
pub(crate) fn plan(
    scope: &Scope,
    resources: &Resources,
    form: &Form,
    provider: &str,
    issuer: &str,
) -> Vec<RolePlan> {
    let wanted = ROLES.into_iter().filter(|role| role.is_wanted(resources));
    let groups: Vec<(String, Vec<Role>)> = if form.shared {
        vec![(scope.named(SHARED), wanted.collect())]
    } else {
        wanted
            .map(|role| (scope.named(role.name), vec![role]))
            .collect()
    };
    let planned = groups.into_iter().map(|(name, serves)| {
        let accounts = serves.iter().flat_map(|role| role.accounts);
        let accounts: Vec<_> = accounts.copied().collect();
        RolePlan {
            trust: trust(&accounts, provider, issuer),
            attached: attached(scope, form, &serves),
            inline: inline(scope, resources, form, &name, &serves),
            name,
            serves,
        }
    });
    planned.collect()
}

/// ARNs of managed policies.
fn attached(scope: &Scope, form: &Form, serves: &[Role]) -> Vec<String> {
    if form.managed.is_none() {
        return Vec::new();
    }
    let serves = serves.iter();
    serves
        .filter_map(|role| managed::arn_for(scope, role))
        .collect()
}

fn inline(
    scope: &Scope,
    resources: &Resources,
    form: &Form,
    name: &str,
    serves: &[Role],
) -> Vec<(String, Value)> {
    let named = |role: &Role| {
        if form.shared {
            format!("{name}-{}", role.name)
        } else {
            name.to_owned()
        }
    };
    let own = |role: &Role| (named(role), role.policy(scope, resources));
    let Some(base_domain) = &form.managed else {
        return serves.iter().map(own).collect();
    };
    let zones = On::PublicAndPrivateZone.arns(scope, resources);
    let more = serves
        .iter()
        .filter_map(|role| managed::more(role, base_domain, &zones));
    let more: Vec<_> = more.collect();
    let mut policies = Vec::new();
    if !more.is_empty() {
        let policy = json!({ "Version": "2012-10-17", "Statement": more });
        policies.push((name.to_owned(), policy));
    }
    let karpenter = serves.iter().filter(|role| role.name == KARPENTER);
    policies.extend(karpenter.map(own));
    policies
}

/// Refuses roles whose own policies are larger than IAM permits.
pub(crate) fn check_size(plans: &[RolePlan]) -> Result<(), Usage> {
    for plan in plans {
        let sizes = plan
            .inline
            .iter()
            .map(|(_, policy)| policy.to_string().len());
        let size: usize = sizes.sum();
        if size > LARGEST {
            return Err(Usage::new(&format!(
                "the policies of role {} have {size} characters, and a role may have {LARGEST}: leave out --shared-role, or give \
                 --use-rosa-managed-policies",
                plan.name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::aws::call::Tags;

    fn resources(auto_node: bool, shared_vpc: bool) -> Resources {
        Resources {
            public_zone: "Z1".to_owned(),
            private_zone: "Z2".to_owned(),
            local_zone: "Z3".to_owned(),
            kms_key: Some("arn:key".to_owned()),
            auto_node,
            shared_vpc,
        }
    }

    fn planned(resources: &Resources, shared: bool, managed: bool) -> Vec<RolePlan> {
        let scope = Scope::new("a-x1", "a", "us-east-1", Tags::new()).unwrap();
        let form = Form {
            shared,
            managed: managed.then(|| "example.com".to_owned()),
        };
        plan(&scope, resources, &form, "arn:p", "https://issuer")
    }

    /// Roles, attached policies, and policies of their own.
    #[test]
    fn roles_are_one_or_many_with_managed_policies_or_their_own() {
        for (shared, managed, expected) in [
            (false, false, (9, 0, 9)),
            (false, true, (9, 8, 3)),
            (true, false, (1, 0, 9)),
            (true, true, (1, 8, 2)),
        ] {
            let plans = planned(&resources(true, false), shared, managed);
            let attached = plans.iter().map(|plan| plan.attached.len());
            let attached: usize = attached.sum();
            let inline: usize = plans.iter().map(|plan| plan.inline.len()).sum();
            let found = (plans.len(), attached, inline);
            assert_eq!(found, expected, "{shared} {managed}");
            let ingress = plans.iter().filter(|plan| plan.is_of_ingress());
            assert_eq!(ingress.count(), 1);
            let serves: usize = plans.iter().map(|plan| plan.serves.len()).sum();
            assert_eq!(serves, ROLES.len());
        }
    }

    #[test]
    fn one_role_is_for_all_service_accounts_and_has_a_policy_for_each_component() {
        let plans = planned(&resources(false, false), true, false);
        let [only] = plans.as_slice() else {
            panic!("{} roles", plans.len());
        };
        assert_eq!(only.name, "a-x1-shared-role");
        let condition = &only.trust["Statement"][0]["Condition"]["StringEquals"];
        assert_eq!(condition["issuer:sub"].as_array().unwrap().len(), 9);
        let (name, _) = &only.inline[0];
        assert_eq!(name, "a-x1-shared-role-openshift-ingress");
        check_size(&plans).unwrap();
    }

    #[test]
    fn policies_that_do_not_fit_into_one_role_are_refused() {
        let error = check_size(&planned(&resources(true, false), true, false)).unwrap_err();
        assert!(
            error.to_string().contains("a role may have 10240"),
            "{error}"
        );
        check_size(&planned(&resources(true, false), true, true)).unwrap();
        check_size(&planned(&resources(true, false), false, false)).unwrap();
    }

    #[test]
    fn roles_for_a_shared_vpc_do_not_name_its_zones() {
        for managed in [false, true] {
            for plan in planned(&resources(false, true), false, managed) {
                let text = format!("{:?}", plan.inline);
                assert!(!text.contains("Z2") && !text.contains("Z3"), "{text}");
                let creates = text.contains("CreateVpcEndpoint");
                assert!(!creates || !plan.is_of_control_plane(), "{text}");
            }
        }
    }
}
