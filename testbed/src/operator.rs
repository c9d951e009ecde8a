//! hypershift-operator as processes: each replica a program of its own, with the least rights that it needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use rustix::process::Signal;
use serde_json::Value;

use crate::cargo::Program;
use crate::client::{ApiClient, Resource};
use crate::control_plane::Endpoint;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::ports;
use crate::process::Launch;
use crate::progress::Progress;
use crate::raw::RawClient;
use crate::service::{Service, plain_health};
use crate::service_account::ServiceAccount;
use crate::testbed::Testbed;
use crate::work_dir::kill_group;

/// Environment variable that names a ready-built operator.
pub const BINARY_VARIABLE: &str = "HYPERSHIFT_OPERATOR";
/// Namespace that the operators run in.
pub const NAMESPACE: &str = "hypershift";
/// How long an operator may take to notice what tests do to it.
pub const SOON: Duration = Duration::from_mins(1);

/// How often evidence is looked at: in tests often, unless they say how often.
const RESYNC: &str = "resync-period";
/// The flag that says how many hosted clusters are migrated at a time. Other tests use none.
const MIGRATIONS: &str = "migration-concurrency";
const LEASES: Resource<'_> = Resource::new("coordination.k8s.io/v1", "leases");

/// Which of the two operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `operator`: private types, and the marks of all.
    Private,
    /// `operator-legacy`: what is marked legacy.
    Legacy,
}

/// An operator's identity before the API server, with its rights.
#[derive(Debug)]
pub struct Identity {
    /// Which one it is.
    pub operator: Operator,
    account: ServiceAccount,
    program: PathBuf,
    flags: Vec<(&'static str, String)>,
    variables: Vec<(&'static str, String)>,
}

/// How long leaders lead without a renewal, and how often they renew.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    lease: &'static str,
    renew: &'static str,
    retry: &'static str,
}

/// The address of the API server for a replica, or of its proxy.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// Its URL.
    pub url: &'a str,
    /// Who signs its certificate, with TLS.
    pub authority: Option<&'a Path>,
}

/// A running replica.
#[derive(Debug)]
pub struct Replica {
    /// The process; ready when it is alive.
    pub service: Service,
    admin: RawClient,
}

/// A lease as its candidates see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it.
    pub holder: String,
    /// The fencing epoch.
    pub epoch: u64,
    /// When it was taken, as its holder says.
    pub acquired: Timestamp,
    /// When others may take it, as its holder says.
    pub expires: Timestamp,
}

/// The flags with which an operator runs as if in a pod of a namespace. Its metrics and probes are at the port.
pub(crate) fn as_pod(
    launch: Launch,
    pod: &str,
    namespace: &str,
    port: u16,
    kubeconfig: &Path,
    times: Times,
) -> Launch {
    let launch = launch
        .arg("run")
        .flag("namespace", namespace)
        .flag("pod-name", pod)
        .flag("metrics-addr", format!("127.0.0.1:{port}"))
        .flag("log-format", "text")
        .path_flag("kubeconfig", kubeconfig);
    let flags = times.flags().into_iter();
    flags.fold(launch, |launch, (name, value)| launch.flag(name, value))
}

// === impl Operator ===

impl Operator {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Private, Self::Legacy];

    /// The name of its Deployment and of its service account.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "operator",
            Self::Legacy => "operator-legacy",
        }
    }

    fn scope(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Legacy => "legacy",
        }
    }

    /// Its roles and their bindings, as `hypershift install` makes them.
    pub fn rights(self) -> Result<Vec<Value>> {
        cli::install::rights_of(self.name(), NAMESPACE)
            .with_context(|| format!("the installation knows no {}", self.name()))
    }

    /// The name of its lease.
    pub fn lease(self) -> &'static str {
        match self {
            Self::Private => "hypershift-operator-leader-elect",
            Self::Legacy => "hypershift-operator-legacy-leader-elect",
        }
    }

    /// Its Lease, if it has a holder.
    pub async fn holder(self, admin: &ApiClient) -> Result<Option<Lease>> {
        let found = admin.find(&LEASES.named(NAMESPACE, self.lease())).await?;
        let spec = found.as_ref().map(|lease| &lease["spec"]);
        Ok(spec.and_then(|spec| {
            let time = |field: &str| spec[field].as_str()?.parse::<Timestamp>().ok();
            let lives = Duration::from_secs(spec["leaseDurationSeconds"].as_u64()?);
            Some(Lease {
                holder: spec["holderIdentity"].as_str()?.to_owned(),
                epoch: spec["leaseTransitions"].as_u64()?,
                acquired: time("acquireTime")?,
                expires: time("renewTime")?.checked_add(lives).ok()?,
            })
        }))
    }
}

// === impl Times ===

impl Times {
    /// Short, with room for a busy machine.
    pub const SHORT: Self = Self {
        lease: "3s",
        renew: "2s",
        retry: "500ms",
    };
    /// For those who have much to do beside each other, and wait for few leaders.
    pub const PATIENT: Self = Self {
        lease: "9s",
        renew: "7s",
        retry: "1s",
    };
    /// For tests that wait for many leaders, and tolerate a lost one.
    pub const SHORTEST: Self = Self {
        lease: "1s",
        renew: "700ms",
        retry: "200ms",
    };

