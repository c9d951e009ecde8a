//! Credentials of AWS: static ones, or those of a role that the token of a service account stands for.

use std::fs;
use std::path::{Path, PathBuf};

use super::instance;
use super::profile::{self, DEFAULT};
use super::query::{Query, Signer};
use super::service::STS;
use super::signature::Credentials;
use super::{Error, Variable};
use crate::outbound::Http;
use crate::xml;

/// What a profile has for credentials of the machine.
const INSTANCE: &str = "Ec2InstanceMetadata";
/// The region of the token service that is the same for all regions.
const GLOBAL_REGION: &str = "us-east-1";
/// How long the credentials are valid, in seconds: longer than what they are for may take.
const DURATION: &str = "3600";
/// The variable with the home directory of the user.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// Where credentials come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// They are known.
    Static(Credentials),
    /// STS issues credentials of the role for a token.
    WebIdentity {
        /// ARN of the role.
        role: String,
        /// File with the token.
        token: PathBuf,
    },
    /// STS issues credentials of the role to the machine that this runs on.
    Instance {
        /// ARN of the role.
        role: String,
        /// URL of the metadata service of the machine, without a slash at the end.
        metadata: String,
    },
}

/// The credentials of the environment, where AWS's programs find them. `Ok(None)` if it has none.
pub fn of_environment(variable: Variable<'_>) -> Result<Option<Source>, Error> {
    let keys = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
    if let Some((access_key, secret_key)) = keys {
        let session_token = variable("AWS_SESSION_TOKEN");
        return Ok(Some(Source::Static(Credentials {
            access_key,
            secret_key,
            session_token,
        })));
    }
    let identity = variable("AWS_ROLE_ARN").zip(variable("AWS_WEB_IDENTITY_TOKEN_FILE"));
    if let Some((role, token)) = identity {
        let token = token.into();
        return Ok(Some(Source::WebIdentity { role, token }));
    }
    let file = variable("AWS_SHARED_CREDENTIALS_FILE");
    file.map(|file| of_file(Path::new(&file), variable))
        .transpose()
}

/// The credentials of the environment, or those of `.aws/credentials` in the home directory. `Ok(None)` if there are none.
pub fn of_user(variable: Variable<'_>) -> Result<Option<Source>, Error> {
    if let Some(found) = of_environment(variable)? {
        return Ok(Some(found));
    }
    let file = variable(HOME).map(|home| Path::new(&home).join(".aws/credentials"));
    let file = file.filter(|file| file.is_file());
    file.map(|file| of_file(&file, variable)).transpose()
}

