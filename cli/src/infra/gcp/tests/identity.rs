//! Identities: the calls that make them, policies, and what is refused.

use super::*;

const POOL: &str = "a-x1-wi-pool";
const PROVIDER: &str = "a-x1-wi-pool/providers/a-x1-k8s-provider";
const POOLS: &str = "/locations/global/workloadIdentityPools";

/// Names of service accounts, their roles without `roles/`, and service accounts of the hosted cluster.
const ACCOUNTS: [(&str, &[&str], &[&str]); 6] = [
    (
        "nodepool-mgmt",
        &[
            "compute.instanceAdmin.v1",
            "compute.networkAdmin",
            "iam.serviceAccountUser",
        ],
        &["kube-system:capi-gcp-controller-manager"],
    ),
    (
        "ctrlplane-op",
        &["dns.admin", "compute.networkAdmin", "compute.viewer"],
        &["kube-system:control-plane-operator"],
    ),
    (
        "cloud-controller",
        &[
            "compute.loadBalancerAdmin",
            "compute.securityAdmin",
            "compute.viewer",
        ],
        &["kube-system:cloud-controller-manager"],
    ),
    (
        "gcp-pd-csi",
        &[
            "compute.storageAdmin",
            "compute.instanceAdmin.v1",
            "iam.serviceAccountUser",
            "resourcemanager.tagUser",
        ],
        &["openshift-cluster-csi-drivers:gcp-pd-csi-driver-controller-sa"],
    ),
    (
        "image-registry",
        &["storage.admin"],
        &[
            "openshift-image-registry:cluster-image-registry-operator",
            "openshift-image-registry:registry",
        ],
    ),
    (
        "cloud-network",
        &["compute.instanceAdmin.v1", "compute.networkUser"],
        &["openshift-cloud-network-config-controller:cloud-network-config-controller"],
    ),
];

fn email(name: &str) -> String {
    format!("a-x1-{name}{EMAILS}")
}

async fn create_identity(fake: &Fake<Cloud>, jwks: Option<&str>) -> anyhow::Result<IdentityOutput> {
    let scope = scope();
    let request = IdentityRequest {
        issuer: "https://issuer.example.com/a".to_owned(),
        jwks: jwks.map(|text| Jwks::parse(text).unwrap()),
    };
    executor(fake, &scope).create_identity(&request).await
}

#[tokio::test]
async fn identities_are_created_by_these_calls() {
    let fake = project();
    create_identity(&fake, Some(KEYS)).await.unwrap();
    let description = "HyperShift cluster a-x1";
    let writes = writes(&fake);
    let expected = json!({ "displayName": POOL, "description": description, "disabled": false });
    assert_eq!(writes[0].1, expected);
    let mut provider = writes[1].1.clone();
    let jwks = provider["oidc"]["jwksJson"].take();
    let jwks: Value = serde_json::from_str(jwks.as_str().unwrap()).unwrap();
    assert_eq!(jwks, serde_json::from_str::<Value>(KEYS).unwrap());
    let expected = json!({
        "displayName": "a-x1-k8s-provider",
        "description": description,
        "disabled": false,
        "attributeMapping": { "google.subject": "assertion.sub" },
        "oidc": {
            "issuerUri": "https://issuer.example.com/a", "allowedAudiences": ["openshift"], "jwksJson": null,
        },
    });
    assert_eq!(provider, expected);
    for ((name, _, _), (_, body)) in ACCOUNTS.iter().zip(writes[2..].iter().step_by(3)) {
        assert_eq!(body["accountId"], format!("a-x1-{name}"));
        assert_eq!(body["serviceAccount"]["description"], description);
    }
    let mut expected = vec![
        format!("POST {POOLS}?workloadIdentityPoolId={POOL}"),
        format!("POST {POOLS}/{POOL}/providers?workloadIdentityPoolProviderId=a-x1-k8s-provider"),
    ];
    for (name, _, _) in ACCOUNTS {
        expected.push("POST /serviceAccounts".to_owned());
        expected.push("POST :setIamPolicy".to_owned());
        expected.push(format!(
            "POST /serviceAccounts/{}:setIamPolicy",
            email(name)
        ));
    }
    assert_eq!(lines(writes), expected);
}

#[tokio::test]
async fn service_accounts_have_these_roles_and_no_others() {
    let fake = project();
    let before = fake.snapshot();
    create_identity(&fake, Some(KEYS)).await.unwrap();
    let begin = "principal://iam.googleapis.com/projects/12345/locations/global/workloadIdentityPools/a-x1-wi-pool/subject/\
                 system:serviceaccount";
    let mut expected = Vec::new();
    for (name, roles, subjects) in ACCOUNTS {
        let email = email(name);
        for role in roles {
            expected.push(format!(
                "project \"roles/{role}\" null serviceAccount:{email}"
            ));
        }
        for subject in subjects {
            expected.push(format!(
                "{email} \"roles/iam.workloadIdentityUser\" null {begin}:{subject}"
            ));
        }
    }
    expected.sort();
    let found = fake.snapshot().into_iter();
    let found = found.filter(|line| line.contains("\"roles/") && !before.contains(line));
    let mut found: Vec<_> = found.collect();
    found.sort();
    assert_eq!(found, expected);
    // What others are bound to stays, with its conditions.
    let snapshot = fake.snapshot();
    assert!(before.iter().all(|line| snapshot.contains(line)));
}

