//! The two sides: a server with standard types, reached directly, and one with private types, reached through the
//! proxy. Both have the same types under other names, the same users and the same rights.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes as Names, GroupTable};
use http::{HeaderMap, Request};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::operator::SOON;
use testbed::progress::Progress;
use testbed::raw::{RawClient, Response};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::{crds, fixtures, wait};

use crate::differential::protobuf;
use crate::differential::script::{Extent, Step, Values, fill};

/// How long one response may take, with all the events that are waited for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the OpenAPI documents have to be unchanged.
const UNCHANGED: Duration = Duration::from_secs(3);
/// Namespace of the users, which the testbed's own user is in.
const NAMESPACE: &str = "testbed";
/// Close to what all annotations of an object may hold, 256 KiB.
const LARGE: usize = 200 * 1024;
/// Marks the end of the initial events of a watch.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// One server with its users.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) names: Names,
    pub(crate) testbed: Testbed,
    /// What earlier responses said.
    pub(crate) values: Values,
    /// For programs.
    pub(crate) kubeconfig: PathBuf,
    /// Where clients reach it.
    pub(crate) server: String,
    user: RawClient,
    restricted: RawClient,
}

/// A whole response, or as much of it as was requested.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

// === impl Received ===

impl Received {
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).context("the response is not JSON")
    }
}

/// Waits until the API server has published the schemas of all CRDs. Until then, the URL of a schema changes, and its last
/// one redirects to the next.
async fn openapi_is_complete(admin: &ApiClient) -> Result<()> {
    wait::until("the OpenAPI documents to be complete", SOON, async || {
        let index = admin.get("/openapi/v3").await?;
        wait::throughout("unchanged OpenAPI documents", UNCHANGED, async || {
            ensure!(
                admin.get("/openapi/v3").await? == index,
                "they have changed"
            );
            Ok(())
        })
        .await
    })
    .await
}

// === impl Side ===

impl Side {
    /// Starts a server with the types of Cluster API under one of their names.
    pub(crate) async fn start(names: Names, progress: Progress) -> Result<Self> {
        let name = match names {
            Names::Standard => "differential-direct",
            Names::Private => "differential-proxied",
        };
        let mut testbed = Testbed::start(name, progress).await?;
        crds::install(&testbed.admin, &types(names).await?).await?;
        testbed.start_controller_manager().await?;
        openapi_is_complete(&testbed.admin).await?;
        let admin = testbed.admin.clone();
        let user = token(&admin, "user").await?;
        let restricted = token(&admin, "restricted").await?;
        grant(&admin, names).await?;
        let (client, kubeconfig) = match names {
            Names::Standard => direct(&testbed, &user)?,
            Names::Private => {
                let view = testbed.standard_view().await?;
                let server = view.server().trim_end_matches('/').to_owned();
                (
                    RawClient::new(&server, None)?,
                    testbed.standard_kubeconfig().await?,
                )
            }
        };
        Ok(Self {
            names,
            values: Values::from([("large".to_owned(), large())]),
            kubeconfig,
            server: client.server().to_owned(),
            restricted: client.with_token(&restricted)?,
            user: match names {
                Names::Standard => client.with_token(&user)?,
                // The proxy has the user's rights, and is the user.
                Names::Private => client,
            },
            testbed,
        })
    }

    /// Sends a step's request and reads as much of the response as it says.
    pub(crate) async fn ask(&self, step: &Step) -> Result<Received> {
        if step.compact {
            self.compact().await?;
        }
        let client = if step.restricted {
            &self.restricted
        } else {
            &self.user
        };
        let read = async {
            let response = client.send(self.request(step)?).await?;
            read(response, step.extent).await
        };
        tokio::time::timeout(RESPONSE_TIMEOUT, read)
            .await
            .with_context(|| format!("no complete response within {RESPONSE_TIMEOUT:?}"))?
    }

