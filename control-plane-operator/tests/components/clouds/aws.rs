//! AWS: cloud controllers, termination handler and credential operator.

use serde_json::{Value, json};

use super::*;

const CONFIG: &str = "ConfigMap/aws-cloud-config";
const FILE: &str = "/data/aws.conf";
const MODE: &str = "hypershift.openshift.io/aws-load-balancer-health-probe-mode";
const PATH: &str = "hypershift.openshift.io/shared-load-balancer-health-probe-path";
const PORT: &str = "hypershift.openshift.io/shared-load-balancer-health-probe-port";

fn network(settings: Value) -> Changes {
    vec![("/spec/platform/aws/cloudProviderConfig", settings)]
}

fn probe(mode: &str, path: &str, port: &str) -> Changes {
    let annotations = json!({ MODE: mode, PATH: path, PORT: port });
    vec![("/metadata/annotations", annotations)]
}

#[test]
pub(crate) fn config_names_the_network_of_the_cluster() {
    let infra_id = || vec![("/spec/infraID", json!("dev-x7k2p"))];
    verify(&[
        row(AWS, vec![], CONFIG, FILE, Has("[Global]")),
        row(AWS, vec![], CONFIG, FILE, Has("Zone = ")),
        row(AWS, vec![], CONFIG, FILE, Has("VPC = ")),
        row(AWS, vec![], CONFIG, FILE, Has("SubnetID = ")),
        row(
            AWS,
            network(json!({ "vpc": "vpc-1", "zone": "us-east-1a" })),
            CONFIG,
            FILE,
            Has("Zone = us-east-1a"),
        ),
        row(
            AWS,
            network(json!({ "vpc": "vpc-1" })),
            CONFIG,
            FILE,
            Has("VPC = vpc-1"),
        ),
        row(
            AWS,
            network(json!({ "vpc": "vpc-1", "subnet": { "id": "subnet-1" } })),
            CONFIG,
            FILE,
            Has("SubnetID = subnet-1"),
        ),
        row(
            AWS,
            infra_id(),
            CONFIG,
            FILE,
            Has("KubernetesClusterID = dev-x7k2p"),
        ),
        row(
            AWS,
            vec![],
            CONFIG,
            FILE,
            Has("NLBSecurityGroupMode = Managed"),
        ),
    ]);
}

#[test]
pub(crate) fn config_has_the_health_probe_of_the_annotations() {
    let shared = "ClusterServiceLoadBalancerHealthProbeMode = Shared";
    verify(&[
        row(AWS, vec![], CONFIG, FILE, Has(shared)),
        row(
            AWS,
            vec![],
            CONFIG,
            FILE,
            Lacks("ClusterServiceSharedLoadBalancer"),
        ),
        row(AWS, annotated(MODE, "Shared"), CONFIG, FILE, Has(shared)),
        row(
            AWS,
            annotated(MODE, "ServiceNodePort"),
            CONFIG,
            FILE,
            Has("ClusterServiceLoadBalancerHealthProbeMode = ServiceNodePort"),
        ),
        row(
            AWS,
            annotated(PATH, "/healthz"),
            CONFIG,
            FILE,
            Has("ClusterServiceSharedLoadBalancerHealthProbePath = /healthz"),
        ),
        row(
            AWS,
            annotated(PORT, "65535"),
            CONFIG,
            FILE,
            Has("ClusterServiceSharedLoadBalancerHealthProbePort = 65535"),
        ),
        row(
            AWS,
            probe("ServiceNodePort", "/healthz", "10256"),
            CONFIG,
            FILE,
            Lacks("ClusterServiceSharedLoadBalancer"),
        ),
    ]);
    for (changes, key) in [
        (annotated(MODE, "shared"), MODE),
        (annotated(PORT, "0"), PORT),
        (annotated(PORT, "65536"), PORT),
        (annotated(PORT, "http"), PORT),
    ] {
        let error = error(AWS, &changed(&changes));
        assert!(error.contains(key) && error.contains("write "), "{error}");
    }
}

