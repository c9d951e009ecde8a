//! What is to be there: options and what is known of the cluster in, objects in their order out. Pure.

use std::fmt;

use serde_json::Value;

use super::args::Outputs;
use super::external_dns::{self, DnsSurroundings};
use super::kind::Kind;
use super::object::Object;
use super::options::{Options, Types};
use super::workload::{self, Operator};
use super::{admin_rbac, cluster_policies, conversion, ground, monitoring, rbac, tenant_policy};

/// What the objects depend on, as far as the cluster decides it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The Prometheus operator's kinds are served.
    pub(crate) monitoring: bool,
    /// OpenShift's console is there.
    pub(crate) console: bool,
    /// Hosted clusters that operator-legacy is needed for, by `namespace/name`.
    pub(crate) legacy: Vec<String>,
    /// What the tenant policy does unless a flag says otherwise.
    pub(crate) tenant_policy: tenant_policy::Mode,
    /// What ExternalDNS depends on, where it is wanted.
    pub(crate) dns: DnsSurroundings,
}

/// CRDs by where they come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definitions {
    /// Of our own kinds.
    pub(crate) own: Vec<Value>,
    /// Cluster API's private twins.
    pub(crate) private: Vec<Value>,
}

/// What is to be there.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In the order in which they are made.
    pub(crate) objects: Vec<Object>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// What is not installed, although users may expect it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) what: String,
    pub(crate) why: String,
}

// === impl LeftOut ===

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

// === impl Plan ===

impl Plan {
    /// Decides what is to be there.
    pub(crate) fn make(
        options: &Options,
        outputs: Outputs,
        definitions: &Definitions,
        surroundings: &Surroundings,
    ) -> anyhow::Result<Self> {
        let mut plan = Self::default();
        if outputs.crds() {
            plan.add_definitions(options, definitions);
        }
        if outputs.resources() {
            plan.add_ground(options);
            plan.add_monitoring(options, surroundings)?;
            plan.add_external_dns(options, surroundings)?;
            plan.add_tenant_policy(options, surroundings);
            plan.objects
                .extend(cluster_policies::objects(&options.namespace));
            plan.add_operators(options, surroundings);
            plan.add_conversion(options, definitions, surroundings)?;
        }
        plan.objects = plan
            .objects
            .into_iter()
            .map(|object| object.mark(&options.namespace))
            .collect();
        // Stable: within a kind, the order of addition.
        plan.objects.sort_by_key(|object| object.id.kind);
        Ok(plan)
    }

    /// Takes the Secrets out.
    pub(crate) fn without_secrets(&mut self) {
        let (secrets, rest) = std::mem::take(&mut self.objects)
            .into_iter()
            .partition(|object| object.id.kind == Kind::Secret);
        self.objects = rest;
        self.left_out
            .extend(secrets.into_iter().map(|secret: Object| LeftOut {
                what: secret.id.to_string(),
                why: "it is secret, and --render-sensitive was not given".to_owned(),
            }));
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.left_out.push(LeftOut {
            what: what.to_owned(),
            why: why.to_owned(),
        });
    }

    fn add_definitions(&mut self, options: &Options, definitions: &Definitions) {
        let Definitions { own, private } = definitions;
        let crds = own.iter().chain(private).cloned().map(Object::crd);
        self.objects.extend(crds);
        match options.types {
            Types::Standard => self.leave_out(
                "Cluster API's CRDs",
                "without --private-capi-types they are the platform's, or its Cluster API's own installation brings them",
            ),
            Types::Private(_) => {}
        }
    }

