//! The order of requests and of calls of a cloud: with a fake cloud, and without credentials for a real one.

use std::cell::RefCell;

use api::hypershift::v1beta1::{
    AwsEndpointService, AzurePrivateLinkService, GcpPrivateServiceConnect,
};
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use support::controller::Settings;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::private_link::{aws, azure, gcp};

const NAMESPACE: &str = "clusters-one";
const ROUTER: &str = "private-router";
const RELEASE: &str = "registry.example.com/release:v1";
const FINALIZER: &str = "hypershift.openshift.io/azure-private-link-service";
const HOLD: &str = "hypershift.openshift.io/azure-pls-endpoint-cleanup";
const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
const LINK: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/azureprivatelinkservices/private-router";
const SERVICES: &str = "/api/v1/namespaces/clusters-one/services";
const KUBECONFIG: &str = "/api/v1/namespaces/clusters-one/secrets/service-network-admin-kubeconfig";

/// Azure as far as it is pure, and a cloud with fixed answers.
struct Fake {
    scenario: Scenario,
    pass: Pass,
    removed: Removed,
    /// Calls, each with the number of requests before it.
    calls: RefCell<Vec<(&'static str, usize)>>,
}

impl Fake {
    fn new(scenario: &Scenario, pass: Pass, removed: Removed) -> Self {
        Self {
            scenario: scenario.clone(),
            pass,
            removed,
            calls: RefCell::default(),
        }
    }

    fn note(&self, call: &'static str) {
        let requests = self.scenario.seen().len();
        self.calls.borrow_mut().push((call, requests));
    }
}

impl Provider for Fake {
    type Link = AzurePrivateLinkService;

    const SETTINGS: Settings = <azure::Provider as Provider>::SETTINGS;
    const SERVICES: &'static [&'static str] = <azure::Provider as Provider>::SERVICES;
    const FINALIZER: &'static str = <azure::Provider as Provider>::FINALIZER;
    const HOLD: Option<&'static str> = <azure::Provider as Provider>::HOLD;
    const EXTERNAL: &'static str = <azure::Provider as Provider>::EXTERNAL;

    fn is_private(hcp: &HostedControlPlane) -> bool {
        <azure::Provider as Provider>::is_private(hcp)
    }

    fn link(hcp: &HostedControlPlane, objects: &Objects, service: &str) -> Option<Value> {
        <azure::Provider as Provider>::link(hcp, objects, service)
    }

    fn has(live: &AzurePrivateLinkService, desired: &Value) -> bool {
        <azure::Provider as Provider>::has(live, desired)
    }

    fn is_offered(live: &AzurePrivateLinkService) -> bool {
        <azure::Provider as Provider>::is_offered(live)
    }

    fn digest(
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        siblings: &[String],
    ) -> u64 {
        <azure::Provider as Provider>::digest(hcp, live, siblings)
    }

    async fn ensure(
        &self,
        _: &HostedControlPlane,
        _: &AzurePrivateLinkService,
        _: &[String],
    ) -> Pass {
        self.note("ensure");
        self.pass.clone()
    }

    async fn remove(
        &self,
        _: &HostedControlPlane,
        _: &AzurePrivateLinkService,
        _: &[String],
    ) -> Removed {
        self.note("remove");
        self.removed.clone()
    }
}

fn hcp(platform: &Value, edit: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let text = include_str!(
        "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
    );
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    hcp["metadata"] = json!({
        "namespace": NAMESPACE, "name": "one", "uid": "hcp-uid", "resourceVersion": "3",
        "finalizers": ["a", HOLD],
    });
    hcp["spec"]["releaseImage"] = json!(RELEASE);
    hcp["spec"]["infraID"] = json!("infra-1");
    hcp["spec"]["dns"]["baseDomain"] = json!("example.com");
    for (field, value) in platform.as_object().unwrap() {
        hcp["spec"]["platform"][field] = value.clone();
    }
    edit(&mut hcp);
    serde_json::from_value(hcp).unwrap()
}

