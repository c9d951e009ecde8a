//! No account of a control plane may read what another hosted cluster keeps in Secrets.

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource, status_code};
use testbed::hosted::{Cluster, Fixture, NAMESPACE, SECRETS};

const ACCOUNTS: Resource<'_> = Resource::new("v1", "serviceaccounts");
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// How many access reviews run concurrently.
const AT_ONCE: usize = 16;
/// The account that has most rights, with which it is tried for real.
const MIGHTIEST: &str = "control-plane-operator";
/// What each control plane has.
const COMMON: &str = "pull-secret";

/// Reviews access for every account and every Secret, in both directions, and tries real requests.
pub(crate) async fn no_account_reads_secrets_of(
    fixture: &Fixture,
    one: &Cluster<'_>,
    other: &Cluster<'_>,
) -> Result<()> {
    let step = fixture
        .testbed
        .progress
        .step("no account reads another cluster's Secrets");
    let mut requested = 0;
    for (own, other) in [(one, other), (other, one)] {
        requested += are_refused(&fixture.testbed.admin, own, other).await?;
        is_refused_for_real(fixture, own, other).await?;
    }
    step.done_with(&format!("{requested} questions"));
    Ok(())
}

async fn are_refused(admin: &ApiClient, own: &Cluster<'_>, other: &Cluster<'_>) -> Result<usize> {
    let accounts = names(admin, &ACCOUNTS.within(&own.namespace())).await?;
    ensure!(
        accounts.len() > 5,
        "there are only the accounts {accounts:?}"
    );
    let mut questions = Vec::new();
    for account in &accounts {
        for namespace in [other.namespace().as_str(), NAMESPACE] {
            for verb in ["get", "list", "watch"] {
                questions.push(question(own, account, verb, namespace, ""));
            }
            for secret in names(admin, &SECRETS.within(namespace)).await? {
                questions.push(question(own, account, "get", namespace, &secret));
            }
        }
    }
    let requested = questions.len();
    stream::iter(questions)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, async |question: Value| {
            let response = admin.create(REVIEWS, &question).await?;
            ensure!(
                response["status"]["allowed"] != true,
                "allowed is {}",
                response["spec"]
            );
            anyhow::Ok(())
        })
        .await?;
    Ok(requested)
}

fn question(own: &Cluster<'_>, account: &str, verb: &str, namespace: &str, name: &str) -> Value {
    let from = own.namespace();
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{from}:{account}"),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{from}"), "system:authenticated"],
            "resourceAttributes": { "namespace": namespace, "verb": verb, "resource": "secrets", "name": name },
        },
    })
}

async fn names(admin: &ApiClient, path: &str) -> Result<Vec<String>> {
    let objects = admin.list(path).await?;
    let names = objects
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// With a token of the account: it can read its own Secret, and not the other's.
async fn is_refused_for_real(
    fixture: &Fixture,
    own: &Cluster<'_>,
    other: &Cluster<'_>,
) -> Result<()> {
    let client = of_account(fixture, &own.namespace(), MIGHTIEST).await?;
    let read = async |namespace: &str| client.get(&SECRETS.named(namespace, COMMON)).await;
    read(&own.namespace())
        .await
        .context("it cannot read its own")?;
    let response = read(&other.namespace()).await;
    let code = response.as_ref().err().and_then(status_code);
    ensure!(code == Some(403), "{} got {code:?}", other.name());
    Ok(())
}

/// The management cluster's API as an account sees it.
async fn of_account(fixture: &Fixture, namespace: &str, name: &str) -> Result<ApiClient> {
    let testbed = &fixture.testbed;
    let path = format!("{}/token", ACCOUNTS.named(namespace, name));
    let request = json!({ "spec": { "expirationSeconds": 600 } });
    let response = testbed.admin.create(&path, &request).await?;
    let user = json!({ "token": response["status"]["token"] });
    as_user(fixture, &user).await
}

/// The management cluster's API as a user of a kubeconfig sees it.
pub(crate) async fn as_user(fixture: &Fixture, user: &Value) -> Result<ApiClient> {
    let endpoint = fixture.testbed.control_plane.endpoint();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "m", "cluster": {
            "server": endpoint.server,
            "certificate-authority": endpoint.authority,
        } }],
        "users": [{ "name": "m", "user": user }],
        "contexts": [{ "name": "m", "context": { "cluster": "m", "user": "m" } }],
        "current-context": "m",
    });
    ApiClient::from_text(&config.to_string()).await
}
