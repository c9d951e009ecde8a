//! Documents and identity providers that were lost.

use super::super::fake::{Provider, State};
use super::super::issuer_recovery::{Documents, Place, Recreate};
use super::super::recover_issuer::{Recovery, RecoveryRequest};
use super::*;

const OWN: &str = "https://a-x1-oidc.s3.us-east-1.amazonaws.com/a-x1";
const SHARED: &str = "https://b.s3.us-east-1.amazonaws.com/a-x1";
const ELSEWHERE: &str = "https://issuer.example.com/a-x1";
const DISCOVERY: &str = "a-x1/.well-known/openid-configuration";
/// Made by openssl.
const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC3PxkaOZ0mK++HlRtFIfkWv1yz
A8byi+CBIfG0U2SDL2dziG4Je2/QGD4NMxRp9Yw4i5f8RCpqMOkC5fcz0InDMJ0w
RZlrggSvfVs57FhmoDoZ69PVzTWinl6vmRSNHsSlnyqNzS85eBzsKp5eayO/R2ov
Ff4KAe55rqi6yy+zVQIDAQAB
-----END PUBLIC KEY-----
";

fn request(url: &str, recreate: Recreate) -> RecoveryRequest {
    let bucket = (url == ELSEWHERE).then_some("b");
    RecoveryRequest {
        place: Place::new("a-x1", "us-east-1", Some(url), bucket).unwrap(),
        documents: Some(Documents::new(url, KEY).unwrap()),
        recreate,
    }
}

fn arn(url: &str) -> String {
    let host = url.trim_start_matches("https://");
    format!("arn:aws:iam::1:oidc-provider/{host}")
}

/// Changes the provider of [`OWN`].
fn change_provider(fake: &Fake, change: impl FnOnce(&mut Provider)) {
    let mut state = fake.state();
    change(state.providers.get_mut(&arn(OWN)).unwrap());
}

async fn recover(fake: &Fake, request: &RecoveryRequest) -> anyhow::Result<Recovery> {
    let scope = scope();
    executor(fake, &scope).recover_issuer(request).await
}

/// Killed before or after any call, or with a lost response, and run again: the same state.
#[tokio::test]
async fn a_recovery_continues_where_it_was_interrupted() {
    for url in [OWN, SHARED, ELSEWHERE] {
        for recreate in [Recreate::Missing, Recreate::All] {
            let request = request(url, recreate);
            let recover = async |fake: &Fake| recover(fake, &request).await;
            let what = format!("{url} {recreate:?}");
            let account = async || Fake::default();
            interruptions::is_continued(&what, account, recover, |_, _| {}).await;
        }
    }
}

#[tokio::test]
async fn what_exists_is_kept_unless_it_is_to_be_recreated() {
    for url in [OWN, SHARED, ELSEWHERE] {
        let fake = Fake::default();
        let missing = request(url, Recreate::Missing);
        let first = recover(&fake, &missing).await.unwrap();
        assert_eq!(first, Recovery::Done);
        let snapshot = fake.state().snapshot();
        fake.set_fault(None);
        let second = recover(&fake, &missing).await.unwrap();
        assert_eq!(second, Recovery::NothingMissing);
        assert_eq!(writes(&fake), [""; 0]);
        let all = request(url, Recreate::All);
        assert_eq!(recover(&fake, &all).await.unwrap(), Recovery::Done);
        assert!(!writes(&fake).is_empty());
        assert_eq!(fake.state().snapshot(), snapshot);
    }
}

#[tokio::test]
async fn only_what_is_lost_is_created() {
    let fake = Fake::default();
    let request = request(SHARED, Recreate::Missing);
    recover(&fake, &request).await.unwrap();
    let expected = fake.state().snapshot();

    let removed = fake.state().providers.remove(&arn(SHARED));
    assert!(removed.is_some());
    fake.set_fault(None);
    recover(&fake, &request).await.unwrap();
    let calls = writes(&fake);
    assert!(calls.len() == 1, "{calls:?}");
    assert!(calls[0].starts_with("CreateOpenIDConnectProvider"));

    let lost = |state: &mut State| state.buckets.get_mut("b")?.objects.remove(DISCOVERY);
    assert!(lost(&mut fake.state()).is_some());
    fake.set_fault(None);
    recover(&fake, &request).await.unwrap();
    let calls = writes(&fake);
    assert!(
        !calls.iter().any(|it| it.contains("OpenIDConnectProvider")),
        "{calls:?}"
    );
    assert_eq!(fake.state().snapshot(), expected);
}

#[tokio::test]
async fn a_provider_without_a_client_is_created_again() {
    let fake = Fake::default();
    let request = request(OWN, Recreate::Missing);
    recover(&fake, &request).await.unwrap();
    let expected = fake.state().snapshot();
    change_provider(&fake, |provider| {
        provider.clients.retain(|client| client != "openshift");
    });
    let second = recover(&fake, &request).await.unwrap();
    assert_eq!(second, Recovery::Done);
    assert_eq!(fake.state().snapshot(), expected);
}

