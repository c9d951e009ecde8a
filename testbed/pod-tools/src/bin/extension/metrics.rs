//! The API `metrics.k8s.io`: it asks the API server for figures of kubelets, as the metrics server asks kubelets.

mod client;
mod exposition;

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use pod_tools::serve::Response;
use serde_json::{Value, json};

use client::{get, text_of};
use exposition::{Sample, samples};

const VERSION: &str = "metrics.k8s.io/v1beta1";
/// How old figures are at most: kubelets make them every ten seconds.
const WINDOW: &str = "10s";

thread_local! {
    /// The last two samples of each counter, by node and labels.
    static COUNTERS: RefCell<BTreeMap<String, Counter>> = RefCell::default();
}

/// Answers a GET.
pub(crate) async fn respond(path: &str) -> Response {
    let answer = match path {
        "/apis/metrics.k8s.io/v1beta1" => Ok(resources()),
        "/apis/metrics.k8s.io/v1beta1/nodes" => nodes().await,
        "/apis/metrics.k8s.io/v1beta1/pods" => pods().await,
        _ => return Response::not_found(path),
    };
    match answer {
        Ok(answer) => Response::json(&answer),
        Err(error) => {
            eprintln!("error: {error}");
            Response::unavailable(error)
        }
    }
}

fn resources() -> Value {
    let resource = |name: &str, kind: &str, is_namespaced: bool| json!({ "name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["get", "list"] });
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": VERSION,
        "resources": [resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)],
    })
}

async fn nodes() -> Result<Value, String> {
    let mut items = Vec::new();
    for (name, samples) in figures().await? {
        let of_node = |sample: &&Sample| sample.name.starts_with("node_");
        items.push(json!({
            "metadata": { "name": name },
            "timestamp": timestamp(&samples),
            "window": WINDOW,
            "usage": usage(&name, samples.iter().filter(of_node)),
        }));
    }
    Ok(list("NodeMetricsList", &items))
}

async fn pods() -> Result<Value, String> {
    let mut items = Vec::new();
    for (node, samples) in figures().await? {
        let mut pods: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&Sample>>> = BTreeMap::new();
        for sample in &samples {
            if let [Some(namespace), Some(pod), Some(container)] =
                ["namespace", "pod", "container"].map(|label| sample.label(label))
                && !container.is_empty()
            {
                let containers = pods.entry((namespace, pod)).or_default();
                containers.entry(container).or_default().push(sample);
            }
        }
        items.extend(pods.into_iter().map(|((namespace, name), containers)| {
            let containers = containers.into_iter().map(|(name, samples)| {
                json!({ "name": name, "usage": usage(&node, samples.into_iter()) })
            });
            json!({
                "metadata": { "name": name, "namespace": namespace },
                "timestamp": timestamp(&samples),
                "window": WINDOW,
                "containers": containers.collect::<Vec<_>>(),
            })
        }));
    }
    Ok(list("PodMetricsList", &items))
}

/// The samples of each node's kubelet.
async fn figures() -> Result<Vec<(String, Vec<Sample>)>, String> {
    let nodes = get("/api/v1/nodes").await?;
    let mut all = Vec::new();
    for node in nodes["items"].as_array().into_iter().flatten() {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/api/v1/nodes/{name}/proxy/metrics/resource");
        all.push((name.to_owned(), samples(&text_of(&path).await?)));
    }
    Ok(all)
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({ "kind": kind, "apiVersion": VERSION, "metadata": {}, "items": items })
}

/// When the newest sample was taken.
fn timestamp(samples: &[Sample]) -> Value {
    let newest = samples.iter().map(|sample| sample.milliseconds).max();
    let newest = Timestamp::from_millisecond(newest.unwrap_or_default());
    json!(newest.map(|time| time.to_string()).ok())
}

/// Processors and memory in samples of one node, or of one container.
fn usage<'a>(node: &str, samples: impl Iterator<Item = &'a Sample>) -> Value {
    let (mut cores, mut memory) = (0.0, 0.0);
    for sample in samples {
        if sample.name.ends_with("_cpu_usage_seconds_total") {
            cores = rate(node, sample);
        } else if sample.name.ends_with("_memory_working_set_bytes") {
            memory = sample.value;
        }
    }
    json!({ "cpu": format!("{:.0}n", cores * 1e9), "memory": format!("{memory:.0}") })
}

/// A counter's last sample, and its rate before it.
#[derive(Debug, Clone, Copy)]
struct Counter {
    value: f64,
    milliseconds: i64,
    rate: f64,
}

/// The rate of a counter since the sample before this one, in units a second.
fn rate(node: &str, sample: &Sample) -> f64 {
    let key = format!("{node} {} {:?}", sample.name, sample.labels);
    COUNTERS.with_borrow_mut(|counters| {
        let before = counters.get(&key).copied();
        let now = Counter::after(before, sample);
        counters.insert(key, now);
        now.rate
    })
}

// === impl Counter ===

impl Counter {
    fn after(before: Option<Self>, sample: &Sample) -> Self {
        let (value, milliseconds) = (sample.value, sample.milliseconds);
        let rate = match before {
            None => 0.0,
            Some(before) if before.milliseconds == milliseconds => before.rate,
            Some(before) => {
                #[expect(clippy::cast_precision_loss, reason = "seconds between two samples")]
                let seconds = (milliseconds - before.milliseconds) as f64 / 1000.0;
                ((value - before.value) / seconds).max(0.0)
            }
        };
        Self {
            value,
            milliseconds,
            rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_between_two_samples() {
        let sample = |value: f64, milliseconds: i64| Sample {
            name: "node_cpu_usage_seconds_total".to_owned(),
            labels: BTreeMap::new(),
            value,
            milliseconds,
        };
        let first = Counter::after(None, &sample(10.0, 1000));
        let second = Counter::after(Some(first), &sample(11.0, 3000));
        let same = Counter::after(Some(second), &sample(11.0, 3000));
        let restarted = Counter::after(Some(same), &sample(0.0, 4000));
        let rates = [first, second, same, restarted].map(|counter| (counter.rate * 10.0).round());
        assert_eq!(rates.map(|rate| format!("{rate}")), ["0", "5", "5", "0"]);
    }

    #[test]
    fn usage_has_the_forms_of_quantities() {
        let sample = |name: &str, value| Sample {
            name: name.to_owned(),
            labels: BTreeMap::new(),
            value,
            milliseconds: 1,
        };
        let samples = [
            sample("container_memory_working_set_bytes", 4096.0),
            sample("container_cpu_usage_seconds_total", 3.0),
            sample("container_start_time_seconds", 9.0),
        ];
        let found = usage("a-node", samples.iter());
        assert_eq!(found, json!({ "cpu": "0n", "memory": "4096" }));
    }
}
