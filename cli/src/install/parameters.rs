//! Values of an installation that are filled in later: parameters of a Template of OpenShift, values of a Helm chart. Pure.

use serde_json::{Value, json};

use super::options::{Options, Types};
use crate::Usage;

/// A value that can be filled in later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// Its name in a Template.
    name: &'static str,
    /// Its path in the values of a chart. What a chart knows by itself has none.
    path: Option<&'static str>,
    about: &'static str,
}

/// Declares values: name in a Template, path in a chart, and what it is.
const fn known(name: &'static str, path: &'static str, about: &'static str) -> Known {
    Known {
        name,
        path: Some(path),
        about,
    }
}

const NAMESPACE: Known = Known {
    name: "NAMESPACE",
    path: None,
    about: "Namespace of the operator",
};
const IMAGE: Known = known(
    "OPERATOR_IMG",
    "image",
    "Image of the operators, without its tag",
);
const TAG: Known = known("IMAGE_TAG", "imagetag", "Tag of the image of the operators");
const PROXY: Known = known("CAPI_PROXY_IMG", "capiProxyImage", "Image of the proxy");
const OVERRIDES: Known = known(
    "REGISTRY_OVERRIDES",
    "registryOverrides",
    "Registries of release images and their mirrors, in the form SOURCE=MIRROR,...",
);
const KEY_VAULT: Known = known(
    "AZURE_KEYVAULT_CLIENT_ID",
    "azure.keyVault.clientId",
    "Client ID of the identity that reads certificates of managed identities",
);
pub(super) const OIDC_NAME: Known = known(
    "OIDC_S3_NAME",
    "oidc.s3.name",
    "Bucket of S3 for OIDC documents",
);
pub(super) const OIDC_REGION: Known =
    known("OIDC_S3_REGION", "oidc.s3.region", "Region of the bucket");
pub(super) const OIDC_SECRET: Known = known(
    "OIDC_S3_CREDS_SECRET",
    "oidc.s3.credsSecret",
    "Secret with the credentials for the bucket",
);
pub(super) const OIDC_KEY: Known = known(
    "OIDC_S3_CREDS_SECRET_KEY",
    "oidc.s3.credsSecretKey",
    "Key of the Secret with the credentials for the bucket",
);
pub(super) const AWS_REGION: Known = known(
    "AWS_PRIVATE_REGION",
    "aws.private.region",
    "Region of the management cluster on AWS",
);
pub(super) const AWS_SECRET: Known = known(
    "AWS_PRIVATE_CREDS_SECRET",
    "aws.private.credsSecret",
    "Secret with the credentials for VPC endpoint services on AWS",
);
pub(super) const AWS_KEY: Known = known(
    "AWS_PRIVATE_CREDS_SECRET_KEY",
    "aws.private.credsSecretKey",
    "Key of the Secret with the credentials for VPC endpoint services on AWS",
);
pub(super) const DNS_SECRET: Known = known(
    "EXTERNAL_DNS_CREDS_SECRET",
    "externaldns.credsSecret",
    "Secret with the credentials of ExternalDNS",
);
pub(super) const DNS_DOMAIN: Known = known(
    "EXTERNAL_DNS_DOMAIN_FILTER",
    "externaldns.domainFilter",
    "Domain of the host names that ExternalDNS publishes",
);
pub(super) const DNS_OWNER: Known = known(
    "EXTERNAL_DNS_TXT_OWNER_ID",
    "externaldns.txtOwnerId",
    "Owner of the DNS records of ExternalDNS, another one for each management cluster",
);
pub(super) const DNS_IMAGE: Known = known(
    "EXTERNAL_DNS_IMAGE",
    "externaldns.image",
    "Image of ExternalDNS",
);
pub(super) const DNS_PROJECT: Known = known(
    "EXTERNAL_DNS_GOOGLE_PROJECT",
    "externaldns.googleProject",
    "Project of the zones on Google Cloud",
);
pub(super) const DNS_INTERVAL: Known = known(
    "EXTERNAL_DNS_INTERVAL",
    "externaldns.interval",
    "Time between two comparisons of all DNS records",
);
pub(super) const DNS_ZONES_CACHE: Known = known(
    "EXTERNAL_DNS_AWS_ZONES_CACHE_DURATION",
    "externaldns.awsZonesCacheDuration",
    "Time for which the list of zones on AWS is not read again",
);
/// Variable of the operators with the registries.
const OVERRIDES_VARIABLE: &str = "REGISTRY_OVERRIDES";
/// Variable of the operators with the client ID.
const KEY_VAULT_VARIABLE: &str = "ARO_HCP_KEY_VAULT_USER_CLIENT_ID";
/// What stands for the beginning of an expression in a chart's template.
const OPEN: &str = "{{ `{{` }}";

/// What can be filled in, and what was given for it.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(Known, String)>);

// === impl Known ===

impl Known {
    /// What stands for the value, as Templates have it.
    fn token(self) -> String {
        format!("${{{}}}", self.name)
    }

    /// What stands for the value in the template of a chart.
    fn expression(self) -> String {
        match self.path {
            Some(path) => format!("{{{{ .Values.{path} }}}}"),
            None => "{{ .Release.Namespace }}".to_owned(),
        }
    }
}

// === impl Parameters ===

