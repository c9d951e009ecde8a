//! Whether the agent namespace allows a cluster to use its Agents: its owner annotates the Namespace.
//!
//! Without it, anyone who may create a HostedCluster could have the operator grant rights on the Agents of others.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;

use crate::context::Context;
use crate::error::Error;
use crate::facts::{AgentNamespace, Facts};
use crate::names::{
    AGENT_CONSENT, AGENT_CONSUMERS, CAPI_PROVIDER, agent_binding, earlier_agent_rbac,
};

/// The conditions of the namespace.
pub(super) async fn consent(facts: &Facts, ctx: &Context) -> Result<Option<AgentNamespace>, Error> {
    let Some(agent) = &facts.cluster.spec.platform.agent else {
        return Ok(None);
    };
    let Some(namespace) = super::namespace(ctx, &agent.agent_namespace).await? else {
        return Ok(Some(AgentNamespace::Missing));
    };
    if let Some(decided) = decided(&namespace, &facts.id.namespace) {
        return Ok(Some(decided));
    }
    for name in bindings(&facts.namespace) {
        let found = ctx
            .get::<RoleBinding>(&agent.agent_namespace, &name)
            .await?;
        if found.is_some_and(|it| is_granted(&it, &facts.namespace)) {
            return Ok(Some(AgentNamespace::Grandfathered));
        }
    }
    Ok(Some(AgentNamespace::Refused))
}

/// The consent of the namespace: its own clusters may use it, and those of the namespaces that the annotation lists.
fn decided(namespace: &Namespace, home: &str) -> Option<AgentNamespace> {
    if namespace.metadata.name.as_deref() == Some(home) {
        return Some(AgentNamespace::Allowed);
    }
    let annotations = namespace.metadata.annotations.as_ref();
    let listed = annotations?.get(AGENT_CONSUMERS)?;
    let is_listed = listed.split(',').any(|it| it.trim() == home);
    Some(if is_listed {
        AgentNamespace::Allowed
    } else {
        AgentNamespace::Refused
    })
}

/// Bindings of a cluster that was created before consent was required: of earlier versions of this operator, and of this
/// one and the one that it takes over from. Only someone with rights in the namespace can make one. Those that this
/// operator makes with the namespace's consent are annotated: they do not outlast it.
fn bindings(control_plane: &str) -> [String; 2] {
    [
        earlier_agent_rbac(control_plane),
        agent_binding(control_plane),
    ]
}

fn is_granted(binding: &RoleBinding, control_plane: &str) -> bool {
    let annotations = binding.metadata.annotations.as_ref();
    if annotations.is_some_and(|it| it.contains_key(AGENT_CONSENT)) {
        return false;
    }
    let mut subjects = binding.subjects.iter().flatten();
    subjects.any(|it| {
        it.kind == "ServiceAccount"
            && it.name == CAPI_PROVIDER
            && it.namespace.as_deref() == Some(control_plane)
    })
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;
    use crate::platform::infrastructure;

    /// Check T11.
    #[test]
    fn agent_namespaces_decide_which_clusters_use_them() {
        let (allowed, refused) = (Some(AgentNamespace::Allowed), Some(AgentNamespace::Refused));
        for (home, annotation, expected) in [
            ("clusters", None, None),
            ("agents", None, allowed),
            ("agents", Some(""), allowed),
            ("clusters", Some("clusters"), allowed),
            ("clusters", Some("other, clusters"), allowed),
            ("clusters", Some("clusters-2"), refused),
            ("clusters", Some(""), refused),
        ] {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some("agents".to_owned());
            namespace.metadata.annotations =
                annotation.map(|it| [(AGENT_CONSUMERS.to_owned(), it.to_owned())].into());
            assert_eq!(decided(&namespace, home), expected, "{home} {annotation:?}");
        }
    }

    /// Check T11. Earlier versions of this operator have annotated the binding with the HostedCluster only.
    #[test]
    fn clusters_that_already_use_agents_are_allowed_until_their_namespace_consents() {
        let earlier = json!({ "hypershift.openshift.io/cluster": "clusters/one" });
        let consented = json!({
            "hypershift.openshift.io/cluster": "clusters/one",
            "hypershift.openshift.io/agent-consent": "true",
        });
        for (account, namespace, annotations, expected) in [
            ("capi-provider", "clusters-one", json!({}), true),
            ("capi-provider", "clusters-one", earlier, true),
            ("capi-provider", "clusters-one", consented, false),
            ("capi-provider", "clusters-two", json!({}), false),
            ("default", "clusters-one", json!({}), false),
        ] {
            let name = format!("{account} of {namespace}, {annotations}");
            let binding = serde_json::from_value(json!({
                "metadata": { "annotations": annotations },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a" },
                "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
            }));
            assert_eq!(
                is_granted(&binding.unwrap(), "clusters-one"),
                expected,
                "{name}"
            );
        }
    }

    /// The next reconcile of a cluster that is allowed by its binding must not turn the binding into one by consent.
    #[test]
    fn only_bindings_by_consent_are_annotated() {
        for (consent, expected) in [
            (AgentNamespace::Allowed, true),
            (AgentNamespace::Grandfathered, false),
        ] {
            let mut facts = fixture::facts(fixture::hosted_cluster("agent"), CapiTypes::Private);
            facts.agent_namespace = Some(consent);
            let platform = infrastructure(facts.cluster.spec.platform.type_);
            let objects = platform.external_objects(&facts);
            let mut bindings = objects
                .into_iter()
                .filter(|it| it.resource.kind == "RoleBinding");
            let binding: RoleBinding =
                serde_json::from_value(bindings.next().unwrap().body).unwrap();
            assert_eq!(
                is_granted(&binding, &facts.namespace),
                !expected,
                "{consent:?}"
            );
        }
    }
}