    fn add_ground(&mut self, options: &Options) {
        self.objects.push(ground::namespace(options));
        self.objects
            .extend(ground::priority_classes(&options.namespace));
        self.objects.extend(ground::pull_secret(options));
        self.objects.extend(ground::trust_bundle(options));
        self.objects.extend(ground::operator_overrides(options));
        let oidc_storage = options.oidc_storage.iter();
        self.objects
            .extend(oidc_storage.flat_map(|it| it.objects(&options.namespace)));
        let private_links = options.private_links.as_ref();
        self.objects
            .extend(private_links.and_then(|it| it.object(&options.namespace)));
        let scale_from_zero = options.scale_from_zero.as_ref();
        self.objects
            .extend(scale_from_zero.and_then(|it| it.object(&options.namespace)));
        self.objects.extend(ground::network_policies(options));
    }

    fn add_monitoring(
        &mut self,
        options: &Options,
        surroundings: &Surroundings,
    ) -> anyhow::Result<()> {
        if surroundings.monitoring {
            self.objects.extend(monitoring::objects(options)?);
        } else {
            self.leave_out(
                "ServiceMonitor and PrometheusRule",
                "this cluster has no such kinds; install again once the Prometheus operator is there",
            );
        }
        self.objects.extend(monitoring::prometheus_roles(options));
        if !options.dashboards {
            return Ok(());
        }
        if surroundings.console {
            self.objects.push(monitoring::dashboard());
        } else {
            self.leave_out("the dashboard", "this cluster has no OpenShift console");
        }
        Ok(())
    }

    fn add_external_dns(
        &mut self,
        options: &Options,
        surroundings: &Surroundings,
    ) -> anyhow::Result<()> {
        let Some(external_dns) = &options.external_dns else {
            return Ok(());
        };
        let Surroundings {
            monitoring, dns, ..
        } = surroundings;
        let objects = external_dns::objects(external_dns, options, dns, *monitoring)?;
        self.objects.extend(objects);
        for (what, why) in external_dns.left_out(dns) {
            self.leave_out(what, why);
        }
        Ok(())
    }

    fn add_tenant_policy(&mut self, options: &Options, surroundings: &Surroundings) {
        let mode = options.tenant_policy.unwrap_or(surroundings.tenant_policy);
        let releases = &options.tenant_release_images;
        let objects = tenant_policy::objects(&options.namespace, mode, releases);
        self.objects.extend(objects);
        if options.tenant_policy.is_none() && mode == tenant_policy::Mode::Warn {
            self.leave_out(
                "enforcement of the tenant policy",
                "it warns, so that authors of existing hosted clusters can adapt; give --tenant-policy=enforce when the \
                 audit log has no more violations",
            );
        }
    }

    fn add_operators(&mut self, options: &Options, surroundings: &Surroundings) {
        self.objects.push(rbac::pki_operator(&options.namespace));
        if options.admin_rbac {
            let objects = admin_rbac::objects(&options.namespace, &options.types);
            self.objects.extend(objects);
        }
        for operator in Operator::ALL {
            if operator == Operator::Legacy && !self.wants_legacy(options, surroundings) {
                continue;
            }
            self.objects
                .push(ground::service_account(options, operator));
            let capi_types = operator.capi_types(&options.types);
            self.objects
                .extend(rbac::objects(&options.namespace, operator, capi_types));
            self.objects.push(ground::service(options, operator));
            self.objects.push(workload::deployment(options, operator));
        }
    }

    fn add_conversion(
        &mut self,
        options: &Options,
        definitions: &Definitions,
        surroundings: &Surroundings,
    ) -> anyhow::Result<()> {
        if let Some(private) = options.private() {
            let objects = conversion::objects(options, private, surroundings.monitoring)?;
            self.objects.extend(objects);
            self.objects
                .extend(conversion::renewal(private, &definitions.private));
        }
        Ok(())
    }

    fn wants_legacy(&mut self, options: &Options, surroundings: &Surroundings) -> bool {
        let why = match (&options.types, surroundings.legacy.is_empty()) {
            (Types::Private(_), false) => return true,
            (Types::Private(_), true) => "no hosted cluster has its objects in the standard groups",
            (Types::Standard, _) => {
                "without --private-capi-types, one operator acts on all hosted clusters"
            }
        };
        self.leave_out("operator-legacy", why);
        false
    }
}