impl Parameters {
    /// Takes the values out of `options`, and leaves in their place what stands for them.
    pub(super) fn extract(options: &mut Options) -> Result<Self, Usage> {
        let mut parameters = Self::default();
        if let Types::Private(private) = &mut options.types {
            if private.conversion.is_some() {
                let message = "--enable-conversion-webhook: its CRDs and certificate are for one namespace, which a Template \
                               or chart leaves open; render manifests instead";
                return Err(Usage::new(&message));
            }
            parameters.take(PROXY, &mut private.proxy_image);
        }
        parameters.take(NAMESPACE, &mut options.namespace);
        parameters.take_image(&mut options.operator_image);
        parameters.take_overrides(&mut options.environment);
        let mut variables = options.managed_service.iter_mut();
        if let Some((_, id)) = variables.find(|(name, _)| *name == KEY_VAULT_VARIABLE) {
            parameters.take(KEY_VAULT, id);
        }
        if let Some(storage) = &mut options.oidc_storage {
            storage.parameterize(&mut parameters);
        }
        if let Some(links) = &mut options.private_links {
            links.parameterize(&mut parameters);
        }
        if let Some(external_dns) = &mut options.external_dns {
            external_dns.parameterize(&mut parameters);
        }
        Ok(parameters)
    }

    /// Takes a value, and leaves what stands for it.
    pub(super) fn take(&mut self, known: Known, value: &mut String) {
        let given = std::mem::replace(value, known.token());
        self.0.push((known, given));
    }

    /// An image has two parameters. A digest is split like a tag: both follow the last colon.
    fn take_image(&mut self, image: &mut String) {
        let (mut name, mut tag) = match image.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name.to_owned(), tag.to_owned()),
            _ => (image.clone(), "latest".to_owned()),
        };
        self.take(IMAGE, &mut name);
        self.take(TAG, &mut tag);
        *image = format!("{name}:{tag}");
    }

    /// The parameter is there even if nothing is given for it yet.
    fn take_overrides(&mut self, environment: &mut Vec<(String, String)>) {
        let mut variables = environment.iter_mut();
        if let Some((_, value)) = variables.find(|(name, _)| name == OVERRIDES_VARIABLE) {
            self.take(OVERRIDES, value);
            return;
        }
        let mut value = String::new();
        self.take(OVERRIDES, &mut value);
        environment.push((OVERRIDES_VARIABLE.to_owned(), value));
    }

    /// As a Template declares them.
    pub(super) fn declared(&self) -> Vec<Value> {
        let all = self.0.iter();
        all.map(|(known, value)| declared(known.name, known.about, value))
            .collect()
    }

    /// As the file `values.yaml` of a chart has them.
    pub(super) fn values(&self) -> Value {
        let mut values = json!({});
        for (known, value) in &self.0 {
            let Some(path) = known.path else {
                continue;
            };
            let mut place = &mut values;
            for key in path.split('.') {
                place = &mut place[key];
            }
            *place = json!(value);
        }
        values
    }

    /// An object as the template of a chart has it.
    pub(super) fn in_chart(&self, object: &Value) -> Value {
        match object {
            Value::String(text) => {
                let escaped = text.replace("{{", OPEN);
                let filled = self.0.iter().fold(escaped, |text, (known, _)| {
                    text.replace(&known.token(), &known.expression())
                });
                Value::String(filled)
            }
            Value::Array(items) => items.iter().map(|item| self.in_chart(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                fields
                    .map(|(name, value)| (name.clone(), self.in_chart(value)))
                    .collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => object.clone(),
        }
    }
}

/// A parameter as a Template declares it.
pub(super) fn declared(name: &str, about: &str, value: &str) -> Value {
    json!({ "name": name, "description": about, "value": value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_split_where_they_can_be_joined_again() {
        for (given, name, tag) in [
            ("registry.example.com/a:v1", "registry.example.com/a", "v1"),
            (
                "registry.example.com:5000/a",
                "registry.example.com:5000/a",
                "latest",
            ),
            (
                "registry.example.com/a@sha256:0",
                "registry.example.com/a@sha256",
                "0",
            ),
        ] {
            let mut image = given.to_owned();
            let mut parameters = Parameters::default();
            parameters.take_image(&mut image);
            assert_eq!(image, "${OPERATOR_IMG}:${IMAGE_TAG}");
            let values = json!({ "image": name, "imagetag": tag });
            assert_eq!(parameters.values(), values, "{given}");
        }
    }

    #[test]
    fn templates_of_a_chart_name_values_and_escape_other_expressions() {
        let mut parameters = Parameters::default();
        let (mut namespace, mut name) = ("hypershift".to_owned(), "documents".to_owned());
        parameters.take(NAMESPACE, &mut namespace);
        parameters.take(OIDC_NAME, &mut name);
        let object = json!({
            "name": format!("{namespace}-a"),
            "list": [format!("--bucket={name}"), "${OTHER}", "{{ $labels.job }}", 1],
        });
        let expected = json!({
            "name": "{{ .Release.Namespace }}-a",
            "list": ["--bucket={{ .Values.oidc.s3.name }}", "${OTHER}", "{{ `{{` }} $labels.job }}", 1],
        });
        assert_eq!(parameters.in_chart(&object), expected);
        let values = json!({ "oidc": { "s3": { "name": "documents" } } });
        assert_eq!(parameters.values(), values);
    }

    #[test]
    fn registries_can_always_be_replaced() {
        for (given, value) in [
            (vec![], ""),
            (
                vec![("REGISTRY_OVERRIDES".to_owned(), "a=b".to_owned())],
                "a=b",
            ),
        ] {
            let mut environment = given;
            let mut parameters = Parameters::default();
            parameters.take_overrides(&mut environment);
            let token = "${REGISTRY_OVERRIDES}".to_owned();
            assert_eq!(environment, [("REGISTRY_OVERRIDES".to_owned(), token)]);
            let declared = &parameters.declared()[0];
            assert_eq!(declared["value"], value);
        }
    }
}
