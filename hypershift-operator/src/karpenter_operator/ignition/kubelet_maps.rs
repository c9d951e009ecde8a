//! ConfigMaps with the settings of kubelets, for classes that have some. A class keeps its finalizer as long as there is one.

use api::karpenter::v1::OpenshiftEc2NodeClass;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use support::apply::delete;
use support::reconcile::is_missing;

use super::{change_class, problem};
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::karpenter_operator::classes::kubelet_map;
use crate::karpenter_operator::context::Context;
use crate::karpenter_operator::error::Error;
use crate::karpenter_operator::{kinds, kubelet};
use crate::names;

/// Label of such a ConfigMap.
const LABEL: &str = "hypershift.openshift.io/karpenter-nodeclass-kubelet-config";
/// Finalizer of a class that has one.
const FINALIZER: &str = "hypershift.openshift.io/karpenter-kubelet-config-finalizer";

/// Writes the ConfigMap of a class, if it has settings. Returns the name and the text of what its nodes join with.
pub(super) async fn write(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    namespace: &ControlPlaneNamespace,
) -> Result<(String, String), Error> {
    let settings = class.spec.kubelet.as_ref();
    let text = kubelet::manifest(settings).map_err(|text| problem(class, text))?;
    if settings.is_none() {
        return Ok((names::KARPENTER_TAINT.to_owned(), text));
    }
    set_finalizer(ctx, class, true).await?;
    let name = kubelet_map(&class.name_any());
    let found = ctx.get::<ConfigMap>(&name).await?;
    if found.is_some_and(|it| !it.labels().contains_key(LABEL)) {
        return Err(Error::Unreadable {
            object: format!("ConfigMap {}/{name}", &**namespace),
            problem: "it is not that of a class: delete it, or rename what has its name".to_owned(),
        });
    }
    let map = json!({
        "metadata": {
            "namespace": &**namespace,
            "name": name,
            "labels": { LABEL: "true" },
        },
        "data": { "config": text },
    });
    ctx.here.ensure_value(&kinds::config_map(), map).await?;
    Ok((name, text))
}

/// Deletes the ConfigMaps of classes that are gone or have no settings, and then the finalizers.
pub(super) async fn sweep(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    classes: &[OpenshiftEc2NodeClass],
) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::namespaced(ctx.management.clone(), namespace);
    let wanted: Vec<_> = classes.iter().filter(|it| has_map(it)).map(name).collect();
    for map in ctx.config_maps(LABEL).await? {
        if wanted.contains(&map.name_any()) {
            continue;
        }
        match delete(&api, &map.metadata).await {
            Err(error) if is_missing(&error) => {}
            deleted => deleted.map_err(Error::write(format!("ConfigMap {}", map.name_any())))?,
        }
    }
    for class in classes.iter().filter(|it| !has_map(it)) {
        set_finalizer(ctx, class, false).await?;
    }
    Ok(())
}

fn name(class: &OpenshiftEc2NodeClass) -> String {
    kubelet_map(&class.name_any())
}

/// Whether a class has a ConfigMap.
fn has_map(class: &OpenshiftEc2NodeClass) -> bool {
    class.spec.kubelet.is_some() && class.metadata.deletion_timestamp.is_none()
}

async fn set_finalizer(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    is_wanted: bool,
) -> Result<(), Error> {
    match finalizers(class, is_wanted) {
        None => Ok(()),
        Some(finalizers) => {
            let change = json!({ "metadata": { "finalizers": finalizers } });
            change_class(ctx, class, change).await
        }
    }
}

