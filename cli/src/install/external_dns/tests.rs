//! Tests of the flags of ExternalDNS, and of what is read from the cluster.

use std::fs;

use clap::Parser;
use serde_json::json;

use super::*;

const IMAGE_FLAG: &str = "--external-dns-image=registry.example.com/external-dns:v1";
const DOMAIN_FLAG: &str = "--external-dns-domain-filter=clusters.example.com";

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: ExternalDnsArgs,
}

fn resolve(flags: &[&str]) -> anyhow::Result<Option<ExternalDns>> {
    let line = Line::try_parse_from(std::iter::once("install").chain(flags.iter().copied()))?;
    line.args.resolve(None, &Roles::default(), str::to_owned)
}

#[test]
fn contradictory_flags_are_refused() {
    let aws = "--external-dns-provider=aws";
    let role = "--external-dns-role-arn=arn:aws:iam::123456789012:role/dns";
    let secret = "--external-dns-secret=dns";
    for (flags, expected) in [
        (vec![], ""),
        (vec![DOMAIN_FLAG], "needs --external-dns-provider"),
        (vec![role], "needs --external-dns-provider"),
        (
            vec![aws, secret, IMAGE_FLAG],
            "needs --external-dns-domain-filter",
        ),
        (vec![aws, secret, DOMAIN_FLAG], "needs --external-dns-image"),
        (vec![aws, DOMAIN_FLAG, IMAGE_FLAG], "needs one of"),
        (
            vec![aws, secret, role, DOMAIN_FLAG, IMAGE_FLAG],
            "needs one of",
        ),
        (
            vec![
                aws,
                "--external-dns-role-arn=admin",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "is not the ARN of a role",
        ),
        (
            vec![aws, "--external-dns-secret=a/b", DOMAIN_FLAG, IMAGE_FLAG],
            "is not the name of a Secret",
        ),
        (
            vec![
                "--external-dns-provider=azure",
                role,
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "--external-dns-role-arn needs --external-dns-provider=aws",
        ),
        (
            vec![
                "--external-dns-provider=azure",
                secret,
                "--external-dns-aws-zones-cache-duration=1h",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "needs --external-dns-provider=aws",
        ),
        (
            vec![
                aws,
                secret,
                "--external-dns-google-project=a",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "needs --external-dns-provider=google",
        ),
        (
            vec![
                "--external-dns-provider=google",
                "--external-dns-google-project=a/b",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "is not a name in Google Cloud",
        ),
        (
            vec![aws, secret, "--external-dns-domain-filter=a,b", IMAGE_FLAG],
            "is not a domain",
        ),
        (
            vec![
                aws,
                secret,
                "--external-dns-txt-owner-id=a,b",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "has other characters",
        ),
        (
            vec![
                aws,
                secret,
                "--external-dns-interval=0s",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "is not a time of at least 1s",
        ),
        (
            vec![
                aws,
                secret,
                "--external-dns-aws-zones-cache-duration=soon",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "is not a time",
        ),
        (vec![aws, role, DOMAIN_FLAG, IMAGE_FLAG], ""),
        (
            vec![
                "--external-dns-provider=AWS",
                secret,
                "--external-dns-aws-zones-cache-duration=0s",
                DOMAIN_FLAG,
                IMAGE_FLAG,
            ],
            "",
        ),
        (
            vec!["--external-dns-provider=google", DOMAIN_FLAG, IMAGE_FLAG],
            "",
        ),
    ] {
        let message = resolve(&flags).map_or_else(|it| it.to_string(), |_| String::new());
        assert_eq!(
            message.is_empty(),
            expected.is_empty(),
            "{flags:?}: {message}"
        );
        assert!(message.contains(expected), "{flags:?}: {message}");
    }
}

#[test]
fn credentials_are_those_of_the_provider_and_are_not_quoted() {
    let azure =
        json!({ "subscriptionId": "s", "resourceGroup": "g", "aadClientSecret": "hunter2" });
    let google = json!({ "type": "service_account", "private_key": "hunter2" });
    let partial = json!({ "subscriptionId": "s", "aadClientSecret": "hunter2" });
    let aws = "[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\n";
    for (provider, content, expected) in [
        ("aws", aws.to_owned(), ""),
        ("aws", azure.to_string(), "no such profile"),
        ("azure", azure.to_string(), ""),
        ("azure", partial.to_string(), "has no resourceGroup"),
        ("azure", aws.to_owned(), "has no subscriptionId"),
        ("google", google.to_string(), ""),
        ("google", azure.to_string(), "has no type"),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &content).unwrap();
        let provider = format!("--external-dns-provider={provider}");
        let path = format!("--external-dns-credentials={}", file.path().display());
        match resolve(&[provider.as_str(), path.as_str(), DOMAIN_FLAG, IMAGE_FLAG]) {
            Ok(found) => {
                assert_eq!(expected, "", "{provider}");
                let made = SecretFile::made(SECRET, KEY, content);
                assert_eq!(found.unwrap().credentials, Some(made));
            }
            Err(error) => {
                let message = format!("{error:#}");
                assert!(!expected.is_empty(), "{provider}: {message}");
                assert!(message.contains(expected), "{provider}: {message}");
                assert!(!message.contains("hunter2"), "{message}");
            }
        }
    }
}

/// With another owner, ExternalDNS would neither change nor delete the DNS records that it made before.
#[test]
fn the_owner_of_dns_records_is_the_installed_one() {
    let deployment = |arguments: serde_json::Value| json!({ "spec": { "template": { "spec": { "containers": [{ "args": arguments }] } } } });
    for (arguments, expected) in [
        (json!(["--registry=txt", "--txt-owner-id=a"]), Some("a")),
        (json!(["--txt-owner-id="]), None),
        (json!(["--registry=txt"]), None),
        (json!(null), None),
    ] {
        let found = look::owner_of(&deployment(arguments.clone()));
        assert_eq!(found.as_deref(), expected, "{arguments}");
    }
}

#[test]
fn the_proxy_of_the_cluster_is_used_as_far_as_it_is_set() {
    let proxy = json!({
        "spec": { "httpProxy": "http://spec.example.com" },
        "status": { "httpsProxy": "http://proxy.example.com:3128", "noProxy": ".cluster.local" },
    });
    let expected = [
        ("HTTPS_PROXY", "http://proxy.example.com:3128".to_owned()),
        ("NO_PROXY", ".cluster.local".to_owned()),
    ];
    assert_eq!(look::variables(&proxy), expected);
    assert_eq!(look::variables(&json!(null)), []);
}