/// A private control plane on Azure, which has the finalizer for its links.
fn on_azure(edit: impl FnOnce(&mut Value)) -> HostedControlPlane {
    hcp(&json!({ "type": "Azure" }), |it| {
        let azure = &mut it["spec"]["platform"]["azure"];
        azure["location"] = json!("eastus");
        azure["resourceGroup"] = json!("machines");
        azure["subscriptionID"] = json!("subscription");
        azure["tenantID"] = json!("tenant");
        azure["topology"] = json!("Private");
        azure["private"] = json!({ "type": "PrivateLink", "privateLink": {} });
        edit(it);
    })
}

fn on_aws() -> HostedControlPlane {
    hcp(&json!({ "type": "AWS" }), |it| {
        let aws = &mut it["spec"]["platform"]["aws"];
        aws["region"] = json!("us-east-1");
        aws["cloudProviderConfig"] = json!({ "vpc": "vpc-1" });
    })
}

fn on_google() -> HostedControlPlane {
    let email = "a@guest-1.iam.gserviceaccount.com";
    let gcp = json!({
        "project": "guest-1",
        "region": "us-central1",
        "networkConfig": { "network": { "name": "n" }, "privateServiceConnectSubnet": { "name": "psc" } },
        "workloadIdentity": {
            "projectNumber": "1", "poolID": "pool", "providerID": "provider",
            "serviceAccountsEmails": {
                "nodePool": email, "controlPlane": email, "cloudController": email,
                "storage": email, "imageRegistry": email, "network": email,
            },
        },
    });
    hcp(&json!({ "type": "GCP", "gcp": gcp }), |_| {})
}

/// The Service of the router, with an internal load balancer.
fn published() -> Objects {
    let mut objects = Objects::default();
    objects.insert(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": ROUTER, "annotations": {
            "service.beta.kubernetes.io/azure-load-balancer-internal": "true",
        } },
        "status": { "loadBalancer": { "ingress": [{ "ip": "10.0.0.4" }] } },
    }));
    objects
}

/// The link of the router as it is to be; the hypershift-operator has done its part.
fn link(edit: impl FnOnce(&mut Value)) -> Value {
    let mut link = <Fake as Provider>::link(&on_azure(|_| {}), &published(), ROUTER).unwrap();
    link["apiVersion"] = json!("hypershift.openshift.io/v1beta1");
    link["kind"] = json!("AzurePrivateLinkService");
    link["metadata"]["uid"] = json!("u");
    link["metadata"]["resourceVersion"] = json!("7");
    link["status"] = json!({ "privateLinkServiceAlias": "alias" });
    edit(&mut link);
    link
}

fn read<K: DeserializeOwned>(link: &Value) -> K {
    serde_json::from_value(link.clone()).unwrap()
}

