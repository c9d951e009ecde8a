//! What roles are like.

use super::*;

/// One role for all components, and policies of AWS.
#[tokio::test]
async fn roles_have_the_form_that_is_asked_for() {
    for (shared, managed, roles) in [(true, false, 2), (false, true, 9), (true, true, 2)] {
        let fake = Fake::with_zone(BASE);
        let scope = scope();
        let executor = executor(&fake, &scope);
        let made = executor.create_network(&network(&["1a"], false)).await;
        let mut request = identity(&made.unwrap());
        request.resources.auto_node = false;
        request.form = Form {
            shared,
            managed: managed.then(|| BASE.to_owned()),
        };
        let output = executor.create_identity(&request).await.unwrap();
        let snapshot = fake.state().snapshot();
        assert_eq!(executor.create_identity(&request).await.unwrap(), output);
        assert_eq!(fake.state().snapshot(), snapshot);
        assert_eq!(output.roles.len(), 7);
        assert_eq!(fake.state().roles.len(), roles, "{shared} {managed}");
        let is_shared = |arn: &String| arn == "arn:role/a-x1-shared-role";
        assert_eq!(output.roles.values().all(is_shared), shared);
        let attached: usize = {
            let state = fake.state();
            let roles = state.roles.values();
            roles.map(|it| it.attached.len()).sum()
        };
        let expected: usize = if managed { 9 } else { 0 };
        assert_eq!(expected, attached, "{shared} {managed}");
        let worker = "a-x1-worker-ROSA-Worker-Role";
        assert_eq!(fake.state().roles.contains_key(worker), managed);
        destroy(&fake).await.unwrap();
        assert_eq!(left(&fake), [""; 0], "{shared} {managed}");
    }
}
