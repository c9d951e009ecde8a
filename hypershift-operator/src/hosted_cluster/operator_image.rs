//! Which image the control-plane-operator of a cluster has, by what was read about the cluster: pure.

pub(crate) use payload::operator_image::{Candidate, Question, Unfit, candidate, knows};

use super::facts::Facts;

/// The image.
pub(crate) fn operator_image(facts: &Facts) -> Result<String, Unfit> {
    candidate(&question(facts))?.settled(&facts.released_operator)
}

/// What decides about the image.
pub(crate) fn question(facts: &Facts) -> Question<'_> {
    Question {
        cluster: &facts.cluster,
        side: facts.capi.side(),
        release: facts.operated().read(),
        images: &facts.images.operator,
    }
}

#[cfg(test)]
mod tests;