#[test]
pub(crate) fn manager_uses_the_proxy_of_the_operator() {
    let https = "/containers/cloud-controller-manager/env/HTTPS_PROXY/value";
    let exempt = "/containers/cloud-controller-manager/env/NO_PROXY/value";
    let env = "/containers/cloud-controller-manager/env";
    verify(&[
        pod(AWS, vec![], env, Lacks("HTTP")),
        pod(AWS, vec![], env, Lacks("NO_PROXY")),
        pod(
            AWS,
            vec![],
            https,
            Is(json!("http://proxy.example.com:3128")),
        )
        .with(proxied),
        pod(AWS, vec![], exempt, Is(json!("10.0.0.0/8,kube-apiserver"))).with(proxied),
        pod(AWS, vec![], env, Lacks("HTTP_PROXY")).with(proxied),
        pod(AWS, vec![], env, Has("AWS_EC2_METADATA_DISABLED")).with(proxied),
    ]);
}

#[test]
pub(crate) fn manager_finds_its_credentials_twice() {
    let file = "/etc/kubernetes/secrets/cloud-provider/credentials";
    let variable = "/containers/cloud-controller-manager/env/AWS_SHARED_CREDENTIALS_FILE/value";
    let secret = || Is(json!("cloud-controller-creds"));
    let path = |text: &str| Is(json!(text));
    verify(&[
        pod(AWS, vec![], variable, path(file)),
        pod(
            AWS,
            vec![],
            "/volumes/cloud-creds/secret/secretName",
            secret(),
        ),
        pod(
            AWS,
            vec![],
            "/volumes/cloud-controller-creds/secret/secretName",
            secret(),
        ),
        pod(
            AWS,
            vec![],
            "/containers/cloud-controller-manager/volumeMounts/cloud-creds/mountPath",
            path("/etc/kubernetes/secrets/cloud-provider"),
        ),
        pod(
            AWS,
            vec![],
            "/containers/cloud-controller-manager/volumeMounts/cloud-controller-creds/mountPath",
            path("/etc/aws"),
        ),
    ]);
}

#[test]
pub(crate) fn termination_handler_gets_queue_region_and_role() {
    let creds = "Secret/aws-node-termination-handler-creds";
    let file = "/data/credentials";
    let arn = json!("arn:aws:iam::123456789012:role/spot");
    let role = vec![("/spec/platform/aws/rolesRef/nodePoolManagementARN", arn)];
    let region = vec![("/spec/platform/aws/region", json!("eu-west-1"))];
    let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dev";
    let queue = vec![("/spec/platform/aws/terminationHandlerQueueURL", json!(url))];
    let issuer = vec![("/spec/issuerURL", json!("https://issuer.example.com/dev"))];
    let selector = vec![("/spec/nodeSelector", json!({ "size": "large" }))];
    let region_path = "/containers/aws-node-termination-handler/env/AWS_REGION/value";
    let queue_path = "/containers/aws-node-termination-handler/env/QUEUE_URL/value";
    let host = "/containers/aws-node-termination-handler/env/KUBERNETES_SERVICE_HOST/value";
    let port = "/containers/aws-node-termination-handler/env/KUBERNETES_SERVICE_PORT/value";
    let minter = "/initContainers/token-minter-kube/args";
    verify(&[
        row(
            TERMINATION,
            role,
            creds,
            file,
            Has("role_arn = arn:aws:iam::123456789012:role/spot"),
        ),
        row(TERMINATION, vec![], creds, file, Has("[default]")),
        row(
            TERMINATION,
            vec![],
            creds,
            file,
            Has("sts_regional_endpoints = regional"),
        ),
        row(
            TERMINATION,
            vec![],
            creds,
            file,
            Has("web_identity_token_file = /var/run/secrets/openshift/serviceaccount/token"),
        ),
        row(TERMINATION, region.clone(), creds, file, Lacks("region")),
        pod(TERMINATION, region, region_path, Is(json!("eu-west-1"))),
        pod(TERMINATION, queue, queue_path, Is(json!(url))),
        pod(TERMINATION, vec![], host, Is(json!("kube-apiserver"))),
        pod(TERMINATION, vec![], port, Is(json!("6443"))),
        pod(
            TERMINATION,
            issuer,
            minter,
            Has("--token-audience=https://issuer.example.com/dev"),
        ),
        pod(
            TERMINATION,
            vec![],
            minter,
            Has("--service-account-namespace=openshift-cluster-version"),
        ),
        pod(
            TERMINATION,
            vec![],
            minter,
            Has("--service-account-name=default"),
        ),
        pod(
            TERMINATION,
            vec![],
            "/nodeSelector",
            Is(json!({ "kubernetes.io/os": "linux" })),
        ),
        pod(
            TERMINATION,
            selector,
            "/nodeSelector",
            Is(json!({ "size": "large" })),
        ),
    ]);
}

