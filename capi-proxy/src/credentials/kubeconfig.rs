//! Reads a kubeconfig: what a server needs is taken from it, and what the proxy does not do is refused by name.

mod document;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Error;
use super::plan::{Data, Endpoint, Plan};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: Option<User>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    tls_server_name: Option<String>,
    insecure_skip_tls_verify: Option<bool>,
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<IgnoredAny>,
    password: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
    #[serde(rename = "as")]
    impersonate: Option<IgnoredAny>,
    as_uid: Option<IgnoredAny>,
    as_groups: Option<IgnoredAny>,
    as_user_extra: Option<IgnoredAny>,
}

/// Reads the kubeconfig at `path`, for `context` or for its current context.
pub(super) fn read(path: &Path, context: Option<&str>) -> Result<Plan, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text, context)
}

fn parse(path: &Path, text: &str, context: Option<&str>) -> Result<Plan, Error> {
    let malformed = |at: String| Error::Malformed {
        path: path.to_owned(),
        at,
    };
    let document = document::read(text)
        .map_err(|at| malformed(format!(" at line {}, column {}", at.line, at.column)))?;
    let kubeconfig: Kubeconfig =
        serde_json::from_value(document).map_err(|error| malformed(mismatch(&error)))?;
    let (cluster, user) = select(path, kubeconfig, context)?;
    check_cluster(path, &cluster)?;
    check_user(path, &user)?;
    let reader = Reader { path };
    let plan = Plan {
        endpoint: Endpoint::parse(&cluster.server)?,
        server_name: cluster.tls_server_name.filter(|name| !name.is_empty()),
        authority: reader.data(
            "certificate-authority-data",
            cluster.certificate_authority_data,
            cluster.certificate_authority,
        )?,
        certificate: reader.certificate(&user)?,
        token: reader.token(user),
    };
    check_secrecy(path, &plan)?;
    Ok(plan)
}

/// What does not fit. Of the library's messages only this one does not quote the file.
fn mismatch(error: &serde_json::Error) -> String {
    let message = error.to_string();
    if message.starts_with("missing field") {
        return format!(": {message}");
    }
    ": a field is of another type than it should be".to_owned()
}

fn select(
    path: &Path,
    kubeconfig: Kubeconfig,
    context: Option<&str>,
) -> Result<(Cluster, User), Error> {
    let incomplete = |message: String| Error::Incomplete {
        path: path.to_owned(),
        message,
    };
    let name = context
        .map(str::to_owned)
        .or(kubeconfig.current_context)
        .filter(|name| !name.is_empty())
        .ok_or_else(|| incomplete("it has no current-context: give --context NAME".to_owned()))?;
    let context = kubeconfig
        .contexts
        .into_iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| incomplete(format!("it has no context {name:?}")))?
        .context;
    let cluster = kubeconfig
        .clusters
        .into_iter()
        .find(|entry| entry.name == context.cluster)
        .ok_or_else(|| {
            incomplete(format!(
                "it has no cluster {:?}, which context {name:?} names",
                context.cluster
            ))
        })?
        .cluster;
    let Some(user) = context.user.filter(|user| !user.is_empty()) else {
        return Ok((cluster, User::default()));
    };
    let entry = kubeconfig
        .users
        .into_iter()
        .find(|entry| entry.name == user)
        .ok_or_else(|| {
            incomplete(format!(
                "it has no user {user:?}, which context {name:?} names"
            ))
        })?;
    Ok((cluster, entry.user.unwrap_or_default()))
}

fn check_cluster(path: &Path, cluster: &Cluster) -> Result<(), Error> {
    let unsupported = |field, way_out| {
        Err(Error::Unsupported {
            path: path.to_owned(),
            field,
            way_out,
        })
    };
    if cluster.insecure_skip_tls_verify == Some(true) {
        return unsupported(
            "insecure-skip-tls-verify",
            "give the server's certificate-authority",
        );
    }
    if cluster
        .proxy_url
        .as_ref()
        .is_some_and(|url| !url.is_empty())
    {
        return unsupported("proxy-url", "connect to the API server directly");
    }
    Ok(())
}

