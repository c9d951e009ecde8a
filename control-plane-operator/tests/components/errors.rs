//! Inputs that components reject: what the condition says.

use api::hypershift::v1beta1::monitoring::MetricsSet;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};
use support::error::chain;

use crate::cluster_operators::aro;
use crate::variants::changed;

/// The message of a component that cannot be rendered.
fn message(input: &Input, component: &str) -> String {
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    chain(&input.component(component).unwrap_err())
}

fn private_vault(name: &str) -> [(&'static str, Value); 2] {
    let key = json!({ "keyVaultName": name, "keyName": "key", "keyVersion": "1" });
    let azure = json!({
        "activeKey": key, "keyVaultAccess": "Private",
        "kms": { "clientID": "00000000-0000-0000-0000-000000000001", "objectEncoding": "utf-8", "credentialsSecretName": "kms" },
    });
    let encryption = json!({ "type": "kms", "kms": { "provider": "Azure", "azure": azure } });
    [aro(), ("/spec/secretEncryption", encryption)]
}

#[test]
fn rejected_inputs_are_named() {
    let policy = json!({ "scheduler": { "policy": { "name": "old" } } });
    let policy = vec![("/spec/configuration", policy)];
    let without_settings = vec![("/spec/platform", json!({ "type": "Azure" }))];
    let injected = private_vault("a }\n bind :1").to_vec();
    let mut unknown_cloud = private_vault("vault").to_vec();
    unknown_cloud.push(("/spec/platform/azure/cloud", json!("AzureStackCloud")));
    for (name, changes, component, expected) in [
        (
            "policy of the scheduler",
            policy,
            "kube-scheduler",
            "\"old\" for spec.configuration.scheduler.policy",
        ),
        (
            "no settings of Azure",
            without_settings,
            "kube-apiserver",
            "field spec.platform with azure",
        ),
        (
            "name of a vault",
            injected,
            "router",
            "for keyVaultName of spec.secretEncryption.kms.azure",
        ),
        (
            "cloud of a vault",
            unknown_cloud,
            "router",
            "for spec.secretEncryption.kms.azure.keyVaultAccess",
        ),
    ] {
        let found = message(&changed(&changes), component);
        assert!(found.contains(expected), "{name}: {found}");
    }
}

#[test]
fn private_key_vaults_need_the_router() {
    let mut input = changed(&private_vault("vault"));
    let name = "azure-kms-encryption-provider".to_owned();
    input.release.images.insert(name.clone(), name);
    input.objects.insert(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "private-router" },
        "spec": { "clusterIP": "None" },
    }));
    let found = message(&input, "kube-apiserver");
    assert_eq!(
        found,
        "waiting for Service private-router with a cluster IP"
    );
}

#[test]
fn an_invalid_sre_metric_set_is_an_error() {
    for (name, data, expected) in [
        (
            "no key",
            json!({ "other": "" }),
            "waiting for ConfigMap sre-metric-set with key config",
        ),
        (
            "not YAML",
            json!({ "config": "etcd: [" }),
            "failed to parse ConfigMap sre-metric-set, key config: write a YAML list",
        ),
        (
            "no list",
            json!({ "config": "etcd: { action: keep }" }),
            "failed to parse ConfigMap sre-metric-set, key config: write a YAML list",
        ),
        (
            "another type",
            json!({ "config": "up" }),
            "failed to parse ConfigMap sre-metric-set, key config: write a YAML list",
        ),
    ] {
        let mut input = crate::input::base();
        input.settings.metrics_set = Some(MetricsSet::Sre);
        input.objects.insert(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "sre-metric-set" }, "data": data,
        }));
        let found = message(&input, "etcd");
        assert!(found.starts_with(expected), "{name}: {found}");
    }
    let mut empty = crate::input::base();
    empty.settings.metrics_set = Some(MetricsSet::Sre);
    empty.objects.insert(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "sre-metric-set" }, "data": { "config": "" },
    }));
    let mut all = components::all().iter();
    let etcd = all.find(|it| it.name == "etcd").unwrap();
    assert!(empty.component(etcd).is_ok(), "no rules");
}