/// The program connects to the guest's API server like a pod of the guest.
#[test]
pub(crate) fn termination_handler_finds_token_and_authority_of_the_guest() {
    let directory = "/var/run/secrets/kubernetes.io/serviceaccount";
    let path = |text: &str| Is(json!(text));
    let handler = "/containers/aws-node-termination-handler/volumeMounts/token/mountPath";
    let minter = "/initContainers/token-minter-kube/volumeMounts/token/mountPath";
    let authority = "/containers/aws-node-termination-handler/volumeMounts/root-ca/mountPath";
    verify(&[
        pod(TERMINATION, vec![], handler, path(directory)),
        pod(TERMINATION, vec![], minter, path(directory)),
        pod(
            TERMINATION,
            vec![],
            authority,
            path(&format!("{directory}/ca.crt")),
        ),
        pod(
            TERMINATION,
            vec![],
            "/volumes/token/emptyDir/medium",
            path("Memory"),
        ),
        // It is started before the program, and keeps running.
        pod(
            TERMINATION,
            vec![],
            "/initContainers/token-minter-kube/restartPolicy",
            path("Always"),
        ),
    ]);
}

#[test]
fn termination_handler_is_scaled_down_without_spot_machines() {
    let key = "hypershift.openshift.io/disable-aws-node-termination-handler";
    for (changes, replicas) in [
        (vec![], 1),
        (annotated(key, "true"), 0),
        (annotated(key, ""), 0),
        (
            vec![(
                "/spec/controllerAvailabilityPolicy",
                json!("HighlyAvailable"),
            )],
            1,
        ),
    ] {
        let deployment = object(&changed(&changes), TERMINATION, "Deployment", TERMINATION);
        assert_eq!(deployment["spec"]["replicas"], replicas, "{changes:?}");
    }
}

#[test]
pub(crate) fn credential_operator_gets_version_proxy_and_kubeconfig() {
    let account = "cloud-credential-operator-service-account-kubeconfig";
    let env = "/containers/cloud-credential-operator/env";
    let version = "/containers/cloud-credential-operator/env/RELEASE_VERSION/value";
    let exempt = "/containers/cloud-credential-operator/env/NO_PROXY/value";
    let prober = "/initContainers/availability-prober/command";
    let mount =
        "/containers/cloud-credential-operator/volumeMounts/service-account-kubeconfig/mountPath";
    verify(&[
        pod(CREDENTIALS, vec![], version, Is(json!("4.18.0"))),
        pod(CREDENTIALS, vec![], version, Is(json!("4.20.1")))
            .with(|input| input.release.version = "4.20.1".to_owned()),
        pod(CREDENTIALS, vec![], env, Lacks("HTTPS_PROXY")),
        pod(CREDENTIALS, vec![], env, Has("HTTPS_PROXY")).with(proxied),
        pod(
            CREDENTIALS,
            vec![],
            exempt,
            Is(json!("10.0.0.0/8,kube-apiserver")),
        )
        .with(proxied),
        pod(
            CREDENTIALS,
            vec![],
            prober,
            Has("--wait-for-infrastructure-resource"),
        ),
        pod(
            CREDENTIALS,
            vec![],
            prober,
            Has("--required-api=operator.openshift.io,v1,CloudCredential"),
        ),
        pod(
            CREDENTIALS,
            vec![],
            prober,
            Has("--kubeconfig=/var/kubeconfig/kubeconfig"),
        ),
        pod(
            CREDENTIALS,
            vec![],
            prober,
            Has("https://kube-apiserver:6443/readyz"),
        ),
        pod(
            CREDENTIALS,
            on_platform("IBMCloud"),
            prober,
            Has("https://kube-apiserver:2040/readyz"),
        ),
        pod(CREDENTIALS, vec![], mount, Is(json!("/etc/kubernetes"))),
        pod(
            CREDENTIALS,
            vec![],
            "/volumes/service-account-kubeconfig/secret/secretName",
            Is(json!(account)),
        ),
        pod(
            CREDENTIALS,
            tls("Modern"),
            "/containers/cloud-credential-operator/args",
            Lacks("--tls"),
        ),
    ]);
}
