//! The order of writes.

use api::group::CapiTypes;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::capi::Capi;
use crate::control_plane_namespace;
use crate::node_pool::conditions::Conditions;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::plan::Running;
use crate::node_pool::{fixtures, held, mirrored, plan, secrets, tuning, validate};

const SECRETS: &str = "/api/v1/namespaces/clusters-dev/secrets";

fn planned(facts: &Facts) -> Plan {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, _) = validate::validate(facts, &mut conditions);
    plan::plan(facts, &found, &conditions, "a-token").unwrap()
}

/// A server without objects, which accepts all writes to these paths.
fn server(paths: &[String]) -> Scenario {
    let object = Answer::ok(&json!({ "metadata": { "name": "a" } }));
    let of = |path: &String| {
        let call = |method| Expect::call(method, path);
        [
            call(Method::GET).answer(Answer::error(404, "NotFound")),
            call(Method::PATCH).answer(object.clone()),
            call(Method::POST).answer(object.clone()),
        ]
    };
    Scenario::new([]).always(paths.iter().flat_map(of))
}

fn path(kind: &ApiResource, name: &str) -> String {
    format!(
        "/apis/{}/namespaces/clusters-dev/{}/{name}",
        kind.api_version, kind.plural
    )
}

/// The writes, by their last two parts.
fn writes(scenario: &Scenario) -> Vec<String> {
    let seen = scenario
        .seen()
        .into_iter()
        .filter(|it| !it.starts_with("GET"));
    let short = seen.map(|it| {
        let (method, path) = it.split_once(' ').unwrap();
        let parts: Vec<_> = path.rsplit('/').take(2).collect();
        format!("{method} {}/{}", parts[1], parts[0])
    });
    short.collect()
}

#[tokio::test]
async fn objects_are_written_before_their_references() {
    let facts = fixtures::facts();
    let plan = planned(&facts);
    let machines = plan.machines.as_ref().unwrap();
    let (hash, template) = (&plan.hash, &machines.template.1.name);
    let check = facts.capi().machine_health_check();
    let scenario = server(&[
        SECRETS.to_owned(),
        format!("{SECRETS}/token-workers-{hash}"),
        format!("{SECRETS}/user-data-workers-{hash}"),
        path(&machines.template.0, template),
        path(&machines.running.workload.0, "workers"),
        path(&check, "workers"),
        path(&check, "workers-spot"),
    ]);
    Writer::new(scenario.client())
        .apply(facts.owned.as_ref().unwrap(), &facts, &plan)
        .await
        .unwrap();
    scenario.finish();
    assert_eq!(
        writes(&scenario),
        [
            // Whole, and all but the token.
            "POST clusters-dev/secrets".to_owned(),
            format!("PATCH secrets/token-workers-{hash}"),
            format!("PATCH secrets/user-data-workers-{hash}"),
            format!("PATCH awsmachinetemplates/{template}"),
            // Whole, the number of machines alone, and all but the number.
            "PATCH machinedeployments/workers".to_owned(),
            "PATCH machinedeployments/workers".to_owned(),
            "PATCH machinedeployments/workers".to_owned(),
        ]
    );
}

/// A refused pool keeps its template and its token, and the rest is written in the same order.
#[tokio::test]
async fn a_refused_pool_is_written_without_anything_new() {
    let mut facts = fixtures::facts();
    let plan = planned(&facts);
    let hash = plan.hash.clone();
    let (kind, object) = plan.machines.unwrap().running.workload;
    let Token::New(token) = plan.token else {
        panic!("{:?}", plan.token);
    };
    facts.tokens = vec![token];
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    facts.workload = Some(Workload::read(&object));
    facts.pool.spec.replicas = Some(5);
    facts.own = vec![Source {
        name: "more".to_owned(),
        content: Content::Missing,
    }];
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (_, outcome) = validate::validate(&facts, &mut conditions);
    assert!(outcome.is_err());
    let held = held::held(&facts, &conditions).unwrap();
    let check = facts.capi().machine_health_check();
    let scenario = server(&[
        format!("{SECRETS}/user-data-workers-{hash}"),
        path(&kind, "workers"),
        path(&check, "workers"),
        path(&check, "workers-spot"),
    ]);
    Writer::new(scenario.client())
        .hold(facts.owned.as_ref().unwrap(), &facts, &held)
        .await
        .unwrap();
    scenario.finish();
    assert_eq!(
        writes(&scenario),
        [
            format!("PATCH secrets/user-data-workers-{hash}"),
            // The number of machines alone, and all but the number.
            "PATCH machinedeployments/workers".to_owned(),
            "PATCH machinedeployments/workers".to_owned(),
        ]
    );
}

