//! Small kustomizations: what is built, and what is refused.

use super::*;

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
";

fn build_files(files: &[(&str, &str)]) -> Result<Vec<Document>, SourceError> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    file::read_directory(directory.path())
}

fn patch(metadata_and_spec: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n{metadata_and_spec}\n"
    )
}

#[test]
fn builds_listed_files_with_labels_of_all_three_kinds() {
    let kustomization = "
labels:
- pairs: {a: '1'}
commonLabels: {b: '2'}
resources: [bases/listed.yaml]
patchesStrategicMerge: [patches/label.yaml]
patches:
- path: patches/webhook.yaml
configurations: [kustomizeconfig.yaml]
";
    let label =
        patch("metadata: {name: widgets.example.com, labels: {c: '3'}, annotations: {d: '4'}}");
    let webhook =
        patch("metadata: {name: widgets.example.com}\nspec: {conversion: {strategy: Webhook}}");
    let documents = build_files(&[
        ("kustomization.yaml", kustomization),
        ("bases/listed.yaml", CRD),
        ("bases/unlisted.yaml", CRD),
        ("patches/label.yaml", &label),
        ("patches/webhook.yaml", &webhook),
    ])
    .unwrap();
    let metadata: Vec<_> = documents
        .iter()
        .map(|document| document.value["metadata"].clone())
        .collect();
    let expected = serde_json::json!({
        "name": "widgets.example.com",
        "labels": {"c": "3", "a": "1", "b": "2"},
        "annotations": {"d": "4"},
    });
    assert_eq!(metadata, [expected]);
    assert_eq!(
        documents[0].value["spec"],
        Value::Null,
        "the webhook patch is left out"
    );
}

#[test]
fn refuses_what_it_does_not_understand() {
    let elsewhere = patch("metadata: {name: other.example.com, labels: {a: '1'}}");
    let schema = patch("metadata: {name: widgets.example.com}\nspec: {versions: []}");
    let finalizers = patch("metadata: {name: widgets.example.com, finalizers: [a]}");
    let json_patch = "- {op: add, path: /a, value: 1}\n".to_owned();
    let nothing = String::new();
    let table = [
        ("namePrefix: x-\n", &nothing, "is not understood"),
        ("components: [../other]\n", &nothing, "is not understood"),
        (
            "patches: [{patch: 'kind: X'}]\n",
            &nothing,
            "patch inline changes",
        ),
        (
            "patches: [{path: p.yaml, target: {kind: X}}]\n",
            &elsewhere,
            "chosen by a target",
        ),
        (
            "patches: [{path: p.yaml}]\n",
            &elsewhere,
            "\"other.example.com\", which is not among",
        ),
        (
            "patches: [{path: p.yaml}]\n",
            &schema,
            "changes spec.versions",
        ),
        (
            "patches: [{path: p.yaml}]\n",
            &finalizers,
            "changes metadata.finalizers",
        ),
        (
            "patchesStrategicMerge: [p.yaml]\n",
            &json_patch,
            "by JSON Patch",
        ),
    ];
    for (field, patch, words) in table {
        let kustomization = format!("resources: [crd.yaml]\n{field}");
        let files = [
            ("kustomization.yml", kustomization.as_str()),
            ("crd.yaml", CRD),
            ("p.yaml", patch),
        ];
        let error = build_files(&files).unwrap_err();
        let SourceError::Kustomization { source, .. } = error else {
            panic!("{field}: {error}");
        };
        assert!(source.to_string().contains(words), "{field}: {source}");
    }
}

#[test]
fn a_listed_file_that_is_missing_is_named() {
    let error = build_files(&[("Kustomization", "resources: [gone.yaml]\n")]).unwrap_err();
    assert!(error.to_string().contains("gone.yaml"), "{error}");
}
