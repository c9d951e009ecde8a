//! The policy's expressions, in the Common Expression Language (CEL) of the API server.
//!
//! A question to the authorizer costs a third of what one expression may cost, so each expression asks at most two.

use serde_json::{Value, json};

use super::reserved::{DOMAIN, IMAGE, KEYS, MIGRATION};
use super::{OVERRIDE, ReleaseImages};

/// What expressions have in common; each is evaluated when it is first used.
pub(super) fn variables() -> Value {
    let old = |path: &str| format!("oldObject == null ? {path}");
    let variable =
        |name: &str, expression: String| json!({ "name": name, "expression": expression });
    json!([
        variable(
            "overrides",
            format!("authorizer.requestResource.check('{OVERRIDE}').allowed()"),
        ),
        variable(
            "annotations",
            "object.metadata.?annotations.orValue({})".to_owned(),
        ),
        variable(
            "oldAnnotations",
            old("{} : oldObject.metadata.?annotations.orValue({})"),
        ),
        variable("reserved", changed("annotations", "oldAnnotations", &is_reserved())),
        variable("labels", "object.spec.?labels.orValue({})".to_owned()),
        variable("oldLabels", old("{} : oldObject.spec.?labels.orValue({})")),
        variable(
            "reservedLabels",
            changed("labels", "oldLabels", "key.matches('^([^/]*[.])?hypershift[.]openshift[.]io/')"),
        ),
        variable(
            "agentNamespace",
            "object.spec.?platform.?agent.?agentNamespace.orValue('')".to_owned(),
        ),
        variable(
            "oldAgentNamespace",
            old("'' : oldObject.spec.?platform.?agent.?agentNamespace.orValue('')"),
        ),
        variable("networks", networks("object")),
        variable("oldNetworks", old(&format!("[] : {}", networks("oldObject")))),
        variable(
            "foreignNetworks",
            "variables.networks.filter(name, name.contains('/') && !(name in variables.oldNetworks) && \
             name.split('/')[0] != object.metadata.namespace).map(name, name.split('/')[0])"
                .to_owned(),
        ),
        variable("releases", releases("object")),
        variable("oldReleases", old(&format!("[] : {}", releases("oldObject")))),
    ])
}

/// What must hold.
pub(super) fn validations(images: &ReleaseImages) -> Value {
    let mut validations = vec![annotations(), labels(), agents(), additional_networks()];
    if !images.is_empty() {
        validations.push(release_images(images));
        validations.push(mirrors());
    }
    Value::Array(validations)
}

fn annotations() -> Value {
    validation(
        "variables.reserved.size() == 0 || variables.overrides",
        "'annotations ' + variables.reserved.join(', ') + ' are reserved'",
    )
}

/// Labels of pods, by which network policies choose.
fn labels() -> Value {
    validation(
        "variables.reservedLabels.size() == 0 || variables.overrides",
        "'spec.labels ' + variables.reservedLabels.join(', ') + ' are reserved'",
    )
}

/// Controllers of the cluster may write the Agents of that namespace.
fn agents() -> Value {
    validation(
        "variables.agentNamespace == '' || variables.agentNamespace == object.metadata.namespace || \
         variables.agentNamespace == variables.oldAgentNamespace || \
         authorizer.group('agent-install.openshift.io').resource('agents')\
         .namespace(variables.agentNamespace).check('patch').allowed() || variables.overrides",
        "'spec.platform.agent.agentNamespace ' + variables.agentNamespace + ' is another namespace, and you do not have \
         the verb patch on agents.agent-install.openshift.io there'",
    )
}

/// Virtual machines are attached to the network.
fn additional_networks() -> Value {
    validation(
        "variables.foreignNetworks.size() == 0 || \
         variables.foreignNetworks.all(name, name == variables.foreignNetworks[0]) && \
         authorizer.group('k8s.cni.cncf.io').resource('network-attachment-definitions')\
         .namespace(variables.foreignNetworks[0]).check('get').allowed() || variables.overrides",
        "'spec.platform.kubevirt.additionalNetworks names networks of namespaces ' + \
         variables.foreignNetworks.join(', ') + ', and you do not have the verb get on \
         network-attachment-definitions.k8s.cni.cncf.io there'",
    )
}

fn release_images(images: &ReleaseImages) -> Value {
    let comes_from = |repository: &String| {
        let ending = "(/|:|@|$)";
        format!("image.matches('^{}{ending}')", literal(repository))
    };
    let any: Vec<String> = images.0.iter().map(comes_from).collect();
    validation(
        &format!(
            "variables.releases.all(image, image in variables.oldReleases || {}) || variables.overrides",
            any.join(" || ")
        ),
        &format!("'release images come from {} only'", images.0.join(", ")),
    )
}

/// A mirror would bring another image under an allowed name.
fn mirrors() -> Value {
    validation(
        "object.spec.?imageContentSources == \
         (oldObject == null ? optional.none() : oldObject.spec.?imageContentSources) || variables.overrides",
        "'spec.imageContentSources is reserved, since release images are limited to some repositories'",
    )
}

fn validation(expression: &str, message: &str) -> Value {
    let way_out = format!(
        "': this needs the verb {OVERRIDE} on ' + request.resource.resource + '.{}, see SECURITY.md'",
        super::GROUP
    );
    json!({
        "expression": expression,
        "messageExpression": format!("{message} + {way_out}"),
        "reason": "Forbidden",
    })
}

/// Keys of a map that were added, changed or removed, as far as `condition` holds for them.
fn changed(map: &str, old: &str, condition: &str) -> String {
    format!(
        "variables.{map}.filter(key, ({condition}) && !(key in variables.{old} && variables.{old}[key] == \
         variables.{map}[key])) + variables.{old}.filter(key, ({condition}) && !(key in variables.{map}))"
    )
}

fn is_reserved() -> String {
    let keys = KEYS.map(|key| format!("'{key}'")).join(", ");
    format!(
        "key in [{keys}] || key.startsWith('{DOMAIN}') && key.endsWith('{IMAGE}') || key.startsWith('{MIGRATION}')"
    )
}

fn networks(object: &str) -> String {
    format!(
        "{object}.spec.?platform.?kubevirt.?additionalNetworks.orValue([]).map(network, network.name)"
    )
}

fn releases(object: &str) -> String {
    format!(
        "[{object}.spec.?release.?image.orValue(''), {object}.spec.?controlPlaneRelease.?image.orValue('')]\
         .filter(image, image != '')"
    )
}

/// A text as a regular expression of CEL that only it matches. It has nothing but letters, digits and `._:/@-`.
fn literal(text: &str) -> String {
    text.replace('.', "[.]")
}