#[tokio::test]
async fn replicas_are_left_to_the_autoscaler() {
    let mut facts = fixtures::facts();
    facts.pool.spec.replicas = None;
    facts.pool.spec.auto_scaling = serde_json::from_value(json!({ "min": 1, "max": 5 })).unwrap();
    facts.workload = Some(fixtures::workload(3));
    let plan = planned(&facts);
    let Running {
        workload: (kind, object),
        replicas,
        ..
    } = plan.machines.unwrap().running;
    assert_eq!(replicas, None);
    let scenario = Scenario::new([
        Expect::get(&path(&kind, "workers")).answer(Answer::error(404, "NotFound")),
        Expect::patch(&path(&kind, "workers"))
            .answer(Answer::ok(&json!({ "metadata": { "name": "workers" } }))),
    ]);
    let writer = Writer::new(scenario.client());
    writer
        .workload(&facts, &kind, &object, replicas)
        .await
        .unwrap();
    scenario.finish();
    assert!(object["spec"].get("replicas").is_none());
}

/// None of them is made from the template before.
#[tokio::test]
async fn machines_are_added_after_their_template() {
    for (now, desired, expected) in [
        (1, 3, &[Some(1), None, Some(3)][..]),
        (0, 1, &[Some(0), None, Some(1)]),
        (3, 1, &[Some(1), None]),
        (2, 2, &[Some(2), None]),
    ] {
        let mut facts = fixtures::facts();
        facts.pool.spec.replicas = Some(desired);
        facts.workload = Some(fixtures::workload(now));
        let plan = planned(&facts);
        let Running {
            workload: (kind, object),
            replicas,
            ..
        } = plan.machines.unwrap().running;
        let path = path(&kind, "workers");
        let calls = expected.iter().flat_map(|number| {
            let spec = match number {
                Some(number) => json!({ "replicas": number }),
                None => json!({ "template": object["spec"]["template"] }),
            };
            let answer = Answer::ok(&json!({ "metadata": { "name": "workers" } }));
            [
                Expect::get(&path).answer(Answer::error(404, "NotFound")),
                Expect::patch(&path)
                    .body(json!({ "spec": spec }))
                    .answer(answer),
            ]
        });
        let scenario = Scenario::new(calls);
        let writer = Writer::new(scenario.client());
        let written = writer.workload(&facts, &kind, &object, replicas).await;
        assert!(written.is_ok(), "{now} to {desired}: {written:?}");
        scenario.finish();
    }
}

#[tokio::test]
async fn an_existing_token_is_not_overwritten() {
    let mut facts = fixtures::facts();
    let Token::New(secret) = planned(&facts).token else {
        panic!("there is a token already");
    };
    facts.tokens = vec![secret];
    let plan = planned(&facts);
    let name = format!("{SECRETS}/{}", names::token("workers", &plan.hash));
    let scenario = Scenario::new([
        Expect::get(&name).answer(Answer::error(404, "NotFound")),
        Expect::patch(&name).answer(Answer::ok(&json!({ "metadata": { "name": "a" } }))),
    ]);
    let writer = Writer::new(scenario.client());
    writer.token(&facts, &plan.token).await.unwrap();
    scenario.finish();
    let Token::Known(secret) = plan.token else {
        panic!("{:?}", plan.token);
    };
    assert!(!secret.data.unwrap().contains_key("token"));
}

#[tokio::test]
async fn outdated_tokens_get_an_expiration() {
    let mut secret = Secret::default();
    secret.metadata.namespace = Some("clusters-dev".to_owned());
    secret.metadata.name = Some("token-workers-old".to_owned());
    secret.metadata.resource_version = Some("9".to_owned());
    let now = fixtures::facts().now;
    let outdated = secrets::outdated_token(&BTreeMap::new(), now);
    let scenario = Scenario::new([Expect::patch(&format!("{SECRETS}/token-workers-old"))
        .body(json!({ "metadata": {
            "resourceVersion": "9",
            "annotations": { TOKEN_EXPIRATION.key(): "2026-11-22T02:00:00Z" },
        } }))
        .answer(Answer::ok(&json!({ "metadata": { "name": "a" } })))]);
    let writer = Writer::new(scenario.client());
    let namespace = Namespace::Owned(control_plane_namespace::for_tests("clusters-dev"));
    writer
        .expire(&namespace, &fixtures::pool(), &[(secret, outdated)])
        .await
        .unwrap();
    scenario.finish();
}

#[tokio::test]
async fn a_health_check_of_another_pool_is_not_deleted() {
    let kind = Capi::new(CapiTypes::Private).machine_health_check();
    let path = path(&kind, "workers-spot");
    let check = |pool: &str| {
        Answer::ok(&json!({ "metadata": {
            "name": "workers-spot",
            "uid": "u",
            "annotations": { NODE_POOL.key(): pool },
        } }))
    };
    let scenario = Scenario::new([
        Expect::get(&path).answer(check("clusters/workers-spot")),
        Expect::get(&path).answer(check("clusters/workers")),
        Expect::delete(&path).body(json!({ "preconditions": { "uid": "u" } })),
    ]);
    let writer = Writer::new(scenario.client());
    let namespace = Namespace::Owned(control_plane_namespace::for_tests("clusters-dev"));
    let pool = fixtures::pool();
    for _ in 0..2 {
        let deleted = writer.delete(&namespace, &pool, &kind, "workers-spot");
        deleted.await.unwrap();
    }
    scenario.finish();
}

