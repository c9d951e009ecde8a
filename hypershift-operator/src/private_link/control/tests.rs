//! Whose links are, and the order of requests and of calls of a cloud: with a fake cloud, and without a real one.

mod replaced;

use std::cell::RefCell;

use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};
use api::hypershift::v1beta1::HostedCluster;
use kube::runtime::watcher::Event;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use support::reconcile::{Report as _, Retry};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::cache::{NamespaceMeta, Writers};
use crate::cluster_ref::Id;
use crate::config::Config;
use crate::facts::fixture;
use crate::metrics::Metrics;
use crate::names;
use crate::private_link::{aws, azure, gcp};

const CONTROL_PLANE: &str = "clusters-one";
const ROUTER: &str = "private-router";
const NAMESPACE: &str = "/api/v1/namespaces/clusters-one";
const ONE: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";
const POOLS: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools";
const SUBNETS: &str = "/api/v1/namespaces/clusters-one/configmaps/karpenter-subnets";
const SERVICE: &str = "/api/v1/namespaces/clusters-one/services/private-router";
const INFRASTRUCTURE: &str = "/apis/config.openshift.io/v1/infrastructures/cluster";
const LINK: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/awsendpointservices/private-router";

/// A cloud with fixed answers.
struct Fake {
    scenario: Scenario,
    step: Step,
    /// Calls, each with the cluster and the number of requests before it.
    calls: RefCell<Vec<(&'static str, bool, usize)>>,
}

impl Fake {
    fn note(&self, call: &'static str, owner: &Owner) {
        let requests = self.scenario.seen().len();
        let exists = owner.cluster.is_some();
        self.calls.borrow_mut().push((call, exists, requests));
    }
}

impl Provider for Fake {
    fn kind(&self) -> &'static Kind {
        &aws::KIND
    }

    async fn ensure(&self, _: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        self.note("ensure", owner);
        Ok(self.step.clone())
    }

    async fn remove(&self, _: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        self.note("remove", owner);
        Ok(self.step.clone())
    }
}

/// An operator that knows no cloud.
fn context(scope: Scope, scenario: &Scenario) -> Arc<Context> {
    let mut config = Config::for_tests(scope);
    config.cloud.aws_region = None;
    config.cloud.azure_private_link = None;
    config.cloud.gcp_private_service_connect = None;
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    let ctx = Context::for_tests(&config, scenario.client(), releases, &metrics);
    ctx.cache.sync(&[]);
    Arc::new(ctx)
}

/// The watch has this Namespace.
fn watched(ctx: &Context, name: &str, owner: &str) -> Writers {
    let mut writers = ctx.cache.take_writers().unwrap();
    // The cache has Namespaces as if they were in themselves.
    let namespace = json!({ "metadata": {
        "namespace": name, "name": name, "annotations": { CLUSTER: owner },
    } });
    let namespace: NamespaceMeta = serde_json::from_value(namespace).unwrap();
    let event = Event::Apply(namespace);
    writers.clusters.namespaces.apply_watcher_event(&event);
    writers
}

fn link(edit: impl FnOnce(&mut Value)) -> DynamicObject {
    let mut link = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "AWSEndpointService",
        "metadata": {
            "namespace": CONTROL_PLANE, "name": ROUTER, "uid": "u", "resourceVersion": "7",
            "finalizers": ["a", aws::KIND.finalizer],
            "annotations": { CLUSTER: "clusters/one" },
        },
        "spec": { "networkLoadBalancerName": "one" },
    });
    edit(&mut link);
    serde_json::from_value(link).unwrap()
}

