//! The proxy's container.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, ContainerPort, HTTPGetAction, Probe, ResourceRequirements,
        SeccompProfile, SecurityContext,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};

use super::{ADMIN_PORT, LISTEN, NAME};

/// The port of [`LISTEN`].
pub(super) const LISTEN_PORT: i32 = 8080;
/// Name of the admin port.
const ADMIN_PORT_NAME: &str = "proxy-admin";

/// The container of a native sidecar.
pub(super) fn proxy(image: &str) -> Container {
    Container {
        name: NAME.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        restart_policy: Some("Always".to_owned()),
        args: Some(vec![
            "serve".to_owned(),
            format!("--listen={LISTEN}"),
            // The kubelet and Prometheus connect to the pod IP, of either family.
            format!("--admin-listen=[::]:{ADMIN_PORT}"),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some(ADMIN_PORT_NAME.to_owned()),
            container_port: ADMIN_PORT,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        // The startup probe checks liveness only: controllers can wait for an API server themselves.
        startup_probe: Some(probe("/healthz", 1, 30)),
        liveness_probe: Some(probe("/healthz", 10, 3)),
        readiness_probe: Some(probe("/readyz", 5, 3)),
        resources: Some(requests()),
        security_context: Some(security_context()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

fn probe(path: &str, period_seconds: i32, failure_threshold: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(ADMIN_PORT_NAME.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        failure_threshold: Some(failure_threshold),
        ..Probe::default()
    }
}

/// No limits: a throttled or killed proxy would break every controller in the pod.
fn requests() -> ResourceRequirements {
    let quantity = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    ResourceRequirements {
        requests: Some(BTreeMap::from([
            quantity("cpu", "10m"),
            quantity("memory", "16Mi"),
        ])),
        ..ResourceRequirements::default()
    }
}

/// The `restricted` Pod Security Standard, and a read-only root file system.
fn security_context() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Capabilities::default()
        }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        }),
        ..SecurityContext::default()
    }
}
