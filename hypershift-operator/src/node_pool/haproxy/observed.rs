//! What the MachineConfig makes of a node, rendered by any operator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::proxied::PROGRAM;
use super::{CONFIG, MANIFEST};
use crate::node_pool::manifest;

/// How pods on a node reach the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    /// The image of the load balancer, by its digest if it has one: the same one may come from a mirror. `None` for the
    /// program of the control-plane-operator, which forwards in the same way in every version of it: an upgrade of that
    /// operator must not replace nodes.
    image: Option<String>,
    /// Where the program listens, and where it leads to.
    from: Address,
    to: Address,
    /// The HTTP proxy in between.
    through: Option<Address>,
    /// What the program asks the API server for, to know whether it is healthy.
    health: Option<String>,
    /// What it says about a connection first.
    header: String,
}

/// Host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address(String, String);

/// Whether two MachineConfigs, by their specifications, lead to the same place by the same program.
pub(crate) fn is_same(found: &Value, desired: &Value) -> bool {
    match (Path::read(found), Path::read(desired)) {
        (Some(found), Some(desired)) => found == desired,
        (None, _) | (_, None) => false,
    }
}

// === impl Path ===

impl Path {
    fn read(spec: &Value) -> Option<Self> {
        let documents = manifest::documents(&file(spec, MANIFEST)?).ok()?;
        let [(_, pod)] = &*documents else {
            return None;
        };
        let [container] = &**pod.pointer("/spec/containers")?.as_array()? else {
            return None;
        };
        let image = identity(container["image"].as_str()?).to_owned();
        match file(spec, &format!("{CONFIG}/haproxy.cfg")) {
            Some(config) => Self::of_haproxy(image, &config),
            None => Self::of_program(container),
        }
    }

    fn of_haproxy(image: String, config: &str) -> Option<Self> {
        let lines = config.lines().map(|it| it.split_whitespace());
        let lines: Vec<Vec<_>> = lines.map(Iterator::collect).collect();
        let server = lines.iter().find(|it| it.first() == Some(&"server"))?;
        let bind = lines.iter().find(|it| it.first() == Some(&"bind"))?;
        let check = lines
            .iter()
            .find(|it| it.starts_with(&["option", "httpchk"]));
        let path = check.and_then(|it| it.last());
        let header = server.iter().skip_while(|it| !it.starts_with("send-proxy"));
        Some(Self {
            image: Some(image),
            from: Address::read(bind.get(1)?)?,
            to: Address::read(server.get(2)?)?,
            through: None,
            // Some operators write it as if it were in a web page.
            health: path.map(|it| it.replace("&amp;", "&")),
            header: header.copied().collect::<Vec<_>>().join(" "),
        })
    }

    fn of_program(container: &Value) -> Option<Self> {
        let words = ["command", "args"].map(|part| container[part].as_array());
        let words = words.into_iter().flatten().flatten();
        let words: Vec<_> = words.filter_map(Value::as_str).collect();
        if !words.contains(&PROGRAM) {
            return None;
        }
        let flag = |name: &str| {
            let mut rest = words.iter().skip_while(|it| !it.starts_with(name));
            match rest.next()?.strip_prefix(name)?.strip_prefix('=') {
                Some(value) => Address::read(value),
                None => Address::read(rest.next()?),
            }
        };
        Some(Self {
            image: None,
            from: flag("--listen-addr")?,
            to: flag("--apiserver-addr")?,
            through: Some(flag("--proxy-addr")?),
            health: None,
            header: String::new(),
        })
    }
}

// === impl Address ===

impl Address {
    fn read(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some(Self(host.to_owned(), port.to_owned()))
    }
}

/// What identifies an image wherever it comes from.
fn identity(image: &str) -> &str {
    image.split_once('@').map_or(image, |(_, digest)| digest)
}

