//! What ExternalDNS adds to an installation.

use crate::{compare, render, text};

/// What ExternalDNS adds to an installation, in each cloud.
#[test]
fn external_dns_is_rendered() {
    let documents = |text: &str| text.split("---\n").map(str::to_owned).collect::<Vec<_>>();
    let render = |more: &[&str]| {
        let common = ["--outputs=resources", "--render-sensitive"];
        let all: Vec<&str> = common.iter().chain(more).copied().collect();
        documents(&text(&render(&all)))
    };
    let common = [
        "--external-dns-domain-filter=clusters.example.com",
        "--external-dns-image=registry.example.com/external-dns:v1",
        "--external-dns-txt-owner-id=management-1",
    ];
    let without = render(&[]);
    for (cloud, more) in [
        (
            "aws",
            &[
                "--external-dns-role-arn=arn:aws:iam::123456789012:role/dns",
                "--registry-overrides=registry.example.com=mirror.example.com/copy",
                "--assume=routes",
            ][..],
        ),
        (
            "azure",
            &[
                "--external-dns-secret=dns",
                "--external-dns-interval=2m",
                "--assume=routes,monitoring",
            ],
        ),
        (
            "google",
            &[
                "--external-dns-google-project=zones",
                "--assume=routes,dns-endpoints",
            ],
        ),
    ] {
        let provider = format!("--external-dns-provider={cloud}");
        let flags = [&[provider.as_str()][..], &common[..], more].concat();
        let added = render(&flags).into_iter().filter(|one| {
            let is_ours = one.contains("external-dns");
            is_ours && !without.contains(one)
        });
        let added = added.collect::<Vec<_>>().join("---\n");
        compare(&format!("external-dns-{cloud}.yaml"), &added);
    }
}

/// Two management clusters with the same owner would delete each other's DNS records.
#[test]
fn the_owner_of_dns_records_is_not_guessed() {
    let output = render(&[
        "--external-dns-provider=google",
        "--external-dns-domain-filter=clusters.example.com",
        "--external-dns-image=registry.example.com/external-dns:v1",
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{stderr}");
    assert!(stderr.contains("--external-dns-txt-owner-id"), "{stderr}");
    assert!(output.stdout.is_empty());
}
