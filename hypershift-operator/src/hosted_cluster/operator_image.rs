//! Selects the image of the control-plane-operator, based on the facts of the cluster: pure.

use payload::operator_image::candidate;
pub(crate) use payload::operator_image::{Question, Unfit};

use crate::facts::Facts;

/// The image.
pub(crate) fn operator_image(facts: &Facts) -> Result<String, Unfit> {
    candidate(&question(facts))?.settled(&facts.released_operator)
}

/// The inputs of the selection.
pub(crate) fn question(facts: &Facts) -> Question<'_> {
    Question {
        cluster: &facts.cluster,
        capi_types: facts.capi.types(),
        release: facts.operated().read(),
        images: &facts.images.operator,
    }
}

#[cfg(test)]
mod tests;