fn deleted(it: &mut Value) {
    it["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
}

fn rest() -> Pass {
    Pass::reported(None, Next::Rest(RESYNC))
}

/// What a test reconciles.
struct Case {
    hcp: Option<HostedControlPlane>,
    objects: Objects,
    writer: Writer<AzurePrivateLinkService>,
    fake: Fake,
}

/// Runs `$body` with a controller of the case.
macro_rules! with_controller {
    ($case:expr, $controller:ident, $writer:ident => $body:block) => {{
        let Case {
            hcp,
            objects,
            writer: mut $writer,
            fake,
        } = $case;
        let client = fake.scenario.client();
        let (_changes, changes) = watch::channel(0);
        let $controller = Controller {
            applier: Applier::new(client.clone(), MANAGER),
            recorder: tool::recorder(&client, MANAGER),
            client,
            namespace: NAMESPACE,
            store: $writer.as_reader(),
            view: View {
                hcp: || hcp.clone(),
                objects: || objects.clone(),
                changes,
                operate_on: RELEASE,
            },
            provider: fake,
            memory: Mutex::default(),
        };
        // Some tests change what is watched.
        let _ = &mut $writer;
        $body
    }};
}

fn case(scenario: &Scenario, hcp: HostedControlPlane, links: &[Value]) -> Case {
    let mut writer = Writer::default();
    for link in links {
        writer.apply_watcher_event(&Event::Apply(read(link)));
    }
    Case {
        hcp: Some(hcp),
        objects: published(),
        writer,
        fake: Fake::new(scenario, rest(), Removed::Done),
    }
}

fn router() -> ObjectKey {
    ObjectKey::new(NAMESPACE, ROUTER)
}

/// Reconciles the router once. Returns what the cloud was asked, too.
async fn reconcile(case: Case) -> (Action, Vec<(&'static str, usize)>) {
    with_controller!(case, controller, writer => {
        let action = controller.reconcile(&router()).await.unwrap();
        let calls = controller.provider.calls.take();
        (action, calls)
    })
}

#[tokio::test]
async fn the_control_plane_is_held_before_a_link_is_created() {
    let held = json!({ "metadata": {
        "uid": "hcp-uid", "resourceVersion": "3", "finalizers": ["a", HOLD],
    } });
    let answer = Answer::ok(&json!(on_azure(|_| {})));
    let scenario = Scenario::new([Expect::patch(HCP).body(held).answer(answer)]);
    let free = on_azure(|it| it["metadata"]["finalizers"] = json!(["a"]));
    let (action, calls) = reconcile(case(&scenario, free, &[])).await;
    assert_eq!((action, calls.len()), (Action::requeue(POLL_INTERVAL), 0));
    scenario.finish();
}

#[tokio::test]
async fn a_link_is_created_with_its_finalizer() {
    let scenario = Scenario::new([
        Expect::get(LINK).answer(Answer::error(404, "NotFound")),
        Expect::patch(LINK)
            .body(json!({
                "metadata": { "finalizers": [FINALIZER], "ownerReferences": [{ "uid": "hcp-uid" }] },
                "spec": { "loadBalancerIP": "10.0.0.4" },
            }))
            .answer(Answer::ok(&link(|_| {}))),
    ]);
    let (action, calls) = reconcile(case(&scenario, on_azure(|_| {}), &[])).await;
    assert_eq!((action, calls.len()), (Action::await_change(), 0));
    scenario.finish();
}

/// Users of the management cluster may change a link: it is corrected before the cloud is asked about it.
#[tokio::test]
async fn a_link_is_corrected_before_anything_is_made() {
    let edits: [fn(&mut Value); 3] = [
        |it| it["metadata"]["finalizers"] = json!([]),
        |it| it["metadata"]["ownerReferences"][0]["uid"] = json!("other"),
        |it| it["spec"]["loadBalancerIP"] = json!("10.9.9.9"),
    ];
    for edit in edits {
        let live = link(edit);
        let scenario = Scenario::new([
            Expect::get(LINK).answer(Answer::ok(&live)),
            Expect::patch(LINK).answer(Answer::ok(&link(|_| {}))),
        ]);
        let (action, calls) = reconcile(case(&scenario, on_azure(|_| {}), &[live])).await;
        assert_eq!((action, calls.len()), (Action::await_change(), 0));
        scenario.finish();
    }
}

/// A link may have been there before: its control plane waits for it, too.
#[tokio::test]
async fn the_control_plane_is_held_before_anything_is_made() {
    let answer = Answer::ok(&json!(on_azure(|_| {})));
    let scenario = Scenario::new([Expect::patch(HCP)
        .body(json!({ "metadata": { "finalizers": [HOLD] } }))
        .answer(answer)]);
    let free = on_azure(|it| it["metadata"]["finalizers"] = json!([]));
    let (action, calls) = reconcile(case(&scenario, free, &[link(|_| {})])).await;
    assert_eq!((action, calls.len()), (Action::requeue(POLL_INTERVAL), 0));
    scenario.finish();
}

#[tokio::test]
async fn nothing_is_made_before_it_may_be() {
    type Edit = fn(&mut Value);
    let same: Edit = |_| {};
    let table: [(&str, Edit, Edit, Action); 5] = [
        (
            "the hypershift-operator has not done its part",
            same,
            |it| it["status"] = json!({}),
            Action::await_change(),
        ),
        (
            "a release of another operator",
            |it| it["spec"]["releaseImage"] = json!("registry.example.com/release:v2"),
            same,
            Action::await_change(),
        ),
        (
            "paused",
            |it| it["spec"]["pausedUntil"] = json!("true"),
            same,
            Action::requeue(RESYNC),
        ),
        (
            "a link that waits for another controller",
            same,
            |it| {
                it["metadata"]["finalizers"] = json!(["other"]);
                deleted(it);
            },
            Action::await_change(),
        ),
        (
            "public, with the Service still there",
            |it| it["spec"]["platform"]["azure"]["topology"] = json!("Public"),
            same,
            Action::await_change(),
        ),
    ];
    for (name, of_hcp, of_link, expected) in table {
        let scenario = Scenario::new([]);
        let case = case(&scenario, on_azure(of_hcp), &[link(of_link)]);
        let (action, calls) = reconcile(case).await;
        assert_eq!((action, calls.len()), (expected, 0), "{name}");
        scenario.finish();
    }
    let scenario = Scenario::new([]);
    let without = Case {
        hcp: None,
        ..case(&scenario, on_azure(|_| {}), &[link(|_| {})])
    };
    let (action, calls) = reconcile(without).await;
    assert_eq!((action, calls.len()), (Action::await_change(), 0));
    scenario.finish();
}

/// A link that is not of one of the Services, whatever its name.
#[tokio::test]
async fn links_of_other_names_are_left_alone() {
    let other = link(|it| it["metadata"]["name"] = json!("other"));
    let scenario = Scenario::new([]);
    let case = case(&scenario, on_azure(|_| {}), &[other]);
    with_controller!(case, controller, writer => {
        let key = ObjectKey::new(NAMESPACE, "other");
        let action = controller.reconcile(&key).await.unwrap();
        assert_eq!(action, Action::await_change());
        assert!(controller.provider.calls.take().is_empty());
    });
    scenario.finish();
}

/// The cloud is not asked again about the same until it has rested.
#[tokio::test(start_paused = true)]
async fn what_a_pass_has_made_is_written_in_order() {
    let name = "kube-apiserver-external-private";
    let service = json!({ "metadata": { "namespace": NAMESPACE, "name": name } });
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    let further = json!({ "metadata": { "namespace": NAMESPACE, "name": "further" } });
    let one = format!("{SERVICES}/{name}");
    let missing = || Answer::error(404, "NotFound");
    let map = "/api/v1/namespaces/clusters-one/configmaps/further";
    let scenario = Scenario::new([
        Expect::patch(LINK)
            .body(json!({ "metadata": { "resourceVersion": "7", "labels": { "a": "b" } } }))
            .answer(Answer::ok(&link(|_| {}))),
        Expect::patch(&format!("{LINK}/status"))
            .body(json!({ "status": { "privateEndpointIP": "10.1.0.4" } }))
            .answer(Answer::ok(&link(|_| {}))),
        Expect::get(&format!("{SERVICES}/oauth-external-private")).answer(missing()),
        Expect::get(&one).answer(missing()),
        Expect::patch(&one).answer(Answer::ok(&service)),
        // It does not matter if the management cluster does not take it.
        Expect::get(map).answer(missing()),
        Expect::patch(map).answer(Answer::error(403, "Forbidden")),
    ]);
    let mut case = case(&scenario, on_azure(|_| {}), &[link(|_| {})]);
    case.fake.pass = Pass {
        metadata: Some(json!({ "metadata": { "labels": { "a": "b" } } })),
        status: Some(json!({ "status": { "privateEndpointIP": "10.1.0.4" } })),
        externals: Some(vec![service]),
        further: vec![(resource, further)],
        next: Next::Rest(RESYNC),
    };
    with_controller!(case, controller, writer => {
        for _ in 0..2 {
            let action = controller.reconcile(&router()).await.unwrap();
            assert_eq!(action, Action::requeue(RESYNC));
        }
        assert_eq!(controller.provider.calls.take(), [("ensure", 0)]);
        scenario.finish();
        tokio::time::advance(RESYNC).await;
        // The metadata is written first, and it is refused here.
        let error = controller.reconcile(&router()).await.unwrap_err();
        assert!(error.to_string().contains(ROUTER), "{error}");
        assert_eq!(controller.provider.calls.take(), [("ensure", 7)]);
    });
}

/// The finalizer is what the deletion of the load balancer waits for.
#[tokio::test]
async fn a_link_is_released_after_what_is_in_the_cloud() {
    let live = link(|it| {
        it["metadata"]["finalizers"] = json!(["a", FINALIZER]);
        deleted(it);
    });
    let ok = || Answer::ok(&link(|_| {}));
    let failed = json!({ "status": { "conditions": [] } });
    let pause = Duration::from_secs(20);
    for (removed, requests, expected) in [
        (Removed::Waiting, vec![], Action::requeue(POLL_INTERVAL)),
        (Removed::Failed(None, pause), vec![], Action::requeue(pause)),
        (
            Removed::Failed(Some(failed), pause),
            vec![
                Expect::patch(&format!("{LINK}/status"))
                    .body(json!({ "metadata": { "resourceVersion": "7" } }))
                    .answer(ok()),
            ],
            Action::requeue(pause),
        ),
        (
            Removed::Done,
            vec![
                Expect::get(SERVICES).answer(Answer::list(&[])),
                Expect::patch(LINK)
                    .body(json!({ "metadata": {
                        "uid": "u", "resourceVersion": "7", "finalizers": ["a"],
                    } }))
                    .answer(ok()),
            ],
            Action::await_change(),
        ),
    ] {
        let scenario = Scenario::new(requests);
        let links = std::slice::from_ref(&live);
        let mut case = case(&scenario, on_azure(|_| {}), links);
        case.fake.removed = removed.clone();
        let (action, calls) = reconcile(case).await;
        assert_eq!(action, expected, "{removed:?}");
        assert_eq!(calls, [("remove", 0)], "{removed:?}");
        scenario.finish();
    }
}

/// A public cluster has public names: Services with the private ones go with the last link. Others are left.
#[tokio::test]
async fn external_names_go_with_the_last_link() {
    let labelled = |name: &str, label: Value| json!({ "metadata": { "name": name, "uid": "s", "labels": label } });
    let label = <Fake as Provider>::EXTERNAL;
    let own = "kube-apiserver-external-private";
    let services = [
        labelled(own, json!({ label: "true" })),
        labelled("oauth-external-private", json!({})),
        labelled("other", json!({ label: "true" })),
    ];
    let going = link(deleted);
    let sibling = link(|it| it["metadata"]["name"] = json!("oauth-openshift"));
    let mut deleted_sibling = sibling.clone();
    deleted(&mut deleted_sibling);
    for (links, is_last) in [
        (vec![going.clone()], true),
        (vec![going.clone(), deleted_sibling], true),
        (vec![going, sibling], false),
    ] {
        let mut requests = Vec::new();
        if is_last {
            requests.extend([
                Expect::get(SERVICES).answer(Answer::list(&services)),
                Expect::delete(&format!("{SERVICES}/{own}"))
                    .body(json!({ "preconditions": { "uid": "s" } }))
                    .answer(Answer::ok(&services[0])),
            ]);
        }
        requests.push(Expect::patch(LINK).answer(Answer::ok(&link(|_| {}))));
        let scenario = Scenario::new(requests);
        reconcile(case(&scenario, on_azure(|_| {}), &links)).await;
        scenario.finish();
    }
}

/// The deletion of a cluster begins with its links, and goes on with its control plane a while later.
#[tokio::test(start_paused = true)]
async fn a_deleted_link_is_not_created_again_at_once() {
    let going = link(deleted);
    let scenario = Scenario::new([
        Expect::get(SERVICES).answer(Answer::list(&[])),
        Expect::patch(LINK).answer(Answer::ok(&going)),
        Expect::get(LINK).answer(Answer::error(404, "NotFound")),
        Expect::patch(LINK).answer(Answer::ok(&link(|_| {}))),
    ]);
    let case = case(&scenario, on_azure(|_| {}), std::slice::from_ref(&going));
    with_controller!(case, controller, writer => {
        controller.reconcile(&router()).await.unwrap();
        writer.apply_watcher_event(&Event::Delete(read(&going)));
        let action = controller.reconcile(&router()).await.unwrap();
        assert_eq!(action, Action::requeue(HOLD_OFF));
        assert_eq!(scenario.seen().len(), 2);
        tokio::time::advance(HOLD_OFF).await;
        controller.reconcile(&router()).await.unwrap();
    });
    scenario.finish();
}

/// A control plane that is being deleted, and one that is public now.
#[tokio::test]
async fn links_go_before_the_finalizer_of_the_control_plane() {
    let public = |it: &mut Value| it["spec"]["platform"]["azure"]["topology"] = json!("Public");
    let edits: [fn(&mut Value); 2] = [deleted, public];
    for edit in edits {
        let unpublished = |scenario: &Scenario, links: &[Value]| Case {
            objects: Objects::default(),
            ..case(scenario, on_azure(edit), links)
        };
        let scenario = Scenario::new([Expect::delete(LINK)
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&link(|_| {})))]);
        let (_, calls) = reconcile(unpublished(&scenario, &[link(|_| {})])).await;
        assert!(calls.is_empty());
        scenario.finish();

        let other = link(|it| it["metadata"]["name"] = json!("oauth-openshift"));
        let scenario = Scenario::new([]);
        reconcile(unpublished(&scenario, &[other])).await;
        scenario.finish();

        let scenario = Scenario::new([Expect::patch(HCP)
            .body(json!({ "metadata": { "resourceVersion": "3", "finalizers": ["a"] } }))
            .answer(Answer::ok(&json!(on_azure(edit))))]);
        reconcile(unpublished(&scenario, &[])).await;
        scenario.finish();
    }
}

