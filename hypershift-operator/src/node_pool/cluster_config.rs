//! Settings of the cluster for every node: FIPS mode, SSH key, registry mirrors.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use control_plane_component::node_config;

use super::manifest::Manifest;

/// The manifests, by the names that control planes of other origin give them.
pub(crate) fn manifests(cluster: &HostedCluster, ssh_key: Option<&str>) -> Vec<Manifest> {
    let spec = &cluster.spec;
    let fips = node_config::fips(spec.fips.unwrap_or_default());
    let mut manifests = vec![
        Manifest::machine_config(node_config::FIPS, &fips),
        Manifest::machine_config(node_config::SSH, &node_config::ssh(ssh_key)),
    ];
    let mirrors = node_config::mirrors(&spec.image_content_sources);
    manifests.extend(mirrors.map(|spec| Manifest::mirrors(node_config::MIRRORS, &spec)));
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
