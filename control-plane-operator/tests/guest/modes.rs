//! What is written for each mode, against a mock API server.

use control_plane_operator::hosted_cluster_config::resources::desired::{
    Key, MANAGED, Mode, Object, Write, WriteError, Writer, plan,
};
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use crate::facts::identity;
use crate::profiles::{PLATFORMS, Profile, base64, created, source};

/// The desired object with this identity.
fn find(profile: &Profile, id: &str) -> Object {
    let (objects, _) = profile.build();
    let mut objects = objects.into_iter().map(|(_, object)| object);
    objects
        .find(|object| identity(&object.value) == id)
        .unwrap()
}

/// The object as it is after this operator has created it.
fn live(object: &Object) -> Value {
    let mut live = created(object).unwrap_or_else(|| object.value.clone());
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["resourceVersion"] = json!("7");
    live
}

/// Path of an object in the API.
fn path(key: &Key) -> String {
    let resource = key.resource();
    let prefix = if resource.group.is_empty() {
        "/api"
    } else {
        "/apis"
    };
    let namespace = match key.namespace.as_str() {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    let plural = resource.plural;
    format!(
        "{prefix}/{}{namespace}/{plural}/{}",
        key.api_version, key.name
    )
}

/// Path of the objects of a kind and namespace.
fn collection(key: &Key) -> String {
    let path = path(key);
    path.rsplit_once('/').unwrap().0.to_owned()
}

/// Writes an object, and checks the calls.
async fn write(
    object: &Object,
    live: Option<&Value>,
    calls: impl IntoIterator<Item = Expect>,
) -> Result<Option<Value>, WriteError> {
    let scenario = Scenario::new(calls);
    let written = Writer::new(scenario.client(), "test")
        .write(object, live)
        .await;
    scenario.finish();
    written
}

#[tokio::test]
async fn changes_of_enforced_fields_are_reverted() {
    let object = find(
        &Profile::new("None"),
        "v1/ConfigMap/kube-system/konnectivity-ca-bundle",
    );
    assert_eq!(object.mode, Mode::Enforce);
    let mut changed = live(&object);
    changed["data"] = json!({ "ca.crt": "other", "own": "x" });
    changed["metadata"]["annotations"] = json!({ "own": "x" });
    let patch = json!({
        "metadata": { "uid": "u", "resourceVersion": "7" },
        "data": { "ca.crt": "konnectivity CA", "own": null },
    });
    let call = Expect::patch(&path(&object.key())).body(patch);
    let answer = Answer::ok(&live(&object));
    write(&object, Some(&changed), [call.answer(answer)])
        .await
        .unwrap();
}

#[tokio::test]
async fn enforced_lists_are_replaced() {
    let id = "rbac.authorization.k8s.io/v1/ClusterRole//hypershift-metrics-resources-reader";
    let object = find(&Profile::new("None"), id);
    let mut changed = live(&object);
    let rule = json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] });
    changed["rules"].as_array_mut().unwrap().push(rule);
    let call = Expect::patch(&path(&object.key())).body(json!({ "rules": object.value["rules"] }));
    let answer = Answer::ok(&live(&object));
    write(&object, Some(&changed), [call.answer(answer)])
        .await
        .unwrap();
}

#[tokio::test]
async fn changes_of_users_to_merged_objects_are_kept() {
    let object = find(&Profile::new("None"), "v1/Namespace//openshift-infra");
    assert_eq!(object.mode, Mode::Merge);
    let mut changed = live(&object);
    changed["metadata"]["labels"]["own"] = json!("x");
    changed["spec"] = json!({ "finalizers": ["kubernetes"] });
    write(&object, Some(&changed), []).await.unwrap();
    // Fields that are merged are still set.
    let label = "pod-security.kubernetes.io/enforce";
    changed["metadata"]["labels"][label] = json!("restricted");
    let patch = json!({ "metadata": { "labels": { label: "privileged" } } });
    let call = Expect::patch(&path(&object.key())).body(patch);
    let call = call.answer(Answer::ok(&live(&object)));
    write(&object, Some(&changed), [call]).await.unwrap();
}

