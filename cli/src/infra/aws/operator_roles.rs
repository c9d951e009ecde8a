//! The roles of AWS that the operator and external-dns on a management cluster assume.

use anyhow::bail;
use serde::Serialize;
use serde_json::{Value, json};

use super::call::Calls;
use super::executor::Executor;
use super::named_role::{NamedRole, document};
use crate::Usage;
use crate::create::text;

const PURPOSE: &str = "operator";
/// The longest prefix, so that names of roles have at most 64 characters.
const LONGEST_PREFIX: usize = 47;
/// The service accounts of the operators that an installation may have.
const OPERATORS: [&str; 2] = ["operator", "operator-legacy"];
const EXTERNAL_DNS: [&str; 1] = ["external-dns"];

const EC2: [&str; 10] = [
    "ec2:CreateVpcEndpointServiceConfiguration",
    "ec2:DeleteVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpointServicePermissions",
    "ec2:ModifyVpcEndpointServicePermissions",
    "ec2:DescribeVpcEndpointConnections",
    "ec2:RejectVpcEndpointConnections",
    "ec2:CreateTags",
    "ec2:DescribeInstanceTypes",
    "elasticloadbalancing:DescribeLoadBalancers",
];
/// The operator reads documents before it replaces or deletes them.
const OBJECTS: [&str; 3] = ["s3:PutObject", "s3:GetObject", "s3:DeleteObject"];
/// Without it S3 reports an object that does not exist as forbidden.
const BUCKET: [&str; 1] = ["s3:ListBucket"];
const DNS: [&str; 3] = [
    "route53:ListHostedZones",
    "route53:GetHostedZone",
    "route53:GetChange",
];
const RECORDS: [&str; 2] = [
    "route53:ChangeResourceRecordSets",
    "route53:ListResourceRecordSets",
];

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperatorRoles {
    /// The beginning of the names of the roles.
    prefix: String,
    /// The namespace of the operator.
    namespace: String,
    /// The bucket with OIDC documents.
    bucket: String,
    /// The hosted zone of published names; all zones without it.
    zone: Option<String>,
    trust: Trust,
}

/// Who assumes the roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Service accounts, with tokens of the management cluster's issuer: its host and path.
    Issuer(String),
    /// The nodes of the management cluster: the ARN of their role.
    Instances(String),
}

/// The file that `install --aws-operator-roles-file` reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct OperatorRolesOutput {
    #[serde(rename = "operatorEC2RoleARN")]
    pub(crate) ec2: String,
    #[serde(rename = "operatorOIDCS3RoleARN")]
    pub(crate) oidc_s3: String,
    #[serde(rename = "externalDNSRoleARN")]
    pub(crate) external_dns: String,
}

// === impl Trust ===

impl Trust {
    pub(crate) fn issuer(url: &str) -> Result<Self, Usage> {
        let host = url.strip_prefix("https://").unwrap_or_default();
        let host = host.trim_end_matches('/');
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(Usage::new(&format!(
                "--oidc-issuer-url {url:?}: write the https URL of the management cluster's issuer"
            )));
        }
        Ok(Self::Issuer(host.to_owned()))
    }

    pub(crate) fn instances(role: &str) -> Result<Self, Usage> {
        let is_arn = role.starts_with("arn:") && role.contains(":role/");
        if !is_arn || role.contains(char::is_whitespace) {
            return Err(Usage::new(&format!(
                "--instance-role-arn {role:?} is not the ARN of a role (for example arn:aws:iam::123456789012:role/worker)"
            )));
        }
        Ok(Self::Instances(role.to_owned()))
    }
}

// === impl OperatorRoles ===