/// The content of a file of a MachineConfig.
fn file(spec: &Value, path: &str) -> Option<String> {
    let files = spec.pointer("/config/storage/files")?.as_array()?;
    let file = files.iter().find(|it| it["path"] == path)?;
    let source = file.pointer("/contents/source")?.as_str()?;
    let (kind, content) = source.strip_prefix("data:")?.split_once(',')?;
    if !kind.ends_with(";base64") {
        return None;
    }
    String::from_utf8(BASE64.decode(content).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_pool::haproxy;

    const IMAGE: &str = "registry.example.com/haproxy@sha256:a";

    /// As another operator renders it.
    fn other(image: &str, config: &str) -> Value {
        let pod = format!(
            "apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels:
    k8s-app: kube-apiserver-proxy
  name: kube-apiserver-proxy
  namespace: kube-system
spec:
  containers:
  - command:
    - haproxy
    - -f
    - /usr/local/etc/haproxy
    image: {image}
    name: haproxy
  hostNetwork: true
status: {{}}
"
        );
        json!({ "config": { "ignition": { "version": "3.2.0" }, "storage": { "files": [
            haproxy::file("/usr/local/bin/setup-apiserver-ip.sh", "#!/usr/bin/env bash\n"),
            haproxy::file(&format!("{CONFIG}/haproxy.cfg"), config),
            haproxy::file(MANIFEST, &pod),
        ] } } })
    }

    fn config(bind: &str, path: &str, server: &str) -> String {
        format!(
            "frontend local_apiserver\n  bind {bind}\n  default_backend remote_apiserver\n\nbackend remote_apiserver\n  \
             option httpchk GET {path}\n  server controlplane {server}\n"
        )
    }

    #[test]
    fn paths_are_compared_wherever_the_image_comes_from() {
        let same = config("172.20.0.1:6443", "/version", "api.example.com:443");
        let desired = other(IMAGE, &same);
        for (name, found, expected) in [
            ("the same", other(IMAGE, &same), true),
            (
                "a mirror",
                other("mirror.example.com/a/haproxy@sha256:a", &same),
                true,
            ),
            (
                "other words",
                other(IMAGE, &same.replace("local_apiserver", "local")),
                true,
            ),
            (
                "another image",
                other("registry.example.com/haproxy@sha256:b", &same),
                false,
            ),
            (
                "another address",
                other(
                    IMAGE,
                    &config("172.20.0.2:6443", "/version", "api.example.com:443"),
                ),
                false,
            ),
            (
                "another target",
                other(
                    IMAGE,
                    &config("172.20.0.1:6443", "/version", "192.0.2.1:443"),
                ),
                false,
            ),
            (
                "another check",
                other(
                    IMAGE,
                    &config("172.20.0.1:6443", "/livez", "api.example.com:443"),
                ),
                false,
            ),
            (
                "a header",
                other(
                    IMAGE,
                    &config(
                        "172.20.0.1:6443",
                        "/version",
                        "api.example.com:443 send-proxy-v2",
                    ),
                ),
                false,
            ),
            ("no target", other(IMAGE, "bind 172.20.0.1:6443"), false),
            ("nothing", json!({}), false),
        ] {
            assert_eq!(is_same(&found, &desired), expected, "{name}");
        }
    }

    #[test]
    fn addresses_and_checks_are_the_same_in_every_form() {
        let read = |bind: &str, path: &str| Path::read(&other(IMAGE, &config(bind, path, "a:1")));
        let plain = read("[fd00::1]:6443", "/livez?exclude=etcd&exclude=log");
        assert!(plain.is_some());
        assert_eq!(
            plain,
            read("fd00::1:6443", "/livez?exclude=etcd&amp;exclude=log")
        );
    }

    #[test]
    fn the_way_through_a_proxy_is_read() {
        let pod_of = |image: &str, arguments: &Value| {
            let container = json!({ "name": "proxy", "image": image, "command": arguments });
            let pod =
                json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [container] } });
            let file = haproxy::file(MANIFEST, &pod.to_string());
            Path::read(&json!({ "config": { "storage": { "files": [file] } } }))
        };
        let pod = |arguments: &Value| pod_of(IMAGE, arguments);
        let arguments = |proxy: &str| {
            json!([
                "control-plane-operator",
                PROGRAM,
                "--listen-addr=172.20.0.1:6443",
                format!("--proxy-addr={proxy}"),
                "--apiserver-addr=api.example.com:443",
            ])
        };
        let joined = pod(&arguments("proxy.example.com:3128"));
        assert_ne!(joined, pod(&arguments("proxy.example.com:3129")));
        let other = "registry.example.com/operator@sha256:b";
        assert_eq!(joined, pod_of(other, &arguments("proxy.example.com:3128")));
        let apart = pod(&json!([
            "control-plane-operator",
            PROGRAM,
            "--listen-addr",
            "172.20.0.1:6443",
            "--proxy-addr",
            "proxy.example.com:3128",
            "--apiserver-addr",
            "api.example.com:443",
        ]));
        assert!(joined.is_some());
        assert_eq!(joined, apart);
        assert_eq!(
            pod(&json!(["other", "--listen-addr=172.20.0.1:6443"])),
            None
        );
    }
}
