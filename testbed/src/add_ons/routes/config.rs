//! The router's configuration, as Routes have it. Pure.

use std::fmt::Write;
use std::net::Ipv4Addr;

use serde_json::Value;

/// Where the name of a Route leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    host: String,
    /// Whether TLS ends at the target, and not at the router.
    passthrough: bool,
    address: String,
    port: i64,
}

/// The target of a Route, if its Service is there.
pub(super) fn target(route: &Value, host: &str, services: &[Value]) -> Option<Target> {
    let spec = &route["spec"];
    let service = services.iter().find(|service| {
        service["metadata"]["namespace"] == route["metadata"]["namespace"]
            && service["metadata"]["name"] == spec["to"]["name"]
    })?;
    let address = service["spec"]["clusterIP"].as_str()?;
    let ports = service["spec"]["ports"].as_array()?;
    let desired = &spec["port"]["targetPort"];
    let chosen = ports
        .iter()
        .find(|port| [&port["name"], &port["port"], &port["targetPort"]].contains(&desired));
    let port = chosen.or_else(|| ports.first())?["port"].as_i64()?;
    Some(Target {
        host: host.to_owned(),
        passthrough: spec["tls"]["termination"] == "passthrough",
        address: address.to_owned(),
        port,
    })
}

/// haproxy's configuration.
pub(super) fn text(own: Ipv4Addr, targets: &[Target]) -> String {
    let mut text = format!(
        "global\n  maxconn 2000\ndefaults\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
         frontend tls\n  bind {own}:443\n  mode tcp\n  tcp-request inspect-delay 5s\n  \
         tcp-request content accept if {{ req_ssl_hello_type 1 }}\n"
    );
    rules(&mut text, "req_ssl_sni", targets, true);
    let _ = write!(text, "frontend plain\n  bind {own}:80\n  mode http\n");
    rules(&mut text, "hdr(host)", targets, false);
    for (number, target) in targets.iter().enumerate() {
        let mode = if target.passthrough { "tcp" } else { "http" };
        let (address, port) = (&target.address, target.port);
        let _ = write!(
            text,
            "backend route{number}\n  mode {mode}\n  server service {address}:{port}\n"
        );
    }
    text
}

fn rules(text: &mut String, name: &str, targets: &[Target], passthrough: bool) {
    for (number, target) in targets.iter().enumerate() {
        if target.passthrough == passthrough {
            let host = &target.host;
            let _ = writeln!(
                text,
                "  use_backend route{number} if {{ {name} -i {host} }}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service() -> Value {
        json!({
            "metadata": { "namespace": "n", "name": "s" },
            "spec": { "clusterIP": "192.0.2.1", "ports": [
                { "name": "metrics", "port": 9000, "targetPort": 9000 },
                { "name": "https", "port": 443, "targetPort": "client" },
            ] },
        })
    }

    fn route(port: &Value) -> Value {
        json!({
            "metadata": { "namespace": "n", "name": "r" },
            "spec": { "to": { "name": "s" }, "port": { "targetPort": port }, "tls": { "termination": "passthrough" } },
        })
    }

    #[test]
    fn a_route_uses_its_target_port() {
        for (desired, port) in [
            (json!("https"), 443),
            (json!("client"), 443),
            (json!(9000), 9000),
            (json!(null), 9000),
        ] {
            let found = target(&route(&desired), "h.test", &[service()]).unwrap();
            assert_eq!(found.port, port, "{desired}");
        }
        assert_eq!(target(&route(&json!(1)), "h.test", &[]), None);
    }

    #[test]
    fn passthrough_is_distinguished_by_the_name_in_tls() {
        let found = target(&route(&json!("https")), "h.test", &[service()]).unwrap();
        let text = text(Ipv4Addr::new(192, 0, 2, 60), &[found]);
        for line in [
            "  bind 192.0.2.60:443\n",
            "  use_backend route0 if { req_ssl_sni -i h.test }\n",
            "backend route0\n  mode tcp\n  server service 192.0.2.1:443\n",
        ] {
            assert!(text.contains(line), "no {line:?} in {text}");
        }
    }
}