/// A link of the router on another cloud than Azure.
fn other_link<K: DeserializeOwned>(kind: &str, spec: &Value, finalizer: &str) -> K {
    read(&json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": kind,
        "metadata": { "namespace": NAMESPACE, "name": ROUTER, "uid": "u", "finalizers": [finalizer] },
        "spec": spec,
    }))
}

fn on_aws_link(finalizer: &str) -> AwsEndpointService {
    let spec = json!({ "networkLoadBalancerName": "balancer" });
    let mut link: AwsEndpointService = other_link("AWSEndpointService", &spec, finalizer);
    let status = json!({ "endpointServiceName": "service" });
    link.status = serde_json::from_value(status).unwrap();
    link
}

fn on_google_link(finalizer: &str) -> GcpPrivateServiceConnect {
    let spec = json!({ "loadBalancerIP": "10.0.0.4", "consumerAcceptList": ["guest-1"] });
    let mut link: GcpPrivateServiceConnect =
        other_link("GCPPrivateServiceConnect", &spec, finalizer);
    let status = json!({
        "serviceAttachmentName": "psc-1",
        "serviceAttachmentURI": "projects/mgmt-1/regions/us-central1/serviceAttachments/psc-1",
    });
    link.status = serde_json::from_value(status).unwrap();
    link
}

