//! Roles of the operator, and the role of this command.

use std::collections::BTreeSet;

use super::super::call::Service;
use super::super::fake::{Provider, Role};
use super::super::operator_roles::{OperatorRoles, OperatorRolesOutput, Trust};
use super::*;

const ISSUER: &str = "arn:aws:iam::1:oidc-provider/issuer.example.com/a";

fn request() -> OperatorRoles {
    let trust = Trust::issuer("https://issuer.example.com/a").unwrap();
    OperatorRoles::new("hypershift", "hypershift", "documents", None, trust).unwrap()
}

/// An account with the identity provider of a management cluster.
fn account() -> Fake {
    let fake = Fake::default();
    let mut state = fake.state();
    state
        .providers
        .insert(ISSUER.to_owned(), Provider::default());
    drop(state);
    fake
}

async fn create_operator_roles(fake: &Fake) -> anyhow::Result<OperatorRolesOutput> {
    let scope = scope();
    executor(fake, &scope)
        .create_operator_roles(&request())
        .await
}

async fn create_cli_role(fake: &Fake) -> anyhow::Result<String> {
    let scope = scope();
    executor(fake, &scope).create_cli_role("cli").await
}

#[tokio::test]
async fn roles_of_the_operator_are_described_by_their_arns() {
    let fake = account();
    let output = create_operator_roles(&fake).await.unwrap();
    let expected = serde_json::json!({
        "operatorEC2RoleARN": "arn:role/hypershift-operator-ec2",
        "operatorOIDCS3RoleARN": "arn:role/hypershift-operator-oidc-s3",
        "externalDNSRoleARN": "arn:role/hypershift-external-dns",
    });
    assert_eq!(serde_json::to_value(&output).unwrap(), expected);
    let state = fake.state();
    let role = &state.roles["hypershift-operator-ec2"];
    assert!(role.trust.contains(ISSUER), "{}", role.trust);
    assert_eq!(role.tags["hypershift.openshift.io/role-of"], "operator");
    // A role of no cluster is not deleted with one.
    assert!(
        !role
            .tags
            .keys()
            .any(|key| key.starts_with("kubernetes.io/"))
    );
}

#[tokio::test]
async fn roles_need_the_identity_provider_of_their_issuer() {
    let fake = Fake::default();
    let error = create_operator_roles(&fake).await.unwrap_err().to_string();
    assert!(error.contains("--instance-role-arn"), "{error}");
    assert_eq!(writes(&fake), [""; 0]);
}

/// Killed before or after any call, or with a lost response, and run again: the same state.
#[tokio::test]
async fn interrupted_creations_of_roles_are_continued() {
    let create = async |fake: &Fake| {
        let operator = create_operator_roles(fake).await;
        let cli = create_cli_role(fake).await;
        operator?;
        cli
    };
    interruptions::is_continued("roles", async || account(), create, |_, _| {}).await;
}

#[tokio::test]
async fn roles_of_others_are_not_changed() {
    for name in ["hypershift-operator-oidc-s3", "cli"] {
        let fake = account();
        let theirs = Role {
            trust: "theirs".to_owned(),
            ..Role::default()
        };
        fake.state().roles.insert(name.to_owned(), theirs);
        let error = match name {
            "cli" => create_cli_role(&fake).await.map(drop),
            _ => create_operator_roles(&fake).await.map(drop),
        };
        let error = format!("{:#}", error.unwrap_err());
        assert!(error.contains("aws iam tag-role"), "{error}");
        let state = fake.state();
        assert_eq!(state.roles[name].trust, "theirs");
        assert!(state.roles[name].policies.is_empty());
    }
}

#[tokio::test]
async fn a_dry_run_for_roles_writes_nothing() {
    let fake = account();
    let scope = scope();
    let executor = executor(&fake, &scope);
    executor.report_operator_roles(&request()).await.unwrap();
    executor.report_cli_role("cli").await.unwrap();
    assert_eq!(writes(&fake), [""; 0]);
}

/// The ARN of a session is valid for that session only.
#[tokio::test]
async fn the_role_of_the_command_is_for_the_role_of_a_session() {
    let fake = account();
    fake.state().caller_arn = Some("arn:aws:sts::1:assumed-role/admin/me".to_owned());
    let error = create_cli_role(&fake).await.unwrap_err().to_string();
    assert!(error.contains("role admin"), "{error}");
    let admin = Role::default();
    fake.state().roles.insert("admin".to_owned(), admin);
    assert_eq!(create_cli_role(&fake).await.unwrap(), "arn:role/cli");
    let trust = fake.state().roles["cli"].trust.clone();
    assert!(trust.contains("\"arn:role/admin\""), "{trust}");
}

/// The permission that a call needs.
fn permission(call: &Call) -> String {
    let service = match call.service {
        Service::Ec2 => "ec2",
        Service::Elb | Service::ElbV2 => "elasticloadbalancing",
        Service::Iam => "iam",
        Service::Ram => "ram",
        Service::Route53 => "route53",
        Service::S3 => "s3",
        Service::Sts => "sts",
    };
    let action = match (call.service, call.action) {
        (Service::S3, "HeadBucket" | "ListObjectsV2") => "ListBucket",
        (Service::S3, "ListBuckets") => "ListAllMyBuckets",
        (Service::S3, "DeleteObjects") => "DeleteObject",
        (Service::S3, "DeletePublicAccessBlock") => "PutBucketPublicAccessBlock",
        (_, action) => action,
    };
    format!("{service}:{action}")
}

#[tokio::test]
async fn the_role_of_the_command_may_create_and_destroy_clusters() {
    let fake = Fake::with_zone(BASE);
    create(&fake).await.unwrap();
    destroy(&fake).await.unwrap();
    let needed: BTreeSet<_> = fake.state().calls.iter().map(permission).collect();
    assert!(needed.len() > 40, "{needed:?}");
    create_cli_role(&fake).await.unwrap();
    let policy = fake.state().roles["cli"].policies["cli"].clone();
    let policy: serde_json::Value = serde_json::from_str(&policy).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let actions = statements.iter().map(|it| &it["Action"]);
    let actions = actions.flat_map(|it| it.as_array().into_iter().flatten());
    let allowed: BTreeSet<_> = actions
        .filter_map(|action| Some(action.as_str()?.to_owned()))
        .collect();
    let missing: Vec<_> = needed.difference(&allowed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
