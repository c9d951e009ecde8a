//! Tests.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::*;

fn args(platform: PrivatePlatform) -> PrivateLinkArgs {
    PrivateLinkArgs {
        private_platform: platform,
        aws: aws::tests::none(),
        azure_private_creds: None,
        azure_private_secret: None,
        azure_private_secret_key: KEY.to_owned(),
        azure_pls_managed_identity_client_id: None,
        azure_pls_subscription_id: None,
        azure_pls_resource_group: None,
        gcp_project: None,
        gcp_region: None,
    }
}

fn azure() -> PrivateLinkArgs {
    PrivateLinkArgs {
        azure_pls_resource_group: Some("group".to_owned()),
        ..args(PrivatePlatform::Azure)
    }
}

#[test]
fn combinations_of_flags_are_checked() {
    let some = |text: &str| Some(text.to_owned());
    let gcp = || PrivateLinkArgs {
        gcp_project: some("mine-1"),
        gcp_region: some("us-central1"),
        ..args(PrivatePlatform::Gcp)
    };
    for (args, expected) in [
        (args(PrivatePlatform::None), ""),
        (
            PrivateLinkArgs {
                gcp_project: some("a"),
                ..args(PrivatePlatform::None)
            },
            "--gcp-project needs --private-platform=GCP",
        ),
        (
            PrivateLinkArgs {
                azure_pls_subscription_id: some("a"),
                ..gcp()
            },
            "--azure-pls-subscription-id needs --private-platform=Azure",
        ),
        (args(PrivatePlatform::Aws), "needs --aws-private-region"),
        (args(PrivatePlatform::Azure), "--azure-pls-resource-group"),
        (azure(), "needs one of --azure-private-creds"),
        (
            PrivateLinkArgs {
                azure_private_secret: some("a"),
                azure_pls_managed_identity_client_id: some("b"),
                ..azure()
            },
            "needs one of --azure-private-creds",
        ),
        (
            PrivateLinkArgs {
                azure_pls_managed_identity_client_id: some("b"),
                ..azure()
            },
            "needs --azure-pls-subscription-id",
        ),
        (
            PrivateLinkArgs {
                azure_private_secret: some("a"),
                ..azure()
            },
            "",
        ),
        (
            PrivateLinkArgs {
                azure_private_secret: some("a"),
                azure_pls_subscription_id: some("a/b"),
                ..azure()
            },
            "--azure-pls-subscription-id \"a/b\" is not a name",
        ),
        (gcp(), ""),
        (
            PrivateLinkArgs {
                gcp_region: None,
                ..gcp()
            },
            "needs --gcp-project and --gcp-region",
        ),
        (
            PrivateLinkArgs {
                gcp_region: some("A"),
                ..gcp()
            },
            "--gcp-region \"A\" is not a name",
        ),
    ] {
        match args.resolve(false, &Roles::default()) {
            Ok(_) => assert_eq!(expected, "", "{args:?}"),
            Err(error) => {
                let message = error.to_string();
                assert!(
                    !expected.is_empty() && message.contains(expected),
                    "{message}"
                );
            }
        }
    }
    assert_eq!(
        args(PrivatePlatform::Azure)
            .resolve(true, &Roles::default())
            .unwrap(),
        None
    );
}

#[test]
fn credentials_are_checked_and_not_quoted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let complete = "tenantId: t\nclientId: c\nclientSecret: hunter2\n";
    let resolve = |text: &str, subscription: Option<&str>| {
        fs::write(file.path(), text).unwrap();
        let args = PrivateLinkArgs {
            azure_private_creds: Some(file.path().to_owned()),
            azure_pls_subscription_id: subscription.map(str::to_owned),
            ..azure()
        };
        args.resolve(false, &Roles::default())
    };
    for (text, subscription, expected) in [
        (complete.to_owned(), None, "has no subscriptionId"),
        (
            "clientSecret: hunter2".to_owned(),
            Some("s"),
            "has no tenantId",
        ),
        (": hunter2 [".to_owned(), Some("s"), "has no tenantId"),
    ] {
        let message = resolve(&text, subscription).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let made = resolve(&format!("{complete}subscriptionId: s\n"), None).unwrap();
    let object = made
        .as_ref()
        .and_then(|it| it.object("hypershift"))
        .unwrap();
    let content = object.body["data"][KEY].as_str().unwrap();
    let content: Value = serde_json::from_slice(&STANDARD.decode(content).unwrap()).unwrap();
    assert_eq!(content["clientSecret"], "hunter2", "as JSON");
    assert_eq!(made.unwrap().label(), None);
}