/// What the API server answers that has the kubeconfig of the hosted cluster.
fn no_kubeconfig(code: u16, reason: &str) -> Scenario {
    let answer = Answer::error(code, reason);
    Scenario::new([]).always([Expect::get(KUBECONFIG).answer(answer)])
}

/// Whether a change of a status has one condition that is False, whose message has this part.
fn is_reported(status: Option<&Value>, part: &str) -> bool {
    let conditions = status.map(|it| &it["status"]["conditions"]);
    let conditions = conditions.and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| {
        let message = it["message"].as_str().unwrap_or_default();
        it["status"] == "False" && message.contains(part)
    })
}

/// Nothing is made, and nothing but the status is written.
fn assert_waits(name: &str, pass: &Pass, part: &str) {
    let Pass {
        metadata,
        status,
        externals,
        further,
        next,
    } = pass;
    assert!(is_reported(status.as_ref(), part), "{name}: {status:?}");
    assert_eq!((metadata, externals), (&None, &None), "{name}");
    assert!(further.is_empty(), "{name}");
    assert!(matches!(next, Next::Rest(_)), "{name}: {next:?}");
}

/// The link is not released: nothing is known of what is in the cloud.
fn assert_not_removed(name: &str, removed: &Removed, part: &str) {
    let Removed::Failed(status, pause) = removed else {
        panic!("{name}: {removed:?}");
    };
    assert!(is_reported(status.as_ref(), part), "{name}: {status:?}");
    assert!(!pause.is_zero(), "{name}");
}

