//! Platform GCP: from files, from flags, and from nothing.

use serde_json::json;

use super::*;

const INFRA: &str = "--infra-json=gcp-infra.json";
const IAM: &str = "--iam-json=gcp-iam.json";
const PLACE: [&str; 2] = ["--project=project-2", "--region=us-east1"];
const NETWORK: [&str; 2] = ["--network=net", "--private-service-connect-subnet=psc"];
const IDENTITIES: [&str; 9] = [
    "--workload-identity-project-number=678",
    "--workload-identity-pool-id=pool",
    "--workload-identity-provider-id=provider",
    "--node-pool-service-account=node-pool@project-2.iam.gserviceaccount.com",
    "--control-plane-service-account=control-plane@project-2.iam.gserviceaccount.com",
    "--cloud-controller-service-account=cloud-controller@project-2.iam.gserviceaccount.com",
    "--storage-service-account=storage@project-2.iam.gserviceaccount.com",
    "--image-registry-service-account=image-registry@project-2.iam.gserviceaccount.com",
    "--network-service-account=network@project-2.iam.gserviceaccount.com",
];

/// Platform, a name, flags beside the usual ones.
pub(super) const ROWS: [(&str, &str, &[&str]); 3] = [
    ("gcp", "gcp, files", &[INFRA, IAM]),
    (
        "gcp",
        "gcp, flags",
        &[
            PLACE[0],
            PLACE[1],
            NETWORK[0],
            NETWORK[1],
            IDENTITIES[0],
            IDENTITIES[1],
            IDENTITIES[2],
            IDENTITIES[3],
            IDENTITIES[4],
            IDENTITIES[5],
            IDENTITIES[6],
            IDENTITIES[7],
            IDENTITIES[8],
            "--endpoint-access=PublicAndPrivate",
            "--external-dns-domain=hosts.example.org",
            "--machine-type=n2-standard-8",
            "--zone=us-east1-d",
            "--subnet=nodes",
            "--boot-image=projects/p/global/images/i",
            "--resource-labels=team=a,cost=b",
            "--oidc-issuer-url=https://issuer.example.com/a",
            "--service-account-signing-key-path=bundle.txt",
        ],
    ),
    (
        "gcp",
        "gcp, nothing",
        &[PLACE[0], PLACE[1], "--infra-id=a-12345"],
    ),
];

/// Fields of the HostedCluster, those of its platform, and those of the NodePool's platform.
fn fields(name: &str) -> (Value, Value, Value) {
    let mut rows = ROWS.into_iter();
    let (platform, _, flags) = rows.find(|(_, row, _)| *row == name).unwrap();
    let objects = rendered(&parse(platform, flags).unwrap()).unwrap();
    let spec = |kind: &str| {
        let mut found = objects.iter();
        found.find(|it| it["kind"] == kind).unwrap()["spec"].clone()
    };
    let cluster = spec("HostedCluster");
    let gcp = cluster["platform"]["gcp"].clone();
    (cluster, gcp, spec("NodePool")["platform"]["gcp"].clone())
}

#[test]
fn files_describe_network_and_identities() {
    let (cluster, gcp, pool) = fields("gcp, files");
    assert_eq!(cluster["infraID"], "a-12345");
    assert_eq!(cluster["platform"]["type"], "GCP");
    let ranges = json!([{ "cidr": "10.0.0.0/24" }]);
    assert_eq!(cluster["networking"]["machineNetwork"], ranges);
    let publishing = &cluster["services"][0]["servicePublishingStrategy"];
    assert_eq!(publishing["type"], "LoadBalancer");
    let email = |name: &str| format!("a-12345-{name}@project-1.iam.gserviceaccount.com");
    let expected = json!({
        "project": "project-1",
        "region": "us-central1",
        "networkConfig": {
            "network": { "name": "a-12345-network" },
            "privateServiceConnectSubnet": { "name": "a-12345-subnet" },
        },
        "endpointAccess": "Private",
        "workloadIdentity": {
            "projectNumber": "12345",
            "poolID": "a-12345-wi-pool",
            "providerID": "a-12345-k8s-provider",
            "serviceAccountsEmails": {
                "nodePool": email("nodepool-mgmt"),
                "controlPlane": email("ctrlplane-op"),
                "cloudController": email("cloud-controller"),
                "storage": email("gcp-pd-csi"),
                "imageRegistry": email("image-registry"),
                "network": email("cloud-network"),
            },
        },
    });
    assert_eq!(gcp, expected);
    let expected = json!({
        "machineType": "n2-standard-4", "zone": "us-central1-a", "subnet": "a-12345-subnet",
    });
    assert_eq!(pool, expected);
}