fn deleted(it: &mut Value) {
    it["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
}

fn cluster(annotations: &Value) -> Value {
    let mut cluster = json!(fixture::hosted_cluster("aws"));
    cluster["metadata"]["annotations"] = annotations.clone();
    cluster
}

fn private() -> Value {
    cluster(&json!({ PRIVATE_CAPI_TYPES: "true" }))
}

fn owned_by(owner: &str) -> Answer {
    Answer::ok(&json!({ "metadata": {
        "name": CONTROL_PLANE, "uid": "ns", "annotations": { CLUSTER: owner },
    } }))
}

/// What is read first.
fn reads() -> [Expect; 2] {
    [
        Expect::get(NAMESPACE).answer(owned_by("clusters/one")),
        Expect::get(ONE).answer(Answer::ok(&private())),
    ]
}

/// Reconciles a link, in a Namespace of this owner. Returns what the cloud was asked, too.
async fn reconcile(
    (scope, owner): (Scope, &str),
    scenario: &Scenario,
    link: &DynamicObject,
    step: Step,
) -> (Result<Action, Error>, Vec<(&'static str, bool, usize)>) {
    let ctx = context(scope, scenario);
    let _writers = watched(&ctx, CONTROL_PLANE, owner);
    let mut writer = Writer::new((aws::KIND.resource)());
    writer.apply_watcher_event(&Event::Apply(link.clone()));
    let controller = Controller {
        ctx: &ctx,
        kind: &aws::KIND,
        store: writer.as_reader(),
        provider: Fake {
            scenario: scenario.clone(),
            step,
            calls: RefCell::default(),
        },
    };
    let key = ObjectKey::of(&link.metadata);
    let result = controller.reconcile(&key).await;
    (result, controller.provider.calls.take())
}

const OWN: (Scope, &str) = (Scope::Private, "clusters/one");

/// Check T01: the author of a cluster chooses the program that writes its links, and may annotate them.
#[tokio::test]
async fn links_that_are_not_of_a_cluster_are_refused() {
    type Edit = fn(&mut Value);
    /// A name, who owns which cluster, a change of the link, and the requests.
    type Row = (&'static str, (Scope, &'static str), Edit, Vec<Expect>);
    let found = || Expect::get(NAMESPACE).answer(owned_by("clusters/one"));
    let of_other = || Expect::get(ONE).answer(Answer::ok(&cluster(&json!({ SCOPE: "legacy" }))));
    let same: Edit = |_| {};
    let table: [Row; 7] = [
        (
            "not watched yet",
            OWN,
            |it| it["metadata"]["namespace"] = json!("clusters-two"),
            vec![],
        ),
        (
            "a namespace that names a cluster whose control plane is elsewhere",
            (Scope::Private, "clusters/two"),
            same,
            vec![],
        ),
        (
            "a namespace that has another owner now",
            OWN,
            same,
            vec![Expect::get(NAMESPACE).answer(owned_by("clusters-x/one"))],
        ),
        (
            "a namespace that is gone",
            OWN,
            same,
            vec![Expect::get(NAMESPACE).answer(Answer::error(404, "NotFound"))],
        ),
        (
            "a link that names another cluster",
            OWN,
            |it| it["metadata"]["annotations"][CLUSTER] = json!("clusters-x/one"),
            vec![found()],
        ),
        (
            "a cluster of the other operator",
            OWN,
            same,
            vec![found(), of_other()],
        ),
        (
            "an operator that goes when no cluster needs it",
            (Scope::Legacy, "clusters/one"),
            same,
            vec![
                found(),
                Expect::get(ONE).answer(Answer::error(404, "NotFound")),
            ],
        ),
    ];
    for (name, of, edit, requests) in table {
        for is_deleted in [false, true] {
            let link = link(|it| {
                edit(it);
                if is_deleted {
                    deleted(it);
                }
            });
            let scenario = Scenario::new(requests.clone());
            let (result, calls) = reconcile(of, &scenario, &link, Step::Removed).await;
            assert_eq!(result.unwrap(), Action::requeue(RESYNC), "{name}");
            assert!(calls.is_empty(), "{name}: {calls:?}");
            scenario.finish();
        }
    }
}

#[tokio::test]
async fn steps_are_carried_out() {
    let ok = || Answer::ok(&json!(link(|_| {})));
    let change = json!({ "metadata": { "labels": { "a": "b" } } });
    let status = json!({ "status": { "endpointServiceName": "service" } });
    let again = Duration::from_secs(20);
    let read = json!({ "metadata": { "uid": "u", "resourceVersion": "7" } });
    let precondition = json!({ "preconditions": { "uid": "u" } });
    for (step, requests, expected) in [
        (Step::Ignore, vec![], Action::await_change()),
        (Step::Report(None, again), vec![], Action::requeue(again)),
        (
            Step::Delete,
            vec![Expect::delete(LINK).body(precondition).answer(ok())],
            Action::await_change(),
        ),
        (
            Step::Delete,
            vec![Expect::delete(LINK).answer(Answer::error(404, "NotFound"))],
            Action::await_change(),
        ),
        (
            Step::Change(change.clone()),
            vec![Expect::patch(LINK).body(change).answer(ok())],
            Action::requeue(POLL_INTERVAL),
        ),
        (
            Step::Report(Some(status), again),
            vec![
                Expect::patch(&format!("{LINK}/status"))
                    .body(read)
                    .answer(ok()),
            ],
            Action::requeue(again),
        ),
    ] {
        let scenario = Scenario::new(reads().into_iter().chain(requests));
        let link = link(|_| {});
        let (result, calls) = reconcile(OWN, &scenario, &link, step.clone()).await;
        assert_eq!(result.unwrap(), expected, "{step:?}");
        assert_eq!(calls, [("ensure", true, 2)], "{step:?}");
        scenario.finish();
    }
}

/// The finalizer is what the deletion of the control plane waits for. The cluster may be gone.
#[tokio::test]
async fn a_link_is_released_after_what_is_in_the_cloud() {
    let released = || {
        Expect::patch(LINK)
            .body(
                json!({ "metadata": { "uid": "u", "resourceVersion": "7", "finalizers": ["a"] } }),
            )
            .answer(Answer::ok(&json!(link(|_| {}))))
    };
    let waiting = Step::Report(None, POLL_INTERVAL);
    for (exists, step, requests, expected) in [
        (
            true,
            waiting.clone(),
            vec![],
            Action::requeue(POLL_INTERVAL),
        ),
        (
            true,
            Step::Removed,
            vec![released()],
            Action::await_change(),
        ),
        (false, waiting, vec![], Action::requeue(POLL_INTERVAL)),
        (
            false,
            Step::Removed,
            vec![released()],
            Action::await_change(),
        ),
    ] {
        let cluster = if exists {
            Answer::ok(&private())
        } else {
            Answer::error(404, "NotFound")
        };
        let first = [
            Expect::get(NAMESPACE).answer(owned_by("clusters/one")),
            Expect::get(ONE).answer(cluster),
        ];
        let scenario = Scenario::new(first.into_iter().chain(requests));
        let (result, calls) = reconcile(OWN, &scenario, &link(deleted), step).await;
        assert_eq!(result.unwrap(), expected);
        assert_eq!(calls, [("remove", exists, 2)]);
        scenario.finish();
    }
}

#[tokio::test]
async fn a_link_that_waits_for_another_controller_is_left_alone() {
    let scenario = Scenario::new(reads());
    let link = link(|it| {
        it["metadata"]["finalizers"] = json!(["a"]);
        deleted(it);
    });
    let (result, calls) = reconcile(OWN, &scenario, &link, Step::Removed).await;
    assert_eq!(result.unwrap(), Action::await_change());
    assert!(calls.is_empty(), "{calls:?}");
    scenario.finish();
}

/// What was decided about an older version is not written.
#[tokio::test]
async fn a_link_that_has_changed_is_read_again_at_once() {
    for step in [Step::Removed, Step::Change(json!({ "metadata": {} }))] {
        let conflict = Expect::patch(LINK).answer(Answer::error(409, "Conflict"));
        let scenario = Scenario::new(reads().into_iter().chain([conflict]));
        let is_deleted = step == Step::Removed;
        let link = link(|it| {
            if is_deleted {
                deleted(it);
            }
        });
        let (result, _) = reconcile(OWN, &scenario, &link, step).await;
        let error = result.unwrap_err();
        assert!(matches!(error.retry(), Retry::AtOnce), "{error}");
        assert!(
            error.to_string().contains("clusters-one/private-router"),
            "{error}"
        );
        scenario.finish();
    }
}

fn owner(platform: &str) -> Owner {
    let cluster: HostedCluster = fixture::hosted_cluster(platform);
    Owner {
        id: Id {
            namespace: "clusters".to_owned(),
            name: "one".to_owned(),
        },
        cluster: Some(cluster),
    }
}

/// A link of a kind, without the finalizer of this operator.
fn bare(kind: &Kind, spec: &Value) -> DynamicObject {
    let resource = (kind.resource)();
    serde_json::from_value(json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": { "namespace": CONTROL_PLANE, "name": ROUTER, "uid": "u", "finalizers": ["a"] },
        "spec": spec,
    }))
    .unwrap()
}

