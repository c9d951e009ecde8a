//! The stages, in order. Each names itself and shows how long it took.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch};
use testbed::hosted::invariants;
use testbed::operator::SOON;
use testbed::providers::Provider;
use testbed::testbed::Testbed;
use testbed::{crds, rights, wait};

use crate::hosted_clusters_api::cluster::{
    ACCOUNTS, Cluster, DEPLOYMENTS, NODE_POOLS, POLICIES, ROLES, SECRETS, gone, nothing_outside,
};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};
use crate::hosted_clusters_api::from_zero::Ec2;
use crate::hosted_clusters_api::{
    adopted, agents_shared, auto_node, aws_from_nothing, azure, azure_from_nothing, command,
    control_plane, from_zero, old_releases, other_platforms, pool, power_vs, power_vs_from_nothing,
    private_aws, refusals, release_stream, unreadable, virtual_machines,
};

/// How long nothing may be written.
const REST: Duration = Duration::from_secs(4);
/// How long it may take until nothing is written any more.
const SETTLED: Duration = Duration::from_secs(2);

pub(crate) async fn run(testbed: &mut Testbed) -> Result<()> {
    let ec2 = Ec2::start(testbed).await?;
    let url = ec2.url();
    let variables = [
        ("AWS_ENDPOINT_URL_EC2", url.as_str()),
        (private_aws::BALANCERS_VARIABLE, url.as_str()),
        azure::KEY_VAULT_CLIENT,
    ];
    // Before controllers start: some of them discover new kinds only now and then.
    for provider in [Provider::Azure, Provider::PowerVs] {
        let definitions = crds::provider(provider, CapiTypes::Private).await?;
        crds::install(&testbed.admin, &definitions).await?;
    }
    let fixture = Fixture::with(testbed, &ec2.flags(private_aws::REGION), &variables).await?;
    let testbed = &*testbed;
    let admin = &testbed.admin;
    let step = testbed.progress.step("clusters are made");
    // Sequential: the first operator creates what both share, and its permissions are checked below.
    for cluster in Cluster::ALL {
        cluster.create(admin, &fixture).await?;
        cluster.is_made(admin).await.context(cluster.name)?;
    }
    step.done();
    let step = testbed.progress.step("control planes come up");
    for cluster in Cluster::ALL {
        control_plane::comes_up(admin, cluster.name).await?;
        cluster.reports(admin, "Available", "True", "").await?;
        control_plane::is_handed_over(admin, cluster.name).await?;
        // Before others change what the operators have made.
        let judged = invariants::of_workloads(admin, NAMESPACE, cluster.name).await;
        judged.context(cluster.name)?;
    }
    step.done();
    let step = testbed.progress.step("pools are made, scaled and upgraded");
    for cluster in Cluster::ALL {
        let lived = pool::run_lifecycle(&cluster, admin, &fixture).await;
        lived.context(cluster.name)?;
    }
    step.done();
    let step = testbed
        .progress
        .step("the autoscaler knows what machines have that are not there");
    for cluster in Cluster::ALL {
        let annotated = from_zero::is_annotated(&cluster, admin).await;
        annotated.context(cluster.name)?;
    }
    step.done();
    let step = testbed
        .progress
        .step("pools that are refused go on with what they have");
    let [first, _] = &Cluster::ALL;
    refusals::hold_up_nothing(first, admin, &fixture).await?;
    step.done();
    let step = testbed
        .progress
        .step("pools of upstream's operator keep their machines");
    for cluster in Cluster::ALL {
        let kept = adopted::pools_keep_their_machines(&cluster, testbed, &fixture).await;
        kept.context(cluster.name)?;
    }
    step.done();
    let step = testbed
        .progress
        .step("objects that do not deserialize hold up no other");
    unreadable::objects_hold_up_no_other(testbed).await?;
    step.done();
    let step = testbed.progress.step("Karpenter is switched on and off");
    auto_node::comes_and_goes(first, admin).await?;
    step.done();
    let step = testbed
        .progress
        .step("clusters without a cloud come and go");
    other_platforms::live(admin, &fixture).await?;
    step.done();
    let step = testbed.progress.step("clusters on Azure come and go");
    azure::lives(admin, &fixture).await?;
    step.done();
    let step = testbed
        .progress
        .step("private clusters of two tenants on AWS come and go");
    private_aws::live(admin, &fixture, &url).await?;
    step.done();
    let step = testbed
        .progress
        .step("a cluster on Power Virtual Server comes and goes");
    power_vs::lives(admin, &fixture).await?;
    step.done();
    let step = testbed
        .progress
        .step("clusters of two tenants use the same Agents");
    agents_shared::live(testbed, &fixture).await?;
    step.done();
    let step = testbed
        .progress
        .step("clusters of virtual machines are refused");
    virtual_machines::are_refused(testbed, &fixture).await?;
    step.done();
    let step = testbed
        .progress
        .step("releases from before private types come and go");
    old_releases::live(testbed, &fixture.old).await?;
    step.done();
    let step = testbed
        .progress
        .step("slow registries of a tenant delay no other");
    let [alone, beside, slow] = &fixture.fresh;
    let figures = fixture.slow.delay_no_other(admin, [alone, beside, slow]);
    step.done_with(&figures.await?);
    rest(testbed, &fixture).await?;
    for cluster in Cluster::ALL {
        drift(testbed, &cluster).await.context(cluster.name)?;
        wrong_input(testbed, &cluster, &fixture)
            .await
            .context(cluster.name)?;
    }
    let step = testbed
        .progress
        .step("hcp creates a cluster and destroys it");
    let (_user, kubeconfig) = testbed.superuser(NAMESPACE, "user").await?;
    command::runs(testbed, &fixture, &kubeconfig).await?;
    step.done();
    let step = testbed
        .progress
        .step("hcp chooses the newest supported release of a stream");
    release_stream::is_chosen(testbed, &fixture, &kubeconfig).await?;
    step.done();
    let step = testbed
        .progress
        .step("hcp creates clusters with their infrastructure in clouds, and destroys them");
    from_nothing(testbed, &fixture, &kubeconfig).await?;
    step.done();
    removal(testbed).await?;
    for running in &fixture.operators {
        lacks_nothing(testbed, running)?;
    }
    // The other one has the same rows for the other types; the first one creates what both share.
    if let Some(running) = fixture.operators.first() {
        running.rights_are_minimal(testbed, rights::HOSTED).await?;
    }
    Ok(())
}

