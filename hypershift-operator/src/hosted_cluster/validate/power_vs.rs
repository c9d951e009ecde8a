//! Clusters on Power Virtual Server: no part of the platform's settings may be empty. The Secrets that they name are
//! validated with all references.

use api::hypershift::v1beta1::platform::power_vs::PowerVsPlatformSpec;

use super::Problems;
use crate::facts::Facts;
use crate::facts::references::power_vs_credentials;
use crate::platform::power_vs::reference;

/// What the platform's settings lack.
pub(super) fn problems(facts: &Facts) -> Problems {
    let Some(power_vs) = &facts.cluster.spec.platform.powervs else {
        return Problems::new();
    };
    let empty = |text: &str| text.trim().is_empty();
    let fields = fields(power_vs).into_iter();
    let mut problems: Problems = fields
        .filter(|(_, value, _)| empty(value))
        .map(|(field, _, what)| format!("spec.platform.powervs.{field} is empty: set it to {what}"))
        .collect();
    if reference(&power_vs.subnet).is_none() {
        problems.push(
            "spec.platform.powervs.subnet has neither id nor name: set one of them to that of the network that nodes are \
             attached to"
                .to_owned(),
        );
    }
    let credentials = power_vs_credentials(&facts.cluster).into_iter();
    let unnamed = credentials.filter(|(_, name, _)| empty(name));
    problems.extend(unnamed.map(|(field, _, keys)| {
        let keys = keys.join(" and ");
        format!("spec.{field}.name is empty: set it to the name of a Secret with the keys {keys}")
    }));
    problems
}

/// Fields that are texts, and what is to be in them.
fn fields(power_vs: &PowerVsPlatformSpec) -> [(&'static str, &str, &'static str); 8] {
    [
        (
            "accountID",
            &power_vs.account_id,
            "the ID of the IBM Cloud account",
        ),
        (
            "cisInstanceCRN",
            &power_vs.cis_instance_crn,
            "the CRN of the Internet Services instance with the DNS domain",
        ),
        (
            "resourceGroup",
            &power_vs.resource_group,
            "the name of the resource group",
        ),
        (
            "region",
            &power_vs.region,
            "a region of Power Virtual Server (for example us-south)",
        ),
        (
            "zone",
            &power_vs.zone,
            "a zone of the region (for example us-south)",
        ),
        (
            "serviceInstanceID",
            &power_vs.service_instance_id,
            "the ID of the Power Virtual Server workspace",
        ),
        (
            "vpc.name",
            &power_vs.vpc.name,
            "the name of the VPC for load balancers",
        ),
        (
            "vpc.region",
            &power_vs.vpc.region,
            "the region of the VPC (for example us-south)",
        ),
    ]
}