/// The same link as this operator has left it.
fn kept(kind: &Kind, spec: &Value) -> DynamicObject {
    let mut link = bare(kind, spec);
    link.metadata.finalizers = Some(vec![kind.finalizer.to_owned()]);
    link.metadata.annotations = Some([(CLUSTER.to_owned(), "clusters/one".to_owned())].into());
    link
}

fn of_aws() -> Value {
    json!({ "networkLoadBalancerName": "one" })
}

fn of_azure() -> Value {
    json!({
        "loadBalancerIP": "10.0.0.4", "subscriptionID": "s", "resourceGroupName": "g", "location": "eastus",
        "guestSubnetID": "/subnets/n", "guestVNetID": "/networks/n",
    })
}

fn of_google() -> Value {
    json!({ "loadBalancerIP": "10.0.0.4", "consumerAcceptList": ["guest-1"] })
}

/// A finalizer that is added to those of others, before the Service or the cloud is looked at.
fn assert_finalizer(step: &Step, kind: &Kind) {
    let Step::Change(change) = step else {
        panic!("{}: {step:?}", kind.name);
    };
    let expected = json!({
        "finalizers": ["a", kind.finalizer], "annotations": { CLUSTER: "clusters/one" },
    });
    assert_eq!(change["metadata"], expected, "{}", kind.name);
}

