//! Derivation of the CRDs of the pinned Go modules, which the `go` command fetches if its cache has none.

use std::collections::BTreeMap;

use api::group::{CapiTypes, GroupTable};
use cli::crds::{
    Derivation, Document, Versions,
    output::{self, Format},
    parse,
    source::module::{self, Module},
};
use serde_json::{Value, json};

/// Fields of a standard CRD that its private CRD has not, by JSON pointer.
const DROPPED: [&str; 5] = [
    "/spec/names/shortNames",
    "/spec/names/categories",
    "/spec/conversion",
    "/metadata/labels",
    "/metadata/annotations/cert-manager.io~1inject-ca-from",
];

fn storage_only() -> Derivation {
    let mut derivation = Derivation::new(GroupTable::default());
    derivation.versions = Some(Versions::Storage);
    derivation
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"]
        .as_str()
        .expect("objects have names")
}

/// Standard CRDs by the name of their private CRD.
fn standard(documents: &[Document]) -> BTreeMap<String, Value> {
    let table = GroupTable::default();
    documents
        .iter()
        .filter_map(|document| {
            let (plural, group) = table.swap_qualified(name(&document.value).as_bytes())?;
            let plural = std::str::from_utf8(plural).expect("names are ASCII");
            Some((format!("{plural}{group}"), document.value.clone()))
        })
        .collect()
}

/// What a standard CRD shares with its private CRD.
fn shared(mut crd: Value) -> Value {
    for pointer in DROPPED {
        let (parent, key) = pointer.rsplit_once('/').expect("pointers have slashes");
        if let Some(Value::Object(parent)) = crd.pointer_mut(parent) {
            parent.shift_remove(&key.replace("~1", "/"));
        }
    }
    crd["metadata"]["name"] = json!("");
    crd["spec"]["group"] = json!("");
    let versions = crd["spec"]["versions"]
        .as_array_mut()
        .expect("CRDs have versions");
    versions.retain(|version| version["storage"] == json!(true));
    crd
}

#[test]
fn pinned_modules_give_private_crds_that_differ_in_names_only() {
    let mut counts = Vec::new();
    for module in Module::pinned() {
        let batch = module::read(&module).unwrap();
        let standard = standard(&batch.documents);
        let derived = storage_only().run(vec![batch]).unwrap();
        counts.push(derived.crds.len());
        for crd in derived.crds {
            let original = &standard[name(&crd)];
            // No assert_eq, which would print two whole schemas.
            assert!(
                shared(crd.clone()) == shared(original.clone()),
                "{}",
                name(&crd)
            );
            assert_eq!(
                crd["metadata"]["labels"],
                original["metadata"]["labels"],
                "{}",
                name(&crd)
            );
        }
    }
    assert_eq!(
        counts,
        [17, 12, 24, 13, 4, 19, 7, 9],
        "core and kubeadm, Dev, AWS, GCP, KubeVirt, Azure, OpenStack, IBM"
    );
}

