//! The steps of all releases, and runs with shell scripts in place of the programs.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use tempfile::{TempDir, tempdir};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::failure::FAILED;
use super::run::{Error, execute};
use super::secrets::SHOWN;
use super::steps::{Command, Step, required, steps};
use super::*;

const IGNITION: &str = r#"{"ignition":{"version":"3.2.0"}}"#;

/// The inputs of a payload with a secret of each kind.
pub(super) fn inputs(version: &str) -> Inputs {
    let image = |tag: &str| (tag.to_owned(), format!("images.example.com/{tag}@sha256:1"));
    let file = |name: &str| (name.to_owned(), format!("{name}\n"));
    let auth = STANDARD.encode("someone:open-sesame");
    Inputs {
        release_image: "images.example.com/release@sha256:0".to_owned(),
        version: version.parse().unwrap(),
        images: [
            "baremetal-runtimecfg",
            "cluster-config-api",
            "coredns",
            "haproxy-router",
            "keepalived-ipfailover",
            "machine-config-operator",
            "machine-os-content",
            "pod",
        ]
        .map(image)
        .into(),
        config: "kind: MachineConfig\nspec:\n  config:\n    storage:\n      files:\n      - contents:\n          source: \
                 data:,a%20secret%20of%20the%20pool\n"
            .to_owned(),
        bootstrap_kubeconfig: b"users:\n- user: {token: bootstrap-token}\n".to_vec(),
        files: [
            "cluster-apiserver-config.yaml",
            "image-config.yaml",
            "worker.machineconfigpool.yaml",
        ]
        .map(file)
        .into(),
        pull_secret: format!(r#"{{"auths":{{"registry.example.com":{{"auth":"{auth}"}}}}}}"#)
            .into_bytes(),
        feature_gate: "kind: FeatureGate\n".to_owned(),
        cloud_config: None,
        os_stream: String::new(),
        certificate: (
            "CERTIFICATE\n".to_owned(),
            "-----BEGIN PRIVATE KEY-----\nS0VZ0123456789\n-----END PRIVATE KEY-----\n".to_owned(),
        ),
        is_newer: false,
    }
}

/// A line for each step, and for each argument.
fn readable(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let line = match step {
            Step::Directory(path) => format!("directory {path}"),
            Step::Write { to, content: _ } => format!("write {to}"),
            Step::Take { image, paths, to } => format!("take {image:?} {} {to}", paths.join("|")),
            Step::TakeBelow {
                image,
                directory,
                to,
            } => format!("take {image:?} {directory}/* {to}"),
            Step::Run(command) => format!("run {}", line(command)),
            Step::Report => "report".to_owned(),
            Step::Copy { from, to } => format!("copy {from} {to}"),
            Step::CopyAll { from, suffix, to } => format!("copy {from}/*{suffix} {to}"),
            Step::Serve { command, url } => format!("serve {}\n  {url}", line(command)),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

fn line(command: &Command) -> String {
    let mut text = format!("{} {}", command.program, command.directory);
    text.truncate(text.trim_end().len());
    for argument in &command.args {
        let _ = write!(text, "\n  {argument}");
    }
    text
}

fn golden(name: &str, text: &str) {
    let file = format!("tests/data/ignition/{name}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let path = path.display();
    assert_eq!(text, expected, "{path}: rewrite it with UPDATE_GOLDEN=1");
}

#[test]
fn steps_match_golden_files() {
    golden(
        "programs-4.20",
        &readable(&steps(&inputs("4.20.3"), "/payloads/run")),
    );
    let openstack = Inputs {
        cloud_config: Some("kind: ConfigMap\n".to_owned()),
        ..inputs("4.20.3")
    };
    golden(
        "programs-4.20-openstack",
        &readable(&steps(&openstack, "/payloads/run")),
    );
    let oldest = Inputs {
        cloud_config: Some("kind: ConfigMap\n".to_owned()),
        os_stream: "rhel-9".to_owned(),
        is_newer: true,
        ..inputs("4.12.9")
    };
    golden(
        "programs-4.12-azure",
        &readable(&steps(&oldest, "/payloads/run")),
    );
}

#[test]
fn command_lines_depend_on_the_version() {
    // Version, references or one flag for each image, version flags, program for gates, how it gets manifests.
    for (version, has_references, has_version, gates, manifests) in [
        ("4.12.0", false, false, "cluster-config-operator", None),
        ("4.13.5", true, false, "cluster-config-operator", None),
        (
            "4.14.0-rc.1",
            true,
            true,
            "cluster-config-operator",
            Some("--rendered-manifest-files=/run/cco/manifests"),
        ),
        (
            "4.15.0",
            true,
            true,
            "cluster-config-api",
            Some("--rendered-manifest-dir=/run/cca/manifests"),
        ),
        (
            "4.16.1",
            true,
            true,
            "cluster-config-api",
            Some("--rendered-manifest-dir=/run/cca/manifests"),
        ),
        (
            "4.20.0",
            true,
            true,
            "cluster-config-api",
            Some("--rendered-manifest-dir=/run/cca/manifests"),
        ),
        (
            "5.0.0",
            true,
            true,
            "cluster-config-api",
            Some("--rendered-manifest-dir=/run/cca/manifests"),
        ),
    ] {
        let steps = steps(&inputs(version), "/run");
        let commands: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Run(command) | Step::Serve { command, .. } => Some(command),
                _ => None,
            })
            .collect();
        let programs: Vec<_> = commands.iter().map(|it| it.program.as_str()).collect();
        let of_gates = format!("bin/{gates}");
        let expected = [
            of_gates.as_str(),
            "bin/machine-config-operator",
            "bin/machine-config-controller",
            "bin/machine-config-server",
        ];
        assert_eq!(programs, expected, "{version}");
        let has = |index: usize, flag: &str| commands[index].args.iter().any(|it| it == flag);
        let references = "--image-references=/run/config/release-manifests/image-references";
        assert_eq!(has(1, references), has_references, "{version}");
        assert_eq!(
            has(1, "--kube-ca=/run/config/signer-ca.crt"),
            has_references,
            "{version}"
        );
        assert_eq!(
            has(1, "--infra-image=images.example.com/pod@sha256:1"),
            !has_references,
            "{version}"
        );
        let flag = format!("--payload-version={version}");
        for (index, program) in programs.iter().enumerate().take(4) {
            assert_eq!(has(index, &flag), has_version, "{version}: {program}");
        }
        let of_gates = &commands[0].args;
        let found = of_gates
            .iter()
            .find(|it| it.starts_with("--rendered-manifest"));
        assert_eq!(found.map(String::as_str), manifests, "{version}");
        assert_eq!(
            of_gates[0] == "render",
            gates == "cluster-config-operator",
            "{version}"
        );
        assert_eq!(
            required(&version.parse().unwrap()).len(),
            if has_references { 2 } else { 8 }
        );
    }
}

#[test]
fn the_mdns_publisher_is_named_if_the_release_has_it() {
    let mut inputs = inputs("4.20.0");
    let has_flag = |inputs: &Inputs| {
        readable(&steps(inputs, "/run")).contains("\n  --mdns-publisher-image=a@b\n")
    };
    assert!(!has_flag(&inputs));
    inputs
        .images
        .insert("mdns-publisher".to_owned(), "a@b".to_owned());
    assert!(has_flag(&inputs));
}

#[test]
fn programs_for_a_newer_system_are_tried_on_it_only() {
    let of = |version: &str| Some(format!("NAME=\"RHEL\"\nVERSION_ID=\"{version}\"\n"));
    for (image, own, expected) in [
        (of("8.6"), of("9.4"), true),
        (of("9.2"), of("9.4"), false),
        (of("8.6"), of("8.6"), false),
        (of("8.6"), None, false),
        (None, of("9.4"), false),
        (Some("VERSION_ID=8.6\n".to_owned()), of("9"), true),
        (Some("ID=other\n".to_owned()), of("9.4"), false),
    ] {
        let found = is_newer(image.as_deref(), own.as_deref());
        assert_eq!(found, expected, "{image:?} on {own:?}");
    }
}

#[test]
fn equal_inputs_have_equal_fingerprints() {
    let first = inputs("4.20.0");
    let renewed = Inputs {
        certificate: ("other".to_owned(), "other".to_owned()),
        ..first.clone()
    };
    assert_eq!(fingerprint(&renewed), fingerprint(&first));
    let mut changed = first.clone();
    changed
        .files
        .insert("image-config.yaml".to_owned(), "changed".to_owned());
    assert_ne!(fingerprint(&changed), fingerprint(&first));
}

#[tokio::test(start_paused = true)]
async fn failures_are_remembered_for_a_while() {
    let state = State::default();
    let failure = Failure::refused("no");
    let other = [1; 32];
    let known = Failure {
        is_known: true,
        ..failure.clone()
    };
    let fail = || state.remember("a".to_owned(), [0; 32], Err(failure.clone()));
    assert_eq!(fail(), Err(failure.clone()));
    assert_eq!(state.known("a", &[0; 32]), Some(Err(known)));
    assert_eq!(state.known("a", &other), None);
    tokio::time::advance(FAILED).await;
    assert_eq!(state.known("a", &[0; 32]), None);
    // The second one counts for longer.
    assert_eq!(fail().unwrap_err().retry, 2 * FAILED);
    tokio::time::advance(FAILED).await;
    let again = state.known("a", &[0; 32]).unwrap().unwrap_err();
    assert_eq!(again.retry, FAILED);
    // With other inputs it is the first one.
    let first = state.remember("a".to_owned(), other, Err(failure.clone()));
    assert_eq!(first, Err(failure.clone()));
}

#[tokio::test(start_paused = true)]
async fn servers_rarely_replace_what_others_have_written() {
    let state = State::default();
    let is_due = |made: Result<Payload, Failure>| made.unwrap().is_due;
    let bytes = Bytes::from_static(b"{}");
    assert!(is_due(state.remember("a".to_owned(), [0; 32], Ok(bytes))));
    assert!(state.may_report("a") && state.may_report("b"));
    for (name, minutes, expected) in [("soon", 0, false), ("later", 5, true), ("again", 1, false)] {
        tokio::time::advance(Duration::from_mins(minutes)).await;
        assert_eq!(
            is_due(state.known("a", &[0; 32]).unwrap()),
            expected,
            "{name}"
        );
        assert_eq!(state.may_report("a"), expected, "{name}");
    }
}

#[tokio::test]
async fn programs_that_are_killed_may_succeed_later() {
    let images = Directories::new();
    images.program(OPERATOR, "kill -9 $$");
    let error = images.run(LONG, "127.0.0.1:1").await.unwrap_err();
    assert!(!error.is_refusal(), "{error}");
}

/// A registry that is down does not stop a server that renders payloads itself, also after a restart.
#[test]
fn a_registry_is_not_needed_without_programs() {
    let (digest, tag) = (
        "images.example.com/release@sha256:0",
        "images.example.com/release:4.20.0",
    );
    for (name, release, own, is_decided, is_needed) in [
        ("not known yet", digest, None, false, true),
        ("rendered before", digest, Some(digest), true, false),
        ("of another release", digest, Some(tag), false, true),
        // A tag may lead to another release.
        ("by tag", tag, Some(tag), false, false),
    ] {
        let own = own.map(|own| (token::OWN, own));
        let data = [("token", "t"), (token::RELEASE, release)];
        let data = data.into_iter().chain(own);
        let secret = Secret {
            data: Some(
                data.map(|(key, text)| (key.to_owned(), ByteString(text.into())))
                    .collect(),
            ),
            ..Secret::default()
        };
        let job = Job {
            secret: "token-workers-0a".to_owned(),
            release: release.to_owned(),
            token: Token::read(secret).unwrap(),
        };
        assert_eq!(job.is_decided(), is_decided, "{name}");
        assert_eq!(job.needed(Ok(1)), Ok(Some(1)), "{name}");
        let failure = Failure::pending("the registry does not respond");
        let expected = if is_needed {
            Err(failure.clone())
        } else {
            Ok(None)
        };
        assert_eq!(job.needed::<u8>(Err(failure)), expected, "{name}");
    }
}

/// Images as directories.
struct Directories(TempDir);

impl Surroundings for Directories {
    fn below(&self, _: Image, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.path().join(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(|name| format!("{directory}/{name}")).collect()
    }

    async fn take(&self, _: Image, path: &str, to: PathBuf) -> Result<bool, String> {
        let from = self.0.path().join(path);
        if !from.exists() {
            return Ok(false);
        }
        let copied = fs::copy(from, to);
        copied.map(|_| true).map_err(|error| error.to_string())
    }

    async fn report(&self) {
        fs::write(self.0.path().join("reported"), "").unwrap();
    }
}

impl Directories {
    /// All files that steps take, with programs that do what these do.
    fn new() -> Self {
        let this = Self(tempdir().unwrap());
        this.file(REFERENCES, "{}");
        this.file("etc/mcc/templates/worker.yaml", "template");
        this.program(
            "render",
            "echo 'kind: FeatureGate # rendered' > manifests/99_feature-gate.yaml",
        );
        this.program(
            OPERATOR,
            "for arg in \"$@\"; do case $arg in --dest-dir=*) to=${arg#*=};; esac; done\n\
             mkdir -p \"$to/bootstrap/manifests/ignored\"\n\
             echo operator > \"$to/bootstrap/manifests/worker.machineconfigpool.yaml\"\n\
             echo operator > \"$to/bootstrap/manifests/machineconfigcontroller-pull-secret\"",
        );
        this.program(
            "machine-config-controller",
            "test -s mcc/machineconfigcontroller-pull-secret -a -s mcc/etc/mcc/templates/worker.yaml\n\
             grep -q rendered mcc/99_feature-gate.yaml\n\
             grep -q machineconfigpool mcc/worker.machineconfigpool.yaml\n\
             test ! -e mcc/ignored -a -e mcc/image-config.yaml -a -e mcc/cluster-apiserver-config.yaml\n\
             mkdir mcs/machine-pools",
        );
        this.program(
            "machine-config-server",
            "test -d mcs/machine-pools -a -s mcs/tls.key -a -s mcs/kubeconfig\nexec sleep 100",
        );
        this
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, script: &str) {
        let path = format!("{BIN}/{name}");
        self.file(&path, &format!("#!/bin/sh\nset -e\n{script}\n"));
        let path = self.0.path().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn directory(&self) -> PathBuf {
        self.0.path().join("work/run")
    }

    /// Runs all steps. A program may take this time; the payload is served at this address.
    async fn run(&self, limit: Duration, address: &str) -> Result<Vec<u8>, Error> {
        let inputs = inputs("4.20.0");
        let directory = self.directory();
        let mut steps = steps(&inputs, &directory.to_string_lossy());
        for step in &mut steps {
            match step {
                Step::Run(command) => command.limit = limit,
                Step::Serve { command, url } => {
                    command.limit = limit;
                    *url = format!("http://{address}/config/master");
                }
                _ => {}
            }
        }
        let secrets = Secrets::of(&inputs);
        execute(&steps, &directory, self, &secrets).await
    }
}

/// A server that is not ready at first; returns its address.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for (status, body) in [("503 Service Unavailable", ""), ("200 OK", IGNITION)] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let accepts = "accept: application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1";
            assert!(request.contains(accepts), "{request}");
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    address.to_string()
}

const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_run_ends_with_the_served_payload_and_leaves_no_files() {
    let images = Directories::new();
    // Left by a process that was killed.
    fs::create_dir_all(images.directory().join("mcs/machine-pools")).unwrap();
    let payload = images.run(LONG, &server().await).await.unwrap();
    assert_eq!(payload, IGNITION.as_bytes());
    assert!(images.0.path().join("reported").exists());
    assert!(!images.directory().exists());
}

#[tokio::test]
async fn programs_that_fail_are_named_with_the_end_of_their_output() {
    let images = Directories::new();
    let many = "x".repeat(100);
    let script = format!(
        "for i in $(seq 300); do echo {many} >&2; done\n\
         echo \"cannot use {}: open-sesame, bootstrap-token\" >&2\nexit 3",
        STANDARD.encode("someone:open-sesame")
    );
    images.program("machine-config-controller", &script);
    let error = images.run(LONG, "127.0.0.1:1").await.unwrap_err();
    let Error::Program {
        program,
        problem,
        output,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(program, "machine-config-controller");
    assert_eq!(problem, "ended with exit status: 3");
    assert!(output.len() <= SHOWN, "{}", output.len());
    assert!(
        output.contains("cannot use [redacted]: [redacted], [redacted]"),
        "{output}"
    );
    assert!(error.is_refusal());
    assert!(!images.directory().exists());
}

#[tokio::test]
async fn programs_that_hang_are_killed() {
    let images = Directories::new();
    // What it has started keeps its output open.
    images.program(OPERATOR, "echo waiting for nothing\nsleep 15");
    let begun = std::time::Instant::now();
    let error = images
        .run(Duration::from_secs(3), "127.0.0.1:1")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "machine-config-operator did not end within 3s and was killed: waiting for nothing"
    );
    assert!(!error.is_refusal());
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn servers_that_end_or_do_not_serve_are_reported() {
    let images = Directories::new();
    let error = images
        .run(Duration::from_secs(3), "127.0.0.1:1")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "machine-config-server did not serve the payload within 3s (it refused the connection): it printed nothing"
    );
    images.program("machine-config-server", "echo no pool\nexit 1");
    let error = images.run(LONG, "127.0.0.1:1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "machine-config-server ended with exit status: 1 before it served the payload: no pool"
    );
}

#[tokio::test]
async fn files_that_an_image_does_not_have_are_named() {
    for (path, expected) in [
        (
            "usr/bin/render",
            "the image of cluster-config-api has no file usr/bin/render:",
        ),
        (
            "usr/bin/machine-config-server",
            "the image of machine-config-operator has no file usr/bin/machine-config-server:",
        ),
        (
            "etc/mcc/templates/worker.yaml",
            "the image of machine-config-operator has no file etc/mcc/templates/*:",
        ),
    ] {
        let images = Directories::new();
        fs::remove_file(images.0.path().join(path)).unwrap();
        let error = images.run(LONG, "127.0.0.1:1").await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
