//! Encryption by AWS KMS, with an IAM role of the user.

use api::hypershift::v1beta1::secret_encryption::AwsKmsSpec;
use control_plane_component::Context;
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use super::{Plugin, SOCKETS, Token, container, edit, minter, provider};
use crate::components::kube_apiserver::encryption::fnv1;

/// The release's name of the plugin's image.
const IMAGE: &str = "aws-kms-encryption-provider";
/// Annotation: overrides the image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/aws-kms-provider-image";
/// The Secret with the role, and the volume of it.
const CREDENTIALS: (&str, &str) = ("kms-creds", "aws-kms-credentials");
const SOCKET_DIRECTORY: &str = "/var/run";
const TOKEN: Token = Token {
    volume: "aws-kms-token",
    directory: "/var/run/secrets/openshift/serviceaccount",
    kubeconfig: "/var/secrets/localhost-kubeconfig",
};

pub(super) fn plugin(context: &Context<'_>, aws: &AwsKmsSpec) -> Plugin {
    let backup = aws.backup_key.as_ref().filter(|key| !key.arn.is_empty());
    let keys = [
        ("active", 8080, Some(&aws.active_key)),
        ("backup", 8081, backup),
    ];
    let mut plugin = Plugin {
        sockets: SOCKET_DIRECTORY,
        containers: vec![minter("aws-kms-token-minter", &TOKEN)],
        volumes: volumes().into_iter().map(edit::from_json).collect(),
        providers: Vec::new(),
    };
    for (role, port, key) in keys {
        let Some(key) = key else { continue };
        let socket = format!("{SOCKET_DIRECTORY}/awskms{role}.sock");
        let name = format!("awskmskey-{}", fnv1(key.arn.as_bytes()));
        plugin.providers.push(provider(&name, &socket));
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
