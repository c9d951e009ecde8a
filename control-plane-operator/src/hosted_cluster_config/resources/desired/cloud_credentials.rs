//! Credentials with which operators and drivers in the cluster use the cloud.

mod openstack;

use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Object, secret};

const CSI_DRIVERS: &str = "openshift-cluster-csi-drivers";
const INGRESS: (&str, &str) = ("openshift-ingress-operator", "cloud-credentials");
const REGISTRY: (&str, &str) = ("openshift-image-registry", "installer-cloud-credentials");
/// Token of the service account that is exchanged for credentials.
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";
const API_KEY: &str = "ibmcloud_api_key";

/// A Secret, and the identity that it is for.
struct Use {
    place: (&'static str, &'static str),
    identity: &'static str,
}

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    match input.platform() {
        "AWS" => aws(input, desired),
        "Azure" => azure(input, desired),
        "GCP" => gcp(input, desired),
        "OpenStack" => openstack::build(input, desired),
        "PowerVS" => power_vs(input, desired),
        _ => {}
    }
}

/// The Secrets of the registry, of ingress and of storage. A disabled component needs none.
fn uses(
    input: &Input<'_>,
    storage: &[Use],
    ingress: &'static str,
    registry: &'static str,
) -> Vec<Use> {
    let storage = storage.iter().map(|it| Use { ..*it });
    let mut uses: Vec<_> = storage.collect();
    if input.has_capability("Ingress") {
        uses.push(Use {
            place: INGRESS,
            identity: ingress,
        });
    }
    if input.has_capability("ImageRegistry") {
        uses.push(Use {
            place: REGISTRY,
            identity: registry,
        });
    }
    uses
}

fn aws(input: &Input<'_>, desired: &mut Desired) {
    let storage = [Use {
        place: (CSI_DRIVERS, "ebs-cloud-credentials"),
        identity: "storageARN",
    }];
    for it in uses(input, &storage, "ingressARN", "imageRegistryARN") {
        let object = format!("Secret {}/{}", it.place.0, it.place.1);
        let role = format!("/platform/aws/rolesRef/{}", it.identity);
        let (role, region) = (input.text(&role), input.text("/platform/aws/region"));
        if !is_value(role) || !is_value(region) {
            let problem = format!(
                "region and role {} must be set, without line breaks",
                it.identity
            );
            desired.errors.push(Error::invalid(object, problem));
            continue;
        }
        let text = format!(
            "[default]\nrole_arn = {role}\nweb_identity_token_file = {TOKEN}\n\
             sts_regional_endpoints = regional\nregion = {region}\n"
        );
        let value = opaque(it.place, &[("credentials", text.as_bytes())]);
        desired.add(Object::enforce(value).with_foreign_namespace());
    }
}

fn azure(input: &Input<'_>, desired: &mut Desired) {
    let (storage, ingress, registry) = if input.is_managed_azure() {
        (
            ["diskMSIClientID", "fileMSIClientID"],
            "",
            "imageRegistryMSIClientID",
        )
    } else {
        (["disk", "file"], "ingress", "imageRegistry")
    };
    let storage = [
        Use {
            place: (CSI_DRIVERS, "azure-disk-credentials"),
            identity: storage[0],
        },
        Use {
            place: (CSI_DRIVERS, "azure-file-credentials"),
            identity: storage[1],
        },
    ];
    let of = |field: &str| input.text(&format!("/platform/azure/{field}")).as_bytes();
    let prefix = format!("{}-{}", input.name(), input.text("/infraID"));
    for it in uses(input, &storage, ingress, registry) {
        let data = [
            ("azure_federated_token_file", TOKEN.as_bytes()),
            ("azure_region", of("location")),
            ("azure_resource_prefix", prefix.as_bytes()),
            ("azure_resourcegroup", of("resourceGroup")),
            ("azure_subscription_id", of("subscriptionID")),
            ("azure_tenant_id", of("tenantID")),
            ("azure_client_id", client_id(input, it.identity).as_bytes()),
        ];
        desired.add(Object::enforce(secret(it.place.0, it.place.1, &data)));
    }
}

fn client_id<'a>(input: &Input<'a>, identity: &str) -> &'a str {
    let authentication = "/platform/azure/azureAuthenticationConfig";
    match identity {
        // Ingress authenticates in the management cluster.
        "" => "fakeClientID",
        _ if input.is_managed_azure() => input.text(&format!(
            "{authentication}/managedIdentities/dataPlane/{identity}"
        )),
        _ => input.text(&format!(
            "{authentication}/workloadIdentities/{identity}/clientID"
        )),
    }
}

fn power_vs(input: &Input<'_>, desired: &mut Desired) {
    let storage = [Use {
        place: (CSI_DRIVERS, "ibm-powervs-cloud-credentials"),
        identity: "storageOperatorCloudCreds",
    }];
    let uses = uses(
        input,
        &storage,
        "ingressOperatorCloudCreds",
        "imageRegistryOperatorCloudCreds",
    );
    for it in uses {
        let object = format!("Secret {}/{}", it.place.0, it.place.1);
        let name = input.text(&format!("/platform/powervs/{}/name", it.identity));
        let key = input.secret_value(&object, name, API_KEY);
        desired
            .attempt(key.map(|key| Object::merge(opaque(it.place, &[(API_KEY, key.as_slice())]))));
    }
}

fn gcp(input: &Input<'_>, desired: &mut Desired) {
    if !input.has_capability("ImageRegistry") {
        return;
    }
    let identity = "/platform/gcp/workloadIdentity";
    let of = |field: &str| input.text(&format!("{identity}/{field}"));
    let (project, pool, provider) = (of("projectNumber"), of("poolID"), of("providerID"));
    let account = of("serviceAccountsEmails/imageRegistry");
    if [project, pool, provider, account].contains(&"") {
        let object = format!("Secret {}/{}", REGISTRY.0, REGISTRY.1);
        let problem = "projectNumber, poolID, providerID and the registry's e-mail must be set";
        desired.errors.push(Error::invalid(object, problem));
        return;
    }
    let pools = format!("projects/{project}/locations/global/workloadIdentityPools/{pool}");
    let account = format!("projects/-/serviceAccounts/{account}:generateAccessToken");
    let config = json!({
        "type": "external_account",
        "audience": format!("//iam.googleapis.com/{pools}/providers/{provider}"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "service_account_impersonation_url": format!("https://iamcredentials.googleapis.com/v1/{account}"),
        "credential_source": { "file": TOKEN, "format": { "type": "text" } },
    });
    let value = opaque(
        REGISTRY,
        &[("service_account.json", config.to_string().as_bytes())],
    );
    desired.add(Object::enforce(value).with_foreign_namespace());
}

/// Whether a text can be a value in a file with one setting per line.
fn is_value(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

fn opaque((namespace, name): (&str, &str), data: &[(&str, &[u8])]) -> Value {
    let mut value = secret(namespace, name, data);
    value["type"] = json!("Opaque");
    value
}