#[tokio::test]
async fn a_link_has_its_finalizer_before_anything_is_made() {
    let scenario = Scenario::new([
        Expect::get(POOLS).answer(Answer::list(&[])),
        Expect::get(SUBNETS).answer(Answer::error(404, "NotFound")),
    ]);
    let ctx = context(Scope::Private, &scenario);
    let step = azure::Provider::new(&ctx)
        .ensure(&bare(&azure::KIND, &of_azure()), &owner("azure"))
        .await;
    assert_finalizer(&step.unwrap(), &azure::KIND);
    let step = gcp::Provider::new(&ctx)
        .ensure(&bare(&gcp::KIND, &of_google()), &owner("gcp"))
        .await;
    assert_finalizer(&step.unwrap(), &gcp::KIND);
    assert_eq!(scenario.seen().len(), 0);
    let step = aws::Provider::new(&ctx)
        .ensure(&bare(&aws::KIND, &of_aws()), &owner("aws"))
        .await;
    assert_finalizer(&step.unwrap(), &aws::KIND);
    scenario.finish();
}

/// Links of a platform that is not the cluster's, and of other names.
#[tokio::test]
async fn links_that_no_service_has_are_ignored() {
    let scenario = Scenario::new([]);
    let ctx = context(Scope::Private, &scenario);
    let (aws, azure) = (aws::Provider::new(&ctx), azure::Provider::new(&ctx));
    let gcp = gcp::Provider::new(&ctx);
    let renamed = |link: &DynamicObject| {
        let mut link = link.clone();
        link.metadata.name = Some("other".to_owned());
        link
    };
    let of_aws = bare(&aws::KIND, &of_aws());
    let of_azure = bare(&azure::KIND, &of_azure());
    let of_google = bare(&gcp::KIND, &of_google());
    for step in [
        aws.ensure(&of_aws, &owner("azure")).await,
        azure.ensure(&of_azure, &owner("gcp")).await,
        gcp.ensure(&of_google, &owner("aws")).await,
        aws.ensure(&renamed(&of_aws), &owner("aws")).await,
        azure.ensure(&renamed(&of_azure), &owner("azure")).await,
        gcp.ensure(&renamed(&of_google), &owner("gcp")).await,
    ] {
        assert_eq!(step.unwrap(), Step::Ignore);
    }
    scenario.finish();
}