#[test]
fn providers_carry_the_contract_labels_of_their_kustomization() {
    let labels = |path: &str, crd: &str| {
        let module: Module = path.parse().unwrap();
        let derived = storage_only()
            .run(vec![module::read(&module).unwrap()])
            .unwrap();
        let found = derived
            .crds
            .into_iter()
            .find(|object| name(object).starts_with(crd));
        found.unwrap()["metadata"]["labels"].clone()
    };
    let table = [
        (
            "sigs.k8s.io/cluster-api",
            "kubeadmcontrolplanes.",
            json!({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}),
        ),
        (
            "sigs.k8s.io/cluster-api/test",
            "devmachines.",
            json!({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}),
        ),
        (
            "sigs.k8s.io/cluster-api-provider-aws/v2",
            "awsclusterroleidentities.",
            json!({
                "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
                "cluster.x-k8s.io/v1alpha3": "v1alpha3",
                "cluster.x-k8s.io/v1alpha4": "v1alpha4",
                "cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2",
            }),
        ),
        (
            "sigs.k8s.io/cluster-api-provider-gcp",
            "gcpmachines.",
            json!({"cluster.x-k8s.io/v1beta1": "v1beta1"}),
        ),
        (
            "sigs.k8s.io/cluster-api-provider-kubevirt",
            "kubevirtmachines.",
            json!({
                "cluster.x-k8s.io/provider": "kubevirt",
                "cluster.x-k8s.io/v1alpha1": "v1alpha1",
                "cluster.x-k8s.io/v1alpha2": "v1alpha1",
                "cluster.x-k8s.io/v1alpha3": "v1alpha1",
                "cluster.x-k8s.io/v1alpha4": "v1alpha1",
                "cluster.x-k8s.io/v1beta1": "v1alpha1",
            }),
        ),
    ];
    for (module, crd, expected) in table {
        assert_eq!(labels(module, crd), expected, "{crd}");
    }
}

#[test]
fn the_text_of_all_crds_reads_back_and_is_the_same_every_time() {
    let derive = || {
        let batches = Module::pinned().map(|module| module::read(&module).unwrap());
        storage_only().run(batches.collect()).unwrap().crds
    };
    let crds = derive();
    let text = output::stream(&crds, Format::Yaml).unwrap();
    let read: Vec<_> = parse("stream", &text)
        .unwrap()
        .into_iter()
        .map(|document| document.value)
        .collect();
    assert!(read == crds, "YAML does not read back as what was written");
    assert!(
        output::stream(&derive(), Format::Yaml).unwrap() == text,
        "two runs differ"
    );
}

#[test]
fn no_private_crd_has_standard_names() {
    let batches = Module::pinned().map(|module| module::read(&module).unwrap());
    let derived = storage_only().run(batches.collect()).unwrap();
    let table = GroupTable::default();
    for crd in derived.crds {
        let group = crd["spec"]["group"].as_str().unwrap();
        let (_, types) = table.find(group.as_bytes()).unwrap();
        assert_eq!(types, CapiTypes::Private, "{}", name(&crd));
        assert!(name(&crd).ends_with(group), "{}", name(&crd));
    }
}

/// F13: the label of OpenStack's module names v1beta1, and three of its kinds serve v1alpha1 only. Nothing looks these up
/// by contract, so they are derived with a warning.
#[test]
fn the_openstack_module_is_derived_with_warnings() {
    let module: Module = "sigs.k8s.io/cluster-api-provider-openstack@v0.14.6"
        .parse()
        .unwrap();
    let derived = storage_only()
        .run(vec![module::read(&module).unwrap()])
        .unwrap();
    let private = |plural: &str| format!("{plural}.infrastructure.cluster.hypershift.openshift.io");
    let unusual = [
        "openstackclusteridentities",
        "openstackfloatingippools",
        "openstackservers",
    ];
    let warned: Vec<_> = derived.warnings.iter().map(|it| it.crd.clone()).collect();
    assert_eq!(warned, unusual.map(private));
    for warning in &derived.warnings {
        let text = warning.to_string();
        assert!(text.contains("v1beta1"), "{text}");
    }
    let names: Vec<_> = derived
        .crds
        .iter()
        .map(|crd| name(crd).to_owned())
        .collect();
    let other = [
        "openstackclusters",
        "openstackclustertemplates",
        "openstackmachines",
        "openstackmachinetemplates",
    ];
    let mut expected: Vec<_> = unusual.into_iter().chain(other).map(private).collect();
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn a_missing_module_is_reported_with_the_output_of_go() {
    let module: Module = "example.invalid/no-such-module@v0.0.1".parse().unwrap();
    let error = module::read(&module).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("example.invalid/no-such-module@v0.0.1"),
        "{error}"
    );
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("go mod download says"), "{cause}");
}
