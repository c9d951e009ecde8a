//! Reconciles with the kubeconfig of a server that does not respond.

use api::group::CapiTypes;
use k8s_openapi::ByteString;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::json;
use support::testing::Scenario;
use tokio::net::TcpListener;

use super::*;
use crate::config::Config;
use crate::facts::{InfraTime, fixture};
use crate::metrics::Metrics;
use crate::platform::kubevirt::{base_domain, rights};

/// A cluster whose machines are on another one, which has this server.
fn facts(server: &str) -> Facts {
    let mut cluster = fixture::hosted_cluster("kubevirt");
    let platform = json!({
        "generateID": "x7k2p",
        "baseDomainPassthrough": true,
        "credentials": {
            "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
            "infraNamespace": "machines",
        },
    });
    cluster.spec.platform.kubevirt = serde_json::from_value(platform).unwrap();
    cluster.spec.dns = None;
    let mut facts = fixture::facts(cluster, CapiTypes::Private);
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "c",
            // No authority: it has no TLS.
            "cluster": { "server": server, "certificate-authority-data": "Cg==" },
        }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "current-context": "x",
    });
    let kubeconfig = ByteString(kubeconfig.to_string().into_bytes());
    let mut found = facts.referenced.iter_mut().map(|(_, found)| found);
    let secret = found.find_map(|found| match found {
        Found::Secret(secret) if secret.metadata.name.as_deref() == Some("infra") => Some(secret),
        Found::Secret(_) | Found::ConfigMap(_) | Found::Missing => None,
    });
    secret.unwrap().data = Some([("kubeconfig".to_owned(), kubeconfig)].into());
    facts
}

/// Check T02: a server that accepts connections and is silent.
#[tokio::test(start_paused = true)]
async fn a_silent_infrastructure_cluster_does_not_hold_up_reconciles() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let silent = tokio::spawn(async move {
        let mut connections = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            connections.push(connection);
        }
    });
    let scenario = Scenario::new([]);
    let config = Config::for_tests(Scope::Private);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    let ctx = Context::for_tests(&config, scenario.client(), releases, &metrics);
    let mut facts = facts(&server);

    let begun = Instant::now();
    let missing = rights::missing(&facts, &ctx.virtualization).await;
    assert_eq!(missing, Vec::<String>::new(), "they are not known");
    let domain = base_domain::of(&facts, &ctx.client, &ctx.virtualization).await;
    ensure(&mut facts, &ctx).await;
    assert_eq!(begun.elapsed(), InfraTime::TOTAL);
    assert!(facts.infra_time.is_over());
    assert_eq!(facts.infra_policy, None, "no time was left");
    let problem = domain.unwrap().unwrap_err();
    let expected = format!("no response in time from {server} (Secret clusters/infra)");
    assert!(problem.contains(&expected), "{problem}");
    assert!(problem.contains("or correct the Secret"), "{problem}");

    // The next reconcile knows the results of the first one, and has time for the others.
    facts.infra_time = InfraTime::default();
    let begun = Instant::now();
    let domain = base_domain::of(&facts, &ctx.client, &ctx.virtualization).await;
    assert_eq!(domain.unwrap().unwrap_err(), problem);
    ensure(&mut facts, &ctx).await;
    assert_eq!(begun.elapsed(), InfraTime::TOTAL);
    let Some(InfraPolicy::Refused(problem)) = &facts.infra_policy else {
        panic!("{:?}", facts.infra_policy);
    };
    assert!(problem.contains(&expected), "{problem}");
    scenario.finish();
    silent.abort();
}