/// Check T01: NodePools of other clusters are in the same namespace, and so are ConfigMaps of users in the control plane's.
#[tokio::test]
async fn subnets_are_those_of_the_cluster() {
    let pool = |cluster: &str, subnet: &str, is_deleted: bool| {
        let mut pool = json!({
            "metadata": { "name": subnet },
            "spec": { "clusterName": cluster, "platform": { "aws": { "subnet": { "id": subnet } } } },
        });
        if is_deleted {
            deleted(&mut pool);
        }
        pool
    };
    let pools = [
        pool("one", "subnet-b", false),
        pool("one", "subnet-c", true),
        pool("two", "subnet-d", false),
    ];
    let label = |manager: &str| json!({ names::MANAGED_BY: manager });
    for (labels, expected) in [
        (
            label(names::KARPENTER_MANAGER),
            json!(["subnet-a", "subnet-b"]),
        ),
        (label("users"), json!(["subnet-b"])),
        (json!({}), json!(["subnet-b"])),
    ] {
        let map = json!({
            "metadata": { "name": names::KARPENTER_SUBNETS, "labels": labels },
            "data": { names::KARPENTER_SUBNETS_KEY: r#"["subnet-a"]"# },
        });
        let scenario = Scenario::new([
            Expect::get(POOLS).answer(Answer::list(&pools)),
            Expect::get(SUBNETS).answer(Answer::ok(&map)),
        ]);
        let ctx = context(Scope::Private, &scenario);
        let step = aws::Provider::new(&ctx)
            .ensure(&bare(&aws::KIND, &of_aws()), &owner("aws"))
            .await;
        let Step::Change(change) = step.unwrap() else {
            panic!("{expected}: it is changed");
        };
        assert_eq!(change["spec"]["subnetIDs"], expected);
        scenario.finish();
    }
}

/// A condition says what is missing, and the link keeps its finalizer: nothing is known of what is in the cloud.
fn assert_reported(step: &Step, kind: &Kind, part: &str) {
    let Step::Report(Some(change), again) = step else {
        panic!("{}: {step:?}", kind.name);
    };
    let conditions = change["status"]["conditions"].as_array().unwrap();
    let is_said = conditions.iter().any(|it| {
        let message = it["message"].as_str().unwrap_or_default();
        it["status"] == "False" && message.contains(part)
    });
    assert!(is_said, "{}: {change}", kind.name);
    assert!(!again.is_zero(), "{}", kind.name);
}

#[tokio::test]
async fn an_operator_without_a_cloud_reports_it() {
    let missing = |path: &str| Expect::get(path).answer(Answer::error(404, "NotFound"));
    let scenario = Scenario::new([
        Expect::get(POOLS).answer(Answer::list(&[])),
        missing(SUBNETS),
        missing(INFRASTRUCTURE),
        missing(SERVICE),
        missing(SERVICE),
    ]);
    let ctx = context(Scope::Private, &scenario);
    let (provider, part) = (aws::Provider::new(&ctx), "--aws-region");
    let (found, owner_of) = (kept(&aws::KIND, &of_aws()), owner("aws"));
    let step = provider.ensure(&found, &owner_of).await.unwrap();
    assert_reported(&step, &aws::KIND, part);
    let step = provider.remove(&found, &owner_of).await.unwrap();
    assert_reported(&step, &aws::KIND, part);
    scenario.finish();

    let scenario = Scenario::new([]).always([missing(SERVICE)]);
    let ctx = context(Scope::Private, &scenario);
    let (provider, part) = (azure::Provider::new(&ctx), "--azure-resource-group");
    let (found, owner_of) = (kept(&azure::KIND, &of_azure()), owner("azure"));
    let step = provider.ensure(&found, &owner_of).await.unwrap();
    assert_reported(&step, &azure::KIND, part);
    let step = provider.remove(&found, &owner_of).await.unwrap();
    assert_reported(&step, &azure::KIND, part);

    let (provider, part) = (gcp::Provider::new(&ctx), "--gcp-project");
    let (found, owner_of) = (kept(&gcp::KIND, &of_google()), owner("gcp"));
    let step = provider.ensure(&found, &owner_of).await.unwrap();
    assert_reported(&step, &gcp::KIND, part);
    let step = provider.remove(&found, &owner_of).await.unwrap();
    assert_reported(&step, &gcp::KIND, part);
    scenario.finish();
}

/// The control plane writes the specification: the address of another one's load balancer is not used.
#[tokio::test]
async fn the_address_of_another_load_balancer_is_refused() {
    let service = json!({
        "metadata": { "name": ROUTER, "uid": "01234567-89ab-cdef-0123-456789abcdef" },
        "status": { "loadBalancer": { "ingress": [{ "ip": "10.0.0.9" }] } },
    });
    let scenario = Scenario::new([]).always([Expect::get(SERVICE).answer(Answer::ok(&service))]);
    let ctx = context(Scope::Private, &scenario);
    let part = "is not the address of Service private-router, which is 10.0.0.9";
    let step = azure::Provider::new(&ctx)
        .ensure(&kept(&azure::KIND, &of_azure()), &owner("azure"))
        .await;
    assert_reported(&step.unwrap(), &azure::KIND, part);
    let step = gcp::Provider::new(&ctx)
        .ensure(&kept(&gcp::KIND, &of_google()), &owner("gcp"))
        .await;
    assert_reported(&step.unwrap(), &gcp::KIND, part);
    scenario.finish();
}