const REFUSALS: [(u16, &str, &str); 2] = [
    (404, "NotFound", "waiting for the kubeconfig"),
    (403, "Forbidden", "failed to get a token"),
];

#[tokio::test]
async fn missing_credentials_are_reported_on_aws() {
    let (hcp, live) = (
        on_aws(),
        on_aws_link(<aws::Provider as Provider>::FINALIZER),
    );
    for (code, reason, part) in REFUSALS {
        let scenario = no_kubeconfig(code, reason);
        let provider = aws::Provider::new(&scenario.client(), NAMESPACE);
        assert_waits(reason, &provider.ensure(&hcp, &live, &[]).await, part);
        assert_not_removed(reason, &provider.remove(&hcp, &live, &[]).await, part);
        scenario.finish();
    }
}

#[tokio::test]
async fn missing_credentials_are_reported_on_azure() {
    let (hcp, live) = (on_azure(|_| {}), read(&link(|_| {})));
    for (code, reason, part) in REFUSALS {
        let scenario = no_kubeconfig(code, reason);
        let provider = azure::Provider::new(&scenario.client(), NAMESPACE);
        assert_waits(reason, &provider.ensure(&hcp, &live, &[]).await, part);
        assert_not_removed(reason, &provider.remove(&hcp, &live, &[]).await, part);
        scenario.finish();
    }
}

