//! What the fake refuses, and what takes time in it.

use super::*;

const GROUP: &str = "/subscriptions/s/resourceGroups/g";
const GROUPS: &str = "2021-04-01";
const NETWORK: &str = "2023-11-01";
const ZONES: &str = "2020-06-01";

fn url(id: &str, version: &str) -> String {
    format!("https://{MANAGEMENT}{id}?api-version={version}")
}

fn network() -> String {
    format!("{GROUP}/providers/Microsoft.Network/virtualNetworks/n")
}

fn put(id: &str, version: &str, body: Value) -> Request {
    Request::put(url(id, version), body)
}

fn cloud() -> Azure {
    Azure::default().with(GROUP, json!({ "location": "here" }))
}

fn header(answer: &Answer, name: &str) -> String {
    let mut headers = answer.headers.iter();
    let found = headers.find(|(key, _)| key == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn code(answer: &Answer) -> &str {
    answer.body["error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn changes_of_networks_take_time() {
    let mut cloud = cloud();
    let body = json!({ "location": "here", "properties": { "subnets": [{ "name": "default" }] } });
    let made = cloud.answer(&put(&network(), NETWORK, body));
    assert_eq!(made.body["properties"]["provisioningState"], "Updating");
    let operation = Request::get(header(&made, "azure-asyncoperation"));
    for expected in ["InProgress", "InProgress", "Succeeded"] {
        assert_eq!(cloud.answer(&operation).body["status"], expected);
        cloud.pass_time();
    }
    let found = cloud.answer(&Request::get(url(&network(), NETWORK)));
    let subnet = &found.body["properties"]["subnets"][0]["id"];
    assert_eq!(subnet, &json!(format!("{}/subnets/default", network())));
    assert_eq!(found.body["properties"]["provisioningState"], "Succeeded");
}

#[test]
fn what_is_used_cannot_be_deleted_and_a_group_takes_all_with_it() {
    let zone = format!("{GROUP}/providers/Microsoft.Network/privateDnsZones/a.b");
    let used = json!({ "id": network().to_uppercase() });
    let mut cloud = cloud()
        .with(&network(), json!({}))
        .with(&zone, json!({}))
        .with(
            &format!("{zone}/virtualNetworkLinks/l"),
            json!({ "properties": { "virtualNetwork": used } }),
        );
    let delete = |id: &str, version: &str| Request::delete(url(id, version));
    for (id, version, expected) in [
        (network().as_str(), NETWORK, "InUse"),
        (zone.as_str(), ZONES, "CannotDeleteResource"),
    ] {
        let answer = cloud.answer(&delete(id, version));
        assert_eq!(code(&answer), expected, "{id}");
    }
    assert_eq!(cloud.answer(&delete(GROUP, GROUPS)).status, 202);
    let late = cloud.answer(&put(&network(), NETWORK, json!({ "location": "here" })));
    assert_eq!(late.status, 409);
    cloud.pass_time();
    cloud.pass_time();
    assert_eq!(cloud.snapshot(), [""; 0]);
    assert_eq!(cloud.answer(&delete(GROUP, GROUPS)).status, 404);
}

#[test]
fn a_group_that_others_use_is_not_deleted() {
    let other = "/subscriptions/s/resourceGroups/other";
    let user = json!({ "properties": { "network": { "id": network() } } });
    let mut cloud = cloud()
        .with(&network(), json!({}))
        .with(other, json!({}))
        .with(&format!("{other}/providers/Microsoft.Compute/x/y"), user);
    let before = cloud.snapshot();
    let deleted = cloud.answer(&Request::delete(url(GROUP, GROUPS)));
    let operation = Request::get(header(&deleted, "location"));
    assert_eq!(cloud.answer(&operation).status, 202);
    cloud.pass_time();
    cloud.pass_time();
    assert_eq!(code(&cloud.answer(&operation)), "InUse");
    assert_eq!(cloud.snapshot(), before);
}

#[test]
fn requests_that_azure_would_refuse_are_refused() {
    let elsewhere =
        "/subscriptions/s/resourceGroups/none/providers/Microsoft.Network/virtualNetworks/n";
    let missing = json!({ "properties": { "a": { "id": "/subscriptions/none" } } });
    let mut cloud = cloud();
    for (request, expected) in [
        (put(elsewhere, NETWORK, json!({})), "ResourceGroupNotFound"),
        (
            put(&network(), "2020-01-01", json!({})),
            "NoRegisteredProviderFound",
        ),
        (
            put(&network(), NETWORK, missing),
            "InvalidResourceReference",
        ),
        (
            put(GROUP, GROUPS, json!({ "location": "there" })),
            "InvalidResourceLocation",
        ),
        (
            Request::get(format!("https://{MANAGEMENT}{GROUP}")),
            "MissingApiVersionParameter",
        ),
        (Request::get("https://example.com/a"), "UnknownHost"),
    ] {
        let answer = cloud.answer(&request);
        assert_eq!(code(&answer), expected, "{request:?}");
    }
}

#[test]
fn a_role_is_assigned_once_to_a_principal_that_exists() {
    let mut cloud = cloud().with_principal("c", "o");
    let assign = |name: &str, principal: &str| {
        let id = format!("{GROUP}/providers/Microsoft.Authorization/roleAssignments/{name}");
        let properties = json!({ "roleDefinitionId": "r", "principalId": principal });
        put(&id, "2022-04-01", json!({ "properties": properties }))
    };
    for (name, principal, expected) in [
        ("1", "other", "PrincipalNotFound"),
        ("1", "o", ""),
        ("1", "o", "RoleAssignmentExists"),
        ("2", "o", "RoleAssignmentExists"),
    ] {
        let answer = cloud.answer(&assign(name, principal));
        assert_eq!(code(&answer), expected, "{name} {principal}");
    }
}

#[test]
fn lists_have_pages_and_a_new_principal_is_found_later() {
    let mut cloud = cloud();
    for name in ["a", "b", "c"] {
        let id = format!("{GROUP}/providers/Microsoft.Network/dnszones/{name}.example.com");
        cloud.insert(&id, json!({}));
    }
    let list = url(
        "/subscriptions/s/providers/Microsoft.Network/dnszones",
        "2018-05-01",
    );
    let first = cloud.answer(&Request::get(list)).body;
    assert_eq!(first["value"].as_array().unwrap().len(), 2);
    let second = cloud.answer(&Request::get(first["nextLink"].as_str().unwrap()));
    assert_eq!(second.body["value"][0]["name"], "c.example.com");
    assert!(second.body["nextLink"].is_null());

    let identity = format!("{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i");
    let made = put(&identity, "2023-01-31", json!({ "location": "here" }));
    let made = cloud.answer(&made).body;
    let client = made["properties"]["clientId"].as_str().unwrap();
    let filter = format!("https://{GRAPH}/v1.0/servicePrincipals?$filter=appId%20eq%20'{client}'");
    let principals = Request::get(filter);
    assert_eq!(cloud.answer(&principals).body["value"], json!([]));
    cloud.pass_time();
    let found = cloud.answer(&principals).body;
    assert_eq!(found["value"][0]["id"], made["properties"]["principalId"]);
}