fn check_user(path: &Path, user: &User) -> Result<(), Error> {
    let way_out = "use token, tokenFile, or client-certificate and client-key";
    let impersonates = [
        &user.impersonate,
        &user.as_uid,
        &user.as_groups,
        &user.as_user_extra,
    ];
    let found = [
        ("exec", user.exec.is_some(), way_out),
        ("auth-provider", user.auth_provider.is_some(), way_out),
        ("username", user.username.is_some(), way_out),
        ("password", user.password.is_some(), way_out),
        (
            "as",
            impersonates.iter().any(|field| field.is_some()),
            "let clients impersonate, with --allow-impersonation",
        ),
    ];
    match found.into_iter().find(|(_, present, _)| *present) {
        Some((field, _, way_out)) => Err(Error::Unsupported {
            path: path.to_owned(),
            field,
            way_out,
        }),
        None => Ok(()),
    }
}

/// Credentials that anyone on the way could read are not sent.
fn check_secrecy(path: &Path, plan: &Plan) -> Result<(), Error> {
    if plan.endpoint.is_secure() {
        if plan.authority.is_some() {
            return Ok(());
        }
        return Err(Error::Incomplete {
            path: path.to_owned(),
            message: "the cluster has no certificate-authority, and the system's are not trusted"
                .to_owned(),
        });
    }
    if plan.certificate.is_some() || (plan.token.is_some() && !plan.endpoint.is_local()) {
        return Err(Error::Incomplete {
            path: path.to_owned(),
            message: format!(
                "credentials are not sent to {} without TLS: write https",
                plan.endpoint
            ),
        });
    }
    Ok(())
}

struct Reader<'a> {
    path: &'a Path,
}

// === impl Reader ===