    /// As the flags of a program.
    pub fn flags(self) -> [(&'static str, &'static str); 3] {
        [
            ("leader-elect-lease-duration", self.lease),
            ("leader-elect-renew-deadline", self.renew),
            ("leader-elect-retry-period", self.retry),
        ]
    }
}

// === impl Identity ===

impl Identity {
    /// Creates the service account and grants it what an installation grants, and no more.
    pub async fn create(testbed: &Testbed, operator: Operator, program: &Path) -> Result<Self> {
        let account = ServiceAccount::create(
            &testbed.admin,
            testbed.work_dir(),
            NAMESPACE,
            operator.name(),
        )
        .await?;
        testbed.admin.apply(&operator.rights()?).await?;
        Ok(Self {
            operator,
            account,
            program: program.to_owned(),
            flags: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// Has its replicas run with a flag more.
    #[must_use]
    pub fn with_flag(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.flags.push((name, value.into()));
        self
    }

    /// Has its replicas run with a variable of the environment more.
    #[must_use]
    pub fn with_variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The user name that the API server knows it by.
    pub fn username(&self) -> String {
        self.account.username()
    }

    /// Prepares a replica in the pod called `pod`. The times of its lease are short.
    pub fn replica(&self, testbed: &Testbed, pod: &str) -> Result<Replica> {
        let Endpoint { server, authority } = testbed.control_plane.endpoint();
        let server = Server {
            url: &server,
            authority: Some(&authority),
        };
        self.replica_at(testbed, pod, server, Times::SHORT)
    }

    /// The same, at another server, with other times.
    pub fn replica_at(
        &self,
        testbed: &Testbed,
        pod: &str,
        server: Server<'_>,
        times: Times,
    ) -> Result<Replica> {
        let kubeconfig = testbed.work_dir().join(format!("{pod}.kubeconfig"));
        let credentials = Credentials::TokenFile(self.account.token_file());
        write_kubeconfig(&kubeconfig, server.url, server.authority, credentials)?;
        let port = ports::allocate()?;
        let launch = Launch::new(pod, &self.program);
        let mut launch = as_pod(launch, pod, NAMESPACE, port, &kubeconfig, times)
            .flag("scope", self.operator.scope());
        if self.flags.iter().all(|(name, _)| *name != RESYNC) {
            launch = launch.flag(RESYNC, "1s");
        }
        if self.flags.iter().all(|(name, _)| *name != MIGRATIONS) {
            launch = launch.flag(MIGRATIONS, "0");
        }
        for (name, value) in &self.flags {
            launch = launch.flag(name, value);
        }
        for (name, value) in &self.variables {
            launch = launch.environment(name, value);
        }
        Ok(Replica {
            service: Service::new(launch, testbed.work_dir(), plain_health(port, "/livez")?),
            // Another client would hide a 503 response and retry.
            admin: RawClient::new(&format!("http://127.0.0.1:{port}"), None)?,
        })
    }
}

// === impl Replica ===

impl Replica {
    /// Fails, with what it says, unless it is ready.
    pub async fn is_ready(&self) -> Result<()> {
        self.text("/readyz").await.map(drop)
    }

    async fn text(&self, path: &str) -> Result<String> {
        let response = self.admin.get(path).await?;
        let status = response.status;
        let text = String::from_utf8(response.bytes().await?)?;
        ensure!(status.is_success(), "{path}: {status}: {text}");
        Ok(text)
    }

    /// The value of a metric that counts: of the first line that begins with `series`.
    pub async fn metric(&self, series: &str) -> Result<u64> {
        value(&self.scrape().await?, series)
    }

    /// All metrics, of one scrape.
    pub async fn scrape(&self) -> Result<String> {
        self.text("/metrics").await
    }

    /// Freezes it, as a machine without CPU would.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it continue.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.service.pid() {
            kill_group(pid, signal);
        }
    }

    /// The lines of its log that hold `text`.
    pub fn logged(&self, text: &str) -> Result<Vec<String>> {
        let path = self.service.log();
        let log = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let log = String::from_utf8_lossy(&log);
        let lines = log.lines().filter(|line| line.contains(text));
        Ok(lines.map(ToOwned::to_owned).collect())
    }
}

/// The value of a metric that counts in a scrape: of the first line that begins with `series`.
pub fn value(scrape: &str, series: &str) -> Result<u64> {
    let line = scrape.lines().find(|line| line.starts_with(series));
    let line = line.with_context(|| format!("there is no metric {series}"))?;
    let value = line.rsplit(' ').next().unwrap_or_default();
    value.parse().with_context(|| line.to_owned())
}

/// Builds the operator, or takes the one that the environment names.
pub async fn build(progress: &Progress) -> Result<PathBuf> {
    let program = Program::dev("hypershift-operator", "hypershift-operator");
    program.find(BINARY_VARIABLE, progress).await
}
