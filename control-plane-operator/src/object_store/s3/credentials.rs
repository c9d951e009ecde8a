//! Credentials of AWS: static ones, or those of a role that the token of a service account stands for.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::Request;

use super::profile::{self, DEFAULT};
use super::signature::Credentials;
use super::{Bucket, domain, endpoint, refused};
use crate::object_store::{Error, Http, Variable, xml};

/// Name of the session, which audit logs of AWS show.
const SESSION: &str = "etcd-backup";
/// How long the credentials are valid, in seconds: longer than a backup may take.
const DURATION: &str = "3600";
const STS_VERSION: &str = "2011-06-15";

/// Where credentials come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    Static(Credentials),
    /// STS issues credentials of the role for a token.
    WebIdentity {
        role: String,
        token: PathBuf,
    },
}

/// Finds credentials: in the file, or in the environment as AWS's programs do.
pub(super) fn source(file: Option<&Path>, variable: Variable<'_>) -> Result<Source, Error> {
    if let Some(file) = file {
        return of_file(file, variable);
    }
    let keys = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
    if let Some((access_key, secret_key)) = keys {
        let session_token = variable("AWS_SESSION_TOKEN");
        return Ok(Source::Static(Credentials {
            access_key,
            secret_key,
            session_token,
        }));
    }
    let identity = variable("AWS_ROLE_ARN").zip(variable("AWS_WEB_IDENTITY_TOKEN_FILE"));
    if let Some((role, token)) = identity {
        let token = token.into();
        return Ok(Source::WebIdentity { role, token });
    }
    match variable("AWS_SHARED_CREDENTIALS_FILE") {
        Some(file) => of_file(Path::new(&file), variable),
        None => Err(Error::Credentials(
            "pass --credentials-file, or set AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE"
                .to_owned(),
        )),
    }
}

fn of_file(path: &Path, variable: Variable<'_>) -> Result<Source, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::File {
        path: path.display().to_string(),
        source,
    })?;
    let name = variable("AWS_PROFILE").unwrap_or_else(|| DEFAULT.to_owned());
    let invalid = |problem: &str| {
        Error::Credentials(format!(
            "{} {problem}: it needs aws_access_key_id and aws_secret_access_key, or role_arn and \
             web_identity_token_file, in profile {name}",
            path.display()
        ))
    };
    let mut settings = profile::read(&text, &name).ok_or_else(|| invalid("has no such profile"))?;
    let mut take = |key: &str| settings.remove(key).filter(|value| !value.is_empty());
    let keys = take("aws_access_key_id").zip(take("aws_secret_access_key"));
    if let Some((access_key, secret_key)) = keys {
        let session_token = take("aws_session_token");
        return Ok(Source::Static(Credentials {
            access_key,
            secret_key,
            session_token,
        }));
    }
    let identity = take("role_arn").zip(take("web_identity_token_file"));
    let (role, token) = identity.ok_or_else(|| invalid("is incomplete"))?;
    let token = token.into();
    Ok(Source::WebIdentity { role, token })
}

// === impl Source ===

impl Source {
    /// The credentials, from STS if necessary.
    pub(super) async fn load(
        self,
        http: &Http,
        bucket: &Bucket,
        variable: Variable<'_>,
    ) -> Result<Credentials, Error> {
        let (role, token) = match self {
            Self::Static(credentials) => return Ok(credentials),
            Self::WebIdentity { role, token } => (role, token),
        };
        let token = fs::read_to_string(&token).map_err(|source| Error::File {
            path: token.display().to_string(),
            source,
        })?;
        let (region, domain) = (&bucket.region, domain(&bucket.region));
        let url = endpoint("sts", variable);
        let url = url.unwrap_or_else(|| format!("https://sts.{region}.{domain}"));
        assume_role(http, &url, &role, token.trim()).await
    }
}

async fn assume_role(
    http: &Http,
    url: &str,
    role: &str,
    token: &str,
) -> Result<Credentials, Error> {
    let what = || format!("AssumeRoleWithWebIdentity for {role}");
    let form = Serializer::new(String::new())
        .append_pair("Action", "AssumeRoleWithWebIdentity")
        .append_pair("Version", STS_VERSION)
        .append_pair("RoleArn", role)
        .append_pair("RoleSessionName", SESSION)
        .append_pair("DurationSeconds", DURATION)
        .append_pair("WebIdentityToken", token)
        .finish();
    let build = || {
        Request::post(format!("{url}/"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(form.clone()))
    };
    let response = http.send(build).await;
    let response = response.map_err(|source| Error::Http {
        what: what(),
        source,
    })?;
    let body = String::from_utf8_lossy(response.body());
    if !response.status().is_success() {
        return Err(refused(what(), response.status(), &body));
    }
    let element = |name: &str| {
        let found = xml::text(&body, name).filter(|text| !text.is_empty());
        found.ok_or_else(|| Error::Response {
            what: what(),
            problem: format!("it has no {name}"),
        })
    };
    Ok(Credentials {
        access_key: element("AccessKeyId")?,
        secret_key: element("SecretAccessKey")?,
        session_token: Some(element("SessionToken")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(access_key: &str, session_token: Option<&str>) -> Source {
        Source::Static(Credentials {
            access_key: access_key.to_owned(),
            secret_key: "s".to_owned(),
            session_token: session_token.map(str::to_owned),
        })
    }

    fn role() -> Source {
        Source::WebIdentity {
            role: "arn".to_owned(),
            token: "/token".into(),
        }
    }

    #[test]
    fn credentials_are_found_where_aws_programs_find_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let complete = file(
            "static",
            "[default]\naws_access_key_id = f\naws_secret_access_key = s\naws_session_token = t\n",
        );
        let identity = file(
            "role",
            "[default]\nrole_arn = arn\nweb_identity_token_file = /token\n[other]\nrole_arn = arn\n",
        );
        let bare = file("bare", "arn:aws:iam::123456789012:role/backup");
        let shared = identity.display().to_string();
        let environment = [("AWS_ACCESS_KEY_ID", "e"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let token = [
            ("AWS_ROLE_ARN", "arn"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
        ];
        let both = [environment, token].concat();
        for (name, path, variables, expected) in [
            (
                "a file",
                Some(&complete),
                both.clone(),
                Ok(keys("f", Some("t"))),
            ),
            ("a role in a file", Some(&identity), vec![], Ok(role())),
            ("variables", None, both, Ok(keys("e", None))),
            ("a role in variables", None, token.to_vec(), Ok(role())),
            (
                "a shared file",
                None,
                vec![("AWS_SHARED_CREDENTIALS_FILE", shared.as_str())],
                Ok(role()),
            ),
            (
                "an incomplete profile",
                Some(&identity),
                vec![("AWS_PROFILE", "other")],
                Err("role is incomplete"),
            ),
            (
                "another file",
                Some(&bare),
                vec![],
                Err("bare has no such profile"),
            ),
            ("nothing", None, vec![], Err("pass --credentials-file")),
            (
                "half",
                None,
                environment[..1].to_vec(),
                Err("pass --credentials-file"),
            ),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            match (source(path.map(PathBuf::as_path), &variable), expected) {
                (Ok(found), Ok(expected)) => assert!(found == expected, "{name}"),
                (Err(error), Err(text)) => {
                    let error = error.to_string();
                    assert!(error.contains(text), "{name}: {error}");
                    assert!(!error.contains("123456789012"), "{name}: {error}");
                }
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
    }
}