/// Check T09: an object may have got the name of the tuning since the ConfigMaps were listed.
#[tokio::test]
async fn tuning_overwrites_and_deletes_nothing_of_others() {
    const MAPS: &str = "/api/v1/namespaces/clusters-dev/configmaps";
    let label = "hypershift.openshift.io/tuned-config";
    let answer = |annotations: Option<&str>, labels: &Value| {
        let annotations = annotations.map(|it| json!({ NODE_POOL.key(): it }));
        let metadata = json!({ "name": "older-workers", "uid": "u", "annotations": annotations, "labels": labels });
        Answer::ok(&json!({ "metadata": metadata }))
    };
    let labels = json!({ label: "true", NODE_POOL.key(): "workers" });
    let others = || answer(Some("clusters/others"), &labels);
    for (name, found, expected) in [
        (
            "no object",
            [
                Answer::error(404, "NotFound"),
                Answer::error(404, "NotFound"),
            ],
            vec!["PATCH configmaps/tuned-workers"],
        ),
        ("objects of another pool", [others(), others()], vec![]),
        (
            "an object without an owner",
            [answer(None, &Value::Null), others()],
            vec![],
        ),
        (
            "an obsolete object",
            [others(), answer(Some("clusters/workers"), &labels)],
            vec!["DELETE configmaps/older-workers"],
        ),
    ] {
        let facts = fixtures::facts();
        let metadata = ObjectMeta {
            namespace: Some("clusters-dev".to_owned()),
            name: Some("tuned-workers".to_owned()),
            ..ObjectMeta::default()
        };
        let maps = tuning::Maps {
            desired: vec![ConfigMap {
                metadata,
                ..ConfigMap::default()
            }],
            obsolete: vec!["older-workers".to_owned()],
        };
        let (tuned, older) = (
            format!("{MAPS}/tuned-workers"),
            format!("{MAPS}/older-workers"),
        );
        let [of_tuned, of_older] = found;
        let scenario = Scenario::new([]).always([
            Expect::get(&tuned).answer(of_tuned),
            Expect::get(&older).answer(of_older),
            Expect::patch(&tuned).answer(answer(None, &Value::Null)),
            Expect::delete(&older),
        ]);
        let writer = Writer::new(scenario.client());
        let namespace = Namespace::Owned(control_plane_namespace::for_tests("clusters-dev"));
        writer.tuning(&namespace, &facts, &maps).await.unwrap();
        assert_eq!(writes(&scenario), expected, "{name}");
    }
}

/// Check T09: the same for copies of the configuration. One that is immutable is created again.
#[tokio::test]
async fn copies_overwrite_and_delete_nothing_of_others() {
    const MAP: &str = "/api/v1/namespaces/clusters-dev/configmaps/limits-workers";
    let found = |pool: &str| {
        let label = "hypershift.openshift.io/mirrored-config";
        Answer::ok(&json!({ "metadata": {
            "name": "limits-workers",
            "uid": "u",
            "annotations": { NODE_POOL.key(): pool },
            "labels": { label: "true" },
        } }))
    };
    for (name, pool, immutable, expected) in [
        (
            "the pool's",
            "clusters/workers",
            false,
            vec!["PATCH configmaps/limits-workers"],
        ),
        (
            "an immutable one of the pool",
            "clusters/workers",
            true,
            vec![
                "DELETE configmaps/limits-workers",
                "PATCH configmaps/limits-workers",
            ],
        ),
        ("another pool's", "clusters/others", true, vec![]),
    ] {
        let facts = fixtures::facts();
        let metadata = ObjectMeta {
            namespace: Some("clusters-dev".to_owned()),
            name: Some("limits-workers".to_owned()),
            ..ObjectMeta::default()
        };
        let immutable = immutable.then(|| "limits-workers".to_owned());
        let maps = mirrored::Maps {
            desired: vec![ConfigMap {
                metadata,
                ..ConfigMap::default()
            }],
            immutable: immutable.into_iter().collect(),
            obsolete: Vec::new(),
        };
        let scenario = Scenario::new([]).always([
            Expect::get(MAP).answer(found(pool)),
            Expect::patch(MAP).answer(found(pool)),
            Expect::delete(MAP),
        ]);
        let writer = Writer::new(scenario.client());
        let namespace = facts.owned.as_ref().unwrap();
        writer.mirror(namespace, &facts, &maps).await.unwrap();
        assert_eq!(writes(&scenario), expected, "{name}");
    }
}