/// The credentials of a file. `AWS_PROFILE` names another profile of it than the default.
pub fn of_file(path: &Path, variable: Variable<'_>) -> Result<Source, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::File {
        path: path.display().to_string(),
        source,
    })?;
    let name = variable("AWS_PROFILE").unwrap_or_else(|| DEFAULT.to_owned());
    let invalid = |problem: &str| {
        Error::Credentials(format!(
            "{} {problem}: it needs aws_access_key_id and aws_secret_access_key, or role_arn and \
             web_identity_token_file or credential_source = {INSTANCE}, in profile {name}",
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
    let role = take("role_arn");
    let (token, source) = (take("web_identity_token_file"), take("credential_source"));
    match (role, token, source.as_deref()) {
        (Some(role), Some(token), _) => {
            let token = token.into();
            Ok(Source::WebIdentity { role, token })
        }
        (Some(role), None, Some(INSTANCE)) => Ok(Source::Instance {
            role,
            metadata: metadata_service(variable),
        }),
        _ => Err(invalid("is incomplete")),
    }
}

/// The URL of the machine's metadata service.
fn metadata_service(variable: Variable<'_>) -> String {
    let given = variable(instance::ENDPOINT).filter(|url| !url.is_empty());
    let url = given.unwrap_or_else(|| instance::SERVICE.to_owned());
    url.trim_end_matches('/').to_owned()
}

/// The region of a URL of the token service. Others than those of AWS accept any.
fn region_of(sts: &str) -> &str {
    let host = sts.strip_prefix("https://sts.").unwrap_or_default();
    let region = host.split('.').next().unwrap_or_default();
    if host.starts_with("amazonaws.") || !super::is_region(region) {
        return GLOBAL_REGION;
    }
    region
}

// === impl Source ===

impl Source {
    /// The credentials, from the token service at `sts` if necessary. Audit logs of AWS show the name of the session.
    pub async fn load(self, http: &Http, sts: &str, session: &str) -> Result<Credentials, Error> {
        let (role, token) = match self {
            Self::Static(credentials) => return Ok(credentials),
            Self::WebIdentity { role, token } => (role, token),
            Self::Instance { role, metadata } => {
                let credentials = instance::credentials(http, &metadata).await?;
                let signer = Signer {
                    credentials: &credentials,
                    region: region_of(sts),
                    service: STS.signing,
                };
                return assume(http, sts, session, &role, signer).await;
            }
        };
        let token = fs::read_to_string(&token).map_err(|source| Error::File {
            path: token.display().to_string(),
            source,
        })?;
        assume_role(http, sts, session, &role, token.trim()).await
    }
}

/// The URL of the token service.
pub fn token_service(region: &str, variable: Variable<'_>) -> String {
    STS.url(region, variable)
}

/// Credentials of a role, for a token that its provider of identities trusts. Audit logs of AWS show the name of the session.
pub async fn assume_role(
    http: &Http,
    url: &str,
    session: &str,
    role: &str,
    token: &str,
) -> Result<Credentials, Error> {
    let query = Query {
        url,
        action: "AssumeRoleWithWebIdentity",
        version: STS.version,
        parameters: &[
            ("RoleArn", role),
            ("RoleSessionName", session),
            ("DurationSeconds", DURATION),
            ("WebIdentityToken", token),
        ],
        about: role,
    };
    issued(http, &query, None).await
}

/// Credentials of a role, for one who has credentials already. Audit logs of AWS show the name of the session.
pub async fn assume(
    http: &Http,
    url: &str,
    session: &str,
    role: &str,
    signer: Signer<'_>,
) -> Result<Credentials, Error> {
    let query = Query {
        url,
        action: "AssumeRole",
        version: STS.version,
        parameters: &[
            ("RoleArn", role),
            ("RoleSessionName", session),
            ("DurationSeconds", DURATION),
        ],
        about: role,
    };
    issued(http, &query, Some(signer)).await
}

async fn issued(
    http: &Http,
    query: &Query<'_>,
    signer: Option<Signer<'_>>,
) -> Result<Credentials, Error> {
    let body = query.send(http, signer).await?;
    let element = |name: &str| {
        let found = xml::text(&body, name).filter(|text| !text.is_empty());
        found.ok_or_else(|| query.unexpected(format!("it has no {name}")))
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
    fn requests_are_signed_for_the_region_of_the_token_service() {
        for (url, expected) in [
            ("https://sts.eu-west-1.amazonaws.com", "eu-west-1"),
            ("https://sts.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            ("https://sts.amazonaws.com", GLOBAL_REGION),
            ("http://127.0.0.1:5000", GLOBAL_REGION),
        ] {
            assert_eq!(region_of(url), expected, "{url}");
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
        let machine = file(
            "machine",
            "[default]\nrole_arn = arn\ncredential_source = Ec2InstanceMetadata\n",
        );
        let bare = file("bare", "arn:aws:iam::123456789012:role/backup");
        std::fs::create_dir(directory.path().join(".aws")).unwrap();
        file(
            ".aws/credentials",
            "[default]\naws_access_key_id = u\naws_secret_access_key = s\n",
        );
        let home = directory.path().display().to_string();
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
                Ok(Some(keys("f", Some("t")))),
            ),
            (
                "a role in a file",
                Some(&identity),
                vec![],
                Ok(Some(role())),
            ),
            (
                "a role of the machine in a file",
                Some(&machine),
                vec![("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1/")],
                Ok(Some(Source::Instance {
                    role: "arn".to_owned(),
                    metadata: "http://127.0.0.1:1".to_owned(),
                })),
            ),
            ("variables", None, both, Ok(Some(keys("e", None)))),
            (
                "a role in variables",
                None,
                token.to_vec(),
                Ok(Some(role())),
            ),
            (
                "a shared file",
                None,
                vec![("AWS_SHARED_CREDENTIALS_FILE", shared.as_str())],
                Ok(Some(role())),
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
            ("nothing", None, vec![], Ok(None)),
            (
                "the file of a user",
                None,
                vec![("HOME", home.as_str())],
                Ok(Some(keys("u", None))),
            ),
            ("half", None, environment[..1].to_vec(), Ok(None)),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let found = match path {
                Some(path) => of_file(path, &variable).map(Some),
                None => of_user(&variable),
            };
            match (found, expected) {
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
