//! Resource groups, instances of services, and tags.

use serde_json::{Value, json};
use support::rest::Request;

use super::{ACCOUNT, Change, IbmCloud, Kind, absent, conflict, is_asked_for, refused, unknown};
use crate::Answer;

/// Identifiers in the catalog: services and plans.
const POWER_VS: &str = "abd259f0-9990-11e8-acc8-b9f54a8f1661";
const POWER_VS_PLAN: &str = "f165dd34-3a40-423b-9d95-e90a23f724dd";
const INTERNET_SERVICES: &str = "75874a60-cb12-11e7-948e-37ac098eb1b9";
const OBJECT_STORAGE: &str = "dff97f5c-bc5e-4455-b470-411c3edbe49c";
const OBJECT_STORAGE_PLAN: &str = "744bfc56-d12c-4866-88d5-dac9139e0e5d";

impl IbmCloud {
    pub(super) fn resources(&mut self, request: &Request, parts: &[&str]) -> Answer {
        match (request.method.as_str(), parts) {
            ("GET", ["v2", "resource_groups"]) => self.list(Kind::Group, "resources", |it| {
                is_asked_for(request, it, "account_id", "account_id")
                    && is_asked_for(request, it, "name", "name")
            }),
            ("GET", ["v2", "resource_instances"]) => self.instances(request),
            ("POST", ["v2", "resource_instances"]) => self.create_instance(&request.body),
            ("GET", ["v2", "resource_instances", id]) => self.one(Kind::Instance, guid(id)),
            ("DELETE", ["v2", "resource_instances", id]) => self.delete_instance(guid(id)),
            ("GET", ["v2", "resource_instances", id, "resource_keys"]) => {
                let guid = guid(id);
                self.list(Kind::ResourceKey, "resources", |it| it["instance"] == guid)
            }
            ("DELETE", ["v2", "resource_keys", id]) => self.delete(Kind::ResourceKey, id),
            _ => unknown(),
        }
    }

    /// In pages of one instance, so that a client that reads only one page finds too little.
    fn instances(&self, request: &Request) -> Answer {
        let found: Vec<_> = self
            .all(Kind::Instance)
            .filter(|it| {
                let is = |name: &str| is_asked_for(request, it, name, name);
                [
                    "name",
                    "resource_group_id",
                    "resource_id",
                    "resource_plan_id",
                ]
                .into_iter()
                .all(is)
            })
            .collect();
        let start = request.parameter("start").unwrap_or_default();
        let start: usize = start.parse().unwrap_or_default();
        let next = start + 1;
        let page: Vec<_> = found.get(start).into_iter().collect();
        let link = (next < found.len()).then(|| format!("/v2/resource_instances?start={next}"));
        Answer::ok(json!({ "resources": page, "next_url": link }))
    }

    /// Adds an instance of a service, and returns its identifier.
    fn add_instance(
        &mut self,
        name: &str,
        service: [&str; 3],
        region: &str,
        group: &str,
    ) -> String {
        let [service, id, plan] = service;
        let guid = self.add(
            Kind::Instance,
            json!({
                "name": name,
                "region_id": region,
                "resource_group_id": group,
                "resource_id": id,
                "resource_plan_id": plan,
                "state": "active",
            }),
        );
        let crn = format!("crn:v1:bluemix:public:{service}:{region}:a/{ACCOUNT}:{guid}::");
        self.set(Kind::Instance, &guid, "crn", json!(crn));
        self.set(Kind::Instance, &guid, "guid", json!(guid));
        // The API has the CRN here, and accepts both.
        self.set(Kind::Instance, &guid, "id", json!(crn));
        guid
    }

    /// Adds an instance of Internet Services, and returns its CRN.
    pub fn add_internet_services(&mut self, name: &str) -> String {
        let service = ["internet-svcs", INTERNET_SERVICES, "standard"];
        let guid = self.add_instance(name, service, "global", "group-0001");
        self.crn_of(&guid)
    }

    /// Adds a workspace of Power VS, and returns its identifier.
    pub fn add_workspace(&mut self, name: &str, zone: &str, group: &str) -> String {
        let service = ["power-iaas", POWER_VS, POWER_VS_PLAN];
        self.add_instance(name, service, zone, group)
    }

