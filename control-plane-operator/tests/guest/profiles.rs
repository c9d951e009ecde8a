//! Input with default settings, for each platform that is compared.

use control_plane_component::{Objects, Release};
use control_plane_operator::hosted_cluster_config::resources::desired::{
    Desired, Error, Guest, Input, LEGACY, Object, STEPS, Settings, Write, plan,
};
use serde_json::{Value, json};

/// Input of the builders, owned.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) hcp: Value,
    pub(crate) release: Release,
    pub(crate) sources: Objects,
    pub(crate) guest: Guest,
    pub(crate) settings: Settings,
}

/// The platforms, as facts name them.
pub(crate) const PLATFORMS: [(&str, &str); 3] =
    [("aws", "AWS"), ("none", "None"), ("kubevirt", "KubeVirt")];

// === impl Profile ===

impl Profile {
    pub(crate) fn new(platform: &'static str) -> Self {
        Self {
            hcp: hosted_control_plane(platform),
            release: release(),
            sources: sources().into_iter().collect(),
            guest: Guest::default(),
            settings: Settings {
                konnectivity: ("konnectivity.example.com".to_owned(), 443),
                oauth: ("oauth.example.com".to_owned(), 443),
                initial_ca: "initial CA".to_owned(),
                signer_ca: "signer CA".to_owned(),
                own_image: "own".to_owned(),
                kubeadmin_hash: Some("hash".to_owned()),
                ..Settings::default()
            },
        }
    }

    /// Sets a value of the HostedControlPlane.
    #[must_use]
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        let mut place = &mut self.hcp;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/");
            place = match part.parse::<usize>() {
                Ok(index) if place.is_array() => &mut place[index],
                _ => &mut place[part],
            };
        }
        *place = value;
        self
    }

    /// Adds a live object.
    #[must_use]
    pub(crate) fn live(mut self, object: Value) -> Self {
        self.guest.insert(object);
        self
    }

    /// Adds an object of the control plane namespace.
    #[must_use]
    pub(crate) fn source(mut self, object: Value) -> Self {
        self.sources.insert(object);
        self
    }

    pub(crate) fn input(&self) -> Input<'_> {
        Input {
            hcp: &self.hcp,
            release: &self.release,
            sources: &self.sources,
            guest: &self.guest,
            settings: &self.settings,
            random: &[7; 96],
            now: "2030-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    /// The objects of earlier releases.
    pub(crate) fn legacy_objects(&self) -> Vec<Object> {
        LEGACY.build(&self.input()).objects
    }

    /// Builds all objects, with the number of their step.
    pub(crate) fn build(&self) -> (Vec<(u8, Object)>, Vec<Error>) {
        let input = self.input();
        let (mut objects, mut errors) = (Vec::new(), Vec::new());
        for step in STEPS {
            let Desired {
                objects: built,
                errors: failed,
            } = step.build(&input);
            objects.extend(built.into_iter().map(|object| (step.number, object)));
            errors.extend(failed);
        }
        (objects, errors)
    }
}

/// An object as it is after its creation, without server defaults.
pub(crate) fn created(object: &Object) -> Option<Value> {
    let mut created = None;
    for write in plan(object, None) {
        match write {
            Write::Create(value) => created = Some(value),
            Write::PatchStatus(patch) => {
                let created = created.as_mut()?;
                created["status"] = patch["status"].clone();
            }
            Write::Patch(_) | Write::Delete => {}
        }
    }
    created
}

fn hosted_control_plane(platform: &str) -> Value {
    let mut spec = json!({
        "releaseImage": "registry.example.com/release:4.20.0",
        "issuerURL": "https://issuer.example.com",
        "infraID": "infra",
        "clusterID": "id",
        "updateService": "https://updates.example.com",
        "channel": "stable-4.20",
        "dns": { "baseDomain": "example.com", "publicZoneID": "public", "privateZoneID": "private" },
        "networking": {
            "networkType": "OVNKubernetes",
            "clusterNetwork": [{ "cidr": "10.132.0.0/14" }],
            "serviceNetwork": [{ "cidr": "172.31.0.0/16" }],
            "machineNetwork": [{ "cidr": "10.0.0.0/16" }],
        },
        "platform": { "type": platform },
        "infrastructureAvailabilityPolicy": "SingleReplica",
        "olmCatalogPlacement": "management",
        "pullSecret": { "name": "pull-secret" },
    });
    if platform == "AWS" {
        spec["platform"]["aws"] = json!({
            "region": "region",
            "endpointAccess": "Public",
            "resourceTags": [
                { "key": "kubernetes.io/cluster/infra", "value": "owned" },
                { "key": "team", "value": "a" },
            ],
            "rolesRef": {
                "ingressARN": "ingress", "imageRegistryARN": "registry", "storageARN": "storage",
            },
        });
    }
    if platform == "KubeVirt" {
        spec["platform"]["kubevirt"] = json!({ "generateID": "generated" });
    }
    json!({
        "metadata": { "name": "hcp", "namespace": "hcp-namespace", "annotations": {} },
        "spec": spec,
        "status": { "controlPlaneEndpoint": { "host": "api.example.com", "port": 443 } },
    })
}

fn release() -> Release {
    let images = [
        "cli",
        "apiserver-network-proxy",
        "konnectivity-agent",
        "kubevirt-csi-driver",
        "csi-node-driver-registrar",
        "csi-livenessprobe",
        "azure-cloud-node-manager",
        "haproxy-router",
    ];
    Release {
        pull_spec: "registry.example.com/release:4.20.0".to_owned(),
        version: "4.20.0".to_owned(),
        component_versions: [("kubernetes".to_owned(), "1.33.0".to_owned())].into(),
        images: images.map(|name| (name.to_owned(), name.to_owned())).into(),
        ..Release::default()
    }
}

/// A Secret or ConfigMap of the control plane namespace.
pub(crate) fn source(kind: &str, name: &str, data: Value) -> Value {
    let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
    object["data"] = data;
    object
}

/// Base64 of a text.
pub(crate) fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn sources() -> Vec<Value> {
    let secret = |name: &str, keys: &[&str]| {
        let data = keys
            .iter()
            .map(|key| ((*key).to_owned(), json!(base64(&format!("{name} {key}")))));
        source("Secret", name, Value::Object(data.collect()))
    };
    let service = |name: &str, address: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "clusterIP": address },
        })
    };
    let config = json!({ ".dockerconfigjson": base64(r#"{"auths":{}}"#) });
    let mut pull_secret = source("Secret", "pull-secret", config);
    pull_secret["type"] = json!("kubernetes.io/dockerconfigjson");
    vec![
        pull_secret,
        secret("root-ca", &["ca.crt"]),
        secret("ingress-crt", &["tls.crt", "tls.key"]),
        secret("konnectivity-agent", &["tls.crt"]),
        secret("kubeadmin-password", &["password"]),
        source(
            "ConfigMap",
            "konnectivity-ca-bundle",
            json!({ "ca.crt": "konnectivity CA" }),
        ),
        source(
            "ConfigMap",
            "oauth-master-ca-bundle",
            json!({ "ca.crt": "OAuth CA" }),
        ),
        service("openshift-apiserver", "10.0.0.1"),
        service("openshift-oauth-apiserver", "10.0.0.2"),
        service("packageserver", "10.0.0.3"),
        server("openshift-apiserver", 1),
        server("openshift-oauth-apiserver", 1),
        server("packageserver", 1),
    ]
}

/// The Deployment of an API server.
pub(crate) fn server(name: &str, available: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "status": { "availableReplicas": available },
    })
}