#[test]
fn flags_describe_network_and_identities() {
    let (cluster, gcp, pool) = fields("gcp, flags");
    assert_eq!(cluster["issuerURL"], "https://issuer.example.com/a");
    assert_eq!(
        cluster["serviceAccountSigningKey"]["name"],
        "a-sa-signing-key"
    );
    assert_eq!(cluster["networking"].get("machineNetwork"), None);
    let hosts: Vec<_> = cluster["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["servicePublishingStrategy"]["route"]["hostname"].as_str())
        .collect();
    let expected = [
        Some("api-a.hosts.example.org"),
        None,
        None,
        Some("oauth-a.hosts.example.org"),
    ];
    assert_eq!(hosts, expected);
    assert_eq!(gcp["endpointAccess"], "PublicAndPrivate");
    assert_eq!(gcp["networkConfig"]["network"]["name"], "net");
    let identity = &gcp["workloadIdentity"];
    assert_eq!(identity["projectNumber"], "678");
    let email = &identity["serviceAccountsEmails"]["imageRegistry"];
    assert_eq!(email, "image-registry@project-2.iam.gserviceaccount.com");
    let labels = json!([{ "key": "cost", "value": "b" }, { "key": "team", "value": "a" }]);
    assert_eq!(gcp["resourceLabels"], labels);
    let expected = json!({
        "machineType": "n2-standard-8", "zone": "us-east1-d", "subnet": "nodes",
        "image": "projects/p/global/images/i",
    });
    assert_eq!(pool, expected);
}

/// Names of what is created are known before.
#[test]
fn what_is_created_has_the_name_of_the_infrastructure() {
    let (cluster, gcp, pool) = fields("gcp, nothing");
    assert_eq!(cluster["issuerURL"], "https://hypershift-a-12345-oidc");
    assert_eq!(gcp["networkConfig"]["network"]["name"], "a-12345-network");
    assert_eq!(gcp["workloadIdentity"]["poolID"], "a-12345-wi-pool");
    // The region has no zone a.
    assert_eq!(pool["zone"], "us-east1-b");
    // Names that are chosen are short enough for service accounts.
    let line = [PLACE[0], PLACE[1], "--name=a-long-name-of-a-cluster"];
    let Cluster::Gcp(of) = long_named(&line) else {
        panic!("another platform was parsed");
    };
    let (options, _) = resolve(&of.common, &of.platform, Program::Hcp).unwrap();
    assert!(
        options.infra_id.starts_with("a-long-"),
        "{}",
        options.infra_id
    );
    assert!(options.infra_id.len() <= 13, "{}", options.infra_id);
}

/// A command line with a name of its own.
fn long_named(flags: &[&str]) -> Cluster {
    let words = [
        "create",
        "gcp",
        "--release-image=i",
        "--pull-secret=pull-secret.json",
    ];
    let words = words.iter().chain(flags).map(|word| with_paths(word));
    Line::try_parse_from(words).unwrap().cluster
}

#[test]
fn what_makes_no_sense_on_google_cloud_is_refused_with_the_way_out() {
    for (flags, words) in [
        (vec![], "--project is needed"),
        (vec![PLACE[0]], "--region is needed"),
        (vec![INFRA, IAM, PLACE[0]], "leave out --project"),
        (vec![INFRA, IAM, PLACE[1]], "leave out --region"),
        (
            vec![INFRA, IAM, IDENTITIES[1]],
            "--workload-identity-project-number",
        ),
        (
            vec![PLACE[0], PLACE[1], NETWORK[0], NETWORK[1], IAM],
            "--iam-json says project-1",
        ),
        (vec![INFRA, "--iam-json=gcp-infra.json"], "--iam-json"),
        (
            vec![INFRA, IDENTITIES[0], IDENTITIES[3]],
            "--network-service-account, --workload-identity-pool-id",
        ),
        (
            vec![INFRA, IAM, "--zone=us-east1-b"],
            "is not in region us-central1",
        ),
        (
            vec![PLACE[0], PLACE[1], "--vpc-cidr=10.0.0.1/24"],
            "--vpc-cidr",
        ),
        (
            vec![PLACE[0], PLACE[1], "--infra-id=a-name-that-is-long"],
            "at most 13",
        ),
        (
            vec![PLACE[0], PLACE[1], "--oidc-issuer-url=http://a"],
            "write https://HOST",
        ),
        (vec![PLACE[0], "--region=us-east1/x"], "is not a region"),
        (vec!["--project=p", PLACE[1]], "use the ID of a project"),
    ] {
        let error = rendered(&parse("gcp", &flags).unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{flags:?}: {error:#}");
    }
    for flags in [
        vec![INFRA, NETWORK[0], NETWORK[1]],
        vec![INFRA, "--vpc-cidr=10.0.0.0/24"],
        vec![PLACE[0], PLACE[1], NETWORK[0]],
        vec![PLACE[0], PLACE[1], NETWORK[1]],
        vec![INFRA, IAM, "--endpoint-access=Public"],
    ] {
        parse("gcp", &flags).unwrap_err();
    }
}
