//! Where credentials are found, and which files are refused.

use std::fs;

use tempfile::TempDir;

use super::*;

const TWO_CLOUDS: &str = "\
clouds:
  first:
    auth: { auth_url: https://one.example.com, username: a, password: s3cret }
    region_name: here
    identity_api_version: 3
    verify: false
  openstack:
    auth: { auth_url: https://two.example.com, username: '123', password: 'yes' }
";

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

/// Reads a file with this content.
fn read(content: &str, cloud: Option<&str>) -> anyhow::Result<Credentials> {
    let directory = directory(&[(CLOUDS, content)]);
    let path = directory.path().join(CLOUDS);
    Credentials::read(Some(&path), cloud, None, &|_| None)
}

/// The only cloud of a Secret.
fn cloud(credentials: &Credentials) -> Value {
    let clouds: Value = serde_saphyr::from_str(&credentials.clouds).unwrap();
    assert_eq!(clouds["clouds"].as_object().unwrap().len(), 1, "{clouds}");
    clouds["clouds"][CLOUD].clone()
}

#[test]
fn only_the_chosen_cloud_is_copied_and_renamed() {
    let credentials = read(TWO_CLOUDS, Some("first")).unwrap();
    let expected = json!({
        "auth": { "auth_url": "https://one.example.com", "username": "a", "password": "s3cret" },
        "region_name": "here",
        "identity_api_version": 3,
        "verify": false,
    });
    assert_eq!(cloud(&credentials), expected);
    assert!(!format!("{credentials:?}").contains("s3cret"));
    let credentials = read(TWO_CLOUDS, None).unwrap();
    let auth = &cloud(&credentials)["auth"];
    assert_eq!(auth["username"], "123", "it stays a text");
    assert_eq!(auth["password"], "yes");
    assert_eq!(credentials.data().get(AUTHORITIES), None);
}

#[test]
fn file_and_cloud_have_defaults_of_the_environment() {
    let directory = directory(&[(".config/openstack/clouds.yaml", TWO_CLOUDS)]);
    let home = directory.path().display().to_string();
    let file = format!("{home}/.config/openstack/clouds.yaml");
    for variables in [
        vec![("HOME", home.as_str()), ("OS_CLOUD", "first")],
        vec![(FILE_VARIABLE, file.as_str()), ("OS_CLOUD", "first")],
    ] {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let credentials = Credentials::read(None, None, None, &variable).unwrap();
        assert_eq!(cloud(&credentials)["region_name"], "here", "{variables:?}");
    }
    let named = |name: &str| (name == FILE_VARIABLE).then(|| "no-such-file".to_owned());
    let error = Credentials::read(None, None, None, &named).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("no-such-file, named by OS_CLIENT_CONFIG_FILE"),
        "{message}"
    );
}

#[test]
fn certificates_are_read_from_the_file_that_the_cloud_or_the_flag_names() {
    let of_cloud = format!("{CERTIFICATE} of the cloud");
    let of_flag = format!("{CERTIFICATE} of the flag");
    let clouds = "clouds: { openstack: { auth: { auth_url: https://a }, cacert: ~/ca.pem } }";
    let directory = directory(&[
        (CLOUDS, clouds),
        ("ca.pem", &of_cloud),
        ("flag.pem", &of_flag),
        ("empty.pem", "nothing"),
    ]);
    let home = directory.path().display().to_string();
    let variable = |name: &str| (name == "HOME").then(|| home.clone());
    let path = directory.path().join(CLOUDS);
    let read = |flag: Option<&str>| {
        let flag = flag.map(|flag| directory.path().join(flag));
        Credentials::read(Some(&path), None, flag.as_deref(), &variable)
    };
    for (flag, expected) in [(None, &of_cloud), (Some("flag.pem"), &of_flag)] {
        let credentials = read(flag).unwrap();
        assert_eq!(credentials.data()[AUTHORITIES], *expected);
        assert_eq!(cloud(&credentials).get(AUTHORITIES), None);
    }
    for (flag, words) in [
        ("empty.pem", "has no certificate"),
        ("no-such-file", "named by --openstack-ca-cert-file"),
    ] {
        let message = read(Some(flag)).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    fs::remove_file(directory.path().join("ca.pem")).unwrap();
    let message = read(None).unwrap_err().to_string();
    assert!(
        message.contains("named by cacert of cloud openstack"),
        "{message}"
    );
}

#[test]
fn files_without_usable_credentials_are_refused() {
    let auth = "auth_url: https://a, password: s3cret";
    for (content, words) in [
        ("{ s3cret".to_owned(), "this is not YAML"),
        ("s3cret".to_owned(), "\"clouds\" is missing"),
        (
            "clouds: { other: {}, one: {} }".to_owned(),
            "(it has: other, one)",
        ),
        ("clouds:\n  openstack:\n".to_owned(), "is empty"),
        (
            "clouds: { openstack: { profile: a } }".to_owned(),
            "no auth.auth_url",
        ),
        (
            format!("clouds: {{ openstack: {{ auth: {{ {auth}, username: 123 }} }} }}"),
            "auth.username is empty, or is not a text",
        ),
        (
            format!("clouds: {{ openstack: {{ auth: {{ {auth} }}, compute_api_version: 2.90 }} }}"),
            "compute_api_version has a number",
        ),
        (
            format!("clouds: {{ openstack: {{ auth: {{ {auth} }}, cacert: [a] }} }}"),
            "cacert is not the path of a file",
        ),
        (
            format!("clouds: {{ openstack: {{ auth: {{ {auth} }}, cert: a.pem, key: b.pem }} }}"),
            "client certificate",
        ),
    ] {
        let message = format!("{:#}", read(&content, None).unwrap_err());
        assert!(message.contains(words), "{content}: {message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
}
