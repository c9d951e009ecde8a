//! Creates the infrastructure that no file describes.

use anyhow::bail;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use serde_json::{Value, json};

use super::{CREDENTIALS, CommonArgs, Infrastructure, Options, Parts, PowerVsArgs, RunArgs};
use crate::Usage;
use crate::create::cluster::run::{refuse_existing, say_how_to_continue};
use crate::hosted::Hosted;
use crate::infra::aws::Domain;
use crate::infra::power_vs::{Keys, Output, Place, REGION, Scope, Session};
use crate::install::display::Display;
use crate::listed;

/// What stands for the name of the infrastructure in checks, if no flag names it.
const NO_NAME: &str = "a-00000";

impl PowerVsArgs {
    /// Infrastructure that does not exist yet, for checks.
    pub(super) fn future(&self, common: &CommonArgs) -> anyhow::Result<Infrastructure> {
        let infra_id = common.infra_id.as_deref().unwrap_or(NO_NAME);
        let scope = self.scope(common, infra_id)?;
        scope.check_zone()?;
        let secrets = CREDENTIALS.iter().map(|(_, suffix)| {
            let secret = json!({ "metadata": { "name": format!("{}-{suffix}", common.name) } });
            ((*suffix).to_owned(), secret)
        });
        Ok(Infrastructure {
            id: common.infra_id.clone(),
            region: scope.place.region,
            zone: scope.place.zone,
            vpc_region: scope.place.vpc_region,
            account_id: "0".repeat(32),
            base_domain: Some(scope.domain.base),
            cis_crn: "crn:v1:bluemix:public:internet-svcs:global:a/0:0::".to_owned(),
            cis_domain_id: "0".repeat(32),
            resource_group: scope.place.resource_group,
            cloud_instance_id: "00000000-0000-0000-0000-000000000000".to_owned(),
            dhcp_subnet: "subnet".to_owned(),
            dhcp_subnet_id: "00000000-0000-0000-0000-000000000000".to_owned(),
            vpc_name: format!("{infra_id}-vpc"),
            vpc_subnet_name: format!("{infra_id}-vpc-sn"),
            secrets: secrets.collect(),
        })
    }

    fn scope(&self, common: &CommonArgs, infra_id: &str) -> Result<Scope, Usage> {
        let needed = |flag: &str| {
            Usage::new(&format!(
                "{flag} is needed for the infrastructure that is created without --infra-json"
            ))
        };
        let base = common.base_domain.as_deref();
        let base = base.ok_or_else(|| needed("--base-domain"))?;
        let group = self.resource_group.clone();
        let region = |given: &Option<String>| given.as_deref().unwrap_or(REGION).to_owned();
        let place = Place {
            resource_group: group.ok_or_else(|| needed("--resource-group"))?,
            region: region(&self.region),
            zone: region(&self.zone),
            vpc_region: region(&self.vpc_region),
        };
        let prefix = common.base_domain_prefix.as_deref();
        let domain = Domain::new(base, prefix, &common.name)?;
        Scope::new(infra_id, &common.name, domain, place)
    }

    /// Creates what is missing, unless this is a dry run.
    pub(super) async fn create(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        if run.renders() {
            let message = "--render creates no infrastructure: describe it with --infra-json, which create infra powervs writes";
            return Err(Usage::new(&message).into());
        }
        let session = Session::from_env(self.scope(common, &options.infra_id)?)?;
        let hosted = Hosted::connect(&run.target.access()).await?;
        refuse_existing(&hosted, common).await?;
        let display = Display::new(run.quiet);
        let executor = session.executor(&display);
        let mut request = self.transit.request(&common.namespace, &self.reuse);
        request.keys = keys(&hosted, &options.infra_id, request.keys).await?;
        let mut output = Output::new(&session.scope);
        if run.dry_run {
            Box::pin(executor.report(&request, &output)).await?;
            return Ok(None);
        }
        say_how_to_continue(&display, &options.infra_id);
        // Its Secrets have the keys when it is created; those of an interrupted run are replaced.
        let record = |_: &Output| anyhow::Ok(());
        Box::pin(executor.create(&request, &mut output, &record)).await?;
        let infra = Infrastructure::made(&output)?;
        self.parts_of(common, &infra).map(Some)
    }
}

impl Infrastructure {
    /// What was created.
    fn made(output: &Output) -> anyhow::Result<Self> {
        let value: Value = serde_json::to_value(output)?;
        Ok(serde_json::from_value(value)?)
    }
}

/// What is done about API keys of an interrupted run: no cluster has them unless it has the infrastructure. A user who may not
/// list all clusters has to say that they may be replaced.
async fn keys(hosted: &Hosted, infra_id: &str, asked: Keys) -> anyhow::Result<Keys> {
    if asked != Keys::Keep {
        return Ok(asked);
    }
    let clusters = listed::objects::<HostedCluster>(hosted.client().clone(), None).await;
    let Ok(clusters) = clusters else {
        return Ok(asked);
    };
    let mut clusters = clusters.iter();
    let Some(user) = clusters.find(|it| it.data["spec"]["infraID"] == infra_id) else {
        return Ok(Keys::ReplaceUnknown);
    };
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    bail!(
        "HostedCluster {}/{} has infrastructure {infra_id}: nothing was changed. Choose another --infra-id",
        part(&user.metadata.namespace),
        part(&user.metadata.name)
    )
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::hosted::bare_cluster;

    const CLUSTERS: &str = "/apis/hypershift.openshift.io/v1beta1/hostedclusters";

    #[tokio::test]
    async fn api_keys_are_only_replaced_if_no_cluster_can_have_them() {
        let cluster = |infra_id: &str| {
            let mut cluster = bare_cluster("b");
            cluster["spec"]["infraID"] = json!(infra_id);
            Answer::list(&[cluster])
        };
        for (answer, expected) in [
            (cluster("b-x2"), Some(Keys::ReplaceUnknown)),
            (Answer::list(&[]), Some(Keys::ReplaceUnknown)),
            (cluster("a-x1"), None),
            (Answer::error(403, "Forbidden"), Some(Keys::Keep)),
        ] {
            let scenario = Scenario::new([Expect::get(CLUSTERS).answer(answer)]);
            let hosted = Hosted::new(scenario.client());
            match (keys(&hosted, "a-x1", Keys::Keep).await, expected) {
                (Ok(found), expected) => assert_eq!(Some(found), expected),
                (Err(error), expected) => {
                    assert_eq!(expected, None, "{error}");
                    let error = error.to_string();
                    assert!(error.contains("HostedCluster clusters/b"), "{error}");
                }
            }
            scenario.finish();
        }
        let scenario = Scenario::new([]);
        let hosted = Hosted::new(scenario.client());
        let found = keys(&hosted, "a-x1", Keys::ReplaceAll).await.unwrap();
        assert_eq!(found, Keys::ReplaceAll);
        scenario.finish();
    }
}
