//! What calls of IBM Cloud's services are like. Nothing is sent here.

mod networks;

use serde_json::{Value, json};
use support::ibm_cloud::{Endpoints, encoded};
use support::rest::Request;

use super::regions;
use super::scope::Scope;

/// The catalog's identifiers of services and of plans.
const POWER_VS: &str = "abd259f0-9990-11e8-acc8-b9f54a8f1661";
const POWER_VS_PLAN: &str = "f165dd34-3a40-423b-9d95-e90a23f724dd";
const INTERNET_SERVICES: &str = "75874a60-cb12-11e7-948e-37ac098eb1b9";
const OBJECT_STORAGE: &str = "dff97f5c-bc5e-4455-b470-411c3edbe49c";
const PAGE: &str = "limit=100";

/// Makes calls for one place.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    identity: String,
    resources: String,
    internet_services: String,
    tagging: String,
    /// With the version of the path.
    transit: String,
    vpc: String,
    power: String,
    /// The region of Cloud Object Storage, and the endpoint there.
    storage: Option<(&'static str, String)>,
}

/// A workspace in calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workspace {
    /// Its identifier.
    pub(super) id: String,
    pub(super) crn: String,
}

// === impl Api ===

impl Api {
    pub(crate) fn new(endpoints: &Endpoints, scope: &Scope) -> Self {
        let place = &scope.place;
        let storage = regions::storage_region(&place.region);
        Self {
            identity: endpoints.identity(),
            resources: endpoints.resources(),
            internet_services: endpoints.internet_services(),
            tagging: endpoints.tagging(),
            transit: format!("{}/v1/transit_gateways", endpoints.transit_gateways()),
            vpc: format!("{}/v1", endpoints.vpc(&place.vpc_region)),
            power: endpoints.power_vs(&place.region),
            storage: storage.map(|region| (region, endpoints.object_storage(region))),
        }
    }

    // Identities.

    /// What an API key belongs to.
    pub(super) fn key_details(&self, key: &str) -> Request {
        Request::get(format!("{}/v1/apikeys/details", self.identity)).with_header("iam-apikey", key)
    }

    pub(super) fn service_ids(&self, account: &str, name: &str) -> Request {
        let (account, name) = (encoded(account), encoded(name));
        Request::get(format!(
            "{}/v1/serviceids?account_id={account}&name={name}&pagesize=100",
            self.identity
        ))
    }

    pub(super) fn create_service_id(
        &self,
        account: &str,
        name: &str,
        description: &str,
    ) -> Request {
        let body = json!({ "account_id": account, "name": name, "description": description });
        Request::post(format!("{}/v1/serviceids", self.identity), body)
    }

    pub(super) fn delete_service_id(&self, id: &str) -> Request {
        Request::delete(format!("{}/v1/serviceids/{}", self.identity, encoded(id)))
    }

    pub(super) fn policies(&self, account: &str, iam_id: &str) -> Request {
        let (account, iam_id) = (encoded(account), encoded(iam_id));
        Request::get(format!(
            "{}/v1/policies?account_id={account}&iam_id={iam_id}",
            self.identity
        ))
    }

    pub(super) fn create_policy(&self, policy: &Value) -> Request {
        Request::post(format!("{}/v1/policies", self.identity), policy.clone())
    }

    pub(super) fn delete_policy(&self, id: &str) -> Request {
        Request::delete(format!("{}/v1/policies/{}", self.identity, encoded(id)))
    }

    pub(super) fn api_keys(&self, account: &str, iam_id: &str) -> Request {
        let (account, iam_id) = (encoded(account), encoded(iam_id));
        Request::get(format!(
            "{}/v1/apikeys?account_id={account}&iam_id={iam_id}&type=serviceid&pagesize=100",
            self.identity
        ))
    }

    pub(super) fn create_api_key(&self, account: &str, iam_id: &str, name: &str) -> Request {
        let body = json!({ "account_id": account, "iam_id": iam_id, "name": name });
        Request::post(format!("{}/v1/apikeys", self.identity), body)
    }

