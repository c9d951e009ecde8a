//! The binary, started for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Client, Pki, Response, eventually};

/// How a proxy is started.
pub(crate) struct Builder {
    directory: TempDir,
    server: String,
    user: String,
    authority: bool,
    args: Vec<String>,
    listen: bool,
}

/// A proxy that runs.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) directory: TempDir,
    /// Where clients are served.
    pub(crate) listen: String,
    admin: String,
    args: Vec<String>,
}

// === impl Builder ===

impl Builder {
    /// A proxy for the API server at `server`, with a static token.
    pub(crate) fn new(server: &str) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            server: server.to_owned(),
            user: "{token: the-proxys-token}".to_owned(),
            authority: false,
            args: Vec::new(),
            listen: true,
        }
    }

    /// The directory of the kubeconfig, to which its paths are relative.
    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// A file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Trusts the authority of `pki`.
    pub(crate) fn trusting(mut self, pki: &Pki) -> Self {
        fs::write(self.path("ca.crt"), pki.authority()).unwrap();
        self.authority = true;
        self
    }

    /// The user of the kubeconfig, as YAML.
    pub(crate) fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// More flags.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Listens where the flags say, not on a port of its own.
    pub(crate) fn listening_elsewhere(mut self) -> Self {
        self.listen = false;
        self
    }

    /// Writes the kubeconfig; the whole command line.
    fn prepare(&self) -> Vec<String> {
        let Self {
            directory,
            server,
            user,
            authority,
            args,
            listen,
        } = self;
        let authority = if *authority {
            ", certificate-authority: ca.crt"
        } else {
            ""
        };
        let kubeconfig = format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: '{server}'{authority}}}}}], users: [{{name: u, user: {user}}}]}}"
        );
        fs::write(directory.path().join("kubeconfig"), kubeconfig).unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let mut all = vec!["serve".to_owned(), "--admin-listen=127.0.0.1:0".to_owned()];
        all.push(format!("--kubeconfig={}", path("kubeconfig")));
        if !args.iter().any(|arg| arg.starts_with("--address-file")) {
            all.push(format!("--address-file={}", path("addresses")));
        }
        if *listen {
            all.push("--listen=127.0.0.1:0".to_owned());
        }
        all.extend(args.iter().cloned());
        all
    }

    /// Starts it, and waits until it serves clients. It may not be ready.
    pub(crate) async fn serve(self) -> Proxy {
        let args = self.prepare();
        let child = spawn(self.directory.path(), &args);
        let mut proxy = Proxy {
            child,
            directory: self.directory,
            listen: String::new(),
            admin: String::new(),
            args,
        };
        proxy.find_addresses().await;
        proxy
    }

    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(self) -> Proxy {
        let proxy = self.serve().await;
        proxy.ready().await;
        proxy
    }

    /// Runs it to its end, which must come soon.
    pub(crate) async fn run(self) -> (ExitStatus, String) {
        let args = self.prepare();
        let mut child = spawn(self.directory.path(), &args);
        let status = wait(&mut child).await;
        (
            status,
            fs::read_to_string(self.directory.path().join("log")).unwrap(),
        )
    }
}

fn spawn(directory: &Path, args: &[String]) -> Child {
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .unwrap();
    Command::new(env!("CARGO_BIN_EXE_capi-proxy"))
        .args(args)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

async fn wait(child: &mut Child) -> ExitStatus {
    let mut status = None;
    eventually("the process has ended", async || {
        status = child.try_wait().unwrap();
        status.is_some()
    })
    .await;
    status.unwrap()
}

// === impl Proxy ===

impl Proxy {
    /// A proxy with nothing special about it.
    pub(crate) async fn before(server: &str) -> Self {
        Builder::new(server).start().await
    }

    async fn find_addresses(&mut self) {
        let file = self.directory.path().join("addresses");
        eventually("the proxy serves clients", async || {
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "the proxy ended:\n{}",
                self.log()
            );
            file.exists()
        })
        .await;
        let addresses: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        addresses["listen"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.listen);
        addresses["admin"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.admin);
    }

    /// Waits until `/readyz` says so.
    pub(crate) async fn ready(&self) {
        eventually("the proxy is ready", async || {
            self.admin("/readyz").await.status == 200
        })
        .await;
    }

    /// A connection of a client.
    pub(crate) async fn connect(&self) -> Client {
        Client::connect(&self.listen).await
    }

    /// Sends a request to the port for probes and metrics.
    pub(crate) async fn admin(&self, path: &str) -> Response {
        Client::connect(&self.admin).await.get(path).await
    }

    /// The value of a metric, with its labels in the name.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.admin("/metrics").await.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end; how it ended, and how long that took.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, std::time::Duration) {
        let started = Instant::now();
        (wait(&mut self.child).await, started.elapsed())
    }

    /// Kills it, and starts it again with the same flags on the same port.
    pub(crate) async fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_file(self.directory.path().join("addresses")).unwrap();
        let listen = format!("--listen={}", self.listen);
        let args: Vec<_> = self
            .args
            .iter()
            .filter(|arg| !arg.starts_with("--listen="))
            .cloned()
            .chain([listen])
            .collect();
        self.child = spawn(self.directory.path(), &args);
        self.find_addresses().await;
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Open files.
    pub(crate) fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }

    /// Waits until no more files are open than `files`.
    pub(crate) async fn settles_at(&self, files: usize) {
        eventually("files are closed", async || self.files() <= files).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<_> = log.lines().rev().take(30).collect();
            eprintln!("--- the end of the proxy's log ---");
            tail.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}
