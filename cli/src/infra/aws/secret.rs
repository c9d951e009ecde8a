//! Credentials of AWS in a Secret of the management cluster, with what else a cluster needs.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::ByteString;
use support::aws::{Credentials, Source};

use crate::hosted::{Hosted, refused};

const ACCESS_KEY: &str = "aws_access_key_id";
const SECRET_KEY: &str = "aws_secret_access_key";
const SESSION_TOKEN: &str = "aws_session_token";
const BASE_DOMAIN: &str = "baseDomain";
const PULL_SECRET: &str = "pullSecret";
const SSH_PUBLIC_KEY: &str = "ssh-publickey";
const SSH_PRIVATE_KEY: &str = "ssh-privatekey";

/// The flag of a Secret with credentials.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SecretArgs {
    /// Secret in the namespace of the HostedCluster with `aws_access_key_id`, `aws_secret_access_key` and
    /// `aws_session_token`, by which --role-arn is assumed, and with what other flags do not give: `baseDomain`, `pullSecret`,
    /// `ssh-publickey`, `ssh-privatekey`
    #[arg(long, value_name = "NAME", requires = "role_arn")]
    secret_creds: Option<String>,
}

/// What such a Secret has. Its values are never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretValues {
    /// What it is called in errors.
    object: String,
    values: BTreeMap<String, String>,
}

// === impl SecretArgs ===

impl SecretArgs {
    /// The name of the Secret.
    pub(crate) fn name(&self) -> Option<&str> {
        self.secret_creds.as_deref()
    }
}

// === impl SecretValues ===

impl SecretValues {
    /// Reads a Secret that must exist.
    pub(crate) async fn read(hosted: &Hosted, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let object = format!("Secret {namespace}/{name}");
        let found = hosted.secrets(namespace).get_opt(name).await;
        let found =
            found.map_err(|error| refused(&error).context(format!("failed to get {object}")))?;
        let found = found.with_context(|| {
            format!(
                "there is no {object}, which --secret-creds names: create it, or leave out the flag"
            )
        })?;
        Self::parse(object, found.data.unwrap_or_default())
    }

    fn parse(object: String, data: BTreeMap<String, ByteString>) -> anyhow::Result<Self> {
        let mut values = BTreeMap::new();
        for (key, value) in data {
            let Ok(text) = String::from_utf8(value.0) else {
                bail!("key {key} of {object} is no text in UTF-8: write it again");
            };
            let text = text.trim();
            if !text.is_empty() {
                values.insert(key, text.to_owned());
            }
        }
        Ok(Self { object, values })
    }

    #[cfg(test)]
    pub(crate) fn new(object: &str, pairs: &[(&str, &str)]) -> Self {
        let data = pairs.iter().map(|(key, value)| {
            let value = ByteString(value.as_bytes().to_vec());
            ((*key).to_owned(), value)
        });
        Self::parse(object.to_owned(), data.collect()).unwrap()
    }

    /// The value of a key that must be there, unless users give the flag instead.
    fn required(&self, key: &str, flag: &str) -> anyhow::Result<String> {
        let value = self.values.get(key).cloned();
        value.with_context(|| format!("{} has no key {key}: add it, or give {flag}", self.object))
    }

    /// The credentials.
    pub(crate) fn source(&self) -> anyhow::Result<Source> {
        let flag = "--sts-creds";
        Ok(Source::Static(Credentials {
            access_key: self.required(ACCESS_KEY, flag)?,
            secret_key: self.required(SECRET_KEY, flag)?,
            session_token: Some(self.required(SESSION_TOKEN, flag)?),
        }))
    }

    /// The base domain, if it is there.
    pub(crate) fn base_domain(&self) -> Option<&str> {
        self.values.get(BASE_DOMAIN).map(String::as_str)
    }

    /// The base domain, which must be there.
    pub(crate) fn required_base_domain(&self) -> anyhow::Result<String> {
        self.required(BASE_DOMAIN, "--base-domain")
    }

    /// The credentials of the release's registry, which must be there.
    pub(crate) fn pull_secret(&self) -> anyhow::Result<String> {
        self.required(PULL_SECRET, "--pull-secret")
    }