    pub(super) fn delete_api_key(&self, id: &str) -> Request {
        Request::delete(format!("{}/v1/apikeys/{}", self.identity, encoded(id)))
    }

    // Resource groups and instances of services.

    pub(super) fn groups(&self, account: &str, name: &str) -> Request {
        let (account, name) = (encoded(account), encoded(name));
        Request::get(format!(
            "{}/v2/resource_groups?account_id={account}&name={name}",
            self.resources
        ))
    }

    fn instances(&self, service: &str, more: &str) -> Request {
        Request::get(format!(
            "{}/v2/resource_instances?resource_id={service}&{PAGE}{more}",
            self.resources
        ))
    }

    /// All instances of Internet Services: the one of the domain may be in any resource group.
    pub(super) fn internet_services(&self) -> Request {
        self.instances(INTERNET_SERVICES, "")
    }

    pub(super) fn workspaces(&self, group: &str, name: &str) -> Request {
        let (group, name) = (encoded(group), encoded(name));
        self.instances(POWER_VS, &format!("&resource_group_id={group}&name={name}"))
    }

    pub(super) fn object_storages(&self, group: &str, name: &str) -> Request {
        let (group, name) = (encoded(group), encoded(name));
        let more = format!("&resource_group_id={group}&name={name}");
        self.instances(OBJECT_STORAGE, &more)
    }

    pub(super) fn create_workspace(&self, group: &str, name: &str, zone: &str) -> Request {
        let body = json!({
            "name": name,
            "target": zone,
            "resource_group": group,
            "resource_plan_id": POWER_VS_PLAN,
        });
        Request::post(format!("{}/v2/resource_instances", self.resources), body)
    }

    fn instance_url(&self, id: &str) -> String {
        format!("{}/v2/resource_instances/{}", self.resources, encoded(id))
    }

    pub(super) fn instance(&self, id: &str) -> Request {
        Request::get(self.instance_url(id))
    }

    pub(super) fn delete_instance(&self, id: &str) -> Request {
        Request::delete(format!("{}?recursive=true", self.instance_url(id)))
    }

    pub(super) fn resource_keys(&self, instance: &str) -> Request {
        Request::get(format!("{}/resource_keys", self.instance_url(instance)))
    }

    pub(super) fn delete_resource_key(&self, id: &str) -> Request {
        Request::delete(format!(
            "{}/v2/resource_keys/{}",
            self.resources,
            encoded(id)
        ))
    }

    /// Whether an instance is a workspace of Power VS.
    pub(super) fn is_workspace(instance: &Value) -> bool {
        instance["resource_id"] == POWER_VS
    }

    // Tags.

    pub(super) fn tags(&self, crn: &str) -> Request {
        Request::get(format!(
            "{}/v3/tags?attached_to={}&tag_type=user&limit=1000",
            self.tagging,
            encoded(crn)
        ))
    }

    pub(super) fn attach_tags(&self, crn: &str, tags: &[String]) -> Request {
        let body = json!({ "resources": [{ "resource_id": crn }], "tag_names": tags });
        Request::post(
            format!("{}/v3/tags/attach?tag_type=user", self.tagging),
            body,
        )
    }

    // Zones of DNS.

    pub(super) fn zones(&self, crn: &str, page: u64) -> Request {
        Request::get(format!(
            "{}/v1/{}/zones?per_page=50&page={page}",
            self.internet_services,
            encoded(crn)
        ))
    }

    fn records_url(&self, crn: &str, zone: &str) -> String {
        let (crn, zone) = (encoded(crn), encoded(zone));
        format!(
            "{}/v1/{crn}/zones/{zone}/dns_records",
            self.internet_services
        )
    }

    pub(super) fn records(&self, crn: &str, zone: &str, name: &str) -> Request {
        let url = self.records_url(crn, zone);
        Request::get(format!("{url}?name={}&per_page=100", encoded(name)))
    }

    pub(super) fn delete_record(&self, crn: &str, zone: &str, id: &str) -> Request {
        let url = self.records_url(crn, zone);
        Request::delete(format!("{url}/{}", encoded(id)))
    }
}