/// The finalizers after a change, if there is one.
fn finalizers(class: &OpenshiftEc2NodeClass, is_wanted: bool) -> Option<Vec<String>> {
    let mut finalizers = class.finalizers().to_vec();
    let has = finalizers.iter().any(|it| it == FINALIZER);
    if has == is_wanted {
        return None;
    }
    if is_wanted {
        finalizers.push(FINALIZER.to_owned());
    } else {
        finalizers.retain(|it| it != FINALIZER);
    }
    Some(finalizers)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::karpenter_operator::fixtures;

    const MAPS: &str = "/api/v1/namespaces/clusters-one/configmaps";
    const CLASSES: &str = "/apis/karpenter.hypershift.openshift.io/v1/openshiftec2nodeclasses";

    fn namespace() -> ControlPlaneNamespace {
        crate::control_plane_namespace::for_tests(fixtures::NAMESPACE)
    }

    fn map(name: &str) -> Value {
        json!({ "metadata": { "name": name, "uid": "u", "labels": { LABEL: "true" } } })
    }

    fn class(name: &str, is_deleted: bool, has_finalizer: bool) -> OpenshiftEc2NodeClass {
        let mut class = fixtures::class(name, &json!({ "kubelet": { "maxPods": 100 } }));
        if is_deleted {
            fixtures::delete(&mut class.metadata);
        }
        if has_finalizer {
            class.metadata.finalizers = Some(vec!["a".to_owned(), FINALIZER.to_owned()]);
        }
        class
    }

    #[tokio::test]
    async fn a_class_with_settings_has_a_finalizer_before_its_config_map() {
        let class = class("a", false, false);
        let written = json!({ "metadata": { "labels": { LABEL: "true" } } });
        let one = format!("{MAPS}/karpenter-kubelet-a");
        let scenario = Scenario::new([
            Expect::patch(&format!("{CLASSES}/a"))
                .body(json!({ "metadata": { "resourceVersion": "7", "finalizers": [FINALIZER] } }))
                .answer(Answer::ok(&json!(class))),
            Expect::get(&one).answer(Answer::error(404, "NotFound")),
            Expect::get(&one).answer(Answer::error(404, "NotFound")),
            Expect::patch(&one)
                .body(written)
                .answer(Answer::ok(&map("karpenter-kubelet-a"))),
        ]);
        let ctx = fixtures::context(&scenario);
        let (name, text) = write(&ctx, &class, &namespace()).await.unwrap();
        assert_eq!(name, "karpenter-kubelet-a");
        assert!(
            text.contains("maxPods") && text.contains("karpenter.sh/unregistered"),
            "{text}"
        );
        scenario.finish();
    }

    #[tokio::test]
    async fn a_config_map_of_others_is_left_alone() {
        let other = json!({ "metadata": { "name": "karpenter-kubelet-a" } });
        let one = format!("{MAPS}/karpenter-kubelet-a");
        let scenario = Scenario::new([Expect::get(&one).answer(Answer::ok(&other))]);
        let ctx = fixtures::context(&scenario);
        let error = write(&ctx, &class("a", false, true), &namespace())
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("it is not that of a class"),
            "{error}"
        );
        scenario.finish();
    }

    #[tokio::test]
    async fn nothing_is_written_for_a_class_without_settings() {
        let scenario = Scenario::new([]);
        let (ctx, class) = (
            fixtures::context(&scenario),
            fixtures::class("a", &json!({})),
        );
        let (name, text) = write(&ctx, &class, &namespace()).await.unwrap();
        assert_eq!(name, names::KARPENTER_TAINT);
        assert!(text.contains("karpenter.sh/unregistered"), "{text}");
        scenario.finish();
    }

    #[tokio::test]
    async fn what_is_left_of_classes_goes_before_their_finalizers() {
        let (kept, ending) = (class("kept", false, true), class("ending", true, true));
        let maps = [
            "karpenter-kubelet-kept",
            "karpenter-kubelet-ending",
            "karpenter-kubelet-gone",
        ];
        let maps = maps.map(map);
        let delete = |name: &str| Expect::delete(&format!("{MAPS}/{name}"));
        let scenario = Scenario::new([
            Expect::get(MAPS).answer(Answer::list(&maps)),
            delete("karpenter-kubelet-ending").answer(Answer::ok(&map("x"))),
            delete("karpenter-kubelet-gone").answer(Answer::error(404, "NotFound")),
            Expect::patch(&format!("{CLASSES}/ending"))
                .body(json!({ "metadata": { "finalizers": ["a"] } }))
                .answer(Answer::ok(&json!(ending))),
        ]);
        let ctx = fixtures::context(&scenario);
        sweep(&ctx, &namespace(), &[kept, ending]).await.unwrap();
        scenario.finish();
    }
}