    /// Adds an instance of Cloud Object Storage, and returns its identifier.
    pub fn add_object_storage(&mut self, name: &str, group: &str) -> String {
        let service = ["cloud-object-storage", OBJECT_STORAGE, OBJECT_STORAGE_PLAN];
        self.add_instance(name, service, "global", group)
    }

    /// Adds credentials for an instance, with a service ID of their own, and returns the identifier of that.
    pub fn add_resource_key(&mut self, instance: &str, name: &str) -> String {
        let iam_id = self.add_service_id(name, "");
        let service_id = iam_id.trim_start_matches("iam-").to_owned();
        let key = self.add(Kind::ApiKey, json!({ "name": name, "iam_id": iam_id }));
        let crn =
            format!("crn:v1:bluemix:public:iam-identity::a/{ACCOUNT}::serviceid:{service_id}");
        let credentials = json!({
            "iam_apikey_id": key,
            "iam_apikey_name": name,
            "iam_serviceid_crn": crn,
        });
        let value = json!({ "name": name, "instance": instance, "credentials": credentials });
        let id = self.add(Kind::ResourceKey, value);
        self.set(Kind::ResourceKey, &id, "guid", json!(id));
        service_id
    }

    fn crn_of(&self, guid: &str) -> String {
        let instance = self.get(Kind::Instance, guid);
        let crn = instance.and_then(|it| it["crn"].as_str());
        crn.unwrap_or_default().to_owned()
    }

    fn create_instance(&mut self, body: &Value) -> Answer {
        let text = |field: &str| body[field].as_str().unwrap_or_default();
        let group = text("resource_group");
        if self.get(Kind::Group, group).is_none() || text("resource_plan_id") != POWER_VS_PLAN {
            return refused(400, "invalid_request");
        }
        let guid = self.add_workspace(text("name"), text("target"), group);
        self.set(Kind::Instance, &guid, "state", json!("provisioning"));
        self.later(Kind::Instance, &guid, Change::Set("state", "active"));
        Answer {
            status: 202,
            ..self.one(Kind::Instance, &guid)
        }
    }

    /// It stays visible with another state. Its resource keys go with it.
    fn delete_instance(&mut self, guid: &str) -> Answer {
        let Some(instance) = self.get(Kind::Instance, guid) else {
            return absent();
        };
        let is_workspace = instance["resource_id"] == POWER_VS;
        let crn = instance["crn"].clone();
        let uses = |it: &Value| it["workspace"] == guid || it["network_id"] == crn;
        let kinds = [Kind::DhcpServer, Kind::Connection];
        if kinds.iter().any(|kind| self.all(*kind).any(uses)) {
            return conflict();
        }
        for key in self.ids(Kind::ResourceKey, |it| it["instance"] == guid) {
            self.remove(Kind::ResourceKey, &key);
        }
        if is_workspace {
            self.later(Kind::Instance, guid, Change::Set("state", "removed"));
        } else {
            let state = json!("pending_reclamation");
            self.set(Kind::Instance, guid, "state", state);
        }
        Answer::empty(202)
    }

    pub(super) fn tagging(&mut self, request: &Request, parts: &[&str]) -> Answer {
        match (request.method.as_str(), parts) {
            ("GET", ["v3", "tags"]) => {
                let crn = request.parameter("attached_to").unwrap_or_default();
                let tags: Vec<_> = self
                    .tags(&crn)
                    .into_iter()
                    .map(|tag| json!({ "name": tag }))
                    .collect();
                Answer::ok(json!({ "items": tags }))
            }
            ("POST", ["v3", "tags", "attach"]) => self.attach(&request.body),
            _ => unknown(),
        }
    }

    fn attach(&mut self, body: &Value) -> Answer {
        let crn = body.pointer("/resources/0/resource_id");
        let Some(crn) = crn.and_then(Value::as_str).map(str::to_owned) else {
            return refused(400, "invalid_request");
        };
        let exists = self.objects.values().any(|it| it.value["crn"] == crn);
        for tag in body["tag_names"].as_array().into_iter().flatten() {
            if let Some(tag) = tag.as_str().filter(|_| exists) {
                self.tag(&crn, tag);
            }
        }
        // Also a failure is a success of the call.
        Answer::ok(json!({ "results": [{ "resource_id": crn, "is_error": !exists }] }))
    }
}

/// The identifier of an instance, which may be named by its CRN.
fn guid(id: &str) -> &str {
    id.trim_end_matches(':').rsplit(':').next().unwrap_or(id)
}
