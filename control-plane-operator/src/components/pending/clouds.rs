//! Cloud CSI drivers.

use api::hypershift::v1beta1::platform::PlatformType::{Aws, Azure};
use control_plane_component::certificate::Usage::Both;
use control_plane_component::certificate::{ROOT, leaf};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{Component, Context, Leaf};

use super::pending;

const EBS: &str = "aws-ebs-csi-driver";
const DISK: &str = "azure-disk-csi-driver";
const FILE: &str = "azure-file-csi-driver";

pub(super) fn components() -> [Component; 3] {
    [
        pending(EBS).with_certificates(|context| {
            if !context.is_on(Aws) {
                return Vec::new();
            }
            driver(context, EBS, "operator-metrics", "controller-metrics")
        }),
        pending(DISK).with_certificates(|context| azure(context, DISK)),
        pending(FILE).with_certificates(|context| azure(context, FILE)),
    ]
}

fn azure(context: &Context<'_>, driver_name: &str) -> Vec<Leaf> {
    if !context.is_on(Azure) {
        return Vec::new();
    }
    driver(context, driver_name, "operator", "controller")
}

/// Serving certificates for metrics of a driver's operator and controller.
fn driver(context: &Context<'_>, driver: &str, operator: &str, controller: &str) -> Vec<Leaf> {
    [("operator", operator), ("controller-metrics", controller)]
        .map(|(secret, service)| {
            let secret = format!("{driver}-{secret}-serving-cert");
            let name = format!("{driver}-{service}");
            leaf(&secret, ROOT, &name, "openshift", Both)
                .names(service_and_localhost(context, &name))
        })
        .into()
}