#[tokio::test]
async fn fields_of_users_in_a_merged_spec_are_kept() {
    let object = find(
        &Profile::new("None"),
        "config.openshift.io/v1/ClusterVersion//version",
    );
    let mut changed = live(&object);
    changed["spec"]["overrides"] = json!([{ "kind": "Deployment" }]);
    changed["spec"]["desiredUpdate"] = json!({ "version": "4.99.0" });
    let patch = json!({ "spec": { "desiredUpdate": null } });
    let call = Expect::patch(&path(&object.key())).body(patch);
    let call = call.answer(Answer::ok(&live(&object)));
    write(&object, Some(&changed), [call]).await.unwrap();
    let plan = format!("{:?}", plan(&object, Some(&changed)));
    assert!(!plan.contains("overrides"), "{plan}");
}

#[tokio::test]
async fn objects_that_are_only_created_belong_to_users() {
    let id = "operator.openshift.io/v1/IngressController/openshift-ingress-operator/default";
    let object = find(&Profile::new("None"), id);
    assert_eq!(object.mode, Mode::Create);
    let mut users = json!({
        "metadata": { "name": "default", "labels": { MANAGED: "true" } },
        "spec": { "replicas": 7 },
    });
    write(&object, Some(&users), []).await.unwrap();
    // Without the label, it would be read in each pass.
    users["metadata"]["labels"] = Value::Null;
    let labelled = json!([{ "metadata": { "labels": { MANAGED: "true" } } }]);
    let writes: Vec<_> = plan(&object, Some(&users))
        .into_iter()
        .map(|write| match write {
            Write::Patch(patch) => patch,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(json!(writes), labelled);
    let call = Expect::post(&collection(&object.key()));
    let call = call.body(json!({ "metadata": { "labels": { MANAGED: "true" } } }));
    let answer = Answer::ok(&live(&object));
    write(&object, None, [call.answer(answer)]).await.unwrap();
}

#[tokio::test]
async fn each_deletion_happens_once() {
    for platform in ["AWS", "None", "KubeVirt"] {
        let profile = Profile::new(platform);
        let (objects, _) = profile.build();
        let objects = objects.into_iter().map(|(_, object)| object);
        let deletions: Vec<_> = objects
            .filter(|object| object.mode == Mode::Delete)
            .chain(profile.legacy_objects())
            .collect();
        assert!(deletions.len() >= 20, "{platform}: {}", deletions.len());
        for object in deletions {
            let found = live(&object);
            let call = Expect::delete(&path(&object.key()));
            let call = call.body(json!({ "preconditions": { "uid": "u" } }));
            let call = call.answer(Answer::ok(&found));
            assert!(
                write(&object, Some(&found), [call])
                    .await
                    .unwrap()
                    .is_none()
            );
            write(&object, None, []).await.unwrap();
            let mut terminating = found;
            terminating["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            write(&object, Some(&terminating), []).await.unwrap();
        }
    }
}

#[tokio::test]
async fn label_of_managed_objects_is_restored() {
    let object = find(
        &Profile::new("None"),
        "config.openshift.io/v1/Infrastructure//cluster",
    );
    let mut found = live(&object);
    found["metadata"]["labels"] = Value::Null;
    let patch = json!({ "metadata": { "labels": { MANAGED: "true" } } });
    let call = Expect::patch(&path(&object.key())).body(patch);
    let call = call.answer(Answer::ok(&live(&object)));
    write(&object, Some(&found), [call]).await.unwrap();
}

#[tokio::test]
async fn status_is_written_as_subresource_after_the_object() {
    let object = find(
        &Profile::new("None"),
        "config.openshift.io/v1/ClusterOperator//kube-scheduler",
    );
    let path = path(&object.key());
    let conditions = json!({ "status": { "conditions": object.value["status"]["conditions"] } });
    let bare =
        json!({ "metadata": { "name": "kube-scheduler", "resourceVersion": "1" }, "spec": {} });
    let calls = [
        Expect::post(&collection(&object.key())).answer(Answer::ok(&bare)),
        Expect::patch(&format!("{path}/status"))
            .body(json!({ "metadata": { "resourceVersion": "1" }, "status": conditions["status"] }))
            .answer(Answer::ok(&live(&object))),
    ];
    write(&object, None, calls).await.unwrap();
    // The network's status is part of the object.
    let proxy = json!({ "httpProxy": "http://p" });
    let profile = Profile::new("None").with("/spec/configuration/proxy", proxy);
    let object = find(&profile, "config.openshift.io/v1/Network//cluster");
    let network = json!({ "status": { "serviceNetwork": ["172.31.0.0/16"] } });
    let call = Expect::post(&collection(&object.key())).body(network);
    write(&object, None, [call.answer(Answer::ok(&live(&object)))])
        .await
        .unwrap();
}

#[test]
fn transition_times_of_unchanged_conditions_are_kept() {
    let id = "config.openshift.io/v1/ClusterOperator//kube-scheduler";
    let mut found = live(&find(&Profile::new("None"), id));
    let old = "2020-01-01T00:00:00Z";
    for condition in found["status"]["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"] = json!(old);
        condition["message"] = json!("kept");
    }
    let object = find(&Profile::new("None").live(found.clone()), id);
    assert_eq!(plan(&object, Some(&found)), []);
    found["status"]["conditions"][2]["status"] = json!("True");
    let object = find(&Profile::new("None").live(found), id);
    let times = object.value["status"]["conditions"].as_array().unwrap();
    let times: Vec<_> = times
        .iter()
        .map(|it| it["lastTransitionTime"] == old)
        .collect();
    assert_eq!(times, [true, true, false, true]);
}

#[tokio::test]
async fn conflicts_are_retried_with_the_new_object() {
    let object = find(
        &Profile::new("None"),
        "v1/ConfigMap/openshift-config/openshift-install",
    );
    let (one, mut changed) = (path(&object.key()), live(&object));
    changed["data"]["invoker"] = json!("x");
    let mut newer = changed.clone();
    newer["metadata"]["resourceVersion"] = json!("8");
    let patch = Expect::patch(&one);
    let calls = [
        patch.clone().answer(Answer::error(409, "Conflict")),
        Expect::get(&one).answer(Answer::ok(&newer)),
        patch
            .body(json!({ "metadata": { "resourceVersion": "8" } }))
            .answer(Answer::ok(&live(&object))),
    ];
    write(&object, Some(&changed), calls).await.unwrap();
    // An object without the label is not watched, so its creation fails.
    let calls = [
        Expect::post(&collection(&object.key())).answer(Answer::error(409, "AlreadyExists")),
        Expect::get(&one).answer(Answer::ok(&live(&object))),
    ];
    write(&object, None, calls).await.unwrap();
    // It has been deleted meanwhile.
    let calls = [
        Expect::patch(&one).answer(Answer::error(404, "NotFound")),
        Expect::get(&one).answer(Answer::error(404, "NotFound")),
        Expect::post(&collection(&object.key())).answer(Answer::ok(&live(&object))),
    ];
    write(&object, Some(&changed), calls).await.unwrap();
}

#[tokio::test]
async fn missing_kinds_and_namespaces_are_distinguished() {
    let object = find(&Profile::new("None"), "config.openshift.io/v1/DNS//cluster");
    let call = Expect::post(&collection(&object.key())).answer(Answer::error(404, "NotFound"));
    let error = write(&object, None, [call]).await.unwrap_err();
    assert!(matches!(error, WriteError::NotServed(_)), "{error}");
    let object = find(
        &Profile::new("None"),
        "v1/ConfigMap/openshift-config/openshift-install",
    );
    let answer = Answer::error(404, "namespaces \"openshift-config\" not found");
    let call = Expect::post(&collection(&object.key())).answer(answer);
    let error = write(&object, None, [call]).await.unwrap_err();
    assert!(matches!(error, WriteError::NoNamespace(_)), "{error}");
}

#[tokio::test]
async fn second_pass_writes_nothing() {
    for (_, platform) in PLATFORMS {
        let mut profile = Profile::new(platform);
        let scenario = Scenario::new([]).lenient();
        let writer = Writer::new(scenario.client(), "test");
        let mut written = Vec::new();
        for (_, object) in profile.build().0 {
            let found = writer.write(&object, None).await.unwrap();
            // The mock answers a patch with the patch.
            written.extend(found.map(|_| live(&object)));
        }
        assert!(written.len() >= 120, "{platform}: {}", written.len());
        profile.guest = written.into_iter().collect();
        let scenario = Scenario::new([]);
        let writer = Writer::new(scenario.client(), "test");
        for (_, object) in profile.build().0 {
            let found = profile.guest.get(&object.key());
            writer.write(&object, found).await.unwrap();
        }
        scenario.finish();
    }
}

#[test]
fn defaults_of_the_api_server_are_no_difference() {
    let object = find(
        &Profile::new("None"),
        "apps/v1/DaemonSet/kube-system/konnectivity-agent",
    );
    let mut found = live(&object);
    found["spec"]["revisionHistoryLimit"] = json!(10);
    found["status"] = json!({ "numberReady": 1 });
    let pod = &mut found["spec"]["template"]["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("schedulerName", json!("default-scheduler")),
        ("serviceAccount", json!("konnectivity-agent")),
    ] {
        pod[field] = value;
    }
    let container = &mut pod["containers"][0];
    container["terminationMessagePath"] = json!("/dev/termination-log");
    for variable in container["env"].as_array_mut().unwrap() {
        // Empty values are not stored.
        variable.as_object_mut().unwrap().remove("value");
    }
    found["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    assert_eq!(plan(&object, Some(&found)), []);
    found["spec"]["template"]["spec"]["nodeSelector"] = json!({ "own": "x" });
    let writes = format!("{:?}", plan(&object, Some(&found)));
    assert!(
        writes.contains("nodeSelector") && writes.contains("Null"),
        "{writes}"
    );

    let id = "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration//aws-pod-identity";
    let object = find(&Profile::new("AWS"), id);
    let mut found = live(&object);
    let webhook = &mut found["webhooks"][0];
    webhook["matchPolicy"] = json!("Equivalent");
    webhook["reinvocationPolicy"] = json!("Never");
    webhook["timeoutSeconds"] = json!(10);
    webhook["namespaceSelector"] = json!({});
    webhook["objectSelector"] = json!({});
    webhook["rules"][0]["scope"] = json!("*");
    assert_eq!(plan(&object, Some(&found)), []);

    let object = find(
        &Profile::new("None"),
        "v1/Service/default/openshift-apiserver",
    );
    let mut found = live(&object);
    found["spec"]["clusterIP"] = json!("172.31.0.9");
    found["spec"]["ports"][0]["targetPort"] = json!(443);
    found["spec"]["ports"][0]["protocol"] = json!("TCP");
    assert_eq!(plan(&object, Some(&found)), []);
}

#[test]
fn values_that_are_set_once_are_kept() {
    let id = "v1/ConfigMap/openshift-config/openshift-install";
    let profile = Profile::new("None").live(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "openshift-install", "namespace": "openshift-config" },
        "data": { "version": "4.1.0" },
    }));
    assert_eq!(find(&profile, id).value["data"]["version"], "4.1.0");
    let id = "oauth.openshift.io/v1/OAuthClient//openshift-browser-client";
    let profile = Profile::new("None").live(json!({
        "apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClient",
        "metadata": { "name": "openshift-browser-client" }, "secret": "s",
    }));
    assert_eq!(find(&profile, id).value.get("secret"), None);
    let id = "storage.k8s.io/v1/StorageClass//kubevirt-csi-infra-default";
    let profile = Profile::new("KubeVirt").live(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "kubevirt-csi-infra-default",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "false" },
        },
    }));
    assert_eq!(
        find(&profile, id).value["metadata"].get("annotations"),
        None
    );
}

#[tokio::test]
async fn secrets_are_not_in_errors() {
    let secret = source(
        "Secret",
        "pull-secret",
        json!({ ".dockerconfigjson": base64("password") }),
    );
    let profile = Profile::new("None").source(secret);
    let object = find(&profile, "v1/Secret/openshift/pull-secret");
    let call = Expect::post(&collection(&object.key())).answer(Answer::error(403, "Forbidden"));
    let error = write(&object, None, [call]).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains(&base64("password")), "{text}");
}
