//! What the placeholders of facts stand for, with the input of `profiles.rs`.

use serde_json::{Value, json};

/// Returns the value for a platform. Null means that the field is not set.
pub(crate) fn resolve(text: &str, platform: &str) -> Value {
    let aws = |value: Value| {
        if platform == "AWS" {
            value
        } else {
            Value::Null
        }
    };
    let found = TABLE.iter().find(|(start, _)| text.starts_with(start));
    if let Some((_, value)) = found {
        return json!(value);
    }
    if text.starts_with("<spec.platform.type>") {
        return json!(platform);
    }
    if let Some(value) = objects(text, platform) {
        return value;
    }
    match AWS.iter().find(|(start, _)| text.starts_with(start)) {
        Some((_, value)) => aws(json!(value)),
        None if UNSET.iter().any(|start| text.starts_with(start)) => Value::Null,
        None => json!(text),
    }
}

/// Values that are no text.
fn objects(text: &str, platform: &str) -> Option<Value> {
    let is_kubevirt = platform == "KubeVirt";
    let value = match text {
        "<spec.networking.apiServer.port, else 6443>" => json!(6443),
        "<as given; 0 becomes 23 for IPv4, 64 for IPv6>" => json!(23),
        "<true; false on IBMCloud>" => json!(true),
        "<{} on AWS if unset>" if platform == "AWS" => json!({}),
        "<{} on AWS if unset>" => Value::Null,
        "<spec.platform.aws.resourceTags without keys that start with kubernetes.io>"
            if platform == "AWS" =>
        {
            json!([{ "key": "team", "value": "a" }])
        }
        "<aws: {region}; gcp: {projectID, region}; every other platform: none: {}>" => {
            if platform == "AWS" {
                json!({ "aws": { "region": "region" } })
            } else {
                json!({ "none": {} })
            }
        }
        "<at creation: 2 when spec.infrastructureAvailabilityPolicy is HighlyAvailable, else 1>"
        | "<2 when spec.infrastructureAvailabilityPolicy is HighlyAvailable, else 1>" => json!(1),
        "<at creation on KubeVirt and None: emptyDir {}>" if platform != "AWS" => {
            json!({ "emptyDir": {} })
        }
        "<data of ConfigMap konnectivity-ca-bundle>" => json!({ "ca.crt": "konnectivity CA" }),
        "<data of Secret konnectivity-agent>" => json!({ "tls.crt": "konnectivity-agent tls.crt" }),
        "<data of Secret pull-secret>" => {
            json!({ ".dockerconfigjson": r#"{"auths":{}}"# })
        }
        "<guest.md 3.4>" if is_kubevirt => {
            json!({ "v4InternalSubnet": "100.66.0.0/16", "genevePort": 9880 })
        }
        "<spec.configuration.image when given, whole; else left alone>"
        | "<spec.configuration.apiServer when given, whole; else left alone>"
        | "<spec.configuration.proxy; emptied once when it was given and no longer is; else the user's>" =>
        {
            json!({})
        }
        _ if text.starts_with("<placement management: disableAllDefaultSources") => json!({}),
        "<spec.imageContentSources[].source>" | "<spec.imageContentSources[].mirrors>" => {
            Value::Null
        }
        _ => return None,
    };
    Some(value)
}

/// Texts that are the same on all platforms.
const TABLE: [(&str, &str); 64] = [
    ("<spec.networking.apiServer.advertiseAddress", "172.20.0.1"),
    ("<IPv4 or IPv6", "IPv4"),
    ("<ingresses: when", "ingresses"),
    ("<operatorhubs: when", "operatorhubs"),
    ("<release version at first write", "4.20.0"),
    ("<spec.clusterID>", "id"),
    ("<spec.updateService>", "https://updates.example.com"),
    ("<spec.channel>", "stable-4.20"),
    ("<env OPENSHIFT_RELEASE_VERSION>", "4.20.0"),
    ("<env KUBERNETES_VERSION>", "1.33.0"),
    (
        "https://<status.controlPlaneEndpoint",
        "https://api.example.com:443",
    ),
    ("<base domain", "hcp.example.com"),
    ("<spec.infraID>", "infra"),
    ("<spec.infrastructureAvailabilityPolicy", "SingleReplica"),
    ("<spec.dns.publicZoneID", "public"),
    ("<spec.dns.privateZoneID", "private"),
    ("<when empty: ingress domain>", "apps.hcp.example.com"),
    ("<ingress domain>", "apps.hcp.example.com"),
    ("<spec.networking.clusterNetwork", "10.132.0.0/14"),
    ("<spec.networking.networkType>", "OVNKubernetes"),
    ("<spec.networking.serviceNetwork", "172.31.0.0/16"),
    ("<spec.networking.machineNetwork", "10.0.0.0/16"),
    ("<Managed when empty>", "Managed"),
    ("<spec.issuerURL>", "https://issuer.example.com"),
    (
        "<when empty: 64 random bytes",
        "07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707",
    ),
    ("<content of --cluster-signer-ca-file", "signer CA"),
    ("<content of --initial-ca-file>", "aW5pdGlhbCBDQQ=="),
    ("<spec.releaseImage>", "registry.example.com/release:4.20.0"),
    ("<Default; IBMCloud UPI", "Default"),
    (
        "<annotation hypershift.openshift.io/konnectivity-agent-image",
        "apiserver-network-proxy",
    ),
    ("<--konnectivity-address>", "konnectivity.example.com"),
    ("<--konnectivity-port>", "443"),
    ("<127.0.0.1 with host network", "127.0.0.1"),
    ("<guest Proxy status.httpProxy>", ""),
    ("<status.httpsProxy>", ""),
    ("<status.noProxy>", ""),
    ("<payload cli>", "cli"),
    ("<Secret root-ca, key ca.crt>", "cm9vdC1jYSBjYS5jcnQ="),
    ("<clusterIP of Service openshift-apiserver", "10.0.0.1"),
    (
        "<clusterIP of Service openshift-oauth-apiserver",
        "10.0.0.2",
    ),
    ("<clusterIP of Service packageserver", "10.0.0.3"),
    ("<bcrypt of key password", "hash"),
    (
        "<type of Secret pull-secret>",
        "kubernetes.io/dockerconfigjson",
    ),
    ("<ConfigMap oauth-master-ca-bundle", "OAuth CA"),
    (
        "https://<--oauth-address>:<--oauth-port>/oauth/token/display",
        "https://oauth.example.com:443/oauth/token/display",
    ),
    (
        "https://<--oauth-address>:<--oauth-port>/oauth/token/implicit",
        "https://oauth.example.com:443/oauth/token/implicit",
    ),
    (
        "<when empty: 32 random characters",
        "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
    ),
    ("<spec.platform.aws.rolesRef.storageARN>", "storage"),
    ("<spec.platform.aws.rolesRef.ingressARN>", "ingress"),
    ("<spec.platform.aws.rolesRef.imageRegistryARN>", "registry"),
    (
        "<placement management: certified-operators",
        "certified-operators:50051",
    ),
    (
        "<placement management: community-operators",
        "community-operators:50051",
    ),
    (
        "<placement management: redhat-operators",
        "redhat-operators:50051",
    ),
    ("<payload kubevirt-csi-driver>", "kubevirt-csi-driver"),
    (
        "<payload csi-node-driver-registrar>",
        "csi-node-driver-registrar",
    ),
    ("<payload csi-livenessprobe>", "csi-livenessprobe"),
    (
        "<env KUBE_NODE_NAME = spec.nodeName>",
        "env KUBE_NODE_NAME spec.nodeName",
    ),
    ("<env ADDRESS=", "env ADDRESS /csi/csi.sock"),
    (
        "<env DRIVER_REG_SOCK_PATH=",
        "env DRIVER_REG_SOCK_PATH /var/lib/kubelet/plugins/csi.kubevirt.io/csi.sock",
    ),
    (
        "<Secret pull-secret of the control plane",
        r#"{"auths":{}}"#,
    ),
    // FNV-1a of the bytes as decimal list.
    ("<FNV-1a 32 of the secret in use>", "217e580d"),
    ("<env HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE>", "own"),
    ("<script>", "<script>"),
    ("<Secret ingress-crt>", "ingress-crt"),
];

/// Texts that are only set on AWS.
const AWS: [(&str, &str); 1] = [("<spec.platform.aws.region>", "region")];

/// What is not set with default settings.
const UNSET: [&str; 31] = [
    "<{} on OpenStack>",
    "<Azure: name cloud.conf",
    "<spec.platform.aws.resourceTags",
    "<spec.platform.azure",
    "<spec.platform.gcp",
    "<AWS with sharedVPC",
    "<spec.configuration.ingress",
    "<spec.configuration.network",
    "<copy of spec",
    "<likewise>",
    "<true when spec.configuration.proxy is given>",
    "<spec.configuration.authentication",
    "<at creation on KubeVirt",
    "<HCP annotation if present>",
    "<RFC 3339 UTC seconds",
    "<true when spec.operatorConfiguration",
    "<guest.md 3.4>",
    "<KubeVirt with OpenShiftSDN",
    "<placement guest",
    "<spec.operatorConfiguration.ingressOperator",
    "<annotation hypershift.openshift.io/private-ingress",
    "<only when",
    "<UPI",
    "<scope>",
    "<spec.platform.openstack",
    "<IBMCloud: toleration",
    "<says that",
    "<platform neither",
    "<spec.dns",
    "<the user",
    "<none>",
];