impl OperatorRoles {
    /// Checks what becomes a part of names and ARNs.
    pub(crate) fn new(
        prefix: &str,
        namespace: &str,
        bucket: &str,
        zone: Option<&str>,
        trust: Trust,
    ) -> Result<Self, Usage> {
        let is_of_role = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c);
        if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !prefix.chars().all(is_of_role) {
            return Err(Usage::new(&format!(
                "--name-prefix {prefix:?}: use letters, digits and +=,.@_- , at most {LONGEST_PREFIX}"
            )));
        }
        if !text::is_name(namespace) {
            return Err(Usage::new(&format!(
                "--operator-namespace {namespace:?} is not the name of a namespace"
            )));
        }
        if !text::is_name(bucket) {
            return Err(Usage::new(&format!(
                "--oidc-storage-provider-s3-bucket-name {bucket:?}: use lower-case letters, digits and dashes"
            )));
        }
        let zone = zone.map(|zone| zone.trim_start_matches("/hostedzone/"));
        let is_zone = |zone: &str| !zone.is_empty() && zone.chars().all(char::is_alphanumeric);
        if let Some(zone) = zone.filter(|zone| !is_zone(zone)) {
            return Err(Usage::new(&format!(
                "--route53-hosted-zone-id {zone:?} is not the identifier of a hosted zone (for example Z0123456789ABC)"
            )));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            namespace: namespace.to_owned(),
            bucket: bucket.to_owned(),
            zone: zone.map(str::to_owned),
            trust,
        })
    }

    /// The roles: of private links, of OIDC documents, and of external-dns. `provider` is the ARN of the issuer's provider.
    fn roles(&self, partition: &str, provider: Option<&str>) -> [NamedRole; 3] {
        let role = |suffix: &str, accounts: &[&str], statements: &[Value]| NamedRole {
            name: format!("{}-{suffix}", self.prefix),
            purpose: PURPOSE,
            trust: self.trust_document(accounts, provider),
            policy: document(statements),
        };
        let bucket = format!("arn:{partition}:s3:::{}", self.bucket);
        let zone = self.zone.as_deref().unwrap_or("*");
        let zone = format!("arn:{partition}:route53:::hostedzone/{zone}");
        [
            role("operator-ec2", &OPERATORS, &[allow(&EC2, "*")]),
            role(
                "operator-oidc-s3",
                &OPERATORS,
                &[
                    allow(&OBJECTS, &format!("{bucket}/*")),
                    allow(&BUCKET, &bucket),
                ],
            ),
            role(
                "external-dns",
                &EXTERNAL_DNS,
                &[allow(&DNS, "*"), allow(&RECORDS, &zone)],
            ),
        ]
    }

    fn trust_document(&self, accounts: &[&str], provider: Option<&str>) -> Value {
        let statement = match &self.trust {
            Trust::Instances(role) => json!({
                "Effect": "Allow",
                "Principal": { "AWS": role },
                "Action": "sts:AssumeRole",
            }),
            Trust::Issuer(issuer) => {
                let namespace = &self.namespace;
                let accounts = accounts.iter();
                let accounts: Vec<_> = accounts
                    .map(|account| format!("system:serviceaccount:{namespace}:{account}"))
                    .collect();
                let subject = format!("{issuer}:sub");
                json!({
                    "Effect": "Allow",
                    "Principal": { "Federated": provider },
                    "Action": "sts:AssumeRoleWithWebIdentity",
                    "Condition": { "StringEquals": { subject: accounts } },
                })
            }
        };
        document(&[statement])
    }

    /// How an installation uses the roles.
    pub(crate) fn hint(&self, output: &OperatorRolesOutput) -> String {
        let OperatorRolesOutput {
            ec2,
            oidc_s3,
            external_dns,
        } = output;
        let source = match self.trust {
            Trust::Issuer(_) => "web-identity",
            Trust::Instances(_) => "ec2-instance-metadata",
        };
        format!(
            "use the roles with hypershift install --aws-operator-roles-file FILE --aws-role-credential-source {source}, or \
             with these flags:\n  --aws-private-role-arn {ec2}\n  --oidc-storage-provider-s3-role-arn {oidc_s3}\n  \
             --external-dns-role-arn {external_dns}"
        )
    }
}

fn allow(actions: &[&str], resource: &str) -> Value {
    json!({ "Effect": "Allow", "Action": actions, "Resource": resource })
}

