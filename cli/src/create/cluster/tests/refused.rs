//! Command lines that are refused, and what is said then.

use super::*;

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let aws = ["--infra-json=aws-infra.json", "--iam-json=aws-iam.json"];
    for (platform, flags, words) in [
        (
            "none",
            vec!["--external-api-server-address=a", "--allocate-node-cidrs"],
            "--allocate-node-cidrs needs --network-type=Other",
        ),
        (
            "none",
            vec!["--external-api-server-address=a", "--labels=a"],
            "--labels \"a\": write KEY=VALUE",
        ),
        (
            "none",
            vec!["--external-api-server-address=a", "--namespace=A"],
            "--namespace \"A\": use lower-case",
        ),
        (
            "none",
            vec!["--external-api-server-address=a", "--ssh-key=no-such-file"],
            "cannot read no-such-file, named by --ssh-key",
        ),
        (
            "none",
            vec![
                "--external-api-server-address=a",
                "--image-content-sources=pull-secret.json",
            ],
            "write a list of items with source and mirrors",
        ),
        (
            "kubevirt",
            vec!["--api-server-address=192.0.2.1"],
            "needs --service-publishing-strategy=NodePort",
        ),
        (
            "kubevirt",
            vec![
                "--service-publishing-strategy=NodePort",
                "--external-dns-domain=e.com",
            ],
            "--external-dns-domain is for services with host names",
        ),
        (
            "agent",
            vec![
                "--agent-namespace=hosts",
                "--api-server-address=a",
                "--external-dns-domain=e.com",
            ],
            "leave out --api-server-address",
        ),
        (
            "none",
            vec!["--external-dns-domain=e.com"],
            "pass --expose-through-load-balancer",
        ),
        (
            "none",
            vec!["--kas-dns-name=https://a"],
            "--kas-dns-name \"https://a\": use a DNS name",
        ),
        (
            "none",
            vec!["--pausedUntil=tomorrow"],
            "write a time such as",
        ),
        (
            "none",
            vec!["--disable-cluster-capabilities=Ingress"],
            "disable Console as well",
        ),
        (
            "none",
            vec![
                "--disable-cluster-capabilities=Console,Insights",
                "--enable-cluster-capabilities=Insights",
            ],
            "Insights is named by --enable-cluster-capabilities and by",
        ),
        (
            "none",
            vec!["--ovn-kubernetes-mtu=1400", "--network-type=Calico"],
            "--ovn-kubernetes-mtu needs --network-type=OVNKubernetes",
        ),
        (
            "kubevirt",
            vec!["--infra-storage-class-mapping=a"],
            "write INFRA/GUEST",
        ),
        (
            "kubevirt",
            vec!["--host-device-name=a,count:x"],
            "write NAME[,count:N]",
        ),
        (
            "aws",
            vec![aws[0], "--iam-json=aws-infra.json"],
            "--iam-json",
        ),
        // U04: users of other HyperShift command lines give these.
        ("aws", vec![], "--base-domain is needed"),
        (
            "aws",
            vec![aws[0], "--zones=us-east-1a"],
            "--zones is for a network that is created",
        ),
        (
            "aws",
            vec![aws[0], aws[1], "--vpc-owner-aws-creds=creds.json"],
            "--vpc-owner-aws-creds is for a network or for roles that are created",
        ),
        (
            "aws",
            vec![
                "--base-domain=example.com",
                aws[1],
                "--vpc-owner-aws-creds=creds.json",
            ],
            "--iam-json names neither sharedIngressRoleARN nor",
        ),
        (
            "aws",
            vec![aws[0], aws[1], "--enable-proxy"],
            "--enable-proxy is for a network that is created",
        ),
        (
            "aws",
            vec![aws[0], aws[1], "--shared-role"],
            "--shared-role is for roles that are created",
        ),
        (
            "aws",
            vec![aws[0], aws[1], "--use-rosa-managed-policies"],
            "--use-rosa-managed-policies is for roles that are created",
        ),
        (
            "aws",
            vec![aws[0], aws[1], "--auto-node"],
            "--auto-node needs a role of Karpenter",
        ),
        (
            "aws",
            vec!["--infra-json=pull-secret.json", aws[1]],
            "--infra-json",
        ),
        (
            "powervs",
            vec!["--resource-group=group"],
            "--base-domain is needed",
        ),
        (
            "powervs",
            vec!["--base-domain=example.com"],
            "--resource-group is needed",
        ),
        (
            "powervs",
            vec![
                "--base-domain=example.com",
                "--resource-group=group",
                "--zone=wdc06",
            ],
            "--zone wdc06: infrastructure cannot be created",
        ),
        (
            "powervs",
            vec!["--infra-json=powervs-infra.json", "--vpc=shared"],
            "--vpc is for infrastructure that is created",
        ),
    ] {
        let error = rendered(&parse(platform, &flags).unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{flags:?}: {error:#}");
    }
}

#[test]
fn command_lines_that_lack_something_are_refused() {
    for (platform, flags) in [
        ("agent", vec![]),
        ("azure", vec![]),
        ("kubevirt", vec!["--infra-namespace=a"]),
        ("none", vec!["--region=here"]),
        ("none", vec!["--feature-set=CustomNoUpgrade"]),
        ("none", vec!["--enable-cluster-capabilities=Everything"]),
        ("none", vec!["--ovn-kubernetes-mtu=100"]),
        ("none", vec!["--arch=riscv64"]),
        ("none", vec!["--timeout=soon"]),
        (
            "none",
            vec![
                "--external-api-server-address=a",
                "--expose-through-load-balancer",
            ],
        ),
        (
            "none",
            vec![
                "--external-api-server-address=a",
                "--default-dual",
                "--service-cidr=10.0.0.0/16",
            ],
        ),
    ] {
        parse(platform, &flags).unwrap_err();
    }
}
