//! A list of images in the form of an OpenShift `ImageStream`, as builds of HyperShift have it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

/// The tag of the operators' image.
pub(super) const OPERATOR: &str = "hypershift-operator";
/// The tag of the proxy's image.
pub(super) const PROXY: &str = "capi-proxy";
/// The tag of the image of ExternalDNS.
pub(super) const EXTERNAL_DNS: &str = "external-dns";
/// Tags that the operators pass on to control planes, and the variables by which they know them.
const VARIABLES: [(&str, &str); 9] = [
    ("cluster-api", "IMAGE_CLUSTER_API"),
    ("cluster-api-provider-agent", "IMAGE_AGENT_CAPI_PROVIDER"),
    ("cluster-api-provider-aws", "IMAGE_AWS_CAPI_PROVIDER"),
    ("cluster-api-provider-azure", "IMAGE_AZURE_CAPI_PROVIDER"),
    ("cluster-api-provider-gcp", "IMAGE_GCP_CAPI_PROVIDER"),
    (
        "cluster-api-provider-kubevirt",
        "IMAGE_KUBEVIRT_CAPI_PROVIDER",
    ),
    (
        "cluster-api-provider-openstack",
        "IMAGE_OPENSTACK_CAPI_PROVIDER",
    ),
    (
        "cluster-api-provider-powervs",
        "IMAGE_POWERVS_CAPI_PROVIDER",
    ),
    (
        "openstack-resource-controller",
        "IMAGE_OPENSTACK_RESOURCE_CONTROLLER",
    ),
];

/// Images by tag. Tags of programs that are not installed have no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ImageRefs(BTreeMap<String, String>);

// === impl ImageRefs ===

impl ImageRefs {
    /// The images of a file, which is YAML or JSON. Without one there are none.
    pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| {
            format!(
                "{} is no list of images: give an ImageStream whose spec.tags have a name and from.name",
                path.display()
            )
        })
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let stream: Value = serde_saphyr::from_str(text).context("it is not YAML")?;
        let tags = stream["spec"]["tags"].as_array();
        let tags = tags.context("it has no spec.tags")?;
        let mut images = BTreeMap::new();
        for (index, tag) in tags.iter().enumerate() {
            let text = |pointer: &str| {
                let text = tag.pointer(pointer).and_then(Value::as_str);
                text.filter(|text| !text.trim().is_empty())
                    .with_context(|| format!("spec.tags[{index}] has no {pointer}"))
            };
            let (name, image) = (text("/name")?, text("/from/name")?);
            if images.insert(name.to_owned(), image.to_owned()).is_some() {
                anyhow::bail!("spec.tags has {name} twice");
            }
        }
        Ok(Self(images))
    }

    /// The image of a tag.
    pub(super) fn get(&self, tag: &str) -> Option<&str> {
        self.0.get(tag).map(String::as_str)
    }

    /// Variables of the operators for images of control planes.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let given = VARIABLES
            .into_iter()
            .map(move |(tag, variable)| (variable, self.get(tag)));
        given.filter_map(|(variable, image)| Some((variable, image?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tags_become_variables() {
        let text = "kind: ImageStream\nspec:\n  tags:\n  - name: cluster-api\n    from: {kind: DockerImage, name: images.example.com/a}\n  \
                    - name: other\n    from: {name: images.example.com/b}\n";
        let images = ImageRefs::parse(text).unwrap();
        let variables: Vec<_> = images.variables().collect();
        assert_eq!(variables, [("IMAGE_CLUSTER_API", "images.example.com/a")]);
        assert_eq!(images.get("other"), Some("images.example.com/b"));
        assert_eq!(images.get(OPERATOR), None);
        assert_eq!(ImageRefs::read(None).unwrap(), ImageRefs::default());
    }

    #[test]
    fn other_files_are_refused() {
        for (text, expected) in [
            ("[", "it is not YAML"),
            ("{}", "it has no spec.tags"),
            (
                "spec: {tags: [{name: a}]}",
                "spec.tags[0] has no /from/name",
            ),
            (
                "spec: {tags: [{name: a, from: {name: b}}, {name: a, from: {name: c}}]}",
                "spec.tags has a twice",
            ),
        ] {
            let message = format!("{:#}", ImageRefs::parse(text).unwrap_err());
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
