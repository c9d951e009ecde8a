//! Which flags are taken, what is read of a hosted cluster, and when it is restarted.

use clap::Parser;
use serde_json::Value;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::hosted::bare_cluster;

const CLUSTER: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/a";
const CLUSTERS: &str = "/apis/hypershift.openshift.io/v1beta1/hostedclusters";
const SECRET: &str = "/api/v1/namespaces/clusters-a/secrets/sa-signing-key";
const PODS: &str = "/api/v1/namespaces/clusters-a/pods";
const ISSUER: &str = "https://b.s3.us-east-2.amazonaws.com/a-x1";
/// A public RSA key in PEM, in base64.
const KEY: &str = "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUlHZk1BMEdDU3FHU0liM0RRRUJBUVVBQTRHTkFEQ0JpUUtCZ1FDM1B4a2FPWjBtSysrSGxSdEZJZmtXdjF5egpBOGJ5aStDQklmRzBVMlNETDJkemlHNEplMi9RR0Q0Tk14UnA5WXc0aTVmOFJDcHFNT2tDNWZjejBJbkRNSjB3ClJabHJnZ1N2ZlZzNTdGaG1vRG9aNjlQVnpUV2lubDZ2bVJTTkhzU2xueXFOelM4NWVCenNLcDVlYXlPL1Iyb3YKRmY0S0FlNTVycWk2eXkrelZRSURBUUFCCi0tLS0tRU5EIFBVQkxJQyBLRVktLS0tLQo=";

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: RecoverIssuerArgs,
}

fn parse(flags: &[&str]) -> Result<RecoverIssuerArgs, clap::Error> {
    let words = [&["fix"][..], flags].concat();
    Ok(Line::try_parse_from(words)?.args)
}

#[test]
fn an_issuer_belongs_to_a_cluster_or_to_an_infrastructure() {
    for (flags, expected) in [
        (&["--hc-name=a", "--hc-namespace=clusters"][..], true),
        (&["--infra-id=a-x1", "--region=us-east-1"], true),
        (&["--hc-name=a"], false),
        (&["--hc-namespace=clusters"], false),
        (&["--infra-id=a-x1"], false),
        (&["--region=us-east-1"], false),
        (
            &[
                "--hc-name=a",
                "--hc-namespace=clusters",
                "--region=us-east-1",
            ],
            false,
        ),
        (&[], false),
        (
            &["--infra-id=a-x1", "--region=us-east-1", "--timeout=soon"],
            false,
        ),
    ] {
        let found = parse(flags);
        assert_eq!(found.is_ok(), expected, "{flags:?}: {found:?}");
    }
    let args = parse(&["--infra-id=a-x1", "--region=us-east-1"]).unwrap();
    assert_eq!(args.timeout, Duration::from_mins(10));
    assert_eq!(args.restart_delay, Duration::from_mins(5));
}

/// Mistakes are found without a request.
#[test]
fn wrong_flags_are_refused_before_anything_is_made() {
    let usual = ["--infra-id=a-x1", "--aws-creds=/no/such/file"];
    for (flags, expected) in [
        (&["--region=us-east-1"][..], "/no/such/file"),
        (&["--region=a/b"], "--region"),
        (
            &["--region=us-east-1", "--issuer=https://issuer/a"],
            "--oidc-bucket",
        ),
        (
            &[
                "--region=us-east-1",
                "--issuer=https://b.s3.us-east-2.amazonaws.com/other",
            ],
            "not that of infrastructure a-x1",
        ),
    ] {
        let args = parse(&[&usual[..], flags].concat()).unwrap();
        let error = format!("{:#}", args.run().unwrap_err());
        assert!(error.contains(expected), "{flags:?}: {error}");
    }
}

fn cluster() -> Value {
    let mut cluster = bare_cluster("a");
    cluster["spec"]["infraID"] = json!("a-x1");
    cluster["spec"]["issuerURL"] = json!(ISSUER);
    cluster["spec"]["platform"] = json!({ "type": "AWS", "aws": { "region": "eu-west-1", "rolesRef": {
        "ingressARN": "", "imageRegistryARN": "", "storageARN": "", "networkARN": "",
        "kubeCloudControllerARN": "", "nodePoolManagementARN": "", "controlPlaneOperatorARN": "",
    } } });
    cluster
}

async fn request(calls: Vec<Expect>, flags: &[&str]) -> anyhow::Result<RecoveryRequest> {
    let scenario = Scenario::new(calls);
    let usual = ["--hc-name=a", "--hc-namespace=clusters"];
    let args = parse(&[&usual[..], flags].concat()).unwrap();
    let read = async {
        let owner = of_cluster(Hosted::new(scenario.client()), "clusters", "a").await?;
        args.request(&owner).await
    };
    let request = read.await;
    scenario.finish();
    request
}

