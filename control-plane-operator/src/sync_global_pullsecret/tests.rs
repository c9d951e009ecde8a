//! The files of a node in a directory, and systemd on a bus.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use clap::Parser as _;
use serde_json::json;
use support::shutdown;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use super::dbus::{Connection, Kind, Message, body, encode};
use super::*;
use crate::args::{Cli, Command};

const OLD: &str = "{\"auths\":{\"quay.io\":{\"auth\":\"b2xk\"}}}";
const NEW: &str = "{\"auths\":{\"quay.io\":{\"auth\":\"bmV3\"}}}";

/// Fails so many times.
struct Units {
    failures: Cell<u32>,
    restarted: RefCell<Vec<String>>,
    /// kubelet's file at each attempt.
    read: RefCell<Vec<String>>,
    file: std::path::PathBuf,
}

impl Restart for Units {
    async fn restart(&self, unit: &str) -> Result<(), systemd::Error> {
        self.restarted.borrow_mut().push(unit.to_owned());
        let content = fs::read_to_string(&self.file).unwrap();
        self.read.borrow_mut().push(content);
        if self.failures.get() == 0 {
            return Ok(());
        }
        self.failures.set(self.failures.get() - 1);
        Err(systemd::Error::Timeout)
    }
}

struct Node {
    _directory: TempDir,
    files: Files,
}

impl Node {
    /// A node with these contents; none is a file that does not exist.
    fn new(kubelet: Option<&str>, global: Option<&str>, original: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str, content: Option<&str>| {
            let path = directory.path().join(name);
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            path
        };
        let files = Files {
            kubelet: path("config.json", kubelet),
            global: path("global", global),
            original: path("original", original),
        };
        Self {
            _directory: directory,
            files,
        }
    }

    fn units(&self, failures: u32) -> Units {
        Units {
            failures: Cell::new(failures),
            restarted: RefCell::default(),
            read: RefCell::default(),
            file: self.files.kubelet.clone(),
        }
    }

    fn content(&self) -> Option<String> {
        fs::read_to_string(&self.files.kubelet).ok()
    }

    /// The names of all files.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.files.kubelet.parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn different_content_replaces_the_file_and_restarts_kubelet() {
    for (name, kubelet, global, original, expected) in [
        ("additions", Some(OLD), Some(NEW), Some(OLD), Some(NEW)),
        ("no additions", Some(OLD), None, Some(NEW), Some(NEW)),
        ("empty additions", Some(OLD), Some(""), Some(NEW), Some(NEW)),
        ("no file", None, None, Some(NEW), Some(NEW)),
        ("equal", Some(NEW), None, Some(NEW), None),
        (
            "newlines",
            Some("{\"auths\":{}}\n\r\n"),
            None,
            Some("{\"auths\":{}}\n"),
            None,
        ),
    ] {
        let node = Node::new(kubelet, global, original);
        let units = node.units(0);
        let outcome = sync(&node.files, &units).await.unwrap();
        let Some(expected) = expected else {
            assert_eq!(outcome, Outcome::Unchanged, "{name}");
            assert_eq!(units.restarted.borrow().len(), 0, "{name}");
            assert_eq!(node.content().as_deref(), kubelet, "{name}");
            continue;
        };
        assert_eq!(outcome, Outcome::Replaced, "{name}");
        assert_eq!(*units.restarted.borrow(), ["kubelet.service"], "{name}");
        assert_eq!(*units.read.borrow(), [expected], "{name}");
        let mode = fs::metadata(&node.files.kubelet).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{name}");
        // The next comparison finds nothing to do, and no temporary file is left.
        assert_eq!(sync(&node.files, &units).await.unwrap(), Outcome::Unchanged);
        let is_temporary = |file: &String| file.starts_with('.');
        assert!(!node.names().iter().any(is_temporary), "{:?}", node.names());
    }
}