#[tokio::test]
async fn identities_are_destroyed_by_these_calls() {
    let fake = project();
    create_identity(&fake, Some(KEYS)).await.unwrap();
    fake.set_fault(None);
    executor(&fake, &scope()).destroy_identity().await.unwrap();
    let mut expected = vec!["POST :setIamPolicy".to_owned()];
    for (name, _, _) in ACCOUNTS {
        expected.push(format!("DELETE /serviceAccounts/{}", email(name)));
    }
    expected.push(format!("DELETE {POOLS}/{PROVIDER}"));
    expected.push(format!("DELETE {POOLS}/{POOL}"));
    assert_eq!(lines(writes(&fake)), expected);
    assert_eq!(fake.snapshot(), project().snapshot());
}

#[tokio::test]
async fn changes_that_others_make_to_the_policy_are_not_lost() {
    let fake = project();
    fake.state().cloud.policy.conflicts = 2;
    create_identity(&fake, Some(KEYS)).await.unwrap();
    fake.state().cloud.policy.conflicts = 2;
    executor(&fake, &scope()).destroy_identity().await.unwrap();
    let left = fake.snapshot();
    for number in 0..2 {
        let line = format!("project \"roles/viewer\" null user:other-{number}@example.com");
        assert!(left.contains(&line), "{left:?}");
    }
    assert!(!left.iter().any(|line| line.contains("a-x1")), "{left:?}");
}

#[tokio::test]
async fn a_policy_that_always_changes_is_an_error() {
    let fake = project();
    fake.state().cloud.policy.conflicts = u32::MAX;
    let error = create_identity(&fake, None).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("failed to change the policy of project project-1"),
        "{error}"
    );
}

/// Of a provider that exists, only what differs is written.
#[tokio::test]
async fn a_provider_is_brought_up_to_date() {
    let other = r#"{"keys": [{"kty": "RSA", "kid": "2", "n": "b", "e": "AQAB"}]}"#;
    let same = r#"{"keys":[{"e":"AQAB","n":"a","kid":"1","kty":"RSA"}]}"#;
    for (jwks, disabled, expected) in [
        (Some(KEYS), false, None),
        (Some(same), false, None),
        (Some(other), false, Some("oidc.jwks_json")),
        (None, false, Some("oidc.jwks_json")),
        (Some(same), true, Some("disabled")),
    ] {
        let fake = project();
        create_identity(&fake, Some(KEYS)).await.unwrap();
        for path in [POOL, PROVIDER] {
            let mut state = fake.state();
            let entry = state.cloud.identity.pools.get_mut(path).unwrap();
            entry["disabled"] = json!(disabled);
        }
        fake.set_fault(None);
        create_identity(&fake, jwks).await.unwrap();
        let mut lines = lines(writes(&fake));
        if disabled {
            let pool = format!("PATCH {POOLS}/{POOL}?updateMask=disabled");
            assert_eq!(lines.remove(0), pool);
        }
        let expected: Vec<_> = expected
            .map(|mask| format!("PATCH {POOLS}/{PROVIDER}?updateMask={mask}"))
            .into_iter()
            .collect();
        assert_eq!(lines, expected);
        let state = fake.state();
        let provider = &state.cloud.identity.pools[PROVIDER];
        assert_eq!(provider["disabled"], false);
        let keys = provider["oidc"]["jwksJson"].as_str().unwrap();
        assert_eq!(keys.is_empty(), jwks.is_none());
    }
}

#[tokio::test]
async fn what_belongs_to_something_else_is_neither_used_nor_deleted() {
    let foreign = || json!({ "description": "HyperShift cluster b-x2", "state": "ACTIVE" });
    for what in [POOL, PROVIDER, "cloud-network"] {
        let fake = project();
        {
            let mut state = fake.state();
            let identity = &mut state.cloud.identity;
            if what == "cloud-network" {
                let account = fake_clouds::google_cloud::identity::Account::old(foreign());
                identity.accounts.insert(email(what), account);
            } else {
                identity.pools.insert(what.to_owned(), foreign());
            }
            let member = format!("serviceAccount:{}", email("cloud-network"));
            state.cloud.policy.bind("roles/viewer", &member);
        }
        let before = fake.snapshot();
        let error = create_identity(&fake, None).await.unwrap_err().to_string();
        assert!(error.contains("belongs to something else"), "{error}");
        executor(&fake, &scope()).destroy_identity().await.unwrap();
        assert_eq!(lines(writes(&fake)), [""; 0], "{what}");
        assert_eq!(fake.snapshot(), before);
    }
}

/// A deleted pool of others is not restored.
#[tokio::test]
async fn a_deleted_pool_of_something_else_is_refused() {
    let fake = project();
    let foreign = json!({ "description": "CI", "state": "DELETED" });
    fake.state()
        .cloud
        .identity
        .pools
        .insert(POOL.to_owned(), foreign);
    let error = create_identity(&fake, None).await.unwrap_err().to_string();
    assert!(error.contains("belongs to something else"), "{error}");
    assert_eq!(lines(writes(&fake)), [""; 0]);
}

#[tokio::test]
async fn names_that_are_too_long_are_refused_before_any_call() {
    let fake = project();
    let scope = Scope::new("a-12345678-x1z", PROJECT).unwrap();
    let request = identity_request(&scope);
    let error = executor(&fake, &scope)
        .create_identity(&request)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("at most 13"), "{error}");
    assert_eq!(fake.count(), 0);
}

#[tokio::test]
async fn another_project_is_an_error() {
    let fake = project();
    let scope = Scope::new("a-x1", "project-2").unwrap();
    let request = identity_request(&scope);
    let error = executor(&fake, &scope)
        .create_identity(&request)
        .await
        .unwrap_err();
    assert!(
        format!("{error:#}").contains("failed to get project project-2"),
        "{error:#}"
    );
}
