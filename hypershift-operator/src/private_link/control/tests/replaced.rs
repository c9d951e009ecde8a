//! Links of early versions of HyperShift, which other links replace.

use super::*;

/// Early versions of HyperShift published the router by another link. Nodes use it until its successor is available.
#[tokio::test]
async fn a_link_of_an_early_version_goes_once_its_successor_is_available() {
    type Edit = fn(&mut Value);
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status });
    let conditions = |endpoint: &str| {
        let all = [
            condition("AWSEndpointServiceAvailable", "True"),
            condition("AWSEndpointAvailable", endpoint),
        ];
        let rest = json!({
            "reason": "a", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
        });
        let all = all.map(|mut it| {
            let fields = it.as_object_mut().unwrap();
            fields.extend(rest.as_object().unwrap().clone());
            it
        });
        json!({ "conditions": all })
    };
    let same: Edit = |_| {};
    let table: [(&str, Option<&str>, Edit, bool); 5] = [
        ("available", Some("True"), same, true),
        ("without an endpoint", Some("False"), same, false),
        ("missing", None, same, false),
        ("being deleted", Some("True"), deleted, false),
        (
            "another cluster's",
            Some("True"),
            |it| it["metadata"]["annotations"][CLUSTER] = json!("clusters-x/one"),
            false,
        ),
    ];
    for (name, endpoint, edit, expected) in table {
        let answer = endpoint.map(|endpoint| {
            let successor = link(|it| {
                edit(it);
                it["status"] = conditions(endpoint);
            });
            Answer::ok(&json!(successor))
        });
        let answer = answer.unwrap_or_else(|| Answer::error(404, "NotFound"));
        let mut requests = vec![Expect::get(LINK).answer(answer)];
        if !expected {
            requests.push(Expect::get(POOLS).answer(Answer::list(&[])));
            requests.push(Expect::get(SUBNETS).answer(Answer::error(404, "NotFound")));
        }
        let scenario = Scenario::new(requests);
        let ctx = context(Scope::Private, &scenario);
        let mut legacy = bare(&aws::KIND, &of_aws());
        legacy.metadata.name = Some("router-clusters-one".to_owned());
        let step = aws::Provider::new(&ctx)
            .ensure(&legacy, &owner("aws"))
            .await;
        assert_eq!(step.unwrap() == Step::Delete, expected, "{name}");
        scenario.finish();
    }
}