/// Side by side: most of their time is intervals at which `hcp` and operators look again.
async fn from_nothing(testbed: &Testbed, fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let on_aws = async {
        let ran = aws_from_nothing::runs(testbed, fixture, kubeconfig).await;
        ran.context("on AWS")
    };
    let on_azure = async {
        let ran = azure_from_nothing::runs(testbed, fixture, kubeconfig).await;
        ran.context("on Azure")
    };
    let on_power_vs = async {
        let ran = power_vs_from_nothing::runs(testbed, fixture, kubeconfig).await;
        ran.context("on Power VS")
    };
    tokio::try_join!(on_aws, on_azure, on_power_vs)?;
    Ok(())
}

/// O04: a pass over what is as it should be writes nothing.
async fn rest(testbed: &Testbed, fixture: &Fixture) -> Result<()> {
    let step = testbed.progress.step("at rest");
    let admin = &testbed.admin;
    wait::until("the operators to have nothing to write", SOON, async || {
        let mark = testbed.control_plane.audit.mark()?;
        wait::throughout("rest", SETTLED, async || quiet(testbed, fixture, mark)).await
    })
    .await?;
    let before = versions(admin).await?;
    for cluster in Cluster::ALL {
        // An operator that looks at it looks at everything.
        let looked = json!({ "metadata": { "annotations": { "example.com/looked": "at" } } });
        admin.patch(&cluster.path(), Patch::Merge, &looked).await?;
    }
    let mark = testbed.control_plane.audit.mark()?;
    wait::throughout("rest", REST, async || quiet(testbed, fixture, mark)).await?;
    for cluster in Cluster::ALL {
        let looks = testbed.control_plane.audit.since(mark)?;
        let path = cluster.namespace();
        let seen = looks.iter().any(|event| event.uri.contains(&path));
        ensure!(seen, "no operator has looked at {}", cluster.name);
    }
    ensure!(before == versions(admin).await?, "something was written");
    step.done_with(&format!("{} objects, 0 writes", before.len()));
    Ok(())
}