impl<C: Calls> Executor<'_, C> {
    /// Creates the roles, or brings them up to date.
    pub(crate) async fn create_operator_roles(
        &self,
        request: &OperatorRoles,
    ) -> anyhow::Result<OperatorRolesOutput> {
        let roles = self.operator_roles(request).await?;
        // Those of other owners are refused before any is created.
        for role in &roles {
            self.find_own_role(role).await?;
        }
        let [ec2, oidc_s3, external_dns] = roles;
        Ok(OperatorRolesOutput {
            ec2: self.ensure_role(&ec2).await?,
            oidc_s3: self.ensure_role(&oidc_s3).await?,
            external_dns: self.ensure_role(&external_dns).await?,
        })
    }

    /// Says what there is of them, and creates nothing.
    pub(crate) async fn report_operator_roles(
        &self,
        request: &OperatorRoles,
    ) -> anyhow::Result<()> {
        for role in self.operator_roles(request).await? {
            self.report_role(&role).await?;
        }
        Ok(())
    }

    async fn operator_roles(&self, request: &OperatorRoles) -> anyhow::Result<[NamedRole; 3]> {
        let partition = self.scope.partition();
        let Trust::Issuer(issuer) = &request.trust else {
            return Ok(request.roles(partition, None));
        };
        let provider = self.find_provider(&format!("/{issuer}")).await?;
        let Some(provider) = provider else {
            bail!(
                "there is no identity provider for https://{issuer} in the account: create it, or use the role of the \
                 management cluster's nodes with --instance-role-arn"
            );
        };
        Ok(request.roles(partition, Some(&provider)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(
        prefix: &str,
        namespace: &str,
        bucket: &str,
        zone: &str,
    ) -> Result<OperatorRoles, Usage> {
        let zone = Some(zone).filter(|zone| !zone.is_empty());
        let trust = Trust::issuer("https://issuer.example.com/a/").unwrap();
        OperatorRoles::new(prefix, namespace, bucket, zone, trust)
    }

    #[test]
    fn parts_of_names_and_arns_are_checked() {
        let (longest, longer) = ("x".repeat(LONGEST_PREFIX), "x".repeat(LONGEST_PREFIX + 1));
        for (prefix, namespace, bucket, zone, expected) in [
            ("hypershift", "hypershift", "documents", "", None),
            (&longest, "hypershift", "documents", "Z1", None),
            ("a", "hypershift", "documents", "/hostedzone/Z1", None),
            (
                &longer,
                "hypershift",
                "documents",
                "",
                Some("--name-prefix"),
            ),
            ("a/b", "hypershift", "documents", "", Some("--name-prefix")),
            ("", "hypershift", "documents", "", Some("--name-prefix")),
            ("a", "a:b", "documents", "", Some("--operator-namespace")),
            ("a", "a", "documents/*", "", Some("-s3-bucket-name")),
            (
                "a",
                "a",
                "documents",
                "Z1/*",
                Some("--route53-hosted-zone-id"),
            ),
        ] {
            let found = new(prefix, namespace, bucket, zone).err();
            let found = found.map(|error| error.to_string());
            match (found, expected) {
                (None, None) => {}
                (Some(error), Some(part)) => assert!(error.contains(part), "{error}"),
                (found, expected) => panic!("{prefix}: {found:?} instead of {expected:?}"),
            }
        }
        for url in ["", "issuer", "http://issuer", "https://", "https://a b"] {
            Trust::issuer(url).unwrap_err();
        }
        Trust::instances("arn:aws:iam::1:role/worker").unwrap();
        for arn in [
            "",
            "worker",
            "arn:aws:iam::1:user/a",
            "arn:aws:iam::1:role/a b",
        ] {
            Trust::instances(arn).unwrap_err();
        }
    }

    #[test]
    fn roles_are_for_the_service_accounts_of_the_operators() {
        let roles = new("p", "ns", "documents", "Z1").unwrap();
        let [ec2, oidc_s3, dns] = roles.roles("aws-cn", Some("arn:p"));
        assert_eq!(ec2.name, "p-operator-ec2");
        let statement = &ec2.trust["Statement"][0];
        assert_eq!(statement["Principal"]["Federated"], "arn:p");
        assert_eq!(
            statement["Condition"]["StringEquals"]["issuer.example.com/a:sub"],
            json!([
                "system:serviceaccount:ns:operator",
                "system:serviceaccount:ns:operator-legacy"
            ])
        );
        let resources = |role: &NamedRole| {
            [0_usize, 1].map(|at| role.policy["Statement"][at]["Resource"].clone())
        };
        assert_eq!(
            resources(&oidc_s3),
            ["arn:aws-cn:s3:::documents/*", "arn:aws-cn:s3:::documents"]
        );
        let zone = "arn:aws-cn:route53:::hostedzone/Z1";
        assert_eq!(resources(&dns), ["*", zone]);
        assert_eq!(
            dns.trust["Statement"][0]["Condition"]["StringEquals"]["issuer.example.com/a:sub"],
            json!(["system:serviceaccount:ns:external-dns"])
        );
    }

    #[test]
    fn nodes_assume_roles_without_an_issuer() {
        let trust = Trust::instances("arn:aws:iam::1:role/worker").unwrap();
        let roles = OperatorRoles::new("p", "ns", "documents", None, trust).unwrap();
        let [_, _, dns] = roles.roles("aws", None);
        let statement = &dns.trust["Statement"][0];
        assert_eq!(statement["Principal"]["AWS"], "arn:aws:iam::1:role/worker");
        assert_eq!(statement["Action"], "sts:AssumeRole");
        let records = &dns.policy["Statement"][1];
        assert_eq!(records["Resource"], "arn:aws:route53:::hostedzone/*");
        let hint = roles.hint(&OperatorRolesOutput::default());
        assert!(hint.contains("ec2-instance-metadata"), "{hint}");
    }
}