#[tokio::test]
async fn documents_have_the_key_of_the_control_plane() {
    let found = || Expect::get(CLUSTER).answer(Answer::ok(&cluster()));
    let secret = |data: &Value| {
        let object = json!({ "metadata": { "name": SIGNING_KEY }, "data": data });
        Expect::get(SECRET).answer(Answer::ok(&object))
    };
    let alone = || Expect::get(CLUSTERS).answer(Answer::list(&[cluster()]));
    let calls = vec![found(), alone(), secret(&json!({ PUBLIC_KEY: KEY }))];
    let made = request(calls, &["--force-recreate"]).await.unwrap();
    assert_eq!(made.recreate, Recreate::All);
    assert_eq!(made.place.issuer.url, ISSUER);
    // The bucket is where the URL says, and not where the cluster is now.
    assert_eq!(made.place.region, "us-east-2");
    let documents = made.documents.unwrap();
    let texts: Vec<_> = documents.texts().map(|(_, text)| text.to_owned()).collect();
    assert!(texts[0].contains(ISSUER), "{}", texts[0]);
    assert!(texts[1].contains("_1XrkqhgouV4HaAwGztziJfbJCq832srSEV3smg-aqU"));

    let absent = |path: &str| Expect::get(path).answer(Answer::error(404, "NotFound"));
    for (calls, expected) in [
        (vec![absent(CLUSTER)], "check --hc-namespace"),
        (
            vec![
                found(),
                Expect::get(CLUSTERS).answer(Answer::error(403, "Forbidden")),
            ],
            "failed to list HostedClusters",
        ),
        (
            vec![found(), alone(), absent(SECRET)],
            "restore the control plane first",
        ),
        (
            vec![found(), alone(), secret(&json!({}))],
            "has no key service-account.pub",
        ),
        (
            vec![found(), alone(), secret(&json!({ PUBLIC_KEY: "bm8ga2V5" }))],
            "clusters-a/sa-signing-key is invalid",
        ),
    ] {
        let error = request(calls, &[]).await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{error}");
    }
}

/// The author of a HostedCluster chooses the names.
#[tokio::test]
async fn an_issuer_of_two_clusters_is_refused() {
    for (field, value, is_shared) in [
        ("infraID", "a-x1", true),
        ("issuerURL", ISSUER, true),
        ("infraID", "b-x2", false),
    ] {
        let mut other = bare_cluster("b");
        other["spec"][field] = json!(value);
        let mut calls = vec![
            Expect::get(CLUSTER).answer(Answer::ok(&cluster())),
            Expect::get(CLUSTERS).answer(Answer::list(&[cluster(), other])),
        ];
        if !is_shared {
            calls.push(Expect::get(SECRET).answer(Answer::error(404, "NotFound")));
        }
        let error = request(calls, &[]).await.unwrap_err();
        let error = format!("{error:#}");
        let is_refused = error.contains("HostedCluster clusters/b has the same");
        assert_eq!(is_refused, is_shared, "{field} {value}: {error}");
    }
}

#[tokio::test]
async fn control_planes_with_crashing_pods_are_restarted() {
    let pod = |reason: &str| {
        json!({
            "metadata": { "name": "a" },
            "status": { "containerStatuses": [{
                "name": "a",
                "image": "i",
                "imageID": "i",
                "ready": false,
                "restartCount": 3,
                "state": { "waiting": { "reason": reason } },
            }] },
        })
    };
    let patched = Answer::ok(&json!({ "metadata": { "name": "a" } }));
    for (pods, calls) in [
        (vec![], vec![]),
        (vec![pod("ContainerCreating")], vec![]),
        (
            vec![pod("ContainerCreating"), pod("CrashLoopBackOff")],
            vec![Expect::patch(CLUSTER).answer(patched)],
        ),
    ] {
        let mut expected = vec![Expect::get(PODS).answer(Answer::list(&pods))];
        expected.extend(calls);
        let scenario = Scenario::new(expected);
        let cluster = Cluster {
            hosted: Hosted::new(scenario.client()),
            namespace: "clusters".to_owned(),
            name: "a".to_owned(),
            issuer: ISSUER.to_owned(),
        };
        let args = parse(&["--hc-name=a", "--hc-namespace=clusters"]).unwrap();
        let restarted = args.restart(&cluster, &Display::new(true)).await;
        scenario.finish();
        restarted.unwrap();
    }
}

#[test]
fn restarts_are_later() {
    let from: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
    let date = in_time(from, Duration::from_mins(5)).unwrap();
    assert_eq!(date.to_string(), "2026-01-01T00:05:00Z");
}
