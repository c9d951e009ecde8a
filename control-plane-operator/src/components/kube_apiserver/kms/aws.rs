//! Encryption by AWS KMS, with an IAM role of the user.

use api::hypershift::v1beta1::secret_encryption::{AwsKmsKeyEntry, AwsKmsSpec};
use control_plane_component::Context;
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use super::{Api, Plugin, SOCKETS, Token, container, edit, minter};
use crate::encryption::key::aws_name;

/// The release's name of the plugin's image.
const IMAGE: &str = "aws-kms-encryption-provider";
/// Annotation: overrides the image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/aws-kms-provider-image";
/// The Secret with the role, and the volume of it.
const CREDENTIALS: (&str, &str) = ("kms-creds", "aws-kms-credentials");
const SOCKET_DIRECTORY: &str = "/var/run";
/// Name and health port of the plugin of each key.
const ROLES: [(&str, i32); 2] = [("active", 8080), ("backup", 8081)];
/// How many decrypted keys the API server remembers with version 1 of the API, which asks for each object.
const CACHE_SIZE: i32 = 100;
const TOKEN: Token = Token {
    volume: "aws-kms-token",
    directory: "/var/run/secrets/openshift/serviceaccount",
    kubeconfig: "/var/secrets/localhost-kubeconfig",
};

pub(super) fn plugin(
    context: &Context<'_>,
    aws: &AwsKmsSpec,
    keys: &[&AwsKmsKeyEntry],
    api: Api,
) -> Plugin {
    let mut plugin = Plugin {
        sockets: SOCKET_DIRECTORY,
        containers: vec![minter("aws-kms-token-minter", &TOKEN)],
        volumes: volumes().into_iter().map(edit::from_json).collect(),
        providers: Vec::new(),
    };
    for ((role, port), key) in ROLES.into_iter().zip(keys) {
        let socket = format!("{SOCKET_DIRECTORY}/awskms{role}.sock");
        plugin.providers.push(provider(api, key, &socket));
        let mut container = container(&format!("aws-kms-{role}"), IMAGE, port, "healthz");
        container.args = Some(vec![
            format!("--key={}", key.arn),
            format!("--region={}", aws.region),
            format!("--listen={socket}"),
            format!("--health-port=:{port}"),
        ]);
        edit::image_by(context, &mut container, IMAGE_ANNOTATION);
        authenticate(&mut container);
        plugin.containers.push(container);
    }
    plugin
}

fn provider(api: Api, key: &AwsKmsKeyEntry, socket: &str) -> Value {
    let mut provider = api.provider(&aws_name(key), socket);
    if api == Api::V1 {
        provider["kms"]["cachesize"] = json!(CACHE_SIZE);
    }
    provider
}

/// Configures credentials: the role is assumed with a token of the guest.
fn authenticate(container: &mut Container) {
    edit::env(container, "AWS_SHARED_CREDENTIALS_FILE", "/aws/credentials");
    edit::env(container, "AWS_SDK_LOAD_CONFIG", "true");
    edit::env(container, "AWS_EC2_METADATA_DISABLED", "true");
    container.volume_mounts = Some(edit::from_json(json!([
        { "name": SOCKETS, "mountPath": SOCKET_DIRECTORY },
        { "name": CREDENTIALS.1, "mountPath": "/aws" },
        { "name": TOKEN.volume, "mountPath": TOKEN.directory },
    ])));
}

fn volumes() -> [Value; 2] {
    let (secret, volume) = CREDENTIALS;
    [
        json!({ "name": volume, "secret": { "secretName": secret } }),
        json!({ "name": TOKEN.volume, "emptyDir": { "medium": "Memory" } }),
    ]
}