    fn request(&self, step: &Step) -> Result<Request<Vec<u8>>> {
        let mut request = Request::builder()
            .method(step.method.as_str())
            .uri(fill(&step.path, &self.values)?);
        let replaced = match self.names {
            Names::Standard => step.direct_headers.as_slice(),
            Names::Private => &[],
        };
        let is_replaced = |name: &str| {
            replaced
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let kept = step.headers.iter().filter(|(name, _)| !is_replaced(name));
        for (name, value) in kept.chain(replaced) {
            request = request.header(name, fill(value, &self.values)?);
        }
        let body = fill(&step.body, &self.values)?;
        let body = if step.protobuf {
            protobuf::encode(&body)?
        } else {
            body.into_bytes()
        };
        request.body(body).context("not a request")
    }

    /// Stores the values that a step saves from its response.
    pub(crate) fn save(&mut self, step: &Step, response: &Received) -> Result<()> {
        if step.saves.is_empty() {
            return Ok(());
        }
        // Of a stream, the last document.
        let document: Value = match step.extent {
            Extent::Whole => response.json()?,
            Extent::Events(_) | Extent::Initial => {
                let last = response
                    .body
                    .trim_ascii_end()
                    .rsplit(|&byte| byte == b'\n')
                    .next();
                serde_json::from_slice(last.unwrap_or_default())
                    .context("the last event is not JSON")?
            }
        };
        for (name, pointer) in &step.saves {
            let value = match pointer.strip_prefix("header:") {
                Some(header) => response
                    .headers
                    .get(header)
                    .and_then(|value| value.to_str().ok())
                    .map(str::to_owned),
                None => document
                    .pointer(pointer)
                    .map(|value| value.as_str().map_or(value.to_string(), str::to_owned)),
            };
            let value =
                value.with_context(|| format!("the response has no {pointer}: {document:.300}"))?;
            self.values.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Makes etcd forget all past revisions, so that old resource versions expire.
    async fn compact(&self) -> Result<()> {
        let etcd = RawClient::new(&self.testbed.control_plane.etcd.url(), None)?;
        let ask = async |path: &str, question: Value| {
            let request = Request::post(path).body(question.to_string().into_bytes())?;
            let response = etcd.send(request).await?;
            ensure!(response.status.is_success(), "{path}: {}", response.status);
            let body = response.bytes().await?;
            serde_json::from_slice::<Value>(&body).context("etcd's response is not JSON")
        };
        let status = ask("/v3/maintenance/status", json!({})).await?;
        let revision = &status["header"]["revision"];
        ask("/v3/kv/compaction", json!({ "revision": revision })).await?;
        Ok(())
    }
}

async fn read(response: Response, extent: Extent) -> Result<Received> {
    let (status, headers) = (response.status.as_u16(), response.headers.clone());
    let body = match extent {
        Extent::Events(count) if status == 200 => events(response, |read, _| read >= count).await?,
        Extent::Initial if status == 200 => {
            let is_end = |_, line: &[u8]| String::from_utf8_lossy(line).contains(INITIAL_END);
            events(response, is_end).await?
        }
        Extent::Whole | Extent::Events(_) | Extent::Initial => response.bytes().await?,
    };
    Ok(Received {
        status,
        headers,
        body,
    })
}

/// Reads events until `enough` (of their number and the last one) says so.
async fn events(response: Response, enough: impl Fn(usize, &[u8]) -> bool) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut lines = response.lines();
    let mut count = 0;
    if enough(0, &[]) {
        return Ok(body);
    }
    while let Some(line) = lines.next().await? {
        body.extend_from_slice(&line);
        count += 1;
        if enough(count, &line) {
            return Ok(body);
        }
    }
    // The server has ended the watch: after an ERROR it does.
    Ok(body)
}

/// A large text for an annotation: JSON within JSON that is full of names.
fn large() -> String {
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io" } },
    });
    let text = Value::from(object.to_string().repeat(LARGE / object.to_string().len())).to_string();
    text.trim_matches('"').to_owned()
}

/// Cluster API's types, all versions, under the desired names. Without short names, which private types do not have.
async fn types(names: Names) -> Result<Vec<Value>> {
    let table = GroupTable::default();
    let standard = crds::cluster_api(Names::Standard).await?;
    let mut private = crds::cluster_api(Names::Private).await?;
    for crd in &mut private {
        let swapped = swapped_name(&table, crd)?;
        let original = standard
            .iter()
            .find(|other| other["metadata"]["name"] == swapped);
        let original = original.with_context(|| format!("there is no standard CRD {swapped}"))?;
        crd["spec"]["versions"] = original["spec"]["versions"].clone();
        if let Some(spec) = crd["spec"].as_object_mut() {
            spec.remove("conversion");
        }
        if names == Names::Standard {
            crd["metadata"]["name"] = Value::from(swapped);
            crd["spec"]["group"] = original["spec"]["group"].clone();
        }
    }
    Ok(private)
}

fn swapped_name(table: &GroupTable, crd: &Value) -> Result<String> {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    let (plural, group) = name.split_once('.').context("a CRD's name has no group")?;
    let (pair, side) = table
        .find(group.as_bytes())
        .with_context(|| format!("{group} is not in the table"))?;
    Ok(format!("{plural}.{}", pair.name(side.other())))
}

/// Creates a service account and gives a token of it.
async fn token(admin: &ApiClient, name: &str) -> Result<String> {
    ensure_namespace(admin, NAMESPACE).await?;
    let path = Resource::new("v1", "serviceaccounts").named(NAMESPACE, name);
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "namespace": NAMESPACE, "name": name },
    });
    admin.patch(&path, Patch::Apply, &account).await?;
    let question = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": { "expirationSeconds": 3600 },
    });
    let response = admin.create(&format!("{path}/token"), &question).await?;
    let token = response["status"]["token"].as_str();
    token
        .map(str::to_owned)
        .with_context(|| format!("no token for {name}"))
}

/// Gives the user the same rights with both types, on groups of its own names.
async fn grant(admin: &ApiClient, names: Names) -> Result<()> {
    let mut objects = fixtures::load(&fixtures::directory().join("rbac/user.yaml"))?;
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": "differential" },
        "rules": [{
            "apiGroups": [
                "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
                "authorization.k8s.io", "autoscaling", "coordination.k8s.io", "flowcontrol.apiserver.k8s.io",
                "rbac.authorization.k8s.io",
            ],
            "resources": ["*"],
            "verbs": ["*"],
        }],
    }));
    for role in ["testbed-user", "differential"] {
        objects.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{NAMESPACE}-user-{role}") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "namespace": NAMESPACE, "name": "user" }],
        }));
    }
    if names == Names::Standard {
        let mut text = Value::from(objects).to_string();
        for pair in GroupTable::default().pairs() {
            let quoted = |side| format!("\"{}\"", pair.name(side));
            text = text.replace(&quoted(Names::Private), &quoted(Names::Standard));
        }
        objects = serde_json::from_str(&text)?;
    }
    admin.apply(&objects).await
}

fn direct(testbed: &Testbed, token: &str) -> Result<(RawClient, PathBuf)> {
    let endpoint = testbed.control_plane.endpoint();
    let file = testbed.path().join("user.token");
    std::fs::write(&file, token).with_context(|| format!("cannot write {}", file.display()))?;
    let kubeconfig = testbed.path().join("user.kubeconfig");
    write_kubeconfig(
        &kubeconfig,
        &endpoint.server,
        Some(&endpoint.authority),
        Credentials::TokenFile(&file),
    )?;
    let client = RawClient::new(&endpoint.server, Some(&endpoint.authority))?;
    Ok((client, kubeconfig))
}
