//! Reads what a private link depends on: its HostedCluster, and the Service.

use api::hypershift::v1beta1::HostedCluster;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use ownership::Scope;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cache::{self, NamespaceMeta};
use crate::cluster_ref::Id;
use crate::context::Context;
use crate::control_plane_namespace::{self, Namespace};
use crate::error::Error;

/// The HostedCluster of a private link.
pub(super) struct Owner {
    pub(super) id: Id,
    /// `None` if it does not exist any more.
    pub(super) cluster: Option<HostedCluster>,
}

/// The HostedCluster whose control plane is in the namespace of the object, as far as it is known without a request.
pub(super) fn id(found: &DynamicObject, ctx: &Context) -> Option<Id> {
    let name = found.namespace().unwrap_or_default();
    let namespaces = &ctx.cache.stores.namespaces;
    // The cache has Namespaces as if they were in themselves.
    let namespace = namespaces.get(&ObjectRef::<NamespaceMeta>::new(&name).within(&name))?;
    let key = cache::annotated(&namespace.metadata, crate::names::CLUSTER)?;
    let id = Id {
        namespace: key.namespace,
        name: key.name,
    };
    (id.control_plane_namespace() == name).then_some(id)
}

/// The same HostedCluster, if the namespace is really that of its control plane, and if this operator reconciles it.
pub(super) async fn owner(
    id: Id,
    found: &DynamicObject,
    ctx: &Context,
) -> Result<Option<Owner>, Error> {
    // The cache may be out of date.
    let namespace = control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
    let Namespace::Owned(owned) = &namespace else {
        return Ok(None);
    };
    if !owned.has(&found.metadata) {
        return Ok(None);
    }
    let read = ctx.hosted_clusters(&id).get_opt(&id.name).await;
    let read = read.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })?;
    let Some(cluster) = read else {
        // The operator of the standard types goes when no cluster needs it.
        let is_own = ctx.scope != Scope::Legacy;
        return Ok(is_own.then_some(Owner { id, cluster: None }));
    };
    if ctx.reconciled_types(&cluster, &namespace).await?.is_none() {
        return Ok(None);
    }
    let cluster = Some(typed(&cluster, "HostedCluster")?);
    Ok(Some(Owner { id, cluster }))
}

/// An object with its Rust type.
pub(super) fn typed<K: DeserializeOwned>(found: &DynamicObject, kind: &str) -> Result<K, Error> {
    serde_json::from_value(json!(found)).map_err(|error| Error::Unreadable {
        object: format!("{kind} {}", Id::of(&found.metadata)),
        problem: error.to_string(),
    })
}

/// A load balancer, as the status of its Service has it, which only the management cluster writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Balancer {
    pub(super) address: String,
    /// The name that the controllers of clouds give to what they make for the Service: its UID.
    pub(super) name: String,
}

/// The load balancer of a Service of the control plane, once it has an address.
pub(super) async fn balancer(
    namespace: &str,
    name: &str,
    ctx: &Context,
) -> Result<Option<Balancer>, Error> {
    let service = ctx.get::<Service>(namespace, name).await?;
    Ok(service.as_ref().and_then(Balancer::of))
}

// === impl Balancer ===

impl Balancer {
    /// The longest name that clouds allow.
    const LONGEST: usize = 32;

    fn of(service: &Service) -> Option<Self> {
        let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
        let ingress = balancer.ingress.as_ref()?;
        let address = ingress.iter().find_map(|it| it.ip.clone())?;
        let uid = service.metadata.uid.as_deref()?.replace('-', "");
        let mut name = format!("a{uid}");
        name.truncate(Self::LONGEST);
        Some(Self { address, name })
    }

    /// Whether a name is the one of what was made for the Service.
    pub(super) fn is_named(&self, name: &str) -> bool {
        label(name) == self.name
    }

    /// Whether a name is the one of what was made for another Service. Other names prove nothing.
    pub(super) fn is_of_another(&self, name: &str) -> bool {
        let label = label(name);
        let hex = label.strip_prefix('a').unwrap_or_default();
        let is_uid = label.len() == Self::LONGEST && hex.bytes().all(|it| it.is_ascii_hexdigit());
        is_uid && label != self.name
    }
}

/// A name without what clouds add.
fn label(name: &str) -> &str {
    name.split('-').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_distinguish_services() {
        let service = |ip: Option<&str>| -> Service {
            serde_json::from_value(json!({
                "metadata": { "uid": "01234567-89ab-cdef-0123-456789abcdef" },
                "status": { "loadBalancer": { "ingress": [{ "ip": ip }] } },
            }))
            .unwrap()
        };
        assert_eq!(Balancer::of(&service(None)), None);
        let own = Balancer::of(&service(Some("10.0.0.4"))).unwrap();
        assert_eq!(own.address, "10.0.0.4");
        assert_eq!(own.name, "a0123456789abcdef0123456789abcde");
        for (name, expected) in [
            ("a0123456789abcdef0123456789abcde", false),
            ("a0123456789abcdef0123456789abcde-subnet", false),
            ("afedcba9876543210fedcba987654321", true),
            ("afedcba9876543210fedcba987654321-subnet", true),
            ("frontend", false),
            ("a0123", false),
        ] {
            assert_eq!(own.is_of_another(name), expected, "{name}");
            let is_own = name.starts_with(&own.name);
            assert_eq!(own.is_named(name), is_own, "{name}");
        }
    }
}
