//! What a cluster is without a flag, and how the two programs differ.

use serde_json::json;

use super::*;

/// Command lines that say little.
pub(super) const ROWS: [(&str, &str, &[&str]); 3] = [
    (
        "agent",
        "agent with host names",
        &[
            "--agent-namespace=hosts",
            "--external-dns-domain=e.example.com",
        ],
    ),
    (
        "kubevirt",
        "kubevirt, machines of all kinds",
        &[
            "--node-pool-replicas=1",
            "--root-volume-size=64",
            "--root-volume-volume-mode=Block",
            "--root-volume-cache-strategy=PVC",
            "--network-multiqueue=Disable",
            "--additional-network=name:ns/net",
            "--attach-default-network=false",
            "--vm-node-selector=a=b,c=d",
            "--qos-class=Guaranteed",
        ],
    ),
    (
        "none",
        "none, limits of nodes",
        &[
            "--external-api-server-address=192.0.2.1",
            "--node-selector=a=b,c=d",
            "--node-drain-timeout=0s",
            "--node-volume-detach-timeout=5m",
            "--pausedUntil=2030-01-31T12:00:00Z",
            "--ovn-kubernetes-mtu=1400",
        ],
    ),
];

/// Fields of the HostedCluster and of the first NodePool.
fn cluster_and_pool(platform: &str, flags: &[&str]) -> (Value, Value) {
    let objects = rendered(&parse(platform, flags).unwrap()).unwrap();
    let find = |kind: &str| {
        let mut found = objects.iter();
        let object = found.find(|object| object["kind"] == kind).unwrap();
        object["spec"].clone()
    };
    (find("HostedCluster"), find("NodePool"))
}

#[test]
fn flags_change_the_fields_that_they_name() {
    for (platform, flags, pointer, expected) in [
        (
            "none",
            vec![],
            "/cluster/dns/baseDomain",
            json!("example.com"),
        ),
        (
            "none",
            vec![],
            "/cluster/services/0/servicePublishingStrategy/type",
            json!("NodePort"),
        ),
        (
            "agent",
            vec!["--agent-namespace=h", "--external-dns-domain=e.com"],
            "/cluster/services/0/servicePublishingStrategy/route/hostname",
            json!("api-a.e.com"),
        ),
        (
            "none",
            vec!["--node-selector=a=b,c=d"],
            "/cluster/nodeSelector",
            json!({ "a": "b", "c": "d" }),
        ),
        (
            "none",
            vec!["--pausedUntil=true"],
            "/cluster/pausedUntil",
            json!("true"),
        ),
        (
            "none",
            vec!["--pausedUntil=true"],
            "/pool/pausedUntil",
            json!("true"),
        ),
        (
            "none",
            vec!["--node-drain-timeout=30m"],
            "/pool/nodeDrainTimeout",
            json!("1800s"),
        ),
        (
            "none",
            vec!["--ovn-kubernetes-mtu=1400"],
            "/cluster/operatorConfiguration/clusterNetworkOperator/ovnKubernetesConfig/mtu",
            json!(1400),
        ),
        (
            "kubevirt",
            vec!["--vm-node-selector=a=b,c=d"],
            "/pool/platform/kubevirt/nodeSelector",
            json!({ "a": "b", "c": "d" }),
        ),
        (
            "kubevirt",
            vec!["--root-volume-size=64Gi"],
            "/pool/platform/kubevirt/rootVolume/persistent/size",
            json!("64Gi"),
        ),
    ] {
        let (cluster, pool) = cluster_and_pool(platform, &flags);
        let both = json!({ "cluster": cluster, "pool": pool });
        assert_eq!(
            both.pointer(pointer),
            Some(&expected),
            "{platform} {flags:?}"
        );
    }
    let (cluster, pool) =
        cluster_and_pool("none", &["--node-drain-timeout=0", "--feature-set=Default"]);
    assert_eq!(pool.get("nodeDrainTimeout"), None);
    assert_eq!(cluster.get("configuration"), None);
}

#[test]
fn the_two_programs_differ_in_replicas_of_the_control_plane() {
    for (program, flags, expected) in [
        (Program::Hypershift, vec![], "SingleReplica"),
        (Program::Hcp, vec![], "HighlyAvailable"),
        (
            Program::Hypershift,
            vec!["--control-plane-availability-policy=HighlyAvailable"],
            "HighlyAvailable",
        ),
    ] {
        let (options, parts) = resolved(&parse("none", &flags).unwrap(), program).unwrap();
        let objects = objects(&options, &parts);
        let cluster = objects.iter().find(|it| it["kind"] == "HostedCluster");
        let policy = &cluster.unwrap()["spec"]["controllerAvailabilityPolicy"];
        assert_eq!(policy, expected, "{program:?} {flags:?}");
    }
}

/// A command line without a release.
fn without_release(platform: &str, flags: &[&str]) -> Cluster {
    let usual = [
        "create",
        platform,
        "--name=a",
        "--pull-secret=pull-secret.json",
    ];
    let words = usual.iter().chain(flags).map(|word| with_paths(word));
    Line::try_parse_from(words).unwrap().cluster
}

#[test]
fn a_release_is_named_or_looked_up() {
    let aws = ["--infra-json=aws-infra.json", "--iam-json=aws-iam.json"];
    let stream = |platform: &str, flags: &[&str], program: Program| {
        let cluster = without_release(platform, flags);
        resolved(&cluster, program).map(|(options, _)| options.release_stream)
    };
    let found = stream("aws", &aws, Program::Hcp).unwrap();
    assert_eq!(found.as_deref(), Some("4-stable-multi"));
    let given = ["--release-stream=4-stable"];
    let found = stream("none", &given, Program::Hypershift).unwrap();
    assert_eq!(found.as_deref(), Some("4-stable"));
    let both = ["--release-stream=4-stable", "--release-image=r/i:1"];
    assert_eq!(stream("none", &both, Program::Hcp).unwrap(), None);
    for error in [
        stream("none", &[], Program::Hcp).unwrap_err(),
        stream("aws", &aws, Program::Hypershift).unwrap_err(),
    ] {
        let said = error.to_string();
        assert!(said.contains("--release-image"), "{said}");
        assert!(said.contains("--release-stream"), "{said}");
    }
}

#[test]
fn flags_that_do_nothing_are_refused() {
    for (flags, words) in [
        (&["--render", "--wait"][..], Some("--wait needs a cluster")),
        (
            &["--render-into=f", "--version-check"][..],
            Some("--version-check needs"),
        ),
        (&["--render", "--dry-run"][..], Some("--dry-run needs")),
        (
            &["--render-sensitive"][..],
            Some("needs --render or --render-into"),
        ),
        (&["--dry-run", "--wait"][..], Some("leave out --dry-run")),
        (&["--render", "--render-sensitive"][..], None),
        (&["--wait", "--timeout=0"][..], None),
    ] {
        let Cluster::None(of) = parse("none", flags).unwrap() else {
            panic!("platform none is parsed as another one");
        };
        match (check_run(&of.run), words) {
            (Ok(()), None) => {}
            (Err(error), Some(words)) => {
                assert!(error.to_string().contains(words), "{flags:?}: {error}");
            }
            (found, words) => panic!("{flags:?}: {found:?} instead of {words:?}"),
        }
    }
}
