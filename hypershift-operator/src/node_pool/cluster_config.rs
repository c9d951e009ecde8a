//! Settings of the cluster for every node: FIPS mode, SSH key, registry mirrors.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use serde_json::json;

use super::manifest::Manifest;

/// The manifests, by the names that control planes of other origin give them.
pub(crate) fn manifests(cluster: &HostedCluster, ssh_key: Option<&str>) -> Vec<Manifest> {
    let config = json!({ "ignition": { "version": "3.2.0" } });
    let fips = cluster.spec.fips.unwrap_or_default();
    let mut manifests = vec![Manifest::machine_config(
        "30-fips",
        &json!({ "config": config, "fips": fips }),
    )];
    let mut user = json!({ "name": "core" });
    if let Some(key) = ssh_key.map(str::trim).filter(|it| !it.is_empty()) {
        user["sshAuthorizedKeys"] = json!([key]);
    }
    let mut ssh = config;
    ssh["passwd"] = json!({ "users": [user] });
    manifests.push(Manifest::machine_config(
        "99-worker-ssh",
        &json!({ "config": ssh }),
    ));
    if !cluster.spec.image_content_sources.is_empty() {
        let mirrors = json!({ "imageDigestMirrors": cluster.spec.image_content_sources });
        manifests.push(Manifest::mirrors("cluster", &mirrors));
    }
    manifests
}

#[cfg(test)]
mod tests {
    use api::hypershift::v1beta1::image_content_source::ImageContentSource;

    use super::*;
    use crate::node_pool::fixtures;

    #[test]
    fn cluster_configuration_reaches_every_node() {
        let mut cluster = fixtures::cluster();
        let names = |it: &[Manifest]| it.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            names(&manifests(&cluster, None)),
            ["30-fips", "99-worker-ssh"]
        );
        cluster.spec.fips = Some(true);
        cluster.spec.image_content_sources = vec![ImageContentSource {
            source: "registry.example.com/a".to_owned(),
            mirrors: vec!["images.example.com/a".to_owned()],
        }];
        let manifests = manifests(&cluster, Some("ssh-ed25519 AAAA user\n"));
        let [fips, ssh, mirrors] = &*manifests else {
            panic!("{manifests:?}");
        };
        assert!(fips.text().contains(r#""fips":true"#), "{}", fips.text());
        assert!(
            ssh.text()
                .contains(r#""sshAuthorizedKeys":["ssh-ed25519 AAAA user"]"#),
            "{}",
            ssh.text()
        );
        assert!(
            mirrors
                .text()
                .contains(r#""source":"registry.example.com/a""#),
            "{}",
            mirrors.text()
        );
    }
}