impl Reader<'_> {
    /// Inline data takes precedence over a file, as in every Kubernetes client.
    fn data(
        &self,
        field: &str,
        inline: Option<String>,
        file: Option<PathBuf>,
    ) -> Result<Option<Data>, Error> {
        if let Some(encoded) = inline.filter(|encoded| !encoded.is_empty()) {
            let bytes = STANDARD.decode(encoded.split_ascii_whitespace().collect::<String>());
            let bytes = bytes.map_err(|_| self.incomplete(format!("{field} is not base64")))?;
            return Ok(Some(Data::Inline(bytes)));
        }
        Ok(file
            .filter(|file| !file.as_os_str().is_empty())
            .map(|file| self.file(&file)))
    }

    fn certificate(&self, user: &User) -> Result<Option<(Data, Data)>, Error> {
        let certificate = self.data(
            "client-certificate-data",
            user.client_certificate_data.clone(),
            user.client_certificate.clone(),
        )?;
        let key = self.data(
            "client-key-data",
            user.client_key_data.clone(),
            user.client_key.clone(),
        )?;
        match (certificate, key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            _ => Err(self.incomplete(
                "the user has only one of client-certificate and client-key".to_owned(),
            )),
        }
    }

    /// A file takes precedence over a token, as in every Kubernetes client: it is the one that is kept up to date.
    fn token(&self, user: User) -> Option<Data> {
        match (user.token_file, user.token) {
            (Some(file), _) if !file.as_os_str().is_empty() => Some(self.file(&file)),
            (_, Some(token)) if !token.is_empty() => Some(Data::Inline(token.into_bytes())),
            _ => None,
        }
    }

    /// Relative paths are relative to the kubeconfig.
    fn file(&self, file: &Path) -> Data {
        Data::File(self.path.parent().unwrap_or(Path::new("")).join(file))
    }

    fn incomplete(&self, message: String) -> Error {
        Error::Incomplete {
            path: self.path.to_owned(),
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "{server: 'https://api:6443', certificate-authority: ca.crt}";

    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{{name: a, context: {{cluster: c, user: u, namespace: n}}}}]\n\
             clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n"
        )
    }

    fn plan(cluster: &str, user: &str) -> Result<Plan, Error> {
        parse(Path::new("/etc/kube/config"), &config(cluster, user), None)
    }

    #[test]
    fn kubeconfig_paths_are_relative_to_the_kubeconfig() {
        let plan = plan(
            CLUSTER,
            "{tokenFile: token, token: old, client-certificate: /c, client-key-data: a2V5}",
        )
        .unwrap();
        assert!(plan.authority == Some(Data::File("/etc/kube/ca.crt".into())));
        assert!(plan.token == Some(Data::File("/etc/kube/token".into())));
        assert!(plan.certificate == Some((Data::File("/c".into()), Data::Inline(b"key".to_vec()))));
        let files: Vec<_> = plan.files().map(Path::to_owned).collect();
        assert_eq!(
            files,
            [
                Path::new("/etc/kube/ca.crt"),
                Path::new("/c"),
                Path::new("/etc/kube/token")
            ]
        );
    }

    #[test]
    fn unsupported_kubeconfig_fields_are_rejected_by_name() {
        let cases = [
            (CLUSTER, "{exec: {command: aws}}", "exec"),
            (CLUSTER, "{auth-provider: {name: gcp}}", "auth-provider"),
            (CLUSTER, "{username: a, password: b}", "username"),
            (CLUSTER, "{as: admin}", "as"),
            (CLUSTER, "{as-groups: [a]}", "as"),
            (
                "{server: 'https://a', insecure-skip-tls-verify: true}",
                "{}",
                "insecure-skip-tls-verify",
            ),
            (
                "{server: 'https://a', proxy-url: 'http://p'}",
                "{}",
                "proxy-url",
            ),
        ];
        for (cluster, user, field) in cases {
            let error = plan(cluster, user).err().unwrap();
            assert!(error.is_permanent(), "{field}");
            let message = error.to_string();
            assert!(
                message.contains(&format!("{field} is not supported")),
                "{message}"
            );
        }
    }

    #[test]
    fn missing_kubeconfig_entries_are_named() {
        let cases = [
            ("{server: 'https://a'}", "{}", "certificate-authority"),
            (CLUSTER, "{client-key: a}", "client-certificate"),
            (
                CLUSTER,
                "{client-key-data: '%', client-certificate: a}",
                "not base64",
            ),
            ("{server: 'http://a'}", "{token: t}", "without TLS"),
            (
                "{server: 'http://127.0.0.1'}",
                "{client-key: a, client-certificate: b}",
                "without TLS",
            ),
        ];
        for (cluster, user, expected) in cases {
            let message = plan(cluster, user).err().unwrap().to_string();
            assert!(message.contains(expected), "{message}");
        }
        assert!(plan("{server: 'http://127.0.0.1:80'}", "{token: t}").is_ok());
        let text = config(CLUSTER, "{}");
        for (context, expected) in [
            (Some("b"), "no context \"b\""),
            (Some(""), "no current-context"),
        ] {
            let message = parse(Path::new("c"), &text, context)
                .err()
                .unwrap()
                .to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    /// Check S16.
    #[test]
    fn kubeconfig_errors_do_not_quote_fields_of_a_wrong_type() {
        for (text, expected) in [
            (
                "contexts: {secret: token}\n",
                "malformed: a field is of another type",
            ),
            (
                "clusters:\n- cluster: {server: secret}\n",
                "malformed: missing field `name`",
            ),
        ] {
            let message = parse(Path::new("c"), text, None).err().unwrap().to_string();
            assert!(
                message.contains(expected) && !message.contains("secret"),
                "{message}"
            );
        }
    }

    /// Check S16.
    #[test]
    fn kubeconfig_errors_do_not_quote_malformed_files() {
        let text = "users:\n- name: a\n  user: {token: secret-token, tokenFile: [}\n";
        let error = parse(Path::new("c"), text, None).err().unwrap();
        let message = format!("{error} {error:?}");
        assert!(
            message.contains("malformed at line 3") && !message.contains("secret"),
            "{message}"
        );
    }
}