/// Fails if an operator has written anything but its lease.
fn quiet(testbed: &Testbed, fixture: &Fixture, mark: testbed::audit::Mark) -> Result<()> {
    for event in testbed.control_plane.audit.since(mark)? {
        let ours = fixture
            .operators
            .iter()
            .any(|one| one.identity.username() == event.user.username);
        ensure!(
            !ours || !event.is_write() || event.object_ref.resource == "leases",
            "{}",
            event.summary()
        );
    }
    Ok(())
}

/// The resource version of each object that belongs to the clusters.
async fn versions(admin: &ApiClient) -> Result<BTreeMap<String, Value>> {
    let mut versions = BTreeMap::new();
    for cluster in Cluster::ALL {
        let mut paths = cluster.objects();
        paths.push(NODE_POOLS.named(NAMESPACE, &cluster.pool()));
        for path in paths {
            let found = admin.get(&path).await?;
            versions.insert(path, found["metadata"]["resourceVersion"].clone());
        }
        for kind in [&SECRETS, &POLICIES, &ROLES] {
            let path = kind.within(&cluster.namespace());
            for found in admin.list(&path).await? {
                let name = found["metadata"]["name"].as_str().unwrap_or_default();
                let version = found["metadata"]["resourceVersion"].clone();
                versions.insert(format!("{path}/{name}"), version);
            }
        }
    }
    Ok(versions)
}

