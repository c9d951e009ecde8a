//! IBM Cloud: the machines are those of IBM's own service, so there are no controllers and no credentials.

use kube::api::ApiResource;
use serde_json::json;

use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::platform::{ClusterIs, Infrastructure};

/// How infrastructure is built that has no object of Cluster API.
const WITHOUT_CLUSTER: [&str; 3] = ["UPI", "Classic", "VPC"];

/// IBM Cloud.
#[derive(Debug)]
pub(crate) struct IbmCloud;

// === impl IbmCloud ===

impl Infrastructure for IbmCloud {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let ibm_cloud = facts.cluster.spec.platform.ibmcloud.as_ref();
        let built = ibm_cloud.and_then(|it| it.provider_type.as_deref());
        if built.is_some_and(|it| WITHOUT_CLUSTER.contains(&it)) {
            return ClusterIs::Absent;
        }
        // The kind requires both fields; no controller reads them.
        let mut fields = json!({ "spec": { "region": "", "resourceGroup": "" } });
        if let Some(endpoint) = facts.control_plane_endpoint() {
            fields["spec"]["controlPlaneEndpoint"] = endpoint;
        }
        let kind = facts
            .capi
            .infrastructure("v1beta2", "IBMVPCCluster", "ibmvpcclusters");
        let cluster = Desired::of(kind, &facts.namespace, &facts.id.name, fields);
        ClusterIs::Desired(Box::new(cluster))
    }

    fn kinds(&self, _: Capi) -> Option<Vec<ApiResource>> {
        None
    }

    fn provider_image(&self, _: &Facts) -> Result<Option<String>, String> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use serde_json::Value;

    use super::*;
    use crate::facts::fixture;
    use crate::platform::tests::serve;

    fn facts(built: Option<&str>, types: CapiTypes) -> Facts {
        let mut cluster = fixture::hosted_cluster("none");
        let platform = json!({ "type": "IBMCloud", "ibmcloud": { "providerType": built } });
        cluster.spec.platform = serde_json::from_value(platform).unwrap();
        fixture::facts(cluster, types)
    }

    #[test]
    fn the_cluster_object_depends_on_how_infrastructure_is_built() {
        for (built, expected) in [
            (None, true),
            (Some("UnknownProvider"), true),
            (Some("UPI"), false),
            (Some("Classic"), false),
            (Some("VPC"), false),
        ] {
            match IbmCloud.cluster(&facts(built, CapiTypes::Private)) {
                ClusterIs::Desired(_) => assert!(expected, "{built:?}"),
                ClusterIs::Absent => assert!(!expected, "{built:?}"),
                ClusterIs::Later => panic!("{built:?}: there is nothing to wait for"),
            }
        }
    }

    #[test]
    fn the_cluster_object_has_the_endpoint_of_the_control_plane() {
        for types in [CapiTypes::Private, CapiTypes::Standard] {
            let mut facts = facts(None, types);
            let endpoint = json!({ "host": "api.example.com", "port": 2040 });
            serve(&mut facts, &endpoint);
            let ClusterIs::Desired(cluster) = IbmCloud.cluster(&facts) else {
                panic!("there is no cluster object");
            };
            assert_eq!(cluster.resource.group, api::group::infrastructure(types));
            assert_eq!(cluster.resource.kind, "IBMVPCCluster");
            assert_eq!(
                cluster.body,
                json!({
                    "metadata": { "namespace": "clusters-one", "name": "one" },
                    "spec": {
                        "region": "",
                        "resourceGroup": "",
                        "controlPlaneEndpoint": endpoint,
                    },
                })
            );
            assert!(IbmCloud.is_external());
            assert_eq!(IbmCloud.provider_image(&facts), Ok(None));
            assert_eq!(IbmCloud.credentials(&facts), None);
            assert!(IbmCloud.secrets(&facts).is_empty());
            assert_eq!(IbmCloud.rules(), Vec::<Value>::new());
        }
    }
}
