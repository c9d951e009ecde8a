//! O07: other operators take over while clusters live. What is the same continues as it is, and what is another image is
//! rolled out and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::audit::Mark;
use testbed::client::ApiClient;

use crate::hosted_clusters_faults::fixture::{
    CONTROL_PLANE, DEPLOYMENTS, Fixture, MACHINE_DEPLOYMENTS, Programs, STATEFUL_SETS,
};
use crate::hosted_clusters_faults::life;
use crate::hosted_clusters_faults::replicas::Replicas;

/// The directory with the operators of an earlier installation, from which the cluster is taken over. Without it, the same
/// programs are taken for earlier ones.
const PREVIOUS: &str = "HYPERSHIFT_PREVIOUS";
/// The proxy's image of an installation, and of the next one.
pub(crate) const PROXY: &str = "images.example.com/capi-proxy:v1";
const NEXT_PROXY: &str = "images.example.com/capi-proxy:v2";
/// Those with the proxy in their pods, and the one that passes its image on.
const WITH_PROXY: [&str; 5] = [
    "capi-provider",
    "cluster-api",
    "cluster-autoscaler",
    "control-plane-operator",
    "machine-approver",
];

/// The templates of all that runs, and of machines, by kind and name.
type Templates = BTreeMap<String, Value>;

/// The programs of an earlier installation.
pub(crate) fn earlier(fixture: &Fixture<'_>) -> Programs {
    let Some(directory) = std::env::var_os(PREVIOUS).map(PathBuf::from) else {
        return fixture.programs.clone();
    };
    Programs {
        hypershift: directory.join("hypershift-operator"),
        control_plane: directory.join("control-plane-operator"),
    }
}

/// Takes over from earlier operators; gives those that have.
pub(crate) async fn scenario<'a>(
    fixture: &'a Fixture<'a>,
    earlier: Replicas<'a>,
) -> Result<Replicas<'a>> {
    let admin = &fixture.testbed.admin;
    let step = fixture
        .testbed
        .progress
        .step("other operators take the cluster over");
    let before = templates(admin).await?;
    drop(earlier);
    let mark = fixture.testbed.control_plane.audit.mark()?;
    let mut replicas = Replicas::start(fixture, &fixture.programs, PROXY).await?;
    life::until(fixture, &mut replicas, async || Ok(())).await?;
    let after = templates(admin).await?;
    ensure!(
        changed(&before, &after).is_empty(),
        "rolled out: {:?}",
        changed(&before, &after)
    );
    if std::env::var_os(PREVIOUS).is_none() {
        quiet(fixture, &replicas, mark)?;
    }
    let figures = format!("{} templates, none changed", after.len());
    step.done_with(&figures);
    let step = fixture
        .testbed
        .progress
        .step("the next installation has another proxy");
    let mut replicas = installed(fixture, replicas, NEXT_PROXY).await?;
    let next = templates(admin).await?;
    let rolled = changed(&after, &next);
    let expected = WITH_PROXY.map(|name| format!("deployments/{name}")).into();
    ensure!(rolled == expected, "{rolled:?}, not {expected:?}");
    replicas = installed(fixture, replicas, PROXY).await?;
    let back = templates(admin).await?;
    let still = changed(&after, &back);
    // Generations count on.
    let differ = still
        .iter()
        .find(|key| after[*key]["template"] != back[*key]["template"]);
    ensure!(differ.is_none(), "{differ:?} is not as it was");
    step.done_with(&format!("{} of {} templates", rolled.len(), next.len()));
    Ok(replicas)
}

async fn installed<'a>(
    fixture: &'a Fixture<'a>,
    replicas: Replicas<'a>,
    proxy: &str,
) -> Result<Replicas<'a>> {
    drop(replicas);
    let mut replicas = Replicas::start(fixture, &fixture.programs, proxy).await?;
    life::until(fixture, &mut replicas, async || {
        has_everywhere(&fixture.testbed.admin, proxy).await
    })
    .await?;
    Ok(replicas)
}

/// Fails while a pod that holds the proxy, or hands it on, would have another one.
async fn has_everywhere(admin: &ApiClient, proxy: &str) -> Result<()> {
    for name in WITH_PROXY {
        let deployment = admin.get(&DEPLOYMENTS.named(CONTROL_PLANE, name)).await?;
        let template = deployment["spec"]["template"].to_string();
        ensure!(
            template.contains(proxy),
            "{name} has another proxy than {proxy}"
        );
    }
    Ok(())
}

/// Fails if one of them has written anything since.
fn quiet(fixture: &Fixture<'_>, replicas: &Replicas<'_>, mark: Mark) -> Result<()> {
    let users = replicas.usernames();
    let events = fixture.testbed.control_plane.audit.since(mark)?;
    let mut seen = 0;
    for event in events.iter().filter(|it| users.contains(&it.user.username)) {
        seen += 1;
        let idle = ["leases", "selfsubjectaccessreviews"];
        ensure!(
            !event.is_write() || idle.contains(&event.object_ref.resource.as_str()),
            "{}",
            event.summary()
        );
    }
    ensure!(seen > 0, "no operator has looked");
    Ok(())
}

async fn templates(admin: &ApiClient) -> Result<Templates> {
    let mut all = Templates::new();
    for kind in [&DEPLOYMENTS, &STATEFUL_SETS, &MACHINE_DEPLOYMENTS] {
        let path = kind.within(CONTROL_PLANE);
        let plural = path.rsplit('/').next().unwrap_or_default();
        for object in admin.list(&path).await? {
            let name = object["metadata"]["name"].as_str().context("no name")?;
            let template = json!({
                "template": object["spec"]["template"],
                "generation": object["metadata"]["generation"],
            });
            all.insert(format!("{plural}/{name}"), template);
        }
    }
    ensure!(all.len() > 10, "only {} templates", all.len());
    Ok(all)
}

/// The keys of those that differ.
fn changed(before: &Templates, after: &Templates) -> BTreeSet<String> {
    let keys = before.keys().chain(after.keys());
    let differ = keys.filter(|key| before.get(*key) != after.get(*key));
    differ.cloned().collect()
}