#[tokio::test]
async fn missing_credentials_are_reported_on_google_cloud() {
    let (hcp, live) = (
        on_google(),
        on_google_link(<gcp::Provider as Provider>::FINALIZER),
    );
    for (code, reason, part) in REFUSALS {
        let scenario = no_kubeconfig(code, reason);
        let provider = gcp::Provider::new(&scenario.client(), NAMESPACE);
        assert_waits(reason, &provider.ensure(&hcp, &live, &[]).await, part);
        assert_not_removed(reason, &provider.remove(&hcp, &live, &[]).await, part);
        scenario.finish();
    }
}

/// A kubeconfig that is missing may be lost: only a link for which nothing was made is released. A refusal proves nothing.
#[tokio::test]
async fn a_lost_kubeconfig_leaves_no_endpoint_on_google_cloud() {
    let hcp = on_google();
    let made = on_google_link(<gcp::Provider as Provider>::FINALIZER);
    let with = |status: Value| {
        let mut link = made.clone();
        link.status = serde_json::from_value(status).unwrap();
        link
    };
    for (name, live, is_empty) in [
        ("a service attachment", made.clone(), false),
        (
            "an endpoint",
            with(json!({ "endpointIP": "10.1.0.4" })),
            false,
        ),
        ("nothing", with(json!({})), true),
        ("no status", with(Value::Null), true),
    ] {
        for (code, reason, part) in REFUSALS {
            let scenario = no_kubeconfig(code, reason);
            let provider = gcp::Provider::new(&scenario.client(), NAMESPACE);
            let removed = provider.remove(&hcp, &live, &[]).await;
            if is_empty && code == 404 {
                assert_eq!(removed, Removed::Done, "{name}");
            } else {
                assert_not_removed(name, &removed, part);
            }
            scenario.finish();
        }
    }
}

/// Without a load balancer of its Service, a link is not corrected: it gets its finalizer all the same.
#[tokio::test]
async fn a_link_has_its_finalizer_before_the_cloud_is_asked() {
    let scenario = Scenario::new([]);
    let client = scenario.client();
    let of_azure = read(&link(|it| it["metadata"]["finalizers"] = json!(["other"])));
    let aws = aws::Provider::new(&client, NAMESPACE);
    let azure = azure::Provider::new(&client, NAMESPACE);
    for (pass, finalizer) in [
        (
            aws.ensure(&on_aws(), &on_aws_link("other"), &[]).await,
            <aws::Provider as Provider>::FINALIZER,
        ),
        (
            azure.ensure(&on_azure(|_| {}), &of_azure, &[]).await,
            FINALIZER,
        ),
    ] {
        let change = json!({ "metadata": { "finalizers": ["other", finalizer] } });
        assert_eq!(pass.metadata, Some(change));
        assert_eq!((pass.status, pass.next), (None, Next::Continue));
    }
    scenario.finish();
    // Google Cloud's is added once there are credentials: nothing is made without them.
    let scenario = no_kubeconfig(404, "NotFound");
    let gcp = gcp::Provider::new(&scenario.client(), NAMESPACE);
    let (hcp, live) = (on_google(), on_google_link("other"));
    let pass = gcp.ensure(&hcp, &live, &[]).await;
    assert_waits("Google Cloud", &pass, "waiting for the kubeconfig");
}
