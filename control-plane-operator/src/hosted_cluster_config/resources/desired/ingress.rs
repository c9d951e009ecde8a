//! The default ingress controller and its certificate.

use api::annotations::cluster::{
    INGRESS_CONTROLLER_LOAD_BALANCER_SCOPE, PRIVATE_INGRESS_CONTROLLER,
};
use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Object, secret, with_spec};

const API: &str = "operator.openshift.io/v1";
/// Source of the certificate, in the control plane namespace.
const CERTIFICATE_SOURCE: &str = "ingress-crt";
const CERTIFICATE: &str = "default-ingress-cert";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if !input.has_capability("Ingress") {
        return;
    }
    let namespace = "openshift-ingress-operator";
    let spec = spec(input);
    let controller = with_spec(API, "IngressController", namespace, "default", spec);
    // After the creation it belongs to users.
    desired.add(Object::create(controller));
    let object = format!("Secret openshift-ingress/{CERTIFICATE}");
    let value = |key| input.secret_value(&object, CERTIFICATE_SOURCE, key);
    let pair = value("tls.crt").and_then(|certificate| Ok((certificate, value("tls.key")?)));
    desired.attempt(pair.map(|(certificate, key)| {
        let data = [
            ("tls.crt", certificate.as_slice()),
            ("tls.key", key.as_slice()),
        ];
        Object::enforce(secret("openshift-ingress", CERTIFICATE, &data))
    }));
}

fn spec(input: &Input<'_>) -> Value {
    let replicas = if input.has_redundant_infrastructure() {
        2
    } else {
        1
    };
    let mut spec = json!({
        "domain": input.ingress_domain(),
        "replicas": replicas,
        "endpointPublishingStrategy": strategy(input),
    });
    if input.is_on(&["IBMCloud"]) {
        spec["nodePlacement"] = json!({ "tolerations": [{ "key": "dedicated", "value": "edge" }] });
    } else {
        spec["defaultCertificate"] = json!({ "name": CERTIFICATE });
    }
    spec
}

fn strategy(input: &Input<'_>) -> Value {
    let given = "/operatorConfiguration/ingressOperator/endpointPublishingStrategy";
    if let Some(given) = input.spec(given) {
        return given.clone();
    }
    if input.annotation(PRIVATE_INGRESS_CONTROLLER.key()) == Some("true") {
        return json!({ "type": "Private" });
    }
    let balancer =
        |settings: Value| json!({ "type": "LoadBalancerService", "loadBalancer": settings });
    let scoped = || json!({ "scope": scope(input) });
    match input.platform() {
        "None" => json!({ "type": "HostNetwork" }),
        "KubeVirt" => json!({ "type": "NodePortService" }),
        "AWS" if aws_type(input) == "NLB" => {
            let parameters = json!({ "type": "AWS", "aws": { "type": "NLB" } });
            balancer(json!({ "scope": scope(input), "providerParameters": parameters }))
        }
        "AWS" => json!({ "type": "LoadBalancerService" }),
        "IBMCloud" if input.text("/platform/ibmcloud/providerType") == "UPI" => {
            json!({ "type": "NodePortService", "nodePort": { "protocol": "TCP" } })
        }
        "OpenStack" => {
            let address = input.text("/platform/openstack/ingressFloatingIP");
            let parameters = json!({ "type": "OpenStack", "openstack": { "floatingIP": address } });
            balancer(json!({ "scope": scope(input), "providerParameters": parameters }))
        }
        _ => balancer(scoped()),
    }
}

fn aws_type<'a>(input: &Input<'a>) -> &'a str {
    input.text("/configuration/ingress/loadBalancer/platform/aws/type")
}

fn scope(input: &Input<'_>) -> &'static str {
    let annotated = input.annotation(INGRESS_CONTROLLER_LOAD_BALANCER_SCOPE.key());
    let is_internal = annotated == Some("Internal")
        || match input.platform() {
            "AWS" => {
                !aws_type(input).is_empty()
                    && input.text("/platform/aws/endpointAccess") == "Private"
            }
            "Azure" => input.is_private() && !input.is_managed_azure(),
            _ => false,
        };
    if is_internal { "Internal" } else { "External" }
}
