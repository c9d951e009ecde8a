//! The image of a provider that is part of the release.

use crate::facts::Facts;

/// The image: from the annotation, or else from the flag, or else from the release that the control plane is operated on.
/// Nothing while the release is not known.
pub(crate) fn of_release(
    facts: &Facts,
    annotation: &str,
    flag: Option<&String>,
    component: &str,
) -> Result<Option<String>, String> {
    if let Some(image) = facts.annotations().get(annotation).or(flag) {
        return Ok(Some(image.clone()));
    }
    let Some(release) = facts.operated().read() else {
        return Ok(None);
    };
    let image = release.component(component);
    let image = image.map_err(|missing| missing.to_string())?;
    Ok(Some(image.to_owned()))
}
