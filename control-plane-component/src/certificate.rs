//! Serving and client certificates of components, and the authorities that sign them, as data: PKI issues and renews
//! them.

use std::time::Duration;

use super::names::canonical;

/// Default validity of a certificate.
pub const DEFAULT_VALIDITY: Duration = Duration::from_hours(24 * 365);
/// Secret of the authority that signs serving certificates of the control plane.
pub const ROOT: &str = "root-ca";
/// Secret of the authority that konnectivity trusts.
pub const KONNECTIVITY: &str = "konnectivity-signer";
/// Secret of the authority that signs certificates of the guest's service accounts.
pub const CSR: &str = "cluster-signer-ca";
/// Secret of the authority that signs client certificates of the control plane.
pub const CONTROL_PLANE: &str = "kube-control-plane-signer";

/// Keys of a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `ca.crt` and `ca.key`, and the same as `tls.crt` and `tls.key`.
    Authority,
    /// `tls.crt` and `tls.key`, of type kubernetes.io/tls.
    Tls,
    /// `tls.crt`, `tls.key` and `ca.crt`.
    Leaf,
    /// A custom prefix instead of `tls`.
    Named(&'static str),
    /// Like `Leaf`, with a kubeconfig that contains it.
    Kubeconfig,
    /// The same, for a container in the API server's pods.
    LocalKubeconfig,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// To authenticate as a user.
    Client,
    /// To serve TLS for its names.
    Server,
    /// Both.
    Both,
    /// No extended key usage: any use.
    Unrestricted,
}

/// A certificate authority and its Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Name of its Secret.
    pub secret: &'static str,
    /// Its common name.
    pub common_name: &'static str,
    /// Its organizational unit.
    pub unit: &'static str,
    /// Type and keys of its Secret.
    pub form: Form,
    /// The CA bundle `ConfigMaps` that contain it.
    pub bundles: &'static [&'static str],
}

/// A certificate and its Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Name of the Secret.
    pub secret: String,
    /// Secret of the signing authority.
    pub authority: &'static str,
    /// Common name: the user name of a client.
    pub common_name: String,
    /// Organizations: the groups of a client.
    pub organizations: Vec<String>,
    /// What it is for.
    pub usage: Usage,
    /// Subject alternative names: DNS names and IP addresses.
    pub names: Vec<String>,
    /// Type and keys of the Secret.
    pub form: Form,
    /// Validity period.
    pub validity: Duration,
}

// === impl Form ===

impl Form {
    /// Returns the Secret keys of the certificate and of its private key.
    pub fn pair(self) -> (String, String) {
        let of = |prefix: &str| (format!("{prefix}.crt"), format!("{prefix}.key"));
        match self {
            Self::Authority => of("ca"),
            Self::Tls | Self::Leaf | Self::Kubeconfig | Self::LocalKubeconfig => of("tls"),
            Self::Named(prefix) => of(prefix),
        }
    }

    /// Type of the Secret.
    pub fn secret_type(self) -> &'static str {
        match self {
            Self::Tls => "kubernetes.io/tls",
            Self::Authority
            | Self::Leaf
            | Self::Named(_)
            | Self::Kubeconfig
            | Self::LocalKubeconfig => "Opaque",
        }
    }
}

/// Creates an authority with its Secret and common name.
pub const fn authority(secret: &'static str, common_name: &'static str) -> Authority {
    Authority {
        secret,
        common_name,
        unit: "openshift",
        form: Form::Authority,
        bundles: &[],
    }
}

// === impl Authority ===

impl Authority {
    /// Adds it to CA bundle `ConfigMaps`.
    #[must_use]
    pub const fn trusted_in(mut self, bundles: &'static [&'static str]) -> Self {
        self.bundles = bundles;
        self
    }

    /// Sets its organizational unit.
    #[must_use]
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Sets type and keys of the Secret.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }
}

/// Creates a certificate from its Secret, its authority's Secret, its common name and its organization, which may be
/// empty.
pub fn leaf(
    secret: &str,
    authority: &'static str,
    name: &str,
    organization: &str,
    usage: Usage,
) -> Leaf {
    Leaf {
        secret: secret.to_owned(),
        authority,
        common_name: name.to_owned(),
        organizations: [organization]
            .into_iter()
            .filter(|organization| !organization.is_empty())
            .map(str::to_owned)
            .collect(),
        usage,
        names: Vec::new(),
        form: Form::Leaf,
        validity: DEFAULT_VALIDITY,
    }
}

/// A serving certificate signed by the root CA.
pub fn server(secret: &str, name: &str) -> Leaf {
    leaf(secret, ROOT, name, "openshift", Usage::Both)
}

/// A client certificate for a service account of the guest, with a kubeconfig.
pub fn account(secret: &str, namespace: &str, name: &str) -> Leaf {
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let group = format!("system:serviceaccounts:{namespace}");
    leaf(secret, CSR, &user, &group, Usage::Client)
        .group("system:serviceaccounts")
        .form(Form::Kubeconfig)
}

// === impl Leaf ===

impl Leaf {
    /// Adds DNS names and IP addresses.
    #[must_use]
    pub fn names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| canonical(&name));
        self.names.extend(names);
        self
    }

    /// Sets type and keys of the Secret.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Adds a group of the user.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.organizations.push(group.to_owned());
        self
    }
}