#[tokio::test]
async fn providers_of_other_issuers_have_no_thumbprint() {
    for (url, expected) in [(OWN, 1), (ELSEWHERE, 0)] {
        let fake = Fake::default();
        let request = request(url, Recreate::Missing);
        recover(&fake, &request).await.unwrap();
        let state = fake.state();
        let provider = &state.providers[&arn(url)];
        assert_eq!(provider.thumbprints.len(), expected, "{url}");
        assert_eq!(provider.clients, ["openshift", "sts.amazonaws.com"]);
    }
}

#[tokio::test]
async fn settings_of_a_bucket_for_several_clusters_are_kept() {
    for (tags, objects) in [
        (vec![("team", "a")], vec![]),
        (vec![], vec![("b-x2/openid/v1/jwks", "{}")]),
    ] {
        let fake = Fake::default();
        let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let bucket = Bucket {
            tags: tags.into_iter().map(pair).collect(),
            policy: "theirs".to_owned(),
            objects: objects.into_iter().map(pair).collect(),
        };
        let before = bucket.clone();
        fake.state().buckets.insert("b".to_owned(), bucket);
        let request = request(SHARED, Recreate::Missing);
        recover(&fake, &request).await.unwrap();
        let state = fake.state();
        let after = &state.buckets["b"];
        assert_eq!((&after.tags, &after.policy), (&before.tags, &before.policy));
        assert_eq!(after.objects.len(), before.objects.len() + 2);
    }
}

#[tokio::test]
async fn issuers_of_other_clusters_are_not_changed() {
    let theirs = || Scope::new("b-x2", "b", "us-east-1", Tags::new()).unwrap();
    let request = request(OWN, Recreate::All);
    let of_bucket = Fake::default();
    let bucket = Bucket {
        tags: theirs().tags("a-x1-oidc"),
        ..Bucket::default()
    };
    let name = "a-x1-oidc".to_owned();
    of_bucket.state().buckets.insert(name, bucket);
    let of_provider = Fake::default();
    recover(&of_provider, &request).await.unwrap();
    change_provider(&of_provider, |provider| {
        provider.tags = theirs().tags("b-x2");
    });
    for fake in [of_bucket, of_provider] {
        fake.set_fault(None);
        let before = fake.state().snapshot();
        let error = format!("{:#}", recover(&fake, &request).await.unwrap_err());
        assert!(error.contains("belongs to another cluster"), "{error}");
        assert_eq!(fake.state().snapshot(), before);
        assert_eq!(writes(&fake), [""; 0]);
    }
}

/// Tokens of the other key would be valid for roles of the cluster that has the documents.
#[tokio::test]
async fn documents_of_another_key_are_not_replaced() {
    for (url, stored) in [
        (SHARED, "{\"keys\": [{\"kid\": \"a<b\"}]}"),
        (OWN, "no JSON"),
    ] {
        let fake = Fake::default();
        let keys = ("a-x1/openid/v1/jwks".to_owned(), stored.to_owned());
        let bucket = Bucket {
            objects: [keys].into_iter().collect(),
            ..Bucket::default()
        };
        for name in ["b", "a-x1-oidc"] {
            fake.state().buckets.insert(name.to_owned(), bucket.clone());
        }
        for recreate in [Recreate::Missing, Recreate::All] {
            let error = recover(&fake, &request(url, recreate)).await.unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains("another key"), "{url}: {error}");
            assert_eq!(writes(&fake), [""; 0]);
        }
    }
}

#[tokio::test]
async fn lost_documents_need_the_hosted_cluster() {
    let fake = Fake::default();
    let without_key = RecoveryRequest {
        documents: None,
        ..request(OWN, Recreate::Missing)
    };
    let error = recover(&fake, &without_key).await.unwrap_err().to_string();
    assert!(error.contains("--hc-name"), "{error}");
    assert_eq!(writes(&fake), [""; 0]);
    // With its documents, only the provider is created.
    recover(&fake, &request(OWN, Recreate::Missing))
        .await
        .unwrap();
    let expected = fake.state().snapshot();
    fake.state().providers.clear();
    recover(&fake, &without_key).await.unwrap();
    assert_eq!(fake.state().snapshot(), expected);
}

#[tokio::test]
async fn a_dry_run_of_a_recovery_writes_nothing() {
    let fake = Fake::default();
    let scope = scope();
    let executor = executor(&fake, &scope);
    let all = request(OWN, Recreate::All);
    executor.report_recovery(&all).await.unwrap();
    executor.recover_issuer(&all).await.unwrap();
    fake.set_fault(None);
    executor.report_recovery(&all).await.unwrap();
    assert_eq!(writes(&fake), [""; 0]);
}