/// O06: what another client changes or deletes is restored.
async fn drift(testbed: &Testbed, cluster: &Cluster) -> Result<()> {
    let step = testbed.progress.step("what others change is restored");
    let (admin, namespace) = (&testbed.admin, cluster.namespace());
    let image = "/spec/template/spec/containers/0/image";
    let deployment = DEPLOYMENTS.named(&namespace, "cluster-api");
    let expected = admin.get(&deployment).await?;
    let mut containers = expected["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = json!("elsewhere.example.com/x");
    let changed = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    admin.patch(&deployment, Patch::Merge, &changed).await?;
    restored(admin, &deployment, &expected, image).await?;
    let role = ROLES.named(&namespace, "cluster-api");
    let expected = admin.get(&role).await?;
    admin
        .patch(&role, Patch::Merge, &json!({ "rules": [] }))
        .await?;
    restored(admin, &role, &expected, "/rules").await?;
    let account = ACCOUNTS.named(&namespace, "cluster-api");
    let expected = admin.get(&account).await?;
    let changed =
        json!({ "metadata": { "labels": { "hypershift.openshift.io/managed-by": null } } });
    admin.patch(&account, Patch::Merge, &changed).await?;
    restored(admin, &account, &expected, "/metadata/labels").await?;
    for kind in [&POLICIES, &SECRETS] {
        let listed = admin.list(&kind.within(&namespace)).await?;
        let ours = listed.iter().find(|object| {
            let labels = &object["metadata"]["labels"];
            labels["hypershift.openshift.io/managed-by"] == "hypershift-operator"
        });
        let name = ours.and_then(|object| object["metadata"]["name"].as_str());
        let path = kind.named(&namespace, name.context("nothing is ours")?);
        admin.delete(&path).await?;
        wait::until(&format!("{path} to be back"), SOON, async || {
            admin.get(&path).await.map(drop)
        })
        .await?;
    }
    step.done();
    Ok(())
}

async fn restored(admin: &ApiClient, path: &str, expected: &Value, field: &str) -> Result<()> {
    wait::until(&format!("{path} to be restored"), SOON, async || {
        let found = admin.get(path).await?;
        ensure!(
            found.pointer(field) == expected.pointer(field),
            "{:?}",
            found.pointer(field)
        );
        Ok(())
    })
    .await
}

/// Invalid input is reported, and what runs continues as it is.
async fn wrong_input(testbed: &Testbed, cluster: &Cluster, fixture: &Fixture) -> Result<()> {
    let step = testbed.progress.step("invalid input is reported");
    let admin = &testbed.admin;
    let before = running(admin, cluster).await?;
    let absent = format!("{}-absent", fixture.release);
    let release = |image: &str| json!({ "release": { "image": image } });
    let bundle = |named: Value| json!({ "additionalTrustBundle": named });
    let access = |way: &str| json!({ "platform": { "aws": { "endpointAccess": way } } });
    let tokens = tokens_of_its_own(&admin.get(&cluster.path()).await?);
    let (release_image, configuration) = ("ValidReleaseImage", "ValidConfiguration");
    for (change, about, reported) in [
        (release(&absent), release_image, Some(absent.as_str())),
        (release(&fixture.release), release_image, None),
        (
            bundle(json!({ "name": "nowhere" })),
            configuration,
            Some("nowhere"),
        ),
        (bundle(Value::Null), configuration, None),
        (tokens, configuration, Some("spec.issuerURL")),
        (json!({ "configuration": null }), configuration, None),
        (
            access("Private"),
            "SupportedHostedCluster",
            Some("VPC endpoint services"),
        ),
    ] {
        cluster.change(admin, change).await?;
        let status = if reported.is_some() { "False" } else { "True" };
        cluster
            .reports(admin, about, status, reported.unwrap_or_default())
            .await?;
    }
    ensure!(
        running(admin, cluster).await? == before,
        "what runs has been changed"
    );
    cluster.change(admin, access("Public")).await?;
    cluster
        .reports(admin, "SupportedHostedCluster", "True", "")
        .await?;
    step.done();
    Ok(())
}

/// Users by tokens of a provider that issues them as the cluster issues those of its service accounts.
fn tokens_of_its_own(cluster: &Value) -> Value {
    let provider = json!({
        "name": "sso",
        "issuer": { "issuerURL": cluster["spec"]["issuerURL"], "audiences": ["guest"] },
        "claimMappings": { "username": { "claim": "sub" } },
    });
    let authentication = json!({ "type": "OIDC", "oidcProviders": [provider] });
    json!({ "configuration": { "authentication": authentication } })
}

/// The generation of each Deployment.
async fn running(admin: &ApiClient, cluster: &Cluster) -> Result<Vec<Value>> {
    let listed = admin
        .list(&DEPLOYMENTS.within(&cluster.namespace()))
        .await?;
    let generations = listed
        .iter()
        .map(|one| one["metadata"]["generation"].clone());
    Ok(generations.collect())
}

/// O05: a cluster that is deleted leaves nothing.
async fn removal(testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("clusters are deleted");
    let admin = &testbed.admin;
    for cluster in Cluster::ALL {
        admin.delete(&cluster.path()).await?;
    }
    for cluster in Cluster::ALL {
        let pool = NODE_POOLS.named(NAMESPACE, &cluster.pool());
        let namespace = format!("/api/v1/namespaces/{}", cluster.namespace());
        gone(admin, [cluster.path(), pool, namespace]).await?;
    }
    for cluster in Cluster::ALL {
        nothing_outside(admin, &cluster.namespace()).await?;
    }
    step.done();
    Ok(())
}

fn lacks_nothing(
    testbed: &Testbed,
    running: &crate::hosted_clusters_api::fixture::Running,
) -> Result<()> {
    let username = running.identity.username();
    let events = testbed.control_plane.audit.all()?;
    let refused = events
        .iter()
        .find(|event| event.user.username == username && event.response_status.code == 403);
    ensure!(
        refused.is_none(),
        "{:?}",
        refused.map(testbed::audit::Event::summary)
    );
    Ok(())
}