    /// What the pull secret is called in errors.
    pub(crate) fn pull_secret_name(&self) -> String {
        format!("key {PULL_SECRET} of {}", self.object)
    }

    /// The SSH key of nodes: its public part, and its private part if it is there, too.
    pub(crate) fn ssh_key(&self) -> Option<(String, Option<String>)> {
        let public = self.values.get(SSH_PUBLIC_KEY)?;
        Some((public.clone(), self.values.get(SSH_PRIVATE_KEY).cloned()))
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretValues")
            .field("object", &self.object)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const PATH: &str = "/api/v1/namespaces/clusters/secrets/creds";

    fn values(pairs: &[(&str, &str)]) -> SecretValues {
        SecretValues::new("Secret clusters/creds", pairs)
    }

    #[test]
    fn what_is_missing_is_named_with_the_secret_and_the_flag() {
        let all = [
            (ACCESS_KEY, "access"),
            (SECRET_KEY, "s3cret"),
            (SESSION_TOKEN, "t0ken"),
            (BASE_DOMAIN, "example.com\n"),
            (PULL_SECRET, "{}"),
        ];
        let full = values(&all);
        let expected = Source::Static(Credentials {
            access_key: "access".to_owned(),
            secret_key: "s3cret".to_owned(),
            session_token: Some("t0ken".to_owned()),
        });
        assert!(full.source().unwrap() == expected);
        assert_eq!(full.base_domain(), Some("example.com"));
        assert_eq!(full.ssh_key(), None);
        for (left_out, flag) in [
            (ACCESS_KEY, "--sts-creds"),
            (SECRET_KEY, "--sts-creds"),
            (SESSION_TOKEN, "--sts-creds"),
            (BASE_DOMAIN, "--base-domain"),
            (PULL_SECRET, "--pull-secret"),
        ] {
            let rest: Vec<_> = all
                .into_iter()
                .filter(|(key, _)| *key != left_out)
                .collect();
            let rest = values(&rest);
            let errors = [
                rest.source().err(),
                rest.required_base_domain().err(),
                rest.pull_secret().err(),
            ];
            let errors: Vec<_> = errors.into_iter().flatten().collect();
            let [error] = errors.as_slice() else {
                panic!("{left_out}: {errors:?}");
            };
            let expected =
                format!("Secret clusters/creds has no key {left_out}: add it, or give {flag}");
            assert_eq!(error.to_string(), expected);
        }
        let shown = format!("{full:?}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("t0ken"),
            "{shown}"
        );
    }

    #[test]
    fn ssh_keys_have_a_public_part_and_may_have_a_private_one() {
        let key = |pairs: &[(&str, &str)]| values(pairs).ssh_key();
        assert_eq!(key(&[(SSH_PRIVATE_KEY, "private")]), None);
        let public = (SSH_PUBLIC_KEY, "public");
        assert_eq!(key(&[public]), Some(("public".to_owned(), None)));
        let both = ("public".to_owned(), Some("private".to_owned()));
        assert_eq!(key(&[public, (SSH_PRIVATE_KEY, "private")]), Some(both));
    }

    #[tokio::test]
    async fn secrets_are_read_from_the_namespace_of_the_cluster() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "namespace": "clusters", "name": "creds" },
            "data": { "baseDomain": "ZXhhbXBsZS5jb20=", "binary": "/w==" },
        });
        let mut text = secret.clone();
        text["data"] = json!({ "baseDomain": "ZXhhbXBsZS5jb20=" });
        for (answer, expected) in [
            (Answer::ok(&text), Ok("example.com")),
            (
                Answer::ok(&secret),
                Err("key binary of Secret clusters/creds"),
            ),
            (
                Answer::error(404, "NotFound"),
                Err("there is no Secret clusters/creds"),
            ),
        ] {
            let scenario = Scenario::new([Expect::get(PATH).answer(answer)]);
            let hosted = Hosted::new(scenario.client());
            let found = SecretValues::read(&hosted, "clusters", "creds").await;
            scenario.finish();
            match (found, expected) {
                (Ok(found), Ok(domain)) => assert_eq!(found.base_domain(), Some(domain)),
                (Err(error), Err(part)) => {
                    let error = format!("{error:#}");
                    assert!(error.contains(part), "{error}");
                }
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        }
    }
}