#[tokio::test]
async fn invalid_pull_secrets_change_nothing() {
    for (name, global, original, expected) in [
        ("not JSON", Some("{auth"), Some(NEW), "it is not JSON"),
        ("no auths", Some("{}"), Some(NEW), "it has no key auths"),
        ("a list", Some("[]"), Some(NEW), "it has no key auths"),
        ("nothing", None, None, "failed to read"),
    ] {
        let node = Node::new(Some(OLD), global, original);
        let units = node.units(0);
        let error = chain(&sync(&node.files, &units).await.unwrap_err());
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!error.contains("{auth"), "{name}: {error}");
        assert_eq!(node.content().as_deref(), Some(OLD), "{name}");
        assert_eq!(units.restarted.borrow().len(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_restarts_are_retried_and_then_undone() {
    for (name, kubelet, failures, attempts, pauses, expected) in [
        ("at the last", Some(OLD), 2, 3, 3, Some(NEW)),
        ("never", Some(OLD), 3, 3, 3, Some(OLD)),
        ("never, no file before", None, 3, 3, 3, None),
    ] {
        let node = Node::new(kubelet, None, Some(NEW));
        let units = node.units(failures);
        let begun = tokio::time::Instant::now();
        let result = sync(&node.files, &units).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(pauses), "{name}");
        assert_eq!(units.restarted.borrow().len(), attempts, "{name}");
        assert_eq!(node.content().as_deref(), expected, "{name}");
        assert_eq!(result.is_ok(), expected == Some(NEW), "{name}");
        if let Err(error) = result {
            let text = error.to_string();
            let expected = "failed to restart kubelet.service after 3 attempts, and restored";
            assert!(text.starts_with(expected), "{name}: {text}");
        }
    }
}

/// A signal arrives while kubelet is restarted for the first time, which fails.
struct Interrupted {
    units: Units,
    signal: shutdown::Signal,
}

impl Restart for Interrupted {
    async fn restart(&self, unit: &str) -> Result<(), systemd::Error> {
        self.signal.begin();
        tokio::task::yield_now().await;
        self.units.restart(unit).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_does_not_interrupt_a_change() {
    for (name, failures, attempts, expected) in [("restarted", 1, 2, NEW), ("undone", 3, 3, OLD)] {
        let node = Node::new(Some(OLD), None, Some(NEW));
        let (signal, drain) = shutdown::channel();
        let units = Interrupted {
            units: node.units(failures),
            signal,
        };
        let begun = tokio::time::Instant::now();
        keep(&node.files, &units, drain).await;
        assert!(begun.elapsed() < PERIOD, "{name}: it has waited for more");
        assert_eq!(units.units.restarted.borrow().len(), attempts, "{name}");
        assert_eq!(node.content().as_deref(), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_keeps_its_content() {
    let node = Node::new(Some(OLD), None, Some(NEW));
    let temporary = node.files.kubelet.with_file_name(".config.json.tmp-sync");
    // A directory in the place of the temporary file cannot be removed as a file.
    fs::create_dir(&temporary).unwrap();
    let units = node.units(0);
    let error = sync(&node.files, &units).await.unwrap_err().to_string();
    assert!(
        error.contains("config.json: it keeps its previous content"),
        "{error}"
    );
    assert_eq!(node.content().as_deref(), Some(OLD));
    assert_eq!(units.restarted.borrow().len(), 0);
}

/// What a bus sends for a call: systemd's responses, and the signal with the result before the response.
fn responses(call: &Message, result: &str, name: &str) -> Vec<Vec<u8>> {
    let reply = |fields: &[(u8, char, &str)], body: &[u8]| {
        let mut all = vec![(6, 's', name)];
        all.extend(fields);
        encode(Kind::Response, 100, &all, Some(call.serial), body)
    };
    if call.member != "RestartUnit" {
        return vec![reply(&[], &[])];
    }
    let mut arguments = call.body();
    let unit = arguments.string().unwrap();
    assert_eq!(arguments.string().unwrap(), "replace");
    let fields = [
        (1, 'o', "/org/freedesktop/systemd1"),
        (2, 's', "org.freedesktop.systemd1.Manager"),
        (3, 's', "JobRemoved"),
        (8, 'g', "uoss"),
    ];
    let signal = |job: &str, result: &str| {
        let body = body(Some(7), &[job, &unit, result]);
        encode(Kind::Signal, 101, &fields, None, &body)
    };
    vec![
        // The result of another job.
        signal("/org/freedesktop/systemd1/job/6", "failed"),
        signal("/org/freedesktop/systemd1/job/7", result),
        reply(
            &[(8, 'g', "o")],
            &body(None, &["/org/freedesktop/systemd1/job/7"]),
        ),
    ]
}

/// The real message bus, until it is dropped.
struct Bus {
    process: Child,
    directory: TempDir,
}

impl Bus {
    /// Starts the bus, if it is installed.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("unix:path={}", directory.path().join("bus").display());
        let process = std::process::Command::new("dbus-daemon")
            .args([
                "--session",
                "--nofork",
                "--print-address",
                "--address",
                &address,
            ])
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut process) = process else {
            eprintln!("skipped: dbus-daemon is not installed (Debian package dbus-daemon)");
            return None;
        };
        // It prints its address when it listens.
        let mut line = String::new();
        let output = process.stdout.as_mut().unwrap();
        std::io::BufReader::new(output)
            .read_line(&mut line)
            .unwrap();
        Some(Self { process, directory })
    }

    fn socket(&self) -> std::path::PathBuf {
        self.directory.path().join("bus")
    }

    /// Starts a service with the name of systemd, whose jobs end with this result.
    async fn serve_systemd(&self, result: &'static str) {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        let mut service = Connection::open(stream).await.unwrap();
        let mut arguments = body(None, &["org.freedesktop.systemd1"]);
        arguments.resize(arguments.len().next_multiple_of(4), 0);
        arguments.extend(0_u32.to_le_bytes());
        let fields = [
            (1, 'o', "/org/freedesktop/DBus"),
            (2, 's', "org.freedesktop.DBus"),
            (3, 's', "RequestName"),
            (6, 's', "org.freedesktop.DBus"),
            (8, 'g', "su"),
        ];
        let request = encode(Kind::Call, 1000, &fields, None, &arguments);
        service.send(&request).await.unwrap();
        while service.receive().await.unwrap().reply_serial != 1000 {}
        tokio::spawn(async move {
            while let Ok(message) = service.receive().await {
                if message.kind == Kind::Call {
                    for response in responses(&message, result, &message.sender) {
                        service.send(&response).await.unwrap();
                    }
                }
            }
        });
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// dbus-daemon disconnects clients whose messages are malformed.
#[tokio::test]
async fn units_are_restarted_through_a_real_bus() {
    for (result, expected) in [
        ("done", None),
        (
            "failed",
            Some("systemd ended the restart of kubelet.service with \"failed\""),
        ),
        (
            "skipped",
            Some("systemd ended the restart of kubelet.service with \"skipped\""),
        ),
    ] {
        let Some(bus) = Bus::start() else {
            return;
        };
        bus.serve_systemd(result).await;
        let systemd = Systemd::at(bus.socket());
        let found = systemd.restart(UNIT).await.err().map(|it| chain(&it));
        match (found, expected) {
            (None, None) => {}
            (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
            (found, _) => panic!("{result}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn a_bus_without_systemd_is_reported() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let error = Systemd::at(bus.socket()).restart(UNIT).await.unwrap_err();
    let text = chain(&error);
    let expected = "failed to call systemd over D-Bus: Subscribe failed with \
                    org.freedesktop.DBus.Error.";
    assert!(text.starts_with(expected), "{text}");
    let absent = Systemd::at("/does/not/exist".into());
    let text = chain(&absent.restart(UNIT).await.unwrap_err());
    assert!(
        text.starts_with("failed to connect to D-Bus at /does/not/exist"),
        "{text}"
    );
}

/// A peer that is no bus, or a hostile one, ends the restart with an error.
#[tokio::test]
async fn malformed_messages_are_rejected() {
    let header = |body: u32, fields: u32| {
        let mut bytes = vec![b'l', 2, 0, 1];
        bytes.extend(body.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(fields.to_le_bytes());
        bytes
    };
    for (name, sent, expected) in [
        (
            "no bus",
            b"HTTP/1.1 400\r\n".to_vec(),
            "does not accept this user",
        ),
        (
            "refused",
            b"REJECTED\r\n".to_vec(),
            "does not accept this user",
        ),
        ("a long line", vec![b'a'; 600], "is too long"),
        (
            "a large body",
            [b"OK 1\r\n".to_vec(), header(u32::MAX, 0)].concat(),
            "it is too large",
        ),
        (
            "many fields",
            [b"OK 1\r\n".to_vec(), header(0, u32::MAX)].concat(),
            "it is too large",
        ),
        (
            "big-endian",
            [b"OK 1\r\n".to_vec(), vec![b'B'; 16]].concat(),
            "it is not little-endian",
        ),
        (
            "a long field",
            [
                b"OK 1\r\n".to_vec(),
                header(0, 8),
                vec![3, 1, b's', 0, 255, 0, 0, 0],
            ]
            .concat(),
            "it ends early",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("bus");
        let listener = UnixListener::bind(&socket).unwrap();
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&sent).await.unwrap();
            std::future::pending::<()>().await;
        });
        let text = chain(&Systemd::at(socket).restart(UNIT).await.unwrap_err());
        assert!(text.contains(expected), "{name}: {text}");
    }
}

#[test]
fn it_takes_no_flags_but_those_of_the_log() {
    let line = ["control-plane-operator", "sync-global-pullsecret"];
    let parsed = Cli::try_parse_from(line).unwrap();
    assert!(matches!(parsed.command, Command::SyncGlobalPullsecret(_)));
    assert!(Cli::try_parse_from(line.iter().chain(&["--file=a"])).is_err());
}

#[test]
fn files_are_those_of_the_daemon_set() {
    let manifest = include_str!(
        "../hosted_cluster_config/resources/desired/assets/global-pull-secret-syncer.yaml"
    );
    let manifest: serde_json::Value = serde_saphyr::from_str(manifest).unwrap();
    let pod = &manifest["spec"]["template"]["spec"];
    let mounts = pod["containers"][0]["volumeMounts"].to_string();
    let files = Files::of_node();
    for file in [
        &files.kubelet,
        &files.original,
        &std::path::PathBuf::from("/var/run/dbus/a"),
    ] {
        let directory = json!(file.parent().unwrap()).to_string();
        assert!(mounts.contains(&directory), "{directory}: {mounts}");
    }
    let arguments = pod["containers"][0]["args"].to_string();
    assert!(arguments.contains("sync-global-pullsecret"), "{arguments}");
}
